package shell_test

import (
	"testing"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/shell"
)

// savedShells returns what shells of scripts save while they wait.
func savedShells(t testing.TB) [][]byte {
	var out [][]byte
	for _, script := range []string{
		"x=1; mkfifo f; exec 9<>f; while read -u 9 l; do :; done",
		"declare -A m=([a]=b); f() { local v=2; for i in 1 2; do case $i in 1) x=$(read -u 9 l);; esac; done; }; mkfifo f; exec 9<>f; f | cat",
		"trap 'echo x' EXIT USR1; mkfifo f; exec 9<>f; a=(1 2 [9]=3); { read -u 9; } & eval 'if wait; then :; fi'",
	} {
		w := newWorld(t)
		p := w.start(t, script, &output{})
		time.Sleep(30 * time.Millisecond)
		f, err := w.s.Freeze(t.Context(), proc.FreezeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range w.s.Processes() {
			if c, ok := q.Running().(*shell.Shell); ok {
				st, err := c.Capture()
				if err != nil {
					t.Fatal(err)
				}
				_, data, err := st.(proc.Saver).Save()
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, data)
			}
		}
		f.Thaw()
		p.Post(proc.SIGKILL)
		w.close(t)
	}
	if len(out) < 6 {
		t.Fatalf("only %d shells", len(out))
	}
	return out
}

// What is cut off or changed is refused, or is a shell that can be resumed: it never panics.
func FuzzRestore(f *testing.F) {
	for _, data := range savedShells(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		st, err := shell.Restore(data)
		if err != nil {
			if !errs.Is(err, errs.Corrupt) {
				t.Fatal(err)
			}
			return
		}
		if _, _, err := st.(proc.Saver).Save(); err != nil && !errs.Is(err, errs.Unsupported) {
			t.Fatal(err)
		}
	})
}

// A saved shell that is cut off anywhere is refused.
func TestRestoreShort(t *testing.T) {
	for _, data := range savedShells(t) {
		for n := range data {
			if _, err := shell.Restore(data[:n]); !errs.Is(err, errs.Corrupt) {
				t.Fatalf("%d bytes of %d: %v", n, len(data), err)
			}
		}
		if _, err := shell.Restore(append(data, 0)); !errs.Is(err, errs.Corrupt) {
			t.Fatalf("a byte more: %v", err)
		}
	}
}
