package git

import (
	"fmt"
	"strings"
)

type mergeOptions struct {
	ff                                              string // "", no, only
	noCommit, squash, quiet, noStat, unrelated      bool
	message                                         []string
	file, strategy, into                            string
	extra                                           []string // -X
	edit, signOff, log, noVerify, abort, cont, quit bool
	pull                                            string // reason for the log, of pull
	subject                                         string // of the message, of pull
}

func (r *repo) cmdMerge(args []string) int {
	r.needTree()
	var m mergeOptions
	if v, ok := r.config().get("merge.ff"); ok {
		m.ff = map[string]string{"false": "no", "only": "only"}[v]
	}
	o := r.options("merge", args)
	for o.next() {
		if !m.option(r, o) {
			o.unknown()
		}
	}
	switch {
	case m.abort:
		return r.mergeAbort()
	case m.quit:
		r.clearMerge()
		return 0
	case m.cont:
		if !r.gitFileExists("MERGE_HEAD") {
			r.fatal("There is no merge in progress (MERGE_HEAD missing).")
		}
		c := commitOptions{status: r.statusOptions(), noEdit: r.t.Getenv("GIT_EDITOR") == "" && r.editor(false) == ""}
		c.status.format = ""
		return r.commit(&c, nil)
	}
	return r.mergeRevs(&m, o.operands())
}

func (m *mergeOptions) option(r *repo, o *options) bool {
	switch o.name {
	case "--ff":
		m.ff = ""
	case "--no-ff":
		m.ff = "no"
	case "--ff-only":
		m.ff = "only"
	case "--no-commit":
		m.noCommit = true
	case "--commit":
		m.noCommit = false
	case "--squash":
		m.squash = true
	case "--no-squash":
		m.squash = false
	case "-m", "--message":
		m.message = append(m.message, o.arg())
	case "-F", "--file":
		b, err := r.t.ReadFile(o.arg(), maxSmall)
		r.must(err)
		m.message = append(m.message, string(b))
	case "-s", "--strategy":
		m.strategy = o.arg()
	case "-X", "--strategy-option":
		m.extra = append(m.extra, o.arg())
	case "-q", "--quiet":
		m.quiet = true
	case "-n", "--no-stat":
		m.noStat = true
	case "-e", "--edit":
		m.edit = true
	case "--signoff":
		m.signOff = true
	case "--no-verify":
		m.noVerify = true
	case "--allow-unrelated-histories":
		m.unrelated = true
	case "--abort":
		m.abort = true
	case "--continue":
		m.cont = true
	case "--quit":
		m.quit = true
	case "--into-name":
		m.into = o.arg()
	case "-v", "--verbose", "--stat", "--summary", "--no-edit", "--log", "--no-log", "--progress", "--no-progress", "--autostash", "--no-autostash", "--verify-signatures",
		"--no-verify-signatures", "--rerere-autoupdate", "--no-rerere-autoupdate", "--no-gpg-sign", "--overwrite-ignore", "--no-signoff":
	default:
		return false
	}
	return true
}

func (r *repo) mergeAbort() int {
	if !r.gitFileExists("MERGE_HEAD") {
		r.fatal("There is no merge to abort (MERGE_HEAD missing).")
	}
	_, head := r.head()
	if _, orig, ok := r.resolveRef("ORIG_HEAD"); ok {
		_ = orig
	}
	r.resetTo("HEAD", "merge", true)
	_ = head
	r.clearMerge()
	return 0
}

func (r *repo) clearMerge() {
	for _, f := range []string{"MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "AUTO_MERGE", "SQUASH_MSG"} {
		r.t.Unlink(r.dir + "/" + f)
	}
}

// checkIdle ends the command if a merge or conflicts are left from before.
func (r *repo) checkIdle(verb string) {
	if r.index().unmerged() {
		r.say("error: %s is not possible because you have unmerged files.", verb)
		r.say("hint: Fix them up in the work tree, and then use 'git add/rm <file>'\nhint: as appropriate to mark resolution and make a commit.")
		r.fatal("Exiting because of an unresolved conflict.")
	}
	if r.gitFileExists("MERGE_HEAD") {
		r.fatal("You have not concluded your merge (MERGE_HEAD exists).\nPlease, commit your changes before you merge.")
	}
	if r.gitFileExists("CHERRY_PICK_HEAD") {
		r.fatal("You have not concluded your cherry-pick (CHERRY_PICK_HEAD exists).\nPlease, commit your changes before you merge.")
	}
}

// mergeRevs merges revisions into HEAD.
func (r *repo) mergeRevs(m *mergeOptions, names []string) int {
	r.checkIdle("Merging")
	branch, head := r.head()
	if len(names) == 0 {
		up := r.upstream(branch)
		if up == "" {
			if branch == "" {
				r.fatal("No current branch.")
			}
			r.fatal("No remote for the current branch.")
		}
		names = []string{shortRef(up)}
	}
	var heads []oid
	for _, n := range names {
		n = undash(n)
		id, err := r.commitOf(n)
		if err != nil {
			r.die(1, "merge: %s - not something we can merge", n)
		}
		heads = append(heads, id)
	}
	if head.isZero() {
		r.goTo(flat{}, r.flatten(r.readCommit(heads[0]).tree))
		r.writeIndex()
		r.updateRef("HEAD", heads[0], "initial pull")
		return 0
	}
	if m.squash && m.ff == "no" {
		r.fatal("options '--squash' and '--no-ff.' cannot be used together")
	}
	r.must(r.writeFile(r.dir+"/ORIG_HEAD", []byte(head.String()+"\n"), 0o666))
	if len(heads) > 1 {
		return r.octopus(m, head, heads, names)
	}
	id := heads[0]
	bases := r.mergeBases(head, id)
	switch {
	case len(bases) == 0 && !m.unrelated:
		r.fatal("refusing to merge unrelated histories")
	case len(bases) == 1 && bases[0] == id:
		if !m.quiet {
			suffix := ""
			if m.squash {
				suffix = " (nothing to squash)"
			}
			r.printf("Already up to date.%s\n", suffix)
		}
		return 0
	case len(bases) == 1 && bases[0] == head && m.ff != "no":
		return r.fastForward(m, head, id, names[0])
	case m.ff == "only":
		r.fatal("Not possible to fast-forward, aborting.")
	}
	return r.trueMerge(m, head, id, bases, names[0])
}

func (r *repo) fastForward(m *mergeOptions, head, id oid, name string) int {
	if !m.quiet {
		r.printf("Updating %s..%s\n", r.abbrev(head), r.abbrev(id))
	}
	from, to := r.flatten(r.readCommit(head).tree), r.flatten(r.readCommit(id).tree)
	r.refuse(from, to, "merge")
	r.goTo(from, to)
	r.writeIndex()
	if m.squash {
		if !m.quiet {
			r.printf("Fast-forward\nSquash commit -- not updating HEAD\n")
		}
		r.squashMessage(head, id)
		r.mergeStat(m, head, id)
		return 0
	}
	if !m.quiet {
		r.printf("Fast-forward\n")
	}
	r.updateRef("HEAD", id, s2(m.pull, "merge "+name)+": Fast-forward")
	r.mergeStat(m, head, id)
	r.hook("post-merge", "0")
	return 0
}

// mergeStat shows what a merge changed.
func (r *repo) mergeStat(m *mergeOptions, head, id oid) {
	if m.quiet || m.noStat || !r.config().bool("merge.stat", true) {
		return
	}
	r.statBetween(r.readCommit(head).tree, r.readCommit(id).tree)
}

func (r *repo) statBetween(a, b oid) {
	d := newDiffOptions()
	d.stat, d.summary = true, true
	r.showChanges(r.prepare(r.compareTrees(a, b), &d), &d)
}

// mergeSubject is the first line of a merge's message.
func (r *repo) mergeSubject(names []string, into string) string {
	var b strings.Builder
	b.WriteString("Merge ")
	byKind := map[string][]string{}
	var order []string
	for _, n := range names {
		kind, shown := "commit", n
		full, _, ok := r.expandRef(undash(n))
		if !ok {
			if br := r.branchArg(n); br != n {
				full, _, ok = r.expandRef(br)
				shown = br
			}
		}
		switch {
		case ok && strings.HasPrefix(full, "refs/heads/"):
			kind, shown = "branch", strings.TrimPrefix(full, "refs/heads/")
		case ok && strings.HasPrefix(full, "refs/remotes/"):
			kind = "remote-tracking branch"
			shown = strings.TrimPrefix(full, "refs/remotes/")
		case ok && strings.HasPrefix(full, "refs/tags/"):
			kind = "tag"
			shown = strings.TrimPrefix(full, "refs/tags/")
		}
		if byKind[kind] == nil {
			order = append(order, kind)
		}
		byKind[kind] = append(byKind[kind], "'"+shown+"'")
	}
	for i, k := range order {
		if i > 0 {
			b.WriteString(", ")
		}
		l := byKind[k]
		if len(l) > 1 {
			k += map[bool]string{true: "es", false: "s"}[strings.HasSuffix(k, "branch")]
			b.WriteString(k + " " + strings.Join(l[:len(l)-1], ", ") + " and " + l[len(l)-1])
		} else {
			b.WriteString(k + " " + l[0])
		}
	}
	branch, _ := r.head()
	dest := s2(into, shortRef(s2(branch, "HEAD")))
	if dest != "master" && dest != "main" {
		b.WriteString(" into " + dest)
	}
	return b.String()
}

// strategyOptions sets up a merger from -s and -X.
func (r *repo) strategyOptions(g *merger, extra []string) {
	for _, x := range extra {
		switch {
		case x == "ours" || x == "theirs":
			g.favor = x
		case x == "no-renames":
			g.renames = false
		case x == "ignore-all-space":
			g.space = spaceNone
		case x == "ignore-space-change":
			g.space = spaceChange
		case x == "patience" || x == "histogram" || x == "minimal" || x == "renormalize" || strings.HasPrefix(x, "find-renames") || strings.HasPrefix(x, "diff-algorithm="):
		default:
			r.fatal("unknown strategy option: -X%s", x)
		}
	}
}

// trueMerge makes a merge commit, or leaves conflicts.
func (r *repo) trueMerge(m *mergeOptions, head, id oid, bases []oid, name string) int {
	ours := r.readCommit(head).tree
	strategy := s2(m.strategy, "ort")
	subject := s2(m.subject, r.mergeSubject([]string{name}, m.into))
	text := subject + "\n"
	if len(m.message) > 0 {
		text = strings.Join(m.message, "\n\n")
	}
	r.checkStaged(ours, strategy)
	out := &merged{files: r.flatten(ours), stages: map[string][4]treeEntry{}}
	switch strategy {
	case "ours":
	case "ort", "recursive", "resolve":
		base, label := r.virtualBase(bases, 0)
		g := r.newMerger([3]string{"HEAD", s2(mergeLabel(name), name), label})
		r.strategyOptions(g, m.extra)
		out = g.merge(base, ours, r.readCommit(id).tree)
		out.apply(r, r.flatten(ours), "merge", func() {
			r.say("Merge with strategy %s failed.", strategy)
			r.t.Exit(2)
		})
		out.show(r)
		r.writeIndex()
	default:
		r.say("Could not find merge strategy '%s'.", strategy)
		r.say("Available strategies are: octopus ours recursive resolve subtree.")
		return 1
	}
	if m.signOff {
		text = r.signOff(text, r.who("COMMITTER"))
	}
	if !out.clean() || m.noCommit || m.squash {
		return r.mergeStops(m, out, head, id, text)
	}
	tree := r.writeFlat(out.files)
	return r.mergeCommit(m, tree, head, []oid{id}, text, name, "Merge made by the '"+strategy+"' strategy.")
}

func mergeLabel(name string) string { return strings.TrimPrefix(name, "refs/heads/") }

// checkStaged refuses to merge over what is staged.
func (r *repo) checkStaged(tree oid, strategy string) {
	var list []string
	for _, c := range compareFlat(r.flatten(tree), r.flatIndex()) {
		list = append(list, c.path())
	}
	if len(list) > 0 {
		r.say("error: Your local changes to the following files would be overwritten by merge:\n  %s", strings.Join(list, " "))
		r.say("Merge with strategy %s failed.", strategy)
		r.t.Exit(2)
	}
}

func (r *repo) mergeCommit(m *mergeOptions, tree, head oid, heads []oid, text, name, how string) int {
	c := &commit{tree: tree, parents: append([]oid{head}, heads...), author: r.who("AUTHOR"), committer: r.who("COMMITTER")}
	if !m.noVerify && !r.hook("pre-merge-commit") {
		return 1
	}
	if m.edit {
		file := r.dir + "/MERGE_MSG"
		r.must(r.overwrite(file, text))
		if !r.edit(r.relGit(file)) {
			r.say("Not committing merge; use 'git commit' to complete the merge.")
			return 1
		}
		b, err := r.t.ReadFile(file, maxSmall)
		r.must(err)
		text = stripspace(string(b), true)
		r.t.Unlink(file)
	}
	c.message = stripspace(text, false)
	if c.message == "" {
		r.say("error: Empty commit message.\nNot committing merge; use 'git commit' to complete the merge.")
		return 1
	}
	id := r.writeObject(commitObj, c.encode())
	r.updateRef("HEAD", id, s2(m.pull, "merge "+name)+": "+how)
	if !m.quiet {
		r.printf("%s\n", how)
	}
	r.mergeStat(m, head, id)
	r.hook("post-merge", "0")
	return 0
}

// mergeStops leaves a merge to be finished by a commit.
func (r *repo) mergeStops(m *mergeOptions, out *merged, head, id oid, text string) int {
	if m.squash {
		if !m.quiet {
			r.printf("Squash commit -- not updating HEAD\n")
		}
		r.squashMessage(head, id)
	} else {
		r.must(r.writeFile(r.dir+"/MERGE_HEAD", []byte(id.String()+"\n"), 0o666))
		mode := ""
		if m.ff == "no" {
			mode = "no-ff"
		}
		r.must(r.writeFile(r.dir+"/MERGE_MODE", []byte(mode), 0o666))
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if out.clean() {
		if !m.squash {
			r.must(r.overwrite(r.dir+"/MERGE_MSG", text))
		}
		if !m.quiet {
			r.say("Automatic merge went well; stopped before committing as requested")
		}
		return 0
	}
	if m.squash {
		text = ""
	}
	r.must(r.overwrite(r.dir+"/MERGE_MSG", text+conflictList(out)))
	r.printf("Automatic merge failed; fix conflicts and then commit the result.\n")
	return 1
}

// conflictList is the comment in a message that names the paths with conflicts.
func conflictList(out *merged) string {
	var b strings.Builder
	b.WriteString("\n# Conflicts:\n")
	for _, p := range out.conflicts() {
		b.WriteString("#\t" + p + "\n")
	}
	return b.String()
}

// squashMessage prepares the message of a squashed merge.
func (r *repo) squashMessage(head, id oid) {
	var b strings.Builder
	b.WriteString("Squashed commit of the following:\n")
	l := r.newLogger()
	l.f = logFormat{name: "medium"}
	w := r.walk([]oid{id}, []oid{head})
	for c := w.next(); c != nil; c = w.next() {
		if len(c.parents) < 2 {
			b.WriteString("\n" + r.wording(&l.f, &node{commit: c, follow: c.parents}, "") + "\n")
		}
	}
	r.must(r.overwrite(r.dir+"/SQUASH_MSG", b.String()))
}

// octopus merges several heads that don't conflict.
func (r *repo) octopus(m *mergeOptions, head oid, heads []oid, names []string) int {
	var left []oid
	var leftNames []string
	for i, id := range heads {
		if !r.isAncestor(id, head) {
			left, leftNames = append(left, id), append(leftNames, names[i])
		}
	}
	if len(left) == 0 {
		r.printf("Already up to date.\n")
		return 0
	}
	r.checkStaged(r.readCommit(head).tree, "octopus")
	tree := r.readCommit(head).tree
	tip, ff := head, true
	for i, id := range left {
		bases := r.mergeBases(tip, id)
		if ff && len(bases) == 1 && bases[0] == tip {
			r.printf("Fast-forwarding to: %s\n", leftNames[i])
			tree, tip = r.readCommit(id).tree, id
			continue
		}
		ff = false
		r.printf("Trying simple merge with %s\n", leftNames[i])
		base, label := r.virtualBase(r.mergeBases(head, id), 0)
		out := r.newMerger([3]string{"HEAD", leftNames[i], label}).merge(base, tree, r.readCommit(id).tree)
		if !out.clean() {
			r.printf("Automated merge did not work.\nShould not be doing an octopus.\n")
			r.say("Merge with strategy octopus failed.")
			return 2
		}
		tree = r.writeFlat(out.files)
	}
	from, to := r.flatten(r.readCommit(head).tree), r.flatten(tree)
	r.refuse(from, to, "merge")
	r.goTo(from, to)
	r.writeIndex()
	text := r.mergeSubject(names, m.into) + "\n"
	if len(m.message) > 0 {
		text = strings.Join(m.message, "\n\n")
	}
	parents := left
	if ff {
		parents = left
	}
	return r.mergeCommit(m, tree, head, parents, text, strings.Join(names, " "), "Merge made by the 'octopus' strategy.")
}

// cmdMergeFile merges three files.
func (r *repo) cmdMergeFile(args []string) int {
	var labels []string
	stdout, quiet, diff3, favor := false, false, false, ""
	o := r.options("merge-file", args)
	for o.next() {
		switch o.name {
		case "-L":
			labels = append(labels, o.arg())
		case "-p", "--stdout":
			stdout = true
		case "-q", "--quiet":
			quiet = true
		case "--diff3", "--zdiff3":
			diff3 = true
		case "--ours", "--theirs", "--union":
			favor = o.name[2:]
		default:
			o.unknown()
		}
	}
	rest := o.operands()
	if len(rest) != 3 {
		r.die(129, "usage: git merge-file [<options>] [-L <name1> [-L <orig> [-L <name2>]]] <file1> <orig-file> <file2>\n")
	}
	for i := len(labels); i < 3; i++ {
		labels = append(labels, rest[i])
	}
	var data [3][]byte
	for i, f := range rest {
		b, err := r.t.ReadFile(f, maxObject)
		if err != nil {
			r.die(255, "error: Could not stat %s", f)
		}
		if isBinary(b) {
			r.die(255, "error: Cannot merge binary files: %s", f)
		}
		data[i] = b
	}
	out, n := merge3(data[1], data[0], data[2], [3]string{labels[0], labels[2], labels[1]}, diff3, favor, r.step)
	if stdout {
		r.t.Out.Write(out)
	} else if err := r.overwrite(rest[0], string(out)); err != nil {
		r.die(255, "error: Could not write to %s", rest[0])
	}
	_ = quiet
	return min(n, 127)
}

// todoLine words a commit as rebase does.
func (r *repo) named(c *commit) string { return fmt.Sprintf("%s... %s", r.abbrev(c.id), c.subject()) }
