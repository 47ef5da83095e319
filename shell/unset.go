package shell

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
	if funcs && vars {
		sh.errorf("unset: cannot simultaneously unset a function and a variable")
		return 1
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
		if !vars {
			return true // not a function's name either
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
		sh.own(name).arr = &indexed{}
		return true
	}
	i, ok := sh.indexOf(v, "unset: ["+sub+"]", sub)
	if !ok {
		return false
	}
	v = sh.own(name)
	if v.arr != nil {
		v.arr.del(i)
	}
	return true
}
