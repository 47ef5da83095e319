package wasm

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
	wt "agentrun.dev/wasm/wasmtest"
)

// trampolines is a guest that exports every host function under MODULE.NAME, with two pages of memory.
func trampolines() wt.Module {
	m := wt.Module{Pages: 2}
	for _, h := range hostModules()[1:] {
		for _, f := range h.functions {
			m.Imports = append(m.Imports, wt.From(h.name, f.name, f.params, f.results))
		}
	}
	for i, im := range m.Imports {
		var code []byte
		for k := range im.Params {
			code = append(code, 0x20, byte(k))
		}
		code = append(append(code, 0x10), wt.U32(uint32(i))...)
		m.Funcs = append(m.Funcs, wt.Func{Params: im.Params, Results: im.Results, Code: code, Export: im.Module + "." + im.Name})
	}
	return m
}

// guestBox is a process with the trampolines.
type guestBox struct {
	t  testing.TB
	s  *proc.Sandbox
	ns *vfs.Namespace
	m  *Module
}

type noCommands struct{}

func (noCommands) Lookup(string) (proc.Program, bool) { return nil, false }
func (noCommands) Names() []string                    { return nil }

func newGuestBox(t testing.TB) *guestBox {
	t.Helper()
	r, err := New(Options{Memory: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.Compile(context.Background(), trampolines().Bytes(), CompileOptions{Name: "guest"})
	if err != nil {
		t.Fatal(err)
	}
	ns := vfs.NewNamespace(vfs.Mount{FS: memfs.New(memfs.Options{Mode: 0o777})})
	s, err := proc.New(proc.Options{Namespace: ns, Commands: noCommands{}, Limits: proc.Limits{Files: 64, Processes: 16, SandboxMemory: 64 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	b := &guestBox{t, s, ns, m}
	for _, d := range []string{"/d", "/secret"} {
		ns.Mkdir(context.Background(), vfs.Cred{}, "/", d, 0o777)
	}
	b.put("/file", "content")
	b.put("/d/inner", "inside")
	b.put("/secret/key", "hidden")
	ns.Symlink(context.Background(), vfs.Cred{}, "/", "../../../secret/key", "/d/link")
	ns.Symlink(context.Background(), vfs.Cred{}, "/", "loop", "/loop")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
		if d := s.Defect(); d != "" {
			t.Error(d)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *guestBox) put(name, text string) {
	b.t.Helper()
	f, err := b.ns.Open(context.Background(), vfs.Cred{}, "/", name, syscall.O_WRONLY|syscall.O_CREAT, 0o666)
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		b.t.Fatal(err)
	}
}

// run calls f with an instance, as a process's program.
func (b *guestBox) run(f func(g *guestCalls)) {
	b.t.Helper()
	out := b.s.NewOutput(&bytes.Buffer{}, false)
	p, err := b.s.NewProcess(proc.Root{Args: []string{"guest", "arg"}, Env: []string{"A=1"}, Files: map[int]vfs.File{0: proc.NewInput(strings.NewReader("input"), false), 1: out, 2: out}})
	if err != nil {
		b.t.Fatal(err)
	}
	p.Start(proc.Func(func(p *proc.Process) int {
		in, err := b.m.Instantiate(p, Config{Quiesce: true})
		if err != nil {
			b.t.Error(err)
			return 1
		}
		defer in.Close()
		f(&guestCalls{b.t, in})
		return 0
	}))
	select {
	case <-p.Done():
	case <-time.After(time.Minute):
		b.t.Fatal("it hangs")
	}
}

type guestCalls struct {
	t  testing.TB
	in *Instance
}

// call calls a host function. Texts are put into memory, each as a pointer and a length; the rest are numbers.
func (g *guestCalls) call(name string, args ...any) uint32 {
	g.t.Helper()
	at := uint32(4096)
	var list []uint64
	for _, a := range args {
		switch a := a.(type) {
		case string:
			copy(g.in.Memory(at, uint32(len(a))), a)
			list = append(list, uint64(at), uint64(len(a)))
			at += uint32(len(a)) + 8
		case int:
			list = append(list, uint64(uint32(a)))
		case int64:
			list = append(list, uint64(a))
		}
	}
	if !strings.Contains(name, ".") {
		name = "wasi_snapshot_preview1." + name
	}
	r, err := g.in.Call(context.Background(), name, list...)
	if err != nil {
		g.t.Fatalf("%s%v: %v", name, args, err)
	}
	return uint32(r[0])
}

func (g *guestCalls) u32(at uint32) uint32 { return binary.LittleEndian.Uint32(g.in.Memory(at, 4)) }
func (g *guestCalls) u64(at uint32) uint64 { return binary.LittleEndian.Uint64(g.in.Memory(at, 8)) }

// iovec puts one at 16 that names n bytes at ptr.
func (g *guestCalls) iovec(ptr, n uint32) {
	b := g.in.Memory(16, 8)
	binary.LittleEndian.PutUint32(b, ptr)
	binary.LittleEndian.PutUint32(b[4:], n)
}

// Numbers of WASI's errors.
const (
	eOK, eBadf, eExist, eFault, eInval, eIsdir, eLoop, eNametoolong, eNoent, eNotdir, eNotempty, eNotsup, eNotty, eSrch = 0, 8, 20, 21, 28, 31, 32, 37, 44, 54, 55, 58, 59, 71

	beyond = 2 << 16 // the first address that the guest doesn't have
)

// Each function does what WASI says it does, in the order of a life of a file.
func TestWASI(t *testing.T) {
	b := newGuestBox(t)
	b.run(func(g *guestCalls) {
		type step struct {
			name  string
			args  []any
			want  uint32
			check func() any
			value any
		}
		const all = int64(0x1fffffff)
		a := func(args ...any) []any { return args }
		u32 := func(at uint32) func() any { return func() any { return g.u32(at) } }
		u64 := func(at uint32) func() any { return func() any { return g.u64(at) } }
		text := func(at, n uint32) func() any { return func() any { return string(g.in.Memory(at, n)) } }
		for i, s := range []step{
			{"args_sizes_get", a(0, 4), eOK, u64(0), uint64(10<<32 | 2)},
			{"args_get", a(0, 64), eOK, text(64, 10), "guest\x00arg\x00"},
			{"environ_sizes_get", a(0, 4), eOK, u64(0), uint64(4<<32 | 1)},
			{"environ_get", a(0, 64), eOK, text(64, 4), "A=1\x00"},
			{"clock_res_get", a(0, 0), eOK, nil, nil},
			{"clock_res_get", a(9, 0), eInval, nil, nil},
			{"clock_time_get", a(1, int64(1), 0), eOK, nil, nil},
			{"random_get", a(0, 100), eOK, nil, nil},
			{"sched_yield", a(), eOK, nil, nil},
			{"fd_prestat_get", a(3, 0), eOK, u64(0), uint64(1 << 32)},
			{"fd_prestat_dir_name", a(3, 0, 1), eOK, text(0, 1), "/"},
			{"fd_prestat_get", a(4, 0), eBadf, nil, nil},
			{"path_open", a(3, 0, "file", 0, int64(2), int64(0), 0, 8), eOK, u32(8), uint32(4)},
			{"fd_prestat_get", a(4, 0), eBadf, nil, nil},
			{"fd_filestat_get", a(4, 256), eOK, u64(256 + 32), uint64(7)},
			{"fd_read", a(4, 16, 1, 32), eOK, u32(32), uint32(4)},
			{"fd_tell", a(4, 40), eOK, u64(40), uint64(4)},
			{"fd_seek", a(4, int64(-1), 2, 40), eOK, u64(40), uint64(6)},
			{"fd_seek", a(4, int64(-100), 0, 40), eInval, nil, nil},
			{"fd_pread", a(4, 16, 1, int64(1), 32), eOK, text(1024, 4), "onte"},
			{"fd_write", a(4, 16, 1, 32), eBadf, nil, nil},
			{"fd_close", a(4), eOK, nil, nil},
			{"fd_close", a(4), eBadf, nil, nil},
			{"path_create_directory", a(3, "new"), eOK, nil, nil},
			{"path_create_directory", a(3, "new"), eExist, nil, nil},
			{"path_open", a(3, 0, "new/f", 1|4, int64(64), int64(0), 0, 8), eOK, u32(8), uint32(4)},
			{"path_open", a(3, 0, "new/f", 1|4, int64(64), int64(0), 0, 8), eExist, nil, nil},
			{"fd_write", a(4, 16, 1, 32), eOK, u32(32), uint32(4)},
			{"fd_pwrite", a(4, 16, 1, int64(8), 32), eOK, u32(32), uint32(4)},
			{"fd_filestat_get", a(4, 256), eOK, u64(256 + 32), uint64(12)},
			{"fd_filestat_set_size", a(4, int64(6)), eOK, nil, nil},
			{"fd_allocate", a(4, int64(0), int64(100)), eOK, nil, nil},
			{"fd_filestat_set_times", a(4, int64(0), int64(5e9), 4), eOK, nil, nil},
			{"fd_sync", a(4), eOK, nil, nil},
			{"fd_datasync", a(4), eOK, nil, nil},
			{"fd_advise", a(4, int64(0), int64(0), 0), eOK, nil, nil},
			{"path_filestat_get", a(3, 1, "new/f", 256), eOK, u64(256 + 48), uint64(5e9)},
			{"fd_fdstat_get", a(4, 256), eOK, func() any { return g.in.Memory(256, 1)[0] }, byte(4)},
			{"fd_renumber", a(4, 9), eBadf, nil, nil}, // the new number must be in use
			{"agentrun.dup", a(4, 9, 0, 32), eOK, u32(32), uint32(9)},
			{"fd_renumber", a(4, 9), eOK, nil, nil},
			{"fd_close", a(4), eBadf, nil, nil},
			{"fd_close", a(9), eOK, nil, nil},
			{"path_link", a(3, 0, "new/f", 3, "new/hard"), eOK, nil, nil},
			{"path_symlink", a("f", 3, "new/soft"), eOK, nil, nil},
			{"path_readlink", a(3, "new/soft", 512, 10, 32), eOK, text(512, 1), "f"},
			{"path_rename", a(3, "new/hard", 3, "new/moved"), eOK, nil, nil},
			{"path_filestat_set_times", a(3, 0, "new/moved", int64(1), int64(1), 5), eOK, nil, nil},
			{"path_remove_directory", a(3, "new"), eNotempty, nil, nil},
			{"path_unlink_file", a(3, "new"), eIsdir, nil, nil},
			{"path_unlink_file", a(3, "new/f"), eOK, nil, nil},
			{"path_unlink_file", a(3, "new/moved"), eOK, nil, nil},
			{"path_unlink_file", a(3, "new/soft"), eOK, nil, nil},
			{"path_remove_directory", a(3, "new"), eOK, nil, nil},
			{"path_open", a(3, 1, "new", 0, int64(2), int64(0), 0, 8), eNoent, nil, nil},
			{"path_open", a(3, 1, "loop", 0, int64(2), int64(0), 0, 8), eLoop, nil, nil},
			{"path_open", a(3, 1, "file", 2, int64(2), int64(0), 0, 8), eNotdir, nil, nil},
			{"path_open", a(3, 1, "d", 2, all, int64(0), 0, 8), eOK, u32(8), uint32(4)},
			{"fd_readdir", a(4, 2048, 1024, int64(0), 32), eOK, nil, nil},
			{"fd_read", a(4, 16, 1, 32), eIsdir, nil, nil},
			{"path_open", a(4, 1, "inner", 0, int64(2), int64(0), 0, 8), eOK, u32(8), uint32(5)},
			{"sock_send", a(5, 16, 1, 0, 32), eNotsup, nil, nil},
			{"poll_oneoff", a(512, 1024, 0, 32), eInval, nil, nil},
			{"agentrun.winsize", a(0, 0), eNotty, nil, nil},
			{"agentrun.tcgetattr", a(5, 0), eNotty, nil, nil},
			{"agentrun.isatty", a(0, 0), eOK, u32(0), uint32(0)},
			{"agentrun.rlimit", a(7, 0, 0), eOK, nil, nil},
			{"agentrun.rlimit", a(99, 0, 0), eInval, nil, nil},
			{"agentrun.kill", a(4000, 9), eSrch, nil, nil},
			{"agentrun.getcwd", a(256, 10, 0), eOK, text(256, 1), "/"},
			{"agentrun.getcwd", a(256, 0, 0), 68, nil, nil},
			{"agentrun.chdir", a("d"), eOK, nil, nil},
			{"agentrun.stat", a(-100, "inner", 0, 256), eOK, u64(256 + 40), uint64(6)},
			{"agentrun.exec", a(beyond), eFault, nil, nil},
			{"agentrun.call", a(1, 0, 0, 0), 52, nil, nil},
		} {
			if strings.HasPrefix(s.name, "fd_") {
				g.iovec(1024, 4)
			}
			if got := g.call(s.name, s.args...); got != s.want {
				t.Errorf("step %d: %s%v: errno %d, want %d", i, s.name, s.args, got, s.want)
			} else if s.check != nil && s.check() != s.value {
				t.Errorf("step %d: %s%v: %v, want %v", i, s.name, s.args, s.check(), s.value)
			}
		}
	})
}

// What a guest passes may be anything: pointers beyond its memory, huge lists, descriptors and directories that it doesn't have, ways out of a directory.
func TestHostileArguments(t *testing.T) {
	b := newGuestBox(t)
	b.run(func(g *guestCalls) {
		for _, c := range []struct {
			name string
			args []any
			want uint32
		}{
			{"fd_write", []any{1, beyond, 1, 0}, eFault},
			{"fd_write", []any{1, -1, 1 << 30, 0}, eInval},
			{"fd_write", []any{1, 0, 0x20000000, 0}, eInval}, // eight times that wraps around
			{"fd_read", []any{0, beyond - 4, 1, 0}, eFault},
			{"fd_write", []any{-1, 0, 0, 0}, eBadf},
			{"fd_write", []any{0x7fffffff, 0, 0, 0}, eBadf},
			{"fd_close", []any{-1}, eBadf},
			{"random_get", []any{0, -1}, eFault},
			{"random_get", []any{-1, 2}, eFault},
			{"args_get", []any{beyond, 0}, eFault},
			{"args_get", []any{0, beyond - 2}, eFault},
			{"path_open", []any{3, 0, beyond, 4, 0, int64(2), int64(0), 0, 0}, eFault},
			{"path_open", []any{3, 0, 0, -1, 0, int64(2), int64(0), 0, 0}, eNametoolong},
			{"path_open", []any{3, 0, "", 0, int64(2), int64(0), 0, 0}, eNoent},
			{"path_open", []any{3, 0, "a\x00b", 0, int64(2), int64(0), 0, 0}, eInval},
			{"path_open", []any{77, 0, "file", 0, int64(2), int64(0), 0, 0}, eBadf},
			{"path_open", []any{0, 0, "file", 0, int64(2), int64(0), 0, 0}, eNotdir},
			{"fd_renumber", []any{0, -1}, eBadf},
			{"fd_renumber", []any{55, 1}, eBadf},
			{"fd_seek", []any{0, int64(0), 7, 0}, eInval},
			{"poll_oneoff", []any{0, 0, -1, 0}, eInval},
			{"poll_oneoff", []any{beyond - 10, 0, 1, 0}, eFault},
			{"fd_readdir", []any{3, 0, 100, int64(-1), 0}, eBadf},
			{"agentrun.spawn", []any{beyond - 8, 0}, eFault},
			{"agentrun.dup", []any{0, 1 << 30, 0, 0}, 33},
			{"agentrun.dup2", []any{0, 1 << 30, 0}, eBadf},
			{"agentrun.sigaction", []any{0, 1, 0}, eInval},
			{"agentrun.sigaction", []any{9, 2, 0}, eInval},
			{"agentrun.sigword", []any{beyond}, eFault},
			{"agentrun.setpgid", []any{0, -5}, eInval},
			{"agentrun.reply", []any{0, 0}, eOK},
		} {
			if got := g.call(c.name, c.args...); got != c.want {
				t.Errorf("%s%v: errno %d, want %d", c.name, c.args, got, c.want)
			}
		}
		// A preopened directory is the sandbox's root, and that is all there is: no way leads out of it.
		for _, name := range []string{"../../../../etc/passwd", "/../../etc/passwd", "d/../../../../proc/self/environ", "/proc/self/root/etc/passwd", "d/link/../../../etc/hostname"} {
			if got := g.call("path_open", 3, 1, name, 0, int64(2), int64(0), 0, 8); got != eNoent && got != eNotdir {
				t.Errorf("%s: errno %d", name, got)
			}
		}
		if got := g.call("path_open", 3, 1, "d/link", 0, int64(2), int64(0), 0, 8); got != eOK {
			t.Errorf("a link that climbs above the root and comes back: errno %d", got)
		}
	})
}

// A command that opens too many files or asks for too much memory is refused, and nothing is left of it.
func TestGuestLimits(t *testing.T) {
	b := newGuestBox(t)
	b.run(func(g *guestCalls) {
		var got uint32
		for range 100 {
			if got = g.call("path_open", 3, 1, "file", 0, int64(2), int64(0), 0, 8); got != eOK {
				break
			}
		}
		if got != 33 {
			t.Errorf("opening without end: errno %d", got)
		}
		var exit *ExitError
		if _, err := g.in.Call(context.Background(), "wasi_snapshot_preview1.proc_exit", 300); !errors.As(err, &exit) || exit.Status != 300&0xff {
			t.Errorf("proc_exit: %v", err)
		}
	})
	if u := b.s.Usage(); u.Memory != 0 {
		t.Errorf("%d bytes are still charged", u.Memory)
	}
}

// FuzzHost calls host functions with any arguments and any memory. Nothing may fail but the call itself.
func FuzzHost(f *testing.F) {
	b := newGuestBox(f)
	m := trampolines()
	for i := range m.Imports {
		f.Add(uint16(i), uint64(3), uint64(0), uint64(4096), uint64(4), uint64(0), uint64(16), uint64(8), uint64(2), uint64(8), []byte("file\x00\x00\x00\x00\x10\x00\x00\x00\x04"))
	}
	f.Fuzz(func(t *testing.T, which uint16, a0, a1, a2, a3, a4, a5, a6, a7, a8 uint64, mem []byte) {
		im := m.Imports[int(which)%len(m.Imports)]
		switch im.Name {
		case "proc_raise", "kill", "itimer", "exec": // these may end the process, and are tested by themselves
			return
		}
		b.t = t
		b.run(func(g *guestCalls) {
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			for _, at := range []uint32{0, 4096, beyond - 4096} {
				copy(g.in.Memory(at, 4096), mem)
			}
			stop := context.AfterFunc(ctx, func() { g.in.Process().Post(proc.SIGTERM) })
			defer stop()
			args := []uint64{a0, a1, a2, a3, a4, a5, a6, a7, a8}[:len(im.Params)]
			for i, c := range im.Params {
				if c == 'i' {
					args[i] = uint64(uint32(args[i]))
				}
			}
			g.in.Call(ctx, im.Module+"."+im.Name, args...)
		})
	})
}
