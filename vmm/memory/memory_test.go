package memory

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
)

const mib = 1 << 20

// child loads an image into memory of its own.
func child(t *testing.T, im *Image) *Memory {
	t.Helper()
	m, err := Reserve(im.Size())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Load(im); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func fresh(t *testing.T, size uint64) *Memory {
	t.Helper()
	m, err := New(size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func capture(t *testing.T, m *Memory) *Image {
	t.Helper()
	im, err := m.Capture()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { im.Close() })
	return im
}

// Children see what their parent held at the capture, neither sees the other's writes.
func TestForkOfMemory(t *testing.T) {
	m := fresh(t, 8*mib)
	copy(m.all()[5000:], "before")
	im := capture(t, m)
	copy(m.all()[5000:], "parent")
	a, b := child(t, im), child(t, im)
	copy(a.all()[5000:], "first!")
	if got := string(b.all()[5000:5006]); got != "before" {
		t.Errorf("the second child sees %q", got)
	}
	if got := string(m.all()[5000:5006]); got != "parent" {
		t.Errorf("the parent sees %q", got)
	}
	// A fork of the child, two levels down.
	copy(a.all()[7*mib:], "deep")
	c := child(t, capture(t, a))
	if string(c.all()[5000:5006]) != "first!" || string(c.all()[7*mib:7*mib+4]) != "deep" {
		t.Error("a grandchild doesn't hold what its parent did")
	}
	if !bytes.Equal(c.all()[:5000], b.all()[:5000]) {
		t.Error("what nobody wrote differs")
	}
}

// After a capture nothing is dirty, and what is captured is only what was written since.
func TestCaptureCostsWhatIsDirty(t *testing.T) {
	m := fresh(t, 64*mib)
	for i := range m.all() {
		if i%PageSize == 0 {
			m.all()[i] = 1
		}
	}
	capture(t, m)
	if n, err := m.Dirty(); err != nil || n != 0 {
		t.Fatalf("dirty after a capture: %d, %v", n, err)
	}
	for _, page := range []int{1, 2, 3, 700, 9000} {
		m.all()[page*PageSize+17] = 2
	}
	_ = m.all()[10000*PageSize] // what is only read isn't dirty
	if n, err := m.Dirty(); err != nil || n != 5*PageSize {
		t.Fatalf("dirty: %d, %v; want 5 pages", n, err)
	}
	im := capture(t, m)
	if n := im.Extents(); n != 7 { // [0,1) [1,4) [4,700) [700] [701,9000) [9000] and the rest
		t.Errorf("%d extents", n)
	}
	_, fds := im.Export()
	var st unix.Stat_t
	if err := unix.Fstat(fds[1], &st); err != nil || st.Blocks*512 != 5*PageSize {
		t.Errorf("the layer holds %d bytes, %v; want 5 pages", st.Blocks*512, err)
	}
	if n, err := m.Dirty(); err != nil || n != 0 {
		t.Errorf("dirty after the second capture: %d, %v", n, err)
	}
}

// The kernel's ranges and the words of pagemap say the same.
func TestScanAgainstWalk(t *testing.T) {
	m := fresh(t, 16*mib)
	capture(t, m)
	for range 300 {
		m.all()[rand.IntN(16*mib)] = 1
	}
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want, err := m.walk(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	got, ok := m.scan(int(f.Fd()))
	if !ok {
		t.Skip("this kernel has no PAGEMAP_SCAN (Linux 6.7): the words of pagemap are read here, which the other tests do")
	}
	if len(got) != len(want) {
		t.Fatalf("%d spans, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("span %d: %v, want %v", i, got[i], want[i])
		}
	}
}

// Random writes, discards, captures and children against plain copies.
func TestModel(t *testing.T) {
	const size = 4 * mib
	type pair struct {
		m    *Memory
		want []byte
	}
	live := []pair{{fresh(t, size), make([]byte, size)}}
	for round := range 120 {
		p := &live[rand.IntN(len(live))]
		for range rand.IntN(400) { // enough for gaps to be filled
			off := rand.IntN(size)
			p.m.all()[off] = byte(round)
			p.want[off] = byte(round)
		}
		for range rand.IntN(4) {
			discardModel(t, p.m, p.want, uint64(rand.IntN(size/2)), uint64(rand.IntN(size/4)))
		}
		im, err := p.m.Capture()
		if err != nil {
			t.Fatal(err)
		}
		if im.Extents() > MaxExtents {
			t.Fatalf("%d extents", im.Extents())
		}
		c := pair{child(t, im), bytes.Clone(p.want)}
		im.Close()
		if len(live) < 6 {
			live = append(live, c)
		} else {
			i := rand.IntN(len(live))
			live[i].m.Close()
			live[i] = c
		}
		for i, p := range live {
			if !bytes.Equal(p.m.all(), p.want) {
				t.Fatalf("round %d: memory %d differs from its model", round, i)
			}
		}
	}
}

// A long line of descendants doesn't hold ever more files.
func TestLayersAreBounded(t *testing.T) {
	m := fresh(t, mib)
	for i := range 3 * maxLayers {
		m.all()[i%256*PageSize] = byte(i)
		im, err := m.Capture()
		if err != nil {
			t.Fatal(err)
		}
		if n := len(im.layers()); n > maxLayers {
			t.Fatalf("%d layers", n)
		}
		im.Close()
	}
}

// Nobody who has a layer's descriptor can change it, and a foreign one is looked at before it is believed.
func TestSealed(t *testing.T) {
	m := fresh(t, mib)
	im := capture(t, m)
	extents, fds := im.Export()
	if _, err := unix.Pwrite(fds[0], []byte("x"), 0); err != unix.EPERM {
		t.Errorf("writing to a layer: %v, want EPERM", err)
	}
	dup := func(fd int) []int {
		n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		return []int{n}
	}
	got, err := Import(mib, extents, dup(fds[0]))
	if err != nil {
		t.Fatal(err)
	}
	got.Close()
	open, err := newMemfd(mib)
	if err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]func() (*Image, error){
		"unsealed":     func() (*Image, error) { return Import(mib, extents, []int{open}) },
		"other size":   func() (*Image, error) { return Import(2*mib, extents, dup(fds[0])) },
		"out of range": func() (*Image, error) { return Import(mib, []Extent{{0, 2 * mib, 0}}, dup(fds[0])) },
		"overlap": func() (*Image, error) {
			return Import(mib, []Extent{{0, 8192, 0}, {4096, mib, 0}}, dup(fds[0]))
		},
		"no such layer": func() (*Image, error) { return Import(mib, []Extent{{0, mib, 1}}, dup(fds[0])) },
		"half a page":   func() (*Image, error) { return Import(mib, []Extent{{0, 100, 0}}, dup(fds[0])) },
	} {
		if im, err := try(); err == nil {
			im.Close()
			t.Errorf("%s: accepted", name)
		} else if errs.KindOf(err) != errs.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Windows are inside the RAM or an error, on both sides of the hole.
func TestBytes(t *testing.T) {
	m, err := Reserve(HoleStart + 16*mib)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, c := range []struct {
		addr, n uint64
		ok      bool
	}{
		{0, 0, true}, {0, mib, true}, {HoleStart - 1, 1, true}, {HoleStart - 1, 2, false}, {HoleStart, 1, false}, {HoleStart, 0, false},
		{HoleEnd - 1, 1, false}, {HoleEnd, 16 * mib, true}, {HoleEnd, 16*mib + 1, false}, {HoleEnd + 16*mib, 1, false},
		{1 << 63, 1, false}, {^uint64(0), 2, false}, {100, ^uint64(0), false}, {HoleEnd + 5, ^uint64(0) - 3, false},
	} {
		b, err := m.Bytes(c.addr, c.n)
		if (err == nil) != c.ok || c.ok && uint64(len(b)) != c.n {
			t.Errorf("%#x+%d: %d bytes, %v", c.addr, c.n, len(b), err)
		}
	}
	if r := m.Regions(); len(r) != 2 || r[1].Guest != HoleEnd || r[1].Size != 16*mib {
		t.Errorf("regions %+v", r)
	}
	b, _ := m.Bytes(HoleEnd, 1)
	b[0] = 7
	if m.all()[HoleStart] != 7 {
		t.Error("what is at 4 GiB isn't what follows the hole")
	}
}

// Misuse is an error.
func TestMisuse(t *testing.T) {
	for _, size := range []uint64{0, 100, 2 * MaxSize, ^uint64(0)} {
		if _, err := New(size); errs.KindOf(err) != errs.Invalid {
			t.Errorf("size %d: %v", size, err)
		}
	}
	m := fresh(t, mib)
	im := capture(t, m)
	if err := m.Load(im); err == nil {
		t.Error("loading over memory in use")
	}
	r, err := Reserve(2 * mib)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Capture(); err == nil {
		t.Error("a capture of nothing")
	}
	if err := r.Load(im); err == nil {
		t.Error("loading an image of another size")
	}
	r.Close()
	r.Close()
	if _, err := r.Capture(); err == nil {
		t.Error("a capture of closed memory")
	}
	im.Close()
	if _, err := im.Clone(); err == nil {
		t.Error("a clone of a closed image")
	}
}

// A thousand children leave nothing behind.
func TestNothingLeaks(t *testing.T) {
	m := fresh(t, 4*mib)
	count := func() (fds, maps int) {
		d, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		return len(d), strings.Count(string(b), "agentrun-ram")
	}
	first, err := m.Capture()
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	fds, maps := count()
	for i := range 1000 {
		m.all()[i%100] = byte(i) // always the same page: the parent's layers don't grow
		im, err := m.Capture()
		if err != nil {
			t.Fatal(err)
		}
		c, err := Reserve(4 * mib)
		if err == nil {
			err = c.Load(im)
		}
		if err != nil {
			t.Fatal(err)
		}
		c.all()[i] = 1
		im.Close()
		c.Close()
	}
	fds2, maps2 := count()
	if fds2 > fds+1 || maps2 > maps+2 { // the parent has one layer more than it began with
		t.Errorf("%d descriptors and %d mappings became %d and %d", fds, maps, fds2, maps2)
	}
}

func FuzzSpans(f *testing.F) {
	f.Add([]byte{1, 2, 3, 9, 200}, []byte{4, 6, 90, 91}, uint8(2))
	f.Fuzz(func(t *testing.T, a, b []byte, n uint8) {
		l1, l2 := &layer{}, &layer{}
		spansOf := func(p []byte) (s []span) {
			at := uint64(0)
			for i := 0; i+1 < len(p); i += 2 {
				off := at + uint64(p[i]) + 1
				at = off + uint64(p[i+1]) + 1
				s = append(s, span{off, at})
			}
			return s
		}
		var old []extent
		for _, s := range spansOf(a) {
			old = append(old, extent{s, l1})
		}
		spans := spansOf(b)
		filled := fill(append([]span(nil), spans...), int(n)+1)
		if len(filled) > int(n)+1 && len(spans) > 0 {
			t.Fatalf("%d spans of at most %d", len(filled), int(n)+1)
		}
		got := overlay(old, filled, l2)
		in := func(s []span, x uint64) bool {
			for _, s := range s {
				if s.off <= x && x < s.end {
					return true
				}
			}
			return false
		}
		at := uint64(0)
		owner := map[uint64]*layer{}
		for _, e := range got {
			if e.off < at || e.off >= e.end {
				t.Fatalf("extents out of order: %v", got)
			}
			at = e.end
			for x := e.off; x < e.end; x++ {
				owner[x] = e.l
			}
		}
		for x := uint64(0); x < at+600; x++ {
			var want *layer
			if in(filled, x) {
				want = l2
			} else if in(spansOf(a), x) {
				want = l1
			}
			if in(spans, x) && want != l2 {
				t.Fatalf("a dirty page at %d is lost", x)
			}
			if owner[x] != want {
				t.Fatalf("at %d is the wrong layer", x)
			}
		}
	})
}
