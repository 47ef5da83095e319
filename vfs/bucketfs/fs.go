package bucketfs

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"agentrun.dev"
	"agentrun.dev/bucket"
	"agentrun.dev/vfs"
)

// Options of a filesystem; the zero value works.
type Options struct {
	UID, GID uint32           // own what no filesystem has touched yet
	Now      func() time.Time // nil is time.Now
	Dirty    int64            // bytes held back before they are visible to S3; 0 is 64 MiB
	Nodes    int              // inodes remembered though nobody refers to them; 0 is 16,384
	TempDir  string           // for what is written to unlinked files beyond Dirty; "" is the system's
	Bytes    int64            // that the files may have together, as written through this FS; beyond it ENOSPC. 0: no limit
}

// FS implements vfs.FS, vfs.Xattrs and vfs.Flusher.
type FS struct {
	opt Options
	b   *bucket.Bucket // nil: read-only

	// mu guards the table of nodes and their names. It may be taken while a node's mu is held, never the other way.
	mu    sync.Mutex
	view  *bucket.View
	ver   agentrun.Version // of view
	grown int64            // bytes by which files have grown since they were last written out; kept if opt.Bytes is set
	age   uint64           // counts views; what was looked up in an earlier one must be looked up again
	root  *node
	seen  uint64 // age when the root's record was last read
	inos  map[vfs.Ino]*node
	ids   map[bucket.ObjectID]*node
	idle  *list.List // of *node, least recently used first
	lefts list.List  // of *node that have something left, in the order in which they were replaced
	temp  uint64     // counts inode numbers of files that aren't in the bucket yet

	dirtyBytes atomic.Int64
	dirtyMu    sync.Mutex
	dirty      map[*node]int64 // bytes held back
}

const rootIno = 1

// New returns a filesystem over a living bucket.
func New(ctx context.Context, b *bucket.Bucket, o Options) (*FS, error) {
	v, err := b.View(ctx)
	if err != nil {
		return nil, err
	}
	return newFS(v, b, o), nil
}

// NewView returns a read-only filesystem over a view, which Close closes.
func NewView(v *bucket.View, o Options) *FS { return newFS(v, nil, o) }

func newFS(v *bucket.View, b *bucket.Bucket, o Options) *FS {
	o.Dirty = cmp.Or(o.Dirty, 64<<20)
	o.Nodes = max(cmp.Or(o.Nodes, 16<<10), 64) // an operation needs a few at once
	if o.Now == nil {
		o.Now = time.Now
	}
	f := &FS{opt: o, b: b, view: v, ver: v.Version(), age: 1, inos: map[vfs.Ino]*node{}, ids: map[bucket.ObjectID]*node{}, idle: list.New(), dirty: map[*node]int64{}}
	f.root = &node{ino: rootIno, dir: true, refs: 1}
	f.inos[rootIno] = f.root
	return f
}

// Close writes out what was held back and lets go of the bucket. Open files must be closed before.
func (f *FS) Close(ctx context.Context) error {
	err := f.Flush(ctx, false)
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.lefts.Len() > 0 {
		f.dropLeft(f.lefts.Front().Value.(*node))
	}
	f.view.Close()
	return err
}

// fsError is an errno with what the bucket said.
type fsError struct {
	no  syscall.Errno
	err error
}

func (e *fsError) Error() string   { return fmt.Sprintf("%v: %v", e.no, e.err) }
func (e *fsError) Unwrap() []error { return []error{e.no, e.err} }

// wrap gives an error of the bucket its errno.
func wrap(err error) error {
	var no syscall.Errno
	if err == nil || errors.As(err, &no) {
		return err
	}
	return &fsError{vfs.Errno(err), err}
}

// refresh makes the view the bucket's present state. The caller holds mu.
func (f *FS) refresh(ctx context.Context) error {
	if f.b == nil {
		return nil
	}
	v, err := f.b.View(ctx)
	if err != nil {
		return wrap(err)
	}
	if v.Version() == f.ver {
		v.Close()
		return nil
	}
	f.view.Close()
	f.view, f.ver = v, v.Version()
	f.age++
	return nil
}

// node is an inode. But for data, everything is guarded by FS.mu.
type node struct {
	ino    vfs.Ino
	dir    bool
	begun  string // of a directory for long parts: the part's beginning; its parent then holds the prefix
	names  []dent // a directory has one; none: unlinked, or known only by id
	at     string // the key of a file without known names, as last found
	kids   map[string]*node
	below  int    // files below a directory that aren't in the bucket yet
	proof  string // a key below a directory, as last seen
	miss   string // a name that the directory didn't have in view missed
	missed uint64

	obj   *bucket.Object // as last seen in the bucket; nil for directories and what isn't there yet
	rec   *bucket.Dir    // the directory's own record
	px    bucket.Posix   // with defaults filled in
	mtime time.Time
	fresh bool      // isn't in the bucket yet
	gone  bool      // has no name any more
	moved time.Time // of a directory: when an entry came or went, if that isn't stored

	refs  uint64
	opens int
	elem  *list.Element // in FS.idle
	left  *left         // of a file that was replaced

	data data
}

// dent is a name: in a directory, and the key's part that it stands for.
type dent struct {
	parent   *node
	name     string
	part     string
	shadowed bool
	seen     uint64 // FS.age when it was last looked up
}

// saw notes that a name was looked up.
func (f *FS) saw(n, d *node, name string) {
	for i := range n.names {
		if e := &n.names[i]; e.parent == d && e.name == name {
			e.seen = f.age
		}
	}
}

// sawKey notes that the names of a key, which we have just written, are as they were.
func (f *FS) sawKey(n *node, key string) {
	for i := range n.names {
		if e := &n.names[i]; e.key() == key {
			e.seen = f.age
		}
	}
}

// isCurrent reports whether a name was looked up in the present view. Other names of the file say nothing about it.
func (f *FS) isCurrent(n, d *node, name string) bool {
	for i := range n.names {
		if e := &n.names[i]; e.parent == d && e.name == name {
			return e.seen == f.age
		}
	}
	return false
}

// prefix begins the keys of everything in a directory: "" or "a/b/", for long parts without the slash.
func (n *node) prefix() string {
	if len(n.names) == 0 {
		return "" // the root; a removed directory is never asked
	}
	d := n.names[0]
	if n.begun != "" {
		return d.parent.base() + n.begun
	}
	return d.parent.base() + d.part + "/"
}

// base is the prefix of the directory proper, of which a directory for long parts is only a piece.
func (n *node) base() string {
	for n.begun != "" {
		n = n.names[0].parent
	}
	return n.prefix()
}

// PathOf implements vfs.Pather.
func (f *FS) PathOf(_ context.Context, ino vfs.Ino) (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.inos[ino]
	if n == nil || n.gone {
		return "", false
	}
	path := ""
	for n != f.root {
		if len(n.names) == 0 {
			return "", false
		}
		if path != "" {
			path = "/" + path
		}
		path, n = n.names[0].name+path, n.names[0].parent
	}
	return path, true
}

// key of a file by one of its names; false if none is known.
func (n *node) key() (string, bool) {
	if len(n.names) == 0 {
		return "", false
	}
	return n.names[0].key(), true
}

func (d dent) key() string { return d.parent.base() + d.part }

// inoOfID derives an inode number from an object's id. Object numbers are unique in a store, so that mixing the space in
// only matters for objects that came from another one.
func inoOfID(id bucket.ObjectID) vfs.Ino {
	return max(vfs.Ino(id.N^(id.Space*0x9e3779b97f4a7c15)<<40), rootIno+1)
}

// inoOfPath numbers a directory without a record.
func inoOfPath(prefix string) vfs.Ino {
	h := fnv.New64a()
	h.Write([]byte(prefix))
	return max(vfs.Ino(h.Sum64()|1<<63), rootIno+1)
}

// number gives a node its inode number, another if that is taken.
func (f *FS) number(n *node, ino vfs.Ino) {
	n.ino = f.spare(ino)
	f.inos[n.ino] = n
}

// spare is the number that a node gets which isn't known yet. Its own may be taken by what is gone and still in use, and was the same object before
// another mount renamed it.
func (f *FS) spare(ino vfs.Ino) vfs.Ino {
	for f.inos[ino] != nil {
		ino++
	}
	return ino
}

// get returns a known inode; ESTALE.
func (f *FS) get(ino vfs.Ino) (*node, error) {
	if n := f.inos[ino]; n != nil {
		return n, nil
	}
	return nil, syscall.ESTALE
}

// getDir returns a known directory that has a name; ENOENT if it was removed.
func (f *FS) getDir(ino vfs.Ino) (*node, error) {
	n, err := f.get(ino)
	switch {
	case err != nil:
		return nil, err
	case !n.dir:
		return nil, syscall.ENOTDIR
	case n.gone:
		return nil, syscall.ENOENT
	}
	return n, nil
}

// attach gives a node a name.
func (f *FS) attach(n, d *node, name, part string, shadowed bool) {
	if d.kids == nil {
		d.kids = map[string]*node{}
	}
	if old := d.kids[name]; old == n {
		return
	} else if old != nil {
		f.lose(old, d, name)
	}
	d.kids[name] = n
	n.names = append(n.names, dent{parent: d, name: name, part: part, shadowed: shadowed})
	n.gone = false
	d.weigh(n.weight())
}

// unname takes a name from a node, which may get another one.
func (f *FS) unname(n, d *node, name string) {
	for i, e := range n.names {
		if e.parent == d && e.name == name {
			n.names = slices.Delete(n.names, i, i+1)
			d.weigh(-n.weight())
			break
		}
	}
	if d.kids[name] == n {
		delete(d.kids, name)
	}
}

// weight is how many files a node stands for that aren't in the bucket yet.
func (n *node) weight() int {
	if n.fresh {
		return 1
	}
	return n.below
}

// weigh adds to the weight of a directory and all above it.
func (n *node) weigh(by int) {
	for by != 0 {
		n.below += by
		if len(n.names) == 0 {
			return
		}
		n = n.names[0].parent
	}
}

// settled notes that a file is in the bucket now.
func (n *node) settled() {
	n.fresh = false
	for _, e := range n.names {
		e.parent.weigh(-1)
	}
}

// detach takes a name away. A file without one is gone, unless the bucket has more names of it.
func (f *FS) detach(n, d *node, name string) {
	f.unname(n, d, name)
	n.px.Links = max(1, n.px.Links) - 1
	if len(n.names) > 0 {
		return
	}
	if n.gone = n.px.Links == 0; n.gone {
		for name, k := range n.kids { // what is below a directory goes with it
			f.lose(k, n, name)
		}
		f.disown(n)
	}
	f.settle(n)
}

// lose takes away a name where the bucket has nothing any more, or something else. A file that is in use isn't gone for that: another mount may have
// renamed it, and what is written to it goes where it is now.
func (f *FS) lose(n, d *node, name string) {
	if n.dir || n.fresh || n.opens == 0 && !n.data.loaded.Load() || len(n.names) > 1 || n.px.Links > 1 {
		f.detach(n, d, name)
		return
	}
	f.unname(n, d, name)
	f.settle(n)
}

// disown takes a node out of the table by ids.
func (f *FS) disown(n *node) {
	if n.obj != nil && f.ids[n.obj.ID] == n {
		delete(f.ids, n.obj.ID)
	}
	if n.rec != nil && f.ids[n.rec.ID] == n {
		delete(f.ids, n.rec.ID)
	}
}

// settle forgets a node that nobody refers to, or notes that it may be forgotten.
func (f *FS) settle(n *node) {
	if n == f.root {
		return
	}
	idle := n.refs == 0 && n.opens == 0 && (n.gone || !n.fresh && !n.data.loaded.Load())
	switch {
	case idle && (n.gone || len(n.names) == 0):
		f.forget(n)
	case idle && n.elem == nil:
		n.elem = f.idle.PushBack(n)
		f.evict()
	case !idle && n.elem != nil:
		f.idle.Remove(n.elem)
		n.elem = nil
	}
}

// evict keeps the number of idle nodes bounded. A directory whose entries are known stays, and comes up again.
func (f *FS) evict() {
	for range 8 {
		if f.idle.Len() <= f.opt.Nodes {
			return
		}
		n := f.idle.Front().Value.(*node)
		if len(n.kids) > 0 {
			f.idle.MoveToBack(n.elem)
			continue
		}
		for len(n.names) > 0 {
			f.unname(n, n.names[0].parent, n.names[0].name)
		}
		f.forget(n)
	}
}

func (f *FS) forget(n *node) {
	if n.elem != nil {
		f.idle.Remove(n.elem)
		n.elem = nil
	}
	delete(f.inos, n.ino)
	f.disown(n)
	f.dropLeft(n)
}

// Root implements vfs.FS.
func (f *FS) Root() vfs.Ino { return rootIno }

// Forget implements vfs.FS. A file that was made and never opened is written out with its last reference.
func (f *FS) Forget(ino vfs.Ino, count uint64) {
	f.mu.Lock()
	n := f.inos[ino]
	if n == nil || n == f.root {
		f.mu.Unlock()
		return
	}
	n.refs -= min(count, n.refs)
	f.settle(n)
	flush := n.refs == 0 && n.opens == 0 && n.fresh && !n.gone
	f.mu.Unlock()
	if flush {
		// There is nobody to tell of an error: the file stays, fresh, and Flush tries again.
		_ = f.flushNode(context.Background(), n, false)
	}
}

// Hold implements vfs.Holder.
func (f *FS) Hold(ino vfs.Ino, n uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	nd, err := f.get(ino)
	if err != nil {
		return err
	}
	nd.refs += n
	f.settle(nd)
	return nil
}

// attr is what stat shows.
func (f *FS) attr(n *node) vfs.Attr {
	a := vfs.Attr{Ino: n.ino, Mode: vfs.Mode(n.px.Mode), Nlink: max(1, n.px.Links), UID: n.px.UID, GID: n.px.GID, Rdev: n.px.Rdev,
		Mtime: n.mtime, Atime: time.Unix(0, n.px.Access), Ctime: time.Unix(0, n.px.Change)}
	switch {
	case n.dir:
		a.Nlink = 2
		if !n.moved.IsZero() {
			a.Mtime, a.Ctime = n.moved, n.moved
		}
	case a.Mode.IsSymlink():
		a.Size = int64(len(n.px.Link))
	case n.data.loaded.Load():
		a.Size = n.data.size.Load()
		if t := n.data.mtime.Load(); t != 0 {
			a.Mtime = time.Unix(0, t)
			if a.Ctime.Before(a.Mtime) {
				a.Ctime = a.Mtime
			}
		}
	case n.obj != nil:
		a.Size = n.obj.Size
	}
	a.Blocks = (a.Size + 511) / 512
	if n.gone {
		a.Nlink = 0
	}
	return a
}

// setObject takes over what the bucket says of a file.
func (f *FS) setObject(n *node, o *bucket.Object) {
	if n.obj != nil && (n.obj.ID != o.ID || n.obj.Version != o.Version) {
		f.disown(n)
		n.data.stale.Store(true)
	}
	n.obj = o
	f.ids[o.ID] = n
	n.mtime = o.Modified
	if o.Posix != nil {
		n.px = *o.Posix
		if vfs.Mode(n.px.Mode)&vfs.ModeType == 0 || vfs.Mode(n.px.Mode).IsDir() {
			n.px.Mode = n.px.Mode&uint32(vfs.ModePerm) | uint32(vfs.ModeRegular)
		}
		return
	}
	t := o.Modified.UnixNano()
	n.px = bucket.Posix{Mode: uint32(vfs.ModeRegular | 0o644), UID: f.opt.UID, GID: f.opt.GID, Access: t, Change: t}
}

// setDir takes over what the bucket says of a directory; rec is nil if it has no record.
func (f *FS) setDir(n *node, rec *bucket.Dir) {
	n.dir = true
	f.disown(n)
	if rec != nil {
		n.rec, n.px, n.mtime = rec, rec.Posix, rec.Modified
		n.px.Mode = uint32(vfs.ModeDir) | n.px.Mode&uint32(vfs.ModePerm)
		if !rec.ID.IsZero() {
			f.ids[rec.ID] = n
		}
		return
	}
	n.rec = nil
	n.mtime = f.view.Info().Created
	t := n.mtime.UnixNano()
	n.px = bucket.Posix{Mode: uint32(vfs.ModeDir | 0o755), UID: f.opt.UID, GID: f.opt.GID, Access: t, Change: t}
}

// touch notes that an entry of a directory came or went.
func (f *FS) touch(d *node) { d.moved = f.opt.Now() }
