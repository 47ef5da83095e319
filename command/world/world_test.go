package world

import (
	"bytes"
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"agentrun.dev/command/services"
	"agentrun.dev/command/tool"
	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

// fake is a Control with a memory and no world.
type fake struct {
	snaps  []services.Snapshot
	forked services.ForkOptions
	merge  services.MergeOptions
	self   *services.Forked
	paths  []string
	from   [2]string
}

var at = time.Date(2026, 5, 28, 12, 0, 0, 0, time.UTC)

func (f *fake) SnapshotTake(_ context.Context, name string) (services.Snapshot, error) {
	if name == "" {
		name = "s1"
	}
	for _, s := range f.snaps {
		if s.Name == name {
			return s, errs.New(errs.Exists, "snapshot", name, nil)
		}
	}
	s := services.Snapshot{Name: name, Version: 7, Created: at, Bytes: 2048, Files: 3}
	f.snaps = append(f.snaps, s)
	return s, nil
}

func (f *fake) Snapshots(context.Context) ([]services.Snapshot, error) { return f.snaps, nil }

func (f *fake) SnapshotRestore(_ context.Context, name string) (services.Snapshot, error) {
	for _, s := range f.snaps {
		if s.Name == name {
			return services.Snapshot{Name: "before"}, nil
		}
	}
	return services.Snapshot{}, errs.New(errs.NotFound, "restore", name, nil).WithHint("see snapshot list")
}

func (f *fake) SnapshotDelete(_ context.Context, name string) error { return nil }

func (f *fake) Diff(_ context.Context, a, b string, paths []string) iter.Seq2[services.Change, error] {
	f.from, f.paths = [2]string{a, b}, paths
	return func(yield func(services.Change, error) bool) {
		for _, c := range []services.Change{
			{Path: "/workspace/new", Kind: services.Added, NewSize: 12},
			{Path: "/workspace/evil\x1b[2J", Kind: services.Modified, OldSize: 1, NewSize: 2},
			{Path: "/workspace/b", From: "/workspace/a", Kind: services.Renamed, OldSize: 4, NewSize: 4},
			{Path: "/workspace/old", Kind: services.Deleted, OldSize: 2048},
		} {
			if !yield(c, nil) {
				return
			}
		}
	}
}

func (f *fake) Fork(_ context.Context, o services.ForkOptions) ([]services.Forked, error) {
	f.forked = o
	var list []services.Forked
	for i := range o.Count {
		list = append(list, services.Forked{Index: i + 1, ID: "id-" + string(rune('1'+i)), Parent: "p"})
	}
	return list, nil
}

func (f *fake) Self(context.Context) (*services.Forked, error) { return f.self, nil }

func (f *fake) Merge(_ context.Context, from string, o services.MergeOptions) (services.Merged, error) {
	f.merge = o
	m := services.Merged{From: from, Added: 1, Modified: 2, Applied: o.Strategy != services.Fail}
	if from == "clash" {
		m.Conflicts = []services.Conflict{{Path: "/workspace/f", Ours: services.Modified, Theirs: services.Deleted}}
	}
	return m, nil
}

type commands map[string]proc.Program

func (c commands) Lookup(name string) (proc.Program, bool) { p, ok := c[name]; return p, ok }
func (c commands) Names() []string                         { return nil }

var all = commands{"snapshot": tool.Func(Snapshot), "fork": tool.Func(Fork), "merge": tool.Func(Merge)}

func start(t *testing.T, c services.Control, prog proc.Program, args ...string) (string, string, int) {
	t.Helper()
	s, err := proc.New(proc.Options{Namespace: vfs.NewNamespace(vfs.Mount{FS: memfs.New(memfs.Options{})}), Commands: all,
		Services: &services.Services{Control: c}})
	if err != nil {
		t.Fatal(err)
	}
	var out, errout bytes.Buffer
	p, err := s.NewProcess(proc.Root{Args: args, Env: []string{"TZ=UTC0"},
		Files: map[int]vfs.File{1: s.NewOutput(&out, false), 2: s.NewOutput(&errout, false)}})
	if err != nil {
		t.Fatal(err)
	}
	p.Start(prog)
	<-p.Done()
	if d := s.Defect(); d != "" {
		t.Fatal(d)
	}
	return out.String(), errout.String(), p.Status()
}

func TestCommands(t *testing.T) {
	for _, c := range []struct {
		line, out, err string // err must be contained
		status         int
	}{
		{"snapshot take", "s1\n", "", 0},
		{"snapshot take here", "", "snapshot: snapshot: here: exists", 3},
		{"snapshot take -q other", "", "", 0},
		{"snapshot take --json x", `{"name":"x","version":7,"created":"2026-05-28T12:00:00Z","bytes":2048,"files":3}` + "\n", "", 0},
		{"snapshot list", "NAME  TAKEN                  SIZE  FILES\nhere  2026-05-28 12:00:00    2.0K  3\n", "", 0},
		{"snapshot restore here", "restored here; what was here is snapshot before\n", "", 0},
		{"snapshot restore nope", "", "hint: see snapshot list", 4},
		{"snapshot restore", "", "missing the name", 2},
		{"snapshot bogus", "", "unknown command", 2},
		{"snapshot", "", "missing command", 2},
		{"snapshot take a b", "", "extra operand", 2},
		{"snapshot delete a b", "deleted a\ndeleted b\n", "", 0},
		{"snapshot diff", "A /workspace/new (12)\nM \"/workspace/evil\\033[2J\" (1 -> 2)\nR /workspace/a -> /workspace/b (4 -> 4)\nD /workspace/old (2.0K)\n", "", 0},
		{"snapshot diff --name-only --exit-code x", "/workspace/new\n\"/workspace/evil\\033[2J\"\n/workspace/b\n/workspace/old\n", "", 1},
		{"fork", "id-1\n", "", 0},
		{"fork -n 2 --json", `{"index":1,"id":"id-1","parent":"p"}` + "\n" + `{"index":2,"id":"id-2","parent":"p"}` + "\n", "", 0},
		{"fork -n 0", "", "invalid count", 2},
		{"fork --lease=x", "", "invalid duration", 2},
		{"fork --self", "", "isn't a fork", 1},
		{"merge a", "merged a: 1 added, 2 modified, 0 deleted\n", "", 0},
		{"merge -n a", "would merge a: 1 added, 2 modified, 0 deleted\n", "", 0},
		{"merge clash", "", "conflict: /workspace/f (ours modified, theirs deleted)\nmerge: 1 conflicts; nothing was changed", 3},
		{"merge --conflicts=ours clash", "conflict: /workspace/f (ours modified, theirs deleted): kept ours\nmerged clash: 1 added, 2 modified, 0 deleted\n", "", 0},
		{"merge --conflicts=fail --json clash", `{"from":"clash","applied":false,"added":1,"modified":2,"deleted":0,"conflicts":[{"path":"/workspace/f","ours":"M","theirs":"D"}]}` + "\n", "", 3},
		{"merge", "", "missing the name of a fork", 2},
	} {
		args := strings.Fields(c.line)
		f := &fake{snaps: []services.Snapshot{{Name: "here", Created: at, Bytes: 2048, Files: 3}}}
		out, errout, status := start(t, f, all[args[0]], args...)
		if out != c.out || !strings.Contains(errout, c.err) || c.err == "" && errout != "" || status != c.status {
			t.Errorf("%s: %q %q %d, want %q %q %d", c.line, out, errout, status, c.out, c.err, c.status)
		}
	}
}

func TestNames(t *testing.T) {
	f := &fake{}
	start(t, f, all["snapshot"], "snapshot", "diff", "a", "b", "--", "x", "/y/../z")
	if f.from != [2]string{"a", "b"} || len(f.paths) != 2 || f.paths[0] != "/x" || f.paths[1] != "/z" {
		t.Errorf("diff asks for %v %v", f.from, f.paths)
	}
	start(t, f, all["fork"], "fork", "--count=3", "--name", "try", "--lease", "90", "--kill")
	if f.forked != (services.ForkOptions{Count: 3, Name: "try", Lease: 90 * time.Second, Kill: true}) {
		t.Errorf("fork asks for %+v", f.forked)
	}
}

func TestNoControl(t *testing.T) {
	for _, line := range []string{"snapshot list", "fork", "merge x"} {
		args := strings.Fields(line)
		out, errout, status := start(t, nil, all[args[0]], args...)
		if out != "" || status != denied || !strings.Contains(errout, "hint: ") {
			t.Errorf("%s: %q %q %d", line, out, errout, status)
		}
	}
}

func TestHelp(t *testing.T) {
	for name, words := range map[string][]string{"snapshot": {"take", "restore NAME", "Examples:", "diff"}, "fork": {"child 1", "-n, --count"}, "merge": {"theirs"}} {
		out, errout, status := start(t, nil, all[name], name, "--help")
		for _, w := range words {
			if !strings.Contains(out, w) {
				t.Errorf("%s --help lacks %q", name, w)
			}
		}
		for _, line := range strings.Split(out, "\n") {
			if len([]rune(line)) > 88 {
				t.Errorf("%s --help: a line of %d characters: %s", name, len(line), line)
			}
		}
		if status != 0 || errout != "" {
			t.Errorf("%s --help: %d %q", name, status, errout)
		}
	}
}

// TestForkGoesOn captures a fork under way, saves it, and lets it go on as a child.
func TestForkGoesOn(t *testing.T) {
	st, err := (&forking{Options: services.ForkOptions{Count: 2}}).Capture()
	if err != nil {
		t.Fatal(err)
	}
	kind, data, err := st.(proc.Saver).Save()
	if err != nil || kind != ForkKind {
		t.Fatal(kind, err)
	}
	if st, err = LoadFork(data); err != nil {
		t.Fatal(err)
	}
	prog, err := st.Resume(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{self: &services.Forked{Index: 2, ID: "id-2", Parent: "p"}}
	out, errout, status := start(t, f, prog, "fork")
	if out != "child 2\n" || errout != "" || status != 0 {
		t.Errorf("%q %q %d", out, errout, status)
	}
	if f.forked.Count != 0 {
		t.Error("the child forked again")
	}
	if _, err := LoadFork([]byte("{")); !errs.Is(err, errs.Corrupt) {
		t.Errorf("LoadFork of garbage: %v", err)
	}
}
