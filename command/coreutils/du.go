package coreutils

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/command/datetime"
	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

const (
	keyApparent = tool.KeyOwn + 600 + iota
	keyDuInodes
	keyDuSi
	keyDuTime
	keyDuTimeStyle
	keyDuExclude
	keyDuFiles0
)

var duSpec = tool.Spec{
	Usage: []string{"[OPTION]... [FILE]...", "[OPTION]... --files0-from=F"},
	About: "Summarize device usage of the set of FILEs, recursively for directories.",
	Options: []getopt.Option{
		{Short: '0', Long: "null", Help: "end each output line with NUL, not newline"},
		{Short: 'a', Long: "all", Help: "write counts for all files, not just directories"},
		{Long: "apparent-size", Key: keyApparent, Help: "print apparent sizes rather than device usage"},
		{Short: 'B', Long: "block-size", Arg: getopt.Required, Name: "SIZE", Help: "scale sizes by SIZE before printing them"},
		{Short: 'b', Long: "bytes", Help: "equivalent to '--apparent-size --block-size=1'"},
		{Short: 'c', Long: "total", Help: "produce a grand total"},
		{Short: 'D', Long: "dereference-args", Help: "dereference only symlinks that are listed on the command line"},
		{Short: 'd', Long: "max-depth", Arg: getopt.Required, Name: "N", Help: "print the total for a directory only if it is N or fewer levels below the command line argument"},
		{Long: "files0-from", Key: keyDuFiles0, Arg: getopt.Required, Name: "F", Help: "summarize device usage of the NUL-terminated file names specified in file F"},
		{Short: 'H', Help: "equivalent to --dereference-args (-D)"},
		{Short: 'h', Long: "human-readable", Help: "print sizes in human readable format (e.g., 1K 234M 2G)"},
		{Long: "inodes", Key: keyDuInodes, Help: "list inode usage information instead of block usage"},
		{Short: 'k', Help: "like --block-size=1K"},
		{Short: 'L', Long: "dereference", Help: "dereference all symbolic links"},
		{Short: 'l', Long: "count-links", Help: "count sizes many times if hard linked"},
		{Short: 'm', Help: "like --block-size=1M"},
		{Short: 'P', Long: "no-dereference", Help: "don't follow any symbolic links (this is the default)"},
		{Short: 'S', Long: "separate-dirs", Help: "for directories do not include size of subdirectories"},
		{Long: "si", Key: keyDuSi, Help: "like -h, but use powers of 1000 not 1024"},
		{Short: 's', Long: "summarize", Help: "display only a total for each argument"},
		{Short: 't', Long: "threshold", Arg: getopt.Required, Name: "SIZE", Help: "exclude entries smaller than SIZE if positive, or entries greater than SIZE if negative"},
		{Long: "time", Key: keyDuTime, Arg: getopt.Optional, Name: "WORD", Help: "show time of the last modification of any file in the directory, or its subdirectories; WORD: atime, access, use, ctime or status"},
		{Long: "time-style", Key: keyDuTimeStyle, Arg: getopt.Required, Name: "STYLE", Help: "show times using STYLE: full-iso, long-iso, iso, or +FORMAT"},
		{Short: 'X', Long: "exclude-from", Arg: getopt.Required, Name: "FILE", Help: "exclude files that match any pattern in FILE"},
		{Long: "exclude", Key: keyDuExclude, Arg: getopt.Required, Name: "PATTERN", Help: "exclude files that match PATTERN"},
		{Short: 'x', Long: "one-file-system", Help: "skip directories on different file systems"},
	},
	Package: tool.Coreutils,
}

// diskBlock is the unit that files take space in. Volumes of memory or of a bucket count bytes; what is shown is what
// a disk would give to them.
const diskBlock = 4096

// usage is what a file, or all below a directory, takes.
type usage struct {
	size, inodes uint64
	at           time.Time
}

func (u *usage) add(o usage) {
	u.size += o.size
	u.inodes += o.inodes
	if o.at.After(u.at) {
		u.at = o.at
	}
}

// duer is a running du.
type duer struct {
	t                               *tool.T
	all, apparent, total, links     bool
	separate, summary, oneFS, count bool
	follow                          byte // L always, D operands, P never
	depth                           int  // -1: any
	size                            sizeFormat
	threshold                       int64
	eol                             byte
	showTime                        byte // 0, m, a or c
	timeFormat                      string
	exclude                         []string
	seen                            map[inode]bool
	dev                             uint64
	status                          int
	sum                             usage
}

// Du shows how much space files take.
func Du(t *tool.T) int {
	d := &duer{t: t, follow: 'P', depth: -1, size: sizeFormat{unit: 1024}, eol: '\n', timeFormat: "%Y-%m-%d %H:%M", seen: map[inode]bool{}}
	for _, name := range []string{"DU_BLOCK_SIZE", "BLOCK_SIZE", "BLOCKSIZE"} {
		if v := t.Getenv(name); v != "" {
			if f, err := parseBlockSize(v); err == nil {
				d.size = f
			}
			break
		}
	}
	opts, files := t.Parse(&duSpec)
	from := ""
	for _, o := range opts {
		if o.Key == keyDuFiles0 {
			from = o.Arg
		} else {
			d.option(o)
		}
	}
	d.settle()
	if from != "" {
		files = d.names(from, files)
	} else if len(files) == 0 {
		files = []string{"."}
	}
	for _, f := range files {
		if f == "" {
			t.Warn("invalid zero-length file name")
			d.status = 1
			continue
		}
		if u, ok := d.visit(f, 0, true); ok {
			d.sum.add(u)
		}
	}
	if d.total {
		d.print("total", d.sum)
	}
	return d.status
}

// settle checks options against each other.
func (d *duer) settle() {
	switch {
	case d.summary && d.all:
		d.t.UsageError(1, "cannot both summarize and show all entries")
	case d.summary && d.depth == 0:
		d.t.Warn("warning: summarizing is the same as using --max-depth=0")
	case d.summary && d.depth > 0:
		d.t.UsageError(1, "warning: summarizing conflicts with --max-depth=%d", d.depth)
	}
	if d.summary {
		d.depth = 0
	}
	if d.count {
		if d.apparent {
			d.t.Warn("warning: options --apparent-size and -b are ineffective with --inodes")
		}
		if d.size.human == 0 {
			d.size = sizeFormat{unit: 1}
		}
	}
}

func (d *duer) names(from string, files []string) []string {
	if len(files) > 0 {
		d.t.Warn("extra operand %s", tool.Quote(files[0]))
		fmt.Fprintln(d.t.Stderr(), "file operands cannot be combined with --files0-from")
		d.t.Try(1)
	}
	text, err := d.t.ReadFile(from, 64<<20)
	if err != nil {
		d.t.Fatal(1, "cannot open %s for reading: %s", tool.QuoteAF(from), tool.Strerror(err))
	}
	for _, name := range bytes.Split(bytes.TrimSuffix(text, []byte{0}), []byte{0}) {
		if len(text) > 0 {
			files = append(files, string(name))
		}
	}
	return files
}

func (d *duer) option(o getopt.Opt) {
	t := d.t
	switch o.Key {
	case '0':
		d.eol = 0
	case 'a':
		d.all = true
	case keyApparent:
		d.apparent = true
	case 'B':
		f, err := parseBlockSize(o.Arg)
		if err != nil {
			name := o.As + " argument"
			if err == tool.ErrRange {
				t.Fatal(1, "%s %s too large", name, tool.QuoteAF(o.Arg))
			}
			t.Fatal(1, "invalid %s %s", name, tool.QuoteAF(o.Arg))
		}
		d.size = f
	case 'b':
		d.apparent, d.size = true, sizeFormat{unit: 1}
	case 'c':
		d.total = true
	case 'D', 'H':
		d.follow = 'D'
	case 'd':
		n, err := strconv.ParseUint(o.Arg, 10, 31)
		if err != nil {
			t.Warn("invalid maximum depth %s", tool.Quote(o.Arg))
			t.Try(1)
		}
		d.depth = int(n)
	case 'h':
		d.size = sizeFormat{human: 1024}
	case keyDuSi:
		d.size = sizeFormat{human: 1000}
	case 'k':
		d.size = sizeFormat{unit: 1024}
	case 'm':
		d.size = sizeFormat{unit: 1 << 20}
	case 'L', 'P':
		d.follow = byte(o.Key)
	case 'l':
		d.links = true
	case 'S':
		d.separate = true
	case 's':
		d.summary = true
	case 'x':
		d.oneFS = true
	case keyDuInodes:
		d.count = true
	default:
		d.filter(o)
	}
}

func (d *duer) filter(o getopt.Opt) {
	t := d.t
	switch o.Key {
	case 't':
		s, neg := strings.CutPrefix(o.Arg, "-")
		n, err := tool.ParseSize(s, "kKmMGTPEZY0")
		if err != nil || n > 1<<62 || neg && n == 0 {
			t.Fatal(1, "invalid %s argument %s", o.As, tool.QuoteAF(o.Arg))
		}
		if d.threshold = int64(n); neg {
			d.threshold = -d.threshold
		}
	case keyDuTime:
		d.showTime = 'm'
		if o.Has {
			d.showTime = "ac"[t.Choice(1, "--time", o.Arg, [][]string{{"atime", "access", "use"}, {"ctime", "status"}})]
		}
	case keyDuTimeStyle:
		if f, ok := strings.CutPrefix(o.Arg, "+"); ok {
			d.timeFormat = f
			break
		}
		d.timeFormat = []string{"%Y-%m-%d %H:%M:%S.%N %z", "%Y-%m-%d %H:%M", "%Y-%m-%d"}[t.Choice(1, "--time-style", o.Arg, [][]string{{"full-iso"}, {"long-iso"}, {"iso"}})]
	case 'X':
		text, err := t.ReadFile(o.Arg, 16<<20)
		if err != nil {
			t.UsageError(1, "%s: %s", tool.QuoteF(o.Arg), tool.Strerror(err))
		}
		for _, l := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
			d.exclude = append(d.exclude, l)
		}
	case keyDuExclude:
		d.exclude = append(d.exclude, o.Arg)
	}
}

// excluded reports whether a pattern matches a path or what follows one of its slashes.
func (d *duer) excluded(p string) bool {
	for _, pattern := range d.exclude {
		for at := 0; at >= 0; {
			if tool.Glob(pattern, p[at:], 0) {
				return true
			}
			next := strings.IndexByte(p[at:], '/')
			if next < 0 {
				break
			}
			at += next + 1
		}
	}
	return false
}

// visit measures a file and what is below it, and prints what is to be seen of that.
func (d *duer) visit(p string, level int, operand bool) (usage, bool) {
	t := d.t
	t.Check()
	if len(d.exclude) > 0 && d.excluded(strings.TrimSuffix(p, "/")) {
		return usage{}, false
	}
	at, err := t.Lstat(p)
	if err == nil && at.Mode.IsSymlink() && (d.follow == 'L' || d.follow == 'D' && operand || operand && strings.HasSuffix(p, "/")) {
		at, err = t.Stat(p)
	}
	if err != nil {
		t.Warn("cannot access %s: %s", tool.QuoteAF(p), tool.Strerror(err))
		d.status = 1
		return usage{}, false
	}
	if operand {
		d.dev = at.Dev
	} else if d.oneFS && at.Dev != d.dev {
		return usage{}, false
	}
	id := inode{at.Dev, at.Ino}
	if (at.Nlink > 1 || at.Mode.IsDir() || d.follow != 'P') && !(d.links && !at.Mode.IsDir()) {
		if d.seen[id] {
			return usage{}, false
		}
		d.seen[id] = true
	}
	own := usage{inodes: 1, size: d.sizeOf(at), at: d.timeOf(at)}
	if !at.Mode.IsDir() {
		if d.all && (d.depth < 0 || level <= d.depth) || level == 0 {
			d.print(p, own)
		}
		return own, true
	}
	below := d.below(p, level, &own)
	shown, all := own, own
	all.add(below)
	if !d.separate {
		shown = all
	}
	if d.depth < 0 || level <= d.depth {
		d.print(p, shown)
	}
	return all, true
}

// below visits a directory's entries. What is in files counts for the directory itself, what is in directories is
// returned.
func (d *duer) below(dir string, level int, own *usage) (sub usage) {
	entries, err := d.t.ReadDir(dir)
	if err != nil {
		d.t.Warn("cannot read directory %s: %s", tool.QuoteAF(dir), tool.Strerror(err))
		d.status = 1
		return sub
	}
	prefix := dir
	if !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	for _, e := range entries {
		if e.Name == "." || e.Name == ".." {
			continue
		}
		u, ok := d.visit(prefix+e.Name, level+1, false)
		if !ok {
			continue
		}
		isDir := e.Mode.IsDir()
		if e.Mode.IsSymlink() && d.follow == 'L' {
			if at, err := d.t.Stat(prefix + e.Name); err == nil {
				isDir = at.Mode.IsDir()
			}
		}
		if isDir {
			sub.add(u)
		} else {
			own.add(u)
		}
	}
	return sub
}

func (d *duer) sizeOf(at vfs.Attr) uint64 {
	if d.apparent {
		if at.Mode.IsDir() {
			return uint64(max(at.Size, diskBlock))
		}
		if at.Mode.IsRegular() || at.Mode.IsSymlink() {
			return uint64(max(at.Size, 0))
		}
		return 0
	}
	used := uint64(max(at.Blocks, 0)) * 512
	if at.Mode.IsDir() {
		used = max(used, diskBlock)
	}
	return (used + diskBlock - 1) / diskBlock * diskBlock
}

func (d *duer) timeOf(at vfs.Attr) time.Time {
	switch d.showTime {
	case 'a':
		return at.Atime
	case 'c':
		return at.Ctime
	}
	return at.Mtime
}

func (d *duer) print(name string, u usage) {
	n := u.size
	if d.count {
		n = u.inodes
	}
	if d.threshold > 0 && n < uint64(d.threshold) || d.threshold < 0 && n > uint64(-d.threshold) {
		return
	}
	d.t.Out.WriteString(d.size.format(n) + "\t")
	if d.showTime != 0 {
		d.t.Out.WriteString(datetime.Format(d.timeFormat, u.at.In(d.t.Location())) + "\t")
	}
	d.t.Out.WriteString(name)
	d.t.Out.WriteByte(d.eol)
}
