// Command soak works a server hard for minutes and then looks for what it has lost or kept: 500 sandboxes at a time, made, used,
// forked and ended by 50 clients. `make soak` runs it; the server is a process of its own, whose goroutines, descriptors, memory
// and disk are compared before and after.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/errs"
)

const (
	keyID     = "AKIAAGENTRUNSOAK00"
	keySecret = "soak-secret-soak-secret-soak-secret"
)

func main() {
	program := flag.String("agentrun", "bin/agentrun", "the program")
	minutes := flag.Float64("minutes", 5, "how long")
	clients := flag.Int("clients", 50, "clients at once")
	sandboxes := flag.Int("sandboxes", 500, "sandboxes at once, all clients' together")
	flag.Parse()
	if err := run(*program, time.Duration(*minutes*float64(time.Minute)), *clients, *sandboxes); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// world is a server and what was done with it.
type world struct {
	c                                        *client.Client
	pid                                      int
	data                                     string
	made, used, forked, slept, ended, denied atomic.Int64
}

func run(program string, long time.Duration, clients, sandboxes int) (err error) {
	dir, err := os.MkdirTemp("", "agentrun-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	w, stop, err := start(program, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	ctx := context.Background()
	if _, err := w.c.PutTemplate(ctx, "soak", api.TemplateSpec{Image: "python:3.12-slim"}); err != nil {
		return err
	}
	if _, err := w.c.PutPool(ctx, "soak", api.PoolSpec{Template: "soak", Replicas: 20}); err != nil {
		return err
	}
	// What is made once is made before the first look: caches, compiled guests, the pool.
	if err := w.work(ctx, min(long/5, 30*time.Second), clients, sandboxes); err != nil {
		return err
	}
	before, err := w.look(ctx)
	if err != nil {
		return err
	}
	if err := w.work(ctx, long, clients, sandboxes); err != nil {
		return err
	}
	after, err := w.look(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%d sandboxes made, %d uses, %d forks, %d slept, %d ended, %d refused for the time being\n", w.made.Load(), w.used.Load(), w.forked.Load(),
		w.slept.Load(), w.ended.Load(), w.denied.Load())
	fmt.Printf("before: %v\nafter:  %v\n", before, after)
	return after.compare(before)
}

func start(program, dir string) (*world, func() error, error) {
	data := filepath.Join(dir, "data")
	cmd := exec.Command(program, "up", "--json", "--data", data, "--listen", "127.0.0.1:0", "--s3-listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+dir, "AGENTRUN_ACCESS_KEY_ID="+keyID, "AGENTRUN_SECRET_ACCESS_KEY="+keySecret)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	stop := func() error {
		_ = cmd.Process.Signal(os.Interrupt)
		return cmd.Wait()
	}
	var ready struct{ Endpoint string }
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	w := &world{pid: cmd.Process.Pid, data: data}
	if err == nil {
		w.c, err = client.New(ready.Endpoint, keyID+"."+keySecret, client.Options{})
	}
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return w, stop, nil
}

// work has the clients work, and ends what they made.
func (w *world) work(ctx context.Context, long time.Duration, clients, sandboxes int) error {
	ctx, cancel := context.WithTimeout(ctx, long+5*time.Minute)
	defer cancel()
	end := time.Now().Add(long)
	failed := make([]error, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() { failed[i] = w.client(ctx, end, sandboxes/clients) })
	}
	wg.Wait()
	return errors.Join(failed...)
}

// client is one client: it keeps so many sandboxes at most, and does something with one of them again and again.
func (w *world) client(ctx context.Context, end time.Time, most int) error {
	var mine []string
	for time.Now().Before(end) {
		if len(mine) == 0 || len(mine) < most && rand.IntN(3) == 0 {
			in := api.CreateSandbox{Pool: "soak"}
			if rand.IntN(4) == 0 {
				in = api.CreateSandbox{Template: "soak"}
			}
			s, err := w.c.CreateSandbox(ctx, in)
			if errs.Is(err, errs.Unavailable) || errs.Is(err, errs.Limit) { // the pool is empty for the moment
				w.denied.Add(1)
				time.Sleep(20 * time.Millisecond)
				continue
			}
			if err != nil {
				return fmt.Errorf("create: %w", err)
			}
			w.made.Add(1)
			mine = append(mine, s.ID)
			continue
		}
		i := rand.IntN(len(mine))
		more, gone, err := w.step(ctx, mine[i], most-len(mine))
		if err != nil {
			return err
		}
		if gone {
			mine = append(mine[:i], mine[i+1:]...)
		}
		mine = append(mine, more...)
	}
	for _, id := range mine {
		if err := w.c.EndSandbox(ctx, id); err != nil {
			return fmt.Errorf("end: %w", err)
		}
		w.ended.Add(1)
	}
	return nil
}

// step does one thing to a sandbox. What it writes it reads back: a sandbox that loses something is found.
func (w *world) step(ctx context.Context, id string, room int) (more []string, gone bool, err error) {
	switch n := rand.IntN(20); {
	case n < 9:
		mark := strconv.Itoa(rand.IntN(1e9))
		r, err := w.c.Run(ctx, id, api.Run{Code: "echo " + mark + " > mark; cat mark; wc -c < mark", Language: "shell"})
		if err != nil {
			return nil, false, fmt.Errorf("shell: %w", err)
		}
		if !strings.HasPrefix(r.Stdout, mark+"\n") {
			return nil, false, fmt.Errorf("shell: %q, %q, status %d", r.Stdout, r.Stderr, r.ExitCode)
		}
		w.used.Add(1)
	case n < 14:
		r, err := w.c.Run(ctx, id, api.Run{Code: "n = globals().get('n', 0) + 1; print(n, len([0] * 100000))", Language: "python"})
		if err != nil {
			return nil, false, fmt.Errorf("python: %w", err)
		}
		if !strings.HasSuffix(r.Stdout, " 100000\n") {
			return nil, false, fmt.Errorf("python: %q, %q, status %d", r.Stdout, r.Stderr, r.ExitCode)
		}
		w.used.Add(1)
	case n < 16 && room > 0:
		f, err := w.c.ForkSandbox(ctx, id, api.ForkSandbox{Count: min(room, 3)})
		if err != nil {
			return nil, false, fmt.Errorf("fork: %w", err)
		}
		w.forked.Add(int64(len(f.Sandboxes)))
		for i := range f.Sandboxes {
			more = append(more, f.Sandboxes[i].ID)
		}
	case n < 17:
		if _, err := w.c.HibernateSandbox(ctx, id); err != nil {
			return nil, false, fmt.Errorf("hibernate: %w", err)
		}
		w.slept.Add(1)
	default:
		if err := w.c.EndSandbox(ctx, id); err != nil {
			return nil, false, fmt.Errorf("end: %w", err)
		}
		w.ended.Add(1)
		return nil, true, nil
	}
	return more, false, nil
}

// state is what a server has when nobody works.
type state struct {
	goroutines, descriptors int
	resident, disk          int64
	running                 int
}

func (s state) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %d MiB resident, %d MiB on disk, %d sandboxes run", s.goroutines, s.descriptors, s.resident>>20, s.disk>>20, s.running)
}

// look waits until the server has come to rest, and collects what nothing refers to.
func (w *world) look(ctx context.Context) (s state, err error) {
	deadline := time.Now().Add(time.Minute)
	for {
		page, err := w.c.Sandboxes(ctx, client.SandboxFilter{})
		if err != nil {
			return s, err
		}
		p, err := w.c.Pool(ctx, "soak")
		if err != nil {
			return s, err
		}
		if s.running = len(page.Sandboxes); s.running == 0 && p.Ready == p.Spec.Replicas || time.Now().After(deadline) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if _, err := w.c.GC(ctx); err != nil {
		return s, err
	}
	time.Sleep(5 * time.Second) // for what ends by itself
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", w.pid))
	if err != nil {
		return s, err
	}
	s.descriptors = len(fds)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.pid))
	if err != nil {
		return s, err
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmRSS:" {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			s.resident = n << 10
		}
	}
	if s.goroutines, err = w.goroutines(ctx); err != nil {
		return s, err
	}
	err = filepath.WalkDir(w.data, func(_ string, d os.DirEntry, err error) error {
		if err != nil {
			return nil // gone meanwhile
		}
		if i, err := d.Info(); err == nil && !d.IsDir() {
			s.disk += i.Size()
		}
		return nil
	})
	return s, err
}

// goroutines reads the server's metrics.
func (w *world) goroutines(ctx context.Context) (int, error) {
	text, err := w.c.Metrics(ctx)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, "go_goroutines "); ok {
			return strconv.Atoi(strings.TrimSpace(v))
		}
	}
	return 0, errors.New("no go_goroutines among the metrics")
}

// compare tells what has grown beyond what chance explains.
func (s state) compare(before state) error {
	var all []error
	grew := func(what string, now, then, slack int64) {
		if now > then+slack {
			all = append(all, fmt.Errorf("%s grew from %d to %d", what, then, now))
		}
	}
	grew("goroutines", int64(s.goroutines), int64(before.goroutines), 50)
	grew("descriptors", int64(s.descriptors), int64(before.descriptors), 50)
	grew("resident memory", s.resident, before.resident, before.resident/2+64<<20)
	grew("disk", s.disk, before.disk, before.disk/2+64<<20)
	grew("running sandboxes", int64(s.running), 0, 0)
	return errors.Join(all...)
}
