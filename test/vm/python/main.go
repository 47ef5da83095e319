// Command python runs in the bench, or on any host whose KVM boots a stock kernel: the microVM engine boots Debian, a Python that uses
// numpy and holds state is started, its sandbox is forked while it runs, written to a file and woken again. It says what it has
// seen, one line each, and exits with 1 at the first thing that isn't as it should be. With -figures it measures instead.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"agentrun.dev/engine"
	"agentrun.dev/engine/microvm"
	"agentrun.dev/guest/image"
)

func main() {
	var t trial
	parts := flag.String("parts", "/microvm", "the folder with kernel, modules, agent and vmm")
	disk := flag.String("disk", "", "a device with images, to be mounted at their folder")
	images := flag.String("images", "/images", "the folder of roots")
	name := flag.String("image", "", "the image")
	flag.Uint64Var(&t.memory, "memory", 256, "MiB of memory of a sandbox")
	flag.IntVar(&t.shells, "shells", 2, "VMM processes that wait")
	flag.IntVar(&t.dirty, "dirty", 50, "MiB that Python writes to")
	flag.IntVar(&t.children, "children", 3, "forks; with -figures the most at once")
	flag.IntVar(&t.rounds, "rounds", 1, "how often all of it is done, each time with the sandbox that has woken")
	flag.BoolVar(&t.clock, "clock", false, "set this machine's clock while sandboxes are images")
	flag.BoolVar(&t.emulated, "emulated", false, "this machine is emulated: no aim is missed")
	flag.StringVar(&t.file, "file", filepath.Join(os.TempDir(), "machine"), "where a sandbox hibernates")
	figures := flag.Bool("figures", false, "measure")
	stall := flag.Duration("stall", 5*time.Minute, "how long nothing may happen")
	timeout := flag.Duration("timeout", 10*time.Minute, "how long all of it may take")
	flag.Parse()
	t.memory <<= 20
	go watch(*stall)
	runtime.GOMAXPROCS(max(4, runtime.NumCPU()))
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	if err := t.open(*parts, *disk, *images, *name, *timeout); err != nil {
		fmt.Println("python:", err)
		os.Exit(1)
	}
	err := errors.Join(t.run(ctx, *figures), t.engine.Close())
	if err != nil {
		fmt.Println("python:", err)
		os.Exit(1)
	}
}

func say(format string, a ...any) {
	told.Add(1)
	fmt.Printf("python: "+format+"\n", a...)
}

// told counts what was said.
var told atomic.Int64

// watch ends the program when nothing was said for so long, and tells where everybody waits.
func watch(longest time.Duration) {
	for last, since := int64(-1), time.Now(); ; time.Sleep(time.Second) { // the clock that -clock sets isn't that of Since
		if n := told.Load(); n != last {
			last, since = n, time.Now()
		} else if time.Since(since) > longest {
			fmt.Printf("python: nothing has happened for %v; everybody waits:\n", longest)
			_ = pprof.Lookup("goroutine").WriteTo(os.Stdout, 1)
			os.Exit(1)
		}
	}
}

func ms(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

// trial is one run: a parent with a Python in it.
type trial struct {
	engine                  *microvm.Engine
	dirty, children, rounds int
	memory                  uint64 // bytes
	shells                  int
	clock, emulated         bool
	file                    string
	parent                  *box
	py                      *python
}

// open makes the engine.
func (t *trial) open(parts, disk, images, name string, patience time.Duration) error {
	if disk != "" {
		if err := os.MkdirAll(images, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(disk, images, "erofs", unix.MS_RDONLY, ""); err != nil {
			return fmt.Errorf("mount %s: %w", disk, err)
		}
	}
	store, err := image.NewStore(images, image.Options{})
	if err != nil {
		return err
	}
	part := func(name string) string { return filepath.Join(parts, name) }
	t.engine, err = microvm.New(microvm.Options{Kernel: part("kernel"), Modules: part("modules"), Agent: part("agent"), VMM: []string{part("vmm")}, Images: store,
		Image: name, Memory: t.memory, Shells: t.shells, Patience: patience, Log: slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	return err
}

func (t *trial) run(ctx context.Context, figures bool) error {
	start := time.Now()
	in, err := t.engine.Boot(ctx, engine.Spec{Identity: engine.Identity{ID: "parent", Hostname: "parent"}, Dir: "/tmp"})
	if err != nil {
		return err
	}
	t.parent = &box{in, "parent"}
	defer func() { _ = t.parent.Stop(context.WithoutCancel(ctx)) }()
	say("a sandbox with a kernel of its own after %v", ms(time.Since(start)))
	start = time.Now()
	tick := 0.01
	if figures {
		tick = 3600 // what is measured is idle
	}
	if t.py, err = startPython(ctx, t.parent, t.dirty, tick); err != nil {
		return err
	}
	say("numpy imported and %d MiB written after %v", t.dirty, ms(time.Since(start)))
	if figures {
		return t.figures(ctx)
	}
	for i := range t.rounds {
		if err := t.forks(ctx); err != nil {
			return fmt.Errorf("round %d: fork: %w", i, err)
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
			err = d.add(py.b.name+": "+s, got)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// later lets time pass that a sandbox doesn't see.
func (t *trial) later(d time.Duration) error {
	if !t.clock {
		return nil
	}
	now := unix.NsecToTimespec(time.Now().Add(d).UnixNano())
	return unix.ClockSettime(unix.CLOCK_REALTIME, &now)
}

// now looks whether a sandbox's clock is this machine's.
func (py *python) now() error {
	before := time.Now().Add(-time.Minute).Unix()
	text, err := py.ask("int(time.time())")
	if err != nil {
		return err
	}
	if s, err := strconv.ParseInt(text, 10, 64); err != nil || s < before || s > time.Now().Add(time.Minute).Unix() {
		return fmt.Errorf("%s: its time is %s, here it is %d, %w", py.b.name, text, time.Now().Unix(), err)
	}
	return nil
}

// forks: state goes on in each sandbox, none sees another's, and each is told who it is and what time it is.
func (t *trial) forks(ctx context.Context) error {
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
	im, paused, err := t.parent.capture(ctx)
	if err != nil {
		return err
	}
	defer im.Close()
	say("captured while it runs, which stood still for %v", ms(paused))
	if err := t.later(1000 * time.Hour); err != nil {
		return err
	}
	n := t.children
	seen := &drawn{who: make(map[string]string)}
	results := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { results[i] = t.child(ctx, im, fmt.Sprintf("child%d", i), ticks, next, seen) })
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

func (t *trial) child(ctx context.Context, im engine.Image, name string, ticks int, next string, seen *drawn) error {
	start := time.Now()
	c, err := t.start(ctx, im, name)
	if err != nil {
		return err
	}
	defer c.Stop(context.WithoutCancel(ctx))
	if _, err := c.run(ctx, "true"); err != nil {
		return err
	}
	say("%s: its first command has run after %v", name, ms(time.Since(start)))
	py, err := t.py.in(ctx, c)
	if err != nil {
		return err
	}
	if err := errors.Join(py.now(), py.same(name, next), seen.draw(py)); err != nil {
		return err
	}
	if n, err := t.ticks(py); err != nil || n <= ticks {
		return fmt.Errorf("%s: the thread has ticked %d times, %d before the fork, %w", name, n, ticks, err)
	}
	out, err := c.run(ctx, "python3", "-c", "import socket; print(open('/tmp/own').read(), socket.gethostname())")
	if err == nil && out != name+" "+name+"\n" {
		err = fmt.Errorf("%s: another Python says %q", name, out)
	}
	return err
}

// same: what the program had before the fork it has now; then it changes it.
func (py *python) same(name, next string) error {
	return errors.Join(py.want("mine, int(held[12345]), int(held[-1]) == len(held) - 1", "('parent', 12345, True)"),
		py.want("state['rng'].random()", next), py.want("socket.gethostname()", "'"+name+"'"),
		py.want("mine = '"+name+"'; held[12345] = 1; open('/tmp/own', 'w').write(mine)", "done"), py.want("mine, int(held[12345])", "('"+name+"', 1)"))
}

// hibernation: the sandbox is written to a file and ended; another goes on where it stood.
func (t *trial) hibernation(ctx context.Context) error {
	if err := t.py.want("mine = 'hibernated'; held[0] = 77", "done"); err != nil {
		return err
	}
	if _, err := t.ticks(t.py); err != nil {
		return err
	}
	start := time.Now()
	im, _, err := t.parent.capture(ctx)
	if err != nil {
		return err
	}
	size, err := t.save(ctx, im)
	if err := errors.Join(err, t.parent.Stop(ctx)); err != nil {
		return err
	}
	defer os.Remove(t.file)
	say("hibernated in %v, a file of %d MB", ms(time.Since(start)), size/1e6)
	if err := t.later(77 * time.Hour); err != nil {
		return err
	}
	start = time.Now()
	if im, err = t.load(ctx); err != nil {
		return err
	}
	defer im.Close()
	if t.parent, err = t.start(ctx, im, "parent"); err != nil {
		return err
	}
	if _, err := t.parent.run(ctx, "true"); err != nil {
		return err
	}
	say("woken in %v, until the first command has run", ms(time.Since(start)))
	if t.py, err = t.py.in(ctx, t.parent); err != nil {
		return err
	}
	if err := errors.Join(t.py.want("mine, int(held[0]), int(held[12345]), socket.gethostname()", "('hibernated', 77, 12345, 'parent')"), t.py.now()); err != nil {
		return err
	}
	if _, err := t.ticks(t.py); err != nil {
		return err
	}
	say("hibernation ok")
	return t.py.want("held[0] = 0", "done")
}
