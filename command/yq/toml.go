package yq

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// tomlReader reads TOML 1.0.
type tomlReader struct {
	s    string
	at   int
	root *node
	made map[*node]bool // tables that a header defined
}

func decodeTOML(text string) (*node, error) {
	r := &tomlReader{s: strings.ReplaceAll(text, "\r\n", "\n"), root: newMap(), made: map[*node]bool{}}
	table := r.root
	for {
		r.skip(true)
		if r.at >= len(r.s) {
			return r.root, nil
		}
		var err error
		if r.s[r.at] == '[' {
			table, err = r.header()
		} else {
			err = r.pair(table, 0)
		}
		if err == nil {
			err = r.endLine()
		}
		if err != nil {
			return nil, fmt.Errorf("toml: line %d: %w", 1+strings.Count(r.s[:min(r.at, len(r.s))], "\n"), err)
		}
	}
}

// skip goes over blanks and comments, with lines also over line ends.
func (r *tomlReader) skip(lines bool) {
	for r.at < len(r.s) {
		switch c := r.s[r.at]; {
		case c == ' ' || c == '\t' || lines && c == '\n':
			r.at++
		case c == '#':
			for r.at < len(r.s) && r.s[r.at] != '\n' {
				r.at++
			}
		default:
			return
		}
	}
}

func (r *tomlReader) endLine() error {
	r.skip(false)
	if r.at < len(r.s) && r.s[r.at] != '\n' {
		return fmt.Errorf("expected newline but got %q", r.s[r.at])
	}
	return nil
}

func (r *tomlReader) take(s string) bool {
	if strings.HasPrefix(r.s[r.at:], s) {
		r.at += len(s)
		return true
	}
	return false
}

// header reads "[a.b]" or "[[a.b]]" and returns its table.
func (r *tomlReader) header() (*node, error) {
	array := r.take("[[")
	if !array {
		r.take("[")
	}
	keys, err := r.keys()
	if err != nil {
		return nil, err
	}
	if array && !r.take("]]") || !array && !r.take("]") {
		return nil, errors.New("expected ']'")
	}
	at := r.root
	for i, k := range keys {
		last := i == len(keys)-1
		next := at.lookup(k)
		switch {
		case next == nil && last && array:
			next = newSeq()
			at.put(str(k), next)
		case next == nil:
			next = newMap()
			at.put(str(k), next)
		}
		if last && array {
			if next.kind != seqKind {
				return nil, fmt.Errorf("key %s is no array", k)
			}
			t := newMap()
			next.add(t)
			return t, nil
		}
		if next.kind == seqKind && len(next.content) > 0 {
			next = next.content[len(next.content)-1]
		}
		if next.kind != mapKind {
			return nil, fmt.Errorf("key %s is no table", k)
		}
		at = next
	}
	if r.made[at] {
		return nil, fmt.Errorf("table %s already exists", strings.Join(keys, "."))
	}
	r.made[at] = true
	return at, nil
}

// keys reads a dotted key.
func (r *tomlReader) keys() (keys []string, err error) {
	for {
		r.skip(false)
		if r.at >= len(r.s) {
			return nil, errors.New("unexpected end of file")
		}
		switch c := r.s[r.at]; {
		case c == '"' || c == '\'':
			k, err := r.str()
			if err != nil {
				return nil, err
			}
			keys = append(keys, k)
		default:
			start := r.at
			for r.at < len(r.s) && (isWord(r.s[r.at]) || r.s[r.at] == '-') {
				r.at++
			}
			if r.at == start {
				return nil, fmt.Errorf("invalid character at start of key: %c", c)
			}
			keys = append(keys, r.s[start:r.at])
		}
		if len(keys) > maxDepth {
			return nil, errors.New("key too long")
		}
		r.skip(false)
		if !r.take(".") {
			return keys, nil
		}
	}
}

func (r *tomlReader) pair(table *node, depth int) error {
	keys, err := r.keys()
	if err != nil {
		return err
	}
	if !r.take("=") {
		return errors.New("expected '=' after a key")
	}
	r.skip(false)
	v, err := r.value(depth)
	if err != nil {
		return err
	}
	for i, k := range keys {
		next := table.lookup(k)
		if i == len(keys)-1 {
			if next != nil {
				return fmt.Errorf("key %s is already defined", k)
			}
			table.put(str(k), v)
			return nil
		}
		if next == nil {
			next = newMap()
			table.put(str(k), next)
		}
		if next.kind != mapKind {
			return fmt.Errorf("key %s is no table", k)
		}
		table = next
	}
	return nil
}

var tomlNumber = regexp.MustCompile(`^[+-]?(0x[0-9a-fA-F_]+|0o[0-7_]+|0b[01_]+|[0-9][0-9_]*)$`)

func (r *tomlReader) value(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, errors.New("nested too deeply")
	}
	if r.at >= len(r.s) {
		return nil, errors.New("unexpected end of file")
	}
	switch r.s[r.at] {
	case '"', '\'':
		s, err := r.str()
		return str(s), err
	case '[':
		return r.array(depth)
	case '{':
		return r.inline(depth)
	}
	start := r.at
	for r.at < len(r.s) && strings.IndexByte(",]}\n#\t", r.s[r.at]) < 0 && !(r.s[r.at] == ' ' && !r.dateFollows(start)) {
		r.at++
	}
	text := strings.TrimSpace(r.s[start:r.at])
	switch {
	case text == "true" || text == "false":
		return scalar("!!bool", text), nil
	case tomlNumber.MatchString(text):
		if b, ok := strings.CutPrefix(strings.ReplaceAll(text, "_", ""), "0b"); ok {
			v, err := strconv.ParseInt(b, 2, 64)
			return scalar("!!int", strconv.FormatInt(v, 10)), err
		}
		return scalar("!!int", text), nil
	case strings.HasSuffix(text, "inf"):
		return scalar("!!float", strings.TrimSuffix(text, "inf")+".inf"), nil
	case strings.HasSuffix(text, "nan"):
		return scalar("!!float", ".nan"), nil
	}
	if _, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64); err == nil {
		return scalar("!!float", strings.ReplaceAll(text, "_", "")), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02"} {
		if _, err := time.Parse(layout, text); err == nil {
			return scalar("!!timestamp", text), nil
		}
	}
	if _, err := time.Parse("15:04:05", text); err == nil {
		return str(text), nil
	}
	return nil, fmt.Errorf("invalid value %q", text)
}

// dateFollows reports whether a blank stands between a date and its time.
func (r *tomlReader) dateFollows(start int) bool {
	return r.at-start == len("2006-01-02") && r.at+1 < len(r.s) && isDigit(r.s[r.at+1]) && r.s[start+4] == '-'
}

func (r *tomlReader) array(depth int) (*node, error) {
	r.at++
	s := newSeq()
	s.style = 0
	for {
		r.skip(true)
		if r.take("]") {
			return s, nil
		}
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		s.add(v)
		r.skip(true)
		if !r.take(",") {
			if r.take("]") {
				return s, nil
			}
			return nil, errors.New("array not closed")
		}
	}
}

func (r *tomlReader) inline(depth int) (*node, error) {
	r.at++
	m := newMap()
	r.skip(false)
	if r.take("}") {
		return m, nil
	}
	for {
		if err := r.pair(m, depth+1); err != nil {
			return nil, err
		}
		r.skip(false)
		if r.take("}") {
			return m, nil
		}
		if !r.take(",") {
			return nil, errors.New("inline table not closed")
		}
	}
}

// str reads a string in any of the four notations.
func (r *tomlReader) str() (string, error) {
	q := r.s[r.at : r.at+1]
	if r.take(q + q + q) {
		r.take("\n")
		end := strings.Index(r.s[r.at:], q+q+q)
		if q == `"` {
			for i := r.at; end >= 0; i = r.at + end {
				if i = r.at + end; !oddBackslashes(r.s[r.at:i]) {
					break
				}
				more := strings.Index(r.s[i+1:], q+q+q)
				if more < 0 {
					end = -1
					break
				}
				end += 1 + more
			}
		}
		if end < 0 {
			return "", errors.New("string not closed")
		}
		for strings.HasPrefix(r.s[r.at+end+3:], q) {
			end++
		}
		s := r.s[r.at : r.at+end]
		r.at += end + 3
		if q == "'" {
			return s, nil
		}
		return tomlUnescape(s, true)
	}
	r.at++
	start := r.at
	for ; r.at < len(r.s) && r.s[r.at] != q[0] && r.s[r.at] != '\n'; r.at++ {
		if r.s[r.at] == '\\' && q == `"` {
			r.at++
		}
	}
	if r.at >= len(r.s) || r.s[r.at] != q[0] {
		return "", errors.New("string not closed")
	}
	s := r.s[start:r.at]
	r.at++
	if q == "'" {
		return s, nil
	}
	return tomlUnescape(s, false)
}

func tomlUnescape(s string, lines bool) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			return "", errors.New("incomplete escape")
		}
		switch c := s[i]; {
		case strings.IndexByte("btnfr\"\\e", c) >= 0:
			b.WriteByte("\b\t\n\f\r\"\\\x1b"[strings.IndexByte("btnfr\"\\e", c)])
		case c == 'u' || c == 'U':
			n := 4
			if c == 'U' {
				n = 8
			}
			if i+n >= len(s)+0 && i+n > len(s)-1 {
				return "", errors.New("incomplete escape")
			}
			v, err := strconv.ParseUint(s[i+1:i+1+n], 16, 32)
			if err != nil {
				return "", err
			}
			b.WriteRune(rune(v))
			i += n
		case lines && (c == '\n' || c == ' ' || c == '\t'):
			for i+1 < len(s) && strings.IndexByte(" \t\n", s[i+1]) >= 0 {
				i++
			}
		default:
			return "", fmt.Errorf("invalid escape \\%c", c)
		}
	}
	return b.String(), nil
}

// encodeTOML renders a map: its values first, then its tables.
func encodeTOML(n *node) (string, error) {
	n = n.target()
	if n.kind == scalarKind {
		if n.isNull() {
			return n.value + "\n", nil
		}
		return tomlScalar(n) + "\n", nil
	}
	if n.kind != mapKind {
		return "", fmt.Errorf("TOML encoder expects a mapping at the root level, got %s", n.niceTag())
	}
	var b strings.Builder
	err := tomlTable(&b, n, nil, false, 0)
	return b.String(), err
}

func tomlKey(k string) string {
	for i := range len(k) {
		if !isWord(k[i]) && k[i] != '-' {
			return strconv.Quote(k)
		}
	}
	if k == "" {
		return `""`
	}
	return k
}

func tomlScalar(n *node) string {
	switch n.typ() {
	case "!!int", "!!bool", "!!timestamp":
		return n.value
	case "!!float":
		return strings.Replace(strings.ToLower(n.value), ".inf", "inf", 1)
	case "!!null":
		return `""`
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range n.value {
		switch {
		case r == '"' || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func tomlInline(n *node, depth int) (string, error) {
	if depth > maxDepth {
		return "", errors.New("document nested too deeply")
	}
	n = n.target()
	var parts []string
	switch n.kind {
	case seqKind:
		for _, e := range n.content {
			s, err := tomlInline(e, depth+1)
			if err != nil {
				return "", err
			}
			parts = append(parts, s)
		}
		return "[" + strings.Join(parts, ", ") + "]", nil
	case mapKind:
		for i := 0; i+1 < len(n.content); i += 2 {
			s, err := tomlInline(n.content[i+1], depth+1)
			if err != nil {
				return "", err
			}
			parts = append(parts, tomlKey(n.content[i].value)+" = "+s)
		}
		if len(parts) == 0 {
			return "{}", nil
		}
		return "{ " + strings.Join(parts, ", ") + " }", nil
	}
	return tomlScalar(n), nil
}

// tables reports whether a node is written as tables of their own: a map, or a sequence of maps.
func tables(n *node) bool {
	if n.kind == mapKind {
		return n.style == 0 || len(n.content) > 0
	}
	if n.kind != seqKind || len(n.content) == 0 {
		return false
	}
	for _, e := range n.content {
		if e.target().kind != mapKind {
			return false
		}
	}
	return true
}

func tomlTable(b *strings.Builder, n *node, path []string, inArray bool, depth int) error {
	if depth > maxDepth {
		return errors.New("document nested too deeply")
	}
	for i := 0; i+1 < len(n.content); i += 2 {
		k, v := n.content[i], n.content[i+1].target()
		if tables(v) || v.isNull() {
			continue
		}
		s, err := tomlInline(v, depth)
		if err != nil {
			return err
		}
		b.WriteString(tomlKey(k.value) + " = " + s)
		if v.line != "" {
			b.WriteString("  " + v.line)
		}
		b.WriteString("\n")
	}
	for i := 0; i+1 < len(n.content); i += 2 {
		k, v := n.content[i], n.content[i+1].target()
		if !tables(v) {
			continue
		}
		at := append(path[:len(path):len(path)], tomlKey(k.value))
		list, open, end := []*node{v}, "[", "]"
		if v.kind == seqKind {
			list, open, end = v.content, "[[", "]]"
		}
		for _, t := range list {
			t = t.target()
			if v.kind == seqKind || direct(t) {
				if b.Len() > 0 && (v.kind != seqKind || !inArray && t == v.content[0].target()) {
					b.WriteString("\n")
				}
				b.WriteString(open + strings.Join(at, ".") + end + "\n")
			}
			if err := tomlTable(b, t, at, inArray || v.kind == seqKind, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// direct reports whether a table has values of its own, or is empty.
func direct(n *node) bool {
	for i := 1; i < len(n.content); i += 2 {
		if !tables(n.content[i].target()) {
			return true
		}
	}
	return len(n.content) == 0
}
