package git

import (
	"sort"
	"strings"
)

// checkoutPaths takes files from the index or a tree into the work tree.
func (r *repo) checkoutPaths(s *switchOptions, target string, paths []string) int {
	spec := r.pathspec(paths)
	if s.source != "" {
		target = s.source
	}
	if target != "" && (s.ours || s.theirs) {
		r.fatal("'%s' cannot be used with updating paths", "--ours/--theirs")
	}
	if target != "" {
		tree := r.treeRev(undash(target))
		n := r.restoreFrom(tree, spec, paths, true, true, s.overlay)
		r.writeIndex()
		if !s.quiet && s.verb == "checkout" && !s.dash {
			r.say("Updated %s from %s", plural(n, "path", "paths"), r.abbrev(tree))
		}
		return 0
	}
	x := r.index()
	r.wantMatches(spec, paths, func(p string) bool { return r.anyTracked(&pathspec{items: []specItem{{path: p}}}) }, nil)
	count, status, merged := 0, 0, 0
	todo := map[string][]entry{}
	var order []string
	for _, e := range x.entries {
		if spec.match(e.path) {
			if todo[e.path] == nil {
				order = append(order, e.path)
			}
			todo[e.path] = append(todo[e.path], e)
		}
	}
	for _, p := range order {
		if list := todo[p]; list[0].stage() > 0 && !s.ours && !s.theirs && !s.merge && !s.force {
			r.say("error: path '%s' is unmerged", p)
			status = 1
		}
	}
	if status != 0 {
		return status
	}
	for _, p := range order {
		switch list := todo[p]; {
		case list[0].stage() == 0:
			if _, differs := r.workChange(&list[0]); differs {
				r.checkOut(treeEntry{list[0].mode, p, list[0].id})
				count++
			}
		case s.merge:
			r.remerge(p, list)
			merged++
		case s.ours || s.theirs:
			if r.checkoutStage(p, list, s.ours) {
				count++
			} else {
				status = 1
			}
		}
	}
	r.writeIndex()
	if !s.quiet && s.verb == "checkout" && !s.dash {
		if merged > 0 {
			r.say("Recreated %s", plural(merged, "merge conflict", "merge conflicts"))
		} else if status == 0 {
			r.say("Updated %s from the index", plural(count, "path", "paths"))
		}
	}
	return status
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return itoa(n) + " " + many
}

// checkoutStage writes one side of a conflict into the work tree.
func (r *repo) checkoutStage(p string, list []entry, ours bool) bool {
	want, name := 3, "their"
	if ours {
		want, name = 2, "our"
	}
	for _, e := range list {
		if e.stage() == want {
			if _, err := r.writeWork(p, e.mode, r.read(e.id, blobObj)); err != nil {
				r.say("error: unable to create file %s: %s", p, strerror(err))
				return false
			}
			return true
		}
	}
	r.say("error: path '%s' does not have %s version", p, name)
	return false
}

// remerge writes a conflict with its markers again.
func (r *repo) remerge(p string, list []entry) {
	var data [4][]byte
	mode := uint32(modeFile)
	for _, e := range list {
		data[e.stage()] = r.read(e.id, blobObj)
		if e.stage() == 2 {
			mode = e.mode
		}
	}
	style, _ := r.config().get("merge.conflictstyle")
	out, _ := merge3(data[1], data[2], data[3], [3]string{"ours", "theirs", "base"}, style == "diff3" || style == "zdiff3", "", r.step)
	if _, err := r.writeWork(p, mode, out); err != nil {
		r.say("error: unable to create file %s: %s", p, strerror(err))
	}
}

// wantMatches ends the command unless each argument matches something.
func (r *repo) wantMatches(spec *pathspec, args []string, tracked func(string) bool, also flat) {
	bad := false
	for i := range spec.items {
		it := &spec.items[i]
		if it.exclude || it.path == "" && (len(r.index().entries) > 0 || len(also) > 0) {
			continue
		}
		one := &pathspec{items: spec.items[i : i+1]}
		found := r.anyTracked(one)
		for p := range also {
			found = found || one.match(p)
		}
		if !found {
			r.say("error: pathspec '%s' did not match any file(s) known to git", args[i])
			bad = true
		}
	}
	if bad {
		r.t.Exit(1)
	}
}

// restoreFrom makes paths what a tree has, in the index, the work tree or both. It returns how many changed.
func (r *repo) restoreFrom(tree oid, spec *pathspec, args []string, index, work, remove bool) int {
	from := r.flatten(tree)
	x := r.index()
	count := 0
	if remove {
		r.wantMatches(spec, args, nil, from)
	} else {
		for i := range spec.items {
			one := &pathspec{items: spec.items[i : i+1]}
			found := spec.items[i].path == "" || spec.items[i].exclude
			for p := range from {
				found = found || one.match(p)
			}
			if !found {
				r.die(1, "error: pathspec '%s' did not match any file(s) known to git", args[i])
			}
		}
	}
	for _, p := range from.paths() {
		if !spec.match(p) {
			continue
		}
		want := from[p]
		e := x.find(p)
		same := e != nil && e.id == want.id && e.mode == want.mode
		switch {
		case index && work:
			differs := true
			if same {
				_, differs = r.workChange(e)
			}
			if differs {
				r.checkOut(want)
				count++
			}
		case index:
			if !same {
				x.put(entry{mode: want.mode, id: want.id, path: p})
				count++
			}
		case work:
			if _, err := r.writeWork(p, want.mode, r.blobOf(want)); err != nil {
				r.say("error: unable to create file %s: %s", p, strerror(err))
			}
			count++
		}
	}
	if !remove {
		return count
	}
	for _, e := range append([]entry(nil), x.entries...) {
		if _, ok := from[e.path]; ok || !spec.match(e.path) {
			continue
		}
		if work {
			r.removeWork(e.path)
		}
		if index {
			x.remove(e.path)
		}
		count++
	}
	return count
}

func (r *repo) blobOf(e treeEntry) []byte {
	if e.mode == modeGitlink {
		return nil
	}
	return r.read(e.id, blobObj)
}

func (r *repo) cmdRestore(args []string) int {
	r.needTree()
	s := switchOptions{verb: "restore"}
	o := r.options("restore", args)
	specFile := ""
	for o.next() {
		switch o.name {
		case "-s", "--source":
			s.source = o.arg()
		case "-S", "--staged":
			s.staged = true
		case "-W", "--worktree":
			s.wtree = true
		case "--pathspec-from-file":
			specFile = o.arg()
		default:
			if !s.option(o) {
				o.unknown()
			}
		}
	}
	paths := o.operands()
	if specFile != "" {
		paths = append(paths, r.fileLines(specFile)...)
	}
	if len(paths) == 0 {
		r.fatal("you must specify path(s) to restore")
	}
	if !s.staged && s.source == "" {
		return r.checkoutPaths(&s, "", paths)
	}
	if !s.staged {
		s.wtree = true
	}
	spec := r.pathspec(paths)
	tree := emptyTree
	if s.source != "" {
		id, err := r.rev(s.source)
		if err == nil {
			id, err = r.peel(id, treeObj)
		}
		if err != nil {
			r.fatal("could not resolve %s", s.source)
		}
		tree = id
	} else if _, head := r.head(); !head.isZero() {
		tree = r.readCommit(head).tree
	} else {
		r.fatal("could not resolve HEAD")
	}
	r.restoreFrom(tree, spec, paths, s.staged, s.wtree, true)
	r.writeIndex()
	return 0
}

func (r *repo) cmdReset(args []string) int {
	mode, quiet := "", false
	intent := false
	o := r.options("reset", args)
	specFile := ""
	for o.next() {
		switch o.name {
		case "--soft", "--mixed", "--hard", "--merge", "--keep":
			mode = o.name[2:]
		case "-q", "--quiet":
			quiet = true
		case "--no-quiet":
			quiet = false
		case "-N", "--intent-to-add":
			intent = true
		case "-p", "--patch":
			r.fatal("%s needs a person at a terminal: it isn't done here", o.name)
		case "--pathspec-from-file":
			specFile = o.arg()
		case "--refresh", "--no-refresh", "--no-recurse-submodules", "--recurse-submodules":
		default:
			o.unknown()
		}
	}
	rev, paths := "HEAD", o.after
	switch {
	case len(o.rest) > 0 && o.dash:
		rev = o.rest[0]
		paths = append(o.rest[1:len(o.rest):len(o.rest)], o.after...)
	case len(o.rest) > 0:
		rev, paths = r.resetArgs(o.rest)
	}
	if specFile != "" {
		paths = append(paths, r.fileLines(specFile)...)
	}
	_ = intent
	if len(paths) > 0 {
		if mode != "" && mode != "mixed" {
			r.fatal("Cannot do %s reset with paths.", mode)
		}
		if mode == "mixed" {
			r.say("warning: --mixed with paths is deprecated; use 'git reset -- <paths>' instead.")
		}
		return r.resetPaths(rev, paths, quiet)
	}
	return r.resetTo(rev, s2(mode, "mixed"), quiet)
}

func (r *repo) resetArgs(rest []string) (string, []string) {
	if _, err := r.rev(undash(rest[0])); err == nil {
		if r.root != "" && r.pathExists(rest[0]) && len(rest) == 1 {
			r.fatal("ambiguous argument '%s': both revision and filename\nUse '--' to separate paths from revisions, like this:\n'git <command> [<revision>...] -- [<file>...]'", rest[0])
		}
		return undash(rest[0]), rest[1:]
	}
	for _, p := range rest {
		if !r.pathExists(p) && !strings.ContainsAny(p, "*?[:") {
			r.fatal("ambiguous argument '%s': unknown revision or path not in the working tree.\nUse '--' to separate paths from revisions, like this:\n'git <command> [<revision>...] -- [<file>...]'", p)
		}
	}
	return "HEAD", rest
}

func (r *repo) resetPaths(rev string, paths []string, quiet bool) int {
	r.needTree()
	tree := emptyTree
	_, head := r.head()
	if rev != "HEAD" || !head.isZero() {
		tree = r.treeRev(rev)
	}
	r.resetIndex(tree, r.pathspec(paths).match)
	r.unstagedAfter(quiet)
	r.writeIndex()
	return 0
}

// unstagedAfter lists what is left in the work tree after a reset.
func (r *repo) unstagedAfter(quiet bool) {
	list := r.workChanges(nil)
	if quiet || len(list) == 0 {
		return
	}
	r.printf("Unstaged changes after reset:\n")
	for _, c := range list {
		r.printf("%c\t%s\n", c.status, r.quote(c.path()))
	}
}

func (r *repo) resetTo(rev, mode string, quiet bool) int {
	if r.bare && mode != "soft" {
		r.fatal("%s reset is not allowed in a bare repository", mode)
	}
	_, head := r.head()
	if rev == "HEAD" && head.isZero() {
		if mode != "soft" {
			if mode == "hard" {
				r.resetHard(emptyTree)
			} else {
				r.resetIndex(emptyTree, nil)
			}
			r.writeIndex()
		}
		return 0
	}
	id, err := r.rev(rev)
	if err != nil {
		r.fatal("Failed to resolve '%s' as a valid revision.", rev)
	}
	if id, err = r.peel(id, commitObj); err != nil {
		r.fatal("Could not parse object '%s'.", rev)
	}
	tree := r.readCommit(id).tree
	if mode == "soft" && (r.gitFileExists("MERGE_HEAD") || r.index().unmerged()) {
		r.fatal("Cannot do a soft reset in the middle of a merge.")
	}
	switch mode {
	case "hard":
		r.resetHard(tree)
	case "mixed":
		r.resetIndex(tree, nil)
	case "keep", "merge":
		r.resetKeep(mode, head, tree)
	}
	if mode != "soft" {
		r.writeIndex()
	}
	if !head.isZero() {
		r.must(r.writeFile(r.dir+"/ORIG_HEAD", []byte(head.String()+"\n"), 0o666))
	}
	r.updateRef("HEAD", id, "reset: moving to "+rev)
	for _, f := range []string{"MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD", "REVERT_HEAD", "SQUASH_MSG", "AUTO_MERGE"} {
		if mode != "soft" {
			r.t.Unlink(r.dir + "/" + f)
		}
	}
	switch {
	case mode == "hard" && !quiet:
		r.printf("HEAD is now at %s %s\n", r.abbrev(id), r.readCommit(id).subject())
	case mode == "mixed" && !r.bare:
		r.unstagedAfter(quiet)
		r.writeIndexQuietly()
	}
	return 0
}

// resetKeep goes to a tree without losing local changes.
func (r *repo) resetKeep(mode string, head, tree oid) {
	from := flat{}
	if !head.isZero() {
		from = r.flatten(r.readCommit(head).tree)
	}
	to := r.flatten(tree)
	if mode == "merge" {
		// Conflicts and what is staged go back; what is only in the work tree stays.
		local := map[string]bool{}
		for _, c := range r.workChanges(nil) {
			if c.status != 'U' {
				local[c.path()] = true
			}
		}
		staged := r.flatIndex()
		for _, p := range r.allPaths(from, staged, to) {
			e, ok := staged[p]
			want, has := to[p]
			if ok && has && e.id == want.id && e.mode == want.mode {
				continue
			}
			if local[p] {
				r.say("error: Entry '%s' not uptodate. Cannot merge.", p)
				r.fatal("Could not reset index file to revision '%s'.", tree)
			}
			if has {
				r.checkOut(want)
			} else {
				r.index().remove(p)
				r.removeWork(p)
			}
		}
		return
	}
	changed, inWay := r.conflictsOf(from, to)
	if n := append(changed, inWay...); len(n) > 0 {
		sort.Strings(n)
		r.say("error: Entry '%s' not uptodate. Cannot merge.", n[0])
		r.fatal("Could not reset index file to revision '%s'.", tree)
	}
	r.goTo(from, to)
	r.resetIndex(tree, nil)
}

// allPaths are the paths of several lists together, and those with conflicts.
func (r *repo) allPaths(lists ...flat) []string {
	set := flat{}
	for _, l := range lists {
		for p, e := range l {
			set[p] = e
		}
	}
	for _, e := range r.index().entries {
		set[e.path] = treeEntry{}
	}
	return set.paths()
}
