package git

import (
	"container/heap"
	"sort"
	"strings"
	"time"
)

// walkOptions say which commits a walk yields, and in which order.
type walkOptions struct {
	firstParent, topo, dateOrder, authorOrder, reverse bool
	fullHistory, rewrite, noWalk, boundary, unsorted   bool
	paths                                              *pathspec
	since, until                                       time.Time
	keep                                               func(c *commit) bool // what is shown of those that the walk finds
	skip, max                                          int                  // max < 0 is no limit
}

// node is a commit in a walk with the parents that are followed: fewer or others than its own where paths limit it.
type node struct {
	*commit
	follow []oid
	hidden bool // the same as a parent, for the paths
	bound  bool // only a boundary: excluded, shown for its child
	order  int
	flag   byte // '<' or '>' of a symmetric difference
	log    *loggedNode
	from   oid // the parent whose difference follows, with -m
}

// walker yields commits by their date, youngest first.
type walker struct {
	r        *repo
	o        walkOptions
	queue    byDate
	seen     map[oid]bool
	excluded map[oid]bool
	visible  map[oid]bool // what passed the filters, before skip and max
	count    int
}

// byDate is a heap of commits, youngest first; of equal age the first found comes first.
type byDate struct {
	list   []*node
	author bool
}

func (q *byDate) Len() int { return len(q.list) }
func (q *byDate) Less(i, j int) bool {
	a, b := q.list[i], q.list[j]
	ta, tb := a.committer.when.Unix(), b.committer.when.Unix()
	if q.author {
		ta, tb = a.author.when.Unix(), b.author.when.Unix()
	}
	if ta != tb {
		return ta > tb
	}
	return a.order < b.order
}
func (q *byDate) Swap(i, j int) { q.list[i], q.list[j] = q.list[j], q.list[i] }
func (q *byDate) Push(x any)    { q.list = append(q.list, x.(*node)) }
func (q *byDate) Pop() any {
	n := len(q.list) - 1
	x := q.list[n]
	q.list = q.list[:n]
	return x
}

// walk begins a walk over all ancestors of tips, themselves included, that aren't ancestors of excluded ones.
func (r *repo) walk(tips, exclude []oid) *walker {
	return r.walkWith(tips, exclude, walkOptions{max: -1})
}

func (r *repo) walkWith(tips, exclude []oid, o walkOptions) *walker {
	w := &walker{r: r, o: o, seen: map[oid]bool{}, excluded: r.ancestors(exclude)}
	for _, id := range tips {
		w.push(id)
	}
	return w
}

// ancestors returns all ancestors of commits, themselves included.
func (r *repo) ancestors(tips []oid) map[oid]bool {
	set := make(map[oid]bool, len(tips))
	todo := append([]oid(nil), tips...)
	for _, id := range tips {
		set[id] = true
	}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		r.step(1)
		for _, p := range r.parents(r.readCommit(id)) {
			if !set[p] {
				set[p] = true
				todo = append(todo, p)
			}
		}
	}
	return set
}

// parents are those of a commit, none where a shallow clone ends.
func (r *repo) parents(c *commit) []oid {
	if len(c.parents) > 0 && r.shallow()[c.id] {
		return nil
	}
	return c.parents
}

// shallow is the set of commits whose parents weren't fetched.
func (r *repo) shallow() map[oid]bool {
	if r.shallowSet == nil {
		r.shallowSet = map[oid]bool{}
		b, _ := r.t.ReadFile(r.common+"/shallow", maxSmall)
		for _, line := range strings.Fields(string(b)) {
			if id, ok := parseOID(line); ok {
				r.shallowSet[id] = true
			}
		}
	}
	return r.shallowSet
}

func (w *walker) push(id oid) {
	if w.seen[id] || w.excluded[id] {
		return
	}
	w.seen[id] = true
	n := &node{commit: w.r.readCommit(id), order: w.count}
	w.count++
	heap.Push(&w.queue, n)
}

// nextNode yields the next commit, hidden ones too.
func (w *walker) nextNode() *node {
	if w.queue.Len() == 0 {
		return nil
	}
	w.r.step(1)
	n := heap.Pop(&w.queue).(*node)
	w.simplify(n)
	if !w.o.noWalk {
		for _, p := range n.follow {
			w.push(p)
		}
	}
	return n
}

// next yields the next commit.
func (w *walker) next() *commit {
	for n := w.nextNode(); n != nil; n = w.nextNode() {
		if !n.hidden {
			return n.commit
		}
	}
	return nil
}

// simplify decides which parents to follow and whether the commit changes the paths.
func (w *walker) simplify(n *node) {
	n.follow = w.r.parents(n.commit)
	if w.o.firstParent && len(n.follow) > 1 {
		n.follow = n.follow[:1]
	}
	if w.o.paths == nil || w.o.paths.empty() {
		return
	}
	if len(n.follow) == 0 {
		n.hidden = w.r.sameFor(oid{}, n.tree, w.o.paths)
		return
	}
	same := 0
	for _, p := range n.follow {
		if w.r.sameFor(w.r.readCommit(p).tree, n.tree, w.o.paths) {
			if !w.o.fullHistory {
				n.follow, n.hidden = []oid{p}, true
				return
			}
			same++
		}
	}
	if same == len(n.follow) || same > 0 && len(n.follow) > 1 && !w.o.rewrite {
		n.hidden = same > 0
	}
}

// sameFor reports whether two trees are the same as far as paths are concerned.
func (r *repo) sameFor(a, b oid, paths *pathspec) bool {
	if a == b {
		return true
	}
	same := true
	for _, c := range r.compareTreesFor(a, b, paths) {
		if paths.match(c.path()) {
			same = false
			break
		}
	}
	return same
}

// commits runs the whole walk and returns what is shown, in order.
func (w *walker) commits() []*node {
	var list []*node
	byID := map[oid]*node{}
	o := &w.o
	lazy := !o.topo && !o.dateOrder && !o.authorOrder && !o.reverse && !o.rewrite && !o.boundary
	for n := w.nextNode(); n != nil; n = w.nextNode() {
		if !o.since.IsZero() && n.committer.when.Before(o.since) {
			n.hidden = true
			continue
		}
		byID[n.id] = n
		list = append(list, n)
		if lazy && o.max >= 0 && w.shown(list[len(list)-1:]) {
			if o.skip--; o.skip < 0 {
				if o.max--; o.max < 0 {
					list = list[:len(list)-1]
					o.max = 0
					break
				}
			} else {
				list = list[:len(list)-1]
			}
		}
	}
	if o.noWalk && o.unsorted {
		sort.SliceStable(list, func(i, j int) bool { return list[i].order < list[j].order })
	}
	if o.topo || o.dateOrder || o.authorOrder {
		list = w.topological(list, byID)
	}
	if o.rewrite {
		rewriteParents(list, byID)
	}
	out := list[:0]
	for _, n := range list {
		if w.shown([]*node{n}) {
			out = append(out, n)
		}
	}
	if lazy && o.max >= 0 {
		return out
	}
	w.visible = make(map[oid]bool, len(out))
	for _, n := range out {
		w.visible[n.id] = true
	}
	out = out[min(max(o.skip, 0), len(out)):]
	if o.max >= 0 && len(out) > o.max {
		out = out[:o.max]
	}
	if o.boundary {
		out = w.addBoundary(out)
	}
	if o.reverse {
		for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
			out[i], out[j] = out[j], out[i]
		}
	}
	return out
}

// addBoundary appends the excluded parents of what is shown.
func (w *walker) addBoundary(list []*node) []*node {
	done := map[oid]bool{}
	for _, n := range list {
		done[n.id] = true
	}
	for _, n := range list[:len(list):len(list)] {
		for _, p := range n.follow {
			if w.excluded[p] && !done[p] {
				done[p] = true
				c := w.r.readCommit(p)
				list = append(list, &node{commit: c, follow: w.r.parents(c), bound: true})
			}
		}
	}
	return list
}

func (w *walker) shown(list []*node) bool {
	n := list[0]
	if n.hidden || !w.o.until.IsZero() && n.committer.when.After(w.o.until) {
		return false
	}
	return w.o.keep == nil || w.o.keep(n.commit)
}

// topological orders commits so that none comes before its children; else by date, or with branches kept together.
func (w *walker) topological(list []*node, byID map[oid]*node) []*node {
	degree := make(map[oid]int, len(list))
	for _, n := range list {
		for _, p := range n.follow {
			degree[p]++
		}
	}
	var out, stack []*node
	q := &byDate{author: w.o.authorOrder}
	dated := w.o.dateOrder || w.o.authorOrder
	add := func(n *node) {
		if dated {
			n.order = len(out) + q.Len()
			heap.Push(q, n)
		} else {
			stack = append(stack, n)
		}
	}
	for i := range list {
		n := list[len(list)-1-i]
		if dated {
			n = list[i]
		}
		if degree[n.id] == 0 {
			add(n)
		}
	}
	for len(stack)+q.Len() > 0 {
		var n *node
		if dated {
			n = heap.Pop(q).(*node)
		} else {
			n = stack[len(stack)-1]
			stack = stack[:len(stack)-1]
		}
		out = append(out, n)
		for _, p := range n.follow {
			if degree[p]--; degree[p] == 0 && byID[p] != nil {
				add(byID[p])
			}
		}
	}
	return out
}

// rewriteParents makes hidden commits' ancestors the parents of those that are shown.
func rewriteParents(list []*node, byID map[oid]*node) {
	for _, n := range list {
		var out []oid
		for _, p := range n.follow {
			for byID[p] != nil && byID[p].hidden {
				if len(byID[p].follow) == 0 {
					p = oid{}
					break
				}
				p = byID[p].follow[0]
			}
			dup := p.isZero()
			for _, o := range out {
				dup = dup || o == p
			}
			if !dup {
				out = append(out, p)
			}
		}
		n.follow = out
	}
}

// mergeBases returns the best common ancestors of two commits, youngest first.
func (r *repo) mergeBases(a, b oid) []oid { return r.mergeBasesMany(a, []oid{b}) }

// mergeBasesMany returns the best common ancestors of one commit and any of others.
func (r *repo) mergeBasesMany(a oid, others []oid) []oid {
	for _, b := range others {
		if a == b {
			return []oid{a}
		}
	}
	const one, two, stale, result = 1, 2, 4, 8
	flags := map[oid]int{}
	q := &byDate{}
	count := 0
	push := func(id oid, f int) {
		flags[id] |= f
		heap.Push(q, &node{commit: r.readCommit(id), order: count})
		count++
	}
	push(a, one)
	for _, b := range others {
		push(b, two)
	}
	var found []oid
	live := func() bool {
		for _, n := range q.list {
			if flags[n.id]&stale == 0 {
				return true
			}
		}
		return false
	}
	for live() {
		r.step(1 + q.Len()/8)
		n := heap.Pop(q).(*node)
		f := flags[n.id] & (one | two | stale)
		if f == one|two {
			if flags[n.id]&result == 0 {
				flags[n.id] |= result
				found = append(found, n.id)
			}
			f |= stale
		}
		for _, p := range r.parents(n.commit) {
			if flags[p]&f != f {
				push(p, f)
			}
		}
	}
	var out []oid
	for _, id := range found {
		if flags[id]&stale == 0 || flags[id]&result != 0 {
			out = append(out, id)
		}
	}
	return r.independent(out)
}

// independent removes commits that are ancestors of others of the list.
func (r *repo) independent(list []oid) []oid {
	if len(list) < 2 {
		return list
	}
	var out []oid
	for i, id := range list {
		rest := append(append([]oid(nil), list[:i]...), list[i+1:]...)
		if !r.ancestors(rest)[id] {
			out = append(out, id)
		}
	}
	return out
}

// isAncestor reports whether a is b or an ancestor of it.
func (r *repo) isAncestor(a, b oid) bool {
	if a == b {
		return true
	}
	old := r.readCommit(a).committer.when
	seen := map[oid]bool{b: true}
	todo := []oid{b}
	for slack := 0; len(todo) > 0; {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		r.step(1)
		c := r.readCommit(id)
		// Clocks may be wrong by a little: follow some commits older than a, too.
		if c.committer.when.Before(old.Add(-24 * time.Hour)) {
			if slack++; slack > 10000 {
				return false
			}
		}
		for _, p := range r.parents(c) {
			if p == a {
				return true
			}
			if !seen[p] {
				seen[p] = true
				todo = append(todo, p)
			}
		}
	}
	return false
}

// aheadBehind counts the commits that only a has, and only b.
func (r *repo) aheadBehind(a, b oid) (ahead, behind int) {
	if a == b {
		return 0, 0
	}
	ina, inb := r.ancestors([]oid{a}), r.ancestors([]oid{b})
	for id := range ina {
		if !inb[id] {
			ahead++
		}
	}
	for id := range inb {
		if !ina[id] {
			behind++
		}
	}
	return ahead, behind
}
