package awk

import (
	"math"
	"strconv"
	"strings"

	"agentrun.dev/command/cfmt"
)

// value is a number, a string, or both: input that looks like a number compares as one.
type value struct {
	kind valueKind
	n    float64
	s    string
}

type valueKind uint8

const (
	uninit valueKind = iota
	isNum
	isStr
	isStrNum // input; whether it is a number is found out when it matters
	wasNum   // input that is a number, n is set
)

func num(n float64) value  { return value{kind: isNum, n: n} }
func str(s string) value   { return value{kind: isStr, s: s} }
func input(s string) value { return value{kind: isStrNum, s: s} }

func boolean(b bool) value {
	if b {
		return num(1)
	}
	return num(0)
}

// looksNumeric parses a whole string as a number, blanks around it allowed.
func looksNumeric(s string) (float64, bool) {
	t := strings.Trim(s, " \t\n\r\f\v")
	if t == "" {
		return 0, false
	}
	v, n := scanNumber(t)
	if n == len(t) {
		return v, true
	}
	if c := t[0]; c != '+' && c != '-' {
		return 0, false
	}
	switch strings.ToLower(t[1:]) {
	case "inf":
		return math.Inf(1 - 2*strings.Count(t[:1], "-")), true
	case "nan":
		return math.NaN(), true
	}
	return 0, false
}

// number converts to a number: the longest one at the start of a string.
func (v *value) number() float64 {
	switch v.kind {
	case isNum, wasNum:
		return v.n
	case uninit:
		return 0
	}
	t := strings.TrimLeft(v.s, " \t\n\r\f\v")
	n, size := scanNumber(t)
	if size == 0 {
		n, _ = looksNumeric(t)
	}
	return n
}

// settle finds out whether input is a number.
func (v value) settle() value {
	if v.kind == isStrNum {
		if n, ok := looksNumeric(v.s); ok {
			return value{kind: wasNum, n: n, s: v.s}
		}
		v.kind = isStr
	}
	return v
}

func (v value) truth() bool {
	v = v.settle()
	switch v.kind {
	case isNum, wasNum:
		return v.n != 0
	case uninit:
		return false
	}
	return v.s != ""
}

// format renders a number by a format such as CONVFMT; integers have no point.
func formatNumber(n float64, format string) string {
	if n == math.Trunc(n) && math.Abs(n) < 1e16 {
		return strconv.FormatInt(int64(n), 10)
	}
	if math.IsNaN(n) {
		if math.Signbit(n) {
			return "-nan"
		}
		return "nan"
	}
	if math.IsInf(n, 0) {
		if n > 0 {
			return "inf"
		}
		return "-inf"
	}
	if n == math.Trunc(n) && math.Abs(n) < 1e18 {
		return strconv.FormatInt(int64(n), 10)
	}
	if n == math.Trunc(n) {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	if format == "%.6g" {
		s := cfmt.Spec{Prec: 6, Verb: 'g'}
		return s.Float(cfmt.Double(n))
	}
	return sprintf(format, []value{num(n)}, "%.6g")
}

func (v *value) text(convfmt string) string {
	switch v.kind {
	case isNum:
		return formatNumber(v.n, convfmt)
	case uninit:
		return ""
	}
	return v.s
}

// compare orders two values: as numbers if both are, else as strings.
func compare(a, b value, convfmt string) int {
	a, b = a.settle(), b.settle()
	if a.kind != isStr && b.kind != isStr {
		x, y := a.number(), b.number()
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		case x == y:
			return 0
		}
		return 1 // NaN
	}
	return strings.Compare(a.text(convfmt), b.text(convfmt))
}

// array is an associative array that remembers the order in which its elements came.
type array struct {
	m    map[string]*cell
	keys []string // may hold deleted ones
	dead int
	size int64 // bytes that were charged for it
}

type cell struct {
	v   value
	pos int
}

func newArray() *array { return &array{m: map[string]*cell{}} }

func (a *array) get(key string) *cell {
	c := a.m[key]
	if c == nil {
		c = &cell{pos: len(a.keys)}
		a.m[key] = c
		a.keys = append(a.keys, key)
	}
	return c
}

func (a *array) delete(key string) {
	c := a.m[key]
	if c == nil {
		return
	}
	delete(a.m, key)
	a.keys[c.pos] = ""
	if a.dead++; a.dead > 32 && a.dead > len(a.keys)/2 {
		a.compact()
	}
}

func (a *array) compact() {
	a.keys, a.dead = a.list(), 0
	for i, k := range a.keys {
		a.m[k].pos = i
	}
}

// list returns the keys in order.
func (a *array) list() []string {
	out := make([]string, 0, len(a.m))
	for i, k := range a.keys {
		if c := a.m[k]; c != nil && c.pos == i {
			out = append(out, k)
		}
	}
	return out
}

func (a *array) clear() { *a = array{m: map[string]*cell{}} }

// regexEscapes turns awk's escapes of characters in a regular expression into characters.
func regexEscapes(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; {
		case strings.IndexByte("afnrtv", c) >= 0:
			b.WriteByte("\a\f\n\r\t\v"[strings.IndexByte("afnrtv", c)])
		case c == '"' || c == '/' || c == '&':
			b.WriteByte(c)
		case c >= '0' && c <= '7':
			v := 0
			j := i
			for j < len(s) && j < i+3 && s[j] >= '0' && s[j] <= '7' {
				v = v*8 + int(s[j]-'0')
				j++
			}
			i = j - 1
			if strings.IndexByte(`\.[]()*+?{}|^$`, byte(v)) >= 0 {
				b.WriteByte('\\')
			}
			b.WriteByte(byte(v))
		case c == 'y':
			b.WriteString(`\b`)
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String()
}

// sprintf formats values as C does.
func sprintf(format string, args []value, convfmt string) string {
	var b strings.Builder
	next := func() value {
		if len(args) == 0 {
			return value{}
		}
		v := args[0]
		args = args[1:]
		return v
	}
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		if i+1 < len(format) && format[i+1] == '%' {
			b.WriteByte('%')
			i++
			continue
		}
		start := i
		i++
		s := cfmt.Spec{Prec: -1}
		for i < len(format) && s.Flag(format[i]) {
			i++
		}
		size := func() int {
			if i < len(format) && format[i] == '*' {
				i++
				v := next()
				return int(max(min(v.number(), cfmt.MaxWidth), -cfmt.MaxWidth))
			}
			n := 0
			for i < len(format) && isDigit(format[i]) {
				n = min(n*10+int(format[i]-'0'), cfmt.MaxWidth)
				i++
			}
			return n
		}
		s.Width = size()
		if i < len(format) && format[i] == '.' {
			i++
			s.Prec = size()
		}
		s.Clamp()
		for i < len(format) && strings.IndexByte("hlLqjzt", format[i]) >= 0 {
			i++
		}
		if i >= len(format) {
			b.WriteString(format[start:])
			break
		}
		s.Verb = format[i]
		b.WriteString(convert(&s, next, convfmt, format[start:i+1]))
	}
	return b.String()
}

func convert(s *cfmt.Spec, next func() value, convfmt, raw string) string {
	switch s.Verb {
	case 'd', 'i':
		v := next()
		n := v.number()
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return s.Float(cfmt.Double(n))
		}
		if math.Abs(n) >= 1<<63 {
			f := cfmt.Spec{Minus: s.Minus, Plus: s.Plus, Space: s.Space, Zero: s.Zero, Width: s.Width, Prec: 0, Verb: 'f'}
			return f.Float(cfmt.Double(math.Trunc(n)))
		}
		return s.Int(int64(n))
	case 'o', 'u', 'x', 'X':
		v := next()
		n := v.number()
		if n < 0 {
			return s.Uint(uint64(int64(max(n, -1<<63))))
		}
		if n >= 1<<64 {
			return s.Uint(math.MaxUint64)
		}
		return s.Uint(uint64(n))
	case 'e', 'E', 'f', 'F', 'g', 'G', 'a', 'A':
		v := next()
		return s.Float(cfmt.Double(v.number()))
	case 'c':
		v := next().settle()
		s.Prec = -1
		t := v.s
		if v.kind == isNum || v.kind == wasNum {
			if n := int(v.number()); n < 128 && n >= 0 {
				t = string([]byte{byte(n)})
			} else {
				t = string(rune(n))
			}
		} else if r := []rune(t); len(r) > 0 {
			t = string(r[:1])
		} else {
			t = "\x00" // what ends a string in C
		}
		return padRunes(s, t)
	case 's':
		v := next()
		t := v.text(convfmt)
		if s.Prec >= 0 {
			if r := []rune(t); len(r) > s.Prec {
				t = string(r[:s.Prec])
			}
			s.Prec = -1
		}
		return padRunes(s, t)
	}
	return raw
}

// padRunes pads a text to a width in characters.
func padRunes(s *cfmt.Spec, t string) string {
	s.Width += len(t) - len([]rune(t))
	return s.Text(t)
}
