package ssh

import (
	"context"
	"encoding/binary"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"agentrun.dev/engine"
	"agentrun.dev/errs"
)

// KeepVariable is the variable by which a session asks that its fork be kept.
const KeepVariable = "AGENTRUN_KEEP"

// session is one channel: what is to run, and then what runs.
type session struct {
	c  *conn
	ch *activity

	env      []string
	envBytes int
	keep     bool

	mu   sync.Mutex
	size *engine.Size // of the terminal; nil without one
	mode map[byte]uint32
	proc engine.Process // once it runs
	done bool           // it has ended: what it left in the background isn't the session's any more
}

// What requests carry (RFC 4254, section 6).
type (
	ptyRequest struct {
		Term             string
		Cols, Rows, W, H uint32
		Modes            string
	}
	envRequest struct{ Name, Value string }
	winRequest struct{ Cols, Rows, W, H uint32 }
	oneString  struct{ Text string }
	exitStatus struct{ Status uint32 }
	exitSignal struct {
		Name  string
		Core  bool
		Error string
		Lang  string
	}
)

// run answers requests until the client closes the session, or the command has ended.
func (s *session) run(requests <-chan *ssh.Request) {
	ctx, cancel := context.WithCancel(s.c.ctx)
	defer cancel()
	ended := make(chan struct{}) // once the command has
	started := false
	for r := range requests {
		ok := false
		switch r.Type {
		case "shell", "exec", "subsystem":
			if started {
				break // one of them, once
			}
			var text, kind string
			if text, kind, ok = program(r); ok {
				started = true
				if r.WantReply {
					_ = r.Reply(true, nil)
				}
				go func() { // waited for below
					defer close(ended)
					s.execute(ctx, text, kind)
				}()
				continue
			}
		case "eow@openssh.com":
			s.ch.unread.Store(true)
		case "auth-agent-req@openssh.com", "x11-req":
			s.c.s.metrics.refused.Add(1)
			s.refuse(r.Type)
		default:
			ok = s.request(r, started)
		}
		if r.WantReply {
			_ = r.Reply(ok, nil)
		}
	}
	if !started {
		_ = s.ch.Close()
		return
	}
	// The client has closed the session: what still runs hears of it, and has a moment.
	s.hangup(ended)
	cancel()
	<-ended
}

// hangupGrace is how long a command may take to end after its client has closed the session.
const hangupGrace = 2 * time.Second

func (s *session) hangup(ended <-chan struct{}) {
	select {
	case <-ended:
		return
	default:
	}
	s.mu.Lock()
	if s.proc != nil && !s.done {
		_ = s.proc.Signal(signals["HUP"])
	}
	s.mu.Unlock()
	t := time.NewTimer(hangupGrace)
	defer t.Stop()
	select {
	case <-ended:
	case <-t.C:
	case <-s.c.ctx.Done():
	}
}

// refuse says on the session's standard error what is refused, where the protocol has no words for it.
func (s *session) refuse(kind string) {
	what := "an agent"
	if kind == "x11-req" {
		what = "X11"
	}
	_, _ = io.WriteString(s.ch.Stderr(), "agentrun: "+what+" isn't forwarded: a sandbox has no way back to your machine\r\n")
}

// program returns what a request wants to run: a kind, and the text of an exec.
func program(r *ssh.Request) (text, kind string, ok bool) {
	if r.Type == "shell" {
		return "", "shell", true
	}
	var v oneString
	if ssh.Unmarshal(r.Payload, &v) != nil || len(v.Text) > maxCommand || strings.IndexByte(v.Text, 0) >= 0 {
		return "", "", false
	}
	if r.Type == "exec" {
		return v.Text, "exec", true
	}
	return "", "sftp", v.Text == "sftp"
}

// request answers the requests that only set something.
func (s *session) request(r *ssh.Request, started bool) bool {
	switch r.Type {
	case "pty-req":
		var v ptyRequest
		if started || ssh.Unmarshal(r.Payload, &v) != nil {
			return false
		}
		size := sizeOf(v.Cols, v.Rows)
		s.mu.Lock()
		s.size, s.mode = &size, parseModes(v.Modes)
		s.mu.Unlock()
		return v.Term == "" || s.setenv("TERM", v.Term)
	case "env":
		var v envRequest
		return !started && ssh.Unmarshal(r.Payload, &v) == nil && s.setenv(v.Name, v.Value)
	case "window-change":
		var v winRequest
		return ssh.Unmarshal(r.Payload, &v) == nil && s.resize(sizeOf(v.Cols, v.Rows))
	case "signal":
		var v oneString
		return ssh.Unmarshal(r.Payload, &v) == nil && s.signal(v.Text)
	}
	return false
}

// parseModes reads the modes of a terminal: an opcode and a number each, up to an opcode of 0 or one that is no mode.
func parseModes(b string) map[byte]uint32 {
	modes := map[byte]uint32{}
	for len(b) >= 5 && b[0] > 0 && b[0] < 160 {
		modes[b[0]] = binary.BigEndian.Uint32([]byte(b[1:5]))
		b = b[5:]
	}
	return modes
}

// sizeOf bounds what a client says of its terminal.
func sizeOf(cols, rows uint32) engine.Size {
	return engine.Size{Cols: int(min(cols, 1<<14)), Rows: int(min(rows, 1<<14))}
}

// setenv sets a variable: any that has a name. Whoever logs in commands the sandbox, so none of them gives them more.
func (s *session) setenv(name, value string) bool {
	if name == "" || len(s.env) >= maxEnv || s.envBytes+len(name)+len(value) > maxEnvBytes || strings.IndexByte(value, 0) >= 0 {
		return false
	}
	for i, c := range []byte(name) {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	if name == KeepVariable {
		s.keep = value != "" && value != "0"
		return true
	}
	s.envBytes += len(name) + len(value)
	s.env = append(s.env, name+"="+value)
	return true
}

func (s *session) resize(size engine.Size) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size == nil {
		return false
	}
	*s.size = size
	return s.proc == nil || s.proc.Resize(size) == nil
}

func (s *session) signal(name string) bool {
	n, ok := signals[name]
	s.mu.Lock()
	defer s.mu.Unlock()
	return ok && s.proc != nil && !s.done && s.proc.Signal(n) == nil
}

// signals are the names that the protocol has for them, and those of Linux that it lacks.
var signals = map[string]int{"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "TRAP": 5, "ABRT": 6, "BUS": 7, "FPE": 8, "KILL": 9, "USR1": 10, "SEGV": 11,
	"USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15, "CHLD": 17, "CONT": 18, "STOP": 19, "TSTP": 20, "TTIN": 21, "TTOU": 22, "XCPU": 24, "XFSZ": 25,
	"WINCH": 28, "SYS": 31}

// execute runs the command in the connection's sandbox and tells how it ended.
func (s *session) execute(ctx context.Context, text, kind string) {
	defer s.ch.Close()
	m := &s.c.s.metrics
	m.session(kind)
	m.running.Add(1)
	defer m.running.Add(-1)
	sb, err := s.c.world(s.keep)
	if err != nil {
		s.say(err)
	}
	if sb == nil {
		s.exit(exitFailed)
		return
	}
	s.greet(sb, kind)
	p, err := s.start(sb, kind, text)
	if err != nil {
		s.say(err)
		s.exit(exitFailed)
		return
	}
	status, err := p.Wait(ctx)
	s.mu.Lock()
	s.done = true
	s.mu.Unlock()
	if cause := context.Cause(s.c.ctx); cause != nil {
		err = cause
	}
	if err != nil {
		s.say(err)
	}
	if t, ok := p.(interface{ Signaled() int }); ok && err == nil {
		if name := nameOf(t.Signaled()); name != "" {
			s.end("exit-signal", ssh.Marshal(exitSignal{Name: name}))
			return
		}
	}
	s.exit(status)
}

// exitFailed is the status of a session in which nothing could run, as ssh's own is.
const exitFailed = 255

func (s *session) exit(status int) { s.end("exit-status", ssh.Marshal(exitStatus{uint32(status)})) }

// end tells how the command ended, then that there is no more output. Not the other way round: a client that has sent all
// of its input closes the channel once it has all output, and nothing is heard on a closed channel.
func (s *session) end(request string, payload []byte) {
	_, _ = s.ch.SendRequest(request, false, payload)
	_ = s.ch.CloseWrite()
}

// nameOf returns the protocol's name for a signal that ended a command, "" for none.
func nameOf(sig int) string {
	for name, n := range signals {
		if n == sig {
			return name
		}
	}
	return ""
}

func (s *session) start(w world, kind, text string) (engine.Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cmd := engine.Cmd{Env: s.env, Stdin: s.ch, Stdout: s.ch, Stderr: s.ch.Stderr(), Keep: true}
	if s.size != nil && kind != "sftp" {
		size := *s.size
		cmd.TTY, cmd.Modes = &size, s.mode
	}
	p, err := w.exec(s.c.ctx, kind, text, cmd)
	if err == nil {
		s.proc = p
	}
	return p, err
}

// say tells the client what went wrong, as far as it is its business.
func (s *session) say(err error) {
	text := err.Error()
	if errs.KindOf(err) == errs.Other {
		text = "internal error; the server's log has more"
	}
	if h := errs.HintOf(err); h != "" && errs.KindOf(err) != errs.Other {
		text += "\r\n  " + h
	}
	w := s.ch.Stderr()
	s.mu.Lock()
	if s.size != nil {
		w = s.ch
	}
	s.mu.Unlock()
	_, _ = io.WriteString(w, "agentrun: "+text+"\r\n")
}

// greet says on a terminal where one is, and how a fork that is kept is called to whoever asked for it.
func (s *session) greet(w world, kind string) {
	s.mu.Lock()
	tty := s.size != nil
	s.mu.Unlock()
	s.c.mu.Lock()
	kept := s.c.kept
	s.c.mu.Unlock()
	switch {
	case kind == "shell" && tty:
		_, _ = io.WriteString(s.ch, w.greeting(kept))
	case s.keep && kept != "" && kind != "sftp":
		_, _ = io.WriteString(s.ch.Stderr(), "agentrun: "+w.keptAs(kept)+"\n")
	}
}
