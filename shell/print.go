package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// nodeText writes a piece of a script back, on one line where it can.
func (sh *Shell) nodeText(n syntax.Node) string {
	var b strings.Builder
	pr := syntax.NewPrinter(syntax.Indent(4), syntax.SpaceRedirects(false))
	switch x := n.(type) {
	case *syntax.ArrayExpr:
		b.WriteByte('(')
		for i, e := range x.Elems {
			if i > 0 {
				b.WriteByte(' ')
			}
			if e.Index != nil {
				if w, ok := e.Index.(*syntax.Word); ok {
					b.WriteString("[" + sh.nodeText(w) + "]=")
				}
			}
			if e.Value != nil {
				b.WriteString(sh.nodeText(e.Value))
			}
		}
		b.WriteByte(')')
		return b.String()
	case *syntax.ParamExp:
		if pr.Print(&b, x) != nil {
			return "${" + x.Param.Value + "}"
		}
		return b.String()
	case *syntax.FuncDecl:
		return x.Name.Value
	case *syntax.ForClause:
		if l, ok := x.Loop.(*syntax.WordIter); ok {
			b.WriteString("for " + l.Name.Value)
			if l.InPos.IsValid() {
				b.WriteString(" in")
				for _, w := range l.Items {
					b.WriteString(" " + sh.nodeText(w))
				}
			}
			return b.String()
		}
	}
	if pr.Print(&b, n) != nil {
		return ""
	}
	return strings.TrimRight(b.String(), "\n")
}

// printFunc writes a function as declare -f does.
func (sh *Shell) printFunc(name string, f *function) string {
	p := &funcPrinter{sh: sh}
	p.line(0, name+" () ")
	body := f.decl.Body
	if b, ok := body.Cmd.(*syntax.Block); ok {
		p.line(0, "{ ")
		p.stmts(b.Stmts, 1)
		p.line(0, "}"+p.redirs(body))
	} else {
		p.line(0, "{ ")
		p.stmts([]*syntax.Stmt{body}, 1)
		p.line(0, "}")
	}
	return strings.TrimSuffix(p.b.String(), "\n")
}

// funcPrinter lays commands out as bash does: four spaces, a semicolon after each but the last.
type funcPrinter struct {
	sh   *Shell
	b    strings.Builder
	docs []*syntax.Redirect // here-documents that follow the line
}

func (p *funcPrinter) line(depth int, s string) {
	p.b.WriteString(strings.Repeat("    ", depth) + s + "\n")
}

func (p *funcPrinter) redirs(s *syntax.Stmt) string {
	var b strings.Builder
	for _, r := range s.Redirs {
		b.WriteByte(' ')
		if r.N != nil {
			b.WriteString(r.N.Value)
		}
		b.WriteString(r.Op.String())
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			p.docs = append(p.docs, r)
		case syntax.DplIn, syntax.DplOut:
		default:
			b.WriteByte(' ')
		}
		b.WriteString(p.sh.nodeText(r.Word))
	}
	return b.String()
}

// stmts writes a list, one command a line.
func (p *funcPrinter) stmts(list []*syntax.Stmt, depth int) {
	for i, s := range list {
		text := p.stmt(s, depth)
		end := ";"
		if i == len(list)-1 || s.Background {
			end = ""
		}
		if s.Background {
			text += " &"
		}
		if len(p.docs) > 0 {
			end = ""
		}
		p.line(depth, text+end)
		p.flushDocs()
	}
}

func (p *funcPrinter) flushDocs() {
	for _, r := range p.docs {
		if r.Hdoc != nil {
			p.b.WriteString(p.sh.nodeText(r.Hdoc))
			if !strings.HasSuffix(p.b.String(), "\n") {
				p.b.WriteByte('\n')
			}
		}
		p.b.WriteString(strings.Trim(p.sh.nodeText(r.Word), "'\"\\") + "\n")
	}
	p.docs = nil
}

// inner lays out a nested list and returns its text, without the last newline.
func (p *funcPrinter) inner(list []*syntax.Stmt, depth int, last string) string {
	q := &funcPrinter{sh: p.sh}
	q.stmts(list, depth)
	s := strings.TrimSuffix(q.b.String(), "\n")
	if last != "" && !strings.HasSuffix(s, "&") {
		s += last
	}
	return s
}

// stmt returns a command's text; nested lines are indented from depth on.
func (p *funcPrinter) stmt(s *syntax.Stmt, depth int) string {
	text := ""
	if s.Cmd != nil {
		text = p.command(s.Cmd, depth)
	}
	if s.Negated {
		text = "! " + text
	}
	return strings.TrimPrefix(text+p.redirs(s), " ")
}

func (p *funcPrinter) command(c syntax.Command, depth int) string {
	pad := strings.Repeat("    ", depth)
	switch c := c.(type) {
	case *syntax.Block:
		return "{ \n" + p.inner(c.Stmts, depth+1, "") + "\n" + pad + "}"
	case *syntax.Subshell:
		return "( " + strings.TrimLeft(p.inner(c.Stmts, depth, ""), " ") + " )"
	case *syntax.IfClause:
		out := ""
		for i := c; i != nil; i = i.Else {
			cond := strings.TrimLeft(p.inner(i.Cond, depth, ""), " ")
			switch {
			case i == c:
				out += "if " + cond + "; then\n"
			case len(i.Cond) > 0:
				// bash nests elif as an if within else.
				return out + pad + "else\n" + pad + "    " + p.command(i, depth+1) + ";\n" + pad + "fi"
			default:
				out += pad + "else\n"
			}
			out += p.inner(i.Then, depth+1, ";") + "\n"
		}
		return out + pad + "fi"
	case *syntax.WhileClause:
		word := "while "
		if c.Until {
			word = "until "
		}
		return word + strings.TrimLeft(p.inner(c.Cond, depth, ""), " ") + "; do\n" + p.inner(c.Do, depth+1, ";") + "\n" + pad + "done"
	case *syntax.ForClause:
		head := p.sh.nodeText(c)
		if l, ok := c.Loop.(*syntax.CStyleLoop); ok {
			part := func(x syntax.ArithmExpr) string {
				if x == nil {
					return "1"
				}
				return p.arith(x)
			}
			head = "for ((" + part(l.Init) + "; " + part(l.Cond) + "; " + part(l.Post) + "))"
		} else {
			head += ";"
		}
		return head + "\n" + pad + "do\n" + p.inner(c.Do, depth+1, ";") + "\n" + pad + "done"
	case *syntax.CaseClause:
		out := "case " + p.sh.nodeText(c.Word) + " in \n"
		for _, it := range c.Items {
			var pats []string
			for _, w := range it.Patterns {
				pats = append(pats, p.sh.nodeText(w))
			}
			out += pad + "    " + strings.Join(pats, " | ") + ")\n"
			if len(it.Stmts) > 0 {
				out += p.inner(it.Stmts, depth+2, "")
			}
			out += "\n"
			out += pad + "    " + it.Op.String() + "\n"
		}
		return out + pad + "esac"
	case *syntax.BinaryCmd:
		return p.stmt(c.X, depth) + " " + c.Op.String() + " " + p.stmt(c.Y, depth)
	case *syntax.FuncDecl:
		body := ""
		if b, ok := c.Body.Cmd.(*syntax.Block); ok {
			body = "{ \n" + p.inner(b.Stmts, depth+1, "") + "\n" + pad + "}"
		} else {
			body = "{ \n" + p.inner([]*syntax.Stmt{c.Body}, depth+1, "") + "\n" + pad + "}"
		}
		return "function " + c.Name.Value + " () \n" + pad + body
	case *syntax.ArithmCmd:
		return "((" + p.arith(c.X) + "))"
	}
	return p.sh.nodeText(c)
}

func (p *funcPrinter) arith(x syntax.ArithmExpr) string {
	s := p.sh.nodeText(&syntax.ArithmExp{X: x})
	return strings.TrimSuffix(strings.TrimPrefix(s, "$(("), "))")
}

// importFunc defines a function that came in the environment.
func (sh *Shell) importFunc(name, text string) {
	if !strings.HasPrefix(text, "() {") {
		return
	}
	r := sh.newReader(name + " " + text)
	stmts := r.lineOf()
	if r.err != nil || len(stmts) != 1 || strings.TrimSpace(r.src[r.i:]) != "" {
		return
	}
	if d, ok := stmts[0].Cmd.(*syntax.FuncDecl); ok && d.Name.Value == name {
		sh.setFunc(name, &function{decl: d, unit: sh.newUnit(name+" "+text, stmts), source: "environment", export: true})
	}
}

// Tracing, set -x.

func (sh *Shell) trace(text string) {
	fd := 2
	if s, ok := sh.get("BASH_XTRACEFD"); ok {
		if n, ok := plainInt(s); ok {
			fd = int(n)
		}
	}
	sh.touch()
	sh.opts.xtrace = false
	ps4 := sh.prompt(sh.expandPrompt(sh.str("PS4")))
	sh.opts.xtrace = true
	// The first character is repeated for each level of command substitution.
	if ps4 != "" {
		_, n := decode(ps4)
		ps4 = strings.Repeat(ps4[:n], sh.subshell*0+1) + ps4[n:]
	}
	if f, err := sh.p.File(fd); err == nil {
		sh.writeAll(f, []byte(ps4+text+"\n"))
	}
}

func (sh *Shell) traceArgs(args []string) {
	out := make([]string, len(args))
	for i, a := range args {
		if out[i] = quoteSet(a); a == "" {
			out[i] = "''"
		}
	}
	sh.trace(strings.Join(out, " "))
}

func (sh *Shell) traceFor(c *syntax.ForClause, words []string) {
	sh.trace(sh.nodeText(c))
}

// expandPrompt expands parameters and commands in a prompt.
func (sh *Shell) expandPrompt(s string) string {
	if !strings.ContainsAny(s, "$`") || !sh.shopts.get("promptvars") {
		return s
	}
	w := sh.textWord(s, modeHeredoc)
	if w == nil {
		return s
	}
	return sh.heredoc(w)
}

// prompt decodes the escapes of PS1.
func (sh *Shell) prompt(s string) string {
	var b strings.Builder
	now := sh.p.Sandbox().Now().In(sh.location())
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'u':
			if u := sh.str("USER"); u != "" {
				b.WriteString(u)
			} else {
				b.WriteString("user")
			}
		case 'h', 'H':
			h := sh.p.Sandbox().Hostname()
			if s[i] == 'h' {
				h, _, _ = strings.Cut(h, ".")
			}
			b.WriteString(h)
		case 'w':
			b.WriteString(sh.tilded(sh.str("PWD")))
		case 'W':
			d := sh.tilded(sh.str("PWD"))
			if d != "/" {
				d = d[strings.LastIndexByte(d, '/')+1:]
			}
			b.WriteString(d)
		case '$':
			if sh.p.Cred().UID == 0 {
				b.WriteByte('#')
			} else {
				b.WriteByte('$')
			}
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 'a':
			b.WriteByte(7)
		case 'e':
			b.WriteByte(27)
		case '[', ']':
		case '\\':
			b.WriteByte('\\')
		case 's':
			b.WriteString(sh.name[strings.LastIndexByte(sh.name, '/')+1:])
		case 'v':
			b.WriteString("5.2")
		case 'V':
			b.WriteString("5.2.15")
		case 'j':
			b.WriteString(itoa(len(sh.jobs)))
		case '#', '!':
			b.WriteByte('1')
		case 't':
			b.WriteString(now.Format("15:04:05"))
		case 'T':
			b.WriteString(now.Format("03:04:05"))
		case '@':
			b.WriteString(now.Format("03:04 PM"))
		case 'A':
			b.WriteString(now.Format("15:04"))
		case 'd':
			b.WriteString(now.Format("Mon Jan 02"))
		case 'D':
			if i+1 < len(s) && s[i+1] == '{' {
				if end := strings.IndexByte(s[i:], '}'); end > 0 {
					b.WriteString(strftime(now, s[i+2:i+end]))
					i += end
				}
			}
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n, j := 0, i
			for j < len(s) && j < i+3 && s[j] >= '0' && s[j] <= '7' {
				n = n<<3 | int(s[j]-'0')
				j++
			}
			b.WriteByte(byte(n))
			i = j - 1
		default:
			b.WriteString(s[i-1 : i+1])
		}
	}
	return b.String()
}

// menu lays out the choices of select in columns.
func (sh *Shell) menu(words []string) string {
	width := len(itoa(len(words)))
	longest := 0
	for _, w := range words {
		longest = max(longest, runeCount(w))
	}
	cols := 1
	total := 80
	if n, ok := plainInt(sh.str("COLUMNS")); ok && n > 0 {
		total = int(n)
	}
	cell := longest + width + 2
	if c := total / (cell + 2); c > 1 {
		cols = c
	}
	rows := (len(words) + cols - 1) / cols
	if cols = (len(words) + rows - 1) / rows; rows == 1 {
		rows, cols = len(words), 1
	}
	var b strings.Builder
	for r := 0; r < rows; r++ {
		for c := 0; c < cols; c++ {
			i := c*rows + r
			if i >= len(words) {
				break
			}
			num := itoa(i + 1)
			text := strings.Repeat(" ", width-len(num)) + num + ") " + words[i]
			b.WriteString(text)
			if (c+1)*rows+r < len(words) {
				b.WriteString(strings.Repeat(" ", max(1, cell+2-runeCount(text))))
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func builtinCompgen(sh *Shell, args []string) int {
	args = args[1:]
	var list []string
	word, before, after := "", "", ""
	for i := 0; i < len(args); i++ {
		a := args[i]
		val := func() string {
			if i++; i < len(args) {
				return args[i]
			}
			return ""
		}
		switch a {
		case "-W":
			e := &expander{sh: sh, split: true, litSplit: true}
			sh.rawSplit(e, val())
			for _, f := range e.fields {
				list = sh.globField(list, f)
			}
		case "-A":
			list = append(list, sh.compAction(val())...)
		case "-P":
			before = val()
		case "-S":
			after = val()
		case "-X", "-F", "-C", "-G", "-o":
			val()
		case "-v", "-a", "-b", "-c", "-d", "-f", "-k", "-e":
			list = append(list, sh.compAction(map[string]string{"-v": "variable", "-a": "alias", "-b": "builtin", "-c": "command", "-d": "directory", "-f": "file", "-k": "keyword", "-e": "export"}[a])...)
		case "--":
		default:
			word = a
		}
	}
	found := 1
	for _, s := range list {
		if strings.HasPrefix(s, word) {
			sh.print(before + s + after + "\n")
			found = 0
		}
	}
	return found
}

func (sh *Shell) rawSplit(e *expander, s string) {
	w := sh.textWord(s, modeText)
	if w == nil {
		e.addSplit(s)
	} else {
		for _, p := range w.Parts {
			if l, ok := p.(*syntax.Lit); ok {
				e.addSplit(l.Value)
			} else {
				e.parts([]syntax.WordPart{p}, false)
			}
		}
	}
	e.finish()
}

func (sh *Shell) compAction(kind string) []string {
	switch kind {
	case "variable":
		return sh.namesWith("")
	case "export":
		var out []string
		for _, n := range sh.namesWith("") {
			if v := sh.lookup(n); v.attr&attrExport != 0 {
				out = append(out, n)
			}
		}
		return out
	case "function":
		return sortedKeys(sh.funcs)
	case "alias":
		return sortedKeys(sh.aliases)
	case "builtin":
		return builtinNames()
	case "keyword":
		return strings.Fields("if then else elif fi case esac for select while until do done in function time { } ! [[ ]] coproc")
	case "command":
		out := append(sortedKeys(sh.aliases), builtinNames()...)
		out = append(out, sortedKeys(sh.funcs)...)
		return append(out, sh.p.Sandbox().Commands().Names()...)
	case "shopt":
		return sortedKeys(sh.shopts.on)
	case "setopt":
		var out []string
		for _, e := range optionTable() {
			out = append(out, e.name)
		}
		return out
	case "file", "directory":
		var out []string
		entries, _ := sh.p.ReadDir(".")
		for _, e := range entries {
			if kind == "file" || e.Mode.IsDir() {
				out = append(out, e.Name)
			}
		}
		return out
	}
	return nil
}
