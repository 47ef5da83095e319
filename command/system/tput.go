package system

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/command/tool"
)

// capabilities are those of terminals like xterm that scripts ask for, in terminfo's notation.
var capabilities = map[string]string{
	"bold": `\E[1m`, "sgr0": `\E(B\E[m`, "dim": `\E[2m`, "smul": `\E[4m`, "rmul": `\E[24m`, "rev": `\E[7m`, "blink": `\E[5m`, "invis": `\E[8m`, "sitm": `\E[3m`, "ritm": `\E[23m`, "smso": `\E[7m`, "rmso": `\E[27m`,
	"setaf": `\E[%?%p1%{8}%<%t3%p1%d%e%p1%{16}%<%t9%p1%{8}%-%d%e38;5;%p1%d%;m`, "setab": `\E[%?%p1%{8}%<%t4%p1%d%e%p1%{16}%<%t10%p1%{8}%-%d%e48;5;%p1%d%;m`, "op": `\E[39;49m`, "oc": `\E]104\007`,
	"cup": `\E[%i%p1%d;%p2%dH`, "home": `\E[H`, "hpa": `\E[%i%p1%dG`, "vpa": `\E[%i%p1%dd`, "cub": `\E[%p1%dD`, "cud": `\E[%p1%dB`, "cuf": `\E[%p1%dC`, "cuu": `\E[%p1%dA`, "cub1": `^H`, "cud1": `\n`, "cuf1": `\E[C`, "cuu1": `\E[A`,
	"el": `\E[K`, "el1": `\E[1K`, "ed": `\E[J`, "clear": `\E[H\E[2J`, "ech": `\E[%p1%dX`, "dch": `\E[%p1%dP`, "dch1": `\E[P`, "dl": `\E[%p1%dM`, "dl1": `\E[M`, "ich": `\E[%p1%d@`, "il": `\E[%p1%dL`, "il1": `\E[L`,
	"ind": `\n`, "indn": `\E[%p1%dS`, "ri": `\EM`, "rin": `\E[%p1%dT`, "csr": `\E[%i%p1%d;%p2%dr`, "sc": `\E7`, "rc": `\E8`, "civis": `\E[?25l`, "cnorm": `\E[?12l\E[?25h`, "cvvis": `\E[?12;25h`,
	"smcup": `\E[?1049h\E[22;0;0t`, "rmcup": `\E[?1049l\E[23;0;0t`, "smkx": `\E[?1h\E=`, "rmkx": `\E[?1l\E>`, "smir": `\E[4h`, "rmir": `\E[4l`, "smacs": `\E(0`, "rmacs": `\E(B`, "bel": `^G`, "cr": `\r`, "ht": `^I`, "hts": `\EH`, "tbc": `\E[3g`, "cbt": `\E[Z`,
	"flash": `\E[?5h\E[?5l`, "rs1": `\Ec\E]104\007`, "rs2": `\E[!p\E[?3;4l\E[4l\E>`, "is2": `\E[!p\E[?3;4l\E[4l\E>`, "kbs": `^?`, "kcub1": `\EOD`, "kcud1": `\EOB`, "kcuf1": `\EOC`, "kcuu1": `\EOA`, "khome": `\EOH`, "kend": `\EOF`, "kdch1": `\E[3~`, "kich1": `\E[2~`, "kpp": `\E[5~`, "knp": `\E[6~`,
	"kf1": `\EOP`, "kf2": `\EOQ`, "kf3": `\EOR`, "kf4": `\EOS`, "kf5": `\E[15~`, "kf6": `\E[17~`, "kf7": `\E[18~`, "kf8": `\E[19~`, "kf9": `\E[20~`, "kf10": `\E[21~`, "kf11": `\E[23~`, "kf12": `\E[24~`,
}

// booleans are capabilities that a terminal has or not.
var booleans = map[string]bool{"am": true, "bce": true, "ccc": true, "km": true, "mc5i": true, "mir": true, "msgr": true, "npc": true, "xenl": true, "hc": false, "os": false, "hs": false, "xhp": false, "in": false, "ul": false, "da": false, "db": false, "eo": false, "gn": false, "hz": false, "chts": false, "nxon": false, "xon": false}

// terminal is what is known of a kind of terminal.
type terminal struct {
	name   string
	colors int
	dumb   bool
}

// terminalOf knows the kinds that behave like xterm, and dumb ones.
func terminalOf(name string) (terminal, bool) {
	base, _, _ := strings.Cut(name, "-")
	t := terminal{name: name, colors: 8}
	if strings.HasSuffix(name, "256color") || strings.HasSuffix(name, "direct") {
		t.colors = 256
	}
	switch base {
	case "xterm", "screen", "tmux", "rxvt", "linux", "ansi", "vt220", "cygwin", "putty", "konsole", "gnome", "alacritty", "foot", "kitty", "st", "eterm":
		return t, true
	case "vt100", "vt102", "vt52":
		t.colors = -1
		return t, true
	case "dumb", "unknown":
		t.colors, t.dumb = -1, true
		return t, true
	}
	return t, false
}

// string returns a capability expanded with its parameters.
func (x terminal) string(name string, params []string) (string, bool) {
	s, ok := capabilities[name]
	if x.dumb && name != "bel" && name != "cr" && name != "ind" && name != "cud1" {
		ok = false
	}
	switch {
	case !ok:
		return "", false
	case x.colors < 0 && (name == "setaf" || name == "setab" || name == "op" || name == "oc"):
		return "", false
	case x.colors == 8 && name == "setaf":
		s = `\E[3%p1%dm`
	case x.colors == 8 && name == "setab":
		s = `\E[4%p1%dm`
	}
	if len(params) == 0 {
		return unescapeCap(s), true
	}
	return expandCap(unescapeCap(s), params), true
}

// unescapeCap reads terminfo's escapes.
func unescapeCap(s string) string {
	return strings.NewReplacer(`\E`, "\x1b", `\n`, "\n", `\r`, "\r", `\007`, "\a", `^H`, "\b", `^G`, "\a", `^I`, "\t", `^?`, "\x7f").Replace(s)
}

// expandCap runs the part of terminfo's stack machine that the capabilities above use.
func expandCap(s string, params []string) string {
	var p [9]int
	for i := range p {
		if i < len(params) {
			p[i], _ = strconv.Atoi(params[i])
		}
	}
	var stack []int
	pop := func() int {
		if len(stack) == 0 {
			return 0
		}
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		return n
	}
	truth := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' || i+1 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'i':
			p[0], p[1] = p[0]+1, p[1]+1
		case 'p':
			if i++; i < len(s) && s[i] >= '1' && s[i] <= '9' {
				stack = append(stack, p[s[i]-'1'])
			}
		case 'd':
			b.WriteString(strconv.Itoa(pop()))
		case '{':
			end := strings.IndexByte(s[i:], '}')
			if end < 0 {
				return b.String()
			}
			n, _ := strconv.Atoi(s[i+1 : i+end])
			stack, i = append(stack, n), i+end
		case '<':
			y, x := pop(), pop()
			stack = append(stack, truth(x < y))
		case '-':
			y, x := pop(), pop()
			stack = append(stack, x-y)
		case 't':
			if pop() == 0 {
				i = skipCap(s, i+1, true)
			}
		case 'e':
			i = skipCap(s, i+1, false)
		case '%':
			b.WriteByte('%')
		}
	}
	return b.String()
}

// skipCap goes behind the end of a branch, or behind the else before it; nothing that is used nests.
func skipCap(s string, i int, orElse bool) int {
	for ; i+1 < len(s); i++ {
		if s[i] == '%' && (s[i+1] == ';' || orElse && s[i+1] == 'e') {
			return i + 1
		}
	}
	return len(s)
}

const tputUsage = `Usage: tput [options] [command]

Options:
  -S <<       read commands from standard input
  -T TERM     use this instead of $TERM
  -V          print curses-version
  -x          do not try to clear scrollback

Commands:
  clear       clear the screen
  init        initialize the terminal
  reset       reinitialize the terminal
  capname     unlike clear/init/reset, print value for capability "capname"
`

// Tput prints capabilities of the terminal.
func Tput(t *tool.T) int {
	args, term, lines, keep := t.Args()[1:], t.Getenv("TERM"), false, false
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && len(args[0]) > 1 {
		switch a := args[0]; {
		case a == "-S":
			lines = true
		case a == "-x":
			keep = true
		case a == "-V":
			t.Out.WriteString("ncurses 6.4.20221231\n")
			return 0
		case strings.HasPrefix(a, "-T"):
			if term = a[2:]; term == "" && len(args) > 1 {
				term, args = args[1], args[1:]
			}
		default:
			fmt.Fprintf(t.Stderr(), "tput: invalid option -- '%s'\n%s", a[1:2], tputUsage)
			return 2
		}
		args = args[1:]
	}
	if term == "" {
		fmt.Fprintln(t.Stderr(), "tput: No value for $TERM and no -T specified")
		return 2
	}
	x, ok := terminalOf(term)
	if !ok {
		fmt.Fprintf(t.Stderr(), "tput: unknown terminal %q\n", term)
		return 3
	}
	if !lines {
		if len(args) == 0 {
			t.Out.Flush()
			io.WriteString(t.Stderr(), tputUsage)
			return 2
		}
		return tputOne(t, x, args, keep)
	}
	in := tool.NewLines(t.Stdin(), '\n')
	for line, ok := in.Next(); ok; line, ok = in.Next() {
		if words := strings.Fields(string(line)); len(words) > 0 {
			if status := tputOne(t, x, words, keep); status > 1 {
				return 4
			}
		}
	}
	return 0
}

func tputOne(t *tool.T, x terminal, args []string, keep bool) int {
	name, args := args[0], args[1:]
	rows, cols := screenSize(t)
	numbers := map[string]int{"cols": cols, "lines": rows, "colors": x.colors, "it": 8, "pairs": 1 << 16, "xmc": -1, "ma": -1, "wsl": -1}
	if x.colors == 8 {
		numbers["pairs"] = 64
	} else if x.colors < 0 {
		numbers["pairs"] = -1
	}
	if n, ok := numbers[name]; ok {
		fmt.Fprintln(t.Out, n)
		return 0
	}
	if have, ok := booleans[name]; ok {
		if have && !x.dumb || name == "am" {
			return 0
		}
		return 1
	}
	switch name {
	case "longname":
		t.Out.WriteString(longName(x.name))
		return 0
	case "clear":
		if s, ok := x.string("clear", nil); ok {
			t.Out.WriteString(s)
			if !keep && !strings.HasPrefix(x.name, "vt") {
				t.Out.WriteString("\x1b[3J")
			}
			return 0
		}
		return 1
	case "init", "reset":
		if s, ok := x.string("rs2", nil); ok {
			if name == "reset" {
				first, _ := x.string("rs1", nil)
				s = first + s
			}
			t.Out.WriteString(s)
		}
		return 0
	}
	s, ok := x.string(name, args)
	if !ok {
		if _, known := capabilities[name]; known {
			return 1
		}
		t.Out.Flush()
		fmt.Fprintf(t.Stderr(), "tput: unknown terminfo capability '%s'\n", name)
		return 4
	}
	t.Out.WriteString(s)
	return 0
}

func longName(term string) string {
	switch term {
	case "xterm":
		return "xterm terminal emulator (X Window System)"
	case "xterm-256color":
		return "xterm with 256 colors"
	case "dumb":
		return "80-column dumb tty"
	}
	return term
}

// screenSize is the terminal's size: the kernel's, or LINES and COLUMNS, or 24 and 80.
func screenSize(t *tool.T) (rows, cols int) {
	rows, cols = 24, 80
	for _, fd := range []int{2, 1, 0} {
		if size, err := t.WindowSize(fd); err == nil {
			if size.Rows > 0 {
				rows = int(size.Rows)
			}
			if size.Cols > 0 {
				cols = int(size.Cols)
			}
			break
		}
	}
	if n, err := strconv.Atoi(t.Getenv("LINES")); err == nil && n > 0 {
		rows = n
	}
	if n, err := strconv.Atoi(t.Getenv("COLUMNS")); err == nil && n > 0 {
		cols = n
	}
	return rows, cols
}

// Clear clears the screen.
func Clear(t *tool.T) int {
	term, keep := t.Getenv("TERM"), false
	args := t.Args()[1:]
	for len(args) > 0 {
		switch {
		case args[0] == "-x":
			keep = true
		case args[0] == "-V":
			t.Out.WriteString("ncurses 6.4.20221231\n")
			return 0
		case args[0] == "-T" && len(args) > 1:
			term, args = args[1], args[1:]
		default:
			fmt.Fprint(t.Stderr(), "Usage: clear [options]\n\nOptions:\n  -T TERM     use this instead of $TERM\n  -V          print curses-version\n  -x          do not try to clear scrollback\n")
			return 1
		}
		args = args[1:]
	}
	if term == "" {
		fmt.Fprintln(t.Stderr(), "TERM environment variable not set.")
		return 1
	}
	x, ok := terminalOf(term)
	if !ok {
		fmt.Fprintf(t.Stderr(), "'%s': unknown terminal type.\n", term)
		return 1
	}
	return tputOne(t, x, []string{"clear"}, keep)
}

// Reset sets the terminal as it was when it was new.
func Reset(t *tool.T) int {
	fd := -1
	for _, n := range []int{2, 1, 0} {
		if t.IsTerminal(n) {
			fd = n
		}
	}
	if fd < 0 {
		fmt.Fprintf(t.Stderr(), "%s: standard error: Inappropriate ioctl for device\n", t.Name)
		return 1
	}
	setSane(t, fd)
	fmt.Fprint(t.Stderr(), "\x1bc\x1b[!p\x1b[?3;4l\x1b[4l\x1b>\r")
	t.Sleep(time.Millisecond)
	return 0
}

// Tabs sets the terminal's tabulators.
func Tabs(t *tool.T) int {
	every, list := 8, []int(nil)
	for _, a := range t.Args()[1:] {
		if strings.HasPrefix(a, "-T") || strings.HasPrefix(a, "+m") {
			continue
		}
		a = strings.TrimPrefix(a, "-")
		if preset, ok := map[string]string{"a": "1,10,16,36,72", "a2": "1,10,16,40,72", "c": "1,8,12,16,20,55", "c2": "1,6,10,14,49", "c3": "1,6,10,14,18,22,26,30,34,38,42,46,50,54,58,62,67", "f": "1,7,11,15,19,23", "p": "1,5,9,13,17,21,25,29,33,37,41,45,49,53,57,61", "s": "1,10,55", "u": "1,12,20,44"}[a]; ok {
			a = preset
		}
		if n, err := strconv.Atoi(a); err == nil && n >= 0 && n < 1000 && !strings.Contains(a, ",") {
			every = n
			continue
		}
		for _, w := range strings.Split(a, ",") {
			n, err := strconv.Atoi(strings.TrimPrefix(w, "+"))
			if err != nil || n < 1 {
				t.Fatal(1, "unknown option %q", a)
			}
			if strings.HasPrefix(w, "+") && len(list) > 0 {
				n += list[len(list)-1]
			}
			list = append(list, n)
		}
	}
	_, cols := screenSize(t)
	if list == nil && every > 0 {
		for at := every + 1; at <= cols; at += every {
			list = append(list, at)
		}
	}
	t.Out.WriteString("\r\x1b[3g")
	at := 1
	for _, stop := range list {
		if stop > cols || stop < at {
			continue
		}
		t.Out.WriteString(strings.Repeat(" ", stop-at) + "\x1bH")
		at = stop
	}
	t.Out.WriteString("\r")
	return 0
}
