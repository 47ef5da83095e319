package jail_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/jail"
	"agentrun.dev/vmm/vmmtest"
)

// fds are this process's descriptors, or another's.
func fds(t *testing.T, pid int) int {
	t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	must(t, err)
	return len(list)
}

// leaves checks that what f does leaves nothing here: neither descriptors nor files in memory, goroutines, processes, or mounts.
func leaves(t *testing.T, p *jail.Process, f func()) {
	t.Helper()
	before := held(t, p.PID())
	f()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		after := held(t, p.PID())
		if after.fds <= before.fds && after.memory <= before.memory && after.goroutines <= before.goroutines && after.children <= before.children && after.mounts <= before.mounts {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%+v became %+v; open: %q", before, after, names())
		}
	}
}

// names are what this process has open.
func names() (out []string) {
	list, _ := os.ReadDir("/proc/self/fd")
	for _, e := range list {
		to, _ := os.Readlink("/proc/self/fd/" + e.Name())
		out = append(out, e.Name()+" "+to)
	}
	return out
}

// scarce lets this process have n more descriptors, until the test or give ends.
func scarce(t *testing.T, n int) (give func()) {
	t.Helper()
	var old unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	most := 0 // the highest that is open: the limit is one of numbers
	list, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for _, e := range list {
		var fd int
		if _, err := fmt.Sscan(e.Name(), &fd); err == nil {
			most = max(most, fd)
		}
	}
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(most + 1 + n), Max: old.Max}))
	var fill []int
	for {
		fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			break
		}
		fill = append(fill, fd)
	}
	for range min(n, len(fill)) {
		unix.Close(fill[len(fill)-1])
		fill = fill[:len(fill)-1]
	}
	return func() {
		for _, fd := range fill {
			unix.Close(fd)
		}
		must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old))
	}
}

// running is a guest that runs, and answers keys.
func running(t *testing.T, d jail.Devices) (*jail.Process, jail.Options) {
	t.Helper()
	w, until := console(t)
	o := options(w, 0) // limits may be set of processes of the same user
	o.Devices = d
	p := start(t, o)
	must(t, p.Boot(limit(t), kernel(t), nil, "quiet"))
	must(t, p.Resume(limit(t)))
	until("up")
	o.Console = nil
	return p, o
}

// imageOf captures a VM, which goes on.
func imageOf(t *testing.T, p *jail.Process) *jail.Image {
	t.Helper()
	s, err := p.Capture(t.Context())
	must(t, err)
	must(t, p.Thaw(t.Context()))
	im, err := jail.NewImage(s)
	must(t, err)
	must(t, s.Close())
	return im
}

// forkOnce forks a VM into one child, which runs, and ends it. What was begun is ended, also after an error.
func forkOnce(ctx context.Context, p *jail.Process, o jail.Options) (err error) {
	s, err := p.Capture(ctx)
	if thawed := p.Thaw(ctx); thawed != nil {
		return fmt.Errorf("the parent doesn't go on: %w", thawed)
	}
	if err != nil {
		return err
	}
	im, err := jail.NewImage(s)
	s.Close()
	if err != nil {
		return err
	}
	defer im.Close()
	c, err := jail.Start(ctx, o)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Run(ctx, im); err != nil {
		return err
	}
	if err := c.Input(ctx, []byte("x")); err != nil {
		return err
	}
	return c.Wait(ctx)
}

// A fork in a process that runs out of descriptors, wherever it does, fails as a whole and says why; the VM runs on, and is forked
// when there are some.
func TestNoDescriptors(t *testing.T) {
	vmmtest.Host(t)
	p, o := running(t, jail.Devices{CID: 3, Disks: []jail.Disk{{Overlay: mib}}, Shares: []string{"files", "more"}, RNG: true})
	failed, worked := 0, false
	for n := 0; !worked && n < 100; n++ {
		leaves(t, p, func() {
			give := scarce(t, n)
			err := forkOnce(t.Context(), p, o)
			give()
			switch {
			case err == nil:
				worked = true
			case !errs.Is(err, errs.Limit):
				t.Errorf("with %d descriptors: %v (%v)", n, err, errs.KindOf(err))
			default:
				failed++
			}
		})
		if t.Failed() {
			break
		}
	}
	if failed < 10 || !worked {
		t.Errorf("%d forks failed, then one worked: %t", failed, worked)
	}
	must(t, forkOnce(t.Context(), p, o))
}

// A VMM that runs out of descriptors when its VM is captured says so, and goes on; so does one that is to be a child, which can be
// thrown away.
func TestNoDescriptorsInside(t *testing.T) {
	vmmtest.Host(t)
	p, o := running(t, jail.Devices{CID: 3, Disks: []jail.Disk{{Overlay: mib}}, RNG: true})
	inside := func(q *jail.Process, n int) (give func()) {
		var old unix.Rlimit
		must(t, unix.Prlimit(q.PID(), unix.RLIMIT_NOFILE, nil, &old))
		must(t, unix.Prlimit(q.PID(), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(n), Max: old.Max}, nil))
		return func() { must(t, unix.Prlimit(q.PID(), unix.RLIMIT_NOFILE, &old, nil)) }
	}
	failed := 0
	for n := range 12 {
		leaves(t, p, func() {
			give := inside(p, fds(t, p.PID())-4+n)
			s, err := p.Capture(t.Context())
			give()
			must(t, p.Thaw(t.Context()))
			switch {
			case err == nil:
				must(t, s.Close())
			case !errs.Is(err, errs.Limit):
				t.Errorf("a capture with %d descriptors more: %v (%v)", n-4, err, errs.KindOf(err))
			default:
				failed++
			}
		})
	}
	if failed == 0 {
		t.Error("every capture worked")
	}
	im := imageOf(t, p)
	failed = 0
	for n := range 12 {
		leaves(t, p, func() {
			c, err := jail.Start(t.Context(), o)
			must(t, err)
			inside(c, fds(t, c.PID())-4+n)
			if err = c.Run(t.Context(), im); err != nil {
				failed++
				if !errs.Is(err, errs.Limit) {
					t.Errorf("a child with %d descriptors more: %v (%v)", n-4, err, errs.KindOf(err))
				}
			}
			must(t, c.Close())
		})
	}
	if failed == 0 {
		t.Error("every child worked")
	}
	must(t, im.Close())
	must(t, forkOnce(t.Context(), p, o))
}

// Where the host has no memory left for a VMM, the VM at worst ends, with an error; its neighbour, and who started both, go on.
func TestNoMemory(t *testing.T) {
	vmmtest.Host(t)
	p, o := running(t, jail.Devices{Disks: []jail.Disk{{Overlay: mib}}})
	im := imageOf(t, p)
	leaves(t, p, func() {
		c, err := jail.Start(t.Context(), o)
		must(t, err)
		must(t, unix.Prlimit(c.PID(), unix.RLIMIT_AS, &unix.Rlimit{Cur: mib, Max: mib}, nil))
		if err := c.Run(t.Context(), im); !errs.Is(err, errs.Limit) && !errs.Is(err, errs.Unavailable) {
			t.Errorf("a child: %v (%v)", err, errs.KindOf(err))
		}
		must(t, c.Close())
	})
	leaves(t, p, func() {
		c, err := jail.Start(t.Context(), o)
		must(t, err)
		must(t, c.Run(t.Context(), im))
		must(t, unix.Prlimit(c.PID(), unix.RLIMIT_AS, &unix.Rlimit{Cur: mib, Max: mib}, nil))
		again, err := c.Capture(t.Context())
		if err == nil {
			must(t, again.Close())
		} else if !errs.Is(err, errs.Limit) && !errs.Is(err, errs.Unavailable) {
			t.Errorf("a capture: %v (%v)", err, errs.KindOf(err))
		}
		must(t, c.Close())
	})
	must(t, im.Close())
	must(t, forkOnce(t.Context(), p, o))
}

// Where a VMM can't make or fill the files that a snapshot is made of (here they may have so many bytes; no memory left for them fails at the
// same calls), its VM isn't captured, there is no child, and it goes on; when it can again, the fork has all that was written meanwhile.
func TestNoSpace(t *testing.T) {
	vmmtest.Host(t)
	p, o := running(t, jail.Devices{CID: 3, Disks: []jail.Disk{{Overlay: mib}}, RNG: true})
	bound := func(q *jail.Process, n uint64) (give func()) {
		var old unix.Rlimit
		must(t, unix.Prlimit(q.PID(), unix.RLIMIT_FSIZE, nil, &old))
		must(t, unix.Prlimit(q.PID(), unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: n, Max: old.Max}, nil))
		return func() { must(t, unix.Prlimit(q.PID(), unix.RLIMIT_FSIZE, &old, nil)) }
	}
	fails := func(what string, n uint64) {
		t.Helper()
		leaves(t, p, func() {
			give := bound(p, n)
			err := forkOnce(t.Context(), p, o)
			give()
			if !errs.Is(err, errs.Limit) {
				t.Errorf("%s, with files of %d bytes: %v (%v)", what, n, err, errs.KindOf(err))
			}
		})
	}
	fails("the first capture, which seals what there is and writes its state", 4097)
	for _, n := range []uint64{0, 4096, mib, o.Config.Memory - 1} { // a layer has the size of the RAM
		fails("a capture", n)
	}
	must(t, forkOnce(t.Context(), p, o))
	im := imageOf(t, p)
	leaves(t, p, func() { // a child needs no file, until it is captured itself
		c, err := jail.Start(t.Context(), o)
		must(t, err)
		give := bound(c, 0)
		must(t, c.Run(t.Context(), im))
		if err := forkOnce(t.Context(), c, o); !errs.Is(err, errs.Limit) {
			t.Errorf("a fork of a child: %v (%v)", err, errs.KindOf(err))
		}
		give()
		must(t, forkOnce(t.Context(), c, o))
		must(t, c.Close())
	})
	must(t, im.Close())
	vmlinux := kernel(t)
	leaves(t, p, func() { // nor is a kernel booted
		c, err := jail.Start(t.Context(), o)
		must(t, err)
		bound(c, mib)
		if err := c.Boot(t.Context(), vmlinux, nil, "quiet"); !errs.Is(err, errs.Limit) {
			t.Errorf("a boot: %v (%v)", err, errs.KindOf(err))
		}
		must(t, c.Close())
	})
	must(t, forkOnce(t.Context(), p, o))
}

// A process that dies somewhere in a fork is an error that says so, and nothing of it is left; others go on.
func TestKilledInFork(t *testing.T) {
	vmmtest.Host(t)
	p, o := running(t, jail.Devices{CID: 3, Shares: []string{"files"}, RNG: true})
	im := imageOf(t, p)
	kill := func(c *jail.Process) { must(t, unix.Kill(c.PID(), unix.SIGKILL)) }
	for name, f := range map[string]func(c *jail.Process) error{
		"a shell":           func(c *jail.Process) error { kill(c); return c.Run(limit(t), im) },
		"after its restore": func(c *jail.Process) error { must(t, c.Restore(limit(t), im)); kill(c); return c.Resume(limit(t)) },
		"when it runs":      func(c *jail.Process) error { must(t, c.Run(limit(t), im)); kill(c); return c.Wait(limit(t)) },
		"before its capture": func(c *jail.Process) error {
			must(t, c.Run(limit(t), im))
			kill(c)
			_, err := c.Capture(limit(t))
			return err
		},
		"while it is dialled": func(c *jail.Process) error {
			must(t, c.Run(limit(t), im))
			kill(c)
			_, err := c.Dial(limit(t), 1)
			return err
		},
	} {
		leaves(t, p, func() {
			c, err := jail.Start(limit(t), o)
			must(t, err)
			if err := f(c); !errs.Is(err, errs.Unavailable) {
				t.Errorf("%s: %v", name, err)
			}
			must(t, c.Close())
		})
	}
	for i := range 20 { // while it is captured
		leaves(t, p, func() {
			c, err := jail.Start(limit(t), o)
			must(t, err)
			must(t, c.Run(limit(t), im))
			done := make(chan error, 1)
			go func() {
				s, err := c.Capture(context.Background())
				if err == nil {
					err = s.Close()
				} else if errs.Is(err, errs.Unavailable) {
					err = nil
				}
				done <- err
			}()
			time.Sleep(time.Duration(i) * 50 * time.Microsecond) // somewhere in it
			kill(c)
			if err := <-done; err != nil {
				t.Errorf("a capture: %v", err)
			}
			must(t, c.Close())
		})
	}
	must(t, im.Close())
	must(t, forkOnce(t.Context(), p, o))
}
