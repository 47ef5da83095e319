package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strconv"
	"strings"
	"time"
)

// blockSize is the unit of tar archives; records of several blocks are written at once.
const blockSize = 512

// tarFormat is a dialect of tar.
type tarFormat uint8

const (
	formatGNU tarFormat = iota
	formatOldGNU
	formatV7
	formatUstar
	formatPax
)

// Types of members.
const (
	typeRegular  = '0'
	typeOld      = 0 // a regular file of the seventh edition's tar
	typeLink     = '1'
	typeSymlink  = '2'
	typeChar     = '3'
	typeBlock    = '4'
	typeDir      = '5'
	typeFIFO     = '6'
	typeCont     = '7'
	typeLongLink = 'K'
	typeLongName = 'L'
	typeMulti    = 'M'
	typeSparse   = 'S'
	typeVolume   = 'V'
	typePax      = 'x'
	typePaxAll   = 'g'
)

// segment is a piece of a sparse file that holds data.
type segment struct{ off, n int64 }

// tarHeader is what an archive says about a member.
type tarHeader struct {
	name, link   string
	mode         int64
	uid, gid     int64
	size         int64 // bytes of data in the archive
	real         int64 // size of the file; differs for sparse files
	mtime        time.Time
	atime, ctime time.Time // zero if unknown
	typ          byte
	uname, gname string
	major, minor int64
	sparse       []segment
	isSparse     bool
	magic        string
}

func (h *tarHeader) isDir() bool {
	return h.typ == typeDir || (h.typ == typeRegular || h.typ == typeOld) && strings.HasSuffix(h.name, "/")
}

// isRegular reports whether a member is a plain file, whatever its type is called.
func (h *tarHeader) isRegular() bool {
	switch h.typ {
	case typeRegular, typeOld, typeCont, typeSparse:
		return !h.isDir()
	}
	return false
}

// number writes an octal field of n bytes, the last a NUL. What doesn't fit is written in base 256, if allowed.
func number(field []byte, v int64, binary bool) error {
	digits := len(field) - 1
	if v >= 0 && (digits >= 21 || v < 1<<(3*digits)) {
		copy(field, fmt.Sprintf("%0*o", digits, v))
		return nil
	}
	if !binary {
		return errTooLarge
	}
	for i := len(field) - 1; i >= 0; i-- {
		field[i] = byte(v)
		v >>= 8
	}
	field[0] |= 0x80
	return nil
}

var errTooLarge = errors.New("value out of range")

// block renders a header in a format; names too long must have been dealt with.
func (h *tarHeader) block(f tarFormat, prefix string) []byte {
	b := make([]byte, blockSize)
	binary := f == formatGNU || f == formatOldGNU
	copy(b[:100], h.name)
	fit := func(v, limit int64) int64 {
		if binary || v >= 0 && v < limit {
			return v
		}
		return 0 // a pax header has it
	}
	number(b[100:108], h.mode, binary)
	number(b[108:116], fit(h.uid, 1<<21), binary)
	number(b[116:124], fit(h.gid, 1<<21), binary)
	number(b[124:136], fit(h.size, 1<<33), binary)
	number(b[136:148], fit(h.mtime.Unix(), 1<<33), binary)
	b[156] = h.typ
	copy(b[157:257], h.link)
	switch f {
	case formatGNU, formatOldGNU:
		copy(b[257:], "ustar  \x00")
	case formatUstar, formatPax:
		copy(b[257:], "ustar\x0000")
		copy(b[345:500], prefix)
	case formatV7:
		if h.typ == typeRegular {
			b[156] = 0
		}
	}
	if f != formatV7 {
		copy(b[265:296], h.uname)
		copy(b[297:328], h.gname)
	}
	if device := h.typ == typeChar || h.typ == typeBlock; device || !binary && h.typ != typePax && h.typ != typePaxAll {
		number(b[329:337], h.major, binary)
		number(b[337:345], h.minor, binary)
	}
	if h.typ == typeSparse {
		sparseHeader(b, h)
	}
	checksum(b)
	return b
}

// sparseHeader puts the first four pieces of an old-style sparse file into its header.
func sparseHeader(b []byte, h *tarHeader) {
	for i, s := range h.sparse {
		if i == 4 {
			b[482] = 1
			break
		}
		number(b[386+24*i:398+24*i], s.off, true)
		number(b[398+24*i:410+24*i], s.n, true)
	}
	number(b[483:495], h.real, true)
}

// sparseBlocks are the blocks that follow the header with more pieces.
func sparseBlocks(list []segment) []byte {
	var out []byte
	for len(list) > 4 {
		list = list[min(4, len(list)):]
		b := make([]byte, blockSize)
		for i := range min(21, len(list)) {
			number(b[24*i:24*i+12], list[i].off, true)
			number(b[24*i+12:24*i+24], list[i].n, true)
		}
		if len(list) <= 21 {
			return append(out, b...)
		}
		b[504] = 1
		out = append(out, b...)
		list = list[17:] // 21 of which the loop takes 4 again
	}
	return out
}

func checksum(b []byte) {
	copy(b[148:156], "        ")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:156], fmt.Sprintf("%06o\x00 ", sum))
}

// encoder writes headers in a format.
type encoder struct {
	format  tarFormat
	deleted map[string]bool // pax keywords that are left out, by --pax-option
	paxName string          // template of pax headers' names
	globals string          // records of a global header
}

// encode returns all blocks that come before a member's data.
func (e *encoder) encode(h *tarHeader) ([]byte, error) {
	switch e.format {
	case formatPax:
		return e.pax(h), nil
	case formatV7, formatUstar:
		return e.plain(h)
	}
	var out []byte
	short := *h
	limit := 100 // of names; oldgnu's end in a NUL
	if e.format == formatOldGNU {
		limit = 99
	}
	if len(h.link) > 100 {
		out = append(out, longLink(h.link, typeLongLink)...)
		short.link = h.link[:100]
	}
	if len(h.name) > limit {
		out = append(out, longLink(h.name, typeLongName)...)
		short.name = h.name[:limit]
	}
	out = append(out, short.block(e.format, "")...)
	if h.typ == typeSparse {
		out = append(out, sparseBlocks(h.sparse)...)
	}
	return out, nil
}

// longLink is the pseudo-member that holds a name too long for a header.
func longLink(name string, typ byte) []byte {
	h := tarHeader{name: "././@LongLink", mode: 0o644, size: int64(len(name)) + 1, typ: typ, uname: "root", gname: "root", mtime: time.Unix(0, 0)}
	return append(h.block(formatGNU, ""), padded(name+"\x00")...)
}

func padded(s string) []byte {
	b := make([]byte, (len(s)+blockSize-1)/blockSize*blockSize)
	copy(b, s)
	return b
}

// nameError is a name that a format can't hold.
type nameError struct{ what, text string }

func (e *nameError) Error() string { return e.text }

// split divides a name for ustar's prefix field.
func split(name string) (prefix, rest string, ok bool) {
	if len(name) <= 100 {
		return "", name, true
	}
	n := min(len(name)-1, 155)
	i := strings.LastIndexByte(name[:n+1], '/')
	if i <= 0 || len(name)-i-1 > 100 || len(name)-i-1 == 0 {
		return "", "", false
	}
	return name[:i], name[i+1:], true
}

// plain is the encoding of v7 and ustar, which can't hold everything.
func (e *encoder) plain(h *tarHeader) ([]byte, error) {
	short := *h
	prefix := ""
	if e.format == formatV7 {
		if len(h.name) > 99 {
			return nil, &nameError{h.name, "file name is too long (max 99); not dumped"}
		}
		if len(h.link) > 99 {
			return nil, &nameError{h.link, "link name is too long; not dumped"}
		}
	} else {
		var ok bool
		if prefix, short.name, ok = split(h.name); !ok {
			if len(h.name) > 256 {
				return nil, &nameError{h.name, "file name is too long (max 256); not dumped"}
			}
			return nil, &nameError{h.name, "file name is too long (cannot be split); not dumped"}
		}
		if len(h.link) > 100 {
			return nil, &nameError{h.link, "link name is too long; not dumped"}
		}
	}
	for _, v := range []struct {
		n, limit int64
		what     string
	}{{h.uid, 1 << 21, "uid_t"}, {h.gid, 1 << 21, "gid_t"}, {h.size, 1 << 33, "off_t"}, {h.mtime.Unix(), 1 << 33, "time_t"}} {
		if v.n < 0 || v.n >= v.limit {
			return nil, fmt.Errorf("value %d out of %s range 0..%d", v.n, v.what, v.limit-1)
		}
	}
	return short.block(e.format, prefix), nil
}

func paxRecord(key, value string) string {
	n := len(key) + len(value) + 3
	for {
		s := strconv.Itoa(n) + " " + key + "=" + value + "\n"
		if len(s) == n {
			return s
		}
		n = len(s)
	}
}

// paxTime renders a time with as many digits of the fraction as it needs.
func paxTime(t time.Time) string {
	sec, ns := t.Unix(), t.Nanosecond()
	if ns == 0 {
		return strconv.FormatInt(sec, 10)
	}
	sign := ""
	if sec < 0 {
		sign, sec, ns = "-", -sec-1, 1e9-ns
	}
	return sign + strings.TrimRight(fmt.Sprintf("%d.%09d", sec, ns), "0")
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func (e *encoder) pax(h *tarHeader) []byte {
	var rec strings.Builder
	put := func(key, value string) {
		if !e.deleted[key] {
			rec.WriteString(paxRecord(key, value))
		}
	}
	short := *h
	prefix, rest, ok := split(h.name)
	if !ok || !ascii(h.name) {
		put("path", h.name)
	}
	if ok {
		short.name = rest
	} else {
		short.name, prefix = h.name[:100], ""
	}
	if len(h.link) > 100 || !ascii(h.link) {
		put("linkpath", h.link)
		short.link = h.link[:min(len(h.link), 100)]
	}
	if !ascii(h.uname) || len(h.uname) > 31 {
		put("uname", h.uname)
	}
	if !ascii(h.gname) || len(h.gname) > 31 {
		put("gname", h.gname)
	}
	if h.uid >= 1<<21 {
		put("uid", strconv.FormatInt(h.uid, 10))
	}
	if h.gid >= 1<<21 {
		put("gid", strconv.FormatInt(h.gid, 10))
	}
	if h.size >= 1<<33 {
		put("size", strconv.FormatInt(h.size, 10))
	}
	if s := h.mtime.Unix(); h.mtime.Nanosecond() != 0 || s < 0 || s >= 1<<33 {
		put("mtime", paxTime(h.mtime))
	}
	if !h.atime.IsZero() {
		put("atime", paxTime(h.atime))
	}
	if !h.ctime.IsZero() {
		put("ctime", paxTime(h.ctime))
	}
	var out []byte
	if rec.Len() > 0 {
		out = e.paxHeader(h, rec.String(), typePax)
	}
	return append(out, short.block(formatPax, prefix)...)
}

// paxHeader is the pseudo-member that holds records.
func (e *encoder) paxHeader(h *tarHeader, records string, typ byte) []byte {
	name := strings.TrimRight(h.name, "/")
	template := e.paxName
	if template == "" {
		template = "%d/PaxHeaders/%f"
	}
	name = strings.NewReplacer("%d", path.Dir(name), "%f", path.Base(name), "%p", "1", "%%", "%").Replace(template)
	p := tarHeader{name: name, mode: 0o644, size: int64(len(records)), typ: typ, mtime: h.mtime}
	pre, rest, ok := split(name)
	if !ok {
		pre, rest = "", name[:100]
	}
	p.name = rest
	return append(p.block(formatPax, pre), padded(records)...)
}

// Errors of the reader.
var (
	errNotTar  = errors.New("This does not look like a tar archive")
	errLone    = errors.New("A lone zero block")
	errHeader  = errors.New("Malformed extended header")
	errTooLong = errors.New("name too long")
)

// tarReader reads members one after the other.
type tarReader struct {
	r       io.Reader
	off     int64 // bytes read, all in whole blocks but perhaps the last
	left    int64 // of the current member's data
	pad     int64
	globals map[string]string
	ignore  bool  // zero blocks don't end the archive
	start   int64 // where the current member's first header begins
	raw     []byte
	keep    bool // raw holds the headers of the current member
}

// block reads one block; io.EOF at the end, io.ErrUnexpectedEOF if a part is missing.
func (t *tarReader) block(b []byte) error {
	n, err := io.ReadFull(t.r, b)
	t.off += int64(n)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		if n == 0 {
			return io.EOF
		}
		return io.ErrUnexpectedEOF
	}
	if t.keep && err == nil {
		t.raw = append(t.raw, b...)
	}
	return err
}

// skip goes to the end of the current member.
func (t *tarReader) skip() error {
	n := t.left + t.pad
	t.left, t.pad = 0, 0
	m, err := io.CopyN(io.Discard, t.r, n)
	t.off += m
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Read reads the current member's data.
func (t *tarReader) Read(p []byte) (int, error) {
	if t.left == 0 {
		return 0, io.EOF
	}
	n, err := t.r.Read(p[:min(int64(len(p)), t.left)])
	t.left -= int64(n)
	t.off += int64(n)
	if errors.Is(err, io.EOF) && t.left > 0 {
		return n, io.ErrUnexpectedEOF
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// next returns the next member. io.EOF is the end; errNotTar and errHeader leave the reader behind the wrong block.
func (t *tarReader) next() (*tarHeader, error) {
	if err := t.skip(); err != nil {
		return nil, err
	}
	t.start, t.raw = t.off, t.raw[:0]
	var longName, longLinkName string
	var pax map[string]string
	for {
		var b [blockSize]byte
		if err := t.block(b[:]); err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) && t.off < blockSize {
				return nil, errNotTar
			}
			return nil, err
		}
		if b == [blockSize]byte{} {
			if t.ignore {
				t.start = t.off
				continue
			}
			if err := t.block(b[:]); err != nil || b != [blockSize]byte{} {
				return nil, errLone
			}
			return nil, io.EOF
		}
		h, err := parseHeader(b[:])
		if err != nil {
			return nil, err
		}
		t.left, t.pad = h.size, -h.size&(blockSize-1)
		switch h.typ {
		case typeLongName, typeLongLink, typePax, typePaxAll:
			text, err := t.meta(h.size)
			if err != nil {
				return nil, err
			}
			switch h.typ {
			case typeLongName:
				longName = cString([]byte(text))
			case typeLongLink:
				longLinkName = cString([]byte(text))
			case typePax:
				if pax, err = parsePax(text); err != nil {
					return nil, err
				}
			default:
				if t.globals, err = parsePax(text); err != nil {
					return nil, err
				}
			}
			continue
		}
		if longName != "" {
			h.name = longName
		}
		if longLinkName != "" {
			h.link = longLinkName
		}
		return h, t.finish(h, b[:], pax)
	}
}

// meta reads the data of a pseudo-member.
func (t *tarReader) meta(size int64) (string, error) {
	if size > maxMeta {
		return "", errTooLong
	}
	b := make([]byte, (size+blockSize-1)/blockSize*blockSize)
	t.left, t.pad = 0, 0
	if len(b) > 0 {
		if err := t.block(b); err != nil {
			return "", io.ErrUnexpectedEOF
		}
	}
	return string(b[:size]), nil
}

// finish applies pax records and reads the map of a sparse file.
func (t *tarReader) finish(h *tarHeader, b []byte, pax map[string]string) error {
	h.real = h.size
	for _, m := range []map[string]string{t.globals, pax} {
		if err := h.apply(m); err != nil {
			return err
		}
	}
	if _, ok := pax["size"]; ok || t.globals["size"] != "" {
		t.left, t.pad = h.size, -h.size&(blockSize-1)
		if h.real == 0 || pax["GNU.sparse.realsize"] == "" && pax["GNU.sparse.size"] == "" {
			h.real = h.size
		}
	}
	switch {
	case h.typ == typeSparse:
		if err := t.oldSparse(h, b); err != nil {
			return err
		}
	case pax["GNU.sparse.major"] == "1":
		if err := t.newSparse(h); err != nil {
			return err
		}
	}
	switch h.typ {
	case typeRegular, typeOld, typeCont, typeSparse:
	case typeLink, typeSymlink, typeChar, typeBlock, typeFIFO, typeDir:
		if h.typ != typeLink || h.magic != "ustar\x00" { // pax allows contents of hard links
			t.left, t.pad = 0, 0
			h.size, h.real = 0, 0
		}
	}
	return h.checkSparse()
}

// checkSparse makes sure that pieces are in order and within the file.
func (h *tarHeader) checkSparse() error {
	var at, total int64
	for _, s := range h.sparse {
		if s.off < at || s.n < 0 || s.off > math.MaxInt64-s.n || s.off+s.n > h.real {
			return errHeader
		}
		at = s.off + s.n
		total += s.n
	}
	if h.isSparse && total > h.size {
		return errHeader
	}
	return nil
}

// maxSegments bounds the pieces of one sparse file.
const maxSegments = 1 << 20

func (t *tarReader) oldSparse(h *tarHeader, b []byte) error {
	h.isSparse = true
	var err error
	if h.real, err = parseNumber(b[483:495]); err != nil {
		return errHeader
	}
	add := func(b []byte, n int) error {
		for i := range n {
			f := b[24*i : 24*i+24]
			if f[12] == 0 {
				break
			}
			off, err1 := parseNumber(f[:12])
			size, err2 := parseNumber(f[12:])
			if err1 != nil || err2 != nil || len(h.sparse) >= maxSegments {
				return errHeader
			}
			h.sparse = append(h.sparse, segment{off, size})
		}
		return nil
	}
	if err := add(b[386:], 4); err != nil {
		return err
	}
	for more := b[482]; more != 0; {
		var e [blockSize]byte
		if err := t.block(e[:]); err != nil {
			return io.ErrUnexpectedEOF
		}
		if err := add(e[:], 21); err != nil {
			return err
		}
		more = e[504]
	}
	return nil
}

// newSparse reads the map at the beginning of the data, as version 1.0 has it: decimal lines.
func (t *tarReader) newSparse(h *tarHeader) error {
	h.isSparse = true
	var buf []byte
	line := func() (int64, error) {
		for {
			if i := bytes.IndexByte(buf, '\n'); i >= 0 {
				n, err := strconv.ParseInt(string(buf[:i]), 10, 64)
				buf = buf[i+1:]
				if err != nil || n < 0 {
					return 0, errHeader
				}
				return n, nil
			}
			if t.left < blockSize || len(buf) > blockSize {
				return 0, errHeader
			}
			var b [blockSize]byte
			if err := t.block(b[:]); err != nil {
				return 0, io.ErrUnexpectedEOF
			}
			t.left -= blockSize
			h.size -= blockSize
			buf = append(buf, b[:]...)
		}
	}
	n, err := line()
	if err != nil || n > maxSegments {
		return errHeader
	}
	for range n {
		off, err1 := line()
		size, err2 := line()
		if err1 != nil || err2 != nil {
			return errHeader
		}
		h.sparse = append(h.sparse, segment{off, size})
	}
	return nil
}

func cString(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// parseNumber reads a numeric field: octal, or base 256.
func parseNumber(b []byte) (int64, error) {
	if b[0]&0x80 != 0 {
		v := int64(0)
		if b[0] == 0xff {
			v = -1
		} else if b[0] != 0x80 && len(b) > 8 {
			return 0, errTooLarge
		}
		for i, c := range b {
			if i == 0 {
				if v == 0 {
					v = int64(c & 0x7f)
				}
				continue
			}
			if v > math.MaxInt64>>8 || v < math.MinInt64>>8 {
				return 0, errTooLarge
			}
			v = v<<8 | int64(c)
		}
		return v, nil
	}
	s := strings.Trim(cString(b), " ")
	if s == "" {
		return 0, nil
	}
	return strconv.ParseInt(s, 8, 64)
}

// parseHeader reads a block whose checksum is right; errNotTar otherwise.
func parseHeader(b []byte) (*tarHeader, error) {
	want, err := parseNumber(b[148:156])
	if err != nil {
		return nil, errNotTar
	}
	var sum, signed int64
	for i, c := range b {
		if i >= 148 && i < 156 {
			c = ' '
		}
		sum += int64(c)
		signed += int64(int8(c))
	}
	if want != sum && want != signed {
		return nil, errNotTar
	}
	h := &tarHeader{name: cString(b[:100]), typ: b[156], link: cString(b[157:257]), magic: string(b[257:263])}
	var sec int64
	for _, f := range []struct {
		v    *int64
		a, b int
	}{{&h.mode, 100, 108}, {&h.uid, 108, 116}, {&h.gid, 116, 124}, {&h.size, 124, 136}, {&sec, 136, 148}} {
		if *f.v, err = parseNumber(b[f.a:f.b]); err != nil {
			*f.v = 0
			if f.a == 124 {
				return nil, errNotTar
			}
		}
	}
	if h.size < 0 {
		return nil, errNotTar
	}
	h.mode &= 0o7777
	h.mtime = time.Unix(sec, 0)
	if strings.HasPrefix(h.magic, "ustar") {
		h.uname, h.gname = cString(b[265:297]), cString(b[297:329])
		h.major, _ = parseNumber(b[329:337])
		h.minor, _ = parseNumber(b[337:345])
		if h.magic == "ustar\x00" {
			if p := cString(b[345:500]); p != "" {
				h.name = p + "/" + h.name
			}
		}
	}
	return h, nil
}

// parsePax reads records "LENGTH KEY=VALUE\n".
func parsePax(s string) (map[string]string, error) {
	m := map[string]string{}
	for s != "" {
		i := strings.IndexByte(s, ' ')
		if i < 0 {
			return nil, errHeader
		}
		n, err := strconv.Atoi(s[:i])
		if err != nil || n <= i+1 || n > len(s) || s[n-1] != '\n' {
			return nil, errHeader
		}
		key, value, ok := strings.Cut(s[i+1:n-1], "=")
		if !ok {
			return nil, errHeader
		}
		switch key {
		case "GNU.sparse.offset": // version 0.0 repeats its keys
			m["GNU.sparse.map"] += "," + value
		case "GNU.sparse.numbytes":
			m["GNU.sparse.map"] += "," + value
		default:
			m[key] = value
		}
		s = s[n:]
	}
	if v, ok := m["GNU.sparse.map"]; ok {
		m["GNU.sparse.map"] = strings.TrimPrefix(v, ",")
	}
	return m, nil
}

// apply puts pax records into a header.
func (h *tarHeader) apply(m map[string]string) error {
	for key, v := range m {
		var err error
		switch key {
		case "path":
			if m["GNU.sparse.name"] == "" {
				h.name = v
			}
		case "GNU.sparse.name":
			h.name = v
		case "linkpath":
			h.link = v
		case "uname":
			h.uname = v
		case "gname":
			h.gname = v
		case "uid":
			h.uid, err = strconv.ParseInt(v, 10, 64)
		case "gid":
			h.gid, err = strconv.ParseInt(v, 10, 64)
		case "size":
			if h.size, err = strconv.ParseInt(v, 10, 64); h.size < 0 {
				err = errHeader
			}
		case "mtime":
			h.mtime, err = parsePaxTime(v)
		case "atime":
			h.atime, err = parsePaxTime(v)
		case "GNU.sparse.realsize", "GNU.sparse.size":
			h.real, err = strconv.ParseInt(v, 10, 64)
			h.isSparse = true
		case "GNU.sparse.map":
			h.isSparse = true
			f := strings.Split(v, ",")
			for i := 0; i+1 < len(f) && len(h.sparse) < maxSegments; i += 2 {
				off, err1 := strconv.ParseInt(f[i], 10, 64)
				n, err2 := strconv.ParseInt(f[i+1], 10, 64)
				if err1 != nil || err2 != nil {
					return errHeader
				}
				h.sparse = append(h.sparse, segment{off, n})
			}
		}
		if err != nil {
			return errHeader
		}
	}
	return nil
}

func parsePaxTime(s string) (time.Time, error) {
	whole, frac, _ := strings.Cut(s, ".")
	sec, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	frac = (frac + "000000000")[:9]
	ns, err := strconv.ParseInt(frac, 10, 64)
	if strings.HasPrefix(whole, "-") {
		ns = -ns
	}
	return time.Unix(sec, ns), err
}
