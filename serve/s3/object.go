package s3

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"agentrun.dev"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/serve/s3/fault"
)

// versionID reads the query's versionId. null asks for the version "null"; neither is set if there is no versionId.
func versionID(text string) (at agentrun.Version, null bool, err error) {
	if text == "" {
		return 0, false, nil
	}
	if text == "null" {
		return 0, true, nil
	}
	if uuid.Validate(text) == nil {
		return 0, false, fault.NoSuchVersion.With("VersionId", text) // another server's
	}
	for _, ch := range []byte(text) {
		if !('0' <= ch && ch <= '9' || 'a' <= ch && ch <= 'z' || 'A' <= ch && ch <= 'Z') {
			return 0, false, fault.Argument("versionId", text, "Invalid version id specified")
		}
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		return 0, false, fault.NoSuchVersion.With("VersionId", text)
	}
	return agentrun.Version(n), false, nil
}

// find looks up an object, at the version that text names if it isn't empty. What it finds is never a marker.
func (c *call) find(ctx context.Context, v *bucket.View, key, version string) (*bucket.Object, error) {
	if version == "" {
		o, err := v.Get(ctx, key)
		if errs.Is(err, errs.NotFound) {
			return nil, c.missing(ctx, v, key)
		}
		return o, as(err, errs.Invalid, fault.NoSuchKey.With("Key", key))
	}
	at, null, err := versionID(version)
	if err != nil {
		return nil, err
	}
	o, err := v.GetVersion(ctx, key, at, null)
	if errs.Is(err, errs.NotFound) {
		return nil, fault.NoSuchVersion.With("Key", key, "VersionId", version)
	}
	if err != nil {
		return nil, err
	}
	if o.Marker {
		return nil, fault.MethodNotAllowed.With("Method", c.r.Method, "ResourceType", "DeleteMarker").
			Headers("X-Amz-Delete-Marker", "true", "X-Amz-Version-Id", wireVersion(o), "Last-Modified", httpTime(o.Modified), "Allow", "DELETE")
	}
	return o, nil
}

// missing tells a key that was deleted, and has a marker, from one that never was.
func (c *call) missing(ctx context.Context, v *bucket.View, key string) error {
	f := fault.NoSuchKey.With("Key", key)
	if v.Info().Versioning == bucket.Unversioned {
		return f
	}
	err := v.Versions(ctx, key, "", 0, func(o *bucket.Object) error {
		if o.Key == key && o.Marker {
			f = f.Headers("X-Amz-Delete-Marker", "true", "X-Amz-Version-Id", wireVersion(o))
		}
		return io.EOF
	})
	if err != nil {
		return err
	}
	return f
}

// wireVersion is a version as clients see it.
func wireVersion(o *bucket.Object) string {
	if o.Null {
		return "null"
	}
	return o.Version.String()
}

func httpTime(t time.Time) string { return t.UTC().Format(http.TimeFormat) }

// getObject answers GET and HEAD of an object.
func (c *call) getObject() error {
	ctx, h := c.r.Context(), c.r.Header
	var part int
	if p := c.q.Get("partNumber"); p != "" || c.q.Has("partNumber") {
		var err error
		if part, err = parsePart(p); err != nil {
			return err
		}
		if h["Range"] != nil {
			return fault.Request("Cannot specify both Range header and partNumber query parameter")
		}
	}
	v, err := c.view(ctx)
	if err != nil {
		return err
	}
	defer v.Close()
	o, err := c.find(ctx, v, c.path, c.q.Get("versionId"))
	if err != nil {
		return err
	}
	if err := c.conditions(o, "", true); err != nil {
		return err
	}
	s, err := chooseSpan(o, h, part)
	if err != nil {
		return err
	}
	c.describe(v, o, s, part)
	if c.r.Method == http.MethodHead || s.n == 0 {
		c.started = true
		c.w.WriteHeader(s.status)
		return nil
	}
	return c.sendBytes(ctx, v, o, s)
}

// span is the part of an object that is answered.
type span struct {
	off, n int64
	status int
}

func parsePart(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > bucket.MaxParts {
		return 0, fault.Argument("partNumber", text, "Part number must be an integer between 1 and 10000, inclusive.")
	}
	return n, nil
}

// chooseSpan applies a Range header or part number.
func chooseSpan(o *bucket.Object, h http.Header, part int) (span, error) {
	whole := span{0, o.Size, http.StatusOK}
	if part > 0 {
		for i := range o.Parts {
			if p := &o.Parts[i]; p.Number == part {
				return span{p.Offset, p.Size, http.StatusPartialContent}, nil
			}
		}
		if part > 1 || len(o.Parts) > 0 {
			return whole, fault.InvalidPartNumber.With("PartNumberRequested", strconv.Itoa(part), "ActualPartCount", strconv.Itoa(max(1, len(o.Parts))))
		}
		if o.Size > 0 {
			whole.status = http.StatusPartialContent
		}
		return whole, nil
	}
	r := h["Range"]
	if r == nil {
		return whole, nil
	}
	off, n, ok, satisfiable := parseRange(r[0], o.Size)
	switch {
	case !ok:
		return whole, nil
	case !satisfiable:
		return whole, fault.InvalidRange.With("RangeRequested", r[0], "ActualObjectSize", strconv.FormatInt(o.Size, 10)).
			Headers("Content-Range", "bytes */"+strconv.FormatInt(o.Size, 10))
	}
	return span{off, n, http.StatusPartialContent}, nil
}

// parseRange reads "bytes=first-last" against a size. ok is false for what isn't one well-formed range: RFC 9110 says
// to ignore that.
func parseRange(text string, size int64) (off, n int64, ok, satisfiable bool) {
	spec, isBytes := strings.CutPrefix(text, "bytes=")
	first, last, dash := strings.Cut(spec, "-")
	if !isBytes || !dash || !digits(first) || !digits(last) {
		return 0, 0, false, false
	}
	if first == "" {
		if last == "" {
			return 0, 0, false, false
		}
		n = min(number(last), size)
		if size == 0 && number(last) > 0 {
			return 0, 0, false, false // all of nothing is the whole
		}
		return size - n, n, true, n > 0
	}
	off = number(first)
	end := size - 1
	if last != "" {
		e := number(last)
		if e < off {
			return 0, 0, false, false
		}
		end = min(end, e)
	}
	return off, end - off + 1, true, off < size
}

func digits(s string) bool {
	for _, ch := range []byte(s) {
		if ch < '0' || ch > '9' {
			return false
		}
	}
	return true
}

// number reads digits; more than fit are the largest number.
func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 1<<63 - 1
	}
	return n
}

// describe sets the response's headers for an object.
func (c *call) describe(v *bucket.View, o *bucket.Object, s span, part int) {
	h := c.w.Header()
	c.set("Content-Type", defaultType(o))
	for name, value := range o.Headers {
		c.set(name, value)
	}
	c.set("Accept-Ranges", "bytes")
	c.set("ETag", `"`+o.ETag+`"`)
	c.set("Last-Modified", httpTime(o.Modified))
	c.set("Content-Length", strconv.FormatInt(s.n, 10))
	if s.status == http.StatusPartialContent {
		c.set("Content-Range", "bytes "+strconv.FormatInt(s.off, 10)+"-"+strconv.FormatInt(s.off+s.n-1, 10)+"/"+strconv.FormatInt(o.Size, 10))
	}
	setMeta(h, o)
	if len(o.Tags) > 0 {
		c.set("X-Amz-Tagging-Count", strconv.Itoa(len(o.Tags)))
	}
	if !o.Null || v.Info().Versioning != bucket.Unversioned {
		c.set("X-Amz-Version-Id", wireVersion(o))
	}
	if part > 0 && len(o.Parts) > 0 {
		c.set("X-Amz-Mp-Parts-Count", strconv.Itoa(len(o.Parts)))
	}
	if mode := c.r.Header["X-Amz-Checksum-Mode"]; mode != nil && strings.EqualFold(mode[0], "ENABLED") {
		if part > 0 && len(o.Parts) > 0 {
			setChecksums(h, partChecksum(o, part))
		} else if s.n == o.Size {
			setChecksums(h, o.Checksum)
		}
	}
	c.override(h)
}

// partChecksum returns a part's own checksum, if it has one by the algorithm that the upload was begun with. CRC64NVME
// is what an upload begun without one gets as a whole; its parts then have none to tell.
func partChecksum(o *bucket.Object, number int) []bucket.Checksum {
	for i := range o.Parts {
		if o.Parts[i].Number != number || len(o.Checksum) == 0 {
			continue
		}
		for _, s := range o.Parts[i].Checksum {
			if s.Algorithm == o.Checksum[0].Algorithm && s.Algorithm != "CRC64NVME" {
				s.Composite = o.Checksum[0].Composite
				return []bucket.Checksum{s}
			}
		}
	}
	return nil
}

// defaultType is the Content-Type of an object that was put without one.
func defaultType(o *bucket.Object) string {
	if o.Size == 0 && strings.HasSuffix(o.Key, "/") {
		return "application/x-directory"
	}
	return "binary/octet-stream"
}

// setMeta adds user metadata, and what a filesystem knows under the names that s3fs and rclone use.
func setMeta(h http.Header, o *bucket.Object) {
	for name, value := range o.Meta {
		h["X-Amz-Meta-"+name] = []string{value}
	}
	if p := o.Posix; p != nil {
		for name, value := range map[string]int64{"mode": int64(p.Mode), "uid": int64(p.UID), "gid": int64(p.GID), "mtime": o.Modified.Unix()} {
			if _, ok := o.Meta[name]; !ok {
				h["X-Amz-Meta-"+name] = []string{strconv.FormatInt(value, 10)}
			}
		}
	}
}

// override replaces headers as response-content-type and its like ask for.
func (c *call) override(h http.Header) {
	for i := range c.q {
		name, ok := strings.CutPrefix(c.q[i].Name, "response-")
		if !ok || c.q[i].Value == "" || strings.ContainsAny(c.q[i].Value, "\r\n") {
			continue
		}
		switch name {
		case "content-type", "content-language", "expires", "cache-control", "content-disposition", "content-encoding":
			h.Set(name, c.q[i].Value)
		}
	}
}

// lazyWriter sends the status with the first byte, so that a failure before it can still be reported.
type lazyWriter struct {
	c      *call
	status int
}

func (l *lazyWriter) Write(p []byte) (int, error) {
	if !l.c.started {
		l.c.started = true
		l.c.w.WriteHeader(l.status)
	}
	n, err := l.c.w.Write(p)
	if err != nil {
		l.c.gone = true
	}
	return n, err
}

var copyBuffers = sync.Pool{New: func() any { b := make([]byte, 128<<10); return &b }}

func (c *call) sendBytes(ctx context.Context, v *bucket.View, o *bucket.Object, s span) error {
	r, err := v.Open(ctx, o)
	if err != nil {
		return err
	}
	defer r.Close()
	w := &lazyWriter{c, s.status}
	if s.n == o.Size {
		_, err = r.WriteTo(w)
		return err
	}
	if _, err := r.Seek(s.off, io.SeekStart); err != nil {
		return err
	}
	buf := copyBuffers.Get().(*[]byte)
	defer copyBuffers.Put(buf)
	// Both ends hide their own copying methods, so that the buffer is what is used.
	n, err := io.CopyBuffer(w, struct{ io.Reader }{io.LimitReader(r, s.n)}, *buf)
	if err == nil && n < s.n {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// conditions evaluates If-Match and its like on an object; with a prefix, those of a copy's source. For reads, what
// would have been sent unchanged is NotModified; for copies it fails.
func (c *call) conditions(o *bucket.Object, prefix string, read bool) error {
	h := c.r.Header
	fail := func(name string) error { return fault.PreconditionFailed.With("Condition", name) }
	same := func(name string) error {
		if !read {
			return fail(name)
		}
		f := fault.NotModified.Headers("ETag", `"`+o.ETag+`"`, "Last-Modified", httpTime(o.Modified))
		return f
	}
	modified := o.Modified.Truncate(time.Second)
	if m := h[prefix+"If-Match"]; m != nil {
		if !matches(m, o.ETag) {
			return fail("If-Match")
		}
	} else if t, ok := headerTime(h, prefix+"If-Unmodified-Since"); ok && modified.After(t) {
		return fail("If-Unmodified-Since")
	}
	if m := h[prefix+"If-None-Match"]; m != nil {
		if matches(m, o.ETag) {
			return same("If-None-Match")
		}
	} else if t, ok := headerTime(h, prefix+"If-Modified-Since"); ok && !modified.After(t) && !t.After(c.o.Now()) {
		return same("If-Modified-Since")
	}
	return nil
}

// matches reports whether an ETag is in a list of them.
func matches(lists []string, etag string) bool {
	for _, list := range lists {
		for _, e := range strings.Split(list, ",") {
			if e = trimETag(e); e == "*" || e == etag {
				return true
			}
		}
	}
	return false
}

// trimETag takes quotes, weakness and space off an ETag.
func trimETag(e string) string {
	e = strings.TrimPrefix(strings.TrimSpace(e), "W/")
	return strings.Trim(e, `"`)
}

func headerTime(h http.Header, name string) (time.Time, bool) {
	v := h[name]
	if v == nil {
		return time.Time{}, false
	}
	t, err := http.ParseTime(v[0])
	if err != nil {
		t, err = time.Parse(time.RFC3339, v[0])
	}
	return t, err == nil
}
