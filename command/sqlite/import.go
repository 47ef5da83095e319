package sqlite

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"agentrun.dev/command/tool"
)

// importer reads a file of separated fields.
type importer struct {
	s        *shell
	r        *bufio.Reader
	name     string
	col, row byte
	ascii    bool
	line     int
	term     int // what ended the last field: col, row, or -1 for the end of the file
	errors   int
	rows     int
	verbose  int
}

const importUsage = `.import FILE TABLE       Import data from FILE into TABLE
   Options:
     --ascii               Use \037 and \036 as column and row separators
     --csv                 Use , and \n as column and row separators
     --skip N              Skip the first N rows of input
     --schema S            Target table to be S.TABLE
     -v                    "Verbose" - increase auxiliary output
   Notes:
     *  If TABLE does not exist, it is created.  The first row of input
        determines the column names.
     *  If neither --csv or --ascii are used, the input mode is derived
        from the ".mode" output mode
     *  If FILE begins with "|" then it is a command that generates the
        input text.
`

// importFile is .import.
func (s *shell) importFile(args []string) int {
	im := &importer{s: s, line: 1}
	file, table, schema, skip := "", "", "main", 0
	csv := s.mode.name == "csv"
	im.ascii = s.mode.name == "ascii"
	explicit := false
	for i := 0; i < len(args); i++ {
		a := args[i]
		if !strings.HasPrefix(a, "-") {
			switch {
			case file == "":
				file = a
			case table == "":
				table = a
			default:
				fmt.Fprintf(s.out, "ERROR: extra argument: \"%s\".  Usage:\n%s", a, importUsage)
				return 1
			}
			continue
		}
		switch name := strings.TrimPrefix(a[1:], "-"); {
		case name == "v":
			im.verbose++
		case name == "csv":
			csv, im.ascii, explicit = true, false, true
		case name == "ascii":
			im.ascii, csv, explicit = true, false, true
		case name == "schema" && i+1 < len(args):
			i++
			schema = args[i]
		case name == "skip" && i+1 < len(args):
			i++
			skip, _ = number(args[i])
		default:
			fmt.Fprintf(s.out, "ERROR: unknown option: \"%s\".  Usage:\n%s", a, importUsage)
			return 1
		}
	}
	if table == "" {
		fmt.Fprintf(s.out, "ERROR: missing %s argument. Usage:\n%s", map[bool]string{true: "FILE", false: "TABLE"}[file == ""], importUsage)
		return 1
	}
	if !im.separators(csv && explicit) || s.openDB() != nil {
		return 1
	}
	closer, err := im.open(file)
	if err != nil {
		s.errorf("Error: cannot open \"%s\"\n", file)
		return 1
	}
	defer closer()
	if im.verbose > 1 || im.verbose == 1 && !im.ascii {
		fmt.Fprintf(s.out, "Column separator %s, row separator %s\n", cString(string(im.col)), cString(string(im.row)))
	}
	for range skip {
		for im.field(); im.term == int(im.col); im.field() {
		}
	}
	return im.load(schema, table)
}

// separators finds what separates fields and rows.
func (im *importer) separators(csv bool) bool {
	switch {
	case csv:
		im.col, im.row = ',', '\n'
		return true
	case im.ascii:
		im.col, im.row = 0x1f, 0x1e
		return true
	}
	s := im.s
	row := s.rowSep
	if row == "\r\n" && s.mode.name == "csv" {
		row = "\n"
		s.rowSep = row
	}
	switch {
	case s.colSep == "":
		s.errorf("Error: non-null column separator required for import\n")
	case len(s.colSep) > 1:
		s.errorf("Error: multi-character column separators not allowed for import\n")
	case row == "":
		s.errorf("Error: non-null row separator required for import\n")
	case len(row) > 1:
		s.errorf("Error: multi-character row separators not allowed for import\n")
	default:
		im.col, im.row = s.colSep[0], row[0]
		return true
	}
	return false
}

func (im *importer) open(file string) (closer func(), err error) {
	if strings.HasPrefix(file, "|") {
		r, child, err := im.s.pipeInput(file[1:])
		if err != nil {
			return nil, err
		}
		im.r, im.name = bufio.NewReader(r), "<pipe>"
		return func() { r.Close(); im.s.t.Wait(child) }, nil
	}
	in, err := im.s.t.OpenFile(file)
	if err != nil {
		return nil, err
	}
	im.r, im.name = bufio.NewReader(in), file
	return func() { in.Close() }, nil
}

// get reads a byte; -1 at the end.
func (im *importer) get() int {
	c, err := im.r.ReadByte()
	if err != nil {
		return -1
	}
	return int(c)
}

// field reads one field; ok is false at the end of the file.
func (im *importer) field() (text string, ok bool) {
	if im.ascii {
		return im.asciiField()
	}
	c := im.get()
	if c < 0 {
		im.term = -1
		return "", false
	}
	if c == '"' {
		return im.quoted(), true
	}
	var b []byte
	if im.line == 1 && c == 0xef { // a byte order mark
		if next, err := im.r.Peek(2); err == nil && next[0] == 0xbb && next[1] == 0xbf {
			im.r.Discard(2)
			im.line = 1
			return im.field()
		}
	}
	for c >= 0 && c != int(im.col) && c != int(im.row) && len(b) < maxValue {
		b = append(b, byte(c))
		c = im.get()
	}
	if c == int(im.row) {
		im.line++
		if im.row == '\n' && len(b) > 0 && b[len(b)-1] == '\r' {
			b = b[:len(b)-1]
		}
	}
	im.term = c
	return string(b), true
}

// quoted reads the rest of a field that begins with a quote.
func (im *importer) quoted() string {
	var b []byte
	start := im.line
	pc, ppc := 0, 0
	for {
		c := im.get()
		if c == int(im.row) {
			im.line++
		}
		if c == '"' && pc == '"' {
			pc = 0
			continue
		}
		ends := c == int(im.col) && pc == '"' || c == int(im.row) && pc == '"' ||
			c == int(im.row) && pc == '\r' && ppc == '"' || c < 0 && pc == '"'
		if ends {
			for len(b) > 0 && b[len(b)-1] != '"' {
				b = b[:len(b)-1]
			}
			if len(b) > 0 {
				b = b[:len(b)-1]
			}
			im.term = c
			return string(b)
		}
		if pc == '"' && c != '\r' {
			im.s.errorf("%s:%d: unescaped %c character\n", im.name, im.line, '"')
		}
		if c < 0 || len(b) >= maxValue {
			im.s.errorf("%s:%d: unterminated %c-quoted field\n", im.name, start, '"')
			im.term = c
			return string(b)
		}
		b = append(b, byte(c))
		ppc, pc = pc, c
	}
}

func (im *importer) asciiField() (string, bool) {
	c := im.get()
	if c < 0 {
		im.term = -1
		return "", false
	}
	var b []byte
	for c >= 0 && c != int(im.col) && c != int(im.row) && len(b) < maxValue {
		b = append(b, byte(c))
		c = im.get()
	}
	if c == int(im.row) {
		im.line++
	}
	im.term = c
	return string(b), true
}

// load makes the table if there is none, and inserts the rows.
func (im *importer) load(schema, table string) int {
	s := im.s
	full := quoteAlways(table)
	if schema != "main" {
		full = quoteAlways(schema) + "." + full
	}
	columns, err := s.db.rows("SELECT count(*) FROM pragma_table_info(?1,?2)", table, schema)
	if err == nil && len(columns) > 0 && columns[0][0] == "0" {
		if !im.create(full) {
			return 1
		}
	}
	info, err := s.db.rows("SELECT count(*) FROM pragma_table_info(?1,?2)", table, schema)
	n := 0
	if err == nil && len(info) > 0 {
		n, _ = number(info[0][0])
	}
	if n == 0 {
		s.errorf("Error: no such table: %s\n", table)
		return 1
	}
	own := s.db.GetAutocommit()
	if own {
		s.db.Exec("BEGIN")
	}
	status := im.insert(full, n)
	if own {
		s.db.Exec("COMMIT")
	}
	if im.verbose > 0 {
		fmt.Fprintf(s.out, "Added %d rows with %d errors using %d lines of input\n", im.rows, im.errors, im.line-1)
	}
	return status
}

func quoteAlways(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// create makes a table with the names of the first row as its columns.
func (im *importer) create(full string) bool {
	s := im.s
	var names []string
	for {
		f, ok := im.field()
		if !ok {
			break
		}
		names = append(names, f)
		if im.term != int(im.col) {
			break
		}
	}
	if len(names) == 0 {
		s.errorf("%s: empty file\n", im.name)
		return false
	}
	names, renamed := distinct(names)
	if renamed != "" {
		s.errorf("Columns renamed during .import %s due to duplicates:\n%s\n", im.name, renamed)
	}
	for i, n := range names {
		names[i] = quoteAlways(n) + " TEXT"
	}
	sql := "CREATE TABLE " + full + "(\n" + strings.Join(names, ", ") + ")"
	if im.verbose > 0 {
		fmt.Fprintf(s.out, "%s\n\n", sql)
	}
	s.db.sql = sql
	if err := s.db.Exec(sql); err != nil {
		s.errorf("%s failed:\n%s\n", sql, message(err))
		return false
	}
	return true
}

// distinct numbers columns of the same name by their places, and says which.
func distinct(names []string) (result []string, renamed string) {
	seen := map[string]int{}
	for i, n := range names {
		if n == "" {
			names[i] = "?"
			n = "?"
		}
		seen[strings.ToLower(n)]++
	}
	digits := len(fmt.Sprint(len(names)))
	var list []string
	for i, n := range names {
		if seen[strings.ToLower(n)] > 1 {
			to := fmt.Sprintf("%s_%0*d", n, digits, i+1)
			list = append(list, fmt.Sprintf("\"%s\" to \"%s\"", n, to))
			n = to
		}
		result = append(result, n)
	}
	return result, strings.Join(list, ",\n")
}

// insert reads rows to the end of the file.
func (im *importer) insert(full string, n int) int {
	s := im.s
	st, _, err := s.db.Prepare("INSERT INTO " + full + " VALUES(?" + strings.Repeat(",?", n-1) + ")")
	if err != nil {
		s.errorf("Error: %s\n", message(err))
		return 1
	}
	defer st.Close()
	for im.term = 0; im.term >= 0; {
		s.t.Check()
		start, got := im.line, 0
		for got < n {
			f, ok := im.field()
			if !ok && got == 0 {
				return 0
			}
			if got == 0 && im.ascii && f == "" && !ok {
				return 0
			}
			st.BindText(got+1, f)
			got++
			if got < n && im.term != int(im.col) {
				s.errorf("%s:%d: expected %d columns but found %d - filling the rest with NULL\n", im.name, start, n, got)
				for i := got; i < n; i++ {
					st.BindNull(i + 1)
				}
				got = n + 1
			}
		}
		if got == n && im.term == int(im.col) {
			found := n
			for im.term == int(im.col) {
				im.field()
				found++
			}
			s.errorf("%s:%d: expected %d columns but found %d - extras ignored\n", im.name, start, n, found)
		}
		if err := st.Exec(); err != nil {
			s.errorf("%s:%d: INSERT failed: %s\n", im.name, start, message(err))
			im.errors++
		} else {
			im.rows++
		}
	}
	return 0
}

// readScript is .read.
func (s *shell) readScript(path string) int {
	var in io.Reader
	if strings.HasPrefix(path, "|") {
		r, child, err := s.pipeInput(path[1:])
		if err != nil {
			s.errorf("Error: cannot open \"%s\"\n", path[1:])
			return 1
		}
		defer func() { r.Close(); s.t.Wait(child) }()
		in = r
	} else {
		f, err := s.t.OpenFile(path)
		if err == nil {
			if a, aerr := f.Attr(); aerr == nil && a.Mode.IsDir() {
				f.Close()
				err = errors.New("a directory")
			}
		}
		if err != nil {
			s.errorf("Error: cannot open \"%s\"\n", path)
			return 1
		}
		defer f.Close()
		in = f
	}
	if s.process(tool.NewLines(in, '\n'), path) > 0 {
		return 1
	}
	return 0
}
