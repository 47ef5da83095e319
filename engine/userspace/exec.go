package userspace

import (
	"context"
	"io"
	"syscall"
	"time"

	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/shell"
	"agentrun.dev/vfs"
)

// drainGrace is how long the end of a command waits for a client that doesn't take its terminal's output.
const drainGrace = 5 * time.Second

// Cmd is a command to execute.
type Cmd = engine.Cmd

// linger is how long processes that a command leaves in the background may still take, before they are killed.
const linger = 250 * time.Millisecond

// Process is a command that Exec started. It implements engine.Process.
type Process struct {
	s    *Sandbox
	p    *proc.Process
	tty  *proc.TTY     // nil without a terminal
	pump chan struct{} // closed when all that the terminal showed was written
	keep bool
	done bool // it has ended before it began: status
	code int

	attached *proc.Attachment // of a command that was started elsewhere; else nil
}

// Run executes a command and waits for it, as Exec and Process.Wait do.
func (s *Sandbox) Run(ctx context.Context, c Cmd) (status int, err error) {
	p, err := s.exec(c)
	if err != nil {
		return 126, err
	}
	return p.Wait(ctx)
}

// Exec implements engine.Instance.
func (s *Sandbox) Exec(_ context.Context, c Cmd) (engine.Process, error) {
	p, err := s.exec(c)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (s *Sandbox) exec(c Cmd) (*Process, error) {
	if len(c.Args) == 0 {
		return nil, errs.Msg(errs.Invalid, "exec", "", "no command")
	}
	p := &Process{s: s, keep: c.Keep}
	if err := p.terminal(c); err != nil {
		return nil, err
	}
	pp, err := s.process(c, p.tty)
	if err != nil {
		p.hangup()
		return nil, err
	}
	p.p = pp
	p.code, p.done = s.start(pp, c.Args)
	if !p.done {
		s.mu.Lock()
		s.commands[pp.Pid()] = p
		s.mu.Unlock()
	}
	return p, nil
}

// process makes the command's process, not yet started.
func (s *Sandbox) process(c Cmd, tty *proc.TTY) (*proc.Process, error) {
	dir := c.Dir
	if dir == "" {
		dir = s.base.dir
	}
	cred := s.base.cred
	if c.Root {
		cred = vfs.Cred{Umask: cred.Umask}
	}
	var files map[int]vfs.File
	if tty == nil {
		files = map[int]vfs.File{0: proc.NewInput(c.Stdin, false), 1: s.sb.NewOutput(c.Stdout, false), 2: s.sb.NewOutput(c.Stderr, false)}
	}
	p, err := s.sb.NewProcess(proc.Root{Args: c.Args, Env: mergeEnv(mergeEnv(s.env, []string{"PWD=" + dir}), c.Env), Cred: cred, Files: files, TTY: tty})
	if err == syscall.ESRCH {
		return nil, unavailable("exec", s.id)
	}
	if err != nil {
		return nil, errs.New(errs.Limit, "exec", c.Args[0], err)
	}
	if err := p.Chdir(dir); err != nil {
		p.Abandon(126)
		return nil, errs.New(errs.NotFound, "exec", dir, err)
	}
	return p, nil
}

// start starts the program; done means that it has ended already, with this status.
func (s *Sandbox) start(p *proc.Process, args []string) (status int, done bool) {
	fail := func(status int, text string) (int, bool) {
		if f := p.Stderr(); text != "" {
			io.WriteString(f, "agentrun: "+args[0]+": "+text+"\n")
		}
		p.Abandon(status)
		return status, true
	}
	file, err := p.Find(args[0], p.Getenv("PATH"))
	if err == syscall.ENOENT {
		return fail(127, "command not found")
	}
	if err == nil {
		err = p.StartFile(file, args)
	}
	switch err {
	case nil:
		return 0, false
	case syscall.ENOENT:
		return fail(127, vfs.Strerror(err))
	case syscall.ENOEXEC: // a script without an interpreter's name
		p.SetArgs(append([]string{"sh", file}, args[1:]...))
		p.Start(shell.New(true))
		return 0, false
	}
	return fail(126, vfs.Strerror(err))
}

// Pid implements engine.Process.
func (p *Process) Pid() int { return p.p.Pid() }

// Wait implements engine.Process.
func (p *Process) Wait(ctx context.Context) (status int, err error) {
	defer p.hangup()
	if p.done {
		return p.code, nil
	}
	defer func() {
		p.s.mu.Lock()
		delete(p.s.commands, p.p.Pid())
		p.s.mu.Unlock()
	}()
	select {
	case <-p.p.Done():
		if !p.keep {
			p.settle(ctx)
		}
	case <-ctx.Done():
		p.signal(proc.SIGKILL)
		<-p.p.Done()
		p.signal(proc.SIGKILL) // what it started meanwhile
	}
	return p.outcome(ctx)
}

// Signal implements engine.Process. All processes of the command's session get it.
func (p *Process) Signal(sig int) error {
	if sig < 1 || sig > proc.MaxSignal {
		return errs.Msg(errs.Invalid, "signal", p.s.id, "no such signal")
	}
	p.signal(sig)
	return nil
}

// Signaled returns the signal that ended the command, 0 if it exited by itself. It is for after Wait.
func (p *Process) Signaled() int { return p.p.Signaled() }

// Resize implements engine.Process.
func (p *Process) Resize(size engine.Size) error {
	if p.tty == nil {
		return errs.Msg(errs.Invalid, "resize", p.s.id, "the command has no terminal")
	}
	if err := check(size); err != nil {
		return err
	}
	p.tty.Resize(winSize(size))
	return nil
}

func winSize(s engine.Size) proc.WinSize {
	return proc.WinSize{Cols: uint16(s.Cols), Rows: uint16(s.Rows)}
}

// check bounds a terminal's size.
func check(s engine.Size) error {
	if s.Cols < 0 || s.Rows < 0 || s.Cols > 1<<15 || s.Rows > 1<<15 {
		return errs.Msg(errs.Invalid, "terminal", "", "a terminal has 0 to 32768 columns and rows")
	}
	return nil
}

// terminal makes the command's terminal and connects it to the streams of c.
func (p *Process) terminal(c Cmd) error {
	if c.TTY == nil {
		return nil
	}
	if err := check(*c.TTY); err != nil {
		return err
	}
	cred := p.s.base.cred
	if c.Root {
		cred = vfs.Cred{}
	}
	t, err := p.s.sb.NewTTY(winSize(*c.TTY), cred.UID)
	if err != nil {
		return errs.New(errs.Limit, "terminal", p.s.id, err)
	}
	if len(c.Modes) > 0 {
		settings := t.Settings()
		applyModes(&settings, c.Modes)
		t.Configure(settings)
	}
	p.connect(t, c)
	return nil
}

// connect copies between a terminal and a client. What the client types is read by a goroutine that ends when the reader
// returns: whoever made the reader ends it.
func (p *Process) connect(t *proc.TTY, c Cmd) {
	p.tty, p.pump = t, make(chan struct{})
	out := c.Stdout
	if out == nil {
		out = io.Discard
	}
	go func() {
		defer close(p.pump)
		if _, err := io.Copy(out, t); err != nil {
			io.Copy(io.Discard, t) // a client that is gone holds nobody up
		}
	}()
	if c.Stdin != nil {
		go func() {
			io.Copy(t, c.Stdin)
		}()
	}
}

// hangup ends the terminal once everything that it showed has been written.
func (p *Process) hangup() {
	if p.attached != nil {
		p.attached.Detach()
	}
	if p.tty == nil {
		return
	}
	p.tty.Close()
	select {
	case <-p.pump:
	case <-time.After(drainGrace):
	}
}

// signal sends a signal to all processes of the command's session.
func (p *Process) signal(sig int) {
	sid := p.p.Sid()
	for _, q := range p.s.sb.Processes() {
		if q.Sid() == sid {
			q.Post(sig)
		}
	}
}

// settle waits for what the command has left in the background, and kills what doesn't end by itself.
func (p *Process) settle(ctx context.Context) {
	t := time.NewTimer(linger)
	defer t.Stop()
	sid := p.p.Sid()
	for _, q := range p.s.sb.Processes() {
		if q.Sid() != sid || q == p.p {
			continue
		}
		select {
		case <-q.Done():
			continue
		case <-t.C:
		case <-ctx.Done():
		}
		p.signal(proc.SIGKILL)
		return
	}
}

func (p *Process) outcome(ctx context.Context) (int, error) {
	status, name := p.p.Status(), p.p.Args()[0]
	if err := ctx.Err(); err != nil && p.p.Signaled() == proc.SIGKILL {
		return status, errs.New(errs.Canceled, "exec", name, err)
	}
	if what := p.s.sb.Exceeded(); what != "" && (p.p.Signaled() == proc.SIGXCPU || p.p.Signaled() == proc.SIGXFSZ) {
		return status, errs.Msg(errs.Limit, "exec", name, what+" limit exceeded")
	}
	return status, nil
}

// modeChars are the opcodes of RFC 4254 (section 8) for control characters, by their index in Termios.Cc.
var modeChars = map[byte]int{1: proc.VINTR, 2: proc.VQUIT, 3: proc.VERASE, 4: proc.VKILL, 5: proc.VEOF, 6: proc.VEOL, 7: proc.VEOL2, 8: proc.VSTART,
	9: proc.VSTOP, 10: proc.VSUSP, 12: proc.VREPRINT, 13: proc.VWERASE, 14: proc.VLNEXT, 18: proc.VDISCARD}

// Opcodes for bits of Iflag, Lflag and Oflag (and of RFC 8160, which adds IUTF8).
var (
	modeInput = map[byte]uint32{33: proc.ISTRIP, 34: proc.INLCR, 35: proc.IGNCR, 36: proc.ICRNL, 38: proc.IXON, 39: proc.IXANY, 41: proc.IMAXBEL, 42: proc.IUTF8}
	modeLocal = map[byte]uint32{50: proc.ISIG, 51: proc.ICANON, 53: proc.ECHO, 54: proc.ECHOE, 55: proc.ECHOK, 56: proc.ECHONL, 57: proc.NOFLSH,
		58: proc.TOSTOP, 59: proc.IEXTEN, 60: proc.ECHOCTL, 61: proc.ECHOKE}
	modeOutput = map[byte]uint32{70: proc.OPOST, 72: proc.ONLCR, 73: proc.OCRNL, 74: proc.ONOCR, 75: proc.ONLRET}
)

// applyModes sets a terminal as its client's is. What the terminal doesn't have is left out.
func applyModes(t *proc.Termios, modes map[byte]uint32) {
	for op, v := range modes {
		if i, ok := modeChars[op]; ok {
			if v >= 255 { // none
				v = 0
			}
			t.Cc[i] = byte(v)
			continue
		}
		set(&t.Iflag, modeInput[op], v)
		set(&t.Lflag, modeLocal[op], v)
		set(&t.Oflag, modeOutput[op], v)
	}
}

func set(flags *uint32, bit, on uint32) {
	if on != 0 {
		*flags |= bit
	} else {
		*flags &^= bit
	}
}
