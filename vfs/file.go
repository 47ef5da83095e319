package vfs

import (
	"context"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"syscall"
)

// Values of Seek's whence beside io.SeekStart and so on.
const (
	SeekData = 3
	SeekHole = 4
)

// file is an open regular file or directory.
type file struct {
	m     *mount
	t     *point
	ino   Ino
	c     Cred
	flags int
	ctx   context.Context // without an end: a file outlives the call that opened it
	path  string
	dir   bool
	held  bool // a reference to ino is ours
	h     Handle

	closed     atomic.Bool
	mu         sync.Mutex // guards what follows; held while the offset moves
	off        int64
	checkSetID bool // the first write must look for set-id bits
}

// Path returns the absolute path by which the file was opened.
func (f *file) Path() string { return f.path }
func (f *file) Flags() int   { return f.flags }

// readable and writable check the descriptor's access mode.
func (f *file) readable() error {
	switch {
	case f.closed.Load() || f.flags&O_ACCMODE == O_WRONLY:
		return syscall.EBADF
	case f.dir:
		return syscall.EISDIR
	}
	return nil
}

func (f *file) writable() error {
	if f.closed.Load() || f.flags&O_ACCMODE == O_RDONLY {
		return syscall.EBADF
	}
	return nil
}

func (f *file) Read(p []byte) (int, error) {
	if err := f.readable(); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.h.ReadAt(p, f.off)
	f.off += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if err := f.readable(); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, syscall.EINVAL
	}
	return f.h.ReadAt(p, off)
}

func (f *file) Write(p []byte) (int, error) {
	if err := f.writable(); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, end, err := f.writeAt(p, f.off)
	if n > 0 {
		f.off = end
	}
	return n, err
}

// WriteAt writes at an offset, but at the end if the file was opened with O_APPEND, as pwrite does on Linux.
func (f *file) WriteAt(p []byte, off int64) (int, error) {
	if err := f.writable(); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, syscall.EINVAL
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, _, err := f.writeAt(p, off)
	return n, err
}

// writeAt writes and returns the offset after the bytes.
func (f *file) writeAt(p []byte, off int64) (n int, end int64, err error) {
	if off > math.MaxInt64-int64(len(p)) {
		return 0, off, syscall.EFBIG
	}
	if len(p) == 0 {
		return 0, off, nil
	}
	if f.checkSetID {
		if err := f.dropSetID(); err != nil {
			return 0, off, err
		}
	}
	if f.flags&O_APPEND != 0 {
		at, err := f.h.Append(p)
		if err != nil {
			return 0, off, err
		}
		return len(p), at + int64(len(p)), nil
	}
	n, err = f.h.WriteAt(p, off)
	return n, off + int64(n), err
}

// dropSetID takes the set-id bits away at the first write by anybody but root.
func (f *file) dropSetID() error {
	a, err := f.h.Attr()
	if err != nil {
		return err
	}
	var s SetAttr
	if dropSetID(f.c, a, &s); s.Mode != nil {
		if _, err := f.m.FS.SetAttr(f.ctx, f.ino, s); err != nil {
			return err
		}
	}
	f.checkSetID = false
	return nil
}

func (f *file) Seek(off int64, whence int) (int64, error) {
	if f.closed.Load() {
		return 0, syscall.EBADF
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var base int64
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		base = f.off
	case io.SeekEnd, SeekData, SeekHole:
		if f.dir {
			return 0, syscall.EINVAL
		}
		a, err := f.h.Attr()
		if err != nil {
			return 0, err
		}
		if base = a.Size; whence != io.SeekEnd {
			if off < 0 || off >= base {
				return 0, syscall.ENXIO
			}
			if base = 0; whence == SeekHole { // the only hole that we promise is the one at the end
				base, off = a.Size, 0
			}
		}
	default:
		return 0, syscall.EINVAL
	}
	if off > 0 && base > math.MaxInt64-off {
		return 0, syscall.EOVERFLOW
	}
	if base+off < 0 {
		return 0, syscall.EINVAL
	}
	f.off = base + off
	return f.off, nil
}

func (f *file) Attr() (a Attr, err error) {
	switch {
	case f.closed.Load():
		return a, syscall.EBADF
	case f.dir:
		a, err = f.m.FS.GetAttr(f.ctx, f.ino)
	default:
		a, err = f.h.Attr()
	}
	a.Dev = f.m.dev
	return a, err
}

func (f *file) SetAttr(s SetAttr) error {
	a, err := f.Attr()
	if err != nil {
		return err
	}
	if f.m.ReadOnly {
		return syscall.EROFS
	}
	size := s.Size
	s.Size = nil
	if size != nil {
		if f.dir || f.writable() != nil || *size < 0 {
			return syscall.EINVAL
		}
		dropSetID(f.c, a, &s)
	}
	// What a descriptor that is open for writing allows needs no look at the mode.
	now := s
	if f.writable() == nil {
		now.AtimeNow, now.MtimeNow = false, false
	}
	if err := f.c.checkSetAttr(a, &now); err != nil {
		return err
	}
	s.Mode = now.Mode
	if size != nil {
		if err := f.h.Truncate(*size); err != nil {
			return err
		}
	}
	if s == (SetAttr{}) {
		return nil
	}
	_, err = f.m.FS.SetAttr(f.ctx, f.ino, s)
	return err
}

func (f *file) ReadDir() ([]DirEntry, error) {
	switch {
	case f.closed.Load():
		return nil, syscall.EBADF
	case !f.dir:
		return nil, syscall.ENOTDIR
	}
	return readDir(f.ctx, &loc{m: f.m, attr: Attr{Ino: f.ino}, t: f.t})
}

func (f *file) Sync() error {
	switch {
	case f.closed.Load():
		return syscall.EBADF
	case f.dir:
		if fl, ok := f.m.FS.(Flusher); ok && !f.m.ReadOnly {
			return fl.Flush(f.ctx, true)
		}
		return nil
	}
	return f.h.Sync(f.ctx)
}

func (f *file) Close() error {
	if f.closed.Swap(true) {
		return syscall.EBADF
	}
	var err error
	if f.h != nil {
		err = f.h.Close()
	}
	if f.held {
		f.m.FS.Forget(f.ino, 1)
	}
	return err
}
