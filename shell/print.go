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
	ps4 := plainPrompt(sh.prompt(sh.str("PS4")))
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

// splitLit splits literal text at IFS, where a backslash quotes.
func (e *expander) splitLit(s string) {
	for i := strings.IndexByte(s, '\\'); i >= 0 && i+1 < len(s); i = strings.IndexByte(s, '\\') {
		_, n := decode(s[i+1:])
		e.addSplit(s[:i])
		e.add(s[i+1:i+1+n], true)
		s = s[i+1+n:]
	}
	e.addSplit(s)
}

func (sh *Shell) rawSplit(e *expander, s string) {
	w := sh.textWord(s, modeText)
	if w == nil {
		e.addSplit(s)
	} else {
		for _, p := range w.Parts {
			if l, ok := p.(*syntax.Lit); ok {
				e.splitLit(l.Value)
			} else {
				e.parts([]syntax.WordPart{p}, false)
			}
		}
	}
	e.finish()
}
