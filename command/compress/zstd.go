package compress

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"

	"agentrun.dev/command/codec"
	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

const (
	keyRm = tool.KeyOwn + 200 + iota
	keyFast
	keyUltra
	keyOutputDir
	keyPass
	keyFormat
	keyLevel
	keyFilelist
)

var zstdSpec = tool.Spec{
	Usage: []string{"[OPTIONS...] [INPUT... | -] [-o OUTPUT]"},
	About: "Compress or decompress the INPUT file(s); reads from STDIN if INPUT is `-` or not provided.",
	Options: []getopt.Option{
		{Short: 'o', Arg: getopt.Required, Name: "OUTPUT", Help: "Write output to a single file, OUTPUT."},
		{Short: 'k', Long: "keep", Help: "Preserve INPUT file(s). [Default]"},
		{Long: "rm", Key: keyRm, Help: "Remove INPUT file(s) after successful (de)compression."},
		{Short: 'z', Long: "compress"},
		{Short: 'd', Long: "decompress", Help: "Perform decompression."},
		{Short: 'd', Long: "uncompress", Hidden: true},
		{Short: 'f', Long: "force", Help: "Disable input and output checks."},
		{Short: 'c', Long: "stdout", Help: "Write to STDOUT (even if it is a console) and keep the INPUT file(s)."},
		{Short: 't', Long: "test", Help: "Test compressed file integrity."},
		{Short: 'l', Long: "list", Help: "Print information about Zstandard-compressed files."},
		{Short: 'r', Help: "Operate recursively on directories."},
		{Short: 'v', Long: "verbose", Help: "Enable verbose output; pass multiple times to increase verbosity."},
		{Short: 'q', Long: "quiet", Help: "Suppress warnings; pass twice to suppress errors."},
		{Short: 'T', Arg: getopt.Required}, {Long: "threads", Key: 'T', Arg: getopt.Required},
		{Short: 'D', Arg: getopt.Required}, {Short: 'B', Arg: getopt.Required},
		{Long: "fast", Key: keyFast, Arg: getopt.Optional},
		{Long: "ultra", Key: keyUltra}, {Long: "long", Key: keyIgnored, Arg: getopt.Optional},
		{Long: "single-thread", Key: keyIgnored}, {Long: "rsyncable", Key: keyIgnored}, {Long: "adapt", Key: keyIgnored, Arg: getopt.Optional},
		{Long: "check", Key: keyIgnored}, {Long: "no-check", Key: keyIgnored}, {Long: "sparse", Key: keyIgnored}, {Long: "no-sparse", Key: keyIgnored},
		{Long: "progress", Key: keyIgnored}, {Long: "no-progress", Key: keyIgnored}, {Long: "content-size", Key: keyIgnored}, {Long: "no-content-size", Key: keyIgnored},
		{Long: "memory", Key: keyIgnoredArg, Arg: getopt.Required}, {Short: 'M', Key: keyIgnoredArg, Arg: getopt.Required}, {Long: "auto-threads", Key: keyIgnoredArg, Arg: getopt.Required},
		{Long: "pass-through", Key: keyPass}, {Long: "format", Key: keyFormat, Arg: getopt.Required, Name: "FORMAT", Help: "Compress files to the .FORMAT specified: zstd or gzip."},
		{Long: "output-dir-flat", Key: keyOutputDir, Arg: getopt.Required, Name: "DIR", Help: "Store processed files in DIR."},
		{Short: 'h', Key: 'h'}, {Short: 'H', Key: 'h'}, {Short: 'V'},
		{Long: "level", Key: keyLevel, Arg: getopt.Required},
	},
	Package: "Zstandard CLI) 1.5.4", Fail: 1,
}

type zstdRun struct {
	t                                                *tool.T
	mode                                             byte
	stdout, force, remove, recursive, pass, isStdout bool
	out, dir                                         string
	verbosity, level                                 int
	format                                           codec.Format
	status, done                                     int
	in, plain                                        int64
	title                                            bool
	skips, frames                                    int
}

// Zstd compresses files.
func Zstd(t *tool.T) int { return runZstd(t, 'z', false) }

// Unzstd decompresses files.
func Unzstd(t *tool.T) int { return runZstd(t, 'd', false) }

// Zstdcat decompresses files to standard output.
func Zstdcat(t *tool.T) int { return runZstd(t, 'd', true) }

func runZstd(t *tool.T, mode byte, stdout bool) int {
	t.Name = base(t.Name)
	z := &zstdRun{t: t, mode: mode, stdout: stdout, force: stdout, pass: stdout, verbosity: 2, level: 3, format: codec.Zstd}
	if stdout {
		z.verbosity = 1
	}
	opts, files := t.ParseArgs(&zstdSpec, zstdLevels(t.Args()[1:]))
	for _, o := range opts {
		z.option(o)
	}
	if z.recursive {
		files = z.expand(files)
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	if z.mode == 'l' {
		return z.listAll(files)
	}
	if z.out == "-" {
		z.stdout, z.out = true, ""
	}
	if len(files) == 1 && files[0] == "-" && z.out == "" && z.mode != 't' {
		z.stdout = true
	}
	if z.stdout && z.verbosity == 2 {
		z.verbosity = 1
	}
	if z.mode == 't' {
		z.remove = false
	}
	if z.out != "" && len(files) > 1 && !z.force {
		fmt.Fprintf(t.Stderr(), "zstd: WARNING: all input files will be processed and concatenated into a single output file: %s \nThe concatenated output CANNOT regenerate original file names nor directory structure. \nProceed? (y/n): Aborting... \n", z.out)
		return 1
	}
	z.all(files)
	return z.status
}

// zstdLevels turns -19 into --level=19, where it isn't an option's argument.
func zstdLevels(args []string) []string {
	out := make([]string, 0, len(args))
	for i, a := range args {
		if a == "--" {
			return append(out, args[i:]...)
		}
		if len(a) > 1 && a[0] == '-' && a[1] != '-' && (i == 0 || args[i-1] != "-o" && args[i-1] != "-D" && args[i-1] != "-T") && strings.IndexAny(a, "oDTBM") < 0 {
			letters, digits := "", ""
			for _, c := range a[1:] {
				if c >= '0' && c <= '9' {
					digits += string(c)
				} else {
					letters += string(c)
				}
			}
			if digits != "" {
				if out = append(out, "--level="+digits); letters == "" {
					continue
				}
				a = "-" + letters
			}
		}
		out = append(out, a)
	}
	return out
}

func (z *zstdRun) option(o getopt.Opt) {
	switch o.Key {
	case 'o':
		z.out = o.Arg
	case 'k':
		z.remove = false
	case keyRm:
		z.remove = true
	case 'z', 'd', 't', 'l':
		z.mode = byte(o.Key)
	case 'f':
		z.force, z.pass = true, true
	case 'c':
		z.stdout = true
	case 'r':
		z.recursive = true
	case 'v':
		z.verbosity++
	case 'q':
		z.verbosity--
	case keyPass:
		z.pass = true
	case keyFast:
		z.level = 1
	case keyLevel:
		n, err := strconv.Atoi(o.Arg)
		if err != nil || n > 22 {
			n = 22
		}
		z.level = n
	case keyFormat:
		switch o.Arg {
		case "zstd":
			z.format = codec.Zstd
		case "gzip":
			z.format = codec.Gzip
		case "xz":
			z.format = codec.Xz
		case "lzma":
			z.format = codec.Lzma
		default:
			z.t.Fatal(1, "Incorrect parameter: --format=%s", o.Arg)
		}
	case keyOutputDir:
		z.dir = o.Arg
	case 'D':
		z.t.Fatal(1, "dictionaries are not supported")
	case 'h':
		z.t.Help(&zstdSpec)
		z.t.Exit(0)
	case 'V':
		z.t.Version(&zstdSpec)
		z.t.Exit(0)
	}
}

// say prints a message if the verbosity allows it. Messages end in a blank, as zstd's do.
func (z *zstdRun) say(level int, format string, args ...any) {
	if z.verbosity >= level {
		z.t.Out.Flush()
		fmt.Fprintf(z.t.Stderr(), format, args...)
	}
}

func (z *zstdRun) fail(format string, args ...any) {
	z.say(1, format, args...)
	z.status = 1
}

// expand replaces directories by the files in them.
func (z *zstdRun) expand(files []string) []string {
	var out []string
	var walk func(name string, depth int)
	walk = func(name string, depth int) {
		z.t.Check()
		a, err := z.t.Lstat(name)
		if err != nil || !a.Mode.IsDir() || depth > 1000 {
			if err != nil || a.Mode.IsRegular() || depth == 0 {
				out = append(out, name)
			}
			return
		}
		list, _ := z.t.ReadDir(name)
		for _, e := range list {
			walk(strings.TrimSuffix(name, "/")+"/"+e.Name, depth+1)
		}
	}
	for _, f := range files {
		walk(f, 0)
	}
	return out
}

var zstdSuffixes = []struct {
	suffix, replaced string
	f                codec.Format
}{{".zst", "", codec.Zstd}, {".tzst", ".tar", codec.Zstd}, {".gz", "", codec.Gzip}, {".tgz", ".tar", codec.Gzip}, {".lzma", "", codec.Lzma}, {".xz", "", codec.Xz}, {".txz", ".tar", codec.Xz}}

func (z *zstdRun) outName(name string) (string, bool) {
	out := ""
	if z.mode == 'z' {
		out = name + map[codec.Format]string{codec.Zstd: ".zst", codec.Gzip: ".gz", codec.Xz: ".xz", codec.Lzma: ".lzma"}[z.format]
	} else {
		for _, s := range zstdSuffixes {
			if strings.HasSuffix(name, s.suffix) && len(base(name)) > len(s.suffix) {
				out = name[:len(name)-len(s.suffix)] + s.replaced
			}
		}
		if out == "" {
			z.fail("zstd: %s: unknown suffix (.zst/.tzst/.gz/.tgz/.lzma/.xz/.txz/.lz4/.tlz4 expected). Can't derive the output file name. Specify it with -o dstFileName. Ignoring.\n", name)
			return "", false
		}
	}
	if z.dir != "" {
		out = strings.TrimSuffix(z.dir, "/") + "/" + base(out)
	}
	return out, true
}

func (z *zstdRun) all(files []string) {
	t := z.t
	var shared io.Writer
	var o *target
	if z.stdout {
		shared = &outWriter{t: t}
	} else if z.mode == 't' {
		shared = io.Discard
	} else if z.out != "" {
		var ok bool
		if o, ok = z.create(z.out); !ok {
			return
		}
		shared = o
	}
	for _, f := range files {
		z.file(f, shared, o != nil, len(files) > 1)
	}
	if o != nil {
		if z.status != 0 && z.done == 0 {
			o.abandon()
		} else {
			var a *vfs.Attr
			if len(files) == 1 && files[0] != "-" {
				if got, err := t.Stat(files[0]); err == nil {
					a = &got
				}
			}
			if a == nil {
				mode := vfs.Mode(0o666) &^ t.Cred().Umask
				o.f.SetAttr(vfs.SetAttr{Mode: &mode})
			}
			if err := o.finish(a); err != nil {
				z.fail("zstd: %s: %s \n", z.out, tool.Strerror(err))
			}
		}
	}
	if z.done > 1 {
		if z.mode == 'z' {
			z.say(2, "%3d files compressed :%6.2f%% (%6s B => %6s B) \n", z.done, 100*float64(z.plain)/float64(max(z.in, 1)), zSize(z.in), zSize(z.plain))
		} else {
			z.say(2, "%d files decompressed : %6d bytes total \n", z.done, z.plain)
		}
	}
}

// zSize is a size with two decimals and a unit that "B" completes.
func zSize(n int64) string {
	switch {
	case n < 1024:
		return fmt.Sprintf("%d  ", n)
	case n < 1<<20:
		return fmt.Sprintf("%.2f Ki", float64(n)/1024)
	case n < 1<<30:
		return fmt.Sprintf("%.2f Mi", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.2f Gi", float64(n)/(1<<30))
}

func (z *zstdRun) create(name string) (*target, bool) {
	o, err := create(z.t, name, z.force)
	if errors.Is(err, syscall.EEXIST) {
		if z.verbosity > 1 {
			z.fail("zstd: %s already exists; overwrite (y/n) ? Not overwritten  \n \n", name)
		} else {
			z.fail("zstd: %s already exists; not overwritten  \n", name)
		}
		return nil, false
	}
	if err != nil {
		z.fail("zstd: %s: %s \n", name, tool.Strerror(err))
		return nil, false
	}
	return o, true
}

const zstdStdin = "/*stdin*\\"

func (z *zstdRun) file(name string, shared io.Writer, single, several bool) {
	t := z.t
	in, err := t.Open(name)
	shown := name
	if name == "-" {
		shown, err = zstdStdin, nil
		if z.mode == 'z' && z.stdout && t.IsTerminal(1) && !z.force {
			z.fail("zstd: stdout is a console, aborting\n")
			return
		}
		if z.mode != 'z' && t.IsTerminal(0) && !z.force {
			z.fail("zstd: stdin is a console, aborting\n")
			return
		}
	}
	if err != nil {
		z.fail("zstd: can't stat %s : %s -- ignored \n", name, tool.Strerror(err))
		return
	}
	defer in.Close()
	a, aerr := in.Attr()
	if name != "-" && aerr == nil && a.Mode.IsDir() {
		z.fail("zstd: %s is a directory -- ignored \n", name)
		return
	}
	if l, err := t.Lstat(name); name != "-" && err == nil && l.Mode.IsSymlink() && !z.force && !z.stdout {
		z.say(1, "Warning : %s is a symbolic link, ignoring \n", name)
		z.status = 1
		return
	}
	if shared != nil {
		if z.work(name, shown, "", in, shared, several) && z.remove && !z.stdout {
			t.Unlink(name)
		}
		return
	}
	out, ok := z.outName(name)
	if !ok {
		return
	}
	o, ok := z.create(out)
	if !ok {
		return
	}
	if !z.work(name, shown, out, in, o, several) {
		o.abandon()
		return
	}
	if err := o.finish(&a); err != nil {
		t.Unlink(out)
		z.fail("zstd: %s: %s \n", out, tool.Strerror(err))
		return
	}
	if z.remove {
		t.Unlink(name)
	}
}

func (z *zstdRun) work(name, shown, out string, in io.Reader, w io.Writer, several bool) bool {
	t := z.t
	cw := &counting{w: w}
	if out == "" {
		if out = z.out; out == "" {
			out = "/*stdout*\\"
		}
	}
	if z.mode == 'z' {
		enc, err := codec.NewWriter(z.format, cw, z.level)
		var n int64
		if err == nil {
			if n, err = pump(t, enc, in); err == nil {
				err = enc.Close()
			}
		}
		if err != nil {
			z.fail("zstd: %s: %s \n", shown, tool.Strerror(err))
			return false
		}
		z.done++
		z.in += n
		z.plain += cw.n
		if !several {
			ratio := ""
			if n > 0 {
				ratio = fmt.Sprintf("%6.2f%%", 100*float64(cw.n)/float64(n))
			}
			z.say(2, "%-20s :%s   (%6s B => %6s B, %s) \n", shown, ratio, zSize(n), zSize(cw.n), out)
		}
		return true
	}
	c := codec.NewCounter(in)
	head, err := c.Peek(codec.HeadSize)
	var r io.Reader
	f := codec.Detect(head)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
	case f == codec.None && z.pass && z.stdout:
		r, err = c, nil
	case f == codec.None || f == codec.Bzip2:
		if len(head) == 0 {
			z.fail("zstd: %s: unexpected end of file \n", shown)
		} else {
			z.fail("zstd: %s: unsupported format \n", shown)
		}
		return false
	default:
		r, err = codec.NewReader(f, c)
	}
	if err == nil {
		_, err = pump(t, cw, r)
	}
	if err != nil {
		t.Out.Flush()
		z.fail("%s", zstdProblem(shown, err))
		return false
	}
	z.done++
	z.plain += cw.n
	if !several {
		z.say(2, "%-20s: %d bytes \n", shown, cw.n)
	}
	return true
}

func zstdProblem(name string, err error) string {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return name + " : Read error (39) : premature end \n"
	case errors.Is(err, codec.ErrFormat):
		return "zstd: " + name + ": unsupported format \n"
	case errors.Is(err, codec.ErrChecksum):
		return name + " : Decoding error (36) : Restored data doesn't match checksum \n"
	case errors.Is(err, codec.ErrMemory):
		return name + " : Decoding error (36) : Frame requires too much memory for decoding \n"
	case errors.Is(err, codec.ErrCorrupt):
		return name + " : Decoding error (36) : Data corruption detected \n"
	}
	return "zstd: " + name + ": " + tool.Strerror(err) + " \n"
}

// listAll is -l: it decompresses each file to learn its size, where its header doesn't say.
func (z *zstdRun) listAll(files []string) int {
	t := z.t
	var packed, plain int64
	frames := 0
	shown := 0
	t.Out.WriteString("Frames  Skips  Compressed  Uncompressed  Ratio  Check  Filename\n")
	for _, name := range files {
		in, err := t.OpenFile(name)
		if err != nil {
			z.fail("zstd: can't stat %s : %s -- ignored \n", name, tool.Strerror(err))
			continue
		}
		c := codec.NewCounter(in)
		r, err := codec.NewReader(codec.Zstd, c)
		var n int64
		if err == nil {
			n, err = pump(t, io.Discard, r)
			r.Close()
		}
		in.Close()
		if err != nil {
			z.fail("File \"%s\" not compressed by zstd \n", name)
			continue
		}
		z.listRow(1, c.N, n, "XXH64", name)
		packed, plain, frames = packed+c.N, plain+n, frames+1
		shown++
	}
	if shown > 1 {
		t.Out.WriteString("----------------------------------------------------------------- \n")
		z.listRow(frames, packed, plain, "XXH64", fmt.Sprintf("%d files", shown))
	}
	return z.status
}

func (z *zstdRun) listRow(frames int, packed, plain int64, check, name string) {
	size := func(n int64) string {
		if n < 1024 {
			return fmt.Sprintf("%d   B", n)
		}
		return zSize(n) + "B"
	}
	ratio := 0.0
	if packed > 0 {
		ratio = float64(plain) / float64(packed)
	}
	fmt.Fprintf(z.t.Out, "%6d  %5d  %10s  %12s  %5.3f  %5s  %s\n", frames, 0, size(packed), size(plain), ratio, check, name)
}
