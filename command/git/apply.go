package git

import (
	"bytes"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// filePatch is what a patch does to one file.
type filePatch struct {
	old, new         string // names, "" for /dev/null
	oldMode, newMode uint32
	rename, copy     bool
	hunks            []patchHunk
	binary           bool
	oldID            string
}

// patchHunk is one hunk of a patch.
type patchHunk struct {
	oldAt, oldLen, newAt, newLen int
	lines                        []string // each with its mark and, but for the last maybe, a newline
	at                           int      // line of the patch
}

type applyOptions struct {
	check, index, cached, reverse, reject, stat, numstat, summary, apply, three, verbose, unidiffZero, force bool
	strip, context                                                                                           int
	dir, space                                                                                               string
	fuzzy                                                                                                    bool
}

func (r *repo) cmdApply(args []string) int {
	a := applyOptions{strip: 1, context: -1}
	o := r.options("apply", args)
	for o.next() {
		switch o.name {
		case "--check":
			a.check = true
		case "--index":
			a.index = true
		case "--cached":
			a.cached = true
		case "-R", "--reverse":
			a.reverse = true
		case "--reject":
			a.reject = true
		case "--stat":
			a.stat = true
		case "--numstat":
			a.numstat = true
		case "--summary":
			a.summary = true
		case "--apply":
			a.apply = true
		case "-3", "--3way":
			a.three, a.index = true, true
		case "-v", "--verbose":
			a.verbose = true
		case "-p":
			a.strip = o.number()
		case "-C":
			a.context = o.number()
		case "--directory":
			a.dir = o.arg()
		case "--whitespace":
			a.space = o.arg()
		case "--unidiff-zero":
			a.unidiffZero = true
		case "--ignore-whitespace", "--ignore-space-change", "--recount", "--allow-overlap", "--inaccurate-eof", "--allow-empty", "-q", "--quiet", "--unsafe-paths", "--binary", "--allow-binary-replacement", "-N":
			a.fuzzy = a.fuzzy || strings.HasPrefix(o.name, "--ignore")
		case "--exclude", "--include":
			o.arg()
		default:
			o.unknown()
		}
	}
	files := o.operands()
	if len(files) == 0 {
		files = []string{"-"}
	}
	status := 0
	for _, f := range files {
		b, err := r.t.ReadFile(f, maxObject)
		if err != nil {
			r.die(128, "error: can't open patch '%s': %s", f, strerror(err))
		}
		status = max(status, r.applyText(&a, string(b)))
	}
	if a.index || a.cached {
		r.writeIndex()
	}
	return status
}

func (r *repo) applyText(a *applyOptions, text string) int {
	list, err := parsePatch(text, a.strip)
	if err != nil {
		r.die(128, "error: %s", err)
	}
	if len(list) == 0 {
		r.die(128, "error: No valid patches in input (allow with \"--allow-empty\")")
	}
	if a.reverse {
		for i := range list {
			list[i].turn()
		}
	}
	if a.stat || a.numstat || a.summary {
		r.patchStat(a, list)
		if !a.apply {
			return 0
		}
	}
	out, ok := r.applyAll(a, list)
	if !ok {
		return 1
	}
	if a.check {
		return 0
	}
	return r.applyWrite(a, list, out)
}

// turn makes a patch take itself back.
func (p *filePatch) turn() {
	p.old, p.new = p.new, p.old
	p.oldMode, p.newMode = p.newMode, p.oldMode
	for i := range p.hunks {
		h := &p.hunks[i]
		h.oldAt, h.newAt, h.oldLen, h.newLen = h.newAt, h.oldAt, h.newLen, h.oldLen
		lines := make([]string, len(h.lines))
		for k, l := range h.lines {
			switch l[0] {
			case '+':
				l = "-" + l[1:]
			case '-':
				l = "+" + l[1:]
			}
			lines[k] = l
		}
		h.lines = lines
	}
}

// applied is a file's content after a patch.
type applied struct {
	data []byte
	mode uint32
	gone bool
	conf *[4]treeEntry // stages of a conflict
}

func (r *repo) applyAll(a *applyOptions, list []filePatch) (map[string]*applied, bool) {
	out := map[string]*applied{}
	ok := true
	for i := range list {
		p := &list[i]
		if a.dir != "" {
			p.old, p.new = joinDir(a.dir, p.old), joinDir(a.dir, p.new)
		} else if r.prefix != "" && r.root != "" {
			p.old, p.new = joinDir(r.prefix, p.old), joinDir(r.prefix, p.new)
		}
		for _, n := range []string{p.old, p.new} {
			if n != "" && !safePath(n) {
				r.die(128, "error: invalid path '%s'", n)
			}
		}
		if a.verbose {
			r.say("Checking patch %s...", s2(p.new, p.old))
		}
		if !r.applyFile(a, p, out) {
			ok = false
		}
	}
	return out, ok
}

func joinDir(dir, p string) string {
	if p == "" {
		return ""
	}
	return path.Join(dir, p)
}

// source is the content that a patch applies to.
func (r *repo) source(a *applyOptions, name string, out map[string]*applied) (data []byte, mode uint32, err string) {
	if x := out[name]; x != nil {
		if x.gone {
			return nil, 0, name + ": No such file or directory"
		}
		return x.data, x.mode, ""
	}
	if a.cached || a.index {
		e := r.index().find(name)
		if e == nil {
			return nil, 0, name + ": does not exist in index"
		}
		if a.cached {
			return r.read(e.id, blobObj), e.mode, ""
		}
		if _, differs := r.workChange(e); differs {
			return nil, 0, name + ": does not match index"
		}
	}
	file := name
	if r.root != "" {
		file = r.file(name)
		if r.hiddenByLink(name) {
			if _, e := r.t.Lstat(file); e == nil {
				return nil, 0, "affected file '" + name + "' is beyond a symbolic link"
			}
		}
	}
	st, e := r.t.Lstat(file)
	if e != nil {
		return nil, 0, name + ": " + strerror(e)
	}
	if st.Mode.IsSymlink() {
		s, _ := r.t.Readlink(file)
		return []byte(s), modeLink, ""
	}
	b, e := r.t.ReadFile(file, maxObject)
	if e != nil {
		return nil, 0, name + ": " + strerror(e)
	}
	return b, r.fileMode(st, 0), ""
}

func (r *repo) applyFile(a *applyOptions, p *filePatch, out map[string]*applied) bool {
	fail := func(format string, args ...any) bool {
		r.say("error: "+format, args...)
		return false
	}
	var data []byte
	mode := uint32(modeFile)
	if p.old != "" {
		var problem string
		if data, mode, problem = r.source(a, p.old, out); problem != "" {
			return fail("%s", problem)
		}
	} else if x := out[p.new]; x == nil || !x.gone {
		if !a.cached {
			file := p.new
			if r.root != "" {
				file = r.file(p.new)
			}
			if _, err := r.t.Lstat(file); err == nil {
				return fail("%s: already exists in working directory", p.new)
			}
		}
		if (a.index || a.cached) && r.index().find(p.new) != nil {
			return fail("%s: already exists in index", p.new)
		}
	}
	if p.newMode != 0 {
		mode = p.newMode
	}
	if p.binary {
		return fail("cannot apply binary patch to '%s' without full index line\nerror: %s: patch does not apply", s2(p.new, p.old), s2(p.new, p.old))
	}
	result, at, ok := patchLines(data, p.hunks, a)
	name := s2(p.new, p.old)
	if !ok && a.three {
		return r.applyThree(a, p, data, mode, out)
	}
	if !ok {
		h := p.hunks[at]
		r.say("error: patch failed: %s:%d", s2(p.old, p.new), h.oldAt)
		return fail("%s: patch does not apply", s2(p.old, name))
	}
	if p.new == "" {
		if len(result) > 0 {
			return fail("removal patch leaves file contents\nerror: %s: patch does not apply", p.old)
		}
		out[p.old] = &applied{gone: true}
		return true
	}
	if p.old != "" && p.old != p.new && !p.copy {
		out[p.old] = &applied{gone: true}
	}
	out[p.new] = &applied{data: result, mode: mode}
	return true
}

// applyThree merges a patch by the content that it was made for.
func (r *repo) applyThree(a *applyOptions, p *filePatch, data []byte, mode uint32, out map[string]*applied) bool {
	name := s2(p.new, p.old)
	id, err := r.abbreviated(p.oldID)
	if err != nil {
		r.say("error: repository lacks the necessary blob to perform 3-way merge.\nerror: %s: patch does not apply", name)
		return false
	}
	base := r.read(id, blobObj)
	theirs, _, ok := patchLines(base, p.hunks, a)
	if !ok {
		r.say("error: %s: patch does not apply", name)
		return false
	}
	text, n := merge3(base, data, theirs, [3]string{"ours", "theirs", "base"}, false, "", r.step)
	x := &applied{data: text, mode: mode}
	if n > 0 {
		x.conf = &[4]treeEntry{1: {mode: mode, id: id}, 2: {mode: mode, id: r.writeObject(blobObj, data)}, 3: {mode: mode, id: r.writeObject(blobObj, theirs)}}
	}
	out[name] = x
	return true
}

// patchLines applies hunks, each at its place or the nearest where its lines are; failed is the first that fits nowhere.
func patchLines(data []byte, hunks []patchHunk, a *applyOptions) (result []byte, failed int, ok bool) {
	list := lines(data)
	text := make([]string, len(list))
	for i := range list {
		text[i] = string(list[i])
	}
	shift := 0
	for i := range hunks {
		h := &hunks[i]
		var pre, post []string
		lead, trail := 0, 0
		changed := false
		for _, l := range h.lines {
			switch l[0] {
			case ' ':
				pre, post = append(pre, l[1:]), append(post, l[1:])
				if !changed {
					lead++
				}
				trail++
			case '-':
				pre, changed, trail = append(pre, l[1:]), true, 0
			case '+':
				post, changed, trail = append(post, l[1:]), true, 0
			}
		}
		want := h.oldAt - 1 + shift
		if len(pre) == 0 {
			want = h.oldAt + shift
			if len(text) == 0 {
				want = 0
			}
		}
		atStart := h.oldAt <= 1 && !a.unidiffZero
		atEnd := trail < lead && !a.unidiffZero
		pos := -1
		for {
			if pos = findLines(text, pre, want, atStart, atEnd, a.fuzzy); pos >= 0 {
				break
			}
			if atStart || atEnd {
				atStart, atEnd = false, false
				continue
			}
			if a.context >= 0 && (lead > a.context || trail > a.context) {
				if lead >= trail && lead > 0 {
					pre, post, lead = pre[1:], post[1:], lead-1
					want++
				}
				if trail > lead && trail > 0 {
					pre, post, trail = pre[:len(pre)-1], post[:len(post)-1], trail-1
				}
				continue
			}
			return nil, i, false
		}
		shift += pos - want + len(post) - len(pre)
		shift -= 0
		out := append([]string(nil), text[:pos]...)
		out = append(out, post...)
		text = append(out, text[pos+len(pre):]...)
	}
	return []byte(strings.Join(text, "")), 0, true
}

// findLines finds where lines are, nearest to a place.
func findLines(text, want []string, at int, start, end, fuzzy bool) int {
	fits := func(i int) bool {
		if i < 0 || i+len(want) > len(text) || start && i != 0 || end && i+len(want) != len(text) {
			return false
		}
		for k := range want {
			if text[i+k] != want[k] && !(fuzzy && string(spaceNone.normal([]byte(text[i+k]))) == string(spaceNone.normal([]byte(want[k])))) {
				return false
			}
		}
		return true
	}
	for d := 0; d <= len(text)+1; d++ {
		if fits(at + d) {
			return at + d
		}
		if fits(at - d) {
			return at - d
		}
	}
	return -1
}

// applyWrite stores what came out.
func (r *repo) applyWrite(a *applyOptions, list []filePatch, out map[string]*applied) int {
	status := 0
	names := flat{}
	for n := range out {
		names[n] = treeEntry{}
	}
	for _, n := range names.paths() {
		if x := out[n]; x.gone {
			if !a.cached {
				if r.root == "" {
					r.t.Unlink(n)
				} else {
					r.removeWork(n)
				}
			}
			if a.index || a.cached {
				r.index().remove(n)
			}
		}
	}
	for _, n := range names.paths() {
		x := out[n]
		if x.gone {
			continue
		}
		if r.root == "" {
			r.mkdirAll(path.Dir(r.abs(n)))
			r.must(r.overwrite(n, string(x.data)))
			continue
		}
		e := entry{mode: x.mode, path: n}
		if !a.cached {
			st, err := r.writeWork(n, x.mode, x.data)
			r.must(err)
			statEntry(&e, st)
		}
		switch {
		case x.conf != nil:
			r.say("Applied patch to '%s' with conflicts.", n)
			r.printf("U %s\n", n)
			r.index().remove(n)
			for s, t := range x.conf {
				if t.mode != 0 {
					r.index().put(entry{mode: t.mode, id: t.id, path: n, flags: uint16(s) << 12})
				}
			}
			status = 1
		case a.index || a.cached:
			e.id = r.writeObject(blobObj, x.data)
			r.index().put(e)
		}
		if a.verbose {
			r.say("Applied patch %s cleanly.", n)
		}
	}
	return status
}

func (r *repo) patchStat(a *applyOptions, list []filePatch) {
	var stats []fileStat
	add, del := 0, 0
	for i := range list {
		p := &list[i]
		s := fileStat{name: r.quote(s2(p.new, p.old))}
		if p.rename {
			s.name = r.statName(&change{status: 'R', old: treeEntry{name: p.old}, new: treeEntry{name: p.new}})
		}
		for _, h := range p.hunks {
			for _, l := range h.lines {
				switch l[0] {
				case '+':
					s.added++
				case '-':
					s.del++
				}
			}
		}
		add, del = add+s.added, del+s.del
		stats = append(stats, s)
		if a.numstat {
			r.printf("%d\t%d\t%s\n", s.added, s.del, s.name)
		}
	}
	if a.stat {
		d := newDiffOptions()
		d.statNumber = 4
		r.statGraph(stats, &d)
		r.printf("%s\n", statSummary(len(stats), add, del))
	}
	for i := range list {
		p := &list[i]
		switch {
		case !a.summary:
		case p.old == "":
			r.printf(" create mode %06o %s\n", p.newMode, p.new)
		case p.new == "":
			r.printf(" delete mode %06o %s\n", p.oldMode, p.old)
		}
	}
}

// parsePatch reads the patches in a text; what stands around them is passed over.
func parsePatch(text string, strip int) (list []filePatch, err error) {
	in := strings.SplitAfter(text, "\n")
	for i := 0; i < len(in); {
		line := strings.TrimRight(in[i], "\r\n")
		switch {
		case strings.HasPrefix(line, "diff --git "):
			var p filePatch
			if i, err = parseGitPatch(in, i, strip, &p); err != nil {
				return nil, err
			}
			list = append(list, p)
		case strings.HasPrefix(line, "--- ") && i+2 < len(in) && strings.HasPrefix(in[i+1], "+++ ") && strings.HasPrefix(in[i+2], "@@ -"):
			p := filePatch{old: patchName(line[4:], strip), new: patchName(strings.TrimRight(in[i+1], "\r\n")[4:], strip)}
			if p.old == "" {
				p.newMode = modeFile
			}
			if i, err = parseHunks(in, i+2, &p); err != nil {
				return nil, err
			}
			if p.old != "" && p.new != "" && p.old != p.new {
				// Names such as a.orig and a: the shorter one is meant.
				if len(p.old) < len(p.new) {
					p.new = p.old
				} else {
					p.old = p.new
				}
			}
			list = append(list, p)
		case strings.HasPrefix(line, "@@ -"):
			if _, ok := parseHunkHead(line); ok {
				return nil, fmt.Errorf("patch fragment without header at line %d: %s", i+1, line)
			}
			i++
		default:
			i++
		}
	}
	return list, nil
}

// patchName takes folders off a name, and a time stamp behind it.
func patchName(s string, strip int) string {
	if strings.HasPrefix(s, `"`) {
		s = unquotePath(s)
	} else if i := strings.IndexByte(s, '\t'); i >= 0 {
		s = s[:i]
	}
	s = strings.TrimRight(s, "\r")
	if s == "/dev/null" {
		return ""
	}
	for ; strip > 0; strip-- {
		_, rest, ok := strings.Cut(s, "/")
		if !ok {
			break
		}
		s = strings.TrimLeft(rest, "/")
	}
	return s
}

// unquotePath undoes quotePath.
func unquotePath(s string) string {
	var b strings.Builder
	for i := 1; i < len(s) && s[i] != '"'; i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if k := strings.IndexByte("abtnvfr", s[i]); k >= 0 {
			b.WriteByte(byte(7 + k))
		} else if i+2 < len(s) && s[i] >= '0' && s[i] <= '3' {
			v, _ := strconv.ParseUint(s[i:i+3], 8, 8)
			b.WriteByte(byte(v))
			i += 2
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// parseGitPatch reads a patch that begins with "diff --git".
func parseGitPatch(in []string, i, strip int, p *filePatch) (int, error) {
	head := strings.TrimRight(in[i], "\r\n")[len("diff --git "):]
	p.old, p.new = gitNames(head, strip)
	mode := func(s string) uint32 {
		v, _ := strconv.ParseUint(s, 8, 32)
		return canonMode(uint32(v))
	}
	create, remove := false, false
	for i++; i < len(in); i++ {
		line := strings.TrimRight(in[i], "\r\n")
		k, v, _ := strings.Cut(line, " ")
		switch {
		case strings.HasPrefix(line, "old mode "):
			p.oldMode = mode(line[9:])
		case strings.HasPrefix(line, "new mode "):
			p.newMode = mode(line[9:])
		case strings.HasPrefix(line, "new file mode "):
			p.newMode, create = mode(line[14:]), true
		case strings.HasPrefix(line, "deleted file mode "):
			p.oldMode, remove = mode(line[18:]), true
		case strings.HasPrefix(line, "rename from "), strings.HasPrefix(line, "copy from "):
			p.rename, p.copy = true, line[0] == 'c'
			p.old = patchName(line[strings.Index(line, "from ")+5:], 0)
		case strings.HasPrefix(line, "rename to "), strings.HasPrefix(line, "copy to "):
			p.new = patchName(line[strings.Index(line, "to ")+3:], 0)
		case k == "index":
			ids, m, has := strings.Cut(v, " ")
			if p.oldID, _, _ = strings.Cut(ids, ".."); has {
				p.oldMode = mode(m)
			}
		case k == "similarity" || k == "dissimilarity":
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
			n := patchName(line[4:], strip)
			if n != "" && !p.rename {
				if line[0] == '-' {
					p.old = n
				} else {
					p.new = n
				}
			}
		case strings.HasPrefix(line, "Binary files ") || line == "GIT binary patch":
			p.binary = true
		case strings.HasPrefix(line, "@@ -"):
			end, err := parseHunks(in, i, p)
			p.ends(create, remove)
			return end, err
		default:
			p.ends(create, remove)
			return i, nil
		}
	}
	p.ends(create, remove)
	return i, nil
}

func (p *filePatch) ends(create, remove bool) {
	if create {
		p.old = ""
	}
	if remove {
		p.new = ""
	}
}

// gitNames splits "a/x b/x".
func gitNames(s string, strip int) (old, new string) {
	if strings.HasPrefix(s, `"`) {
		end := 1
		for end < len(s) && s[end] != '"' {
			if s[end] == '\\' {
				end++
			}
			end++
		}
		return patchName(s[:min(end+1, len(s))], strip), patchName(strings.TrimSpace(s[min(end+1, len(s)):]), strip)
	}
	// The names are the same, but for renames, which have lines of their own.
	for i := 0; i < len(s); i++ {
		if s[i] == ' ' {
			a, b := patchName(s[:i], strip), patchName(s[i+1:], strip)
			if a == b {
				return a, b
			}
		}
	}
	a, b, _ := strings.Cut(s, " ")
	return patchName(a, strip), patchName(b, strip)
}

func parseHunkHead(line string) (h patchHunk, ok bool) {
	rest, found := strings.CutPrefix(line, "@@ -")
	body, _, ended := strings.Cut(rest, " @@")
	old, new, two := strings.Cut(body, " +")
	if !found || !ended || !two {
		return h, false
	}
	read := func(s string) (at, n int) {
		a, b, has := strings.Cut(s, ",")
		at, err := strconv.Atoi(a)
		n = 1
		var err2 error
		if has {
			n, err2 = strconv.Atoi(b)
		}
		if err != nil || err2 != nil || at < 0 || n < 0 {
			ok = false
		}
		return at, n
	}
	ok = true
	h.oldAt, h.oldLen = read(old)
	h.newAt, h.newLen = read(new)
	return h, ok
}

// parseHunks reads the hunks of a file.
func parseHunks(in []string, i int, p *filePatch) (int, error) {
	for i < len(in) {
		h, ok := parseHunkHead(strings.TrimRight(in[i], "\r\n"))
		if !ok {
			return i, nil
		}
		h.at = i + 1
		i++
		old, new := h.oldLen, h.newLen
		for i < len(in) && (old > 0 || new > 0) {
			l := in[i]
			if l == "" {
				break
			}
			switch l[0] {
			case '\n':
				l = " " + l
				old, new = old-1, new-1
			case ' ':
				old, new = old-1, new-1
			case '-':
				old--
			case '+':
				new--
			case '\\':
				h.dropNewline()
				i++
				continue
			default:
				return i, fmt.Errorf("corrupt patch at line %d", i+1)
			}
			h.lines = append(h.lines, l)
			i++
		}
		if old != 0 || new != 0 {
			return i, fmt.Errorf("corrupt patch at line %d", i+1)
		}
		if i < len(in) && strings.HasPrefix(in[i], "\\ ") {
			h.dropNewline()
			i++
		}
		p.hunks = append(p.hunks, h)
	}
	return i, nil
}

func (h *patchHunk) dropNewline() {
	if n := len(h.lines); n > 0 {
		h.lines[n-1] = strings.TrimSuffix(h.lines[n-1], "\n")
	}
}

// isPatch reports whether bytes look like a patch.
func isPatch(b []byte) bool {
	return bytes.Contains(b, []byte("diff --git ")) || bytes.Contains(b, []byte("\n+++ "))
}
