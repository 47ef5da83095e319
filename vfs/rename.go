package vfs

import (
	"context"
	"errors"
	"syscall"
)

// Rename moves from to to, replacing it atomically. flags: RenameNoReplace, RenameExchange. Across mounts it is EXDEV; a
// mount point, or a directory on the way to one, is EBUSY.
func (ns *Namespace) Rename(ctx context.Context, c Cred, cwd, from, to string, flags uint32) error {
	if flags&^(RenameNoReplace|RenameExchange) != 0 || flags == RenameNoReplace|RenameExchange {
		return syscall.EINVAL
	}
	return ns.in(ctx, c, cwd, from, func(src *walk, sd *loc) error {
		return ns.in(ctx, c, cwd, to, func(dst *walk, dd *loc) error {
			return rename(src, dst, sd, dd, flags)
		})
	})
}

func plain(name string) bool { return name != "" && name != "." && name != ".." }

// rename checks in the kernel's order, so that errors come out the same.
func rename(src, dst *walk, sd, dd *loc, flags uint32) error {
	switch {
	case sd.m != dd.m:
		return syscall.EXDEV
	case !plain(src.last):
		return syscall.EBUSY
	case !plain(dst.last) && flags&RenameNoReplace != 0:
		return syscall.EEXIST
	case !plain(dst.last):
		return syscall.EBUSY
	case sd.m.ReadOnly:
		return syscall.EROFS
	}
	old, err := src.step(src.last)
	defer src.drop(old)
	if err != nil {
		return err
	}
	target, err := dst.step(dst.last)
	defer dst.drop(target)
	exists := err == nil
	if err != nil && !errors.Is(err, syscall.ENOENT) {
		return err
	}
	switch dir := old.attr.Mode.IsDir(); {
	case exists && flags&RenameNoReplace != 0:
		return syscall.EEXIST
	case !exists && flags&RenameExchange != 0:
		return syscall.ENOENT
	case flags&RenameExchange != 0 && dst.slash && !target.attr.Mode.IsDir():
		return syscall.ENOTDIR
	case !dir && (src.slash || flags&RenameExchange == 0 && dst.slash):
		return syscall.ENOTDIR
	case dir && dst.through(old):
		return syscall.EINVAL
	case exists && target.attr.Mode.IsDir() && src.through(target):
		if flags&RenameExchange != 0 {
			return syscall.EINVAL
		}
		return syscall.ENOTEMPTY
	}
	return renameChecked(src, dst, old, target, exists, flags)
}

// through reports whether the walk's directory is, or lies beneath, a directory.
func (w *walk) through(d loc) bool {
	for i := range w.stack {
		if l := &w.stack[i]; l.m == d.m && l.attr.Ino == d.attr.Ino {
			return true
		}
	}
	return false
}

// renameChecked is the part of rename that follows lookup: permissions and kinds.
func renameChecked(src, dst *walk, old, target loc, exists bool, flags uint32) error {
	sd, dd, c := src.top(), dst.top(), src.c
	if exists && old.m == target.m && old.attr.Ino == target.attr.Ino {
		return nil
	}
	if err := c.mayDelete(sd.attr, old.attr); err != nil {
		return err
	}
	dir := old.attr.Mode.IsDir()
	moved := sd.attr.Ino != dd.attr.Ino
	if !exists {
		if !c.Allows(dd.attr, Write|Exec) {
			return syscall.EACCES
		}
	} else {
		if err := c.mayDelete(dd.attr, target.attr); err != nil {
			return err
		}
		switch tdir := target.attr.Mode.IsDir(); {
		case flags&RenameExchange != 0:
			if tdir && moved && !c.Allows(target.attr, Write) {
				return syscall.EACCES
			}
		case dir && !tdir:
			return syscall.ENOTDIR
		case !dir && tdir:
			return syscall.EISDIR
		}
	}
	if dir && moved && !c.Allows(old.attr, Write) { // its ".." changes
		return syscall.EACCES
	}
	if old.t != nil || target.t != nil {
		return syscall.EBUSY
	}
	return sd.m.FS.Rename(src.ctx, sd.attr.Ino, src.last, dd.attr.Ino, dst.last, flags)
}
