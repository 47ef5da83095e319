package fusefs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/vfs"
)

// What a written State begins with. Then follow, as unsigned varints and strings with their length before them, unless said
// otherwise: the filesystem's kind, the INIT request, the last handle, the number of nodes and the nodes (writer.node), that of
// handles and the handles (writer.handle), and four bytes of CRC32C over all before.
const stateMagic = "agentrun fusefs 1\n"

// Limits of what is read.
const (
	maxKind    = 256
	maxInit    = 256
	maxCount   = 1 << 62
	maxEntries = 1 << 20 // of all directories that are being listed; beyond, where a listing stands is lost
)

// Bits of a node.
const (
	nodeLost = 1 << iota
	nodeOrphan
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// MarshalBinary implements encoding.BinaryMarshaler. errs.Invalid: it isn't from Lasting.
func (st *State) MarshalBinary() ([]byte, error) {
	if !st.lasting {
		return nil, errs.Msg(errs.Invalid, "save files", "", "a state that doesn't last can't be saved")
	}
	size, entries := 1<<10, 0
	for i := range st.nodes {
		if size += 64 + len(st.nodes[i].name); st.nodes[i].orphan != nil {
			size += len(st.nodes[i].orphan.content)
		}
	}
	for i := range st.handles {
		entries += len(st.handles[i].list)
	}
	w := &writer{b: append(make([]byte, 0, size), stateMagic...), noLists: entries > maxEntries}
	w.str(st.kind)
	w.str(string(st.init))
	w.int(st.last)
	w.int(uint64(len(st.nodes)))
	for i := range st.nodes {
		w.node(&st.nodes[i])
	}
	w.int(uint64(len(st.handles)))
	for i := range st.handles {
		w.handle(&st.handles[i])
	}
	return binary.BigEndian.AppendUint32(w.b, crc32.Checksum(w.b, castagnoli)), nil
}

type writer struct {
	b       []byte
	noLists bool
}

func (w *writer) int(v uint64) { w.b = binary.AppendUvarint(w.b, v) }
func (w *writer) str(s string) { w.int(uint64(len(s))); w.b = append(w.b, s...) }

// node writes a node: number, inode, type, count, bits, directory and name; of an orphan mode, owner, time in signed nanoseconds
// and content.
func (w *writer) node(n *nodeState) {
	bits := uint64(0)
	if n.lost {
		bits |= nodeLost
	}
	if n.orphan != nil {
		bits |= nodeOrphan
	}
	for _, v := range []uint64{n.number, uint64(n.ino), uint64(n.mode), n.count, bits} {
		w.int(v)
	}
	if w.str(n.name); n.name != "" {
		w.int(n.dir)
	}
	if o := n.orphan; o != nil {
		w.int(uint64(o.mode))
		w.int(uint64(o.uid))
		w.int(uint64(o.gid))
		w.b = binary.AppendVarint(w.b, o.mtime.UnixNano())
		w.int(uint64(len(o.content)))
		w.b = append(w.b, o.content...)
	}
}

// handle writes a handle: number, node, flags, 1 for a directory, and one more than its listing has entries, 0 for none; of each
// entry name, inode and type.
func (w *writer) handle(h *handleState) {
	w.int(h.number)
	w.int(h.node)
	w.int(uint64(h.flags))
	dir := uint64(0)
	if h.dir {
		dir = 1
	}
	w.int(dir)
	if h.list == nil || w.noLists {
		w.int(0)
		return
	}
	w.int(uint64(len(h.list)) + 1)
	for _, e := range h.list {
		w.str(e.Name)
		w.int(uint64(e.Ino))
		w.int(uint64(e.Mode))
	}
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler: errs.Corrupt is what MarshalBinary didn't write.
func (st *State) UnmarshalBinary(b []byte) error {
	corrupt := func(err error) error { return errs.New(errs.Corrupt, "load files", "", err) }
	if len(b) < len(stateMagic)+4 || string(b[:len(stateMagic)]) != stateMagic {
		return errs.Msg(errs.Corrupt, "load files", "", "this isn't a saved state of version 1")
	}
	body := b[:len(b)-4]
	if binary.BigEndian.Uint32(b[len(body):]) != crc32.Checksum(body, castagnoli) {
		return corrupt(errors.New("checksum mismatch"))
	}
	r := &reader{b: body[len(stateMagic):]}
	got := State{lasting: true, kind: r.str(maxKind)}
	if init := r.str(maxInit); init != "" {
		got.init = []byte(init)
	}
	got.last = r.int()
	for range r.count(MaxNodes + MaxHandles) {
		got.nodes = append(got.nodes, r.node())
		if r.err != nil {
			return corrupt(r.err)
		}
	}
	for range r.count(MaxHandles) {
		got.handles = append(got.handles, r.handle())
		if r.err != nil {
			return corrupt(r.err)
		}
	}
	if r.err == nil && len(r.b) > 0 {
		r.err = errors.New("bytes after the end")
	}
	if r.err == nil {
		r.err = got.check()
	}
	if r.err != nil {
		return corrupt(r.err)
	}
	*st = got
	return nil
}

// reader reads values; after an error all are zero.
type reader struct {
	b       []byte
	entries int
	err     error
}

func (r *reader) fail(text string) {
	if r.err == nil {
		r.err = errors.New(text)
	}
	r.b = nil
}

func (r *reader) int() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail("a number is cut off")
		return 0
	}
	r.b = r.b[n:]
	return v
}

// most is int with a limit.
func (r *reader) most(limit uint64) uint64 {
	v := r.int()
	if v > limit {
		r.fail(fmt.Sprintf("%d where %d is the most", v, limit))
		return 0
	}
	return v
}

// count is how many of something follow, each of which takes a byte at least.
func (r *reader) count(limit int) int {
	return int(r.most(uint64(min(limit, len(r.b)))))
}

func (r *reader) bytes(limit int) []byte {
	n := r.most(uint64(limit))
	if n > uint64(len(r.b)) {
		r.fail("a string is cut off")
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) str(limit int) string { return string(r.bytes(limit)) }

// inoType reads a file's type.
func (r *reader) inoType() vfs.Mode {
	m := vfs.Mode(r.most(uint64(vfs.ModeType)))
	switch m {
	case vfs.ModeDir, vfs.ModeRegular, vfs.ModeSymlink, vfs.ModeFIFO, vfs.ModeSocket, vfs.ModeChar, vfs.ModeBlock, 0:
	default:
		r.fail("an unknown type of file")
	}
	return m
}

func (r *reader) node() nodeState {
	n := nodeState{number: r.int(), ino: vfs.Ino(r.int()), mode: r.inoType(), count: r.most(maxCount)}
	bits := r.most(nodeLost | nodeOrphan)
	n.lost = bits&nodeLost != 0
	if n.name = r.str(vfs.MaxPath - 1); n.name != "" {
		n.dir = r.int()
	}
	if bits&nodeOrphan != 0 {
		o := &orphan{mode: vfs.Mode(r.most(uint64(vfs.ModePerm))), uid: uint32(r.most(1<<32 - 1)), gid: uint32(r.most(1<<32 - 1))}
		nano, size := binary.Varint(r.b)
		if size <= 0 {
			r.fail("a time is cut off")
			return n
		}
		r.b = r.b[size:]
		o.mtime = time.Unix(0, nano)
		o.content = append([]byte{}, r.bytes(MaxContent)...)
		n.orphan = o
	}
	return n
}

func (r *reader) handle() handleState {
	h := handleState{number: r.int(), node: r.int(), flags: int(r.most(openFlags)), dir: r.most(1) == 1}
	count := r.most(maxEntries + 1)
	if count == 0 {
		return h
	}
	if r.entries += int(count) - 1; r.entries > maxEntries || int(count)-1 > len(r.b) {
		r.fail("too many entries of directories")
		return h
	}
	h.list = make([]vfs.DirEntry, 0, count-1)
	for range count - 1 {
		h.list = append(h.list, vfs.DirEntry{Name: r.str(vfs.MaxName), Ino: vfs.Ino(r.int()), Mode: r.inoType()})
	}
	return h
}

// check makes sure of what Restore relies on.
func (st *State) check() error {
	if n := len(st.init); n > 0 && (n < 48 || binary.LittleEndian.Uint32(st.init) != uint32(n) || binary.LittleEndian.Uint32(st.init[4:]) != opInit) {
		return errors.New("no INIT request")
	}
	contents := 0
	for i := range st.nodes {
		n := &st.nodes[i]
		if i > 0 && n.number <= st.nodes[i-1].number || n.number <= 1 || n.number == libraryNode {
			return fmt.Errorf("node %d is out of order", n.number)
		}
		if err := n.check(); err != nil {
			return fmt.Errorf("node %d: %w", n.number, err)
		}
		if n.orphan != nil {
			contents += len(n.orphan.content)
		}
	}
	if contents > MaxContent {
		return fmt.Errorf("files without a name have %d bytes", contents)
	}
	for i := range st.handles {
		h := &st.handles[i]
		if i > 0 && h.number <= st.handles[i-1].number || h.number == 0 || h.number > st.last {
			return fmt.Errorf("handle %d is out of order", h.number)
		}
		if h.flags&vfs.O_ACCMODE == vfs.O_ACCMODE || h.dir && h.flags != 0 || !h.dir && h.list != nil {
			return fmt.Errorf("handle %d has flags %#x", h.number, h.flags)
		}
		if h.node > 1 && st.node(h.node) == nil {
			return fmt.Errorf("handle %d of an unknown node", h.number)
		}
		for _, e := range h.list {
			if err := checkName(e.Name); err != nil && e.Name != "." && e.Name != ".." {
				return fmt.Errorf("handle %d: a name: %w", h.number, err)
			}
		}
	}
	return nil
}

func (n *nodeState) check() error {
	switch {
	case n.orphan != nil && (n.name != "" || n.mode != vfs.ModeRegular || n.lost):
		return errors.New("it can't have a content")
	case n.name == "":
		return nil
	case strings.Contains(n.name, "/") && n.dir != 1:
		return syscall.EINVAL
	}
	for _, name := range strings.Split(n.name, "/") {
		if err := checkName(name); err != nil {
			return err
		}
	}
	return nil
}
