package synthfs_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"syscall"
	"testing"

	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
	"agentrun.dev/vfs/synthfs"
)

type who struct{}

// A tree as /proc has it: fixed files, files that depend on who asks, directories that come and go.
func TestTree(t *testing.T) {
	living := map[string]bool{"1": true, "7": true}
	root := synthfs.Dir(map[string]*synthfs.Node{
		"version": synthfs.Text("one\n"),
		"self": synthfs.Link(func(ctx context.Context) (string, error) {
			return strconv.Itoa(ctx.Value(who{}).(int)), nil
		}),
	})
	root.List = func(context.Context) ([]string, error) { return []string{"1", "7", "gone"}, nil }
	root.Child = func(_ context.Context, name string) (*synthfs.Node, error) {
		if !living[name] {
			return nil, nil
		}
		return synthfs.Dir(map[string]*synthfs.Node{"comm": synthfs.Text("process " + name)}), nil
	}
	ns := vfs.NewNamespace(vfs.Mount{FS: memfs.New(memfs.Options{})})
	ctx := context.WithValue(context.Background(), who{}, 7)
	if err := ns.Mount(ctx, vfs.Mount{Path: "/proc", FS: synthfs.New(root)}); err != nil {
		t.Fatal(err)
	}
	list, err := ns.ReadDir(ctx, vfs.Cred{}, "", "/proc")
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, e := range list {
		a, err := ns.Lstat(ctx, vfs.Cred{}, "/proc", e.Name)
		if err != nil || a.Ino != e.Ino || a.Mode&vfs.ModeType != e.Mode {
			t.Errorf("%s: the listing and lstat differ: %v, %v, %v", e.Name, e, a, err)
		}
		got += e.Name + " "
	}
	if got != "self version 1 7 " {
		t.Errorf("/proc holds %q", got)
	}
	f, err := ns.Open(ctx, vfs.Cred{}, "", "/proc/self/comm", vfs.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(f); string(b) != "process 7" || err != nil {
		t.Errorf("/proc/self/comm reads %q, %v", b, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	delete(living, "7")
	if _, err := ns.Stat(ctx, vfs.Cred{}, "", "/proc/self/comm"); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("a process that ended: %v", err)
	}
	for name, err := range map[string]error{
		"mkdir":  ns.Mkdir(ctx, vfs.Cred{}, "", "/proc/x", 0o755),
		"unlink": ns.Unlink(ctx, vfs.Cred{}, "", "/proc/version"),
		"rename": ns.Rename(ctx, vfs.Cred{}, "", "/proc/version", "/proc/x", 0),
	} {
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ns.Open(ctx, vfs.Cred{}, "", "/proc/version", vfs.O_WRONLY, 0); !errors.Is(err, syscall.EACCES) {
		t.Errorf("open for writing: %v", err)
	}
}
