package system

import (
	"crypto/md5"
	"crypto/sha1"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
)

// limits that a path may be given for.
var pathLimits = []string{"LINK_MAX", "MAX_CANON", "MAX_INPUT", "NAME_MAX", "PATH_MAX", "PIPE_BUF"}

// variables are what getconf knows; an empty value is undefined.
var variables = []string{
	"LINK_MAX=127", "MAX_CANON=255", "MAX_INPUT=255", "NAME_MAX=255", "PATH_MAX=4096", "PIPE_BUF=4096", "_POSIX_LINK_MAX=127", "_POSIX_MAX_CANON=255", "_POSIX_MAX_INPUT=255", "_POSIX_NAME_MAX=255", "_POSIX_PATH_MAX=4096", "_POSIX_PIPE_BUF=4096",
	"_POSIX_CHOWN_RESTRICTED=1", "_POSIX_NO_TRUNC=1", "_POSIX_VDISABLE=0", "ARG_MAX=2097152", "CHAR_BIT=8", "CHAR_MAX=127", "CHAR_MIN=-128", "CHILD_MAX=512", "CLK_TCK=100", "INT_MAX=2147483647", "INT_MIN=-2147483648", "IOV_MAX=1024", "LOGNAME_MAX=256",
	"LONG_BIT=64", "LONG_MAX=9223372036854775807", "LONG_MIN=-9223372036854775808", "MB_LEN_MAX=16", "NGROUPS_MAX=65536", "NL_ARGMAX=4096", "NL_LANGMAX=2048", "NL_MSGMAX=2147483647", "NL_NMAX=2147483647", "NL_SETMAX=2147483647", "NL_TEXTMAX=2147483647", "NZERO=20", "OPEN_MAX=1024",
	"PAGESIZE=4096", "PAGE_SIZE=4096", "PASS_MAX=8192", "SCHAR_MAX=127", "SCHAR_MIN=-128", "SHRT_MAX=32767", "SHRT_MIN=-32768", "SSIZE_MAX=32767", "SYMLINK_MAX=", "SYMLOOP_MAX=40", "TTY_NAME_MAX=32", "TZNAME_MAX=", "UCHAR_MAX=255", "UINT_MAX=4294967295", "ULONG_MAX=18446744073709551615", "USHRT_MAX=65535", "WORD_BIT=32",
	"_NPROCESSORS_CONF=1", "_NPROCESSORS_ONLN=1", "_POSIX_ARG_MAX=2097152", "_POSIX_CHILD_MAX=512", "_POSIX_FSYNC=200809", "_POSIX_JOB_CONTROL=1", "_POSIX_NGROUPS_MAX=65536", "_POSIX_OPEN_MAX=1024", "_POSIX_SAVED_IDS=1", "_POSIX_SHELL=1", "_POSIX_REGEXP=1", "_POSIX_SSIZE_MAX=32767", "_POSIX_STREAM_MAX=16", "_POSIX_VERSION=200809", "_XOPEN_UNIX=", "_XOPEN_VERSION=700", "_XOPEN_XCU_VERSION=4",
	"BC_BASE_MAX=99", "BC_DIM_MAX=2048", "BC_SCALE_MAX=99", "BC_STRING_MAX=1000", "CHARCLASS_NAME_MAX=2048", "COLL_WEIGHTS_MAX=255", "EXPR_NEST_MAX=32", "LINE_MAX=2048", "RE_DUP_MAX=32767", "STREAM_MAX=16", "HOST_NAME_MAX=64", "LOGIN_NAME_MAX=256",
	"POSIX2_BC_BASE_MAX=99", "POSIX2_BC_DIM_MAX=2048", "POSIX2_BC_SCALE_MAX=99", "POSIX2_BC_STRING_MAX=1000", "POSIX2_CHAR_TERM=200809", "POSIX2_COLL_WEIGHTS_MAX=255", "POSIX2_C_BIND=", "POSIX2_C_DEV=", "POSIX2_EXPR_NEST_MAX=32", "POSIX2_FORT_DEV=", "POSIX2_FORT_RUN=", "POSIX2_LINE_MAX=2048", "POSIX2_LOCALEDEF=", "POSIX2_RE_DUP_MAX=32767", "POSIX2_SW_DEV=", "POSIX2_UPE=200809", "POSIX2_VERSION=200809", "_POSIX2_VERSION=200809",
	"PATH=/bin:/usr/bin", "CS_PATH=/bin:/usr/bin", "GNU_LIBC_VERSION=glibc 2.36", "POSIX_V6_LP64_OFF64=1", "POSIX_V7_LP64_OFF64=1", "LFS_CFLAGS=", "LFS_LDFLAGS=", "LFS_LIBS=",
}

// Getconf prints limits and other variables of the system.
func Getconf(t *tool.T) int {
	args, all := t.Args()[1:], false
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch {
		case args[0] == "-a":
			all = true
		case args[0] == "-v" && len(args) > 1:
			args = args[1:]
		case strings.HasPrefix(args[0], "-v"):
		case args[0] == "--version":
			t.Out.WriteString("getconf (Debian GLIBC 2.36-9) 2.36\n")
			return 0
		case args[0] == "--help":
			t.Out.WriteString("Usage: getconf [-v SPEC] VAR\n  or:  getconf [-v SPEC] PATH_VAR PATH\n\nGet the configuration value for variable VAR, or for variable PATH_VAR\nfor path PATH.\n")
			return 0
		}
		args = args[1:]
	}
	if all {
		for _, v := range variables {
			name, value, _ := strings.Cut(v, "=")
			fmt.Fprintf(t.Out, "%-34s %s\n", name, value)
		}
		return 0
	}
	if len(args) == 0 || len(args) > 2 {
		fmt.Fprint(t.Stderr(), "Usage: getconf [-v specification] variable_name [pathname]\n       getconf -a [pathname]\n")
		return 2
	}
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		if name != args[0] {
			continue
		}
		if isPath := slices.Contains(pathLimits, strings.TrimPrefix(name, "_POSIX_")); isPath && len(args) < 2 && !strings.HasPrefix(name, "_POSIX_") {
			fmt.Fprint(t.Stderr(), "Usage: getconf [-v specification] variable_name [pathname]\n       getconf -a [pathname]\n")
			return 2
		}
		switch name {
		case "OPEN_MAX", "_POSIX_OPEN_MAX":
			if l, err := t.Rlimit(proc.LimitNofile); err == nil {
				value = strconv.FormatUint(l.Soft, 10)
			}
		case "CHILD_MAX", "_POSIX_CHILD_MAX":
			value = strconv.Itoa(t.Sandbox().Limits().Processes)
		}
		if value == "" {
			value = "undefined"
		}
		fmt.Fprintln(t.Out, value)
		return 0
	}
	fmt.Fprintf(t.Stderr(), "getconf: Unrecognized variable `%s'\n", args[0])
	return 2
}

// Getent looks up entries of the databases in /etc.
func Getent(t *tool.T) int {
	args := t.Args()[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprint(t.Stderr(), "getent: wrong number of arguments\n")
		t.Out.WriteString("Try `getent --help' or `getent --usage' for more information.\n")
		return 1
	}
	fallback := map[string]string{"passwd": "", "group": "", "hosts": "127.0.0.1 localhost\n::1 localhost\n", "services": "", "protocols": "", "networks": "", "shells": "", "shadow": "", "gshadow": "", "rpc": "", "ethers": "", "netgroup": "", "aliases": "", "initgroups": "", "ahosts": "", "ahostsv4": "", "ahostsv6": ""}
	text, known := fallback[args[0]]
	if !known {
		fmt.Fprintf(t.Stderr(), "Unknown database: %s\n", args[0])
		t.Out.WriteString("Try `getent --help' or `getent --usage' for more information.\n")
		return 1
	}
	file := strings.Replace(args[0], "ahosts", "hosts", 1)
	file = strings.TrimSuffix(strings.TrimSuffix(file, "v4"), "v6")
	if b, err := t.ReadFile("/etc/"+file, 16<<20); err == nil && len(b) > 0 {
		text = string(b)
	}
	var lines []string
	for _, l := range strings.Split(text, "\n") {
		if l != "" && l[0] != '#' {
			lines = append(lines, l)
		}
	}
	if len(args) == 1 {
		for _, l := range lines {
			fmt.Fprintln(t.Out, entry(file, l))
		}
		return 0
	}
	status := 0
	for _, key := range args[1:] {
		found := false
		for _, l := range lines {
			if entryMatches(file, l, key) {
				fmt.Fprintln(t.Out, entry(file, l))
				found = true
				break
			}
		}
		if !found {
			status = 2
		}
	}
	return status
}

// entry shows a line as getent does: hosts and services in columns.
func entry(file, line string) string {
	f := strings.Fields(line)
	switch {
	case file == "hosts" && len(f) > 1:
		return fmt.Sprintf("%-15s %s", f[0], strings.Join(f[1:], " "))
	case (file == "services" || file == "protocols" || file == "networks") && len(f) > 1:
		return strings.TrimSpace(fmt.Sprintf("%-21s %s", f[0], strings.Join(f[1:], " ")))
	}
	return line
}

func entryMatches(file, line, key string) bool {
	if file == "passwd" || file == "group" || file == "shadow" || file == "gshadow" {
		f := strings.Split(line, ":")
		return f[0] == key || len(f) > 2 && f[2] == key && (file == "passwd" || file == "group")
	}
	line, _, _ = strings.Cut(line, "#")
	f := strings.Fields(line)
	if name, port, ok := strings.Cut(key, "/"); ok && file == "services" {
		return len(f) > 1 && (f[0] == name || strings.HasPrefix(f[1], name+"/")) && strings.HasSuffix(f[1], "/"+port)
	}
	return slices.Contains(f, key)
}

// Uuidgen prints a new UUID.
func Uuidgen(t *tool.T) int {
	spec := tool.Spec{Usage: []string{"[options]"}, About: "Create a new UUID value.", Package: utilLinux, Options: []getopt.Option{
		{Short: 'r', Long: "random", Help: "generate random-based uuid"}, {Short: 't', Long: "time", Help: "generate time-based uuid"}, {Short: 'n', Long: "namespace", Arg: getopt.Required, Name: "ns", Help: "generate hash-based uuid in this namespace"},
		{Short: 'N', Long: "name", Arg: getopt.Required, Name: "name", Help: "generate hash-based uuid from this name"}, {Short: 'm', Long: "md5", Help: "generate md5 hash"}, {Short: 's', Long: "sha1", Help: "generate sha1 hash"}, {Short: 'x', Long: "hex", Help: "interpret name as hex string"}}}
	opts, _ := t.Parse(&spec)
	var kind rune
	space, name := "", ""
	for _, o := range opts {
		switch o.Key {
		case 'n':
			space = o.Arg
		case 'N':
			name = o.Arg
		default:
			kind = o.Key
		}
	}
	var u [16]byte
	version := byte(4)
	switch kind {
	case 'm', 's':
		ns := map[string]string{"@dns": "6ba7b810", "@url": "6ba7b811", "@oid": "6ba7b812", "@x500": "6ba7b814", "@x.500": "6ba7b814"}[space]
		if ns != "" {
			space = ns + "-9dad-11d1-80b4-00c04fd430c8"
		}
		var b []byte
		if _, err := fmt.Sscanf(strings.ReplaceAll(space, "-", ""), "%x", &b); err != nil || len(b) != 16 {
			t.Fatal(1, "failed to parse namespace")
		}
		if b = append(b, name...); kind == 'm' {
			u, version = md5.Sum(b), 3
		} else {
			sum := sha1.Sum(b)
			copy(u[:], sum[:])
			version = 5
		}
	case 't':
		io.ReadFull(t.Rand(), u[8:])
		ticks := uint64(t.Now().UnixNano()/100) + 0x01b21dd213814000
		for i, shift := range []uint{24, 16, 8, 0, 40, 32, 56, 48} {
			u[i] = byte(ticks >> shift)
		}
		version = 1
	default:
		io.ReadFull(t.Rand(), u[:])
	}
	u[6] = u[6]&0x0f | version<<4
	u[8] = u[8]&0x3f | 0x80
	fmt.Fprintf(t.Out, "%x-%x-%x-%x-%x\n", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
	return 0
}

// Absent is a command that can't be had in a sandbox, and says why.
func Absent(why string) tool.Func {
	return func(t *tool.T) int {
		t.Fatal(1, "not available in this sandbox: %s", why)
		return 1
	}
}

// Ipcs shows the System V objects, of which there are none.
func Ipcs(t *tool.T) int {
	t.Out.WriteString("\n------ Message Queues --------\nkey        msqid      owner      perms      used-bytes   messages    \n\n------ Shared Memory Segments --------\nkey        shmid      owner      perms      bytes      nattch     status      \n\n------ Semaphore Arrays --------\nkey        semid      owner      perms      nsems     \n\n")
	return 0
}

// Mesg tells whether others may write to the terminal; nobody can.
func Mesg(t *tool.T) int {
	if !t.IsTerminal(0) {
		return 2
	}
	if len(t.Args()) == 1 {
		t.Out.WriteString("is n\n")
	}
	return 1
}

// Logger takes messages for the system's log. There is none: with -s they go to standard error, else nowhere.
func Logger(t *tool.T) int {
	spec := tool.Spec{Usage: []string{"[options] [<message>]"}, About: "Enter messages into the system log.", Package: utilLinux, Order: getopt.POSIX, Options: []getopt.Option{
		{Short: 'i', Help: "log the logger command's PID"}, {Short: 'f', Long: "file", Arg: getopt.Required, Name: "file", Help: "log the contents of this file"}, {Short: 'p', Long: "priority", Arg: getopt.Required, Name: "prio", Help: "mark given message with this priority"},
		{Short: 's', Long: "stderr", Help: "output message to standard error as well"}, {Short: 't', Long: "tag", Arg: getopt.Required, Name: "tag", Help: "mark every line with this tag"}, {Short: 'e', Long: "skip-empty", Help: "do not log empty lines when processing files"}}}
	opts, args := t.Parse(&spec)
	shown, tag, file, pid := false, t.Accounts().UserName(t.Cred().UID), "-", false
	for _, o := range opts {
		switch o.Key {
		case 's':
			shown = true
		case 't':
			tag = o.Arg
		case 'f':
			file = o.Arg
		case 'i':
			pid = true
		}
	}
	if pid {
		tag += fmt.Sprintf("[%d]", t.Pid())
	}
	say := func(line string) {
		if shown {
			fmt.Fprintf(t.Stderr(), "<13>%s %s: %s\n", t.Now().In(t.Location()).Format("Jan _2 15:04:05"), tag, line)
		}
	}
	if len(args) > 0 {
		say(strings.Join(args, " "))
		return 0
	}
	in, err := t.Open(file)
	if err != nil {
		t.Fatal(1, "file %s: %s", file, tool.Strerror(err))
	}
	defer in.Close()
	lines := tool.NewLines(in, '\n')
	for line, ok := lines.Next(); ok; line, ok = lines.Next() {
		say(string(line))
	}
	return 0
}

// Namei follows paths, one component a line.
func Namei(t *tool.T) int {
	spec := tool.Spec{Usage: []string{"[options] <pathname>..."}, About: "Follow a pathname until a terminal point is found.", Package: utilLinux, Options: []getopt.Option{
		{Short: 'l', Long: "long", Help: "use a long listing format (-m -o -v)"}, {Short: 'm', Long: "modes", Help: "show the mode bits of each file"}, {Short: 'n', Long: "nosymlinks", Help: "don't follow symlinks"}, {Short: 'o', Long: "owners", Help: "show owner and group name of each file"},
		{Short: 'v', Long: "vertical", Help: "vertical align of modes and owners"}, {Short: 'x', Long: "mountpoints", Help: "show mount point directories with a 'D'"}}}
	opts, paths := t.Parse(&spec)
	n := namei{t: t}
	for _, o := range opts {
		switch o.Key {
		case 'l':
			n.modes, n.owners, n.vertical = true, true, true
		case 'm':
			n.modes = true
		case 'o':
			n.owners = true
		case 'v':
			n.vertical = true
		case 'n':
			n.plain = true
		}
	}
	if len(paths) == 0 {
		t.Warn("pathname argument is missing")
		t.Try(1)
	}
	for _, p := range paths {
		fmt.Fprintf(t.Out, "f: %s\n", p)
		n.left = 40
		n.walk("", p, 0)
	}
	return n.status
}

// namei is a running Namei.
type namei struct {
	t                              *tool.T
	modes, owners, vertical, plain bool
	left                           int // symbolic links that may be followed
	status                         int
}

// walk shows the components of a path below a directory, and returns where it leads.
func (n *namei) walk(dir, p string, level int) (string, bool) {
	if strings.HasPrefix(p, "/") {
		if !n.show("/", "/", level) {
			return "", false
		}
		dir = "/"
	}
	for _, name := range strings.Split(p, "/") {
		if name == "" {
			continue
		}
		full := name
		if dir != "" {
			full = strings.TrimSuffix(dir, "/") + "/" + name
		}
		if !n.show(full, name, level) {
			return "", false
		}
		at, err := n.t.Lstat(full)
		if err == nil && at.Mode.IsSymlink() && !n.plain {
			target, err := n.t.Readlink(full)
			if n.left--; err != nil || n.left < 0 {
				n.status = 1
				return "", false
			}
			to, ok := n.walk(dir, target, level+1)
			if !ok {
				return "", false
			}
			full = to
		}
		dir = full
	}
	return dir, true
}

func (n *namei) show(full, name string, level int) bool {
	at, err := n.t.Lstat(full)
	indent := strings.Repeat("  ", level)
	if err != nil {
		pad := 0
		if n.modes {
			pad += 10
		} else {
			pad++
		}
		fmt.Fprintf(n.t.Out, "%s%s%s - %s\n", indent, strings.Repeat(" ", pad+2), name, tool.Strerror(err))
		n.status = 1
		return false
	}
	mode := tool.FormatMode(at.Mode)[:10]
	if !n.modes {
		mode = mode[:1]
	}
	var b strings.Builder
	if !n.vertical {
		b.WriteString(" " + indent + mode)
	} else {
		b.WriteString(mode)
	}
	if n.owners {
		a := n.t.Accounts()
		b.WriteString(" " + a.UserName(at.UID) + " " + a.GroupName(at.GID))
	}
	if n.vertical {
		b.WriteString(" " + indent)
	} else {
		b.WriteString(" ")
	}
	b.WriteString(name)
	if at.Mode.IsSymlink() {
		if target, err := n.t.Readlink(full); err == nil {
			b.WriteString(" -> " + target)
		}
	}
	fmt.Fprintln(n.t.Out, b.String())
	return true
}
