package python

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// Connections of guests: their Python has no sockets, but asks for these operations (lib/_socket.py, lib/ssl.py). A request is fields that end with a NUL
// byte, and then data. An answer begins with '+', or with '-' and an error: number, NUL byte, text. TLS is done here.
const (
	callConnect = 10 // host, port, milliseconds (-1: no limit) → handle
	callReceive = 11 // handle, bytes, milliseconds → data; none at the end
	callSend    = 12 // handle, milliseconds, data → how many
	callShut    = 13 // handle, how: "w", or "" for all
	callTLS     = 14 // handle, name, verify: "0", "1" (the chain), "2" (the name too); protocols, separated by commas; certificates in PEM → version, cipher, protocol; of the server's certificate names, subject, issuer, since, until; and itself
	callFile    = 15 // handle → descriptor from which the rest is read

	// Sockets of the sandbox's own network are descriptors. callConnect answers with "f" and one when it comes to such a connection.
	callSocket   = 16 // "4" or "6" → descriptor
	callOption   = 17 // descriptor, "reuse", "port" or "v6only", number
	callBind     = 18 // descriptor, host, port
	callListen   = 19 // descriptor, backlog
	callAccept   = 20 // descriptor → descriptor; it doesn't wait
	callNames    = 21 // descriptor → host, port, peer's host, port; empty where there is none
	callShutdown = 22 // descriptor, how: 0 (reading), 1 (writing) or 2
	callJoin     = 23 // descriptor, host, port, milliseconds; ENETUNREACH for what is outside
	callAdopt    = 24 // descriptor of a connection, which is closed → handle
)

const (
	maxConns   = 256     // of one process
	maxReceive = 1 << 20 // bytes of one answer
	tlsTime    = 30 * time.Second
)

// Dial connects to an address, "host:port", in the name of a process; what its sandbox's policy refuses is errs.Denied.
type Dial func(ctx context.Context, p *proc.Process, network, addr string) (net.Conn, error)

// conns are the connections of one process.
type conns struct {
	mu     sync.Mutex
	open   map[int]net.Conn
	closed bool
}

// network does an operation.
func (in *Interpreter) network(p *proc.Process, op uint32, data []byte) []byte {
	out, err := in.networkCall(p, op, data)
	if err == nil {
		return append([]byte{'+'}, out...)
	}
	no := int(vfs.Errno(err))
	var late interface{ Timeout() bool }
	var unknown *net.DNSError
	text := err.Error()
	switch {
	case errs.Is(err, errs.Denied):
		no, text = int(syscall.EACCES), denial(err)
	case errors.As(err, &unknown):
		no = 1<<16 | 2 // gaierror: EAI_NONAME
	case no == int(syscall.EAGAIN): // which Go calls a timeout
	case errors.As(err, &late) && late.Timeout():
		no = int(syscall.ETIMEDOUT)
	case op == callTLS:
		no = 1 << 17 // SSLError
		var invalid *tls.CertificateVerificationError
		if errors.As(err, &invalid) {
			no, text = 1<<17|1, invalid.Err.Error()
		}
	case no == int(syscall.EIO):
		no = int(syscall.ECONNRESET)
	}
	return fmt.Appendf(nil, "-%d\x00%s", no, text)
}

// denial says what was refused and what would allow it.
func denial(err error) string {
	text := "network access is denied in this sandbox: " + err.Error()
	var e *errs.Error
	if errors.As(err, &e) && e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

func (in *Interpreter) networkCall(p *proc.Process, op uint32, data []byte) ([]byte, error) {
	field := func() string {
		text, rest, _ := bytes.Cut(data, []byte{0})
		data = rest
		return string(text)
	}
	number := func() int {
		n, err := strconv.Atoi(field())
		if err != nil {
			n = -1
		}
		return n
	}
	limit := func() time.Duration {
		if ms := number(); ms >= 0 {
			return time.Duration(ms) * time.Millisecond
		}
		return -1
	}
	if op >= callSocket && op <= callJoin {
		return local(p, op, field, number, limit)
	}
	c := in.connsOf(p)
	switch op {
	case callConnect:
		host, port := field(), field()
		return in.connect(c, p, host, port, limit())
	case callAdopt:
		conn, err := p.TakeConn(number())
		if err != nil {
			return nil, err
		}
		return in.hold(c, conn)
	}
	n := number()
	c.mu.Lock()
	conn := c.open[n]
	c.mu.Unlock()
	switch {
	case conn == nil && op == callShut:
		return nil, nil
	case conn == nil:
		return nil, syscall.ECONNRESET // of the process that this one is a copy of
	}
	switch op {
	case callReceive:
		b := make([]byte, min(max(number(), 0), maxReceive))
		k, err := within(p, conn.SetReadDeadline, limit(), func() (int, error) { return conn.Read(b) })
		if k > 0 || err == io.EOF {
			err = nil
		}
		return b[:k], err
	case callSend:
		d := limit()
		k, err := within(p, conn.SetWriteDeadline, d, func() (int, error) { return conn.Write(data) })
		if k > 0 {
			err = nil
		}
		return strconv.AppendInt(nil, int64(k), 10), err
	case callShut:
		if half, ok := conn.(interface{ CloseWrite() error }); ok && field() == "w" {
			return nil, half.CloseWrite()
		}
		c.forget(n)
		return nil, nil
	case callTLS:
		name, verify, protocols := field(), field(), field()
		return c.secure(p, n, conn, name, verify, protocols, data)
	case callFile:
		return strconv.AppendInt(nil, int64(install(p, conn)), 10), nil
	}
	return nil, syscall.ENOSYS
}

// connsOf returns the process's connections, which are closed when its program ends.
func (in *Interpreter) connsOf(p *proc.Process) *conns {
	c, ok := in.conns.Load(p)
	if !ok {
		c, _ = in.conns.LoadOrStore(p, &conns{open: make(map[int]net.Conn)})
	}
	return c.(*conns)
}

// hangUp closes what a process has left open.
func (in *Interpreter) hangUp(p *proc.Process) {
	v, ok := in.conns.LoadAndDelete(p)
	if !ok {
		return
	}
	c := v.(*conns)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, conn := range c.open {
		conn.Close()
	}
}

// connect makes a connection. Handles are never used twice: a copy of a process has those of its original, which mean nothing there.
func (in *Interpreter) connect(c *conns, p *proc.Process, host, port string, limit time.Duration) ([]byte, error) {
	if n, err := strconv.ParseUint(port, 10, 16); err == nil {
		done, stop := ending(limit)
		defer stop()
		if fd, local, err := p.ConnectLocal(host, uint16(n), done); local {
			return strconv.AppendInt([]byte("f"), int64(fd), 10), err
		}
	}
	addr := net.JoinHostPort(host, port)
	c.mu.Lock()
	full := len(c.open) >= maxConns
	c.mu.Unlock()
	switch {
	case in.o.Dial == nil:
		return nil, errs.Msg(errs.Denied, "connect", addr, "this sandbox has no network")
	case full:
		return nil, syscall.EMFILE
	}
	ctx := p.Context()
	if limit >= 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	conn, err := in.o.Dial(ctx, p, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return in.hold(c, conn)
}

// hold gives a connection a handle.
func (in *Interpreter) hold(c *conns, conn net.Conn) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		conn.Close()
		return nil, syscall.ECONNABORTED
	}
	n := in.handles.Add(1)
	c.open[int(n)] = conn
	return strconv.AppendInt(nil, n, 10), nil
}

// forget closes a connection.
func (c *conns) forget(n int) {
	c.mu.Lock()
	conn := c.open[n]
	delete(c.open, n)
	c.mu.Unlock()
	if conn != nil {
		conn.Close()
	}
}

// within does one call that ends when its time is up, when the process is killed, or for a signal that it handles.
func within(p *proc.Process, set func(time.Time) error, limit time.Duration, call func() (int, error)) (int, error) {
	end := time.Time{}
	if limit >= 0 {
		end = time.Now().Add(limit)
	}
	set(end)
	done, over := make(chan struct{}), make(chan struct{})
	var interrupted error
	go func() {
		defer close(over)
		select {
		case <-done:
		case <-p.Interrupt():
			interrupted = syscall.EINTR
			set(time.Unix(1, 0))
		}
	}()
	n, err := call()
	close(done)
	<-over
	if errors.Is(err, os.ErrDeadlineExceeded) && interrupted != nil {
		err = interrupted
	}
	return n, err
}

// secure makes a connection one of TLS.
func (c *conns) secure(p *proc.Process, n int, conn net.Conn, name, verify, protocols string, pem []byte) ([]byte, error) {
	o := &tls.Config{ServerName: name, MinVersion: tls.VersionTLS12, InsecureSkipVerify: verify != "2"}
	if protocols != "" {
		o.NextProtos = strings.Split(protocols, ",")
	}
	if len(pem) > 0 {
		o.RootCAs = x509.NewCertPool()
		if !o.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("no certificate in the file of authorities")
		}
	}
	if verify == "1" { // the chain, but for any name
		o.VerifyConnection = func(s tls.ConnectionState) error {
			chain := x509.VerifyOptions{Roots: o.RootCAs, Intermediates: x509.NewCertPool()}
			for _, cert := range s.PeerCertificates[1:] {
				chain.Intermediates.AddCert(cert)
			}
			_, err := s.PeerCertificates[0].Verify(chain)
			return err
		}
	}
	ctx, cancel := context.WithTimeout(p.Context(), tlsTime)
	defer cancel()
	conn.SetDeadline(time.Time{})
	secured := tls.Client(conn, o)
	if err := secured.HandshakeContext(ctx); err != nil {
		c.forget(n)
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[n] == nil {
		return nil, syscall.ECONNRESET
	}
	c.open[n] = secured
	s := secured.ConnectionState()
	cert := s.PeerCertificates[0]
	names := slices.Clone(cert.DNSNames)
	for _, ip := range cert.IPAddresses {
		names = append(names, "ip:"+ip.String())
	}
	const day = "Jan _2 15:04:05 2006 GMT"
	out := fmt.Appendf(nil, "%s\x00%s\x00%s\x00", strings.Replace(tls.VersionName(s.Version), "TLS ", "TLSv", 1), tls.CipherSuiteName(s.CipherSuite), s.NegotiatedProtocol)
	for _, text := range []string{strings.Join(names, ","), cert.Subject.CommonName, cert.Issuer.CommonName, cert.NotBefore.UTC().Format(day), cert.NotAfter.UTC().Format(day)} {
		out = append(append(out, strings.ReplaceAll(text, "\x00", "")...), 0)
	}
	return append(out, cert.Raw...), nil
}

// install gives the process a descriptor that reads what comes.
func install(p *proc.Process, conn net.Conn) int {
	used := p.Fds()
	fd := 3
	for slices.Contains(used, fd) {
		fd++
	}
	conn.SetReadDeadline(time.Time{})
	if p.Install(fd, proc.NewInput(conn, false)) != nil {
		return -1
	}
	p.SetCloseOnExec(fd, true)
	return fd
}
