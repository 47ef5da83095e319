package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"agentrun.dev/api"
)

// output prints a command's results. Colours and progress are for terminals only.
type output struct {
	a        *app
	colour   bool // the standard output is a terminal that wants them
	progress bool // so is the standard error
}

func newOutput(a *app) *output {
	plain := a.Getenv("NO_COLOR") != "" || a.Getenv("TERM") == "dumb"
	return &output{a: a, colour: isTerminal(a.Stdout) && !plain, progress: isTerminal(a.Stderr) && a.Getenv("TERM") != "dumb"}
}

func isTerminal(f *os.File) bool { return f != nil && term.IsTerminal(int(f.Fd())) }

func (o *output) printf(format string, args ...any) { fmt.Fprintf(o.a.Stdout, format, args...) }

// json prints a value, indented for people.
func (o *output) json(v any) error {
	enc := json.NewEncoder(o.a.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Colours, as SGR parameters.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (o *output) paint(colour, s string) string {
	if !o.colour || s == "" {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

// table is rows of aligned columns; a heading that begins with '>' aligns its column to the right.
type table struct {
	heads []string
	rows  [][]string
}

func newTable(heads ...string) *table { return &table{heads: heads} }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// print prints the table, and nothing at all without rows.
func (o *output) table(t *table) {
	if len(t.rows) == 0 {
		return
	}
	widths := make([]int, len(t.heads))
	for i, h := range t.heads {
		widths[i] = utf8.RuneCountInString(strings.TrimPrefix(h, ">"))
		for _, r := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(r[i]))
		}
	}
	w := bufio.NewWriter(o.a.Stdout)
	defer w.Flush()
	line := func(cells []string, colour string) {
		var b strings.Builder
		for i, c := range cells {
			c = strings.TrimPrefix(c, ">")
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if i > 0 {
				b.WriteString("  ")
			}
			if strings.HasPrefix(t.heads[i], ">") {
				b.WriteString(pad + c)
			} else {
				b.WriteString(c + pad)
			}
		}
		s := strings.TrimRight(b.String(), " ")
		if colour != "" {
			s = o.paint(colour, s)
		}
		fmt.Fprintln(w, s)
	}
	line(t.heads, bold)
	for _, r := range t.rows {
		line(r, "")
	}
}

// size words a number of bytes: exact below 1 KiB, three digits above.
func size(n uint64) string {
	if n < 1024 {
		return strconv.FormatUint(n, 10) + " B"
	}
	f, units := float64(n), "KMGTPE"
	for i := range units {
		f /= 1024
		if f < 1023.95 || i == len(units)-1 {
			prec := 1
			if f >= 99.95 {
				prec = 0
			}
			return strconv.FormatFloat(f, 'f', prec, 64) + " " + units[i:i+1] + "iB"
		}
	}
	return ""
}

// count words a number of things, with thousands set apart: 10,000 objects.
func count(n uint64, one string) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if one == "" {
		return s
	}
	if stem, ok := strings.CutSuffix(one, "y"); n != 1 && ok {
		one = stem + "ies"
	} else if n != 1 {
		one += "s"
	}
	return s + " " + one
}

// moment words a time; zero is "never" in a list of expiries.
func moment(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// printable makes a key safe to print on one line: control characters can't move the cursor, newlines can't fake lines.
func printable(s string) string {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\u2028' || r == '\u202e'
	}) {
		return strconv.Quote(s)
	}
	return s
}

// meter shows on a terminal how far something has come, once it has taken a second.
type meter struct {
	o     *output
	begun time.Time
	mu    sync.Mutex
	shown bool
	last  time.Time
}

func (o *output) meter() *meter { return &meter{o: o, begun: time.Now()} }

func (m *meter) update(p api.Progress) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if !m.o.progress || now.Sub(m.begun) < time.Second || now.Sub(m.last) < 100*time.Millisecond {
		return
	}
	m.shown, m.last = true, now
	text := p.Phase
	if p.Done > 0 || p.Total > 0 {
		text += " " + count(p.Done, "")
	}
	if p.Total > 0 {
		text += fmt.Sprintf(" of %s (%d %%)", count(p.Total, ""), p.Done*100/p.Total)
	}
	fmt.Fprintf(m.o.a.Stderr, "\r\x1b[K%s", text)
}

// done wipes the line.
func (m *meter) done() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shown {
		fmt.Fprint(m.o.a.Stderr, "\r\x1b[K")
		m.shown = false
	}
}
