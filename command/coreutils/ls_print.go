package coreutils

import (
	"fmt"
	"strconv"
	"time"

	"agentrun.dev/command/datetime"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// print lists entries in the format asked for.
func (l *lister) print(entries []*lsEntry) {
	l.anyQuoted = false
	for _, e := range entries {
		e.shown, e.quoted = l.quote(e.name, l.nameSpecial())
		l.anyQuoted = l.anyQuoted || e.quoted
	}
	w := l.prefixWidths(entries)
	for _, e := range entries {
		e.width = tool.StringWidth(e.shown) + len(l.indicatorOf(e.attr.Mode)) + w.total()
		if l.pads(e) {
			e.width++
		}
	}
	switch l.format {
	case 'l':
		l.printLong(entries, w)
	case 'C':
		l.printColumns(entries, w, true)
	case 'x':
		l.printColumns(entries, w, false)
	case 'm':
		l.printCommas(entries, w)
	default:
		for _, e := range entries {
			l.printName(e, w)
			l.t.Out.WriteByte(l.eol)
		}
	}
}

// pads reports whether a name gets a blank where others of the listing have a quote.
func (l *lister) pads(e *lsEntry) bool {
	return l.anyQuoted && !e.quoted && (l.format == 'l' || l.width > 0 && (l.format == 'C' || l.format == 'x'))
}

// prefixWidth are the widths of the columns before a name outside of the long format.
type prefixWidth struct{ inode, blocks, context int }

func (w prefixWidth) total() int {
	n := 0
	for _, c := range []int{w.inode, w.blocks, w.context} {
		if c > 0 {
			n += c + 1
		}
	}
	return n
}

func (l *lister) prefixWidths(entries []*lsEntry) (w prefixWidth) {
	for _, e := range entries {
		if l.inode {
			w.inode = max(w.inode, len(l.inodeOf(e)))
		}
		if l.blocks {
			w.blocks = max(w.blocks, len(l.blocksOf(e)))
		}
	}
	if l.context {
		w.context = 1
	}
	return w
}

func (l *lister) inodeOf(e *lsEntry) string {
	if e.statErr {
		return "?"
	}
	return strconv.FormatUint(uint64(e.attr.Ino), 10)
}

func (l *lister) blocksOf(e *lsEntry) string {
	if e.statErr {
		return "?"
	}
	return l.blockSize.format(uint64(e.attr.Blocks) * 512)
}

func (l *lister) printPrefix(e *lsEntry, w prefixWidth) {
	if w.inode > 0 {
		if l.format == 'm' {
			w.inode = 0
		}
		fmt.Fprintf(l.t.Out, "%*s ", w.inode, l.inodeOf(e))
	}
	if w.blocks > 0 {
		if l.format == 'm' {
			w.blocks = 0
		}
		fmt.Fprintf(l.t.Out, "%*s ", w.blocks, l.blocksOf(e))
	}
	if w.context > 0 && l.format != 'l' {
		l.t.Out.WriteString("? ")
	}
}

// printName writes an entry's name with what belongs to it.
func (l *lister) printName(e *lsEntry, w prefixWidth) {
	if l.format != 'l' {
		l.printPrefix(e, w)
	}
	if l.pads(e) {
		l.t.Out.WriteByte(' ')
	}
	if l.color != nil {
		l.color.write(l.t.Out, l.color.of(e), e.shown)
	} else {
		l.t.Out.WriteString(e.shown)
	}
	if l.format == 'l' && e.attr.Mode.IsSymlink() {
		if e.target != "" {
			l.printTarget(e)
		}
		return
	}
	l.t.Out.WriteString(l.indicatorOf(e.attr.Mode))
}

func (l *lister) printTarget(e *lsEntry) {
	l.t.Out.WriteString(" -> ")
	target, _ := l.quote(e.target, l.nameSpecial())
	if l.color != nil {
		t := lsEntry{name: e.target, attr: e.linked, linkOK: true}
		code := l.color.byKey["mi"]
		if !l.color.checksLinks() && l.indicator != 'f' && l.indicator != 'F' {
			code = "" // GNU doesn't look at the target then
		} else if e.linkOK {
			code = l.color.of(&t)
		} else if code == "" {
			code = l.color.byKey["or"]
		}
		l.color.write(l.t.Out, code, target)
	} else {
		l.t.Out.WriteString(target)
	}
	if e.linkOK && (l.indicator == 'f' || l.indicator == 'F') {
		l.t.Out.WriteString(l.indicatorOf(e.linked.Mode))
	}
}

// indicatorOf is the character that -F and its kin append.
func (l *lister) indicatorOf(m vfs.Mode) string {
	switch l.indicator {
	case 0:
		return ""
	case 'p':
		if m.IsDir() {
			return "/"
		}
		return ""
	}
	switch m & vfs.ModeType {
	case vfs.ModeDir:
		return "/"
	case vfs.ModeSymlink:
		return "@"
	case vfs.ModeFIFO:
		return "|"
	case vfs.ModeSocket:
		return "="
	case vfs.ModeRegular:
		if l.indicator == 'F' && m&0o111 != 0 {
			return "*"
		}
	}
	return ""
}

// printLong prints -l lines, in aligned columns.
func (l *lister) printLong(entries []*lsEntry, w prefixWidth) {
	type row struct{ links, owner, group, author, size, major, date string }
	rows := make([]row, len(entries))
	var links, owner, group, author, size, major, minor, date int
	for i, e := range entries {
		r := &rows[i]
		if e.statErr {
			*r = row{"?", "?", "?", "?", "?", "", "?"}
		} else {
			r.links = strconv.FormatUint(uint64(e.attr.Nlink), 10)
			r.owner, r.group = l.ownerOf(e.attr.UID), l.groupOf(e.attr.GID)
			r.author = r.owner
			if k := e.attr.Mode & vfs.ModeType; k == vfs.ModeChar || k == vfs.ModeBlock {
				r.major = strconv.FormatUint(e.attr.Rdev>>8&0xfff, 10)
				r.size = strconv.FormatUint(e.attr.Rdev&0xff|e.attr.Rdev>>12&0xfff00, 10)
				major, minor = max(major, len(r.major)), max(minor, len(r.size))
			} else {
				r.size = l.fileSize.format(uint64(e.attr.Size))
			}
			r.date = l.formatTime(l.timeOf(&e.attr))
		}
		links, owner, group, author = max(links, len(r.links)), max(owner, len(r.owner)), max(group, len(r.group)), max(author, len(r.author))
		if r.major == "" {
			size = max(size, len(r.size))
		}
		date = max(date, len(r.date))
	}
	if major > 0 {
		size = max(size, major+2+minor)
	}
	for i, e := range entries {
		r := &rows[i]
		out := l.t.Out
		l.printPrefix(e, w)
		mode := tool.FormatMode(e.attr.Mode)
		if e.statErr {
			mode = mode[:1] + "?????????"
		}
		fmt.Fprintf(out, "%s %*s ", mode, links, r.links)
		if l.owner {
			l.printID(r.owner, owner)
		}
		if l.group {
			l.printID(r.group, group)
		}
		if l.author {
			l.printID(r.author, author)
		}
		if l.context {
			out.WriteString("? ")
		}
		if r.major != "" {
			fmt.Fprintf(out, "%*s, %*s ", size-2-minor, r.major, minor, r.size)
		} else {
			fmt.Fprintf(out, "%*s ", size, r.size)
		}
		if e.statErr {
			fmt.Fprintf(out, "%*s ", date, r.date)
		} else {
			out.WriteString(r.date + " ")
		}
		l.printName(e, w)
		out.WriteByte(l.eol)
	}
}

// printID writes an owner: names flush left, numbers flush right.
func (l *lister) printID(s string, width int) {
	if l.numeric {
		fmt.Fprintf(l.t.Out, "%*s ", width, s)
	} else {
		fmt.Fprintf(l.t.Out, "%-*s ", width, s)
	}
}

func (l *lister) ownerOf(uid uint32) string {
	if l.numeric {
		return strconv.FormatUint(uint64(uid), 10)
	}
	return l.accounts.UserName(uid)
}

func (l *lister) groupOf(gid uint32) string {
	if l.numeric {
		return strconv.FormatUint(uint64(gid), 10)
	}
	return l.accounts.GroupName(gid)
}

// sixMonths is half of a Gregorian year, how long a file is recent.
const sixMonths = 31556952 / 2 * time.Second

func (l *lister) formatTime(at time.Time) string {
	format := l.old
	if at.After(l.now.Add(-sixMonths)) && !at.After(l.now) {
		format = l.recent
	} else if at.After(l.now) {
		// The clock may have moved on since the start.
		if l.now = l.t.Now(); !at.After(l.now) {
			format = l.recent
		}
	}
	return datetime.Format(format, at.In(l.now.Location()))
}

func (l *lister) printCommas(entries []*lsEntry, w prefixWidth) {
	pos := 0
	for i, e := range entries {
		n := e.width
		if l.width == 0 {
			n = 0
		}
		if i > 0 {
			l.t.Out.WriteByte(',')
			if l.width == 0 || pos+n+2 < l.width && pos+n+2 >= 0 {
				l.t.Out.WriteByte(' ')
				pos += 2
			} else {
				l.t.Out.WriteByte(l.eol)
				pos = 0
			}
		}
		l.printName(e, w)
		pos += n
	}
	if len(entries) > 0 {
		l.t.Out.WriteByte(l.eol)
	}
}

// minColumn is the least a column takes: one character and two blanks.
const minColumn = 3

// layout finds the widths of as many columns as fit; down says that entries go down the columns.
func (l *lister) layout(entries []*lsEntry, down bool) []int {
	limit := len(entries)
	if l.width > 0 {
		limit = min(limit, max(l.width/minColumn+min(l.width%minColumn, 1), 1))
	}
	for cols := limit; cols > 1; cols-- {
		rows := (len(entries) + cols - 1) / cols
		widths := make([]int, cols)
		total, ok := cols*minColumn, true // too long only once a column has grown, as GNU has it
		for i := range widths {
			widths[i] = minColumn
		}
		for i, e := range entries {
			at := i % cols
			if down {
				at = i / rows
			}
			n := e.width
			if at < cols-1 {
				n += 2
			}
			if n > widths[at] {
				total += n - widths[at]
				widths[at] = n
				ok = total < l.width
			}
		}
		if l.width == 0 || ok {
			return widths
		}
	}
	return []int{0}
}

func (l *lister) printColumns(entries []*lsEntry, w prefixWidth, down bool) {
	if len(entries) == 0 {
		return
	}
	if l.width == 0 && down { // without a limit everything is on one line
		down = false
	}
	widths := l.layout(entries, down)
	cols := len(widths)
	rows := (len(entries) + cols - 1) / cols
	for row := range rows {
		pos := 0
		start := 0
		for col := range cols {
			i := row*cols + col
			if down {
				i = col*rows + row
			}
			if i >= len(entries) {
				break
			}
			if col > 0 {
				l.indent(pos, start)
			}
			l.printName(entries[i], w)
			pos = start + entries[i].width
			start += widths[col]
		}
		l.t.Out.WriteByte(l.eol)
	}
}

// indent moves from one column to another, with tabs where they reach.
func (l *lister) indent(from, to int) {
	for from < to {
		if l.tab > 0 && l.width > 0 && to/l.tab > (from+1)/l.tab {
			l.t.Out.WriteByte('\t')
			from += l.tab - from%l.tab
		} else {
			l.t.Out.WriteByte(' ')
			from++
		}
	}
}
