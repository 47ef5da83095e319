// Package cfmt formats numbers and strings as C's printf does, with long double's precision.
//
// A Spec is one conversion: flags, width, precision and letter. Floating-point values are big.Floats of 64 bits of
// mantissa, x86's long double; those that come from a double are formatted exactly too.
package cfmt

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Mantissa is the precision of a long double.
const Mantissa = 64

// MaxWidth bounds widths and precisions; larger ones count as this.
const MaxWidth = 1 << 20

// Spec is one conversion. A negative Prec means that none was given.
type Spec struct {
	Minus, Plus, Space, Alt, Zero, Group bool
	Width, Prec                          int
	Verb                                 byte
}

// Flag sets a flag and reports whether c is one.
func (s *Spec) Flag(c byte) bool {
	switch c {
	case '-':
		s.Minus = true
	case '+':
		s.Plus = true
	case ' ':
		s.Space = true
	case '#':
		s.Alt = true
	case '0':
		s.Zero = true
	case '\'':
		s.Group = true
	default:
		return false
	}
	return true
}

// Clamp brings width and precision into their limits; a negative width means the flag -.
func (s *Spec) Clamp() {
	if s.Width < 0 {
		s.Minus, s.Width = true, -s.Width
	}
	s.Width = min(max(s.Width, 0), MaxWidth)
	s.Prec = min(max(s.Prec, -1), MaxWidth)
}

// pad puts blanks, or zeros after the sign or prefix, around a body.
func (s *Spec) pad(prefix, body string, zeros bool) string {
	n := s.Width - utf8.RuneCountInString(prefix) - len(body)
	switch {
	case n <= 0:
		return prefix + body
	case s.Minus:
		return prefix + body + strings.Repeat(" ", n)
	case zeros && s.Zero:
		return prefix + strings.Repeat("0", n) + body
	}
	return strings.Repeat(" ", n) + prefix + body
}

// Text formats %s: precision and width count bytes.
func (s *Spec) Text(v string) string {
	if s.Prec >= 0 && s.Prec < len(v) {
		v = v[:s.Prec]
	}
	return s.pad("", v, false)
}

// sign is what stands before a number that isn't negative.
func (s *Spec) sign() string {
	switch {
	case s.Plus:
		return "+"
	case s.Space:
		return " "
	}
	return ""
}

// Int formats d and i.
func (s *Spec) Int(v int64) string {
	prefix := s.sign()
	if v < 0 {
		prefix = "-"
	}
	u := uint64(v)
	if v < 0 {
		u = -u
	}
	return s.pad(prefix, s.precise(strconv.FormatUint(u, 10)), s.Prec < 0)
}

// Uint formats u, o, x and X.
func (s *Spec) Uint(v uint64) string {
	prefix, body := "", ""
	switch s.Verb {
	case 'o':
		body = strconv.FormatUint(v, 8)
		if s.Alt && body[0] != '0' && len(body) >= s.Prec {
			body = "0" + body
		}
	case 'x', 'X':
		body = strconv.FormatUint(v, 16)
		if s.Alt && v != 0 {
			prefix = "0x"
		}
		if s.Verb == 'X' {
			body, prefix = strings.ToUpper(body), strings.ToUpper(prefix)
		}
	default:
		body = strconv.FormatUint(v, 10)
	}
	return s.pad(prefix, s.precise(body), s.Prec < 0)
}

// precise adds zeros up to the precision; zero with precision zero is nothing.
func (s *Spec) precise(body string) string {
	if s.Prec == 0 && body == "0" {
		return ""
	}
	if n := s.Prec - len(body); n > 0 {
		return strings.Repeat("0", n) + body
	}
	return body
}

// Float is a long double, which big.Float lacks a not-a-number for.
type Float struct {
	Value *big.Float // nil is NaN
	Neg   bool       // sign of a NaN
}

// Double makes a Float of a double.
func Double(v float64) Float {
	if math.IsNaN(v) {
		return Float{Neg: math.Signbit(v)}
	}
	return Float{Value: big.NewFloat(v)}
}

// Float formats e, f, g, a and their capitals.
func (s *Spec) Float(v Float) string {
	upper := s.Verb >= 'A' && s.Verb <= 'Z'
	out := s.float(v)
	if upper {
		return strings.ToUpper(out)
	}
	return out
}

func (s *Spec) float(v Float) string {
	neg := v.Neg || v.Value != nil && v.Value.Signbit()
	prefix := s.sign()
	if neg {
		prefix = "-"
	}
	if v.Value == nil {
		return s.pad(prefix, "nan", false)
	}
	if v.Value.IsInf() {
		return s.pad(prefix, "inf", false)
	}
	x := new(big.Float).Abs(v.Value)
	prec := s.Prec
	if prec < 0 {
		prec = 6
	}
	switch s.Verb | 0x20 {
	case 'f':
		return s.pad(prefix, s.point(x.Text('f', prec)), true)
	case 'e':
		return s.pad(prefix, s.exponent(x, prec), true)
	case 'a':
		return s.pad(prefix+"0x", s.hex(x), true)
	}
	return s.pad(prefix, s.general(x, prec), true)
}

// point adds the decimal point that the flag # keeps.
func (s *Spec) point(t string) string {
	if s.Alt && strings.IndexByte(t, '.') < 0 {
		if i := strings.IndexByte(t, 'e'); i >= 0 {
			return t[:i] + "." + t[i:]
		}
		return t + "."
	}
	return t
}

func (s *Spec) exponent(x *big.Float, prec int) string { return s.point(x.Text('e', prec)) }

func (s *Spec) general(x *big.Float, prec int) string {
	if prec == 0 {
		prec = 1
	}
	e := x.Text('e', prec-1)
	i := strings.IndexByte(e, 'e')
	exp, _ := strconv.Atoi(e[i+1:])
	var mantissa, tail string
	if exp < -4 || exp >= prec {
		mantissa, tail = e[:i], e[i:]
	} else {
		mantissa = x.Text('f', prec-1-exp)
	}
	if s.Alt {
		return s.point(mantissa) + tail
	}
	if strings.IndexByte(mantissa, '.') >= 0 {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	return mantissa + tail
}

// hex formats %La: the first digit is 8 to f, since a long double's leading bit is stored.
func (s *Spec) hex(x *big.Float) string {
	if x.Sign() == 0 {
		t := "0"
		if s.Prec > 0 {
			t += "." + strings.Repeat("0", s.Prec)
		}
		return s.point(t) + "p+0"
	}
	y := new(big.Float).SetPrec(Mantissa).Set(x)
	exp := y.MantExp(y)       // y is in [0.5, 1)
	y.SetMantExp(y, Mantissa) // an integer of 64 bits
	n, _ := y.Int(nil)
	exp -= 4
	digits := n.Text(16)
	if s.Prec >= 0 && s.Prec < 15 {
		shift := uint(4 * (15 - s.Prec))
		half := new(big.Int).Lsh(big.NewInt(1), shift-1)
		rest := new(big.Int).And(n, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), shift), big.NewInt(1)))
		n = new(big.Int).Rsh(n, shift)
		if c := rest.Cmp(half); c > 0 || c == 0 && n.Bit(0) == 1 {
			n.Add(n, big.NewInt(1))
		}
		digits = n.Text(16)
		if len(digits) > s.Prec+1 {
			digits = digits[:len(digits)-1]
			exp += 4
		}
	} else if s.Prec < 0 {
		digits = strings.TrimRight(digits, "0")
	} else {
		digits += strings.Repeat("0", s.Prec-15)
	}
	t := digits[:1]
	if len(digits) > 1 {
		t += "." + digits[1:]
	}
	sign := "+"
	if exp < 0 {
		sign, exp = "-", -exp
	}
	return s.point(t) + "p" + sign + strconv.Itoa(exp)
}

// ParseFloat reads the longest number at the start of s as strtold does: blanks, sign, decimal or hexadecimal digits,
// inf, nan. rest is what follows; ok is false if there is no number. A number beyond the range is infinite or zero, with
// outOfRange set.
func ParseFloat(s string) (v Float, rest string, ok, outOfRange bool) {
	t := strings.TrimLeft(s, " \t\n\v\f\r")
	neg := false
	if t != "" && (t[0] == '+' || t[0] == '-') {
		neg = t[0] == '-'
		t = t[1:]
	}
	sign := ""
	if neg {
		sign = "-"
	}
	lower := strings.ToLower(t[:min(len(t), 8)])
	switch {
	case strings.HasPrefix(lower, "infinity"):
		return Float{Value: new(big.Float).SetInf(neg)}, t[8:], true, false
	case strings.HasPrefix(lower, "inf"):
		return Float{Value: new(big.Float).SetInf(neg)}, t[3:], true, false
	case strings.HasPrefix(lower, "nan"):
		return Float{Neg: neg}, t[3:], true, false
	}
	n, hex := numberLen(t)
	if n == 0 {
		return Float{}, s, false, false
	}
	text := t[:n]
	if hex && !strings.ContainsAny(text, "pP") {
		text += "p0"
	}
	if exp := exponentOf(text, hex); exp > 5000 || exp < -20000 {
		// Far beyond what a long double holds: don't let big.Float compute it.
		f := new(big.Float).SetPrec(Mantissa)
		if strings.Trim(strings.FieldsFunc(text, func(r rune) bool { return r|0x20 == 'e' && !hex || r|0x20 == 'p' })[0], "0.xX") == "" {
			return Float{Value: f}, t[n:], true, false
		}
		if exp > 0 {
			f.SetInf(neg)
		}
		return Float{Value: f}, t[n:], true, true
	}
	f, _, err := big.ParseFloat(sign+text, 0, Mantissa, big.ToNearestEven)
	if err != nil {
		if f, _, err = big.ParseFloat(sign+text, 10, Mantissa, big.ToNearestEven); err != nil {
			return Float{}, s, false, false
		}
	}
	if e := f.MantExp(nil); e > 16384 {
		f.SetInf(neg)
		outOfRange = true
	} else if e < -16445 && f.Sign() != 0 {
		f.SetInt64(0)
		outOfRange = true
	}
	return Float{Value: f}, t[n:], true, outOfRange
}

// exponentOf returns the written exponent, clamped.
func exponentOf(text string, hex bool) int {
	i := strings.LastIndexAny(text, "pP")
	if !hex {
		i = strings.LastIndexAny(text, "eE")
	}
	if i < 0 {
		return 0
	}
	n, err := strconv.Atoi(text[i+1:])
	if err != nil {
		n = 1 << 30
		if strings.HasPrefix(text[i+1:], "-") {
			n = -n
		}
	}
	if hex {
		n /= 3
	}
	return n
}

// numberLen returns the length of the number that t begins with.
func numberLen(t string) (n int, hex bool) {
	isDigit := func(c byte) bool { return c >= '0' && c <= '9' }
	expChar := byte('e')
	i := 0
	if len(t) > 2 && t[0] == '0' && t[1]|0x20 == 'x' {
		isHex := func(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }
		if isHex(t[2]) || t[2] == '.' && len(t) > 3 && isHex(t[3]) {
			hex, expChar, isDigit, i = true, 'p', isHex, 2
		}
	}
	seen := 0
	for i < len(t) && isDigit(t[i]) {
		i++
		seen++
	}
	if i < len(t) && t[i] == '.' {
		j := i + 1
		for j < len(t) && isDigit(t[j]) {
			j++
			seen++
		}
		if seen > 0 {
			i = j
		}
	}
	if seen == 0 {
		return 0, false
	}
	if i < len(t) && t[i]|0x20 == expChar {
		j := i + 1
		if j < len(t) && (t[j] == '+' || t[j] == '-') {
			j++
		}
		if j < len(t) && t[j] >= '0' && t[j] <= '9' {
			for j < len(t) && t[j] >= '0' && t[j] <= '9' {
				j++
			}
			i = j
		}
	}
	return i, hex
}
