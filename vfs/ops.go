package vfs

import (
	"context"
	"errors"
	"syscall"
)

// at walks to a path and calls f there. Unless follow, a final symbolic link is the place itself.
func (ns *Namespace) at(ctx context.Context, c Cred, cwd, path string, follow bool, f func(w *walk, l *loc) error) error {
	w, err := ns.begin(ctx, c, cwd, path)
	defer w.end()
	if err == nil {
		err = w.run(path, follow, false)
	}
	if err != nil {
		return err
	}
	return f(w, w.top())
}

// Stat returns the attributes of what the path leads to.
func (ns *Namespace) Stat(ctx context.Context, c Cred, cwd, path string) (a Attr, err error) {
	err = ns.at(ctx, c, cwd, path, true, func(_ *walk, l *loc) error { a = l.attr; return nil })
	return a, err
}

// Lstat is Stat, but of a symbolic link itself.
func (ns *Namespace) Lstat(ctx context.Context, c Cred, cwd, path string) (a Attr, err error) {
	err = ns.at(ctx, c, cwd, path, false, func(_ *walk, l *loc) error { a = l.attr; return nil })
	return a, err
}

// Access checks for existence (mode 0) or permissions: Read, Write, Exec.
func (ns *Namespace) Access(ctx context.Context, c Cred, cwd, path string, mode Mode) error {
	if mode&^(Read|Write|Exec) != 0 {
		return syscall.EINVAL
	}
	return ns.at(ctx, c, cwd, path, true, func(_ *walk, l *loc) error {
		if mode&Write != 0 && l.m.ReadOnly && (l.attr.Mode.IsRegular() || l.attr.Mode.IsDir()) {
			return syscall.EROFS
		}
		if !c.Allows(l.attr, mode) {
			return syscall.EACCES
		}
		return nil
	})
}

// Readlink returns a symbolic link's target, or EINVAL.
func (ns *Namespace) Readlink(ctx context.Context, c Cred, cwd, path string) (target string, err error) {
	err = ns.at(ctx, c, cwd, path, false, func(_ *walk, l *loc) (err error) {
		if !l.attr.Mode.IsSymlink() {
			return syscall.EINVAL
		}
		target, err = l.m.FS.Readlink(ctx, l.attr.Ino)
		return err
	})
	return target, err
}

// Realpath returns the absolute path without symbolic links, "." and "..". Everything on it must exist.
func (ns *Namespace) Realpath(ctx context.Context, c Cred, cwd, path string) (real string, err error) {
	err = ns.at(ctx, c, cwd, path, true, func(w *walk, _ *loc) error { real = w.path(); return nil })
	return real, err
}

// ReadDir lists a directory, without "." and "..", in the filesystem's order. What is mounted in it appears.
func (ns *Namespace) ReadDir(ctx context.Context, c Cred, cwd, path string) (list []DirEntry, err error) {
	err = ns.at(ctx, c, cwd, path, true, func(_ *walk, l *loc) (err error) {
		if !l.attr.Mode.IsDir() {
			return syscall.ENOTDIR
		}
		if !c.Allows(l.attr, Read) {
			return syscall.EACCES
		}
		list, err = readDir(ctx, l)
		return err
	})
	return list, err
}

// readDir lists a directory with its mount points.
func readDir(ctx context.Context, l *loc) ([]DirEntry, error) {
	list, err := l.m.FS.ReadDir(ctx, l.attr.Ino)
	if err != nil || l.t == nil {
		return list, err
	}
	return l.t.overlay(list), nil
}

// overlay puts mount points into a listing: in place of what they hide, else at the end. On-the-way directories show only
// if nothing beneath has their name.
func (p *point) overlay(list []DirEntry) []DirEntry {
	if len(p.children) == 0 {
		return list
	}
	seen := make(map[string]bool, len(p.children))
	for i, e := range list {
		t := p.children[e.Name]
		if t == nil {
			continue
		}
		seen[e.Name] = true
		if t.m != nil || !e.Mode.IsDir() {
			list[i] = t.entry()
		}
	}
	for _, t := range p.sorted() {
		if !seen[t.name] {
			list = append(list, t.entry())
		}
	}
	return list
}

func (p *point) entry() DirEntry {
	m := p.m
	if m == nil {
		m = p.virtual
	}
	return DirEntry{Name: p.name, Ino: m.FS.Root(), Mode: ModeDir}
}

// StatFS describes the filesystem that holds the path.
func (ns *Namespace) StatFS(ctx context.Context, c Cred, cwd, path string) (st StatFS, err error) {
	err = ns.at(ctx, c, cwd, path, true, func(_ *walk, l *loc) (err error) {
		st, err = l.m.FS.StatFS(ctx)
		return err
	})
	return st, err
}

// SetAttr changes mode, owner, size or times, of a symbolic link itself unless follow.
func (ns *Namespace) SetAttr(ctx context.Context, c Cred, cwd, path string, s SetAttr, follow bool) error {
	return ns.at(ctx, c, cwd, path, follow, func(_ *walk, l *loc) error {
		if l.m.ReadOnly {
			return syscall.EROFS
		}
		if s.Size != nil {
			switch {
			case l.attr.Mode.IsDir():
				return syscall.EISDIR
			case !l.attr.Mode.IsRegular():
				return syscall.EINVAL
			case !c.Allows(l.attr, Write):
				return syscall.EACCES
			}
			dropSetID(c, l.attr, &s)
		}
		if s.Mode != nil && l.attr.Mode.IsSymlink() {
			return syscall.EOPNOTSUPP
		}
		if err := c.checkSetAttr(l.attr, &s); err != nil {
			return err
		}
		_, err := l.m.FS.SetAttr(ctx, l.attr.Ino, s)
		return err
	})
}

// dropSetID adds to a change of contents that set-id bits go, unless root makes it.
func dropSetID(c Cred, a Attr, s *SetAttr) {
	if m := withoutSetID(a.Mode); c.UID != 0 && m != a.Mode && s.Mode == nil {
		m &= ModePerm
		s.Mode = &m
	}
}

// in walks to the directory of a path's last component, checks that the filesystem can be written, and calls f.
func (ns *Namespace) in(ctx context.Context, c Cred, cwd, path string, f func(w *walk, d *loc) error) error {
	w, err := ns.begin(ctx, c, cwd, path)
	defer w.end()
	if err == nil {
		err = w.parent(path)
	}
	if err != nil {
		return err
	}
	return f(w, w.top())
}

// vacant checks that a new name can be made in the directory where the walk stands. dirOK says that a trailing slash is
// fine, as for mkdir.
func (w *walk) vacant(dirOK bool) error {
	if w.last == "" || w.last == "." || w.last == ".." {
		return syscall.EEXIST
	}
	l, err := w.step(w.last)
	w.drop(l)
	d := w.top()
	switch {
	case err == nil:
		return syscall.EEXIST
	case !errors.Is(err, syscall.ENOENT):
		return err
	case w.slash && !dirOK:
		return syscall.ENOENT
	case d.m.ReadOnly:
		return syscall.EROFS
	case !w.c.Allows(d.attr, Write|Exec):
		return syscall.EACCES
	}
	return nil
}

// made gives back the reference that a new inode came with.
func (d *loc) made(a Attr, err error) error {
	if err == nil {
		d.m.FS.Forget(a.Ino, 1)
	}
	return err
}

// Mkdir makes a directory.
func (ns *Namespace) Mkdir(ctx context.Context, c Cred, cwd, path string, perm Mode) error {
	return ns.in(ctx, c, cwd, path, func(w *walk, d *loc) error {
		if err := w.vacant(true); err != nil {
			return err
		}
		mode, owner := c.Heir(d.attr, ModeDir|perm&(0o777|modeVTX))
		return d.made(d.m.FS.Mkdir(ctx, d.attr.Ino, w.last, mode, owner))
	})
}

// Mknod makes a FIFO, a socket, a device node (root only) or, with ModeRegular or no type, an empty file.
func (ns *Namespace) Mknod(ctx context.Context, c Cred, cwd, path string, mode Mode, rdev uint64) error {
	switch mode & ModeType {
	case ModeRegular, 0, ModeFIFO, ModeSocket, ModeChar, ModeBlock:
	case ModeDir:
		return syscall.EPERM
	default:
		return syscall.EINVAL
	}
	return ns.in(ctx, c, cwd, path, func(w *walk, d *loc) error {
		if err := w.vacant(false); err != nil {
			return err
		}
		if t := mode & ModeType; (t == ModeChar || t == ModeBlock) && c.UID != 0 {
			return syscall.EPERM
		}
		m, owner := c.Heir(d.attr, mode)
		if t := m & ModeType; t == 0 || t == ModeRegular {
			return d.touch(ctx, w.last, ModeRegular|m&ModePerm, owner)
		}
		return d.made(d.m.FS.Mknod(ctx, d.attr.Ino, w.last, m, rdev, owner))
	})
}

// touch makes an empty file and closes it: a filesystem may hold it back until then.
func (d *loc) touch(ctx context.Context, name string, mode Mode, owner Cred) error {
	a, err := d.m.FS.Create(ctx, d.attr.Ino, name, mode, owner)
	if err != nil {
		return err
	}
	defer d.m.FS.Forget(a.Ino, 1)
	h, err := d.m.FS.Open(ctx, a.Ino, O_WRONLY)
	if err != nil {
		return err
	}
	return h.Close()
}

// Symlink makes a symbolic link to target, which needn't exist.
func (ns *Namespace) Symlink(ctx context.Context, c Cred, cwd, target, path string) error {
	if err := checkPath(target); err != nil {
		return err
	}
	return ns.in(ctx, c, cwd, path, func(w *walk, d *loc) error {
		if err := w.vacant(false); err != nil {
			return err
		}
		_, owner := c.Heir(d.attr, ModeSymlink|0o777)
		return d.made(d.m.FS.Symlink(ctx, d.attr.Ino, w.last, target, owner))
	})
}

// Link makes a further name of a file. A symbolic link is not followed; directories are EPERM, and so is somebody else's
// file that the caller couldn't read and write, as Linux has it with fs.protected_hardlinks.
func (ns *Namespace) Link(ctx context.Context, c Cred, cwd, from, to string) error {
	return ns.at(ctx, c, cwd, from, false, func(_ *walk, src *loc) error {
		return ns.in(ctx, c, cwd, to, func(w *walk, d *loc) error {
			err := w.vacant(false)
			switch {
			case err != nil && !errors.Is(err, syscall.EACCES):
				return err
			case src.m != d.m:
				return syscall.EXDEV
			case !c.mayLink(src.attr):
				return syscall.EPERM
			case err != nil:
				return err
			case src.attr.Mode.IsDir():
				return syscall.EPERM
			}
			return d.made(d.m.FS.Link(ctx, src.attr.Ino, d.attr.Ino, w.last))
		})
	})
}

// Unlink takes a name of a file away; directories are EISDIR.
func (ns *Namespace) Unlink(ctx context.Context, c Cred, cwd, path string) error {
	return ns.in(ctx, c, cwd, path, func(w *walk, d *loc) error {
		if w.last == "" || w.last == "." || w.last == ".." {
			return syscall.EISDIR
		}
		if d.m.ReadOnly {
			return w.readOnly()
		}
		v, err := w.step(w.last)
		defer w.drop(v)
		switch {
		case err != nil:
			return err
		case w.slash && v.attr.Mode.IsDir():
			return syscall.EISDIR
		case w.slash:
			return syscall.ENOTDIR
		}
		if err := c.mayDelete(d.attr, v.attr); err != nil {
			return err
		}
		if v.attr.Mode.IsDir() {
			return syscall.EISDIR
		}
		return d.m.FS.Unlink(ctx, d.attr.Ino, w.last)
	})
}

// readOnly is the error of an attempt to change w.last on a read-only mount: what is missing is ENOENT all the same.
func (w *walk) readOnly() error {
	l, err := w.step(w.last)
	w.drop(l)
	if err != nil {
		return err
	}
	return syscall.EROFS
}

// Rmdir removes an empty directory. Mount points are EBUSY.
func (ns *Namespace) Rmdir(ctx context.Context, c Cred, cwd, path string) error {
	return ns.in(ctx, c, cwd, path, func(w *walk, d *loc) error {
		switch w.last {
		case "":
			return syscall.EBUSY
		case ".":
			return syscall.EINVAL
		case "..":
			return syscall.ENOTEMPTY
		}
		v, err := w.step(w.last)
		defer w.drop(v)
		if err != nil {
			return err
		}
		if v.t != nil {
			return syscall.EBUSY
		}
		if d.m.ReadOnly {
			return syscall.EROFS
		}
		if err := c.mayDelete(d.attr, v.attr); err != nil {
			return err
		}
		if !v.attr.Mode.IsDir() {
			return syscall.ENOTDIR
		}
		return d.m.FS.Rmdir(ctx, d.attr.Ino, w.last)
	})
}
