package git

import (
	"bufio"
	"bytes"
	"strings"
)

// loggedNode is what a walk through a reference's log knows of a commit.
type loggedNode struct {
	logEntry
	selector string
}

// capture returns what f prints.
func (r *repo) capture(f func()) string {
	out := r.t.Out
	var b bytes.Buffer
	r.t.Out = bufio.NewWriter(&b)
	defer func() { r.t.Out = out }()
	f()
	r.t.Out.Flush()
	return b.String()
}

// show prints commits.
func (l *logger) show(nodes []*node) {
	if l.graph != nil && l.graph.shown == nil {
		l.graph.shown = make(map[oid]bool, len(nodes))
		for _, n := range nodes {
			l.graph.shown[n.id] = true
		}
	}
	missing := false
	for _, n := range nodes {
		l.r.t.Check()
		missing = l.showOne(n, missing)
	}
}

// end is the character that ends or separates commits.
func (l *logger) end() string {
	if l.f.zero {
		return "\x00"
	}
	return "\n"
}

// showOne prints a commit with its changes. missing tells whether the last commit's text ended without a newline.
func (l *logger) showOne(n *node, missing bool) bool {
	r, f := l.r, &l.f
	if l.graph != nil {
		l.graph.update(n)
	}
	if l.started && !f.terminator {
		if l.graph != nil && !missing && !f.zero {
			r.printf("%s", l.graph.padding())
		}
		r.printf("%s", l.end())
	}
	l.started = true
	if l.d.merges == "separate" && len(n.parents) > 1 && l.d.formatted() && !l.d.none {
		m := *n
		for _, p := range n.parents {
			if len(l.changesFrom(r.readCommit(p).tree, n.tree)) > 0 {
				m.from = p
				break
			}
		}
		n = &m
	}
	text := l.text(n)
	if l.graph != nil {
		l.graph.showCommit()
		l.graph.showText(text)
	} else {
		r.printf("%s", text)
	}
	missing = !strings.HasSuffix(text, "\n")
	empty := f.name == "user" && f.user == ""
	if f.terminator && !empty {
		if l.graph != nil && !missing {
			r.printf("%s", l.graph.padding())
		}
		r.printf("%s", l.end())
	}
	l.showChanges(n, empty)
	return missing
}

// text is the wording, with its newline where the format has one.
func (l *logger) text(n *node) string {
	f := &l.f
	extra := ""
	if f.source {
		extra = "\t" + l.r.sources[n.id]
	}
	if n.log != nil && f.name != "user" {
		if f.name == "oneline" {
			d := ""
			if dd := l.r.decoration(f.decorate, n.id); dd != "" {
				d = " " + dd
			}
			return l.r.fhash(f, n.id) + d + " " + n.log.selector + ": " + n.log.message
		}
		extra += "Reflog: " + n.log.selector + " (" + n.log.who.name + " <" + n.log.who.email + ">)\nReflog message: " + n.log.message + "\n"
	}
	s := l.r.wording(f, n, extra)
	if f.name != "user" && f.name != "oneline" && f.name != "reference" {
		s += "\n"
	}
	return s
}

// showChanges prints what a commit changed, if that is asked for.
func (l *logger) showChanges(n *node, empty bool) {
	r, d := l.r, &l.d
	if !d.formatted() || d.none {
		return
	}
	emit := func(body string, first bool) {
		if body == "" {
			return
		}
		prefix := func() string {
			if l.graph != nil {
				return l.graph.padding()
			}
			return ""
		}
		if first && l.f.name != "oneline" && !empty {
			r.printf("%s", prefix())
			if d.stat && d.patch {
				r.printf("---")
			}
			r.printf("\n")
		}
		if l.graph == nil {
			r.printf("%s", body)
			return
		}
		for _, line := range strings.SplitAfter(body, "\n") {
			if line != "" {
				r.printf("%s%s", prefix(), line)
			}
		}
	}
	c := n.commit
	parents := r.parents(c)
	switch {
	case len(parents) < 2 || d.merges == "first":
		var tree oid
		if len(parents) > 0 {
			tree = r.readCommit(parents[0]).tree
		}
		list := l.changesFrom(tree, c.tree)
		if len(list) > 0 {
			emit(r.capture(func() { r.showChanges(list, d) }), true)
		}
	case d.merges == "separate":
		shown := false
		for _, p := range parents {
			list := l.changesFrom(r.readCommit(p).tree, c.tree)
			if len(list) == 0 {
				continue
			}
			if shown {
				m := *n
				m.from = p
				if !l.f.terminator {
					r.printf("%s", l.end())
				}
				r.printf("%s", l.text(&m))
				if l.f.terminator {
					r.printf("%s", l.end())
				}
			}
			shown = true
			emit(r.capture(func() { r.showChanges(list, d) }), true)
		}
	case d.merges == "cc" || d.merges == "combined":
		if !empty {
			if l.graph != nil {
				r.printf("%s", l.graph.padding())
			}
			r.printf("\n")
		}
		emit(r.capture(func() { r.showCombined(c, l.w.paths, d) }), false)
	}
}

// runReflog shows commits as a reference's log has them: log -g.
func (l *logger) runReflog(paths []string) int {
	r := l.r
	names := l.revs.plain
	if len(names) == 0 {
		names = []string{"HEAD"}
	}
	if len(paths) > 0 {
		l.w.paths = r.pathspec(paths)
	}
	var nodes []*node
	for _, name := range names {
		name, at, dated := strings.Cut(name, "@{")
		full := "HEAD"
		if name != "HEAD" && name != "" {
			full = r.branchName(name)
		}
		shown := s2(name, "HEAD")
		if name == "" {
			if b, _ := r.head(); b != "" {
				full, shown = b, shortRef(b)
			}
		}
		_ = at
		list := r.reflog(full)
		for i := len(list) - 1; i >= 0; i-- {
			e := list[i]
			if k, _, err := r.readObject(e.id); err != nil || k != commitObj {
				continue
			}
			c := r.readCommit(e.id)
			sel := shown + "@{" + itoa(len(list)-1-i) + "}"
			if l.f.date != "" || dated && strings.Trim(strings.TrimSuffix(at, "}"), "0123456789") != "" {
				sel = shown + "@{" + r.formatDate(e.who.when, l.f.date) + "}"
			}
			if !l.keep(c) {
				continue
			}
			nodes = append(nodes, &node{commit: c, follow: c.parents, log: &loggedNode{e, sel}})
		}
	}
	nodes = nodes[min(l.w.skip, len(nodes)):]
	if l.w.max >= 0 && len(nodes) > l.w.max {
		nodes = nodes[:l.w.max]
	}
	l.show(nodes)
	return 0
}

// followed yields the commits that changed one file, across its renames.
func (l *logger) followed(include []oid) []*node {
	r := l.r
	if len(l.w.paths.items) != 1 {
		r.fatal("--follow requires exactly one pathspec")
	}
	name := l.w.paths.items[0].path
	o := l.w
	o.paths, o.max, o.skip, o.keep = nil, -1, 0, nil
	w := r.walkWith(include, l.revs.exclude, o)
	var out []*node
	names := map[oid]string{}
	for n := w.nextNode(); n != nil; n = w.nextNode() {
		if at, ok := names[n.id]; ok {
			name = at
		}
		var tree oid
		if p := r.parents(n.commit); len(p) == 1 {
			tree = r.readCommit(p[0]).tree
		} else if len(p) > 1 {
			continue
		}
		list := r.prepare(r.compareTrees(tree, n.tree), &diffOptions{renames: maxScore / 2})
		for i := range list {
			if list[i].path() != name {
				continue
			}
			if l.keepFollowed(n.commit) {
				out = append(out, n)
				l.followNames(n.id, name, list[i])
			}
			if list[i].status == 'R' {
				name = list[i].old.name
			}
			break
		}
	}
	out = out[min(l.w.skip, len(out)):]
	if l.w.max >= 0 && len(out) > l.w.max {
		out = out[:l.w.max]
	}
	return out
}

func (l *logger) keepFollowed(c *commit) bool {
	paths := l.w.paths
	l.w.paths = nil
	defer func() { l.w.paths = paths }()
	return l.keep(c)
}

// followNames makes a commit's changes be those of the name that the file had then.
func (l *logger) followNames(id oid, name string, c change) {
	s := &pathspec{items: []specItem{{path: name}}}
	if c.status == 'R' {
		s.items = append(s.items, specItem{path: c.old.name})
	}
	if l.followed2 == nil {
		l.followed2 = map[oid]*pathspec{}
	}
	l.followed2[id] = s
}
