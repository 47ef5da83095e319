package git

import (
	"sort"
	"strings"
)

func (r *repo) cmdReflog(args []string) int {
	verb := "show"
	if len(args) > 0 {
		switch args[0] {
		case "show", "expire", "delete", "exists":
			verb, args = args[0], args[1:]
		}
	}
	switch verb {
	case "exists":
		if len(args) == 1 && len(r.reflog(args[0])) > 0 {
			return 0
		}
		return 1
	case "expire":
		return r.reflogExpire(args)
	case "delete":
		return r.reflogDelete(args)
	}
	l := r.newLogger()
	l.f.abbrev = true
	r.setPretty(&l.f, "oneline")
	return l.run("reflog", append([]string{"-g"}, args...))
}

// writeLog replaces a reference's log.
func (r *repo) writeLog(name string, list []logEntry) {
	var b strings.Builder
	for _, e := range list {
		b.WriteString(e.old.String() + " " + e.id.String() + " " + e.who.String() + "\t" + e.message + "\n")
	}
	dir := r.common
	if !strings.HasPrefix(name, "refs/") {
		dir = r.dir
	}
	r.must(r.overwrite(dir+"/logs/"+name, b.String()))
}

func (r *repo) reflogExpire(args []string) int {
	all, now, dry := false, false, false
	o := r.options("reflog expire", args)
	for o.next() {
		switch o.name {
		case "--all":
			all = true
		case "--expire", "--expire-unreachable":
			if v := o.arg(); v == "now" || v == "all" {
				now = true
			}
		case "-n", "--dry-run":
			dry = true
		case "--verbose", "--rewrite", "--updateref", "--stale-fix", "--single-worktree":
		default:
			o.unknown()
		}
	}
	names := o.operands()
	if all {
		names = []string{"HEAD"}
		for _, f := range r.refs("refs/") {
			names = append(names, f.name)
		}
	}
	for _, n := range names {
		full := "HEAD"
		if n != "HEAD" {
			full = r.branchName(n)
		}
		if now && !dry && len(r.reflog(full)) > 0 {
			r.writeLog(full, nil)
		}
	}
	return 0
}

func (r *repo) reflogDelete(args []string) int {
	o := r.options("reflog delete", args)
	for o.next() {
		switch o.name {
		case "--rewrite", "--updateref", "--verbose", "-n":
		default:
			o.unknown()
		}
	}
	for _, a := range o.operands() {
		name, at, ok := strings.Cut(a, "@{")
		n := 0
		if !ok || len(at) < 2 {
			r.die(255, "error: not a reflog: %s", a)
		}
		for _, c := range strings.TrimSuffix(at, "}") {
			if c < '0' || c > '9' || n > 1<<20 {
				r.die(255, "error: not a reflog: %s", a)
			}
			n = n*10 + int(c-'0')
		}
		full := "HEAD"
		if name != "HEAD" && name != "" {
			full = r.branchName(name)
		}
		list := r.reflog(full)
		if i := len(list) - 1 - n; i >= 0 {
			r.writeLog(full, append(list[:i:i], list[i+1:]...))
		}
	}
	return 0
}

func (r *repo) cmdShortlog(args []string) int {
	l := r.newLogger()
	numbered, summary, email, committer := false, false, false, false
	format := ""
	var keep []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		if len(a) > 2 && a[0] == '-' && a[1] != '-' && strings.Trim(a[1:], "nsec") == "" {
			for _, c := range a[1:] {
				args = append(args, "-"+string(c))
			}
			continue
		}
		switch {
		case a == "-n" || a == "--numbered":
			numbered = true
		case a == "-s" || a == "--summary":
			summary = true
		case a == "-e" || a == "--email":
			email = true
		case a == "-c" || a == "--committer" || a == "--group=committer":
			committer = true
		case a == "--group=author" || strings.HasPrefix(a, "-w"):
		case strings.HasPrefix(a, "--format="):
			format = strings.TrimPrefix(a, "--format=")
		default:
			keep = append(keep, a)
		}
	}
	paths := l.parse("shortlog", keep)
	if len(paths) > 0 {
		l.w.paths = r.pathspec(paths)
	}
	if !l.revs.given {
		_, id := r.head()
		if id.isZero() || !r.t.IsTerminal(0) && false {
			return 0
		}
		l.revs.add(id, id, false, "HEAD")
	}
	byName := map[string][]string{}
	var names []string
	for _, n := range l.list() {
		who := n.author
		if committer {
			who = n.committer
		}
		name := who.name
		if email {
			name += " <" + who.email + ">"
		}
		if byName[name] == nil {
			names = append(names, name)
		}
		s := n.subject()
		if format != "" {
			s = r.expand(&l.f, n, format)
		} else if s == "" {
			s = "<none>"
		} else if strings.HasPrefix(s, "[PATCH") {
			if i := strings.IndexByte(s, ']'); i > 0 {
				s = strings.TrimLeft(s[i+1:], " ")
			}
		}
		byName[name] = append(byName[name], s)
	}
	sort.Strings(names)
	if numbered {
		sort.SliceStable(names, func(i, j int) bool { return len(byName[names[i]]) > len(byName[names[j]]) })
	}
	for _, name := range names {
		list := byName[name]
		if summary {
			r.printf("%6d\t%s\n", len(list), name)
			continue
		}
		r.printf("%s (%d):\n", name, len(list))
		for i := len(list) - 1; i >= 0; i-- {
			r.printf("      %s\n", list[i])
		}
		r.printf("\n")
	}
	return 0
}

func (r *repo) cmdDescribe(args []string) int {
	var tags, all, long, always, exact, firstParent bool
	contains := false
	abbrev, dirty := -1, ""
	isDirty := false
	var match, exclude []string
	o := r.options("describe", args)
	for o.next() {
		switch o.name {
		case "--tags":
			tags = true
		case "--all":
			all = true
		case "--long":
			long = true
		case "--always":
			always = true
		case "--exact-match":
			exact = true
		case "--first-parent":
			firstParent = true
		case "--abbrev":
			abbrev = o.number()
		case "--candidates":
			if o.number() == 0 {
				exact = true
			}
		case "--match":
			match = append(match, o.arg())
		case "--exclude":
			exclude = append(exclude, o.arg())
		case "--dirty", "--broken":
			isDirty, dirty = true, s2(o.value, "-dirty")
		case "--contains":
			contains = true
		case "--debug":
		default:
			o.unknown()
		}
	}
	if contains {
		r.fatal("--contains isn't done here")
	}
	rest := o.operands()
	if len(rest) == 0 {
		rest = []string{"HEAD"}
	} else if isDirty {
		r.fatal("option '--dirty' and commit-ishes cannot be used together")
	}
	for _, a := range rest {
		id, err := r.commitOf(a)
		if err != nil {
			if len(o.operands()) == 0 {
				r.fatal("No names found, cannot describe anything.")
			}
			r.fatal("Not a valid object name %s", a)
		}
		d := &describer{r: r, tags: tags, all: all, match: match, exclude: exclude, firstParent: firstParent, exact: exact}
		s := d.describe(id, abbrev, long, always)
		if isDirty && (len(r.headChanges(id, nil)) > 0 || len(compareFlat(r.flatten(r.readCommit(id).tree), r.flatIndex())) > 0) {
			s += dirty
		}
		r.printf("%s\n", s)
	}
	return 0
}

type describer struct {
	r                             *repo
	tags, all, firstParent, exact bool
	match, exclude                []string
}

// described is a name of a commit; annotated ones are better.
type described struct {
	name     string
	priority int
	when     int64
}

func (d *describer) names() map[oid]described {
	r := d.r
	names := map[oid]described{}
	for _, f := range r.refs("refs/") {
		isTag := strings.HasPrefix(f.name, "refs/tags/")
		if !isTag && !d.all {
			continue
		}
		name := strings.TrimPrefix(f.name, "refs/tags/")
		if d.all {
			name = strings.TrimPrefix(f.name, "refs/")
		}
		plain := strings.TrimPrefix(strings.TrimPrefix(name, "tags/"), "heads/")
		ok := len(d.match) == 0
		for _, m := range d.match {
			ok = ok || wildmatch(m, plain, false)
		}
		for _, m := range d.exclude {
			ok = ok && !wildmatch(m, plain, false)
		}
		if !ok {
			continue
		}
		n := described{name: name}
		if isTag {
			n.priority = 1
			if k, data, err := r.readObject(f.id); err == nil && k == tagObj {
				n.priority = 2
				if t, err := parseTag(data); err == nil {
					n.when = t.tagger.when.Unix()
				}
			}
		}
		if n.priority < 2 && !d.tags && !d.all {
			continue
		}
		id, err := r.peel(f.id, commitObj)
		if err != nil {
			continue
		}
		if old, ok := names[id]; !ok || n.priority > old.priority || n.priority == 2 && old.priority == 2 && n.when > old.when {
			names[id] = n
		}
	}
	return names
}

// describe names a commit by the nearest tag.
func (d *describer) describe(id oid, abbrev int, long, always bool) string {
	r := d.r
	names := d.names()
	hash := func() string {
		if abbrev < 0 {
			return r.abbrev(id)
		}
		return r.abbrevN(id, max(abbrev, 4))
	}
	if n, ok := names[id]; ok {
		if long {
			return n.name + "-0-g" + hash()
		}
		return n.name
	}
	if d.exact {
		r.fatal("no tag exactly matches '%s'", id)
	}
	type candidate struct {
		name  described
		depth int
		id    oid
		order int
	}
	var found []candidate
	w := r.walkWith([]oid{id}, nil, walkOptions{max: -1, firstParent: d.firstParent})
	for c := w.next(); c != nil && len(found) < 10; c = w.next() {
		if n, ok := names[c.id]; ok {
			found = append(found, candidate{name: n, id: c.id, order: len(found)})
		}
	}
	if len(found) == 0 {
		if always {
			if abbrev == 0 {
				return id.String()
			}
			return hash()
		}
		if len(names) > 0 || len(r.refs("refs/tags/")) == 0 || d.tags || d.all {
			if len(names) == 0 {
				r.fatal("No names found, cannot describe anything.")
			}
			r.fatal("No tags can describe '%s'.\nTry --always, or create some tags.", id)
		}
		r.fatal("No annotated tags can describe '%s'.\nHowever, there were unannotated tags: try --tags.", id)
	}
	all := r.ancestors([]oid{id})
	for i := range found {
		have := r.ancestors([]oid{found[i].id})
		for c := range all {
			if !have[c] {
				found[i].depth++
			}
		}
	}
	sort.SliceStable(found, func(i, j int) bool {
		if found[i].depth != found[j].depth {
			return found[i].depth < found[j].depth
		}
		return found[i].order < found[j].order
	})
	best := found[0]
	if abbrev == 0 {
		return best.name.name
	}
	return best.name.name + "-" + itoa(best.depth) + "-g" + hash()
}

func (r *repo) cmdNameRev(args []string) int {
	nameOnly, tags := false, false
	o := r.options("name-rev", args)
	for o.next() {
		switch o.name {
		case "--name-only":
			nameOnly = true
		case "--tags":
			tags = true
		case "--always", "--no-undefined", "--undefined":
		case "--refs", "--exclude":
			o.arg()
		default:
			o.unknown()
		}
	}
	names := r.revNames(tags)
	for _, a := range o.operands() {
		id, err := r.rev(a)
		if err != nil {
			r.say("Could not get sha1 for %s. Skipping.", a)
			continue
		}
		c, err := r.peel(id, commitObj)
		if err != nil {
			continue
		}
		name := s2(names[c], "undefined")
		if nameOnly {
			r.printf("%s\n", name)
		} else {
			r.printf("%s %s\n", a, name)
		}
	}
	return 0
}

// revNames names commits by the way from a reference; the fewest steps win, tags before branches.
func (r *repo) revNames(tagsOnly bool) map[oid]string {
	type way struct {
		name  string
		steps int
	}
	best := map[oid]way{}
	refs := r.refs("refs/")
	sort.SliceStable(refs, func(i, j int) bool {
		return strings.HasPrefix(refs[i].name, "refs/tags/") && !strings.HasPrefix(refs[j].name, "refs/tags/")
	})
	for _, f := range refs {
		isTag := strings.HasPrefix(f.name, "refs/tags/")
		if tagsOnly && !isTag {
			continue
		}
		id, err := r.peel(f.id, commitObj)
		if err != nil {
			continue
		}
		name := strings.TrimPrefix(strings.TrimPrefix(f.name, "refs/heads/"), "refs/")
		if tagsOnly {
			name = strings.TrimPrefix(name, "tags/")
		}
		type item struct {
			id    oid
			base  string
			n     int
			steps int
		}
		todo := []item{{id, name, 0, 0}}
		for len(todo) > 0 {
			it := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			r.step(1)
			full := it.base
			if it.n > 0 {
				full += "~" + itoa(it.n)
			} else if it.steps == 0 && f.id != id {
				full += "^0"
			}
			if old, ok := best[it.id]; ok && old.steps <= it.steps {
				continue
			}
			best[it.id] = way{full, it.steps}
			for k, p := range r.parents(r.readCommit(it.id)) {
				if k == 0 {
					todo = append(todo, item{p, it.base, it.n + 1, it.steps + 1})
				} else {
					base := it.base
					if it.n > 0 {
						base += "~" + itoa(it.n)
					}
					todo = append(todo, item{p, base + "^" + itoa(k+1), 0, it.steps + 65535})
				}
			}
		}
	}
	out := make(map[oid]string, len(best))
	for id, w := range best {
		out[id] = w.name
	}
	return out
}
