package text

import (
	"bufio"
	"bytes"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

// glyph is a character on a line.
type glyph struct {
	r    rune
	col  int
	wide int
	alt  bool // of the alternate character set
}

// paper is what col has read and not yet written: half lines, of which even ones are lines.
type paper struct {
	t                               *tool.T
	fine, pass, lastOnly, spaces    bool
	keep                            int // half lines that stay within reach
	lines                           [][]glyph
	first, line, col, lowest        int // first is the number of lines[0]
	alt, warned, flushed, outputAlt bool
	blanks                          int // half lines to go down before the next output
	size                            int
}

// Col makes a text with reverse line feeds one that goes down only.
func Col(t *tool.T) int {
	spec := tool.Spec{Usage: []string{"[options]"}, About: "\nFilter out reverse line feeds from standard input.", Package: utilLinux, Options: []getopt.Option{
		{Short: 'b', Long: "no-backspaces", Help: "do not output backspaces"}, {Short: 'f', Long: "fine", Help: "permit forward half line feeds"}, {Short: 'p', Long: "pass", Help: "pass unknown control sequences"},
		{Short: 'h', Long: "tabs", Help: "convert spaces to tabs"}, {Short: 'x', Long: "spaces", Help: "convert tabs to spaces"}, {Short: 'l', Long: "lines", Arg: getopt.Required, Name: "NUM", Help: "buffer at least NUM lines"}}}
	opts, args := t.Parse(&spec)
	p := &paper{t: t, keep: 2 * 128}
	for _, o := range opts {
		switch o.Key {
		case 'b':
			p.lastOnly = true
		case 'f':
			p.fine = true
		case 'p':
			p.pass = true
		case 'h':
			p.spaces = false
		case 'x':
			p.spaces = true
		case 'l':
			n, err := strconv.ParseUint(o.Arg, 10, 31)
			if err != nil {
				t.Fatal(1, "bad -l argument: '%s'", o.Arg)
			}
			p.keep = int(max(1, min(n, 1<<20))) * 2
		}
	}
	if len(args) > 0 {
		t.Warn("bad usage")
		t.Try(1)
	}
	in := bufio.NewReaderSize(t.Stdin(), 32<<10)
	for {
		r, size, err := in.ReadRune()
		if err != nil {
			break
		}
		if r == '\x1b' {
			r, _, err = in.ReadRune()
			if err != nil {
				break
			}
			p.escape(r)
			continue
		}
		p.put(r, size)
	}
	p.flush(len(p.lines))
	if p.lowest = max(p.lowest, p.line); p.blanks == 0 && p.flushed {
		p.blanks = 2
	}
	p.down(p.blanks)
	return 0
}

// escape is the character after ESC.
func (p *paper) escape(r rune) {
	switch r {
	case '7', '\a':
		p.move(-2)
	case '8', '\b':
		p.move(-1)
	case '9', '\t':
		p.move(1)
	default:
		if p.pass {
			p.set('\x1b', 1)
			p.put(r, 1)
		}
	}
}

func (p *paper) put(r rune, size int) {
	switch r {
	case ' ':
		p.col++
	case '\t':
		p.col = (p.col + 8) &^ 7
	case '\n':
		p.move(2)
		p.col = 0
	case '\r':
		p.col = 0
	case '\b':
		p.col = max(p.col-1, 0)
	case '\v':
		p.move(-2)
	case '\x0e':
		p.alt = true
	case '\x0f':
		p.alt = false
	default:
		if size > 1 || r >= ' ' && r != 0x7f || p.pass {
			p.set(r, max(tool.RuneWidth(r), 0))
		}
	}
}

// move goes some half lines down or up.
func (p *paper) move(n int) {
	if p.line+n < p.first {
		if !p.warned {
			p.warned = true
			what := "past first line"
			if p.flushed {
				what = "-- line already flushed"
			}
			p.t.Warn("warning: can't back up %s", what)
		}
		n = p.first - p.line
		if n%2 != 0 {
			n++
		}
	}
	p.line += n
	p.lowest = max(p.lowest, p.line)
	p.reserve(p.line)
}

// reserve makes room for a line, and writes those that are out of reach from it.
func (p *paper) reserve(line int) {
	for p.first+len(p.lines) <= line {
		p.lines = append(p.lines, nil)
	}
	if n := len(p.lines) - p.keep - 1; n > 0 && line-p.first > p.keep {
		p.flush(n)
	}
}

// set puts a character down.
func (p *paper) set(r rune, wide int) {
	line := p.line
	if !p.fine {
		line += line & 1 // what is half a line off goes to the line below
	}
	p.reserve(line)
	at := &p.lines[line-p.first]
	if p.size++; p.size > maxText/32 {
		p.t.Fatal(1, "%s", tool.Strerror(syscall.ENOMEM))
	}
	*at = append(*at, glyph{r, p.col, wide, p.alt})
	p.col += wide
}

// flush writes the first lines.
func (p *paper) flush(n int) {
	p.t.Check()
	for _, l := range p.lines[:n] {
		if len(l) > 0 {
			p.down(p.blanks)
			p.blanks = 0
			p.write(l)
			p.flushed = true
		}
		p.size -= len(l)
		p.blanks++
	}
	if n == len(p.lines) {
		p.blanks--
	}
	p.lines = append(p.lines[:0], p.lines[n:]...)
	p.first += n
}

// down writes the way to a line some half lines below.
func (p *paper) down(half int) {
	if half <= 0 {
		return
	}
	if !p.fine {
		half += half & 1
	}
	for range half / 2 {
		p.t.Out.WriteByte('\n')
	}
	if half&1 != 0 {
		p.t.Out.WriteString("\x1b9")
		if half/2 == 0 {
			p.t.Out.WriteByte('\r')
		}
	}
}

// write writes one line.
func (p *paper) write(l []glyph) {
	out := p.t.Out
	slices.SortStableFunc(l, func(a, b glyph) int { return a.col - b.col })
	at := 0
	for len(l) > 0 {
		n := 1
		for n < len(l) && l[n].col == l[0].col {
			n++
		}
		same := l[:n]
		l = l[n:]
		if p.lastOnly {
			same = same[n-1:]
		}
		if to := same[0].col; to > at {
			if !p.spaces && to-at > 1 {
				for (at+8)&^7 <= to {
					out.WriteByte('\t')
					at = (at + 8) &^ 7
				}
			}
			for ; at < to; at++ {
				out.WriteByte(' ')
			}
		}
		for i, g := range same {
			if i > 0 {
				out.WriteString(strings.Repeat("\b", same[i-1].wide))
			}
			if g.alt != p.outputAlt {
				out.WriteByte("\x0f\x0e"[map[bool]int{true: 1}[g.alt]])
				p.outputAlt = g.alt
			}
			out.WriteRune(g.r)
			at = g.col + g.wide
		}
	}
	if p.outputAlt {
		out.WriteByte('\x0f')
		p.outputAlt = false
	}
}

const (
	crtWidth = 132
	crtLines = 267
)

// crt is colcrt's page of half lines.
type crt struct {
	t                 *tool.T
	page              [crtLines][crtWidth + 1]rune
	line, col         int
	noUnderline, half bool
}

// Colcrt turns what nroff writes for a printer into what a screen can show: underlining becomes a line of dashes below.
func Colcrt(t *tool.T) int {
	spec := tool.Spec{Usage: []string{"[options] [<file>...]"}, About: "\nFilter nroff output for CRT previewing.", Package: utilLinux, Options: []getopt.Option{
		{Long: "no-underlining", Key: tool.KeyOwn, Help: "suppress all underlining (also -)"}, {Short: '2', Long: "half-lines", Help: "print all half-lines"}}}
	opts, files := t.Parse(&spec)
	c := &crt{t: t}
	for _, o := range opts {
		if o.Key == '2' {
			c.half = true
		} else {
			c.noUnderline = true
		}
	}
	if len(files) > 0 && files[0] == "-" {
		c.noUnderline, files = true, files[1:]
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	for _, name := range files {
		in, err := t.Open(name)
		if err != nil {
			t.Fatal(1, "cannot open %s: %s", name, tool.Strerror(err))
		}
		c.read(bufio.NewReaderSize(in, 32<<10))
		in.Close()
		c.flush(crtLines - 1)
		c.page, c.line, c.col = [crtLines][crtWidth + 1]rune{}, 0, 0
	}
	return 0
}

func (c *crt) read(in *bufio.Reader) {
	for {
		r, _, err := in.ReadRune()
		if err != nil {
			return
		}
		switch r {
		case '\n':
			if c.line >= crtLines-2 {
				c.flush(62)
			}
			c.line, c.col = c.line+2, 0
		case '\x0e', '\x0f':
		case '\x1b':
			r, _, _ = in.ReadRune()
			switch r {
			case '9':
				if c.line >= crtLines-1 {
					c.flush(62)
				}
				c.line++
			case '8':
				c.line = max(c.line-1, 0)
			case '7':
				c.line = max(c.line-2, 0)
			}
		case '\b':
			c.col = max(c.col-1, 0)
		case '\t':
			c.col = (c.col+8)&^7 - 1
			c.put(' ')
		default:
			c.put(r)
		}
	}
}

// put adds a character to what is there.
func (c *crt) put(r rune) {
	at, line := c.col, c.line
	if c.col++; at >= crtWidth {
		return
	}
	if r == '_' {
		if c.noUnderline {
			return
		}
		r, line = '-', line+1
	}
	if line >= crtLines {
		return
	}
	row := &c.page[line]
	plus := func(a, b rune) bool { return a == '|' && (b == '-' || b == '_') }
	switch old := row[at]; {
	case old == 0:
		row[at] = r
		for at--; at >= 0 && row[at] == 0; at-- {
			row[at] = ' '
		}
	case plus(r, old) || plus(old, r):
		row[at] = '+'
	case old == ' ':
		row[at] = r
	}
}

// flush writes the first half lines; those between lines that are empty are left out.
func (c *crt) flush(n int) {
	c.t.Check()
	last := n
	if n >= crtLines-1 {
		for last = crtLines; last > c.line && c.page[last-1][0] == 0; last-- {
		}
		last = min(last, crtLines-1)
	}
	for i := 1; i < last; i++ {
		c.merge(i, i-1)
		c.merge(i, i+1)
	}
	omitted := false
	for i := range min(last, n) {
		row := c.page[i][:]
		if k := slices.Index(row, 0); k >= 0 {
			row = row[:k]
		}
		if !omitted && len(row) == 0 && !(c.half && i%2 == 0) {
			omitted = true
			continue
		}
		omitted = false
		c.t.Out.Write(bytes.TrimRight([]byte(string(row)), " "))
		c.t.Out.WriteByte('\n')
	}
	n = min(n, crtLines)
	copy(c.page[:], c.page[n:])
	clear(c.page[crtLines-n:])
	c.line = max(c.line-n, 0)
}

// merge moves a half line of bars to a neighbour that has room for them.
func (c *crt) merge(from, to int) {
	a, b := &c.page[from], &c.page[to]
	for i := 0; i < crtWidth && a[i] != 0; i++ {
		if a[i] != ' ' && (a[i] != '|' || b[i] != ' ' && b[i] != '|' && b[i] != 0) {
			return
		}
	}
	for i := 0; i < crtWidth && a[i] != 0; i++ {
		if b[i] == 0 || a[i] == '|' {
			b[i] = a[i]
		}
	}
	a[0] = 0
}
