package coreutils

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

const (
	keyPid = tool.KeyOwn + iota
	keyRetry
	keyMaxUnchanged
)

var tailSpec = tool.Spec{
	Usage: []string{"[OPTION]... [FILE]..."},
	About: "Print the last 10 lines of each FILE to standard output.\nWith more than one FILE, precede each with a header giving the file name.\n\nWith no FILE, or when FILE is -, read standard input.",
	Options: []getopt.Option{
		{Short: 'c', Long: "bytes", Arg: getopt.Required, Name: "[+]NUM", Help: "output the last NUM bytes; or use -c +NUM to output starting with byte NUM of each file"},
		{Short: 'f', Long: "follow", Arg: getopt.Optional, Name: "{name|descriptor}", Help: "output appended data as the file grows"},
		{Short: 'F', Help: "same as --follow=name --retry"},
		{Short: 'n', Long: "lines", Arg: getopt.Required, Name: "[+]NUM", Help: "output the last NUM lines, instead of the last 10; or use -n +NUM to skip NUM-1 lines at the start"},
		{Long: "max-unchanged-stats", Key: keyMaxUnchanged, Arg: getopt.Required, Name: "N", Help: "(accepted; names are looked up at every poll)"},
		{Long: "pid", Key: keyPid, Arg: getopt.Required, Name: "PID", Help: "with -f, terminate after process ID, PID dies"},
		{Short: 'q', Long: "quiet", Help: "never output headers giving file names"},
		{Long: "silent", Key: 'q'},
		{Long: "retry", Key: keyRetry, Help: "keep trying to open a file if it is inaccessible"},
		{Short: 's', Long: "sleep-interval", Arg: getopt.Required, Name: "N", Help: "with -f, sleep for approximately N seconds (default 1.0) between iterations"},
		{Short: 'v', Long: "verbose", Help: "always output headers giving file names"},
		{Short: 'z', Long: "zero-terminated", Help: "line delimiter is NUL, not newline"},
	},
	Package: tool.Coreutils,
}

type tailer struct {
	t                     *tool.T
	n                     uint64
	bytes, fromStart      bool
	delim                 byte
	follow, byName, retry bool
	interval              time.Duration
	pid                   int
	headers, first        bool
	failed                bool
	last                  *tailed // whose output came last
}

// tailed is one file followed.
type tailed struct {
	name string
	in   *tool.Input
	attr vfs.Attr
	gone bool
}

// Tail prints the last part of files.
func Tail(t *tool.T) int {
	f := tailer{t: t, n: 10, delim: '\n', interval: time.Second, first: true}
	opts, files := t.ParseArgs(&tailSpec, f.obsolete(t.Args()[1:]))
	headers := 0
	for _, o := range opts {
		switch o.Key {
		case 'q':
			headers = -1
		case 'v':
			headers = 1
		default:
			f.option(o)
		}
	}
	files = names(files)
	f.headers = headers > 0 || headers == 0 && len(files) > 1
	if f.follow && f.byName && contains(files, "-") {
		t.Fatal(1, "cannot follow %s by name", tool.QuoteAF("-"))
	}
	var followed []*tailed
	for _, name := range files {
		followed = append(followed, f.start(name))
	}
	if f.follow {
		t.Out.Flush()
		f.run(followed)
	}
	return status(f.failed)
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func (f *tailer) option(o getopt.Opt) {
	switch o.Key {
	case 'c', 'n':
		f.bytes = o.Key == 'c'
		arg := o.Arg
		f.fromStart = strings.HasPrefix(arg, "+")
		f.n = countArg(f.t, strings.TrimPrefix(strings.TrimPrefix(arg, "+"), "-"), f.bytes)
		if f.fromStart && f.n > 0 {
			f.n--
		}
	case 'f':
		f.follow = true
		if o.Has {
			f.byName = f.t.Choice(1, "--follow", o.Arg, [][]string{{"descriptor"}, {"name"}}) == 1
		}
	case 'F':
		f.follow, f.byName, f.retry = true, true, true
	case 'z':
		f.delim = 0
	case keyRetry:
		f.retry = true
	case keyPid:
		pid, err := strconv.Atoi(o.Arg)
		if err != nil || pid < 0 {
			f.t.Fatal(1, "invalid PID: %s", tool.Quote(o.Arg))
		}
		f.pid = pid
	case 's':
		s, err := strconv.ParseFloat(o.Arg, 64)
		if err != nil || !(s >= 0) {
			f.t.Fatal(1, "invalid number of seconds: %s", tool.Quote(o.Arg))
		}
		f.interval = time.Duration(min(s, 1e9) * float64(time.Second))
	}
}

// obsolete turns a sole -N[bcl][f] or +N[bcl][f] into options.
func (f *tailer) obsolete(args []string) []string {
	if len(args) == 0 || len(args) > 2 || len(args[0]) < 2 || args[0][0] != '-' && args[0][0] != '+' {
		return args
	}
	s := args[0][1:]
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	if i == 0 && args[0][0] == '-' {
		return args
	}
	num, rest := s[:i], s[i:]
	unit, suffix := "-n", ""
	if strings.HasPrefix(rest, "c") || strings.HasPrefix(rest, "b") || strings.HasPrefix(rest, "l") {
		if rest[0] != 'l' {
			unit = "-c"
		}
		if rest[0] == 'b' {
			suffix = "b"
		}
		rest = rest[1:]
	}
	if rest != "" && rest != "f" {
		return args
	}
	if num == "" {
		num = "10"
	}
	out := []string{unit, strings.TrimPrefix(args[0][:1], "-") + num + suffix}
	if rest == "f" {
		out = append(out, "-f")
	}
	return append(out, args[1:]...)
}

// start prints a file's tail and returns it for following.
func (f *tailer) start(name string) *tailed {
	file := &tailed{name: name}
	in, err := f.t.Open(name)
	if err != nil {
		f.t.Warn("cannot open %s for reading: %s", tool.QuoteAF(name), tool.Strerror(err))
		f.failed, file.gone = true, true
		return file
	}
	file.in = in
	file.attr, _ = in.Attr()
	if f.headers {
		fileHeader(f.t, name, &f.first)
	}
	f.last = file
	if err := f.file(in, file.attr); err != nil {
		f.t.Warn("error reading %s: %s", tool.QuoteAF(title(name)), tool.Strerror(err))
		f.failed = true
		if f.follow {
			if errors.Is(err, syscall.EISDIR) {
				f.t.Warn("%s: cannot follow end of this type of file; giving up on this name", tool.QuoteF(name))
			}
			file.in = nil
		}
	}
	if !f.follow {
		in.Close()
	}
	return file
}

func (f *tailer) file(in *tool.Input, a vfs.Attr) error {
	switch {
	case f.fromStart && f.bytes:
		if f.n > 0 {
			if _, err := io.CopyN(io.Discard, in, int64(min(f.n, 1<<62))); err != nil {
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			}
		}
		return f.t.Copy(in)
	case f.fromStart:
		l := tool.NewLines(in, f.delim)
		for n := uint64(0); n < f.n; n++ {
			if _, ok := l.Next(); !ok {
				return l.Err
			}
		}
		return f.t.Copy(l.Rest())
	case a.Mode.IsRegular() && in.File != nil:
		if at, err := in.File.Seek(0, io.SeekCurrent); err == nil {
			return f.seekable(in, at, a.Size)
		}
	}
	if f.bytes {
		return f.lastBytes(in)
	}
	return f.lastLines(in)
}

// seekable finds the tail of a file from its end.
func (f *tailer) seekable(in *tool.Input, start, size int64) error {
	from := start
	if f.bytes {
		if size-start > int64(min(f.n, 1<<62)) {
			from = size - int64(f.n)
		}
	} else if f.n == 0 {
		from = max(size, start)
	} else {
		var err error
		if from, err = f.lineStart(in, start, size); err != nil {
			return err
		}
	}
	if _, err := in.File.Seek(from, io.SeekStart); err != nil {
		return err
	}
	return f.t.Copy(in)
}

// lineStart searches backwards for where the last n lines begin.
func (f *tailer) lineStart(in *tool.Input, start, size int64) (int64, error) {
	buf := make([]byte, 32<<10)
	left := f.n
	for end := size; end > start; {
		f.t.Check()
		n := min(int64(len(buf)), end-start)
		if _, err := in.File.ReadAt(buf[:n], end-n); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		b := buf[:n]
		if end == size && b[n-1] == f.delim {
			b = b[:n-1] // the last line's own end doesn't count
		}
		for {
			i := bytes.LastIndexByte(b, f.delim)
			if i < 0 {
				break
			}
			if left--; left == 0 {
				return end - n + int64(i) + 1, nil
			}
			b = b[:i]
		}
		end -= n
	}
	return start, nil
}

func (f *tailer) lastBytes(in *tool.Input) error {
	var held []byte
	buf := make([]byte, 64<<10)
	for {
		n, err := in.Read(buf)
		held = append(held, buf[:n]...)
		if uint64(len(held)) > f.n {
			held = append(held[:0], held[uint64(len(held))-f.n:]...)
		}
		if len(held) > MaxHeld {
			f.t.Fatal(1, "memory exhausted")
		}
		if err != nil {
			f.t.Out.Write(held)
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// lastLines keeps the last n lines of a stream in a ring.
func (f *tailer) lastLines(in *tool.Input) error {
	l := tool.NewLines(in, f.delim)
	var ring [][]byte
	count, held := 0, 0
	for {
		line, ok := l.Next()
		if !ok {
			break
		}
		if f.n == 0 {
			continue
		}
		var slot []byte
		at := count
		if uint64(len(ring)) < f.n {
			ring = append(ring, nil)
		} else {
			at = count % len(ring)
			slot = ring[at][:0]
			held -= len(ring[at])
		}
		slot = append(slot, line...)
		if l.Terminated {
			slot = append(slot, f.delim)
		}
		ring[at] = slot
		count++
		if held += len(slot); held > MaxHeld {
			f.t.Fatal(1, "memory exhausted")
		}
	}
	for i := range ring {
		f.t.Out.Write(ring[(count+i)%len(ring)])
	}
	return l.Err
}

// run follows the files until the process is killed, or the process it waits for has ended.
func (f *tailer) run(files []*tailed) {
	x := &tailing{Headers: f.headers, First: f.first, ByName: f.byName, Retry: f.retry, Interval: f.interval, Pid: f.pid}
	x.note(f, files)
	if status := f.t.RunAs(x); status != 0 {
		f.t.Exit(status)
	}
}

// round prints what has been added; false when the process that it waits for has ended.
func (f *tailer) round(files []*tailed) bool {
	f.t.Out.Flush()
	live := false
	for _, file := range files {
		live = f.poll(file) || live
	}
	if !live {
		f.t.Fatal(1, "no files remaining")
	}
	f.t.Out.Flush()
	return f.pid <= 0 || !errors.Is(f.t.Signal(f.pid, 0), syscall.ESRCH)
}

// poll prints what was added to a file, and reopens it if another one has its name. It returns false if there is nothing
// to follow any more.
func (f *tailer) poll(file *tailed) bool {
	if f.byName || file.gone {
		if !f.reopen(file) {
			return f.retry
		}
	}
	if file.in == nil {
		return false
	}
	if a, err := file.in.Attr(); err == nil && a.Mode.IsRegular() && file.in.File != nil {
		if at, err := file.in.File.Seek(0, io.SeekCurrent); err == nil && a.Size < at {
			f.t.Warn("%s: file truncated", tool.QuoteF(file.name))
			file.in.File.Seek(0, io.SeekStart)
		}
	}
	if f.headers && f.last != file {
		buf := make([]byte, 1)
		n, _ := file.in.Read(buf)
		if n == 0 {
			return true
		}
		fileHeader(f.t, file.name, &f.first)
		f.t.Out.Write(buf)
	}
	f.last = file
	f.t.Copy(file.in)
	return file.name != "-" || file.attr.Mode.IsRegular()
}

// reopen looks whether the name still means the same file.
func (f *tailer) reopen(file *tailed) bool {
	a, err := f.t.Stat(file.name)
	if err != nil {
		if !file.gone {
			f.t.Warn("%s has become inaccessible: %s", tool.QuoteAF(file.name), tool.Strerror(err))
			file.gone = true
		}
		return false
	}
	if !file.gone && a.Ino == file.attr.Ino && a.Dev == file.attr.Dev {
		return true
	}
	in, err := f.t.Open(file.name)
	if err != nil {
		return false
	}
	if file.gone {
		f.t.Warn("%s has appeared;  following new file", tool.QuoteAF(file.name))
	} else {
		f.t.Warn("%s has been replaced;  following new file", tool.QuoteAF(file.name))
	}
	if file.in != nil {
		file.in.Close()
	}
	file.in, file.attr, file.gone = in, a, false
	return true
}
