package git

import "strings"

// graphState is what the next line of a graph is.
type graphState uint8

const (
	graphPadding graphState = iota
	graphSkip
	graphPre
	graphCommit
	graphPostMerge
	graphCollapsing
)

// graph draws the history beside a log, laid out as git's --graph does: a column for each line of descent, which moves
// to the left until it is in its place. mapping says for each screen position to which column of the next row it leads.
type graph struct {
	r                                          *repo
	shown                                      map[oid]bool // commits that will be drawn
	commit                                     *node
	parents                                    []oid
	mark                                       byte
	width, expansion                           int
	state, previous                            graphState
	index, lastIndex, layout, edges, lastEdges int
	columns, next                              []oid
	mapping, oldMapping                        []int
	size                                       int
}

func newGraph(r *repo) *graph { return &graph{r: r} }

func (g *graph) finished() bool { return g.state == graphPadding }

func (g *graph) become(s graphState) { g.previous, g.state = g.state, s }

func (g *graph) find(id oid) int {
	for i, c := range g.next {
		if c == id {
			return i
		}
	}
	return -1
}

func (g *graph) insert(id oid, idx int) {
	i := g.find(id)
	if i < 0 {
		i = len(g.next)
		g.next = append(g.next, id)
	}
	var at int
	switch {
	case len(g.parents) > 1 && idx > -1 && g.layout == -1:
		dist := idx - i
		shift := 1
		if dist > 1 {
			shift = 2*dist - 3
		}
		g.layout = 1
		if dist > 0 {
			g.layout = 0
		}
		g.edges = len(g.parents) + g.layout - 2
		at = g.width + (g.layout-1)*shift
		g.width += 2 * g.layout
	case g.edges > 0 && g.width >= 2 && i == g.mapping[g.width-2]:
		at, g.edges = g.width-2, -1
	default:
		at = g.width
		g.width += 2
	}
	g.mapping[at] = i
}

// update moves on to the next commit.
func (g *graph) update(n *node) {
	g.commit, g.parents = n, g.parents[:0]
	for _, p := range n.follow {
		if g.shown[p] {
			g.parents = append(g.parents, p)
		}
	}
	g.mark = '*'
	switch {
	case n.bound:
		g.mark = 'o'
	case n.flag != 0:
		g.mark = n.flag
	}
	g.lastIndex = g.index
	g.columns, g.next = g.next, g.columns[:0]
	g.size = 2 * (len(g.columns) + len(g.parents))
	for len(g.mapping) < g.size+2 {
		g.mapping, g.oldMapping = append(g.mapping, -1), append(g.oldMapping, -1)
	}
	for i := range g.size {
		g.mapping[i] = -1
	}
	g.width, g.lastEdges, g.edges = 0, g.edges, 0
	seen := false
	for i := 0; i <= len(g.columns); i++ {
		var id oid
		if i == len(g.columns) {
			if seen {
				break
			}
			id = n.id
		} else {
			id = g.columns[i]
		}
		if id != n.id {
			g.insert(id, -1)
			continue
		}
		seen = true
		g.index, g.layout = i, -1
		for _, p := range g.parents {
			g.insert(p, i)
		}
		if len(g.parents) == 0 {
			g.width += 2
		}
	}
	for g.size > 1 && g.mapping[g.size-1] < 0 {
		g.size--
	}
	g.expansion = 0
	switch {
	case g.state != graphPadding:
		g.state = graphSkip
	case g.needsPre():
		g.state = graphPre
	default:
		g.state = graphCommit
	}
}

func (g *graph) dashed() int { return len(g.parents) + g.layout - 3 }

func (g *graph) needsPre() bool {
	return len(g.parents) >= 3 && g.index < len(g.columns)-1 && g.expansion < g.dashed()*2
}

func (g *graph) correct() bool {
	for i := range g.size {
		if t := g.mapping[i]; t >= 0 && t != i/2 {
			return false
		}
	}
	return true
}

func (g *graph) pad(s string) string {
	return s + strings.Repeat(" ", max(0, g.width-len(s)))
}

// line is the next line; commit tells that it is the commit's own.
func (g *graph) line() (s string, commit bool) {
	var b strings.Builder
	switch g.state {
	case graphPadding:
		for range g.next {
			b.WriteString("| ")
		}
	case graphSkip:
		b.WriteString("...")
		if g.needsPre() {
			g.become(graphPre)
		} else {
			g.become(graphCommit)
		}
	case graphPre:
		g.preLine(&b)
	case graphCommit:
		g.commitLine(&b)
		commit = true
	case graphPostMerge:
		g.postMergeLine(&b)
	case graphCollapsing:
		g.collapsingLine(&b)
	}
	return g.pad(b.String()), commit
}

func (g *graph) preLine(b *strings.Builder) {
	seen := false
	for i, id := range g.columns {
		switch {
		case id == g.commit.id:
			seen = true
			b.WriteString("|" + strings.Repeat(" ", g.expansion))
		case seen && (g.expansion > 0 || g.previous == graphPostMerge && g.lastIndex < i):
			b.WriteByte('\\')
		default:
			b.WriteByte('|')
		}
		b.WriteByte(' ')
	}
	g.expansion++
	if !g.needsPre() {
		g.become(graphCommit)
	}
}

func (g *graph) commitLine(b *strings.Builder) {
	seen := false
	for i := 0; i <= len(g.columns); i++ {
		var id oid
		if i == len(g.columns) {
			if seen {
				break
			}
			id = g.commit.id
		} else {
			id = g.columns[i]
		}
		switch {
		case id == g.commit.id:
			seen = true
			b.WriteByte(g.mark)
			if n := g.dashed(); n > 0 {
				b.WriteString(strings.Repeat("-", 2*n-1) + ".")
			}
		case seen && g.edges > 1:
			b.WriteByte('\\')
		case seen && g.edges == 1:
			if g.previous == graphPostMerge && g.lastEdges > 0 && g.lastIndex < i {
				b.WriteByte('\\')
			} else {
				b.WriteByte('|')
			}
		case g.previous == graphCollapsing && 2*i+1 < len(g.oldMapping) && g.oldMapping[2*i+1] == i && g.mapping[2*i] < i:
			b.WriteByte('/')
		default:
			b.WriteByte('|')
		}
		b.WriteByte(' ')
	}
	switch {
	case len(g.parents) > 1:
		g.become(graphPostMerge)
	case g.correct():
		g.become(graphPadding)
	default:
		g.become(graphCollapsing)
	}
}

func (g *graph) postMergeLine(b *strings.Builder) {
	const chars = "/|\\"
	seen, parent := false, false
	for i := 0; i <= len(g.columns); i++ {
		var id oid
		if i == len(g.columns) {
			if seen {
				break
			}
			id = g.commit.id
		} else {
			id = g.columns[i]
		}
		switch {
		case id == g.commit.id:
			seen = true
			k := g.layout
			for j := range g.parents {
				b.WriteByte(chars[k])
				if k == 2 {
					if g.edges > 0 || j < len(g.parents)-1 {
						b.WriteByte(' ')
					}
				} else {
					k++
				}
			}
			if g.edges == 0 {
				b.WriteByte(' ')
			}
		case seen:
			if g.edges > 0 {
				b.WriteString("\\ ")
			} else {
				b.WriteString("| ")
			}
		default:
			b.WriteByte('|')
			if g.layout != 0 || i != g.index-1 {
				if parent {
					b.WriteByte('_')
				} else {
					b.WriteByte(' ')
				}
			}
		}
		parent = parent || id == g.parents[0]
	}
	if g.correct() {
		g.become(graphPadding)
	} else {
		g.become(graphCollapsing)
	}
}

func (g *graph) collapsingLine(b *strings.Builder) {
	g.mapping, g.oldMapping = g.oldMapping, g.mapping
	for i := range g.size {
		g.mapping[i] = -1
	}
	edge, edgeTarget, used := -1, -1, false
	for i := range g.size {
		t := g.oldMapping[i]
		switch {
		case t < 0:
		case t*2 == i:
			g.mapping[i] = t
		case g.mapping[i-1] < 0:
			g.mapping[i-1] = t
			if edge == -1 {
				edge, edgeTarget = i, t
				for j := t*2 + 3; j < i-2; j += 2 {
					g.mapping[j] = t
				}
			}
		case g.mapping[i-1] == t:
		default:
			if i >= 2 {
				g.mapping[i-2] = t
			}
			if edge == -1 {
				edge = i
			}
		}
	}
	copy(g.oldMapping[:g.size], g.mapping[:g.size])
	if g.mapping[g.size-1] < 0 {
		g.size--
	}
	for i := range g.size {
		t := g.mapping[i]
		switch {
		case t < 0:
			b.WriteByte(' ')
		case t*2 == i:
			b.WriteByte('|')
		case t == edgeTarget && i != edge-1:
			if i != t*2+3 {
				g.mapping[i] = -1
			}
			used = true
			b.WriteByte('_')
		default:
			if used && i < edge {
				g.mapping[i] = -1
			}
			b.WriteByte('/')
		}
	}
	if g.correct() {
		g.become(graphPadding)
	}
}

// padding is a line that only goes on.
func (g *graph) padding() string {
	if g.state != graphCommit {
		s, _ := g.line()
		return s
	}
	var b strings.Builder
	for _, id := range g.columns {
		b.WriteByte('|')
		if id == g.commit.id && len(g.parents) > 2 {
			b.WriteString(strings.Repeat(" ", (len(g.parents)-2)*2))
		} else {
			b.WriteByte(' ')
		}
	}
	g.previous = graphPadding
	return g.pad(b.String())
}

// showCommit prints the lines up to the commit's own, whose end is left open.
func (g *graph) showCommit() {
	if g.finished() {
		g.r.printf("%s", g.padding())
		return
	}
	for shown := false; !shown && !g.finished(); {
		var s string
		s, shown = g.line()
		g.r.printf("%s", s)
		if !shown {
			g.r.printf("\n")
		}
	}
}

// showText prints a text, the graph before each line but the first, then what is left of the graph.
func (g *graph) showText(text string) {
	for rest := text; rest != ""; {
		i := strings.IndexByte(rest, '\n') + 1
		if i == 0 {
			i = len(rest)
		}
		g.r.printf("%s", rest[:i])
		if rest = rest[i:]; rest != "" {
			s, _ := g.line()
			g.r.printf("%s", s)
		}
	}
	if g.finished() {
		return
	}
	ended := strings.HasSuffix(text, "\n")
	if !ended {
		g.r.printf("\n")
	}
	for {
		s, _ := g.line()
		g.r.printf("%s", s)
		if g.finished() {
			break
		}
		g.r.printf("\n")
	}
	if ended {
		g.r.printf("\n")
	}
}
