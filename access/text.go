package access

import (
	"strings"
	"unicode/utf8"
)

// printable returns a text fit for a line: at most n bytes, whole characters, each that has no place in a line replaced by '?'.
func printable(s string, n int) string {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	if !strings.ContainsFunc(s, unprintable) { // what isn't UTF-8 reads as U+FFFD
		return s
	}
	return strings.Map(func(r rune) rune {
		if unprintable(r) {
			return '?'
		}
		return r
	}, s)
}
