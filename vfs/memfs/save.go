package memfs

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/vfs"
)

// What a saved filesystem begins with. Then follow, as unsigned varints unless said otherwise: the next inode number, the
// number of inodes, the inodes in the order of their numbers (see saver.node), and four bytes of CRC32C over all before.
const saveMagic = "agentrun memfs 1\n"

// maxString bounds names, link targets and attribute values in what Load reads.
const maxString = vfs.MaxXattrValue

// Save writes the whole tree, to be read by Load. Inodes keep their numbers; unlinked ones that are open are among them.
func (f *FS) Save(w io.Writer) error {
	c := f.Clone() // writing takes long: nobody shall wait for it
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	buf := bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<16)
	s := saver{w: buf}
	buf.WriteString(saveMagic)
	s.int(uint64(c.next))
	s.int(uint64(len(c.nodes)))
	for _, ino := range slices.Sorted(maps.Keys(c.nodes)) {
		s.node(c.nodes[ino])
	}
	if err := buf.Flush(); err != nil {
		return errs.New(errs.Other, "save memfs", "", err)
	}
	_, err := w.Write(binary.BigEndian.AppendUint32(nil, sum.Sum32()))
	return err
}

// saver writes values; the first error stays in the writer.
type saver struct {
	w   *bufio.Writer
	tmp [binary.MaxVarintLen64]byte
}

func (s *saver) int(v uint64)     { s.w.Write(binary.AppendUvarint(s.tmp[:0], v)) }
func (s *saver) time(t time.Time) { s.w.Write(binary.AppendVarint(s.tmp[:0], t.UnixNano())) }
func (s *saver) bytes(b []byte)   { s.int(uint64(len(b))); s.w.Write(b) }
func (s *saver) str(v string)     { s.int(uint64(len(v))); s.w.WriteString(v) }

// node writes an inode: attributes, parent, link, extended attributes, children, pages.
func (s *saver) node(n *node) {
	a := n.attr
	for _, v := range []uint64{uint64(a.Ino), uint64(a.Mode), uint64(a.Nlink), uint64(a.UID), uint64(a.GID), a.Rdev, uint64(a.Size), uint64(n.parent)} {
		s.int(v)
	}
	s.time(a.Atime)
	s.time(a.Mtime)
	s.time(a.Ctime)
	s.str(n.link)
	s.int(uint64(len(n.xattrs)))
	for _, k := range slices.Sorted(maps.Keys(n.xattrs)) {
		s.str(k)
		s.bytes(n.xattrs[k])
	}
	s.int(uint64(len(n.children)))
	for _, k := range slices.Sorted(maps.Keys(n.children)) {
		s.str(k)
		s.int(uint64(n.children[k]))
	}
	s.int(uint64(len(n.pages)))
	for _, p := range n.pages {
		s.bytes(p.b)
	}
}

// Load returns the filesystem that Save wrote. Options bound it as they bound New; Mode, UID and GID are those of the saved
// root. What is damaged or too large is errs.Corrupt or errs.Limit.
func Load(r io.Reader, o Options) (*FS, error) {
	f := New(o)
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	l := &loader{r: bufio.NewReaderSize(r, 1<<16), sum: sum}
	if magic := l.take(len(saveMagic)); l.err == nil && string(magic) != saveMagic {
		return nil, errs.Msg(errs.Corrupt, "load memfs", "", "this isn't a saved filesystem of version 1")
	}
	next, count := l.int(), l.int()
	if l.err == nil && count > uint64(f.opt.Inodes)+1 {
		return nil, errs.Msg(errs.Limit, "load memfs", "", fmt.Sprintf("%d inodes; %d are allowed", count, f.opt.Inodes))
	}
	nodes := make(map[vfs.Ino]*node)
	f.used = 0
	for i := uint64(0); i < count && l.err == nil; i++ {
		n := l.node(f)
		nodes[n.attr.Ino] = n
	}
	want := sum.Sum32()
	if tail := l.take(4); l.err == nil && binary.BigEndian.Uint32(tail) != want {
		l.err = errors.New("checksum mismatch")
	}
	if l.err == nil {
		l.err = check(nodes, vfs.Ino(next))
	}
	if errs.Is(l.err, errs.Limit) {
		return nil, l.err
	}
	if l.err != nil {
		return nil, errs.New(errs.Corrupt, "load memfs", "", l.err)
	}
	f.nodes, f.next = nodes, vfs.Ino(next)
	return f, nil
}

// check makes sure that what the methods rely on holds.
func check(nodes map[vfs.Ino]*node, next vfs.Ino) error {
	if root := nodes[rootIno]; root == nil || !root.attr.Mode.IsDir() {
		return errors.New("no root")
	}
	for ino, n := range nodes {
		if ino == 0 || ino >= next {
			return fmt.Errorf("inode %d beyond the last", ino)
		}
		if !n.attr.Mode.IsDir() {
			if len(n.children) > 0 {
				return fmt.Errorf("inode %d has entries and is no directory", ino)
			}
			continue
		}
		if p := nodes[n.parent]; p == nil || !p.attr.Mode.IsDir() {
			if n.attr.Nlink > 0 {
				return fmt.Errorf("directory %d has no parent", ino)
			}
			n.parent = rootIno
		}
		for name, child := range n.children {
			if nodes[child] == nil || name == "" {
				return fmt.Errorf("directory %d names what isn't there", ino)
			}
		}
	}
	return nil
}

// loader reads values; after an error all are zero.
type loader struct {
	r   *bufio.Reader
	sum hash.Hash32
	err error
}

// ReadByte implements io.ByteReader for varints.
func (l *loader) ReadByte() (byte, error) {
	b, err := l.r.ReadByte()
	if err == nil {
		l.sum.Write([]byte{b})
	}
	return b, err
}

func (l *loader) fail(err error) {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	l.err = cmp.Or(l.err, err)
}

func (l *loader) int() uint64 {
	if l.err != nil {
		return 0
	}
	v, err := binary.ReadUvarint(l)
	if err != nil {
		l.fail(err)
		return 0
	}
	return v
}

func (l *loader) time() time.Time {
	if l.err != nil {
		return time.Time{}
	}
	v, err := binary.ReadVarint(l)
	if err != nil {
		l.fail(err)
	}
	return time.Unix(0, v)
}

func (l *loader) take(n int) []byte {
	if l.err != nil {
		return nil
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(l.r, b); err != nil {
		l.fail(err)
		return nil
	}
	l.sum.Write(b)
	return b
}

// bytes reads a string of at most limit bytes.
func (l *loader) bytes(limit uint64) []byte {
	n := l.int()
	if n > limit {
		l.fail(fmt.Errorf("%d bytes where %d are the most", n, limit))
		return nil
	}
	return l.take(int(n))
}

// count reads how many of something follow: each takes a byte at least, so that a false number ends at the end of the data.
func (l *loader) count(limit int) int {
	n := l.int()
	if n > uint64(limit) {
		l.fail(fmt.Errorf("%d of what %d are the most", n, limit))
		return 0
	}
	return int(n)
}

func (l *loader) node(f *FS) *node {
	n := &node{}
	a := &n.attr
	a.Ino, a.Mode, a.Nlink, a.UID, a.GID, a.Rdev = vfs.Ino(l.int()), vfs.Mode(l.int()), uint32(l.int()), uint32(l.int()), uint32(l.int()), l.int()
	size, parent := l.int(), l.int()
	if size > maxSize {
		l.fail(fmt.Errorf("a file of %d bytes", size))
	}
	a.Size, n.parent = int64(size), vfs.Ino(parent)
	a.Atime, a.Mtime, a.Ctime = l.time(), l.time(), l.time()
	n.link = string(l.bytes(maxString))
	for range l.count(1 << 16) {
		if n.xattrs == nil {
			n.xattrs = map[string][]byte{}
		}
		k := string(l.bytes(vfs.MaxXattrName))
		n.xattrs[k] = l.bytes(maxString)
	}
	if a.Mode.IsDir() {
		n.children = map[string]vfs.Ino{}
	}
	for range l.count(f.opt.Inodes * 8) {
		if l.err != nil {
			break
		}
		k := string(l.bytes(vfs.MaxName))
		if n.children != nil {
			n.children[k] = vfs.Ino(l.int())
		} else {
			l.fail(errors.New("entries in what is no directory"))
		}
	}
	l.pages(f, n)
	return n
}

// pages reads a file's contents, within the filesystem's limit.
func (l *loader) pages(f *FS, n *node) {
	count := l.count(int((n.attr.Size + pageSize - 1) / pageSize))
	for range count {
		b := l.bytes(pageSize)
		if l.err != nil {
			return
		}
		if f.used+int64(len(b)) > f.opt.Bytes {
			l.err = errs.Msg(errs.Limit, "load memfs", "", fmt.Sprintf("more than the allowed %d bytes", f.opt.Bytes))
			return
		}
		f.account(n, int64(len(b)))
		n.pages = append(n.pages, page{b, f.token})
	}
}

// PathOf implements vfs.Pather. For files it looks through all directories.
func (f *FS) PathOf(_ context.Context, ino vfs.Ino) (string, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	path, n := "", f.nodes[ino]
	if n == nil || n.attr.Nlink == 0 {
		return "", false
	}
	for depth := 0; ino != rootIno; depth++ {
		name, parent, ok := f.nameOf(ino)
		if !ok || depth > len(f.nodes) {
			return "", false
		}
		if path == "" {
			path = name
		} else {
			path = name + "/" + path
		}
		ino = parent
	}
	return path, true
}

// nameOf returns the first name of an inode, and the directory that has it.
func (f *FS) nameOf(ino vfs.Ino) (name string, parent vfs.Ino, ok bool) {
	search := func(d *node) bool {
		for k, c := range d.children {
			if c == ino && (name == "" || k < name) {
				name, parent, ok = k, d.attr.Ino, true
			}
		}
		return ok
	}
	if n := f.nodes[ino]; n.attr.Mode.IsDir() {
		if d := f.nodes[n.parent]; d != nil {
			search(d)
		}
		return name, parent, ok
	}
	for _, d := range slices.Sorted(maps.Keys(f.nodes)) {
		if search(f.nodes[d]) {
			break
		}
	}
	return name, parent, ok
}
