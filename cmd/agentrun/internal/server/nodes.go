package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"agentrun.dev/cmd/agentrun/internal/sandbox"
	"agentrun.dev/cmd/agentrun/internal/settings"
	"agentrun.dev/engine/userspace"
	"agentrun.dev/errs"
	"agentrun.dev/node"
	"agentrun.dev/node/rpc"
)

// AuthorityFile, in the data directory, holds what makes the certificates of a service's nodes.
const AuthorityFile = "nodes-authority.pem"

// NodeBundle makes the certificate with which a node of the name joins the service whose data directory this is. The authority is
// made when it is first needed.
func NodeBundle(data, name string) ([]byte, error) {
	if name == rpc.ServiceName {
		return nil, errs.Msg(errs.Invalid, "make certificate", name, "this name is the service's own")
	}
	a, err := loadAuthority(data)
	if err != nil {
		return nil, err
	}
	return a.Bundle(name)
}

func loadAuthority(data string) (*rpc.Authority, error) {
	file := filepath.Join(data, AuthorityFile)
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		if _, text, err = rpc.NewAuthority(); err != nil {
			return nil, err
		}
		if err := os.MkdirAll(data, 0o700); err != nil {
			return nil, errs.New(errs.Other, "make authority", data, err)
		}
		if text, err = settings.WriteNew(file, text); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, errs.New(errs.Other, "read authority", file, err)
	}
	a, err := rpc.ReadAuthority(text)
	if err != nil {
		return nil, errs.New(errs.KindOf(err), "read authority", file, err)
	}
	return a, nil
}

// listenForNodes serves the registry: nodes with a certificate of this service make themselves known to r.
func (s *Server) listenForNodes(c *Config, r rpc.Registrar) error {
	if c.NodeListen == "" {
		return nil
	}
	a, err := loadAuthority(c.Data)
	if err != nil {
		return err
	}
	text, err := a.Bundle(rpc.ServiceName)
	if err != nil {
		return err
	}
	cert, known, _, err := rpc.ReadBundle(text)
	if err != nil {
		return err
	}
	l, err := listen("--node-listen", c.NodeListen, nil)
	if err != nil {
		return err
	}
	s.NodeEndpoint = reachable(l)
	s.serveNodes(c.Log, rpc.NewRegistry(r, rpc.ClientTLS(cert, known)), tls.NewListener(l, rpc.TLS(cert, known)))
	return nil
}

// serveNodes adds a listener that speaks with nodes only.
func (s *Server) serveNodes(log *slog.Logger, h http.Handler, l net.Listener) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	srv := nodeServer(log, h)
	s.servers = append(s.servers, srv)
	s.serving.Go(func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- errs.New(errs.Other, "serve", l.Addr().String(), err)
		}
	})
}

func nodeServer(log *slog.Logger, h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, ErrorLog: quiet(log)}
}

// NodeConfig is what 'forkd' was asked for.
type NodeConfig struct {
	Data        string // directory of the node's store, and of what sleeps on it
	GuestCache  string
	Listen      string // host:port of its service
	Advertise   string // host:port at which the service reaches it; "" is Listen
	Join        string // host:port of the service's registry
	Certificate []byte // what NodeBundle made
	Max         int    // sandboxes; 0: as memory allows
	Network     []string
	MicroVM     MicroVM
	Version     string
	Log         *slog.Logger
}

// Node is a node that runs: forkd.
type Node struct {
	Name, Endpoint string
	store          *Store
	guests         *userspace.Guests
	machines       *machines // nil: there are none
	node           *node.Node
	srv            *http.Server
	member         *rpc.Member
	failed         chan error
}

// StartNode opens the node's store and its listener.
func StartNode(ctx context.Context, c NodeConfig) (n *Node, err error) {
	cert, authority, name, err := rpc.ReadBundle(c.Certificate)
	if err != nil {
		return nil, err
	}
	if _, port, err := net.SplitHostPort(c.Join); err != nil || port == "" {
		return nil, errs.Msg(errs.Invalid, "forkd", "--join "+c.Join, "want HOST:PORT of the service's --node-listen")
	}
	n = &Node{Name: name, failed: make(chan error, 1), guests: userspace.NewGuests(userspace.GuestOptions{CacheDir: c.GuestCache})}
	if n.store, err = OpenStore(ctx, c.Data, StoreOptions{Log: c.Log}); err != nil {
		return nil, err
	}
	store := n.store
	defer func() {
		if err != nil {
			_ = store.Close()
		}
	}()
	o := sandbox.NodeOptions(n.store.Store, n.guests)
	o.Dir, o.Log, o.Max = filepath.Join(c.Data, "node"), c.Log, c.Max
	if o.Seal, err = sealer(c.Data); err != nil {
		return nil, err
	}
	if n.machines, err = openMachines(c.MicroVM, c.Data, &o, c.Log); err != nil {
		return nil, err
	}
	machines := n.machines
	defer func() {
		if err != nil {
			_ = machines.close()
		}
	}()
	n.node = node.New(o)
	if _, err = n.node.Sweep(ctx); err != nil {
		return nil, err
	}
	l, err := listen("--listen", c.Listen, nil)
	if err != nil {
		return nil, err
	}
	n.Endpoint = reachable(l)
	if c.Advertise == "" {
		c.Advertise = n.Endpoint
	}
	local := node.Local(n.node, name, c.Version)
	n.srv = nodeServer(c.Log, rpc.NewServer(local))
	go func() {
		if err := n.srv.Serve(tls.NewListener(l, rpc.TLS(cert, authority, rpc.ServiceName))); !errors.Is(err, http.ErrServerClosed) {
			n.failed <- errs.New(errs.Other, "serve", n.Endpoint, err)
		}
	}()
	n.member = &rpc.Member{Service: c.Join, Address: c.Advertise, Config: rpc.ClientTLS(cert, authority), Host: local, Log: c.Log}
	return n, nil
}

// Run keeps the node known to the service until ctx ends or the listener fails. What runs on it ends with it; what sleeps, sleeps on.
func (n *Node) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		n.member.Run(ctx)
		close(done)
	}()
	var err error
	select {
	case <-ctx.Done():
	case err = <-n.failed:
	}
	cancel()
	<-done
	end, stop := context.WithTimeout(context.Background(), drainTimeout)
	defer stop()
	_ = n.srv.Close() // whoever waits for a sandbox hears that the node is gone: it is
	return errors.Join(err, n.node.Close(end), n.machines.close(), n.guests.Close(), n.store.Close())
}
