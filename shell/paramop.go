package shell

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

func (sh *Shell) length(p *syntax.ParamExp, o operand) operand {
	if p.Exp != nil || p.Slice != nil || p.Repl != nil {
		sh.badSubst(p)
	}
	n := 0
	switch {
	case o.list:
		n = len(o.vals)
	default:
		if !o.set && sh.opts.nounset {
			sh.unbound(o.name)
		}
		n = sh.charCount(o.str())
	}
	return operand{vals: []string{strconv.Itoa(n)}, set: true}
}

func runeCount(s string) int { return utf8.RuneCountInString(s) }

// charCount counts characters, which are bytes in a locale that isn't UTF-8.
func (sh *Shell) charCount(s string) int {
	if sh.bytes {
		return len(s)
	}
	n := 0
	for len(s) > copyPart {
		cut := copyPart
		for cut > copyPart-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
			cut--
		}
		if !utf8.RuneStart(s[cut]) {
			cut = copyPart // in the midst of bytes that are no character's
		}
		n += runeCount(s[:cut])
		s = s[cut:]
		sh.mayGoOn(stepsOfPart)
	}
	return n + runeCount(s)
}

func (sh *Shell) charSlice(s string, from, to int64) string {
	if sh.bytes && from < to {
		return s[from:to]
	}
	return runeSlice(s, from, to)
}

// slice does ${x:offset:length}.
func (sh *Shell) sliceParam(p *syntax.ParamExp, o operand) operand {
	off := sh.arith(p.Slice.Offset)
	n, hasLen := int64(0), p.Slice.Length != nil
	if hasLen {
		n = sh.arith(p.Slice.Length)
	}
	if o.list {
		return sh.sliceList(p, o, off, n, hasLen)
	}
	s := o.str()
	total := int64(sh.charCount(s))
	if off < 0 {
		off += total
	}
	if off < 0 || off > total {
		o.vals = []string{""}
		return o
	}
	end := total
	if hasLen {
		if n < 0 {
			if end = total + n; end < off {
				sh.errorf("%d: substring expression < 0", n)
				panic(abort{kind: abortDiscard, status: 1})
			}
		} else {
			end = min(total, off+n)
		}
	}
	o.vals = []string{sh.charSlice(s, off, end)}
	return o
}

func runeSlice(s string, from, to int64) string {
	if from >= to {
		return ""
	}
	if runeCount(s) == len(s) {
		return s[from:to]
	}
	i, n, start := 0, int64(0), 0
	for i < len(s) && n < to {
		if n == from {
			start = i
		}
		_, w := decode(s[i:])
		i += w
		n++
	}
	if n <= from {
		return ""
	}
	return s[start:i]
}

func (sh *Shell) sliceList(p *syntax.ParamExp, o operand, off, n int64, hasLen bool) operand {
	vals := o.vals
	pos := int64(0)
	if p.Param.Value == "@" || p.Param.Value == "*" {
		vals = append([]string{sh.name}, vals...)
		if off < 0 {
			off += int64(len(vals))
			if off < 0 {
				o.vals = nil
				return o
			}
		} else if off == 0 && hasLen && n == 0 {
			o.vals = nil
			return o
		}
		pos = off
	} else if o.v != nil && o.v.arr != nil {
		// Offsets count by index, not by how many elements there are.
		if off < 0 {
			if off += o.v.arr.top(); off < 0 {
				o.vals = nil
				return o
			}
		}
		pos = int64(len(vals))
		for i, k := range o.v.arr.indices() {
			if k >= off {
				pos = int64(i)
				break
			}
		}
	} else {
		if off < 0 {
			off += int64(len(vals))
		}
		if o.v != nil && o.v.assoc != nil && off > 0 {
			off--
		}
		if off < 0 {
			o.vals = nil
			return o
		}
		pos = off
	}
	if hasLen && n < 0 {
		sh.errorf("%d: substring expression < 0", n)
		panic(abort{kind: abortDiscard, status: 1})
	}
	if pos > int64(len(vals)) {
		pos = int64(len(vals))
	}
	vals = vals[pos:]
	if hasLen && n < int64(len(vals)) {
		vals = vals[:n]
	}
	o.vals = vals
	return o
}

// replace does ${x/pattern/string}.
func (sh *Shell) replace(p *syntax.ParamExp, o *operand) {
	src := sh.patternOf(p.Repl.Orig)
	anchor := byte(0)
	if !p.Repl.All && src != "" && (src[0] == '#' || src[0] == '%') && literalStart(p.Repl.Orig) {
		anchor, src = src[0], src[1:]
	}
	var with []frag
	if p.Repl.With != nil {
		e := &expander{sh: sh}
		e.parts(p.Repl.With.Parts, false)
		e.finish()
		for i, f := range e.fields {
			if i > 0 {
				with = append(with, frag{" ", true})
			}
			with = append(with, f...)
		}
	}
	amp := sh.shopts.get("patsub_replacement")
	pat := sh.compile(src, true, sh.shopts.get("nocasematch"))
	vals := make([]string, len(o.vals))
	for i, s := range o.vals {
		vals[i] = replaceOne(pat, s, with, anchor, p.Repl.All, amp)
	}
	o.vals = vals
}

func literalStart(w *syntax.Word) bool {
	if w == nil || len(w.Parts) == 0 {
		return false
	}
	switch w.Parts[0].(type) {
	case *syntax.Lit, *syntax.ParamExp:
		return true
	}
	return false
}

func replaceOne(pat *pattern, s string, with []frag, anchor byte, all, amp bool) string {
	var b strings.Builder
	emit := func(match string) {
		for _, f := range with {
			if f.q || !amp || strings.IndexByte(f.s, '&') < 0 && strings.IndexByte(f.s, '\\') < 0 {
				b.WriteString(f.s)
				continue
			}
			for i := 0; i < len(f.s); i++ {
				switch {
				case f.s[i] == '\\' && i+1 < len(f.s) && (f.s[i+1] == '&' || f.s[i+1] == '\\'):
					i++
					b.WriteByte(f.s[i])
				case f.s[i] == '&':
					b.WriteString(match)
				default:
					b.WriteByte(f.s[i])
				}
			}
		}
	}
	switch anchor {
	case '#':
		if n := pat.prefix(s, true); n >= 0 {
			emit(s[:n])
			return b.String() + s[n:]
		}
		return s
	case '%':
		if i := pat.suffix(s, true); i >= 0 {
			b.WriteString(s[:i])
			emit(s[i:])
			return b.String()
		}
		return s
	}
	if len(pat.elems) == 0 {
		return s
	}
	for i := 0; i <= len(s); {
		start, end := pat.find(s, i)
		if start < 0 {
			b.WriteString(s[i:])
			break
		}
		b.WriteString(s[i:start])
		if start == end { // an empty match
			if len(s) == 0 {
				emit("")
			}
			if start == len(s) {
				break
			}
			if all {
				emit("")
			}
			_, n := decode(s[start:])
			b.WriteString(s[start : start+n])
			i = start + n
			if !all {
				b.WriteString(s[i:])
				break
			}
			continue
		}
		emit(s[start:end])
		i = end
		if !all {
			b.WriteString(s[i:])
			break
		}
		if i == len(s) {
			break
		}
	}
	return b.String()
}

// transform does # ## % %% ^ ^^ , ,, and @.
func (sh *Shell) transform(p *syntax.ParamExp, o operand, quoted bool) operand {
	op := p.Exp.Op
	if op == syntax.OtherParamOps {
		return sh.transformAt(p, o)
	}
	var fn func(string) string
	switch op {
	case syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		pat := sh.wordPattern(p.Exp.Word, true, false)
		fn = func(s string) string {
			switch op {
			case syntax.RemSmallPrefix, syntax.RemLargePrefix:
				if n := pat.prefix(s, op == syntax.RemLargePrefix); n > 0 {
					return s[n:]
				}
			default:
				if i := pat.suffix(s, op == syntax.RemLargeSuffix); i >= 0 {
					return s[:i]
				}
			}
			return s
		}
	case syntax.UpperFirst, syntax.UpperAll, syntax.LowerFirst, syntax.LowerAll, toggleFirst, toggleAll:
		var pat *pattern
		if p.Exp.Word != nil && len(p.Exp.Word.Parts) > 0 {
			pat = sh.wordPattern(p.Exp.Word, true, false)
		}
		fn = func(s string) string { return caseMod(s, op, pat) }
	default:
		sh.badSubst(p)
	}
	vals := make([]string, len(o.vals))
	for i, s := range o.vals {
		vals[i] = fn(s)
	}
	o.vals = vals
	return o
}

func caseMod(s string, op syntax.ParExpOperator, pat *pattern) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := decode(s[i:])
		first := i == 0
		i += n
		if (first || op == syntax.UpperAll || op == syntax.LowerAll || op == toggleAll) && (pat == nil || pat.match(s[i-n:i])) && r < badByte {
			switch {
			case op == syntax.UpperAll || op == syntax.UpperFirst || (op == toggleAll || op == toggleFirst) && unicode.IsLower(r):
				r = unicode.ToUpper(r)
			default:
				r = unicode.ToLower(r)
			}
		}
		writeRune(&b, r)
	}
	return b.String()
}

// transformAt does ${x@Q} and its kin.
func (sh *Shell) transformAt(p *syntax.ParamExp, o operand) operand {
	op := sh.string(p.Exp.Word)
	if len(op) != 1 || strings.IndexByte("QEPAaUuLKk", op[0]) < 0 {
		sh.badSubst(p)
	}
	if !o.set && op != "a" && op != "A" {
		return o
	}
	vals := make([]string, len(o.vals))
	switch op {
	case "A":
		name := p.Param.Value
		if o.v != nil && o.v.isArray() && o.list {
			return operand{vals: []string{sh.declareText(name, o.v)}, set: true, list: false}
		}
		if !o.list && isSpecialParam(name) {
			return operand{vals: []string{""}, set: true}
		}
		if !o.list && (o.set || o.v != nil) {
			flags := attrFlags(o.v)
			text := ""
			if o.set {
				text = name + "=" + quoteWord(o.str())
			} else {
				text = name
			}
			if flags != "" {
				text = "declare -" + flags + " " + text
			} else if !o.set {
				text = ""
			}
			return operand{vals: []string{text}, set: true}
		}
		if o.list && o.v == nil {
			all := make([]string, len(o.vals))
			for i, s := range o.vals {
				all[i] = quoteWord(s)
			}
			return operand{vals: []string{"set -- " + strings.Join(all, " ")}, set: true}
		}
		return operand{}
	case "a":
		flags := attrFlags(o.v)
		if !o.list {
			return operand{vals: []string{flags}, set: true}
		}
		for i := range vals {
			vals[i] = flags
		}
	case "K":
		if o.list && o.keys != nil {
			var b strings.Builder
			for i, s := range o.vals {
				if i > 0 {
					b.WriteByte(' ')
				}
				k := o.keys[i]
				if o.v.assoc != nil {
					k = quoteKey(k)
				}
				fmt.Fprintf(&b, "%s %s", k, quoteDouble(s))
			}
			if o.v != nil && o.v.assoc != nil && len(o.vals) > 0 {
				b.WriteByte(' ')
			}
			return operand{vals: []string{b.String()}, set: true}
		}
		for i, s := range o.vals {
			vals[i] = quoteWord(s)
		}
	case "k":
		if o.list && o.keys != nil {
			vals = vals[:0]
			for i, s := range o.vals {
				vals = append(vals, o.keys[i], s)
			}
		} else {
			for i, s := range o.vals {
				vals[i] = quoteWord(s)
			}
		}
	default:
		for i, s := range o.vals {
			switch op {
			case "Q":
				vals[i] = quoteWord(s)
			case "E":
				vals[i] = ansiC(s)
			case "P":
				vals[i] = plainPrompt(sh.prompt(s))
			case "U":
				vals[i] = caseMod(s, syntax.UpperAll, nil)
			case "u":
				vals[i] = caseMod(s, syntax.UpperFirst, nil)
			case "L":
				vals[i] = caseMod(s, syntax.LowerAll, nil)
			}
		}
	}
	o.vals = vals
	return o
}
