package harness

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// PTY is a terminal whose other side a program has.
type PTY struct {
	t      testing.TB
	Master *os.File // what is typed is written to it
	Slave  *os.File

	mu   sync.Mutex
	seen bytes.Buffer
	from int // up to where Until has looked
}

// NewPTY opens a terminal of 80 by 24.
func NewPTY(t testing.TB) *PTY {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatalf("this test needs terminals: %v", err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &PTY{t: t, Master: master, Slave: slave}
	p.Resize(80, 24)
	done := make(chan struct{})
	go func() { // ends with the terminal
		defer close(done)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			p.mu.Lock()
			p.seen.Write(buf[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		slave.Close()
		<-done // the last open slave has gone: reads fail
		master.Close()
	})
	return p
}

// Start starts a program that has the terminal, and a session of its own.
func (p *PTY) Start(cmd *exec.Cmd) {
	p.t.Helper()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Slave, p.Slave, p.Slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
}

// Resize changes the size, which the program is told.
func (p *PTY) Resize(cols, rows uint16) {
	p.t.Helper()
	if err := unix.IoctlSetWinsize(int(p.Master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: cols, Row: rows}); err != nil {
		p.t.Fatal(err)
	}
}

// Modes returns how the terminal is set.
func (p *PTY) Modes() unix.Termios {
	p.t.Helper()
	m, err := unix.IoctlGetTermios(int(p.Slave.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatal(err)
	}
	return *m
}

// Type types a text.
func (p *PTY) Type(text string) {
	p.t.Helper()
	if _, err := p.Master.WriteString(text); err != nil {
		p.t.Fatal(err)
	}
}

// Until waits until the terminal has shown a text since the last call.
func (p *PTY) Until(text string) {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		rest := p.seen.Bytes()[p.from:]
		i := bytes.Index(rest, []byte(text))
		if i >= 0 {
			p.from += i + len(text)
		}
		shown := string(rest)
		p.mu.Unlock()
		if i >= 0 {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("the terminal never showed %q: %q", text, shown)
		}
	}
}
