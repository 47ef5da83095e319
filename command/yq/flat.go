package yq

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// decodeProps reads a file of Java properties. Numbers in paths make sequences.
func decodeProps(text string) (*node, error) {
	root := newMap()
	comment := ""
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimLeft(strings.TrimRight(lines[i], "\r"), " \t\f")
		switch {
		case line == "":
			continue
		case line[0] == '#' || line[0] == '!':
			if comment != "" {
				comment += "\n"
			}
			comment += "# " + strings.TrimSpace(line[1:])
			continue
		}
		for oddBackslashes(line) && i+1 < len(lines) {
			i++
			line = line[:len(line)-1] + strings.TrimLeft(strings.TrimRight(lines[i], "\r"), " \t\f")
		}
		key, value := cutProperty(line)
		at := root
		for part := range strings.SplitSeq(key, ".") {
			k := str(part)
			if _, err := strconv.ParseUint(part, 10, 16); err == nil {
				k = scalar("!!int", part)
			}
			next, err := step(at, k, true, false)
			if err != nil || len(next) == 0 {
				return nil, fmt.Errorf("properties: %s conflicts with another key", key)
			}
			at = next[0]
		}
		v := str(value)
		at.become(v)
		if comment != "" && at.key != nil && at.parent.kind == mapKind {
			for j := 1; j < len(at.parent.content); j += 2 {
				if at.parent.content[j] == at {
					at.parent.content[j-1].head = comment
				}
			}
		}
		comment = ""
	}
	return root, nil
}

func oddBackslashes(s string) bool {
	n := 0
	for n < len(s) && s[len(s)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// cutProperty splits a line at the first separator and resolves escapes.
func cutProperty(line string) (key, value string) {
	i := 0
	for i < len(line) && strings.IndexByte("=: \t\f", line[i]) < 0 {
		if line[i] == '\\' {
			i++
		}
		i++
	}
	i = min(i, len(line))
	key = line[:i]
	rest := strings.TrimLeft(line[i:], " \t\f")
	if rest != "" && (rest[0] == '=' || rest[0] == ':') {
		rest = strings.TrimLeft(rest[1:], " \t\f")
	}
	return unescapeProperty(key), unescapeProperty(rest)
}

func unescapeProperty(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			if v, err := strconv.ParseUint(s[min(i+1, len(s)):min(i+5, len(s))], 16, 16); err == nil {
				b.WriteRune(rune(v))
				i += 4
			}
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// leafWalk calls f for each scalar beneath a node with the keys that lead to it.
func leafWalk(n *node, path []string, comment string, depth int, f func(path []string, leaf *node, comment string) error) error {
	if depth > maxDepth {
		return errors.New("document nested too deeply")
	}
	comment = or(n.target().head, comment)
	n = n.target()
	switch n.kind {
	case mapKind:
		for i := 0; i+1 < len(n.content); i += 2 {
			k, v := n.content[i], n.content[i+1]
			if err := leafWalk(v, append(path[:len(path):len(path)], k.value), or(v.line, or(v.head, k.head)), depth+1, f); err != nil {
				return err
			}
		}
		return nil
	case seqKind:
		for i, e := range n.content {
			if err := leafWalk(e, append(path[:len(path):len(path)], strconv.Itoa(i)), or(e.line, e.head), depth+1, f); err != nil {
				return err
			}
		}
		return nil
	}
	return f(path, n, comment)
}

var propEscape = strings.NewReplacer("\\", "\\\\", "\n", "\\n", "\r", "\\r", "\t", "\\t", "\f", "\\f")

func encodeProps(n *node, o *options) (string, error) {
	if t := n.target(); t.kind == scalarKind {
		return strings.ReplaceAll(n.leading, docMark+"\n", "") + t.value + "\n", nil
	}
	var b strings.Builder
	if n.leading != "" {
		b.WriteString(strings.ReplaceAll(n.leading, docMark+"\n", ""))
	}
	if n.leading == "" && n.head != "" {
		b.WriteString(n.head + "\n")
	}
	err := leafWalk(n, nil, "", 0, func(path []string, leaf *node, comment string) error {
		if comment != "" && comment != n.head {
			if b.Len() > 0 {
				b.WriteString("\n")
			}
			for line := range strings.SplitSeq(comment, "\n") {
				b.WriteString("# " + strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#")) + "\n")
			}
		}
		key := strings.Join(path, ".")
		if o.propsBrackets {
			key = bracketPath(path)
		}
		key = strings.NewReplacer(" ", `\ `, ":", `\:`, "=", `\=`).Replace(key)
		value := propEscape.Replace(leaf.value)
		if !o.unwrap && leaf.typ() == "!!str" && strings.Contains(value, " ") {
			value = `"` + value + `"`
		}
		b.WriteString(key + o.propsSeparator + value + "\n")
		return nil
	})
	return b.String(), err
}

func bracketPath(path []string) string {
	var b strings.Builder
	for i, p := range path {
		if _, err := strconv.Atoi(p); err == nil {
			b.WriteString("[" + p + "]")
			continue
		}
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(p)
	}
	return b.String()
}

func encodeShell(n *node, o *options) (string, error) {
	var b strings.Builder
	err := leafWalk(n, nil, "", 0, func(path []string, leaf *node, _ string) error {
		name := strings.Join(path, o.shellSeparator)
		name = strings.Map(func(r rune) rune {
			if r < 0x80 && isWord(byte(r)) {
				return r
			}
			return '_'
		}, name)
		if name == "" {
			name = "value"
		} else if isDigit(name[0]) {
			name = "_" + name
		}
		v := leaf.value
		if v != "" && strings.IndexFunc(v, func(r rune) bool {
			return r >= 0x80 || !isWord(byte(r)) && r != '-' && r != '.'
		}) >= 0 {
			v = "'" + strings.ReplaceAll(v, "'", `'"'"'`) + "'"
		}
		b.WriteString(name + "=" + v + "\n")
		return nil
	})
	return b.String(), err
}

// decodeCSV reads rows as maps of the names in the first.
func decodeCSV(text, separator string, parse bool) (*node, error) {
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	r.Comma, _ = utf8.DecodeRuneInString(separator)
	r.FieldsPerRecord = -1
	header, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := newSeq()
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return nil, err
		}
		m := newMap()
		for i, name := range header {
			v := str("")
			if i < len(row) {
				v = cell(row[i], parse)
			}
			m.put(str(name), v)
		}
		s.add(m)
	}
}

// cell is a field of a row, perhaps read as YAML.
func cell(text string, parse bool) *node {
	if parse {
		if docs, err := decodeYAML(text, &document{}); err == nil && len(docs) == 1 && docs[0].kind != aliasKind {
			n := docs[0]
			n.doc, n.leading, n.head, n.line, n.foot = nil, "", "", "", ""
			if n.kind == scalarKind && n.typ() == "!!str" {
				return str(text)
			}
			return n
		}
	}
	return str(text)
}

// encodeCSV renders a sequence of scalars, sequences or maps.
func encodeCSV(n *node, separator string) (string, error) {
	n = n.target()
	if n.kind == scalarKind {
		return n.value + "\n", nil
	}
	if n.kind != seqKind {
		return "", fmt.Errorf("csv encoding only works for arrays, got: %s", n.niceTag())
	}
	if len(n.content) == 0 {
		return "", nil
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Comma, _ = utf8.DecodeRuneInString(separator)
	var err error
	switch n.content[0].target().kind {
	case scalarKind:
		err = csvRow(w, n.content)
	case mapKind:
		err = csvMaps(w, n)
	default:
		for i, row := range n.content {
			if row.target().kind != seqKind {
				return "", fmt.Errorf("csv encoding only works for arrays of scalars (string/numbers/booleans), child[%d] is a %s", i, row.target().niceTag())
			}
			if err = csvRow(w, row.target().content); err != nil {
				break
			}
		}
	}
	if err != nil {
		return "", err
	}
	w.Flush()
	return b.String(), w.Error()
}

func csvRow(w *csv.Writer, cells []*node) error {
	row := make([]string, len(cells))
	for i, c := range cells {
		t := c.target()
		if t.kind != scalarKind {
			return fmt.Errorf("csv encoding only works for arrays of scalars (string/numbers/booleans), child[%d] is a %s", i, t.niceTag())
		}
		row[i] = t.value
	}
	return w.Write(row)
}

func csvMaps(w *csv.Writer, n *node) error {
	first := n.content[0].target()
	var header []*node
	for i := 0; i < len(first.content); i += 2 {
		header = append(header, first.content[i])
	}
	if err := csvRow(w, header); err != nil {
		return err
	}
	for i, row := range n.content {
		if row.target().kind != mapKind {
			return fmt.Errorf("csv object encoding only works for arrays of flat objects (string key => string/numbers/boolean value), child[%d] is a %s", i, row.target().niceTag())
		}
		cells := make([]*node, len(header))
		for j, h := range header {
			if cells[j] = row.target().lookup(h.value); cells[j] == nil {
				cells[j] = str("")
			}
		}
		if err := csvRow(w, cells); err != nil {
			return err
		}
	}
	return nil
}
