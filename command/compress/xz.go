package compress

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"agentrun.dev/command/codec"
	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

const (
	keyRobot = tool.KeyOwn + 100 + iota
	keyFiles
	keyFiles0
	keyIgnored
	keyIgnoredArg
	keySingleStream
	keyNoWarn
)

var xzSpec = tool.Spec{
	Usage: []string{"[OPTION]... [FILE]..."},
	About: "Compress or decompress FILEs in the .xz format.",
	Options: []getopt.Option{
		{Short: 'z', Long: "compress", Help: "force compression"},
		{Short: 'd', Long: "decompress", Help: "force decompression"},
		{Short: 'd', Long: "uncompress", Hidden: true},
		{Short: 't', Long: "test", Help: "test compressed file integrity"},
		{Short: 'l', Long: "list", Help: "list information about .xz files"},
		{Short: 'k', Long: "keep", Help: "keep (don't delete) input files"},
		{Short: 'f', Long: "force", Help: "force overwrite of output file and (de)compress links"},
		{Short: 'c', Long: "stdout", Help: "write to standard output and don't delete input files"},
		{Short: 'c', Long: "to-stdout", Hidden: true},
		{Short: 'S', Long: "suffix", Arg: getopt.Required, Name: ".SUF", Help: "use the suffix '.SUF' on compressed files"},
		{Short: 'F', Long: "format", Arg: getopt.Required, Name: "FMT", Help: "file format to encode or decode; possible values are 'auto' (default), 'xz', 'lzma'"},
		{Short: 'C', Long: "check", Arg: getopt.Required, Name: "CHECK", Help: "integrity check type; the only one written is 'crc64'"},
		{Short: '0'}, {Short: '1', Long: "fast"}, {Short: '2'}, {Short: '3'}, {Short: '4'}, {Short: '5'}, {Short: '6'}, {Short: '7'}, {Short: '8'},
		{Short: '9', Long: "best", Help: "compression preset 0 ... 9; default is 6"},
		{Short: 'e', Long: "extreme", Help: "try to improve compression ratio by using more CPU time"},
		{Short: 'T', Long: "threads", Arg: getopt.Required, Name: "NUM", Help: "use at most NUM threads; it is always one"},
		{Short: 'M', Long: "memlimit", Key: keyIgnoredArg, Arg: getopt.Required},
		{Long: "memlimit-compress", Key: keyIgnoredArg, Arg: getopt.Required},
		{Long: "memlimit-decompress", Key: keyIgnoredArg, Arg: getopt.Required},
		{Long: "block-size", Key: keyIgnoredArg, Arg: getopt.Required},
		{Long: "no-sparse", Key: keyIgnored}, {Long: "ignore-check", Key: keyIgnored}, {Long: "no-adjust", Key: keyIgnored},
		{Long: "single-stream", Key: keySingleStream, Help: "decompress only the first stream"},
		{Short: 'q', Long: "quiet", Help: "suppress warnings; specify twice to suppress errors too"},
		{Short: 'v', Long: "verbose", Help: "be verbose; specify twice for even more verbose"},
		{Short: 'Q', Long: "no-warn", Key: keyNoWarn, Help: "make warnings not affect the exit status"},
		{Long: "robot", Key: keyRobot, Help: "use machine-parsable messages (useful for scripts)"},
		{Short: 'h', Key: 'h'}, {Short: 'H', Key: 'h', Long: "long-help"}, {Short: 'V', Key: 'V'},
	},
	Notes:   "With no FILE, or when FILE is -, read standard input.",
	Package: "XZ Utils) 5.4.1", Fail: 1,
}

type xzRun struct {
	t                                   *tool.T
	mode                                byte // z d t l
	keep, force, stdout, robot, nowarn  bool
	quiet, loud                         int
	level                               int
	suffix                              string
	format                              codec.Format // None is auto
	status, files                       int
	listed                              []listedXz
	listStreams, listBlocks, listChecks int
}

// Xz compresses files.
func Xz(t *tool.T) int { return runXz(t, 'z', false, codec.None) }

// Unxz decompresses files.
func Unxz(t *tool.T) int { return runXz(t, 'd', false, codec.None) }

// Xzcat decompresses files to standard output.
func Xzcat(t *tool.T) int { return runXz(t, 'd', true, codec.None) }

// Lzma compresses files into the older format.
func Lzma(t *tool.T) int { return runXz(t, 'z', false, codec.Lzma) }

// Unlzma decompresses files of the older format.
func Unlzma(t *tool.T) int { return runXz(t, 'd', false, codec.Lzma) }

// Lzcat decompresses files of the older format to standard output.
func Lzcat(t *tool.T) int { return runXz(t, 'd', true, codec.Lzma) }

func runXz(t *tool.T, mode byte, stdout bool, format codec.Format) int {
	t.Name = base(t.Name)
	x := &xzRun{t: t, mode: mode, stdout: stdout, level: 6, format: format}
	opts, files := t.Parse(&xzSpec)
	for _, o := range opts {
		x.option(o)
	}
	if x.mode == 't' {
		x.stdout = true
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	x.files = len(files)
	for _, f := range files {
		if x.mode == 'l' {
			x.list(f)
		} else {
			x.one(f)
		}
	}
	if x.mode == 'l' {
		x.totals()
	}
	if x.nowarn && x.status == 2 {
		return 0
	}
	return x.status
}

func (x *xzRun) option(o getopt.Opt) {
	switch o.Key {
	case 'z', 'd', 't', 'l':
		x.mode = byte(o.Key)
	case 'k':
		x.keep = true
	case 'f':
		x.force = true
	case 'c':
		x.stdout = true
	case 'S':
		x.suffix = o.Arg
	case 'F':
		switch o.Arg {
		case "auto":
			x.format = codec.None
		case "xz":
			x.format = codec.Xz
		case "lzma", "alone":
			x.format = codec.Lzma
		default:
			x.t.Fatal(1, "%s: Unknown file format type", o.Arg)
		}
	case 'C':
		switch o.Arg {
		case "crc64", "crc32", "none", "sha256":
		default:
			x.t.Fatal(1, "%s: Unsupported integrity check type", o.Arg)
		}
	case 'q':
		x.quiet++
	case 'v':
		x.loud++
	case keyNoWarn:
		x.nowarn = true
	case keyRobot:
		x.robot = true
	case 'h':
		x.t.Help(&xzSpec)
		x.t.Exit(0)
	case 'V':
		x.t.Version(&xzSpec)
		x.t.Exit(0)
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		x.level = int(o.Key - '0')
	}
}

func (x *xzRun) fail(format string, args ...any) {
	if x.quiet < 2 {
		x.t.Warn(format, args...)
	}
	x.status = 1
}

func (x *xzRun) warn(format string, args ...any) {
	if x.quiet < 1 {
		x.t.Warn(format, args...)
	}
	if x.status == 0 {
		x.status = 2
	}
}

func (x *xzRun) outName(name string) string {
	if x.mode == 'z' {
		own := ".xz"
		known := []string{".xz", ".txz"}
		if x.format == codec.Lzma {
			own, known = ".lzma", []string{".lzma", ".tlz"}
		}
		if x.suffix != "" {
			own = x.suffix
			known = append(known, own)
		}
		for _, s := range known {
			if strings.HasSuffix(name, s) && len(base(name)) > len(s) {
				x.warn("%s: File already has `%s' suffix, skipping", name, s)
				return ""
			}
		}
		return name + own
	}
	for _, s := range [][2]string{{".xz", ""}, {".txz", ".tar"}, {".lzma", ""}, {".tlz", ".tar"}, {x.suffix, ""}} {
		if s[0] != "" && strings.HasSuffix(name, s[0]) && len(base(name)) > len(s[0]) {
			return name[:len(name)-len(s[0])] + s[1]
		}
	}
	x.warn("%s: Filename has an unknown suffix, skipping", name)
	return ""
}

func (x *xzRun) one(name string) {
	t := x.t
	if name == "-" {
		if x.mode == 'z' && t.IsTerminal(1) {
			x.fail("Compressed data cannot be written to a terminal")
			return
		}
		if x.mode != 'z' && t.IsTerminal(0) {
			x.fail("Compressed data cannot be read from a terminal")
			return
		}
		in, _ := t.Open("-")
		x.work("(stdin)", in, x.sink())
		return
	}
	a, err := t.Lstat(name)
	if err == nil && a.Mode.IsSymlink() && (x.force || x.stdout) {
		a, err = t.Stat(name)
	}
	switch {
	case err != nil:
		x.fail("%s: %s", name, tool.Strerror(err))
		return
	case a.Mode.IsSymlink():
		x.warn("%s: Is a symbolic link, skipping", name)
		return
	case a.Mode.IsDir():
		x.warn("%s: Is a directory, skipping", name)
		return
	case !x.stdout && !x.force && !a.Mode.IsRegular():
		x.warn("%s: Not a regular file, skipping", name)
		return
	case !x.stdout && !x.force && a.Mode&0o6000 != 0:
		x.warn("%s: File has setuid or setgid bit set, skipping", name)
		return
	case !x.stdout && !x.force && !x.keep && a.Nlink > 1:
		x.warn("%s: Input file has more than one hard link, skipping", name)
		return
	}
	if x.stdout && x.mode == 'z' && t.IsTerminal(1) {
		x.fail("Compressed data cannot be written to a terminal")
		return
	}
	x.file(name, a)
}

func (x *xzRun) sink() io.Writer {
	if x.mode == 't' {
		return io.Discard
	}
	return &outWriter{t: x.t}
}

func (x *xzRun) file(name string, a vfs.Attr) {
	t := x.t
	in, err := t.OpenFile(name)
	if err != nil {
		x.fail("%s: %s", name, tool.Strerror(err))
		return
	}
	defer in.Close()
	if x.stdout {
		x.work(name, in, x.sink())
		return
	}
	out := x.outName(name)
	if out == "" {
		return
	}
	o, err := create(t, out, x.force)
	if errors.Is(err, syscall.EEXIST) {
		x.fail("%s: File exists", out)
		return
	}
	if err != nil {
		x.fail("%s: %s", out, tool.Strerror(err))
		return
	}
	if !x.work(name, in, o) {
		o.abandon()
		return
	}
	if err := o.finish(&a); err != nil {
		t.Unlink(out)
		x.fail("%s: Write error: %s", out, tool.Strerror(err))
		return
	}
	if !x.keep {
		if err := t.Unlink(name); err != nil {
			x.warn("%s: Cannot remove: %s", name, tool.Strerror(err))
		}
	}
}

func (x *xzRun) work(name string, in io.Reader, w io.Writer) bool {
	t := x.t
	cw := &counting{w: w}
	if x.mode == 'z' {
		f := x.format
		if f == codec.None {
			f = codec.Xz
		}
		z, err := codec.NewWriter(f, cw, x.level)
		var n int64
		if err == nil {
			if n, err = pump(t, z, in); err == nil {
				err = z.Close()
			}
		}
		if err != nil {
			x.fail("%s: %s", name, tool.Strerror(err))
			return false
		}
		x.report(name, cw.n, n)
		return true
	}
	c := codec.NewCounter(in)
	head, err := c.Peek(codec.HeadSize)
	if err != nil && !errors.Is(err, io.EOF) {
		x.fail("%s: %s", name, tool.Strerror(err))
		return false
	}
	f := codec.Detect(head)
	if x.format != codec.None && f != x.format || f != codec.Xz && f != codec.Lzma {
		f = codec.None
	}
	var z io.Reader
	switch {
	case f == codec.None && x.force && x.stdout && x.mode == 'd':
		z, err = c, nil
	case f == codec.None:
		err = codec.ErrFormat
	default:
		z, err = codec.NewReader(f, c)
	}
	if err == nil {
		_, err = pump(t, cw, z)
	}
	if err != nil {
		t.Out.Flush()
		x.fail("%s: %s", name, xzProblem(err))
		return false
	}
	x.report(name, c.N, cw.n)
	return true
}

func xzProblem(err error) string {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "Unexpected end of input"
	case errors.Is(err, codec.ErrFormat):
		return "File format not recognized"
	case errors.Is(err, codec.ErrChecksum), errors.Is(err, codec.ErrCorrupt), errors.Is(err, codec.ErrTrailing):
		return "Compressed data is corrupt"
	case errors.Is(err, codec.ErrMemory):
		return "Memory usage limit reached"
	case errors.Is(err, codec.ErrOptions):
		return "Unsupported options"
	}
	return tool.Strerror(err)
}

// report prints what -v says about a file.
func (x *xzRun) report(name string, packed, plain int64) {
	if x.loud == 0 {
		return
	}
	x.t.Out.Flush()
	ratio := "---"
	if plain > 0 {
		if r := float64(packed) / float64(plain); r > 9.999 {
			ratio = "> 9.999"
		} else {
			ratio = fmt.Sprintf("= %.3f", r)
		}
	}
	fmt.Fprintf(x.t.Stderr(), "%s: %s / %s %s\n", name, xzSize(uint64(packed)), xzSize(uint64(plain)), ratio)
}

// xzSize renders a size as xz does: bytes below 10000, else a number with one decimal.
func xzSize(n uint64) string {
	if n < 10000 {
		return fmt.Sprintf("%d B", n)
	}
	v := float64(n)
	unit := 0
	for {
		v /= 1024
		unit++
		if v <= 9999.9 || unit == 4 {
			break
		}
	}
	return comma(fmt.Sprintf("%.1f", v)) + " " + []string{"B", "KiB", "MiB", "GiB", "TiB"}[unit]
}

// comma is where a locale would group digits; C.UTF-8 doesn't.
func comma(s string) string { return s }

type listedXz struct {
	streams, blocks int
	packed, plain   uint64
	checks          string
	padding         uint64
}

func xzRatio(packed, plain uint64) string {
	if plain == 0 {
		return "---"
	}
	if r := float64(packed) / float64(plain); r <= 9.999 {
		return fmt.Sprintf("%.3f", r)
	}
	return "---"
}

// list prints a line of -l.
func (x *xzRun) list(name string) {
	t := x.t
	if name == "-" {
		x.fail("--list does not support reading from standard input")
		return
	}
	in, err := t.OpenFile(name)
	if err != nil {
		x.fail("%s: %s", name, tool.Strerror(err))
		return
	}
	defer in.Close()
	a, err := in.Attr()
	if err == nil && a.Mode.IsDir() {
		x.warn("%s: Is a directory, skipping", name)
		return
	}
	if err == nil && a.Size == 0 {
		x.fail("%s: File is empty", name)
		return
	}
	if err == nil && a.Size < 12 {
		x.fail("%s: Too small to be a valid .xz file", name)
		return
	}
	var streams []codec.XzStream
	if err == nil {
		streams, err = codec.XzList(in.File, a.Size)
	}
	if err != nil {
		x.fail("%s: %s", name, xzProblem(err))
		return
	}
	l := listedXz{streams: len(streams)}
	seen := map[byte]bool{}
	for _, s := range streams {
		l.blocks += s.Blocks
		l.packed += s.Size + s.Padding
		l.plain += s.Contents
		l.padding += s.Padding
		if !seen[s.Check] {
			seen[s.Check] = true
			if l.checks != "" {
				l.checks += ","
			}
			l.checks += codec.CheckName(s.Check)
		}
	}
	switch {
	case x.robot:
		fmt.Fprintf(t.Out, "name\t%s\nfile\t%d\t%d\t%d\t%d\t%s\t%s\t%d\n", name, l.streams, l.blocks, l.packed, l.plain, xzRatio(l.packed, l.plain), l.checks, l.padding)
	case x.loud > 0:
		x.details(name, l, streams)
	default:
		if len(x.listed) == 0 {
			t.Out.WriteString("Strms  Blocks   Compressed Uncompressed  Ratio  Check   Filename\n")
		}
		x.listRow(l, name)
	}
	x.listed = append(x.listed, l)
}

func (x *xzRun) listRow(l listedXz, name string) {
	fmt.Fprintf(x.t.Out, "%5d %7d  %11s  %11s  %5s  %-7s %s\n", l.streams, l.blocks, xzSize(l.packed), xzSize(l.plain), xzRatio(l.packed, l.plain), l.checks, name)
}

func (x *xzRun) totals() {
	if len(x.listed) == 0 || len(x.listed) == 1 && !x.robot {
		return
	}
	var sum listedXz
	seen := map[string]bool{}
	for _, l := range x.listed {
		sum.streams += l.streams
		sum.blocks += l.blocks
		sum.packed += l.packed
		sum.plain += l.plain
		sum.padding += l.padding
		for c := range strings.SplitSeq(l.checks, ",") {
			if !seen[c] {
				seen[c] = true
				sum.checks = strings.TrimPrefix(sum.checks+","+c, ",")
			}
		}
	}
	switch n := len(x.listed); {
	case x.robot:
		fmt.Fprintf(x.t.Out, "totals\t%d\t%d\t%d\t%d\t%s\t%s\t%d\t%d\n", sum.streams, sum.blocks, sum.packed, sum.plain, xzRatio(sum.packed, sum.plain), sum.checks, sum.padding, n)
	case x.loud > 0:
		fmt.Fprintf(x.t.Out, "\nTotals:\n  Number of files:   %d\n", n)
		x.summary(sum)
	default:
		x.t.Out.WriteString(strings.Repeat("-", 79) + "\n")
		x.listRow(sum, fmt.Sprintf("%d files", n))
	}
}

func exactSize(n uint64) string {
	if n < 10000 {
		return xzSize(n)
	}
	return fmt.Sprintf("%s (%d B)", xzSize(n), n)
}

func (x *xzRun) summary(l listedXz) {
	fmt.Fprintf(x.t.Out, "  Streams:           %d\n  Blocks:            %d\n  Compressed size:   %s\n  Uncompressed size: %s\n  Ratio:             %s\n  Check:             %s\n  Stream Padding:    %s\n",
		l.streams, l.blocks, exactSize(l.packed), exactSize(l.plain), xzRatio(l.packed, l.plain), l.checks, exactSize(l.padding))
}

// details is the report of -lv.
func (x *xzRun) details(name string, l listedXz, streams []codec.XzStream) {
	w := x.t.Out
	if len(x.listed) > 0 {
		w.WriteByte('\n')
	}
	fmt.Fprintf(w, "%s (%d/%d)\n", name, len(x.listed)+1, x.files)
	x.summary(l)
	w.WriteString("  Streams:\n    Stream    Blocks      CompOffset    UncompOffset        CompSize      UncompSize  Ratio  Check      Padding\n")
	var at, plain uint64
	for i, s := range streams {
		fmt.Fprintf(w, "    %6d %9d %15d %15d %15d %15d  %5s  %-10s %7d\n", i+1, s.Blocks, at, plain, s.Size, s.Contents, xzRatio(s.Size, s.Contents), codec.CheckName(s.Check), s.Padding)
		at += s.Size + s.Padding
		plain += s.Contents
	}
	if l.blocks == 0 {
		return
	}
	w.WriteString("  Blocks:\n    Stream     Block      CompOffset    UncompOffset       TotalSize      UncompSize  Ratio  Check\n")
	at, plain = 0, 0
	for i, s := range streams {
		block := at + 12
		for j, r := range s.Records {
			total := (r[0] + 3) &^ 3
			ratio := "---"
			if r[1] > 0 {
				ratio = fmt.Sprintf("%.3f", float64(total)/float64(r[1]))
			}
			fmt.Fprintf(w, "    %6d %9d %15d %15d %15d %15d  %5s  %s\n", i+1, j+1, block, plain, total, r[1], ratio, codec.CheckName(s.Check))
			block += total
			plain += r[1]
		}
		at += s.Size + s.Padding
	}
}
