package yq

import (
	"errors"
	"fmt"
	"strings"
)

// name is the argument of env and strenv: a bare word.
func envName(x *expr) string { return x.args[0].text }

func env(c context, x *expr) ([]*node, error) {
	name := envName(x)
	if c.e.noEnv {
		return nil, errors.New("env operations have been disabled")
	}
	v, ok := c.e.t.LookupEnv(name)
	if !ok {
		return nil, fmt.Errorf("value for env variable '%s' not provided in env()", name)
	}
	docs, err := decodeYAML(v, &document{})
	if err != nil {
		return nil, err
	}
	if len(docs) == 0 {
		return one(null()), nil
	}
	return one(docs[0]), nil
}

func strenv(c context, x *expr) ([]*node, error) {
	name := envName(x)
	if c.e.noEnv {
		return nil, errors.New("env operations have been disabled")
	}
	v, ok := c.e.t.LookupEnv(name)
	if !ok {
		return nil, fmt.Errorf("value for env variable '%s' not provided in strenv()", name)
	}
	return one(str(v)), nil
}

// envsubst replaces $NAME and ${NAME…} in a string. Flags: nu fails on unset, ne on empty ones, ff at the first.
func envsubst(c context, x *expr) ([]*node, error) {
	if c.e.noEnv {
		return nil, errors.New("env operations have been disabled")
	}
	var noUnset, noEmpty bool
	for _, a := range x.args {
		noUnset = noUnset || a.text == "nu"
		noEmpty = noEmpty || a.text == "ne"
	}
	return c.each(func(n *node) ([]*node, error) {
		t := n.target()
		if t.kind != scalarKind || t.typ() != "!!str" {
			return nil, fmt.Errorf("cannot substitute with %s, can only substitute strings", t.niceTag())
		}
		s, err := expand(t.value, c.e.t.LookupEnv, noUnset, noEmpty, 0)
		return one(like(n, str(s))), err
	})
}

// expand replaces variables; ${NAME-word}, ${NAME:-word}, ${NAME:=word}, ${NAME+word}, ${NAME:+word} are known.
func expand(s string, get func(string) (string, bool), noUnset, noEmpty bool, depth int) (string, error) {
	if depth > 20 {
		return "", errors.New("variables nested too deeply")
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '$' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		braces := s[i+1] == '{'
		start := i + 1
		if braces {
			start++
		}
		end := start
		for end < len(s) && isWord(s[end]) && !(end == start && isDigit(s[end])) {
			end++
		}
		if end == start {
			if strings.HasPrefix(s[i:], "$$") {
				i++
			}
			b.WriteByte('$')
			continue
		}
		name, op, word := s[start:end], "", ""
		next := end
		if braces {
			level := 1
			for next = end; next < len(s); next++ {
				if s[next] == '{' {
					level++
				} else if s[next] == '}' {
					if level--; level == 0 {
						break
					}
				}
			}
			if next == len(s) {
				return "", errors.New("closing brace expected")
			}
			rest := s[end:next]
			next++
			for _, o := range []string{":-", ":=", ":+", "-", "=", "+"} {
				if w, ok := strings.CutPrefix(rest, o); ok {
					op, word = o, w
					break
				}
			}
		}
		v, set := get(name)
		switch {
		case op == "" && !set && noUnset:
			return "", fmt.Errorf("variable ${%s} not set", name)
		case op == "" && set && v == "" && noEmpty:
			return "", fmt.Errorf("variable ${%s} set but empty", name)
		case strings.HasSuffix(op, "+"):
			if set && (op == "+" || v != "") {
				v = word
			} else {
				v = ""
			}
		case op != "" && (!set || op[0] == ':' && v == ""):
			w, err := expand(word, get, noUnset, noEmpty, depth+1)
			if err != nil {
				return "", err
			}
			v = w
		}
		b.WriteString(v)
		i = next - 1
	}
	return b.String(), nil
}

func fileName(_ context, n *node) (*node, error) {
	if n.root().doc == nil {
		return str(""), nil
	}
	return str(n.root().doc.file), nil
}

func fileIndex(_ context, n *node) (*node, error) {
	if d := n.root().doc; d != nil {
		return integer(d.fileIndex), nil
	}
	return integer(0), nil
}

func documentIndex(_ context, n *node) (*node, error) {
	if d := n.root().doc; d != nil {
		return integer(d.index), nil
	}
	return integer(0), nil
}

// load makes the functions that read another file.
func load(format string) function {
	return with1(func(c context, n *node, arg *expr) ([]*node, error) {
		if c.e.noFiles {
			return nil, errors.New("file operations have been disabled")
		}
		list, err := c.with(n).eval(arg)
		if err != nil {
			return nil, err
		}
		var out []*node
		for _, name := range list {
			b, err := c.e.t.ReadFile(name.value, maxInput)
			if err != nil {
				return nil, fmt.Errorf("failed to load %s: %w", name.value, fileError(name.value, err))
			}
			if format == "str" {
				out = append(out, str(string(b)))
				continue
			}
			docs, err := decodeFormat(format, string(b), &document{file: name.value}, defaults())
			if err != nil {
				return nil, err
			}
			if len(docs) > 0 {
				out = append(out, docs[0])
			}
		}
		return out, nil
	})
}
