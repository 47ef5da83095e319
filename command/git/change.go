package git

import (
	"bytes"
	"hash/maphash"
	"path"
	"sort"
)

// change is a file that differs between two sides. A mode of 0 means that there is no file.
type change struct {
	status   byte // A D M T R C U
	old, new treeEntry
	score    int // of a rename, in 60,000ths
	data     [2]content
	combined *combinedFile // of a conflict that is shown against both sides
}

// content is one side's bytes, read when needed.
type content struct {
	have bool
	data []byte
}

// path is the name that a change goes by.
func (c *change) path() string {
	if c.new.mode != 0 {
		return c.new.name
	}
	return c.old.name
}

// sideData returns the bytes of a side; those of the work tree are put there by whoever found the change.
func (r *repo) sideData(c *change, n int) []byte {
	if c.data[n].have {
		return c.data[n].data
	}
	e := c.old
	if n == 1 {
		e = c.new
	}
	switch e.mode {
	case 0:
		return nil
	case modeGitlink:
		return []byte("Subproject commit " + e.id.String() + "\n")
	}
	return r.read(e.id, blobObj)
}

// compareFlat lists the differences of two lists of files, by path.
func compareFlat(a, b flat) (list []change) {
	for p, ea := range a {
		eb, ok := b[p]
		switch {
		case !ok:
			list = append(list, change{status: 'D', old: ea})
		case ea.id != eb.id || ea.mode != eb.mode:
			list = append(list, change{status: modified(ea.mode, eb.mode), old: ea, new: eb})
		}
	}
	for p, eb := range b {
		if _, ok := a[p]; !ok {
			list = append(list, change{status: 'A', new: eb})
		}
	}
	sortChanges(list)
	return list
}

// modified is M, or T if the type of file changed.
func modified(a, b uint32) byte {
	if a&0o170000 != b&0o170000 {
		return 'T'
	}
	return 'M'
}

func sortChanges(list []change) {
	sort.SliceStable(list, func(i, j int) bool { return list[i].path() < list[j].path() })
}

// compareTrees lists the differences of two trees without reading what they share.
func (r *repo) compareTrees(a, b oid) []change { return r.compareTreesFor(a, b, nil) }

// compareTreesFor leaves out folders in which no path can match; what it lists may still not match.
func (r *repo) compareTreesFor(a, b oid, paths *pathspec) (list []change) {
	r.compareInto(a, b, "", &list, paths, 0)
	return list
}

func (r *repo) compareInto(a, b oid, dir string, list *[]change, paths *pathspec, depth int) {
	if a == b {
		return
	}
	if depth > maxDepth {
		r.fatal("tree %s is nested too deeply", b)
	}
	byName := func(id oid) map[string]treeEntry {
		m := map[string]treeEntry{}
		if !id.isZero() {
			for _, e := range r.readTree(id) {
				m[e.name] = e
			}
		}
		return m
	}
	ma, mb := byName(a), byName(b)
	names := make([]string, 0, len(ma)+len(mb))
	for n := range ma {
		names = append(names, n)
	}
	for n := range mb {
		if _, ok := ma[n]; !ok {
			names = append(names, n)
		}
	}
	sort.Strings(names)
	start := len(*list)
	for _, n := range names {
		ea, eb := ma[n], mb[n]
		if ea.id == eb.id && ea.mode == eb.mode {
			continue
		}
		p := dir + n
		var sa, sb oid
		if ea.isTree() {
			sa, ea = ea.id, treeEntry{}
		}
		if eb.isTree() {
			sb, eb = eb.id, treeEntry{}
		}
		ea.name, eb.name = p, p
		switch {
		case ea.mode != 0 && eb.mode != 0:
			*list = append(*list, change{status: modified(ea.mode, eb.mode), old: ea, new: eb})
		case ea.mode != 0:
			*list = append(*list, change{status: 'D', old: ea})
		case eb.mode != 0:
			*list = append(*list, change{status: 'A', new: eb})
		}
		if !sa.isZero() || !sb.isZero() {
			if paths == nil || paths.mayHold(p) {
				r.compareInto(sa, sb, p+"/", list, paths, depth+1)
			}
		}
	}
	sortChanges((*list)[start:])
}

// maxScore is a perfect match; half of it makes a rename.
const maxScore = 60000

// maxPairs bounds how many pairs are compared for renames.
const maxPairs = 1_000_000

// findRenames turns deletions and additions of similar content into renames. minScore is in 60,000ths.
func (r *repo) findRenames(list []change, minScore int) []change {
	var gone, come []int
	for i := range list {
		switch {
		case list[i].status == 'D' && list[i].old.mode != modeGitlink:
			gone = append(gone, i)
		case list[i].status == 'A' && list[i].new.mode != modeGitlink:
			come = append(come, i)
		}
	}
	if len(gone) == 0 || len(come) == 0 {
		return list
	}
	from := make(map[int]int) // addition → deletion
	used := make(map[int]bool)
	r.exactRenames(list, gone, come, from, used)
	if len(gone)*len(come) <= maxPairs {
		r.similarRenames(list, gone, come, from, used, minScore)
	}
	if len(from) == 0 {
		return list
	}
	out := make([]change, 0, len(list))
	for i := range list {
		c := list[i]
		if used[i] {
			continue
		}
		if g, ok := from[i]; ok {
			c.status, c.old, c.data[0] = 'R', list[g].old, list[g].data[0]
			c.score = list[i].score
		}
		out = append(out, c)
	}
	return out
}

// exactRenames matches equal content; of several the one with the same file name wins, then the first.
func (r *repo) exactRenames(list []change, gone, come []int, from map[int]int, used map[int]bool) {
	byID := map[oid][]int{}
	for _, g := range gone {
		byID[list[g].old.id] = append(byID[list[g].old.id], g)
	}
	for _, c := range come {
		best := -1
		for _, g := range byID[list[c].new.id] {
			if used[g] || list[g].old.mode&0o170000 != list[c].new.mode&0o170000 || list[c].new.id == emptyBlob {
				continue
			}
			if best < 0 || path.Base(list[g].old.name) == path.Base(list[c].new.name) && path.Base(list[best].old.name) != path.Base(list[c].new.name) {
				best = g
			}
		}
		if best >= 0 {
			used[best], from[c] = true, best
			list[c].score = maxScore
		}
	}
}

var emptyBlob = hashObject(blobObj, nil)

func (r *repo) similarRenames(list []change, gone, come []int, from map[int]int, used map[int]bool, minScore int) {
	type pair struct{ g, c, score, name int }
	var pairs []pair
	seed := maphash.MakeSeed()
	prints := map[[2]int]map[uint64]int{}
	print := func(i, n int) map[uint64]int {
		k := [2]int{i, n}
		if prints[k] == nil {
			prints[k] = spans(r.sideData(&list[i], n), seed)
		}
		return prints[k]
	}
	for _, c := range come {
		if _, ok := from[c]; ok || list[c].new.mode&0o170000 != 0o100000 {
			continue
		}
		size := len(r.sideData(&list[c], 1))
		for _, g := range gone {
			if used[g] || list[g].old.mode&0o170000 != 0o100000 {
				continue
			}
			r.step(1)
			was := len(r.sideData(&list[g], 0))
			big, small := max(size, was), min(size, was)
			if small == 0 || big*(maxScore-minScore) < (big-small)*maxScore {
				continue
			}
			copied, dst := 0, print(c, 1)
			for h, n := range print(g, 0) {
				copied += min(n, dst[h])
			}
			r.step(len(dst) / 8)
			if s := int(int64(copied) * maxScore / int64(big)); s >= minScore {
				name := 0
				if path.Base(list[g].old.name) == path.Base(list[c].new.name) {
					name = 1
				}
				pairs = append(pairs, pair{g, c, s, name})
			}
		}
	}
	sort.SliceStable(pairs, func(i, j int) bool {
		if pairs[i].score != pairs[j].score {
			return pairs[i].score > pairs[j].score
		}
		return pairs[i].name > pairs[j].name
	})
	for _, p := range pairs {
		if _, ok := from[p.c]; ok || used[p.g] {
			continue
		}
		used[p.g], from[p.c] = true, p.g
		list[p.c].score = p.score
	}
}

// spans counts the bytes of equal pieces: lines, or 64 bytes of longer ones.
func spans(b []byte, seed maphash.Seed) map[uint64]int {
	m := make(map[uint64]int)
	text := !isBinary(b)
	for len(b) > 0 {
		n := min(64, len(b))
		if i := bytes.IndexByte(b[:n], '\n'); i >= 0 {
			n = i + 1
		}
		piece := b[:n]
		if text && n >= 2 && piece[n-2] == '\r' && piece[n-1] == '\n' {
			piece = append(append([]byte{}, piece[:n-2]...), '\n')
		}
		m[maphash.Bytes(seed, piece)] += len(piece)
		b = b[n:]
	}
	return m
}

// isBinary is git's guess: a NUL among the first 8,000 bytes.
func isBinary(b []byte) bool { return bytes.IndexByte(b[:min(len(b), 8000)], 0) >= 0 }
