package rg

import (
	"bytes"
	"io"
	"strings"
	"syscall"

	"agentrun.dev/command/tool"
)

// maxContent bounds a file that is searched as a whole.
const maxContent = 256 << 20

// block is lines that matches cover, which follow each other.
type block struct {
	from, to int // offsets of the first line and behind the last
	found    [][]int
}

// multi searches a whole file for matches that may go over several lines.
func (c *scan) multi(r io.Reader) {
	s := c.s
	text, err := io.ReadAll(io.LimitReader(r, maxContent+1))
	if err == nil && len(text) > maxContent {
		err = syscall.EFBIG
	}
	if err != nil {
		s.complain("%s: %s", c.name, tool.Strerror(err))
		return
	}
	c.offset = int64(len(text))
	list := c.blocks(text)
	if s.invert {
		list = between(text, list)
	}
	if s.max >= 0 && int64(len(list)) > s.max {
		list = list[:s.max]
	}
	for _, b := range list {
		c.selected += int64(bytes.Count(text[b.from:b.to], []byte("\n")))
		if b.to > b.from && text[b.to-1] != '\n' {
			c.selected++
		}
		c.matches += int64(len(b.found))
	}
	if s.count || s.countMatches || s.list || s.without || s.quiet {
		return
	}
	number, at := int64(1), 0 // the line that begins at an offset
	for i, b := range list {
		s.step(1 + (b.to-at)/256)
		number, at = c.before(text, number, at, b.from)
		c.block(text, &b, number)
		number += int64(bytes.Count(text[b.from:b.to], []byte("\n")))
		at = b.to
		end := len(text)
		if i+1 < len(list) {
			end = list[i+1].from
		}
		for n := 0; (n < s.after || s.passthru) && at < end; n++ {
			line := lineAt(text, at)
			c.print(line, number, int64(at), '-', nil)
			number, at = number+1, min(at+len(line)+1, len(text))
		}
	}
	if len(list) == 0 && s.passthru {
		for at < len(text) {
			line := lineAt(text, at)
			c.print(line, number, int64(at), '-', nil)
			number, at = number+1, min(at+len(line)+1, len(text))
		}
	}
}

func lineAt(text []byte, at int) []byte {
	line, _, _ := bytes.Cut(text[at:], []byte("\n"))
	return line
}

// blocks finds the matches, and the lines that they cover.
func (c *scan) blocks(text []byte) []block {
	var list []block
	for at := 0; at <= len(text); {
		c.s.step(1)
		m := c.s.re.FindSubmatchIndex(text[at:])
		if m == nil {
			break
		}
		for i := range m {
			if m[i] >= 0 {
				m[i] += at
			}
		}
		if at = m[1]; m[0] == m[1] {
			if at++; m[0] == len(text) && len(text) > 0 && text[len(text)-1] == '\n' {
				break
			}
		}
		from := bytes.LastIndexByte(text[:m[0]], '\n') + 1
		end := max(m[0], m[1]-1)
		to := len(text)
		if i := bytes.IndexByte(text[min(end, len(text)):], '\n'); i >= 0 {
			to = end + i + 1
		}
		if n := len(list); n > 0 && from <= list[n-1].to {
			list[n-1].to = max(list[n-1].to, to)
			list[n-1].found = append(list[n-1].found, m)
		} else {
			list = append(list, block{from, to, [][]int{m}})
		}
	}
	return list
}

// between returns the lines that no block covers.
func between(text []byte, list []block) []block {
	var out []block
	at := 0
	for _, b := range append(list, block{from: len(text), to: len(text)}) {
		for at < b.from {
			to := min(at+len(lineAt(text, at))+1, len(text))
			out = append(out, block{from: at, to: to})
			at = to
		}
		at = b.to
	}
	return out
}

// before prints the lines before a block that are asked for.
func (c *scan) before(text []byte, number int64, at, to int) (int64, int) {
	s := c.s
	skipped := bytes.Count(text[at:to], []byte("\n"))
	show := min(skipped, s.before)
	if s.passthru {
		show = skipped
	}
	for n := skipped; n > show; n-- {
		number, at = number+1, at+len(lineAt(text, at))+1
	}
	if (s.before > 0 || s.after > 0) && s.printed && (c.last == 0 || number > c.last+1) {
		s.gap()
	}
	for range show {
		line := lineAt(text, at)
		c.print(line, number, int64(at), '-', nil)
		number, at = number+1, at+len(line)+1
	}
	return number, at
}

// block prints one.
func (c *scan) block(text []byte, b *block, number int64) {
	s := c.s
	body := text[b.from:b.to]
	relative := func(m []int) []int {
		out := make([]int, len(m))
		for i := range m {
			if out[i] = m[i]; m[i] >= 0 {
				out[i] -= b.from
			}
		}
		return out
	}
	first := []int(nil)
	if len(b.found) > 0 {
		first = relative(b.found[0])
	}
	switch {
	case s.json:
		var all [][]int
		for _, m := range b.found {
			all = append(all, relative(m))
		}
		c.event("match", body, number, int64(b.from), all)
		c.last = number + int64(bytes.Count(bytes.TrimSuffix(body, []byte("\n")), []byte("\n")))
	case s.only && len(b.found) > 0:
		for _, m := range b.found {
			n := number + int64(bytes.Count(text[b.from:m[0]], []byte("\n")))
			part := c.expand(text[m[0]:m[1]], text, m)
			for i, line := range bytes.Split(bytes.TrimSuffix(part, []byte("\n")), []byte("\n")) {
				c.print(line, n+int64(i), int64(m[0]), ':', relative(m))
			}
		}
	case s.vimgrep:
		for _, m := range b.found {
			n := number + int64(bytes.Count(text[b.from:m[0]], []byte("\n")))
			start := bytes.LastIndexByte(text[:m[0]], '\n') + 1
			c.print(lineAt(text, start), n, int64(start), ':', []int{m[0] - start})
		}
	default:
		if s.replace != nil {
			var out []byte
			at := b.from
			for _, m := range b.found {
				out = append(out, text[at:m[0]]...)
				out = s.re.Expand(out, []byte(*s.replace), text, m)
				at = m[1]
			}
			body = append(out, text[min(at, b.to):b.to]...)
		}
		offset := int64(b.from)
		for i, line := range bytes.Split(bytes.TrimSuffix(body, []byte("\n")), []byte("\n")) {
			c.print(line, number+int64(i), offset, ':', first)
			offset += int64(len(line)) + 1
		}
		c.last = number + int64(bytes.Count(bytes.TrimSuffix(text[b.from:b.to], []byte("\n")), []byte("\n")))
	}
}

// check refuses options and patterns that don't go together.
func (s *searcher) check() {
	if s.json {
		for name, on := range map[string]bool{"files-with-matches": s.list, "files-without-match": s.without, "count": s.count, "count-matches": s.countMatches, "files": s.files} {
			if on {
				s.t.Fatal(2, "error: The argument '--%s' cannot be used with '--json'", name)
			}
		}
		s.replace, s.only, s.vimgrep = nil, false, false
		if s.stats == nil {
			s.stats = &stats{}
		}
	}
}

// hasNewline reports whether a pattern asks for a newline, which no single line has.
func hasNewline(p string) bool {
	for i := 0; i+1 < len(p); i++ {
		if p[i] == '\\' {
			if p[i+1] == 'n' {
				return true
			}
			i++
		}
	}
	return strings.Contains(p, "\n")
}
