package shell

import (
	"strconv"
	"strings"
)

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

func builtinCaller(sh *Shell, args []string) int {
	n := 0
	if len(sh.calls) == 0 {
		return 1
	}
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
