package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// assign performs name=value, name[sub]=value and name=(…) as a statement.
func (sh *Shell) assign(a *syntax.Assign) bool {
	name := a.Name.Value
	if a.Array != nil {
		target, _ := sh.resolve(name)
		ok := sh.assignArray(target, a.Array, a.Append, 0)
		if ok && sh.opts.xtrace {
			sh.trace(name + "=" + sh.nodeText(a.Array))
		}
		return ok
	}
	if a.Index != nil {
		target, _ := sh.resolve(name)
		sub := sh.subscript(a.Index, target)
		value := sh.value(a.Value)
		if sh.opts.xtrace {
			sh.trace(name + "[" + sub + "]=" + quoteSet(value))
		}
		return sh.assignElement(target, sub, value, a.Append)
	}
	value := sh.value(a.Value)
	if sh.opts.xtrace {
		op := "="
		if a.Append {
			op = "+="
		}
		sh.trace(name + op + quoteSet(value))
	}
	if v, _ := sh.find(name); v != nil && v.attr&attrNameref != 0 {
		target, sub := sh.resolve(name)
		if target == name && (!v.set || v.str == "") {
			return sh.retarget(name, value)
		}
		if t, _ := sh.find(target); t != nil && t.attr&attrNameref != 0 && t.set && t.str != "" {
			return false // a circle, which resolve has reported
		}
		if sub != "" {
			return sh.assignElement(target, sub, value, a.Append)
		}
		return sh.assignScalar(target, value, a.Append)
	}
	return sh.assignScalar(name, value, a.Append)
}

// retarget makes a nameref refer to another name.
func (sh *Shell) retarget(name, target string) bool {
	base, _, _ := splitRef(target)
	if !validName(base) {
		sh.errorf("`%s': not a valid identifier", target)
		return false
	}
	if base == name {
		sh.errorf("warning: %s: circular name reference", name)
	}
	v := sh.own(name)
	if v.attr&attrReadonly != 0 {
		sh.errorf("%s: readonly variable", name)
		return false
	}
	v.str, v.set = target, true
	return true
}

// assignElement assigns to name[sub].
func (sh *Shell) assignElement(name, sub, value string, add bool) bool {
	if v, _ := sh.find(name); v != nil && v.attr&attrReadonly != 0 {
		sh.errorf("%s: readonly variable", name)
		return false
	}
	if !validName(name) {
		sh.errorf("`%s[%s]': not a valid identifier", name, sub)
		return false
	}
	v := sh.own(name)
	if v.attr&attrAssoc != 0 {
		if v.assoc == nil {
			v.assoc = newAssoc()
		}
		old := v.assoc.m[sub]
		val, ok := sh.combine(v, old, value, add)
		if !ok || !sh.charge(len(val)+len(sub)+32) {
			return false
		}
		v.assoc.put(sub, val)
		v.set = true
		return true
	}
	if sub == "" {
		sh.errorf("%s[]: bad array subscript", name)
		return false
	}
	if sub == "@" || sub == "*" {
		sh.errorf("%s[%s]: bad array subscript", name, sub)
		return false
	}
	if v.arr == nil {
		arr := &indexed{}
		if v.set {
			arr.put(0, v.str)
		}
		v.arr, v.str = arr, ""
		v.attr |= attrIndexed
	}
	i, ok := sh.indexOf(v, name+"["+sub+"]", sub)
	if !ok {
		return false
	}
	// The expression may have copied or changed the array.
	v = sh.own(name)
	old, _ := v.arr.get(i)
	val, ok := sh.combine(v, old, value, add)
	if !ok || !sh.charge(len(val)+16) {
		return false
	}
	v.arr.put(i, val)
	v.set = true
	return true
}

// arrayItem is an element of name=(…), words expanded.
type arrayItem struct {
	key    string
	hasKey bool
	add    bool
	value  string
}

// assignArray performs name=(…). want is attrAssoc or attrIndexed when a declaration says so.
func (sh *Shell) assignArray(name string, x *syntax.ArrayExpr, add bool, want attr) bool {
	if v, _ := sh.find(name); v != nil && v.attr&attrReadonly != 0 {
		sh.errorf("%s: readonly variable", name)
		return false
	}
	old, _ := sh.find(name)
	isAssoc := want&attrAssoc != 0 || old != nil && old.attr&attrAssoc != 0
	items := sh.arrayItems(x, isAssoc)
	v := sh.own(name)
	return sh.fillArray(name, v, items, add, isAssoc)
}

func (sh *Shell) fillArray(name string, v *variable, items []arrayItem, add, isAssoc bool) bool {
	size := 0
	for _, it := range items {
		size += len(it.value) + len(it.key) + 16
	}
	if !sh.charge(size) {
		return false
	}
	if isAssoc {
		return sh.fillAssoc(name, v, items, add)
	}
	v.attr |= attrIndexed
	arr := &indexed{}
	if add {
		if v.arr != nil {
			arr = v.arr
		} else if v.set {
			arr.put(0, v.str)
		}
	} else if v.attr&attrInteger != 0 && v.arr != nil {
		arr = &indexed{}
	}
	prior := v.arr
	v.arr, v.str, v.set = arr, "", true // subscripts see what was assigned before them
	next := arr.top()
	ok := true
	for _, it := range items {
		i := next
		if it.hasKey {
			n, err := sh.evalArith(it.key)
			if err != nil {
				sh.arithFailed("", it.key, err)
				panic(abort{kind: abortDiscard, status: 1})
			}
			if n < 0 {
				if n += arr.top(); n < 0 {
					sh.errorf("[%s]: bad array subscript", it.key)
					ok = false
					continue
				}
			}
			i = n
		}
		before := ""
		if it.add {
			if before, _ = arr.get(i); before == "" && prior != nil && !add {
				before = ""
			}
		}
		val, good := sh.combine(v, before, it.value, it.add)
		if !good {
			return false
		}
		arr.put(i, val)
		next = i + 1
	}
	v.arr, v.str, v.set = arr, "", true
	if sh.opts.allexport {
		v.attr |= attrExport
	}
	return ok
}

func (sh *Shell) fillAssoc(name string, v *variable, items []arrayItem, add bool) bool {
	v.attr |= attrAssoc
	a := newAssoc()
	if add && v.assoc != nil {
		a = v.assoc
	}
	keyed := len(items) == 0 || items[0].hasKey
	if !keyed {
		// Words without subscripts are keys and values in turn.
		for i := 0; i < len(items); i += 2 {
			value := ""
			if i+1 < len(items) {
				value = items[i+1].value
			}
			val, ok := sh.combine(v, "", value, false)
			if !ok {
				return false
			}
			if items[i].value == "" {
				sh.errorf("%s: bad array subscript", name)
				continue
			}
			a.put(items[i].value, val)
		}
	} else {
		for _, it := range items {
			if !it.hasKey {
				sh.errorf("%s: %s: must use subscript when assigning associative array", name, it.value)
				continue
			}
			if it.key == "" {
				sh.errorf("[]=%s: bad array subscript", it.value)
				continue
			}
			val, ok := sh.combine(v, a.m[it.key], it.value, it.add)
			if !ok {
				return false
			}
			a.put(it.key, val)
		}
	}
	v.assoc, v.set = a, true
	return true
}

// arrayItems expands the elements of (…).
func (sh *Shell) arrayItems(x *syntax.ArrayExpr, isAssoc bool) []arrayItem {
	var out []arrayItem
	for _, e := range x.Elems {
		if e.Index != nil {
			key := ""
			if isAssoc {
				key = sh.assocKey(e.Index)
			} else {
				key = sh.arithText(e.Index)
			}
			out = append(out, arrayItem{key: key, hasKey: true, value: sh.value(e.Value)})
			continue
		}
		if e.Value == nil {
			continue
		}
		// The parser takes [k]+=v for a plain word.
		if key, rest, ok := sh.appendElem(e.Value, isAssoc); ok {
			out = append(out, arrayItem{key: key, hasKey: true, add: true, value: rest})
			continue
		}
		for _, s := range sh.words([]*syntax.Word{e.Value}) {
			out = append(out, arrayItem{value: s})
		}
	}
	return out
}

func (sh *Shell) appendElem(w *syntax.Word, isAssoc bool) (key, value string, ok bool) {
	if len(w.Parts) == 0 {
		return "", "", false
	}
	l, isLit := w.Parts[0].(*syntax.Lit)
	if !isLit || !strings.HasPrefix(l.Value, `\[`) {
		return "", "", false
	}
	l = &syntax.Lit{Value: l.Value[1:]}
	i := strings.Index(l.Value, "]+=")
	if i < 0 {
		return "", "", false
	}
	rest := &syntax.Word{Parts: append([]syntax.WordPart{&syntax.Lit{Value: l.Value[i+3:]}}, w.Parts[1:]...)}
	return l.Value[1:i], sh.value(rest), true
}

// assocKey expands a subscript that is a string.
func (sh *Shell) assocKey(x syntax.ArithmExpr) string {
	if w, ok := x.(*syntax.Word); ok {
		return sh.string(w)
	}
	return sh.arithText(x)
}

// expandSubText expands a subscript that comes as text, as in unset 'a[$i]'.
func (sh *Shell) expandSubText(name, sub string) string {
	if sub == "@" || sub == "*" {
		return sub
	}
	if strings.ContainsAny(sub, "$`\\'\"") {
		e := &expander{sh: sh}
		sh.rawWord(e, sub)
		return e.joined()
	}
	return sub
}

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
				arg.value = sh.value(a.Value)
			}
			args = append(args, arg)
		}
	}
	if sh.opts.xtrace {
		words := []string{name}
		for _, a := range args {
			w := a.text
			if a.hasValue {
				w = a.name + "=" + a.value
				if a.array != nil {
					w = a.name + "=" + sh.nodeText(a.array)
				}
			}
			words = append(words, w)
		}
		sh.traceArgs(words)
	}
	st := sh.declare(name, args)
	sh.flushBuiltin([]string{name}, &st)
	if sh.ctl == ctlExit {
		return
	}
	sh.done(st)
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
			sh.scopes[0].mutable(sh.tok)[name] = &variable{own: sh.tok}
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
		if d.off&attrReadonly != 0 && !a.hasValue {
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
			sh.scopes[0].mutable(sh.tok)[name] = v
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
		if a.value == name && (len(sh.scopes) == 1 || d.global) {
			sh.errorf("%s: %s: nameref variable self references not allowed", d.cmd, name)
			return false
		}
		v.str, v.set = a.value, true
		return true
	case v.isArray() && strings.HasPrefix(a.value, "(") && strings.HasSuffix(a.value, ")") && a.text != "":
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
	f, err := sh.newParser().Parse(strings.NewReader("x="+text), "")
	if err != nil || len(f.Stmts) != 1 {
		return sh.assignScalar(name, text, add)
	}
	c, ok := f.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(c.Assigns) != 1 || c.Assigns[0].Array == nil {
		return sh.assignScalar(name, text, add)
	}
	return sh.assignArray(name, c.Assigns[0].Array, add, want)
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
	sc.mutable(sh.tok)[name] = v
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

func itoa(n int) string { return strconv.Itoa(n) }
