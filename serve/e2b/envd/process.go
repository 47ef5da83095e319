package envd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	"agentrun.dev/access"
	"agentrun.dev/api"
	processpb "agentrun.dev/api/gen/e2b/process"
	"agentrun.dev/control"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
)

// processes implements E2B's service of commands.
type processes struct{ h *Handler }

// List implements the service: what was begun here, and what runs besides, such as what slept.
func (p processes) List(ctx context.Context, r *connect.Request[processpb.ListRequest]) (*connect.Response[processpb.ListResponse], error) {
	w, err := p.h.begin(ctx, r.Header(), access.SandboxRead)
	if err != nil {
		return nil, p.h.wire(ctx, err)
	}
	defer w.Close()
	all, err := w.Processes(ctx)
	if err != nil {
		return nil, p.h.wire(ctx, err)
	}
	known := p.h.commands.list(w.Sandbox.ID)
	out := &processpb.ListResponse{}
	for _, c := range known {
		out.Processes = append(out.Processes, &processpb.ProcessInfo{Pid: uint32(c.pid), Tag: c.tag, Config: c.config})
	}
	for _, x := range all {
		if known[x.Pid] == nil {
			out.Processes = append(out.Processes, &processpb.ProcessInfo{Pid: uint32(x.Pid), Config: configOf(x)})
		}
	}
	slices.SortFunc(out.Processes, func(a, b *processpb.ProcessInfo) int { return cmp.Compare(a.GetPid(), b.GetPid()) })
	return connect.NewResponse(out), nil
}

func configOf(x engine.Running) *processpb.ProcessConfig {
	c := &processpb.ProcessConfig{}
	if len(x.Args) > 0 {
		c.Cmd = strings.ToValidUTF8(x.Args[0], "\ufffd")
		for _, a := range x.Args[1:] {
			c.Args = append(c.Args, strings.ToValidUTF8(a, "\ufffd"))
		}
	}
	return c
}

// Start implements the service.
func (p processes) Start(ctx context.Context, r *connect.Request[processpb.StartRequest], out *connect.ServerStream[processpb.StartResponse]) error {
	give, err := p.h.stream()
	if err != nil {
		return err
	}
	defer give()
	c, first, err := p.start(ctx, r)
	if err != nil {
		return p.h.wire(ctx, err)
	}
	defer p.h.commands.leave(c.sandbox)
	return p.follow(ctx, r.Header(), c, first, func(e *processpb.ProcessEvent) error { return out.Send(&processpb.StartResponse{Event: e}) })
}

// start begins a command. Without an error a place among the sandbox's streams was taken.
func (p processes) start(ctx context.Context, r *connect.Request[processpb.StartRequest]) (c *command, first *follower, err error) {
	cmd, err := cmdOf(r.Msg)
	if err != nil {
		return nil, nil, err
	}
	limit, err := timeLimit(r.Header())
	if err != nil {
		return nil, nil, err
	}
	w, err := p.h.begin(ctx, r.Header(), access.SandboxExec)
	if err != nil {
		return nil, nil, err
	}
	defer w.Close()
	if err := p.h.commands.enter(w.Sandbox.ID); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			p.h.commands.leave(w.Sandbox.ID)
		}
	}()
	cwd := r.Msg.GetProcess().GetCwd()
	if cmd.Dir, err = w.path(cwd); err != nil {
		return nil, nil, err
	}
	// By these, programs know where they are.
	cmd.Env = append([]string{"E2B_SANDBOX=true", "E2B_SANDBOX_ID=" + w.Sandbox.ID, "E2B_TEMPLATE_ID=" + w.Sandbox.Template}, cmd.Env...)
	if cmd.Root = w.root(); cmd.Root {
		cmd.Env = append([]string{"HOME=" + w.home, "USER=" + w.name, "LOGNAME=" + w.name}, cmd.Env...)
	}
	c = &command{tag: r.Msg.Tag, config: r.Msg.GetProcess(), tty: cmd.TTY != nil, out: followers{patience: p.h.o.Patience}}
	if c.tty || r.Msg.Stdin == nil || r.Msg.GetStdin() {
		c.in = &input{}
	}
	c.streams(&cmd)
	first, err = p.h.commands.run(ctx, w.Session, c, limit, func() (engine.Process, error) {
		x, err := w.Exec(ctx, cmd)
		if errs.Is(err, errs.NotFound) && cwd == "" && w.missing(ctx, cmd.Dir) {
			cmd.Dir = "/"
			x, err = w.Exec(ctx, cmd)
		}
		return x, err
	})
	if errs.Is(err, errs.NotFound) {
		if w.missing(ctx, cmd.Dir) {
			return nil, nil, invalid(fmt.Sprintf("cwd '%s' does not exist", clip(cmd.Dir)))
		}
		return nil, nil, ofUse(err)
	}
	return c, first, err
}

// missing tells whether a directory isn't there, in a sandbox that is.
func (w *work) missing(ctx context.Context, dir string) bool {
	f, err := w.files(ctx)
	if err != nil {
		return false
	}
	_, _, err = f.List(ctx, dir, 1, 1, "")
	return errs.Is(err, errs.NotFound) || errs.Is(err, errs.Invalid)
}

// cmdOf checks what a client wants to run.
func cmdOf(r *processpb.StartRequest) (engine.Cmd, error) {
	config := r.GetProcess()
	c := engine.Cmd{Args: append([]string{config.GetCmd()}, config.GetArgs()...), Keep: true}
	if c.Args[0] == "" {
		return c, invalid("there is no command")
	}
	for _, k := range slices.Sorted(maps.Keys(config.GetEnvs())) {
		if k == "" || strings.Contains(k, "=") {
			return c, invalid(fmt.Sprintf("no variable can have the name '%s'", clip(k)))
		}
		c.Env = append(c.Env, k+"="+config.GetEnvs()[k])
	}
	size := 0
	for _, list := range [][]string{c.Args, c.Env} {
		for _, a := range list {
			if strings.IndexByte(a, 0) >= 0 {
				return c, invalid("a NUL byte has no place in arguments and environment")
			}
			size += len(a) + 1
		}
	}
	if size > api.MaxArgs {
		return c, invalid(fmt.Sprintf("argument list too long: arguments and environment take more than %d bytes", api.MaxArgs))
	}
	if r.Pty != nil {
		s, err := sizeOf(r.GetPty())
		if err != nil {
			return c, err
		}
		c.TTY = &s
	}
	return c, nil
}

func sizeOf(p *processpb.PTY) (engine.Size, error) {
	s := p.GetSize()
	if s.GetCols() > api.MaxSize || s.GetRows() > api.MaxSize {
		return engine.Size{}, invalid(fmt.Sprintf("a terminal has at most %d columns and rows", api.MaxSize))
	}
	return engine.Size{Cols: int(s.GetCols()), Rows: int(s.GetRows())}, nil
}

// timeLimit is how long a client lets its command run; 0: for ever.
func timeLimit(header http.Header) (time.Duration, error) {
	v := header.Get("Connect-Timeout-Ms")
	if v == "" {
		return 0, nil
	}
	ms, err := strconv.ParseUint(v, 10, 40)
	if err != nil {
		return 0, invalid("Connect-Timeout-Ms: want milliseconds")
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// Intervals at which streams without news say that they are alive.
const (
	keepalive    = 90 * time.Second
	minKeepalive = time.Second
	maxKeepalive = time.Hour
)

// alive is the interval that a client asks for.
func alive(header http.Header) time.Duration {
	n, err := strconv.ParseUint(header.Get("Keepalive-Ping-Interval"), 10, 16)
	if err != nil || n == 0 {
		return keepalive
	}
	return min(max(time.Duration(n)*time.Second, minKeepalive), maxKeepalive)
}

// follow tells a stream of a command until it has ended.
func (p processes) follow(ctx context.Context, header http.Header, c *command, f *follower, send func(*processpb.ProcessEvent) error) error {
	defer c.out.remove(f)
	if err := send(&processpb.ProcessEvent{Event: &processpb.ProcessEvent_Start{Start: &processpb.ProcessEvent_StartEvent{Pid: uint32(c.pid)}}}); err != nil {
		return err
	}
	interval := alive(header)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	data := func(e *processpb.ProcessEvent_DataEvent) error {
		ticker.Reset(interval)
		return send(&processpb.ProcessEvent{Event: &processpb.ProcessEvent_Data{Data: e}})
	}
	for {
		var err error
		select {
		case <-ctx.Done():
			return p.h.wire(ctx, errs.New(errs.Canceled, "follow command", "", ctx.Err()))
		case e := <-f.events:
			err = data(e)
		case <-f.cut:
			return p.h.wire(ctx, errs.Msg(errs.Limit, "follow command", "", "the client doesn't take what the command writes"))
		case <-ticker.C:
			err = send(&processpb.ProcessEvent{Event: &processpb.ProcessEvent_Keepalive{Keepalive: &processpb.ProcessEvent_KeepAlive{}}})
		case <-c.done:
			return p.last(ctx, c, f, data, send)
		}
		if err != nil {
			return err
		}
	}
}

// last tells what is left of a command that has ended.
func (p processes) last(ctx context.Context, c *command, f *follower, data func(*processpb.ProcessEvent_DataEvent) error, send func(*processpb.ProcessEvent) error) error {
	for {
		select {
		case e := <-f.events:
			if err := data(e); err != nil {
				return err
			}
			continue
		default:
		}
		break
	}
	if c.end == nil {
		panic(http.ErrAbortHandler) // the sandbox is gone, and with it the connection
	}
	if _, limited := ctx.Deadline(); limited && c.late {
		return p.h.wire(ctx, context.DeadlineExceeded)
	}
	return send(&processpb.ProcessEvent{Event: &processpb.ProcessEvent_End{End: c.end}})
}

// Connect implements the service.
func (p processes) Connect(ctx context.Context, r *connect.Request[processpb.ConnectRequest], out *connect.ServerStream[processpb.ConnectResponse]) error {
	give, err := p.h.stream()
	if err != nil {
		return err
	}
	defer give()
	c, f, err := p.take(ctx, r.Header(), r.Msg.GetProcess())
	if err != nil {
		return p.h.wire(ctx, err)
	}
	defer p.h.commands.leave(c.sandbox)
	return p.follow(ctx, r.Header(), c, f, func(e *processpb.ProcessEvent) error { return out.Send(&processpb.ConnectResponse{Event: e}) })
}

// take finds a command, and follows it. Without an error a place among the sandbox's streams was taken.
func (p processes) take(ctx context.Context, header http.Header, of *processpb.ProcessSelector) (*command, *follower, error) {
	w, err := p.h.begin(ctx, header, access.SandboxExec)
	if err != nil {
		return nil, nil, err
	}
	defer w.Close()
	if err := p.h.commands.enter(w.Sandbox.ID); err != nil {
		return nil, nil, err
	}
	c, f, err := p.find(ctx, w.Session, of)
	if err == nil && f == nil {
		f, err = c.out.add()
	}
	if err != nil {
		p.h.commands.leave(w.Sandbox.ID)
	}
	return c, f, err
}

// missing is that there is no such command.
func missing(of *processpb.ProcessSelector) error {
	if by, ok := of.GetSelector().(*processpb.ProcessSelector_Tag); ok {
		return notFound(fmt.Sprintf("process with tag %s not found", clip(by.Tag)))
	}
	return notFound(fmt.Sprintf("process with pid %d not found", of.GetPid()))
}

// find returns a command that runs, or that ended a while ago. One that isn't known here, because it slept or was forked, is taken up:
// with a follower then.
func (p processes) find(ctx context.Context, s *control.Session, of *processpb.ProcessSelector) (*command, *follower, error) {
	if c := p.h.commands.find(s.Sandbox.ID, of); c != nil {
		return c, nil, nil
	}
	by, ok := of.GetSelector().(*processpb.ProcessSelector_Pid)
	if !ok || by.Pid == 0 || by.Pid > 1<<30 {
		return nil, nil, missing(of)
	}
	all, err := s.Processes(ctx)
	if err != nil {
		return nil, nil, ofUse(err)
	}
	i := slices.IndexFunc(all, func(x engine.Running) bool { return x.Pid == int(by.Pid) })
	if i < 0 {
		return nil, nil, missing(of)
	}
	c := &command{config: configOf(all[i]), tty: all[i].TTY, in: &input{}, out: followers{patience: p.h.o.Patience}}
	cmd := engine.Cmd{}
	c.streams(&cmd)
	f, err := p.h.commands.run(ctx, s, c, 0, func() (engine.Process, error) { return s.Attach(ctx, int(by.Pid), cmd) })
	if errs.Is(err, errs.Exists) { // somebody else took it up at the same time
		if c := p.h.commands.find(s.Sandbox.ID, of); c != nil {
			return c, nil, nil
		}
	}
	if errs.Is(err, errs.NotFound) {
		err = missing(of)
	}
	return c, f, err
}

// with finds a command that runs and does something to it.
func (p processes) with(ctx context.Context, header http.Header, of *processpb.ProcessSelector, do func(c *command) error) error {
	w, err := p.h.begin(ctx, header, access.SandboxExec)
	if err != nil {
		return p.h.wire(ctx, err)
	}
	defer w.Close()
	c, f, err := p.find(ctx, w.Session, of)
	if f != nil {
		c.out.remove(f)
	}
	if err == nil && !c.running() {
		err = missing(of)
	}
	if err == nil {
		err = do(c)
	}
	return p.h.wire(ctx, err)
}

// Update implements the service: it changes the size of a terminal.
func (p processes) Update(ctx context.Context, r *connect.Request[processpb.UpdateRequest]) (*connect.Response[processpb.UpdateResponse], error) {
	err := p.with(ctx, r.Header(), r.Msg.GetProcess(), func(c *command) error {
		if r.Msg.Pty == nil {
			return nil
		}
		size, err := sizeOf(r.Msg.GetPty())
		switch {
		case err != nil:
			return err
		case !c.tty:
			return precondition("tty not assigned to process")
		}
		return c.p.Resize(size)
	})
	return answer(&processpb.UpdateResponse{}, err)
}

func precondition(text string) error {
	return problemOf(http.StatusBadRequest, connect.CodeFailedPrecondition, text)
}

// answer wraps a call's answer.
func answer[T any](v *T, err error) (*connect.Response[T], error) {
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(v), nil
}

// put hands input to a command.
func (c *command) put(ctx context.Context, of *processpb.ProcessSelector, in *processpb.ProcessInput) error {
	var b []byte
	switch x := in.GetInput().(type) {
	case *processpb.ProcessInput_Pty:
		if b = x.Pty; !c.tty {
			return precondition("error writing to tty: tty not assigned to process")
		}
	case *processpb.ProcessInput_Stdin:
		if b = x.Stdin; c.tty {
			return precondition("error writing to stdin: tty assigned to process — input should be written to the pty, not the stdin")
		}
	default:
		return problemOf(http.StatusNotImplemented, connect.CodeUnimplemented, "invalid input type")
	}
	if c.in == nil {
		return precondition("error writing to stdin: stdin not enabled or closed")
	}
	err := c.in.write(ctx, b)
	if !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	if !c.running() {
		return missing(of)
	}
	return precondition("error writing to stdin: stdin not enabled or closed")
}

// SendInput implements the service. It returns when the command has read its input, but for what it may be behind.
func (p processes) SendInput(ctx context.Context, r *connect.Request[processpb.SendInputRequest]) (*connect.Response[processpb.SendInputResponse], error) {
	of := r.Msg.GetProcess()
	err := p.with(ctx, r.Header(), of, func(c *command) error { return c.put(ctx, of, r.Msg.GetInput()) })
	return answer(&processpb.SendInputResponse{}, err)
}

// StreamInput implements the service.
func (p processes) StreamInput(ctx context.Context, in *connect.ClientStream[processpb.StreamInputRequest]) (*connect.Response[processpb.StreamInputResponse], error) {
	give, err := p.h.stream()
	if err != nil {
		return nil, err
	}
	defer give()
	var c *command
	var of *processpb.ProcessSelector
	for in.Receive() {
		switch x := in.Msg().GetEvent().(type) {
		case *processpb.StreamInputRequest_Start:
			of = x.Start.GetProcess()
			if err := p.with(ctx, in.RequestHeader(), of, func(found *command) error { c = found; return nil }); err != nil {
				return nil, err
			}
		case *processpb.StreamInputRequest_Data:
			if c == nil {
				return nil, p.h.wire(ctx, invalid("the first message says which process"))
			}
			if err := c.put(ctx, of, x.Data.GetInput()); err != nil {
				return nil, p.h.wire(ctx, err)
			}
		case *processpb.StreamInputRequest_Keepalive:
		default:
			return nil, p.h.wire(ctx, problemOf(http.StatusNotImplemented, connect.CodeUnimplemented, "invalid event type"))
		}
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	return connect.NewResponse(&processpb.StreamInputResponse{}), nil
}

// CloseStdin implements the service.
func (p processes) CloseStdin(ctx context.Context, r *connect.Request[processpb.CloseStdinRequest]) (*connect.Response[processpb.CloseStdinResponse], error) {
	err := p.with(ctx, r.Header(), r.Msg.GetProcess(), func(c *command) error {
		switch {
		case c.tty:
			return precondition("error closing stdin: tty assigned to process — send ^D to the pty instead")
		case c.in != nil:
			c.in.end()
		}
		return nil
	})
	return answer(&processpb.CloseStdinResponse{}, err)
}

// SendSignal implements the service. What wasn't begun here is signalled too.
func (p processes) SendSignal(ctx context.Context, r *connect.Request[processpb.SendSignalRequest]) (*connect.Response[processpb.SendSignalResponse], error) {
	sig := int(r.Msg.GetSignal())
	if r.Msg.GetSignal() != processpb.Signal_SIGNAL_SIGKILL && r.Msg.GetSignal() != processpb.Signal_SIGNAL_SIGTERM {
		return nil, p.h.wire(ctx, problemOf(http.StatusNotImplemented, connect.CodeUnimplemented, fmt.Sprintf("invalid signal: %d", sig)))
	}
	w, err := p.h.begin(ctx, r.Header(), access.SandboxExec)
	if err != nil {
		return nil, p.h.wire(ctx, err)
	}
	defer w.Close()
	of := r.Msg.GetProcess()
	switch c := p.h.commands.find(w.Sandbox.ID, of); {
	case c != nil && c.running():
		err = c.signal(sig)
	case c != nil || of.GetPid() == 0 || of.GetPid() > 1<<30:
		err = missing(of)
	default:
		if err = w.Signal(ctx, int(of.GetPid()), sig); errs.Is(err, errs.NotFound) {
			err = missing(of)
		}
	}
	return answer(&processpb.SendSignalResponse{}, p.h.wire(ctx, err))
}
