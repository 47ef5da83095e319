// Package find is find, as GNU findutils 4.9.
//
// The command line is starting points and an expression. The expression is parsed into a tree of predicates (parse.go),
// which is evaluated for each file of the walk (walk.go); -printf is in printf.go.
package find

import (
	"strconv"
	"strings"
	"time"

	"agentrun.dev/command/tool"
)

const help = `Usage: find [-H] [-L] [-P] [-Olevel] [-D debugopts] [path...] [expression]

default path is the current directory; default expression is -print
expression may consist of: operators, options, tests, and actions:
operators (decreasing precedence; -and is implicit where no others are given):
      ( EXPR )   ! EXPR   -not EXPR   EXPR1 -a EXPR2   EXPR1 -and EXPR2
      EXPR1 -o EXPR2   EXPR1 -or EXPR2   EXPR1 , EXPR2
positional options (always true): -daystart -follow -regextype
normal options (always true, specified before other expressions):
      -depth --help -maxdepth LEVELS -mindepth LEVELS -mount -noleaf
      --version -xdev -ignore_readdir_race -noignore_readdir_race
tests (N can be +N or -N or N): -amin N -anewer FILE -atime N -cmin N
      -cnewer FILE -ctime N -empty -false -fstype TYPE -gid N -group NAME
      -ilname PATTERN -iname PATTERN -inum N -iwholename PATTERN -iregex PATTERN
      -links N -lname PATTERN -mmin N -mtime N -name PATTERN -newer FILE
      -nouser -nogroup -path PATTERN -perm [-/]MODE -regex PATTERN
      -readable -writable -executable
      -wholename PATTERN -size N[bcwkMG] -true -type [bcdpflsD] -uid N
      -used N -user NAME -xtype [bcdpfls]
actions: -delete -print0 -printf FORMAT -fprintf FILE FORMAT -print
      -fprint0 FILE -fprint FILE -ls -fls FILE -prune -quit
      -exec COMMAND ; -exec COMMAND {} + -ok COMMAND ;
      -execdir COMMAND ; -execdir COMMAND {} + -okdir COMMAND ;
`

// finder is a running find.
type finder struct {
	loop       bool // the last file that could not be looked at was a link to itself
	t          *tool.T
	follow     byte // P, H, L
	paths      []string
	root       node
	depth      bool
	maxDepth   int
	minDepth   int
	xdev       bool
	dayStart   bool
	regexType  string
	status     int
	start      time.Time
	quit       bool
	files      map[string]*tool.FileWriter
	batches    []*execAction
	accounts   *tool.Accounts
	cwd        string
	ignoreRace bool
	nesting    int
}

// Find searches for files in a directory hierarchy.
func Find(t *tool.T) int {
	f := &finder{t: t, follow: 'P', maxDepth: -1, regexType: "emacs", start: t.Now(), files: map[string]*tool.FileWriter{}}
	args := f.leading(t.Args()[1:])
	i := 0
	for i < len(args) && !startsExpression(args, i) {
		i++
	}
	f.paths, args = args[:i], args[i:]
	if len(f.paths) == 0 {
		f.paths = []string{"."}
	}
	f.parse(args)
	for _, p := range f.paths {
		f.walk(p)
		if f.quit {
			break
		}
	}
	for _, b := range f.batches {
		b.flush(f)
	}
	f.closeFiles()
	return f.status
}

// leading takes the options before the starting points.
func (f *finder) leading(args []string) []string {
	for len(args) > 0 {
		switch a := args[0]; {
		case a == "-P" || a == "-H" || a == "-L":
			f.follow = a[1]
		case a == "-D" && len(args) > 1:
			args = args[1:]
		case strings.HasPrefix(a, "-O"):
			if n, err := strconv.Atoi(a[2:]); err != nil || n < 0 || a == "-O" {
				f.t.Fatal(1, "The -O option must be immediately followed by a decimal integer")
			}
		case a == "--":
			return args[1:]
		default:
			return args
		}
		args = args[1:]
	}
	return args
}

// startsExpression reports whether the expression begins at an argument.
func startsExpression(args []string, i int) bool {
	a := args[i]
	return len(a) > 1 && a[0] == '-' || a == "!" || a == "("
}

func (f *finder) fail(format string, args ...any) {
	f.t.Warn(format, args...)
	f.status = 1
}

func (f *finder) closeFiles() {
	for name, w := range f.files {
		err := w.Flush()
		if cerr := w.File.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			f.fail("%s: %s", tool.Quote(name), tool.Strerror(err))
		}
	}
}

// fileWriter opens a file for -fprint and its kin, once.
func (f *finder) fileWriter(name string) *tool.FileWriter {
	if w := f.files[name]; w != nil {
		return w
	}
	file, err := f.t.Create(name)
	if err != nil {
		f.t.Fatal(1, "%s: %s", tool.Quote(name), tool.Strerror(err))
	}
	w := tool.NewFileWriter(file)
	f.files[name] = w
	return w
}
