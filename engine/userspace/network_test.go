package userspace

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentrun.dev/command/services"
	"agentrun.dev/engine"
	"agentrun.dev/wasm/guests"
)

// TestLocalNetwork has servers and clients in a sandbox. Nothing of it goes outside, where whatever is asked for is refused or,
// if it were reached, told.
func TestLocalNetwork(t *testing.T) {
	var reached atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	s, err := New(t.Context(), Options{Hostname: "box", Services: &services.Services{
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) { // a policy that allows everything
			if host, _, _ := net.SplitHostPort(addr); host == "web.test" {
				addr = server.Listener.Addr().String()
			}
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop(t.Context())
	for _, c := range []struct{ script, out, errOut string }{
		{`printf 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi\n' | nc -l 8000 > request & up 8000; curl -s http://localhost:8000/path; wait; head -2 request`, "hi\nGET /path HTTP/1.1\r\nHost: localhost:8000\r\n", ""},
		{`echo answer | nc -l 8001 > got & up 8001; exec 3<>/dev/tcp/127.0.0.1/8001; echo question >&3; cat <&3; exec 3>&-; wait; cat got`, "answer\nquestion\n", ""},
		{`nc -l 8002 > got < /dev/null & up 8002; echo one > /dev/tcp/box/8002; wait; cat got`, "one\n", ""},
		{`nc -kl 8003 > all & up 8003; for i in 1 2 3; do echo $i | nc -N localhost 8003; done; kill %1; cat all`, "1\n2\n3\n", ""},
		{`nc -l ::1 8004 > got < /dev/null & up 8004; echo six | nc -N localhost 8004; wait; cat got`, "six\n", ""},
		{`echo x > /dev/tcp/localhost/1; echo $?`, "1\n", "bash: connect: Connection refused\nbash: line 1: /dev/tcp/localhost/1: Connection refused\n"},
		{`nc -l 8005 < /dev/null & up 8005; nc -l 8005; echo $?; nc -z localhost 8005; wait`, "1\n", "nc: Address already in use\n"},
		{`curl -sS http://0x7f000001:PORT/ http://127.1:PORT/ http://localhost:PORT/ http://[::ffff:127.0.0.1]:PORT/ 2>&1 | grep -c -i connect`, "4\n", ""},
		{`curl -s http://box:PORT/ http://0:PORT/ http://2130706433:PORT/ http://LOCALHOST.:PORT/; nc -z 127.0.0.1 PORT; echo > /dev/tcp/0/PORT; wget -q -O- http://x.localhost:PORT/; true`, "", "bash: connect: Connection refused\nbash: line 1: /dev/tcp/0/PORT: Connection refused\n"},
	} {
		script := `up() { until grep -qi ":$(printf %04x $1) 0*:0000 0A" /proc/net/tcp /proc/net/tcp6; do sleep 0.01; done; }; ` + strings.ReplaceAll(c.script, "PORT", port)
		out, errOut, _, err := run(t, s, bash(script))
		if out != c.out || errOut != strings.ReplaceAll(c.errOut, "PORT", port) || err != nil {
			t.Errorf("%s\nprints %q, %q, %v\nwant   %q, %q", script, out, errOut, err, c.out, c.errOut)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("a server of the host was reached %d times", n)
	}
	out, errOut, _, _ := run(t, s, bash(`curl -s http://web.test/; exec 3<>/dev/tcp/web.test/80; printf 'GET / HTTP/1.0\r\n\r\n' >&3; head -1 <&3`))
	if reached.Load() != 2 || !strings.HasPrefix(out, "HTTP/1.0 200 OK") {
		t.Errorf("outside: %d, %q, %q", reached.Load(), out, errOut)
	}
}

// TestPythonServer has a server of Python's, reached from inside and outside, and in a copy of the sandbox that was made while it ran.
func TestPythonServer(t *testing.T) {
	if !guests.Has("python.wasm") {
		t.Skip("NO GUESTS HERE: python.wasm is missing; 'make guests' builds it, and 'make test' does so first")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	g := NewGuests(GuestOptions{CacheDir: filepath.Join(cache, "agentrun-test", "wasm")})
	defer g.Close()
	e := NewEngine(EngineOptions{Commands: g})
	in, err := e.Boot(t.Context(), engine.Spec{Identity: engine.Identity{ID: "one"}})
	if err != nil {
		t.Fatal(err)
	}
	s := in.(*Sandbox)
	defer s.Stop(context.Background())
	out, errOut, _, err := run(t, s, bash(`echo hello > hello.txt; python3 -m http.server 8000 2> log & until curl -s localhost:8000/hello.txt; do sleep 0.05; done; kill %1; wait`))
	if out != "hello\n" || err != nil {
		t.Errorf("%q, %q, %v", out, errOut, err)
	}
	if _, err := s.Exec(t.Context(), Cmd{Args: []string{"bash", "-c", "python3 -m http.server 8000 2> log"}}); err != nil {
		t.Fatal(err)
	}
	get := func(s *Sandbox) {
		t.Helper()
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx, 8000) }}}
		resp, err := c.Get("http://sandbox/hello.txt")
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		if b, err := io.ReadAll(resp.Body); string(b) != "hello\n" || err != nil {
			t.Errorf("%q, %v", b, err)
		}
	}
	get(s)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	f, err := s.Freeze(ctx, engine.FreezeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	im, err := f.Capture(ctx)
	f.Thaw()
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	fork, err := im.Start(ctx, engine.Identity{ID: "two"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer fork.Stop(context.Background())
	get(s)
	get(fork.(*Sandbox))
	get(fork.(*Sandbox))
}
