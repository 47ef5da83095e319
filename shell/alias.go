package shell

import (
	"strings"
)

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
			_, known := sh.aliases[name]
			if !known {
				sh.errorf("alias: %s: not found", name)
				st = 1
				continue
			}
			sh.print(sh.aliasLine(name))
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
		sh.print(sh.aliasLine(n))
	}
}

func (sh *Shell) aliasLine(name string) string {
	line := name + "=" + quoteSingle(sh.aliases[name]) + "\n"
	if sh.opts.posix {
		return line
	}
	return "alias " + line
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
