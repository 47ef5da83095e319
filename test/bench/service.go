package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentrun.dev/api"
	rest "agentrun.dev/client"
	"agentrun.dev/errs"
)

// service measures the sandbox service as its clients have it: another process, over REST, every transition durable.
func service(b *bench) (err error) {
	c, stop, err := b.serve()
	if err != nil {
		return err
	}
	defer func() {
		if e := stop(); err == nil {
			err = e
		}
	}()
	ctx := b.ctx
	spec := api.TemplateSpec{Image: "python:3.12-slim", Volumes: []api.Volume{{Name: "workspace"}}}
	replicas := 64
	if b.quick {
		replicas = 16
	}
	if _, err := c.PutTemplate(ctx, "bench", spec); err != nil {
		return err
	}
	if _, err := c.PutPool(ctx, "bench", api.PoolSpec{Template: "bench", Replicas: replicas}); err != nil {
		return err
	}
	if err := poolFull(ctx, c, "bench"); err != nil {
		return err
	}
	fsync, err := fsyncTime(b.dir)
	if err != nil {
		return err
	}
	for _, f := range []func(*bench, *rest.Client, times) error{serviceClaims, serviceExecs, serviceForks, serviceSleep} {
		if err := f(b, c, fsync); err != nil {
			return err
		}
	}
	return nil
}

// serve starts a server in a process of its own.
func (b *bench) serve() (c *rest.Client, stop func() error, err error) {
	dir, err := os.MkdirTemp(b.dir, "service-")
	if err != nil {
		return nil, nil, err
	}
	program := filepath.Join("bin", "agentrun")
	if own := os.Getenv("AGENTRUN_TEST_BINARY"); own != "" {
		program = own
	}
	cmd := exec.Command(program, "up", "--json", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--s3-listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+dir, "AGENTRUN_ACCESS_KEY_ID=AKIAAGENTRUNBENCH0", "AGENTRUN_SECRET_ACCESS_KEY=bench-secret-bench-secret-bench")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, fmt.Errorf("%w: 'make build' makes it", err)
	}
	stop = func() error {
		_ = cmd.Process.Signal(os.Interrupt)
		return cmd.Wait()
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var ready struct{ Endpoint string }
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err == nil {
		c, err = rest.New(ready.Endpoint, "AKIAAGENTRUNBENCH0.bench-secret-bench-secret-bench", rest.Options{})
	}
	if err != nil {
		_ = stop()
		return nil, nil, err
	}
	return c, stop, nil
}

// poolFull waits for the pool's sandboxes.
func poolFull(ctx context.Context, c *rest.Client, name string) error {
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		p, err := c.Pool(ctx, name)
		if err != nil {
			return err
		}
		if p.Ready >= p.Spec.Replicas {
			return nil
		}
		if p.State == "failed" || time.Now().After(deadline) {
			return fmt.Errorf("pool %s: %s: %d of %d ready: %s", name, p.State, p.Ready, p.Spec.Replicas, p.Error)
		}
	}
}

// serviceClaims measures claims one after the other, and by 32 clients at once.
func serviceClaims(b *bench, c *rest.Client, fsync times) error {
	var all, records, activations times
	rounds := 6
	for range rounds {
		if err := poolFull(b.ctx, c, "bench"); err != nil {
			return err
		}
		for range 16 {
			start := time.Now()
			s, err := c.CreateSandbox(b.ctx, api.CreateSandbox{Pool: "bench"})
			if err != nil {
				return err
			}
			all = append(all, time.Since(start))
			activations = append(activations, time.Duration(s.ActivationTime*1e9))
			records = append(records, time.Duration(s.RecordTime*1e9))
			if err := c.EndSandbox(b.ctx, s.ID); err != nil {
				return err
			}
		}
	}
	b.add(row{"service: claim of a warm sandbox over REST, recorded durably (other: an fsync)", all.String(), fsync.String(), ratio(all.p50(), fsync.p50()),
		"p50 ≤ 5 ms", all.p50() <= 5*time.Millisecond})
	b.add(row{"service: of it, at the node without the record (other: the record)", activations.String(), records.String(), ratio(activations.p50(), records.p50()),
		"p50 ≤ 1 ms", activations.p50() <= time.Millisecond})

	if err := poolFull(b.ctx, c, "bench"); err != nil {
		return err
	}
	var done, empty atomic.Int64
	var mu sync.Mutex
	var failed error
	var wg sync.WaitGroup
	end := time.Now().Add(5 * time.Second)
	for range 32 {
		wg.Go(func() {
			for time.Now().Before(end) {
				s, err := c.CreateSandbox(b.ctx, api.CreateSandbox{Pool: "bench"})
				if err == nil {
					done.Add(1)
					err = c.EndSandbox(b.ctx, s.ID)
				} else if errs.Is(err, errs.Unavailable) || errs.Is(err, errs.Limit) {
					empty.Add(1)
					time.Sleep(time.Millisecond)
					continue
				}
				if err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
					return
				}
			}
		})
	}
	wg.Wait()
	if failed != nil {
		return failed
	}
	rate := float64(done.Load()) / 5
	b.add(row{"service: claims by 32 clients, each ended at once (other: answers that the pool was empty)", fmt.Sprintf("%.0f/s", rate),
		fmt.Sprintf("%.0f/s", float64(empty.Load())/5), 0, "measured", true})
	return nil
}

// serviceExecs measures round trips.
func serviceExecs(b *bench, c *rest.Client, fsync times) error {
	s, err := c.CreateSandbox(b.ctx, api.CreateSandbox{Template: "bench"})
	if err != nil {
		return err
	}
	defer c.EndSandbox(b.ctx, s.ID)
	n := 500
	if b.quick {
		n = 50
	}
	for _, x := range []struct{ what, code, language string }{{"`true`", "true", "shell"}, {"Python's `x += 1`", "x = globals().get('x', 0) + 1", "python"}} {
		t, err := measure(n, func(int) error {
			r, err := c.Run(b.ctx, s.ID, api.Run{Code: x.code, Language: x.language})
			if err == nil && r.ExitCode != 0 {
				err = fmt.Errorf("%s: status %d: %s", x.code, r.ExitCode, r.Stderr)
			}
			return err
		})
		if err != nil {
			return err
		}
		native, err := measure(n/5, func(int) error { return exec.Command("true").Run() })
		if err != nil {
			return err
		}
		b.add(row{"service: exec of " + x.what + " over REST and back (other: a process of this machine)", t.String(), native.String(), ratio(t.p50(), native.p50()),
			"p50 ≤ 3 ms", t.p50() <= 3*time.Millisecond})
	}
	return nil
}

// serviceForks measures forks of a sandbox with live Python to the first result of each child.
func serviceForks(b *bench, c *rest.Client, fsync times) error {
	s, err := c.CreateSandbox(b.ctx, api.CreateSandbox{Template: "bench"})
	if err != nil {
		return err
	}
	defer c.EndSandbox(b.ctx, s.ID)
	if _, err := c.Run(b.ctx, s.ID, api.Run{Code: "import json; x = list(range(10000))", Language: "python"}); err != nil {
		return err
	}
	for _, count := range []int{1, 10, 100} {
		rounds := max(3, 60/count)
		if b.quick {
			rounds = 3
		}
		var forked, first times
		for range rounds {
			start := time.Now()
			f, err := c.ForkSandbox(b.ctx, s.ID, api.ForkSandbox{Count: count})
			if err != nil {
				return err
			}
			forked = append(forked, time.Since(start))
			var wg sync.WaitGroup
			errors := make([]error, count)
			for i := range f.Sandboxes {
				wg.Go(func() {
					r, err := c.Run(b.ctx, f.Sandboxes[i].ID, api.Run{Code: "print(len(x))", Language: "python"})
					if err == nil && strings.TrimSpace(r.Stdout) != "10000" {
						err = fmt.Errorf("a fork printed %q and %q", r.Stdout, r.Stderr)
					}
					errors[i] = err
				})
			}
			wg.Wait()
			first = append(first, time.Since(start))
			for i := range f.Sandboxes {
				if errors[i] != nil {
					return errors[i]
				}
				if err := c.EndSandbox(b.ctx, f.Sandboxes[i].ID); err != nil {
					return err
				}
			}
		}
		b.add(row{fmt.Sprintf("service: fork ×%d of live Python over REST → the first result of every child (other: → the answer)", count), first.String(), forked.String(),
			ratio(first.p50(), forked.p50()), "measured", true})
	}
	return nil
}

// serviceSleep measures hibernation and the use that wakes up.
func serviceSleep(b *bench, c *rest.Client, fsync times) error {
	s, err := c.CreateSandbox(b.ctx, api.CreateSandbox{Template: "bench"})
	if err != nil {
		return err
	}
	defer c.EndSandbox(b.ctx, s.ID)
	var down, up times
	n := 30
	if b.quick {
		n = 5
	}
	for i := range n {
		if _, err := c.Run(b.ctx, s.ID, api.Run{Code: fmt.Sprintf("n = %d", i), Language: "python"}); err != nil {
			return err
		}
		start := time.Now()
		if _, err := c.HibernateSandbox(b.ctx, s.ID); err != nil {
			return err
		}
		down = append(down, time.Since(start))
		start = time.Now()
		r, err := c.Run(b.ctx, s.ID, api.Run{Code: "print(n)", Language: "python"})
		if err != nil {
			return err
		}
		if strings.TrimSpace(r.Stdout) != fmt.Sprint(i) {
			return fmt.Errorf("it woke up and printed %q, not %d: %s", r.Stdout, i, r.Stderr)
		}
		up = append(up, time.Since(start))
	}
	b.add(row{"service: resume by the next use, with live Python, to its result (other: hibernate, durably)", up.String(), down.String(), ratio(up.p50(), down.p50()), "measured", true})
	return nil
}
