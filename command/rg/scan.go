package rg

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"syscall"

	"agentrun.dev/command/tool"
)

// sniff is how much of a file is looked at to tell whether it is binary.
const sniff = 64 << 10

// scan is the search of one file.
type scan struct {
	s                *searcher
	name             string
	line             int64
	offset           int64
	selected         int64
	matches          int64
	pending          int
	last             int64 // number of the line printed last
	held             [][]byte
	heldSize         int
	begun            bool  // its first event, or its heading, has been written
	from             int64 // bytes printed before it
	binary, reported bool
}

// file searches a file, or lists it with --files. Binary files that weren't asked for are left out.
func (s *searcher) file(name, open string, operand bool) {
	if s.files {
		s.found = true
		if !s.quiet {
			s.out.WriteString(name)
			s.end()
		}
		return
	}
	in, err := s.t.Open(open)
	if err != nil {
		s.complain("%s: %s", name, tool.Strerror(err))
		return
	}
	defer in.Close()
	r := bufio.NewReaderSize(in, sniff)
	head, _ := r.Peek(sniff)
	nul := bytes.IndexByte(head, 0)
	c := &scan{s: s, name: name, binary: nul >= 0 && !s.text}
	if c.binary && !operand {
		return
	}
	if a, err := in.Attr(); s.maxFilesize >= 0 && !in.IsStdin() && err == nil && a.Size > s.maxFilesize {
		return
	}
	c.from = s.out.n
	if s.multiline && !c.binary {
		c.multi(r)
		c.finish()
		return
	}
	lines := tool.NewLines(r, '\n')
	for {
		line, ok := lines.Next()
		if !ok || s.max >= 0 && c.selected >= s.max && c.pending == 0 {
			break
		}
		s.step(1 + len(line)/256)
		c.line++
		if c.take(line, nul) {
			break
		}
		c.offset += int64(len(line)) + 1
	}
	if lines.Err != nil {
		s.complain("%s: %s", name, tool.Strerror(lines.Err))
	}
	c.finish()
}

func (s *searcher) end() {
	if s.null {
		s.out.WriteByte(0)
	} else {
		s.out.WriteByte('\n')
	}
}

// take handles a line, and reports whether the file is done.
func (c *scan) take(line []byte, nul int) bool {
	s := c.s
	summary := s.count || s.countMatches || s.list || s.without || s.quiet
	if (s.max < 0 || c.selected < s.max) && s.re.Match(line) != s.invert {
		c.selected++
		if (s.countMatches || s.stats != nil || s.json) && !s.invert {
			c.matches += int64(len(s.re.FindAllIndex(line, -1)))
		}
		switch {
		case s.list || s.without || s.quiet:
			return !s.count && !s.countMatches && s.stats == nil
		case summary:
		case c.binary && s.json:
			return true
		case c.binary:
			if s.withName {
				s.out.WriteString(c.name + ": ")
			}
			fmt.Fprintf(s.out, "binary file matches (found \"\\0\" byte around offset %d)\n", nul)
			return true
		default:
			c.selectLine(line)
		}
		return false
	}
	switch {
	case summary:
	case c.binary:
	case c.pending > 0 || s.passthru:
		c.pending = max(c.pending-1, 0)
		c.print(line, c.line, c.offset, '-', nil)
		return false
	case s.before > 0:
		c.hold(line)
	}
	return false
}

// maxHeld bounds the lines that are kept for -B.
const maxHeld = 64 << 20

// hold keeps a line that may be printed before the next match.
func (c *scan) hold(line []byte) {
	if len(c.held) == c.s.before {
		c.heldSize -= len(c.held[0]) + 32
		c.held[0], c.held = nil, c.held[1:]
	}
	c.held = append(c.held, append([]byte(nil), line...))
	if c.heldSize += len(line) + 32; c.heldSize > maxHeld {
		c.s.t.Fatal(2, "%s: %s", c.name, tool.Strerror(syscall.ENOMEM))
	}
}

func (c *scan) selectLine(line []byte) {
	s := c.s
	first := c.line - int64(len(c.held))
	if (s.before > 0 || s.after > 0) && s.printed && (c.last == 0 || first > c.last+1) {
		s.gap()
	}
	at := c.offset
	for _, h := range c.held {
		at -= int64(len(h)) + 1
	}
	for i, h := range c.held {
		c.print(h, first+int64(i), at, '-', nil)
		at += int64(len(h)) + 1
	}
	c.held, c.heldSize = c.held[:0], 0
	c.pending = s.after
	if s.invert {
		if s.json {
			c.event("match", withNewline(line), c.line, c.offset, nil)
		} else {
			c.print(line, c.line, c.offset, ':', nil)
		}
		return
	}
	all := s.re.FindAllSubmatchIndex(line, -1)
	switch {
	case s.json:
		c.event("match", withNewline(line), c.line, c.offset, all)
	case s.only:
		for _, m := range all {
			c.print(c.expand(line[m[0]:m[1]], line, m), c.line, c.offset+int64(m[0]), ':', m)
		}
	case s.vimgrep:
		for _, m := range all {
			c.print(c.replaced(line, all), c.line, c.offset, ':', m)
		}
	default:
		c.print(c.replaced(line, all), c.line, c.offset, ':', all[0])
	}
}

func (c *scan) expand(text, line []byte, m []int) []byte {
	if c.s.replace == nil {
		return text
	}
	return c.s.re.Expand(nil, []byte(*c.s.replace), line, m)
}

// replaced applies -r to a line.
func (c *scan) replaced(line []byte, all [][]int) []byte {
	if c.s.replace == nil {
		return line
	}
	var out []byte
	at := 0
	for _, m := range all {
		out = append(out, line[at:m[0]]...)
		out = c.s.re.Expand(out, []byte(*c.s.replace), line, m)
		at = m[1]
	}
	return append(out, line[at:]...)
}

// gap writes what stands between lines that don't follow each other.
func (s *searcher) gap() {
	if !s.json && !s.passthru {
		s.out.WriteString(s.separator + "\n")
	}
}

func (c *scan) print(line []byte, number, offset int64, sep byte, match []int) {
	s := c.s
	out := s.out
	if s.json {
		var found [][]int
		if s.invert {
			found = s.re.FindAllSubmatchIndex(line, -1)
		}
		c.last = number
		c.event("context", withNewline(line), number, offset, found)
		return
	}
	if s.heading && s.withName && !c.begun {
		if s.printed {
			out.WriteByte('\n')
		}
		out.WriteString(c.name)
		s.end()
	}
	s.printed, c.last, c.begun = true, number, true
	if s.withName && !s.heading {
		out.WriteString(c.name)
		if s.null {
			out.WriteByte(0)
		} else {
			out.WriteByte(sep)
		}
	}
	if s.numbers {
		out.WriteString(strconv.FormatInt(number, 10))
		out.WriteByte(sep)
	}
	if s.column && match != nil {
		out.WriteString(strconv.Itoa(match[0] + 1))
		out.WriteByte(sep)
	}
	if s.offsets {
		out.WriteString(strconv.FormatInt(offset, 10))
		out.WriteByte(sep)
	}
	if s.trim {
		line = bytes.TrimLeft(line, " \t")
	}
	if s.maxColumns > 0 && len(line) > s.maxColumns {
		line = []byte(map[bool]string{true: "[Omitted long matching line]", false: "[Omitted long context line]"}[sep == ':'])
	}
	out.Write(line)
	out.WriteByte('\n')
}

// finish prints what stands for the whole file.
func (c *scan) finish() {
	s := c.s
	hit := c.selected > 0
	if s.json && c.begun {
		c.eventEnd()
	}
	if s.stats != nil && !s.json {
		s.stats.add(c, s.out.n-c.from)
	}
	s.found = s.found || hit != s.without
	n := c.selected
	if (s.countMatches || s.multiline) && !s.invert {
		n = c.matches
	}
	switch {
	case s.quiet || s.json:
	case s.without:
		if !hit {
			s.out.WriteString(c.name)
			s.end()
		}
	case !hit && !(s.includeZero && (s.count || s.countMatches)):
	case s.count || s.countMatches:
		if s.withName {
			s.out.WriteString(c.name)
			if s.null {
				s.out.WriteByte(0)
			} else {
				s.out.WriteByte(':')
			}
		}
		fmt.Fprintf(s.out, "%d\n", n)
	case s.list:
		s.out.WriteString(c.name)
		s.end()
	}
}
