package sqlite

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"
)

// modes are those of .mode, with the separators that they bring.
var modes = map[string]struct{ col, row string }{
	"list": {"|", "\n"}, "line": {"", "\n"}, "column": {"", "\n"}, "html": {}, "insert": {}, "quote": {",", "\n"},
	"tcl": {" ", "\n"}, "csv": {",", "\r\n"}, "ascii": {"\x1f", "\x1e"}, "json": {}, "markdown": {}, "table": {}, "box": {},
	"tabs": {"\t", "\n"},
}

const modeNames = "ascii box column csv html insert json line list markdown qbox quote table tabs tcl"

// setMode changes to a mode by its name.
func (s *shell) setMode(name string) {
	m := modes[name]
	if m.row != "" {
		s.rowSep = m.row
	}
	if m.col != "" {
		s.colSep = m.col
	}
	s.mode.name = name
	switch name {
	case "column", "table", "box", "markdown":
		if name == "column" && !s.headersSet {
			s.headers = true
		}
		s.wrap, s.wordWrap, s.quote = 60, false, false
	case "tabs":
		s.mode.name = "list"
	}
}

// general renders a float as C's %.15g with SQLite's "!" flag, which always leaves a decimal point.
func general(f float64, digits int) string {
	switch {
	case math.IsInf(f, 1):
		return "Inf"
	case math.IsInf(f, -1):
		return "-Inf"
	case f == 0:
		return "0.0"
	}
	e := strconv.FormatFloat(f, 'e', digits-1, 64)
	mantissa, exp, _ := strings.Cut(e, "e")
	x, _ := strconv.Atoi(exp)
	if x < -4 || x >= digits {
		return fmt.Sprintf("%se%c%02d", withPoint(mantissa), exp[0], max(x, -x))
	}
	return withPoint(strconv.FormatFloat(f, 'f', max(digits-1-x, 0), 64))
}

// withPoint drops zeros at the end, but not the one after the point.
func withPoint(s string) string {
	if !strings.Contains(s, ".") {
		return s + ".0"
	}
	s = strings.TrimRight(s, "0")
	if strings.HasSuffix(s, ".") {
		s += "0"
	}
	return s
}

// columnText returns a column as text; ok is false for NULL.
func columnText(st *sqlite3.Stmt, i int) (text string, ok bool) {
	switch st.ColumnType(i) {
	case sqlite3.NULL:
		return "", false
	case sqlite3.FLOAT:
		return general(st.ColumnFloat(i), 15), true
	}
	text = st.ColumnText(i)
	if end := strings.IndexByte(text, 0); end >= 0 {
		text = text[:end] // as a C string
	}
	return text, true
}

// text is columnText with the present text for NULL.
func (s *shell) text(st *sqlite3.Stmt, i int) string {
	if t, ok := columnText(st, i); ok {
		return t
	}
	return s.null
}

// printRows prints rows as they come.
func (s *shell) printRows(st *sqlite3.Stmt) {
	n := st.ColumnCount()
	names := make([]string, n)
	for i := range names {
		names[i] = st.ColumnName(i)
	}
	p := rowPrinter{s: s, st: st, names: names}
	for st.Step() {
		if n == 0 {
			continue
		}
		s.t.Check()
		p.row()
		p.count++
	}
	if s.mode.name == "json" && p.count > 0 {
		s.out.WriteString("]\n")
	}
}

// rowPrinter prints the rows of one statement.
type rowPrinter struct {
	s     *shell
	st    *sqlite3.Stmt
	names []string
	count int
}

func (p *rowPrinter) row() {
	switch p.s.mode.name {
	case "line":
		p.line()
	case "html":
		p.html()
	case "insert":
		p.insert()
	case "quote":
		p.separated(func(n string) string { return quoteText(n) }, func(i int) string {
			if p.st.ColumnType(i) == sqlite3.FLOAT {
				return general(p.st.ColumnFloat(i), 20) // infinities as words
			}
			return literal(p.st, i)
		})
	case "tcl":
		p.separated(cString, func(i int) string { return cString(p.s.text(p.st, i)) })
	case "csv":
		field := func(s string) string { return csvField(s, p.s.colSep) }
		p.separated(field, func(i int) string {
			t, ok := columnText(p.st, i)
			if !ok {
				return p.s.null // even where it would need quotes
			}
			return field(t)
		})
	case "json":
		p.json()
	default:
		same := func(s string) string { return s }
		p.separated(same, func(i int) string { return p.s.text(p.st, i) })
	}
}

// separated prints the header and a row with the column and row separators.
func (p *rowPrinter) separated(name func(string) string, value func(int) string) {
	out := p.s.out
	if p.count == 0 && p.s.headers {
		for i, n := range p.names {
			if i > 0 {
				out.WriteString(p.s.colSep)
			}
			out.WriteString(name(n))
		}
		out.WriteString(p.s.rowSep)
	}
	for i := range p.names {
		if i > 0 {
			out.WriteString(p.s.colSep)
		}
		out.WriteString(value(i))
	}
	out.WriteString(p.s.rowSep)
}

func (p *rowPrinter) line() {
	width := 5
	for _, n := range p.names {
		width = max(width, len(n))
	}
	if p.count > 0 {
		p.s.out.WriteString(p.s.rowSep)
	}
	for i, n := range p.names {
		fmt.Fprintf(p.s.out, "%*s = %s%s", width, n, p.s.text(p.st, i), p.s.rowSep)
	}
}

var htmlEscape = strings.NewReplacer("<", "&lt;", ">", "&gt;", "&", "&amp;", `"`, "&quot;", "'", "&#39;")

func (p *rowPrinter) html() {
	out := p.s.out
	if p.count == 0 && p.s.headers {
		out.WriteString("<TR>")
		for _, n := range p.names {
			out.WriteString("<TH>" + htmlEscape.Replace(n) + "</TH>\n")
		}
		out.WriteString("</TR>\n")
	}
	out.WriteString("<TR>")
	for i := range p.names {
		out.WriteString("<TD>" + htmlEscape.Replace(p.s.text(p.st, i)) + "</TD>\n")
	}
	out.WriteString("</TR>\n")
}

func (p *rowPrinter) insert() {
	out := p.s.out
	out.WriteString("INSERT INTO " + p.s.table)
	if p.s.headers {
		for i, n := range p.names {
			out.WriteString(map[bool]string{true: "(", false: ","}[i == 0] + quoteName(n))
		}
		out.WriteString(")")
	}
	for i := range p.names {
		if i == 0 {
			out.WriteString(" VALUES(")
		} else {
			out.WriteString(",")
		}
		out.WriteString(escapedLiteral(p.st, i))
	}
	out.WriteString(");\n")
}

func (p *rowPrinter) json() {
	out := p.s.out
	if p.count == 0 {
		out.WriteString("[{")
	} else {
		out.WriteString(",\n{")
	}
	for i, n := range p.names {
		if i > 0 {
			out.WriteString(",")
		}
		out.WriteString(jsonString(n) + ":")
		switch p.st.ColumnType(i) {
		case sqlite3.NULL:
			out.WriteString("null")
		case sqlite3.FLOAT:
			out.WriteString(exactFloat(p.st.ColumnFloat(i)))
		case sqlite3.INTEGER:
			out.WriteString(p.st.ColumnText(i))
		case sqlite3.BLOB:
			out.WriteString(jsonString(string(p.st.ColumnRawBlob(i))))
		default:
			t, _ := columnText(p.st, i)
			out.WriteString(jsonString(t))
		}
	}
	out.WriteString("}")
}

// exactFloat renders a float with 20 digits, infinities so that they can be read again.
func exactFloat(f float64) string {
	if math.IsInf(f, 1) {
		return "1e999"
	} else if math.IsInf(f, -1) {
		return "-1e999"
	}
	return general(f, 20)
}

func jsonString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' || c == '"':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c >= ' ':
			b.WriteByte(c)
		default:
			if k := strings.IndexByte("\b\f\n\r\t", c); k >= 0 {
				b.WriteByte('\\')
				b.WriteByte("bfnrt"[k])
			} else {
				fmt.Fprintf(&b, "\\u%04x", c)
			}
		}
	}
	b.WriteByte('"')
	return b.String()
}

// csvField quotes a field where it must be.
func csvField(s, sep string) string {
	if s == "" {
		return `""`
	}
	special := strings.Contains(s, sep)
	for i := 0; i < len(s) && !special; i++ {
		special = s[i] <= ' ' || s[i] == '"' || s[i] == '\'' || s[i] == 0x7f || s[i] > 0x7f
	}
	if !special {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// cString quotes as C and Tcl do.
func cString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' || c == '"':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func quoteText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// literal renders a column as an SQL literal.
func literal(st *sqlite3.Stmt, i int) string {
	switch st.ColumnType(i) {
	case sqlite3.NULL:
		return "NULL"
	case sqlite3.INTEGER:
		return st.ColumnText(i)
	case sqlite3.FLOAT:
		return exactFloat(st.ColumnFloat(i))
	case sqlite3.BLOB:
		return "X'" + hex.EncodeToString(st.ColumnRawBlob(i)) + "'"
	}
	t, _ := columnText(st, i)
	return quoteText(t)
}

// escapedLiteral is literal with line ends written as characters by number, so that a row stays on one line.
func escapedLiteral(st *sqlite3.Stmt, i int) string {
	lit := literal(st, i)
	if st.ColumnType(i) != sqlite3.TEXT || !strings.ContainsAny(lit, "\r\n") {
		return lit
	}
	open, end := "", ""
	for _, e := range []struct{ c, name string }{{"\n", "\\n"}, {"\r", "\\r"}} {
		if !strings.Contains(lit, e.c) {
			continue
		}
		name := e.name
		for k := 0; strings.Contains(lit, name); k++ {
			name = fmt.Sprintf("(%s%d)", e.name, k)
		}
		lit = strings.ReplaceAll(lit, e.c, name)
		open += "replace("
		end += fmt.Sprintf(",'%s',char(%d))", name, e.c[0])
	}
	return open + lit + end
}

// quoteName quotes an identifier where it must be.
func quoteName(s string) string {
	plain := s != "" && !(s[0] >= '0' && s[0] <= '9')
	for i := 0; i < len(s) && plain; i++ {
		plain = wordByte(s[i]) && s[i] < utf8.RuneSelf && s[i] != '$'
	}
	if plain && !keyword(s) {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// keywords are SQLite's, which a name must not be.
const keywords = ` ABORT ACTION ADD AFTER ALL ALTER ALWAYS ANALYZE AND AS ASC ATTACH AUTOINCREMENT BEFORE BEGIN BETWEEN BY CASCADE CASE CAST CHECK COLLATE COLUMN COMMIT CONFLICT CONSTRAINT CREATE CROSS CURRENT CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP DATABASE DEFAULT DEFERRABLE DEFERRED DELETE DESC DETACH DISTINCT DO DROP EACH ELSE END ESCAPE EXCEPT EXCLUDE EXCLUSIVE EXISTS EXPLAIN FAIL FILTER FIRST FOLLOWING FOR FOREIGN FROM FULL GENERATED GLOB GROUP GROUPS HAVING IF IGNORE IMMEDIATE IN INDEX INDEXED INITIALLY INNER INSERT INSTEAD INTERSECT INTO IS ISNULL JOIN KEY LAST LEFT LIKE LIMIT MATCH MATERIALIZED NATURAL NO NOT NOTHING NOTNULL NULL NULLS OF OFFSET ON OR ORDER OTHERS OUTER OVER PARTITION PLAN PRAGMA PRECEDING PRIMARY QUERY RAISE RANGE RECURSIVE REFERENCES REGEXP REINDEX RELEASE RENAME REPLACE RESTRICT RETURNING RIGHT ROLLBACK ROW ROWS SAVEPOINT SELECT SET TABLE TEMP TEMPORARY THEN TIES TO TRANSACTION TRIGGER UNBOUNDED UNION UNIQUE UPDATE USING VACUUM VALUES VIEW VIRTUAL WHEN WHERE WINDOW WITH WITHOUT `

func keyword(s string) bool { return strings.Contains(keywords, " "+strings.ToUpper(s)+" ") }
