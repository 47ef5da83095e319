package yq

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"agentrun.dev/command/tool"
)

// context is what an expression sees: the matches and the variables.
type context struct {
	e     *evaluator
	nodes []*node
	vars  *variable
}

// variable is a list of variables, the newest first.
type variable struct {
	name  string
	nodes []*node
	next  *variable
}

func (c context) with(nodes ...*node) context { c.nodes = nodes; return c }

func (c context) let(name string, nodes []*node) context {
	c.vars = &variable{name, nodes, c.vars}
	return c
}

// evaluator is what all expressions of a run share.
type evaluator struct {
	t         *tool.T
	functions map[string]function
	formats   map[string]func(context, *node) (*node, error)
	depth     int
	together  bool // all documents at once (eval-all)
	noEnv     bool
	noFiles   bool
	dtf       string // the present date format; "" is RFC 3339
	fix       bool
}

// eval evaluates an expression.
func (c context) eval(x *expr) (list []*node, err error) {
	if x == nil {
		return c.nodes, nil
	}
	if c.e.depth++; c.e.depth > 10*maxDepth {
		return nil, errors.New("expression nested too deeply")
	}
	defer func() { c.e.depth-- }()
	c.e.t.Check()
	switch x.op {
	case "self":
		return c.nodes, nil
	case "group":
		return c.eval(x.left)
	case "literal":
		return c.each(func(*node) ([]*node, error) { return []*node{x.value.copy()}, nil })
	case "variable":
		return c.variable(x.text)
	case ",":
		left, err := c.eval(x.left)
		if err != nil {
			return nil, err
		}
		right, err := c.eval(x.right)
		return append(left[:len(left):len(left)], right...), err
	case "|":
		left, err := c.eval(x.left)
		if err != nil {
			return nil, err
		}
		return c.with(left...).eval(x.right)
	case "path", "index", "splat", "slice":
		return c.traverse(x)
	case "..", "...":
		return c.recurse(x.op == "..."), nil
	case "collect":
		return c.collect(x)
	case "object":
		return c.object(x)
	case "interpolate":
		return c.interpolate(x)
	case "as", "ref":
		return c.bind(x)
	case "reduce":
		return c.reduce(x)
	case "call":
		return c.e.functions[x.text].run(c, x)
	case "format":
		return c.each(func(n *node) ([]*node, error) {
			r, err := c.e.formats[x.text](c, n)
			return []*node{r}, err
		})
	case "attribute":
		return c.assignAttribute(x)
	}
	return c.operator(x)
}

// each maps every match to a list. Where there is no match at all, literals and the like still have one value.
func (c context) each(f func(*node) ([]*node, error)) (list []*node, err error) {
	for _, n := range c.nodes {
		c.e.t.Check()
		r, err := f(n)
		if err != nil {
			return nil, err
		}
		if list = append(list, r...); len(list) > maxMatches {
			return nil, errors.New("too many matches")
		}
	}
	return list, nil
}

// maxMatches bounds the list of matches.
const maxMatches = 10_000_000

func (c context) variable(name string) ([]*node, error) {
	for v := c.vars; v != nil; v = v.next {
		if v.name == name {
			return v.nodes, nil
		}
	}
	return nil, nil
}

// bind evaluates "left as $x | right" for each value, or "left ref $x | right" with the nodes themselves.
func (c context) bind(x *expr) ([]*node, error) {
	return c.each(func(n *node) ([]*node, error) {
		values, err := c.with(n).eval(x.left)
		if err != nil {
			return nil, err
		}
		if x.op == "ref" {
			return c.with(n).let(x.text, values).eval(x.right)
		}
		var list []*node
		for _, v := range values {
			r, err := c.with(n).let(x.text, []*node{v.copy()}).eval(x.right)
			if err != nil {
				return nil, err
			}
			list = append(list, r...)
		}
		return list, nil
	})
}

func (c context) reduce(x *expr) ([]*node, error) {
	values, err := c.eval(x.left)
	if err != nil {
		return nil, err
	}
	acc, err := c.eval(x.args[0])
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		if acc, err = c.with(acc...).let(x.text, []*node{v}).eval(x.args[1]); err != nil {
			return nil, err
		}
	}
	return acc, nil
}

func (c context) collect(x *expr) ([]*node, error) {
	one := func(in context) (*node, error) {
		s := newSeq()
		if x.left == nil {
			return s, nil
		}
		list, err := in.eval(x.left)
		for _, e := range list {
			f := e.copy()
			f.anchor = ""
			s.add(f)
		}
		return s, err
	}
	if c.e.together || len(c.nodes) == 0 {
		s, err := one(c)
		return []*node{s}, err
	}
	return c.each(func(n *node) ([]*node, error) {
		s, err := one(c.with(n))
		return []*node{s}, err
	})
}

// object evaluates {…}: the entries' products.
func (c context) object(x *expr) ([]*node, error) {
	if x.left == nil {
		return []*node{newMap()}, nil
	}
	return c.each(func(n *node) ([]*node, error) {
		list := []*node{newMap()}
		for _, entry := range entries(x.left) {
			maps, err := c.with(n).entry(entry)
			if err != nil {
				return nil, err
			}
			var next []*node
			for _, have := range list {
				for _, m := range maps {
					merged := have.copy()
					for i := 0; i+1 < len(m.content); i += 2 {
						setKey(merged, m.content[i].free(), m.content[i+1].free())
					}
					next = append(next, merged)
				}
			}
			list = next
			if len(list) > maxMatches/100 {
				return nil, errors.New("too many matches")
			}
		}
		return list, nil
	})
}

func entries(x *expr) []*expr {
	if x.op == "," {
		return append(entries(x.left), entries(x.right)...)
	}
	return []*expr{x}
}

// entry evaluates one "key: value", or something that yields maps.
func (c context) entry(x *expr) ([]*node, error) {
	if x.op != ":" {
		return c.eval(x)
	}
	keys, err := c.eval(x.left)
	if err != nil {
		return nil, err
	}
	values, err := c.eval(x.right)
	if err != nil {
		return nil, err
	}
	var list []*node
	for _, k := range keys {
		for _, v := range values {
			m := newMap()
			key := k.free()
			key.tag = guessOr(key)
			m.put(key, v.free())
			list = append(list, m)
		}
	}
	return list, nil
}

func guessOr(n *node) string {
	if n.tag == "" {
		return guessTag(n)
	}
	return n.tag
}

// setKey sets a key of a map.
func setKey(m, k, v *node) {
	for i := 0; i+1 < len(m.content); i += 2 {
		if m.content[i].value == k.value {
			v.parent, v.key = m, m.content[i]
			m.content[i+1] = v
			return
		}
	}
	m.put(k, v)
}

func (c context) interpolate(x *expr) ([]*node, error) {
	return c.each(func(n *node) ([]*node, error) {
		var b strings.Builder
		for _, part := range x.parts {
			list, err := c.with(n).eval(part)
			if err != nil {
				return nil, err
			}
			for _, r := range list[:min(len(list), 1)] {
				s, err := c.e.text(r)
				if err != nil {
					return nil, err
				}
				b.WriteString(s)
			}
		}
		return []*node{str(b.String())}, nil
	})
}

// text is a node as a string: a scalar's value, or YAML.
func (e *evaluator) text(n *node) (string, error) {
	n = n.target()
	if n.kind == scalarKind {
		return n.value, nil
	}
	s, err := encodeYAML(n, 2)
	return strings.TrimSuffix(s, "\n"), err
}

// traverse evaluates a path.
func (c context) traverse(x *expr) ([]*node, error) {
	left, err := c.eval(x.left)
	if err != nil {
		return nil, err
	}
	if x.op == "index" {
		return c.index(left, x)
	}
	return c.with(left...).each(func(n *node) ([]*node, error) {
		switch x.op {
		case "path":
			key := str(x.text)
			if _, err := strconv.Atoi(x.text); err == nil && !x.literal {
				key = scalar("!!int", x.text)
			}
			return step(n, key, x.literal, x.optional)
		case "splat":
			return splat(n), nil
		}
		return c.slice(n, x)
	})
}

// index evaluates the keys within brackets, on what stood before the path.
func (c context) index(left []*node, x *expr) ([]*node, error) {
	return c.with(left...).each(func(n *node) ([]*node, error) {
		in := c
		if len(c.nodes) != 1 {
			in = c.with(n)
		}
		keys, err := in.eval(x.right)
		if err != nil {
			return nil, err
		}
		var list []*node
		for _, k := range keys {
			r, err := step(n, k, false, x.optional)
			if err != nil {
				return nil, err
			}
			list = append(list, r...)
		}
		return list, nil
	})
}

// step goes down one element. What isn't there is a null that knows where it would be.
func step(n, key *node, literal, optional bool) ([]*node, error) {
	n = n.target()
	made := func() []*node {
		m := null()
		m.parent, m.key, m.detached, m.doc = n, key.free(), true, n.doc
		return []*node{m}
	}
	switch n.kind {
	case mapKind:
		budget := maxExploded
		list := stepMap(n, key, literal, 0, &budget)
		if len(list) == 0 && (literal || !strings.ContainsAny(key.value, "*?")) {
			return made(), nil
		}
		return list, nil
	case seqKind:
		if key.value == "*" && !literal {
			return splat(n), nil
		}
		i, _, err := parseInt(key.value)
		if err != nil {
			if optional {
				return nil, nil
			}
			return nil, fmt.Errorf("cannot index array with '%s' (%w)", key.value, err)
		}
		if i < 0 {
			if i += int64(len(n.content)); i < 0 {
				return nil, fmt.Errorf("index [%s] out of range, array size is %d", key.value, len(n.content))
			}
		}
		if i < int64(len(n.content)) {
			return []*node{n.content[i]}, nil
		}
		key = integer(int(min(i, maxIndex+1)))
		return made(), nil
	}
	if n.isNull() {
		return made(), nil
	}
	return nil, nil
}

// stepMap finds the values of the keys that match; merged maps ("<<") are looked at, too.
func stepMap(n, key *node, literal bool, depth int, budget *int) []*node {
	var list []*node
	if *budget--; *budget < 0 || depth > maxDepth {
		return nil // maps that merge themselves, or billions
	}
	wild := !literal && strings.ContainsAny(key.value, "*?")
	for i := 0; i+1 < len(n.content); i += 2 {
		k, v := n.content[i], n.content[i+1]
		if k.tag == "!!merge" || k.value == "<<" && k.tag != "!!str" {
			if key.value == "<<" {
				list = append(list, v)
				continue
			}
			for _, m := range mergedMaps(v) {
				if len(list) == 0 || wild {
					list = append(list, stepMap(m, key, literal, depth+1, budget)...)
				}
			}
			continue
		}
		if wild && matchKey(k.value, key.value) || !wild && k.value == key.value {
			if !wild {
				list = list[:0]
			}
			list = append(list, v)
		}
	}
	return list
}

// mergedMaps are the maps that a merge key names.
func mergedMaps(v *node) []*node {
	v = v.target()
	switch v.kind {
	case mapKind:
		return []*node{v}
	case seqKind:
		var maps []*node
		for _, e := range v.content {
			if e = e.target(); e.kind == mapKind {
				maps = append(maps, e)
			}
		}
		return maps
	}
	return nil
}

// matchKey matches a name against a pattern of * and ?.
func matchKey(name, pattern string) bool {
	return tool.Glob(escapeBrackets.Replace(pattern), name, 0)
}

var escapeBrackets = strings.NewReplacer(`\`, `\\`, "[", `\[`)

// splat lists what a map or sequence holds.
func splat(n *node) []*node {
	budget := maxExploded
	return splatMerged(n, 0, &budget)
}

func splatMerged(n *node, depth int, budget *int) []*node {
	if *budget--; *budget < 0 || depth > maxDepth {
		return nil
	}
	n = n.target()
	switch n.kind {
	case seqKind:
		return append([]*node(nil), n.content...)
	case mapKind:
		var list []*node
		for i := 1; i < len(n.content); i += 2 {
			if k := n.content[i-1]; k.tag == "!!merge" {
				for _, m := range mergedMaps(n.content[i]) {
					list = append(list, splatMerged(m, depth+1, budget)...)
				}
				continue
			}
			list = append(list, n.content[i])
		}
		return list
	}
	return nil
}

func (c context) slice(n *node, x *expr) ([]*node, error) {
	n = n.target()
	length := len(n.content)
	runes := []rune(nil)
	if n.kind == scalarKind && n.niceTag() == "!!str" {
		runes = []rune(n.value)
		length = len(runes)
	}
	bounds := [2]int{0, length}
	for i, a := range x.args {
		if a == nil {
			continue
		}
		list, err := c.with(n).eval(a)
		if err != nil {
			return nil, err
		}
		if len(list) == 0 || list[0].isNull() {
			continue
		}
		v, _, err := parseInt(list[0].value)
		if err != nil {
			return nil, err
		}
		if v < 0 {
			v += int64(length)
		}
		bounds[i] = int(min(max(v, 0), int64(length)))
	}
	if runes != nil {
		if bounds[0] >= bounds[1] {
			return []*node{str("")}, nil
		}
		return []*node{str(string(runes[bounds[0]:bounds[1]]))}, nil
	}
	s := newSeq()
	s.tag = n.tag
	for i := bounds[0]; i < bounds[1]; i++ {
		s.add(n.content[i].copy())
	}
	return []*node{s}, nil
}

// recurse lists all matches with what is beneath them, with "..." the keys, too.
func (c context) recurse(keys bool) (list []*node) {
	var walk func(n *node, depth int)
	walk = func(n *node, depth int) {
		list = append(list, n)
		if depth > maxDepth || len(list) > maxMatches {
			return
		}
		for i, e := range n.content {
			if n.kind == mapKind && i%2 == 0 {
				if keys {
					list = append(list, e)
				}
				continue
			}
			walk(e, depth+1)
		}
	}
	for _, n := range c.nodes {
		walk(n, 0)
	}
	return list
}
