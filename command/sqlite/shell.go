package sqlite

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"agentrun.dev/command/tool"
)

// shell is the state of one run of the command.
type shell struct {
	t           *tool.T
	db          *database
	path        string // of the database to open, or that is open
	input       *tool.Lines
	interactive bool
	readonly    bool
	nofollow    bool
	bail        bool
	echo        bool
	eqp         bool
	changes     bool
	stats       bool
	timer       bool
	trace       bool
	exit        int // status after .exit or .quit; negative before
	depth       int // of nested .read
	timeout     time.Duration
	params      bool // the table of parameters exists
	explain     string

	mode
	out      *sink
	once     bool // the sink is for the next statement only
	startsAt int  // line of the input at which the present statement begins
	prompts  [2]string
}

// mode is how rows are printed.
type mode struct {
	name           string
	colSep, rowSep string
	headers        bool
	headersSet     bool
	null           string
	widths         []int // minimal widths; negative aligns to the right
	table          string
	wrap           int
	wordWrap       bool
	quote          bool
}

// maxDepth bounds nested .read commands.
const maxDepth = 25

// maxStatement bounds one statement in bytes.
const maxStatement = maxValue

func newShell(t *tool.T) *shell {
	s := &shell{t: t, exit: -1, interactive: t.IsTerminal(0), explain: "auto"}
	s.input = tool.NewLines(t.Stdin(), '\n')
	s.mode = mode{name: "list", colSep: "|", rowSep: "\n"}
	s.prompts = [2]string{"sqlite> ", "   ...> "}
	s.out = &sink{Writer: t.Out}
	return s
}

func (s *shell) close() {
	s.resetOutput()
	s.db.close()
	s.db = nil
}

// errorf writes to standard error, after what was printed.
func (s *shell) errorf(format string, args ...any) {
	s.t.Out.Flush()
	fmt.Fprintf(s.t.Stderr(), format, args...)
}

// openDB opens the database unless it is open, and reports a failure.
func (s *shell) openDB() error {
	if s.db != nil {
		return nil
	}
	var flags sqlite3.OpenFlag
	if s.readonly {
		flags |= sqlite3.OPEN_READONLY
	}
	db, err := open(s.t, s.path, flags)
	if err != nil {
		s.errorf("Error: unable to open database \"%s\": %s\n", s.path, message(err))
		return err
	}
	s.db = db
	s.params = false
	if s.timeout > 0 {
		db.BusyTimeout(s.timeout)
	}
	s.claimWAL()
	return nil
}

// claimWAL prepares for a database in WAL mode: without memory shared between processes SQLite opens one only if nobody
// else may have it.
func (s *shell) claimWAL() {
	if s.path == ":memory:" || s.path == "" || strings.HasPrefix(s.path, "file:") {
		return
	}
	f, err := s.t.OpenFile(s.path)
	if err != nil {
		return
	}
	defer f.Close()
	var head [20]byte
	if _, err := io.ReadFull(f, head[:]); err == nil && string(head[:15]) == "SQLite format 3" && head[18] == 2 {
		s.db.Exec("PRAGMA locking_mode=EXCLUSIVE")
	}
}

// wantsWAL finds statements that put a database in WAL mode.
var wantsWAL = regexp.MustCompile(`(?i)^\s*PRAGMA\s+(\w+\.)?journal_mode\s*[=(]\s*['"]?wal\b`)

// process runs an input to its end and returns how many errors there were.
func (s *shell) process(in *tool.Lines, name string) (errors int) {
	if s.depth >= maxDepth {
		s.errorf("Input nesting limit (%d) reached at line %d. Check recursion.\n", maxDepth, s.startsAt)
		return 1
	}
	s.depth++
	defer func() { s.depth-- }()
	var sql strings.Builder
	var scan scanner
	lineNo := 0
	start := 1
	for s.exit < 0 && !(errors > 0 && s.bail && !(s.interactive && name == "stdin")) {
		s.prompt(name, sql.Len() > 0)
		raw, ok := in.Next()
		if !ok {
			break
		}
		line := strings.TrimSuffix(string(raw), "\r")
		lineNo++
		if sql.Len() == 0 {
			if blank(line) {
				s.echoLine(line)
				continue
			}
			if line[0] == '.' || line[0] == '#' {
				s.echoLine(line)
				if line[0] == '.' {
					s.startsAt = lineNo
					if s.meta(line) != 0 && s.exit < 0 {
						errors++
					}
				}
				continue
			}
			start = lineNo
		}
		if isTerminator(line) && complete(sql.String()+";") {
			line = ";"
		}
		if sql.Len()+len(line) > maxStatement {
			s.errorf("Error: statement too long at line %d\n", lineNo)
			return errors + 1
		}
		if sql.Len() > 0 {
			sql.WriteByte('\n')
			scan.feed("\n")
		}
		sql.WriteString(line)
		scan.feed(line)
		if strings.IndexByte(line, ';') >= 0 && scan.done() {
			s.echoLine(sql.String())
			errors += s.statement(sql.String(), start, name)
			sql.Reset()
			scan = scanner{}
			s.endOnce()
		} else if scan.empty() {
			s.echoLine(sql.String())
			sql.Reset()
			scan = scanner{}
		}
	}
	if sql.Len() > 0 && s.exit < 0 && !blank(sql.String()) {
		s.echoLine(sql.String())
		errors += s.statement(sql.String(), start, name)
		s.endOnce()
	}
	return errors
}

func (s *shell) echoLine(line string) {
	if s.echo {
		fmt.Fprintf(s.out, "%s\n", line)
	}
}

func (s *shell) prompt(name string, continued bool) {
	if !s.interactive || name != "stdin" {
		return
	}
	p := s.prompts[0]
	if continued {
		p = s.prompts[1]
	}
	s.t.Out.WriteString(p)
	s.t.Out.Flush()
}

// statement runs what was read as one statement or several, and reports an error.
func (s *shell) statement(sql string, line int, name string) int {
	if s.openDB() != nil {
		s.exit = 1
		return 1
	}
	err := s.run(sql)
	if err != nil {
		kind, where := err.phase, ""
		if kind == "" {
			kind = "Error:"
		}
		if !s.interactive || name != "stdin" {
			where = fmt.Sprintf(" near line %d:", line)
			kind = strings.TrimSuffix(kind, ":")
		} else {
			kind = strings.TrimSuffix(kind, ":") + ":"
		}
		s.errorf("%s%s %s\n", kind, where, err.text)
		return 1
	}
	if s.changes {
		fmt.Fprintf(s.out, "changes: %d   total_changes: %d\n", s.db.Changes(), s.db.TotalChanges())
	}
	return 0
}

// blank reports whether a line has nothing but blanks.
func blank(line string) bool { return strings.TrimLeft(line, " \t\r\n\f\v") == "" }

// isTerminator reports whether a line ends a statement as in other databases' shells: "/" or "go".
func isTerminator(line string) bool {
	line = strings.TrimSpace(line)
	return line == "/" || strings.EqualFold(line, "go")
}

// complete reports whether a text is one or more whole statements.
func complete(sql string) bool {
	var sc scanner
	sc.feed(sql)
	return sc.done()
}
