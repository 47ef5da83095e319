package proc_test

import (
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// typing is what a line discipline makes of keys: what a program reads, and what the screen shows.
var typing = []struct {
	name, keys   string
	read, screen string
	change       func(t *proc.Termios)
}{
	{name: "a line", keys: "ls -l\r", read: "ls -l\n", screen: "ls -l\r\n"},
	{name: "nothing before the end of the line", keys: "ls", read: "", screen: "ls"},
	{name: "erase", keys: "lx\x7fs\r", read: "ls\n", screen: "lx\b \bs\r\n"},
	{name: "erase at the beginning", keys: "\x7f\x7fa\r", read: "a\n", screen: "a\r\n"},
	{name: "erase a control character", keys: "a\x01\x7fb\r", read: "ab\n", screen: "a^A\b \b\b \bb\r\n"},
	{name: "erase a tab", keys: "ab\t\x7fc\r", read: "abc\n", screen: "ab\t\b\b\b\b\b\bc\r\n"},
	{name: "erase a multibyte character", keys: "é\x7fe\r", read: "e\n", screen: "é\b \be\r\n"},
	{name: "erase a word", keys: "one two  \x17three\r", read: "one three\n", screen: "one two  " + strings.Repeat("\b \b", 5) + "three\r\n"},
	{name: "kill", keys: "abc\x15de\r", read: "de\n", screen: "abc" + strings.Repeat("\b \b", 3) + "de\r\n"},
	{name: "kill without erasing", keys: "abc\x15de\r", read: "de\n", screen: "abc^U\r\nde\r\n", change: func(t *proc.Termios) { t.Lflag &^= proc.ECHOKE }},
	{name: "literal next", keys: "a\x16\x03b\r", read: "a\x03b\n", screen: "a^\b^Cb\r\n"},
	{name: "reprint", keys: "ab\x12c\r", read: "abc\n", screen: "ab^R\r\nabc\r\n"},
	{name: "end of file", keys: "\x04", read: "EOF", screen: ""},
	{name: "end of file in a line", keys: "ab\x04", read: "ab", screen: "ab"},
	{name: "two lines", keys: "a\rb\r", read: "a\nb\n", screen: "a\r\nb\r\n"},
	{name: "without echo", keys: "secret\r", read: "secret\n", screen: "", change: func(t *proc.Termios) { t.Lflag &^= proc.ECHO }},
	{name: "only newlines", keys: "secret\r", read: "secret\n", screen: "\r\n", change: func(t *proc.Termios) { t.Lflag = t.Lflag&^proc.ECHO | proc.ECHONL }},
	{name: "raw", keys: "a\x03\x7f\r\x04", read: "a\x03\x7f\r\x04", screen: "", change: func(t *proc.Termios) { *t = t.Raw() }},
	{name: "stop and start", keys: "a\x13b\x11\r", read: "ab\n", screen: "ab\r\n"},
	{name: "carriage return kept", keys: "a\r\n", read: "a\r\n", screen: "a^M\r\n", change: func(t *proc.Termios) { t.Iflag &^= proc.ICRNL }},
	{name: "a second end of line", keys: "a;b\r", read: "a;b\n", screen: "a;b\r\n", change: func(t *proc.Termios) { t.Cc[proc.VEOL] = ';' }},
	{name: "too long a line", keys: strings.Repeat("x", 4100) + "\r", read: strings.Repeat("x", 4095) + "\n", screen: strings.Repeat("x", 4095) + strings.Repeat("\a", 5) + "\r\n"},
}

func TestTyping(t *testing.T) {
	for _, tc := range typing {
		t.Run(tc.name, func(t *testing.T) {
			s := sandbox(t, proc.Limits{})
			tty := newTTY(t, s)
			if tc.change != nil {
				set := tty.Settings()
				tc.change(&set)
				tty.Configure(set)
			}
			within(t, s, func(p *proc.Process) int {
				p.Install(0, tty.File())
				if _, err := tty.Write([]byte(tc.keys)); err != nil {
					t.Error(err)
				}
				got, buf := "", make([]byte, 5000)
				for len(got) < len(tc.read) {
					n, err := p.Stdin().Read(buf)
					got += string(buf[:n])
					if err == io.EOF {
						got += "EOF"
					} else if err != nil {
						t.Error(err)
						break
					}
				}
				if got != tc.read {
					t.Errorf("read %q, want %q", got, tc.read)
				}
				done := make(chan struct{})
				close(done)
				if more, err := p.Poll(0, done); more || err != nil {
					t.Errorf("there is more to read, %v", err)
				}
				return 0
			})
			if got := screen(t, tty, len(tc.screen)); got != tc.screen {
				t.Errorf("shown %q, want %q", got, tc.screen)
			}
		})
	}
}

func newTTY(t testing.TB, s *proc.Sandbox) *proc.TTY {
	t.Helper()
	tty, err := s.NewTTY(proc.WinSize{Cols: 80, Rows: 24}, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tty.Hangup)
	return tty
}

// screen reads n bytes of what is to be shown.
func screen(t testing.TB, tty *proc.TTY, n int) string {
	t.Helper()
	b := make([]byte, n)
	read := make(chan error, 1)
	go func() { _, err := io.ReadFull(tty, b); read <- err }()
	select {
	case err := <-read:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("less than %d bytes to be shown", n)
	}
	return string(b)
}

// leader starts a session on a terminal.
func leader(t testing.TB, s *proc.Sandbox, tty *proc.TTY, f proc.Func) *proc.Process {
	t.Helper()
	p, err := s.NewProcess(proc.Root{Args: []string{"leader"}, Env: []string{"PATH=/bin"}, TTY: tty})
	if err != nil {
		t.Fatal(err)
	}
	p.Start(f)
	return p
}

func wait(t testing.TB, p *proc.Process) int {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(20 * time.Second):
		t.Fatalf("%v hangs", p.Args())
	}
	return p.Status()
}

func TestTerminalNames(t *testing.T) {
	s := sandbox(t, proc.Limits{})
	other, tty := newTTY(t, s), newTTY(t, s)
	p := leader(t, s, tty, func(p *proc.Process) int {
		if name, err := p.TTYName(0); name != "/dev/pts/1" || err != nil {
			t.Errorf("%q, %v", name, err)
		}
		if _, err := p.TTYName(7); err != syscall.EBADF {
			t.Errorf("no descriptor: %v", err)
		}
		if list, err := p.ReadDir("/dev/pts"); err != nil || len(list) != 2 {
			t.Errorf("%v, %v", list, err)
		}
		a, err := p.Stat("/dev/pts/1")
		b, _ := p.Stat("/dev/fd/0")
		if err != nil || a.Mode != vfs.ModeChar|0o620 || a.Rdev != 136<<8|1 || b.Rdev != a.Rdev {
			t.Errorf("%+v, %v", a, err)
		}
		for _, name := range []string{"/dev/tty", "/dev/pts/1"} {
			f, err := p.Open(name, syscall.O_WRONLY, 0)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			io.WriteString(f, "to "+name+"\n")
			f.Close()
		}
		if _, err := p.Open("/dev/pts/7", syscall.O_RDWR, 0); err != syscall.ENOENT {
			t.Errorf("no terminal: %v", err)
		}
		// Another session's process has no /dev/tty, until it opens a terminal that is free.
		c, _ := p.Fork()
		c.SetSid()
		c.Start(proc.Func(func(c *proc.Process) int {
			if _, err := c.Open("/dev/tty", syscall.O_RDWR, 0); err != syscall.ENXIO {
				t.Errorf("without a terminal: %v", err)
			}
			if err := c.SetControllingTTY(0); err != syscall.EPERM {
				t.Errorf("taking another session's terminal: %v", err)
			}
			c.Open(other.Name(), syscall.O_RDWR|syscall.O_NOCTTY, 0)
			if c.TTY() != nil {
				t.Error("O_NOCTTY")
			}
			c.Open(other.Name(), syscall.O_RDWR, 0)
			if c.TTY() != other {
				t.Error("not the controlling one")
			}
			return 0
		}))
		p.Wait(c)
		return 0
	})
	if got := screen(t, tty, 28); got != "to /dev/tty\r\nto /dev/pts/1\r\n" {
		t.Errorf("%q", got)
	}
	wait(t, p)
}

func TestSignalKeys(t *testing.T) {
	s := sandbox(t, proc.Limits{})
	for key, sig := range map[string]int{"\x03": proc.SIGINT, "\x1c": proc.SIGQUIT} {
		tty := newTTY(t, s)
		ready := make(chan int, 1)
		p := leader(t, s, tty, func(p *proc.Process) int {
			for _, sig := range []int{proc.SIGINT, proc.SIGQUIT} {
				p.SetSignal(sig, proc.Handle)
			}
			c, _ := p.Fork()
			c.SetPgid(0)
			p.SetSignal(proc.SIGTTOU, proc.Ignore)
			if err := p.SetForeground(0, c.Pid()); err != nil {
				t.Error(err)
			}
			c.Start(programs()["nap"])
			ready <- c.Pid()
			st, err := p.Wait(c)
			if err != nil || st != 128+sig {
				t.Errorf("status %d, %v; want that of signal %d", st, err, sig)
			}
			if got := p.TakeSignals(); len(got) != 0 {
				t.Errorf("the background got %v", got)
			}
			if fg, err := p.Foreground(0); fg != c.Pid() || err != nil {
				t.Errorf("foreground %d, %v", fg, err)
			}
			if err := p.SetForeground(0, 9999); err != syscall.EPERM {
				t.Errorf("no such group: %v", err)
			}
			return 0
		})
		<-ready
		tty.Write([]byte("typed ahead" + key))
		wait(t, p)
		if got := screen(t, tty, 2); got != "^"+string(rune(key[0]^64)) {
			t.Errorf("shown %q", got)
		}
	}
}

// Job control as a shell does it: a job is stopped by a key, continued in the background, stopped as it reads there,
// and ends in the foreground.
func TestJobControl(t *testing.T) {
	s := sandbox(t, proc.Limits{})
	tty := newTTY(t, s)
	step := make(chan string)
	sh := leader(t, s, tty, func(p *proc.Process) int {
		p.SetSignal(proc.SIGTTOU, proc.Ignore)
		p.SetSignal(proc.SIGTSTP, proc.Ignore)
		c, _ := p.Fork()
		c.SetPgid(0)
		c.SetSignal(proc.SIGTSTP, proc.Default)
		c.SetSignal(proc.SIGTTOU, proc.Default)
		p.SetForeground(0, c.Pid())
		c.Start(programs()["cat"])
		step <- "started"
		expect := func(what string, want proc.Event, flags proc.WaitFlags) {
			e, err := p.WaitEvent(nil, flags)
			if want.Child = c; err != nil || e != want {
				t.Errorf("%s: %+v, %v", what, e, err)
			}
		}
		expect("the key", proc.Event{Stopped: proc.SIGTSTP, Status: 128 + proc.SIGTSTP}, proc.WaitStopped)
		p.SetForeground(0, p.Pgid())
		if b, _ := readFile(p, fmt.Sprintf("/proc/%d/stat", c.Pid())); !strings.Contains(b, ") T ") {
			t.Errorf("not shown as stopped: %s", b)
		}
		p.Signal(-c.Pid(), proc.SIGCONT)
		expect("continued", proc.Event{Continued: true}, proc.WaitContinued)
		expect("reading in the background", proc.Event{Stopped: proc.SIGTTIN, Status: 128 + proc.SIGTTIN}, proc.WaitStopped)
		if e, err := p.WaitEvent(nil, proc.WaitStopped|proc.WaitNoHang); err != nil || e.Child != nil {
			t.Errorf("the same news again: %+v, %v", e, err)
		}
		p.SetForeground(0, c.Pid())
		p.Signal(-c.Pid(), proc.SIGCONT)
		step <- "foreground"
		expect("its end", proc.Event{}, 0)
		p.SetForeground(0, p.Pgid())
		return 0
	})
	<-step
	tty.Write([]byte("one\r"))
	if got := screen(t, tty, 10); got != "one\r\none\r\n" {
		t.Errorf("%q", got)
	}
	tty.Write([]byte("\x1a"))
	<-step
	tty.Write([]byte("two\r\x04"))
	wait(t, sh)
	if got := screen(t, tty, 12); got != "^Ztwo\r\ntwo\r\n" {
		t.Errorf("%q", got)
	}
	if _, err := tty.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
}

func readFile(p *proc.Process, name string) (string, error) {
	f, err := p.Open(name, syscall.O_RDONLY, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	return string(b), err
}

// A background process that sets the terminal is stopped by TTOU; one whose group is orphaned gets EIO.
func TestBackground(t *testing.T) {
	s := sandbox(t, proc.Limits{})
	tty := newTTY(t, s)
	p := leader(t, s, tty, func(p *proc.Process) int {
		c, _ := p.Fork()
		c.SetPgid(0)
		c.Start(proc.Func(func(c *proc.Process) int {
			set, _ := c.Termios(0)
			return status(c.SetTermios(0, set, proc.SetNow))
		}))
		if e, err := p.WaitEvent([]*proc.Process{c}, proc.WaitStopped); e.Stopped != proc.SIGTTOU || err != nil {
			t.Errorf("%+v, %v", e, err)
		}
		p.Signal(c.Pid(), proc.SIGKILL)
		p.Wait(c)
		// A child of a child whose parent ends is orphaned once it is in a group of its own.
		result := make(chan error, 1)
		c, _ = p.Fork()
		c.Start(proc.Func(func(c *proc.Process) int {
			g, _ := c.Fork()
			g.SetPgid(0)
			g.Start(proc.Func(func(g *proc.Process) int {
				<-c.Done()
				_, err := g.Stdin().Read(make([]byte, 1))
				result <- err
				return 0
			}))
			return 0
		}))
		p.Wait(c)
		if err := <-result; err != syscall.EIO {
			t.Errorf("an orphan reads: %v", err)
		}
		return 0
	})
	wait(t, p)
}

func TestHangup(t *testing.T) {
	s := sandbox(t, proc.Limits{})
	tty := newTTY(t, s)
	kids := make(chan *proc.Process, 1)
	p := leader(t, s, tty, func(p *proc.Process) int {
		p.SetSignal(proc.SIGHUP, proc.Handle)
		p.SetSignal(proc.SIGTTOU, proc.Ignore)
		c, _ := p.Fork()
		c.SetPgid(0)
		p.SetForeground(0, c.Pid())
		c.Start(programs()["nap"])
		io.WriteString(p.Stdout(), "last words\n")
		kids <- c
		if _, err := p.Stdin().Read(make([]byte, 1)); err != syscall.EIO {
			t.Errorf("a read in the background that can't be stopped: %v", err)
		}
		for len(p.TakeSignals()) == 0 {
			p.Sleep(time.Millisecond)
		}
		if _, err := p.Stdin().Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("a read after: %v", err)
		}
		if _, err := p.Stdout().Write([]byte("x")); err != syscall.EIO {
			t.Errorf("a write after: %v", err)
		}
		if p.TTY() != nil {
			t.Error("still controlled")
		}
		return 3
	})
	c := <-kids
	tty.Hangup()
	if st := wait(t, p); st != 3 {
		t.Errorf("leader: %d", st)
	}
	if st := wait(t, c); st != 128+proc.SIGHUP {
		t.Errorf("the foreground: %d", st)
	}
	if b, err := io.ReadAll(tty); string(b) != "last words\r\n" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := tty.Write([]byte("x")); err != syscall.EIO {
		t.Errorf("typing after: %v", err)
	}
	if len(s.TTYs()) != 0 {
		t.Error("it is still there")
	}
}

// A flood waits for the client; a resize is told to the foreground.
func TestFlood(t *testing.T) {
	s := sandbox(t, proc.Limits{})
	tty := newTTY(t, s)
	p := leader(t, s, tty, func(p *proc.Process) int {
		p.SetSignal(proc.SIGWINCH, proc.Handle)
		_, err := p.Stdout().Write([]byte(strings.Repeat("x", 1<<20)))
		if err != syscall.EINTR {
			t.Errorf("a write that WINCH interrupts: %v", err)
		}
		size, err := p.WindowSize(1)
		if size != (proc.WinSize{Cols: 132, Rows: 50}) || err != nil {
			t.Errorf("%+v, %v", size, err)
		}
		return 0
	})
	screen(t, tty, 1) // it has begun
	tty.Resize(proc.WinSize{Cols: 80, Rows: 24})
	tty.Resize(proc.WinSize{Cols: 132, Rows: 50})
	wait(t, p)
	rest, _ := io.ReadAll(tty)
	if len(rest) < 1000 || len(rest) > 70<<10 {
		t.Errorf("%d bytes had been taken", len(rest))
	}
}

// Without lines a read waits as MIN and TIME say.
func TestMinTime(t *testing.T) {
	s := sandbox(t, proc.Limits{})
	tty := newTTY(t, s)
	p := leader(t, s, tty, func(p *proc.Process) int {
		read := func(min, time byte, n int) string {
			set, _ := p.Termios(0)
			set = set.Raw()
			set.Cc[proc.VMIN], set.Cc[proc.VTIME] = min, time
			if err := p.SetTermios(0, set, proc.SetNow); err != nil {
				t.Error(err)
			}
			b := make([]byte, n)
			n, err := p.Stdin().Read(b)
			return fmt.Sprint(string(b[:n]), err)
		}
		if got := read(0, 0, 5); got != "EOF" {
			t.Errorf("nothing there: %s", got)
		}
		if got := read(0, 1, 5); got != "EOF" {
			t.Errorf("a timeout: %s", got)
		}
		tty.Write([]byte("abc"))
		if got := read(0, 0, 2); got != "ab<nil>" {
			t.Errorf("%s", got)
		}
		if got := read(5, 1, 5); got != "c<nil>" {
			t.Errorf("a timeout between bytes: %s", got)
		}
		go func() {
			for _, k := range []string{"1", "2", "3"} {
				tty.Write([]byte(k))
			}
		}()
		if got := read(3, 0, 9); got != "123<nil>" {
			t.Errorf("three: %s", got)
		}
		return 0
	})
	wait(t, p)
}

// A terminal is copied with what was typed and is to be shown; the copy's has no client yet and holds nobody up.
func TestCopiedTerminal(t *testing.T) {
	res := &results{}
	s := sandboxWith(t, proc.Options{Services: res})
	tty := newTTY(t, s)
	p, err := s.NewProcess(proc.Root{Args: []string{"filter"}, TTY: tty})
	if err != nil {
		t.Fatal(err)
	}
	p.Start(&node{nodeState{Kind: "filter"}})
	tty.Write([]byte("half a li"))
	screen(t, tty, 5)
	im := freeze(t, s)
	defer im.Close()
	for range 2 {
		c := start(t, im, clone(t, s), nil)
		if len(c.TTYs()) != 1 {
			t.Fatal("no terminal")
		}
		tt := c.TTYs()[0]
		if c.Lookup(p.Pid()).TTY() != tt || tt.Name() != tty.Name() || tt.Size() != tty.Size() {
			t.Error("not the same terminal")
		}
		for range 3 { // more than a terminal with a client takes
			tt.Write([]byte(strings.Repeat("y", 4000) + "\r"))
		}
		tt.Write([]byte(strings.Repeat("\r", 100<<10)))
		if lost := tt.Attach(); lost != 0 {
			t.Errorf("%d bytes were lost", lost)
		}
		if got := screen(t, tt, 12); !strings.HasPrefix(got, "a liyyyy") {
			t.Errorf("shown %q", got)
		}
		tt.Hangup()
		ended(t, c, p.Pid())
	}
	tty.Write([]byte("ne\r"))
	if got := screen(t, tty, 8); got != "a line\r\n" {
		t.Errorf("the original shows %q", got)
	}
}

// FuzzTTY feeds a terminal with keys and settings: it must neither fail nor hold up its client.
func FuzzTTY(f *testing.F) {
	for _, tc := range typing {
		f.Add([]byte(tc.keys), uint32(proc.DefaultTermios().Lflag), uint32(proc.DefaultTermios().Iflag))
	}
	f.Fuzz(func(t *testing.T, keys []byte, lflag, iflag uint32) {
		if len(keys) > 4096 {
			return
		}
		s := sandbox(t, proc.Limits{})
		tty := newTTY(t, s)
		file := tty.File()
		for i := range keys {
			if i == len(keys)/2 {
				set := tty.Settings()
				set.Lflag, set.Iflag = lflag, iflag
				tty.Configure(set)
			}
			tty.Write(keys[i : i+1])
		}
		tty.Detach() // or a stop character would hold the write up
		file.Write(keys[:min(len(keys), 100)])
		tty.Hangup()
		for buf := make([]byte, 1000); ; {
			if _, err := file.Read(buf); err == io.EOF {
				if n, err := file.Read(buf); n == 0 && err == io.EOF {
					break
				}
			}
		}
		file.Close()
		if _, err := io.ReadAll(tty); err != nil {
			t.Error(err)
		}
	})
}
