package rpc

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"

	pb "agentrun.dev/api/gen/agentrun/node/v1"
	"agentrun.dev/api/gen/agentrun/node/v1/nodev1connect"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// Registrar is who keeps the nodes.
type Registrar interface {
	// Join makes a node known, or known again, under its name.
	Join(ctx context.Context, name, address string, h node.Host, local bool) error
	// Heartbeat says that it lives; errs.NotFound asks it to register again.
	Heartbeat(ctx context.Context, name string, i node.Info) error
}

// Interval is how often nodes are to be heard of.
const Interval = 2 * time.Second

// NewRegistry returns the handler that nodes make themselves known to. config is how the service proves itself to them.
func NewRegistry(r Registrar, config *tls.Config) http.Handler {
	_, handler := nodev1connect.NewRegistryServiceHandler(&registry{r: r, config: config}, connect.WithReadMaxBytes(maxMessage))
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.TLS == nil || peerName(*q.TLS) == "" {
			http.Error(w, "want a certificate", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, q.WithContext(context.WithValue(q.Context(), callerKey{}, peerName(*q.TLS))))
	})
}

// callerKey holds the name in the caller's certificate.
type callerKey struct{}

func caller(ctx context.Context) string {
	name, _ := ctx.Value(callerKey{}).(string)
	return name
}

type registry struct {
	r      Registrar
	config *tls.Config
}

func (g *registry) Register(ctx context.Context, q *connect.Request[pb.RegisterRequest]) (*connect.Response[pb.RegisterResponse], error) {
	name, addr := caller(ctx), q.Msg.GetAddress()
	if _, port, err := net.SplitHostPort(addr); err != nil || port == "" {
		return nil, toWire(errs.Msg(errs.Invalid, "register node", name, "the address isn't host:port"))
	}
	if name == ServiceName {
		return nil, toWire(errs.Msg(errs.Denied, "register node", name, "the service is no node"))
	}
	c := NewClient(addr, name, g.config)
	if _, err := c.Info(ctx); err != nil { // what the service can't reach is none of its nodes
		c.Close()
		return nil, toWire(errs.New(errs.KindOf(err), "register node", name, err).WithHint("the service calls nodes at the address they give: check --advertise, and firewalls"))
	}
	if err := g.r.Join(ctx, name, addr, c, false); err != nil {
		c.Close()
		return nil, toWire(err)
	}
	return answer(&pb.RegisterResponse{Heartbeat: int64(Interval)}, nil)
}

func (g *registry) Heartbeat(ctx context.Context, q *connect.Request[pb.HeartbeatRequest]) (*connect.Response[pb.HeartbeatResponse], error) {
	err := g.r.Heartbeat(ctx, caller(ctx), *infoIn(q.Msg.GetInfo()))
	if errs.Is(err, errs.NotFound) {
		return answer(&pb.HeartbeatResponse{}, nil)
	}
	return answer(&pb.HeartbeatResponse{Known: true}, err)
}

// Member keeps a node known to a service.
type Member struct {
	Service string // host:port of the registry
	Address string // host:port at which the service reaches this node
	Config  *tls.Config
	Host    node.Host
	Log     *slog.Logger
}

// Run registers and sends heartbeats until ctx is done. A service that can't be reached is tried again, ever more seldom.
func (m *Member) Run(ctx context.Context) {
	tr := transport(m.Config, ServiceName)
	defer tr.CloseIdleConnections()
	c := nodev1connect.NewRegistryServiceClient(&http.Client{Transport: tr, Timeout: 15 * time.Second}, "https://"+m.Service, connect.WithReadMaxBytes(maxMessage))
	registered, wait := false, Interval
	for ctx.Err() == nil {
		next, err := m.beat(ctx, c, &registered)
		switch {
		case err == nil:
			wait = Interval
		case ctx.Err() == nil:
			m.Log.Warn("the service can't be reached", "service", m.Service, "err", err, "again in", wait)
			next, wait = wait, min(wait*2, time.Minute/2)
		}
		select {
		case <-ctx.Done():
		case <-time.After(next):
		}
	}
}

// beat says once that the node lives, and returns when to do so again.
func (m *Member) beat(ctx context.Context, c nodev1connect.RegistryServiceClient, registered *bool) (time.Duration, error) {
	info, err := m.Host.Info(ctx)
	if err != nil {
		return 0, err
	}
	if !*registered {
		r, err := unary(ctx, "register", m.Service, c.Register, &pb.RegisterRequest{Address: m.Address, Info: infoOut(info)})
		if err != nil {
			return 0, err
		}
		*registered = true
		m.Log.Info("registered", "service", m.Service, "node", info.Name)
		return min(max(time.Duration(r.GetHeartbeat()), time.Second/10), time.Minute), nil
	}
	r, err := unary(ctx, "send heartbeat", m.Service, c.Heartbeat, &pb.HeartbeatRequest{Info: infoOut(info)})
	if err != nil {
		return 0, err
	}
	if !r.GetKnown() {
		*registered = false
		return 0, nil
	}
	return Interval, nil
}
