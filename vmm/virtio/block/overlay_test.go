package block_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/virtio/block"
	"golang.org/x/sys/unix"
)

// memfd returns a sealable file in memory.
func memfd(t testing.TB) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("layer", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), "layer")
}

// dup returns another descriptor of a file, as a process that was sent it has.
func dup(t testing.TB, f *os.File) *os.File {
	t.Helper()
	if f == nil {
		return nil
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), "dup")
}

type pair struct {
	o     *block.Overlay
	model []byte
}

func (p *pair) write(t testing.TB, rnd *rand.Rand) {
	t.Helper()
	size := int64(len(p.model))
	off := rnd.Int64N(size/512) * 512
	n := min((rnd.Int64N(20)+1)*512, size-off)
	w := p.model[off : off+n]
	var err error
	switch rnd.IntN(6) {
	case 0:
		clear(w)
		err = p.o.Zero(off, n)
	case 1:
		err = p.o.Discard(off, n)
		if err == nil {
			err = p.o.ReadAt([][]byte{w}, off) // whatever it chose to keep, it keeps from now on
		}
	default:
		for i := range w {
			w[i] = byte(rnd.Uint32())
		}
		half := n / 2
		err = p.o.WriteAt([][]byte{bytes.Clone(w[:half]), bytes.Clone(w[half:])}, off)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (p *pair) check(t testing.TB) {
	t.Helper()
	got := make([]byte, len(p.model))
	if err := p.o.ReadAt([][]byte{got[:1000], got[1000:]}, 0); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, p.model) {
		t.Fatal("the overlay differs from its model")
	}
}

// TestForks: a tree of forks, each written at random, against copies; lineages longer than MaxLayers.
func TestForks(t *testing.T) {
	const size = 300<<10 + 512
	rnd := rand.New(rand.NewPCG(7, 7))
	base := make([]byte, size/2)
	for i := range base {
		base[i] = byte(rnd.Uint32())
	}
	f := memfd(t)
	if _, err := f.Write(base); err != nil {
		t.Fatal(err)
	}
	o, err := block.NewOverlay(f, memfd(t), size)
	if err != nil {
		t.Fatal(err)
	}
	all := []*pair{{o, append(base, make([]byte, size-len(base))...)}}
	for step := range 3 * block.MaxLayers {
		parent := all[len(all)-1] // deep
		if step%5 == 0 {
			parent = all[rnd.IntN(len(all))]
		}
		for range rnd.IntN(6) {
			parent.write(t, rnd)
		}
		var child *block.Overlay
		if step%3 == 0 { // by way of another process
			if err := parent.o.Seal(memfd(t)); err != nil {
				t.Fatal(err)
			}
			data, files, err := parent.o.State()
			if err != nil {
				t.Fatal(err)
			}
			if len(files) > block.MaxLayers+1 {
				t.Fatalf("%d layers", len(files))
			}
			for i := range files {
				files[i] = dup(t, files[i])
			}
			child, err = block.RestoreOverlay(data, files, memfd(t))
			if err != nil {
				t.Fatal(err)
			}
		} else if child, err = parent.o.Fork(memfd(t), memfd(t)); err != nil {
			t.Fatal(err)
		}
		c := &pair{child, bytes.Clone(parent.model)}
		c.check(t)
		c.write(t, rnd)
		parent.write(t, rnd)
		c.check(t)
		parent.check(t)
		all = append(all, c)
		if len(all) > 12 { // parents end before their forks
			i := rnd.IntN(len(all) - 1)
			if err := all[i].o.Close(); err != nil {
				t.Fatal(err)
			}
			all = append(all[:i], all[i+1:]...)
		}
	}
	for _, p := range all {
		p.check(t)
		if err := p.o.Close(); err != nil {
			t.Fatal(err)
		}
		if err := p.o.WriteAt([][]byte{make([]byte, 512)}, 0); !errs.Is(err, errs.Unavailable) {
			t.Errorf("write to a closed overlay: %v", err)
		}
	}
}

// TestSealed: a layer that is shared can't be written, not even through the descriptor that it was written with.
func TestSealed(t *testing.T) {
	top := memfd(t)
	o, err := block.NewOverlay(nil, top, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if err := o.WriteAt([][]byte{[]byte("shared" + string(make([]byte, 506)))}, 0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := o.State(); !errs.Is(err, errs.Unavailable) {
		t.Errorf("state of an overlay that isn't sealed: %v", err)
	}
	if err := o.Seal(memfd(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := top.WriteAt([]byte("evil"), 0); err == nil {
		t.Error("a sealed layer was written")
	}
	if got := o.Written(); got != block.BlockSize {
		t.Errorf("%d bytes written", got)
	}
}

// TestForkIsCheap: what a fork costs doesn't grow with what was written, and its allocations are few.
func TestForkIsCheap(t *testing.T) {
	o, err := block.NewOverlay(nil, memfd(t), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	for off := int64(0); off < 1<<30; off += 1 << 20 {
		if err := o.Zero(off, 1<<19); err != nil { // marks, without storing anything
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(10, func() {
		c, err := o.Fork(memfd(t), memfd(t))
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}); n > 60 {
		t.Errorf("%v allocations for a fork", n)
	}
}

func FuzzRestoreOverlay(f *testing.F) {
	o, err := block.NewOverlay(nil, memfd(f), 64<<10)
	if err != nil {
		f.Fatal(err)
	}
	_ = o.WriteAt([][]byte{make([]byte, 9000&^511)}, 4096)
	_ = o.Zero(32<<10, 8192)
	if err := o.Seal(memfd(f)); err != nil {
		f.Fatal(err)
	}
	data, _, err := o.State()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data, 2)
	f.Add(data, 1)
	f.Add(data[:len(data)-1], 2)
	f.Add([]byte(fmt.Sprintf("AGOV\x01%s", data[5:13])), 2)
	f.Fuzz(func(t *testing.T, data []byte, n int) {
		files := []*os.File{nil}
		for range n & 3 {
			files = append(files, memfd(t))
		}
		o, err := block.RestoreOverlay(data, files, memfd(t))
		if err != nil {
			return
		}
		buf := make([]byte, min(o.Size(), 1<<20)&^511)
		if err := o.ReadAt([][]byte{buf}, 0); err != nil {
			t.Error(err)
		}
		_ = o.Close()
	})
}

func BenchmarkFork(b *testing.B) {
	o, err := block.NewOverlay(nil, memfd(b), 10<<30)
	if err != nil {
		b.Fatal(err)
	}
	defer o.Close()
	for off := int64(0); off < 10<<30; off += 16 << 20 {
		if err := o.Zero(off, 4096); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		c, err := o.Fork(memfd(b), memfd(b))
		if err != nil {
			b.Fatal(err)
		}
		_ = c.Close()
	}
}
