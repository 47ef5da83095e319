package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

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
	sh.push(sh.evalFrame(text))
	return pushed
}

// evalFrame runs text in this shell; deeper has counted it.
func (sh *Shell) evalFrame(text string) *textFrame {
	f := &textFrame{r: newTextReader(text, max(0, sh.line-1)), kind: textEval, base: sh.base, unit: sh.unit, line: sh.line}
	f.r.eval = true
	return f
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
		if sh.opts.posix && !sh.plain {
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
	if sh.opts.posix && !strings.Contains(file, "/") {
		return name + ": " + file
	}
	return file
}

// sourceText pushes the frame of a sourced file.
func (sh *Shell) sourceText(file, text string, args []string) {
	f := &textFrame{r: newTextReader(text, 0), kind: textSource, base: sh.base, unit: sh.unit, line: sh.line, source: sh.source, loops: sh.loops,
		own: len(args) > 0, params: sh.params}
	if !sh.opts.functrace {
		if cmd, ok := sh.traps[sigDebug]; ok {
			f.hidden = map[int]string{sigDebug: cmd}
			sh.clearTrap(sigDebug)
		}
	}
	sh.calls = append(sh.calls, call{name: "source", source: file, line: sh.line})
	sh.source, sh.base = file, 0
	if f.own {
		sh.params = args
	}
	sh.push(f)
}

func builtinExit(sh *Shell, args []string) int {
	st := sh.status
	if sh.opts.interactive && sh.subshell == 0 {
		sh.stderr("exit\n")
		if sh.warnOfJobs() {
			return 1
		}
	}
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
			panic(abort{kind: abortDiscard, status: 1})
		default:
			st = int(n & 0xff)
		}
	}
	sh.prior, sh.status, sh.ctl = sh.status, st, ctlReturn
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
