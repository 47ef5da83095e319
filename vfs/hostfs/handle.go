package hostfs

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"agentrun.dev/vfs"
)

// Open implements vfs.FS.
func (f *FS) Open(_ context.Context, ino vfs.Ino, flags int) (h vfs.Handle, err error) {
	write := flags&vfs.O_ACCMODE != vfs.O_RDONLY || flags&vfs.O_TRUNC != 0
	if write && f.opt.ReadOnly {
		return nil, syscall.EROFS
	}
	err = f.use(ino, func(n *node) error {
		switch n.mode {
		case vfs.ModeRegular:
		case vfs.ModeDir:
			return syscall.EISDIR
		default:
			return syscall.EACCES
		}
		f.mu.Lock()
		if f.opens >= f.opt.Files {
			f.mu.Unlock()
			return syscall.ENFILE
		}
		f.opens++
		n.opens++
		n.refs++ // the inode stays known while it is open
		file := n.fresh
		n.fresh = nil
		f.mu.Unlock()
		if file != nil && flags&(vfs.O_APPEND|vfs.O_TRUNC) != 0 {
			file.Close()
			file = nil
		}
		if file == nil {
			fd, err := unix.Open(n.path(), flags&(vfs.O_ACCMODE|vfs.O_APPEND|vfs.O_TRUNC)|unix.O_CLOEXEC, 0)
			if err != nil {
				f.closed(n)
				return err
			}
			file = os.NewFile(uintptr(fd), "")
		}
		h = &handle{f: f, n: n, file: file, append: flags&vfs.O_APPEND != 0}
		return nil
	})
	return h, err
}

// handle is an open file of the host.
type handle struct {
	f      *FS
	n      *node
	file   *os.File
	append bool
	mu     sync.Mutex // serialises appending
	once   sync.Once
}

func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	n, err := h.file.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		return n, io.EOF
	}
	return n, bare(err)
}

func (h *handle) WriteAt(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) { // os.File refuses WriteAt with O_APPEND, where we never come
		n, err := h.file.WriteAt(p[done:], off+int64(done))
		if done += n; err != nil {
			return done, bare(err)
		}
	}
	return done, nil
}

func (h *handle) Append(p []byte) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.append {
		off, err := h.file.Seek(0, io.SeekEnd)
		if err != nil {
			return 0, bare(err)
		}
		_, err = h.WriteAt(p, off)
		return off, err
	}
	if _, err := h.file.Write(p); err != nil { // the host moves to the end, whoever else appends
		return 0, bare(err)
	}
	end, err := h.file.Seek(0, io.SeekCurrent)
	return end - int64(len(p)), bare(err)
}

func (h *handle) Truncate(size int64) error { return bare(h.file.Truncate(size)) }

func (h *handle) Attr() (vfs.Attr, error) { return h.f.GetAttr(context.Background(), h.n.ino) }

func (h *handle) Sync(context.Context) error { return bare(h.file.Sync()) }

func (h *handle) Close() error {
	err := error(syscall.EBADF)
	h.once.Do(func() {
		err = bare(h.file.Close())
		h.f.closed(h.n)
	})
	return err
}

// xattr allows user.* attributes: others mean something to the host, unless the files are real.
func (f *FS) xattr(ino vfs.Ino, name string, do func(path string) error) error {
	return f.use(ino, func(n *node) error {
		if !f.opt.Real && !strings.HasPrefix(name, "user.") || n.mode == vfs.ModeSymlink {
			return syscall.EOPNOTSUPP
		}
		return do(n.path())
	})
}

// GetXattr implements vfs.Xattrs.
func (f *FS) GetXattr(_ context.Context, ino vfs.Ino, name string) (v []byte, err error) {
	err = f.xattr(ino, name, func(path string) error {
		b := make([]byte, vfs.MaxXattrValue)
		n, err := unix.Getxattr(path, name, b)
		v = slices.Clip(b[:max(0, n)])
		return err
	})
	return v, err
}

// SetXattr implements vfs.Xattrs.
func (f *FS) SetXattr(_ context.Context, ino vfs.Ino, name string, value []byte, flags int) error {
	if f.opt.ReadOnly {
		return syscall.EROFS
	}
	return f.xattr(ino, name, func(path string) error { return unix.Setxattr(path, name, value, flags) })
}

// RemoveXattr implements vfs.Xattrs.
func (f *FS) RemoveXattr(_ context.Context, ino vfs.Ino, name string) error {
	if f.opt.ReadOnly {
		return syscall.EROFS
	}
	return f.xattr(ino, name, func(path string) error { return unix.Removexattr(path, name) })
}

// ListXattr implements vfs.Xattrs.
func (f *FS) ListXattr(_ context.Context, ino vfs.Ino) (names []string, err error) {
	err = f.use(ino, func(n *node) error {
		if n.mode == vfs.ModeSymlink {
			return nil
		}
		b := make([]byte, 64<<10)
		k, err := unix.Listxattr(n.path(), b)
		for _, name := range strings.Split(string(b[:max(0, k)]), "\x00") {
			if strings.HasPrefix(name, "user.") || f.opt.Real && name != "" {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return err
	})
	return names, err
}

var (
	_ vfs.Xattrs  = (*FS)(nil)
	_ vfs.Special = (*FS)(nil)
)
