package git

import (
	"sort"
	"strconv"
	"strings"
)

func (r *repo) cmdStash(args []string) int {
	r.needTree()
	if len(args) == 0 || strings.HasPrefix(args[0], "-") && args[0] != "--" {
		return r.stashPush(args)
	}
	verb, rest := args[0], args[1:]
	switch verb {
	case "push", "--":
		return r.stashPush(rest)
	case "save":
		var opts, words []string
		for _, a := range rest {
			if strings.HasPrefix(a, "-") {
				opts = append(opts, a)
			} else {
				words = append(words, a)
			}
		}
		if len(words) > 0 {
			opts = append(opts, "-m", strings.Join(words, " "))
		}
		return r.stashPush(opts)
	case "list":
		return r.stashList(rest)
	case "show":
		return r.stashShow(rest)
	case "pop", "apply":
		return r.stashApply(verb, rest)
	case "drop":
		return r.stashDrop(rest)
	case "clear":
		r.deleteRef("refs/stash")
		return 0
	case "branch":
		return r.stashBranch(rest)
	case "create":
		id, _ := r.stashCreate(strings.Join(rest, " "), false, nil, true)
		if !id.isZero() {
			r.printf("%s\n", id)
		}
		return 0
	case "store":
		return r.stashStore(rest)
	}
	r.die(129, "error: unknown subcommand: `%s'\nusage: git stash list [<log-options>]\n", verb)
	return 129
}

func (r *repo) stashStore(args []string) int {
	message := "Created via \"git stash store\"."
	o := r.options("stash store", args)
	for o.next() {
		switch o.name {
		case "-m", "--message":
			message = o.arg()
		case "-q", "--quiet":
		default:
			o.unknown()
		}
	}
	if rest := o.operands(); len(rest) == 1 {
		r.pushStash(r.commitRev(rest[0]), message)
	}
	return 0
}

func (r *repo) pushStash(id oid, message string) {
	_, old, _ := r.resolveRef("refs/stash")
	r.setRef("refs/stash", id)
	r.logRef("refs/stash", old, id, message)
}

// stashCreate records index and work tree as commits; zero if there is nothing. all takes untracked files, too.
func (r *repo) stashCreate(message string, untracked bool, spec *pathspec, tell bool) (oid, []string) {
	branch, head := r.head()
	if head.isZero() {
		r.die(1, "You do not have the initial commit yet")
	}
	var match func(string) bool
	if spec != nil && !spec.empty() {
		match = spec.match
	}
	hc := r.readCommit(head)
	tree := r.flatten(hc.tree)
	if r.index().unmerged() {
		r.listNeedsMerge()
		r.die(1, "error: could not write index")
	}
	staged := r.flatIndex()
	work := r.treeToWork(tree, match)
	var stagedChanges []change
	for _, c := range compareFlat(tree, staged) {
		if match == nil || match(c.path()) {
			stagedChanges = append(stagedChanges, c)
		}
	}
	var others []string
	if untracked {
		others, _ = r.untracked(true, false, match)
	}
	if len(work) == 0 && len(stagedChanges) == 0 && len(others) == 0 {
		return oid{}, nil
	}
	name := "(no branch)"
	if branch != "" {
		name = shortRef(branch)
	}
	base := name + ": " + r.abbrev(head) + " " + hc.subject()
	author, committer := r.who("AUTHOR"), r.who("COMMITTER")
	make := func(tree oid, text string, parents ...oid) oid {
		c := &commit{tree: tree, parents: parents, author: author, committer: committer, message: text}
		return r.writeObject(commitObj, c.encode())
	}
	idx := make(r.writeFlat(staged), "index on "+base+"\n", head)
	now := flat{}
	for p, e := range tree {
		now[p] = e
	}
	if match != nil {
		for p, e := range staged {
			now[p] = e
		}
	}
	for _, c := range work {
		if c.new.mode == 0 {
			delete(now, c.old.name)
			continue
		}
		e := c.new
		if c.data[1].have {
			e.id = r.writeObject(blobObj, c.data[1].data)
		}
		now[e.name] = e
	}
	parents := []oid{head, idx}
	if untracked {
		extra := flat{}
		for _, p := range others {
			a, err := r.t.Lstat(r.file(p))
			if err != nil || a.Mode.IsDir() {
				continue
			}
			data, err := r.workData(p, a)
			r.must(err)
			extra[p] = treeEntry{mode: r.fileMode(a, 0), name: p, id: r.writeObject(blobObj, data)}
		}
		if len(extra) > 0 {
			parents = append(parents, make(r.writeFlat(extra), "untracked files on "+base+"\n"))
		}
	}
	text := "WIP on " + base
	if message != "" {
		text = "On " + name + ": " + message
	}
	return make(r.writeFlat(now), text, parents...), others
}

func (r *repo) stashPush(args []string) int {
	keep, untracked, quiet, stagedOnly := false, false, false, false
	message := ""
	o := r.options("stash push", args)
	for o.next() {
		switch o.name {
		case "-m", "--message":
			message = o.arg()
		case "-k", "--keep-index":
			keep = true
		case "--no-keep-index":
			keep = false
		case "-u", "--include-untracked":
			untracked = true
		case "-a", "--all":
			untracked = true
			r.noIgnore = true
		case "-q", "--quiet":
			quiet = true
		case "-S", "--staged":
			stagedOnly = true
		case "-p", "--patch":
			r.fatal("%s needs a person at a terminal: it isn't done here", o.name)
		default:
			o.unknown()
		}
	}
	_ = stagedOnly
	paths := o.operands()
	spec := r.pathspec(paths)
	if len(paths) > 0 && !untracked {
		r.matchTracked(paths)
	}
	id, others := r.stashCreate(message, untracked, spec, false)
	if id.isZero() {
		if !quiet {
			r.printf("No local changes to save\n")
		}
		return 0
	}
	c := r.readCommit(id)
	r.pushStash(id, strings.TrimSpace(c.message))
	if !quiet {
		r.printf("Saved working directory and index state %s\n", c.subject())
	}
	head := r.readCommit(c.parents[0]).tree
	idx := r.readCommit(c.parents[1]).tree
	for _, p := range others {
		r.removeWork(p)
	}
	switch {
	case spec.empty() && keep:
		r.resetHard(idx)
	case spec.empty():
		r.resetHard(head)
	default:
		tree := head
		if keep {
			tree = idx
		}
		r.restorePaths(tree, spec)
	}
	r.writeIndex()
	return 0
}

// restorePaths makes matching paths what a tree has, in index and work tree.
func (r *repo) restorePaths(tree oid, spec *pathspec) {
	from := r.flatten(tree)
	for _, e := range append([]entry(nil), r.index().entries...) {
		if _, ok := from[e.path]; !ok && spec.match(e.path) {
			r.index().remove(e.path)
			r.removeWork(e.path)
		}
	}
	for _, p := range from.paths() {
		if spec.match(p) {
			e := r.index().find(p)
			if e != nil && e.id == from[p].id && e.mode == from[p].mode {
				if _, differs := r.workChange(e); !differs {
					continue
				}
			}
			r.checkOut(from[p])
		}
	}
}

// stashRef resolves an argument such as "1", "stash@{1}" or nothing. n is its place in the log, -1 if it is a commit.
func (r *repo) stashRef(rest []string) (id oid, n int, name string) {
	n, name = 0, "refs/stash@{0}"
	list := r.reflog("refs/stash")
	if len(rest) > 1 {
		r.die(1, "Too many revisions specified: %s", strings.Join(rest, " "))
	}
	if len(rest) == 1 {
		s := rest[0]
		name = s
		if k, err := strconv.Atoi(s); err == nil {
			n, name = k, "refs/stash@{"+s+"}"
		} else if inner, ok := strings.CutPrefix(strings.TrimPrefix(s, "refs/"), "stash@{"); ok {
			if n, err = strconv.Atoi(strings.TrimSuffix(inner, "}")); err != nil {
				r.die(1, "error: %s is not a valid reference", s)
			}
		} else if s != "stash" && s != "refs/stash" {
			id, err := r.commitOf(s)
			if err != nil {
				r.die(1, "error: %s is not a valid reference", s)
			}
			if len(r.readCommit(id).parents) < 2 {
				r.die(1, "error: '%s' is not a stash-like commit", s)
			}
			return id, -1, s
		}
	}
	if len(list) == 0 {
		r.die(1, "No stash entries found.")
	}
	if n >= len(list) || n < 0 {
		r.die(1, "error: %s is not a valid reference", strings.Replace(name, "refs/", "", 1))
	}
	return list[len(list)-1-n].id, n, name
}

func (r *repo) stashList(args []string) int {
	if _, _, ok := r.resolveRef("refs/stash"); !ok {
		return 0
	}
	l := r.newLogger()
	l.r.setPretty(&l.f, "tformat:%gd: %gs")
	return l.run("stash list", append([]string{"-g", "--first-parent", "-m"}, append(args, "refs/stash", "--")...))
}

func (r *repo) stashShow(args []string) int {
	d := newDiffOptions()
	untracked, only := false, false
	o := r.options("stash show", args)
	for o.next() {
		switch o.name {
		case "-u", "--include-untracked":
			untracked = true
		case "--only-untracked":
			only = true
		default:
			if !r.diffOption(&d, o) {
				o.unknown()
			}
		}
	}
	id, _, _ := r.stashRef(o.operands())
	if !d.formatted() {
		d.stat = true
	}
	c := r.readCommit(id)
	base := r.readCommit(c.parents[0]).tree
	list := r.compareTrees(base, c.tree)
	if only {
		list = nil
	}
	if (untracked || only) && len(c.parents) > 2 {
		list = append(list, r.compareTrees(emptyTree, r.readCommit(c.parents[2]).tree)...)
		sortChanges(list)
	}
	return r.finishDiff(list, &d)
}

func (r *repo) stashApply(verb string, args []string) int {
	index, quiet := false, false
	o := r.options("stash "+verb, args)
	for o.next() {
		switch o.name {
		case "--index":
			index = true
		case "-q", "--quiet":
			quiet = true
		default:
			o.unknown()
		}
	}
	rest := o.operands()
	id, n, name := r.stashRef(rest)
	ok := r.applyStash(id, index)
	if !quiet {
		s := r.statusOptions()
		r.printStatus(&s, nil)
	}
	if !ok {
		if verb == "pop" {
			r.printf("The stash entry is kept in case you need it again.\n")
		}
		return 1
	}
	if verb == "pop" && n >= 0 {
		r.dropStash(n)
		if !quiet {
			r.printf("Dropped %s (%s)\n", name, id)
		}
	}
	return 0
}

// applyStash merges a stash into the work tree.
func (r *repo) applyStash(id oid, index bool) bool {
	c := r.readCommit(id)
	base := r.readCommit(c.parents[0]).tree
	if r.index().unmerged() {
		r.listNeedsMerge()
		r.die(1, "error: could not write index")
	}
	now := r.treeFromIndex()
	before := r.flatten(now)
	var staged flat
	if index {
		it := r.readCommit(c.parents[1]).tree
		if it != base {
			g := r.newMerger([3]string{"HEAD", "index", ""})
			out := g.merge(base, now, it)
			if !out.clean() {
				r.die(1, "error: conflicts in index. Try without --index.")
			}
			staged = out.files
		} else {
			staged = before
		}
	}
	var extra flat
	if len(c.parents) > 2 {
		extra = r.flatten(r.readCommit(c.parents[2]).tree)
		var there []string
		for p := range extra {
			if _, err := r.t.Lstat(r.file(p)); err == nil {
				there = append(there, p)
			}
		}
		if sort.Strings(there); len(there) > 0 {
			for _, p := range there {
				r.say("%s already exists, no checkout", p)
			}
			r.say("error: could not restore untracked files from stash")
			return false
		}
	}
	g := r.newMerger([3]string{"Updated upstream", "Stashed changes", "Stash base"})
	out := g.merge(base, now, c.tree)
	out.apply(r, before, "merge", func() {
		s := r.statusOptions()
		r.printStatus(&s, nil)
	})
	out.show(r)
	x := r.index()
	if out.clean() {
		// What was changed goes back into the work tree only; new files stay in the index.
		keep := staged
		if keep == nil {
			keep = flat{}
			for p, e := range before {
				keep[p] = e
			}
			for p, e := range out.files {
				if _, was := before[p]; !was {
					keep[p] = e
				}
			}
		}
		r.setIndex(keep)
	}
	x.changed = true
	for p, e := range extra {
		if _, err := r.writeWork(p, e.mode, r.blobOf(e)); err != nil {
			r.say("error: unable to create file %s: %s", p, strerror(err))
		}
	}
	r.writeIndex()
	return out.clean()
}

// setIndex makes the index a list of files, keeping what is known of those that stay as they are.
func (r *repo) setIndex(f flat) {
	x := r.index()
	var out []entry
	for _, p := range f.paths() {
		e := entry{mode: f[p].mode, id: f[p].id, path: p}
		if was := x.find(p); was != nil && was.id == e.id && was.mode == e.mode {
			e = *was
		}
		out = append(out, e)
	}
	x.entries, x.changed = out, true
}

// dropStash removes the n-th entry.
func (r *repo) dropStash(n int) {
	list := r.reflog("refs/stash")
	i := len(list) - 1 - n
	list = append(list[:i:i], list[i+1:]...)
	if len(list) == 0 {
		r.deleteRef("refs/stash")
		return
	}
	var b strings.Builder
	old := oid{}
	for _, e := range list {
		b.WriteString(old.String() + " " + e.id.String() + " " + e.who.String() + "\t" + e.message + "\n")
		old = e.id
	}
	r.must(r.overwrite(r.common+"/logs/refs/stash", b.String()))
	r.setRef("refs/stash", old)
}

func (r *repo) stashDrop(args []string) int {
	quiet := false
	o := r.options("stash drop", args)
	for o.next() {
		switch o.name {
		case "-q", "--quiet":
			quiet = true
		default:
			o.unknown()
		}
	}
	id, n, name := r.stashRef(o.operands())
	if n < 0 {
		r.die(1, "error: '%s' is not a stash reference", name)
	}
	r.dropStash(n)
	if !quiet {
		r.printf("Dropped %s (%s)\n", name, id)
	}
	return 0
}

func (r *repo) stashBranch(args []string) int {
	if len(args) == 0 {
		r.die(129, "No branch name specified")
	}
	id, n, name := r.stashRef(args[1:])
	s := switchOptions{verb: "checkout", create: args[0]}
	if status := r.switchTo(&s, r.readCommit(id).parents[0].String()); status != 0 {
		return status
	}
	ok := r.applyStash(id, true)
	o := r.statusOptions()
	r.printStatus(&o, nil)
	if !ok {
		return 1
	}
	if n >= 0 {
		r.dropStash(n)
		r.printf("Dropped %s (%s)\n", name, id)
	}
	return 0
}
