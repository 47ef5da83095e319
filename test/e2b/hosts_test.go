package e2b

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"testing"
	"time"

	"agentrun.dev/test/harness"
)

// domain is where the server is in TestHosts; its names end in the sandbox's, so that certificates and resolvers need a wildcard.
const domain = "sandboxes.test"

// TestHosts runs suites that are told nothing but a domain: the API is api.DOMAIN then, and a sandbox's port PORT-ID.DOMAIN, over TLS. In
// place of a resolver with a wildcard there is one in the client's own process, which leads every name of the domain to this machine.
// The newest Python SDK has its names resolved by the system, and isn't here for that.
func TestHosts(t *testing.T) {
	front, ca := frontend(t)
	s := harness.StartKind(t, harness.AgentRun, t.TempDir(), "--e2b-domain", domain+":"+front.port)
	front.to(t, s.API)
	dir := t.TempDir()
	resolver := map[string]string{
		"resolve.cjs": "const dns = require('dns'), old = dns.lookup;\ndns.lookup = (host, o, done) => old(host.endsWith('." + domain + "') ? '127.0.0.1' : host, o, done);\n",
		"sitecustomize.py": "import socket\nold = socket.getaddrinfo\n\n\ndef getaddrinfo(host, *a, **k):\n    name = host.decode() if isinstance(host, bytes) else host\n" +
			"    return old('127.0.0.1' if name and name.endswith('." + domain + "') else host, *a, **k)\n\n\nsocket.getaddrinfo = getaddrinfo\n",
	}
	for name, text := range resolver {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"E2B_API_KEY=" + newKey(t, s), "E2B_DOMAIN=" + domain + ":" + front.port, "E2B_TEST_LISTENER=https://127.0.0.1:" + front.port,
		"NODE_EXTRA_CA_CERTS=" + ca, "SSL_CERT_FILE=" + ca, "NODE_OPTIONS=--require=" + filepath.Join(dir, "resolve.cjs"), "PYTHONPATH=" + dir}
	open := readOpen(t)
	for _, c := range []client{{"js", "js-new", false}, {"py", "python-old", false}} {
		groups := "sandbox,commands,files,code,volumes,errors"
		t.Run(c.String(), func(t *testing.T) { open.judge(t, c, run(t, c, append(env, "E2B_TEST_GROUPS="+groups)), false) })
	}
}

// front is a listener with TLS before the server, whose certificate has a wildcard.
type front struct {
	listener net.Listener
	port     string
	config   *tls.Config
}

// frontend makes a front. It returns the file of its certificate, too.
func frontend(t *testing.T) (*front, string) {
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return &front{l, port, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}}, file
}

// to leads what comes to a server, under the name that the client used.
func (f *front) to(t *testing.T, server string) {
	t.Helper()
	proxy := harness.Proxy(t, server, func(r *httputil.ProxyRequest) { r.Out.Host = r.In.Host })
	web := &http.Server{Handler: proxy, ErrorLog: log.New(io.Discard, "", 0)}
	go web.Serve(tls.NewListener(f.listener, f.config)) // ends with Close
	t.Cleanup(func() { web.Close() })
}
