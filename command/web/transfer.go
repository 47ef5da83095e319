package web

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/vfs"
)

// transfer is one URL's transfer.
type transfer struct {
	c      *curl
	config *curlConfig
	url    string
	glob   []string
	out    curlOutput

	client   *client
	addr     address
	started  time.Time
	method   string
	status   int
	last     *response
	heads    int // bytes of all heads
	requests int // bytes of all requests
	sent     int64
	received int64
	total    int64 // announced; negative: unknown
	redirs   int
	nextURL  string
	local    string
	remote   string
	took     time.Duration
	redirect time.Duration
	exit     int
	text     string

	file     vfs.File // where the body goes, if not standard output
	fileName string
	offset   int64 // of a resumed download
	close    []io.Closer
	meter    *meter
}

// once does the transfer once.
func (x *transfer) once() (err error) {
	x.started = time.Now()
	x.status, x.received, x.total, x.redirs, x.heads, x.requests, x.sent, x.nextURL = 0, 0, -1, 0, 0, 0, 0, ""
	ctx, cancel := x.c.t.Context(), context.CancelFunc(func() {})
	if x.config.maxTime > 0 {
		ctx, cancel = context.WithTimeout(ctx, x.config.maxTime)
	}
	defer cancel()
	x.client = &client{t: x.c.t, ctx: ctx, insecure: x.config.insecure, minTLS: x.config.minTLS, maxTLS: x.config.maxTLS,
		timeout: x.config.connectTimeout, network: x.config.network, note: x.note}
	if x.client.timeout == 0 {
		x.client.timeout = 5 * time.Minute
	}
	x.client.at.start = x.started
	defer func() {
		x.took = time.Since(x.started)
		x.client.close()
		if x.c.t.Context().Err() != nil {
			x.c.t.Check()
		}
	}()
	if err := x.prepare(); err != nil {
		return err
	}
	if x.out.remote {
		if _, err := x.outputName(nil); err != nil {
			return err
		}
	}
	x.meter = newMeter(x)
	defer x.meter.end()
	if x.addr.scheme == "file" {
		return x.readLocal()
	}
	return x.exchange()
}

// prepare reads the URL and what the connection needs.
func (x *transfer) prepare() (err error) {
	if x.addr, err = parseAddress(x.url, x.config.protoDefault, x.config.pathAsIs); err != nil {
		return err
	}
	switch x.addr.scheme {
	case "http", "https", "file":
	default:
		return &curlError{1, fmt.Sprintf("Protocol \"%s\" not supported or disabled in libcurl", x.addr.scheme)}
	}
	for _, q := range x.config.urlQuery {
		if x.addr.hasQuery && x.addr.query != "" {
			q = "&" + q
		}
		x.addr.query, x.addr.hasQuery = x.addr.query+q, true
	}
	for _, r := range x.config.resolves {
		if !strings.HasPrefix(r, "-") && !x.client.resolveOption(r) {
			return &curlError{49, fmt.Sprintf("Couldn't parse CURLOPT_RESOLVE entry '%s'", r)}
		}
	}
	for _, r := range x.config.connectTo {
		if f := strings.SplitN(r, ":", 4); len(f) == 4 {
			x.connectTo(f)
		}
	}
	if x.addr.scheme == "https" || x.config.location {
		if err := x.client.trust(x.config.caCert); err != nil {
			return &curlError{77, "error setting certificate verify locations:  CAfile: " + x.config.caCert + " CApath: none"}
		}
	}
	if x.config.resume != "" && x.config.resume != "-" {
		if x.offset, err = strconv.ParseInt(x.config.resume, 10, 64); err != nil {
			return &curlError{2, "option -C: expected a proper numerical parameter"}
		}
	}
	return nil
}

// connectTo is --connect-to HOST1:PORT1:HOST2:PORT2; what is empty stays.
func (x *transfer) connectTo(f []string) {
	or := func(a, b string) string {
		if a == "" {
			return b
		}
		return a
	}
	if (f[0] == "" || f[0] == x.addr.host) && (f[1] == "" || f[1] == x.addr.port) {
		x.client.redirectTo(x.addr.host+":"+x.addr.port, or(f[2], x.addr.host)+":"+or(f[3], x.addr.port))
	}
}

func (x *transfer) note(format string, args ...any) {
	if x.c.global.verbose {
		x.c.errorf("* %s\n", fmt.Sprintf(format, args...))
	}
}

// startMethod is the method of the first request.
func (x *transfer) startMethod() string {
	switch {
	case x.config.method != "":
		return x.config.method
	case x.config.head:
		return "HEAD"
	case x.config.hasUpload:
		return "PUT"
	case x.config.hasData || len(x.config.form) > 0:
		return "POST"
	}
	return "GET"
}

// exchange sends requests until a response isn't a redirection that shall be followed.
func (x *transfer) exchange() error {
	x.method = x.startMethod()
	body := true
	first := x.addr
	referer := x.config.referer
	for {
		q, err := x.request(body, referer, x.config.trusted || x.addr.host == first.host && x.addr.port == first.port && x.addr.scheme == first.scheme)
		if err != nil {
			return err
		}
		x.showRequest(q)
		nc, r, err := x.client.do(x.addr.scheme, x.addr.host, x.addr.port, q, x.showInterim)
		x.closeInputs()
		if err != nil {
			return err
		}
		if q.body != nil {
			x.sent += max(q.size, 0)
		}
		if a := nc.LocalAddr(); a != nil {
			x.local, x.remote = a.String(), nc.RemoteAddr().String()
		}
		x.status, x.last = r.status, r
		x.heads += len(r.head)
		for _, f := range r.fields {
			if strings.EqualFold(f.name, "Set-Cookie") {
				x.c.jar.take(f.value, x.addr.host, x.addr.path, x.c.t.Now())
			}
		}
		location := r.get("Location")
		follows := r.status/100 == 3 && r.status != 304 && location != ""
		if follows {
			if next, err := x.addr.follow(location, x.config.pathAsIs); err == nil {
				x.nextURL = next.String()
			}
		}
		if !follows || !x.config.location {
			return x.receive(nc, r)
		}
		if err := x.showHead(r.head); err != nil {
			nc.close()
			return err
		}
		_, err = io.Copy(io.Discard, io.LimitReader(r.body, maxIgnored))
		x.client.finish(nc, r, err == nil && r.keep)
		if x.config.maxRedirs >= 0 && x.redirs >= x.config.maxRedirs {
			return &curlError{47, fmt.Sprintf("Maximum (%d) redirects followed", x.config.maxRedirs)}
		}
		x.redirs++
		x.redirect = time.Since(x.started)
		if x.config.autoReferer {
			referer = x.addr.String()
		}
		next, err := x.addr.follow(location, x.config.pathAsIs)
		if err != nil {
			return err
		}
		if next.scheme != "http" && next.scheme != "https" {
			return &curlError{1, fmt.Sprintf("Protocol \"%s\" not supported or disabled in libcurl", next.scheme)}
		}
		x.note("Issue another request to this URL: '%s'", next.String())
		x.addr = next
		body = x.redirectMethod(r.status) && body
	}
}

// maxIgnored bounds the body of a redirection, which nobody sees.
const maxIgnored = 1 << 20

// redirectMethod changes the method for a redirection and reports whether the body is sent again.
func (x *transfer) redirectMethod(status int) bool {
	keep := map[int]bool{301: x.config.post301, 302: x.config.post302, 303: x.config.post303, 307: true, 308: true}[status]
	if keep {
		return true
	}
	if x.config.hasData || len(x.config.form) > 0 || x.startMethod() == "POST" || status == 303 {
		if x.config.method == "" && !x.config.head {
			x.method = "GET"
		}
		return false
	}
	return true
}

// request builds the next request.
func (x *transfer) request(withBody bool, referer string, own bool) (*request, error) {
	c := x.config
	q := &request{method: x.method, target: x.addr.target()}
	if c.requestTarget != "" {
		q.target = c.requestTarget
	}
	b := fieldBuilder{headers: c.headers, own: own}
	b.add("Host", x.addr.hostField())
	if auth := x.authorization(own); auth != "" {
		b.add("Authorization", auth)
	}
	if err := x.addRange(&b); err != nil {
		return nil, err
	}
	switch c.agent {
	case "":
		b.add("User-Agent", "curl/7.88.1")
	case "\x00":
	default:
		b.add("User-Agent", c.agent)
	}
	b.add("Accept", "*/*")
	if c.compressed {
		b.add("Accept-Encoding", "deflate, gzip, zstd")
	}
	if referer != "" {
		b.add("Referer", referer)
	}
	if cookie := x.cookieField(); cookie != "" {
		b.add("Cookie", cookie)
	}
	x.addConditions(&b)
	b.custom()
	if withBody {
		if err := x.addBody(q, &b); err != nil {
			return nil, err
		}
	}
	q.fields = b.fields
	return q, nil
}

// fieldBuilder collects the fields of a request. What -H names replaces or removes the standard ones.
type fieldBuilder struct {
	headers []string
	fields  []field
	own     bool // the request goes to the host that the user named
}

func (b *fieldBuilder) add(name, value string) {
	for _, h := range b.headers {
		rest, ok := cutPrefixFold(h, name)
		if !ok || rest == "" || rest[0] != ':' && rest[0] != ';' {
			continue
		}
		if name == "Host" && rest[0] == ':' && strings.TrimSpace(rest[1:]) != "" {
			b.fields = append(b.fields, field{"Host", strings.TrimSpace(rest[1:])})
		}
		return
	}
	b.fields = append(b.fields, field{name, value})
}

// custom adds the fields of -H.
func (b *fieldBuilder) custom() {
	for _, h := range b.headers {
		name, value, ok := strings.Cut(h, ":")
		value = strings.TrimSpace(value)
		if !ok {
			// "Name;" is a field without a value.
			if n, ok := strings.CutSuffix(h, ";"); ok {
				b.fields = append(b.fields, field{n, ""})
			}
			continue
		}
		if value == "" || strings.EqualFold(name, "Host") {
			continue
		}
		if !b.own && (strings.EqualFold(name, "Authorization") || strings.EqualFold(name, "Cookie")) {
			continue
		}
		b.fields = append(b.fields, field{name, strings.NewReplacer("\r", "", "\n", "").Replace(value)})
	}
}

func (x *transfer) authorization(own bool) string {
	switch {
	case x.addr.hasUser:
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(withColon(x.addr.user)))
	case !own:
		return ""
	case x.config.bearer != "":
		return "Bearer " + x.config.bearer
	case x.config.user != "":
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(withColon(x.config.user)))
	}
	return ""
}

func withColon(user string) string {
	if !strings.Contains(user, ":") {
		user += ":"
	}
	return user
}

func (x *transfer) addRange(b *fieldBuilder) error {
	if x.config.resume == "-" && !x.config.hasUpload {
		name, err := x.outputName(nil)
		if err != nil {
			return err
		}
		x.offset = 0
		if a, err := x.c.t.Stat(name); err == nil && name != "" {
			x.offset = a.Size
		}
	}
	switch {
	case x.config.ranges != "":
		b.add("Range", "bytes="+x.config.ranges)
	case x.offset > 0 && !x.config.hasUpload:
		b.add("Range", fmt.Sprintf("bytes=%d-", x.offset))
	}
	return nil
}

func (x *transfer) cookieField() string {
	parts := []string{}
	if s := x.c.jar.header(x.addr.host, x.addr.path, x.addr.scheme == "https", x.c.t.Now()); s != "" {
		parts = append(parts, s)
	}
	for _, b := range x.config.cookies {
		if strings.Contains(b, "=") {
			parts = append(parts, b)
		}
	}
	return strings.Join(parts, "; ")
}

// addConditions adds -z and --etag-compare.
func (x *transfer) addConditions(b *fieldBuilder) {
	if s := x.config.timeCond; s != "" {
		name := "If-Modified-Since"
		if rest, ok := strings.CutPrefix(s, "-"); ok {
			name, s = "If-Unmodified-Since", rest
		}
		var at time.Time
		if a, err := x.c.t.Stat(s); err == nil {
			at = a.Mtime
		} else if t, err := x.c.t.ParseDate(s, x.c.t.Now()); err == nil {
			at = t
		} else {
			x.c.warn("Illegal date format for -z, --time-cond (and not a file name). Disabling time condition. See curl_getdate(3) for valid date syntax.")
			return
		}
		b.add(name, at.UTC().Format(http.TimeFormat))
	}
	if x.config.etagCompare != "" {
		etag, _ := x.c.t.ReadFile(x.config.etagCompare, 4096)
		if s := strings.TrimSpace(string(etag)); s != "" {
			b.fields = append(b.fields, field{"If-None-Match", s})
		} else {
			b.fields = append(b.fields, field{"If-None-Match", `""`})
		}
	}
}

// addBody adds the body and its fields.
func (x *transfer) addBody(q *request, b *fieldBuilder) error {
	c := x.config
	switch {
	case len(c.form) > 0:
		body, size, contentType, err := x.multipart()
		if err != nil {
			return err
		}
		q.body, q.size = body, size
		b.add("Content-Length", strconv.FormatInt(size, 10))
		b.add("Content-Type", contentType)
	case c.hasData:
		q.body, q.size = strings.NewReader(string(c.data)), int64(len(c.data))
		b.add("Content-Length", strconv.Itoa(len(c.data)))
		b.add("Content-Type", "application/x-www-form-urlencoded")
	case c.hasUpload:
		return x.addUpload(q, b)
	}
	return nil
}

func (x *transfer) addUpload(q *request, b *fieldBuilder) error {
	name := x.config.upload
	in, err := x.c.t.Open(strings.Replace(name, ".", "-", map[bool]int{true: 1}[name == "."]))
	if err != nil {
		return &curlError{26, "Failed to open/read local data from file/application"}
	}
	x.close = append(x.close, in)
	if strings.HasSuffix(x.addr.path, "/") && name != "-" && name != "." {
		x.addr.path += escapePath(path.Base(name))
		q.target = x.addr.target()
	}
	q.body, q.size = in, -1
	if a, err := in.Attr(); err == nil && a.Mode.IsRegular() && !in.IsStdin() {
		q.size = a.Size
		b.add("Content-Length", strconv.FormatInt(a.Size, 10))
		return nil
	}
	b.add("Transfer-Encoding", "chunked")
	return nil
}

func escapePath(s string) string {
	return strings.NewReplacer("%2F", "/", "+", "%20").Replace(escapeData(s))
}

func (x *transfer) closeInputs() {
	for _, c := range x.close {
		c.Close()
	}
	x.close = nil
}

// receive writes the head and body of the last response.
func (x *transfer) receive(nc *conn, r *response) (err error) {
	whole := false
	defer func() { x.client.finish(nc, r, whole && err == nil) }()
	if err := x.showHead(r.head); err != nil {
		return err
	}
	if r.status >= 400 && x.config.fail && !x.config.body {
		return &curlError{22, fmt.Sprintf("The requested URL returned error: %d", r.status)}
	}
	if x.offset > 0 && r.status == 200 && !x.config.hasUpload {
		return &curlError{33, "HTTP server doesn't seem to support byte ranges. Cannot resume."}
	}
	x.total = r.length
	if x.config.maxSize > 0 && r.length > x.config.maxSize {
		return &curlError{63, "Maximum file size exceeded"}
	}
	body := io.Reader(&received{r.body, x})
	if x.config.compressed {
		if body, err = decode(body, r.get("Content-Encoding")); err != nil {
			return &curlError{61, "Error while processing content unencoding: " + err.Error()}
		}
	}
	if !x.config.head {
		if err := x.write(body, r); err != nil {
			return err
		}
	}
	whole = true
	x.finishFile(r)
	x.note("Connection #0 to host %s left intact", x.addr.host)
	if r.status >= 400 && x.config.body {
		return &curlError{22, fmt.Sprintf("The requested URL returned error: %d", r.status)}
	}
	return nil
}

// finishFile does what is left when a body was written.
func (x *transfer) finishFile(r *response) {
	if x.config.etagSave != "" {
		if f, err := x.c.t.Create(x.config.etagSave); err == nil {
			if etag := r.get("ETag"); etag != "" {
				f.Write([]byte(etag + "\n"))
			}
			f.Close()
		}
	}
	if at, err := http.ParseTime(r.get("Last-Modified")); err == nil && x.config.remoteTime && x.file != nil {
		x.file.SetAttr(vfs.SetAttr{Atime: &at, Mtime: &at})
	}
}

// received counts what comes and keeps the limits.
type received struct {
	r io.Reader
	x *transfer
}

// Read implements io.Reader.
func (c *received) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.x.received += int64(n)
	if m := c.x.config.maxSize; m > 0 && c.x.received > m {
		return n, &curlError{63, "Maximum file size exceeded"}
	}
	if rate := c.x.config.limitRate; rate > 0 && n > 0 {
		c.x.c.t.Sleep(time.Duration(float64(n) / float64(rate) * float64(time.Second)))
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = c.x.client.failure(err)
	}
	return n, err
}

// readLocal reads a file of the sandbox (file://).
func (x *transfer) readLocal() error {
	name := unescapeURL(x.addr.path)
	f, err := x.c.t.Process.Open(name, syscall.O_RDONLY, 0)
	var a vfs.Attr
	if err == nil {
		defer f.Close()
		if a, err = f.Attr(); err == nil && a.Mode.IsDir() {
			err = syscall.EISDIR
		}
	}
	if err != nil {
		return &curlError{37, "Couldn't open file " + name}
	}
	head := fmt.Sprintf("Content-Length: %d\r\nAccept-ranges: bytes\r\nLast-Modified: %s\r\n", a.Size, a.Mtime.UTC().Format(http.TimeFormat))
	r := &response{length: a.Size, body: f, head: []byte(head + "\r\n")}
	x.last, x.total = r, a.Size
	if x.config.head || x.config.include {
		if err := x.emit([]byte(head)); err != nil {
			return err
		}
		if x.config.head {
			return nil
		}
		if err := x.emit([]byte("\r\n")); err != nil {
			return err
		}
	}
	if err := x.section(f, a.Size, r); err != nil {
		return err
	}
	return x.write(&received{r.body, x}, r)
}

// section applies -r and -C to a local file.
func (x *transfer) section(f vfs.File, size int64, r *response) error {
	start, end := x.offset, size
	if s := x.config.ranges; s != "" {
		from, to, _ := strings.Cut(s, "-")
		lo, err1 := strconv.ParseInt(from, 10, 64)
		hi, err2 := strconv.ParseInt(to, 10, 64)
		switch {
		case from == "" && err2 == nil:
			start = max(size-hi, 0)
		case err1 == nil && to == "":
			start = lo
		case err1 == nil && err2 == nil:
			start, end = lo, min(hi+1, size)
		}
	}
	if start > size || start > end {
		return &curlError{36, "failed to resume file:// transfer"}
	}
	r.body, r.length = io.NewSectionReader(f, start, end-start), end-start
	x.total = end - start
	return nil
}
