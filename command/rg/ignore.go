package rg

import (
	"regexp"
	"strings"
)

const ignoreLimit = 1 << 20 // bytes of an ignore file that are read

// rule is a line of an ignore file, or a glob of -g.
type rule struct {
	re      *regexp.Regexp // matches a path relative to the file's directory
	keep    bool           // the line began with "!"
	dirOnly bool
}

// ruleset is an ignore file.
type ruleset struct {
	base  string // the directory's path, "" or ending with a slash
	rules []rule
}

// parseRule reads a line as git does; ok is false if there is no pattern or it is wrong.
func parseRule(line string, fold bool) (r rule, ok bool) {
	line = strings.TrimSuffix(line, "\r")
	if strings.HasPrefix(line, "#") {
		return r, false
	}
	if trimmed := strings.TrimRight(line, " "); !strings.HasSuffix(trimmed, `\`) {
		line = trimmed
	}
	if strings.HasPrefix(line, "!") {
		r.keep, line = true, line[1:]
	}
	if strings.HasSuffix(line, "/") {
		r.dirOnly, line = true, strings.TrimSuffix(line, "/")
	}
	if line == "" {
		return r, false
	}
	head := "(?s)^(?:.*/)?"
	if strings.Contains(line, "/") {
		head, line = "(?s)^", strings.TrimPrefix(line, "/")
	}
	if fold {
		head = "(?i)" + head
	}
	re, err := regexp.Compile(head + globRegexp(line) + "$")
	r.re = re
	return r, err == nil
}

// globRegexp translates a glob in which wildcards stop at slashes but "**" doesn't.
func globRegexp(g string) string {
	var b strings.Builder
	depth := 0
	for i := 0; i < len(g); i++ {
		rest := g[i:]
		switch c := g[i]; {
		case strings.HasPrefix(rest, "**/") && (i == 0 || g[i-1] == '/'):
			b.WriteString("(?:.*/)?")
			i += 2
		case rest == "**" && i > 0 && g[i-1] == '/':
			b.WriteString(".+")
			i++
		case c == '*':
			b.WriteString("[^/]*")
		case c == '?':
			b.WriteString("[^/]")
		case c == '[':
			end := strings.IndexByte(g[min(i+2, len(g)):], ']')
			if end < 0 {
				b.WriteString(`\[`)
				continue
			}
			set := g[i+1 : i+2+end]
			if set[0] == '!' || set[0] == '^' {
				b.WriteString("[^" + escapeSet(set[1:]) + "]")
			} else {
				b.WriteString("[" + escapeSet(set) + "]")
			}
			i += 2 + end
		case c == '{':
			depth++
			b.WriteString("(?:")
		case c == '}' && depth > 0:
			depth--
			b.WriteByte(')')
		case c == ',' && depth > 0:
			b.WriteByte('|')
		case c == '\\' && i+1 < len(g):
			i++
			b.WriteString(regexp.QuoteMeta(g[i : i+1]))
		case c < 0x80:
			b.WriteString(regexp.QuoteMeta(g[i : i+1]))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func escapeSet(s string) string {
	return strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `^`, `\^`).Replace(s)
}

// decide returns 1 if the last rule that matches ignores a path, -1 if it keeps it, 0 if none matches.
func (s *ruleset) decide(path string, dir bool) int {
	rel := strings.TrimPrefix(path, s.base)
	for i := len(s.rules) - 1; i >= 0; i-- {
		r := &s.rules[i]
		if r.dirOnly && !dir || !r.re.MatchString(rel) {
			continue
		}
		if r.keep {
			return -1
		}
		return 1
	}
	return 0
}

// level are the ignore files of a directory, the strongest kind first: .rgignore (fd: .fdignore), .ignore, .gitignore.
type level [3]ruleset

// readLevel reads a directory's ignore files. A .gitignore counts only inside of a repository.
func (s *searcher) readLevel(dir string, git bool) level {
	var l level
	if s.noIgnore {
		return l
	}
	base := dir + "/"
	own := ".rgignore"
	if s.fd {
		own = ".fdignore"
	}
	for i, name := range []string{own, ".ignore", ".gitignore"} {
		if i == 2 && (!git || s.noVCS) {
			continue
		}
		b, err := s.t.ReadFile(base+name, ignoreLimit)
		if err != nil {
			continue
		}
		l[i].base = base
		for _, line := range strings.Split(string(b), "\n") {
			if r, ok := parseRule(line, false); ok {
				l[i].rules = append(l[i].rules, r)
			}
		}
	}
	return l
}

// ignored applies -g, -t and the ignore files, of which deeper ones are stronger; path is absolute.
func (s *searcher) ignored(levels []level, path, name string, dir bool) bool {
	if len(s.globs.rules) > 0 {
		switch s.globs.decide(path, dir) {
		case 1:
			return true
		case -1:
			return false
		}
		if s.picky && !dir {
			return true
		}
	}
	hidden := name[0] == '.' && !s.hidden
	for kind := range 3 {
		for i := len(levels) - 1; i >= 0; i-- {
			if d := levels[i][kind].decide(path, dir); d > 0 {
				return true
			} else if d < 0 {
				return !dir && s.wrongType(name)
			}
		}
	}
	return hidden || !dir && s.wrongType(name)
}
