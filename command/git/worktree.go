package git

import (
	"path"
	"sort"
	"strings"
)

func (r *repo) cmdWorktree(args []string) int {
	if len(args) == 0 {
		r.die(129, "usage: git worktree add [<options>] <path> [<commit-ish>]\n")
	}
	verb, rest := args[0], args[1:]
	switch verb {
	case "add":
		return r.worktreeAdd(rest)
	case "list":
		return r.worktreeList(rest)
	case "remove":
		return r.worktreeRemove(rest)
	case "prune":
		for _, w := range r.trees() {
			if _, err := r.t.Stat(w.path); w.name != "" && err != nil {
				r.removeAll(r.common + "/worktrees/" + w.name)
			}
		}
		return 0
	case "move", "lock", "unlock", "repair":
		r.fatal("worktree %s isn't done here", verb)
	}
	r.die(129, "error: unknown subcommand: `%s'\nusage: git worktree add [<options>] <path> [<commit-ish>]\n", verb)
	return 129
}

// treeInfo is one work tree of a repository; the main one has no name.
type treeInfo struct {
	name, path, branch string
	head               oid
	bare               bool
}

// trees lists all work trees, the main one first.
func (r *repo) trees() []treeInfo {
	main := &repo{t: r.t, dir: r.common, common: r.common}
	w := treeInfo{path: path.Dir(r.common), bare: main.config().bool("core.bare", false)}
	if w.bare {
		w.path = r.common
	}
	w.branch, w.head = main.head()
	list := []treeInfo{w}
	entries, _ := r.t.ReadDir(r.common + "/worktrees")
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name < entries[j].Name })
	for _, e := range entries {
		dir := r.common + "/worktrees/" + e.Name
		link, err := r.t.ReadFile(dir+"/gitdir", maxSmall)
		if err != nil {
			continue
		}
		o := &repo{t: r.t, dir: dir, common: r.common}
		x := treeInfo{name: e.Name, path: path.Dir(strings.TrimSpace(string(link)))}
		x.branch, x.head = o.head()
		list = append(list, x)
	}
	return list
}

func (r *repo) worktreeAdd(args []string) int {
	branch, force, detach, noCheckout, quiet, reset := "", false, false, false, false, false
	o := r.options("worktree add", args)
	for o.next() {
		switch o.name {
		case "-b":
			branch = o.arg()
		case "-B":
			branch, reset = o.arg(), true
		case "-f", "--force":
			force = true
		case "-d", "--detach":
			detach = true
		case "--no-checkout":
			noCheckout = true
		case "-q", "--quiet":
			quiet = true
		case "--checkout", "--guess-remote", "--no-guess-remote", "--track", "--no-track", "--lock":
		default:
			o.unknown()
		}
	}
	rest := o.operands()
	if len(rest) == 0 || len(rest) > 2 {
		r.die(129, "usage: git worktree add [<options>] <path> [<commit-ish>]\n")
	}
	dir, start := r.abs(rest[0]), "HEAD"
	if list, err := r.t.ReadDir(dir); err == nil && len(list) > 0 {
		r.fatal("'%s' already exists", rest[0])
	}
	existing := ""
	switch {
	case len(rest) == 2:
		start = undash(rest[1])
		name := r.branchArg(start)
		if _, _, ok := r.resolveRef("refs/heads/" + name); ok && !detach && branch == "" {
			existing = name
		} else if g, _, ok := r.guess(name); ok && !detach && branch == "" {
			if _, err := r.commitOf(name); err != nil {
				branch, start = name, g
			}
		}
	case branch == "" && !detach:
		if branch = path.Base(dir); true {
			if _, _, ok := r.resolveRef("refs/heads/" + branch); ok {
				existing, start, branch = branch, branch, ""
			}
		}
	}
	id, err := r.commitOf(start)
	if err != nil {
		r.fatal("invalid reference: %s", start)
	}
	full := ""
	if existing != "" {
		full = "refs/heads/" + existing
	}
	switch {
	case branch != "":
		if !quiet {
			r.say("Preparing worktree (new branch '%s')", branch)
		}
		r.createBranch(branch, start, reset, "", quiet)
		full = "refs/heads/" + branch
	case existing != "":
		if !quiet {
			r.say("Preparing worktree (checking out '%s')", existing)
		}
		for _, w := range r.trees() {
			if w.branch == full && !force {
				r.fatal("'%s' is already checked out at '%s'", existing, w.path)
			}
		}
	default:
		if !quiet {
			r.say("Preparing worktree (detached HEAD %s)", r.abbrev(id))
		}
	}
	return r.worktreeMake(dir, full, id, noCheckout, quiet)
}

// worktreeMake makes the files of a linked work tree.
func (r *repo) worktreeMake(dir, branch string, id oid, noCheckout, quiet bool) int {
	name := path.Base(dir)
	for n := 1; ; n++ {
		if _, err := r.t.Lstat(r.common + "/worktrees/" + name); err != nil {
			break
		}
		name = path.Base(dir) + itoa(n)
	}
	git := r.common + "/worktrees/" + name
	r.must(r.mkdirAll(git))
	r.must(r.mkdirAll(dir))
	put := func(f, text string) { r.must(r.overwrite(f, text)) }
	put(dir+"/.git", "gitdir: "+git+"\n")
	put(git+"/gitdir", dir+"/.git\n")
	put(git+"/commondir", "../..\n")
	put(git+"/ORIG_HEAD", id.String()+"\n")
	head := id.String() + "\n"
	if branch != "" {
		head = "ref: " + branch + "\n"
	}
	put(git+"/HEAD", head)
	w := &repo{t: r.t, dir: git, common: r.common, root: dir, overrides: r.overrides}
	w.logRef("HEAD", oid{}, id, "")
	r.must(w.mkdirAll(git + "/logs"))
	w.logRef("HEAD", oid{}, id, "reset: moving to HEAD")
	if !noCheckout {
		w.goTo(flat{}, w.flatten(w.readCommit(id).tree))
		w.writeIndex()
	}
	if !quiet {
		r.printf("HEAD is now at %s %s\n", r.abbrev(id), r.readCommit(id).subject())
	}
	return 0
}

func (r *repo) worktreeList(args []string) int {
	porcelain := false
	o := r.options("worktree list", args)
	for o.next() {
		switch o.name {
		case "--porcelain":
			porcelain = true
		case "-v", "--verbose", "--expire", "-z":
		default:
			o.unknown()
		}
	}
	list := r.trees()
	width := 0
	for _, w := range list {
		width = max(width, displayWidth(w.path))
	}
	for _, w := range list {
		if porcelain {
			r.printf("worktree %s\n", w.path)
			switch {
			case w.bare:
				r.printf("bare\n")
			case w.branch != "":
				r.printf("HEAD %s\nbranch %s\n", w.head, w.branch)
			default:
				r.printf("HEAD %s\ndetached\n", w.head)
			}
			r.printf("\n")
			continue
		}
		r.printf("%s%s ", w.path, strings.Repeat(" ", width-displayWidth(w.path)))
		switch {
		case w.bare:
			r.printf(" (bare)\n")
		case w.branch != "":
			r.printf(" %s [%s]\n", r.abbrev(w.head), shortRef(w.branch))
		default:
			r.printf(" %s (detached HEAD)\n", r.abbrev(w.head))
		}
	}
	return 0
}

func (r *repo) worktreeRemove(args []string) int {
	force := false
	o := r.options("worktree remove", args)
	for o.next() {
		switch o.name {
		case "-f", "--force":
			force = true
		default:
			o.unknown()
		}
	}
	rest := o.operands()
	if len(rest) != 1 {
		r.die(129, "usage: git worktree remove [-f] <worktree>\n")
	}
	dir := r.abs(rest[0])
	for _, w := range r.trees() {
		if w.path != dir && path.Base(w.path) != rest[0] {
			continue
		}
		if w.name == "" {
			r.fatal("'%s' is a main working tree", rest[0])
		}
		x := &repo{t: r.t, dir: r.common + "/worktrees/" + w.name, common: r.common, root: w.path}
		if _, err := r.t.Stat(w.path); err == nil && !force {
			s := x.state(&statusOptions{untracked: "normal"}, nil)
			if len(s.staged)+len(s.unstaged)+len(s.untracked) > 0 {
				r.fatal("'%s' contains modified or untracked files, use --force to delete it", rest[0])
			}
		}
		r.removeAll(w.path)
		r.removeAll(x.dir)
		r.t.Rmdir(r.common + "/worktrees")
		return 0
	}
	r.fatal("'%s' is not a working tree", rest[0])
	return 128
}
