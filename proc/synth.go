package proc

import (
	"context"
	"io"
	"sort"
	"syscall"
	"time"

	"agentrun.dev/vfs"
)

// readOnly is the part of a filesystem that refuses changes.
type readOnly struct{}

func (readOnly) SetAttr(context.Context, vfs.Ino, vfs.SetAttr) (vfs.Attr, error) {
	return vfs.Attr{}, syscall.EPERM
}
func (readOnly) Create(context.Context, vfs.Ino, string, vfs.Mode, vfs.Cred) (vfs.Attr, error) {
	return vfs.Attr{}, syscall.EROFS
}
func (readOnly) Mknod(context.Context, vfs.Ino, string, vfs.Mode, uint64, vfs.Cred) (vfs.Attr, error) {
	return vfs.Attr{}, syscall.EROFS
}
func (readOnly) Mkdir(context.Context, vfs.Ino, string, vfs.Mode, vfs.Cred) (vfs.Attr, error) {
	return vfs.Attr{}, syscall.EROFS
}
func (readOnly) Symlink(context.Context, vfs.Ino, string, string, vfs.Cred) (vfs.Attr, error) {
	return vfs.Attr{}, syscall.EROFS
}
func (readOnly) Link(context.Context, vfs.Ino, vfs.Ino, string) (vfs.Attr, error) {
	return vfs.Attr{}, syscall.EROFS
}
func (readOnly) Unlink(context.Context, vfs.Ino, string) error { return syscall.EROFS }
func (readOnly) Rmdir(context.Context, vfs.Ino, string) error  { return syscall.EROFS }
func (readOnly) Rename(context.Context, vfs.Ino, string, vfs.Ino, string, uint32) error {
	return syscall.EROFS
}
func (readOnly) StatFS(context.Context) (vfs.StatFS, error) {
	return vfs.StatFS{Type: 0x01021994, BlockSize: 4096}, nil
}
func (readOnly) Forget(vfs.Ino, uint64) {}
func (readOnly) Root() vfs.Ino          { return 1 }

// textHandle is an open file whose content was made when it was opened.
type textHandle struct {
	text []byte
	attr vfs.Attr
}

func (t *textHandle) ReadAt(b []byte, off int64) (int, error) {
	if off >= int64(len(t.text)) {
		return 0, io.EOF
	}
	n := copy(b, t.text[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}
func (t *textHandle) WriteAt([]byte, int64) (int, error) { return 0, syscall.EROFS }
func (t *textHandle) Append([]byte) (int64, error)       { return 0, syscall.EROFS }
func (t *textHandle) Truncate(int64) error               { return syscall.EROFS }
func (t *textHandle) Attr() (vfs.Attr, error)            { return t.attr, nil }
func (t *textHandle) Sync(context.Context) error         { return nil }
func (t *textHandle) Close() error                       { return nil }

// binFS is /bin: a file for each command, whose content names it. One value serves any number of sandboxes.
type binFS struct {
	readOnly
	names []string
	index map[string]int
	born  time.Time
}

// NewBin returns the filesystem for /bin: an executable file for each command.
func NewBin(c Commands) vfs.FS {
	b := &binFS{names: append([]string(nil), c.Names()...), index: make(map[string]int), born: time.Now()}
	sort.Strings(b.names)
	for i, n := range b.names {
		b.index[n] = i
	}
	return b
}

func (b *binFS) text(i int) []byte { return []byte(magic + b.names[i] + "\n") }

func (b *binFS) GetAttr(_ context.Context, ino vfs.Ino) (vfs.Attr, error) {
	a := vfs.Attr{Ino: ino, Nlink: 1, Atime: b.born, Mtime: b.born, Ctime: b.born}
	switch i := int(ino) - 2; {
	case ino == 1:
		a.Mode, a.Nlink, a.Size = vfs.ModeDir|0o755, 2, 4096
	case i >= 0 && i < len(b.names):
		a.Mode, a.Size, a.Blocks = vfs.ModeRegular|0o755, int64(len(magic)+len(b.names[i])+1), 8
	default:
		return vfs.Attr{}, syscall.ESTALE
	}
	return a, nil
}

func (b *binFS) Lookup(ctx context.Context, dir vfs.Ino, name string) (vfs.Attr, error) {
	i, ok := b.index[name]
	if dir != 1 {
		return vfs.Attr{}, syscall.ENOTDIR
	} else if !ok {
		return vfs.Attr{}, syscall.ENOENT
	}
	return b.GetAttr(ctx, vfs.Ino(i+2))
}

func (b *binFS) Readlink(context.Context, vfs.Ino) (string, error) { return "", syscall.EINVAL }

func (b *binFS) ReadDir(_ context.Context, dir vfs.Ino) ([]vfs.DirEntry, error) {
	if dir != 1 {
		return nil, syscall.ENOTDIR
	}
	out := make([]vfs.DirEntry, len(b.names))
	for i, n := range b.names {
		out[i] = vfs.DirEntry{Name: n, Ino: vfs.Ino(i + 2), Mode: vfs.ModeRegular}
	}
	return out, nil
}

func (b *binFS) Open(ctx context.Context, ino vfs.Ino, flags int) (vfs.Handle, error) {
	a, err := b.GetAttr(ctx, ino)
	switch {
	case err != nil:
		return nil, err
	case ino == 1:
		return nil, syscall.EISDIR
	case flags&syscall.O_ACCMODE != syscall.O_RDONLY:
		return nil, syscall.EROFS
	}
	return &textHandle{b.text(int(ino) - 2), a}, nil
}
