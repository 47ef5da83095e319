package binary

import (
	"fmt"
	"unicode/utf8"

	"agentrun.dev/errs"
)

// reader walks over bytes that nobody vouches for. The first mistake stays in err and moves pos to the end, so loops end by themselves.
type reader struct {
	b   []byte
	pos int
	at  int // offset of b in the module, for messages
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = errs.Msg(errs.Invalid, "wasm", fmt.Sprintf("offset %#x", r.at+r.pos), fmt.Sprintf(format, args...))
		r.pos = len(r.b)
	}
}

func (r *reader) end() bool { return r.pos >= len(r.b) }

func (r *reader) byte() byte {
	if r.pos >= len(r.b) {
		r.fail("ends too early")
		return 0
	}
	c := r.b[r.pos]
	r.pos++
	return c
}

func (r *reader) bytes(n uint32) []byte {
	if uint64(n) > uint64(len(r.b)-r.pos) {
		r.fail("%d bytes missing", uint64(n)-uint64(len(r.b)-r.pos))
		return nil
	}
	p := r.b[r.pos : r.pos+int(n) : r.pos+int(n)]
	r.pos += int(n)
	return p
}

// u32 reads an unsigned LEB128 number of at most 32 bits.
func (r *reader) u32() uint32 {
	if r.pos < len(r.b) && r.b[r.pos] < 0x80 {
		r.pos++
		return uint32(r.b[r.pos-1])
	}
	var v uint64
	for shift := uint(0); shift < 35; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if v>>32 != 0 {
				r.fail("number too large")
			}
			return uint32(v)
		}
	}
	r.fail("number too long")
	return 0
}

// signed reads a signed LEB128 number of at most the given bits.
func (r *reader) signed(bits uint) int64 {
	var v int64
	for shift := uint(0); shift < bits+6; shift += 7 {
		c := r.byte()
		v |= int64(c&0x7f) << shift
		if c < 0x80 {
			if shift += 7; shift < 64 && c&0x40 != 0 {
				v |= -1 << shift
			}
			if bits < 64 && (v < -1<<(bits-1) || v >= 1<<(bits-1)) {
				r.fail("number too large")
			}
			return v
		}
	}
	r.fail("number too long")
	return 0
}

// count reads the length of a vector whose items take at least a byte each, so that it can be trusted for allocating.
func (r *reader) count() int {
	n := r.u32()
	if uint64(n) > uint64(len(r.b)-r.pos) {
		r.fail("%d items don't fit in %d bytes", n, len(r.b)-r.pos)
		return 0
	}
	return int(n)
}

func (r *reader) name() string {
	p := r.bytes(r.u32())
	if !utf8.Valid(p) {
		r.fail("name isn't UTF-8")
		return ""
	}
	return string(p)
}

// valueType reads one of the types that a value may have.
func (r *reader) valueType() byte {
	t := r.byte()
	switch t {
	case typeI32, typeI64, typeF32, typeF64, typeV128, typeFuncref, typeExternref, typeExnref:
		return t
	}
	r.fail("unknown type %#x", t)
	return 0
}

func putU32(out []byte, v uint32) []byte {
	for v >= 0x80 {
		out = append(out, byte(v)|0x80)
		v >>= 7
	}
	return append(out, byte(v))
}

func putI64(out []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(out, c)
		}
		out = append(out, c|0x80)
	}
}

func putName(out []byte, s string) []byte { return append(putU32(out, uint32(len(s))), s...) }

func putSection(out []byte, id byte, body []byte) []byte {
	out = append(out, id)
	out = putU32(out, uint32(len(body)))
	return append(out, body...)
}
