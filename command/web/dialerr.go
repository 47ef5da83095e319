package web

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/errs"
)

// connectError words why there is no connection, as curl does. A denial says what policy would allow it.
func (c *client) connectError(ctx context.Context, err error, host, port string, took time.Duration) error {
	var dns *net.DNSError
	ms := took.Milliseconds()
	switch {
	case errs.Is(err, errs.Denied):
		text := err.Error()
		if hint := errs.HintOf(err); hint != "" {
			text += " (" + hint + ")"
		}
		return &transferError{failedDenied, fmt.Sprintf("Failed to connect to %s port %s after %d ms: denied by network policy: %s", host, port, ms, text), err}
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded):
		return &transferError{failedTimeout, fmt.Sprintf("Failed to connect to %s port %s after %d ms: Timeout was reached", host, port, ms), err}
	case errors.As(err, &dns), errs.Is(err, errs.NotFound):
		return &transferError{failedResolve, "Could not resolve host: " + host, err}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &transferError{failedConnect, fmt.Sprintf("Failed to connect to %s port %s after %d ms: Couldn't connect to server", host, port, ms), err}
	}
	return &transferError{failedConnect, fmt.Sprintf("Failed to connect to %s port %s after %d ms: Couldn't connect to server", host, port, ms), err}
}

// maxRoots bounds a file of certificates.
const maxRoots = 16 << 20

// trustFiles are where a sandbox may have certificates of its own.
var trustFiles = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"}

// trust finds the root certificates: of a file if one is named, else those of the host and of the sandbox.
func (c *client) trust(file string) error {
	if file == "" {
		for _, name := range []string{"CURL_CA_BUNDLE", "SSL_CERT_FILE"} {
			if v := c.t.Getenv(name); v != "" {
				file = v
				break
			}
		}
	}
	if file != "" {
		b, err := c.t.ReadFile(file, maxRoots)
		if err != nil {
			return err
		}
		c.roots = x509.NewCertPool()
		if !c.roots.AppendCertsFromPEM(b) {
			return errors.New("no certificates in it")
		}
		return nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	for _, name := range trustFiles {
		if b, err := c.t.ReadFile(name, maxRoots); err == nil {
			roots.AppendCertsFromPEM(b)
		}
	}
	c.roots = roots
	return nil
}

// resolveOption reads curl's --resolve "HOST:PORT:ADDRESS[,ADDRESS]".
func (c *client) resolveOption(s string) bool {
	parts := strings.SplitN(strings.TrimPrefix(s, "+"), ":", 3)
	if len(parts) != 3 {
		return false
	}
	addr, _, _ := strings.Cut(parts[2], ",")
	addr = strings.Trim(addr, "[]")
	if net.ParseIP(addr) == nil {
		return false
	}
	c.redirectTo(net.JoinHostPort(parts[0], parts[1]), net.JoinHostPort(addr, parts[1]))
	return true
}

func (c *client) redirectTo(from, to string) {
	if c.resolve == nil {
		c.resolve = map[string]string{}
	}
	c.resolve[from] = to
}
