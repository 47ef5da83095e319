package system

import (
	"sort"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/command/tool"
)

// maxProcFile bounds what is read of a file in /proc.
const maxProcFile = 1 << 20

// process is what /proc tells about one.
type process struct {
	pid, ppid, pgrp, session, tpgid int
	uid, euid, gid, egid            uint32
	state                           string
	comm, args                      string
	argv                            []string
	tty                             string // without /dev/; "?" is none
	cpu                             time.Duration
	start                           time.Time
	vsz, rss                        uint64 // bytes
	threads                         int
	nice                            int
}

// tick is the unit of times in /proc.
const tick = 10 * time.Millisecond

// processes lists the sandbox's processes by number.
func processes(t *tool.T) []*process {
	entries, err := t.ReadDir("/proc")
	if err != nil {
		t.Fatal(1, "/proc: %s", tool.Strerror(err))
	}
	booted := t.Sandbox().Now().Add(-t.Sandbox().Uptime())
	var list []*process
	for _, e := range entries {
		if t.Step(1) != nil {
			t.Check()
		}
		if pid, err := strconv.Atoi(e.Name); err == nil {
			if p := readProcess(t, pid, booted); p != nil {
				list = append(list, p)
			}
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].pid < list[j].pid })
	return list
}

// readProcess reads one; nil if it is gone.
func readProcess(t *tool.T, pid int, booted time.Time) *process {
	dir := "/proc/" + strconv.Itoa(pid) + "/"
	stat, err := t.ReadFile(dir+"stat", maxProcFile)
	if err != nil {
		return nil
	}
	open, end := strings.IndexByte(string(stat), '('), strings.LastIndexByte(string(stat), ')')
	if open < 0 || end < open {
		return nil
	}
	p := &process{pid: pid, comm: string(stat[open+1 : end]), tty: "?"}
	f := strings.Fields(string(stat[end+1:]))
	if len(f) < 22 {
		return nil
	}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(f[i], 10, 64)
		return n
	}
	p.state = f[0]
	p.ppid, p.pgrp, p.session, p.tpgid = int(number(1)), int(number(2)), int(number(3)), int(number(5))
	p.cpu = time.Duration(number(11)+number(12)) * tick
	p.nice, p.threads = int(number(16)), int(max(number(17), 1))
	p.start = booted.Add(time.Duration(number(19)) * tick)
	p.vsz, p.rss = uint64(max(number(20), 0)), uint64(max(number(21), 0))*4096
	if number(4) != 0 {
		p.tty = ttyName(t, pid, number(4))
	}
	if cmdline, err := t.ReadFile(dir+"cmdline", maxProcFile); err == nil && len(cmdline) > 0 {
		p.argv = strings.Split(strings.TrimSuffix(string(cmdline), "\x00"), "\x00")
		p.args = strings.Join(p.argv, " ")
	}
	if p.args == "" {
		p.args = "[" + p.comm + "]"
	}
	if p.state == "Z" {
		p.args = "[" + p.comm + "] <defunct>"
	}
	p.owners(t, dir)
	return p
}

// ttyName is the terminal of a device number, as pts/0.
func ttyName(t *tool.T, pid int, dev int64) string {
	if p := t.Sandbox().Lookup(pid); p != nil {
		if tty := p.TTY(); tty != nil {
			return strings.TrimPrefix(tty.Name(), "/dev/")
		}
	}
	return "pts/" + strconv.FormatInt(dev&0xff, 10)
}

// owners reads in whose name the process runs.
func (p *process) owners(t *tool.T, dir string) {
	text, err := t.ReadFile(dir+"status", maxProcFile)
	if err != nil {
		return
	}
	for _, line := range strings.Split(string(text), "\n") {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		a, _ := strconv.ParseUint(f[1], 10, 32)
		b, _ := strconv.ParseUint(f[2], 10, 32)
		switch f[0] {
		case "Uid:":
			p.uid, p.euid = uint32(a), uint32(b)
		case "Gid:":
			p.gid, p.egid = uint32(a), uint32(b)
		}
	}
}

// stat is the state with the letters that ps adds.
func (p *process) stat() string {
	s := p.state
	if p.nice < 0 {
		s += "<"
	} else if p.nice > 0 {
		s += "N"
	}
	if p.session == p.pid {
		s += "s"
	}
	if p.threads > 1 {
		s += "l"
	}
	if p.tpgid == p.pgrp && p.tpgid > 0 {
		s += "+"
	}
	return s
}

// percent is the share of its life in which a process used the processor.
func (p *process) percent(now time.Time) float64 {
	life := now.Sub(p.start)
	if life <= 0 {
		return 0
	}
	return min(99.9*float64(1), float64(p.cpu)*100/float64(life))
}

// memory is the machine's: what /proc/meminfo says, in KiB.
func memory(t *tool.T) map[string]uint64 {
	m := map[string]uint64{}
	text, err := t.ReadFile("/proc/meminfo", maxProcFile)
	if err != nil {
		t.Fatal(1, "Error: /proc must be mounted")
	}
	for _, line := range strings.Split(string(text), "\n") {
		if f := strings.Fields(line); len(f) >= 2 {
			m[strings.TrimSuffix(f[0], ":")], _ = strconv.ParseUint(f[1], 10, 64)
		}
	}
	return m
}
