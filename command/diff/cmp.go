package diff

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var cmpSpec = tool.Spec{
	Usage: []string{"[OPTION]... FILE1 [FILE2 [SKIP1 [SKIP2]]]"},
	About: "Compare two files byte by byte.\n\nThe optional SKIP1 and SKIP2 specify the number of bytes to skip\nat the beginning of each file (zero by default).",
	Options: []getopt.Option{
		{Short: 'b', Long: "print-bytes", Help: "print differing bytes"},
		{Short: 'c', Long: "print-chars", Key: 'b', Hidden: true},
		{Short: 'i', Long: "ignore-initial", Arg: getopt.Required, Name: "SKIP1[:SKIP2]", Help: "skip first SKIP1 bytes of FILE1 and SKIP2 (or as many) of FILE2"},
		{Short: 'l', Long: "verbose", Help: "output byte numbers and differing byte values"},
		{Short: 'n', Long: "bytes", Arg: getopt.Required, Name: "LIMIT", Help: "compare at most LIMIT bytes"},
		{Short: 's', Long: "quiet", Help: "suppress all normal output"},
		{Long: "silent", Key: 's', Hidden: true},
	},
	Package: tool.Diffutils,
	Fail:    2,
}

// comparison is a run of cmp.
type comparison struct {
	t                   *tool.T
	bytes, every, quiet bool
	limit               int64
	skip                [2]int64
	names               [2]string
	width               int // of byte numbers
}

// Cmp compares two files byte by byte.
func Cmp(t *tool.T) int {
	opts, files := t.Parse(&cmpSpec)
	t.FailStatus(2)
	c := &comparison{t: t, limit: math.MaxInt64, width: 19}
	for _, o := range opts {
		switch o.Key {
		case 'b':
			c.bytes = true
		case 'l':
			c.every = true
		case 's':
			c.quiet = true
		case 'n':
			c.limit = min(c.limit, c.number("--bytes", o.Arg))
		case 'i':
			first, second, two := strings.Cut(o.Arg, ":")
			if !two {
				second = first
			}
			c.skip[0] = max(c.skip[0], c.number("--ignore-initial", first))
			c.skip[1] = max(c.skip[1], c.number("--ignore-initial", second))
		}
	}
	if c.every && c.quiet {
		t.UsageError(2, "options -l and -s are incompatible")
	}
	if len(files) == 0 {
		t.UsageError(2, "missing operand after '%s'", t.Args()[len(t.Args())-1])
	}
	if len(files) > 4 {
		t.UsageError(2, "extra operand '%s'", files[4])
	}
	c.names = [2]string{files[0], "-"}
	if len(files) > 1 {
		c.names[1] = files[1]
	}
	for i := 2; i < len(files); i++ {
		c.skip[i-2] = max(c.skip[i-2], c.number("SKIP", files[i]))
	}
	return c.run()
}

func (c *comparison) number(what, arg string) int64 {
	n, err := tool.ParseSize(arg, "kKMGTPEZY")
	if errors.Is(err, tool.ErrRange) || err == nil && n > math.MaxInt64 {
		return math.MaxInt64
	}
	if err != nil {
		c.t.UsageError(2, "invalid %s value '%s'", what, arg)
	}
	return int64(n)
}

// run opens the files and compares them.
func (c *comparison) run() int {
	if c.names[0] == c.names[1] && c.skip[0] == c.skip[1] {
		if c.names[0] == "-" {
			return 0
		}
	}
	var r [2]*bufio.Reader
	var in [2]*tool.Input
	for i, name := range c.names {
		f, err := c.t.Open(name)
		if err != nil {
			if c.quiet {
				return 2
			}
			c.t.Fatal(2, "%s: %s", name, tool.Strerror(err))
		}
		defer f.Close()
		in[i] = f
		if a, err := f.Attr(); err == nil && a.Mode.IsRegular() && !f.IsStdin() {
			left := min(max(a.Size-c.skip[i], 0), c.limit)
			c.width = min(c.width, len(strconv.FormatInt(left, 10)))
		}
	}
	for i := range r {
		r[i] = bufio.NewReaderSize(in[i], 32<<10)
		if _, err := io.CopyN(io.Discard, r[i], c.skip[i]); err != nil && err != io.EOF {
			c.t.Fatal(2, "%s: %s", c.names[i], tool.Strerror(err))
		}
	}
	return c.compare(r)
}

// compare reads both files to the first difference, or to the end with every.
func (c *comparison) compare(r [2]*bufio.Reader) int {
	status := 0
	line, last := int64(1), byte('\n')
	for n := int64(1); n <= c.limit; n++ {
		a, errA := r[0].ReadByte()
		b, errB := r[1].ReadByte()
		for i, err := range []error{errA, errB} {
			if err != nil && err != io.EOF {
				c.t.Fatal(2, "%s: %s", c.names[i], tool.Strerror(err))
			}
		}
		switch {
		case errA != nil && errB != nil:
			return status
		case errA != nil:
			return c.short(0, n-1, line, last)
		case errB != nil:
			return c.short(1, n-1, line, last)
		}
		if a != b {
			status = 1
			if c.quiet {
				return 1
			}
			c.report(n, line, a, b)
			if !c.every {
				return 1
			}
		}
		if last = a; a == '\n' {
			line++
		}
	}
	return status
}

func (c *comparison) report(n, line int64, a, b byte) {
	out := c.t.Out
	switch {
	case c.every && c.bytes:
		fmt.Fprintf(out, "%*d %3o %-4s %3o %s\n", c.width, n, a, visible(a), b, visible(b))
	case c.every:
		fmt.Fprintf(out, "%*d %3o %3o\n", c.width, n, a, b)
	case c.bytes:
		fmt.Fprintf(out, "%s %s differ: byte %d, line %d is %3o %s %3o %s\n", c.names[0], c.names[1], n, line, a, visible(a), b, visible(b))
	default:
		fmt.Fprintf(out, "%s %s differ: byte %d, line %d\n", c.names[0], c.names[1], n, line)
	}
}

// short tells that one file is a prefix of the other.
func (c *comparison) short(i int, n, line int64, last byte) int {
	switch {
	case c.quiet:
	case n == 0:
		c.t.Warn("EOF on %s which is empty", c.names[i])
	case c.every:
		c.t.Warn("EOF on %s after byte %d", c.names[i], n)
	case last == '\n':
		c.t.Warn("EOF on %s after byte %d, line %d", c.names[i], n, line-1)
	default:
		c.t.Warn("EOF on %s after byte %d, in line %d", c.names[i], n, line)
	}
	return 1
}

// visible renders a byte as cat -v does.
func visible(b byte) string {
	s := ""
	if b >= 128 {
		s, b = "M-", b-128
	}
	switch {
	case b < ' ':
		return s + "^" + string(rune(b+'@'))
	case b == 127:
		return s + "^?"
	}
	return s + string(rune(b))
}
