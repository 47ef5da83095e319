package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// cmdPrinter lays commands out as bash does in declare -f, in its list of jobs and in BASH_COMMAND. Words are written as
// they stand in the source, but for command substitutions, which bash lays out too.
type cmdPrinter struct {
	sh   *Shell
	src  string // what the nodes were parsed from
	fn   bool   // in a function: one command a line
	sub  bool   // in a command substitution: lines are kept apart
	done bool   // here-documents stand before what was written last
	b    strings.Builder
	docs []*syntax.Redirect // here-documents that follow the line
}

func (sh *Shell) cmdPrinter(u *unit, fn bool) *cmdPrinter {
	p := &cmdPrinter{sh: sh, fn: fn}
	if u != nil {
		p.src = u.text
	}
	return p
}

// commandText writes a command of the text that is being run as bash shows it to people.
func (sh *Shell) commandText(n syntax.Node) string {
	p := sh.cmdPrinter(sh.unit, false)
	switch n := n.(type) {
	case *syntax.Stmt:
		return p.lone(n)
	case *syntax.ForClause:
		head, _ := p.loopHead(n)
		return head
	case *syntax.CaseClause:
		return "case " + p.word(n.Word) + " in "
	case *syntax.FuncDecl:
		return n.Name.Value
	case syntax.Command:
		return p.command(n, 0)
	}
	return sh.nodeText(n)
}

// jobText is how a list of jobs shows a statement. A loop may start many.
func (sh *Shell) jobText(s *syntax.Stmt) string {
	if sh.unit != nil {
		if text, ok := sh.unit.texts.Load(s); ok {
			return text.(string)
		}
	}
	plain := *s
	plain.Background, plain.Disown, plain.Coprocess = false, false, false
	text := sh.commandText(&plain)
	if sh.unit != nil {
		sh.unit.texts.Store(s, text)
	}
	return text
}

func (p *cmdPrinter) lone(s *syntax.Stmt) string {
	p.b.WriteString(p.stmt(s, 0))
	p.flushDocs("")
	return p.b.String()
}

// printFunc writes a function as declare -f does.
func (sh *Shell) printFunc(name string, f *function) string {
	p := sh.cmdPrinter(f.unit, true)
	return name + " () \n" + p.body(f.decl.Body, 0)
}

// body writes that of a function: always in braces.
func (p *cmdPrinter) body(s *syntax.Stmt, depth int) string {
	pad := strings.Repeat("    ", depth)
	list := []*syntax.Stmt{s}
	redirs := ""
	if b, ok := s.Cmd.(*syntax.Block); ok {
		list, redirs = b.Stmts, p.redirs(s)
	}
	text := pad + "{ \n" + p.inner(list, depth+1, "") + "\n" + pad + "}" + redirs
	if len(p.docs) > 0 {
		q := &cmdPrinter{sh: p.sh, src: p.src, fn: true, docs: p.docs}
		p.docs = nil
		q.flushDocs("")
		text += strings.TrimSuffix(q.b.String(), "\n")
	}
	return text
}

// slice returns the source between two places, if they are ones.
func (p *cmdPrinter) slice(from, to uint) (string, bool) {
	if from >= to || to > uint(len(p.src)) {
		return "", false
	}
	return p.src[from:to], true
}

// word writes a word as it stands in the source. Where the source is another one, as within backquotes, it is written anew.
func (p *cmdPrinter) word(w *syntax.Word) string {
	plain := p.sh.nodeText(w)
	if len(w.Parts) == 0 {
		return plain
	}
	from, to := w.Pos().Offset(), w.End().Offset()
	s, ok := p.slice(from, to)
	if !ok || plain == "" || s[0] != '`' && s[0] != plain[0] || s[len(s)-1] != '`' && s[len(s)-1] != plain[len(plain)-1] {
		return plain
	}
	expands := false
	var b strings.Builder
	at := from
	syntax.Walk(w, func(n syntax.Node) bool {
		var stmts []*syntax.Stmt
		head := ""
		switch n := n.(type) {
		case *syntax.ParamExp, *syntax.ArithmExp:
			expands = true
			return true
		case *syntax.SglQuoted:
			start, end := n.Pos().Offset(), n.End().Offset()
			if before, ok := p.slice(at, start); n.Dollar && (ok || at == start) {
				expands = true
				b.WriteString(before + quoteSingle(ansiC(n.Value)))
				at = end
			}
			return true
		case *syntax.DblQuoted:
			start := n.Pos().Offset()
			if before, ok := p.slice(at, start); n.Dollar && (ok || at == start) {
				expands = true
				b.WriteString(before)
				at = start + 1
			}
			return true
		case *syntax.CmdSubst:
			expands = true
			if n.Backquotes {
				return false
			}
			stmts, head = n.Stmts, "$("
		case *syntax.ProcSubst:
			expands = true
			stmts, head = n.Stmts, n.Op.String()
		default:
			return true
		}
		start, end := n.Pos().Offset(), n.End().Offset()
		if before, ok := p.slice(at, start); ok || at == start {
			if text, ok := p.slice(start, end); ok && strings.HasPrefix(text, head) && !strings.Contains(text, "<<") {
				q := &cmdPrinter{sh: p.sh, src: p.src, sub: true}
				b.WriteString(before + head + q.inner(stmts, 0, "") + ")")
				at = end
			}
		}
		return false
	})
	if !expands && s != plain {
		return plain
	}
	if rest, ok := p.slice(at, to); ok {
		b.WriteString(rest)
	}
	if s = b.String(); !strings.Contains(s, "'") {
		s = strings.ReplaceAll(s, "\\\n", "")
	}
	return s
}

func (p *cmdPrinter) assign(a *syntax.Assign) string {
	if a.Naked && a.Name == nil && a.Value != nil {
		return p.word(a.Value)
	}
	s, ok := p.slice(a.Pos().Offset(), a.End().Offset())
	switch {
	case ok && a.Name != nil && strings.HasPrefix(s, a.Name.Value):
		if a.Value != nil && a.Array == nil && len(a.Value.Parts) > 0 {
			if head, ok := p.slice(a.Pos().Offset(), a.Value.Pos().Offset()); ok {
				return head + p.word(a.Value)
			}
		}
		return s
	case a.Name == nil:
		return ""
	case a.Naked:
		return a.Name.Value
	case a.Array != nil:
		return a.Name.Value + "=" + p.sh.nodeText(a.Array)
	case a.Value != nil:
		return a.Name.Value + "=" + p.word(a.Value)
	}
	return a.Name.Value + "="
}

// redirs writes redirections, a space before each.
func (p *cmdPrinter) redirs(s *syntax.Stmt) string {
	var b strings.Builder
	for _, r := range s.Redirs {
		b.WriteByte(' ')
		fd, standard := "", itoa(defaultFd(r.Op))
		if r.Op == syntax.RdrInOut {
			standard = "1"
		}
		if r.N != nil && r.N.Value != standard {
			fd = r.N.Value
		}
		op := r.Op.String()
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			p.docs = append(p.docs, r)
			delim, quoted := delimiter(r.Word)
			if quoted {
				delim = quoteSingle(delim)
			}
			b.WriteString(fd + op + delim)
			continue
		case syntax.DplIn, syntax.DplOut:
			if fd == "" {
				fd = itoa(defaultFd(r.Op))
			}
			b.WriteString(fd + op + p.word(r.Word))
			continue
		}
		b.WriteString(fd + op + " " + p.word(r.Word))
	}
	return b.String()
}

// stmts writes a list: one command a line in a function, else all on one.
func (p *cmdPrinter) stmts(list []*syntax.Stmt, depth int) {
	pad := strings.Repeat("    ", depth)
	for i, s := range list {
		if text := p.stmt(s, depth); i == 0 || p.fn && !list[i-1].Background {
			p.b.WriteString(pad + text)
		} else {
			p.b.WriteString(text)
		}
		last := i == len(list)-1
		if s.Background {
			p.b.WriteString(" &")
			if !last {
				p.b.WriteByte(' ')
			}
			continue
		}
		docs := len(p.docs) > 0
		p.flushDocs("")
		switch {
		case last:
			p.done = p.done || docs
		case p.done || docs:
			p.b.WriteByte('\n')
			p.done = false
		case p.sub && list[i+1].Pos().Line() > s.End().Line():
			p.b.WriteByte('\n')
		case p.fn:
			p.b.WriteString(";\n")
		default:
			p.b.WriteString("; ")
		}
	}
}

// flushDocs writes the bodies of the here-documents.
func (p *cmdPrinter) flushDocs(after string) {
	if len(p.docs) == 0 {
		return
	}
	p.b.WriteByte('\n')
	for _, r := range p.docs {
		body := ""
		if r.Hdoc != nil {
			body = p.sh.nodeText(r.Hdoc)
			delim, _ := delimiter(r.Word)
			if i := strings.Index(p.src[min(len(p.src), int(r.Pos().Offset())):], "\n"); i >= 0 && r.Op == syntax.Hdoc {
				rest := p.src[int(r.Pos().Offset())+i+1:]
				if end := strings.Index("\n"+rest, "\n"+delim+"\n"); end >= 0 && len(p.docs) == 1 {
					body = rest[:end]
				}
			}
			if body != "" && !strings.HasSuffix(body, "\n") {
				body += "\n"
			}
		}
		delim, _ := delimiter(r.Word)
		p.b.WriteString(body + delim + "\n")
	}
	p.b.WriteString(after)
	p.docs = nil
}

// inner lays out a nested list and returns its text.
func (p *cmdPrinter) inner(list []*syntax.Stmt, depth int, last string) string {
	q := &cmdPrinter{sh: p.sh, src: p.src, fn: p.fn, sub: p.sub}
	q.stmts(list, depth)
	s := q.b.String()
	if last != "" && !strings.HasSuffix(s, "&") && !strings.HasSuffix(s, "\n") {
		s += last
	}
	return s
}

// stmt returns a command's text; nested lines are indented from depth on.
func (p *cmdPrinter) stmt(s *syntax.Stmt, depth int) string {
	text := ""
	if s.Cmd != nil {
		text = p.command(s.Cmd, depth)
	}
	if s.Negated {
		text = "! " + text
	}
	if _, isFunc := s.Cmd.(*syntax.FuncDecl); isFunc {
		return text
	}
	return strings.TrimPrefix(text+p.redirs(s), " ")
}

func (p *cmdPrinter) command(c syntax.Command, depth int) string {
	pad := strings.Repeat("    ", depth)
	switch c := c.(type) {
	case *syntax.CallExpr:
		var words []string
		for _, a := range c.Assigns {
			words = append(words, p.assign(a))
		}
		for _, w := range c.Args {
			words = append(words, p.word(w))
		}
		return strings.Join(words, " ")
	case *syntax.DeclClause:
		words := []string{c.Variant.Value}
		for _, a := range c.Args {
			words = append(words, p.assign(a))
		}
		return strings.Join(words, " ")
	case *syntax.Block:
		if !p.fn {
			end := "; }"
			text := p.inner(c.Stmts, 0, "")
			if strings.HasSuffix(text, "&") {
				end = " }"
			}
			return "{ " + text + end
		}
		return "{ \n" + p.inner(c.Stmts, depth+1, "") + "\n" + pad + "}"
	case *syntax.Subshell:
		return "( " + strings.TrimLeft(p.inner(c.Stmts, depth, ""), " ") + " )"
	case *syntax.IfClause:
		return p.ifClause(c, depth)
	case *syntax.WhileClause:
		word := "while "
		if c.Until {
			word = "until "
		}
		return word + strings.TrimLeft(p.inner(c.Cond, depth, ";"), " ") + " do\n" + p.inner(c.Do, depth+1, ";") + "\n" + pad + "done"
	case *syntax.ForClause:
		head, end := p.loopHead(c)
		return head + end + "\n" + pad + "do\n" + p.inner(c.Do, depth+1, ";") + "\n" + pad + "done"
	case *syntax.CaseClause:
		return p.caseClause(c, depth)
	case *syntax.BinaryCmd:
		op := " " + c.Op.String() + " "
		if c.Op == syntax.PipeAll {
			op = " 2>&1 | "
		}
		left := p.stmt(c.X, depth)
		if len(p.docs) > 0 {
			q := &cmdPrinter{sh: p.sh, src: p.src, docs: p.docs}
			p.docs = nil
			q.flushDocs("")
			left += strings.TrimRight(op, " ") + q.b.String()
			p.done, op = true, "  "
		}
		return left + op + p.stmt(c.Y, depth)
	case *syntax.FuncDecl:
		return "function " + c.Name.Value + " () \n" + p.body(c.Body, depth)
	case *syntax.ArithmCmd:
		s, _ := p.slice(c.Left.Offset()+2, c.Right.Offset())
		return "((" + s + "))"
	case *syntax.TestClause:
		return "[[ " + p.test(c.X) + " ]]"
	case *syntax.TimeClause:
		text := "time "
		if c.PosixFormat {
			text = "time -p "
		}
		if c.Stmt != nil {
			text += p.stmt(c.Stmt, depth)
		}
		return text
	case *syntax.CoprocClause:
		name := "COPROC"
		if c.Name != nil {
			name = p.word(c.Name)
		}
		return "coproc " + name + " " + p.stmt(c.Stmt, depth)
	}
	return p.sh.nodeText(c)
}

func (p *cmdPrinter) ifClause(c *syntax.IfClause, depth int) string {
	pad := strings.Repeat("    ", depth)
	out := "if " + strings.TrimLeft(p.inner(c.Cond, depth, ";"), " ") + " then\n" + p.inner(c.Then, depth+1, ";") + "\n"
	switch e := c.Else; {
	case e == nil:
	case len(e.Cond) > 0: // bash takes elif for an if within else
		out += pad + "else\n" + pad + "    " + p.ifClause(e, depth+1) + ";\n"
	default:
		out += pad + "else\n" + p.inner(e.Then, depth+1, ";") + "\n"
	}
	return out + pad + "fi"
}

// loopHead is what stands before do, and what ends it.
func (p *cmdPrinter) loopHead(c *syntax.ForClause) (head, end string) {
	if l, ok := c.Loop.(*syntax.CStyleLoop); ok {
		text, _ := p.slice(l.Lparen.Offset()+2, l.Rparen.Offset())
		parts := strings.Split(text, ";")
		for i, s := range parts {
			if parts[i] = strings.TrimLeft(s, " \t\n"); parts[i] == "" {
				parts[i] = "1"
			}
		}
		return "for ((" + strings.Join(parts, "; ") + "))", ""
	}
	l := c.Loop.(*syntax.WordIter)
	head = "for "
	if c.Select {
		head = "select "
	}
	head += l.Name.Value + " in"
	if !l.InPos.IsValid() {
		return head + ` "$@"`, ";"
	}
	for _, w := range l.Items {
		head += " " + p.word(w)
	}
	if len(l.Items) == 0 {
		head += " "
	}
	return head, ";"
}

func (p *cmdPrinter) caseClause(c *syntax.CaseClause, depth int) string {
	pad := strings.Repeat("    ", depth)
	out := "case " + p.word(c.Word) + " in \n"
	for _, it := range c.Items {
		var pats []string
		for _, w := range it.Patterns {
			pats = append(pats, p.word(w))
		}
		out += pad + "    " + strings.Join(pats, " | ") + ")\n"
		if len(it.Stmts) > 0 {
			out += p.inner(it.Stmts, depth+2, "")
		}
		out += "\n" + pad + "    " + it.Op.String() + "\n"
	}
	return out + pad + "esac"
}

// test writes the expression of [[ ]].
func (p *cmdPrinter) test(x syntax.TestExpr) string {
	switch x := x.(type) {
	case *syntax.Word:
		return "-n " + p.word(x)
	case *syntax.ParenTest:
		return "( " + p.test(x.X) + " )"
	case *syntax.UnaryTest:
		if w, ok := x.X.(*syntax.Word); ok && x.Op != syntax.TsNot {
			return x.Op.String() + " " + p.word(w)
		}
		return x.Op.String() + " " + p.test(x.X)
	case *syntax.BinaryTest:
		side := func(e syntax.TestExpr) string {
			if w, ok := e.(*syntax.Word); ok && x.Op != syntax.AndTest && x.Op != syntax.OrTest {
				return p.word(w)
			}
			return p.test(e)
		}
		return side(x.X) + " " + x.Op.String() + " " + side(x.Y)
	}
	return p.sh.nodeText(x)
}
