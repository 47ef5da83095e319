package shell

import (
	"fmt"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

func builtinTimes(sh *Shell, args []string) int {
	if len(args) > 1 && len(args[1]) > 1 && args[1][0] == '-' && args[1] != "--" {
		return sh.badOption("times", args[1][:2], "times")
	}
	text := func(d time.Duration) string { return timeText("%3lR", d) }
	own := sh.p.CPU()
	sh.print(text(own) + " " + text(0) + "\n" + text(max(0, sh.p.Sandbox().Usage().CPU-own)) + " " + text(0) + "\n")
	return 0
}

// timeFrame measures a command for the keyword time.
type timeFrame struct {
	start time.Time
	posix bool
}

func (f *timeFrame) step(sh *Shell) {
	sh.pop()
	real := sh.p.Sandbox().Now().Sub(f.start)
	if f.posix {
		sh.stderr(fmt.Sprintf("real %.2f\nuser 0.00\nsys 0.00\n", real.Seconds()))
		return
	}
	format, ok := sh.get("TIMEFORMAT")
	if !ok {
		format = "\nreal\t%3lR\nuser\t%3lU\nsys\t%3lS"
	}
	if format != "" {
		sh.stderr(timeText(format, real) + "\n")
	}
}

func timeText(format string, real time.Duration) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 >= len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		digits, long := 3, false
		if c := format[i]; c >= '0' && c <= '9' {
			digits = min(int(c-'0'), 6)
			i++
		}
		if i < len(format) && format[i] == 'l' {
			long = true
			i++
		}
		if i >= len(format) {
			break
		}
		d := time.Duration(0)
		switch format[i] {
		case '%':
			b.WriteByte('%')
			continue
		case 'P':
			b.WriteString("0.00")
			continue
		case 'R':
			d = real
		case 'U', 'S':
		default:
			continue
		}
		if long {
			fmt.Fprintf(&b, "%dm%.*fs", int(d.Minutes()), digits, (d % time.Minute).Seconds())
		} else {
			fmt.Fprintf(&b, "%.*f", digits, d.Seconds())
		}
	}
	return b.String()
}

func (sh *Shell) timeClause(c *syntax.TimeClause) {
	sh.push(&timeFrame{start: sh.p.Sandbox().Now(), posix: c.PosixFormat})
	if c.Stmt != nil {
		sh.stmt(c.Stmt)
	}
}
