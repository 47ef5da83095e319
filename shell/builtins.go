package shell

import (
	"strings"
	"syscall"
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
	case "exit":
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
	case "history":
		return builtinHistory
	case "fc":
		return builtinFc
	case "complete":
		return builtinComplete
	case "compopt":
		return builtinCompopt
	case "bind":
		return builtinBind
	case "suspend":
		return builtinSuspend
	case "logout":
		return builtinLogout
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

func errIntr(err error) bool { return err == syscall.EINTR }
