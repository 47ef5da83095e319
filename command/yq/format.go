package yq

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// options are those of the formats.
type options struct {
	indent                                 int
	unwrap                                 bool
	csvSeparator                           string
	csvParse, tsvParse                     bool
	propsSeparator                         string
	propsBrackets                          bool
	shellSeparator                         string
	xmlAttribute, xmlContent, xmlDirective string
	xmlInstruction                         string
	xmlSkipInstructions, xmlSkipDirectives bool
	xmlStrict, xmlKeepNamespace, xmlRaw    bool
}

func defaults() *options {
	return &options{indent: 2, unwrap: true, csvSeparator: ",", csvParse: true, tsvParse: true, propsSeparator: " = ", shellSeparator: "_", xmlAttribute: "+@", xmlContent: "+content",
		xmlDirective: "+directive", xmlInstruction: "+p_", xmlKeepNamespace: true, xmlRaw: true}
}

// formatNames are the names of formats on the command line.
var formatNames = map[string]string{"a": "auto", "auto": "auto", "yaml": "yaml", "y": "yaml", "yml": "yaml", "json": "json", "j": "json", "props": "props", "p": "props", "properties": "props",
	"csv": "csv", "c": "csv", "tsv": "tsv", "t": "tsv", "xml": "xml", "x": "xml", "base64": "base64", "uri": "uri", "toml": "toml", "shell": "shell", "s": "shell", "sh": "sh"}

// byExtension finds a format by a file's name.
func byExtension(name string) string {
	ext := strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
	switch ext {
	case "yaml", "yml", "json", "props", "properties", "csv", "tsv", "xml", "toml":
		return formatNames[ext]
	}
	if ext == "toml" {
		return "toml"
	}
	return "yaml"
}

// decodeFormat reads all documents of a text.
func decodeFormat(format, text string, doc *document, o *options) ([]*node, error) {
	single := func(n *node, err error) ([]*node, error) {
		if err != nil || n == nil {
			return nil, err
		}
		d := *doc
		n.doc = &d
		return []*node{n}, nil
	}
	switch format {
	case "yaml":
		return decodeYAML(text, doc)
	case "json":
		return decodeJSON(text, doc)
	case "props":
		return single(decodeProps(text))
	case "csv":
		return single(decodeCSV(text, o.csvSeparator, o.csvParse))
	case "tsv":
		return single(decodeCSV(text, "\t", o.tsvParse))
	case "xml":
		return single(decodeXML(text, o))
	case "toml":
		return single(decodeTOML(text))
	case "base64":
		b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(pad(strings.TrimSpace(text))))
		return single(str(string(b)), err)
	case "uri":
		s, err := url.QueryUnescape(text)
		return single(str(s), err)
	}
	return nil, fmt.Errorf("unknown input format %s", format)
}

// exploded is the node with its aliases and merge keys dissolved, for formats that have none; a copy if there are any.
func (n *node) exploded() (*node, error) {
	if !n.aliased(0) {
		return n, nil
	}
	c := n.copy()
	budget := maxExploded
	return c, c.explode(0, &budget)
}

func (n *node) aliased(depth int) bool {
	if n.kind == aliasKind || n.tag == "!!merge" || depth > maxDepth {
		return true
	}
	for _, e := range n.content {
		if e.aliased(depth + 1) {
			return true
		}
	}
	return false
}

// pad completes base64 whose padding is missing.
func pad(s string) string {
	if n := len(s) % 4; n > 0 && !strings.HasSuffix(s, "=") {
		s += strings.Repeat("=", 4-n)
	}
	return s
}

// encodeFormat renders one result.
func encodeFormat(format string, n *node, o *options) (string, error) {
	if format == "yaml" {
		return encodeYAMLResult(n, o)
	}
	n, err := n.exploded()
	if err != nil {
		return "", err
	}
	switch format {
	case "json":
		return encodeJSONResult(n, o)
	case "props":
		return encodeProps(n, o)
	case "csv":
		return encodeCSV(n, o.csvSeparator)
	case "tsv":
		return encodeCSV(n, "\t")
	case "xml":
		return encodeXML(n, o)
	case "toml":
		return encodeTOML(n)
	case "shell":
		return encodeShell(n, o)
	case "base64":
		if t := n.target(); t.kind != scalarKind || t.typ() != "!!str" {
			return "", fmt.Errorf("cannot encode %s as base64, can only operate on strings. Please first pipe through another encoding operator to convert the value to a string", t.niceTag())
		}
		return base64.StdEncoding.EncodeToString([]byte(n.target().value)), nil
	case "uri":
		if t := n.target(); t.kind != scalarKind || t.typ() != "!!str" {
			return "", fmt.Errorf("cannot encode %s as URI, can only operate on strings. Please first pipe through another encoding operator to convert the value to a string", t.niceTag())
		}
		return url.QueryEscape(n.target().value), nil
	case "sh":
		if t := n.target(); t.kind != scalarKind {
			return "", fmt.Errorf("cannot encode %s as shell string, can only operate on strings. Please first pipe through another encoding operator to convert the value to a string", t.niceTag())
		}
		return shellQuote(n.target().value), nil
	}
	return "", fmt.Errorf("unknown output format %s", format)
}

// shellQuote quotes what isn't safe, as @sh does.
func shellQuote(s string) string {
	var b strings.Builder
	quoted := false
	for _, r := range s {
		safe := r < 0x80 && (isWord(byte(r)) || strings.ContainsRune("-./:@%+=,", r))
		switch {
		case r == '\'':
			if quoted {
				b.WriteByte('\'')
				quoted = false
			}
			b.WriteString(`\'`)
			continue
		case !safe && !quoted:
			b.WriteByte('\'')
			quoted = true
		}
		b.WriteRune(r)
	}
	if quoted {
		b.WriteByte('\'')
	}
	return b.String()
}

// makeFormats makes the table of the operators @json and so on.
func makeFormats() map[string]func(context, *node) (*node, error) {
	m := map[string]func(context, *node) (*node, error){}
	for _, f := range []string{"json", "yaml", "props", "csv", "tsv", "xml", "base64", "uri", "sh"} {
		m["@"+f] = func(_ context, n *node) (*node, error) {
			o := defaults()
			if f == "json" {
				o.indent = 0
			}
			s, err := encodeFormat(f, n, o)
			if f == "json" || f == "csv" || f == "tsv" {
				s = strings.TrimSuffix(s, "\n")
			}
			return like2(n, str(s)), err
		}
		m["@"+f+"d"] = func(_ context, n *node) (*node, error) { return decodeNode(f, n) }
	}
	return m
}

// like2 is like without comments: they don't belong to the text of an encoded value.
func like2(of, n *node) *node {
	n.parent, n.key, n.doc = of.parent, of.key, of.doc
	return n
}

func decodeNode(format string, n *node) (*node, error) {
	t := n.target()
	if t.isNull() || t.kind != scalarKind {
		if t.isNull() {
			return nil, nil
		}
		return nil, fmt.Errorf("cannot decode %s", t.niceTag())
	}
	docs, err := decodeFormat(format, t.value, &document{}, defaults())
	if err != nil {
		return nil, err
	}
	if len(docs) == 0 {
		if format == "yaml" || format == "json" {
			return nil, errors.New("EOF")
		}
		return null(), nil
	}
	return like2(n, docs[0]), nil
}

// encoded makes to_json and so on; an argument is the indentation.
func encoded(format string) function {
	return function{0, 1, func(c context, x *expr) ([]*node, error) {
		return c.each(func(n *node) ([]*node, error) {
			o := defaults()
			if len(x.args) > 0 {
				list, err := c.with(n).eval(x.args[0])
				if err != nil {
					return nil, err
				}
				if len(list) > 0 {
					v, _, err := parseInt(list[0].value)
					if err != nil {
						return nil, err
					}
					o.indent = int(min(max(v, 0), maxIndent))
				}
			}
			o.unwrap = format != "json"
			s, err := encodeFormat(format, n, o)
			if o.indent == 0 {
				s = strings.TrimSuffix(s, "\n")
			}
			return one(like2(n, str(s))), err
		})
	}}
}

// maxIndent bounds indentation.
const maxIndent = 100

func decoded(format string) function {
	return mapped(func(_ context, n *node) (*node, error) { return decodeNode(format, n) })
}
