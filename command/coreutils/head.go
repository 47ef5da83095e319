package coreutils

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var headSpec = tool.Spec{
	Usage: []string{"[OPTION]... [FILE]..."},
	About: "Print the first 10 lines of each FILE to standard output.\nWith more than one FILE, precede each with a header giving the file name.\n\nWith no FILE, or when FILE is -, read standard input.",
	Options: []getopt.Option{
		{Short: 'c', Long: "bytes", Arg: getopt.Required, Name: "[-]NUM", Help: "print the first NUM bytes of each file; with the leading '-', print all but the last NUM bytes"},
		{Short: 'n', Long: "lines", Arg: getopt.Required, Name: "[-]NUM", Help: "print the first NUM lines instead of the first 10; with the leading '-', print all but the last NUM lines"},
		{Short: 'q', Long: "quiet", Help: "never print headers giving file names"},
		{Long: "silent", Key: 'q'},
		{Short: 'v', Long: "verbose", Help: "always print headers giving file names"},
		{Short: 'z', Long: "zero-terminated", Help: "line delimiter is NUL, not newline"},
	},
	Notes:   "NUM may have a multiplier suffix: b 512, kB 1000, K 1024, MB 1000*1000, M 1024*1024, and so on for G, T, P, E, Z, Y.",
	Package: tool.Coreutils,
}

type header struct {
	t      *tool.T
	n      uint64
	bytes  bool
	butEnd bool
	delim  byte
}

// Head prints the first part of files.
func Head(t *tool.T) int {
	h := header{t: t, n: 10, delim: '\n'}
	opts, files := t.ParseArgs(&headSpec, obsoleteHead(t.Args()[1:]))
	headers := 0 // -1 never, 1 always
	for _, o := range opts {
		switch o.Key {
		case 'c', 'n':
			h.bytes = o.Key == 'c'
			arg, butEnd := strings.CutPrefix(o.Arg, "-")
			h.butEnd = butEnd
			h.n = countArg(t, arg, h.bytes)
		case 'q':
			headers = -1
		case 'v':
			headers = 1
		case 'z':
			h.delim = 0
		}
	}
	files = names(files)
	show := headers > 0 || headers == 0 && len(files) > 1
	failed, first := false, true
	for _, name := range files {
		in, err := t.Open(name)
		if err != nil {
			t.Warn("cannot open %s for reading: %s", tool.QuoteAF(name), tool.Strerror(err))
			failed = true
			continue
		}
		if show {
			fileHeader(t, name, &first)
		}
		if err := h.file(in); err != nil {
			t.Warn("error reading %s: %s", tool.QuoteAF(title(name)), tool.Strerror(err))
			failed = true
		}
		in.Close()
	}
	return status(failed)
}

// title is a file's name in headers.
func title(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}

func fileHeader(t *tool.T, name string, first *bool) {
	if !*first {
		t.Out.WriteByte('\n')
	}
	*first = false
	t.Out.WriteString("==> " + title(name) + " <==\n")
}

// countArg reads a number of lines or bytes.
func countArg(t *tool.T, arg string, bytes bool) uint64 {
	n, err := tool.ParseSize(arg, tool.SizeSuffixes)
	unit := "lines"
	if bytes {
		unit = "bytes"
	}
	switch {
	case err == nil:
		return n
	case errors.Is(err, tool.ErrRange):
		t.Fatal(1, "invalid number of %s: %s: %s", unit, tool.Quote(arg), tool.Strerror(err))
	}
	t.Fatal(1, "invalid number of %s: %s", unit, tool.Quote(arg))
	return 0
}

// obsoleteHead turns a first argument such as -5, -5c or -20qv into options.
func obsoleteHead(args []string) []string {
	if len(args) == 0 || len(args[0]) < 2 || args[0][0] != '-' || args[0][1] < '0' || args[0][1] > '9' {
		return args
	}
	s := args[0][1:]
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	num, rest := s[:i], s[i:]
	out := []string{}
	unit := "-n"
	suffix := ""
	for _, c := range rest {
		switch c {
		case 'c':
			unit = "-c"
		case 'b', 'k', 'm':
			unit, suffix = "-c", string(c)
		case 'l':
			unit = "-n"
		case 'q', 'v', 'z':
			out = append(out, "-"+string(c))
		default:
			return args
		}
	}
	return append(append(out, unit, num+suffix), args[1:]...)
}

func (h *header) file(in *tool.Input) error {
	switch {
	case h.bytes && h.butEnd:
		return h.allButBytes(in)
	case h.bytes:
		n := int64(h.n)
		if n < 0 {
			n = 1<<63 - 1
		}
		return h.t.Copy(io.LimitReader(in, n))
	case h.butEnd:
		return h.allButLines(in)
	}
	return h.lines(in)
}

// lines copies the first lines, and leaves a file that can seek just behind them, for whoever reads it next.
func (h *header) lines(in *tool.Input) error {
	if h.n == 0 {
		return nil
	}
	l := tool.NewLines(in, h.delim)
	for n := uint64(0); n < h.n; n++ {
		line, ok := l.Next()
		if !ok {
			return l.Err
		}
		h.t.Out.Write(line)
		if l.Terminated {
			h.t.Out.WriteByte(h.delim)
		}
	}
	if left := l.Buffered(); left > 0 && in.IsStdin() && in.File != nil {
		in.File.Seek(int64(-left), io.SeekCurrent) // a pipe can't, and needn't
	}
	return nil
}

// MaxHeld bounds what head and tail keep in memory to leave out or find the end of a stream: 256 MiB.
const MaxHeld = tool.MaxLine

// allButLines copies all but the last lines, of which it keeps that many in memory.
func (h *header) allButLines(in *tool.Input) error {
	l := tool.NewLines(in, h.delim)
	var queue [][]byte
	head, held := 0, 0
	for {
		line, ok := l.Next()
		if !ok {
			return l.Err
		}
		c := append([]byte(nil), line...)
		if l.Terminated {
			c = append(c, h.delim)
		}
		queue = append(queue, c)
		if held += len(c); held > MaxHeld {
			h.t.Fatal(1, "memory exhausted")
		}
		if uint64(len(queue)-head) > h.n {
			h.t.Out.Write(queue[head])
			held -= len(queue[head])
			queue[head] = nil
			if head++; head > 1024 && head > len(queue)/2 {
				queue, head = append(queue[:0], queue[head:]...), 0
			}
		}
	}
}

func (h *header) allButBytes(in *tool.Input) error {
	if h.n > MaxHeld {
		if a, err := in.Attr(); err == nil && a.Mode.IsRegular() {
			return h.t.Copy(io.LimitReader(in, max(0, a.Size-int64(min(h.n, 1<<62)))))
		}
		h.t.Fatal(1, "%s: number of bytes is too large", strconv.FormatUint(h.n, 10))
	}
	keep := int(h.n)
	var held []byte
	buf := make([]byte, 64<<10)
	for {
		n, err := in.Read(buf)
		held = append(held, buf[:n]...)
		if extra := len(held) - keep; extra > 0 {
			h.t.Out.Write(held[:extra])
			held = append(held[:0], held[extra:]...)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
