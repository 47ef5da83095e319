package userspace

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentrun.dev/engine"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
	wt "agentrun.dev/wasm/wasmtest"
)

const wasi = "wasi_snapshot_preview1"

// Instructions.
const (
	loop, br, end, call, i32Const, memoryGrow, brIf, i32Ne, unreachable = byte(3), byte(0x0c), byte(0x0b), byte(0x10), byte(0x41), byte(0x40), byte(0x0d), byte(0x47), byte(0)

	drop, void = byte(0x1a), byte(0x40)
)

// guest is a command of one function, which may exit and write.
func guest(code ...any) string {
	return string(wt.Module{
		Imports: []wt.Import{wt.From(wasi, "proc_exit", "i", ""), wt.From(wasi, "fd_write", "iiii", "i")},
		Funcs:   []wt.Func{{Export: "_start", Code: wt.Code(code...)}}, Pages: 1,
		Data: map[uint32]string{8: "\x10\x00\x00\x00\x06\x00\x00\x00hello\n"}, // an iovec at 8 names the text at 16
	}.Bytes())
}

// withPrograms returns a sandbox in whose workspace there are files that may be executed.
func withPrograms(t *testing.T, files map[string]string) *Sandbox {
	t.Helper()
	g := NewGuests(GuestOptions{CacheDir: t.TempDir()})
	s, err := New(context.Background(), Options{Commands: g, Volumes: []engine.Volume{{Path: "/task", FS: memfs.New(memfs.Options{Mode: 0o777})}}, Dir: "/task"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
		if d := s.Defect(); d != "" {
			t.Error(d)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	for name, text := range files {
		f, err := s.Namespace().Open(context.Background(), vfs.Cred{UID: UID, GID: GID}, "/task", name, syscall.O_WRONLY|syscall.O_CREAT, 0o755)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte(text), 0); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	return s
}

// A file that is a WebAssembly module runs as any program does.
func TestModulesAsPrograms(t *testing.T) {
	s := withPrograms(t, map[string]string{
		"hello":     guest(i32Const, 1, i32Const, 8, i32Const, 1, i32Const, 0, call, uint32(1), drop, i32Const, 7, call, uint32(0)),
		"loop":      guest(loop, void, br, uint32(0), end),
		"hog":       guest(loop, void, i32Const, 100, memoryGrow, byte(0), i32Const, -1, i32Ne, brIf, uint32(0), end, unreachable),
		"truncated": guest(unreachable)[:20],
		"garbage":   "\x00asm\x01\x00\x00\x00garbage",
		"version":   "\x00asm\x02\x00\x00\x00",
		"component": "\x00asm\x0d\x00\x01\x00",
		"env":       string(wt.Module{Imports: []wt.Import{wt.From("env", "f", "", "")}}.Bytes()),
		"library":   string(wt.Module{Funcs: []wt.Func{{Export: "f"}}}.Bytes()),
		"neighbour": "#!/bin/sh\necho here\n",
	})
	for _, c := range []struct{ script, out, err string }{
		{`./hello; echo $?`, "hello\n7\n", ""},
		{`PATH=/task:$PATH; hello | tr a-z A-Z; hello && echo no; for i in 1 2 3; do hello; done >x; wc -l <x`, "HELLO\nhello\n3\n", ""},
		{`mkdir d; cp hello d/; cd d; env ./hello; ln -s ../hello l; ./l; chmod 111 hello; ./hello`, "hello\nhello\nhello\n", ""},
		{`chmod 644 hello; ./hello; echo $?; chmod 755 hello`, "126\n", "bash: line 1: ./hello: Permission denied\n"},
		{`timeout 0.2 ./loop; echo $?; ./neighbour`, "124\nhere\n", ""},
		{`./loop & sleep 0.05; kill $!; wait $!; echo $?`, "143\n", ""},
		{`./hog; echo $?`, "134\n", "./hog: trap: unreachable\n"},
		{`./version; echo $?`, "126\n", "bash: line 1: ./version: cannot execute binary file: Exec format error\n"},
		{`./component; echo $?`, "126\n", "./component: cannot execute binary file: it is a component; modules of WASI preview 1 can be run\n"},
		{`./env; echo $?`, "126\n", "./env: cannot execute binary file: nothing here offers env.f\n"},
		{`./library; echo $?`, "126\n", "./library: not a command: exports no _start\n"},
		{`./truncated; echo $?`, "126\n", "cannot execute binary file"},
		{`./garbage; echo $?`, "126\n", "cannot execute binary file"},
		{`truncate -s 65M big; printf '\0asm\1\0\0\0' | dd of=big conv=notrunc status=none; chmod +x big; ./big; echo $?`, "126\n", "./big: cannot execute binary file: 68157440 bytes are too many: 67108864 are allowed\n"},
	} {
		out, errOut, _, err := run(t, s, bash(c.script))
		if err != nil || out != c.out || errOut != c.err && (!strings.Contains(errOut, c.err) || c.err == "" || strings.HasSuffix(c.err, "\n")) {
			t.Errorf("%s: %q, %q, %v", c.script, out, errOut, err)
		}
	}
	if stats, _ := s.Stats(context.Background()); stats.Memory != 0 {
		t.Errorf("%d bytes are still charged", stats.Memory)
	}
}
