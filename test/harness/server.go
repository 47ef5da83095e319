package harness

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Kind is a server that the tests can run against.
type Kind string

const (
	AgentRun  Kind = "agentrun"
	Versitygw Kind = "versitygw"
)

// Under returns the kind under test.
func Under(t testing.TB) Kind {
	t.Helper()
	switch k := Kind(os.Getenv("AGENTRUN_TEST_SERVER")); k {
	case "":
		return AgentRun
	case AgentRun, Versitygw:
		return k
	default:
		t.Fatalf("AGENTRUN_TEST_SERVER=%s: want agentrun or versitygw", k)
		return ""
	}
}

// Server is a running server; its process ends with the test that started it.
type Server struct {
	Kind      Kind
	Endpoint  string // of S3, such as http://127.0.0.1:40001
	API       string // of AgentRun's own API; empty for another server
	AccessKey string
	SecretKey string
	Data      string // its data folder

	t      testing.TB
	config string // the configuration folder that agentrun leaves its context in
	ca     string // file of the certificate of a server with TLS
	client *http.Client
	cmd    *exec.Cmd
	output *buffer
	exited chan struct{} // closed once cmd has ended
}

// buffer collects a process's output; the process writes while the test may read.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

var (
	buildOnce sync.Once
	buildPath string
	buildErr  error
)

// Binary returns bin/agentrun, built from the tree once per test process so that it is never stale.
// AGENTRUN_TEST_BINARY names another one, such as one built with -race.
func Binary(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("AGENTRUN_TEST_BINARY"); path != "" {
		return path
	}
	buildOnce.Do(func() {
		buildPath = filepath.Join(Root(), "bin", "agentrun")
		cmd := exec.Command("go", "build", "-trimpath", "-o", buildPath, "./cmd/agentrun")
		cmd.Dir = Root()
		if out, err := cmd.CombinedOutput(); err != nil {
			buildErr = fmt.Errorf("go build ./cmd/agentrun: %w\n%s", err, out)
		}
	})
	if buildErr != nil {
		t.Fatal(buildErr)
	}
	return buildPath
}

// Start starts a server of the kind under test with an empty data folder and waits until it is ready.
func Start(t testing.TB) *Server {
	t.Helper()
	return StartKind(t, Under(t), t.TempDir())
}

// StartKind starts a server of a kind over a data folder, which may hold what an earlier one has left. more are further
// arguments of 'agentrun up'; with --tls-cert among them, its addresses are https.
func StartKind(t testing.TB, kind Kind, data string, more ...string) *Server {
	t.Helper()
	s := &Server{Kind: kind, Data: data, AccessKey: "AKIAAGENTRUNTEST", SecretKey: "a-secret-of-forty-letters-as-tests-have.", t: t,
		config: filepath.Join(data, ".config"), client: http.DefaultClient, output: &buffer{}, exited: make(chan struct{})}
	s3, ready, scheme := freePort(t), "", "http://"
	if s.ca = option(more, "--tls-cert"); s.ca != "" {
		scheme, s.client = "https://", trusting(t, s.ca)
	}
	s.Endpoint = scheme + s3
	switch kind {
	case AgentRun:
		api := option(more, "--listen")
		if api == "" {
			api = freePort(t)
		}
		s.API, ready = scheme+api, scheme+api+"/readyz"
		s.cmd = exec.Command(Binary(t), "up", "--data", filepath.Join(data, "store"), "--listen", api, "--s3-listen", s3)
		s.cmd.Args = append(s.cmd.Args, more...)
		s.cmd.Env = append(clean(filepath.Join(data, "home"), s.config),
			"AGENTRUN_ACCESS_KEY_ID="+s.AccessKey, "AGENTRUN_SECRET_ACCESS_KEY="+s.SecretKey)
	case Versitygw:
		ready = s.Endpoint + "/health"
		// The folder of versions may not have a name that begins another's path, or the server refuses to start.
		for _, dir := range []string{"store", "iam", "old"} {
			if err := os.MkdirAll(filepath.Join(data, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		s.cmd = exec.Command(Tool(t, "versitygw"), "--quiet", "--health", "/health", "--port", s3, "--access", s.AccessKey,
			"--secret", s.SecretKey, "--virtual-domain", "localhost:"+port(s3), "--iam-dir", filepath.Join(data, "iam"),
			"posix", "--versioning-dir", filepath.Join(data, "old"), filepath.Join(data, "store"))
		s.cmd.Env = clean(data, s.config)
	}
	for _, dir := range []string{filepath.Join(data, "home"), s.config} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	if err := s.cmd.Start(); err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	go func() {
		_ = s.cmd.Wait() // how it ended stands in ProcessState
		close(s.exited)
	}()
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			t.Logf("output of %s:\n%s", kind, tail(s.output.String(), 4000))
		}
	})
	s.await(ready)
	return s
}

// await waits until a GET of the URL is answered with 200. Starting takes well under a second; the limit is for
// machines that do much else.
func (s *Server) await(url string) {
	s.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		select {
		case <-s.exited:
			s.t.Fatalf("%s ended before it was ready: %v\n%s", s.Kind, s.cmd.ProcessState, s.output)
		default:
		}
		if resp, err := s.client.Get(url); err == nil {
			resp.Body.Close()
			// It announces itself once its context is written, which other commands find it by.
			if resp.StatusCode == http.StatusOK && (s.Kind != AgentRun || strings.Contains(s.Output(), "AgentRun is up")) {
				return
			}
		}
	}
	s.t.Fatalf("%s wasn't ready within 60 s at %s\n%s", s.Kind, url, s.output)
}

// Stop asks the server to end and waits; one that doesn't end cleanly fails the test. A stopped one stays stopped.
func (s *Server) Stop() {
	s.t.Helper()
	select {
	case <-s.exited:
		return
	default:
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Errorf("stopping %s: %v", s.Kind, err)
	}
	select {
	case <-s.exited:
		if s.Kind == AgentRun && s.cmd.ProcessState.ExitCode() != 0 {
			s.t.Errorf("agentrun up ended with %v after SIGTERM:\n%s", s.cmd.ProcessState, tail(s.output.String(), 2000))
		}
	case <-time.After(30 * time.Second):
		s.t.Errorf("%s didn't end within 30 s of SIGTERM", s.Kind)
		s.Kill()
	}
}

// Kill ends the server at once, as a power cut would for a process.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // it may have ended already
	<-s.exited
}

// Restart starts a server that has ended once more: the same data at the same addresses.
func (s *Server) Restart() {
	s.t.Helper()
	old := s.cmd
	s.cmd = exec.Command(old.Path, old.Args[1:]...)
	s.output, s.exited = &buffer{}, make(chan struct{})
	s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = old.Env, s.output, s.output
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("%s, once more: %v", s.Kind, err)
	}
	cmd, exited := s.cmd, s.exited
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	s.await(s.API + "/readyz")
}

// Output returns what the server has printed so far.
func (s *Server) Output() string { return s.output.String() }

// Host returns host and port of the S3 endpoint.
func (s *Server) Host() string {
	_, host, _ := strings.Cut(s.Endpoint, "://")
	return host
}

// Client returns a client that trusts the server.
func (s *Server) Client() *http.Client { return s.client }

// Get reads a URL of the server's own API.
func (s *Server) Get(path string) (status int, body string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.API+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, b.String()
}

// option returns the value of an option, or "".
func option(args []string, name string) string {
	if i := slices.Index(args, name); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// trusting returns a client that trusts the certificate in a file.
func trusting(t testing.TB, file string) *http.Client {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(b)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// given are the ports that freePort has returned.
var given struct {
	mu    sync.Mutex
	ports map[int]bool
}

// freePort returns a loopback address that nothing listens on. It is none of those that the system gives to connections, on Linux
// 32768 and above: one of these may be taken before a server comes to listen there.
func freePort(t testing.TB) string {
	t.Helper()
	given.mu.Lock()
	defer given.mu.Unlock()
	for range 1000 {
		port := 20000 + rand.IntN(12000)
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if given.ports[port] {
			continue
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			continue
		}
		l.Close()
		if given.ports == nil {
			given.ports = map[int]bool{}
		}
		given.ports[port] = true
		return addr
	}
	t.Fatal("no port is free")
	return ""
}

func port(addr string) string {
	_, p, _ := net.SplitHostPort(addr)
	return p
}

// tail returns the last n bytes of s.
func tail(s string, n int) string {
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}
