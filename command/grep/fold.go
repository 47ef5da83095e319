package grep

import (
	"bytes"
	"strings"
)

// folded finds an ASCII string in any case. It looks for the byte of it that is likely to be the rarest.
type folded struct {
	text         string // in lower case
	at           int    // of the byte looked for
	lower, upper byte
	special      bool // K and S have other forms outside of ASCII
}

// byFrequency has the commonest letters of text first.
const byFrequency = "etaoinsrhldcumfpgwybvkxjqz"

// newFolded returns nil if the string isn't ASCII.
func newFolded(s string) *folded {
	f := &folded{text: strings.ToLower(s)}
	best := -1
	for i := 0; i < len(s); i++ {
		c := f.text[i]
		if c >= 0x80 {
			return nil
		}
		rank := strings.IndexByte(byFrequency, c)
		if rank < 0 {
			rank = 12 // digits and signs
			if c == ' ' {
				rank = -1
			}
		}
		if rank >= best {
			best, f.at = rank, i
		}
	}
	f.lower = f.text[f.at]
	f.upper = f.lower
	if f.lower >= 'a' && f.lower <= 'z' {
		f.upper = f.lower - 0x20
	}
	f.special = strings.ContainsAny(f.text, "ks")
	return f
}

// otherForms are the letters beyond ASCII that are K and S in another case: the Kelvin sign and the long s.
var otherForms = [2][]byte{[]byte("\u212a"), []byte("\u017f")}

// unsure reports whether a text has letters that the search for ASCII doesn't see.
func (f *folded) unsure(b []byte) bool {
	return f.special && (bytes.Contains(b, otherForms[0]) || bytes.Contains(b, otherForms[1]))
}

// positions are where the byte looked for is next, in either case: below where the search is, if that isn't known. They
// are kept from search to search in the same text, so that none goes over it twice.
type positions struct{ low, high int }

// index returns where the string begins, from an index on, or -1.
func (f *folded) index(b []byte, from int, p *positions) int {
	last := len(b) - (len(f.text) - f.at) // of the byte looked for
	for i := from + f.at; i <= last; {
		if p.low < i {
			p.low = next(b, i, f.lower)
		}
		if p.high < i {
			if p.high = len(b); f.upper != f.lower {
				p.high = next(b, i, f.upper)
			}
		}
		if i = min(p.low, p.high); i > last {
			return -1
		}
		if f.equal(b[i-f.at:]) {
			return i - f.at
		}
		i++
	}
	return -1
}

// next is where a byte is from i on; the length if it isn't there.
func next(b []byte, i int, c byte) int {
	if j := bytes.IndexByte(b[i:], c); j >= 0 {
		return i + j
	}
	return len(b)
}

func (f *folded) equal(b []byte) bool {
	for i := 0; i < len(f.text); i++ {
		c := b[i]
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != f.text[i] {
			return false
		}
	}
	return true
}
