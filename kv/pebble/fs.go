package pebble

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"agentrun.dev/errs"
)

// retryPause slows the background work that Pebble repeats at once when it fails: without it a full or fenced disk
// would cost a whole processor.
const retryPause = 20 * time.Millisecond

// fenceFS lets nothing be written once it is shut. A store that failed may leave goroutines of Pebble behind; the
// fence makes sure that they can't touch a directory which another store may have opened meanwhile.
type fenceFS struct {
	vfs.FS
	fence *fence
}

// fence is held for reading during each write, so that shut returns only when no write is under way.
type fence struct {
	mu   sync.RWMutex
	down bool
}

func (f *fence) shut() {
	f.mu.Lock()
	f.down = true
	f.mu.Unlock()
}

// pass runs a write unless the fence is shut, and pauses after one that failed.
func (f *fence) pass(write func() error) error {
	f.mu.RLock()
	if f.down {
		f.mu.RUnlock()
		time.Sleep(retryPause)
		return errs.Msg(errs.Unavailable, "write", "", "the store has failed")
	}
	err := write()
	f.mu.RUnlock()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		time.Sleep(retryPause)
	}
	return err
}

// file opens a file for writing through the fence.
func (f *fence) file(open func() (vfs.File, error)) (file vfs.File, err error) {
	err = f.pass(func() error {
		file, err = open()
		return err
	})
	if err != nil {
		return nil, err
	}
	return &fenceFile{File: file, fence: f}, nil
}

// Lock gives Pebble a lock on nothing: the store holds the directory's.
func (f *fenceFS) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

func (f *fenceFS) Unwrap() vfs.FS { return f.FS }

func (f *fenceFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.fence.file(func() (vfs.File, error) { return f.FS.Create(name, c) })
}

func (f *fenceFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return f.fence.file(func() (vfs.File, error) { return f.FS.OpenReadWrite(name, c, opts...) })
}

func (f *fenceFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.fence.file(func() (vfs.File, error) { return f.FS.ReuseForWrite(old, name, c) })
}

func (f *fenceFS) OpenDir(name string) (vfs.File, error) {
	return f.fence.file(func() (vfs.File, error) { return f.FS.OpenDir(name) })
}

func (f *fenceFS) Link(old, name string) error {
	return f.fence.pass(func() error { return f.FS.Link(old, name) })
}

func (f *fenceFS) Remove(name string) error {
	return f.fence.pass(func() error { return f.FS.Remove(name) })
}

func (f *fenceFS) RemoveAll(name string) error {
	return f.fence.pass(func() error { return f.FS.RemoveAll(name) })
}

func (f *fenceFS) Rename(old, name string) error {
	return f.fence.pass(func() error { return f.FS.Rename(old, name) })
}

func (f *fenceFS) MkdirAll(dir string, perm os.FileMode) error {
	return f.fence.pass(func() error { return f.FS.MkdirAll(dir, perm) })
}

type fenceFile struct {
	vfs.File
	fence *fence
}

func (f *fenceFile) Write(p []byte) (n int, err error) {
	err = f.fence.pass(func() error { n, err = f.File.Write(p); return err })
	return n, err
}

func (f *fenceFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.fence.pass(func() error { n, err = f.File.WriteAt(p, off); return err })
	return n, err
}

func (f *fenceFile) Sync() error { return f.fence.pass(f.File.Sync) }

func (f *fenceFile) SyncData() error { return f.fence.pass(f.File.SyncData) }

func (f *fenceFile) SyncTo(n int64) (full bool, err error) {
	err = f.fence.pass(func() error { full, err = f.File.SyncTo(n); return err })
	return full, err
}

// Preallocate is advice: a disk without room for it may still have room for what will really be written.
func (f *fenceFile) Preallocate(off, n int64) error {
	f.fence.mu.RLock()
	defer f.fence.mu.RUnlock()
	if f.fence.down {
		return nil
	}
	if err := f.File.Preallocate(off, n); err != nil && !vfs.IsNoSpaceError(err) {
		return err
	}
	return nil
}
