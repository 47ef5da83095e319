package sqlite

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// metaCommand is a dot command. min is how many letters of its name are enough.
type metaCommand struct {
	name string
	min  int
	args string // as .help shows them
	help string
	run  func(s *shell, args []string) int
}

// metaCommands are all of them in the order in which a shortened name is looked up.
func metaCommands() []metaCommand {
	return []metaCommand{
		{"backup", 3, " ?DB? FILE", `Backup DB (default "main") to FILE`, (*shell).metaBackup},
		{"bail", 3, " on|off", "Stop after hitting an error.  Default OFF", flag("bail", func(s *shell) *bool { return &s.bail })},
		{"binary", 3, " on|off", "Turn binary output on or off.  Default OFF", flag("binary", func(*shell) *bool { return new(bool) })},
		{"cd", 2, " DIRECTORY", "Change the working directory to DIRECTORY", (*shell).metaCd},
		{"changes", 3, " on|off", "Show number of rows changed by SQL", flag("changes", func(s *shell) *bool { return &s.changes })},
		{"databases", 2, "", "List names and files of attached databases", func(s *shell, _ []string) int { return s.databases() }},
		{"dump", 1, " ?OBJECTS?", "Render database content as SQL", (*shell).dump},
		{"echo", 1, " on|off", "Turn command echo on or off", flag("echo", func(s *shell) *bool { return &s.echo })},
		{"eqp", 2, " on|off|full|...", "Enable or disable automatic EXPLAIN QUERY PLAN", (*shell).metaEqp},
		{"exit", 3, " ?CODE?", "Exit this program with return-code CODE", (*shell).metaExit},
		{"explain", 3, " ?on|off|auto?", "Change the EXPLAIN formatting mode.  Default: auto", (*shell).metaExplain},
		{"fullschema", 1, " ?--indent?", "Show schema and the content of sqlite_stat tables", (*shell).fullSchema},
		{"headers", 1, " on|off", "Turn display of headers on or off", (*shell).metaHeaders},
		{"help", 2, " ?-all? ?PATTERN?", "Show help text for PATTERN", (*shell).metaHelp},
		{"import", 2, " FILE TABLE", "Import data from FILE into TABLE", (*shell).importFile},
		{"indexes", 2, " ?TABLE?", "Show names of indexes", (*shell).metaIndexes},
		{"indices", 4, "", "", (*shell).metaIndexes},
		{"limit", 2, " ?LIMIT? ?VAL?", "Display or change the value of an SQLITE_LIMIT", (*shell).metaLimit},
		{"load", 2, " FILE ?ENTRY?", "Load an extension library", (*shell).metaLoad},
		{"log", 2, " FILE|off", "Turn logging on or off.  FILE can be stderr/stdout", func(*shell, []string) int { return 0 }},
		{"mode", 1, " MODE ?OPTIONS?", "Set output mode", (*shell).metaMode},
		{"nullvalue", 2, " STRING", "Use STRING in place of NULL values", (*shell).metaNull},
		{"once", 2, " ?OPTIONS? ?FILE?", "Output for the next SQL command only to FILE", (*shell).metaOnce},
		{"open", 2, " ?OPTIONS? ?FILE?", "Close existing database and reopen FILE", (*shell).metaOpen},
		{"output", 1, " ?FILE?", "Send output to FILE or stdout if FILE is omitted", (*shell).metaOutput},
		{"parameter", 3, " CMD ...", "Manage SQL parameter bindings", (*shell).metaParameter},
		{"print", 3, " STRING...", "Print literal STRING", (*shell).metaPrint},
		{"prompt", 3, " MAIN CONTINUE", "Replace the standard prompts", (*shell).metaPrompt},
		{"quit", 1, "", "Exit this program", func(s *shell, _ []string) int { s.exit = 0; return 2 }},
		{"read", 3, " FILE", "Read input from FILE or command output", (*shell).metaRead},
		{"restore", 3, " ?DB? FILE", `Restore content of DB (default "main") from FILE`, (*shell).metaRestore},
		{"save", 3, " ?OPTIONS? FILE", "Write database to FILE (an alias for .backup ...)", (*shell).metaBackup},
		{"schema", 2, " ?PATTERN?", "Show the CREATE statements matching PATTERN", (*shell).schema},
		{"separator", 2, " COL ?ROW?", "Change the column and row separators", (*shell).metaSeparator},
		{"shell", 3, " CMD ARGS...", "Run CMD ARGS... in a system shell", (*shell).metaSystem},
		{"show", 2, "", "Show the current values for various settings", (*shell).metaShow},
		{"stats", 2, " ?ARG?", "Show stats or turn stats on or off", (*shell).metaStats},
		{"system", 2, " CMD ARGS...", "Run CMD ARGS... in a system shell", (*shell).metaSystem},
		{"tables", 2, " ?TABLE?", "List names of tables matching LIKE pattern TABLE", (*shell).metaTables},
		{"timeout", 5, " MS", "Try opening locked tables for MS milliseconds", (*shell).metaTimeout},
		{"timer", 5, " on|off", "Turn SQL timer on or off", flag("timer", func(s *shell) *bool { return &s.timer })},
		{"trace", 3, " ?OPTIONS?", "Output each SQL statement as it is run", (*shell).metaTrace},
		{"version", 3, "", "", (*shell).metaVersion},
		{"width", 1, " NUM1 NUM2 ...", "Set minimum column widths for columnar output", (*shell).metaWidth},
	}
}

// meta runs a dot command. It returns 0, 1 for an error, or 2 for the end of the shell.
func (s *shell) meta(line string) int {
	args := splitArgs(line[1:])
	if len(args) == 0 {
		return 0
	}
	name := args[0]
	for _, c := range metaCommands() {
		if strings.HasPrefix(c.name, name) && len(name) >= c.min {
			rc := c.run(s, args[1:])
			if name != "once" && !strings.HasPrefix("output", name) && c.name != "print" {
				s.endOnceAfter(c.name)
			}
			return rc
		}
	}
	s.errorf("Error: unknown command or invalid arguments:  \"%s\". Enter \".help\" for help\n", name)
	return 1
}

// endOnceAfter ends .once after a dot command that prints results.
func (s *shell) endOnceAfter(name string) {
	switch name {
	case "dump", "schema", "tables", "indexes", "fullschema", "databases":
		s.endOnce()
	}
}

// splitArgs splits a dot command into words: 'quoted' as they are, "quoted" and bare ones with escapes.
func splitArgs(line string) (args []string) {
	for {
		line = strings.TrimLeft(line, " \t\r\n\v\f")
		if line == "" || len(args) >= 50 {
			return args
		}
		if q := line[0]; q == '\'' || q == '"' {
			end := 1
			for end < len(line) && line[end] != q {
				if q == '"' && line[end] == '\\' && end+1 < len(line) {
					end++
				}
				end++
			}
			word := line[1:min(end, len(line))]
			if q == '"' {
				word = unescape(word)
			}
			args = append(args, word)
			line = line[min(end+1, len(line)):]
			continue
		}
		end := 0
		for end < len(line) && !isSpace(line[end]) {
			end++
		}
		args = append(args, unescape(line[:end]))
		line = line[end:]
	}
}

// unescape resolves the escapes of C.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '\\' || i+1 == len(s) {
			b.WriteByte(c)
			continue
		}
		i++
		c = s[i]
		if k := strings.IndexByte("abtnvfr\"'\\", c); k >= 0 {
			b.WriteByte("\a\b\t\n\v\f\r\"'\\"[k])
			continue
		}
		if c >= '0' && c <= '7' {
			v := 0
			for n := 0; n < 3 && i < len(s) && s[i] >= '0' && s[i] <= '7'; n++ {
				v = v*8 + int(s[i]-'0')
				i++
			}
			i--
			c = byte(v)
		}
		b.WriteByte(c)
	}
	return b.String()
}

// number reads an integer with an optional suffix.
func number(s string) (int, bool) {
	n, err := strconv.ParseInt(s, 0, 32)
	return int(n), err == nil
}

// boolean reads a flag's value as the C shell does.
func (s *shell) boolean(arg string) bool {
	if n, ok := number(arg); ok {
		return n != 0
	}
	switch strings.ToLower(arg) {
	case "on", "yes":
		return true
	case "off", "no":
		return false
	}
	s.errorf("ERROR: Not a boolean value: \"%s\". Assuming \"no\".\n", arg)
	return false
}

func flag(name string, of func(*shell) *bool) func(*shell, []string) int {
	return func(s *shell, args []string) int {
		if len(args) != 1 {
			s.errorf("Usage: .%s on|off\n", name)
			return 1
		}
		*of(s) = s.boolean(args[0])
		return 0
	}
}

func (s *shell) usageOf(text string) int {
	s.errorf("Usage: %s\n", text)
	return 1
}

func (s *shell) metaHeaders(args []string) int {
	if len(args) != 1 {
		return s.usageOf(".headers on|off")
	}
	s.headers, s.headersSet = s.boolean(args[0]), true
	return 0
}

func (s *shell) metaBackup(args []string) int {
	schema, path := "main", ""
	var names []string
	for _, a := range args {
		switch {
		case strings.HasPrefix(a, "-") && (strings.HasSuffix(a, "append") || strings.HasSuffix(a, "async")):
		case strings.HasPrefix(a, "-"):
			s.errorf("unknown option: %s\n", a)
			return 1
		default:
			names = append(names, a)
		}
	}
	switch len(names) {
	case 0:
		s.errorf("missing FILENAME argument on .backup\n")
		return 1
	case 1:
		path = names[0]
	case 2:
		schema, path = names[0], names[1]
	default:
		return s.usageOf(".backup ?DB? ?OPTIONS? FILENAME")
	}
	return s.copyDatabase(schema, path, false)
}

func (s *shell) metaRestore(args []string) int {
	switch len(args) {
	case 1:
		return s.copyDatabase("main", args[0], true)
	case 2:
		return s.copyDatabase(args[0], args[1], true)
	}
	return s.usageOf(".restore ?DB? FILE")
}

func (s *shell) metaCd(args []string) int {
	if len(args) != 1 {
		return s.usageOf(".cd DIRECTORY")
	}
	if err := s.t.Chdir(args[0]); err != nil {
		s.errorf("Cannot change to directory \"%s\"\n", args[0])
		return 1
	}
	return 0
}

func (s *shell) metaEqp(args []string) int {
	if len(args) != 1 {
		return s.usageOf(".eqp off|on|trace|trigger|full")
	}
	switch args[0] {
	case "full", "trigger", "trace":
		s.eqp = true
	default:
		s.eqp = s.boolean(args[0])
	}
	return 0
}

func (s *shell) metaExit(args []string) int {
	s.exit = 0
	if len(args) > 0 {
		n, _ := strconv.Atoi(args[0])
		s.exit = n & 0xff
	}
	return 2
}

func (s *shell) metaExplain(args []string) int {
	s.explain = "auto"
	if len(args) > 0 && args[0] != "auto" {
		s.explain = pick(s.boolean(args[0]), "on", "off")
	}
	return 0
}

func (s *shell) metaHelp(args []string) int {
	pattern := ""
	for _, a := range args {
		if a != "-all" && a != "--all" && a != "-a" {
			pattern = a
		}
	}
	found := false
	for _, c := range metaCommands() {
		if c.help == "" || !strings.HasPrefix(c.name, strings.TrimPrefix(pattern, ".")) {
			continue
		}
		found = true
		fmt.Fprintf(s.out, "%-24s %s\n", "."+c.name+c.args, c.help)
	}
	if !found {
		fmt.Fprintf(s.out, "Nothing matches '%s'\n", pattern)
	}
	return 0
}

func (s *shell) metaIndexes(args []string) int {
	if len(args) > 1 {
		return s.usageOf(".indexes ?LIKE-PATTERN?")
	}
	return s.names(true, strings.Join(args, ""), len(args) == 1)
}

func (s *shell) metaTables(args []string) int {
	return s.names(false, strings.Join(args[:min(len(args), 1)], ""), len(args) > 0)
}

var limitNames = []string{"length", "sql_length", "column", "expr_depth", "compound_select", "vdbe_op", "function_arg", "attached",
	"like_pattern_length", "variable_number", "trigger_depth", "worker_threads"}

// metaLimit shows limits. They can be lowered, but not raised over what the sandbox allows.
func (s *shell) metaLimit(args []string) int {
	if s.openDB() != nil {
		return 1
	}
	if len(args) == 0 {
		for i, n := range limitNames {
			fmt.Fprintf(s.out, "%20s %d\n", n, s.db.Limit(sqlite3.LimitCategory(i), -1))
		}
		return 0
	}
	for i, n := range limitNames {
		if !strings.EqualFold(n, args[0]) {
			continue
		}
		id := sqlite3.LimitCategory(i)
		if v, ok := 0, false; len(args) > 1 {
			if v, ok = number(args[1]); ok && v >= 0 && v < s.db.Limit(id, -1) {
				s.db.Limit(id, v)
			}
		}
		fmt.Fprintf(s.out, "%20s %d\n", n, s.db.Limit(id, -1))
		return 0
	}
	s.errorf("unknown limit: \"%s\"\nenter \".limits\" with no arguments for a list.\n", args[0])
	return 1
}

func (s *shell) metaLoad([]string) int {
	s.errorf("Error: extensions can't be loaded in a sandbox\n")
	return 1
}

// metaMode is .mode.
func (s *shell) metaMode(args []string) int {
	name, table := "", ""
	wrap, wordWrap, quote := 60, false, false
	options := false
	for i := 0; i < len(args); i++ {
		a := args[i]
		if !strings.HasPrefix(a, "-") {
			switch {
			case name == "":
				name = a
				if a == "qbox" {
					name, quote = "box", true
					wrap = 60
				}
			case table == "":
				table = a
			}
			continue
		}
		options = true
		switch strings.TrimPrefix(a[1:], "-") {
		case "wrap":
			if i+1 < len(args) {
				i++
				wrap, _ = number(args[i])
			}
		case "wordwrap":
			if i+1 < len(args) {
				i++
				wordWrap = s.boolean(args[i])
			}
		case "ww":
			wordWrap = true
		case "quote":
			quote = true
		case "noquote":
			quote = false
		default:
			s.errorf("unknown option: %s\noptions:\n  --noquote\n  --quote\n  --wordwrap on/off\n  --wrap N\n  --ww\n", a)
			return 1
		}
	}
	if name == "" {
		if options && s.columnar() {
			s.wrap, s.wordWrap, s.quote = wrap, wordWrap, quote
			return 0
		}
		s.showMode()
		s.setMode(s.mode.name) // the C shell sets what it shows anew, and so forgets the options
		return 0
	}
	full := ""
	for _, m := range strings.Fields(modeNames) {
		if strings.HasPrefix(m, name) && (full == "" || m == name) {
			full = m
		}
	}
	// The C shell looks these up before others that begin alike.
	for _, m := range []string{"line", "column", "list", "html", "tcl", "csv", "tabs", "insert", "quote", "ascii", "markdown", "table", "box"} {
		if strings.HasPrefix(m, name) {
			full = m
			break
		}
	}
	if name == "lines" || name == "columns" {
		full = strings.TrimSuffix(name, "s")
	}
	if full == "" {
		s.errorf("Error: mode should be one of: %s\n", modeNames)
		return 1
	}
	s.setMode(full)
	if s.columnar() {
		s.wrap, s.wordWrap, s.quote = wrap, wordWrap, quote
	}
	if full == "insert" {
		if table == "" {
			table = "table"
		}
		s.table = quoteName(table)
	}
	return 0
}

func (s *shell) showMode() {
	if s.columnar() {
		fmt.Fprintf(s.out, "current output mode: %s --wrap %d --wordwrap %s --%squote\n", s.mode.name, s.wrap, onOff(s.wordWrap), pick(s.quote, "", "no"))
		return
	}
	fmt.Fprintf(s.out, "current output mode: %s\n", s.mode.name)
}

func onOff(b bool) string { return pick(b, "on", "off") }

func (s *shell) metaNull(args []string) int {
	if len(args) != 1 {
		return s.usageOf(".nullvalue STRING")
	}
	s.null = args[0]
	return 0
}

func (s *shell) metaOnce(args []string) int { return s.output("once", args, true) }

func (s *shell) metaOutput(args []string) int { return s.output("output", args, false) }

func (s *shell) output(name string, args []string, once bool) int {
	file := ""
	for i, a := range args {
		switch {
		case strings.HasPrefix(a, "-"):
			if a != "--bom" && a != "-bom" {
				s.errorf("ERROR: unknown option: \"%s\".  Usage:\n.%s ?OPTION? ?FILE?\n", a, name)
				return 1
			}
		case file == "" && strings.HasPrefix(a, "|"):
			file = strings.Join(args[i:], " ")
		case file == "":
			file = a
		case !strings.HasPrefix(file, "|"):
			s.errorf("ERROR: extra parameter: \"%s\".  Usage:\n.%s ?OPTION? ?FILE?\n", a, name)
			return 1
		}
	}
	if err := s.redirect(file); err != nil {
		return 1
	}
	s.once = once && file != ""
	return 0
}

func (s *shell) metaOpen(args []string) int {
	path, readonly, create := "", false, false
	for _, a := range args {
		switch strings.TrimPrefix(strings.TrimPrefix(a, "-"), "-") {
		case "new":
			create = true
		case "readonly":
			readonly = true
		case "nofollow":
			s.nofollow = true
		case "append", "deserialize", "zip":
		default:
			if strings.HasPrefix(a, "-") {
				s.errorf("unknown option: %s\n", a)
				return 1
			}
			if path != "" {
				s.errorf("extra argument: \"%s\"\n", a)
				return 1
			}
			path = a
		}
	}
	s.db.close()
	s.db, s.readonly, s.params = nil, readonly, false
	s.path = path
	if path == "" {
		s.path = ":memory:"
	} else if create {
		s.t.Unlink(path)
	}
	if s.openDB() != nil {
		s.path = ":memory:"
	}
	return 0
}

// metaParameter is .parameter: values for ?1, :name and so on, kept in a temporary table.
func (s *shell) metaParameter(args []string) int {
	if s.openDB() != nil {
		return 1
	}
	table := func() {
		s.params = true
		s.db.Exec("CREATE TABLE IF NOT EXISTS temp.sqlite_parameters(key TEXT PRIMARY KEY, value) WITHOUT ROWID")
	}
	// The table's name is reserved; defensive mode is off, so writable_schema allows it.
	s.db.Exec("PRAGMA writable_schema=ON")
	defer s.db.Exec("PRAGMA writable_schema=OFF")
	switch {
	case len(args) == 1 && args[0] == "clear":
		s.db.Exec("DROP TABLE IF EXISTS temp.sqlite_parameters")
		s.params = false
	case len(args) == 1 && args[0] == "init":
		table()
	case len(args) == 1 && args[0] == "list":
		s.listParameters()
	case len(args) == 3 && args[0] == "set":
		table()
		key := quoteText(args[1])
		into := "REPLACE INTO temp.sqlite_parameters(key,value)VALUES(" + key + ","
		s.db.sql = into
		if s.db.Exec(into+args[2]+");") != nil {
			if err := s.db.Exec(into + quoteText(args[2]) + ");"); err != nil {
				s.errorf("Error: %s\n", message(err))
				return 1
			}
		}
	case len(args) == 2 && args[0] == "unset":
		s.db.Exec("DELETE FROM temp.sqlite_parameters WHERE key=" + quoteText(args[1]))
	default:
		fmt.Fprint(s.out, ".parameter CMD ...       Manage SQL parameter bindings\n"+
			"   clear                   Erase all bindings\n"+
			"   init                    Initialize the TEMP table that holds bindings\n"+
			"   list                    List the current parameter bindings\n"+
			"   set PARAMETER VALUE     Given SQL parameter PARAMETER a value of VALUE\n"+
			"                           PARAMETER should start with one of: $ : @ ?\n"+
			"   unset PARAMETER         Remove PARAMETER from the binding table\n")
	}
	return 0
}

func (s *shell) listParameters() {
	rows, err := s.db.rows("SELECT key, quote(value) FROM temp.sqlite_parameters")
	if err != nil {
		return
	}
	width := 0
	for _, r := range rows {
		width = max(width, len(r[0]))
	}
	for _, r := range rows {
		fmt.Fprintf(s.out, "%-*s %s\n", width, r[0], r[1])
	}
}

func (s *shell) metaPrint(args []string) int {
	s.out.WriteString(strings.Join(args, " ") + "\n")
	return 0
}

func (s *shell) metaPrompt(args []string) int {
	copy(s.prompts[:], args)
	return 0
}

func (s *shell) metaRead(args []string) int {
	if len(args) != 1 {
		return s.usageOf(".read FILE")
	}
	return s.readScript(args[0])
}

func (s *shell) metaSeparator(args []string) int {
	if len(args) < 1 || len(args) > 2 {
		return s.usageOf(".separator COL ?ROW?")
	}
	s.colSep = args[0]
	if len(args) == 2 {
		s.rowSep = args[1]
	}
	return 0
}

func (s *shell) metaSystem(args []string) int {
	if len(args) == 0 {
		return s.usageOf(".system COMMAND")
	}
	for i, a := range args {
		if i > 0 && strings.ContainsAny(a, " \t") {
			args[i] = `"` + a + `"`
		}
	}
	s.system(strings.Join(args, " "))
	return 0
}

func (s *shell) metaShow([]string) int {
	line := func(name, value string) { fmt.Fprintf(s.out, "%12s: %s\n", name, value) }
	line("echo", onOff(s.echo))
	line("eqp", onOff(s.eqp))
	line("explain", s.explain)
	line("headers", onOff(s.headers))
	if s.columnar() {
		line("mode", fmt.Sprintf("%s --wrap %d --wordwrap %s --%squote", s.mode.name, s.wrap, onOff(s.wordWrap), pick(s.quote, "", "no")))
	} else {
		line("mode", s.mode.name)
	}
	line("nullvalue", cString(s.null))
	line("output", pick(s.out.name == "", "stdout", s.out.name))
	line("colseparator", cString(s.colSep))
	line("rowseparator", cString(s.rowSep))
	line("stats", onOff(s.stats))
	var widths strings.Builder
	for _, w := range s.widths {
		fmt.Fprintf(&widths, "%d ", w)
	}
	line("width", widths.String())
	line("filename", s.path)
	return 0
}

func (s *shell) metaStats(args []string) int {
	if len(args) > 0 {
		s.stats = s.boolean(args[0])
	}
	return 0
}

func (s *shell) metaTimeout(args []string) int {
	if s.openDB() != nil {
		return 1
	}
	ms := 0
	if len(args) > 0 {
		ms, _ = number(args[0])
	}
	s.timeout = time.Duration(max(ms, 0)) * time.Millisecond
	s.db.BusyTimeout(s.timeout)
	return 0
}

func (s *shell) metaTrace(args []string) int {
	s.trace = len(args) > 0 && args[len(args)-1] != "off"
	return 0
}

func (s *shell) metaVersion([]string) int {
	fmt.Fprintf(s.out, "SQLite %s\n", version)
	return 0
}

func (s *shell) metaWidth(args []string) int {
	s.widths = nil
	for _, a := range args {
		n, _ := number(a)
		s.widths = append(s.widths, min(max(n, -10000), 10000))
	}
	return 0
}
