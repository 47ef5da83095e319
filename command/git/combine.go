package git

import (
	"bytes"
	"sort"
	"strings"
)

// combinedFile is a file that differs from all parents of a merge.
type combinedFile struct {
	path   string
	old    []treeEntry // in each parent; mode 0 if it isn't there
	new    treeEntry
	data   content // of the result, if it is in the work tree
	isWork bool
}

// lostLine is a line that some parents had and the result hasn't.
type lostLine struct {
	text    []byte
	parents uint
}

// resultLine is a line of the result with what was lost before it.
type resultLine struct {
	text  []byte
	flags uint // parents that lack the line
	lost  []lostLine
	at    []int // line number in each parent
	mark  bool
	quiet bool // what was lost here isn't shown
}

// showCombined prints a merge's changes against all its parents at once.
func (r *repo) showCombined(c *commit, paths *pathspec, d *diffOptions) {
	var files []combinedFile
	sets := make([]map[string]change, len(c.parents))
	for i, p := range c.parents {
		sets[i] = map[string]change{}
		for _, ch := range r.compareTreesFor(r.readCommit(p).tree, c.tree, paths) {
			if paths == nil || paths.match(ch.path()) {
				sets[i][ch.path()] = ch
			}
		}
	}
	if len(sets) == 0 {
		return
	}
	for p, ch := range sets[0] {
		f := combinedFile{path: p, new: ch.new, old: []treeEntry{ch.old}}
		for _, s := range sets[1:] {
			if o, ok := s[p]; ok {
				f.old = append(f.old, o.old)
			}
		}
		if len(f.old) == len(sets) {
			files = append(files, f)
		}
	}
	sort.Slice(files, func(i, j int) bool { return files[i].path < files[j].path })
	r.showCombinedFiles(c, files, d)
}

func (r *repo) showCombinedFiles(c *commit, files []combinedFile, d *diffOptions) {
	first := d.stat || d.numstat || d.shortstat || d.summary
	if first && c != nil {
		list := r.prepare(r.compareTrees(r.readCommit(c.parents[0]).tree, c.tree), d)
		plain := *d
		plain.patch, plain.nameOnly, plain.nameStatus, plain.raw = false, false, false, false
		r.showChanges(list, &plain)
		if d.patch && len(files) > 0 {
			r.printf("\n")
		}
	}
	for i := range files {
		f := &files[i]
		switch {
		case d.nameOnly:
			r.printf("%s\n", r.quote(f.path))
		case d.nameStatus:
			for _, o := range f.old {
				r.printf("%c", statusOf(o, f.new))
			}
			r.printf("\t%s\n", r.quote(f.path))
		case d.raw:
			r.rawCombined(f, d)
		}
	}
	if d.patch {
		for i := range files {
			r.combinedPatch(&files[i], d)
		}
	}
}

func statusOf(a, b treeEntry) byte {
	switch {
	case a.mode == 0:
		return 'A'
	case b.mode == 0:
		return 'D'
	}
	return modified(a.mode, b.mode)
}

func (r *repo) rawCombined(f *combinedFile, d *diffOptions) {
	r.printf("%s", strings.Repeat(":", len(f.old)))
	for _, o := range f.old {
		r.printf("%06o ", o.mode)
	}
	r.printf("%06o", f.new.mode)
	for _, o := range f.old {
		r.printf(" %s", r.rawID(o.id, d))
	}
	r.printf(" %s ", r.rawID(f.new.id, d))
	for _, o := range f.old {
		r.printf("%c", statusOf(o, f.new))
	}
	r.printf("\t%s\n", r.quote(f.path))
}

func (r *repo) rawID(id oid, d *diffOptions) string {
	if d.fullIndex {
		return id.String()
	}
	return r.abbrevN(id, max(d.abbrev, r.minAbbrev()))
}

// combinedPatch prints one file.
func (r *repo) combinedPatch(f *combinedFile, d *diffOptions) {
	var parents [][]byte
	binary := false
	for _, o := range f.old {
		var b []byte
		if o.mode != 0 {
			b = r.sideData(&change{old: o}, 0)
		}
		binary = binary || isBinary(b)
		parents = append(parents, b)
	}
	result := f.data.data
	if !f.data.have && f.new.mode != 0 {
		result = r.sideData(&change{new: f.new}, 1)
	}
	binary = binary || isBinary(result)
	dense := d.merges != "combined"
	var list []resultLine
	hunks := false
	if !binary {
		list = combineLines(parents, lines(result), d.space, r.step)
		hunks = markHunks(list, len(parents), dense, d.context)
	}
	differs := false
	for _, o := range f.old {
		differs = differs || o.mode != f.new.mode
	}
	if !hunks && !differs && !f.isWork && !binary {
		return
	}
	r.combinedHeader(f, d, dense, differs)
	if binary {
		r.printf("Binary files differ\n")
		return
	}
	a, b := r.quoteWith(d.srcPrefix, f.path), r.quoteWith(d.dstPrefix, f.path)
	if d.noPrefix {
		a, b = r.quote(f.path), r.quote(f.path)
	}
	added := true
	for _, o := range f.old {
		added = added && o.mode == 0
	}
	if added {
		a = "/dev/null"
	}
	if f.new.mode == 0 {
		b = "/dev/null"
	}
	r.printf("--- %s\n+++ %s\n", a, b)
	if f.new.mode == 0 && !f.isWork {
		return
	}
	r.dumpCombined(list, len(parents))
}

func (r *repo) combinedHeader(f *combinedFile, d *diffOptions, dense, differs bool) {
	word := "combined"
	if dense {
		word = "cc"
	}
	r.printf("diff --%s %s\nindex ", word, r.quote(f.path))
	for i, o := range f.old {
		if i > 0 {
			r.printf(",")
		}
		r.printf("%s", r.rawID(o.id, d))
	}
	r.printf("..%s\n", r.rawID(f.new.id, d))
	if !differs {
		return
	}
	added := true
	for _, o := range f.old {
		added = added && o.mode == 0
	}
	switch {
	case added:
		r.printf("new file mode %06o", f.new.mode)
	default:
		if f.new.mode == 0 {
			r.printf("deleted file ")
		}
		r.printf("mode ")
		for i, o := range f.old {
			if i > 0 {
				r.printf(",")
			}
			r.printf("%06o", o.mode)
		}
		if f.new.mode != 0 {
			r.printf("..%06o", f.new.mode)
		}
	}
	r.printf("\n")
}

// combineLines lays the differences to all parents over the result.
func combineLines(parents [][]byte, result [][]byte, mode spaceMode, step func(int)) []resultLine {
	list := make([]resultLine, len(result)+2)
	for i := range list {
		list[i].at = make([]int, len(parents))
		if i < len(result) {
			list[i].text = result[i]
		}
	}
	for n, p := range parents {
		bit := uint(1) << n
		lp := lines(p)
		for _, h := range diffLines(lp, result, mode, step) {
			var lost []lostLine
			for _, l := range lp[h.a0:h.a1] {
				lost = append(lost, lostLine{l, bit})
			}
			list[h.b0].lost = joinLost(list[h.b0].lost, lost, mode)
			for i := h.b0; i < h.b1; i++ {
				list[i].flags |= bit
			}
		}
		at := 1
		for i := range list {
			list[i].at[n] = at
			for _, l := range list[i].lost {
				if l.parents&bit != 0 {
					at++
				}
			}
			if i < len(result) && list[i].flags&bit == 0 {
				at++
			}
		}
	}
	return list
}

// joinLost merges what another parent lost at a place; equal lines become one.
func joinLost(a, b []lostLine, mode spaceMode) []lostLine {
	if len(a) == 0 || len(b) == 0 || len(a)*len(b) > 1_000_000 {
		return append(a, b...)
	}
	same := func(x, y lostLine) bool {
		return bytes.Equal(mode.normal(bytes.TrimRight(x.text, "\n")), mode.normal(bytes.TrimRight(y.text, "\n")))
	}
	length := make([][]int, len(a)+1)
	for i := range length {
		length[i] = make([]int, len(b)+1)
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			if same(a[i-1], b[j-1]) {
				length[i][j] = length[i-1][j-1] + 1
			} else {
				length[i][j] = max(length[i][j-1], length[i-1][j])
			}
		}
	}
	var out []lostLine
	i, j := len(a), len(b)
	for i > 0 || j > 0 {
		switch {
		case i > 0 && j > 0 && same(a[i-1], b[j-1]):
			l := a[i-1]
			l.parents |= b[j-1].parents
			out = append(out, l)
			i, j = i-1, j-1
		case j > 0 && (i == 0 || length[i][j-1] >= length[i-1][j]):
			out = append(out, b[j-1])
			j--
		default:
			out = append(out, a[i-1])
			i--
		}
	}
	for x, y := 0, len(out)-1; x < y; x, y = x+1, y-1 {
		out[x], out[y] = out[y], out[x]
	}
	return out
}

// tail is where a hunk ends: a line only marked for what was lost before it needs no context after it.
func tail(list []resultLine, begin, i int) int {
	if begin+1 <= i && list[i-1].flags == 0 {
		return i - 1
	}
	return i
}

// markHunks marks the lines that are shown. list has one line more than the result, and one for numbers.
func markHunks(list []resultLine, parents int, dense bool, context int) bool {
	cnt := len(list) - 2
	all := uint(1)<<parents - 1
	for i := 0; i <= cnt; i++ {
		list[i].mark = list[i].flags != 0 || len(list[i].lost) > 0
	}
	for i := 0; dense && i <= cnt; {
		for i <= cnt && !list[i].mark {
			i++
		}
		if i > cnt {
			break
		}
		j := i + 1
		for ; j <= cnt; j++ {
			if list[j].mark {
				continue
			}
			la := min(tail(list, i, j)+context, cnt+1)
			on := false
			for la > 0 {
				if la--; j > la {
					break
				}
				if list[la].mark {
					on = true
					break
				}
			}
			if !on {
				break
			}
			j = la
		}
		j = min(j, cnt+1)
		if !interesting(list[i:j], all) {
			for k := i; k < j; k++ {
				list[k].mark = false
			}
		}
		i = j
	}
	return addContext(list, cnt, context)
}

// interesting reports whether a hunk isn't just one parent's version.
func interesting(list []resultLine, all uint) bool {
	same := uint(0)
	for i := range list {
		seen := []uint{list[i].flags}
		for _, l := range list[i].lost {
			seen = append(seen, l.parents)
		}
		for _, v := range seen {
			switch {
			case v == 0:
			case same == 0:
				same = v
			case same != v:
				return true
			}
		}
	}
	return same == all
}

func addContext(list []resultLine, cnt, context int) bool {
	next := func(i int, want bool) int {
		for i <= cnt && list[i].mark != want {
			i++
		}
		return i
	}
	i := next(0, true)
	if i > cnt {
		return false
	}
	for i <= cnt {
		for j := max(0, i-context); j < i; j++ {
			if !list[j].mark {
				list[j].quiet = true
			}
			list[j].mark = true
		}
		for {
			j := next(i, false)
			if j > cnt {
				return true
			}
			k := next(j, true)
			j = tail(list, i, j)
			if k < j+context {
				for ; j < k; j++ {
					list[j].mark = true
				}
				i = k
				continue
			}
			i = k
			for k = min(j+context, cnt+1); j < k; j++ {
				list[j].mark = true
			}
			break
		}
	}
	return true
}

func (r *repo) dumpCombined(list []resultLine, parents int) {
	cnt := len(list) - 2
	at := strings.Repeat("@", parents+1)
	comment := ""
	for i := 0; i <= cnt; {
		for i <= cnt && !list[i].mark {
			if f, ok := functionLine(list[i].text); ok && i < cnt {
				comment = f
			}
			i++
		}
		if i > cnt {
			return
		}
		end := i + 1
		for end <= cnt && list[end].mark {
			end++
		}
		n := end - i
		if end > cnt {
			n--
		}
		r.printf("%s", at)
		for p := range parents {
			r.printf(" -%d,%d", list[i].at[p], list[end].at[p]-list[i].at[p])
		}
		r.printf(" +%d,%d %s", i+1, n, at)
		if comment != "" {
			r.printf(" %s", strings.TrimRight(comment[:min(len(comment), 40)], " \t"))
		}
		r.printf("\n")
		for ; i < end; i++ {
			r.combinedLine(&list[i], parents, i < cnt)
		}
	}
}

func (r *repo) combinedLine(l *resultLine, parents int, own bool) {
	show := func(mask uint, mark byte, text []byte) {
		for p := range parents {
			if mask&(1<<p) != 0 {
				r.t.Out.WriteByte(mark)
			} else {
				r.t.Out.WriteByte(' ')
			}
		}
		r.t.Out.Write(bytes.TrimRight(text, "\n"))
		r.t.Out.WriteByte('\n')
	}
	if !l.quiet {
		for _, x := range l.lost {
			show(x.parents, '-', x.text)
		}
	}
	if own {
		show(l.flags, '+', l.text)
	}
}
