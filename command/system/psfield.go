package system

import (
	"fmt"
	"strconv"
	"time"
)

// field is what a column of ps can show.
type field struct {
	names   []string
	title   string
	width   int
	right   bool
	command bool // as wide as it needs
	cut     bool // too long a text ends in "+"
	text    func(p *psRun, x *process) string
	number  func(p *psRun, x *process) float64 // to sort by, nil: by text
}

func (f *field) less(p *psRun, a, b *process) bool {
	if f.number != nil {
		return f.number(p, a) < f.number(p, b)
	}
	return f.text(p, a) < f.text(p, b)
}

// fieldOf finds a field by a name; nil if there is none.
func fieldOf(name string) *field {
	for _, f := range psFields() {
		for _, n := range f.names {
			if n == name {
				return f
			}
		}
	}
	return nil
}

// pidWidth is that of the largest process number.
const pidWidth = 7

func count(title string, width int, get func(x *process) int64, names ...string) *field {
	return &field{names: names, title: title, width: width, right: true,
		text:   func(_ *psRun, x *process) string { return strconv.FormatInt(get(x), 10) },
		number: func(_ *psRun, x *process) float64 { return float64(get(x)) }}
}

func text(title string, width int, get func(x *process) string, names ...string) *field {
	return &field{names: names, title: title, width: width, text: func(_ *psRun, x *process) string { return get(x) }}
}

func fixed(title string, width int, right bool, value string, names ...string) *field {
	return &field{names: names, title: title, width: width, right: right, text: func(*psRun, *process) string { return value }}
}

func owner(title string, width int, get func(x *process) uint32, names ...string) *field {
	return &field{names: names, title: title, width: width, cut: true, text: func(p *psRun, x *process) string { return p.accounts.UserName(get(x)) }}
}

func group(title string, get func(x *process) uint32, names ...string) *field {
	return &field{names: names, title: title, width: 8, cut: true, text: func(p *psRun, x *process) string { return p.accounts.GroupName(get(x)) }}
}

func command(title string, get func(x *process) string, names ...string) *field {
	return &field{names: names, title: title, width: 15, command: true, text: func(_ *psRun, x *process) string { return get(x) }}
}

// psFields are all that there are.
func psFields() []*field {
	uid := func(x *process) uint32 { return x.euid }
	ruid := func(x *process) uint32 { return x.uid }
	gid := func(x *process) uint32 { return x.egid }
	rgid := func(x *process) uint32 { return x.gid }
	zombie := func(s string, x *process) string {
		if x.state == "Z" {
			return s + " <defunct>"
		}
		return s
	}
	list := []*field{
		count("PID", pidWidth, func(x *process) int64 { return int64(x.pid) }, "pid", "tgid"),
		count("PPID", pidWidth, func(x *process) int64 { return int64(x.ppid) }, "ppid"),
		count("PGID", pidWidth, func(x *process) int64 { return int64(x.pgrp) }, "pgid"),
		count("PGRP", pidWidth, func(x *process) int64 { return int64(x.pgrp) }, "pgrp"),
		count("SID", pidWidth, func(x *process) int64 { return int64(x.session) }, "sid"),
		count("SESS", pidWidth, func(x *process) int64 { return int64(x.session) }, "sess", "session"),
		count("TPGID", pidWidth, func(x *process) int64 { return int64(x.tpgid) }, "tpgid"),
		count("LWP", pidWidth, func(x *process) int64 { return int64(x.pid) }, "lwp", "spid"),
		count("TID", pidWidth, func(x *process) int64 { return int64(x.pid) }, "tid"),
		count("UID", 5, func(x *process) int64 { return int64(x.euid) }, "uid"),
		count("EUID", 5, func(x *process) int64 { return int64(x.euid) }, "euid"),
		count("RUID", 5, func(x *process) int64 { return int64(x.uid) }, "ruid"),
		count("GID", 5, func(x *process) int64 { return int64(x.egid) }, "gid"),
		count("EGID", 5, func(x *process) int64 { return int64(x.egid) }, "egid"),
		count("RGID", 5, func(x *process) int64 { return int64(x.gid) }, "rgid"),
		count("NI", 3, func(x *process) int64 { return int64(x.nice) }, "ni", "nice"),
		count("PRI", 3, func(x *process) int64 { return int64(19 - x.nice) }, "pri"),
		count("PRI", 3, func(x *process) int64 { return int64(20 + x.nice) }, "priority", "opri"),
		count("NLWP", 4, func(x *process) int64 { return int64(x.threads) }, "nlwp"),
		count("THCNT", 5, func(x *process) int64 { return int64(x.threads) }, "thcount"),
		count("VSZ", 6, func(x *process) int64 { return int64(x.vsz >> 10) }, "vsz", "vsize"),
		count("RSS", 5, func(x *process) int64 { return int64(x.rss >> 10) }, "rss", "rssize", "rsz"),
		count("SZ", 5, func(x *process) int64 { return int64(x.vsz / 4096) }, "sz"),
		count("TRS", 5, func(*process) int64 { return 0 }, "trs"),
		count("DRS", 5, func(x *process) int64 { return int64(x.vsz >> 10) }, "drs"),
		count("MAJFL", 6, func(*process) int64 { return 0 }, "majfl", "maj_flt"),
		count("MINFL", 6, func(*process) int64 { return 0 }, "minfl", "min_flt"),
		count("TIME", 8, func(x *process) int64 { return int64(x.cpu / time.Second) }, "times", "cputimes"),
		owner("USER", 8, uid, "user", "euser", "uname", "user8"), owner("RUSER", 8, ruid, "ruser"),
		group("GROUP", gid, "group", "egroup"), group("RGROUP", rgid, "rgroup"),
		text("TTY", 8, func(x *process) string { return x.tty }, "tname"),
		text("TT", 8, func(x *process) string { return x.tty }, "tty", "tt"),
		text("STAT", 4, (*process).stat, "stat"),
		text("S", 1, func(x *process) string { return x.state }, "s", "state"),
		command("COMMAND", func(x *process) string { return zombie(x.comm, x) }, "comm", "ucomm"),
		command("CMD", func(x *process) string { return zombie(x.comm, x) }, "ucmd"),
		command("COMMAND", func(x *process) string { return x.args }, "args", "command"),
		command("CMD", func(x *process) string { return x.args }, "cmd"),
		fixed("WCHAN", 6, false, "-", "wchan"), fixed("ADDR", 1, false, "-", "addr"), fixed("F", 1, false, "0", "f", "flag", "flags"), fixed("PSR", 3, true, "0", "psr"),
		fixed("CLS", 3, true, "TS", "cls", "class"), fixed("POL", 3, false, "TS", "policy"), fixed("RTPRIO", 6, true, "-", "rtprio"), fixed("LABEL", 30, false, "-", "label"),
		fixed("CGROUP", 27, false, "/", "cgroup"),
	}
	for _, name := range []string{"pending", "blocked", "ignored", "caught"} {
		list = append(list, fixed(map[string]string{"pending": "PENDING", "blocked": "BLOCKED", "ignored": "IGNORED", "caught": "CAUGHT"}[name], 16, true, "0000000000000000", name))
	}
	return append(list, timeFields()...)
}

// timeFields are those of times and shares.
func timeFields() []*field {
	cpu := func(_ *psRun, x *process) float64 { return float64(x.cpu) }
	start := func(_ *psRun, x *process) float64 { return float64(x.start.UnixNano()) }
	age := func(p *psRun, x *process) float64 { return float64(p.now.Sub(x.start)) }
	at := func(p *psRun, x *process) time.Time { return x.start.In(p.t.Location()) }
	short := func(p *psRun, x *process) string {
		s, now := at(p, x), p.now.In(p.t.Location())
		switch {
		case s.Year() != now.Year():
			return s.Format("2006")
		case s.YearDay() != now.YearDay():
			return s.Format("Jan02")
		}
		return s.Format("15:04")
	}
	memory := func(p *psRun, x *process) float64 {
		if p.total == 0 {
			return 0
		}
		return min(99.9, float64(x.rss)*100/float64(p.total))
	}
	share := func(p *psRun, x *process) float64 { return x.percent(p.now) }
	return []*field{
		{names: []string{"time", "cputime"}, title: "TIME", width: 8, right: true, number: cpu, text: func(_ *psRun, x *process) string { return clock(x.cpu, true) }},
		{names: []string{"bsdtime"}, title: "TIME", width: 6, right: true, number: cpu, text: func(_ *psRun, x *process) string {
			s := int64(x.cpu / time.Second)
			return fmt.Sprintf("%d:%02d", s/60, s%60)
		}},
		{names: []string{"etime"}, title: "ELAPSED", width: 11, right: true, number: age, text: func(p *psRun, x *process) string { return clock(p.now.Sub(x.start), false) }},
		{names: []string{"etimes"}, title: "ELAPSED", width: 7, right: true, number: age, text: func(p *psRun, x *process) string { return strconv.Itoa(int(p.now.Sub(x.start) / time.Second)) }},
		{names: []string{"start_time"}, title: "START", width: 5, number: start, text: short},
		{names: []string{"stime"}, title: "STIME", width: 5, number: start, text: short},
		{names: []string{"bsdstart"}, title: "START", width: 6, right: true, number: start, text: short},
		{names: []string{"start"}, title: "STARTED", width: 8, right: true, number: start, text: func(p *psRun, x *process) string { return at(p, x).Format("15:04:05") }},
		{names: []string{"lstart"}, title: "STARTED", width: 24, right: true, number: start, text: func(p *psRun, x *process) string { return at(p, x).Format("Mon Jan _2 15:04:05 2006") }},
		{names: []string{"pcpu", "%cpu"}, title: "%CPU", width: 4, right: true, number: share, text: func(p *psRun, x *process) string { return fmt.Sprintf("%.1f", share(p, x)) }},
		{names: []string{"c"}, title: "C", width: 2, right: true, number: share, text: func(p *psRun, x *process) string { return strconv.Itoa(int(share(p, x))) }},
		{names: []string{"pmem", "%mem"}, title: "%MEM", width: 4, right: true, number: memory, text: func(p *psRun, x *process) string { return fmt.Sprintf("%.1f", memory(p, x)) }},
	}
}

// clock renders a time as [DD-]HH:MM:SS; hours that are none are left out unless they are asked for.
func clock(d time.Duration, hours bool) string {
	s := max(int64(d/time.Second), 0)
	day, h, m := s/86400, s/3600%24, s/60%60
	switch {
	case day > 0:
		return fmt.Sprintf("%02d-%02d:%02d:%02d", day, h, m, s%60)
	case h > 0 || hours:
		return fmt.Sprintf("%02d:%02d:%02d", h, m, s%60)
	}
	return fmt.Sprintf("%02d:%02d", m, s%60)
}
