package coreutils

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math/bits"
	"strconv"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

const keyRandomSource = tool.KeyOwn

var randomSourceOption = getopt.Option{Long: "random-source", Key: keyRandomSource, Arg: getopt.Required, Name: "FILE", Help: "get random bytes from FILE"}

var shufSpec = tool.Spec{
	Usage: []string{"[OPTION]... [FILE]", "-e [OPTION]... [ARG]...", "-i LO-HI [OPTION]..."},
	About: "Write a random permutation of the input lines to standard output.\n\nWith no FILE, or when FILE is -, read standard input.",
	Options: []getopt.Option{
		{Short: 'e', Long: "echo", Help: "treat each ARG as an input line"},
		{Short: 'i', Long: "input-range", Arg: getopt.Required, Name: "LO-HI", Help: "treat each number LO through HI as an input line"},
		{Short: 'n', Long: "head-count", Arg: getopt.Required, Name: "COUNT", Help: "output at most COUNT lines"},
		{Short: 'o', Long: "output", Arg: getopt.Required, Name: "FILE", Help: "write result to FILE instead of standard output"},
		randomSourceOption,
		{Short: 'r', Long: "repeat", Help: "output lines can be repeated"},
		{Short: 'z', Long: "zero-terminated", Help: "line delimiter is NUL, not newline"},
	},
	Package: tool.Coreutils,
}

// random gives numbers below a bound out of a stream of bytes, using as few of them as GNU's randint: what is left of one
// number goes into the next.
type random struct {
	r        io.ByteReader
	num, max uint64
	failed   error
}

func newRandom(r io.Reader) *random { return &random{r: bufio.NewReaderSize(r, 4096)} }

// upTo returns a number from 0 to max, both included.
func (g *random) upTo(max uint64) uint64 {
	if max == 1<<64-1 {
		var b [8]byte
		for i := range b {
			b[i] = g.byte()
		}
		return binary.LittleEndian.Uint64(b[:])
	}
	choices := max + 1
	num, top := g.num, g.max
	for {
		for top < max {
			var carry uint64
			num = num<<8 + uint64(g.byte())
			if carry, top = bits.Mul64(top, 256); carry != 0 {
				top = 1<<64 - 1
			} else {
				top += 255
			}
		}
		if top == max {
			g.num, g.max = 0, 0
			return num
		}
		excess := top - max
		unusable := excess % choices
		last := top - unusable
		if num <= last {
			r := num % choices
			g.num, g.max = num/choices, excess/choices
			return r
		}
		num = num % choices
		top = unusable - 1
	}
}

func (g *random) byte() byte {
	c, err := g.r.ReadByte()
	if err != nil && g.failed == nil {
		g.failed = err
	}
	return c
}

// randomSource returns the stream of --random-source, or the sandbox's own.
func randomSource(t *tool.T, file string) io.Reader {
	if file == "" {
		return t.Rand()
	}
	in, err := t.OpenFile(file)
	if err != nil {
		t.Fatal(1, "%s: %s", tool.QuoteF(file), tool.Strerror(err))
	}
	return in
}

// Shuf prints lines in random order. They are held in memory, at most MaxHeld bytes.
func Shuf(t *tool.T) int {
	opts, args := t.Parse(&shufSpec)
	echo, ranged, repeat, delim := false, false, false, byte('\n')
	var lo, hi uint64
	count := uint64(1<<64 - 1)
	out, source := "", ""
	for _, o := range opts {
		switch o.Key {
		case 'e':
			echo = true
		case 'i':
			if ranged {
				t.Fatal(1, "multiple -i options specified")
			}
			lo, hi = shufRange(t, o.Arg)
			ranged = true
		case 'n':
			n, err := strconv.ParseUint(o.Arg, 10, 64)
			if err != nil && !errors.Is(err, strconv.ErrRange) {
				t.Fatal(1, "invalid line count: %s", tool.Quote(o.Arg))
			}
			count = min(count, n)
		case 'o':
			if out != "" && out != o.Arg {
				t.Fatal(1, "multiple output files specified")
			}
			out = o.Arg
		case keyRandomSource:
			source = o.Arg
		case 'r':
			repeat = true
		case 'z':
			delim = 0
		}
	}
	if echo && ranged {
		t.UsageError(1, "cannot combine -e and -i options")
	}
	if ranged && len(args) > 0 || !echo && len(args) > 1 {
		if ranged {
			t.Extra(1, args[0])
		}
		t.Extra(1, args[1])
	}
	var lines []string
	if echo {
		lines = args
	} else if !ranged {
		lines = shufRead(t, names(args)[0], delim)
	}
	n := uint64(len(lines))
	if ranged {
		n = hi - lo + 1
	}
	g := newRandom(randomSource(t, source))
	w := bufio.NewWriterSize(t.Out, 32<<10)
	if out != "" {
		f, err := t.Create(out)
		if err != nil {
			t.Fatal(1, "%s: %s", tool.QuoteF(out), tool.Strerror(err))
		}
		defer f.Close()
		w = bufio.NewWriterSize(f, 32<<10)
	}
	line := func(i uint64) string {
		if ranged {
			return strconv.FormatUint(lo+i, 10)
		}
		return lines[i]
	}
	if repeat {
		if n == 0 && count > 0 {
			t.Fatal(1, "no lines to repeat")
		}
		for ; count > 0; count-- {
			w.WriteString(line(g.upTo(n - 1)))
			w.WriteByte(delim)
			t.Check()
		}
	} else {
		shuffle(g, n, min(n, count), func(i uint64) {
			w.WriteString(line(i))
			w.WriteByte(delim)
		})
	}
	if g.failed != nil {
		t.Fatal(1, "%s: end of file", tool.QuoteF(source))
	}
	if err := w.Flush(); err != nil {
		t.Fatal(1, "write error: %s", tool.Strerror(err))
	}
	return 0
}

// shuffle calls f for k of the numbers below n, in random order. Only those that were moved are remembered, so a large
// range costs no memory by itself.
func shuffle(g *random, n, k uint64, f func(uint64)) {
	moved := map[uint64]uint64{}
	at := func(i uint64) uint64 {
		if v, ok := moved[i]; ok {
			return v
		}
		return i
	}
	order := make([]uint64, 0, min(k, 1<<20))
	for i := uint64(0); i < k && g.failed == nil; i++ {
		j := i + g.upTo(n-i-1)
		order = append(order, at(j))
		moved[j] = at(i)
		delete(moved, i)
	}
	for _, i := range order {
		f(i)
	}
}

func shufRange(t *tool.T, arg string) (lo, hi uint64) {
	a, b, ok := strings.Cut(arg, "-")
	lo, err1 := strconv.ParseUint(a, 10, 64)
	hi, err2 := strconv.ParseUint(b, 10, 64)
	if !ok || err1 != nil || err2 != nil || lo > hi && lo != hi+1 {
		t.Fatal(1, "invalid input range: %s", tool.Quote(arg))
	}
	return lo, hi
}

func shufRead(t *tool.T, name string, delim byte) []string {
	b, err := t.ReadFile(name, MaxHeld)
	if err != nil {
		t.WarnFile(name, err)
		t.Exit(1)
	}
	if len(b) == 0 {
		return nil
	}
	s := string(b)
	return strings.Split(strings.TrimSuffix(s, string(delim)), string(delim))
}
