package jail_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentrun.dev/vmm/jail"
	"agentrun.dev/vmm/vmmtest"
)

// holding is what this process and a VMM hold of the host.
type holding struct {
	fds, memory, goroutines, children, mounts int
	vmmFDs, vmmMaps, vmmThreads               int
}

// held counts it.
func held(t *testing.T, vmm int) (h holding) {
	t.Helper()
	lines := func(file string) int {
		b, err := os.ReadFile(file)
		must(t, err)
		return bytes.Count(b, []byte("\n"))
	}
	entries := func(dir string) []os.DirEntry {
		list, err := os.ReadDir(dir)
		must(t, err)
		return list
	}
	for _, e := range entries("/proc/self/fd") {
		h.fds++
		if to, _ := os.Readlink("/proc/self/fd/" + e.Name()); strings.HasPrefix(to, "/memfd:") {
			h.memory++
		}
	}
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	must(t, err)
	for _, task := range tasks {
		b, _ := os.ReadFile(task) // the thread may be gone
		h.children += len(bytes.Fields(b))
	}
	h.goroutines, h.mounts = runtime.NumGoroutine(), lines("/proc/self/mountinfo")
	of := fmt.Sprintf("/proc/%d/", vmm)
	h.vmmFDs, h.vmmMaps, h.vmmThreads = len(entries(of+"fd")), lines(of+"maps"), len(entries(of+"task"))
	return h
}

// A VM is forked into processes that end again, in each way, many times: 1,000 times in `make soak`. Nothing is left of them here, nor in
// the process of the VM that was forked.
func TestNothingLeaks(t *testing.T) {
	vmmtest.Host(t)
	forks := 24
	if n, err := strconv.Atoi(os.Getenv("AGENTRUN_VM_FORKS")); err == nil && n > 0 {
		forks = n
	}
	uid := 0
	if os.Getuid() == 0 {
		uid = 61234
	}
	w, until := console(t)
	o := options(w, uid)
	o.Devices = jail.Devices{CID: 3, Disks: []jail.Disk{{Overlay: mib}}, Shares: []string{"files"}, RNG: true}
	p := start(t, o)
	must(t, p.Boot(limit(t), kernel(t), nil, "quiet"))
	must(t, p.Resume(limit(t)))
	until("up")
	o.Console = nil
	fork := func(i int) {
		s, err := p.Capture(t.Context())
		must(t, err)
		im, err := jail.NewImage(s)
		must(t, err)
		must(t, s.Close())
		must(t, p.Thaw(t.Context()))
		c, err := jail.Start(t.Context(), o)
		must(t, err)
		switch i % 4 {
		case 0: // never used
		case 1: // ends by itself
			must(t, c.Run(t.Context(), im))
			must(t, c.Input(t.Context(), []byte("x")))
			must(t, c.Wait(t.Context()))
		case 2: // is forked itself
			must(t, c.Run(t.Context(), im))
			again, err := c.Capture(t.Context())
			must(t, err)
			must(t, again.Close())
		case 3: // dies
			must(t, c.Run(t.Context(), im))
			must(t, unix.Kill(c.PID(), unix.SIGKILL))
			if err := c.Wait(t.Context()); err == nil {
				t.Error("a process that was killed has ended well")
			}
		}
		must(t, c.Close())
		must(t, im.Close())
	}
	for i := range 8 {
		fork(i)
	}
	before := held(t, p.PID())
	for i := range forks {
		fork(i)
	}
	var after holding
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		after = held(t, p.PID())
		// The VM's own layers come and go: at most 64 of them, each a descriptor and some mappings. Its process may have a thread or two more.
		if after.fds <= before.fds && after.memory <= before.memory && after.goroutines <= before.goroutines && after.children <= before.children &&
			after.mounts <= before.mounts && after.vmmFDs <= before.vmmFDs+64 && after.vmmMaps <= before.vmmMaps+256 && after.vmmThreads <= before.vmmThreads+8 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%+v became %+v", before, after)
		}
	}
	t.Logf("%d forks: %+v became %+v", forks, before, after)
}
