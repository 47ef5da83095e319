package make

import (
	"strings"
)

// origin says where a variable's value comes from. A later one is not replaced by an earlier one.
type origin uint8

const (
	fromDefault origin = iota
	fromEnv
	fromFile
	fromEnvOverride
	fromCommand
	fromOverride
	automatic
)

var originNames = [...]string{"default", "environment", "file", "environment override", "command line", "override", "automatic"}

// variable is a variable in one frame.
type variable struct {
	name, value string
	recursive   bool
	origin      origin
	export      int8 // 1 yes, -1 no, 0 as the rules say
	private     bool // prerequisites don't inherit it
	appended    bool // the value follows that of the frame below
	expanding   bool
	unexpanded  bool // no recursion guard: it is being called
	loc         location
}

type scope map[string]*variable

// frame is a scope on top of others.
type frame struct {
	vars scope
	next *frame
	// inherited marks that the frames from here on belong to other targets: their private variables don't show.
	inherited bool
}

// find looks a name up from a frame on, then among the global variables.
func (m *maker) find(name string) *variable {
	inherited := false
	for f := m.top; f != nil; f = f.next {
		inherited = inherited || f.inherited
		if v := f.vars[name]; v != nil && !(inherited && v.private) {
			return v
		}
	}
	return m.global[name]
}

// value returns a variable's value, expanded.
func (m *maker) value(name string) string {
	inherited := false
	for f := m.top; f != nil; f = f.next {
		inherited = inherited || f.inherited
		v := f.vars[name]
		if v == nil || inherited && v.private {
			continue
		}
		s := m.expanded(v)
		if !v.appended {
			return s
		}
		top := m.top
		m.top = f.next
		below := m.value(name)
		m.top = top
		if below == "" {
			return s
		}
		return below + " " + s
	}
	if v := m.global[name]; v != nil {
		return m.expanded(v)
	}
	switch name {
	case ".VARIABLES":
		return strings.Join(sortedKeys(m.global), " ")
	case "MAKE_RESTARTS":
		return ""
	}
	if m.warnUndefined && name != "" && name != "MAKECMDGOALS" && name != "MAKE_RESTARTS" && name != "CURDIR" && name != "GNUMAKEFLAGS" {
		m.warn(m.loc, "warning: undefined variable '%s'", name)
	}
	return ""
}

func (m *maker) expanded(v *variable) string {
	if !v.recursive || strings.IndexByte(v.value, '$') < 0 {
		return v.value
	}
	if v.expanding && !v.unexpanded {
		m.fatal(m.loc, "Recursive variable '%s' references itself (eventually)", v.name)
	}
	was := v.expanding
	v.expanding = true
	loc := m.loc
	if v.loc.file != "" {
		m.loc = v.loc
	}
	defer func() { v.expanding, m.loc = was, loc }()
	return m.expand(v.value)
}

// set sets a global variable, unless one of a stronger origin is there.
func (m *maker) set(name, value string, o origin, recursive bool) *variable {
	return setIn(m.global, name, value, o, recursive, m.envOverrides)
}

func setIn(s scope, name, value string, o origin, recursive, envOverrides bool) *variable {
	v := s[name]
	if v == nil {
		v = &variable{name: name}
		s[name] = v
	} else {
		if envOverrides && v.origin == fromEnv {
			v.origin = fromEnvOverride
		}
		if v.origin > o {
			return v
		}
	}
	v.value, v.recursive, v.origin = value, recursive, o
	return v
}

// assignment is a line that sets a variable.
type assignment struct {
	name, op, value  string
	export, unexport bool
	override         bool
	private          bool
	define           bool
}

// parseAssignment splits "NAME OP VALUE", where neither is expanded yet.
func parseAssignment(line string) (a assignment, ok bool) {
	s := strings.TrimLeft(line, " \t")
	i := 0
	for i < len(s) {
		c := s[i]
		switch {
		case c == '$' && i+1 < len(s):
			if s[i+1] == '(' || s[i+1] == '{' {
				end := closing(s, i+1)
				if end < 0 {
					return a, false
				}
				i = end
			} else {
				i++
			}
		case c == ' ' || c == '\t':
			rest := strings.TrimLeft(s[i:], " \t")
			for _, op := range operators {
				if strings.HasPrefix(rest, op) {
					a.name, a.op, a.value = s[:i], op, strings.TrimLeft(rest[len(op):], " \t")
					return a, a.name != ""
				}
			}
			return a, false
		case c == '#':
			return a, false
		default:
			for _, op := range operators {
				if strings.HasPrefix(s[i:], op) {
					a.name, a.op, a.value = s[:i], op, strings.TrimLeft(s[i+len(op):], " \t")
					return a, true
				}
			}
			if c == ':' {
				return a, false
			}
		}
		i++
	}
	return a, false
}

// operators are those of assignments, longer ones first.
var operators = []string{"::=", ":=", "?=", "+=", "!=", "="}

// apply sets a variable of the makefile: a global one, or one of the scope of a target.
func (m *maker) apply(a assignment, s scope) *variable {
	name := strings.Trim(m.expand(a.name), " \t")
	if name == "" {
		m.fatal(m.loc, "empty variable name")
	}
	o := fromFile
	if a.override {
		o = fromOverride
	}
	if g := m.global[name]; m.envOverrides && g != nil && g.origin == fromEnv {
		g.origin = fromEnvOverride
	}
	local := s != nil
	if !local {
		s = m.global
	} else if g := m.global[name]; g != nil && g.origin > o && g.origin != automatic {
		if s[name] == nil {
			copied := *g
			s[name] = &copied
		}
		return s[name]
	}
	value, recursive := a.value, true
	switch a.op {
	case ":=", "::=":
		value, recursive = m.expand(value), false
	case "!=":
		value, recursive = m.shell(m.expand(value)), true
	case "?=":
		if old := s[name]; old != nil || local && m.find(name) != nil {
			if old == nil {
				return &variable{name: name}
			}
			return old
		}
	case "+=":
		old := s[name]
		if old == nil {
			if local {
				g := m.find(name)
				recursive = g == nil || g.recursive
				if !recursive {
					value = m.expand(value)
				}
				v := setIn(s, name, value, o, recursive, m.envOverrides)
				v.appended = true
				return v
			}
			break
		}
		if recursive = old.recursive; !recursive {
			value = m.expand(value)
		}
		if old.origin > o {
			return old
		}
		if old.value != "" && value != "" {
			value = old.value + " " + value
		} else {
			value = old.value + value
		}
		if len(value) > maxText {
			m.fatal(m.loc, "%v", errTooLarge)
		}
		appended := old.appended
		v := setIn(s, name, value, max(o, old.origin), recursive, m.envOverrides)
		v.appended = appended
		if !local {
			m.noticed(v)
		}
		return v
	}
	v := setIn(s, name, value, o, recursive, m.envOverrides)
	v.loc = m.loc
	if v.appended = false; !local {
		m.noticed(v)
	}
	return v
}

// noticed does what setting a variable does to make itself.
func (m *maker) noticed(v *variable) {
	switch v.name {
	case ".RECIPEPREFIX":
		m.prefix = '\t'
		if value := m.expanded(v); value != "" {
			m.prefix = value[0]
		}
	case "MAKEFLAGS":
		m.flagsFrom(m.expanded(v))
		v.value = m.flagsText()
	}
}
