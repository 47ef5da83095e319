package wasm_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/wasm"
	wt "agentrun.dev/wasm/wasmtest"
)

// reactor keeps a number in a global and grows its memory when asked.
var reactor = wt.Module{Pages: 40, Globals: []int32{1}, Funcs: []wt.Func{
	{Export: "get", Results: "i", Code: wt.Code(globalGet, uint32(0))},
	{Export: "set", Params: "i", Code: wt.Code(localGet, uint32(0), globalSet, uint32(0))},
	{Export: "grow", Params: "i", Results: "i", Code: wt.Code(localGet, uint32(0), memoryGrow, byte(0))},
	{Export: "size", Results: "i", Code: wt.Code(byte(0x3f), byte(0))},
	{Export: "trap", Code: wt.Code(unreachable)},
}}

// inside runs f as a process.
func (b *box) inside(f func(p *proc.Process)) {
	b.t.Helper()
	p, _ := b.start("", func(p *proc.Process) int { f(p); return 0 })
	if st := b.wait(p); st != 0 {
		b.t.Fatalf("status %d: %s", st, b.s.Defect())
	}
}

func call1(t testing.TB, p *proc.Process, in *wasm.Instance, name string, args ...uint64) uint64 {
	t.Helper()
	v, err := in.Call(p.Context(), name, args...)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(v) == 0 {
		return 0
	}
	return v[0]
}

// Instances of a snapshot begin as it was and stay apart, and so does the one that it was taken of.
func TestSnapshot(t *testing.T) {
	b := newBox(t, newRuntime(t, wasm.Options{}), proc.Options{})
	m := b.compile(reactor)
	b.inside(func(p *proc.Process) {
		parent, err := m.Instantiate(p, wasm.Config{})
		if err != nil {
			t.Error(err)
			return
		}
		defer parent.Close()
		copy(parent.Memory(100_000, 5), "first")
		call1(t, p, parent, "set", 7)
		s1, err := parent.Snapshot()
		if err != nil {
			t.Error(err)
			return
		}
		defer s1.Close()
		copy(parent.Memory(100_000, 5), "later")
		a, err := s1.Start(p, wasm.Config{})
		if err != nil {
			t.Error(err)
			return
		}
		if got := string(a.Memory(100_000, 5)); got != "first" || call1(t, p, a, "get") != 7 {
			t.Errorf("a fork begins with %q", got)
		}
		copy(a.Memory(200_000, 6), "second")
		call1(t, p, a, "grow", 3)
		copy(a.Memory(41*65536, 3), "top")
		call1(t, p, a, "set", 8)
		s2, err := a.Snapshot()
		if err != nil {
			t.Error(err)
			return
		}
		defer s2.Close()
		if size, own := s2.Size(); size != 43<<16 || own > 1<<20 {
			t.Errorf("%d bytes, %d of its own: more than was written to", size, own)
		}
		for range 20 { // more than make it flat
			c, err := s2.Start(p, wasm.Config{})
			if err != nil {
				t.Error(err)
				return
			}
			if string(c.Memory(100_000, 5)) != "first" || string(c.Memory(200_000, 6)) != "second" || string(c.Memory(41*65536, 3)) != "top" ||
				call1(t, p, c, "get") != 8 || call1(t, p, c, "size") != 43 {
				t.Error("a fork of a fork lacks what it was")
			}
			copy(c.Memory(200_000, 6), "child!")
			c.Close()
		}
		if string(a.Memory(200_000, 6)) != "second" || call1(t, p, parent, "get") != 7 {
			t.Error("forks aren't apart")
		}
		a.Close()
	})
	if u := b.s.Usage(); u.Memory != 0 {
		t.Errorf("%d bytes are still charged", u.Memory)
	}
}

// Nothing of an instance's former tenant is left in it, whichever snapshot comes next and however the tenant ended.
func TestPoolIsClean(t *testing.T) {
	b := newBox(t, newRuntime(t, wasm.Options{Ready: 2}), proc.Options{})
	m := b.compile(reactor)
	b.inside(func(p *proc.Process) {
		base, err := m.Instantiate(p, wasm.Config{})
		if err != nil {
			t.Error(err)
			return
		}
		defer base.Close()
		copy(base.Memory(0, 4), "base")
		small, err := base.Snapshot()
		if err != nil {
			t.Error(err)
			return
		}
		call1(t, p, base, "grow", 5)
		copy(base.Memory(44<<16, 4), "tail")
		large, err := base.Snapshot()
		if err != nil {
			t.Error(err)
			return
		}
		for i := range 30 {
			s, pages, text := small, uint32(40), []byte("base")
			if i%3 == 2 {
				s, pages = large, 45
			}
			in, err := s.Start(p, wasm.Config{})
			if err != nil {
				t.Error(err)
				return
			}
			if n := call1(t, p, in, "size"); n != uint64(pages) {
				t.Errorf("round %d: %d pages", i, n)
			}
			if v := call1(t, p, in, "get"); v != 1 {
				t.Errorf("round %d: global %d", i, v)
			}
			want := make([]byte, pages<<16)
			copy(want, text)
			if s == large {
				copy(want[44<<16:], "tail")
			}
			mem := in.Memory(0, pages<<16)
			if !bytes.Equal(mem, want) {
				t.Fatalf("round %d: memory isn't the snapshot's", i)
			}
			call1(t, p, in, "grow", uint64(i%4))
			call1(t, p, in, "set", 99)
			n := uint32(call1(t, p, in, "size")) << 16
			for k, all := 0, in.Memory(0, n); k < len(all); k += 64 {
				all[k] = 0xee
			}
			if i%5 == 4 {
				in.Call(p.Context(), "trap")
			}
			in.Close()
			// What grows again must be zero too.
			again, err := s.Start(p, wasm.Config{})
			if err != nil {
				t.Error(err)
				return
			}
			old := call1(t, p, again, "grow", 6)
			if tail := again.Memory(uint32(old)<<16, 6<<16); !bytes.Equal(tail, make([]byte, 6<<16)) {
				t.Fatalf("round %d: grown memory isn't zero", i)
			}
			again.Close()
		}
		small.Close()
		large.Close()
		if _, err := small.Start(p, wasm.Config{}); !errs.Is(err, errs.Invalid) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// What can't be captured is refused.
func TestSnapshotRefused(t *testing.T) {
	b := newBox(t, newRuntime(t, wasm.Options{}), proc.Options{})
	m := b.compile(wt.Module{Pages: 1, Table: []uint32{0}, Funcs: []wt.Func{
		{Export: "f", Code: wt.Code(i32Const, 0, byte(0xd0), byte(0x70), byte(0x26), uint32(0))}}})
	b.inside(func(p *proc.Process) {
		in, err := m.Instantiate(p, wasm.Config{})
		if err != nil {
			t.Error(err)
			return
		}
		defer in.Close()
		if _, err := in.Snapshot(); !errs.Is(err, errs.Unsupported) {
			t.Error(err)
		}
	})
}

func BenchmarkFork(b *testing.B) {
	x := newBox(b, newRuntime(b, wasm.Options{}), proc.Options{})
	big := reactor
	big.Pages = 200 // 13 MB
	m := x.compile(big)
	x.inside(func(p *proc.Process) {
		in, err := m.Instantiate(p, wasm.Config{})
		if err != nil {
			b.Error(err)
			return
		}
		defer in.Close()
		for k, mem := 0, in.Memory(0, 200<<16); k < len(mem); k += 64 {
			mem[k] = 1
		}
		s, err := in.Snapshot()
		if err != nil {
			b.Error(err)
			return
		}
		defer s.Close()
		var took []time.Duration
		for b.Loop() {
			start := time.Now()
			c, err := s.Start(p, wasm.Config{})
			took = append(took, time.Since(start))
			if err != nil {
				b.Error(err)
				return
			}
			for k := uint32(0); k < 60; k++ { // what a small print writes to
				c.Memory(k*100_000, 1)[0] = 2
			}
			c.Close()
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
		b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
	})
}
