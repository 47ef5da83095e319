package yq

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// decodeJSON reads all JSON values of a text, keeping the order of keys and the spelling of numbers.
func decodeJSON(text string, doc *document) ([]*node, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var docs []*node
	for i := 0; ; i++ {
		n, err := decodeJSONValue(dec, 0)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, fmt.Errorf("json: %w", err)
		}
		d := *doc
		d.index = i
		n.doc = &d
		docs = append(docs, n)
	}
}

func decodeJSONValue(dec *json.Decoder, depth int) (*node, error) {
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, errors.New("document nested too deeply")
	}
	switch v := t.(type) {
	case json.Delim:
		n := newSeq()
		if v == '{' {
			n = newMap()
		}
		for dec.More() {
			var key *node
			if v == '{' {
				k, err := dec.Token()
				if err != nil {
					return nil, unexpected(err)
				}
				key = str(k.(string))
			}
			e, err := decodeJSONValue(dec, depth+1)
			if err != nil {
				return nil, unexpected(err)
			}
			if key != nil {
				setKey(n, key, e)
			} else {
				n.add(e)
			}
		}
		_, err := dec.Token()
		return n, unexpected(err)
	case string:
		return str(v), nil
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			f, err := v.Float64()
			if err != nil {
				return nil, err
			}
			return scalar("!!float", floatText(f)), nil
		}
		return scalar("!!int", v.String()), nil
	case bool:
		return boolean(v), nil
	}
	return null(), nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func encodeJSONResult(n *node, o *options) (string, error) {
	if t := n.target(); t.kind == scalarKind && o.unwrap {
		return t.value + "\n", nil
	}
	var b bytes.Buffer
	if err := writeJSON(&b, n, strings.Repeat(" ", o.indent), "", 0); err != nil {
		return "", err
	}
	return b.String() + "\n", nil
}

// writeJSON renders a node.
func writeJSON(b *bytes.Buffer, n *node, indent, at string, depth int) error {
	if depth > maxDepth {
		return errors.New("document nested too deeply")
	}
	n = n.target()
	switch n.kind {
	case mapKind, seqKind:
		open, end := "[", "]"
		if n.kind == mapKind {
			open, end = "{", "}"
		}
		if len(n.content) == 0 {
			b.WriteString(open + end)
			return nil
		}
		b.WriteString(open)
		inner := at + indent
		for i, e := range n.content {
			if n.kind == mapKind && i%2 == 1 {
				b.WriteByte(':')
				if indent != "" {
					b.WriteByte(' ')
				}
			} else {
				if i > 0 {
					b.WriteByte(',')
				}
				if indent != "" {
					b.WriteString("\n" + inner)
				}
			}
			if n.kind == mapKind && i%2 == 0 {
				b.WriteString(jsonString(e.target().value))
				continue
			}
			if err := writeJSON(b, e, indent, inner, depth+1); err != nil {
				return err
			}
		}
		if indent != "" {
			b.WriteString("\n" + at)
		}
		b.WriteString(end)
		return nil
	}
	s, err := jsonScalar(n)
	b.WriteString(s)
	return err
}

func jsonScalar(n *node) (string, error) {
	switch n.typ() {
	case "!!null":
		return "null", nil
	case "!!bool":
		return strconv.FormatBool(n.truthy()), nil
	case "!!int":
		v, _, err := parseInt(n.value)
		if err != nil {
			if _, err2 := parseFloat(n.value); err2 == nil {
				return strings.TrimPrefix(n.value, "+"), nil // too large for the machine, not for JSON
			}
			return "", err
		}
		return strconv.FormatInt(v, 10), nil
	case "!!float":
		f, err := parseFloat(n.value)
		if err != nil {
			return "", err
		}
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return "", fmt.Errorf("json: unsupported value: %v", f)
		}
		if json.Valid([]byte(n.value)) {
			return n.value, nil
		}
		out, err := json.Marshal(f)
		return string(out), err
	}
	return jsonString(n.value), nil
}

func jsonString(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.Encode(s)
	return strings.TrimSuffix(b.String(), "\n")
}
