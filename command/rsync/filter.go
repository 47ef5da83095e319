package rsync

import (
	"strings"

	"agentrun.dev/command/tool"
)

// rule is a filter rule.
type rule struct {
	pattern  string
	include  bool
	dirOnly  bool
	anchored bool // the pattern begins at the root of the transfer
	path     bool // it is matched with the whole path
	protects bool // it concerns deletion only: P and R
	hides    bool // it concerns sending only: H and S
	negated  bool
}

// filter is a list of rules; the first that matches decides.
type filter struct{ rules []rule }

// maxRules bounds a list.
const maxRules = 100000

// add reads a rule as --filter has it, or as it is sent.
func (f *filter) add(s string) bool {
	if s == "" || len(f.rules) >= maxRules {
		return s == ""
	}
	if s == "!" || s == "clear" {
		f.rules = nil
		return true
	}
	var r rule
	kind, rest, ok := strings.Cut(s, " ")
	if !ok {
		kind, rest, ok = strings.Cut(s, "_")
	}
	if !ok {
		return false
	}
	word, mods, _ := strings.Cut(kind, ",")
	if len(word) > 1 {
		if long, ok := map[string]string{"exclude": "-", "include": "+", "hide": "H", "show": "S", "protect": "P", "risk": "R"}[word]; ok {
			word = long
		} else {
			word, mods = word[:1], word[1:]+mods
		}
	}
	switch word {
	case "-":
	case "+":
		r.include = true
	case "H":
		r.hides = true
	case "S":
		r.include, r.hides = true, true
	case "P":
		r.protects = true
	case "R":
		r.include, r.protects = true, true
	default:
		return false
	}
	for _, m := range mods {
		switch m {
		case '/':
			r.anchored = true
		case '!':
			r.negated = true
		case 's':
			r.hides = true
		case 'r':
			r.protects = true
		case 'p', 'x', 'C':
		default:
			return false
		}
	}
	f.append(r, rest)
	return true
}

func (f *filter) append(r rule, pattern string) {
	if p, ok := strings.CutSuffix(pattern, "/"); ok && p != "" {
		r.dirOnly, pattern = true, p
	}
	if p, ok := strings.CutPrefix(pattern, "/"); ok {
		r.anchored, pattern = true, p
	}
	r.path = r.anchored || strings.Contains(pattern, "/") || strings.Contains(pattern, "**")
	r.pattern = pattern
	f.rules = append(f.rules, r)
}

// match reports whether a rule concerns a name.
func (r *rule) match(name string, dir bool) bool {
	if r.dirOnly && !dir {
		return false
	}
	if !r.path {
		return globPath(r.pattern, name[strings.LastIndexByte(name, '/')+1:])
	}
	if r.anchored {
		return globPath(r.pattern, name)
	}
	if strings.Contains(r.pattern, "**") && globPath(r.pattern, "/"+name) {
		return true
	}
	// Not anchored: it may begin after any slash.
	for at := 0; ; {
		if globPath(r.pattern, name[at:]) {
			return true
		}
		i := strings.IndexByte(name[at:], '/')
		if i < 0 {
			return false
		}
		at += i + 1
	}
}

// globPath matches a pattern in which * stops at slashes and ** doesn't. "dir/***" also matches "dir".
func globPath(pattern, name string) bool {
	if base, ok := strings.CutSuffix(pattern, "/***"); ok {
		return globPath(base, name) || globPath(base+"/**", name)
	}
	before, after, ok := strings.Cut(pattern, "**")
	if !ok {
		return tool.Glob(pattern, name, tool.GlobPathname)
	}
	after = strings.TrimLeft(after, "*")
	for i := 0; i <= len(name); i++ {
		if !tool.Glob(before, name[:i], tool.GlobPathname) {
			continue
		}
		for j := i; j <= len(name); j++ {
			if globPath(after, name[j:]) {
				return true
			}
		}
	}
	return false
}

// excluded reports whether a file isn't sent (sending), or isn't deleted.
func (f *filter) excluded(name string, dir, sending bool) bool {
	for i := range f.rules {
		r := &f.rules[i]
		if sending && r.protects || !sending && r.hides {
			continue
		}
		if r.match(name, dir) != r.negated {
			return !r.include
		}
	}
	return false
}

// send writes the rules for the other side.
func (f *filter) send(w *writer) {
	for _, r := range f.rules {
		s := r.wire()
		w.int(int32(len(s)))
		w.Write([]byte(s))
	}
	w.int(0)
}

func (r *rule) wire() string {
	s := "-"
	if r.include {
		s = "+"
	}
	if r.negated {
		s += "!"
	}
	if r.hides {
		s += "s"
	}
	if r.protects {
		s += "r"
	}
	s += " "
	if r.anchored {
		s += "/"
	}
	s += r.pattern
	if r.dirOnly {
		s += "/"
	}
	return s
}

// receive reads rules. Those that aren't known end the session: going on without them could delete too much.
func (f *filter) receive(r *reader) error {
	for {
		n := r.int()
		if r.err != nil || n == 0 {
			return r.err
		}
		if n < 0 || n > maxName+16 {
			r.fail("overflow in a filter rule")
			return r.err
		}
		s := string(r.bytes(int(n)))
		if r.err == nil && !f.add(s) {
			return &failure{1, "unsupported filter rule: " + s}
		}
	}
}
