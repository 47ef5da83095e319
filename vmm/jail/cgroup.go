package jail

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/vmm"
)

// Groups is a directory of control groups (cgroup v2), in which each VMM process gets a group of its own.
type Groups struct {
	dir              string
	memory, pid, cpu bool // controllers that there are
}

// Limits of a process, by its control group.
type Limits struct {
	// Memory is in bytes; 0 is the VM's RAM, its overlays and 256 MiB. What counts is the RAM that the VM doesn't share, and the
	// layers of its snapshots as long as somebody holds them: so a Capture raises the limit to what there is then and the RAM once
	// more, within 64 times the limit. A VM that reaches it is killed.
	Memory uint64
	// Threads is how many the process may have; 0 is 256 and eight for each vCPU.
	Threads int
	// CPU is in thousandths of a processor; 0 is the VM's vCPUs, and half a processor for what its devices do meanwhile.
	CPU int
}

const (
	groupMemory  = 256 << 20
	groupGrowth  = 64 // times the first limit
	groupThreads = 256
	groupDevices = 500             // thousandths of a processor
	groupPeriod  = 100_000         // microseconds
	groupHost    = "agentrun-host" // where this process goes, if it is in the way
	groupAll     = "agentrun-vms"  // where the groups are
	groupPrefix  = "vm-"           // of each, then the number of the process that made it
)

// OwnGroups makes groups below the one that this process is in, if that may be done. A group with limits for others can't have
// processes itself: this process goes into one of its own beside them, if it has to.
func OwnGroups() (*Groups, error) {
	at, err := ownGroup()
	if err == nil && filepath.Base(at) == groupHost {
		at = filepath.Dir(at) // that was done before
	}
	if err == nil {
		err = delegate(at)
	}
	if err != nil {
		return nil, errs.New(errs.Unavailable, "vmm process", "control groups", err).WithHint(groupsHint)
	}
	g, err := OpenGroups(filepath.Join(at, groupAll))
	if err != nil {
		return nil, errs.New(errs.Unavailable, "vmm process", "control groups", errors.Unwrap(err)).WithHint(groupsHint)
	}
	return g, nil
}

// delegate hands the controllers of a group down. All at once: with those alone that threads of a group could compete for, its groups would be
// such as no process can be in.
func delegate(at string) error {
	b, err := os.ReadFile(filepath.Join(at, "cgroup.controllers"))
	if err != nil {
		return err
	}
	all := ""
	for _, name := range controllers {
		if slices.Contains(strings.Fields(string(b)), name) {
			all += " +" + name
		}
	}
	on := func() error { return write(at, "cgroup.subtree_control", strings.TrimSpace(all)) }
	if err = on(); err == nil {
		return nil
	}
	leaf := filepath.Join(at, groupHost)
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	defer unix.Rmdir(leaf) // unless it is in use
	if err := write(leaf, "cgroup.procs", "0"); err != nil {
		return err
	}
	if err = on(); err != nil { // others are in the way, too
		_ = write(at, "cgroup.procs", "0")
	}
	return err
}

// controllers are those that bound a process.
var controllers = [...]string{"memory", "pids", "cpu"}

const groupsHint = "they need a hierarchy of cgroup v2 that may be written to, such as of a systemd unit with Delegate=yes"

// ownGroup is the directory of this process's group.
func ownGroup() (string, error) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	at := ""
	for line := range strings.Lines(string(mounts)) {
		if head, tail, _ := strings.Cut(line, " - "); strings.HasPrefix(tail, "cgroup2 ") {
			if f := strings.Fields(head); len(f) > 4 && f[3] == "/" {
				at = f[4]
				break
			}
		}
	}
	for line := range strings.Lines(string(own)) {
		if path, is := strings.CutPrefix(strings.TrimSpace(line), "0::"); is && at != "" {
			return filepath.Join(at, path), nil
		}
	}
	return "", errors.New("there is no cgroup v2")
}

// ExamineGroups looks at whether OwnGroups could make groups for a process like this one, and changes nothing.
func ExamineGroups() vmm.Finding {
	f := vmm.Finding{Name: "control groups", Hint: groupsHint}
	at, err := ownGroup()
	if err == nil {
		err = unix.Access(at, unix.W_OK)
	}
	var have []byte
	if err == nil {
		have, err = os.ReadFile(filepath.Join(at, "cgroup.controllers"))
	}
	if err != nil {
		f.Text = fmt.Sprintf("VMM processes run without limits of memory, threads and processors: %v", err)
		return f
	}
	var lack []string
	for _, name := range controllers {
		if !slices.Contains(strings.Fields(string(have)), name) {
			lack = append(lack, name)
		}
	}
	if len(lack) > 0 {
		f.Text = fmt.Sprintf("%s has no %s: VMM processes run without limits of it", at, strings.Join(lack, ", "))
		return f
	}
	f.OK, f.Hint, f.Text = true, "", "each VMM process gets limits of memory, threads and processors"
	return f
}

// OpenGroups makes groups in a directory of cgroup v2, which is made if it isn't there, and in which no process may be. Groups that a
// process left there that has died are removed. Unavailable is a place that can't limit memory or processes.
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
	g := enable(dir)
	if !g.memory && !g.pid {
		_ = unix.Rmdir(dir) // unless somebody uses it
		return nil, errs.Msg(errs.Unavailable, "vmm process", "control groups", dir+" has no controllers of memory and processes")
	}
	g.sweep()
	return g, nil
}

// enable lets the groups in a directory have limits.
func enable(dir string) *Groups {
	on := func(name string) bool { return write(dir, "cgroup.subtree_control", "+"+name) == nil }
	return &Groups{dir: dir, memory: on("memory"), pid: on("pids"), cpu: on("cpu")}
}

// sweep removes groups without processes whose maker isn't there any more.
func (g *Groups) sweep() {
	left, _ := filepath.Glob(filepath.Join(g.dir, groupPrefix+"*")) // the pattern is a good one
	for _, path := range left {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), groupPrefix), "-")
		if n, err := strconv.Atoi(pid); err == nil && n > 0 && unix.Kill(n, 0) == unix.ESRCH {
			_ = unix.Rmdir(path) // one with processes stays
		}
	}
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
	path   string
	dir    *os.File
	memory uint64 // its first limit; 0: none
}

// make makes the group of a process.
func (g *Groups) make(o *Options) (*group, error) {
	path, err := os.MkdirTemp(g.dir, groupPrefix+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return nil, errs.New(hostKind(err), "vmm process", "control group", err)
	}
	n := &group{path: path}
	set := func(name, value string) {
		if err == nil {
			err = write(path, name, value)
		}
	}
	vcpus := max(o.Config.VCPUs, 1)
	if g.pid {
		set("pids.max", strconv.Itoa(cmp.Or(o.Limits.Threads, groupThreads+8*vcpus)))
	}
	if g.memory {
		if n.memory = o.Limits.Memory; n.memory == 0 {
			n.memory = o.Config.Memory + groupMemory
			for _, d := range o.Devices.Disks {
				n.memory += d.Overlay
			}
		}
		set("memory.max", strconv.FormatUint(n.memory, 10))
		set("memory.oom.group", "1")
	}
	if g.cpu {
		set("cpu.max", fmt.Sprint(cmp.Or(o.Limits.CPU, 1000*vcpus+groupDevices)*(groupPeriod/1000), groupPeriod))
	}
	if err == nil {
		n.dir, err = os.Open(path)
	}
	if err != nil {
		n.close()
		return nil, errs.New(hostKind(err), "vmm process", "control group", err)
	}
	return n, nil
}

// grow makes room for one more copy of what may have been written to the RAM: a layer, which others hold too.
func (g *group) grow(ram uint64) {
	if g == nil || g.memory == 0 {
		return
	}
	b, err := os.ReadFile(filepath.Join(g.path, "memory.current"))
	if err != nil {
		return // it has ended
	}
	now, _ := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	_ = write(g.path, "memory.max", strconv.FormatUint(min(max(g.memory, now+ram), groupGrowth*g.memory), 10)) // else it stays as it was
}

// events says what became of the limits, for an error's text.
func (g *group) events() string {
	if g == nil {
		return ""
	}
	b, _ := os.ReadFile(filepath.Join(g.path, "memory.events")) // not there without the controller
	count := make(map[string]string)
	for line := range strings.Lines(string(b)) {
		name, n, _ := strings.Cut(strings.TrimSpace(line), " ")
		count[name] = n
	}
	switch {
	case count["oom_kill"] == "" || count["oom_kill"] == "0":
		return ""
	case count["oom"] == "0":
		return "; it was killed since the host, or what all VMs may have of it, had run out of memory"
	}
	return "; it had reached the limit of its memory"
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
	return fmt.Sprintf("%s (memory: %t, processes: %t, processors: %t)", g.dir, g.memory, g.pid, g.cpu)
}
