package yq

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

var styles = map[string]yaml.Style{"": 0, "double": yaml.DoubleQuotedStyle, "single": yaml.SingleQuotedStyle, "literal": yaml.LiteralStyle,
	"folded": yaml.FoldedStyle, "flow": yaml.FlowStyle, "tagged": yaml.TaggedStyle}

func styleName(s yaml.Style) string {
	for name, v := range styles {
		if v == s {
			return name
		}
	}
	return "<unknown>"
}

// assignAttribute evaluates assignments of style, tag, comments, anchors and aliases.
func (c context) assignAttribute(x *expr) ([]*node, error) {
	for _, n := range c.nodes {
		lefts, err := c.with(n).eval(x.left)
		if err != nil {
			return nil, err
		}
		for _, l := range lefts {
			from := n
			if x.optional {
				from = l
			}
			right, err := c.with(from).eval(x.right)
			if err != nil {
				return nil, err
			}
			if len(right) == 0 {
				continue
			}
			if err := l.setAttribute(x.text, right[0].value); err != nil {
				return nil, err
			}
		}
	}
	return c.nodes, nil
}

func (n *node) setAttribute(name, value string) error {
	n.attach()
	comment := func() string {
		if value == "" {
			return ""
		}
		return "# " + strings.ReplaceAll(strings.TrimPrefix(value, "# "), "\n", "\n# ")
	}
	switch name {
	case "style":
		s, ok := styles[value]
		if !ok {
			return fmt.Errorf("unknown style %s", value)
		}
		n.style = s
	case "tag", "type":
		n.tag = value
	case "anchor":
		n.anchor = value
	case "alias":
		n.kind, n.value, n.tag, n.content = aliasKind, value, "", nil
		n.alias = n.root().anchored(value, 0)
	case "linecomment":
		n.line = comment()
	case "headcomment":
		n.commented().head = comment()
		if n.parent == nil {
			n.leading = ""
		}
	case "footcomment":
		n.commented().foot = comment()
	case "comments":
		n.line = comment()
		n.commented().head, n.commented().foot = comment(), comment()
		n.leading = ""
	}
	return nil
}

// commented is the node that a comment before or after this one belongs to: a map's key rather than its value.
func (n *node) commented() *node { return n }

func (n *node) root() *node {
	for n.parent != nil {
		n = n.parent
	}
	return n
}

// anchored finds the node with an anchor.
func (n *node) anchored(name string, depth int) *node {
	if n.anchor == name && n.kind != aliasKind {
		return n
	}
	if depth > maxDepth {
		return nil
	}
	for _, e := range n.content {
		if found := e.anchored(name, depth+1); found != nil {
			return found
		}
	}
	return nil
}
