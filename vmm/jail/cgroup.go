package jail

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
)

// Groups is a directory of control groups (cgroup v2), in which each VMM process gets a group of its own.
type Groups struct {
	dir         string
	memory, pid bool // controllers that there are
}

// Limits of a process, by its control group.
type Limits struct {
	// Memory is in bytes; 0 is eight times the VM's RAM, its overlays and 256 MiB. What counts is the RAM that the VM doesn't share,
	// and the layers of its snapshots as long as somebody holds them: a VM that reaches the limit is killed.
	Memory uint64
	// Threads is how many the process may have; 0 is 256 and eight for each vCPU.
	Threads int
}

const (
	groupMemory  = 256 << 20
	groupFactor  = 8
	groupThreads = 256
)

// OwnGroups makes groups below the one that this process is in, if that may be done.
func OwnGroups() (*Groups, error) {
	fail := func(err error) (*Groups, error) {
		return nil, errs.New(errs.Unavailable, "vmm process", "control groups", err).
			WithHint("they need a cgroup v2 hierarchy that may be written to, such as of a systemd unit with Delegate=yes")
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return fail(err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fail(err)
	}
	at, ok := "", false
	for line := range strings.Lines(string(mounts)) {
		if head, tail, _ := strings.Cut(line, " - "); strings.HasPrefix(tail, "cgroup2 ") {
			if f := strings.Fields(head); len(f) > 4 && f[3] == "/" {
				at, ok = f[4], true
				break
			}
		}
	}
	for line := range strings.Lines(string(own)) {
		if path, is := strings.CutPrefix(strings.TrimSpace(line), "0::"); is && ok {
			parent := filepath.Join(at, path)
			enable(parent) // what it can't, the groups won't have
			return OpenGroups(filepath.Join(parent, "agentrun-vms"))
		}
	}
	return fail(errors.New("there is no cgroup v2"))
}

// OpenGroups makes groups in a directory of cgroup v2, which is made if it isn't there, and in which no process may be. Unavailable
// is a place that can't limit memory or processes.
func OpenGroups(dir string) (*Groups, error) {
	var fs unix.Statfs_t
	err := unix.Statfs(filepath.Dir(dir), &fs)
	if err == nil && fs.Type != unix.CGROUP2_SUPER_MAGIC {
		err = fmt.Errorf("%s isn't in a hierarchy of cgroup v2", dir)
	}
	if err == nil {
		err = os.Mkdir(dir, 0o755)
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return nil, errs.New(errs.Unavailable, "vmm process", "control groups", err)
	}
	g := &Groups{dir: dir}
	g.memory, g.pid = enable(dir)
	if !g.memory && !g.pid {
		return nil, errs.Msg(errs.Unavailable, "vmm process", "control groups", dir+" has no controllers of memory and processes")
	}
	return g, nil
}

// enable lets the groups in a directory have limits.
func enable(dir string) (memory, pids bool) {
	on := func(name string) bool { return write(dir, "cgroup.subtree_control", "+"+name) == nil }
	return on("memory"), on("pids")
}

// write sets a value of a group.
func write(dir, name, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// group is a process's.
type group struct {
	path string
	dir  *os.File
}

// make makes the group of a process.
func (g *Groups) make(o *Options) (*group, error) {
	path, err := os.MkdirTemp(g.dir, "vm-")
	if err != nil {
		return nil, errs.New(errs.Other, "vmm process", "control group", err)
	}
	n := &group{path: path}
	set := func(name, value string) {
		if err == nil {
			err = write(path, name, value)
		}
	}
	vcpus := max(o.Config.VCPUs, 1)
	if g.pid {
		threads := o.Limits.Threads
		if threads == 0 {
			threads = groupThreads + 8*vcpus
		}
		set("pids.max", strconv.Itoa(threads))
	}
	if g.memory {
		memory := o.Limits.Memory
		if memory == 0 {
			memory = groupFactor*o.Config.Memory + groupMemory
			for _, d := range o.Devices.Disks {
				memory += d.Overlay
			}
		}
		set("memory.max", strconv.FormatUint(memory, 10))
		set("memory.oom.group", "1")
	}
	if err == nil {
		n.dir, err = os.Open(path)
	}
	if err != nil {
		n.close()
		return nil, errs.New(errs.Other, "vmm process", "control group", err)
	}
	return n, nil
}

// events says what became of the limits, for an error's text.
func (g *group) events() string {
	if g == nil {
		return ""
	}
	b, _ := os.ReadFile(filepath.Join(g.path, "memory.events")) // not there without the controller
	for line := range strings.Lines(string(b)) {
		if name, n, _ := strings.Cut(strings.TrimSpace(line), " "); name == "oom_kill" && n != "0" {
			return "; it had reached the limit of its memory"
		}
	}
	return ""
}

// close removes the group. Its process has ended, and nobody else can have joined it; the kernel may still be busy with that.
func (g *group) close() {
	if g == nil {
		return
	}
	if g.dir != nil {
		g.dir.Close()
	}
	for wait := time.Millisecond; wait < time.Second; wait *= 2 {
		if err := unix.Rmdir(g.path); err != unix.EBUSY && err != unix.EINTR {
			return
		}
		time.Sleep(wait)
	}
}

// fd is what a process is born into the group with; 0 for none.
func (g *group) fd() int {
	if g == nil {
		return 0
	}
	return int(g.dir.Fd())
}

func (g *Groups) String() string {
	return fmt.Sprintf("%s (memory: %t, processes: %t)", g.dir, g.memory, g.pid)
}
