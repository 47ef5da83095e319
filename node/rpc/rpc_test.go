package rpc_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/node"
	"agentrun.dev/node/rpc"
	"agentrun.dev/volume"
)

// host is a node whose commands are functions of the test.
type host struct {
	node.Host
	exec    func(c engine.Cmd) (int, error)
	files   *files
	mu      sync.Mutex
	started []node.Start
	killed  chan struct{} // closed when a command's Wait was given up
}

func (h *host) Info(context.Context) (*node.Info, error) {
	return &node.Info{Name: "n1", Version: "v", Engines: map[string]string{"userspace": "", "oci": "no runc"}, Lacks: map[string][]string{"userspace": {"image", "x"}}, CPUs: 2, Memory: 1 << 33, Sandboxes: 3}, nil
}

func (h *host) Start(_ context.Context, s node.Start) (*node.Running, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.started = append(h.started, s)
	if s.Image == "missing@1" {
		return nil, errs.Msg(errs.NotFound, "start sandbox", s.ID, "no image missing@1").WithHint("build it")
	}
	return &node.Running{ID: s.ID, Took: time.Millisecond, Volumes: []node.Mounted{{Spec: volume.Spec{Name: "w", Path: "/workspace", Policy: volume.Snapshot}, Bucket: "b"}}}, nil
}

func (h *host) Build(_ context.Context, b node.Build, log io.Writer) error {
	for _, line := range b.Init {
		fmt.Fprintln(log, line)
	}
	return errs.Msg(errs.Invalid, "build", b.Image, "init line 2: status 1")
}

func (h *host) Exec(_ context.Context, _ string, c engine.Cmd) (engine.Process, error) {
	if len(c.Args) == 0 {
		return nil, errs.Msg(errs.Invalid, "exec", "", "no command")
	}
	p := &proc{signals: make(chan int, 8), sizes: make(chan engine.Size, 8), done: make(chan struct{}), killed: h.killed}
	go func() {
		if c.Args[0] == "wait-signal" {
			p.status = 128 + <-p.signals
		} else if c.Args[0] == "wait-size" {
			s := <-p.sizes
			fmt.Fprintf(c.Stdout, "%dx%d of %v", s.Cols, s.Rows, *c.TTY)
		} else if c.Args[0] != "forever" {
			p.status, p.err = h.exec(c)
		} else {
			return
		}
		close(p.done)
	}()
	return p, nil
}

func (h *host) Files(context.Context, string) (node.Files, error) { return h.files, nil }

func (h *host) Code(_ context.Context, _ string, c node.Code) (*node.CodeResult, error) {
	in, err := io.ReadAll(c.Stdin)
	fmt.Fprintf(c.Stdout, "%s got %q", c.Text, in)
	fmt.Fprint(c.Stderr, c.Env, c.Session)
	return &node.CodeResult{Language: c.Default, Status: 3, Result: "4"}, err
}

func (h *host) Dial(_ context.Context, _ string, port int) (net.Conn, error) {
	if port != 80 {
		return nil, errs.Msg(errs.Unavailable, "dial", "", "nothing listens")
	}
	near, far := net.Pipe()
	go func() {
		_, _ = io.Copy(far, far)
	}()
	return near, nil
}

func (h *host) Diff(_ context.Context, _, _ string, _ []string, yield func(api.FileChange) error) error {
	for i := range 5000 {
		if err := yield(api.FileChange{Path: fmt.Sprint("/f", i), Kind: "added", NewSize: int64(i)}); err != nil {
			return err
		}
	}
	return nil
}

type proc struct {
	signals      chan int
	sizes        chan engine.Size
	done, killed chan struct{}
	status       int
	err          error
}

func (p *proc) Pid() int { return 7 }
func (p *proc) Wait(ctx context.Context) (int, error) {
	select {
	case <-p.done:
		return p.status, p.err
	case <-ctx.Done():
		close(p.killed)
		return 0, errs.New(errs.Canceled, "exec", "", ctx.Err())
	}
}
func (p *proc) Signal(sig int) error       { p.signals <- sig; return nil }
func (p *proc) Resize(s engine.Size) error { p.sizes <- s; return nil }

type files struct {
	node.Files
	mu   sync.Mutex
	held map[string][]byte
}

func (f *files) Write(_ context.Context, path string, mode uint32, r io.Reader) (*api.FileInfo, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, errs.New(errs.Canceled, "write", path, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held[path] = b
	return &api.FileInfo{Path: path, Size: int64(len(b)), Mode: mode, Type: "file"}, nil
}

func (f *files) Open(_ context.Context, path string, offset int64) (io.ReadCloser, *api.FileInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b, ok := f.held[path]
	if !ok {
		return nil, nil, errs.Msg(errs.NotFound, "open", path, "no such file")
	}
	return io.NopCloser(bytes.NewReader(b[offset:])), &api.FileInfo{Path: path, Size: int64(len(b))}, nil
}

func (f *files) Watch(ctx context.Context, _ string, _ bool, ready func(), event func(api.FileEvent) error) error {
	ready()
	if err := event(api.FileEvent{Kind: "rename", Path: "/a", To: "/b"}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// authority makes bundles for all tests.
func authority(t testing.TB) *rpc.Authority {
	t.Helper()
	a, text, err := rpc.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rpc.ReadAuthority(text); err != nil {
		t.Fatal(err)
	}
	return a
}

func bundle(t testing.TB, a *rpc.Authority, name string) (tls.Certificate, *rpc.Authority) {
	t.Helper()
	text, err := a.Bundle(name)
	if err != nil {
		t.Fatal(err)
	}
	cert, read, got, err := rpc.ReadBundle(text)
	if err != nil || got != name {
		t.Fatalf("bundle of %q, error %v", got, err)
	}
	return cert, read
}

// serve listens with mutual TLS.
func serve(t testing.TB, h http.Handler, config *tls.Config) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(slog.NewTextHandler(&testLog{t}, nil), 0)}
	done := make(chan struct{})
	go func() {
		_ = srv.Serve(tls.NewListener(l, config))
		close(done)
	}()
	t.Cleanup(func() { srv.Close(); <-done })
	return l.Addr().String()
}

func pair(t testing.TB, h *host) *rpc.Client {
	a := authority(t)
	cert, pool := bundle(t, a, "n1")
	addr := serve(t, rpc.NewServer(h), rpc.TLS(cert, pool, rpc.ServiceName))
	cert, pool = bundle(t, a, rpc.ServiceName)
	c := rpc.NewClient(addr, "n1", rpc.ClientTLS(cert, pool))
	t.Cleanup(c.Close)
	return c
}

func TestUnary(t *testing.T) {
	h := &host{}
	c := pair(t, h)
	ctx := t.Context()
	i, err := c.Info(ctx)
	if err != nil || i.Name != "n1" || i.Engines["oci"] != "no runc" || !slices.Equal(i.Lacks["userspace"], []string{"image", "x"}) || i.Memory != 1<<33 {
		t.Errorf("info %+v, error %v", i, err)
	}
	in := node.Start{ID: "x", Epoch: 4, Image: "t@1", Volumes: []volume.Spec{{Name: "p", Path: "/private", Bucket: "private-a"}},
		Claim: &node.Claim{Env: []string{"A=b"}, Network: []string{"example.org:443"}, Budget: node.Budget{CPU: time.Second, Network: 9}}}
	r, err := c.Start(ctx, in)
	if err != nil || r.Took != time.Millisecond || r.Volumes[0].Bucket != "b" || r.Volumes[0].Spec.Policy != volume.Snapshot {
		t.Errorf("running %+v, error %v", r, err)
	}
	if got := fmt.Sprintf("%+v %+v", h.started[0].Volumes, *h.started[0].Claim); got != fmt.Sprintf("%+v %+v", in.Volumes, *in.Claim) || h.started[0].Epoch != 4 {
		t.Errorf("the node got %s", got)
	}
	_, err = c.Start(ctx, node.Start{ID: "y", Image: "missing@1"})
	if !errs.Is(err, errs.NotFound) || err.Error() != "start sandbox: y: no image missing@1" || errs.HintOf(err) != "build it" {
		t.Errorf("error %v (hint %q)", err, errs.HintOf(err))
	}
	if _, err = c.Start(ctx, node.Start{ID: "y", Volumes: []volume.Spec{{Name: "h", Host: "/etc"}}}); !errs.Is(err, errs.Unsupported) {
		t.Errorf("a folder of the host: error %v", err)
	}
	var log strings.Builder
	err = c.Build(ctx, node.Build{Image: "t@1", Init: []string{"one", "two"}}, &log)
	if log.String() != "one\ntwo\n" || !errs.Is(err, errs.Invalid) {
		t.Errorf("log %q, error %v", &log, err)
	}
	n := 0
	err = c.Diff(ctx, "a", "b", nil, func(f api.FileChange) error { n++; return nil })
	if n != 5000 || err != nil {
		t.Errorf("%d changes, error %v", n, err)
	}
	enough := errors.New("enough")
	if err = c.Diff(ctx, "a", "b", nil, func(api.FileChange) error { return enough }); err != enough {
		t.Errorf("error %v", err)
	}
}

func TestExec(t *testing.T) {
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<17) // 2 MiB: more than any window
	h := &host{killed: make(chan struct{})}
	h.exec = func(c engine.Cmd) (int, error) {
		switch c.Args[0] {
		case "cat":
			if _, err := io.Copy(c.Stdout, c.Stdin); err != nil {
				return 1, nil
			}
			fmt.Fprint(c.Stderr, c.Env, c.Dir)
			return 5, nil
		case "unread":
			return 0, nil
		}
		return 0, errs.Msg(errs.Limit, "exec", "x", "out of memory")
	}
	c := pair(t, h)
	ctx := t.Context()
	var out, problems bytes.Buffer
	p, err := c.Exec(ctx, "x", engine.Cmd{Args: []string{"cat"}, Env: []string{"A=1"}, Dir: "/d", Stdin: bytes.NewReader(big), Stdout: &out, Stderr: &problems})
	if err != nil {
		t.Fatal(err)
	}
	status, err := p.Wait(ctx)
	if status != 5 || err != nil || p.Pid() != 7 || !bytes.Equal(out.Bytes(), big) || problems.String() != "[A=1]/d" {
		t.Errorf("status %d, error %v, %d bytes, %q", status, err, out.Len(), &problems)
	}
	if _, err := c.Exec(ctx, "x", engine.Cmd{}); !errs.Is(err, errs.Invalid) {
		t.Errorf("no command: %v", err)
	}
	for _, tt := range []struct {
		name string
		do   func(engine.Process)
		tty  *engine.Size
		want string
	}{
		{"wait-signal", func(p engine.Process) { _ = p.Signal(15) }, nil, "143 <nil> "},
		{"wait-size", func(p engine.Process) { _ = p.Resize(engine.Size{Cols: 3, Rows: 4}) }, &engine.Size{Cols: 1, Rows: 2}, "0 <nil> 3x4 of {1 2}"},
		{"unread", func(engine.Process) {}, nil, "0 <nil> "},
		{"fails", func(engine.Process) {}, nil, "0 exec: x: out of memory "},
	} {
		out.Reset()
		endless, _ := io.Pipe() // input that never comes
		p, err := c.Exec(ctx, "x", engine.Cmd{Args: []string{tt.name}, Stdin: endless, Stdout: &out, TTY: tt.tty})
		if err != nil {
			t.Fatal(tt.name, err)
		}
		tt.do(p)
		done := make(chan struct{})
		go func() { time.Sleep(50 * time.Millisecond); endless.Close(); close(done) }()
		status, err := p.Wait(ctx)
		<-done
		if got := fmt.Sprint(status, " ", err, " ", out.String()); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	// Whoever gives up ends the command.
	p, err = c.Exec(ctx, "x", engine.Cmd{Args: []string{"forever"}})
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := p.Wait(short); !errs.Is(err, errs.Canceled) {
		t.Errorf("error %v", err)
	}
	<-h.killed
}

func TestCode(t *testing.T) {
	c := pair(t, &host{})
	var out, problems bytes.Buffer
	r, err := c.Code(t.Context(), "x", node.Code{Text: "1+3", Default: "python", Session: "s", Env: []string{"A=b"}, Stdin: strings.NewReader("in"), Stdout: &out, Stderr: &problems})
	if err != nil || r.Language != "python" || r.Status != 3 || r.Result != "4" || out.String() != `1+3 got "in"` || problems.String() != "[A=b]s" {
		t.Errorf("result %+v, error %v, %q, %q", r, err, &out, &problems)
	}
}

func TestDial(t *testing.T) {
	c := pair(t, &host{})
	if _, err := c.Dial(t.Context(), "x", 81); !errs.Is(err, errs.Unavailable) {
		t.Errorf("error %v", err)
	}
	conn, err := c.Dial(t.Context(), "x", 80)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	big := bytes.Repeat([]byte("x"), 1<<20)
	go func() { _, _ = conn.Write(big) }()
	got := make([]byte, len(big))
	if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, big) {
		t.Errorf("error %v", err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if _, err := conn.Read(got); err == nil {
		t.Error("a deadline that is over ends no read")
	}
}

func TestFiles(t *testing.T) {
	h := &host{files: &files{held: map[string][]byte{}}}
	c := pair(t, h)
	f, err := c.Files(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	big := bytes.Repeat([]byte("line\n"), 1<<18)
	i, err := f.Write(t.Context(), "/big", 0o600, bytes.NewReader(big))
	if err != nil || i.Size != int64(len(big)) || i.Mode != 0o600 {
		t.Fatalf("%+v, error %v", i, err)
	}
	body, i, err := f.Open(t.Context(), "/big", 5)
	if err != nil || i.Size != int64(len(big)) {
		t.Fatalf("%+v, error %v", i, err)
	}
	got, err := io.ReadAll(body)
	body.Close()
	if err != nil || !bytes.Equal(got, big[5:]) {
		t.Errorf("%d bytes, error %v", len(got), err)
	}
	if _, _, err := f.Open(t.Context(), "/none", 0); !errs.Is(err, errs.NotFound) {
		t.Errorf("error %v", err)
	}
	// A client whose own source breaks off writes nothing.
	broken := io.MultiReader(bytes.NewReader(big), breaks{})
	if _, err := f.Write(t.Context(), "/half", 0, broken); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v", err)
	}
	h.files.mu.Lock()
	if _, there := h.files.held["/half"]; there {
		t.Error("half a file was written")
	}
	h.files.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	ready := false
	err = f.Watch(ctx, "/", true, func() { ready = true }, func(e api.FileEvent) error {
		if e != (api.FileEvent{Kind: "rename", Path: "/a", To: "/b"}) {
			t.Errorf("event %+v", e)
		}
		cancel()
		return nil
	})
	if !ready || !errs.Is(err, errs.Canceled) {
		t.Errorf("ready %v, error %v", ready, err)
	}
}

type breaks struct{}

func (breaks) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestStrangers: nobody without a certificate of the authority is heard, nor one that isn't the service's.
func TestStrangers(t *testing.T) {
	a, other := authority(t), authority(t)
	cert, pool := bundle(t, a, "n1")
	addr := serve(t, rpc.NewServer(&host{}), rpc.TLS(cert, pool, rpc.ServiceName))
	nodeCert, _ := bundle(t, a, "n2")
	foreign, foreignPool := bundle(t, other, rpc.ServiceName)
	service, _ := bundle(t, a, rpc.ServiceName)
	for _, tt := range []struct {
		name   string
		config *tls.Config
		expect string
		ok     bool
	}{
		{"the service", rpc.ClientTLS(service, pool), "n1", true},
		{"another node", rpc.ClientTLS(nodeCert, pool), "n1", false},
		{"another authority's service", rpc.ClientTLS(foreign, pool), "n1", false},
		{"a service that knows another authority", rpc.ClientTLS(service, foreignPool), "n1", false},
		{"nobody", &tls.Config{RootCAs: rpc.ClientTLS(service, pool).RootCAs, NextProtos: []string{"h2"}}, "n1", false},
		{"the node isn't the one", rpc.ClientTLS(service, pool), "n3", false},
	} {
		c := rpc.NewClient(addr, tt.expect, tt.config)
		_, err := c.Info(t.Context())
		c.Close()
		if tt.ok != (err == nil) || err != nil && !errs.Is(err, errs.Unavailable) {
			t.Errorf("%s: error %v", tt.name, err)
		}
	}
}

// registrar forgets nodes when it is told to.
type registrar struct {
	mu     sync.Mutex
	joined []string
	known  bool
	seen   chan string
}

func (r *registrar) Join(ctx context.Context, name, address string, h node.Host, local bool) error {
	i, err := h.Info(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.joined, r.known = append(r.joined, fmt.Sprint(name, " ", i.Sandboxes, local)), true
	r.seen <- "join"
	return err
}

func (r *registrar) Heartbeat(_ context.Context, name string, i node.Info) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.known {
		return errs.Msg(errs.NotFound, "heartbeat", name, "unknown")
	}
	r.known = false
	r.seen <- "beat"
	return nil
}

func TestRegistry(t *testing.T) {
	a := authority(t)
	nodeCert, pool := bundle(t, a, "n1")
	service, _ := bundle(t, a, rpc.ServiceName)
	nodeAddr := serve(t, rpc.NewServer(&host{}), rpc.TLS(nodeCert, pool, rpc.ServiceName))
	r := &registrar{seen: make(chan string, 16)}
	addr := serve(t, rpc.NewRegistry(r, rpc.ClientTLS(service, pool)), rpc.TLS(service, pool))
	ctx, cancel := context.WithCancel(t.Context())
	m := &rpc.Member{Service: addr, Address: nodeAddr, Config: rpc.ClientTLS(nodeCert, pool), Host: &host{}, Log: slog.New(slog.DiscardHandler)}
	done := make(chan struct{})
	go func() { m.Run(ctx); close(done) }()
	for _, want := range []string{"join", "beat", "join"} { // it registers again when it is forgotten
		if got := <-r.seen; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	cancel()
	<-done
	if r.joined[0] != "n1 3 false" {
		t.Errorf("joined %q", r.joined)
	}
}

func TestBundleErrors(t *testing.T) {
	a := authority(t)
	whole, err := a.Bundle("n1")
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndex(whole, []byte("-----BEGIN"))
	for _, text := range []string{"", "no pem", string(whole[:last]), string(whole[last:])} {
		if _, _, _, err := rpc.ReadBundle([]byte(text)); !errs.Is(err, errs.Invalid) {
			t.Errorf("%.40q: error %v", text, err)
		}
	}
	if _, err := rpc.ReadAuthority(whole); !errs.Is(err, errs.Invalid) {
		t.Errorf("a node's bundle is no authority: %v", err)
	}
	_, known, _, _ := rpc.ReadBundle(whole)
	if _, err := known.Bundle("n2"); !errs.Is(err, errs.Denied) {
		t.Errorf("an authority without its key: %v", err)
	}
}

// testLog shows what a server has to say, where a test fails.
type testLog struct{ t testing.TB }

func (l *testLog) Write(b []byte) (int, error) {
	l.t.Logf("%s", b)
	return len(b), nil
}
