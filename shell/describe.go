package shell

import (
	"fmt"
	"strings"

	"agentrun.dev/proc"
	"mvdan.cc/sh/v3/syntax"
)

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
		sh.plain = true
		defer func() { sh.plain = false }()
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
	child, pgid, st := sh.spawn(nil, args)
	if child == nil {
		return st
	}
	sh.waitFor(child, pgid, afterBuiltin, len(sh.procFds))
	return pushed
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
	} else if e, hashed := sh.hashed[name]; hashed && cmd == "type" && long {
		return say(e.path, fmt.Sprintf("%s is hashed (%s)", name, e.path))
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
			case k.kind == "file" && !all && sh.hashed[name].path != "":
				sh.printf("%s is hashed (%s)\n", name, sh.hashed[name].path)
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
