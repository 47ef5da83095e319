package jail_test

import (
	"os"
	"path/filepath"
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
	for _, c := range []string{"+memory", "+pids"} {
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
	for name, want := range map[string]string{"memory.max": "536870912", "pids.max": "264"} {
		if got := read(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if read("cgroup.procs") == "" {
		t.Error("nobody is in the group")
	}
	must(t, p.Boot(limit(t), kernel(t), nil, ""))
	must(t, p.Close())

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
