package git

import (
	"strings"
)

// switchOptions say how HEAD moves.
type switchOptions struct {
	verb                                             string // checkout or switch
	create, forceCreate, orphan                      string
	dash                                             bool // "--" was given
	detach, force, quiet, merge, discard, noGuess    bool
	track                                            string
	ours, theirs, overlay, noProgress, staged, wtree bool
	source, conflict                                 string
	guessed                                          string // the remote branch that was found for a name
}

func (s *switchOptions) option(o *options) bool {
	switch o.name {
	case "-b", "-c", "--create":
		s.create = o.arg()
	case "-B", "-C", "--force-create":
		s.forceCreate = o.arg()
	case "--orphan":
		s.orphan = o.arg()
	case "-d", "--detach":
		s.detach = true
	case "-f", "--force", "--discard-changes":
		s.force = true
	case "-q", "--quiet":
		s.quiet = true
	case "-m", "--merge":
		s.merge = true
	case "--conflict":
		s.conflict, s.merge = o.arg(), true
	case "-t", "--track":
		s.track = s2(o.value, "direct")
	case "--no-track":
		s.track = "no"
	case "--guess":
	case "--no-guess":
		s.noGuess = true
	case "--ours", "-2":
		s.ours = true
	case "--theirs", "-3":
		s.theirs = true
	case "--progress", "--no-progress", "-l", "--ignore-other-worktrees", "--overlay", "--no-overlay", "--overwrite-ignore", "--no-recurse-submodules", "--recurse-submodules", "--ignore-skip-worktree-bits":
		if o.name == "--no-overlay" {
			s.overlay = true
		}
	case "-p", "--patch":
		o.r.fatal("%s needs a person at a terminal: it isn't done here", o.name)
	default:
		return false
	}
	return true
}

func (r *repo) cmdCheckout(args []string) int {
	r.needTree()
	s := switchOptions{verb: "checkout"}
	o := r.options("checkout", dashArgs(args))
	specFile := ""
	for o.next() {
		if o.name == "--pathspec-from-file" {
			specFile = o.arg()
			continue
		}
		if !s.option(o) {
			o.unknown()
		}
	}
	rest, paths := o.rest, o.after
	s.dash = o.dash
	if specFile != "" {
		paths, o.dash = r.fileLines(specFile), true
	}
	target := ""
	switch {
	case o.dash && len(rest) > 1:
		r.fatal("only one reference expected, %d given.", len(rest))
	case o.dash && len(rest) == 1:
		target = rest[0]
		if _, err := r.rev(undash(target)); err != nil {
			r.fatal("invalid reference: %s", target)
		}
	case !o.dash && len(rest) > 0:
		target, paths = r.checkoutArg(&s, rest)
	}
	if len(paths) > 0 || o.dash && len(o.after) > 0 {
		if s.create+s.forceCreate+s.orphan != "" {
			r.fatal("Cannot update paths and switch to branch '%s' at the same time.", s2(s.create, s2(s.forceCreate, s.orphan)))
		}
		return r.checkoutPaths(&s, target, paths)
	}
	return r.switchTo(&s, undash(target))
}

// dashArgs keeps a lone "-" from being taken for standard input or an option.
func dashArgs(args []string) []string { return args }

func undash(s string) string {
	if s == "-" {
		return "@{-1}"
	}
	return s
}

// checkoutArg tells whether the first operand is a revision or a path.
func (r *repo) checkoutArg(s *switchOptions, rest []string) (target string, paths []string) {
	first := rest[0]
	if _, err := r.rev(undash(first)); err == nil {
		if len(rest) == 1 && r.pathExists(first) && s.create+s.forceCreate == "" && first != "-" && r.anyTrackedArg(first) {
			if _, _, ok := r.expandRef(first); ok {
				r.fatal("'%s' could be both a local file and a tracking branch.\nPlease use -- (and optionally --no-guess) to disambiguate", first)
			}
		}
		return first, rest[1:]
	}
	if s.create+s.forceCreate+s.orphan != "" && len(rest) == 1 {
		return first, nil
	}
	if len(rest) == 1 && !s.noGuess && !r.pathExists(first) {
		if _, _, ok := r.guess(first); ok {
			return first, nil
		}
	}
	if s.detach || s.track != "" {
		return first, rest[1:]
	}
	return "", rest
}

func (r *repo) anyTrackedArg(a string) bool {
	p, ok := r.relative(a)
	return ok && r.anyTracked(&pathspec{items: []specItem{{path: p}}})
}

// guess finds the one remote that has a branch of a name.
func (r *repo) guess(name string) (full, remote string, ok bool) {
	found := 0
	prefer, _ := r.config().get("checkout.defaultremote")
	for _, rem := range r.remotes() {
		for _, spec := range r.config().all("remote." + rem + ".fetch") {
			dst, ok := mapRef(spec, "refs/heads/"+name)
			if !ok {
				continue
			}
			if _, _, exists := r.resolveRef(dst); exists {
				if prefer == rem {
					return dst, rem, true
				}
				full, remote = dst, rem
				found++
			}
		}
	}
	return full, remote, found == 1
}

func (r *repo) cmdSwitch(args []string) int {
	r.needTree()
	s := switchOptions{verb: "switch"}
	o := r.options("switch", args)
	for o.next() {
		if !s.option(o) {
			o.unknown()
		}
	}
	rest := o.operands()
	switch {
	case len(rest) > 1:
		r.fatal("only one reference expected")
	case len(rest) == 0 && s.create+s.forceCreate+s.orphan == "" && !s.detach:
		r.fatal("missing branch or commit argument")
	}
	target := ""
	if len(rest) == 1 {
		target = rest[0]
	}
	return r.switchTo(&s, undash(target))
}

// switchTo moves HEAD to a branch or a commit, with index and work tree.
func (r *repo) switchTo(s *switchOptions, target string) int {
	cur, head := r.head()
	if s.orphan != "" {
		return r.switchOrphan(s, target)
	}
	if r.index().unmerged() && !s.force {
		r.listNeedsMerge()
		r.die(1, "error: you need to resolve your current index first")
	}
	newName := s2(s.create, s.forceCreate)
	branch, id := r.switchTarget(s, target)
	newName = s2(s.create, s.forceCreate)
	if newName != "" {
		name := newName
		if !validBranch(name) {
			r.fatal("'%s' is not a valid branch name", name)
		}
		_, _, exists := r.resolveRef("refs/heads/" + name)
		if exists && s.create != "" {
			r.fatal("a branch named '%s' already exists", name)
		}
		if head.isZero() && target == "" {
			r.setHead("refs/heads/"+name, oid{}, "")
			if !s.quiet {
				r.say("Switched to a new branch '%s'", name)
			}
			return 0
		}
	}
	if !head.isZero() || len(r.index().entries) > 0 {
		r.moveTree(s, head, id)
	} else {
		r.goTo(flat{}, r.flatten(r.readCommit(id).tree))
	}
	r.writeIndex()
	from := shortRef(cur)
	if cur == "" {
		from = head.String()
	}
	if newName != "" {
		return r.switchNew(s, newName, target, from, id)
	}
	reason := "checkout: moving from " + from + " to "
	switch {
	case branch != "":
		r.setHead(branch, oid{}, "")
		r.logRef("HEAD", head, id, reason+shortRef(branch))
	default:
		r.setHead("", id, "")
		r.logRef("HEAD", head, id, reason+s2(s.describe(r, target), "HEAD"))
	}
	if !s.quiet {
		r.tellSwitch(s, cur, head, branch, id, target)
	}
	r.hook("post-checkout", head.String(), id.String(), "1")
	return 0
}

// describe is a detached target as the log names it.
func (s *switchOptions) describe(r *repo, target string) string {
	if strings.HasPrefix(target, "@{-") {
		return s2(r.branchArg(target), target)
	}
	return target
}

// listNeedsMerge names the paths with conflicts.
func (r *repo) listNeedsMerge() {
	last := ""
	for _, e := range r.index().entries {
		if e.stage() > 0 && e.path != last {
			r.printf("%s: needs merge\n", e.path)
			last = e.path
		}
	}
}

// switchTarget resolves what to switch to: a branch's full name, or a commit.
func (r *repo) switchTarget(s *switchOptions, target string) (branch string, id oid) {
	if target == "" {
		b, head := r.head()
		if s.detach {
			b = ""
		}
		return b, head
	}
	name := r.branchArg(target)
	full := "refs/heads/" + name
	newName := s2(s.create, s.forceCreate)
	if _, i, ok := r.resolveRef(full); ok && validRef(full) && !s.detach && newName == "" {
		for _, w := range r.otherTrees() {
			if w.branch == full {
				r.fatal("'%s' is already checked out at '%s'", name, w.path)
			}
		}
		return full, i
	}
	id, err := r.commitOf(name)
	if err != nil {
		if raw, e := r.rev(name); e == nil && newName == "" {
			if k, _, e := r.readObject(raw); e == nil && k != commitObj {
				r.fatal("Cannot switch branch to a non-commit '%s'", target)
			}
		}
		if g, _, ok := r.guess(name); ok && !s.noGuess && newName == "" && !s.detach {
			s.create, s.track = name, "direct"
			s.guessed = g
			_, gid, _ := r.resolveRef(g)
			return "", gid
		}
		if a, ok := strings.CutSuffix(name, "..."); ok {
			_ = a
		}
		if newName != "" && s.verb == "checkout" {
			r.fatal("'%s' is not a commit and a branch '%s' cannot be created from it", target, newName)
		}
		r.fatal("invalid reference: %s", target)
	}
	if s.verb == "switch" && !s.detach && newName == "" {
		what := "commit"
		f, _, ok := r.expandRef(name)
		switch {
		case ok && strings.HasPrefix(f, "refs/tags/"):
			what = "tag"
		case ok && strings.HasPrefix(f, "refs/remotes/"):
			what = "remote branch"
		}
		r.fatal("a branch is expected, got %s '%s'\nhint: If you want to detach HEAD at the commit, try again with the --detach option.", what, target)
	}
	return "", id
}

// moveTree changes index and work tree from one commit to another, keeping local changes.
func (r *repo) moveTree(s *switchOptions, from, to oid) {
	if s.force {
		r.resetHard(r.readCommit(to).tree)
		return
	}
	var a flat
	if !from.isZero() {
		a = r.flatten(r.readCommit(from).tree)
	}
	b := r.flatten(r.readCommit(to).tree)
	r.refuse(a, b, "checkout")
	r.goTo(a, b)
}

// switchNew makes the branch and goes there.
func (r *repo) switchNew(s *switchOptions, name, target, from string, id oid) int {
	full := "refs/heads/" + name
	_, old, exists := r.resolveRef(full)
	cur, head := r.head()
	start := s2(s.guessed, s2(target, "HEAD"))
	if exists {
		if cur == full {
			r.updateRef(full, id, "branch: Reset to "+start)
		} else {
			r.setRef(full, id)
			r.logRef(full, old, id, "branch: Reset to "+start)
		}
	} else {
		r.checkRefSpace(full)
		r.updateRef(full, id, "branch: Created from "+start)
	}
	if s.track != "" || target != "" {
		r.setTracking(name, start, s.track, s.quiet)
	}
	r.setHead(full, oid{}, "")
	r.logRef("HEAD", head, id, "checkout: moving from "+from+" to "+name)
	if s.quiet {
		return 0
	}
	r.showLocal()
	switch {
	case exists && cur == full:
		r.say("Reset branch '%s'", name)
	case exists:
		r.say("Switched to and reset branch '%s'", name)
	default:
		r.say("Switched to a new branch '%s'", name)
	}
	r.hook("post-checkout", head.String(), id.String(), "1")
	return 0
}

// showLocal lists what differs from the new HEAD, as checkout does.
func (r *repo) showLocal() {
	_, head := r.head()
	if head.isZero() {
		return
	}
	for _, c := range r.headChanges(head, nil) {
		r.printf("%c\t%s\n", c.status, r.quote(c.path()))
	}
}

// headChanges compares a commit with the work tree, as far as it is tracked.
func (r *repo) headChanges(id oid, match func(string) bool) []change {
	tree := r.flatten(r.readCommit(id).tree)
	return r.treeToWork(tree, match)
}

// treeToWork compares a list of files with the work tree, as far as the index knows it.
func (r *repo) treeToWork(tree flat, match func(string) bool) []change {
	now := r.flatIndex()
	data := map[string]content{}
	unmerged := map[string]bool{}
	for _, c := range r.workChanges(match) {
		p := c.path()
		switch c.status {
		case 'U':
			unmerged[p] = true
		case 'D':
			delete(now, p)
		default:
			now[p] = c.new
			data[p] = c.data[1]
		}
	}
	var list []change
	for _, c := range compareFlat(tree, now) {
		if match != nil && !match(c.path()) || unmerged[c.path()] {
			continue
		}
		if c.new.mode != 0 {
			c.data[1] = data[c.path()]
		}
		list = append(list, c)
	}
	for p := range unmerged {
		list = append(list, change{status: 'U', new: treeEntry{mode: modeFile, name: p}})
	}
	sortChanges(list)
	return list
}

const detachedAdvice = `
You are in 'detached HEAD' state. You can look around, make experimental
changes and commit them, and you can discard any commits you make in this
state without impacting any branches by switching back to a branch.

If you want to create a new branch to retain commits you create, you may
do so (now or later) by using -c with the switch command. Example:

  git switch -c <new-branch-name>

Or undo this operation with:

  git switch -

Turn off this advice by setting config variable advice.detachedHead to false
`

// tellSwitch says where HEAD is now.
func (r *repo) tellSwitch(s *switchOptions, cur string, head oid, branch string, id oid, target string) {
	r.showLocal()
	if cur == "" && !head.isZero() && head != id {
		r.tellLeft(head, id)
	}
	if branch == "" {
		if cur != "" && !s.detach && r.config().bool("advice.detachedhead", true) {
			r.say("Note: switching to '%s'.\n%s", target, detachedAdvice)
		}
		if cur == "" && head == id && target == "" {
			return
		}
		r.say("HEAD is now at %s %s", r.abbrev(id), r.readCommit(id).subject())
		return
	}
	if branch == cur {
		if target != "" {
			r.say("Already on '%s'", shortRef(branch))
		}
	} else {
		r.say("Switched to branch '%s'", shortRef(branch))
	}
	r.printf("%s", r.tracking(branch, id))
}

// tellLeft tells about commits that nothing leads to any more.
func (r *repo) tellLeft(head, now oid) {
	tips := []oid{now}
	for _, f := range r.refs("refs/") {
		if p, err := r.peel(f.id, commitObj); err == nil {
			tips = append(tips, p)
		}
	}
	w := r.walk([]oid{head}, tips)
	var lost []*commit
	for c := w.next(); c != nil && len(lost) < 1000; c = w.next() {
		lost = append(lost, c)
	}
	if len(lost) == 0 {
		r.say("Previous HEAD position was %s %s", r.abbrev(head), r.readCommit(head).subject())
		return
	}
	var b strings.Builder
	for i, c := range lost {
		if i == 4 && len(lost) > 5 {
			b.WriteString(" ... and " + itoa(len(lost)-4) + " more.\n")
			break
		}
		b.WriteString("  " + r.abbrev(c.id) + " " + c.subject() + "\n")
	}
	if len(lost) == 1 {
		r.say("Warning: you are leaving 1 commit behind, not connected to\nany of your branches:\n\n%s", b.String())
	} else {
		r.say("Warning: you are leaving %d commits behind, not connected to\nany of your branches:\n\n%s", len(lost), b.String())
	}
	if r.config().bool("advice.detachedhead", true) {
		if len(lost) == 1 {
			r.say("If you want to keep it by creating a new branch, this may be a good time\nto do so with:\n\n git branch <new-branch-name> %s\n", r.abbrev(head))
		} else {
			r.say("If you want to keep them by creating a new branch, this may be a good time\nto do so with:\n\n git branch <new-branch-name> %s\n", r.abbrev(head))
		}
	}
}

// switchOrphan makes HEAD an unborn branch.
func (r *repo) switchOrphan(s *switchOptions, target string) int {
	name := s.orphan
	full := "refs/heads/" + name
	if !validBranch(name) {
		r.fatal("'%s' is not a valid branch name", name)
	}
	if _, _, ok := r.resolveRef(full); ok {
		r.fatal("a branch named '%s' already exists", name)
	}
	_, head := r.head()
	if s.verb == "switch" && !head.isZero() {
		to := flat{}
		from := r.flatten(r.readCommit(head).tree)
		r.refuse(from, to, "checkout")
		r.goTo(from, to)
		r.writeIndex()
	} else if target != "" {
		id := r.commitRev(target)
		r.moveTree(s, head, id)
		r.writeIndex()
	}
	r.setHead(full, oid{}, "")
	if !s.quiet {
		r.say("Switched to a new branch '%s'", name)
	}
	return 0
}
