package server

import (
	"bufio"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/cmd/agentrun/internal/settings"
	"agentrun.dev/errs"
)

func config(t *testing.T) Config {
	return Config{Data: filepath.Join(t.TempDir(), "data"), Listen: "127.0.0.1:0", S3Listen: "127.0.0.1:0", Version: "test"}
}

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		ok     bool
	}{
		"as it is":             {func(*Config) {}, true},
		"localhost":            {func(c *Config) { c.Listen = "localhost:0" }, true},
		"IPv6":                 {func(c *Config) { c.Listen = "[::1]:0" }, true},
		"another loopback":     {func(c *Config) { c.Listen = "127.9.9.9:0" }, true},
		"no data":              {func(c *Config) { c.Data = "" }, false},
		"no port":              {func(c *Config) { c.Listen = "127.0.0.1" }, false},
		"everywhere":           {func(c *Config) { c.Listen = "0.0.0.0:0" }, false},
		"everywhere, unsaid":   {func(c *Config) { c.S3Listen = ":0" }, false},
		"everywhere in IPv6":   {func(c *Config) { c.S3Listen = "[::]:0" }, false},
		"a name":               {func(c *Config) { c.Listen = "localhost.example.com:0" }, false},
		"everywhere with TLS":  {func(c *Config) { c.Listen, c.SelfSigned = "0.0.0.0:0", true }, true},
		"half a certificate":   {func(c *Config) { c.TLSKey = "k" }, false},
		"two certificates":     {func(c *Config) { c.TLSCert, c.TLSKey, c.SelfSigned = "c", "k", true }, false},
		"half a key":           {func(c *Config) { c.Root.ID = "root" }, false},
		"a short secret":       {func(c *Config) { c.Root = settings.RootKey{ID: "root", Secret: "short"} }, false},
		"a dot in the id":      {func(c *Config) { c.Root = settings.RootKey{ID: "ro.ot", Secret: "long enough"} }, false},
		"SSH":                  {func(c *Config) { c.SSH.Listen = "127.0.0.1:0" }, true},
		"SSH without a port":   {func(c *Config) { c.SSH.Listen = "127.0.0.1" }, false},
		"SSH everywhere":       {func(c *Config) { c.SSH.Listen = ":0" }, true},
		"another SSH login":    {func(c *Config) { c.SSH.Listen, c.SSH.Auth = ":0", "password" }, false},
		"a network that isn't": {func(c *Config) { c.SSH.Listen, c.SSH.Network = ":0", []string{"a b"} }, false},
		"a key":                {func(c *Config) { c.Root = settings.RootKey{ID: "root", Secret: "long-enough"} }, true},
	} {
		conf := config(t)
		c.change(&conf)
		if err := conf.Validate(); (err == nil) != c.ok || err != nil && !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// start runs a server; the function ends it and returns how it ended.
func start(t *testing.T, c Config) (*Server, func() error) {
	t.Helper()
	s, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	end := func() error {
		cancel()
		return <-ended
	}
	t.Cleanup(cancel)
	return s, end
}

// TestSSHAuth checks that everyone is let in only where that is said, or nobody but this machine's users can come.
func TestSSHAuth(t *testing.T) {
	for listen, want := range map[string]string{"127.0.0.1:0": SSHOpen, "localhost:0": SSHOpen, "[::1]:0": SSHOpen, ":0": SSHKeys, "0.0.0.0:0": SSHKeys, "[::]:0": SSHKeys, "192.0.2.1:0": SSHKeys, "example.com:0": SSHKeys} {
		c := config(t)
		c.SSH.Listen = listen
		if err := c.Validate(); err != nil || c.SSH.Auth != want {
			t.Errorf("%s: %s, %v", listen, c.SSH.Auth, err)
		}
	}
}

// TestDrain ends a server while it has work: a request in progress is answered, a command is ended, new requests are
// turned away, and the store is free afterwards.
func TestDrain(t *testing.T) {
	c := config(t)
	s, end := start(t, c)
	cl, err := client.New(s.Endpoint, s.Root.Token(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := cl.CreateBucket(t.Context(), api.CreateBucket{Name: "base"}); err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{})
	command := make(chan error, 1)
	go func() {
		out := writer(func([]byte) { close(started) })
		_, err := cl.Exec(context.Background(), api.Exec{Args: []string{"sh", "-c", "echo on; while true; do sleep 1; done"}, Mounts: []api.Mount{{Bucket: "base"}}},
			client.Streams{Stdout: out})
		command <- err
	}()
	<-started

	// A body that is still coming when the server is told to end.
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.Endpoint, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	first, second := `{"name":`, `"late-one"}`
	fmt.Fprintf(conn, "POST /v1/buckets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		s.Root.Token(), api.JSON, len(first)+len(second), first)
	for !strings.Contains(page(t, s.Endpoint+"/metrics"), `agentrun_http_requests_in_flight{protocol="rest"} 3`) { // the command, this one, the page itself
		time.Sleep(time.Millisecond)
	}
	ended := make(chan error, 1)
	go func() { ended <- end() }()
	for !s.draining.Load() {
		time.Sleep(time.Millisecond)
	}
	io.WriteString(conn, second)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("the request in progress: %v", err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Errorf("the request in progress: %s", resp.Status)
	}
	if err := <-command; !errs.Is(err, errs.Unavailable) && !errs.Is(err, errs.Canceled) {
		t.Errorf("the command: %v", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the end: %v", err)
	}
	if _, err := cl.Server(t.Context()); !errs.Is(err, errs.Unavailable) {
		t.Errorf("after the end: %v", err)
	}
	store, err := OpenStore(t.Context(), c.Data, StoreOptions{Existing: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Info(t.Context(), "late-one"); err != nil {
		t.Errorf("what was acknowledged: %v", err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

func page(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

// TestOneHolder checks that a second server is refused, says why, and leaves the first one's files alone.
func TestOneHolder(t *testing.T) {
	c := config(t)
	s, end := start(t, c)
	before := s.Root
	if _, err := Start(t.Context(), c); !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), "in use by") {
		t.Errorf("a second server: %v", err)
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	s, end = start(t, c)
	if s.Root != before {
		t.Error("another root key after a restart")
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

// TestFailedStart checks that a start which fails half-way leaves the store free.
func TestFailedStart(t *testing.T) {
	c := config(t)
	s, end := start(t, config(t))
	c.S3Listen = strings.TrimPrefix(s.Endpoint, "http://")
	if _, err := Start(t.Context(), c); !errs.Is(err, errs.Unavailable) || !strings.Contains(errs.HintOf(err), "--s3-listen") {
		t.Errorf("a port in use: %v", err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	c.S3Listen = "127.0.0.1:0"
	if err := os.WriteFile(filepath.Join(c.Data, "master-key"), []byte("not a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), c); !errs.Is(err, errs.Corrupt) {
		t.Errorf("a damaged master key: %v", err)
	}
	if err := os.Remove(filepath.Join(c.Data, "master-key")); err != nil {
		t.Fatal(err)
	}
	_, end = start(t, c)
	if err := end(); err != nil {
		t.Error(err)
	}
}

// TestCertificate checks that a certificate of our own covers what it should, stays, and is replaced when it must be.
func TestCertificate(t *testing.T) {
	c := config(t)
	c.SelfSigned, c.Listen, c.Domains = true, "0.0.0.0:0", []string{"s3.example.com"}
	cert, file, err := c.ownCertificate()
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	for _, host := range []string{"localhost", "base.localhost", "127.0.0.1", "::1", "s3.example.com", "base.s3.example.com"} {
		if _, err := cert.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: pool}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	same := func(c Config) bool {
		again, _, err := c.ownCertificate()
		if err != nil {
			t.Fatal(err)
		}
		return again.Leaf.SerialNumber.Cmp(cert.Leaf.SerialNumber) == 0
	}
	if !same(c) {
		t.Error("another certificate although the first is good")
	}
	if st, err := os.Stat(filepath.Join(c.Data, "tls", "key.pem")); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", st.Mode(), err)
	}
	c.Domains = append(c.Domains, "other.example.com")
	if same(c) {
		t.Error("the certificate doesn't cover another domain")
	}
}
