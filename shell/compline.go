package shell

import (
	"slices"
	"strings"

	"agentrun.dev/shell/lineedit"
)

// cursor is what is completed: the word before the cursor, and the command that it belongs to.
type cursor struct {
	words []string // of the command, as COMP_WORDS
	cword int
	from  int    // where the word begins in the line
	word  string // its text, unquoted
	raw   string
	quote byte // the quote that is open, 0 for none
	first bool // it is a command's name
	redir bool // it follows a redirection
	name  string
}

// cursorAt finds the word that ends at point.
func (sh *Shell) cursorAt(line string, point int) cursor {
	text := line[:point]
	c := cursor{}
	start := 0 // of the command
	from := -1 // of the word
	var starts, ends []int
	var quote byte
	prevRedir := false
	reset := func(i int) { start, from, starts, ends, prevRedir = i, -1, nil, nil, false }
	for i := 0; i < len(text); i++ {
		ch := text[i]
		switch {
		case quote == '\'':
			if ch == '\'' {
				quote = 0
			}
		case ch == '\\':
			if from < 0 {
				from = i
			}
			i++
		case quote == '"' && ch == '"':
			quote = 0
		case ch == '$' && strings.HasPrefix(text[i:], "$(") && !strings.HasPrefix(text[i:], "$(("), ch == '`':
			if ch == '$' {
				i++
			}
			quote = 0
			reset(i + 1)
		case quote != 0:
		case ch == '"' || ch == '\'':
			if from < 0 {
				from = i
			}
			quote = ch
		case ch == ' ' || ch == '\t':
			if from >= 0 {
				starts, ends = append(starts, from), append(ends, i)
				from, prevRedir = -1, false
			}
		case ch == '>' || ch == '<':
			from, prevRedir = -1, true
		case ch == ';' || ch == '|' || ch == '&' && !prevRedir || ch == '(' || ch == ')' || ch == '\n' || ch == '{' && from < 0:
			reset(i + 1)
		default:
			if from < 0 {
				from = i
			}
		}
	}
	if from < 0 {
		from = len(text)
	}
	starts, ends = append(starts, from), append(ends, len(text))
	c.redir, c.quote, c.from = prevRedir, quote, from
	c.raw = text[from:]
	c.word = unquoted(c.raw)
	// Assignments and words after which a command begins don't count.
	for len(starts) > 1 {
		w := text[starts[0]:ends[0]]
		name, _, eq := strings.Cut(w, "=")
		if !(eq && validName(name) || slices.Contains([]string{"if", "then", "else", "elif", "while", "until", "do", "!", "time", "{"}, w)) {
			break
		}
		starts, ends = starts[1:], ends[1:]
	}
	c.first = len(starts) == 1 && !c.redir
	_ = start
	if len(starts) > 1 || !c.first {
		c.name = unquoted(text[starts[0]:ends[0]])
	}
	for i := range starts {
		c.words = append(c.words, sh.breakWord(text[starts[i]:ends[i]])...)
		if i == len(starts)-1 && starts[i] == ends[i] {
			c.words = append(c.words, "")
		}
	}
	c.cword = len(c.words) - 1
	// What follows the cursor belongs to COMP_WORDS, too.
	rest, _, _ := strings.Cut(line[point:], "\n")
	if i := strings.IndexAny(rest, ";|&"); i >= 0 {
		rest = rest[:i]
	}
	for i, w := range strings.Fields(rest) {
		if i == 0 && rest[0] != ' ' && len(c.words) > 0 {
			c.words[c.cword] += w
			continue
		}
		c.words = append(c.words, sh.breakWord(w)...)
	}
	return c
}

// breakWord splits a word at COMP_WORDBREAKS, each run of which is a word of its own.
func (sh *Shell) breakWord(s string) []string {
	breaks, ok := sh.get("COMP_WORDBREAKS")
	if !ok {
		breaks = "\"'><=;|&(:"
	}
	var out []string
	var quote byte
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\' && quote != '\'':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case strings.IndexByte(breaks, c) >= 0:
			if from < i {
				out = append(out, s[from:i])
			}
			k := i
			for i+1 < len(s) && strings.IndexByte(breaks, s[i+1]) >= 0 && s[i+1] != '"' && s[i+1] != '\'' {
				i++
			}
			out = append(out, s[k:i+1])
			from = i + 1
		}
	}
	if from < len(s) {
		out = append(out, s[from:])
	} else if from > 0 {
		out = append(out, "")
	}
	return out
}

// unquoted removes the quotes of a word that may be open.
func unquoted(s string) string {
	var b strings.Builder
	var quote byte
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote == '\'' && c != '\'':
			b.WriteByte(c)
		case c == '\\' && i+1 < len(s) && quote != '\'':
			i++
			if quote == '"' && strings.IndexByte("$`\"\\", s[i]) < 0 {
				b.WriteByte('\\')
			}
			b.WriteByte(s[i])
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// completions are the candidates for a word.
type completions struct {
	list  []string
	from  int  // where in the line what they replace begins
	files bool // they are paths
	spec  *compSpec
	quote byte
}

// completions finds what the word at the cursor may become.
func (sh *Shell) completions(ed *lineedit.Editor, kind string) completions {
	line, point := ed.Text(), ed.Point()
	c := sh.cursorAt(line, point)
	out := completions{from: c.from, quote: c.quote}
	if c.quote != 0 {
		if i := strings.LastIndexByte(c.raw, c.quote); i >= 0 && i == 0 {
			out.from++
		}
	}
	switch {
	case kind == "complete-command" || kind == "possible-command-completions":
		out.list = sh.compAction("command", c.word)
		return out
	case kind == "complete-variable" || kind == "possible-variable-completions":
		out.list = sh.compAction("variable", strings.TrimPrefix(c.word, "$"))
		if strings.HasPrefix(c.word, "$") {
			out.from++
		}
		return out
	case kind == "complete-username":
		out.list = sh.compAction("user", strings.TrimPrefix(c.word, "~"))
		return out
	case kind == "complete-hostname":
		out.list = sh.compAction("hostname", c.word)
		return out
	case kind == "complete-filename" || kind == "possible-filename-completions":
		out.list, out.files = sh.fileCandidates(c.word, false), true
		return out
	}
	if sh.shopts.get("progcomp") && !c.redir {
		if sh.programmed(&out, c, line, point) {
			return out
		}
	}
	sh.defaultCompletions(&out, c)
	return out
}

// programmed completes by a specification; false when there is none, or it leaves the rest to the defaults.
func (sh *Shell) programmed(out *completions, c cursor, line string, point int) bool {
	for range 10 {
		name := c.name
		var spec *compSpec
		switch {
		case c.first && c.word == "" && strings.TrimSpace(line) == "":
			name = ""
			spec = sh.comps[compEmpty]
		case c.first:
			name = c.word
			spec = sh.comps[compInitial]
		default:
			if spec = sh.comps[name]; spec == nil {
				spec = sh.comps[name[strings.LastIndexByte(name, '/')+1:]]
			}
			if spec == nil {
				spec = sh.comps[compDefault]
			}
		}
		if spec == nil {
			return false
		}
		word, prev := "", ""
		if c.cword >= 0 && c.cword < len(c.words) {
			word = c.words[c.cword]
		}
		if c.cword > 0 {
			prev = c.words[c.cword-1]
		}
		if word != "" && strings.HasSuffix(c.raw, word) && c.quote == 0 {
			out.from = c.from + len(c.raw) - len(word)
		} else if word == "" && c.raw != "" {
			out.from = c.from + len(c.raw)
		}
		list, again := sh.generate(spec, compLine{name: name, word: unquoted(word), prev: prev, line: line, point: point, words: c.words, cword: c.cword, kind: 9})
		now := sh.compNow
		sh.compNow = nil
		if again {
			continue
		}
		out.spec, out.list = now, list
		if now == nil {
			out.spec = spec
		}
		out.files = out.spec.has("filenames") || len(spec.actions) > 0 && slices.ContainsFunc(spec.actions, func(a string) bool { return a == "file" || a == "directory" })
		if !out.spec.has("nosort") {
			slices.Sort(out.list)
			out.list = slices.Compact(out.list)
		}
		if len(list) > 0 {
			return true
		}
		out.from = c.from
		if out.spec.has("bashdefault") {
			return false
		}
		if out.spec.has("default") {
			out.list, out.files = sh.fileCandidates(c.word, false), true
		}
		return true
	}
	return false
}

// defaultCompletions are bash's own: commands, variables, users, files.
func (sh *Shell) defaultCompletions(out *completions, c cursor) {
	out.spec = nil
	word := c.word
	if i := strings.LastIndexAny(c.raw, "=:"); i >= 0 && c.quote == 0 && !strings.HasSuffix(c.raw[:i], "\\") {
		// The value of an assignment or an option, or one of a list of paths.
		word = unquoted(c.raw[i+1:])
		out.from = c.from + i + 1
	}
	i := strings.LastIndexByte(word, '$')
	switch {
	case c.quote != '\'' && i >= 0 && !strings.ContainsAny(word[i:], "/ ("):
		name := strings.TrimPrefix(word[i+1:], "{")
		brace := strings.HasPrefix(word[i+1:], "{")
		head := word[:len(word)-len(name)]
		for _, v := range sh.compAction("variable", name) {
			if brace {
				v += "}"
			}
			out.list = append(out.list, head+v)
		}
		out.quote = '$' // inserted as it is
	case strings.HasPrefix(word, "~") && !strings.Contains(word, "/"):
		for _, u := range sh.compAction("user", word[1:]) {
			out.list = append(out.list, "~"+u)
		}
		out.files, out.quote = true, '$'
	case c.first && out.from == c.from && !strings.Contains(word, "/"):
		if word == "" && sh.shopts.get("no_empty_cmd_completion") {
			return
		}
		out.list = sh.compAction("command", word)
		slices.Sort(out.list)
		out.list = slices.Compact(out.list)
		for _, d := range sh.fileCandidates(word, true) {
			if word != "" && !slices.Contains(out.list, d) {
				out.list = append(out.list, d)
				out.files = true
			}
		}
	default:
		out.list, out.files = sh.fileCandidates(word, false), true
		if ignore := sh.str("FIGNORE"); ignore != "" && len(out.list) > 1 {
			kept := slices.DeleteFunc(slices.Clone(out.list), func(s string) bool {
				return slices.ContainsFunc(strings.Split(ignore, ":"), func(suffix string) bool { return suffix != "" && strings.HasSuffix(s, suffix) })
			})
			if len(kept) > 0 {
				out.list = kept
			}
		}
	}
}

// commonPrefix returns what all candidates begin with.
func commonPrefix(list []string) string {
	p := list[0]
	for _, s := range list[1:] {
		n := 0
		for n < len(p) && n < len(s) && p[n] == s[n] {
			n++
		}
		for n > 0 && n < len(p) && p[n]&0xc0 == 0x80 {
			n--
		}
		p = p[:n]
	}
	return p
}

func (sh *Shell) isDir(path string) bool {
	if strings.HasPrefix(path, "~") {
		user, rest, _ := strings.Cut(path[1:], "/")
		home := sh.str("HOME")
		if user != "" {
			home, _ = sh.homeOf(user, 0)
		}
		path = home + "/" + rest
	}
	a, err := sh.p.Stat(path)
	return err == nil && a.Mode.IsDir()
}

// quoted writes a candidate as it stands in the line.
func (c *completions) quoted(s string) string {
	switch {
	case c.spec != nil && (c.spec.has("noquote") || !c.files), c.quote == '$':
		return s
	case c.quote == '\'':
		return strings.ReplaceAll(s, "'", `'\''`)
	case c.quote == '"':
		return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(s)
	}
	head := ""
	if strings.HasPrefix(s, "~") {
		head, s = "~", s[1:]
	}
	if s == "" {
		return head
	}
	if needsANSI(s) {
		return head + quoteANSI(s)
	}
	return head + strings.ReplaceAll(quoteBackslash(s), `\,`, ",")
}

// editorEvent does what the editor can't do itself.
func (sh *Shell) editorEvent(ed *lineedit.Editor, ev lineedit.Event) {
	switch ev {
	case lineedit.Run:
		sh.runBound(ed)
	case lineedit.Expand:
		sh.expandLine(ed)
	case lineedit.Complete, lineedit.Show, lineedit.All:
		if sh.readline.get("disable-completion") == "on" {
			ed.Insert(ed.Point(), "\t")
			return
		}
		saved := sh.status
		c := sh.completions(ed, ed.Arg)
		sh.status = saved
		sh.offer(ed, ev, &c)
	}
}

// offer inserts what is certain of the candidates, or shows them.
func (sh *Shell) offer(ed *lineedit.Editor, ev lineedit.Event, c *completions) {
	if len(c.list) == 0 {
		ed.Ding()
		return
	}
	if ev == lineedit.All {
		words := make([]string, len(c.list))
		for i, s := range c.list {
			words[i] = c.quoted(s)
		}
		ed.Insert(c.from, strings.Join(words, " ")+" ")
		return
	}
	if len(c.list) == 1 && ev == lineedit.Complete {
		s := c.list[0]
		text := c.quoted(s)
		nospace := c.spec != nil && c.spec.has("nospace")
		switch {
		case c.files && sh.isDir(s):
			if !strings.HasSuffix(text, "/") {
				text += "/"
			}
			nospace = true
		case c.quote == '"' || c.quote == '\'':
			text += string(c.quote)
		}
		if !nospace {
			text += " "
		}
		ed.Insert(c.from, text)
		return
	}
	before := ed.Text()
	if p := commonPrefix(c.list); ev == lineedit.Complete && p != "" {
		if text := c.quoted(p); len(text) > ed.Point()-c.from || c.quote != 0 {
			ed.Insert(c.from, text)
		}
	}
	if ev == lineedit.Complete && ed.Text() != before {
		ed.Ding()
		return
	}
	if ev == lineedit.Complete && !ed.Again() && sh.readline.get("show-all-if-ambiguous") != "on" {
		ed.Ding()
		return
	}
	items := make([]string, len(c.list))
	for i, s := range c.list {
		if items[i] = s; c.files {
			dir := sh.isDir(s)
			if k := strings.LastIndexByte(strings.TrimSuffix(s, "/"), '/'); k >= 0 {
				items[i] = s[k+1:]
			}
			if dir && !strings.HasSuffix(items[i], "/") {
				items[i] += "/"
			}
		}
	}
	ed.List(items)
}

// runBound runs a command of bind -x, which may change the line.
func (sh *Shell) runBound(ed *lineedit.Editor) {
	sh.set("READLINE_LINE", ed.Text())
	sh.set("READLINE_POINT", itoa(ed.Point()))
	st := sh.status
	ed.Hide()
	sh.say(ed.Out)
	ed.Out = nil
	sh.evalText(ed.Arg)
	sh.status = st
	ed.Redraw()
	if text := sh.str("READLINE_LINE"); text != ed.Text() || sh.str("READLINE_POINT") != itoa(ed.Point()) {
		point, _ := plainInt(sh.str("READLINE_POINT"))
		ed.Set(text, int(point))
	}
	sh.unset("READLINE_LINE")
	sh.unset("READLINE_POINT")
}

// expandLine does what an editing command expands in the line.
func (sh *Shell) expandLine(ed *lineedit.Editor) {
	line := ed.Text()
	switch ed.Arg {
	case "history-expand-line", "history-and-alias-expand-line", "magic-space":
		out, changed, fail := sh.expandHistory(line)
		if fail != "" {
			ed.Ding()
			return
		}
		if changed {
			ed.Set(out, len(out))
		}
		if ed.Arg == "magic-space" {
			ed.Insert(ed.Point(), " ")
		}
	case "shell-expand-line":
		if sh.textWord(line, modeText) == nil {
			ed.Ding()
			return
		}
		words := sh.wordCandidates(line)
		for i, w := range words {
			words[i] = quoteSet(w)
		}
		text := strings.Join(words, " ")
		ed.Set(text, len(text))
	case "alias-expand-line":
		name, rest, _ := strings.Cut(line, " ")
		if v, ok := sh.aliases[name]; ok {
			line = strings.TrimRight(v+" "+rest, " ")
			ed.Set(line, len(line))
		}
	default:
		c := sh.cursorAt(line, ed.Point())
		if strings.HasPrefix(c.word, "~") {
			user, rest, _ := strings.Cut(c.word[1:], "/")
			home, ok := sh.str("HOME"), user == ""
			if !ok {
				home, ok = sh.homeOf(user, 0)
			}
			if ok {
				if rest != "" || strings.Contains(c.word, "/") {
					home += "/" + rest
				}
				ed.Insert(c.from, home)
				return
			}
		}
		ed.Ding()
	}
}
