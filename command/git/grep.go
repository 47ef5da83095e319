package git

import (
	"bytes"
	"strings"

	"agentrun.dev/command/posixre"
)

type grepOptions struct {
	fold, invert, word, number, column, names, without, count, quiet, noName, only, extended, fixed, perl, heading, brk, text bool
	cached, untracked, noIndex, full, zero, all, function                                                                     bool
	before, after, max, depth                                                                                                 int
	patterns                                                                                                                  []string
	noBinary                                                                                                                  bool
	re                                                                                                                        []*posixre.Regexp
	shown                                                                                                                     bool
}

func (g *grepOptions) option(r *repo, o *options) bool {
	switch o.name {
	case "-i", "--ignore-case":
		g.fold = true
	case "-v", "--invert-match":
		g.invert = true
	case "-w", "--word-regexp":
		g.word = true
	case "-n", "--line-number":
		g.number = true
	case "--column":
		g.column = true
	case "-l", "--files-with-matches", "--name-only":
		g.names = true
	case "-L", "--files-without-match":
		g.without = true
	case "-c", "--count":
		g.count = true
	case "-q", "--quiet":
		g.quiet = true
	case "-h":
		g.noName = true
	case "-H":
		g.noName = false
	case "-o", "--only-matching":
		g.only = true
	case "-E", "--extended-regexp":
		g.extended, g.fixed, g.perl = true, false, false
	case "-G", "--basic-regexp":
		g.extended, g.fixed, g.perl = false, false, false
	case "-F", "--fixed-strings":
		g.fixed = true
	case "-P", "--perl-regexp":
		g.perl = true
	case "-a", "--text":
		g.text = true
	case "-I":
		g.noBinary = true
	default:
		return g.option2(r, o)
	}
	return true
}

func (g *grepOptions) option2(r *repo, o *options) bool {
	switch o.name {
	case "-e":
		g.patterns = append(g.patterns, o.arg())
	case "-f":
		g.patterns = append(g.patterns, r.fileLines(o.arg())...)
	case "-A", "--after-context":
		g.after = o.number()
	case "-B", "--before-context":
		g.before = o.number()
	case "-C", "--context":
		g.before = o.number()
		g.after = g.before
	case "-m", "--max-count":
		g.max = o.number()
	case "--max-depth":
		g.depth = o.number()
	case "--cached":
		g.cached = true
	case "--untracked":
		g.untracked = true
	case "--no-index":
		g.noIndex, g.untracked = true, true
	case "--full-name":
		g.full = true
	case "-z", "--null":
		g.zero = true
	case "--all-match":
		g.all = true
	case "--heading":
		g.heading = true
	case "--break":
		g.brk = true
	case "--or", "-r", "--recursive", "--no-color", "--color", "--threads", "--exclude-standard", "--no-exclude-standard", "-p", "--show-function", "-W", "--function-context",
		"--no-line-number", "--textconv", "--no-textconv", "--no-recurse-submodules":
	case "--and", "--not", "(", ")":
		r.fatal("%s isn't done here", o.name)
	default:
		if len(o.name) == 2 && o.name[1] >= '0' && o.name[1] <= '9' {
			o.queue = o.name[1:] + o.queue
			g.before = o.number()
			g.after = g.before
			return true
		}
		return false
	}
	return true
}

func (r *repo) cmdGrep(args []string) int {
	g := &grepOptions{depth: -1, number: r.config().bool("grep.linenumber", false), column: r.config().bool("grep.column", false)}
	switch v, _ := r.config().get("grep.patterntype"); v {
	case "extended":
		g.extended = true
	case "fixed":
		g.fixed = true
	case "perl":
		g.perl = true
	}
	g.full = r.config().bool("grep.fullname", false)
	o := r.options("grep", args)
	for o.next() {
		if !g.option(r, o) {
			o.unknown()
		}
	}
	rest := o.rest
	if len(g.patterns) == 0 {
		if len(rest) == 0 {
			r.fatal("no pattern given")
		}
		g.patterns, rest = rest[:1], rest[1:]
	}
	r.compileGrep(g)
	var trees []oid
	var names []string
	for len(rest) > 0 && !g.noIndex {
		id, err := r.rev(rest[0])
		if err != nil || r.root != "" && !o.dash && r.pathExists(rest[0]) {
			break
		}
		trees, names, rest = append(trees, id), append(names, rest[0]), rest[1:]
	}
	if !o.dash {
		for _, p := range rest {
			if !r.pathExists(p) && !strings.ContainsAny(p, "*?[:") {
				r.fatal("ambiguous argument '%s': unknown revision or path not in the working tree.\nUse '--' to separate paths from revisions, like this:\n'git <command> [<revision>...] -- [<file>...]'", p)
			}
		}
	}
	paths := append(append([]string(nil), rest...), o.after...)
	spec := r.pathspec(paths)
	if spec.empty() && r.prefix != "" {
		spec.items = append(spec.items, specItem{path: strings.TrimSuffix(r.prefix, "/")})
	}
	found := false
	if len(trees) == 0 {
		found = r.grepFiles(g, spec)
	}
	for i, id := range trees {
		found = r.grepTree(g, id, names[i], spec) || found
	}
	if found {
		return 0
	}
	return 1
}

func (r *repo) compileGrep(g *grepOptions) {
	for _, p := range g.patterns {
		o := posixre.Options{Flavor: posixre.Basic, Fold: g.fold, NoNewline: true}
		switch {
		case g.fixed:
			p = quoteBasic(p)
		case g.perl:
			o.Flavor = posixre.Perl
		case g.extended:
			o.Flavor = posixre.Extended
		}
		re, err := posixre.Compile(p, o)
		if err != nil {
			r.fatal("command line, '%s': %s", p, err)
		}
		g.re = append(g.re, re)
	}
}

func quoteBasic(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(`\.*[]^$`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func (r *repo) grepFiles(g *grepOptions, spec *pathspec) bool {
	found := false
	var list []string
	if g.noIndex {
		list, _ = r.untracked(true, false, spec.match)
		for _, e := range r.index().entries {
			if spec.match(e.path) {
				list = append(list, e.path)
			}
		}
	} else {
		for _, e := range r.index().entries {
			if spec.match(e.path) && (len(list) == 0 || list[len(list)-1] != e.path) && (e.mode == modeFile || e.mode == modeExec) {
				list = append(list, e.path)
			}
		}
		if g.untracked {
			more, _ := r.untracked(true, false, spec.match)
			list = append(list, more...)
		}
	}
	for _, p := range list {
		r.step(1)
		var data []byte
		if g.cached {
			e := r.index().find(p)
			if e == nil {
				continue
			}
			data = r.read(e.id, blobObj)
		} else {
			a, err := r.t.Lstat(r.file(p))
			if err != nil || !a.Mode.IsRegular() || r.hiddenByLink(p) {
				continue
			}
			if data, err = r.t.ReadFile(r.file(p), maxObject); err != nil {
				r.say("error: '%s': %s", p, strerror(err))
				continue
			}
		}
		found = r.grepData(g, r.grepName(g, "", p), data, p) || found
		if found && g.quiet {
			return true
		}
	}
	return found
}

func (r *repo) grepName(g *grepOptions, rev, p string) string {
	if !g.full {
		p = r.displayRaw(p)
	}
	if !g.zero {
		p = r.quote(p)
	}
	if rev != "" {
		return rev + ":" + p
	}
	return p
}

func (r *repo) grepTree(g *grepOptions, id oid, name string, spec *pathspec) bool {
	found := false
	if k, data, err := r.readObject(id); err == nil && k == blobObj {
		return r.grepData(g, name, data, "")
	}
	tree := r.treeOf(id)
	f := r.flatten(tree)
	for _, p := range f.paths() {
		if e := f[p]; spec.match(p) && (e.mode == modeFile || e.mode == modeExec) {
			found = r.grepData(g, r.grepName(g, name, p), r.read(e.id, blobObj), p) || found
			if found && g.quiet {
				return true
			}
		}
	}
	return found
}

// matches finds the first match in a line from an offset; -1 if there is none.
func (r *repo) matches(g *grepOptions, line []byte, from int) (start, end int) {
	start = -1
	for _, re := range g.re {
		at := from
		for at <= len(line) {
			m, err := re.Find(line[at:])
			if err != nil {
				r.fatal("%s", err)
			}
			if m == nil {
				break
			}
			s, e := at+m[0], at+m[1]
			if g.word && (s > 0 && isWord(line[s-1]) || e < len(line) && isWord(line[e]) || s == e) {
				at = s + 1
				continue
			}
			if start < 0 || s < start || s == start && e > end {
				start, end = s, e
			}
			break
		}
	}
	return start, end
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// grepData searches a file, and prints what was asked for.
func (r *repo) grepData(g *grepOptions, name string, data []byte, p string) bool {
	r.step(1 + len(data)>>12)
	binary := isBinary(data) && !g.text
	if binary && g.noBinary {
		return false
	}
	list := lines(data)
	hits := make([]bool, len(list))
	count := 0
	seen := make([]bool, len(g.re))
	for i, l := range list {
		l = bytes.TrimSuffix(l, []byte{'\n'})
		s, _ := r.matches(g, l, 0)
		if hits[i] = s >= 0 != g.invert; hits[i] {
			count++
			if g.all {
				for k, re := range g.re {
					if m, _ := re.Find(l); m != nil {
						seen[k] = true
					}
				}
			}
			if (g.names || g.quiet || g.without || binary) && !g.all && !g.count {
				break
			}
			if g.max > 0 && count == g.max {
				break
			}
		}
	}
	for _, s := range seen {
		if g.all && !s {
			count = 0
		}
	}
	end := "\n"
	if g.zero {
		end = "\x00"
	}
	switch {
	case g.without:
		if count == 0 && !g.quiet {
			r.printf("%s%s", name, end)
		}
		return count == 0
	case count == 0:
		return false
	case g.quiet:
	case g.names:
		r.printf("%s%s", name, end)
	case g.count:
		if g.noName {
			r.printf("%d\n", count)
		} else {
			r.printf("%s%s%d\n", name, map[bool]string{true: "\x00", false: ":"}[g.zero], count)
		}
	case binary:
		r.printf("Binary file %s matches\n", name)
	default:
		r.grepLines(g, name, list, hits)
	}
	return true
}

func (r *repo) grepLines(g *grepOptions, name string, list [][]byte, hits []bool) {
	if g.heading {
		if g.shown && g.brk {
			r.printf("\n")
		}
		r.printf("%s\n", name)
	}
	last := -1
	for i := range list {
		if !hits[i] {
			continue
		}
		from := max(0, i-g.before, last+1)
		if (g.before > 0 || g.after > 0) && (last >= 0 && from > last+1 || last < 0 && g.shown && !g.heading) {
			r.printf("--\n")
		}
		for k := from; k < i; k++ {
			r.grepLine(g, name, list[k], k, '-')
		}
		r.grepLine(g, name, list[i], i, ':')
		last = i
		for k := i + 1; k < len(list) && k <= i+g.after && !hits[k]; k++ {
			r.grepLine(g, name, list[k], k, '-')
			last = k
		}
		g.shown = true
	}
}

func (r *repo) grepLine(g *grepOptions, name string, line []byte, n int, sep byte) {
	line = bytes.TrimSuffix(line, []byte{'\n'})
	head := func(col int) {
		if !g.noName && !g.heading {
			if g.zero {
				r.printf("%s\x00", name)
			} else {
				r.printf("%s%c", name, sep)
			}
		}
		if g.number {
			r.printf("%d%c", n+1, sep)
		}
		if g.column && sep == ':' {
			r.printf("%d%c", col+1, sep)
		}
	}
	if g.only && !g.invert {
		if sep != ':' {
			return
		}
		for at := 0; at <= len(line); {
			s, e := r.matches(g, line, at)
			if s < 0 {
				return
			}
			if e > s {
				head(s)
				r.printf("%s\n", line[s:e])
			}
			at = max(e, s+1)
		}
		return
	}
	s, _ := r.matches(g, line, 0)
	head(max(s, 0))
	r.printf("%s\n", line)
}
