package coreutils

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

const (
	keyProcessSlot = tool.KeyOwn + iota
	keyShowLimits
)

var xargsSpec = tool.Spec{
	Usage: []string{"[OPTION]... COMMAND [INITIAL-ARGS]..."},
	About: "Run COMMAND with arguments INITIAL-ARGS and more arguments read from input.",
	Options: []getopt.Option{
		{Short: '0', Long: "null", Help: "items are separated by a null, not whitespace; disables quote and backslash processing and logical EOF processing"},
		{Short: 'a', Long: "arg-file", Arg: getopt.Required, Name: "FILE", Help: "read arguments from FILE, not standard input"},
		{Short: 'd', Long: "delimiter", Arg: getopt.Required, Name: "CHARACTER", Help: "items in input stream are separated by CHARACTER, not by whitespace"},
		{Short: 'E', Arg: getopt.Required, Name: "END", Help: "set logical EOF string; if END occurs as a line of input, the rest of the input is ignored"},
		{Short: 'e', Long: "eof", Key: 'E', Arg: getopt.Optional},
		{Short: 'I', Arg: getopt.Required, Name: "R", Help: "same as --replace=R"},
		{Short: 'i', Long: "replace", Key: 'I', Arg: getopt.Optional, Name: "R", Help: "replace R in INITIAL-ARGS with names read from standard input"},
		{Short: 'L', Long: "max-lines", Arg: getopt.Required, Name: "MAX-LINES", Help: "use at most MAX-LINES non-blank input lines per command line"},
		{Short: 'l', Key: 'L', Arg: getopt.Optional},
		{Short: 'n', Long: "max-args", Arg: getopt.Required, Name: "MAX-ARGS", Help: "use at most MAX-ARGS arguments per command line"},
		{Short: 'o', Long: "open-tty", Help: "(accepted)"},
		{Short: 'P', Long: "max-procs", Arg: getopt.Required, Name: "MAX-PROCS", Help: "run at most MAX-PROCS processes at a time"},
		{Short: 'p', Long: "interactive", Help: "prompt before running commands"},
		{Long: "process-slot-var", Key: keyProcessSlot, Arg: getopt.Required, Name: "VAR", Help: "set environment variable VAR in child processes"},
		{Short: 'r', Long: "no-run-if-empty", Help: "if there are no arguments, then do not run COMMAND"},
		{Short: 's', Long: "max-chars", Arg: getopt.Required, Name: "MAX-CHARS", Help: "limit length of command line to MAX-CHARS"},
		{Long: "show-limits", Key: keyShowLimits, Help: "(accepted)"},
		{Short: 't', Long: "verbose", Help: "print commands before executing them"},
		{Short: 'x', Long: "exit", Help: "exit if the size (see -s) is exceeded"},
	},
	Package: tool.Findutils, Order: getopt.POSIX,
}

// Limits of a command line, unless options set others.
const (
	xargsChars = 128 << 10
	xargsProcs = 64
)

type xargser struct {
	t                   *tool.T
	initial             []string
	replace             string
	replacing           bool
	lines, args, chars  int
	procs               int
	delim               int // -1: blanks, with quotes
	eof                 string
	noRun, trace, exact bool
	ask                 bool
	slotVar             string
	pending             []string
	size                int
	running             []*proc.Process
	status              int
	ran                 bool
}

// Xargs runs a command with arguments from its input.
func Xargs(t *tool.T) int {
	x := &xargser{t: t, chars: xargsChars, procs: 1, delim: -1}
	opts, args := t.Parse(&xargsSpec)
	file := "-"
	for _, o := range opts {
		if o.Key == 'a' {
			file = o.Arg
		} else {
			x.option(o)
		}
	}
	if x.initial = args; len(args) == 0 {
		x.initial = []string{"echo"}
	}
	if x.initialSize() > x.chars {
		t.Fatal(1, "cannot fit single argument within argument list size limit")
	}
	in, err := t.Open(file)
	if err != nil {
		t.Fatal(1, "Cannot open input file %s: %s", tool.Quote(file), tool.Strerror(err))
	}
	defer in.Close()
	x.read(in)
	if len(x.pending) > 0 || !x.ran && !x.noRun && !x.replacing {
		x.flush()
	}
	x.waitAll()
	return x.status
}

func (x *xargser) number(o getopt.Opt, least int) int {
	n, err := strconv.Atoi(o.Arg)
	if err != nil {
		x.t.UsageError(1, "invalid number \"%s\" for -%c option", o.Arg, o.Key)
	}
	if n < least {
		x.t.UsageError(1, "value %s for -%c option should be >= %d", o.Arg, o.Key, least)
	}
	return n
}

func (x *xargser) option(o getopt.Opt) {
	switch o.Key {
	case '0':
		x.delim = 0
	case 'd':
		x.delim = x.delimiter(o.Arg)
	case 'E':
		x.eof = o.Arg
	case 'I':
		x.replacing, x.replace = true, "{}"
		if o.Has {
			x.replace = o.Arg
		}
		x.args, x.lines, x.exact = 0, 0, true
	case 'L':
		x.lines = 1
		if o.Has {
			x.lines = x.number(o, 1)
		}
		x.args, x.replacing = 0, false
	case 'n':
		if n := x.number(o, 1); !(x.replacing && n == 1) {
			x.args, x.lines, x.replacing = n, 0, false
		}
	case 'P':
		if x.procs = x.number(o, 0); x.procs == 0 || x.procs > xargsProcs {
			x.procs = xargsProcs
		}
	case 'p':
		x.ask, x.trace = true, true
	case keyProcessSlot:
		x.slotVar = o.Arg
	case 'r':
		x.noRun = true
	case 's':
		x.chars = min(x.number(o, 1), xargsChars)
	case 't':
		x.trace = true
	case 'x':
		x.exact = true
	}
}

func (x *xargser) delimiter(s string) int {
	if len(s) == 1 {
		return int(s[0])
	}
	if strings.HasPrefix(s, `\`) {
		if len(s) == 2 {
			if b, ok := simpleEscape(s[1]); ok {
				return int(b)
			}
		}
		base, ds := 8, s[1:]
		if strings.HasPrefix(ds, "x") {
			base, ds = 16, ds[1:]
		}
		if v, err := strconv.ParseUint(ds, base, 8); err == nil {
			return int(v)
		}
		x.t.Fatal(1, "Invalid escape sequence %s in input delimiter specification.", s)
	}
	x.t.Fatal(1, "Invalid input delimiter specification %s: the delimiter must be either a single character or an escape sequence starting with \\.", s)
	return 0
}

// read splits the input into items and runs commands as they fill up.
func (x *xargser) read(in *tool.Input) {
	delim := byte('\n')
	if x.delim >= 0 {
		delim = byte(x.delim)
	}
	l := tool.NewLines(in, delim)
	lineCount := 0
	continued := ""
	for {
		b, ok := l.Next()
		if !ok {
			break
		}
		line := string(b)
		if x.delim >= 0 {
			x.add(line)
			if lineCount++; x.lines > 0 && lineCount >= x.lines {
				x.flush()
				lineCount = 0
			}
			continue
		}
		items, blankEnd := x.split(continued+line, l)
		continued = ""
		for i, item := range items {
			if x.eof != "" && item == x.eof {
				items = items[:i]
				ok = false
				break
			}
		}
		if x.replacing {
			if trimmed := strings.TrimLeft(line, " \t"); len(items) > 0 && trimmed != "" {
				x.add(strings.Join(items, " "))
			}
		} else {
			for _, item := range items {
				x.add(item)
			}
			if len(items) > 0 && !blankEnd {
				if lineCount++; x.lines > 0 && lineCount >= x.lines {
					x.flush()
					lineCount = 0
				}
			}
		}
		if !ok {
			return
		}
	}
	if l.Err != nil {
		x.t.Fatal(1, "read error: %s", tool.Strerror(l.Err))
	}
}

// split splits a line at blanks, with quotes and backslashes; with -I the line is one item. blankEnd says that it ends
// with a blank, which with -L continues it on the next line.
func (x *xargser) split(line string, l *tool.Lines) (items []string, blankEnd bool) {
	var b strings.Builder
	in := false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\'' || c == '"':
			end := strings.IndexByte(line[i+1:], c)
			if end < 0 {
				x.waitAll()
				kind := "single"
				if c == '"' {
					kind = "double"
				}
				x.t.Fatal(1, "unmatched %s quote; by default quotes are special to xargs unless you use the -0 option", kind)
			}
			b.WriteString(line[i+1 : i+1+end])
			i += end + 1
			in = true
		case c == '\\':
			if i+1 < len(line) {
				i++
				b.WriteByte(line[i])
			} else if next, ok := l.Next(); ok { // an escaped newline belongs to the item
				b.WriteByte('\n')
				line, i = string(next), -1
			}
			in = true
		case (c == ' ' || c == '\t') && x.replacing && in:
			b.WriteByte(c)
		case c == ' ' || c == '\t':
			if in {
				items = append(items, b.String())
				b.Reset()
			}
			in = false
		default:
			b.WriteByte(c)
			in = true
		}
	}
	if in {
		items = append(items, b.String())
	}
	return items, strings.HasSuffix(line, " ") || strings.HasSuffix(line, "\t")
}

func (x *xargser) initialSize() int {
	n := 0
	for _, a := range x.initial {
		n += len(a) + 1
	}
	return n
}

func (x *xargser) add(item string) {
	if x.replacing {
		args := make([]string, len(x.initial))
		for i, a := range x.initial {
			args[i] = a
			if i > 0 {
				args[i] = strings.ReplaceAll(a, x.replace, item)
			}
		}
		x.run(args)
		return
	}
	if base := x.initialSize(); base+len(item)+1 > x.chars {
		x.flushPending()
		x.waitAll()
		x.t.Fatal(1, "argument line too long")
	} else if len(x.pending) > 0 && base+x.size+len(item)+1 > x.chars {
		x.flush()
	}
	x.pending = append(x.pending, item)
	x.size += len(item) + 1
	if x.args > 0 && len(x.pending) >= x.args {
		x.flush()
	}
}

func (x *xargser) flushPending() {
	if len(x.pending) > 0 {
		x.flush()
	}
}

func (x *xargser) flush() {
	if len(x.pending) == 0 && x.ran {
		return
	}
	args := append(append([]string{}, x.initial...), x.pending...)
	x.pending, x.size = nil, 0
	x.run(args)
}

// run starts a command, waiting for a place if as many run as may.
func (x *xargser) run(args []string) {
	x.ran = true
	if x.trace {
		shown := make([]string, len(args))
		for i, a := range args {
			shown[i] = tool.QuoteShell(a)
		}
		end := "\n"
		if x.ask {
			end = "?..."
		}
		fmt.Fprintf(x.t.Stderr(), "%s%s", strings.Join(shown, " "), end)
		if x.ask {
			return // there is no terminal to answer from
		}
	}
	for len(x.running) >= x.procs {
		x.waitOne()
	}
	env := []string(nil)
	if x.slotVar != "" {
		env = append(without(x.t.Environ(), x.slotVar), x.slotVar+"="+strconv.Itoa(len(x.running)))
	}
	files := map[int]vfs.File{}
	if null, err := x.t.Process.Open("/dev/null", syscall.O_RDONLY, 0); err == nil {
		files[0] = null
		defer null.Close()
	}
	child, err := x.t.Spawn(proc.Spawn{Args: args, Env: env, Files: files})
	if err != nil {
		x.waitAll()
		code := 126
		if errors.Is(err, syscall.ENOENT) {
			code = 127
		}
		x.t.Fatal(code, "%s: %s", args[0], tool.Strerror(err))
	}
	x.running = append(x.running, child)
	if x.procs == 1 {
		x.waitOne()
	}
}

func (x *xargser) waitAll() {
	for len(x.running) > 0 {
		x.waitOne()
	}
}

// waitOne waits for one of the commands that run.
func (x *xargser) waitOne() {
	child, err := x.t.WaitAny(x.running)
	if err != nil {
		x.t.Check()
		x.running = nil
		return
	}
	name := ""
	for i, c := range x.running {
		if c == child {
			x.running = append(x.running[:i:i], x.running[i+1:]...)
			break
		}
	}
	if a := child.Args(); len(a) > 0 {
		name = a[0]
	}
	code, _ := x.t.Wait(child) // it has ended; this takes it off the list of processes
	switch {
	case code == 0:
	case code == 255:
		x.waitAll()
		x.t.Fatal(124, "%s: exited with status 255; aborting", name)
	case child.Signaled() > 0:
		x.waitAll()
		x.t.Fatal(125, "%s: terminated by signal %d", name, child.Signaled())
	default:
		x.status = 123
	}
}
