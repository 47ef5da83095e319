package jail_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/jail"
	"agentrun.dev/vmm/vmmtest"
)

// groups are control groups in a hierarchy that is mounted for the test.
func groups(t *testing.T) (*jail.Groups, string) {
	t.Helper()
	at := t.TempDir()
	if err := unix.Mount("none", at, "cgroup2", 0, ""); err != nil {
		t.Skipf("NOT TESTED HERE: cgroup v2 can't be mounted: %v; the bench runs it: go test ./test/vm", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(at, unix.MNT_DETACH)) })
	for _, c := range []string{"+memory", "+pids", "+cpu"} {
		if err := os.WriteFile(filepath.Join(at, "cgroup.subtree_control"), []byte(c), 0); err != nil {
			t.Skipf("NOT TESTED HERE: cgroup v2 has no %s: %v; the bench runs it: go test ./test/vm", c, err)
		}
	}
	dir := filepath.Join(at, "jail-test")
	g, err := jail.OpenGroups(dir)
	must(t, err)
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil { // nothing is left in it
			t.Error(err)
		}
	})
	return g, dir
}

// A process is in a group with limits, which goes with it; one that reaches its memory's is killed, and the error says so.
func TestGroups(t *testing.T) {
	vmmtest.Host(t)
	g, dir := groups(t)
	read := func(name string) string {
		files, err := filepath.Glob(filepath.Join(dir, "vm-*", name))
		if err != nil || len(files) != 1 {
			t.Fatalf("%s: %v, %v", name, files, err)
		}
		b, err := os.ReadFile(files[0])
		must(t, err)
		return strings.TrimSpace(string(b))
	}
	o := options(nil, 0)
	o.Groups = g
	p := start(t, o)
	for name, want := range map[string]string{"memory.max": "301989888", "pids.max": "264", "cpu.max": "150000 100000"} {
		if got := read(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if read("cgroup.procs") == "" {
		t.Error("nobody is in the group")
	}
	must(t, p.Boot(limit(t), kernel(t), nil, ""))
	s, err := p.Capture(limit(t))
	must(t, err)
	if n, err := strconv.Atoi(read("memory.max")); err != nil || n < 301989888 {
		t.Errorf("after a capture memory.max is %d, %v", n, err)
	}
	must(t, s.Close())
	must(t, p.Close())
	if left, err := filepath.Glob(filepath.Join(dir, "vm-*")); len(left) != 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}
	stale := filepath.Join(dir, "vm-4194300-x") // no process has that number, but by chance
	must(t, os.Mkdir(stale, 0o755))
	if _, err := jail.OpenGroups(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(stale); err == nil && unix.Kill(4194300, 0) == unix.ESRCH {
		t.Error("the group of a process that is gone stays")
	}

	o.Limits.Memory = 24 * mib
	p = start(t, o)
	f, err := os.CreateTemp(t.TempDir(), "large")
	must(t, err)
	defer f.Close()
	must(t, f.Truncate(512*mib)) // is read into memory
	err = p.Boot(limit(t), f, nil, "")
	if !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), "limit of its memory") {
		t.Errorf("a process that wants too much: %v", err)
	}
	must(t, p.Close())

	// A group of all of them without memory is what a host without is.
	o.Limits.Memory = 0
	p = start(t, o)
	must(t, os.WriteFile(filepath.Join(dir, "memory.max"), []byte("25165824"), 0))
	err = p.Boot(limit(t), f, nil, "")
	if !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), "had run out of memory") {
		t.Errorf("a process on a host without memory: %v", err)
	}
	must(t, p.Close())
}

// A process whose own group is in the way goes into another, and finds its way back there.
func TestOwnGroups(t *testing.T) {
	_, dir := groups(t)
	root := filepath.Dir(dir)
	own := filepath.Join(root, "own")
	must(t, os.Mkdir(own, 0o755))
	enter := func(group string) {
		t.Helper()
		must(t, os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte("0"), 0))
	}
	enter(own)
	t.Cleanup(func() {
		enter(root)
		for _, d := range []string{"agentrun-vms", "agentrun-host", "."} {
			must(t, os.Remove(filepath.Join(own, d)))
		}
	})
	for range 2 {
		g, err := jail.OwnGroups()
		must(t, err)
		if !strings.HasSuffix(g.String(), "/own/agentrun-vms (memory: true, processes: true, processors: true)") {
			t.Error(g)
		}
		b, err := os.ReadFile("/proc/self/cgroup")
		must(t, err)
		if !strings.Contains(string(b), "0::/own/agentrun-host\n") {
			t.Errorf("this process is in %s", b)
		}
	}
	if f := jail.ExamineGroups(); !f.OK {
		t.Errorf("%+v", f)
	}
}

// A place that isn't one of control groups is said to be.
func TestNoGroups(t *testing.T) {
	if g, err := jail.OpenGroups(filepath.Join(t.TempDir(), "groups")); !errs.Is(err, errs.Unavailable) {
		t.Errorf("%v, %v", g, err)
	}
	if g, err := jail.OwnGroups(); err != nil && !errs.Is(err, errs.Unavailable) {
		t.Errorf("%v, %v", g, err)
	}
}
