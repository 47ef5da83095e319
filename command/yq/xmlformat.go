package yq

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// element is an XML element while it is read.
type element struct {
	name     string
	attrs    *node // its map: attributes and children in order
	parts    []string
	comment  string
	children int
}

// decodeXML reads a document. No entity but the five of XML is known, so none can blow up or name a file.
func decodeXML(text string, o *options) (*node, error) {
	dec := xml.NewDecoder(strings.NewReader(text))
	dec.Strict = o.xmlStrict
	dec.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	root := &element{attrs: newMap()}
	stack := []*element{root}
	for {
		t, err := xmlToken(dec, o)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		top := stack[len(stack)-1]
		switch v := t.(type) {
		case xml.StartElement:
			if len(stack) > maxDepth {
				return nil, errors.New("document nested too deeply")
			}
			e := &element{name: xmlName(v.Name, o), attrs: newMap()}
			for _, a := range v.Attr {
				setKey(e.attrs, str(o.xmlAttribute+xmlName(a.Name, o)), str(a.Value))
			}
			e.comment, top.comment = top.comment, ""
			top.children++
			stack = append(stack, e)
		case xml.EndElement:
			if len(stack) == 1 {
				return nil, fmt.Errorf("bad document: unexpected </%s>", v.Name.Local)
			}
			stack = stack[:len(stack)-1]
			addElement(stack[len(stack)-1], top, o)
		case xml.CharData:
			if s := strings.TrimSpace(string(v)); s != "" {
				top.parts = append(top.parts, s)
			}
		case xml.Comment:
			c := "# " + strings.ReplaceAll(strings.TrimSpace(string(v)), "\n", "\n# ")
			if len(stack) == 1 && root.children == 0 {
				root.attrs.head = strings.TrimPrefix(root.attrs.head+"\n"+c, "\n")
			} else {
				top.comment = strings.TrimPrefix(top.comment+"\n"+c, "\n")
			}
		case xml.ProcInst:
			if !o.xmlSkipInstructions {
				top.attrs.put(str(o.xmlInstruction+v.Target), str(string(v.Inst)))
			}
		case xml.Directive:
			if !o.xmlSkipDirectives {
				top.attrs.put(str(o.xmlDirective), str(string(v)))
			}
		}
	}
	if len(stack) > 1 {
		return nil, fmt.Errorf("bad document: element <%s> isn't closed", stack[len(stack)-1].name)
	}
	if len(root.attrs.content) == 0 {
		return nil, nil
	}
	root.attrs.foot = root.comment
	plainTags(root.attrs)
	return root.attrs, nil
}

func xmlToken(dec *xml.Decoder, o *options) (xml.Token, error) {
	if o.xmlRaw {
		return dec.RawToken()
	}
	return dec.Token()
}

func xmlName(n xml.Name, o *options) string {
	if n.Space != "" && o.xmlKeepNamespace {
		return n.Space + ":" + n.Local
	}
	return n.Local
}

// addElement puts a finished element into its parent; several of one name become a sequence.
func addElement(parent, e *element, o *options) {
	var v *node
	switch {
	case len(e.attrs.content) == 0 && len(e.parts) == 0:
		v = scalar("!!null", "")
	case len(e.attrs.content) == 0 && len(e.parts) == 1:
		v = scalar("", e.parts[0])
		if v.tag = guessTag(v); v.tag == "!!str" || v.tag == "!!merge" {
			v.tag = "!!str"
		}
	case len(e.attrs.content) == 0:
		v = newSeq()
		for _, p := range e.parts {
			v.add(str(p))
		}
	default:
		v = e.attrs
		if len(e.parts) > 0 {
			var c *node = str(e.parts[0])
			if len(e.parts) > 1 {
				c = newSeq()
				for _, p := range e.parts {
					c.add(str(p))
				}
			}
			m := newMap()
			m.put(str(o.xmlContent), c)
			for i := 0; i+1 < len(v.content); i += 2 {
				m.put(v.content[i], v.content[i+1])
			}
			v = m
		}
	}
	have := parent.attrs.lookup(e.name)
	switch {
	case have == nil:
		k := str(e.name)
		k.head = e.comment
		parent.attrs.put(k, v)
	case have.kind == seqKind && have.tag == "!!xmlseq":
		have.add(v)
	default:
		s := newSeq()
		s.add(have.free())
		s.add(v)
		s.tag = "!!xmlseq"
		setKey(parent.attrs, str(e.name), s)
	}
}

// plainTags gives the sequences of repeated elements their real tag.
func plainTags(n *node) {
	if n.tag == "!!xmlseq" {
		n.tag = "!!seq"
	}
	for _, e := range n.content {
		plainTags(e)
	}
}

// xmlWriter renders a document.
type xmlWriter struct {
	b      bytes.Buffer
	o      *options
	indent string
}

func encodeXML(n *node, o *options) (string, error) {
	w := &xmlWriter{o: o, indent: strings.Repeat(" ", o.indent)}
	n = n.target()
	switch n.kind {
	case scalarKind:
		w.leading(n)
		w.b.WriteString(xmlEscape(n.value))
		return w.b.String(), nil
	case seqKind:
		return "", errors.New("cannot encode !!seq to XML - only maps can be encoded")
	}
	w.leading(n)
	written := false
	for i := 0; i+1 < len(n.content); i += 2 {
		k, v := n.content[i], n.content[i+1]
		switch {
		case strings.HasPrefix(k.value, o.xmlInstruction):
			w.b.WriteString("<?" + strings.TrimPrefix(k.value, o.xmlInstruction) + " " + v.value + "?>\n")
		case k.value == o.xmlDirective:
			w.b.WriteString("<!" + v.value + ">\n")
		default:
			if !written && n.leading == "" && n.head != "" {
				w.comment(n.head, "")
			}
			if c := or(k.head, v.head); c != "" && written {
				w.inline(c)
				w.b.WriteString("\n")
			} else {
				w.comment(c, "")
			}
			written = true
			if err := w.element(k.value, v, "", 0); err != nil {
				return "", err
			}
			w.inline(or(k.foot, v.foot))
		}
	}
	if n.foot != "" {
		w.inline(strings.TrimSpace(n.foot))
	}
	return w.b.String(), nil
}

func (w *xmlWriter) comment(c, at string) {
	c = strings.ReplaceAll(c, docMark, "")
	if strings.TrimSpace(c) == "" {
		return
	}
	lines := strings.Split(strings.TrimSpace(c), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(l), "#"), " ")
	}
	w.b.WriteString(at + "<!-- " + strings.ReplaceAll(strings.Join(lines, "\n"), "--", "- -") + " -->\n")
}

// inline writes a comment at the end of the line before, as the original does.
func (w *xmlWriter) inline(c string) {
	if c == "" {
		return
	}
	w.b.Truncate(len(bytes.TrimSuffix(w.b.Bytes(), []byte("\n"))))
	w.comment(c, "")
}

// leading writes the comments before the document.
func (w *xmlWriter) leading(n *node) {
	text := strings.TrimSuffix(strings.ReplaceAll(n.leading, docMark+"\n", ""), "\n")
	if text == "" {
		return
	}
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, strings.TrimPrefix(strings.TrimPrefix(line, "#"), " "))
	}
	text = strings.ReplaceAll(strings.Join(lines, "\n"), "--", "- -")
	if !strings.HasSuffix(text, "\n") {
		text += " "
	}
	w.b.WriteString("<!-- " + text + "-->\n")
}

func (w *xmlWriter) element(name string, v *node, at string, depth int) error {
	if depth > maxDepth {
		return errors.New("document nested too deeply")
	}
	v = v.target()
	switch v.kind {
	case seqKind:
		for _, e := range v.content {
			if c := e.target().head; c != "" && e.target().kind == mapKind {
				e = e.target().copy()
				e.line = c // after the opening tag
			}
			if err := w.element(name, e, at, depth+1); err != nil {
				return err
			}
		}
		return nil
	case scalarKind:
		text := v.value
		w.b.WriteString(at + "<" + name + ">" + xmlEscape(text))
		if v.line != "" {
			w.b.WriteString("<!-- " + strings.TrimSpace(strings.TrimPrefix(v.line, "#")) + " -->")
		}
		w.b.WriteString("</" + name + ">\n")
		return nil
	}
	return w.mapElement(name, v, at, depth)
}

func (w *xmlWriter) mapElement(name string, v *node, at string, depth int) error {
	w.b.WriteString(at + "<" + name)
	var content *node
	children := 0
	for i := 0; i+1 < len(v.content); i += 2 {
		k, e := v.content[i].value, v.content[i+1].target()
		switch {
		case k == w.o.xmlContent:
			content = e
		case strings.HasPrefix(k, w.o.xmlAttribute):
			if e.kind != scalarKind {
				return fmt.Errorf("cannot use %s as attribute, only scalars are supported", e.niceTag())
			}
			w.b.WriteString(" " + strings.TrimPrefix(k, w.o.xmlAttribute) + `="` + xmlEscape(e.value) + `"`)
		default:
			children++
		}
	}
	w.b.WriteString(">")
	if v.line != "" {
		w.b.WriteString("<!-- " + strings.TrimSpace(strings.TrimPrefix(v.line, "#")) + " -->")
	}
	if content != nil {
		w.b.WriteString(xmlEscape(content.value))
	}
	if children == 0 {
		w.b.WriteString("</" + name + ">\n")
		return nil
	}
	w.b.WriteString("\n")
	for i := 0; i+1 < len(v.content); i += 2 {
		k := v.content[i].value
		if k == w.o.xmlContent || strings.HasPrefix(k, w.o.xmlAttribute) {
			continue
		}
		w.inline(or(v.content[i].head, v.content[i+1].head))
		if err := w.element(k, v.content[i+1], at+w.indent, depth+1); err != nil {
			return err
		}
	}
	w.b.WriteString(at + "</" + name + ">\n")
	return nil
}

func xmlEscape(s string) string {
	var b bytes.Buffer
	xml.EscapeText(&b, []byte(s))
	return strings.NewReplacer("&#xA;", "\n", "&#x9;", "\t").Replace(b.String())
}
