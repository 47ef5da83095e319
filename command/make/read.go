package make

import (
	"strings"

	"agentrun.dev/command/tool"
)

// location is a line of a makefile.
type location struct {
	file string
	line int
}

// conditional is an ifeq, ifdef or the like that is open.
type conditional struct {
	active bool // its lines are read
	taken  bool // one of its branches was
	last   bool // else without a condition has come
	outer  bool // the lines around it are read
}

// reader reads one makefile, or the text of an eval.
type reader struct {
	m        *maker
	file     string
	lines    []string
	next     int // the line to be read, from 0
	fixed    bool
	base     location
	conds    []conditional
	rule     *rule // takes the recipe lines that follow
	noTarget bool  // recipe lines that follow belong to a rule that has no targets
}

// readFile reads a makefile. It reports whether there is one.
func (m *maker) readFile(name string) error {
	text, err := []byte(nil), error(nil)
	if name == "-" {
		text, err = m.readStdin()
	} else {
		text, err = m.t.ReadFile(name, maxMakefile)
	}
	if err != nil {
		return err
	}
	list := m.global["MAKEFILE_LIST"]
	if list == nil {
		list = m.set("MAKEFILE_LIST", "", fromFile, false)
	}
	list.value = list.value + " " + name
	m.makefiles = append(m.makefiles, name)
	m.read(&reader{m: m, file: name}, string(text))
	return nil
}

// eval reads a text as a makefile.
func (m *maker) eval(text string) {
	m.read(&reader{m: m, file: m.loc.file, fixed: true, base: m.loc}, text)
}

func (m *maker) read(r *reader, text string) {
	if m.including++; m.including > maxDepth/5 {
		m.fatal(m.loc, "makefiles are nested too deep")
	}
	loc := m.loc
	defer func() { m.loc = loc; m.including-- }()
	text = strings.ReplaceAll(text, "\r\n", "\n")
	r.lines = strings.Split(text, "\n")
	if n := len(r.lines); r.lines[n-1] == "" {
		r.lines = r.lines[:n-1]
	}
	for r.next < len(r.lines) {
		m.step()
		r.line()
	}
	r.closeRule()
	if len(r.conds) > 0 {
		m.loc.line = len(r.lines) + 1
		m.fatal(m.loc, "missing 'endif'")
	}
}

// at says in which line reading is.
func (r *reader) at(n int) {
	r.m.loc = location{r.file, n + 1}
	if r.fixed {
		r.m.loc = r.base
	}
}

func (r *reader) ignoring() bool { return len(r.conds) > 0 && !r.conds[len(r.conds)-1].active }

// continued reports whether a line goes on in the next one.
func continued(s string) bool {
	n := 0
	for n < len(s) && s[len(s)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// line reads one logical line.
func (r *reader) line() {
	m := r.m
	r.at(r.next)
	first := r.lines[r.next]
	r.next++
	if first != "" && first[0] == m.prefix && (r.rule != nil || r.noTarget) {
		text := first[1:]
		for continued(text) && r.next < len(r.lines) {
			more := r.lines[r.next]
			if more != "" && more[0] == m.prefix {
				more = more[1:]
			}
			text += "\n" + more
			r.next++
		}
		if continued(text) {
			text += "\n"
		}
		if !r.ignoring() && r.rule != nil {
			r.rule.recipe.add(text, m.loc)
		}
		return
	}
	text := first
	for continued(text) {
		text = strings.TrimRight(text[:len(text)-1], " \t")
		if r.next == len(r.lines) {
			break
		}
		text += " " + strings.TrimLeft(r.lines[r.next], " \t")
		r.next++
	}
	body := stripComment(text)
	trimmed := strings.TrimLeft(body, " \t")
	if strings.TrimSpace(trimmed) == "" {
		return
	}
	if r.conditional(trimmed) || r.ignoring() {
		return
	}
	if r.statement(trimmed, strings.TrimLeft(text, " \t")) {
		return
	}
	if first[0] == m.prefix && first[0] == '\t' {
		m.fatal(m.loc, "recipe commences before first target")
	}
	r.parseRule(text, body)
}

// stripComment removes a comment, and the backslash of \#.
func stripComment(s string) string {
	i := indexOutside(s, "#")
	if i >= 0 {
		s = s[:i]
	}
	return strings.ReplaceAll(s, `\#`, "#")
}

// indexOutside finds one of some characters that isn't escaped or within a reference.
func indexOutside(s, chars string) int {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s) && strings.IndexByte(chars, s[i+1]) >= 0 && s[i+1] == '#':
			i++
		case c == '$' && i+1 < len(s):
			if s[i+1] == '(' || s[i+1] == '{' {
				if end := closing(s, i+1); end > 0 {
					i = end
				}
			} else {
				i++
			}
		case strings.IndexByte(chars, c) >= 0:
			return i
		}
	}
	return -1
}

// firstWord splits a line after its first word.
func firstWord(s string) (word, rest string) {
	i := strings.IndexAny(s, " \t")
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimLeft(s[i:], " \t")
}

// conditional handles the lines of conditionals, and reports whether this was one.
func (r *reader) conditional(s string) bool {
	m := r.m
	word, rest := firstWord(s)
	if i := strings.IndexByte(word, '('); i > 0 && (word[:i] == "ifeq" || word[:i] == "ifneq") {
		word, rest = s[:i], s[i:]
	}
	switch word {
	case "ifeq", "ifneq", "ifdef", "ifndef":
		if _, assigns := parseAssignment(s); assigns && !strings.HasPrefix(rest, "(") {
			return false
		}
		c := conditional{outer: !r.ignoring()}
		if c.outer {
			c.active = r.condition(word, rest)
			c.taken = c.active
		}
		r.conds = append(r.conds, c)
	case "else":
		if len(r.conds) == 0 {
			m.fatal(m.loc, "extraneous 'else'")
		}
		c := &r.conds[len(r.conds)-1]
		if c.last {
			m.fatal(m.loc, "only one 'else' per conditional")
		}
		word, after := firstWord(rest)
		if i := strings.IndexByte(word, '('); i > 0 {
			word, after = rest[:i], rest[i:]
		}
		switch word {
		case "":
			c.last = true
			c.active = c.outer && !c.taken
		case "ifeq", "ifneq", "ifdef", "ifndef":
			c.active = c.outer && !c.taken && r.condition(word, after)
		default:
			m.warn(m.loc, "extraneous text after 'else' directive")
			c.last = true
			c.active = c.outer && !c.taken
		}
		c.taken = c.taken || c.active
	case "endif":
		if len(r.conds) == 0 {
			m.fatal(m.loc, "extraneous 'endif'")
		}
		if rest != "" {
			m.warn(m.loc, "extraneous text after 'endif' directive")
		}
		r.conds = r.conds[:len(r.conds)-1]
	default:
		return false
	}
	return true
}

// condition evaluates one.
func (r *reader) condition(word, rest string) bool {
	m := r.m
	rest = strings.TrimRight(rest, " \t")
	if word == "ifdef" || word == "ifndef" {
		name := strings.TrimSpace(m.expand(rest))
		if name == "" || strings.ContainsAny(name, " \t") {
			m.fatal(m.loc, "invalid syntax in conditional")
		}
		v := m.find(name)
		return (v != nil && v.value != "") == (word == "ifdef")
	}
	a, b := "", ""
	switch {
	case rest == "":
		m.fatal(m.loc, "invalid syntax in conditional")
	case rest[0] == '(':
		end := closing(rest, 0)
		if end < 0 {
			m.fatal(m.loc, "invalid syntax in conditional")
		}
		args := splitArgs(rest[1:end], '(', 2)
		if len(args) != 2 {
			m.fatal(m.loc, "invalid syntax in conditional")
		}
		if strings.TrimSpace(rest[end+1:]) != "" {
			m.warn(m.loc, "extraneous text after '%s' directive", word)
		}
		a, b = strings.TrimRight(args[0], " \t"), strings.TrimLeft(args[1], " \t")
	case rest[0] == '"' || rest[0] == '\'':
		i := strings.IndexByte(rest[1:], rest[0])
		if i < 0 {
			m.fatal(m.loc, "invalid syntax in conditional")
		}
		a, rest = rest[1:i+1], strings.TrimLeft(rest[i+2:], " \t")
		if rest == "" || rest[0] != '"' && rest[0] != '\'' {
			m.fatal(m.loc, "invalid syntax in conditional")
		}
		if i = strings.IndexByte(rest[1:], rest[0]); i < 0 {
			m.fatal(m.loc, "invalid syntax in conditional")
		}
		b = rest[1 : i+1]
	default:
		m.fatal(m.loc, "invalid syntax in conditional")
	}
	return (m.expand(a) == m.expand(b)) == (word == "ifeq")
}

// statement handles assignments and directives, and reports whether this was one.
func (r *reader) statement(s, raw string) bool {
	m := r.m
	if a, ok := parseAssignment(s); ok {
		r.closeRule()
		m.apply(a, nil)
		return true
	}
	a, rest, ok := modifiers(s)
	if ok && (a.define || a.export || a.unexport || a.override || a.private) {
		word, after := firstWord(rest)
		switch {
		case word == "define" || a.define:
			r.closeRule()
			r.define(a, after)
			return true
		case word == "undefine":
			r.closeRule()
			o := fromFile
			if a.override {
				o = fromOverride
			}
			name := strings.TrimSpace(m.expand(after))
			if v := m.global[name]; v != nil && v.origin <= o {
				delete(m.global, name)
			}
			return true
		}
		if b, isSet := parseAssignment(rest); isSet {
			r.closeRule()
			b.override, b.private = a.override, a.private
			v := m.apply(b, nil)
			v.private = a.private
			if a.export {
				v.export = 1
			} else if a.unexport {
				v.export = -1
			}
			return true
		}
		if a.export || a.unexport {
			r.closeRule()
			m.export(a.export, m.expand(rest))
			return true
		}
		return false
	}
	word, after := firstWord(s)
	switch word {
	case "include", "-include", "sinclude":
		r.closeRule()
		r.include(m.expand(after), word != "include")
		return true
	case "undefine":
		r.closeRule()
		name := strings.TrimSpace(m.expand(after))
		if name == "" {
			m.fatal(m.loc, "empty variable name")
		}
		if v := m.global[name]; v != nil && v.origin <= fromFile {
			delete(m.global, name)
		}
		return true
	case "vpath":
		r.closeRule()
		m.addVpath(words(m.expand(after)))
		return true
	case "load", "-load":
		if !strings.Contains(after, ":") || word == "-load" {
			m.fatal(m.loc, "the 'load' operation is not supported on this platform")
		}
	case "endef":
		m.fatal(m.loc, "extraneous 'endef'")
	}
	return false
}

// modifiers takes export, override and their like off a line.
func modifiers(s string) (a assignment, rest string, any bool) {
	for {
		word, after := firstWord(s)
		switch word {
		case "export":
			a.export = true
		case "unexport":
			a.unexport = true
		case "override":
			a.override = true
		case "private":
			a.private = true
		case "define":
			a.define = true
			return a, s, true
		default:
			return a, s, any
		}
		if strings.HasPrefix(after, ":") { // it is a target
			return assignment{}, s, false
		}
		any, s = true, after
	}
}

// define reads the lines of a variable to endef.
func (r *reader) define(a assignment, head string) {
	m := r.m
	start := m.loc
	op, name := "=", strings.TrimSpace(head)
	if b, ok := parseAssignment(head); ok {
		name, op = b.name, b.op
		if strings.TrimSpace(b.value) != "" {
			m.warn(m.loc, "extraneous text after 'define' directive")
		}
	}
	var text []string
	for depth := 1; ; {
		if r.next == len(r.lines) {
			m.fatal(start, "missing 'endef', unterminated 'define'")
		}
		l := r.lines[r.next]
		r.at(r.next)
		r.next++
		if l == "" || l[0] != m.prefix {
			switch word, rest := firstWord(strings.TrimSpace(stripComment(l))); word {
			case "define":
				depth++
			case "endef":
				if depth--; depth == 0 {
					if rest != "" {
						m.warn(m.loc, "extraneous text after 'endef' directive")
					}
					m.loc = start
					a.name, a.op, a.value = name, op, strings.Join(text, "\n")
					v := m.apply(a, nil)
					if a.export {
						v.export = 1
					}
					return
				}
			}
		}
		for continued(l) && r.next < len(r.lines) && (l == "" || l[0] != m.prefix) {
			l = strings.TrimRight(l[:len(l)-1], " \t") + " " + strings.TrimLeft(r.lines[r.next], " \t")
			r.next++
		}
		text = append(text, l)
	}
}

// include reads other makefiles; those that don't exist may be made later.
func (r *reader) include(list string, optional bool) {
	m := r.m
	for _, w := range words(list) {
		names := []string{w}
		if strings.ContainsAny(w, "*?[~") {
			if found := m.glob(w, true); len(found) > 0 {
				names = found
			}
		}
		for _, name := range names {
			loc := m.loc
			err := m.readFile(name)
			for i := 0; err != nil && i < len(m.includeDirs) && name[0] != '/'; i++ {
				if e := m.readFile(m.includeDirs[i] + "/" + name); e == nil {
					err = nil
				}
			}
			m.loc = loc
			if err != nil {
				if !tool.IsNotExist(err) && !optional {
					m.fatal(m.loc, "%s: %s", name, tool.Strerror(err))
				}
				m.missing = append(m.missing, missing{name, loc, optional})
			}
		}
	}
}

// missing is a makefile that was to be included.
type missing struct {
	name     string
	loc      location
	optional bool
}

// export marks variables, all of them if none is named.
func (m *maker) export(on bool, list string) {
	names := words(list)
	if len(names) == 0 {
		m.exportAll = on
		return
	}
	for _, n := range names {
		v := m.global[n]
		if v == nil {
			v = m.set(n, "", fromFile, false)
		}
		if v.export = -1; on {
			v.export = 1
		}
	}
}
