package shell

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"agentrun.dev/vfs"
	"mvdan.cc/sh/v3/syntax"
)

// builtinFunc runs a builtin with its arguments, the name first, and returns its status, or pushed.
type builtinFunc func(sh *Shell, args []string) int

// pushed tells that a builtin has pushed frames, whose end is its end.
const pushed = -1

// builtin returns a builtin that is enabled, nil for any other name.
func (sh *Shell) builtin(name string) builtinFunc {
	if sh.disabled != nil && sh.disabled[name] {
		return nil
	}
	return findBuiltin(name)
}

func findBuiltin(name string) builtinFunc {
	switch name {
	case ":", "true":
		return func(*Shell, []string) int { return 0 }
	case "false":
		return func(*Shell, []string) int { return 1 }
	case "echo":
		return builtinEcho
	case "printf":
		return builtinPrintf
	case "test", "[":
		return builtinTest
	case "read":
		return builtinRead
	case "cd":
		return builtinCd
	case "pwd":
		return builtinPwd
	case "eval":
		return builtinEval
	case ".", "source":
		return builtinSource
	case "exit", "logout":
		return builtinExit
	case "return":
		return builtinReturn
	case "break", "continue":
		return builtinBreak
	case "shift":
		return builtinShift
	case "set":
		return builtinSet
	case "unset":
		return builtinUnset
	case "shopt":
		return builtinShopt
	case "declare", "typeset", "local", "export", "readonly":
		return builtinDeclare
	case "let":
		return builtinLet
	}
	return moreBuiltins(name)
}

func moreBuiltins(name string) builtinFunc {
	switch name {
	case "exec":
		return func(sh *Shell, args []string) int { return 0 } // runBuiltin knows it
	case "command":
		return builtinCommand
	case "builtin":
		return builtinBuiltin
	case "type":
		return builtinType
	case "hash":
		return builtinHash
	case "alias":
		return builtinAlias
	case "unalias":
		return builtinUnalias
	case "getopts":
		return builtinGetopts
	case "trap":
		return builtinTrap
	case "kill":
		return builtinKill
	case "wait":
		return builtinWait
	case "jobs":
		return builtinJobs
	case "fg", "bg":
		return builtinFg
	case "disown":
		return builtinDisown
	case "umask":
		return builtinUmask
	case "ulimit":
		return builtinUlimit
	case "times":
		return builtinTimes
	case "caller":
		return builtinCaller
	case "mapfile", "readarray":
		return builtinMapfile
	case "pushd", "popd", "dirs":
		return builtinDirs
	case "enable":
		return builtinEnable
	case "compgen":
		return builtinCompgen
	case "complete", "compopt", "bind", "history", "fc", "suspend":
		return func(sh *Shell, args []string) int { return 0 }
	case "help":
		return builtinHelp
	}
	return nil
}

// builtinNames lists all builtins, sorted.
func builtinNames() []string {
	return strings.Fields(". : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit umask unalias unset wait")
}

func isSpecialBuiltin(name string) bool {
	switch name {
	case ":", ".", "source", "break", "continue", "eval", "exec", "exit", "export", "readonly", "return", "set", "shift", "times", "trap", "unset":
		return true
	}
	return false
}

func isKeyword(name string) bool {
	switch name {
	case "if", "then", "else", "elif", "fi", "case", "esac", "for", "select", "while", "until", "do", "done", "in", "function", "time", "{", "}", "!", "[[", "]]", "coproc":
		return true
	}
	return false
}

func (sh *Shell) usage(text string) int {
	name, _, _ := strings.Cut(text, " ")
	sh.stderr(name + ": usage: " + text + "\n")
	return 2
}

func (sh *Shell) badOption(name, opt, usage string) int {
	sh.errorf("%s: %s: invalid option", name, opt)
	return sh.usage(usage)
}

func builtinEcho(sh *Shell, args []string) int {
	args = args[1:]
	newline, esc := true, sh.shopts.get("xpg_echo")
	if !(sh.opts.posix && esc) {
		for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
			for _, c := range args[0][1:] {
				switch c {
				case 'n':
					newline = false
				case 'e':
					esc = true
				case 'E':
					esc = false
				}
			}
			args = args[1:]
		}
	}
	for i, a := range args {
		if i > 0 {
			sh.print(" ")
		}
		if esc {
			s, stop := escapes(a, escEcho)
			sh.print(s)
			if stop {
				return 0
			}
			continue
		}
		sh.print(a)
	}
	if newline {
		sh.print("\n")
	}
	return 0
}

func builtinEval(sh *Shell, args []string) int {
	args = args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	} else if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		return sh.badOption("eval", args[0], "eval [arg ...]")
	}
	text := strings.Join(args, " ")
	if strings.TrimSpace(text) == "" {
		return 0
	}
	if !sh.deeper("eval") {
		return 1
	}
	base, line := sh.base, sh.line
	f := &textFrame{r: newTextReader(text, max(0, sh.line-1))}
	f.leaves = func(sh *Shell) { sh.base, sh.line = base, line; sh.depth-- }
	sh.push(f)
	return pushed
}

// deeper counts a nested eval or source; too many are an error.
func (sh *Shell) deeper(what string) bool {
	if limit := sh.p.Sandbox().Limits().Depth; sh.depth >= limit {
		sh.errorf("%s: maximum nesting level exceeded (%d)", what, limit)
		return false
	}
	sh.depth++
	return true
}

func builtinSource(sh *Shell, args []string) int {
	name := args[0]
	args = args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		sh.errorf("%s: filename argument required", name)
		return sh.usage(name + " filename [arguments]")
	}
	file := args[0]
	if !strings.Contains(file, "/") && sh.shopts.get("sourcepath") {
		for _, dir := range strings.Split(sh.str("PATH"), ":") {
			p := strings.TrimSuffix(dir, "/") + "/" + file
			if a, err := sh.p.Stat(p); err == nil && a.Mode.IsRegular() && dir != "" {
				file = p
				break
			}
		}
	}
	if a, err := sh.p.Stat(file); err == nil && a.Mode.IsDir() {
		sh.errorf("%s: %s: is a directory", name, file)
		return 1
	}
	data, err := sh.readFile(file, maxScript)
	if err != nil {
		sh.errorf("%s: %s", sh.sourceError(name, file), strerror(err))
		if sh.opts.posix {
			sh.exitNow(1)
		}
		return 1
	}
	if !sh.deeper("source") {
		return 1
	}
	sh.sourceText(file, string(data), args[1:])
	return pushed
}

func (sh *Shell) sourceError(name, file string) string {
	if strings.Contains(file, "/") {
		return file
	}
	return name + ": " + file
}

// sourceText pushes the frame of a sourced file.
func (sh *Shell) sourceText(file, text string, args []string) {
	f := &textFrame{r: newTextReader(text, 0), ret: true}
	base, line, source, params, loops := sh.base, sh.line, sh.source, sh.params, sh.loops
	own := len(args) > 0
	hidden := map[int]string(nil)
	if !sh.opts.functrace {
		if cmd, ok := sh.traps[sigDebug]; ok {
			hidden = map[int]string{sigDebug: cmd}
			sh.clearTrap(sigDebug)
		}
	}
	f.leaves = func(sh *Shell) {
		sh.base, sh.line, sh.source, sh.loops = base, line, source, loops
		if own {
			sh.params = params
		}
		sh.calls = sh.calls[:len(sh.calls)-1]
		sh.depth--
		sh.restoreTraps(hidden)
	}
	sh.calls = append(sh.calls, call{name: "source", source: file, line: sh.line})
	sh.source, sh.base = file, 0
	if own {
		sh.params = args
	}
	sh.push(f)
}

func builtinExit(sh *Shell, args []string) int {
	st := sh.status
	if sh.inTrap[sigExit] {
		st = sh.status
	}
	args = skipDashes(args[1:])
	if len(args) > 0 {
		n, err := strconv.ParseInt(strings.TrimSpace(args[0]), 10, 64)
		switch {
		case err != nil:
			sh.errorf("exit: %s: numeric argument required", args[0])
			st = 2
		case len(args) > 1:
			sh.errorf("exit: too many arguments")
			return 1
		default:
			st = int(n & 0xff)
		}
	}
	sh.exitNow(st)
	return st
}

func skipDashes(args []string) []string {
	if len(args) > 0 && args[0] == "--" {
		return args[1:]
	}
	return args
}

func builtinReturn(sh *Shell, args []string) int {
	st := sh.status
	args = skipDashes(args[1:])
	if len(sh.calls) == 0 {
		sh.errorf("return: can only `return' from a function or sourced script")
		if sh.opts.posix {
			sh.exitNow(2)
		}
		return 2
	}
	if len(args) > 0 {
		n, err := strconv.ParseInt(strings.TrimSpace(args[0]), 10, 64)
		switch {
		case err != nil:
			sh.errorf("return: %s: numeric argument required", args[0])
			st = 2
		case len(args) > 1:
			sh.errorf("return: too many arguments")
			return 1
		default:
			st = int(n & 0xff)
		}
	}
	sh.status, sh.ctl = st, ctlReturn
	return st
}

func builtinBreak(sh *Shell, args []string) int {
	name := args[0]
	n := int64(1)
	args = skipDashes(args[1:])
	if sh.loops == 0 {
		sh.errorf("%s: only meaningful in a `for', `while', or `until' loop", name)
		return 0
	}
	if len(args) > 0 {
		v, err := strconv.ParseInt(args[0], 10, 64)
		if err != nil {
			sh.errorf("%s: %s: numeric argument required", name, args[0])
			sh.exitNow(128)
			return 128
		}
		if len(args) > 1 {
			sh.errorf("%s: too many arguments", name)
			sh.ctl, sh.ctlN = ctlBreak, sh.loops
			return 1
		}
		if n = v; n < 1 {
			sh.errorf("%s: %s: loop count out of range", name, args[0])
			sh.ctl, sh.ctlN = ctlBreak, sh.loops
			return 1
		}
	}
	sh.ctl = ctlBreak
	if name == "continue" {
		sh.ctl = ctlContinue
	}
	sh.ctlN = int(min(n, int64(sh.loops)))
	sh.status = 0
	return 0
}

func builtinShift(sh *Shell, args []string) int {
	args = skipDashes(args[1:])
	n := 1
	if len(args) > 0 {
		v, err := strconv.Atoi(args[0])
		if err != nil {
			sh.errorf("shift: %s: numeric argument required", args[0])
			if sh.opts.posix {
				sh.exitNow(1)
			}
			return 1
		}
		if len(args) > 1 {
			sh.errorf("shift: too many arguments")
			return 1
		}
		if v < 0 {
			sh.errorf("shift: %s: shift count out of range", args[0])
			return 1
		}
		n = v
	}
	if n > len(sh.params) {
		if sh.shopts.get("shift_verbose") {
			sh.errorf("shift: %d: shift count out of range", n)
		}
		return 1
	}
	sh.params = sh.params[n:]
	return 0
}

func builtinSet(sh *Shell, args []string) int {
	args = args[1:]
	if len(args) == 0 {
		sh.setList()
		return 0
	}
	for len(args) > 0 {
		a := args[0]
		if a == "--" {
			sh.params = append([]string(nil), args[1:]...)
			return 0
		}
		if a == "-" {
			sh.opts.xtrace, sh.opts.verbose = false, false
			if len(args) > 1 {
				sh.params = append([]string(nil), args[1:]...)
			}
			return 0
		}
		if a == "+" {
			args = args[1:]
			continue
		}
		if len(a) < 2 || a[0] != '-' && a[0] != '+' {
			break
		}
		used, st := sh.setFlags(a, args[1:])
		if st != 0 {
			return st
		}
		args = args[1+used:]
		if len(args) == 0 {
			return 0
		}
	}
	sh.params = append([]string(nil), args...)
	return 0
}

// setFlags handles -euo and the like; used counts further arguments taken.
func (sh *Shell) setFlags(a string, rest []string) (used, st int) {
	on := a[0] == '-'
	for i := 1; i < len(a); i++ {
		if a[i] == 'o' {
			if used >= len(rest) {
				sh.listOptions(on)
				continue
			}
			name := rest[used]
			used++
			p, ok := sh.opts.byName(name)
			if !ok {
				sh.errorf("set: %s: invalid option name", name)
				return used, 2
			}
			sh.setOption(name, p, on)
			continue
		}
		p := sh.opts.byLetter(a[i])
		if p == nil {
			sh.errorf("set: %c%c: invalid option", a[0], a[i])
			return used, sh.usage("set [-abefhkmnptuvxBCEHPT] [-o option-name] [--] [-] [arg ...]")
		}
		*p = on
	}
	return used, 0
}

func (sh *Shell) setOption(name string, p *bool, on bool) {
	*p = on
	if on && name == "vi" {
		sh.opts.emacs = false
	}
	if on && name == "emacs" {
		sh.opts.vi = false
	}
}

func (sh *Shell) listOptions(names bool) {
	for _, e := range optionTable() {
		p := e.field(&sh.opts)
		on := p == nil || *p
		switch {
		case names:
			sh.printf("%-15s\t%s\n", e.name, onOff(on))
		case on:
			sh.print("set -o " + e.name + "\n")
		default:
			sh.print("set +o " + e.name + "\n")
		}
	}
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

func builtinUnset(sh *Shell, args []string) int {
	args = args[1:]
	funcs, vars, ref := false, false, false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		if args[0] == "--" {
			args = args[1:]
			break
		}
		for _, c := range args[0][1:] {
			switch c {
			case 'f':
				funcs = true
			case 'v':
				vars = true
			case 'n':
				ref = true
			default:
				return sh.badOption("unset", "-"+string(c), "unset [-f] [-v] [-n] [name ...]")
			}
		}
		args = args[1:]
	}
	st := 0
	for _, a := range args {
		if funcs {
			if f := sh.funcs[a]; f != nil && f.ro {
				sh.errorf("unset: %s: cannot unset: readonly function", a)
				st = 1
				continue
			}
			sh.setFunc(a, nil)
			continue
		}
		if !sh.unsetOne(a, vars, ref) {
			st = 1
		}
	}
	return st
}

func (sh *Shell) unsetOne(a string, vars, ref bool) bool {
	name, sub, hasSub := splitRef(a)
	if !validName(name) {
		if !vars && sh.funcs[a] != nil {
			sh.setFunc(a, nil)
			return true
		}
		sh.errorf("unset: `%s': not a valid identifier", a)
		return false
	}
	if !ref {
		var refSub string
		name, refSub = sh.resolve(name)
		if refSub != "" && !hasSub {
			sub, hasSub = refSub, true
		}
	}
	v, _ := sh.find(name)
	if hasSub {
		return sh.unsetElement(name, v, sub)
	}
	if v == nil && !vars && sh.dynamic(name) == nil {
		if f := sh.funcs[name]; f != nil {
			if f.ro {
				sh.errorf("unset: %s: cannot unset: readonly function", name)
				return false
			}
			sh.setFunc(name, nil)
		}
		return true
	}
	return sh.unset(name)
}

func (sh *Shell) unsetElement(name string, v *variable, sub string) bool {
	if v == nil {
		return true
	}
	if v.attr&attrReadonly != 0 {
		sh.errorf("unset: %s: cannot unset: readonly variable", name)
		return false
	}
	if !v.isArray() {
		if n, err := sh.evalArith(sub); err == nil && n == 0 {
			return sh.unset(name)
		}
		sh.errorf("unset: %s: not an array variable", name)
		return false
	}
	sub = sh.expandSubText(name, sub)
	if v.attr&attrAssoc != 0 {
		v = sh.own(name)
		if sub == "@" || sub == "*" {
			if _, ok := v.assoc.m[sub]; !ok {
				return sh.unset(name)
			}
		}
		if v.assoc != nil {
			v.assoc.del(sub)
		}
		return true
	}
	if sub == "@" || sub == "*" {
		return sh.unset(name)
	}
	i, ok := sh.indexOf(v, "["+sub+"]", sub)
	if !ok {
		return false
	}
	v = sh.own(name)
	if v.arr != nil {
		v.arr.del(i)
	}
	return true
}

func builtinShopt(sh *Shell, args []string) int {
	args = args[1:]
	set, unset, quiet, print, useO := false, false, false, false, false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		for _, c := range args[0][1:] {
			switch c {
			case 's':
				set = true
			case 'u':
				unset = true
			case 'q':
				quiet = true
			case 'p':
				print = true
			case 'o':
				useO = true
			default:
				return sh.badOption("shopt", "-"+string(c), "shopt [-pqsu] [-o] [optname ...]")
			}
		}
		args = args[1:]
	}
	if set && unset {
		sh.errorf("shopt: cannot set and unset shell options simultaneously")
		return 1
	}
	get := func(n string) (on, ok bool) {
		if useO {
			p, ok := sh.opts.byName(n)
			return ok && *p, ok
		}
		return sh.shopts.get(n), sh.shopts.known(n)
	}
	if len(args) == 0 {
		var names []string
		if useO {
			for _, e := range optionTable() {
				names = append(names, e.name)
			}
		} else {
			names = shoptNames(sh.shopts.on)
		}
		for _, n := range names {
			on, _ := get(n)
			if set && !on || unset && on || quiet {
				continue
			}
			sh.printShopt(n, on, print, useO)
		}
		return 0
	}
	st := 0
	for _, n := range args {
		on, ok := get(n)
		if !ok {
			kind := "shell option name"
			if useO {
				kind = "option name"
			}
			sh.errorf("shopt: %s: invalid %s", n, kind)
			st = 1
			continue
		}
		if set || unset {
			if useO {
				p, _ := sh.opts.byName(n)
				*p = set
			} else {
				sh.shopts.set(n, set)
			}
			continue
		}
		if !on {
			st = 1
		}
		if !quiet {
			sh.printShopt(n, on, print, useO)
		}
	}
	return st
}

// shoptNames is in bash's order: the alphabet's, but for one.
func shoptNames(on map[string]bool) []string {
	names := sortedKeys(on)
	for i := 1; i < len(names); i++ {
		if names[i] == "autocd" {
			names[i-1], names[i] = names[i], names[i-1]
		}
	}
	return names
}

func (sh *Shell) printShopt(name string, on, print, useO bool) {
	switch {
	case print && useO:
		sh.print("set " + map[bool]string{true: "-", false: "+"}[on] + "o " + name + "\n")
	case print:
		sh.print("shopt " + map[bool]string{true: "-s", false: "-u"}[on] + " " + name + "\n")
	default:
		sh.printf("%-15s\t%s\n", name, onOff(on))
	}
}

func builtinDeclare(sh *Shell, args []string) int {
	var list []declArg
	for _, s := range args[1:] {
		list = append(list, parseDeclArg(s))
	}
	return sh.declare(args[0], list)
}

func builtinLet(sh *Shell, args []string) int {
	if len(args) == 1 {
		sh.errorf("let: expression expected")
		return 1
	}
	st := 1
	for _, a := range args[1:] {
		n, err := sh.evalArith(a)
		if err != nil {
			sh.arithFailed("let: ", a, err)
			return 1
		}
		st = int(b2i(n == 0))
	}
	return st
}

// execBuiltin is exec: redirections that stay, or a command in place of the shell.
func (sh *Shell) execBuiltin(c *syntax.CallExpr, redirs []*syntax.Redirect, args []string) {
	args = args[1:]
	name, clear, login := "", false, false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		opt := args[0]
		args = args[1:]
		if opt == "--" {
			break
		}
		switch {
		case opt == "-a" && len(args) > 0:
			name, args = args[0], args[1:]
		case opt == "-c":
			clear = true
		case opt == "-l":
			login = true
		default:
			sh.done(sh.badOption("exec", opt, "exec [-cl] [-a name] [command [argument ...]] [redirection ...]"))
			return
		}
	}
	if len(args) == 0 {
		if _, ok := sh.redirect(redirs, false); !ok {
			sh.status = 1
			if sh.opts.posix {
				sh.exitNow(1)
				return
			}
			sh.done(1)
			return
		}
		for _, a := range c.Assigns {
			sh.assign(a)
		}
		sh.done(0)
		return
	}
	if len(c.Assigns) > 0 {
		sh.pushTemp(c.Assigns)
	}
	env := sh.environ()
	if clear {
		env = nil
	}
	if _, ok := sh.redirect(redirs, false); !ok {
		sh.exitNow(1)
		return
	}
	prog, argv, st := sh.program(sh.p, args)
	if prog == nil {
		if st == 127 {
			sh.errorf("exec: %s: not found", args[0])
		} else {
			st = sh.notFound(args, st)
		}
		if sh.shopts.get("execfail") {
			sh.done(st)
			return
		}
		sh.exitTrap = false
		sh.exitNow(st)
		return
	}
	if name != "" {
		argv = append([]string{name}, argv[1:]...)
	}
	if login {
		argv = append([]string{"-" + argv[0]}, argv[1:]...)
	}
	sh.p.SetEnviron(env)
	st = sh.p.Become(prog, argv)
	sh.exitTrap = true
	sh.exitNow(st)
}

func builtinUmask(sh *Shell, args []string) int {
	args = args[1:]
	sym, print := false, false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && args[0] != "--" {
		if strings.Trim(args[0], "-Sp") != "" {
			return sh.badOption("umask", args[0][:2], "umask [-p] [-S] [mode]")
		}
		sym = sym || strings.Contains(args[0], "S")
		print = print || strings.Contains(args[0], "p")
		args = args[1:]
	}
	args = skipDashes(args)
	old := sh.p.Umask(0)
	sh.p.Umask(old)
	if len(args) == 0 {
		switch {
		case sym && print:
			sh.printf("umask -S %s\n", symbolic(old))
		case sym:
			sh.print(symbolic(old) + "\n")
		case print:
			sh.printf("umask %04o\n", old)
		default:
			sh.printf("%04o\n", old)
		}
		return 0
	}
	if c := args[0]; c != "" && c[0] >= '0' && c[0] <= '9' {
		n, err := strconv.ParseUint(c, 8, 16)
		if err != nil || n > 0o7777 {
			sh.errorf("umask: %s: octal number out of range", c)
			return 1
		}
		sh.p.Umask(vfs.Mode(n & 0o777))
		return 0
	}
	mask, bad, op := parseSymbolic(args[0], old)
	if bad != 0 {
		if op {
			sh.errorf("umask: `%c': invalid symbolic mode operator", bad)
		} else {
			sh.errorf("umask: `%c': invalid symbolic mode character", bad)
		}
		return 1
	}
	sh.p.Umask(mask)
	if sym {
		sh.print(symbolic(mask) + "\n")
	}
	return 0
}

func symbolic(mask vfs.Mode) string {
	perm := ^mask & 0o777
	part := func(shift uint) string {
		var b []byte
		for i, c := range []byte("rwx") {
			if perm>>shift&(4>>uint(i)) != 0 {
				b = append(b, c)
			}
		}
		return string(b)
	}
	return fmt.Sprintf("u=%s,g=%s,o=%s", part(6), part(3), part(0))
}

// parseSymbolic applies a mode such as g-w,o= to a mask. bad is what couldn't be understood.
func parseSymbolic(s string, mask vfs.Mode) (out vfs.Mode, bad byte, op bool) {
	perm := ^mask & 0o777
	for _, clause := range strings.Split(s, ",") {
		who := vfs.Mode(0)
		i := 0
		for ; i < len(clause) && strings.IndexByte("ugoa", clause[i]) >= 0; i++ {
			who |= map[byte]vfs.Mode{'u': 0o700, 'g': 0o070, 'o': 0o007, 'a': 0o777}[clause[i]]
		}
		if who == 0 {
			who = 0o777
		}
		if i >= len(clause) {
			return 0, (clause + ",")[max(0, i-1)], true
		}
		for i < len(clause) {
			act := clause[i]
			if strings.IndexByte("+-=", act) < 0 {
				return 0, act, true
			}
			bits := vfs.Mode(0)
			for i++; i < len(clause) && strings.IndexByte("+-=", clause[i]) < 0; i++ {
				switch clause[i] {
				case 'r':
					bits |= 0o444
				case 'w':
					bits |= 0o222
				case 'x':
					bits |= 0o111
				default:
					return 0, clause[i], false
				}
			}
			switch act {
			case '+':
				perm |= bits & who
			case '-':
				perm &^= bits & who
			case '=':
				perm = perm&^who | bits&who
			}
		}
	}
	return ^perm & 0o777, 0, false
}

func errIntr(err error) bool { return err == syscall.EINTR }
