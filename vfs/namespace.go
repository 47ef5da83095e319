package vfs

import (
	"context"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Mount is one filesystem in a Namespace.
type Mount struct {
	Path     string // absolute; "/" for the root
	FS       FS
	Source   string // what /proc/mounts shows: "bucket:name", "tmpfs" …
	Type     string
	ReadOnly bool // writes are EROFS, whatever FS allows
	// Special opens what FS itself doesn't: FIFOs, sockets and devices. a.Dev and a.Ino identify the file within the
	// Namespace, a.Rdev the device. Nil leaves them ENXIO.
	Special func(ctx context.Context, c Cred, a Attr, flags int) (File, error)
}

// Namespace is what a sandbox sees: filesystems mounted into one tree. The mount table changes as a whole, so that
// operations in progress see it before or after a Mount, never in between. All methods may be called concurrently.
//
// Methods take the caller's credentials, its working directory (an absolute path; "" is the root) and a path, which is
// relative to that directory unless it begins with a slash. They return syscall.Errno.
type Namespace struct {
	mu      sync.Mutex // serialises changes of the table
	root    atomic.Pointer[point]
	nextDev atomic.Uint64
	walks   sync.Pool
}

// point is a place of the mount tree: a mount point, or a directory on the way to one. Points never change.
type point struct {
	name     string
	m        *mount // nil where nothing is mounted
	children map[string]*point
	virtual  *mount // stands in where the directory doesn't exist beneath
}

func (p *point) child(name string) *point {
	if p == nil || p.children == nil {
		return nil
	}
	return p.children[name]
}

// sorted returns the children by name.
func (p *point) sorted() []*point {
	return slices.SortedFunc(maps.Values(p.children), func(a, b *point) int { return strings.Compare(a.name, b.name) })
}

// mount is a mounted filesystem with its device number.
type mount struct {
	Mount
	dev uint64
}

// NewNamespace returns a tree that consists of one filesystem; root.Path is ignored.
func NewNamespace(root Mount) *Namespace {
	ns := &Namespace{}
	ns.walks.New = func() any { return new(walk) }
	root.Path = "/"
	ns.root.Store(&point{m: ns.newMount(root)})
	return ns
}

// newMount gives a mount its number. Numbers aren't reused.
func (ns *Namespace) newMount(m Mount) *mount {
	return &mount{Mount: m, dev: ns.nextDev.Add(1)}
}

// Mount puts a filesystem at m.Path, hiding what is there. The path needn't exist beneath: missing directories on the way
// appear, read-only. Symbolic links of the path are resolved. Something mounted there already is EBUSY.
func (ns *Namespace) Mount(ctx context.Context, m Mount) error {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	parts, err := ns.mountPath(ctx, m.Path)
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		return syscall.EBUSY
	}
	m.Path = "/" + strings.Join(parts, "/")
	root, err := ns.graft(ns.root.Load(), parts, m)
	if err != nil {
		return err
	}
	ns.root.Store(root)
	return nil
}

// mountPath resolves as much of a mount point's path as exists.
func (ns *Namespace) mountPath(ctx context.Context, path string) ([]string, error) {
	if !strings.HasPrefix(path, "/") || len(path) >= MaxPath {
		return nil, syscall.EINVAL
	}
	var parts []string
	for _, name := range strings.Split(path, "/") {
		switch {
		case name == "" || name == ".":
			continue
		case name == "..":
			parts = parts[:max(0, len(parts)-1)]
			continue
		case len(name) > MaxName:
			return nil, syscall.ENAMETOOLONG
		case strings.IndexByte(name, 0) >= 0:
			return nil, syscall.EINVAL
		}
		parts = append(parts, name)
		so := "/" + strings.Join(parts, "/")
		if real, err := ns.Realpath(ctx, Cred{}, "", so); err == nil && real != so {
			parts = strings.Split(real[1:], "/")
		}
	}
	return parts, nil
}

// graft copies the points on the way to a new mount.
func (ns *Namespace) graft(p *point, parts []string, m Mount) (*point, error) {
	c := *p
	if len(parts) == 0 {
		if c.m != nil {
			return nil, syscall.EBUSY
		}
		c.m = ns.newMount(m)
		return &c, nil
	}
	next := p.child(parts[0])
	if next == nil {
		path := m.Path
		for range parts[1:] {
			path = path[:strings.LastIndexByte(path, '/')]
		}
		next = &point{name: parts[0], virtual: ns.newMount(Mount{Path: path, FS: newVoid(m.Path, len(parts)), Source: "none", Type: "void", ReadOnly: true})}
	}
	next, err := ns.graft(next, parts[1:], m)
	if err != nil {
		return nil, err
	}
	c.children = maps.Clone(p.children)
	if c.children == nil {
		c.children = make(map[string]*point, 1)
	}
	c.children[parts[0]] = next
	return &c, nil
}

// Unmount takes away what is mounted at exactly the path. EINVAL: nothing is; EBUSY: something is mounted beneath it, or it
// is the root. Files open in it stay open.
func (ns *Namespace) Unmount(path string) error {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	if len(parts) == 0 {
		return syscall.EBUSY
	}
	root, err := prune(ns.root.Load(), parts)
	if err == nil {
		ns.root.Store(root)
	}
	return err
}

// prune copies the points on the way to a mount that goes, dropping those that lead nowhere any more.
func prune(p *point, parts []string) (*point, error) {
	c := *p
	if len(parts) == 0 {
		if c.m == nil {
			return nil, syscall.EINVAL
		}
		if len(c.children) > 0 {
			return nil, syscall.EBUSY
		}
		return nil, nil
	}
	next := p.child(parts[0])
	if next == nil {
		return nil, syscall.EINVAL
	}
	next, err := prune(next, parts[1:])
	if err != nil {
		return nil, err
	}
	c.children = maps.Clone(p.children)
	if next == nil {
		delete(c.children, parts[0])
	} else {
		c.children[parts[0]] = next
	}
	if len(c.children) == 0 && c.m == nil {
		return nil, nil
	}
	return &c, nil
}

// Mounts lists what is mounted, parents before children, siblings by name.
func (ns *Namespace) Mounts() []Mount {
	var list []Mount
	var visit func(p *point)
	visit = func(p *point) {
		if p.m != nil {
			list = append(list, p.m.Mount)
		}
		for _, child := range p.sorted() {
			visit(child)
		}
	}
	visit(ns.root.Load())
	return list
}

// Clone returns a namespace with the same mount points and device numbers, as a fork of a sandbox needs. replace is asked
// for each mount and returns what takes its place; Path can't be changed. An error ends the cloning.
func (ns *Namespace) Clone(replace func(Mount) (Mount, error)) (*Namespace, error) {
	c := &Namespace{}
	c.walks.New = func() any { return new(walk) }
	var visit func(p *point) (*point, error)
	visit = func(p *point) (*point, error) {
		q := *p
		if p.m != nil {
			m, err := replace(p.m.Mount)
			if err != nil {
				return nil, err
			}
			m.Path = p.m.Path
			q.m = &mount{Mount: m, dev: p.m.dev}
		}
		q.children = make(map[string]*point, len(p.children))
		for _, child := range p.sorted() {
			r, err := visit(child)
			if err != nil {
				return nil, err
			}
			q.children[child.name] = r
		}
		return &q, nil
	}
	ns.mu.Lock()
	defer ns.mu.Unlock()
	root, err := visit(ns.root.Load())
	if err != nil {
		return nil, err
	}
	c.nextDev.Store(ns.nextDev.Load())
	c.root.Store(root)
	return c, nil
}

// Flush makes what the mounted filesystems hold back visible beneath, durably if asked, as a fork or snapshot needs and
// sync(2) does. The first error comes back after all were tried.
func (ns *Namespace) Flush(ctx context.Context, durable bool) error {
	var first error
	for _, m := range ns.Mounts() {
		if f, ok := m.FS.(Flusher); ok && !m.ReadOnly {
			if err := f.Flush(ctx, durable); err != nil && first == nil {
				first = err
			}
		}
	}
	return first
}

// void is the filesystem of a directory that exists only because something is mounted beneath it.
type void struct {
	ino  Ino
	made time.Time
}

func newVoid(path string, depth int) *void {
	h := fnv.New64a()
	h.Write([]byte(path))
	return &void{ino: Ino(h.Sum64()<<8 | uint64(depth&0xff)), made: time.Now()}
}

func (v *void) attr() Attr {
	return Attr{Ino: v.ino, Mode: ModeDir | 0o755, Nlink: 2, Atime: v.made, Mtime: v.made, Ctime: v.made}
}

func (v *void) Root() Ino { return v.ino }
func (v *void) Lookup(context.Context, Ino, string) (Attr, error) {
	return Attr{}, syscall.ENOENT
}
func (v *void) GetAttr(context.Context, Ino) (Attr, error) { return v.attr(), nil }
func (v *void) SetAttr(context.Context, Ino, SetAttr) (Attr, error) {
	return Attr{}, syscall.EROFS
}
func (v *void) Create(context.Context, Ino, string, Mode, Cred) (Attr, error) {
	return Attr{}, syscall.EROFS
}
func (v *void) Mknod(context.Context, Ino, string, Mode, uint64, Cred) (Attr, error) {
	return Attr{}, syscall.EROFS
}
func (v *void) Mkdir(context.Context, Ino, string, Mode, Cred) (Attr, error) {
	return Attr{}, syscall.EROFS
}
func (v *void) Symlink(context.Context, Ino, string, string, Cred) (Attr, error) {
	return Attr{}, syscall.EROFS
}
func (v *void) Readlink(context.Context, Ino) (string, error) { return "", syscall.EINVAL }
func (v *void) Link(context.Context, Ino, Ino, string) (Attr, error) {
	return Attr{}, syscall.EROFS
}
func (v *void) Unlink(context.Context, Ino, string) error { return syscall.EROFS }
func (v *void) Rmdir(context.Context, Ino, string) error  { return syscall.EROFS }
func (v *void) Rename(context.Context, Ino, string, Ino, string, uint32) error {
	return syscall.EROFS
}
func (v *void) ReadDir(context.Context, Ino) ([]DirEntry, error) { return nil, nil }
func (v *void) Open(context.Context, Ino, int) (Handle, error)   { return nil, syscall.EISDIR }
func (v *void) StatFS(context.Context) (StatFS, error)           { return StatFS{BlockSize: 4096}, nil }
func (v *void) Forget(Ino, uint64)                               {}
