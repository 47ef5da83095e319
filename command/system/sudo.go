package system

import (
	"context"
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// securePath is where commands are found that run in another's name.
const securePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// sudoKeeps are the variables that a command in another's name is given, but for LC_* and what the line says.
var sudoKeeps = []string{"TERM", "LANG", "LANGUAGE", "TZ", "COLORTERM", "DISPLAY", "PS1", "PS2"}

// sudoers limits.
const (
	maxSudoers = 1 << 20 // bytes of a file
	maxDropins = 100
)

// sudoing is one run of sudo.
type sudoing struct {
	t            *tool.T
	me, as       tool.User
	group        *tool.Group
	dir          string
	login, shell bool
	keep, behind bool
	home         bool
	quiet        bool // never ask
	vars         []string
	args         []string
}

// Sudo runs a command in the name of another user, root by default. Nobody has a password in a sandbox, so who may is who needs none by
// /etc/sudoers (NOPASSWD), which is root's.
func Sudo(t *tool.T) int {
	spec := tool.Spec{Usage: []string{"[-EHinS] [-u user] [-g group] [-D directory] [VAR=value] [-i | -s] [command [arg ...]]"}, About: "\nExecute a command as another user.", Package: "sudo", Order: getopt.POSIX,
		Options: []getopt.Option{{Short: 'u', Long: "user", Arg: getopt.Required, Name: "user", Help: "run command as specified user"}, {Short: 'g', Long: "group", Arg: getopt.Required, Name: "group", Help: "run command as the specified group"},
			{Short: 'E', Long: "preserve-env", Help: "preserve user environment when running command"}, {Short: 'H', Long: "set-home", Help: "set HOME variable to target user's home dir"},
			{Short: 'i', Long: "login", Help: "run login shell as the target user"}, {Short: 's', Long: "shell", Help: "run shell as the target user"}, {Short: 'n', Long: "non-interactive", Help: "non-interactive mode, no prompts are used"},
			{Short: 'S', Long: "stdin", Help: "read password from standard input"}, {Short: 'k', Long: "reset-timestamp", Help: "invalidate timestamp file"}, {Short: 'K', Long: "remove-timestamp", Help: "remove timestamp file completely"},
			{Short: 'v', Long: "validate", Help: "update user's timestamp without running a command"}, {Short: 'l', Long: "list", Help: "list user's privileges"}, {Short: 'b', Long: "background", Help: "run command in the background"},
			{Short: 'A', Long: "askpass", Help: "use a helper program for password prompting"}, {Short: 'p', Long: "prompt", Arg: getopt.Required, Name: "prompt", Help: "use the specified password prompt"},
			{Short: 'D', Long: "chdir", Arg: getopt.Required, Name: "directory", Help: "change the working directory before running command"}}}
	opts, args := t.Parse(&spec)
	s := &sudoing{t: t, args: args}
	user, group, only := "root", "", false
	for _, o := range opts {
		switch o.Key {
		case 'u':
			user = o.Arg
		case 'g':
			group = o.Arg
		case 'E':
			s.keep = true
		case 'H':
			s.home = true
		case 'i':
			s.login = true
		case 's':
			s.shell = true
		case 'n':
			s.quiet = true
		case 'b':
			s.behind = true
		case 'D':
			s.dir = o.Arg
		case 'k', 'K', 'v', 'l':
			only = true
		}
	}
	accounts := t.Accounts()
	cred := t.Cred()
	if u := accounts.UserByID(cred.UID); u != nil {
		s.me = *u
	} else {
		t.Fatal(1, "you do not exist in the passwd database")
	}
	if !s.find(accounts, user, group) {
		return 1
	}
	for len(s.args) > 0 && assigns(s.args[0]) {
		s.vars, s.args = append(s.vars, s.args[0]), s.args[1:]
	}
	if cred.UID != 0 && !s.may(accounts) {
		if s.quiet {
			t.Fatal(1, "a password is required")
		}
		t.Warn("%s is not in the sudoers file: '%s ALL=(ALL) NOPASSWD: ALL' in /etc/sudoers, which is root's, lets it", s.me.Name, s.me.Name)
		return 1
	}
	if only && len(s.args) == 0 {
		return 0
	}
	if len(s.args) == 0 && !s.login && !s.shell {
		t.Misused(&spec)
	}
	return s.run()
}

// assigns tells whether an operand sets a variable.
func assigns(arg string) bool {
	name, _, ok := strings.Cut(arg, "=")
	return ok && name != "" && !strings.ContainsAny(name, "/ ")
}

// find finds whom the command is to run as: by name, or by "#" and the number.
func (s *sudoing) find(accounts *tool.Accounts, user, group string) bool {
	found := false
	for _, u := range accounts.Users {
		if u.Name == user || user == "#"+strconv.FormatUint(uint64(u.UID), 10) {
			s.as, found = u, true
			break
		}
	}
	if !found {
		s.t.Warn("unknown user %s", user)
		return false
	}
	if group == "" {
		return true
	}
	for i, g := range accounts.Groups {
		if g.Name == group || group == "#"+strconv.FormatUint(uint64(g.GID), 10) {
			s.group = &accounts.Groups[i]
			return true
		}
	}
	s.t.Warn("unknown group %s", group)
	return false
}

// may tells whether sudoers lets the user run everything without a password. The files are read as root, and count only if nobody else
// can write them.
func (s *sudoing) may(accounts *tool.Accounts) bool {
	names := []string{s.me.Name, "ALL", "#" + strconv.FormatUint(uint64(s.me.UID), 10)}
	for _, g := range accounts.Groups {
		if g.GID == s.me.GID || slices.Contains(g.Members, s.me.Name) {
			names = append(names, "%"+g.Name)
		}
	}
	ns, ctx := s.t.Sandbox().Namespace(), s.t.Context()
	files := []string{"/etc/sudoers"}
	if list, err := ns.ReadDir(ctx, vfs.Cred{}, "", "/etc/sudoers.d"); err == nil && trusted(ctx, ns, "/etc/sudoers.d", vfs.ModeDir) {
		for _, e := range list[:min(len(list), maxDropins)] {
			if !strings.Contains(e.Name, ".") && !strings.HasSuffix(e.Name, "~") {
				files = append(files, "/etc/sudoers.d/"+e.Name)
			}
		}
	}
	for _, name := range files {
		if !trusted(ctx, ns, name, vfs.ModeRegular) {
			continue
		}
		f, err := ns.Open(ctx, vfs.Cred{}, "", name, vfs.O_RDONLY|vfs.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		b, err := io.ReadAll(io.LimitReader(f, maxSudoers))
		_ = f.Close() // it was read only
		if err == nil && lets(string(b), names) {
			return true
		}
	}
	return false
}

// trusted tells whether only root can write a file.
func trusted(ctx context.Context, ns *vfs.Namespace, name string, kind vfs.Mode) bool {
	a, err := ns.Lstat(ctx, vfs.Cred{}, "", name)
	return err == nil && a.UID == 0 && a.Mode&vfs.ModeType == kind && a.Mode&0o022 == 0
}

// lets tells whether one of the names may do everything without a password: "NAME HOSTS=(USERS) NOPASSWD: ALL".
func lets(text string, names []string) bool {
	for line := range strings.SplitSeq(text, "\n") {
		if i := strings.Index(line, "#"); i > 0 || i == 0 && (len(line) < 2 || line[1] < '0' || line[1] > '9') {
			line = line[:i]
		}
		f := strings.Fields(line)
		if len(f) < 2 || !slices.Contains(names, f[0]) {
			continue
		}
		rule := strings.ReplaceAll(strings.Join(f[1:], ""), " ", "")
		host, what, ok := strings.Cut(rule, "=")
		if !ok || host != "ALL" {
			continue
		}
		if as, rest, ok := strings.Cut(what, ")"); ok {
			if as != "(ALL" && as != "(ALL:ALL" && as != "(root" {
				continue
			}
			what = rest
		}
		if what == "NOPASSWD:ALL" || what == "NOPASSWD:SETENV:ALL" || what == "SETENV:NOPASSWD:ALL" {
			return true
		}
	}
	return false
}

// run runs the command.
func (s *sudoing) run() int {
	t := s.t
	args := s.command()
	cred := t.Cred()
	cred.UID, cred.GID = s.as.UID, s.as.GID
	cred.Groups = nil
	if s.group != nil {
		cred.GID = s.group.GID
	}
	dir := s.dir
	if dir == "" && s.login {
		dir = s.as.Home
	}
	t.Out.Flush()
	child, err := t.Spawn(proc.Spawn{Args: args, Env: s.env(args), Dir: dir, Cred: &cred})
	switch {
	case errors.Is(err, syscall.ENOENT) && dir != "":
		if _, serr := t.Stat(dir); serr != nil {
			t.Warn("unable to change directory to %s: %s", dir, tool.Strerror(serr))
			return 1
		}
		fallthrough
	case errors.Is(err, syscall.ENOENT):
		t.Warn("%s: command not found", args[0])
		return 1
	case err != nil:
		t.Warn("unable to execute %s: %s", args[0], tool.Strerror(err))
		return 1
	case s.behind:
		return 0
	}
	status, _ := t.WaitQuiet(child)
	return status
}

// command is what is run: a shell, if that was asked for.
func (s *sudoing) command() []string {
	if !s.login && !s.shell {
		return s.args
	}
	shell := s.as.Shell
	if s.shell {
		if v, ok := s.t.LookupEnv("SHELL"); ok && v != "" {
			shell = v
		}
	}
	args := []string{shell}
	if s.login {
		args = append(args, "-l")
	}
	if len(s.args) > 0 {
		var words []string
		for _, a := range s.args {
			words = append(words, escapeWord(a))
		}
		args = append(args, "-c", strings.Join(words, " "))
	}
	return args
}

// escapeWord escapes all but letters, digits and a few others, as sudo does for the shells that it starts; dollar signs stay.
func escapeWord(word string) string {
	var b strings.Builder
	for _, c := range []byte(word) {
		if c != '_' && c != '-' && c != '$' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c < 0x80 {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// env is the command's environment: the user's own with -E, else little of it.
func (s *sudoing) env(args []string) []string {
	vars := map[string]string{}
	for _, v := range s.t.Environ() {
		name, value, _ := strings.Cut(v, "=")
		if s.keep || slices.Contains(sudoKeeps, name) || strings.HasPrefix(name, "LC_") {
			vars[name] = value
		}
	}
	command := args[0]
	if !strings.Contains(command, "/") {
		command = path.Join("/usr/bin", command)
	}
	maps.Copy(vars, map[string]string{"PATH": securePath, "USER": s.as.Name, "LOGNAME": s.as.Name, "SUDO_USER": s.me.Name, "SUDO_UID": strconv.FormatUint(uint64(s.me.UID), 10),
		"SUDO_GID": strconv.FormatUint(uint64(s.me.GID), 10), "SUDO_COMMAND": strings.Join(append([]string{command}, args[1:]...), " "), "MAIL": "/var/mail/" + s.as.Name})
	if _, ok := vars["HOME"]; !ok || s.home || s.login {
		vars["HOME"] = s.as.Home
	}
	if _, ok := vars["SHELL"]; !ok || s.login {
		vars["SHELL"] = s.as.Shell
	}
	for _, v := range s.vars {
		name, value, _ := strings.Cut(v, "=")
		vars[name] = value
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		out = append(out, name+"="+vars[name])
	}
	return out
}
