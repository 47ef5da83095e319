package vfs

import (
	"context"
	"strings"
	"syscall"
)

// Limits on extended attributes, as on Linux.
const (
	MaxXattrName  = 255
	MaxXattrValue = 64 << 10
)

// xattr walks to the path of an operation on extended attributes and checks it.
func (ns *Namespace) xattr(ctx context.Context, c Cred, cwd, path, name string, follow bool, want Mode, f func(x Xattrs, ino Ino) error) error {
	return ns.at(ctx, c, cwd, path, follow, func(_ *walk, l *loc) error {
		x, ok := l.m.FS.(Xattrs)
		if !ok {
			return syscall.EOPNOTSUPP
		}
		if want == Write && l.m.ReadOnly {
			return syscall.EROFS
		}
		if err := c.CheckXattr(l.attr, name, want); err != nil {
			return err
		}
		return f(x, l.attr.Ino)
	})
}

// CheckXattr says whether the caller may do to an extended attribute what is wanted (Read, Write), by Linux's classes: user.* goes by the file's permissions and only for files and directories, trusted.* is
// root's, security.* is read by all and written by root; others aren't kept.
func (c Cred) CheckXattr(a Attr, name string, want Mode) error {
	if name == "" || len(name) > MaxXattrName {
		return syscall.ERANGE
	}
	class, rest, _ := strings.Cut(name, ".")
	none := func(otherwise syscall.Errno) error { // reading what can't be there is ENODATA
		if want == Read {
			return syscall.ENODATA
		}
		return otherwise
	}
	switch class {
	case "user":
		if !a.Mode.IsRegular() && !a.Mode.IsDir() {
			return none(syscall.EPERM)
		}
		if want == Write && a.Mode.IsDir() && a.Mode&modeVTX != 0 && !c.owns(a) {
			return syscall.EPERM
		}
	case "trusted":
		if c.UID != 0 {
			return none(syscall.EPERM)
		}
	case "security":
		if want == Write && c.UID != 0 {
			return syscall.EPERM
		}
		return nil
	case "system":
		return syscall.EOPNOTSUPP
	}
	switch {
	case !c.Allows(a, want):
		return syscall.EACCES
	case class != "user" && class != "trusted":
		return syscall.EOPNOTSUPP
	case rest == "":
		return syscall.EINVAL
	}
	return nil
}

// GetXattr returns an extended attribute, or ENODATA; EOPNOTSUPP where the filesystem keeps none.
func (ns *Namespace) GetXattr(ctx context.Context, c Cred, cwd, path, name string, follow bool) (value []byte, err error) {
	err = ns.xattr(ctx, c, cwd, path, name, follow, Read, func(x Xattrs, ino Ino) (err error) {
		value, err = x.GetXattr(ctx, ino, name)
		return err
	})
	return value, err
}

// SetXattr sets an extended attribute. flags: XattrCreate, XattrReplace.
func (ns *Namespace) SetXattr(ctx context.Context, c Cred, cwd, path, name string, value []byte, flags int, follow bool) error {
	if flags&^(XattrCreate|XattrReplace) != 0 || flags == XattrCreate|XattrReplace {
		return syscall.EINVAL
	}
	if len(value) > MaxXattrValue {
		return syscall.E2BIG
	}
	return ns.xattr(ctx, c, cwd, path, name, follow, Write, func(x Xattrs, ino Ino) error {
		return x.SetXattr(ctx, ino, name, value, flags)
	})
}

// RemoveXattr removes an extended attribute, or returns ENODATA.
func (ns *Namespace) RemoveXattr(ctx context.Context, c Cred, cwd, path, name string, follow bool) error {
	return ns.xattr(ctx, c, cwd, path, name, follow, Write, func(x Xattrs, ino Ino) error {
		return x.RemoveXattr(ctx, ino, name)
	})
}

// ListXattr returns the names of the extended attributes that the caller may know of, in order.
func (ns *Namespace) ListXattr(ctx context.Context, c Cred, cwd, path string, follow bool) (names []string, err error) {
	err = ns.at(ctx, c, cwd, path, follow, func(_ *walk, l *loc) error {
		x, ok := l.m.FS.(Xattrs)
		if !ok {
			return syscall.EOPNOTSUPP
		}
		all, err := x.ListXattr(ctx, l.attr.Ino)
		for _, n := range all {
			if c.UID == 0 || !strings.HasPrefix(n, "trusted.") {
				names = append(names, n)
			}
		}
		return err
	})
	return names, err
}
