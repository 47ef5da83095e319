package system

import (
	"fmt"
	"io"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/command/tool"
)

// column is one of ps's output.
type column struct {
	field *field
	title string
}

// psRun is a running ps.
type psRun struct {
	t                        *tool.T
	accounts                 *tool.Accounts
	columns                  []column
	bsd, all, withoutLeaders bool
	everyone, ttyless        bool // of BSD: a lifts "only yours", x lifts "only with a terminal"
	byTTY, negate            bool
	selected                 bool // by a list
	pids, ppids, sids        []int
	pgids                    []int
	uids, ruids, gids        []uint32
	comms, ttys              []string
	format                   byte // u f l j v s F of a predefined format; 0 none
	long                     bool // -y with -l
	sortKeys                 []string
	noHeader, forest         bool
	wide                     int
	now                      time.Time
	total                    uint64
	environment              bool
}

// Ps lists processes, with the options of POSIX, BSD and GNU.
func Ps(t *tool.T) int {
	p := &psRun{t: t, accounts: t.Accounts(), now: t.Now()}
	p.total = memory(t)["MemTotal"] << 10
	args := t.Args()[1:]
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch {
		case strings.HasPrefix(a, "--"):
			args = p.long2(a[2:], args)
		case strings.HasPrefix(a, "-") && len(a) > 1:
			args = p.unix(a[1:], args)
		case a != "" && (a[0] >= '0' && a[0] <= '9'):
			p.pids, p.selected, p.bsd = append(p.pids, p.numbers(a)...), true, p.bsd || len(p.columns) == 0
		default:
			args = p.berkeley(a, args)
		}
	}
	if len(p.columns) == 0 {
		p.predefined()
	}
	list := p.choose()
	p.sort(list)
	p.print(list)
	if len(list) == 0 {
		return 1
	}
	return 0
}

const psUsage = "\nUsage:\n ps [options]\n\n Try 'ps --help <simple|list|output|threads|misc|all>'\n  or 'ps --help <s|l|o|t|m|a>'\n for additional help text.\n\nFor more details see ps(1).\n"

// fail reports a mistake in the arguments.
func (p *psRun) fail(format string, args ...any) {
	p.t.Out.Flush()
	fmt.Fprintf(p.t.Stderr(), "error: "+format+"\n"+psUsage, args...)
	p.t.Exit(1)
}

// value returns an option's argument: what follows it in the word, or the next word.
func (p *psRun) value(rest string, args []string, what string) (string, []string) {
	if rest != "" {
		return rest, args
	}
	if len(args) == 0 {
		p.fail("%s", what)
	}
	return args[0], args[1:]
}

func (p *psRun) words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
}

func (p *psRun) numbers(s string) (list []int) {
	for _, w := range p.words(s) {
		n, err := strconv.Atoi(w)
		if err != nil || n < 0 || n > 1<<31-1 {
			p.fail("process ID list syntax error")
		}
		list = append(list, n)
	}
	if len(list) == 0 {
		p.fail("process ID list syntax error")
	}
	p.selected = true
	return list
}

func (p *psRun) users(s string) (list []uint32) {
	for _, w := range p.words(s) {
		id, ok := p.accounts.LookupUID(w)
		if !ok {
			p.fail("user name does not exist")
		}
		list = append(list, id)
	}
	p.selected = true
	return list
}

// unix reads options after one dash.
func (p *psRun) unix(letters string, args []string) []string {
	for i := 0; i < len(letters); i++ {
		rest := letters[i+1:]
		var v string
		switch c := letters[i]; c {
		case 'e', 'A':
			p.all = true
		case 'a':
			p.withoutLeaders, p.byTTY = true, true
		case 'd':
			p.withoutLeaders = true
		case 'N':
			p.negate = true
		case 'f', 'l', 'j', 'F':
			if c == 'f' && p.format == 'l' {
				c = 'L'
			}
			p.format, p.bsd = c, false
		case 'y':
			p.long = true
		case 'H':
			p.forest = true
		case 'w':
			p.wide++
		case 'c', 'L', 'T', 'm', 'M', 'Z', 'P':
		case 'V':
			p.version()
		case 'o', 'O':
			v, args = p.value(rest, args, "format specification must follow -o")
			if c == 'O' {
				v = "pid," + v + ",state,tname,time,command"
			}
			p.user(v)
			return args
		case 'p', 'q', 's', 'g', 'u', 'U', 'G', 'C', 't', 'n':
			v, args = p.value(rest, args, "list of "+map[byte]string{'p': "process IDs", 'q': "process IDs", 's': "session IDs", 'g': "session OR group IDs", 'u': "users", 'U': "real users", 'G': "real groups", 'C': "command names", 't': "terminals (pty, tty...)", 'n': "names"}[c]+" must follow -"+string(c))
			p.list(c, v)
			return args
		default:
			p.fail("unsupported SysV option")
		}
	}
	return args
}

// list takes a list of what is to be shown.
func (p *psRun) list(c byte, v string) {
	switch c {
	case 'p', 'q':
		p.pids = append(p.pids, p.numbers(v)...)
	case 's', 'g':
		p.sids = append(p.sids, p.numbers(v)...)
	case 'u':
		p.uids = append(p.uids, p.users(v)...)
	case 'U':
		p.ruids = append(p.ruids, p.users(v)...)
	case 'G':
		for _, w := range p.words(v) {
			id, ok := p.accounts.LookupGID(w)
			if !ok {
				p.fail("group name does not exist")
			}
			p.gids, p.selected = append(p.gids, id), true
		}
	case 'C':
		p.comms, p.selected = append(p.comms, p.words(v)...), true
	case 't':
		for _, w := range p.words(v) {
			p.ttys = append(p.ttys, strings.TrimPrefix(w, "/dev/"))
		}
		p.selected = true
	}
}

// berkeley reads options without a dash.
func (p *psRun) berkeley(letters string, args []string) []string {
	p.bsd = true
	for i := 0; i < len(letters); i++ {
		rest := letters[i+1:]
		var v string
		switch c := letters[i]; c {
		case 'a':
			p.everyone = true
		case 'x':
			p.ttyless = true
		case 'u', 'l', 'j', 'v', 's':
			p.format = c
		case 'f':
			p.forest = true
		case 'e':
			p.environment = true
		case 'h':
			p.noHeader = true
		case 'w':
			p.wide++
		case 'r', 'g', 'T', 'c', 'n', 'S', 'H', 'm', 'L', 'Z', 'X', 'A':
		case 'V':
			p.version()
		case 'o', 'O':
			v, args = p.value(rest, args, "format specification must follow o")
			if c == 'O' {
				v = "pid," + v + ",state,tname,time,command"
			}
			p.user(v)
			return args
		case 'k':
			v, args = p.value(rest, args, "long sort specification must follow 'k'")
			p.sortKeys = p.words(v)
			return args
		case 'p', 'q':
			v, args = p.value(rest, args, "list of process IDs must follow p")
			p.list('p', v)
			return args
		case 'U':
			v, args = p.value(rest, args, "list of users must follow U")
			p.list('u', v)
			return args
		case 't':
			v, args = p.value(rest, args, "list of terminals must follow t")
			p.list('t', v)
			return args
		default:
			p.fail("unsupported option (BSD syntax)")
		}
	}
	return args
}

// long2 reads an option after two dashes.
func (p *psRun) long2(s string, args []string) []string {
	name, v, has := strings.Cut(s, "=")
	switch name {
	case "help":
		io.WriteString(p.t.Out, psUsage[1:])
		p.t.Exit(0)
	case "version", "info":
		p.version()
	case "no-headers", "no-heading", "no-headings", "noheaders", "noheading":
		p.noHeader = true
		return args
	case "headers", "cumulative", "context":
		return args
	case "forest":
		p.forest = true
		return args
	case "deselect":
		p.negate = true
		return args
	}
	letters := map[string]byte{"pid": 'p', "quick-pid": 'p', "ppid": 'P', "sid": 's', "user": 'u', "User": 'U', "group": 'g', "Group": 'G', "tty": 't', "format": 'o', "sort": 'k', "cols": 'w', "columns": 'w', "width": 'w', "rows": 'w', "lines": 'w'}
	c, ok := letters[name]
	if !ok {
		p.fail("unknown gnu long option")
	}
	if !has {
		v, args = p.value("", args, "must set value for --"+name)
	}
	switch c {
	case 'P':
		p.ppids = append(p.ppids, p.numbers(v)...)
	case 'g':
		p.list('G', v)
	case 'o':
		p.user(v)
	case 'k':
		p.sortKeys = p.words(v)
		for _, k := range p.sortKeys {
			if fieldOf(strings.TrimLeft(k, "+-")) == nil {
				p.fail("unknown sort specifier")
			}
		}
	case 'w':
	default:
		p.list(c, v)
	}
	return args
}

func (p *psRun) version() {
	p.t.Out.WriteString("ps from procps-ng 4.0.2\n")
	p.t.Exit(0)
}

// user adds columns of -o: names, with "=TITLE" the rest of the list is the title.
func (p *psRun) user(s string) {
	for s != "" {
		word := s
		if i := strings.IndexAny(s, ", \t="); i >= 0 && s[i] != '=' {
			word, s = s[:i], strings.TrimLeft(s[i+1:], " \t")
		} else {
			s = ""
		}
		if word == "" {
			continue
		}
		name, title, has := strings.Cut(word, "=")
		f := fieldOf(name)
		if f == nil {
			p.fail("unknown user-defined format specifier %q", name)
		}
		if !has {
			title = f.title
		} else if i := strings.IndexByte(title, ','); i >= 0 && fieldOf(strings.SplitN(title[i+1:], "=", 2)[0]) != nil && title[:i] == "" {
			s, title = title[i+1:], "" // "pid=,comm=": more columns follow an empty title
		}
		p.columns = append(p.columns, column{f, title})
	}
	if len(p.columns) == 0 {
		p.fail("empty format list")
	}
}

// predefined are the columns that options name by a letter.
func (p *psRun) predefined() {
	set := "pid tname time ucmd"
	switch p.format {
	case 'f':
		set = "user8:UID pid ppid c stime tname time cmd"
	case 'F':
		set = "user8:UID pid ppid c sz rss psr stime tname time cmd"
	case 'l', 'L':
		set = "f s uid pid ppid c pri:PRI ni:NI addr sz wchan tname time ucmd"
		if p.long {
			set = "s uid pid ppid c pri ni rss sz wchan tname time ucmd"
		}
		if p.format == 'L' {
			set = "f s user8:UID pid ppid c pri ni addr sz wchan stime tname time cmd"
		}
		if p.bsd {
			set = "f uid pid ppid priority ni vsz rss wchan stat tname bsdtime args"
		}
	case 'j':
		set = "pid pgid sid tname time ucmd"
		if p.bsd {
			set = "ppid pid pgid sid tname tpgid stat uid bsdtime args"
		}
	case 'u':
		set = "user8:USER pid pcpu pmem vsz rss tname stat start_time bsdtime args"
	case 'v':
		set = "pid tname stat bsdtime majfl trs drs rss pmem args"
	case 's':
		set = "uid pid pending blocked ignored caught stat tname bsdtime args"
	case 0:
		if p.bsd {
			set = "pid tname stat bsdtime args"
		}
	}
	for _, name := range strings.Fields(set) {
		name, title, has := strings.Cut(name, ":")
		f := fieldOf(name)
		if !has {
			title = f.title
		}
		p.columns = append(p.columns, column{f, title})
	}
}

// choose picks the processes to show.
func (p *psRun) choose() (list []*process) {
	own := readProcess(p.t, p.t.Pid(), p.now.Add(-p.t.Sandbox().Uptime()))
	uid := p.t.Cred().UID
	tty := "?"
	if own != nil {
		tty = own.tty
	}
	for _, x := range processes(p.t) {
		if p.wants(x, uid, tty) != p.negate {
			list = append(list, x)
		}
	}
	return list
}

func (p *psRun) wants(x *process, uid uint32, tty string) bool {
	switch {
	case p.all:
		return true
	case p.withoutLeaders:
		return x.session != x.pid && (!p.byTTY || x.tty != "?")
	case p.bsd && (p.everyone || p.ttyless) && !p.selected:
		return (p.everyone || x.euid == uid) && (p.ttyless || x.tty != "?")
	case p.selected:
		return slices.Contains(p.pids, x.pid) || slices.Contains(p.ppids, x.ppid) || slices.Contains(p.sids, x.session) || slices.Contains(p.uids, x.euid) ||
			slices.Contains(p.ruids, x.uid) || slices.Contains(p.gids, x.gid) || slices.Contains(p.comms, x.comm) || slices.Contains(p.ttys, x.tty)
	}
	return x.euid == uid && x.tty == tty
}

// sort orders by the keys given, else by number; --forest puts children below their parents.
func (p *psRun) sort(list []*process) {
	for i := len(p.sortKeys) - 1; i >= 0; i-- {
		key := p.sortKeys[i]
		down := strings.HasPrefix(key, "-")
		f := fieldOf(strings.TrimLeft(key, "+-"))
		if f == nil {
			p.fail("unknown sort specifier")
		}
		sort.SliceStable(list, func(i, j int) bool {
			a, b := list[i], list[j]
			if down {
				a, b = b, a
			}
			return f.less(p, a, b)
		})
	}
	if p.forest && len(p.sortKeys) == 0 {
		copy(list, byFamily(list))
	}
}

// byFamily orders parents before children.
func byFamily(list []*process) []*process {
	children := map[int][]*process{}
	known := map[int]bool{}
	for _, x := range list {
		known[x.pid] = true
	}
	for _, x := range list {
		parent := x.ppid
		if !known[parent] {
			parent = -1
		}
		children[parent] = append(children[parent], x)
	}
	var out []*process
	var visit func(pid int)
	visit = func(pid int) {
		for _, x := range children[pid] {
			out = append(out, x)
			visit(x.pid)
		}
	}
	visit(-1)
	return out
}

// print writes the table. The last column is as wide as it needs.
func (p *psRun) print(list []*process) {
	width := 0 // unlimited unless a terminal says otherwise
	if size, err := p.t.WindowSize(1); err == nil && size.Cols > 0 && p.wide < 2 {
		width = int(size.Cols)
		if p.wide == 1 {
			width = max(width, 132)
		}
	}
	depth := p.depths(list)
	widths := make([]int, len(p.columns))
	header := false
	for i, c := range p.columns {
		widths[i] = max(c.field.width, len(c.title))
		header = header || c.title != ""
	}
	put := func(text func(i int) string) {
		var b strings.Builder
		for i, c := range p.columns {
			if i > 0 {
				b.WriteByte(' ')
			}
			s := text(i)
			switch pad := widths[i] - tool.StringWidth(s); {
			case c.field.right && pad > 0:
				b.WriteString(strings.Repeat(" ", pad) + s)
			case i < len(p.columns)-1 && pad > 0:
				b.WriteString(s + strings.Repeat(" ", pad))
			default:
				b.WriteString(s)
			}
		}
		line := b.String()
		if width > 0 {
			if r := []rune(line); len(r) > width {
				line = string(r[:width])
			}
		}
		p.t.Out.WriteString(line + "\n")
	}
	if header && !p.noHeader {
		put(func(i int) string { return p.columns[i].title })
	}
	for _, x := range list {
		put(func(i int) string {
			c := p.columns[i]
			s := c.field.text(p, x)
			if c.field.command && p.forest {
				s = depth[x.pid] + s
			}
			if c.field.width > 0 && !c.field.right && !c.field.command && tool.StringWidth(s) > widths[i] && i < len(p.columns)-1 && c.field.cut {
				s = s[:widths[i]-1] + "+"
			}
			return s
		})
	}
}

// depths are what --forest puts before commands.
func (p *psRun) depths(list []*process) map[int]string {
	if !p.forest {
		return nil
	}
	parents := map[int]int{}
	for _, x := range list {
		parents[x.pid] = x.ppid
	}
	out := map[int]string{}
	for _, x := range list {
		n := 0
		for pid := x.ppid; n < 100; n++ {
			up, ok := parents[pid]
			if !ok {
				break
			}
			pid = up
		}
		if n > 0 {
			out[x.pid] = strings.Repeat("    ", n-1) + " \\_ "
		}
	}
	return out
}
