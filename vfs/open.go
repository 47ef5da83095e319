package vfs

import (
	"context"
	"errors"
	"syscall"
)

// Flags that Open knows beside the access mode; others are ignored. All have Linux's values on amd64.
const (
	O_RDONLY    = syscall.O_RDONLY
	O_WRONLY    = syscall.O_WRONLY
	O_RDWR      = syscall.O_RDWR
	O_ACCMODE   = syscall.O_ACCMODE
	O_CREAT     = syscall.O_CREAT
	O_EXCL      = syscall.O_EXCL
	O_TRUNC     = syscall.O_TRUNC
	O_APPEND    = syscall.O_APPEND
	O_NONBLOCK  = syscall.O_NONBLOCK
	O_DIRECTORY = syscall.O_DIRECTORY
	O_NOFOLLOW  = syscall.O_NOFOLLOW
)

// Open opens a file or directory, creating it with perm (before the umask) if flags hold O_CREAT. The context's values, not
// its end, go to later operations on the file.
func (ns *Namespace) Open(ctx context.Context, c Cred, cwd, path string, flags int, perm Mode) (File, error) {
	if flags&O_ACCMODE == O_ACCMODE || flags&(O_CREAT|O_DIRECTORY) == O_CREAT|O_DIRECTORY {
		return nil, syscall.EINVAL
	}
	for range maxReplaced {
		if f, err := ns.open(ctx, c, cwd, path, flags, perm); err != errReplaced {
			return f, err
		}
	}
	return nil, syscall.ENOENT
}

// errReplaced is a file that was there when its name was looked up, and not any more when it was opened: another may have that name now,
// which never was without one.
var errReplaced = errors.New("the file was replaced")

// maxReplaced is how often a name is looked up whose file is replaced again and again.
const maxReplaced = 100

func (ns *Namespace) open(ctx context.Context, c Cred, cwd, path string, flags int, perm Mode) (File, error) {
	w, err := ns.begin(ctx, c, cwd, path)
	defer w.end()
	if err != nil {
		return nil, err
	}
	if flags&O_CREAT == 0 {
		if err := w.run(path, flags&O_NOFOLLOW == 0, false); err != nil {
			return nil, err
		}
		return w.open(flags, false)
	}
	return w.create(path, flags, perm)
}

// create opens path, making it where it is missing. A dangling symbolic link is followed and its target made.
func (w *walk) create(path string, flags int, perm Mode) (File, error) {
	for range 3 * MaxSymlinks {
		if err := w.parent(path); err != nil {
			return nil, err
		}
		switch {
		case !plain(w.last) && flags&O_EXCL != 0:
			return nil, syscall.EEXIST
		case !plain(w.last) || w.slash:
			return nil, syscall.EISDIR
		}
		l, err := w.step(w.last)
		switch {
		case err == nil && flags&O_EXCL != 0:
			w.drop(l)
			return nil, syscall.EEXIST
		case err == nil && l.attr.Mode.IsSymlink() && flags&O_NOFOLLOW == 0:
			if path, err = w.expand(l, ""); err != nil {
				return nil, err
			}
			if path == "" { // the link leads to the root
				return nil, syscall.EISDIR
			}
			continue
		case err == nil:
			w.stack = append(w.stack, l)
			return w.open(flags, false)
		case !errors.Is(err, syscall.ENOENT):
			return nil, err
		}
		f, err := w.createHere(flags, perm)
		if errors.Is(err, syscall.EEXIST) && flags&O_EXCL == 0 {
			path = w.last // somebody else was faster: open theirs
			continue
		}
		return f, err
	}
	return nil, syscall.ELOOP
}

// createHere makes the file w.last, which is missing.
func (w *walk) createHere(flags int, perm Mode) (File, error) {
	d := w.top()
	if d.m.ReadOnly {
		return nil, syscall.EROFS
	}
	if !w.c.Allows(d.attr, Write|Exec) {
		return nil, syscall.EACCES
	}
	mode, owner := w.c.Heir(d.attr, ModeRegular|perm&ModePerm)
	a, err := d.m.FS.Create(w.ctx, d.attr.Ino, w.last, mode, owner)
	if err != nil {
		return nil, err
	}
	a.Dev = d.m.dev
	w.stack = append(w.stack, loc{m: d.m, attr: a, name: w.last, held: true})
	return w.open(flags&^O_TRUNC, true)
}

// open opens where the walk stands. A file that was just created may be opened whatever its mode.
func (w *walk) open(flags int, created bool) (File, error) {
	l := w.top()
	want := [...]Mode{O_RDONLY: Read, O_WRONLY: Write, O_RDWR: Read | Write}[flags&O_ACCMODE]
	if flags&O_TRUNC != 0 {
		want |= Write
	}
	dir := l.attr.Mode.IsDir()
	switch {
	case flags&O_DIRECTORY != 0 && !dir:
		return nil, syscall.ENOTDIR
	case l.attr.Mode.IsSymlink():
		return nil, syscall.ELOOP
	case dir && (want&Write != 0 || flags&O_CREAT != 0):
		return nil, syscall.EISDIR
	case want&Write != 0 && l.m.ReadOnly && l.attr.Mode.IsRegular():
		return nil, syscall.EROFS
	case !created && !w.c.Allows(l.attr, want):
		return nil, syscall.EACCES
	}
	f := &file{m: l.m, t: l.t, ino: l.attr.Ino, c: w.c, flags: flags &^ (O_CREAT | O_EXCL | O_TRUNC | O_NOFOLLOW), ctx: context.WithoutCancel(w.ctx), path: w.path()}
	switch {
	case dir:
		f.dir = true
	case l.attr.Mode.IsRegular():
		special, err := f.special(w.ctx, l.attr)
		if special != nil || err != nil {
			return special, err
		}
		if flags&O_TRUNC != 0 {
			var s SetAttr
			if dropSetID(w.c, l.attr, &s); s.Mode != nil {
				if _, err := l.m.FS.SetAttr(w.ctx, f.ino, s); err != nil {
					return nil, err
				}
			}
		}
		f.h, err = l.m.FS.Open(w.ctx, f.ino, flags&(O_ACCMODE|O_TRUNC|O_APPEND))
		switch {
		case errors.Is(err, syscall.ENOENT) && !created:
			return nil, errReplaced
		case err != nil:
			return nil, err
		}
		f.checkSetID = want&Write != 0 && w.c.UID != 0
	default:
		special, err := f.special(w.ctx, l.attr)
		if special == nil && err == nil && l.m.Special != nil {
			special, err = l.m.Special(w.ctx, w.c, l.attr, flags)
		}
		if special == nil && err == nil {
			err = syscall.ENXIO
		}
		return special, err
	}
	f.held, l.held = l.held, false // the reference is the file's from now on
	return f, nil
}

// special asks the filesystem for a file of its own making.
func (f *file) special(ctx context.Context, a Attr) (File, error) {
	if s, ok := f.m.FS.(Special); ok {
		if file, ok, err := s.OpenSpecial(ctx, a.Ino, f.flags, f.c); ok || err != nil {
			return file, err
		}
	}
	return nil, nil
}

// Adopt returns the counterpart of an open file in this namespace, which is a clone of the one where f was opened: the same
// inode with the same offset and flags. What isn't a file or directory of a Namespace is EBADF.
func (ns *Namespace) Adopt(f File) (File, error) {
	old, ok := f.(*file)
	if !ok || old.closed.Load() {
		return nil, syscall.EBADF
	}
	m := ns.root.Load().find(old.m.dev)
	if m == nil {
		return nil, syscall.ESTALE
	}
	old.mu.Lock()
	defer old.mu.Unlock()
	n := &file{m: m, t: old.t, ino: old.ino, c: old.c, flags: old.flags, ctx: old.ctx, path: old.path, dir: old.dir, off: old.off, checkSetID: old.checkSetID}
	var err error
	if !n.dir {
		n.h, err = m.FS.Open(n.ctx, n.ino, n.flags&(O_ACCMODE|O_APPEND))
	} else {
		_, err = m.FS.GetAttr(n.ctx, n.ino)
	}
	if err != nil {
		return nil, err
	}
	return n, nil
}

// find returns the mount with a device number.
func (p *point) find(dev uint64) *mount {
	if p.m != nil && p.m.dev == dev {
		return p.m
	}
	if p.virtual != nil && p.virtual.dev == dev {
		return p.virtual
	}
	for _, child := range p.children {
		if m := child.find(dev); m != nil {
			return m
		}
	}
	return nil
}
