package make

import (
	"fmt"
	"strings"
	"time"
)

// outcome is what became of a target.
type outcome uint8

const (
	waiting outcome = iota // not yet known: a job is running
	good
	failed
)

// work is what is known of a target while it is brought up to date.
type work struct {
	state      outcome
	begun      bool // its rule has been looked for
	visiting   bool
	peeked     peeked
	considered int // the pass in which it was found to be waiting
	job        *job
	checked    bool
	exists     bool
	time       time.Time
	fresh      bool // it counts as newer than everything
	path       string
	made       bool // its recipe ran, or would have
	vars1      *frame
	cyclic     map[string]bool
	newer      []string // prerequisites that are a reason to make it
	complain   bool
	grouped    bool // made by the recipe of another target
	reason     string
	remade     bool
	intermade  bool
	isTop      bool // it was asked for
}

// peeked is what peek found out about an intermediate file.
type peeked struct {
	by      *target
	pass    int
	newer   bool
	outcome outcome
}

// exists reports whether there is a file, and remembers nothing.
func (m *maker) exists(name string) bool {
	_, err := m.t.Stat(name)
	return err == nil
}

// stat looks at a target's file.
func (m *maker) stat(t *target) {
	t.checked = true
	if t.path == "" {
		t.path = t.name
	}
	a, err := m.t.Stat(t.path)
	if err != nil && t.path == t.name && !t.phony {
		if full, ok := m.searchPath(t.name); ok {
			if a, err = m.t.Stat(full); err == nil {
				t.path = full
			}
		}
	}
	t.exists = err == nil && !t.phony
	t.time = a.Mtime
	if m.oldFiles[t.name] {
		t.exists, t.time = true, time.Unix(0, 0)
	}
	if t.fresh = m.newFiles[t.name]; t.fresh {
		t.exists = true
	}
}

// after reports whether a is newer than b.
func after(a, b *target) bool {
	return a.fresh || !a.exists || a.time.After(b.time)
}

// update brings a target up to date as far as that can be done without waiting.
func (m *maker) update(t *target, by *target, depth int) outcome {
	if t.state != waiting {
		return t.state
	}
	if t.job != nil || t.considered == m.pass {
		return waiting
	}
	if m.oldFiles[t.name] {
		m.stat(t)
		t.begun, t.state = true, good
		return good
	}
	m.step()
	if depth > maxChain {
		m.fatal(location{}, "prerequisites are nested too deep")
	}
	if t.double != nil {
		return m.updateDouble(t, by, depth)
	}
	t.visiting = true
	defer func() { t.visiting = false }()
	if !t.begun {
		m.begin(t, by)
	}
	o := m.consider(t, by, depth)
	if o == waiting {
		t.considered = m.pass
	}
	return o
}

// updateDouble updates each of a target's double-colon rules.
func (m *maker) updateDouble(t *target, by *target, depth int) outcome {
	all := good
	t.visiting = true
	defer func() { t.visiting = false }()
	if !t.checked {
		m.stat(t)
	}
	for _, each := range t.double {
		if each.vars == nil {
			each.vars = t.vars
		}
		// All of them see the file as it was before the first.
		if each.phony = t.phony; !each.checked {
			each.checked, each.exists, each.time, each.fresh, each.path = true, t.exists, t.time, t.fresh, t.path
		}
		switch m.update(each, by, depth) {
		case waiting:
			return waiting // one after the other
		case failed:
			all = failed
			if !m.keepGoing {
				t.state = failed
				return failed
			}
		}
		t.made = t.made || each.made
	}
	m.stat(t)
	if t.made && t.phony {
		t.fresh = true
	}
	t.state = all
	return all
}

// begin finds a target's rule and variables.
func (m *maker) begin(t *target, by *target) {
	t.begun = true
	t.cyclic = map[string]bool{}
	below := (*frame)(nil)
	if by != nil {
		below = &frame{next: by.vars1, inherited: true}
	}
	for _, p := range m.patternVars {
		if _, ok := matchPattern(p.pattern, t.name); ok {
			below = &frame{vars: p.vars, next: below}
		}
	}
	t.vars1 = &frame{vars: t.vars, next: below}
	if !t.checked {
		m.stat(t)
	}
	if m.noRecipe(t) && !t.phony {
		m.implicit(t)
	}
	if m.noRecipe(t) && !t.exists && !t.isGoal && m.defaultRecipe != nil {
		t.recipe = m.defaultRecipe
	}
	for _, s := range t.second {
		deps := m.secondary(t, s)
		t.deps = append(t.deps, deps...)
	}
	t.second = nil
}

// secondary expands prerequisites a second time.
func (m *maker) secondary(t *target, s secondDeps) []dep {
	top, loc := m.top, m.loc
	m.loc = s.loc
	x := &target{name: t.name, stem: s.stem, deps: t.deps}
	m.top = &frame{vars: m.automatic(x), next: t.vars1}
	text := s.text
	if s.stem != "" {
		var w []string
		for _, p := range words(text) {
			w = append(w, substituteStem(p, s.stem))
		}
		text = strings.Join(w, " ")
	}
	deps := m.parseDeps(m.expand(text))
	m.top, m.loc = top, loc
	return deps
}

func (m *maker) noRecipe(t *target) bool { return t.recipe == nil || !t.recipe.given }

// consider updates a target's prerequisites, and makes it if that is needed.
func (m *maker) consider(t, by *target, depth int) outcome {
	if m.noRecipe(t) && len(t.deps) == 0 && !t.isGoal && !t.exists && !t.fresh {
		return m.cannot(t, by)
	}
	must := !t.exists || m.always && !m.noRecipe(t) || t.oneOfMany && len(t.deps) == 0
	all, bad := good, false
	for pass := range 2 {
		for i := 0; i < len(t.deps); i++ {
			d := t.deps[i]
			if t.cyclic[d.name] {
				continue
			}
			x := m.target(d.name)
			if x.visiting {
				m.t.Out.Flush()
				m.complain("Circular %s <- %s dependency dropped.", t.name, d.name)
				t.cyclic[d.name] = true
				continue
			}
			if !x.begun && x.double == nil {
				m.begin(x, t)
			}
			if pass == 0 && m.lazy(x) {
				// What is only made on the way to this is made only if this is.
				switch newer, o := m.peek(x, t, depth+1); {
				case o == failed:
					bad = true
				case o == waiting:
					all = waiting
				case newer:
					must = true
				}
				continue
			}
			if pass == 1 && x.state != waiting {
				continue
			}
			switch m.update(x, t, depth+1) {
			case waiting:
				all = waiting
			case failed:
				bad = true
				if !m.keepGoing {
					return m.depFailed(t)
				}
			}
			if x.state == good && !d.order && t.exists && after(x, t) {
				must = true
			}
		}
		if !must {
			break
		}
	}
	switch {
	case all == waiting:
		return waiting
	case bad:
		return m.depFailed(t)
	}
	t.newer = nil
	for _, d := range t.deps {
		if x := m.targets[d.name]; x != nil && !d.order && !t.cyclic[d.name] && m.newerThan(x, t) {
			t.newer = append(t.newer, d.name)
		}
	}
	if !must {
		t.state = good
		return good
	}
	return m.make(t)
}

// newerThan reports whether a prerequisite is one of $?: it is newer, or isn't there. As in GNU's make, an intermediate file
// that nothing makes isn't.
func (m *maker) newerThan(x, t *target) bool {
	if !t.exists {
		return true
	}
	if x.intermediate && !x.exists && !x.made {
		return false
	}
	return (x.begun || x.double != nil) && x.state == good && after(x, t)
}

func (m *maker) depFailed(t *target) outcome {
	if m.keepGoing && !t.complain {
		t.complain = true
		if t.isTop {
			m.complain("Target '%s' not remade because of errors.", t.name)
		}
	}
	t.state = failed
	return failed
}

// lazy reports whether a target is an intermediate file that isn't there.
func (m *maker) lazy(t *target) bool {
	return (t.intermediate || t.secondary || m.allSecondary && t.implied && !t.exists) && !t.phony && t.state == waiting && t.job == nil && !m.noRecipe(t)
}

// peek reports whether something that an intermediate file is made from is newer than what is made from it.
func (m *maker) peek(x, t *target, depth int) (newer bool, o outcome) {
	o = good
	if x.visiting || depth > maxChain {
		return false, good
	}
	if x.peeked.by == t && x.peeked.pass == m.pass {
		return x.peeked.newer, x.peeked.outcome
	}
	m.step()
	x.visiting = true
	defer func() {
		x.visiting = false
		x.peeked = peeked{t, m.pass, newer, o}
	}()
	newer = x.exists && after(x, t)
	for _, d := range x.deps {
		y := m.target(d.name)
		if y.visiting {
			continue
		}
		if !y.begun && y.double == nil {
			m.begin(y, x)
		}
		if m.lazy(y) {
			n, s := m.peek(y, t, depth+1)
			newer = newer || n
			if s != good {
				o = s
			}
			continue
		}
		switch s := m.update(y, x, depth+1); {
		case s != good:
			o = s
		case !d.order && after(y, t):
			newer = true
		}
	}
	return newer, o
}

// cannot says that there is no rule.
func (m *maker) cannot(t, by *target) outcome {
	t.state = failed
	if m.remaking {
		return failed
	}
	text := fmt.Sprintf("No rule to make target '%s'", t.name)
	if by != nil {
		text += fmt.Sprintf(", needed by '%s'", by.name)
	}
	m.broken = true
	m.t.Out.Flush()
	if m.keepGoing {
		m.complain("*** %s.", text)
		return failed
	}
	m.drain()
	m.complain("*** %s.  Stop.", text)
	m.exit(2)
	return failed
}

// make makes a target, or what stands for that without a recipe.
func (m *maker) make(t *target) outcome {
	if m.noRecipe(t) {
		t.state = good // one that exists is no newer than it was
		return good
	}
	if m.question {
		if !t.recipeIsEmpty() {
			m.exit(1)
		}
	}
	if m.touch && !t.phony && !t.recipeIsEmpty() && !m.recursive(t) {
		return m.touchTarget(t)
	}
	t.made = true
	return m.start(t)
}

func (t *target) recipeIsEmpty() bool {
	for _, l := range t.recipe.lines {
		if strings.TrimSpace(l.text) != "" {
			return false
		}
	}
	return true
}

// done is called when a target's recipe has ended well.
func (m *maker) done(t *target) {
	t.state = good
	path := t.path
	m.after(t)
	if path != t.name && !t.exists {
		t.path = path
	}
	for _, name := range t.group {
		g := m.target(name)
		if g.state != waiting || g == t {
			continue
		}
		g.begun, g.state, g.made, g.grouped = true, good, true, true
		m.after(g)
	}
}

// after looks at a file that a recipe was to make.
func (m *maker) after(t *target) {
	had := t.exists
	t.path = t.name
	m.stat(t)
	if t.phony || !t.exists || m.dryRun {
		t.fresh = true
	}
	if t.intermediate && !t.isTop && !had && !t.precious && !t.secondary && !t.phony {
		t.intermade = true
	}
}

// goals brings the goals up to date.
func (m *maker) goals(names []string) int {
	list := make([]*target, len(names))
	before := make([]int, len(names))
	said := make([]bool, len(names))
	for i, n := range names {
		list[i] = m.target(clean(n))
		list[i].isTop = true
	}
	current := 0
	for {
		m.pass++
		pending := false
		for i := current; i < len(list); i++ {
			t := list[i]
			if said[i] {
				continue
			}
			if before[i] == 0 {
				before[i] = m.commands + 1
			}
			o := m.update(t, nil, 0)
			if o == waiting {
				if pending = true; m.jobs == 1 {
					break
				}
				continue
			}
			said[i] = true
			if o == failed {
				m.broken = true
				if !m.keepGoing {
					m.drain()
					return 2
				}
				continue
			}
			if m.commands+1 == before[i] && !m.silentAll && !m.question && !m.remaking {
				if t.phony || t.double == nil && m.noRecipe(t) {
					m.out("Nothing to be done for '%s'.", t.name)
				} else {
					m.out("'%s' is up to date.", t.name)
				}
			}
		}
		if !pending {
			break
		}
		m.wait()
		if m.broken && !m.keepGoing {
			m.drain()
			return 2
		}
	}
	if m.broken {
		return 2
	}
	return 0
}

// removeIntermediates removes the files that were only made on the way.
func (m *maker) removeIntermediates() {
	var names []string
	for _, t := range m.order {
		if !t.intermade || t.precious || t.secondary || m.allSecondary || m.isPrecious(t.name) || m.touch {
			continue
		}
		if m.dryRun || m.t.Unlink(t.name) == nil {
			names = append(names, t.name)
		}
	}
	if len(names) > 0 && !m.silentAll {
		m.t.Out.WriteString("rm " + strings.Join(names, " ") + "\n")
	}
}

func (m *maker) isPrecious(name string) bool {
	for _, p := range m.preciousPatterns {
		if _, ok := matchPattern(p, name); ok {
			return true
		}
	}
	return false
}
