package shell

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// textReader parses a script. Where it can it parses all of it at once; where aliases or an error ask for it, line by line.
type textReader struct {
	name  string
	text  string // what is left
	input bool   // more lines come from descriptor 0
	base  int    // lines before text
	sh    *Shell
	whole bool // the text is tried as a whole first
	eof   bool
	bad   bool // ended by a syntax error
	prior int  // lines that were parsed last

	parsed *unit  // what was parsed last
	part   []byte // the beginning of a line that is being read
	fed    string // the lines that the parser has, while it reads on: a copy begins with them again
	shown  int    // bytes of text that were fed before the capture
	alias  bool   // text is what aliases have made of it: no place to be captured at
}

// unit is a piece of source that was parsed at once. It never changes.
type unit struct {
	text  string
	stmts []*syntax.Stmt
}

func newTextReader(text string, base int) *textReader {
	return &textReader{text: text, base: base, whole: true}
}

func (sh *Shell) newParser() *syntax.Parser {
	if sh.parser == nil {
		// POSIX mode changes meanings, not the grammar, as in bash.
		sh.parser = syntax.NewParser(syntax.Variant(syntax.LangBash))
	}
	return sh.parser
}

func (r *textReader) atEnd() bool { return !r.input && r.text == "" }

// clone copies a reader; one that waits for a line begins the unit again.
func (r *textReader) clone() *textReader {
	c := *r
	c.sh = nil
	c.text, c.fed, c.part, c.shown = r.fed+r.text+string(r.part), "", nil, len(r.fed)
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

// next returns the statements of the next unit, nil at the end.
func (r *textReader) next(sh *Shell) []*syntax.Stmt {
	r.sh = sh
	r.base += r.prior
	r.prior = 0
	if r.whole {
		r.whole = false
		if stmts, ok := r.all(); ok {
			return stmts
		}
	}
	for {
		stmts, more := r.unit()
		if len(stmts) > 0 {
			return stmts
		}
		if !more {
			return nil
		}
		r.base += r.prior
		r.prior = 0
	}
}

// all parses the whole text, unless aliases may change its meaning.
func (r *textReader) all() ([]*syntax.Stmt, bool) {
	sh := r.sh
	if sh.opts.verbose || sh.shopts.get("expand_aliases") && (len(sh.aliases) > 0 || strings.Contains(r.text, "alias")) || strings.Contains(r.text, "expand_aliases") {
		return nil, false
	}
	if len(r.text) > maxScript || tooDeep(r.text) {
		sh.errorf("syntax error: too deeply nested")
		sh.status = 2
		r.text = ""
		return nil, true
	}
	f, err := sh.parseText(r.text)
	if err != nil {
		return nil, false
	}
	r.parsed = &unit{r.text, f.Stmts}
	r.prior = strings.Count(r.text, "\n")
	r.text = ""
	if len(f.Stmts) == 0 {
		return nil, true
	}
	return f.Stmts, true
}

// lineReader feeds a parser one line at a time and keeps what it has fed.
type lineReader struct {
	r    *textReader
	fed  strings.Builder
	line string
}

func (l *lineReader) add(line string) {
	l.fed.WriteString(line)
	l.r.fed = l.fed.String()
}

func (l *lineReader) Read(b []byte) (int, error) {
	if l.line == "" {
		l.line = l.r.line()
		if l.line == "" {
			return 0, io.EOF
		}
		l.add(l.line)
		if l.r.sh.opts.verbose && l.r.shown < len(l.r.fed) {
			l.r.sh.stderr(l.line)
		}
	}
	n := copy(b, l.line)
	l.line = l.line[n:]
	return n, nil
}

// line takes the next line, with its newline.
func (r *textReader) line() string {
	for r.input && !r.eof && strings.IndexByte(r.text, '\n') < 0 {
		r.readLine()
	}
	i := strings.IndexByte(r.text, '\n')
	if i < 0 {
		i = len(r.text) - 1
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
	if r.alias {
		sh.touch()
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
			sh.takeSignals()
		default:
			r.eof = true
		}
	}
	r.text += string(r.part)
	r.part = r.part[:0]
}

// unit parses lines up to the end of the statements that begin on the first.
func (r *textReader) unit() (stmts []*syntax.Stmt, more bool) {
	lr := &lineReader{r: r}
	defer func() { r.fed, r.shown, r.alias = "", 0, false }()
	stmts, err := r.parse(lr)
	fed := lr.fed.String()
	if fed == "" {
		return nil, false
	}
	r.prior = strings.Count(fed, "\n")
	if err == nil && r.sh.shopts.get("expand_aliases") && len(r.sh.aliases) > 0 {
		if changed := r.sh.expandAliases(fed, stmts); changed != fed {
			// What follows an alias that ends in a keyword may take more lines.
			if !strings.HasSuffix(changed, "\n") && strings.HasSuffix(fed, "\n") {
				changed += "\n"
			}
			rest := r.text
			r.text, r.alias = changed+rest, true
			lr = &lineReader{r: r}
			stmts, err = r.parse(lr)
			r.prior = max(r.prior, strings.Count(lr.fed.String(), "\n")-strings.Count(changed, "\n")+r.prior)
			fed = lr.fed.String()
		}
	} else if err != nil && r.sh.shopts.get("expand_aliases") && len(r.sh.aliases) > 0 {
		if changed := r.sh.aliasFirst(fed); changed != fed {
			rest := r.text
			r.text, r.alias = changed+rest, true
			lr = &lineReader{r: r}
			stmts, err = r.parse(lr)
			fed = lr.fed.String()
		}
	}
	if err != nil {
		r.syntaxError(err, fed)
		return nil, false
	}
	r.parsed = &unit{lr.fed.String(), stmts}
	return stmts, true
}

// parse parses one unit from lines.
func (r *textReader) parse(lr *lineReader) (stmts []*syntax.Stmt, err error) {
	if tooDeep(r.text) {
		return nil, errors.New("too deeply nested")
	}
	p := r.sh.newParser()
	defer func() {
		// The parser's iterator goes on once more after it was told to stop, if it then meets an error: Go panics, but
		// what was parsed is complete.
		if e := recover(); e != nil {
			if _, ok := e.(runtime.Error); !ok {
				panic(e)
			}
			r.sh.parser = nil
			if stmts == nil && err == nil {
				err = errors.New("syntax error")
			}
		}
	}()
	for list, perr := range p.InteractiveSeq(lr) {
		if perr != nil {
			return r.mend(lr, perr)
		}
		if p.Incomplete() {
			continue
		}
		stmts = append([]*syntax.Stmt(nil), list...)
		return stmts, nil
	}
	// The text ended without a newline, or in the middle of something.
	f, err := r.sh.parseText(lr.fed.String())
	if err != nil {
		return nil, err
	}
	return f.Stmts, nil
}

// syntaxError reports an error in bash's words, as far as they can be told, and ends the text.
func (r *textReader) syntaxError(err error, fed string) {
	sh := r.sh
	r.text, r.input = "", false
	r.eof, r.bad = true, true
	sh.status = 2
	line, text := 1, err.Error()
	var pe syntax.ParseError
	if errors.As(err, &pe) {
		line, text = int(pe.Pos.Line()), pe.Text
		if pe.Incomplete {
			text = "syntax error: unexpected end of file"
			if strings.Contains(pe.Text, "without matching") || strings.Contains(pe.Text, "quote") {
				text = "unexpected EOF while looking for matching `" + closing(pe.Text) + "'"
			}
		} else {
			text = "syntax error near unexpected token `" + r.tokenAt(fed, int(pe.Pos.Offset())) + "'"
		}
	}
	var le syntax.LangError
	if errors.As(err, &le) {
		line, text = int(le.Pos.Line()), "syntax error: "+le.Feature
	}
	sh.line = r.base + line
	name := sh.prefix()
	if sh.opts.command && len(sh.calls) == 0 && r.name == "" {
		name = strings.Replace(name, ": line", ": -c: line", 1)
	}
	lines := strings.Split(fed, "\n")
	sh.stderr(name + text + "\n")
	if line >= 1 && line <= len(lines) && strings.Contains(text, "near") {
		sh.stderr(name + "`" + lines[line-1] + "'\n")
	}
	if sh.opts.posix && !sh.opts.interactive {
		sh.exitNow(2)
	}
}

func closing(text string) string {
	for _, c := range []string{"\"", "'", "`", "}", ")"} {
		if strings.Contains(text, "`"+c) || strings.Contains(text, c+"`") {
			return c
		}
	}
	switch {
	case strings.Contains(text, "{"):
		return "}"
	case strings.Contains(text, "("):
		return ")"
	}
	return "'"
}

func (r *textReader) tokenAt(s string, off int) string {
	if off >= len(s) || s[off] == '\n' {
		return "newline"
	}
	s = s[off:]
	for _, op := range []string{";;&", "&&", "||", ";;", ";&", "|&", "<<", ">>", "<&", ">&", "((", "))"} {
		if strings.HasPrefix(s, op) {
			return op
		}
	}
	if strings.IndexByte("();&|<>", s[0]) >= 0 {
		return s[:1]
	}
	if i := strings.IndexAny(s, " \t\n();&|<>"); i > 0 {
		return s[:i]
	}
	return s
}

// expandAliases replaces the first words of commands that are aliases, in a unit's text.
func (sh *Shell) expandAliases(text string, stmts []*syntax.Stmt) string {
	type edit struct {
		from, to int
		with     string
	}
	var edits []edit
	add := func(w *syntax.Word) bool {
		name := w.Lit()
		value, ok := sh.aliases[name]
		if name == "" || !ok {
			return false
		}
		from, to := int(w.Pos().Offset()), int(w.End().Offset())
		if from >= to || to > len(text) || text[from:to] != name {
			return false
		}
		edits = append(edits, edit{from, to, sh.aliasValue(value, name, 0)})
		return strings.HasSuffix(value, " ") || strings.HasSuffix(value, "\t")
	}
	for _, s := range stmts {
		syntax.Walk(s, func(n syntax.Node) bool {
			if c, ok := n.(*syntax.CallExpr); ok {
				for _, w := range c.Args {
					if !add(w) {
						break
					}
				}
			}
			if d, ok := n.(*syntax.DeclClause); ok {
				if value, isAlias := sh.aliases[d.Variant.Value]; isAlias {
					edits = append(edits, edit{int(d.Variant.Pos().Offset()), int(d.Variant.End().Offset()), sh.aliasValue(value, d.Variant.Value, 0)})
				}
			}
			return true
		})
	}
	if len(edits) == 0 {
		return text
	}
	var b strings.Builder
	at := 0
	for _, e := range edits {
		if e.from < at {
			continue
		}
		b.WriteString(text[at:e.from])
		b.WriteString(e.with)
		at = e.to
	}
	b.WriteString(text[at:])
	return b.String()
}

// aliasValue expands aliases at the beginning of an alias's value, but not the alias itself.
func (sh *Shell) aliasValue(value, name string, depth int) string {
	word := value
	if i := strings.IndexAny(value, " \t\n;&|()<>"); i >= 0 {
		word = value[:i]
	}
	next, ok := sh.aliases[word]
	if !ok || word == name || depth > 16 {
		return value
	}
	return sh.aliasValue(next, name, depth+1) + value[len(word):]
}

// aliasFirst expands the very first word of text that can't be parsed as it stands.
func (sh *Shell) aliasFirst(text string) string {
	lead := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
	rest := text[len(lead):]
	word := rest
	if i := strings.IndexAny(rest, " \t\n;&|()<>"); i >= 0 {
		word = rest[:i]
	}
	if value, ok := sh.aliases[word]; ok {
		return lead + sh.aliasValue(value, word, 0) + rest[len(word):]
	}
	return text
}
