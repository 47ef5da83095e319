package diff

import "math"

// tooExpensive bounds the search for a split at which no smaller difference is looked for, at the least.
const tooExpensive = 4096

// side is one of two sequences: the classes of its lines (equal lines have equal classes, from 1), and which lines are no
// part of the common subsequence. changed has a false entry on either side: line i is at i+1.
type side struct {
	class   []int
	changed []bool
	kept    []int // classes of the lines that take part in the search
	index   []int // where they stand in class
}

// finder looks for the common subsequence of the kept lines of two sides, by Myers' search from both ends.
type finder struct {
	a, b   *side
	fd, bd []int // furthest points on each diagonal, from either end
	origin int   // index of diagonal 0
	limit  int
	check  func() // called now and then, to be interrupted
}

// compare marks the changed lines of both sides. With minimal, the smallest set is found, however long it takes.
func compare(a, b *side, minimal bool, check func()) {
	a.changed, b.changed = make([]bool, len(a.class)+2), make([]bool, len(b.class)+2)
	discard(a, b, minimal)
	f := &finder{a: a, b: b, limit: 1, check: check}
	diagonals := len(a.kept) + len(b.kept) + 3
	for d := diagonals; d != 0; d >>= 2 {
		f.limit <<= 1
	}
	f.limit = max(f.limit, tooExpensive)
	f.fd, f.bd = make([]int, diagonals), make([]int, diagonals)
	f.origin = len(b.kept) + 1
	f.sequence(0, len(a.kept), 0, len(b.kept), minimal)
	shift(a, b)
	shift(b, a)
}

// sequence compares two ranges.
func (f *finder) sequence(xoff, xlim, yoff, ylim int, minimal bool) {
	xs, ys := f.a.kept, f.b.kept
	for {
		for xoff < xlim && yoff < ylim && xs[xoff] == ys[yoff] {
			xoff++
			yoff++
		}
		for xoff < xlim && yoff < ylim && xs[xlim-1] == ys[ylim-1] {
			xlim--
			ylim--
		}
		if xoff == xlim {
			for ; yoff < ylim; yoff++ {
				f.b.changed[f.b.index[yoff]+1] = true
			}
			return
		}
		if yoff == ylim {
			for ; xoff < xlim; xoff++ {
				f.a.changed[f.a.index[xoff]+1] = true
			}
			return
		}
		x, y, lowMinimal, highMinimal := f.split(xoff, xlim, yoff, ylim, minimal)
		f.sequence(xoff, x, yoff, y, lowMinimal)
		xoff, yoff, minimal = x, y, highMinimal
	}
}

// split finds a point in the middle of a shortest path. When that becomes too expensive, it takes the point that was got
// furthest, and tells for which part a shortest path was found.
func (f *finder) split(xoff, xlim, yoff, ylim int, minimal bool) (x, y int, lowMinimal, highMinimal bool) {
	xs, ys, fd, bd, o := f.a.kept, f.b.kept, f.fd, f.bd, f.origin
	dmin, dmax := xoff-ylim, xlim-yoff
	fmid, bmid := xoff-yoff, xlim-ylim
	fmin, fmax, bmin, bmax := fmid, fmid, bmid, bmid
	odd := (fmid-bmid)&1 != 0
	fd[o+fmid], bd[o+bmid] = xoff, xlim
	for c := 1; ; c++ {
		if c&63 == 0 {
			f.check()
		}
		if fmin > dmin {
			fmin--
			fd[o+fmin-1] = -1
		} else {
			fmin++
		}
		if fmax < dmax {
			fmax++
			fd[o+fmax+1] = -1
		} else {
			fmax--
		}
		for d := fmax; d >= fmin; d -= 2 {
			x := max(fd[o+d-1]+1, fd[o+d+1])
			y := x - d
			for x < xlim && y < ylim && xs[x] == ys[y] {
				x++
				y++
			}
			fd[o+d] = x
			if odd && bmin <= d && d <= bmax && bd[o+d] <= x {
				return x, y, true, true
			}
		}
		if bmin > dmin {
			bmin--
			bd[o+bmin-1] = math.MaxInt
		} else {
			bmin++
		}
		if bmax < dmax {
			bmax++
			bd[o+bmax+1] = math.MaxInt
		} else {
			bmax--
		}
		for d := bmax; d >= bmin; d -= 2 {
			x := min(bd[o+d-1], bd[o+d+1]-1)
			y := x - d
			for xoff < x && yoff < y && xs[x-1] == ys[y-1] {
				x--
				y--
			}
			bd[o+d] = x
			if !odd && fmin <= d && d <= fmax && x <= fd[o+d] {
				return x, y, true, true
			}
		}
		if minimal || c < f.limit {
			continue
		}
		return f.furthest(xoff, xlim, yoff, ylim, fmin, fmax, bmin, bmax)
	}
}

// furthest chooses the best point of either search.
func (f *finder) furthest(xoff, xlim, yoff, ylim, fmin, fmax, bmin, bmax int) (int, int, bool, bool) {
	bestF, xF := -1, 0
	for d := fmax; d >= fmin; d -= 2 {
		x := min(f.fd[f.origin+d], xlim)
		y := x - d
		if ylim < y {
			x, y = ylim+d, ylim
		}
		if bestF < x+y {
			bestF, xF = x+y, x
		}
	}
	bestB, xB := math.MaxInt, 0
	for d := bmax; d >= bmin; d -= 2 {
		x := max(xoff, f.bd[f.origin+d])
		y := x - d
		if y < yoff {
			x, y = yoff+d, yoff
		}
		if x+y < bestB {
			bestB, xB = x+y, x
		}
	}
	if xlim+ylim-bestB < bestF-(xoff+yoff) {
		return xF, bestF - xF, true, false
	}
	return xB, bestB - xB, false, true
}

// What discard thinks of a line.
const (
	keep        = iota
	drop        // it has no partner
	provisional // it has so many that it confuses, and goes if those around it go
)

// discard leaves lines out of the search: those without a partner, which are changed for certain, and among such those
// with very many partners. That is fast, and makes for better differences.
func discard(a, b *side, minimal bool) {
	classes := 0
	for _, s := range []*side{a, b} {
		for _, c := range s.class {
			classes = max(classes, c)
		}
	}
	for i, s := range []*side{a, b} {
		other := b
		if i == 1 {
			other = a
		}
		count := make([]int, classes+1)
		for _, c := range other.class {
			count[c]++
		}
		marks := make([]byte, len(s.class))
		many := 5
		for n := len(s.class) / 64 >> 2; n > 0; n >>= 2 {
			many *= 2
		}
		for i, c := range s.class {
			if count[c] == 0 {
				marks[i] = drop
			} else if count[c] > many {
				marks[i] = provisional
			}
		}
		settle(marks)
		for i, c := range s.class {
			if minimal || marks[i] == keep {
				s.kept = append(s.kept, c)
				s.index = append(s.index, i)
			} else {
				s.changed[i+1] = true
			}
		}
	}
}

// settle decides about the provisional lines: they go only inside of runs that begin and end with lines that go.
func settle(marks []byte) {
	for i := 0; i < len(marks); i++ {
		if marks[i] == provisional {
			marks[i] = keep
			continue
		}
		if marks[i] == keep {
			continue
		}
		n, end := 0, i
		for ; end < len(marks) && marks[end] != keep; end++ {
			if marks[end] == provisional {
				n++
			}
		}
		for end > i && marks[end-1] == provisional {
			end--
			marks[end] = keep
			n--
		}
		run := marks[i:end]
		if n*4 > len(run) {
			for j := range run {
				if run[j] == provisional {
					run[j] = keep
				}
			}
			continue
		}
		settleRun(run)
		i += len(run) - 1
	}
}

// settleRun keeps long subruns of provisional lines, and those near the ends of the run.
func settleRun(run []byte) {
	least := 1
	for n := len(run) >> 2 >> 2; n > 0; n >>= 2 {
		least <<= 1
	}
	least++
	for j, n := 0, 0; j < len(run); j++ {
		if run[j] != provisional {
			n = 0
			continue
		}
		if n++; n == least {
			j -= n // once more from the subrun's start, to keep all of it
		} else if n > least {
			run[j] = keep
		}
	}
	edge := func(at func(int) *byte) {
		for j, n := 0, 0; j < len(run); j++ {
			m := at(j)
			if j >= 8 && *m == drop {
				return
			}
			switch *m {
			case provisional:
				*m, n = keep, 0
			case keep:
				n = 0
			default:
				n++
			}
			if n == 3 {
				return
			}
		}
	}
	edge(func(j int) *byte { return &run[j] })
	edge(func(j int) *byte { return &run[len(run)-1-j] })
}

// shift moves runs of changes of s as far down as possible, which merges them with others, and back to where the other
// side has changes, too.
func shift(s, other *side) {
	changed, class := s.changed[1:], s.class
	end := len(class)
	was := func(i int) bool { return s.changed[i+1] }
	otherWas := func(j int) bool { return other.changed[j+1] }
	i, j := 0, 0
	for {
		for i < end && !was(i) {
			for otherWas(j) {
				j++
			}
			j++
			i++
		}
		if i == end {
			return
		}
		start := i
		for i++; was(i); i++ {
		}
		for otherWas(j) {
			j++
		}
		corresponding := end
		for length := -1; length != i-start; {
			length = i - start
			for start > 0 && class[start-1] == class[i-1] {
				start--
				i--
				changed[start], changed[i] = true, false
				for start > 0 && was(start-1) {
					start--
				}
				for j--; otherWas(j); j-- {
				}
			}
			if corresponding = end; otherWas(j - 1) {
				corresponding = i
			}
			for i != end && class[start] == class[i] {
				changed[start], changed[i] = false, true
				start++
				i++
				for was(i) {
					i++
				}
				for j++; otherWas(j); j++ {
					corresponding = i
				}
			}
		}
		for corresponding < i {
			start--
			i--
			changed[start], changed[i] = true, false
			for j--; otherWas(j); j-- {
			}
		}
	}
}
