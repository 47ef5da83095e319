package pebble

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// TestFullDisk fills a real file system, by the store itself and by a stranger, and sees it recover.
func TestFullDisk(t *testing.T) {
	root := t.TempDir()
	if err := unix.Mount("tmpfs", root, "tmpfs", 0, "size=32m"); err != nil {
		t.Skipf("SKIPPED: a full disk can't be made here: mounting a tmpfs needs root: %v", err)
	}
	defer unix.Unmount(root, unix.MNT_DETACH)
	o := smallTables
	o.FreeFloor, o.Ballast = 2<<20, 2<<20
	s, err := Open(root+"/db", o)
	if err != nil {
		t.Fatal(err)
	}
	model := map[string]bool{}
	value := make([]byte, 64<<10)
	for i := range value {
		value[i] = byte(i * i >> 7 * i)
	}
	put := func(i int, reclaim bool) error {
		key := fmt.Sprintf("%06d", i)
		err := s.Commit(bg, &kv.Batch{Puts: []kv.Pair{{Key: []byte(key), Value: fmt.Append(nil, i, string(value))}}, Reclaim: reclaim})
		if err == nil {
			model[key] = true
		}
		return err
	}
	i := 0
	for ; err == nil; i++ {
		if i == 20 {
			// A stranger takes most of what is left.
			if err := os.WriteFile(root+"/stranger", make([]byte, 18<<20), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err = put(i, false); i > 10_000 {
			t.Fatal("the disk never becomes full")
		}
	}
	if !errs.Is(err, errs.NoSpace) {
		t.Fatal(err)
	}
	// The stranger takes the very last byte; the ballast is what remains.
	f, err := os.Create(root + "/last")
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 64<<10))
	}
	f.Close()
	for k := range 5 {
		if err := put(100_000+k, true); err != nil {
			t.Fatalf("a batch that reclaims, on a full disk: %v", err)
		}
	}
	if err := put(i, false); !errs.Is(err, errs.NoSpace) {
		t.Fatalf("on a full disk: %v", err)
	}
	if err := os.Remove(root + "/stranger"); err != nil {
		t.Fatal(err)
	}
	if err := put(i, false); err != nil {
		t.Fatalf("with room again: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(root+"/db", o); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n := 0
	err = s.Scan(bg, kv.Range{}, func(k, v []byte) error {
		if n++; !model[string(k)] || len(v) < len(value) {
			return fmt.Errorf("%s with %d bytes is there", k, len(v))
		}
		return nil
	})
	if err != nil || n != len(model) {
		t.Errorf("%d of %d keys, %v", n, len(model), err)
	}
}
