package coreutils

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var archSpec = tool.Spec{Usage: []string{"[OPTION]..."}, About: "Print machine architecture.", Package: tool.Coreutils}

// Arch prints the machine's name, as uname -m does.
func Arch(t *tool.T) int {
	_, operands := t.Parse(&archSpec)
	noOperands(t, operands)
	t.Out.WriteString("x86_64\n")
	return 0
}

var nprocSpec = tool.Spec{
	Usage: []string{"[OPTION]..."}, About: "Print the number of processing units available to the current process.",
	Options: []getopt.Option{
		{Long: "all", Key: tool.KeyOwn, Help: "print the number of installed processors"},
		{Long: "ignore", Key: tool.KeyOwn + 1, Arg: getopt.Required, Name: "N", Help: "if possible, exclude N processing units"},
	},
	Package: tool.Coreutils,
}

// Nproc prints how many processors there are: those of /proc/cpuinfo.
func Nproc(t *tool.T) int {
	opts, operands := t.Parse(&nprocSpec)
	all, ignore := false, uint64(0)
	for _, o := range opts {
		if o.Key == tool.KeyOwn {
			all = true
			continue
		}
		n, err := strconv.ParseUint(o.Arg, 10, 64)
		if err != nil {
			t.Fatal(1, "invalid number: %s", tool.Quote(o.Arg))
		}
		ignore = n
	}
	noOperands(t, operands)
	n := uint64(1)
	if b, err := t.ReadFile("/proc/cpuinfo", 1<<20); err == nil {
		n = max(1, uint64(strings.Count("\n"+string(b), "\nprocessor")))
	}
	if !all {
		limit, _, _ := strings.Cut(t.Getenv("OMP_NUM_THREADS"), ",")
		if v, err := strconv.ParseUint(strings.TrimSpace(limit), 10, 32); err == nil && v > 0 {
			n = v
		}
		if v, err := strconv.ParseUint(strings.TrimSpace(t.Getenv("OMP_THREAD_LIMIT")), 10, 32); err == nil && v > 0 {
			n = min(n, v)
		}
	}
	if ignore < n {
		n -= ignore
	} else {
		n = 1
	}
	fmt.Fprintf(t.Out, "%d\n", n)
	return 0
}

var ttySpec = tool.Spec{
	Usage: []string{"[OPTION]..."}, About: "Print the file name of the terminal connected to standard input.",
	Options: []getopt.Option{{Short: 's', Long: "silent", Help: "print nothing, only return an exit status"}, {Long: "quiet", Key: 's'}},
	Package: tool.Coreutils, Fail: 2,
}

// Tty prints the terminal's name.
func Tty(t *tool.T) int {
	t.FailStatus(3)
	opts, operands := t.Parse(&ttySpec)
	if len(operands) > 0 {
		t.Extra(2, operands[0])
	}
	isTTY := t.IsTerminal(0)
	if len(opts) == 0 {
		switch name, err := t.Readlink("/proc/self/fd/0"); {
		case !isTTY:
			t.Out.WriteString("not a tty\n")
		case err == nil && strings.HasPrefix(name, "/dev/"):
			t.Out.WriteString(name + "\n")
		default:
			t.Out.WriteString("/dev/tty\n")
		}
	}
	return status(!isTTY)
}

var usersSpec = tool.Spec{Usage: []string{"[OPTION]... [FILE]"}, About: "Output who is currently logged in.  A sandbox keeps no record of logins.", Package: tool.Coreutils}

// Users prints who is logged in; a sandbox keeps no such record, as a container without utmp.
func Users(t *tool.T) int {
	_, operands := t.Parse(&usersSpec)
	if len(operands) > 1 {
		t.Extra(1, operands[1])
	}
	return 0
}

var whoSpec = tool.Spec{
	Usage: []string{"[OPTION]... [ FILE | ARG1 ARG2 ]"}, About: "Print information about users who are currently logged in.  A sandbox keeps no record of logins.",
	Options: []getopt.Option{
		{Short: 'a', Long: "all", Help: "same as -b -d --login -p -r -t -T -u"}, {Short: 'b', Long: "boot", Help: "time of last system boot"},
		{Short: 'd', Long: "dead", Help: "print dead processes"}, {Short: 'H', Long: "heading", Help: "print line of column headings"},
		{Short: 'l', Long: "login", Help: "print system login processes"}, {Long: "lookup", Key: tool.KeyOwn, Help: "attempt to canonicalize hostnames via DNS"},
		{Short: 'm', Help: "only hostname and user associated with stdin"}, {Short: 'p', Long: "process", Help: "print active processes spawned by init"},
		{Short: 'q', Long: "count", Help: "all login names and number of users logged on"}, {Short: 'r', Long: "runlevel", Help: "print current runlevel"},
		{Short: 's', Long: "short", Help: "print only name, line, and time (default)"}, {Short: 't', Long: "time", Help: "print last system clock change"},
		{Short: 'T', Long: "mesg", Help: "add user's message status as +, - or ?"}, {Short: 'w', Key: 'T'}, {Short: 'u', Long: "users", Help: "list users logged in"},
		{Long: "message", Key: 'T'}, {Long: "writable", Key: 'T'},
	},
	Package: tool.Coreutils,
}

// Who prints who is logged in: nobody, but when the sandbox was started.
func Who(t *tool.T) int {
	opts, operands := t.Parse(&whoSpec)
	if len(operands) > 2 {
		t.Extra(1, operands[2])
	}
	for _, o := range opts {
		switch o.Key {
		case 'b', 'a':
			boot := t.Now().Add(-t.Sandbox().Uptime()).In(t.Location())
			t.Out.WriteString("         system boot  " + boot.Format("2006-01-02 15:04") + "\n")
		case 'q':
			t.Out.WriteString("\n# users=0\n")
		case 'H':
			t.Out.WriteString("NAME     LINE         TIME             COMMENT\n")
		}
	}
	return 0
}

var lognameSpec = tool.Spec{Usage: []string{"[OPTION]"}, About: "Print the user's login name.", Package: tool.Coreutils}

// Logname prints the name under which the user logged in.
func Logname(t *tool.T) int {
	_, operands := t.Parse(&lognameSpec)
	noOperands(t, operands)
	t.Out.WriteString(t.Accounts().UserName(t.Cred().UID) + "\n")
	return 0
}

var groupsSpec = tool.Spec{Usage: []string{"[OPTION]... [USERNAME]..."}, About: "Print group memberships for each USERNAME or, if no USERNAME is specified, for\nthe current process (which may differ if the groups database has changed).", Package: tool.Coreutils}

// Groups prints the groups of users.
func Groups(t *tool.T) int {
	_, users := t.Parse(&groupsSpec)
	acc := t.Accounts()
	if len(users) == 0 {
		c := t.Cred()
		t.Out.WriteString(idText(acc, c.UID, c.GID, c.Groups, 'G', true, " ") + "\n")
		return 0
	}
	failed := false
	for _, name := range users {
		u := acc.UserByName(name)
		if u == nil {
			t.Warn("%s: no such user", tool.Quote(name))
			failed = true
			continue
		}
		var more []uint32
		for _, g := range acc.Groups {
			if contains(g.Members, u.Name) {
				more = append(more, g.GID)
			}
		}
		t.Out.WriteString(name + " : " + idText(acc, u.UID, u.GID, more, 'G', true, " ") + "\n")
	}
	return status(failed)
}

var hostidSpec = tool.Spec{Usage: []string{"[OPTION]"}, About: "Print the numeric identifier (in hexadecimal) for the current host.", Package: tool.Coreutils}

// Hostid prints a number made of the sandbox's name.
func Hostid(t *tool.T) int {
	_, operands := t.Parse(&hostidSpec)
	noOperands(t, operands)
	h := uint32(2166136261)
	for _, c := range []byte(t.Sandbox().Hostname()) {
		h = (h ^ uint32(c)) * 16777619
	}
	fmt.Fprintf(t.Out, "%08x\n", h)
	return 0
}

var syncSpec = tool.Spec{
	Usage: []string{"[OPTION] [FILE]..."}, About: "Synchronize cached writes to persistent storage.\n\nIf one or more files are specified, sync only them,\nor their containing file systems.",
	Options: []getopt.Option{{Short: 'd', Long: "data", Help: "sync only file data, no unneeded metadata"}, {Short: 'f', Long: "file-system", Help: "sync the file systems that contain the files"}},
	Package: tool.Coreutils,
}

// Sync makes files durable.
func Sync(t *tool.T) int {
	opts, files := t.Parse(&syncSpec)
	data, fs := false, false
	for _, o := range opts {
		data, fs = data || o.Key == 'd', fs || o.Key == 'f'
	}
	switch {
	case data && fs:
		t.Fatal(1, "cannot specify both --data and --file-system")
	case data && len(files) == 0:
		t.Fatal(1, "--data needs at least one argument")
	case len(files) == 0:
		if err := t.Sandbox().Namespace().Flush(t.Context(), true); err != nil {
			t.Fatal(1, "%s", tool.Strerror(err))
		}
		return 0
	}
	failed := false
	for _, name := range files {
		in, err := t.OpenFile(name)
		if err != nil {
			t.Warn("error opening %s: %s", tool.QuoteAF(name), tool.Strerror(err))
			failed = true
			continue
		}
		if err := in.File.Sync(); err != nil {
			t.Warn("error syncing %s: %s", tool.QuoteAF(name), tool.Strerror(err))
			failed = true
		}
		in.Close()
	}
	return status(failed)
}

var pathchkSpec = tool.Spec{
	Usage: []string{"[OPTION]... NAME..."}, About: "Diagnose invalid or unportable file names.",
	Options: []getopt.Option{{Short: 'p', Help: "check for most POSIX systems"}, {Short: 'P', Help: `check for empty names and leading "-"`},
		{Long: "portability", Key: tool.KeyOwn, Help: "check for all POSIX systems (equivalent to -p -P)"}},
	Package: tool.Coreutils,
}

// Pathchk tells whether names can be used.
func Pathchk(t *tool.T) int {
	opts, args := t.Parse(&pathchkSpec)
	portable, extra := false, false
	for _, o := range opts {
		portable = portable || o.Key == 'p' || o.Key == tool.KeyOwn
		extra = extra || o.Key == 'P' || o.Key == tool.KeyOwn
	}
	if len(args) == 0 {
		t.Missing(1)
	}
	failed := false
	for _, name := range args {
		if message := pathTrouble(t, name, portable, extra); message != "" {
			t.Warn("%s", message)
			failed = true
		}
	}
	return status(failed)
}

const portableChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/"

// pathTrouble returns what is wrong with a name.
func pathTrouble(t *tool.T, name string, portable, extra bool) string {
	if extra {
		for _, part := range strings.Split(name, "/") {
			if strings.HasPrefix(part, "-") {
				return "leading '-' in a component of file name " + tool.QuoteAF(name)
			}
		}
	}
	if (portable || extra) && name == "" {
		return "empty file name"
	}
	maxName, maxPath := 255, 4095
	if portable {
		if i := strings.IndexFunc(name, func(r rune) bool { return strings.IndexRune(portableChars, r) < 0 }); i >= 0 {
			_, r := 0, []rune(name[i:])[0]
			return fmt.Sprintf("nonportable character %s in file name %s", tool.Quote(string(r)), tool.QuoteAF(name))
		}
		maxName, maxPath = 14, 255
	} else if _, err := t.Lstat(name); err != nil && (!tool.IsNotExist(err) || name == "" || strings.Contains(tool.Strerror(err), "Not a")) {
		return tool.QuoteF(name) + ": " + tool.Strerror(err)
	}
	if len(name) > maxPath {
		return fmt.Sprintf("limit %d exceeded by length %d of file name %s", maxPath, len(name), tool.QuoteAF(name))
	}
	for _, part := range strings.Split(name, "/") {
		if len(part) > maxName {
			return fmt.Sprintf("limit %d exceeded by length %d of file name component %s", maxName, len(part), tool.Quote(part))
		}
	}
	return ""
}

var uptimeSpec = tool.Spec{
	Usage: []string{"[options]"}, About: "Tell how long the system has been running.",
	Options: []getopt.Option{{Short: 'p', Long: "pretty", Help: "show uptime in pretty format"}, {Short: 's', Long: "since", Help: "system up since"}},
	Package: "procps-ng) 4.0.2",
}

// Uptime prints how long the sandbox has been running.
func Uptime(t *tool.T) int {
	opts, _ := t.Parse(&uptimeSpec)
	up := t.Sandbox().Uptime()
	now := t.Now().In(t.Location())
	for _, o := range opts {
		if o.Key == 's' {
			t.Out.WriteString(now.Add(-up).Format("2006-01-02 15:04:05") + "\n")
		} else {
			t.Out.WriteString(prettyUptime(up) + "\n")
		}
		return 0
	}
	t.Out.WriteString(UptimeLine(now, up) + "\n")
	return 0
}

// UptimeLine is the line that uptime and top begin with.
func UptimeLine(now time.Time, up time.Duration) string {
	text := ""
	days, hours, minutes := int(up.Hours())/24, int(up.Hours())%24, int(up.Minutes())%60
	if days == 1 {
		text = "1 day, "
	} else if days > 1 {
		text = fmt.Sprintf("%d days, ", days)
	}
	if hours > 0 {
		text += fmt.Sprintf("%2d:%02d", hours, minutes)
	} else {
		text += fmt.Sprintf("%d min", minutes)
	}
	return fmt.Sprintf(" %s up %s,  0 users,  load average: 0.00, 0.00, 0.00", now.Format("15:04:05"), text)
}

func prettyUptime(up time.Duration) string {
	var parts []string
	add := func(n int, unit string) {
		if n == 1 {
			parts = append(parts, "1 "+unit)
		} else if n > 1 {
			parts = append(parts, fmt.Sprintf("%d %ss", n, unit))
		}
	}
	minutes := int(up.Minutes())
	add(minutes/(7*24*60), "week")
	add(minutes/(24*60)%7, "day")
	add(minutes/60%24, "hour")
	if add(minutes%60, "minute"); len(parts) == 0 {
		parts = []string{"0 minutes"}
	}
	return "up " + strings.Join(parts, ", ")
}
