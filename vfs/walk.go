package vfs

import (
	"context"
	"errors"
	"strings"
	"syscall"
)

// loc is one resolved place on the way from the root.
type loc struct {
	m    *mount
	attr Attr
	t    *point // of the mount tree; nil where nothing is mounted here or beneath
	name string
	held bool // a reference to attr.Ino is ours
}

// walk resolves one path. Its stack leads from the root to where it stands, so that ".." needs nothing of the filesystems.
type walk struct {
	ns    *Namespace
	ctx   context.Context
	c     Cred
	stack []loc
	free  bool // search permission isn't checked
	links int
	// After parent: the last component, which wasn't looked up, and whether a slash follows it.
	last  string
	slash bool
}

// maxDepth bounds the stack: a path of MaxPath bytes, each link expanding to another one.
const maxDepth = MaxPath * 4

// begin starts a walk at the working directory. end must follow, even after an error.
func (ns *Namespace) begin(ctx context.Context, c Cred, cwd, path string) (*walk, error) {
	w := ns.walks.Get().(*walk)
	w.ns, w.ctx, w.c = ns, ctx, c
	if err := ctx.Err(); err != nil {
		return w, syscall.EINTR
	}
	if err := w.toRoot(); err != nil {
		return w, err
	}
	if cwd == "" || cwd == "/" || strings.HasPrefix(path, "/") {
		return w, nil
	}
	w.free = true // whoever stands in a directory needn't be able to come there again
	err := w.follow(cwd)
	w.free, w.links = false, 0
	return w, err
}

// end gives all references back.
func (w *walk) end() {
	w.pop(0)
	stack := w.stack
	if cap(stack) > 64 {
		stack = nil
	}
	ns := w.ns
	*w = walk{stack: stack[:0]}
	ns.walks.Put(w)
}

// pop shortens the stack to n places.
func (w *walk) pop(n int) {
	for len(w.stack) > n {
		last := len(w.stack) - 1
		if l := &w.stack[last]; l.held {
			l.m.FS.Forget(l.attr.Ino, 1)
		}
		w.stack[last] = loc{}
		w.stack = w.stack[:last]
	}
}

func (w *walk) top() *loc { return &w.stack[len(w.stack)-1] }

func (w *walk) toRoot() error {
	w.pop(0)
	t := w.ns.root.Load()
	l, err := w.mounted(t.m, t)
	if err == nil {
		w.stack = append(w.stack, l)
	}
	return err
}

// mounted is the root of a mounted filesystem.
func (w *walk) mounted(m *mount, t *point) (loc, error) {
	a, err := m.FS.GetAttr(w.ctx, m.FS.Root())
	a.Dev = m.dev
	return loc{m: m, attr: a, t: t, name: t.name}, err
}

// step looks one name up in the directory where the walk stands, without moving there.
func (w *walk) step(name string) (loc, error) {
	d := w.top()
	if err := w.search(d); err != nil {
		return loc{}, err
	}
	if len(name) > MaxName {
		return loc{}, syscall.ENAMETOOLONG
	}
	t := d.t.child(name)
	if t != nil && t.m != nil {
		return w.mounted(t.m, t)
	}
	a, err := d.m.FS.Lookup(w.ctx, d.attr.Ino, name)
	if t != nil && (errors.Is(err, syscall.ENOENT) || err == nil && !a.Mode.IsDir()) {
		if err == nil {
			d.m.FS.Forget(a.Ino, 1)
		}
		return w.mounted(t.virtual, t)
	}
	a.Dev = d.m.dev
	return loc{m: d.m, attr: a, t: t, name: name, held: err == nil}, err
}

// search checks that names can be looked up in a directory.
func (w *walk) search(d *loc) error {
	if !d.attr.Mode.IsDir() {
		return syscall.ENOTDIR
	}
	if !w.free && !w.c.Allows(d.attr, Exec) {
		return syscall.EACCES
	}
	return nil
}

func (w *walk) drop(l loc) {
	if l.held {
		l.m.FS.Forget(l.attr.Ino, 1)
	}
}

// checkPath refuses what no path can be.
func checkPath(path string) error {
	switch {
	case path == "":
		return syscall.ENOENT
	case len(path) >= MaxPath: // the limit counts a terminating zero byte
		return syscall.ENAMETOOLONG
	case strings.IndexByte(path, 0) >= 0:
		return syscall.EINVAL
	}
	return nil
}

// follow walks to what the path leads to, through all symbolic links.
func (w *walk) follow(path string) error { return w.run(path, true, false) }

// nofollow walks to the path itself, should that be a symbolic link.
func (w *walk) nofollow(path string) error { return w.run(path, false, false) }

// parent walks to the directory that holds the path's last component, which is left in last: "" for the root, "." or "..",
// or a name.
func (w *walk) parent(path string) error { return w.run(path, false, true) }

func (w *walk) run(path string, follow, parent bool) error {
	if err := checkPath(path); err != nil {
		return err
	}
	w.last, w.slash = "", false
	if path[0] == '/' {
		if err := w.toRoot(); err != nil {
			return err
		}
	}
	rest := strings.TrimLeft(path, "/")
	for rest != "" {
		name, after := rest, ""
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			name, after = rest[:i], rest[i:]
		}
		tail := strings.TrimLeft(after, "/")
		if parent && tail == "" {
			w.last, w.slash = name, after != ""
			return w.search(w.top())
		}
		if name == "." || name == ".." {
			if err := w.search(w.top()); err != nil {
				return err
			}
			if name == ".." && len(w.stack) > 1 {
				w.pop(len(w.stack) - 1)
			}
			rest = tail
			continue
		}
		l, err := w.step(name)
		if err != nil {
			return err
		}
		if l.attr.Mode.IsSymlink() && (follow || after != "") {
			if rest, err = w.expand(l, after); err != nil {
				return err
			}
			continue
		}
		if after != "" && !l.attr.Mode.IsDir() {
			w.drop(l)
			return syscall.ENOTDIR
		}
		if len(w.stack) >= maxDepth {
			w.drop(l)
			return syscall.ENAMETOOLONG
		}
		w.stack = append(w.stack, l)
		rest = tail
	}
	return nil
}

// expand puts a symbolic link's target before the rest of the path, and moves to the root if it is absolute.
func (w *walk) expand(l loc, after string) (rest string, err error) {
	defer w.drop(l)
	if w.links++; w.links > MaxSymlinks {
		return "", syscall.ELOOP
	}
	target, err := l.m.FS.Readlink(w.ctx, l.attr.Ino)
	if err != nil {
		return "", err
	}
	if err := checkPath(target); err != nil {
		return "", err
	}
	if target[0] == '/' {
		if err := w.toRoot(); err != nil {
			return "", err
		}
	}
	return strings.TrimLeft(target+after, "/"), nil
}

// path returns the absolute path of where the walk stands.
func (w *walk) path() string {
	if len(w.stack) == 1 {
		return "/"
	}
	var b strings.Builder
	for _, l := range w.stack[1:] {
		b.WriteByte('/')
		b.WriteString(l.name)
	}
	return b.String()
}
