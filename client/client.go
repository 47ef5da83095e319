// Package client is the Go client of AgentRun's API: what the command line and the operator speak with a server.
//
// Every method is one request. Errors are errs.Error of the kind that the server reported, so a caller can tell a
// missing bucket from a forbidden one; a server that can't be reached is errs.Unavailable. What may be asked again without harm is, a
// few times, if the server is busy or the connection breaks: requests that only look, those that say how something shall be, and
// those that make something, which carry an Idempotency-Key for that.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// Options configure a Client; the zero value works.
type Options struct {
	CA        []byte // PEM of certificates to trust beside the system's, such as a self-signed server's
	UserAgent string // "" is "agentrun-go"
	Retries   int    // how often a request is sent again, where that does no harm; 0 is 4, less than 0 is never
	// Dial connects with the server, instead of a TCP connection to the endpoint's host: for one in the same process. No proxy is used then.
	Dial func(ctx context.Context) (net.Conn, error)
}

// Client speaks with one server in the name of one key. All methods may be called concurrently.
type Client struct {
	base    *url.URL
	key     string
	agent   string
	retries int
	http    *http.Client
}

// New returns a client for a server, such as "http://127.0.0.1:7070". Nothing is sent yet. key is "<id>.<secret>".
func New(endpoint, key string, o Options) (*Client, error) {
	base, err := url.Parse(endpoint)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, errs.Msg(errs.Invalid, "endpoint", endpoint, "want http://host:port or https://host:port")
	}
	if base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, errs.Msg(errs.Invalid, "endpoint", base.Redacted(), "user, query and fragment have no place in it")
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errs.Msg(errs.Invalid, "key", "", "an API key has no spaces or control characters")
	}
	base.Path = strings.TrimRight(base.Path, "/")
	tr := http.DefaultTransport.(*http.Transport).Clone()
	tr.DialContext = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	if o.Dial != nil {
		tr.Proxy = nil
		tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return o.Dial(ctx) }
	}
	if len(o.CA) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(o.CA) {
			return nil, errs.Msg(errs.Invalid, "certificates", "", "no certificate in PEM form")
		}
		tr.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	agent := o.UserAgent
	if agent == "" {
		agent = "agentrun-go"
	}
	retries := o.Retries
	if retries == 0 {
		retries = 4
	}
	return &Client{base: base, key: key, agent: agent, retries: max(retries, 0), http: &http.Client{Transport: tr, CheckRedirect: noRedirect}}, nil
}

// noRedirect keeps the key from being sent to wherever a server points.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Close gives back idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Endpoint returns the server's address as the client was given it.
func (c *Client) Endpoint() string { return c.base.String() }

// do sends a request; path segments are escaped by the caller (see path). The caller closes the body. Any status of
// 300 or more comes back as an error.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, accept string, in any) (*http.Response, error) {
	q := &request{method: method, path: path, query: query, header: http.Header{"Accept": {accept}}}
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, errs.New(errs.Invalid, "encode request", path, err)
		}
		q.header.Set("Content-Type", api.JSON)
		q.body = func() io.Reader { return bytes.NewReader(b) }
	}
	return c.send(ctx, q)
}

// header sets what every request carries.
func (c *Client) header(h http.Header) {
	h.Set("User-Agent", c.agent)
	if c.key != "" {
		h.Set("Authorization", "Bearer "+c.key)
	}
}

// unreachable words a failure to get any answer.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errs.New(errs.Canceled, "connect", c.base.Host, context.Cause(ctx))
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err // without the method and URL, which the error's own parts tell
	}
	var cert *tls.CertificateVerificationError
	if errors.As(err, &cert) {
		return errs.New(errs.Unavailable, "connect", c.base.Host, err).
			WithHint("give the server's certificate with --ca-cert FILE, or AGENTRUN_CA_CERT")
	}
	return errs.New(errs.Unavailable, "connect", c.base.Host, err)
}

// Error is a problem that the server reported. It unwraps to an errs.Error.
type Error struct {
	Problem api.Problem
	err     *errs.Error
}

// Error returns the text "op: thing: cause".
func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the typed error.
func (e *Error) Unwrap() error { return e.err }

// fromProblem turns what came over the wire into an error.
func fromProblem(p api.Problem) error {
	cause := p.Cause
	if cause == "" {
		cause = p.Detail
	}
	err := &errs.Error{Op: p.Op, Thing: p.Thing, Kind: errs.ParseKind(p.Kind), Hint: p.Hint}
	if cause != "" {
		err.Err = errors.New(cause)
	}
	return &Error{Problem: p, err: err}
}

// problem reads the error of an answer; one that isn't a Problem comes from something that isn't AgentRun.
func (c *Client) problem(resp *http.Response) error {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 4*api.MaxBody))
	var p api.Problem
	if strings.HasPrefix(resp.Header.Get("Content-Type"), api.ProblemJSON) && json.Unmarshal(b, &p) == nil {
		return fromProblem(p)
	}
	return errs.New(errs.Unavailable, "connect", c.base.Host, fmt.Errorf("not AgentRun's API: answered %s", resp.Status)).
		WithHint("the endpoint is the API's (port 7070 by default), not that of S3 (7071)")
}

// call sends a request and decodes its one answer into out, unless that is nil.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	resp, err := c.do(ctx, method, path, query, api.JSON, in)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		_, err = io.Copy(io.Discard, resp.Body)
	} else {
		err = json.NewDecoder(resp.Body).Decode(out)
	}
	if err != nil {
		return errs.New(errs.Unavailable, "read answer", c.base.Host, err)
	}
	return nil
}

// stream sends a request and hands on each line of its answer until the result.
func stream[I, R any](ctx context.Context, c *Client, method, path string, query url.Values, in any, item func(*I) error, progress func(api.Progress)) (*R, error) {
	resp, err := c.do(ctx, method, path, query, api.NDJSON, in)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	for dec := json.NewDecoder(resp.Body); ; {
		var line api.Line[I, R]
		if err := dec.Decode(&line); err != nil {
			if ctx.Err() != nil {
				return nil, errs.New(errs.Canceled, "read answer", c.base.Host, context.Cause(ctx))
			}
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF // the server went away in the middle
			}
			return nil, errs.New(errs.Unavailable, "read answer", c.base.Host, err)
		}
		switch {
		case line.Error != nil:
			return nil, fromProblem(*line.Error)
		case line.Result != nil:
			return line.Result, nil
		case line.Progress != nil && progress != nil:
			progress(*line.Progress)
		case line.Item != nil && item != nil:
			if err := item(line.Item); err != nil {
				return nil, err
			}
		}
	}
}

// path joins escaped segments below /v1.
func path(segments ...string) string {
	var b strings.Builder
	b.WriteString("/v1")
	for _, s := range segments {
		b.WriteByte('/')
		// A segment of dots would be resolved away by intermediaries and by the server's router.
		if s == "." || s == ".." {
			s = strings.ReplaceAll(s, ".", "%2E")
			b.WriteString(s)
			continue
		}
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}
