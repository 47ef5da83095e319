package volume

import (
	"context"
	"errors"
	"io"

	"agentrun.dev/vfs"
)

// maxDepth bounds the folders that copyTree goes down.
const maxDepth = 1000

// copyTree copies the entries of a directory: regular files, directories and symbolic links, with modes and times.
func copyTree(ctx context.Context, from vfs.FS, src vfs.Ino, to vfs.FS, dst vfs.Ino) error {
	return copier{from, to}.dir(ctx, src, dst, maxDepth)
}

type copier struct{ from, to vfs.FS }

func (c copier) dir(ctx context.Context, src, dst vfs.Ino, depth int) error {
	if depth == 0 {
		return errors.New("folders are nested too deeply")
	}
	list, err := c.from.ReadDir(ctx, src)
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		a, err := c.from.Lookup(ctx, src, e.Name)
		if err != nil {
			continue // it went meanwhile
		}
		err = c.entry(ctx, a, e.Name, dst, depth)
		c.from.Forget(a.Ino, 1)
		if err != nil {
			return err
		}
	}
	return nil
}

func (c copier) entry(ctx context.Context, a vfs.Attr, name string, dst vfs.Ino, depth int) error {
	cred := vfs.Cred{UID: a.UID, GID: a.GID}
	perm := a.Mode & vfs.ModePerm
	var n vfs.Attr
	var err error
	switch {
	case a.Mode.IsDir():
		if n, err = c.to.Mkdir(ctx, dst, name, perm, cred); err == nil {
			err = c.dir(ctx, a.Ino, n.Ino, depth-1)
		}
	case a.Mode.IsRegular():
		if n, err = c.to.Create(ctx, dst, name, perm, cred); err == nil {
			err = c.bytes(ctx, a.Ino, n.Ino)
		}
	case a.Mode.IsSymlink():
		var target string
		if target, err = c.from.Readlink(ctx, a.Ino); err == nil {
			n, err = c.to.Symlink(ctx, dst, name, target, cred)
		}
	default:
		return nil // sockets and devices of a host mean nothing elsewhere
	}
	if err != nil {
		return err
	}
	defer c.to.Forget(n.Ino, 1)
	_, err = c.to.SetAttr(ctx, n.Ino, vfs.SetAttr{Atime: &a.Atime, Mtime: &a.Mtime})
	return err
}

func (c copier) bytes(ctx context.Context, src, dst vfs.Ino) (err error) {
	r, err := c.from.Open(ctx, src, vfs.O_RDONLY)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := c.to.Open(ctx, dst, vfs.O_WRONLY)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	buf := make([]byte, 64<<10)
	for off := int64(0); ; {
		n, err := r.ReadAt(buf, off)
		if n > 0 {
			if _, err := w.WriteAt(buf[:n], off); err != nil {
				return err
			}
			off += int64(n)
		}
		if err == io.EOF || n == 0 && err == nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
