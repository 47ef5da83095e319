// Command python runs in the bench, or on any host whose KVM boots a stock kernel: it boots Debian with the agent, starts a Python
// that uses numpy and holds state, forks the machine while it runs, and writes it to a file and wakes it again. It says what it has
// seen, one line each, and exits with 1 at the first thing that isn't as it should be. With -figures it measures instead.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"

	"agentrun.dev/vmm"
)

func main() {
	kernel := flag.String("kernel", "/kernel", "the kernel")
	initrd := flag.String("initrd", "/initrd", "the archive with the agent")
	disk := flag.String("disk", "/dev/vda", "the image of the root filesystem")
	memory := flag.Uint64("memory", 256, "MiB of memory")
	dirty := flag.Int("dirty", 50, "MiB that Python writes to")
	children := flag.Int("children", 3, "forks")
	rounds := flag.Int("rounds", 1, "how often all of it is done, each time with the machine that has woken")
	dir := flag.String("dir", os.TempDir(), "where a machine hibernates")
	figures := flag.Bool("figures", false, "measure")
	timeout := flag.Duration("timeout", 10*time.Minute, "how long all of it may take")
	flag.Parse()
	// A vCPU holds one of the scheduler's processors for a while after it has entered the guest: devices need some of their own.
	runtime.GOMAXPROCS(8)
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	host, err := vmm.NewHost()
	if err == nil {
		defer host.Close()
		t := &trial{maker: &maker{host: host, memory: *memory << 20, disk: *disk}, dirty: *dirty, file: filepath.Join(*dir, "machine")}
		err = t.run(ctx, *kernel, *initrd, *children, *rounds, *figures)
	}
	if err != nil {
		fmt.Println("python:", err)
		os.Exit(1)
	}
}

func say(format string, a ...any) { fmt.Printf("python: "+format+"\n", a...) }

func ms(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

// trial is one run: a parent with a Python in it.
type trial struct {
	*maker
	dirty  int
	file   string
	parent *machine
	py     *python
}

func (t *trial) run(ctx context.Context, kernel, initrd string, n, rounds int, figures bool) (err error) {
	start := time.Now()
	if t.parent, err = t.boot(ctx, kernel, initrd); err != nil {
		return err
	}
	defer func() { t.parent.Close() }()
	say("agent up after %v", ms(time.Since(start)))
	start = time.Now()
	if t.py, err = startPython(ctx, t.parent, t.dirty); err != nil {
		return fmt.Errorf("%w; console:\n%s", err, t.parent.Tail())
	}
	say("numpy imported and %d MiB written after %v", t.dirty, ms(time.Since(start)))
	if figures {
		return t.figures(ctx)
	}
	for i := range rounds {
		if err := t.forks(ctx, n); err != nil {
			return fmt.Errorf("round %d: fork: %w; console:\n%s", i, err, t.parent.Tail())
		}
		if err := t.hibernation(ctx); err != nil {
			return fmt.Errorf("round %d: hibernation: %w", i, err)
		}
	}
	return nil
}

// drawn is what machines must not have in common.
type drawn struct {
	mu  sync.Mutex
	who map[string]string
}

func (d *drawn) add(who, what string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if other, ok := d.who[what]; ok {
		return fmt.Errorf("%s draws %s, as %s did", who, what, other)
	}
	d.who[what] = who
	return nil
}

// sources of randomness that have to differ after a fork. What a program has seeded itself before stays what it is.
var sources = []string{`os.urandom(16).hex()`, `open("/dev/urandom", "rb").read(16).hex()`, `open("/dev/random", "rb").read(16).hex()`,
	`random.Random().random()`, `random.SystemRandom().random()`, `np.random.default_rng().random()`, `__import__("uuid").uuid4().hex`}

func (d *drawn) draw(py *python) error {
	for _, s := range sources {
		got, err := py.ask(s)
		if err == nil {
			err = d.add(py.m.name+": "+s, got)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// forks: state goes on in each machine, none sees another's, and each is told who it is and what time it is.
func (t *trial) forks(ctx context.Context, n int) error {
	if err := t.py.want("mine = 'parent'; state['rng'] = np.random.default_rng(7)", "done"); err != nil {
		return err
	}
	next, err := t.py.ask("np.random.default_rng(7).random(3)[2]") // the third that all will draw
	if err == nil {
		_, err = t.py.ask("state['rng'].random(2)[0]")
	}
	if err != nil {
		return err
	}
	ticks, err := t.ticks(t.py)
	if err != nil {
		return err
	}
	children, err := t.shells(n)
	if err != nil {
		return err
	}
	for _, c := range children {
		defer c.Close()
	}
	start := time.Now()
	token, err := t.parent.fork(ctx, children)
	if err != nil {
		return err
	}
	say("forked %d times in %v", n, ms(time.Since(start)))
	seen := &drawn{who: make(map[string]string)}
	results := make([]error, n)
	var all sync.WaitGroup
	for i, c := range children {
		all.Go(func() {
			if err := t.child(ctx, c, i, token, ticks, next, seen); err != nil {
				results[i] = fmt.Errorf("%s: %w; console:\n%s", c.name, err, c.Tail())
			}
		})
	}
	all.Wait()
	if err := errors.Join(results...); err != nil {
		return err
	}
	if err := errors.Join(t.py.want("mine, int(held[12345]), int(held.sum()) == len(held) * (len(held) - 1) // 2, socket.gethostname(), os.path.exists('/tmp/own')",
		"('parent', 12345, True, 'parent', False)"), t.py.want("state['rng'].random()", next), seen.draw(t.py)); err != nil {
		return err
	}
	if _, err := t.ticks(t.py); err != nil {
		return err
	}
	say("forks ok: state goes on, names, clocks, files and random numbers are each one's own")
	return nil
}

// ticks waits until the program's thread has run on.
func (t *trial) ticks(py *python) (int, error) {
	from := -1
	for {
		text, err := py.ask("state['ticks']")
		if err != nil {
			return 0, err
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return 0, err
		}
		if from >= 0 && n > from {
			return n, nil
		}
		from = n
	}
}

func (t *trial) child(ctx context.Context, c *machine, i int, token string, ticks int, next string, seen *drawn) error {
	at := time.Now().Add(time.Duration(i+1) * 1000 * time.Hour)
	if err := c.renew(ctx, token, at); err != nil {
		return err
	}
	py, err := t.py.in(ctx, c)
	if err != nil {
		return err
	}
	if err := py.same(c.name, next); err != nil {
		return err
	}
	if n, err := t.ticks(py); err != nil || n <= ticks {
		return fmt.Errorf("the thread has ticked %d times, %d before the fork, %w", n, ticks, err)
	}
	now, err := py.ask("int(time.time())")
	if err != nil {
		return err
	}
	if s, err := strconv.ParseInt(now, 10, 64); err != nil || s < at.Unix() || s > at.Add(time.Hour).Unix() {
		return fmt.Errorf("its time is %s, it was told %d, %w", now, at.Unix(), err)
	}
	if err := seen.draw(py); err != nil {
		return err
	}
	out, err := c.run(ctx, "python3", "-c", "import socket; print(open('/tmp/own').read(), socket.gethostname())")
	if err == nil && out != fmt.Sprintf("child%d child%d\n", i, i) {
		err = fmt.Errorf("another Python says %q", out)
	}
	return err
}

// same: what the program had before the fork it has now; then it changes it.
func (py *python) same(name, next string) error {
	return errors.Join(py.want("mine, int(held[12345]), int(held[-1]) == len(held) - 1", "('parent', 12345, True)"),
		py.want("state['rng'].random()", next), py.want("socket.gethostname()", "'"+name+"'"),
		py.want("mine = '"+name+"'; held[12345] = 1; open('/tmp/own', 'w').write(mine)", "done"), py.want("mine, int(held[12345])", "('"+name+"', 1)"))
}

// hibernation: the machine is written to a file and ended; another goes on where it stood, as another again.
func (t *trial) hibernation(ctx context.Context) error {
	if err := t.py.want("mine = 'hibernated'; held[0] = 77", "done"); err != nil {
		return err
	}
	_, err := t.ticks(t.py)
	if err != nil {
		return err
	}
	start := time.Now()
	token, err := t.parent.hibernate(ctx, t.file)
	if err != nil {
		return err
	}
	defer os.Remove(t.file)
	info, err := os.Stat(t.file)
	if err != nil {
		return err
	}
	say("hibernated in %v, a file of %d MB", ms(time.Since(start)), info.Size()/1e6)
	start = time.Now()
	c, err := t.shell("parent")
	if err != nil {
		return err
	}
	t.parent = c
	if err := c.wake(t.file); err != nil {
		return err
	}
	at := time.Now().Add(77 * time.Hour)
	if err := c.renew(ctx, token, at); err != nil {
		return err
	}
	if _, err := c.run(ctx, "true"); err != nil {
		return err
	}
	say("woken in %v, until the first command has run", ms(time.Since(start)))
	py, err := t.py.in(ctx, c)
	if err != nil {
		return err
	}
	if err := errors.Join(py.want("mine, int(held[0]), int(held[12345]), socket.gethostname()", "('hibernated', 77, 12345, 'parent')"),
		py.want("abs(time.time() - "+strconv.FormatInt(at.Unix(), 10)+") < 3600", "True")); err != nil {
		return err
	}
	if _, err := t.ticks(py); err != nil {
		return err
	}
	t.py = py
	say("hibernation ok")
	return py.want("held[0] = 0", "done")
}
