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

var bzip2Spec = tool.Spec{
	Usage: []string{"[flags and input files in any order]"},
	About: "bzip2, a block-sorting file compressor.",
	Options: []getopt.Option{
		{Short: 'd', Long: "decompress", Help: "force decompression"},
		{Short: 'z', Long: "compress", Help: "force compression"},
		{Short: 'k', Long: "keep", Help: "keep (don't delete) input files"},
		{Short: 'f', Long: "force", Help: "overwrite existing output files"},
		{Short: 't', Long: "test", Help: "test compressed file integrity"},
		{Short: 'c', Long: "stdout", Help: "output to standard out"},
		{Short: 'q', Long: "quiet", Help: "suppress noncritical error messages"},
		{Short: 'v', Long: "verbose", Help: "be verbose (a 2nd -v gives more)"},
		{Short: 's', Long: "small", Help: "use less memory (at most 2500k)"},
		{Short: 'L', Long: "license"}, {Short: 'V'}, {Short: 'h', Key: 'h'},
		{Short: '1', Long: "fast", Help: "set block size to 100k"},
		{Short: '2'}, {Short: '3'}, {Short: '4'}, {Short: '5'}, {Short: '6'}, {Short: '7'}, {Short: '8'},
		{Short: '9', Long: "best", Help: "set block size to 900k"},
	},
	Notes:   "If no file names are given, bzip2 compresses or decompresses from standard input to standard output.",
	Package: "bzip2) 1.0.8", Fail: 1,
}

type bzip2Run struct {
	t                                                  *tool.T
	decompress, keep, force, test, stdout, quiet, loud bool
	level, status, pad                                 int
}

// Bzip2 compresses files.
func Bzip2(t *tool.T) int { return runBzip2(t, false, false) }

// Bunzip2 decompresses files.
func Bunzip2(t *tool.T) int { return runBzip2(t, true, false) }

// Bzcat decompresses files to standard output.
func Bzcat(t *tool.T) int { return runBzip2(t, true, true) }

func runBzip2(t *tool.T, decompress, stdout bool) int {
	t.Name = base(t.Name)
	b := &bzip2Run{t: t, decompress: decompress, stdout: stdout, level: 9, pad: 7}
	opts, files := t.Parse(&bzip2Spec)
	for _, o := range opts {
		switch o.Key {
		case 'd':
			b.decompress = true
		case 'z':
			b.decompress = false
		case 'k':
			b.keep = true
		case 'f':
			b.force = true
		case 't':
			b.test, b.decompress = true, true
		case 'c':
			b.stdout = true
		case 'q':
			b.quiet = true
		case 'v':
			b.loud = true
		case 'L', 'V':
			t.Version(&bzip2Spec)
			return 0
		case 'h':
			t.Help(&bzip2Spec)
			return 0
		case '1', '2', '3', '4', '5', '6', '7', '8', '9':
			b.level = int(o.Key - '0')
		}
	}
	for _, f := range files {
		b.pad = max(b.pad, len(f))
	}
	if len(files) == 0 {
		b.standardInput()
	}
	for _, f := range files {
		if f == "-" {
			b.standardInput()
			continue
		}
		b.file(f)
	}
	return b.status
}

// fail reports an error and raises the exit status.
func (b *bzip2Run) fail(status int, format string, args ...any) {
	b.t.Warn(format, args...)
	b.status = max(b.status, status)
}

func (b *bzip2Run) standardInput() {
	t := b.t
	switch {
	case !b.decompress && t.IsTerminal(1):
		t.Fatal(1, "I won't write compressed data to a terminal.\n%s: For help, type: `%s --help'.", t.Name, t.Name)
	case b.decompress && t.IsTerminal(0):
		t.Fatal(1, "I won't read compressed data from a terminal.\n%s: For help, type: `%s --help'.", t.Name, t.Name)
	}
	in, _ := t.Open("-")
	b.label("(stdin)")
	w := io.Writer(&outWriter{t: t})
	if b.test {
		w = io.Discard
	}
	b.work("(stdin)", "(stdout)", in, w)
}

func (b *bzip2Run) label(name string) {
	if b.loud {
		b.t.Out.Flush()
		fmt.Fprintf(b.t.Stderr(), "  %s: %s", name, strings.Repeat(" ", max(b.pad-len(name), 0)))
	}
}

func (b *bzip2Run) file(name string) {
	t := b.t
	a, err := t.Stat(name)
	if err != nil {
		b.fail(1, "Can't open input file %s: %s.", name, tool.Strerror(err))
		return
	}
	if a.Mode.IsDir() {
		b.fail(1, "Input file %s is a directory.", name)
		return
	}
	inPlace := !b.stdout && !b.test
	out := "(stdout)"
	if inPlace {
		if out = b.outName(name, a); out == "" {
			return
		}
	}
	if !b.decompress && b.stdout && t.IsTerminal(1) {
		t.Fatal(1, "I won't write compressed data to a terminal.\n%s: For help, type: `%s --help'.", t.Name, t.Name)
	}
	in, err := t.OpenFile(name)
	if err != nil {
		b.fail(1, "Can't open input file %s: %s.", name, tool.Strerror(err))
		return
	}
	defer in.Close()
	if !inPlace {
		b.label(name)
		w := io.Writer(&outWriter{t: t})
		if b.test {
			w = io.Discard
		}
		b.work(name, out, in, w)
		return
	}
	o, err := create(t, out, b.force)
	if errors.Is(err, syscall.EEXIST) {
		b.fail(1, "Output file %s already exists.", out)
		return
	}
	if err != nil {
		b.fail(1, "Can't create output file %s: %s.", out, tool.Strerror(err))
		return
	}
	b.label(name)
	if !b.work(name, out, in, o) {
		o.abandon()
		return
	}
	if err := o.finish(&a); err != nil {
		t.Unlink(out)
		b.fail(1, "Can't write output file %s: %s.", out, tool.Strerror(err))
		return
	}
	if !b.keep {
		t.Unlink(name)
	}
}

var bzSuffixes = [][2]string{{".bz2", ""}, {".bz", ""}, {".tbz2", ".tar"}, {".tbz", ".tar"}}

// outName returns what a file's result is called; "" if it is refused.
func (b *bzip2Run) outName(name string, a vfs.Attr) string {
	out := name + ".bz2"
	if !b.decompress {
		for _, s := range bzSuffixes {
			if strings.HasSuffix(name, s[0]) {
				b.fail(1, "Input file %s already has %s suffix.", name, s[0])
				return ""
			}
		}
	} else {
		out = ""
		for _, s := range bzSuffixes {
			if strings.HasSuffix(name, s[0]) {
				out = name[:len(name)-len(s[0])] + s[1]
				break
			}
		}
		if out == "" {
			out = name + ".out"
			if !b.quiet {
				b.t.Warn("Can't guess original name for %s -- using %s", name, out)
			}
		}
	}
	l, err := b.t.Lstat(name)
	if !b.force && (err == nil && !l.Mode.IsRegular() || !a.Mode.IsRegular()) {
		if !b.quiet {
			b.t.Warn("Input file %s is not a normal file.", name)
		}
		b.status = max(b.status, 1)
		return ""
	}
	if _, err := b.t.Lstat(out); err == nil && !b.force {
		b.fail(1, "Output file %s already exists.", out)
		return ""
	}
	if n := a.Nlink - 1; n > 0 && !b.force {
		s := "s"
		if n == 1 {
			s = ""
		}
		b.fail(1, "Input file %s has %d other link%s.", name, n, s)
		return ""
	}
	return out
}

func (b *bzip2Run) work(name, out string, in io.Reader, w io.Writer) bool {
	t := b.t
	if !b.decompress {
		cw := &counting{w: w}
		z, err := codec.NewWriter(codec.Bzip2, cw, b.level)
		var n int64
		if err == nil {
			if n, err = pump(t, z, in); err == nil {
				err = z.Close()
			}
		}
		if err != nil {
			b.ioError(name, out, err)
			return false
		}
		if b.loud {
			if n == 0 {
				t.Stderr().Write([]byte(" no data compressed.\n"))
			} else {
				fmt.Fprintf(t.Stderr(), "%6.3f:1, %6.3f bits/byte, %5.2f%% saved, %d in, %d out.\n", float64(n)/float64(cw.n), 8*float64(cw.n)/float64(n), 100*(1-float64(cw.n)/float64(n)), n, cw.n)
			}
		}
		return true
	}
	c := codec.NewCounter(in)
	z, err := codec.NewReader(codec.Bzip2, c)
	if errors.Is(err, codec.ErrFormat) && b.force && !b.test {
		_, err = pump(t, w, c)
		if err != nil {
			b.ioError(name, out, err)
		}
		return err == nil
	}
	if err == nil {
		_, err = pump(t, w, z)
	}
	return b.decompressed(name, out, err)
}

// decompressed says how the decompression ended.
func (b *bzip2Run) decompressed(name, out string, err error) bool {
	t := b.t
	t.Out.Flush()
	switch {
	case err == nil && b.test && b.loud:
		t.Stderr().Write([]byte("ok\n"))
	case err == nil && b.loud:
		t.Stderr().Write([]byte("done\n"))
	case err == nil:
	case errors.Is(err, codec.ErrTrailing):
		if b.loud {
			t.Stderr().Write([]byte("\n    trailing garbage after EOF ignored\n"))
		}
		if b.loud && !b.test {
			t.Stderr().Write([]byte("done\n"))
		}
	case errors.Is(err, codec.ErrFormat):
		if b.test {
			if !b.loud {
				fmt.Fprintf(t.Stderr(), "%s: %s: bad magic number (file not created by bzip2)\n", t.Name, name)
			} else {
				t.Stderr().Write([]byte("bad magic number (file not created by bzip2)\n"))
			}
			b.problem()
		} else if b.loud {
			t.Stderr().Write([]byte("not a bzip2 file.\n"))
			b.status = max(b.status, 2)
		} else {
			b.fail(2, "%s is not a bzip2 file.", name)
		}
		return false
	case errors.Is(err, io.ErrUnexpectedEOF):
		if b.test {
			b.testFailed(name, "file ends unexpectedly")
			return false
		}
		fmt.Fprintf(t.Stderr(), "\n%s: Compressed file ends unexpectedly;\n\tperhaps it is corrupted?  *Possible* reason follows.\n%s: Success\n\tInput file = %s, output file = %s\n", t.Name, t.Name, name, out)
		b.cadvise(out)
	case errors.Is(err, codec.ErrChecksum), errors.Is(err, codec.ErrCorrupt):
		if b.test {
			b.testFailed(name, "data integrity (CRC) error in data")
			return false
		}
		fmt.Fprintf(t.Stderr(), "\n%s: Data integrity error when decompressing.\n\tInput file = %s, output file = %s\n", t.Name, name, out)
		b.cadvise(out)
	default:
		b.ioError(name, out, err)
		return false
	}
	return err == nil || errors.Is(err, codec.ErrTrailing)
}

func (b *bzip2Run) testFailed(name, text string) {
	if b.loud {
		fmt.Fprintf(b.t.Stderr(), "%s\n", text)
	} else {
		fmt.Fprintf(b.t.Stderr(), "%s: %s: %s\n", b.t.Name, name, text)
	}
	b.problem()
}

// problem is what -t says at the end if something was wrong.
func (b *bzip2Run) problem() {
	if b.status < 2 {
		b.t.Stderr().Write([]byte("\nYou can use the `bzip2recover' program to attempt to recover\ndata from undamaged sections of corrupted files.\n\n"))
	}
	b.status = max(b.status, 2)
}

// cadvise is the advice after a broken file, which ends the command.
func (b *bzip2Run) cadvise(out string) {
	b.t.Stderr().Write([]byte("\nIt is possible that the compressed file(s) have become corrupted.\nYou can use the -tvv option to test integrity of such files.\n\nYou can use the `bzip2recover' program to attempt to recover\ndata from undamaged sections of corrupted files.\n\n"))
	if out != "(stdout)" {
		fmt.Fprintf(b.t.Stderr(), "%s: Deleting output file %s, if it exists.\n", b.t.Name, out)
		b.t.Unlink(out)
	}
	b.t.Exit(2)
}

func (b *bzip2Run) ioError(name, out string, err error) {
	b.t.Out.Flush()
	fmt.Fprintf(b.t.Stderr(), "\n%s: I/O or other error, bailing out.  Possible reason follows.\n%s: %s\n\tInput file = %s, output file = %s\n", b.t.Name, b.t.Name, tool.Strerror(err), name, out)
	if out != "(stdout)" {
		b.t.Unlink(out)
	}
	b.t.Exit(1)
}
