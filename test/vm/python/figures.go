package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"agentrun.dev/vmm"
	"agentrun.dev/vmm/vmmtest"
)

// figure is a row; package main of test/bench reads it.
type figure struct {
	Name, Ours, Other string
	Ratio             float64
	Target            string
	Met               bool
}

func (f figure) print() {
	b, _ := json.Marshal(f)
	fmt.Printf("figure: %s\n", b)
}

// figures measures. Each of our figures stands beside one of the VM alone, without a kernel, an agent or a process of its own: the
// rest is what those take.
func (t *trial) figures(ctx context.Context) error {
	for _, f := range []func(context.Context) error{t.pauses, t.first, t.restores} {
		if err := f(ctx); err != nil {
			return err
		}
	}
	return nil
}

// aim is for a fork on hardware, to the end of its first command.
const aim = 20 * time.Millisecond

// touch lets Python write to so many MiB.
func (t *trial) touch(n int) error { return t.py.want(fmt.Sprintf("held[:%d] += 0", n<<17), "done") }

// pauses is how long the sandbox stands still while it is captured, against copying what it has written.
func (t *trial) pauses(ctx context.Context) error {
	for _, n := range []int{0, 1, 10, t.dirty} {
		var took, copies times
		for range 3 {
			if err := t.touch(n); err != nil {
				return err
			}
			im, paused, err := t.parent.capture(ctx)
			if err != nil {
				return err
			}
			took = append(took, paused)
			copied, err := copying(n << 20)
			if err := errors.Join(err, im.Close()); err != nil {
				return err
			}
			copies = append(copies, copied)
		}
		figure{Name: fmt.Sprintf("a sandbox with a kernel and a Python stands still for a fork, %d MiB written since the last", n), Ours: took.String(),
			Other: "copying as much " + copies.String(), Ratio: took.over(copies), Target: "by the dirty pages", Met: true}.print()
	}
	return nil
}

func copying(n int) (time.Duration, error) {
	from := make([]byte, n)
	for i := 0; i < n; i += 4096 {
		from[i] = 1
	}
	start := time.Now()
	fd, err := unix.MemfdCreate("floor", unix.MFD_CLOEXEC)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	_, err = unix.Pwrite(fd, from, 0)
	return time.Since(start), err
}

// first is the time from the wish for a fork to the end of the first command in it.
func (t *trial) first(ctx context.Context) error {
	for _, n := range []int{1, 10, 100} {
		if n > t.children {
			say("forks at once: no more than %d, as was asked", t.children)
			break
		}
		alone, err := vmForks(n, t.dirty)
		if err != nil {
			return err
		}
		took, memory, err := t.firstOf(ctx, n)
		if err != nil {
			return fmt.Errorf("%d children: %w", n, err)
		}
		target := "none"
		if n == 1 {
			target = "< 20 ms on hardware"
		}
		figure{Name: fmt.Sprintf("fork of a running Python with %d MiB dirty to the end of the first command in it, %d at once", t.dirty, n), Ours: took.String(),
			Other: "VMs alone until all run " + times{alone}.String(), Ratio: took.over(times{alone}), Target: target, Met: n > 1 || t.emulated || took.p50() < aim}.print()
		pages, process := median(memory, func(m memoryUse) int64 { return m.pages }), median(memory, func(m memoryUse) int64 { return m.process })
		figure{Name: fmt.Sprintf("memory of the VMM process of an idle fork, besides its guest's pages, of %d", n), Ours: fmt.Sprintf("%.1f MB", mb(process)),
			Other: "-", Ratio: float64(process) / 10e6, Target: "≤ 10 MB", Met: process <= 10e6}.print()
		figure{Name: fmt.Sprintf("pages of an idle fork that it has written to since, of %d", n), Ours: fmt.Sprintf("%.1f MB", mb(pages)),
			Other: fmt.Sprintf("the machine's RAM %d MB", t.memory/1e6), Ratio: float64(pages) / float64(t.memory), Target: "none", Met: true}.print()
	}
	return nil
}

// memoryUse is what a fork has for itself.
type memoryUse struct {
	pages   int64 // of the guest's RAM: those that were written to
	process int64 // everything else of its process
}

func median(all []memoryUse, of func(memoryUse) int64) int64 {
	var list []int64
	for _, m := range all {
		list = append(list, of(m))
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// use reads what a VMM process has for itself; false for one without a guest.
func use(pid string) (m memoryUse, ok bool) {
	b, _ := os.ReadFile("/proc/" + pid + "/smaps") // it may have ended
	ram := false
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		switch {
		case len(f) == 0:
		case !strings.HasSuffix(f[0], ":"):
			ram = strings.Contains(line, "memfd:agentrun-ram")
			ok = ok || ram
		case f[0] == "Anonymous:" && len(f) > 1:
			n, _ := strconv.ParseInt(f[1], 10, 64)
			if ram {
				m.pages += n << 10
			} else {
				m.process += n << 10
			}
		}
	}
	return m, ok
}

func mb(n int64) float64 { return float64(n) / 1e6 }

// firstOf forks the sandbox once, for n children.
func (t *trial) firstOf(ctx context.Context, n int) (took times, memory []memoryUse, err error) {
	if err := errors.Join(t.touch(t.dirty), t.prepared(ctx, 1+t.shells)); err != nil {
		return nil, nil, err
	}
	before, err := machines()
	if err != nil {
		return nil, nil, err
	}
	start := time.Now()
	im, _, err := t.parent.capture(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer im.Close()
	took = make(times, n)
	results := make([]error, n)
	children := make([]*box, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if children[i], results[i] = t.start(ctx, im, fmt.Sprintf("child%d", i)); results[i] == nil {
				_, results[i] = children[i].run(ctx, "true")
			}
			took[i] = time.Since(start)
		})
	}
	all.Wait()
	defer func() {
		for _, c := range children {
			if c != nil {
				err = errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
			}
		}
	}()
	if err := errors.Join(results...); err != nil {
		return nil, nil, err
	}
	time.Sleep(2 * time.Second) // idle
	after, err := machines()
	if err != nil {
		return nil, nil, err
	}
	for pid, m := range after {
		if _, ok := before[pid]; !ok {
			memory = append(memory, m)
		}
	}
	if len(memory) != n {
		return nil, nil, fmt.Errorf("there are %d processes of forks", len(memory))
	}
	return took, memory, nil
}

// processes are the VMM processes.
func processes() (pids []string, err error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	for _, s := range stats {
		b, _ := os.ReadFile(s) // it may have ended
		_, rest, _ := strings.Cut(string(b), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(os.Getpid()) {
			pids = append(pids, filepath.Base(filepath.Dir(s)))
		}
	}
	return pids, nil
}

// machines are those of them that have a guest.
func machines() (map[string]memoryUse, error) {
	pids, err := processes()
	found := make(map[string]memoryUse)
	for _, pid := range pids {
		if m, ok := use(pid); ok {
			found[pid] = m
		}
	}
	return found, err
}

// prepared waits until so many VMM processes are there: shells are made in the background.
func (t *trial) prepared(ctx context.Context, n int) error {
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		pids, err := processes()
		if err != nil {
			return err
		}
		if len(pids) >= n {
			return nil
		}
	}
	say("there weren't %d processes in advance", n)
	return ctx.Err()
}

// vmForks is how long n forks take of a VM without a kernel in it, with as much dirty: until all run.
func vmForks(n, dirty int) (time.Duration, error) {
	host, err := vmm.NewHost()
	if err != nil {
		return 0, err
	}
	defer host.Close()
	config := vmm.Config{Memory: 256 << 20}
	parent, err := host.New(config)
	if err != nil {
		return 0, err
	}
	defer parent.Close()
	puppet, err := vmmtest.Attach(parent)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(parent.Boot(vmmtest.Load), parent.Resume()); err != nil {
		return 0, err
	}
	if _, err := puppet.Read(vmmtest.Free); err != nil {
		return 0, err
	}
	s, err := parent.Capture(nil)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(s.Close(), puppet.Touch(vmmtest.Free, uint32(dirty<<8))); err != nil {
		return 0, err
	}
	shells := make([]*vmm.VM, n)
	for i := range shells {
		if shells[i], err = host.New(config); err != nil {
			return 0, err
		}
		defer shells[i].Close()
		if _, err := vmmtest.Attach(shells[i]); err != nil {
			return 0, err
		}
	}
	start := time.Now()
	failed, err := parent.Fork(shells, nil)
	return time.Since(start), errors.Join(append(failed, err)...)
}

// restores is the way over the disk.
func (t *trial) restores(ctx context.Context) error {
	im, _, err := t.parent.capture(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	size, err := t.save(ctx, im)
	if err != nil {
		return err
	}
	saved := time.Since(start)
	defer os.Remove(t.file)
	start = time.Now()
	if _, err := os.ReadFile(t.file); err != nil {
		return err
	}
	read := time.Since(start)
	start = time.Now()
	if im, err = t.load(ctx); err != nil {
		return err
	}
	defer im.Close()
	c, err := t.start(ctx, im, "woken")
	if err != nil {
		return err
	}
	defer c.Stop(context.WithoutCancel(ctx))
	if _, err := c.run(ctx, "true"); err != nil {
		return err
	}
	took := times{time.Since(start)}
	figure{Name: fmt.Sprintf("a sandbox from a file of %d MB to the end of the first command (written in %v)", size/1e6, ms(saved)), Ours: took.String(),
		Other: "reading the file " + times{read}.String(), Ratio: took.over(times{read}), Target: "none", Met: true}.print()
	return nil
}

// times are measurements.
type times []time.Duration

func (t times) p50() time.Duration {
	s := slices.Sorted(slices.Values(t))
	return s[len(s)/2]
}

func (t times) over(other times) float64 { return float64(t.p50()) / float64(max(other.p50(), 1)) }

func (t times) String() string {
	if len(t) == 1 {
		return ms(t[0]).String()
	}
	return fmt.Sprintf("%v (%v–%v)", ms(t.p50()), ms(slices.Min(t)), ms(slices.Max(t)))
}
