package find

import (
	"errors"
	"strings"
	"syscall"

	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// entry is a file met on the walk.
type entry struct {
	path  string // as shown
	start string // the starting point it was found under
	depth int
	kind  vfs.Mode // type bits, known without looking at the file
	attr  vfs.Attr
	known bool // attr is set
	bad   bool // attr couldn't be had
	prune bool
	dev   uint64
}

// base returns the last component.
func (e *entry) base() string {
	b := strings.TrimRight(e.path, "/")
	if b == "" {
		return "/"
	}
	return b[strings.LastIndexByte(b, '/')+1:]
}

// stat returns the file's attributes, after the link if the options say so.
func (f *finder) stat(e *entry) *vfs.Attr {
	if !e.known && !e.bad {
		var err error
		e.attr, err = f.lookup(e.path, e.depth)
		e.known, e.bad = err == nil, err != nil
		f.loop = errors.Is(err, syscall.ELOOP)
		if err == nil {
			e.kind = e.attr.Mode & vfs.ModeType
		}
	}
	return &e.attr
}

// lookup stats with or without following, as -P, -H and -L say; a broken link is itself.
func (f *finder) lookup(name string, depth int) (vfs.Attr, error) {
	if f.follow == 'L' || f.follow == 'H' && depth == 0 {
		if a, err := f.t.Stat(name); err == nil || errors.Is(err, syscall.ELOOP) {
			return a, err
		}
	}
	return f.t.Lstat(name)
}

// walk goes through the tree below a starting point.
func (f *finder) walk(start string) {
	a, err := f.lookup(start, 0)
	if err != nil {
		f.fail("%s: %s", tool.QuoteWith(start), tool.Strerror(err))
		return
	}
	e := &entry{path: start, start: start, attr: a, known: true, kind: a.Mode & vfs.ModeType, dev: a.Dev}
	f.visit(e, nil)
}

// maxNesting bounds how deep directories are entered.
const maxNesting = 4000

// ident is a directory that the walk is in.
type ident struct {
	dev  uint64
	ino  vfs.Ino
	path string
}

// visit evaluates the expression for a file and those below it.
func (f *finder) visit(e *entry, above []ident) {
	f.t.Check()
	if f.follow != 'P' && e.depth > 0 && f.loops(e, above) {
		return
	}
	selected := e.depth >= f.minDepth
	if selected && !f.depth {
		f.eval(f.root, e)
	}
	if f.quit {
		return
	}
	isDir := e.kind == vfs.ModeDir
	if e.kind == vfs.ModeSymlink && f.follow == 'L' {
		isDir = f.stat(e).Mode.IsDir()
	}
	if isDir && !e.prune && (f.maxDepth < 0 || e.depth < f.maxDepth) {
		f.children(e, above)
	}
	if selected && f.depth && !f.quit {
		f.eval(f.root, e)
	}
}

// loops reports, with a message, that a file is a directory which the walk is in already, or a link that leads nowhere else
// than to itself.
func (f *finder) loops(e *entry, above []ident) bool {
	if e.kind != vfs.ModeDir && e.kind != vfs.ModeSymlink {
		return false
	}
	a := f.stat(e)
	if e.bad && f.loop {
		f.loop = false
		f.fail("%s: %s", tool.QuoteWith(e.path), tool.Strerror(syscall.ELOOP))
		return true
	}
	if e.bad || !a.Mode.IsDir() {
		return false
	}
	for _, x := range above {
		if x.dev == a.Dev && x.ino == a.Ino {
			f.fail("File system loop detected; %s is part of the same file system loop as %s.", tool.QuoteWith(e.path), tool.QuoteWith(x.path))
			return true
		}
	}
	return false
}

func (f *finder) children(e *entry, above []ident) {
	a := f.stat(e)
	if f.xdev && a.Dev != e.dev {
		return
	}
	id := ident{a.Dev, a.Ino, e.path}
	if e.depth > maxNesting {
		f.fail("%s: File name too long", tool.QuoteWith(e.path))
		return
	}
	list, err := f.t.ReadDir(e.path)
	if err != nil {
		f.fail("%s: %s", tool.QuoteWith(e.path), tool.Strerror(err))
		return
	}
	above = append(above[:len(above):len(above)], id)
	for _, d := range list {
		child := &entry{path: join(e.path, d.Name), start: e.start, depth: e.depth + 1, kind: d.Mode & vfs.ModeType, dev: e.dev}
		if child.kind == vfs.ModeSymlink && f.follow == 'L' || child.kind == 0 {
			f.stat(child)
		}
		f.visit(child, above)
		if f.quit {
			return
		}
	}
}

func join(dir, name string) string {
	if strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}

// relative returns a path below its starting point, for -printf %P.
func (e *entry) relative() string {
	return strings.TrimPrefix(strings.TrimPrefix(e.path, e.start), "/")
}

func dirOf(p string) string {
	trimmed := strings.TrimRight(p, "/")
	if i := strings.LastIndexByte(trimmed, '/'); i > 0 {
		return trimmed[:i]
	} else if i == 0 {
		return ""
	}
	if trimmed == "" {
		return ""
	}
	return "."
}
