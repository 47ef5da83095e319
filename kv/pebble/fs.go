package pebble

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// retryPause slows the background work that Pebble repeats at once when it fails: without it a full disk would cost a
// whole processor.
const retryPause = 5 * time.Millisecond

// walSuffix is how the names of Pebble's write-ahead logs end.
const walSuffix = ".log"

// fenceFS stands between Pebble and the disk.
//
// Pebble can't bear an error of its write-ahead log: it exits, or panics in a way that nobody can recover from. So it
// never sees one. The error poisons the store, which then acknowledges nothing any more, and Pebble is told that all
// went well.
//
// Poison shuts the fence. From then on nothing reaches the disk: writes are swallowed, with success as the answer, so
// that Pebble can be closed in good order. What it still does in the background can't touch the directory, which
// another store may have opened meanwhile.
type fenceFS struct {
	vfs.FS
	*fence
}

// fence is held for reading during each write, so that shut returns only when no write is under way.
type fence struct {
	poison func(error)

	mu   sync.RWMutex
	down bool
}

func (f *fence) shut() {
	f.mu.Lock()
	f.down = true
	f.mu.Unlock()
}

func (f *fence) isDown() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.down
}

// pass runs a write unless the fence is shut. The error of a vital one is poison; after another it pauses.
func (f *fence) pass(vital bool, write func() error) error {
	f.mu.RLock()
	if f.down {
		f.mu.RUnlock()
		if !vital {
			time.Sleep(retryPause) // a flush never comes to an end any more, and Pebble tries again at once
		}
		return nil
	}
	err := write()
	f.mu.RUnlock()
	switch {
	case err == nil:
		return nil
	case vital:
		f.poison(err)
		return nil
	case !errors.Is(err, os.ErrNotExist):
		time.Sleep(retryPause)
	}
	return err
}

// file opens a file for writing. Behind a shut fence, also one that its own error has shut, it is a sink.
func (f *fence) file(name string, open func() (vfs.File, error)) (vfs.File, error) {
	file := &fenceFile{fence: f, vital: strings.HasSuffix(name, walSuffix)}
	err := f.pass(file.vital, func() (err error) {
		file.File, err = open()
		return err
	})
	if err != nil {
		return nil, err
	}
	if file.File == nil {
		file.File = sink{}
	}
	return file, nil
}

// Lock gives Pebble a lock on nothing: the store holds the directory's.
func (f *fenceFS) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

func (f *fenceFS) Unwrap() vfs.FS { return f.FS }

func (f *fenceFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.file(name, func() (vfs.File, error) { return f.FS.Create(name, c) })
}

func (f *fenceFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return f.file(name, func() (vfs.File, error) { return f.FS.OpenReadWrite(name, c, opts...) })
}

func (f *fenceFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.file(name, func() (vfs.File, error) { return f.FS.ReuseForWrite(old, name, c) })
}

// OpenDir opens a directory for syncing, which the creation of a log needs too.
func (f *fenceFS) OpenDir(name string) (vfs.File, error) {
	d, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &fenceFile{File: d, fence: f.fence, vital: true}, nil
}

func (f *fenceFS) Link(old, name string) error {
	return f.pass(false, func() error { return f.FS.Link(old, name) })
}

func (f *fenceFS) Remove(name string) error {
	return f.pass(false, func() error { return f.FS.Remove(name) })
}

func (f *fenceFS) RemoveAll(name string) error {
	return f.pass(false, func() error { return f.FS.RemoveAll(name) })
}

func (f *fenceFS) Rename(old, name string) error {
	return f.pass(false, func() error { return f.FS.Rename(old, name) })
}

func (f *fenceFS) MkdirAll(dir string, perm os.FileMode) error {
	return f.pass(false, func() error { return f.FS.MkdirAll(dir, perm) })
}

type fenceFile struct {
	vfs.File
	*fence
	vital bool
}

func (f *fenceFile) Write(p []byte) (int, error) {
	if err := f.pass(f.vital, func() error { _, err := f.File.Write(p); return err }); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f *fenceFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.pass(f.vital, func() error { _, err := f.File.WriteAt(p, off); return err }); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f *fenceFile) Sync() error { return f.pass(f.vital, f.File.Sync) }

func (f *fenceFile) SyncData() error { return f.pass(f.vital, f.File.SyncData) }

func (f *fenceFile) SyncTo(n int64) (full bool, err error) {
	err = f.pass(f.vital, func() error { full, err = f.File.SyncTo(n); return err })
	return full, err
}

// Preallocate is advice: a disk without room for it may still have room for what will really be written.
func (f *fenceFile) Preallocate(off, n int64) error {
	if f.isDown() {
		return nil
	}
	if err := f.File.Preallocate(off, n); err != nil && !vfs.IsNoSpaceError(err) {
		return f.pass(f.vital, func() error { return err })
	}
	return nil
}

// Stat is asked for a log that is used again.
func (f *fenceFile) Stat() (vfs.FileInfo, error) {
	info, err := f.File.Stat()
	if err != nil && f.vital {
		f.poison(err)
		return sinkInfo{}, nil
	}
	return info, err
}

// Close closes the file behind a shut fence too.
func (f *fenceFile) Close() error {
	err := f.File.Close()
	if err == nil || f.isDown() {
		return nil
	}
	return f.pass(f.vital, func() error { return err })
}

// sink is a file that takes everything and keeps nothing.
type sink struct{ vfs.File }

func (sink) Close() error                           { return nil }
func (sink) Write(p []byte) (int, error)            { return len(p), nil }
func (sink) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
func (sink) Read([]byte) (int, error)               { return 0, io.EOF }
func (sink) ReadAt([]byte, int64) (int, error)      { return 0, io.EOF }
func (sink) Preallocate(_, _ int64) error           { return nil }
func (sink) Stat() (vfs.FileInfo, error)            { return sinkInfo{}, nil }
func (sink) Sync() error                            { return nil }
func (sink) SyncTo(int64) (bool, error)             { return false, nil }
func (sink) SyncData() error                        { return nil }
func (sink) Prefetch(_, _ int64) error              { return nil }
func (sink) Fd() uintptr                            { return vfs.InvalidFd }

// sinkInfo describes a sink: an empty file.
type sinkInfo struct{}

func (sinkInfo) Name() string           { return "" }
func (sinkInfo) Size() int64            { return 0 }
func (sinkInfo) Mode() os.FileMode      { return 0 }
func (sinkInfo) ModTime() time.Time     { return time.Time{} }
func (sinkInfo) IsDir() bool            { return false }
func (sinkInfo) Sys() any               { return nil }
func (sinkInfo) DeviceID() vfs.DeviceID { return vfs.DeviceID{} }
