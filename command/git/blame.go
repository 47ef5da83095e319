package git

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

type blameOptions struct {
	long, raw, email, showName, numbers, porcelain, line, suppress, blank, root bool
	space                                                                       spaceMode
	ranges                                                                      []string
	date                                                                        string
	abbrev                                                                      int
	rename                                                                      bool
}

// blamed says where a line comes from. A nil commit is the work tree.
type blamed struct {
	commit *commit
	file   string
	line   int // in that commit, from 0
	done   bool
}

func (r *repo) cmdBlame(args []string) int {
	b := blameOptions{date: "iso"}
	if v, ok := r.config().get("blame.date"); ok {
		b.date = v
	}
	o := r.options("blame", args)
	for o.next() {
		switch o.name {
		case "-l":
			b.long = true
		case "-t":
			b.raw = true
		case "-e", "--show-email":
			b.email = true
		case "-f", "--show-name":
			b.showName = true
		case "-n", "--show-number":
			b.numbers = true
		case "-p", "--porcelain":
			b.porcelain = true
		case "--line-porcelain":
			b.porcelain, b.line = true, true
		case "-s":
			b.suppress = true
		case "-b":
			b.blank = true
		case "--root":
			b.root = true
		case "-w":
			b.space = spaceNone
		case "-L":
			b.ranges = append(b.ranges, o.arg())
		case "--date":
			b.date = o.arg()
		case "--abbrev":
			b.abbrev = o.number()
		case "-M", "-C":
			o.optional()
		case "-c", "--no-progress", "--progress", "--first-parent", "--minimal":
		default:
			o.unknown()
		}
	}
	rev, file := "", ""
	switch rest := o.operands(); len(rest) {
	case 1:
		file = rest[0]
	case 2:
		rev, file = rest[0], rest[1]
		if _, err := r.rev(rev); err != nil && !o.dash {
			rev, file = file, rev
		}
	default:
		r.die(129, "usage: git blame [<options>] [<rev-opts>] [<rev>] [--] <file>\n")
	}
	p, ok := r.relative(file)
	if !ok {
		r.fatal("'%s' is outside repository", file)
	}
	return r.blame(&b, rev, file, p)
}

func (r *repo) blame(b *blameOptions, rev, arg, p string) int {
	var text []byte
	var start *commit
	if rev == "" {
		_, head := r.head()
		if head.isZero() {
			r.fatal("no such ref: HEAD")
		}
		start = r.readCommit(head)
		if _, ok := r.lookup(start.tree, p); !ok && r.index().find(p) == nil {
			r.fatal("no such path '%s' in HEAD", p)
		}
		a, err := r.t.Lstat(r.file(p))
		if err != nil {
			r.fatal("Cannot lstat '%s': %s", p, strerror(err))
		}
		if text, err = r.workData(p, a); err != nil {
			r.fatal("cannot open '%s': %s", p, strerror(err))
		}
	} else {
		start = r.readCommit(r.commitRev(rev))
		e, ok := r.lookup(start.tree, p)
		if !ok || e.isTree() {
			r.fatal("no such path %s in %s", p, rev)
		}
		text = r.read(e.id, blobObj)
	}
	list := lines(text)
	out := make([]blamed, len(list))
	spread := &blamer{r: r, b: b, out: out, list: list}
	if rev == "" {
		spread.fromWork(start, p, text)
	} else {
		todo := make(map[int]int, len(list))
		for i := range list {
			todo[i] = i
		}
		spread.walk(start, p, todo)
	}
	r.printBlame(b, out, list, p, r.blameRange(b, list))
	return 0
}

// blameRange is which lines are shown.
func (r *repo) blameRange(b *blameOptions, list [][]byte) []bool {
	show := make([]bool, len(list))
	if len(b.ranges) == 0 {
		for i := range show {
			show[i] = true
		}
	}
	for _, s := range b.ranges {
		from, to, two := strings.Cut(s, ",")
		at := func(t string, base int) int {
			if re, ok := strings.CutPrefix(t, "/"); ok {
				m := r.pattern(strings.TrimSuffix(re, "/"), false, false, false)
				for i := max(base, 0); i < len(list); i++ {
					if m(strings.TrimSuffix(string(list[i]), "\n")) {
						return i + 1
					}
				}
				r.fatal("-L parameter '%s' starting at line %d: No match", strings.TrimSuffix(re, "/"), base+1)
			}
			n, err := strconv.Atoi(strings.TrimPrefix(t, "+"))
			if err != nil {
				r.fatal("-L invalid line range: %s", s)
			}
			return n
		}
		lo, hi := 1, len(list)
		if from != "" {
			lo = at(from, 0)
		}
		switch {
		case !two || to == "":
		case to[0] == '+':
			hi = lo + at(to, lo) - 1
		case to[0] == '-':
			hi, lo = lo, max(1, lo+at(to, lo)+1)
		default:
			hi = at(to, lo)
		}
		if lo > len(list) {
			r.fatal("file has only %d line%s", len(list), map[bool]string{true: "", false: "s"}[len(list) == 1])
		}
		if hi < lo {
			lo, hi = hi, lo
		}
		for i := max(lo, 1); i <= min(hi, len(list)); i++ {
			show[i-1] = true
		}
	}
	return show
}

// blamer passes blame to ancestors.
type blamer struct {
	r    *repo
	b    *blameOptions
	out  []blamed
	list [][]byte
}

// fromWork blames the work tree for what HEAD lacks.
func (s *blamer) fromWork(head *commit, p string, text []byte) {
	r := s.r
	e, ok := r.lookup(head.tree, p)
	var old [][]byte
	if ok && !e.isTree() {
		old = lines(r.read(e.id, blobObj))
	}
	now := lines(text)
	todo := matchLines(old, now, s.b.space, r.step)
	for i := range now {
		if _, ok := todo[i]; !ok {
			s.out[i] = blamed{file: p, line: i, done: true}
		}
	}
	back := map[int]int{} // line in HEAD → line shown
	for i, j := range todo {
		back[j] = i
	}
	s.walk(head, p, back)
}

// matchLines maps lines of b to the same lines of a.
func matchLines(a, b [][]byte, mode spaceMode, step func(int)) map[int]int {
	m := map[int]int{}
	i, j := 0, 0
	for _, h := range diffLines(a, b, mode, step) {
		for ; i < h.a0; i, j = i+1, j+1 {
			m[j] = i
		}
		i, j = h.a1, h.b1
	}
	for ; i < len(a) && j < len(b); i, j = i+1, j+1 {
		m[j] = i
	}
	return m
}

// walk blames a commit and its ancestors, youngest first. todo maps lines of the file there to lines shown.
func (s *blamer) walk(start *commit, p string, todo map[int]int) {
	r := s.r
	type suspect struct {
		c    *commit
		file string
		todo map[int][]int
	}
	first := map[int][]int{}
	for l, shown := range todo {
		first[l] = append(first[l], shown)
	}
	queue := []*suspect{{start, p, first}}
	for len(queue) > 0 {
		best := 0
		for i := range queue {
			if queue[i].c.committer.when.After(queue[best].c.committer.when) {
				best = i
			}
		}
		q := queue[best]
		queue = append(queue[:best], queue[best+1:]...)
		r.step(1)
		e, ok := r.lookup(q.c.tree, q.file)
		if !ok {
			continue
		}
		var text [][]byte
		for _, id := range r.parents(q.c) {
			if len(q.todo) == 0 {
				break
			}
			pc := r.readCommit(id)
			pe, file, ok := s.inParent(pc, q.c, q.file)
			if !ok {
				continue
			}
			passed := map[int][]int{}
			if pe.id == e.id {
				passed, q.todo = q.todo, nil
			} else {
				if text == nil {
					text = lines(r.read(e.id, blobObj))
				}
				m := matchLines(lines(r.read(pe.id, blobObj)), text, s.b.space, r.step)
				for l, shown := range q.todo {
					if old, ok := m[l]; ok {
						passed[old] = append(passed[old], shown...)
						delete(q.todo, l)
					}
				}
			}
			if len(passed) == 0 {
				continue
			}
			merged := false
			for _, o := range queue {
				if o.c.id == pc.id && o.file == file {
					for l, shown := range passed {
						o.todo[l] = append(o.todo[l], shown...)
					}
					merged = true
				}
			}
			if !merged {
				queue = append(queue, &suspect{pc, file, passed})
			}
		}
		for l, shown := range q.todo {
			for _, i := range shown {
				s.out[i] = blamed{q.c, q.file, l, true}
			}
		}
	}
}

// inParent finds a file in a parent, under its former name if it was renamed.
func (s *blamer) inParent(parent, c *commit, file string) (treeEntry, string, bool) {
	r := s.r
	if e, ok := r.lookup(parent.tree, file); ok && !e.isTree() {
		return e, file, true
	}
	for _, ch := range r.findRenames(r.compareTrees(parent.tree, c.tree), maxScore/2) {
		if ch.status == 'R' && ch.new.name == file {
			return ch.old, ch.old.name, true
		}
	}
	return treeEntry{}, "", false
}

// who is the identity of a line's author; lines of the work tree have none yet.
func (r *repo) blameIdent(l *blamed) ident {
	if l.commit == nil {
		return ident{"Not Committed Yet", "not.committed.yet", r.t.Now().In(r.t.Location())}
	}
	return l.commit.author
}

func (r *repo) printBlame(b *blameOptions, out []blamed, list [][]byte, p string, show []bool) {
	if b.porcelain {
		r.blamePorcelain(b, out, list, show)
		return
	}
	files, width, lineWidth, nameWidth, numWidth, dateWidth := false, 0, 0, 0, 0, 0
	n := b.abbrev
	if n == 0 {
		n = r.minAbbrev()
	}
	for i := range out {
		if !show[i] {
			continue
		}
		l := &out[i]
		if l.file != p {
			files = true
		}
		who := r.blameIdent(l)
		name := who.name
		if b.email {
			name = "<" + who.email + ">"
		}
		width = max(width, displayWidth(name))
		nameWidth = max(nameWidth, displayWidth(r.quote(l.file)))
		lineWidth = max(lineWidth, i+1)
		numWidth = max(numWidth, l.line+1)
		if l.commit != nil {
			n = max(n, len(r.abbrevN(l.commit.id, n)))
		}
		dateWidth = max(dateWidth, len(r.formatDate(who.when, b.date)))
	}
	if b.abbrev == 0 && !b.long {
		n++
	} else if b.abbrev > 0 {
		n = min(n+1, 40)
	}
	if b.long {
		n = 40
	}
	for i := range out {
		if !show[i] {
			continue
		}
		l := &out[i]
		id := oid{}
		boundary := false
		if l.commit != nil {
			id = l.commit.id
			boundary = len(r.parents(l.commit)) == 0 && !b.root && !r.config().bool("blame.showroot", false)
		}
		hash := id.String()[:n]
		if boundary {
			if b.blank {
				hash = strings.Repeat(" ", n)
			} else {
				hash = "^" + id.String()[:n-1]
				if n == 40 {
					hash = "^" + id.String()[:39]
				}
			}
		}
		r.printf("%s", hash)
		if files || b.showName {
			r.printf(" %s%s", r.quote(l.file), strings.Repeat(" ", nameWidth-displayWidth(r.quote(l.file))))
		}
		if b.numbers {
			r.printf(" %*d", len(strconv.Itoa(numWidth)), l.line+1)
		}
		if !b.suppress {
			who := r.blameIdent(l)
			name := who.name
			if b.email {
				name = "<" + who.email + ">"
			}
			date := r.formatDate(who.when, b.date)
			if b.raw {
				date = r.formatDate(who.when, "raw")
			}
			r.printf(" (%s%s %-*s", name, strings.Repeat(" ", width-displayWidth(name)), dateWidth, date)
			r.printf(" %*d)", len(strconv.Itoa(lineWidth)), i+1)
		} else {
			r.printf(" %*d)", len(strconv.Itoa(lineWidth)), i+1)
		}
		r.printf(" %s", list[i])
		if !bytes.HasSuffix(list[i], []byte{'\n'}) {
			r.printf("\n")
		}
	}
}

func (r *repo) blamePorcelain(b *blameOptions, out []blamed, list [][]byte, show []bool) {
	told := map[oid]bool{}
	for i := range out {
		if !show[i] {
			continue
		}
		l := &out[i]
		id := oid{}
		if l.commit != nil {
			id = l.commit.id
		}
		starts := i == 0 || !show[i-1] || out[i-1].commit != l.commit || out[i-1].file != l.file || out[i-1].line+1 != l.line
		r.printf("%s %d %d", id, l.line+1, i+1)
		if starts {
			n := 1
			for i+n < len(out) && show[i+n] && out[i+n].commit == l.commit && out[i+n].file == l.file && out[i+n].line == l.line+n {
				n++
			}
			r.printf(" %d", n)
		}
		r.printf("\n")
		if !told[id] || b.line {
			told[id] = true
			r.blameHead(l)
			r.printf("filename %s\n", r.quote(l.file))
		}
		r.printf("\t%s", list[i])
		if !bytes.HasSuffix(list[i], []byte{'\n'}) {
			r.printf("\n")
		}
	}
}

func (r *repo) blameHead(l *blamed) {
	a := r.blameIdent(l)
	c, summary := a, "Version of "+l.file+" from "+l.file
	if l.commit != nil {
		c, summary = l.commit.committer, l.commit.subject()
	}
	for _, w := range []struct {
		role string
		who  ident
	}{{"author", a}, {"committer", c}} {
		fmt.Fprintf(r.t.Out, "%[1]s %[2]s\n%[1]s-mail <%[3]s>\n%[1]s-time %[4]d\n%[1]s-tz %[5]s\n", w.role, w.who.name, w.who.email, w.who.when.Unix(), w.who.when.Format("-0700"))
	}
	r.printf("summary %s\n", summary)
	if l.commit == nil {
		if _, head := r.head(); !head.isZero() {
			r.printf("previous %s %s\n", head, l.file)
		}
		return
	}
	parents := r.parents(l.commit)
	if len(parents) == 0 {
		r.printf("boundary\n")
		return
	}
	s := &blamer{r: r, b: &blameOptions{}}
	for _, p := range parents {
		if _, file, ok := s.inParent(r.readCommit(p), l.commit, l.file); ok {
			r.printf("previous %s %s\n", p, file)
			break
		}
	}
}
