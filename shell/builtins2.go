package shell

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/proc"
	"mvdan.cc/sh/v3/syntax"
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

func builtinCommand(sh *Shell, args []string) int {
	args = args[1:]
	verbose, describe, stdPath := false, false, false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		if args[0] == "--" {
			args = args[1:]
			break
		}
		for _, c := range args[0][1:] {
			switch c {
			case 'v':
				verbose = true
			case 'V':
				describe = true
			case 'p':
				stdPath = true
			default:
				return sh.badOption("command", "-"+string(c), "command [-pVv] command [arg ...]")
			}
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return 0
	}
	if verbose || describe {
		st := 1
		for _, a := range args {
			if sh.describe(a, describe, "command") {
				st = 0
			}
		}
		return st
	}
	if b := sh.builtin(args[0]); b != nil {
		if args[0] == "exec" {
			sh.execBuiltin(&syntax.CallExpr{}, nil, args)
			return sh.status
		}
		return b(sh, args)
	}
	if stdPath {
		if f, err := sh.p.Find(args[0], proc.DefaultPath); err == nil {
			args = append([]string{f}, args[1:]...)
		}
	}
	if err := sh.flush(); err != nil {
		return 1
	}
	st, _ := sh.spawn(nil, args, false)
	return st
}

func builtinBuiltin(sh *Shell, args []string) int {
	args = skipDashes(args[1:])
	if len(args) == 0 {
		return 0
	}
	b := findBuiltin(args[0])
	if b == nil {
		sh.errorf("builtin: %s: not a shell builtin", args[0])
		return 1
	}
	if args[0] == "exec" {
		sh.execBuiltin(&syntax.CallExpr{}, nil, args)
		return sh.status
	}
	return b(sh, args)
}

// describe writes what a name is, as command -v or, verbosely, command -V and type do.
func (sh *Shell) describe(name string, long bool, cmd string) bool {
	say := func(short, text string) bool {
		if long {
			sh.print(text + "\n")
		} else {
			sh.print(short + "\n")
		}
		return true
	}
	if v, ok := sh.aliases[name]; ok && (sh.shopts.get("expand_aliases") || sh.opts.interactive) {
		return say("alias "+name+"="+quoteSingle(v), fmt.Sprintf("%s is aliased to `%s'", name, v))
	}
	if isKeyword(name) {
		return say(name, name+" is a shell keyword")
	}
	if f := sh.funcs[name]; f != nil {
		return say(name, name+" is a function\n"+sh.printFunc(name, f))
	}
	if sh.builtin(name) != nil {
		return say(name, name+" is a shell builtin")
	}
	if strings.Contains(name, "/") {
		if a, err := sh.p.Stat(name); err == nil && !a.Mode.IsDir() && sh.p.Access(name, 1) == nil {
			return say(name, name+" is "+name)
		}
	} else if f, hashed := sh.hashed[name]; hashed && cmd == "type" && long {
		return say(f, fmt.Sprintf("%s is hashed (%s)", name, f))
	} else if f, err := sh.p.Find(name, sh.pathOr()); err == nil {
		return say(f, name+" is "+f)
	}
	if long {
		sh.errorf("%s: %s: not found", cmd, name)
	}
	return false
}

func (sh *Shell) pathOr() string {
	if p := sh.str("PATH"); p != "" {
		return p
	}
	return "."
}

func builtinType(sh *Shell, args []string) int {
	args = args[1:]
	all, typ, pathOnly, force, noFunc := false, false, false, false, false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		if args[0] == "--" {
			args = args[1:]
			break
		}
		for _, c := range args[0][1:] {
			switch c {
			case 'a':
				all = true
			case 't':
				typ = true
			case 'p':
				pathOnly = true
			case 'P':
				force = true
			case 'f':
				noFunc = true
			default:
				return sh.badOption("type", "-"+string(c), "type [-afptP] name [name ...]")
			}
		}
		args = args[1:]
	}
	st := 0
	for _, name := range args {
		kinds := sh.kinds(name, noFunc)
		if !all && len(kinds) > 1 && !force {
			kinds = kinds[:1]
		}
		found := false
		for _, k := range kinds {
			if force && k.kind != "file" {
				continue
			}
			found = true
			switch {
			case typ:
				sh.print(k.kind + "\n")
			case pathOnly || force:
				if k.kind == "file" {
					sh.print(k.path + "\n")
				}
			case k.kind == "file" && !all && sh.hashed[name] != "":
				sh.printf("%s is hashed (%s)\n", name, sh.hashed[name])
			default:
				sh.print(k.text + "\n")
			}
			if !all {
				break
			}
		}
		if !found {
			st = 1
			if !typ && !pathOnly && !force {
				sh.errorf("type: %s: not found", name)
			}
		}
	}
	return st
}

type kind struct{ kind, text, path string }

// kinds lists all that a name can be, in the order in which the shell looks.
func (sh *Shell) kinds(name string, noFunc bool) []kind {
	var out []kind
	if v, ok := sh.aliases[name]; ok && sh.shopts.get("expand_aliases") {
		out = append(out, kind{"alias", fmt.Sprintf("%s is aliased to `%s'", name, v), ""})
	}
	if isKeyword(name) {
		out = append(out, kind{"keyword", name + " is a shell keyword", ""})
	}
	if f := sh.funcs[name]; f != nil && !noFunc {
		out = append(out, kind{"function", name + " is a function\n" + sh.printFunc(name, f), ""})
	}
	if sh.builtin(name) != nil {
		out = append(out, kind{"builtin", name + " is a shell builtin", ""})
	}
	if strings.Contains(name, "/") {
		if a, err := sh.p.Stat(name); err == nil && !a.Mode.IsDir() && sh.p.Access(name, 1) == nil {
			out = append(out, kind{"file", name + " is " + name, name})
		}
		return out
	}
	for _, dir := range strings.Split(sh.pathOr(), ":") {
		f := strings.TrimSuffix(dir, "/") + "/" + name
		if a, err := sh.p.Stat(f); err == nil && a.Mode.IsRegular() && sh.p.Access(f, 1) == nil {
			out = append(out, kind{"file", name + " is " + f, f})
		}
	}
	if len(out) == 0 { // one that can't be executed is better than none
		for _, dir := range strings.Split(sh.pathOr(), ":") {
			f := strings.TrimSuffix(dir, "/") + "/" + name
			if a, err := sh.p.Stat(f); err == nil && a.Mode.IsRegular() {
				return []kind{{"file", name + " is " + f, f}}
			}
		}
	}
	return out
}

func builtinHash(sh *Shell, args []string) int {
	args = args[1:]
	if len(args) > 0 && args[0] == "-r" {
		sh.hashed = nil
		return 0
	}
	if len(args) == 0 {
		if len(sh.hashed) == 0 {
			sh.print("hash: hash table empty\n")
			return 0
		}
		sh.print("hits\tcommand\n")
		for _, n := range sortedKeys(sh.hashed) {
			sh.printf("%4d\t%s\n", 1, sh.hashed[n])
		}
		return 0
	}
	st := 0
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "-p":
			if i+2 < len(args) {
				if sh.hashed == nil {
					sh.hashed = make(map[string]string)
				}
				sh.hashed[args[i+2]] = args[i+1]
			}
			return 0
		case "-d":
			for _, n := range args[i+1:] {
				delete(sh.hashed, n)
			}
			return 0
		case "-t":
			for _, n := range args[i+1:] {
				if f, ok := sh.hashed[n]; ok {
					sh.print(f + "\n")
				} else {
					sh.errorf("hash: %s: not found", n)
					st = 1
				}
			}
			return st
		}
		if sh.builtin(args[i]) != nil || sh.funcs[args[i]] != nil {
			continue
		}
		if _, err := sh.findCommand(args[i]); err != nil {
			sh.errorf("hash: %s: not found", args[i])
			st = 1
		}
	}
	return st
}

func builtinAlias(sh *Shell, args []string) int {
	args = args[1:]
	for len(args) > 0 && (args[0] == "-p" || args[0] == "--") {
		if args[0] == "-p" {
			printAliases(sh)
		}
		args = args[1:]
		if len(args) == 0 {
			return 0
		}
	}
	if len(args) == 0 {
		printAliases(sh)
		return 0
	}
	st := 0
	for _, a := range args {
		name, value, ok := strings.Cut(a, "=")
		if !ok {
			v, known := sh.aliases[name]
			if !known {
				sh.errorf("alias: %s: not found", name)
				st = 1
				continue
			}
			sh.print("alias " + name + "=" + quoteSingle(v) + "\n")
			continue
		}
		if name == "" || strings.ContainsAny(name, " \t\n/$`=|&;()<>'\"\\") {
			sh.errorf("alias: `%s': invalid alias name", name)
			st = 1
			continue
		}
		m := make(map[string]string, len(sh.aliases)+1)
		for k, v := range sh.aliases {
			m[k] = v
		}
		m[name] = value
		sh.aliases = m
	}
	return st
}

func printAliases(sh *Shell) {
	for _, n := range sortedKeys(sh.aliases) {
		sh.print("alias " + n + "=" + quoteSingle(sh.aliases[n]) + "\n")
	}
}

func builtinUnalias(sh *Shell, args []string) int {
	args = skipDashes(args[1:])
	if len(args) == 0 {
		return sh.usage("unalias [-a] name [name ...]")
	}
	if args[0] == "-a" {
		sh.aliases = nil
		return 0
	}
	st := 0
	for _, a := range args {
		if _, ok := sh.aliases[a]; !ok {
			sh.errorf("unalias: %s: not found", a)
			st = 1
			continue
		}
		m := make(map[string]string)
		for k, v := range sh.aliases {
			if k != a {
				m[k] = v
			}
		}
		sh.aliases = m
	}
	return st
}

func builtinGetopts(sh *Shell, args []string) int {
	args = skipDashes(args[1:])
	if len(args) < 2 {
		return sh.usage("getopts optstring name [arg ...]")
	}
	spec, name := args[0], args[1]
	words := sh.params
	if len(args) > 2 {
		words = args[2:]
	}
	silent := strings.HasPrefix(spec, ":")
	spec = strings.TrimPrefix(spec, ":")
	ind, _ := strconv.Atoi(sh.str("OPTIND"))
	ind = max(ind, 1)
	pos := sh.optPos
	finish := func(ind, pos int, opt string, arg string, hasArg bool, st int) int {
		sh.set("OPTIND", strconv.Itoa(ind))
		sh.optPos = pos
		if hasArg {
			sh.set("OPTARG", arg)
		} else {
			sh.unset("OPTARG")
		}
		if !validName(name) {
			sh.errorf("getopts: `%s': not a valid identifier", name)
			return 1
		}
		if !sh.set(name, opt) {
			return 1
		}
		return st
	}
	if ind > len(words) {
		return finish(len(words)+1, 0, "?", "", false, 1)
	}
	word := words[ind-1]
	if pos == 0 {
		if len(word) < 2 || word[0] != '-' {
			return finish(ind, 0, "?", "", false, 1)
		}
		if word == "--" {
			return finish(ind+1, 0, "?", "", false, 1)
		}
		pos = 1
	}
	if pos >= len(word) {
		return finish(ind+1, 0, "?", "", false, 1)
	}
	c := word[pos : pos+1]
	pos++
	k := strings.Index(spec, c)
	next := func() (int, int) {
		if pos >= len(word) {
			return ind + 1, 0
		}
		return ind, pos
	}
	verbose := !silent && sh.str("OPTERR") != "0"
	if k < 0 || c == ":" {
		i, p := next()
		if silent {
			return finish(i, p, "?", c, true, 0)
		}
		if verbose {
			sh.stderr(sh.name + ": illegal option -- " + c + "\n")
		}
		return finish(i, p, "?", "", false, 0)
	}
	if k+1 >= len(spec) || spec[k+1] != ':' {
		i, p := next()
		return finish(i, p, c, "", false, 0)
	}
	if pos < len(word) {
		return finish(ind+1, 0, c, word[pos:], true, 0)
	}
	if ind < len(words) {
		return finish(ind+2, 0, c, words[ind], true, 0)
	}
	if silent {
		return finish(ind+1, 0, ":", c, true, 0)
	}
	if verbose {
		sh.stderr(sh.name + ": option requires an argument -- " + c + "\n")
	}
	return finish(ind+1, 0, "?", "", false, 0)
}

func builtinTimes(sh *Shell, args []string) int {
	sh.print("0m0.000s 0m0.000s\n0m0.000s 0m0.000s\n")
	return 0
}

func builtinCaller(sh *Shell, args []string) int {
	n := 0
	if len(args) > 1 {
		v, err := strconv.Atoi(args[1])
		if err != nil {
			sh.errorf("caller: %s: invalid number", args[1])
			return sh.usage("caller [expr]")
		}
		n = v
	}
	i := len(sh.calls) - 1 - n
	if i < 0 {
		return 1
	}
	source := func(i int) string {
		if i >= 0 {
			return sh.calls[i].source
		}
		if sh.scriptFile != "" {
			return sh.scriptFile
		}
		return "NULL"
	}
	if len(args) == 1 {
		sh.printf("%d %s\n", sh.calls[i].line, source(i-1))
		return 0
	}
	fn := "main"
	if i > 0 {
		fn = sh.calls[i-1].name
	} else if sh.scriptFile == "" {
		return 1
	}
	sh.printf("%d %s %s\n", sh.calls[i].line, fn, source(i-1))
	return 0
}

func builtinEnable(sh *Shell, args []string) int {
	args = args[1:]
	off, all := false, false
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		off = off || strings.Contains(args[0], "n")
		all = all || strings.Contains(args[0], "a")
		args = args[1:]
	}
	if len(args) == 0 {
		for _, n := range builtinNames() {
			switch {
			case sh.disabled[n] && (off || all):
				sh.print("enable -n " + n + "\n")
			case !sh.disabled[n] && !off:
				sh.print("enable " + n + "\n")
			}
		}
		return 0
	}
	st := 0
	for _, a := range args {
		if findBuiltin(a) == nil {
			sh.errorf("enable: %s: not a shell builtin", a)
			st = 1
			continue
		}
		m := make(map[string]bool)
		for k, v := range sh.disabled {
			m[k] = v
		}
		m[a] = off
		sh.disabled = m
	}
	return st
}

func builtinHelp(sh *Shell, args []string) int {
	if len(args) > 1 {
		if findBuiltin(args[1]) == nil && !isKeyword(args[1]) {
			sh.errorf("help: no help topics match `%s'.  Try `help help' or `man -k %s' or `info %s'.", args[1], args[1], args[1])
			return 1
		}
		sh.print(args[1] + ": " + args[1] + "\n")
		return 0
	}
	sh.print("GNU bash, version " + Version + " (compatible)\nThese shell commands are defined internally.\n\n" + strings.Join(builtinNames(), "\n") + "\n")
	return 0
}

func builtinUlimit(sh *Shell, args []string) int {
	l := sh.p.Sandbox().Limits()
	show := byte('f')
	for _, a := range args[1:] {
		if len(a) > 1 && a[0] == '-' {
			for i := 1; i < len(a); i++ {
				if a[i] != 'S' && a[i] != 'H' {
					show = a[i]
				}
			}
		} else if a != "unlimited" {
			if _, err := strconv.ParseUint(a, 10, 64); err != nil {
				sh.errorf("ulimit: %s: invalid number", a)
				return 1
			}
			return 0
		} else {
			return 0
		}
	}
	switch show {
	case 'n':
		sh.printf("%d\n", l.Files)
	case 'u':
		sh.printf("%d\n", l.Processes)
	case 'p':
		sh.print("8\n")
	case 's':
		sh.print("8192\n")
	case 'c':
		sh.print("0\n")
	case 'a':
		sh.printf("file size                   (blocks, -f) %d\nopen files                          (-n) %d\nmax user processes                  (-u) %d\n", l.FileBytes/1024, l.Files, l.Processes)
	case 'f', 't', 'v', 'd', 'm', 'l', 'x', 'i', 'q', 'r', 'e', 'k', 'b', 'P', 'R', 'T':
		sh.print("unlimited\n")
	default:
		return sh.badOption("ulimit", "-"+string(show), "ulimit [-SHabcdefiklmnpqrstuvxPRT] [limit]")
	}
	return 0
}

// timeFrame measures a command for the keyword time.
type timeFrame struct {
	start time.Time
	posix bool
}

func (f *timeFrame) step(sh *Shell) {
	sh.pop()
	real := sh.p.Sandbox().Now().Sub(f.start)
	if f.posix {
		sh.stderr(fmt.Sprintf("real %.2f\nuser 0.00\nsys 0.00\n", real.Seconds()))
		return
	}
	format, ok := sh.get("TIMEFORMAT")
	if !ok {
		format = "\nreal\t%3lR\nuser\t%3lU\nsys\t%3lS"
	}
	if format != "" {
		sh.stderr(timeText(format, real) + "\n")
	}
}

func timeText(format string, real time.Duration) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 >= len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		digits, long := 3, false
		if c := format[i]; c >= '0' && c <= '9' {
			digits = min(int(c-'0'), 6)
			i++
		}
		if i < len(format) && format[i] == 'l' {
			long = true
			i++
		}
		if i >= len(format) {
			break
		}
		d := time.Duration(0)
		switch format[i] {
		case '%':
			b.WriteByte('%')
			continue
		case 'P':
			b.WriteString("0.00")
			continue
		case 'R':
			d = real
		case 'U', 'S':
		default:
			continue
		}
		if long {
			fmt.Fprintf(&b, "%dm%.*fs", int(d.Minutes()), digits, (d % time.Minute).Seconds())
		} else {
			fmt.Fprintf(&b, "%.*f", digits, d.Seconds())
		}
	}
	return b.String()
}

func (sh *Shell) timeClause(c *syntax.TimeClause) {
	sh.push(&timeFrame{start: sh.p.Sandbox().Now(), posix: c.PosixFormat})
	if c.Stmt != nil {
		sh.stmt(c.Stmt)
	}
}
