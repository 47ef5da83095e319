package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// line reads the commands up to the end of a line: what bash runs before it reads on. It returns nil at the end of the
// text.
func (r *reader) lineOf() []*syntax.Stmt {
	for r.peek().kind == tokNewline {
		r.take()
	}
	if r.err != nil || r.peek().kind == tokEOF {
		return nil
	}
	stmts := r.list(false)
	if r.err != nil {
		return nil
	}
	switch t := r.peek(); t.kind {
	case tokNewline:
		r.take()
	case tokEOF:
		if len(r.docs) > 0 {
			r.readDocs()
		}
	default:
		r.unexpected()
	}
	return stmts
}

// ends tells whether a token can't begin a command, and so ends a list.
func (r *reader) endsList() bool {
	t := r.peek()
	switch t.kind {
	case tokEOF:
		return true
	case tokOp:
		switch t.text {
		case ")", ";;", ";&", ";;&":
			return true
		}
	case tokWord:
		switch t.text {
		case "then", "else", "elif", "fi", "do", "done", "esac", "}":
			return true
		}
	}
	return false
}

// list reads commands separated by ; & and, if lines is set, newlines.
func (r *reader) list(lines bool) []*syntax.Stmt {
	var out []*syntax.Stmt
	for {
		if lines {
			r.newlines()
		}
		if r.err != nil || r.endsList() || !lines && r.peek().kind == tokNewline {
			return out
		}
		s := r.andOr()
		if r.err != nil {
			return out
		}
		out = append(out, s)
		switch t := r.peek(); {
		case t.kind == tokOp && (t.text == ";" || t.text == "&"):
			s.Semicolon = r.pos(t.from)
			s.Background = t.text == "&"
			r.take()
		case t.kind == tokNewline && lines:
		default:
			return out
		}
	}
}

// body reads the list of a compound command, which must not be empty.
func (r *reader) body() []*syntax.Stmt {
	out := r.list(true)
	if len(out) == 0 && r.err == nil {
		r.unexpected()
	}
	return out
}

func (r *reader) andOr() *syntax.Stmt {
	left := r.pipeline()
	for r.err == nil && (r.isOp("&&") || r.isOp("||")) {
		t := r.take()
		r.newlines()
		op := syntax.AndStmt
		if t.text == "||" {
			op = syntax.OrStmt
		}
		right := r.pipeline()
		if r.err != nil {
			break
		}
		left = &syntax.Stmt{Position: left.Position, Cmd: &syntax.BinaryCmd{OpPos: r.pos(t.from), Op: op, X: left, Y: right}}
	}
	return left
}

// pipeline reads [time [-p]] [!] command | command …
func (r *reader) pipeline() *syntax.Stmt {
	if !r.deeper() {
		return &syntax.Stmt{}
	}
	defer func() { r.depth-- }()
	at := r.peek().from
	switch r.keyword() {
	case "!":
		r.take()
		s := r.emptyOr(at)
		if r.err != nil {
			return s
		}
		if s.Negated {
			s.Negated = false
			return s
		}
		if _, isTime := s.Cmd.(*syntax.TimeClause); isTime && len(s.Redirs) == 0 {
			return &syntax.Stmt{Position: r.pos(at), Negated: true, Cmd: s.Cmd}
		}
		s.Negated = true
		s.Position = r.pos(at)
		return s
	case "time":
		r.take()
		c := &syntax.TimeClause{Time: r.pos(at)}
		if t := r.peek(); t.kind == tokWord && t.text == "-p" {
			r.take()
			c.PosixFormat = true
		}
		if t := r.peek(); t.kind == tokWord && t.text == "--" {
			r.take()
		}
		c.Stmt = r.emptyOr(at)
		if c.Stmt.Cmd == nil && len(c.Stmt.Redirs) == 0 && !c.Stmt.Negated {
			c.Stmt = nil
		}
		return &syntax.Stmt{Position: r.pos(at), Cmd: c}
	}
	left := r.command()
	for r.err == nil && (r.isOp("|") || r.isOp("|&")) {
		t := r.take()
		r.newlines()
		op := syntax.Pipe
		if t.text == "|&" {
			op = syntax.PipeAll
		}
		var right *syntax.Stmt
		if k := r.keyword(); k == "!" || k == "time" {
			right = r.pipeline()
			right = &syntax.Stmt{Position: right.Position, Cmd: &syntax.Block{Lbrace: right.Position, Rbrace: right.End(), Stmts: []*syntax.Stmt{right}}}
		} else {
			right = r.command()
		}
		if r.err != nil {
			break
		}
		left = &syntax.Stmt{Position: left.Position, Cmd: &syntax.BinaryCmd{OpPos: r.pos(t.from), Op: op, X: left, Y: right}}
	}
	return left
}

// emptyOr reads what follows ! or time, which may be nothing.
func (r *reader) emptyOr(at int) *syntax.Stmt {
	t := r.peek()
	if t.kind == tokNewline || t.kind == tokEOF && r.err == nil || t.kind == tokOp && (t.text == ";" || t.text == "&" || t.text == ")") {
		return &syntax.Stmt{Position: r.pos(at)}
	}
	return r.pipeline()
}

// command reads one command with its redirections.
func (r *reader) command() *syntax.Stmt {
	t := r.peek()
	s := &syntax.Stmt{Position: r.pos(t.from)}
	if t.kind == tokOp && t.text == "(" || t.kind == tokWord && t.assign == nil && isKeyword(t.text) && t.text != "in" {
		s.Cmd = r.compound(t)
		if r.err != nil {
			return s
		}
		if f, isFunc := s.Cmd.(*syntax.FuncDecl); !isFunc || f == nil {
			r.redirects(s)
		}
		return s
	}
	r.simpleCommand(s)
	return s
}

// redirects reads the redirections that follow.
func (r *reader) redirects(s *syntax.Stmt) {
	for r.err == nil {
		r.peek()
		d := r.redirect()
		if d == nil {
			return
		}
		s.Redirs = append(s.Redirs, d)
	}
}

func redirOp(op string) (syntax.RedirOperator, bool) {
	switch op {
	case ">":
		return syntax.RdrOut, true
	case ">>":
		return syntax.AppOut, true
	case "<":
		return syntax.RdrIn, true
	case "<>":
		return syntax.RdrInOut, true
	case "<&":
		return syntax.DplIn, true
	case ">&":
		return syntax.DplOut, true
	case ">|":
		return syntax.RdrClob, true
	case "<<":
		return syntax.Hdoc, true
	case "<<-":
		return syntax.DashHdoc, true
	case "<<<":
		return syntax.WordHdoc, true
	case "&>":
		return syntax.RdrAll, true
	case "&>>":
		return syntax.AppAll, true
	}
	return 0, false
}

// redirect reads a redirection, nil where none is.
func (r *reader) redirect() *syntax.Redirect {
	t := r.peek()
	d := &syntax.Redirect{}
	if t.kind == tokNumber {
		d.N = &syntax.Lit{ValuePos: r.pos(t.from), ValueEnd: r.pos(t.to), Value: t.text}
		r.take()
		t = r.peek()
	}
	op, ok := redirOp(t.text)
	if t.kind != tokOp || !ok {
		return nil
	}
	r.take()
	d.Op, d.OpPos = op, r.pos(t.from)
	r.assignOK = false
	if op == syntax.Hdoc || op == syntax.DashHdoc {
		r.docWord(d)
		return d
	}
	w := r.peek()
	if w.kind == tokNumber { // digits before another redirection are a word here
		r.i = w.from
		r.have = false
		d.Word = &syntax.Word{Parts: r.parts(modeWord)}
		return d
	}
	if w.kind != tokWord {
		r.missing()
		return nil
	}
	r.take()
	d.Word = w.word
	return d
}

// docWord reads a here-document's delimiter, in which nothing is expanded.
func (r *reader) docWord(d *syntax.Redirect) {
	t := r.peek()
	if t.kind != tokWord {
		r.missing()
		return
	}
	r.take()
	raw := t.text
	pos, end := r.pos(t.from), r.pos(t.to)
	d.Word = &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{ValuePos: pos, ValueEnd: end, Value: raw}}}
	if strings.ContainsAny(raw, "'\"\\") {
		var b strings.Builder
		for i := 0; i < len(raw); i++ {
			switch c := raw[i]; {
			case c == '\\' && i+1 < len(raw):
				i++
				b.WriteByte(raw[i])
			case c == '$' && i+1 < len(raw) && (raw[i+1] == '\'' || raw[i+1] == '"'):
			case c == '\'' || c == '"':
				for i++; i < len(raw) && raw[i] != c; i++ {
					if c == '"' && raw[i] == '\\' && i+1 < len(raw) && strings.IndexByte("$`\"\\\n", raw[i+1]) >= 0 {
						i++
					}
					b.WriteByte(raw[i])
				}
			default:
				b.WriteByte(c)
			}
		}
		d.Word = &syntax.Word{Parts: []syntax.WordPart{&syntax.SglQuoted{Left: pos, Right: end, Value: b.String()}}}
	}
	r.docs = append(r.docs, d)
}

// isDeclaring tells whether a command's arguments may be assignments, arrays too.
func isDeclaring(name string) bool {
	switch name {
	case "declare", "typeset", "local", "export", "readonly":
		return true
	}
	return false
}

// simpleCommand reads assignments, words and redirections, or a function's definition.
func (r *reader) simpleCommand(s *syntax.Stmt) {
	c := &syntax.CallExpr{}
	var decl *syntax.DeclClause
	assigning := true
	for r.err == nil {
		if d := r.redirect(); d != nil {
			s.Redirs = append(s.Redirs, d)
			r.assignOK, r.inArgs = assigning || decl != nil, !assigning
			continue
		}
		t := r.peek()
		if r.err != nil {
			return
		}
		if t.kind != tokWord {
			if t.kind == tokOp && t.text == "(" && decl == nil && len(c.Args) == 1 && len(c.Assigns) == 0 && len(s.Redirs) == 0 {
				r.function(s, c.Args[0])
				return
			}
			break
		}
		switch {
		case assigning && t.assign != nil:
			c.Assigns = append(c.Assigns, t.assign)
		case decl != nil:
			decl.Args = append(decl.Args, declArgOf(t))
		case assigning:
			assigning = false
			if lit := t.text; isDeclaring(lit) && len(c.Assigns) == 0 {
				decl = &syntax.DeclClause{Variant: &syntax.Lit{ValuePos: r.pos(t.from), ValueEnd: r.pos(t.to), Value: lit}}
			} else {
				c.Args = append(c.Args, t.word)
			}
		default:
			c.Args = append(c.Args, wordOf(t))
		}
		r.take()
		evals := len(c.Args) > 0 && r.listArgs(c.Args[0].Lit())
		r.assignOK, r.inArgs = assigning || decl != nil || evals, !assigning
		if !assigning {
			r.noteAliasEnd()
		}
	}
	if r.err != nil {
		return
	}
	switch {
	case decl != nil:
		s.Cmd = decl
	case len(c.Args)+len(c.Assigns) > 0:
		s.Cmd = c
	case len(s.Redirs) == 0:
		r.unexpected()
	}
	if t := r.peek(); t.kind == tokOp && t.text == "(" {
		r.unexpected()
	}
}

// noteAliasEnd stops looking for aliases beyond the first word, but for those that ended in a blank.
func (r *reader) noteAliasEnd() {}

// listArgs tells whether a builtin takes name=(…) as an argument, as text.
func (r *reader) listArgs(name string) bool {
	return name == "eval" || name == "let" || name == "alias"
}

// wordOf is an argument; an assignment is one as well where it isn't the command's own.
func wordOf(t token) *syntax.Word {
	if t.assign == nil {
		return t.word
	}
	a := t.assign
	if a.Array != nil {
		return &syntax.Word{Parts: []syntax.WordPart{&syntax.SglQuoted{Left: a.Pos(), Right: a.End(), Value: t.text}}}
	}
	text := a.Name.Value
	parts := []syntax.WordPart{&syntax.Lit{ValuePos: a.Pos(), ValueEnd: a.Name.ValueEnd, Value: text}}
	if w, ok := a.Index.(*syntax.Word); ok {
		parts = appendLit(parts, "[")
		for _, p := range w.Parts {
			parts = appendPart(parts, p)
		}
		parts = appendLit(parts, "]")
	}
	op := "="
	if a.Append {
		op = "+="
	}
	parts = appendLit(parts, op)
	for _, p := range a.Value.Parts {
		parts = appendPart(parts, p)
	}
	return &syntax.Word{Parts: parts}
}

func appendLit(parts []syntax.WordPart, s string) []syntax.WordPart {
	last := parts[len(parts)-1]
	return appendPart(parts, &syntax.Lit{ValuePos: last.End(), ValueEnd: last.End(), Value: s})
}

func appendPart(parts []syntax.WordPart, p syntax.WordPart) []syntax.WordPart {
	if l, ok := p.(*syntax.Lit); ok && len(parts) > 0 {
		if last, ok := parts[len(parts)-1].(*syntax.Lit); ok {
			parts[len(parts)-1] = &syntax.Lit{ValuePos: last.ValuePos, ValueEnd: l.ValueEnd, Value: last.Value + l.Value}
			return parts
		}
	}
	return append(parts, p)
}

// declArgOf is an argument of declare and its kin.
func declArgOf(t token) *syntax.Assign {
	if t.assign != nil {
		return t.assign
	}
	if lit := t.word.Lit(); len(t.word.Parts) == 1 && validName(lit) {
		if l, ok := t.word.Parts[0].(*syntax.Lit); ok {
			return &syntax.Assign{Naked: true, Name: l}
		}
	}
	return &syntax.Assign{Naked: true, Value: t.word}
}

// function reads what follows a function's name: () and a compound command.
func (r *reader) function(s *syntax.Stmt, name *syntax.Word) {
	r.take()
	if !r.gotOp(")") {
		r.unexpected()
		return
	}
	lit := name.Lit()
	if len(name.Parts) != 1 || lit == "" || strings.ContainsAny(lit, "\\") {
		// bash finds out when it comes to it.
		raw := r.src[min(len(r.src), int(name.Pos().Offset())-r.shift):min(len(r.src), int(name.End().Offset())-r.shift)]
		s.Cmd = &syntax.FuncDecl{Position: s.Position, Parens: true, Name: &syntax.Lit{ValuePos: name.Pos(), ValueEnd: name.End(), Value: raw}, Body: r.functionBody()}
		return
	}
	s.Cmd = &syntax.FuncDecl{Position: s.Position, Parens: true, Name: name.Parts[0].(*syntax.Lit), Body: r.functionBody()}
}

func (r *reader) functionBody() *syntax.Stmt {
	r.newlines()
	t := r.peek()
	s := &syntax.Stmt{Position: r.pos(t.from)}
	switch {
	case t.kind == tokOp && t.text == "(":
	case t.kind == tokWord:
		switch t.text {
		case "{", "[[", "if", "while", "until", "for", "case", "select":
		default:
			r.unexpected()
			return s
		}
	default:
		r.unexpected()
		return s
	}
	s.Cmd = r.compound(t)
	r.redirects(s)
	return s
}

// compound reads a command that begins with a reserved word or a parenthesis.
func (r *reader) compound(t token) syntax.Command {
	if !r.deeper() {
		return &syntax.Block{}
	}
	defer func() { r.depth-- }()
	pos := r.pos(t.from)
	switch t.text {
	case "(":
		return r.parens(t)
	case "{":
		r.take()
		c := &syntax.Block{Lbrace: pos, Stmts: r.body()}
		c.Rbrace = r.want("}")
		return c
	case "if":
		return r.ifClause(t)
	case "while", "until":
		r.take()
		c := &syntax.WhileClause{WhilePos: pos, Until: t.text == "until", Cond: r.body()}
		c.DoPos = r.want("do")
		c.Do = r.body()
		c.DonePos = r.want("done")
		return c
	case "for", "select":
		return r.forClause(t)
	case "case":
		return r.caseClause(t)
	case "function":
		return r.functionWord(t)
	case "[[":
		return r.testCommand(t)
	case "coproc":
		return r.coproc(t)
	}
	r.unexpected()
	return &syntax.Block{}
}

// want takes a reserved word that must come now.
func (r *reader) want(word string) syntax.Pos {
	t := r.peek()
	if t.kind != tokWord || t.text != word {
		r.unexpected()
		return syntax.Pos{}
	}
	pos := r.pos(t.from)
	r.take()
	return pos
}

// parens reads ((…)) or ( … ).
func (r *reader) parens(t token) syntax.Command {
	if strings.HasPrefix(r.src[t.from:], "((") {
		if text, end, ok := r.arithText(t.from + 2); ok {
			r.have = false
			c := &syntax.ArithmCmd{Left: r.pos(t.from), Right: r.pos(end), X: r.arithWord(text, t.from+2)}
			r.i = end + 2
			r.assignOK = true
			return c
		}
		if r.err != nil {
			return &syntax.Block{}
		}
	}
	r.take()
	c := &syntax.Subshell{Lparen: r.pos(t.from), Stmts: r.body()}
	if r.err == nil {
		e := r.peek()
		c.Rparen = r.pos(e.from)
		if !r.gotOp(")") {
			r.unexpected()
		}
	}
	return c
}

// arithWord is arithmetic as a word; an empty one has an empty part, so that it has a place.
func (r *reader) arithWord(text string, at int) *syntax.Word {
	w := r.sub(text, at, modeArith)
	if len(w.Parts) == 0 {
		w.Parts = []syntax.WordPart{&syntax.Lit{ValuePos: r.pos(at), ValueEnd: r.pos(at)}}
	}
	return w
}

func (r *reader) ifClause(t token) syntax.Command {
	r.take()
	first := &syntax.IfClause{Position: r.pos(t.from), Cond: r.body()}
	clause := first
	clauses := []*syntax.IfClause{first}
	for r.err == nil {
		if clause.Cond != nil {
			clause.ThenPos = r.want("then")
		}
		clause.Then = r.body()
		if r.err != nil {
			break
		}
		n := r.peek()
		switch word := r.keyword(); {
		case word == "elif" && clause.Cond != nil:
			r.take()
			next := &syntax.IfClause{Position: r.pos(n.from), Cond: r.body()}
			clause.Else, clause = next, next
		case word == "else" && clause.Cond != nil:
			r.take()
			next := &syntax.IfClause{Position: r.pos(n.from)}
			clause.Else, clause = next, next
		default:
			pos := r.want("fi")
			for _, c := range append(clauses, clause) {
				c.FiPos = pos
			}
			return first
		}
		clauses = append(clauses, clause)
	}
	return first
}

func (r *reader) forClause(t token) syntax.Command {
	r.take()
	c := &syntax.ForClause{ForPos: r.pos(t.from), Select: t.text == "select"}
	r.assignOK = false
	n := r.peek()
	if t.text == "for" && n.kind == tokOp && n.text == "(" && strings.HasPrefix(r.src[n.from:], "((") {
		c.Loop = r.cStyle(n)
		r.gotOp(";")
	} else {
		if n.kind != tokWord {
			r.missing()
			return c
		}
		r.take()
		loop := &syntax.WordIter{Name: &syntax.Lit{ValuePos: r.pos(n.from), ValueEnd: r.pos(n.to), Value: n.text}}
		c.Loop = loop
		if r.gotOp(";") {
			r.newlines()
		} else {
			r.newlines()
			if in := r.peek(); in.kind == tokWord && in.text == "in" {
				loop.InPos = r.pos(in.from)
				r.take()
				r.items(loop)
			}
		}
	}
	r.newlines()
	d := r.peek()
	if r.err != nil {
		return c
	}
	c.DoPos = r.pos(d.from)
	if d.kind == tokWord && d.text == "{" {
		c.Braces = true
		r.take()
		c.Do = r.body()
		c.DonePos = r.want("}")
		return c
	}
	r.want("do")
	c.Do = r.body()
	c.DonePos = r.want("done")
	return c
}

// items reads the words of for … in, and what ends them.
func (r *reader) items(loop *syntax.WordIter) {
	for r.err == nil {
		r.assignOK = false
		switch t := r.peek(); {
		case t.kind == tokWord:
			r.take()
			loop.Items = append(loop.Items, t.word)
		case t.kind == tokNewline || t.kind == tokOp && t.text == ";":
			r.take()
			return
		default:
			r.unexpected()
		}
	}
}

func (r *reader) cStyle(t token) syntax.Loop {
	l := &syntax.CStyleLoop{Lparen: r.pos(t.from)}
	text, end, ok := r.arithText(t.from + 2)
	if !ok {
		r.have = true
		r.unexpected()
		return l
	}
	r.have = false
	l.Rparen = r.pos(end)
	var parts []string
	start, depth := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '\'', '"':
			if j := strings.IndexByte(text[i+1:], text[i]); j >= 0 {
				i += j + 1
			}
		case '(', '{':
			depth++
		case ')', '}':
			depth--
		case ';':
			if depth <= 0 {
				parts = append(parts, text[start:i])
				start = i + 1
			}
		}
	}
	parts = append(parts, text[start:])
	if len(parts) != 3 {
		msg := "syntax error: arithmetic expression required"
		if len(parts) > 3 {
			msg = "syntax error: `;' unexpected"
		}
		line := r.lineAt(t.from)
		r.fail(&readError{text: msg, line: line})
		return l
	}
	at := t.from + 2
	word := func(s string) syntax.ArithmExpr {
		if strings.TrimSpace(s) == "" {
			return nil
		}
		return r.arithWord(s, at)
	}
	l.Init, l.Cond, l.Post = word(parts[0]), word(strings.TrimLeft(parts[1], " \t\n")), word(strings.TrimLeft(parts[2], " \t\n"))
	r.i = end + 2
	r.assignOK = true
	return l
}

func (r *reader) caseClause(t token) syntax.Command {
	r.take()
	c := &syntax.CaseClause{Case: r.pos(t.from)}
	r.assignOK = false
	w := r.peek()
	if w.kind != tokWord {
		r.unexpected()
		return c
	}
	r.take()
	c.Word = w.word
	r.newlines()
	r.assignOK = false
	c.In = r.want("in")
	for r.err == nil {
		r.newlines()
		if r.keyword() == "esac" {
			break
		}
		c.Items = append(c.Items, r.caseItem())
		last := c.Items[len(c.Items)-1]
		if !last.OpPos.IsValid() {
			break
		}
	}
	c.Esac = r.want("esac")
	return c
}

func (r *reader) caseItem() *syntax.CaseItem {
	item := &syntax.CaseItem{Op: syntax.Break}
	r.gotOp("(")
	for r.err == nil {
		r.assignOK = false
		t := r.peek()
		if t.kind == tokNumber {
			r.unexpected()
		}
		if t.kind != tokWord {
			r.unexpected()
			return item
		}
		r.take()
		if t.word == nil {
			t.word = wordOf(t)
		}
		item.Patterns = append(item.Patterns, t.word)
		r.assignOK = false
		if !r.gotOp("|") {
			break
		}
	}
	if !r.gotOp(")") {
		r.unexpected()
		return item
	}
	item.Stmts = r.list(true)
	if r.err != nil {
		return item
	}
	switch t := r.peek(); {
	case t.kind == tokOp && t.text == ";;":
	case t.kind == tokOp && t.text == ";&":
		item.Op = syntax.Fallthrough
	case t.kind == tokOp && t.text == ";;&":
		item.Op = syntax.Resume
	default:
		return item
	}
	item.OpPos = r.pos(r.take().from)
	return item
}

// functionWord reads function name [()] body.
func (r *reader) functionWord(t token) syntax.Command {
	r.take()
	r.assignOK = false
	n := r.peek()
	if n.kind != tokWord {
		r.missing()
		return &syntax.Block{}
	}
	r.take()
	f := &syntax.FuncDecl{Position: r.pos(t.from), RsrvWord: true, Name: &syntax.Lit{ValuePos: r.pos(n.from), ValueEnd: r.pos(n.to), Value: n.text}}
	if r.isOp("(") {
		saved := *r
		r.take()
		if r.gotOp(")") {
			f.Parens = true
		} else {
			*r = saved // the body is a subshell
		}
	}
	f.Body = r.functionBody()
	return f
}

func (r *reader) coproc(t token) syntax.Command {
	r.take()
	c := &syntax.CoprocClause{Coproc: r.pos(t.from)}
	n := r.peek()
	if n.kind == tokNewline || n.kind == tokEOF {
		r.missing()
		return c
	}
	if n.kind == tokWord && n.assign == nil && !isKeyword(n.text) {
		saved := *r
		saved.docs = append([]*syntax.Redirect(nil), r.docs...)
		r.take()
		next := r.peek()
		if next.kind == tokOp && next.text == "(" || next.kind == tokWord && next.assign == nil && startsCompound(next.text) {
			c.Name = n.word
			c.Stmt = r.command()
			return c
		}
		saved.lineOff, saved.line = r.lineOff, r.line
		*r = saved
	}
	c.Stmt = r.command()
	return c
}

func startsCompound(word string) bool {
	switch word {
	case "{", "[[", "if", "while", "until", "for", "case", "select":
		return true
	}
	return false
}
