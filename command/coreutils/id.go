package coreutils

import (
	"strconv"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var idSpec = tool.Spec{
	Usage: []string{"[OPTION]... [USER]..."},
	About: "Print user and group information for each specified USER,\nor (when USER omitted) for the current process.",
	Options: []getopt.Option{
		{Short: 'a', Help: "ignore, for compatibility with other versions"},
		{Short: 'g', Long: "group", Help: "print only the effective group ID"},
		{Short: 'G', Long: "groups", Help: "print all group IDs"},
		{Short: 'n', Long: "name", Help: "print a name instead of a number, for -ugG"},
		{Short: 'r', Long: "real", Help: "print the real ID instead of the effective ID, with -ugG"},
		{Short: 'u', Long: "user", Help: "print only the effective user ID"},
		{Short: 'z', Long: "zero", Help: "delimit entries with NUL characters, not whitespace; not permitted in default format"},
	},
	Package: tool.Coreutils,
}

// Id prints who the user is.
func Id(t *tool.T) int {
	opts, users := t.Parse(&idSpec)
	mode, byName, real, zero := rune(0), false, false, false
	for _, o := range opts {
		switch o.Key {
		case 'g', 'G', 'u':
			if mode != 0 && mode != o.Key {
				t.Fatal(1, "cannot print \"only\" of more than one choice")
			}
			mode = o.Key
		case 'n':
			byName = true
		case 'r':
			real = true
		case 'z':
			zero = true
		}
	}
	if mode == 0 && (byName || real) {
		t.Fatal(1, "cannot print only names or real IDs in default format")
	}
	if mode == 0 && zero {
		t.Fatal(1, "option --zero not permitted in default format")
	}
	acc := t.Accounts()
	end, sep := "\n", " "
	if zero {
		end, sep = "\x00", "\x00"
	}
	if len(users) == 0 {
		c := t.Cred()
		t.Out.WriteString(idText(acc, c.UID, c.GID, c.Groups, mode, byName, sep) + end)
		return 0
	}
	failed := false
	for _, name := range users {
		u := acc.UserByName(name)
		if u == nil {
			if uid, ok := acc.LookupUID(name); ok {
				u = acc.UserByID(uid)
			}
		}
		if u == nil {
			t.Warn("%s: no such user", tool.Quote(name))
			failed = true
			continue
		}
		var groups []uint32
		for _, g := range acc.Groups {
			if contains(g.Members, u.Name) {
				groups = append(groups, g.GID)
			}
		}
		t.Out.WriteString(idText(acc, u.UID, u.GID, groups, mode, byName, sep) + end)
	}
	return status(failed)
}

func idText(acc *tool.Accounts, uid, gid uint32, more []uint32, mode rune, byName bool, sep string) string {
	groups := []uint32{gid}
	for _, g := range more {
		if g != gid {
			groups = append(groups, g)
		}
	}
	show := func(id uint32, name func(uint32) string) string {
		if byName {
			return name(id)
		}
		return strconv.FormatUint(uint64(id), 10)
	}
	switch mode {
	case 'u':
		return show(uid, acc.UserName)
	case 'g':
		return show(gid, acc.GroupName)
	case 'G':
		list := make([]string, len(groups))
		for i, g := range groups {
			list[i] = show(g, acc.GroupName)
		}
		return strings.Join(list, sep)
	}
	both := func(id uint32, name string) string {
		n := strconv.FormatUint(uint64(id), 10)
		if name == n {
			return n
		}
		return n + "(" + name + ")"
	}
	list := make([]string, len(groups))
	for i, g := range groups {
		list[i] = both(g, acc.GroupName(g))
	}
	return "uid=" + both(uid, acc.UserName(uid)) + " gid=" + both(gid, acc.GroupName(gid)) + " groups=" + strings.Join(list, ",")
}

var whoamiSpec = tool.Spec{Usage: []string{"[OPTION]..."}, About: "Print the user name associated with the current effective user ID.\nSame as id -un.", Package: tool.Coreutils}

// Whoami prints the user's name.
func Whoami(t *tool.T) int {
	_, operands := t.Parse(&whoamiSpec)
	noOperands(t, operands)
	t.Out.WriteString(t.Accounts().UserName(t.Cred().UID) + "\n")
	return 0
}
