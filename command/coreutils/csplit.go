package coreutils

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"agentrun.dev/command/cfmt"
	"agentrun.dev/command/getopt"
	"agentrun.dev/command/posixre"
	"agentrun.dev/command/tool"
)

const keySuppress = tool.KeyOwn

var csplitSpec = tool.Spec{
	Usage: []string{"[OPTION]... FILE PATTERN..."},
	About: "Output pieces of FILE separated by PATTERN(s) to files 'xx00', 'xx01', ...,\nand output byte counts of each piece to standard output.\n\nRead standard input if FILE is -",
	Options: []getopt.Option{
		{Short: 'b', Long: "suffix-format", Arg: getopt.Required, Name: "FORMAT", Help: "use sprintf FORMAT instead of %02d"},
		{Short: 'f', Long: "prefix", Arg: getopt.Required, Name: "PREFIX", Help: "use PREFIX instead of 'xx'"},
		{Short: 'k', Long: "keep-files", Help: "do not remove output files on errors"},
		{Long: "suppress-matched", Key: keySuppress, Help: "suppress the lines matching PATTERN"},
		{Short: 'n', Long: "digits", Arg: getopt.Required, Name: "DIGITS", Help: "use specified number of digits instead of 2"},
		{Short: 's', Long: "quiet", Help: "do not print counts of output file sizes"},
		{Long: "silent", Key: 's'},
		{Short: 'q', Key: 's'},
		{Short: 'z', Long: "elide-empty-files", Help: "suppress empty output files"},
	},
	Notes: "Each PATTERN may be:\n  INTEGER            copy up to but not including specified line number\n  /REGEXP/[OFFSET]   copy up to but not including a matching line\n" +
		"  %REGEXP%[OFFSET]   skip to, but not including a matching line\n  {INTEGER}          repeat the previous pattern specified number of times\n  {*}                repeat the previous pattern as many times as possible\n\nA line OFFSET is an integer optionally preceded by '+' or '-'",
	Package: tool.Coreutils,
}

// csplitPattern is one instruction: up to a line, or to a match with an offset.
type csplitPattern struct {
	arg     string
	re      *posixre.Regexp
	skip    bool // %…%: what comes before is dropped
	line    int
	offset  int
	repeat  int
	forever bool
}

// csplitter holds the lines of the input, at most MaxHeld bytes.
type csplitter struct {
	t                  *tool.T
	prefix, format     string
	digits             int
	keep, quiet, elide bool
	suppress           bool
	lines              [][]byte // with their newlines
	at                 int      // the next line to be written, from 0
	search             int      // where the next search begins
	made               []string
	number             int
}

// Csplit splits a file where lines match.
func Csplit(t *tool.T) int {
	c := &csplitter{t: t, prefix: "xx", digits: 2}
	opts, args := t.Parse(&csplitSpec)
	for _, o := range opts {
		switch o.Key {
		case 'b':
			c.format = o.Arg
			c.checkFormat()
		case 'f':
			c.prefix = o.Arg
		case 'k':
			c.keep = true
		case keySuppress:
			c.suppress = true
		case 'n':
			n, err := strconv.ParseUint(o.Arg, 10, 16)
			if err != nil {
				t.Fatal(1, "invalid number: %s", tool.Quote(o.Arg))
			}
			c.digits = int(n)
		case 's':
			c.quiet = true
		case 'z':
			c.elide = true
		}
	}
	if len(args) < 2 {
		if len(args) == 0 {
			t.Missing(1)
		}
		t.UsageError(1, "missing operand after %s", tool.Quote(args[0]))
	}
	in, err := t.Open(args[0])
	if err != nil {
		t.Fatal(1, "cannot open %s for reading: %s", tool.QuoteAF(args[0]), tool.Strerror(err))
	}
	defer in.Close()
	patterns := c.patterns(args[1:])
	b, err := io.ReadAll(io.LimitReader(in, MaxHeld+1))
	if err == nil && len(b) > MaxHeld {
		t.Fatal(1, "memory exhausted")
	}
	if err != nil {
		t.Fatal(1, "read error: %s", tool.Strerror(err))
	}
	for len(b) > 0 {
		i := strings.IndexByte(string(b[:min(len(b), 1<<10)]), '\n')
		if i < 0 {
			i = indexNewline(b)
		}
		c.lines = append(c.lines, b[:i+1])
		b = b[i+1:]
	}
	for i := range patterns {
		c.apply(&patterns[i])
	}
	c.write(len(c.lines))
	return 0
}

// indexNewline returns where the line ends; the last byte if it has no newline.
func indexNewline(b []byte) int {
	for i, ch := range b {
		if ch == '\n' {
			return i
		}
	}
	return len(b) - 1
}

// checkFormat allows one conversion of an integer.
func (c *csplitter) checkFormat() {
	n := 0
	for i := 0; i < len(c.format); i++ {
		if c.format[i] != '%' {
			continue
		}
		if i++; i < len(c.format) && c.format[i] == '%' {
			continue
		}
		for i < len(c.format) && strings.IndexByte("-+ #0'123456789.", c.format[i]) >= 0 {
			i++
		}
		if i == len(c.format) {
			c.t.Fatal(1, "missing conversion specifier in suffix")
		}
		if strings.IndexByte("diuoxX", c.format[i]) < 0 {
			c.t.Fatal(1, "invalid conversion specifier in suffix: %c", c.format[i])
		}
		n++
	}
	if n == 0 {
		c.t.Fatal(1, "missing %% conversion specification in suffix")
	}
	if n > 1 {
		c.t.Fatal(1, "too many %% conversion specifications in suffix")
	}
}

func (c *csplitter) name() string {
	if c.format == "" {
		return fmt.Sprintf("%s%0*d", c.prefix, c.digits, c.number)
	}
	var b strings.Builder
	for i := 0; i < len(c.format); i++ {
		if c.format[i] != '%' {
			b.WriteByte(c.format[i])
			continue
		}
		if i++; c.format[i] == '%' {
			b.WriteByte('%')
			continue
		}
		spec := cfmt.Spec{Prec: -1}
		for ; spec.Flag(c.format[i]); i++ {
		}
		for ; c.format[i] >= '0' && c.format[i] <= '9'; i++ {
			spec.Width = min(spec.Width*10+int(c.format[i]-'0'), 4096)
		}
		if c.format[i] == '.' {
			spec.Prec = 0
			for i++; c.format[i] >= '0' && c.format[i] <= '9'; i++ {
				spec.Prec = min(spec.Prec*10+int(c.format[i]-'0'), 4096)
			}
		}
		spec.Verb = c.format[i]
		if spec.Verb == 'd' || spec.Verb == 'i' {
			b.WriteString(spec.Int(int64(c.number)))
		} else {
			b.WriteString(spec.Uint(uint64(c.number)))
		}
	}
	return c.prefix + b.String()
}

// patterns reads the operands.
func (c *csplitter) patterns(args []string) []csplitPattern {
	var out []csplitPattern
	last := 0
	for i := 0; i < len(args); i++ {
		arg := args[i]
		p := csplitPattern{arg: arg}
		if arg != "" && (arg[0] == '/' || arg[0] == '%') {
			c.regexp(&p, arg)
		} else {
			n, err := strconv.ParseUint(arg, 10, 62)
			if err != nil {
				c.t.Fatal(1, "%s: invalid pattern", tool.Quote(arg))
			}
			if n == 0 {
				c.t.Fatal(1, "%s: line number must be greater than zero", tool.QuoteF(arg))
			}
			if int(n) < last {
				c.t.Fatal(1, "line number %s is smaller than preceding line number, %d", tool.Quote(arg), last)
			}
			if int(n) == last {
				c.t.Warn("warning: line number %s is the same as preceding line number", tool.Quote(arg))
			}
			p.line, last = int(n), int(n)
		}
		if i+1 < len(args) && strings.HasPrefix(args[i+1], "{") {
			i++
			count, ok := strings.CutSuffix(args[i], "}")
			if !ok {
				c.t.Fatal(1, "%s: '}' is required in repeat count", tool.QuoteF(args[i]))
			}
			if count == "{*" {
				p.forever = true
			} else if n, err := strconv.ParseUint(count[1:], 10, 31); err != nil {
				c.t.Fatal(1, "%s}: integer required between '{' and '}'", tool.Quote(count))
			} else {
				p.repeat = int(n)
			}
		}
		out = append(out, p)
	}
	return out
}

func (c *csplitter) regexp(p *csplitPattern, arg string) {
	end := strings.LastIndexByte(arg, arg[0])
	if end == 0 {
		c.t.Fatal(1, "%s: closing delimiter '%c' missing", tool.QuoteF(arg), arg[0])
	}
	p.skip = arg[0] == '%'
	re, err := posixre.Compile(arg[1:end], posixre.Options{})
	if err != nil {
		c.t.Fatal(1, "%s: invalid regular expression: %s", tool.Quote(arg), err)
	}
	p.re = re
	if rest := arg[end+1:]; rest != "" {
		n, err := strconv.Atoi(rest)
		if err != nil {
			c.t.Fatal(1, "%s: integer expected after delimiter", tool.Quote(arg))
		}
		p.offset = n
	}
}

// fail reports and removes what was written, unless it shall be kept. What is left of the input is written before.
func (c *csplitter) fail(format string, args ...any) {
	c.t.Warn(format, args...)
	if !c.keep {
		for _, name := range c.made {
			c.t.Unlink(name)
		}
	}
	c.t.Exit(1)
}

func (c *csplitter) apply(p *csplitPattern) {
	for n := 0; p.forever || n <= p.repeat; n++ {
		c.t.Check()
		if p.re == nil {
			if !c.toLine(p, n) {
				return
			}
		} else if !c.toMatch(p, n) {
			return
		}
	}
}

// toLine writes up to a line; it returns false when the repetition ends with the input.
func (c *csplitter) toLine(p *csplitPattern, n int) bool {
	target := p.line*(n+1) - 1
	if len(c.lines) == 0 {
		if f, err := c.t.Create(c.name()); err == nil {
			f.Close()
		}
		c.t.Fatal(1, "input disappeared")
	}
	if target >= len(c.lines) || target < 0 {
		c.write(len(c.lines))
		at := ""
		if n > 0 {
			at = fmt.Sprintf(" on repetition %d", n)
		}
		c.fail("%s: line number out of range%s", tool.Quote(p.arg), at)
	}
	c.write(max(target, c.at))
	if c.suppress {
		c.at++
	}
	c.search = max(c.search, c.at)
	return true
}

func (c *csplitter) toMatch(p *csplitPattern, n int) bool {
	for i := max(c.search, c.at); i < len(c.lines); i++ {
		line := c.lines[i]
		if line[len(line)-1] == '\n' {
			line = line[:len(line)-1]
		}
		ok, err := p.re.Match(line)
		if err != nil {
			c.fail("%s: error in regular expression search: %s", tool.QuoteF(p.arg), err)
		}
		if !ok {
			continue
		}
		target := i + p.offset
		if target < c.at || target > len(c.lines) {
			if !p.skip {
				c.write(len(c.lines))
			}
			c.fail("%s: line number out of range", tool.QuoteF(p.arg))
		}
		if p.skip {
			c.at = target
		} else {
			c.write(target)
		}
		c.search = i + 1
		if p.offset > 0 {
			c.search = max(c.search, target)
		}
		if c.suppress && c.at < len(c.lines) {
			c.at++
		}
		return true
	}
	if p.forever {
		if p.skip {
			c.at = len(c.lines)
		}
		return false
	}
	if !p.skip {
		c.write(len(c.lines))
	}
	at := ""
	if n > 0 {
		at = fmt.Sprintf(" on repetition %d", n)
	}
	c.fail("%s: match not found%s", tool.Quote(p.arg), at)
	return false
}

// write makes the next piece of the lines before the one given.
func (c *csplitter) write(to int) {
	size := 0
	for _, l := range c.lines[c.at:to] {
		size += len(l)
	}
	if size == 0 && c.elide {
		c.at = to
		return
	}
	name := c.name()
	f, err := c.t.Create(name)
	if err != nil {
		c.fail("%s: %s", tool.QuoteF(name), tool.Strerror(err))
	}
	c.made = append(c.made, name)
	c.number++
	w := tool.NewFileWriter(f)
	for _, l := range c.lines[c.at:to] {
		w.Write(l)
	}
	err = w.Flush()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		c.fail("%s: %s", tool.QuoteF(name), tool.Strerror(err))
	}
	if !c.quiet {
		fmt.Fprintf(c.t.Out, "%d\n", size)
	}
	c.at = to
}
