package system

import (
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

const (
	keyKilo = tool.KeyOwn + 50 + iota
	keyMega
	keyGiga
	keyTera
	keySi
	keyKibi
)

// Free shows the memory that the sandbox has and uses.
func Free(t *tool.T) int {
	spec := tool.Spec{Usage: []string{"[options]"}, About: "Display amount of free and used memory in the system.", Package: "procps-ng 4.0.2", Options: []getopt.Option{
		{Short: 'b', Long: "bytes", Help: "show output in bytes"}, {Long: "kilo", Key: keyKilo, Help: "show output in kilobytes"}, {Long: "mega", Key: keyMega, Help: "show output in megabytes"},
		{Long: "giga", Key: keyGiga, Help: "show output in gigabytes"}, {Long: "tera", Key: keyTera, Help: "show output in terabytes"}, {Short: 'k', Long: "kibi", Help: "show output in kibibytes"},
		{Short: 'm', Long: "mebi", Help: "show output in mebibytes"}, {Short: 'g', Long: "gibi", Help: "show output in gibibytes"}, {Short: 'h', Long: "human", Help: "show human-readable output"},
		{Long: "si", Key: keySi, Help: "use powers of 1000 not 1024"}, {Short: 'l', Long: "lohi", Help: "show detailed low and high memory statistics"}, {Short: 't', Long: "total", Help: "show total for RAM + swap"},
		{Short: 's', Long: "seconds", Arg: getopt.Required, Name: "N", Help: "repeat printing every N seconds"}, {Short: 'c', Long: "count", Arg: getopt.Required, Name: "N", Help: "repeat printing N times, then exit"},
		{Short: 'w', Long: "wide", Help: "wide output"}, {Short: 'V', Long: "version", Key: 'V'}}}
	opts, args := t.Parse(&spec)
	if len(args) > 0 {
		t.Misused(&spec)
	}
	f := freeRun{t: t, unit: 1024}
	every, times, power := time.Duration(0), 1, 0
	for _, o := range opts {
		switch o.Key {
		case 'b':
			f.unit = 1
		case keyKilo, keyMega, keyGiga, keyTera:
			f.unit = 1
			for range o.Key - keyKilo + 1 {
				f.unit *= 1000
			}
		case 'k', 'm', 'g':
			power = strings.IndexRune("kmg", o.Key) + 1
			f.unit = 1 << (10 * power)
		case 'h':
			f.human = true
		case keySi:
			f.si = true
		case 't':
			f.total = true
		case 'w':
			f.wide = true
		case 's':
			s, err := strconv.ParseFloat(o.Arg, 64)
			if err != nil || s < 1e-3 || s > 1e6 {
				t.Fatal(1, "seconds argument '%s' is not positive number", o.Arg)
			}
			if every = time.Duration(s * float64(time.Second)); times == 1 {
				times = -1
			}
		case 'c':
			n, err := strconv.Atoi(o.Arg)
			if err != nil || n < 1 {
				t.Fatal(1, "failed to parse count argument: '%s'", o.Arg)
			}
			if times = n; every == 0 {
				every = time.Second
			}
		case 'V':
			fmt.Fprintf(t.Out, "%s from procps-ng 4.0.2\n", t.Name)
			return 0
		}
	}
	for n := 0; n != times; n++ {
		if n > 0 {
			t.Out.WriteString("\n")
			t.Out.Flush()
			if t.Sleep(every) != nil {
				t.Check()
				return 0
			}
		}
		f.print()
	}
	return 0
}

// freeRun is a running free.
type freeRun struct {
	t                      *tool.T
	unit                   uint64
	human, si, total, wide bool
}

// size renders KiB.
func (f *freeRun) size(kib uint64) string {
	n := kib << 10
	if !f.human {
		unit := f.unit
		if f.si && unit > 1 {
			for u, si := uint64(1024), uint64(1000); u <= f.unit; u, si = u*1024, si*1000 {
				unit = si
			}
		}
		return strconv.FormatUint(n/unit, 10)
	}
	base, tail := float64(1024), "i"
	if f.si {
		base, tail = 1000, ""
	}
	v, unit := float64(n), 0
	for v >= base && unit < 5 {
		v, unit = v/base, unit+1
	}
	switch {
	case unit == 0:
		return fmt.Sprintf("%dB", n)
	case v < 10:
		return fmt.Sprintf("%.1f%c%s", v, "KMGTP"[unit-1], tail)
	}
	return fmt.Sprintf("%.0f%c%s", v-0.5+0.0001, "KMGTP"[unit-1], tail)
}

func (f *freeRun) print() {
	m := memory(f.t)
	cache := m["Cached"] + m["SReclaimable"]
	used := m["MemTotal"] - min(m["MemAvailable"], m["MemTotal"])
	out := f.t.Out
	if f.wide {
		fmt.Fprintf(out, "%8s%12s%12s%12s%12s%12s%12s%12s\n", "", "total", "used", "free", "shared", "buffers", "cache", "available")
		fmt.Fprintf(out, "%-8s%12s%12s%12s%12s%12s%12s%12s\n", "Mem:", f.size(m["MemTotal"]), f.size(used), f.size(m["MemFree"]), f.size(m["Shmem"]), f.size(m["Buffers"]), f.size(cache), f.size(m["MemAvailable"]))
	} else {
		fmt.Fprintf(out, "%8s%12s%12s%12s%12s%12s%12s\n", "", "total", "used", "free", "shared", "buff/cache", "available")
		fmt.Fprintf(out, "%-8s%12s%12s%12s%12s%12s%12s\n", "Mem:", f.size(m["MemTotal"]), f.size(used), f.size(m["MemFree"]), f.size(m["Shmem"]), f.size(m["Buffers"]+cache), f.size(m["MemAvailable"]))
	}
	swap := m["SwapTotal"]
	fmt.Fprintf(out, "%-8s%12s%12s%12s\n", "Swap:", f.size(swap), f.size(swap-m["SwapFree"]), f.size(m["SwapFree"]))
	if f.total {
		fmt.Fprintf(out, "%-8s%12s%12s%12s\n", "Total:", f.size(m["MemTotal"]+swap), f.size(used+swap-m["SwapFree"]), f.size(m["MemFree"]+m["SwapFree"]))
	}
}

// uptimeLine is what uptime, w and top begin with.
func uptimeLine(t *tool.T) string {
	up := t.Sandbox().Uptime()
	m := int(up / time.Minute)
	text := fmt.Sprintf("%d min", m)
	if m >= 60 {
		text = fmt.Sprintf("%2d:%02d", m/60%24, m%60)
	}
	if d := m / (24 * 60); d == 1 {
		text = "1 day, " + text
	} else if d > 1 {
		text = fmt.Sprintf("%d days, %s", d, text)
	}
	return fmt.Sprintf(" %s up %s,  0 user,  load average: 0.00, 0.00, 0.00", t.Now().In(t.Location()).Format("15:04:05"), text)
}

// W shows who is logged in: nobody is.
func W(t *tool.T) int {
	spec := tool.Spec{Usage: []string{"[options] [user]"}, About: "Show who is logged on and what they are doing.", Package: "procps-ng 4.0.2", Options: []getopt.Option{
		{Short: 'h', Long: "no-header", Help: "do not print header"}, {Short: 'u', Long: "no-current", Help: "ignore current process username"}, {Short: 's', Long: "short", Help: "short format"},
		{Short: 'f', Long: "from", Help: "show remote hostname field"}, {Short: 'o', Long: "old-style", Help: "old style output"}, {Short: 'i', Long: "ip-addr", Help: "display IP address instead of hostname"}}}
	opts, _ := t.Parse(&spec)
	from, short := true, false
	for _, o := range opts {
		switch o.Key {
		case 'h':
			return 0
		case 'f':
			from = !from
		case 's':
			short = true
		}
	}
	line := "USER     TTY      "
	if from {
		line += "FROM             "
	}
	if !short {
		line += " LOGIN@ "
	}
	line += "  IDLE "
	if !short {
		line += "  JCPU   PCPU "
	}
	if from && !short {
		line = "USER     TTY      FROM             LOGIN@   IDLE   JCPU   PCPU "
	}
	fmt.Fprintf(t.Out, "%s\n%sWHAT\n", uptimeLine(t), line)
	return 0
}

// Last shows past logins, of which there are none.
func Last(t *tool.T) int {
	begun := t.Now().Add(-t.Sandbox().Uptime()).In(t.Location())
	fmt.Fprintf(t.Out, "\nwtmp begins %s\n", begun.Format("Mon Jan _2 15:04:05 2006"))
	return 0
}

// Vmstat shows memory and processor figures: those that the sandbox has, zero for the others.
func Vmstat(t *tool.T) int {
	spec := tool.Spec{Usage: []string{"[options] [delay [count]]"}, About: "Report virtual memory statistics.", Package: "procps-ng 4.0.2", Options: []getopt.Option{
		{Short: 'a', Long: "active", Help: "active/inactive memory"}, {Short: 'n', Long: "one-header", Help: "do not redisplay header"}, {Short: 's', Long: "stats", Help: "event counter statistics"},
		{Short: 'S', Long: "unit", Arg: getopt.Required, Name: "char", Help: "define display unit"}, {Short: 'w', Long: "wide", Help: "wide output"}, {Short: 't', Long: "timestamp", Help: "show timestamp"}}}
	opts, args := t.Parse(&spec)
	m := memory(t)
	for _, o := range opts {
		if o.Key == 's' {
			for _, row := range []struct {
				n    uint64
				name string
			}{{m["MemTotal"], "K total memory"}, {m["MemTotal"] - m["MemFree"], "K used memory"}, {0, "K active memory"}, {0, "K inactive memory"}, {m["MemFree"], "K free memory"}, {m["Buffers"], "K buffer memory"},
				{m["Cached"], "K swap cache"}, {m["SwapTotal"], "K total swap"}, {0, "K used swap"}, {m["SwapFree"], "K free swap"}} {
				fmt.Fprintf(t.Out, "%13d %s\n", row.n, row.name)
			}
			return 0
		}
	}
	delay, times := 0.0, 1
	var err error
	if len(args) > 0 {
		if delay, err = strconv.ParseFloat(args[0], 64); err != nil || delay <= 0 || delay > 1e6 {
			t.Fatal(1, "failed to parse argument: '%s'", args[0])
		}
		times = -1
	}
	if len(args) > 1 {
		if times, err = strconv.Atoi(args[1]); err != nil || times < 1 {
			t.Fatal(1, "failed to parse argument: '%s'", args[1])
		}
	}
	t.Out.WriteString("procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n")
	for n := 0; n != times; n++ {
		if n > 0 {
			t.Out.Flush()
			if t.Sleep(time.Duration(delay*float64(time.Second))) != nil {
				t.Check()
				return 0
			}
			m = memory(t)
		}
		fmt.Fprintf(t.Out, "%2d %2d %6d %6d %6d %6d %4d %4d %5d %5d %4d %4d %2d %2d %2d %2d %2d\n", 1, 0, 0, m["MemFree"], m["Buffers"], m["Cached"], 0, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0)
	}
	return 0
}

// Top shows the busiest processes: with -b once after the other, at a terminal until q is pressed.
func Top(t *tool.T) int {
	spec := tool.Spec{Usage: []string{"-hv | -bcEeHiOSs1 -d secs -n max -u|U user -p pid(s) -o field -w [cols]"}, Package: "procps-ng 4.0.2", Order: getopt.Permute, Options: []getopt.Option{
		{Short: 'b'}, {Short: 'c'}, {Short: 'd', Arg: getopt.Required}, {Short: 'n', Arg: getopt.Required}, {Short: 'u', Arg: getopt.Required}, {Short: 'U', Arg: getopt.Required}, {Short: 'p', Arg: getopt.Required},
		{Short: 'o', Arg: getopt.Required}, {Short: 'w', Arg: getopt.Optional}, {Short: 'H'}, {Short: 'i'}, {Short: 'S'}, {Short: 's'}, {Short: '1'}, {Short: 'e', Arg: getopt.Required}, {Short: 'E', Arg: getopt.Required}, {Short: 'O'}, {Short: 'h'}, {Short: 'v'}}}
	opts, _ := t.Parse(&spec)
	r := topRun{t: t, width: 80, sort: "%CPU", down: true}
	batch, times, delay := false, -1, 3*time.Second
	for _, o := range opts {
		switch o.Key {
		case 'b':
			batch = true
		case 'c':
			r.full = true
		case 'h', 'v':
			fmt.Fprintf(t.Out, "%s from procps-ng 4.0.2\n", t.Name)
			return 0
		case 'n':
			n, err := strconv.Atoi(o.Arg)
			if err != nil || n < 1 {
				t.Fatal(1, "bad iterations argument '%s'", o.Arg)
			}
			times = n
		case 'd':
			s, err := strconv.ParseFloat(o.Arg, 64)
			if err != nil || s < 0 || s > 1e6 {
				t.Fatal(1, "bad delay interval '%s'", o.Arg)
			}
			delay = max(time.Duration(s*float64(time.Second)), 10*time.Millisecond)
		case 'u', 'U':
			id, ok := t.Accounts().LookupUID(o.Arg)
			if !ok {
				t.Fatal(1, "Invalid user")
			}
			r.users = append(r.users, id)
		case 'p':
			for _, w := range strings.Split(o.Arg, ",") {
				n, err := strconv.Atoi(w)
				if err != nil {
					t.Fatal(1, "bad pid '%s'", w)
				}
				r.pids = append(r.pids, n)
			}
		case 'o':
			r.sort, r.down = strings.TrimLeft(o.Arg, "+-"), !strings.HasPrefix(o.Arg, "-")
		case 'w':
			if r.width = 512; o.Has {
				r.width, _ = strconv.Atoi(o.Arg)
			}
		}
	}
	if !batch && !t.IsTerminal(1) {
		t.Fatal(1, "failed tty get")
	}
	return r.run(batch, times, delay)
}

// topRun is a running top.
type topRun struct {
	t     *tool.T
	width int
	rows  int
	full  bool
	users []uint32
	pids  []int
	sort  string
	down  bool
}

func (r *topRun) run(batch bool, times int, delay time.Duration) int {
	t := r.t
	var quit chan struct{}
	if !batch {
		restore := keys(t)
		defer restore()
		quit = make(chan struct{})
		go func() { // ends with the process's input or the first q
			defer close(quit)
			var b [1]byte
			for {
				if n, err := t.Process.Stdin().Read(b[:]); err != nil || n == 0 && err == io.EOF || b[0] == 'q' || b[0] == 3 {
					return
				}
			}
		}()
	}
	for n := 0; n != times; n++ {
		if n > 0 {
			t.Out.Flush()
			timer := time.NewTimer(delay)
			select {
			case <-timer.C:
			case <-quit:
				timer.Stop()
				return 0
			case <-t.Interrupt():
				timer.Stop()
				t.Check()
				return 0
			}
			if batch {
				t.Out.WriteString("\n")
			}
		}
		if !batch {
			t.Out.WriteString("\x1b[H\x1b[J")
			if size, err := t.WindowSize(1); err == nil && size.Rows > 0 {
				r.rows, r.width = int(size.Rows), int(size.Cols)
			}
		}
		r.page()
		t.Out.Flush()
	}
	return 0
}

// page writes one page.
func (r *topRun) page() {
	t := r.t
	m := memory(t)
	states := map[string]int{}
	var list []*process
	for _, p := range processes(t) {
		states[p.state]++
		ok := len(r.users) == 0
		for _, u := range r.users {
			ok = ok || u == p.euid
		}
		found := len(r.pids) == 0
		for _, pid := range r.pids {
			found = found || pid == p.pid || pid == 0 && p.pid == t.Pid()
		}
		if ok && found {
			list = append(list, p)
		}
	}
	total := states["R"] + states["S"] + states["T"] + states["Z"]
	mib := func(kib uint64) float64 { return float64(kib) / 1024 }
	used := m["MemTotal"] - m["MemAvailable"]
	fmt.Fprintf(t.Out, "top -%s\n", uptimeLine(t))
	fmt.Fprintf(t.Out, "Tasks: %3d total, %3d running, %3d sleeping, %3d stopped, %3d zombie\n", total, states["R"], states["S"], states["T"], states["Z"])
	fmt.Fprintf(t.Out, "%%Cpu(s):  0.0 us,  0.0 sy,  0.0 ni,100.0 id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st \n")
	fmt.Fprintf(t.Out, "MiB Mem : %8.1f total, %8.1f free, %8.1f used, %8.1f buff/cache     \n", mib(m["MemTotal"]), mib(m["MemFree"]), mib(used), mib(m["Buffers"]+m["Cached"]))
	fmt.Fprintf(t.Out, "MiB Swap: %8.1f total, %8.1f free, %8.1f used. %8.1f avail Mem \n\n", 0.0, 0.0, 0.0, mib(m["MemAvailable"]))
	fmt.Fprintf(t.Out, "%7s %-8s  PR  NI    VIRT    RES    SHR S  %%CPU  %%MEM     TIME+ COMMAND\n", "PID", "USER")
	now := t.Now()
	key := func(p *process) float64 {
		switch r.sort {
		case "%MEM", "RES":
			return float64(p.rss)
		case "PID":
			return float64(p.pid)
		case "TIME", "TIME+":
			return float64(p.cpu)
		}
		return p.percent(now)
	}
	sort.SliceStable(list, func(i, j int) bool { return key(list[i]) > key(list[j]) == r.down && key(list[i]) != key(list[j]) })
	for i, p := range list {
		if r.rows > 0 && i >= r.rows-8 {
			break
		}
		name := p.comm
		if r.full {
			name = p.args
		}
		user := t.Accounts().UserName(p.euid)
		if len(user) > 8 {
			user = user[:7] + "+"
		}
		hundredths := int64(p.cpu / (10 * time.Millisecond))
		line := fmt.Sprintf("%7d %-8s  %2d %3d %7d %6d %6d %s %5.1f %5.1f %3d:%02d.%02d %s", p.pid, user, 20+p.nice, p.nice, p.vsz>>10, p.rss>>10, 0, p.state, p.percent(now),
			float64(p.rss>>10)*100/float64(max(m["MemTotal"], 1)), hundredths/6000, hundredths/100%60, hundredths%100, name)
		if rs := []rune(line); len(rs) > r.width && r.width > 0 {
			line = string(rs[:r.width-1]) + "+"
		}
		fmt.Fprintln(t.Out, line)
	}
}
