// Package command is the list of a sandbox's commands.
//
// A command is a name and a program that runs on a proc.Process; it sees nothing but that. Commands live in packages
// below this one: coreutils has one file for each, larger ones have packages of their own. They are listed here and
// registered nowhere else.
package command

import (
	"sort"

	"agentrun.dev/command/tool"
)

// Command is a program with a name, as PATH finds it.
type Command struct {
	Name string
	Run  tool.Func // implements proc.Program
}

// All returns all commands in the order of their names.
func All() []Command {
	all := append([]Command(nil), list...)
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
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
