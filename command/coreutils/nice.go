package coreutils

import (
	"strconv"
	"strings"
	"syscall"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
)

var niceSpec = tool.Spec{
	Usage:   []string{"[OPTION] [COMMAND [ARG]...]"},
	About:   "Run COMMAND with an adjusted niceness, which affects process scheduling.\nWith no COMMAND, print the current niceness.  All processes of a sandbox have niceness 0.",
	Options: []getopt.Option{{Short: 'n', Long: "adjustment", Arg: getopt.Required, Name: "N", Help: "add integer N to the niceness (default 10)"}},
	Package: tool.Coreutils, Fail: 125, Order: getopt.POSIX,
}

// Nice runs a command; a sandbox's processes are all equal, so the adjustment is only checked.
func Nice(t *tool.T) int {
	t.FailStatus(125)
	var args []string
	for i, a := range t.Args()[1:] { // -5, --5 and -+5 are numbers
		s := strings.TrimPrefix(a, "-")
		if len(a) < 2 || a[0] != '-' || strings.Trim(strings.TrimLeft(s, "-+")[:min(1, len(strings.TrimLeft(s, "-+")))], "0123456789") != "" || len(s) > 1 && s[0] == '-' && (s[1] < '0' || s[1] > '9') || strings.TrimLeft(s, "-+") == "" {
			args = append(args, t.Args()[1+i:]...)
			break
		}
		args = append(args, "-n"+s)
	}
	opts, rest := t.ParseArgs(&niceSpec, args)
	for _, o := range opts {
		if _, err := strconv.Atoi(o.Arg); err != nil {
			t.Fatal(125, "invalid adjustment %s", tool.Quote(o.Arg))
		}
	}
	if len(rest) == 0 {
		if len(opts) > 0 {
			t.UsageError(125, "a command must be given with an adjustment")
		}
		t.Out.WriteString("0\n")
		return 0
	}
	return runCommand(t, rest, nil)
}

var nohupSpec = tool.Spec{
	Usage:   []string{"COMMAND [ARG]...", "OPTION"},
	About:   "Run COMMAND, ignoring hangup signals.",
	Package: tool.Coreutils, Fail: 125, Order: getopt.POSIX,
}

// Nohup runs a command that survives the end of its terminal.
func Nohup(t *tool.T) int {
	fail := 125
	if _, ok := t.LookupEnv("POSIXLY_CORRECT"); ok {
		fail = 127
	}
	t.FailStatus(fail)
	_, args := t.Parse(&nohupSpec)
	if len(args) == 0 {
		t.Missing(fail)
	}
	in, out, errs := t.IsTerminal(0), t.IsTerminal(1), t.IsTerminal(2)
	if in {
		if t.OpenAt(0, "/dev/null", syscall.O_WRONLY, 0) == nil && !out && !errs {
			t.Warn("ignoring input")
		}
	}
	if out {
		name := "nohup.out"
		err := t.OpenAt(1, name, syscall.O_CREAT|syscall.O_WRONLY|syscall.O_APPEND, 0o600)
		if home := t.Getenv("HOME"); err != nil && home != "" {
			name = joinPath(home, name)
			err = t.OpenAt(1, name, syscall.O_CREAT|syscall.O_WRONLY|syscall.O_APPEND, 0o600)
		}
		if err != nil {
			t.Fatal(fail, "failed to open %s: %s", tool.QuoteAF(name), tool.Strerror(err))
		}
		if in {
			t.Warn("ignoring input and appending output to %s", tool.QuoteAF(name))
		} else {
			t.Warn("appending output to %s", tool.QuoteAF(name))
		}
	}
	if errs && out {
		t.Dup2(1, 2)
	} else if errs {
		t.Warn("redirecting stderr to stdout")
		t.Dup2(1, 2)
	}
	t.SetSignal(proc.SIGHUP, proc.Ignore)
	return runCommand(t, args, nil)
}

var stdbufSpec = tool.Spec{
	Usage: []string{"OPTION... COMMAND"},
	About: "Run COMMAND, with modified buffering operations for its standard streams.\nThe commands of a sandbox choose their own buffering.",
	Options: []getopt.Option{
		{Short: 'i', Long: "input", Arg: getopt.Required, Name: "MODE", Help: "adjust standard input stream buffering"},
		{Short: 'o', Long: "output", Arg: getopt.Required, Name: "MODE", Help: "adjust standard output stream buffering"},
		{Short: 'e', Long: "error", Arg: getopt.Required, Name: "MODE", Help: "adjust standard error stream buffering"},
	},
	Notes:   "MODE is L for line buffered, 0 for unbuffered, or a size in bytes.",
	Package: tool.Coreutils, Fail: 125, Order: getopt.POSIX,
}

// Stdbuf runs a command; how it buffers is its own affair.
func Stdbuf(t *tool.T) int {
	t.FailStatus(125)
	opts, args := t.Parse(&stdbufSpec)
	for _, o := range opts {
		if o.Arg == "L" {
			if o.Key == 'i' {
				t.UsageError(125, "line buffering stdin is meaningless")
			}
			continue
		}
		if _, err := tool.ParseSize(o.Arg, "EGkKMPTYZ0"); err != nil || o.Arg == "" {
			t.Fatal(125, "invalid mode %s", tool.Quote(o.Arg))
		}
	}
	if len(args) == 0 {
		t.Missing(125)
	}
	if len(opts) == 0 {
		t.UsageError(125, "you must specify a buffering mode option")
	}
	return runCommand(t, args, nil)
}

var chrootSpec = tool.Spec{
	Usage: []string{"[OPTION] NEWROOT [COMMAND [ARG]...]"},
	About: "Run COMMAND with root directory set to NEWROOT.  A sandbox has one root: '/' is all that NEWROOT may be.",
	Options: []getopt.Option{
		{Long: "groups", Key: tool.KeyOwn, Arg: getopt.Required, Name: "G_LIST", Help: "specify supplementary groups as g1,g2,..,gN"},
		{Long: "userspec", Key: tool.KeyOwn + 1, Arg: getopt.Required, Name: "USER:GROUP", Help: "specify user and group (ID or name) to use"},
		{Long: "skip-chdir", Key: tool.KeyOwn + 2, Help: "do not change working directory to '/'"},
	},
	Package: tool.Coreutils, Fail: 125, Order: getopt.POSIX,
}

// Chroot runs a command, perhaps as somebody else: a sandbox has one root, so that "/" is all that NEWROOT may be.
func Chroot(t *tool.T) int {
	t.FailStatus(125)
	opts, args := t.Parse(&chrootSpec)
	if len(args) == 0 {
		t.Missing(125)
	}
	a, err := t.Stat(args[0])
	top, topErr := t.Stat("/")
	switch {
	case err != nil:
		t.Fatal(125, "cannot change root directory to %s: %s", tool.QuoteAF(args[0]), tool.Strerror(err))
	case topErr != nil || a.Dev != top.Dev || a.Ino != top.Ino || t.Cred().UID != 0:
		t.Fatal(125, "cannot change root directory to %s: %s", tool.QuoteAF(args[0]), tool.Strerror(syscall.EPERM))
	}
	cred, changed, stay := t.Cred(), false, false
	for _, o := range opts {
		switch o.Key {
		case tool.KeyOwn:
			cred.Groups, changed = chrootGroups(t, o.Arg), true
		case tool.KeyOwn + 1:
			cred.UID, cred.GID = chrootUser(t, o.Arg)
			changed = true
		case tool.KeyOwn + 2:
			stay = true
		}
	}
	if !stay {
		if err := t.Chdir("/"); err != nil {
			t.Fatal(125, "cannot chdir to root directory: %s", tool.Strerror(err))
		}
	}
	if changed {
		if err := t.SetCred(cred); err != nil {
			t.Fatal(125, "failed to set user-ID: %s", tool.Strerror(err))
		}
	}
	if len(args) == 1 {
		shell := t.Getenv("SHELL")
		if shell == "" {
			shell = "/bin/sh"
		}
		args = append(args, shell, "-i")
	}
	return runCommand(t, args[1:], nil)
}

// chrootUser reads USER[:GROUP] or :GROUP; without a group it is the user's own.
func chrootUser(t *tool.T, spec string) (uid, gid uint32) {
	acc := t.Accounts()
	cred := t.Cred()
	uid, gid = cred.UID, cred.GID
	user, group, hasGroup := strings.Cut(spec, ":")
	if user != "" {
		id, ok := acc.LookupUID(user)
		if !ok {
			t.Fatal(125, "invalid user")
		}
		if uid = id; !hasGroup {
			if u := acc.UserByID(id); u != nil {
				gid = u.GID
			}
		}
	}
	if group != "" {
		id, ok := acc.LookupGID(group)
		if !ok {
			t.Fatal(125, "invalid group")
		}
		gid = id
	}
	return uid, gid
}

func chrootGroups(t *tool.T, list string) (out []uint32) {
	for g := range strings.SplitSeq(list, ",") {
		if g == "" {
			continue
		}
		id, ok := t.Accounts().LookupGID(g)
		if !ok {
			t.Fatal(125, "invalid group %s", tool.Quote(g))
		}
		out = append(out, id)
	}
	return out
}
