package shell_test

import (
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentrun.dev/proc"
	"agentrun.dev/shell"
	"agentrun.dev/shell/lineedit"
)

// screen is a terminal of 20 rows: what an interactive shell writes, as a person sees it.
type screen struct {
	mu       sync.Mutex
	rows     [][]rune
	row, col int
	cols     int
	seq      []byte
	raw      []byte
}

func (s *screen) line(n int) {
	for len(s.rows) <= n {
		s.rows = append(s.rows, nil)
	}
}

func (s *screen) put(r rune) {
	if s.col >= s.cols {
		s.row, s.col = s.row+1, 0
	}
	s.line(s.row)
	for len(s.rows[s.row]) <= s.col {
		s.rows[s.row] = append(s.rows[s.row], ' ')
	}
	s.rows[s.row][s.col] = r
	s.col++
	if r >= 0x1100 { // wide
		s.line(s.row)
		s.rows[s.row] = append(s.rows[s.row][:s.col], 0)
		s.col++
	}
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw = append(s.raw, b...)
	for _, r := range string(b) {
		if len(s.seq) > 0 {
			s.seq = append(s.seq, byte(r))
			if len(s.seq) == 2 && r != '[' {
				s.seq = nil
			} else if len(s.seq) > 2 && r >= 0x40 {
				s.csi(string(s.seq[2:len(s.seq)-1]), r)
				s.seq = nil
			}
			continue
		}
		switch r {
		case 0x1b:
			s.seq = []byte{0x1b}
		case '\r':
			s.col = 0
		case '\n':
			s.row++
			s.line(s.row)
		case '\b':
			s.col = max(0, s.col-1)
		case '\a':
		default:
			s.put(r)
		}
	}
	return len(b), nil
}

func (s *screen) csi(arg string, c rune) {
	n, err := strconv.Atoi(arg)
	if err != nil {
		n = 1
	}
	s.line(s.row)
	switch c {
	case 'A':
		s.row = max(0, s.row-n)
	case 'B':
		s.row += n
	case 'C':
		s.col += n
	case 'K', 'J':
		if arg == "2" {
			s.rows = nil
			return
		}
		s.rows[s.row] = s.rows[s.row][:min(s.col, len(s.rows[s.row]))]
		if c == 'J' {
			s.rows = s.rows[:s.row+1]
		}
	case 'H':
		s.row, s.col = 0, 0
	}
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, r := range s.rows {
		out = append(out, strings.TrimRight(strings.ReplaceAll(string(r), "\x00", ""), " "))
	}
	return strings.TrimRight(strings.Join(out, "\n"), "\n")
}

// session is an interactive shell on a terminal.
type session struct {
	t    testing.TB
	w    *world
	tty  *proc.TTY
	scr  *screen
	p    *proc.Process
	done chan struct{}
}

func newSession(t testing.TB, env ...string) *session {
	t.Helper()
	w := newWorld(t)
	tty, err := w.s.NewTTY(proc.WinSize{Cols: 40, Rows: 20}, 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := w.s.NewProcess(proc.Root{Args: []string{"bash", "--norc"}, Env: append([]string{"PATH=/bin", "TERM=xterm", "HOME=/tmp", "PS1=$ ", "TZ=UTC0"}, env...), Dir: "/tmp", TTY: tty})
	if err != nil {
		t.Fatal(err)
	}
	s := &session{t: t, w: w, tty: tty, scr: &screen{cols: 40}, p: p, done: make(chan struct{})}
	go s.show(tty)
	p.Start(shell.New(false))
	t.Cleanup(func() {
		w.close(t)
		tty.Hangup()
		<-s.done
	})
	return s
}

func (s *session) show(tty *proc.TTY) {
	defer close(s.done)
	io.Copy(s.scr, tty)
}

// keys types, and waits until the screen ends with what is wanted.
func (s *session) keys(keys, want string) {
	s.t.Helper()
	if _, err := s.tty.Write([]byte(keys)); err != nil {
		s.t.Fatal(err)
	}
	s.wait(want)
}

func (s *session) wait(want string) {
	s.t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if strings.HasSuffix(s.scr.String(), want) {
			return
		}
	}
	s.t.Fatalf("the screen is\n%s\nwanted at its end:\n%s", s.scr, want)
}

// transcripts are keys and what the screen then ends with.
var transcripts = []struct {
	name  string
	env   []string
	steps [][2]string
}{
	{"a command", nil, [][2]string{{"", "$"}, {"echo hi\r", "$ echo hi\nhi\n$"}}},
	{"editing", nil, [][2]string{{"", "$"}, {"echo abc\x02\x02X\x01# \x05!", "$ # echo aXbc!"}, {"\x15echo one two\x17\x17\x19\r", "$ echo one two\none two\n$"}}},
	{"erase", nil, [][2]string{{"", "$"}, {"echo xy\x7f\x7fz\r", "$ echo z\nz\n$"}}},
	{"words", nil, [][2]string{{"", "$"}, {"echo foo bar baz\x1bb\x1bb\x1bu\x1bd\r", "$ echo foo BAR\nfoo BAR\n$"}}},
	{"undo", nil, [][2]string{{"", "$"}, {"echo a b\x17\x1f\r", "$ echo a b\na b\n$"}}},
	{"transpose", nil, [][2]string{{"", "$"}, {"echo ab\x14\r", "$ echo ba\nba\n$"}}},
	{"quoted insert", nil, [][2]string{{"", "$"}, {"echo '\x16\x01'", "$ echo '^A'"}}},
	{"digit arguments", nil, [][2]string{{"", "$"}, {"echo \x1b5x\r", "$ echo xxxxx\nxxxxx\n$"}}},
	{"history", nil, [][2]string{{"", "$"}, {"echo 1\recho 2\r", "2\n$"}, {"\x1b[A\x1b[A", "$ echo 1"}, {"\x1b[B", "$ echo 2"}, {"\r", "2\n$"}, {"history 2\r", "    3  echo 2\n    4  history 2\n$"}}},
	{"reverse search", nil, [][2]string{{"", "$"}, {"echo one\recho two\r", "two\n$"}, {"\x12on", "(reverse-i-search)`on': echo one"}, {"\r", "$ echo one\none\n$"}, {"\x12zzz", "(failed reverse-i-search)`zzz':"}, {"\x07", "$"}}},
	{"last argument", nil, [][2]string{{"", "$"}, {"echo a b1\r", "$"}, {"echo \x1b.\r", "$ echo b1\nb1\n$"}}},
	{"history expansion", nil, [][2]string{{"", "$"}, {"echo a b\r", "a b\n$"}, {"echo !$ x\r", "$ echo !$ x\necho b x\nb x\n$"}, {"!nosuch\r", "bash: !nosuch: event not found\n$"}}},
	{"more lines", nil, [][2]string{{"", "$"}, {"for i in 1 2\rdo echo $i\rdone\r", "$ for i in 1 2\n> do echo $i\n> done\n1\n2\n$"}, {"\x10", "$ for i in 1 2; do echo $i; done"}}},
	{"wrapping", nil, [][2]string{{"", "$"}, {"echo 0123456789012345678901234567890123456789", "$ echo 012345678901234567890123456789012\n3456789"}, {"\x01: ", "$ : echo 0123456789012345678901234567890\n123456789"}}},
	{"wide characters", nil, [][2]string{{"", "$"}, {"echo 日本é\x7fx\x02\x02\x7fy\r", "$ echo y本x\ny本x\n$"}}},
	{"paste", nil, [][2]string{{"", "$"}, {"\x1b[200~echo a\necho b\x1b[201~", "$ echo a\necho b"}, {"\r", "$ echo a\necho b\na\nb\n$"}}},
	{"interrupt", nil, [][2]string{{"", "$"}, {"echo no", "$ echo no"}, {"\x03", "$ echo no^C\n$"}, {"echo $?\r", "$ echo $?\n130\n$"}}},
	{"interrupt of a loop", nil, [][2]string{{"", "$"}, {"while :; do :; done\r\x03", "$"}, {"echo $?\r", "130\n$"}}},
	{"end", nil, [][2]string{{"", "$"}, {"\x04", "$\nexit"}}},
	{"ignoreeof", []string{"IGNOREEOF=1"}, [][2]string{{"", "$"}, {"\x04", "Use \"exit\" to leave the shell.\n$"}, {"\x04", "exit"}}},
	{"completion of a file", nil, [][2]string{{"", "$"}, {"mkdir 'a b'; > xyz1; > xyz2; > .hid\r", "$"}, {"echo a\t", `$ echo a\ b/`}, {"\x15echo xy\t", "$ echo xyz"}, {"\t\t", "xyz1  xyz2\n$ echo xyz"}, {"1\t|\r", "$ echo xyz1 |\n>"}}},
	{"completion of names", nil, [][2]string{{"", "$"}, {"MYVAR=1\r", "$"}, {"echo $MYV\t\r", "$ echo $MYVAR\n1\n$"}, {"histor\t", "$ history"}}},
	{"programmed completion", nil, [][2]string{{"", "$"}, {"complete -W 'alpha beta' cmd\r", "$"}, {"cmd al\t", "$ cmd alpha"}, {"\x15f() { COMPREPLY=(\"<$2,$3,$COMP_CWORD>\"); }; complete -F f g\r", "$"}, {"g a b\t", "$ g a <b,a,2>"}}},
	{"prompts", []string{`PS1=\u:\W\$ `, "USER=me", "PROMPT_COMMAND=x=$((x+1))"}, [][2]string{{"", "me:~#"}, {"echo $x\r", "1\nme:~#"}, {"PS1='$(echo sub)> '\r", "sub>"}, {"PS1='a\\nb '\r", "a\nb"}}},
	{"prompt commands keep the status", []string{"PROMPT_COMMAND=true"}, [][2]string{{"", "$"}, {"false\r", "$"}, {"echo $?\r", "1\n$"}}},
	{"PS0", []string{"PS0=<run>"}, [][2]string{{"", "$"}, {"echo\r", "$ echo\n<run>\n$"}}},
	{"bind", nil, [][2]string{{"", "$"}, {"bind '\"\\C-x1\": \"echo mac\"'; bind -x '\"\\C-x2\": READLINE_LINE=\"[$READLINE_LINE]\"'\r", "$"}, {"\x181", "$ echo mac"}, {"\x182", "$ [echo mac]"}}},
	{"vi", nil, [][2]string{{"", "$"}, {"set -o vi\r", "$"}, {"echo foo bar\x1bbcwqux\x1b0wx\r", "$ echo oo qux\noo qux\n$"}, {"echo a,b\x1bF,r;\r", "$"}, {"\x1bkdd", "$"}}},
	{"comments and syntax errors", nil, [][2]string{{"", "$"}, {"# c\r)\recho on\r", "bash: syntax error near unexpected token\n `)'\n$ echo on\non\n$"}}},
	{"dumb terminal", []string{"TERM=dumb"}, [][2]string{{"", "$"}, {"echo ab\x7fc\r", "$ echo ac\nac\n$"}, {"x\x03", "^C\n$"}, {"\x04", "exit"}}},
	{"fc", nil, [][2]string{{"", "$"}, {"echo one\rfc -s one=two\r", "echo two\ntwo\n$"}, {"fc -l\r", "1\t echo one\n2\t echo two\n$"}}},
	{"read without echo", nil, [][2]string{{"", "$"}, {"read -s -p 'pw? ' x\r", "pw?"}, {"secret\r", "$"}, {"echo \"<$x>\"\r", "<secret>\n$"}}},
	{"read of a character", nil, [][2]string{{"", "$"}, {"read -n 1 x\r", "$ read -n 1 x"}, {"y", "y$"}, {"echo $x\r", "y\n$"}}},
	{"unfinished quote", nil, [][2]string{{"", "$"}, {"echo 'a\rb'\r", "$ echo 'a\n> b'\na\nb\n$"}}},
	{"searching for a beginning", nil, [][2]string{{"", "$"}, {"echo aa\r: b\recho cc\r", "cc\n$"}, {"echo\x1b[5~", "$ echo cc"}, {"\x1b[5~", "$ echo aa"}}},
}

func TestInteractive(t *testing.T) {
	for _, tc := range transcripts {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t, tc.env...)
			for _, step := range tc.steps {
				s.keys(step[0], step[1])
			}
		})
	}
}

// Keys and variables of ~/.inputrc count, as far as their conditions hold.
func TestInputrc(t *testing.T) {
	s := newSession(t)
	s.keys("echo '$if mode=vi\n\"\\C-xa\": \"no\"\n$else\n\"\\C-xa\": \"yes\"\n$endif\nset show-all-if-ambiguous on' > .inputrc\r", "$")
	s.keys("> u1; > u2; bash --norc\r", "$")
	s.keys("echo \x18a\r", "$ echo yes\nyes\n$")
	s.keys("ls u\t", "u1  u2\n$ ls u")
}

// A terminal's new width is that of the line, and of COLUMNS.
func TestResize(t *testing.T) {
	s := newSession(t)
	s.wait("$")
	s.keys("echo 012345678901234567890", "$ echo 012345678901234567890")
	s.tty.Resize(proc.WinSize{Cols: 20, Rows: 20})
	s.keys("\x15echo $COLUMNS $LINES\r", "20 20\n$")
}

// History is read from HISTFILE and written to it at the end.
func TestHistoryFile(t *testing.T) {
	s := newSession(t, "HISTFILE=/tmp/h")
	s.keys("echo a\recho b\r", "b\n$")
	s.keys("bash --norc\r", "$ bash --norc\n$")
	s.keys("echo c\rexit\r", "exit\n$")
	s.keys("cat /tmp/h; history -c; history -r; history\r", "echo c\nexit\n    1  echo c\n    2  exit\n$")
}

// A copy of a sandbox goes on with the line that was being typed, and so does one that was saved; each side ends it on its own.
func TestInteractiveCopy(t *testing.T) {
	for _, store := range []bool{false, true} {
		s := newSession(t, `PS1=$(echo p)> `)
		s.wait("p>")
		s.keys("x=1; f() { echo \"f$1\"; }\r", "p>")
		s.keys("if true\rthen f abX", "> then f abX")
		var again func(*proc.Image) *proc.Image
		if store {
			again = saved(t)
		}
		copies, _, err := s.w.copyOf(t, 1, &output{}, again)
		if err != nil {
			t.Fatal(err)
		}
		c := copies[0]
		tty := c.s.TTYs()[0]
		tty.Attach()
		k := &session{t: t, w: c, tty: tty, scr: &screen{cols: 40}, done: make(chan struct{})}
		go k.show(tty)
		k.keys("\x7fc\rfi; echo $x\r", "> fi; echo $x\nfabc\n1\np>")
		k.keys("history 1\r", "history 1\np>")
		s.keys("\x7f\x7fd\rfi\r", "> then f ad\n> fi\nfad\np>")
		c.close(t)
		tty.Hangup()
		<-k.done
	}
}

// Whatever is typed, an editor keeps its place within the line, and a copy that is made on the way ends like it.
func FuzzLine(f *testing.F) {
	for _, tc := range transcripts {
		for _, step := range tc.steps {
			f.Add(step[0], false, 20)
			f.Add(step[0], true, 3)
		}
	}
	f.Add("a\x1emb", false, 9)
	f.Add("\x1b5\x1b-\x14\x1bt\x1by\x1b.\x18\x18\x18(\x18)\x18e\x12\x13\x7f\x1b[200~\xff", true, 1)
	f.Fuzz(func(t *testing.T, keys string, vi bool, columns int) {
		e := lineedit.New("\x01\x1b[1m\x02p\n$ ", lineedit.Config{Vi: vi, Lines: []string{"echo one", "日本 two", ""}, Kills: []string{"k"}, Columns: columns % 300, Query: 2, Keys: map[string]string{"\x1em": "\x00\x1em\x1em"}})
		var c *lineedit.Editor
		for i := range min(len(keys), 2000) {
			if i == len(keys)/2 {
				c = e.Clone()
			}
			ev := e.Feed(keys[i])
			if c != nil && c.Feed(keys[i]) != ev {
				t.Fatalf("a copy does something else at byte %d", i)
			}
			switch ev {
			case lineedit.Accept, lineedit.EOF, lineedit.Edit:
				return
			case lineedit.Complete, lineedit.Show, lineedit.All:
				e.List([]string{"a\x1b]0;x\x07", "b", "c"})
				if c != nil {
					c.List([]string{"a\x1b]0;x\x07", "b", "c"})
				}
			}
			if p := e.Point(); p < 0 || p > len(e.Text()) {
				t.Fatalf("point %d in %q", p, e.Text())
			}
			e.Out = e.Out[:0]
		}
		if c != nil && c.Text() != e.Text() {
			t.Errorf("%q, and a copy %q", e.Text(), c.Text())
		}
	})
}
