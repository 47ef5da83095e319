package coreutils

import (
	"errors"
	"io"
	"math"
	"strconv"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/posixre"
	"agentrun.dev/command/tool"
)

var trSpec = tool.Spec{
	Usage: []string{"[OPTION]... STRING1 [STRING2]"},
	About: "Translate, squeeze, and/or delete characters from standard input,\nwriting to standard output.  STRING1 and STRING2 specify arrays of\ncharacters ARRAY1 and ARRAY2 that control the action.",
	Options: []getopt.Option{
		{Short: 'c', Long: "complement", Help: "use the complement of ARRAY1"},
		{Short: 'C', Key: 'c'},
		{Short: 'd', Long: "delete", Help: "delete characters in ARRAY1, do not translate"},
		{Short: 's', Long: "squeeze-repeats", Help: "replace each sequence of a repeated character that is listed in the last specified ARRAY, with a single occurrence of that character"},
		{Short: 't', Long: "truncate-set1", Help: "first truncate ARRAY1 to length of ARRAY2"},
	},
	Notes:   `Sequences: \NNN \\ \a \b \f \n \r \t \v CHAR1-CHAR2 [CHAR*] [CHAR*REPEAT] [:class:] [=CHAR=]`,
	Package: tool.Coreutils, Order: getopt.POSIX,
}

// trSet is a parsed array: bytes in order, and where classes stand.
type trSet struct {
	bytes   []byte
	classes []string // names of classes in the order of their appearance
	fill    int      // index of a [c*] that fills; -1
	fillBy  byte
	repeats bool
	equivs  bool
}

// Tr translates bytes.
func Tr(t *tool.T) int {
	opts, args := t.Parse(&trSpec)
	var complement, del, squeeze, truncate bool
	for _, o := range opts {
		switch o.Key {
		case 'c':
			complement = true
		case 'd':
			del = true
		case 's':
			squeeze = true
		case 't':
			truncate = true
		}
	}
	trOperands(t, args, del, squeeze)
	set1 := parseTrSet(t, args[0])
	if set1.fill >= 0 {
		t.Fatal(1, "the [c*] repeat construct may not appear in string1")
	}
	var set2 *trSet
	if len(args) > 1 {
		set2 = parseTrSet(t, args[1])
	}
	one := set1.bytes
	if complement {
		one = complementOf(one)
	}
	translate := set2 != nil && !del
	if set2 != nil {
		set2.expand(t, len(one), translate)
	}
	var table [256]byte
	var deleted, squeezed [256]bool
	for i := range table {
		table[i] = byte(i)
	}
	switch {
	case translate:
		two := trPairs(t, set1, set2, one, complement, truncate)
		for i, c := range one {
			if i < len(two) {
				table[c] = two[i]
			}
		}
	case del:
		for _, c := range one {
			deleted[c] = true
		}
	}
	if squeeze {
		last := one
		if set2 != nil {
			last = set2.bytes
		}
		for _, c := range last {
			squeezed[c] = true
		}
	}
	return trRun(t, &table, &deleted, &squeezed, squeeze)
}

func trOperands(t *tool.T, args []string, del, squeeze bool) {
	if len(args) == 0 {
		t.Missing(1)
	}
	two := !del && !squeeze || del && squeeze
	if len(args) == 1 && two {
		t.Warn("missing operand after %s", tool.Quote(args[0]))
		text := "Two strings must be given when translating.\n"
		if del {
			text = "Two strings must be given when both deleting and squeezing repeats.\n"
		}
		t.Stderr().Write([]byte(text))
		t.Try(1)
	}
	limit := 2
	if del && !squeeze {
		limit = 1
	}
	if len(args) > limit {
		t.Warn("extra operand %s", tool.Quote(args[limit]))
		if len(args) == 2 {
			t.Stderr().Write([]byte("Only one string may be given when deleting without squeezing repeats.\n"))
		}
		t.Try(1)
	}
}

// trPairs returns what the bytes of the first array become.
func trPairs(t *tool.T, set1, set2 *trSet, one []byte, complement, truncate bool) []byte {
	two := set2.bytes
	if len(two) == 0 && !truncate {
		t.Fatal(1, "when not truncating set1, string2 must be non-empty")
	}
	for _, c := range set2.classes {
		if c != "upper" && c != "lower" {
			t.Fatal(1, "when translating, the only character classes that may appear in\nstring2 are 'upper' and 'lower'")
		}
	}
	if complement && len(set1.classes) > 0 && len(set2.bytes) > 1 && !sameByte(two) {
		t.Fatal(1, "when translating with complemented character classes,\nstring2 must map all characters in the domain to one")
	}
	if truncate {
		return two
	}
	for len(two) < len(one) && len(two) > 0 {
		two = append(two, two[len(two)-1])
	}
	return two
}

func sameByte(b []byte) bool {
	for _, c := range b {
		if c != b[0] {
			return false
		}
	}
	return true
}

func complementOf(set []byte) []byte {
	var in [256]bool
	for _, c := range set {
		in[c] = true
	}
	var out []byte
	for i := range in {
		if !in[i] {
			out = append(out, byte(i))
		}
	}
	return out
}

// expand fills a [c*] of the second array up to the length of the first.
func (s *trSet) expand(t *tool.T, n int, translate bool) {
	if s.equivs && translate {
		t.Fatal(1, "[=c=] expressions may not appear in string2 when translating")
	}
	if s.fill < 0 {
		return
	}
	if !translate {
		t.Fatal(1, "the [c*] construct may appear in string2 only when translating")
	}
	if missing := n - len(s.bytes); missing > 0 {
		tail := append([]byte{}, s.bytes[s.fill:]...)
		s.bytes = append(s.bytes[:s.fill], []byte(strings.Repeat(string([]byte{s.fillBy}), missing))...)
		s.bytes = append(s.bytes, tail...)
	}
}

// trChar reads one character with its escapes.
func trChar(t *tool.T, s string) (c byte, n int, escaped bool) {
	if s[0] != '\\' {
		return s[0], 1, false
	}
	if len(s) == 1 {
		t.Warn("warning: an unescaped backslash at end of string is not portable")
		return '\\', 1, false
	}
	if s[1] >= '0' && s[1] <= '7' {
		v, n := digits(s[1:], 8, 3)
		if v > 255 {
			t.Warn("warning: the ambiguous octal escape %s is being\n\tinterpreted as the 2-byte sequence \\0%s, %s", s[:4], s[1:3], s[3:4])
			v, n = digits(s[1:], 8, 2)
		}
		return byte(v), 1 + n, true
	}
	if b, ok := simpleEscape(s[1]); ok && s[1] != 'e' {
		return b, 2, true
	}
	return s[1], 2, true
}

func parseTrSet(t *tool.T, s string) *trSet {
	set := &trSet{fill: -1}
	for i := 0; i < len(s); {
		if s[i] == '[' {
			if n := set.construct(t, s[i:]); n > 0 {
				i += n
				continue
			}
		}
		c, n, _ := trChar(t, s[i:])
		i += n
		if i+1 < len(s) && s[i] == '-' {
			hi, m, _ := trChar(t, s[i+1:])
			if hi < c {
				t.Fatal(1, "range-endpoints of '%s-%s' are in reverse collating sequence order", trShow(c), trShow(hi))
			}
			for v := int(c); v <= int(hi); v++ {
				set.bytes = append(set.bytes, byte(v))
			}
			i += 1 + m
			continue
		}
		set.bytes = append(set.bytes, c)
	}
	return set
}

func trShow(c byte) string { return tool.EscapeC(string([]byte{c}), "") }

// construct reads [:class:], [=c=], [c*] or [c*n]; it returns 0 if s begins none.
func (set *trSet) construct(t *tool.T, s string) int {
	if len(s) > 2 && (s[1] == ':' || s[1] == '=') {
		kind := s[1]
		if end := strings.Index(s[2:], string(kind)+"]"); end >= 0 {
			name := s[2 : 2+end]
			if kind == '=' {
				switch {
				case name == "":
					t.Fatal(1, "missing equivalence class character '[==]'")
				case len(name) > 1:
					t.Fatal(1, "%s: equivalence class operand must be a single character", name)
				}
				set.bytes, set.equivs = append(set.bytes, name[0]), true
				return end + 4
			}
			if name == "" {
				t.Fatal(1, "missing character class name '[::]'")
			}
			before := len(set.bytes)
			for c := range 128 {
				if posixre.InClass(name, rune(c)) {
					set.bytes = append(set.bytes, byte(c))
				}
			}
			if before == len(set.bytes) || name == "word" {
				t.Fatal(1, "invalid character class %s", tool.Quote(name))
			}
			set.classes = append(set.classes, name)
			return end + 4
		}
	}
	if len(s) < 4 {
		return 0
	}
	c, n, _ := trChar(t, s[1:])
	rest := s[1+n:]
	if !strings.HasPrefix(rest, "*") {
		return 0
	}
	end := strings.IndexByte(rest, ']')
	if end < 0 {
		return 0
	}
	count := rest[1:end]
	base := 10
	if strings.HasPrefix(count, "0") {
		base = 8
	}
	v, err := strconv.ParseUint(count, base, 31)
	switch {
	case count == "" || err == nil && v == 0:
		if set.fill >= 0 {
			t.Fatal(1, "only one [c*] repeat construct may appear in string2")
		}
		set.fill, set.fillBy = len(set.bytes), c
	case err != nil:
		t.Fatal(1, "invalid repeat count %s in [c*n] construct", tool.Quote(count))
	default:
		set.bytes = append(set.bytes, strings.Repeat(string([]byte{c}), int(min(v, math.MaxUint16)))...)
	}
	return 1 + n + end + 1
}

func trRun(t *tool.T, table *[256]byte, deleted, squeezed *[256]bool, squeeze bool) int {
	buf := make([]byte, 64<<10)
	last := -1
	for {
		n, err := t.Stdin().Read(buf)
		out := buf[:0]
		for _, c := range buf[:n] {
			if deleted[c] {
				continue
			}
			c = table[c]
			if squeeze && squeezed[c] && int(c) == last {
				continue
			}
			last = int(c)
			out = append(out, c)
		}
		t.Out.Write(out)
		if errors.Is(err, io.EOF) {
			return 0
		}
		if err != nil {
			t.Fatal(1, "read error: %s", tool.Strerror(err))
		}
	}
}
