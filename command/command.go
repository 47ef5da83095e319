// Package command is the list of a sandbox's commands.
//
// A command is a name and a program that runs on a proc.Process; it sees nothing but that. Commands live in packages
// below this one: coreutils has one file for each, larger ones have packages of their own. They are listed here and
// registered nowhere else.
package command

import (
	"slices"
	"strings"

	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
)

// Command is a program with a name, as PATH finds it.
type Command struct {
	Name string
	Run  tool.Func // implements proc.Program
}

// All returns all commands in the order of their names.
func All() []Command {
	all := append([]Command(nil), list...)
	slices.SortFunc(all, func(a, b Command) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Lookup finds a command by its name.
func Lookup(name string) (Command, bool) {
	for _, c := range list {
		if c.Name == name {
			return c, true
		}
	}
	return Command{}, false
}

// Set is a set of commands by name; it implements proc.Commands.
type Set struct {
	byName map[string]proc.Program
	names  []string
}

// NewSet returns all commands and those given besides, which replace others of the same name.
func NewSet(more map[string]proc.Program) *Set {
	s := &Set{byName: make(map[string]proc.Program, len(list)+len(more))}
	for _, c := range list {
		s.byName[c.Name] = c.Run
	}
	for name, p := range more {
		s.byName[name] = p
	}
	for name := range s.byName {
		s.names = append(s.names, name)
	}
	slices.Sort(s.names)
	return s
}

// Lookup implements proc.Commands.
func (s *Set) Lookup(name string) (proc.Program, bool) {
	p, ok := s.byName[name]
	return p, ok
}

// Names implements proc.Commands. The result must not be changed.
func (s *Set) Names() []string { return s.names }
