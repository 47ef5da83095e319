package git

import (
	"strings"
)

// longWriter prints the long status, as a comment where it goes into a commit's template.
type longWriter struct {
	r    *repo
	o    *statusOptions
	s    *worldState
	b    strings.Builder
	hint bool
}

func (w *longWriter) line(s string) { w.b.WriteString(s + "\n") }

func (w *longWriter) advise(s string) {
	if w.hint {
		w.line("  (" + s + ")")
	}
}

func (r *repo) longStatus(o *statusOptions, s *worldState) bool {
	text, committable := r.longText(o, s)
	r.printf("%s", text)
	return committable
}

// longText is the long status.
func (r *repo) longText(o *statusOptions, s *worldState) (string, bool) {
	w := &longWriter{r: r, o: o, s: s, hint: r.config().bool("advice.statushints", true)}
	merging := r.gitFileExists("MERGE_HEAD")
	w.headLine()
	w.progress(merging)
	if s.head.isZero() {
		w.line("")
		if o.commit && !o.template {
			w.line("Initial commit")
		} else if o.template {
			w.line("Initial commit")
		} else {
			w.line("No commits yet")
		}
		w.line("")
	}
	w.staged(merging)
	w.unmerged(merging)
	w.unstaged()
	if o.untracked != "no" {
		w.others("Untracked files", "add", s.untracked)
		if o.ignored != "no" {
			w.others("Ignored files", "add -f", s.ignored)
		}
	}
	committable := len(s.staged) > 0 || merging && len(s.unmerged) == 0
	if o.untracked == "no" && committable && w.hint {
		w.line("Untracked files not listed (use -u option to show untracked files)")
	} else if o.untracked == "no" && committable {
		w.line("Untracked files not listed")
	}
	if !committable {
		w.nothing()
	}
	if n := len(r.reflog("refs/stash")); o.stash && n > 0 {
		if n == 1 {
			w.line("Your stash currently has 1 entry")
		} else {
			w.line("Your stash currently has " + itoa(n) + " entries")
		}
	}
	return w.b.String(), committable
}

func (w *longWriter) headLine() {
	r, s := w.r, w.s
	if on := r.rebaseOnto(); on != "" {
		w.line("interactive rebase in progress; onto " + on)
		return
	}
	if s.branch == "" {
		w.line(r.detachedLine(s.head))
		return
	}
	w.line("On branch " + shortRef(s.branch))
	if t := r.tracking(s.branch, s.head); t != "" {
		w.b.WriteString(t + "\n")
	}
}

// detachedLine says where HEAD was detached.
func (r *repo) detachedLine(head oid) string {
	list := r.reflog("HEAD")
	for i := len(list) - 1; i >= 0; i-- {
		m, ok := strings.CutPrefix(list[i].message, "checkout: moving from ")
		if !ok {
			continue
		}
		_, to, _ := strings.Cut(m, " to ")
		name := to
		if full, id, ok := r.expandRef(to); ok && full != "HEAD" {
			if p, err := r.peel(id, commitObj); err == nil && p == list[i].id {
				name = shortRef(full)
			} else {
				name = r.abbrev(list[i].id)
			}
		} else {
			name = r.abbrev(list[i].id)
		}
		if list[i].id == head {
			return "HEAD detached at " + name
		}
		return "HEAD detached from " + name
	}
	return "Not currently on any branch."
}

func (r *repo) gitFileExists(name string) bool {
	_, err := r.t.Stat(r.dir + "/" + name)
	return err == nil
}

// progress tells about merges and such that aren't finished.
func (w *longWriter) progress(merging bool) {
	r := w.r
	conflicts := len(w.s.unmerged) > 0
	switch {
	case r.rebaseOnto() != "":
		w.rebasing(conflicts)
	case merging && conflicts:
		w.line("You have unmerged paths.")
		w.advise(`fix conflicts and run "git commit"`)
		w.advise(`use "git merge --abort" to abort the merge`)
		w.line("")
	case merging:
		w.line("All conflicts fixed but you are still merging.")
		w.advise(`use "git commit" to conclude merge`)
		w.line("")
	case r.gitFileExists("rebase-apply/applying"):
		w.line("You are in the middle of an am session.")
		w.advise(`fix conflicts and then run "git am --continue"`)
		w.advise(`use "git am --skip" to skip this patch`)
		w.advise(`use "git am --abort" to restore the original branch`)
		w.line("")
	case r.gitFileExists("CHERRY_PICK_HEAD"):
		w.picking("cherry-pick", "cherry-picking", "CHERRY_PICK_HEAD", conflicts)
	case r.gitFileExists("REVERT_HEAD"):
		w.picking("revert", "reverting", "REVERT_HEAD", conflicts)
	}
	if r.gitFileExists("BISECT_LOG") {
		b, _ := r.t.ReadFile(r.dir+"/BISECT_START", maxSmall)
		w.line("You are currently bisecting, started from branch '" + shortRef(strings.TrimSpace(string(b))) + "'.")
		w.advise(`use "git bisect reset" to get back to the original branch`)
		w.line("")
	}
}

func (w *longWriter) picking(verb, doing, file string, conflicts bool) {
	_, id, _ := w.r.resolveRef(file)
	if w.r.gitFileExists("sequencer/todo") {
		w.line(strings.ToUpper(verb[:1]) + verb[1:] + " currently in progress.")
	} else {
		w.line("You are currently " + doing + " commit " + w.r.abbrev(id) + ".")
	}
	if conflicts {
		w.advise(`fix conflicts and run "git ` + verb + ` --continue"`)
	} else {
		w.advise(`all conflicts fixed: run "git ` + verb + ` --continue"`)
	}
	w.advise(`use "git ` + verb + ` --skip" to skip this patch`)
	w.advise(`use "git ` + verb + ` --abort" to cancel the ` + verb + ` operation`)
	w.line("")
}

// staged lists what the next commit will have.
func (w *longWriter) staged(merging bool) {
	if len(w.s.staged) == 0 {
		return
	}
	w.line("Changes to be committed:")
	if !merging && (!w.r.gitFileExists("CHERRY_PICK_HEAD") || w.r.gitFileExists("rebase-merge")) {
		if w.s.head.isZero() {
			w.advise(`use "git rm --cached <file>..." to unstage`)
		} else {
			w.advise(`use "git restore --staged <file>..." to unstage`)
		}
	}
	for i := range w.s.staged {
		w.change(&w.s.staged[i])
	}
	w.line("")
}

func (w *longWriter) change(c *change) {
	label := map[byte]string{'A': "new file:   ", 'D': "deleted:    ", 'M': "modified:   ", 'R': "renamed:    ", 'C': "copied:     ", 'T': "typechange: "}[c.status]
	if c.status == 'R' || c.status == 'C' {
		w.line("\t" + label + w.r.statusName(w.o, c.old.name) + " -> " + w.r.statusName(w.o, c.new.name))
		return
	}
	w.line("\t" + label + w.r.statusName(w.o, c.path()))
}

func (w *longWriter) unmerged(merging bool) {
	var paths []string
	deleted, both, other := false, false, false
	for _, c := range w.s.unstaged {
		mask := w.s.unmerged[c.path()]
		if mask == 0 {
			continue
		}
		paths = append(paths, c.path())
		switch mask {
		case 1:
			both = true
		case 3, 5:
			deleted = true
		default:
			other = true
		}
	}
	if len(paths) == 0 {
		return
	}
	w.line("Unmerged paths:")
	if !merging && (!w.r.gitFileExists("CHERRY_PICK_HEAD") || w.r.gitFileExists("rebase-merge")) {
		if w.s.head.isZero() {
			w.advise(`use "git rm --cached <file>..." to unstage`)
		} else {
			w.advise(`use "git restore --staged <file>..." to unstage`)
		}
	}
	switch {
	case !both && !deleted:
		w.advise(`use "git add <file>..." to mark resolution`)
	case both && !deleted && !other:
		w.advise(`use "git rm <file>..." to mark resolution`)
	default:
		w.advise(`use "git add/rm <file>..." as appropriate to mark resolution`)
	}
	labels := [8]string{"", "both deleted:", "added by us:", "deleted by them:", "added by them:", "deleted by us:", "both added:", "both modified:"}
	for _, p := range paths {
		l := labels[w.s.unmerged[p]&7]
		w.line("\t" + l + strings.Repeat(" ", 17-len(l)) + w.r.statusName(w.o, p))
	}
	w.line("")
}

func (w *longWriter) unstaged() {
	any, gone := false, false
	for _, c := range w.s.unstaged {
		if c.status != 'U' {
			any = true
			gone = gone || c.status == 'D'
		}
	}
	if !any {
		return
	}
	w.line("Changes not staged for commit:")
	if gone {
		w.advise(`use "git add/rm <file>..." to update what will be committed`)
	} else {
		w.advise(`use "git add <file>..." to update what will be committed`)
	}
	w.advise(`use "git restore <file>..." to discard changes in working directory`)
	for i := range w.s.unstaged {
		if w.s.unstaged[i].status != 'U' {
			w.change(&w.s.unstaged[i])
		}
	}
	w.line("")
}

func (w *longWriter) others(title, verb string, list []string) {
	if len(list) == 0 {
		return
	}
	w.line(title + ":")
	w.advise(`use "git ` + verb + ` <file>..." to include in what will be committed`)
	for _, p := range list {
		w.line("\t" + w.r.statusName(w.o, p))
	}
	w.line("")
}

// nothing says why there is nothing to commit.
func (w *longWriter) nothing() {
	s, o := w.s, w.o
	with := func(text, hint string) {
		if w.hint {
			text += " (" + hint + ")"
		}
		w.line(text)
	}
	switch {
	case o.amend:
		w.line("No changes")
	case o.template:
	case len(s.unstaged) > 0:
		with("no changes added to commit", `use "git add" and/or "git commit -a"`)
	case len(s.untracked) > 0:
		with("nothing added to commit but untracked files present", `use "git add" to track`)
	case s.head.isZero():
		with("nothing to commit", `create/copy files and use "git add" to track`)
	case o.untracked == "no":
		with("nothing to commit", "use -u to show untracked files")
	default:
		w.line("nothing to commit, working tree clean")
	}
}

// rebasing tells how far a rebase got.
func (w *longWriter) rebasing(conflicts bool) {
	r := w.r
	read := func(name string) []string {
		b, _ := r.t.ReadFile(r.dir+"/rebase-merge/"+name, maxSmall)
		var out []string
		for _, l := range strings.Split(string(b), "\n") {
			if l != "" && l[0] != '#' {
				out = append(out, l)
			}
		}
		return out
	}
	short := func(l string) string {
		f := strings.SplitN(l, " ", 3)
		if len(f) > 1 {
			if id, ok := parseOID(f[1]); ok {
				f[1] = r.abbrev(id)
			}
		}
		return strings.Join(f, " ")
	}
	done, todo := read("done"), read("git-rebase-todo")
	switch n := len(done); {
	case n == 0:
		w.line("No commands done.")
	case n == 1:
		w.line("Last command done (1 command done):")
	default:
		w.line("Last commands done (" + itoa(n) + " commands done):")
	}
	for _, l := range done[max(0, len(done)-2):] {
		w.line("   " + short(l))
	}
	if len(done) > 2 {
		w.advise("see more in file " + r.relGit(r.dir+"/rebase-merge/done"))
	}
	switch n := len(todo); {
	case n == 0:
		w.line("No commands remaining.")
	case n == 1:
		w.line("Next command to do (1 remaining command):")
	default:
		w.line("Next commands to do (" + itoa(n) + " remaining commands):")
	}
	for _, l := range todo[:min(2, len(todo))] {
		w.line("   " + short(l))
	}
	if len(todo) > 0 {
		w.advise(`use "git rebase --edit-todo" to view and edit`)
	}
	w.line("You are currently rebasing branch '" + r.rebaseBranch() + "' on '" + r.rebaseOnto() + "'.")
	if conflicts {
		w.advise(`fix conflicts and then run "git rebase --continue"`)
		w.advise(`use "git rebase --skip" to skip this patch`)
		w.advise(`use "git rebase --abort" to check out the original branch`)
	} else {
		w.advise(`all conflicts fixed: run "git rebase --continue"`)
	}
	w.line("")
}
