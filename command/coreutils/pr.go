package coreutils

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"agentrun.dev/command/datetime"
	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

const (
	keyPrColumns = tool.KeyOwn + 660 + iota
	keyPrPages
)

var prSpec = tool.Spec{
	Usage: []string{"[OPTION]... [FILE]..."},
	About: "Paginate or columnate FILE(s) for printing.\n\nWith no FILE, or when FILE is -, read standard input.",
	Options: []getopt.Option{
		{Long: "pages", Key: keyPrPages, Arg: getopt.Required, Name: "FIRST_PAGE[:LAST_PAGE]", Help: "begin [stop] printing with page FIRST_[LAST_]PAGE"},
		{Long: "columns", Key: keyPrColumns, Arg: getopt.Required, Name: "COLUMN", Help: "output COLUMN columns and print columns down"},
		{Short: 'a', Long: "across", Help: "print columns across rather than down, used together with -COLUMN"},
		{Short: 'c', Long: "show-control-chars", Help: "use hat notation (^G) and octal backslash notation"},
		{Short: 'd', Long: "double-space", Help: "double space the output"},
		{Short: 'D', Long: "date-format", Arg: getopt.Required, Name: "FORMAT", Help: "use FORMAT for the header date"},
		{Short: 'e', Long: "expand-tabs", Arg: getopt.Optional, Name: "CHAR[WIDTH]", Help: "expand input CHARs (TABs) to tab WIDTH (8)"},
		{Short: 'F', Long: "form-feed", Help: "use form feeds instead of newlines to separate pages"}, {Short: 'f', Key: 'F'},
		{Short: 'h', Long: "header", Arg: getopt.Required, Name: "HEADER", Help: "use a centered HEADER instead of filename in page header"},
		{Short: 'i', Long: "output-tabs", Arg: getopt.Optional, Name: "CHAR[WIDTH]", Help: "replace spaces with CHARs (TABs) to tab WIDTH (8)"},
		{Short: 'J', Long: "join-lines", Help: "merge full lines, turns off -W line truncation, no column alignment"},
		{Short: 'l', Long: "length", Arg: getopt.Required, Name: "PAGE_LENGTH", Help: "set the page length to PAGE_LENGTH (66) lines"},
		{Short: 'm', Long: "merge", Help: "print all files in parallel, one in each column"},
		{Short: 'n', Long: "number-lines", Arg: getopt.Optional, Name: "SEP[DIGITS]", Help: "number lines, use DIGITS (5) digits, then SEP (TAB)"},
		{Short: 'N', Long: "first-line-number", Arg: getopt.Required, Name: "NUMBER", Help: "start counting with NUMBER at 1st line of first page printed"},
		{Short: 'o', Long: "indent", Arg: getopt.Required, Name: "MARGIN", Help: "offset each line with MARGIN (zero) spaces"},
		{Short: 'r', Long: "no-file-warnings", Help: "omit warning when a file cannot be opened"},
		{Short: 's', Long: "separator", Arg: getopt.Optional, Name: "CHAR", Help: "separate columns by a single character"},
		{Short: 'S', Long: "sep-string", Arg: getopt.Optional, Name: "STRING", Help: "separate columns by STRING"},
		{Short: 't', Long: "omit-header", Help: "omit page headers and trailers"},
		{Short: 'T', Long: "omit-pagination", Help: "omit page headers and trailers, eliminate any pagination by form feeds set in input files"},
		{Short: 'v', Long: "show-nonprinting", Help: "use octal backslash notation"},
		{Short: 'w', Long: "width", Arg: getopt.Required, Name: "PAGE_WIDTH", Help: "set page width to PAGE_WIDTH (72) characters for multiple text-column output only"},
		{Short: 'W', Long: "page-width", Arg: getopt.Required, Name: "PAGE_WIDTH", Help: "set page width to PAGE_WIDTH (72) characters always, truncate lines"},
	},
	Package: tool.Coreutils,
}

// prRun is a running pr.
type prRun struct {
	t                                     *tool.T
	columns, length, width, margin        int
	first, last                           int // pages
	across, double, formFeed, join, merge bool
	number, plain, noPages, quiet         bool
	hats, octal, truncate, sepGiven       bool
	header                                *string
	dateFormat, sep, numberSep            string
	tabIn, tabOut                         byte
	tabInWidth, tabOutWidth               int
	expand, retab                         bool
	digits, line                          int
	status                                int
	page, col, pending                    int
	when                                  time.Time
	title                                 string
}

// prCell is a line in its place, with its number.
type prCell struct {
	text string
	n    int
}

// prPage is what comes from one file: lines that are ready to be laid out.
type prPage struct {
	in     *tool.Lines
	close  func() error
	next   []string // lines that a form feed has put off to the next page
	broken bool
	end    bool
}

// Pr lays files out in pages.
func Pr(t *tool.T) int {
	p := &prRun{t: t, columns: 1, length: 66, width: 72, first: 1, last: 1 << 30, dateFormat: "%Y-%m-%d %H:%M", sep: " ", numberSep: "\t", digits: 5, line: 1, tabIn: '\t', tabOut: '\t', tabInWidth: 8, tabOutWidth: 8}
	var args []string
	for _, a := range t.Args()[1:] {
		if len(a) > 1 && a[0] == '-' && a[1] >= '0' && a[1] <= '9' { // -COLUMNS
			a = "--columns=" + a[1:]
		} else if len(a) > 1 && a[0] == '+' && a[1] >= '0' && a[1] <= '9' {
			a = "--pages=" + a[1:]
		}
		args = append(args, a)
	}
	opts, files := t.ParseArgs(&prSpec, args)
	for _, o := range opts {
		p.option(o)
	}
	if p.across && p.columns == 1 && !p.merge {
		p.across = false
	}
	if p.merge && p.columns > 1 {
		t.Fatal(1, "cannot specify number of columns when printing in parallel")
	}
	if p.merge && p.across {
		t.Fatal(1, "cannot specify both printing across and printing in parallel")
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	if p.merge {
		p.mergeFiles(files)
	} else {
		for _, f := range files {
			p.file(f)
		}
	}
	return p.status
}

func (p *prRun) count(o getopt.Opt, what string, low int) int {
	n, err := strconv.Atoi(o.Arg)
	if err == nil && n < low {
		p.t.Fatal(1, "%s: %s: Numerical result out of range", what, tool.Quote(o.Arg))
	}
	if err != nil || n > 1<<30 {
		p.t.Fatal(1, "%s: %s", what, tool.Quote(o.Arg))
	}
	return n
}

func (p *prRun) option(o getopt.Opt) {
	switch o.Key {
	case keyPrColumns:
		p.columns = p.count(o, "invalid number of columns", 1)
		if p.columns > 10000 {
			p.t.Fatal(1, "page width too narrow")
		}
	case keyPrPages:
		a, b, two := strings.Cut(o.Arg, ":")
		n, err := strconv.Atoi(a)
		m, err2 := n, error(nil)
		if two {
			m, err2 = strconv.Atoi(b)
			p.last = m
		}
		if err != nil || err2 != nil || n < 1 || m < n {
			p.t.Fatal(1, "invalid page range %s", tool.Quote(o.Arg))
		}
		p.first = n
	case 'a':
		p.across = true
	case 'c':
		p.hats = true
	case 'd':
		p.double = true
	case 'D':
		p.dateFormat = o.Arg
	case 'F':
		p.formFeed = true
	case 'h':
		p.header = &o.Arg
	case 'J':
		p.join = true
	case 'l':
		p.length = p.count(o, "'-l PAGE_LENGTH' invalid number of lines", 1)
	case 'm':
		p.merge = true
	case 'N':
		n, err := strconv.Atoi(o.Arg)
		if err != nil {
			p.t.Fatal(1, "'-N NUMBER' invalid starting line number: %s", tool.Quote(o.Arg))
		}
		p.line = n
	case 'o':
		p.margin = p.count(o, "'-o MARGIN' invalid line offset", 0)
	case 'r':
		p.quiet = true
	case 't':
		p.plain = true
	case 'T':
		p.plain, p.noPages = true, true
	case 'v':
		p.octal = true
	case 'w':
		p.width = p.count(o, "'-w PAGE_WIDTH' invalid number of characters", 1)
	case 'W':
		p.width, p.truncate = p.count(o, "'-W PAGE_WIDTH' invalid number of characters", 1), true
	default:
		p.charOption(o)
	}
}

// charOption reads the options whose argument is a character with a number.
func (p *prRun) charOption(o getopt.Opt) {
	split := func(c byte, n int) (byte, int) {
		s := o.Arg
		if s != "" && (s[0] < '0' || s[0] > '9') {
			c, s = s[0], s[1:]
		}
		if s != "" {
			v, err := strconv.Atoi(s)
			if err != nil || v < 1 || v > 10000 {
				p.t.UsageError(1, "'-%c' extra characters or invalid number in the argument: %s", o.Key, tool.Quote(s))
			}
			n = v
		}
		return c, n
	}
	switch o.Key {
	case 'e':
		p.expand = true
		p.tabIn, p.tabInWidth = split('\t', 8)
	case 'i':
		p.retab = true
		p.tabOut, p.tabOutWidth = split('\t', 8)
	case 'n':
		p.number = true
		var c byte
		c, p.digits = split('\t', 5)
		p.numberSep = string(rune(c))
	case 's':
		p.sepGiven, p.sep = true, "\t"
		if o.Has {
			p.sep = o.Arg
		}
		p.join = p.join || !p.truncate
	case 'S':
		if p.sep = o.Arg; !o.Has {
			p.sep = ""
		}
	}
}

func (p *prRun) open(name string) *prPage {
	in, err := p.t.Open(name)
	if err != nil {
		if p.status = 1; !p.quiet {
			p.t.WarnFile(name, err)
		}
		return nil
	}
	if at, err := in.Attr(); err == nil && at.Mode.IsDir() {
		p.t.Warn("%s: Is a directory", tool.QuoteF(name))
		p.status = 1
		in.Close()
		return nil
	}
	p.when, p.title = p.t.Now(), name
	if name == "-" {
		p.title = ""
	} else if at, err := in.Attr(); err == nil {
		p.when = at.Mtime
	}
	if p.header != nil {
		p.title = *p.header
	}
	return &prPage{in: tool.NewLines(in, '\n'), close: in.Close}
}

// body is how many lines of text a page has.
func (p *prRun) body() int {
	n := p.length
	switch {
	case p.bare():
	default:
		n -= 10
	}
	if p.double {
		n /= 2
	}
	return max(n, 1)
}

// bare reports whether there are no headers: none were wanted, or there is no room for them.
func (p *prRun) bare() bool { return p.plain || p.length <= 10 }

// take reads up to n lines of a page.
func (f *prPage) take(n int, paged bool) (lines []string) {
	f.broken = false
	for len(lines) < n && !f.broken && !f.end {
		var s string
		if len(f.next) > 0 {
			s, f.next = f.next[0], f.next[1:]
		} else {
			b, ok := f.in.Next()
			if !ok {
				f.end = true
				break
			}
			s = string(b)
		}
		if i := strings.IndexByte(s, '\f'); i >= 0 {
			if !paged {
				if rest := s[i+1:]; rest != "" {
					f.next = append([]string{rest}, f.next...)
				}
				if s = s[:i]; s == "" {
					continue
				}
			} else {
				rest := s[i+1:]
				if s = s[:i]; rest != "" || i > 0 {
					f.next = append([]string{rest}, f.next...)
					if rest == "" {
						f.next = f.next[1:]
					}
				}
				f.broken = true
				if s == "" {
					break
				}
			}
		}
		lines = append(lines, s)
	}
	return lines
}

// file lays one file out.
func (p *prRun) file(name string) {
	f := p.open(name)
	if f == nil {
		return
	}
	defer f.close()
	p.page = 0
	for !f.end {
		p.t.Check()
		lines := f.take(p.body()*p.columns, !p.noPages)
		if len(lines) == 0 && f.end && len(f.next) == 0 {
			break
		}
		rows := p.arrange(lines, f.end || f.broken)
		p.output(rows, f.end && len(lines) < p.body()*p.columns)
		if f.broken && p.bare() && !p.noPages && !p.formFeed {
			p.t.Out.WriteByte('\f')
		}
	}
}

// arrange puts lines into rows of cells: down the columns, as even as can be on the last page, or across.
func (p *prRun) arrange(lines []string, last bool) [][]*prCell {
	n, total := p.columns, len(lines)
	cells := make([]prCell, total)
	for i, l := range lines {
		cells[i] = prCell{l, p.line + i}
	}
	p.line += total
	if p.across {
		var rows [][]*prCell
		for i := 0; i < total; i += n {
			var row []*prCell
			for k := i; k < min(i+n, total); k++ {
				row = append(row, &cells[k])
			}
			rows = append(rows, row)
		}
		return rows
	}
	heights, starts, at := make([]int, n), make([]int, n), 0
	for i := range heights {
		if heights[i] = min(p.body(), max(total-i*p.body(), 0)); last && n > 1 {
			if heights[i] = total / n; i < total%n {
				heights[i]++
			}
		}
		starts[i] = at
		at += heights[i]
	}
	rows := make([][]*prCell, heights[0])
	for r := range rows {
		for i := range n {
			if r < heights[i] {
				rows[r] = append(rows[r], &cells[starts[i]+r])
			}
		}
	}
	return rows
}

// mergeFiles prints files beside each other.
func (p *prRun) mergeFiles(names []string) {
	var files []*prPage
	for _, name := range names {
		if f := p.open(name); f != nil {
			defer f.close()
			files = append(files, f)
		}
	}
	if p.header == nil {
		p.title = ""
	}
	if len(names) > 1 || p.header != nil {
		p.when = p.t.Now()
	}
	p.columns = len(files)
	for len(files) > 0 {
		p.t.Check()
		var rows [][]*prCell
		done := true
		for i, f := range files {
			lines := f.take(p.body(), !p.noPages)
			done = done && f.end
			for r := range lines {
				for len(rows) <= r {
					rows = append(rows, make([]*prCell, len(files)))
				}
				rows[r][i] = &prCell{text: lines[r]}
			}
		}
		if len(rows) == 0 && done {
			return
		}
		p.output(rows, done)
		if done {
			return
		}
	}
}

// output writes a page.
func (p *prRun) output(rows [][]*prCell, last bool) {
	p.page++
	if p.page > p.last {
		p.t.Exit(p.status)
	}
	if p.page < p.first {
		return
	}
	if !p.bare() {
		p.printHeader()
	}
	written := 0
	for _, row := range rows {
		p.row(row)
		if written++; p.double && written < p.body()*2 {
			p.t.Out.WriteByte('\n')
			written++
		}
	}
	if p.bare() {
		if p.plain && p.formFeed && !p.noPages && !last {
			p.t.Out.WriteByte('\f')
		}
		return
	}
	if p.formFeed {
		p.t.Out.WriteByte('\f')
		return
	}
	for ; written < p.length-5; written++ {
		p.t.Out.WriteByte('\n')
	}
}

func (p *prRun) printHeader() {
	p.t.Out.WriteString(strings.Repeat(" ", p.margin) + "\n\n")
	date, page := datetime.Format(p.dateFormat, p.when.In(p.t.Location())), fmt.Sprintf("Page %d", p.page)
	room := max(p.width-utf8.RuneCountInString(date)-len(page)-tool.StringWidth(p.title), 2)
	fmt.Fprintf(p.t.Out, "%s%s%s%s%s%s\n\n\n", strings.Repeat(" ", p.margin), date, strings.Repeat(" ", room/2), p.title, strings.Repeat(" ", room-room/2), page)
}

// numberWidth is what a line number takes, with what follows it.
func (p *prRun) numberWidth() int {
	if p.numberSep == "\t" {
		return p.digits + 8 - p.digits%8
	}
	return p.digits + 1
}

// row writes the cells of one line.
func (p *prRun) row(cells []*prCell) {
	p.col = 0
	p.space(p.margin)
	columnWidth, numbers := p.width, 0
	if p.number {
		numbers = p.numberWidth()
	}
	if p.merge {
		columnWidth -= numbers
		p.writeNumber(p.line)
		p.line++
	}
	gap := len(p.sep)
	if p.columns > 1 {
		columnWidth = (columnWidth - gap*(p.columns-1)) / p.columns
	}
	if columnWidth <= 0 || !p.merge && columnWidth <= numbers {
		p.t.Fatal(1, "page width too narrow")
	}
	start := p.col
	for i, cell := range cells {
		if cell == nil && !p.join && i+1 < len(cells) {
			continue
		}
		if i > 0 {
			if !p.join {
				p.space(start + i*(columnWidth+gap) - gap - p.col)
				if p.sep == " " {
					p.space(1)
					p.flushSpace()
				} else {
					p.put(p.sep)
				}
			} else if p.sep == " " {
				p.put("\t")
			} else {
				p.put(p.sep)
			}
		}
		if cell == nil {
			continue
		}
		limit := -1
		if (p.columns > 1 || p.truncate) && !p.join {
			limit = columnWidth
		}
		if p.number && !p.merge {
			p.writeNumber(cell.n)
			if limit > 0 {
				limit -= numbers
			}
		}
		p.text(cell.text, limit)
	}
	p.flushSpace()
	p.t.Out.WriteByte('\n')
}

func (p *prRun) writeNumber(n int) {
	if !p.number {
		return
	}
	s := strconv.Itoa(n)
	p.space(p.digits - len(s))
	p.put(s[max(len(s)-p.digits, 0):])
	if p.numberSep == "\t" && p.columns > 1 && !p.merge {
		p.space(8 - p.digits%8)
	} else {
		p.put(p.numberSep)
	}
}

// space moves the position on; the blanks are written when something follows them.
func (p *prRun) space(n int) {
	p.pending += max(n, 0)
	p.col += max(n, 0)
}

// flushSpace writes the blanks put off: as tabs where columns are aligned, or where -i asks for them.
func (p *prRun) flushSpace() {
	at := p.col - p.pending
	p.pending = 0
	for at < p.col {
		next := at - at%p.tabOutWidth + p.tabOutWidth
		if (p.retab || p.columns > 1 && !p.join) && next <= p.col && p.col-at > 1 {
			p.t.Out.WriteByte(p.tabOut)
			at = next
			continue
		}
		p.t.Out.WriteByte(' ')
		at++
	}
}

// put writes text at the position.
func (p *prRun) put(s string) {
	if s == "" {
		return
	}
	p.flushSpace()
	p.t.Out.WriteString(s)
	if s == "\t" {
		p.col += 8 - p.col%8
		return
	}
	p.col += tool.StringWidth(s)
}

// text writes a cell, of at most limit columns unless that is negative.
func (p *prRun) text(s string, limit int) {
	col := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		piece, w := s[i:i+n], max(tool.RuneWidth(r), 0)
		c := s[i]
		switch {
		case c == p.tabIn && (p.expand || p.columns > 1):
			w = p.tabInWidth - col%p.tabInWidth
			piece = ""
		case c == '\t':
			w = 8 - col%8
		case p.octal && (c < 32 || c >= 127):
			n, piece = 1, fmt.Sprintf("\\%03o", c)
			w = 4
		case p.hats && (c < 32 || c == 127):
			piece, w = "^"+string(rune(c^0x40)), 2
		case p.hats && c > 127:
			n, piece = 1, fmt.Sprintf("\\%03o", c)
			w = 4
		}
		if limit >= 0 && col+w > limit {
			return
		}
		if i += n; piece == "" || piece == " " {
			p.space(w)
		} else {
			p.put(piece)
		}
		col += w
	}
}
