package fusefs

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/vfs"
)

// State is what a Server keeps for its kernel, at an instant at which no request is under way. It never changes, and belongs to the
// filesystem of that instant: Restore makes a Server of it over a clone. One that Lasting has completed can be written down.
type State struct {
	kind    string // of the filesystem: numbers mean something to its like only
	init    []byte // the request that began the conversation; nil: it hasn't begun
	last    uint64 // number of a handle
	lasting bool   // names and contents hold for a filesystem that gives its inodes other numbers
	nodes   []nodeState
	handles []handleState
}

// nodeState is a node; in the order of their numbers.
type nodeState struct {
	number uint64
	ino    vfs.Ino
	mode   vfs.Mode // its type
	count  uint64   // how often the kernel was told; 0: only a handle refers to it
	lost   bool
	own    bool   // see node; it isn't written down
	dir    uint64 // number of the directory
	name   string // in it, "" if none is known
	orphan *orphan
}

// orphan is an open file without a name, in a State that lasts.
type orphan struct {
	mode     vfs.Mode
	uid, gid uint32
	mtime    time.Time
	content  []byte
}

// handleState is a handle; in the order of their numbers.
type handleState struct {
	number uint64
	node   uint64
	flags  int
	dir    bool
	list   []vfs.DirEntry
}

// Stats tells how much is kept.
func (st *State) Stats() Stats { return Stats{Nodes: len(st.nodes), Handles: len(st.handles)} }

// State returns what the server keeps. No request may be under way: in a machine that is paused none is.
func (s *Server) State(ctx context.Context) (*State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return nil, errs.Msg(errs.Unavailable, "state of files", "", "they aren't served any more")
	}
	st := s.raw.state()
	st.init = s.init
	for i := range st.handles {
		// A name of an open file is one that leads to it: others may be of another file by now.
		n := st.node(st.handles[i].node)
		if n == nil || n.lost || n.name == "" || st.handles[i].dir {
			continue
		}
		if is, err := st.leads(ctx, s.raw.FS, n); err != nil {
			return nil, err
		} else if !is {
			n.name = ""
		}
	}
	return st, nil
}

func (r *raw) state() *State {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := &State{kind: fmt.Sprintf("%T", r.FS), last: r.last}
	for _, number := range slices.Sorted(maps.Keys(r.nodes)) {
		n := r.nodes[number]
		s := nodeState{number: number, ino: n.ino, mode: n.mode, count: n.count, lost: n.lost, own: n.own, name: n.name}
		if n.name != "" {
			s.dir = r.numberOf(n.dir)
		}
		st.nodes = append(st.nodes, s)
	}
	for _, fh := range slices.Sorted(maps.Keys(r.handles)) {
		h := r.handles[fh]
		s := handleState{number: fh, node: r.numberOf(h.ino), flags: h.flags, dir: h.file == nil}
		if h.lost {
			s.dir, s.node = h.dir, 0
		} else if n := r.nodes[s.node]; s.node != 1 && (n == nil || n.ino != h.ino || n.lost) {
			s.node = st.hidden(h.ino, s.node)
		}
		s.list = h.list
		st.handles = append(st.handles, s)
	}
	return st
}

// search finds where a node is, or would be.
func (st *State) search(number uint64) (int, bool) {
	return slices.BinarySearchFunc(st.nodes, number, func(n nodeState, number uint64) int { return cmp.Compare(n.number, number) })
}

func (st *State) node(number uint64) *nodeState {
	if i, ok := st.search(number); ok {
		return &st.nodes[i]
	}
	return nil
}

// hidden makes a node of an open file that the kernel says it has forgotten.
func (st *State) hidden(ino vfs.Ino, number uint64) uint64 {
	for {
		i, ok := st.search(number)
		if !ok && number > 1 && number != libraryNode {
			st.nodes = slices.Insert(st.nodes, i, nodeState{number: number, ino: ino, mode: vfs.ModeRegular})
			return number
		}
		if ok && st.nodes[i].count == 0 && st.nodes[i].ino == ino {
			return number
		}
		number++
	}
}

// maxDepth bounds directories within each other, as the longest path does.
const maxDepth = vfs.MaxPath / 2

// path returns the names that lead to a node from the root; false if one isn't known.
func (st *State) path(n *nodeState) ([]string, bool) {
	var names []string
	for n != nil && n.name != "" && len(names) < maxDepth {
		names = append(names, n.name)
		if n.dir == 1 {
			slices.Reverse(names)
			return names, true
		}
		n = st.node(n.dir)
	}
	return nil, false
}

// gone tells whether an error says that something isn't there, or can't be had any more, rather than that it couldn't be asked.
func gone(err error) bool {
	switch vfs.Errno(err) {
	case syscall.ESTALE, syscall.ENOENT, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.ENXIO, syscall.EACCES, syscall.EPERM, syscall.EROFS,
		syscall.ENAMETOOLONG, syscall.EINVAL:
		return true
	}
	return false
}

// leads tells whether a node's names lead to it.
func (st *State) leads(ctx context.Context, fs vfs.FS, n *nodeState) (bool, error) {
	names, ok := st.path(n)
	if !ok {
		return false, nil
	}
	return walk(ctx, fs, names, n.ino)
}

func walk(ctx context.Context, fs vfs.FS, names []string, want vfs.Ino) (bool, error) {
	at, held := fs.Root(), false
	for _, name := range names {
		a, err := fs.Lookup(ctx, at, name)
		if held {
			fs.Forget(at, 1)
		}
		if err != nil {
			if gone(err) {
				err = nil
			}
			return false, err
		}
		at, held = a.Ino, true
	}
	if held {
		fs.Forget(at, 1)
	}
	return at == want, nil
}

// MaxContent bounds the contents of files without a name that one State keeps.
const MaxContent = 64 << 20

// Lasting completes a state so that it holds for a filesystem which gives its inodes other numbers, as one does that is opened
// anew after a restart: the names are those of now, and an open file without one comes with its contents, which is errs.Limit
// beyond MaxContent. fs is the filesystem of that instant, or a clone: it is only read.
func (st *State) Lasting(ctx context.Context, fs vfs.FS) (*State, error) {
	l := &State{kind: st.kind, init: st.init, last: st.last, lasting: true, nodes: slices.Clone(st.nodes), handles: st.handles}
	open := map[uint64]bool{}
	for _, h := range l.handles {
		open[h.node] = open[h.node] || !h.dir
	}
	if fmt.Sprintf("%T", fs) != st.kind {
		return l, nil // a copy, known by names only
	}
	for i := range l.nodes {
		n := &l.nodes[i]
		if n.lost || n.orphan != nil {
			continue
		}
		_, err := fs.GetAttr(ctx, n.ino)
		if err == nil {
			err = l.rename(ctx, fs, n)
		}
		if err != nil && !gone(err) {
			return nil, errs.New(errs.Other, "state of files", "", err)
		}
	}
	left := int64(MaxContent)
	for i := range l.nodes {
		n := &l.nodes[i]
		if n.lost || n.name != "" || n.orphan != nil || !open[n.number] || n.mode != vfs.ModeRegular {
			continue
		}
		o, err := read(ctx, fs, n.ino, left)
		if err != nil && !gone(err) {
			return nil, err
		}
		if n.orphan = o; o != nil {
			left -= int64(len(o.content))
		}
	}
	return l, nil
}

// rename gives a node of a state a name that leads to it, if there is one.
func (st *State) rename(ctx context.Context, fs vfs.FS, n *nodeState) error {
	is, err := false, error(nil)
	if n.name != "" && (n.dir == 1 || st.node(n.dir) != nil) {
		dir := fs.Root()
		if n.dir != 1 {
			dir = st.node(n.dir).ino
		}
		var a vfs.Attr
		if a, err = fs.Lookup(ctx, dir, n.name); err == nil {
			fs.Forget(a.Ino, 1)
			is = a.Ino == n.ino
		} else if gone(err) {
			err = nil
		}
	}
	if is || err != nil {
		return err
	}
	n.name, n.dir = "", 0
	p, ok := fs.(vfs.Pather)
	if !ok {
		return nil
	}
	if path, ok := p.PathOf(ctx, n.ino); ok && path != "" && len(path) < vfs.MaxPath {
		n.dir, n.name = 1, path // all of it: the directories needn't be among the nodes
	}
	return nil
}

// read reads an open file without a name.
func read(ctx context.Context, fs vfs.FS, ino vfs.Ino, most int64) (*orphan, error) {
	h, err := fs.Open(ctx, ino, vfs.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	a, err := h.Attr()
	if err != nil {
		return nil, err
	}
	if a.Size > most {
		return nil, errs.Msg(errs.Limit, "state of files", "", fmt.Sprintf("open files without a name have more than %d bytes", MaxContent))
	}
	o := &orphan{mode: a.Mode & vfs.ModePerm, uid: a.UID, gid: a.GID, mtime: a.Mtime, content: make([]byte, a.Size)}
	n, err := h.ReadAt(o.content, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	o.content = o.content[:n]
	return o, nil
}

// Restore returns a server that knows the same nodes and handles as the one that the state is of. The filesystem of the options is
// the same, or a clone of it, which knows the same inodes (vfs.Holder); a copy of it, known by names; or, for a state that
// Lasting has completed, what it was saved as and opened anew. What isn't there is ESTALE to whoever uses it, until the kernel
// has forgotten it. errs.Limit: the options allow less than the state has.
func Restore(ctx context.Context, st *State, o Options) (*Server, error) {
	s := New(o)
	if len(st.nodes) > s.raw.Nodes+s.raw.Handles || len(st.handles) > s.raw.Handles {
		return nil, errs.Msg(errs.Limit, "restore files", "", fmt.Sprintf("the kernel knows %d files and has %d open", len(st.nodes), len(st.handles)))
	}
	err := s.raw.restore(ctx, st)
	if err == nil && st.init != nil {
		s.init = bytes.Clone(st.init)
		var answer [256]byte
		if _, code := s.proto.HandleRequest([][]byte{s.init}, [][]byte{answer[:]}); !code.Ok() {
			err = syscall.Errno(code)
		}
	}
	if err != nil {
		s.raw.reset()
		return nil, errs.New(errs.KindOf(err), "restore files", "", err)
	}
	return s, nil
}

// Clone is Restore of the server's State, with its options, over another filesystem.
func (s *Server) Clone(ctx context.Context, fs vfs.FS) (*Server, error) {
	st, err := s.State(ctx)
	if err != nil {
		return nil, err
	}
	o := s.raw.Options
	o.FS = fs
	if o.TTL == 0 {
		o.TTL = -1 // which it was when it was made
	}
	return Restore(ctx, st, o)
}

// restoring finds the inodes of a state's nodes.
type restoring struct {
	*raw
	st   *State
	same bool // numbers mean the same
	done map[uint64]bool
}

// restore makes the tables. Nobody else uses them yet.
func (r *raw) restore(ctx context.Context, st *State) error {
	p := &restoring{raw: r, st: st, same: st.kind == fmt.Sprintf("%T", r.FS), done: map[uint64]bool{}}
	for i := range st.nodes {
		n := &node{count: st.nodes[i].count, lost: true}
		r.nodes[st.nodes[i].number] = n
	}
	for i := range st.nodes {
		if err := p.find(ctx, &st.nodes[i], 0); err != nil {
			return err
		}
	}
	for i := range st.handles {
		h, err := p.open(ctx, &st.handles[i])
		if err != nil {
			return err
		}
		r.mu.Lock()
		r.put(st.handles[i].number, h)
		r.mu.Unlock()
	}
	r.last = st.last
	for i := range st.nodes { // the handles have them
		if number := st.nodes[i].number; st.nodes[i].count == 0 {
			n := r.nodes[number]
			r.drop(number, n)
			if !n.lost {
				r.FS.Forget(n.ino, 1)
			}
		}
	}
	return nil
}

// find finds the inode of a node, which is lost until then.
func (p *restoring) find(ctx context.Context, s *nodeState, depth int) error {
	if p.done[s.number] || s.lost {
		return nil
	}
	p.done[s.number] = true
	a, err := p.inodeOf(ctx, s, depth)
	if err != nil {
		if gone(err) {
			err = nil
		}
		return err
	}
	if a.Ino == p.root || a.Mode&vfs.ModeType != s.mode {
		p.FS.Forget(a.Ino, 1)
		return nil
	}
	number := p.numberOf(a.Ino)
	if n := p.nodes[number]; n != nil && !n.lost && n.ino == a.Ino { // another node has it
		p.FS.Forget(a.Ino, 1)
		return nil
	}
	n := p.nodes[s.number]
	n.ino, n.mode, n.lost, n.own = a.Ino, s.mode, false, s.own
	if s.number != p.native(a.Ino) {
		p.other[a.Ino] = s.number
	}
	if d := p.nodes[s.dir]; s.name != "" && !strings.Contains(s.name, "/") && (s.dir == 1 || d != nil && !d.lost) {
		dir := p.root
		if s.dir != 1 {
			dir = d.ino
		}
		p.rename(n, dir, s.name)
	}
	return nil
}

// inodeOf returns a reference to the inode that a node is now; ESTALE.
func (p *restoring) inodeOf(ctx context.Context, s *nodeState, depth int) (vfs.Attr, error) {
	holder, ok := p.FS.(vfs.Holder)
	ok = ok && p.same
	if ok && !p.st.lasting && holder.Hold(s.ino, 1) == nil {
		return vfs.Attr{Ino: s.ino, Mode: s.mode}, nil
	}
	if s.name != "" {
		return p.named(ctx, s, depth)
	}
	if ok && p.st.lasting && s.mode == vfs.ModeRegular && holder.Hold(s.ino, 1) == nil {
		// Saved with the file in it; what was opened anew may call another file so.
		if a, err := p.FS.GetAttr(ctx, s.ino); err == nil && a.Nlink == 0 {
			return a, nil
		}
		p.FS.Forget(s.ino, 1)
	}
	if s.orphan != nil && !p.ReadOnly {
		return revive(ctx, p.FS, s.orphan)
	}
	return vfs.Attr{}, syscall.ESTALE
}

// named looks a node up by its name.
func (p *restoring) named(ctx context.Context, s *nodeState, depth int) (vfs.Attr, error) {
	dir := p.root
	if s.dir != 1 {
		d := p.st.node(s.dir)
		if d == nil || depth > maxDepth {
			return vfs.Attr{}, syscall.ESTALE
		}
		if err := p.find(ctx, d, depth+1); err != nil {
			return vfs.Attr{}, err
		}
		n := p.nodes[d.number]
		if n.lost {
			return vfs.Attr{}, syscall.ESTALE
		}
		dir = n.ino
	}
	var a vfs.Attr
	for i, name := range strings.Split(s.name, "/") {
		next, err := p.FS.Lookup(ctx, dir, name)
		if i > 0 {
			p.FS.Forget(dir, 1)
		}
		if err != nil {
			return vfs.Attr{}, err
		}
		a, dir = next, next.Ino
	}
	return a, nil
}

// revive makes a file without a name that has the content of one. Its name exists for a moment.
func revive(ctx context.Context, fs vfs.FS, o *orphan) (a vfs.Attr, err error) {
	var name string
	for i := range 1000 {
		name = fmt.Sprintf(".unlinked-%d", i)
		if a, err = fs.Create(ctx, fs.Root(), name, vfs.ModeRegular|o.mode, vfs.Cred{UID: o.uid, GID: o.gid}); vfs.Errno(err) != syscall.EEXIST {
			break
		}
	}
	if err != nil {
		return a, err
	}
	h, err := fs.Open(ctx, a.Ino, vfs.O_RDWR)
	if err == nil {
		_, err = h.WriteAt(o.content, 0)
		if gone := fs.Unlink(ctx, fs.Root(), name); err == nil {
			err = gone
		}
		if end := h.Close(); err == nil {
			err = end
		}
	}
	if err == nil {
		_, err = fs.SetAttr(ctx, a.Ino, vfs.SetAttr{Mtime: &o.mtime})
	}
	if err != nil {
		fs.Forget(a.Ino, 1)
	}
	return a, err
}

// open opens what a handle was of.
func (p *restoring) open(ctx context.Context, s *handleState) (*handle, error) {
	h := &handle{flags: s.flags, dir: s.dir, list: s.list, ino: p.root}
	if s.node != 1 {
		n := p.nodes[s.node]
		if n == nil || n.lost {
			h.lost = true
			return h, nil
		}
		h.ino = n.ino
	}
	switch {
	case s.dir:
	case p.ReadOnly && s.flags&vfs.O_ACCMODE != vfs.O_RDONLY:
		h.lost = true
	default:
		f, err := p.FS.Open(ctx, h.ino, s.flags&vfs.O_ACCMODE)
		if err != nil && !gone(err) {
			return nil, err
		}
		h.file, h.lost = f, err != nil
	}
	return h, nil
}
