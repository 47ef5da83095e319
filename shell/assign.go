package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// assign performs name=value, name[sub]=value and name=(…) as a statement.
func (sh *Shell) assign(a *syntax.Assign) bool {
	name := a.Name.Value
	if a.Array != nil {
		target, _ := sh.resolve(name)
		if a.Index != nil {
			sh.errorf("%s[%s]: cannot assign list to array member", name, sh.subscript(a.Index, target))
			return false
		}
		if sh.opts.xtrace {
			sh.trace(sh.cmdPrinter(sh.unit, false).assign(a))
		}
		return sh.assignArray(target, a.Array, a.Append, 0)
	}
	if a.Index != nil {
		target, _ := sh.resolve(name)
		sub := sh.subscript(a.Index, target)
		value := sh.value(a.Value)
		if sh.opts.xtrace {
			op := "]="
			if a.Append {
				op = "]+="
			}
			sh.trace(name + "[" + sub + op + quoteSet(value))
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
			// A circle, which resolve has reported: the name means the variable outside of the function.
			if len(sh.scopes) > 1 {
				sh.scopes[0].mutable(sh.tok, name)[name] = &variable{own: sh.tok, set: true, str: value}
				return true
			}
			return false
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
		if sub == "" {
			sh.errorf("%s[]: bad array subscript", name)
			return false
		}
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
	for k, it := range items {
		if k%stepFields == stepFields-1 {
			sh.mayGoOn(1)
		}
		i := next
		if it.hasKey && it.key == "" {
			sh.errorf("[]=%s: bad array subscript", it.value)
			continue
		}
		if it.hasKey {
			n, err := sh.evalArith(it.key)
			if err != nil {
				sh.arithFailed("", it.key, err)
				panic(abort{kind: abortDiscard, status: 1})
			}
			if n < 0 {
				if n += arr.top(); n < 0 {
					sh.errorf("[%s]=%s: bad array subscript", it.key, it.value)
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
	var before map[string]string // what += adds to
	if v.assoc != nil {
		before = v.assoc.m
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
			val, ok := sh.combine(v, before[it.key], it.value, it.add)
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
			index, add := e.Index, false
			if u, ok := index.(*syntax.UnaryArithm); ok {
				index, add = u.X, true // the reader's [key]+=value
			}
			key := ""
			if isAssoc {
				key = sh.assocKey(index)
			} else {
				key = sh.arithText(index)
			}
			out = append(out, arrayItem{key: key, hasKey: true, add: add, value: sh.value(e.Value)})
			continue
		}
		if e.Value == nil {
			continue
		}
		words := sh.words([]*syntax.Word{e.Value})
		if len(words) > len(x.Elems) {
			out = slices.Grow(out, len(words))
		}
		for i, s := range words {
			if i%stepFields == stepFields-1 {
				sh.mayGoOn(1)
			}
			out = append(out, arrayItem{value: s})
		}
	}
	return out
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

func itoa(n int) string { return strconv.Itoa(n) }
