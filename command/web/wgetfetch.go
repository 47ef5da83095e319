package web

import (
	"bufio"
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

	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// wgetFetch is the retrieval of one URL.
type wgetFetch struct {
	w           *wget
	first, addr address
	try         int
	redirects   int
	name        string
	have        int64 // bytes of a file that is resumed
	local       time.Time
	client      *client
}

// attempt tries once, redirections included.
func (g *wgetFetch) attempt() (status int, again bool) {
	w := g.w
	g.client = &client{t: w.t, ctx: w.t.Context(), insecure: w.insecure, timeout: w.timeout, network: w.network, note: func(string, ...any) {}}
	g.client.at.start = time.Now()
	defer g.client.close()
	if err := g.client.trust(w.ca); err != nil {
		w.tell("Failed to open cert %s: %s\n", w.ca, tool.Strerror(err))
		return 5, false
	}
	g.addr = g.first
	if stop, status := g.before(); stop {
		return status, false
	}
	for g.redirects = 0; ; g.redirects++ {
		count := ""
		if g.try > 1 {
			count = fmt.Sprintf("(try:%2d)  ", g.try)
		}
		w.say("--%s--  %s%s\n", w.stamp(), count, g.addr.String())
		q := g.request()
		w.say("Connecting to %s:%s... ", g.where(), g.addr.port)
		nc, r, err := g.client.do(g.addr.scheme, g.addr.host, g.addr.port, q, nil)
		if err != nil {
			w.t.Check()
			return g.failed(err)
		}
		w.say("connected.\n%s request sent, awaiting response... ", "HTTP")
		for _, f := range r.fields {
			if strings.EqualFold(f.name, "Set-Cookie") {
				w.jar.take(f.value, g.addr.host, g.addr.path, w.t.Now())
			}
		}
		g.showStatus(r)
		location := r.get("Location")
		if r.status/100 != 3 || r.status == 304 || location == "" {
			status, again := g.finish(nc, r)
			return status, again
		}
		w.say("Location: %s [following]\n", location)
		nc.close()
		if g.redirects >= w.maxRedirect {
			w.tell("%d redirections exceeded.\n", w.maxRedirect)
			return 8, false
		}
		next, err := g.addr.follow(location, false)
		if err != nil || next.scheme != "http" && next.scheme != "https" {
			w.tell("%s: Unsupported scheme.\n", location)
			return 8, false
		}
		g.addr = next
		if r.status != 307 && r.status != 308 && w.method == "POST" {
			w.method, w.hasBody = "", false
		}
	}
}

func (g *wgetFetch) where() string {
	if strings.Contains(g.addr.host, ":") {
		return "[" + g.addr.host + "]"
	}
	return g.addr.host
}

// failed reports a connection that failed.
func (g *wgetFetch) failed(err error) (status int, again bool) {
	w := g.w
	var te *transferError
	if !errors.As(err, &te) {
		w.say("failed: %s.\n", tool.Strerror(err))
		return 4, true
	}
	switch te.kind {
	case failedDenied:
		w.say("failed: ")
		w.tell("%s.\n", te.text)
		return 4, false
	case failedResolve:
		w.say("failed: Name or service not known.\n")
		w.tell("wget: unable to resolve host address ‘%s’\n", g.addr.host)
		return 4, false
	case failedConnect:
		w.say("failed: %s.\n", tool.Strerror(te.err))
		return 4, false
	case failedCertificate:
		w.say("connected.\n")
		w.tell("ERROR: cannot verify %s's certificate: %s\nTo connect to %s insecurely, use `--no-check-certificate'.\n", g.addr.host, te.text, g.addr.host)
		return 5, false
	case failedTLS:
		w.say("connected.\n")
		w.tell("Unable to establish SSL connection.\n")
		return 4, false
	case failedEmpty:
		w.say("connected.\nHTTP request sent, awaiting response... No data received.\n")
		return 4, true
	case failedTimeout:
		w.say("failed: Connection timed out.\n")
		return 4, true
	}
	w.say("%s.\n", te.text)
	return wgetStatus(err), true
}

// before looks at the file that the URL goes to.
func (g *wgetFetch) before() (stop bool, status int) {
	w := g.w
	if w.document != "" {
		g.name = w.document
		if a, err := w.t.Stat(w.document); w.resume && err == nil {
			g.have = a.Size
		}
		return false, 0
	}
	g.name = g.fileName(&g.first)
	a, err := w.t.Stat(g.name)
	if err != nil {
		return false, 0
	}
	switch {
	case w.noClobber:
		w.say("File %s already there; not retrieving.\n\n", quoted(g.name))
		return true, 0
	case w.resume:
		g.have = a.Size
	case w.timestamping:
		g.local = a.Mtime
	case !w.spider && g.try == 1:
		for n := 1; n < 10000; n++ {
			name := g.name + "." + strconv.Itoa(n)
			if _, err := w.t.Lstat(name); err != nil {
				g.name = name
				break
			}
		}
	}
	return false, 0
}

func quoted(s string) string { return "‘" + s + "’" }

// fileName is the local name for a URL: its last component, with the query.
func (g *wgetFetch) fileName(a *address) string {
	name := unescapeURL(a.path[strings.LastIndexByte(a.path, '/')+1:])
	if name == "" {
		name = "index.html"
	}
	if a.hasQuery && a.query != "" {
		name += "?" + a.query
	}
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, name)
	name = strings.ReplaceAll(name, "/", "%2F")
	if name == "." || name == ".." || name == "" {
		name = "index.html"
	}
	if g.w.prefix != "" {
		name = path.Join(g.w.prefix, name)
	}
	return name
}

// request builds the next request.
func (g *wgetFetch) request() *request {
	w := g.w
	q := &request{method: w.method, target: g.addr.target()}
	if q.method == "" {
		q.method = "GET"
		if w.spider {
			q.method = "HEAD"
		}
	}
	b := fieldBuilder{headers: w.headers, own: g.addr.host == g.first.host}
	b.add("Host", g.addr.hostField())
	if w.agent != "" {
		b.add("User-Agent", w.agent)
	}
	b.add("Accept", "*/*")
	b.add("Accept-Encoding", "identity")
	if user := g.user(); user != "" {
		b.add("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user)))
	}
	if g.have > 0 {
		b.add("Range", fmt.Sprintf("bytes=%d-", g.have))
	}
	if !g.local.IsZero() {
		b.add("If-Modified-Since", g.local.UTC().Format(http.TimeFormat))
	}
	if w.referer != "" {
		b.add("Referer", w.referer)
	}
	if c := w.jar.header(g.addr.host, g.addr.path, g.addr.scheme == "https", w.t.Now()); c != "" {
		b.add("Cookie", c)
	}
	b.add("Connection", "Keep-Alive")
	if w.hasBody {
		b.add("Content-Type", "application/x-www-form-urlencoded")
		b.add("Content-Length", strconv.Itoa(len(w.body)))
		q.body, q.size = strings.NewReader(string(w.body)), int64(len(w.body))
	}
	b.custom()
	q.fields = b.fields
	return q
}

func (g *wgetFetch) user() string {
	switch {
	case g.addr.hasUser:
		return withColon(g.addr.user)
	case g.w.user != "" && g.addr.host == g.first.host:
		return g.w.user + ":" + g.w.password
	}
	return ""
}

// showStatus prints the status line, with -S all fields.
func (g *wgetFetch) showStatus(r *response) {
	if !g.w.response {
		g.w.say("%d %s\n", r.status, r.reason)
		return
	}
	g.w.say("\n")
	for line := range strings.SplitSeq(strings.TrimRight(string(r.head), "\r\n"), "\n") {
		fmt.Fprintf(g.w.log, "  %s\n", strings.TrimRight(line, "\r"))
	}
}

// finish handles the last response.
func (g *wgetFetch) finish(nc *conn, r *response) (status int, again bool) {
	w := g.w
	whole := false
	defer func() { g.client.finish(nc, r, whole) }()
	switch {
	case w.retryOn[r.status]:
		w.say("Retrying.\n\n")
		return 8, true
	case r.status == 304:
		w.say("File %s not modified on server. Omitting download.\n\n", quoted(g.name))
		return 0, false
	case r.status == 416 && g.have > 0:
		w.say("\n    The file is already fully retrieved; nothing to do.\n\n")
		return 0, false
	case r.status == 204:
		w.say("\n")
		return 0, false
	case r.status >= 400:
		if w.spider && r.status == 404 {
			w.say("Remote file does not exist -- broken link!!!\n\n")
			return 8, false
		}
		if w.brief {
			w.tell("%s:\n", g.addr.String())
		}
		w.tell("%s ERROR %d: %s.\n", w.stamp(), r.status, r.reason)
		w.say("\n")
		if !w.onError {
			return 8, false
		}
		status = 8
	}
	if w.spider {
		g.showLength(r)
		w.say("Remote file exists.\n\n")
		if w.brief {
			w.tell("%s URL: %s %d %s\n", w.stamp(), g.addr.String(), r.status, r.reason)
		}
		return status, false
	}
	if r.status != 206 && g.have > 0 {
		if g.w.document == "" && r.length == g.have {
			w.say("\n    The file is already fully retrieved; nothing to do.\n\n")
			return 0, false
		}
		g.have = 0
	}
	g.showLength(r)
	saved, again := g.save(r)
	whole = saved == 0
	return worse(status, saved), again
}

// showLength prints how long the body is and where it goes.
func (g *wgetFetch) showLength(r *response) {
	kind := ""
	if t, _, _ := strings.Cut(r.get("Content-Type"), ";"); t != "" {
		kind = " [" + strings.TrimSpace(t) + "]"
	}
	switch {
	case r.length < 0:
		g.w.say("Length: unspecified%s\n", kind)
	case g.have > 0:
		g.w.say("Length: %s, %s remaining%s\n", lengthText(r.length+g.have), lengthText(r.length), kind)
	default:
		g.w.say("Length: %s%s\n", lengthText(r.length), kind)
	}
}

func lengthText(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10)
	}
	return fmt.Sprintf("%d (%s)", n, humanBytes(n))
}

// humanBytes renders a size as wget does.
func humanBytes(n int64) string {
	f := float64(n)
	for _, unit := range []string{"", "K", "M", "G", "T"} {
		if f < 1024 || unit == "T" {
			switch {
			case unit == "":
				return strconv.FormatInt(n, 10)
			case f < 10:
				return fmt.Sprintf("%.1f%s", f, unit)
			}
			return fmt.Sprintf("%.0f%s", f, unit)
		}
		f /= 1024
	}
	return ""
}

func interval(d time.Duration) string {
	s := d.Seconds()
	switch {
	case s < 0.001:
		return "0s"
	case s < 10:
		return strconv.FormatFloat(s, 'g', 2, 64) + "s"
	case s < 100:
		return fmt.Sprintf("%.0fs", s)
	case s < 6000:
		return fmt.Sprintf("%dm %ds", int(s)/60, int(s)%60)
	}
	return fmt.Sprintf("%dh %dm", int(s)/3600, int(s)/60%60)
}

func rate(n int64, d time.Duration) string {
	f := float64(n) / max(d.Seconds(), 1e-6)
	units := []string{"B/s", "KB/s", "MB/s", "GB/s"}
	i := 0
	for f >= 1024 && i < len(units)-1 {
		f /= 1024
		i++
	}
	switch {
	case f < 9.995:
		return fmt.Sprintf("%.2f %s", f, units[i])
	case f < 99.95:
		return fmt.Sprintf("%.1f %s", f, units[i])
	}
	return fmt.Sprintf("%.0f %s", f, units[i])
}

// open opens the file for the body.
func (g *wgetFetch) open(r *response) (f vfs.File, display string, err error) {
	w := g.w
	switch {
	case w.document == "-":
		return nil, "STDOUT", nil
	case w.document != "":
		return w.out, w.document, nil
	}
	if w.disposition {
		if given := dispositionName(r.get("Content-Disposition")); given != "" {
			g.name = path.Join(w.prefix, given)
		}
	} else if w.trustNames && g.redirects > 0 {
		g.name = g.fileName(&g.addr)
	}
	if dir := path.Dir(g.name); dir != "." {
		at := ""
		if strings.HasPrefix(dir, "/") {
			at = "/"
		}
		for part := range strings.SplitSeq(strings.Trim(dir, "/"), "/") {
			at = path.Join(at, part)
			w.t.Mkdir(at, 0o777)
		}
	}
	flags := syscall.O_WRONLY | syscall.O_CREAT | syscall.O_TRUNC
	if g.have > 0 {
		flags = syscall.O_WRONLY | syscall.O_APPEND
	}
	f, err = w.t.Process.Open(g.name, flags, 0o666)
	return f, g.name, err
}

// save writes the body and reports how it went.
func (g *wgetFetch) save(r *response) (status int, again bool) {
	w := g.w
	f, display, err := g.open(r)
	if err != nil {
		w.tell("%s: %s\n\nCannot write to %s (%s).\n", g.name, tool.Strerror(err), quoted(g.name), tool.Strerror(err))
		return 3, false
	}
	if f != nil && f != w.out {
		defer f.Close()
	}
	w.say("Saving to: %s\n\n", quoted(display))
	began := time.Now()
	dst := io.Writer(w.t.Out)
	if f != nil {
		dst = f
	}
	buf := bufio.NewWriterSize(dst, 64<<10)
	if w.saveHeaders {
		buf.Write(r.head)
	}
	n, err := io.Copy(buf, r.body)
	if ferr := buf.Flush(); ferr != nil && err == nil {
		w.tell("Cannot write to %s (%s).\n", quoted(display), tool.Strerror(ferr))
		return 3, false
	}
	took := time.Since(began)
	w.t.Check()
	if err != nil {
		w.say("%s (%s) - Connection closed at byte %d. ", w.stamp(), rate(n, took), n)
		if w.document == "" {
			g.have += n
		}
		return 4, true
	}
	g.progress(n, r.length, took)
	w.files++
	w.bytes += n
	w.took += took
	g.summary(r, display, n, took)
	if at, err := http.ParseTime(r.get("Last-Modified")); err == nil && !w.noTimes && f != nil {
		f.SetAttr(vfs.SetAttr{Atime: &at, Mtime: &at})
	}
	return 0, false
}

// progress draws the dots of a log, one for each KiB.
func (g *wgetFetch) progress(n, length int64, took time.Duration) {
	const perDot, perLine = 1 << 10, 50
	if g.w.quiet || g.w.brief {
		return
	}
	dots := n / perDot
	for line := int64(0); line == 0 || line*perLine < dots; line++ {
		g.w.say("%6dK", line*perLine)
		in := min(dots-line*perLine, perLine)
		for d := range int64(perLine) {
			if d%10 == 0 {
				g.w.say(" ")
			}
			switch {
			case d < in:
				g.w.say(".")
			case line*perLine+perLine > dots:
				g.w.say(" ")
			}
		}
		done := min((line+1)*perLine*perDot, n)
		if length > 0 {
			g.w.say("%3d%%", done*100/length)
		} else if length == 0 {
			g.w.say("100%%")
		}
		g.w.say(" %5s", shortRate(n, took))
		if done >= n {
			g.w.say("=%s", interval(took))
		} else {
			g.w.say(" 0s")
		}
		g.w.say("\n")
	}
	g.w.say("\n")
}

func shortRate(n int64, d time.Duration) string {
	f := float64(n) / max(d.Seconds(), 1e-6)
	units := []string{"", "K", "M", "G", "T"}
	i := 0
	for f >= 1024 && i < len(units)-1 {
		f /= 1024
		i++
	}
	if f < 9.995 {
		return fmt.Sprintf("%.2f%s", f, units[i])
	}
	return fmt.Sprintf("%4.0f%s", f, units[i])
}

// summary is the last line about a file.
func (g *wgetFetch) summary(r *response, display string, n int64, took time.Duration) {
	w := g.w
	size := strconv.FormatInt(n+g.have, 10)
	if r.length >= 0 {
		size += "/" + strconv.FormatInt(r.length+g.have, 10)
	}
	if w.brief {
		if w.document == "-" {
			display = "-"
		}
		length := strconv.FormatInt(n, 10)
		if r.length >= 0 {
			length += "/" + strconv.FormatInt(r.length, 10)
		}
		w.tell("%s URL:%s [%s] -> \"%s\" [%d]\n", w.stamp(), g.addr.String(), length, display, g.try)
		return
	}
	if w.document == "-" {
		w.say("%s (%s) - written to stdout [%s]\n\n", w.stamp(), rate(n, took), size)
		return
	}
	w.say("%s (%s) - %s saved [%s]\n\n", w.stamp(), rate(n, took), quoted(display), size)
}
