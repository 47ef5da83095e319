package client

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"agentrun.dev/errs"
)

// request is what is sent, perhaps several times.
type request struct {
	method, path string
	query        url.Values
	header       http.Header
	body         func() io.Reader // a new one for each time; nil: none
	size         int64            // of the body; 0: it tells itself
	once         bool             // it can't be sent again, whatever its method
}

type keyKey struct{}

// WithIdempotencyKey returns a context in which requests that make something have this key instead of one of their own: the same
// request with the same key, within 24 hours, returns what the first did, whoever sends it.
func WithIdempotencyKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyKey{}, key)
}

// keyed gives a request that makes something its key.
func keyed(ctx context.Context, q *request) *request {
	key, _ := ctx.Value(keyKey{}).(string)
	if key == "" {
		key = rand.Text()
	}
	q.header.Set("Idempotency-Key", key)
	return q
}

// Waits between two attempts: they double from the least, up to the most.
const (
	leastWait = 100 * time.Millisecond
	mostWait  = 5 * time.Second
)

// send sends a request until it is answered, or can't be sent again.
func (c *Client) send(ctx context.Context, q *request) (*http.Response, error) {
	wait := leastWait
	for attempt := 0; ; attempt++ {
		resp, err := c.attempt(ctx, q)
		if err != nil {
			if attempt >= c.retries || !q.repeatable() || !broken(err) || ctx.Err() != nil {
				return nil, c.unreachable(ctx, err)
			}
		} else {
			if resp.StatusCode < 300 {
				return resp, nil
			}
			if attempt > 0 && q.method == http.MethodDelete && resp.StatusCode == http.StatusNotFound {
				return resp, nil // an attempt whose answer was lost did it
			}
			after, busy := busy(resp)
			if attempt >= c.retries || !q.repeatable() || !busy {
				defer resp.Body.Close()
				return nil, c.problem(resp)
			}
			wait = max(wait, min(after, mostWait))
			_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
			resp.Body.Close()
		}
		if err := sleep(ctx, jitter(wait)); err != nil {
			return nil, c.unreachable(ctx, err)
		}
		wait = min(2*wait, mostWait)
	}
}

func (c *Client) attempt(ctx context.Context, q *request) (*http.Response, error) {
	var body io.Reader
	if q.body != nil {
		body = q.body()
	}
	u := c.base.String() + q.path
	if len(q.query) > 0 {
		u += "?" + q.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, q.method, u, body)
	if err != nil {
		return nil, err
	}
	if q.size > 0 {
		req.ContentLength = q.size
	}
	for name, v := range q.header {
		req.Header[name] = v
	}
	c.header(req.Header)
	return c.http.Do(req)
}

// repeatable reports whether a request does the same when it is sent twice as when it is sent once.
func (q *request) repeatable() bool {
	switch q.method {
	case http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete:
		return !q.once
	}
	return q.header.Get("Idempotency-Key") != "" && !q.once
}

// broken reports whether the connection failed after it stood. Where nobody listens, nobody will in a second either.
func broken(err error) bool {
	var u *url.Error
	var op *net.OpError
	return !refused(err) && errors.As(err, &u) && (errors.As(err, &op) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
}

// refused reports whether nobody listens.
func refused(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// busy reports whether an answer is that the server can't now, and how long it wants to be left alone.
func busy(resp *http.Response) (after time.Duration, ok bool) {
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
	default:
		return 0, false
	}
	s, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || s < 0 {
		return 0, false // a limit or a state that time alone doesn't change
	}
	return time.Duration(s) * time.Second, true
}

// jitter returns half of a duration to all of it, so that many who wait don't come back at once.
func jitter(d time.Duration) time.Duration {
	n, err := rand.Int(rand.Reader, big.NewInt(int64(d/2)+1))
	if err != nil {
		return d
	}
	return d/2 + time.Duration(n.Int64())
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return errs.New(errs.Canceled, "wait", "", context.Cause(ctx))
	}
}
