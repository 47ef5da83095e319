package shell

import (
	"slices"
	"strconv"
)

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
			panic(abort{kind: abortDiscard, status: 1})
		}
		if v < 0 {
			sh.errorf("shift: %s: shift count out of range", args[0])
			return 1
		}
		n = v
	}
	if n > len(sh.params) {
		if sh.shopts.get("shift_verbose") || sh.opts.posix {
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
			sh.charge(wordSize * len(args))
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
	defer func(was bool) {
		if sh.opts.monitor && !was {
			sh.controlAt = sh.subshell
		}
	}(sh.opts.monitor)
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
	if name == "posix" {
		if _, set := sh.get("POSIXLY_CORRECT"); on && !set {
			sh.set("POSIXLY_CORRECT", "y")
			sh.shopts.set("expand_aliases", true)
		} else if !on && set {
			sh.unset("POSIXLY_CORRECT")
		}
		*p = on
	}
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
			names = shoptNames()
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
				if n == "extdebug" {
					sh.opts.functrace, sh.opts.errtrace = set, set
				}
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
func shoptNames() []string {
	names := slices.Clone(shoptList)
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
