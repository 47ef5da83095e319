package tree

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// recent is how old a file may be whose time of the day is shown: half a year.
const recent = 15778476

func (l *lister) time(n *node) string {
	t := n.attr.Mtime.In(l.now.Location())
	if age := l.now.Unix() - t.Unix(); age > recent || age < 0 {
		return t.Format("Jan _2  2006")
	}
	return t.Format("Jan _2 15:04")
}

// amount is a size with a unit, as -h writes it.
func amount(size int64) string {
	if size < 1024 {
		return strconv.FormatInt(size, 10)
	}
	i := 0
	for ; size >= 1024*1024; i++ {
		size /= 1024
	}
	v := float32(size) / 1024
	if size/1024 >= 10 {
		return fmt.Sprintf("%.0f%c", v, "KMGTPE"[i])
	}
	return fmt.Sprintf("%.1f%c", v, "KMGTPE"[i])
}

// details are what stands in brackets before a name.
func (l *lister) details(n *node) string {
	var b strings.Builder
	if l.perm {
		b.WriteString(" " + tool.FormatMode(n.attr.Mode))
	}
	if l.human {
		fmt.Fprintf(&b, " %4s", amount(n.attr.Size))
	} else if l.size {
		fmt.Fprintf(&b, " %11d", n.attr.Size)
	}
	if l.date {
		b.WriteString(" " + l.time(n))
	}
	if b.Len() == 0 {
		return ""
	}
	return "[" + b.String()[1:] + "]  "
}

// line prints a node without the line's end.
func (l *lister) line(n *node, missing bool) {
	if !missing {
		l.t.Out.WriteString(l.details(n))
	}
	name := n.name
	if l.full {
		name = n.path
	}
	l.name(name)
	if n.target != "" {
		l.t.Out.WriteString(" -> ")
		l.name(n.target)
	}
	if l.classify && !missing {
		m := n.attr.Mode
		if n.target != "" {
			m = n.targetMode
		}
		l.t.Out.WriteString(indicator(m))
	}
}

func indicator(m vfs.Mode) string {
	switch m & vfs.ModeType {
	case vfs.ModeDir:
		return "/"
	case vfs.ModeFIFO:
		return "|"
	case vfs.ModeSocket:
		return "="
	case vfs.ModeRegular:
		if m&0o111 != 0 {
			return "*"
		}
	}
	return ""
}

// name writes a name: unprintable characters in octal, unless -N says otherwise.
func (l *lister) name(s string) {
	out := l.t.Out
	if l.quote {
		out.WriteByte('"')
		defer out.WriteByte('"')
	}
	if l.literal {
		out.WriteString(s)
		return
	}
	for len(s) > 0 {
		r, size := rune(s[0]), 1
		if l.utf8 {
			r, size = utf8.DecodeRuneInString(s)
		}
		switch {
		case r == utf8.RuneError && size == 1, !l.utf8 && r >= 0x7f, !tool.Printable(r):
			for i := 0; i < size; i++ {
				fmt.Fprintf(out, "\\%03o", s[i])
			}
		default:
			out.WriteString(s[:size])
		}
		s = s[size:]
	}
}

// end prints what follows all trees.
func (l *lister) end() {
	dirs, files := "directories", "files"
	if l.json {
		l.t.Out.WriteString(l.newline())
		if l.report {
			l.t.Out.WriteString("," + l.newline())
			if !l.flat {
				l.t.Out.WriteString("  ")
			}
			fmt.Fprintf(l.t.Out, `{"type":"report","directories":%d`, l.dirCount)
			if !l.dirs {
				fmt.Fprintf(l.t.Out, `,"files":%d`, l.fileCount)
			}
			l.t.Out.WriteString("}" + l.newline())
		} else {
			l.t.Out.WriteString(l.newline())
		}
		l.t.Out.WriteString("]\n")
		return
	}
	if !l.report {
		return
	}
	if l.dirCount == 1 {
		dirs = "directory"
	}
	if l.fileCount == 1 {
		files = "file"
	}
	fmt.Fprintf(l.t.Out, "\n%d %s", l.dirCount, dirs)
	if !l.dirs {
		fmt.Fprintf(l.t.Out, ", %d %s", l.fileCount, files)
	}
	l.t.Out.WriteByte('\n')
}

// newline separates the lines of JSON, which -i leaves out.
func (l *lister) newline() string {
	if l.flat {
		return ""
	}
	return "\n"
}

// pad indents a line of JSON.
func (l *lister) pad(depth int) {
	for i := 0; i < depth && !l.flat; i++ {
		l.t.Out.WriteString("  ")
	}
}

func (l *lister) jsonRoot(n *node, missing bool, index int) {
	if index > 0 {
		l.t.Out.WriteString("," + l.newline())
	}
	if !missing && n.isDir() && !n.failed {
		if len(n.children) > 0 {
			l.dirCount++
		}
		l.jsonNode(n, 1)
		return
	}
	if missing { // tree's own malformed output, which has no type
		l.status = 2
		l.t.Out.WriteString(`,"name":` + jsonString(n.path))
	} else {
		l.fileCount++
		l.pad(1)
		l.t.Out.WriteString("{" + l.fields(n))
	}
	l.t.Out.WriteString(`,"contents":[{"error": "error opening dir"}` + l.newline() + l.newline())
	l.pad(1)
	l.t.Out.WriteString("]}")
}

// jsonNode writes a node and all below it.
func (l *lister) jsonNode(n *node, depth int) {
	l.pad(depth)
	l.t.Out.WriteString("{" + l.fields(n))
	if n.isDir() && (l.depth == 0 || depth <= l.depth) {
		l.load(n, depth)
		if n.failed {
			l.status = 2
			l.t.Out.WriteString(`,"contents":[{"error": "error opening dir"}` + l.newline())
			l.pad(depth)
			l.t.Out.WriteString("]")
		}
	}
	if len(n.children) > 0 {
		l.t.Out.WriteString(`,"contents":[` + l.newline())
		for i, c := range n.children {
			l.count(c)
			l.jsonNode(c, depth+1)
			if i < len(n.children)-1 {
				l.t.Out.WriteByte(',')
			}
			l.t.Out.WriteString(l.newline())
			n.children[i] = nil
		}
		l.pad(depth)
		l.t.Out.WriteByte(']')
	}
	l.t.Out.WriteByte('}')
}

// fields are a node's type, name and details in JSON.
func (l *lister) fields(n *node) string {
	kind := "file"
	switch n.attr.Mode & vfs.ModeType {
	case vfs.ModeDir:
		kind = "directory"
	case vfs.ModeSymlink:
		kind = "link"
	case vfs.ModeFIFO:
		kind = "fifo"
	case vfs.ModeSocket:
		kind = "socket"
	case vfs.ModeBlock:
		kind = "block"
	case vfs.ModeChar:
		kind = "char"
	}
	name := n.name
	if l.full {
		name = n.path
	}
	s := `"type":"` + kind + `","name":` + jsonString(name)
	if n.target != "" {
		s += `,"target":` + jsonString(n.target)
	}
	if l.perm {
		s += fmt.Sprintf(`,"mode":"%04o","prot":"%s"`, n.attr.Mode&0o7777, tool.FormatMode(n.attr.Mode))
	}
	if l.human {
		s += `,"size":"` + amount(n.attr.Size) + `"`
	} else if l.size {
		s += fmt.Sprintf(`,"size":%d`, n.attr.Size)
	}
	if l.date {
		s += `,"time":"` + l.time(n) + `"`
	}
	return s
}

// jsonString quotes a name; bytes that aren't UTF-8 stay as they are.
func jsonString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(c))
		case strings.IndexByte("\b\f\n\r\t", c) >= 0:
			b.WriteString(`\` + string("btn?fr"[c-'\b']))
		case c < 0x20 || c == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
