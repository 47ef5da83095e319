package make

import (
	"fmt"
	"strconv"
	"strings"
)

// variables sets those that there are before a makefile is read.
func (m *maker) variables(restart int) {
	t := m.t
	for _, e := range t.Environ() {
		if name, value, ok := strings.Cut(e, "="); ok && name != "SHELL" && name != "MAKEFLAGS" && name != "MAKELEVEL" && name != "CURDIR" {
			m.set(name, value, fromEnv, true) // GNU expands references in them, too
		}
	}
	m.suffixes = strings.Fields(".out .a .ln .o .c .cc .C .cpp .p .f .F .m .r .y .l .ym .yl .s .S .mod .sym .def .h .info .dvi .tex .texinfo .texi .txinfo .w .ch .web .sh .elc .el")
	if m.noRules {
		m.suffixes = nil
	}
	for _, v := range [][2]string{{"CURDIR", t.Getwd()}, {"MAKELEVEL", strconv.Itoa(m.level)}} {
		m.set(v[0], v[1], fromFile, false)
	}
	command := t.Args()[0]
	for _, v := range [][2]string{{"MAKE_COMMAND", command}, {"MAKE", "$(MAKE_COMMAND)"}, {"MAKE_VERSION", version}, {"MAKE_HOST", machine()},
		{"SHELL", "/bin/sh"}, {".SHELLFLAGS", "-c"}, {"MAKEFILE_LIST", ""}, {"SUFFIXES", strings.Join(m.suffixes, " ")}, {".LIBPATTERNS", "lib%.so lib%.a"},
		{".FEATURES", "target-specific order-only second-expansion else-if shortest-stem undefine oneshell nocomment grouped-target"}, {".RECIPEPREFIX", ""}, {".INCLUDE_DIRS", strings.Join(m.includeDirs, " ")}} {
		m.set(v[0], v[1], fromDefault, strings.Contains(v[1], "$"))
	}
	delete(m.global, ".RECIPEPREFIX")
	m.global["MAKEFILE_LIST"].origin = fromFile
	if restart > 0 {
		m.set("MAKE_RESTARTS", strconv.Itoa(restart), fromFile, false).export = 0
	}
	if len(m.goalNames) > 0 {
		m.set("MAKECMDGOALS", strings.Join(m.goalNames, " "), fromFile, false)
	}
	if !m.noVariables {
		for _, line := range strings.Split(strings.TrimSpace(builtinVariables), "\n") {
			name, value, _ := strings.Cut(line, " = ")
			m.set(name, value, fromDefault, true)
		}
	}
	var overrides []string
	for _, a := range m.commandVars {
		value, recursive := a.value, true
		if a.op == ":=" || a.op == "::=" {
			value, recursive = m.expand(value), false
		} else if a.op == "!=" {
			value = m.shell(m.expand(value))
		} else if old := m.global[a.name]; a.op == "+=" && old != nil && old.value != "" {
			value = old.value + " " + value
		} else if a.op == "?=" && old != nil {
			continue
		}
		m.set(m.expand(a.name), value, fromCommand, recursive)
		overrides = append([]string{escapeFlag(a.name + a.op + a.value)}, overrides...)
	}
	m.set("MAKEOVERRIDES", strings.Join(overrides, " "), fromDefault, false)
	m.set("MAKEFLAGS", m.flagsText(), fromDefault, false)
	m.set("MFLAGS", m.mflags(), fromDefault, false)
}

const builtinVariables = `
AR = ar
ARFLAGS = rv
AS = as
CC = cc
CXX = g++
CPP = $(CC) -E
FC = f77
PC = pc
LEX = lex
YACC = yacc
LD = ld
M2C = m2c
CO = co
GET = get
LINT = lint
MAKEINFO = makeinfo
TEX = tex
TEXI2DVI = texi2dvi
WEAVE = weave
CWEAVE = cweave
TANGLE = tangle
CTANGLE = ctangle
RM = rm -f
F77 = $(FC)
F77FLAGS = $(FFLAGS)
OUTPUT_OPTION = -o $@
COMPILE.c = $(CC) $(CFLAGS) $(CPPFLAGS) $(TARGET_ARCH) -c
COMPILE.cc = $(CXX) $(CXXFLAGS) $(CPPFLAGS) $(TARGET_ARCH) -c
COMPILE.C = $(COMPILE.cc)
COMPILE.cpp = $(COMPILE.cc)
COMPILE.f = $(FC) $(FFLAGS) $(TARGET_ARCH) -c
COMPILE.s = $(AS) $(ASFLAGS) $(TARGET_MACH)
COMPILE.S = $(CC) $(ASFLAGS) $(CPPFLAGS) $(TARGET_MACH) -c
COMPILE.p = $(PC) $(PFLAGS) $(CPPFLAGS) $(TARGET_ARCH) -c
LINK.o = $(CC) $(LDFLAGS) $(TARGET_ARCH)
LINK.c = $(CC) $(CFLAGS) $(CPPFLAGS) $(LDFLAGS) $(TARGET_ARCH)
LINK.cc = $(CXX) $(CXXFLAGS) $(CPPFLAGS) $(LDFLAGS) $(TARGET_ARCH)
LINK.C = $(LINK.cc)
LINK.cpp = $(LINK.cc)
LINK.f = $(FC) $(FFLAGS) $(LDFLAGS) $(TARGET_ARCH)
LINK.s = $(CC) $(ASFLAGS) $(LDFLAGS) $(TARGET_MACH)
LINK.S = $(CC) $(ASFLAGS) $(CPPFLAGS) $(LDFLAGS) $(TARGET_MACH)
LINK.p = $(PC) $(PFLAGS) $(CPPFLAGS) $(LDFLAGS) $(TARGET_ARCH)
YACC.y = $(YACC) $(YFLAGS)
LEX.l = $(LEX) $(LFLAGS) -t
PREPROCESS.S = $(CC) -E $(CPPFLAGS)
LINT.c = $(LINT) $(LINTFLAGS) $(CPPFLAGS) $(TARGET_ARCH)
`

// builtinPatterns are the built-in rules: target, prerequisite, recipe.
var builtinPatterns = [...][3]string{
	{"%", "%.o", "$(LINK.o) $^ $(LOADLIBES) $(LDLIBS) -o $@"},
	{"%", "%.c", "$(LINK.c) $^ $(LOADLIBES) $(LDLIBS) -o $@"},
	{"%", "%.cc", "$(LINK.cc) $^ $(LOADLIBES) $(LDLIBS) -o $@"},
	{"%", "%.C", "$(LINK.C) $^ $(LOADLIBES) $(LDLIBS) -o $@"},
	{"%", "%.cpp", "$(LINK.cpp) $^ $(LOADLIBES) $(LDLIBS) -o $@"},
	{"%", "%.p", "$(LINK.p) $^ $(LOADLIBES) $(LDLIBS) -o $@"},
	{"%", "%.f", "$(LINK.f) $^ $(LOADLIBES) $(LDLIBS) -o $@"},
	{"%", "%.s", "$(LINK.s) $^ $(LOADLIBES) $(LDLIBS) -o $@"},
	{"%", "%.S", "$(LINK.S) $^ $(LOADLIBES) $(LDLIBS) -o $@"},
	{"%", "%.sh", "cat $< >$@ \n chmod a+x $@"},
	{"%.o", "%.c", "$(COMPILE.c) $(OUTPUT_OPTION) $<"},
	{"%.o", "%.cc", "$(COMPILE.cc) $(OUTPUT_OPTION) $<"},
	{"%.o", "%.C", "$(COMPILE.C) $(OUTPUT_OPTION) $<"},
	{"%.o", "%.cpp", "$(COMPILE.cpp) $(OUTPUT_OPTION) $<"},
	{"%.o", "%.p", "$(COMPILE.p) $(OUTPUT_OPTION) $<"},
	{"%.o", "%.f", "$(COMPILE.f) $(OUTPUT_OPTION) $<"},
	{"%.o", "%.s", "$(COMPILE.s) -o $@ $<"},
	{"%.o", "%.S", "$(COMPILE.S) -o $@ $<"},
	{"%.s", "%.S", "$(PREPROCESS.S) $< > $@"},
	{"%.c", "%.y", "$(YACC.y) $< \n mv -f y.tab.c $@"},
	{"%.c", "%.l", "@$(RM) $@ \n $(LEX.l) $< > $@"},
}

// builtinRules adds the built-in rules after those of the makefile.
func (m *maker) builtinRules() {
	for _, b := range builtinPatterns {
		r := &recipe{given: true}
		for _, l := range strings.Split(b[2], "\n") {
			r.lines = append(r.lines, recipeLine{text: l})
		}
		p := &pattern{targets: []string{b[0]}, deps: []dep{{name: b[1]}}, recipe: r, builtin: true, suffixes: []string{b[1][1:]}}
		if len(b[0]) > 1 {
			p.suffixes = append(p.suffixes, b[0][1:])
		}
		replaced := false
		for _, q := range m.patterns {
			replaced = replaced || len(q.targets) == 1 && q.targets[0] == b[0] && len(q.deps) == 1 && q.deps[0].name == b[1]
		}
		if !replaced {
			m.patterns = append(m.patterns, p)
		}
	}
}

// database prints what make knows, for -p.
func (m *maker) database() {
	out := m.t.Out
	out.WriteString("# GNU Make " + version + "\n# Make data base\n\n# Variables\n\n")
	for _, n := range sortedKeys(m.global) {
		v := m.global[n]
		op := "="
		if !v.recursive {
			op = ":="
		}
		origin := originNames[v.origin]
		if v.origin == fromFile {
			origin = "makefile"
		}
		if strings.Contains(v.value, "\n") {
			fmt.Fprintf(out, "# %s\ndefine %s\n%s\nendef\n", origin, n, v.value)
		} else {
			fmt.Fprintf(out, "# %s\n%s %s %s\n", origin, n, op, v.value)
		}
	}
	out.WriteString("\n# Implicit Rules\n")
	lines := func(r *recipe) {
		if r != nil {
			for _, l := range r.lines {
				out.WriteString("\t" + l.text + "\n")
			}
		}
		out.WriteString("\n")
	}
	list := func(deps []dep) string {
		s, order := "", ""
		for _, d := range deps {
			if d.order {
				order += " " + d.name
			} else {
				s += " " + d.name
			}
		}
		if order != "" {
			s += " |" + order
		}
		return s
	}
	for _, p := range m.patterns {
		fmt.Fprintf(out, "\n%s:%s\n", strings.Join(p.targets, " "), list(p.deps))
		lines(p.recipe)
	}
	out.WriteString("# Files\n")
	for _, t := range m.order {
		all := []*target{t}
		colon := ":"
		if t.double != nil {
			all, colon = t.double, "::"
		}
		for _, x := range all {
			if !t.isGoal {
				out.WriteString("\n# Not a target:")
			}
			fmt.Fprintf(out, "\n%s%s%s\n", t.name, colon, list(x.deps))
			if t.phony {
				out.WriteString("#  Phony target (prerequisite of .PHONY).\n")
			}
			lines(x.recipe)
		}
	}
	out.WriteString("# Finished Make data base\n\n")
}
