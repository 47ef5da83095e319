package coreutils

import (
	"fmt"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

const (
	keyContextReference = tool.KeyOwn + iota
	keyContextDereference
	keyContextNoPreserveRoot
	keyContextPreserveRoot
)

var chconSpec = tool.Spec{
	Usage: []string{"[OPTION]... CONTEXT FILE...", "[OPTION]... [-u USER] [-r ROLE] [-l RANGE] [-t TYPE] FILE...", "[OPTION]... --reference=RFILE FILE..."},
	About: "Change the SELinux security context of each FILE to CONTEXT.\nThe files of a sandbox have no security contexts, so this fails for each of them.",
	Options: []getopt.Option{
		{Long: "dereference", Key: keyContextDereference, Help: "affect the referent of each symbolic link (this is the default)"},
		{Short: 'h', Long: "no-dereference", Help: "affect symbolic links instead of any referenced file"},
		{Short: 'u', Long: "user", Arg: getopt.Required, Name: "USER", Help: "set user USER in the target security context"},
		{Short: 'r', Long: "role", Arg: getopt.Required, Name: "ROLE", Help: "set role ROLE in the target security context"},
		{Short: 't', Long: "type", Arg: getopt.Required, Name: "TYPE", Help: "set type TYPE in the target security context"},
		{Short: 'l', Long: "range", Arg: getopt.Required, Name: "RANGE", Help: "set range RANGE in the target security context"},
		{Long: "no-preserve-root", Key: keyContextNoPreserveRoot, Help: "do not treat '/' specially (the default)"},
		{Long: "preserve-root", Key: keyContextPreserveRoot, Help: "fail to operate recursively on '/'"},
		{Long: "reference", Key: keyContextReference, Arg: getopt.Required, Name: "RFILE", Help: "use RFILE's security context rather than specifying a CONTEXT value"},
		{Short: 'R', Long: "recursive", Help: "operate on files and directories recursively"},
		{Short: 'v', Long: "verbose", Help: "output a diagnostic for every file processed"},
		{Short: 'H', Help: "traverse a command line argument that is a symbolic link to a directory"},
		{Short: 'L', Help: "traverse every symbolic link to a directory encountered"},
		{Short: 'P', Help: "do not traverse any symbolic links (default)"},
	},
	Package: tool.Coreutils,
}

// Chcon says of each file that it has no security context.
func Chcon(t *tool.T) int {
	opts, files := t.Parse(&chconSpec)
	parts, reference, least := false, "", 2
	for _, o := range opts {
		switch o.Key {
		case 'u', 'r', 't', 'l':
			parts, least = true, 1
		case keyContextReference:
			reference, least = o.Arg, 1
		}
	}
	switch {
	case len(files) == 0:
		t.Missing(1)
	case len(files) < least:
		t.UsageError(1, "missing operand after %s", tool.Quote(files[len(files)-1]))
	}
	if reference != "" {
		if parts {
			t.UsageError(1, "conflicting security context specifiers given")
		}
		if _, err := t.Stat(reference); err != nil {
			t.Fatal(1, "failed to get security context of %s: %s", tool.QuoteAF(reference), tool.Strerror(err))
		}
		t.Fatal(1, "failed to get security context of %s: Operation not supported", tool.QuoteAF(reference))
	}
	if !parts {
		files = files[1:]
	}
	for _, name := range files {
		switch _, err := t.Lstat(name); {
		case err != nil:
			t.Warn("cannot access %s: %s", tool.QuoteAF(name), tool.Strerror(err))
		case parts:
			t.Warn("can't apply partial context to unlabeled file %s", tool.QuoteAF(name))
		default:
			t.Warn("failed to change context of %s: Operation not supported", tool.QuoteAF(name))
		}
	}
	return 1
}

var runconSpec = tool.Spec{
	Usage: []string{"CONTEXT COMMAND [args]", "[ -c ] [-u USER] [-r ROLE] [-t TYPE] [-l RANGE] COMMAND [args]"},
	About: "Run a program in a different SELinux security context.\nA sandbox has no SELinux, so no program is run.",
	Options: []getopt.Option{
		{Short: 'c', Long: "compute", Help: "compute process transition context before modifying"},
		{Short: 't', Long: "type", Arg: getopt.Required, Name: "TYPE", Help: "type (for same role as parent)"},
		{Short: 'u', Long: "user", Arg: getopt.Required, Name: "USER", Help: "user identity"},
		{Short: 'r', Long: "role", Arg: getopt.Required, Name: "ROLE", Help: "role"},
		{Short: 'l', Long: "range", Arg: getopt.Required, Name: "RANGE", Help: "levelrange"},
	},
	Package: tool.Coreutils, Order: getopt.POSIX,
}

// Runcon says that there are no security contexts.
func Runcon(t *tool.T) int {
	opts, args := t.Parse(&runconSpec)
	switch {
	case len(args) == 0:
		t.Fatal(1, "failed to get current context: Invalid argument")
	case len(opts) == 0 && len(args) == 1:
		t.UsageError(1, "no command specified")
	}
	t.Fatal(1, "%s may be used only on a SELinux kernel", t.Name)
	return 1
}

var pinkySpec = tool.Spec{
	Usage: []string{"[OPTION]... [USER]..."},
	About: "A lightweight 'finger' program;  print user information.  A sandbox keeps no record of logins.",
	Options: []getopt.Option{
		{Short: 'l', Help: "produce long format output for the specified USERs"},
		{Short: 'b', Help: "omit the user's home directory and shell in long format"},
		{Short: 'h', Help: "omit the user's project file in long format"},
		{Short: 'p', Help: "omit the user's plan file in long format"},
		{Short: 's', Help: "do short format output, this is the default"},
		{Short: 'f', Help: "omit the line of column headings in short format"},
		{Short: 'w', Help: "omit the user's full name in short format"},
		{Short: 'i', Help: "omit the user's full name and remote host in short format"},
		{Short: 'q', Help: "omit the user's full name, remote host and idle time in short format"},
	},
	Package: tool.Coreutils,
}

// maxPlan bounds a user's plan and project files.
const maxPlan = 1 << 20

// Pinky tells about users: nobody is logged in, so the short format has a head only.
func Pinky(t *tool.T) int {
	opts, users := t.Parse(&pinkySpec)
	long, off := false, map[rune]bool{}
	for _, o := range opts {
		switch o.Key {
		case 'l':
			long = true
		case 's':
			long = false
		default:
			off[o.Key] = true
		}
	}
	if !long {
		if off['f'] {
			return 0
		}
		t.Out.WriteString("Login   ")
		if !off['w'] && !off['i'] && !off['q'] {
			t.Out.WriteString(" Name               ")
		}
		t.Out.WriteString("  TTY     ")
		if !off['q'] {
			t.Out.WriteString(" Idle  ")
		}
		t.Out.WriteString(" When            ")
		if !off['i'] && !off['q'] {
			t.Out.WriteString(" Where")
		}
		t.Out.WriteString("\n")
		return 0
	}
	if len(users) == 0 {
		t.UsageError(1, "no username specified; at least one must be specified when using -l")
	}
	acc := t.Accounts()
	for _, name := range users {
		fmt.Fprintf(t.Out, "Login name: %-28sIn real life: ", name)
		u := acc.UserByName(name)
		if u == nil {
			t.Out.WriteString(" ???\n")
			continue
		}
		full := ""
		for i := 0; i < len(u.Gecos) && u.Gecos[i] != ','; i++ {
			if u.Gecos[i] == '&' && name != "" {
				full += string(name[0]&^0x20) + name[1:]
			} else {
				full += string(u.Gecos[i])
			}
		}
		fmt.Fprintf(t.Out, " %s\n", full)
		if !off['b'] {
			fmt.Fprintf(t.Out, "Directory: %-29sShell:  %s\n", u.Home, u.Shell)
		}
		for _, f := range []struct {
			off        bool
			file, head string
		}{{off['h'], ".project", "Project: "}, {off['p'], ".plan", "Plan:\n"}} {
			if text, err := t.ReadFile(u.Home+"/"+f.file, maxPlan); err == nil && !f.off {
				t.Out.WriteString(f.head)
				t.Out.Write(text)
			}
		}
		t.Out.WriteString("\n")
	}
	return 0
}
