package pager

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
)

// rawKeys makes a terminal give out keys as they are pressed, without echo; restore takes that back.
func rawKeys(t *tool.T, fd int) (restore func()) {
	old, err := t.Termios(fd)
	if err != nil {
		return func() {}
	}
	raw := old
	raw.Lflag &^= proc.ICANON | proc.ECHO
	raw.Cc[proc.VMIN], raw.Cc[proc.VTIME] = 1, 0
	t.SetTermios(fd, raw, proc.SetNow)
	return func() { t.SetTermios(fd, old, proc.SetNow) }
}

// cells renders a line for the screen: tabs widened, control characters as ^X, in rows of the screen's width. With -S
// there is one row, from column left on.
func (l *less) cells(line string, n int) []string {
	prefix := ""
	if l.o.numbers {
		prefix = fmt.Sprintf("%7d ", n+1)
	}
	width := max(l.cols-len(prefix), 1)
	var rows []string
	var row strings.Builder
	col, at := 0, 0
	flush := func() {
		rows = append(rows, prefix+row.String())
		row.Reset()
		col = 0
		if prefix != "" {
			prefix = strings.Repeat(" ", len(prefix))
		}
	}
	put := func(text string, w int) {
		if l.o.chop {
			if at >= l.left && col+w <= width {
				row.WriteString(text)
				col += w
			}
			at += w
			return
		}
		if col+w > width {
			flush()
		}
		row.WriteString(text)
		col += w
	}
	hits := l.hits(line)
	for i := 0; i < len(line); {
		if esc := l.escape(line[i:]); esc > 0 {
			row.WriteString(line[i : i+esc])
			i += esc
			continue
		}
		r, size := utf8.DecodeRuneInString(line[i:])
		text, w := line[i:i+size], tool.RuneWidth(r)
		switch {
		case r == '\t':
			w = l.o.tab - (col+at)%l.o.tab
			text = strings.Repeat(" ", w)
		case r == '\b' && i > 0:
			text, w = "", 0
		case r == utf8.RuneError && size == 1:
			text = fmt.Sprintf("<%02X>", line[i])
			w = 4
			text = "\x1b[7m" + text + "\x1b[27m"
		case r < 32 || r == 127:
			text, w = "\x1b[7m^"+string(r^0x40)+"\x1b[27m", 2
		case r < 0xa0 && r > 127 || !tool.Printable(r):
			text = fmt.Sprintf("<U+%04X>", r)
			w = len(text)
		}
		if hits != nil && hits[i] && w > 0 {
			text = "\x1b[7m" + text + "\x1b[27m"
		}
		put(text, max(w, 0))
		i += size
	}
	flush()
	return rows
}

// hits marks the bytes that the search matches.
func (l *less) hits(line string) map[int]bool {
	if l.search == nil || l.invert {
		return nil
	}
	list, err := l.search.FindAll([]byte(line), 1000)
	if err != nil || len(list) == 0 {
		return nil
	}
	marked := map[int]bool{}
	for _, m := range list {
		for i := m[0]; i < m[1]; i++ {
			marked[i] = true
		}
	}
	return marked
}

// escape returns the length of an escape sequence that may pass: colours with -R, any with -r.
func (l *less) escape(s string) int {
	if s[0] != 27 || !l.o.color && !l.o.raw {
		return 0
	}
	if len(s) < 2 || s[1] != '[' {
		if l.o.raw {
			return 1
		}
		return 0
	}
	for i := 2; i < len(s) && i < 64; i++ {
		if s[i] >= 0x40 && s[i] <= 0x7e {
			if s[i] == 'm' || s[i] == 'K' || l.o.raw {
				return i + 1
			}
			return 0
		}
		if s[i] < 0x20 || s[i] > 0x3f {
			return 0
		}
	}
	return 0
}

// page collects the rows of a screen from the top on; end says that the file ends in it.
func (l *less) page() (rows []string, end bool) {
	height := l.rows - 1
	blank := false
	for n := l.top; len(rows) < height; n++ {
		if !l.src.have(n) {
			return rows, true
		}
		line := l.src.lines[n]
		if l.o.squeeze && strings.TrimSpace(line) == "" {
			if blank {
				continue
			}
			blank = true
		} else {
			blank = false
		}
		list := l.cells(line, n)
		if n == l.top {
			list = list[min(l.skip, len(list)-1):]
		}
		rows = append(rows, list...)
	}
	last := l.top + len(rows)
	if len(rows) > height {
		rows = rows[:height]
		return rows, false
	}
	return rows, !l.src.have(last)
}

// draw shows the screen, and the prompt in its last row.
func (l *less) draw() bool {
	out := l.t.Out
	rows, end := l.page()
	out.WriteString("\x1b[H\x1b[J")
	for _, r := range rows {
		out.WriteString(r + "\x1b[m\r\n")
	}
	for i := len(rows); i < l.rows-1; i++ {
		out.WriteString("~\r\n")
	}
	l.prompt(end)
	out.Flush()
	return end
}

func (l *less) prompt(end bool) {
	text := ":"
	switch {
	case l.notice != "":
		text = l.notice + "  (press RETURN)"
		l.notice = ""
	case l.more:
		text = "--More--"
		if l.src.done && len(l.src.lines) > 0 {
			text = fmt.Sprintf("--More--(%d%%)", min(100, 100*(l.top+l.rows-1)/len(l.src.lines)))
		}
	case end && l.current+1 < len(l.files):
		text = "(END) - Next: " + l.files[l.current+1]
	case end:
		text = "(END)"
	case l.o.longPrompt:
		text = fmt.Sprintf("%s lines %d-%d", l.src.name, l.top+1, l.top+l.rows-1)
	case l.top == 0 && l.src.name != "-":
		text = l.src.name
	}
	if r := []rune(text); len(r) > l.cols-1 {
		text = string(r[:l.cols-1])
	}
	if text == ":" {
		l.t.Out.WriteString(text)
		return
	}
	l.t.Out.WriteString("\x1b[7m" + text + "\x1b[27m")
}
