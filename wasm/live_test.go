package wasm_test

import (
	"context"
	"testing"
	"time"

	"agentrun.dev/proc"
	"agentrun.dev/wasm"
	wt "agentrun.dev/wasm/wasmtest"
)

// counter counts in a local, in a global and in memory until memory at 0 isn't zero.
var counter = wt.Module{Pages: 2, Globals: []int32{0}, Funcs: []wt.Func{
	{Export: "_start", Locals: 1, Code: wt.Code(
		loop, byte(0x40),
		localGet, uint32(0), byte(0x41), 1, byte(0x6a), byte(0x22), uint32(0),
		call, uint32(1), localGet, uint32(0), byte(0x47), ifOp, byte(0x40), unreachable, end,
		byte(0x41), 0, byte(0x28), byte(2), byte(0), byte(0x45), brIf, uint32(0),
		end)},
	{Params: "i", Results: "i", Code: wt.Code(localGet, uint32(0), call, uint32(2))},
	{Params: "i", Results: "i", Locals: 1, Code: wt.Code(
		byte(0x41), 50, byte(0x22), uint32(1),
		byte(0x1a), loop, byte(0x40), localGet, uint32(1), byte(0x41), 1, byte(0x6b), byte(0x22), uint32(1), brIf, uint32(0), end,
		localGet, uint32(0))},
}}

func TestLive(t *testing.T) {
	b := newBox(t, newRuntime(t, wasm.Options{}), proc.Options{})
	m := b.compile(counter)
	p, _ := b.start("", func(p *proc.Process) int { return m.Run(p, wasm.Config{}) })
	time.Sleep(20 * time.Millisecond)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	f, err := b.s.Freeze(ctx, proc.FreezeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	im, err := f.Capture()
	if err != nil {
		t.Fatal(err)
	}
	f.Thaw()
	c, err := im.Start(proc.StartOptions{Namespace: b.ns, Commands: table{}})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	c.Close(context.Background())
	p.Post(proc.SIGKILL)
	b.wait(p)
}
