package git

import (
	"fmt"
	"sort"
	"strings"
)

func (r *repo) cmdBisect(args []string) int {
	r.needTree()
	if len(args) == 0 {
		r.die(129, "usage: git bisect [help|start|bad|good|new|old|terms|skip|next|reset|visualize|view|replay|log|run]\n")
	}
	verb, rest := args[0], args[1:]
	if verb != "start" && verb != "reset" && !r.gitFileExists("BISECT_START") {
		if verb == "log" {
			r.die(1, "error: We are not bisecting.")
		}
		r.die(1, "You need to start by \"git bisect start\"\n")
	}
	switch verb {
	case "start":
		return r.bisectStart(rest)
	case "bad", "new":
		return r.bisectMark("bad", rest)
	case "good", "old":
		return r.bisectMark("good", rest)
	case "skip":
		return r.bisectMark("skip", rest)
	case "reset":
		return r.bisectReset(rest)
	case "log":
		b, _ := r.t.ReadFile(r.dir+"/BISECT_LOG", maxSmall)
		r.printf("%s", b)
		return 0
	case "next":
		return r.bisectNext()
	case "run":
		return r.bisectRun(rest)
	}
	r.fatal("bisect %s isn't done here", verb)
	return 128
}

func (r *repo) bisectLog(format string, args ...any) {
	f, err := r.t.Append(r.dir + "/BISECT_LOG")
	r.must(err)
	fmt.Fprintf(f, format, args...)
	f.Close()
}

func (r *repo) bisectStart(args []string) int {
	branch, head := r.head()
	if r.gitFileExists("BISECT_START") {
		b, _ := r.t.ReadFile(r.dir+"/BISECT_START", maxSmall)
		start := strings.TrimSpace(string(b))
		r.bisectClean()
		s := switchOptions{verb: "checkout", quiet: true}
		r.switchTo(&s, start)
		branch, head = r.head()
	}
	start := shortRef(branch)
	if branch == "" {
		start = head.String()
	}
	var revs, quoted []string
	for i, a := range args {
		if a == "--" {
			r.must(r.overwrite(r.dir+"/BISECT_NAMES", strings.Join(args[i+1:], "\n")))
			break
		}
		if strings.HasPrefix(a, "-") {
			if a != "--no-checkout" && a != "--first-parent" {
				r.fatal("unrecognized option: '%s'", a)
			}
			continue
		}
		revs = append(revs, a)
	}
	for _, a := range args {
		quoted = append(quoted, "'"+a+"'")
	}
	ids := make([]oid, len(revs))
	for i, a := range revs {
		id, err := r.commitOf(a)
		if err != nil {
			r.fatal("'%s' does not appear to be a valid revision", a)
		}
		ids[i] = id
	}
	if !r.gitFileExists("BISECT_NAMES") {
		r.must(r.overwrite(r.dir+"/BISECT_NAMES", "\n"))
	}
	r.must(r.overwrite(r.dir+"/BISECT_START", start+"\n"))
	r.must(r.overwrite(r.dir+"/BISECT_LOG", ""))
	for i, id := range ids {
		word := "good"
		if i == 0 {
			word = "bad"
		}
		r.bisectWrite(word, id)
	}
	line := "git bisect start"
	if len(quoted) > 0 {
		line += " " + strings.Join(quoted, " ")
	}
	r.bisectLog("%s\n", line)
	return r.bisectNext()
}

// bisectWrite notes what a commit is.
func (r *repo) bisectWrite(word string, id oid) {
	name := "refs/bisect/bad"
	if word != "bad" {
		name = "refs/bisect/" + word + "-" + id.String()
	}
	r.setRef(name, id)
	r.bisectLog("# %s: [%s] %s\n", word, id, r.readCommit(id).subject())
}

func (r *repo) bisectMark(word string, revs []string) int {
	if len(revs) == 0 {
		revs = []string{"HEAD"}
	}
	for _, a := range revs {
		id, err := r.commitOf(a)
		if err != nil {
			r.die(1, "error: Bad rev input: %s", a)
		}
		r.bisectWrite(word, id)
		r.bisectLog("git bisect %s %s\n", word, id)
	}
	return r.bisectNext()
}

// bisectState is the bad commit and the good and skipped ones.
func (r *repo) bisectState() (bad oid, good []oid, skip map[oid]bool) {
	skip = map[oid]bool{}
	for _, f := range r.refs("refs/bisect/") {
		switch name := strings.TrimPrefix(f.name, "refs/bisect/"); {
		case name == "bad":
			bad = f.id
		case strings.HasPrefix(name, "good-"):
			good = append(good, f.id)
		case strings.HasPrefix(name, "skip-"):
			skip[f.id] = true
		}
	}
	return bad, good, skip
}

// bisectNext checks out the commit that parts what is left most evenly, or tells the first bad one.
func (r *repo) bisectNext() int {
	bad, good, skip := r.bisectState()
	tell := func(s string) { r.printf("%s\n", s); r.bisectLog("# %s\n", s) }
	switch {
	case bad.isZero() && len(good) == 0:
		tell("status: waiting for both good and bad commits")
		return 0
	case bad.isZero():
		tell(fmt.Sprintf("status: waiting for bad commit, %s known", plural(len(good), "good commit", "good commits")))
		return 0
	case len(good) == 0:
		tell("status: waiting for good commit(s), bad commit known")
		return 0
	}
	o := walkOptions{max: -1}
	if b, err := r.t.ReadFile(r.dir+"/BISECT_NAMES", maxSmall); err == nil {
		if names := strings.Fields(string(b)); len(names) > 0 {
			o.paths = r.pathspec(names)
		}
	}
	nodes := r.walkWith([]oid{bad}, good, o).commits()
	if len(nodes) == 1 {
		return r.bisectFound(nodes[0].commit)
	}
	type weighed struct {
		n      *node
		weight int
	}
	var list []weighed
	for _, n := range nodes {
		count := 0
		have := r.ancestors([]oid{n.id})
		for _, m := range nodes {
			if have[m.id] {
				count++
			}
		}
		list = append(list, weighed{n, min(count, len(nodes)-count)})
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].weight > list[j].weight })
	var next *node
	for _, w := range list {
		if !skip[w.n.id] && w.n.id != bad {
			next = w.n
			break
		}
	}
	if next == nil {
		r.printf("There are only 'skip'ped commits left to test.\nThe first bad commit could be any of:\n")
		for _, n := range nodes {
			r.printf("%s\n", n.id)
		}
		r.printf("We cannot bisect more!\n")
		return 2
	}
	reach := 0
	have := r.ancestors([]oid{list[0].n.id})
	for _, m := range nodes {
		if have[m.id] {
			reach++
		}
	}
	left := len(nodes) - reach - 1
	steps := bisectSteps(len(nodes))
	r.printf("Bisecting: %s left to test after this (roughly %s)\n", plural(left, "revision", "revisions"), plural(steps, "step", "steps"))
	r.must(r.overwrite(r.dir+"/BISECT_EXPECTED_REV", next.id.String()+"\n"))
	s := switchOptions{verb: "checkout", quiet: true, detach: true}
	if status := r.switchTo(&s, next.id.String()); status != 0 {
		return status
	}
	r.printf("[%s] %s\n", next.id, next.subject())
	return 0
}

// bisectSteps estimates how many tests are left, as git does.
func bisectSteps(all int) int {
	if all < 3 {
		return 0
	}
	n := 0
	for 1<<(n+1) <= all {
		n++
	}
	e := 1 << n
	if x := all - e; e < 3*x {
		return n
	}
	return n - 1
}

func (r *repo) bisectFound(c *commit) int {
	r.printf("%s is the first bad commit\n", c.id)
	d := newDiffOptions()
	d.stat, d.summary = true, true
	l := r.newLogger()
	l.d = d
	l.f = logFormat{name: "medium"}
	r.printf("%s\n\n", strings.TrimSuffix(r.wording(&l.f, &node{commit: c, follow: c.parents}, ""), "\n"))
	var parent oid
	if len(c.parents) > 0 {
		parent = r.readCommit(c.parents[0]).tree
	}
	r.showChanges(r.prepare(r.compareTrees(parent, c.tree), &d), &d)
	r.bisectLog("# first bad commit: [%s] %s\n", c.id, c.subject())
	return 0
}

func (r *repo) bisectClean() {
	for _, f := range r.refs("refs/bisect/") {
		r.deleteRef(f.name)
	}
	for _, f := range []string{"BISECT_START", "BISECT_LOG", "BISECT_NAMES", "BISECT_TERMS", "BISECT_EXPECTED_REV", "BISECT_ANCESTORS_OK", "BISECT_RUN"} {
		r.t.Unlink(r.dir + "/" + f)
	}
}

func (r *repo) bisectReset(args []string) int {
	b, err := r.t.ReadFile(r.dir+"/BISECT_START", maxSmall)
	if err != nil {
		r.printf("We are not bisecting.\n")
		return 0
	}
	target := strings.TrimSpace(string(b))
	if len(args) > 0 {
		if _, err := r.commitOf(args[0]); err != nil {
			r.die(1, "error: '%s' is not a valid commit", args[0])
		}
		target = args[0]
	}
	s := switchOptions{verb: "checkout"}
	status := r.switchTo(&s, target)
	if status == 0 {
		r.bisectClean()
	}
	return status
}

// bisectRun lets a program judge each commit.
func (r *repo) bisectRun(args []string) int {
	if len(args) == 0 {
		r.die(1, "error: bisect run failed: no command provided.")
	}
	var quoted []string
	for _, a := range args {
		quoted = append(quoted, "'"+strings.ReplaceAll(a, "'", `'\''`)+"'")
	}
	for range 10000 {
		bad, good, _ := r.bisectState()
		if bad.isZero() || len(good) == 0 {
			r.die(1, "error: bisect run failed: 'git bisect' needs good and bad commits")
		}
		r.printf("running %s\n", strings.Join(quoted, " "))
		out, err := r.t.File(1)
		r.must(err)
		status := r.spawn([]string{"/bin/sh", "-c", strings.Join(quoted, " ")}, nil, filesOf(out))
		word := "bad"
		switch {
		case status == 125:
			word = "skip"
		case status < 0 || status >= 128:
			r.die(status, "error: bisect run failed: exit code %d from %s is < 0 or >= 128", status, strings.Join(quoted, " "))
		case status == 0:
			word = "good"
		}
		r.idx = nil
		before, _, _ := r.bisectState()
		text := r.capture(func() { status = r.bisectMark(word, nil) })
		r.printf("%s", text)
		_ = before
		if strings.Contains(text, "is the first bad commit") {
			r.printf("bisect found first bad commit\n")
			return 0
		}
		if status != 0 {
			r.die(status, "error: bisect run failed: 'git bisect %s' exited with error code %d", word, status)
		}
	}
	return 1
}
