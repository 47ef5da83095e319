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

// An interactive shell is saved in the middle of a line, with a stopped job, and goes on where it is loaded.
func TestSaveSession(t *testing.T) {
	s := newSession(t)
	s.keys("x=5; f() { echo \"f $x\"; }; sleep 60\r", "sleep 60")
	s.busy()
	s.keys("\x1a", "sleep 60\n$")
	s.keys("echo hal", "$ echo hal")
	copies, _, err := s.w.copyOf(t, 1, &output{}, saved(t))
	if err != nil {
		t.Fatal(err)
	}
	c := copies[0]
	defer c.close(t)
	ttys := c.s.TTYs()
	if len(ttys) != 1 {
		t.Fatalf("%d terminals", len(ttys))
	}
	d := &session{t: t, w: c, tty: ttys[0], scr: &screen{cols: 40}, p: c.s.Lookup(s.p.Pid()), done: make(chan struct{})}
	go d.show(ttys[0])
	d.keys("f\x7fway; f; jobs | cut -c1-13\r", "halway\nf 5\n[1]+  Stopped\n$")
	d.keys("\x1b[A\r", "halway\nf 5\n[1]+  Stopped\n$")
	d.keys("fg\r", "sleep 60")
	d.busy()
	d.keys("\x03", "^C\n$")
	s.keys("\x15echo here\r", "here\n$")
	d.tty.Hangup()
	<-d.done
}
