package diff

import (
	"path"
	"strings"
	"syscall"

	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// patching is the work on one file.
type patching struct {
	*patcher
	f                *patchFile
	in, out          string // names
	at               vfs.Attr
	exists           bool
	reverse          bool
	skip             bool // what follows is ignored
	unsaved          bool // and rejects aren't written
	body             []string
	done             []string
	used             int // lines of body that are in done, or gone
	offset, shift    int // of the hunk before; how the output's lines are ahead
	failures         int
	mismatch         bool
	rejected, state  strings.Builder
	mode             vfs.Mode
	defined          byte // the part of #ifdef that we are in: 0, 'n' for #ifndef, 'd' for #ifdef, 'e' for #else
	renamed, nothing bool
}

// apply applies a patch to its file.
func (p *patcher) apply(f *patchFile) {
	w := &patching{patcher: p, f: f, reverse: p.reverse}
	if f.binary && len(f.hunks) == 0 {
		name := p.stripped(f.names[after])
		if name == "" || name == "/dev/null" {
			name = p.stripped(f.names[before])
		}
		p.say("File %s: git binary diffs are not supported.\n", tool.QuoteF(name))
		p.failed = true
		return
	}
	if !w.choose() {
		w.missingFile()
		return
	}
	if !w.skip {
		w.look()
	}
	if !w.exists && !w.skip && w.underFile() {
		p.say("Invalid file name %s -- skipping patch\n", tool.QuoteF(w.out))
		p.failed = true
		return
	}
	if !w.skip {
		w.announce()
		w.body = w.read(w.in)
		w.mode = w.at.Mode & 0o7777
		if f.format == 'e' {
			w.edit()
		}
		w.run()
		if f.bad != "" {
			p.fatal("%s", f.bad)
		}
	} else {
		w.failures, w.failed = len(f.hunks), true
		for _, h := range f.hunks {
			w.reject(h)
		}
	}
	w.finish()
}

// stripped takes leading components off a name. What leads out of the directory is "".
func (p *patcher) stripped(name string) string {
	if name == "/dev/null" || name == "" {
		return name
	}
	if p.strip < 0 {
		name = name[strings.LastIndexByte(name, '/')+1:]
	}
	for range max(p.strip, 0) {
		i := strings.IndexByte(name, '/')
		if i < 0 {
			return ""
		}
		name = strings.TrimLeft(name[i:], "/")
	}
	if strings.HasPrefix(name, "/") || strings.Contains("/"+name+"/", "/../") {
		return ""
	}
	return name
}

// choose finds out which file to patch.
func (w *patching) choose() bool {
	f := w.f
	if w.target != "" {
		w.in = w.target
		w.out = w.in
		return true
	}
	var names [3]string
	for i, n := range f.names {
		if i > 0 && n == f.names[0] {
			names[i] = names[0]
			continue
		}
		if n = w.stripped(n); n != "/dev/null" {
			names[i] = n
		}
	}
	from, to := before, after
	if w.reverse {
		from, to = after, before
	}
	if f.git && (f.rename || f.copy) && names[from] != "" && names[to] != "" {
		w.in, w.out = names[from], names[to]
		if f.copy && w.reverse {
			w.in, w.nothing = w.out, true
		}
		if _, err := w.t.Lstat(w.out); err == nil && f.rename {
			w.in, w.renamed = w.out, true
		}
		return true
	}
	var there []string
	for _, n := range names {
		if n == "" {
			continue
		}
		if _, err := w.t.Lstat(n); err == nil {
			there = append(there, n)
		}
	}
	w.in = bestName(there)
	if w.in == "" && (f.missing[from] > 0 || f.missing[to] > 0) {
		if w.in = names[to]; w.in == "" {
			w.in = bestName(names[:])
		}
	}
	w.out = w.in
	return w.in != ""
}

// bestName is, as POSIX has it, the name with the fewest components, the shortest last one, the shortest in all.
func bestName(names []string) (best string) {
	less := func(a, b string) bool {
		if x, y := strings.Count(a, "/"), strings.Count(b, "/"); x != y {
			return x < y
		}
		if x, y := len(path.Base(a)), len(path.Base(b)); x != y {
			return x < y
		}
		return len(a) < len(b)
	}
	for _, n := range names {
		if n != "" && (best == "" || less(n, best)) {
			best = n
		}
	}
	return best
}

// missingFile reports a patch without a file.
func (w *patching) missingFile() {
	w.failed = true
	w.tell("can't find file to patch at input line %d\n", w.f.head+1)
	if w.strip < 0 {
		w.tell("Perhaps you should have used the -p or --strip option?\n")
	} else {
		w.tell("Perhaps you used the wrong -p or --strip option?\n")
	}
	if w.f.start < w.f.head {
		w.say("The text leading up to this was:\n--------------------------\n")
		for _, l := range w.lines[w.f.start:w.f.head] {
			w.say("|%s", l)
		}
		w.say("--------------------------\n")
	}
	if w.force || w.batch {
		w.say("No file to patch.  Skipping patch.\n")
	} else {
		if name := w.ask("File to patch: "); name != "" {
			w.failed = false
			old := w.target
			w.target = name
			w.apply(w.f)
			w.target = old
			return
		}
		if strings.HasPrefix(w.ask("Skip this patch? [y] "), "n") {
			w.missingFile()
			return
		}
		w.tell("Skipping patch.\n")
	}
	if n := len(w.f.hunks); n > 0 {
		w.say("%d out of %d hunk%s ignored\n", n, n, plural(n))
	}
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// look examines the file, and whether it is already as the patch would make it.
func (w *patching) look() {
	at, err := w.t.Lstat(w.in)
	if err == nil && at.Mode.IsSymlink() && w.follow {
		at, err = w.t.Stat(w.in)
	}
	w.at, w.exists = at, err == nil
	if w.exists && !w.regular() {
		w.say("File %s is not a regular file -- refusing to patch\n", tool.QuoteF(w.in))
		w.skip = true
		return
	}
	if w.target != "" && !w.exists && (w.f.missing[before] == 0 || w.reverse) {
		return // it may be made out of nothing
	}
	from, to := before, after
	if w.reverse {
		from, to = after, before
	}
	empty := !w.exists || at.Size == 0
	says := w.f.missing[from]
	if empty {
		says = w.f.missing[to]
	}
	need := 0
	if !empty {
		need = 1
	}
	known := w.exists && empty && w.f.missing[from] == 1 && w.f.missing[to] == 2 || // an empty file goes, or comes
		!w.exists && w.f.missing[to] == 1 && w.f.missing[from] == 2
	if w.f.format == 'e' || w.f.rename || w.f.copy || says <= need || known {
		return
	}
	when, what, state := "", "create", "already exists"
	if w.reverse {
		when = ", when reversed,"
	}
	if !w.exists {
		what, state = "delete", "does not exist"
	} else if empty {
		what, state = "empty out", "is already empty"
	}
	turn, skip := w.reversible("The next patch%s would %s the file %s,\nwhich %s!", when, what, tool.QuoteF(w.in), state)
	w.skip, w.unsaved = skip, skip
	if turn {
		w.reverse = !w.reverse
	}
}

// underFile reports whether a component of the name is a file, not a directory.
func (w *patching) underFile() bool {
	for dir := path.Dir(w.out); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if at, err := w.t.Stat(dir); err == nil {
			return !at.Mode.IsDir()
		}
	}
	return false
}

// regular reports whether the file is one that can be patched: links can by git's diffs that are about links.
func (w *patching) regular() bool {
	if w.at.Mode.IsSymlink() {
		return w.f.git && (w.f.modes[before].IsSymlink() || w.f.modes[after].IsSymlink())
	}
	return w.at.Mode.IsRegular()
}

func (w *patching) announce() {
	verb, kind := "patching", "file"
	if w.dry {
		verb = "checking"
	}
	if w.at.Mode.IsSymlink() || w.f.git && w.f.modes[after].IsSymlink() {
		kind = "symbolic link"
	}
	if w.quiet || w.f.format == 'e' {
		return
	}
	if w.f.crlf {
		w.say("(Stripping trailing CRs from patch; use --binary to disable.)\n")
	}
	switch {
	case w.output != "":
		w.say("%s %s %s (read from %s)\n", verb, kind, tool.QuoteF(w.output), tool.QuoteF(w.in))
	case w.renamed:
		from := w.stripped(w.f.names[before])
		if w.reverse {
			from = w.stripped(w.f.names[after])
		}
		w.say("%s %s %s (already renamed from %s)\n", verb, kind, tool.QuoteF(w.out), tool.QuoteF(from))
	case w.in != w.out && w.f.rename:
		w.say("%s %s %s (renamed from %s)\n", verb, kind, tool.QuoteF(w.out), tool.QuoteF(w.in))
	case w.in != w.out:
		w.say("%s %s %s (copied from %s)\n", verb, kind, tool.QuoteF(w.out), tool.QuoteF(w.in))
	default:
		w.say("%s %s %s\n", verb, kind, tool.QuoteF(w.out))
	}
}

// read returns the lines of the file.
func (w *patching) read(name string) []string {
	if !w.exists {
		if w.target != "" && w.f.missing[before] == 0 && len(w.f.hunks) > 0 && w.f.hunks[0].count[before] > 0 {
			w.failed = true
		}
		return nil
	}
	var text []byte
	var err error
	if w.at.Mode.IsSymlink() {
		var target string
		target, err = w.t.Readlink(name)
		text = []byte(target)
	} else {
		if text, err = w.t.ReadFile(name, maxFile); name == "-" {
			err = syscall.ENOENT
		}
	}
	if err != nil {
		w.fatal("Can't open file %s : %s", tool.QuoteF(name), tool.Strerror(err))
	}
	body := strings.SplitAfter(string(text), "\n")
	if body[len(body)-1] == "" {
		body = body[:len(body)-1]
	}
	return body
}

// run applies the hunks.
func (w *patching) run() {
	for i, h := range w.f.hunks {
		w.t.Check()
		if w.reverse {
			h = h.turned()
		}
		where, fuzz := 0, 0
		if !w.skip {
			h, where, fuzz = w.place(i, h)
		}
		line := where
		if where == 0 {
			line = h.start()
		}
		line += w.shift
		from := before
		if w.reverse {
			from = after
		}
		switch {
		case w.skip, where == 0, where == 1 && w.f.missing[from] == 2 && w.exists && w.at.Size > 0:
			w.failures++
			w.reject(h)
			if !w.skip && !w.quiet {
				w.say("Hunk #%d FAILED at %d%s.\n", i+1, line, w.otherEndings(h))
			}
		default:
			w.insert(h, where)
			if !w.quiet && (fuzz > 0 || w.offset != 0) {
				w.report(i+1, line, fuzz)
			}
		}
	}
	if w.skip {
		w.failures = len(w.f.hunks)
	}
	w.done = append(w.done, w.body[min(w.used, len(w.body)):]...)
}

// otherEndings hints at lines that end in other ways in the file than in the patch.
func (w *patching) otherEndings(h *patchHunk) string {
	at := h.start() - 1
	for _, l := range h.lines {
		if l.kind != '+' && at >= 0 && at < len(w.body) {
			if strings.HasSuffix(l.text, "\r\n") != strings.HasSuffix(w.body[at], "\r\n") && strings.TrimRight(l.text, "\r\n") == strings.TrimRight(w.body[at], "\r\n") {
				return " (different line endings)"
			}
			return ""
		}
	}
	return ""
}

func (w *patching) report(n, line, fuzz int) {
	w.say("Hunk #%d succeeded at %d", n, line)
	if fuzz > 0 {
		w.say(" with fuzz %d", fuzz)
	}
	if w.offset != 0 {
		w.say(" (offset %d line%s)", w.offset, plural(w.offset))
	}
	w.say(".\n")
}

// turned is the hunk that takes back what this one does.
func (h *patchHunk) turned() *patchHunk {
	t := &patchHunk{first: [2]int{h.first[1], h.first[0]}, count: [2]int{h.count[1], h.count[0]}, function: h.function, lines: make([]patchLine, len(h.lines))}
	for i, l := range h.lines {
		t.lines[i] = patchLine{map[byte]byte{' ': ' ', '-': '+', '+': '-'}[l.kind], l.text}
	}
	// Removed lines come before added ones.
	for i := 0; i < len(t.lines); {
		j := i
		for j < len(t.lines) && t.lines[j].kind != ' ' {
			j++
		}
		var sorted []patchLine
		for _, kind := range "-+" {
			for _, l := range t.lines[i:j] {
				if l.kind == byte(kind) {
					sorted = append(sorted, l)
				}
			}
		}
		copy(t.lines[i:j], sorted)
		i = j + 1
	}
	return t
}

// start is the number of the first line that a hunk is about, or before which it inserts.
func (h *patchHunk) start() int {
	if h.count[before] == 0 {
		return h.first[before] + 1
	}
	return h.first[before]
}

// place finds where a hunk fits: with as little fuzz as possible, and near to its line. If the first one doesn't fit
// but would the other way round, the patch may be reversed.
func (w *patching) place(i int, h *patchHunk) (*patchHunk, int, int) {
	prefix, suffix := h.context()
	for fuzz := 0; ; fuzz++ {
		where := w.locate(h, fuzz)
		if where == 0 || fuzz > 0 || w.offset != 0 {
			w.mismatch = true
		}
		if where == 0 && i == 0 && !w.force && w.reverse == w.patcher.reverse {
			back := h.turned()
			if at := w.locate(back, fuzz); at > 0 {
				what := "Reversed (or previously applied)"
				if w.reverse {
					what = "Unreversed"
				}
				turn, skip := w.reversible("%s patch detected!", what)
				if turn {
					w.reverse = !w.reverse
					return back, at, fuzz
				}
				if w.skip = skip; skip {
					return h, 0, 0
				}
				w.patcher.force = true // asked once
			}
		}
		if where > 0 || fuzz >= min(w.fuzz, max(prefix, suffix)) {
			return h, where, fuzz
		}
	}
}

// context counts the lines of context before and after what a hunk changes.
func (h *patchHunk) context() (prefix, suffix int) {
	for prefix < len(h.lines) && h.lines[prefix].kind == ' ' {
		prefix++
	}
	for suffix < len(h.lines) && h.lines[len(h.lines)-1-suffix].kind == ' ' {
		suffix++
	}
	return prefix, suffix
}

// locate returns the number of the line where a hunk fits with this fuzz, or 0. A hunk with less context on one side
// than on the other is at the file's beginning or end, unless fuzz makes up for it.
func (w *patching) locate(h *patchHunk, fuzz int) int {
	var old []string
	for _, l := range h.lines {
		if l.kind != '+' {
			old = append(old, l.text)
		}
	}
	guess := h.start() + w.offset
	if len(old) == 0 {
		if guess-1 > len(w.body) {
			return len(w.body) + 1
		}
		return guess
	}
	prefix, suffix := h.context()
	context := max(prefix, suffix)
	head, tail := fuzz+prefix-context, fuzz+suffix-context
	fits := func(at int) bool {
		from, to := max(head, 0), len(old)-max(tail, 0)
		if at <= w.used || at < 1 || at-1+to > len(w.body) || from > to {
			return false
		}
		for i := from; i < to; i++ {
			if !w.equal(old[i], w.body[at-1+i]) {
				return false
			}
		}
		return true
	}
	found := func(at int) int {
		w.offset += at - guess
		return at
	}
	switch {
	case head < 0 && h.start() <= 1:
		if tail < 0 && len(old) != len(w.body) || w.used > prefix || !fits(1) {
			return 0
		}
		return found(1)
	case tail < 0:
		if at := len(w.body) - len(old) + 1; fits(at) {
			return found(at)
		}
		return 0
	}
	for d := 0; d <= max(len(w.body)+len(old)-guess, guess)+1; d++ {
		if w.t.Step(1) != nil {
			w.t.Check()
		}
		if fits(guess + d) {
			return found(guess + d)
		}
		if d > 0 && fits(guess-d) {
			return found(guess - d)
		}
	}
	return 0
}

// equal compares a line of the patch with one of the file.
func (w *patching) equal(a, b string) bool {
	if a == b {
		return true
	}
	return w.blanks && strings.Join(strings.Fields(a), " ") == strings.Join(strings.Fields(b), " ") &&
		(a != "" && strings.ContainsAny(a[:1], " \t")) == (b != "" && strings.ContainsAny(b[:1], " \t"))
}

// insert makes the hunk's change at a line. Context lines stay as they are in the file.
func (w *patching) insert(h *patchHunk, where int) {
	for w.used < where-1 && w.used < len(w.body) {
		w.done = append(w.done, w.body[w.used])
		w.used++
	}
	for _, l := range h.lines {
		w.define(l.kind)
		if l.kind == '+' {
			w.done = append(w.done, l.text)
			continue
		}
		if w.used < len(w.body) && (l.kind == ' ' || w.ifdef != "") {
			w.done = append(w.done, w.body[w.used])
		}
		w.used++
	}
	w.define(' ')
	w.shift += h.count[after] - h.count[before]
}

// define writes the lines of -D that come before a line of this kind.
func (w *patching) define(kind byte) {
	if w.ifdef == "" {
		return
	}
	switch {
	case kind == ' ' && w.defined != 0:
		w.done, w.defined = append(w.done, "#endif\n"), 0
	case kind == '-' && w.defined == 0:
		w.done, w.defined = append(w.done, "#ifndef "+w.ifdef+"\n"), 'n'
	case kind == '-' && w.defined != 'n':
		w.done, w.defined = append(w.done, "#endif\n", "#ifndef "+w.ifdef+"\n"), 'n'
	case kind == '+' && w.defined == 0:
		w.done, w.defined = append(w.done, "#ifdef "+w.ifdef+"\n"), 'd'
	case kind == '+' && w.defined == 'n':
		w.done, w.defined = append(w.done, "#else\n"), 'e'
	}
}

// edit runs an ed script of the kind that diff -e writes.
func (w *patching) edit() {
	body := w.body
	lines := w.f.script
	current := 0
	for i := 0; i < len(lines); i++ {
		if w.t.Step(1+len(body)/256) != nil {
			w.t.Check()
		}
		op, first, last := byte('a'), current, current
		if m := edHead.FindStringSubmatch(lines[i]); m != nil {
			first, last = patchSpan(m[1], m[2])
			if m[2] == "" {
				last = first
			}
			op = m[3][0]
		} else if lines[i] == "s/.//\n" {
			if current < 1 || current > len(body) || len(body[current-1]) < 2 {
				w.fatal("ed FAILED")
			}
			body[current-1] = body[current-1][1:]
			continue
		}
		if first > last || last > len(body) || first < 1 && (op == 'd' || op == 'c') {
			w.fatal("ed FAILED")
		}
		var text []string
		if op != 'd' {
			for i++; i < len(lines) && lines[i] != ".\n"; i++ {
				text = append(text, lines[i])
			}
		}
		from, to := first-1, last
		switch op {
		case 'a':
			from = last
		case 'i':
			from, to = max(first-1, 0), max(first-1, 0)
		}
		rest := append(append([]string(nil), text...), body[to:]...)
		body = append(body[:from:from], rest...)
		current = from + len(text)
	}
	w.body = body
}
