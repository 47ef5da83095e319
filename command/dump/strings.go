package dump

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var stringsSpec = tool.Spec{
	Usage: []string{"[option(s)] [file(s)]"},
	About: " Display printable strings in [file(s)] (stdin by default)",
	Options: []getopt.Option{
		{Short: 'a', Long: "all", Help: "Scan the entire file, not just the data section [default]"},
		{Short: 'd', Long: "data", Help: "Only scan the data sections in the file"},
		{Short: 'f', Long: "print-file-name", Help: "Print the name of the file before each string"},
		{Short: 'n', Long: "bytes", Arg: getopt.Required, Name: "number", Help: "Print any sequence of at least <number> characters (default 4)"},
		{Short: 't', Long: "radix", Arg: getopt.Required, Name: "{o,d,x}", Help: "Print the location of the string in base 8, 10 or 16"},
		{Short: 'o', Help: "An alias for --radix=o"},
		{Short: 'w', Long: "include-all-whitespace", Help: "Include all whitespace as valid string characters"},
		{Short: 'e', Long: "encoding", Arg: getopt.Required, Name: "{s,S,b,l,B,L}", Help: "Select character size and endianness: s = 7-bit, S = 8-bit, {b,l} = 16-bit, {B,L} = 32-bit"},
		{Short: 's', Long: "output-separator", Arg: getopt.Required, Name: "string", Help: "String used to separate strings in output"},
	},
	Package: tool.Own,
}

// stringsRun is a run of strings. Characters are size bytes wide.
type stringsRun struct {
	t         *tool.T
	minimum   int
	radix     byte
	names     bool
	space     bool
	wide      bool // eight bits
	size      int
	big       bool
	separator string
}

// obsoleteLength turns an argument such as -8 into -n8.
func obsoleteLength(args []string) []string {
	out := make([]string, 0, len(args))
	for i, a := range args {
		if a == "--" {
			return append(out, args[i:]...)
		}
		if len(a) > 1 && a[0] == '-' {
			if _, err := strconv.ParseUint(a[1:], 10, 31); err == nil {
				a = "-n" + a[1:]
			}
		}
		out = append(out, a)
	}
	return out
}

// Strings shows the printable strings in files.
func Strings(t *tool.T) int {
	opts, files := t.ParseArgs(&stringsSpec, obsoleteLength(t.Args()[1:]))
	s := &stringsRun{t: t, minimum: 4, size: 1, separator: "\n"}
	for _, o := range opts {
		s.option(o)
	}
	if len(files) == 0 {
		s.scan(bufio.NewReaderSize(t.Stdin(), 32<<10), "{standard input}")
		return 0
	}
	failed := 0
	for _, name := range files {
		in, err := t.OpenFile(name)
		if err != nil {
			t.Warn("'%s': %s", name, map[bool]string{true: "No such file", false: tool.Strerror(err)}[tool.IsNotExist(err)])
			failed = 1
			continue
		}
		if a, err := in.Attr(); err == nil && a.Mode.IsDir() {
			t.Warn("Warning: '%s' is a directory", name)
			failed = 1
		} else {
			s.scan(bufio.NewReaderSize(in, 32<<10), name)
		}
		in.Close()
	}
	return failed
}

func (s *stringsRun) option(o getopt.Opt) {
	switch o.Key {
	case 'f':
		s.names = true
	case 'n':
		n, err := strconv.ParseInt(o.Arg, 0, 32)
		if err != nil {
			s.t.Fatal(1, "invalid integer argument %s", o.Arg)
		}
		if n < 1 || n > maxBlock {
			s.t.Fatal(1, "minimum string length is too small or too big: %s", o.Arg)
		}
		s.minimum = int(n)
	case 't':
		if o.Arg != "o" && o.Arg != "d" && o.Arg != "x" {
			s.t.Misused(&stringsSpec)
		}
		s.radix = o.Arg[0]
	case 'o':
		s.radix = 'o'
	case 'w':
		s.space = true
	case 's':
		s.separator = o.Arg
	case 'e':
		if len(o.Arg) != 1 {
			s.t.Misused(&stringsSpec)
		}
		s.size, s.wide, s.big = 1, false, o.Arg == "b" || o.Arg == "B"
		switch o.Arg[0] {
		case 's':
		case 'S':
			s.wide = true
		case 'b', 'l':
			s.size = 2
		case 'B', 'L':
			s.size = 4
		default:
			s.t.Misused(&stringsSpec)
		}
	}
}

// char looks at the next character without taking it; ok is false at the end. A character cut short by it is none.
func (s *stringsRun) char(r *bufio.Reader) (c uint32, ok bool) {
	b, err := r.Peek(s.size)
	if err != nil {
		return 0, false
	}
	for i := range b {
		if s.big {
			c = c<<8 | uint32(b[i])
		} else {
			c |= uint32(b[i]) << (8 * i)
		}
	}
	return c, true
}

func (s *stringsRun) printable(c uint32) bool {
	return c >= ' ' && c < 0x7f || c == '\t' || s.space && c >= '\n' && c <= '\r' || s.wide && c >= 0x80 && c <= 0xff
}

// scan shows the strings of one file. Only what is needed to know that a string is long enough is held.
func (s *stringsRun) scan(r *bufio.Reader, name string) {
	var held []byte
	shown := false
	for off := int64(0); ; off += int64(s.size) {
		c, ok := s.char(r)
		if ok && s.printable(c) {
			r.Discard(s.size)
			if shown {
				s.t.Out.WriteByte(byte(c))
				continue
			}
			if held = append(held, byte(c)); len(held) >= s.minimum {
				s.head(name, off-int64((len(held)-1)*s.size))
				s.t.Out.Write(held)
				held, shown = held[:0], true
			}
			continue
		}
		if shown {
			s.t.Out.WriteString(s.separator)
		}
		held, shown = held[:0], false
		if !ok {
			return
		}
		// A wide string may begin at any byte: only the first byte of what didn't fit is dropped.
		r.Discard(1)
		off -= int64(s.size) - 1
	}
}

// head writes what stands before a string.
func (s *stringsRun) head(name string, off int64) {
	if s.names {
		io.WriteString(s.t.Out, name+": ")
	}
	switch s.radix {
	case 'o':
		fmt.Fprintf(s.t.Out, "%7o ", off)
	case 'd':
		fmt.Fprintf(s.t.Out, "%7d ", off)
	case 'x':
		fmt.Fprintf(s.t.Out, "%7x ", off)
	}
}
