// Package erofs writes read-only filesystem images for Linux's EROFS: roots of VMs, which any number of them share.
//
// The format is that of the kernel's Documentation/filesystems/erofs.rst and fs/erofs/erofs_fs.h, without compression: file data in
// blocks of 4 KiB from block 1 on, in the order in which it comes; then the inodes. What is small stands behind its inode. An image
// depends on what was put in and on nothing else.
package erofs

import (
	"encoding/binary"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"agentrun.dev/errs"
)

const (
	block      = 4096
	inodeSize  = 64 // the extended form
	slot       = 32 // the unit of inode numbers
	magic      = 0xE0F5E1E2
	superAt    = 1024
	plain      = 0 // layouts of data: in blocks of its own
	inline     = 2 // behind the inode
	maxInline  = 2048
	direntSize = 12
)

// Limits.
const (
	MaxEntries = 4 << 20
	maxName    = 255
	maxTarget  = 4095
	maxBlocks  = 1<<32 - 2
)

// The types of a file in its mode.
const (
	typeFIFO    = 0o010000
	typeDir     = 0o040000
	typeFile    = 0o100000
	typeSymlink = 0o120000
)

// Meta is what a file has beside its content.
type Meta struct {
	Perm     uint32 // with the set-id and sticky bits
	UID, GID uint32
	MTime    time.Time
}

// Writer collects a tree. Parents of what is put in are made as they are needed, 0755 root's; later entries replace earlier ones, but a folder that
// something is in stays one. It isn't safe for concurrent use.
type Writer struct {
	w       io.WriterAt
	blocks  int64 // that are written, with the first
	root    *node
	entries int
	links   []link
	max     int64
}

// node is a file of the tree; hard links share one.
type node struct {
	mode     uint32
	meta     Meta
	size     int64
	start    int64 // first block; unused if data is inline
	data     []byte
	children map[string]*node
	names    int
	// Of the layout:
	at     int64 // from the beginning of the inodes
	parent *node
	dir    []byte
}

type link struct{ name, target string }

// NewWriter returns a writer of an image of at most max bytes; 0 is 16 TiB.
func NewWriter(w io.WriterAt, max int64) *Writer {
	if max <= 0 || max > maxBlocks*block {
		max = maxBlocks * block
	}
	return &Writer{w: w, blocks: 1, max: max, root: newDir()}
}

func newDir() *node {
	return &node{mode: typeDir, meta: Meta{Perm: 0o755}, children: make(map[string]*node)}
}

// Dir adds a folder, or says what one has.
func (w *Writer) Dir(name string, m Meta) error {
	if clean(name) == "" {
		w.root.meta = m
		return nil
	}
	parent, base, err := w.place(name)
	if err != nil {
		return err
	}
	n := parent.children[base]
	if n == nil || n.mode != typeDir {
		n = newDir()
		parent.children[base] = n
	}
	n.meta = m
	return nil
}

// File adds a file of size bytes, which are read from r.
func (w *Writer) File(name string, m Meta, size int64, r io.Reader) error {
	n := &node{mode: typeFile, meta: m, size: size}
	if size < 0 || size > w.max-w.blocks*block {
		return errs.Msg(errs.TooLarge, "image", name, "the image is larger than it may be")
	}
	if size <= maxInline {
		n.data = make([]byte, size)
		if _, err := io.ReadFull(r, n.data); err != nil {
			return errs.New(errs.Corrupt, "image", name, err)
		}
		return w.put(name, n)
	}
	n.start = w.blocks
	copied, err := io.CopyN(&offset{w.w, w.blocks * block}, r, size)
	if err != nil {
		return errs.New(errs.Corrupt, "image", name, err)
	}
	w.blocks += (copied + block - 1) / block
	return w.put(name, n)
}

// Symlink adds a symbolic link.
func (w *Writer) Symlink(name, target string, m Meta) error {
	if target == "" || len(target) > maxTarget || strings.ContainsRune(target, 0) {
		return errs.Msg(errs.Invalid, "image", name, "the target of a link has 1 to 4095 bytes")
	}
	m.Perm = 0o777
	return w.put(name, &node{mode: typeSymlink, meta: m, size: int64(len(target)), data: []byte(target)})
}

// FIFO adds a named pipe.
func (w *Writer) FIFO(name string, m Meta) error {
	return w.put(name, &node{mode: typeFIFO, meta: m})
}

// Link adds another name of a file, which may come later.
func (w *Writer) Link(name, target string) error {
	if _, _, err := w.place(name); err != nil {
		return err
	}
	w.links = append(w.links, link{name, target})
	return nil
}

func clean(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

// place finds the folder that a name belongs into.
func (w *Writer) place(name string) (*node, string, error) {
	if w.entries++; w.entries > MaxEntries {
		return nil, "", errs.Msg(errs.Limit, "image", name, "more files than an image may have")
	}
	full := clean(name)
	if full == "" || len(full) > maxTarget || strings.ContainsRune(full, 0) {
		return nil, "", errs.Msg(errs.Invalid, "image", name, "no path of a file")
	}
	at := w.root
	parts := strings.Split(full, "/")
	for i, part := range parts {
		if len(part) > maxName {
			return nil, "", errs.Msg(errs.Invalid, "image", name, "a name has at most 255 bytes")
		}
		if i == len(parts)-1 {
			return at, part, nil
		}
		next := at.children[part]
		if next == nil || next.mode != typeDir {
			if w.entries++; w.entries > MaxEntries {
				return nil, "", errs.Msg(errs.Limit, "image", name, "more files than an image may have")
			}
			next = newDir()
			at.children[part] = next
		}
		at = next
	}
	return at, "", nil // not reached: there is at least one part
}

func (w *Writer) put(name string, n *node) error {
	parent, base, err := w.place(name)
	if err != nil {
		return err
	}
	if old := parent.children[base]; old != nil && old.mode == typeDir && len(old.children) > 0 {
		return nil
	}
	parent.children[base] = n
	return nil
}

// Close writes the inodes and the superblock. It returns the image's size.
func (w *Writer) Close() (int64, error) {
	for _, l := range w.links {
		target := w.find(l.target)
		if target == nil || target.mode == typeDir {
			return 0, errs.Msg(errs.Corrupt, "image", l.name, "a link to a file that isn't there: "+l.target)
		}
		if err := w.put(l.name, target); err != nil {
			return 0, err
		}
	}
	nodes, size := w.layout()
	if w.max-w.blocks*block < size {
		return 0, errs.Msg(errs.TooLarge, "image", "", "the image is larger than it may be")
	}
	meta := w.blocks
	out := &offset{w.w, meta * block}
	var at int64
	for i, n := range nodes {
		if n.mode == typeDir {
			w.fill(n)
		}
		if _, err := out.Write(make([]byte, n.at-at)); err != nil {
			return 0, errs.New(errs.Other, "image", "", err)
		}
		b := n.inode(uint32(i + 1))
		if _, err := out.Write(b); err != nil {
			return 0, errs.New(errs.Other, "image", "", err)
		}
		at = n.at + int64(len(b))
	}
	// Folders that don't fit behind their inodes have blocks after all inodes.
	end := (at + block - 1) / block * block
	if _, err := out.Write(make([]byte, end-at)); err != nil {
		return 0, errs.New(errs.Other, "image", "", err)
	}
	for _, n := range nodes {
		if n.mode == typeDir && n.size > maxInline {
			if _, err := out.Write(append(n.dir, make([]byte, -len(n.dir)&(block-1))...)); err != nil {
				return 0, errs.New(errs.Other, "image", "", err)
			}
		}
	}
	return out.at, w.super(len(nodes), meta, out.at/block)
}

func (w *Writer) find(name string) *node {
	at := w.root
	for part := range strings.SplitSeq(clean(name), "/") {
		if at = at.children[part]; at == nil {
			return nil
		}
	}
	return at
}

// layout gives each file its place among the inodes: the root is the first, whose number has 16 bits only.
func (w *Writer) layout() (nodes []*node, size int64) {
	seen := make(map[*node]bool)
	var at int64
	var folders []*node
	add := func(n, parent *node) {
		n.names++
		if seen[n] {
			return
		}
		seen[n] = true
		n.parent = parent
		if n.mode == typeDir {
			n.size = dirSize(n)
			folders = append(folders, n)
		}
		need := int64(inodeSize)
		if n.size <= maxInline {
			need += n.size
		}
		if at%block+need > block {
			at = (at + block - 1) / block * block
		}
		n.at = at
		at = (at + need + slot - 1) / slot * slot
		nodes = append(nodes, n)
	}
	add(w.root, w.root)
	for len(folders) > 0 {
		n := folders[0]
		folders = folders[1:]
		for _, name := range sorted(n) {
			add(n.children[name], n)
		}
	}
	// Large folders follow.
	end := (at + block - 1) / block
	for _, n := range nodes {
		if n.mode == typeDir && n.size > maxInline {
			n.start = w.blocks + end
			end += (n.size + block - 1) / block
		}
	}
	return nodes, end * block
}

func sorted(n *node) []string {
	names := make([]string, 0, len(n.children))
	for name := range n.children {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// listed are a folder's names in the order that the kernel searches: "." and ".." stand among the others.
func listed(n *node) []string {
	names := append(sorted(n), ".", "..")
	slices.Sort(names)
	return names
}

// dirSize is how many bytes a folder's entries take: each block of them is filled as far as whole entries go.
func dirSize(n *node) (size int64) {
	used := 0
	for _, name := range listed(n) {
		if used+direntSize+len(name) > block {
			size += block
			used = 0
		}
		used += direntSize + len(name)
	}
	return size + int64(used)
}

// fill makes a folder's entries.
func (w *Writer) fill(n *node) {
	var part []string
	used := 0
	flush := func(last bool) {
		at := len(part) * direntSize
		var heads, names []byte
		for _, name := range part {
			target := n.children[name]
			switch name {
			case ".":
				target = n
			case "..":
				target = n.parent
			}
			heads = binary.LittleEndian.AppendUint64(heads, uint64(target.at/slot))
			heads = binary.LittleEndian.AppendUint16(heads, uint16(at+len(names)))
			heads = append(heads, fileType(target.mode), 0)
			names = append(names, name...)
		}
		n.dir = append(append(n.dir, heads...), names...)
		if !last {
			n.dir = append(n.dir, make([]byte, -len(n.dir)&(block-1))...)
		}
		part, used = part[:0], 0
	}
	for _, name := range listed(n) {
		if used+direntSize+len(name) > block {
			flush(false)
		}
		part = append(part, name)
		used += direntSize + len(name)
	}
	flush(true)
}

func fileType(mode uint32) byte {
	switch mode {
	case typeFile:
		return 1
	case typeDir:
		return 2
	case typeFIFO:
		return 5
	case typeSymlink:
		return 7
	}
	return 0
}

// inode encodes struct erofs_inode_extended, and what stands behind it.
func (n *node) inode(number uint32) []byte {
	layout, start, tail := uint16(plain), uint32(n.start), []byte(nil)
	if n.size == 0 {
		start = 0xffffffff
	} else if n.size <= maxInline {
		layout, start, tail = inline, 0xffffffff, n.data
		if n.mode == typeDir {
			tail = n.dir
		}
	}
	links := n.names
	if n.mode == typeDir {
		links = 2
		for _, c := range n.children {
			if c.mode == typeDir {
				links++
			}
		}
	}
	mtime := n.meta.MTime
	if mtime.IsZero() {
		mtime = time.Unix(0, 0)
	}
	b := binary.LittleEndian.AppendUint16(nil, 1|layout<<1) // 1: extended
	b = binary.LittleEndian.AppendUint16(b, 0)              // no extended attributes
	b = binary.LittleEndian.AppendUint16(b, uint16(n.mode|n.meta.Perm&0o7777))
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(n.size))
	b = binary.LittleEndian.AppendUint32(b, start)
	b = binary.LittleEndian.AppendUint32(b, number)
	b = binary.LittleEndian.AppendUint32(b, n.meta.UID)
	b = binary.LittleEndian.AppendUint32(b, n.meta.GID)
	b = binary.LittleEndian.AppendUint64(b, uint64(mtime.Unix()))
	b = binary.LittleEndian.AppendUint32(b, uint32(mtime.Nanosecond()))
	b = binary.LittleEndian.AppendUint32(b, uint32(links))
	return append(append(b, make([]byte, inodeSize-len(b))...), tail...)
}

// super writes struct erofs_super_block, and thereby the first block.
func (w *Writer) super(inodes int, meta, blocks int64) error {
	b := binary.LittleEndian.AppendUint32(make([]byte, superAt, block), magic)
	b = binary.LittleEndian.AppendUint32(b, 0) // checksum, which no feature asks for
	b = binary.LittleEndian.AppendUint32(b, 0) // compatible features
	b = append(b, 12, 0)                       // 2^12 bytes a block; no extensions
	b = binary.LittleEndian.AppendUint16(b, uint16(w.root.at/slot))
	b = binary.LittleEndian.AppendUint64(b, uint64(inodes))
	b = binary.LittleEndian.AppendUint64(b, 0) // build time
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(blocks))
	b = binary.LittleEndian.AppendUint32(b, uint32(meta))
	b = append(b, make([]byte, block-len(b))...)
	if _, err := w.w.WriteAt(b, 0); err != nil {
		return errs.New(errs.Other, "image", "", err)
	}
	return nil
}

// offset writes one after the other from a place on.
type offset struct {
	w  io.WriterAt
	at int64
}

func (o *offset) Write(b []byte) (int, error) {
	n, err := o.w.WriteAt(b, o.at)
	o.at += int64(n)
	return n, err
}
