package git

import (
	"path"
	"sort"
	"strings"
)

// merged is the outcome of merging two trees with a base.
type merged struct {
	files    flat                    // without conflicts
	stages   map[string][4]treeEntry // of paths with conflicts; 1 base, 2 ours, 3 theirs
	work     map[string]workFile     // what the work tree gets for those
	messages []mergeMessage
}

type workFile struct {
	mode uint32
	data []byte
}

type mergeMessage struct{ path, text string }

// merger merges three trees.
type merger struct {
	r                  *repo
	labels             [3]string // ours, theirs, base
	favor              string    // ours, theirs
	style              string    // diff3, zdiff3
	renames            bool
	space              spaceMode
	out                *merged
	base, ours, theirs flat
	virtual            bool // conflicts become part of the result, as for the base of a criss-cross merge
	origin             map[string][3]string
	longer             int // characters that markers have more than seven
}

func (r *repo) newMerger(labels [3]string) *merger {
	style, _ := r.config().get("merge.conflictstyle")
	m := &merger{r: r, labels: labels, style: style, renames: true}
	if v, ok := r.config().get("merge.renames"); ok {
		if b, isBool := parseBool(v); isBool {
			m.renames = b
		}
	}
	return m
}

func (m *merger) say(p, text string) { m.out.messages = append(m.out.messages, mergeMessage{p, text}) }

// merge merges trees.
func (m *merger) merge(base, ours, theirs oid) *merged {
	return m.mergeFlat(m.r.flatten(base), m.r.flatten(ours), m.r.flatten(theirs))
}

func (m *merger) mergeFlat(base, ours, theirs flat) *merged {
	m.out = &merged{files: flat{}, stages: map[string][4]treeEntry{}, work: map[string]workFile{}}
	m.base, m.ours, m.theirs = base, ours, theirs
	m.origin = map[string][3]string{}
	paths := map[string][3]treeEntry{} // base, ours, theirs
	for i, f := range []flat{base, ours, theirs} {
		for p, e := range f {
			t := paths[p]
			t[i] = e
			paths[p] = t
		}
	}
	if m.renames {
		m.applyRenames(paths)
	}
	names := make([]string, 0, len(paths))
	for p := range paths {
		names = append(names, p)
	}
	sort.Strings(names)
	for _, p := range names {
		m.r.step(1)
		m.path(p, paths[p])
	}
	m.fileFolder()
	sort.SliceStable(m.out.messages, func(i, j int) bool { return m.out.messages[i].path < m.out.messages[j].path })
	return m.out
}

// renamesOf finds a side's renames: old path → new path.
func (m *merger) renamesOf(side, other flat) map[string]string {
	var list []change
	for _, c := range compareFlat(m.base, side) {
		// A rename only matters where the other side touched the file, or the new name.
		if c.status == 'D' || c.status == 'A' {
			list = append(list, c)
		}
	}
	found := map[string]string{}
	for _, c := range m.r.findRenames(list, maxScore/2) {
		if c.status == 'R' {
			found[c.old.name] = c.new.name
		}
	}
	return found
}

// applyRenames makes what was renamed on a side one path.
func (m *merger) applyRenames(paths map[string][3]treeEntry) {
	ro, rt := m.renamesOf(m.ours, m.theirs), m.renamesOf(m.theirs, m.ours)
	olds := map[string]bool{}
	for p := range ro {
		olds[p] = true
	}
	for p := range rt {
		olds[p] = true
	}
	sorted := make([]string, 0, len(olds))
	for p := range olds {
		sorted = append(sorted, p)
	}
	sort.Strings(sorted)
	for _, old := range sorted {
		a, inOurs := ro[old]
		b, inTheirs := rt[old]
		switch {
		case inOurs && inTheirs && a == b:
			t := paths[a]
			paths[a] = [3]treeEntry{m.base[old], t[1], t[2]}
			m.origin[a] = [3]string{old, a, a}
			delete(paths, old)
		case inOurs && inTheirs:
			m.bothRenamed(paths, old, a, b)
		case inOurs:
			m.oneRenamed(paths, old, a, 1)
		default:
			m.oneRenamed(paths, old, b, 2)
		}
	}
}

// oneRenamed handles a rename on one side only (1 ours, 2 theirs).
func (m *merger) oneRenamed(paths map[string][3]treeEntry, old, to string, side int) {
	other := 3 - side
	was, t := paths[old], paths[to]
	if was[other].mode == 0 {
		// Renamed here, deleted there.
		names := [3]string{"", m.labels[0], m.labels[1]}
		if t[other].mode != 0 {
			return
		}
		m.say(to, "CONFLICT (rename/delete): "+old+" renamed to "+to+" in "+names[side]+", but deleted in "+names[other]+".")
		var st [4]treeEntry
		st[1] = m.base[old]
		st[side+1] = t[side]
		m.conflict(to, st, t[side])
		delete(paths, old)
		delete(paths, to)
		if t[side].id != m.base[old].id {
			m.say(to, "CONFLICT (modify/delete): "+to+" deleted in "+names[other]+" and modified in "+names[side]+".  Version "+names[side]+" of "+to+" left in tree.")
		}
		return
	}
	if t[other].mode != 0 {
		return // the new name exists on the other side: two files, compared as such
	}
	t[0], t[other] = m.base[old], was[other]
	paths[to] = t
	o := [3]string{old, to, old}
	if side == 2 {
		o = [3]string{old, old, to}
	}
	m.origin[to] = o
	delete(paths, old)
}

// bothRenamed handles a file that the sides renamed differently.
func (m *merger) bothRenamed(paths map[string][3]treeEntry, old, a, b string) {
	ea, eb := m.ours[a], m.theirs[b]
	m.longer = 1
	data, mode, _ := m.content(old, m.base[old], ea, eb, [3]string{old, a, b})
	m.longer = 0
	m.say(old, "CONFLICT (rename/rename): "+old+" renamed to "+a+" in "+m.labels[0]+" and to "+b+" in "+m.labels[1]+".")
	merge := treeEntry{mode: mode, id: m.r.writeObject(blobObj, data)}
	m.out.stages[old] = [4]treeEntry{1: m.base[old]}
	ea.name, eb.name = a, b
	x, y := merge, merge
	x.name, y.name = a, b
	m.out.stages[a] = [4]treeEntry{2: x}
	m.out.stages[b] = [4]treeEntry{3: y}
	m.out.work[a], m.out.work[b] = workFile{mode, data}, workFile{mode, data}
	delete(paths, old)
	delete(paths, a)
	delete(paths, b)
}

// conflict notes a path whose work tree file is one side's.
func (m *merger) conflict(p string, st [4]treeEntry, keep treeEntry) {
	if m.virtual {
		if keep.mode != 0 {
			keep.name = p
			m.out.files[p] = keep
		}
		return
	}
	m.out.stages[p] = st
	if keep.mode != 0 {
		m.out.work[p] = workFile{keep.mode, m.r.blobOf(keep)}
	}
}

func same(a, b treeEntry) bool { return a.id == b.id && a.mode == b.mode }

// path merges one path.
func (m *merger) path(p string, t [3]treeEntry) {
	b, o, h := t[0], t[1], t[2]
	take := func(e treeEntry) {
		if e.mode != 0 {
			e.name = p
			m.out.files[p] = e
		}
	}
	switch {
	case same(o, h):
		take(o)
		return
	case same(b, o):
		take(h)
		return
	case same(b, h):
		take(o)
		return
	}
	if o.mode == 0 || h.mode == 0 {
		m.modifyDelete(p, b, o, h)
		return
	}
	if b.mode != 0 && o.id == h.id {
		// Only modes differ: the side that changed it wins.
		if o.mode == b.mode {
			o = h
		}
		take(o)
		return
	}
	st := [4]treeEntry{1: b, 2: o, 3: h}
	if o.mode&0o170000 != h.mode&0o170000 {
		m.distinct(p, st)
		return
	}
	if o.mode == modeLink || o.mode == modeGitlink {
		kind := "content"
		if b.mode == 0 {
			kind = "add/add"
		}
		if o.mode == modeGitlink {
			kind = "submodule"
		}
		m.say(p, "CONFLICT ("+kind+"): Merge conflict in "+p)
		m.conflict(p, st, o)
		return
	}
	if b.mode&0o170000 != 0o100000 {
		b = treeEntry{}
	}
	names := m.origin[p]
	if names[1] == "" {
		names = [3]string{p, p, p}
	}
	data, mode, clean := m.content(p, b, o, h, names)
	if clean || m.virtual {
		m.out.files[p] = treeEntry{mode: mode, name: p, id: m.r.writeObject(blobObj, data)}
		return
	}
	kind := "content"
	if b.mode == 0 {
		kind = "add/add"
	}
	m.say(p, "CONFLICT ("+kind+"): Merge conflict in "+p)
	m.out.stages[p] = st
	m.out.work[p] = workFile{mode, data}
}

func (m *merger) modifyDelete(p string, b, o, h treeEntry) {
	gone, kept, keep := m.labels[0], m.labels[1], h
	if h.mode == 0 {
		gone, kept, keep = m.labels[1], m.labels[0], o
	}
	if b.mode == 0 {
		keep.name = p
		m.out.files[p] = keep
		return
	}
	m.say(p, "CONFLICT (modify/delete): "+p+" deleted in "+gone+" and modified in "+kept+".  Version "+kept+" of "+p+" left in tree.")
	m.conflict(p, [4]treeEntry{1: b, 2: o, 3: h}, keep)
}

// distinct handles a path that is a file on one side and a link on the other.
func (m *merger) distinct(p string, st [4]treeEntry) {
	x, y := m.free(p, m.labels[0]), m.free(p, m.labels[1])
	m.say(p, "CONFLICT (distinct types): "+p+" had different types on each side; renamed both of them so each can be recorded somewhere.")
	m.conflict(x, [4]treeEntry{1: {}, 2: st[2]}, st[2])
	m.conflict(y, [4]treeEntry{1: {}, 3: st[3]}, st[3])
}

// free is a name beside p for one side's version.
func (m *merger) free(p, label string) string {
	return p + "~" + strings.ReplaceAll(label, "/", "_")
}

// content merges two versions of a file.
func (m *merger) content(p string, b, o, h treeEntry, names [3]string) (data []byte, mode uint32, clean bool) {
	mode = o.mode
	if b.mode == o.mode {
		mode = h.mode
	}
	clean = b.mode == 0 && o.mode == h.mode || b.mode != 0
	switch {
	case o.id == h.id || b.mode != 0 && h.id == b.id:
		return m.r.blobOf(o), mode, clean
	case b.mode != 0 && o.id == b.id:
		return m.r.blobOf(h), mode, clean
	}
	m.say(p, "Auto-merging "+p)
	var base []byte
	if b.mode != 0 {
		base = m.r.blobOf(b)
	}
	x, y := m.r.blobOf(o), m.r.blobOf(h)
	if isBinary(x) || isBinary(y) || isBinary(base) || m.r.mergeDriver(p) == "binary" {
		if m.favor == "theirs" {
			return y, mode, true
		}
		if m.favor != "ours" && !m.virtual {
			m.r.say("warning: Cannot merge binary files: %s (%s vs. %s)", p, m.labels[0], m.labels[1])
		}
		return x, mode, m.favor == "ours"
	}
	labels := m.labels
	if names[1] != names[2] {
		labels[0] += ":" + names[1]
		labels[1] += ":" + names[2]
	}
	if names[0] != names[1] || names[0] != names[2] {
		if labels[2] != "" {
			labels[2] += ":" + names[0]
		}
	}
	favor := m.favor
	if d := m.r.mergeDriver(p); d == "union" || d == "ours" {
		favor = d
	}
	style := m.style
	longer := m.longer
	if m.virtual {
		longer += 2
	}
	out, conflicts := merge3With(base, x, y, labels, style == "diff3" || style == "zdiff3", favor, 7+longer, m.r.step)
	return out, mode, clean && conflicts == 0
}

// mergeDriver is what .gitattributes says of how to merge a path.
func (r *repo) mergeDriver(p string) string {
	if r.root == "" {
		return ""
	}
	v := r.attributes(p)["merge"]
	if v == "unset" {
		return "binary"
	}
	return v
}

// fileFolder moves files that stand where a folder is needed.
func (m *merger) fileFolder() {
	dirs := map[string]bool{}
	add := func(p string) {
		for d := path.Dir(p); d != "." && !dirs[d]; d = path.Dir(d) {
			dirs[d] = true
		}
	}
	for p := range m.out.files {
		add(p)
	}
	for p := range m.out.work {
		add(p)
	}
	for p := range dirs {
		if e, ok := m.out.files[p]; ok {
			side, label := 2, m.labels[0]
			if _, ours := m.ours[p]; !ours {
				side, label = 3, m.labels[1]
			}
			to := m.free(p, label)
			m.say(p, "CONFLICT (file/directory): directory in the way of "+p+" from "+label+"; moving it to "+to+" instead.")
			delete(m.out.files, p)
			var st [4]treeEntry
			st[side] = e
			m.conflict(to, st, e)
		} else if w, ok := m.out.work[p]; ok {
			label := m.labels[0]
			if st := m.out.stages[p]; st[2].mode == 0 {
				label = m.labels[1]
			}
			to := m.free(p, label)
			m.out.stages[to], m.out.work[to] = m.out.stages[p], w
			delete(m.out.stages, p)
			delete(m.out.work, p)
		}
	}
}

func (m *merged) clean() bool { return len(m.stages) == 0 }

// conflicts are the paths with conflicts.
func (m *merged) conflicts() []string {
	list := make([]string, 0, len(m.stages))
	for p := range m.stages {
		list = append(list, p)
	}
	sort.Strings(list)
	return list
}

// show prints the messages.
func (m *merged) show(r *repo) {
	for _, s := range m.messages {
		r.printf("%s\n", s.text)
	}
}

// virtualBase is the tree to merge against: that of the only best common ancestor, or several merged with each other.
func (r *repo) virtualBase(bases []oid, depth int) (tree oid, label string) {
	switch {
	case len(bases) == 0:
		return emptyTree, "empty tree"
	case len(bases) == 1:
		return r.readCommit(bases[0]).tree, r.abbrev(bases[0])
	}
	// Oldest first, as git does.
	list := append([]oid(nil), bases...)
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	tree = r.readCommit(list[0]).tree
	for i, id := range list[1:] {
		if depth > 10 {
			break
		}
		below, _ := r.virtualBase(r.mergeBases(list[i], id), depth+1)
		m := r.newMerger([3]string{"Temporary merge branch 1", "Temporary merge branch 2", "merged common ancestors"})
		m.virtual = true
		out := m.merge(below, tree, r.readCommit(id).tree)
		tree = r.writeFlat(out.files)
	}
	return tree, "merged common ancestors"
}

// writeFlat writes the trees of a list of files.
func (r *repo) writeFlat(f flat) oid {
	var list []entry
	for _, p := range f.paths() {
		list = append(list, entry{mode: f[p].mode, id: f[p].id, path: p})
	}
	id, _ := r.writeTrees(list, "")
	return id
}

// apply brings index and work tree from ours to the outcome. It ends the command if that would lose local changes.
func (m *merged) apply(r *repo, ours flat, verb string, fail func()) {
	target := flat{}
	for p, e := range m.files {
		target[p] = e
	}
	for p, w := range m.work {
		target[p] = treeEntry{mode: w.mode, name: p, id: hashObject(blobObj, w.data)}
	}
	changed, inWay := r.conflictsOf(ours, target)
	// A path with conflicts must be as it was, too, even if the work tree stays.
	if len(changed)+len(inWay) > 0 {
		r.refusal(changed, inWay, verb)
		fail()
		r.t.Exit(1)
	}
	plain := flat{}
	for p, e := range m.files {
		plain[p] = e
	}
	for p := range m.work {
		if e, ok := ours[p]; ok {
			plain[p] = e
		}
	}
	r.goTo(ours, plain)
	x := r.index()
	for _, p := range m.conflicts() {
		x.remove(p)
		for s, e := range m.stages[p] {
			if e.mode != 0 {
				x.put(entry{mode: e.mode, id: e.id, path: p, flags: uint16(s) << 12})
			}
		}
		if w, ok := m.work[p]; ok {
			if w.mode == modeGitlink {
				continue
			}
			if _, err := r.writeWork(p, w.mode, w.data); err != nil {
				r.say("error: unable to create file %s: %s", p, strerror(err))
			}
		}
	}
	x.changed = true
}
