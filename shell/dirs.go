package shell

import (
	"path"
	"strconv"
	"strings"
	"syscall"
)

func builtinCd(sh *Shell, args []string) int {
	args = args[1:]
	physical := sh.opts.physical
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		opt := args[0]
		if opt == "--" {
			args = args[1:]
			break
		}
		if strings.Trim(opt[1:], "LPe@") != "" {
			return sh.badOption("cd", opt[:2], "cd [-L|[-P [-e]] [-@]] [dir]")
		}
		for _, c := range opt[1:] {
			if c == 'P' {
				physical = true
			} else if c == 'L' {
				physical = false
			}
		}
		args = args[1:]
	}
	if len(args) > 1 {
		sh.errorf("cd: too many arguments")
		return 1
	}
	dir, show := "", false
	switch {
	case len(args) == 0:
		h, ok := sh.get("HOME")
		if !ok {
			sh.errorf("cd: HOME not set")
			return 1
		}
		if h == "" {
			return 0
		}
		dir = h
	case args[0] == "-":
		old, ok := sh.get("OLDPWD")
		if !ok {
			sh.errorf("cd: OLDPWD not set")
			return 1
		}
		dir, show = old, true
	default:
		dir = args[0]
	}
	if dir == "" {
		return 0
	}
	if !strings.HasPrefix(dir, "/") && !strings.HasPrefix(dir, "./") && !strings.HasPrefix(dir, "../") && dir != "." && dir != ".." {
		if cdpath, ok := sh.get("CDPATH"); ok && cdpath != "" {
			for _, p := range strings.Split(cdpath, ":") {
				full := dir
				if p != "" {
					full = strings.TrimSuffix(p, "/") + "/" + dir
				}
				if a, err := sh.p.Stat(full); err == nil && a.Mode.IsDir() {
					dir = full
					show = show || p != ""
					break
				}
			}
		}
	}
	if st := sh.chdir("cd", dir, physical); st != 0 {
		return st
	}
	if show {
		sh.print(sh.str("PWD") + "\n")
	}
	return 0
}

// chdir changes the directory and PWD, which stays logical unless physical is asked for.
func (sh *Shell) chdir(cmd, dir string, physical bool) int {
	logical := dir
	if !strings.HasPrefix(dir, "/") {
		pwd := sh.str("PWD")
		if pwd == "" {
			pwd = sh.p.Getwd()
		}
		logical = strings.TrimSuffix(pwd, "/") + "/" + dir
	}
	target := path.Clean(logical)
	if strings.HasPrefix(logical, "//") && !strings.HasPrefix(logical, "///") && !strings.HasPrefix(target, "//") {
		target = "/" + target
	}
	if physical {
		target = dir
	} else if strings.Contains(logical, "..") {
		// Each directory before a .. must exist.
		if i := strings.Index(logical, "/.."); i > 0 {
			if a, err := sh.p.Stat(logical[:i]); err == nil && !a.Mode.IsDir() {
				sh.errorf("%s: %s: %s", cmd, dir, strerror(syscall.ENOTDIR))
				return 1
			} else if err != nil {
				sh.errorf("%s: %s: %s", cmd, dir, strerror(err))
				return 1
			}
		}
	}
	if err := sh.p.Chdir(target); err != nil {
		if err2 := sh.p.Chdir(dir); physical || err2 != nil {
			sh.errorf("%s: %s: %s", cmd, dir, strerror(err))
			return 1
		}
		target = sh.p.Getwd()
	}
	if physical {
		target = sh.p.Getwd()
	}
	sh.set("OLDPWD", sh.str("PWD"))
	sh.set("PWD", target)
	return 0
}

func builtinPwd(sh *Shell, args []string) int {
	physical := sh.opts.physical
	for _, a := range args[1:] {
		switch a {
		case "-P":
			physical = true
		case "-L":
			physical = false
		default:
			if len(a) > 1 && a[0] == '-' && a != "--" {
				return sh.badOption("pwd", a[:2], "pwd [-LP]")
			}
		}
	}
	wd := sh.p.Getwd()
	if _, err := sh.p.Stat(wd); err != nil {
		if pwd := sh.str("PWD"); !physical && pwd != "" {
			sh.print(pwd + "\n")
			return 0
		}
		sh.errorf("pwd: error retrieving current directory: getcwd: cannot access parent directories: No such file or directory")
		return 1
	}
	if pwd := sh.str("PWD"); !physical && pwd != "" && sh.sameDir(pwd, wd) {
		wd = pwd
	}
	sh.print(wd + "\n")
	return 0
}

// dirStack is DIRSTACK: the current directory and those that pushd kept.
func (sh *Shell) dirStack() []string {
	pwd := sh.str("PWD")
	if pwd == "" {
		pwd = sh.p.Getwd()
	}
	return append([]string{pwd}, sh.dirs...)
}

// dirIndex reads +n and -n.
func (sh *Shell) dirIndex(s string) (int, bool) {
	n, err := strconv.Atoi(strings.TrimLeft(s, "+-"))
	if err != nil {
		return 0, false
	}
	if strings.HasPrefix(s, "-") {
		n = len(sh.dirs) - n
	}
	return n, n >= 0 && n <= len(sh.dirs)
}

func (sh *Shell) dirStackEntry(s string) (string, bool) {
	n, ok := sh.dirIndex(s)
	if !ok {
		return "", false
	}
	return sh.dirStack()[n], true
}

func (sh *Shell) tilded(dir string) string {
	home := sh.str("HOME")
	if home != "" && home != "/" && (dir == home || strings.HasPrefix(dir, home+"/")) {
		return "~" + dir[len(home):]
	}
	return dir
}

func builtinDirs(sh *Shell, args []string) int {
	name := args[0]
	args = args[1:]
	if name == "dirs" {
		return dirsList(sh, args)
	}
	noCd := false
	for len(args) > 0 && args[0] == "-n" {
		noCd, args = true, args[1:]
	}
	args = skipDashes(args)
	arg := ""
	if len(args) > 0 {
		arg = args[0]
	}
	isIndex := len(arg) > 1 && (arg[0] == '+' || arg[0] == '-') && strings.Trim(arg[1:], "0123456789") == ""
	if len(arg) > 1 && arg[0] == '-' && !isIndex {
		sh.errorf("%s: %s: invalid number", name, arg)
		return sh.usage(name + map[string]string{"pushd": " [-n] [+N | -N | dir]", "popd": " [-n] [+N | -N]"}[name])
	}
	stack := sh.dirStack()
	if name == "popd" {
		n := 0
		if isIndex && len(sh.dirs) == 0 {
			sh.errorf("popd: directory stack empty")
			return 1
		}
		if arg != "" {
			var ok bool
			if !isIndex {
				sh.errorf("popd: %s: invalid argument", arg)
				return sh.usage("popd [-n] [+N | -N]")
			}
			if n, ok = sh.dirIndex(arg); !ok {
				sh.errorf("popd: %s: directory stack index out of range", arg)
				return 1
			}
		}
		if len(sh.dirs) == 0 {
			sh.errorf("popd: directory stack empty")
			return 1
		}
		if n == 0 {
			if !noCd {
				if st := sh.chdir("popd", stack[1], false); st != 0 {
					return st
				}
			}
			sh.dirs = append([]string(nil), stack[2:]...)
		} else {
			sh.dirs = append(append([]string(nil), stack[1:n]...), stack[n+1:]...)
		}
		return dirsList(sh, nil)
	}
	switch {
	case isIndex && len(sh.dirs) == 0:
		sh.errorf("pushd: directory stack empty")
		return 1
	case isIndex:
		n, ok := sh.dirIndex(arg)
		if !ok {
			sh.errorf("pushd: %s: directory stack index out of range", arg)
			return 1
		}
		rot := append(append([]string(nil), stack[n:]...), stack[:n]...)
		if !noCd {
			if st := sh.chdir("pushd", rot[0], false); st != 0 {
				return st
			}
		}
		sh.dirs = rot[1:]
	case arg == "":
		if len(sh.dirs) == 0 {
			sh.errorf("pushd: no other directory")
			return 1
		}
		if st := sh.chdir("pushd", stack[1], false); st != 0 {
			return st
		}
		sh.dirs = append([]string{stack[0]}, stack[2:]...)
	case noCd:
		sh.dirs = append([]string{arg}, sh.dirs...)
	default:
		if st := sh.chdir("pushd", arg, false); st != 0 {
			return st
		}
		sh.dirs = append([]string(nil), stack...)
	}
	return dirsList(sh, nil)
}

func dirsList(sh *Shell, args []string) int {
	long, lines, number := false, false, false
	stack := sh.dirStack()
	for _, a := range args {
		switch {
		case strings.Trim(a, "-clpv") == "" && len(a) > 1 && a[0] == '-':
			for _, c := range a[1:] {
				switch c {
				case 'c':
					sh.dirs = nil
					return 0
				case 'l':
					long = true
				case 'p':
					lines = true
				case 'v':
					lines, number = true, true
				}
			}
		case len(a) > 1 && (a[0] == '+' || a[0] == '-') && strings.Trim(a[1:], "0123456789") != "":
			sh.errorf("dirs: %s: invalid number", a)
			return sh.usage("dirs [-clpv] [+N] [-N]")
		case len(a) > 1 && (a[0] == '+' || a[0] == '-') && len(sh.dirs) == 0 && strings.Trim(a[1:], "0") != "":
			sh.errorf("dirs: directory stack empty")
			return 1
		case len(a) > 1 && (a[0] == '+' || a[0] == '-'):
			s, ok := sh.dirStackEntry(a)
			if !ok {
				sh.errorf("dirs: %s: directory stack index out of range", strings.TrimLeft(a, "+-"))
				return 1
			}
			stack = []string{s}
		default:
			sh.errorf("dirs: %s: invalid option", a)
			return sh.usage("dirs [-clpv] [+N] [-N]")
		}
	}
	for i, d := range stack {
		if !long {
			d = sh.tilded(d)
		}
		switch {
		case number:
			sh.printf("%2d  %s\n", i, d)
		case lines:
			sh.print(d + "\n")
		case i > 0:
			sh.print(" " + d)
		default:
			sh.print(d)
		}
	}
	if !lines {
		sh.print("\n")
	}
	return 0
}
