package pager

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/command/posixre"
)

// key reads one key: a byte, or the last byte of an arrow's sequence with 0x80 added. 0 is the end.
func (l *less) key() byte {
	if len(l.pushed) > 0 {
		c := l.pushed[0]
		l.pushed = l.pushed[1:]
		return c
	}
	var b [1]byte
	read := func() byte {
		n, err := l.keys.Read(b[:])
		if n == 0 || err != nil {
			return 0
		}
		return b[0]
	}
	c := read()
	if c != 27 {
		return c
	}
	if c = read(); c != '[' && c != 'O' {
		return c | 0x80
	}
	c = read()
	if c >= '0' && c <= '9' {
		digit := c
		for c >= '0' && c <= '9' || c == ';' {
			c = read()
		}
		return digit | 0x80
	}
	return c | 0x80
}

// ask reads a line at the bottom of the screen; ok is false if it is given up.
func (l *less) ask(prompt string) (string, bool) {
	var text []byte
	for {
		fmt.Fprintf(l.t.Out, "\r\x1b[K%s%s", prompt, text)
		l.t.Out.Flush()
		switch c := l.key(); {
		case c == '\n' || c == '\r':
			return string(text), true
		case c == 0 || c == 3 || c == 27 || c == 7:
			return "", false
		case c == 127 || c == 8:
			if len(text) == 0 {
				return "", false
			}
			text = text[:len(text)-1]
		case c == 21:
			text = text[:0]
		case len(text) < 4096:
			text = append(text, c)
		}
	}
}

// interact shows the files until the user has enough.
func (l *less) interact() int {
	l.load(0)
	if l.o.oneScreen || l.more && len(l.files) == 1 {
		if rows, end := l.page(); end && l.notice == "" && len(rows) < l.rows && len(l.files) == 1 {
			for _, r := range rows {
				l.t.Out.WriteString(r + "\x1b[m\n")
			}
			return 0
		}
	}
	if !l.o.noInit {
		l.t.Out.WriteString("\x1b[?1049h\x1b[22;0;0t\x1b[?1h\x1b=")
	}
	defer func() {
		l.t.Out.WriteString("\r\x1b[K")
		if !l.o.noInit {
			l.t.Out.WriteString("\x1b[?1l\x1b>\x1b[?1049l\x1b[23;0;0t")
		}
		l.t.Out.Flush()
	}()
	if l.o.pattern != "" {
		l.find(l.o.pattern, false, 1)
	}
	for _, s := range l.o.start {
		l.pushed = append(l.pushed, s...)
		if strings.HasPrefix(s, "/") || strings.HasPrefix(s, "?") {
			l.pushed = append(l.pushed, '\n')
		} else if _, err := strconv.Atoi(s); err == nil {
			l.pushed = append(l.pushed, 'g')
		}
	}
	for {
		l.t.Check()
		end := l.draw()
		if end && (l.o.quitAtEnd == 2 || l.more) && l.current+1 == len(l.files) {
			return 0
		}
		if !l.command(end) {
			return 0
		}
		if size, err := l.t.WindowSize(1); err == nil {
			l.resize(size.Rows, size.Cols)
		}
	}
}

// command runs one command; false ends the pager.
func (l *less) command(end bool) bool {
	count, has := 0, false
	c := l.key()
	for c >= '0' && c <= '9' && count < 1<<24 {
		count, has = count*10+int(c-'0'), true
		fmt.Fprintf(l.t.Out, "\r\x1b[K:%d", count)
		l.t.Out.Flush()
		c = l.key()
	}
	n := max(count, 1)
	page := l.rows - 1
	switch c {
	case 0, 'q', 'Q', 3:
		return false
	case ' ', 'f', 6, 22, '6' | 0x80, 'z':
		if has {
			page = count
		}
		return l.forward(page, end)
	case 'j', 'e', 14, '\n', '\r', 'B' | 0x80:
		if l.more && c != 'j' && !has {
			n = 1
		}
		return l.forward(n, end)
	case 'd', 4:
		return l.forward(max(page/2, 1), end)
	case 'b', 2, '5' | 0x80, 'w':
		l.backward(page)
	case 'k', 'y', 16, 25, 'A' | 0x80:
		l.backward(n)
	case 'u', 21:
		l.backward(max(page/2, 1))
	case 'g', '<', 'H' | 0x80, '1' | 0x80:
		l.top, l.skip = max(count-1, 0), 0
		if !l.src.have(l.top) {
			l.bottom()
		}
	case 'G', '>', 'F' | 0x80, '4' | 0x80:
		if l.bottom(); has {
			l.top, l.skip = min(max(count-1, 0), max(len(l.src.lines)-1, 0)), 0
		}
	case 'p', '%':
		l.src.have(1 << 40)
		l.top, l.skip = min(len(l.src.lines)*count/100, max(len(l.src.lines)-1, 0)), 0
	case 'C' | 0x80:
		l.o.chop, l.left = true, l.left+l.cols/2
	case 'D' | 0x80:
		l.left = max(l.left-l.cols/2, 0)
	default:
		return l.special(c, n)
	}
	return true
}

func (l *less) special(c byte, n int) bool {
	switch c {
	case '/', '?':
		if text, ok := l.ask(string(rune(c))); ok {
			l.find(text, c == '?', n)
		}
	case 'n':
		l.again(l.back, n)
	case 'N':
		l.again(!l.back, n)
	case '&':
		if _, ok := l.ask("&/"); ok {
			l.notice = "filters are not supported"
		}
	case 'm':
		l.marks[l.key()] = l.top
	case '\'':
		switch k := l.key(); k {
		case '^':
			l.top = 0
		case '$':
			l.bottom()
		default:
			if at, ok := l.marks[k]; ok {
				l.top, l.skip = at, 0
			}
		}
	case 'F':
		l.follow()
	case '=', 7:
		l.src.have(1 << 40)
		l.notice = fmt.Sprintf("%s lines %d-%d/%d", l.src.name, l.top+1, min(l.top+l.rows-1, len(l.src.lines)), len(l.src.lines))
	case 'h':
		l.t.Out.WriteString("\x1b[H\x1b[J" + strings.ReplaceAll(lessHelp, "\n", "\r\n") + "press a key")
		l.t.Out.Flush()
		l.key()
	case '-':
		l.toggle(l.key())
	case ':':
		return l.colon()
	case 'Z':
		return l.key() != 'Z'
	}
	return true
}

func (l *less) colon() bool {
	l.t.Out.WriteString("\r\x1b[K :")
	l.t.Out.Flush()
	switch l.key() {
	case 'q', 'Q':
		return false
	case 'n':
		if l.current+1 < len(l.files) {
			l.load(l.current + 1)
		} else {
			l.notice = "No next file"
		}
	case 'p':
		if l.current > 0 {
			l.load(l.current - 1)
		} else {
			l.notice = "No previous file"
		}
	case 'x':
		l.load(0)
	case 'f':
		l.special('=', 1)
	}
	return true
}

func (l *less) toggle(c byte) {
	switch c {
	case 'N':
		l.o.numbers = !l.o.numbers
	case 'S':
		l.o.chop, l.left = !l.o.chop, 0
	case 'i':
		l.o.fold = !l.o.fold
	case 'I':
		l.o.foldAll = !l.o.foldAll
	case 's':
		l.o.squeeze = !l.o.squeeze
	case 'R':
		l.o.color = !l.o.color
	case 'r':
		l.o.raw = !l.o.raw
	}
}

// forward goes on by rows; at the end it stays, or goes on to the next file, or quits, as the options say.
func (l *less) forward(n int, end bool) bool {
	if end {
		if l.ends++; l.o.quitAtEnd == 1 && l.ends > 1 && l.current+1 == len(l.files) {
			return false
		}
		if l.more && l.current+1 < len(l.files) {
			l.load(l.current + 1)
		}
		return true
	}
	for range n {
		if _, end := l.page(); end {
			break
		}
		if rows := len(l.cells(l.src.lines[l.top], l.top)); l.skip+1 < rows {
			l.skip++
		} else {
			l.top, l.skip = l.top+1, 0
		}
	}
	return true
}

func (l *less) backward(n int) {
	l.ends = 0
	for range n {
		switch {
		case l.skip > 0:
			l.skip--
		case l.top > 0:
			l.top--
			l.skip = len(l.cells(l.src.lines[l.top], l.top)) - 1
		default:
			return
		}
	}
}

// bottom shows the last page.
func (l *less) bottom() {
	l.src.have(1 << 40)
	l.top, l.skip = len(l.src.lines), 0
	l.backward(l.rows - 1)
}

// find searches for a pattern, from the line after the top on; an empty one is the last one.
func (l *less) find(text string, back bool, n int) {
	l.invert = strings.HasPrefix(text, "!")
	text = strings.TrimPrefix(text, "!")
	if text != "" {
		fold := l.o.foldAll || l.o.fold && strings.ToLower(text) == text
		re, err := posixre.Compile(text, posixre.Options{Flavor: posixre.Extended, Fold: fold})
		if err != nil {
			l.notice = "Invalid pattern"
			return
		}
		l.search = re
	}
	l.back = back
	l.again(back, n)
}

func (l *less) again(back bool, n int) {
	if l.search == nil {
		l.notice = "No previous search pattern"
		return
	}
	step := 1
	if back {
		step = -1
	}
	first := l.top + step
	if l.top == 0 && !back && l.ends == 0 && len(l.pushed) > 0 {
		first = 0
	}
	for at := first; at >= 0 && l.src.have(at); at += step {
		if l.t.Step(1) != nil {
			l.t.Check()
		}
		if hit, err := l.search.Match([]byte(l.src.lines[at])); err == nil && hit != l.invert {
			if n--; n == 0 {
				l.top, l.skip = at, 0
				return
			}
		}
	}
	l.notice = "Pattern not found"
}

// follow shows the end, and what is added to the file, until a key interrupts it.
func (l *less) follow() {
	l.bottom()
	stop := make(chan struct{})
	go func() { // ends with a key
		l.key()
		close(stop)
	}()
	for {
		l.notice = "Waiting for data... (interrupt to abort)"
		l.draw()
		timer := time.NewTimer(500 * time.Millisecond)
		select {
		case <-stop:
			timer.Stop()
			return
		case <-l.t.Interrupt():
			timer.Stop()
			l.t.TakeSignals()
			l.t.Check()
			return
		case <-timer.C:
		}
		l.reload()
	}
}

// reload reads the file again if it has grown.
func (l *less) reload() {
	at, err := l.t.Stat(l.src.name)
	if err != nil || int(at.Size) <= l.src.size-16*len(l.src.lines) {
		return
	}
	name, i := l.src.name, l.current
	if l.load(i); l.src.name == name {
		l.bottom()
	}
}
