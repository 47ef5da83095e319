package git

import (
	"fmt"
	"sort"
	"strings"

	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

type commitOptions struct {
	messages                                                      []string
	file, reuse, fixup, author, date, cleanup, trailerText        string
	all, amend, allowEmpty, allowEmptyMessage, quiet, dry, signed bool
	noVerify, edit, noEdit, only, include, resetAuthor, squash    bool
	hasFile, hasMessage, editReuse, noStatus                      bool
	trailers                                                      []string
	squashOf                                                      string
	status                                                        statusOptions
}

func (r *repo) cmdCommit(args []string) int {
	r.needTree()
	c := commitOptions{status: r.statusOptions()}
	c.status.format = ""
	o := r.options("commit", args)
	for o.next() {
		if !c.option(r, o) && !c.option2(o) && !r.statusOption(&c.status, o) {
			o.unknown()
		}
	}
	return r.commit(&c, o.operands())
}

func (c *commitOptions) option(r *repo, o *options) bool {
	switch o.name {
	case "-m", "--message":
		c.messages, c.hasMessage = append(c.messages, o.arg()), true
	case "-F", "--file":
		c.file, c.hasFile = o.arg(), true
	case "-C", "--reuse-message":
		c.reuse = o.arg()
	case "-c", "--reedit-message":
		c.reuse, c.editReuse = o.arg(), true
	case "--fixup":
		c.fixup = o.arg()
	case "--squash":
		c.squashOf = o.arg()
	case "--author":
		c.author = o.arg()
	case "--date":
		c.date = o.arg()
	case "--cleanup":
		c.cleanup = o.arg()
	case "--trailer":
		c.trailers = append(c.trailers, o.arg())
	case "-a", "--all":
		c.all = true
	case "--amend":
		c.amend = true
	case "--allow-empty":
		c.allowEmpty = true
	case "--allow-empty-message":
		c.allowEmptyMessage = true
	case "-p", "--patch", "--interactive":
		r.fatal("%s needs a person at a terminal: it isn't done here", o.name)
	default:
		return false
	}
	return true
}

func (c *commitOptions) option2(o *options) bool {
	switch o.name {
	case "-q", "--quiet":
		c.quiet = true
	case "--dry-run":
		c.dry = true
	case "-s", "--signoff":
		c.signed = true
	case "--no-signoff":
		c.signed = false
	case "-n", "--no-verify":
		c.noVerify = true
	case "-e", "--edit":
		c.edit = true
	case "--no-edit":
		c.noEdit = true
	case "-o", "--only":
		c.only = true
	case "-i", "--include":
		c.include = true
	case "--reset-author":
		c.resetAuthor = true
	case "-S", "--gpg-sign":
		o.optional()
	case "-t", "--template", "--pathspec-from-file":
		o.arg()
	case "--no-gpg-sign", "--no-post-rewrite", "--verify", "--status":
	case "--no-status":
		c.noStatus = true
	default:
		return false
	}
	return true
}

// commit records the index, or part of the work tree.
func (r *repo) commit(c *commitOptions, paths []string) int {
	if c.status.format != "" {
		c.dry = true
	} else {
		c.status.format = "long"
	}
	branch, head := r.head()
	merging := r.gitFileExists("MERGE_HEAD")
	r.checkCommit(c, paths, head, merging)
	var kept []entry // the index as it is to be after a commit of paths only
	switch {
	case c.all:
		r.add(&addOptions{update: true}, nil)
	case len(paths) > 0 && c.include:
		r.matchTracked(paths)
		r.add(&addOptions{update: true}, paths)
	case len(paths) > 0:
		kept = r.onlyPaths(paths, head)
	}
	if r.index().unmerged() {
		r.say("error: Committing is not possible because you have unmerged files.")
		r.say("hint: Fix them up in the work tree, and then use 'git add/rm <file>'\nhint: as appropriate to mark resolution and make a commit.")
		for p := range r.state(&statusOptions{untracked: "no"}, nil).unmerged {
			_ = p
		}
		r.listUnmerged()
		r.fatal("Exiting because of an unresolved conflict.")
	}
	c.status.amend = c.amend
	if c.dry {
		if r.printStatus(&c.status, nil) {
			return 0
		}
		return 1
	}
	if !c.noVerify && !r.hook("pre-commit") {
		return 1
	}
	tree := r.treeFromIndex()
	n := &commit{tree: tree}
	r.commitParents(n, c, head)
	picking := r.gitFileExists("CHERRY_PICK_HEAD")
	if !c.allowEmpty && !c.amend && !merging && r.nothingNew(n, head) {
		if picking {
			r.say("The previous cherry-pick is now empty, possibly due to conflict resolution.\nIf you wish to commit it anyway, use:\n\n    git commit --allow-empty\n\nOtherwise, please use 'git cherry-pick --skip'")
		}
		c.status.commit = true
		r.printStatus(&c.status, nil)
		r.writeIndex()
		return 1
	}
	if c.amend && !c.allowEmpty && len(n.parents) == 1 && r.readCommit(n.parents[0]).tree == tree {
		c.status.commit = true
		r.printStatus(&c.status, nil)
		r.say("You asked to amend the most recent commit, but doing so would make\nit empty. You can repeat your command with --allow-empty, or you can\nremove the commit entirely with \"git reset HEAD^\".")
		return 1
	}
	r.commitIdents(n, c, head)
	n.message = r.commitMessage(n, c, head)
	if n.message == "" && !c.allowEmptyMessage {
		r.die(1, "Aborting commit due to empty commit message.")
	}
	id := r.writeObject(commitObj, n.encode())
	n.id = id
	if kept != nil {
		r.index().entries, r.index().changed = kept, true
	}
	r.writeIndex()
	what := "commit"
	switch {
	case c.amend:
		what = "commit (amend)"
	case head.isZero():
		what = "commit (initial)"
	case merging:
		what = "commit (merge)"
	case picking:
		what = "commit (cherry-pick)"
	}
	r.updateRef("HEAD", id, what+": "+n.subject())
	for _, f := range []string{"CHERRY_PICK_HEAD", "REVERT_HEAD", "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "SQUASH_MSG", "AUTO_MERGE"} {
		r.t.Unlink(r.dir + "/" + f)
	}
	r.hook("post-commit")
	if !c.quiet {
		r.commitSummary(n, branch, (c.amend || c.reuse != "" || picking) && !c.resetAuthor || c.date != "")
	}
	return 0
}

// listUnmerged prints the paths with conflicts, as a refused commit does.
func (r *repo) listUnmerged() {
	last := ""
	for _, e := range r.index().entries {
		if e.stage() > 0 && e.path != last {
			r.printf("U\t%s\n", r.quote(e.path))
			last = e.path
		}
	}
}

func (r *repo) checkCommit(c *commitOptions, paths []string, head oid, merging bool) {
	switch {
	case c.amend && head.isZero():
		r.fatal("You have nothing to amend.")
	case c.amend && merging:
		r.fatal("You are in the middle of a merge -- cannot amend.")
	case c.amend && r.gitFileExists("CHERRY_PICK_HEAD"):
		r.fatal("You are in the middle of a cherry-pick -- cannot amend.")
	case c.all && len(paths) > 0:
		r.fatal("paths '%s ...' with -a does not make sense", paths[0])
	case (c.only || c.include) && len(paths) == 0 && !(c.amend && c.only):
		r.fatal("No paths with --include/--only does not make sense.")
	case merging && len(paths) > 0 && !c.include:
		r.fatal("cannot do a partial commit during a merge.")
	case c.hasFile && c.hasMessage:
		r.fatal("options '-m' and '-F' cannot be used together")
	case c.fixup != "" && c.hasFile:
		r.fatal("options '-F' and '--fixup' cannot be used together")
	}
}

// matchTracked ends the command for a path that no tracked file has.
func (r *repo) matchTracked(paths []string) *pathspec {
	spec := r.pathspec(paths)
	bad := false
	for i := range spec.items {
		if spec.items[i].exclude {
			continue
		}
		one := &pathspec{items: spec.items[i : i+1]}
		if !r.anyTracked(one) {
			r.say("error: pathspec '%s' did not match any file(s) known to git", paths[i])
			bad = true
		}
	}
	if bad {
		r.t.Exit(1)
	}
	return spec
}

// onlyPaths makes the index what HEAD has but for some paths, and returns what it is to be afterwards.
func (r *repo) onlyPaths(paths []string, head oid) []entry {
	spec := r.matchTracked(paths)
	r.add(&addOptions{update: true}, paths)
	x := r.index()
	after := append([]entry(nil), x.entries...)
	tree := flat{}
	if !head.isZero() {
		tree = r.flatten(r.readCommit(head).tree)
	}
	out := make([]entry, 0, len(after))
	for _, e := range after {
		if spec.match(e.path) {
			out = append(out, e)
		}
	}
	for p, t := range tree {
		if !spec.match(p) {
			e := entry{mode: t.mode, id: t.id, path: p}
			if was := x.find(p); was != nil && was.id == t.id && was.mode == t.mode {
				e = *was
			}
			out = append(out, e)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].path < out[j].path })
	x.entries, x.changed = out, true
	return after
}

func (r *repo) commitParents(n *commit, c *commitOptions, head oid) {
	if c.amend {
		n.parents = r.readCommit(head).parents
		return
	}
	if !head.isZero() {
		n.parents = []oid{head}
	}
	b, err := r.t.ReadFile(r.dir+"/MERGE_HEAD", maxSmall)
	if err != nil {
		return
	}
	for _, s := range strings.Fields(string(b)) {
		id, ok := parseOID(s)
		if !ok {
			r.fatal("Corrupt MERGE_HEAD file (%s)", s)
		}
		n.parents = append(n.parents, id)
	}
	if mode, _ := r.t.ReadFile(r.dir+"/MERGE_MODE", maxSmall); string(mode) != "no-ff" {
		n.parents = append(n.parents[:1:1], r.reduceHeads(n.parents[0], n.parents[1:])...)
	}
}

// reduceHeads drops those that are ancestors of another or of head.
func (r *repo) reduceHeads(head oid, list []oid) (out []oid) {
	for _, id := range r.independent(list) {
		if !r.isAncestor(id, head) {
			out = append(out, id)
		}
	}
	return out
}

func (r *repo) nothingNew(n *commit, head oid) bool {
	if head.isZero() {
		return len(r.index().entries) == 0
	}
	return len(n.parents) == 1 && r.readCommit(head).tree == n.tree
}

func (r *repo) commitIdents(n *commit, c *commitOptions, head oid) {
	n.committer = r.who("COMMITTER")
	from := ""
	switch {
	case c.resetAuthor:
	case c.amend:
		from = "HEAD"
	case c.reuse != "":
		from = c.reuse
	case r.gitFileExists("CHERRY_PICK_HEAD"):
		from = "CHERRY_PICK_HEAD"
	}
	if from != "" {
		n.author = r.readCommit(r.commitRev(from)).author
	} else {
		n.author = r.who("AUTHOR")
	}
	if c.author != "" {
		lt := strings.LastIndexByte(c.author, '<')
		if lt > 0 && strings.HasSuffix(c.author, ">") {
			n.author.name, n.author.email = crud(c.author[:lt]), crud(c.author[lt+1:len(c.author)-1])
		} else if !r.authorByName(n, c.author) {
			r.fatal("--author '%s' is not 'Name <email>' and matches no existing author", c.author)
		}
		if from == "" && r.t.Getenv("GIT_AUTHOR_DATE") == "" {
			n.author.when = n.committer.when
			if r.t.Getenv("GIT_COMMITTER_DATE") != "" {
				n.author.when = r.who("AUTHOR").when
			}
		}
	}
	if c.date != "" {
		t, ok := r.parseDate(c.date)
		if !ok {
			r.fatal("invalid date format: %s", c.date)
		}
		n.author.when = t
	}
}

// authorByName finds an author of the history by a part of the name.
func (r *repo) authorByName(n *commit, part string) bool {
	_, head := r.head()
	if head.isZero() {
		return false
	}
	m := r.pattern(part, false, false, true)
	w := r.walk([]oid{head}, nil)
	for c := w.next(); c != nil; c = w.next() {
		if m(c.author.name + " <" + c.author.email + ">") {
			n.author.name, n.author.email = c.author.name, c.author.email
			return true
		}
	}
	return false
}

// commitSummary is what commit prints of what it made.
func (r *repo) commitSummary(n *commit, branch string, date bool) {
	name := "detached HEAD"
	if branch != "" {
		name = shortRef(branch)
	}
	root := ""
	if len(n.parents) == 0 {
		root = " (root-commit)"
	}
	r.printf("[%s%s %s] %s\n", name, root, r.abbrev(n.id), n.subject())
	if n.author.name != n.committer.name || n.author.email != n.committer.email {
		r.printf(" Author: %s <%s>\n", n.author.name, n.author.email)
	}
	if date {
		r.printf(" Date: %s\n", r.formatDate(n.author.when, ""))
	}
	if len(n.parents) > 1 {
		return
	}
	var parent oid
	if len(n.parents) > 0 {
		parent = r.readCommit(n.parents[0]).tree
	}
	d := newDiffOptions()
	d.shortstat, d.summary = true, true
	r.showChanges(r.prepare(r.compareTrees(parent, n.tree), &d), &d)
}

// hook runs a program of .git/hooks, as a process of the sandbox; false if it failed. What isn't there or isn't executable is
// passed over.
func (r *repo) hook(name string, args ...string) bool {
	dir := r.common + "/hooks"
	if v, ok := r.config().get("core.hookspath"); ok {
		if dir = r.homePath(v); dir[0] != '/' {
			dir = r.root + "/" + dir
		}
	}
	file := dir + "/" + name
	a, err := r.t.Stat(file)
	if err != nil || !a.Mode.IsRegular() {
		return true
	}
	if a.Mode&0o111 == 0 {
		r.say("hint: The '%s' hook was ignored because it's not set as executable.\nhint: You can disable this warning with `git config advice.ignoredHook false`.", r.show(file))
		return true
	}
	return r.spawn(append([]string{file}, args...), nil, nil) == 0
}

// homePath replaces a leading ~/.
func (r *repo) homePath(p string) string {
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		return r.t.Getenv("HOME") + "/" + rest
	}
	return p
}

// spawn runs a program of the sandbox in the work tree and waits for it. Its output goes where errors go unless out is set.
func (r *repo) spawn(args []string, env []string, files map[int]vfs.File) int {
	r.t.Out.Flush()
	dir := r.root
	if dir == "" || dir == "/." {
		dir = r.dir
	}
	if files == nil {
		files = map[int]vfs.File{}
		if f, err := r.t.File(2); err == nil {
			files[1] = f
		}
	}
	environ := append(append([]string(nil), r.t.Environ()...), env...)
	child, err := r.t.Spawn(proc.Spawn{Args: args, Env: environ, Dir: dir, Files: files})
	if err != nil {
		r.say("error: cannot run %s: %s", args[0], strerror(err))
		return 127
	}
	status, err := r.t.Wait(child)
	if err != nil {
		r.t.Check()
		return 128
	}
	return status
}

// filesOf are the descriptors of a program whose output goes to a file.
func filesOf(out vfs.File) map[int]vfs.File { return map[int]vfs.File{1: out} }

// editor is the program that git would start, "" if there is none.
func (r *repo) editor(sequence bool) string {
	if e := r.t.Getenv("GIT_SEQUENCE_EDITOR"); sequence && e != "" {
		return e
	}
	if e := r.t.Getenv("GIT_EDITOR"); e != "" {
		return e
	}
	if e, ok := r.config().get("core.editor"); ok {
		return e
	}
	term := r.t.Getenv("TERM")
	dumb := term == "" || term == "dumb"
	if e := r.t.Getenv("VISUAL"); e != "" && !dumb {
		return e
	}
	if e := r.t.Getenv("EDITOR"); e != "" {
		return e
	}
	if dumb {
		return ""
	}
	return "vi"
}

// edit lets the editor change a file. It reports whether that went well.
func (r *repo) edit(file string) bool {
	e := r.editor(false)
	if e == "" {
		r.say("error: Terminal is dumb, but EDITOR unset")
		return false
	}
	if e == ":" || e == "true" {
		return true
	}
	args := []string{e, file}
	if strings.ContainsAny(e, "|&;<>()$`\\\"' \t\n*?[#~=%") {
		args = []string{"/bin/sh", "-c", e + ` "$@"`, e, file}
	}
	files := map[int]vfs.File{}
	if status := r.spawn(args, nil, files); status != 0 {
		if status == 127 {
			r.say("error: unable to start editor '%s'", e)
		} else {
			r.say("error: There was a problem with the editor '%s'.", e)
		}
		return false
	}
	return true
}

// stripspace cleans a message: trailing blanks and repeated or outer empty lines go, and with comments lines that begin with #.
func stripspace(s string, comments bool) string {
	var b strings.Builder
	empty := 0
	for _, line := range strings.Split(s, "\n") {
		if comments && strings.HasPrefix(line, "#") {
			continue
		}
		line = strings.TrimRight(line, " \t\r\v\f")
		if line == "" {
			empty++
			continue
		}
		if empty > 0 && b.Len() > 0 {
			b.WriteByte('\n')
		}
		empty = 0
		fmt.Fprintf(&b, "%s\n", line)
	}
	return b.String()
}
