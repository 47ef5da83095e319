package memfs

import (
	"context"
	"syscall"

	"agentrun.dev/vfs"
)

// Rename implements vfs.FS.
func (f *FS) Rename(_ context.Context, dir vfs.Ino, name string, newDir vfs.Ino, newName string, flags uint32) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, n, err := f.child(dir, name)
	if err != nil {
		return err
	}
	nd, target, err := f.child(newDir, newName)
	if err != nil && err != syscall.ENOENT {
		return err
	}
	if nd.attr.Nlink == 0 {
		return syscall.ENOENT
	}
	switch {
	case target == n:
		return nil
	case target != nil && flags&vfs.RenameNoReplace != 0:
		return syscall.EEXIST
	case target == nil && flags&vfs.RenameExchange != 0:
		return syscall.ENOENT
	case n.attr.Mode.IsDir() && f.within(newDir, n.attr.Ino):
		return syscall.EINVAL
	case target != nil && target.attr.Mode.IsDir() && f.within(dir, target.attr.Ino):
		if flags&vfs.RenameExchange != 0 {
			return syscall.EINVAL
		}
		return syscall.ENOTEMPTY
	}
	if flags&vfs.RenameExchange == 0 && target != nil {
		switch {
		case n.attr.Mode.IsDir() && !target.attr.Mode.IsDir():
			return syscall.ENOTDIR
		case !n.attr.Mode.IsDir() && target.attr.Mode.IsDir():
			return syscall.EISDIR
		case len(target.children) > 0:
			return syscall.ENOTEMPTY
		}
		f.detach(nd, target, newName)
		target = nil
	}
	delete(d.children, name)
	f.place(d, nd, n, newName)
	if target != nil {
		f.place(nd, d, target, name)
	}
	f.touch(d)
	f.touch(nd)
	return nil
}

// place gives an inode a name in another directory.
func (f *FS) place(from, to, n *node, name string) {
	to.children[name] = n.attr.Ino
	n.attr.Ctime = f.opt.Now()
	if n.attr.Mode.IsDir() {
		n.parent = to.attr.Ino
		from.attr.Nlink--
		to.attr.Nlink++
	}
}

// within reports whether a directory is top or lies beneath it.
func (f *FS) within(dir, top vfs.Ino) bool {
	for dir != top {
		if dir == rootIno {
			return false
		}
		d := f.nodes[dir]
		if d == nil {
			return false
		}
		dir = d.parent
	}
	return true
}
