package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// wordMode says where text stands, and so what ends it and what quotes mean.
type wordMode uint8

const (
	modeWord      wordMode = iota // outside of quotes: a blank or an operator ends it
	modeDouble                    // within "…"
	modeHeredoc                   // a here-document: to the end, " is itself
	modeBrace                     // the word of ${x:-word}: } ends it
	modeBraceQ                    // the same within "…": ' is itself
	modePattern                   // the pattern of ${x/pattern/…}: / and } end it
	modeSlice                     // the offset of ${x:offset:length}: : and } end it
	modeSubscript                 // ] ends it
	modeArith                     // arithmetic: to the end, quoted as in "…"
	modeRegex                     // the right side of =~
	modeText                      // any text, to its end
)

func (m wordMode) inQuotes() bool {
	return m == modeDouble || m == modeHeredoc || m == modeBraceQ || m == modeArith
}

// readWord reads a word of a command, which may be an assignment.
func (r *reader) readWord() (*syntax.Word, *syntax.Assign) {
	if r.assignOK && !r.cond && !r.regex {
		from := r.i
		if a := r.assignment(); a != nil {
			return nil, a
		}
		if r.err != nil {
			return nil, nil
		}
		r.i = from
	}
	mode := modeWord
	if r.regex {
		mode = modeRegex
	}
	return &syntax.Word{Parts: r.parts(mode)}, nil
}

// partsReader collects the parts of a word.
type partsReader struct {
	r     *reader
	mode  wordMode
	out   []syntax.WordPart
	lit   strings.Builder
	from  int  // where the literal text begins
	depth int  // open brackets
	tern  int  // open ? of ?:
	sq    bool // within '…' of a word in double quotes, where only what ends the word is quoted
}

func (p *partsReader) flush() {
	if p.lit.Len() == 0 {
		return
	}
	p.out = append(p.out, &syntax.Lit{ValuePos: p.r.pos(p.from), ValueEnd: p.r.pos(p.r.i), Value: p.lit.String()})
	p.lit.Reset()
}

// literal takes n bytes as they are.
func (p *partsReader) literal(n int) {
	if p.lit.Len() == 0 {
		p.from = p.r.i
	}
	n = min(n, len(p.r.src)-p.r.i)
	p.lit.WriteString(p.r.src[p.r.i : p.r.i+n])
	p.r.i += n
}

func (p *partsReader) part(w syntax.WordPart) { p.out = append(p.out, w) }

// parts reads up to what ends the mode, which isn't taken.
func (r *reader) parts(mode wordMode) []syntax.WordPart {
	if !r.deeper() {
		return nil
	}
	defer func() { r.depth-- }()
	p := &partsReader{r: r, mode: mode}
	for r.err == nil && r.i < len(r.src) && !p.ends() {
		p.step()
	}
	p.flush()
	return p.out
}

// ends tells whether the next byte ends the text; brackets that must match are counted.
func (p *partsReader) ends() bool {
	r := p.r
	c := r.src[r.i]
	switch p.mode {
	case modeWord:
		switch c {
		case ' ', '\t', '\n', '|', '&', ';', ')':
			return true
		case '(':
			return true // the part before it would have taken an extended pattern's
		case '<', '>':
			return !r.isProcSubst(r.i)
		}
	case modeDouble:
		return c == '"'
	case modeBrace, modeBraceQ:
		return c == '}' && !p.sq
	case modePattern:
		return c == '}' || c == '/'
	case modeSlice:
		switch c {
		case '(', '[':
			p.depth++
		case ')', ']':
			p.depth--
		case '?':
			p.tern++
		case ':':
			if p.depth == 0 && p.tern == 0 {
				return true
			}
			p.tern = max(0, p.tern-1)
		case '}':
			return true
		}
	case modeSubscript:
		switch c {
		case '[':
			p.depth++
		case ']':
			if p.depth == 0 {
				return true
			}
			p.depth--
		}
	case modeRegex:
		switch c {
		case '(':
			p.depth++
		case ')':
			if p.depth == 0 {
				return true
			}
			p.depth--
		case ' ', '\t', '\n':
			return p.depth == 0
		case '&', ';', '<', '>':
			return p.depth == 0
		case '|':
			return p.depth == 0 && strings.HasPrefix(r.src[r.i:], "||")
		}
	}
	return false
}

// step takes one part, or a byte of literal text.
func (p *partsReader) step() {
	r := p.r
	s := r.src[r.i:]
	switch c := s[0]; {
	case c == '\\':
		if strings.HasPrefix(s, "\\\n") && p.mode != modeText {
			r.i += 2
			return
		}
		_, n := 0, 1
		if len(s) > 1 {
			_, n = decode(s[1:])
			n++
		}
		p.literal(n)
	case c == '\'' && !p.mode.inQuotes():
		p.flush()
		p.single(1, false)
	case c == '\'' && p.mode == modeBraceQ && !r.sh.opts.posix:
		p.sq = !p.sq
		p.literal(1)
	case c == '"' && p.mode != modeHeredoc:
		p.flush()
		p.double(1, false)
	case c == '`':
		p.flush()
		p.part(r.backquotes(p.mode))
	case c == '$' && len(s) > 1:
		p.dollar(s[1])
	case (c == '<' || c == '>') && r.isProcSubst(r.i) && (p.mode == modeWord || p.mode == modeBrace || p.mode == modeRegex || p.mode == modeText):
		p.flush()
		p.part(r.procSubst())
	case p.extended(s):
	default:
		_, n := decode(s)
		p.literal(n)
	}
}

// extended takes an extended pattern: the text in its parentheses belongs to the word.
func (p *partsReader) extended(s string) bool {
	if len(s) < 2 || s[1] != '(' || strings.IndexByte("?*+@!", s[0]) < 0 || !p.r.ext || p.mode != modeWord {
		return false
	}
	p.literal(2)
	from := p.r.i
	for depth := 1; p.r.err == nil; {
		if p.r.i >= len(p.r.src) {
			p.r.eof(')', from)
			return true
		}
		switch p.r.src[p.r.i] {
		case '(':
			depth++
			p.literal(1)
		case ')':
			depth--
			p.literal(1)
			if depth == 0 {
				return true
			}
		case '<', '>':
			p.literal(1)
		default:
			p.step()
		}
	}
	return true
}

func (p *partsReader) single(n int, dollar bool) {
	r := p.r
	from := r.i
	r.i += n
	body := r.i
	for r.i < len(r.src) && r.src[r.i] != '\'' {
		if dollar && r.src[r.i] == '\\' {
			r.i++
		}
		r.i++
	}
	if r.i >= len(r.src) {
		r.eof('\'', from)
		return
	}
	p.part(&syntax.SglQuoted{Left: r.pos(from), Right: r.pos(r.i), Dollar: dollar, Value: r.src[body:r.i]})
	r.i++
}

func (p *partsReader) double(n int, dollar bool) {
	r := p.r
	from := r.i
	r.i += n
	parts := r.parts(modeDouble)
	if r.i >= len(r.src) {
		r.eof('"', from)
		return
	}
	p.part(&syntax.DblQuoted{Left: r.pos(from), Right: r.pos(r.i), Dollar: dollar, Parts: parts})
	r.i++
}

// dollar takes what a dollar begins.
func (p *partsReader) dollar(c byte) {
	r := p.r
	switch {
	case c == '\'' && !p.mode.inQuotes():
		p.flush()
		p.single(2, true)
	case c == '"' && !p.mode.inQuotes():
		p.flush()
		p.double(2, true)
	case c == '{':
		p.flush()
		p.part(r.paramExp(p.mode.inQuotes()))
	case c == '(':
		p.flush()
		if strings.HasPrefix(r.src[r.i:], "$((") {
			if x := r.arithExp(); x != nil {
				p.part(x)
				return
			}
		}
		if r.err == nil {
			p.part(r.cmdSubst())
		}
	case c == '[':
		p.flush()
		from := r.i
		r.i += 2
		body := r.i
		end := r.matching('[', ']')
		if end < 0 {
			r.eof(']', from)
			return
		}
		if r.i = end + 1; r.scan == 0 {
			p.part(&syntax.ArithmExp{Left: r.pos(from), Right: r.pos(end), Bracket: true, X: r.sub(r.src[body:end], body, modeArith)})
		}
	default:
		if n := nameLen(r.src[r.i+1:]); n > 0 {
			p.flush()
			p.part(r.shortParam(n))
			return
		}
		p.literal(1)
	}
}

// nameLen is the length of the parameter's name at the beginning of s, for $name.
func nameLen(s string) int {
	if s == "" {
		return 0
	}
	if strings.IndexByte("@*#?-$!", s[0]) >= 0 || s[0] >= '0' && s[0] <= '9' {
		return 1
	}
	n := 0
	for n < len(s) && isAlnum(s[n]) {
		n++
	}
	return n
}

func (r *reader) shortParam(n int) *syntax.ParamExp {
	name := &syntax.Lit{ValuePos: r.pos(r.i + 1), ValueEnd: r.pos(r.i + 1 + n), Value: r.src[r.i+1 : r.i+1+n]}
	x := &syntax.ParamExp{Dollar: r.pos(r.i), Short: true, Param: name}
	r.i += 1 + n
	return x
}

// matching finds what closes the bracket that was just opened, from r.i on: quotes and substitutions are skipped. -1 at
// the end of the text.
func (r *reader) matching(open, shut byte) int {
	if !r.deeper() {
		return -1
	}
	depth := 1
	save := r.i
	q := &partsReader{r: r, mode: modeArith}
	r.scan++
	defer func() {
		r.i = save
		r.depth--
		r.scan--
	}()
	for r.err == nil && r.i < len(r.src) {
		switch c := r.src[r.i]; {
		case c == open:
			depth++
			r.i++
		case c == shut:
			if depth--; depth == 0 {
				return r.i
			}
			r.i++
		case c == '\'':
			q.single(1, false)
		default:
			q.step()
		}
	}
	return -1
}

// arithExp reads $((…)); nil where it is a command substitution that begins with a subshell.
func (r *reader) arithExp() syntax.WordPart {
	from := r.i
	text, end, ok := r.arithText(from + 3)
	if !ok {
		return nil
	}
	if r.scan > 0 {
		r.i = end + 2
		return &syntax.ArithmExp{}
	}
	x := r.sub(text, from+3, modeArith)
	r.i = end + 2
	return &syntax.ArithmExp{Left: r.pos(from), Right: r.pos(end), X: x}
}

// arithText is the text up to )), and where that is. Within it only parentheses count, as in bash.
func (r *reader) arithText(body int) (text string, end int, ok bool) {
	if r.notArith[body] {
		return "", 0, false
	}
	save := r.i
	r.i = body
	end = r.matching('(', ')')
	switch {
	case r.err != nil:
		return "", 0, false
	case end < 0:
		r.eof(')', body)
		return "", 0, false
	}
	r.i = save
	if end+1 >= len(r.src) || r.src[end+1] != ')' {
		if r.notArith == nil {
			r.notArith = make(map[int]bool)
		}
		r.notArith[body] = true
		return "", 0, false
	}
	return r.src[body:end], end, true
}

// nested reads commands up to a closing parenthesis, which is taken.
func (r *reader) nested(from int) ([]*syntax.Stmt, int) {
	if !r.deeper() {
		return nil, 0
	}
	defer func() { r.depth-- }()
	saved := *r
	r.have, r.assignOK, r.regex, r.cond, r.docs = false, true, false, false, nil
	r.newlines()
	stmts := r.list(true)
	t := r.peek()
	if r.err != nil {
		if r.err.incomplete && !strings.Contains(r.err.text, "matching") {
			line := r.lineAt(len(r.src))
			if !strings.HasSuffix(r.src, "\n") {
				line++
			}
			r.err = &readError{text: "unexpected EOF while looking for matching `)'", line: line, incomplete: true}
		}
		return nil, 0
	}
	if t.kind == tokEOF {
		line := r.lineAt(len(r.src))
		if !strings.HasSuffix(r.src, "\n") {
			line++
		}
		r.fail(&readError{text: "unexpected EOF while looking for matching `)'", line: line, incomplete: true})
		return nil, 0
	}
	if t.kind != tokOp || t.text != ")" {
		r.unexpected()
		return nil, 0
	}
	if len(r.docs) > 0 {
		r.docs = append(saved.docs, r.docs...)
	} else {
		r.docs = saved.docs
	}
	r.have, r.assignOK, r.regex, r.cond = false, saved.assignOK, saved.regex, saved.cond
	r.i = t.to
	return stmts, t.from
}

func (r *reader) cmdSubst() syntax.WordPart {
	from := r.i
	r.i += 2
	stmts, right := r.nested(from)
	return &syntax.CmdSubst{Left: r.pos(from), Right: r.pos(right), Stmts: stmts}
}

func (r *reader) procSubst() syntax.WordPart {
	from := r.i
	op := syntax.CmdIn
	if r.src[from] == '>' {
		op = syntax.CmdOut
	}
	r.i += 2
	stmts, right := r.nested(from)
	return &syntax.ProcSubst{OpPos: r.pos(from), Rparen: r.pos(right), Op: op, Stmts: stmts}
}

// backquotes reads `…`: backslashes before $, ` and \ are removed, then the text is read.
func (r *reader) backquotes(mode wordMode) syntax.WordPart {
	from := r.i
	var b strings.Builder
	for r.i++; ; r.i++ {
		if r.i >= len(r.src) {
			r.eof('`', from)
			return &syntax.CmdSubst{Left: r.pos(from), Right: r.pos(from), Backquotes: true}
		}
		c := r.src[r.i]
		if c == '`' {
			break
		}
		if c == '\\' && r.i+1 < len(r.src) {
			next := r.src[r.i+1]
			if next == '$' || next == '`' || next == '\\' || next == '"' && (mode == modeDouble || mode == modeBraceQ) {
				r.i++
				c = next
			}
		}
		b.WriteByte(c)
	}
	x := &syntax.CmdSubst{Left: r.pos(from), Right: r.pos(r.i), Backquotes: true}
	r.i++
	q := &reader{sh: r.sh, src: b.String(), ext: r.ext, assignOK: true, noAlias: r.noAlias, nextAlias: -1, line: r.lineAt(from), depth: r.depth + 1}
	q.newlines()
	x.Stmts = q.list(true)
	if q.err == nil && q.peek().kind != tokEOF {
		q.unexpected()
	}
	if q.err != nil {
		q.err.incomplete = false
		// bash reports this when it runs the text, and then the command goes on without it.
		x.Stmts = r.failing(q.err, b.String(), from)
	}
	r.lineAt(r.i)
	return x
}

// failing is what stands for backquotes whose text can't be read: the text, read again when it is run.
func (r *reader) failing(err *readError, text string, at int) []*syntax.Stmt {
	pos := r.pos(at)
	lit := func(s string) *syntax.Word {
		return &syntax.Word{Parts: []syntax.WordPart{&syntax.SglQuoted{Left: pos, Right: pos, Value: s}}}
	}
	return []*syntax.Stmt{{Position: pos, Cmd: &syntax.CallExpr{Args: []*syntax.Word{lit("eval"), lit(text)}}}}
}
