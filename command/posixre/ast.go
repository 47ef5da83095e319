package posixre

import "unicode"

// op is the kind of a node.
type op uint8

const (
	opEmpty    op = iota
	opRune        // one character
	opAny         // .
	opSet         // a bracket expression or \w, \s …
	opConcat      // sub in sequence
	opAlt         // one of sub
	opGroup       // a capturing group around sub[0], number n
	opRepeat      // sub[0] from min to max times; max < 0 is unbounded
	opBackref     // what group n matched
	opBOL         // ^
	opEOL         // $
	opBegin       // \`
	opEnd         // \'
	opWordB       // \b
	opNotWordB    // \B
	opWordBeg     // \<
	opWordEnd     // \>
)

// node is one node of a parsed expression.
type node struct {
	op       op
	sub      []*node
	r        rune
	set      *set
	min, max int
	n        int
}

// set is a set of characters.
type set struct {
	negated bool
	ranges  []rune   // pairs, inclusive
	classes []string // POSIX class names, in lower case, and "word"
}

func (s *set) add(lo, hi rune) { s.ranges = append(s.ranges, lo, hi) }

// classes maps the POSIX classes, as they are in C.UTF-8, to a Go class body.
var classes = map[string]string{
	"alpha": `\p{L}\p{Nl}`, "digit": `0-9`, "alnum": `\p{L}\p{Nl}\p{Nd}`, "upper": `\p{Lu}`, "lower": `\p{Ll}`,
	"space": "\\t-\\r \\x{1680}\\x{2000}-\\x{2006}\\x{2008}-\\x{200a}\\x{2028}\\x{2029}\\x{205f}\\x{3000}",
	"blank": "\\t \\x{1680}\\x{2000}-\\x{2006}\\x{2008}-\\x{200a}\\x{205f}\\x{3000}",
	"punct": "!-/:-@\\[-`{-~\\p{P}\\p{S}", "print": ` -~\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}`, "graph": `!-~\p{L}\p{M}\p{N}\p{P}\p{S}`,
	"cntrl": `\x00-\x1f\x7f-\x{9f}`, "xdigit": `0-9A-Fa-f`, "word": `_\p{L}\p{Nl}\p{Nd}`,
}

// asciiClass reports whether an ASCII character is in a POSIX class.
func asciiClass(name string, r rune) bool {
	switch name {
	case "alpha":
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	case "digit":
		return r >= '0' && r <= '9'
	case "alnum":
		return asciiClass("alpha", r) || asciiClass("digit", r)
	case "word":
		return r == '_' || asciiClass("alnum", r)
	case "upper":
		return r >= 'A' && r <= 'Z'
	case "lower":
		return r >= 'a' && r <= 'z'
	case "space":
		return r == ' ' || r >= '\t' && r <= '\r'
	case "blank":
		return r == ' ' || r == '\t'
	case "punct":
		return r > ' ' && r < 0x7f && !asciiClass("alnum", r)
	case "print":
		return r >= ' ' && r < 0x7f
	case "graph":
		return r > ' ' && r < 0x7f
	case "cntrl":
		return r < ' ' || r == 0x7f
	case "xdigit":
		return asciiClass("digit", r) || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F'
	}
	return false
}

// wordness reports whether the set holds word characters only, or none of them; neither is (false, false). Sets that
// reach beyond ASCII are undecided.
func (s *set) wordness() (allWord, noWord bool) {
	if s.negated {
		// A negated set holds most of Unicode; it has no word character only if it excludes all of them, and the engine
		// calls only ASCII ones so.
		for r := rune(0); r < 0x80; r++ {
			if asciiClass("word", r) && s.hasASCII(r) {
				return false, false
			}
		}
		return false, true
	}
	allWord, noWord = true, true
	for i := 0; i < len(s.ranges); i += 2 {
		if s.ranges[i+1] >= 0x80 {
			return false, false
		}
	}
	for r := rune(0); r < 0x80; r++ {
		if s.hasASCII(r) {
			if asciiClass("word", r) {
				noWord = false
			} else {
				allWord = false
			}
		}
	}
	return allWord, noWord
}

func (s *set) hasASCII(r rune) bool {
	in := false
	for i := 0; i < len(s.ranges); i += 2 {
		in = in || r >= s.ranges[i] && r <= s.ranges[i+1]
	}
	for _, c := range s.classes {
		in = in || asciiClass(c, r)
	}
	return in != s.negated
}

// InClass reports whether a character is in a POSIX class such as alpha.
func InClass(name string, r rune) bool {
	if r < 0x80 {
		return asciiClass(name, r)
	}
	switch name {
	case "alpha":
		return unicode.IsLetter(r)
	case "alnum", "word":
		return unicode.IsLetter(r) || unicode.IsDigit(r)
	case "upper":
		return unicode.IsUpper(r)
	case "lower":
		return unicode.IsLower(r)
	case "space", "blank":
		return unicode.IsSpace(r) && r != 0xa0
	case "punct":
		return unicode.IsPunct(r) || unicode.IsSymbol(r)
	case "print":
		return unicode.IsPrint(r)
	case "graph":
		return unicode.IsGraphic(r) && !unicode.IsSpace(r)
	case "cntrl":
		return unicode.IsControl(r)
	}
	return false
}
