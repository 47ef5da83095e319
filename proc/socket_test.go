package proc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// shouter is a Cloner: a server that sends back in capitals what it gets, one connection after the other; or a client, which
// sends a text piece by piece and reads what comes.
type shouter struct{ St shouterState }

type shouterState struct {
	Fd, Conn int
	Port     uint16
	Out      []byte
	Text     string // of a client: what is left to send
	Want     int    // bytes that it still waits for
	Got      []byte
	Err      string
}

func (s *shouter) Capture() (proc.State, error) {
	b, err := json.Marshal(s.St)
	return shouterSaved(b), err
}

type shouterSaved []byte

func (b shouterSaved) Resume(*proc.Process) (proc.Program, error) {
	s := &shouter{}
	return s, json.Unmarshal(b, &s.St)
}
func (b shouterSaved) Close() error                  { return nil }
func (b shouterSaved) Save() (string, []byte, error) { return "shouter", b, nil }

func (s *shouter) Run(p *proc.Process) int {
	if s.St.Text != "" || s.St.Want > 0 {
		return s.client(p)
	}
	return s.server(p)
}

func (s *shouter) server(p *proc.Process) int {
	for {
		if s.St.Conn == 0 {
			if err := p.Rest(func() (err error) { s.St.Conn, err = p.Accept(s.St.Fd, true); return err }); err != nil {
				return 1
			}
		}
		f, err := p.File(s.St.Conn)
		if err != nil {
			return 2
		}
		buf := make([]byte, 4096)
		for err == nil {
			if p.WriteAll(f, &s.St.Out) != nil {
				s.St.Out = nil
			}
			err = p.Rest(func() error {
				n, err := f.Read(buf)
				s.St.Out = bytes.ToUpper(buf[:n])
				return err
			})
		}
		f.Close()
		s.St.Conn = 0
	}
}

func (s *shouter) client(p *proc.Process) int {
	f, err := p.File(s.St.Conn)
	if err != nil {
		return 2
	}
	fail := func(err error) int {
		s.St.Err = err.Error()
		return 1
	}
	for s.St.Text != "" || s.St.Want > 0 {
		if s.St.Want == 0 {
			n := min(len(s.St.Text), 1000)
			s.St.Out, s.St.Text, s.St.Want = []byte(s.St.Text[:n]), s.St.Text[n:], n
		}
		if err := p.WriteAll(f, &s.St.Out); err != nil {
			return fail(err)
		}
		buf := make([]byte, s.St.Want)
		err := p.Rest(func() error {
			n, err := f.Read(buf)
			s.St.Got, s.St.Want = append(s.St.Got, buf[:n]...), s.St.Want-n
			return err
		})
		if err != nil {
			return fail(err)
		}
	}
	if r, ok := p.Sandbox().Services().(*results); ok {
		r.put(p.Pid(), string(s.St.Got))
	}
	return 0
}

// restoreShouter also knows nodes.
func restoreShouter(kind string, data []byte) (proc.State, error) {
	if kind == "shouter" {
		return shouterSaved(data), nil
	}
	return restoreNode(kind, data)
}

func addr(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

// process makes one that the test itself acts for.
func process(t testing.TB, s *proc.Sandbox) *proc.Process {
	t.Helper()
	p, err := s.NewProcess(proc.Root{Args: []string{"test"}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// listen makes a listening socket.
func listen(t testing.TB, p *proc.Process, at string) int {
	t.Helper()
	fd, err := p.Socket(addr(at).Addr().Is6())
	if err == nil {
		err = p.Bind(fd, addr(at))
	}
	if err == nil {
		err = p.Listen(fd, 5)
	}
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func dial(t testing.TB, p *proc.Process, to string) (int, error) {
	t.Helper()
	fd, err := p.Socket(addr(to).Addr().Is6())
	if err != nil {
		t.Fatal(err)
	}
	return fd, p.Connect(fd, addr(to), nil)
}

// file returns a descriptor's file.
func file(t testing.TB, p *proc.Process, fd int) vfs.File {
	t.Helper()
	f, err := p.File(fd)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func want(t testing.TB, what string, err, is error) {
	t.Helper()
	if !errors.Is(err, is) {
		t.Errorf("%s: %v, want %v", what, err, is)
	}
}

func TestSockets(t *testing.T) {
	s := sandboxWith(t, proc.Options{})
	p := process(t, s)
	p.SetSignal(proc.SIGPIPE, proc.Ignore)
	l := listen(t, p, "127.0.0.1:8000")
	if ready, _ := p.Poll(l, closedChan()); ready {
		t.Error("a connection is there although nobody connects")
	}
	_, err := p.Accept(l, false)
	want(t, "accept", err, syscall.EAGAIN)
	c, err := dial(t, p, "127.0.0.1:8000")
	if err != nil {
		t.Fatal(err)
	}
	if ready, err := p.Poll(l, nil); !ready || err != nil {
		t.Error(ready, err)
	}
	a, err := p.Accept(l, true)
	if err != nil {
		t.Fatal(err)
	}
	cl, cr, _ := p.SocketAddrs(c)
	al, ar, _ := p.SocketAddrs(a)
	if cl != ar || cr != al || al != addr("127.0.0.1:8000") || cl.Port() < 32768 {
		t.Errorf("addresses %v %v %v %v", cl, cr, al, ar)
	}
	cf, af := file(t, p, c), file(t, p, a)
	io.WriteString(cf, "question")
	buf := make([]byte, 100)
	if n, err := af.Read(buf); string(buf[:n]) != "question" || err != nil {
		t.Errorf("%q, %v", buf[:n], err)
	}
	// Half-close: the answer comes after the end of the question.
	if err := p.Shutdown(c, false, true); err != nil {
		t.Error(err)
	}
	_, err = cf.Write([]byte("x"))
	want(t, "write after shutdown", err, syscall.EPIPE)
	_, err = af.Read(buf)
	want(t, "end", err, io.EOF)
	io.WriteString(af, "answer")
	if n, err := cf.Read(buf); string(buf[:n]) != "answer" || err != nil {
		t.Errorf("%q, %v", buf[:n], err)
	}
	// Unread bytes at the close are a reset.
	io.WriteString(af, "late")
	cf.Close()
	_, err = af.Read(buf)
	want(t, "end of both", err, syscall.ECONNRESET)
	_, err = af.Write([]byte("x"))
	want(t, "write to nobody", err, syscall.ECONNRESET)
	if a, err := af.Attr(); err != nil || a.Mode&vfs.ModeType != vfs.ModeSocket {
		t.Errorf("%v, %v", a.Mode, err)
	}
	af.Close()
	p.CloseFd(l)
	_, err = dial(t, p, "127.0.0.1:8000")
	want(t, "connect to nobody", err, syscall.ECONNREFUSED)
}

func closedChan() <-chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}

func TestSocketErrors(t *testing.T) {
	s := sandboxWith(t, proc.Options{Limits: proc.Limits{Sockets: 8}})
	p := process(t, s)
	l := listen(t, p, "127.0.0.1:80") // everybody may
	fd, _ := p.Socket(false)
	want(t, "not connected", second(file(t, p, fd).Read(make([]byte, 1))), syscall.ENOTCONN)
	want(t, "not listening", second(p.Accept(fd, true)), syscall.EINVAL)
	want(t, "shutdown", p.Shutdown(fd, true, true), syscall.ENOTCONN)
	want(t, "in use", p.Bind(fd, addr("127.0.0.1:80")), syscall.EADDRINUSE)
	want(t, "in use by one of the addresses", p.Bind(fd, addr("0.0.0.0:80")), syscall.EADDRINUSE)
	p.SetSocketOption(fd, proc.ReuseAddr, true)
	want(t, "in use, which reuse doesn't change", p.Bind(fd, addr("127.0.0.1:80")), syscall.EADDRINUSE)
	want(t, "not here", p.Bind(fd, addr("10.0.0.1:80")), syscall.EADDRNOTAVAIL)
	want(t, "another family", p.Bind(fd, addr("[::1]:80")), syscall.EAFNOSUPPORT)
	want(t, "outside", p.Connect(fd, addr("93.184.216.34:80"), nil), syscall.ENETUNREACH)
	want(t, "bind", p.Bind(fd, addr("127.0.0.1:0")), nil)
	want(t, "bind twice", p.Bind(fd, addr("127.0.0.1:0")), syscall.EINVAL)
	if at, _, _ := p.SocketAddrs(fd); at.Port() < 32768 {
		t.Errorf("a free port: %v", at)
	}
	r, w, _ := p.Pipe()
	want(t, "no socket", p.Listen(p.Fd(r), 1), syscall.ENOTSOCK)
	w.Close()
	want(t, "no descriptor", p.Listen(999, 1), syscall.EBADF)
	c, _ := dial(t, p, "0.0.0.0:80")
	want(t, "twice", p.Connect(c, addr("127.0.0.1:80"), nil), syscall.EISCONN)
	want(t, "listen", p.Listen(c, 1), syscall.EINVAL)
	// Of 8 there are l, fd, c and the one that waits to be accepted.
	var last error
	for range 5 {
		_, last = p.Socket(false)
	}
	want(t, "one too many", last, syscall.ENFILE)
	p.CloseFd(l) // resets the one that waits
	_, err := file(t, p, c).Read(make([]byte, 1))
	want(t, "never accepted", err, syscall.ECONNRESET)
	want(t, "places are given back", second(p.Socket(false)), nil)
}

func second[T any](_ T, err error) error { return err }

func TestSocketFamilies(t *testing.T) {
	s := sandboxWith(t, proc.Options{Hostname: "box"})
	p := process(t, s)
	listen(t, p, "127.0.0.1:1")
	listen(t, p, "[::1]:1")
	listen(t, p, "0.0.0.0:2")
	listen(t, p, "[::]:3")
	for _, c := range []struct {
		to string
		ok bool
	}{{"127.0.0.1:1", true}, {"[::1]:1", true}, {"127.0.0.2:1", false}, {"127.0.0.1:2", true}, {"127.9.9.9:2", true}, {"[::1]:2", false}, {"[::1]:3", true},
		{"127.0.0.1:3", true}, {"[::ffff:127.0.0.1]:3", true}, {"127.0.0.1:4", false}} {
		fd, err := dial(t, p, c.to)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.to, err)
		}
		p.CloseFd(fd)
	}
	for host, local := range map[string]string{"localhost": "127.0.0.1", "LOCALHOST.": "127.0.0.1", "a.localhost": "127.0.0.1", "box": "127.0.0.1", "::": "::1", "[::1]": "::1", "0.0.0.0": "127.0.0.1", "0": "127.0.0.1",
		"127.1": "127.0.0.1", "2130706433": "127.0.0.1", "0x7f.1": "127.0.0.1", "0177.0.0.1": "127.0.0.1", "::ffff:127.0.0.1": "127.0.0.1", "::ffff:7f00:1": "127.0.0.1", "::1%lo": "::1", "ip6-localhost": "::1",
		"example.org": "", "localhost.example.org": "", "128.0.0.1": "", "10.0.0.1": "", "": "", "1.2.3.4.5": "", "127.0.0.1.example": "", "0x": "", "256.256": "", "4294967296": ""} {
		a, ok := s.Local(host)
		if ok != (local != "") || ok && a.String() != local {
			t.Errorf("%q: %v, %v", host, a, ok)
		}
	}
}

// TestSocketShare has two listeners of one port, and bound sockets that share an address before one of them listens.
func TestSocketShare(t *testing.T) {
	s := sandboxWith(t, proc.Options{})
	p := process(t, s)
	var fds [2]int
	for i := range fds {
		fds[i], _ = p.Socket(false)
		p.SetSocketOption(fds[i], proc.ReuseAddr, true)
		want(t, "bind", p.Bind(fds[i], addr("127.0.0.1:7")), nil)
	}
	want(t, "listen", p.Listen(fds[0], 1), nil)
	want(t, "listen too", p.Listen(fds[1], 1), syscall.EADDRINUSE)
	for i := range fds {
		fds[i], _ = p.Socket(false)
		p.SetSocketOption(fds[i], proc.ReusePort, true)
		want(t, "bind", p.Bind(fds[i], addr("0.0.0.0:8")), nil)
		want(t, "listen", p.Listen(fds[i], 10), nil)
	}
	for range 4 {
		if _, err := dial(t, p, "127.0.0.1:8"); err != nil {
			t.Fatal(err)
		}
	}
	for _, fd := range fds {
		for range 2 {
			want(t, "accept", second(p.Accept(fd, false)), nil)
		}
	}
}

// TestSocketPressure: a writer waits for a reader, and a client for a server whose queue is full.
func TestSocketPressure(t *testing.T) {
	s := sandboxWith(t, proc.Options{})
	p := process(t, s)
	l, _ := p.Socket(false)
	p.Bind(l, addr("127.0.0.1:9"))
	p.Listen(l, 0)
	c, err := dial(t, p, "127.0.0.1:9")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Dial(timeout(t, 20*time.Millisecond), 9); !errs.Is(err, errs.Canceled) {
		t.Errorf("a full queue: %v", err)
	}
	fd, _ := p.Socket(false)
	want(t, "until done", p.Connect(fd, addr("127.0.0.1:9"), closedChan()), syscall.ETIMEDOUT)
	a, _ := p.Accept(l, true)
	const size = 1 << 20
	written := make(chan int, 1)
	go func() {
		n, _ := file(t, p, c).Write(make([]byte, size))
		written <- n
	}()
	for got := 0; got < size; {
		if ready, _ := p.PollWrite(c, closedChan()); ready && got == 0 {
			continue
		}
		n, err := file(t, p, a).Read(make([]byte, 50000))
		if got += n; err != nil {
			t.Fatal(err)
		}
		if n > 64<<10 {
			t.Fatalf("%d bytes were kept", n)
		}
	}
	if n := <-written; n != size {
		t.Errorf("%d bytes", n)
	}
}

func timeout(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// TestDialOutside has a server in the sandbox and clients of net.Conn, from outside and as commands have them.
func TestDialOutside(t *testing.T) {
	s := sandboxWith(t, proc.Options{Hostname: "box"})
	ctx := timeout(t, 20*time.Second)
	if _, err := s.Dial(ctx, 8000); !errs.Is(err, errs.Unavailable) || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", err)
	}
	if _, err := s.Dial(ctx, 70000); !errs.Is(err, errs.Invalid) {
		t.Errorf("no port: %v", err)
	}
	for i, at := range []string{"127.0.0.1:8000", "0.0.0.0:8001", "[::1]:8002", "[::]:8003", "127.0.0.5:8004"} {
		p := process(t, s)
		p.Start(&shouter{shouterState{Fd: listen(t, p, at)}})
		c, err := s.Dial(ctx, 8000+i)
		if err != nil {
			t.Errorf("%s: %v", at, err)
			continue
		}
		converse(t, c)
	}
	for _, to := range []string{"localhost:8000", "127.0.0.1:8000", "box:8001", "localhost:8002", "[::1]:8003", "127.0.0.1:8003"} {
		c, local, err := s.DialLocal(ctx, "tcp", to)
		if !local || err != nil {
			t.Errorf("%s: %v, %v", to, local, err)
			continue
		}
		converse(t, c)
	}
	if _, local, _ := s.DialLocal(ctx, "tcp", "example.org:80"); local {
		t.Error("example.org is local")
	}
	if _, local, err := s.DialLocal(ctx, "tcp", "localhost:9999"); !local || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v, %v", local, err)
	}
}

func converse(t testing.TB, c net.Conn) {
	t.Helper()
	defer c.Close()
	fmt.Fprint(c, "hello")
	b := make([]byte, 5)
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "HELLO" {
		t.Errorf("%q, %v", b, err)
	}
	c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if _, err := c.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
	c.SetReadDeadline(time.Time{})
	fmt.Fprint(c, "again")
	c.(*proc.Conn).CloseWrite()
	if b, err := io.ReadAll(c); err != nil || string(b) != "AGAIN" {
		t.Errorf("%q, %v", b, err)
	}
	c.Close()
	if _, err := c.Read(b); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if c.Close() == nil {
		t.Error("closed twice")
	}
}

// TestSocketEnd: what a process has open is closed when it ends.
func TestSocketEnd(t *testing.T) {
	s := sandboxWith(t, proc.Options{})
	p := process(t, s)
	p.Start(&shouter{shouterState{Fd: listen(t, p, "127.0.0.1:8000")}})
	c, err := s.Dial(t.Context(), 8000)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "hello")
	io.ReadFull(c, make([]byte, 5)) // it was accepted
	p.Post(proc.SIGKILL)
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the server is gone: %v", err)
	}
	<-p.Done()
	if _, err := s.Dial(t.Context(), 8000); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens any more: %v", err)
	}
	q := process(t, s)
	listen(t, q, "127.0.0.1:8000")
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Dial(t.Context(), 8000); err == nil {
		t.Error("connected to a closed sandbox")
	}
}

// TestSocketFork copies a sandbox with a server, a client in the middle of its talk with another one, a connection that nobody has
// accepted yet, and one from outside.
func TestSocketFork(t *testing.T) {
	s := sandboxWith(t, proc.Options{})
	text := strings.Repeat("the quick brown fox ", 5000)
	server := process(t, s)
	server.Start(&shouter{shouterState{Fd: listen(t, server, "127.0.0.1:8000")}})
	free := process(t, s)
	freeFd := listen(t, free, "127.0.0.1:8001")
	client := process(t, s)
	conn, err := dial(t, client, "127.0.0.1:8000")
	if err != nil {
		t.Fatal(err)
	}
	waiting := process(t, s)
	waitingConn, err := dial(t, waiting, "127.0.0.1:8001")
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := s.Dial(t.Context(), 8001)
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	client.Start(&shouter{shouterState{Conn: conn, Text: text}})
	waiting.Start(&shouter{shouterState{Conn: waitingConn, Text: "ping"}})
	free.Start(&node{nodeState{Kind: "sleeper", Until: time.Now().Add(time.Hour)}})

	im := freeze(t, s)
	defer im.Close()
	var b bytes.Buffer
	if err := im.Save(&b, nil); err != nil {
		t.Fatal(err)
	}
	loaded, err := proc.LoadImage(&b, restoreShouter)
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Close()
	check := func(c *proc.Sandbox, res *results) {
		t.Helper()
		ended(t, c, client.Pid())
		res.mu.Lock()
		got := res.got[client.Pid()]
		res.mu.Unlock()
		if got != strings.ToUpper(text) {
			t.Errorf("the client got %d bytes, want %d", len(got), len(text))
		}
		if _, err := c.Dial(t.Context(), 8000); err != nil {
			t.Errorf("the listener: %v", err)
		}
		// In the copy somebody takes the sleeper's place.
		fork := c.Lookup(free.Pid())
		fd, err := fork.Accept(freeFd, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fork.Accept(freeFd, false); err != syscall.EAGAIN {
			t.Errorf("the connection from outside came along: %v", err)
		}
		buf := make([]byte, 10)
		n, _ := file(t, fork, fd).Read(buf)
		if string(buf[:n]) != "ping" {
			t.Errorf("%q", buf[:n])
		}
		file(t, fork, fd).Write([]byte("PONG"))
		ended(t, c, waiting.Pid())
	}
	res := &results{}
	check(start(t, im, clone(t, s), res), res)
	res = &results{}
	check(start(t, loaded, clone(t, s), res), res)
}

// TestSocketForkOutside: a connection with somebody outside is reset in the copy, and goes on in the original.
func TestSocketForkOutside(t *testing.T) {
	s := sandboxWith(t, proc.Options{})
	server := process(t, s)
	fd := listen(t, server, "127.0.0.1:8000")
	c, err := s.Dial(t.Context(), 8000)
	if err != nil {
		t.Fatal(err)
	}
	conn, _ := server.Accept(fd, true)
	server.Start(&shouter{shouterState{Fd: fd, Conn: conn}})
	im := freeze(t, s)
	defer im.Close()
	copied := start(t, im, clone(t, s), &results{})
	for _, in := range []*proc.Sandbox{s, copied} { // the copy's server has gone on to the next connection
		again, err := in.Dial(t.Context(), 8000)
		if in == copied && err == nil {
			converse(t, again)
		} else if err != nil {
			t.Error(err)
		}
	}
	converse(t, c)
}

// TestSocketRace has many clients at once, inside and outside.
func TestSocketRace(t *testing.T) {
	s := sandboxWith(t, proc.Options{})
	p := process(t, s)
	fd := listen(t, p, "0.0.0.0:8000")
	for range 4 {
		q, err := p.Fork()
		if err != nil {
			t.Fatal(err)
		}
		q.Start(&shouter{shouterState{Fd: fd}})
	}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range 10 {
				c, err := s.Dial(t.Context(), 8000)
				if err != nil {
					t.Error(err)
					return
				}
				text := strings.Repeat("x", i*3000)
				go func() {
					io.WriteString(c, text)
					c.(*proc.Conn).CloseWrite()
				}()
				if b, err := io.ReadAll(c); err != nil || len(b) != len(text) {
					t.Errorf("%d bytes, want %d: %v", len(b), len(text), err)
				}
				c.Close()
			}
		})
	}
	wg.Wait()
}

func TestProcNet(t *testing.T) {
	s := sandboxWith(t, proc.Options{})
	p := process(t, s)
	listen(t, p, "127.0.0.1:8000")
	listen(t, p, "[::1]:8000")
	if _, err := dial(t, p, "127.0.0.1:8000"); err != nil {
		t.Fatal(err)
	}
	for name, lines := range map[string][]string{"tcp": {": 0100007F:1F40 00000000:0000 0A 00000000:00000001 ", " 0100007F:1F40 01 ", ": 0100007F:1F40 0100007F:"}, "tcp6": {": 00000000000000000000000001000000:1F40 00000000000000000000000000000000:0000 0A "}} {
		f, err := p.Open("/proc/net/"+name, syscall.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(f)
		if err != nil || strings.Count(string(b), "\n") != len(lines)+1 {
			t.Errorf("%v\n%s", err, b)
		}
		for _, line := range lines {
			if !strings.Contains(string(b), line) {
				t.Errorf("%q isn't in\n%s", line, b)
			}
		}
	}
	if list, err := p.ReadDir("/proc/net"); err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := p.Stat("/proc/net/x"); err != syscall.ENOENT {
		t.Error(err)
	}
}

// TestServerStarts: a connection waits for a server that was just started, and is refused at once where nobody computes.
func TestServerStarts(t *testing.T) {
	s := sandboxWith(t, proc.Options{})
	p := process(t, s)
	begin := make(chan struct{})
	go func() {
		time.Sleep(20 * time.Millisecond)
		close(begin)
	}()
	server := process(t, s)
	server.Start(proc.Func(func(p *proc.Process) int {
		<-begin // computes, as far as the sandbox can see
		return (&shouter{shouterState{Fd: listen(t, p, "127.0.0.1:8000")}}).Run(p)
	}))
	if _, err := dial(t, p, "127.0.0.1:8000"); err != nil {
		t.Error(err)
	}
	_, err := dial(t, p, "127.0.0.1:8001")
	want(t, "nobody is about to listen", err, syscall.ECONNREFUSED)
	hog := process(t, s)
	hog.Start(proc.Func(func(p *proc.Process) int { <-p.Context().Done(); return 0 }))
	_, err = dial(t, p, "127.0.0.1:8001") // waits a little, but not for ever
	want(t, "a young one computes", err, syscall.ECONNREFUSED)
}
