package coreutils

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"syscall"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

const (
	keyNumeric = tool.KeyOwn + iota
	keyHexSuffix
	keyAddSuffix
	keyFilter
	keySplitVerbose
)

var splitSpec = tool.Spec{
	Usage: []string{"[OPTION]... [FILE [PREFIX]]"},
	About: "Output pieces of FILE to PREFIXaa, PREFIXab, ...;\ndefault size is 1000 lines, and default PREFIX is 'x'.\n\nWith no FILE, or when FILE is -, read standard input.",
	Options: []getopt.Option{
		{Short: 'a', Long: "suffix-length", Arg: getopt.Required, Name: "N", Help: "generate suffixes of length N (default 2)"},
		{Long: "additional-suffix", Key: keyAddSuffix, Arg: getopt.Required, Name: "SUFFIX", Help: "append an additional SUFFIX to file names"},
		{Short: 'b', Long: "bytes", Arg: getopt.Required, Name: "SIZE", Help: "put SIZE bytes per output file"},
		{Short: 'C', Long: "line-bytes", Arg: getopt.Required, Name: "SIZE", Help: "put at most SIZE bytes of records per output file"},
		{Short: 'd', Key: 'd', Help: "use numeric suffixes starting at 0, not alphabetic"},
		{Long: "numeric-suffixes", Key: keyNumeric, Arg: getopt.Optional, Name: "FROM", Help: "same as -d, but allow setting the start value"},
		{Short: 'x', Key: 'x', Help: "use hex suffixes starting at 0, not alphabetic"},
		{Long: "hex-suffixes", Key: keyHexSuffix, Arg: getopt.Optional, Name: "FROM", Help: "same as -x, but allow setting the start value"},
		{Short: 'e', Long: "elide-empty-files", Help: "do not generate empty output files with '-n'"},
		{Long: "filter", Key: keyFilter, Arg: getopt.Required, Name: "COMMAND", Help: "write to shell COMMAND; file name is $FILE"},
		{Short: 'l', Long: "lines", Arg: getopt.Required, Name: "NUMBER", Help: "put NUMBER lines/records per output file"},
		{Short: 'n', Long: "number", Arg: getopt.Required, Name: "CHUNKS", Help: "generate CHUNKS output files: N, K/N, l/N, l/K/N, r/N, r/K/N"},
		{Short: 't', Long: "separator", Arg: getopt.Required, Name: "SEP", Help: "use SEP instead of newline as the record separator; '\\0' (zero) specifies the NUL character"},
		{Short: 'u', Long: "unbuffered", Help: "immediately copy input to output with '-n r/...'"},
		{Long: "verbose", Key: keySplitVerbose, Help: "print a diagnostic just before each output file is opened"},
	},
	Package: tool.Coreutils,
}

// splitter writes pieces.
type splitter struct {
	t                 *tool.T
	prefix, extra     string
	alphabet          string
	width             int
	auto              bool // the suffix grows
	index             []int
	start             string
	filter            string
	elide, verbose    bool
	unbuffered        bool
	sep               byte
	kind              byte // b, C, l, n (bytes), L (l/), r (r/)
	n, k              uint64
	cur               *piece
	opened            bool
	inDev             uint64
	inIno             vfs.Ino
	inRegular         bool
	suffixSet, sepSet bool
}

// piece is an output file, or the input of a filter.
type piece struct {
	*bufio.Writer
	f      vfs.File
	child  *proc.Process
	name   string
	broken bool // nobody reads it any more
}

// Split writes a file in pieces.
func Split(t *tool.T) int {
	s := &splitter{t: t, alphabet: "abcdefghijklmnopqrstuvwxyz", sep: '\n', auto: true, width: 2, prefix: "x"}
	opts, files := t.ParseArgs(&splitSpec, obsoleteSplit(t.Args()[1:]))
	for _, o := range opts {
		s.option(o)
	}
	if s.kind == 0 {
		s.kind, s.n = 'l', 1000
	}
	if len(files) > 2 {
		t.Extra(1, files[2])
	}
	if len(files) > 1 {
		s.prefix = files[1]
	}
	s.suffix()
	if s.k != 0 && s.filter != "" {
		t.UsageError(1, "--filter does not process a chunk extracted to stdout")
	}
	name := names(files)[0]
	in, err := t.Open(name)
	if err != nil {
		t.Fatal(1, "cannot open %s for reading: %s", tool.QuoteAF(name), tool.Strerror(err))
	}
	defer in.Close()
	if a, err := in.Attr(); err == nil && a.Mode.IsRegular() {
		s.inDev, s.inIno, s.inRegular = a.Dev, a.Ino, true
	}
	if err := s.run(in); err != nil {
		t.Fatal(1, "%s: %s", tool.QuoteF(name), tool.Strerror(err))
	}
	s.close()
	return 0
}

// obsoleteSplit turns -5 into -l5.
func obsoleteSplit(args []string) []string {
	out := append([]string(nil), args...)
	for i, a := range out {
		if a == "--" {
			break
		}
		if len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "0123456789") == "" {
			out[i] = "-l" + a[1:]
		}
	}
	return out
}

func (s *splitter) option(o getopt.Opt) {
	t := s.t
	once := func(kind byte) {
		if s.kind != 0 {
			t.UsageError(1, "cannot split in more than one way")
		}
		s.kind = kind
	}
	switch o.Key {
	case 'a':
		n, err := tool.ParseSize(o.Arg, "")
		if err != nil || n > 4096 {
			t.Fatal(1, "invalid suffix length: %s", tool.Quote(o.Arg))
		}
		if n > 0 {
			s.width, s.auto, s.suffixSet = int(n), false, true
		}
	case keyAddSuffix:
		if strings.Contains(o.Arg, "/") {
			t.UsageError(1, "invalid suffix %s, contains directory separator", tool.Quote(o.Arg))
		}
		s.extra = o.Arg
	case 'b', 'C':
		once(byte(o.Key))
		s.n = s.number(o.Arg, "invalid number of bytes")
	case 'l':
		once('l')
		s.n = s.number(o.Arg, "invalid number of lines")
	case 'n':
		once('n')
		s.chunks(o.Arg)
	case 'd', keyNumeric, 'x', keyHexSuffix:
		s.alphabet = "0123456789"
		if o.Key == 'x' || o.Key == keyHexSuffix {
			s.alphabet += "abcdef"
		}
		if o.Has {
			from := strings.TrimLeft(o.Arg, "0")
			if strings.Trim(o.Arg, s.alphabet) != "" {
				kind := "numerical"
				if len(s.alphabet) > 10 {
					kind = "hexadecimal"
				}
				t.Fatal(1, "%s: invalid start value for %s suffix", tool.Quote(o.Arg), kind)
			}
			s.start = from
			s.auto = false
		}
	case 'e':
		s.elide = true
	case keyFilter:
		s.filter = o.Arg
	case 't':
		sep := o.Arg
		switch {
		case sep == "":
			t.Fatal(1, "empty record separator")
		case sep == `\0`:
			sep = "\x00"
		case len(sep) > 1:
			t.Fatal(1, "multi-character separator %s", tool.Quote(sep))
		}
		if s.sepSet && s.sep != sep[0] {
			t.Fatal(1, "multiple separator characters specified")
		}
		s.sep, s.sepSet = sep[0], true
	case 'u':
		s.unbuffered = true
	case keySplitVerbose:
		s.verbose = true
	}
}

func (s *splitter) number(arg, message string) uint64 {
	n, err := tool.ParseSize(arg, tool.SizeSuffixes)
	if errors.Is(err, tool.ErrRange) {
		return math.MaxInt64
	}
	if n == 0 && err == nil {
		s.t.Fatal(1, "%s: %s: Numerical result out of range", message, tool.Quote(arg))
	}
	if err != nil || arg[0] < '0' || arg[0] > '9' {
		s.t.Fatal(1, "%s: %s", message, tool.Quote(arg))
	}
	return n
}

// chunks reads N, K/N, l/N, l/K/N, r/N or r/K/N.
func (s *splitter) chunks(arg string) {
	rest := arg
	switch {
	case strings.HasPrefix(arg, "l/"):
		s.kind, rest = 'L', arg[2:]
	case strings.HasPrefix(arg, "r/"):
		s.kind, rest = 'r', arg[2:]
	}
	k, n, both := strings.Cut(rest, "/")
	if both {
		s.k = s.number(k, "invalid chunk number")
		rest = n
	}
	s.n = s.number(rest, "invalid number of chunks")
	if s.k > s.n {
		s.t.Fatal(1, "invalid chunk number: %s: Numerical result out of range", tool.Quote(k))
	}
}

// suffix chooses how long suffixes are: long enough for the number of chunks.
func (s *splitter) suffix() {
	if (s.kind == 'n' || s.kind == 'L' || s.kind == 'r') && s.k == 0 {
		last := s.n - 1
		if s.start != "" && len(s.alphabet) == 10 {
			if from, err := tool.ParseSize(s.start, ""); err == nil && from < s.n {
				last += from
			}
		}
		need := 1
		for v := last / uint64(len(s.alphabet)); v > 0; v /= uint64(len(s.alphabet)) {
			need++
		}
		if s.suffixSet && s.width < need {
			s.t.Fatal(1, "the suffix length needs to be at least %d", need)
		}
		s.auto = false
		if !s.suffixSet {
			s.width = max(s.width, need)
		}
	}
	if len(s.start) > s.width {
		if s.suffixSet {
			s.t.UsageError(1, "numerical suffix start value is too large for the suffix length")
		}
		s.width = len(s.start)
	}
}

// next returns the name of the next piece.
func (s *splitter) next() string {
	top := len(s.alphabet) - 1
	if s.index == nil {
		s.index = make([]int, s.width)
		for i := range s.start {
			s.index[s.width-len(s.start)+i] = strings.IndexByte(s.alphabet, s.start[i])
		}
	} else {
		i := len(s.index) - 1
		for ; i >= 0; i-- {
			if s.index[i]++; s.index[i] <= top && !(s.auto && i == 0 && s.index[0] == top) {
				break
			}
			if s.auto && i == 0 && s.index[0] == top {
				// The last first letter is kept for longer suffixes: xyz is followed by xzaaa.
				s.prefix += s.alphabet[top : top+1]
				s.index = make([]int, len(s.index)+1)
				break
			}
			s.index[i] = 0
		}
		if i < 0 {
			s.t.Fatal(1, "output file suffixes exhausted")
		}
	}
	b := []byte(s.prefix)
	for _, i := range s.index {
		b = append(b, s.alphabet[i])
	}
	return string(b) + s.extra
}

// open begins the next piece.
func (s *splitter) open() {
	s.close()
	name := s.next()
	if s.k > 0 {
		return
	}
	s.cur = s.create(name)
}

func (s *splitter) create(name string) *piece {
	t := s.t
	if s.filter != "" {
		if s.verbose {
			t.Out.WriteString("executing with FILE=" + tool.QuoteAF(name) + "\n")
		}
		t.Out.Flush()
		r, w, err := t.Pipe()
		if err != nil {
			t.Fatal(1, "failed to create pipe: %s", tool.Strerror(err))
		}
		child, err := t.Spawn(proc.Spawn{Args: []string{"/bin/sh", "-c", s.filter}, Env: append(without(t.Environ(), "FILE"), "FILE="+name), Files: map[int]vfs.File{0: r}})
		r.Close()
		if err != nil {
			w.Close()
			t.Fatal(1, "failed to run command: \"/bin/sh -c %s\": %s", s.filter, tool.Strerror(err))
		}
		return &piece{Writer: bufio.NewWriterSize(w, 32<<10), f: w, child: child, name: name}
	}
	if s.verbose {
		t.Out.WriteString("creating file " + tool.QuoteAF(name) + "\n")
		t.Out.Flush()
	}
	if s.inRegular {
		if a, err := t.Stat(name); err == nil && a.Dev == s.inDev && a.Ino == s.inIno {
			t.Fatal(1, "%s would overwrite input; aborting", tool.QuoteAF(name))
		}
	}
	f, err := t.Process.Open(name, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC, 0o666)
	if err != nil {
		t.Fatal(1, "%s: %s", tool.QuoteF(name), tool.Strerror(err))
	}
	return &piece{Writer: bufio.NewWriterSize(f, 32<<10), f: f, name: name}
}

// write writes to a piece, or to standard output if one chunk is to be printed.
func (s *splitter) write(p *piece, b []byte) {
	if p == nil {
		s.t.Out.Write(b)
		return
	}
	if p.broken {
		return
	}
	if _, err := p.Write(b); err != nil {
		s.failed(p, err)
	}
}

func (s *splitter) failed(p *piece, err error) {
	if p.child != nil && errors.Is(err, syscall.EPIPE) {
		p.broken = true
		return
	}
	s.t.Fatal(1, "%s: %s", tool.QuoteF(p.name), tool.Strerror(err))
}

func (s *splitter) close() {
	if s.cur != nil {
		s.closePiece(s.cur)
		s.cur = nil
	}
}

func (s *splitter) closePiece(p *piece) {
	if !p.broken {
		if err := p.Flush(); err != nil {
			s.failed(p, err)
		}
	}
	if err := p.f.Close(); err != nil && p.child == nil {
		s.t.Fatal(1, "%s: %s", tool.QuoteF(p.name), tool.Strerror(err))
	}
	if p.child == nil {
		return
	}
	status, err := s.t.Wait(p.child)
	if err == nil && status != 0 && status != 128+int(syscall.SIGPIPE) {
		s.t.Warn("with FILE=%s, exit %d from command: %s", tool.QuoteAF(p.name), status, s.filter)
		s.t.Exit(status)
	}
}

func (s *splitter) run(in *tool.Input) error {
	switch s.kind {
	case 'l':
		return s.byLines(in)
	case 'b':
		return s.bySize(in, s.n, 0)
	case 'C':
		return s.byLineBytes(in)
	case 'r':
		return s.roundRobin(in)
	}
	size, r, err := s.measure(in)
	if err != nil {
		return err
	}
	if s.kind == 'L' {
		return s.lineChunks(r, size)
	}
	return s.byteChunks(r, size)
}

// measure finds how long the input is, reading what isn't a regular file into memory, at most MaxHeld bytes.
func (s *splitter) measure(in *tool.Input) (uint64, io.Reader, error) {
	if a, err := in.Attr(); err == nil && a.Mode.IsRegular() && in.File != nil {
		at, err := in.File.Seek(0, io.SeekCurrent)
		if err == nil {
			return uint64(max(0, a.Size-at)), in, nil
		}
	}
	b, err := io.ReadAll(io.LimitReader(in, MaxHeld+1))
	if err == nil && len(b) > MaxHeld {
		err = syscall.ENOMEM
	}
	return uint64(len(b)), bytes.NewReader(b), err
}
