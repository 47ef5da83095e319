package fusefs

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"agentrun.dev/vfs"
)

// raw is the filesystem as go-fuse wants it, with the tables.
type raw struct {
	fuse.RawFileSystem // answers ENOSYS to what isn't here
	Options
	root vfs.Ino
	lax  atomic.Bool

	mu      sync.Mutex
	nodes   map[uint64]*node   // by number, without the root
	other   map[vfs.Ino]uint64 // the numbers of inodes that have another than native's
	spare   uint64             // the last number that was given to such an inode
	names   int                // bytes of all nodes' names
	handles map[uint64]*handle
	opens   map[vfs.Ino]int // how many handles there are of an inode
	lists   list.List       // of *handle that have a list, in the order in which they were read
	inLists int             // entries in all of them
	last    uint64          // number of a handle
}

func newRaw(o Options) *raw {
	return &raw{RawFileSystem: fuse.NewDefaultRawFileSystem(), Options: o, root: o.FS.Root(), nodes: map[uint64]*node{}, other: map[vfs.Ino]uint64{},
		spare: 1 << 61, handles: map[uint64]*handle{}, opens: map[vfs.Ino]int{}}
}

func (r *raw) String() string { return "agentrun" }

// node is an inode that the kernel was told of. It has one reference of the filesystem, however often the kernel was told.
type node struct {
	ino   vfs.Ino
	mode  vfs.Mode  // its type
	count uint64    // how often the kernel was told
	lost  bool      // the filesystem doesn't know it: ESTALE, until the kernel forgets the number
	told  time.Time // when the kernel was told last
	own   bool      // the kernel itself has taken a name of it away

	// By which name it was seen last, "" if it isn't known: another door may have changed it since.
	dir  vfs.Ino
	name string
}

// handle is an open file, or an open directory.
type handle struct {
	ino   vfs.Ino
	flags int
	file  vfs.Handle // nil for a directory
	lost  bool       // the filesystem doesn't know it: ESTALE
	dir   bool       // of a lost one

	// Guarded by raw.mu.
	list []vfs.DirEntry // as of the last time it was read from the start; never changed, only replaced
	turn *list.Element  // in raw.lists
}

// maxNames bounds the bytes of names that a Server remembers: what has none is looked for when a State needs it.
const maxNames = 32 << 20

// native is the number that an inode gets unless another inode has it already, which happens after a restart only. FUSE's root is
// 1, whatever the filesystem's is; the two change places.
func (r *raw) native(ino vfs.Ino) uint64 {
	switch ino {
	case r.root:
		return fuse.FUSE_ROOT_ID
	case fuse.FUSE_ROOT_ID:
		return uint64(r.root)
	}
	return uint64(ino)
}

// number is what the kernel calls an inode.
func (r *raw) number(ino vfs.Ino) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.numberOf(ino)
}

// numberOf is number with the lock held.
func (r *raw) numberOf(ino vfs.Ino) uint64 {
	if n, ok := r.other[ino]; ok {
		return n
	}
	return r.native(ino)
}

// inode returns the inode of a node that the kernel knows; ESTALE.
func (r *raw) inode(number uint64) (vfs.Ino, error) {
	if number == fuse.FUSE_ROOT_ID {
		return r.root, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.nodes[number]; n != nil && !n.lost {
		return n.ino, nil
	}
	return 0, syscall.ESTALE
}

// told counts that the kernel is told of an inode, to which the filesystem has just given a reference, and returns its number.
// ENFILE: it knows too many.
func (r *raw) told(a vfs.Attr, dir vfs.Ino, name string) (uint64, error) {
	number, taken, err := r.tell(a, dir, name)
	if !taken {
		r.FS.Forget(a.Ino, 1)
	}
	return number, err
}

// tell is told; taken is that the node keeps the reference.
func (r *raw) tell(a vfs.Attr, dir vfs.Ino, name string) (number uint64, taken bool, err error) {
	if a.Ino == r.root {
		return fuse.FUSE_ROOT_ID, false, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	number = r.numberOf(a.Ino)
	n := r.nodes[number]
	if n == nil || n.lost || n.ino != a.Ino {
		if len(r.nodes) >= r.Nodes {
			return 0, false, syscall.ENFILE
		}
		number, taken = r.add(number, a), true
		n = r.nodes[number]
	}
	n.count++
	n.told = time.Now()
	r.rename(n, dir, name)
	return number, taken, nil
}

// add makes a node, of that number if it is free.
func (r *raw) add(number uint64, a vfs.Attr) uint64 {
	for r.nodes[number] != nil || number <= fuse.FUSE_ROOT_ID || number == libraryNode {
		r.spare++
		number = r.spare
	}
	r.nodes[number] = &node{ino: a.Ino, mode: a.Mode & vfs.ModeType}
	if number != r.native(a.Ino) {
		r.other[a.Ino] = number
	}
	return number
}

// drop takes a node out of the table.
func (r *raw) drop(number uint64, n *node) {
	delete(r.nodes, number)
	r.names -= len(n.name)
	if r.other[n.ino] == number {
		delete(r.other, n.ino)
	}
}

// rename notes a name of a node.
func (r *raw) rename(n *node, dir vfs.Ino, name string) {
	if n.dir == dir && n.name == name {
		return
	}
	r.names -= len(n.name)
	if n.dir, n.name = dir, name; r.names+len(name) > maxNames {
		n.name = ""
	}
	r.names += len(n.name)
}

// renamed notes where something was moved to.
func (r *raw) renamed(ctx context.Context, dir vfs.Ino, name string) {
	a, err := r.FS.Lookup(ctx, dir, name)
	if err != nil {
		return
	}
	r.mu.Lock()
	if n := r.nodes[r.numberOf(a.Ino)]; n != nil && n.ino == a.Ino {
		r.rename(n, dir, name)
	}
	r.mu.Unlock()
	r.FS.Forget(a.Ino, 1)
}

// Forget is the kernel's.
func (r *raw) Forget(number, count uint64) {
	r.mu.Lock()
	n := r.nodes[number]
	if n == nil || number == fuse.FUSE_ROOT_ID {
		r.mu.Unlock()
		return
	}
	n.count -= min(count, n.count)
	gone := n.count == 0
	if gone {
		r.drop(number, n)
	}
	r.mu.Unlock()
	if gone && !n.lost {
		r.FS.Forget(n.ino, 1)
	}
}

// keep makes a handle known. ENFILE: there are too many.
func (r *raw) keep(h *handle) (uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.handles) >= r.Handles {
		return 0, syscall.ENFILE
	}
	r.last++
	r.put(r.last, h)
	return r.last, nil
}

// put enters a handle into the table.
func (r *raw) put(fh uint64, h *handle) {
	r.handles[fh] = h
	r.opens[h.ino]++
	r.setList(h, h.list)
}

// setList keeps what a directory holds for its handle. Beyond the limit those that were read longest ago are given up, and read again
// when they are asked for more.
func (r *raw) setList(h *handle, entries []vfs.DirEntry) {
	if h.turn != nil {
		r.lists.Remove(h.turn)
		r.inLists -= len(h.list)
		h.turn = nil
	}
	if h.list = entries; entries == nil {
		return
	}
	h.turn = r.lists.PushBack(h)
	for r.inLists += len(entries); r.inLists > r.Listed && r.lists.Len() > 1; {
		r.setList(r.lists.Front().Value.(*handle), nil)
	}
}

// handle returns an open file, or an open directory; EBADF, ESTALE.
func (r *raw) handle(fh uint64, dir bool) (*handle, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.handles[fh]
	switch {
	case h == nil, h.lost && h.dir != dir, !h.lost && (h.file == nil) != dir:
		return nil, syscall.EBADF
	case h.lost:
		return nil, syscall.ESTALE
	}
	return h, nil
}

// release closes a handle.
func (r *raw) release(fh uint64) {
	r.mu.Lock()
	h := r.handles[fh]
	if h != nil {
		delete(r.handles, fh)
		r.setList(h, nil)
		if r.opens[h.ino]--; r.opens[h.ino] == 0 {
			delete(r.opens, h.ino)
		}
	}
	r.mu.Unlock()
	if h != nil && h.file != nil {
		_ = h.file.Close() // FLUSH told of the error
	}
}

// reset forgets everything.
func (r *raw) reset() {
	r.mu.Lock()
	nodes, handles := r.nodes, r.handles
	r.lists.Init()
	r.inLists = 0
	r.nodes, r.other, r.names, r.handles, r.opens = map[uint64]*node{}, map[vfs.Ino]uint64{}, 0, map[uint64]*handle{}, map[vfs.Ino]int{}
	r.mu.Unlock()
	for _, h := range handles {
		if h.file != nil {
			_ = h.file.Close()
		}
	}
	for _, n := range nodes {
		if !n.lost {
			r.FS.Forget(n.ino, 1)
		}
	}
}

func (r *raw) stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Stats{Nodes: len(r.nodes), Handles: len(r.handles), Listed: r.inLists}
}
