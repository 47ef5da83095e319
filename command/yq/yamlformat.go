package yq

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// docMark stands for a document separator in a document's leading comments.
const docMark = "$yqDocSeparator$"

var separatorLine = regexp.MustCompile(`^---(\s|$)`)

// leading takes the comments, blank lines and separators before the first content, which the library would move or drop.
func leadingContent(text string) (leading, rest string) {
	var b strings.Builder
	for text != "" {
		line, after, _ := strings.Cut(text, "\n")
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "#"):
			b.WriteString(strings.TrimRight(line, "\r") + "\n")
		case separatorLine.MatchString(line):
			tail := strings.TrimSpace(line[3:])
			if tail != "" && !strings.HasPrefix(tail, "#") {
				b.WriteString(docMark + "\n")
				return b.String(), line[3:] + "\n" + after
			}
			b.WriteString(docMark)
			if tail != "" {
				b.WriteString(" " + tail)
			}
			b.WriteString("\n")
		case trimmed == "":
			b.WriteString("\n")
		case strings.HasPrefix(line, "%YAML"):
			b.WriteString(line + "\n")
		default:
			return b.String(), text
		}
		text = after
	}
	return b.String(), ""
}

// decodeYAML reads all documents.
func decodeYAML(text string, doc *document) ([]*node, error) {
	text = strings.TrimPrefix(text, "\ufeff")
	leading, rest := leadingContent(text)
	dec := yaml.NewDecoder(strings.NewReader(rest))
	var docs []*node
	for i := 0; ; i++ {
		var y yaml.Node
		err := dec.Decode(&y)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		d := *doc
		d.index = i
		if y.Kind != yaml.DocumentNode || len(y.Content) == 0 {
			continue
		}
		if nested(y.Content[0], 0) {
			return nil, errors.New("document nested too deeply")
		}
		n := fromYAML(y.Content[0], &d, map[*yaml.Node]*node{})
		n.head, n.foot = or(n.head, y.HeadComment), or(n.foot, y.FootComment)
		if y.HeadComment != "" {
			n.head = y.HeadComment
		}
		if i == 0 {
			n.leading = leading
		}
		docs = append(docs, n)
	}
	if len(docs) == 0 && strings.TrimSpace(leading) != "" {
		n := scalar("!!null", "")
		d := *doc
		n.doc, n.leading = &d, leading
		docs = append(docs, n)
	}
	return docs, nil
}

func nested(y *yaml.Node, depth int) bool {
	if depth > maxDepth {
		return true
	}
	for _, e := range y.Content {
		if nested(e, depth+1) {
			return true
		}
	}
	return false
}

// encodeYAML renders a node as the library does.
func encodeYAML(n *node, indent int) (string, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(indent)
	y := n.toYAML()
	foot := y.FootComment
	y.FootComment = ""
	if err := enc.Encode(y); err != nil {
		return "", err
	}
	if err := enc.Close(); err != nil {
		return "", err
	}
	if foot != "" {
		b.WriteString("\n" + foot + "\n")
	}
	return b.String(), nil
}

// encodeYAMLResult renders a result: a scalar alone as its value.
func encodeYAMLResult(n *node, o *options) (string, error) {
	if n.kind == scalarKind && o.unwrap {
		return n.value + "\n", nil
	}
	c := *n
	c.tag = n.tag
	return encodeYAML(&c, o.indent)
}
