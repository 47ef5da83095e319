package make

import (
	"strings"
)

// rule is one that is being read.
type rule struct {
	targets []string
	deps    []dep
	text    string // of prerequisites that are to be expanded a second time
	double  bool
	grouped bool
	static  string // the pattern of a static pattern rule
	recipe  *recipe
	loc     location
	added   map[string]int // how many prerequisites each target got
}

// recipe is the lines that make a target.
type recipe struct {
	lines []recipeLine
	loc   location
	given bool // it is there, if only empty
}

type recipeLine struct {
	text string
	loc  location
}

func (r *recipe) add(text string, loc location) {
	if !r.given {
		r.loc = loc
	}
	r.given = true
	r.lines = append(r.lines, recipeLine{text, loc})
}

// dep is a prerequisite.
type dep struct {
	name  string
	order bool // order-only: it is no reason to make the target again
}

// target is a file or a name that can be made.
type target struct {
	name      string
	deps      []dep
	second    []secondDeps // prerequisites that are expanded when they are needed
	recipe    *recipe
	double    []*target // double-colon rules, each as a target of the same name
	stem      string
	isGoal    bool // it stands as a target in a makefile
	single    bool // and not with a double colon
	oneOfMany bool // it is one double-colon rule
	known     bool // it is mentioned in a makefile
	group     []string
	vars      scope
	implied   bool // a rule was found for it by its name

	phony, precious, intermediate, secondary bool

	work
}

// secondDeps is a text with prerequisites of a rule, for .SECONDEXPANSION.
type secondDeps struct {
	text, stem string
	loc        location
}

// pattern is a pattern rule.
type pattern struct {
	targets  []string
	deps     []dep
	text     string // as in secondDeps
	recipe   *recipe
	terminal bool
	builtin  bool
	suffixes []string // those that must be in .SUFFIXES, for built-in rules
}

// target returns the target of a name.
func (m *maker) target(name string) *target {
	t := m.targets[name]
	if t == nil {
		if len(m.targets) >= maxTargets {
			m.fatal(m.loc, "%v", errTooLarge)
		}
		t = &target{name: name}
		m.targets[name] = t
		m.order = append(m.order, t)
	}
	return t
}

// clean is a name without ./ at its start.
func clean(name string) string {
	for strings.HasPrefix(name, "./") && strings.Trim(name[2:], "/") != "" {
		name = strings.TrimLeft(name[2:], "/")
	}
	return name
}

// names splits a list of files, with wildcards.
func (m *maker) names(s string) []string {
	var out []string
	for _, w := range words(s) {
		if strings.ContainsAny(w, "*?[") || w[0] == '~' {
			if found := m.glob(w, false); len(found) > 0 {
				for _, f := range found {
					out = append(out, clean(f))
				}
				continue
			}
		}
		out = append(out, clean(strings.ReplaceAll(w, `\:`, ":")))
	}
	return out
}

// parseDeps splits prerequisites, of which those after | are order-only.
func (m *maker) parseDeps(s string) []dep {
	var out []dep
	order := false
	for i, part := range strings.SplitN(s, "|", 2) {
		order = i > 0
		for _, n := range m.names(part) {
			if n == ".WAIT" {
				continue
			}
			out = append(out, dep{n, order})
		}
	}
	return out
}

// colonIn finds the colon of a rule.
func colonIn(s string) int {
	from := 0
	for {
		i := indexOutside(s[from:], ":")
		if i < 0 {
			return -1
		}
		if i += from; i == 0 || s[i-1] != '\\' {
			return i
		}
		from = i + 1
	}
}

// parseRule reads a line with targets and prerequisites. raw is the line with its comment, which may be part of a recipe.
func (r *reader) parseRule(raw, body string) {
	m := r.m
	r.closeRule()
	inline, hasInline := "", false
	if semi := indexOutside(raw, ";#"); semi >= 0 && raw[semi] == ';' {
		colon := colonIn(raw)
		if colon >= 0 && colon < semi {
			body, inline, hasInline = raw[:semi], raw[semi+1:], true
		}
	}
	colon := colonIn(body)
	expandRest := true
	if colon < 0 {
		whole := m.expand(body)
		if strings.TrimSpace(whole) == "" {
			return
		}
		body, expandRest = whole, false
		if colon = colonIn(body); colon < 0 {
			if strings.HasPrefix(raw, "        ") {
				m.fatal(m.loc, "missing separator (did you mean TAB instead of 8 spaces?)")
			}
			m.fatal(m.loc, "missing separator")
		}
		if semi := strings.IndexByte(body, ';'); semi > colon {
			body, inline, hasInline = body[:semi], body[semi+1:], true
		}
	}
	left, rest := body[:colon], body[colon+1:]
	u := &rule{loc: m.loc, recipe: &recipe{loc: m.loc}}
	if strings.HasPrefix(rest, ":") {
		u.double, rest = true, rest[1:]
	}
	if strings.HasSuffix(left, "&") {
		u.grouped, left = true, left[:len(left)-1]
	}
	if expandRest {
		left = m.expand(left)
	}
	u.targets = m.names(left)
	if len(u.targets) == 0 {
		r.noTarget = true
		return
	}
	if r.targetVariable(u, rest, inline, hasInline) {
		return
	}
	second := m.secondExpansion && strings.Contains(rest, "$$")
	deps := rest
	if expandRest {
		deps = m.expand(rest)
	}
	if i := colonIn(deps); i >= 0 {
		u.static, deps = strings.TrimSpace(deps[:i]), deps[i+1:]
		if strings.HasPrefix(deps, ":") {
			deps = deps[1:]
		}
		switch {
		case u.static == "":
			m.fatal(m.loc, "missing target pattern")
		case strings.ContainsAny(u.static, " \t"):
			m.fatal(m.loc, "multiple target patterns")
		case !strings.Contains(u.static, "%"):
			m.fatal(m.loc, "target pattern contains no '%%'")
		}
		u.static = clean(u.static)
	}
	if second {
		u.text = deps
	} else {
		u.deps = m.parseDeps(deps)
	}
	if hasInline {
		u.recipe.add(strings.TrimLeft(inline, " \t"), m.loc)
	}
	r.rule = u
	m.record(u)
}

// targetVariable handles "TARGETS: NAME = VALUE".
func (r *reader) targetVariable(u *rule, rest, inline string, hasInline bool) bool {
	m := r.m
	mods, text, _ := modifiers(strings.TrimLeft(rest, " \t"))
	if hasInline {
		text += ";" + stripComment(inline)
	}
	a, ok := parseAssignment(text)
	if !ok || strings.Contains(a.name, ";") {
		return false
	}
	a.override, a.private = mods.override, mods.private
	r.noTarget = false
	for _, name := range u.targets {
		s := m.patternScope(name)
		if s == nil {
			t := m.target(name)
			if t.vars == nil {
				t.vars = scope{}
			}
			s = t.vars
		}
		// += and ?= look at what the target has already, and := at its variables.
		top := m.top
		m.top = &frame{vars: s, next: top}
		v := m.apply(a, s)
		m.top = top
		v.private = mods.private
		if mods.export {
			v.export = 1
		} else if mods.unexport {
			v.export = -1
		}
	}
	return true
}

// patternScope returns the variables of the targets that match a pattern, nil if the name is none.
func (m *maker) patternScope(name string) scope {
	if !strings.Contains(name, "%") {
		return nil
	}
	for _, p := range m.patternVars {
		if p.pattern == name {
			return p.vars
		}
	}
	m.patternVars = append(m.patternVars, patternVars{name, scope{}})
	return m.patternVars[len(m.patternVars)-1].vars
}

type patternVars struct {
	pattern string
	vars    scope
}

// closeRule gives the recipe to the rule's targets.
func (r *reader) closeRule() {
	u := r.rule
	r.rule, r.noTarget = nil, false
	if u == nil || !u.recipe.given || strings.Contains(u.targets[0], "%") && u.static == "" {
		return
	}
	m := r.m
	for _, name := range u.targets {
		t := m.targets[name]
		if u.double || t == nil {
			continue
		}
		if name == ".DEFAULT" {
			m.defaultRecipe = u.recipe
		}
		if t.recipe != nil && t.recipe != u.recipe && t.recipe.given {
			m.warn(u.recipe.loc, "warning: overriding recipe for target '%s'", name)
			m.warn(t.recipe.loc, "warning: ignoring old recipe for target '%s'", name)
		}
		t.recipe = u.recipe
		// The prerequisites of the rule with the recipe come first.
		if n := len(t.deps) - u.added[name]; n > 0 && n < len(t.deps) {
			t.deps = append(append([]dep{}, t.deps[n:]...), t.deps[:n]...)
		}
	}
}

// record enters a rule; its recipe may still come.
func (m *maker) record(u *rule) {
	patterns := 0
	for _, n := range u.targets {
		if strings.Contains(n, "%") {
			patterns++
		}
	}
	if patterns > 0 && u.static == "" {
		if patterns < len(u.targets) {
			m.fatal(m.loc, "mixed implicit and normal rules")
		}
		m.recordPattern(&pattern{targets: u.targets, deps: u.deps, text: u.text, recipe: u.recipe, terminal: u.double})
		return
	}
	for _, d := range u.deps {
		if u.static == "" {
			m.target(d.name).known = true
		}
	}
	for _, name := range u.targets {
		if m.special(name, u) {
			continue
		}
		t := m.target(name)
		if u.double {
			if t.single {
				m.fatal(m.loc, "target file '%s' has both : and :: entries", name)
			}
			each := &target{name: name, isGoal: true, known: true, oneOfMany: true, recipe: u.recipe}
			t.double = append(t.double, each)
			t.isGoal, t.known = true, true
			m.addDeps(each, u)
		} else {
			if t.double != nil {
				m.fatal(m.loc, "target file '%s' has both : and :: entries", name)
			}
			t.isGoal, t.known, t.single = true, true, true
			m.addDeps(t, u)
		}
		if u.grouped {
			for _, other := range u.targets {
				if other != name {
					t.group = append(t.group, other)
				}
			}
		}
		if v := m.global[".DEFAULT_GOAL"]; (v == nil || v.value == "") && (name[0] != '.' || strings.Contains(name, "/")) {
			m.set(".DEFAULT_GOAL", name, fromFile, false)
		}
	}
}

// addDeps adds a rule's prerequisites to a target, for its stem if the rule is a static pattern.
func (m *maker) addDeps(t *target, u *rule) {
	stem := ""
	if u.static != "" {
		s, ok := matchPattern(u.static, t.name)
		if !ok {
			m.warn(m.loc, "target '%s' doesn't match the target pattern", t.name)
		}
		stem, t.stem = s, s
	}
	if u.text != "" {
		t.second = append(t.second, secondDeps{u.text, stem, u.loc})
		return
	}
	for _, d := range u.deps {
		if u.static != "" {
			d.name = clean(substituteStem(d.name, stem))
			m.target(d.name).known = true
		}
		t.deps = append(t.deps, d)
	}
	if u.added == nil {
		u.added = map[string]int{}
	}
	u.added[t.name] = len(u.deps)
}

// substituteStem replaces the first % of a prerequisite.
func substituteStem(pattern, stem string) string {
	before, after, wild := cutPercent(pattern)
	if !wild {
		return before
	}
	return before + stem + after
}

// recordPattern enters a pattern rule; one with the same targets and prerequisites goes.
func (m *maker) recordPattern(p *pattern) {
	same := func(q *pattern) bool {
		if len(q.targets) != len(p.targets) || len(q.deps) != len(p.deps) || q.text != p.text {
			return false
		}
		for i := range q.targets {
			if q.targets[i] != p.targets[i] {
				return false
			}
		}
		for i := range q.deps {
			if q.deps[i] != p.deps[i] {
				return false
			}
		}
		return true
	}
	for i, q := range m.patterns {
		if same(q) {
			m.patterns = append(m.patterns[:i], m.patterns[i+1:]...)
			break
		}
	}
	m.patterns = append(m.patterns, p)
}

// special handles targets that mean something to make, and reports whether this was only that.
func (m *maker) special(name string, u *rule) bool {
	if name[0] != '.' {
		return false
	}
	all := func(f func(*target)) bool {
		for _, d := range u.deps {
			t := m.target(d.name)
			t.known = true
			f(t)
		}
		return true
	}
	switch name {
	case ".PHONY":
		return all(func(t *target) { t.phony, t.isGoal = true, true })
	case ".PRECIOUS":
		for _, d := range u.deps {
			if strings.Contains(d.name, "%") {
				m.preciousPatterns = append(m.preciousPatterns, d.name)
			}
		}
		return all(func(t *target) { t.precious = true })
	case ".INTERMEDIATE":
		return all(func(t *target) { t.intermediate = true })
	case ".SECONDARY":
		if len(u.deps) == 0 {
			m.allSecondary = true
		}
		return all(func(t *target) { t.secondary = true })
	case ".SUFFIXES":
		if len(u.deps) == 0 {
			m.suffixes = nil
		}
		for _, d := range u.deps {
			m.suffixes = append(m.suffixes, d.name)
		}
		m.set("SUFFIXES", strings.Join(m.suffixes, " "), fromDefault, false)
		return true
	case ".IGNORE":
		if len(u.deps) == 0 {
			m.ignoreErrors = true
		}
		for _, d := range u.deps {
			m.ignored[d.name] = true
		}
		return true
	case ".SILENT":
		if len(u.deps) == 0 {
			m.silent = true
		}
		for _, d := range u.deps {
			m.silenced[d.name] = true
		}
		return true
	case ".EXPORT_ALL_VARIABLES":
		m.exportAll = true
	case ".SECONDEXPANSION":
		m.secondExpansion = true
	case ".DELETE_ON_ERROR":
		m.deleteOnError = true
	case ".ONESHELL":
		m.oneShell = true
	case ".NOTPARALLEL":
		m.notParallel = true
	case ".POSIX":
		m.posix = true
	case ".LOW_RESOLUTION_TIME":
	default:
		return false
	}
	return true
}

// suffixRules turns suffix rules into pattern rules.
func (m *maker) suffixRules() {
	for _, t := range m.order {
		if t.name == "" || t.name[0] != '.' || t.recipe == nil || len(t.deps) > 0 || len(t.second) > 0 {
			continue
		}
		for _, from := range m.suffixes {
			to, ok := strings.CutPrefix(t.name, from)
			if !ok || to != "" && !contains(m.suffixes, to) {
				continue
			}
			m.recordPattern(&pattern{targets: []string{"%" + to}, deps: []dep{{name: "%" + from}}, recipe: t.recipe})
		}
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
