package shell

import (
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// frag is a piece of a field; q tells that it was quoted, so that it is neither split nor a pattern.
type frag struct {
	s string
	q bool
}

// expander collects the fields of a word.
type expander struct {
	sh       *Shell
	fields   [][]frag
	cur      []frag
	has      bool // cur is a field, even if it is empty
	split    bool // unquoted results are split at IFS
	litSplit bool // literal text is split as well: inside ${x:-…}
	assign   bool // an assignment's value: ~ after : too, and $* joins
	pattern  bool // a backslash of a variable's value quotes
	emptyAt  bool // "$@" without parameters was seen
	redo     bool // no brace expansion
}

func (e *expander) add(s string, q bool) {
	if s == "" && !q {
		return
	}
	e.has = true
	if n := len(e.cur); n > 0 && e.cur[n-1].q == q {
		e.cur[n-1].s = e.sh.concat(e.cur[n-1].s, s)
		return
	}
	e.cur = append(e.cur, frag{s, q})
}

// copyPart is how much is copied at once. Nothing can stop a goroutine within a copy, and now and then all must stop.
const (
	copyPart    = 256 << 10
	stepsOfPart = 32
)

// concat is a + b.
func (sh *Shell) concat(a, b string) string {
	if len(a)+len(b) < 2*copyPart {
		return a + b
	}
	var all strings.Builder
	all.Grow(len(a) + len(b))
	for _, s := range [2]string{a, b} {
		for len(s) > 0 {
			n := min(len(s), copyPart)
			all.WriteString(s[:n])
			s = s[n:]
			sh.mayGoOn(stepsOfPart)
		}
	}
	return all.String()
}

func (e *expander) finish() {
	if e.has {
		if e.fields = append(e.fields, e.cur); len(e.fields)%stepFields == 0 {
			e.sh.mayGoOn(1)
		}
	}
	e.cur, e.has = nil, false
}

// addSplit adds the result of an unquoted expansion.
func (e *expander) addSplit(s string) {
	if !e.split {
		e.add(s, false)
		return
	}
	ifs := e.sh.ifs()
	if ifs == "" || !strings.ContainsAny(s, ifs) {
		e.add(s, false)
		return
	}
	start := 0
	for i := 0; i < len(s); {
		_, n := decode(s[i:])
		if !strings.Contains(ifs, s[i:i+n]) {
			i += n
			continue
		}
		e.add(s[start:i], false)
		// A delimiter is white space, or one other character with white space around it.
		hard := false
		for i < len(s) {
			_, n := decode(s[i:])
			if !strings.Contains(ifs, s[i:i+n]) {
				break
			}
			if !isIFSSpace(s[i]) {
				if hard {
					break
				}
				hard = true
			}
			i += n
		}
		if hard && !e.has {
			e.has = true // an empty field before the delimiter
		}
		e.finish()
		start = i
	}
	e.add(s[start:], false)
}

func isIFSSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

// ifs returns IFS, its default when unset.
func (sh *Shell) ifs() string {
	if s, ok := sh.get("IFS"); ok {
		return s
	}
	return " \t\n"
}

// ifsFirst is what "$*" joins with.
func (sh *Shell) ifsFirst() string {
	s := sh.ifs()
	if s == "" {
		return ""
	}
	_, n := decode(s)
	return s[:n]
}

// plainLit returns a word that is expanded by being what it is.
func plainLit(w *syntax.Word) (string, bool) {
	if len(w.Parts) != 1 {
		return "", false
	}
	switch p := w.Parts[0].(type) {
	case *syntax.Lit:
		if !strings.ContainsAny(p.Value, "\\*?[{~(") {
			return p.Value, true
		}
	case *syntax.SglQuoted:
		if !p.Dollar {
			return p.Value, true
		}
	}
	return "", false
}

// words expands words into fields: braces, tildes, parameters, commands, arithmetic, splitting, file names, quotes.
func (sh *Shell) words(ws []*syntax.Word) []string {
	out := make([]string, 0, len(ws))
	for _, w := range ws {
		if out = sh.appendWord(out, w); len(out) > manyWords && int64(len(out)) > sh.p.Sandbox().Limits().Memory/expandedSize {
			sh.errorf("%d words: memory limit exceeded", len(out))
			panic(abort{kind: abortDiscard, status: 1})
		}
	}
	return out
}

func (sh *Shell) appendWord(out []string, w *syntax.Word) []string {
	if s, ok := plainLit(w); ok {
		return append(out, s)
	}
	if !sh.opts.braceexpand || !hasBrace(w) {
		return sh.appendParts(out, w.Parts)
	}
	if q, ok := wholeSeq(w); ok {
		return sh.sequence(out, q)
	}
	if text, plain := flatten(w.Parts); plain {
		if open, shut := strings.IndexByte(text, '{'), strings.IndexByte(text, '}'); open >= 0 && shut > open {
			if n, tooMany := braceCount(text[open+1 : shut]); tooMany {
				sh.errorf("brace expansion: failed to allocate memory for %d elements", n)
			}
		}
	}
	for i, parts := range sh.braces(w.Parts) {
		sh.braceMade(i)
		out = sh.appendParts(out, parts)
	}
	return out
}

func (sh *Shell) appendParts(out []string, parts []syntax.WordPart) []string {
	e := &expander{sh: sh, split: true}
	e.parts(parts, false)
	e.finish()
	for i, f := range e.fields {
		if i%stepFields == stepFields-1 {
			sh.mayGoOn(1)
		}
		out = sh.globField(out, f)
	}
	return out
}

// string expands a word without splitting and file names, as an assignment's value.
func (sh *Shell) string(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	if s, ok := plainLit(w); ok {
		return s
	}
	e := &expander{sh: sh}
	e.parts(w.Parts, false)
	return e.joined()
}

// value expands what is assigned to a variable.
func (sh *Shell) value(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	if s, ok := plainLit(w); ok && !strings.Contains(s, "~") {
		return s
	}
	e := &expander{sh: sh, assign: true}
	e.parts(w.Parts, false)
	return e.joined()
}

func (e *expander) joined() string {
	e.finish()
	if len(e.fields) == 1 && len(e.fields[0]) == 1 {
		return e.fields[0][0].s
	}
	size := len(e.fields)
	for _, f := range e.fields {
		for _, x := range f {
			size += len(x.s)
		}
	}
	e.sh.makeRoom(size)
	var b strings.Builder
	b.Grow(size)
	for i, f := range e.fields {
		if i > 0 {
			b.WriteByte(' ')
		}
		for _, x := range f {
			b.WriteString(x.s)
		}
	}
	return b.String()
}

// patternOf expands a word into a pattern: what was quoted matches itself only.
func (sh *Shell) patternOf(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	return sh.patternParts(w.Parts, false)
}

func (sh *Shell) patternParts(parts []syntax.WordPart, quoted bool) string {
	e := &expander{sh: sh, pattern: true}
	e.parts(parts, quoted)
	e.finish()
	var b strings.Builder
	for i, f := range e.fields {
		if i > 0 {
			b.WriteByte(' ')
		}
		for _, x := range f {
			if x.q {
				b.WriteString(quotePattern(x.s))
			} else {
				b.WriteString(x.s)
			}
		}
	}
	return b.String()
}

// heredoc expands the body of a here-document whose delimiter wasn't quoted.
func (sh *Shell) heredoc(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	e := &expander{sh: sh}
	e.quoted(w.Parts, true)
	return e.joined()
}

// parts expands the parts of a word outside of quotes, or, inside of double quotes, with quoted set.
func (e *expander) parts(parts []syntax.WordPart, quoted bool) {
	if quoted {
		e.quoted(parts, false)
		return
	}
	for i, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			e.lit(p.Value, i == 0, i+1 < len(parts))
		case *syntax.SglQuoted:
			if p.Dollar {
				e.add(ansiC(p.Value), true)
			} else {
				e.add(p.Value, true)
			}
			e.has = true
		case *syntax.DblQuoted:
			e.dblQuoted(p.Parts)
		case *syntax.ParamExp:
			e.sh.param(e, p, false)
		case *syntax.CmdSubst:
			e.addSplit(e.sh.commandSubst(p))
		case *syntax.ArithmExp:
			e.addSplit(e.sh.arithExp(p))
		case *syntax.ProcSubst:
			e.add(e.sh.procSubst(p), true)
		}
	}
}

func (e *expander) dblQuoted(parts []syntax.WordPart) {
	had, before := e.has, len(e.fields)
	e.emptyAt = false
	e.quoted(parts, false)
	if e.emptyAt && e.has == had && len(e.fields) == before {
		return // "$@" without parameters is no field
	}
	e.has = true
	if len(e.cur) == 0 {
		e.cur = append(e.cur, frag{"", true})
	}
}

// quoted expands parts inside of double quotes, or of a here-document, where a double quote is itself.
func (e *expander) quoted(parts []syntax.WordPart, heredoc bool) {
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			e.add(unescapeDouble(p.Value, heredoc), true)
		case *syntax.SglQuoted:
			if p.Dollar {
				e.add(ansiC(p.Value), true)
			} else {
				e.add("'"+p.Value+"'", true)
			}
		case *syntax.DblQuoted:
			e.quoted(p.Parts, false)
		case *syntax.ParamExp:
			e.sh.param(e, p, true)
		case *syntax.CmdSubst:
			e.add(e.sh.commandSubst(p), true)
		case *syntax.ArithmExp:
			e.add(e.sh.arithExp(p), true)
		case *syntax.ProcSubst:
			e.add(e.sh.procSubst(p), true)
		}
	}
}

// unescapeDouble removes the backslashes that double quotes give a meaning.
func unescapeDouble(s string, heredoc bool) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch c := s[i+1]; {
			case c == '\n':
				i++
				continue
			case c == '$' || c == '`' || c == '\\' || c == '"' && !heredoc:
				i++
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// lit expands unquoted literal text: a tilde at the beginning, backslashes.
func (e *expander) lit(s string, first, more bool) {
	if first && strings.HasPrefix(s, "~") && !e.has {
		s = e.tilde(s, more)
	}
	if eq := strings.Index(s, "=~"); first && eq > 0 && !e.assign && e.split && !e.litSplit && !e.sh.opts.posix && validName(s[:eq]) {
		// bash takes any word that looks like an assignment for one here.
		e.add(s[:eq+1], false)
		s = e.tilde(s[eq+1:], more)
	}
	if e.assign && strings.Contains(s, ":~") {
		e.colonTildes(s, more)
		return
	}
	e.escaped(s)
}

func (e *expander) colonTildes(s string, more bool) {
	for {
		i := strings.Index(s, ":~")
		if i < 0 {
			e.escaped(s)
			return
		}
		e.escaped(s[:i+1])
		s = e.tilde(s[i+1:], more)
	}
}

// tilde adds what a tilde prefix at the beginning of s stands for and returns the rest.
func (e *expander) tilde(s string, more bool) string {
	end := strings.IndexByte(s, '/')
	if e.assign {
		if i := strings.IndexByte(s, ':'); i >= 0 && (end < 0 || i < end) {
			end = i
		}
	}
	if end < 0 {
		if more {
			return s // the prefix isn't all literal
		}
		end = len(s)
	}
	if strings.IndexByte(s[:end], '\\') >= 0 {
		return s
	}
	dir, ok := e.sh.tildeDir(s[1:end])
	if !ok {
		return s
	}
	if strings.HasSuffix(dir, "/") && end < len(s) && s[end] == '/' {
		dir = strings.TrimSuffix(dir, "/")
	}
	e.add(dir, true)
	e.has = true
	return s[end:]
}

// tildeDir returns the directory behind ~name.
func (sh *Shell) tildeDir(name string) (string, bool) {
	switch name {
	case "":
		if h, ok := sh.get("HOME"); ok {
			return h, true
		}
		return sh.homeOf("", int(sh.p.Cred().UID))
	case "+":
		return sh.get("PWD")
	case "-":
		return sh.get("OLDPWD")
	}
	if c := name[0]; c >= '0' && c <= '9' || (c == '+' || c == '-') && len(name) > 1 {
		if s, ok := sh.dirStackEntry(name); ok {
			return s, true
		}
		return "", false
	}
	return sh.homeOf(name, -1)
}

// escaped adds unquoted literal text whose backslashes quote.
func (e *expander) escaped(s string) {
	plain := func(s string) {
		if e.litSplit {
			e.addSplit(s)
		} else {
			e.add(s, false)
		}
	}
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			plain(s)
			return
		}
		plain(s[:i])
		if i+1 == len(s) {
			e.add("\\", true)
			return
		}
		_, n := utf8.DecodeRuneInString(s[i+1:])
		if s[i+1] != '\n' {
			e.add(s[i+1:i+1+n], true)
		}
		s = s[i+1+n:]
	}
}

// rawWord parses text as one word and expands it.
func (sh *Shell) rawWord(e *expander, s string) {
	w := sh.textWord(s, modeText)
	if w == nil {
		e.add(s, false)
		return
	}
	e.parts(w.Parts, false)
}

// hasBrace tells whether a word may contain a brace expansion.
func hasBrace(w *syntax.Word) bool {
	for _, p := range w.Parts {
		if l, ok := p.(*syntax.Lit); ok && strings.IndexByte(l.Value, '{') >= 0 {
			return true
		}
	}
	return false
}
