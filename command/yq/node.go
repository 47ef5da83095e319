package yq

import (
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

type kind uint8

const (
	scalarKind kind = iota
	mapKind
	seqKind
	aliasKind
)

// node is a piece of a document.
type node struct {
	kind             kind
	tag, value       string
	style            yaml.Style
	anchor           string
	alias            *node
	head, line, foot string  // comments
	content          []*node // of a map: keys and values in turn
	parent           *node
	key              *node // in the parent: a map's key, or the index in a sequence as a scalar
	isKey            bool  // this is a map's key
	detached         bool  // not in its parent's content yet
	row, column      int
	doc              *document
	leading          string // comments before the first document's content, as written
}

// document is where a node came from.
type document struct {
	file             string
	fileIndex, index int
}

func scalar(tag, value string) *node { return &node{kind: scalarKind, tag: tag, value: value} }

func null() *node { return scalar("!!null", "null") }

func str(s string) *node { return scalar("!!str", s) }

func integer(n int) *node { return scalar("!!int", strconv.Itoa(n)) }

func boolean(b bool) *node { return scalar("!!bool", strconv.FormatBool(b)) }

func newMap() *node { return &node{kind: mapKind, tag: "!!map"} }

func newSeq() *node { return &node{kind: seqKind, tag: "!!seq"} }

// add appends an element to a sequence.
func (n *node) add(e *node) {
	e.parent, e.key, e.detached = n, integer(len(n.content)), false
	n.content = append(n.content, e)
}

// put appends a key and a value to a map.
func (n *node) put(k, v *node) {
	k.parent, k.isKey = n, true
	k.key = k
	v.parent, v.key, v.detached, v.isKey = n, k, false, false
	n.content = append(n.content, k, v)
}

// lookup finds the value of a key; nil if there is none.
func (n *node) lookup(key string) *node {
	for i := 0; i+1 < len(n.content); i += 2 {
		if n.content[i].value == key {
			return n.content[i+1]
		}
	}
	return nil
}

// target follows aliases.
func (n *node) target() *node {
	for i := 0; n.kind == aliasKind && n.alias != nil && i < maxDepth; i++ {
		n = n.alias
	}
	return n
}

// copy copies a node with all that it holds. The copy has the same place.
func (n *node) copy() *node {
	c := *n
	c.content = make([]*node, 0, len(n.content))
	for i := 0; i < len(n.content); i++ {
		e := n.content[i].copy()
		if n.kind == mapKind && i+1 < len(n.content) {
			i++
			c.put(e, n.content[i].copy())
		} else {
			c.add(e)
		}
	}
	if c.alias != nil {
		c.alias = n.alias
	}
	return &c
}

// free is a copy without a place.
func (n *node) free() *node {
	c := n.copy()
	c.parent, c.key, c.isKey, c.detached = nil, nil, false, false
	return c
}

// reindex numbers the elements of a sequence again.
func (n *node) reindex() {
	if n.kind == seqKind {
		for i, e := range n.content {
			e.key = integer(i)
		}
	}
}

// attach makes a node that a path made up a part of its parents.
func (n *node) attach() {
	p := n.parent
	if !n.detached || p == nil {
		return
	}
	n.detached = false
	p.attach()
	if p.kind == scalarKind {
		p.content, p.value, p.style = nil, "", 0
		if n.key.tag == "!!int" {
			p.kind, p.tag = seqKind, "!!seq"
		} else {
			p.kind, p.tag = mapKind, "!!map"
		}
	}
	p = p.target()
	if p.kind == mapKind {
		if len(p.content) == 0 {
			p.style = 0
		}
		p.put(n.key.free(), n)
		return
	}
	index, _ := strconv.Atoi(n.key.value)
	for len(p.content) < index && index <= maxIndex {
		p.add(null())
	}
	if len(p.content) == 0 {
		p.style = 0
	}
	p.add(n)
}

// maxIndex bounds a sequence that an assignment makes longer.
const maxIndex = 1 << 20

// remove takes a node out of its parent.
func (n *node) remove() {
	p := n.parent
	if p == nil || n.detached {
		return
	}
	for i, e := range p.content {
		if e != n {
			continue
		}
		if p.kind == mapKind {
			at := i &^ 1
			p.content = append(p.content[:at:at], p.content[at+2:]...)
		} else {
			p.content = append(p.content[:i:i], p.content[i+1:]...)
			p.reindex()
		}
		return
	}
}

// become takes over another node's value and what else it says, but keeps its place.
func (n *node) become(other *node) {
	n.attach()
	if n == other {
		return
	}
	c := other.copy()
	if n.kind != c.kind || n.tag != c.tag && n.kind == scalarKind {
		n.style = 0
	}
	if n.style == 0 {
		n.style = c.style
	}
	n.kind, n.tag, n.value, n.alias = c.kind, c.tag, c.value, c.alias
	n.content = nil
	for i := 0; i < len(c.content); i++ {
		if c.kind == mapKind && i+1 < len(c.content) {
			n.put(c.content[i], c.content[i+1])
			i++
		} else {
			n.add(c.content[i])
		}
	}
	n.anchor = c.anchor
	n.head, n.line, n.foot = or(c.head, n.head), or(c.line, n.line), or(c.foot, n.foot)
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// path lists the keys that lead to a node.
func (n *node) path() []*node {
	var p []*node
	for at := n; at != nil && at.key != nil; at = at.parent {
		p = append([]*node{at.key}, p...)
	}
	return p
}

// niceTag is the tag, short and never empty.
func (n *node) niceTag() string {
	if n.tag == "" || n.tag == "!" {
		return guessTag(n)
	}
	return n.tag
}

// guessTag finds the tag that a plain scalar has.
func guessTag(n *node) string {
	switch n.kind {
	case mapKind:
		return "!!map"
	case seqKind:
		return "!!seq"
	case aliasKind:
		return ""
	}
	y := yaml.Node{Kind: yaml.ScalarNode, Value: n.value, Style: n.style &^ yaml.TaggedStyle}
	return y.ShortTag()
}

// typ is the tag for comparisons: a tag of one's own counts as what the value looks like.
func (n *node) typ() string {
	t := n.niceTag()
	if strings.HasPrefix(t, "!!") {
		return t
	}
	return guessTag(n)
}

func (n *node) isNull() bool { return n.kind == scalarKind && n.niceTag() == "!!null" }

// truthy reports whether a node is neither null nor false.
func (n *node) truthy() bool {
	n = n.target()
	if n.kind != scalarKind {
		return true
	}
	switch n.typ() {
	case "!!null":
		return false
	case "!!bool":
		return strings.EqualFold(n.value, "true") || strings.EqualFold(n.value, "y") || strings.EqualFold(n.value, "yes") || strings.EqualFold(n.value, "on")
	}
	return true
}

// parseInt reads an integer in any notation of YAML; format says how to write one like it.
func parseInt(s string) (v int64, format func(int64) string, err error) {
	plain := strings.ReplaceAll(s, "_", "")
	if h, ok := strings.CutPrefix(strings.ToLower(plain), "0x"); ok {
		v, err = strconv.ParseInt(h, 16, 64)
		return v, func(n int64) string { return "0x" + strings.ToUpper(strconv.FormatInt(n, 16)) }, err
	}
	if o, ok := strings.CutPrefix(plain, "0o"); ok {
		v, err = strconv.ParseInt(o, 8, 64)
		return v, func(n int64) string { return "0o" + strconv.FormatInt(n, 8) }, err
	}
	v, err = strconv.ParseInt(strings.TrimPrefix(plain, "+"), 10, 64)
	return v, func(n int64) string { return strconv.FormatInt(n, 10) }, err
}

func parseFloat(s string) (float64, error) {
	switch strings.ToLower(strings.TrimPrefix(s, "+")) {
	case ".inf":
		return math.Inf(1), nil
	case "-.inf":
		return math.Inf(-1), nil
	case ".nan":
		return math.NaN(), nil
	}
	if strings.HasPrefix(strings.ToLower(s), "0x") || strings.HasPrefix(s, "0o") {
		v, _, err := parseInt(s)
		return float64(v), err
	}
	return strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
}

// fromYAML makes a node of the library's. anchors are those seen so far in the document.
func fromYAML(y *yaml.Node, doc *document, anchors map[*yaml.Node]*node) *node {
	n := &node{tag: y.Tag, value: y.Value, style: y.Style, anchor: y.Anchor, head: y.HeadComment, line: y.LineComment, foot: y.FootComment,
		row: y.Line, column: y.Column, doc: doc}
	anchors[y] = n
	switch y.Kind {
	case yaml.MappingNode:
		n.kind, n.tag = mapKind, y.ShortTag()
		for i := 0; i+1 < len(y.Content); i += 2 {
			n.put(fromYAML(y.Content[i], doc, anchors), fromYAML(y.Content[i+1], doc, anchors))
		}
	case yaml.SequenceNode:
		n.kind, n.tag = seqKind, y.ShortTag()
		for _, e := range y.Content {
			n.add(fromYAML(e, doc, anchors))
		}
	case yaml.AliasNode:
		n.kind, n.tag = aliasKind, ""
		n.alias = anchors[y.Alias]
	default:
		n.tag = y.ShortTag()
	}
	return n
}

// toYAML makes the library's node of ours.
func (n *node) toYAML() *yaml.Node {
	y := &yaml.Node{Tag: n.tag, Value: n.value, Style: n.style, Anchor: n.anchor, HeadComment: n.head, LineComment: n.line, FootComment: n.foot}
	if n.tag == "!!merge" {
		y.Tag = ""
	}
	switch n.kind {
	case mapKind:
		y.Kind = yaml.MappingNode
	case seqKind:
		y.Kind = yaml.SequenceNode
	case aliasKind:
		y.Kind = yaml.AliasNode
		if n.alias != nil {
			y.Alias = &yaml.Node{Anchor: n.alias.anchor}
		}
	default:
		y.Kind = yaml.ScalarNode
	}
	for _, e := range n.content {
		y.Content = append(y.Content, e.toYAML())
	}
	return y
}
