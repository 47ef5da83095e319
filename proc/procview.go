package proc

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/vfs"
)

const (
	tick     = 10 * time.Millisecond // of times in /proc
	pageSize = 4096
)

type procFile struct {
	name string
	text func(ctx context.Context, s *Sandbox, p *Process) string
}

// rootFiles are the files at the top; the first are symbolic links.
func rootFiles() []procFile {
	return []procFile{
		{"self", func(ctx context.Context, s *Sandbox, _ *Process) string {
			if p := FromContext(ctx); p != nil {
				return strconv.Itoa(p.pid)
			}
			return "1"
		}},
		{"mounts", func(context.Context, *Sandbox, *Process) string { return "self/mounts" }},
		{"cpuinfo", func(context.Context, *Sandbox, *Process) string {
			return "processor\t: 0\nvendor_id\t: AgentRun\nmodel name\t: AgentRun virtual processor\ncpu MHz\t\t: 1000.000\ncpu cores\t: 1\n\n"
		}},
		{"loadavg", func(_ context.Context, s *Sandbox, _ *Process) string {
			s.mu.Lock()
			defer s.mu.Unlock()
			return fmt.Sprintf("0.00 0.00 0.00 1/%d %d\n", len(s.procs), max(1, s.nextPid-1))
		}},
		{"meminfo", func(_ context.Context, s *Sandbox, _ *Process) string {
			total, used := s.limits.SandboxMemory>>10, s.memory.Load()>>10
			free := max(0, total-used)
			return fmt.Sprintf("MemTotal:       %8d kB\nMemFree:        %8d kB\nMemAvailable:   %8d kB\nBuffers:               0 kB\nCached:                0 kB\nSwapTotal:             0 kB\nSwapFree:              0 kB\n", total, free, free)
		}},
		{"stat", func(_ context.Context, s *Sandbox, _ *Process) string {
			user := s.cpu.Load() / int64(tick)
			return fmt.Sprintf("cpu  %d 0 0 0 0 0 0 0 0 0\ncpu0 %d 0 0 0 0 0 0 0 0 0\nbtime %d\nprocesses %d\nprocs_running 1\nprocs_blocked 0\n", user, user, s.booted.Unix(), len(s.Processes()))
		}},
		{"uptime", func(_ context.Context, s *Sandbox, _ *Process) string {
			up := s.Uptime().Seconds()
			return fmt.Sprintf("%.2f %.2f\n", up, up)
		}},
		{"version", func(context.Context, *Sandbox, *Process) string {
			return "Linux version 6.1.0-agentrun (agentrun) #1 SMP\n"
		}},
		{"filesystems", func(context.Context, *Sandbox, *Process) string { return "nodev\tproc\nnodev\ttmpfs\n" }},
	}
}

const rootLinks = 2

func pidFileList() []procFile {
	return []procFile{
		{"cmdline", func(_ context.Context, _ *Sandbox, p *Process) string {
			return strings.Join(p.Args(), "\x00") + "\x00"
		}},
		{"comm", func(_ context.Context, _ *Sandbox, p *Process) string { return p.comm() + "\n" }},
		{"environ", func(_ context.Context, _ *Sandbox, p *Process) string {
			if env := p.Environ(); len(env) > 0 {
				return strings.Join(env, "\x00") + "\x00"
			}
			return ""
		}},
		{"mounts", func(_ context.Context, s *Sandbox, _ *Process) string {
			var b strings.Builder
			for _, m := range s.ns.Mounts() {
				opt := "rw"
				if m.ReadOnly {
					opt = "ro"
				}
				fmt.Fprintf(&b, "%s %s %s %s 0 0\n", orDash(m.Source), m.Path, orDash(m.Type), opt)
			}
			return b.String()
		}},
		{"stat", func(_ context.Context, _ *Sandbox, p *Process) string { return p.statLine() }},
		{"status", func(_ context.Context, _ *Sandbox, p *Process) string { return p.statusText() }},
		{"statm", func(_ context.Context, _ *Sandbox, p *Process) string {
			pages := p.MemoryUsed() / pageSize
			return fmt.Sprintf("%d %d 0 0 0 %d 0\n", pages, pages, pages)
		}},
		{"limits", func(_ context.Context, _ *Sandbox, p *Process) string { return p.limitsText() }},
		{"cwd", func(_ context.Context, _ *Sandbox, p *Process) string { return p.Getwd() }},
		{"root", func(context.Context, *Sandbox, *Process) string { return "/" }},
		{"exe", func(_ context.Context, _ *Sandbox, p *Process) string { return p.exe() }},
	}
}

// pidLinks are those of a process's files that are symbolic links: the last of pidFileList.
const pidLinks = 3

func orDash(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func (p *Process) comm() string { return commOf(p.Args()) }

func commOf(a []string) string {
	name := "?"
	if len(a) > 0 {
		name = a[0][strings.LastIndexByte(a[0], '/')+1:]
	}
	return name[:min(15, len(name))]
}

func (p *Process) letter() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.state == zombie:
		return "Z"
	case p.stopSig != 0:
		return "T"
	case p.phase.Load() != active:
		return "S"
	}
	return "R"
}

// exe returns the path of what runs, as far as the arguments tell.
func (p *Process) exe() string {
	a := p.Args()
	if len(a) == 0 {
		return "/"
	}
	if strings.Contains(a[0], "/") {
		if a[0][0] == '/' {
			return a[0]
		}
		return strings.TrimSuffix(p.Getwd(), "/") + "/" + a[0]
	}
	if file, err := p.Find(a[0], p.Getenv("PATH")); err == nil {
		return file
	}
	return "/bin/" + a[0]
}

// statLine is /proc/PID/stat: 52 fields, of which those that a sandbox doesn't have are 0.
func (p *Process) statLine() string {
	tty, fore := 0, -1
	if t := p.TTY(); t != nil {
		t.mu.Lock()
		tty, fore = ttyMajor<<8|t.n&0xff|t.n&^0xff<<12, t.pgrp
		t.mu.Unlock()
	}
	mem := p.MemoryUsed()
	return fmt.Sprintf("%d (%s) %s %d %d %d %d %d 0 0 0 0 0 %d 0 0 0 20 0 1 0 %d %d %d %d 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 %d\n",
		p.pid, p.comm(), p.letter(), p.Ppid(), p.Pgid(), p.Sid(), tty, fore, p.CPU()/tick, p.start.Sub(p.sb.booted)/tick, mem, mem/pageSize, Unlimited, p.Status())
}

var stateNames = map[string]string{"R": "R (running)", "S": "S (sleeping)", "T": "T (stopped)", "Z": "Z (zombie)"}

func (p *Process) statusText() string {
	c := p.Cred()
	var groups strings.Builder
	for _, g := range c.Groups {
		fmt.Fprintf(&groups, "%d ", g)
	}
	p.fds.mu.Lock()
	size := max(64, len(p.fds.slots))
	p.fds.mu.Unlock()
	p.mu.Lock()
	var ignored, caught uint64
	for sig := 1; sig <= MaxSignal; sig++ {
		switch p.disp[sig] {
		case Ignore:
			ignored |= 1 << (sig - 1)
		case Handle:
			caught |= 1 << (sig - 1)
		}
	}
	pending := p.pending >> 1
	p.mu.Unlock()
	kb := p.MemoryUsed() >> 10
	return fmt.Sprintf("Name:\t%s\nUmask:\t%04o\nState:\t%s\nTgid:\t%d\nPid:\t%d\nPPid:\t%d\nTracerPid:\t0\nUid:\t%d\t%d\t%d\t%d\nGid:\t%d\t%d\t%d\t%d\nFDSize:\t%d\nGroups:\t%s\n"+
		"VmPeak:\t%8d kB\nVmSize:\t%8d kB\nVmHWM:\t%8d kB\nVmRSS:\t%8d kB\nThreads:\t1\nSigPnd:\t%016x\nShdPnd:\t%016x\nSigBlk:\t%016x\nSigIgn:\t%016x\nSigCgt:\t%016x\n",
		p.comm(), c.Umask, stateNames[p.letter()], p.pid, p.pid, p.Ppid(), c.UID, c.UID, c.UID, c.UID, c.GID, c.GID, c.GID, c.GID, size, groups.String(),
		kb, kb, kb, kb, pending, 0, 0, ignored, caught)
}

// limitNames are in the kernel's order.
var limitNames = [NLimits][2]string{{"cpu time", "seconds"}, {"file size", "bytes"}, {"data size", "bytes"}, {"stack size", "bytes"}, {"core file size", "bytes"}, {"resident set", "bytes"},
	{"processes", "processes"}, {"open files", "files"}, {"locked memory", "bytes"}, {"address space", "bytes"}, {"file locks", "locks"}, {"pending signals", "signals"},
	{"msgqueue size", "bytes"}, {"nice priority", ""}, {"realtime priority", ""}, {"realtime timeout", "us"}}

func (p *Process) limitsText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-25s %-20s %-20s %-10s\n", "Limit", "Soft Limit", "Hard Limit", "Units")
	show := func(v uint64) string {
		if v == Unlimited {
			return "unlimited"
		}
		return strconv.FormatUint(v, 10)
	}
	for i, n := range limitNames {
		l, _ := p.Rlimit(i)
		fmt.Fprintf(&b, "%-25s %-20s %-20s %-10s\n", "Max "+n[0], show(l.Soft), show(l.Hard), n[1])
	}
	return b.String()
}

// target is what a descriptor's link in /proc leads to.
func (d *description) target() string {
	if d.path != "" {
		return d.path
	}
	switch f := d.file.(type) {
	case *pipeEnd:
		return fmt.Sprintf("pipe:[%d]", f.pipe.id)
	case *socket:
		return fmt.Sprintf("socket:[%d]", f.id)
	case *ttyFile:
		return f.t.Name()
	case *memFile:
		return "/memfd:text (deleted)"
	case interface{ Path() string }:
		return f.Path()
	case *Input, *Output:
		return "pipe:[0]"
	case vfs.File:
		return "anon_inode:[file]"
	}
	return ""
}
