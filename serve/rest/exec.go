package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"agentrun.dev"
	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
)

// Runner runs commands in sandboxes over buckets. It returns the command's exit status, or an error if it couldn't run.
// When ctx ends, so does the command.
type Runner interface {
	Run(ctx context.Context, c Command) (status int, err error)
}

// Command is what a Runner runs. Everything in it was checked: Args isn't empty, paths are absolute and clean.
type Command struct {
	Args, Env      []string
	Dir            string // "" is the first mount's path
	Mounts         []Mount
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Signals        <-chan int // signal numbers to send to the command
	TTY            *api.Size  // nil: none
	Resizes        <-chan api.Size
	// Kept asks for the forks of Mounts to outlive the command, and is told their names by path; nil: they end with it.
	Kept func(names map[string]string) error
}

// Mount is a bucket at a path of the sandbox.
type Mount struct {
	Bucket   *bucket.Info
	Path     string
	ReadOnly bool
	Fork     string // BUCKET or BUCKET@SNAPSHOT: a fork of it, instead of Bucket itself
}

// Workspace is the start directory of a sandbox, which is its first bucket.
const Workspace = "/workspace"

// shellTimeout is how long a command with a terminal may take.
const shellTimeout = 24 * time.Hour

// hello is how long a client may take to say what to run.
const hello = 10 * time.Second

// signals are those that a client may send, as Linux numbers them.
var signals = map[string]int{"HUP": 1, "INT": 2, "QUIT": 3, "KILL": 9, "USR1": 10, "USR2": 12, "TERM": 15}

// exec runs one command over buckets for the life of a WebSocket.
func (s *server) exec(w http.ResponseWriter, r *request) error {
	if s.Runner == nil {
		return errs.Msg(errs.Unsupported, "exec", "", "this server runs no commands")
	}
	return s.upgraded(w, r, s.execs, s.run)
}

// upgraded makes a WebSocket of a request, and runs something on it that ends in a status. tokens bounds how many there are.
func (s *server) upgraded(w http.ResponseWriter, r *request, tokens chan struct{}, run func(r *request, x *session) (int, error)) error {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return errs.Msg(errs.Invalid, "exec", "", "want a WebSocket with subprotocol "+api.ExecProtocol)
	}
	select {
	case tokens <- struct{}{}:
		defer func() { <-tokens }()
	default:
		w.Header().Set("Retry-After", "1")
		return errs.Msg(errs.Limit, "exec", "", fmt.Sprintf("%d commands are running already", cap(tokens)))
	}
	r.begun = true
	conn, err := websocket.Accept(w, r.Request, &websocket.AcceptOptions{Subprotocols: []string{api.ExecProtocol}})
	if err != nil {
		return nil // answered by Accept
	}
	x := &session{conn: conn, stdin: newInput(), patience: s.patience}
	defer x.reader.Wait()
	defer conn.CloseNow() // ends the reader
	if conn.Subprotocol() != api.ExecProtocol {
		conn.Close(websocket.StatusPolicyViolation, "want subprotocol "+api.ExecProtocol)
		return nil
	}
	conn.SetReadLimit(api.MaxBody)
	status, err := run(r, x)
	last := api.Control{Exit: &status}
	if err != nil {
		p := s.problem(r, err, nil)
		last = api.Control{Error: &p}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), hello)
	defer cancel()
	if x.control(ctx, last) == nil {
		conn.Close(websocket.StatusNormalClosure, "")
	}
	return nil
}

// hello reads what to run.
func (x *session) hello(r *request) (*api.Exec, error) {
	ctx, cancel := context.WithTimeout(r.Context(), hello)
	defer cancel()
	typ, b, err := x.conn.Read(ctx)
	if err != nil {
		return nil, errs.New(errs.Canceled, "exec", "", err)
	}
	var e api.Exec
	if typ != websocket.MessageText {
		return nil, errs.Msg(errs.Invalid, "exec", "", "the first message says what to run, as text")
	}
	if err := r.shapes.decode(b, &e); err != nil {
		return nil, err
	}
	return &e, nil
}

// begin lets the client send, under a time limit. stop ends what runs; done gives back what begin took.
func (s *server) begin(r *request, x *session, e *api.Exec, what string) (ctx context.Context, done func(), err error) {
	timeout := s.ExecTimeout
	if e.TTY != nil {
		timeout = max(timeout, shellTimeout) // somebody sits there
	}
	if t := time.Duration(e.Timeout) * time.Second; t > 0 && t < timeout {
		timeout = t
	}
	late := errs.Msg(errs.Limit, "exec", what, fmt.Sprintf("ended after %v", timeout))
	ctx, cancel := context.WithTimeoutCause(r.Context(), timeout, late)
	ctx, stop := context.WithCancelCause(ctx)
	done = func() { stop(nil); cancel() }
	x.ctx, x.shapes = ctx, r.shapes
	x.signals, x.resizes = make(chan int, 16), make(chan api.Size, 1)
	if err := x.control(ctx, api.Control{Window: api.StdinWindow}); err != nil {
		done()
		return nil, nil, errs.New(errs.Canceled, "exec", what, err)
	}
	x.reader.Go(func() { x.read(r.Context(), stop) })
	return ctx, done, nil
}

// run reads what to run over buckets, and runs it.
func (s *server) run(r *request, x *session) (int, error) {
	e, err := x.hello(r)
	if err != nil {
		return 0, err
	}
	c, err := s.command(r, e)
	if err != nil {
		return 0, err
	}
	ctx, done, err := s.begin(r, x, e, c.Args[0])
	if err != nil {
		return 0, err
	}
	defer done()
	c.Stdin, c.Signals, c.Resizes = x, x.signals, x.resizes
	if e.Keep {
		c.Kept = func(names map[string]string) error {
			kept := []api.Mount{}
			for _, m := range c.Mounts {
				if name := names[m.Path]; name != "" {
					kept = append(kept, api.Mount{Bucket: name, Path: m.Path})
				}
			}
			return x.control(ctx, api.Control{Kept: kept})
		}
	}
	c.Stdout, c.Stderr = x.output(api.Stdout), x.output(api.Stderr)
	status, err := s.Runner.Run(ctx, *c)
	x.stdin.close()
	if cause := context.Cause(ctx); cause != nil {
		return 0, cause
	}
	return status & 0xff, err
}

// command checks what a client wants to run.
func (s *server) command(r *request, e *api.Exec) (*Command, error) {
	bad := func(thing, text string) error { return errs.Msg(errs.Invalid, "exec", clip(thing), text) }
	if err := checkCommand(e.Args, e.Env, e.Dir); err != nil {
		return nil, err
	}
	if e.Code != "" || e.Language != "" || e.Session != "" || e.Attach != 0 || e.Root {
		return nil, bad("exec", "code, language, session, attach and root are for sandboxes that there are: GET /v1/sandboxes/{id}/exec")
	}
	if len(e.Mounts) == 0 || len(e.Mounts) > api.MaxMounts {
		return nil, bad("mounts", fmt.Sprintf("want 1 to %d buckets", api.MaxMounts))
	}
	if err := checkLimits(e); err != nil {
		return nil, err
	}
	if !r.key.MayRun() {
		return nil, errs.Msg(errs.Denied, "exec", "", "this key may only look")
	}
	if e.Keep && !r.key.Allows(access.Manage, agentrun.RefID{}) {
		return nil, errs.Msg(errs.Denied, "exec", "keep", "only a root key may keep forks")
	}
	c := &Command{Args: e.Args, Env: e.Env, Dir: e.Dir, TTY: e.TTY}
	taken := map[string]bool{"/": true, "/dev": true, "/proc": true}
	for i, m := range e.Mounts {
		at := m.Path
		switch {
		case at == "" && i == 0:
			at = Workspace
		case at == "":
			at = "/" + m.Bucket
		case !path.IsAbs(at) || len(at) > 4096:
			return nil, bad(at, "a mount's path must be absolute, of at most 4096 bytes")
		}
		at = path.Clean(at)
		if taken[at] {
			return nil, bad(at, "there can't be a bucket mounted here, or is one already")
		}
		taken[at] = true
		action, name, fork := access.Write, m.Bucket, ""
		if m.ReadOnly || m.Fork {
			action = access.Read // a fork is a copy that ends with the command
		}
		if m.Fork {
			fork = m.Bucket
			name, _, _ = strings.Cut(m.Bucket, "@")
		}
		info, err := s.allowed(r, action, name)
		if err != nil {
			return nil, err
		}
		c.Mounts = append(c.Mounts, Mount{Bucket: info, Path: at, ReadOnly: m.ReadOnly, Fork: fork})
	}
	return c, nil
}

// checkCommand checks what every command has.
func checkCommand(args, env []string, dir string) error {
	bad := func(thing, text string) error { return errs.Msg(errs.Invalid, "exec", clip(thing), text) }
	if len(args) == 0 || args[0] == "" {
		return bad("args", "no command")
	}
	size := 0
	for _, list := range [][]string{args, env} {
		for _, a := range list {
			if strings.IndexByte(a, 0) >= 0 {
				return bad("args", "a NUL byte has no place in arguments and environment")
			}
			size += len(a) + 1
		}
	}
	if size > api.MaxArgs {
		return errs.Msg(errs.TooLarge, "exec", clip(args[0]), fmt.Sprintf("arguments and environment take more than %d bytes", api.MaxArgs))
	}
	for _, v := range env {
		if strings.IndexByte(v, '=') <= 0 {
			return bad(v, "an environment variable is NAME=VALUE")
		}
	}
	if dir != "" && !path.IsAbs(dir) || strings.IndexByte(dir, 0) >= 0 {
		return bad(dir, "the directory must be absolute")
	}
	return nil
}

func checkLimits(e *api.Exec) error {
	if e.Timeout < 0 || e.Timeout > 1e9 {
		return errs.Msg(errs.Invalid, "exec", "timeout", "want seconds from 0 to 1e9")
	}
	if t := e.TTY; t != nil && !validSize(t) {
		return errs.Msg(errs.Invalid, "exec", "tty", fmt.Sprintf("a terminal has 0 to %d columns and rows", api.MaxSize))
	}
	return nil
}

func validSize(t *api.Size) bool {
	return t.Cols >= 0 && t.Rows >= 0 && t.Cols <= api.MaxSize && t.Rows <= api.MaxSize
}

// session is the server's end of a running command's socket.
type session struct {
	conn     *websocket.Conn
	ctx      context.Context // of the command
	shapes   *shapes
	patience time.Duration
	stdin    *input
	signals  chan int
	resizes  chan api.Size  // holds the newest one
	reader   sync.WaitGroup // of read, which ends with the socket
}

func (x *session) control(ctx context.Context, c api.Control) error {
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return x.conn.Write(ctx, websocket.MessageText, b)
}

// send sends a frame of output.
func (x *session) send(frame []byte) error {
	ctx, cancel := context.WithTimeout(x.ctx, x.patience)
	defer cancel()
	return x.conn.Write(ctx, websocket.MessageBinary, frame)
}

// emit sends output of a stream.
func (x *session) emit(stream byte, b []byte) error {
	_, err := x.output(stream).Write(b)
	return err
}

// Read is the command's standard input. What was taken is granted to the client again.
func (x *session) Read(p []byte) (int, error) {
	n, grant, err := x.stdin.read(p)
	if grant > 0 {
		if err := x.control(x.ctx, api.Control{Window: int64(grant)}); err != nil {
			return n, io.EOF
		}
	}
	return n, err
}

// Close gives up the rest of the standard input, for whoever holds it as a file.
func (x *session) Close() error {
	x.stdin.close()
	return nil
}

// read takes what the client sends until the socket ends, which ends the command.
func (x *session) read(ctx context.Context, stop context.CancelCauseFunc) {
	gone := errs.Msg(errs.Canceled, "exec", "", "the client has gone")
	defer x.stdin.close()
	for {
		typ, b, err := x.conn.Read(ctx)
		if err != nil {
			stop(gone)
			return
		}
		if typ == websocket.MessageBinary {
			if len(b) == 0 || b[0] != api.Stdin || len(b) > 1+api.MaxFrame || !x.stdin.write(b[1:]) {
				stop(errs.Msg(errs.Invalid, "exec", "stdin", "a malformed frame, or more than the window allows"))
				return
			}
			continue
		}
		var c api.Control
		if err := x.shapes.decode(b, &c); err != nil {
			stop(err)
			return
		}
		switch {
		case c.EOF:
			x.stdin.end()
		case c.Resize != nil:
			if !validSize(c.Resize) {
				stop(errs.Msg(errs.Invalid, "exec", "resize", "no such size"))
				return
			}
			select { // one that nobody took yet is out of date
			case <-x.resizes:
			default:
			}
			x.resizes <- *c.Resize
		case c.Signal != "":
			n, ok := signals[strings.TrimPrefix(c.Signal, "SIG")]
			if !ok {
				stop(errs.Msg(errs.Invalid, "exec", clip(c.Signal), "no such signal"))
				return
			}
			select {
			case x.signals <- n:
			default: // as a kernel does with signals that are pending already
			}
		}
	}
}

// output sends one of the command's streams. A client that doesn't take it holds up the command, for a while, and is cut off
// then.
type output struct {
	x     *session
	mu    sync.Mutex
	frame []byte // the stream's number, then the bytes
}

func (x *session) output(stream byte) *output { return &output{x: x, frame: []byte{stream}} }

func (o *output) Write(p []byte) (n int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(p) > 0 {
		part := p[:min(len(p), api.MaxFrame)]
		o.frame = append(o.frame[:1], part...)
		if err := o.x.send(o.frame); err != nil {
			return n, err
		}
		n += len(part)
		p = p[len(part):]
	}
	return n, nil
}

// input holds standard input between the socket and the command: at most api.StdinWindow bytes.
type input struct {
	mu     sync.Mutex
	more   sync.Cond
	buf    []byte
	ungive int // bytes taken, but not yet granted again
	ended  bool
	closed bool
}

func newInput() *input {
	i := &input{}
	i.more.L = &i.mu
	return i
}

// write adds bytes; false means that the client sent more than it may.
func (i *input) write(b []byte) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended || len(i.buf)+i.ungive+len(b) > api.StdinWindow {
		return false
	}
	if !i.closed {
		i.buf = append(i.buf, b...)
		i.more.Broadcast()
	}
	return true
}

// read waits for bytes. grant is how many the client may be granted again: not each byte by itself.
func (i *input) read(p []byte) (n, grant int, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for len(i.buf) == 0 && !i.ended && !i.closed {
		i.more.Wait()
	}
	if i.closed || len(i.buf) == 0 {
		return 0, 0, io.EOF
	}
	n = copy(p, i.buf)
	i.buf = i.buf[n:]
	i.ungive += n
	if !i.ended && (i.ungive >= api.StdinWindow/4 || len(i.buf) == 0) {
		grant, i.ungive = i.ungive, 0
	}
	return n, grant, nil
}

// end says that nothing follows.
func (i *input) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ended = true
	i.more.Broadcast()
}

// saidEnd reports whether the client said that nothing follows.
func (i *input) saidEnd() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.ended
}

// close drops what nobody will read.
func (i *input) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed, i.buf = true, nil
	i.more.Broadcast()
}
