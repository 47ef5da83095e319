package wasm_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
	"agentrun.dev/wasm"
	wt "agentrun.dev/wasm/wasmtest"
)

// box is a sandbox for tests.
type box struct {
	t  testing.TB
	r  *wasm.Runtime
	s  *proc.Sandbox
	ns *vfs.Namespace
}

type table map[string]proc.Program

func (t table) Lookup(name string) (proc.Program, bool) { p, ok := t[name]; return p, ok }
func (t table) Names() (out []string) {
	for n := range t {
		out = append(out, n)
	}
	return out
}

func newRuntime(t testing.TB, o wasm.Options) *wasm.Runtime {
	t.Helper()
	r, err := wasm.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func newBox(t testing.TB, r *wasm.Runtime, o proc.Options) *box {
	t.Helper()
	ns := vfs.NewNamespace(vfs.Mount{FS: memfs.New(memfs.Options{Mode: 0o777}), Special: proc.OpenSpecial})
	cmds := table{"true": proc.Func(func(*proc.Process) int { return 0 })}
	o.Namespace, o.Commands = ns, cmds
	s, err := proc.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for path, fs := range map[string]vfs.FS{"/bin": proc.NewBin(cmds), "/dev": proc.NewDev(), "/proc": proc.NewProc(s)} {
		if err := ns.Mount(context.Background(), vfs.Mount{Path: path, FS: fs, Special: proc.OpenSpecial}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
		if d := s.Defect(); d != "" {
			t.Error(d)
		}
	})
	return &box{t, r, s, ns}
}

// lockedBuffer collects output of processes.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start runs f as a process.
func (b *box) start(stdin string, f func(p *proc.Process) int, args ...string) (*proc.Process, *lockedBuffer) {
	b.t.Helper()
	out := &lockedBuffer{}
	p, err := b.s.NewProcess(proc.Root{Args: append([]string{"guest"}, args...), Env: []string{"PATH=/bin", "A=1"}, Files: map[int]vfs.File{
		0: proc.NewInput(strings.NewReader(stdin), false), 1: b.s.NewOutput(out, false), 2: b.s.NewOutput(out, false)}})
	if err != nil {
		b.t.Fatal(err)
	}
	p.Start(proc.Func(f))
	return p, out
}

// wait waits for a process's end.
func (b *box) wait(p *proc.Process) int {
	b.t.Helper()
	select {
	case <-p.Done():
	case <-time.After(60 * time.Second):
		b.t.Fatal("the process hangs")
	}
	return p.Status()
}

func (b *box) compile(m wt.Module) *wasm.Module {
	b.t.Helper()
	c, err := b.r.Compile(context.Background(), m.Bytes(), wasm.CompileOptions{Name: "guest"})
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// run runs a command to its end.
func (b *box) run(m wt.Module, stdin string, args ...string) (int, string) {
	b.t.Helper()
	c := b.compile(m)
	p, out := b.start(stdin, func(p *proc.Process) int { return c.Run(p, wasm.Config{}) }, args...)
	return b.wait(p), out.String()
}

// Instructions.
const (
	unreachable, block, loop, ifOp, end, br, brIf, call = byte(0), byte(2), byte(3), byte(4), byte(0x0b), byte(0x0c), byte(0x0d), byte(0x10)
	drop, localGet, localSet, globalGet, globalSet      = byte(0x1a), byte(0x20), byte(0x21), byte(0x23), byte(0x24)
	i32Load, i32Store, memoryGrow, i32Const             = byte(0x28), byte(0x36), byte(0x40), byte(0x41)
	i32Add, i32DivS                                     = byte(0x6a), byte(0x6d)
	void                                                = byte(0x40)
)

const wasi = "wasi_snapshot_preview1"

// start0 is a command of one function.
func start0(code ...any) wt.Module {
	return wt.Module{
		Imports: []wt.Import{wt.From(wasi, "proc_exit", "i", ""), wt.From(wasi, "fd_write", "iiii", "i")},
		Funcs:   []wt.Func{{Export: "_start", Code: wt.Code(code...)}}, Pages: 1,
		// An iovec at 8 names the text at 16.
		Data: map[uint32]string{8: "\x10\x00\x00\x00\x06\x00\x00\x00hello\n"},
	}
}

func TestCommand(t *testing.T) {
	b := newBox(t, newRuntime(t, wasm.Options{}), proc.Options{})
	st, out := b.run(start0(i32Const, 1, i32Const, 8, i32Const, 1, i32Const, 0, call, uint32(1), drop, i32Const, 7, call, uint32(0)), "")
	if st != 7 || out != "hello\n" {
		t.Errorf("status %d, %q", st, out)
	}
}

// What can go wrong in a guest is its own end, said in words.
func TestTraps(t *testing.T) {
	b := newBox(t, newRuntime(t, wasm.Options{}), proc.Options{})
	recursion := start0(call, uint32(2))
	for _, c := range []struct {
		name string
		m    wt.Module
		want string
	}{
		{"unreachable", start0(unreachable), "guest: trap: unreachable\n"},
		{"division", start0(i32Const, 1, i32Const, 0, i32DivS, drop), "guest: trap: integer divide by zero\n"},
		{"memory", start0(i32Const, 65536, i32Load, uint32(2), uint32(0), drop), "guest: trap: out of bounds memory access\n"},
		{"recursion", recursion, "guest: trap: stack overflow\n"},
		{"no memory left", start0(loop, void, i32Const, 100, memoryGrow, byte(0), i32Const, -1, byte(0x47), brIf, uint32(0), end, unreachable), "guest: trap: unreachable\n"},
	} {
		if st, out := b.run(c.m, ""); st != wasm.TrapStatus || out != c.want {
			t.Errorf("%s: status %d, %q", c.name, st, out)
		}
	}
	if u := b.s.Usage(); u.Memory != 0 {
		t.Errorf("%d bytes are still charged", u.Memory)
	}
}

// An endless loop ends when its process is killed, and its neighbours run meanwhile.
func TestEndlessLoops(t *testing.T) {
	b := newBox(t, newRuntime(t, wasm.Options{}), proc.Options{})
	for name, m := range map[string]wt.Module{
		"loop":        start0(loop, void, br, uint32(0), end),
		"bulk memory": start0(i32Const, 2000, memoryGrow, byte(0), drop, loop, void, i32Const, 0, i32Const, 1, i32Const, 2000<<16, byte(0xfc), byte(11), byte(0), br, uint32(0), end),
	} {
		c := b.compile(m)
		var ps []*proc.Process
		for range 4 { // more than there are processors, perhaps
			p, _ := b.start("", func(p *proc.Process) int { return c.Run(p, wasm.Config{}) })
			ps = append(ps, p)
		}
		time.Sleep(20 * time.Millisecond)
		for _, p := range ps {
			p.Post(proc.SIGTERM)
		}
		for _, p := range ps {
			if st := b.wait(p); st != 128+proc.SIGTERM {
				t.Errorf("%s: status %d", name, st)
			}
		}
	}
}

func TestCompileErrors(t *testing.T) {
	r := newRuntime(t, wasm.Options{Memory: 1 << 20})
	for name, c := range map[string]struct {
		b    []byte
		kind errs.Kind
	}{
		"text":           {[]byte("hello"), errs.Invalid},
		"unknown import": {wt.Module{Imports: []wt.Import{wt.From("env", "f", "", "")}}.Bytes(), errs.Unsupported},
		"wrong type":     {wt.Module{Funcs: []wt.Func{{Results: "i"}}}.Bytes(), errs.Invalid},
		"much memory":    {wt.Module{Pages: 17}.Bytes(), errs.TooLarge},
	} {
		_, err := r.Compile(context.Background(), c.b, wasm.CompileOptions{Name: name})
		if !errs.Is(err, c.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Compile(ctx, wt.Module{Pages: 1}.Bytes(), wasm.CompileOptions{}); err != nil && !errs.Is(err, errs.Canceled) {
		t.Error(err)
	}
}

// Calls of a live instance, nested ones too; proc_exit ends the call and leaves the instance whole.
func TestCalls(t *testing.T) {
	b := newBox(t, newRuntime(t, wasm.Options{}), proc.Options{})
	c := b.compile(wt.Module{
		Imports: []wt.Import{wt.From(wasi, "proc_exit", "i", ""), wt.From("agentrun", "call", "iiii", "i")},
		Pages:   1, Globals: []int32{5},
		Funcs: []wt.Func{
			{Export: "add", Params: "ii", Results: "i", Code: wt.Code(localGet, uint32(0), localGet, uint32(1), i32Add)},
			{Export: "exit", Code: wt.Code(i32Const, 9, globalSet, uint32(0), i32Const, 3, call, uint32(0))},
			{Export: "global", Results: "i", Code: wt.Code(globalGet, uint32(0))},
			{Export: "ask", Results: "i", Code: wt.Code(i32Const, 4, i32Const, 0, i32Const, 0, i32Const, 0, call, uint32(1), drop, i32Const, 0, i32Load, uint32(2), uint32(0))},
			{Export: "trap", Code: wt.Code(unreachable)},
		},
	})
	p, out := b.start("", func(p *proc.Process) int {
		var in *wasm.Instance
		cfg := wasm.Config{Quiesce: true, Call: func(p *proc.Process, op uint32, _ []byte) ([]byte, error) {
			v, err := in.Call(p.Context(), "add", uint64(op), 38)
			return make([]byte, v[0]), err
		}}
		in, err := c.Instantiate(p, cfg)
		if err != nil {
			t.Error(err)
			return 1
		}
		defer in.Close()
		var exit *wasm.ExitError
		if _, err := in.Call(p.Context(), "exit"); !errors.As(err, &exit) || exit.Status != 3 {
			t.Errorf("exit: %v", err)
		}
		for name, want := range map[string]uint64{"global": 5, "ask": 42} {
			if v, err := in.Call(p.Context(), name); err != nil || v[0] != want {
				t.Errorf("%s: %v, %v", name, v, err)
			}
		}
		if _, err := in.Call(p.Context(), "nothing"); !errs.Is(err, errs.NotFound) {
			t.Error(err)
		}
		var trap *wasm.TrapError
		if _, err := in.Call(p.Context(), "trap"); !errors.As(err, &trap) || trap.Reason != "unreachable" {
			t.Error(err)
		}
		if _, err := in.Call(p.Context(), "global"); !errs.Is(err, errs.Invalid) {
			t.Errorf("after a trap: %v", err)
		}
		return 0
	})
	if b.wait(p) != 0 {
		t.Error(out)
	}
}
