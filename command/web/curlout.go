package web

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"agentrun.dev/vfs"
)

// maxWindow bounds the memory that a zstd stream may ask for.
const maxWindow = 8 << 20

// decode undoes a content encoding.
func decode(r io.Reader, encoding string) (io.Reader, error) {
	for e := range strings.SplitSeq(encoding, ",") {
		switch strings.ToLower(strings.TrimSpace(e)) {
		case "", "identity":
		case "gzip", "x-gzip":
			z, err := gzip.NewReader(r)
			if err != nil {
				return nil, err
			}
			r = z
		case "deflate":
			br := bufio.NewReader(r)
			if head, err := br.Peek(2); err == nil && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
				z, err := zlib.NewReader(br)
				if err != nil {
					return nil, err
				}
				r = z
			} else {
				r = flate.NewReader(br)
			}
		case "zstd":
			z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
			if err != nil {
				return nil, err
			}
			r = z.IOReadCloser()
		default:
			return nil, fmt.Errorf("Unrecognized content encoding type %s", e)
		}
	}
	return r, nil
}

// outputName is the file that the body goes to; "" is standard output. The response may name it (-J).
func (x *transfer) outputName(r *response) (string, error) {
	name := x.out.file
	switch {
	case x.out.remote:
		name = path.Base(x.addr.path)
		if first, err := parseAddress(x.url, x.config.protoDefault, true); err == nil {
			name = first.path[strings.LastIndexByte(first.path, '/')+1:]
		}
		if r != nil && x.config.contentDisposition {
			if given := dispositionName(r.get("Content-Disposition")); given != "" {
				name = given
			}
		}
		if name == "" {
			if !x.c.global.silent {
				x.c.errorf("curl: Remote file name has no length!\n")
			}
			return "", &curlError{23, "Failed writing received data to disk/application"}
		}
	case name == "" || name == "-":
		return "", nil
	default:
		for i, part := range x.glob {
			name = strings.ReplaceAll(name, "#"+strconv.Itoa(i+1), part)
		}
	}
	if x.config.outputDir != "" {
		name = x.config.outputDir + "/" + name
	}
	return name, nil
}

// dispositionName is the file name of a Content-Disposition field, without any folder.
func dispositionName(value string) string {
	i := strings.Index(strings.ToLower(value), "filename=")
	if i < 0 {
		return ""
	}
	name := value[i+len("filename="):]
	if strings.HasPrefix(name, `"`) {
		name = name[1:]
		if end := strings.IndexByte(name, '"'); end >= 0 {
			name = name[:end]
		}
	} else if end := strings.IndexByte(name, ';'); end >= 0 {
		name = strings.TrimSpace(name[:end])
	}
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	if name == "." || name == ".." {
		return ""
	}
	return name
}

// openOutput opens the file for the body.
func (x *transfer) openOutput(r *response) error {
	if x.file != nil {
		return nil
	}
	name, err := x.outputName(r)
	if err != nil || name == "" {
		return err
	}
	if x.config.createDirs {
		x.makeDirs(path.Dir(name))
	}
	flags := syscall.O_WRONLY | syscall.O_CREAT
	switch {
	case x.offset > 0:
		flags |= syscall.O_APPEND
	case x.config.contentDisposition && x.out.remote, x.config.noClobber:
		flags |= syscall.O_EXCL
	default:
		flags |= syscall.O_TRUNC
	}
	f, err := x.c.t.Process.Open(name, flags, 0o666)
	for n := 1; errors.Is(err, syscall.EEXIST) && x.config.noClobber && n < 100; n++ {
		f, err = x.c.t.Process.Open(fmt.Sprintf("%s.%d", name, n), flags, 0o666)
	}
	if err != nil {
		x.c.warn("Failed to open the file %s: %s", name, vfs.Strerror(err))
		return &curlError{23, "Failure writing output to destination"}
	}
	x.file, x.fileName = f, name
	return nil
}

func (x *transfer) makeDirs(dir string) {
	at := ""
	if strings.HasPrefix(dir, "/") {
		at = "/"
	}
	for part := range strings.SplitSeq(strings.Trim(dir, "/"), "/") {
		at = path.Join(at, part)
		x.c.t.Mkdir(at, 0o750)
	}
}

// emit writes to where the body goes.
func (x *transfer) emit(b []byte) error {
	if err := x.openOutput(x.last); err != nil {
		return err
	}
	if x.file == nil {
		x.c.t.Out.Write(b)
		return nil
	}
	if _, err := x.file.Write(b); err != nil {
		return &curlError{23, "Failure writing output to destination"}
	}
	return nil
}

// write copies the body to its destination.
func (x *transfer) write(body io.Reader, r *response) error {
	if err := x.openOutput(r); err != nil {
		return err
	}
	buf := make([]byte, 16<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			x.verboseData('{', n)
			if err := x.emit(buf[:n]); err != nil {
				return err
			}
			if x.file == nil && (x.c.global.verbose || x.config.limitRate > 0) {
				x.c.t.Out.Flush()
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			var known *transferError
			var own *curlError
			if errors.As(err, &known) || errors.As(err, &own) {
				return err
			}
			if x.config.compressed {
				return &curlError{61, "Error while processing content unencoding: " + err.Error()}
			}
			return x.client.failure(err)
		}
	}
}

// discard forgets what a failed try wrote.
func (x *transfer) discard() {
	if x.file != nil && x.offset == 0 {
		zero := int64(0)
		x.file.SetAttr(vfs.SetAttr{Size: &zero})
		x.file.Seek(0, io.SeekStart)
	}
}

// done closes the output.
func (x *transfer) done() {
	if x.file != nil {
		x.file.Close()
		x.file = nil
	}
}

// showHead writes a head where -i, -I and -D want it.
func (x *transfer) showHead(head []byte) error {
	x.verboseLines('<', head)
	if name := x.config.dumpHeader; name != "" {
		if err := x.dumpHead(name, head); err != nil {
			return err
		}
	}
	if x.config.include || x.config.head {
		return x.emit(head)
	}
	return nil
}

func (x *transfer) dumpHead(name string, head []byte) error {
	if name == "-" {
		x.c.t.Out.Write(head)
		return nil
	}
	open := x.c.t.Append
	if !x.c.headers[name] {
		open = x.c.t.Create
		x.c.headers[name] = true
	}
	f, err := open(name)
	if err != nil {
		return &curlError{23, "Failed to open " + name}
	}
	defer f.Close()
	f.Write(head)
	return nil
}

func (x *transfer) showInterim(r *response) {
	x.heads += len(r.head)
	x.showHead(r.head)
}

// showRequest shows a request's head for -v.
func (x *transfer) showRequest(q *request) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", q.method, q.target)
	for _, f := range q.fields {
		fmt.Fprintf(&b, "%s: %s\r\n", f.name, f.value)
	}
	b.WriteString("\r\n")
	x.requests += b.Len()
	x.verboseLines('>', b.Bytes())
	if q.body != nil && q.size > 0 {
		x.verboseData('}', int(q.size))
	}
}

func (x *transfer) verboseLines(mark byte, head []byte) {
	if !x.c.global.verbose {
		return
	}
	for line := range bytes.SplitAfterSeq(head, []byte("\n")) {
		if len(line) > 0 {
			x.c.errorf("%c %s", mark, line)
		}
	}
}

// verboseData tells how many bytes of a body were sent ("}") or received ("{"), unless they can be seen.
func (x *transfer) verboseData(mark byte, n int) {
	if x.c.global.verbose && (x.file != nil || !x.c.t.IsTerminal(1)) {
		x.c.errorf("%c [%d bytes data]\n", mark, n)
	}
}

// retryAfter is the wait that a response asks for.
func (x *transfer) retryAfter() (time.Duration, bool) {
	if x.last == nil || x.status == 0 {
		return 0, false
	}
	s := x.last.get("Retry-After")
	if n, err := strconv.Atoi(s); err == nil && n >= 0 {
		return time.Duration(min(n, 6*3600)) * time.Second, true
	}
	if at, err := http.ParseTime(s); err == nil {
		return max(min(at.Sub(x.c.t.Now()), 6*time.Hour), 0), true
	}
	return 0, false
}

// writeOut prints the -w format.
func (x *transfer) writeOut(format string) {
	out := func(s string) { x.c.t.Out.WriteString(s) }
	for i := 0; i < len(format); i++ {
		c := format[i]
		rest := format[i:]
		switch {
		case strings.HasPrefix(rest, "%%"):
			out("%")
			i++
		case strings.HasPrefix(rest, "%{"):
			end := strings.IndexByte(rest, '}')
			if end < 0 {
				out("%{")
				i++
				continue
			}
			i += end
			switch name := rest[2:end]; name {
			case "stdout":
				out = func(s string) { x.c.t.Out.WriteString(s) }
			case "stderr":
				out = func(s string) { x.c.errorf("%s", s) }
			case "onerror":
				if x.exit == 0 {
					return
				}
			default:
				v, known := x.variable(name)
				if !known {
					x.c.errorf("curl: unknown --write-out variable: '%s'\n", name)
				}
				out(v)
			}
		case strings.HasPrefix(rest, "%header{"):
			end := strings.IndexByte(rest, '}')
			if end < 0 {
				out("%header{")
				i += len("%header{") - 1
				continue
			}
			i += end
			if x.last != nil {
				out(x.last.get(rest[len("%header{"):end]))
			}
		case c == '\\' && i+1 < len(format):
			i++
			switch format[i] {
			case 'n':
				out("\n")
			case 'r':
				out("\r")
			case 't':
				out("\t")
			default:
				out("\\" + format[i:i+1])
			}
		default:
			out(format[i : i+1])
		}
	}
}

// variable is the value of a -w variable.
func (x *transfer) variable(name string) (string, bool) {
	switch name {
	case "json":
		return x.json(), true
	case "header_json":
		return x.headerJSON(), true
	}
	v, ok := x.variables()[name]
	switch v := v.(type) {
	case float64:
		return strconv.FormatFloat(v, 'f', 6, 64), ok
	case nil:
		return "", ok
	default:
		if name == "http_code" || name == "response_code" || name == "http_connect" {
			return fmt.Sprintf("%03d", v), ok
		}
		return fmt.Sprint(v), ok
	}
}

// variables are all variables by name: int, int64, float64 (seconds), string or nil (null).
func (x *transfer) variables() map[string]any {
	at := &phases{}
	if x.client != nil {
		at = &x.client.at
	}
	seconds := func(d time.Duration) float64 { return d.Seconds() }
	speed := func(n int64) int64 {
		if x.took <= 0 {
			return 0
		}
		return int64(float64(n) / x.took.Seconds())
	}
	host := func(s string) (string, int) {
		h, p, _ := net.SplitHostPort(s)
		n, _ := strconv.Atoi(p)
		return h, n
	}
	localIP, localPort := host(x.local)
	remoteIP, remotePort := host(x.remote)
	v := map[string]any{"certs": "", "content_type": nil, "errormsg": nil, "exitcode": x.exit, "filename_effective": nil, "ftp_entry_path": nil,
		"http_code": x.status, "http_connect": 0, "http_version": "0", "local_ip": localIP, "local_port": localPort, "method": x.method,
		"num_certs": 0, "num_connects": at.connects, "num_headers": 0, "num_redirects": x.redirs, "proxy_ssl_verify_result": 0, "redirect_url": nil,
		"referer": nil, "remote_ip": remoteIP, "remote_port": remotePort, "response_code": x.status, "scheme": strings.ToUpper(x.addr.scheme),
		"size_download": x.received, "size_header": x.heads, "size_request": x.requests, "size_upload": x.sent, "speed_download": speed(x.received),
		"speed_upload": speed(x.sent), "ssl_verify_result": 0, "time_appconnect": seconds(at.appConnect), "time_connect": seconds(at.connect),
		"time_namelookup": seconds(at.connect) / 2, "time_pretransfer": seconds(at.pretransfer), "time_redirect": seconds(x.redirect),
		"time_starttransfer": seconds(at.first), "time_total": seconds(x.took), "url": x.url, "url_effective": x.effective(), "urlnum": x.c.urlnum}
	if x.last != nil && x.status != 0 {
		if t := x.last.get("Content-Type"); t != "" {
			v["content_type"] = t
		}
		v["http_version"] = strings.TrimSuffix(strings.TrimPrefix(x.last.proto, "HTTP/"), ".0")
		if x.last.proto == "HTTP/1.0" {
			v["http_version"] = "1"
		}
		v["num_headers"] = len(x.last.fields)
	}
	set := func(name, s string) {
		if s != "" {
			v[name] = s
		}
	}
	set("errormsg", x.text)
	set("filename_effective", x.fileName)
	set("referer", x.config.referer)
	if !x.config.location || x.redirs > x.config.maxRedirs {
		set("redirect_url", x.nextURL)
	}
	return v
}

func (x *transfer) effective() string {
	if x.redirs > 0 || x.addr.host == "" {
		if x.addr.host == "" {
			return x.url
		}
		return x.addr.String()
	}
	if !strings.Contains(x.url, "://") {
		return x.addr.scheme + "://" + strings.TrimSuffix(x.url, "/") + map[bool]string{true: "/"}[x.addr.target() == "/"]
	}
	if x.addr.target() == "/" && !strings.HasSuffix(x.url, "/") && !strings.Contains(x.url, "#") {
		return x.url + "/"
	}
	return x.url
}

func (x *transfer) json() string {
	vars := x.variables()
	var names []string
	for n := range vars {
		names = append(names, n)
	}
	sort.Strings(names)
	var b strings.Builder
	b.WriteByte('{')
	for i, n := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:", n)
		switch v := vars[n].(type) {
		case string:
			b.WriteString(jsonText(v))
		case nil:
			b.WriteString("null")
		case float64:
			fmt.Fprintf(&b, "%.6f", v)
		default:
			fmt.Fprint(&b, v)
		}
	}
	b.WriteString(`,"curl_version":"libcurl/7.88.1 AgentRun/1.0"}`)
	return b.String()
}

// headerJSON is all fields of the last response, in lower case, each with the list of its values.
func (x *transfer) headerJSON() string {
	var b strings.Builder
	b.WriteByte('{')
	if x.last != nil {
		seen := map[string]bool{}
		for _, f := range x.last.fields {
			name := strings.ToLower(f.name)
			if seen[name] {
				continue
			}
			if len(seen) > 0 {
				b.WriteString(",\n")
			}
			seen[name] = true
			b.WriteString(jsonText(name) + ":[")
			n := 0
			for _, g := range x.last.fields {
				if strings.EqualFold(g.name, name) {
					if n++; n > 1 {
						b.WriteByte(',')
					}
					b.WriteString(jsonText(g.value))
				}
			}
			b.WriteByte(']')
		}
	}
	b.WriteString("\n}")
	return b.String()
}

func jsonText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ':
			if k := strings.IndexByte("\b\f\n\r\t", c); k >= 0 {
				b.WriteByte('\\')
				b.WriteByte("bfnrt"[k])
			} else {
				fmt.Fprintf(&b, "\\u%04x", c)
			}
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
