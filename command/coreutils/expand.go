package coreutils

import (
	"bufio"
	"io"
	"math"
	"strconv"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

const (
	keyFirstOnly = tool.KeyOwn + iota
	keyOldTabs
)

// oldTabs is what obsoleteTabs makes of -4.
var oldTabs = getopt.Option{Long: "-tabs", Key: keyOldTabs, Arg: getopt.Required, Hidden: true}

var expandSpec = tool.Spec{
	Usage: []string{"[OPTION]... [FILE]..."},
	About: "Convert tabs in each FILE to spaces, writing to standard output.\n\nWith no FILE, or when FILE is -, read standard input.",
	Options: []getopt.Option{
		{Short: 'i', Long: "initial", Help: "do not convert tabs after non blanks"},
		oldTabs,
		{Short: 't', Long: "tabs", Arg: getopt.Required, Name: "N or LIST", Help: "have tabs N characters apart, or at the positions of a list; the last may be /N or +N"},
	},
	Package: tool.Coreutils,
}

var unexpandSpec = tool.Spec{
	Usage: []string{"[OPTION]... [FILE]..."},
	About: "Convert blanks in each FILE to tabs, writing to standard output.\n\nWith no FILE, or when FILE is -, read standard input.",
	Options: []getopt.Option{
		{Short: 'a', Long: "all", Help: "convert all blanks, instead of just initial blanks"},
		{Long: "first-only", Key: keyFirstOnly, Help: "convert only leading sequences of blanks (overrides -a)"},
		oldTabs,
		{Short: 't', Long: "tabs", Arg: getopt.Required, Name: "N or LIST", Help: "have tabs N characters apart (enables -a), or at the positions of a list; the last may be /N or +N"},
	},
	Package: tool.Coreutils,
}

// tabStops are where tabs lead to. With size, they stand at its multiples; else at the places of the list, and then at
// multiples of extend, or every increment after the last.
type tabStops struct {
	list                    []int
	size, extend, increment int
}

// maxTab bounds the distance of tab stops, which is also how many blanks unexpand holds back.
const maxTab = 1 << 24

// parse reads a list of tab stops and adds it to those there are.
func (s *tabStops) parse(t *tool.T, arg string) {
	kind := byte(0)
	start := -1
	add := func(text string) {
		n, err := strconv.Atoi(text)
		if err != nil || n > maxTab {
			t.Fatal(1, "tab stop is too large %s", tool.Quote(text))
		}
		switch kind {
		case '/':
			if s.extend != 0 {
				t.Fatal(1, "'/' specifier only allowed with the last value")
			}
			s.extend = n
		case '+':
			if s.increment != 0 {
				t.Fatal(1, "'+' specifier only allowed with the last value")
			}
			s.increment = n
		default:
			s.list = append(s.list, n)
		}
	}
	for i := 0; i <= len(arg); i++ {
		switch {
		case i == len(arg) || arg[i] == ',' || arg[i] == ' ' || arg[i] == '\t':
			if start >= 0 {
				add(arg[start:i])
			}
			start = -1
		case (arg[i] == '/' || arg[i] == '+') && start < 0:
			kind = arg[i]
		case (arg[i] == '/' || arg[i] == '+'):
			t.Fatal(1, "'%c' specifier not at start of number: %s", arg[i], tool.Quote(arg[i:]))
		case arg[i] >= '0' && arg[i] <= '9':
			if start < 0 {
				start = i
			}
		default:
			t.Fatal(1, "tab size contains invalid character(s): %s", tool.Quote(arg[i:]))
		}
	}
}

// finish checks the stops and chooses how they are meant.
func (s *tabStops) finish(t *tool.T) {
	prev := 0
	for _, n := range s.list {
		if n == 0 {
			t.Fatal(1, "tab size cannot be 0")
		}
		if n <= prev {
			t.Fatal(1, "tab sizes must be ascending")
		}
		prev = n
	}
	if s.increment != 0 && s.extend != 0 {
		t.Fatal(1, "'/' specifier is mutually exclusive with '+'")
	}
	switch {
	case len(s.list) == 0:
		if s.size = max(s.extend, s.increment); s.size == 0 {
			s.size = 8
		}
	case len(s.list) == 1 && s.extend == 0 && s.increment == 0:
		s.size = s.list[0]
	}
}

// next returns the stop after a column; index is where in the list to look on. ok is false after the last.
func (s *tabStops) next(column int, index *int) (stop int, ok bool) {
	if s.size > 0 {
		return column + s.size - column%s.size, true
	}
	for ; *index < len(s.list); *index++ {
		if column < s.list[*index] {
			return s.list[*index], true
		}
	}
	if s.extend > 0 {
		return column + s.extend - column%s.extend, true
	}
	if s.increment > 0 {
		return column + s.increment - (column-s.list[len(s.list)-1])%s.increment, true
	}
	return 0, false
}

// obsoleteTabs turns arguments such as -4 or -2,4 into options of their own.
func obsoleteTabs(args []string) []string {
	out := make([]string, 0, len(args))
	for i, a := range args {
		if a == "--" {
			return append(out, args[i:]...)
		}
		if len(a) > 1 && a[0] == '-' && a[1] >= '0' && a[1] <= '9' && strings.Trim(a[1:], "0123456789,") == "" {
			out = append(out, "---tabs="+a[1:])
			continue
		}
		out = append(out, a)
		if a == "-t" && i+1 < len(args) {
			return append(append(out, args[i+1]), obsoleteTabs(args[i+2:])...)
		}
	}
	return out
}

// concat reads several files as one.
type concat struct {
	t     *tool.T
	files []string
	cur   *tool.Input
	fail  bool
}

// newConcat returns a buffered reader of all the files, and the state that knows whether one couldn't be read.
func newConcat(t *tool.T, files []string) (*bufio.Reader, *concat) {
	c := &concat{t: t, files: names(files)}
	return bufio.NewReaderSize(c, 32<<10), c
}

// Read implements io.Reader; errors are reported, and the next file follows.
func (c *concat) Read(p []byte) (int, error) {
	for {
		if c.cur == nil {
			if len(c.files) == 0 {
				return 0, io.EOF
			}
			name := c.files[0]
			c.files = c.files[1:]
			in, err := c.t.Open(name)
			if err != nil {
				c.t.WarnFile(name, err)
				c.fail = true
				continue
			}
			c.cur = in
		}
		n, err := c.cur.Read(p)
		if n > 0 {
			return n, nil
		}
		if err != nil {
			if err != io.EOF {
				c.t.WarnFile(c.cur.Name, err)
				c.fail = true
			}
			c.cur.Close()
			c.cur = nil
		}
	}
}

// Expand turns tabs into blanks.
func Expand(t *tool.T) int {
	opts, files := t.ParseArgs(&expandSpec, obsoleteTabs(t.Args()[1:]))
	var stops tabStops
	initial := false
	for _, o := range opts {
		switch o.Key {
		case 'i':
			initial = true
		case 't', keyOldTabs:
			stops.parse(t, o.Arg)
		}
	}
	stops.finish(t)
	r, state := newConcat(t, files)
	column, index, convert := 0, 0, true
	for {
		c, err := r.ReadByte()
		if err != nil {
			return status(state.fail)
		}
		if convert {
			switch c {
			case '\t':
				stop, ok := stops.next(column, &index)
				if !ok {
					stop = column + 1
				}
				for column++; column < stop; column++ {
					t.Out.WriteByte(' ')
				}
				c = ' '
			case '\b':
				column, index = max(0, column-1), max(0, index-1)
			default:
				column++
			}
			convert = !initial || c == ' '
		}
		t.Out.WriteByte(c)
		if c == '\n' {
			column, index, convert = 0, 0, true
		}
	}
}

// unexpander turns blanks into tabs. Blanks are held back until it is known whether they reach a stop.
type unexpander struct {
	stops         *tabStops
	all           bool
	convert       bool
	column, index int
	pending       []byte
	oneBefore     bool // a single blank stands just before the stop that was reached
	prevBlank     bool
}

func (u *unexpander) reset() {
	*u = unexpander{stops: u.stops, all: u.all, convert: true, prevBlank: true, pending: u.pending[:0]}
}

// byte takes a byte, -1 at the end, and returns what to write for it; held is true if that is still open.
func (u *unexpander) byte(c int) (out int, held bool) {
	blank := c == ' ' || c == '\t'
	switch {
	case blank:
		stop, ok := u.stops.next(u.column, &u.index)
		if !ok {
			u.convert = false
			break
		}
		if c == '\t' {
			u.column = stop
			if len(u.pending) > 0 {
				u.pending[0] = '\t'
			}
		} else {
			u.column++
			if !(u.prevBlank && u.column == stop) {
				if u.column == stop {
					u.oneBefore = true
				}
				u.pending = append(u.pending, ' ')
				u.prevBlank = true
				return 0, true
			}
			c = '\t'
			u.pending = append(u.pending[:0], '\t')
		}
		// Blanks before a tab go, unless it was a single one before the last stop.
		if u.oneBefore && len(u.pending) > 0 {
			u.pending = u.pending[:1]
		} else {
			u.pending = u.pending[:0]
		}
	case c == '\b':
		u.column, u.index = max(0, u.column-1), max(0, u.index-1)
	default:
		u.column++
	}
	return c, false
}

// Unexpand turns blanks into tabs.
func Unexpand(t *tool.T) int {
	opts, files := t.ParseArgs(&unexpandSpec, obsoleteTabs(t.Args()[1:]))
	var stops tabStops
	u := &unexpander{stops: &stops}
	firstOnly := false
	for _, o := range opts {
		switch o.Key {
		case 'a':
			u.all = true
		case 't':
			u.all = true
			stops.parse(t, o.Arg)
		case keyOldTabs:
			stops.parse(t, o.Arg)
		case keyFirstOnly:
			firstOnly = true
		}
	}
	u.all = u.all && !firstOnly
	stops.finish(t)
	r, state := newConcat(t, files)
	u.reset()
	for {
		b, err := r.ReadByte()
		c := int(b)
		if err != nil {
			c = -1
		}
		if u.convert {
			blank := c == ' ' || c == '\t'
			var held bool
			if c, held = u.byte(c); held {
				continue
			}
			if len(u.pending) > 0 {
				if len(u.pending) > 1 && u.oneBefore {
					u.pending[0] = '\t'
				}
				t.Out.Write(u.pending)
				u.pending, u.oneBefore = u.pending[:0], false
			}
			u.prevBlank = blank
			u.convert = u.convert && (u.all || blank)
		}
		if c < 0 {
			return status(state.fail)
		}
		t.Out.WriteByte(byte(c))
		if c == '\n' {
			u.reset()
		}
	}
}

// unlimited stands for no limit in counts.
const unlimited = math.MaxInt64
