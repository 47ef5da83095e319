package dump

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"strconv"

	"agentrun.dev/command/tool"
)

// odSpec shows a block in one format: kind is one of d, o, u, x, f, a, c, and size the bytes of one field.
type odSpec struct {
	kind    byte
	size    int
	width   int // of a field, without the blank before it
	padding int // blanks that a whole block has more, so that specs line up
	trailer bool
}

// Widths of integers in decimal and octal, by their size in bytes.
var (
	octalWidth    = [...]int{1: 3, 2: 6, 4: 11, 8: 22}
	signedWidth   = [...]int{1: 4, 2: 6, 4: 11, 8: 20}
	unsignedWidth = [...]int{1: 3, 2: 5, 4: 10, 8: 20}
	floatWidth    = [...]int{4: 15, 8: 24, 16: 29}
)

func newODSpec(kind byte, size int) odSpec {
	s := odSpec{kind: kind, size: size}
	switch kind {
	case 'o':
		s.width = octalWidth[size]
	case 'd':
		s.width = signedWidth[size]
	case 'u':
		s.width = unsignedWidth[size]
	case 'x':
		s.width = 2 * size
	case 'f':
		s.width = floatWidth[size]
	default:
		s.width = 3
	}
	return s
}

// end is the column in which the first k of all fields end. The blanks that are left over lie between the fields as
// evenly as whole ones can, the more of them the further to the left.
func (s *odSpec) end(k, fields int) int {
	behind := s.padding * (fields - k) / fields // of the blanks, those after field k
	return k*s.width + s.padding - behind
}

// parseODType reads a -t argument: several types, each perhaps with a size and z.
func parseODType(t *tool.T, arg string) (specs []odSpec) {
	for s := arg; s != ""; {
		kind := s[0]
		s = s[1:]
		size := 1
		switch kind {
		case 'd', 'o', 'u', 'x':
			size, s = odSize(t, arg, s, 4, "CSIL", []int{1, 2, 4, 8}, "integral")
		case 'f':
			size, s = odSize(t, arg, s, 8, "FDL", []int{4, 8, 16}, "floating point")
		case 'a', 'c':
		default:
			t.Fatal(1, "invalid character '%c' in type string %s", kind, tool.Quote(arg))
		}
		spec := newODSpec(kind, size)
		if s != "" && s[0] == 'z' {
			spec.trailer, s = true, s[1:]
		}
		specs = append(specs, spec)
	}
	return specs
}

// odSize reads the size after a type letter: one of letters, or a number out of sizes.
func odSize(t *tool.T, arg, s string, none int, letters string, sizes []int, what string) (int, string) {
	if s == "" {
		return none, s
	}
	for i := range letters {
		if letters[i] == s[0] {
			return sizes[i], s[1:]
		}
	}
	end := 0
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	if end == 0 {
		return none, s
	}
	n, err := strconv.Atoi(s[:end])
	if err == nil {
		for _, size := range sizes {
			if n == size {
				return n, s[end:]
			}
		}
	}
	t.Fatal(1, "invalid type string %s;\nthis system doesn't provide a %s-byte %s type", tool.Quote(arg), s[:end], what)
	return 0, ""
}

var odNames = [...]string{"nul", "soh", "stx", "etx", "eot", "enq", "ack", "bel", "bs", "ht", "nl", "vt", "ff", "cr", "so", "si",
	"dle", "dc1", "dc2", "dc3", "dc4", "nak", "syn", "etb", "can", "em", "sub", "esc", "fs", "gs", "rs", "us", "sp"}

// field renders one field.
func (s *odSpec) field(b []byte, order binary.ByteOrder) string {
	switch s.kind {
	case 'a':
		switch c := b[0] & 0x7f; {
		case c < 33:
			return odNames[c]
		case c == 0x7f:
			return "del"
		default:
			return string(rune(c))
		}
	case 'c':
		return odChar(b[0])
	case 'f':
		return odFloat(b, order)
	}
	var v uint64
	switch s.size {
	case 1:
		v = uint64(b[0])
	case 2:
		v = uint64(order.Uint16(b))
	case 4:
		v = uint64(order.Uint32(b))
	default:
		v = order.Uint64(b)
	}
	var text string
	switch s.kind {
	case 'd':
		shift := 64 - 8*s.size
		return strconv.FormatInt(int64(v<<shift)>>shift, 10)
	case 'u':
		return strconv.FormatUint(v, 10)
	case 'o':
		text = strconv.FormatUint(v, 8)
	default:
		text = strconv.FormatUint(v, 16)
	}
	for len(text) < s.width {
		text = "0" + text
	}
	return text
}

// odChar renders a byte for -c.
func odChar(c byte) string {
	switch c {
	case 0:
		return `\0`
	case '\a':
		return `\a`
	case '\b':
		return `\b`
	case '\f':
		return `\f`
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	case '\v':
		return `\v`
	}
	if c >= ' ' && c < 0x7f {
		return string(rune(c))
	}
	return string([]byte{'0' + c>>6, '0' + c>>3&7, '0' + c&7})
}

// odFloat renders a number with as few digits as tell it from its neighbours, though not rounded to fewer than its type
// holds for certain.
func odFloat(b []byte, order binary.ByteOrder) string {
	if len(b) == 16 {
		return odLongDouble(b, order)
	}
	var v, normal float64
	certain, size := 15, 64 // digits that any number of the type keeps
	if len(b) == 4 {
		v, normal = float64(math.Float32frombits(order.Uint32(b))), 0x1p-126
		certain, size = 6, 32
	} else {
		v, normal = math.Float64frombits(order.Uint64(b)), 0x1p-1022
	}
	switch {
	case math.IsNaN(v):
		if math.Signbit(v) {
			return "-nan"
		}
		return "nan"
	case math.IsInf(v, 0):
		return map[bool]string{true: "-inf", false: "inf"}[v < 0]
	}
	if math.Abs(v) < normal {
		certain = 1
	}
	return strconv.FormatFloat(v, 'g', max(certain, digitsOf(strconv.FormatFloat(v, 'e', -1, size))), 64)
}

// digitsOf counts the digits before the exponent.
func digitsOf(s string) (n int) {
	for i := 0; i < len(s) && s[i] != 'e'; i++ {
		if s[i] >= '0' && s[i] <= '9' {
			n++
		}
	}
	return n
}

// odLongDouble renders an x87 number: 64 bits of mantissa, 15 of exponent and a sign; the other 6 bytes mean nothing.
func odLongDouble(b []byte, order binary.ByteOrder) string {
	var mantissa uint64
	var top uint16
	if order == binary.ByteOrder(binary.BigEndian) {
		top, mantissa = order.Uint16(b[6:]), order.Uint64(b[8:])
	} else {
		mantissa, top = order.Uint64(b), order.Uint16(b[8:])
	}
	sign := ""
	if top&0x8000 != 0 {
		sign = "-"
	}
	exponent := int(top & 0x7fff)
	switch {
	case exponent == 0x7fff && mantissa<<1 == 0 && mantissa != 0:
		return sign + "inf"
	case exponent == 0x7fff, exponent != 0 && mantissa>>63 == 0:
		return sign + "nan"
	case mantissa == 0:
		return sign + "0"
	}
	// A number below the normal ones has as many bits as its mantissa has; the others have 64, and 18 digits for certain.
	precision, certain := uint(bits.Len64(mantissa)), 1
	if mantissa>>63 != 0 {
		certain = 18
	}
	v := new(big.Float).SetPrec(precision).SetUint64(mantissa)
	v.SetMantExp(v, max(exponent, 1)-16383-63)
	return sign + v.Text('g', max(certain, digitsOf(v.Text('e', -1))))
}
