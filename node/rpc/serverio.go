package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"connectrpc.com/connect"

	"agentrun.dev/api"
	pb "agentrun.dev/api/gen/agentrun/node/v1"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// sender sends one message at a time.
type sender[T any] struct {
	mu   sync.Mutex
	send func(*T) error
}

func (s *sender[T]) put(m *T) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.send(m)
}

// output sends what is written to it in messages of a stream.
type output[T any] struct {
	to   *sender[T]
	wrap func([]byte) *T
}

func (o output[T]) Write(b []byte) (int, error) {
	for at := 0; at < len(b); at += chunk {
		if err := o.to.put(o.wrap(b[at:min(len(b), at+chunk)])); err != nil {
			return at, err
		}
	}
	return len(b), nil
}

func stdoutOf(b []byte) *pb.ExecOutput { return &pb.ExecOutput{What: &pb.ExecOutput_Stdout{Stdout: b}} }
func stderrOf(b []byte) *pb.ExecOutput { return &pb.ExecOutput{What: &pb.ExecOutput_Stderr{Stderr: b}} }

type execStream = connect.BidiStream[pb.ExecInput, pb.ExecOutput]

func (s *server) Exec(ctx context.Context, stream *execStream) error {
	return s.run(ctx, stream, func(c *pb.Command, cmd engine.Cmd) (engine.Process, error) { return s.h.Exec(ctx, c.GetId(), cmd) })
}

func (s *server) Attach(ctx context.Context, stream *execStream) error {
	return s.run(ctx, stream, func(c *pb.Command, cmd engine.Cmd) (engine.Process, error) {
		return s.h.Attach(ctx, c.GetId(), int(c.GetPid()), cmd)
	})
}

// run connects a command with its stream. A client that goes away ends what it started.
func (s *server) run(ctx context.Context, stream *execStream, start func(*pb.Command, engine.Cmd) (engine.Process, error)) error {
	first, err := stream.Receive()
	if err != nil {
		return err
	}
	c := first.GetCommand()
	if c == nil {
		return toWire(errs.Msg(errs.Invalid, "exec", "", "the first message says what to run"))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := &sender[pb.ExecOutput]{send: stream.Send}
	in := newInput(func(n int64) { _ = out.put(&pb.ExecOutput{What: &pb.ExecOutput_Window{Window: n}}) })
	cmd := commandIn(c)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, output[pb.ExecOutput]{out, stdoutOf}, output[pb.ExecOutput]{out, stderrOf}
	p, err := start(c, cmd)
	if err != nil {
		return toWire(err)
	}
	begun := errors.Join(out.put(&pb.ExecOutput{What: &pb.ExecOutput_Pid{Pid: int32(p.Pid())}}),
		out.put(&pb.ExecOutput{What: &pb.ExecOutput_Window{Window: Window}}))
	if begun != nil {
		cancel(begun)
	}
	go func() { // ends with the request, at the latest
		for {
			m, err := stream.Receive()
			if err != nil {
				in.end(nil)
				if !errors.Is(err, io.EOF) {
					cancel(err)
				}
				return
			}
			switch w := m.GetWhat().(type) {
			case *pb.ExecInput_Stdin:
				if err := in.put(w.Stdin); err != nil {
					cancel(err)
					return
				}
			case *pb.ExecInput_Eof:
				in.end(nil)
			case *pb.ExecInput_Signal:
				_ = p.Signal(int(w.Signal))
			case *pb.ExecInput_Resize:
				_ = p.Resize(engine.Size{Cols: int(w.Resize.GetCols()), Rows: int(w.Resize.GetRows())})
			}
		}
	}()
	status, err := p.Wait(ctx)
	in.end(nil)
	if err != nil {
		return toWire(err)
	}
	last := &pb.ExecOutput{What: &pb.ExecOutput_Status{Status: int32(status)}}
	if p, ok := p.(engine.Signaler); ok {
		last.Signal = int32(p.Signaled())
	}
	return out.put(last)
}

func (s *server) Code(ctx context.Context, stream *connect.BidiStream[pb.CodeInput, pb.CodeOutput]) error {
	first, err := stream.Receive()
	if err != nil {
		return err
	}
	c := first.GetStart()
	if c == nil {
		return toWire(errs.Msg(errs.Invalid, "run code", "", "the first message says what to run"))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := &sender[pb.CodeOutput]{send: stream.Send}
	in := newInput(func(n int64) { _ = out.put(&pb.CodeOutput{What: &pb.CodeOutput_Window{Window: n}}) })
	if err := out.put(&pb.CodeOutput{What: &pb.CodeOutput_Window{Window: Window}}); err != nil {
		return err
	}
	go func() { // ends with the request, at the latest
		for {
			m, err := stream.Receive()
			if err != nil {
				in.end(nil)
				if !errors.Is(err, io.EOF) {
					cancel(err)
				}
				return
			}
			switch w := m.GetWhat().(type) {
			case *pb.CodeInput_Stdin:
				if err := in.put(w.Stdin); err != nil {
					cancel(err)
					return
				}
			case *pb.CodeInput_Eof:
				in.end(nil)
			}
		}
	}()
	var rich func(node.Rich)
	if c.GetRich() {
		rich = func(m node.Rich) {
			if b, err := json.Marshal(m); err == nil {
				_ = out.put(&pb.CodeOutput{What: &pb.CodeOutput_Rich{Rich: b}}) // a broken connection shows at the next output
			}
		}
	}
	res, err := s.h.Code(ctx, c.GetId(), node.Code{Text: c.GetText(), Language: c.GetLanguage(), Default: c.GetDefaultLanguage(), Session: c.GetSession(),
		Env: c.GetEnv(), Dir: c.GetDir(), Stdin: in, Rich: rich, End: c.GetEnd(),
		Stdout: output[pb.CodeOutput]{out, func(b []byte) *pb.CodeOutput { return &pb.CodeOutput{What: &pb.CodeOutput_Stdout{Stdout: b}} }},
		Stderr: output[pb.CodeOutput]{out, func(b []byte) *pb.CodeOutput { return &pb.CodeOutput{What: &pb.CodeOutput_Stderr{Stderr: b}} }}})
	in.end(nil)
	if err != nil {
		return toWire(err)
	}
	return out.put(&pb.CodeOutput{What: &pb.CodeOutput_Result{Result: &pb.CodeResult{Language: res.Language, Status: int32(res.Status), Result: res.Result}}})
}

func (s *server) Dial(ctx context.Context, stream *connect.BidiStream[pb.DialInput, pb.DialOutput]) error {
	first, err := stream.Receive()
	if err != nil {
		return err
	}
	start := first.GetStart()
	if start == nil {
		return toWire(errs.Msg(errs.Invalid, "dial", "", "the first message says where to"))
	}
	conn, err := s.h.Dial(ctx, start.GetId(), int(start.GetPort()))
	if err != nil {
		return toWire(err)
	}
	defer conn.Close()
	if err := stream.Send(&pb.DialOutput{What: &pb.DialOutput_Connected{Connected: true}}); err != nil {
		return err
	}
	sent := make(chan struct{})
	go func() { // ends with the request, at the latest
		defer close(sent)
		for {
			m, err := stream.Receive()
			if err == nil {
				switch w := m.GetWhat().(type) {
				case *pb.DialInput_Data:
					_, err = conn.Write(w.Data)
				case *pb.DialInput_Eof:
					if half, ok := conn.(interface{ CloseWrite() error }); ok {
						err = half.CloseWrite()
					}
				}
			}
			if err != nil {
				_ = conn.Close()
				return
			}
		}
	}()
	b := make([]byte, chunk)
	for {
		n, err := conn.Read(b)
		if n > 0 {
			if err := stream.Send(&pb.DialOutput{What: &pb.DialOutput_Data{Data: b[:n]}}); err != nil {
				return err
			}
		}
		if err == io.EOF { // a half of it: what the client sends still goes, until it closes
			if err := stream.Send(&pb.DialOutput{What: &pb.DialOutput_Data{}}); err != nil {
				return err
			}
			select {
			case <-sent:
			case <-ctx.Done():
			}
			return nil
		}
		if err != nil { // whatever ended it
			return nil
		}
	}
}

func (s *server) Stat(ctx context.Context, r *connect.Request[pb.FileRequest]) (*connect.Response[pb.FileInfo], error) {
	f, err := s.files(ctx, r.Msg)
	if err != nil {
		return nil, toWire(err)
	}
	info, err := f.Stat(ctx, r.Msg.GetPath())
	if err != nil {
		return nil, toWire(err)
	}
	return answer(fileOut(info), nil)
}

func (s *server) List(ctx context.Context, r *connect.Request[pb.ListRequest]) (*connect.Response[pb.ListResponse], error) {
	f, err := s.files(ctx, r.Msg)
	if err != nil {
		return nil, toWire(err)
	}
	list, more, err := f.List(ctx, r.Msg.GetPath(), int(r.Msg.GetDepth()), int(r.Msg.GetLimit()), r.Msg.GetAfter())
	out := &pb.ListResponse{More: more}
	for i := range list {
		out.Files = append(out.Files, fileOut(&list[i]))
	}
	return answer(out, err)
}

func (s *server) Open(ctx context.Context, r *connect.Request[pb.OpenRequest], out *connect.ServerStream[pb.OpenResponse]) error {
	f, err := s.files(ctx, r.Msg)
	if err != nil {
		return toWire(err)
	}
	body, info, err := f.Open(ctx, r.Msg.GetPath(), r.Msg.GetOffset())
	if err != nil {
		return toWire(err)
	}
	defer body.Close()
	if err := out.Send(&pb.OpenResponse{Info: fileOut(info)}); err != nil {
		return err
	}
	b := make([]byte, chunk)
	for {
		n, err := body.Read(b)
		if n > 0 {
			if err := out.Send(&pb.OpenResponse{Data: b[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return toWire(err)
		}
	}
}

// uploaded reads what a client sends of a file, whose last message says that it is all.
type uploaded struct {
	stream *connect.ClientStream[pb.WriteRequest]
	rest   []byte
	done   bool
}

func (u *uploaded) Read(p []byte) (int, error) {
	for len(u.rest) == 0 {
		if u.done {
			return 0, io.EOF
		}
		if !u.stream.Receive() {
			if err := u.stream.Err(); err != nil {
				return 0, err
			}
			return 0, io.ErrUnexpectedEOF // it went away before it said that this was all
		}
		u.rest, u.done = u.stream.Msg().GetData(), u.stream.Msg().GetDone()
	}
	n := copy(p, u.rest)
	u.rest = u.rest[n:]
	return n, nil
}

func (s *server) Write(ctx context.Context, stream *connect.ClientStream[pb.WriteRequest]) (*connect.Response[pb.FileInfo], error) {
	if !stream.Receive() {
		return nil, stream.Err()
	}
	m := stream.Msg()
	if m.GetFile() == nil {
		return nil, toWire(errs.Msg(errs.Invalid, "write", "", "the first message says which file"))
	}
	f, err := s.files(ctx, m.GetFile())
	if err != nil {
		return nil, toWire(err)
	}
	info, err := f.Write(ctx, m.GetFile().GetPath(), m.GetFile().GetMode(), &uploaded{stream: stream, rest: m.GetData(), done: m.GetDone()})
	if err != nil {
		return nil, toWire(err)
	}
	return answer(fileOut(info), nil)
}

// file does something to a file.
func (s *server) file(ctx context.Context, r fileRequest, do func(node.Files) error) (*connect.Response[pb.FileResponse], error) {
	f, err := s.files(ctx, r)
	if err == nil {
		err = do(f)
	}
	return answer(&pb.FileResponse{}, err)
}

func (s *server) Mkdir(ctx context.Context, r *connect.Request[pb.FileRequest]) (*connect.Response[pb.FileResponse], error) {
	return s.file(ctx, r.Msg, func(f node.Files) error { return f.Mkdir(ctx, r.Msg.GetPath(), r.Msg.GetMode()) })
}

func (s *server) Remove(ctx context.Context, r *connect.Request[pb.RemoveRequest]) (*connect.Response[pb.FileResponse], error) {
	return s.file(ctx, r.Msg, func(f node.Files) error { return f.Remove(ctx, r.Msg.GetPath(), r.Msg.GetRecursive()) })
}

func (s *server) Move(ctx context.Context, r *connect.Request[pb.MoveRequest]) (*connect.Response[pb.FileResponse], error) {
	return s.file(ctx, r.Msg, func(f node.Files) error { return f.Move(ctx, r.Msg.GetFrom(), r.Msg.GetTo()) })
}

func (s *server) Detail(ctx context.Context, r *connect.Request[pb.DetailRequest]) (*connect.Response[pb.DetailResponse], error) {
	f, err := s.files(ctx, r.Msg)
	if err != nil {
		return nil, toWire(err)
	}
	list, err := f.Detail(ctx, r.Msg.GetPaths(), r.Msg.GetPrefix())
	out := &pb.DetailResponse{}
	for _, d := range list {
		m := &pb.FileDetail{Tags: d.Tags}
		if d.Leads != nil {
			m.Leads = fileOut(d.Leads)
		}
		out.Details = append(out.Details, m)
	}
	return answer(out, err)
}

func (s *server) SetTags(ctx context.Context, r *connect.Request[pb.SetTagsRequest]) (*connect.Response[pb.FileResponse], error) {
	return s.file(ctx, r.Msg, func(f node.Files) error { return f.SetTags(ctx, r.Msg.GetPath(), r.Msg.GetPrefix(), r.Msg.GetTags()) })
}

func (s *server) Watch(ctx context.Context, r *connect.Request[pb.WatchRequest], out *connect.ServerStream[pb.FileEvent]) error {
	f, err := s.files(ctx, r.Msg)
	if err != nil {
		return toWire(err)
	}
	send := &sender[pb.FileEvent]{send: out.Send}
	return toWire(f.Watch(ctx, r.Msg.GetPath(), r.Msg.GetRecursive(), func() { _ = send.put(&pb.FileEvent{Kind: "ready"}) }, func(e api.FileEvent) error {
		return send.put(&pb.FileEvent{Kind: e.Kind, Path: e.Path, To: e.To})
	}))
}
