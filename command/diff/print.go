package diff

import (
	"fmt"
	"strings"
	"time"

	"agentrun.dev/command/posixre"
)

// pair is two texts with the changes between them.
type pair struct {
	d       *differ
	a, b    *text
	inputs  [2]input
	names   [2]string
	changes []change
	found   int // where the search for a function's line ended
	lastFn  int
}

// colorKind is a role in coloured output.
type colorKind int

const (
	noColor colorKind = iota
	headerColor
	deleteColor
	addColor
	lineColor
)

// palette holds the SGR parameters of the roles.
type palette [5]string

func defaultPalette() palette { return palette{"0", "1", "31", "32", "36"} }

// parse reads a palette such as "hd=1:de=31:ad=32:ln=36:rs=0".
func (p *palette) parse(s string) {
	for _, item := range strings.Split(s, ":") {
		name, value, ok := strings.Cut(item, "=")
		if !ok || strings.Trim(value, "0123456789;") != "" {
			continue
		}
		for i, n := range []string{"rs", "hd", "de", "ad", "ln"} {
			if n == name {
				p[i] = value
			}
		}
	}
}

// paint changes the colour, if colours are asked for.
func (d *differ) paint(k colorKind) {
	if d.color {
		d.t.Out.WriteString("\x1b[" + d.palette[k] + "m")
	}
}

// ignorable reports whether all lines of a change are blank (-B) or match (-I).
func (p *pair) ignorable(c *change) bool {
	trivial := func(t *text, from, n int) bool {
		for i := from; i < from+n; i++ {
			line := t.lines[i]
			if p.d.blank && len(line) == 0 {
				continue
			}
			if p.d.blank && (p.d.all || p.d.change || p.d.trailing) && len(strings.TrimSpace(string(line))) == 0 {
				continue
			}
			if !matches(p.d.ignoreRE, line) {
				return false
			}
		}
		return true
	}
	return trivial(p.a, c.a, c.deleted) && trivial(p.b, c.b, c.inserted)
}

func matches(res []*posixre.Regexp, line []byte) bool {
	for _, re := range res {
		if ok, err := re.Match(line); err == nil && ok {
			return true
		}
	}
	return false
}

// print writes the difference in the style that was asked for.
func (p *pair) print() {
	switch p.d.style {
	case 'c', 'u':
		p.contextual()
	case 'e':
		p.ed()
	case 'f':
		p.forwardEd()
	case 'r':
		p.rcs()
	case 'y':
		p.sideBySide()
	case 'D':
		p.formatted()
	default:
		p.normal()
	}
}

// line writes a line after a mark such as "< " or "-".
func (p *pair) line(mark string, t *text, i int) {
	out := p.d.t.Out
	b := t.lines[i]
	if p.d.suppressEmpty && len(b) == 0 {
		mark = strings.TrimRight(mark, " ")
	}
	if p.d.initialTab && mark != "" && !(p.d.suppressEmpty && len(b) == 0) {
		mark = strings.TrimSuffix(mark, " ") + "\t"
	}
	out.WriteString(mark)
	p.d.text(b)
	switch {
	case t.complete(i) || p.d.style == 'e' || p.d.style == 'f':
		out.WriteByte('\n')
	case p.d.style != 'r': // there the text ends as the file does
		out.WriteString("\n\\ No newline at end of file\n")
	}
}

// text writes a line's bytes, with tabs expanded if that is asked for.
func (d *differ) text(b []byte) {
	if !d.expandTabs {
		d.t.Out.Write(b)
		return
	}
	column := 0
	for _, c := range b {
		switch c {
		case '\t':
			n := d.tabSize - column%d.tabSize
			d.t.Out.WriteString(strings.Repeat(" ", n))
			column += n
			continue
		case '\r':
			column = -1
		case '\b':
			if column == 0 {
				continue
			}
			column -= 2
		}
		column++
		d.t.Out.WriteByte(c)
	}
}

// span words a range of lines, counted from 0, with end behind it: "5" or "5,7"; an empty one is the line before.
func span(from, end int) string {
	if end-from <= 1 {
		return fmt.Sprint(end)
	}
	return fmt.Sprintf("%d,%d", from+1, end)
}

func letter(c *change) byte {
	switch {
	case c.inserted == 0:
		return 'd'
	case c.deleted == 0:
		return 'a'
	}
	return 'c'
}

func (p *pair) normal() {
	out := p.d.t.Out
	for i := range p.changes {
		c := &p.changes[i]
		if c.ignore {
			continue
		}
		p.d.t.Check()
		p.d.paintLine(lineColor, span(c.a, c.a+c.deleted)+string(letter(c))+span(c.b, c.b+c.inserted))
		p.block("< ", deleteColor, p.a, c.a, c.a+c.deleted)
		if letter(c) == 'c' {
			out.WriteString("---\n")
		}
		p.block("> ", addColor, p.b, c.b, c.b+c.inserted)
	}
}

// paintLine writes a line in a colour.
func (d *differ) paintLine(k colorKind, s string) {
	d.paint(k)
	d.t.Out.WriteString(s)
	d.paint(noColor)
	d.t.Out.WriteByte('\n')
}

// block writes lines, each in a colour.
func (p *pair) block(mark string, k colorKind, t *text, from, end int) {
	for i := from; i < end; i++ {
		if !p.d.color {
			p.line(mark, t, i)
			continue
		}
		p.d.paint(k)
		out := p.d.t.Out
		out.WriteString(mark)
		p.d.text(t.lines[i])
		p.d.paint(noColor)
		out.WriteByte('\n')
		if !t.complete(i) {
			out.WriteString("\\ No newline at end of file\n")
		}
	}
}

// edLines writes lines for ed's input mode: a lone dot is written doubled, and made one again after it.
func (p *pair) edLines(c *change) {
	out := p.d.t.Out
	inserting := true
	for i := c.b; i < c.b+c.inserted; i++ {
		if !inserting {
			out.WriteString("a\n")
			inserting = true
		}
		if string(p.b.lines[i]) == "." {
			out.WriteString("..\n.\ns/.//\n")
			inserting = false
			continue
		}
		p.line("", p.b, i)
	}
	if inserting {
		out.WriteString(".\n")
	}
}

// ed writes a script for ed, the last change first.
func (p *pair) ed() {
	for i := len(p.changes) - 1; i >= 0; i-- {
		c := &p.changes[i]
		if c.ignore {
			continue
		}
		fmt.Fprintf(p.d.t.Out, "%s%c\n", span(c.a, c.a+c.deleted), letter(c))
		if c.inserted > 0 {
			p.edLines(c)
		}
	}
	p.warnPartial()
}

// warnPartial says that a script of ed can't tell about a missing newline.
func (p *pair) warnPartial() {
	for i, t := range []*text{p.a, p.b} {
		if t.partial {
			p.d.t.Warn("%s: No newline at end of file\n", p.names[i])
		}
	}
}

func (p *pair) forwardEd() {
	for i := range p.changes {
		c := &p.changes[i]
		if c.ignore {
			continue
		}
		fmt.Fprintf(p.d.t.Out, "%c%s\n", letter(c), strings.Replace(span(c.a, c.a+c.deleted), ",", " ", 1))
		if c.inserted > 0 {
			for i := c.b; i < c.b+c.inserted; i++ {
				p.line("", p.b, i)
			}
			p.d.t.Out.WriteString(".\n")
		}
	}
	p.warnPartial()
}

func (p *pair) rcs() {
	for i := range p.changes {
		c := &p.changes[i]
		if c.ignore {
			continue
		}
		if c.deleted > 0 {
			fmt.Fprintf(p.d.t.Out, "d%d %d\n", c.a+1, c.deleted)
		}
		if c.inserted > 0 {
			fmt.Fprintf(p.d.t.Out, "a%d %d\n", c.a+c.deleted, c.inserted)
			for i := c.b; i < c.b+c.inserted; i++ {
				p.line("", p.b, i)
			}
		}
	}
}

// contextual writes hunks with context, copied or unified.
func (p *pair) contextual() {
	p.found, p.lastFn = 0, -1
	first := true
	for i := 0; i < len(p.changes); {
		p.d.t.Check()
		end := p.hunkEnd(i)
		hunk := p.changes[i:end]
		i = end
		shown := false
		for k := range hunk {
			shown = shown || !hunk[k].ignore
		}
		if !shown {
			continue
		}
		if first {
			p.heads()
			first = false
		}
		p.hunk(hunk)
	}
}

// hunkEnd returns where the hunk that begins with change i ends: before a gap that is longer than its context.
func (p *pair) hunkEnd(i int) int {
	for {
		c := &p.changes[i]
		i++
		if i == len(p.changes) {
			return i
		}
		gap := 2*p.d.context + 1
		if c.ignore || p.changes[i].ignore {
			gap = p.d.context
		}
		if p.changes[i].a-(c.a+c.deleted) >= gap {
			return i
		}
	}
}

// heads writes the two lines with the files' names.
func (p *pair) heads() {
	marks := [2]string{"---", "+++"}
	if p.d.style == 'c' {
		marks = [2]string{"***", "---"}
	}
	for i, mark := range marks {
		if i < len(p.d.labels) {
			p.d.paintLine(headerColor, mark+" "+p.d.labels[i])
			continue
		}
		in := p.inputs[i]
		stamp := in.attr.Mtime
		if in.missing {
			stamp = time.Unix(0, 0)
		}
		p.d.paintLine(headerColor, mark+" "+quoteName(in.name)+"\t"+p.d.stamp(stamp))
	}
}

// function returns the last line before a hunk that a function begins with, at most 40 bytes of it.
func (p *pair) function(before int) string {
	if len(p.d.function) == 0 {
		return ""
	}
	for i := before - 1; i >= p.found; i-- {
		if matches(p.d.function, p.a.lines[i]) {
			p.lastFn = i
			break
		}
	}
	p.found = max(p.found, before)
	if p.lastFn < 0 {
		return ""
	}
	s := strings.TrimLeft(string(p.a.lines[p.lastFn]), " \t\n\v\f\r")
	return " " + strings.TrimRight(s[:min(len(s), 40)], " \t\n\v\f\r")
}

func (p *pair) hunk(hunk []change) {
	last := &hunk[len(hunk)-1]
	a0, b0 := max(0, hunk[0].a-p.d.context), max(0, hunk[0].b-p.d.context)
	a1 := min(len(p.a.lines), last.a+last.deleted+p.d.context)
	b1 := min(len(p.b.lines), last.b+last.inserted+p.d.context)
	fn := p.function(a0)
	if p.d.style == 'u' {
		p.unifiedHunk(hunk, a0, a1, b0, b1, fn)
	} else {
		p.contextHunk(hunk, a0, a1, b0, b1, fn)
	}
}

// unifiedSpan words a range as unified hunks do: where it begins and how long it is.
func unifiedSpan(from, end int) string {
	switch end - from {
	case 0:
		return fmt.Sprintf("%d,0", end)
	case 1:
		return fmt.Sprint(end)
	}
	return fmt.Sprintf("%d,%d", from+1, end-from)
}

func (p *pair) unifiedHunk(hunk []change, a0, a1, b0, b1 int, fn string) {
	p.d.paint(lineColor)
	fmt.Fprintf(p.d.t.Out, "@@ -%s +%s @@", unifiedSpan(a0, a1), unifiedSpan(b0, b1))
	p.d.paint(noColor)
	p.d.t.Out.WriteString(fn + "\n")
	i := a0
	for k := range hunk {
		c := &hunk[k]
		for ; i < c.a; i++ {
			p.line(" ", p.a, i)
		}
		p.block("-", deleteColor, p.a, c.a, c.a+c.deleted)
		p.block("+", addColor, p.b, c.b, c.b+c.inserted)
		i = c.a + c.deleted
	}
	for ; i < a1; i++ {
		p.line(" ", p.a, i)
	}
}

func (p *pair) contextHunk(hunk []change, a0, a1, b0, b1 int, fn string) {
	out := p.d.t.Out
	deletes, inserts := false, false
	for k := range hunk {
		deletes, inserts = deletes || hunk[k].deleted > 0, inserts || hunk[k].inserted > 0
	}
	out.WriteString("***************" + fn + "\n")
	p.d.paintLine(lineColor, "*** "+span(a0, a1)+" ****")
	if deletes {
		i := a0
		for k := range hunk {
			c := &hunk[k]
			p.block("  ", deleteColor, p.a, i, c.a)
			mark := "! "
			if c.inserted == 0 {
				mark = "- "
			}
			p.block(mark, deleteColor, p.a, c.a, c.a+c.deleted)
			i = c.a + c.deleted
		}
		p.block("  ", deleteColor, p.a, i, a1)
	}
	p.d.paintLine(lineColor, "--- "+span(b0, b1)+" ----")
	if !inserts {
		return
	}
	i := b0
	for k := range hunk {
		c := &hunk[k]
		p.block("  ", addColor, p.b, i, c.b)
		mark := "! "
		if c.deleted == 0 {
			mark = "+ "
		}
		p.block(mark, addColor, p.b, c.b, c.b+c.inserted)
		i = c.b + c.inserted
	}
	p.block("  ", addColor, p.b, i, b1)
}
