package shell

import (
	"sort"
	"strings"

	"agentrun.dev/vfs"
)

// globField adds the file names that a field matches, or the field itself.
func (sh *Shell) globField(out []string, f []frag) []string {
	meta := false
	if !sh.opts.noglob {
		for _, x := range f {
			if !x.q && strings.ContainsAny(x.s, "*?[(\\") {
				meta = true
			}
		}
	}
	plain := func() string {
		if len(f) == 1 {
			return f[0].s
		}
		var b strings.Builder
		for _, x := range f {
			b.WriteString(x.s)
		}
		return b.String()
	}
	if !meta {
		return append(out, plain())
	}
	var b strings.Builder
	for _, x := range f {
		if x.q {
			b.WriteString(quotePattern(x.s))
		} else {
			b.WriteString(x.s)
		}
	}
	pat := b.String()
	if !sh.globby(pat) {
		return append(out, plain())
	}
	found := sh.glob(pat)
	if len(found) > 0 {
		return append(out, found...)
	}
	switch {
	case sh.shopts.get("failglob"):
		sh.errorf("no match: %s", plain())
		panic(abort{kind: abortDiscard, status: 1})
	case sh.shopts.get("nullglob"):
		return out
	}
	return append(out, plain())
}

// globby tells whether a pattern has an active special character.
func (sh *Shell) globby(p string) bool {
	ext := sh.shopts.get("extglob")
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '*', '?':
			return true
		case '[':
			if cl, _ := parseClass(p, i); cl != nil {
				return true
			}
		case '(':
			if ext && i > 0 && strings.IndexByte("@!+", p[i-1]) >= 0 {
				return true
			}
		}
	}
	return false
}

// globber expands one pattern.
type globber struct {
	sh      *Shell
	out     []string
	dotglob bool
	ignore  []*pattern
	dirOnly bool
	visited int
}

// maxGlob bounds how many directory entries one pattern may look at.
const maxGlob = 1 << 22

// glob returns the sorted names of files that match.
func (sh *Shell) glob(pat string) []string {
	g := &globber{sh: sh, dotglob: sh.shopts.get("dotglob")}
	if s := sh.str("GLOBIGNORE"); s != "" {
		g.dotglob = true
		for _, p := range splitColons(s) {
			g.ignore = append(g.ignore, sh.compile(p, true, false))
		}
	}
	parts := splitSlashes(pat)
	prefix := ""
	for len(parts) > 0 && parts[0] == "" {
		prefix += "/"
		parts = parts[1:]
	}
	for len(parts) > 0 && parts[len(parts)-1] == "" {
		g.dirOnly = true
		parts = parts[:len(parts)-1]
	}
	if len(parts) > 0 {
		g.walk(prefix, parts)
	}
	sort.Strings(g.out)
	return g.out
}

func splitColons(s string) []string {
	var out []string
	start := 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && s[i] == '\\' {
			i++
			continue
		}
		if i >= len(s) || s[i] == ':' {
			if start < i {
				out = append(out, s[start:min(i, len(s))])
			}
			start = i + 1
		}
	}
	return out
}

// splitSlashes splits at slashes outside of parentheses; several in a row count as one but at the beginning.
func splitSlashes(p string) []string {
	var out []string
	start, depth := 0, 0
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '(':
			if i > 0 && strings.IndexByte("?*+@!", p[i-1]) >= 0 {
				depth++
			}
		case ')':
			depth = max(0, depth-1)
		case '/':
			if depth == 0 {
				if i > start || len(out) == 0 || strings.Trim(strings.Join(out, ""), "") == "" {
					out = append(out, p[start:i])
				}
				start = i + 1
			}
		}
	}
	return append(out, p[start:])
}

func unquotePattern(p string) string {
	if strings.IndexByte(p, '\\') < 0 {
		return p
	}
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		if p[i] == '\\' && i+1 < len(p) {
			i++
		}
		b.WriteByte(p[i])
	}
	return b.String()
}

func (g *globber) walk(prefix string, parts []string) {
	if g.sh.p.Killed() != 0 {
		return
	}
	part, rest := parts[0], parts[1:]
	if part == "**" && g.sh.shopts.get("globstar") {
		g.star(prefix, rest, 0)
		return
	}
	if !g.sh.globby(part) {
		name := prefix + unquotePattern(part)
		if len(rest) == 0 {
			if _, err := g.sh.p.Lstat(name); err == nil {
				g.emit(name)
			}
			return
		}
		if a, err := g.sh.p.Stat(name); err == nil && a.Mode.IsDir() {
			g.walk(name+"/", rest)
		}
		return
	}
	p := g.sh.compile(part, g.sh.shopts.get("extglob"), g.sh.shopts.get("nocaseglob"))
	list := g.list(prefix)
	if startsWithDot(part) && g.ignore == nil && !g.sh.shopts.get("globskipdots") {
		dot := vfs.DirEntry{Name: ".", Mode: vfs.ModeDir}
		list = append([]vfs.DirEntry{dot, {Name: "..", Mode: vfs.ModeDir}}, list...)
	}
	for _, e := range list {
		if e.Name[0] == '.' && !g.dotglob && !startsWithDot(part) || !p.match(e.Name) {
			continue
		}
		if len(rest) == 0 {
			g.emit(prefix + e.Name)
		} else if g.isDir(prefix+e.Name, e) {
			g.walk(prefix+e.Name+"/", rest)
		}
	}
}

// startsWithDot tells whether a pattern's first character is an explicit dot.
func startsWithDot(p string) bool {
	p = strings.TrimPrefix(p, "\\")
	if strings.HasPrefix(p, ".") {
		return true
	}
	if len(p) > 2 && p[1] == '(' && strings.IndexByte("@+*?", p[0]) >= 0 {
		return startsWithDot(p[2:]) || strings.Contains(p, "|.")
	}
	return false
}

func (g *globber) list(prefix string) []vfs.DirEntry {
	dir := prefix
	if dir == "" {
		dir = "."
	}
	entries, err := g.sh.p.ReadDir(dir)
	if err != nil {
		return nil
	}
	if g.visited += len(entries); g.visited > maxGlob {
		g.sh.errorf("pathname expansion: too many files")
		panic(abort{kind: abortDiscard, status: 1})
	}
	return entries
}

func (g *globber) isDir(name string, e vfs.DirEntry) bool {
	if e.Mode.IsDir() {
		return true
	}
	if !e.Mode.IsSymlink() {
		return false
	}
	a, err := g.sh.p.Stat(name)
	return err == nil && a.Mode.IsDir()
}

// star matches ** : any number of directories, symbolic links not followed.
func (g *globber) star(prefix string, rest []string, depth int) {
	for len(rest) > 0 && rest[0] == "**" {
		rest = rest[1:]
	}
	if depth == 0 && len(rest) == 0 && prefix != "" {
		g.emitDir(prefix)
	}
	if len(rest) > 0 {
		g.walk(prefix, rest)
	}
	if depth > vfs.MaxPath/2 {
		return
	}
	for _, e := range g.list(prefix) {
		if e.Name[0] == '.' && !g.dotglob {
			continue
		}
		name := prefix + e.Name
		if len(rest) == 0 && (!g.dirOnly || g.isDir(name, e)) {
			g.emit(name)
		}
		if e.Mode.IsDir() {
			g.star(name+"/", rest, depth+1)
		}
	}
}

func (g *globber) emitDir(prefix string) { g.out = append(g.out, prefix) }

func (g *globber) emit(name string) {
	base := name[strings.LastIndexByte(name, '/')+1:]
	if base == "." || base == ".." {
		if len(g.ignore) > 0 {
			return
		}
	}
	for _, p := range g.ignore {
		if p.match(name) {
			return
		}
	}
	if g.dirOnly {
		a, err := g.sh.p.Stat(name)
		if err != nil || !a.Mode.IsDir() {
			return
		}
		name += "/"
	}
	g.out = append(g.out, name)
}
