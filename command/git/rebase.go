package git

import (
	"fmt"
	"strings"
)

type rebaseOptions struct {
	onto, exec, action              string
	interactive, quiet, root, force bool
	keepEmpty, noFF, autosquash     bool
	autostash, stat, merges         bool
	extra                           []string
}

// todoItem is one step of a rebase.
type todoItem struct {
	verb string
	id   oid
	rest string
}

func (r *repo) cmdRebase(args []string) int {
	r.needTree()
	var b rebaseOptions
	b.autostash = r.config().bool("rebase.autostash", false)
	b.autosquash = r.config().bool("rebase.autosquash", false)
	o := r.options("rebase", args)
	for o.next() {
		switch o.name {
		case "--onto":
			b.onto = o.arg()
		case "--continue", "--abort", "--skip", "--quit", "--edit-todo", "--show-current-patch":
			b.action = o.name[2:]
		case "-i", "--interactive":
			b.interactive = true
		case "-q", "--quiet":
			b.quiet = true
		case "--root":
			b.root = true
		case "-f", "--force-rebase", "--no-ff":
			b.force = true
		case "-x", "--exec":
			b.exec = o.arg()
		case "--autosquash":
			b.autosquash = true
		case "--no-autosquash":
			b.autosquash = false
		case "--autostash":
			b.autostash = true
		case "--no-autostash":
			b.autostash = false
		case "-X", "--strategy-option":
			b.extra = append(b.extra, o.arg())
		case "-s", "--strategy", "--empty", "-C", "--whitespace":
			o.arg()
		case "-r", "--rebase-merges":
			r.fatal("--rebase-merges isn't done here")
		case "-v", "--verbose", "-n", "--no-stat", "--stat", "-m", "--merge", "--apply", "--keep-empty", "--no-keep-empty", "--fork-point", "--no-fork-point", "--no-verify", "--verify",
			"--committer-date-is-author-date", "--ignore-date", "--reset-author-date", "--reapply-cherry-picks", "--no-reapply-cherry-picks", "--update-refs", "--no-update-refs", "--keep-base":
		default:
			o.unknown()
		}
	}
	inProgress := r.gitFileExists("rebase-merge")
	if b.action != "" {
		if !inProgress {
			r.fatal("No rebase in progress?")
		}
		return r.rebaseAction(&b)
	}
	if inProgress {
		r.fatal("It seems that there is already a rebase-merge directory, and\nI wonder if you are in the middle of another rebase.  If that is the\ncase, please try\n\tgit rebase (--continue | --abort | --skip)\nIf that is not the case, please\n\trm -fr \"%s\"\nand run me again.  I am stopping in case you still have something\nvaluable there.\n", r.relGit(r.dir+"/rebase-merge"))
	}
	return r.rebaseStart(&b, o.operands())
}

// rebaseStart finds what to rebase onto what.
func (r *repo) rebaseStart(b *rebaseOptions, rest []string) int {
	branch, head := r.head()
	upName := ""
	switch {
	case b.root:
	case len(rest) > 0:
		upName, rest = undash(rest[0]), rest[1:]
	default:
		up := r.upstream(branch)
		if up == "" {
			if branch == "" {
				r.say("You are not currently on a branch.\nPlease specify which branch you want to rebase against.\nSee git-rebase(1) for details.\n\n    git rebase '<branch>'\n")
			} else {
				r.say("There is no tracking information for the current branch.\nPlease specify which branch you want to rebase against.\nSee git-rebase(1) for details.\n\n    git rebase '<branch>'\n\nIf you wish to set tracking information for this branch you can do so with:\n\n    git branch --set-upstream-to=<remote>/<branch> %s\n", shortRef(branch))
			}
			return 1
		}
		upName = up
	}
	var upstream oid
	if !b.root {
		var err error
		if upstream, err = r.commitOf(upName); err != nil {
			r.fatal("invalid upstream '%s'", upName)
		}
	}
	if len(rest) > 0 {
		name := "refs/heads/" + rest[0]
		if _, _, ok := r.resolveRef(name); !ok {
			if _, err := r.commitOf(rest[0]); err != nil {
				r.fatal("no such branch/commit '%s'", rest[0])
			}
		}
		s := switchOptions{verb: "checkout", quiet: true}
		if status := r.switchTo(&s, rest[0]); status != 0 {
			return status
		}
		branch, head = r.head()
	}
	stashed := r.rebaseClean(b)
	onto, ontoName := upstream, upName
	if b.onto != "" {
		ontoName = b.onto
		if l, rr, ok := strings.Cut(b.onto, "..."); ok {
			x, y := r.commitRev(s2(l, "HEAD")), r.commitRev(s2(rr, "HEAD"))
			if bases := r.mergeBases(x, y); len(bases) > 0 {
				onto = bases[0]
			}
		} else {
			var err error
			if onto, err = r.commitOf(b.onto); err != nil {
				r.fatal("Does not point to a valid commit '%s'", b.onto)
			}
		}
	}
	todo := r.rebaseTodo(upstream, onto, head, b)
	if b.root && b.onto == "" {
		c := &commit{tree: emptyTree, author: r.who("COMMITTER"), committer: r.who("COMMITTER")}
		_ = c
		onto = oid{}
	}
	if !b.interactive && !b.force && !b.root && b.exec == "" && r.mergeBaseIs(onto, head) && r.linear(onto, head) && upstream == onto {
		if !b.quiet {
			if branch != "" {
				r.printf("Current branch %s is up to date.\n", shortRef(branch))
			} else {
				r.printf("HEAD is up to date.\n")
			}
		}
		r.rebaseUnstash(stashed)
		return 0
	}
	return r.rebaseBegin(b, branch, head, onto, ontoName, todo, stashed)
}

func (r *repo) mergeBaseIs(a, b oid) bool { return r.isAncestor(a, b) }

// linear reports whether there are no merges between two commits.
func (r *repo) linear(from, to oid) bool {
	w := r.walk([]oid{to}, []oid{from})
	for c := w.next(); c != nil; c = w.next() {
		if len(c.parents) != 1 {
			return false
		}
	}
	return true
}

// rebaseClean refuses to rebase over local changes, or stashes them.
func (r *repo) rebaseClean(b *rebaseOptions) oid {
	_, head := r.head()
	staged := len(compareFlat(r.flatten(r.readCommit(head).tree), r.flatIndex())) > 0
	local := len(r.workChanges(nil)) > 0
	if !staged && !local {
		return oid{}
	}
	if b.autostash {
		id, _ := r.stashCreate("autostash", false, nil, false)
		if !id.isZero() {
			r.printf("Created autostash: %s\n", r.abbrev(id))
			r.resetHard(r.readCommit(head).tree)
			r.writeIndex()
		}
		return id
	}
	switch {
	case local && staged:
		r.say("error: cannot rebase: You have unstaged changes.\nerror: additionally, your index contains uncommitted changes.")
	case local:
		r.say("error: cannot rebase: You have unstaged changes.")
	default:
		r.say("error: cannot rebase: Your index contains uncommitted changes.")
	}
	r.die(1, "error: Please commit or stash them.")
	return oid{}
}

// rebaseTodo lists the commits that are to be picked, but for those that upstream has already.
func (r *repo) rebaseTodo(upstream, onto, head oid, b *rebaseOptions) (todo []todoItem) {
	var exclude []oid
	if !upstream.isZero() {
		exclude = []oid{upstream}
	}
	have := map[string]bool{}
	if !upstream.isZero() {
		w := r.walk([]oid{upstream}, []oid{head})
		for c := w.next(); c != nil; c = w.next() {
			if p := r.patchID(c); p != "" {
				have[p] = true
			}
		}
	}
	w := r.walkWith([]oid{head}, exclude, walkOptions{max: -1, topo: true, reverse: true})
	skipped := 0
	for _, n := range w.commits() {
		if len(n.parents) > 1 {
			continue
		}
		if len(have) > 0 && have[r.patchID(n.commit)] && !r.emptyCommit(n.commit) {
			if !b.quiet {
				r.say("warning: skipped previously applied commit %s", r.abbrev(n.id))
			}
			skipped++
			continue
		}
		todo = append(todo, todoItem{"pick", n.id, n.subject()})
	}
	if skipped > 0 && !b.quiet && r.config().bool("advice.skippedcherrypicks", true) {
		r.say("hint: use --reapply-cherry-picks to include skipped commits\nhint: Disable this message with \"git config advice.skippedCherryPicks false\"")
	}
	if b.autosquash {
		todo = r.autosquash(todo)
	}
	return todo
}

func (r *repo) emptyCommit(c *commit) bool {
	return len(c.parents) == 1 && r.readCommit(c.parents[0]).tree == c.tree
}

// autosquash moves fixup! and squash! commits to what they belong to.
func (r *repo) autosquash(todo []todoItem) []todoItem {
	var out []todoItem
	for _, t := range todo {
		s := r.readCommit(t.id).subject()
		verb, target, ok := strings.Cut(s, "! ")
		if !ok || verb != "fixup" && verb != "squash" && verb != "amend" {
			out = append(out, t)
			continue
		}
		for strings.HasPrefix(target, "fixup! ") || strings.HasPrefix(target, "squash! ") {
			_, target, _ = strings.Cut(target, "! ")
		}
		at := -1
		for i := range out {
			c := r.readCommit(out[i].id)
			if out[i].verb == "pick" && (c.subject() == target || strings.HasPrefix(c.id.String(), target) || strings.HasPrefix(c.subject(), target)) {
				at = i
				break
			}
		}
		if at < 0 {
			out = append(out, t)
			continue
		}
		for at++; at < len(out) && out[at].verb != "pick"; at++ {
		}
		if t.verb = verb; verb == "amend" {
			t.verb = "fixup"
		}
		out = append(out[:at:at], append([]todoItem{t}, out[at:]...)...)
	}
	return out
}

// rebaseBegin writes down what is to be done, and begins.
func (r *repo) rebaseBegin(b *rebaseOptions, branch string, head, onto oid, ontoName string, todo []todoItem, stashed oid) int {
	dir := r.dir + "/rebase-merge"
	r.must(r.mkdirAll(dir))
	put := func(name, text string) { r.must(r.overwrite(dir+"/"+name, text)) }
	put("head-name", s2(branch, "detached HEAD")+"\n")
	put("onto", onto.String()+"\n")
	put("orig-head", head.String()+"\n")
	put("interactive", "")
	if b.quiet {
		put("quiet", "")
	}
	if !stashed.isZero() {
		put("autostash", stashed.String()+"\n")
	}
	r.must(r.writeFile(r.dir+"/ORIG_HEAD", []byte(head.String()+"\n"), 0o666))
	if b.exec != "" {
		var with []todoItem
		for _, t := range todo {
			with = append(with, t, todoItem{verb: "exec", rest: b.exec})
		}
		todo = with
	}
	if b.interactive {
		edited, status := r.editTodo(todo, onto, head)
		if status >= 0 {
			r.removeAll(dir)
			r.rebaseUnstash(stashed)
			return status
		}
		todo = edited
	}
	put("end", itoa(len(todo))+"\n")
	r.saveTodo(nil, todo)
	// Steps that are where they would be put again are passed over.
	tip := onto
	for !b.force && len(todo) > 0 && todo[0].verb == "pick" && !onto.isZero() {
		c := r.readCommit(todo[0].id)
		if len(c.parents) != 1 || c.parents[0] != tip {
			break
		}
		tip = c.id
		r.noteDone(todo[0])
		todo = todo[1:]
	}
	from, to := r.flatten(r.readCommit(head).tree), flat{}
	if !tip.isZero() {
		to = r.flatten(r.readCommit(tip).tree)
	}
	r.refuse(from, to, "checkout")
	r.goTo(from, to)
	r.writeIndex()
	if tip.isZero() {
		c := &commit{tree: emptyTree, author: r.who("AUTHOR"), committer: r.who("COMMITTER")}
		tip = r.writeObject(commitObj, c.encode())
		put("squash-onto", tip.String()+"\n")
		put("onto", tip.String()+"\n")
	}
	r.setHead("", tip, "rebase (start): checkout "+ontoName)
	return r.rebaseRun(b, todo)
}

// saveTodo writes the steps that are left; done ones are appended to what was done.
func (r *repo) saveTodo(done, todo []todoItem) {
	var b strings.Builder
	for _, t := range todo {
		b.WriteString(t.line() + "\n")
	}
	r.must(r.overwrite(r.dir+"/rebase-merge/git-rebase-todo", b.String()))
	for _, t := range done {
		r.noteDone(t)
	}
}

func (t todoItem) line() string {
	if t.id.isZero() {
		return strings.TrimSpace(t.verb + " " + t.rest)
	}
	return t.verb + " " + t.id.String() + " " + t.rest
}

func (r *repo) noteDone(t todoItem) {
	f, err := r.t.Append(r.dir + "/rebase-merge/done")
	r.must(err)
	defer f.Close()
	fmt.Fprintf(f, "%s\n", t.line())
}

func (r *repo) countDone() int {
	b, _ := r.t.ReadFile(r.dir+"/rebase-merge/done", maxSmall)
	return strings.Count(string(b), "\n")
}

// parseTodo reads steps.
func (r *repo) parseTodo(text string) (todo []todoItem) {
	long := map[string]string{"p": "pick", "r": "reword", "e": "edit", "s": "squash", "f": "fixup", "x": "exec", "b": "break", "d": "drop", "l": "label", "t": "reset"}
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		verb, rest, _ := strings.Cut(line, " ")
		verb = s2(long[verb], verb)
		t := todoItem{verb: verb, rest: rest}
		switch verb {
		case "pick", "reword", "edit", "squash", "fixup", "drop":
			if verb == "fixup" {
				rest = strings.TrimPrefix(strings.TrimPrefix(rest, "-C "), "-c ")
			}
			name, subject, _ := strings.Cut(rest, " ")
			id, err := r.commitOf(name)
			if err != nil {
				r.say("error: could not parse '%s'", name)
				r.say("error: invalid line: %s", line)
				r.die(1, "error: unusable todo list: '%s'", r.relGit(r.dir+"/rebase-merge/git-rebase-todo"))
			}
			t.id, t.rest = id, subject
		case "exec", "break", "noop":
		default:
			r.say("error: invalid command '%s'", verb)
			r.die(1, "error: unusable todo list: '%s'", r.relGit(r.dir+"/rebase-merge/git-rebase-todo"))
		}
		todo = append(todo, t)
	}
	return todo
}

// editTodo lets the editor change the steps. status is -1 if the rebase goes on.
func (r *repo) editTodo(todo []todoItem, onto, head oid) ([]todoItem, int) {
	var b strings.Builder
	for _, t := range todo {
		if t.id.isZero() {
			b.WriteString(t.line() + "\n")
		} else {
			fmt.Fprintf(&b, "%s %s %s\n", t.verb, r.abbrev(t.id), t.rest)
		}
	}
	if len(todo) == 0 {
		b.WriteString("noop\n")
	}
	fmt.Fprintf(&b, "\n# Rebase %s..%s onto %s (%d command%s)\n#\n# Commands:\n# p, pick <commit> = use commit\n# r, reword <commit> = use commit, but edit the commit message\n# e, edit <commit> = use commit, but stop for amending\n# s, squash <commit> = use commit, but meld into previous commit\n# f, fixup [-C | -c] <commit> = like \"squash\" but keep only the previous\n#                    commit's log message, unless -C is used, in which case\n#                    keep only this commit's message; -c is same as -C but\n#                    opens the editor\n# x, exec <command> = run command (the rest of the line) using shell\n# b, break = stop here (continue rebase later with 'git rebase --continue')\n# d, drop <commit> = remove commit\n#\n# These lines can be re-ordered; they are executed from top to bottom.\n#\n# If you remove a line here THAT COMMIT WILL BE LOST.\n#\n# However, if you remove everything, the rebase will be aborted.\n#\n",
		r.abbrev(onto), r.abbrev(head), r.abbrev(onto), len(todo), map[bool]string{true: "", false: "s"}[len(todo) == 1])
	file := r.dir + "/rebase-merge/git-rebase-todo"
	r.must(r.overwrite(file, b.String()))
	e := r.editor(true)
	if e == "" {
		r.say("error: Terminal is dumb, but EDITOR unset")
		return nil, 1
	}
	if e != ":" && e != "true" {
		if status := r.spawn([]string{"/bin/sh", "-c", e + ` "$@"`, e, file}, nil, nil); status != 0 {
			r.say("error: There was a problem with the editor '%s'.", e)
			return nil, 1
		}
	}
	text, err := r.t.ReadFile(file, maxSmall)
	r.must(err)
	edited := r.parseTodo(string(text))
	if len(edited) == 0 {
		r.say("error: nothing to do")
		return nil, 1
	}
	return edited, -1
}

// rebaseRun does the steps that are left.
func (r *repo) rebaseRun(b *rebaseOptions, todo []todoItem) int {
	total := r.countDone() + len(todo)
	for len(todo) > 0 {
		t := todo[0]
		todo = todo[1:]
		r.saveTodo([]todoItem{t}, todo)
		if !b.quiet && t.verb != "noop" {
			r.t.Out.Flush()
			fmt.Fprintf(r.t.Stderr(), "Rebasing (%d/%d)\r", r.countDone(), total)
		}
		if status := r.rebaseStep(b, t, todo); status != 0 {
			return max(status, 0)
		}
	}
	return r.rebaseFinish(b)
}

// rebaseStep does one step; -1 stops with status 0.
func (r *repo) rebaseStep(b *rebaseOptions, t todoItem, left []todoItem) int {
	switch t.verb {
	case "noop", "drop":
		return 0
	case "break":
		_, head := r.head()
		r.say("Stopped at %s... %s", r.abbrev(head), r.readCommit(head).subject())
		return -1
	case "exec":
		r.say("Executing: %s", t.rest)
		if status := r.spawn([]string{"/bin/sh", "-c", t.rest}, nil, nil); status != 0 {
			r.say("warning: execution failed: %s\nYou can fix the problem, and then run\n\n  git rebase --continue\n\n", t.rest)
			return 1
		}
		r.idx, r.packed = nil, nil
		return 0
	}
	c := r.readCommit(t.id)
	_, head := r.head()
	p := &pickOptions{verb: "cherry-pick", rebase: true, extra: b.extra}
	if t.verb == "squash" || t.verb == "fixup" {
		return r.rebaseSquash(t, c, left)
	}
	if len(c.parents) == 1 && c.parents[0] == head && !b.force {
		p.ff = true
	}
	if p.ff {
		from, to := r.flatten(r.readCommit(head).tree), r.flatten(c.tree)
		r.goTo(from, to)
		r.writeIndex()
		r.updateRef("HEAD", c.id, "rebase (pick): "+c.subject())
	} else if status := r.pickOne(p, t.id); status != 0 {
		r.rebaseStopped(c)
		return status
	}
	switch t.verb {
	case "reword":
		o := commitOptions{amend: true, edit: true, status: r.statusOptions(), allowEmpty: true}
		o.status.format = ""
		return r.commit(&o, nil)
	case "edit":
		_, now := r.head()
		r.must(r.overwrite(r.dir+"/rebase-merge/amend", now.String()+"\n"))
		r.say("Stopped at %s...  %s\nYou can amend the commit now, with\n\n  git commit --amend \n\nOnce you are satisfied with your changes, run\n\n  git rebase --continue", r.abbrev(t.id), c.subject())
		return -1
	}
	return 0
}

// rebaseStopped tells that a step left conflicts.
func (r *repo) rebaseStopped(c *commit) {
	dir := r.dir + "/rebase-merge"
	r.must(r.overwrite(dir+"/stopped-sha", c.id.String()+"\n"))
	r.must(r.overwrite(dir+"/message", c.message))
	r.must(r.writeFile(r.dir+"/REBASE_HEAD", []byte(c.id.String()+"\n"), 0o666))
	r.say("Could not apply %s", r.named(c))
}

// rebaseSquash melds a commit into the one before.
func (r *repo) rebaseSquash(t todoItem, c *commit, left []todoItem) int {
	_, head := r.head()
	prev := r.readCommit(head)
	p := &pickOptions{verb: "cherry-pick", rebase: true}
	parent := emptyTree
	if len(c.parents) > 0 {
		parent = r.readCommit(c.parents[0]).tree
	}
	label := r.abbrev(c.id) + " (" + c.subject() + ")"
	out := r.newMerger([3]string{"HEAD", label, "parent of " + label}).merge(parent, prev.tree, c.tree)
	out.apply(r, r.flatten(prev.tree), "merge", func() {})
	out.show(r)
	r.writeIndex()
	message := prev.message
	dir := r.dir + "/rebase-merge"
	more := len(left) > 0 && (left[0].verb == "squash" || left[0].verb == "fixup")
	all, err := r.t.ReadFile(dir+"/message-squash", maxSmall)
	parts := strings.Split(string(all), "\x00")
	if err != nil {
		parts = []string{prev.message}
	}
	if t.verb == "squash" {
		parts = append(parts, c.message)
	}
	message = strings.Join(parts, "\n")
	r.must(r.overwrite(dir+"/message-squash", strings.Join(parts, "\x00")))
	if !out.clean() {
		r.pickStops(p, c.id, message, out)
		r.t.Unlink(r.dir + "/CHERRY_PICK_HEAD")
		r.must(r.overwrite(dir+"/amend", head.String()+"\n"))
		r.rebaseStopped(c)
		return 1
	}
	n := &commit{tree: r.writeFlat(out.files), parents: prev.parents, author: prev.author, committer: r.who("COMMITTER"), message: stripspace(message, false)}
	if !more {
		r.t.Unlink(dir + "/message-squash")
		if len(parts) > 1 {
			if e := r.editor(false); e != "" {
				r.must(r.overwrite(r.dir+"/COMMIT_EDITMSG", "# This is a combination of "+itoa(len(parts))+" commits.\n"+message))
				if !r.edit(r.relGit(r.dir + "/COMMIT_EDITMSG")) {
					return 1
				}
				b, _ := r.t.ReadFile(r.dir+"/COMMIT_EDITMSG", maxSmall)
				n.message = stripspace(string(b), true)
			}
		}
	}
	id := r.writeObject(commitObj, n.encode())
	r.updateRef("HEAD", id, "rebase ("+t.verb+"): "+n.subject())
	return 0
}

// rebaseFinish moves the branch to the result.
func (r *repo) rebaseFinish(b *rebaseOptions) int {
	dir := r.dir + "/rebase-merge"
	read := func(name string) string {
		t, _ := r.t.ReadFile(dir+"/"+name, maxSmall)
		return strings.TrimSpace(string(t))
	}
	name, onto := read("head-name"), read("onto")
	_, head := r.head()
	orig, _ := parseOID(read("orig-head"))
	stashed, _ := parseOID(read("autostash"))
	quiet := b.quiet || r.gitFileExists("rebase-merge/quiet")
	if strings.HasPrefix(name, "refs/") {
		r.setRef(name, head)
		r.logRef(name, orig, head, "rebase (finish): "+name+" onto "+onto)
		r.setHead(name, oid{}, "")
		r.logRef("HEAD", head, head, "rebase (finish): returning to "+name)
	}
	r.removeAll(dir)
	for _, f := range []string{"REBASE_HEAD", "CHERRY_PICK_HEAD", "MERGE_MSG", "AUTO_MERGE"} {
		r.t.Unlink(r.dir + "/" + f)
	}
	r.rebaseUnstash(stashed)
	if !quiet {
		fmt.Fprintf(r.t.Stderr(), "\r%80s\rSuccessfully rebased and updated %s.\n", "", name)
	}
	return 0
}

func (r *repo) rebaseUnstash(id oid) {
	if id.isZero() {
		return
	}
	if r.applyStash(id, false) {
		r.say("Applied autostash.")
		return
	}
	r.pushStash(id, "autostash")
	r.say("Applying autostash resulted in conflicts.\nYour changes are safe in the stash.\nYou can run \"git stash pop\" or \"git stash drop\" at any time.")
}

// rebaseAction continues, skips or takes back.
func (r *repo) rebaseAction(b *rebaseOptions) int {
	dir := r.dir + "/rebase-merge"
	read := func(name string) string {
		t, _ := r.t.ReadFile(dir+"/"+name, maxSmall)
		return strings.TrimSpace(string(t))
	}
	b.quiet = b.quiet || r.gitFileExists("rebase-merge/quiet")
	todo := r.parseTodo(read("git-rebase-todo"))
	clear := func() {
		for _, f := range []string{"REBASE_HEAD", "CHERRY_PICK_HEAD", "MERGE_MSG", "AUTO_MERGE"} {
			r.t.Unlink(r.dir + "/" + f)
		}
		r.t.Unlink(dir + "/stopped-sha")
		r.t.Unlink(dir + "/amend")
	}
	switch b.action {
	case "quit":
		clear()
		r.removeAll(dir)
		return 0
	case "show-current-patch":
		return r.cmdShow([]string{"REBASE_HEAD"})
	case "edit-todo":
		onto, _ := parseOID(read("onto"))
		_, head := r.head()
		if list, status := r.editTodo(todo, onto, head); status < 0 {
			r.saveTodo(nil, list)
		}
		return 0
	case "abort":
		orig, _ := parseOID(read("orig-head"))
		name := read("head-name")
		stashed, _ := parseOID(read("autostash"))
		r.resetHard(r.readCommit(orig).tree)
		r.writeIndex()
		_, head := r.head()
		if strings.HasPrefix(name, "refs/") {
			r.setHead(name, oid{}, "")
			r.logRef("HEAD", head, orig, "rebase (abort): returning to "+name)
		} else {
			r.setHead("", orig, "rebase (abort): returning to "+orig.String())
		}
		clear()
		r.removeAll(dir)
		r.rebaseUnstash(stashed)
		return 0
	case "skip":
		_, head := r.head()
		r.resetHard(r.readCommit(head).tree)
		r.writeIndex()
		clear()
		return r.rebaseRun(b, todo)
	}
	if status := r.rebaseCommit(dir); status != 0 {
		return status
	}
	clear()
	return r.rebaseRun(b, todo)
}

// rebaseCommit records the solved conflicts of the step that stopped.
func (r *repo) rebaseCommit(dir string) int {
	if r.index().unmerged() {
		r.listNeedsMerge()
		r.printf("You must edit all merge conflicts and then\nmark them as resolved using git add\n")
		return 1
	}
	if len(r.workChanges(nil)) > 0 {
		r.say("error: cannot rebase: You have unstaged changes.\nerror: Please commit or stash them.")
		return 1
	}
	_, head := r.head()
	stopped, err := r.t.ReadFile(dir+"/stopped-sha", maxSmall)
	tree := r.treeFromIndex()
	changed := tree != r.readCommit(head).tree
	if err != nil {
		if amend, aerr := r.t.ReadFile(dir+"/amend", maxSmall); aerr == nil && changed {
			if id, _ := parseOID(strings.TrimSpace(string(amend))); id == head {
				o := commitOptions{amend: true, noEdit: true, status: r.statusOptions(), allowEmpty: true}
				o.status.format = ""
				return r.commit(&o, nil)
			}
		}
		return 0
	}
	if !changed {
		return 0
	}
	c := r.readCommit(r.commitRev(strings.TrimSpace(string(stopped))))
	branch, _ := r.head()
	text, err := r.t.ReadFile(r.dir+"/MERGE_MSG", maxSmall)
	message := string(text)
	if err != nil {
		message = c.message
	}
	if r.editor(false) != "" {
		r.must(r.overwrite(r.dir+"/COMMIT_EDITMSG", message))
		if !r.edit(r.relGit(r.dir + "/COMMIT_EDITMSG")) {
			return 1
		}
		b, _ := r.t.ReadFile(r.dir+"/COMMIT_EDITMSG", maxSmall)
		message = string(b)
	} else {
		r.say("error: Terminal is dumb, but EDITOR unset\nPlease supply the message using either -m or -F option.\nerror: could not commit staged changes.")
		return 1
	}
	n := &commit{tree: tree, parents: []oid{head}, author: c.author, committer: r.who("COMMITTER"), message: stripspace(message, true)}
	if amend, err := r.t.ReadFile(dir+"/amend", maxSmall); err == nil && strings.TrimSpace(string(amend)) == head.String() {
		prev := r.readCommit(head)
		n.parents, n.author = prev.parents, prev.author
	}
	n.id = r.writeObject(commitObj, n.encode())
	r.updateRef("HEAD", n.id, "rebase (continue): "+n.subject())
	r.t.Unlink(r.dir + "/CHERRY_PICK_HEAD")
	r.commitSummary(n, branch, false)
	return 0
}
