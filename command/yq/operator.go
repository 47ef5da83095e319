package yq

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// operator evaluates a binary operator.
func (c context) operator(x *expr) ([]*node, error) {
	switch x.op {
	case "=", "|=":
		return c.assign(x)
	case "+=", "-=", "*=", "/=", "%=", "//=":
		return c.assignOperator(x)
	case "and", "or":
		return c.logic(x)
	case "//":
		return c.alternative(x)
	case ":":
		return c.entry(x)
	}
	return c.cross(x, func(l, r *node) (*node, error) { return c.binary(x.op, x.text, l, r) })
}

// cross applies a function to all pairs of results. An operand without any result counts as null.
func (c context) cross(x *expr, f func(l, r *node) (*node, error)) ([]*node, error) {
	do := func(in context) ([]*node, error) {
		left, err := in.eval(x.left)
		if err != nil {
			return nil, err
		}
		right, err := in.eval(x.right)
		if err != nil {
			return nil, err
		}
		if len(left) == 0 {
			left = []*node{nil}
		}
		if len(right) == 0 {
			right = []*node{nil}
		}
		if len(left)*len(right) > maxMatches {
			return nil, errors.New("too many matches")
		}
		var list []*node
		for _, r := range right {
			for _, l := range left {
				v, err := f(l, r)
				if err != nil {
					return nil, err
				}
				if v != nil {
					list = append(list, v)
				}
			}
		}
		return list, nil
	}
	if c.e.together || len(c.nodes) == 0 {
		return do(c)
	}
	return c.each(func(n *node) ([]*node, error) { return do(c.with(n)) })
}

func (c context) logic(x *expr) ([]*node, error) {
	return c.each(func(n *node) ([]*node, error) {
		left, err := c.with(n).eval(x.left)
		if err != nil {
			return nil, err
		}
		if len(left) == 0 {
			left = []*node{boolean(false)}
		}
		var list []*node
		for _, l := range left {
			if l.truthy() == (x.op == "or") {
				list = append(list, boolean(x.op == "or"))
				continue
			}
			right, err := c.with(n).eval(x.right)
			if err != nil {
				return nil, err
			}
			if len(right) == 0 {
				right = []*node{boolean(false)}
			}
			for _, r := range right {
				list = append(list, boolean(r.truthy()))
			}
		}
		return list, nil
	})
}

func (c context) alternative(x *expr) ([]*node, error) {
	return c.each(func(n *node) ([]*node, error) {
		left, err := c.with(n).eval(x.left)
		if err != nil {
			return nil, err
		}
		var good []*node
		for _, l := range left {
			if l.truthy() {
				good = append(good, l)
			}
		}
		if len(good) > 0 {
			return good, nil
		}
		return c.with(n).eval(x.right)
	})
}

// binary computes an operator on two values; nil is the result of an expression that yields nothing.
func (c context) binary(op, flags string, l, r *node) (*node, error) {
	switch op {
	case "==", "!=":
		return boolean(equal(l, r) == (op == "==")), nil
	case "<", ">", "<=", ">=":
		return c.compare(op, l, r)
	}
	if l == nil && r == nil {
		return nil, nil
	}
	if l == nil {
		l = null()
	}
	if r == nil {
		r = null()
	}
	a, b := l.target(), r.target()
	switch op {
	case "+":
		return c.plus(a, b)
	case "-":
		return minus(a, b)
	case "*":
		return c.times(flags, a, b)
	case "/":
		return divide(a, b)
	case "%":
		return modulo(a, b)
	}
	return nil, errSyntax
}

// equal compares two values; strings on the right may have wildcards.
func equal(l, r *node) bool {
	budget := maxExploded
	return equalWithin(l, r, 0, &budget)
}

func equalWithin(l, r *node, depth int, budget *int) bool {
	if *budget--; *budget < 0 || depth > maxDepth {
		return false // values that hold themselves, or billions
	}
	if l == nil || r == nil {
		return (l == nil || l.isNull()) && (r == nil || r.isNull())
	}
	l, r = l.target(), r.target()
	if l.kind != r.kind {
		return false
	}
	switch l.kind {
	case scalarKind:
		lt, rt := l.typ(), r.typ()
		switch {
		case lt == "!!null" || rt == "!!null":
			return lt == rt
		case isNumber(lt) && isNumber(rt):
			a, err1 := parseFloat(l.value)
			b, err2 := parseFloat(r.value)
			return err1 == nil && err2 == nil && a == b || l.value == r.value
		}
		return matchKey(l.value, r.value)
	case seqKind:
		if len(l.content) != len(r.content) {
			return false
		}
		for i := range l.content {
			if !equalWithin(l.content[i], r.content[i], depth+1, budget) {
				return false
			}
		}
		return true
	case mapKind:
		if len(l.content) != len(r.content) {
			return false
		}
		for i := 0; i+1 < len(l.content); i += 2 {
			v := r.lookup(l.content[i].value)
			if v == nil || !equalWithin(l.content[i+1], v, depth+1, budget) {
				return false
			}
		}
		return true
	}
	return false
}

func isNumber(tag string) bool { return tag == "!!int" || tag == "!!float" }

func (c context) compare(op string, l, r *node) (*node, error) {
	orEqual, greater := len(op) == 2, op[0] == '>'
	if l == nil || r == nil || l.isNull() && r.isNull() {
		return boolean(orEqual && (l == nil || l.isNull()) && (r == nil || r.isNull())), nil
	}
	if l.isNull() || r.isNull() {
		return boolean(false), nil
	}
	l, r = l.target(), r.target()
	if l.kind != scalarKind || r.kind != scalarKind {
		return nil, fmt.Errorf("%s not yet supported for comparison", l.niceTag())
	}
	lt, rt := l.typ(), r.typ()
	order := 0
	switch {
	case isNumber(lt) && isNumber(rt):
		a, err := parseFloat(l.value)
		if err != nil {
			return nil, err
		}
		b, err := parseFloat(r.value)
		if err != nil {
			return nil, err
		}
		order = sign(a - b)
	case lt == "!!timestamp" || c.e.dtf != "" || rt == "!!timestamp":
		a, err := c.parseTime(l.value)
		if err != nil {
			return nil, err
		}
		b, err := c.parseTime(r.value)
		if err != nil {
			return nil, err
		}
		order = a.Compare(b)
	case lt == "!!str" && rt == "!!str":
		order = strings.Compare(l.value, r.value)
	default:
		return nil, fmt.Errorf("%s not yet supported for comparison", lt)
	}
	return boolean(orEqual && order == 0 || order != 0 && (order > 0) == greater), nil
}

func sign(f float64) int {
	switch {
	case f < 0:
		return -1
	case f > 0:
		return 1
	}
	return 0
}

// like gives a computed scalar the left operand's place and comments.
func like(of, result *node) *node {
	result.parent, result.key, result.doc, result.isKey = of.parent, of.key, of.doc, of.isKey
	result.head, result.line, result.foot, result.anchor = of.head, of.line, of.foot, of.anchor
	if of.kind == result.kind && of.niceTag() == result.niceTag() {
		result.style = of.style
	}
	result.detached = of.detached
	return result
}

func (c context) plus(a, b *node) (*node, error) {
	if a.isNull() {
		return like(a, b.free()), nil
	}
	switch a.kind {
	case mapKind:
		if b.isNull() {
			return a, nil
		}
		if b.kind != mapKind {
			return nil, fmt.Errorf("%s (%s) cannot be added to a %s (%s)", b.niceTag(), pathText(b), a.niceTag(), pathText(a))
		}
		sum := a.copy()
		for i := 0; i+1 < len(b.content); i += 2 {
			setKey(sum, b.content[i].free(), b.content[i+1].free())
		}
		return sum, nil
	case seqKind:
		sum := a.copy()
		if len(sum.content) == 0 {
			sum.style = b.style
		}
		switch {
		case b.kind == seqKind:
			for _, e := range b.content {
				sum.add(e.free())
			}
		case b.isNull():
		default:
			sum.add(b.free())
		}
		return sum, nil
	}
	if b.kind != scalarKind {
		return nil, fmt.Errorf("%s (%s) cannot be added to a %s (%s)", b.niceTag(), pathText(b), a.niceTag(), pathText(a))
	}
	return c.plusScalars(a, b)
}

func pathText(n *node) string {
	var parts []string
	for _, k := range n.path() {
		parts = append(parts, k.value)
	}
	return strings.Join(parts, ".")
}

func (c context) plusScalars(a, b *node) (*node, error) {
	at, bt := a.typ(), b.typ()
	isTime := at == "!!timestamp"
	if c.e.dtf != "" && at == "!!str" {
		_, err := c.parseTime(a.value)
		isTime = err == nil
	}
	switch {
	case isTime:
		t, err := c.parseTime(a.value)
		if err != nil {
			return nil, err
		}
		d, err := time.ParseDuration(b.value)
		if err != nil {
			return nil, fmt.Errorf("unable to parse duration [%s]: %w", b.value, err)
		}
		return like(a, scalar(a.tag, c.formatTime(t.Add(d)))), nil
	case at == "!!str" || bt == "!!str":
		if bt == "!!null" {
			return a, nil
		}
		r := like(a, str(a.value+b.value))
		if at == "!!str" {
			r.tag = a.tag
			r.style = a.style
		}
		return r, nil
	case at == "!!int" && bt == "!!int":
		x, format, err := parseInt(a.value)
		if err != nil {
			return nil, err
		}
		y, _, err := parseInt(b.value)
		if err != nil {
			return nil, err
		}
		return like(a, scalar(a.tag, format(x+y))), nil
	case isNumber(at) && isNumber(bt):
		return floats(a, b, func(x, y float64) float64 { return x + y })
	}
	return nil, fmt.Errorf("%s cannot be added to %s", at, bt)
}

// floats computes with numbers of which one isn't an integer.
func floats(a, b *node, f func(x, y float64) float64) (*node, error) {
	x, err := parseFloat(a.value)
	if err != nil {
		return nil, err
	}
	y, err := parseFloat(b.value)
	if err != nil {
		return nil, err
	}
	tag := a.tag
	if a.typ() == "!!int" {
		tag = "!!float"
	}
	return like(a, scalar(tag, floatText(f(x, y)))), nil
}

func floatText(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "+Inf"
	case math.IsInf(f, -1):
		return "-Inf"
	case math.IsNaN(f):
		return "NaN"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func minus(a, b *node) (*node, error) {
	if a.isNull() {
		return like(a, b.free()), nil
	}
	switch a.kind {
	case mapKind:
		return nil, errors.New("maps not yet supported for subtraction")
	case seqKind:
		if b.kind != seqKind {
			return nil, fmt.Errorf("%s cannot be subtracted from %s", b.niceTag(), a.niceTag())
		}
		rest := a.copy()
		rest.content = nil
		for _, e := range a.content {
			if !within(b.content, e) {
				rest.add(e.copy())
			}
		}
		return rest, nil
	}
	if b.kind != scalarKind {
		return nil, fmt.Errorf("%s cannot be subtracted from %s", b.niceTag(), a.niceTag())
	}
	at, bt := a.typ(), b.typ()
	switch {
	case at == "!!str":
		return nil, errors.New("strings cannot be subtracted")
	case at == "!!timestamp":
		d, err := time.ParseDuration(b.value)
		if err != nil {
			return nil, fmt.Errorf("unable to parse duration [%s]: %w", b.value, err)
		}
		t, err := time.Parse(time.RFC3339, a.value)
		if err != nil {
			return nil, err
		}
		return like(a, scalar(a.tag, t.Add(-d).Format(time.RFC3339))), nil
	case at == "!!int" && bt == "!!int":
		x, format, err := parseInt(a.value)
		if err != nil {
			return nil, err
		}
		y, _, err := parseInt(b.value)
		if err != nil {
			return nil, err
		}
		return like(a, scalar(a.tag, format(x-y))), nil
	case isNumber(at) && isNumber(bt):
		return floats(a, b, func(x, y float64) float64 { return x - y })
	}
	return nil, fmt.Errorf("%s cannot be added to %s", at, bt)
}

func within(list []*node, n *node) bool {
	for _, e := range list {
		if equal(e, n) {
			return true
		}
	}
	return false
}

func (c context) times(flags string, a, b *node) (*node, error) {
	switch {
	case a.kind == scalarKind && b.kind == scalarKind && !a.isNull() && !b.isNull():
		return timesScalars(a, b)
	case a.kind == scalarKind && !a.isNull() || b.kind == scalarKind && !b.isNull():
		return nil, fmt.Errorf("cannot multiply %s with %s", a.niceTag(), b.niceTag())
	}
	m := a.copy()
	if b.isNull() && b.kind == scalarKind {
		return m, nil
	}
	return merge(m, b, flags, 0), nil
}

func timesScalars(a, b *node) (*node, error) {
	at, bt := a.typ(), b.typ()
	switch {
	case at == "!!int" && bt == "!!int":
		x, format, err := parseInt(a.value)
		if err != nil {
			return nil, err
		}
		y, _, err := parseInt(b.value)
		if err != nil {
			return nil, err
		}
		return like(a, scalar(a.tag, format(x*y))), nil
	case isNumber(at) && isNumber(bt):
		return floats(a, b, func(x, y float64) float64 { return x * y })
	case at == "!!str" && bt == "!!int" || at == "!!int" && bt == "!!str":
		s, count := a, b
		if at == "!!int" {
			s, count = b, a
		}
		n, _, err := parseInt(count.value)
		if err != nil {
			return nil, err
		}
		if n < 0 {
			return nil, fmt.Errorf("cannot repeat string by a negative number (%d)", n)
		}
		if n > 10_000_000 || n*int64(len(s.value)) > 100_000_000 {
			return nil, fmt.Errorf("cannot repeat string by more than 100 million (%d)", n)
		}
		return like(s, str(strings.Repeat(s.value, int(n)))), nil
	}
	return nil, fmt.Errorf("cannot multiply %s with %s", at, bt)
}

// merge merges b into a. Flags: + appends sequences, d merges them by index, ? takes existing fields only, n new ones only,
// c replaces tags.
func merge(a, b *node, flags string, depth int) *node {
	b = b.target()
	if depth > maxDepth {
		return a
	}
	a2 := a.target()
	if a2.kind == mapKind && b.kind == mapKind {
		for i := 0; i+1 < len(b.content); i += 2 {
			k, v := b.content[i], b.content[i+1]
			have := a2.lookup(k.value)
			switch {
			case have == nil && strings.Contains(flags, "?"):
			case have == nil:
				a2.put(k.free(), blockMaps(v.free()))
			default:
				mergeInto(have, v, flags, depth)
			}
		}
		return a
	}
	return mergeInto(a, b, flags, depth)
}

// blockMaps makes maps stand in lines of their own, as those do that a merge makes.
func blockMaps(n *node) *node {
	if n.kind == mapKind {
		n.style = 0
		for i := 1; i < len(n.content); i += 2 {
			blockMaps(n.content[i])
		}
	}
	return n
}

func mergeInto(have, v *node, flags string, depth int) *node {
	h, t := have.target(), v.target()
	switch {
	case h.kind == mapKind && t.kind == mapKind:
		return merge(have, v, flags, depth+1)
	case h.kind == seqKind && t.kind == seqKind && strings.Contains(flags, "d"):
		for i, e := range t.content {
			if i < len(h.content) {
				mergeInto(h.content[i], e, flags, depth+1)
			} else if !strings.Contains(flags, "?") {
				h.add(e.free())
			}
		}
		return have
	case h.kind == seqKind && t.kind == seqKind && strings.Contains(flags, "+"):
		for _, e := range t.content {
			h.add(e.free())
		}
		return have
	case strings.Contains(flags, "n") && !h.isNull():
		return have
	}
	tag := have.tag
	have.become(v.free())
	if !strings.Contains(flags, "c") && tag != "" && !strings.HasPrefix(tag, "!!") {
		have.tag = tag
	}
	return have
}

func divide(a, b *node) (*node, error) {
	at, bt := a.typ(), b.typ()
	switch {
	case at == "!!str" && bt == "!!str":
		s := newSeq()
		if a.value != "" {
			for part := range strings.SplitSeq(a.value, b.value) {
				s.add(str(part))
			}
		}
		return s, nil
	case isNumber(at) && isNumber(bt):
		x, err := parseFloat(a.value)
		if err != nil {
			return nil, err
		}
		y, err := parseFloat(b.value)
		if err != nil {
			return nil, err
		}
		v := floatText(x / y)
		tag := "!!float"
		if at == "!!int" && bt == "!!int" && y != 0 && math.Mod(x, y) == 0 {
			tag = "!!int"
		}
		return like(a, scalar(tag, v)), nil
	}
	return nil, fmt.Errorf("%s cannot be divided by %s", at, bt)
}

func modulo(a, b *node) (*node, error) {
	at, bt := a.typ(), b.typ()
	switch {
	case at == "!!int" && bt == "!!int":
		x, format, err := parseInt(a.value)
		if err != nil {
			return nil, err
		}
		y, _, err := parseInt(b.value)
		if err != nil {
			return nil, err
		}
		if y == 0 {
			return nil, errors.New("cannot modulo by 0")
		}
		return like(a, scalar(a.tag, format(x%y))), nil
	case isNumber(at) && isNumber(bt):
		return floats(a, b, math.Mod)
	}
	return nil, fmt.Errorf("%s cannot modulo by %s", at, bt)
}

// assign evaluates = and |=.
func (c context) assign(x *expr) ([]*node, error) {
	left, err := c.eval(x.left)
	if err != nil {
		return nil, err
	}
	if x.op == "|=" {
		for _, l := range left {
			r, err := c.with(l).eval(x.right)
			if err != nil {
				return nil, err
			}
			if len(r) > 0 {
				l.become(r[0])
			}
		}
		return c.nodes, nil
	}
	for _, n := range c.nodes {
		in := c
		if !c.e.together {
			in = c.with(n)
		}
		right, err := in.eval(x.right)
		if err != nil {
			return nil, err
		}
		lefts, err := in.eval(x.left)
		if err != nil {
			return nil, err
		}
		if len(right) > 0 {
			value := right[0].free()
			for _, l := range lefts {
				l.become(value)
			}
		}
		if c.e.together {
			break
		}
	}
	return c.nodes, nil
}

// assignOperator evaluates += and the like: the right side sees what the whole expression sees.
func (c context) assignOperator(x *expr) ([]*node, error) {
	op := strings.TrimSuffix(x.op, "=")
	for _, n := range c.nodes {
		in := c
		if !c.e.together {
			in = c.with(n)
		}
		lefts, err := in.eval(x.left)
		if err != nil {
			return nil, err
		}
		right, err := in.eval(x.right)
		if err != nil {
			return nil, err
		}
		for _, l := range lefts {
			for _, r := range right {
				if op == "//" {
					if !l.truthy() {
						l.become(r.free())
					}
					continue
				}
				v, err := c.binary(op, x.text, l, r)
				if err != nil {
					return nil, err
				}
				if v != nil && v != l {
					l.become(v)
				}
			}
		}
		if c.e.together {
			break
		}
	}
	return c.nodes, nil
}
