package sqlite

import (
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// schemaLine writes a CREATE statement. One of a table whose name is quoted gets IF NOT EXISTS, as the C shell does.
func (s *shell) schemaLine(sql, tail string) {
	const create = "CREATE TABLE "
	if len(sql) > len(create) && strings.EqualFold(sql[:len(create)], create) && (sql[len(create)] == '"' || sql[len(create)] == '\'') {
		sql = "CREATE TABLE IF NOT EXISTS " + sql[len(create):]
	}
	s.out.WriteString(sql + tail)
}

// schemas are the names of the databases that are open.
func (s *shell) schemas() []string {
	rows, _ := s.db.rows("PRAGMA database_list")
	var names []string
	for _, r := range rows {
		names = append(names, r[1])
	}
	return names
}

// schema is .schema: the CREATE statements whose table matches a pattern.
func (s *shell) schema(args []string) int {
	indent, nosys, debug, pattern, given := false, false, false, "", false
	for _, a := range args {
		switch name := strings.TrimPrefix(strings.TrimPrefix(a, "-"), "-"); {
		case strings.HasPrefix(a, "-") && name == "indent":
			indent = true
		case strings.HasPrefix(a, "-") && name == "nosys":
			nosys = true
		case strings.HasPrefix(a, "-") && name == "debug":
			debug = true
		case strings.HasPrefix(a, "-"):
			s.errorf("Unknown option: \"%s\"\n", a)
			return 1
		case given:
			s.errorf("Usage: .schema ?--indent? ?--nosys? ?LIKE-PATTERN?\n")
			return 1
		default:
			pattern, given = a, true
		}
	}
	_ = debug
	if s.openDB() != nil {
		return 1
	}
	if given {
		if own, ok := ownSchema[strings.ToLower(pattern)]; ok {
			s.printSchema(fmt.Sprintf(own, pattern), indent)
			return 0
		}
	}
	for _, db := range s.schemas() {
		sql := "SELECT sql, type, name FROM " + quoteName(db) + ".sqlite_schema WHERE sql IS NOT NULL"
		var params []string
		if given {
			match := pattern
			op := "LIKE"
			if strings.ContainsAny(pattern, "*?[") {
				op, match = "GLOB", strings.ToLower(pattern)
			}
			column := "tbl_name"
			if strings.Contains(pattern, ".") {
				column = quoteText(db) + "||'.'||tbl_name"
			}
			escape := ""
			if op == "LIKE" {
				escape = " ESCAPE '\\'"
			}
			sql += " AND lower(" + column + ") " + op + " ?1" + escape
			params = append(params, strings.Trim(match, `"`))
		}
		if nosys {
			sql += " AND name NOT LIKE 'sqlite__%' ESCAPE '_'"
		}
		rows, err := s.db.rows(sql+" ORDER BY rowid", params...)
		if err != nil {
			s.errorf("Error: %s\n", message(err))
			return 1
		}
		for _, r := range rows {
			s.printSchema(s.annotate(r[0], r[1], r[2], db), indent)
		}
	}
	return 0
}

// ownSchema are the tables that hold the schema itself.
var ownSchema = map[string]string{
	"sqlite_schema": schemaTable, "sqlite_master": schemaTable, "sqlite_temp_schema": schemaTable, "sqlite_temp_master": schemaTable,
}

const schemaTable = "CREATE TABLE %s (\n  type text,\n  name text,\n  tbl_name text,\n  rootpage integer,\n  sql text\n)"

// annotate adds what columns a view or virtual table has, and the schema of what isn't in main.
func (s *shell) annotate(sql, kind, name, db string) string {
	if db != "main" {
		for _, what := range []string{"TABLE", "INDEX", "UNIQUE INDEX", "VIEW", "TRIGGER", "VIRTUAL TABLE"} {
			if head := "CREATE " + what + " "; strings.HasPrefix(sql, head) {
				if strings.EqualFold(db, "temp") {
					sql = "CREATE TEMP " + sql[len("CREATE "):]
				} else {
					sql = head + quoteName(db) + "." + sql[len(head):]
				}
				break
			}
		}
	}
	if kind != "view" && !strings.HasPrefix(sql, "CREATE VIRTUAL") {
		return sql
	}
	rows, err := s.db.rows("SELECT name FROM pragma_table_info(?1,?2)", name, db)
	if err != nil || len(rows) == 0 {
		return sql
	}
	columns := make([]string, len(rows))
	for i, r := range rows {
		columns[i] = quoteName(r[0])
	}
	prefix := ""
	if db != "main" && db != "temp" {
		prefix = quoteName(db) + "."
	}
	return fmt.Sprintf("%s\n/* %s%s(%s) */", sql, prefix, quoteName(name), strings.Join(columns, ","))
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// printSchema prints one statement, over several lines if it is long and shall be indented.
func (s *shell) printSchema(sql string, indent bool) {
	if !indent || hasPrefixFold(sql, "CREATE VIEW") || hasPrefixFold(sql, "CREATE TRIG") {
		s.schemaLine(sql, ";\n")
		return
	}
	z := squeeze(sql)
	if len(z) < 79 {
		s.schemaLine(z, ";\n")
		return
	}
	var line []byte
	var end byte
	parens, lines := 0, 0
	for i := 0; i < len(z); i++ {
		c := z[i]
		switch {
		case c == end:
			end = 0
		case end != 0:
		case c == '"' || c == '\'' || c == '`':
			end = c
		case c == '[':
			end = ']'
		case c == '-' && i+1 < len(z) && z[i+1] == '-':
			end = '\n'
		case c == '(':
			parens++
		case c == ')':
			parens--
			if lines > 0 && parens == 0 && len(line) > 0 {
				s.schemaLine(string(line), "\n")
				line = line[:0]
			}
		}
		line = append(line, c)
		if parens == 1 && end == 0 && (c == '(' || c == '\n' || c == ',' && !endsLine(z[i+1:])) {
			if c == '\n' {
				line = line[:len(line)-1]
			}
			s.schemaLine(string(line), "\n  ")
			line = line[:0]
			lines++
			for i+1 < len(z) && isSpace(z[i+1]) {
				i++
			}
		}
	}
	s.schemaLine(string(line), ";\n")
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// squeeze makes one blank of several, and none of those beside parentheses.
func squeeze(sql string) string {
	var z []byte
	for _, c := range []byte(strings.TrimLeft(sql, " \t\r\n\v\f")) {
		if n := len(z); n > 0 {
			switch last := z[n-1]; {
			case isSpace(c) && (isSpace(last) || last == '('):
				continue
			case (c == '(' || c == ')') && isSpace(last):
				z = z[:n-1]
			}
		}
		z = append(z, c)
	}
	return strings.TrimRight(string(z), " \t\r\n\v\f")
}

// endsLine reports whether only blanks or a comment follow on the line.
func endsLine(z string) bool {
	for i := 0; i < len(z); i++ {
		switch {
		case z[i] == '\n':
			return true
		case isSpace(z[i]):
		case z[i] == '-' && i+1 < len(z) && z[i+1] == '-':
			return true
		default:
			return false
		}
	}
	return true
}

// names is .tables and .indexes: names in columns.
func (s *shell) names(index bool, pattern string, given bool) int {
	if s.openDB() != nil {
		return 1
	}
	var parts []string
	var params []string
	if given {
		params = append(params, pattern)
	}
	for _, db := range s.schemas() {
		name := "name"
		if db != "main" {
			name = quoteText(db+".") + "||name"
		}
		sql := "SELECT " + name + " AS n FROM " + quoteName(db) + ".sqlite_schema "
		if index {
			sql += "WHERE type='index'"
			if given {
				sql += " AND tbl_name LIKE ?1"
			}
		} else {
			sql += "WHERE type IN ('table','view') AND name NOT LIKE 'sqlite__%' ESCAPE '_'"
			if given {
				sql += " AND name LIKE ?1"
			}
		}
		parts = append(parts, sql)
	}
	rows, err := s.db.rows(strings.Join(parts, " UNION ALL ")+" ORDER BY 1", params...)
	if err != nil {
		s.errorf("Error: %s\n", message(err))
		return 1
	}
	width := 0
	for _, r := range rows {
		width = max(width, len(r[0]))
	}
	perLine := max(80/(width+2), 1)
	lines := (len(rows) + perLine - 1) / perLine
	for i := range lines {
		for j := i; j < len(rows); j += lines {
			if j >= lines {
				s.out.WriteString("  ")
			}
			fmt.Fprintf(s.out, "%-*s", width, rows[j][0])
		}
		s.out.WriteString("\n")
	}
	return 0
}

// databases is .databases.
func (s *shell) databases() int {
	if s.openDB() != nil {
		return 1
	}
	rows, err := s.db.rows("PRAGMA database_list")
	if err != nil {
		s.errorf("Error: %s\n", message(err))
		return 1
	}
	for _, r := range rows {
		file := r[2]
		if file == "" {
			file = `""`
		}
		access := "r/w"
		if ro, _ := s.db.ReadOnly(r[1]); ro {
			access = "r/o"
		}
		fmt.Fprintf(s.out, "%s: %s %s\n", r[1], file, access)
	}
	return 0
}

// dumper writes .dump.
type dumper struct {
	s        *shell
	writable bool // writable_schema was turned on in the output
	rowids   bool
	dataOnly bool
	failed   bool
}

// dump is .dump: the database as SQL.
func (s *shell) dump(args []string) int {
	d := &dumper{s: s}
	like := "true"
	var patterns []string
	nosys := false
	for _, a := range args {
		switch strings.TrimPrefix(strings.TrimPrefix(a, "-"), "-") {
		case "preserve-rowids":
			d.rowids = true
		case "data-only":
			d.dataOnly = true
		case "nosys":
			nosys = true
		case "newlines":
		default:
			if strings.HasPrefix(a, "-") {
				s.errorf("Unknown option \"%s\" on \".dump\"\n", a)
				return 1
			}
			q := quoteText(a)
			patterns = append(patterns, "name LIKE "+q+" ESCAPE '\\' OR EXISTS (SELECT 1 FROM sqlite_schema WHERE name LIKE "+q+
				" ESCAPE '\\' AND sql LIKE 'CREATE VIRTUAL TABLE%' AND substr(o.name, 1, length(name)+1) == (name||'_'))")
		}
	}
	if len(patterns) > 0 {
		like = "(" + strings.Join(patterns, " OR ") + ")"
	}
	if nosys {
		like += " AND name NOT LIKE 'sqlite__%' ESCAPE '_'"
	}
	if s.openDB() != nil {
		return 1
	}
	if !d.dataOnly {
		s.out.WriteString("PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n")
	}
	s.db.Exec("SAVEPOINT dump; PRAGMA writable_schema=ON")
	d.tables(like)
	if !d.dataOnly {
		rows, err := s.db.rows("SELECT sql FROM sqlite_schema AS o WHERE (" + like + ") AND sql NOT NULL AND type IN ('index','trigger','view')")
		d.failed = d.failed || err != nil
		for _, r := range rows {
			s.out.WriteString(r[0] + ";\n")
		}
		if d.writable {
			s.out.WriteString("PRAGMA writable_schema=OFF;\n")
		}
		s.out.WriteString(pick(d.failed, "ROLLBACK; -- due to errors\n", "COMMIT;\n"))
	}
	s.db.Exec("PRAGMA writable_schema=OFF; RELEASE dump")
	return 0
}

// tables writes the tables that a condition selects, and their rows.
func (d *dumper) tables(like string) {
	rows, err := d.s.db.rows("SELECT name, type, sql FROM sqlite_schema AS o WHERE (" + like +
		") AND type=='table' AND sql NOT NULL ORDER BY tbl_name='sqlite_sequence', rowid")
	d.failed = d.failed || err != nil
	for _, r := range rows {
		d.table(r[0], r[2])
	}
}

func (d *dumper) table(name, sql string) {
	out := d.s.out
	switch {
	case d.dataOnly:
		if strings.HasPrefix(name, "sqlite_") || hasPrefixFold(sql, "CREATE VIRTUAL TABLE") {
			return
		}
	case name == "sqlite_sequence":
		out.WriteString("DELETE FROM sqlite_sequence;\n")
	case strings.HasPrefix(name, "sqlite_stat"):
		out.WriteString("ANALYZE sqlite_schema;\n")
	case strings.HasPrefix(name, "sqlite_"):
		return
	case hasPrefixFold(sql, "CREATE VIRTUAL TABLE"):
		if !d.writable {
			out.WriteString("PRAGMA writable_schema=ON;\n")
			d.writable = true
		}
		q := quoteText(name)
		fmt.Fprintf(out, "INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql)VALUES('table',%s,%s,0,%s);\n", q, q, quoteText(sql))
		return
	default:
		d.s.schemaLine(sql, ";\n")
	}
	if err := d.rows(name); err != nil {
		d.failed = true
		fmt.Fprintf(out, "/****** ERROR: %s ******/\n", strings.ReplaceAll(message(err), "*/", "* /"))
	}
}

// rows writes the rows of a table as INSERT statements.
func (d *dumper) rows(name string) error {
	info, err := d.s.db.rows("SELECT name, pk, type FROM pragma_table_xinfo(?1) WHERE hidden IN (0)", name)
	if err != nil {
		return err
	}
	columns := make([]string, len(info))
	for i, c := range info {
		columns[i] = quoteName(c[0])
	}
	list := ""
	if d.rowids && d.hasRowid(name, info) {
		columns = append([]string{"rowid"}, columns...)
		list = "(" + strings.Join(columns, ",") + ")"
	}
	st, _, err := d.s.db.Prepare("SELECT " + strings.Join(columns, ",") + " FROM " + quoteName(name))
	if err != nil || st == nil {
		return err
	}
	defer st.Close()
	head := "INSERT INTO " + quoteName(name) + list + " VALUES("
	for st.Step() {
		d.s.t.Check()
		d.s.out.WriteString(head)
		for i := range columns {
			if i > 0 {
				d.s.out.WriteString(",")
			}
			d.s.out.WriteString(escapedLiteral(st, i))
		}
		d.s.out.WriteString(");\n")
	}
	return st.Err()
}

// hasRowid reports whether a table's rows have numbers that its columns don't show.
func (d *dumper) hasRowid(name string, info [][]string) bool {
	pks, integer := 0, false
	for _, c := range info {
		if c[0] == "rowid" {
			return false
		}
		if c[1] != "0" {
			pks++
			integer = strings.EqualFold(c[2], "INTEGER")
		}
	}
	if pks == 1 && integer {
		return false
	}
	st, _, err := d.s.db.Prepare("SELECT rowid FROM " + quoteName(name) + " LIMIT 0")
	if err != nil {
		return false
	}
	st.Close()
	return true
}

// fullSchema is .fullschema: everything that .schema prints but for the comments, and the statistics.
func (s *shell) fullSchema(args []string) int {
	indent := len(args) > 0 && strings.HasSuffix(args[0], "indent")
	if s.openDB() != nil {
		return 1
	}
	rows, err := s.db.rows("SELECT sql FROM (SELECT sql sql, type type, tbl_name tbl_name, name name, rowid x FROM sqlite_schema " +
		"UNION ALL SELECT sql, type, tbl_name, name, rowid FROM sqlite_temp_schema) " +
		"WHERE type!='meta' AND sql NOTNULL AND name NOT LIKE 'sqlite__%' ESCAPE '_' ORDER BY x")
	if err != nil {
		s.errorf("Error: %s\n", message(err))
		return 1
	}
	for _, r := range rows {
		s.printSchema(r[0], indent)
	}
	stats, err := s.db.rows("SELECT name FROM sqlite_schema WHERE name GLOB 'sqlite_stat[134]' ORDER BY name")
	if err != nil || len(stats) == 0 {
		s.out.WriteString("/* No STAT tables available */\n")
		return 0
	}
	s.out.WriteString("ANALYZE sqlite_schema;\n")
	d := &dumper{s: s}
	for _, r := range stats {
		if r[0] != "sqlite_stat3" {
			d.rows(r[0])
		}
	}
	s.out.WriteString("ANALYZE sqlite_schema;\n")
	return 0
}

// copyDatabase is .backup, .save and .restore.
func (s *shell) copyDatabase(schema, path string, restore bool) int {
	if s.openDB() != nil {
		return 1
	}
	uri, err := s.db.uri(path)
	if err == nil {
		s.db.sql = ""
		if restore {
			err = s.db.Restore(schema, uri+"&mode=ro")
		} else {
			err = s.backup(schema, uri)
		}
	}
	if err != nil {
		if code(err) == int(sqlite3.CANTOPEN) {
			s.errorf("Error: cannot open \"%s\"\n", path)
		} else {
			s.errorf("Error: %s\n", message(err))
		}
		return 1
	}
	return 0
}

// pagesAtOnce is how many pages a backup copies between two looks at whether it goes on.
const pagesAtOnce = 100

func (s *shell) backup(schema, uri string) error {
	b, err := s.db.BackupInit(schema, uri)
	if err != nil {
		return err
	}
	defer b.Close()
	for done := false; !done; {
		s.t.Check()
		if done, err = b.Step(pagesAtOnce); err != nil {
			return err
		}
	}
	return nil
}
