package text

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

func base64Text(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func base64Bytes(s string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.TrimSpace(s))
}

func chmod(f vfs.File, mode uint32) error {
	m := vfs.Mode(mode)
	return f.SetAttr(vfs.SetAttr{Mode: &m})
}

func (c *lineConverter) touch(name string, atime, mtime time.Time) {
	c.t.SetAttr(name, vfs.SetAttr{Atime: &atime, Mtime: &mtime}, true)
}

const keyReform = tool.KeyOwn + 10

var calSpec = tool.Spec{Usage: []string{"[options] [[[day] month] year]", "[options] <timestamp|monthname>"}, About: "\nDisplay a calendar, or some part of it.", Package: utilLinux, Options: []getopt.Option{
	{Short: '1', Long: "one", Help: "show only a single month (default)"}, {Short: '3', Long: "three", Help: "show three months spanning the date"}, {Short: 'n', Long: "months", Arg: getopt.Required, Name: "num", Help: "show num months starting with date's month"}, {Short: 'S', Long: "span", Help: "span the date when displaying multiple months"},
	{Short: 's', Long: "sunday", Help: "Sunday as first day of week"}, {Short: 'm', Long: "monday", Help: "Monday as first day of week"}, {Short: 'j', Long: "julian", Help: "use day-of-year for all calendars"}, {Long: "reform", Key: keyReform, Arg: getopt.Required, Name: "val", Help: "Gregorian reform date (1752|gregorian|iso|julian)"},
	{Short: 'y', Long: "year", Help: "show the whole year"}, {Short: 'Y', Long: "twelve", Help: "show the next twelve months"}, {Short: 'w', Long: "week", Arg: getopt.Optional, Name: "num", Help: "show US or ISO-8601 week numbers"}, {Short: 'v', Long: "vertical", Help: "show day vertically instead of line"},
	{Long: "color", Key: 'C', Arg: getopt.Optional}, {Short: 'h'}, {Short: 'A', Arg: getopt.Required}, {Short: 'B', Arg: getopt.Required},
}}

// cal is a running cal.
type cal struct {
	t            *tool.T
	monday       bool
	julian       bool
	reform       bool // the calendar changed in September 1752
	across       int
	year, month  int // where it begins
	count        int
	marked       time.Time
	color, whole bool
}

func calendar(t *tool.T, now time.Time) int {
	c := &cal{t: t, across: 3, count: 1, year: now.Year(), month: int(now.Month()), reform: true}
	opts, args := t.Parse(&calSpec)
	before, day := 0, 0
	for _, o := range opts {
		switch o.Key {
		case '3':
			before, c.count = 1, 3
		case 'n':
			n, err := strconv.Atoi(o.Arg)
			if err != nil || n < 1 || n > 12000 {
				t.Fatal(1, "invalid month argument: '%s'", o.Arg)
			}
			c.count = n
		case 'm':
			c.monday = true
		case 's':
			c.monday = false
		case 'j':
			c.julian = true
		case 'y':
			c.whole = true
		case 'Y':
			c.count = 12
		case keyReform:
			c.reform = o.Arg == "1752"
		}
	}
	switch len(args) {
	case 0:
	case 1:
		if m, ok := monthNamed(args[0]); ok {
			c.month = m
		} else {
			c.year, c.whole = c.number(args[0], 1, 9999, "illegal year value: use 1-9999"), true
		}
	case 3:
		day = c.number(args[0], 1, 31, "illegal day value: use 1-31")
		args = args[1:]
		fallthrough
	case 2:
		m, ok := monthNamed(args[0])
		if !ok {
			if m = c.number(args[0], 0, 1<<30, "illegal month value: use 1-12"); m < 1 || m > 12 {
				t.Fatal(1, "illegal month value: use 1-12")
			}
		}
		c.month, c.year = m, c.number(args[1], 1, 9999, "illegal year value: use 1-9999")
		if day > 0 && day > daysIn(c.year, c.month) {
			t.Fatal(1, "illegal day value: use 1-%d", daysIn(c.year, c.month))
		}
	default:
		t.Warn("bad usage")
		t.Try(1)
	}
	if t.IsTerminal(1) {
		c.color, c.marked = true, now
	}
	if c.whole {
		c.month, c.count, before = 1, 12, 0
		if c.julian {
			c.across = 2
		}
	}
	c.month -= before
	c.print()
	return 0
}

func (c *cal) number(s string, low, high int, complaint string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		c.t.Fatal(1, "failed to parse timestamp or unknown month name: %s", s)
	}
	if n < low || n > high {
		c.t.Fatal(1, "%s", complaint)
	}
	return n
}

// monthNamed reads a month's name, or its first three letters.
func monthNamed(s string) (int, bool) {
	for m := 1; m <= 12; m++ {
		name := time.Month(m).String()
		if strings.EqualFold(s, name) || strings.EqualFold(s, name[:3]) {
			return m, true
		}
	}
	return 0, false
}

func leap(y int) bool { return y%4 == 0 && (y <= 1752 || y%100 != 0 || y%400 == 0) }

func daysIn(y, m int) int {
	if m == 2 && leap(y) {
		return 29
	}
	return [12]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[m-1]
}

// first is the weekday of a month's first day, by the calendar of its time.
func (c *cal) first(y, m int) int {
	if !c.reform || y > 1752 || y == 1752 && m > 9 {
		return weekday(y, m, 1)
	}
	// Days since 1 January of the year 1, a Saturday, in the Julian calendar.
	n := (y-1)*365 + (y-1)/4
	for i := 1; i < m; i++ {
		n += daysIn(y, i)
	}
	return (n + 6) % 7
}

// days are the numbers that a month has; September 1752 lacks eleven.
func (c *cal) days(y, m int) (list []int) {
	for d := 1; d <= daysIn(y, m); d++ {
		if c.reform && y == 1752 && m == 9 && d > 2 && d < 14 {
			continue
		}
		list = append(list, d)
	}
	return list
}

// lines are a month's six weeks, with its title and the weekdays.
func (c *cal) lines(y, m int) []string {
	wide := 2
	if c.julian {
		wide = 3
	}
	width := 7*wide + 6
	title := time.Month(m).String()
	if !c.whole {
		title += " " + strconv.Itoa(y)
	}
	names := []string{"Su", "Mo", "Tu", "We", "Th", "Fr", "Sa"}
	start := c.first(y, m)
	if c.monday {
		names = append(names[1:], "Su")
		start = (start + 6) % 7
	}
	for i := range names {
		names[i] = fmt.Sprintf("%*s", wide, names[i])
	}
	left := (width - len(title)) / 2
	out := []string{fmt.Sprintf("%-*s", width, strings.Repeat(" ", left)+title), strings.Join(names, " ")}
	yearDay := 0
	for i := 1; i < m; i++ {
		yearDay += len(c.days(y, i))
	}
	cells := make([]string, start, 42)
	for i := range cells {
		cells[i] = strings.Repeat(" ", wide)
	}
	for i, d := range c.days(y, m) {
		n := d
		if c.julian {
			n = yearDay + i + 1
		}
		cell := fmt.Sprintf("%*d", wide, n)
		if c.color && c.marked.Year() == y && int(c.marked.Month()) == m && c.marked.Day() == d {
			cell = strings.Repeat(" ", wide-len(strconv.Itoa(n))) + "\x1b[7m" + strconv.Itoa(n) + "\x1b[0m"
		}
		cells = append(cells, cell)
	}
	for len(cells) < 42 {
		cells = append(cells, strings.Repeat(" ", wide))
	}
	for w := range 6 {
		out = append(out, strings.Join(cells[w*7:w*7+7], " "))
	}
	return out
}

func (c *cal) print() {
	type month struct{ y, m int }
	var list []month
	for i := range c.count {
		at := c.year*12 + c.month - 1 + i
		list = append(list, month{at / 12, at%12 + 1})
	}
	gap := "  "
	if c.whole {
		gap = "   "
		wide := 2
		if c.julian {
			wide = 3
		}
		width := c.across*(7*wide+6) + (c.across-1)*len(gap)
		title := strconv.Itoa(c.year)
		line := strings.Repeat(" ", (width-len(title))/2) + title
		fmt.Fprintf(c.t.Out, "%-*s\n\n", width, line)
	}
	for len(list) > 0 {
		n := min(c.across, len(list))
		var columns [][]string
		for _, m := range list[:n] {
			columns = append(columns, c.lines(m.y, m.m))
		}
		for i := range columns[0] {
			row := make([]string, n)
			for k := range columns {
				row[k] = columns[k][i]
			}
			c.t.Out.WriteString(strings.Join(row, gap) + "\n")
		}
		list = list[n:]
	}
}
