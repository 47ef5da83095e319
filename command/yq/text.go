package yq

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func text1(f func(string) string) function {
	return mapped(func(_ context, n *node) (*node, error) {
		t := n.target()
		if t.kind != scalarKind || t.typ() != "!!str" {
			return nil, fmt.Errorf("cannot change case with %s, can only operate on strings. ", t.niceTag())
		}
		return like(n, str(f(t.value))), nil
	})
}

func split(c context, n *node, arg *expr) ([]*node, error) {
	list, err := c.with(n).eval(arg)
	if err != nil {
		return nil, err
	}
	t := n.target()
	if t.isNull() {
		return nil, nil
	}
	if t.kind != scalarKind || t.typ() != "!!str" {
		return nil, fmt.Errorf("cannot split %s, can only split strings", t.niceTag())
	}
	sep := ""
	if len(list) > 0 {
		sep = list[0].value
	}
	s := newSeq()
	if t.value != "" {
		for part := range strings.SplitSeq(t.value, sep) {
			s.add(str(part))
		}
	}
	return one(s), nil
}

func join(c context, n *node, arg *expr) ([]*node, error) {
	list, err := c.with(n).eval(arg)
	if err != nil {
		return nil, err
	}
	t := n.target()
	if t.kind != seqKind {
		return nil, fmt.Errorf("cannot join with %s, can only join arrays of scalars", t.niceTag())
	}
	sep := ""
	if len(list) > 0 {
		sep = list[0].value
	}
	parts := make([]string, len(t.content))
	for i, e := range t.content {
		if !e.isNull() {
			parts[i] = e.target().value
		}
	}
	return one(str(strings.Join(parts, sep))), nil
}

// maxRegexp bounds a regular expression's text.
const maxRegexp = 64 << 10

// pattern evaluates a regular expression and its flags.
func (c context) pattern(n *node, args []*expr) (re *regexp.Regexp, global bool, err error) {
	var texts [2]string
	for i, a := range args {
		list, err := c.with(n).eval(a)
		if err != nil {
			return nil, false, err
		}
		if len(list) > 0 {
			texts[i] = list[0].value
		}
	}
	flags := ""
	for _, f := range texts[1] {
		switch f {
		case 'g':
			global = true
		case 'i', 's':
			flags += string(f)
		case 'x':
			return nil, false, fmt.Errorf("unrecognised match params '%s', please see docs at https://mikefarah.gitbook.io/yq/operators/string-operators", texts[1])
		}
	}
	s := texts[0]
	if flags != "" {
		s = "(?" + flags + ")" + s
	}
	if len(s) > maxRegexp {
		return nil, false, errors.New("regular expression too long")
	}
	re, err = regexp.Compile(s)
	return re, global, err
}

func (c context) eachText(f func(n *node, s string) ([]*node, error)) ([]*node, error) {
	return c.each(func(n *node) ([]*node, error) {
		t := n.target()
		if t.kind != scalarKind || t.typ() != "!!str" {
			return nil, fmt.Errorf("cannot match with %s, can only match strings. Hint: Most often you'll want to use '|=' over '=' for this operation", t.niceTag())
		}
		return f(n, t.value)
	})
}

func test(c context, x *expr) ([]*node, error) {
	return c.eachText(func(n *node, s string) ([]*node, error) {
		re, _, err := c.pattern(n, x.args)
		if err != nil {
			return nil, err
		}
		return one(boolean(re.MatchString(s))), nil
	})
}

func match(c context, x *expr) ([]*node, error) {
	return c.eachText(func(n *node, s string) ([]*node, error) {
		re, global, err := c.pattern(n, x.args)
		if err != nil {
			return nil, err
		}
		limit := 1
		if global {
			limit = -1
		}
		var out []*node
		for _, at := range re.FindAllStringSubmatchIndex(s, limit) {
			m := found(s, at[0], at[1])
			captures := newSeq()
			for i, name := range re.SubexpNames()[1:] {
				g := found(s, at[2*i+2], at[2*i+3])
				if name != "" {
					g.put(str("name"), str(name))
				}
				captures.add(g)
			}
			m.put(str("captures"), captures)
			out = append(out, m)
		}
		return out, nil
	})
}

// found describes a piece of a text that matched.
func found(s string, from, to int) *node {
	m := newMap()
	if from < 0 {
		m.put(str("string"), null())
		m.put(str("offset"), integer(-1))
		m.put(str("length"), integer(0))
		return m
	}
	m.put(str("string"), str(s[from:to]))
	m.put(str("offset"), integer(from))
	m.put(str("length"), integer(to-from))
	return m
}

func capture(c context, x *expr) ([]*node, error) {
	return c.eachText(func(n *node, s string) ([]*node, error) {
		re, global, err := c.pattern(n, x.args)
		if err != nil {
			return nil, err
		}
		limit := 1
		if global {
			limit = -1
		}
		var out []*node
		for _, at := range re.FindAllStringSubmatchIndex(s, limit) {
			m := newMap()
			for i, name := range re.SubexpNames()[1:] {
				if name == "" {
					continue
				}
				if at[2*i+2] < 0 {
					m.put(str(name), null())
				} else {
					m.put(str(name), str(s[at[2*i+2]:at[2*i+3]]))
				}
			}
			out = append(out, m)
		}
		return out, nil
	})
}

func sub(c context, x *expr) ([]*node, error) {
	return c.each(func(n *node) ([]*node, error) {
		t := n.target()
		if t.kind != scalarKind || t.typ() != "!!str" {
			return nil, fmt.Errorf("cannot substitute with %s, can only substitute strings. Hint: Most often you'll want to use '|=' over '=' for this operation", t.niceTag())
		}
		re, _, err := c.pattern(n, x.args[:1])
		if err != nil {
			return nil, err
		}
		list, err := c.with(n).eval(x.args[1])
		if err != nil {
			return nil, err
		}
		with := ""
		if len(list) > 0 {
			with = list[0].value
		}
		r := like(n, str(re.ReplaceAllString(t.value, with)))
		r.tag = t.tag
		return one(r), nil
	})
}

func comment(of func(n *node) string) function {
	return mapped(func(_ context, n *node) (*node, error) {
		var lines []string
		for line := range strings.SplitSeq(of(n), "\n") {
			line = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "#"), " ")
			lines = append(lines, line)
		}
		return str(strings.TrimSuffix(strings.Join(lines, "\n"), "\n")), nil
	})
}

// leadingOr is the comment before a node, that before the whole document included.
func (n *node) leadingOr() string {
	if n.leading != "" {
		return strings.ReplaceAll(n.leading, docMark+"\n", "")
	}
	if n.head == "" && n.key != nil && n.parent != nil && n.parent.kind == mapKind && !n.isKey {
		return n.head
	}
	return n.head
}

// Dates.

func (c context) layout() string {
	if c.e.dtf == "" {
		return time.RFC3339
	}
	return c.e.dtf
}

func (c context) parseTime(s string) (time.Time, error) {
	t, err := time.Parse(c.layout(), s)
	if err != nil && c.e.dtf == "" {
		for _, l := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02"} {
			if t, err2 := time.Parse(l, s); err2 == nil {
				return t, nil
			}
		}
	}
	return t, err
}

func (c context) formatTime(t time.Time) string { return t.Format(c.layout()) }

func now(c context, _ *node) (*node, error) {
	return scalar("!!timestamp", c.e.t.Now().In(c.e.t.Location()).Format(time.RFC3339)), nil
}

func fromUnix(c context, n *node) (*node, error) {
	t := n.target()
	if t.kind != scalarKind || !isNumber(t.typ()) {
		return nil, fmt.Errorf("from_unix only works on numbers, found %s instead", t.niceTag())
	}
	f, err := parseFloat(t.value)
	if err != nil || math.Abs(f) > 1e12 {
		return nil, fmt.Errorf("from_unix: %s is no time", t.value)
	}
	sec, frac := math.Modf(f)
	return like(n, scalar("!!timestamp", c.formatTime(time.Unix(int64(sec), int64(frac*1e9)).In(c.e.t.Location())))), nil
}

func toUnix(c context, n *node) (*node, error) {
	t, err := c.parseTime(n.target().value)
	if err != nil {
		return nil, err
	}
	return like(n, scalar("!!int", strconv.FormatInt(t.Unix(), 10))), nil
}

func formatDate(c context, n *node, arg *expr) ([]*node, error) {
	list, err := c.with(n).eval(arg)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	t, err := c.parseTime(n.target().value)
	if err != nil {
		return nil, fmt.Errorf("could not parse datetime of [%s] %s using layout [%s]: %w", pathText(n), n.target().value, c.layout(), err)
	}
	s := t.Format(list[0].value)
	r := scalar("", s)
	if r.tag = guessTag(r); r.tag != "!!int" && r.tag != "!!timestamp" && r.tag != "!!float" {
		r.tag = "!!str"
	}
	return one(like(n, r)), nil
}

func inZone(c context, n *node, arg *expr) ([]*node, error) {
	list, err := c.with(n).eval(arg)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	t, err := c.parseTime(n.target().value)
	if err != nil {
		return nil, err
	}
	r := scalar(n.target().tag, c.formatTime(t.In(c.e.t.Zone(list[0].value))))
	return one(like(n, r)), nil
}

func withDTF(c context, x *expr) ([]*node, error) {
	list, err := c.eval(x.args[0])
	if err != nil || len(list) == 0 {
		return nil, err
	}
	old := c.e.dtf
	c.e.dtf = list[0].value
	defer func() { c.e.dtf = old }()
	return c.eval(x.args[1])
}
