package dir

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
)

// flushEvery is how many appended bytes the kernel is told to begin writing at a time, so that the Sync of a large
// blob finds most of it on the disk.
const flushEvery = 8 << 20

type unixStat = syscall.Stat_t

// file is an open blob; writer is nil in one that can't be appended to.
type file struct {
	s      *Store
	f      *os.File
	name   string
	writer *writer
}

type writer struct {
	mu      sync.Mutex // held over an Append
	size    int64
	flushed int64 // the kernel was told to write up to here
	failed  atomic.Pointer[error]

	nameMu sync.Mutex
	fresh  bool // the name isn't durable yet; guarded by nameMu
}

// ReadAt implements io.ReaderAt.
func (b *file) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errs.Msg(errs.Invalid, "read", b.name, "negative offset")
	}
	n, err := b.f.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, wrap("read", b.name, err)
	}
	return n, err
}

// Append implements blob.Blob.
func (b *file) Append(p []byte) (int64, error) {
	w := b.writer
	if w == nil {
		return 0, errs.Msg(errs.Unsupported, "append", b.name, "the blob is open for reading")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if failed := w.failed.Load(); failed != nil {
		return 0, *failed
	}
	if err := b.s.admit(b.name, int64(len(p))); err != nil {
		return 0, err
	}
	off := w.size
	if _, err := b.f.WriteAt(p, off); err != nil {
		// What was written of p would be overwritten by the next Append, but a Size by another handle would count it.
		if cut := b.f.Truncate(off); cut != nil {
			err = errors.Join(err, cut)
		}
		return 0, wrap("append", b.name, err)
	}
	w.size += int64(len(p))
	if n := w.size - w.flushed; n >= flushEvery {
		// Advice only: an error comes back from Sync.
		_ = unix.SyncFileRange(int(b.f.Fd()), w.flushed, n, unix.SYNC_FILE_RANGE_WRITE)
		w.flushed = w.size
	}
	return off, nil
}

// Sync implements blob.Blob.
func (b *file) Sync() error {
	w := b.writer
	if w == nil {
		return wrap("sync", b.name, b.fdatasync()) // after a Punch
	}
	if failed := w.failed.Load(); failed != nil {
		return *failed
	}
	err := b.fdatasync()
	if err == nil {
		err = w.syncName(filepath.Dir(b.s.path(b.name)))
	}
	if err != nil {
		err = wrap("sync", b.name, err)
		w.failed.CompareAndSwap(nil, &err)
	}
	return err
}

func (b *file) fdatasync() error {
	for {
		if err := unix.Fdatasync(int(b.f.Fd())); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (w *writer) syncName(dir string) error {
	w.nameMu.Lock()
	defer w.nameMu.Unlock()
	if !w.fresh {
		return nil
	}
	if err := syncDir(dir); err != nil {
		return err
	}
	w.fresh = false
	return nil
}

// Size implements blob.Blob.
func (b *file) Size() int64 {
	if w := b.writer; w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.size
	}
	info, err := b.f.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// Punch implements blob.Puncher. A file system without holes gives errs.Unsupported.
func (b *file) Punch(off, n int64) error {
	if off < 0 || n < 0 {
		return errs.Msg(errs.Invalid, "punch", b.name, "negative range")
	}
	if n = min(n, b.Size()-off); n <= 0 {
		return nil
	}
	return wrap("punch", b.name, unix.Fallocate(int(b.f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n))
}

// Close implements blob.Blob.
func (b *file) Close() error {
	if err := b.f.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return wrap("close", b.name, err)
	}
	return nil
}

// sorted orders entries as the names of the blobs that they are or hold: a folder counts with its slash, which is
// greater than '-' and '.'.
func sorted(entries []fs.DirEntry) []fs.DirEntry {
	key := func(e fs.DirEntry) string {
		if e.IsDir() {
			return e.Name() + "/"
		}
		return e.Name()
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(key(a), key(b)) })
	return entries
}
