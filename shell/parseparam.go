package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Operators that mvdan.cc/sh doesn't know.
const (
	toggleFirst syntax.ParExpOperator = 0xff00 + iota // ${x~}
	toggleAll                                         // ${x~~}
)

// paramExp reads ${…}; quoted tells that it stands within double quotes. What bash would refuse when it expands it becomes
// a parameter that carries its text.
func (r *reader) paramExp(quoted bool) syntax.WordPart {
	from := r.i
	r.i += 2
	x := &syntax.ParamExp{Dollar: r.pos(from)}
	if end, bad := r.badParam[from]; bad {
		r.i = end
		return r.badSubst(from)
	}
	ok := r.paramBody(x, quoted)
	if r.err != nil {
		return x
	}
	if ok && r.i < len(r.src) && r.src[r.i] == '}' {
		x.Rbrace = r.pos(r.i)
		r.i++
		return x
	}
	r.i, r.have = from+2, false
	// Anything else, up to the brace that closes it.
	mode := modeBrace
	if quoted {
		mode = modeBraceQ
	}
	r.parts(mode)
	if r.err != nil {
		return x
	}
	if r.i >= len(r.src) {
		r.eof('}', from)
		return x
	}
	r.i++
	if r.badParam == nil {
		r.badParam = make(map[int]int)
	}
	r.badParam[from] = r.i
	return r.badSubst(from)
}

// badSubst carries the text of an expansion up to here.
func (r *reader) badSubst(from int) *syntax.ParamExp {
	pos := r.pos(from)
	return &syntax.ParamExp{Dollar: pos, Rbrace: r.pos(r.i - 1), Param: &syntax.Lit{ValuePos: pos, ValueEnd: pos, Value: encodeRaw(r.src[from:r.i], rawParam)}}
}

func (r *reader) at(i int) byte {
	if i < len(r.src) {
		return r.src[i]
	}
	return 0
}

// paramName is the length of a parameter's name at i, for ${name}.
func (r *reader) paramName(i int) int {
	s := r.src[min(i, len(r.src)):]
	if s == "" {
		return 0
	}
	if strings.IndexByte("@*#?-$!", s[0]) >= 0 {
		return 1
	}
	n := 0
	digits := s[0] >= '0' && s[0] <= '9'
	for n < len(s) && isAlnum(s[n]) && (!digits || s[n] >= '0' && s[n] <= '9') {
		n++
	}
	return n
}

// paramBody reads what is between the braces; false where that is no expansion.
func (r *reader) paramBody(x *syntax.ParamExp, quoted bool) bool {
	switch c := r.at(r.i); c {
	case '#':
		next := r.at(r.i + 1)
		n := r.paramName(r.i + 1)
		special := n == 1 && !isAlnum(next)
		if n > 0 && (!special || r.at(r.i+2) == '}' || (next == '@' || next == '*') && r.at(r.i+2) == '[') {
			x.Length = true
			r.i++
		}
	case '!':
		next := r.at(r.i + 1)
		if isAlnum(next) || (next == '#' || next == '?' || next == '@' || next == '*' || next == '$' || next == '!' || next == '-') && next != 0 && r.indirectSpecial(next) {
			x.Excl = true
			r.i++
		}
	}
	n := r.paramName(r.i)
	if n == 0 {
		return false
	}
	name := r.src[r.i : r.i+n]
	x.Param = &syntax.Lit{ValuePos: r.pos(r.i), ValueEnd: r.pos(r.i + n), Value: name}
	r.i += n
	if r.at(r.i) == '[' && validName(name) {
		r.i++
		from := r.i
		w := &syntax.Word{Parts: r.parts(modeSubscript)}
		if r.err != nil || r.at(r.i) != ']' {
			return false
		}
		if len(w.Parts) == 0 {
			w.Parts = []syntax.WordPart{&syntax.Lit{ValuePos: r.pos(from), ValueEnd: r.pos(from)}}
		}
		x.Index = w
		r.i++
	}
	if r.at(r.i) == '}' {
		return true
	}
	if x.Length {
		return false
	}
	if x.Excl && x.Index == nil && (r.at(r.i) == '@' || r.at(r.i) == '*') && r.at(r.i+1) == '}' && validName(name) {
		x.Names = syntax.NamesPrefixWords
		if r.at(r.i) == '*' {
			x.Names = syntax.NamesPrefix
		}
		r.i++
		return true
	}
	return r.paramOp(x, quoted)
}

// indirectSpecial tells whether ${!c begins an indirect expansion rather than one of $!.
func (r *reader) indirectSpecial(c byte) bool {
	after := r.at(r.i + 2)
	switch c {
	case '#', '@', '*', '?':
		return after == '}' || after == ':' || after == '-' || after == '+' || c == '#' && after == '#'
	}
	return false
}

// paramOp reads an operator and its word.
func (r *reader) paramOp(x *syntax.ParamExp, quoted bool) bool {
	mode := modeBrace
	if quoted {
		mode = modeBraceQ
	}
	exp := func(op syntax.ParExpOperator, n int, mode wordMode) bool {
		r.i += n
		x.Exp = &syntax.Expansion{Op: op, Word: &syntax.Word{Parts: r.parts(mode)}}
		return true
	}
	two := func(once, twice syntax.ParExpOperator) bool {
		if r.at(r.i+1) == r.at(r.i) {
			return exp(twice, 2, modeBrace)
		}
		return exp(once, 1, modeBrace)
	}
	switch r.at(r.i) {
	case ':':
		switch r.at(r.i + 1) {
		case '-':
			return exp(syntax.DefaultUnsetOrNull, 2, mode)
		case '=':
			return exp(syntax.AssignUnsetOrNull, 2, mode)
		case '?':
			return exp(syntax.ErrorUnsetOrNull, 2, mode)
		case '+':
			return exp(syntax.AlternateUnsetOrNull, 2, mode)
		}
		return r.paramSlice(x)
	case '-':
		return exp(syntax.DefaultUnset, 1, mode)
	case '=':
		return exp(syntax.AssignUnset, 1, mode)
	case '?':
		return exp(syntax.ErrorUnset, 1, mode)
	case '+':
		return exp(syntax.AlternateUnset, 1, mode)
	case '#':
		return two(syntax.RemSmallPrefix, syntax.RemLargePrefix)
	case '%':
		return two(syntax.RemSmallSuffix, syntax.RemLargeSuffix)
	case '^':
		return two(syntax.UpperFirst, syntax.UpperAll)
	case ',':
		return two(syntax.LowerFirst, syntax.LowerAll)
	case '~':
		return two(toggleFirst, toggleAll)
	case '@':
		return exp(syntax.OtherParamOps, 1, modeBrace)
	case '/':
		return r.paramReplace(x)
	}
	return false
}

func (r *reader) paramSlice(x *syntax.ParamExp) bool {
	r.i++
	s := &syntax.Slice{}
	x.Slice = s
	w := &syntax.Word{Parts: r.parts(modeSlice)}
	if len(w.Parts) == 0 && r.at(r.i) != ':' {
		return false
	}
	s.Offset = w
	if r.at(r.i) == ':' {
		r.i++
		s.Length = &syntax.Word{Parts: r.parts(modeBrace)}
	}
	return true
}

func (r *reader) paramReplace(x *syntax.ParamExp) bool {
	r.i++
	x.Repl = &syntax.Replace{}
	if r.at(r.i) == '/' {
		x.Repl.All = true
		r.i++
	}
	p := &partsReader{r: r, mode: modePattern}
	if r.at(r.i) == '/' {
		p.literal(1) // a slash right at the beginning belongs to the pattern
	}
	p.flush()
	x.Repl.Orig = &syntax.Word{Parts: append(p.out, r.parts(modePattern)...)}
	if r.at(r.i) == '/' {
		r.i++
		x.Repl.With = &syntax.Word{Parts: r.parts(modeBrace)}
	}
	return true
}

// assignment reads name=value, name[sub]=value, name=(…) and the same with +=; nil where the word is none.
func (r *reader) assignment() *syntax.Assign {
	from := r.i
	n := 0
	for from+n < len(r.src) && isAlnum(r.src[from+n]) {
		n++
	}
	if !validName(r.src[from : from+n]) {
		return nil
	}
	r.i += n
	a := &syntax.Assign{Name: &syntax.Lit{ValuePos: r.pos(from), ValueEnd: r.pos(r.i), Value: r.src[from:r.i]}}
	if r.at(r.i) == '[' {
		r.i++
		at := r.i
		parts := r.parts(modeSubscript)
		if r.err != nil || r.at(r.i) != ']' {
			r.err = nil
			r.have = false
			return nil
		}
		if len(parts) == 0 {
			parts = []syntax.WordPart{&syntax.Lit{ValuePos: r.pos(at), ValueEnd: r.pos(at)}}
		}
		if r.inArgs && hasBlank(parts) {
			return nil // an argument ends there
		}
		a.Index = &syntax.Word{Parts: parts}
		r.i++
	}
	if r.at(r.i) == '+' && r.at(r.i+1) == '=' {
		a.Append = true
		r.i++
	}
	if r.at(r.i) != '=' {
		return nil
	}
	r.i++
	if r.at(r.i) == '(' {
		a.Array = r.array()
		return a
	}
	at := r.i
	parts := r.parts(modeWord)
	if len(parts) == 0 {
		parts = []syntax.WordPart{&syntax.Lit{ValuePos: r.pos(at), ValueEnd: r.pos(at)}}
	}
	a.Value = &syntax.Word{Parts: parts}
	return a
}

// array reads (…) of an assignment.
func (r *reader) array() *syntax.ArrayExpr {
	from := r.i
	x := &syntax.ArrayExpr{Lparen: r.pos(from)}
	saved := *r
	r.i++
	r.noAlias = true
	defer func() { r.noAlias = saved.noAlias }()
	for {
		r.have, r.assignOK, r.regex = false, false, false
		r.blanks()
		if c := r.at(r.i); c == '[' {
			if e := r.keyed(); e != nil {
				x.Elems = append(x.Elems, e)
				continue
			}
		}
		if r.err != nil {
			return x
		}
		switch t := r.peek(); {
		case t.kind == tokNewline:
			r.take()
		case t.kind == tokWord:
			x.Elems = append(x.Elems, &syntax.ArrayElem{Value: t.word})
		case t.kind == tokNumber:
			r.i = t.from
			x.Elems = append(x.Elems, &syntax.ArrayElem{Value: &syntax.Word{Parts: r.parts(modeWord)}})
		case t.kind == tokOp && t.text == ")":
			x.Rparen = r.pos(t.from)
			r.i = t.to
			r.have, r.assignOK, r.regex = false, saved.assignOK, saved.regex
			return x
		case t.kind == tokEOF:
			if r.err == nil {
				r.fail(&readError{text: "unexpected EOF while looking for matching `)'", line: r.lineAt(from), incomplete: true})
			}
			return x
		default:
			r.unexpected()
			if r.err != nil {
				r.err.soft = true
			}
			return x
		}
	}
}

// keyed reads [key]=value; nil where the word is something else.
func (r *reader) keyed() *syntax.ArrayElem {
	from := r.i
	saved := *r
	r.i++
	at := r.i
	parts := r.parts(modeSubscript)
	if r.err == nil && r.at(r.i) == ']' && len(parts) == 0 {
		parts = []syntax.WordPart{&syntax.Lit{ValuePos: r.pos(at), ValueEnd: r.pos(at)}}
	}
	add := r.at(r.i+1) == '+'
	eq := r.i + 1
	if add {
		eq++
	}
	if r.err != nil || r.at(r.i) != ']' || r.at(eq) != '=' {
		saved.lineOff, saved.line = r.lineOff, r.line
		*r = saved
		return nil
	}
	r.i = eq + 1
	value := r.parts(modeWord)
	if len(value) == 0 {
		value = []syntax.WordPart{&syntax.Lit{ValuePos: r.pos(r.i), ValueEnd: r.pos(r.i)}}
	}
	var key syntax.ArithmExpr = &syntax.Word{Parts: parts}
	if add {
		key = &syntax.UnaryArithm{OpPos: r.pos(from), Op: syntax.Plus, Post: true, X: key}
	}
	return &syntax.ArrayElem{Index: key, Value: &syntax.Word{Parts: value}}
}

// hasBlank tells whether there is a blank outside of quotes.
func hasBlank(parts []syntax.WordPart) bool {
	for _, p := range parts {
		if l, ok := p.(*syntax.Lit); ok && strings.ContainsAny(strings.ReplaceAll(l.Value, `\ `, ""), " \t\n") {
			return true
		}
	}
	return false
}
