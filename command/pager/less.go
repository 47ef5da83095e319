package pager

import (
	"fmt"
	"io"
	"strings"
	"syscall"

	"agentrun.dev/command/posixre"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// options of less; capitals of the same letter may mean more.
type options struct {
	numbers, chop, color, raw, oneScreen bool
	noInit, fold, foldAll, squeeze       bool
	quitAtEnd                            int // 1: the second time that the end is reached, 2: the first time
	longPrompt                           bool
	tab                                  int
	start                                []string // commands given by +
	pattern                              string
	follow                               bool
}

// less is a running less or more.
type less struct {
	t       *tool.T
	o       options
	more    bool // behaves as more
	files   []string
	current int
	src     *source
	keys    io.Reader
	rows    int
	cols    int
	top     int // the first line shown
	skip    int // and how many of its screen rows are above
	left    int // columns to the left of the screen, when lines are chopped
	search  *posixre.Regexp
	invert  bool
	back    bool
	notice  string
	ends    int // how often the end was hit
	marks   map[byte]int
	pushed  []byte
}

// source is a file that is read as far as it has been needed.
type source struct {
	name  string
	lines []string
	in    *tool.Lines
	file  *tool.Input
	size  int
	done  bool
}

// maxSource bounds what a pager keeps in memory of a file.
const maxSource = 256 << 20

// have reads until line n is there; it reports whether it is.
func (s *source) have(n int) bool {
	for !s.done && len(s.lines) <= n {
		line, ok := s.in.Next()
		if !ok || s.size > maxSource {
			s.done = true
			break
		}
		s.lines = append(s.lines, string(line))
		s.size += len(line) + 16
	}
	return n < len(s.lines)
}

// Less shows files page by page.
func Less(t *tool.T) int {
	l := &less{t: t, o: options{tab: 8}, marks: map[byte]int{}}
	for _, w := range strings.Fields(t.Getenv("LESS")) {
		if !strings.HasPrefix(w, "-") {
			w = "-" + w
		}
		l.arguments([]string{w})
	}
	if status, done := l.arguments(t.Args()[1:]); done {
		return status
	}
	return l.run()
}

// More shows files page by page, forwards.
func More(t *tool.T) int {
	l := &less{t: t, o: options{tab: 8, quitAtEnd: 2, noInit: true, squeeze: false}, more: true, marks: map[byte]int{}}
	for _, a := range t.Args()[1:] {
		switch {
		case a == "-V" || a == "--version":
			t.Out.WriteString("more from util-linux 2.38.1\n")
			return 0
		case a == "-h" || a == "--help":
			t.Out.WriteString("\nUsage:\n more [options] <file>...\n\nA file perusal filter for CRT viewing.\n")
			return 0
		case a == "-s":
			l.o.squeeze = true
		case strings.HasPrefix(a, "+"):
			l.o.start = append(l.o.start, a[1:])
		case strings.HasPrefix(a, "-") && len(a) > 1:
		default:
			l.files = append(l.files, a)
		}
	}
	if len(l.files) == 0 && t.IsTerminal(0) {
		t.Warn("bad usage")
		t.Try(1)
	}
	return l.run()
}

const lessHelp = `  Commands: q quit, SPACE f forward, b backward, j k ENTER one line, d u half a page, g G first and last line,
  /pattern ?pattern n N search, F follow, = position, :n :p next and previous file, LEFT RIGHT shift, -N -S -i toggle.
`

// arguments reads the command line; done says that there is nothing more to do.
func (l *less) arguments(args []string) (status int, done bool) {
	t := l.t
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			l.files = append(l.files, args[i+1:]...)
			return 0, false
		case a == "--version" || a == "-V":
			t.Out.WriteString("less 590 (POSIX regular expressions)\nThis is AgentRun's own implementation, which behaves like the version above.\n")
			return 0, true
		case a == "--help" || a == "-?":
			t.Out.WriteString(lessHelp)
			return 0, true
		case strings.HasPrefix(a, "+"):
			l.o.start = append(l.o.start, strings.TrimPrefix(a[1:], "+"))
		case strings.HasPrefix(a, "--"):
			name, value, _ := strings.Cut(strings.ToLower(a[2:]), "=")
			long := map[string]string{"line-numbers": "N", "chop-long-lines": "S", "raw-control-chars": "R", "quit-if-one-screen": "F", "no-init": "X", "ignore-case": "i", "squeeze-blank-lines": "s", "quit-at-eof": "e", "quit-on-intr": "K", "no-lessopen": "L", "quiet": "q", "silent": "q", "tabs": "x", "pattern": "p", "prompt": "P", "long-prompt": "m"}
			letter, ok := long[name]
			if !ok {
				fmt.Fprintf(t.Out, "There is no %s option (\"less --help\" for help)\n", a[2:])
				continue
			}
			if strings.HasPrefix(a[2:], strings.ToUpper(name)) && strings.ContainsAny(letter, "ieqm") {
				letter = strings.ToUpper(letter)
			}
			i += l.cluster(letter+value, args[i+1:])
		case strings.HasPrefix(a, "-") && len(a) > 1:
			i += l.cluster(a[1:], args[i+1:])
		default:
			l.files = append(l.files, a)
		}
	}
	return 0, false
}

// cluster reads letters; it returns how many of the following words it took.
func (l *less) cluster(letters string, rest []string) int {
	for i := 0; i < len(letters); i++ {
		o := &l.o
		switch c := letters[i]; c {
		case 'N':
			o.numbers = true
		case 'S':
			o.chop = true
		case 'R':
			o.color = true
		case 'r':
			o.raw = true
		case 'F':
			o.oneScreen = true
		case 'X':
			o.noInit = true
		case 'i':
			o.fold = true
		case 'I':
			o.foldAll = true
		case 's':
			o.squeeze = true
		case 'e':
			o.quitAtEnd = 1
		case 'E':
			o.quitAtEnd = 2
		case 'm', 'M':
			o.longPrompt = true
		case 'x', 'p', 'P', 'b', 'h', 'j', 'k', 'o', 'O', 't', 'T', 'y', 'z', 'D', '#', '"':
			value, took := letters[i+1:], 0
			if value == "" && len(rest) > 0 && c != 'P' {
				value, took = rest[0], 1
			}
			switch c {
			case 'p':
				o.pattern = value
			case 'x':
				n := 0
				if _, err := fmt.Sscanf(value, "%d", &n); err == nil && n > 0 && n < 1000 {
					o.tab = n
				}
			}
			return took
		}
	}
	return 0
}

func (l *less) run() int {
	t := l.t
	if len(l.files) == 0 {
		if t.IsTerminal(0) {
			t.Out.WriteString("Missing filename (\"less --help\" for help)\n")
			return 1
		}
		l.files = []string{"-"}
	}
	size, err := t.WindowSize(1)
	if err != nil {
		return l.copy()
	}
	l.resize(size.Rows, size.Cols)
	tty, err := t.Process.Open("/dev/tty", syscall.O_RDWR, 0)
	if err != nil {
		if !t.IsTerminal(0) {
			return l.copy()
		}
		l.keys = t.Process.Stdin()
		restore := rawKeys(t, 0)
		defer restore()
	} else {
		defer tty.Close()
		l.keys = tty
		restore := rawKeys(t, t.Fd(tty))
		defer restore()
	}
	return l.interact()
}

func (l *less) resize(rows, cols uint16) {
	l.rows, l.cols = int(rows), int(cols)
	if l.rows < 2 {
		l.rows = 24
	}
	if l.cols < 2 {
		l.cols = 80
	}
}

// copy writes the files out, as a pager does that has no terminal.
func (l *less) copy() int {
	t := l.t
	status := 0
	if l.more && !t.IsTerminal(0) && l.files[0] != "-" { // as the original does, which takes it for its first file
		t.Copy(t.Stdin())
	}
	for _, name := range l.files {
		in, at, err := l.open(name)
		if err == nil && at.Mode.IsDir() {
			in.Close()
			if l.more {
				fmt.Fprintf(t.Out, "\n*** %s: directory ***\n\n", name)
			} else {
				fmt.Fprintf(t.Out, "%s is a directory\n", name)
			}
			continue
		}
		if err != nil {
			if l.more {
				t.Warn("cannot open %s: %s", name, tool.Strerror(err))
			} else {
				fmt.Fprintf(t.Out, "%s: %s\n", name, tool.Strerror(err))
			}
			continue
		}
		if l.more && name != "-" {
			fmt.Fprintf(t.Out, "::::::::::::::\n%s\n::::::::::::::\n", name)
		}
		if err := t.Copy(in); err != nil {
			t.WarnFile(name, err)
			status = 1
		}
		in.Close()
	}
	return status
}

func (l *less) open(name string) (*tool.Input, vfs.Attr, error) {
	in, err := l.t.Open(name)
	if err != nil {
		return nil, vfs.Attr{}, err
	}
	at, err := in.Attr()
	if err != nil {
		at = vfs.Attr{}
	}
	return in, at, nil
}

// load begins to show a file; a message takes the place of what can't be read.
func (l *less) load(i int) bool {
	if l.src != nil && l.src.file != nil {
		l.src.file.Close()
	}
	l.current, l.top, l.skip, l.left, l.ends = i, 0, 0, 0, 0
	name := l.files[i]
	in, at, err := l.open(name)
	switch {
	case err != nil:
		l.notice = name + ": " + tool.Strerror(err)
	case at.Mode.IsDir():
		in.Close()
		l.notice = name + " is a directory"
	default:
		l.src = &source{name: name, in: tool.NewLines(in, '\n'), file: in}
		return true
	}
	l.src = &source{name: name, done: true}
	return false
}
