package find

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/command/datetime"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// segment is a piece of a -printf format: a literal, or a directive with its flags.
type segment struct {
	text      string
	directive byte
	flags     string // flags, width and precision
	sub       byte   // of %A, %C, %T
	flush     bool
}

type format struct {
	segments []segment
	stop     bool // \c
}

// format parses a -printf format.
func (p *parser) format(s string) *format {
	out := &format{}
	var lit strings.Builder
	flush := func() {
		if lit.Len() > 0 {
			out.segments = append(out.segments, segment{text: lit.String()})
			lit.Reset()
		}
	}
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			switch c := s[i]; {
			case c == 'c':
				flush()
				out.stop = true
				return out
			case c >= '0' && c <= '7':
				v := 0
				j := i
				for j < len(s) && j < i+3 && s[j] >= '0' && s[j] <= '7' {
					v = v*8 + int(s[j]-'0')
					j++
				}
				lit.WriteByte(byte(v))
				i = j - 1
			case strings.IndexByte(`abfnrtv\`, c) >= 0:
				lit.WriteByte("\a\b\f\n\r\t\v\\"[strings.IndexByte(`abfnrtv\`, c)])
			default:
				p.f.t.Warn("warning: unrecognized escape `\\%c'", c)
				lit.WriteByte('\\')
				lit.WriteByte(c)
			}
		case s[i] == '%' && i+1 < len(s) && s[i+1] == '%':
			lit.WriteByte('%')
			i++
		case s[i] == '%':
			j := i + 1
			for j < len(s) && strings.IndexByte("-+ #0123456789.", s[j]) >= 0 {
				j++
			}
			if j >= len(s) {
				p.f.t.Fatal(1, "error: %% at end of format string")
			}
			seg := segment{directive: s[j], flags: s[i+1 : j]}
			if strings.IndexByte("ABCT", s[j]) >= 0 {
				if j++; j >= len(s) {
					p.f.t.Fatal(1, "error: the format directive `%%%c' must be followed by another character", s[j-1])
				}
				seg.sub = s[j]
			}
			flush()
			if strings.IndexByte("abcdfghHiklmMnpPsStuUyYDFGAABCTZ", seg.directive) < 0 {
				p.f.t.Warn("warning: unrecognized format directive `%%%c'", seg.directive)
				lit.WriteString(s[i : j+1])
			} else {
				out.segments = append(out.segments, seg)
			}
			i = j
		default:
			lit.WriteByte(s[i])
		}
	}
	flush()
	return out
}

func (x *format) write(f *finder, e *entry, w *bufio.Writer) {
	for i := range x.segments {
		s := &x.segments[i]
		if s.directive == 0 {
			w.WriteString(s.text)
			continue
		}
		w.WriteString(s.pad(s.value(f, e)))
	}
	if x.stop {
		w.Flush()
	}
}

// pad applies the flags -, 0 and +, the width and the precision.
func (s *segment) pad(v string, number bool) string {
	if s.flags == "" {
		return v
	}
	spec := strings.TrimLeft(s.flags, "-+ #0")
	flags := s.flags[:len(s.flags)-len(spec)]
	width, prec, hasPrec := strings.Cut(spec, ".")
	if hasPrec && !number {
		if n, err := strconv.Atoi("0" + prec); err == nil && n < len(v) {
			v = v[:n]
		}
	}
	if number && strings.Contains(flags, "+") {
		v = "+" + v
	}
	n, err := strconv.Atoi("0" + width)
	if err != nil || n > 1<<16 {
		n = 1 << 16
	}
	n -= len(v)
	switch {
	case n <= 0:
		return v
	case strings.Contains(flags, "-"):
		return v + strings.Repeat(" ", n)
	case number && strings.Contains(flags, "0"):
		return strings.Repeat("0", n) + v
	}
	return strings.Repeat(" ", n) + v
}

// value renders a directive; number says that it is one.
func (s *segment) value(f *finder, e *entry) (v string, number bool) {
	switch s.directive {
	case 'f':
		return e.base(), false
	case 'h':
		return dirOf(e.path), false
	case 'H':
		return e.start, false
	case 'p':
		return e.path, false
	case 'P':
		return e.relative(), false
	case 'd':
		return strconv.Itoa(e.depth), true
	case 'F':
		return "unknown", false
	case 'Z':
		return "", false
	}
	a := f.stat(e)
	num := func(n uint64) (string, bool) { return strconv.FormatUint(n, 10), true }
	switch s.directive {
	case 'a':
		return ctime(a.Atime.In(f.start.Location())), false
	case 'c':
		return ctime(a.Ctime.In(f.start.Location())), false
	case 't':
		return ctime(a.Mtime.In(f.start.Location())), false
	case 'A', 'C', 'T', 'B':
		return timeField(timeOf(a, s.directive|0x20).In(f.start.Location()), s.sub), false
	case 'b':
		return num(uint64(a.Blocks))
	case 'k':
		return num(uint64(a.Blocks+1) / 2)
	case 'D':
		return num(a.Dev)
	case 'g':
		return f.users().GroupName(a.GID), false
	case 'u':
		return f.users().UserName(a.UID), false
	case 'G':
		return num(uint64(a.GID))
	case 'U':
		return num(uint64(a.UID))
	case 'i':
		return num(uint64(a.Ino))
	case 'n':
		return num(uint64(a.Nlink))
	case 's':
		return strconv.FormatInt(a.Size, 10), false
	case 'S':
		if a.Size == 0 {
			return "1", false
		}
		return fmt.Sprintf("%g", float64(a.Blocks)*512/float64(a.Size)), false
	case 'l':
		if !a.Mode.IsSymlink() {
			return "", false
		}
		target, _ := f.t.Readlink(e.path)
		return target, false
	case 'm':
		m := strconv.FormatUint(uint64(a.Mode&vfs.ModePerm), 8)
		if strings.Contains(s.flags, "#") {
			m = "0" + m
		}
		return m, true
	case 'M':
		return tool.FormatMode(a.Mode), false
	case 'y':
		return string(typeLetter(a.Mode)), false
	case 'Y':
		return f.targetType(e, a), false
	}
	return "", false
}

// targetType is %Y: the type behind a link; N if it is missing, L in a loop.
func (f *finder) targetType(e *entry, a *vfs.Attr) string {
	if !a.Mode.IsSymlink() {
		return string(typeLetter(a.Mode))
	}
	t, err := f.t.Stat(e.path)
	switch {
	case err == nil:
		return string(typeLetter(t.Mode))
	case tool.IsNotExist(err):
		return "N"
	case strings.Contains(tool.Strerror(err), "levels"):
		return "L"
	}
	return "?"
}

func formatTime(layout string, t time.Time) string { return datetime.Format(layout, t) }

// fraction is how find shows fractions of a second.
func fraction(t time.Time) string { return fmt.Sprintf(".%09d0", t.Nanosecond()) }

func ctime(t time.Time) string {
	return formatTime("%a %b %e %H:%M:%S", t) + fraction(t) + formatTime(" %Y", t)
}

// timeField is %Ak and its kin.
func timeField(t time.Time, k byte) string {
	switch k {
	case '@':
		return strconv.FormatInt(t.Unix(), 10) + fraction(t)
	case 'S':
		return formatTime("%S", t) + fraction(t)
	case 'T':
		return formatTime("%H:%M:%S", t) + fraction(t)
	case 'X':
		return formatTime("%H:%M:%S", t) + fraction(t)
	case '+':
		return formatTime("%Y-%m-%d+%H:%M:%S", t) + fraction(t)
	case 'r':
		return formatTime("%I:%M:%S", t) + fraction(t) + formatTime(" %p", t)
	}
	return formatTime("%"+string(k), t)
}
