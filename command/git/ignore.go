package git

import (
	"path"
	"strings"

	"agentrun.dev/command/posixre"
)

// wildmatch matches as git does: * and ? don't match a slash, **/ any folders. It gives up on patterns that would take
// too long.
func wildmatch(pattern, text string, fold bool) bool {
	if fold {
		pattern, text = strings.ToLower(pattern), strings.ToLower(text)
	}
	budget := 100_000
	return wild(pattern, text, true, &budget)
}

// wild is wildmatch; start tells that text begins a component.
func wild(p, t string, start bool, budget *int) bool {
	for p != "" {
		if *budget--; *budget < 0 {
			return false
		}
		switch p[0] {
		case '*':
			if strings.HasPrefix(p, "**") {
				rest := strings.TrimLeft(p, "*")
				if start && (rest == "" || rest[0] == '/') && len(p)-len(rest) == 2 {
					if rest == "" {
						return t != "" || true
					}
					rest = rest[1:]
					for {
						if wild(rest, t, true, budget) {
							return true
						}
						i := strings.IndexByte(t, '/')
						if i < 0 {
							return false
						}
						t = t[i+1:]
					}
				}
				p = "*" + rest
			}
			p = p[1:]
			for {
				if wild(p, t, start && false, budget) {
					return true
				}
				if t == "" || t[0] == '/' {
					return false
				}
				t = t[1:]
			}
		case '?':
			if t == "" || t[0] == '/' {
				return false
			}
			p, t = p[1:], t[1:]
		case '[':
			if t == "" || t[0] == '/' {
				return false
			}
			n, in := bracket(p, t[0])
			if n == 0 || !in {
				return false
			}
			p, t = p[n:], t[1:]
		case '\\':
			if len(p) > 1 {
				p = p[1:]
			}
			fallthrough
		default:
			if t == "" || p[0] != t[0] {
				return false
			}
			start = p[0] == '/'
			p, t = p[1:], t[1:]
			continue
		}
		start = false
	}
	return t == ""
}

// bracket reads [...] and reports whether c is in it; n is its length, 0 if it has no end.
func bracket(p string, c byte) (n int, in bool) {
	i := 1
	negated := i < len(p) && (p[i] == '!' || p[i] == '^')
	if negated {
		i++
	}
	for first := true; i < len(p); first = false {
		if p[i] == ']' && !first {
			return i + 1, in != negated
		}
		if strings.HasPrefix(p[i:], "[:") {
			if name, _, ok := strings.Cut(p[i+2:], ":]"); ok {
				in = in || posixre.InClass(name, rune(c))
				i += len(name) + 4
				continue
			}
		}
		if p[i] == '\\' && i+1 < len(p) {
			i++
		}
		lo := p[i]
		i++
		hi := lo
		if i+1 < len(p) && p[i] == '-' && p[i+1] != ']' {
			if i++; p[i] == '\\' && i+1 < len(p) {
				i++
			}
			hi = p[i]
			i++
		}
		in = in || c >= lo && c <= hi
	}
	return 0, false
}

// ignoreRule is a line of a .gitignore.
type ignoreRule struct {
	pattern  string
	negated  bool
	dirOnly  bool
	anchored bool   // matches the path from base; otherwise the last component
	base     string // folder of the file, with a slash at the end, or ""
	line     int
	source   string
	text     string
}

func parseIgnore(text, base, source string) (rules []ignoreRule) {
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		r := ignoreRule{base: base, line: n + 1, source: source, text: line}
		if line == "" || line[0] == '#' {
			continue
		}
		for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, "\\ ") {
			line = line[:len(line)-1]
		}
		if strings.HasPrefix(line, "!") {
			r.negated, line = true, line[1:]
		} else if strings.HasPrefix(line, "\\!") || strings.HasPrefix(line, "\\#") {
			line = line[1:]
		}
		if strings.HasSuffix(line, "/") {
			r.dirOnly, line = true, line[:len(line)-1]
		}
		r.anchored = strings.Contains(line, "/")
		r.pattern = strings.TrimPrefix(line, "/")
		if r.pattern != "" {
			rules = append(rules, r)
		}
	}
	return rules
}

func (g *ignoreRule) match(p string, dir bool) bool {
	if g.dirOnly && !dir || !strings.HasPrefix(p, g.base) {
		return false
	}
	rel := p[len(g.base):]
	if !g.anchored {
		return wildmatch(g.pattern, path.Base(rel), false)
	}
	return wildmatch(g.pattern, rel, false)
}

// rulesOf returns the rules that a folder's own .gitignore holds; "" also those of the whole repository, weaker.
func (r *repo) rulesOf(dir string) []ignoreRule {
	if rules, ok := r.ignores[dir]; ok {
		return rules
	}
	if r.ignores == nil {
		r.ignores = map[string][]ignoreRule{}
	}
	var rules []ignoreRule
	if dir == "" {
		global, ok := r.config().get("core.excludesfile")
		if ok && strings.HasPrefix(global, "~/") {
			global = r.t.Getenv("HOME") + global[1:]
		}
		if !ok {
			global = r.t.Getenv("HOME") + "/.config/git/ignore"
			if x := r.t.Getenv("XDG_CONFIG_HOME"); x != "" {
				global = x + "/git/ignore"
			}
		}
		if b, err := r.t.ReadFile(global, maxSmall); err == nil {
			rules = append(rules, parseIgnore(string(b), "", global)...)
		}
		if b, err := r.t.ReadFile(r.common+"/info/exclude", maxSmall); err == nil {
			rules = append(rules, parseIgnore(string(b), "", r.show(r.common+"/info/exclude"))...)
		}
	}
	name := strings.TrimSuffix(dir, "/")
	if dir != "" {
		name = dir
	}
	if a, err := r.t.Lstat(r.file(name + ".gitignore")); err == nil && a.Mode.IsRegular() {
		if b, err := r.t.ReadFile(r.file(name+".gitignore"), maxSmall); err == nil {
			rules = append(rules, parseIgnore(string(b), dir, name+".gitignore")...)
		}
	}
	r.ignores[dir] = rules
	return rules
}

// ignored reports whether a path is ignored, itself or by a folder above, and by which rule.
func (r *repo) ignored(p string, dir bool) (*ignoreRule, bool) {
	for i := 0; i < len(p); i++ {
		if p[i] == '/' {
			if g, ok := r.ignoredHere(p[:i], true); ok {
				return g, true
			}
		}
	}
	return r.ignoredHere(p, dir)
}

// ignoredHere looks only at rules that match the path itself. The last rule that matches decides.
func (r *repo) ignoredHere(p string, dir bool) (*ignoreRule, bool) {
	if r.noIgnore {
		return nil, false
	}
	at := path.Dir(p)
	if at == "." {
		at = ""
	} else {
		at += "/"
	}
	for {
		rules := r.rulesOf(at)
		for i := len(rules) - 1; i >= 0; i-- {
			if rules[i].match(p, dir) {
				return &rules[i], !rules[i].negated
			}
		}
		if at == "" {
			return nil, false
		}
		at = at[:strings.LastIndexByte(at[:len(at)-1], '/')+1]
	}
}

// attrRule is a line of a .gitattributes; only text and binary matter here.
type attrRule struct {
	ignoreRule
	attrs []string
}

// attributes are what .gitattributes files say of a path: "set", "unset" or a value. The binary macro is expanded.
func (r *repo) attributes(p string) map[string]string {
	set := map[string]string{}
	for _, dir := range append([]string{""}, foldersOf(p)...) {
		for _, rule := range r.attrRules(dir) {
			if !rule.match(p, false) {
				continue
			}
			for _, a := range rule.attrs {
				setAttr(set, a)
			}
		}
	}
	return set
}

// foldersOf are the folders on the way to a path, each with a slash at its end.
func foldersOf(p string) (list []string) {
	for i := 0; i < len(p); i++ {
		if p[i] == '/' {
			list = append(list, p[:i+1])
		}
	}
	return list
}

func setAttr(set map[string]string, a string) {
	switch {
	case a == "binary":
		set["binary"], set["diff"], set["merge"], set["text"] = "set", "unset", "unset", "unset"
	case strings.HasPrefix(a, "-"):
		set[a[1:]] = "unset"
	case strings.HasPrefix(a, "!"):
		delete(set, a[1:])
	default:
		name, value, ok := strings.Cut(a, "=")
		if !ok {
			value = "set"
		}
		set[name] = value
	}
}

// attrRules are the rules of a folder's .gitattributes; for the root also those of info/attributes.
func (r *repo) attrRules(at string) []attrRule {
	if rules, ok := r.attrs[at]; ok {
		return rules
	}
	if r.attrs == nil {
		r.attrs = map[string][]attrRule{}
	}
	files := []string{}
	if r.root != "" {
		files = append(files, r.file(at+".gitattributes"))
	}
	if at == "" {
		files = append(files, r.common+"/info/attributes")
	}
	var rules []attrRule
	for _, f := range files {
		b, err := r.t.ReadFile(f, maxSmall)
		if err != nil {
			continue
		}
		for _, line := range strings.Split(string(b), "\n") {
			f := strings.Fields(line)
			if len(f) < 2 || f[0][0] == '#' {
				continue
			}
			if g := parseIgnore(f[0], at, ""); len(g) == 1 {
				rules = append(rules, attrRule{g[0], f[1:]})
			}
		}
	}
	r.attrs[at] = rules
	return rules
}

// binaryAttr reports what .gitattributes says of a path: it is binary, or it is text; known is false if nothing.
func (r *repo) binaryAttr(p string) (binary, known bool) {
	switch r.attributes(p)["diff"] {
	case "unset":
		return true, true
	case "set":
		return false, true
	}
	return false, false
}
