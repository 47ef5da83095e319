package jail

import (
	"path/filepath"
	"testing"

	"agentrun.dev/errs"
)

func TestMapped(t *testing.T) {
	for _, c := range []struct {
		text         string
		first, count int
		want         bool
	}{
		{"         0          0 4294967295\n", FirstUser, ManyUsers, true},
		{"         0       1000          1\n         1     100000      65536\n", FirstUser, 1, false},
		{"         0       1000          1\n         1     100000      65536\n", 30000, 100, true},
		{"         0       1000          1\n         1     100000      65536\n", 65536, 2, false},
		{"nonsense\n", 1, 1, false}, {"", 1, 1, false},
	} {
		if got := mapped(c.text, c.first, c.count); got != c.want {
			t.Errorf("%d and %d more in %q: %t", c.first, c.count, c.text, got)
		}
	}
}

// Users are given to one at a time, by all processes that use the same file, and come back as late as may be.
func TestUsers(t *testing.T) {
	if err := canBe(FirstUser, 4); err != nil {
		t.Skipf("NOT TESTED HERE: %v; CI runs this as root", err)
	}
	lock := filepath.Join(t.TempDir(), "users")
	open := func() *Users {
		u, err := newUsers(FirstUser, 4, lock)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { u.Close() })
		return u
	}
	a, b := open(), open()
	take := func(u *Users) int {
		t.Helper()
		id, err := u.take()
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	seen := make(map[int]bool)
	for _, u := range []*Users{a, b, a, b} {
		id := take(u)
		if seen[id] || id < FirstUser || id >= FirstUser+4 {
			t.Errorf("%d was given twice, or isn't one", id)
		}
		seen[id] = true
	}
	for _, u := range []*Users{a, b} {
		if id, err := u.take(); !errs.Is(err, errs.Limit) {
			t.Errorf("one more: %d, %v", id, err)
		}
	}
	for id := range a.used {
		a.release(id)
		if got := take(b); got != id {
			t.Errorf("%d was free, %d was given", id, got)
		}
		break
	}
	for _, bad := range [][2]int{{0, 1}, {1, 0}, {-5, 3}, {1<<31 - 1, 2}} {
		if _, err := newUsers(bad[0], bad[1], lock); !errs.Is(err, errs.Invalid) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
