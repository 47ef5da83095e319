package git

import (
	"fmt"
	"strings"
)

func (r *repo) cmdDiffTree(args []string) int {
	d := newDiffOptions()
	d.renames = 0
	var s revSet
	recursive, noID, root, stdin, pretty := false, false, false, false, ""
	o := r.options("diff-tree", args)
	for o.next() {
		switch o.name {
		case "-r":
			recursive = true
		case "-t":
			recursive = true
		case "--no-commit-id":
			noID = true
		case "--root":
			root = true
		case "--stdin":
			stdin = true
		case "-v", "--always":
		case "--pretty", "--format":
			pretty = s2(o.value, "medium")
		default:
			if !r.diffOption(&d, o) {
				o.unknown()
			}
		}
	}
	paths := r.splitRevs(o, &s)
	spec := r.pathspec(paths)
	_ = stdin
	recursive = recursive || d.patch || d.stat || d.numstat || d.shortstat || d.summary
	if !d.formatted() {
		d.raw = true
	}
	if d.raw && d.abbrev == 0 {
		d.fullIndex = true
	}
	show := func(a, b oid, c *commit) int {
		var list []change
		if recursive {
			list = spec.filter(r.compareTreesFor(a, b, spec))
		} else {
			list = spec.filter(r.compareFlatTrees(a, b))
		}
		list = r.prepare(list, &d)
		if c != nil && !noID && (len(list) > 0 || pretty != "") {
			if pretty != "" {
				f := logFormat{}
				r.setPretty(&f, pretty)
				r.printf("%s\n\n", strings.TrimSuffix(r.wording(&f, &node{commit: c, follow: c.parents}, ""), "\n"))
			} else {
				r.printf("%s\n", c.id)
			}
		}
		r.showChanges(list, &d)
		if d.exitCode && len(list) > 0 {
			return 1
		}
		return 0
	}
	switch {
	case len(s.include) == 2:
		return show(r.treeOf(s.include[0]), r.treeOf(s.include[1]), nil)
	case len(s.include) == 1 && len(s.exclude) == 1:
		return show(r.treeOf(s.exclude[0]), r.treeOf(s.include[0]), nil)
	case len(s.include) == 1:
		id, err := r.peel(s.include[0], commitObj)
		if err != nil {
			r.die(129, "usage: git diff-tree [--stdin] <tree-ish> [<tree-ish>]")
		}
		c := r.readCommit(id)
		switch {
		case len(c.parents) == 0 && root:
			return show(oid{}, c.tree, c)
		case len(c.parents) == 1, len(c.parents) > 1 && d.merges == "first":
			return show(r.readCommit(c.parents[0]).tree, c.tree, c)
		case len(c.parents) > 1 && d.merges == "separate":
			for _, p := range c.parents {
				show(r.readCommit(p).tree, c.tree, c)
			}
		case len(c.parents) > 1 && d.merges != "":
			if !noID {
				r.printf("%s\n", c.id)
			}
			r.showCombined(c, spec, &d)
		}
		return 0
	}
	r.die(129, "usage: git diff-tree [--stdin] [-m] [-s] [-v] [--no-commit-id] [--pretty] [-t] [-r] [-c | --cc] [--root] [--merge-base] [<common-diff-options>] <tree-ish> [<tree-ish>] [<path>...]")
	return 129
}

// compareFlatTrees compares two trees without entering folders.
func (r *repo) compareFlatTrees(a, b oid) (list []change) {
	side := func(id oid) flat {
		f := flat{}
		if !id.isZero() {
			for _, e := range r.readTree(id) {
				f[e.name] = e
			}
		}
		return f
	}
	return compareFlat(side(a), side(b))
}

func (r *repo) cmdDiffIndex(args []string) int {
	d := newDiffOptions()
	d.renames = 0
	var s revSet
	o := r.options("diff-index", args)
	for o.next() {
		switch o.name {
		case "--cached":
			d.cached = true
		case "-m", "-r":
		default:
			if !r.diffOption(&d, o) {
				o.unknown()
			}
		}
	}
	paths := r.splitRevs(o, &s)
	if len(s.include) != 1 {
		r.die(129, "usage: git diff-index [-m] [--cached] [--merge-base] [<common-diff-options>] <tree-ish> [<path>...]")
	}
	r.rawDefault(&d)
	return r.diffIndex(&d, &s, r.pathspec(paths), false)
}

func (r *repo) rawDefault(d *diffOptions) {
	if !d.formatted() && !d.quiet {
		d.raw = true
	}
	if d.raw && d.abbrev == 0 {
		d.fullIndex = true
	}
}

func (r *repo) cmdDiffFiles(args []string) int {
	d := newDiffOptions()
	d.renames = 0
	o := r.options("diff-files", args)
	for o.next() {
		if o.name == "-r" {
			continue
		}
		if !r.diffOption(&d, o) {
			o.unknown()
		}
	}
	r.rawDefault(&d)
	r.needTree()
	return r.diffWork(&d, r.pathspec(o.operands()))
}

func (r *repo) cmdUpdateIndex(args []string) int {
	r.needTree()
	add, remove, refresh, forceRemove := false, false, false, false
	bit := uint16(0)
	set := true
	skip := uint16(0)
	status := 0
	chmod := ""
	x := r.index()
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--add":
			add = true
		case a == "--remove":
			remove = true
		case a == "--force-remove":
			forceRemove = true
		case a == "--refresh" || a == "--really-refresh":
			refresh = true
		case a == "-q" || a == "--ignore-missing" || a == "--replace" || a == "--unmerged" || a == "--verbose":
		case a == "--assume-unchanged" || a == "--no-assume-unchanged":
			bit, set = 0x8000, a == "--assume-unchanged"
		case a == "--skip-worktree" || a == "--no-skip-worktree":
			skip, set = 0x4000, a == "--skip-worktree"
		case strings.HasPrefix(a, "--chmod="):
			chmod = strings.TrimPrefix(a, "--chmod=")
		case a == "--cacheinfo" && i+1 < len(args):
			parts := strings.SplitN(args[i+1], ",", 3)
			i++
			if len(parts) != 3 && i+2 < len(args) {
				parts = []string{args[i], args[i+1], args[i+2]}
				i += 2
			}
			r.cacheInfo(parts)
		case a == "--index-info" || a == "--stdin":
			for _, line := range r.fileLines("-") {
				if a == "--stdin" {
					r.updateOne(line, add, remove)
					continue
				}
				meta, p, _ := strings.Cut(line, "\t")
				f := strings.Fields(meta)
				if len(f) < 2 {
					r.fatal("malformed index info %s", line)
				}
				if strings.Trim(f[0], "0") == "" {
					x.remove(p)
					continue
				}
				id := f[len(f)-1]
				if len(f) == 3 && len(f[2]) == 1 {
					id = f[1]
				}
				r.cacheInfo([]string{f[0], id, p})
			}
		case strings.HasPrefix(a, "-") && a != "--":
			r.die(129, "error: unknown option `%s'\nusage: git update-index [<options>] [--] [<file>...]", strings.TrimLeft(a, "-"))
		case a == "--":
		default:
			p, ok := r.relative(a)
			if !ok {
				r.fatal("%s: '%s' is outside repository at '%s'", a, a, r.root)
			}
			e := x.find(p)
			switch {
			case forceRemove:
				x.remove(p)
			case (bit != 0 || skip != 0 || chmod != "") && e == nil:
				r.say("error: %s: cannot update", p)
				r.fatal("Unable to mark file %s", p)
			case chmod != "":
				r.chmodEntries(chmod, &pathspec{items: []specItem{{path: p}}})
			case bit != 0:
				if e.flags &^= bit; set {
					e.flags |= bit
				}
				x.changed = true
			case skip != 0:
				if e.flags2 &^= skip; set {
					e.flags2 |= skip
				}
				x.changed = true
			default:
				r.updateOne(a, add, remove)
			}
		}
	}
	if refresh {
		for _, c := range r.workChanges(nil) {
			r.printf("%s: needs %s\n", c.path(), map[bool]string{true: "merge", false: "update"}[c.status == 'U'])
			status = 1
		}
	}
	r.writeIndex()
	return status
}

func (r *repo) cacheInfo(parts []string) {
	if len(parts) != 3 {
		r.fatal("git update-index: --cacheinfo cannot add %s", strings.Join(parts, ","))
	}
	var mode uint32
	fmt.Sscanf(parts[0], "%o", &mode)
	id, ok := parseOID(parts[1])
	if !ok || !safePath(parts[2]) {
		r.fatal("git update-index: --cacheinfo cannot add %s", parts[2])
	}
	r.index().put(entry{mode: canonMode(mode), id: id, path: parts[2]})
}

func (r *repo) updateOne(arg string, add, remove bool) {
	p, ok := r.relative(arg)
	if !ok {
		r.fatal("%s: '%s' is outside repository at '%s'", arg, arg, r.root)
	}
	e := r.index().find(p)
	if _, err := r.t.Lstat(r.file(p)); err != nil {
		if !remove {
			r.say("error: %s: does not exist and --remove not passed", p)
			r.fatal("Unable to process path %s", p)
		}
		r.index().remove(p)
		return
	}
	if e == nil && !add {
		r.say("error: %s: cannot add to the index - missing --add option?", p)
		r.fatal("Unable to process path %s", p)
	}
	r.addFile(&addOptions{}, p)
}

func (r *repo) cmdCheckRefFormat(args []string) int {
	normalize, oneLevel, branch := false, false, false
	name := ""
	for _, a := range args {
		switch a {
		case "--normalize", "--print":
			normalize = true
		case "--allow-onelevel":
			oneLevel = true
		case "--no-allow-onelevel", "--refspec-pattern":
		case "--branch":
			branch = true
		default:
			name = a
		}
	}
	if branch {
		b := r.branchArg(name)
		if !validBranch(b) {
			r.fatal("'%s' is not a valid branch name", name)
		}
		r.printf("%s\n", b)
		return 0
	}
	if normalize {
		name = strings.TrimPrefix(name, "/")
		for strings.Contains(name, "//") {
			name = strings.ReplaceAll(name, "//", "/")
		}
	}
	if !validRef(name) || !oneLevel && !strings.Contains(name, "/") {
		return 1
	}
	if normalize {
		r.printf("%s\n", name)
	}
	return 0
}

func (r *repo) cmdCherry(args []string) int {
	verbose := false
	o := r.options("cherry", args)
	for o.next() {
		switch o.name {
		case "-v", "--verbose":
			verbose = true
		case "--abbrev":
		default:
			o.unknown()
		}
	}
	rest := o.operands()
	branch, head := r.head()
	up := r.upstream(branch)
	if len(rest) > 0 {
		up = rest[0]
	}
	if len(rest) > 1 {
		head = r.commitRev(rest[1])
	}
	if up == "" {
		r.fatal("Could not find a tracked remote branch, please specify <upstream> manually.")
	}
	base := r.commitRev(up)
	have := map[string]bool{}
	w := r.walk([]oid{base}, []oid{head})
	for c := w.next(); c != nil; c = w.next() {
		have[r.patchID(c)] = true
	}
	exclude := []oid{base}
	if len(rest) > 2 {
		exclude = append(exclude, r.commitRev(rest[2]))
	}
	for _, n := range r.walkWith([]oid{head}, exclude, walkOptions{max: -1, reverse: true}).commits() {
		if len(n.parents) > 1 {
			continue
		}
		mark := "+"
		if have[r.patchID(n.commit)] {
			mark = "-"
		}
		if verbose {
			r.printf("%s %s %s\n", mark, n.id, n.subject())
		} else {
			r.printf("%s %s\n", mark, n.id)
		}
	}
	return 0
}

func (r *repo) cmdStripspace(args []string) int {
	comments := false
	for _, a := range args {
		comments = comments || a == "-s" || a == "--strip-comments"
	}
	b, err := r.t.ReadFile("-", maxSmall)
	r.must(err)
	r.printf("%s", stripspace(string(b), comments))
	return 0
}
