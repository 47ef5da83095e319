package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// declClause runs declare, local, export, readonly, typeset and nameref with their assignments.
func (sh *Shell) declClause(c *syntax.DeclClause) {
	sh.debugTrap(c)
	sh.substSt = -1
	name := c.Variant.Value
	if sh.funcs[name] != nil {
		sh.callFunc(sh.funcs[name], append([]string{name}, sh.declWords(c)...))
		sh.insert(len(sh.frames)-1, &restoreFrame{check: true, fds: len(sh.procFds)})
		return
	}
	var args []declArg
	for _, a := range c.Args {
		switch {
		case a.Naked && a.Name == nil:
			for _, s := range sh.words([]*syntax.Word{a.Value}) {
				args = append(args, parseDeclArg(s))
			}
		case a.Naked:
			arg := declArg{name: a.Name.Value, text: a.Name.Value}
			if a.Index != nil {
				arg.sub, arg.hasSub = sh.subscript(a.Index, a.Name.Value), true
			}
			args = append(args, arg)
		default:
			arg := declArg{name: a.Name.Value, add: a.Append, hasValue: true, array: a.Array}
			if a.Index != nil {
				arg.sub, arg.hasSub = sh.subscript(a.Index, a.Name.Value), true
			}
			if a.Array == nil {
				if sh.opts.braceexpand && hasBrace(a.Value) {
					// Braces come first, and make several assignments.
					for _, parts := range sh.braces(a.Value.Parts) {
						arg.value = sh.value(&syntax.Word{Parts: parts})
						args = append(args, arg)
					}
					continue
				}
				arg.value = sh.value(a.Value)
			}
			args = append(args, arg)
		}
	}
	if sh.opts.xtrace {
		sh.traceDeclare(name, args)
	}
	st := sh.declare(name, args)
	sh.builtinDone(name, st, false)
}

// traceDeclare is set -x's view of a declaration: lists are assigned on a line of their own before it, and export and
// readonly tell their assignments once more.
func (sh *Shell) traceDeclare(name string, args []declArg) {
	words := []string{name}
	for _, a := range args {
		w := a.text
		switch {
		case a.array != nil:
			var vals []string
			for _, e := range a.array.Elems {
				v := ""
				if e.Index != nil {
					v = "[" + quoteSingle(sh.subscript(e.Index, a.name)) + "]="
				}
				if e.Value != nil {
					v += quoteSingle(sh.value(e.Value))
				}
				vals = append(vals, v)
			}
			sh.trace(a.name + "=(" + strings.Join(vals, " ") + ")")
			w = a.name
		case a.hasValue:
			op := "="
			if a.add {
				op = "+="
			}
			if w = a.name; a.hasSub {
				w += "[" + a.sub + "]"
			}
			w += op + a.value
		}
		words = append(words, w)
	}
	sh.traceArgs(words)
	if name == "export" || name == "readonly" {
		for _, a := range args {
			if a.hasValue && a.array == nil {
				sh.trace(a.name + "=" + quoteSet(a.value))
			}
		}
	}
}

func (sh *Shell) declWords(c *syntax.DeclClause) []string {
	var out []string
	for _, a := range c.Args {
		switch {
		case a.Naked && a.Name == nil:
			out = append(out, sh.words([]*syntax.Word{a.Value})...)
		case a.Naked:
			out = append(out, a.Name.Value)
		default:
			out = append(out, a.Name.Value+"="+sh.value(a.Value))
		}
	}
	return out
}

// declArg is an argument of declare: an option, a name, or an assignment.
type declArg struct {
	text     string // as written, for options and names
	name     string
	sub      string
	hasSub   bool
	value    string
	hasValue bool
	add      bool
	array    *syntax.ArrayExpr
}

// parseDeclArg splits an expanded argument.
func parseDeclArg(s string) declArg {
	a := declArg{text: s, name: s}
	if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
		return a
	}
	eq := strings.IndexByte(s, '=')
	// An = inside of a subscript isn't the assignment's.
	if open := strings.IndexByte(s, '['); open > 0 && open < eq {
		if shut := strings.IndexByte(s[open:], ']'); shut > 0 {
			if k := strings.IndexByte(s[open+shut:], '='); k >= 0 {
				eq = open + shut + k
			}
		}
	}
	if eq > 0 {
		a.name, a.value, a.hasValue = s[:eq], s[eq+1:], true
		if strings.HasSuffix(a.name, "+") {
			a.name, a.add = a.name[:len(a.name)-1], true
		}
	}
	if n, sub, ok := splitRef(a.name); ok {
		a.name, a.sub, a.hasSub = n, sub, true
	}
	return a
}

// declState is what the options of declare say.
type declState struct {
	cmd                  string
	on, off              attr
	print, funcs, fnames bool
	global, inherit      bool
	all                  bool
}

// declare does declare, typeset, local, export, readonly and nameref.
func (sh *Shell) declare(cmd string, args []declArg) int {
	d := &declState{cmd: cmd}
	switch cmd {
	case "export":
		d.on = attrExport
	case "readonly":
		d.on = attrReadonly
	case "nameref":
		d.on = attrNameref
	case "local":
		if len(sh.calls) == 0 || len(sh.scopes) < 2 {
			sh.errorf("local: can only be used in a function")
			return 1
		}
	}
	for len(args) > 0 {
		t := args[0].text
		if args[0].hasValue || len(t) < 2 || t[0] != '-' && t[0] != '+' {
			break
		}
		if t == "--" {
			args = args[1:]
			break
		}
		if !sh.declOptions(d, t) {
			return 2
		}
		args = args[1:]
	}
	if d.cmd == "local" && len(args) == 1 && args[0].text == "-" && !args[0].hasValue {
		saved := sh.opts
		sh.scopes[len(sh.scopes)-1].opts = &saved
		return 0
	}
	if d.funcs {
		return sh.declareFuncs(d, args)
	}
	if len(args) == 0 {
		return sh.declareList(d)
	}
	st := 0
	for _, a := range args {
		if d.print && !(a.hasValue) && (d.cmd == "declare" || d.cmd == "typeset" || d.cmd == "local") {
			st |= sh.declarePrint(d, a)
			continue
		}
		if !sh.declareOne(d, a) {
			st = 1
		}
	}
	return st
}

func (sh *Shell) declOptions(d *declState, t string) bool {
	for i := 1; i < len(t); i++ {
		var a attr
		switch t[i] {
		case 'x':
			a = attrExport
		case 'r':
			a = attrReadonly
		case 'i':
			a = attrInteger
		case 'l':
			a = attrLower
		case 'u':
			a = attrUpper
		case 'c':
			a = attrCapital
		case 't':
			a = attrTrace
		case 'a':
			a = attrIndexed
		case 'A':
			a = attrAssoc
		case 'n':
			if d.cmd == "export" {
				d.on &^= attrExport
				d.off |= attrExport
				continue
			}
			a = attrNameref
		case 'p':
			d.print = true
			continue
		case 'f':
			d.funcs = true
			continue
		case 'F':
			d.funcs, d.fnames = true, true
			continue
		case 'g':
			d.global = true
			continue
		case 'I':
			d.inherit = true
			continue
		default:
			sh.errorf("%s: %s: invalid option", d.cmd, t[:1]+t[i:i+1])
			usage := "[-aAfFgiIlnrtux] [name[=value] ...] or " + d.cmd + " -p [-aAfFilnrtux] [name ...]"
			switch d.cmd {
			case "export":
				usage = "[-fn] [name[=value] ...] or export -p"
			case "readonly":
				usage = "[-aAf] [name[=value] ...] or readonly -p"
			case "local":
				usage = "[option] name[=value] ..."
			}
			sh.stderr(d.cmd + ": usage: " + d.cmd + " " + usage + "\n")
			return false
		}
		if t[0] == '-' {
			d.on |= a
			d.off &^= a
		} else {
			d.off |= a
			d.on &^= a
		}
	}
	return true
}

// declareOne sets attributes and a value.
func (sh *Shell) declareOne(d *declState, a declArg) bool {
	if !validName(a.name) {
		what := a.text
		if a.hasValue && a.text == "" {
			what = a.name + "=" + a.value
		}
		sh.errorf("%s: `%s': not a valid identifier", d.cmd, what)
		return false
	}
	name := a.name
	local := len(sh.scopes) > 1 && len(sh.calls) > 0 && !d.global && d.cmd != "export" && d.cmd != "readonly"
	if d.on&attrNameref == 0 && d.off&attrNameref == 0 && !local {
		if t, sub := sh.resolve(name); sub == "" {
			name = t
		}
	}
	if local {
		if !sh.makeLocal(name, d) {
			return false
		}
	} else if d.global {
		if _, ok := sh.scopes[0].vars[name]; !ok {
			sh.scopes[0].mutable(sh.tok, name)[name] = &variable{own: sh.tok}
		}
	}
	if local && d.on&attrNameref == 0 {
		if v, _ := sh.find(name); v != nil && v.attr&attrNameref != 0 && d.off&attrNameref == 0 {
			if t, sub := sh.resolve(name); sub == "" {
				name = t
			}
		}
	}
	v := sh.declTarget(name, d)
	if v.attr&attrReadonly != 0 && (a.hasValue || d.off&attrReadonly != 0) {
		if d.off&attrReadonly != 0 && !a.hasValue || d.cmd == "declare" || d.cmd == "typeset" {
			sh.errorf("%s: %s: readonly variable", d.cmd, name)
		} else {
			sh.errorf("%s: readonly variable", name)
		}
		return false
	}
	if d.on&attrAssoc != 0 && v.attr&attrIndexed != 0 {
		sh.errorf("%s: %s: cannot convert indexed to associative array", d.cmd, name)
		return false
	}
	if d.on&attrIndexed != 0 && v.attr&attrAssoc != 0 {
		sh.errorf("%s: %s: cannot convert associative to indexed array", d.cmd, name)
		return false
	}
	if d.off&(attrIndexed|attrAssoc) != 0 && v.isArray() {
		sh.errorf("%s: %s: cannot destroy array variables in this way", d.cmd, name)
		return false
	}
	if d.on&attrNameref != 0 && !a.hasValue && v.set && v.attr&attrNameref == 0 {
		if base, _, _ := splitRef(v.str); v.str != "" && !validName(base) {
			sh.errorf("%s: `%s': invalid variable name for name reference", d.cmd, v.str)
			return false
		}
	}
	sh.applyAttrs(v, d)
	if !a.hasValue {
		if a.hasSub && v.attr&attrAssoc == 0 {
			v.attr |= attrIndexed
			if v.arr == nil {
				v.arr = &indexed{}
			}
		}
		sh.finishAttrs(name, d)
		return true
	}
	ok := sh.declareValue(name, v, d, a)
	sh.finishAttrs(name, d)
	return ok
}

// declTarget is the variable that a declaration changes, not the one that a nameref leads to.
func (sh *Shell) declTarget(name string, d *declState) *variable {
	if d.global {
		v := sh.scopes[0].vars[name]
		if v.own != sh.tok {
			v = v.clone(sh.tok)
			sh.scopes[0].mutable(sh.tok, name)[name] = v
		}
		return v
	}
	return sh.own(name)
}

func (sh *Shell) applyAttrs(v *variable, d *declState) {
	on := d.on &^ attrReadonly // comes last, after the value
	if on&attrUpper != 0 {
		v.attr &^= attrLower
	}
	if on&attrLower != 0 {
		v.attr &^= attrUpper
	}
	if on&(attrUpper|attrLower) == attrUpper|attrLower {
		on &^= attrUpper | attrLower
	}
	if on&attrAssoc != 0 && v.assoc == nil {
		v.assoc = newAssoc()
		if v.set {
			v.assoc.put("0", v.str)
			v.str = ""
		}
	}
	if on&attrIndexed != 0 && v.arr == nil {
		v.arr = &indexed{}
		if v.set {
			v.arr.put(0, v.str)
			v.str = ""
		}
	}
	if (v.attr|on|d.off)&attrExport != 0 {
		sh.envStale = true
	}
	v.attr = v.attr&^d.off | on
}

func (sh *Shell) finishAttrs(name string, d *declState) {
	if d.on&attrReadonly != 0 {
		sh.declTarget(name, d).attr |= attrReadonly
	}
	sh.changed(name)
}

func (sh *Shell) declareValue(name string, v *variable, d *declState, a declArg) bool {
	switch {
	case a.array != nil:
		if d.global && len(sh.scopes) > 1 {
			items := sh.arrayItems(a.array, v.attr&attrAssoc != 0)
			return sh.fillArray(name, v, items, a.add, v.attr&attrAssoc != 0)
		}
		return sh.assignArray(name, a.array, a.add, d.on)
	case a.hasSub:
		return sh.assignElement(name, a.sub, a.value, a.add)
	case v.attr&attrNameref != 0 && d.on&attrNameref != 0:
		base, _, _ := splitRef(a.value)
		if !validName(base) {
			sh.errorf("%s: `%s': invalid variable name for name reference", d.cmd, a.value)
			return false
		}
		if a.value == name && len(sh.scopes) > 1 && !d.global {
			sh.errorf("%s: warning: %s: circular name reference", d.cmd, name)
		}
		if a.value == name && (len(sh.scopes) == 1 || d.global) {
			sh.errorf("%s: %s: nameref variable self references not allowed", d.cmd, name)
			v.attr &^= attrNameref
			return false
		}
		v.str, v.set = a.value, true
		return true
	case v.isArray() && strings.HasPrefix(a.value, "(") && strings.HasSuffix(a.value, ")") && (a.text != "" || d.on&(attrIndexed|attrAssoc) != 0):
		// A compound value that came out of an expansion.
		return sh.evalArrayText(name, a.value, a.add, d.on)
	}
	if d.global && len(sh.scopes) > 1 {
		val, ok := sh.combine(v, v.str, a.value, a.add)
		if ok {
			v.str, v.set = val, true
		}
		return ok
	}
	return sh.assignScalar(name, a.value, a.add)
}

// evalArrayText assigns an array from text such as ([0]="a" [1]="b").
func (sh *Shell) evalArrayText(name, text string, add bool, want attr) bool {
	r := sh.newReader("x=" + text)
	a := r.assignment()
	if a == nil || r.err != nil || a.Array == nil {
		return sh.assignScalar(name, text, add)
	}
	return sh.assignArray(name, a.Array, add, want)
}

// makeLocal makes sure that the innermost function has the variable.
func (sh *Shell) makeLocal(name string, d *declState) bool {
	sc := sh.funcScope()
	if v, ok := sc.vars[name]; ok && !v.temp {
		return true
	}
	old, _ := sh.find(name)
	if old != nil && old.attr&attrReadonly != 0 && !old.local {
		sh.errorf("%s: %s: readonly variable", d.cmd, name)
		return false
	}
	v := &variable{own: sh.tok, local: true}
	switch {
	case old != nil && (d.inherit || sh.shopts.get("localvar_inherit")):
		v = old.clone(sh.tok)
		v.local, v.temp = true, false
	case old != nil && old.temp:
		// A variable from before the call keeps its value.
		v = old.clone(sh.tok)
		v.local, v.temp = true, false
	}
	sc.mutable(sh.tok, name)[name] = v
	sh.changed(name)
	return true
}

// funcScope is the scope of the innermost function call; above it may be one of temporary variables.
func (sh *Shell) funcScope() *scope {
	i := len(sh.scopes) - 1
	for i > 1 && sh.scopes[i].temp {
		i--
	}
	return sh.scopes[i]
}
