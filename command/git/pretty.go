package git

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// logFormat says how a commit is worded.
type logFormat struct {
	name       string // oneline, short, medium, full, fuller, raw, reference, email, user
	user       string // of format: and tformat:
	terminator bool   // tformat: ends each with a newline instead of putting one between
	abbrev     bool
	abbrevLen  int
	parents    bool
	date       string
	decorate   string // "", "short", "full"
	source     bool
	reflog     bool // -g
	leftRight  bool
	expandTabs bool
	zero       bool // -z
}

// setPretty reads --pretty=VALUE or --format=VALUE.
func (r *repo) setPretty(f *logFormat, v string) {
	if alias, ok := r.config().get("pretty." + v); ok {
		v = alias
	}
	switch v {
	case "oneline", "short", "medium", "full", "fuller", "raw", "reference", "email", "mboxrd":
		f.name = v
		f.terminator = v == "oneline" || v == "reference"
		return
	case "":
		f.name, f.user, f.terminator = "medium", "", false
		return
	}
	if u, ok := strings.CutPrefix(v, "format:"); ok {
		f.name, f.user, f.terminator = "user", u, false
	} else if u, ok := strings.CutPrefix(v, "tformat:"); ok {
		f.name, f.user, f.terminator = "user", u, true
	} else if strings.Contains(v, "%") {
		f.name, f.user, f.terminator = "user", v, true
	} else {
		for _, n := range []string{"oneline", "short", "medium", "fuller", "full", "raw", "reference", "email"} {
			if strings.HasPrefix(n, v) {
				r.setPretty(f, n)
				return
			}
		}
		r.fatal("invalid --pretty format: %s", v)
	}
}

// hash is an object's name as the format has it.
func (r *repo) fhash(f *logFormat, id oid) string {
	if !f.abbrev {
		return id.String()
	}
	if f.abbrevLen > 0 {
		return r.abbrevN(id, f.abbrevLen)
	}
	return r.abbrev(id)
}

// header is the format's first line, without its newline.
func (r *repo) commitLine(f *logFormat, n *node) string {
	var b strings.Builder
	switch {
	case n.bound:
		b.WriteString("- ")
	case f.leftRight && n.flag != 0:
		b.WriteString(string(n.flag) + " ")
	}
	b.WriteString(r.fhash(f, n.id))
	if f.parents {
		for _, p := range n.follow {
			b.WriteString(" " + r.fhash(f, p))
		}
	}
	if !n.from.isZero() {
		b.WriteString(" (from " + r.fhash(f, n.from) + ")")
	}
	if d := r.decoration(f.decorate, n.id); d != "" {
		b.WriteString(" " + d)
	}
	return b.String()
}

// shortHash is an object's shortened name, as long as --abbrev wants it.
func (r *repo) shortHash(f *logFormat, id oid) string {
	if f.abbrevLen > 0 {
		return r.abbrevN(id, f.abbrevLen)
	}
	return r.abbrev(id)
}

// wording is a commit's text in a format, without the newline at the end.
func (r *repo) wording(f *logFormat, n *node, extra string) string {
	c := n.commit
	var b strings.Builder
	switch f.name {
	case "user":
		return r.expand(f, n, f.user)
	case "reference":
		return fmt.Sprintf("%s (%s, %s)", r.abbrev(c.id), c.subject(), r.formatDate(c.author.when, s2(f.date, "short")))
	case "oneline":
		return r.commitLine(f, n) + extra + " " + c.subject()
	case "email", "mboxrd":
		return r.emailWording(c)
	}
	fmt.Fprintf(&b, "commit %s\n%s", r.commitLine(f, n), extra)
	if f.name == "raw" {
		fmt.Fprintf(&b, "tree %s\n", c.tree)
		for _, p := range c.parents {
			fmt.Fprintf(&b, "parent %s\n", p)
		}
		fmt.Fprintf(&b, "author %s\ncommitter %s\n", c.author, c.committer)
	} else {
		if len(c.parents) > 1 {
			b.WriteString("Merge:")
			for _, p := range c.parents {
				b.WriteString(" " + r.abbrev(p))
			}
			b.WriteByte('\n')
		}
		date := func(i ident) string { return r.formatDate(i.when, f.date) }
		who := func(i ident) string { return i.name + " <" + i.email + ">" }
		switch f.name {
		case "short":
			fmt.Fprintf(&b, "Author: %s\n", who(c.author))
		case "medium":
			fmt.Fprintf(&b, "Author: %s\nDate:   %s\n", who(c.author), date(c.author))
		case "full":
			fmt.Fprintf(&b, "Author: %s\nCommit: %s\n", who(c.author), who(c.committer))
		case "fuller":
			fmt.Fprintf(&b, "Author:     %s\nAuthorDate: %s\nCommit:     %s\nCommitDate: %s\n", who(c.author), date(c.author), who(c.committer), date(c.committer))
		}
	}
	message := strings.TrimLeft(c.message, "\n")
	if f.name == "short" {
		message = c.subject()
	}
	message = strings.TrimRight(message, "\n")
	if message == "" {
		return strings.TrimRight(b.String(), "\n") + "\n"
	}
	b.WriteByte('\n')
	for _, line := range strings.Split(message, "\n") {
		line = strings.TrimRight(line, " \t\r")
		if f.name != "raw" && f.name != "short" {
			line = untab(line)
		}
		b.WriteString("    " + line + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// untab expands tabs to columns of 8, as log does.
func untab(s string) string {
	if !strings.Contains(s, "\t") {
		return s
	}
	var b strings.Builder
	col := 0
	for _, c := range s {
		if c == '\t' {
			n := 8 - col%8
			b.WriteString(strings.Repeat(" ", n))
			col += n
			continue
		}
		b.WriteRune(c)
		col++
	}
	return b.String()
}

// decoration is " (HEAD -> main, tag: v1)" without the blank, "" if nothing points to the commit.
func (r *repo) decoration(mode string, id oid) string {
	if mode == "" || mode == "no" {
		return ""
	}
	if s := r.decorate(mode, id, ", "); s != "" {
		return "(" + s + ")"
	}
	return ""
}

func (r *repo) decorate(mode string, id oid, sep string) string {
	return strings.Join(r.decorationNames(mode, id), sep)
}

func (r *repo) decorationNames(mode string, id oid) []string {
	if r.decorations == nil {
		r.decorations = map[oid][]string{}
		refs := r.refs("refs/")
		// git puts each found reference before those found earlier; HEAD is found last.
		for _, f := range refs {
			if !strings.HasPrefix(f.name, "refs/heads/") && !strings.HasPrefix(f.name, "refs/remotes/") && !strings.HasPrefix(f.name, "refs/tags/") && f.name != "refs/stash" {
				continue
			}
			target := f.id
			if p, err := r.peel(f.id, 0); err == nil {
				target = p
			}
			r.decorations[target] = append([]string{f.name}, r.decorations[target]...)
		}
		if _, id := r.head(); !id.isZero() {
			r.decorations[id] = append([]string{"HEAD"}, r.decorations[id]...)
		}
	}
	names := r.decorations[id]
	if len(names) == 0 {
		return nil
	}
	branch, _ := r.head()
	var out []string
	for _, n := range names {
		short := n
		if mode != "full" {
			short = shortRef(n)
		}
		switch {
		case n == "HEAD" && branch != "":
			b := branch
			if mode != "full" {
				b = shortRef(branch)
			}
			out = append(out, "HEAD -> "+b)
		case n == branch:
			if names[0] != "HEAD" {
				out = append(out, short)
			}
		case strings.HasPrefix(n, "refs/tags/"):
			out = append(out, "tag: "+short)
		default:
			out = append(out, short)
		}
	}
	return out
}

// padding is a pending %<(N) or %>(N).
type padding struct {
	width int
	mode  byte // '<', '>', '^'
	trunc string
	col   bool
}

// expand replaces the placeholders of a user format.
func (r *repo) expand(f *logFormat, n *node, format string) string {
	var b strings.Builder
	var pad *padding
	for i := 0; i < len(format); {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			i++
			continue
		}
		rest := format[i+1:]
		if p, used := parsePadding(rest); p != nil {
			pad = p
			i += 1 + used
			continue
		}
		mod := byte(0)
		if strings.IndexByte("+- ", rest[0]) >= 0 && len(rest) > 1 {
			mod, rest = rest[0], rest[1:]
			i++
		}
		s, used := r.placeholder(f, n, rest)
		if used == 0 {
			b.WriteByte('%')
			if mod != 0 {
				b.WriteByte(mod)
			}
			i++
			continue
		}
		i += 1 + used
		if pad != nil {
			s = pad.apply(s, b.String())
			pad = nil
		}
		switch {
		case mod == '+' && s != "":
			b.WriteByte('\n')
		case mod == ' ' && s != "":
			b.WriteByte(' ')
		case mod == '-' && s == "":
			t := strings.TrimRight(b.String(), "\n")
			b.Reset()
			b.WriteString(t)
		}
		b.WriteString(s)
	}
	return b.String()
}

// parsePadding reads <(N[,trunc]), >(N), >>(N), ><(N).
func parsePadding(s string) (*padding, int) {
	p := &padding{mode: s[0]}
	at := 1
	switch {
	case strings.HasPrefix(s, "><"):
		p.mode, at = '^', 2
	case strings.HasPrefix(s, ">>"):
		at = 2
	case s[0] != '<' && s[0] != '>':
		return nil, 0
	}
	if at < len(s) && s[at] == '|' {
		p.col = true
		at++
	}
	if at >= len(s) || s[at] != '(' {
		return nil, 0
	}
	inside, _, ok := strings.Cut(s[at+1:], ")")
	if !ok {
		return nil, 0
	}
	width, trunc, _ := strings.Cut(inside, ",")
	w, err := strconv.Atoi(strings.TrimSpace(width))
	if err != nil || w < 0 || w > 10000 {
		return nil, 0
	}
	p.width, p.trunc = w, strings.TrimSpace(trunc)
	return p, at + len(inside) + 2
}

func (p *padding) apply(s, before string) string {
	width := p.width
	if p.col {
		width -= utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	}
	w := utf8.RuneCountInString(s)
	if w > width && p.trunc != "" && width >= 2 {
		runes := []rune(s)
		switch p.trunc {
		case "ltrunc":
			return ".." + string(runes[w-width+2:])
		case "mtrunc":
			return string(runes[:width/2-1]) + ".." + string(runes[w-(width-width/2)+1:])
		default:
			return string(runes[:width-2]) + ".."
		}
	}
	gap := max(0, width-w)
	switch p.mode {
	case '<':
		return s + strings.Repeat(" ", gap)
	case '>':
		return strings.Repeat(" ", gap) + s
	}
	return strings.Repeat(" ", gap/2) + s + strings.Repeat(" ", gap-gap/2)
}

// placeholder expands what follows a percent sign; used is its length, 0 if it is none.
func (r *repo) placeholder(f *logFormat, n *node, s string) (out string, used int) {
	c := n.commit
	switch s[0] {
	case '%':
		return "%", 1
	case 'n':
		return "\n", 1
	case 'x':
		if len(s) > 2 {
			if v, err := strconv.ParseUint(s[1:3], 16, 8); err == nil {
				return string([]byte{byte(v)}), 3
			}
		}
		return "", 0
	case 'H':
		return c.id.String(), 1
	case 'h':
		return r.shortHash(f, c.id), 1
	case 'T':
		return c.tree.String(), 1
	case 't':
		return r.shortHash(f, c.tree), 1
	case 'P', 'p':
		var l []string
		for _, p := range n.follow {
			if s[0] == 'P' {
				l = append(l, p.String())
			} else {
				l = append(l, r.shortHash(f, p))
			}
		}
		return strings.Join(l, " "), 1
	case 's':
		return c.subject(), 1
	case 'f':
		return fileSubject(c.subject()), 1
	case 'b':
		_, body := splitMessage(c.message)
		return body, 1
	case 'B':
		return strings.TrimLeft(c.message, "\n"), 1
	case 'd', 'D':
		d := r.decorate(s2(f.decorate, "short"), c.id, ", ")
		if s[0] == 'd' && d != "" {
			d = " (" + d + ")"
		}
		return d, 1
	case 'S':
		return r.sources[c.id], 1
	case 'm':
		switch {
		case n.bound:
			return "-", 1
		case n.flag != 0:
			return string(n.flag), 1
		}
		return ">", 1
	case 'e', 'N':
		return "", 1
	case 'a', 'c':
		return r.identPlaceholder(f, c, s)
	case 'C':
		return "", colorPlaceholder(s)
	case 'g':
		return r.reflogPlaceholder(f, n, s)
	case 'G':
		if len(s) > 1 {
			if s[1] == '?' {
				return "N", 2
			}
			return "", 2
		}
	case 'w':
		if strings.HasPrefix(s, "w(") {
			if j := strings.IndexByte(s, ')'); j > 0 {
				return "", j + 1
			}
		}
	case '(':
		return r.trailersPlaceholder(c, s)
	}
	return "", 0
}

// colorPlaceholder is the length of a colour, which is left out: nothing here is coloured.
func colorPlaceholder(s string) int {
	if strings.HasPrefix(s, "C(") {
		if j := strings.IndexByte(s, ')'); j > 0 {
			return j + 1
		}
		return 0
	}
	for _, name := range []string{"red", "green", "blue", "reset"} {
		if strings.HasPrefix(s[1:], name) {
			return 1 + len(name)
		}
	}
	return 0
}

func (r *repo) identPlaceholder(f *logFormat, c *commit, s string) (string, int) {
	if len(s) < 2 {
		return "", 0
	}
	i := c.author
	if s[0] == 'c' {
		i = c.committer
	}
	switch s[1] {
	case 'n', 'N':
		return i.name, 2
	case 'e', 'E':
		return i.email, 2
	case 'l', 'L':
		local, _, _ := strings.Cut(i.email, "@")
		return local, 2
	case 'd':
		return r.formatDate(i.when, f.date), 2
	case 'D':
		return r.formatDate(i.when, "rfc"), 2
	case 'r':
		return r.formatDate(i.when, "relative"), 2
	case 't':
		return r.formatDate(i.when, "unix"), 2
	case 'i':
		return r.formatDate(i.when, "iso"), 2
	case 'I':
		return r.formatDate(i.when, "iso-strict"), 2
	case 's':
		return r.formatDate(i.when, "short"), 2
	case 'h':
		return r.formatDate(i.when, "human"), 2
	}
	return "", 0
}

func (r *repo) reflogPlaceholder(f *logFormat, n *node, s string) (string, int) {
	if len(s) < 2 || strings.IndexByte("Ddsne", s[1]) < 0 {
		return "", 0
	}
	e := n.log
	if e == nil {
		return "", 2
	}
	switch s[1] {
	case 'D':
		return e.selector, 2
	case 'd':
		return shortSelector(e.selector), 2
	case 's':
		return e.message, 2
	case 'n':
		return e.who.name, 2
	}
	return e.who.email, 2
}

// trailersPlaceholder expands (trailers...), with key=, valueonly, only, separator=.
func (r *repo) trailersPlaceholder(c *commit, s string) (string, int) {
	end := strings.IndexByte(s, ')')
	if end < 0 || !strings.HasPrefix(s, "(trailers") {
		return "", 0
	}
	_, opts, _ := strings.Cut(s[1:end], ":")
	key, sep, only := "", "\n", false
	last := "\n"
	for _, o := range strings.Split(opts, ",") {
		k, v, _ := strings.Cut(o, "=")
		switch k {
		case "key":
			key = strings.TrimSuffix(v, ":")
		case "valueonly":
			only = true
		case "separator":
			sep, last = r.expand(&logFormat{}, &node{commit: c}, v), ""
		}
	}
	var out []string
	for _, t := range trailers(c.message) {
		k, v, _ := strings.Cut(t, ": ")
		if key != "" && !strings.EqualFold(k, key) {
			continue
		}
		if only {
			t = v
		}
		out = append(out, t)
	}
	if len(out) == 0 {
		return "", end + 1
	}
	return strings.Join(out, sep) + last, end + 1
}

// trailers are the "Key: value" lines that end a message.
func trailers(message string) (list []string) {
	m := strings.TrimRight(message, "\n")
	i := strings.LastIndex(m, "\n\n")
	if i < 0 {
		return nil
	}
	for _, line := range strings.Split(m[i+2:], "\n") {
		k, _, ok := strings.Cut(line, ": ")
		if !ok || k == "" || strings.ContainsAny(k, " \t") {
			if strings.HasPrefix(line, "(cherry picked from commit ") {
				list = append(list, line)
				continue
			}
			return nil
		}
		list = append(list, line)
	}
	return list
}

// fileSubject is a subject as a file name: %f.
func fileSubject(s string) string {
	var b strings.Builder
	space := 2
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' {
			if space == 1 {
				b.WriteByte('-')
			}
			space = 0
			b.WriteByte(c)
			for c == '.' && i+1 < len(s) && s[i+1] == '.' {
				i++
			}
		} else {
			space |= 1
		}
	}
	return strings.TrimRight(b.String(), ".-")
}

// patchID names what a commit changes, whatever the place; "" for merges.
func (r *repo) patchID(c *commit) string {
	if len(c.parents) > 1 {
		return ""
	}
	var parent oid
	if len(c.parents) == 1 {
		parent = r.readCommit(c.parents[0]).tree
	}
	d := newDiffOptions()
	d.patch, d.fullIndex, d.renames = true, true, 0
	text := r.capture(func() { r.showChanges(r.compareTrees(parent, c.tree), &d) })
	var b strings.Builder
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "index ") || strings.HasPrefix(line, "@@ ") {
			continue
		}
		for _, w := range strings.Fields(line) {
			b.WriteString(w)
		}
		b.WriteByte('\n')
	}
	id := hashObject(blobObj, []byte(b.String()))
	return id.String()
}

// shortSelector is the place in a reference's log with the short name.
func shortSelector(s string) string { return strings.TrimPrefix(shortRef(s), "refs/") }
