package shell

import (
	"sort"
	"strings"
)

// hashEntry is where a command was found, and how often it has been run from there.
type hashEntry struct {
	path string
	hits int
}

// hashTable returns the table of found commands to change.
func (sh *Shell) hashTable() map[string]hashEntry {
	if sh.hashOwn != sh.tok || sh.hashed == nil {
		m := make(map[string]hashEntry, len(sh.hashed)+1)
		for k, v := range sh.hashed {
			m[k] = v
		}
		sh.hashed, sh.hashOwn = m, sh.tok
	}
	return sh.hashed
}

func (sh *Shell) isFile(path string) bool {
	a, err := sh.p.Stat(path)
	return err == nil && !a.Mode.IsDir()
}

// hashedNames lists the table in the order of bash's.
func (sh *Shell) hashedNames() []string {
	names := sortedKeys(sh.hashed)
	const buckets = 256
	sort.SliceStable(names, func(i, j int) bool { return bashHash(names[i])%buckets < bashHash(names[j])%buckets })
	return names
}

const hashUsage = "hash [-lr] [-p pathname] [-dt] [name ...]"

func builtinHash(sh *Shell, args []string) int {
	if !sh.opts.hashall {
		sh.errorf("hash: hashing disabled")
		return 1
	}
	args = args[1:]
	path := ""
	list, drop, tell, clear := false, false, false, false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		word := args[0]
		args = args[1:]
		if word == "--" {
			break
		}
	letters:
		for i := 1; i < len(word); i++ {
			switch c := word[i]; c {
			case 'l':
				list = true
			case 'r':
				clear = true
			case 'd':
				drop = true
			case 't':
				tell = true
			case 'p':
				if path = word[i+1:]; path == "" {
					if len(args) == 0 {
						sh.errorf("hash: -p: option requires an argument")
						return sh.usage(hashUsage)
					}
					path, args = args[0], args[1:]
				}
				break letters
			default:
				return sh.badOption("hash", "-"+string(c), hashUsage)
			}
		}
	}
	switch {
	case clear:
		sh.hashed = nil
	case len(args) == 0 && (tell || drop):
		opt := "-t"
		if drop {
			opt = "-d"
		}
		sh.errorf("hash: %s: option requires an argument", opt)
		return 1
	case len(args) == 0:
		sh.listHashed(list)
		return 0
	}
	st := 0
	for _, name := range args {
		st = max(st, sh.hashOne(name, path, list, drop, tell, len(args) > 1))
	}
	return st
}

func (sh *Shell) listHashed(list bool) {
	if len(sh.hashed) == 0 {
		if !sh.opts.posix {
			sh.print("hash: hash table empty\n")
		}
		return
	}
	if !list {
		sh.print("hits\tcommand\n")
	}
	for _, n := range sh.hashedNames() {
		if e := sh.hashed[n]; list {
			sh.print("builtin hash -p " + e.path + " " + n + "\n")
		} else {
			sh.printf("%4d\t%s\n", e.hits, e.path)
		}
	}
}

// hashOne does what hash was asked for to one name.
func (sh *Shell) hashOne(name, path string, list, drop, tell, several bool) int {
	e, known := sh.hashed[name]
	missing := func() int {
		sh.errorf("hash: %s: not found", name)
		return 1
	}
	switch {
	case tell && !known, drop && !known:
		return missing()
	case tell && list:
		sh.print("builtin hash -p " + e.path + " " + name + "\n")
	case tell && several:
		sh.print(name + "\t" + e.path + "\n")
	case tell:
		sh.print(e.path + "\n")
	case drop:
		delete(sh.hashTable(), name)
	case path != "":
		if a, err := sh.p.Stat(path); err == nil && a.Mode.IsDir() {
			sh.errorf("hash: %s: Is a directory", path)
			return 1
		}
		sh.hashTable()[name] = hashEntry{path: path}
	case strings.Contains(name, "/") || findBuiltin(name) != nil || sh.funcs[name] != nil:
	default:
		if known {
			delete(sh.hashTable(), name)
		}
		if _, err := sh.findCommand(name); err != nil {
			return missing()
		}
		sh.hashTable()[name] = hashEntry{path: sh.hashed[name].path}
	}
	return 0
}
