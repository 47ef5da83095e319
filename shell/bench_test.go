package shell_test

import (
	"context"
	"testing"
	"time"

	"agentrun.dev/proc"
	"agentrun.dev/shell"
	"agentrun.dev/vfs"
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

// benchScripts are what shells spend their time with; test/bench compares the same kinds with bash.
var benchScripts = map[string]string{
	"fib":     `fib() { (( $1 < 2 )) && { r=$1; return; }; local a; fib $(( $1-1 )); a=$r; fib $(( $1-2 )); r=$((a+r)); }; fib 15`,
	"case":    `for ((i=0;i<5000;i++)); do case file$i.txt in *.c) ;; a*|b*) ;; *[0-5].txt) n=1;; *) n=2;; esac; done`,
	"mapfile": `for ((i=0;i<5000;i++)); do echo "$i:some text here:$i"; done > l; mapfile -t a < l; for x in "${a[@]}"; do y=${x%%:*}; done`,
	"read":    `for ((i=0;i<5000;i++)); do echo "$i:some text here:$i"; done > l; while IFS=: read -r a b c; do n=$c; done < l`,
	"subst":   `for ((i=0;i<300;i++)); do x=$(echo $i); done`,
	"append":  `s=; for ((i=0;i<20000;i++)); do s+=x; done`,
}

func BenchmarkScript(b *testing.B) {
	for name, script := range benchScripts {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b)
			defer w.close(b)
			b.ReportAllocs()
			for b.Loop() {
				p, err := w.s.NewProcess(proc.Root{Args: []string{"bash", "-c", script}, Env: []string{"PATH=/bin"}, Dir: "/tmp",
					Files: map[int]vfs.File{0: proc.NewInput(nil, false), 1: w.s.NewOutput(&output{}, false), 2: w.s.NewOutput(&output{}, false)}})
				if err != nil {
					b.Fatal(err)
				}
				p.Start(shell.New(false))
				<-p.Done()
			}
		})
	}
}
