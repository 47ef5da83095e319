package sort

import (
	"bytes"
	"math/big"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentrun.dev/command/cfmt"
	"agentrun.dev/command/posixre"
	"agentrun.dev/command/tool"
)

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

// compare orders two lines: by the keys in turn, then, unless -s or -u is given, by their bytes.
func (s *sorter) compare(a, b []byte) int {
	if s.simple {
		c := bytes.Compare(a, b)
		if s.global.reverse {
			return -c
		}
		return c
	}
	for i := range s.keys {
		k := &s.keys[i]
		if c := s.compareKey(k, s.part(k, a), s.part(k, b)); c != 0 {
			if k.reverse {
				return -c
			}
			return c
		}
	}
	if s.stable || s.unique {
		return 0
	}
	c := bytes.Compare(a, b)
	if s.global.reverse {
		return -c
	}
	return c
}

// part cuts a key out of a line.
func (s *sorter) part(k *key, line []byte) []byte {
	start := s.fieldStart(line, k.startField)
	if k.skipStart {
		for start < len(line) && isBlank(line[start]) {
			start++
		}
	}
	start = min(start+k.startChar, len(line))
	if k.endField < 0 {
		return line[start:]
	}
	end := 0
	if k.endChar == 0 {
		end = s.fieldEnd(line, k.endField)
	} else {
		end = s.fieldStart(line, k.endField)
		if k.skipEnd {
			for end < len(line) && isBlank(line[end]) {
				end++
			}
		}
		end = min(end+k.endChar, len(line))
	}
	if end <= start {
		return nil
	}
	return line[start:end]
}

// fieldStart returns where field n begins. Without a separator, a field begins with the blanks before it.
func (s *sorter) fieldStart(line []byte, n int) int {
	i := 0
	for ; n > 0 && i < len(line); n-- {
		if s.sep >= 0 {
			j := bytes.IndexByte(line[i:], byte(s.sep))
			if j < 0 {
				return len(line)
			}
			i += j + 1
			continue
		}
		for i < len(line) && isBlank(line[i]) {
			i++
		}
		for i < len(line) && !isBlank(line[i]) {
			i++
		}
	}
	return i
}

// fieldEnd returns where field n ends.
func (s *sorter) fieldEnd(line []byte, n int) int {
	i := s.fieldStart(line, n)
	if s.sep >= 0 {
		if j := bytes.IndexByte(line[i:], byte(s.sep)); j >= 0 {
			return i + j
		}
		return len(line)
	}
	for i < len(line) && isBlank(line[i]) {
		i++
	}
	for i < len(line) && !isBlank(line[i]) {
		i++
	}
	return i
}

func (s *sorter) compareKey(k *key, a, b []byte) int {
	switch {
	case k.numeric:
		return compareNumbers(trimBlanks(a), trimBlanks(b))
	case k.general:
		return compareGeneral(string(a), string(b))
	case k.human:
		return compareHuman(trimBlanks(a), trimBlanks(b))
	case k.month:
		return month(a) - month(b)
	case k.random:
		x, y := s.hash(k.normal(a)), s.hash(k.normal(b))
		return bytes.Compare(x[:], y[:])
	case k.version:
		return tool.CompareVersions(string(k.normal(a)), string(k.normal(b)))
	}
	if k.fold || k.dictionary || k.printable {
		return bytes.Compare(k.normal(a), k.normal(b))
	}
	return bytes.Compare(a, b)
}

// normal removes what -d and -i ignore, and folds case for -f.
func (k *key) normal(b []byte) []byte {
	if !k.fold && !k.dictionary && !k.printable {
		return b
	}
	return k.normalTo(make([]byte, 0, len(b)), b)
}

// normalTo is normal, appended to out.
func (k *key) normalTo(out, b []byte) []byte {
	for len(b) > 0 {
		if c := b[0]; c < utf8.RuneSelf { // most text, and quickly
			b = b[1:]
			letter := c|0x20 >= 'a' && c|0x20 <= 'z'
			switch {
			case k.dictionary && !letter && c != ' ' && c != '\t' && (c < '0' || c > '9'):
			case k.printable && (c < ' ' || c == 0x7f):
			case k.fold && letter:
				out = append(out, c&^0x20)
			default:
				out = append(out, c)
			}
			continue
		}
		r, n := utf8.DecodeRune(b)
		switch {
		case k.dictionary && !(r == ' ' || r == '\t' || posixre.InClass("alnum", r)):
		case k.printable && !posixre.InClass("print", r):
		case k.fold:
			out = utf8.AppendRune(out, unicode.ToUpper(r))
		default:
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return out
}

func trimBlanks(b []byte) []byte {
	for len(b) > 0 && isBlank(b[0]) {
		b = b[1:]
	}
	return b
}

// number splits a decimal number of any length off: sign, integer digits without leading zeros, fraction without
// trailing zeros.
func number(b []byte) (neg bool, whole, frac, rest []byte) {
	if len(b) > 0 && b[0] == '-' {
		neg = true
		b = b[1:]
	}
	i := 0
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	whole, b = b[:i], b[i:]
	if len(b) > 0 && b[0] == '.' {
		i = 1
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		frac, b = bytes.TrimRight(b[1:i], "0"), b[i:]
	}
	whole = bytes.TrimLeft(whole, "0")
	if len(whole) == 0 && len(frac) == 0 {
		neg = false
	}
	return neg, whole, frac, b
}

func compareNumbers(a, b []byte) int {
	na, wa, fa, _ := number(a)
	nb, wb, fb, _ := number(b)
	return compareParts(na, wa, fa, nb, wb, fb)
}

func compareParts(na bool, wa, fa []byte, nb bool, wb, fb []byte) int {
	if na != nb {
		if na {
			return -1
		}
		return 1
	}
	c := len(wa) - len(wb)
	if c == 0 {
		if c = bytes.Compare(wa, wb); c == 0 {
			c = bytes.Compare(fa, fb)
		}
	}
	if na {
		return -c
	}
	return c
}

// compareHuman orders by sign, then suffix, then number.
func compareHuman(a, b []byte) int {
	na, wa, fa, ra := number(a)
	nb, wb, fb, rb := number(b)
	unit := func(w, f, r []byte) int {
		if len(r) == 0 || len(w) == 0 && len(f) == 0 {
			return 0
		}
		if r[0] == 'k' {
			return 1
		}
		return strings.IndexByte("KMGTPEZY", r[0]) + 1
	}
	ua, ub := unit(wa, fa, ra), unit(wb, fb, rb)
	if na {
		ua = -ua
	}
	if nb {
		ub = -ub
	}
	if na == nb && ua != ub || na != nb && (ua != 0 || ub != 0) {
		return ua - ub
	}
	return compareParts(na, wa, fa, nb, wb, fb)
}

// compareGeneral orders by value: what is no number first, then NaN, then numbers.
func compareGeneral(a, b string) int {
	x, _, okx, _ := cfmt.ParseFloat(a)
	y, _, oky, _ := cfmt.ParseFloat(b)
	rank := func(v *big.Float, ok bool) int {
		switch {
		case !ok:
			return 0
		case v == nil:
			return 1
		}
		return 2
	}
	rx, ry := rank(x.Value, okx), rank(y.Value, oky)
	if rx != ry || rx < 2 {
		return rx - ry
	}
	return x.Value.Cmp(y.Value)
}

func month(b []byte) int {
	b = trimBlanks(b)
	if len(b) < 3 {
		return 0
	}
	i := strings.Index("JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC", strings.ToUpper(string(b[:3])))
	if i < 0 || i%3 != 0 {
		return 0
	}
	return i/3 + 1
}
