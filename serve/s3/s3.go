// Package s3 serves buckets over the S3 protocol, and over the extensions that Tigris adds to it for snapshots and forks.
//
// A call is one request. It is authenticated (package sigv4), routed to an operation by its method and the
// subresource that its query names, authorised by what the operation does to which bucket, and carried out on package
// bucket. Everything that goes wrong becomes a fault (package fault), written as XML, or as JSON for clients that ask
// for it. Bodies stream both ways through fixed buffers.
package s3

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"agentrun.dev"
	"agentrun.dev/access"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/serve/s3/fault"
	"agentrun.dev/serve/s3/sigv4"
)

// Options configure the handler; the zero value works.
type Options struct {
	// Region is what buckets say they are in; "auto" if empty. Requests may be signed for any region.
	Region string
	// Domains are the host names below which a first label names a bucket, as in bucket.s3.example.com.
	Domains []string
	Now     func() time.Time // time.Now if nil
	Log     *slog.Logger     // nowhere if nil
	// MaxHeader bounds a request's headers, in bytes of names and values; 8 KiB if 0, as AWS has it.
	MaxHeader int
	// MaxObject bounds what one PUT or part may hold, in bytes; bucket.MaxPart if 0.
	MaxObject int64
}

// Handler serves S3. Make it with New.
type Handler struct {
	store *bucket.Store
	keys  *access.Keys
	o     Options
	cache sigv4.Cache
	open  handles
	boot  uint64
	count atomic.Uint64
}

// New returns a handler for a store; keys say who may do what.
func New(store *bucket.Store, keys *access.Keys, o Options) *Handler {
	if o.Region == "" {
		o.Region = "auto"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxHeader == 0 {
		o.MaxHeader = 8 << 10
	}
	if o.MaxObject == 0 || o.MaxObject > bucket.MaxPart {
		o.MaxObject = bucket.MaxPart
	}
	h := &Handler{store: store, keys: keys, o: o}
	var seed [8]byte
	rand.Read(seed[:])
	h.boot = binary.LittleEndian.Uint64(seed[:])
	return h
}

// call is one request on its way.
type call struct {
	*Handler
	w    http.ResponseWriter
	r    *http.Request
	q    sigv4.Query
	sig  *sigv4.Signature // nil: anonymous
	key  *access.Key      // nil: anonymous
	id   string
	name string // bucket named by the request, or ""
	path string // object named by the request, or ""

	b       *bucket.Bucket // the bucket, once authorised
	now     *bucket.View   // the bucket as it was then, until view hands it out
	values  [16]string     // holds the values of response headers, so that they take one allocation
	used    int
	started bool // the response's status has been sent
	gone    bool // the client doesn't take the response any more
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{Handler: h, w: w, r: r, id: h.requestID()}
	c.set("X-Amz-Request-Id", c.id)
	defer func() {
		if c.now != nil {
			c.now.Close()
		}
	}()
	if err := c.serve(); err != nil {
		c.fail(err)
	}
}

// set sets a response header, whose name must be in canonical form.
func (c *call) set(name, value string) {
	if c.used == len(c.values) {
		c.w.Header()[name] = []string{value}
		return
	}
	c.values[c.used] = value
	c.used++
	c.w.Header()[name] = c.values[c.used-1 : c.used : c.used]
}

// requestID returns 16 hexadecimal digits that no other request of this process has.
func (h *Handler) requestID() string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], h.boot+h.count.Add(1)*0x9e3779b97f4a7c15)
	var out [16]byte
	hex.Encode(out[:], b[:])
	for i, ch := range out {
		if ch >= 'a' {
			out[i] = ch - 'a' + 'A'
		}
	}
	return string(out[:])
}

func (c *call) serve() error {
	if err := c.address(); err != nil {
		return err
	}
	if c.r.Method == http.MethodOptions {
		return c.preflight()
	}
	if c.r.Header["Origin"] != nil {
		c.allowOrigin()
	}
	op, err := c.route()
	if err != nil {
		return err
	}
	if op.own {
		return op.run(c)
	}
	if err := c.authenticate(); err != nil {
		return err
	}
	if err := c.authorise(op); err != nil {
		return err
	}
	if err := c.checkStreaming(op); err != nil {
		return err
	}
	return op.run(c)
}

// address finds the bucket and object that the request names.
func (c *call) address() error {
	size := 0
	for name, values := range c.r.Header {
		for _, v := range values {
			size += len(name) + len(v) + 4
		}
	}
	if size > c.o.MaxHeader {
		return fault.RequestHeaderSectionTooLarge.With("MaxSizeAllowed", strconv.Itoa(c.o.MaxHeader))
	}
	var ok bool
	if c.q, ok = sigv4.ParseQuery(c.r.URL.RawQuery); !ok {
		return fault.InvalidURI
	}
	path := strings.TrimPrefix(c.r.URL.Path, "/")
	if name := c.virtualHost(); name != "" {
		c.name, c.path = name, path
	} else {
		c.name, c.path, _ = strings.Cut(path, "/")
	}
	if len(c.path) > bucket.MaxKey {
		return fault.KeyTooLong.With("Size", strconv.Itoa(len(c.path)), "MaxSizeAllowed", strconv.Itoa(bucket.MaxKey))
	}
	if !utf8.ValidString(c.path) || strings.IndexByte(c.path, 0) >= 0 {
		return fault.InvalidURI.With("URI", c.r.URL.EscapedPath())
	}
	return nil
}

// virtualHost returns the bucket that the host names, or "".
func (c *call) virtualHost() string {
	if len(c.o.Domains) == 0 {
		return ""
	}
	host := c.r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	for _, d := range c.o.Domains {
		if n := len(host) - len(d) - 1; n > 0 && host[n] == '.' && strings.EqualFold(host[n+1:], d) {
			return strings.ToLower(host[:n])
		}
	}
	return ""
}

// authenticate finds out who is calling.
func (c *call) authenticate() error {
	sig, err := sigv4.Parse(c.r, c.q)
	if err != nil {
		return err
	}
	if sig == nil {
		return fault.AccessDenied
	}
	if err := sig.CheckTime(c.o.Now()); err != nil {
		return err
	}
	key, err := c.lookup(sig.AccessKey)
	if err != nil {
		return err
	}
	// Keys are permanent; nobody could have been given a session token for one.
	if sig.SessionToken != "" {
		return fault.InvalidToken
	}
	if sig.Service != "s3" && sig.PayloadHash == "" {
		if err := c.hashForm(sig); err != nil {
			return err
		}
	}
	if err := sig.CheckPayloadHash(); err != nil {
		return err
	}
	if err := sig.Verify(c.r, c.q, key.Secret, &c.cache); err != nil {
		return err
	}
	c.sig, c.key = sig, key
	return c.checkEmpty()
}

// checkEmpty holds a write without a body to its hash; one with a body is checked while it is read.
func (c *call) checkEmpty() error {
	const none = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	if c.r.ContentLength != 0 || c.r.Method != http.MethodPut || len(c.sig.PayloadHash) != len(none) || strings.EqualFold(c.sig.PayloadHash, none) ||
		strings.HasPrefix(c.sig.PayloadHash, "STREAMING-") {
		return nil
	}
	return fault.XAmzContentSHA256Mismatch.With("ClientComputedContentSHA256", c.sig.PayloadHash, "S3ComputedContentSHA256", none)
}

func (c *call) lookup(id string) (*access.Key, error) {
	key, err := c.keys.Get(c.r.Context(), id)
	if errs.Is(err, errs.Unauthorized) {
		return nil, fault.InvalidAccessKeyId.With("AWSAccessKeyId", id)
	}
	return key, err
}

// authorise decides whether the caller may run the operation, and opens the bucket that it works on.
func (c *call) authorise(op *operation) error {
	if c.name == "" || op.noBucket {
		if !op.open && !c.key.Allows(op.action, agentrun.RefID{}) {
			return fault.AccessDenied
		}
		return nil
	}
	b, v, err := c.open.find(c.r.Context(), c.store, c.name)
	if err != nil {
		// A scoped key doesn't learn which other buckets exist.
		if errors.Is(err, fault.NoSuchBucket) && !c.key.Root {
			return fault.AccessDenied
		}
		return err
	}
	c.b, c.now = b, v
	if !c.key.Allows(op.action, b.ID()) {
		return fault.AccessDenied
	}
	if !c.expectedOwner("X-Amz-Expected-Bucket-Owner") {
		return fault.AccessDenied
	}
	return nil
}

// expectedOwner reports whether a header that names a bucket's owner is right, or isn't there.
func (c *call) expectedOwner(header string) bool {
	h := c.r.Header[header]
	return h == nil || h[0] == "" || h[0] == c.owner() || h[0] == c.key.ID
}

// openBucket finds a bucket by name.
func (c *call) openBucket(name string) (*bucket.Bucket, error) {
	b, v, err := c.open.find(c.r.Context(), c.store, name)
	if err == nil {
		v.Close()
	}
	return b, err
}

// view opens the bucket's contents: as they are, or at the snapshot that the request names.
func (c *call) view(ctx context.Context) (*bucket.View, error) {
	at, err := c.snapshotAt()
	if err != nil {
		return nil, err
	}
	if v := c.now; at == 0 && v != nil {
		c.now = nil
		return v, nil
	}
	if at == 0 {
		return c.b.View(ctx)
	}
	v, err := c.b.ViewAt(ctx, at)
	if errs.Is(err, errs.NotFound) || errs.Is(err, errs.Invalid) {
		return nil, fault.NoSuchSnapshot.With("SnapshotVersion", at.String())
	}
	return v, err
}

// snapshotAt returns the version that X-Tigris-Snapshot-Version names, or 0.
func (c *call) snapshotAt() (agentrun.Version, error) {
	h := c.r.Header["X-Tigris-Snapshot-Version"]
	if h == nil || h[0] == "" {
		return 0, nil
	}
	return parseSnapshot(h[0])
}

func parseSnapshot(text string) (agentrun.Version, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		return 0, fault.NoSuchSnapshot.With("SnapshotVersion", text)
	}
	return agentrun.Version(n), nil
}

// owner is the canonical user that owns every bucket: the root key, or the server itself if there is none.
func (h *Handler) owner() string {
	if id := h.keys.RootID(); id != "" {
		return id
	}
	return "agentrun"
}
