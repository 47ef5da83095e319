package compress

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/command/codec"
	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

const (
	keyRsyncable = tool.KeyOwn + iota
	keySynchronous
	keyPresume
)

var gzipSpec = tool.Spec{
	Usage: []string{"[OPTION]... [FILE]..."},
	About: "Compress or uncompress FILEs (by default, compress FILES in-place).",
	Options: []getopt.Option{
		{Short: 'a', Long: "ascii"},
		{Short: 'c', Long: "stdout", Help: "write on standard output, keep original files unchanged"},
		{Short: 'c', Long: "to-stdout", Hidden: true},
		{Short: 'd', Long: "decompress", Help: "decompress"},
		{Short: 'd', Long: "uncompress", Hidden: true},
		{Short: 'f', Long: "force", Help: "force overwrite of output file and compress links"},
		{Short: 'h', Key: 'h'},
		{Short: 'k', Long: "keep", Help: "keep (don't delete) input files"},
		{Short: 'l', Long: "list", Help: "list compressed file contents"},
		{Short: 'L', Long: "license"},
		{Short: 'n', Long: "no-name", Help: "do not save or restore the original name and timestamp"},
		{Short: 'N', Long: "name", Help: "save or restore the original name and timestamp"},
		{Short: 'q', Long: "quiet", Help: "suppress all warnings"},
		{Short: 'q', Long: "silent", Hidden: true},
		{Short: 'r', Long: "recursive", Help: "operate recursively on directories"},
		{Long: "rsyncable", Key: keyRsyncable, Help: "make rsync-friendly archive"},
		{Short: 'S', Long: "suffix", Arg: getopt.Required, Name: "SUF", Help: "use suffix SUF on compressed files"},
		{Long: "synchronous", Key: keySynchronous, Help: "synchronous output (safer if system crashes, but slower)"},
		{Short: 't', Long: "test", Help: "test compressed file integrity"},
		{Short: 'v', Long: "verbose", Help: "verbose mode"},
		{Short: 'V'},
		{Short: '1', Long: "fast", Help: "compress faster"},
		{Short: '2'}, {Short: '3'}, {Short: '4'}, {Short: '5'}, {Short: '6'}, {Short: '7'}, {Short: '8'},
		{Short: '9', Long: "best", Help: "compress better"},
		{Long: "presume-input-tty", Key: keyPresume},
		{Short: 'b', Arg: getopt.Required}, {Short: 'm'}, {Short: 'M'}, {Short: 'Z', Arg: getopt.No},
	},
	Notes:   "With no FILE, or when FILE is -, read standard input.",
	Package: "gzip) 1.12", Fail: 1,
}

// gzipRun is a running gzip.
type gzipRun struct {
	t                                              *tool.T
	stdout, decompress, force, keep, list, test    bool
	noName, quiet, recursive, verbose, sync, named bool
	level                                          int
	suffix                                         string
	status                                         int
	titled                                         bool
	listed                                         int
	totalIn, totalOut                              int64
}

// Gzip compresses files.
func Gzip(t *tool.T) int { return gzip(t, false, false) }

// Gunzip decompresses files.
func Gunzip(t *tool.T) int { return gzip(t, true, false) }

// Zcat decompresses files to standard output.
func Zcat(t *tool.T) int { return gzip(t, true, true) }

func gzip(t *tool.T, decompress, stdout bool) int {
	program(t, "gzip")
	g := &gzipRun{t: t, level: 6, suffix: ".gz", decompress: decompress, stdout: stdout}
	opts, files := t.ParseArgs(&gzipSpec, t.Args()[1:])
	g.noName = g.decompress
	for _, o := range opts {
		g.option(o)
	}
	if !g.named {
		g.noName = g.decompress
	}
	if len(files) == 0 {
		g.one("-")
	}
	for _, f := range files {
		g.one(f)
	}
	if g.list && g.listed > 1 {
		if g.verbose {
			t.Out.WriteString("                            ")
		}
		g.row(g.totalIn, g.totalOut, g.totalIn, "(totals)")
	}
	return g.status
}

func (g *gzipRun) option(o getopt.Opt) {
	switch o.Key {
	case 'c':
		g.stdout = true
	case 'd':
		g.decompress = true
	case 'f':
		g.force = true
	case 'h':
		g.t.Help(&gzipSpec)
		g.t.Exit(0)
	case 'k':
		g.keep = true
	case 'l':
		g.list, g.decompress, g.stdout = true, true, true
	case 'L', 'V':
		g.t.Version(&gzipSpec)
		g.t.Exit(0)
	case 'n', 'N':
		g.named, g.noName = true, o.Key == 'n'
	case 'q':
		g.quiet, g.verbose = true, false
	case 'r':
		g.recursive = true
	case 'S':
		g.suffix = o.Arg
		if o.Arg == "" || strings.Contains(o.Arg, "/") {
			g.t.Fatal(1, "invalid suffix '%s'", o.Arg)
		}
	case 't':
		g.test, g.decompress, g.stdout = true, true, true
	case 'v':
		g.verbose, g.quiet = true, false
	case keySynchronous:
		g.sync = true
	case '1', '2', '3', '4', '5', '6', '7', '8', '9':
		g.level = int(o.Key - '0')
	}
}

// fail reports an error; warn reports a warning, which -q silences.
func (g *gzipRun) fail(format string, args ...any) {
	g.t.Warn(format, args...)
	g.status = 1
}

func (g *gzipRun) warn(format string, args ...any) {
	if !g.quiet {
		g.t.Warn(format, args...)
	}
	if g.status == 0 {
		g.status = 2
	}
}

var gzSuffixes = []string{".gz", ".z", ".taz", ".tgz", "-gz", "-z", "_z"}

// suffixOf returns the compressed file's suffix that a name ends with, "" for none.
func (g *gzipRun) suffixOf(name string) string {
	for _, s := range append([]string{g.suffix}, gzSuffixes...) {
		b := base(name)
		if len(b) > len(s) && strings.EqualFold(b[len(b)-len(s):], s) {
			return b[len(b)-len(s):]
		}
	}
	return ""
}

// one handles a file named on the command line, or found in a directory.
func (g *gzipRun) one(name string) {
	t := g.t
	if name == "-" {
		g.standardInput()
		return
	}
	name, err := g.find(name)
	if err != nil {
		g.fail("%s: %s", name, tool.Strerror(err))
		return
	}
	a, err := t.Stat(name)
	if err != nil {
		g.fail("%s: %s", name, tool.Strerror(err))
		return
	}
	follow := g.stdout || g.force
	if l, err := t.Lstat(name); err == nil && l.Mode.IsSymlink() && !follow {
		g.fail("%s: %s", name, tool.Strerror(syscall.ELOOP))
		return
	}
	switch {
	case a.Mode.IsDir() && g.recursive:
		g.directory(name)
		return
	case a.Mode.IsDir():
		g.warn("%s is a directory -- ignored", name)
		return
	case !g.stdout && !a.Mode.IsRegular():
		g.warn("%s is not a directory or a regular file - ignored", name)
		return
	case !g.stdout && !g.force && a.Nlink > 1:
		s := "s"
		if a.Nlink == 2 {
			s = ""
		}
		g.warn("%s has %d other link%s -- file ignored", name, a.Nlink-1, s)
		return
	case !g.stdout && !g.force && a.Mode&0o6000 != 0:
		g.warn("%s is set-user-ID on execution - ignored", name)
		return
	}
	g.file(name, a)
}

// find returns the name of a file to decompress, which may be given without its suffix.
func (g *gzipRun) find(name string) (string, error) {
	_, err := g.t.Stat(name)
	if err == nil || !tool.IsNotExist(err) || !g.decompress || g.suffixOf(name) != "" {
		return name, err
	}
	for _, s := range []string{g.suffix, ".gz", ".z", "-z", ".Z"} {
		if _, err := g.t.Stat(name + s); err == nil {
			return name + s, nil
		}
	}
	return name + g.suffix, err
}

func (g *gzipRun) directory(name string) {
	list, err := g.t.ReadDir(name)
	if err != nil {
		g.fail("%s: %s", name, tool.Strerror(err))
		return
	}
	for _, e := range list {
		g.t.Check()
		g.one(strings.TrimSuffix(name, "/") + "/" + e.Name)
	}
}

// outName returns the name of what is made of a file; "" if there is nothing to do.
func (g *gzipRun) outName(name string) string {
	suffix := g.suffixOf(name)
	if !g.decompress {
		if suffix != "" {
			if g.verbose || !g.recursive && !g.quiet {
				g.t.Warn("%s already has %s suffix -- unchanged", name, suffix)
			}
			return ""
		}
		return name + g.suffix
	}
	if suffix == "" {
		if g.verbose || !g.recursive && !g.quiet {
			g.warn("%s: unknown suffix -- ignored", name)
		}
		return ""
	}
	out := name[:len(name)-len(suffix)]
	if s := strings.ToLower(suffix); s == ".tgz" || s == ".taz" {
		out += ".tar"
	}
	return out
}

func (g *gzipRun) file(name string, a vfs.Attr) {
	t := g.t
	out := ""
	if !g.stdout {
		if out = g.outName(name); out == "" {
			return
		}
	}
	in, err := t.OpenFile(name)
	if err != nil {
		g.fail("%s: %s", name, tool.Strerror(err))
		return
	}
	defer in.Close()
	if g.list {
		g.listFile(name, in, a)
		return
	}
	if g.stdout {
		if g.terminal() {
			return
		}
		if g.verbose {
			fmt.Fprintf(t.Stderr(), "%s:\t", name)
		}
		w := io.Writer(&outWriter{t: t})
		if g.test {
			w = io.Discard
		}
		if ratio, ok := g.work(name, in, w, codec.GzipHeader{Name: g.headerName(name), ModTime: g.headerTime(a)}, nil); ok && g.verbose {
			more := " -- replaced with stdout"
			if g.decompress {
				more = ""
			}
			g.report(ratio, more)
		}
		return
	}
	g.replace(name, out, in, a)
}

// replace writes a new file and removes the old one.
func (g *gzipRun) replace(name, out string, in *tool.Input, a vfs.Attr) {
	t := g.t
	c := codec.NewCounter(in)
	if g.decompress && !g.noName {
		// The name in the header counts, without its directories.
		if z, err := codec.NewGzipReader(c); err == nil && z.Header.Name != "" {
			if b := base(z.Header.Name); b != "" && b != "." && b != ".." {
				out = name[:len(name)-len(base(name))] + b
			}
			if !z.Header.ModTime.IsZero() {
				a.Mtime = z.Header.ModTime
			}
		}
		in.File.Seek(0, io.SeekStart)
	}
	o, err := create(t, out, g.force)
	if errors.Is(err, syscall.EEXIST) {
		g.fail2("%s already exists;\tnot overwritten", out)
		return
	}
	if err != nil {
		g.fail("%s: %s", out, tool.Strerror(err))
		return
	}
	if g.verbose {
		fmt.Fprintf(t.Stderr(), "%s:\t", name)
	}
	ratio, ok := g.work(name, in, o, codec.GzipHeader{Name: g.headerName(name), ModTime: g.headerTime(a)}, o)
	if !ok {
		o.abandon()
		return
	}
	if err := o.finish(&a); err != nil {
		t.Unlink(out)
		g.fail("%s: %s", out, tool.Strerror(err))
		return
	}
	how := "replaced with"
	if g.keep {
		how = "created"
	} else if err := t.Unlink(name); err != nil {
		g.fail("%s: %s", name, tool.Strerror(err))
	}
	if g.verbose {
		g.report(ratio, " -- "+how+" "+out)
	}
}

// fail2 is a refusal that counts as a warning.
func (g *gzipRun) fail2(format string, args ...any) {
	g.t.Warn(format, args...)
	if g.status == 0 {
		g.status = 2
	}
}

func (g *gzipRun) headerName(name string) string {
	if g.noName {
		return ""
	}
	return base(name)
}

func (g *gzipRun) headerTime(a vfs.Attr) time.Time {
	if g.noName || !a.Mode.IsRegular() {
		return time.Time{}
	}
	return a.Mtime
}

// terminal refuses to write compressed data to a terminal, or to read it from there.
func (g *gzipRun) terminal() bool {
	fd, how := 1, "written to"
	if g.decompress {
		fd, how = 0, "read from"
	}
	if g.force || !g.t.IsTerminal(fd) || g.decompress {
		return false
	}
	more, what := "compression", "compressed data not "
	fmt.Fprintf(g.t.Stderr(), "gzip: %s%s a terminal. Use -f to force %s.\nFor help, type: gzip -h\n", what, how, more)
	g.t.Exit(1)
	return true
}

func (g *gzipRun) standardInput() {
	t := g.t
	if fd := 0; g.decompress && !g.force && t.IsTerminal(fd) {
		fmt.Fprintf(t.Stderr(), "gzip: compressed data not read from a terminal. Use -f to force decompression.\nFor help, type: gzip -h\n")
		t.Exit(1)
	}
	in, _ := t.Open("-")
	a, err := in.Attr()
	if err != nil {
		a = vfs.Attr{}
	}
	if g.list {
		g.listFile("stdout", in, a)
		return
	}
	g.stdout = true
	if g.terminal() {
		return
	}
	if g.verbose {
		t.Stderr().Write([]byte("stdin:\t"))
	}
	w := io.Writer(&outWriter{t: t})
	if g.test {
		w = io.Discard
	}
	h := codec.GzipHeader{}
	if a.Mode.IsRegular() {
		h.ModTime = g.headerTime(a)
	}
	if ratio, ok := g.work("stdin", in, w, h, nil); ok && g.verbose {
		if !g.decompress || g.test {
			g.report(ratio, "")
		}
	}
}

// work compresses or decompresses one stream; ratio is how much is saved, of 1.
func (g *gzipRun) work(name string, in io.Reader, w io.Writer, h codec.GzipHeader, o *target) (ratio [2]int64, ok bool) {
	if !g.decompress {
		cw := &counting{w: w}
		z, err := codec.NewGzipWriter(cw, g.level, h)
		var n int64
		if err == nil {
			if n, err = pump(g.t, z, in); err == nil {
				err = z.Close()
			}
		}
		if err != nil {
			g.streamError(name, err, o)
			return ratio, false
		}
		return [2]int64{n - (cw.n - z.HeaderSize), n}, true
	}
	c := codec.NewCounter(in)
	head, err := c.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		g.streamError(name, err, o)
		return ratio, false
	}
	if g.force && g.stdout && !g.test && codec.Detect(head) != codec.Gzip {
		if _, err := pump(g.t, w, c); err != nil {
			g.streamError(name, err, o)
		}
		return [2]int64{0, 0}, true
	}
	z, err := codec.NewGzipReader(c)
	var n int64
	if err == nil {
		n, err = pump(g.t, w, z)
	}
	switch {
	case errors.Is(err, codec.ErrTrailing):
		g.t.Out.Flush()
		if !g.quiet {
			fmt.Fprintf(g.t.Stderr(), "\ngzip: %s: decompression OK, trailing garbage ignored\n", name)
		}
		if g.status == 0 {
			g.status = 2
		}
	case err != nil:
		g.streamError(name, err, o)
		return ratio, false
	}
	return [2]int64{n - (c.N - z.Extra), n}, true
}

// streamError words what is wrong with a stream.
func (g *gzipRun) streamError(name string, err error, o *target) {
	g.t.Out.Flush()
	text := ""
	var werr *writeError
	switch {
	case errors.As(err, &werr):
		if o != nil {
			name = o.name
		} else {
			name = "stdout"
		}
		text = tool.Strerror(werr.err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		text = "unexpected end of file"
	case errors.Is(err, codec.ErrFormat):
		text = "not in gzip format"
	case errors.Is(err, codec.ErrChecksum):
		text = "invalid compressed data--crc error"
	case errors.Is(err, codec.ErrLength):
		text = "invalid compressed data--length error"
	case errors.Is(err, codec.ErrCorrupt):
		text = "invalid compressed data--format violated"
	case errors.Is(err, codec.ErrOptions):
		g.fail("%s: unknown method -- not supported", name)
		return
	default:
		g.fail("%s: %s", name, tool.Strerror(err))
		return
	}
	fmt.Fprintf(g.t.Stderr(), "\ngzip: %s: %s\n", name, text)
	g.status = 1
}

// counting counts what is written.
type counting struct {
	w io.Writer
	n int64
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func percent(r [2]int64) string {
	if r[1] == 0 {
		return "  0.0%"
	}
	return fmt.Sprintf("%5.1f%%", 100*float64(r[0])/float64(r[1]))
}

func (g *gzipRun) report(r [2]int64, more string) {
	g.t.Out.Flush()
	text := percent(r)
	if g.test {
		text = " OK"
	}
	fmt.Fprintf(g.t.Stderr(), "%s%s\n", text, more)
}

// listFile prints a line of -l.
func (g *gzipRun) listFile(name string, in *tool.Input, a vfs.Attr) {
	t := g.t
	c := codec.NewCounter(in)
	z, err := codec.NewGzipReader(c)
	var n int64
	if err == nil {
		n, err = pump(t, io.Discard, z)
	}
	if err != nil && !errors.Is(err, codec.ErrTrailing) {
		g.streamError(name, err, nil)
		return
	}
	if !g.titled && !g.quiet {
		g.titled = true
		if g.verbose {
			t.Out.WriteString("method  crc     date  time  ")
		}
		t.Out.WriteString("         compressed        uncompressed  ratio uncompressed_name\n")
	}
	if g.verbose {
		at := a.Mtime
		if !z.Header.ModTime.IsZero() {
			at = z.Header.ModTime
		}
		fmt.Fprintf(t.Out, "defla %08x %s ", z.CRC, at.In(t.Location()).Format("Jan _2 15:04"))
	}
	shown := name
	if s := g.suffixOf(name); s != "" {
		shown = name[:len(name)-len(s)]
		if s := strings.ToLower(s); s == ".tgz" || s == ".taz" {
			shown += ".tar"
		}
	}
	if !g.noName && g.named && z.Header.Name != "" {
		shown = name[:len(name)-len(base(name))] + base(z.Header.Name)
	}
	g.row(c.N, n, c.N-z.Extra, shown)
	g.listed++
	g.totalIn += c.N
	g.totalOut += n
}

func (g *gzipRun) row(in, out, data int64, name string) {
	fmt.Fprintf(g.t.Out, "%19d %19d %s %s\n", in, out, percent([2]int64{out - data, out}), name)
}
