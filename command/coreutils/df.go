package coreutils

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

const (
	keyDfOutput = tool.KeyOwn + 620 + iota
	keyDfTotal
	keyDfSync
	keyDfNoSync
)

var dfSpec = tool.Spec{
	Usage: []string{"[OPTION]... [FILE]..."},
	About: "Show information about the file system on which each FILE resides,\nor all file systems by default.",
	Options: []getopt.Option{
		{Short: 'a', Long: "all", Help: "include pseudo, duplicate, inaccessible file systems"},
		{Short: 'B', Long: "block-size", Arg: getopt.Required, Name: "SIZE", Help: "scale sizes by SIZE before printing them"},
		{Short: 'h', Long: "human-readable", Help: "print sizes in powers of 1024 (e.g., 1023M)"},
		{Short: 'H', Long: "si", Help: "print sizes in powers of 1000 (e.g., 1.1G)"},
		{Short: 'i', Long: "inodes", Help: "list inode information instead of block usage"},
		{Short: 'k', Help: "like --block-size=1K"},
		{Short: 'm', Help: "like --block-size=1M"},
		{Short: 'l', Long: "local", Help: "limit listing to local file systems"},
		{Long: "no-sync", Key: keyDfNoSync, Help: "do not invoke sync before getting usage info (default)"},
		{Long: "output", Key: keyDfOutput, Arg: getopt.Optional, Name: "FIELD_LIST", Help: "use the output format defined by FIELD_LIST, or print all fields if FIELD_LIST is omitted."},
		{Short: 'P', Long: "portability", Help: "use the POSIX output format"},
		{Long: "sync", Key: keyDfSync, Help: "invoke sync before getting usage info"},
		{Long: "total", Key: keyDfTotal, Help: "produce a grand total"},
		{Short: 't', Long: "type", Arg: getopt.Required, Name: "TYPE", Help: "limit listing to file systems of type TYPE"},
		{Short: 'T', Long: "print-type", Help: "print file system type"},
		{Short: 'x', Long: "exclude-type", Arg: getopt.Required, Name: "TYPE", Help: "limit listing to file systems not of type TYPE"},
		{Short: 'v', Help: ""},
	},
	Package: tool.Coreutils,
}

// dfFields are the names that --output knows.
var dfFields = []string{"source", "fstype", "itotal", "iused", "iavail", "ipcent", "size", "used", "avail", "pcent", "file", "target"}

// dfer is a running df.
type dfer struct {
	t                         *tool.T
	all, inodes, posix, total bool
	types, without            []string
	size                      sizeFormat
	fields                    []string
	rows                      [][]string
	sum                       vfs.StatFS
	status                    int
}

// Df shows how much space filesystems have.
func Df(t *tool.T) int {
	d := &dfer{t: t, size: sizeFormat{unit: 1024}}
	for _, name := range []string{"DF_BLOCK_SIZE", "BLOCK_SIZE", "BLOCKSIZE"} {
		if v := t.Getenv(name); v != "" {
			if f, err := parseBlockSize(v); err == nil {
				d.size = f
			}
			break
		}
	}
	opts, files := t.Parse(&dfSpec)
	withType := false
	for _, o := range opts {
		if o.Key == 'T' {
			withType = true
		} else {
			d.option(o)
		}
	}
	d.choose(withType)
	d.head()
	if len(files) > 0 {
		d.some(files)
	} else {
		d.every()
	}
	if len(d.rows) == 1 {
		if d.status == 0 {
			t.Warn("no file systems processed")
		}
		return 1
	}
	if d.total {
		d.row("total", "-", "-", "-", d.sum)
	}
	d.print()
	return d.status
}

func (d *dfer) option(o getopt.Opt) {
	t := d.t
	switch o.Key {
	case 'a':
		d.all = true
	case 'B':
		f, err := parseBlockSize(o.Arg)
		if err != nil {
			t.Fatal(1, "invalid %s argument %s", o.As, tool.QuoteAF(o.Arg))
		}
		d.size = f
	case 'h':
		d.size = sizeFormat{human: 1024}
	case 'H':
		d.size = sizeFormat{human: 1000}
	case 'i':
		d.inodes = true
	case 'k':
		d.size = sizeFormat{unit: 1024}
	case 'm':
		d.size = sizeFormat{unit: 1 << 20}
	case 'P':
		d.posix = true
	case 't':
		d.types = append(d.types, o.Arg)
	case 'x':
		d.without = append(d.without, o.Arg)
	case keyDfTotal:
		d.total = true
	case keyDfOutput:
		if !o.Has {
			d.fields = dfFields
			break
		}
		for _, f := range strings.Split(o.Arg, ",") {
			if !contains(dfFields, f) {
				t.UsageError(1, "option --output: field %s unknown", tool.Quote(f))
			}
			if contains(d.fields, f) {
				t.UsageError(1, "option --output: field %s used more than once", tool.Quote(f))
			}
			d.fields = append(d.fields, f)
		}
	}
}

// choose settles the columns.
func (d *dfer) choose(withType bool) {
	if d.fields != nil {
		for option, on := range map[string]bool{"-i": d.inodes, "-P": d.posix, "-T": withType} {
			if on {
				d.t.UsageError(1, "options %s and --output are mutually exclusive", option)
			}
		}
		return
	}
	d.fields = []string{"source", "size", "used", "avail", "pcent", "target"}
	if d.inodes {
		d.fields = []string{"source", "itotal", "iused", "iavail", "ipcent", "target"}
	}
	if withType {
		d.fields = append([]string{"source", "fstype"}, d.fields[1:]...)
	}
}

func (d *dfer) head() {
	titles := map[string]string{"source": "Filesystem", "fstype": "Type", "itotal": "Inodes", "iused": "IUsed", "iavail": "IFree", "ipcent": "IUse%", "used": "Used", "avail": "Avail", "pcent": "Use%", "file": "File", "target": "Mounted on"}
	switch {
	case d.size.human != 0:
		titles["size"] = "Size"
	case d.posix:
		titles["size"] = strconv.FormatUint(d.size.unit, 10) + "-blocks"
		titles["pcent"] = "Capacity"
	default:
		titles["size"] = unitName(d.size.unit) + "-blocks"
	}
	if d.size.human == 0 {
		titles["avail"] = "Available"
		if contains(d.fields, "file") || d.outputMode() {
			titles["avail"] = "Avail"
		}
	}
	row := make([]string, len(d.fields))
	for i, f := range d.fields {
		row[i] = titles[f]
	}
	d.rows = append(d.rows, row)
}

// outputMode reports whether --output chose the columns.
func (d *dfer) outputMode() bool {
	s := strings.Join(d.fields, " ")
	return !strings.HasSuffix(s, "size used avail pcent target") && !d.inodes
}

// unitName is how a head names a block size: "1K", "1M", "512B".
func unitName(n uint64) string {
	for i, letter := range "KMGTPE" {
		if unit := uint64(1) << (10 * (i + 1)); n%unit == 0 && n/unit < 1024 {
			return strconv.FormatUint(n/unit, 10) + string(letter)
		}
	}
	for i, letter := range "kMGTPE" {
		unit := uint64(1)
		for range i + 1 {
			unit *= 1000
		}
		if n%unit == 0 && n/unit < 1000 {
			return strconv.FormatUint(n/unit, 10) + string(letter) + "B"
		}
	}
	return strconv.FormatUint(n, 10) + "B"
}

// pseudo reports whether a mount holds no files that take space.
func pseudo(m vfs.Mount) bool {
	switch m.Type {
	case "proc", "sysfs", "devpts", "bin":
		return true
	}
	return m.Path == "/proc" || m.Path == "/bin"
}

func (d *dfer) every() {
	for _, m := range d.t.Sandbox().Namespace().Mounts() {
		if st, err := d.t.StatFS(m.Path); err == nil && (d.all || st.Blocks > 0 && !pseudo(m)) {
			d.mount(m, "-", st)
		}
	}
}

// some shows the filesystems on which files are.
func (d *dfer) some(files []string) {
	mounts := d.t.Sandbox().Namespace().Mounts()
	for _, f := range files {
		real, err := d.t.Realpath(f)
		var st vfs.StatFS
		if err == nil {
			if _, err = d.t.Stat(f); err == nil {
				st, err = d.t.StatFS(f)
			}
		}
		if err != nil {
			d.t.WarnFile(f, err)
			d.status = 1
			continue
		}
		best := vfs.Mount{Path: "/"}
		for _, m := range mounts {
			if m.Path == "/" || real == m.Path || strings.HasPrefix(real, m.Path+"/") {
				best = m
			}
		}
		d.mount(best, f, st)
	}
}

func (d *dfer) mount(m vfs.Mount, file string, st vfs.StatFS) {
	kind, source := m.Type, m.Source
	if kind == "" {
		kind = "tmpfs"
	}
	if source == "" {
		source = kind
	}
	if len(d.types) > 0 && !contains(d.types, kind) || contains(d.without, kind) {
		return
	}
	d.row(source, kind, file, m.Path, st)
	scale := max(st.BlockSize, 1)
	d.sum.BlockSize = 1
	d.sum.Blocks += st.Blocks * scale
	d.sum.Free += st.Free * scale
	d.sum.Files += st.Files
	d.sum.FFree += st.FFree
}

func (d *dfer) row(source, kind, file, target string, st vfs.StatFS) {
	scale := max(st.BlockSize, 1)
	size := func(blocks uint64) string {
		if blocks > math.MaxUint64/scale {
			return "-"
		}
		return d.size.format(blocks * scale)
	}
	inodes := func(n uint64) string {
		if d.size.human != 0 {
			return d.size.format(n)
		}
		return strconv.FormatUint(n, 10)
	}
	percent := func(used, free uint64) string {
		if used+free == 0 {
			return "-"
		}
		whole := used / (used + free) * 100
		rest := float64(used%(used+free)) * 100 / float64(used+free)
		return strconv.FormatUint(whole+uint64(math.Ceil(rest)), 10) + "%"
	}
	used, iused := st.Blocks-min(st.Free, st.Blocks), st.Files-min(st.FFree, st.Files)
	values := map[string]string{"source": source, "fstype": kind, "file": file, "target": target, "size": size(st.Blocks), "used": size(used), "avail": size(st.Free), "pcent": percent(used, st.Free),
		"itotal": inodes(st.Files), "iused": inodes(iused), "iavail": inodes(st.FFree), "ipcent": percent(iused, st.FFree)}
	row := make([]string, len(d.fields))
	for i, f := range d.fields {
		row[i] = values[f]
	}
	d.rows = append(d.rows, row)
}

// print aligns the columns: text to the left, numbers to the right, the last one as it is.
func (d *dfer) print() {
	widths := make([]int, len(d.fields))
	for i, f := range d.fields {
		switch f {
		case "source":
			widths[i] = 14
		case "fstype", "pcent", "ipcent":
			widths[i] = 4
		case "file", "target":
		default:
			widths[i] = 5
		}
		for _, row := range d.rows {
			widths[i] = max(widths[i], tool.StringWidth(row[i]))
		}
	}
	for _, row := range d.rows {
		for i, f := range d.fields {
			if i > 0 {
				d.t.Out.WriteByte(' ')
			}
			pad := strings.Repeat(" ", widths[i]-tool.StringWidth(row[i]))
			switch {
			case f != "source" && f != "fstype" && f != "file" && f != "target":
				fmt.Fprint(d.t.Out, pad, row[i])
			case i == len(d.fields)-1:
				d.t.Out.WriteString(row[i])
			default:
				fmt.Fprint(d.t.Out, row[i], pad)
			}
		}
		d.t.Out.WriteByte('\n')
	}
}
