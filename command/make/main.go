package make

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"agentrun.dev/command/tool"
)

// maker is a run of make.
type maker struct {
	t     *tool.T
	args  options // as the command line and the environment gave them
	level int
	stdin bool

	options

	functions map[string]*function
	global    scope
	top       *frame
	loc       location
	depth     int
	including int
	prefix    byte

	targets     map[string]*target
	order       []*target
	patterns    []*pattern
	patternVars []patternVars
	vpaths      []vpath
	suffixes    []string
	makefiles   []string
	missing     []missing

	defaultRecipe                                                *recipe
	preciousPatterns                                             []string
	ignored, silenced                                            map[string]bool
	silent, exportAll, secondExpansion, deleteOnError            bool
	oneShell, notParallel, posix, allSecondary, remaking, broken bool

	running  []*job
	commands int // that were started or printed
	pass     int // how often the goals have been gone through
}

// Make brings targets up to date.
func Make(t *tool.T) int {
	t.FailStatus(2)
	m := &maker{t: t}
	m.level, _ = strconv.Atoi(t.Getenv("MAKELEVEL"))
	m.level = max(0, min(m.level, 1<<20))
	m.letters, m.jobs = map[rune]bool{}, 1
	m.oldFiles, m.newFiles = map[string]bool{}, map[string]bool{}
	m.flagsFrom(t.Getenv("MAKEFLAGS"))
	opts, operands := t.ParseArgs(&spec, joinNumbers(t.Args()[1:]))
	for _, o := range opts {
		if o.Key == 'h' {
			t.Help(&spec)
			return 0
		}
		if o.Key == 'v' {
			fmt.Fprintf(t.Out, "GNU Make %s\nBuilt for %s\n", version, machine())
			return 0
		}
		m.option(o)
	}
	for _, o := range operands {
		if a, ok := parseAssignment(o); ok {
			m.commandVars = append(m.commandVars, a)
		} else if o != "" {
			m.goalNames = append(m.goalNames, o)
		}
	}
	for _, d := range m.dirs {
		if err := t.Chdir(d); err != nil {
			m.complain("*** %s: %s.  Stop.", d, tool.Strerror(err))
			return 2
		}
	}
	if !m.noPrintDir && !m.silentAll && (m.level > 0 || len(m.dirs) > 0) {
		m.printDir = true
		m.letters['w'] = true
	}
	if m.noPrintDir {
		m.printDir = false
	}
	m.enter()
	m.args = m.options
	for restart := range maxRestarts {
		if status, again := m.once(restart); !again {
			m.leave()
			return status
		}
	}
	m.complain("*** makefiles are remade again and again.  Stop.")
	m.exit(2)
	return 2
}

// once reads the makefiles and updates the goals. again says that makefiles have been remade, and are to be read anew.
func (m *maker) once(restart int) (status int, again bool) {
	t := m.t
	m.options = m.args
	m.letters = cloneLetters(m.args.letters)
	m.functions, m.global, m.top, m.depth, m.prefix = allFunctions(), scope{}, nil, 0, '\t'
	m.targets, m.order, m.patterns, m.patternVars, m.vpaths = map[string]*target{}, nil, nil, nil, nil
	m.ignored, m.silenced, m.makefiles, m.missing = map[string]bool{}, map[string]bool{}, nil, nil
	m.silent, m.exportAll, m.secondExpansion, m.deleteOnError, m.oneShell, m.posix = false, false, false, false, false, false
	m.defaultRecipe, m.commands, m.broken = nil, 0, false
	m.variables(restart)
	for _, e := range m.evals {
		m.eval(e)
	}
	names := m.makefileNames
	if len(names) == 0 {
		for _, n := range []string{"GNUmakefile", "makefile", "Makefile"} {
			if a, err := t.Stat(n); err == nil && !a.Mode.IsDir() {
				names = []string{n}
				break
			}
		}
	}
	for _, n := range names {
		if err := m.readFile(n); err != nil {
			m.complain("%s: %s", n, tool.Strerror(err))
			m.missing = append(m.missing, missing{n, location{}, false})
		}
	}
	m.loc = location{}
	if v := m.global["MAKEFLAGS"]; v != nil && v.origin == fromFile {
		m.flagsFrom(m.expanded(v))
	}
	if m.notParallel || m.jobs < 1 {
		m.jobs = 1
	}
	if v := m.global[".SHELLFLAGS"]; m.posix && v != nil && v.origin == fromDefault {
		v.value = "-ec"
	}
	m.suffixRules()
	if !m.noRules {
		m.builtinRules()
	}
	if m.remakeMakefiles() {
		return 0, true
	}
	if m.printData {
		m.database()
	}
	goals := m.goalNames
	if len(goals) == 0 {
		goals = words(m.value(".DEFAULT_GOAL"))
		if len(goals) > 1 {
			m.complain("*** .DEFAULT_GOAL contains more than one target.  Stop.")
			m.exit(2)
		}
	}
	if len(goals) == 0 {
		if m.printData && len(names) == 0 {
			return 0, false
		}
		what := "*** No targets.  Stop."
		if len(names) == 0 {
			what = "*** No targets specified and no makefile found.  Stop."
		}
		t.Out.Flush()
		m.complain("%s", what)
		m.exit(2)
	}
	status = m.goals(goals)
	m.removeIntermediates()
	return status, false
}

func cloneLetters(l map[rune]bool) map[rune]bool {
	out := map[rune]bool{}
	for k, v := range l {
		out[k] = v
	}
	return out
}

// remakeMakefiles brings the makefiles themselves up to date.
func (m *maker) remakeMakefiles() bool {
	dry, touch, question, always, keep := m.dryRun, m.touch, m.question, m.always, m.keepGoing
	m.dryRun, m.touch, m.question, m.always, m.keepGoing, m.remaking = false, false, false, false, true, true
	names := append([]string(nil), m.makefiles...)
	for _, x := range m.missing {
		names = append(names, x.name)
	}
	changed := false
	for _, n := range names {
		t := m.target(clean(n))
		if t.phony || t.double != nil && !slices.ContainsFunc(t.double, func(d *target) bool { return len(d.deps) > 0 }) {
			continue
		}
		before, err := m.t.Stat(n)
		for m.pass++; m.update(t, nil, 0) == waiting; m.pass++ {
			m.wait()
		}
		if after, err2 := m.t.Stat(n); t.made && err2 == nil && (err != nil || !after.Mtime.Equal(before.Mtime)) {
			changed = true
		}
	}
	m.dryRun, m.touch, m.question, m.always, m.keepGoing, m.remaking = dry, touch, question, always, keep, false
	if changed {
		return true
	}
	stop := false
	for _, x := range m.missing {
		if x.optional {
			continue
		}
		t := m.target(clean(x.name))
		m.t.Out.Flush()
		if x.loc.file != "" {
			io.WriteString(m.t.Stderr(), fmt.Sprintf("%s:%d: %s: No such file or directory\n", x.loc.file, x.loc.line, x.name))
		}
		if t.job == nil && !t.made {
			m.complain("*** No rule to make target '%s'.  Stop.", x.name)
		} else {
			m.complain("*** Failed to remake makefile '%s'.", x.name)
		}
		stop = true
		break
	}
	if stop {
		m.exit(2)
	}
	m.broken = false
	for _, t := range m.order {
		if !t.made {
			t.work = work{}
		}
	}
	return false
}
