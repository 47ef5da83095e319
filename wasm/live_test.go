package wasm_test

import (
	"context"
	"testing"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/wasm"
	wt "agentrun.dev/wasm/wasmtest"
)

// counter counts in a local, through frames of other functions, checks what they return, and ends itself with a status that is the count.
func counter(n int) wt.Module {
	const i32Const, i32Add, i32Sub, i32Ne, localTee, drop = byte(0x41), byte(0x6a), byte(0x6b), byte(0x47), byte(0x22), byte(0x1a)
	return wt.Module{Pages: 2, Imports: []wt.Import{wt.From("wasi_snapshot_preview1", "proc_exit", "i", "")}, Funcs: []wt.Func{
		{Export: "_start", Locals: 1, Code: wt.Code(
			loop, byte(0x40),
			localGet, uint32(0), i32Const, 1, i32Add, localTee, uint32(0),
			call, uint32(2), localGet, uint32(0), i32Ne, ifOp, byte(0x40), unreachable, end,
			localGet, uint32(0), i32Const, n, i32Ne, brIf, uint32(0),
			end, localGet, uint32(0), call, uint32(0))},
		{Params: "i", Results: "i", Code: wt.Code(localGet, uint32(0), call, uint32(3))},
		{Params: "i", Results: "i", Locals: 1, Code: wt.Code(
			i32Const, 50, localTee, uint32(1),
			drop, loop, byte(0x40), localGet, uint32(1), i32Const, 1, i32Sub, localTee, uint32(1), brIf, uint32(0), end,
			localGet, uint32(0), call, uint32(1+3))},
		{Params: "i", Results: "i", Code: wt.Code(localGet, uint32(0))},
	}}
}

// freeze makes an image of the sandbox.
func (b *box) freeze(s *proc.Sandbox) *proc.Image {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	f, err := s.Freeze(ctx, proc.FreezeOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Thaw()
	im, err := f.Capture()
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { im.Close() })
	return im
}

// A guest that computes can be captured in the middle of it, and goes on in copies of its process; copies of copies, too.
func TestLive(t *testing.T) {
	b := newBox(t, newRuntime(t, wasm.Options{}), proc.Options{})
	m := b.compile(counter(1_000_042))
	p, _ := b.start("", func(p *proc.Process) int { return m.Run(p, wasm.Config{}) })
	for p.CPU() == 0 {
		time.Sleep(time.Millisecond)
	}
	all := []*proc.Process{p}
	of := b.s
	for range 4 {
		im := b.freeze(of)
		for range 2 {
			c, err := im.Start(proc.StartOptions{Namespace: b.ns, Commands: table{}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := c.Close(context.Background()); err != nil || c.Defect() != "" {
					t.Error(err, c.Defect())
				}
			})
			of = c
			if q := c.Lookup(p.Pid()); q != nil {
				all = append(all, q)
			}
		}
	}
	for i, q := range all {
		if st := b.wait(q); st != 1_000_042&0xff {
			t.Errorf("%d: status %d", i, st)
		}
	}
	if len(all) < 3 {
		t.Error("the guest was too fast to be copied")
	}
}

// What isn't in the middle of a call can't go on with one.
func TestContinueNothing(t *testing.T) {
	b := newBox(t, newRuntime(t, wasm.Options{}), proc.Options{})
	m := b.compile(reactor)
	b.inside(func(p *proc.Process) {
		in, err := m.Instantiate(p, wasm.Config{})
		if err != nil {
			t.Error(err)
			return
		}
		defer in.Close()
		if _, err := in.Live(); errs.KindOf(err) != errs.Unavailable {
			t.Error(err)
		}
		if _, err := in.Continue(p.Context()); errs.KindOf(err) != errs.Invalid {
			t.Error(err)
		}
	})
}
