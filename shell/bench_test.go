package shell_test

import (
	"context"
	"testing"
	"time"

	"agentrun.dev/proc"
)

// BenchmarkCopy measures a freeze and its capture, and a start, of a sandbox with an ordinary session that waits.
func BenchmarkCopy(b *testing.B) {
	w := newWorld(b)
	defer w.close(b)
	out := &output{}
	p := w.start(b, `for i in {1..200}; do declare v$i=$i; eval "f$i() { echo $i; }"; done; echo on; mkfifo w; read x <> w`, out)
	for out.String() == "" {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(10 * time.Millisecond)
	prog, ok := w.s.Lookup(p.Pid()).Running().(proc.Cloner)
	if !ok {
		b.Fatal("no Cloner")
	}
	b.Run("freeze", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f, err := w.s.Freeze(context.Background(), proc.FreezeOptions{})
			if err != nil {
				b.Fatal(err)
			}
			im, err := f.Capture()
			if err != nil {
				b.Fatal(err)
			}
			f.Thaw()
			im.Close()
		}
	})
	b.Run("shell", func(b *testing.B) {
		f, err := w.s.Freeze(context.Background(), proc.FreezeOptions{})
		if err != nil {
			b.Fatal(err)
		}
		defer f.Thaw()
		b.ReportAllocs()
		for b.Loop() {
			st, err := prog.Capture()
			if err != nil {
				b.Fatal(err)
			}
			if _, err := st.Resume(p); err != nil {
				b.Fatal(err)
			}
		}
	})
	p.Post(proc.SIGKILL)
}
