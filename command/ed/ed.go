// Package ed is ed, the line editor, as POSIX has it with GNU's additions.
//
// The buffer is a list of lines without their newlines. A command has up to two addresses; what it changes can be undone
// as a whole, also all that a global command did. Mistakes print "?", and with H in force what was wrong.
package ed

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/posixre"
	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// maxBuffer bounds the text in the buffer.
const maxBuffer = 256 << 20

// line is one of the buffer; marks point to it.
type line struct{ text string }

// state is what undo brings back.
type state struct {
	lines   []*line
	current int
}

// editor is a running ed.
type editor struct {
	t                           *tool.T
	lines                       []*line
	current                     int
	undo                        *state
	marks                       map[byte]*line
	cut                         []*line
	file, prompt, message       string
	last                        *posixre.Regexp
	replacement                 string
	flags                       string // of the last substitution
	substituted                 bool
	quiet, script, loose        bool
	extended, verbose, prompted bool
	restricted, modified        bool
	warned                      bool // a command that would lose changes was given, and refused
	global                      bool
	in                          *tool.Lines
	pushed                      []string // lines of a global command's list
	status                      int
	size                        int
	command                     string
	shell                       string
	scroll                      int
}

// failure is a mistake; its text is what h explains.
type failure string

func (e *editor) fail(text string) { panic(failure(text)) }

var edOptions = []getopt.Option{
	{Short: 'E', Long: "extended-regexp", Help: "use extended regular expressions"}, {Short: 'G', Long: "traditional", Help: "run in compatibility mode"}, {Short: 'l', Long: "loose-exit-status", Help: "exit with 0 status even if a command fails"},
	{Short: 'p', Long: "prompt", Arg: getopt.Required, Name: "STRING", Help: "use STRING as an interactive prompt"}, {Short: 'q', Long: "quiet", Help: "suppress diagnostics written to stderr"}, {Long: "silent", Key: 'q'},
	{Short: 'r', Long: "restricted", Help: "run in restricted mode"}, {Short: 's', Long: "script", Help: "suppress byte counts and '!' prompt"}, {Short: 'v', Long: "verbose", Help: "be verbose; equivalent to the 'H' command"}, {Long: "strip-trailing-cr", Key: 'c', Help: "strip carriage returns at end of text lines"}, {Short: 'V'},
}

// Ed edits a file line by line.
func Ed(t *tool.T) int {
	e := &editor{t: t, marks: map[byte]*line{}, in: tool.NewLines(t.Stdin(), '\n'), scroll: 22}
	spec := tool.Spec{Usage: []string{"[options] [file]"}, About: "A line-oriented text editor.", Options: edOptions, Package: "GNU ed) 1.19"}
	args := t.Args()[1:]
	for i, a := range args { // a lone "-" is -s
		if a == "-" {
			args = append(append([]string(nil), args[:i]...), args[i+1:]...)
			e.script = true
			break
		}
	}
	opts, files := t.ParseArgs(&spec, args)
	for _, o := range opts {
		switch o.Key {
		case 'E':
			e.extended = true
		case 'l':
			e.loose = true
		case 'p':
			e.prompt, e.prompted = o.Arg, true
		case 'q':
			e.quiet = true
		case 'r':
			e.restricted = true
		case 's':
			e.script = true
		case 'v':
			e.verbose = true
		case 'V':
			t.Version(&spec)
			return 0
		}
	}
	if e.prompt == "" {
		e.prompt = "*"
	}
	if len(files) > 0 {
		e.open(files[0])
	}
	e.loop()
	return e.status
}

// open reads the file that the command line names.
func (e *editor) open(name string) {
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(failure)
			if !ok {
				panic(r)
			}
			e.message = string(f)
		}
	}()
	if !strings.HasPrefix(name, "!") {
		e.file = name
	}
	e.read(name, 0)
	e.modified, e.undo = false, nil
}

// loop reads and runs commands up to the end or q.
func (e *editor) loop() {
	for {
		if e.prompted {
			e.t.Out.WriteString(e.prompt)
		}
		text, ok := e.next()
		if !ok {
			if e.modified && !e.warned {
				e.warned = true
				e.complain("Warning: buffer modified")
				e.status = 2
				if e.t.IsTerminal(0) {
					continue
				}
			}
			return
		}
		if e.run(text) {
			return
		}
	}
}

// next is the next line of commands or of text.
func (e *editor) next() (string, bool) {
	if len(e.pushed) > 0 {
		text := e.pushed[0]
		e.pushed = e.pushed[1:]
		return text, true
	}
	if e.global {
		return "", false
	}
	b, ok := e.in.Next()
	return string(b), ok
}

// run runs a command line, and reports a mistake in it. It returns whether to quit.
func (e *editor) run(text string) (quit bool) {
	warned := e.warned
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(failure)
			if !ok {
				panic(r)
			}
			e.complain(f)
			e.pushed, e.global = nil, false
		}
		if e.warned == warned {
			e.warned = false
		}
	}()
	e.t.Check()
	return e.exec(text)
}

func (e *editor) complain(f failure) {
	e.message = string(f)
	if e.status = 1; e.loose {
		e.status = 0
	}
	e.t.Out.WriteString("?\n")
	if e.verbose {
		e.t.Out.WriteString(e.message + "\n")
	}
}

// note says on standard error what the system said.
func (e *editor) note(format string, args ...any) {
	if !e.quiet {
		e.t.Out.Flush()
		fmt.Fprintf(e.t.Stderr(), format+"\n", args...)
	}
}

// save keeps the buffer for undo, once for a command or all of a global one.
func (e *editor) save() {
	if e.global && e.undo != nil {
		return
	}
	e.undo = &state{append([]*line(nil), e.lines...), e.current}
}

// insert puts lines after line n.
func (e *editor) insert(n int, list []*line) {
	if len(list) == 0 {
		return
	}
	for _, l := range list {
		e.size += len(l.text) + 32
	}
	if e.size > maxBuffer {
		e.fail("Out of memory")
	}
	out := make([]*line, 0, len(e.lines)+len(list))
	out = append(append(append(out, e.lines[:n]...), list...), e.lines[n:]...)
	e.lines, e.current, e.modified = out, n+len(list), true
}

// remove takes lines a to b out.
func (e *editor) remove(a, b int) []*line {
	gone := append([]*line(nil), e.lines[a-1:b]...)
	for _, l := range gone {
		e.size -= len(l.text) + 32
	}
	out := make([]*line, 0, len(e.lines))
	e.lines = append(append(out, e.lines[:a-1]...), e.lines[b:]...)
	e.modified = true
	return gone
}

// text reads lines up to a full stop.
func (e *editor) text() (list []*line) {
	for {
		s, ok := e.next()
		if !ok || s == "." {
			return list
		}
		list = append(list, &line{s})
	}
}

// show prints lines a to b in the ways that the letters say.
func (e *editor) show(a, b int, how string) {
	if a < 1 || b > len(e.lines) {
		e.fail("Invalid address")
	}
	for n := a; n <= b; n++ {
		if e.t.Step(1) != nil {
			e.t.Check()
		}
		text := e.lines[n-1].text
		if strings.Contains(how, "l") {
			text = listed(text)
		}
		if strings.Contains(how, "n") {
			text = strconv.Itoa(n) + "\t" + text
		}
		e.t.Out.WriteString(text + "\n")
	}
	e.current = b
}

// listed shows what can't be seen, and breaks long lines.
func listed(s string) string {
	var b strings.Builder
	col := 0
	put := func(piece string) {
		if col+len(piece) > 71 {
			b.WriteString("\\\n")
			col = 0
		}
		b.WriteString(piece)
		col += len(piece)
	}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		c := s[i]
		switch at := strings.IndexByte("\a\b\f\n\r\t\v\\$", c); {
		case at >= 0:
			put(`\` + `abfnrtv\$`[at:at+1])
		case c >= 32 && c < 127:
			put(string(rune(c)))
		case r == utf8.RuneError || r < 128:
			put(fmt.Sprintf("\\%03o", c))
		default:
			for _, x := range []byte(s[i : i+n]) {
				put(fmt.Sprintf("\\%03o", x))
			}
		}
		i += n
	}
	return b.String() + "$"
}

// read puts a file, or a command's output, after line n.
func (e *editor) read(name string, n int) {
	var text []byte
	var err error
	if cmd, ok := strings.CutPrefix(name, "!"); ok {
		e.allowShell()
		var out []byte
		out, _, err = e.t.Output(maxBuffer, "sh", "-c", cmd)
		text = out
	} else if text, err = e.t.ReadFile(e.path(name), maxBuffer); err != nil {
		e.note("%s: %s", name, tool.Strerror(err))
		e.fail("Cannot open input file")
	}
	if err != nil {
		e.fail("Cannot read input file")
	}
	var list []*line
	if len(text) > 0 {
		body := strings.TrimSuffix(string(text), "\n")
		if body == string(text) {
			if !e.quiet {
				e.t.Out.WriteString("Newline appended\n")
			}
		}
		for _, l := range strings.Split(body, "\n") {
			list = append(list, &line{l})
		}
	}
	count := len(text)
	if len(text) > 0 && text[len(text)-1] != '\n' {
		count++
	}
	e.insert(n, list)
	if !e.script {
		fmt.Fprintln(e.t.Out, count)
	}
}

func (e *editor) allowShell() {
	if e.restricted {
		e.fail("Shell access restricted")
	}
}

func (e *editor) path(name string) string {
	if e.restricted && (strings.Contains(name, "/") || name == "..") {
		e.fail("Directory access restricted")
	}
	return name
}

// write writes lines a to b to a file or a command.
func (e *editor) write(name string, a, b int, add bool) {
	var out strings.Builder
	if len(e.lines) > 0 {
		for _, l := range e.lines[max(a, 1)-1 : b] {
			out.WriteString(l.text + "\n")
		}
	}
	if cmd, ok := strings.CutPrefix(name, "!"); ok {
		e.allowShell()
		e.pipe(cmd, out.String())
	} else {
		open := e.t.Create
		if add {
			open = e.t.Append
		}
		f, err := open(e.path(name))
		if err == nil {
			_, err = io.WriteString(f, out.String())
			if cerr := f.Close(); err == nil {
				err = cerr
			}
		}
		if err != nil {
			e.note("%s: %s", name, tool.Strerror(err))
			e.fail("Cannot open output file")
		}
		if a <= 1 && b == len(e.lines) {
			e.modified = false
		}
	}
	if !e.script {
		fmt.Fprintln(e.t.Out, out.Len())
	}
}

// pipe gives a command text to read.
func (e *editor) pipe(cmd, text string) {
	r, w, err := e.t.Pipe()
	if err != nil {
		e.fail("Cannot open output file")
	}
	e.t.Out.Flush()
	child, err := e.t.Spawn(proc.Spawn{Args: []string{"sh", "-c", cmd}, Files: map[int]vfs.File{0: r}})
	r.Close()
	if err != nil {
		w.Close()
		e.fail("Cannot open output file")
	}
	io.WriteString(w, text)
	w.Close()
	e.t.WaitQuiet(child)
}

// compile makes a regular expression; an empty one is the last one.
func (e *editor) compile(pattern string, fold bool) *posixre.Regexp {
	if pattern == "" {
		if e.last == nil {
			e.fail("No previous pattern")
		}
		return e.last
	}
	o := posixre.Options{Fold: fold}
	if e.extended {
		o.Flavor = posixre.Extended
	}
	re, err := posixre.Compile(pattern, o)
	if err != nil {
		e.fail(err.Error())
	}
	e.last = re
	return re
}

// match reports whether a line matches.
func (e *editor) match(re *posixre.Regexp, n int) bool {
	if e.t.Step(1) != nil {
		e.t.Check()
	}
	ok, err := re.Match([]byte(e.lines[n-1].text))
	return ok && err == nil
}
