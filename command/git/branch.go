package git

import (
	"fmt"
	"path"
	"sort"
	"strings"
)

type branchOptions struct {
	del, forceDelete, move, forceMove, copy, forceCopy, list, all, remotes, force, quiet, current, unset, edit bool
	verbose                                                                                                    int
	track                                                                                                      string // "", direct, inherit, no
	upstream, format, sort                                                                                     string
	contains, noContains, merged, noMerged, pointsAt                                                           []string
	fold, whole                                                                                                bool
}

func (r *repo) cmdBranch(args []string) int {
	var b branchOptions
	o := r.options("branch", args)
	for o.next() {
		if !b.option(o) && !b.filter(o) {
			o.unknown()
		}
	}
	rest := o.operands()
	switch {
	case b.current:
		if name, _ := r.head(); name != "" {
			r.printf("%s\n", shortRef(name))
		}
		return 0
	case b.del || b.forceDelete:
		return r.deleteBranches(&b, rest)
	case b.move || b.copy:
		return r.moveBranch(&b, rest)
	case b.upstream != "":
		return r.setUpstream(b.upstream, rest)
	case b.unset:
		return r.unsetUpstream(rest)
	case b.edit:
		r.fatal("--edit-description needs a person at a terminal: it isn't done here")
	case b.list || len(rest) == 0 || b.filtered():
		return r.listBranches(&b, rest)
	case b.all || b.remotes:
		r.fatal("The -a, and -r, options to 'git branch' do not take a branch name.\nDid you mean to use: -a|-r --list <pattern>?")
	case len(rest) > 2:
		r.die(129, "usage: git branch [<options>] [-f] <branch-name> [<start-point>]\n")
	}
	start := "HEAD"
	if len(rest) == 2 {
		start = rest[1]
	}
	r.createBranch(rest[0], start, b.force, b.track, b.quiet)
	return 0
}

func (b *branchOptions) filtered() bool {
	return len(b.contains)+len(b.noContains)+len(b.merged)+len(b.noMerged)+len(b.pointsAt) > 0
}

func (b *branchOptions) option(o *options) bool {
	switch o.name {
	case "-d", "--delete":
		b.del = true
	case "-D":
		b.forceDelete = true
	case "-m", "--move":
		b.move = true
	case "-M":
		b.move, b.force = true, true
	case "-c", "--copy":
		b.copy = true
	case "-C":
		b.copy, b.force = true, true
	case "-l", "--list":
		b.list = true
	case "-a", "--all":
		b.all = true
	case "-r", "--remotes":
		b.remotes = true
	case "-f", "--force":
		b.force = true
	case "-q", "--quiet":
		b.quiet = true
	case "-v", "--verbose":
		b.verbose++
	case "--show-current":
		b.current = true
	case "-t", "--track":
		b.track = s2(o.value, "direct")
	case "--no-track":
		b.track = "no"
	case "-u", "--set-upstream-to":
		b.upstream = o.arg()
	case "--unset-upstream":
		b.unset = true
	case "--edit-description":
		b.edit = true
	case "-i", "--ignore-case":
		b.fold = true
	case "--no-color", "--color", "--column", "--no-column", "--create-reflog", "--abbrev":
	case "--no-abbrev":
		b.whole = true
	default:
		return false
	}
	return true
}

func (b *branchOptions) filter(o *options) bool {
	value := func() string {
		if !o.has && (len(o.args) == 0 || strings.HasPrefix(o.args[0], "-")) {
			return "HEAD"
		}
		return o.arg()
	}
	switch o.name {
	case "--contains":
		b.contains = append(b.contains, value())
	case "--no-contains":
		b.noContains = append(b.noContains, value())
	case "--merged":
		b.merged = append(b.merged, value())
	case "--no-merged":
		b.noMerged = append(b.noMerged, value())
	case "--points-at":
		b.pointsAt = append(b.pointsAt, o.arg())
	case "--format":
		b.format = o.arg()
	case "--sort":
		b.sort = o.arg()
	default:
		return false
	}
	return true
}

// passes reports whether a commit is among those that the filters want.
func (r *repo) passes(b *branchOptions, id oid) bool {
	for _, s := range b.pointsAt {
		if r.commitRev(s) != id {
			return false
		}
	}
	anyOf := func(list []string, f func(c oid) bool) bool {
		for _, s := range list {
			c, err := r.commitOf(s)
			if err != nil {
				if _, e := r.rev(s); e == nil {
					r.say("error: no such commit %s", s)
				}
				r.die(129, "error: malformed object name %s", s)
			}
			if f(c) {
				return true
			}
		}
		return false
	}
	return (len(b.contains) == 0 || anyOf(b.contains, func(c oid) bool { return r.isAncestor(c, id) })) &&
		!anyOf(b.noContains, func(c oid) bool { return r.isAncestor(c, id) }) &&
		(len(b.merged) == 0 || anyOf(b.merged, func(c oid) bool { return r.isAncestor(id, c) })) &&
		!anyOf(b.noMerged, func(c oid) bool { return r.isAncestor(id, c) })
}

func (r *repo) listBranches(b *branchOptions, patterns []string) int {
	type line struct {
		name, full, target string
		id                 oid
		current            bool
	}
	var list []line
	cur, head := r.head()
	match := func(s string) bool {
		for _, p := range patterns {
			if wildmatch(p, s, b.fold) {
				return true
			}
		}
		return len(patterns) == 0
	}
	if cur == "" && !head.isZero() && !b.remotes && match("HEAD") && r.passes(b, head) {
		list = append(list, line{name: r.detachedName(), full: "HEAD", id: head, current: true})
	}
	sortKey := b.sort
	if sortKey == "" {
		sortKey, _ = r.config().get("branch.sort")
	}
	for _, prefix := range []string{"refs/heads/", "refs/remotes/"} {
		if b.remotes && prefix == "refs/heads/" || !b.remotes && !b.all && prefix == "refs/remotes/" {
			continue
		}
		refs := r.refs(prefix)
		r.sortRefs(refs, sortKey)
		for _, f := range refs {
			name := strings.TrimPrefix(f.name, prefix)
			if !match(name) || !r.passes(b, f.id) {
				continue
			}
			if b.all && prefix == "refs/remotes/" {
				name = "remotes/" + name
			}
			l := line{name: name, full: f.name, id: f.id, current: f.name == cur}
			if t, _, ok := r.readRef(f.name); ok && t != "" {
				l.target = shortRef(t)
			}
			list = append(list, l)
		}
	}
	if b.format != "" {
		for _, l := range list {
			r.printf("%s\n", r.refFormat(b.format, ref{l.full, l.id}))
		}
		return 0
	}
	width := 0
	for _, l := range list {
		width = max(width, displayWidth(l.name))
	}
	for _, l := range list {
		mark := "  "
		if l.current {
			mark = "* "
		} else if r.inOtherTree(l.full) {
			mark = "+ "
		}
		switch {
		case b.verbose > 0 && l.target != "":
			r.printf("%s%s%s -> %s\n", mark, l.name, strings.Repeat(" ", width-displayWidth(l.name)), l.target)
		case b.verbose > 0:
			r.printf("%s%s%s %s %s%s\n", mark, l.name, strings.Repeat(" ", width-displayWidth(l.name)), b.hash(r, l.id), r.trackBrief(l.full, l.id, b.verbose), r.readCommit(l.id).subject())
		case l.target != "":
			r.printf("%s%s -> %s\n", mark, l.name, l.target)
		default:
			r.printf("%s%s\n", mark, l.name)
		}
	}
	return 0
}

// treeWith is the other work tree that has a branch checked out, "" if none has.
func (r *repo) treeWith(full string) string {
	for _, w := range r.otherTrees() {
		if w.branch == full {
			return w.path
		}
	}
	return ""
}

// inOtherTree reports whether another work tree has the branch checked out.
func (r *repo) inOtherTree(full string) bool {
	for _, w := range r.otherTrees() {
		if w.branch == full {
			return true
		}
	}
	return false
}

// detachedName is how a list of branches calls a detached HEAD.
func (r *repo) detachedName() string {
	if on := r.rebaseBranch(); on != "" {
		return "(no branch, rebasing " + on + ")"
	}
	_, head := r.head()
	s := r.detachedLine(head)
	if s == "Not currently on any branch." {
		return "(no branch)"
	}
	return "(" + s + ")"
}

// trackBrief is "[origin/main: ahead 1] " of branch -vv, without the name for -v.
func (r *repo) trackBrief(full string, id oid, verbose int) string {
	up := r.upstream(full)
	if up == "" {
		return ""
	}
	_, other, ok := r.resolveRef(up)
	what := ""
	if !ok {
		what = "gone"
	} else {
		switch a, b := r.aheadBehind(id, other); {
		case a > 0 && b > 0:
			what = fmt.Sprintf("ahead %d, behind %d", a, b)
		case a > 0:
			what = fmt.Sprintf("ahead %d", a)
		case b > 0:
			what = fmt.Sprintf("behind %d", b)
		}
	}
	if verbose > 1 {
		if what != "" {
			what = ": " + what
		}
		return "[" + shortRef(up) + what + "] "
	}
	if what == "" {
		return ""
	}
	return "[" + what + "] "
}

// createBranch makes a branch at a revision.
func (r *repo) createBranch(name, start string, force bool, track string, quiet bool) oid {
	name = r.branchArg(name)
	if !validBranch(name) {
		r.fatal("'%s' is not a valid branch name", name)
	}
	full := "refs/heads/" + name
	_, _, exists := r.resolveRef(full)
	cur, _ := r.head()
	if exists && !force {
		r.fatal("a branch named '%s' already exists", name)
	}
	if exists && cur == full && !r.bare {
		r.fatal("cannot force update the branch '%s' checked out at '%s'", name, strings.TrimSuffix(r.root, "/."))
	}
	id, err := r.commitOf(start)
	if err != nil {
		if start == "HEAD" {
			r.fatal("not a valid object name: '%s'", shortRef(s2(cur, "HEAD")))
		}
		if raw, e := r.rev(start); e == nil {
			if k, _, e := r.readObject(raw); e == nil && k != commitObj {
				r.say("error: object %s is a %s, not a commit", raw, k)
			}
			r.fatal("not a valid branch point: '%s'", start)
		}
		r.fatal("not a valid object name: '%s'", start)
	}
	r.checkRefSpace(full)
	from := start
	if f, _, ok := r.expandRef(start); ok && f == "HEAD" && start == "HEAD" && cur != "" {
		from = "HEAD"
	}
	what := "branch: Created from " + from
	if exists {
		what = "branch: Reset to " + from
	}
	r.updateRef(full, id, what)
	r.setTracking(name, start, track, quiet)
	return id
}

// checkRefSpace ends the command if a reference would be a folder of another or the other way round.
func (r *repo) checkRefSpace(full string) {
	for _, f := range r.refs("refs/") {
		if strings.HasPrefix(f.name, full+"/") || strings.HasPrefix(full, f.name+"/") {
			r.fatal("cannot lock ref '%s': '%s' exists; cannot create '%s'", full, f.name, full)
		}
	}
}

// branchArg expands @{-1} in a branch's name.
func (r *repo) branchArg(name string) string {
	if name == "-" {
		name = "@{-1}"
	}
	if n, ok := strings.CutPrefix(name, "@{-"); ok && strings.HasSuffix(n, "}") {
		k := 0
		fmt.Sscanf(n, "%d}", &k)
		if b := r.previousBranch(k); b != "" {
			return b
		}
	}
	return name
}

// setTracking notes a new branch's upstream where git would.
func (r *repo) setTracking(name, start, track string, quiet bool) {
	if track == "no" {
		return
	}
	full, _, ok := r.expandRef(start)
	if !ok {
		if track != "" {
			r.fatal("cannot set up tracking information; starting point '%s' is not a branch", start)
		}
		return
	}
	auto, has := r.config().get("branch.autosetupmerge")
	if track == "" {
		if has && auto == "false" || auto != "always" && !strings.HasPrefix(full, "refs/remotes/") {
			return
		}
	}
	remote, merge := r.remoteOf(full)
	if remote == "" {
		if !strings.HasPrefix(full, "refs/heads/") {
			if track != "" {
				r.fatal("cannot set up tracking information; starting point '%s' is not a branch", start)
			}
			return
		}
		remote, merge = ".", full
	}
	r.writeTracking(name, remote, merge)
	if !quiet {
		r.printf("branch '%s' set up to track '%s'.\n", name, shortRef(full))
	}
}

func (r *repo) writeTracking(name, remote, merge string) {
	r.setConfig(r.common+"/config", "branch."+name+".remote", &remote)
	r.setConfig(r.common+"/config", "branch."+name+".merge", &merge)
	if v, ok := r.config().get("branch.autosetuprebase"); ok && (v == "always" || v == "remote" && remote != ".") {
		yes := "true"
		r.setConfig(r.common+"/config", "branch."+name+".rebase", &yes)
	}
}

// remoteOf finds the remote and its branch that a remote-tracking reference stands for.
func (r *repo) remoteOf(full string) (remote, branch string) {
	for _, name := range r.remotes() {
		for _, spec := range r.config().all("remote." + name + ".fetch") {
			src, dst, ok := strings.Cut(strings.TrimPrefix(spec, "+"), ":")
			if !ok {
				continue
			}
			if b, ok := mapRef(dst+":"+src, full); ok {
				return name, b
			}
		}
	}
	return "", ""
}

func (r *repo) setUpstream(up string, rest []string) int {
	cur, _ := r.head()
	if len(rest) > 0 {
		cur = "refs/heads/" + r.branchArg(rest[0])
	}
	name := shortRef(cur)
	if cur == "" {
		r.fatal("could not set upstream of HEAD to %s when it does not point to any branch.", up)
	}
	if _, _, ok := r.resolveRef(cur); !ok {
		if len(rest) > 0 {
			r.fatal("branch '%s' does not exist", name)
		}
		r.fatal("no commit on branch '%s' yet", name)
	}
	full, _, ok := r.expandRef(up)
	if !ok || !strings.HasPrefix(full, "refs/remotes/") && !strings.HasPrefix(full, "refs/heads/") {
		if ok {
			r.fatal("cannot set up tracking information; starting point '%s' is not a branch", up)
		}
		r.say("fatal: the requested upstream branch '%s' does not exist\nhint: \nhint: If you are planning on basing your work on an upstream\nhint: branch that already exists at the remote, you may need to\nhint: run \"git fetch\" to retrieve it.\nhint: \nhint: If you are planning to push out a new local branch that\nhint: will track its remote counterpart, you may want to use\nhint: \"git push -u\" to set the upstream config as you push.\nhint: Disable this message with \"git config advice.setUpstreamFailure false\"", up)
		r.t.Exit(128)
	}
	if full == cur {
		r.say("warning: not setting branch '%s' as its own upstream", name)
		return 0
	}
	remote, merge := r.remoteOf(full)
	if remote == "" {
		remote, merge = ".", full
	}
	r.writeTracking(name, remote, merge)
	r.printf("branch '%s' set up to track '%s'.\n", name, shortRef(full))
	return 0
}

func (r *repo) unsetUpstream(rest []string) int {
	cur, _ := r.head()
	if len(rest) > 0 {
		cur = "refs/heads/" + rest[0]
	}
	name := shortRef(cur)
	if !r.config().has("branch." + name + ".merge") {
		r.fatal("Branch '%s' has no upstream information", name)
	}
	r.setConfig(r.common+"/config", "branch."+name+".remote", nil)
	r.setConfig(r.common+"/config", "branch."+name+".merge", nil)
	return 0
}

func (r *repo) deleteBranches(b *branchOptions, names []string) int {
	if len(names) == 0 {
		r.fatal("branch name required")
	}
	status := 0
	cur, head := r.head()
	for _, name := range names {
		prefix, kind := "refs/heads/", "branch"
		if b.remotes {
			prefix, kind = "refs/remotes/", "remote-tracking branch"
		} else {
			name = r.branchArg(name)
		}
		full := prefix + name
		target, id, ok := r.readRef(full)
		switch {
		case !ok:
			r.say("error: %s '%s' not found.", kind, name)
			status = 1
			continue
		case !b.remotes && r.treeWith(full) != "" && full != cur:
			r.say("error: Cannot delete branch '%s' checked out at '%s'", name, r.treeWith(full))
			status = 1
			continue
		case full == cur && !r.bare:
			r.say("error: Cannot delete branch '%s' checked out at '%s'", name, strings.TrimSuffix(r.root, "/."))
			status = 1
			continue
		}
		if !b.remotes && !b.forceDelete && !b.force && target == "" {
			into := head
			if up := r.upstream(full); up != "" {
				if _, u, ok := r.resolveRef(up); ok {
					into = u
				}
			}
			if into.isZero() || !r.isAncestor(id, into) {
				r.say("error: The branch '%s' is not fully merged.\nIf you are sure you want to delete it, run 'git branch -D %s'.", name, name)
				status = 1
				continue
			}
		}
		r.deleteRef(full)
		shown := r.abbrev(id)
		if target != "" {
			shown = target
		}
		if !b.quiet {
			r.printf("Deleted %s %s (was %s).\n", kind, name, shown)
		}
		if !b.remotes {
			r.removeSection(r.common+"/config", "branch."+name)
		}
	}
	return status
}

func (r *repo) moveBranch(b *branchOptions, rest []string) int {
	cur, head := r.head()
	from := cur
	verb := "renam"
	if b.copy {
		verb = "copi"
	}
	_ = verb
	var to string
	switch len(rest) {
	case 1:
		if cur == "" {
			r.fatal("cannot %s the current branch while not on any.", map[bool]string{true: "copy", false: "rename"}[b.copy])
		}
		to = rest[0]
	case 2:
		from, to = "refs/heads/"+r.branchArg(rest[0]), rest[1]
	case 0:
		r.fatal("branch name required")
	default:
		r.fatal("too many arguments for a %s operation", map[bool]string{true: "copy", false: "rename"}[b.copy])
	}
	if !validBranch(to) {
		r.fatal("'%s' is not a valid branch name", to)
	}
	full := "refs/heads/" + to
	_, id, ok := r.resolveRef(from)
	if !ok && !(from == cur && head.isZero() && !b.copy) {
		r.fatal("No branch named '%s'.", shortRef(from))
	}
	if _, _, exists := r.resolveRef(full); exists && !b.force && full != from {
		r.fatal("a branch named '%s' already exists", to)
	}
	if !ok {
		r.setHead(full, oid{}, "")
		return 0
	}
	if full == from {
		return 0
	}
	log, _ := r.t.ReadFile(r.common+"/logs/"+from, maxIndexFile)
	if !b.copy {
		r.deleteRef(from)
	}
	r.checkRefSpace(full)
	r.setRef(full, id)
	r.mkdirAll(path.Dir(r.common + "/logs/" + full))
	r.must(r.overwrite(r.common+"/logs/"+full, string(log)))
	if b.copy {
		r.logRef(full, id, id, fmt.Sprintf("Branch: copied %s to %s", from, full))
	} else {
		r.logRef(full, id, id, fmt.Sprintf("Branch: renamed %s to %s", from, full))
		if from == cur {
			r.must(r.writeFile(r.dir+"/HEAD", []byte("ref: "+full+"\n"), 0o666))
			r.logRef("HEAD", id, oid{}, fmt.Sprintf("Branch: renamed %s to %s", from, full))
			r.logRef("HEAD", oid{}, id, fmt.Sprintf("Branch: renamed %s to %s", from, full))
		}
		r.renameSection("branch."+shortRef(from), "branch."+to)
	}
	return 0
}

// renameSection moves the settings of a section of the repository's configuration.
func (r *repo) renameSection(from, to string) bool {
	file := r.common + "/config"
	b, _ := r.t.ReadFile(file, maxSmall)
	lines := strings.SplitAfter(string(b), "\n")
	found := false
	for i, line := range lines {
		t := strings.TrimSpace(line)
		if end := strings.LastIndexByte(t, ']'); strings.HasPrefix(t, "[") && end > 0 && parseSection(t[1:end]) == from {
			lines[i], found = formatSection(to), true
		}
	}
	if found {
		r.must(r.writeFile(file, []byte(strings.Join(lines, "")), 0o666))
		r.conf = nil
	}
	return found
}

// sortRefs sorts by a key such as -committerdate or version:refname.
func (r *repo) sortRefs(refs []ref, key string) {
	if key == "" {
		return
	}
	key, desc := strings.CutPrefix(key, "-")
	less := func(a, b ref) int {
		switch key {
		case "version:refname", "v:refname":
			return compareVersions(a.name, b.name)
		case "refname":
			return strings.Compare(a.name, b.name)
		}
		x, y := r.refField(a, strings.TrimSuffix(key, ":raw")), r.refField(b, strings.TrimSuffix(key, ":raw"))
		if strings.HasSuffix(key, "date") {
			p, q := r.refDate(a, key), r.refDate(b, key)
			return int(min(max(p-q, -1), 1))
		}
		return strings.Compare(x, y)
	}
	sort.SliceStable(refs, func(i, j int) bool {
		c := less(refs[i], refs[j])
		if desc {
			c = -c
		}
		return c < 0
	})
}

// compareVersions compares texts with numbers in them by the numbers.
func compareVersions(a, b string) int {
	for a != "" && b != "" {
		na, nb := digits(a), digits(b)
		if na > 0 && nb > 0 {
			x, y := strings.TrimLeft(a[:na], "0"), strings.TrimLeft(b[:nb], "0")
			if len(x) != len(y) {
				return len(x) - len(y)
			}
			if x != y {
				return strings.Compare(x, y)
			}
			a, b = a[na:], b[nb:]
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// hash is a commit's name in a list of branches.
func (b *branchOptions) hash(r *repo, id oid) string {
	if b.whole {
		return id.String()
	}
	return r.abbrev(id)
}
