package agent

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/guest/wire"
)

// process is one as /proc has it.
type process struct {
	pid, parent, session int
	state                byte
	name                 string
	uid                  uint32
	cpu                  time.Duration
	memory               int64
}

// tick is the unit of times in /proc: USER_HZ, which is 100 on every architecture that we know.
const tick = 10 * time.Millisecond

// processes reads all of /proc.
func processes() ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, errs.New(errs.Unavailable, "stats", "", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, errs.New(errs.Unavailable, "stats", "", err)
	}
	var all []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b process) int { return a.pid - b.pid })
	return all, nil
}

// readProcess reads one; it may have ended.
func readProcess(pid int) (process, bool) {
	p := process{pid: pid}
	file := fmt.Sprintf("/proc/%d/stat", pid)
	b, err := os.ReadFile(file)
	if err != nil {
		return p, false
	}
	// pid (name) state ppid pgrp session …: a name may hold anything, even ") ".
	open, shut := strings.IndexByte(string(b), '('), strings.LastIndexByte(string(b), ')')
	if open < 0 || shut < open {
		return p, false
	}
	f := strings.Fields(string(b[shut+1:]))
	if len(f) < 22 {
		return p, false
	}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(f[i], 10, 64)
		return n
	}
	p.name, p.state, p.parent, p.session = string(b[open+1:shut]), f[0][0], int(number(1)), int(number(3))
	p.cpu = time.Duration(number(11)+number(12)) * tick
	p.memory = number(21) * int64(os.Getpagesize())
	if info, err := os.Stat(file); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			p.uid = st.Uid
		}
	}
	return p, true
}

// maxProcesses is how many Stats tells of.
const maxProcesses = 400

func (a *Agent) stats() (wire.Stats, error) {
	u, err := a.o.Workload.Usage()
	if err != nil {
		return wire.Stats{}, err
	}
	pids, err := a.o.Workload.Pids()
	if err != nil {
		return wire.Stats{}, err
	}
	st := wire.Stats{CPU: u.CPU, Memory: u.Memory, MemoryPeak: u.MemoryPeak, Count: len(pids), Processes: []wire.Process{}}
	slices.Sort(pids)
	for _, pid := range pids[:min(len(pids), maxProcesses)] {
		if p, ok := readProcess(pid); ok {
			st.Processes = append(st.Processes, wire.Process{Pid: p.pid, Parent: p.parent, UID: p.uid, Name: wire.Text(p.name), Memory: p.memory, CPU: p.cpu})
		}
	}
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return st, errs.New(errs.Unavailable, "stats", "", err)
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		n, _ := strconv.ParseInt(f[1], 10, 64)
		switch f[0] {
		case "MemTotal:":
			st.MemoryTotal = n << 10
		case "MemAvailable:":
			st.MemoryFree = n << 10
		}
	}
	return st, nil
}
