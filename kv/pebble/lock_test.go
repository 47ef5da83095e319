package pebble

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"agentrun.dev/errs"
)

// helperEnv makes the test binary open a store and report, as a second process.
const helperEnv = "KV_PEBBLE_TEST_OPEN"

func TestMain(m *testing.M) {
	dir := os.Getenv(helperEnv)
	if dir == "" {
		os.Exit(m.Run())
	}
	s, err := Open(dir, Options{})
	if err != nil {
		fmt.Println(errs.KindOf(err), "|", err)
		os.Exit(0)
	}
	fmt.Println("opened")
	_ = s.Close()
}

func openElsewhere(t *testing.T, dir string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir)
	me := fmt.Sprintf("process %d", os.Getpid())
	link := dir + "-link"
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(link)
	for _, name := range []string{dir, dir + "/", link} {
		_, err := Open(name, Options{})
		if !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), me) {
			t.Errorf("second open of %s: %v", name, err)
		}
	}
	if out := openElsewhere(t, dir); !strings.HasPrefix(out, "unavailable |") || !strings.Contains(out, me) {
		t.Errorf("second process: %s", out)
	}
	// Neither attempt may have loosened the lock.
	if out := openElsewhere(t, dir); !strings.HasPrefix(out, "unavailable") {
		t.Errorf("third process: %s", out)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if out := openElsewhere(t, dir); out != "opened" {
		t.Errorf("after close: %s", out)
	}
	if err := openDir(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOpenErrors(t *testing.T) {
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(file, Options{}); err == nil {
		s.Close()
		t.Error("a file was opened as a store")
	}
	// A directory that was spoilt gives an error and is not left locked.
	dir := t.TempDir()
	if err := openDir(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range names {
		if strings.HasPrefix(e.Name(), "MANIFEST") {
			if err := os.WriteFile(dir+"/"+e.Name(), []byte("spoilt, not a manifest"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 {
		s, err := Open(dir, Options{})
		if err == nil {
			s.Close()
			t.Fatal("a spoilt store was opened")
		}
		if errs.Is(err, errs.Unavailable) {
			t.Fatalf("a store that can't be opened stays locked: %v", err)
		}
	}
}
