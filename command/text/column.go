package text

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var columnSpec = tool.Spec{
	Usage: []string{"[options] [<file>...]"},
	About: "\nColumnate lists.",
	Options: []getopt.Option{
		{Short: 't', Long: "table", Help: "create a table"},
		{Short: 'n', Long: "table-name", Arg: getopt.Required, Name: "name", Help: "table name for JSON output"},
		{Short: 'O', Long: "table-order", Arg: getopt.Required, Name: "columns", Help: "specify order of output columns"},
		{Short: 'N', Long: "table-columns", Arg: getopt.Required, Name: "names", Help: "comma separated columns names"},
		{Short: 'l', Long: "table-columns-limit", Arg: getopt.Required, Name: "num", Help: "maximal number of input columns"},
		{Short: 'E', Long: "table-noextreme", Arg: getopt.Required, Name: "columns", Help: "don't count long text from the columns to column width"},
		{Short: 'd', Long: "table-noheadings", Help: "don't print header"},
		{Short: 'e', Long: "table-header-repeat", Help: "repeat header for each page"},
		{Short: 'H', Long: "table-hide", Arg: getopt.Required, Name: "columns", Help: "don't print the columns"},
		{Short: 'R', Long: "table-right", Arg: getopt.Required, Name: "columns", Help: "right align text in these columns"},
		{Short: 'T', Long: "table-truncate", Arg: getopt.Required, Name: "columns", Help: "truncate text in the columns when necessary"},
		{Short: 'W', Long: "table-wrap", Arg: getopt.Required, Name: "columns", Help: "wrap text in the columns when necessary"},
		{Short: 'L', Long: "keep-empty-lines", Help: "don't ignore empty lines"},
		{Long: "table-empty-lines", Key: 'L'},
		{Short: 'J', Long: "json", Help: "use JSON output format for table"},
		{Short: 'r', Long: "tree", Arg: getopt.Required, Name: "column", Help: "column to use tree-like output for the table"},
		{Short: 'i', Long: "tree-id", Arg: getopt.Required, Name: "column", Help: "line ID to specify child-parent relation"},
		{Short: 'p', Long: "tree-parent", Arg: getopt.Required, Name: "column", Help: "parent to specify child-parent relation"},
		{Short: 'c', Long: "output-width", Arg: getopt.Required, Name: "width", Help: "width of output in number of characters"},
		{Long: "columns", Key: 'c', Arg: getopt.Required},
		{Short: 'o', Long: "output-separator", Arg: getopt.Required, Name: "string", Help: "columns separator for table output (default is two spaces)"},
		{Short: 's', Long: "separator", Arg: getopt.Required, Name: "string", Help: "possible table delimiters"},
		{Short: 'x', Long: "fillrows", Help: "fill rows before columns"},
		{Short: 'h', Key: 'h'}, {Short: 'V', Key: 'V'},
	},
	Package: utilLinux,
}

// columner is a running column.
type columner struct {
	t                                    *tool.T
	table, json, noHead, keep, across    bool
	name, sep, between                   string
	hasSep                               bool
	width, limit                         int
	names                                []string
	order, hide, right, extreme          string
	truncate, wrapped, tree, id, parents string
	lines                                []string
	rows                                 [][]string
	size                                 int
}

// Column arranges lines in columns, or words in a table.
func Column(t *tool.T) int {
	c := &columner{t: t, name: "table", between: "  ", width: 80}
	if size, err := t.WindowSize(1); err == nil && size.Cols > 0 {
		c.width = int(size.Cols)
	} else if n, err := strconv.Atoi(t.Getenv("COLUMNS")); err == nil && n > 0 {
		c.width = n
	}
	opts, files := t.Parse(&columnSpec)
	for _, o := range opts {
		c.option(o)
	}
	switch {
	case c.json && len(c.names) == 0:
		t.Fatal(1, "option --table-columns required for --json")
	case c.tree != "" && (c.id == "" || c.parents == ""):
		t.Fatal(1, "options --tree-id and --tree-parent are required for tree formatting")
	case !c.table && c.order+c.hide+c.right+c.truncate+c.wrapped != "":
		t.Fatal(1, "option --table required for all --table-*")
	}
	status := t.Inputs(files, c.read)
	switch {
	case c.table:
		c.printTable()
	case len(c.lines) > 0:
		c.printColumns()
	}
	return status
}

func (c *columner) option(o getopt.Opt) {
	t := c.t
	switch o.Key {
	case 't':
		c.table = true
	case 'n':
		c.name = o.Arg
	case 'O':
		c.order = o.Arg
	case 'N':
		c.names = strings.Split(o.Arg, ",")
	case 'l':
		n, err := strconv.ParseUint(o.Arg, 10, 31)
		if err != nil {
			t.Fatal(1, "invalid columns limit argument: '%s'", o.Arg)
		}
		if n == 0 {
			t.Fatal(1, "columns limit must be greater than zero")
		}
		c.limit = int(n)
	case 'E':
		c.extreme = o.Arg
	case 'd':
		c.noHead = true
	case 'H':
		c.hide = o.Arg
	case 'R':
		c.right = o.Arg
	case 'T':
		c.truncate = o.Arg
	case 'W':
		c.wrapped = o.Arg
	case 'L':
		c.keep = true
	case 'J':
		c.json, c.table = true, true
	case 'r':
		c.tree, c.table = o.Arg, true
	case 'i':
		c.id = o.Arg
	case 'p':
		c.parents = o.Arg
	case 'c':
		if o.Arg == "unlimited" {
			c.width = 1 << 30
			return
		}
		n, err := strconv.ParseUint(o.Arg, 10, 30)
		if err != nil {
			t.Fatal(1, "invalid columns argument: '%s'", o.Arg)
		}
		c.width = int(n)
	case 'o':
		c.between = o.Arg
	case 's':
		c.sep, c.hasSep = o.Arg, true
	case 'x':
		c.across = true
	case 'h':
		t.Help(&columnSpec)
		t.Exit(0)
	case 'V':
		t.Out.WriteString("column from util-linux 2.38.1\n")
		t.Exit(0)
	}
}

// read takes the lines of a file that aren't empty.
func (c *columner) read(in *tool.Input) error {
	l := tool.NewLines(in, '\n')
	for line, ok := l.Next(); ok; line, ok = l.Next() {
		if c.size += len(line) + 32; c.size > maxText {
			c.t.Fatal(1, "input too large")
		}
		s := string(line)
		if strings.TrimLeft(s, " \t\r\v\f") == "" {
			if c.keep {
				c.lines = append(c.lines, "")
				c.rows = append(c.rows, nil)
			}
			continue
		}
		if c.table {
			c.rows = append(c.rows, c.split(s))
		} else {
			c.lines = append(c.lines, s)
		}
	}
	return l.Err
}

// split makes cells: between single delimiters if they were given, else between runs of blanks.
func (c *columner) split(s string) (cells []string) {
	sep := " \t"
	if c.hasSep {
		sep = c.sep
	} else {
		s = strings.TrimLeft(s, " \t")
	}
	for {
		if c.limit > 0 && len(cells) == c.limit-1 {
			return append(cells, s)
		}
		i := strings.IndexAny(s, sep)
		if i < 0 || sep == "" {
			if c.hasSep || s != "" {
				cells = append(cells, s)
			}
			return cells
		}
		cells = append(cells, s[:i])
		if s = s[i:]; c.hasSep {
			_, n := firstRune(s)
			s = s[n:]
		} else {
			s = strings.TrimLeft(s, " \t")
		}
	}
}

func firstRune(s string) (rune, int) {
	for i, r := range s {
		if i > 0 {
			return r, i
		}
	}
	return 0, len(s)
}

// printColumns fills the width with lines, below each other or beside each other.
func (c *columner) printColumns() {
	longest := 0
	for _, l := range c.lines {
		longest = max(longest, tool.StringWidth(l))
	}
	step := (longest + 8) &^ 7
	count := max(c.width/step, 1)
	if longest >= c.width {
		for _, l := range c.lines {
			fmt.Fprintln(c.t.Out, l)
		}
		return
	}
	rows := (len(c.lines) + count - 1) / count
	for r := range rows {
		col := 0
		for n := range count {
			i := r + n*rows
			if c.across {
				i = r*count + n
			}
			if i >= len(c.lines) {
				break
			}
			for n > 0 && col < n*step {
				c.t.Out.WriteByte('\t')
				col = col&^7 + 8
			}
			c.t.Out.WriteString(c.lines[i])
			col += tool.StringWidth(c.lines[i])
		}
		c.t.Out.WriteByte('\n')
	}
}

// columnsOf reads a list of columns: names, numbers from 1, 0 or - for those that have no name.
func (c *columner) columnsOf(list string, n int) []int {
	var found []int
	for _, w := range strings.Split(list, ",") {
		switch {
		case list == "":
		case w == "-" || w == "0":
			for i := len(c.names); i < n; i++ {
				found = append(found, i)
			}
		default:
			at := slices.Index(c.names, w)
			if num, err := strconv.Atoi(w); at < 0 && err == nil {
				if at = num - 1; at < 0 || at >= n {
					continue
				}
			} else if at < 0 {
				c.t.Fatal(1, "undefined column name '%s'", w)
			}
			found = append(found, at)
		}
	}
	return found
}

// printTable writes the rows with aligned cells.
func (c *columner) printTable() {
	n := len(c.names)
	for i, row := range c.rows {
		if n = max(n, len(row)); c.json && len(row) > len(c.names) {
			c.t.Fatal(1, "line %d: for JSON the name of the column %d is required", i+2, len(c.names)+1)
		}
	}
	hidden := c.columnsOf(c.hide, n)
	var shown []int
	first := c.columnsOf(c.order, n)
	for i := range n {
		if !slices.Contains(first, i) {
			first = append(first, i)
		}
	}
	for _, i := range first {
		if !slices.Contains(hidden, i) {
			shown = append(shown, i)
		}
	}
	if c.tree != "" {
		c.asTree(n)
	}
	if len(c.rows) == 0 {
		return
	}
	if c.json {
		c.printJSON(shown)
		return
	}
	if len(c.names) > 0 && !c.noHead {
		c.rows = append([][]string{c.names}, c.rows...)
	}
	widths := c.widths(n, shown)
	right := c.columnsOf(c.right, n)
	for _, row := range c.rows {
		for _, line := range c.wrapRow(row, widths, n) {
			c.printRow(line, shown, widths, right)
		}
	}
}

// wrapRow splits a row whose cells of wrapped columns are too long into several; other long cells are cut.
func (c *columner) wrapRow(row []string, widths []int, n int) [][]string {
	lines := [][]string{slices.Clone(row)}
	for _, i := range c.columnsOf(c.truncate, n) {
		if i < len(row) && tool.StringWidth(row[i]) > widths[i] {
			lines[0][i] = cutWidth(row[i], widths[i])
		}
	}
	for _, i := range c.columnsOf(c.wrapped, n) {
		if i >= len(row) {
			continue
		}
		rest := row[i]
		for k := 0; tool.StringWidth(rest) > widths[i] || k == 0; k++ {
			part := cutWidth(rest, widths[i])
			if part == "" {
				break
			}
			if k >= len(lines) {
				lines = append(lines, make([]string, len(row)))
			}
			lines[k][i] = part
			rest = rest[len(part):]
			if rest != "" && tool.StringWidth(rest) <= widths[i] {
				if k+1 >= len(lines) {
					lines = append(lines, make([]string, len(row)))
				}
				lines[k+1][i] = rest
			}
		}
	}
	return lines
}

func cutWidth(s string, width int) string {
	w := 0
	for i, r := range s {
		if w += max(tool.RuneWidth(r), 0); w > width {
			return s[:i]
		}
	}
	return s
}

// widths are those of the columns; columns that may be cut or wrapped shrink until the table fits.
func (c *columner) widths(n int, shown []int) []int {
	widths := make([]int, n)
	extreme := c.columnsOf(c.extreme, n)
	for at, row := range c.rows {
		for i, cell := range row {
			if slices.Contains(extreme, i) && (at > 0 || len(c.names) == 0) && i < n-1 && tool.StringWidth(cell) > 8 {
				continue
			}
			widths[i] = max(widths[i], tool.StringWidth(cell))
		}
	}
	total := 0
	for k, i := range shown {
		if total += widths[i]; k > 0 {
			total += tool.StringWidth(c.between)
		}
	}
	flexible := append(c.columnsOf(c.truncate, n), c.columnsOf(c.wrapped, n)...)
	for total > c.width && len(flexible) > 0 {
		widest := flexible[0]
		for _, i := range flexible {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= 1 {
			break
		}
		widths[widest]--
		total--
	}
	return widths
}

func (c *columner) printRow(row []string, shown, widths, right []int) {
	for k, i := range shown {
		cell := ""
		if i < len(row) {
			cell = row[i]
		}
		pad := max(widths[i]-tool.StringWidth(cell), 0)
		last := k == len(shown)-1
		if slices.Contains(right, i) {
			c.t.Out.WriteString(strings.Repeat(" ", pad) + cell)
		} else if c.t.Out.WriteString(cell); !last {
			c.t.Out.WriteString(strings.Repeat(" ", pad))
		}
		if !last {
			c.t.Out.WriteString(c.between)
		}
	}
	c.t.Out.WriteByte('\n')
}

// asTree puts children below their parents, and the branches before the cells of the tree's column.
func (c *columner) asTree(n int) {
	tree, id, parent := c.columnsOf(c.tree, n), c.columnsOf(c.id, n), c.columnsOf(c.parents, n)
	if len(tree) == 0 || len(id) == 0 || len(parent) == 0 {
		return
	}
	cell := func(row []string, i int) string {
		if i < len(row) {
			return row[i]
		}
		return ""
	}
	known := map[string]bool{}
	for _, row := range c.rows {
		known[cell(row, id[0])] = true
	}
	children := map[string][][]string{}
	var roots, out [][]string
	for _, row := range c.rows {
		if p := cell(row, parent[0]); known[p] && p != cell(row, id[0]) {
			children[p] = append(children[p], row)
		} else {
			roots = append(roots, row)
		}
	}
	seen := map[string]bool{}
	var visit func(row []string, prefix, branch string)
	visit = func(row []string, prefix, branch string) {
		key := cell(row, id[0])
		if seen[key] || len(prefix) > 3000 {
			return
		}
		seen[key] = true
		if tree[0] < len(row) {
			row = slices.Clone(row)
			row[tree[0]] = prefix + branch + row[tree[0]]
		}
		out = append(out, row)
		switch branch {
		case "├─":
			prefix += "│ "
		case "└─":
			prefix += "  "
		}
		list := children[key]
		for i, child := range list {
			mark := "├─"
			if i == len(list)-1 {
				mark = "└─"
			}
			visit(child, prefix, mark)
		}
	}
	for _, row := range roots {
		visit(row, "", "")
	}
	c.rows = out
}

func (c *columner) printJSON(shown []int) {
	quote := func(s string) string {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.Encode(s)
		return strings.TrimSpace(b.String())
	}
	out := c.t.Out
	fmt.Fprintf(out, "{\n   %s: [\n", quote(c.name))
	for r, row := range c.rows {
		if r == 0 {
			out.WriteString("      {\n")
		} else {
			out.WriteString(",{\n")
		}
		for k, i := range shown {
			value := "null"
			if i < len(row) && row[i] != "" {
				value = quote(row[i])
			}
			fmt.Fprintf(out, "         %s: %s", quote(strings.ToLower(c.names[i])), value)
			if k < len(shown)-1 {
				out.WriteByte(',')
			}
			out.WriteByte('\n')
		}
		out.WriteString("      }")
	}
	out.WriteString("\n   ]\n}\n")
}
