package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentrun.dev/engine"
	"agentrun.dev/engine/userspace"
	"agentrun.dev/node"
	"agentrun.dev/volume"
)

// Targets of sessions.
const (
	sessionRate  = 5000 // made in a second
	sessionBytes = 100 << 10
)

// sessions measures sandboxes of one process: each a durable fork of a bucket, a filesystem over it and a shell that has
// run one command in it.
func sessions(b *bench) error {
	st, err := b.open("sessions")
	if err != nil {
		return err
	}
	defer st.close()
	if _, err := st.fill(b.ctx, "base", 1000); err != nil {
		return err
	}
	n := node.New(node.Options{Engine: userspace.NewEngine(userspace.EngineOptions{}), Store: st.Store, UID: userspace.UID, GID: userspace.GID})
	live := 10000
	if b.quick {
		live = 1000
	}
	if _, err := makeSessions(b.ctx, n, live/10); err != nil { // warm
		return err
	}
	if err := endSessions(b.ctx, n); err != nil {
		return err
	}
	before := resident()
	took, err := makeSessions(b.ctx, n, live)
	if err != nil {
		return err
	}
	rate := float64(live) / took.Seconds()
	b.add(row{Name: fmt.Sprintf("sessions made with 32 creators: durable fork, filesystem, shell, one command (%d)", live), Ours: fmt.Sprintf("%.0f/s", rate),
		Other: fmt.Sprintf("target %d/s", sessionRate), Ratio: rate / sessionRate, Target: "≥ 1", Met: rate >= sessionRate})
	each := (resident() - before) / int64(live)
	b.add(row{Name: fmt.Sprintf("memory of such an idle session (%d live)", live), Ours: fmt.Sprintf("%.1f KB", float64(each)/1e3),
		Other: "target 100 KB", Ratio: float64(each) / sessionBytes, Target: "≤ 1", Met: each <= sessionBytes})
	start := time.Now()
	if err := endSessions(b.ctx, n); err != nil {
		return err
	}
	ended := float64(live) / time.Since(start).Seconds()
	b.add(row{Name: "such sessions ended, their forks deleted", Ours: fmt.Sprintf("%.0f/s", ended), Other: fmt.Sprintf("made %.0f/s", rate), Ratio: ended / rate, Target: "-", Met: true})
	return b.liveForks(n)
}

// resident is what this process holds of the machine's, after the collector has given back what it can.
func resident() int64 {
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}

func makeSessions(ctx context.Context, n *node.Node, count int) (time.Duration, error) {
	var next atomic.Int64
	failed := make([]error, 32)
	var wg sync.WaitGroup
	start := time.Now()
	for i := range failed {
		wg.Go(func() {
			for next.Add(1) <= int64(count) && failed[i] == nil {
				failed[i] = makeSession(ctx, n)
			}
		})
	}
	wg.Wait()
	return time.Since(start), errors.Join(failed...)
}

// makeSession makes a session whose shell has run one command and waits for the next one, as that of a client who is thinking.
func makeSession(ctx context.Context, n *node.Node) error {
	s, err := n.Create(ctx, node.Spec{Volumes: []volume.Spec{{Name: "workspace", Base: "base"}}})
	if err != nil {
		return err
	}
	in := &typist{first: []byte("echo ready > note; cat note\n"), gone: s.Done()}
	out := answer(make(chan string, 1))
	if _, err := s.Exec(ctx, engine.Cmd{Args: []string{"bash"}, Stdin: in, Stdout: out}); err != nil {
		return err
	}
	select {
	case text := <-out:
		if text != "ready\n" {
			return fmt.Errorf("the shell said %q", text)
		}
		return nil
	case <-time.After(time.Minute):
		return errors.New("the shell says nothing")
	}
}

// typist types one line, and then nothing.
type typist struct {
	first []byte
	gone  <-chan struct{}
}

func (c *typist) Read(b []byte) (int, error) {
	if len(c.first) == 0 {
		<-c.gone
		return 0, io.EOF
	}
	n := copy(b, c.first)
	c.first = c.first[n:]
	return n, nil
}

// answer passes on the first thing that is written.
type answer chan string

func (a answer) Write(b []byte) (int, error) {
	select {
	case a <- string(b):
	default:
	}
	return len(b), nil
}

func endSessions(ctx context.Context, n *node.Node) error {
	all := n.List()
	var next atomic.Int64
	failed := make([]error, 32)
	var wg sync.WaitGroup
	for i := range failed {
		wg.Go(func() {
			for {
				k := int(next.Add(1)) - 1
				if k >= len(all) || failed[i] != nil {
					return
				}
				failed[i] = all[k].End(ctx)
			}
		})
	}
	wg.Wait()
	runtime.GC()
	return errors.Join(failed...)
}

// liveForks measures forks of a running sandbox: files and a shell with state.
func (b *bench) liveForks(n *node.Node) error {
	s, err := n.Create(b.ctx, node.Spec{Volumes: []volume.Spec{{Name: "workspace", Base: "base"}}})
	if err != nil {
		return err
	}
	defer s.EndSoon(b.ctx)
	script := "for i in {1..200}; do eval v$i=$i; eval \"f$i() { echo $i; }\"; done; while :; do sleep 1000; done"
	if _, err := s.Exec(b.ctx, engine.Cmd{Args: []string{"bash", "-c", script}, Keep: true}); err != nil {
		return err
	}
	time.Sleep(200 * time.Millisecond)
	floor, err := fsyncTime(b.dir)
	if err != nil {
		return err
	}
	one, err := measure(300, func(int) error {
		children, err := s.Fork(b.ctx, node.ForkOptions{})
		if err != nil {
			return err
		}
		return children[0].End(b.ctx)
	})
	if err != nil {
		return err
	}
	b.add(row{Name: "fork of a running sandbox, shell with 200 variables and functions, files durable, and its end", Ours: one.String(), Other: "fsync " + floor.String(),
		Ratio: ratio(one.p50(), floor.p50()), Target: "-", Met: true})
	return nil
}
