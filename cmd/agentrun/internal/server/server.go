package server

import (
	"context"
	"crypto/tls"
	"errors"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/cmd/agentrun/internal/sandbox"
	"agentrun.dev/cmd/agentrun/internal/settings"
	"agentrun.dev/control"
	"agentrun.dev/engine/userspace"
	"agentrun.dev/errs"
	"agentrun.dev/node"
	"agentrun.dev/serve/mcp"
	"agentrun.dev/serve/metrics"
	"agentrun.dev/serve/rest"
	"agentrun.dev/serve/s3"
	"agentrun.dev/serve/ssh"
)

// Config is what 'up' was asked for.
type Config struct {
	Data             string // directory of the store
	GuestCache       string // where compiled guests are kept; "" for nowhere
	Listen, S3Listen string // host:port of the API and of S3
	TLSCert, TLSKey  string // files in PEM; both or neither
	SelfSigned       bool   // serve TLS with a certificate of our own making
	Domains          []string
	Root             settings.RootKey // zero: the data directory's own
	History          time.Duration    // see bucket.Options
	SSH              SSH
	PortHost         string   // a domain beneath which PORT-ID.PortHost is a server in a sandbox; localhost, where browsers find this machine, if empty
	E2BDomain        string   // a domain beneath which E2B's clients find api and PORT-ID, with a port where it isn't 443; PortHost with the listener's, if empty
	NodeListen       string   // host:port at which nodes make themselves known; "" for none
	NoLocalNode      bool     // sandboxes of the service run on other hosts only
	BuildNetwork     []string // what init lines of templates may connect to, as package egress has it
	MCP              MCP
	MicroVM          MicroVM
	AuditKeep        time.Duration // how long the audit log's entries are kept; 0: for ever
	Version          string
	Log              *slog.Logger
}

// Validate refuses what can't work, before anything is touched.
func (c *Config) Validate() error {
	if c.Data == "" {
		return errs.Msg(errs.Invalid, "up", "--data", "want a directory")
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return errs.Msg(errs.Invalid, "up", "--tls-cert, --tls-key", "one goes with the other")
	}
	if c.TLSCert != "" && c.SelfSigned {
		return errs.Msg(errs.Invalid, "up", "--tls-self-signed", "there is a certificate already")
	}
	if c.Root != (settings.RootKey{}) {
		if err := c.Root.Check(); err != nil {
			return err
		}
	}
	if err := c.SSH.validate(); err != nil {
		return err
	}
	if err := c.MCP.Base.Check(); err != nil {
		return err
	}
	for _, l := range []struct{ flag, addr string }{{"--listen", c.Listen}, {"--s3-listen", c.S3Listen}} {
		host, port, err := net.SplitHostPort(l.addr)
		if err != nil || port == "" {
			return errs.Msg(errs.Invalid, "up", l.flag, "want HOST:PORT, such as 127.0.0.1:7070")
		}
		if !loopback(host) && c.TLSCert == "" && !c.SelfSigned {
			return errs.Msg(errs.Invalid, "up", l.flag+" "+l.addr, "an address that others can reach needs TLS").
				WithHint("add --tls-cert FILE --tls-key FILE, or --tls-self-signed")
		}
	}
	return nil
}

// loopback reports whether only this machine reaches the host. Other names than localhost may resolve to anything.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Server is a running server.
type Server struct {
	Endpoint, S3Endpoint string
	Root                 settings.RootKey
	RootKeyFile          string // "" if the key came from outside
	CACert, CACertFile   string // of a self-signed server
	SSHEndpoint          string // host:port; "" if there is no SSH
	SSHOpen              bool   // anyone who can connect may log in
	NodeEndpoint         string // host:port for nodes; "" if there is none

	store    *Store
	guests   *userspace.Guests
	machines *machines // nil: there are none
	node     *node.Node
	guard    *access.Guard
	control  *control.Control
	ssh      *ssh.Server // nil if there is none
	mcp      *mcp.Handler
	pipe     *mcp.Pipe
	servers  []*http.Server
	active   sync.WaitGroup // requests, hijacked ones included
	draining atomic.Bool
	cancel   context.CancelCauseFunc
	failed   chan error
	serving  sync.WaitGroup
}

// Limits of the HTTP servers. Bodies have no deadline as a whole: an upload may take as long as it keeps moving.
const (
	headerTimeout = 15 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
	drainTimeout  = 15 * time.Second
)

// Start opens the store and both listeners. When it returns, requests are answered.
func Start(ctx context.Context, c Config) (s *Server, err error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.PortHost == "" {
		c.PortHost = "localhost"
	}
	cert, err := c.givenCertificate()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return nil, errs.New(errs.Other, "up", c.Data, err)
	}
	s = &Server{failed: make(chan error, 4), guests: userspace.NewGuests(userspace.GuestOptions{CacheDir: c.GuestCache})}
	// The store's lock comes first: it keeps a second process from writing anything into the directory.
	if s.store, err = OpenStore(ctx, c.Data, StoreOptions{History: c.History, Log: c.Log}); err != nil {
		return nil, err
	}
	store := s.store
	defer func() {
		if err != nil {
			_ = store.Close()
		}
	}()
	keys, err := s.openKeys(&c)
	if err != nil {
		return nil, err
	}
	o := sandbox.NodeOptions(s.store.Store, s.guests)
	o.Dir, o.Log = filepath.Join(c.Data, "node"), c.Log
	if o.Seal, err = sealer(c.Data); err != nil {
		return nil, err
	}
	if s.machines, err = openMachines(c.MicroVM, c.Data, &o, c.Log); err != nil {
		return nil, err
	}
	machines := s.machines
	defer func() {
		if err != nil {
			_ = machines.close()
		}
	}()
	s.node = node.New(o)
	if _, err := s.node.Sweep(ctx); err != nil {
		return nil, err
	}
	if c.SelfSigned {
		if cert, s.CACertFile, err = c.ownCertificate(); err != nil {
			return nil, err
		}
		pem, err := os.ReadFile(s.CACertFile)
		if err != nil {
			return nil, errs.New(errs.Other, "up", s.CACertFile, err)
		}
		s.CACert = string(pem)
	}
	apiListener, err := listen("--listen", c.Listen, cert)
	if err != nil {
		return nil, err
	}
	s3Listener, err := listen("--s3-listen", c.S3Listen, cert)
	if err != nil {
		_ = apiListener.Close()
		return nil, err
	}
	sshListener, err := s.openSSH(ctx, &c, keys)
	if err != nil {
		_, _ = apiListener.Close(), s3Listener.Close()
		return nil, err
	}
	scheme := "http"
	if cert != nil {
		scheme = "https"
	}
	s.Endpoint, s.S3Endpoint = scheme+"://"+reachable(apiListener), scheme+"://"+reachable(s3Listener)
	if err = s.openService(ctx, &c, keys); err == nil {
		if err = s.openMCP(&c); err == nil {
			err = s.listenForNodes(&c, s.control)
		}
		if err != nil {
			err = errors.Join(err, s.closeService(ctx))
		}
	}
	if err != nil {
		_, _ = apiListener.Close(), s3Listener.Close()
		return nil, err
	}
	if err = s.serve(ctx, &c, keys, apiListener, s3Listener); err != nil {
		_, _ = apiListener.Close(), s3Listener.Close()
		return nil, errors.Join(err, s.closeService(ctx))
	}
	if s.ssh != nil {
		s.serving.Go(func() {
			if err := s.ssh.Serve(sshListener); err != nil {
				s.failed <- err
			}
		})
	}
	return s, nil
}

// openKeys opens the access keys and settles the root key.
func (s *Server) openKeys(c *Config) (*access.Keys, error) {
	s.Root = c.Root
	if s.Root == (settings.RootKey{}) {
		var err error
		if s.Root, err = settings.LoadRootKey(c.Data); err != nil {
			return nil, err
		}
		s.RootKeyFile = filepath.Join(c.Data, settings.RootKeyFile)
	}
	master, err := settings.LoadMasterKey(c.Data)
	if err != nil {
		return nil, err
	}
	return access.New(access.Options{KV: s.store.KV, MasterKey: master, RootID: s.Root.ID, RootSecret: s.Root.Secret})
}

func listen(flag, addr string, cert *tls.Certificate) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err
		}
		return nil, errs.New(errs.Unavailable, "listen", addr, err).WithHint("another program may be using the port: choose one with " + flag + " HOST:PORT; port 0 takes a free one")
	}
	if cert != nil {
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{*cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}})
	}
	return l, nil
}

// reachable returns the address of a listener as this machine reaches it.
func reachable(l net.Listener) string {
	host, port, _ := net.SplitHostPort(l.Addr().String())
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// serve starts both servers.
func (s *Server) serve(ctx context.Context, c *Config, keys *access.Keys, api, s3l net.Listener) error {
	log := c.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	mo := metrics.Options{Version: c.Version, Stored: s.store.Stored, Service: s.control.Metrics}
	if s.ssh != nil {
		mo.More = append(mo.More, s.ssh)
	}
	m := metrics.New(s.store.Store, mo)
	host, _, _ := net.SplitHostPort(c.Listen)
	s3Endpoint := s.S3Endpoint
	if h, _, _ := net.SplitHostPort(c.S3Listen); h == "" || net.ParseIP(h) != nil && net.ParseIP(h).IsUnspecified() {
		// Listening everywhere: a client reaches S3 at the host by which it reached the API.
		_, port, _ := net.SplitHostPort(s3l.Addr().String())
		s3Endpoint = "https://:" + port
	}
	restHandler := rest.New(s.store.Store, keys, rest.Options{
		Version: c.Version, S3Endpoint: s3Endpoint, Runner: &runner{s.node}, Stored: s.store.Stored, Log: log,
		Control: s.control, Guard: s.guard, Ports: ports(c), PortHost: c.PortHost,
		Metrics: m.Handler(), OpenMetrics: loopback(host), MCP: s.mcp,
		Ready: func() error {
			if s.draining.Load() {
				return errs.Msg(errs.Unavailable, "serve", "", "the server is ending")
			}
			return nil
		},
	})
	apiHandler, err := s.openE2B(ctx, c, keys, m, restHandler, log)
	if err != nil {
		return err
	}
	s3Handler := s3.New(s.store.Store, keys, s3.Options{Domains: append([]string{"localhost"}, c.Domains...), Log: log})

	base, cancel := context.WithCancelCause(context.Background())
	s.cancel = cancel
	for _, p := range []struct {
		l net.Listener
		h http.Handler
	}{{api, apiHandler}, {s.pipe, restHandler}, {s3l, m.Wrap("s3", s3Handler)}} {
		srv := &http.Server{Handler: s.tracked(p.h), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
			BaseContext: func(net.Listener) context.Context { return base }, ErrorLog: quiet(log)}
		s.servers = append(s.servers, srv)
		s.serving.Go(func() {
			if err := srv.Serve(p.l); !errors.Is(err, http.ErrServerClosed) {
				s.failed <- errs.New(errs.Other, "serve", p.l.Addr().String(), err)
			}
		})
	}
	return nil
}

func quiet(log *slog.Logger) *stdlog.Logger { return stdlog.New(&serverLog{log}, "", 0) }

// serverLog takes what net/http has to say: a defect of ours is an error, a client's bad manners are not news.
type serverLog struct{ log *slog.Logger }

func (l *serverLog) Write(b []byte) (int, error) {
	text := strings.TrimRight(string(b), "\n")
	if strings.Contains(text, "panic serving") {
		l.log.Error("a request failed by a defect", "trace", text)
	} else {
		l.log.Debug(text)
	}
	return len(b), nil
}

// tracked counts requests, so that Close can wait for those that were taken over as WebSockets, too.
func (s *Server) tracked(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.active.Add(1)
		defer s.active.Done()
		h.ServeHTTP(w, r)
	})
}

// Run serves until ctx ends or a listener fails; then it lets requests finish, for a while, and closes the store.
func (s *Server) Run(ctx context.Context) error {
	var err error
	select {
	case <-ctx.Done():
	case err = <-s.failed:
	}
	return errors.Join(err, s.close())
}

func (s *Server) close() error {
	s.draining.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	_ = s.mcp.Close(ctx) // what is left then ends with its connection
	var drains sync.WaitGroup
	for _, srv := range s.servers {
		drains.Go(func() { _ = srv.Shutdown(ctx) })
	}
	if s.ssh != nil {
		drains.Go(func() { _ = s.ssh.Close(ctx) }) // what is left then, the node ends
	}
	drains.Wait()
	// What is left are commands and whoever didn't finish in time.
	s.cancel(errs.Msg(errs.Unavailable, "serve", "", "the server is ending"))
	for _, srv := range s.servers {
		_ = srv.Close()
	}
	s.serving.Wait()
	s.active.Wait()
	sleep, cancelSleep := context.WithTimeout(context.Background(), sleepTimeout)
	defer cancelSleep()
	service := errors.Join(s.control.Suspend(sleep), s.closeService(sleep))
	end, cancelEnd := context.WithTimeout(context.Background(), drainTimeout)
	defer cancelEnd()
	return errors.Join(service, s.node.Close(end), s.machines.close(), s.guests.Close(), s.store.Close())
}
