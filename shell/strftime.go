package shell

import (
	"fmt"
	"strings"
	"time"
)

// strftime formats a time as C does in the POSIX locale.
func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 >= len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		pad := byte(0)
		for i < len(format)-1 && strings.IndexByte("-_0^#EO", format[i]) >= 0 {
			pad = format[i]
			i++
		}
		num := func(n, width int, fill byte) {
			switch pad {
			case '-':
				fmt.Fprintf(&b, "%d", n)
				return
			case '_':
				fill = ' '
			case '0':
				fill = '0'
			}
			if fill == ' ' {
				fmt.Fprintf(&b, "%*d", width, n)
			} else {
				fmt.Fprintf(&b, "%0*d", width, n)
			}
		}
		strftimeOne(&b, t, format[i], num)
	}
	return b.String()
}

func strftimeOne(b *strings.Builder, t time.Time, c byte, num func(n, width int, fill byte)) {
	hour12 := (t.Hour()+11)%12 + 1
	isoYear, isoWeek := t.ISOWeek()
	switch c {
	case 'Y':
		num(t.Year(), 1, '0')
	case 'C':
		num(t.Year()/100, 2, '0')
	case 'y':
		num(t.Year()%100, 2, '0')
	case 'm':
		num(int(t.Month()), 2, '0')
	case 'd':
		num(t.Day(), 2, '0')
	case 'e':
		num(t.Day(), 2, ' ')
	case 'H':
		num(t.Hour(), 2, '0')
	case 'I':
		num(hour12, 2, '0')
	case 'k':
		num(t.Hour(), 2, ' ')
	case 'l':
		num(hour12, 2, ' ')
	case 'M':
		num(t.Minute(), 2, '0')
	case 'S':
		num(t.Second(), 2, '0')
	case 'j':
		num(t.YearDay(), 3, '0')
	case 'u':
		num((int(t.Weekday())+6)%7+1, 1, '0')
	case 'w':
		num(int(t.Weekday()), 1, '0')
	case 'V':
		num(isoWeek, 2, '0')
	case 'G':
		num(isoYear, 4, '0')
	case 'g':
		num(isoYear%100, 2, '0')
	case 'U':
		num((t.YearDay()+6-int(t.Weekday()))/7, 2, '0')
	case 'W':
		num((t.YearDay()+6-(int(t.Weekday())+6)%7)/7, 2, '0')
	case 's':
		fmt.Fprintf(b, "%d", t.Unix())
	case 'N':
		fmt.Fprintf(b, "%09d", t.Nanosecond())
	case 'n':
		b.WriteByte('\n')
	case 't':
		b.WriteByte('\t')
	case '%':
		b.WriteByte('%')
	default:
		layout := map[byte]string{'a': "Mon", 'A': "Monday", 'b': "Jan", 'h': "Jan", 'B': "January", 'p': "PM", 'P': "pm", 'Z': "MST", 'z': "-0700",
			'F': "2006-01-02", 'D': "01/02/06", 'x': "01/02/06", 'T': "15:04:05", 'X': "15:04:05", 'R': "15:04", 'r': "03:04:05 PM", 'c': "Mon Jan _2 15:04:05 2006"}[c]
		if layout == "" {
			b.WriteString("%" + string(c))
			return
		}
		b.WriteString(t.Format(layout))
	}
}
