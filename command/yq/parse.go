package yq

import (
	"errors"
	"fmt"
	"strings"
)

// expr is a parsed expression.
type expr struct {
	op       string
	left     *expr
	right    *expr
	args     []*expr
	value    *node  // of a literal
	text     string // name, path element, flags
	optional bool
	literal  bool // a path element without wildcards
	parts    []*expr
}

// ranks of the binary operators. Those of one rank group to the right.
var ranks = map[string]int{",": 10, ":": 15, "and": 20, "or": 20, "|": 30, "ireduce": 35, "=": 40, "|=": 40, "+=": 40, "-=": 40, "*=": 40, "/=": 40, "%=": 40,
	"//=": 40, "==": 40, "!=": 40, "<": 40, ">": 40, "<=": 40, ">=": 40, "as": 40, "ref": 40, "+": 42, "-": 42, "*": 42, "/": 42, "%": 42, "//": 42}

var errSyntax = errors.New("bad expression, please check expression syntax")

// maxDepth bounds how deep expressions and documents are nested.
const maxDepth = 1000

type parser struct {
	tokens []token
	at     int
	depth  int
	e      *evaluator
}

// parse reads an expression; an empty one is ".".
func (e *evaluator) parse(s string) (*expr, error) {
	if strings.TrimSpace(s) == "" {
		return &expr{op: "self"}, nil
	}
	tokens, err := e.lex(s)
	if err != nil {
		return nil, err
	}
	if len(tokens) == 1 {
		return &expr{op: "self"}, nil
	}
	p := &parser{tokens: tokens, e: e}
	x, err := p.binary(0)
	if err != nil {
		return nil, err
	}
	switch t := p.peek(); {
	case t.kind == tokenEnd:
		return x, nil
	case t.text == ")" || t.text == "]":
		return nil, errors.New("bad expression, could not find matching `)`")
	case t.text == "}":
		return nil, errors.New("bad expression, could not find matching `}`")
	}
	return nil, errSyntax
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) take() token {
	t := p.tokens[p.at]
	if t.kind != tokenEnd {
		p.at++
	}
	return t
}

// is reports whether the next token is an operator or keyword, and takes it.
func (p *parser) is(text string) bool {
	t := p.peek()
	if (t.kind == tokenPunct || t.kind == tokenWord) && t.text == text {
		p.at++
		return true
	}
	return false
}

func (p *parser) need(text string) error {
	if !p.is(text) {
		return fmt.Errorf("bad expression, could not find matching `%s`", text)
	}
	return nil
}

// operator returns the operator that is next, its flags and its rank; 0 if there is none.
func (p *parser) operator() (op, flags string, rank int) {
	t := p.peek()
	if t.kind != tokenPunct && t.kind != tokenWord {
		return "", "", 0
	}
	op = t.text
	if op == "reduce" {
		op = "ireduce"
	}
	for _, base := range []string{"*=", "*"} {
		if strings.HasPrefix(op, base) {
			return base, op[len(base):], ranks[base]
		}
	}
	return op, "", ranks[op]
}

// binary reads operators of at least a rank.
func (p *parser) binary(least int) (*expr, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, errSyntax
	}
	defer func() { p.depth-- }()
	left, err := p.postfix()
	if err != nil {
		return nil, err
	}
	for {
		if attr := p.attribute(); attr != "" {
			if left, err = p.assignAttribute(left, attr); err != nil {
				return nil, err
			}
			continue
		}
		op, flags, rank := p.operator()
		if rank == 0 || rank < least {
			return left, nil
		}
		p.at++
		switch op {
		case "as", "ref":
			if left, err = p.variable(left, op); err != nil {
				return nil, err
			}
			continue
		case "ireduce":
			return nil, errSyntax
		}
		right, err := p.binary(rank)
		if err != nil {
			if p.peek().kind == tokenEnd {
				return nil, fmt.Errorf("'%s' expects 2 args but there is 1", op)
			}
			return nil, err
		}
		left = &expr{op: op, left: left, right: right, text: flags}
	}
}

// variable reads what follows "as $x": a reduction, or the expression in which the variable is known.
func (p *parser) variable(left *expr, op string) (*expr, error) {
	name := p.take()
	if name.kind != tokenVar {
		return nil, errors.New("RHS of 'as' operator must be a variable name e.g. $foo")
	}
	if p.is("ireduce") || p.is("reduce") {
		if err := p.need("("); err != nil {
			return nil, err
		}
		init, err := p.binary(0)
		if err != nil {
			return nil, err
		}
		if !p.is(";") {
			return nil, errSyntax
		}
		body, err := p.binary(0)
		if err != nil {
			return nil, err
		}
		return &expr{op: "reduce", left: left, args: []*expr{init, body}, text: name.text}, p.need(")")
	}
	if !p.is("|") {
		return nil, errors.New("must use variable with a pipe, e.g. `exp as $x | ...`")
	}
	body, err := p.binary(ranks["|"])
	if err != nil {
		return nil, err
	}
	return &expr{op: op, left: left, right: body, text: name.text}, nil
}

// attributes are what an assignment may name after a path: .a style="double".
var attributes = map[string]bool{"style": true, "tag": true, "anchor": true, "alias": true, "lineComment": true, "headComment": true, "footComment": true,
	"line_comment": true, "head_comment": true, "foot_comment": true, "comments": true, "type": true}

func (p *parser) attribute() string {
	t := p.peek()
	if t.kind != tokenWord || !attributes[t.text] || p.at+1 >= len(p.tokens) {
		return ""
	}
	if next := p.tokens[p.at+1]; next.text == "=" || next.text == "|=" {
		return t.text
	}
	return ""
}

func (p *parser) assignAttribute(left *expr, name string) (*expr, error) {
	p.at++
	update := p.take().text == "|="
	right, err := p.binary(ranks["="])
	return &expr{op: "attribute", left: left, right: right, text: strings.ReplaceAll(strings.ToLower(name), "_", ""), optional: update}, err
}

// postfix reads an operand with the paths and indexes that follow.
func (p *parser) postfix() (*expr, error) {
	e, err := p.operand()
	if err != nil {
		return nil, err
	}
	for {
		t := p.peek()
		switch {
		case t.kind == tokenPath && !t.space:
			p.at++
			e = &expr{op: "path", left: e, text: t.text, literal: t.quoted, optional: p.is("?")}
		case t.kind == tokenPunct && t.text == "[" && !(t.space && e.op != "path" && e.op != "index" && e.op != "self"):
			p.at++
			if e, err = p.index(e); err != nil {
				return nil, err
			}
		case t.kind == tokenPunct && t.text == "." && !t.space && p.tokens[p.at+1].text == "[" && p.tokens[p.at+1].kind == tokenPunct:
			p.at += 2
			if e, err = p.index(e); err != nil {
				return nil, err
			}
		case t.kind == tokenPunct && t.text == "?":
			p.at++
			e.optional = true
		default:
			return e, nil
		}
	}
}

// index reads what follows "[" in a path.
func (p *parser) index(of *expr) (*expr, error) {
	if p.is("]") {
		return &expr{op: "splat", left: of, optional: p.is("?")}, nil
	}
	var from, to *expr
	var err error
	if !p.is(":") {
		if from, err = p.sliceBound(); err != nil {
			return nil, err
		}
		if p.is("]") {
			return &expr{op: "index", left: of, right: from, optional: p.is("?")}, nil
		}
		if !p.is(":") {
			return nil, errors.New("bad expression, could not find matching `]`")
		}
	}
	if p.is("]") {
		return &expr{op: "slice", left: of, args: []*expr{from, nil}}, nil
	}
	if to, err = p.sliceBound(); err != nil {
		return nil, err
	}
	return &expr{op: "slice", left: of, args: []*expr{from, to}}, p.need("]")
}

// sliceBound is an expression that ends at a colon.
func (p *parser) sliceBound() (*expr, error) {
	e, err := p.binary(ranks[":"] + 1)
	if err != nil {
		return nil, err
	}
	for p.is(",") {
		right, err := p.binary(ranks[":"] + 1)
		if err != nil {
			return nil, err
		}
		e = &expr{op: ",", left: e, right: right}
	}
	return e, nil
}

// operand reads a literal, a path, a call, or something in brackets.
func (p *parser) operand() (*expr, error) {
	t := p.take()
	switch t.kind {
	case tokenString:
		return p.str(t.text)
	case tokenNumber:
		tag := "!!int"
		if strings.ContainsAny(t.text, ".") || !strings.HasPrefix(t.text, "0x") && strings.ContainsAny(t.text, "eE") {
			tag = "!!float"
		}
		return &expr{op: "literal", value: scalar(tag, t.text)}, nil
	case tokenVar:
		return &expr{op: "variable", text: t.text}, nil
	case tokenPath:
		return &expr{op: "path", left: &expr{op: "self"}, text: t.text, literal: t.quoted, optional: p.is("?")}, nil
	case tokenFormat:
		return &expr{op: "format", text: t.text}, nil
	case tokenWord:
		return p.word(t)
	case tokenPunct:
		return p.bracket(t)
	}
	return nil, errSyntax
}

func (p *parser) bracket(t token) (*expr, error) {
	switch t.text {
	case ".":
		if n := p.peek(); n.kind == tokenPunct && n.text == "[" && !n.space {
			p.at++
			return p.index(&expr{op: "self"})
		}
		return &expr{op: "self"}, nil
	case "..", "...":
		return &expr{op: t.text}, nil
	case "(":
		e, err := p.binary(0)
		if err != nil {
			return nil, err
		}
		return &expr{op: "group", left: e}, p.need(")")
	case "[":
		if p.is("]") {
			return &expr{op: "collect"}, nil
		}
		e, err := p.binary(0)
		if err != nil {
			return nil, err
		}
		return &expr{op: "collect", left: e}, p.need("]")
	case "{":
		if p.is("}") {
			return &expr{op: "object"}, nil
		}
		e, err := p.binary(0)
		if err != nil {
			return nil, err
		}
		return &expr{op: "object", left: e}, p.need("}")
	}
	return nil, errSyntax
}

// str makes a literal of a string, or a concatenation if it has expressions in it.
func (p *parser) str(s string) (*expr, error) {
	if !strings.Contains(s, interpolation) {
		return &expr{op: "literal", value: str(s)}, nil
	}
	e := &expr{op: "interpolate"}
	for s != "" {
		text, rest, found := strings.Cut(s, interpolation)
		if text != "" {
			e.parts = append(e.parts, &expr{op: "literal", value: str(text)})
		}
		if !found {
			break
		}
		inner, after, _ := strings.Cut(rest, interpolationEnd)
		part, err := p.e.parse(inner)
		if err != nil {
			return nil, err
		}
		e.parts = append(e.parts, part)
		s = after
	}
	return e, nil
}

func (p *parser) word(t token) (*expr, error) {
	switch strings.ToLower(t.text) {
	case "true", "false":
		return &expr{op: "literal", value: scalar("!!bool", t.text)}, nil
	case "null", "~":
		return &expr{op: "literal", value: scalar("!!null", t.text)}, nil
	}
	f, ok := p.e.functions[t.text]
	if !ok {
		return nil, errSyntax
	}
	e := &expr{op: "call", text: t.text}
	if f.max > 0 && p.is("(") {
		for {
			least := 0
			if f.max > 1 {
				least = ranks[","] + 1
			}
			a, err := p.binary(least)
			if err != nil {
				return nil, err
			}
			e.args = append(e.args, a)
			if p.is(")") {
				break
			}
			if !p.is(";") && !p.is(",") {
				return nil, errors.New("bad expression, could not find matching `)`")
			}
		}
	}
	if len(e.args) < f.min {
		return nil, fmt.Errorf("'%s' expects %d arg but received none", t.text, f.min)
	}
	if len(e.args) > f.max {
		return nil, errSyntax
	}
	return e, nil
}
