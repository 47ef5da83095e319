package e2b

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentrun.dev/test/harness"
)

// domain is where the server is in TestHosts; its names end in the sandbox's, so that certificates and resolvers need a wildcard.
const domain = "sandboxes.test"

// TestHosts runs suites that are told nothing but a domain: the API is api.DOMAIN then, and a sandbox's port PORT-ID.DOMAIN, over TLS. The
// server has the certificate itself, and what it speaks with those who can is HTTP/2; or something before it has, and speaks HTTP/1.1.
// In place of a resolver with a wildcard there is one in the client's own process, which leads every name of the domain to this machine.
// The newest Python SDK has its names resolved by the system, and isn't here for that.
func TestHosts(t *testing.T) {
	cert := certificate(t)
	own := harness.FreePort(t)
	_, port, _ := net.SplitHostPort(own)
	server := harness.StartKind(t, harness.AgentRun, t.TempDir(), "--listen", own, "--e2b-domain", domain+":"+port, "--tls-cert", cert.file, "--tls-key", cert.key)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, before, _ := net.SplitHostPort(l.Addr().String())
	behind := harness.StartKind(t, harness.AgentRun, t.TempDir(), "--e2b-domain", domain+":"+before)
	front := &http.Server{Handler: harness.Proxy(t, behind.API, func(r *httputil.ProxyRequest) { r.Out.Host = r.In.Host }), ErrorLog: log.New(io.Discard, "", 0)}
	go front.Serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert.pair}})) // ends with Close
	t.Cleanup(func() { front.Close() })

	key := newKey(t, server)
	t.Run("one connection", func(t *testing.T) { oneConnection(t, cert, port, key) })
	dir, at := resolvers(t), map[string][]string{"own": {key, port}, "front": {newKey(t, behind), before}}
	runs := []struct {
		client
		where  string
		report *report
	}{{client{"js", "js-new", false}, "own", nil}, {client{"js", "js-old", false}, "front", nil}, {client{"py", "python-old", false}, "own", nil},
		{client{"py", "python-old", false}, "front", nil}}
	turn := make(chan struct{}, 2)
	var wait sync.WaitGroup
	for i := range runs {
		r := &runs[i]
		key, port := at[r.where][0], at[r.where][1]
		wait.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			r.report = run(t, r.client, []string{"E2B_API_KEY=" + key, "E2B_DOMAIN=" + domain + ":" + port, "E2B_TEST_LISTENER=https://127.0.0.1:" + port,
				"NODE_EXTRA_CA_CERTS=" + cert.file, "SSL_CERT_FILE=" + cert.file, "NODE_OPTIONS=--require=" + filepath.Join(dir, "resolve.cjs"), "PYTHONPATH=" + dir,
				"E2B_TEST_GROUPS=sandbox,commands,files,code,volumes,errors"})
		})
	}
	wait.Wait()
	open := readOpen(t)
	for _, r := range runs {
		t.Run(r.where+" "+r.String(), func(t *testing.T) { open.judge(t, r.client, r.report, false) })
	}
}

// oneConnection asks for several names over one connection with HTTP/2, as clients may where one certificate is for all of them: what a
// request is for says its own authority, not the name that the connection was made for.
func oneConnection(t *testing.T, cert *pair, port, key string) {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: cert.roots, ServerName: "api." + domain}, ForceAttemptHTTP2: true}
	c, err := transport.NewClientConn(t.Context(), "https", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ask := func(method, host, path, body string, status int) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "https://"+host+"."+domain+":"+port+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if host == "api" {
			r.Header.Set("X-Api-Key", key)
		}
		answer, err := c.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		b, err := io.ReadAll(answer.Body)
		if err != nil || answer.ProtoMajor != 2 || answer.StatusCode != status {
			t.Errorf("%s %s%s: %s %d %q, %v; want HTTP/2 and %d", method, host, path, answer.Proto, answer.StatusCode, b, err, status)
		}
		return string(b)
	}
	var sandbox struct {
		ID     string `json:"sandboxID"`
		Domain string `json:"domain"`
	}
	if err := json.Unmarshal([]byte(ask("POST", "api", "/sandboxes", `{"templateID": "base"}`, 201)), &sandbox); err != nil || sandbox.Domain != domain+":"+port {
		t.Fatalf("%+v, %v", sandbox, err)
	}
	ask("GET", "49983-"+sandbox.ID, "/health", "", 204)
	ask("GET", "49999-"+sandbox.ID, "/health", "", 200)
	ask("GET", "8000-"+sandbox.ID, "/health", "", 502) // nothing listens there
	ask("GET", "49983-nosuchsandbox", "/health", "", 502)
	ask("GET", "else", "/readyz", "", 200)
	ask("DELETE", "api", "/sandboxes/"+sandbox.ID, "", 204)
	ask("GET", "49983-"+sandbox.ID, "/health", "", 502)
}

// resolvers returns a folder with what leads the domain's names to this machine, for node and for Python.
func resolvers(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"resolve.cjs": "const dns = require('dns'), old = dns.lookup;\ndns.lookup = (host, o, done) => old(host.endsWith('." + domain + "') ? '127.0.0.1' : host, o, done);\n",
		"sitecustomize.py": "import socket\nold = socket.getaddrinfo\n\n\ndef getaddrinfo(host, *a, **k):\n    name = host.decode() if isinstance(host, bytes) else host\n" +
			"    return old('127.0.0.1' if name and name.endswith('." + domain + "') else host, *a, **k)\n\n\nsocket.getaddrinfo = getaddrinfo\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// pair is a certificate with its key.
type pair struct {
	pair      tls.Certificate
	file, key string // in PEM
	roots     *x509.CertPool
}

// certificate makes a certificate with a wildcard, which is its own authority.
func certificate(t *testing.T) *pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: domain}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true, IsCA: true,
		DNSNames: []string{domain, "*." + domain}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, &c, &c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p := &pair{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), x509.NewCertPool()}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	p.roots.AppendCertsFromPEM(public)
	for file, b := range map[string][]byte{p.file: public, p.key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})} {
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p
}
