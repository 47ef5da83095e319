package ssh_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"

	"agentrun.dev/access"
	"agentrun.dev/blob/memory"
	"agentrun.dev/bucket"
	"agentrun.dev/engine"
	"agentrun.dev/engine/userspace"
	"agentrun.dev/kv"
	kvmemory "agentrun.dev/kv/memory"
	"agentrun.dev/node"
	"agentrun.dev/serve/ssh"
	"agentrun.dev/volume"
)

// host is a server over a store with a bucket "base".
type host struct {
	t     testing.TB
	kv    kv.Store
	store *bucket.Store
	node  *node.Node
	srv   *ssh.Server
	addr  string
	keys  *access.Keys
	file  string // of authorized keys
}

// start starts a server that change has changed the options of.
func start(t testing.TB, change func(*ssh.Options, *ssh.Access)) *host {
	t.Helper()
	h := &host{t: t, kv: kvmemory.New(), file: filepath.Join(t.TempDir(), "authorized_keys")}
	var err error
	if h.store, err = bucket.Open(t.Context(), bucket.Options{KV: h.kv, Blobs: memory.New(memory.Options{})}); err != nil {
		t.Fatal(err)
	}
	h.node = node.New(node.Options{Engine: userspace.NewEngine(userspace.EngineOptions{}), Store: h.store, Dir: t.TempDir(), UID: userspace.UID, GID: userspace.GID})
	if h.keys, err = access.New(access.Options{KV: h.kv, MasterKey: make([]byte, 32), RootID: "root", RootSecret: "root-secret"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"base", "other"} {
		h.put(name, "hello.txt", "hello from "+name+"\n")
	}
	a := &ssh.Access{Store: h.store, Keys: h.keys, File: h.file, Base: "base", Open: true, Named: true}
	key, err := ssh.HostKey(filepath.Join(t.TempDir(), "ssh", "host-key"))
	if err != nil {
		t.Fatal(err)
	}
	o := ssh.Options{Node: h.node, HostKey: key, Login: a.Login, Open: true}
	if os.Getenv("SSH_TEST_LOG") != "" {
		o.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if change != nil {
		change(&o, a)
	}
	h.srv = ssh.New(o)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.addr = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- h.srv.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(h.srv.Close(ctx), <-served, h.node.Close(ctx), h.store.Close()); err != nil {
			t.Error(err)
		}
	})
	return h
}

// put makes an object, and its bucket.
func (h *host) put(name, key, text string) {
	h.t.Helper()
	ctx := context.Background()
	if _, err := h.store.Create(ctx, name, bucket.CreateOptions{}); err != nil {
		h.t.Fatal(err)
	}
	sb, err := h.node.Create(ctx, node.Spec{Volumes: []volume.Spec{{Name: "b", Path: "/workspace", Bucket: name}}})
	if err != nil {
		h.t.Fatal(err)
	}
	defer sb.EndSoon(ctx)
	p, err := sb.Exec(ctx, engine.Cmd{Args: []string{"tee", key}, Stdin: strings.NewReader(text)})
	if err == nil {
		_, err = p.Wait(ctx)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// buckets lists the store's buckets, without those that the test made.
func (h *host) buckets() (names []string) {
	err := h.store.List(context.Background(), func(i *bucket.Info) error {
		if i.Name != "base" && i.Name != "other" {
			names = append(names, i.Name)
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return names
}

// gone waits until no bucket of a session is left.
func (h *host) gone() {
	h.t.Helper()
	for end := time.Now().Add(node.EndTimeout); len(h.buckets()) > 0; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("left behind: %v", h.buckets())
		}
	}
}

func (h *host) dial(user string, auth ...xssh.AuthMethod) (*xssh.Client, error) {
	return xssh.Dial("tcp", h.addr, &xssh.ClientConfig{User: user, Auth: auth, HostKeyCallback: xssh.InsecureIgnoreHostKey(), Timeout: 30 * time.Second})
}

func (h *host) connect(user string, auth ...xssh.AuthMethod) *xssh.Client {
	h.t.Helper()
	c, err := h.dial(user, auth...)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	return c
}

func session(t testing.TB, c *xssh.Client) *xssh.Session {
	t.Helper()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// run runs a command and returns what it printed on both streams, and how it ended.
func run(t testing.TB, c *xssh.Client, command, stdin string) (stdout, stderr string, err error) {
	t.Helper()
	s := session(t, c)
	var out, errOut bytes.Buffer
	s.Stdin, s.Stdout, s.Stderr = strings.NewReader(stdin), &out, &errOut
	err = s.Run(command)
	return out.String(), errOut.String(), err
}

// expect runs a command that must succeed without a word on standard error.
func expect(t testing.TB, c *xssh.Client, command, want string) {
	t.Helper()
	out, errOut, err := run(t, c, command, "")
	if out != want || errOut != "" || err != nil {
		t.Errorf("%s: %q, %q, %v; want %q", command, out, errOut, err, want)
	}
}

func TestExec(t *testing.T) {
	h := start(t, nil)
	c := h.connect("anybody")
	expect(t, c, "pwd; cat hello.txt", "/workspace\nhello from base\n")
	out, errOut, err := run(t, c, "cat; echo oops >&2; exit 42", "typed\n")
	var exit *xssh.ExitError
	if !errors.As(err, &exit) || exit.ExitStatus() != 42 || exit.Signal() != "" || out != "typed\n" || errOut != "oops\n" {
		t.Errorf("%q, %q, %v", out, errOut, err)
	}
	if _, _, err := run(t, c, "kill -TERM $$", ""); !errors.As(err, &exit) || exit.Signal() != "TERM" {
		t.Errorf("by a signal: %v", err)
	}
	if _, _, err := run(t, c, "nosuchcommand", ""); !errors.As(err, &exit) || exit.ExitStatus() != 127 {
		t.Errorf("no command: %v", err)
	}
	// All sessions of a connection are in one sandbox.
	expect(t, c, "echo mine > file; (sleep 100 >/dev/null 2>&1 & echo $! > /tmp/pid)", "")
	expect(t, c, "cat file; kill -0 $(cat /tmp/pid) && echo alive", "mine\nalive\n")
	// Another connection is in another.
	expect(t, h.connect("anybody"), "ls", "hello.txt\n")
	c.Close()
}

func TestEnvironment(t *testing.T) {
	h := start(t, nil)
	c := h.connect("x")
	s := session(t, c)
	for _, v := range [][2]string{{"LANG", "de_DE.UTF-8"}, {"LC_ALL", "C"}, {"MY_VAR", "a b"}} {
		if err := s.Setenv(v[0], v[1]); err != nil {
			t.Errorf("%v: %v", v, err)
		}
	}
	for _, name := range []string{"", "A=B", "1A", "A B", "A\x00"} {
		if err := s.Setenv(name, "x"); err == nil {
			t.Errorf("variable %q was set", name)
		}
	}
	if out, err := s.Output("echo $LANG,$LC_ALL,$MY_VAR,$HOME,$USER"); err != nil || string(out) != "de_DE.UTF-8,C,a b,/home/user,user\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestTerminal(t *testing.T) {
	h := start(t, nil)
	c := h.connect("x")
	s := session(t, c)
	if err := s.RequestPty("xterm-256color", 30, 100, xssh.TerminalModes{xssh.ECHO: 0, xssh.VINTR: 24, xssh.VERASE: 8, xssh.VSTATUS: 255, xssh.TTY_OP_OSPEED: 9600}); err != nil {
		t.Fatal(err)
	}
	in, _ := s.StdinPipe()
	out, _ := s.StdoutPipe()
	if err := s.Shell(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(time.Minute, func() { c.Close() }).Stop() // a screen that never shows what it should is told
	screen := &screen{t: t, r: out}
	screen.until("snapshot --help")
	io.WriteString(in, "stty -a | tr ';' '\\n' | cat\n")
	screen.until("intr = ^X\r\n")
	screen.until(" erase = ^H\r\n")
	screen.until("-echo ")
	io.WriteString(in, "stty intr ^C; stty size; tty; echo $TERM\n")
	screen.until("30 100\r\n/dev/pts/0\r\nxterm-256color\r\n")
	if err := s.WindowChange(41, 142); err != nil {
		t.Fatal(err)
	}
	// A request may be overtaken by what is typed after it.
	io.WriteString(in, "until [ \"$(stty size)\" = '41 142' ]; do sleep 0.01; done; echo re''sized\n")
	screen.until("resized\r\n")
	io.WriteString(in, "(echo wa''iting; exec sleep 1000)\n")
	screen.until("waiting\r\n")
	io.WriteString(in, "\x03echo st''atus $?\n")
	screen.until("status 130\r\n")
	io.WriteString(in, "exit 7\n")
	var exit *xssh.ExitError
	if err := s.Wait(); !errors.As(err, &exit) || exit.ExitStatus() != 7 {
		t.Errorf("exit: %v", err)
	}
}

// screen is what a terminal has shown.
type screen struct {
	t    testing.TB
	r    io.Reader
	seen []byte
}

// until reads up to a text, and forgets what came before.
func (s *screen) until(text string) {
	s.t.Helper()
	buf := make([]byte, 4096)
	for {
		if i := bytes.Index(s.seen, []byte(text)); i >= 0 {
			s.seen = s.seen[i+len(text):]
			return
		}
		n, err := s.r.Read(buf)
		s.seen = append(s.seen, buf[:n]...)
		if err != nil {
			s.t.Fatalf("%v before %q: %q", err, text, s.seen)
		}
	}
}

func TestSignals(t *testing.T) {
	h := start(t, nil)
	c := h.connect("x")
	s := session(t, c)
	out, _ := s.StdoutPipe()
	if err := s.Start("trap 'echo got it; exit 3' USR1; echo ready; while :; do sleep 0.1; done"); err != nil {
		t.Fatal(err)
	}
	screen := &screen{t: t, r: out}
	screen.until("ready\n")
	if err := s.Signal(xssh.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	screen.until("got it\n")
	var exit *xssh.ExitError
	if err := s.Wait(); !errors.As(err, &exit) || exit.ExitStatus() != 3 {
		t.Errorf("%v", err)
	}
	// A client that closes a session ends what runs in it.
	s2 := session(t, c)
	if err := s2.Start("echo $$ > /tmp/pid; sleep 1000"); err != nil {
		t.Fatal(err)
	}
	expect(t, c, "until [ -s /tmp/pid ]; do sleep 0.01; done", "")
	s2.Close()
	expect(t, c, "while kill -0 $(cat /tmp/pid) 2>/dev/null; do sleep 0.01; done; echo ended", "ended\n")
}

// TestUnread is about a client that closes what it would write output to, as with `ssh HOST yes | head -1`.
func TestUnread(t *testing.T) {
	h := start(t, nil)
	ch, requests, err := h.connect("x").OpenChannel("session", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ch.Close()
	if ok, err := ch.SendRequest("exec", true, xssh.Marshal(struct{ Command string }{"yes"})); err != nil || !ok {
		t.Fatalf("exec: %v, %v", ok, err)
	}
	if _, err := io.ReadFull(ch, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := ch.SendRequest("eow@openssh.com", false, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, ch); err != nil {
		t.Fatal(err)
	}
	var how struct {
		Name       string
		Core       bool
		Text, Lang string
	}
	if r := <-requests; r == nil || r.Type != "exit-signal" || xssh.Unmarshal(r.Payload, &how) != nil || how.Name != "PIPE" {
		t.Errorf("yes without a reader: %+v, %+v", r, how)
	}
}

func TestRefusals(t *testing.T) {
	h := start(t, nil)
	c := h.connect("x")
	if _, err := c.Dial("tcp", "127.0.0.1:22"); err == nil || !strings.Contains(err.Error(), "network policy") {
		t.Errorf("a connection was forwarded: %v", err)
	}
	if l, err := c.Listen("tcp", "127.0.0.1:0"); err == nil {
		t.Errorf("a port was forwarded: %v", l.Addr())
	}
	for _, kind := range []string{"x11", "auth-agent@openssh.com", "nonsense", "forwarded-tcpip", "tun@openssh.com"} {
		if _, _, err := c.OpenChannel(kind, nil); err == nil {
			t.Errorf("channel %s was opened", kind)
		}
	}
	s := session(t, c)
	var errOut bytes.Buffer
	s.Stderr = &errOut
	for _, kind := range []string{"auth-agent-req@openssh.com", "x11-req", "nonsense"} {
		if ok, err := s.SendRequest(kind, true, nil); ok || err != nil {
			t.Errorf("%s: %v, %v", kind, ok, err)
		}
	}
	if ok, _ := s.SendRequest("subsystem", true, xssh.Marshal(struct{ Name string }{"netconf"})); ok {
		t.Error("an unknown subsystem began")
	}
	if ok, _ := s.SendRequest("exec", true, []byte{0, 0, 1, 0, 'x'}); ok {
		t.Error("a malformed request was taken")
	}
	if err := s.Run("true"); err != nil || !strings.Contains(errOut.String(), "an agent isn't forwarded") || !strings.Contains(errOut.String(), "X11 isn't forwarded") {
		t.Errorf("%v, %q", err, errOut.String())
	}
}

// TestEnd checks that forks go with their connections, whatever runs in them, and stay if asked.
func TestEnd(t *testing.T) {
	h := start(t, nil)
	c := h.connect("x")
	if got := h.buckets(); len(got) != 0 {
		t.Errorf("a bucket before the first session: %v", got)
	}
	s := session(t, c)
	out, _ := s.StdoutPipe()
	if err := s.Start("trap '' HUP TERM; echo changed > hello.txt; echo on; while :; do sleep 1; done"); err != nil {
		t.Fatal(err)
	}
	(&screen{t: t, r: out}).until("on\n")
	if got := h.buckets(); len(got) != 1 || !strings.HasPrefix(got[0], "sandbox-") {
		t.Errorf("while it runs: %v", got)
	}
	// Nobody names a session's bucket.
	expect(t, h.connect(h.buckets()[0]), "cat hello.txt", "hello from base\n")
	c.Close()
	c2 := h.connect("x")
	k := session(t, c2)
	if err := k.Setenv(ssh.KeepVariable, "1"); err != nil {
		t.Fatal(err)
	}
	var errOut bytes.Buffer
	k.Stderr = &errOut
	if err := k.Run("echo new > kept.txt"); err != nil {
		t.Fatal(err)
	}
	kept := strings.TrimSpace(strings.TrimPrefix(errOut.String(), "agentrun: kept as bucket "))
	c2.Close()
	for end := time.Now().Add(node.EndTimeout); ; time.Sleep(2 * time.Millisecond) {
		if got := h.buckets(); len(h.node.List()) <= 1 && len(got) == 2 || time.Now().After(end) {
			break
		}
	}
	expect(t, h.connect(kept), "cat kept.txt", "new\n")
}

func TestNames(t *testing.T) {
	h := start(t, nil)
	expect(t, h.connect("other"), "cat hello.txt", "hello from other\n")
	expect(t, h.connect("no-such-bucket"), "cat hello.txt", "hello from base\n")
	expect(t, h.connect("../../etc"), "cat hello.txt", "hello from base\n")
	closed := start(t, func(_ *ssh.Options, a *ssh.Access) { a.Named, a.Base = false, "" })
	expect(t, closed.connect("other"), "ls -A; grep -c bucket:sandbox /proc/mounts", "1\n")
}

func signer(t *testing.T) xssh.Signer {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := xssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestKeys(t *testing.T) {
	h := start(t, func(o *ssh.Options, a *ssh.Access) { o.Open, a.Open, a.Named = false, false, false })
	info, err := h.store.Info(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	reader, err := h.keys.Create(t.Context(), access.NewKey{Grants: []access.Grant{{Bucket: info.ID, Name: "other"}}})
	if err != nil {
		t.Fatal(err)
	}
	owner, bound, stranger, refused := signer(t), signer(t), signer(t), signer(t)
	line := func(s xssh.Signer) string { return string(xssh.MarshalAuthorizedKey(s.PublicKey())) }
	text := "# a comment\n\n" + line(owner) + `access-key="` + reader.ID + `",no-port-forwarding ` + line(bound) + `from="10.0.0.0/8" ` + line(refused) + "garbage\n"
	if err := os.WriteFile(h.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, bad, err := ssh.CheckAuthorized(h.file); n != 2 || len(bad) != 2 || err != nil {
		t.Errorf("%d lines, bad %v, %v", n, bad, err)
	}
	no := func(what, user string, auth ...xssh.AuthMethod) {
		t.Helper()
		if c, err := h.dial(user, auth...); err == nil {
			c.Close()
			t.Errorf("%s was let in", what)
		}
	}
	no("nobody", "base")
	no("a stranger", "base", xssh.PublicKeys(stranger))
	no("a line with an unknown option", "base", xssh.PublicKeys(refused))
	no("a wrong secret", "base", xssh.Password(reader.ID+".wrong"))
	no("an empty password", "base", xssh.Password(""))
	const keepDenied = "may not keep"
	expect(t, h.connect("other", xssh.PublicKeys(owner)), "cat hello.txt", "hello from other\n")
	expect(t, h.connect("other", xssh.PublicKeys(bound)), "cat hello.txt", "hello from other\n")
	expect(t, h.connect("other", xssh.Password(reader.Token())), "cat hello.txt; echo x > y", "hello from other\n")
	expect(t, h.connect("x", xssh.Password("root.root-secret")), "cat hello.txt", "hello from base\n")
	h.put("secret", "hello.txt", "hidden\n")
	expect(t, h.connect("secret", xssh.PublicKeys(bound)), "cat hello.txt", "hello from base\n")
	expect(t, h.connect("secret", xssh.PublicKeys(owner)), "cat hello.txt", "hidden\n")
	s := session(t, h.connect("other", xssh.PublicKeys(bound)))
	s.Setenv(ssh.KeepVariable, "1")
	var errOut bytes.Buffer
	s.Stderr = &errOut
	if err := s.Run("true"); err != nil || !strings.Contains(errOut.String(), keepDenied) {
		t.Errorf("keep: %v, %q", err, errOut.String())
	}
	if err := h.keys.Revoke(t.Context(), reader.ID); err != nil {
		t.Fatal(err)
	}
	no("a revoked key", "other", xssh.PublicKeys(bound))
	no("a revoked key", "other", xssh.Password(reader.Token()))
}

func TestHostKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ssh", "host-key")
	a, err := ssh.HostKey(file)
	if err != nil {
		t.Fatal(err)
	}
	b, err := ssh.HostKey(file)
	if err != nil || !bytes.Equal(a.PublicKey().Marshal(), b.PublicKey().Marshal()) {
		t.Errorf("another key: %v", err)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	if list, _ := os.ReadDir(filepath.Dir(file)); len(list) != 1 {
		t.Errorf("left behind: %v", list)
	}
	os.Chmod(file, 0o644)
	if _, err := ssh.HostKey(file); err == nil {
		t.Error("a key that others can read was taken")
	}
	os.WriteFile(file, []byte("nonsense"), 0o600)
	os.Chmod(file, 0o600)
	if _, err := ssh.HostKey(file); err == nil {
		t.Error("nonsense was taken")
	}
}

// TestLimits checks that a server turns away what is too much, ends what is idle or silent, and who doesn't log in.
func TestLimits(t *testing.T) {
	h := start(t, func(o *ssh.Options, _ *ssh.Access) { o.Max, o.Handshake = 2, 200*time.Millisecond })
	a, b := h.connect("a"), h.connect("b")
	expect(t, a, "echo a", "a\n")
	expect(t, b, "echo b", "b\n")
	if c, err := h.dial("c"); err == nil {
		c.Close()
		t.Error("one connection too many")
	}
	b.Close()
	var c net.Conn
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var err error
		if c, err = net.Dial("tcp", h.addr); err != nil {
			t.Fatal(err)
		}
		c.SetReadDeadline(time.Now().Add(time.Minute))
		if n, _ := c.Read(make([]byte, 8)); n == 8 { // it has a place
			break
		}
		c.Close()
	}
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Errorf("one that doesn't log in: %v", err)
	}
	for i := range 65 {
		s, err := a.NewSession()
		if (err == nil) != (i < 64) {
			t.Fatalf("session %d: %v", i+1, err)
		}
		_ = s
	}

	idle := start(t, func(o *ssh.Options, _ *ssh.Access) { o.Idle, o.KeepAlive = 100*time.Millisecond, 20*time.Millisecond })
	s := session(t, idle.connect("x"))
	var errOut bytes.Buffer
	s.Stderr = &errOut
	if err := s.Run("sleep 1000"); err == nil || !strings.Contains(errOut.String(), "nothing was done") {
		t.Errorf("an idle session: %v, %q", err, errOut.String())
	}
	idle.gone()

	// A client that has stopped answering: what it receives nobody reads.
	silent := start(t, func(o *ssh.Options, _ *ssh.Access) { o.KeepAlive = 20 * time.Millisecond })
	raw, err := net.Dial("tcp", silent.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	gate := &gated{Conn: raw}
	conn, chans, reqs, err := xssh.NewClientConn(gate, silent.addr, &xssh.ClientConfig{User: "x", HostKeyCallback: xssh.InsecureIgnoreHostKey()})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, xssh.NewClient(conn, chans, reqs), "echo on", "on\n")
	gate.shut.Store(true)
	silent.gone()
}

// gated is a connection that takes nothing any more once it is shut.
type gated struct {
	net.Conn
	shut atomic.Bool
}

func (g *gated) Write(b []byte) (int, error) {
	if g.shut.Load() {
		return len(b), nil
	}
	return g.Conn.Write(b)
}

// TestClose checks that the end of a server is told to its sessions, and leaves nothing.
func TestClose(t *testing.T) {
	h := start(t, nil)
	s := session(t, h.connect("x"))
	var errOut bytes.Buffer
	s.Stderr = &errOut
	out, _ := s.StdoutPipe()
	if err := s.Start("trap '' TERM HUP; echo on; while :; do sleep 1; done"); err != nil {
		t.Fatal(err)
	}
	(&screen{t: t, r: out}).until("on\n")
	if err := h.srv.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Wait(); err == nil || !strings.Contains(errOut.String(), "the server is ending") {
		t.Errorf("%v, %q", err, errOut.String())
	}
	if got := h.buckets(); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
	if _, err := h.dial("x"); err == nil {
		t.Error("a connection after the end")
	}
}

// TestGarbage sends what no client sends.
func TestGarbage(t *testing.T) {
	h := start(t, func(o *ssh.Options, _ *ssh.Access) { o.Handshake = time.Second })
	for _, text := range []string{"", "GET / HTTP/1.1\r\n\r\n", "SSH-1.5-old\r\n", "SSH-2.0-x\r\n\xff\xff\xff\xff", strings.Repeat("x", 1<<20), "SSH-2.0-x\r\n\x00\x00\x00\x0c\x0a\x14" + strings.Repeat("\x00", 400)} {
		c, err := net.Dial("tcp", h.addr)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, text)
		c.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, c)
		c.Close()
	}
	expect(t, h.connect("x"), "echo on", "on\n")
}
