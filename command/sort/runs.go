package sort

import (
	"container/heap"
	"io"

	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// maxMerge is how many runs are merged at once; more are merged in several passes.
const maxMerge = 64

// writer takes the sorted lines: standard output, or -o's file, which may also be an input and so is opened only when
// all has been read.
type writer struct {
	s      *sorter
	buf    *tool.FileWriter
	last   []byte
	any    bool
	unique bool
	opened bool
}

func (s *sorter) writer(files []string) *writer {
	w := &writer{s: s, unique: s.unique}
	if s.hasOutput && !contains(files, s.output) {
		w.open() // a file that can't be written is found before the work
	}
	return w
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func (w *writer) open() {
	if w.opened {
		return
	}
	w.opened = true
	if !w.s.hasOutput {
		return
	}
	f, err := w.s.t.Create(w.s.output)
	if err != nil {
		w.s.t.Fatal(exitBad, "open failed: %s: %s", tool.QuoteF(w.s.output), tool.Strerror(err))
	}
	w.buf = tool.NewFileWriter(f)
}

// line writes a line, unless -u drops it.
func (w *writer) line(b []byte) {
	if w.unique {
		if w.any && w.s.compare(w.last, b) == 0 {
			return
		}
		w.last = append(w.last[:0], b...)
		w.any = true
	}
	w.open()
	if w.buf == nil {
		w.s.t.Out.Write(b)
		w.s.t.Out.WriteByte(w.s.delim)
		return
	}
	w.buf.Write(b)
	w.buf.WriteByte(w.s.delim)
}

func (w *writer) close() {
	w.open()
	if w.buf == nil {
		return
	}
	err := w.buf.Flush()
	if cerr := w.buf.File.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		w.s.t.Fatal(exitBad, "write failed: %s: %s", tool.QuoteF(w.s.output), tool.Strerror(err))
	}
}

// run is a sorted sequence of lines.
type run struct {
	lines *tool.Lines
	cur   []byte
	order int // among equals the earlier run comes first
	name  string
	close func()
}

// next moves to the next line.
func (r *run) next(s *sorter) bool {
	line, ok := r.lines.Next()
	if !ok {
		if r.lines.Err != nil {
			s.t.Fatal(exitBad, "read failed: %s: %s", tool.QuoteF(r.name), tool.Strerror(r.lines.Err))
		}
		r.close()
		return false
	}
	r.cur = line
	return true
}

// runHeap orders runs by their present lines.
type runHeap struct {
	s    *sorter
	runs []*run
}

func (h *runHeap) Len() int { return len(h.runs) }
func (h *runHeap) Less(i, j int) bool {
	c := h.s.compare(h.runs[i].cur, h.runs[j].cur)
	return c < 0 || c == 0 && h.runs[i].order < h.runs[j].order
}
func (h *runHeap) Swap(i, j int) { h.runs[i], h.runs[j] = h.runs[j], h.runs[i] }
func (h *runHeap) Push(x any)    { h.runs = append(h.runs, x.(*run)) }
func (h *runHeap) Pop() any {
	last := h.runs[len(h.runs)-1]
	h.runs = h.runs[:len(h.runs)-1]
	return last
}

// merge writes the lines of several runs in order.
func (s *sorter) mergeRuns(runs []*run, put func([]byte)) {
	h := &runHeap{s: s}
	for i, r := range runs {
		r.order = i
		if r.next(s) {
			h.runs = append(h.runs, r)
		}
	}
	heap.Init(h)
	for len(h.runs) > 0 {
		r := h.runs[0]
		put(r.cur)
		if r.next(s) {
			heap.Fix(h, 0)
		} else {
			heap.Pop(h)
		}
	}
}

// spill is a temporary file that holds a run. It has no name any more, so it vanishes with the process.
type spill struct{ f vfs.File }

func (s *sorter) newSpill() *spill {
	dir := s.tempDir
	if dir == "" {
		dir = "/tmp"
	}
	name, f, err := s.t.TempFile(dir, "sort", 0o600)
	if err != nil {
		s.t.Fatal(exitBad, "cannot create temporary file in %s: %s", tool.QuoteAF(dir), tool.Strerror(err))
	}
	if err := s.t.Unlink(name); err != nil {
		s.t.Fatal(exitBad, "cannot create temporary file in %s: %s", tool.QuoteAF(dir), tool.Strerror(err))
	}
	return &spill{f}
}

// fill writes lines to the file and rewinds it.
func (p *spill) fill(s *sorter, each func(put func([]byte))) {
	w := tool.NewFileWriter(p.f)
	each(func(b []byte) {
		w.Write(b)
		w.WriteByte(s.delim)
	})
	err := w.Flush()
	if err == nil {
		_, err = p.f.Seek(0, io.SeekStart)
	}
	if err != nil {
		s.t.Fatal(exitBad, "write failed: %s: %s", "temporary file", tool.Strerror(err))
	}
}

func (p *spill) run(s *sorter) *run {
	return &run{lines: tool.NewLines(p.f, s.delim), name: "temporary file", close: func() { p.f.Close() }}
}

// sortFiles reads all files, sorts, and writes.
func (s *sorter) sortFiles(files []string, out *writer) {
	var spills []*spill
	var arena []byte
	var lines [][]byte
	used := 0
	flush := func() {
		s.sortLines(lines)
		p := s.newSpill()
		p.fill(s, func(put func([]byte)) {
			for _, l := range lines {
				put(l)
			}
		})
		spills = append(spills, p)
		lines, arena, used = lines[:0], nil, 0
	}
	for _, name := range files {
		in, err := s.t.Open(name)
		if err != nil {
			s.t.Fatal(exitBad, "cannot read: %s: %s", tool.QuoteF(name), tool.Strerror(err))
		}
		l := tool.NewLines(in, s.delim)
		for {
			b, ok := l.Next()
			if !ok {
				break
			}
			// Lines are kept in large blocks, which the collector has little to do with.
			if len(b) > cap(arena)-len(arena) {
				arena = make([]byte, 0, max(256<<10, len(b)))
			}
			start := len(arena)
			arena = append(arena, b...)
			lines = append(lines, arena[start:len(arena):len(arena)])
			if used += len(b) + 96; used > s.budget {
				flush()
			}
		}
		in.Close()
		if l.Err != nil {
			s.t.Fatal(exitBad, "read failed: %s: %s", tool.QuoteF(name), tool.Strerror(l.Err))
		}
	}
	if len(spills) == 0 {
		s.sortLines(lines)
		for _, l := range lines {
			out.line(l)
		}
		return
	}
	if len(lines) > 0 {
		flush()
	}
	s.mergeSpills(spills, out)
}

// mergeSpills merges temporary files, in several passes if there are many.
func (s *sorter) mergeSpills(spills []*spill, out *writer) {
	for len(spills) > maxMerge {
		var next []*spill
		for len(spills) > 0 {
			n := min(maxMerge, len(spills))
			runs := make([]*run, n)
			for i, p := range spills[:n] {
				runs[i] = p.run(s)
			}
			p := s.newSpill()
			p.fill(s, func(put func([]byte)) { s.mergeRuns(runs, put) })
			next = append(next, p)
			spills = spills[n:]
		}
		spills = next
	}
	runs := make([]*run, len(spills))
	for i, p := range spills {
		runs[i] = p.run(s)
	}
	s.mergeRuns(runs, out.line)
}

// mergeFiles is -m.
func (s *sorter) mergeFiles(files []string, out *writer) {
	if s.hasOutput && contains(files, s.output) || len(files) > maxMerge {
		// The output overwrites an input, or there are too many to have open: gather in temporary files first.
		var spills []*spill
		for len(files) > 0 {
			n := min(maxMerge, len(files))
			runs := s.openAll(files[:n])
			p := s.newSpill()
			p.fill(s, func(put func([]byte)) { s.mergeRuns(runs, put) })
			spills = append(spills, p)
			files = files[n:]
		}
		s.mergeSpills(spills, out)
		return
	}
	s.mergeRuns(s.openAll(files), out.line)
}

func (s *sorter) openAll(files []string) []*run {
	runs := make([]*run, len(files))
	for i, name := range files {
		in, err := s.t.Open(name)
		if err != nil {
			s.t.Fatal(exitBad, "cannot read: %s: %s", tool.QuoteF(name), tool.Strerror(err))
		}
		runs[i] = &run{lines: tool.NewLines(in, s.delim), name: name, close: func() { in.Close() }}
	}
	return runs
}
