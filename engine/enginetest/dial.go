package enginetest

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"agentrun.dev/engine"
	"agentrun.dev/errs"
)

// testDial connects to a server inside, of engines that are Dialers.
func testDial(t *testing.T, c Config) {
	e := c.New(t)
	w := boot(t, c, e, "server")
	d, ok := w.in.(engine.Dialer)
	if !ok {
		t.Skip("this engine's instances can't be connected to")
	}
	ctx, cancel := context.WithTimeout(t.Context(), c.limit(30*time.Second))
	defer cancel()
	for _, port := range []int{-1, 0, 65536} {
		if _, err := d.Dial(ctx, port); !errs.Is(err, errs.Invalid) {
			t.Errorf("port %d: %v", port, err)
		}
	}
	if _, err := d.Dial(ctx, 8000); !errs.Is(err, errs.Unavailable) {
		t.Errorf("nothing listens: %v", err)
	}
	for _, listen := range []string{"nc -l 8000", "nc -l 127.0.0.1 8000"} {
		p, err := w.in.Exec(ctx, engine.Cmd{Args: []string{"sh", "-c", "echo hello | " + listen + " > got"}})
		if err != nil {
			t.Fatal(err)
		}
		conn := dialSoon(ctx, t, d, 8000)
		io.WriteString(conn, "from outside\n")
		if half, ok := conn.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
			t.Error("it can't be closed by halves")
		}
		if b, err := io.ReadAll(conn); err != nil || string(b) != "hello\n" {
			t.Errorf("%q, %v", b, err)
		}
		conn.Close()
		if status, err := p.Wait(ctx); status != 0 || err != nil {
			t.Errorf("%s: status %d, %v", listen, status, err)
		}
		w.want("cat got", "from outside\n")
	}

	// Deadlines, and the end of the instance.
	p, err := w.in.Exec(ctx, engine.Cmd{Args: []string{"sh", "-c", "sleep 100 | nc -l 8000"}})
	if err != nil {
		t.Fatal(err)
	}
	conn := dialSoon(ctx, t, d, 8000)
	defer conn.Close()
	conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	var late net.Error
	if _, err := conn.Read(make([]byte, 1)); !errors.As(err, &late) || !late.Timeout() {
		t.Errorf("deadline: %v", err)
	}
	conn.SetReadDeadline(time.Time{})
	p.Signal(9)
	p.Wait(ctx)
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("the server is gone: %d, %v", n, err)
	}
}

// dialSoon waits for a server that is about to listen.
func dialSoon(ctx context.Context, t *testing.T, d engine.Dialer, port int) net.Conn {
	t.Helper()
	for {
		conn, err := d.Dial(ctx, port)
		if err == nil {
			return conn
		}
		if !errs.Is(err, errs.Unavailable) {
			t.Fatal(err)
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
