package diff

import (
	"regexp"
	"strconv"
	"strings"

	"agentrun.dev/vfs"
)

// Sides of a patch.
const (
	before = 0
	after  = 1
	index  = 2 // the name in a line "Index:"
)

// patchLine is a line of a hunk with its terminator; kind is ' ', '-' or '+'.
type patchLine struct {
	kind byte
	text string
}

// patchHunk is one hunk. A span that is empty begins after the line that first names.
type patchHunk struct {
	first, count [2]int
	lines        []patchLine
	function     string // what follows the numbers in the head
}

// patchFile is what a patch says about one file.
type patchFile struct {
	format             byte // 'u', 'c', 'n' or 'e'
	names              [3]string
	stamps             [2]string // what follows the names, from the tab on
	missing            [2]int    // 1 says that the file is empty, 2 that it doesn't exist
	git, rename, copy  bool
	binary, crlf       bool
	modes              [2]vfs.Mode // 0 if the patch doesn't say
	start, head, after int         // lines of the patch: leading text, first hunk, behind the last
	hunks              []*patchHunk
	script             []string // of ed
	bad                string   // what is wrong with the hunk that follows those in hunks
}

// emptyBlob is what git calls an empty file.
const emptyBlob = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"

var (
	normalHead  = regexp.MustCompile(`^(\d+)(?:,(\d+))?([acd])(\d+)(?:,(\d+))?\r?\n?$`)
	edHead      = regexp.MustCompile(`^(\d+)(?:,(\d+))?([acdi])\n?$`)
	unifiedHead = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)`)
	contextHead = regexp.MustCompile(`^(?:\*\*\*|---) (\d+)(?:,(\d+))? (?:\*\*\*\*|----)`)
)

// next finds the next patch and reads its hunks; nil at the end.
func (p *patcher) next() *patchFile {
	f := &patchFile{start: p.at}
	for ; p.at < len(p.lines); p.at++ {
		if p.t.Step(1) != nil {
			p.t.Check()
		}
		line := p.lines[p.at]
		if f.git && f.changes() && strings.HasPrefix(line, "diff --git ") {
			f.head, f.after = p.at, p.at
			return f
		}
		if format := p.begins(f, line); format != 0 {
			f.format, f.head = format, p.at
			if p.target == "" && f.names == [3]string{} {
				return nil
			}
			f.crlf = !p.binary && f.head > 0 && strings.HasSuffix(p.lines[f.head-1], "\r\n") && format != 'e'
			p.hunks(f)
			f.after = p.at
			return f
		}
		p.header(f, line)
	}
	if f.git && f.changes() || f.binary {
		f.head, f.after = p.at, p.at
		return f
	}
	return nil
}

// changes reports whether there is something to do without any hunk.
func (f *patchFile) changes() bool {
	return f.rename || f.copy || f.binary || f.missing[before]+f.missing[after] > 0 || f.modes[before] != f.modes[after] && f.modes[after] != 0
}

// begins tells the format if a line is a hunk's first.
func (p *patcher) begins(f *patchFile, line string) byte {
	prev, next := "", ""
	if p.at > f.start {
		prev = p.lines[p.at-1]
	}
	if p.at+1 < len(p.lines) {
		next = p.lines[p.at+1]
	}
	can := func(format byte) bool { return p.format == 0 || p.format == format }
	switch {
	case can('u') && strings.HasPrefix(line, "@@ -") && (strings.HasPrefix(prev, "+++ ") || p.format == 'u' || p.target != ""):
		if m := unifiedHead.FindStringSubmatch(line); m != nil {
			f.says(before, m[1])
			f.says(after, m[3])
		}
		return 'u'
	case can('c') && strings.HasPrefix(line, "********") && strings.HasPrefix(next, "*** "):
		f.names[before], f.names[after] = f.names[after], f.names[before] // "***" comes before "---"
		f.stamps[before], f.stamps[after] = f.stamps[after], f.stamps[before]
		if m := contextHead.FindStringSubmatch(next); m != nil {
			f.says(before, m[1])
		}
		return 'c'
	case can('n') && normalHead.MatchString(line) && (strings.HasPrefix(next, "< ") || strings.HasPrefix(next, "> ")):
		return 'n'
	case can('e') && edHead.MatchString(line):
		return 'e'
	}
	return 0
}

// says notes that a side's first hunk begins at line 0: there is nothing on this side.
func (f *patchFile) says(side int, first string) {
	if first != "0" || f.missing[side] > 0 {
		return
	}
	f.missing[side] = 1
	if f.names[side] == "/dev/null" || strings.Contains(f.stamps[side], "1970-01-01 00:00:00") && !strings.Contains(f.stamps[side], "00:00:00.0000000001") {
		f.missing[side] = 2
	}
}

// header takes what a line before the hunks tells.
func (p *patcher) header(f *patchFile, line string) {
	cut := func(prefix string) (string, bool) {
		rest, ok := strings.CutPrefix(line, prefix)
		return strings.TrimRight(rest, "\r\n"), ok
	}
	if s, ok := cut("Index: "); ok {
		f.names[index], _ = patchName(s)
	} else if s, ok := cut("diff --git "); ok {
		f.gitHead(s)
	} else if s, ok := cut("--- "); ok && !contextHead.MatchString(line) {
		f.names[before], f.stamps[before] = patchName(s)
	} else if s, ok := cut("+++ "); ok {
		f.names[after], f.stamps[after] = patchName(s)
	} else if s, ok := cut("*** "); ok && !contextHead.MatchString(line) {
		f.names[after], f.stamps[after] = patchName(s)
	} else if f.git {
		f.gitLine(cut)
	}
}

// patchName splits a head's name from what follows it.
func patchName(s string) (name, stamp string) {
	if strings.HasPrefix(s, `"`) {
		if q, err := strconv.QuotedPrefix(s); err == nil {
			name, _ = strconv.Unquote(q)
			return name, strings.TrimPrefix(s, q)
		}
	}
	if i := strings.IndexByte(s, '\t'); i >= 0 {
		return s[:i], s[i:]
	}
	if i := strings.IndexByte(s, ' '); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// gitHead reads "a/NAME b/NAME"; names with blanks are the same on both sides unless later lines say otherwise.
func (f *patchFile) gitHead(s string) {
	f.git = true
	if strings.HasPrefix(s, `"`) {
		if q, err := strconv.QuotedPrefix(s); err == nil {
			f.names[before], _ = strconv.Unquote(q)
			f.names[after], _ = patchName(strings.TrimSpace(s[len(q):]))
			return
		}
	}
	if half := len(s) / 2; len(s)%2 == 1 && s[half] == ' ' {
		_, a, _ := strings.Cut(s[:half], "/")
		_, b, _ := strings.Cut(s[half+1:], "/")
		if a == b {
			f.names[before], f.names[after] = s[:half], s[half+1:]
			return
		}
	}
	f.names[before], f.names[after], _ = strings.Cut(s, " ")
}

func (f *patchFile) gitLine(cut func(string) (string, bool)) {
	mode := func(s string) vfs.Mode {
		n, _ := strconv.ParseUint(s, 8, 17)
		return vfs.Mode(n)
	}
	if s, ok := cut("old mode "); ok {
		f.modes[before] = mode(s)
	} else if s, ok := cut("new mode "); ok {
		f.modes[after] = mode(s)
	} else if s, ok := cut("new file mode "); ok {
		f.missing[before], f.modes[after] = 2, mode(s)
	} else if s, ok := cut("deleted file mode "); ok {
		f.missing[after], f.modes[before] = 2, mode(s)
	} else if s, ok := cut("index "); ok && strings.TrimSpace(s) != "" {
		words := strings.Fields(s)
		for side, hash := range strings.SplitN(words[0]+".. ", "..", 3)[:2] {
			if len(hash) >= 7 && strings.HasPrefix(emptyBlob, hash) && f.missing[side] == 0 {
				f.missing[side] = 1
			}
		}
		if len(words) == 2 {
			f.modes = [2]vfs.Mode{mode(words[1]), mode(words[1])}
		}
	} else if _, ok := cut("GIT binary patch"); ok {
		f.binary = true
	} else if s, ok := cut("Binary files "); ok && strings.HasSuffix(s, " differ") {
		f.binary = true
	} else {
		for _, word := range []string{"rename", "copy"} {
			from, isFrom := cut(word + " from ")
			to, isTo := cut(word + " to ")
			if isFrom {
				f.names[before] = "a/" + gitName(from)
			} else if isTo {
				f.names[after] = "b/" + gitName(to)
			}
			if isFrom || isTo {
				f.rename, f.copy = word == "rename", word == "copy"
			}
		}
	}
}

func gitName(s string) string {
	if u, err := strconv.Unquote(s); err == nil && strings.HasPrefix(s, `"`) {
		return u
	}
	return s
}

// hunks reads all hunks from here on.
func (p *patcher) hunks(f *patchFile) {
	read := map[byte]func(*patchFile) *patchHunk{'u': p.unifiedHunk, 'c': p.contextHunk, 'n': p.normalHunk}[f.format]
	if f.format == 'e' {
		p.edScript(f)
		return
	}
	for h := read(f); h != nil; h = read(f) {
		if f.crlf {
			for i := range h.lines {
				if t := h.lines[i].text; strings.HasSuffix(t, "\r\n") {
					h.lines[i].text = t[:len(t)-2] + "\n"
				}
			}
		}
		f.hunks = append(f.hunks, h)
	}
}

// malformed notes that the line here is wrong, and ends the reading.
func (p *patcher) malformed(f *patchFile) *patchHunk {
	if p.at >= len(p.lines) {
		f.bad = "unexpected end of file in patch"
	} else {
		f.bad = "malformed patch at line " + strconv.Itoa(p.at+1) + ": " + p.lines[p.at]
	}
	return nil
}

// patchSpan reads the two numbers of a span: a line and how many, the number 1 if it isn't there.
func patchSpan(first, count string) (int, int) {
	n, _ := strconv.ParseUint(first, 10, 31)
	m := uint64(1)
	if count != "" {
		m, _ = strconv.ParseUint(count, 10, 31)
	}
	return int(n), int(m)
}

func (p *patcher) unifiedHunk(f *patchFile) *patchHunk {
	if p.at >= len(p.lines) || !strings.HasPrefix(p.lines[p.at], "@@ -") {
		return nil
	}
	m := unifiedHead.FindStringSubmatch(p.lines[p.at])
	if m == nil {
		return p.malformed(f)
	}
	h := &patchHunk{function: strings.TrimRight(m[5], "\r\n")}
	h.first[before], h.count[before] = patchSpan(m[1], m[2])
	h.first[after], h.count[after] = patchSpan(m[3], m[4])
	left := h.count
	for p.at++; left[before]+left[after] > 0; p.at++ {
		if p.at >= len(p.lines) {
			if left[before] == left[after] && left[before] < 3 { // blank lines at the end may have been lost on the way
				h.lines = append(h.lines, patchLine{' ', "\n"})
				left[before], left[after] = left[before]-1, left[after]-1
				continue
			}
			return p.malformed(f)
		}
		kind, text := p.lines[p.at][0], p.lines[p.at][1:]
		if kind == '\n' || kind == '\r' || kind == '\t' {
			kind, text = ' ', p.lines[p.at]
		}
		switch {
		case kind == '\\' && len(h.lines) > 0:
			h.chop()
			continue
		case kind == ' ' && left[before] > 0 && left[after] > 0:
			left[before], left[after] = left[before]-1, left[after]-1
		case kind == '-' && left[before] > 0:
			left[before]--
		case kind == '+' && left[after] > 0:
			left[after]--
		default:
			return p.malformed(f)
		}
		h.lines = append(h.lines, patchLine{kind, text})
	}
	p.noNewline(h)
	return h
}

// noNewline takes "\ No newline at end of file".
func (p *patcher) noNewline(h *patchHunk) {
	if p.at < len(p.lines) && strings.HasPrefix(p.lines[p.at], "\\") && len(h.lines) > 0 {
		h.chop()
		p.at++
	}
}

// chop takes the newline off the last line.
func (h *patchHunk) chop() {
	l := &h.lines[len(h.lines)-1]
	l.text = strings.TrimSuffix(l.text, "\n")
}

// contextHunk reads the two halves of a hunk and joins them.
func (p *patcher) contextHunk(f *patchFile) *patchHunk {
	if p.at >= len(p.lines) || !strings.HasPrefix(p.lines[p.at], "********") {
		return nil
	}
	h := &patchHunk{function: strings.TrimRight(strings.TrimLeft(p.lines[p.at], "*"), "\r\n")}
	p.at++
	var halves [2][]patchLine
	for side := range halves {
		if p.at >= len(p.lines) {
			return p.malformed(f)
		}
		m := contextHead.FindStringSubmatch(p.lines[p.at])
		if m == nil {
			return p.malformed(f)
		}
		first, last := patchSpan(m[1], m[2])
		if m[2] == "" {
			last = first
		}
		h.first[side], h.count[side] = first, last-first+1
		if last == 0 {
			h.count[side] = 0
		}
		if side == after && h.count[after] == 0 {
			f.says(after, "0")
		}
		for p.at++; len(halves[side]) < h.count[side] && p.at < len(p.lines); p.at++ {
			l := p.lines[p.at]
			if strings.HasPrefix(l, "\\") && len(halves[side]) > 0 {
				last := &halves[side][len(halves[side])-1]
				last.text = strings.TrimSuffix(last.text, "\n")
				continue
			}
			if len(l) == 1 {
				l = "  \n"
			}
			if l[0] == '*' || l[0] == '-' && l[1] != ' ' {
				break // this half is left out
			}
			if strings.IndexByte(" !-+", l[0]) < 0 || len(l) < 2 {
				return p.malformed(f)
			}
			halves[side] = append(halves[side], patchLine{l[0], l[2:]})
		}
		if p.at < len(p.lines) && strings.HasPrefix(p.lines[p.at], "\\") && len(halves[side]) > 0 {
			last := &halves[side][len(halves[side])-1]
			last.text = strings.TrimSuffix(last.text, "\n")
			p.at++
		}
	}
	if !h.join(halves, h.count) {
		return p.malformed(f)
	}
	return h
}

// join makes one list of lines of two halves, one of which is left out if it has only context.
func (h *patchHunk) join(halves [2][]patchLine, counts [2]int) bool {
	for side := range halves {
		if len(halves[side]) == 0 && counts[side] > 0 {
			for _, l := range halves[1-side] {
				if l.kind == ' ' {
					halves[side] = append(halves[side], l)
				}
			}
		}
		if len(halves[side]) != counts[side] {
			return false
		}
	}
	a, b := halves[before], halves[after]
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(a) > 0 && a[0].kind != ' ':
			h.lines = append(h.lines, patchLine{'-', a[0].text})
			a = a[1:]
		case len(b) > 0 && b[0].kind != ' ':
			h.lines = append(h.lines, patchLine{'+', b[0].text})
			b = b[1:]
		case len(a) > 0 && len(b) > 0:
			h.lines = append(h.lines, a[0])
			a, b = a[1:], b[1:]
		default:
			return false
		}
	}
	return true
}

func (p *patcher) normalHunk(f *patchFile) *patchHunk {
	if p.at >= len(p.lines) {
		return nil
	}
	m := normalHead.FindStringSubmatch(p.lines[p.at])
	if m == nil {
		return nil
	}
	h := &patchHunk{}
	for side, at := range [2]int{1, 4} {
		first, last := patchSpan(m[at], m[at+1])
		if m[at+1] == "" {
			last = first
		}
		h.first[side], h.count[side] = first, last-first+1
	}
	switch m[3] {
	case "a":
		h.count[before] = 0
	case "d":
		h.count[after] = 0
	}
	p.at++
	for side, mark := range [2]string{"< ", "> "} {
		for range h.count[side] {
			if p.at >= len(p.lines) || !strings.HasPrefix(p.lines[p.at], mark) {
				return p.malformed(f)
			}
			h.lines = append(h.lines, patchLine{"-+"[side], p.lines[p.at][2:]})
			p.at++
		}
		p.noNewline(h)
		if side == before && m[3] == "c" {
			if p.at >= len(p.lines) || !strings.HasPrefix(p.lines[p.at], "---") {
				return p.malformed(f)
			}
			p.at++
		}
	}
	return h
}

// edScript takes the commands of an ed script, with their text.
func (p *patcher) edScript(f *patchFile) {
	for p.at < len(p.lines) {
		line := p.lines[p.at]
		m := edHead.FindStringSubmatch(line)
		if m == nil && line != "s/.//\n" && line != "a\n" {
			return
		}
		f.script = append(f.script, line)
		p.at++
		if m != nil && m[3] == "d" || strings.HasPrefix(line, "s") {
			continue
		}
		for p.at < len(p.lines) {
			f.script = append(f.script, p.lines[p.at])
			p.at++
			if p.lines[p.at-1] == ".\n" {
				break
			}
		}
	}
}
