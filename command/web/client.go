package web

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/command/services"
	"agentrun.dev/command/tool"
)

// Limits on what a server sends.
const (
	maxHead = 300 << 10 // bytes of a response's head, as curl has it
)

// field is a header field as it stands in a message.
type field struct{ name, value string }

// request is what to send. Fields are sent as they are, in their order, Host included.
type request struct {
	method, target string
	fields         []field
	body           io.Reader // nil: none
	size           int64     // of the body; negative: unknown, sent in chunks
}

// response is a response whose body is still to be read.
type response struct {
	proto  string // "HTTP/1.1"
	status int
	reason string
	head   []byte // as it came, with its empty line
	fields []field
	body   io.Reader
	length int64 // announced; negative: unknown
	keep   bool  // the connection may be used again after the body
}

// get returns the first field of a name.
func (r *response) get(name string) string {
	for _, f := range r.fields {
		if strings.EqualFold(f.name, name) {
			return f.value
		}
	}
	return ""
}

// phases are moments of a transfer, since its start.
type phases struct {
	start                                   time.Time
	connect, appConnect, pretransfer, first time.Duration
	connects                                int
}

// client makes connections for one command.
type client struct {
	t        *tool.T
	ctx      context.Context // ends at the time limit
	insecure bool
	roots    *x509.CertPool
	minTLS   uint16
	maxTLS   uint16
	timeout  time.Duration     // of connecting
	resolve  map[string]string // "host:port" → address to connect to instead
	network  string            // tcp, tcp4, tcp6
	idle     *conn
	at       phases
	note     func(format string, args ...any) // news of the connection, for -v
}

// conn is a connection to one origin.
type conn struct {
	net.Conn
	r    *bufio.Reader
	key  string
	stop func() bool
	used bool
}

func (c *conn) close() {
	if c != nil {
		c.stop()
		c.Conn.Close()
	}
}

// errorKind says in which phase a transfer failed.
type errorKind uint8

const (
	failedResolve errorKind = iota + 1
	failedConnect
	failedTimeout
	failedTLS
	failedCertificate
	failedEmpty
	failedReceive
	failedSend
	failedPartial
	failedProtocol
	failedDenied
)

// transferError is why a transfer failed.
type transferError struct {
	kind errorKind
	text string
	err  error
}

func (e *transferError) Error() string { return e.text }
func (e *transferError) Unwrap() error { return e.err }

// dial connects to an origin, or takes the idle connection to it.
func (c *client) dial(scheme, host, port string) (*conn, error) {
	key := scheme + "://" + net.JoinHostPort(host, port)
	if old := c.idle; old != nil {
		c.idle = nil
		if old.key == key {
			c.note("Re-using existing connection with host %s", host)
			old.used = true
			return old, nil
		}
		old.close()
	}
	addr := net.JoinHostPort(host, port)
	if to, ok := c.resolve[addr]; ok {
		addr = to
	}
	ctx, cancel := c.ctx, context.CancelFunc(func() {})
	if c.timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
	}
	defer cancel()
	began := time.Now()
	c.note("  Trying %s...", addr)
	raw, err := services.From(c.t.Process).Connect(ctx, c.network, addr)
	if err != nil {
		return nil, c.connectError(ctx, err, host, port, time.Since(began))
	}
	c.at.connects++
	c.at.connect = time.Since(c.at.start)
	c.note("Connected to %s (%s) port %s (#0)", host, remoteHost(raw), port)
	nc := &conn{Conn: raw, key: key}
	nc.stop = context.AfterFunc(c.ctx, func() { raw.Close() })
	if scheme == "https" {
		if nc.Conn, err = c.secure(ctx, raw, host, port); err != nil {
			nc.close()
			return nil, err
		}
		c.at.appConnect = time.Since(c.at.start)
	}
	nc.r = bufio.NewReaderSize(nc.Conn, 16<<10)
	return nc, nil
}

func remoteHost(c net.Conn) string {
	if a := c.RemoteAddr(); a != nil {
		if h, _, err := net.SplitHostPort(a.String()); err == nil {
			return h
		}
	}
	return "unknown"
}

// secure begins TLS.
func (c *client) secure(ctx context.Context, raw net.Conn, host, port string) (net.Conn, error) {
	s := tls.Client(raw, &tls.Config{ServerName: host, RootCAs: c.roots, InsecureSkipVerify: c.insecure, MinVersion: c.minTLS, MaxVersion: c.maxTLS,
		NextProtos: []string{"http/1.1"}})
	err := s.HandshakeContext(ctx)
	if err == nil {
		state := s.ConnectionState()
		c.note("SSL connection using %s / %s", tls.VersionName(state.Version), tls.CipherSuiteName(state.CipherSuite))
		return s, nil
	}
	var unknown x509.UnknownAuthorityError
	var wrongHost x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case ctx.Err() != nil:
		return raw, &transferError{failedTimeout, "SSL connection timeout", err}
	case errors.As(err, &wrongHost):
		return raw, &transferError{failedCertificate, fmt.Sprintf("SSL: no alternative certificate subject name matches target host name '%s'", host), err}
	case errors.As(err, &unknown):
		text := "SSL certificate problem: unable to get local issuer certificate"
		if cert := unknown.Cert; cert != nil && cert.Issuer.String() == cert.Subject.String() {
			text = "SSL certificate problem: self-signed certificate"
		}
		return raw, &transferError{failedCertificate, text, err}
	case errors.As(err, &invalid):
		text := "SSL certificate problem: invalid certificate"
		if invalid.Reason == x509.Expired {
			text = "SSL certificate problem: certificate has expired"
		}
		return raw, &transferError{failedCertificate, text, err}
	}
	return raw, &transferError{failedTLS, fmt.Sprintf("TLS connect error in connection to %s:%s: %s", host, port, strings.TrimPrefix(err.Error(), "tls: ")), err}
}

// do sends a request and reads the head of its response. Interim responses are given to interim.
func (c *client) do(scheme, host, port string, q *request, interim func(*response)) (*conn, *response, error) {
	for {
		nc, err := c.dial(scheme, host, port)
		if err != nil {
			return nil, nil, err
		}
		c.at.pretransfer = time.Since(c.at.start)
		err = nc.send(q)
		var r *response
		if err == nil {
			r, err = c.receive(nc, q, interim)
		}
		if err == nil {
			return nc, r, nil
		}
		nc.close()
		// A kept connection may have been closed meanwhile: try once more on a fresh one.
		if nc.used && q.body == nil && c.ctx.Err() == nil {
			continue
		}
		return nil, nil, c.failure(err)
	}
}

// failure words an error of a connection.
func (c *client) failure(err error) error {
	var known *transferError
	switch {
	case errors.As(err, &known):
		return err
	case c.ctx.Err() != nil:
		return &transferError{failedTimeout, "", err}
	}
	return &transferError{failedReceive, "Recv failure: " + tool.Strerror(err), err}
}

func (c *conn) send(q *request) error {
	w := bufio.NewWriterSize(c.Conn, 16<<10)
	fmt.Fprintf(w, "%s %s HTTP/1.1\r\n", q.method, q.target)
	for _, f := range q.fields {
		w.WriteString(f.name + ":")
		if f.value != "" {
			w.WriteString(" " + f.value)
		}
		w.WriteString("\r\n")
	}
	w.WriteString("\r\n")
	if q.body != nil {
		if err := sendBody(w, q); err != nil {
			var own *transferError
			if errors.As(err, &own) {
				return err
			}
			return nil // the server may have answered before it took all
		}
	}
	if err := w.Flush(); err != nil {
		return &transferError{failedSend, "Send failure: " + tool.Strerror(err), err}
	}
	return nil
}

func sendBody(w *bufio.Writer, q *request) error {
	if q.size >= 0 {
		n, err := io.Copy(w, io.LimitReader(q.body, q.size))
		if err == nil && n < q.size {
			return &transferError{failedSend, "upload is shorter than its announced size", io.ErrUnexpectedEOF}
		}
		return err
	}
	buf := make([]byte, 16<<10)
	for {
		n, err := q.body.Read(buf)
		if n > 0 {
			fmt.Fprintf(w, "%x\r\n", n)
			w.Write(buf[:n])
			if _, werr := w.WriteString("\r\n"); werr != nil {
				return werr
			}
		}
		if errors.Is(err, io.EOF) {
			_, err = w.WriteString("0\r\n\r\n")
			return err
		}
		if err != nil {
			return err
		}
	}
}

// receive reads the head of a response.
func (c *client) receive(nc *conn, q *request, interim func(*response)) (*response, error) {
	for {
		r, err := readHead(nc.r)
		if err != nil {
			if errors.Is(err, io.EOF) && c.ctx.Err() == nil {
				return nil, &transferError{failedEmpty, "Empty reply from server", err}
			}
			return nil, err
		}
		if c.at.first == 0 {
			c.at.first = time.Since(c.at.start)
		}
		if r.status/100 == 1 && r.status != 101 {
			if interim != nil {
				interim(r)
			}
			continue
		}
		r.frame(nc.r, q.method)
		return r, nil
	}
}

// readHead reads a status line and the fields.
func readHead(br *bufio.Reader) (*response, error) {
	r := &response{length: -1}
	for {
		line, err := br.ReadSlice('\n')
		r.head = append(r.head, line...)
		if len(r.head) > maxHead {
			return nil, &transferError{failedReceive, fmt.Sprintf("Too large response headers: %d > %d", len(r.head), maxHead), nil}
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			if len(r.head) > 0 && r.status != 0 {
				err = &transferError{failedReceive, "Recv failure: connection closed in the middle of headers", err}
			}
			return nil, err
		}
		text := strings.TrimRight(string(lastLine(r.head)), "\r\n")
		if r.proto == "" {
			if !r.parseStatus(text) {
				return nil, &transferError{failedProtocol, "Received HTTP/0.9 when not allowed", nil}
			}
			continue
		}
		if text == "" {
			return r, nil
		}
		if n := len(r.fields); n > 0 && (text[0] == ' ' || text[0] == '\t') {
			r.fields[n-1].value += " " + strings.TrimSpace(text)
			continue
		}
		name, value, _ := strings.Cut(text, ":")
		r.fields = append(r.fields, field{name, strings.TrimSpace(value)})
	}
}

// lastLine is the last line of a text that ends with one.
func lastLine(b []byte) []byte {
	end := len(b) - 1
	for i := end - 1; i >= 0; i-- {
		if b[i] == '\n' {
			return b[i+1:]
		}
	}
	return b
}

func (r *response) parseStatus(line string) bool {
	proto, rest, _ := strings.Cut(line, " ")
	if !strings.HasPrefix(proto, "HTTP/") {
		return false
	}
	code, reason, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	n, err := strconv.Atoi(code)
	if err != nil || n < 100 || n > 999 {
		return false
	}
	r.proto, r.status, r.reason = proto, n, reason
	return true
}

// frame finds where the body ends.
func (r *response) frame(br *bufio.Reader, method string) {
	closes := r.proto == "HTTP/1.0"
	for token := range strings.SplitSeq(r.get("Connection"), ",") {
		switch strings.ToLower(strings.TrimSpace(token)) {
		case "close":
			closes = true
		case "keep-alive":
			closes = false
		}
	}
	r.keep = !closes
	if method == "HEAD" || r.status == 204 || r.status == 304 {
		r.length = announced(r)
		r.body = strings.NewReader("")
		return
	}
	if strings.Contains(strings.ToLower(r.get("Transfer-Encoding")), "chunked") {
		r.body = &chunked{r: br}
		return
	}
	if r.length = announced(r); r.length >= 0 {
		r.body = &counted{r: br, left: r.length}
		return
	}
	r.keep = false
	r.body = br
}

func announced(r *response) int64 {
	n, err := strconv.ParseInt(r.get("Content-Length"), 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// counted is a body of known length; less is an error.
type counted struct {
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > c.left {
		p = p[:c.left]
	}
	n, err := c.r.Read(p)
	c.left -= int64(n)
	if errors.Is(err, io.EOF) && c.left > 0 {
		err = &transferError{failedPartial, fmt.Sprintf("transfer closed with %d bytes remaining to read", c.left), io.ErrUnexpectedEOF}
	}
	return n, err
}

// chunked is a body in chunks. Its trailer is skipped.
type chunked struct {
	r    *bufio.Reader
	left int64
	done bool
	some bool
}

// Read implements io.Reader.
func (c *chunked) Read(p []byte) (int, error) {
	for c.left == 0 {
		if c.done {
			return 0, io.EOF
		}
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	if int64(len(p)) > c.left {
		p = p[:c.left]
	}
	n, err := c.r.Read(p)
	c.left -= int64(n)
	return n, cutShort(err)
}

func cutShort(err error) error {
	if errors.Is(err, io.EOF) {
		return &transferError{failedPartial, "transfer closed with outstanding read data remaining", io.ErrUnexpectedEOF}
	}
	return err
}

// next reads the size of the next chunk, and after the last one the trailer.
func (c *chunked) next() error {
	if c.some {
		if _, err := c.line(); err != nil {
			return err
		}
	}
	c.some = true
	line, err := c.line()
	if err != nil {
		return err
	}
	size, _, _ := strings.Cut(line, ";")
	n, err := strconv.ParseInt(strings.TrimSpace(size), 16, 64)
	if err != nil || n < 0 {
		return &transferError{failedReceive, "Illegal or missing hexadecimal sequence", err}
	}
	if c.left = n; n > 0 {
		return nil
	}
	for {
		line, err := c.line()
		if err != nil || line == "" {
			c.done = true
			return err
		}
	}
}

func (c *chunked) line() (string, error) {
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		if errors.Is(err, bufio.ErrBufferFull) {
			return "", &transferError{failedReceive, "chunk header too long", err}
		}
		return "", cutShort(err)
	}
	return strings.TrimRight(string(line), "\r\n"), nil
}

// finish keeps a connection for the next request, or closes it.
func (c *client) finish(nc *conn, r *response, whole bool) {
	if whole && r.keep && nc.r.Buffered() == 0 {
		c.idle = nc
		return
	}
	nc.close()
}

// close closes what is kept.
func (c *client) close() {
	c.idle.close()
	c.idle = nil
}
