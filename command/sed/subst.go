package sed

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentrun.dev/command/tool"
)

// substitution is an s command.
type substitution struct {
	re     *regex // nil: the last one used
	parts  []part
	global bool
	number int
	print  int // p; 2 if it came after e
	eval   bool
	file   string
}

// caseMode is what \U and its kin ask for.
type caseMode uint8

const (
	caseKeep  caseMode = iota
	caseUpper          // \U
	caseLower          // \L
	caseEnd            // \E
)

// part is a piece of a replacement: a literal, or a group (-1 for none), or a change of case.
type part struct {
	text  string
	group int
	mode  caseMode
	once  caseMode // \u or \l: for the next character
}

func (p *parser) substitute(cmd *command) error {
	delim := p.next()
	if delim == eof || delim == '\n' || delim == '\\' {
		return p.bad("unterminated `s' command")
	}
	pattern, ok := p.delimited(byte(delim), true)
	if !ok {
		return p.bad("unterminated `s' command")
	}
	replacement, ok := p.delimited(byte(delim), false)
	if !ok {
		return p.bad("unterminated `s' command")
	}
	s := &substitution{}
	cmd.sub = s
	highest := 0
	s.parts, highest = parseReplacement(replacement)
	var fold, multi bool
	if err := p.flags(s, &fold, &multi); err != nil {
		return err
	}
	var err error
	if s.re, err = p.regex(pattern, fold, multi); err != nil {
		return err
	}
	if s.re != nil && highest > s.re.re.NumSubexp() {
		return p.bad("invalid reference \\%d on `s' command's RHS", highest)
	}
	p.cmds = append(p.cmds, *cmd)
	return nil
}

func (p *parser) flags(s *substitution, fold, multi *bool) error {
	for {
		c := p.next()
		switch {
		case c == 'i' || c == 'I':
			*fold = true
		case c == 'm' || c == 'M':
			*multi = true
		case c == 'e':
			if p.o.sandbox {
				return p.bad("e/r/w commands disabled in sandbox mode")
			}
			s.eval = true
		case c == 'p':
			if s.print > 0 {
				return p.bad("multiple `p' options to `s' command")
			}
			s.print = 1
			if s.eval {
				s.print = 2
			}
		case c == 'g':
			if s.global {
				return p.bad("multiple `g' options to `s' command")
			}
			s.global = true
		case c >= '0' && c <= '9':
			if s.number > 0 {
				return p.bad("multiple number options to `s' command")
			}
			n, _ := p.number(c)
			if n == 0 {
				return p.bad("number option to `s' command may not be zero")
			}
			s.number = int(min(n, 1<<31-1))
		case c == 'w':
			if p.o.sandbox {
				return p.bad("e/r/w commands disabled in sandbox mode")
			}
			if s.file = p.rest(); s.file == "" {
				return p.bad("missing filename in r/R/w/W commands")
			}
			p.files = append(p.files, s.file)
			return nil
		case c == '}' || c == '#':
			p.back(c)
			return nil
		case c == eof || c == '\n' || c == ';':
			return nil
		case c == ' ' || c == '\t' || c == '\r':
		default:
			return p.bad("unknown option to `s'")
		}
	}
}

// parseReplacement splits a replacement into parts; highest is the greatest group that it refers to.
func parseReplacement(s string) (parts []part, highest int) {
	var lit strings.Builder
	flush := func() {
		if lit.Len() > 0 {
			parts = append(parts, part{text: lit.String(), group: -1})
			lit.Reset()
		}
	}
	add := func(p part) {
		flush()
		parts = append(parts, p)
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '&' {
			add(part{group: 0})
			continue
		}
		if c != '\\' || i+1 == len(s) {
			lit.WriteByte(c)
			continue
		}
		i++
		switch c = s[i]; {
		case c >= '0' && c <= '9':
			add(part{group: int(c - '0')})
			highest = max(highest, int(c-'0'))
		case c == 'U':
			add(part{group: -1, mode: caseUpper})
		case c == 'L':
			add(part{group: -1, mode: caseLower})
		case c == 'E':
			add(part{group: -1, mode: caseEnd})
		case c == 'u':
			add(part{group: -1, once: caseUpper})
		case c == 'l':
			add(part{group: -1, once: caseLower})
		default:
			if ch, n, _ := charEscape(s[i:]); n > 0 {
				lit.WriteByte(ch)
				i += n - 1
			} else {
				lit.WriteByte(c)
			}
		}
	}
	flush()
	return parts, highest
}

// apply makes the replacement; it reports whether anything was replaced.
func (x *executor) substitute(c *command) bool {
	s := c.sub
	re := x.resolve(s.re, c)
	if lit, _ := re.re.Literal(); lit != "" && !bytes.Contains(x.space.text, []byte(lit)) {
		return false
	}
	limit := -1
	switch {
	case s.global:
	case s.number > 0:
		limit = s.number
	default:
		limit = 1
	}
	all, err := re.re.FindAll(x.space.text, limit)
	if err != nil {
		x.t.Fatal(exitPanic, "%s", err)
	}
	first := max(s.number, 1) - 1
	if len(all) <= first {
		return false
	}
	src := x.space.text
	out := x.scratch[:0]
	at := 0
	for _, loc := range all[first:] {
		out = append(out, src[at:loc[0]]...)
		out = expand(out, s.parts, src, loc)
		at = loc[1]
		if len(out) > tool.MaxLine {
			x.t.Fatal(exitPanic, "memory exhausted")
		}
	}
	out = append(out, src[at:]...)
	x.scratch, x.space.text = src, out
	return true
}

// expand appends a replacement.
func expand(out []byte, parts []part, src []byte, loc []int) []byte {
	mode, once := caseKeep, caseKeep
	for i := range parts {
		p := &parts[i]
		switch {
		case p.mode == caseEnd:
			mode, once = caseKeep, caseKeep
			continue
		case p.mode != caseKeep:
			mode = p.mode
			continue
		case p.once != caseKeep:
			once = p.once
			continue
		}
		var piece []byte
		if p.group < 0 {
			if mode == caseKeep && once == caseKeep {
				out = append(out, p.text...)
				continue
			}
			piece = []byte(p.text)
		} else if 2*p.group+1 < len(loc) && loc[2*p.group] >= 0 {
			piece = src[loc[2*p.group]:loc[2*p.group+1]]
		}
		if len(piece) == 0 {
			continue
		}
		if mode == caseKeep && once == caseKeep {
			out = append(out, piece...)
			continue
		}
		out = changeCase(out, piece, mode, once)
		once = caseKeep
	}
	return out
}

func changeCase(out, piece []byte, mode, once caseMode) []byte {
	for first := true; len(piece) > 0; first = false {
		r, n := utf8.DecodeRune(piece)
		m := mode
		if first && once != caseKeep {
			m = once
		}
		switch {
		case r == utf8.RuneError && n == 1, m == caseKeep:
			out = append(out, piece[:n]...)
		case m == caseUpper:
			out = utf8.AppendRune(out, unicode.ToUpper(r))
		default:
			out = utf8.AppendRune(out, unicode.ToLower(r))
		}
		piece = piece[n:]
	}
	return out
}
