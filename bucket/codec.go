package bucket

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"agentrun.dev"
	"agentrun.dev/errs"
)

// Records are written as a version byte, fixed fields as varints, then tagged fields (tag, length, bytes), of which a
// reader refuses those that it doesn't know: an older program must not drop what a newer one wrote.

type enc struct{ b []byte }

func (e *enc) u(v uint64)     { e.b = binary.AppendUvarint(e.b, v) }
func (e *enc) i(v int64)      { e.b = binary.AppendVarint(e.b, v) }
func (e *enc) bytes(p []byte) { e.u(uint64(len(p))); e.b = append(e.b, p...) }
func (e *enc) str(s string)   { e.u(uint64(len(s))); e.b = append(e.b, s...) }
func (e *enc) raw(p []byte)   { e.b = append(e.b, p...) }

func (e *enc) bool(v bool) {
	if v {
		e.b = append(e.b, 1)
	} else {
		e.b = append(e.b, 0)
	}
}

func (e *enc) time(t time.Time) {
	if t.IsZero() {
		e.i(0)
	} else {
		e.i(t.UnixNano())
	}
}

func (e *enc) strings(m map[string]string) {
	e.u(uint64(len(m)))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		e.str(k)
		e.str(m[k])
	}
}

// field writes a tagged field whose body f writes.
func (e *enc) field(tag uint64, f func(*enc)) {
	var body enc
	f(&body)
	e.u(tag)
	e.bytes(body.b)
}

// dec reads what enc wrote. After the first defect, bad is set and everything reads as zero.
type dec struct {
	b   []byte
	bad bool
}

func (d *dec) u() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.b, d.bad = nil, true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *dec) i() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.b, d.bad = nil, true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *dec) take(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.b, d.bad = nil, true
		return nil
	}
	p := d.b[:n:n]
	d.b = d.b[n:]
	return p
}

func (d *dec) bytes() []byte { return d.take(d.u()) }
func (d *dec) str() string   { return string(d.bytes()) }

func (d *dec) byte() byte {
	if p := d.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (d *dec) bool() bool { return d.byte() == 1 }

func (d *dec) time() time.Time {
	if n := d.i(); n != 0 {
		return time.Unix(0, n).UTC()
	}
	return time.Time{}
}

func (d *dec) strings() map[string]string {
	n := d.u()
	if n == 0 || n > uint64(len(d.b)) {
		d.bad = d.bad || n != 0
		return nil
	}
	m := make(map[string]string, n)
	for range n {
		k := d.str()
		m[k] = d.str()
	}
	return m
}

func (d *dec) ref() (id agentrun.RefID) {
	copy(id[:], d.take(uint64(len(id))))
	return id
}

// end returns an error if anything was malformed or is left over.
func (d *dec) end(what string) error {
	if d.bad || len(d.b) > 0 {
		return errs.Msg(errs.Corrupt, "decode", what, "malformed record")
	}
	return nil
}

func (d *dec) version(what string) error {
	if v := d.byte(); v != formatVersion || d.bad {
		return errs.Msg(errs.Unsupported, "decode", what, fmt.Sprintf("format version %d, this program knows %d", v, formatVersion))
	}
	return nil
}

// content says where an object's bytes are: exactly one of its fields is set, or none for an empty object.
type content struct {
	inline  []byte
	extents []extent // in order, without gaps
	spread  bool     // the extents are records of planeExtent under the object's id
	logged  bool     // the bytes stand in the log record that loc names
	loc     logLoc
	from    *snap // the state that it was read from, for spread and logged contents
}

// extent is a run of bytes in a slot. Segment 0 reads as zeros.
type extent struct {
	seg  uint64
	slot uint32
	off  int64
	n    int64
}

// logLoc is the address of a log record.
type logLoc struct {
	delta, seq uint64
	idx        uint32
}

// Tags of an object record.
const (
	tagMD5      = 1 // ETag, if it is 32 hexadecimal digits: 16 bytes
	tagETag     = 2
	tagHeaders  = 3
	tagMeta     = 4
	tagTags     = 5
	tagChecksum = 6
	tagParts    = 7
	tagPosix    = 8
	tagInline   = 9
	tagExtents  = 10
	tagSpilled  = 11 // tags 3–8 lie in an extent of their own
)

const (
	flagNull   = 1
	flagMarker = 2
	flagLinked = 4  // planeLink lists the object's names
	flagLogged = 8  // all bytes stand in the log record
	flagSpread = 16 // the extents are records of planeExtent
)

// encodeObject writes an object without its key. spilled, if set, takes the place of the fields that spillable writes.
func encodeObject(o *Object, spilled *extent) []byte {
	e := enc{b: make([]byte, 0, 192)}
	e.raw([]byte{formatVersion})
	e.u(uint64(o.Size))
	e.u(uint64(o.Version))
	flags := uint64(0)
	if o.Null {
		flags |= flagNull
	}
	if o.Marker {
		flags |= flagMarker
	}
	if o.Posix != nil && o.Posix.Links > 1 {
		flags |= flagLinked
	}
	if o.data.logged {
		flags |= flagLogged
	}
	if o.data.spread {
		flags |= flagSpread
	}
	e.u(flags)
	e.u(o.ID.Space)
	e.u(o.ID.N)
	e.time(o.Modified)
	if raw, ok := md5ETag(o.ETag); ok {
		e.u(tagMD5)
		e.bytes(raw[:])
	} else if o.ETag != "" {
		e.u(tagETag)
		e.str(o.ETag)
	}
	if spilled != nil {
		e.field(tagSpilled, func(e *enc) { e.extent(*spilled) })
	} else {
		e.spillable(o)
	}
	switch c := &o.data; {
	case c.inline != nil:
		e.u(tagInline)
		e.bytes(c.inline)
	case c.extents != nil:
		e.field(tagExtents, func(e *enc) {
			for _, x := range c.extents {
				e.extent(x)
			}
		})
	}
	return e.b
}

// spillable writes the fields that move out of the record when they are large.
func (e *enc) spillable(o *Object) {
	if len(o.Headers) > 0 {
		e.field(tagHeaders, func(e *enc) { e.strings(o.Headers) })
	}
	if len(o.Meta) > 0 {
		e.field(tagMeta, func(e *enc) { e.strings(o.Meta) })
	}
	if len(o.Tags) > 0 {
		e.field(tagTags, func(e *enc) { e.strings(o.Tags) })
	}
	if len(o.Checksum) > 0 {
		e.field(tagChecksum, func(e *enc) { e.checksums(o.Checksum) })
	}
	if len(o.Parts) > 0 {
		e.field(tagParts, func(e *enc) {
			for i := range o.Parts {
				e.part(&o.Parts[i])
			}
		})
	}
	if o.Posix != nil {
		e.field(tagPosix, func(e *enc) { e.posix(o.Posix) })
	}
}

func (e *enc) extent(x extent) {
	e.u(x.seg)
	e.u(uint64(x.slot))
	e.u(uint64(x.off))
	e.u(uint64(x.n))
}

func (d *dec) extent() (x extent) {
	x.seg, x.slot, x.off, x.n = d.u(), uint32(d.u()), int64(d.u()), int64(d.u())
	if x.off < 0 || x.n < 0 {
		d.bad = true
	}
	return x
}

func (e *enc) checksums(sums []Checksum) {
	e.u(uint64(len(sums)))
	for _, c := range sums {
		e.str(c.Algorithm)
		e.str(c.Value)
		e.bool(c.Composite)
	}
}

func (d *dec) checksums() []Checksum {
	n := d.u()
	if n == 0 || n > 16 {
		d.bad = d.bad || n != 0
		return nil
	}
	sums := make([]Checksum, n)
	for i := range sums {
		sums[i] = Checksum{Algorithm: d.str(), Value: d.str(), Composite: d.bool()}
	}
	return sums
}

func (e *enc) part(p *Part) {
	e.u(uint64(p.Number))
	e.u(uint64(p.Size))
	e.u(uint64(p.Offset))
	e.str(p.ETag)
	e.time(p.Modified)
	e.checksums(p.Checksum)
}

func (d *dec) part() Part {
	return Part{Number: int(d.u()), Size: int64(d.u()), Offset: int64(d.u()), ETag: d.str(), Modified: d.time(), Checksum: d.checksums()}
}

func (e *enc) posix(p *Posix) {
	e.u(uint64(p.Mode))
	e.u(uint64(p.UID))
	e.u(uint64(p.GID))
	e.i(p.Access)
	e.i(p.Change)
	e.u(p.Rdev)
	e.str(p.Link)
	e.u(uint64(p.Links))
	e.u(uint64(len(p.Xattrs)))
	for _, k := range slices.Sorted(maps.Keys(p.Xattrs)) {
		e.str(k)
		e.bytes(p.Xattrs[k])
	}
}

func (d *dec) posix() *Posix {
	p := &Posix{Mode: uint32(d.u()), UID: uint32(d.u()), GID: uint32(d.u()), Access: d.i(), Change: d.i(), Rdev: d.u(), Link: d.str(), Links: uint32(d.u())}
	if n := d.u(); n > 0 && n <= uint64(len(d.b)) {
		p.Xattrs = make(map[string][]byte, n)
		for range n {
			k := d.str()
			p.Xattrs[k] = slices.Clone(d.bytes())
		}
	} else if n > 0 {
		d.bad = true
	}
	return p
}

func md5ETag(etag string) (raw [16]byte, ok bool) {
	if len(etag) != 32 || strings.ToLower(etag) != etag {
		return raw, false
	}
	_, err := hex.Decode(raw[:], []byte(etag))
	return raw, err == nil
}

// decodeObject reads what encodeObject wrote. Spilled fields come back as an extent for the caller to read.
func decodeObject(key string, val []byte) (o *Object, spilled *extent, err error) {
	d := dec{b: val}
	if err := d.version("object"); err != nil {
		return nil, nil, err
	}
	o = &Object{Key: key}
	o.Size = int64(d.u())
	o.Version = agentrun.Version(d.u())
	flags := d.u()
	o.Null, o.Marker = flags&flagNull != 0, flags&flagMarker != 0
	o.data.logged, o.data.spread = flags&flagLogged != 0, flags&flagSpread != 0
	o.ID.Space, o.ID.N = d.u(), d.u()
	o.Modified = d.time()
	for len(d.b) > 0 && !d.bad {
		tag := d.u()
		f := dec{b: d.bytes()}
		switch tag {
		case tagMD5:
			o.ETag = hex.EncodeToString(f.take(uint64(len(f.b))))
		case tagETag:
			o.ETag = string(f.take(uint64(len(f.b))))
		case tagInline:
			o.data.inline = f.take(uint64(len(f.b)))
		case tagExtents:
			for len(f.b) > 0 {
				o.data.extents = append(o.data.extents, f.extent())
			}
		case tagSpilled:
			x := f.extent()
			spilled = &x
		default:
			if !f.spillable(o, tag) {
				return nil, nil, errs.Msg(errs.Unsupported, "decode", "object", fmt.Sprintf("unknown field %d", tag))
			}
		}
		if err := f.end("object"); err != nil {
			return nil, nil, err
		}
	}
	return o, spilled, d.end("object")
}

// spillable reads one field that enc.spillable wrote; false means that the tag is unknown.
func (d *dec) spillable(o *Object, tag uint64) bool {
	switch tag {
	case tagHeaders:
		o.Headers = d.strings()
	case tagMeta:
		o.Meta = d.strings()
	case tagTags:
		o.Tags = d.strings()
	case tagChecksum:
		o.Checksum = d.checksums()
	case tagParts:
		for len(d.b) > 0 && !d.bad {
			o.Parts = append(o.Parts, d.part())
		}
	case tagPosix:
		o.Posix = d.posix()
	default:
		return false
	}
	return true
}

// decodeSpilled reads the fields that were moved out of o's record.
func decodeSpilled(o *Object, b []byte) error {
	d := dec{b: b}
	for len(d.b) > 0 && !d.bad {
		tag := d.u()
		f := dec{b: d.bytes()}
		if !f.spillable(o, tag) {
			return errs.Msg(errs.Corrupt, "decode", "object", "malformed spilled fields")
		}
		if err := f.end("object"); err != nil {
			return err
		}
	}
	return d.end("object")
}

// measure tells the tree what to sum: current objects and their bytes.
func measure(key, value []byte) (count, bytes uint64) {
	if len(key) == 0 || key[0] != planeObject || len(value) == 0 {
		return 0, 0
	}
	n, w := binary.Uvarint(value[1:])
	if w <= 0 {
		return 1, 0
	}
	return 1, n
}

// slotsOf calls f for each slot that a record of any plane refers to, as often as it does.
func slotsOf(key string, val []byte, f func(extent)) error {
	switch key[0] {
	case planeObject, planeVersion:
		o, spilled, err := decodeObject("", val)
		if err != nil {
			return err
		}
		if spilled != nil {
			f(*spilled)
		}
		for _, x := range o.data.extents {
			if x.seg != 0 {
				f(x)
			}
		}
	case planeExtent:
		x, err := decodeExtent(val)
		if err != nil {
			return err
		}
		if x.seg != 0 {
			f(x)
		}
	}
	return nil
}

func encodeExtent(x extent) []byte {
	e := enc{b: make([]byte, 0, 24)}
	e.raw([]byte{formatVersion})
	e.extent(x)
	return e.b
}

func decodeExtent(val []byte) (extent, error) {
	d := dec{b: val}
	if err := d.version("extent"); err != nil {
		return extent{}, err
	}
	x := d.extent()
	return x, d.end("extent")
}

func encodeDir(dir *Dir) []byte {
	var e enc
	e.raw([]byte{formatVersion})
	e.u(dir.ID.Space)
	e.u(dir.ID.N)
	e.time(dir.Modified)
	e.posix(&dir.Posix)
	return e.b
}

func decodeDir(path string, val []byte) (*Dir, error) {
	d := dec{b: val}
	if err := d.version("directory"); err != nil {
		return nil, err
	}
	dir := &Dir{Path: path}
	dir.ID.Space, dir.ID.N = d.u(), d.u()
	dir.Modified = d.time()
	dir.Posix = *d.posix()
	return dir, d.end("directory")
}

func encodeNames(names []string) []byte {
	e := enc{b: []byte{formatVersion}}
	for _, n := range names {
		e.str(n)
	}
	return e.b
}

func decodeNames(val []byte) (names []string, err error) {
	d := dec{b: val}
	if err := d.version("links"); err != nil {
		return nil, err
	}
	for len(d.b) > 0 && !d.bad {
		names = append(names, d.str())
	}
	return names, d.end("links")
}
