package git

import (
	"fmt"
	"strings"
)

type pickOptions struct {
	verb                                           string // cherry-pick or revert
	noCommit, edit, noted, signOff, ff, allowEmpty bool
	keepRedundant, quiet, noEdit                   bool
	mainline                                       int
	extra                                          []string
	strategy                                       string
	rebase                                         bool
}

func (r *repo) cmdCherryPick(args []string) int { return r.pickCommand("cherry-pick", args) }
func (r *repo) cmdRevert(args []string) int     { return r.pickCommand("revert", args) }

func (r *repo) pickCommand(verb string, args []string) int {
	r.needTree()
	p := pickOptions{verb: verb}
	action := ""
	o := r.options(verb, args)
	for o.next() {
		switch o.name {
		case "--continue", "--abort", "--skip", "--quit":
			action = o.name[2:]
		case "-n", "--no-commit":
			p.noCommit = true
		case "-e", "--edit":
			p.edit = true
		case "--no-edit":
			p.noEdit = true
		case "-x":
			p.noted = true
		case "-s", "--signoff":
			p.signOff = true
		case "--ff":
			p.ff = true
		case "--allow-empty":
			p.allowEmpty = true
		case "--keep-redundant-commits":
			p.keepRedundant, p.allowEmpty = true, true
		case "-m", "--mainline":
			p.mainline = o.number()
		case "-X", "--strategy-option":
			p.extra = append(p.extra, o.arg())
		case "--strategy":
			p.strategy = o.arg()
		case "--allow-empty-message", "--no-rerere-autoupdate", "--rerere-autoupdate", "--no-gpg-sign", "-r", "--cleanup", "--reference":
			if o.name == "--cleanup" {
				o.arg()
			}
		default:
			o.unknown()
		}
	}
	if action != "" {
		return r.pickAction(&p, action)
	}
	rest := o.operands()
	if len(rest) == 0 {
		r.die(129, "usage: git %s [<options>] <commit-ish>...\n", verb)
	}
	if r.gitFileExists("CHERRY_PICK_HEAD") || r.gitFileExists("REVERT_HEAD") {
		doing, hint := "cherry-pick", "cherry-pick"
		if r.gitFileExists("REVERT_HEAD") {
			doing, hint = "revert", "revert"
		}
		_ = hint
		if r.index().unmerged() {
			r.unmergedPick(verb)
		}
		r.say("error: %s is already in progress\nhint: try \"git %s (--continue | --skip | --abort | --quit)\"", doing, doing)
		r.fatal("%s failed", verb)
	}
	list := r.pickList(verb, rest)
	if r.index().unmerged() {
		r.unmergedPick(verb)
	}
	_, head := r.head()
	if head.isZero() && verb == "revert" {
		r.fatal("your current branch does not have any commits yet")
	}
	return r.pickAll(&p, list, head)
}

func (r *repo) unmergedPick(verb string) {
	doing := map[string]string{"cherry-pick": "Cherry-picking", "revert": "Reverting"}[verb]
	r.say("error: %s is not possible because you have unmerged files.\nhint: Fix them up in the work tree, and then use 'git add/rm <file>'\nhint: as appropriate to mark resolution and make a commit.", doing)
	r.fatal("%s failed", verb)
}

// pickList resolves arguments to the commits to pick, in order.
func (r *repo) pickList(verb string, rest []string) (list []oid) {
	var s revSet
	for _, a := range rest {
		if err := r.addRev(&s, undash(a)); err != nil {
			r.fatal("bad revision '%s'", a)
		}
	}
	if s.dots == 0 && len(s.exclude) == 0 {
		for i, id := range s.include {
			c, err := r.peel(id, commitObj)
			if err != nil {
				r.say("error: object %s is not a commit", s.names[i])
				r.fatal("%s failed", verb)
			}
			list = append(list, c)
		}
		return list
	}
	w := r.walkWith(s.include, s.exclude, walkOptions{max: -1, topo: true, reverse: verb == "cherry-pick"})
	for _, n := range w.commits() {
		list = append(list, n.id)
	}
	if len(list) == 0 {
		r.say("error: empty commit set passed")
		r.fatal("%s failed", verb)
	}
	return list
}

// pickAll picks commits one after the other.
func (r *repo) pickAll(p *pickOptions, list []oid, start oid) int {
	for i, id := range list {
		if status := r.pickOne(p, id); status != 0 {
			if len(list) > 1 || i > 0 {
				r.saveSequence(p, list[i:], start)
			}
			return status
		}
	}
	r.removeAll(r.dir + "/sequencer")
	return 0
}

// saveSequence notes what is left to be done. The first of the list is the one that failed.
func (r *repo) saveSequence(p *pickOptions, list []oid, start oid) {
	dir := r.dir + "/sequencer"
	r.mkdirAll(dir)
	word := map[string]string{"cherry-pick": "pick", "revert": "revert"}[p.verb]
	var b strings.Builder
	for _, id := range list {
		fmt.Fprintf(&b, "%s %s %s\n", word, r.abbrev(id), r.readCommit(id).subject())
	}
	r.must(r.overwrite(dir+"/todo", b.String()))
	if !r.gitFileExists("sequencer/head") {
		r.must(r.overwrite(dir+"/head", start.String()+"\n"))
	}
	r.must(r.overwrite(dir+"/abort-safety", start.String()+"\n"))
	opts := "[options]\n"
	if p.noted {
		opts += "\trecord-origin = true\n"
	}
	if p.signOff {
		opts += "\tsignoff = true\n"
	}
	if p.mainline > 0 {
		opts += "\tmainline = " + itoa(p.mainline) + "\n"
	}
	if opts != "[options]\n" {
		r.must(r.overwrite(dir+"/opts", opts))
	}
}

// pickAction continues, skips or takes back a sequence of picks.
func (r *repo) pickAction(p *pickOptions, action string) int {
	file := map[string]string{"cherry-pick": "CHERRY_PICK_HEAD", "revert": "REVERT_HEAD"}[p.verb]
	inProgress := r.gitFileExists(file) || r.gitFileExists("sequencer/todo")
	if !inProgress && action != "quit" {
		r.say("error: no cherry-pick or revert in progress")
		r.fatal("%s failed", p.verb)
	}
	clear := func() {
		for _, f := range []string{"CHERRY_PICK_HEAD", "REVERT_HEAD", "MERGE_MSG"} {
			r.t.Unlink(r.dir + "/" + f)
		}
	}
	var todo []oid
	b, _ := r.t.ReadFile(r.dir+"/sequencer/todo", maxSmall)
	for _, line := range strings.Split(string(b), "\n") {
		if f := strings.Fields(line); len(f) > 1 {
			todo = append(todo, r.commitRev(f[1]))
		}
	}
	opts, _ := r.t.ReadFile(r.dir+"/sequencer/opts", maxSmall)
	p.noted = p.noted || strings.Contains(string(opts), "record-origin = true")
	p.signOff = p.signOff || strings.Contains(string(opts), "signoff = true")
	switch action {
	case "quit":
		clear()
		r.removeAll(r.dir + "/sequencer")
		return 0
	case "abort":
		head := "HEAD"
		if h, err := r.t.ReadFile(r.dir+"/sequencer/head", maxSmall); err == nil {
			head = strings.TrimSpace(string(h))
		}
		status := r.resetTo(head, "merge", true)
		clear()
		r.removeAll(r.dir + "/sequencer")
		return status
	case "skip":
		r.resetTo("HEAD", "merge", true)
		clear()
	case "continue":
		if r.gitFileExists(file) {
			if r.index().unmerged() {
				r.say("error: Committing is not possible because you have unmerged files.\nhint: Fix them up in the work tree, and then use 'git add/rm <file>'\nhint: as appropriate to mark resolution and make a commit.")
				r.listUnmerged()
				r.fatal("Exiting because of an unresolved conflict.")
			}
			c := commitOptions{status: r.statusOptions(), noEdit: r.editor(false) == ""}
			c.status.format, c.cleanup = "", "strip"
			if status := r.commit(&c, nil); status != 0 {
				return status
			}
		}
	}
	if len(todo) > 0 {
		todo = todo[1:]
	}
	_, head := r.head()
	if status := r.pickAll(p, todo, head); status != 0 {
		return status
	}
	r.removeAll(r.dir + "/sequencer")
	return 0
}

// pickOne applies or takes back one commit.
func (r *repo) pickOne(p *pickOptions, id oid) int {
	_, head := r.head()
	c := r.readCommit(id)
	parent, ptree := oid{}, emptyTree
	switch {
	case len(c.parents) > 1 && p.mainline == 0:
		r.say("error: commit %s is a merge but no -m option was given.", id)
		r.fatal("%s failed", p.verb)
	case p.mainline > max(len(c.parents), 1) || p.mainline > 1 && len(c.parents) <= 1:
		r.say("error: commit %s does not have parent %d", id, p.mainline)
		r.fatal("%s failed", p.verb)
	case len(c.parents) > 0:
		parent = c.parents[max(p.mainline, 1)-1]
		ptree = r.readCommit(parent).tree
	}
	ours := emptyTree
	if !head.isZero() {
		ours = r.readCommit(head).tree
	}
	if p.ff && parent == head {
		from, to := r.flatten(ours), r.flatten(c.tree)
		r.refuse(from, to, "merge")
		r.goTo(from, to)
		r.writeIndex()
		r.updateRef("HEAD", id, p.verb+": fast-forward")
		return 0
	}
	if p.noCommit {
		ours = r.treeFromIndex()
	} else if list := compareFlat(r.flatten(ours), r.flatIndex()); len(list) > 0 {
		r.say("error: your local changes would be overwritten by %s.\nhint: commit your changes or stash them to proceed.", p.verb)
		r.fatal("%s failed", p.verb)
	}
	label := r.abbrev(id) + " (" + c.subject() + ")"
	base, theirs := ptree, c.tree
	labels := [3]string{"HEAD", label, "parent of " + label}
	if p.verb == "revert" {
		base, theirs = c.tree, ptree
		labels = [3]string{"HEAD", "parent of " + label, label}
	}
	g := r.newMerger(labels)
	r.strategyOptions(g, p.extra)
	out := g.merge(base, ours, theirs)
	out.apply(r, r.flatten(ours), p.verb, func() {
		if !p.rebase {
			r.fatal("%s failed", p.verb)
		}
	})
	out.show(r)
	r.writeIndex()
	message := r.pickMessage(p, c, parent)
	if !out.clean() {
		r.pickStops(p, id, message, out)
		return 1
	}
	if p.noCommit {
		r.must(r.overwrite(r.dir+"/MERGE_MSG", message))
		return 0
	}
	return r.pickCommit(p, c, r.writeFlat(out.files), head, message)
}

func (r *repo) pickMessage(p *pickOptions, c *commit, parent oid) string {
	message := c.message
	if p.verb == "revert" {
		message = "Revert \"" + c.subject() + "\"\n\nThis reverts commit " + c.id.String()
		if len(c.parents) > 1 {
			message += ", reversing\nchanges made to " + parent.String()
		}
		message += ".\n"
	}
	if p.noted {
		line := "(cherry picked from commit " + c.id.String() + ")"
		message = strings.TrimRight(message, "\n")
		if len(trailers(message)) > 0 {
			message += "\n" + line + "\n"
		} else {
			message += "\n\n" + line + "\n"
		}
	}
	if p.signOff {
		message = r.signOff(message, r.who("COMMITTER"))
	}
	return message
}

// pickStops leaves conflicts to be solved.
func (r *repo) pickStops(p *pickOptions, id oid, message string, out *merged) {
	c := r.readCommit(id)
	if !strings.HasSuffix(message, "\n") {
		message += "\n"
	}
	r.must(r.overwrite(r.dir+"/MERGE_MSG", message+conflictList(out)))
	if !p.noCommit {
		file := map[string]string{"cherry-pick": "CHERRY_PICK_HEAD", "revert": "REVERT_HEAD"}[p.verb]
		r.must(r.writeFile(r.dir+"/"+file, []byte(id.String()+"\n"), 0o666))
	}
	verb := map[string]string{"cherry-pick": "apply", "revert": "revert"}[p.verb]
	r.say("error: could not %s %s", verb, r.named(c))
	if p.rebase {
		r.say("hint: Resolve all conflicts manually, mark them as resolved with\nhint: \"git add/rm <conflicted_files>\", then run \"git rebase --continue\".\nhint: You can instead skip this commit: run \"git rebase --skip\".\nhint: To abort and get back to the state before \"git rebase\", run \"git rebase --abort\".")
		return
	}
	if p.noCommit {
		r.say("hint: after resolving the conflicts, mark the corrected paths\nhint: with 'git add <paths>' or 'git rm <paths>'")
		return
	}
	r.say("hint: After resolving the conflicts, mark them with\nhint: \"git add/rm <pathspec>\", then run\nhint: \"git %[1]s --continue\".\nhint: You can instead skip this commit with \"git %[1]s --skip\".\nhint: To abort and get back to the state before \"git %[1]s\",\nhint: run \"git %[1]s --abort\".", p.verb)
}

// pickCommit records what was picked.
func (r *repo) pickCommit(p *pickOptions, c *commit, tree, head oid, message string) int {
	branch, _ := r.head()
	was := !head.isZero() && r.readCommit(head).tree == tree
	originallyEmpty := len(c.parents) > 0 && r.readCommit(c.parents[0]).tree == c.tree
	if was && !p.keepRedundant && !(originallyEmpty && (p.allowEmpty || p.rebase)) {
		if p.rebase {
			r.say("dropping %s %s -- patch contents already upstream", c.id, c.subject())
			return 0
		}
		if p.verb == "cherry-pick" {
			r.must(r.writeFile(r.dir+"/CHERRY_PICK_HEAD", []byte(c.id.String()+"\n"), 0o666))
			r.must(r.overwrite(r.dir+"/MERGE_MSG", message))
			r.say("The previous cherry-pick is now empty, possibly due to conflict resolution.\nIf you wish to commit it anyway, use:\n\n    git commit --allow-empty\n\nOtherwise, please use 'git cherry-pick --skip'")
		}
		s := r.statusOptions()
		s.commit = true
		r.printStatus(&s, nil)
		return 1
	}
	n := &commit{tree: tree, committer: r.who("COMMITTER"), message: stripspace(message, false)}
	if !head.isZero() {
		n.parents = []oid{head}
	}
	n.author = c.author
	if p.verb == "revert" {
		n.author = r.who("AUTHOR")
	}
	if p.edit && !p.noEdit {
		r.must(r.overwrite(r.dir+"/COMMIT_EDITMSG", n.message))
		if !r.edit(r.relGit(r.dir + "/COMMIT_EDITMSG")) {
			return 1
		}
		b, _ := r.t.ReadFile(r.dir+"/COMMIT_EDITMSG", maxSmall)
		n.message = stripspace(string(b), true)
	}
	n.id = r.writeObject(commitObj, n.encode())
	reason := p.verb + ": " + n.subject()
	if p.rebase {
		reason = "rebase (pick): " + n.subject()
	}
	r.updateRef("HEAD", n.id, reason)
	r.t.Unlink(r.dir + "/MERGE_MSG")
	r.t.Unlink(r.dir + "/CHERRY_PICK_HEAD")
	if !p.rebase {
		r.commitSummary(n, branch, true)
	}
	return 0
}
