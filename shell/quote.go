package shell

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ansiC decodes the inside of $'…'.
func ansiC(s string) string {
	out, _ := escapes(s, escANSI)
	return out
}

type escMode uint8

const (
	escANSI   escMode = iota // $'…'
	escEcho                  // echo -e: \0nnn, \c ends
	escPrintf                // printf's format
	escB                     // printf %b
)

// escapes decodes backslash escapes. stop tells that \c ended the output.
func escapes(s string, mode escMode) (out string, stop bool) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, false
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'a':
			b.WriteByte(7)
		case 'b':
			b.WriteByte(8)
		case 'e', 'E':
			b.WriteByte(27)
		case 'f':
			b.WriteByte(12)
		case 'n':
			b.WriteByte(10)
		case 'r':
			b.WriteByte(13)
		case 't':
			b.WriteByte(9)
		case 'v':
			b.WriteByte(11)
		case '\\':
			b.WriteByte('\\')
		case '\'', '"', '?':
			if mode == escEcho || mode == escB && c == '?' {
				b.WriteByte('\\')
			}
			b.WriteByte(c)
		case 'c':
			if mode == escANSI {
				if i+1 < len(s) {
					i++
					b.WriteByte(s[i] & 0x1f)
				}
				continue
			}
			if mode == escPrintf {
				b.WriteString(`\c`)
				continue
			}
			return b.String(), true
		case 'x', 'u', 'U':
			n, max := 0, map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			j := i + 1
			for j < len(s) && j-i <= max && isHex(s[j]) {
				d, _ := strconv.ParseUint(s[j:j+1], 16, 8)
				n = n<<4 | int(d)
				j++
			}
			switch {
			case j == i+1:
				b.WriteByte('\\')
				b.WriteByte(c)
			case c == 'x':
				b.WriteByte(byte(n))
			default:
				writeCodePoint(&b, n)
			}
			i = j - 1
		case '0', '1', '2', '3', '4', '5', '6', '7':
			if mode == escEcho && c != '0' {
				b.WriteByte('\\')
				b.WriteByte(c)
				continue
			}
			n, j, max := 0, i, 3
			if c == '0' && (mode == escEcho || mode == escB) {
				j, max = i+1, 3
			}
			for k := 0; k < max && j < len(s) && s[j] >= '0' && s[j] <= '7'; k++ {
				n = n<<3 | int(s[j]-'0')
				j++
			}
			b.WriteByte(byte(n))
			i = j - 1
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	out = b.String()
	if mode == escANSI {
		// A NUL ends the string, as in C.
		if i := strings.IndexByte(out, 0); i >= 0 {
			out = out[:i]
		}
	}
	return out, false
}

func writeCodePoint(b *strings.Builder, n int) {
	if n <= unicode.MaxRune && utf8.ValidRune(rune(n)) {
		b.WriteRune(rune(n))
		return
	}
	// bash encodes surrogates and numbers beyond Unicode by the old rules of UTF-8.
	switch {
	case n < 0x10000:
		b.Write([]byte{byte(0xe0 | n>>12), byte(0x80 | n>>6&0x3f), byte(0x80 | n&0x3f)})
	case n < 0x200000:
		b.Write([]byte{byte(0xf0 | n>>18), byte(0x80 | n>>12&0x3f), byte(0x80 | n>>6&0x3f), byte(0x80 | n&0x3f)})
	case n < 0x4000000:
		b.Write([]byte{byte(0xf8 | n>>24), byte(0x80 | n>>18&0x3f), byte(0x80 | n>>12&0x3f), byte(0x80 | n>>6&0x3f), byte(0x80 | n&0x3f)})
	case n < 0x80000000:
		b.Write([]byte{byte(0xfc | n>>30), byte(0x80 | n>>24&0x3f), byte(0x80 | n>>18&0x3f), byte(0x80 | n>>12&0x3f), byte(0x80 | n>>6&0x3f), byte(0x80 | n&0x3f)})
	}
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

// needsANSI tells whether a string must be quoted as $'…'.
func needsANSI(s string) bool {
	for i := 0; i < len(s); {
		r, n := decode(s[i:])
		if r < 0x20 || r == 0x7f || r >= badByte || r > 0x7f && !unicode.IsPrint(r) && !unicode.In(r, unicode.Cf, unicode.Zs, unicode.Co) {
			return true
		}
		i += n
	}
	return false
}

func quoteANSI(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for i := 0; i < len(s); {
		r, n := decode(s[i:])
		switch {
		case r == '\a':
			b.WriteString(`\a`)
		case r == '\b':
			b.WriteString(`\b`)
		case r == 27:
			b.WriteString(`\E`)
		case r == '\f':
			b.WriteString(`\f`)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\v':
			b.WriteString(`\v`)
		case r == '\\' || r == '\'':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\%03o`, r)
		case r >= badByte || r > 0x7f && !unicode.IsPrint(r):
			for _, c := range []byte(s[i : i+n]) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		default:
			b.WriteRune(r)
		}
		i += n
	}
	b.WriteByte('\'')
	return b.String()
}

// quoteWord quotes for ${x@Q}: single quotes always.
func quoteWord(s string) string {
	if needsANSI(s) {
		return quoteANSI(s)
	}
	return quoteSingle(s)
}

func quoteSingle(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// quoteDouble quotes as declare -p does.
func quoteDouble(s string) string {
	if needsANSI(s) {
		return quoteANSI(s)
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		if strings.IndexByte("\"$`\\", s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	b.WriteByte('"')
	return b.String()
}

// quoteKey quotes an associative array's key in declare -p.
func quoteKey(s string) string {
	if needsANSI(s) {
		return quoteANSI(s)
	}
	if s == "" || strings.ContainsAny(s, " \t\n'\"\\|&;()<>!{}*[]?^$`~#@") {
		return quoteDouble(s)
	}
	return s
}

// quoteSet quotes a value as set and trap list it: only if necessary.
func quoteSet(s string) string {
	if needsANSI(s) {
		return quoteANSI(s)
	}
	if s == "" {
		return ""
	}
	if strings.ContainsAny(s, " \t\n'\"\\|&;()<>!{}*[]?^$`") || s[0] == '~' || s[0] == '#' {
		return quoteSingle(s)
	}
	return s
}

// quoteBackslash quotes as printf %q does.
func quoteBackslash(s string) string {
	if s == "" {
		return "''"
	}
	if needsANSI(s) {
		return quoteANSI(s)
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case strings.IndexByte(" \t\n'\"\\|&;()<>!{}*[]?^$`,", c) >= 0:
			b.WriteByte('\\')
		case i == 0 && (c == '~' || c == '#'):
			b.WriteByte('\\')
		case c == '~' && (s[i-1] == ':' || s[i-1] == '='):
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// attrFlags are a variable's letters, in the order of declare -p.
func attrFlags(v *variable) string {
	if v == nil {
		return ""
	}
	var b []byte
	for _, f := range []struct {
		a attr
		c byte
	}{{attrIndexed, 'a'}, {attrAssoc, 'A'}, {attrInteger, 'i'}, {attrNameref, 'n'}, {attrReadonly, 'r'}, {attrTrace, 't'}, {attrExport, 'x'}, {attrCapital, 'c'}, {attrLower, 'l'}, {attrUpper, 'u'}} {
		if v.attr&f.a != 0 {
			b = append(b, f.c)
		}
	}
	return string(b)
}

// declareText is a variable as declare -p writes it.
func (sh *Shell) declareText(name string, v *variable) string {
	flags := attrFlags(v)
	if flags == "" {
		flags = "-"
	}
	text := "declare -" + flags + " " + name
	switch {
	case v.isArray():
		if !v.set {
			return text
		}
		return text + "=" + arrayText(v)
	case v.set:
		return text + "=" + quoteDouble(v.str)
	}
	return text
}

// arrayText is an array's value as declare -p writes it.
func arrayText(v *variable) string {
	var b strings.Builder
	b.WriteByte('(')
	vals, keys := elements(v)
	for i, s := range vals {
		k := keys[i]
		if v.assoc != nil {
			k = quoteKey(k)
		} else if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "[%s]=%s", k, quoteDouble(s))
		if v.assoc != nil {
			b.WriteByte(' ')
		}
	}
	b.WriteByte(')')
	return b.String()
}
