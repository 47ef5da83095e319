package proc_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"agentrun.dev/proc"
)

// resting makes a sandbox with n processes at rest, as an idle session has them: some wait for pipes, some sleep.
func resting(b *testing.B, n int) *proc.Sandbox {
	s := sandboxWith(b, proc.Options{})
	for i := range n {
		p, err := s.NewProcess(proc.Root{Args: []string{"rest"}, Env: []string{"PATH=/bin", "HOME=/"}})
		if err != nil {
			b.Fatal(err)
		}
		if i%2 == 0 {
			r, w := s.RawPipe()
			p.Install(0, r)
			p.Install(1, w)
			p.Start(&node{nodeState{Kind: "sink"}})
		} else {
			p.Start(&node{nodeState{Kind: "sleeper", Until: time.Now().Add(time.Hour)}})
		}
	}
	return s
}

// BenchmarkPause is what the original notices of being copied.
func BenchmarkPause(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := resting(b, n)
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				f, err := s.Freeze(ctx, proc.FreezeOptions{})
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
	}
}

// BenchmarkStart makes a copy of an image and ends it. The namespace is the original's: it isn't proc's to copy.
func BenchmarkStart(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := resting(b, n)
			im := freeze(b, s)
			defer im.Close()
			ctx, cmds := context.Background(), programs()
			b.ReportAllocs()
			for b.Loop() {
				c, err := im.Start(proc.StartOptions{Namespace: s.Namespace(), Commands: cmds})
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := c.Close(ctx); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// BenchmarkRest is what a safe point costs.
func BenchmarkRest(b *testing.B) {
	s := sandbox(b, proc.Limits{})
	p, _ := s.NewProcess(proc.Root{Args: []string{"p"}})
	for b.Loop() {
		p.Rest(nil)
	}
}
