package git

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"

	"github.com/klauspost/compress/zlib"

	"agentrun.dev/vfs"
)

// maxIndexFile bounds a pack's index in memory; that is 9 million objects.
const maxIndexFile = 256 << 20

// maxChain bounds a chain of deltas.
const maxChain = 512

// Kinds of entries in packs besides those of objects.
const (
	ofsDelta kind = 6
	refDelta kind = 7
)

// pack is one pack file with its index.
type pack struct {
	idx     []byte
	n       int
	file    vfs.File
	path    string
	offsets map[int64]cachedObject // recently resolved, as delta bases
	bytes   int
}

var errPack = errors.New("malformed pack")

// loadPacks opens the indexes of all packs.
func (r *repo) loadPacks() {
	if r.packsLoaded {
		return
	}
	r.packsLoaded = true
	for _, dir := range r.objectDirs() {
		list, err := r.t.ReadDir(dir + "/pack")
		if err != nil {
			continue
		}
		sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
		for _, e := range list {
			base, ok := strings.CutSuffix(e.Name, ".idx")
			if !ok {
				continue
			}
			idx, err := r.t.ReadFile(dir+"/pack/"+e.Name, maxIndexFile)
			if err != nil {
				continue
			}
			r.need(2*cacheLimit + 2*int64(len(idx)))
			p := &pack{idx: idx, path: dir + "/pack/" + base + ".pack"}
			if p.check() {
				r.packs = append(r.packs, p)
			}
		}
	}
}

// check validates the index's frame: version 2 only.
func (p *pack) check() bool {
	if len(p.idx) < 8+1024+40 || string(p.idx[:8]) != "\xfftOc\x00\x00\x00\x02" {
		return false
	}
	p.n = int(binary.BigEndian.Uint32(p.idx[8+255*4:]))
	if p.n < 0 || len(p.idx) < 8+1024+p.n*28+40 {
		return false
	}
	last := 0
	for i := range 256 {
		v := int(binary.BigEndian.Uint32(p.idx[8+i*4:]))
		if v < last || v > p.n {
			return false
		}
		last = v
	}
	return true
}

func (p *pack) name(i int) []byte { return p.idx[8+1024+i*20:][:20] }

// span returns which names begin with a byte.
func (p *pack) span(first byte) (lo, hi int) {
	if first > 0 {
		lo = int(binary.BigEndian.Uint32(p.idx[8+(int(first)-1)*4:]))
	}
	return lo, int(binary.BigEndian.Uint32(p.idx[8+int(first)*4:]))
}

// find returns an object's place.
func (p *pack) find(id oid) (offset int64, ok bool) {
	lo, hi := p.span(id[0])
	i := lo + sort.Search(hi-lo, func(i int) bool { return bytes.Compare(p.name(lo+i), id[:]) >= 0 })
	if i >= hi || !bytes.Equal(p.name(i), id[:]) {
		return 0, false
	}
	return p.offset(i)
}

func (p *pack) offset(i int) (int64, bool) {
	at := 8 + 1024 + p.n*24
	v := binary.BigEndian.Uint32(p.idx[at+i*4:])
	if v&(1<<31) == 0 {
		return int64(v), true
	}
	at += p.n*4 + int(v&^(1<<31))*8
	if at+8 > len(p.idx)-40 {
		return 0, false
	}
	big := binary.BigEndian.Uint64(p.idx[at:])
	return int64(big), big < 1<<62
}

func (r *repo) inPack(id oid) bool {
	r.loadPacks()
	for _, p := range r.packs {
		if _, ok := p.find(id); ok {
			return true
		}
	}
	return false
}

func (r *repo) readPacked(id oid) (kind, []byte, error) {
	r.loadPacks()
	for _, p := range r.packs {
		if off, ok := p.find(id); ok {
			k, data, err := r.packEntry(p, off, 0)
			if err == nil && hashObject(k, data) != id {
				err = fmt.Errorf("%w: hash mismatch for %s", errPack, id)
			}
			return k, data, err
		}
	}
	return 0, nil, errMissing
}

// packEntry reads the object at an offset, resolving deltas.
func (r *repo) packEntry(p *pack, off int64, depth int) (kind, []byte, error) {
	r.step(1)
	if o, ok := p.offsets[off]; ok {
		return o.k, o.data, nil
	}
	if depth > maxChain {
		return 0, nil, fmt.Errorf("%w: delta chain too long", errPack)
	}
	if p.file == nil {
		f, err := r.t.Process.Open(p.path, vfs.O_RDONLY, 0)
		if err != nil {
			return 0, nil, err
		}
		p.file = f
	}
	in := bufio.NewReaderSize(io.NewSectionReader(p.file, off, 1<<62-off), 4096)
	h, err := readEntryHeader(in)
	if err != nil {
		return 0, nil, err
	}
	r.need(2*cacheLimit + 3*h.size)
	data, err := inflate(in, h.size)
	if err != nil {
		return 0, nil, err
	}
	k := h.kind
	switch h.kind {
	case ofsDelta:
		if h.back <= 0 || h.back >= off {
			return 0, nil, errPack
		}
		var base []byte
		if k, base, err = r.packEntry(p, off-h.back, depth+1); err == nil {
			data, err = r.rebuild(base, data)
		}
	case refDelta:
		var base []byte
		if at, ok := p.find(h.base); ok {
			k, base, err = r.packEntry(p, at, depth+1)
		} else {
			k, base, err = r.readObject(h.base)
		}
		if err == nil {
			data, err = r.rebuild(base, data)
		}
	}
	if err != nil {
		return 0, nil, err
	}
	p.keep(off, k, data)
	return k, data, nil
}

// rebuild applies a delta, accounting for what comes out.
func (r *repo) rebuild(base, delta []byte) ([]byte, error) {
	in := bytes.NewReader(delta)
	if _, err := binary.ReadUvarint(in); err != nil {
		return nil, errPack
	}
	to, err := binary.ReadUvarint(in)
	if err != nil || to > maxObject {
		return nil, errPack
	}
	r.need(2*cacheLimit + int64(len(base)+len(delta)) + 2*int64(to))
	return applyDelta(base, delta)
}

// keep remembers an object as a likely base of others.
func (p *pack) keep(off int64, k kind, data []byte) {
	if len(data) > cacheLimit/8 {
		return
	}
	if p.offsets == nil || p.bytes+len(data) > cacheLimit {
		p.offsets, p.bytes = make(map[int64]cachedObject), 0
	}
	p.offsets[off] = cachedObject{k, data}
	p.bytes += len(data) + 64
}

// entryHeader is what stands before an entry's deflated data.
type entryHeader struct {
	kind kind
	size int64
	back int64 // of ofsDelta: how far back the base is
	base oid   // of refDelta
}

func readEntryHeader(in io.ByteReader) (h entryHeader, err error) {
	c, err := in.ReadByte()
	if err != nil {
		return h, err
	}
	h.kind = kind(c >> 4 & 7)
	h.size = int64(c & 15)
	for shift := 4; c&0x80 != 0; shift += 7 {
		if c, err = in.ReadByte(); err != nil || shift > 50 {
			return h, errPack
		}
		h.size |= int64(c&0x7f) << shift
	}
	if h.size > maxObject {
		return h, fmt.Errorf("object of %d bytes: more than %d", h.size, maxObject)
	}
	switch h.kind {
	case commitObj, treeObj, blobObj, tagObj:
	case ofsDelta:
		for i := 0; ; i++ {
			if c, err = in.ReadByte(); err != nil || i > 8 {
				return h, errPack
			}
			h.back = h.back<<7 | int64(c&0x7f)
			if c&0x80 == 0 {
				break
			}
			h.back++
		}
	case refDelta:
		for i := range h.base {
			if h.base[i], err = in.ReadByte(); err != nil {
				return h, err
			}
		}
	default:
		return h, errPack
	}
	return h, nil
}

func inflate(in io.Reader, size int64) ([]byte, error) {
	z, err := zlib.NewReader(in)
	if err != nil {
		return nil, err
	}
	return readExactly(z, size)
}

// applyDelta rebuilds an object from its base.
func applyDelta(base, delta []byte) ([]byte, error) {
	in := bytes.NewReader(delta)
	from, err1 := binary.ReadUvarint(in)
	to, err2 := binary.ReadUvarint(in)
	if err1 != nil || err2 != nil || from != uint64(len(base)) || to > maxObject {
		return nil, errPack
	}
	d := delta[len(delta)-in.Len():]
	out := make([]byte, 0, min(to, 1<<20))
	for len(d) > 0 {
		op := d[0]
		d = d[1:]
		if op&0x80 == 0 {
			if op == 0 || int(op) > len(d) {
				return nil, errPack
			}
			out = append(out, d[:op]...)
			d = d[op:]
			continue
		}
		var off, n uint32
		for i := range 7 {
			if op&(1<<i) == 0 {
				continue
			}
			if len(d) == 0 {
				return nil, errPack
			}
			if i < 4 {
				off |= uint32(d[0]) << (8 * i)
			} else {
				n |= uint32(d[0]) << (8 * (i - 4))
			}
			d = d[1:]
		}
		if n == 0 {
			n = 0x10000
		}
		if uint64(off)+uint64(n) > uint64(len(base)) || uint64(len(out))+uint64(n) > to {
			return nil, errPack
		}
		out = append(out, base[off:off+n]...)
	}
	if uint64(len(out)) != to {
		return nil, errPack
	}
	return out, nil
}
