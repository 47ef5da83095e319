package rg

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"

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
	binary, reported bool
}

// file searches a file, or lists it with --files. Binary files that weren't asked for are left out.
func (s *searcher) file(name, open string, operand bool) {
	if s.files {
		s.found = true
		if !s.quiet {
			s.t.Out.WriteString(name)
			s.end()
		}
		return
	}
	in, err := s.t.Open(open)
	if err != nil {
		fmt.Fprintf(s.t.Stderr(), "%s: %s\n", name, tool.Strerror(err))
		s.failed = true
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
		fmt.Fprintf(s.t.Stderr(), "%s: %s\n", name, tool.Strerror(lines.Err))
		s.failed = true
	}
	c.finish()
}

func (s *searcher) end() {
	if s.null {
		s.t.Out.WriteByte(0)
	} else {
		s.t.Out.WriteByte('\n')
	}
}

// take handles a line, and reports whether the file is done.
func (c *scan) take(line []byte, nul int) bool {
	s := c.s
	summary := s.count || s.countMatches || s.list || s.without || s.quiet
	if (s.max < 0 || c.selected < s.max) && s.re.Match(line) != s.invert {
		c.selected++
		if s.countMatches && !s.invert {
			c.matches += int64(len(s.re.FindAllIndex(line, -1)))
		}
		switch {
		case s.list || s.without || s.quiet:
			return !s.count && !s.countMatches
		case summary:
		case c.binary:
			if s.withName {
				s.t.Out.WriteString(c.name + ": ")
			}
			fmt.Fprintf(s.t.Out, "binary file matches (found \"\\0\" byte around offset %d)\n", nul)
			return true
		default:
			c.selectLine(line)
		}
		return false
	}
	switch {
	case summary:
	case c.pending > 0:
		c.pending--
		c.print(line, c.line, c.offset, '-', nil)
		return false
	case s.before > 0:
		if len(c.held) == s.before {
			c.held = append(c.held[:0], c.held[1:]...)
		}
		c.held = append(c.held, append([]byte(nil), line...))
	}
	return false
}

func (c *scan) selectLine(line []byte) {
	s := c.s
	first := c.line - int64(len(c.held))
	if (s.before > 0 || s.after > 0) && s.printed && (c.last == 0 || first > c.last+1) {
		s.t.Out.WriteString("--\n")
	}
	at := c.offset
	for _, h := range c.held {
		at -= int64(len(h)) + 1
	}
	for i, h := range c.held {
		c.print(h, first+int64(i), at, '-', nil)
		at += int64(len(h)) + 1
	}
	c.held = c.held[:0]
	c.pending = s.after
	if s.invert {
		c.print(line, c.line, c.offset, ':', nil)
		return
	}
	all := s.re.FindAllSubmatchIndex(line, -1)
	switch {
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

func (c *scan) print(line []byte, number, offset int64, sep byte, match []int) {
	s := c.s
	out := s.t.Out
	s.printed, c.last = true, number
	if s.withName {
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
	out.Write(line)
	out.WriteByte('\n')
}

// finish prints what stands for the whole file.
func (c *scan) finish() {
	s := c.s
	hit := c.selected > 0
	s.found = s.found || hit != s.without
	n := c.selected
	if s.countMatches && !s.invert {
		n = c.matches
	}
	switch {
	case s.quiet:
	case s.without:
		if !hit {
			s.t.Out.WriteString(c.name)
			s.end()
		}
	case !hit:
	case s.count || s.countMatches:
		if s.withName {
			s.t.Out.WriteString(c.name)
			if s.null {
				s.t.Out.WriteByte(0)
			} else {
				s.t.Out.WriteByte(':')
			}
		}
		fmt.Fprintf(s.t.Out, "%d\n", n)
	case s.list:
		s.t.Out.WriteString(c.name)
		s.end()
	}
}
