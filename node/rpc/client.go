package rpc

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"agentrun.dev/api"
	pb "agentrun.dev/api/gen/agentrun/node/v1"
	"agentrun.dev/api/gen/agentrun/node/v1/nodev1connect"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// Client is a node at an address. All methods may be called concurrently.
type Client struct {
	c    nodev1connect.NodeServiceClient
	addr string
	tr   *http.Transport
}

var _ node.Host = (*Client)(nil)

// NewClient returns the node at host:port, whose certificate must be name's. Nothing is sent yet.
func NewClient(addr, name string, config *tls.Config) *Client {
	tr := transport(config, name)
	return &Client{addr: addr, tr: tr, c: nodev1connect.NewNodeServiceClient(&http.Client{Transport: tr}, "https://"+addr,
		connect.WithReadMaxBytes(maxMessage), connect.WithGRPC())}
}

// transport speaks HTTP/2 only: streams go both ways at once.
func transport(config *tls.Config, name string) *http.Transport {
	config = config.Clone()
	config.ServerName = name
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	return &http.Transport{TLSClientConfig: config, Protocols: protocols, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second, IdleConnTimeout: 2 * time.Minute, HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second}}
}

// Close gives back idle connections.
func (c *Client) Close() { c.tr.CloseIdleConnections() }

// unary makes one call.
func unary[Q, A any](ctx context.Context, op, thing string, f func(context.Context, *connect.Request[Q]) (*connect.Response[A], error), q *Q) (*A, error) {
	r, err := f(ctx, connect.NewRequest(q))
	if err != nil {
		return nil, fromWire(ctx, op, thing, err)
	}
	return r.Msg, nil
}

// Info implements node.Host.
func (c *Client) Info(ctx context.Context) (*node.Info, error) {
	m, err := unary(ctx, "ask node", c.addr, c.c.Info, &pb.InfoRequest{})
	if err != nil {
		return nil, err
	}
	return infoIn(m), nil
}

// Build implements node.Host.
func (c *Client) Build(ctx context.Context, b node.Build, log io.Writer) error {
	spec, err := specOut(b.Spec)
	if err != nil {
		return err
	}
	stream, err := c.c.Build(ctx, connect.NewRequest(&pb.BuildRequest{Image: b.Image, Spec: spec, Init: b.Init, Network: b.Network,
		Timeout: int64(b.Timeout), Language: b.Language}))
	if err != nil {
		return fromWire(ctx, "build", b.Image, err)
	}
	defer stream.Close()
	for stream.Receive() {
		if _, err := log.Write(stream.Msg().GetData()); err != nil {
			return err
		}
	}
	return fromWire(ctx, "build", b.Image, stream.Err())
}

// Images implements node.Host.
func (c *Client) Images(ctx context.Context) ([]string, error) {
	m, err := unary(ctx, "list images", c.addr, c.c.Images, &pb.ImagesRequest{})
	return m.GetImages(), err
}

// DropImage implements node.Host.
func (c *Client) DropImage(ctx context.Context, image string) error {
	_, err := unary(ctx, "drop image", image, c.c.DropImage, &pb.DropImageRequest{Image: image})
	return err
}

// Start implements node.Host.
func (c *Client) Start(ctx context.Context, s node.Start) (*node.Running, error) {
	volumes, err := volumesOut(s.Volumes)
	if err != nil {
		return nil, err
	}
	q := &pb.StartRequest{Id: s.ID, Name: s.Name, Epoch: s.Epoch, Image: s.Image, Volumes: volumes}
	if s.Claim != nil {
		if q.Claim, err = claimOut(*s.Claim); err != nil {
			return nil, err
		}
	}
	m, err := unary(ctx, "start sandbox", s.ID, c.c.Start, q)
	if err != nil {
		return nil, err
	}
	return runningIn(m), nil
}

// Claim implements node.Host.
func (c *Client) Claim(ctx context.Context, id string, epoch uint64, cl node.Claim) error {
	claim, err := claimOut(cl)
	if err != nil {
		return err
	}
	_, err = unary(ctx, "claim sandbox", id, c.c.Claim, &pb.ClaimRequest{Id: id, Epoch: epoch, Claim: claim})
	return err
}

// Fork implements node.Host.
func (c *Client) Fork(ctx context.Context, id string, f node.Fork) ([]*node.Running, error) {
	q := &pb.ForkRequest{Id: id, Ids: f.IDs, Names: f.Names, Epoch: f.Epoch, Kill: f.Kill}
	for _, cl := range f.Claims {
		claim, err := claimOut(cl)
		if err != nil {
			return nil, err
		}
		q.Claims = append(q.Claims, claim)
	}
	m, err := unary(ctx, "fork sandbox", id, c.c.Fork, q)
	return each(m.GetChildren(), runningIn), err
}

// SetNetwork implements node.Host.
func (c *Client) SetNetwork(ctx context.Context, id string, epoch uint64, rules []string) error {
	_, err := unary(ctx, "set network", id, c.c.SetNetwork, &pb.SetNetworkRequest{Id: id, Epoch: epoch, Rules: rules})
	return err
}

// Hibernate implements node.Host.
func (c *Client) Hibernate(ctx context.Context, id string, kill bool) error {
	_, err := unary(ctx, "hibernate", id, c.c.Hibernate, &pb.HibernateRequest{Id: id, Kill: kill})
	return err
}

// Wake implements node.Host.
func (c *Client) Wake(ctx context.Context, id string, epoch uint64, cl node.Claim) (*node.Running, error) {
	claim, err := claimOut(cl)
	if err != nil {
		return nil, err
	}
	m, err := unary(ctx, "resume", id, c.c.Wake, &pb.WakeRequest{Id: id, Epoch: epoch, Claim: claim})
	if err != nil {
		return nil, err
	}
	return runningIn(m), nil
}

// End implements node.Host.
func (c *Client) End(ctx context.Context, id string) error {
	_, err := unary(ctx, "end sandbox", id, c.c.End, &pb.EndRequest{Id: id})
	return err
}

// Status implements node.Host.
func (c *Client) Status(ctx context.Context) ([]node.Status, error) {
	m, err := unary(ctx, "list sandboxes", c.addr, c.c.Status, &pb.StatusRequest{})
	return each(m.GetSandboxes(), statusIn), err
}

// Usage implements node.Host.
func (c *Client) Usage(ctx context.Context, id string) (int64, error) {
	m, err := unary(ctx, "measure", id, c.c.Usage, &pb.UsageRequest{Id: id})
	return m.GetStorage(), err
}

// Processes implements node.Host.
func (c *Client) Processes(ctx context.Context, id string) ([]engine.Running, error) {
	m, err := unary(ctx, "list processes", id, c.c.Processes, &pb.ProcessesRequest{Id: id})
	return each(m.GetProcesses(), func(p *pb.RunningCommand) engine.Running {
		return engine.Running{Pid: int(p.GetPid()), Args: p.GetArgs(), TTY: p.GetTty()}
	}), err
}

// Signal implements node.Host.
func (c *Client) Signal(ctx context.Context, id string, pid, sig int) error {
	_, err := unary(ctx, "signal", id, c.c.Signal, &pb.SignalRequest{Id: id, Pid: int32(pid), Signal: int32(sig)})
	return err
}

// Capture implements node.Host.
func (c *Client) Capture(ctx context.Context, id string, x node.Capture) (map[string]string, error) {
	m, err := unary(ctx, "capture", id, c.c.Capture, &pb.CaptureRequest{Id: id, Image: x.Image, Prefix: x.Prefix, Kill: x.Kill})
	return m.GetBuckets(), err
}

// Snapshot implements node.Host.
func (c *Client) Snapshot(ctx context.Context, id, prefix string) (map[string]string, error) {
	m, err := unary(ctx, "snapshot", id, c.c.Snapshot, &pb.SnapshotRequest{Id: id, Prefix: prefix})
	return m.GetBuckets(), err
}

// Diff implements node.Host.
func (c *Client) Diff(ctx context.Context, a, b string, paths []string, yield func(api.FileChange) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.c.Diff(ctx, connect.NewRequest(&pb.DiffRequest{A: a, B: b, Paths: paths}))
	if err != nil {
		return fromWire(ctx, "diff", a, err)
	}
	defer stream.Close()
	for stream.Receive() {
		m := stream.Msg()
		if err := yield(api.FileChange{Path: m.GetPath(), Kind: m.GetKind(), OldSize: m.GetOldSize(), NewSize: m.GetNewSize()}); err != nil {
			cancel()
			return err
		}
	}
	return fromWire(ctx, "diff", a, stream.Err())
}

// Merge implements node.Host.
func (c *Client) Merge(ctx context.Context, source, target string, m api.MergeSandbox) (*api.FileMerge, error) {
	r, err := unary(ctx, "merge", source, c.c.Merge, &pb.MergeRequest{Source: source, Target: target, Conflicts: m.Conflicts, DryRun: m.DryRun})
	if err != nil {
		return nil, err
	}
	return &api.FileMerge{Source: source, Target: target, DryRun: m.DryRun, Added: int(r.GetAdded()), Modified: int(r.GetModified()), Deleted: int(r.GetDeleted()),
		Metadata: int(r.GetMetadata()), Conflicts: r.GetConflicts(), MoreConflicts: int(r.GetMoreConflicts())}, nil
}

// Files implements node.Host.
func (c *Client) Files(_ context.Context, id string) (node.Files, error) {
	return &files{c: c, id: id}, nil
}

// TLS is how a node's or the service's listener proves itself and whom it lets in: whoever has a certificate of the authority
// that names one of peers.
func TLS(cert tls.Certificate, authority *Authority, peers ...string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authority.pool,
		NextProtos: []string{"h2"}, VerifyConnection: func(s tls.ConnectionState) error {
			name := peerName(s)
			if len(peers) == 0 && name != "" {
				return nil
			}
			for _, p := range peers {
				if p == name {
					return nil
				}
			}
			return errs.Msg(errs.Denied, "connect", name, "a certificate of this name may not do that here")
		}}
}

// ClientTLS is how the service or a node proves itself to a listener.
func ClientTLS(cert tls.Certificate, authority *Authority) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, RootCAs: authority.pool, NextProtos: []string{"h2"}}
}

// peerName is whom the other side's certificate names.
func peerName(s tls.ConnectionState) string {
	if len(s.PeerCertificates) == 0 || len(s.PeerCertificates[0].DNSNames) == 0 {
		return ""
	}
	return s.PeerCertificates[0].DNSNames[0]
}
