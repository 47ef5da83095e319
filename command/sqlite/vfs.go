package sqlite

import (
	"errors"
	"io"
	"strings"
	"sync"
	"syscall"

	"github.com/ncruces/go-sqlite3"
	sqlitevfs "github.com/ncruces/go-sqlite3/vfs"

	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// fileSystem is what the library sees instead of an operating system: the files of the process's sandbox, with the
// process's rights. It implements the library's VFS.
type fileSystem struct{ t *tool.T }

// maxPath bounds a path, as the library does.
const maxPath = 4096

// Open implements VFS. An empty name is a temporary file that nobody else sees.
func (fs *fileSystem) Open(name string, flags sqlitevfs.OpenFlag) (sqlitevfs.File, sqlitevfs.OpenFlag, error) {
	p := fs.t.Process
	if name == "" {
		f, err := fs.temporary()
		if err != nil {
			return nil, flags, sqlite3.CANTOPEN
		}
		return newFile(p, f, flags), flags, nil
	}
	mode := syscall.O_RDONLY
	if flags&sqlitevfs.OPEN_READWRITE != 0 {
		mode = syscall.O_RDWR
	}
	if flags&sqlitevfs.OPEN_CREATE != 0 {
		mode |= syscall.O_CREAT
	}
	if flags&sqlitevfs.OPEN_EXCLUSIVE != 0 {
		mode |= syscall.O_EXCL
	}
	if flags&sqlitevfs.OPEN_NOFOLLOW != 0 {
		mode |= syscall.O_NOFOLLOW
	}
	f, err := p.Open(name, mode, 0o644)
	if err != nil && flags&sqlitevfs.OPEN_READWRITE != 0 && (errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EROFS)) {
		flags = flags&^(sqlitevfs.OPEN_READWRITE|sqlitevfs.OPEN_CREATE) | sqlitevfs.OPEN_READONLY
		f, err = p.Open(name, syscall.O_RDONLY, 0)
	}
	if err != nil {
		return nil, flags, sqlite3.CANTOPEN
	}
	if a, err := f.Attr(); err != nil || a.Mode.IsDir() {
		f.Close()
		return nil, flags, sqlite3.CANTOPEN_ISDIR
	}
	if flags&sqlitevfs.OPEN_DELETEONCLOSE != 0 {
		p.Unlink(name)
	}
	return newFile(p, f, flags), flags, nil
}

// temporary makes a file without a name.
func (fs *fileSystem) temporary() (vfs.File, error) {
	var err error
	for _, dir := range []string{fs.t.Getenv("SQLITE_TMPDIR"), fs.t.Getenv("TMPDIR"), "/var/tmp", "/tmp", "."} {
		if dir == "" {
			continue
		}
		var name string
		var f vfs.File
		if name, f, err = fs.t.TempFile(dir, "etilqs_", 0o600); err == nil {
			fs.t.Unlink(name)
			return f, nil
		}
	}
	return nil, err
}

// Delete implements VFS.
func (fs *fileSystem) Delete(name string, _ bool) error {
	switch err := fs.t.Unlink(name); {
	case err == nil:
		return nil
	case tool.IsNotExist(err):
		return sqlite3.IOERR_DELETE_NOENT
	}
	return sqlite3.IOERR_DELETE
}

// Access implements VFS.
func (fs *fileSystem) Access(name string, flags sqlitevfs.AccessFlag) (bool, error) {
	const readable, writable = 4, 2
	switch flags {
	case sqlitevfs.ACCESS_EXISTS:
		// As on Unix, an empty journal doesn't exist.
		a, err := fs.t.Stat(name)
		return err == nil && (a.Size > 0 || !a.Mode.IsRegular()), nil
	case sqlitevfs.ACCESS_READWRITE:
		return fs.t.Process.Access(name, readable|writable) == nil, nil
	}
	return fs.t.Process.Access(name, readable) == nil, nil
}

// FullPathname implements VFS.
func (fs *fileSystem) FullPathname(name string) (string, error) {
	if strings.IndexByte(name, 0) >= 0 || len(name) > maxPath {
		return "", sqlite3.CANTOPEN_FULLPATH
	}
	if !strings.HasPrefix(name, "/") {
		name = strings.TrimSuffix(fs.t.Getwd(), "/") + "/" + name
	}
	if real, err := fs.t.Realpath(name); err == nil {
		return real, nil // two names of one database find the same journal
	}
	return name, nil
}

// file is an open file of the sandbox. It implements the library's File.
type file struct {
	vfs.File
	p     *proc.Process
	key   lockKey
	level sqlitevfs.LockLevel
	flags sqlitevfs.OpenFlag
}

func newFile(p *proc.Process, f vfs.File, flags sqlitevfs.OpenFlag) *file {
	nf := &file{File: f, p: p, flags: flags, key: lockKey{sandbox: p.Sandbox()}}
	if a, err := f.Attr(); err == nil {
		nf.key.dev, nf.key.ino = a.Dev, a.Ino
	}
	return nf
}

// Close implements File.
func (f *file) Close() error {
	f.Unlock(sqlitevfs.LOCK_NONE)
	return f.File.Close()
}

// ReadAt implements File.
func (f *file) ReadAt(b []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(b, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, sqlite3.IOERR_READ
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements File.
func (f *file) WriteAt(b []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(b, off)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return n, sqlite3.FULL
	case err != nil:
		return n, sqlite3.IOERR_WRITE
	}
	return n, nil
}

// Truncate implements File.
func (f *file) Truncate(size int64) error {
	if err := f.File.SetAttr(vfs.SetAttr{Size: &size}); err != nil {
		return sqlite3.IOERR_TRUNCATE
	}
	return nil
}

// Sync implements File.
func (f *file) Sync(sqlitevfs.SyncFlag) error {
	if err := f.File.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return sqlite3.IOERR_FSYNC
	}
	return nil
}

// Size implements File.
func (f *file) Size() (int64, error) {
	a, err := f.File.Attr()
	if err != nil {
		return 0, sqlite3.IOERR_FSTAT
	}
	return a.Size, nil
}

// SectorSize implements File.
func (f *file) SectorSize() int { return 4096 }

// DeviceCharacteristics implements File.
func (f *file) DeviceCharacteristics() sqlitevfs.DeviceCharacteristic {
	return sqlitevfs.IOCAP_POWERSAFE_OVERWRITE | sqlitevfs.IOCAP_UNDELETABLE_WHEN_OPEN
}

// LockState implements FileLockState.
func (f *file) LockState() sqlitevfs.LockLevel { return f.level }

// lockKey names a file for its locks. A fork of a sandbox has files of its own under the same numbers.
type lockKey struct {
	sandbox *proc.Sandbox
	dev     uint64
	ino     vfs.Ino
}

// locks are the locks of all databases open in this process. Like the kernel's table that they stand for, they can only
// be one for all: connections of different processes of a sandbox have nothing else in common.
var locks = struct {
	sync.Mutex
	of map[lockKey]*fileLocks
}{of: map[lockKey]*fileLocks{}}

// fileLocks are those of one file: any number of readers, of whom one may prepare to write, and waits for the others.
type fileLocks struct {
	shared   int
	reserved *file // holds RESERVED, PENDING or EXCLUSIVE
	pending  bool  // no new readers
}

// Lock implements File.
func (f *file) Lock(level sqlitevfs.LockLevel) error {
	if f.level >= level {
		return nil
	}
	if level >= sqlitevfs.LOCK_RESERVED && f.flags&sqlitevfs.OPEN_READONLY != 0 {
		return sqlite3.IOERR_LOCK
	}
	locks.Lock()
	defer locks.Unlock()
	l := locks.of[f.key]
	if l == nil {
		l = &fileLocks{}
		locks.of[f.key] = l
	}
	switch level {
	case sqlitevfs.LOCK_SHARED:
		if l.pending {
			return sqlite3.BUSY
		}
		l.shared++
	case sqlitevfs.LOCK_RESERVED:
		if l.reserved != nil {
			return sqlite3.BUSY
		}
		l.reserved = f
	default:
		if l.reserved != nil && l.reserved != f {
			return sqlite3.BUSY
		}
		l.reserved, l.pending = f, true
		if l.shared > 1 {
			f.level = sqlitevfs.LOCK_PENDING
			return sqlite3.BUSY
		}
	}
	f.level = level
	return nil
}

// Unlock implements File.
func (f *file) Unlock(level sqlitevfs.LockLevel) error {
	if f.level <= level {
		return nil
	}
	locks.Lock()
	defer locks.Unlock()
	l := locks.of[f.key]
	if l.reserved == f {
		l.reserved, l.pending = nil, false
	}
	if level == sqlitevfs.LOCK_NONE {
		if l.shared--; l.shared == 0 {
			delete(locks.of, f.key)
		}
	}
	f.level = level
	return nil
}

// CheckReservedLock implements File.
func (f *file) CheckReservedLock() (bool, error) {
	locks.Lock()
	defer locks.Unlock()
	l := locks.of[f.key]
	return l != nil && l.reserved != nil, nil
}
