// Package sqlite is the command `sqlite3`: the shell of SQLite 3.40, on SQLite itself.
//
// The library github.com/ncruces/go-sqlite3 is SQLite compiled to WebAssembly and from there to Go: whatever a hostile
// database or statement does to it stays within the bounds-checked memory of one connection, which is charged to the
// process when it is opened. Its files are those of the sandbox (see fileSystem); ATTACH reaches no others, extensions
// can't be loaded, and a killed process stops within a thousand instructions of the virtual machine.
//
// Vocabulary: a dot command (or meta command) is a line that begins with a dot; a mode is how rows are printed. Row modes
// print each row as it comes; columnar modes need them all.
//
// Files aren't shared between processes in memory, so a database in WAL mode is locked by the one that has it open.
package sqlite

import (
	"crypto/rand"
	"fmt"
	"io"
	"strings"

	"agentrun.dev/command/tool"
)

// secret is where names come from that nobody may guess.
var secret io.Reader = rand.Reader

const version = "3.40.1 2022-12-28 14:03:47 df5c253c0b3dd24916e4ec7cf77d3db5294cc9fd45ae7b9c5e82ad8197f3alt1"

// Sqlite3 is the command.
func Sqlite3(t *tool.T) int {
	s := newShell(t)
	defer s.close()
	return s.main()
}

const usage = `FILENAME is the name of an SQLite database. A new database is created
if the file does not previously exist.
OPTIONS include:
   -ascii               set output mode to 'ascii'
   -bail                stop after hitting an error
   -batch               force batch I/O
   -box                 set output mode to 'box'
   -column              set output mode to 'column'
   -cmd COMMAND         run "COMMAND" before reading stdin
   -csv                 set output mode to 'csv'
   -echo                print inputs before execution
   -init FILENAME       read/process named file
   -[no]header          turn headers on or off
   -help                show this message
   -html                set output mode to HTML
   -interactive         force interactive I/O
   -json                set output mode to 'json'
   -line                set output mode to 'line'
   -list                set output mode to 'list'
   -markdown            set output mode to 'markdown'
   -newline SEP         set output row separator. Default: '\n'
   -nofollow            refuse to open symbolic links to database files
   -nullvalue TEXT      set text string for NULL values. Default ''
   -quote               set output mode to 'quote'
   -readonly            open the database read-only
   -safe                enable safe-mode
   -separator SEP       set output column separator. Default: '|'
   -stats               print memory stats before each finalize
   -table               set output mode to 'table'
   -tabs                set output mode to 'tabs'
   -version             show SQLite version
`

// arity says how many arguments follow an option of the command line.
var arity = map[string]int{"separator": 1, "nullvalue": 1, "newline": 1, "cmd": 1, "init": 1, "vfs": 1, "mmap": 1, "maxsize": 1,
	"nonce": 1, "heap": 1, "lookaside": 2, "pagecache": 2, "sorterref": 1}

// ignored are options that change nothing that can be seen.
var ignored = map[string]bool{"mmap": true, "maxsize": true, "heap": true, "lookaside": true, "pagecache": true, "memtrace": true,
	"sorterref": true, "safe": true, "nonce": true, "deserialize": true, "append": true, "utf8": true, "no-utf8": true}

// main reads the command line and runs what it asks for.
func (s *shell) main() int {
	args := s.t.Args()[1:]
	database, commands, init, status, done := s.scan(args)
	if done {
		return status
	}
	s.path = database
	if database == "" {
		s.path = ":memory:"
	} else if _, err := s.t.Stat(database); err == nil {
		if s.openDB() != nil {
			return 1
		}
	}
	s.readInit(init)
	for i := 0; i < len(args); i++ {
		if !strings.HasPrefix(args[i], "-") {
			continue
		}
		name := strings.TrimPrefix(args[i][1:], "-")
		n := arity[name]
		if status, done := s.option(name, args[i+1:i+1+n]); done {
			return status
		}
		i += n
	}
	if len(commands) > 0 {
		return s.runCommands(commands)
	}
	if s.interactive {
		s.banner()
	}
	if errs := s.process(s.input, "stdin"); errs > 0 || s.exit >= 0 {
		return max(s.exit, min(errs, 1))
	}
	return 0
}

// scan is the first look at the command line: what isn't an option, and what must be known before the database opens.
func (s *shell) scan(args []string) (database string, commands []string, init *string, status int, done bool) {
	named := false
	for i := 0; i < len(args); i++ {
		a := args[i]
		if !strings.HasPrefix(a, "-") {
			if !named {
				database, named = a, true
			} else {
				commands = append(commands, a)
			}
			continue
		}
		name := strings.TrimPrefix(a[1:], "-")
		if n := arity[name]; n > 0 {
			if i+n >= len(args) {
				s.errorf("%s: Error: missing argument to %s\n", s.t.Name, a)
				return "", nil, nil, 1, true
			}
			if name == "init" {
				init = &args[i+1]
			}
			i += n
			continue
		}
		switch name {
		case "batch":
			s.interactive = false
		case "interactive":
			s.interactive = true
		case "readonly":
			s.readonly = true
		case "nofollow":
			s.nofollow = true
		case "bail":
			s.bail = true
		}
	}
	return database, commands, init, 0, false
}

// option handles one option of the command line.
func (s *shell) option(name string, args []string) (status int, done bool) {
	switch name {
	case "html", "list", "quote", "line", "column", "json", "markdown", "table", "box", "csv", "ascii", "tabs":
		row, headers := s.rowSep, s.headers
		s.setMode(name)
		s.wrap, s.headers = 0, headers // unlike .mode, an option changes nothing else
		if name != "ascii" {
			s.rowSep = row
		}
	case "separator":
		s.colSep = unescape(args[0])
	case "newline":
		s.rowSep = unescape(args[0])
	case "nullvalue":
		s.null = args[0]
	case "header", "noheader":
		s.headers, s.headersSet = name == "header", true
	case "echo":
		s.echo = true
	case "stats":
		s.stats = true
	case "bail":
		s.bail = true
	case "batch", "interactive", "readonly", "nofollow", "init", "vfs":
	case "eqp":
		s.eqp = true
	case "eqpfull":
		s.eqp = true
	case "version":
		fmt.Fprintln(s.t.Out, s.versionLine())
		return 0, true
	case "help":
		fmt.Fprintf(s.t.Out, "Usage: %s [OPTIONS] FILENAME [SQL]\n%s", s.t.Name, usage)
		return 0, true
	case "cmd":
		rc := s.command(args[0])
		if s.exit >= 0 {
			return s.exit, true
		}
		if rc != 0 && s.bail {
			return rc, true
		}
	default:
		if ignored[name] {
			return 0, false
		}
		s.errorf("%s: Error: unknown option: -%s\nUse -help for a list of options.\n", s.t.Name, name)
		return 1, true
	}
	return 0, false
}

func (s *shell) versionLine() string { return version }

// runCommands runs the SQL or dot commands of the command line.
func (s *shell) runCommands(commands []string) int {
	for _, c := range commands {
		rc := s.command(c)
		if s.exit >= 0 {
			return s.exit
		}
		if rc != 0 {
			return rc
		}
	}
	return 0
}

// command runs one argument of the command line, which needs no semicolon.
func (s *shell) command(c string) int {
	if strings.HasPrefix(c, ".") {
		return s.meta(c)
	}
	if s.openDB() != nil {
		return 1
	}
	if err := s.run(c); err != nil {
		s.errorf("Error: %s\n", err.full())
		return err.code
	}
	return 0
}

// readInit runs the file named by -init, or ~/.sqliterc.
func (s *shell) readInit(named *string) {
	path := ""
	switch {
	case named != nil:
		path = *named
	case s.t.Getenv("HOME") != "":
		path = s.t.Getenv("HOME") + "/.sqliterc"
	default:
		return
	}
	in, err := s.t.OpenFile(path)
	if err != nil {
		if named != nil {
			s.errorf("cannot open: \"%s\"\n", path)
		}
		return
	}
	defer in.Close()
	if s.interactive {
		s.errorf("-- Loading resources from %s\n", path)
	}
	s.process(tool.NewLines(in, '\n'), path)
}

func (s *shell) banner() {
	fmt.Fprintf(s.t.Out, "SQLite version %s\nEnter \".help\" for usage hints.\n", version[:26])
	if s.path == ":memory:" {
		s.t.Out.WriteString("Connected to a transient in-memory database.\nUse \".open FILENAME\" to reopen on a persistent database.\n")
	}
}
