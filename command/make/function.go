package make

import (
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"

	"agentrun.dev/command/tool"
)

// function is one that makefiles call.
type function struct {
	name        string
	least, most int // arguments; most 0 is any number
	lazy        bool
	call        func(m *maker, args []string) string
}

// functionOf finds the function that the text of a reference calls, and its arguments' text.
func (m *maker) functionOf(body string) (*function, string) {
	n := 0
	for n < len(body) && (body[n] >= 'a' && body[n] <= 'z' || body[n] == '-') {
		n++
	}
	if n == 0 || n == len(body) || body[n] != ' ' && body[n] != '\t' {
		return nil, ""
	}
	return m.functions[body[:n]], strings.TrimLeft(body[n:], " \t")
}

func (m *maker) function(f *function, text string, open byte) string {
	args := splitArgs(text, open, f.most)
	if len(args) < f.least {
		m.fatal(m.loc, "insufficient number of arguments (%d) to function '%s'", len(args), f.name)
	}
	if !f.lazy {
		for i := range args {
			args[i] = m.expand(args[i])
		}
	}
	return f.call(m, args)
}

// each applies a function to every word.
func each(text string, f func(string) (string, bool)) string {
	var out []string
	for _, w := range words(text) {
		if s, ok := f(w); ok {
			out = append(out, s)
		}
	}
	return strings.Join(out, " ")
}

// allFunctions are the functions by name.
func allFunctions() map[string]*function {
	table := make(map[string]*function)
	for _, f := range append(textFunctions(), otherFunctions()...) {
		table[f.name] = &f
	}
	return table
}

// textFunctions are those that only look at their arguments.
func textFunctions() []function {
	return []function{
		{"subst", 3, 3, false, func(m *maker, a []string) string {
			if a[0] == "" {
				return a[2] + a[1]
			}
			if n := strings.Count(a[2], a[0]); n*len(a[1]) > maxText {
				m.fatal(m.loc, "%v", errTooLarge)
			}
			return strings.ReplaceAll(a[2], a[0], a[1])
		}},
		{"patsubst", 3, 3, false, func(m *maker, a []string) string { return patsubst(a[0], a[1], a[2]) }},
		{"strip", 0, 1, false, func(m *maker, a []string) string { return strings.Join(words(a[0]), " ") }},
		{"findstring", 2, 2, false, func(m *maker, a []string) string {
			if strings.Contains(a[1], a[0]) {
				return a[0]
			}
			return ""
		}},
		{"filter", 2, 2, false, func(m *maker, a []string) string { return m.filter(a, true) }},
		{"filter-out", 2, 2, false, func(m *maker, a []string) string { return m.filter(a, false) }},
		{"sort", 0, 1, false, func(m *maker, a []string) string {
			w := words(a[0])
			sort.Strings(w)
			return strings.Join(slices.Compact(w), " ")
		}},
		{"word", 2, 2, false, func(m *maker, a []string) string {
			n := m.number("first", "word", a[0])
			if n == 0 {
				m.fatal(m.loc, "first argument to 'word' function must be greater than 0")
			}
			if w := words(a[1]); n <= len(w) {
				return w[n-1]
			}
			return ""
		}},
		{"wordlist", 3, 3, false, func(m *maker, a []string) string {
			from, to := m.number("first", "wordlist", a[0]), m.number("second", "wordlist", a[1])
			if from < 1 {
				m.fatal(m.loc, "invalid first argument to 'wordlist' function: '%d'", from)
			}
			w := words(a[2])
			if to = min(to, len(w)); from > to {
				return ""
			}
			return strings.Join(w[from-1:to], " ")
		}},
		{"words", 0, 1, false, func(m *maker, a []string) string { return strconv.Itoa(len(words(a[0]))) }},
		{"firstword", 0, 1, false, func(m *maker, a []string) string {
			if w := words(a[0]); len(w) > 0 {
				return w[0]
			}
			return ""
		}},
		{"lastword", 0, 1, false, func(m *maker, a []string) string {
			if w := words(a[0]); len(w) > 0 {
				return w[len(w)-1]
			}
			return ""
		}},
		{"dir", 0, 1, false, func(m *maker, a []string) string {
			return each(a[0], func(w string) (string, bool) { return dirOf(w), true })
		}},
		{"notdir", 0, 1, false, func(m *maker, a []string) string {
			return each(a[0], func(w string) (string, bool) {
				s := w[strings.LastIndexByte(w, '/')+1:]
				return s, true
			})
		}},
		{"suffix", 0, 1, false, func(m *maker, a []string) string {
			return each(a[0], func(w string) (string, bool) {
				s := suffixOf(w)
				return s, s != ""
			})
		}},
		{"basename", 0, 1, false, func(m *maker, a []string) string {
			return each(a[0], func(w string) (string, bool) { return strings.TrimSuffix(w, suffixOf(w)), true })
		}},
		{"addsuffix", 2, 2, false, func(m *maker, a []string) string {
			return each(a[1], func(w string) (string, bool) { return w + a[0], true })
		}},
		{"addprefix", 2, 2, false, func(m *maker, a []string) string {
			return each(a[1], func(w string) (string, bool) { return a[0] + w, true })
		}},
		{"join", 2, 2, false, func(m *maker, a []string) string {
			x, y := words(a[0]), words(a[1])
			for i, w := range y {
				if i < len(x) {
					x[i] += w
				} else {
					x = append(x, w)
				}
			}
			return strings.Join(x, " ")
		}},
	}
}

// otherFunctions are those that look at files, variables and commands.
func otherFunctions() []function {
	return []function{
		{"wildcard", 0, 1, false, func(m *maker, a []string) string {
			var out []string
			for _, w := range words(a[0]) {
				out = append(out, m.glob(w, true)...)
			}
			return strings.Join(out, " ")
		}},
		{"realpath", 0, 1, false, func(m *maker, a []string) string {
			return each(a[0], func(w string) (string, bool) {
				s, err := m.t.Realpath(w)
				if err == nil {
					_, err = m.t.Lstat(s)
				}
				return s, err == nil
			})
		}},
		{"abspath", 0, 1, false, func(m *maker, a []string) string {
			return each(a[0], func(w string) (string, bool) { return m.absolute(w), true })
		}},
		{"if", 2, 3, true, func(m *maker, a []string) string {
			if m.expand(strings.Trim(a[0], " \t\n")) != "" {
				return m.expand(a[1])
			}
			if len(a) > 2 {
				return m.expand(a[2])
			}
			return ""
		}},
		{"or", 1, 0, true, func(m *maker, a []string) string {
			for _, x := range a {
				if s := m.expand(strings.Trim(x, " \t\n")); s != "" {
					return s
				}
			}
			return ""
		}},
		{"and", 1, 0, true, func(m *maker, a []string) string {
			s := ""
			for _, x := range a {
				if s = m.expand(strings.Trim(x, " \t\n")); s == "" {
					return ""
				}
			}
			return s
		}},
		{"foreach", 3, 3, true, func(m *maker, a []string) string { return m.foreach(a) }},
		{"call", 1, 0, false, func(m *maker, a []string) string { return m.callVariable(a) }},
		{"value", 0, 1, false, func(m *maker, a []string) string {
			if v := m.find(a[0]); v != nil {
				return v.value
			}
			return ""
		}},
		{"eval", 0, 1, false, func(m *maker, a []string) string {
			m.eval(a[0])
			return ""
		}},
		{"origin", 0, 1, false, func(m *maker, a []string) string {
			v := m.find(a[0])
			if v == nil {
				return "undefined"
			}
			return originNames[v.origin]
		}},
		{"flavor", 0, 1, false, func(m *maker, a []string) string {
			switch v := m.find(a[0]); {
			case v == nil:
				return "undefined"
			case v.recursive:
				return "recursive"
			}
			return "simple"
		}},
		{"shell", 0, 1, false, func(m *maker, a []string) string { return m.shell(a[0]) }},
		{"error", 0, 1, false, func(m *maker, a []string) string {
			m.fatal(m.loc, "%s", a[0])
			return ""
		}},
		{"warning", 0, 1, false, func(m *maker, a []string) string {
			m.warn(m.loc, "%s", a[0])
			return ""
		}},
		{"info", 0, 1, false, func(m *maker, a []string) string {
			m.t.Out.WriteString(a[0] + "\n")
			return ""
		}},
		{"file", 1, 2, false, func(m *maker, a []string) string { return m.fileFunction(a) }},
	}
}

func dirOf(w string) string {
	if i := strings.LastIndexByte(w, '/'); i >= 0 {
		return w[:i+1]
	}
	return "./"
}

func suffixOf(w string) string {
	i := strings.LastIndexByte(w, '.')
	if i < 0 || strings.IndexByte(w[i:], '/') >= 0 {
		return ""
	}
	return w[i:]
}

func (m *maker) number(which, name, s string) int {
	s = strings.Trim(s, " \t\n")
	n, err := strconv.ParseInt(s, 10, 31)
	if err != nil || n < 0 {
		m.fatal(m.loc, "non-numeric %s argument to '%s' function: '%s'", which, name, s)
	}
	return int(n)
}

func (m *maker) filter(a []string, keep bool) string {
	exact, patterns := map[string]bool{}, []string(nil)
	for _, p := range words(a[0]) {
		if strings.IndexByte(p, '%') < 0 {
			exact[p] = true
		} else {
			patterns = append(patterns, p)
		}
	}
	return each(a[1], func(w string) (string, bool) {
		m.step()
		matched := exact[w]
		for i := 0; i < len(patterns) && !matched; i++ {
			_, matched = matchPattern(patterns[i], w)
		}
		return w, matched == keep
	})
}

func (m *maker) foreach(a []string) string {
	name, list := strings.Trim(m.expand(a[0]), " \t\n"), m.expand(a[1])
	v := &variable{name: name, origin: automatic}
	m.top = &frame{vars: scope{name: v}, next: m.top}
	defer func() { m.top = m.top.next }()
	var out []string
	size := 0
	for _, w := range words(list) {
		v.value = w
		s := m.expand(a[2])
		if size += len(s); size > maxText {
			m.fatal(m.loc, "%v", errTooLarge)
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

// callVariable expands a variable with $(1), $(2) and so on set.
func (m *maker) callVariable(a []string) string {
	name := strings.Trim(a[0], " \t\n")
	if f := m.functions[name]; f != nil && !f.lazy {
		args := a[1:]
		if f.most > 0 && len(args) > f.most {
			args = append(args[:f.most-1:f.most-1], strings.Join(args[f.most-1:], ","))
		}
		if len(args) < f.least {
			m.fatal(m.loc, "insufficient number of arguments (%d) to function '%s'", len(args), f.name)
		}
		if len(args) == 0 {
			args = []string{""}
		}
		return f.call(m, args)
	}
	v := m.find(name)
	if v == nil || v.value == "" {
		return ""
	}
	vars := scope{}
	for i, s := range append([]string{name}, a[1:]...) {
		n := strconv.Itoa(i)
		vars[n] = &variable{name: n, value: s, origin: automatic}
	}
	for i := len(a); i < 10; i++ { // those of an outer call don't show
		n := strconv.Itoa(i)
		vars[n] = &variable{name: n, origin: automatic}
	}
	m.top = &frame{vars: vars, next: m.top}
	was := v.unexpanded
	v.unexpanded = true
	defer func() { v.unexpanded, m.top = was, m.top.next }()
	return m.value(name)
}

// fileFunction is $(file OP NAME,TEXT).
func (m *maker) fileFunction(a []string) string {
	op, name := "", strings.Trim(a[0], " \t\n")
	for _, o := range []string{">>", ">", "<"} {
		if strings.HasPrefix(name, o) {
			op, name = o, strings.Trim(name[len(o):], " \t\n")
			break
		}
	}
	switch {
	case op == "":
		m.fatal(m.loc, "file: invalid file operation: %s", name)
	case name == "":
		m.fatal(m.loc, "file: missing filename")
	case op == "<":
		if len(a) > 1 {
			m.fatal(m.loc, "file: too many arguments")
		}
		text, err := m.t.ReadFile(name, maxText)
		if err != nil && !tool.IsNotExist(err) {
			m.fatal(m.loc, "read: %s: %s", name, tool.Strerror(err))
		}
		return strings.TrimSuffix(string(text), "\n")
	}
	flags := syscall.O_WRONLY | syscall.O_CREAT | syscall.O_TRUNC
	if op == ">>" {
		flags = syscall.O_WRONLY | syscall.O_CREAT | syscall.O_APPEND
	}
	f, err := m.t.Process.Open(name, flags, 0o666)
	if err != nil {
		m.fatal(m.loc, "open: %s: %s", name, tool.Strerror(err))
	}
	if len(a) > 1 {
		text := a[1]
		if text != "" && !strings.HasSuffix(text, "\n") || text == "" {
			text += "\n"
		}
		if _, err = f.Write([]byte(text)); err != nil {
			m.fatal(m.loc, "write: %s: %s", name, tool.Strerror(err))
		}
	}
	if err := f.Close(); err != nil {
		m.fatal(m.loc, "close: %s: %s", name, tool.Strerror(err))
	}
	return ""
}
