package agent

import (
	"context"
	"errors"
	"io"
	"sync"
	"syscall"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/guest/wire"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/hostfs"
)

// Limits of trees.
const (
	maxTrees   = 8
	maxHandles = 1024 // open files of one
	maxNodes   = 1024 // inodes held in one
)

// tree is a filesystem that the host looks into.
type tree struct {
	fs   vfs.FS
	work sync.WaitGroup

	mu      sync.Mutex
	ended   bool
	held    map[vfs.Ino]uint64 // references that the host has
	handles map[uint64]vfs.Handle
	last    uint64
}

// tree opens one, which lasts until the host gives the call up.
func (a *Agent) tree(s *wire.Stream) error {
	open := a.o.Files
	if open == nil {
		open = func() (vfs.FS, error) { return hostfs.New("/", hostfs.Options{Real: true, Nodes: maxNodes}) }
	}
	a.mu.Lock()
	if len(a.trees) >= maxTrees {
		a.mu.Unlock()
		return errs.Msg(errs.Limit, "tree", "", "too many are open")
	}
	a.lastTree++
	id := a.lastTree
	a.trees[id] = nil // the place is taken
	a.mu.Unlock()
	drop := func() {
		a.mu.Lock()
		delete(a.trees, id)
		a.mu.Unlock()
	}
	fs, err := open()
	if err != nil {
		drop()
		return errs.New(errs.Unavailable, "tree", "", err)
	}
	t := &tree{fs: fs, held: make(map[vfs.Ino]uint64), handles: make(map[uint64]vfs.Handle)}
	defer t.end()
	a.mu.Lock()
	a.trees[id] = t
	a.mu.Unlock()
	defer drop()
	if err := s.Message(wire.Tree{ID: id, Root: uint64(fs.Root())}); err != nil {
		return err
	}
	<-s.Done()
	return nil
}

// end waits for what is under way, and lets go of everything.
func (t *tree) end() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.work.Wait()
	for _, h := range t.handles {
		_ = h.Close()
	}
	for ino, n := range t.held {
		t.fs.Forget(ino, n)
	}
	if c, ok := t.fs.(io.Closer); ok {
		_ = c.Close()
	}
}

// node serves one operation on a tree.
func (a *Agent) node(s *wire.Stream, r *wire.Node) error {
	a.mu.Lock()
	t := a.trees[r.Tree]
	a.mu.Unlock()
	if t == nil || !t.begin() {
		return errs.Msg(errs.NotFound, "tree", "", "there is none of this number")
	}
	defer t.work.Done()
	for _, f := range r.Forget {
		t.forget(vfs.Ino(f[0]), f[1])
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer context.AfterFunc(streamContext{s}, cancel)()
	c := &nodeCall{t: t, s: s, r: r, ctx: ctx}
	err := c.do()
	c.answer.Errno = uint16(vfs.Errno(err))
	if err != nil {
		c.giveBack()
	}
	if err := s.Message(&c.answer); err != nil {
		c.giveBack()
		return err
	}
	if c.ino == 0 && c.answer.Handle == 0 {
		return nil
	}
	for {
		f, err := s.Recv()
		if err != nil {
			c.giveBack()
			return err
		}
		if f.Type == wire.Close {
			return nil
		}
	}
}

// streamContext ends with a stream.
type streamContext struct{ *wire.Stream }

func (streamContext) Deadline() (time.Time, bool) { return time.Time{}, false }
func (streamContext) Value(any) any               { return nil }
func (c streamContext) Err() error {
	if c.Stopped() != nil {
		return context.Canceled
	}
	return nil
}

func (t *tree) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.work.Add(1)
	}
	return !t.ended
}

// forget takes references back from the host, no more than it has.
func (t *tree) forget(ino vfs.Ino, n uint64) {
	t.mu.Lock()
	n = min(n, t.held[ino])
	if t.held[ino] -= n; t.held[ino] == 0 {
		delete(t.held, ino)
	}
	t.mu.Unlock()
	if n > 0 {
		t.fs.Forget(ino, n)
	}
}

// known checks that the host holds an inode; ESTALE.
func (t *tree) known(ino uint64) (vfs.Ino, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if vfs.Ino(ino) != t.fs.Root() && t.held[vfs.Ino(ino)] == 0 {
		return 0, syscall.ESTALE
	}
	return vfs.Ino(ino), nil
}

// nodeCall is one operation.
type nodeCall struct {
	t      *tree
	s      *wire.Stream
	r      *wire.Node
	ctx    context.Context
	answer wire.Answer
	ino    vfs.Ino // to which the answer gives a reference
}

// giveBack undoes what the host didn't take.
func (c *nodeCall) giveBack() {
	if c.ino != 0 {
		c.t.forget(c.ino, 1)
		c.ino = 0
	}
	if c.answer.Handle != 0 {
		_ = c.t.close(c.answer.Handle)
		c.answer.Handle = 0
	}
}

func (c *nodeCall) attr(a vfs.Attr, err error) error {
	if err == nil {
		c.answer.Attr = &wire.Attr{Ino: uint64(a.Ino), Mode: uint32(a.Mode), Nlink: a.Nlink, UID: a.UID, GID: a.GID, Rdev: a.Rdev, Size: a.Size, Blocks: a.Blocks,
			ATime: wire.TimeOf(a.Atime), MTime: wire.TimeOf(a.Mtime), CTime: wire.TimeOf(a.Ctime)}
	}
	return err
}

// give is attr with a reference.
func (c *nodeCall) give(a vfs.Attr, err error) error {
	if err == nil {
		c.t.mu.Lock()
		c.t.held[a.Ino]++
		c.t.mu.Unlock()
		c.ino = a.Ino
	}
	return c.attr(a, err)
}

// name is one of a directory.
func name(t wire.Text) (string, error) {
	s := string(t)
	switch {
	case len(s) > vfs.MaxName:
		return "", syscall.ENAMETOOLONG
	case s == "", s == ".", s == "..":
		return "", syscall.EINVAL
	}
	for i := range len(s) {
		if s[i] == '/' || s[i] == 0 {
			return "", syscall.EINVAL
		}
	}
	return s, nil
}

// do does it.
func (c *nodeCall) do() error {
	switch c.r.Op {
	case wire.HandleRead, wire.HandleWrite, wire.HandleAppend, wire.HandleTruncate, wire.HandleAttr, wire.HandleSync, wire.HandleClose:
		return c.handle()
	case wire.NodeStatFS:
		st, err := c.t.fs.StatFS(c.ctx)
		c.answer.StatFS = &[6]uint64{uint64(st.Type), st.BlockSize, st.Blocks, st.Free, st.Files, st.FFree}
		return err
	}
	ino, err := c.t.known(c.r.Ino)
	if err != nil {
		return err
	}
	switch c.r.Op {
	case wire.NodeGetAttr:
		return c.attr(c.t.fs.GetAttr(c.ctx, ino))
	case wire.NodeSetAttr:
		return c.setAttr(ino)
	case wire.NodeReadlink:
		target, err := c.t.fs.Readlink(c.ctx, ino)
		c.answer.Text = wire.Text(target)
		return err
	case wire.NodeReadDir:
		return c.readDir(ino)
	case wire.NodeOpen:
		return c.open(ino)
	case wire.NodeGetXattr, wire.NodeSetXattr, wire.NodeListXattr, wire.NodeRemoveXattr:
		return c.xattr(ino)
	}
	return c.change(ino)
}

func (c *nodeCall) setAttr(ino vfs.Ino) error {
	if c.r.Set == nil {
		return syscall.EINVAL
	}
	w := c.r.Set
	s := vfs.SetAttr{UID: w.UID, GID: w.GID, Size: w.Size, AtimeNow: w.ATimeNow, MtimeNow: w.MTimeNow}
	if w.Mode != nil {
		m := vfs.Mode(*w.Mode) & vfs.ModePerm
		s.Mode = &m
	}
	if w.ATime != nil {
		t := w.ATime.Time()
		s.Atime = &t
	}
	if w.MTime != nil {
		t := w.MTime.Time()
		s.Mtime = &t
	}
	if s.Size != nil && *s.Size < 0 {
		return syscall.EINVAL
	}
	return c.attr(c.t.fs.SetAttr(c.ctx, ino, s))
}

// change is an operation with a name in a directory.
func (c *nodeCall) change(dir vfs.Ino) error {
	fs, r := c.t.fs, c.r
	name1, err := name(r.Name)
	if err != nil {
		return err
	}
	cred, mode := vfs.Cred{UID: r.UID, GID: r.GID}, vfs.Mode(r.Mode)
	switch r.Op {
	case wire.NodeLookup:
		return c.give(fs.Lookup(c.ctx, dir, name1))
	case wire.NodeCreate:
		return c.give(fs.Create(c.ctx, dir, name1, mode, cred))
	case wire.NodeMknod:
		return c.give(fs.Mknod(c.ctx, dir, name1, mode, r.Rdev, cred))
	case wire.NodeMkdir:
		return c.give(fs.Mkdir(c.ctx, dir, name1, mode, cred))
	case wire.NodeSymlink:
		return c.give(fs.Symlink(c.ctx, dir, name1, string(r.NewName), cred))
	case wire.NodeUnlink:
		return fs.Unlink(c.ctx, dir, name1)
	case wire.NodeRmdir:
		return fs.Rmdir(c.ctx, dir, name1)
	case wire.NodeLink:
		ino, err := c.t.known(r.To)
		if err != nil {
			return err
		}
		return c.give(fs.Link(c.ctx, ino, dir, name1))
	case wire.NodeRename:
		to, err := c.t.known(r.To)
		if err != nil {
			return err
		}
		name2, err := name(r.NewName)
		if err != nil {
			return err
		}
		return fs.Rename(c.ctx, dir, name1, to, name2, uint32(r.Flags))
	}
	return syscall.ENOSYS
}

func (c *nodeCall) readDir(dir vfs.Ino) error {
	list, err := c.t.fs.ReadDir(c.ctx, dir)
	if err != nil {
		return err
	}
	part := wire.Answer{More: true}
	room := wire.MaxMessage - 256
	for _, e := range list {
		size := 80 + 6*len(e.Name)
		if size > room {
			if err := c.s.Message(part); err != nil {
				return err
			}
			part.Entries, room = nil, wire.MaxMessage-256
		}
		part.Entries = append(part.Entries, wire.NodeEntry{Name: wire.Text(e.Name), Ino: uint64(e.Ino), Mode: uint32(e.Mode)})
		room -= size
	}
	c.answer.Entries = part.Entries
	return nil
}

func (c *nodeCall) xattr(ino vfs.Ino) error {
	x, ok := c.t.fs.(vfs.Xattrs)
	if !ok {
		return syscall.EOPNOTSUPP
	}
	attr := string(c.r.Name)
	if len(attr) > vfs.MaxXattrName {
		return syscall.ERANGE
	}
	switch c.r.Op {
	case wire.NodeListXattr:
		names, err := x.ListXattr(c.ctx, ino)
		c.answer.Names = wire.Texts(names)
		return err
	case wire.NodeRemoveXattr:
		return x.RemoveXattr(c.ctx, ino, attr)
	case wire.NodeGetXattr:
		v, err := x.GetXattr(c.ctx, ino, attr)
		if err != nil {
			return err
		}
		return c.s.Data(wire.Output, v)
	}
	v, err := c.input(vfs.MaxXattrValue)
	if err != nil {
		return err
	}
	return x.SetXattr(c.ctx, ino, attr, v, c.r.Flags)
}

// input takes what the host sends, until it closes the channel.
func (c *nodeCall) input(most int) ([]byte, error) {
	var b []byte
	for {
		f, err := c.s.Recv()
		switch {
		case err != nil:
			return nil, err
		case f.Type == wire.Close:
			return b, nil
		case f.Type == wire.Data:
			if b = append(b, f.Payload...); len(b) > most {
				return nil, syscall.E2BIG
			}
		}
	}
}

func (c *nodeCall) open(ino vfs.Ino) error {
	h, err := c.t.fs.Open(c.ctx, ino, c.r.Flags&(vfs.O_ACCMODE|vfs.O_TRUNC|vfs.O_APPEND))
	if err != nil {
		return err
	}
	t := c.t
	t.mu.Lock()
	full := len(t.handles) >= maxHandles
	if !full {
		t.last++
		t.handles[t.last] = h
		c.answer.Handle = t.last
	}
	t.mu.Unlock()
	if full {
		return errors.Join(syscall.ENFILE, h.Close())
	}
	return nil
}

func (t *tree) close(id uint64) error {
	t.mu.Lock()
	h := t.handles[id]
	delete(t.handles, id)
	t.mu.Unlock()
	if h == nil {
		return syscall.EBADF
	}
	return h.Close()
}

// handle is an operation on an open file.
func (c *nodeCall) handle() error {
	r := c.r
	if r.Op == wire.HandleClose {
		return c.t.close(r.Handle)
	}
	c.t.mu.Lock()
	h := c.t.handles[r.Handle]
	c.t.mu.Unlock()
	if h == nil {
		return syscall.EBADF
	}
	switch r.Op {
	case wire.HandleRead:
		return c.read(h)
	case wire.HandleTruncate:
		return h.Truncate(r.Offset)
	case wire.HandleSync:
		return h.Sync(c.ctx)
	case wire.HandleAttr:
		return c.attr(h.Attr())
	}
	b, err := c.input(wire.MaxNode)
	if err != nil {
		return err
	}
	if r.Op == wire.HandleAppend {
		c.answer.N, err = h.Append(b)
		return err
	}
	if r.Offset < 0 {
		return syscall.EINVAL
	}
	n, err := h.WriteAt(b, r.Offset)
	c.answer.N = int64(n)
	return err
}

func (c *nodeCall) read(h vfs.Handle) error {
	if c.r.Offset < 0 || c.r.Count < 0 || c.r.Count > wire.MaxNode {
		return syscall.EINVAL
	}
	b := make([]byte, min(c.r.Count, wire.MaxData))
	for off, left := c.r.Offset, c.r.Count; left > 0; {
		n, err := h.ReadAt(b[:min(left, int64(len(b)))], off)
		if n > 0 {
			if err := c.s.Data(wire.Output, b[:n]); err != nil {
				return err
			}
		}
		off, left = off+int64(n), left-int64(n)
		if err == io.EOF || n == 0 {
			c.answer.End = true
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
