package git

import (
	"fmt"
	"path"
	"strings"
)

func (r *repo) cmdRevParse(args []string) int {
	var verify, quiet, symbolic, symbolicFull, all, sq bool
	abbrevRef, short, otherwise, pathFormat := "", -1, "", ""
	status := 0
	flags, onlyRevs, noFlags, noRevs, onlyFlags := true, false, false, false, false
	_ = flags
	count := 0
	revs := false
	needRepo := func() {
		if r.dir == "" {
			r.fatal("not a git repository (or any of the parent directories): .git")
		}
	}
	show := func(id oid, name string, not bool) {
		count++
		mark := ""
		if not {
			mark = "^"
		}
		switch {
		case abbrevRef != "":
			r.printf("%s%s\n", mark, r.abbrevRefOf(name))
		case symbolicFull:
			if full, _, ok := r.expandRef(name); ok {
				if full == "HEAD" {
					if b, _ := r.head(); b != "" {
						full = b
					}
				}
				r.printf("%s%s\n", mark, full)
			}
		case symbolic:
			r.printf("%s%s\n", mark, name)
		case short >= 0:
			n := short
			if n == 0 {
				n = r.minAbbrev()
			}
			r.printf("%s%s\n", mark, r.abbrevN(id, max(n, 4)))
		default:
			r.printf("%s%s\n", mark, id)
		}
	}
	var queue []string
	operands := false
	rest := args
	for len(rest) > 0 {
		a := rest[0]
		rest = rest[1:]
		name, value, has := strings.Cut(a, "=")
		if operands {
			if !onlyRevs && !onlyFlags {
				r.printf("%s\n", a)
			}
			continue
		}
		if strings.HasPrefix(a, "-") && a != "-" && r.revParseInfo(name, value, has, pathFormat, needRepo) {
			continue
		}
		switch name {
		case "--path-format":
			pathFormat = value
			continue
		case "--verify":
			verify = true
			continue
		case "-q", "--quiet":
			quiet = true
			continue
		case "--symbolic":
			symbolic = true
			continue
		case "--symbolic-full-name":
			symbolicFull = true
			continue
		case "--abbrev-ref":
			abbrevRef = s2(value, "loose")
			continue
		case "--short":
			short = 0
			if has {
				fmt.Sscan(value, &short)
			}
			verify = true
			continue
		case "--default":
			if len(rest) > 0 {
				otherwise, rest = rest[0], rest[1:]
			}
			continue
		case "--revs-only":
			onlyRevs = true
			continue
		case "--no-revs":
			noRevs = true
			continue
		case "--flags":
			onlyFlags = true
			continue
		case "--no-flags":
			noFlags = true
			continue
		case "--sq", "--sq-quote":
			sq = true
			continue
		case "--not":
			continue
		case "--":
			operands = true
			if !onlyRevs && !verify {
				r.printf("--\n")
			}
			continue
		case "--all", "--branches", "--tags", "--remotes":
			needRepo()
			all = true
			prefix := map[string]string{"--all": "refs/", "--branches": "refs/heads/", "--tags": "refs/tags/", "--remotes": "refs/remotes/"}[name]
			for _, f := range r.refs(prefix) {
				shown := f.name
				if symbolic {
					shown = strings.TrimPrefix(f.name, prefix)
				}
				show(f.id, shown, false)
			}
			continue
		case "--git-path":
			needRepo()
			if len(rest) > 0 {
				r.printf("%s\n", r.relGitDir(r.dir)+"/"+rest[0])
				rest = rest[1:]
			}
			continue
		case "--resolve-git-dir":
			if len(rest) > 0 {
				if d := r.dotGit(r.abs(rest[0])); d != "" || r.isGitDir(r.abs(rest[0])) {
					r.printf("%s\n", rest[0])
				} else {
					r.fatal("not a gitdir '%s'", rest[0])
				}
				rest = rest[1:]
			}
			continue
		}
		queue = append(queue, a)
		revs = true
		if strings.HasPrefix(a, "-") && a != "-" {
			if verify {
				if quiet {
					return 1
				}
				r.fatal("Needed a single revision")
			}
			if !noFlags && !onlyRevs {
				r.printf("%s\n", a)
			}
			continue
		}
		needRepo()
		if r.showRevArg(a, verify, show) {
			continue
		}
		if verify {
			if quiet {
				return 1
			}
			r.fatal("Needed a single revision")
		}
		if onlyRevs || noRevs && false {
			continue
		}
		if r.pathExists(a) || strings.ContainsAny(a, "*?[") {
			if !onlyFlags {
				r.printf("%s\n", a)
			}
			operands = true
			continue
		}
		r.printf("%s\n", a)
		if _, err := r.rev(a); err != nil && strings.HasPrefix(err.Error(), "path '") {
			r.fatal("%s", err)
		}
		r.fatal("ambiguous argument '%s': unknown revision or path not in the working tree.\nUse '--' to separate paths from revisions, like this:\n'git <command> [<revision>...] -- [<file>...]'", a)
	}
	_, _ = all, sq
	if !revs && otherwise != "" {
		needRepo()
		if id, err := r.rev(otherwise); err == nil {
			show(id, otherwise, false)
		}
	}
	if verify && count != 1 {
		if quiet {
			return 1
		}
		r.fatal("Needed a single revision")
	}
	return status
}

// showRevArg prints what an argument stands for, if it is a revision.
func (r *repo) showRevArg(a string, single bool, show func(oid, string, bool)) bool {
	not := strings.HasPrefix(a, "^") && len(a) > 1
	name := strings.TrimPrefix(a, "^")
	if i := strings.Index(name, ".."); i >= 0 && !not && !single {
		var s revSet
		if r.addRange(&s, name, i) == nil {
			last := len(s.include) - 1
			if s.dots == 3 {
				show(s.right[0], s.names[1], false)
				show(s.left[0], s.names[0], false)
				for _, b := range s.exclude {
					show(b, b.String(), true)
				}
				return true
			}
			show(s.right[0], s.names[last], false)
			from, _, _ := strings.Cut(name, "..")
			show(s.left[0], s2(from, "HEAD"), true)
			return true
		}
	}
	for _, suffix := range []string{"^@", "^!"} {
		base, ok := strings.CutSuffix(name, suffix)
		if !ok || single {
			continue
		}
		id, err := r.commitOf(base)
		if err != nil {
			return false
		}
		if suffix == "^!" {
			show(id, base, false)
		}
		for _, p := range r.readCommit(id).parents {
			show(p, p.String(), suffix == "^!")
		}
		return true
	}
	id, err := r.rev(name)
	if err != nil {
		return false
	}
	show(id, name, not)
	return true
}

// abbrevRefOf is a reference's short name, HEAD being its branch.
func (r *repo) abbrevRefOf(name string) string {
	if strings.HasSuffix(name, "@{u}") || strings.HasSuffix(name, "@{upstream}") {
		base, _, _ := strings.Cut(name, "@{")
		return shortRef(r.upstream(r.branchName(base)))
	}
	name = r.branchArg(name)
	full, _, ok := r.expandRef(name)
	if !ok {
		return name
	}
	if full == "HEAD" {
		if b, _ := r.head(); b != "" {
			full = b
		}
	}
	return r.shortestRef(full)
}

// relGitDir is the repository's folder as rev-parse prints it: ".git" or "." if that is what it is from here.
func (r *repo) relGitDir(dir string) string {
	wd := r.t.Getwd()
	switch {
	case dir == path.Join(wd, ".git"):
		return ".git"
	case dir == wd:
		return "."
	}
	return dir
}

// revParseInfo answers the options that ask about the repository.
func (r *repo) revParseInfo(name, value string, has bool, format string, need func()) bool {
	out := func(s string) bool {
		r.printf("%s\n", s)
		return true
	}
	yes := func(b bool) bool { return out(fmt.Sprint(b)) }
	switch name {
	case "--is-inside-work-tree", "--is-inside-git-dir", "--is-bare-repository", "--git-dir", "--absolute-git-dir", "--show-toplevel", "--show-prefix", "--show-cdup",
		"--git-common-dir", "--is-shallow-repository", "--show-object-format", "--show-superproject-working-tree", "--shared-index-path":
		need()
	default:
		if name == "--local-env-vars" {
			return out("GIT_ALTERNATE_OBJECT_DIRECTORIES\nGIT_CONFIG\nGIT_CONFIG_PARAMETERS\nGIT_CONFIG_COUNT\nGIT_OBJECT_DIRECTORY\nGIT_DIR\nGIT_WORK_TREE\nGIT_IMPLICIT_WORK_TREE\nGIT_GRAFT_FILE\nGIT_INDEX_FILE\nGIT_NO_REPLACE_OBJECTS\nGIT_REPLACE_REF_BASE\nGIT_PREFIX\nGIT_SHALLOW_FILE\nGIT_COMMON_DIR")
		}
		return false
	}
	wd := r.t.Getwd()
	inGit := wd == r.dir && r.root != wd || strings.HasPrefix(wd, r.dir+"/")
	top := strings.TrimSuffix(r.root, "/.")
	if top == "" {
		top = "/"
	}
	switch name {
	case "--is-inside-work-tree":
		return yes(!r.bare && !inGit)
	case "--is-inside-git-dir":
		return yes(inGit)
	case "--is-bare-repository":
		return yes(r.bare)
	case "--git-dir":
		if format == "absolute" {
			return out(r.dir)
		}
		return out(r.relGitDir(r.dir))
	case "--git-common-dir":
		return out(r.relGitDir(r.common))
	case "--absolute-git-dir":
		return out(r.dir)
	case "--show-toplevel":
		if r.bare || inGit {
			r.fatal("this operation must be run in a work tree")
		}
		return out(top)
	case "--show-prefix":
		return out(r.prefix)
	case "--show-cdup":
		return out(strings.Repeat("../", strings.Count(r.prefix, "/")))
	case "--is-shallow-repository":
		return yes(len(r.shallow()) > 0)
	case "--show-object-format":
		return out("sha1")
	}
	return true
}

func (r *repo) cmdRevList(args []string) int {
	l := r.newLogger()
	l.f = logFormat{name: "rev"}
	l.d.renames = 0
	countOnly, objects, header, quiet, noCommit := false, false, false, false, false
	oneline := false
	var keep []string
	for _, a := range args {
		switch {
		case a == "--count":
			countOnly = true
		case a == "--objects" || a == "--objects-edge" || a == "--in-commit-order":
			objects = true
		case a == "--header":
			header = true
		case a == "--quiet":
			quiet = true
		case a == "--no-commit-header":
			noCommit = true
		case a == "--timestamp" || a == "--stdin" || strings.HasPrefix(a, "--disk-usage") || a == "--use-bitmap-index" || strings.HasPrefix(a, "--missing=") || strings.HasPrefix(a, "--filter="):
		case a == "--children":
		default:
			keep = append(keep, a)
		}
	}
	_, _ = header, oneline
	paths := l.parse("rev-list", keep)
	if !l.revs.given {
		r.die(129, "usage: git rev-list [<options>] <commit>... [--] [<path>...]\n")
	}
	if len(paths) > 0 {
		l.w.paths = r.pathspec(paths)
	}
	nodes := l.list()
	switch {
	case countOnly:
		if l.f.leftRight {
			left := 0
			for _, n := range nodes {
				if n.flag == '<' {
					left++
				}
			}
			r.printf("%d\t%d\n", left, len(nodes)-left)
		} else {
			r.printf("%d\n", len(nodes))
		}
		return 0
	case quiet:
		return 0
	}
	if l.f.name != "rev" {
		if l.f.name == "user" && !noCommit {
			for _, n := range nodes {
				r.printf("commit %s\n%s\n", r.commitLine(&l.f, n), r.wording(&l.f, n, ""))
			}
			return 0
		}
		if l.f.name != "oneline" && l.f.name != "user" {
			for _, n := range nodes {
				r.printf("%s\n\n", l.text(n)[:max(0, len(l.text(n))-1)])
			}
			return 0
		}
		l.f.terminator = true
		l.show(nodes)
		return 0
	}
	if l.graph != nil {
		l.f.name, l.f.user, l.f.terminator = "user", "%H", true
		l.show(nodes)
		return 0
	}
	for _, n := range nodes {
		r.printf("%s\n", strings.NewReplacer("- ", "-", "> ", ">", "< ", "<", "= ", "=", "+ ", "+").Replace(r.commitLine(&l.f, n)))
	}
	if objects {
		r.listObjects(nodes, l.revs.exclude)
	}
	return 0
}

// listObjects prints the trees and blobs of commits that excluded ones don't have.
func (r *repo) listObjects(nodes []*node, exclude []oid) {
	seen := map[oid]bool{}
	for id := range r.ancestors(exclude) {
		r.markTree(r.readCommit(id).tree, seen, 0)
	}
	var walk func(id oid, p string, depth int)
	walk = func(id oid, p string, depth int) {
		if seen[id] || depth > maxDepth {
			return
		}
		seen[id] = true
		r.printf("%s %s\n", id, p)
		for _, e := range r.readTree(id) {
			sub := e.name
			if p != "" {
				sub = p + "/" + e.name
			}
			switch {
			case e.isTree():
				walk(e.id, sub, depth+1)
			case e.mode != modeGitlink && !seen[e.id]:
				seen[e.id] = true
				r.printf("%s %s\n", e.id, sub)
			}
		}
	}
	for _, n := range nodes {
		walk(n.tree, "", 0)
	}
}

// markTree adds all objects of a tree to a set.
func (r *repo) markTree(id oid, seen map[oid]bool, depth int) {
	if seen[id] || depth > maxDepth {
		return
	}
	seen[id] = true
	for _, e := range r.readTree(id) {
		if e.isTree() {
			r.markTree(e.id, seen, depth+1)
		} else if e.mode != modeGitlink {
			seen[e.id] = true
		}
	}
}
