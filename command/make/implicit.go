package make

import (
	"slices"
	"strings"
)

// found is a pattern rule that fits a target.
type found struct {
	p       *pattern
	at      int // which of its targets
	stem    string
	dir     string // taken off the name before it was matched
	any     bool   // the target is % alone
	literal int
}

// implicit looks for a pattern rule that makes a target, and gives the target its recipe and prerequisites.
func (m *maker) implicit(t *target) bool {
	return m.search(t, nil, 0)
}

func (m *maker) search(t *target, used []*pattern, depth int) bool {
	if depth > 10 || t.phony {
		return false
	}
	m.step()
	candidates := m.candidates(t.name, used, depth)
	for _, chain := range []bool{false, true} {
		for i := range candidates {
			f := &candidates[i]
			if deps, ok := m.fits(t, f, used, chain, depth); ok {
				m.adopt(t, f, deps)
				return true
			}
		}
	}
	return false
}

// candidates are the rules whose targets match a name, those with the shortest stems first.
func (m *maker) candidates(name string, used []*pattern, depth int) []found {
	dir, base := "", name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		dir, base = name[:i+1], name[i+1:]
	}
	var list []found
	specific := false
	for _, p := range m.patterns {
		for at, target := range p.targets {
			f := found{p: p, at: at, any: target == "%"}
			word := name
			if !strings.Contains(target, "/") {
				word, f.dir = base, dir
			}
			stem, ok := matchPattern(target, word)
			if !ok || stem == "" && !f.any && len(target) == len(word) && false {
				continue
			}
			if f.any && stem == "" {
				continue
			}
			f.stem = stem
			specific = specific || !f.any && m.active(p)
			if p.recipe != nil && p.recipe.given && !slices.Contains(used, p) && m.active(p) {
				list = append(list, f)
			}
		}
	}
	list = slices.DeleteFunc(list, func(f found) bool {
		return f.any && !f.p.terminal && (depth > 0 || specific)
	})
	slices.SortStableFunc(list, func(a, b found) int { return len(a.stem) - len(b.stem) })
	return list
}

// active reports whether a rule is in force: built-in ones are while their suffixes are known.
func (m *maker) active(p *pattern) bool {
	for _, s := range p.suffixes {
		if !contains(m.suffixes, s) {
			return false
		}
	}
	return true
}

// fits reports whether the prerequisites of a rule exist, or with chain can be made by further rules.
func (m *maker) fits(t *target, f *found, used []*pattern, chain bool, depth int) ([]dep, bool) {
	deps := m.patternDeps(t, f)
	var made []*target
	for _, d := range deps {
		if m.available(d.name) {
			continue
		}
		if !chain || f.p.terminal {
			return nil, false
		}
		next := &target{name: d.name}
		if !m.search(next, append(used[:len(used):len(used)], f.p), depth+1) {
			return nil, false
		}
		made = append(made, next)
	}
	for _, n := range made {
		if old := m.targets[n.name]; old == nil || !old.isGoal && old.recipe == nil {
			x := m.target(n.name)
			x.deps, x.recipe, x.stem, x.group, x.implied = n.deps, n.recipe, n.stem, n.group, true
			x.intermediate = !x.known
		}
	}
	return deps, true
}

// patternDeps are a rule's prerequisites for a target.
func (m *maker) patternDeps(t *target, f *found) []dep {
	list := f.p.deps
	if f.p.text != "" {
		stem := f.stem
		text := f.p.text
		var b []string
		for _, w := range words(text) {
			b = append(b, strings.Replace(w, "%", stem, 1))
		}
		m.top = &frame{vars: m.automatic(&target{name: t.name, stem: stem}), next: m.top}
		list = m.parseDeps(m.expand(strings.Join(b, " ")))
		m.top = m.top.next
		return list
	}
	out := make([]dep, len(list))
	for i, d := range list {
		name := d.name
		if strings.Contains(name, "%") {
			name = f.dir + substituteStem(name, f.stem)
		}
		out[i] = dep{clean(name), d.order}
	}
	return out
}

// available reports whether a file is there or ought to be.
func (m *maker) available(name string) bool {
	if t := m.targets[name]; t != nil && (t.isGoal || t.known) {
		return true
	}
	if m.exists(name) {
		return true
	}
	_, ok := m.searchPath(name)
	return ok
}

// adopt gives a target what a rule says.
func (m *maker) adopt(t *target, f *found, deps []dep) {
	t.recipe, t.stem, t.implied = f.p.recipe, f.dir+f.stem, true
	t.deps = append(deps, t.deps...)
	for i, other := range f.p.targets {
		if i != f.at {
			t.group = append(t.group, clean(f.dir+substituteStem(other, f.stem)))
		}
	}
}

// addVpath handles the directive vpath.
func (m *maker) addVpath(w []string) {
	switch len(w) {
	case 0:
		m.vpaths = nil
	case 1:
		m.vpaths = slices.DeleteFunc(m.vpaths, func(v vpath) bool { return v.pattern == w[0] })
	default:
		var dirs []string
		for _, d := range w[1:] {
			dirs = append(dirs, strings.FieldsFunc(d, func(r rune) bool { return r == ':' })...)
		}
		m.vpaths = append(m.vpaths, vpath{w[0], dirs})
	}
}

type vpath struct {
	pattern string
	dirs    []string
}

// searchPath looks for a file in the directories of vpath and VPATH.
func (m *maker) searchPath(name string) (string, bool) {
	if strings.HasPrefix(name, "/") {
		return "", false
	}
	try := func(dirs []string) (string, bool) {
		for _, d := range dirs {
			full := clean(strings.TrimRight(d, "/") + "/" + name)
			if t := m.targets[full]; m.exists(full) || t != nil && t.isGoal {
				return full, true
			}
		}
		return "", false
	}
	for _, v := range m.vpaths {
		if _, ok := matchPattern(v.pattern, name); ok {
			if full, ok := try(v.dirs); ok {
				return full, true
			}
		}
	}
	if m.global["VPATH"] == nil {
		return "", false
	}
	return try(strings.FieldsFunc(m.value("VPATH"), func(r rune) bool { return r == ':' || r == ' ' || r == '\t' }))
}
