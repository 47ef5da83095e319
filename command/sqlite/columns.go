package sqlite

import (
	"strings"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"
)

// columnar reports whether the present mode needs all rows to know the widths of the columns.
func (s *shell) columnar() bool {
	switch s.mode.name {
	case "column", "table", "box", "markdown":
		return true
	}
	return false
}

// maxGrid bounds the bytes of rows that a columnar mode keeps.
const maxGrid = 256 << 20

// grid is the table that a columnar mode prints. A row of the result is one or more rows of cells.
type grid struct {
	columns int
	cells   []string
	last    []bool // the row of cells ends a row of the result
	split   bool   // some row has several
	width   []int
}

// printColumns prints all rows of a statement in a columnar mode.
func (s *shell) printColumns(st *sqlite3.Stmt) {
	if !st.Step() || st.ColumnCount() == 0 {
		return
	}
	g := grid{columns: st.ColumnCount()}
	bytes := int64(0)
	defer func() { s.t.Charge(-bytes) }()
	for i := range g.columns {
		cell, _ := displayCell(st.ColumnName(i), s.wrapOf(i), s.wordWrap)
		g.cells = append(g.cells, cell)
	}
	for more := true; more; more = st.Step() {
		s.t.Check()
		n := s.addRow(&g, st)
		if bytes += n; bytes > maxGrid || s.t.Charge(n) != nil {
			bytes -= n
			s.errorf("Error: out of memory\n")
			s.t.Exit(1)
		}
	}
	for len(s.widths) < g.columns {
		s.widths = append(s.widths, 0)
	}
	g.width = make([]int, g.columns)
	for i := range g.width {
		g.width[i] = max(s.widths[i], -s.widths[i])
	}
	for i, c := range g.cells {
		j := i % g.columns
		g.width[j] = max(g.width[j], utf8.RuneCountInString(c))
	}
	s.printGrid(&g)
}

// wrapOf is the width at which a column is broken; 0 means never.
func (s *shell) wrapOf(i int) int {
	if i < len(s.widths) && s.widths[i] != 0 {
		return max(s.widths[i], -s.widths[i])
	}
	return s.wrap
}

// addRow adds the present row of a statement and returns about how many bytes it takes.
func (s *shell) addRow(g *grid, st *sqlite3.Stmt) (bytes int64) {
	rest := make([]string, g.columns)
	for i := range rest {
		if s.quote {
			rest[i] = literalLower(st, i)
		} else {
			rest[i] = s.text(st, i)
		}
	}
	for {
		more := false
		for i := range rest {
			var cell string
			cell, rest[i] = displayCell(rest[i], s.wrapOf(i), s.wordWrap)
			g.cells = append(g.cells, cell)
			bytes += int64(len(cell)) + 16
			more = more || rest[i] != ""
		}
		g.last = append(g.last, !more)
		if !more {
			return bytes
		}
		g.split = true
	}
}

// literalLower is literal as SQL's quote() writes it in columnar modes.
func literalLower(st *sqlite3.Stmt, i int) string {
	switch st.ColumnType(i) {
	case sqlite3.FLOAT:
		return general(st.ColumnFloat(i), 15)
	case sqlite3.BLOB:
		return "x" + literal(st, i)[1:]
	}
	return literal(st, i)
}

// displayCell takes what fits in one line of a cell: up to a control character or the width, and the rest.
func displayCell(z string, width int, wordWrap bool) (cell, rest string) {
	if width <= 0 {
		width = 1000000
	}
	at := func(i int) byte {
		if i < len(z) {
			return z[i]
		}
		return 0
	}
	i, n := 0, 0
	for n < width {
		if at(i) >= ' ' {
			n++
			for i++; at(i)&0xc0 == 0x80; i++ {
			}
			continue
		}
		if at(i) == '\t' {
			for n++; n&7 != 0 && n < width; n++ {
			}
			i++
			continue
		}
		break
	}
	end := i
	if n >= width && wordWrap {
		end, i = wordBreak(z, i, at)
	}
	switch {
	case n >= width && at(i) >= ' ':
		rest = z[i:]
	case at(i) == '\r' && at(i+1) == '\n':
		rest = z[i+2:]
	case i+1 < len(z):
		rest = z[i+1:]
	}
	return expandTabs(z[:end], width), rest
}

// wordBreak looks for a better place to break a line than i; it returns the end of the line and the start of the next.
func wordBreak(z string, i int, at func(int) byte) (end, next int) {
	space := func(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
	alnum := func(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' }
	k := i
	for ; k > i/2; k-- {
		if space(at(k - 1)) {
			break
		}
	}
	if k <= i/2 {
		for k = i; k > i/2; k-- {
			if alnum(at(k-1)) != alnum(at(k)) && at(k)&0xc0 != 0x80 {
				break
			}
		}
	}
	if k <= i/2 {
		return i, i
	}
	next = k
	for at(next) == ' ' {
		next++
	}
	return k, next
}

func expandTabs(s string, width int) string {
	if !strings.Contains(s, "\t") {
		return s
	}
	var b strings.Builder
	n := 0
	for _, r := range s {
		if r != '\t' {
			b.WriteRune(r)
			n++
			continue
		}
		b.WriteByte(' ')
		for n++; n&7 != 0 && n < width; n++ {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// frame is how a columnar mode draws its lines.
type frame struct {
	left, sep, right string    // of a row of cells
	top, mid, bottom [3]string // corners and crossings: left, between, right
	dash             string
	under            [3]string // below the header, if it differs from mid
}

var frames = map[string]frame{
	"table":    {"| ", " | ", " |\n", [3]string{"+", "+", "+"}, [3]string{"+", "+", "+"}, [3]string{"+", "+", "+"}, "-", [3]string{"+", "+", "+"}},
	"markdown": {"| ", " | ", " |\n", [3]string{}, [3]string{}, [3]string{}, "-", [3]string{"|", "|", "|"}},
	"box":      {"│ ", " │ ", " │\n", [3]string{"┌", "┬", "┐"}, [3]string{"├", "┼", "┤"}, [3]string{"└", "┴", "┘"}, "─", [3]string{"├", "┼", "┤"}},
}

func (s *shell) printGrid(g *grid) {
	if s.mode.name == "column" {
		s.printPlain(g)
		return
	}
	f := frames[s.mode.name]
	s.rule(g, f, f.top)
	for j := range g.columns {
		cell := g.cells[j]
		pad := g.width[j] - utf8.RuneCountInString(cell)
		s.out.WriteString(pick(j == 0, f.left, f.sep))
		s.out.WriteString(strings.Repeat(" ", pad/2) + cell + strings.Repeat(" ", pad-pad/2))
	}
	s.out.WriteString(f.right)
	s.rule(g, f, f.under)
	for row := 1; row*g.columns < len(g.cells); row++ {
		for j := range g.columns {
			s.out.WriteString(pick(j == 0, f.left, f.sep))
			s.padded(g.cells[row*g.columns+j], g.width[j], j)
		}
		s.out.WriteString(f.right)
		if g.split && g.last[row-1] && (row+1)*g.columns < len(g.cells) {
			s.rule(g, f, f.mid)
		}
	}
	s.rule(g, f, f.bottom)
}

func pick(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

// rule draws a line across the table.
func (s *shell) rule(g *grid, f frame, corners [3]string) {
	if corners[0] == "" {
		return
	}
	for j, w := range g.width {
		s.out.WriteString(pick(j == 0, corners[0], corners[1]))
		s.out.WriteString(strings.Repeat(f.dash, w+2))
	}
	s.out.WriteString(corners[2] + "\n")
}

// padded writes a cell of a column; a negative .width aligns it to the right.
func (s *shell) padded(cell string, width, column int) {
	pad := strings.Repeat(" ", max(width-utf8.RuneCountInString(cell), 0))
	if column < len(s.widths) && s.widths[column] < 0 {
		s.out.WriteString(pad + cell)
	} else {
		s.out.WriteString(cell + pad)
	}
}

// printPlain prints the mode "column".
func (s *shell) printPlain(g *grid) {
	end := func(j int) string { return pick(j == g.columns-1, "\n", "  ") }
	if s.headers {
		for j := range g.columns {
			s.padded(g.cells[j], g.width[j], j)
			s.out.WriteString(end(j))
		}
		for j, w := range g.width {
			s.out.WriteString(strings.Repeat("-", w) + end(j))
		}
	}
	for row := 1; row*g.columns < len(g.cells); row++ {
		for j := range g.columns {
			s.padded(g.cells[row*g.columns+j], g.width[j], j)
			s.out.WriteString(end(j))
		}
		if g.split && g.last[row-1] && (row+1)*g.columns < len(g.cells) {
			s.out.WriteString("\n")
		}
	}
}
