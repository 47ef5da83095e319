package archive

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"agentrun.dev/command/codec"
	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// output is the archive being written: records of blocks, perhaps compressed.
type output struct {
	a     *tar
	w     io.Writer
	buf   *bufio.Writer
	z     io.Closer
	f     vfs.File
	child *proc.Process
	n     int64 // bytes written before compression
	id    [2]uint64
}

// openOutput makes the archive.
func (a *tar) openOutput() *output {
	t := a.t
	o := &output{a: a}
	var sink io.Writer
	if a.archive == "-" {
		if t.IsTerminal(1) {
			a.fatal("Refusing to write archive contents to terminal (missing -f option?)")
		}
		sink = t.Out
		if f, err := t.File(1); err == nil {
			o.identify(f)
		}
	} else {
		f, err := t.Create(a.archive)
		if err != nil {
			a.fatal("%s: Cannot open: %s", tarQuote(a.archive), tool.Strerror(err))
		}
		o.f, sink = f, f
		o.identify(f)
	}
	f, level, ok := a.filter()
	switch {
	case ok && f != codec.None:
		b := bufio.NewWriterSize(sink, 64<<10)
		z, err := codec.NewWriter(f, b, level)
		if err != nil {
			a.fatal("%s", err)
		}
		o.buf, o.z, o.w = b, z, z
	case !ok:
		o.w = a.spawnFilter(o)
	default:
		o.buf = bufio.NewWriterSize(sink, a.blocking*blockSize)
		o.w = o.buf
	}
	return o
}

func (o *output) identify(f vfs.File) {
	if at, err := f.Attr(); err == nil && at.Mode.IsRegular() {
		o.id = [2]uint64{at.Dev, uint64(at.Ino)}
	}
}

// filter returns the compression to write with; ok is false if it is a program that isn't built in.
func (a *tar) filter() (f codec.Format, level int, ok bool) {
	if a.program == "" {
		return a.compression, -1, true
	}
	words := strings.Fields(a.program)
	level = -1
	if len(words) == 0 {
		return codec.None, 0, true
	}
	switch words[0][strings.LastIndexByte(words[0], '/')+1:] {
	case "gzip", "pigz":
		f = codec.Gzip
	case "bzip2", "pbzip2", "lbzip2":
		f = codec.Bzip2
	case "xz", "pixz":
		f = codec.Xz
	case "zstd", "zstdmt":
		f = codec.Zstd
	default:
		return codec.None, 0, false
	}
	for _, w := range words[1:] {
		switch n := 0; {
		case w == "-n" || w == "--no-name" || w == "-q" || w == "-c" || strings.HasPrefix(w, "-T") || strings.HasPrefix(w, "--long") || w == "-e" || w == "--rsyncable":
		case w == "--best":
			level = 9
		case w == "--fast":
			level = 1
		default:
			if _, err := fmt.Sscanf(w, "-%d", &n); err != nil || n <= 0 {
				return codec.None, 0, false
			}
			level = n
		}
	}
	return f, level, true
}

// spawnFilter starts a program that compresses into the archive.
func (a *tar) spawnFilter(o *output) io.Writer {
	t := a.t
	r, w, err := t.Pipe()
	if err != nil {
		a.fatal("%s", tool.Strerror(err))
	}
	files := map[int]vfs.File{0: r}
	if o.f != nil {
		files[1] = o.f
	}
	o.child, err = t.Spawn(proc.Spawn{Args: strings.Fields(a.program), Files: files})
	r.Close()
	if err != nil {
		w.Close()
		t.Warn("%s: Cannot exec: %s", a.program, tool.Strerror(err))
		a.fatal("Child returned status 2")
	}
	o.buf = bufio.NewWriterSize(w, a.blocking*blockSize)
	o.z = w
	return o.buf
}

// Write writes archive data; failing ends the command.
func (o *output) Write(p []byte) (int, error) {
	t := o.a.t
	if t.Step(1+len(p)/1024) != nil {
		t.Check()
	}
	n, err := o.w.Write(p)
	o.n += int64(n)
	if err != nil {
		o.a.writeFailed(err)
	}
	return n, nil
}

func (a *tar) writeFailed(err error) {
	name := a.archive
	if name == "-" && errors.Is(err, syscall.EPIPE) {
		a.t.Exit(128 + int(syscall.SIGPIPE))
	}
	a.fatal("%s: Cannot write: %s", tarQuote(name), tool.Strerror(err))
}

// finish writes the end of the archive.
func (o *output) finish() {
	record := int64(o.a.blocking) * blockSize
	end := o.n + 2*blockSize
	end = (end + record - 1) / record * record
	zero := make([]byte, 32<<10)
	for o.n < end {
		o.Write(zero[:min(end-o.n, int64(len(zero)))])
	}
	if o.child != nil {
		err := o.buf.Flush()
		o.z.Close()
		status, werr := o.a.t.Wait(o.child)
		if o.f != nil {
			o.f.Close()
		}
		if err == nil {
			err = werr
		}
		if err != nil {
			o.a.writeFailed(err)
		}
		if status != 0 {
			o.a.t.Warn("Child returned status %d", status)
			o.a.fatal("%s", "Child died")
		}
		return
	}
	var err error
	if o.z != nil {
		err = o.z.Close()
	}
	if err == nil {
		err = o.buf.Flush()
	}
	if o.f != nil {
		if cerr := o.f.Close(); err == nil {
			err = cerr
		}
	}
	if err != nil {
		o.a.writeFailed(err)
	}
}

// input is the archive being read.
type input struct {
	*tarReader
	a     *tar
	in    *tool.Input
	z     io.Closer
	codec codec.Format
	child *proc.Process
	raw   *codec.Counter
}

// filtered words the errors of a compressed archive.
type filtered struct {
	a *tar
	r io.Reader
	f codec.Format
}

func (c *filtered) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		c.a.badStream(c.f, err)
	}
	return n, err
}

// badStream ends the command since the compressed archive is broken, with the words of the tool that would have said so.
func (a *tar) badStream(f codec.Format, err error) {
	a.t.Check()
	a.t.Out.Flush()
	var text string
	switch {
	case errors.Is(err, codec.ErrFormat):
		text = map[codec.Format]string{codec.Gzip: "\ngzip: stdin: not in gzip format", codec.Bzip2: "bzip2: (stdin) is not a bzip2 file.", codec.Xz: "xz: (stdin): File format not recognized",
			codec.Lzma: "lzma: (stdin): File format not recognized", codec.Zstd: "zstd: /*stdin*\\: unsupported format "}[f]
	case errors.Is(err, io.ErrUnexpectedEOF):
		text = map[codec.Format]string{codec.Gzip: "\ngzip: stdin: unexpected end of file", codec.Bzip2: "bzip2: Compressed file ends unexpectedly;\n\tperhaps it is corrupted?  *Possible* reason follows.", codec.Xz: "xz: (stdin): Unexpected end of input",
			codec.Lzma: "lzma: (stdin): Unexpected end of input", codec.Zstd: "/*stdin*\\ : Read error (39) : premature end "}[f]
	case errors.Is(err, codec.ErrTrailing):
		return
	default:
		text = f.String() + ": stdin: " + err.Error()
	}
	fmt.Fprintln(a.t.Stderr(), text)
	status := 1
	if f == codec.Bzip2 {
		status = 2
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		a.t.Warn("Unexpected EOF in archive")
		a.fatal("Unexpected EOF in archive")
	}
	a.t.Warn("Child returned status %d", status)
	a.fatalOnly()
}

func (a *tar) fatalOnly() {
	a.t.Warn("Error is not recoverable: exiting now")
	a.t.Exit(2)
}

// openInput opens the archive to read, decompressing it if it has to be.
func (a *tar) openInput() *input {
	t := a.t
	if a.archive == "-" && t.IsTerminal(0) {
		a.fatal("Refusing to read archive contents from terminal (missing -f option?)")
	}
	in, err := t.Open(a.archive)
	if err != nil {
		a.fatal("%s: Cannot open: %s", tarQuote(a.archive), tool.Strerror(err))
	}
	if at, err := in.Attr(); err == nil && at.Mode.IsDir() {
		t.Warn("%s: Cannot read: Is a directory", tarQuote(a.archive))
		t.Warn("At beginning of tape, quitting now")
		a.fatalOnly()
	}
	i := &input{a: a, in: in}
	i.raw = codec.NewCounter(in)
	head, _ := i.raw.Peek(codec.HeadSize)
	detected := codec.Detect(head)
	if detected == codec.Lzma {
		detected = lzmaOrTar(i.raw)
	}
	f, _, ok := a.filter()
	var r io.Reader = i.raw
	switch {
	case !ok:
		r = a.spawnUnfilter(i)
	case detected != codec.None && f == codec.None && a.program == "":
		if at, err := in.Attr(); err == nil && !at.Mode.IsRegular() {
			t.Warn("Archive is compressed. Use %s option", map[codec.Format]string{codec.Gzip: "-z", codec.Bzip2: "-j", codec.Xz: "-J", codec.Lzma: "--lzma", codec.Zstd: "--zstd"}[detected])
			a.fatalOnly()
		}
		f = detected
	}
	i.codec = f
	if f != codec.None && ok {
		z, err := codec.NewReader(f, i.raw)
		if err != nil {
			a.badStream(f, err)
		}
		i.z, r = z, &filtered{a, z, f}
	}
	i.tarReader = &tarReader{r: &metered{t, r}, ignore: a.ignoreZeros}
	return i
}

// lzmaOrTar doesn't take a tar archive, whose first name begins with "]", for an lzma stream.
func lzmaOrTar(r *codec.Counter) codec.Format {
	if b, _ := r.Peek(blockSize); len(b) == blockSize {
		if _, err := parseHeader(b); err == nil {
			return codec.None
		}
	}
	return codec.Lzma
}

// metered charges the process for what it reads.
type metered struct {
	t *tool.T
	r io.Reader
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if m.t.Step(1+n/1024) != nil {
		m.t.Check()
	}
	return n, err
}

// spawnUnfilter starts a program that decompresses the archive.
func (a *tar) spawnUnfilter(i *input) io.Reader {
	t := a.t
	r, w, err := t.Pipe()
	if err != nil {
		a.fatal("%s", tool.Strerror(err))
	}
	files := map[int]vfs.File{1: w}
	if !i.in.IsStdin() {
		i.in.File.Seek(0, io.SeekStart)
		files[0] = i.in.File
	}
	i.child, err = t.Spawn(proc.Spawn{Args: append(strings.Fields(a.program), "-d"), Files: files})
	w.Close()
	if err != nil {
		t.Warn("%s: Cannot exec: %s", a.program, tool.Strerror(err))
		a.fatal("Child returned status 2")
	}
	return r
}

func (i *input) close() {
	if i.z != nil {
		i.z.Close()
	}
	i.in.Close()
	if i.child != nil {
		i.a.t.Wait(i.child)
	}
}

// each calls f for each member, and handles what is wrong with the archive as tar does. What f leaves of a member's
// data is skipped. f returns false to end.
func (i *input) each(f func(h *tarHeader) bool) {
	a := i.a
	first, bad := true, false
	for {
		h, err := i.next()
		switch {
		case errors.Is(err, io.EOF):
			if i.off == 0 && (a.op == 't' || a.op == 'x' || a.op == 'd') {
				a.fail("%s", errNotTar)
			}
			if a.blockNumbers && a.op == 't' {
				fmt.Fprintf(a.t.Out, "block %d: ** Block of NULs **\n", i.start/blockSize)
			}
			return
		case errors.Is(err, errLone):
			a.t.Warn("A lone zero block at %d", i.off/blockSize)
			return
		case errors.Is(err, errNotTar):
			if first {
				a.fail("%s", err)
				if i.off < blockSize {
					return
				}
			}
			if !bad {
				a.fail("Skipping to next header")
			}
			i.left, i.pad, bad, first = 0, 0, true, false
			continue
		case errors.Is(err, io.ErrUnexpectedEOF):
			a.fatal("Unexpected EOF in archive")
		case errors.Is(err, errHeader), errors.Is(err, errTooLong):
			a.fail("%s", err)
			continue
		case err != nil:
			a.fatal("%s: Cannot read: %s", tarQuote(a.archive), tool.Strerror(err))
		}
		first, bad = false, false
		if !f(h) {
			return
		}
	}
}
