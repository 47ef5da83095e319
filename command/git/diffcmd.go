package git

import (
	"bytes"
	"path"
	"sort"
	"strings"
)

func (r *repo) cmdDiff(args []string) int {
	d := newDiffOptions()
	r.diffConfig(&d)
	o := r.options("diff", args)
	var s revSet
	noIndex, base, relative := false, false, false
	for o.next() {
		switch o.name {
		case "--cached", "--staged":
			d.cached = true
		case "--no-index":
			noIndex = true
		case "--merge-base":
			base = true
		case "--relative":
			relative = true
		case "--base", "-1", "-2", "-3", "--ours", "--theirs", "-0":
			d.stage = map[string]int{"--base": 1, "-1": 1, "--ours": 2, "-2": 2, "--theirs": 3, "-3": 3}[o.name]
		default:
			if !r.diffOption(&d, o) {
				r.die(255, "error: invalid option: %s", o.whole())
			}
		}
	}
	if noIndex || r.dir == "" || r.outsidePair(o) {
		return r.diffNoIndex(&d, o)
	}
	objects, paths := r.diffArgs(o, &s)
	spec := r.pathspec(paths)
	if relative && r.prefix != "" {
		spec.items = append(spec.items, specItem{path: strings.TrimSuffix(r.prefix, "/")})
		d.relative = r.prefix
	}
	if !d.formatted() && !d.quiet {
		d.patch = true
	}
	if d.merges == "" {
		d.merges = "cc"
	}
	return r.diffSides(&d, &s, objects, spec, base)
}

// outsidePair reports whether the arguments are two paths of which one isn't in the work tree.
func (r *repo) outsidePair(o *options) bool {
	list := o.operands()
	if len(list) != 2 || r.root == "" {
		return false
	}
	for _, a := range list {
		if _, ok := r.relative(a); !ok && r.pathExists(a) {
			return true
		}
	}
	return false
}

// diffArgs returns the trees or blobs to compare, and the paths.
func (r *repo) diffArgs(o *options, s *revSet) (blobs []change, paths []string) {
	paths = r.splitRevs(o, s)
	if len(s.include) == 2 && len(paths) == 0 || len(s.include) == 1 {
		var list []treeEntry
		for i, id := range s.include {
			k, _, err := r.readObject(id)
			if err == nil && k == blobObj {
				name := s.names[i]
				e := treeEntry{mode: modeFile, id: id, name: name}
				if rev, file, ok := strings.Cut(name, ":"); ok && file != "" {
					e.name = r.fromRoot(file)
					if rev != "" {
						if tree, err := r.rev(rev); err == nil {
							if tree, err = r.peel(tree, treeObj); err == nil {
								if te, ok := r.lookup(tree, e.name); ok {
									e.mode = te.mode
								}
							}
						}
					}
				}
				list = append(list, e)
			}
		}
		if len(list) == 2 {
			return []change{{status: modified(list[0].mode, list[1].mode), old: list[0], new: list[1]}}, paths
		}
		if len(list) == 1 && len(paths) == 1 {
			p, _ := r.relative(paths[0])
			c := change{status: 'M', old: list[0], new: treeEntry{mode: modeFile, name: p}}
			if a, err := r.t.Lstat(r.file(p)); err == nil {
				data, err := r.workData(p, a)
				r.must(err)
				c.new.mode, c.new.id, c.data[1] = r.fileMode(a, 0), hashObject(blobObj, data), content{true, data}
				return []change{c}, nil
			}
		}
	}
	return nil, paths
}

// diffSides finds what is to be compared, and compares it.
func (r *repo) diffSides(d *diffOptions, s *revSet, blobs []change, spec *pathspec, base bool) int {
	tree := func(id oid) oid {
		t, err := r.peel(id, treeObj)
		if err != nil {
			r.fatal("%s", err)
		}
		return t
	}
	var list []change
	switch {
	case len(blobs) > 0:
		if blobs[0].old.id != blobs[0].new.id || blobs[0].old.mode != blobs[0].new.mode {
			list = blobs
		}
		return r.finishDiff(list, d)
	case s.dots == 2:
		list = r.compareTreesFor(tree(s.left[0]), tree(s.right[0]), spec)
	case s.dots == 3:
		if len(s.exclude) == 0 {
			r.fatal("%s...%s: no merge base", s.names[0], s.names[1])
		}
		list = r.compareTreesFor(tree(s.exclude[0]), tree(s.right[0]), spec)
	case len(s.include) == 2 && !d.cached:
		a := s.include[0]
		if base {
			if b := r.mergeBases(a, s.include[1]); len(b) > 0 {
				a = b[0]
			}
		}
		list = r.compareTreesFor(tree(a), tree(s.include[1]), spec)
	case len(s.include) == 1 && len(s.exclude) == 1 && !d.cached:
		list = r.compareTreesFor(tree(s.exclude[0]), tree(s.include[0]), spec)
	case len(s.include) > 2:
		return r.diffCombinedRevs(d, s, spec)
	default:
		return r.diffIndex(d, s, spec, base)
	}
	return r.finishDiff(spec.filter(list), d)
}

// diffCombinedRevs compares a commit with several others at once.
func (r *repo) diffCombinedRevs(d *diffOptions, s *revSet, spec *pathspec) int {
	c := &commit{tree: r.treeOf(s.include[0]), parents: s.include[1:]}
	r.showCombined(c, spec, d)
	return 0
}

func (r *repo) treeOf(id oid) oid {
	t, err := r.peel(id, treeObj)
	if err != nil {
		r.fatal("%s", err)
	}
	return t
}

// diffIndex compares with the index or the work tree.
func (r *repo) diffIndex(d *diffOptions, s *revSet, spec *pathspec, base bool) int {
	from := oid{}
	given := len(s.include) == 1
	if given {
		from = s.include[0]
	} else if d.cached {
		_, from = r.head()
	}
	if base && given {
		if _, head := r.head(); !head.isZero() {
			if b := r.mergeBases(from, head); len(b) > 0 {
				from = b[0]
			}
		}
	}
	if !given && !d.cached {
		r.needTree()
		return r.diffWork(d, spec)
	}
	tree := flat{}
	if !from.isZero() {
		tree = r.flatten(r.treeOf(from))
	}
	if !d.cached {
		r.needTree()
		list := r.treeToWork(tree, spec.match)
		r.writeIndexQuietly()
		return r.finishDiff(list, d)
	}
	var list []change
	unmerged := map[string]bool{}
	for _, e := range r.index().entries {
		if e.stage() > 0 && spec.match(e.path) && !unmerged[e.path] {
			unmerged[e.path] = true
			list = append(list, change{status: 'U', new: treeEntry{mode: e.mode, name: e.path}})
		}
	}
	for _, c := range compareFlat(tree, r.flatIndex()) {
		if !unmerged[c.path()] {
			list = append(list, c)
		}
	}
	sortChanges(list)
	return r.finishDiff(spec.filter(list), d)
}

// diffWork compares the index with the work tree. Conflicts are shown against both sides at once.
func (r *repo) diffWork(d *diffOptions, spec *pathspec) int {
	all := r.workChanges(spec.match)
	r.writeIndexQuietly()
	if d.stage > 0 {
		return r.finishDiff(r.stageChanges(all, d.stage), d)
	}
	var plain []change
	found := false
	for i := range all {
		c := all[i]
		if c.status != 'U' || d.merges == "off" {
			plain = append(plain, c)
			continue
		}
		found = true
		f, ok := r.conflictFile(c.path())
		if d.nameOnly || d.nameStatus || d.stat || d.numstat || d.shortstat || d.raw || !ok {
			plain = append(plain, c)
			if (d.stat || d.numstat || d.shortstat || d.nameStatus || d.nameOnly || d.raw) && ok {
				plain = append(plain, r.oursChange(c.path())...)
			}
			continue
		}
		plain = append(plain, change{status: 'U', new: c.new, combined: f})
	}
	status := r.finishDiff(plain, d)
	if found && d.exitCode {
		return 1
	}
	return status
}

// oursChange compares our side of a conflict with the work tree.
func (r *repo) oursChange(p string) []change {
	for _, e := range r.index().entries {
		if e.path == p && e.stage() == 2 {
			e.flags = 0
			if c, ok := r.workChange(&e); ok {
				return []change{c}
			}
		}
	}
	return nil
}

// stageChanges compares one side of conflicts with the work tree.
func (r *repo) stageChanges(all []change, stage int) (list []change) {
	for _, c := range all {
		if c.status != 'U' {
			list = append(list, c)
			continue
		}
		list = append(list, c)
		for _, e := range r.index().entries {
			if e.path == c.path() && e.stage() == stage {
				e.flags = 0
				if w, ok := r.workChange(&e); ok {
					list = append(list, w)
				}
			}
		}
	}
	return list
}

// conflictFile is a path with conflicts as a file with two parents.
func (r *repo) conflictFile(p string) (*combinedFile, bool) {
	f := &combinedFile{path: p, isWork: true, old: make([]treeEntry, 2)}
	for _, e := range r.index().entries {
		if e.path == p && e.stage() >= 2 {
			f.old[e.stage()-2] = treeEntry{e.mode, p, e.id}
		}
	}
	if f.old[0].mode == 0 || f.old[1].mode == 0 {
		return nil, false
	}
	a, err := r.t.Lstat(r.file(p))
	if err != nil || a.Mode.IsDir() {
		return f, true
	}
	data, err := r.workData(p, a)
	r.must(err)
	f.new, f.data = treeEntry{mode: r.fileMode(a, modeFile), name: p}, content{true, data}
	return f, true
}

// finishDiff shows changes, and returns the status.
func (r *repo) finishDiff(list []change, d *diffOptions) int {
	list = r.pickaxe(r.prepare(list, d), d)
	for i := range list {
		list[i].old.name, list[i].new.name = strings.TrimPrefix(list[i].old.name, d.relative), strings.TrimPrefix(list[i].new.name, d.relative)
	}
	if d.check {
		return r.checkSpace(list)
	}
	if d.space != spaceAll || d.blank {
		list = r.dropSame(list, d)
	}
	r.showChanges(list, d)
	if d.exitCode && len(list) > 0 {
		return 1
	}
	return 0
}

// dropSame leaves out files that only differ in ways that are ignored.
func (r *repo) dropSame(list []change, d *diffOptions) []change {
	if d.patch && !d.exitCode {
		return list
	}
	var out []change
	for i := range list {
		c := &list[i]
		if c.status == 'M' && c.old.mode == c.new.mode {
			a, b := r.sideData(c, 0), r.sideData(c, 1)
			if !isBinary(a) && !isBinary(b) && len(r.hunksOf(lines(a), lines(b), d)) == 0 && (d.exitCode || d.stat || d.numstat || d.shortstat) {
				continue
			}
		}
		out = append(out, *c)
	}
	return out
}

// hunksOf compares lines with the options of a diff.
func (r *repo) hunksOf(a, b [][]byte, d *diffOptions) []hunk {
	hunks := diffLines(a, b, d.space, r.step)
	if !d.blank {
		return hunks
	}
	blank := func(list [][]byte) bool {
		for _, l := range list {
			if len(bytes.TrimSpace(l)) > 0 && d.space != spaceAll || d.space == spaceAll && len(bytes.TrimRight(l, "\r\n")) > 0 {
				return false
			}
		}
		return true
	}
	out := hunks[:0]
	for _, h := range hunks {
		if !blank(a[h.a0:h.a1]) || !blank(b[h.b0:h.b1]) {
			out = append(out, h)
		}
	}
	return out
}

// checkSpace warns about blanks at the ends of added lines and about conflict markers.
func (r *repo) checkSpace(list []change) int {
	status := 0
	for i := range list {
		c := &list[i]
		if c.new.mode == 0 || c.status == 'U' {
			continue
		}
		a, b := lines(r.sideData(c, 0)), lines(r.sideData(c, 1))
		if isBinary(r.sideData(c, 1)) {
			continue
		}
		for _, h := range diffLines(a, b, spaceAll, r.step) {
			for k := h.b0; k < h.b1; k++ {
				status = max(status, r.checkLine(r.quote(c.new.name), k+1, b[k]))
			}
			if h.b1 == len(b) && h.b1 > h.b0 && len(bytes.TrimSpace(b[len(b)-1])) == 0 {
				k := len(b)
				for k > h.b0 && len(bytes.TrimSpace(b[k-1])) == 0 {
					k--
				}
				r.printf("%s:%d: new blank line at EOF.\n", r.quote(c.new.name), k+1)
				status = 2
			}
		}
	}
	return status
}

func (r *repo) checkLine(name string, n int, line []byte) int {
	text := strings.TrimSuffix(string(line), "\n")
	for _, m := range []string{"<<<<<<<", "=======", ">>>>>>>", "|||||||"} {
		if rest, ok := strings.CutPrefix(text, m); ok && (rest == "" || rest[0] == ' ') {
			r.printf("%s:%d: leftover conflict marker\n", name, n)
			return 2
		}
	}
	bad := ""
	if strings.TrimRight(text, " \t\r\v\f") != text && strings.TrimRight(text, " \t\r\v\f") != "" || text != "" && strings.TrimSpace(text) == "" {
		bad = "trailing whitespace"
	}
	indent := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
	if strings.Contains(indent, " \t") {
		if bad != "" {
			bad += ", "
		}
		bad += "space before tab in indent"
	}
	if bad == "" {
		return 0
	}
	r.printf("%s:%d: %s.\n+%s\n", name, n, bad, text)
	return 2
}

// diffNoIndex compares two files or folders, wherever they are.
func (r *repo) diffNoIndex(d *diffOptions, o *options) int {
	list := o.operands()
	if len(list) != 2 {
		if r.dir == "" {
			r.say("warning: Not a git repository. Use --no-index to compare two paths outside a working tree")
		}
		r.die(129, "usage: git diff --no-index [<options>] <path> <path>")
	}
	if !d.formatted() && !d.quiet {
		d.patch = true
	}
	a, b := list[0], list[1]
	sa, err := r.t.Stat(a)
	if err != nil && a != "-" && a != "/dev/null" {
		r.die(1, "error: Could not access '%s'", a)
	}
	sb, err := r.t.Stat(b)
	if err != nil && b != "-" && b != "/dev/null" {
		r.die(1, "error: Could not access '%s'", b)
	}
	if sa.Mode.IsDir() != sb.Mode.IsDir() {
		if sa.Mode.IsDir() {
			a = path.Join(a, path.Base(b))
		} else {
			b = path.Join(b, path.Base(a))
		}
	}
	var changes []change
	r.compareOutside(a, b, &changes, 0)
	changes = r.prepare(changes, d)
	r.showChanges(changes, d)
	if len(changes) > 0 {
		return 1
	}
	return 0
}

// compareOutside compares two paths, and folders by what is in them.
func (r *repo) compareOutside(a, b string, list *[]change, depth int) {
	if depth > maxDepth {
		return
	}
	names := func(dir string) (set map[string]bool, isDir bool) {
		st, err := r.t.Stat(dir)
		if err != nil || !st.Mode.IsDir() {
			return nil, false
		}
		set = map[string]bool{}
		entries, err := r.t.ReadDir(dir)
		if err != nil {
			r.die(1, "error: Could not access '%s'", dir)
		}
		for _, e := range entries {
			set[e.Name] = true
		}
		return set, true
	}
	na, da := names(a)
	nb, db := names(b)
	if da || db {
		all := map[string]bool{}
		for n := range na {
			all[n] = true
		}
		for n := range nb {
			all[n] = true
		}
		sorted := make([]string, 0, len(all))
		for n := range all {
			sorted = append(sorted, n)
		}
		sort.Strings(sorted)
		for _, n := range sorted {
			x, y := path.Join(a, n), path.Join(b, n)
			if !na[n] {
				x = "/dev/null"
			}
			if !nb[n] {
				y = "/dev/null"
			}
			r.compareOutside(x, y, list, depth+1)
		}
		return
	}
	ea, ca := r.outsideFile(a)
	eb, cb := r.outsideFile(b)
	if ea.mode == 0 && eb.mode == 0 || ea.mode == eb.mode && bytes.Equal(ca.data, cb.data) {
		return
	}
	c := change{status: statusOf(ea, eb), old: ea, new: eb, data: [2]content{ca, cb}}
	*list = append(*list, c)
}

func (r *repo) outsideFile(p string) (e treeEntry, c content) {
	if p == "/dev/null" {
		return e, content{have: true}
	}
	e = treeEntry{mode: modeFile, name: strings.TrimPrefix(p, "/")}
	var data []byte
	var err error
	if p == "-" {
		data, err = r.t.ReadFile("-", maxObject)
	} else {
		a, e2 := r.t.Lstat(p)
		if e2 != nil {
			r.die(1, "error: Could not access '%s'", p)
		}
		if e.mode = r.fileMode(a, 0); a.Mode.IsSymlink() {
			var s string
			s, err = r.t.Readlink(p)
			data = []byte(s)
		} else {
			data, err = r.t.ReadFile(p, maxObject)
		}
	}
	if err != nil {
		r.die(1, "error: Could not access '%s'", p)
	}
	e.id = hashObject(blobObj, data)
	return e, content{true, data}
}

func (r *repo) cmdShow(args []string) int {
	l := r.newLogger()
	l.w.noWalk, l.w.unsorted, l.always = true, true, true
	paths := l.parse("show", args)
	if !l.d.formatted() {
		l.d.patch = true
		l.d.implied = false
	}
	if l.d.merges == "" {
		l.d.merges = "cc"
	}
	if !l.revs.given {
		branch, id := r.head()
		if id.isZero() {
			r.fatal("your current branch '%s' does not have any commits yet", shortRef(branch))
		}
		l.revs.add(id, id, false, "HEAD")
	}
	if len(paths) > 0 {
		l.w.paths = r.pathspec(paths)
	}
	if l.revs.dots > 0 || len(l.revs.exclude) > 0 {
		l.w.noWalk = false
		l.show(l.list())
		return 0
	}
	for i := range l.revs.raw {
		l.showObject(l.revs.raw[i], l.revs.names[i], 0)
	}
	return 0
}

// showObject shows whatever a name stands for.
func (l *logger) showObject(id oid, name string, depth int) {
	r := l.r
	k, data, err := r.readObject(id)
	if err != nil {
		r.fatal("bad object %s", name)
	}
	switch k {
	case blobObj:
		r.t.Out.Write(data)
	case treeObj:
		if l.started {
			r.printf("\n")
		}
		l.started = true
		r.printf("tree %s\n\n", name)
		for _, e := range r.readTree(id) {
			if l.w.paths != nil && !l.w.paths.match(e.name) {
				continue
			}
			if e.isTree() {
				e.name += "/"
			}
			r.printf("%s\n", r.quote(e.name))
		}
	case tagObj:
		t, err := parseTag(data)
		if err != nil || depth > 20 {
			r.fatal("bad object %s", name)
		}
		if l.started {
			r.printf("\n")
		}
		l.started = true
		r.printf("tag %s\n", t.name)
		if t.tagger.name != "" || t.tagger.email != "" {
			r.printf("Tagger: %s <%s>\nDate:   %s\n", t.tagger.name, t.tagger.email, r.formatDate(t.tagger.when, l.f.date))
		}
		r.printf("\n%s", t.message)
		if t.kind == commitObj {
			l.started = true
		}
		l.showObject(t.object, t.object.String(), depth+1)
	case commitObj:
		c := r.readCommit(id)
		n := &node{commit: c, follow: r.parents(c)}
		l.showOne(n, false)
	}
}
