// Package vfs is the filesystem of sandboxes: inodes and errnos, whatever lies beneath.
//
// A FS is one filesystem of inodes: a bucket, a folder of the host, a synthetic tree. A Namespace is what a sandbox
// sees: filesystems mounted into one tree, in which paths are resolved. A File is an open file. Errors are
// syscall.Errno, wrapped or bare, as a kernel would return them; Strerror words them as the C library does.
package vfs

import (
	"context"
	"io"
	"syscall"
	"time"
)

// Limits, as on Linux; exceeding one is ENAMETOOLONG or ELOOP.
const (
	MaxName     = 255
	MaxPath     = 4096
	MaxSymlinks = 40
)

// Ino is an inode's number within its FS.
type Ino uint64

// Mode is st_mode: the type in S_IFMT's bits, and the permissions with set-id and sticky bits below.
type Mode uint32

// File types and their mask.
const (
	ModeType    Mode = syscall.S_IFMT
	ModeDir     Mode = syscall.S_IFDIR
	ModeRegular Mode = syscall.S_IFREG
	ModeSymlink Mode = syscall.S_IFLNK
	ModeFIFO    Mode = syscall.S_IFIFO
	ModeSocket  Mode = syscall.S_IFSOCK
	ModeChar    Mode = syscall.S_IFCHR
	ModeBlock   Mode = syscall.S_IFBLK
	ModePerm    Mode = 0o7777
)

// IsDir and the others tell the type.
func (m Mode) IsDir() bool     { return m&ModeType == ModeDir }
func (m Mode) IsRegular() bool { return m&ModeType == ModeRegular }
func (m Mode) IsSymlink() bool { return m&ModeType == ModeSymlink }

// Attr is what stat returns. Blocks are of 512 bytes.
type Attr struct {
	Dev                 uint64 // of the mount; set by the Namespace
	Ino                 Ino
	Mode                Mode
	Nlink, UID, GID     uint32
	Rdev                uint64
	Size, Blocks        int64
	Atime, Mtime, Ctime time.Time
}

// SetAttr changes those attributes that are set.
type SetAttr struct {
	Mode         *Mode // permission bits only
	UID, GID     *uint32
	Size         *int64
	Atime, Mtime *time.Time
	// AtimeNow and MtimeNow set a time to the present, which needs only permission to write; an explicit time needs ownership.
	AtimeNow, MtimeNow bool
}

// DirEntry is one name in a directory. Only Mode's type bits are set.
type DirEntry struct {
	Name string
	Ino  Ino
	Mode Mode
}

// Cred is in whose name an operation happens. UID 0 is root: it passes every check but that of executing what nobody may.
type Cred struct {
	UID, GID uint32
	Groups   []uint32
	Umask    Mode
}

// FS is one filesystem. A directory's entries are named without slashes; "." and ".." never reach an FS. Permissions
// are checked by the Namespace, so an FS only stores them: a new inode gets the mode as given (the umask is applied
// already) and belongs to c.UID and c.GID. All methods may be called concurrently.
//
// Each Attr that Lookup, Create, Mknod, Mkdir, Symlink and Link return is a reference to its inode, which stays valid,
// even if unlinked, until as many are given back with Forget; so does one with an open Handle. The root is always valid.
// An inode that is no longer known is ESTALE.
type FS interface {
	Root() Ino
	Lookup(ctx context.Context, dir Ino, name string) (Attr, error)
	GetAttr(ctx context.Context, ino Ino) (Attr, error)
	SetAttr(ctx context.Context, ino Ino, s SetAttr) (Attr, error)
	// Create makes a regular file, exclusively: an existing name is EEXIST.
	Create(ctx context.Context, dir Ino, name string, mode Mode, c Cred) (Attr, error)
	// Mknod makes a FIFO, socket or device node; one that can't be kept is EPERM.
	Mknod(ctx context.Context, dir Ino, name string, mode Mode, rdev uint64, c Cred) (Attr, error)
	Mkdir(ctx context.Context, dir Ino, name string, mode Mode, c Cred) (Attr, error)
	Symlink(ctx context.Context, dir Ino, name, target string, c Cred) (Attr, error)
	Readlink(ctx context.Context, ino Ino) (string, error)
	Link(ctx context.Context, ino Ino, dir Ino, name string) (Attr, error)
	Unlink(ctx context.Context, dir Ino, name string) error
	Rmdir(ctx context.Context, dir Ino, name string) error
	// Rename replaces atomically. flags: RenameNoReplace, RenameExchange.
	Rename(ctx context.Context, dir Ino, name string, newDir Ino, newName string, flags uint32) error
	// ReadDir lists a directory in a stable order, without "." and "..".
	ReadDir(ctx context.Context, dir Ino) ([]DirEntry, error)
	// Open opens a regular file, symbolic links already followed. flags are O_RDONLY, O_WRONLY, O_RDWR, O_APPEND, O_TRUNC.
	Open(ctx context.Context, ino Ino, flags int) (Handle, error)
	StatFS(ctx context.Context) (StatFS, error)
	// Forget gives n references to ino back, as FUSE's FORGET does.
	Forget(ino Ino, n uint64)
}

// Special is implemented by filesystems whose files aren't all plain bytes, such as devices and the generated files of
// /proc. OpenSpecial is asked first, for any inode but directories and symbolic links; ok is false where Open shall serve.
type Special interface {
	OpenSpecial(ctx context.Context, ino Ino, flags int, c Cred) (f File, ok bool, err error)
}

// Holder is implemented by filesystems whose clones know the inodes of the original, for whoever holds references by number.
type Holder interface {
	// Hold takes n more references to an inode that is known; ESTALE.
	Hold(ino Ino, n uint64) error
}

// Flusher is implemented by filesystems that hold back writes. Flush makes all of them visible beneath, as closing every
// file would; with durable set they are durable too.
type Flusher interface {
	Flush(ctx context.Context, durable bool) error
}

// Xattrs is implemented by filesystems with extended attributes. flags: XattrCreate, XattrReplace. A missing one is ENODATA.
type Xattrs interface {
	GetXattr(ctx context.Context, ino Ino, name string) ([]byte, error)
	SetXattr(ctx context.Context, ino Ino, name string, value []byte, flags int) error
	ListXattr(ctx context.Context, ino Ino) ([]string, error)
	RemoveXattr(ctx context.Context, ino Ino, name string) error
}

// Rename and extended-attribute flags, as in Linux.
const (
	RenameNoReplace = 1
	RenameExchange  = 2
	XattrCreate     = 1
	XattrReplace    = 2
)

// Handle is an open regular file. Writes are visible to other handles of the same FS at once; to everybody else on
// Close, and durable on Sync.
type Handle interface {
	io.ReaderAt
	io.WriterAt
	// Append writes at the end, atomically, and returns where.
	Append(p []byte) (off int64, err error)
	Truncate(size int64) error
	Attr() (Attr, error)
	Sync(ctx context.Context) error
	Close() error
}

// StatFS is what statfs returns, in blocks of BlockSize bytes.
type StatFS struct {
	Type                                  uint32
	BlockSize, Blocks, Free, Files, FFree uint64
}

// File is an open file description: what a descriptor refers to. Reads and writes move one shared offset. Files that
// aren't regular (pipes, terminals, devices) return ESPIPE from what needs an offset. Read returns 0, io.EOF at the end.
type File interface {
	io.Reader
	io.Writer
	io.ReaderAt
	io.WriterAt
	io.Seeker
	io.Closer
	Attr() (Attr, error)
	SetAttr(s SetAttr) error // fchmod, fchown, futimens, ftruncate
	ReadDir() ([]DirEntry, error)
	Sync() error
	Flags() int // O_RDONLY …, O_APPEND
}
