package shell

import (
	"encoding/hex"
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A reader turns text into the nodes of mvdan.cc/sh as bash's own parser would: nothing within arithmetic, subscripts and
// ${…} is looked at before it is run, reserved words and assignments count only where bash takes them for such, aliases
// change the text that is still to be read, and what can't be read ends with bash's message. It reads what the parser of
// mvdan.cc/sh refuses, and everything once aliases are defined.
type reader struct {
	sh   *Shell
	src  string
	i    int
	tok  token
	have bool // tok is the next token
	err  *readError

	assignOK bool // the next word may be an assignment
	inArgs   bool // it is an argument
	ext      bool // extended patterns are words
	regex    bool // the next word is an expression of =~
	cond     bool // within [[ ]]
	noAlias  bool
	docs     []*syntax.Redirect // here-documents that begin after the line
	depth    int

	active    []activeAlias
	nextAlias int // what is left of src where a word is checked for aliases too, -1 for none

	lineOff, line int // line is that of src[lineOff]
	shift         int // where src begins in the text that it was taken from

	scan     int          // > 0 while the end of something is looked for: what is within is read again
	notArith map[int]bool // places of (( that begin two subshells
	badParam map[int]int  // places of ${ that bash refuses at run time, and their ends
	warnings []string
}

// activeAlias is an alias whose value is being read: as long as more than left bytes are left.
type activeAlias struct {
	name string
	left int
}

// maxAliases bounds how many aliases one text expands.
const maxAliases = 10000

// readError is a refusal. An incomplete text may become right with more lines.
type readError struct {
	text       string
	line       int
	incomplete bool
	near       bool // the line is shown
	soft       bool // the script goes on with the next line
	quiet      bool // the script ends, with the status that it had
}

func (e *readError) Error() string { return e.text }

type tokKind uint8

const (
	tokEOF tokKind = iota
	tokNewline
	tokWord
	tokOp
	tokNumber // before < or >: a number or {name}
)

type token struct {
	kind     tokKind
	text     string // an operator; a word's source
	from, to int
	word     *syntax.Word
	assign   *syntax.Assign // the word is an assignment
}

func (sh *Shell) newReader(src string) *reader {
	return &reader{sh: sh, src: src, ext: sh.shopts.get("extglob"), assignOK: true, nextAlias: -1, line: 1,
		noAlias: !sh.shopts.get("expand_aliases") || len(sh.aliases) == 0}
}

func (r *reader) pos(off int) syntax.Pos {
	col := off - strings.LastIndexByte(r.src[:min(off, len(r.src))], '\n')
	return syntax.NewPos(uint(off+r.shift), uint(r.lineAt(off)), uint(col))
}

// lineAt counts lines, from the place that was asked for last.
func (r *reader) lineAt(off int) int {
	off = min(off, len(r.src))
	if off >= r.lineOff {
		r.line += strings.Count(r.src[r.lineOff:off], "\n")
	} else {
		r.line -= strings.Count(r.src[off:r.lineOff], "\n")
	}
	r.lineOff = off
	return r.line
}

// fail keeps the first error; reading then finds nothing but the end.
func (r *reader) fail(e *readError) {
	if r.err == nil {
		r.err = e
	}
	r.i = len(r.src)
	r.tok, r.have = token{kind: tokEOF, from: r.i, to: r.i}, true
}

// eof is the end of the text within something that c closes, 0 for a command.
func (r *reader) eof(c byte, from int) {
	if c == 0 {
		line := r.lineAt(len(r.src))
		if !strings.HasSuffix(r.src, "\n") {
			line++
		}
		r.fail(&readError{text: "syntax error: unexpected end of file", line: line, incomplete: true})
		return
	}
	r.fail(&readError{text: fmt.Sprintf("unexpected EOF while looking for matching `%c'", c), line: r.lineAt(from), incomplete: true})
}

// unexpected refuses the next token.
func (r *reader) unexpected() {
	t := r.peek()
	if r.err != nil {
		return
	}
	switch t.kind {
	case tokEOF:
		r.eof(0, t.from)
	case tokNewline:
		r.fail(&readError{text: "syntax error near unexpected token `newline'", line: r.lineAt(t.from), near: true})
	default:
		text := t.text
		r.fail(&readError{text: "syntax error near unexpected token `" + text + "'", line: r.lineAt(t.from), near: true})
	}
}

// missing refuses the next token where a word must stand: the end of the text ends the line, too.
func (r *reader) missing() {
	if t := r.peek(); r.err == nil && t.kind == tokEOF && !strings.HasSuffix(r.src, "\n") {
		r.fail(&readError{text: "syntax error near unexpected token `newline'", line: r.lineAt(t.from), near: true})
		return
	}
	r.unexpected()
}

// deeper counts nesting; false means too much of it.
func (r *reader) deeper() bool {
	if r.depth++; r.depth > maxNesting {
		r.fail(&readError{text: "syntax error: too deeply nested", line: r.lineAt(min(r.i, len(r.src)))})
		return false
	}
	return true
}

// peek returns the next token without taking it.
func (r *reader) peek() token {
	for !r.have {
		r.lex()
		if r.have && r.tok.kind == tokWord && !r.noAlias && r.expandAlias() {
			r.have = false
		}
	}
	return r.tok
}

// take returns the next token. Here-documents are read when the end of their line is taken.
func (r *reader) take() token {
	t := r.peek()
	if t.kind != tokEOF {
		r.have = false
	}
	if t.kind == tokNewline && len(r.docs) > 0 {
		r.readDocs()
	}
	r.assignOK, r.inArgs = true, false
	return t
}

func (r *reader) isOp(op string) bool {
	t := r.peek()
	return t.kind == tokOp && t.text == op
}

func (r *reader) gotOp(op string) bool {
	if r.isOp(op) {
		r.take()
		return true
	}
	return false
}

// keyword returns the next word if it is a reserved one.
func (r *reader) keyword() string {
	if t := r.peek(); t.kind == tokWord && isKeyword(t.text) {
		return t.text
	}
	return ""
}

func (r *reader) gotKeyword(s string) bool {
	if t := r.peek(); t.kind == tokWord && t.text == s {
		r.take()
		return true
	}
	return false
}

func (r *reader) newlines() {
	for r.peek().kind == tokNewline {
		r.take()
	}
}

var operators = [...]string{"&>>", "<<<", "<<-", ";;&", "&&", "||", ";;", ";&", "|&", "<<", ">>", "<&", ">&", "<>", ">|", "&>", "(", ")", ";", "&", "|", "<", ">"}

// lex reads a token.
func (r *reader) lex() {
	r.blanks()
	from := r.i
	emit := func(kind tokKind, to int) {
		r.tok, r.have = token{kind: kind, text: r.src[from:to], from: from, to: to}, true
		r.i = to
	}
	if from >= len(r.src) {
		emit(tokEOF, from)
		return
	}
	if r.src[from] == '\n' {
		emit(tokNewline, from+1)
		return
	}
	if n := r.redirNumber(); n > 0 && !r.regex {
		emit(tokNumber, from+n)
		return
	}
	if !r.regex && !r.isProcSubst(from) {
		for _, op := range operators {
			if strings.HasPrefix(r.src[from:], op) {
				emit(tokOp, from+len(op))
				return
			}
		}
	}
	if r.regex && strings.IndexByte(")&;<>", r.src[from]) >= 0 && !r.isProcSubst(from) {
		emit(tokOp, from+1)
		return
	}
	w, a := r.readWord()
	if r.err != nil {
		return
	}
	if r.i == from { // nothing that begins a word
		emit(tokOp, from+1)
		return
	}
	emit(tokWord, r.i)
	r.tok.word, r.tok.assign = w, a
}

func (r *reader) isProcSubst(i int) bool {
	return (r.src[i] == '<' || r.src[i] == '>') && i+1 < len(r.src) && r.src[i+1] == '('
}

// blanks skips blanks, continued lines and comments.
func (r *reader) blanks() {
	for r.i < len(r.src) {
		switch c := r.src[r.i]; {
		case c == ' ' || c == '\t':
			r.i++
		case c == '\\' && strings.HasPrefix(r.src[r.i+1:], "\n"):
			r.i += 2
		case c == '#' && (!r.sh.opts.interactive || r.sh.shopts.get("interactive_comments")):
			if n := strings.IndexByte(r.src[r.i:], '\n'); n >= 0 {
				r.i += n
			} else {
				r.i = len(r.src)
			}
			return
		default:
			return
		}
	}
}

// redirNumber returns the length of what stands right before a redirection and says its descriptor.
func (r *reader) redirNumber() int {
	s := r.src[r.i:]
	n := 0
	if s[0] == '{' {
		end := strings.IndexByte(s, '}')
		if end < 2 {
			return 0
		}
		name, _, _ := splitRef(s[1:end])
		if !validName(name) {
			return 0
		}
		n = end + 1
	} else {
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
	}
	if n == 0 || n >= len(s) || s[n] != '<' && s[n] != '>' || r.isProcSubst(r.i+n) {
		return 0
	}
	return n
}

// expandAlias replaces the word that was just read by its alias's value, where a command begins.
func (r *reader) expandAlias() bool {
	t := r.tok
	left := len(r.src) - t.from
	for len(r.active) > 0 && left <= r.active[len(r.active)-1].left {
		r.active = r.active[:len(r.active)-1]
	}
	follows := r.nextAlias >= 0 && left <= r.nextAlias
	if (!r.assignOK || r.inArgs) && !follows || t.assign != nil || r.cond {
		return false
	}
	if follows {
		r.nextAlias = -1
	}
	value, ok := r.sh.aliases[t.text]
	if !ok || len(r.active) >= 100 {
		return false
	}
	for _, a := range r.active {
		if a.name == t.text {
			return false
		}
	}
	rest := r.src[t.to:]
	if len(r.src)+len(value) > maxScript {
		return false
	}
	r.active = append(r.active, activeAlias{t.text, len(rest)})
	if strings.HasSuffix(value, " ") || strings.HasSuffix(value, "\t") {
		r.nextAlias = len(rest)
	}
	r.lineAt(t.from)
	r.src = r.src[:t.from] + value + rest
	r.notArith, r.badParam = nil, nil
	r.i = t.from
	return true
}

// readDocs reads the bodies of here-documents.
func (r *reader) readDocs() {
	docs := r.docs
	r.docs = nil
	for _, d := range docs {
		r.readDoc(d)
	}
}

func (r *reader) readDoc(d *syntax.Redirect) {
	delim, quoted := delimiter(d.Word)
	from := r.i
	var b strings.Builder
	closed := false
	for r.i < len(r.src) {
		line := r.src[r.i:]
		if n := strings.IndexByte(line, '\n'); n >= 0 {
			line = line[:n+1]
		}
		start := b.Len() == 0 || quoted || !continued(b.String())
		r.i += len(line)
		if d.Op == syntax.DashHdoc && start {
			line = strings.TrimLeft(line, "\t")
		}
		if start && strings.TrimSuffix(line, "\n") == delim {
			closed = true
			break
		}
		b.WriteString(line)
	}
	if !closed {
		if strings.HasSuffix(r.src, "\n") || r.sh == nil {
			r.lineAt(len(r.src))
		}
		r.warnings = append(r.warnings, fmt.Sprintf("here-document at line %d delimited by end-of-file (wanted `%s')", r.lineAt(int(d.OpPos.Offset())), delim))
	}
	if quoted {
		d.Hdoc = &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{ValuePos: r.pos(from), ValueEnd: r.pos(r.i), Value: b.String()}}}
		return
	}
	d.Hdoc = r.sub(b.String(), from, modeHeredoc)
}

// continued tells that a line ends in a backslash that isn't quoted itself.
func continued(s string) bool {
	if !strings.HasSuffix(s, "\\\n") {
		return false
	}
	n := 0
	for i := len(s) - 2; i >= 0 && s[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

// sub reads text that was taken out of the source at a place.
func (r *reader) sub(text string, at int, mode wordMode) *syntax.Word {
	q := &reader{sh: r.sh, src: text, ext: r.ext, assignOK: true, noAlias: r.noAlias, nextAlias: -1, line: r.lineAt(at), depth: r.depth + 1, shift: at}
	if q.depth > maxNesting {
		r.deeper()
		return &syntax.Word{}
	}
	parts := q.parts(mode)
	if q.err != nil {
		if mode == modeHeredoc {
			// bash finds this out when it expands the body.
			return &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{ValuePos: r.pos(at), ValueEnd: r.pos(at), Value: text}}}
		}
		q.err.line += 0
		r.fail(q.err)
	}
	return &syntax.Word{Parts: parts}
}

// delimiter is a here-document's: quotes removed.
func delimiter(w *syntax.Word) (text string, quoted bool) {
	var b strings.Builder
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			for i := 0; i < len(p.Value); i++ {
				if p.Value[i] == '\\' && i+1 < len(p.Value) {
					i++
					quoted = true
				}
				b.WriteByte(p.Value[i])
			}
		case *syntax.SglQuoted:
			quoted = true
			if p.Dollar {
				b.WriteString(ansiC(p.Value))
			} else {
				b.WriteString(p.Value)
			}
		}
	}
	return b.String(), quoted
}

// rawParam begins the name that stands for an expansion which bash refuses when it comes to it; its text follows.
const rawParam = "_AGENTRUN_PARAM_"

func encodeRaw(s, kind string) string { return kind + hex.EncodeToString([]byte(s)) }

func decodeRaw(name, kind string) (string, bool) {
	h, ok := strings.CutPrefix(name, kind)
	if !ok {
		return "", false
	}
	b, err := hex.DecodeString(h)
	return string(b), err == nil
}

// textWord reads text as one word, blanks and all: nil if it can't be read.
func (sh *Shell) textWord(text string, mode wordMode) *syntax.Word {
	r := sh.newReader(text)
	r.noAlias = true
	parts := r.parts(mode)
	if r.err != nil {
		return nil
	}
	w := &syntax.Word{Parts: parts}
	sh.keepLoose(text, mode, w)
	return w
}
