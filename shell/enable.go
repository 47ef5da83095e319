package shell

import "agentrun.dev/proc"

const enableUsage = "enable [-a] [-dnps] [-f filename] [name ...]"

func builtinEnable(sh *Shell, args []string) int {
	args = args[1:]
	var off, all, list, special, drop bool
	file := ""
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		word := args[0]
		args = args[1:]
		if word == "--" {
			break
		}
	letters:
		for i := 1; i < len(word); i++ {
			switch c := word[i]; c {
			case 'n':
				off = true
			case 'a':
				all = true
			case 'p':
				list = true
			case 's':
				special = true
			case 'd':
				drop = true
			case 'f':
				if file = word[i+1:]; file == "" {
					if len(args) == 0 {
						sh.errorf("enable: -f: option requires an argument")
						return sh.usage(enableUsage)
					}
					file, args = args[0], args[1:]
				}
				break letters
			default:
				return sh.badOption("enable", "-"+string(c), enableUsage)
			}
		}
	}
	switch {
	case list || len(args) == 0:
		sh.listEnabled(off, all, special)
		return 0
	case file != "":
		sh.errorf("enable: cannot open shared object %s: %s: cannot open shared object file: No such file or directory", file, file)
		return 1
	}
	st := 0
	for _, name := range args {
		switch {
		case findBuiltin(name) == nil || special && !isSpecialBuiltin(name):
			sh.errorf("enable: %s: not a shell builtin", name)
			st = 1
		case drop:
			sh.errorf("enable: %s: not dynamically loaded", name)
			st = 1
		default:
			m := make(map[string]bool, len(sh.disabled)+1)
			for k, v := range sh.disabled {
				m[k] = v
			}
			m[name] = off
			sh.disabled = m
		}
	}
	return st
}

// listEnabled lists the builtins that are enabled, those that aren't, or all.
func (sh *Shell) listEnabled(off, all, special bool) {
	for _, n := range builtinNames() {
		switch {
		case special && !isSpecialBuiltin(n):
		case sh.disabled[n] && (off || all):
			sh.print("enable -n " + n + "\n")
		case !sh.disabled[n] && (!off || all):
			sh.print("enable " + n + "\n")
		}
	}
}

// builtinSuspend stops the shell until it is told to go on.
func builtinSuspend(sh *Shell, args []string) int {
	force := false
	args = args[1:]
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		if args[0] == "--" {
			args = args[1:]
			break
		}
		if args[0] != "-f" {
			return sh.badOption("suspend", args[0][:2], "suspend [-f]")
		}
		force, args = true, args[1:]
	}
	switch {
	case !sh.opts.monitor && !force:
		sh.errorf("suspend: cannot suspend: no job control")
		return 1
	case len(args) > 0:
		sh.errorf("suspend: too many arguments")
		return 1
	case sh.shopts.get("login_shell") && !force:
		sh.errorf("suspend: cannot suspend a login shell")
		return 1
	}
	sh.p.Signal(sh.p.Pid(), proc.SIGSTOP)
	return 0
}

func builtinLogout(sh *Shell, args []string) int {
	if !sh.shopts.get("login_shell") {
		sh.errorf("logout: not login shell: use `exit'")
		return 1
	}
	return builtinExit(sh, args)
}
