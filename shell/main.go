package shell

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/proc"
)

func (sh *Shell) location() *time.Location { return proc.ParseTZ(sh.str("TZ")) }

// invocation is what the command line asks for.
type invocation struct {
	command     string
	hasCommand  bool
	stdin       bool
	interactive bool
	login       bool
	rcFile      string
	noRC        bool
	args        []string
}

// main runs a shell from its arguments.
func (sh *Shell) main(args []string) {
	sh.ignoredAtStart()
	if len(args) > 0 {
		sh.name = args[0]
		if strings.HasPrefix(args[0], "-") && len(args[0]) > 1 {
			sh.name = args[0][1:]
		}
	}
	login := len(args) > 0 && strings.HasPrefix(args[0], "-") && len(args[0]) > 1
	base := sh.name[strings.LastIndexByte(sh.name, '/')+1:]
	if !strings.Contains(sh.name, "/") || base == "bash" || base == "sh" {
		sh.name = base
	}
	inv := &invocation{login: login}
	if st, end := sh.parseArgs(inv, args[min(1, len(args)):]); end {
		sh.exitTrap = true
		sh.exitNow(st)
		return
	}
	if !inv.interactive && !inv.hasCommand && (len(inv.args) == 0 || inv.stdin) && sh.p.IsTerminal(0) && sh.p.IsTerminal(2) {
		inv.interactive = true
	}
	if inv.interactive {
		sh.beInteractive()
	}
	sh.shopts.set("login_shell", inv.login)
	sh.open(inv)
}

// parseArgs reads options as bash does: long ones first, then letters.
func (sh *Shell) parseArgs(inv *invocation, args []string) (status int, end bool) {
	takesCommand := false
	for len(args) > 0 {
		a := args[0]
		if a == "--" || a == "-" {
			args = args[1:]
			break
		}
		if strings.HasPrefix(a, "--") {
			args = args[1:]
			switch a {
			case "--noediting":
				sh.noEditing = true
			case "--norc":
				inv.noRC = true
			case "--noprofile", "--restricted", "--debugger":
			case "--posix":
				sh.setOption("posix", &sh.opts.posix, true)
			case "--login":
				inv.login = true
			case "--verbose":
				sh.opts.verbose = true
			case "--rcfile", "--init-file":
				if len(args) > 0 {
					inv.rcFile, args = args[0], args[1:]
				}
			case "--version":
				sh.printf("GNU bash, version %s (x86_64-pc-linux-gnu)\n", Version)
				return 0, true
			case "--help":
				sh.print("GNU bash, version " + Version + "-(x86_64-pc-linux-gnu)\nUsage:\tbash [GNU long option] [option] ...\n\tbash [GNU long option] [option] script-file ...\n")
				return 0, true
			default:
				sh.stderr(sh.name + ": " + a + ": invalid option\n")
				return 2, true
			}
			continue
		}
		if len(a) < 2 || a[0] != '-' && a[0] != '+' {
			break
		}
		args = args[1:]
		on := a[0] == '-'
		for i := 1; i < len(a); i++ {
			switch c := a[i]; c {
			case 'c':
				takesCommand = true
			case 's':
				inv.stdin = true
			case 'i':
				inv.interactive = true
			case 'l':
				inv.login = true
			case 'o', 'O':
				if len(args) == 0 {
					if c == 'o' {
						sh.listOptions(on)
					}
					continue
				}
				name := args[0]
				args = args[1:]
				if c == 'O' {
					if !sh.shopts.known(name) {
						sh.stderr(sh.name + ": " + name + ": invalid shell option name\n")
						return 2, true
					}
					sh.shopts.set(name, on)
					continue
				}
				p, ok := sh.opts.byName(name)
				if !ok {
					sh.stderr(sh.name + ": " + name + ": invalid option name\n")
					return 2, true
				}
				*p = on
			case 'D', 'r':
			default:
				p := sh.opts.byLetter(c)
				if p == nil {
					sh.stderr(fmt.Sprintf("%s: %c%c: invalid option\n", sh.name, a[0], c))
					return 2, true
				}
				*p = on
			}
		}
	}
	if takesCommand {
		if len(args) == 0 {
			sh.stderr(sh.name + ": -c: option requires an argument\n")
			return 2, true
		}
		inv.command, inv.hasCommand, args = args[0], true, args[1:]
		sh.opts.command = true
	}
	inv.args = args
	return 0, false
}

// open pushes the frame of the script.
func (sh *Shell) open(inv *invocation) {
	if inv.hasCommand {
		if len(inv.args) > 0 {
			sh.name, sh.params = inv.args[0], inv.args[1:]
		}
		sh.set("BASH_EXECUTION_STRING", inv.command)
		sh.push(&textFrame{r: newScript(inv.command)})
		sh.startup(inv)
		return
	}
	if len(inv.args) > 0 && !inv.stdin {
		sh.script(inv)
		return
	}
	sh.params = inv.args
	sh.opts.stdin = true
	if _, err := sh.p.File(0); err != nil {
		return
	}
	sh.push(&textFrame{r: &textReader{input: true, main: true}})
	sh.startup(inv)
}

// startup sources what a shell reads before its script: BASH_ENV, or the files of a login or interactive shell.
func (sh *Shell) startup(inv *invocation) {
	var files []string
	home := sh.str("HOME")
	switch {
	case inv.login:
		files = []string{"/etc/profile"}
		for _, f := range []string{"/.bash_profile", "/.bash_login", "/.profile"} {
			if _, err := sh.p.Stat(home + f); home != "" && err == nil {
				files = append(files, home+f)
				break
			}
		}
	case inv.interactive && inv.noRC:
	case inv.interactive && !sh.posix:
		if inv.rcFile == "" && home != "" {
			inv.rcFile = home + "/.bashrc"
		}
		files = []string{inv.rcFile}
	case !sh.posix && !inv.interactive:
		if env := sh.str("BASH_ENV"); env != "" {
			files = []string{sh.expandPrompt(env)}
		}
	}
	for i := len(files) - 1; i >= 0; i-- {
		data, err := sh.readFile(files[i], maxScript)
		if err == nil && sh.deeper("source") {
			sh.sourceText(files[i], string(data), nil)
		}
	}
}

// script runs a file.
func (sh *Shell) script(inv *invocation) {
	file := inv.args[0]
	path := file
	shown := sh.name
	data, err := sh.readFile(path, maxScript)
	if err == syscall.ENOENT && !strings.Contains(file, "/") {
		if f, err2 := sh.p.Find(file, sh.pathOr()); err2 == nil {
			path = f
			data, err = sh.readFile(path, maxScript)
		}
	}
	if a, err2 := sh.p.Stat(path); err2 == nil && a.Mode.IsDir() {
		sh.stderr(file + ": " + file + ": Is a directory\n")
		sh.exitNow(126)
		return
	}
	if err != nil {
		st := 126
		if err == syscall.ENOENT {
			st = 127
		}
		sh.stderr(shown + ": " + file + ": " + strerror(err) + "\n")
		sh.exitNow(st)
		return
	}
	line, _, _ := strings.Cut(string(data[:min(80, len(data))]), "\n")
	if strings.IndexByte(line, 0) >= 0 {
		sh.stderr(shown + ": " + file + ": cannot execute binary file\n")
		sh.exitNow(126)
		return
	}
	sh.name, sh.params = file, inv.args[1:]
	sh.scriptFile = file
	sh.push(&textFrame{r: newScript(string(data))})
	sh.startup(inv)
}
