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
	}
	if pr.Print(&b, n) != nil {
		return ""
	}
	return strings.TrimRight(b.String(), "\n")
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
	// The first character is repeated for each level of text within text: command substitution, eval, source, traps.
	if ps4 != "" {
		_, n := decode(ps4)
		ps4 = strings.Repeat(ps4[:n], sh.level()+1) + ps4[n:]
	}
	if f, err := sh.p.File(fd); err == nil {
		sh.writeAll(f, []byte(ps4+text+"\n"))
	}
}

// level counts the texts within texts that are being run.
func (sh *Shell) level() int {
	n := sh.traceLevel
	for _, f := range sh.frames {
		if t, ok := f.(*textFrame); ok && t.kind != textScript && !t.flat {
			n++
		}
	}
	return min(n, 99)
}

func (sh *Shell) traceArgs(args []string) {
	out := make([]string, len(args))
	for i, a := range args {
		switch {
		case a == "":
			out[i] = "''"
		case strings.ContainsAny(a, " \t\n'\"\\|&;()<>!{}*[]?^$`"):
			out[i] = quoteSingle(a)
		default:
			out[i] = quoteSet(a)
		}
	}
	sh.trace(strings.Join(out, " "))
}

func (sh *Shell) traceFor(c *syntax.ForClause, words []string) {
	sh.trace(sh.commandText(c))
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
