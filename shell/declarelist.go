package shell

func (sh *Shell) declareFuncs(d *declState, args []declArg) int {
	if len(args) == 0 {
		for _, name := range sortedKeys(sh.funcs) {
			sh.declareFunc(d, name, true)
		}
		return 0
	}
	st := 0
	for _, a := range args {
		f := sh.funcs[a.text]
		if f == nil {
			if d.cmd == "export" || d.cmd == "readonly" {
				sh.errorf("%s: %s: not a function", d.cmd, a.text)
			}
			st = 1
			continue
		}
		if d.on|d.off != 0 {
			g := *f
			if d.on&attrExport != 0 {
				g.export = true
			}
			if d.off&attrExport != 0 {
				g.export = false
			}
			if d.on&attrReadonly != 0 {
				g.ro = true
			}
			sh.setFunc(a.text, &g)
			continue
		}
		sh.declareFunc(d, a.text, false)
	}
	return st
}

func (sh *Shell) declareFunc(d *declState, name string, all bool) {
	f := sh.funcs[name]
	if d.fnames {
		if all {
			sh.print("declare -f")
			if f.ro {
				sh.print("r")
			}
			if f.export {
				sh.print("x")
			}
			sh.print(" ")
		}
		sh.print(name)
		if !all && sh.shopts.get("extdebug") {
			sh.printf(" %d %s", f.base+int(f.decl.Pos().Line()), f.source)
		}
		sh.print("\n")
		return
	}
	sh.print(sh.printFunc(name, f) + "\n")
}

// declareList lists variables.
func (sh *Shell) declareList(d *declState) int {
	plain := d.on == 0 && !d.print && d.cmd != "local"
	if plain {
		sh.setList()
		return 0
	}
	names := sh.allNames()
	if d.cmd == "local" {
		names = sortedKeys(sh.scopes[len(sh.scopes)-1].vars)
	}
	for _, name := range names {
		v, _ := sh.find(name)
		if v == nil {
			if v = sh.dynamic(name); v == nil || d.on != 0 && v.attr&d.on != d.on {
				continue
			}
		}
		if d.on != 0 && v.attr&d.on == 0 {
			continue
		}
		if d.on == 0 && d.cmd != "local" && !d.print {
			continue
		}
		if sh.opts.posix && (d.cmd == "export" || d.cmd == "readonly") {
			sh.print(d.cmd + " " + name)
			if v.set && !v.isArray() {
				sh.print("=" + quoteDouble(v.str))
			}
			sh.print("\n")
			continue
		}
		if d.cmd == "local" && d.on == 0 && !d.print {
			sh.print(name + "=" + quoteSet(v.str) + "\n")
			continue
		}
		sh.print(sh.declareText(name, v) + "\n")
	}
	return 0
}

func (sh *Shell) declarePrint(d *declState, a declArg) int {
	v, _ := sh.find(a.name)
	if v == nil {
		v = sh.dynamic(a.name)
	}
	if v == nil || d.cmd == "local" && !v.local {
		if f := sh.funcs[a.name]; f != nil && d.funcs {
			sh.print(sh.printFunc(a.name, f) + "\n")
			return 0
		}
		sh.errorf("%s: %s: not found", d.cmd, a.text)
		return 1
	}
	sh.print(sh.declareText(a.name, v) + "\n")
	return 0
}

// setList is set without arguments: all variables, and functions.
func (sh *Shell) setList() {
	for _, name := range sh.allNames() {
		v, _ := sh.find(name)
		if v == nil {
			if v = sh.dynamic(name); v == nil {
				continue
			}
		}
		switch {
		case v.isArray() && v.set:
			sh.print(name + "=" + arrayText(v) + "\n")
		case v.set:
			sh.print(name + "=" + quoteSet(v.str) + "\n")
		}
	}
	if !sh.opts.posix {
		for _, name := range sortedKeys(sh.funcs) {
			sh.print(sh.printFunc(name, sh.funcs[name]) + "\n")
		}
	}
}
