package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"connectrpc.com/connect"

	"agentrun.dev/api"
	pb "agentrun.dev/api/gen/agentrun/node/v1"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// Exec implements node.Host.
func (c *Client) Exec(ctx context.Context, id string, cmd engine.Cmd) (engine.Process, error) {
	return c.run(ctx, "exec", c.c.Exec, commandOut(id, 0, cmd), cmd)
}

// Attach implements node.Host.
func (c *Client) Attach(ctx context.Context, id string, pid int, cmd engine.Cmd) (engine.Process, error) {
	return c.run(ctx, "attach", c.c.Attach, commandOut(id, pid, cmd), cmd)
}

// process is a command far away.
type process struct {
	op, id string
	pid    int
	out    *sender[pb.ExecInput]
	cancel context.CancelFunc
	done   chan struct{} // closed when the two below are set
	status int
	signal int
	err    error
	pumps  sync.WaitGroup
}

// run starts a command; ctx bounds the start only.
func (c *Client) run(ctx context.Context, op string, open func(context.Context) *connect.BidiStreamForClient[pb.ExecInput, pb.ExecOutput],
	first *pb.Command, cmd engine.Cmd) (engine.Process, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	stream := open(life)
	p := &process{op: op, id: first.GetId(), cancel: cancel, done: make(chan struct{}), out: &sender[pb.ExecInput]{send: stream.Send}}
	err := p.out.put(&pb.ExecInput{What: &pb.ExecInput_Command{Command: first}})
	var early []*pb.ExecOutput                // a command may write before its number is told
	if err == nil || errors.Is(err, io.EOF) { // then Receive knows why
		early, p.pid, err = untilPid(stream)
	}
	if err != nil || !stop() {
		err = fromWire(ctx, op, p.id, err)
		cancel()
		if err == nil {
			err = errs.New(errs.Canceled, op, p.id, context.Cause(ctx))
		}
		return nil, err
	}
	granted := newCredit()
	p.pumps.Go(func() {
		pump(life, cmd.Stdin, granted,
			func(b []byte) error { return p.out.put(&pb.ExecInput{What: &pb.ExecInput_Stdin{Stdin: b}}) },
			func() error { return p.out.put(&pb.ExecInput{What: &pb.ExecInput_Eof{Eof: true}}) })
	})
	p.pumps.Go(func() {
		p.status, p.err = p.read(early, stream, granted, cmd)
		close(p.done)
		cancel()
	})
	return p, nil
}

// maxEarly bounds the messages that come before a command's number.
const maxEarly = 4096

// untilPid reads up to the message that tells a command's number, and returns those before it.
func untilPid(stream *connect.BidiStreamForClient[pb.ExecInput, pb.ExecOutput]) (early []*pb.ExecOutput, pid int, err error) {
	for len(early) < maxEarly {
		m, err := stream.Receive()
		if err != nil {
			return nil, 0, err
		}
		if w, ok := m.GetWhat().(*pb.ExecOutput_Pid); ok {
			return early, int(w.Pid), nil
		}
		early = append(early, m)
	}
	return nil, 0, errors.New("the node doesn't say that the command has begun")
}

// read hands out what came early, and what comes until the end.
func (p *process) read(early []*pb.ExecOutput, stream *connect.BidiStreamForClient[pb.ExecInput, pb.ExecOutput], granted *credit, cmd engine.Cmd) (int, error) {
	write := func(w io.Writer, b []byte) error {
		if w == nil {
			return nil
		}
		_, err := w.Write(b)
		return err
	}
	for {
		var m *pb.ExecOutput
		var err error
		if len(early) > 0 {
			m, early = early[0], early[1:]
		} else if m, err = stream.Receive(); err != nil {
			return 0, fromWire(context.Background(), p.op, p.id, err)
		}
		switch w := m.GetWhat().(type) {
		case *pb.ExecOutput_Stdout:
			err = write(cmd.Stdout, w.Stdout)
		case *pb.ExecOutput_Stderr:
			err = write(cmd.Stderr, w.Stderr)
		case *pb.ExecOutput_Window:
			granted.add(w.Window)
		case *pb.ExecOutput_Status:
			p.signal = int(m.GetSignal())
			return int(w.Status), nil
		}
		if err != nil {
			return 0, err
		}
	}
}

func (p *process) Pid() int { return p.pid }

func (p *process) Wait(ctx context.Context) (int, error) {
	defer p.pumps.Wait()
	defer p.cancel()
	select {
	case <-p.done:
		return p.status, p.err
	case <-ctx.Done():
		return 0, errs.New(errs.Canceled, p.op, p.id, context.Cause(ctx))
	}
}

// Signaled implements engine.Signaler.
func (p *process) Signaled() int { return p.signal }

func (p *process) Signal(sig int) error {
	return p.tell(&pb.ExecInput{What: &pb.ExecInput_Signal{Signal: int32(sig)}})
}

func (p *process) Resize(s engine.Size) error {
	return p.tell(&pb.ExecInput{What: &pb.ExecInput_Resize{Resize: &pb.Size{Cols: uint32(s.Cols), Rows: uint32(s.Rows)}}})
}

func (p *process) tell(m *pb.ExecInput) error {
	if err := p.out.put(m); err != nil {
		return errs.Msg(errs.Unavailable, p.op, p.id, "it has ended")
	}
	return nil
}

// Code implements node.Host.
func (c *Client) Code(ctx context.Context, id string, code node.Code) (*node.CodeResult, error) {
	life, cancel := context.WithCancel(ctx)
	var pumps sync.WaitGroup
	defer pumps.Wait()
	defer cancel()
	stream := c.c.Code(life)
	out := &sender[pb.CodeInput]{send: stream.Send}
	err := out.put(&pb.CodeInput{What: &pb.CodeInput_Start{Start: &pb.CodeStart{Id: id, Text: code.Text, Language: code.Language, DefaultLanguage: code.Default,
		Session: code.Session, Env: code.Env, Dir: code.Dir, Rich: code.Rich != nil, End: code.End}}})
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fromWire(ctx, "run code", id, err)
	}
	granted := newCredit()
	pumps.Go(func() {
		pump(life, code.Stdin, granted,
			func(b []byte) error { return out.put(&pb.CodeInput{What: &pb.CodeInput_Stdin{Stdin: b}}) },
			func() error { return out.put(&pb.CodeInput{What: &pb.CodeInput_Eof{Eof: true}}) })
	})
	for {
		m, err := stream.Receive()
		if err != nil {
			return nil, fromWire(ctx, "run code", id, err)
		}
		var w io.Writer
		var b []byte
		switch v := m.GetWhat().(type) {
		case *pb.CodeOutput_Stdout:
			w, b = code.Stdout, v.Stdout
		case *pb.CodeOutput_Stderr:
			w, b = code.Stderr, v.Stderr
		case *pb.CodeOutput_Window:
			granted.add(v.Window)
		case *pb.CodeOutput_Rich:
			var m node.Rich
			if code.Rich != nil && json.Unmarshal(v.Rich, &m) == nil {
				code.Rich(m)
			}
		case *pb.CodeOutput_Result:
			return &node.CodeResult{Language: v.Result.GetLanguage(), Status: int(v.Result.GetStatus()), Result: v.Result.GetResult()}, nil
		}
		if w != nil {
			if _, err := w.Write(b); err != nil {
				return nil, err
			}
		}
	}
}

// Dial implements node.Host.
func (c *Client) Dial(ctx context.Context, id string, port int) (net.Conn, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	stream := c.c.Dial(life)
	conn := &conn{out: &sender[pb.DialInput]{send: stream.Send}, cancel: cancel, addr: addr(c.addr)}
	err := conn.out.put(&pb.DialInput{What: &pb.DialInput_Start{Start: &pb.DialStart{Id: id, Port: uint32(port)}}})
	if err == nil || errors.Is(err, io.EOF) {
		_, err = stream.Receive()
	}
	if err != nil || !stop() {
		err = fromWire(ctx, "dial", id, err)
		cancel()
		if err == nil {
			err = errs.New(errs.Canceled, "dial", id, context.Cause(ctx))
		}
		return nil, err
	}
	near, far := net.Pipe()
	conn.Conn = near
	go func() { // ends with the stream, or with the connection
		defer far.Close()
		for {
			m, err := stream.Receive()
			if err != nil {
				return
			}
			if len(m.GetData()) == 0 { // nothing more comes; what is written still goes
				far.Close()
			} else if _, err := far.Write(m.GetData()); err != nil {
				cancel()
				return
			}
		}
	}()
	return conn, nil
}

// conn is a connection into a sandbox: what is read comes through a pipe, which has deadlines, what is written goes into the stream.
type conn struct {
	net.Conn
	out    *sender[pb.DialInput]
	cancel context.CancelFunc
	addr   addr
	once   sync.Once
}

func (c *conn) Write(b []byte) (int, error) {
	for at := 0; at < len(b); at += chunk {
		piece := append([]byte(nil), b[at:min(len(b), at+chunk)]...)
		if err := c.out.put(&pb.DialInput{What: &pb.DialInput_Data{Data: piece}}); err != nil {
			return at, os.ErrClosed
		}
	}
	return len(b), nil
}

// CloseWrite says that nothing follows.
func (c *conn) CloseWrite() error {
	return c.out.put(&pb.DialInput{What: &pb.DialInput_Eof{Eof: true}})
}

func (c *conn) Close() error {
	c.once.Do(c.cancel)
	return c.Conn.Close()
}

func (c *conn) RemoteAddr() net.Addr               { return c.addr }
func (c *conn) SetDeadline(t time.Time) error      { return c.Conn.SetReadDeadline(t) }
func (c *conn) SetWriteDeadline(_ time.Time) error { return nil }

type addr string

func (a addr) Network() string { return "tcp" }
func (a addr) String() string  { return string(a) }

// files are those of a sandbox far away.
type files struct {
	c       *Client
	id, who string
}

// As implements node.Files.
func (f *files) As(who string) node.Files { return &files{c: f.c, id: f.id, who: who} }

// Detail implements node.Files.
func (f *files) Detail(ctx context.Context, paths []string, prefix string) ([]node.FileDetail, error) {
	if err := utf8Path("describe", paths...); err != nil {
		return nil, err
	}
	m, err := unary(ctx, "describe", "", f.c.c.Detail, &pb.DetailRequest{Id: f.id, Who: f.who, Paths: paths, Prefix: prefix})
	if err != nil {
		return nil, err
	}
	if len(m.GetDetails()) != len(paths) {
		return nil, errs.Msg(errs.Other, "describe", f.id, "the node told of other files")
	}
	return each(m.GetDetails(), func(d *pb.FileDetail) node.FileDetail {
		out := node.FileDetail{Tags: d.GetTags()}
		if d.GetLeads() != nil {
			out.Leads = fileIn(d.GetLeads())
		}
		return out
	}), nil
}

// SetTags implements node.Files.
func (f *files) SetTags(ctx context.Context, path, prefix string, tags map[string]string) error {
	if err := utf8Path("tag", path); err != nil {
		return err
	}
	for k, v := range tags {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return errs.Msg(errs.Invalid, "tag", path, "tags are texts")
		}
	}
	_, err := unary(ctx, "tag", path, f.c.c.SetTags, &pb.SetTagsRequest{Id: f.id, Who: f.who, Path: path, Prefix: prefix, Tags: tags})
	return err
}

func (f *files) Stat(ctx context.Context, path string) (*api.FileInfo, error) {
	if err := utf8Path("stat", path); err != nil {
		return nil, err
	}
	m, err := unary(ctx, "stat", path, f.c.c.Stat, &pb.FileRequest{Id: f.id, Who: f.who, Path: path})
	if err != nil {
		return nil, err
	}
	return fileIn(m), nil
}

func (f *files) List(ctx context.Context, path string, depth, limit int, after string) ([]api.FileInfo, bool, error) {
	if err := utf8Path("list", path, after); err != nil {
		return nil, false, err
	}
	m, err := unary(ctx, "list", path, f.c.c.List, &pb.ListRequest{Id: f.id, Who: f.who, Path: path, Depth: int32(depth), Limit: int32(limit), After: after})
	return each(m.GetFiles(), func(i *pb.FileInfo) api.FileInfo { return *fileIn(i) }), m.GetMore(), err
}

// download reads a file as it comes.
type download struct {
	ctx    context.Context
	path   string
	stream *connect.ServerStreamForClient[pb.OpenResponse]
	cancel context.CancelFunc
	rest   []byte
}

func (d *download) Read(p []byte) (int, error) {
	for len(d.rest) == 0 {
		if !d.stream.Receive() {
			if err := d.stream.Err(); err != nil {
				return 0, fromWire(d.ctx, "read", d.path, err)
			}
			return 0, io.EOF
		}
		d.rest = d.stream.Msg().GetData()
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

func (d *download) Close() error {
	d.cancel()
	_ = d.stream.Close() // says only that it was canceled
	return nil
}

func (f *files) Open(ctx context.Context, path string, offset int64) (io.ReadCloser, *api.FileInfo, error) {
	if err := utf8Path("open", path); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	stream, err := f.c.c.Open(ctx, connect.NewRequest(&pb.OpenRequest{Id: f.id, Who: f.who, Path: path, Offset: offset}))
	if err != nil {
		defer cancel()
		return nil, nil, fromWire(ctx, "open", path, err)
	}
	d := &download{ctx: ctx, path: path, stream: stream, cancel: cancel}
	if !stream.Receive() {
		err := stream.Err()
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		err = fromWire(ctx, "open", path, err)
		return nil, nil, errors.Join(err, d.Close())
	}
	d.rest = stream.Msg().GetData()
	return d, fileIn(stream.Msg().GetInfo()), nil
}

func (f *files) Write(ctx context.Context, path string, mode uint32, r io.Reader) (*api.FileInfo, error) {
	if err := utf8Path("write", path); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream := f.c.c.Write(ctx)
	err := stream.Send(&pb.WriteRequest{File: &pb.FileRequest{Id: f.id, Who: f.who, Path: path, Mode: mode}})
	for b := make([]byte, chunk); err == nil; {
		n, readErr := r.Read(b)
		last := errors.Is(readErr, io.EOF)
		if readErr != nil && !last { // without the last message nothing is written
			cancel()
			_, _ = stream.CloseAndReceive()
			return nil, readErr
		}
		if err = stream.Send(&pb.WriteRequest{Data: b[:n], Done: last}); last {
			break
		}
	}
	if err != nil && !errors.Is(err, io.EOF) { // EOF: the node has answered already
		return nil, fromWire(ctx, "write", path, err)
	}
	m, err := stream.CloseAndReceive()
	if err != nil {
		return nil, fromWire(ctx, "write", path, err)
	}
	return fileIn(m.Msg), nil
}

func (f *files) Mkdir(ctx context.Context, path string, mode uint32) error {
	if err := utf8Path("mkdir", path); err != nil {
		return err
	}
	_, err := unary(ctx, "mkdir", path, f.c.c.Mkdir, &pb.FileRequest{Id: f.id, Who: f.who, Path: path, Mode: mode})
	return err
}

func (f *files) Remove(ctx context.Context, path string, recursive bool) error {
	if err := utf8Path("remove", path); err != nil {
		return err
	}
	_, err := unary(ctx, "remove", path, f.c.c.Remove, &pb.RemoveRequest{Id: f.id, Who: f.who, Path: path, Recursive: recursive})
	return err
}

func (f *files) Move(ctx context.Context, from, to string) error {
	if err := utf8Path("move", from, to); err != nil {
		return err
	}
	_, err := unary(ctx, "move", from, f.c.c.Move, &pb.MoveRequest{Id: f.id, Who: f.who, From: from, To: to})
	return err
}

func (f *files) Watch(ctx context.Context, path string, recursive bool, ready func(), event func(api.FileEvent) error) error {
	if err := utf8Path("watch", path); err != nil {
		return err
	}
	life, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := f.c.c.Watch(life, connect.NewRequest(&pb.WatchRequest{Id: f.id, Who: f.who, Path: path, Recursive: recursive}))
	if err != nil {
		return fromWire(ctx, "watch", path, err)
	}
	defer stream.Close()
	for stream.Receive() {
		m := stream.Msg()
		if m.GetKind() == "ready" {
			ready()
			continue
		}
		if err := event(api.FileEvent{Kind: m.GetKind(), Path: m.GetPath(), To: m.GetTo()}); err != nil {
			cancel()
			return err
		}
	}
	return fromWire(ctx, "watch", path, stream.Err())
}

// utf8Path refuses paths that a message can't carry, as the node itself would.
func utf8Path(op string, paths ...string) error {
	for _, p := range paths {
		if !utf8.ValidString(p) {
			return errs.Msg(errs.Invalid, op, "path", "it isn't UTF-8")
		}
	}
	return nil
}
