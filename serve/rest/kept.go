package rest

import (
	"context"
	"io"
	"sync"

	"agentrun.dev/api"
	"agentrun.dev/control"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
)

// maxBacklog bounds what is held of a kept command's output for whoever takes it up, in bytes.
const maxBacklog = 1 << 20

// kept are the commands that go on without a client, by sandbox and number: those in the background, and those that a client said to keep
// or took up. A command that was carried over into a fork, or slept, isn't here any more: its node has its output then.
type kept struct {
	mu sync.Mutex
	m  map[keptID]*keptCommand
}

type keptID struct {
	sandbox string
	pid     int
}

// keptCommand is one of them. Its output goes to its client, if it has one, and its newest part is held for the next.
type keptCommand struct {
	held  *held
	input keptInput
	p     engine.Process
	done  chan struct{} // closed when it has ended
	end   struct {
		status int
		err    error
	}

	mu      sync.Mutex // also held while the client is written to, so that output comes in its order
	backlog []chunk
	size    int
	client  *session
}

// chunk is a piece of output.
type chunk struct {
	stream byte
	b      []byte
}

// start starts a command by a function, keeps it until it has ended, and returns it. x, if it isn't nil, is its first client.
func (k *kept) start(h *held, sandbox string, x *session, c engine.Cmd, start func(engine.Cmd) (engine.Process, error)) (*keptCommand, error) {
	kc := &keptCommand{held: h, done: make(chan struct{}), client: x}
	kc.input.more.L = &kc.input.mu
	kc.input.client = x
	if c.Stdin == nil && x != nil {
		c.Stdin = &kc.input
	}
	c.Stdout, c.Stderr = kc.writer(api.Stdout), kc.writer(api.Stderr)
	p, err := start(c)
	if err != nil {
		kc.input.close()
		return nil, err
	}
	kc.p = p
	id := keptID{sandbox, p.Pid()}
	k.mu.Lock()
	if k.m == nil {
		k.m = map[keptID]*keptCommand{}
	}
	k.m[id] = kc
	k.mu.Unlock()
	go func() { // it ends with the command, which ends by itself, with its sandbox, or with the node
		kc.end.status, kc.end.err = p.Wait(context.Background())
		k.mu.Lock()
		if k.m[id] == kc {
			delete(k.m, id)
		}
		k.mu.Unlock()
		kc.input.close()
		close(kc.done)
		kc.mu.Lock()
		kc.forget(0)
		kc.mu.Unlock()
	}()
	return kc, nil
}

// find returns a command that is kept, or nil.
func (k *kept) find(sandbox string, pid int) *keptCommand {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.m[keptID{sandbox, pid}]
}

// writer takes one of the command's streams.
func (k *keptCommand) writer(stream byte) io.Writer {
	return writerFunc(func(b []byte) (int, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.remember(stream, b)
		if k.client != nil && k.client.emit(stream, b) != nil {
			k.client = nil
		}
		return len(b), nil
	})
}

// remember holds output, in place of the oldest. k.mu is held.
func (k *keptCommand) remember(stream byte, b []byte) {
	b = b[max(0, len(b)-maxBacklog):]
	k.forget(maxBacklog - len(b))
	for !k.held.take(len(b)) {
		if k.size == 0 {
			return
		}
		k.forget(k.size / 2)
	}
	k.backlog = append(k.backlog, chunk{stream, append([]byte(nil), b...)})
	k.size += len(b)
}

// forget drops the oldest output until no more than so many bytes are left. k.mu is held.
func (k *keptCommand) forget(most int) {
	for k.size > most {
		n := len(k.backlog[0].b)
		k.backlog, k.size = k.backlog[1:], k.size-n
		k.held.n.Add(int64(-n))
	}
}

// attach gives the command a client, which gets what it has written, and then what it writes.
func (k *keptCommand) attach(x *session) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.client != nil {
		return errs.Msg(errs.Exists, "attach", "", "the command has a client already")
	}
	for _, c := range k.backlog {
		if err := x.emit(c.stream, c.b); err != nil {
			return errs.New(errs.Canceled, "attach", "", err)
		}
	}
	k.client = x
	k.input.give(x)
	return nil
}

// detach takes it away again.
func (k *keptCommand) detach(x *session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.client == x {
		k.client = nil
	}
}

// serve is the client's time with the command: until either ends. ctx ends with the client.
func (k *keptCommand) serve(ctx context.Context, x *session) (int, error) {
	defer k.detach(x)
	defer x.stdin.close()
	if err := x.control(ctx, api.Control{Pid: k.p.Pid()}); err != nil {
		return 0, errs.New(errs.Canceled, "exec", "", err)
	}
	stopped := make(chan struct{})
	defer close(stopped)
	go x.forward(k.p, stopped)
	select {
	case <-k.done:
		return k.end.status & 0xff, k.end.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// keepIn runs a command that goes on when its client goes, or takes one up.
func (s *server) keepIn(ctx context.Context, u *control.Session, x *session, e *api.Exec, c engine.Cmd) (int, error) {
	if e.Attach != 0 {
		if k := s.kept.find(u.Sandbox.ID, e.Attach); k != nil {
			if err := k.attach(x); err != nil {
				x.stdin.close()
				return 0, err
			}
			return k.serve(ctx, x)
		}
	}
	k, err := s.kept.start(&s.held, u.Sandbox.ID, x, c, func(c engine.Cmd) (engine.Process, error) {
		if e.Attach != 0 {
			return u.Attach(ctx, e.Attach, c)
		}
		return u.Exec(ctx, c)
	})
	if err != nil {
		x.stdin.close()
		return 0, err
	}
	return k.serve(ctx, x)
}

// keptInput is the standard input of a command whose clients come and go. It ends when one of them says so.
type keptInput struct {
	mu     sync.Mutex
	more   sync.Cond
	client *session
	ended  bool
}

func (i *keptInput) give(x *session) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.client = x
	i.more.Broadcast()
}

func (i *keptInput) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ended = true
	i.more.Broadcast()
}

// Read implements io.Reader.
func (i *keptInput) Read(p []byte) (int, error) {
	for {
		i.mu.Lock()
		for i.client == nil && !i.ended {
			i.more.Wait()
		}
		x, ended := i.client, i.ended
		i.mu.Unlock()
		if ended {
			return 0, io.EOF
		}
		n, err := x.Read(p)
		if err == nil || n > 0 {
			return n, nil
		}
		i.mu.Lock()
		if x.stdin.saidEnd() {
			i.ended = true
		} else if i.client == x {
			i.client = nil // it went
		}
		i.mu.Unlock()
	}
}
