package tool

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"agentrun.dev/command/posixre"
)

// GlobFlags change how Glob matches.
type GlobFlags uint8

const (
	GlobPathname GlobFlags = 1 << iota // wildcards don't match a slash
	GlobPeriod                         // wildcards don't match a leading period
	GlobNoEscape                       // a backslash is a plain character
	GlobFold                           // ignore case
)

// Glob reports whether a name matches a shell pattern, as fnmatch does: *, ?, [...] with classes, \x. It takes at most
// len(pattern)*len(name) steps.
func Glob(pattern, name string, flags GlobFlags) bool {
	if flags&GlobFold != 0 {
		pattern, name = strings.ToLower(pattern), strings.ToLower(name)
	}
	starP, starN := -1, -1
	p, n := 0, 0
	for {
		if p < len(pattern) && pattern[p] == '*' && !globPeriod(name, n, flags) {
			for p < len(pattern) && pattern[p] == '*' {
				p++
			}
			starP, starN = p, n
			continue
		}
		if n == len(name) && p == len(pattern) {
			return true
		}
		if n < len(name) {
			if np, nn, ok := globOne(pattern, p, name, n, flags); ok {
				p, n = np, nn
				continue
			}
		}
		if starP < 0 || starN >= len(name) || flags&GlobPathname != 0 && name[starN] == '/' {
			return false
		}
		_, size := utf8.DecodeRuneInString(name[starN:])
		starN += size
		p, n = starP, starN
	}
}

func globPeriod(name string, n int, flags GlobFlags) bool {
	return flags&GlobPeriod != 0 && n < len(name) && name[n] == '.' && (n == 0 || flags&GlobPathname != 0 && name[n-1] == '/')
}

// globOne matches one character of name against one item of the pattern.
func globOne(pattern string, p int, name string, n int, flags GlobFlags) (int, int, bool) {
	if p == len(pattern) {
		return 0, 0, false
	}
	r, size := utf8.DecodeRuneInString(name[n:])
	wild := !(flags&GlobPathname != 0 && r == '/') && !globPeriod(name, n, flags)
	switch c := pattern[p]; {
	case c == '?':
		return p + 1, n + size, wild
	case c == '[':
		if end, in, ok := globSet(pattern, p, r, flags); ok {
			return end, n + size, wild && in
		}
	case c == '\\' && flags&GlobNoEscape == 0 && p+1 < len(pattern):
		p++
	}
	pr, psize := utf8.DecodeRuneInString(pattern[p:])
	same := pr == r
	if r == utf8.RuneError && size == 1 {
		same = psize == 1 && pattern[p] == name[n]
	}
	return p + psize, n + size, same
}

// globSet reads a bracket expression; ok is false if it has no end.
func globSet(pattern string, p int, r rune, flags GlobFlags) (end int, in, ok bool) {
	i := p + 1
	negated := i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^')
	if negated {
		i++
	}
	for first := true; i < len(pattern); first = false {
		if pattern[i] == ']' && !first {
			return i + 1, in != negated, true
		}
		if strings.HasPrefix(pattern[i:], "[:") {
			if name, _, found := strings.Cut(pattern[i+2:], ":]"); found {
				in = in || posixre.InClass(name, r) || flags&GlobFold != 0 && posixre.InClass(name, unicode.ToUpper(r))
				i += len(name) + 4
				continue
			}
		}
		lo, size := globRune(pattern, i, flags)
		i += size
		hi := lo
		if i+1 < len(pattern) && pattern[i] == '-' && pattern[i+1] != ']' {
			hi, size = globRune(pattern, i+1, flags)
			i += size + 1
		}
		in = in || r >= lo && r <= hi
	}
	return 0, false, false
}

func globRune(pattern string, i int, flags GlobFlags) (rune, int) {
	if pattern[i] == '\\' && flags&GlobNoEscape == 0 && i+1 < len(pattern) {
		r, n := utf8.DecodeRuneInString(pattern[i+1:])
		return r, n + 1
	}
	return utf8.DecodeRuneInString(pattern[i:])
}
