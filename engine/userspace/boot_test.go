package userspace

import (
	"bytes"
	"context"
	"testing"

	"agentrun.dev/engine"
	"agentrun.dev/vfs/memfs"
)

// A fork, and a sandbox that slept, are of the same boot as what they were: its time and its id. Another sandbox is of another.
func TestBoot(t *testing.T) {
	ctx := context.Background()
	g := NewGuests(GuestOptions{CacheDir: t.TempDir()})
	defer g.Close()
	e := NewEngine(EngineOptions{Commands: g})
	fs := memfs.New(memfs.Options{Mode: 0o777})
	volumes := []engine.Volume{{Path: "/task", FS: fs}}
	look := func(in engine.Instance) string {
		t.Helper()
		text, _, status, err := run(t, in.(*Sandbox), bash("cat /proc/sys/kernel/random/boot_id; grep btime /proc/stat"))
		if status != 0 || err != nil {
			t.Fatalf("%q, %d, %v", text, status, err)
		}
		return text
	}
	boot := func(id string) engine.Instance {
		in, err := e.Boot(ctx, engine.Spec{Identity: engine.Identity{ID: id}, Volumes: volumes, Dir: "/task"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = in.Stop(ctx) })
		return in
	}
	one := boot("one")
	want := look(one)
	if other := look(boot("other")); other == want {
		t.Errorf("another sandbox: %q", other)
	}
	f, err := one.(*Sandbox).Freeze(ctx, engine.FreezeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	im, err := f.Capture(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var saved bytes.Buffer
	if err := im.Save(ctx, &saved, volumes); err != nil {
		t.Fatal(err)
	}
	f.Thaw()
	loaded, err := e.Load(ctx, &saved)
	if err != nil {
		t.Fatal(err)
	}
	for id, im := range map[string]engine.Image{"fork": im, "awake": loaded} {
		in, err := im.Start(ctx, engine.Identity{ID: id}, volumes)
		if err != nil {
			t.Fatal(err)
		}
		if got := look(in); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
		if err := in.Stop(ctx); err != nil {
			t.Error(err)
		}
		im.Close()
	}
}
