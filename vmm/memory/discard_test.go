package memory

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
)

// discardModel discards, and holds the outcome against what may come of it: pages are zeros or as they were, and only whole ones of the range
// are touched. The model follows.
func discardModel(t *testing.T, m *Memory, want []byte, off, n uint64) {
	t.Helper()
	done, err := m.Discard(off, n)
	if err != nil {
		t.Fatal(err)
	}
	var zeros uint64
	for page := (off + PageSize - 1) &^ (PageSize - 1); page+PageSize <= off+n; page += PageSize {
		if got := m.all()[page : page+PageSize]; isZero(got) {
			zeros += PageSize
			clear(want[page : page+PageSize])
		} else if !bytes.Equal(got, want[page:page+PageSize]) {
			t.Fatalf("page %#x is neither zeros nor what it was", page)
		}
	}
	if zeros < done || done > n {
		t.Fatalf("%d bytes of %d were given back, %d are zeros", done, n, zeros)
	}
}

// fillAll makes every page dirty.
func fillAll(m *Memory, b byte) {
	for off := uint64(0); off < m.size; off += PageSize {
		m.all()[off] = b
	}
}

// held is how much the file of a memory, or of its image's i-th layer, has.
func held(t *testing.T, fd int) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}

// A memory that was never captured loses the pages themselves.
func TestDiscardOfFile(t *testing.T) {
	m := fresh(t, 4*mib)
	fillAll(m, 1)
	if n, err := m.Discard(mib+1, 2*mib); err != nil || n != 2*mib-PageSize {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if got := held(t, m.fd); got != 2*mib+PageSize {
		t.Errorf("the file holds %d bytes", got)
	}
	if m.all()[mib] != 1 || m.all()[mib+PageSize] != 0 || m.all()[3*mib-PageSize] != 0 || m.all()[3*mib] != 1 {
		t.Error("the wrong pages were given back")
	}
	c := child(t, capture(t, m))
	if !bytes.Equal(c.all(), m.all()) {
		t.Error("the child differs")
	}
}

// What a child gives back is zeros and not its parent's bytes, which the parent and a sibling still see; it is neither dirty nor a part of the
// next image.
func TestDiscardOfLayers(t *testing.T) {
	m := fresh(t, 4*mib)
	fillAll(m, 1)
	im := capture(t, m)
	a, b := child(t, im), child(t, im)
	fillAll(a, 2)
	if n, err := a.Discard(mib, mib); err != nil || n != mib {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if !bytes.Equal(a.all()[mib:2*mib], make([]byte, mib)) || a.all()[mib-PageSize] != 2 || a.all()[2*mib] != 2 {
		t.Error("the wrong pages are zeros")
	}
	if m.all()[mib] != 1 || b.all()[mib] != 1 {
		t.Error("others lost what one gave back")
	}
	if n, err := a.Dirty(); err != nil || n != 3*mib {
		t.Errorf("dirty: %d, %v; want 3 MiB", n, err)
	}
	a.all()[mib+5*PageSize] = 3
	next := capture(t, a)
	_, fds := next.Export()
	if got := held(t, fds[0]); len(fds) != 1 || got != 3*mib+PageSize {
		t.Errorf("the layer holds %d bytes, and there are %d layers; the parent's isn't needed any more", got, len(fds))
	}
	c := child(t, next)
	if !bytes.Equal(c.all(), a.all()) || c.all()[mib] != 0 || c.all()[mib+5*PageSize] != 3 {
		t.Error("the grandchild differs from the child")
	}
	// What is zeros already is given back again, by pages.
	if n, err := c.Discard(mib+PageSize, 2*PageSize); err != nil || n != 2*PageSize {
		t.Errorf("%d bytes, %v", n, err)
	}
	// Clean pages of a layer: this memory has them no more, and neither has what is saved of it.
	if n, err := c.Discard(0, mib); err != nil || n != mib || c.all()[0] != 0 {
		t.Errorf("%d bytes, %v", n, err)
	}
	saved := uint64(0)
	if err := capture(t, c).Data(func(_ uint64, b []byte) error { saved += uint64(len(b)); return nil }); err != nil || saved != 2*mib+PageSize {
		t.Errorf("saved %d bytes, %v", saved, err)
	}
}

// A guest that gives its memory back in crumbs cuts no image into more pieces than its children can map, and loses none of its bytes.
func TestDiscardIsBounded(t *testing.T) {
	const size = 256 * mib
	m := fresh(t, size)
	fillAll(m, 1)
	c := child(t, capture(t, m))
	if n, err := c.Discard(5*PageSize, 10*PageSize); err != nil || n != 0 || c.all()[5*PageSize] != 1 {
		t.Errorf("less than a grain: %d bytes, %v", n, err)
	}
	zeros := 0
	for off := uint64(0); off < size; off += 2 * minGrain {
		n, err := c.Discard(off, minGrain)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			zeros++
		}
		if got := c.all()[off]; (got == 0) != (n > 0) {
			t.Fatalf("at %#x is %d, and %d bytes were given back", off, got, n)
		}
	}
	im := capture(t, c)
	if im.Extents() > maxHoled || zeros < maxHoled/2 {
		t.Errorf("%d extents, %d holes", im.Extents(), zeros)
	}
	// A large piece makes fewer of them, and is taken.
	if n, err := c.Discard(0, size); err != nil || n != size {
		t.Errorf("all of it: %d bytes, %v", n, err)
	}
	if im := capture(t, c); im.Extents() != 0 {
		t.Errorf("%d extents of nothing", im.Extents())
	}
}

func TestDiscardMisuse(t *testing.T) {
	m := fresh(t, mib)
	for _, r := range [][2]uint64{{mib, 1}, {0, mib + 1}, {^uint64(0), 1}, {PageSize, ^uint64(0)}, {HoleStart, PageSize}, {HoleEnd, PageSize}} {
		if _, err := m.Discard(r[0], r[1]); !errs.Is(err, errs.Invalid) {
			t.Errorf("%#x: %v", r, err)
		}
	}
	if n, err := m.Discard(PageSize+1, PageSize); n != 0 || err != nil {
		t.Errorf("no whole page: %d, %v", n, err)
	}
	r, err := Reserve(mib)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Discard(0, mib); !errs.Is(err, errs.Invalid) {
		t.Errorf("of nothing: %v", err)
	}
	r.Close()
	if _, err := r.Discard(0, mib); !errs.Is(err, errs.Invalid) {
		t.Errorf("of closed memory: %v", err)
	}
}
