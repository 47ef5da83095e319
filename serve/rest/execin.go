package rest

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/control"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// execIn answers GET /v1/sandboxes/{id}/exec: a command, or a text, for the life of a WebSocket. What can be refused is refused
// before there is a socket.
func (s *server) execIn(w http.ResponseWriter, r *request) error {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return errs.Msg(errs.Invalid, "exec", "", "want a WebSocket with subprotocol "+api.ExecProtocol+", or POST")
	}
	u, err := s.use(r, access.SandboxExec)
	if err != nil {
		return err
	}
	defer u.Close()
	return s.upgraded(w, r, s.runs, func(r *request, x *session) (int, error) {
		e, err := x.hello(r)
		if err != nil {
			return 0, err
		}
		if err := checkExecIn(e); err != nil {
			return 0, err
		}
		ctx, done, err := s.begin(r, x, e, clip(strings.Join(e.Args, " ")))
		if err != nil {
			return 0, err
		}
		defer done()
		if e.Code != "" {
			return s.codeIn(ctx, u, x, e)
		}
		return s.commandIn(ctx, u, x, e)
	})
}

// checkExecIn checks what a client wants to run in a sandbox that there is.
func checkExecIn(e *api.Exec) error {
	bad := func(thing, text string) error { return errs.Msg(errs.Invalid, "exec", thing, text) }
	ways := 0
	for _, set := range []bool{len(e.Args) > 0, e.Code != "", e.Attach != 0} {
		if set {
			ways++
		}
	}
	switch {
	case ways != 1:
		return bad("", "want one of args, code and attach")
	case len(e.Mounts) > 0:
		return bad("mounts", "the sandbox has its own")
	case e.Attach < 0:
		return bad("attach", "want the number of a process")
	case e.Attach > 0 && (len(e.Env) > 0 || e.Dir != "" || e.Root || e.TTY != nil):
		return bad("attach", "the process has its own environment, directory, user and terminal")
	case e.Code != "" && (e.TTY != nil || e.Root || e.Keep):
		return bad("code", "a text has no terminal, isn't run as root and doesn't outlive its client: use args")
	}
	args := e.Args
	if len(args) == 0 {
		args = []string{"-"}
	}
	if err := checkCommand(args, e.Env, e.Dir); err != nil {
		return err
	}
	if err := checkText(e.Code, e.Language, e.Session); err != nil {
		return err
	}
	return checkLimits(e)
}

// codeIn runs a text. A signal that ends programs ends it.
func (s *server) codeIn(ctx context.Context, u *control.Session, x *session, e *api.Exec) (int, error) {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	var sent atomic.Int64
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			select {
			case sig := <-x.signals:
				if sig != 10 && sig != 12 {
					sent.Store(int64(sig))
					cancel()
				}
			case <-x.resizes:
			case <-ended:
				return
			}
		}
	}()
	begun := time.Now()
	res, err := u.Code(limited, node.Code{Text: e.Code, Language: e.Language, Default: u.Sandbox.Language, Session: e.Session, Env: e.Env, Dir: e.Dir,
		Stdin: x, Stdout: x.output(api.Stdout), Stderr: x.output(api.Stderr)})
	x.stdin.close()
	if cause := context.Cause(ctx); cause != nil {
		return 0, cause
	}
	if sig := sent.Load(); sig != 0 && err != nil {
		return 128 + int(sig), nil
	}
	if err != nil {
		return 0, err
	}
	status := res.Status & 0xff
	out := api.RunResult{ExitCode: status, Result: res.Result, Language: res.Language, Duration: time.Since(begun).Seconds()}
	if err := x.control(ctx, api.Control{Result: &out}); err != nil {
		return 0, errs.New(errs.Canceled, "exec", "", err)
	}
	return status, nil
}

// commandIn runs a command, or takes one up. What is taken up, or is to be kept, goes on when the client goes.
func (s *server) commandIn(ctx context.Context, u *control.Session, x *session, e *api.Exec) (int, error) {
	c := engine.Cmd{Args: e.Args, Env: e.Env, Dir: e.Dir, Root: e.Root, Keep: e.Keep}
	if e.TTY != nil {
		c.TTY = &engine.Size{Cols: e.TTY.Cols, Rows: e.TTY.Rows}
	}
	if e.Keep || e.Attach != 0 {
		return s.keepIn(ctx, u, x, e, c)
	}
	c.Stdin, c.Stdout, c.Stderr = x, x.output(api.Stdout), x.output(api.Stderr)
	defer x.stdin.close()
	p, err := u.Exec(ctx, c)
	if err != nil {
		return 0, err
	}
	ended := make(chan struct{})
	defer close(ended)
	if x.control(ctx, api.Control{Pid: p.Pid()}) == nil { // else the client has gone, which ctx tells, too
		go x.forward(p, ended)
	}
	status, err := p.Wait(ctx)
	if cause := context.Cause(ctx); cause != nil {
		return 0, cause
	}
	return status & 0xff, err
}

// forward passes signals and sizes on until the command has ended.
func (x *session) forward(p engine.Process, ended <-chan struct{}) {
	for {
		select {
		case sig := <-x.signals:
			_ = p.Signal(sig) // it has ended, or doesn't know the signal
		case size := <-x.resizes:
			_ = p.Resize(engine.Size{Cols: size.Cols, Rows: size.Rows}) // it has ended, or has no terminal
		case <-ended:
			return
		}
	}
}
