package shell

import (
	"bytes"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// textReader parses a script line by line, as bash does: what a line changes, such as aliases, counts for the next.
type textReader struct {
	name    string
	text    string // what is left
	input   bool   // more lines come from descriptor 0
	base    int    // lines before text
	sh      *Shell
	checked bool // how deep it nests is known
	eval    bool // the argument of eval
	eof     bool
	bad     bool // ended by a syntax error
	main    bool // the shell's own script or input, whose lines the history keeps
	prior   int  // lines that were parsed last

	parsed *unit // what was parsed last
	asking
	quit bool // the line was given up

	part []byte // the beginning of a line that is being read
	fed  string // the lines of a command that isn't complete, while more are read: a copy begins with them again
}

// unit is a piece of source that was parsed at once. It never changes.
type unit struct {
	text  string
	stmts []*syntax.Stmt
	word  *syntax.Word // instead of stmts: text that was read as a word,
	mode  wordMode     // in this mode
	flags uint8        // what the text's meaning depends on
	texts sync.Map     // of statements in it that have been jobs: *syntax.Stmt to string. All that does change
}

func newTextReader(text string, base int) *textReader {
	return &textReader{text: text, base: base}
}

func newScript(text string) *textReader { return &textReader{text: text, main: true} }

func (r *textReader) atEnd() bool { return !r.input && r.text == "" }

// clone copies a reader; one that waits for a line begins the unit again.
func (r *textReader) clone() *textReader {
	c := *r
	c.sh = nil
	if r.ed != nil {
		c.ed = r.ed.Clone()
	}
	c.text, c.fed, c.part = r.fed+r.text+string(r.part), "", nil
	return &c
}

// Parsing recurses, so what nests too deep is refused before: each level takes about a kilobyte of Go's stack.
const (
	maxNesting    = 2000
	maxScript     = 64 << 20
	freeOfNesting = 8 << 10
)

// tooDeep estimates from above how deep a text nests.
func tooDeep(s string) bool {
	if len(s) < freeOfNesting {
		return false
	}
	depth, deepest := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '[':
			// Only subscripts nest, not the brackets of a terminal's colours.
			if i == 0 || !isAlnum(s[i-1]) || strings.HasSuffix(s[:i], "33") || strings.HasSuffix(s[:i], `\e`) || strings.HasSuffix(s[:i], "1b") {
				continue
			}
			depth++
			deepest = max(deepest, depth)
		case '(', '{':
			depth++
			deepest = max(deepest, depth)
		case ')', '}', ']':
			depth = max(0, depth-1)
		case '\n':
			if strings.HasPrefix(s[i+1:], "}") {
				depth = 0
			}
		}
	}
	words := strings.Count(s, "if ") + strings.Count(s, "while ") + strings.Count(s, "until ") + strings.Count(s, "for ") + strings.Count(s, "case ") -
		strings.Count(s, "fi") - strings.Count(s, "done") - strings.Count(s, "esac")
	return deepest > maxNesting || words > maxNesting || strings.Count(s, "! ") > maxNesting || strings.Count(s, "`") > maxNesting || strings.Count(s, "time ") > maxNesting
}

// next returns the statements of the next line, nil at the end. What a line takes more lines for belongs to it.
func (r *textReader) next(sh *Shell) []*syntax.Stmt {
	r.sh = sh
	if !r.input && !r.checked {
		r.checked = true
		if len(r.text) > maxScript || tooDeep(r.text) {
			sh.errorf("syntax error: too deeply nested")
			sh.status = 2
			r.text, r.bad = "", true
			return nil
		}
	}
	for {
		r.base += r.prior
		r.prior = 0
		stmts, more := r.unit()
		if len(stmts) > 0 {
			return stmts
		}
		if !more {
			return nil
		}
	}
}

// line takes the next line, with its newline.
func (r *textReader) line() string {
	for r.input && !r.eof && !r.quit && strings.IndexByte(r.text, '\n') < 0 {
		r.readLine()
	}
	i := strings.IndexByte(r.text, '\n')
	if i < 0 {
		i = len(r.text) - 1
	}
	if r.quit {
		return ""
	}
	s := r.text[:i+1]
	r.text = r.text[i+1:]
	return s
}

// readLine adds a line to the text. It is read byte by byte, since what follows it belongs to the commands of the script.
func (r *textReader) readLine() {
	sh := r.sh
	in, err := sh.p.File(0)
	if err != nil {
		r.eof = true
		return
	}
	if sh.opts.interactive {
		if r.ask(); r.ed != nil {
			r.readEdited()
			r.lineRead()
			return
		}
	}
	one := make([]byte, 1)
	read := func() error {
		n, err := in.Read(one)
		r.part = append(r.part, one[:n]...)
		return err
	}
	for !r.eof && !bytes.HasSuffix(r.part, []byte{'\n'}) {
		n := len(r.part)
		switch err := sh.rest(read); {
		case len(r.part) > n && n < maxScript:
		case err != nil && errIntr(err) && sh.p.Killed() == 0:
			if sh.opts.interactive {
				if r.interrupted(); r.quit {
					r.lineRead()
					return
				}
			} else {
				sh.takeSignals()
			}
		default:
			r.eof = true
		}
	}
	if sh.opts.interactive && !sh.p.IsTerminal(0) && len(r.part) > 0 {
		sh.say(r.part) // as readline does where nobody echoes
	}
	r.lineRead()
}

// lineRead adds the line that was read to the text; an interactive shell replaces its history designators.
func (r *textReader) lineRead() {
	sh := r.sh
	line := r.text + string(r.part)
	r.part, r.asked = r.part[:0], false
	if len(line) > 0 {
		r.eofs = 0
	}
	if r.quit {
		r.text = ""
		return
	}
	if sh.opts.histexpand && sh.opts.history && r.main && line != "" {
		out, ok := r.bang(line)
		if r.prior = 0; !ok {
			r.quit = true
			out = ""
		}
		line = out
	}
	r.text = line
}

// unit parses lines up to the end of the statements that begin on the first.
func (r *textReader) unit() (stmts []*syntax.Stmt, more bool) {
	defer func() { r.fed = "" }()
	text := r.text
	if r.input {
		if text = r.line(); r.quit {
			return nil, r.again()
		}
		if text == "" {
			if r.sh.opts.interactive && !r.atEOF() {
				return nil, true
			}
			return nil, false
		}
	} else if text == "" {
		return nil, false
	}
	var open []bool // of each line but the last: it ends within quotes or a here-document
	if !r.input && r.main && r.sh.opts.history {
		var ok bool
		if text, ok = r.bang(text); !ok {
			return nil, true
		}
	}
	for {
		if r.input && !r.eof && continued(text) {
			r.fed = text
			line := r.line()
			if r.quit {
				return nil, r.again()
			}
			if line != "" {
				text += line
				open = append(open, false)
				continue
			}
		}
		rd := r.sh.newReader(text)
		stmts = rd.lineOf()
		if r.input && !r.eof && (rd.err != nil && rd.err.incomplete || len(rd.warnings) > 0) && len(text) < maxScript {
			r.fed = text
			more := r.more(rd)
			if r.quit {
				return nil, r.again()
			}
			if more != "" {
				text += more
				for range strings.Count(more, "\n") {
					open = append(open, rd.open())
				}
				continue
			}
		}
		rest := rd.src[rd.i:] // of an alias's value, too
		used := text[:max(0, len(text)-len(rest))]
		if !r.input {
			r.text = rest
		} else {
			r.text = rest + r.text
		}
		r.prior = strings.Count(used, "\n")
		if !r.input && strings.Trim(rest, " \t\n") == "" {
			r.text = "" // this is the last command
		}
		r.echo(used)
		r.keep(used, open)
		if rd.err != nil {
			return nil, r.syntaxError(rd)
		}
		r.warn(rd)
		r.parsed = r.sh.newUnit(rd.src[:rd.i], stmts)
		return stmts, true
	}
}

// again gives up what was read.
func (r *textReader) again() bool {
	r.quit, r.fed, r.text = false, "", ""
	return true
}

// open tells whether the text that was read ends within quotes or before a here-document.
func (r *reader) open() bool {
	return len(r.warnings) > 0 || r.err != nil && r.err.incomplete && strings.Contains(r.err.text, "matching") && !strings.HasSuffix(r.err.text, ")'")
}

// keep adds the lines of a command to the history.
func (r *textReader) keep(used string, open []bool) {
	sh := r.sh
	if !r.main || !sh.opts.history {
		return
	}
	lines := strings.SplitAfter(used, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
		lines = lines[1:]
		open = open[min(1, len(open)):]
	}
	for len(lines) > 1 && strings.HasPrefix(strings.TrimLeft(lines[0], " \t"), "#") {
		sh.remember(strings.TrimSuffix(lines[0], "\n"))
		lines = lines[1:]
		open = open[min(1, len(open)):]
	}
	if len(lines) == 0 {
		return
	}
	if !r.input && len(lines) > 1 {
		open = make([]bool, len(lines)-1)
		head := ""
		for i := range open {
			if head += lines[i]; i >= 100 {
				open[i] = true
				continue
			}
			rd := sh.newReader(head)
			rd.lineOf()
			open[i] = rd.open()
		}
	}
	if !sh.shopts.get("cmdhist") {
		for _, l := range lines {
			sh.remember(strings.TrimSuffix(l, "\n"))
		}
		return
	}
	sh.remember(sh.joinHistory(lines, open, strings.Contains(used, "<<")))
}

// bang replaces the history designators of the first line; false means that the line isn't run.
func (r *textReader) bang(text string) (string, bool) {
	sh := r.sh
	if !sh.opts.histexpand || strings.IndexAny(text, "!^") < 0 && sh.str("histchars") == "" {
		return text, true
	}
	line, rest, nl := strings.Cut(text, "\n")
	end := ""
	if nl {
		end = "\n"
	}
	sh.histOnly = false
	out, changed, fail := sh.expandHistory(line)
	if fail != "" {
		sh.line = r.base + 1
		sh.errorf("%s", fail)
		sh.status = 1
		r.text = rest
		r.prior = 1
		return "", false
	}
	if !changed {
		return text, true
	}
	sh.stderr(out + "\n")
	if sh.histOnly {
		sh.remember(out)
		r.text = rest
		r.prior = 1
		return "", false
	}
	return out + end + rest, true
}

// more reads the lines that an incomplete command needs at least.
func (r *textReader) more(rd *reader) string {
	if len(rd.warnings) == 0 {
		return r.line()
	}
	var b strings.Builder
	for b.Len() < maxScript {
		line := r.line()
		b.WriteString(line)
		r.fed += line
		if line == "" || strings.HasSuffix(rd.warnings[0], "`"+strings.TrimLeft(strings.TrimSuffix(line, "\n"), "\t")+"')") {
			break
		}
	}
	return b.String()
}

// echo is set -v.
func (r *textReader) echo(text string) {
	if r.sh.opts.verbose {
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		r.sh.stderr(text)
	}
}

func (r *textReader) warn(rd *reader) {
	for _, w := range rd.warnings {
		r.sh.line = r.base + max(1, r.prior)
		r.sh.stderr(r.sh.prefix() + "warning: " + w + "\n")
	}
}

// syntaxError reports an error in bash's words. It ends the text, but for errors that end only their line, where it returns
// true.
func (r *textReader) syntaxError(rd *reader) bool {
	sh, err := r.sh, rd.err
	sh.line = r.base + err.line
	name := sh.prefix()
	switch {
	case r.eval:
		name = strings.Replace(name, ": line", ": eval: line", 1)
	case sh.opts.command && len(sh.calls) == 0 && r.name == "":
		name = strings.Replace(name, ": line", ": -c: line", 1)
	}
	sh.stderr(name + err.text + "\n")
	if lines := strings.Split(rd.src, "\n"); !sh.opts.interactive && err.near && err.line >= 1 && err.line <= len(lines) {
		sh.stderr(name + "`" + lines[err.line-1] + "'\n")
	}
	if sh.opts.interactive && r.input && (!err.incomplete || r.eof && sh.p.IsTerminal(0)) {
		sh.status = 2
		r.eof = false
		return true
	}
	if err.quiet { // bash takes this for the end of the text
		if r.text, r.input = "", false; r.eval {
			sh.status = 2
		}
		r.eof, r.bad = true, true
		return false
	}
	if err.soft && !err.incomplete && !sh.opts.posix {
		sh.status = 1
		// What follows on the line is lost with it.
		used := 0
		for i, n := 0, 0; i < len(rd.src) && n < err.line; i++ {
			if used = i + 1; rd.src[i] == '\n' {
				n++
			}
		}
		if !r.input {
			r.text = rd.src[min(used, len(rd.src)):]
		}
		r.prior = err.line
		return true
	}
	r.text, r.input = "", false
	r.eof, r.bad = true, true
	sh.status = 2
	if sh.opts.posix && !sh.opts.interactive {
		sh.exitNow(2)
	}
	return false
}
