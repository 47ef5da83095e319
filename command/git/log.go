package git

import (
	"bytes"
	"regexp"
	"strings"
	"time"

	"agentrun.dev/command/posixre"
)

// logger is one run of log or show.
type logger struct {
	r          *repo
	f          logFormat
	d          diffOptions
	w          walkOptions
	revs       revSet
	graph      *graph
	author     []matcher
	committer  []matcher
	grep       []matcher
	authorRaw  []string
	commitRaw  []string
	grepRaw    []string
	fold       bool
	fixed      bool
	extended   bool
	perl       bool
	invert     bool
	allMatch   bool
	minParents int
	maxParents int
	follow     bool
	fullDiff   bool
	started    bool
	always     bool // show: commits without changes too
	walkReflog bool
	cherry     bool // --cherry-pick
	leftOnly   bool
	rightOnly  bool
	mark       bool
	followed2  map[oid]*pathspec // the file's names then, of --follow
}

type matcher func(s string) bool

// compile turns a pattern into a matcher with the options of the command.
func (l *logger) compile(p string) matcher {
	if l.fixed {
		if l.fold {
			p = strings.ToLower(p)
			return func(s string) bool { return strings.Contains(strings.ToLower(s), p) }
		}
		return func(s string) bool { return strings.Contains(s, p) }
	}
	return l.r.pattern(p, l.extended, l.perl, l.fold)
}

// pattern compiles a regular expression of POSIX, or of Perl as far as Go has it.
func (r *repo) pattern(p string, extended, perl, fold bool) matcher {
	if perl {
		if fold {
			p = "(?i)" + p
		}
		re, err := regexp.Compile("(?m)" + p)
		if err != nil {
			r.fatal("command line, '%s': %s", p, err)
		}
		return re.MatchString
	}
	o := posixre.Options{Flavor: posixre.Basic, Fold: fold, Multiline: true, NoNewline: true}
	if extended {
		o.Flavor = posixre.Extended
	}
	re, err := posixre.Compile(p, o)
	if err != nil {
		r.fatal("command line, '%s': %s", p, err)
	}
	return func(s string) bool {
		ok, err := re.Match([]byte(s))
		if err != nil {
			r.fatal("%s", err)
		}
		return ok
	}
}

func (r *repo) newLogger() *logger {
	l := &logger{r: r, d: newDiffOptions(), maxParents: -1}
	l.f = logFormat{name: "medium"}
	l.w.max = -1
	if v, ok := r.config().get("log.date"); ok {
		l.f.date = v
	}
	if v, ok := r.config().get("format.pretty"); ok {
		r.setPretty(&l.f, v)
	}
	if v, ok := r.config().get("log.decorate"); ok {
		if b, isBool := parseBool(v); isBool && b || v == "short" {
			l.f.decorate = "short"
		} else if v == "full" {
			l.f.decorate = "full"
		}
	}
	if r.config().bool("log.abbrevcommit", false) {
		l.f.abbrev = true
	}
	l.follow = r.config().bool("log.follow", false)
	r.diffConfig(&l.d)
	return l
}

// diffConfig applies settings that concern differences.
func (r *repo) diffConfig(d *diffOptions) {
	if v, ok := r.config().get("diff.renames"); ok {
		if b, isBool := parseBool(v); isBool && !b {
			d.renames = 0
		} else if v == "copies" || v == "copy" {
			d.copies = true
		}
	}
	if r.config().bool("diff.noprefix", false) {
		d.noPrefix = true
	}
	if r.config().bool("diff.mnemonicprefix", false) {
		d.mnemonic = true
	}
}

// options reads all arguments; what is left are revisions and paths.
func (l *logger) parse(verb string, args []string) (paths []string) {
	r := l.r
	o := r.options(verb, args)
	for o.next() {
		switch {
		case l.option(o), l.option2(o), l.optionGrep(o), r.revOption(&l.revs, o), r.diffOption(&l.d, o):
		case len(o.name) == 2 && o.name[1] >= '0' && o.name[1] <= '9':
			o.queue = o.name[1:] + o.queue
			l.w.max = o.number()
		default:
			r.die(128, "fatal: unrecognized argument: %s", o.whole())
		}
	}
	paths = r.splitRevs(o, &l.revs)
	for _, p := range l.authorRaw {
		l.author = append(l.author, l.compile(p))
	}
	for _, p := range l.commitRaw {
		l.committer = append(l.committer, l.compile(p))
	}
	for _, p := range l.grepRaw {
		l.grep = append(l.grep, l.compile(p))
	}
	return paths
}

func (l *logger) option(o *options) bool {
	switch o.name {
	case "--oneline":
		l.f.abbrev = true
		l.r.setPretty(&l.f, "oneline")
	case "--pretty", "--format":
		v := o.value
		if o.name == "--format" {
			v = o.arg()
		}
		if v == "" && o.name == "--format" && o.has {
			v = "tformat:"
		}
		l.r.setPretty(&l.f, v)
	case "--abbrev-commit":
		l.f.abbrev = true
	case "--no-abbrev-commit":
		l.f.abbrev = false
	case "--abbrev":
		l.d.abbrev = 7
		if o.has {
			l.d.abbrev = o.number()
			l.f.abbrevLen = max(l.d.abbrev, 4)
		}
	case "--no-abbrev":
		l.f.abbrev, l.d.fullIndex = false, true
	case "--parents":
		l.f.parents, l.w.rewrite = true, true
	case "--decorate":
		l.f.decorate = s2(o.value, "short")
		if o.value == "auto" {
			l.f.decorate = ""
		}
	case "--no-decorate":
		l.f.decorate = ""
	case "--decorate-refs", "--decorate-refs-exclude", "--encoding":
		o.arg()
	case "--source":
		l.f.source = true
	case "--date":
		l.f.date = o.arg()
	case "--relative-date":
		l.f.date = "relative"
	case "--left-right":
		l.f.leftRight = true
	case "--cherry-pick":
		l.cherry = true
	case "--cherry-mark":
		l.cherry, l.mark = true, true
	case "--cherry":
		l.cherry, l.mark, l.rightOnly = true, true, true
	case "--left-only":
		l.leftOnly = true
	case "--right-only":
		l.rightOnly = true
	case "--graph":
		l.graph, l.w.topo, l.w.rewrite = newGraph(l.r), true, true
	case "--no-graph":
		l.graph = nil
	case "-z":
		l.f.zero, l.d.zero = true, true
	default:
		return false
	}
	return true
}

func (l *logger) option2(o *options) bool {
	w := &l.w
	switch o.name {
	case "-n", "--max-count":
		w.max = o.number()
	case "--skip":
		w.skip = o.number()
	case "--since", "--after", "--since-as-filter":
		w.since = l.date(o.arg())
	case "--until", "--before":
		w.until = l.date(o.arg())
	case "--first-parent":
		w.firstParent = true
		if l.d.merges == "" {
			l.d.merges = "first"
		}
	case "--topo-order":
		w.topo = true
	case "--date-order":
		w.dateOrder = true
	case "--author-date-order":
		w.authorOrder = true
	case "--reverse":
		w.reverse = true
	case "--boundary":
		w.boundary = true
	case "--no-walk":
		w.noWalk, w.unsorted = true, o.value == "unsorted"
	case "--do-walk":
		w.noWalk = false
	case "--full-history":
		w.fullHistory = true
	case "--dense", "--simplify-merges", "--simplify-by-decoration", "--sparse", "--ancestry-path", "--no-expand-tabs", "--expand-tabs",
		"--no-notes", "--notes", "--show-notes", "--show-signature", "--no-show-signature", "--use-mailmap", "--mailmap", "--no-mailmap", "--no-use-mailmap", "--log-size", "--clear-decorations":
	case "--no-merges":
		l.maxParents = 1
	case "--merges":
		l.minParents = 2
	case "--min-parents":
		l.minParents = o.number()
	case "--max-parents":
		l.maxParents = o.number()
	case "--no-min-parents":
		l.minParents = 0
	case "--no-max-parents":
		l.maxParents = -1
	case "--follow":
		l.follow = true
	case "--full-diff":
		l.fullDiff = true
	case "-g", "--walk-reflogs":
		l.walkReflog = true
	case "-L":
		l.r.fatal("-L isn't done here: use blame -L")
	case "-t":
	default:
		return false
	}
	return true
}

func (l *logger) optionGrep(o *options) bool {
	switch o.name {
	case "--author":
		l.authorRaw = append(l.authorRaw, o.arg())
	case "--committer":
		l.commitRaw = append(l.commitRaw, o.arg())
	case "--grep":
		l.grepRaw = append(l.grepRaw, o.arg())
	case "-i", "--regexp-ignore-case":
		l.fold = true
	case "-F", "--fixed-strings":
		l.fixed = true
	case "-E", "--extended-regexp":
		l.extended = true
	case "-P", "--perl-regexp":
		l.perl = true
	case "--basic-regexp":
		l.extended, l.perl, l.fixed = false, false, false
	case "--invert-grep":
		l.invert = true
	case "--all-match":
		l.allMatch = true
	default:
		return false
	}
	return true
}

// date reads a limit; what can't be read is now, as in git.
func (l *logger) date(s string) time.Time {
	t, ok := l.r.parseDate(s)
	if !ok {
		return l.r.t.Now()
	}
	return t
}

// keep reports whether a commit passes the filters.
func (l *logger) keep(c *commit) bool {
	n := len(c.parents)
	if n < l.minParents || l.maxParents >= 0 && n > l.maxParents {
		return false
	}
	anyOf := func(list []matcher, s string) bool {
		for _, m := range list {
			if m(s) {
				return true
			}
		}
		return len(list) == 0
	}
	if !anyOf(l.author, c.author.name+" <"+c.author.email+">") || !anyOf(l.committer, c.committer.name+" <"+c.committer.email+">") {
		return false
	}
	if len(l.grep) > 0 {
		found := false
		if l.allMatch {
			found = true
			for _, m := range l.grep {
				found = found && m(c.message)
			}
		} else {
			found = anyOf(l.grep, c.message)
		}
		if found == l.invert {
			return false
		}
	}
	if l.d.pickaxe != "" || l.d.grep != "" || l.d.filter != "" && !l.follow {
		return len(l.changes(c)) > 0
	}
	return true
}

// run shows the log.
func (r *repo) cmdLog(args []string) int {
	l := r.newLogger()
	return l.run("log", args)
}

func (r *repo) cmdWhatchanged(args []string) int {
	l := r.newLogger()
	l.d.raw, l.maxParents = true, 1
	return l.run("whatchanged", args)
}

func (l *logger) run(verb string, args []string) int {
	r := l.r
	paths := l.parse(verb, args)
	if l.walkReflog {
		return l.runReflog(paths)
	}
	if !l.revs.given {
		branch, id := r.head()
		if id.isZero() {
			r.fatal("your current branch '%s' does not have any commits yet", shortRef(branch))
		}
		l.revs.add(id, id, false, "HEAD")
	}
	if len(paths) > 0 {
		l.w.paths = r.pathspec(paths)
	}
	if l.d.implied || l.d.merges == "separate" && false {
		l.d.patch = true
	}
	l.show(l.list())
	return 0
}

// list walks and returns what to show.
func (l *logger) list() []*node {
	r := l.r
	l.w.keep = l.keep
	var include []oid
	for i, id := range l.revs.include {
		c, err := r.peel(id, commitObj)
		if err != nil {
			continue
		}
		include = append(include, c)
		if l.f.source {
			if r.sources == nil {
				r.sources = map[oid]string{}
			}
			if _, ok := r.sources[c]; !ok {
				r.sources[c] = l.revs.names[i]
			}
		}
	}
	if l.follow && l.w.paths != nil {
		return l.followed(include)
	}
	w := r.walkWith(include, l.revs.exclude, l.w)
	nodes := w.commits()
	if l.graph != nil {
		l.graph.shown = w.visible
	}
	if len(l.revs.left) > 0 && l.revs.dots == 3 {
		nodes = l.symmetric(nodes)
	}
	if l.f.source {
		for _, n := range nodes {
			for _, p := range n.follow {
				if _, ok := r.sources[p]; !ok {
					r.sources[p] = r.sources[n.id]
				}
			}
		}
	}
	return nodes
}

// symmetric marks the sides of A...B and leaves out what was asked to.
func (l *logger) symmetric(nodes []*node) []*node {
	left := l.r.ancestors(l.revs.left)
	var out []*node
	ids := map[string]byte{}
	if l.cherry {
		for _, n := range nodes {
			side := byte('>')
			if left[n.id] {
				side = '<'
			}
			if p := l.r.patchID(n.commit); p != "" && ids[p] != side {
				ids[p] += side
			}
		}
	}
	for _, n := range nodes {
		n.flag = '>'
		if left[n.id] {
			n.flag = '<'
		}
		if l.leftOnly && n.flag != '<' || l.rightOnly && n.flag != '>' {
			continue
		}
		if l.cherry {
			if p := l.r.patchID(n.commit); p != "" && ids[p] == '<'+'>' {
				if !l.mark {
					continue
				}
				n.flag = '='
			} else if l.mark && !l.f.leftRight {
				n.flag = '+'
			}
		}
		out = append(out, n)
	}
	if l.mark {
		l.f.leftRight = true
	}
	return out
}

// changes are those of a commit against its first parent, as far as it is asked for them.
func (l *logger) changes(c *commit) []change {
	var parent oid
	if len(c.parents) > 0 && !l.r.shallow()[c.id] {
		if len(c.parents) > 1 && l.d.merges != "first" && l.d.merges != "separate" {
			return nil
		}
		parent = l.r.readCommit(c.parents[0]).tree
	}
	return l.changesFrom(parent, c.tree)
}

func (l *logger) changesFrom(a, b oid) []change {
	paths := l.w.paths
	if l.fullDiff {
		paths = nil
	}
	list := l.r.compareTreesFor(a, b, paths)
	if paths != nil {
		list = paths.filter(list)
	}
	list = l.r.prepareFrom(list, &l.d, a)
	return l.r.pickaxe(list, &l.d)
}

// pickaxe keeps changes that add or remove a text.
func (r *repo) pickaxe(list []change, d *diffOptions) []change {
	if d.pickaxe == "" && d.grep == "" {
		return list
	}
	var out []change
	for i := range list {
		c := &list[i]
		if r.picked(c, d) {
			if d.pickaxeAll {
				return list
			}
			out = append(out, *c)
		}
	}
	return out
}

func (r *repo) picked(c *change, d *diffOptions) bool {
	a, b := r.sideData(c, 0), r.sideData(c, 1)
	if d.grep != "" {
		m := r.pattern(d.grep, true, false, false)
		la, lb := lines(a), lines(b)
		for _, h := range diffLines(la, lb, spaceAll, r.step) {
			for _, line := range append(append([][]byte(nil), la[h.a0:h.a1]...), lb[h.b0:h.b1]...) {
				if m(strings.TrimSuffix(string(line), "\n")) {
					return true
				}
			}
		}
		return false
	}
	if d.pickaxeRegex {
		re, err := regexp.Compile(d.pickaxe)
		if err != nil {
			r.fatal("invalid regex: %s", err)
		}
		return len(re.FindAllIndex(a, -1)) != len(re.FindAllIndex(b, -1))
	}
	s := []byte(d.pickaxe)
	return bytes.Count(a, s) != bytes.Count(b, s)
}
