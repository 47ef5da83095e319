package yq

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// function is a named operator: how many arguments it takes, and what it does.
type function struct {
	min, max int
	run      func(c context, x *expr) ([]*node, error)
}

// mapped makes a function of one node of another.
func mapped(f func(c context, n *node) (*node, error)) function {
	return function{0, 0, func(c context, _ *expr) ([]*node, error) {
		return c.each(func(n *node) ([]*node, error) {
			r, err := f(c, n)
			if r == nil {
				return nil, err
			}
			return []*node{r}, err
		})
	}}
}

// with1 makes a function of one argument, which it evaluates itself.
func with1(f func(c context, n *node, arg *expr) ([]*node, error)) function {
	return function{1, 1, func(c context, x *expr) ([]*node, error) {
		return c.each(func(n *node) ([]*node, error) { return f(c, n, x.args[0]) })
	}}
}

func one(n *node) []*node { return []*node{n} }

// makeFunctions makes the table of all functions.
func makeFunctions() map[string]function {
	m := map[string]function{
		"select": with1(selectNodes), "filter": with1(filter), "map": with1(mapAll), "map_values": with1(mapValues), "with_entries": with1(withEntries),
		"to_entries": mapped(toEntries), "from_entries": mapped(fromEntries), "keys": mapped(keys), "length": mapped(length), "has": with1(has),
		"path": mapped(pathOf), "key": mapped(keyOf), "is_key": mapped(func(_ context, n *node) (*node, error) { return boolean(n.isKey), nil }),
		"parents": mapped(parents), "root": mapped(func(_ context, n *node) (*node, error) { return n.root(), nil }),
		"sort": {0, 0, sortSelf}, "sort_by": with1(sortBy), "unique": {0, 0, uniqueSelf}, "unique_by": with1(uniqueBy), "group_by": with1(groupBy),
		"reverse": mapped(reverse), "shuffle": mapped(shuffle), "min": mapped(extreme(false)), "max": mapped(extreme(true)), "pivot": mapped(pivot),
		"join": with1(join), "contains": with1(contains), "not": mapped(func(_ context, n *node) (*node, error) { return boolean(!n.truthy()), nil }),
		"any": mapped(anyOf), "all": mapped(allOf), "any_c": with1(anyBy), "all_c": with1(allBy), "pick": with1(pick), "omit": with1(omit),
		"tag": mapped(func(_ context, n *node) (*node, error) { return str(n.niceTagOrEmpty()), nil }), "explode": with1(explode), "del": with1(del), "delete": with1(del),
		"kind": mapped(kindOf), "style": mapped(func(_ context, n *node) (*node, error) { return str(styleName(n.style)), nil }),
		"anchor": mapped(func(_ context, n *node) (*node, error) { return str(n.anchor), nil }),
		"alias":  mapped(aliasOf), "line": mapped(func(_ context, n *node) (*node, error) { return integer(n.row), nil }),
		"column": mapped(func(_ context, n *node) (*node, error) { return integer(n.column), nil }),
		"error":  {1, 1, raise}, "eval": with1(evalText), "with": {2, 2, withPath}, "first": {1, 1, first}, "flatten": {0, 1, flatten},
		"parent": {0, 1, parent}, "split_doc": {0, 0, splitDoc}, "sort_keys": with1(sortKeys), "array_to_map": mapped(arrayToMap), "to_number": mapped(toNumber),
		"to_string": mapped(toString), "setpath": {2, 2, setPath}, "delpaths": with1(delPaths), "collect": mapped(func(_ context, n *node) (*node, error) { return n, nil }),
	}
	for name, f := range map[string]function{"upcase": text1(strings.ToUpper), "downcase": text1(strings.ToLower), "trim": text1(strings.TrimSpace),
		"split": with1(split), "test": {1, 2, test}, "match": {1, 2, match}, "capture": {1, 2, capture}, "sub": {2, 3, sub},
		"head_comment": comment(func(n *node) string { return n.leadingOr() }), "line_comment": comment(func(n *node) string { return n.line }),
		"foot_comment": comment(func(n *node) string { return n.foot }), "comments": comment(func(n *node) string { return n.head }),
		"now": mapped(now), "from_unix": mapped(fromUnix), "to_unix": mapped(toUnix), "format_datetime": with1(formatDate), "tz": with1(inZone), "with_dtf": {2, 2, withDTF},
		"env": {1, 1, env}, "strenv": {1, 1, strenv}, "envsubst": {0, 2, envsubst}, "filename": mapped(fileName), "file_index": mapped(fileIndex), "document_index": mapped(documentIndex),
		"load": load("yaml"), "load_xml": load("xml"), "load_props": load("props"), "load_str": load("str"), "load_base64": load("base64"),
		"to_json": encoded("json"), "from_json": decoded("json"), "to_yaml": encoded("yaml"), "from_yaml": decoded("yaml"), "to_props": encoded("props"), "from_props": decoded("props"),
		"to_xml": encoded("xml"), "from_xml": decoded("xml"), "to_csv": encoded("csv"), "from_csv": decoded("csv"), "to_tsv": encoded("tsv"), "from_tsv": decoded("tsv"),
	} {
		m[name] = f
	}
	for alias, name := range map[string]string{"mapValues": "map_values", "withEntries": "with_entries", "toEntries": "to_entries", "fromEntries": "from_entries",
		"type": "tag", "sortKeys": "sort_keys", "splitDoc": "split_doc", "tostring": "to_string", "tonumber": "to_number", "groupBy": "group_by", "sortBy": "sort_by", "uniqueBy": "unique_by",
		"headComment": "head_comment", "lineComment": "line_comment", "footComment": "foot_comment", "fileName": "filename", "fileIndex": "file_index", "fi": "file_index",
		"documentIndex": "document_index", "di": "document_index", "loadstr": "load_str", "strload": "load_str", "loadxml": "load_xml", "loadprops": "load_props", "tojson": "to_json", "toJson": "to_json", "toyaml": "to_yaml",
		"fromjson": "from_json", "fromJson": "from_json", "fromyaml": "from_yaml", "toprops": "to_props", "fromprops": "from_props", "toxml": "to_xml", "fromxml": "from_xml",
		"ascii_upcase": "upcase", "ascii_downcase": "downcase", "arrayToMap": "array_to_map"} {
		if alias != "ascii_upcase" && alias != "ascii_downcase" {
			m[alias] = m[name]
		}
	}
	return m
}

func (n *node) niceTagOrEmpty() string {
	if n.kind == aliasKind {
		return ""
	}
	return n.niceTag()
}

func selectNodes(c context, n *node, arg *expr) ([]*node, error) {
	list, err := c.with(n).eval(arg)
	for _, r := range list {
		if r.truthy() {
			return one(n), err
		}
	}
	return nil, err
}

func filter(c context, n *node, arg *expr) ([]*node, error) {
	s := newSeq()
	s.style = n.target().style
	for _, e := range splat(n) {
		ok, err := selectNodes(c, e, arg)
		if err != nil {
			return nil, err
		}
		if len(ok) > 0 {
			s.add(e.copy())
		}
	}
	return one(s), nil
}

func mapAll(c context, n *node, arg *expr) ([]*node, error) {
	list, err := c.with(splat(n)...).eval(arg)
	s := newSeq()
	s.style = n.style
	for _, r := range list {
		s.add(r.copy())
	}
	return one(s), err
}

func mapValues(c context, n *node, arg *expr) ([]*node, error) {
	n = n.copy()
	for _, e := range splat(n) {
		r, err := c.with(e).eval(arg)
		if err != nil {
			return nil, err
		}
		if len(r) > 0 {
			e.become(r[0])
		}
	}
	return one(n), nil
}

func toEntries(_ context, n *node) (*node, error) {
	n = n.target()
	s := newSeq()
	entry := func(k, v *node) {
		m := newMap()
		m.put(str("key"), k.free())
		m.put(str("value"), v.free())
		s.add(m)
	}
	switch {
	case n.kind == mapKind:
		for i := 0; i+1 < len(n.content); i += 2 {
			entry(n.content[i], n.content[i+1])
		}
	case n.kind == seqKind:
		for i, e := range n.content {
			entry(integer(i), e)
		}
	case n.isNull():
		return nil, nil
	default:
		return nil, fmt.Errorf("%s has no keys", n.niceTag())
	}
	return s, nil
}

func fromEntries(_ context, n *node) (*node, error) {
	n = n.target()
	if n.kind != seqKind {
		return nil, errors.New("from entries only runs against arrays")
	}
	m := newMap()
	for _, e := range n.content {
		e = e.target()
		k, v := e.lookup("key"), e.lookup("value")
		if k == nil || v == nil {
			return nil, errors.New("expected to find one 'key' and one 'value' entry")
		}
		setKey(m, k.free(), v.free())
	}
	return m, nil
}

func withEntries(c context, n *node, arg *expr) ([]*node, error) {
	entries, err := toEntries(c, n)
	if err != nil || entries == nil {
		return nil, err
	}
	list, err := c.with(entries.content...).eval(arg)
	if err != nil {
		return nil, err
	}
	s := newSeq()
	for _, e := range list {
		s.add(e.copy())
	}
	m, err := fromEntries(c, s)
	if err != nil {
		return nil, err
	}
	m.head, m.line, m.foot, m.leading = n.head, n.line, n.foot, n.leading
	m.parent, m.key, m.doc = n.parent, n.key, n.doc
	return one(m), nil
}

func keys(_ context, n *node) (*node, error) {
	n = n.target()
	s := newSeq()
	switch n.kind {
	case mapKind:
		for i := 0; i < len(n.content); i += 2 {
			s.add(n.content[i].free())
		}
	case seqKind:
		for i := range n.content {
			s.add(integer(i))
		}
	default:
		return nil, fmt.Errorf("cannot get keys of %s, keys only works for maps and arrays", n.niceTag())
	}
	return s, nil
}

func length(_ context, n *node) (*node, error) {
	n = n.target()
	switch {
	case n.kind == mapKind:
		return integer(len(n.content) / 2), nil
	case n.kind == seqKind:
		return integer(len(n.content)), nil
	case n.isNull():
		return integer(0), nil
	}
	return integer(len([]rune(n.value))), nil
}

func has(c context, n *node, arg *expr) ([]*node, error) {
	list, err := c.with(n).eval(arg)
	if err != nil {
		return nil, err
	}
	n = n.target()
	var out []*node
	for _, k := range list {
		found := false
		switch n.kind {
		case mapKind:
			found = n.lookup(k.value) != nil
		case seqKind:
			i, _, err := parseInt(k.value)
			found = err == nil && i >= 0 && i < int64(len(n.content))
		}
		out = append(out, boolean(found))
	}
	return out, nil
}

func pathOf(_ context, n *node) (*node, error) {
	s := newSeq()
	for _, k := range n.path() {
		s.add(pathKey(k))
	}
	return s, nil
}

func pathKey(k *node) *node { return scalar(guessOr(k), k.value) }

func keyOf(_ context, n *node) (*node, error) {
	if n.key == nil {
		return nil, nil
	}
	return n.key, nil
}

func parents(_ context, n *node) (*node, error) {
	s := newSeq()
	for p := n.parent; p != nil; p = p.parent {
		s.add(p.free())
	}
	return s, nil
}

func parent(c context, x *expr) ([]*node, error) {
	return c.each(func(n *node) ([]*node, error) {
		level := 1
		if len(x.args) > 0 {
			list, err := c.with(n).eval(x.args[0])
			if err != nil {
				return nil, err
			}
			if len(list) > 0 {
				level, _ = strconv.Atoi(list[0].value)
			}
		}
		if level < 0 {
			level += len(n.path()) + 1
		}
		for ; level > 0 && n != nil; level-- {
			n = n.parent
		}
		if n == nil {
			return nil, nil
		}
		return one(n), nil
	})
}

// order compares two nodes for sorting: null, booleans, then numbers, then strings.
func (c context) order(a, b *node) int {
	a, b = a.target(), b.target()
	rank := func(n *node) int {
		switch {
		case n.isNull():
			return 0
		case n.kind == scalarKind && n.typ() == "!!bool":
			return 1
		case n.kind == seqKind:
			return 2
		case n.kind == scalarKind && isNumber(n.typ()):
			return 3
		case n.kind == mapKind:
			return 5
		}
		return 4
	}
	if ra, rb := rank(a), rank(b); ra != rb {
		return ra - rb
	}
	switch rank(a) {
	case 1:
		at, bt := a.truthy(), b.truthy()
		switch {
		case at == bt:
			return 0
		case at:
			return 1
		}
		return -1
	case 3:
		x, ok1 := new(big.Float).SetString(a.value)
		y, ok2 := new(big.Float).SetString(b.value)
		if ok1 && ok2 {
			return x.Cmp(y)
		}
		f, _ := parseFloat(a.value)
		g, _ := parseFloat(b.value)
		return sign(f - g)
	case 4:
		if a.typ() == "!!timestamp" && b.typ() == "!!timestamp" || c.e.dtf != "" {
			s, err1 := c.parseTime(a.value)
			t, err2 := c.parseTime(b.value)
			if err1 == nil && err2 == nil {
				return s.Compare(t)
			}
		}
		return strings.Compare(a.value, b.value)
	}
	return 0
}

func self() *expr { return &expr{op: "self"} }

func sortSelf(c context, _ *expr) ([]*node, error) {
	return c.each(func(n *node) ([]*node, error) { return sortBy(c, n, self()) })
}

func sortBy(c context, n *node, arg *expr) ([]*node, error) {
	n = n.target()
	if n.kind != seqKind {
		return nil, fmt.Errorf("node at path [%s] is not an array (it's a %s)", pathText(n), n.niceTag())
	}
	type item struct {
		n    *node
		keys []*node
	}
	items := make([]item, len(n.content))
	for i, e := range n.content {
		keys, err := c.with(e).eval(arg)
		if err != nil {
			return nil, err
		}
		items[i] = item{e, keys}
	}
	sort.SliceStable(items, func(i, j int) bool {
		for k := 0; k < len(items[i].keys) && k < len(items[j].keys); k++ {
			if o := c.order(items[i].keys[k], items[j].keys[k]); o != 0 {
				return o < 0
			}
		}
		return len(items[i].keys) < len(items[j].keys)
	})
	s := n.copy()
	s.content = nil
	for _, it := range items {
		s.add(it.n.copy())
	}
	return one(s), nil
}

func uniqueSelf(c context, _ *expr) ([]*node, error) {
	return c.each(func(n *node) ([]*node, error) { return uniqueBy(c, n, self()) })
}

// groups puts the elements of a sequence together by what an expression says of them.
func groups(c context, n *node, arg *expr) (*node, [][]*node, error) {
	n = n.target()
	if n.kind != seqKind {
		return nil, nil, fmt.Errorf("only arrays are supported for unique")
	}
	at := map[string]int{}
	var list [][]*node
	for _, e := range n.content {
		keys, err := c.with(e).eval(arg)
		if err != nil {
			return nil, nil, err
		}
		id := "null"
		if len(keys) > 0 {
			k := keys[0].target()
			id = k.value
			if k.kind != scalarKind {
				if id, err = encodeYAML(k, 2); err != nil {
					return nil, nil, err
				}
			}
		}
		i, ok := at[id]
		if !ok {
			i = len(list)
			at[id] = i
			list = append(list, nil)
		}
		list[i] = append(list[i], e)
	}
	return n, list, nil
}

func uniqueBy(c context, n *node, arg *expr) ([]*node, error) {
	n, list, err := groups(c, n, arg)
	if err != nil {
		return nil, err
	}
	s := n.copy()
	s.content = nil
	for _, g := range list {
		s.add(g[0].copy())
	}
	return one(s), nil
}

func groupBy(c context, n *node, arg *expr) ([]*node, error) {
	_, list, err := groups(c, n, arg)
	if err != nil {
		return nil, errors.New("only arrays are supported for group by")
	}
	s := newSeq()
	for _, g := range list {
		inner := newSeq()
		for _, e := range g {
			inner.add(e.copy())
		}
		s.add(inner)
	}
	return one(s), nil
}

func reverse(_ context, n *node) (*node, error) {
	n = n.target()
	if n.kind != seqKind {
		return nil, fmt.Errorf("node at path [%s] is not an array (it's a %s)", pathText(n), n.niceTag())
	}
	s := n.copy()
	slices.Reverse(s.content)
	s.reindex()
	return s, nil
}

func shuffle(c context, n *node) (*node, error) {
	n = n.target()
	if n.kind != seqKind {
		return nil, fmt.Errorf("node at path [%s] is not an array (it's a %s)", pathText(n), n.niceTag())
	}
	s := n.copy()
	for i := len(s.content) - 1; i > 0; i-- {
		var b [8]byte
		if _, err := c.e.t.Rand().Read(b[:]); err != nil {
			return nil, err
		}
		r := uint64(0)
		for _, x := range b {
			r = r<<8 | uint64(x)
		}
		j := int(r % uint64(i+1))
		s.content[i], s.content[j] = s.content[j], s.content[i]
	}
	s.reindex()
	return s, nil
}

func extreme(largest bool) func(c context, n *node) (*node, error) {
	return func(c context, n *node) (*node, error) {
		n = n.target()
		if n.kind != seqKind {
			return nil, fmt.Errorf("only arrays are supported for %s", map[bool]string{true: "max", false: "min"}[largest])
		}
		var best *node
		for _, e := range n.content {
			if o := 0; best != nil {
				if o = c.order(e, best); o == 0 || o > 0 != largest {
					continue
				}
			}
			best = e
		}
		return best, nil
	}
}

func pivot(_ context, n *node) (*node, error) {
	n = n.target()
	if n.kind != seqKind || len(n.content) == 0 {
		return nil, fmt.Errorf("cannot pivot node of type %s", n.niceTag())
	}
	if n.content[0].target().kind == mapKind {
		m := newMap()
		for _, row := range n.content {
			for i := 0; i+1 < len(row.target().content); i += 2 {
				if k := row.target().content[i]; m.lookup(k.value) == nil {
					m.put(k.free(), newSeq())
				}
			}
		}
		for _, row := range n.content {
			for i := 0; i+1 < len(m.content); i += 2 {
				if v := row.target().lookup(m.content[i].value); v != nil {
					m.content[i+1].add(v.free())
				} else {
					m.content[i+1].add(null())
				}
			}
		}
		return m, nil
	}
	s := newSeq()
	width := 0
	for _, row := range n.content {
		width = max(width, len(row.target().content))
	}
	for i := range width {
		column := newSeq()
		for _, row := range n.content {
			if r := row.target(); r.kind == seqKind && i < len(r.content) {
				column.add(r.content[i].free())
			} else {
				column.add(null())
			}
		}
		s.add(column)
	}
	return s, nil
}

func flatten(c context, x *expr) ([]*node, error) {
	depth := -1
	if len(x.args) > 0 {
		list, err := c.eval(x.args[0])
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			depth, _ = strconv.Atoi(list[0].value)
		}
	}
	var walk func(to, n *node, depth int)
	walk = func(to, n *node, depth int) {
		for _, e := range n.content {
			if t := e.target(); t.kind == seqKind && depth != 0 {
				walk(to, t, depth-1)
			} else {
				to.add(e.copy())
			}
		}
	}
	return c.each(func(n *node) ([]*node, error) {
		n = n.target()
		if n.kind != seqKind {
			return nil, errors.New("only arrays are supported for flatten")
		}
		s := n.copy()
		s.content = nil
		walk(s, n, depth)
		return one(s), nil
	})
}

func contains(c context, n *node, arg *expr) ([]*node, error) {
	list, err := c.with(n).eval(arg)
	var out []*node
	for _, r := range list {
		budget := maxExploded
		ok, err := holds(n.target(), r.target(), 0, &budget)
		if err != nil {
			return nil, err
		}
		out = append(out, boolean(ok))
	}
	return out, err
}

// holds reports whether a contains b.
func holds(a, b *node, depth int, budget *int) (bool, error) {
	if *budget--; *budget < 0 || depth > maxDepth {
		return false, errors.New("values nested too deeply")
	}
	switch {
	case a.kind == mapKind && b.kind == mapKind:
		for i := 0; i+1 < len(b.content); i += 2 {
			v := a.lookup(b.content[i].value)
			if v == nil {
				return false, nil
			}
			if ok, err := holds(v.target(), b.content[i+1].target(), depth+1, budget); !ok || err != nil {
				return false, err
			}
		}
		return true, nil
	case a.kind == seqKind:
		want := []*node{b}
		if b.kind == seqKind {
			want = b.content
		}
		for _, w := range want {
			found := false
			for _, e := range a.content {
				if ok, err := holds(e.target(), w.target(), depth+1, budget); err == nil && ok {
					found = true
					break
				}
			}
			if !found {
				return false, nil
			}
		}
		return true, nil
	case a.kind != scalarKind || b.kind != scalarKind:
		return false, fmt.Errorf("%s not yet supported for contains", a.niceTag())
	case a.typ() == "!!str" && b.typ() == "!!str":
		return strings.Contains(a.value, b.value), nil
	}
	return a.value == b.value && a.typ() == b.typ(), nil
}

func anyOf(c context, n *node) (*node, error) { return quantify(c, n, self(), false, "any") }

func allOf(c context, n *node) (*node, error) { return quantify(c, n, self(), true, "all") }

func anyBy(c context, n *node, arg *expr) ([]*node, error) {
	r, err := quantify(c, n, arg, false, "any")
	return one(r), err
}

func allBy(c context, n *node, arg *expr) ([]*node, error) {
	r, err := quantify(c, n, arg, true, "all")
	return one(r), err
}

func quantify(c context, n *node, arg *expr, all bool, name string) (*node, error) {
	n = n.target()
	if n.kind != seqKind {
		return nil, fmt.Errorf("%s only supports arrays, was %s", name, n.niceTag())
	}
	for _, e := range n.content {
		list, err := c.with(e).eval(arg)
		if err != nil {
			return nil, err
		}
		if ok := len(list) > 0 && list[0].truthy(); ok != all {
			return boolean(!all), nil
		}
	}
	return boolean(all), nil
}

func pick(c context, n *node, arg *expr) ([]*node, error) {
	return choose(c, n, arg, "pick", func(n *node, want []*node) *node {
		r := n.copy()
		r.content = nil
		for _, w := range want {
			if n.kind == mapKind {
				for i := 0; i+1 < len(n.content); i += 2 {
					if n.content[i].value == w.value {
						r.put(n.content[i].copy(), n.content[i+1].copy())
					}
				}
			} else if i, err := strconv.Atoi(w.value); err == nil && i >= 0 && i < len(n.content) {
				r.add(n.content[i].copy())
			}
		}
		return r
	})
}

func omit(c context, n *node, arg *expr) ([]*node, error) {
	return choose(c, n, arg, "omit", func(n *node, unwanted []*node) *node {
		r := n.copy()
		r.content = nil
		drop := map[string]bool{}
		for _, u := range unwanted {
			drop[u.value] = true
		}
		for i := 0; i < len(n.content); i++ {
			switch {
			case n.kind == mapKind:
				if !drop[n.content[i].value] {
					r.put(n.content[i].copy(), n.content[i+1].copy())
				}
				i++
			case !drop[strconv.Itoa(i)]:
				r.add(n.content[i].copy())
			}
		}
		return r
	})
}

func choose(c context, n *node, arg *expr, name string, f func(n *node, keys []*node) *node) ([]*node, error) {
	list, err := c.with(n).eval(arg)
	if err != nil {
		return nil, err
	}
	n = n.target()
	if n.kind == scalarKind {
		return nil, fmt.Errorf("cannot %s indices from type %s (%s)", name, n.niceTag(), pathText(n))
	}
	var keys []*node
	if len(list) > 0 {
		keys = list[0].target().content
	}
	return one(f(n, keys)), nil
}

// explode replaces the aliases beneath some nodes by what they stand for, and removes the anchors.
func explode(c context, n *node, arg *expr) ([]*node, error) {
	list, err := c.with(n).eval(arg)
	if err != nil {
		return nil, err
	}
	budget := maxExploded
	for _, e := range list {
		if err := e.explode(0, &budget); err != nil {
			return nil, err
		}
	}
	return one(n), nil
}

// maxExploded bounds the nodes that aliases become: a few lines can name billions.
const maxExploded = 1_000_000

func (n *node) explode(depth int, budget *int) error {
	if *budget--; depth > maxDepth || *budget < 0 {
		return errors.New("aliases expand to too much")
	}
	n.anchor = ""
	if n.kind == aliasKind {
		if n.alias == nil {
			return nil
		}
		t := n.alias.copy()
		*budget -= t.size()
		if *budget < 0 {
			return errors.New("aliases expand to too much")
		}
		n.kind, n.tag, n.value, n.style, n.alias, n.content = t.kind, t.tag, t.value, t.style, t.alias, nil
		for i := 0; i < len(t.content); i++ {
			if t.kind == mapKind {
				n.put(t.content[i], t.content[i+1])
				i++
			} else {
				n.add(t.content[i])
			}
		}
		return n.explode(depth+1, budget)
	}
	if n.kind == mapKind {
		return n.explodeMap(depth, budget)
	}
	for _, e := range n.content {
		if err := e.explode(depth+1, budget); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) size() int {
	total := 1
	for _, e := range n.content {
		total += e.size()
	}
	return total
}

// explodeMap does it for a map, and dissolves its merge keys.
func (n *node) explodeMap(depth int, budget *int) error {
	old := n.content
	merged := false
	for i := 0; i+1 < len(old); i += 2 {
		merged = merged || old[i].tag == "!!merge"
	}
	if merged {
		n.content = nil
	}
	for i := 0; i+1 < len(old); i += 2 {
		k, v := old[i], old[i+1]
		if k.tag == "!!merge" {
			for _, m := range mergedMaps(v) {
				m = m.copy()
				if err := m.explode(depth+1, budget); err != nil {
					return err
				}
				for j := 0; j+1 < len(m.content); j += 2 {
					setKey(n, m.content[j].free(), m.content[j+1].free())
				}
			}
			continue
		}
		if err := v.explode(depth+1, budget); err != nil {
			return err
		}
		k.anchor = ""
		if merged {
			setKey(n, k, v)
		}
	}
	return nil
}

func del(c context, n *node, arg *expr) ([]*node, error) {
	list, err := c.with(n).eval(arg)
	for i := len(list) - 1; i >= 0; i-- {
		list[i].remove()
	}
	return one(n), err
}

func kindOf(_ context, n *node) (*node, error) {
	return str(map[kind]string{scalarKind: "scalar", mapKind: "map", seqKind: "seq", aliasKind: "alias"}[n.kind]), nil
}

func aliasOf(_ context, n *node) (*node, error) {
	if n.kind == aliasKind {
		return str(n.value), nil
	}
	return str(""), nil
}

func raise(c context, x *expr) ([]*node, error) {
	list, err := c.eval(x.args[0])
	if err != nil {
		return nil, err
	}
	if len(list) > 0 {
		return nil, errors.New(list[0].value)
	}
	return nil, errors.New("aborted")
}

func evalText(c context, n *node, arg *expr) ([]*node, error) {
	list, err := c.with(n).eval(arg)
	var out []*node
	for _, s := range list {
		x, err := c.e.parse(s.value)
		if err != nil {
			return nil, err
		}
		r, err := c.with(n).eval(x)
		if err != nil {
			return nil, err
		}
		out = append(out, r...)
	}
	return out, err
}

// withPath evaluates with(path; expression) and yields what it was given.
func withPath(c context, x *expr) ([]*node, error) {
	list, err := c.eval(x.args[0])
	if err != nil {
		return nil, err
	}
	for _, n := range list {
		if _, err := c.with(n).eval(x.args[1]); err != nil {
			return nil, err
		}
	}
	return c.nodes, nil
}

func first(c context, x *expr) ([]*node, error) {
	return c.each(func(n *node) ([]*node, error) {
		for _, e := range splat(n) {
			if len(x.args) == 0 {
				return one(e), nil
			}
			ok, err := selectNodes(c, e, x.args[0])
			if err != nil || len(ok) > 0 {
				return ok, err
			}
		}
		return nil, nil
	})
}

func splitDoc(c context, _ *expr) ([]*node, error) {
	for i, n := range c.nodes {
		d := document{}
		if n.doc != nil {
			d = *n.doc
		}
		d.index = i
		n.doc = &d
	}
	return c.nodes, nil
}

func sortKeys(c context, n *node, arg *expr) ([]*node, error) {
	list, err := c.with(n).eval(arg)
	for _, m := range list {
		if m.kind != mapKind {
			continue
		}
		pairs := make([][2]*node, 0, len(m.content)/2)
		for i := 0; i+1 < len(m.content); i += 2 {
			pairs = append(pairs, [2]*node{m.content[i], m.content[i+1]})
		}
		sort.SliceStable(pairs, func(i, j int) bool { return pairs[i][0].value < pairs[j][0].value })
		m.content = m.content[:0]
		for _, p := range pairs {
			m.content = append(m.content, p[0], p[1])
		}
	}
	return one(n), err
}

func arrayToMap(_ context, n *node) (*node, error) {
	m := newMap()
	for i, e := range n.target().content {
		if !e.isNull() {
			m.put(integer(i), e.free())
		}
	}
	return m, nil
}

func toNumber(_ context, n *node) (*node, error) {
	n = n.target()
	if n.kind != scalarKind {
		return nil, fmt.Errorf("cannot convert node at path %s of tag %s to number", pathText(n), n.niceTag())
	}
	if isNumber(n.niceTag()) {
		return n, nil
	}
	guess := guessTag(&node{value: n.value})
	if !isNumber(guess) {
		return nil, fmt.Errorf("cannot convert node value [%s] at path %s of tag %s to number", n.value, pathText(n), n.niceTag())
	}
	return like(n, scalar(guess, n.value)), nil
}

func toString(c context, n *node) (*node, error) {
	if t := n.target(); t.kind == scalarKind {
		return like(n, str(t.value)), nil
	}
	s, err := c.e.text(n)
	return like(n, str(s)), err
}

func setPath(c context, x *expr) ([]*node, error) {
	return c.each(func(n *node) ([]*node, error) {
		paths, err := c.with(n).eval(x.args[0])
		if err != nil {
			return nil, err
		}
		values, err := c.with(n).eval(x.args[1])
		if err != nil {
			return nil, err
		}
		for _, p := range paths {
			at := n
			for _, k := range p.content {
				next, err := step(at, k, true, false)
				if err != nil || len(next) == 0 {
					return nil, err
				}
				at = next[0]
			}
			if len(values) > 0 {
				at.become(values[0].free())
			}
		}
		return one(n), nil
	})
}

func delPaths(c context, n *node, arg *expr) ([]*node, error) {
	lists, err := c.with(n).eval(arg)
	if err != nil {
		return nil, err
	}
	var doomed []*node
	for _, l := range lists {
		for _, p := range l.content {
			at := n
			for _, k := range p.content {
				next, err := step(at, k, true, false)
				if err != nil {
					return nil, err
				}
				if len(next) == 0 {
					at = nil
					break
				}
				at = next[0]
			}
			if at != nil {
				doomed = append(doomed, at)
			}
		}
	}
	for i := len(doomed) - 1; i >= 0; i-- {
		doomed[i].remove()
	}
	return one(n), nil
}
