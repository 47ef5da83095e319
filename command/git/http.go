package git

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	neturl "net/url"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"

	"agentrun.dev/command/services"
)

// httpTransport speaks git's smart protocol, version 0, over HTTP. Connections are made by the sandbox's network policy
// alone; proxies, certificates and settings of the host play no part, but for its list of authorities where the sandbox
// has none.
type httpTransport struct {
	r      *repo
	base   string
	client *http.Client
	who    credential // whom requests are made as; nobody without a password
	ad     *advert
}

// errWho is that a server wants to know who asks.
var errWho = errors.New("authentication required")

// maxAdvert bounds a list of references.
const maxAdvert = 64 << 20

func (h *httpTransport) open() error {
	if h.client != nil {
		return nil
	}
	u, err := neturl.Parse(h.base)
	if err != nil || u.Host == "" {
		return fmt.Errorf("unable to access '%s/': URL using bad/illegal format or missing URL", h.base)
	}
	if !h.who.setURL(h.base) {
		return fmt.Errorf("unable to access '%s/': URL using bad/illegal format or missing URL", h.base)
	}
	u.User = nil
	h.base = u.String()
	s := services.From(h.r.t.Process)
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return s.Connect(ctx, network, addr)
		},
		TLSClientConfig:       h.trust(),
		ResponseHeaderTimeout: 5 * time.Minute,
		DisableKeepAlives:     true,
		ForceAttemptHTTP2:     false,
	}
	h.client = &http.Client{Transport: transport}
	return nil
}

// trust is whom TLS believes: the authorities of the sandbox's own files if it has any.
func (h *httpTransport) trust() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	r := h.r
	if !r.config().bool("http.sslverify", true) || r.t.Getenv("GIT_SSL_NO_VERIFY") != "" {
		c.InsecureSkipVerify = true
		return c
	}
	files := []string{r.t.Getenv("GIT_SSL_CAINFO"), "/etc/ssl/certs/ca-certificates.crt"}
	if f, ok := r.config().get("http.sslcainfo"); ok {
		files = append([]string{r.homePath(f)}, files...)
	}
	for _, f := range files {
		if f == "" {
			continue
		}
		if b, err := r.t.ReadFile(f, maxSmall); err == nil {
			pool := x509.NewCertPool()
			if pool.AppendCertsFromPEM(b) {
				c.RootCAs = pool
				break
			}
		}
	}
	return c
}

// request asks the server. The error says what went wrong as git words it.
func (h *httpTransport) request(method, url string, body io.Reader, header map[string]string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(h.r.t.Context(), method, url, body)
	if err != nil {
		return nil, fmt.Errorf("unable to access '%s/': %w", h.base, err)
	}
	req.Header.Set("User-Agent", "git/2.39.5")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	if h.who.password != "" {
		req.SetBasicAuth(h.who.username, h.who.password)
	}
	var resp *http.Response
	err = h.r.t.Rest(func() (err error) {
		resp, err = h.client.Do(req)
		return err
	})
	if err != nil {
		var ue *neturl.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return nil, fmt.Errorf("unable to access '%s/': %w", h.base, err)
	}
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		resp.Body.Close()
		if h.who.password != "" {
			h.r.tell("erase", &h.who)
			return nil, fmt.Errorf("Authentication failed for '%s/'", h.base)
		}
		return nil, errWho
	case resp.StatusCode == http.StatusNotFound:
		resp.Body.Close()
		return nil, fmt.Errorf("repository '%s/' not found", h.base)
	case resp.StatusCode != http.StatusOK:
		resp.Body.Close()
		return nil, fmt.Errorf("unable to access '%s/': The requested URL returned error: %d", h.base, resp.StatusCode)
	}
	return resp, nil
}

func (h *httpTransport) advertise(push bool) (*advert, error) {
	if err := h.open(); err != nil {
		return nil, err
	}
	service := "git-upload-pack"
	if push {
		service = "git-receive-pack"
	}
	ask := func() (*http.Response, error) {
		return h.request("GET", h.base+"/info/refs?service="+service, nil, map[string]string{"Accept": "*/*"})
	}
	resp, err := ask()
	if errors.Is(err, errWho) {
		h.r.fill(&h.who)
		if resp, err = ask(); err == nil {
			h.r.tell("store", &h.who)
		}
	}
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if final := resp.Request.URL; !strings.HasPrefix(final.String(), h.base) {
		// The repository has moved; what follows goes there, too.
		final.RawQuery = ""
		if b, ok := strings.CutSuffix(final.String(), "/info/refs"); ok {
			h.base = b
		}
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/x-"+service+"-advertisement") {
		return nil, fmt.Errorf("'%s/' isn't a git repository that speaks the smart protocol", h.base)
	}
	h.ad, err = parseAdvert(io.LimitReader(resp.Body, maxAdvert), true)
	return h.ad, err
}

// parseAdvert reads an advertisement of references.
func parseAdvert(in io.Reader, header bool) (*advert, error) {
	a := &advert{caps: map[string]string{}}
	s := pktline.NewScanner(in)
	first := true
	for s.Scan() {
		line := strings.TrimSuffix(string(s.Bytes()), "\n")
		if strings.HasPrefix(line, "# service=") || line == "" {
			if line == "" && !first {
				break
			}
			continue
		}
		if msg, ok := strings.CutPrefix(line, "ERR "); ok {
			return nil, fmt.Errorf("remote error: %s", msg)
		}
		line, caps, has := strings.Cut(line, "\x00")
		if has {
			for _, c := range strings.Fields(caps) {
				k, v, _ := strings.Cut(c, "=")
				if k == "symref" {
					if from, to, _ := strings.Cut(v, ":"); from == "HEAD" && validRef(to) {
						a.head = to
					}
					continue
				}
				a.caps[k] = v
			}
		}
		first = false
		if len(line) < 42 {
			continue
		}
		id, ok := parseOID(line[:40])
		name := line[41:]
		if !ok {
			return nil, errors.New("protocol error: bad reference line")
		}
		if name == "capabilities^{}" {
			continue
		}
		if name != "HEAD" && !validRef(strings.TrimSuffix(name, "^{}")) {
			continue // not one that could be stored
		}
		a.refs = append(a.refs, ref{name, id})
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("protocol error: %w", err)
	}
	return a, nil
}

// maxHaves bounds how many own commits a fetch tells of.
const maxHaves = 1024

func (h *httpTransport) fetch(want []oid, depth int) (shallow, unshallow []oid, err error) {
	var b bytes.Buffer
	e := pktline.NewEncoder(&b)
	caps := " side-band-64k ofs-delta no-progress agent=git/2.39.5"
	if _, ok := h.ad.caps["thin-pack"]; ok {
		caps += " thin-pack"
	}
	if _, ok := h.ad.caps["include-tag"]; ok {
		caps += " include-tag"
	}
	if _, ok := h.ad.caps["shallow"]; !ok && depth > 0 {
		return nil, nil, errors.New("Server does not support shallow clients")
	}
	for _, id := range want {
		e.Encodef("want %s%s\n", id, caps)
		caps = ""
	}
	for id := range h.r.shallow() {
		e.Encodef("shallow %s\n", id)
	}
	if depth > 0 {
		e.Encodef("deepen %d\n", depth)
	}
	e.Flush()
	w := h.r.walk(h.r.allTips(), nil)
	for n := 0; n < maxHaves; n++ {
		c := w.next()
		if c == nil {
			break
		}
		e.Encodef("have %s\n", c.id)
	}
	e.EncodeString("done\n")
	resp, err := h.post("git-upload-pack", &b)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	in := pktline.NewScanner(resp.Body)
	if depth > 0 {
		for in.Scan() && len(in.Bytes()) > 0 {
			line := strings.TrimSpace(string(in.Bytes()))
			word, hash, _ := strings.Cut(line, " ")
			id, ok := parseOID(hash)
			switch {
			case ok && word == "shallow":
				shallow = append(shallow, id)
			case ok && word == "unshallow":
				unshallow = append(unshallow, id)
			}
		}
	}
	// ACK and NAK lines end the negotiation; the first line of a channel begins the pack.
	var begin bytes.Buffer
	for in.Scan() {
		line := in.Bytes()
		if msg, ok := bytes.CutPrefix(line, []byte("ERR ")); ok {
			return nil, nil, fmt.Errorf("remote error: %s", bytes.TrimSpace(msg))
		}
		if len(line) > 0 && line[0] <= 3 {
			if err := pktline.NewEncoder(&begin).Encode(line); err != nil {
				return nil, nil, err
			}
			break
		}
	}
	if err := in.Err(); err != nil {
		return nil, nil, fmt.Errorf("protocol error: %w", err)
	}
	d := sideband.NewDemuxer(sideband.Sideband64k, io.MultiReader(&begin, resp.Body))
	d.Progress = &remoteText{r: h.r}
	if _, err := h.r.receivePack(d); err != nil {
		return nil, nil, fmt.Errorf("index-pack failed: %w", err)
	}
	return shallow, unshallow, nil
}

// post sends a request of the protocol.
func (h *httpTransport) post(service string, body io.Reader) (*http.Response, error) {
	header := map[string]string{"Content-Type": "application/x-" + service + "-request", "Accept": "application/x-" + service + "-result"}
	if b, ok := body.(*bytes.Buffer); ok && b.Len() > 1024 && service == "git-upload-pack" {
		var z bytes.Buffer
		zw := gzip.NewWriter(&z)
		zw.Write(b.Bytes())
		zw.Close()
		body, header["Content-Encoding"] = &z, "gzip"
	}
	return h.request("POST", h.base+"/"+service, body, header)
}

// remoteText shows what the other side says, with "remote: " before each line and nothing that could steer a terminal.
type remoteText struct {
	r    *repo
	line []byte
}

func (t *remoteText) Write(p []byte) (int, error) {
	for _, c := range p {
		switch {
		case c == '\n' || c == '\r':
			if len(t.line) > 0 || c == '\n' {
				t.r.say("remote: %s%s", t.line, "        ")
			}
			t.line = t.line[:0]
		case c >= ' ' && c != 0x7f || c == '\t':
			if len(t.line) < 4096 {
				t.line = append(t.line, c)
			}
		}
	}
	return len(p), nil
}

func (h *httpTransport) push(updates []*refUpdate) error {
	var b bytes.Buffer
	e := pktline.NewEncoder(&b)
	caps := "\x00 report-status agent=git/2.39.5"
	if _, ok := h.ad.caps["side-band-64k"]; ok {
		caps += " side-band-64k"
	}
	var want []oid
	count := 0
	for _, u := range updates {
		if u.rejected != "" {
			continue
		}
		id := u.id
		if u.delete {
			id = oid{}
		} else {
			want = append(want, id)
		}
		e.Encodef("%s %s %s%s", u.old, id, u.name, caps)
		caps = ""
		count++
	}
	if count == 0 {
		return nil
	}
	e.Flush()
	if len(want) > 0 {
		have := map[oid]bool{}
		var tips []oid
		for _, f := range h.ad.refs {
			if h.r.hasObject(f.id) {
				if c, err := h.r.peel(f.id, commitObj); err == nil {
					tips = append(tips, c)
				}
			}
		}
		for id := range h.r.ancestors(tips) {
			have[id] = true
		}
		for _, id := range tips {
			h.r.markTree(h.r.readCommit(id).tree, have, 0)
		}
		if err := h.r.writePack(&b, h.r.missing(want, func(id oid) bool { return have[id] }, nil)); err != nil {
			return err
		}
	}
	h.r.need(int64(b.Len()))
	resp, err := h.post("git-receive-pack", &b)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var in io.Reader = io.LimitReader(resp.Body, maxAdvert)
	if _, ok := h.ad.caps["side-band-64k"]; ok {
		d := sideband.NewDemuxer(sideband.Sideband64k, in)
		d.Progress = &remoteText{r: h.r}
		in = d
	}
	return readReport(in, updates)
}

// readReport reads what the other side says of each reference.
func readReport(in io.Reader, updates []*refUpdate) error {
	s := pktline.NewScanner(in)
	for s.Scan() {
		line := strings.TrimSpace(string(s.Bytes()))
		if line == "" {
			break
		}
		if msg, ok := strings.CutPrefix(line, "unpack "); ok {
			if msg != "ok" {
				return fmt.Errorf("remote unpack failed: %s", msg)
			}
			continue
		}
		if rest, ok := strings.CutPrefix(line, "ng "); ok {
			name, why, _ := strings.Cut(rest, " ")
			for _, u := range updates {
				if u.name == name {
					u.rejected, u.remote = why, true
				}
			}
		}
	}
	return s.Err()
}
