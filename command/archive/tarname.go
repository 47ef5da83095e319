package archive

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"agentrun.dev/command/posixre"
	"agentrun.dev/command/tool"
)

// matchFlags say how names match patterns.
type matchFlags struct {
	anchored bool // a pattern begins where the name begins
	floating bool // --no-anchored was given: members may be named by a suffix
	fold     bool
	slash    bool // wildcards match slashes
	wild     int  // 1 with --wildcards, -1 with --no-wildcards
}

type exclusion struct {
	pattern string
	flags   matchFlags
	wild    bool
}

// vcsNames are the files that --exclude-vcs leaves out.
var vcsNames = []string{"CVS", ".cvsignore", "RCS", "SCCS", ".git", ".gitignore", ".gitattributes", ".gitmodules", ".svn", ".arch-ids", "{arch}", "=RELEASE-ID",
	"=meta-update", "=update", ".bzr", ".bzrignore", ".bzrtags", ".hg", ".hgignore", ".hgrags", "_darcs"}

func (a *tar) exclude(pattern string) {
	a.excludes = append(a.excludes, exclusion{pattern: pattern, flags: a.match, wild: a.match.wild >= 0})
}

// matches compares a name with a pattern, from its start and, unless anchored, from after each slash; what is below a
// matching directory matches too.
func matches(pattern, name string, f matchFlags, wild bool) bool {
	for {
		if matchAt(pattern, name, f, wild) {
			return true
		}
		if f.anchored {
			return false
		}
		i := strings.IndexByte(name, '/')
		if i < 0 {
			return false
		}
		name = strings.TrimLeft(name[i+1:], "/")
	}
}

func matchAt(pattern, name string, f matchFlags, wild bool) bool {
	if !wild {
		if f.fold {
			pattern, name = strings.ToLower(pattern), strings.ToLower(name)
		}
		rest, ok := strings.CutPrefix(name, pattern)
		return ok && (rest == "" || rest[0] == '/')
	}
	flags := tool.GlobFlags(0)
	if !f.slash {
		flags |= tool.GlobPathname
	}
	if f.fold {
		flags |= tool.GlobFold
	}
	if tool.Glob(pattern, name, flags) {
		return true
	}
	for i := len(name) - 1; i > 0; i-- { // a leading directory that matches
		if name[i] == '/' && tool.Glob(pattern, name[:i], flags) {
			return true
		}
	}
	return false
}

// excluded reports whether a name is left out.
func (a *tar) excluded(name string) bool {
	if len(a.excludes) == 0 {
		return false
	}
	name = strings.TrimRight(name, "/")
	for _, e := range a.excludes {
		if matches(e.pattern, name, e.flags, e.wild) {
			return true
		}
	}
	return false
}

// wanted finds which operand asks for a member; without operands each is wanted.
func (a *tar) wanted(name string) (*tarName, bool) {
	if a.names == nil {
		return nil, true
	}
	trimmed := strings.TrimRight(name, "/")
	for _, n := range a.names {
		want := strings.TrimRight(n.name, "/")
		if want == "" {
			want = n.name
		}
		ok := false
		switch {
		case n.match.wild > 0 || n.match.floating || n.match.fold:
			f := n.match
			f.anchored = !f.floating
			if ok = matches(want, trimmed, f, n.match.wild > 0); ok && !n.recurse {
				ok = want == trimmed || n.match.wild > 0
			}
		case trimmed == want:
			ok = true
		case n.recurse && strings.HasPrefix(trimmed, want) && trimmed[len(want)] == '/':
			ok = true
		}
		if ok {
			n.found++
			if a.occurrence > 0 && n.found != a.occurrence {
				return nil, false
			}
			return n, true
		}
	}
	return nil, false
}

// transform is one s/…/…/ of --transform.
type transform struct {
	re                   *posixre.Regexp
	repl                 []replPart
	global               bool
	nth                  int
	regular, hard, symbs bool // which names it changes
}

// replPart is a piece of a replacement: a text, a group, or a change of case.
type replPart struct {
	text  string
	group int  // -1 for a text
	kase  byte // L U l u E, 0 for none
}

var errTransform = errors.New("Invalid transform expression")

// parseTransforms reads sed-like expressions, separated by semicolons.
func parseTransforms(s string) ([]transform, error) {
	var out []transform
	regular, hard, symbs := true, true, true
	for s != "" {
		if s[0] == ';' || s[0] == ' ' {
			s = s[1:]
			continue
		}
		if rest, ok := strings.CutPrefix(s, "flags="); ok {
			regular, hard, symbs = false, false, false
			i := 0
			for ; i < len(rest) && rest[i] != ';'; i++ {
				if !scope(rest[i], &regular, &hard, &symbs) {
					return nil, fmt.Errorf("Unknown transform flag: %c", rest[i])
				}
			}
			s = rest[i:]
			continue
		}
		if s[0] != 's' || len(s) < 2 {
			return nil, errTransform
		}
		tr := transform{regular: regular, hard: hard, symbs: symbs}
		delim := s[1]
		pattern, rest, ok := cutDelim(s[2:], delim, true)
		repl, rest, ok2 := cutDelim(rest, delim, false)
		if !ok || !ok2 {
			return nil, errTransform
		}
		o := posixre.Options{}
		i := 0
		for ; i < len(rest) && rest[i] != ';'; i++ {
			switch c := rest[i]; {
			case c == 'g':
				tr.global = true
			case c == 'i':
				o.Fold = true
			case c == 'x':
				o.Flavor = posixre.Extended
			case c >= '0' && c <= '9':
				tr.nth = min(tr.nth*10+int(c-'0'), 1<<20)
			case scope(c, &tr.regular, &tr.hard, &tr.symbs):
			default:
				return nil, fmt.Errorf("Unknown flag in transform expression: %c", c)
			}
		}
		s = rest[i:]
		re, err := posixre.Compile(pattern, o)
		if err != nil {
			return nil, fmt.Errorf("Invalid transform expression: %w", err)
		}
		tr.re = re
		if tr.repl, err = parseRepl(repl, delim); err != nil {
			return nil, err
		}
		out = append(out, tr)
	}
	return out, nil
}

func scope(c byte, regular, hard, symbs *bool) bool {
	switch c {
	case 'r', 'R':
		*regular = c == 'r'
	case 'h', 'H':
		*hard = c == 'h'
	case 's', 'S':
		*symbs = c == 's'
	default:
		return false
	}
	return true
}

// cutDelim cuts at a delimiter that isn't escaped or, in a pattern, in a bracket expression.
func cutDelim(s string, delim byte, pattern bool) (part, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			if s[i+1] != delim || !pattern && delim == '&' {
				b.WriteByte('\\')
			}
			i++
			b.WriteByte(s[i])
		case s[i] == delim:
			return b.String(), s[i+1:], true
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", false
}

func parseRepl(s string, _ byte) ([]replPart, error) {
	var out []replPart
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			out = append(out, replPart{text: text.String(), group: -1})
			text.Reset()
		}
	}
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '&':
			flush()
			out = append(out, replPart{group: 0})
		case s[i] == '\\' && i+1 < len(s):
			i++
			switch c := s[i]; {
			case c >= '0' && c <= '9':
				flush()
				out = append(out, replPart{group: int(c - '0')})
			case strings.IndexByte("LUluE", c) >= 0:
				flush()
				out = append(out, replPart{group: -1, kase: c})
			case strings.IndexByte("abfnrtv", c) >= 0:
				text.WriteByte("\a\b\f\n\r\t\v"[strings.IndexByte("abfnrtv", c)])
			default:
				text.WriteByte(c)
			}
		default:
			text.WriteByte(s[i])
		}
	}
	flush()
	return out, nil
}

// apply replaces in a name.
func (tr *transform) apply(name string) string {
	n := 1
	if tr.global || tr.nth > 1 {
		n = -1
	}
	all, err := tr.re.FindAll([]byte(name), n)
	if err != nil || len(all) == 0 {
		return name
	}
	var b strings.Builder
	at := 0
	for i, loc := range all {
		if tr.nth > i+1 || !tr.global && i+1 > max(tr.nth, 1) {
			continue
		}
		b.WriteString(name[at:loc[0]])
		b.WriteString(expand(tr.repl, name, loc))
		at = loc[1]
	}
	b.WriteString(name[at:])
	return b.String()
}

// expand builds a replacement, applying changes of case.
func expand(parts []replPart, name string, loc []int) string {
	var b strings.Builder
	var mode, once byte
	for _, p := range parts {
		if p.kase != 0 {
			switch p.kase {
			case 'l', 'u':
				once = p.kase
			case 'E':
				mode = 0
			default:
				mode = p.kase
			}
			continue
		}
		s := p.text
		if p.group >= 0 {
			s = ""
			if 2*p.group+1 < len(loc) && loc[2*p.group] >= 0 {
				s = name[loc[2*p.group]:loc[2*p.group+1]]
			}
		}
		switch mode {
		case 'L':
			s = strings.ToLower(s)
		case 'U':
			s = strings.ToUpper(s)
		}
		if once != 0 && s != "" {
			r := []rune(s)
			if once == 'l' {
				r[0] = unicode.ToLower(r[0])
			} else {
				r[0] = unicode.ToUpper(r[0])
			}
			s, once = string(r), 0
		}
		b.WriteString(s)
	}
	return b.String()
}

// rename applies strip and transform to a name; kind is r for members, h for targets of hard links, s for those of
// symbolic links. An empty result means that the member is left out.
func (a *tar) rename(name string, kind byte) string {
	dir := strings.HasSuffix(name, "/")
	for i := range a.transforms {
		tr := &a.transforms[i]
		if kind == 'r' && tr.regular || kind == 'h' && tr.hard || kind == 's' && tr.symbs {
			name = tr.apply(name)
		}
	}
	if a.stripN > 0 && kind != 's' {
		stripped, ok := a.strip(strings.TrimRight(name, "/"))
		if !ok {
			return ""
		}
		if name = stripped; dir {
			name += "/"
		}
	}
	return name
}

// quote writes a name as lists show it.
func (a *tar) quote(name string) string {
	switch a.quoting {
	case "literal":
		return name
	case "shell":
		return tool.QuoteShell(name)
	case "shell-always":
		return tool.QuoteAF(name)
	case "c":
		return tool.QuoteC(name)
	case "locale", "clocale":
		return tool.Quote(name)
	}
	return tarQuote(name)
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
