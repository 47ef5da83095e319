// Package ssh serves sandboxes over SSH: whoever connects, with any client and under any name, is in a sandbox of their own.
//
// A connection's world is one sandbox of a node, made when its first session starts, whose /workspace is a fork of a bucket
// (Login.Base), or a sandbox of the service of a template (Login.Template), whatever its engine. All sessions of the connection share it: shells and commands, with a terminal or without, and transfers of
// files, which are commands of the sandbox (scp, sftp-server, rsync). When the connection ends, so do the sandbox and the
// fork, unless it was asked to be kept. Nothing of the host can be reached: forwarding of ports, agents and X11 is refused.
//
// Who may log in, and as what, is decided by a function (Options.Login); Access is the one that the server uses.
package ssh

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"agentrun.dev/access"
	"agentrun.dev/control"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// Defaults and limits.
const (
	DefaultMax       = 2000             // connections at once
	DefaultIdle      = 4 * time.Hour    // without a byte in either direction
	DefaultHandshake = 30 * time.Second // from the connection to the login
	DefaultKeepAlive = 30 * time.Second // between questions whether the client is still there; it may miss two

	maxSessions = 64       // sessions of one connection at once
	maxEnv      = 128      // variables that a session may set
	maxEnvBytes = 64 << 10 // of all of them
	maxCommand  = 128 << 10
	missed      = 3 // unanswered questions that end a connection
)

// Options describe a server.
type Options struct {
	Node    *node.Node
	Service func() *control.Control // of sandboxes of templates, asked when one is wanted; nil: there are none
	HostKey ssh.Signer
	// Login decides who may come in, and what they get. Open says that a client which proves nothing is asked about, too.
	Login func(ctx context.Context, c Credentials) (*Login, error)
	Open  bool

	Keep      bool // forks outlive their connections
	Limits    engine.Limits
	Network   []string      // what sandboxes may connect to, as node.Spec has it
	Max       int           // connections at once; DefaultMax when 0
	Idle      time.Duration // DefaultIdle when 0
	Handshake time.Duration // DefaultHandshake when 0
	KeepAlive time.Duration // DefaultKeepAlive when 0
	Log       *slog.Logger  // nil: nothing is logged
}

// Credentials are what a client shows: a public key whose owner it proves to be, a password, or nothing.
type Credentials struct {
	User     string
	Key      ssh.PublicKey
	Password string
	Remote   string // address
}

// Login is what a client gets.
type Login struct {
	Name string // who it is, for logs
	Base string // what its sandbox begins with: BUCKET or BUCKET@SNAPSHOT; "" is an empty bucket
	Keep bool   // it may keep its fork
	// Template is what its sandbox is made of, by whom; "": it is the server's own, on a fork of Base. Refused is why it can't be, which the
	// client's first session is told.
	Template string
	Caller   *access.Caller
	Refused  error
}

// Server serves SSH. All methods may be called concurrently.
type Server struct {
	o       Options
	config  *ssh.ServerConfig
	metrics metrics
	ctx     context.Context // of all connections
	cancel  context.CancelCauseFunc

	mu        sync.Mutex
	closed    bool
	listeners map[net.Listener]struct{}
	conns     map[net.Conn]struct{}
	active    sync.WaitGroup // connections, up to the end of their sandboxes
}

// errEnding is why connections end when the server does.
var errEnding = errs.Msg(errs.Unavailable, "ssh", "", "the server is ending")

// New returns a server.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Max <= 0 {
		o.Max = DefaultMax
	}
	for _, d := range []struct {
		value *time.Duration
		usual time.Duration
	}{{&o.Idle, DefaultIdle}, {&o.Handshake, DefaultHandshake}, {&o.KeepAlive, DefaultKeepAlive}} {
		if *d.value <= 0 {
			*d.value = d.usual
		}
	}
	s := &Server{o: o, listeners: map[net.Listener]struct{}{}, conns: map[net.Conn]struct{}{}}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.config = s.serverConfig()
	return s
}

// serverConfig has the algorithms that OpenSSH 9 offers by itself, without the last ones with SHA-1.
func (s *Server) serverConfig() *ssh.ServerConfig {
	c := &ssh.ServerConfig{
		Config: ssh.Config{
			KeyExchanges: []string{ssh.KeyExchangeMLKEM768X25519, ssh.KeyExchangeCurve25519, "curve25519-sha256@libssh.org",
				ssh.KeyExchangeECDHP256, ssh.KeyExchangeECDHP384, ssh.KeyExchangeECDHP521, ssh.KeyExchangeDH16SHA512, ssh.KeyExchangeDH14SHA256},
			Ciphers: []string{ssh.CipherAES128GCM, ssh.CipherChaCha20Poly1305, ssh.CipherAES256GCM, ssh.CipherAES128CTR, ssh.CipherAES192CTR, ssh.CipherAES256CTR},
			MACs:    []string{ssh.HMACSHA256ETM, ssh.HMACSHA512ETM, ssh.HMACSHA256, ssh.HMACSHA512},
		},
		PublicKeyAuthAlgorithms: []string{ssh.KeyAlgoED25519, ssh.KeyAlgoSKED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
			ssh.KeyAlgoSKECDSA256, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256},
		ServerVersion: "SSH-2.0-AgentRun",
	}
	if s.o.HostKey != nil {
		c.AddHostKey(s.o.HostKey)
	}
	login := func(m ssh.ConnMetadata, cr Credentials) (*ssh.Permissions, error) {
		cr.User, cr.Remote = m.User(), m.RemoteAddr().String()
		l, err := s.o.Login(s.ctx, cr)
		if err != nil {
			return nil, err
		}
		return &ssh.Permissions{ExtraData: map[any]any{loginKey{}: l}}, nil
	}
	if s.o.Open {
		c.NoClientAuth = true
		c.NoClientAuthCallback = func(m ssh.ConnMetadata) (*ssh.Permissions, error) { return login(m, Credentials{}) }
	}
	c.PublicKeyCallback = func(m ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		return login(m, Credentials{Key: key})
	}
	c.PasswordCallback = func(m ssh.ConnMetadata, b []byte) (*ssh.Permissions, error) {
		return login(m, Credentials{Password: string(b)})
	}
	return c
}

// loginKey is where a connection's permissions hold its Login.
type loginKey struct{}

// Serve takes connections from a listener until Close, which is no error, or until the listener fails.
func (s *Server) Serve(l net.Listener) error {
	if !s.listen(l) {
		_ = l.Close()
		return errEnding
	}
	defer l.Close()
	for wait := time.Duration(0); ; {
		c, err := l.Accept()
		if err == nil {
			wait = 0
			s.accept(c)
			continue
		}
		if s.ctx.Err() != nil {
			return nil
		}
		var ne net.Error
		if !errors.As(err, &ne) || !ne.Timeout() && !temporary(err) {
			return errs.New(errs.Other, "ssh", l.Addr().String(), err)
		}
		// Such as when there are no descriptors left: those in use come back.
		wait = min(max(2*wait, 5*time.Millisecond), time.Second)
		s.o.Log.Warn("accept", "err", err)
		select {
		case <-time.After(wait):
		case <-s.ctx.Done():
			return nil
		}
	}
}

// temporary reports whether accepting may work again.
func temporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

func (s *Server) listen(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.listeners[l] = struct{}{}
	return true
}

// accept serves a connection, or turns it away where there are too many.
func (s *Server) accept(c net.Conn) {
	s.mu.Lock()
	full := len(s.conns) >= s.o.Max
	if !full && !s.closed {
		s.conns[c] = struct{}{}
		s.active.Add(1)
		s.mu.Unlock()
		go s.serve(c)
		return
	}
	s.mu.Unlock()
	if full {
		s.metrics.turnedAway.Add(1)
	}
	_ = c.Close()
}

func (s *Server) serve(c net.Conn) {
	defer s.active.Done()
	defer func() {
		_ = c.Close()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetNoDelay(true)
	}
	_ = c.SetDeadline(time.Now().Add(s.o.Handshake))
	counted := &countingConn{Conn: c, m: &s.metrics}
	counted.last.Store(time.Now().UnixNano())
	sc, channels, requests, err := ssh.NewServerConn(counted, s.config)
	if err != nil {
		s.metrics.failed.Add(1)
		s.o.Log.Debug("ssh login", "from", c.RemoteAddr(), "err", err)
		return
	}
	_ = c.SetDeadline(time.Time{})
	login, _ := sc.Permissions.ExtraData[loginKey{}].(*Login)
	s.metrics.accepted.Add(1)
	s.metrics.connections.Add(1)
	defer s.metrics.connections.Add(-1)
	s.o.Log.Info("ssh login", "from", c.RemoteAddr(), "user", sc.User(), "as", login.Name, "base", login.Base, "template", login.Template)
	(&conn{s: s, sc: sc, login: login, counted: counted}).run(channels, requests)
}

// Close turns new connections away, tells the sessions that the server is ending, ends them and their sandboxes, and returns
// when all is done or ctx is.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.cancel(errEnding) // first, by which Serve knows why a listener fails
	for l := range s.listeners {
		_ = l.Close()
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { // ends with the last connection: each of them is bounded by node.EndTimeout
		s.active.Wait()
		close(done)
	}()
	// Those that are still logging in have nothing to end; the others end themselves, and have a moment for what they say.
	grace := time.NewTimer(2 * time.Second)
	defer grace.Stop()
	select {
	case <-done:
		return nil
	case <-grace.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return errs.New(errs.Canceled, "ssh", "", ctx.Err())
	}
}
