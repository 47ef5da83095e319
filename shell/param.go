package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// operand is what a parameter expansion works on: a value, or the list behind $@, $* and ${a[@]}.
type operand struct {
	name string // as messages and ${x@A} say it
	vals []string
	keys []string // of an array's elements, for @K and @A
	list bool
	star bool // $* or [*]: joined when quoted
	set  bool
	v    *variable
}

func (o *operand) str() string {
	if len(o.vals) == 0 {
		return ""
	}
	return o.vals[0]
}

func isSpecialParam(name string) bool {
	return name != "" && (len(name) == 1 && strings.IndexByte("@*#?-$!", name[0]) >= 0 || strings.Trim(name, "0123456789") == "")
}

// special returns the value of a parameter that isn't a variable.
func (sh *Shell) special(name string) (string, bool) {
	switch name {
	case "#":
		return strconv.Itoa(len(sh.params)), true
	case "?":
		return strconv.Itoa(sh.status), true
	case "-":
		return sh.opts.flags(), true
	case "$":
		return strconv.Itoa(sh.pid), true
	case "!":
		if sh.lastBg == 0 {
			return "", false
		}
		return strconv.Itoa(sh.lastBg), true
	case "0":
		return sh.name, true
	}
	n, err := strconv.Atoi(name)
	if err != nil || n < 1 || n > len(sh.params) {
		return "", false
	}
	return sh.params[n-1], true
}

// fetch returns what a name with a subscript refers to.
func (sh *Shell) fetch(name string, index syntax.ArithmExpr) operand {
	o := operand{name: name}
	if name == "@" || name == "*" {
		o.vals, o.list, o.star, o.set = sh.params, true, name == "*", len(sh.params) > 0
		return o
	}
	if isSpecialParam(name) {
		s, ok := sh.special(name)
		o.vals, o.set = []string{s}, ok
		return o
	}
	sub := ""
	if index != nil {
		sub = sh.subscript(index, name)
	}
	return sh.fetchSub(name, index != nil, sub)
}

func (sh *Shell) fetchSub(name string, hasSub bool, sub string) operand {
	o := operand{name: name}
	target, refSub := name, ""
	if v, _ := sh.find(name); v != nil && v.attr&attrNameref != 0 {
		target, refSub = sh.resolve(name)
		if refSub != "" && !hasSub {
			hasSub, sub = true, refSub
		}
	}
	v := sh.lookup(target)
	o.v = v
	if !hasSub {
		if v != nil {
			s, ok := v.scalar()
			o.vals, o.set = []string{s}, ok
		}
		return o
	}
	o.name = name + "[" + sub + "]"
	if sub == "@" || sub == "*" {
		o.list, o.star = true, sub == "*"
		o.vals, o.keys = elements(v)
		o.set = len(o.vals) > 0
		return o
	}
	if v == nil {
		if !sh.isAssoc(target) {
			if _, err := sh.evalArith(sub); err != nil {
				sh.arithFailed("", sub, err)
				panic(abort{kind: abortDiscard, status: 1})
			}
		}
		return o
	}
	s, ok := sh.element(v, target, sub)
	o.vals, o.set = []string{s}, ok
	return o
}

// elements returns an array's values and keys; a string is an array of one.
func elements(v *variable) (vals, keys []string) {
	switch {
	case v == nil:
	case v.arr != nil:
		vals = v.arr.values()
		for _, k := range v.arr.indices() {
			keys = append(keys, strconv.FormatInt(k, 10))
		}
	case v.assoc != nil:
		keys = v.assoc.keys()
		for _, k := range keys {
			vals = append(vals, v.assoc.m[k])
		}
	case v.set && !v.isArray():
		return []string{v.str}, []string{"0"}
	}
	return vals, keys
}

func (sh *Shell) isAssoc(name string) bool {
	v := sh.lookup(name)
	return v != nil && v.attr&attrAssoc != 0
}

// subscript expands a subscript: a key of an associative array, else the text of an expression, or @ and *.
func (sh *Shell) subscript(index syntax.ArithmExpr, name string) string {
	if w, ok := index.(*syntax.Word); ok {
		if lit := w.Lit(); lit == "@" || lit == "*" {
			return lit
		}
		if sh.isAssoc(name) {
			return sh.string(w)
		}
	} else if sh.isAssoc(name) {
		return sh.arithText(index)
	}
	return sh.arithText(index)
}

// element returns one element by its subscript's text.
func (sh *Shell) element(v *variable, name, sub string) (string, bool) {
	if v.attr&attrAssoc != 0 {
		if v.assoc == nil {
			return "", false
		}
		s, ok := v.assoc.m[sub]
		return s, ok
	}
	i, ok := sh.indexOf(v, name, sub)
	if !ok {
		return "", false
	}
	if v.arr == nil {
		return v.str, v.set && i == 0
	}
	return v.arr.get(i)
}

// indexOf evaluates an index, from the end if negative. A bad one is an error that ends the command.
func (sh *Shell) indexOf(v *variable, name, sub string) (int64, bool) {
	i, err := sh.evalArith(sub)
	if err != nil {
		sh.arithFailed("", sub, err)
		panic(abort{kind: abortDiscard, status: 1})
	}
	if i < 0 {
		top := int64(1)
		if v != nil && v.arr != nil {
			top = v.arr.top()
		}
		if i += top; i < 0 {
			sh.errorf("%s: bad array subscript", name)
			return 0, false
		}
	}
	return i, true
}

// param expands a parameter expansion into e.
func (sh *Shell) param(e *expander, p *syntax.ParamExp, quoted bool) {
	if p.Param == nil {
		sh.badSubst(p)
	}
	name := p.Param.Value
	if raw, ok := decodeRaw(name, rawParam); ok {
		sh.errorf("%s: bad substitution", raw)
		panic(abort{kind: abortDiscard, status: 1})
	}
	switch {
	case p.Excl && p.Names == syntax.NamesPrefix && !quoted && sh.ifs() == "":
		sh.emit(e, operand{vals: []string{strings.Join(sh.namesWith(name), "")}, set: true}, quoted)
		return
	case p.Excl && p.Names != 0:
		sh.emit(e, operand{vals: sh.namesWith(name), list: true, star: p.Names == syntax.NamesPrefix}, quoted)
		return
	case p.Excl && p.Index != nil && sh.isAll(p.Index) && p.Exp == nil && p.Repl == nil && p.Slice == nil:
		o := sh.fetch(name, p.Index)
		o.vals = o.keys
		sh.emit(e, o, quoted)
		return
	case p.Excl && sh.isRef(name) && p.Index == nil && p.Exp == nil && p.Repl == nil && p.Slice == nil:
		v, _ := sh.find(name)
		sh.emit(e, operand{vals: []string{v.str}, set: true}, quoted)
		return
	}
	o := sh.fetch(name, p.Index)
	if p.Excl {
		if o.list && !o.set && p.Index != nil {
			sh.errorf("%s: invalid indirect expansion", o.name)
			panic(abort{kind: abortDiscard, status: 1})
		}
		o = sh.indirect(p, o)
	}
	if p.Length {
		sh.emit(e, sh.length(p, o), quoted)
		return
	}
	if p.Width {
		sh.badSubst(p)
	}
	if p.Exp != nil && sh.defaulting(e, p, &o, quoted) {
		return
	}
	if !o.set && sh.opts.nounset && !(o.list) && (p.Exp == nil || !isDefaulting(p.Exp.Op)) {
		sh.unbound(o.name)
	}
	switch {
	case p.Slice != nil:
		o = sh.sliceParam(p, o)
	case p.Repl != nil:
		sh.replace(p, &o)
	case p.Exp != nil && !isDefaulting(p.Exp.Op):
		o = sh.transform(p, o, quoted)
	}
	sh.emit(e, o, quoted)
}

func isDefaulting(op syntax.ParExpOperator) bool {
	switch op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.ErrorUnset,
		syntax.ErrorUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		return true
	}
	return false
}

func (sh *Shell) isAll(index syntax.ArithmExpr) bool {
	w, ok := index.(*syntax.Word)
	return ok && (w.Lit() == "@" || w.Lit() == "*")
}

func (sh *Shell) isRef(name string) bool {
	v, _ := sh.find(name)
	return v != nil && v.attr&attrNameref != 0
}

// unbound is set -u's error.
func (sh *Shell) unbound(name string) {
	if len(name) == 1 && name[0] >= '1' && name[0] <= '9' || name == "!" {
		name = "$" + name
	}
	sh.errorf("%s: unbound variable", name)
	panic(abort{kind: abortExit, status: sh.fatalStatus()})
}

// fatalStatus is what an expansion's error exits with: 127, but 1 in a subshell and under set -e.
func (sh *Shell) fatalStatus() int {
	if sh.subshell > 0 || sh.opts.errexit {
		return 1
	}
	return 127
}

func (sh *Shell) badSubst(p *syntax.ParamExp) {
	sh.errorf("%s: bad substitution", sh.nodeText(p))
	panic(abort{kind: abortDiscard, status: 1})
}

// indirect follows ${!name}.
func (sh *Shell) indirect(p *syntax.ParamExp, o operand) operand {
	if !o.set || o.str() == "" {
		if name := p.Param.Value; !o.set && (name[0] >= '0' && name[0] <= '9' || o.v != nil) && (p.Exp == nil || !assigns(p.Exp.Op)) {
			return operand{name: name} // of nothing
		}
		if o.v == nil || !o.set {
			sh.errorf("%s: invalid indirect expansion", p.Param.Value)
			panic(abort{kind: abortDiscard, status: 1})
		}
		sh.errorf("%s: invalid variable name", o.str())
		panic(abort{kind: abortDiscard, status: 1})
	}
	ref := o.str()
	if o.list {
		ref = strings.Join(o.vals, " ")
	}
	if isSpecialParam(ref) {
		return sh.fetch(ref, nil)
	}
	name, sub, hasSub := splitRef(ref)
	if !validName(name) {
		sh.errorf("%s: invalid variable name", ref)
		panic(abort{kind: abortDiscard, status: 1})
	}
	if hasSub {
		sub = sh.expandSubText(name, sub)
	}
	return sh.fetchSub(name, hasSub, sub)
}

func assigns(op syntax.ParExpOperator) bool {
	return op == syntax.AssignUnset || op == syntax.AssignUnsetOrNull
}

// splitRef splits name[sub].
func splitRef(s string) (name, sub string, hasSub bool) {
	if i := strings.IndexByte(s, '['); i > 0 && strings.HasSuffix(s, "]") {
		return s[:i], s[i+1 : len(s)-1], true
	}
	return s, "", false
}

// namesWith lists the variables whose names begin with a prefix.
func (sh *Shell) namesWith(prefix string) []string {
	var out []string
	for _, n := range sh.allNames() {
		if strings.HasPrefix(n, prefix) {
			if v := sh.lookup(n); v != nil && (v.set || v.isArray()) {
				out = append(out, n)
			}
		}
	}
	return out
}

// defaulting does :- := :? :+ and their kin. It returns true when it has expanded everything.
func (sh *Shell) defaulting(e *expander, p *syntax.ParamExp, o *operand, quoted bool) bool {
	op := p.Exp.Op
	if !isDefaulting(op) {
		return false
	}
	missing := !o.set
	switch op {
	case syntax.AlternateUnsetOrNull, syntax.DefaultUnsetOrNull, syntax.ErrorUnsetOrNull, syntax.AssignUnsetOrNull:
		if o.list {
			sep := " "
			if o.star && quoted {
				sep = sh.ifsFirst()
			}
			missing = missing || strings.Join(o.vals, sep) == "" && !p.Excl
		} else {
			missing = missing || o.str() == ""
		}
	}
	switch op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if !missing {
			sh.altWord(e, p.Exp.Word, quoted)
		} else if quoted && o.list && !o.star {
			e.emptyAt = true
		}
		return true
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull:
		if missing {
			sh.altWord(e, p.Exp.Word, quoted)
		}
		return missing
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		if missing {
			msg := sh.altString(p.Exp.Word, quoted)
			if msg == "" {
				msg = "parameter null or not set"
				if op == syntax.ErrorUnset {
					msg = "parameter not set"
				}
			}
			sh.errorf("%s: %s", o.name, msg)
			panic(abort{kind: abortExit, status: sh.fatalStatus()})
		}
		return false
	}
	if !missing {
		return false
	}
	value := sh.altString(p.Exp.Word, quoted)
	name := p.Param.Value
	if p.Excl {
		name = o.name
	}
	switch {
	case isSpecialParam(name):
		sh.errorf("$%s: cannot assign in this way", name)
		panic(abort{kind: abortDiscard, status: 1})
	case p.Index != nil && !p.Excl:
		sub := sh.subscript(p.Index, name)
		if sub == "@" || sub == "*" {
			sh.errorf("%s: bad array subscript", o.name)
			panic(abort{kind: abortDiscard, status: 1})
		}
		if !sh.assignElement(name, sub, value, false) {
			panic(abort{kind: abortDiscard, status: 1})
		}
	default:
		if !sh.set(name, value) {
			panic(abort{kind: abortExit, status: 1})
		}
		value = sh.str(name)
	}
	sh.emit(e, operand{vals: []string{value}, set: true}, quoted)
	return true
}

// altWord expands the word of ${x:-word} in place.
func (sh *Shell) altWord(e *expander, w *syntax.Word, quoted bool) {
	if w == nil {
		return
	}
	if quoted {
		for _, p := range w.Parts {
			if d, ok := p.(*syntax.DblQuoted); ok {
				e.quoted(d.Parts, false)
			} else if l, ok := p.(*syntax.Lit); ok {
				e.add(unescapeDouble(strings.ReplaceAll(l.Value, `\}`, "}"), false), true)
			} else {
				e.quoted([]syntax.WordPart{p}, false)
			}
		}
		return
	}
	old := e.litSplit
	e.litSplit = e.split
	e.parts(w.Parts, false)
	e.litSplit = old
}

func (sh *Shell) altString(w *syntax.Word, quoted bool) string {
	if w == nil {
		return ""
	}
	e := &expander{sh: sh}
	sh.altWord(e, w, quoted)
	return e.joined()
}

// emit adds an operand's values to the word.
func (sh *Shell) emit(e *expander, o operand, quoted bool) {
	if !o.list {
		if quoted {
			e.add(o.str(), true)
		} else if e.pattern || e.split {
			e.addSplit(o.str())
		} else {
			e.add(o.str(), false)
		}
		return
	}
	switch {
	case quoted && o.star, !e.split && o.star:
		e.add(strings.Join(o.vals, sh.ifsFirst()), quoted)
	case !e.split:
		e.add(strings.Join(o.vals, " "), quoted)
	case len(o.vals) == 0:
		e.emptyAt = quoted
	default:
		for i, s := range o.vals {
			if i > 0 {
				if quoted {
					e.has = true
				}
				e.finish()
			}
			if quoted {
				e.add(s, true)
				e.has = true
			} else {
				e.addSplit(s)
				if s == "" && i+1 < len(o.vals) && e.keepsEmpty() {
					e.has = true
				}
			}
		}
	}
}

// keepsEmpty tells that an empty parameter of an unquoted $@ stays a field: bash joins them with IFS's first character and
// splits again, which loses them only where that is white space.
func (e *expander) keepsEmpty() bool {
	ifs := e.sh.ifs()
	return ifs != "" && !isIFSSpace(ifs[0])
}
