package coreutils

import (
	"io"
	"strings"

	"agentrun.dev/command/tool"
)

var echoSpec = tool.Spec{
	Usage: []string{"[SHORT-OPTION]... [STRING]...", "LONG-OPTION"},
	About: `Echo the STRING(s) to standard output.

  -n             do not output the trailing newline
  -e             enable interpretation of backslash escapes
  -E             disable interpretation of backslash escapes (default)`,
	Package: tool.Coreutils,
}

// Echo writes its arguments.
func Echo(t *tool.T) int {
	args := t.Args()[1:]
	if len(args) == 1 {
		switch args[0] {
		case "--help":
			t.Help(&echoSpec)
			return 0
		case "--version":
			t.Version(&echoSpec)
			return 0
		}
	}
	newline, escapes := true, false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		for _, c := range args[0][1:] {
			switch c {
			case 'n':
				newline = false
			case 'e':
				escapes = true
			case 'E':
				escapes = false
			}
		}
		args = args[1:]
	}
	for i, a := range args {
		if i > 0 {
			t.Out.WriteByte(' ')
		}
		if !escapes {
			t.Out.WriteString(a)
		} else if stop := WriteEscaped(t.Out, a, true); stop {
			return 0
		}
	}
	if newline {
		t.Out.WriteByte('\n')
	}
	return 0
}

// ByteStringWriter is what escapes are written to.
type ByteStringWriter interface {
	io.ByteWriter
	io.StringWriter
}

// WriteEscaped writes s with echo's backslash escapes; bare says that \NNN is octal as \0NNN is. It returns true after
// \c, which ends all output.
func WriteEscaped(w ByteStringWriter, s string, bare bool) (stop bool) {
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			w.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'c':
			return true
		case 'x':
			v, n := digits(s[i+1:], 16, 2)
			if n == 0 {
				w.WriteString(`\x`)
			} else {
				w.WriteByte(byte(v))
				i += n
			}
		case '0':
			v, n := digits(s[i+1:], 8, 3)
			w.WriteByte(byte(v))
			i += n
		default:
			if bare && c >= '1' && c <= '7' {
				v, n := digits(s[i:], 8, 3)
				w.WriteByte(byte(v))
				i += n - 1
			} else if b, ok := simpleEscape(c); ok {
				w.WriteByte(b)
			} else {
				w.WriteByte('\\')
				w.WriteByte(c)
			}
		}
	}
	return false
}

// simpleEscape returns what a one-letter escape stands for.
func simpleEscape(c byte) (byte, bool) {
	if i := strings.IndexByte(`abefnrtv\`, c); i >= 0 {
		return "\a\b\x1b\f\n\r\t\v\\"[i], true
	}
	return 0, false
}

// digits reads up to limit digits of a base from the start of s.
func digits(s string, base, limit int) (value, n int) {
	for n < limit && n < len(s) {
		d := strings.IndexByte("0123456789abcdef", s[n]|0x20)
		if s[n] >= '0' && s[n] <= '9' {
			d = int(s[n] - '0')
		} else if s[n]|0x20 < 'a' {
			d = -1
		}
		if d < 0 || d >= base {
			break
		}
		value = value*base + d
		n++
	}
	return value, n
}
