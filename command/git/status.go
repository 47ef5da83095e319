package git

import (
	"fmt"
	"sort"
	"strings"
)

// statusOptions say how status words what it finds.
type statusOptions struct {
	format    string // long, short, v1, v2
	branch    bool
	untracked string // no, normal, all
	ignored   string // no, traditional
	zero      bool
	verbose   int
	amend     bool
	commit    bool // for a commit that has nothing to record
	renames   bool
	stash     bool
	aheadNo   bool
	template  bool // comment of a commit's template
}

// worldState is how HEAD, index and work tree differ.
type worldState struct {
	branch    string // full name, "" if detached
	head      oid
	staged    []change
	unstaged  []change // 'U' among them
	untracked []string
	ignored   []string
	unmerged  map[string]int // path → mask of stages
}

func (r *repo) state(o *statusOptions, spec *pathspec) *worldState {
	s := &worldState{unmerged: map[string]int{}}
	s.branch, s.head = r.head()
	var match func(string) bool
	if spec != nil && !spec.empty() {
		match = spec.match
	}
	x := r.index()
	for i := range x.entries {
		if e := &x.entries[i]; e.stage() > 0 {
			s.unmerged[e.path] |= 1 << (e.stage() - 1)
		}
	}
	base := s.head
	if o.amend && !base.isZero() {
		base = oid{}
		if p := r.readCommit(s.head).parents; len(p) > 0 {
			base = p[0]
		}
	}
	tree := flat{}
	if !base.isZero() {
		tree = r.flatten(r.readCommit(base).tree)
	}
	for _, c := range compareFlat(tree, r.flatIndex()) {
		if s.unmerged[c.path()] == 0 && (match == nil || match(c.path())) {
			s.staged = append(s.staged, c)
		}
	}
	if o.renames {
		s.staged = r.prepare(s.staged, &diffOptions{renames: maxScore / 2})
	}
	s.unstaged = r.workChanges(match)
	if o.untracked != "no" {
		s.untracked, s.ignored = r.untracked(o.untracked == "all", o.ignored != "no" && o.ignored != "", match)
	}
	return s
}

func (r *repo) statusOptions() statusOptions {
	o := statusOptions{format: "long", untracked: "normal", ignored: "no", renames: true}
	if v, ok := r.config().get("status.showuntrackedfiles"); ok {
		o.untracked = v
	}
	if r.config().bool("status.short", false) {
		o.format = "short"
	}
	o.branch = r.config().bool("status.branch", false)
	if v, ok := r.config().get("status.renames"); ok {
		if b, isBool := parseBool(v); isBool {
			o.renames = b
		}
	}
	return o
}

func (r *repo) statusOption(s *statusOptions, o *options) bool {
	switch o.name {
	case "-s", "--short":
		s.format = "short"
	case "--long":
		s.format = "long"
	case "--porcelain":
		s.format = "v1"
		if o.value == "v2" || o.value == "2" {
			s.format = "v2"
		}
	case "-b", "--branch":
		s.branch = true
	case "--no-branch":
		s.branch = false
	case "-u", "--untracked-files":
		switch v := o.optional(); v {
		case "", "all", "a":
			s.untracked = "all"
		case "no", "n":
			s.untracked = "no"
		case "normal":
			s.untracked = v
		default:
			r.fatal("Invalid untracked files mode '%s'", v)
		}
	case "--ignored":
		s.ignored = s2(o.value, "traditional")
	case "-z", "--null":
		s.zero = true
		if s.format == "long" {
			s.format = "v1"
		}
	case "-v", "--verbose":
		s.verbose++
	case "--renames", "-M", "--find-renames":
		o.optional()
		s.renames = true
	case "--no-renames":
		s.renames = false
	case "--show-stash":
		s.stash = true
	case "--no-ahead-behind", "--ahead-behind":
		s.aheadNo = o.name == "--no-ahead-behind"
	case "--column", "--no-column", "--ignore-submodules":
		o.optional()
	default:
		return false
	}
	return true
}

func (r *repo) cmdStatus(args []string) int {
	r.needTree()
	s := r.statusOptions()
	o := r.options("status", args)
	for o.next() {
		if !r.statusOption(&s, o) {
			o.unknown()
		}
	}
	r.printStatus(&s, r.pathspec(o.operands()))
	r.writeIndexQuietly()
	return 0
}

// printStatus prints the status and reports whether there is something to commit.
func (r *repo) printStatus(o *statusOptions, spec *pathspec) (committable bool) {
	s := r.state(o, spec)
	switch o.format {
	case "short", "v1":
		r.shortStatus(o, s)
	case "v2":
		r.statusV2(o, s)
	default:
		return r.longStatus(o, s)
	}
	return len(s.staged) > 0
}

// name is a path as a format has it: porcelain ones from the root and unquoted with -z.
func (r *repo) statusName(o *statusOptions, p string) string {
	switch {
	case o.zero:
		return p
	case o.format == "v1" || o.format == "v2":
		return r.quote(p)
	}
	if r.config().bool("status.relativepaths", true) {
		return r.display(p)
	}
	return r.quote(p)
}

// spaced quotes names with blanks, too, as the short format does.
func (r *repo) spaced(o *statusOptions, p string) string {
	s := r.statusName(o, p)
	if !o.zero && strings.Contains(s, " ") && s[0] != '"' {
		return `"` + s + `"`
	}
	return s
}

// line is a path in the short formats with its two letters.
type statusLine struct {
	path, from string
	x, y       byte
	staged     *change
	unstaged   *change
}

func (s *worldState) lines() []statusLine {
	byPath := map[string]*statusLine{}
	at := func(p string) *statusLine {
		if byPath[p] == nil {
			byPath[p] = &statusLine{path: p, x: ' ', y: ' '}
		}
		return byPath[p]
	}
	for i := range s.staged {
		c := &s.staged[i]
		l := at(c.path())
		l.x, l.staged = c.status, c
		if c.status == 'R' || c.status == 'C' {
			l.from = c.old.name
		}
	}
	for i := range s.unstaged {
		c := &s.unstaged[i]
		l := at(c.path())
		l.y, l.unstaged = c.status, c
	}
	for p, mask := range s.unmerged {
		if l := byPath[p]; l != nil {
			l.x, l.y = conflictLetters(mask)
		}
	}
	list := make([]statusLine, 0, len(byPath))
	for _, l := range byPath {
		list = append(list, *l)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].path < list[j].path })
	return list
}

// conflictLetters are those of a mask of stages.
func conflictLetters(mask int) (x, y byte) {
	s := [8]string{"  ", "DD", "AU", "UD", "UA", "DU", "AA", "UU"}[mask&7]
	return s[0], s[1]
}

func (r *repo) shortStatus(o *statusOptions, s *worldState) {
	end := "\n"
	if o.zero {
		end = "\x00"
	}
	if o.branch {
		r.printf("## %s%s", r.shortBranch(s), end)
	}
	for _, l := range s.lines() {
		if l.from != "" {
			if o.zero {
				r.printf("%c%c %s%s%s%s", l.x, l.y, l.path, end, l.from, end)
			} else {
				r.printf("%c%c %s -> %s%s", l.x, l.y, r.spaced(o, l.from), r.spaced(o, l.path), end)
			}
			continue
		}
		r.printf("%c%c %s%s", l.x, l.y, r.spaced(o, l.path), end)
	}
	for _, p := range s.untracked {
		r.printf("?? %s%s", r.spaced(o, p), end)
	}
	for _, p := range s.ignored {
		r.printf("!! %s%s", r.spaced(o, p), end)
	}
}

func (r *repo) shortBranch(s *worldState) string {
	if s.branch == "" {
		return "HEAD (no branch)"
	}
	name := shortRef(s.branch)
	if s.head.isZero() {
		name = "No commits yet on " + name
	}
	up := r.upstream(s.branch)
	if up == "" {
		return name
	}
	name += "..." + shortRef(up)
	_, id, ok := r.resolveRef(up)
	if !ok {
		return name + " [gone]"
	}
	if s.head.isZero() {
		return name
	}
	switch a, b := r.aheadBehind(s.head, id); {
	case a > 0 && b > 0:
		name += fmt.Sprintf(" [ahead %d, behind %d]", a, b)
	case a > 0:
		name += fmt.Sprintf(" [ahead %d]", a)
	case b > 0:
		name += fmt.Sprintf(" [behind %d]", b)
	}
	return name
}

func (r *repo) statusV2(o *statusOptions, s *worldState) {
	end := "\n"
	if o.zero {
		end = "\x00"
	}
	if o.branch {
		id := "(initial)"
		if !s.head.isZero() {
			id = s.head.String()
		}
		r.printf("# branch.oid %s%s# branch.head %s%s", id, end, s2(shortRef(s.branch), "(detached)"), end)
		if up := r.upstream(s.branch); s.branch != "" && up != "" {
			r.printf("# branch.upstream %s%s", shortRef(up), end)
			if _, id, ok := r.resolveRef(up); ok && !s.head.isZero() {
				a, b := r.aheadBehind(s.head, id)
				r.printf("# branch.ab +%d -%d%s", a, b, end)
			}
		}
	}
	if n := len(r.reflog("refs/stash")); o.stash && n > 0 {
		r.printf("# stash %d%s", n, end)
	}
	var unmerged []string
	for _, l := range s.lines() {
		if s.unmerged[l.path] != 0 {
			unmerged = append(unmerged, l.path)
			continue
		}
		r.printf("%s%s", r.lineV2(o, &l), end)
	}
	for _, p := range unmerged {
		x, y := conflictLetters(s.unmerged[p])
		var modes [4]uint32
		var ids [4]oid
		for _, e := range r.index().entries {
			if e.path == p {
				modes[e.stage()], ids[e.stage()] = e.mode, e.id
			}
		}
		if a, err := r.t.Lstat(r.file(p)); err == nil && !a.Mode.IsDir() {
			modes[0] = r.fileMode(a, modes[2])
		}
		r.printf("u %c%c N... %06o %06o %06o %06o %s %s %s %s%s", x, y, modes[1], modes[2], modes[3], modes[0], ids[1], ids[2], ids[3], r.statusName(o, p), end)
	}
	for _, p := range s.untracked {
		r.printf("? %s%s", r.statusName(o, p), end)
	}
	for _, p := range s.ignored {
		r.printf("! %s%s", r.statusName(o, p), end)
	}
}

// lineV2 is a changed path in the second porcelain format.
func (r *repo) lineV2(o *statusOptions, l *statusLine) string {
	var mh, mi, mw uint32
	var hh, hi oid
	if e := r.index().find(l.path); e != nil && !e.intent() {
		mi, hi, mw = e.mode, e.id, e.mode
	}
	mh, hh = mi, hi
	if c := l.staged; c != nil {
		mh, hh, mi, hi = c.old.mode, c.old.id, c.new.mode, c.new.id
		mw = mi
	}
	if c := l.unstaged; c != nil {
		mw = c.new.mode
	}
	dot := func(c byte) byte {
		if c == ' ' {
			return '.'
		}
		return c
	}
	s := fmt.Sprintf("%c%c N... %06o %06o %06o %s %s ", dot(l.x), dot(l.y), mh, mi, mw, hh, hi)
	if l.from == "" {
		return "1 " + s + r.statusName(o, l.path)
	}
	sep := "\t"
	if o.zero {
		sep = "\x00"
	}
	return "2 " + s + fmt.Sprintf("%c%d %s%s%s", l.staged.status, l.staged.score*100/maxScore, r.statusName(o, l.path), sep, r.statusName(o, l.from))
}

// tracking describes how a branch relates to its upstream, "" if it has none.
func (r *repo) tracking(branch string, head oid) string {
	up := r.upstream(branch)
	if up == "" {
		return ""
	}
	name := shortRef(up)
	_, id, ok := r.resolveRef(up)
	hint := func(s string) string {
		if !r.config().bool("advice.statushints", true) {
			return ""
		}
		return "  (" + s + ")\n"
	}
	if !ok {
		return fmt.Sprintf("Your branch is based on '%s', but the upstream is gone.\n", name) + hint(`use "git branch --unset-upstream" to fixup`)
	}
	if head.isZero() {
		return ""
	}
	a, b := r.aheadBehind(head, id)
	s := func(n int) string {
		if n == 1 {
			return "1 commit"
		}
		return fmt.Sprintf("%d commits", n)
	}
	switch {
	case a == 0 && b == 0:
		return fmt.Sprintf("Your branch is up to date with '%s'.\n", name)
	case b == 0:
		return fmt.Sprintf("Your branch is ahead of '%s' by %s.\n", name, s(a)) + hint(`use "git push" to publish your local commits`)
	case a == 0:
		return fmt.Sprintf("Your branch is behind '%s' by %s, and can be fast-forwarded.\n", name, s(b)) + hint(`use "git pull" to update your local branch`)
	}
	return fmt.Sprintf("Your branch and '%s' have diverged,\nand have %d and %d different commits each, respectively.\n", name, a, b) +
		hint(`use "git pull" to merge the remote branch into yours`)
}

// upstream is the reference that a branch (full name) tracks, "" if none.
func (r *repo) upstream(branch string) string {
	name, ok := strings.CutPrefix(branch, "refs/heads/")
	if !ok {
		return ""
	}
	remote, ok1 := r.config().get("branch." + name + ".remote")
	merge, ok2 := r.config().get("branch." + name + ".merge")
	if !ok1 || !ok2 {
		return ""
	}
	if remote == "." {
		return merge
	}
	for _, spec := range r.config().all("remote." + remote + ".fetch") {
		if dst, ok := mapRef(spec, merge); ok {
			return dst
		}
	}
	return ""
}

// mapRef applies a refspec to a reference's name.
func mapRef(spec, name string) (string, bool) {
	spec = strings.TrimPrefix(spec, "+")
	src, dst, ok := strings.Cut(spec, ":")
	if !ok || dst == "" {
		return "", false
	}
	pre, post, wild := strings.Cut(src, "*")
	if !wild {
		return dst, src == name
	}
	if len(name) < len(pre)+len(post) || !strings.HasPrefix(name, pre) || !strings.HasSuffix(name, post) {
		return "", false
	}
	return strings.Replace(dst, "*", name[len(pre):len(name)-len(post)], 1), true
}
