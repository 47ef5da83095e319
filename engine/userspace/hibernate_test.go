package userspace

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentrun.dev/engine"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
	"agentrun.dev/wasm/guests"
)

func file(t *testing.T, s *Sandbox, name, text string) string {
	t.Helper()
	cred := vfs.Cred{UID: UID, GID: GID}
	if text != "" {
		f, err := s.Namespace().Open(context.Background(), cred, "/task", name, syscall.O_WRONLY|syscall.O_CREAT, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		f.Write([]byte(text))
		return text
	}
	f, err := s.Namespace().Open(context.Background(), cred, "/task", name, syscall.O_RDONLY, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, 4096)
	n, _ := f.Read(b)
	return string(b[:n])
}

// A pipeline of a shell and a Python script in the middle of a loop is saved, and goes on in another engine.
func TestHibernatePython(t *testing.T) {
	if !guests.Has("python.wasm") {
		t.Skip("NO GUESTS HERE: python.wasm is missing; 'make guests' builds it, and 'make test' does so first")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	fs := memfs.New(memfs.Options{Mode: 0o777})
	boot := func() (*Engine, *Guests) {
		g := NewGuests(GuestOptions{CacheDir: filepath.Join(cache, "agentrun-test", "wasm")})
		return NewEngine(EngineOptions{Commands: g}), g
	}
	e, g := boot()
	defer g.Close()
	in, err := e.Boot(ctx, engine.Spec{Identity: engine.Identity{ID: "one"}, Volumes: []engine.Volume{{Path: "/task", FS: fs}}, Dir: "/task"})
	if err != nil {
		t.Fatal(err)
	}
	s := in.(*Sandbox)
	file(t, s, "script.py", "import os, time, itertools\nfor n in itertools.count():\n    if n == 1: open('ready', 'w').write('yes')\n"+
		"    if os.path.exists('go'): break\n    time.sleep(0.001)\nprint('counted', n > 0)\n")
	if _, err := s.Exec(ctx, engine.Cmd{Args: []string{"bash", "-c", "x=5; python3 script.py | { read a; echo \"$a $x\" >out; }"}, Keep: true}); err != nil {
		t.Fatal(err)
	}
	until := func(s *Sandbox, name string) string {
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
			if text := file(t, s, name, ""); text != "" {
				return text
			}
		}
		t.Fatalf("no %s", name)
		return ""
	}
	until(s, "ready")
	f, err := s.Freeze(ctx, engine.FreezeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	copied := fs.Clone()
	im, err := f.Capture(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var saved bytes.Buffer
	if err := im.Save(ctx, &saved, []engine.Volume{{Path: "/task", FS: copied}}); err != nil {
		t.Fatal(err)
	}
	im.Close()
	f.Thaw()
	if err := s.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	e2, g2 := boot()
	defer g2.Close()
	again, err := e2.Load(ctx, &saved)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	in2, err := again.Start(ctx, engine.Identity{ID: "two"}, []engine.Volume{{Path: "/task", FS: copied}})
	if err != nil {
		t.Fatal(err)
	}
	s2 := in2.(*Sandbox)
	file(t, s2, "go", "now")
	if out := until(s2, "out"); strings.TrimSpace(out) != "counted True 5" {
		t.Errorf("%q", out)
	}
	if err := s2.Stop(ctx); err != nil {
		t.Error(err)
	}
}
