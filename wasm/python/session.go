package python

import (
	"context"
	"errors"
	"syscall"

	"agentrun.dev/proc"
	"agentrun.dev/wasm"
)

// Session is a live interpreter that is given one piece of code after another, as a notebook is: names, imports and open files stay. It belongs to the
// process that it is bound to and is used by that process's program, one call at a time. (Programs that python3 runs need no session to be
// forked: they are captured wherever they are.)
type Session struct {
	in     *Interpreter
	p      *proc.Process
	g      *wasm.Instance
	args   []string
	code   string
	copied bool // from an image, and hasn't run since
	begun  bool
}

// SessionImage is a session's state at a moment between two pieces of code. It never changes; all methods may be called concurrently.
type SessionImage struct {
	in   *Interpreter
	args []string
	snap *wasm.Snapshot
}

// Session begins one for p, with p's environment, directory and streams; args are its sys.argv.
func (in *Interpreter) Session(p *proc.Process, args ...string) (*Session, error) {
	if len(args) == 0 {
		args = []string{""}
	}
	s := &Session{in: in, p: p, args: args}
	g, err := in.start(p, s.config())
	if err != nil {
		return nil, err
	}
	s.g = g
	if _, err := s.enter(p.Context()); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// config answers what the interpreter asks for.
func (s *Session) config() wasm.Config {
	return wasm.Config{Quiesce: true, Call: func(p *proc.Process, op uint32, data []byte) ([]byte, error) {
		switch {
		case op == callRequest && !s.begun:
			r := request{args: s.args, executable: executable}
			r.environment(p.Environ())
			return r.encode(append([]string{"python3"}, s.args...)), nil
		case op == callRequest:
			code := "-" + s.code
			if s.copied {
				code = "+" + s.code
			}
			s.copied = false
			return []byte(code), nil
		case op >= callConnect && op <= callAdopt:
			return s.in.network(p, op, data), nil
		}
		return nil, syscall.ENOSYS
	}}
}

func (s *Session) enter(ctx context.Context) (int, error) {
	result, err := s.g.Call(ctx, "agentrun_enter")
	s.begun = true
	var exit *wasm.ExitError
	if errors.As(err, &exit) {
		return exit.Status, nil
	}
	if err != nil {
		return 1, err
	}
	return int(int32(result[0])) & 0xff, nil
}

// Exec executes code in the session's names. A last expression's value is shown as an interactive interpreter does. The status is 0; 1 after an exception, which
// is printed; what the code exited with. Errors are those of wasm.Instance.Call, after which the session can only be closed.
func (s *Session) Exec(ctx context.Context, code string) (status int, err error) {
	s.code = code
	status, err = s.enter(ctx)
	s.code = ""
	return status, err
}

// Image captures the session. Only what it has changed since it came from an image is copied.
func (s *Session) Image() (*SessionImage, error) {
	snap, err := s.g.Snapshot()
	if err != nil {
		return nil, err
	}
	return &SessionImage{s.in, s.args, snap}, nil
}

// Close ends the session without running what a program's end would run.
func (s *Session) Close() {
	s.in.hangUp(s.p)
	s.g.Close()
}

// Start begins a session as the image has it, bound to p, which has the same descriptors. What it draws at random is its own.
func (im *SessionImage) Start(p *proc.Process) (*Session, error) {
	s := &Session{in: im.in, p: p, args: im.args, copied: true, begun: true}
	g, err := im.snap.Start(p, s.config())
	if err != nil {
		return nil, err
	}
	s.g = g
	return s, nil
}

// Size returns the bytes of the interpreter's memory, and how many of them this image holds itself instead of sharing them.
func (im *SessionImage) Size() (memory, own int64) { return im.snap.Size() }

// Close lets go of the image. Sessions that were started from it live on.
func (im *SessionImage) Close() error { return im.snap.Close() }
