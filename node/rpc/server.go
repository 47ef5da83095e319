package rpc

import (
	"context"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"agentrun.dev/api"
	pb "agentrun.dev/api/gen/agentrun/node/v1"
	"agentrun.dev/api/gen/agentrun/node/v1/nodev1connect"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// NewServer returns a handler of the protocol for a node. Who may call it is for the listener's TLS to say.
func NewServer(h node.Host) http.Handler {
	_, handler := nodev1connect.NewNodeServiceHandler(&server{h: h}, connect.WithReadMaxBytes(maxMessage))
	return handler
}

// server serves a node.
type server struct{ h node.Host }

// answer wraps what a call returned.
func answer[T any](v *T, err error) (*connect.Response[T], error) {
	if err != nil {
		return nil, toWire(err)
	}
	return connect.NewResponse(v), nil
}

func (s *server) Info(ctx context.Context, _ *connect.Request[pb.InfoRequest]) (*connect.Response[pb.NodeInfo], error) {
	i, err := s.h.Info(ctx)
	if err != nil {
		return nil, toWire(err)
	}
	return answer(infoOut(i), nil)
}

// logWriter sends what a build prints.
type logWriter struct {
	send func(*pb.BuildLog) error
}

func (w logWriter) Write(b []byte) (int, error) {
	for at := 0; at < len(b); at += chunk {
		if err := w.send(&pb.BuildLog{Data: b[at:min(len(b), at+chunk)]}); err != nil {
			return at, err
		}
	}
	return len(b), nil
}

func (s *server) Build(ctx context.Context, r *connect.Request[pb.BuildRequest], out *connect.ServerStream[pb.BuildLog]) error {
	m := r.Msg
	b := node.Build{Image: m.GetImage(), Spec: specIn(m.GetSpec()), Init: m.GetInit(), Network: m.GetNetwork(), Timeout: time.Duration(m.GetTimeout()), Language: m.GetLanguage()}
	return toWire(s.h.Build(ctx, b, logWriter{out.Send}))
}

func (s *server) Images(ctx context.Context, _ *connect.Request[pb.ImagesRequest]) (*connect.Response[pb.ImagesResponse], error) {
	list, err := s.h.Images(ctx)
	return answer(&pb.ImagesResponse{Images: list}, err)
}

func (s *server) DropImage(ctx context.Context, r *connect.Request[pb.DropImageRequest]) (*connect.Response[pb.DropImageResponse], error) {
	return answer(&pb.DropImageResponse{}, s.h.DropImage(ctx, r.Msg.GetImage()))
}

func (s *server) Start(ctx context.Context, r *connect.Request[pb.StartRequest]) (*connect.Response[pb.Running], error) {
	m := r.Msg
	start := node.Start{ID: m.GetId(), Name: m.GetName(), Epoch: m.GetEpoch(), Image: m.GetImage(), Volumes: each(m.GetVolumes(), volumeIn)}
	if m.GetClaim() != nil {
		c := claimIn(m.GetClaim())
		start.Claim = &c
	}
	running, err := s.h.Start(ctx, start)
	if err != nil {
		return nil, toWire(err)
	}
	return answer(runningOut(running), nil)
}

func (s *server) Claim(ctx context.Context, r *connect.Request[pb.ClaimRequest]) (*connect.Response[pb.ClaimResponse], error) {
	return answer(&pb.ClaimResponse{}, s.h.Claim(ctx, r.Msg.GetId(), r.Msg.GetEpoch(), claimIn(r.Msg.GetClaim())))
}

func (s *server) Fork(ctx context.Context, r *connect.Request[pb.ForkRequest]) (*connect.Response[pb.ForkResponse], error) {
	m := r.Msg
	children, err := s.h.Fork(ctx, m.GetId(), node.Fork{IDs: m.GetIds(), Names: m.GetNames(), Epoch: m.GetEpoch(), Claims: each(m.GetClaims(), claimIn), Kill: m.GetKill()})
	return answer(&pb.ForkResponse{Children: each(children, runningOut)}, err)
}

func (s *server) SetNetwork(ctx context.Context, r *connect.Request[pb.SetNetworkRequest]) (*connect.Response[pb.SetNetworkResponse], error) {
	return answer(&pb.SetNetworkResponse{}, s.h.SetNetwork(ctx, r.Msg.GetId(), r.Msg.GetEpoch(), r.Msg.GetRules()))
}

func (s *server) Hibernate(ctx context.Context, r *connect.Request[pb.HibernateRequest]) (*connect.Response[pb.HibernateResponse], error) {
	return answer(&pb.HibernateResponse{}, s.h.Hibernate(ctx, r.Msg.GetId(), r.Msg.GetKill()))
}

func (s *server) Wake(ctx context.Context, r *connect.Request[pb.WakeRequest]) (*connect.Response[pb.Running], error) {
	running, err := s.h.Wake(ctx, r.Msg.GetId(), r.Msg.GetEpoch(), claimIn(r.Msg.GetClaim()))
	if err != nil {
		return nil, toWire(err)
	}
	return answer(runningOut(running), nil)
}

func (s *server) End(ctx context.Context, r *connect.Request[pb.EndRequest]) (*connect.Response[pb.EndResponse], error) {
	return answer(&pb.EndResponse{}, s.h.End(ctx, r.Msg.GetId()))
}

func (s *server) Status(ctx context.Context, _ *connect.Request[pb.StatusRequest]) (*connect.Response[pb.StatusResponse], error) {
	list, err := s.h.Status(ctx)
	return answer(&pb.StatusResponse{Sandboxes: each(list, statusOut)}, err)
}

func (s *server) Usage(ctx context.Context, r *connect.Request[pb.UsageRequest]) (*connect.Response[pb.UsageResponse], error) {
	n, err := s.h.Usage(ctx, r.Msg.GetId())
	return answer(&pb.UsageResponse{Storage: n}, err)
}

func (s *server) Signal(ctx context.Context, r *connect.Request[pb.SignalRequest]) (*connect.Response[pb.SignalResponse], error) {
	return answer(&pb.SignalResponse{}, s.h.Signal(ctx, r.Msg.GetId(), int(r.Msg.GetPid()), int(r.Msg.GetSignal())))
}

func (s *server) Processes(ctx context.Context, r *connect.Request[pb.ProcessesRequest]) (*connect.Response[pb.ProcessesResponse], error) {
	list, err := s.h.Processes(ctx, r.Msg.GetId())
	out := &pb.ProcessesResponse{}
	for _, p := range list {
		out.Processes = append(out.Processes, &pb.RunningCommand{Pid: int32(p.Pid), Args: p.Args, Tty: p.TTY})
	}
	return answer(out, err)
}

func (s *server) Capture(ctx context.Context, r *connect.Request[pb.CaptureRequest]) (*connect.Response[pb.SnapshotResponse], error) {
	q := r.Msg
	m, err := s.h.Capture(ctx, q.GetId(), node.Capture{Image: q.GetImage(), Prefix: q.GetPrefix(), Kill: q.GetKill()})
	return answer(&pb.SnapshotResponse{Buckets: m}, err)
}

func (s *server) Snapshot(ctx context.Context, r *connect.Request[pb.SnapshotRequest]) (*connect.Response[pb.SnapshotResponse], error) {
	m, err := s.h.Snapshot(ctx, r.Msg.GetId(), r.Msg.GetPrefix())
	return answer(&pb.SnapshotResponse{Buckets: m}, err)
}

func (s *server) Diff(ctx context.Context, r *connect.Request[pb.DiffRequest], out *connect.ServerStream[pb.FileChange]) error {
	return toWire(s.h.Diff(ctx, r.Msg.GetA(), r.Msg.GetB(), r.Msg.GetPaths(), func(c api.FileChange) error {
		return out.Send(&pb.FileChange{Path: c.Path, Kind: c.Kind, OldSize: c.OldSize, NewSize: c.NewSize})
	}))
}

func (s *server) Merge(ctx context.Context, r *connect.Request[pb.MergeRequest]) (*connect.Response[pb.MergeResponse], error) {
	m, err := s.h.Merge(ctx, r.Msg.GetSource(), r.Msg.GetTarget(), api.MergeSandbox{Conflicts: r.Msg.GetConflicts(), DryRun: r.Msg.GetDryRun()})
	if err != nil {
		return nil, toWire(err)
	}
	return answer(&pb.MergeResponse{Added: int64(m.Added), Modified: int64(m.Modified), Deleted: int64(m.Deleted), Metadata: int64(m.Metadata),
		Conflicts: m.Conflicts, MoreConflicts: int64(m.MoreConflicts)}, nil)
}

// fileRequest is every request about files.
type fileRequest interface {
	GetId() string
	GetWho() string
}

// files finds a sandbox's files.
func (s *server) files(ctx context.Context, r fileRequest) (node.Files, error) {
	f, err := s.h.Files(ctx, r.GetId())
	switch {
	case err != nil:
		return nil, err
	case f == nil:
		return nil, errs.Msg(errs.Unsupported, "files", r.GetId(), "this sandbox doesn't show its files")
	case r.GetWho() != node.AsUser:
		f = f.As(r.GetWho())
	}
	return f, nil
}
