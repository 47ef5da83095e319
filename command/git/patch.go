package git

import (
	"bytes"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// diffOptions say how changes are shown.
type diffOptions struct {
	patch, stat, numstat, shortstat, nameOnly, nameStatus, summary, raw bool
	none                                                                bool // -s
	context                                                             int
	space                                                               spaceMode
	renames                                                             int // least score; 0 doesn't look for any
	reverse, text, fullIndex, quiet, exitCode, noPrefix, zero           bool
	srcPrefix, dstPrefix                                                string
	filter                                                              string
	statWidth, statName, statCount                                      int
	pickaxe                                                             string // -S
	grep                                                                string // -G
	cached                                                              bool
	check                                                               bool
	abbrev                                                              int
	compact, binary, blank, function, renamesSet, copies, harder        bool
	linePrefix                                                          string
	between                                                             int
	pickaxeRegex, pickaxeAll                                            bool
	marks                                                               [3]byte // for old, new and common lines
	merges                                                              string  // "", off, first, separate, combined, cc
	implied                                                             bool    // a patch was only implied
	statNumber                                                          int     // least width of numbers
	stage                                                               int     // of conflicts, to compare with
	relative                                                            string  // prefix to leave out
	mnemonic                                                            bool
	found                                                               bool // something differed
}

func newDiffOptions() diffOptions {
	return diffOptions{context: 3, renames: maxScore / 2, srcPrefix: "a/", dstPrefix: "b/", marks: [3]byte{'-', '+', ' '}}
}

// formatted reports whether a format was asked for.
func (o *diffOptions) formatted() bool {
	return o.patch || o.stat || o.numstat || o.shortstat || o.nameOnly || o.nameStatus || o.summary || o.raw || o.none
}

// prepare applies what doesn't depend on the format: filters, renames, direction.
func (r *repo) prepare(list []change, o *diffOptions) []change {
	if o.reverse {
		for i := range list {
			c := &list[i]
			c.old, c.new = c.new, c.old
			c.data[0], c.data[1] = c.data[1], c.data[0]
			switch c.status {
			case 'A':
				c.status = 'D'
			case 'D':
				c.status = 'A'
			}
		}
	}
	if o.renames > 0 {
		list = r.findRenames(list, o.renames)
	}
	if o.filter == "" {
		return list
	}
	var out []change
	for _, c := range list {
		in := strings.IndexByte(o.filter, c.status) >= 0
		if strings.ToLower(o.filter) == o.filter {
			in = strings.IndexByte(o.filter, c.status|0x20) < 0
		}
		if in {
			out = append(out, c)
		}
	}
	return out
}

// showChanges prints changes in the formats asked for, which git always gives in this order.
func (r *repo) showChanges(list []change, o *diffOptions) {
	if o.none || o.quiet {
		return
	}
	end, sep := "\n", "\t"
	name := r.quote
	if o.zero {
		end, sep = "\x00", "\x00"
		name = func(s string) string { return s }
	}
	for i := range list {
		c := &list[i]
		status := string(c.status)
		if c.status == 'R' || c.status == 'C' {
			status += fmt.Sprintf("%03d", c.score*100/maxScore)
		}
		switch {
		case o.raw:
			n := max(o.abbrev, r.minAbbrev())
			if o.fullIndex {
				n = 40
			}
			newID := c.new.id
			if c.data[1].have && c.new.mode != 0 {
				newID = oid{}
			}
			r.printf(":%06o %06o %s %s %s", c.old.mode, c.new.mode, r.abbrevN(c.old.id, n), r.abbrevN(newID, n), status)
		case o.nameStatus:
			r.printf("%s", status)
		case o.nameOnly:
			r.printf("%s%s", name(c.path()), end)
			continue
		default:
			continue
		}
		if c.status == 'R' || c.status == 'C' {
			r.printf("%s%s", sep, name(c.old.name))
		}
		r.printf("%s%s%s", sep, name(c.path()), end)
	}
	if o.stat || o.numstat || o.shortstat {
		r.showStats(list, o)
	}
	if o.summary {
		for i := range list {
			r.showSummary(&list[i])
		}
	}
	if o.patch {
		if o.stat || o.numstat || o.shortstat || o.summary || o.raw {
			if len(list) > 0 {
				r.printf("\n")
			}
		}
		for i := range list {
			r.showPatch(&list[i], o)
		}
	}
}

// modeText is "old mode …" and such in a patch's header.
func (r *repo) showPatch(c *change, o *diffOptions) {
	if c.combined != nil {
		r.combinedPatch(c.combined, o)
		return
	}
	if c.status == 'U' {
		r.printf("* Unmerged path %s\n", r.quote(c.path()))
		return
	}
	if c.status == 'T' {
		gone, come := *c, *c
		gone.status, gone.new, gone.data[1] = 'D', treeEntry{}, content{}
		come.status, come.old, come.data[0] = 'A', treeEntry{}, content{}
		r.showPatch(&gone, o)
		r.showPatch(&come, o)
		return
	}
	oldName, newName := s2(c.old.name, c.new.name), s2(c.new.name, c.old.name)
	if c.old.mode == 0 {
		oldName = c.new.name
	}
	if c.new.mode == 0 {
		newName = c.old.name
	}
	src, dst := o.srcPrefix, o.dstPrefix
	if o.reverse {
		src, dst = dst, src
	}
	if o.noPrefix {
		src, dst = "", ""
	}
	a, b := r.quoteWith(src, oldName), r.quoteWith(dst, newName)
	var head strings.Builder
	fmt.Fprintf(&head, "diff --git %s %s\n", a, b)
	switch {
	case c.old.mode == 0:
		fmt.Fprintf(&head, "new file mode %06o\n", c.new.mode)
	case c.new.mode == 0:
		fmt.Fprintf(&head, "deleted file mode %06o\n", c.old.mode)
	case c.old.mode != c.new.mode:
		fmt.Fprintf(&head, "old mode %06o\nnew mode %06o\n", c.old.mode, c.new.mode)
	}
	if c.status == 'R' {
		fmt.Fprintf(&head, "similarity index %d%%\nrename from %s\nrename to %s\n", c.score*100/maxScore, r.quote(oldName), r.quote(newName))
	}
	da, db := r.sideData(c, 0), r.sideData(c, 1)
	same := c.old.mode != 0 && c.new.mode != 0 && bytes.Equal(da, db)
	if !same {
		ida, idb := c.old.id, c.new.id
		if c.data[0].have && c.old.mode != 0 {
			ida = hashObject(blobObj, da)
		}
		if c.data[1].have && c.new.mode != 0 {
			idb = hashObject(blobObj, db)
		}
		n := max(o.abbrev, r.minAbbrev())
		if o.fullIndex {
			n = 40
		}
		fmt.Fprintf(&head, "index %s..%s", r.abbrevN(ida, n), r.abbrevN(idb, n))
		if c.old.mode == c.new.mode {
			fmt.Fprintf(&head, " %06o", c.old.mode)
		}
		head.WriteByte('\n')
	}
	if c.old.mode == 0 {
		a = "/dev/null"
	}
	if c.new.mode == 0 {
		b = "/dev/null"
	}
	if same {
		r.printf("%s", head.String())
		return
	}
	if !o.text && r.binary(c, da, db) {
		r.printf("%sBinary files %s and %s differ\n", head.String(), a, b)
		return
	}
	la, lb := lines(da), lines(db)
	hunks := diffLines(la, lb, o.space, r.step)
	if len(hunks) == 0 {
		if o.space == spaceAll || c.old.mode != c.new.mode || c.status != 'M' {
			r.printf("%s", head.String())
		}
		return
	}
	r.printf("%s--- %s%s\n+++ %s%s\n", head.String(), a, tabAfter(a), b, tabAfter(b))
	r.showHunks(la, lb, hunks, o)
}

// tabAfter ends a name that holds blanks, so that patch can read it.
func tabAfter(name string) string {
	if strings.Contains(name, " ") && name[0] != '"' {
		return "\t"
	}
	return ""
}

func (r *repo) quoteWith(prefix, name string) string {
	if q := r.quote(name); q != name {
		return `"` + prefix + q[1:]
	}
	return prefix + name
}

// binary reports whether a change is shown as binary.
func (r *repo) binary(c *change, a, b []byte) bool {
	if bin, known := r.binaryAttr(c.path()); known {
		return bin
	}
	return isBinary(a) || isBinary(b)
}

// showHunks prints hunks with context, close ones together.
func (r *repo) showHunks(la, lb [][]byte, hunks []hunk, o *diffOptions) {
	context := o.context
	function, searched := "", -1
	for i := 0; i < len(hunks); {
		j := i + 1
		for j < len(hunks) && hunks[j].a0-hunks[j-1].a1 <= 2*context+o.between {
			j++
		}
		a0 := max(0, hunks[i].a0-context)
		b0 := max(0, hunks[i].b0-context)
		a1 := min(len(la), hunks[j-1].a1+context)
		b1 := min(len(lb), hunks[j-1].b1+context)
		for k := a0 - 1; k > searched && k >= 0; k-- {
			if f, ok := functionLine(la[k]); ok {
				function = f
				break
			}
		}
		searched = a0 - 1
		r.printf("@@ -%s +%s @@", span(a0, a1), span(b0, b1))
		if function != "" {
			r.printf(" %s", function)
		}
		r.printf("\n")
		at := a0
		for _, h := range hunks[i:j] {
			for ; at < h.a0; at++ {
				r.showLine(o.marks[2], la[at])
			}
			for k := h.a0; k < h.a1; k++ {
				r.showLine(o.marks[0], la[k])
			}
			for k := h.b0; k < h.b1; k++ {
				r.showLine(o.marks[1], lb[k])
			}
			at = h.a1
		}
		for ; at < a1; at++ {
			r.showLine(o.marks[2], la[at])
		}
		i = j
	}
}

func span(from, to int) string {
	n := to - from
	if n > 0 {
		from++
	}
	if n == 1 {
		return strconv.Itoa(from)
	}
	return fmt.Sprintf("%d,%d", from, n)
}

func (r *repo) showLine(mark byte, line []byte) {
	r.t.Out.WriteByte(mark)
	r.t.Out.Write(line)
	if len(line) == 0 || line[len(line)-1] != '\n' {
		r.t.Out.WriteString("\n\\ No newline at end of file\n")
	}
}

// functionLine is what a hunk's header shows of the line before it that looks like a definition.
func functionLine(line []byte) (string, bool) {
	if len(line) == 0 || !(line[0]|0x20 >= 'a' && line[0]|0x20 <= 'z' || line[0] == '_' || line[0] == '$') {
		return "", false
	}
	line = line[:min(len(line), 80)]
	return strings.TrimRight(string(line), " \t\r\n\v\f"), true
}

// fileStat is how many lines of a file were added and deleted, or bytes if it is binary.
type fileStat struct {
	name       string
	added, del int
	binary     bool
	unmerged   bool
	c          *change
}

func (r *repo) statOf(c *change, o *diffOptions) fileStat {
	s := fileStat{name: r.statName(c), c: c}
	if c.status == 'U' {
		s.name, s.unmerged = r.quote(c.path()), true
		return s
	}
	a, b := r.sideData(c, 0), r.sideData(c, 1)
	if !o.text && r.binary(c, a, b) {
		s.binary = true
		if !bytes.Equal(a, b) {
			s.added, s.del = len(b), len(a)
		}
		return s
	}
	for _, h := range diffLines(lines(a), lines(b), o.space, r.step) {
		s.added += h.b1 - h.b0
		s.del += h.a1 - h.a0
	}
	return s
}

// statName shows a rename as "dir/{old => new}/file".
func (r *repo) statName(c *change) string {
	if c.status != 'R' && c.status != 'C' {
		return r.quote(c.path())
	}
	a, b := c.old.name, c.new.name
	if r.quote(a) != a || r.quote(b) != b {
		return r.quote(a) + " => " + r.quote(b)
	}
	pfx := 0
	for i := 0; i < len(a) && i < len(b) && a[i] == b[i]; i++ {
		if a[i] == '/' {
			pfx = i + 1
		}
	}
	sfx := 0
	adjust := 0
	if pfx > 0 {
		adjust = 1
	}
	for i := 1; len(a)-i >= pfx-adjust && len(b)-i >= pfx-adjust && a[len(a)-i] == b[len(b)-i]; i++ {
		if a[len(a)-i] == '/' {
			sfx = i
		}
	}
	am, bm := max(0, len(a)-pfx-sfx), max(0, len(b)-pfx-sfx)
	if pfx+sfx == 0 {
		return a + " => " + b
	}
	return a[:pfx] + "{" + a[pfx:pfx+am] + " => " + b[pfx:pfx+bm] + "}" + a[len(a)-sfx:]
}

func (r *repo) showStats(list []change, o *diffOptions) {
	stats := make([]fileStat, 0, len(list))
	for i := range list {
		stats = append(stats, r.statOf(&list[i], o))
	}
	if o.numstat {
		for i := range stats {
			s := &stats[i]
			switch {
			case s.unmerged:
				r.printf("0\t0\t%s\n", s.name)
			case s.binary:
				r.printf("-\t-\t%s\n", s.name)
			default:
				r.printf("%d\t%d\t%s\n", s.added, s.del, s.name)
			}
		}
	}
	if o.stat {
		r.statGraph(stats, o)
	}
	if (o.stat || o.shortstat) && len(stats) > 0 {
		files, added, del := 0, 0, 0
		for i := range stats {
			if stats[i].unmerged {
				continue
			}
			files++
			if !stats[i].binary {
				added += stats[i].added
				del += stats[i].del
			}
		}
		r.printf("%s\n", statSummary(files, added, del))
	}
}

func statSummary(files, added, del int) string {
	if files == 0 {
		return " 0 files changed"
	}
	plural := func(n int, one, many string) string {
		if n == 1 {
			return "1 " + one
		}
		return strconv.Itoa(n) + " " + many
	}
	s := " " + plural(files, "file changed", "files changed")
	if added > 0 || del == 0 {
		s += ", " + plural(added, "insertion(+)", "insertions(+)")
	}
	if del > 0 || added == 0 {
		s += ", " + plural(del, "deletion(-)", "deletions(-)")
	}
	return s
}

// statGraph prints one line a file, with pluses and minuses scaled to the width, as git's show_stats does.
func (r *repo) statGraph(stats []fileStat, o *diffOptions) {
	width := 80
	if o.statWidth > 0 {
		width = o.statWidth
	} else if n, err := strconv.Atoi(r.t.Getenv("COLUMNS")); err == nil && n > 0 {
		width = n
	}
	nameMax, changeMax, numberWidth, binWidth := 0, 0, 0, 0
	for i := range stats {
		s := &stats[i]
		nameMax = max(nameMax, displayWidth(s.name))
		if s.unmerged {
			binWidth = max(binWidth, 8)
			continue
		}
		if s.binary {
			w := 14 + len(strconv.Itoa(s.added)) + len(strconv.Itoa(s.del))
			binWidth = max(binWidth, w)
			numberWidth = 3
			continue
		}
		changeMax = max(changeMax, s.added+s.del)
	}
	numberWidth = max(numberWidth, len(strconv.Itoa(changeMax)), o.statNumber)
	if width < 16+6+numberWidth {
		width = 16 + 6 + numberWidth
	}
	graph := changeMax
	if changeMax+4 <= binWidth {
		graph = binWidth - 4
	}
	name := nameMax
	if o.statName > 0 && o.statName < nameMax {
		name = o.statName
	}
	if name+numberWidth+6+graph > width {
		if graph > width*3/8-numberWidth-6 {
			graph = max(width*3/8-numberWidth-6, 6)
		}
		if name > width-numberWidth-6-graph {
			name = width - numberWidth - 6 - graph
		} else {
			graph = width - numberWidth - 6 - name
		}
	}
	for i := range stats {
		s := &stats[i]
		shown, prefix := s.name, ""
		n := name
		if w := displayWidth(shown); w > name {
			prefix = "..."
			n = max(0, name-3)
			for displayWidth(shown) > n {
				_, size := firstRune(shown)
				shown = shown[size:]
			}
			if j := strings.IndexByte(shown, '/'); j >= 0 {
				shown = shown[j:]
			}
		}
		pad := strings.Repeat(" ", max(0, n-displayWidth(shown)))
		switch {
		case s.unmerged:
			r.printf(" %s%s%s | %*s", prefix, shown, pad, numberWidth, "Unmerged") // without an end, as git has it
			continue
		case s.binary:
			r.printf(" %s%s%s | %*s", prefix, shown, pad, numberWidth, "Bin")
			if s.added > 0 || s.del > 0 {
				r.printf(" %d -> %d bytes", s.del, s.added)
			}
			r.printf("\n")
			continue
		}
		add, del := s.added, s.del
		if graph <= changeMax && changeMax > 0 {
			total := scale(add+del, graph, changeMax)
			if total < 2 && add > 0 && del > 0 {
				total = 2
			}
			if add < del {
				add = scale(add, graph, changeMax)
				del = total - add
			} else {
				del = scale(del, graph, changeMax)
				add = total - del
			}
		}
		gap := " "
		if s.added+s.del == 0 {
			gap = ""
		}
		r.printf(" %s%s%s | %*d%s%s%s\n", prefix, shown, pad, numberWidth, s.added+s.del, gap, strings.Repeat("+", add), strings.Repeat("-", del))
	}
}

func scale(it, width, maxChange int) int {
	if it == 0 {
		return 0
	}
	return 1 + it*(width-1)/maxChange
}

func (r *repo) showSummary(c *change) {
	switch c.status {
	case 'A':
		r.printf(" create mode %06o %s\n", c.new.mode, r.quote(c.new.name))
	case 'D':
		r.printf(" delete mode %06o %s\n", c.old.mode, r.quote(c.old.name))
	case 'R', 'C':
		verb := "rename"
		if c.status == 'C' {
			verb = "copy"
		}
		r.printf(" %s %s (%d%%)\n", verb, r.statName(c), c.score*100/maxScore)
		if c.old.mode != c.new.mode {
			r.printf(" mode change %06o => %06o\n", c.old.mode, c.new.mode)
		}
	default:
		if c.old.mode != c.new.mode && c.old.mode != 0 && c.new.mode != 0 {
			r.printf(" mode change %06o => %06o %s\n", c.old.mode, c.new.mode, r.quote(path.Clean(c.new.name)))
		}
	}
}
