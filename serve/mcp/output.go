package mcp

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// How much of a command's streams is returned, and kept for the file that has all.
const (
	mostStdout = 20_000
	mostStderr = 8_000
	mostHeld   = 8 << 20
	mostResult = 4_000
)

// capture holds what a command writes to one stream: the first mostHeld bytes, and the last few.
type capture struct {
	held  []byte
	last  []byte // what came after held, at most twice mostStdout
	total int64
}

func (s *capture) add(b []byte) {
	s.total += int64(len(b))
	if n := min(mostHeld-len(s.held), len(b)); n > 0 {
		s.held = append(s.held, b[:n]...)
		b = b[n:]
	}
	if len(b) == 0 {
		return
	}
	if s.last = append(s.last, b...); len(s.last) > 2*mostStdout {
		s.last = bytes.Clone(s.last[len(s.last)-mostStdout:])
	}
}

// shown returns all, if that isn't more than most.
func (s *capture) shown(most int) (text string, cut bool) {
	if s.total > int64(most) {
		return "", true
	}
	return valid(s.held), false
}

// cut returns the first and the last part, with a word on the rest between them. Parts end with lines where lines aren't long.
func (s *capture) cut(most int, word string) string {
	first := s.held[:min(most/2, len(s.held))]
	if i := bytes.LastIndexByte(first, '\n'); i > len(first)/2 {
		first = first[:i+1]
	}
	last := s.last
	if len(last) < most/2 {
		last = append(bytes.Clone(s.held[len(s.held)-min(most/2-len(last), len(s.held)-len(first)):]), last...)
	}
	last = last[len(last)-min(most/2, len(last)):]
	if i := bytes.IndexByte(last, '\n'); i >= 0 && i < len(last)/2 {
		last = last[i+1:]
	}
	left := s.total - int64(len(first)) - int64(len(last))
	return fmt.Sprintf("%s\n[… %d bytes left out here; %s …]\n%s", strings.TrimSuffix(valid(first), "\n"), left, word, valid(last))
}

// valid makes text of bytes.
func valid(b []byte) string { return strings.ToValidUTF8(string(b), "\ufffd") }

// tail returns the last bytes of a text.
func tail(b []byte, most int) string {
	if len(b) > most {
		b = b[len(b)-most:]
		for len(b) > 0 && !utf8.RuneStart(b[0]) {
			b = b[1:]
		}
	}
	return valid(b)
}

func clipped(s string) string { return clipTo(s, mostResult) }

// clipTo returns the first bytes of a text.
func clipTo(s string, most int) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}
