package coreutils

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentrun.dev/command/cfmt"
	"agentrun.dev/command/tool"
)

var printfSpec = tool.Spec{
	Usage: []string{"FORMAT [ARGUMENT]...", "OPTION"},
	About: `Print ARGUMENT(s) according to FORMAT, or execute according to OPTION:

FORMAT controls the output as in C printf.  Interpreted sequences are:

  \"      double quote
  \\      backslash
  \a \b \c \e \f \n \r \t \v   as in C; \c produces no further output
  \NNN    byte with octal value NNN (1 to 3 digits)
  \xHH    byte with hexadecimal value HH (1 to 2 digits)
  \uHHHH  Unicode character with hex value HHHH (4 digits)
  \UHHHHHHHH  Unicode character with hex value HHHHHHHH (8 digits)
  %%      a single %
  %b      ARGUMENT as a string with '\' escapes interpreted, except that octal escapes are of the form \0 or \0NNN
  %q      ARGUMENT is printed in a format that can be reused as shell input

and all C format specifications ending with one of diouxXfeEgGcs, with ARGUMENTs converted to proper type first.
Variable widths are handled.`,
	Package: tool.Coreutils,
}

type printer struct {
	t      *tool.T
	args   []string
	used   bool // some argument was asked for in this pass
	failed bool
}

// Printf formats its arguments.
func Printf(t *tool.T) int {
	args := t.Args()[1:]
	if len(args) > 0 {
		switch args[0] {
		case "--help":
			if len(args) == 1 {
				t.Help(&printfSpec)
				return 0
			}
		case "--version":
			if len(args) == 1 {
				t.Version(&printfSpec)
				return 0
			}
		case "--":
			args = args[1:]
		}
	}
	if len(args) == 0 {
		t.Missing(1)
	}
	p := printer{t: t, args: args[1:]}
	for {
		before := len(p.args)
		if p.format(args[0]) {
			return status(p.failed)
		}
		if len(p.args) == 0 || len(p.args) == before {
			break
		}
		t.Check()
	}
	if len(p.args) > 0 {
		t.Warn("warning: ignoring excess arguments, starting with %s", tool.Quote(p.args[0]))
	}
	return status(p.failed)
}

// format goes through the format once; it returns true after \c.
func (p *printer) format(f string) (stop bool) {
	for i := 0; i < len(f); {
		switch {
		case f[i] == '\\':
			n, stop := p.escape(f[i:])
			if stop {
				return true
			}
			i += n
		case f[i] != '%':
			p.t.Out.WriteByte(f[i])
			i++
		case strings.HasPrefix(f[i:], "%%"):
			p.t.Out.WriteByte('%')
			i += 2
		default:
			n, stop := p.directive(f[i:])
			if stop {
				return true
			}
			i += n
		}
	}
	return false
}

// escape writes one escape of the format and returns its length.
func (p *printer) escape(s string) (n int, stop bool) {
	w := p.t.Out
	if len(s) == 1 {
		w.WriteByte('\\')
		return 1, false
	}
	switch c := s[1]; {
	case c == 'c':
		return 0, true
	case c == '"':
		w.WriteByte('"')
		return 2, false
	case c == 'x':
		v, n := digits(s[2:], 16, 2)
		if n == 0 {
			p.t.Fatal(1, "missing hexadecimal number in escape")
		}
		w.WriteByte(byte(v))
		return 2 + n, false
	case c >= '0' && c <= '7':
		v, n := digits(s[1:], 8, 3)
		w.WriteByte(byte(v))
		return 1 + n, false
	case c == 'u' || c == 'U':
		want := 4
		if c == 'U' {
			want = 8
		}
		v, n := digits(s[2:], 16, want)
		if n < want {
			p.t.Fatal(1, "missing hexadecimal number in escape")
		}
		if v < 0xa0 && v != '$' && v != '@' && v != '`' || v >= 0xd800 && v <= 0xdfff || v > 0x7fffffff {
			p.t.Fatal(1, "invalid universal character name \\%c%0*x", c, want, v)
		}
		w.WriteString(string(rune(v)))
		return 2 + n, false
	default:
		if b, ok := simpleEscape(c); ok {
			w.WriteByte(b)
		} else {
			w.WriteString(s[:2])
		}
		return 2, false
	}
}

// next takes the next argument.
func (p *printer) next() (string, bool) {
	p.used = true
	if len(p.args) == 0 {
		return "", false
	}
	a := p.args[0]
	p.args = p.args[1:]
	return a, true
}

// directive formats one conversion and returns its length in the format.
func (p *printer) directive(f string) (n int, stop bool) {
	s := cfmt.Spec{Prec: -1}
	i := 1
	if i < len(f) && (f[i] == 'b' || f[i] == 'q') {
		arg, _ := p.next()
		if f[i] == 'b' {
			return 2, p.escaped(arg)
		}
		p.t.Out.WriteString(tool.QuoteShell(arg))
		return 2, false
	}
	for i < len(f) && s.Flag(f[i]) {
		i++
	}
	i, s.Width = p.size(f, i)
	if i < len(f) && f[i] == '.' {
		i, s.Prec = p.size(f, i+1)
	}
	s.Clamp()
	for i < len(f) && strings.IndexByte("hlLjzt", f[i]) >= 0 {
		i++
	}
	if i == len(f) || strings.IndexByte("diouxXfFeEgGaAcs", f[i]) < 0 {
		p.t.Fatal(1, "%s: invalid conversion specification", f[:min(i+1, len(f))])
	}
	s.Verb = f[i]
	p.convert(&s)
	return i + 1, false
}

// size reads a width or precision, or takes it from an argument.
func (p *printer) size(f string, i int) (int, int) {
	if i < len(f) && f[i] == '*' {
		arg, ok := p.next()
		if !ok {
			return i + 1, 0
		}
		return i + 1, int(max(min(p.integer(arg), math.MaxInt32), -math.MaxInt32))
	}
	v := 0
	for i < len(f) && f[i] >= '0' && f[i] <= '9' {
		v = min(v*10+int(f[i]-'0'), math.MaxInt32)
		i++
	}
	return i, v
}

func (p *printer) convert(s *cfmt.Spec) {
	arg, ok := p.next()
	out := ""
	switch s.Verb {
	case 's':
		out = s.Text(arg)
	case 'c':
		s.Prec = -1
		if arg != "" {
			arg = arg[:1]
		} else if !ok {
			arg = ""
		}
		out = s.Text(arg)
	case 'd', 'i':
		out = s.Int(p.integer(arg))
	case 'o', 'u', 'x', 'X':
		out = s.Uint(p.unsigned(arg))
	default:
		out = s.Float(p.float(arg))
	}
	p.t.Out.WriteString(out)
}

// escaped writes %b's argument.
func (p *printer) escaped(arg string) (stop bool) { return WriteEscaped(p.t.Out, arg, true) }

// character is the value of 'c or "c: the character's code.
func (p *printer) character(s string) (int64, bool) {
	if len(s) < 2 || s[0] != '\'' && s[0] != '"' {
		return 0, false
	}
	r, n := utf8.DecodeRuneInString(s[1:])
	if r == utf8.RuneError && n == 1 {
		r = rune(s[1])
	}
	if rest := s[1+n:]; rest != "" {
		p.t.Warn("warning: %s: character(s) following character constant have been ignored", rest)
	}
	return int64(r), true
}

// complain reports a number that isn't one, or not entirely.
func (p *printer) complain(s, rest string, any bool, err error) {
	switch {
	case !any:
		p.t.Warn("%s: expected a numeric value", tool.Quote(s))
	case err != nil:
		p.t.Warn("%s: %s", tool.Quote(s), tool.Strerror(err))
	case rest != "":
		p.t.Warn("%s: value not completely converted", tool.Quote(s))
	default:
		return
	}
	p.failed = true
}

func (p *printer) integer(s string) int64 {
	if v, ok := p.character(s); ok {
		return v
	}
	if s == "" {
		return 0
	}
	u, neg, rest, any, over := scanInteger(s)
	v := int64(u)
	var err error
	switch {
	case neg && (over || u > 1<<63):
		v, err = math.MinInt64, errRange
	case neg:
		v = -v
	case over || u > math.MaxInt64:
		v, err = math.MaxInt64, errRange
	}
	p.complain(s, rest, any, err)
	return v
}

// errRange is ERANGE's text.
var errRange = errors.New("Numerical result out of range")

func (p *printer) unsigned(s string) uint64 {
	if v, ok := p.character(s); ok {
		return uint64(v)
	}
	if s == "" {
		return 0
	}
	u, neg, rest, any, over := scanInteger(s)
	var err error
	if over {
		u, err = math.MaxUint64, errRange
	} else if neg {
		u = -u
	}
	p.complain(s, rest, any, err)
	return u
}

// scanInteger reads an integer as strtol does with base 0.
func scanInteger(s string) (v uint64, neg bool, rest string, any, over bool) {
	t := strings.TrimLeft(s, " \t\n\v\f\r")
	if t != "" && (t[0] == '+' || t[0] == '-') {
		neg = t[0] == '-'
		t = t[1:]
	}
	base := 10
	if strings.HasPrefix(t, "0") {
		base = 8
		if len(t) > 2 && t[1]|0x20 == 'x' {
			if _, n := digits(t[2:], 16, 1); n > 0 {
				base, t = 16, t[2:]
			}
		}
	}
	n := 0
	for n < len(t) {
		if _, ok := digits(t[n:], base, 1); ok == 0 {
			break
		}
		n++
	}
	if n == 0 {
		return 0, false, s, false, false
	}
	v, err := strconv.ParseUint(t[:n], base, 64)
	return v, neg, t[n:], true, err != nil
}

func (p *printer) float(s string) cfmt.Float {
	if v, ok := p.character(s); ok {
		return cfmt.Double(float64(v))
	}
	if s == "" {
		return cfmt.Double(0)
	}
	v, rest, ok, over := cfmt.ParseFloat(s)
	var err error
	if over {
		err = errRange
	}
	p.complain(s, rest, ok, err)
	if !ok {
		return cfmt.Double(0)
	}
	return v
}
