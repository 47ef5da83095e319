package git

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sort"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/klauspost/compress/zlib"

	"agentrun.dev/vfs"
)

// maxPackObjects bounds a pack from outside.
const maxPackObjects = 5_000_000

// Deltas are looked for among this many objects before, of at most this size, in chains of at most this length.
const (
	deltaWindow = 6
	deltaSize   = 4 << 20
	deltaDepth  = 50
)

// packed is an object in the window of deltas.
type packedObject struct {
	k      kind
	data   []byte
	offset int64
	depth  int
}

// writePack writes objects as a pack, similar ones as differences to each other.
func (r *repo) writePack(w io.Writer, ids []oid) error {
	h := sha1.New()
	out := &countWriter{w: io.MultiWriter(w, h)}
	var head [12]byte
	copy(head[:], "PACK")
	binary.BigEndian.PutUint32(head[4:], 2)
	binary.BigEndian.PutUint32(head[8:], uint32(len(ids)))
	if _, err := out.Write(head[:]); err != nil {
		return err
	}
	order, err := r.packOrder(ids)
	if err != nil {
		return err
	}
	z := zlib.NewWriter(io.Discard)
	var window []packedObject
	for _, id := range order {
		k, data, err := r.readObject(id)
		if err != nil {
			return fmt.Errorf("unable to read %s: %w", id, err)
		}
		r.step(1 + len(data)>>14)
		o := packedObject{k: k, data: data, offset: out.n}
		base, delta := bestDelta(window, &o)
		head := entryHead(k, len(data))
		body := data
		if base != nil {
			head = append(entryHead(ofsDelta, len(delta)), offsetBytes(o.offset-base.offset)...)
			body, o.depth = delta, base.depth+1
		}
		if _, err := out.Write(head); err != nil {
			return err
		}
		z.Reset(out)
		if _, err := z.Write(body); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		if len(data) <= deltaSize {
			if len(window) == deltaWindow {
				window = append(window[:0], window[1:]...)
			}
			window = append(window, o)
		}
	}
	_, err = w.Write(h.Sum(nil))
	return err
}

// countWriter counts what is written.
type countWriter struct {
	w io.Writer
	n int64
}

func (c *countWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// packOrder puts objects of a kind together, large ones first, so that similar ones are near.
func (r *repo) packOrder(ids []oid) ([]oid, error) {
	type item struct {
		id   oid
		k    kind
		size int
	}
	list := make([]item, len(ids))
	for i, id := range ids {
		k, data, err := r.readObject(id)
		if err != nil {
			return nil, fmt.Errorf("unable to read %s: %w", id, err)
		}
		list[i] = item{id, k, len(data)}
	}
	sort.SliceStable(list, func(i, j int) bool {
		a, b := list[i], list[j]
		if a.k != b.k {
			return a.k < b.k
		}
		return a.k != commitObj && a.size > b.size
	})
	out := make([]oid, len(list))
	for i := range list {
		out[i] = list[i].id
	}
	return out, nil
}

// bestDelta finds the object of the window from which o differs least; nil if writing it whole is better.
func bestDelta(window []packedObject, o *packedObject) (base *packedObject, delta []byte) {
	if len(o.data) < 64 || len(o.data) > deltaSize || o.k == tagObj {
		return nil, nil
	}
	limit := len(o.data) / 2
	for i := len(window) - 1; i >= 0; i-- {
		c := &window[i]
		if c.k != o.k || c.depth >= deltaDepth || len(c.data) < len(o.data)/4 || len(c.data) > len(o.data)*8 {
			continue
		}
		if d := packfile.DiffDelta(c.data, o.data); len(d) < limit {
			base, delta, limit = c, d, len(d)
		}
	}
	return base, delta
}

// entryHead is what stands before an entry's data.
func entryHead(k kind, n int) []byte {
	b := []byte{byte(k)<<4 | byte(n&15)}
	for n >>= 4; n > 0; n >>= 7 {
		b[len(b)-1] |= 0x80
		b = append(b, byte(n&0x7f))
	}
	return b
}

// offsetBytes is how far back a delta's base is.
func offsetBytes(n int64) []byte {
	b := []byte{byte(n & 0x7f)}
	for n >>= 7; n > 0; n >>= 7 {
		n--
		b = append([]byte{byte(n&0x7f) | 0x80}, b...)
	}
	return b
}

// packedEntry is one entry of a pack that is being indexed.
type packedEntry struct {
	id     oid
	offset int64
	crc    uint32
	done   bool
	h      entryHeader
}

// counting counts, hashes and checksums what is read; it reads bytes one by one for headers, so it is buffered beneath.
type counting struct {
	in  *bufio.Reader
	n   int64
	crc uint32 // of what was settled since it was set to 0
	sum io.Writer
	out *bufio.Writer
	buf []byte // read but not settled
	err error
}

func (c *counting) note(b []byte) {
	c.n += int64(len(b))
	if c.buf = append(c.buf, b...); len(c.buf) > 32<<10 {
		c.settle()
	}
}

// settle passes on what was read.
func (c *counting) settle() {
	c.crc = crc32.Update(c.crc, crc32.IEEETable, c.buf)
	c.sum.Write(c.buf)
	if _, err := c.out.Write(c.buf); err != nil && c.err == nil {
		c.err = err
	}
	c.buf = c.buf[:0]
}

func (c *counting) ReadByte() (byte, error) {
	b, err := c.in.ReadByte()
	if err == nil {
		c.n++
		c.buf = append(c.buf, b)
	}
	return b, err
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.note(p[:n])
	return n, err
}

// receivePack stores a pack that comes from outside, checks and indexes it. Objects that thin deltas rest on are appended.
func (r *repo) receivePack(in io.Reader) (objects int, err error) {
	dir := r.common + "/objects/pack"
	if err := r.t.Mkdir(dir, 0o777); err != nil && !errors.Is(err, syscall.EEXIST) {
		return 0, err
	}
	name, f, err := r.t.TempFile(dir, "tmp_pack_", 0o444)
	if err != nil {
		return 0, err
	}
	keep := false
	defer func() {
		f.Close()
		if !keep {
			r.t.Unlink(name)
		}
	}()
	sum := sha1.New()
	c := &counting{in: bufio.NewReaderSize(in, 64<<10), sum: sum, out: bufio.NewWriterSize(f, 64<<10)}
	entries, err := r.scanPack(c)
	if err != nil {
		return 0, err
	}
	c.settle()
	if err := c.out.Flush(); c.err == nil {
		c.err = err
	}
	if c.err != nil {
		return 0, c.err
	}
	if len(entries) == 0 {
		return 0, nil
	}
	want := sum.Sum(nil)
	got := make([]byte, 20)
	if _, err := io.ReadFull(c.in, got); err != nil || !bytes.Equal(got, want) {
		return 0, fmt.Errorf("%w: checksum mismatch", errPack)
	}
	p := &pack{file: f, path: name}
	objects = len(entries)
	if entries, err = r.resolvePack(p, entries, c.n); err != nil {
		return 0, err
	}
	trailer, err := sealPack(f, len(entries))
	if err != nil {
		return 0, err
	}
	idx := encodePackIndex(entries, trailer)
	base := fmt.Sprintf("%s/pack-%x", dir, trailer)
	if err := r.writeFile(base+".idx", idx, 0o444); err != nil {
		return 0, err
	}
	if err := r.t.Rename(name, base+".pack", 0); err != nil {
		return 0, err
	}
	keep = true
	r.packs, r.packsLoaded = nil, false
	return objects, nil
}

// scanPack reads all entries, without resolving deltas.
func (r *repo) scanPack(c *counting) ([]packedEntry, error) {
	var head [12]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[8:])
	if string(head[:4]) != "PACK" || binary.BigEndian.Uint32(head[4:]) != 2 || n > maxPackObjects {
		return nil, errPack
	}
	var entries []packedEntry
	for range n {
		r.step(1)
		e := packedEntry{offset: c.n}
		c.settle()
		c.crc = 0
		var err error
		if e.h, err = readEntryHeader(c); err != nil {
			return nil, err
		}
		r.need(2*cacheLimit + 3*e.h.size + int64(len(entries))*96)
		data, err := inflate(c, e.h.size)
		if err != nil {
			return nil, err
		}
		c.settle()
		e.crc = c.crc
		if e.h.kind <= tagObj {
			e.id, e.done = hashObject(e.h.kind, data), true
		}
		entries = append(entries, e)
		if c.err != nil {
			return nil, c.err
		}
	}
	return entries, nil
}

// resolvePack names the deltas. Bases that the pack lacks are appended to it from the repository.
func (r *repo) resolvePack(p *pack, entries []packedEntry, end int64) ([]packedEntry, error) {
	at := make(map[oid]int64, len(entries))
	for i := range entries {
		if entries[i].done {
			at[entries[i].id] = entries[i].offset
		}
	}
	var read func(off int64, depth int) (kind, []byte, error)
	missing := oid{}
	read = func(off int64, depth int) (kind, []byte, error) {
		r.step(1)
		if o, ok := p.offsets[off]; ok {
			return o.k, o.data, nil
		}
		if depth > maxChain {
			return 0, nil, errPack
		}
		in := bufio.NewReaderSize(io.NewSectionReader(p.file, off, 1<<62-off), 4096)
		h, err := readEntryHeader(in)
		if err != nil {
			return 0, nil, err
		}
		data, err := inflate(in, h.size)
		if err != nil {
			return 0, nil, err
		}
		k := h.kind
		var base []byte
		switch h.kind {
		case ofsDelta:
			if h.back <= 0 || h.back >= off {
				return 0, nil, errPack
			}
			k, base, err = read(off-h.back, depth+1)
		case refDelta:
			b, ok := at[h.base]
			if !ok {
				missing = h.base
				return 0, nil, errMissing
			}
			k, base, err = read(b, depth+1)
		}
		if err == nil && h.kind > tagObj {
			data, err = r.rebuild(base, data)
		}
		if err != nil {
			return 0, nil, err
		}
		p.keep(off, k, data)
		return k, data, nil
	}
	for left := true; left; {
		left = false
		progress := false
		for i := 0; i < len(entries); i++ {
			if entries[i].done {
				continue
			}
			k, data, err := read(entries[i].offset, 0)
			if errors.Is(err, errMissing) {
				left = true
				continue
			}
			if err != nil {
				return nil, err
			}
			id := hashObject(k, data)
			entries[i].id, entries[i].done, progress = id, true, true
			at[id] = entries[i].offset
		}
		if !left || progress {
			continue
		}
		k, data, err := r.readObject(missing)
		if err != nil {
			return nil, fmt.Errorf("%w: unresolved delta", errPack)
		}
		e, n, err := appendEntry(p.file, end, k, data)
		if err != nil {
			return nil, err
		}
		e.id = missing
		entries = append(entries, e)
		at[missing] = end
		end += n
	}
	return entries, nil
}

func appendEntry(f vfs.File, off int64, k kind, data []byte) (e packedEntry, n int64, err error) {
	var b bytes.Buffer
	b.Write(entryHead(k, len(data)))
	z := zlib.NewWriter(&b)
	z.Write(data)
	z.Close()
	_, err = f.WriteAt(b.Bytes(), off)
	return packedEntry{offset: off, crc: crc32.ChecksumIEEE(b.Bytes()), done: true}, int64(b.Len()), err
}

// sealPack writes the number of objects and the checksum, which appended bases have changed.
func sealPack(f vfs.File, n int) ([]byte, error) {
	var count [4]byte
	binary.BigEndian.PutUint32(count[:], uint32(n))
	if _, err := f.WriteAt(count[:], 8); err != nil {
		return nil, err
	}
	a, err := f.Attr()
	if err != nil {
		return nil, err
	}
	h := sha1.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, a.Size)); err != nil {
		return nil, err
	}
	trailer := h.Sum(nil)
	_, err = f.WriteAt(trailer, a.Size)
	return trailer, err
}

// encodePackIndex makes a version 2 index.
func encodePackIndex(entries []packedEntry, trailer []byte) []byte {
	sort.Slice(entries, func(i, j int) bool { return bytes.Compare(entries[i].id[:], entries[j].id[:]) < 0 })
	// One object may stand in a pack twice; one of them is enough.
	var b bytes.Buffer
	b.WriteString("\xfftOc\x00\x00\x00\x02")
	u32 := func(v uint32) { b.Write(binary.BigEndian.AppendUint32(nil, v)) }
	i := 0
	for first := range 256 {
		for i < len(entries) && int(entries[i].id[0]) <= first {
			i++
		}
		u32(uint32(i))
	}
	for i := range entries {
		b.Write(entries[i].id[:])
	}
	for i := range entries {
		u32(entries[i].crc)
	}
	var big []int64
	for i := range entries {
		if off := entries[i].offset; off < 1<<31 {
			u32(uint32(off))
		} else {
			u32(uint32(len(big)) | 1<<31)
			big = append(big, off)
		}
	}
	for _, off := range big {
		b.Write(binary.BigEndian.AppendUint64(nil, uint64(off)))
	}
	b.Write(trailer)
	sum := sha1.Sum(b.Bytes())
	b.Write(sum[:])
	return b.Bytes()
}
