// Package datetime formats and reads dates as GNU date does, in the C locale.
package datetime

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MaxWidth bounds a field width in a format; a larger one counts as this.
const MaxWidth = 4096

// field is one conversion: its flags and width.
type field struct {
	pad    byte // 0 is the conversion's own padding; '-' none, '_' blanks, '0' zeros
	upper  bool
	swap   bool
	plus   bool
	width  int
	colons int
}

// Format renders t by a strftime format with GNU's flags (_ - 0 ^ # +), widths, %N, %:z and %q. Unknown conversions stay
// as they are.
func Format(format string, t time.Time) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		start := i
		f := field{width: -1}
		i++
	flags:
		for ; i < len(format); i++ {
			switch c := format[i]; c {
			case '_', '-', '0':
				f.pad = c
			case '+':
				f.pad, f.plus = '0', true
			case '^':
				f.upper = true
			case '#':
				f.swap = true
			default:
				break flags
			}
		}
		for i < len(format) && format[i] >= '0' && format[i] <= '9' {
			f.width = min(max(f.width, 0)*10+int(format[i]-'0'), MaxWidth)
			i++
		}
		for i < len(format) && format[i] == ':' {
			f.colons++
			i++
		}
		for i < len(format) && (format[i] == 'E' || format[i] == 'O') {
			i++
		}
		if i == len(format) {
			b.WriteString(format[start:])
			break
		}
		if s, ok := f.conversion(format[i], t); ok {
			b.WriteString(s)
		} else {
			b.WriteString(format[start : i+1])
		}
	}
	return b.String()
}

// text pads a text, with blanks unless zeros were asked for.
func (f *field) text(s string) string {
	if f.upper {
		s = strings.ToUpper(s)
	}
	if n := f.width - len(s); n > 0 && f.pad != '-' {
		fill := " "
		if f.pad == '0' {
			fill = "0"
		}
		s = strings.Repeat(fill, n) + s
	}
	return s
}

// number pads a number to digits with the conversion's own fill unless flags say otherwise.
func (f *field) number(v int64, digits int, fill byte) string {
	neg := v < 0
	s := strconv.FormatUint(uint64(max(v, -v)), 10)
	if f.pad == '-' {
		digits = 0
	} else if f.pad != 0 {
		fill = f.pad
	}
	if fill == '_' {
		fill = ' '
	}
	width := max(digits, 0)
	if f.width >= 0 && f.pad != '-' {
		width = f.width
	}
	sign := ""
	if neg {
		sign = "-"
	} else if f.plus && (len(s) > digits || f.width > digits) {
		sign = "+"
	}
	if n := width - len(s) - len(sign); n > 0 {
		if fill == ' ' {
			return strings.Repeat(" ", n) + sign + s
		}
		return sign + strings.Repeat("0", n) + s
	}
	return sign + s
}

func (f *field) sub(format string, t time.Time) (string, bool) {
	return f.text(Format(format, t)), true
}

func (f *field) conversion(c byte, t time.Time) (string, bool) {
	if f.colons > 0 && c != 'z' {
		return "", false
	}
	num := func(v, digits int, fill byte) (string, bool) { return f.number(int64(v), digits, fill), true }
	hour12 := (t.Hour()+11)%12 + 1
	switch c {
	case '%':
		return f.text("%"), true
	case 'n':
		return f.text("\n"), true
	case 't':
		return f.text("\t"), true
	case 'a', 'A', 'b', 'B', 'h', 'p', 'P', 'Z':
		return f.name(c, t), true
	case 'c':
		return f.sub("%a %b %e %H:%M:%S %Y", t)
	case 'C':
		return num(floorDiv(t.Year(), 100), 2, '0')
	case 'd':
		return num(t.Day(), 2, '0')
	case 'D', 'x':
		return f.sub("%m/%d/%y", t)
	case 'e':
		return num(t.Day(), 2, ' ')
	case 'F':
		return f.sub("%Y-%m-%d", t)
	case 'g':
		y, _ := t.ISOWeek()
		return num(floorMod(y, 100), 2, '0')
	case 'G':
		y, _ := t.ISOWeek()
		return num(y, 4, '0')
	case 'H':
		return num(t.Hour(), 2, '0')
	case 'I':
		return num(hour12, 2, '0')
	case 'j':
		return num(t.YearDay(), 3, '0')
	case 'k':
		return num(t.Hour(), 2, ' ')
	case 'l':
		return num(hour12, 2, ' ')
	case 'm':
		return num(int(t.Month()), 2, '0')
	case 'M':
		return num(t.Minute(), 2, '0')
	case 'N':
		return f.nanoseconds(t), true
	case 'q':
		return num((int(t.Month())-1)/3+1, 1, '0')
	case 'r':
		return f.sub("%I:%M:%S %p", t)
	case 'R':
		return f.sub("%H:%M", t)
	case 's':
		return f.number(t.Unix(), 1, '0'), true
	case 'S':
		return num(t.Second(), 2, '0')
	case 'T', 'X':
		return f.sub("%H:%M:%S", t)
	case 'u':
		return num((int(t.Weekday())+6)%7+1, 1, '0')
	case 'U':
		return num((t.YearDay()-1+7-int(t.Weekday()))/7, 2, '0')
	case 'V':
		_, w := t.ISOWeek()
		return num(w, 2, '0')
	case 'w':
		return num(int(t.Weekday()), 1, '0')
	case 'W':
		return num((t.YearDay()-1+7-(int(t.Weekday())+6)%7)/7, 2, '0')
	case 'y':
		return num(floorMod(t.Year(), 100), 2, '0')
	case 'Y':
		return num(t.Year(), 4, '0')
	case 'z':
		return f.zone(t)
	}
	return "", false
}

// name is a conversion that yields a word.
func (f *field) name(c byte, t time.Time) string {
	s := ""
	switch c {
	case 'a':
		s = t.Weekday().String()[:3]
	case 'A':
		s = t.Weekday().String()
	case 'b', 'h':
		s = t.Month().String()[:3]
	case 'B':
		s = t.Month().String()
	case 'p':
		s = t.Format("PM")
		if f.swap {
			s = strings.ToLower(s)
		}
	case 'P':
		s = t.Format("pm")
	case 'Z':
		s, _ = t.Zone()
		if f.swap {
			s = strings.ToLower(s)
		}
	}
	if f.swap && strings.IndexByte("aAbBh", c) >= 0 {
		s = strings.ToUpper(s)
	}
	return f.text(s)
}

// nanoseconds is %N: nine digits, or as many as the width says.
func (f *field) nanoseconds(t time.Time) string {
	s := fmt.Sprintf("%09d", t.Nanosecond())
	if f.width > 0 && f.width < 9 {
		s = s[:f.width]
	}
	switch f.pad {
	case '_':
		trimmed := strings.TrimRight(s, "0")
		if trimmed == "" {
			trimmed = "0"
		}
		s = trimmed + strings.Repeat(" ", len(s)-len(trimmed))
	}
	if f.width > len(s) && f.pad != '-' {
		s += strings.Repeat("0", f.width-len(s))
	}
	return s
}

// zone is %z, %:z, %::z or %:::z.
func (f *field) zone(t time.Time) (string, bool) {
	_, off := t.Zone()
	sign := "+"
	if off < 0 {
		sign, off = "-", -off
	}
	h, m, s := off/3600, off/60%60, off%60
	rest := ""
	switch {
	case f.colons == 0: // hhmm is one number
		plain := *f
		plain.width = max(f.width, 5) - 1
		digits := plain.number(int64(h*100+m), 4, '0')
		if trimmed := strings.TrimLeft(digits, " "); f.pad == '_' {
			return digits[:len(digits)-len(trimmed)] + sign + trimmed, true
		}
		return sign + digits, true
	case f.colons == 1:
		rest = fmt.Sprintf(":%02d", m)
	case f.colons == 2:
		rest = fmt.Sprintf(":%02d:%02d", m, s)
	case f.colons == 3:
		if s != 0 {
			rest = fmt.Sprintf(":%02d:%02d", m, s)
		} else if m != 0 {
			rest = fmt.Sprintf(":%02d", m)
		}
	default:
		return "", false
	}
	hours := fmt.Sprintf("%02d", h)
	switch f.pad {
	case '-':
		hours = strconv.Itoa(h)
	case '_':
		hours = strconv.Itoa(h)
		return strings.Repeat(" ", max(f.width, 3+len(rest))-1-len(hours)-len(rest)) + sign + hours + rest, true
	}
	if n := f.width - 1 - len(hours) - len(rest); n > 0 {
		hours = strings.Repeat("0", n) + hours
	}
	return sign + hours + rest, true
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func floorMod(a, b int) int { return a - floorDiv(a, b)*b }
