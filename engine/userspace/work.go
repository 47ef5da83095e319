package userspace

import (
	"context"
	"sync"
	"time"

	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

var _ engine.Worker = (*Engine)(nil)

// Work implements engine.Worker: the command's program runs in a sandbox of its own that is nothing but these files, without the userland's.
// It has no terminal.
func (e *Engine) Work(_ context.Context, files *vfs.Namespace, c Cmd) (engine.Process, error) {
	if len(c.Args) == 0 {
		return nil, errs.Msg(errs.Invalid, "exec", "", "no command")
	}
	program, ok := e.o.Commands.Lookup(c.Args[0])
	if !ok || c.TTY != nil {
		return nil, errs.Msg(errs.Unsupported, "exec", c.Args[0], "there is no such command without a terminal")
	}
	s := &Sandbox{id: c.Args[0], started: time.Now(), ns: files, commands: map[int]*Process{}}
	s.base = base{commands: e.o.Commands, load: e.o.Load, dir: "/", cred: vfs.Cred{UID: UID, GID: GID, Umask: 0o022}}
	s.env = mergeEnv([]string{"HOME=" + Home, "USER=" + User, "LOGNAME=" + User}, nil)
	var err error
	if s.sb, err = proc.New(proc.Options{Namespace: files, Commands: e.o.Commands}); err != nil {
		return nil, err
	}
	p := &Process{s: s}
	if p.p, err = s.process(c, nil); err != nil {
		return nil, err
	}
	s.commands[p.p.Pid()] = p
	p.p.Start(program)
	return &worker{Process: p}, nil
}

// worker is a command whose sandbox ends with it.
type worker struct {
	*Process
	once sync.Once
}

// Wait implements engine.Process.
func (w *worker) Wait(ctx context.Context) (int, error) {
	status, err := w.Process.Wait(ctx)
	w.once.Do(func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainGrace)
		defer cancel()
		_ = w.s.sb.Close(end) // nothing runs in it any more
	})
	return status, err
}
