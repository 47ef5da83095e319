package guest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"agentrun.dev/errs"
	"agentrun.dev/guest"
	"agentrun.dev/guest/agent"
	"agentrun.dev/guest/wire"
)

// asked is what a program got that asked for a command.
type asked struct {
	out, errors string
	status      int
}

// asker is an agent that takes asks at a socket.
func asker(t *testing.T) (*host, string) {
	t.Helper()
	h := start(t, agent.Options{})
	path := filepath.Join(t.TempDir(), "ask")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go h.ServeAsks(l)
	return h, path
}

func ask(socket string, args ...string) <-chan asked {
	done := make(chan asked, 1)
	go func() {
		var out, errors bytes.Buffer
		status := agent.Ask(socket, args, "/work", &out, &errors)
		done <- asked{out.String(), errors.String(), status}
	}()
	return done
}

// listen hands on what an agent's programs ask for.
func listen(ctx context.Context, c *guest.Client) <-chan wire.Ask {
	list := make(chan wire.Ask, 100)
	go c.Asks(ctx, func(q wire.Ask) { list <- q })
	return list
}

func next(t *testing.T, ctx context.Context, list <-chan wire.Ask) wire.Ask {
	t.Helper()
	select {
	case q := <-list:
		return q
	case <-ctx.Done():
		t.Fatal("nobody asks")
		panic("not reached")
	}
}

func TestAsk(t *testing.T) {
	h, socket := asker(t)
	c, ctx := h.dial(t), within(t)
	list := listen(ctx, c)
	want := strings.Repeat("a long answer\n", 50_000)
	done := ask(socket, "fork", "-n", "3")
	q := next(t, ctx, list)
	if got := fmt.Sprint(q); got != "{1 [fork -n 3] /work false}" {
		t.Errorf("asked: %s", got)
	}
	err := c.Reply(ctx, q.ID, func(_ context.Context, out, errors io.Writer) int {
		io.WriteString(out, want)
		io.WriteString(errors, "and a word")
		return 7
	})
	if got := <-done; err != nil || got.out != want || got.errors != "and a word" || got.status != 7 {
		t.Errorf("%v: %d bytes, %q, status %d", err, len(got.out), got.errors, got.status)
	}
	if err := c.Reply(ctx, q.ID, func(context.Context, io.Writer, io.Writer) int { return 0 }); !errs.Is(err, errs.NotFound) {
		t.Errorf("replied to twice: %v", err)
	}
}

// TestAskAgain breaks the connection on which a command was asked for, as the fork of a machine does.
func TestAskAgain(t *testing.T) {
	h, socket := asker(t)
	first, ctx := h.dial(t), within(t)
	done := ask(socket, "fork")
	q := next(t, ctx, listen(ctx, first))
	replying := make(chan error)
	go func() {
		replying <- first.Reply(ctx, q.ID, func(ctx context.Context, out, _ io.Writer) int {
			first.Close()
			<-ctx.Done()
			return 1
		})
	}()
	if err := <-replying; err == nil {
		t.Error("a reply over a broken connection succeeds")
	}
	second := h.dial(t)
	again := next(t, ctx, listen(ctx, second))
	if !again.Again || again.ID != q.ID {
		t.Errorf("asked again: %+v, at first %+v", again, q)
	}
	err := second.Reply(ctx, again.ID, func(_ context.Context, out, _ io.Writer) int { io.WriteString(out, "child 1\n"); return 0 })
	if got := <-done; err != nil || got != (asked{"child 1\n", "", 0}) {
		t.Errorf("%v: %+v", err, got)
	}
}

// TestAskListeners has two connections be told: only the later one is, once.
func TestAskListeners(t *testing.T) {
	h, socket := asker(t)
	ctx := within(t)
	first, ended := h.dial(t), make(chan error, 1)
	begun := make(chan struct{}, 1)
	go func() { ended <- first.Asks(ctx, func(wire.Ask) { begun <- struct{}{} }) }()
	held := ask(socket, "fork")
	<-begun
	c := h.dial(t)
	list := listen(ctx, c)
	q := next(t, ctx, list)
	if err := <-ended; !errs.Is(err, errs.Canceled) || !q.Again {
		t.Errorf("the first is told: %v; the second of %+v", err, q)
	}
	if err := c.Reply(ctx, q.ID, func(context.Context, io.Writer, io.Writer) int { return 3 }); err != nil {
		t.Error(err)
	}
	if got := <-held; got.status != 3 || len(list) != 0 {
		t.Errorf("%+v, and told of %d more", got, len(list))
	}
}

// TestAskGone ends the program that asks, and then the host's patience with one.
func TestAskGone(t *testing.T) {
	h, socket := asker(t)
	c, ctx := h.dial(t), within(t)
	list := listen(ctx, c)
	nc, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(nc, `{"args":["fork"],"dir":"/"}`)
	q := next(t, ctx, list)
	err = c.Reply(ctx, q.ID, func(run context.Context, _, _ io.Writer) int {
		nc.Close()
		<-run.Done()
		return 0
	})
	if !errs.Is(err, errs.Canceled) && !errs.Is(err, errs.NotFound) || ctx.Err() != nil {
		t.Errorf("the program ended: %v", err)
	}

	done := ask(socket, "snapshot")
	q = next(t, ctx, list)
	short, cancel := context.WithCancel(ctx)
	err = c.Reply(short, q.ID, func(run context.Context, _, _ io.Writer) int {
		cancel()
		<-run.Done()
		return 0
	})
	if got := <-done; err == nil || got.status != 1 || !strings.Contains(got.errors, "gave up") {
		t.Errorf("the host gave up: %v, %+v", err, got)
	}
}

func TestAskRefused(t *testing.T) {
	h, socket := asker(t)
	ctx := within(t)
	for _, line := range []string{"{}\n", "no JSON\n", strings.Repeat("x", 40<<10) + "\n"} {
		nc, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		go io.WriteString(nc, line)
		b, _ := io.ReadAll(nc)
		nc.Close()
		if !bytes.HasSuffix(b, []byte{255, 1, 0, 0, 0, 1}) {
			t.Errorf("%.20q: %q", line, b)
		}
	}
	list := listen(ctx, h.dial(t))
	var all []<-chan asked
	for range 32 {
		all = append(all, ask(socket, "fork"))
		next(t, ctx, list)
	}
	if got := <-ask(socket, "fork"); got.status != 1 || !strings.Contains(got.errors, "more than 32 at once") {
		t.Errorf("one too many: %+v", got)
	}
	if got := <-ask(filepath.Join(t.TempDir(), "none"), "merge"); got.status != 1 || !strings.HasPrefix(got.errors, "merge: ") {
		t.Errorf("no socket: %+v", got)
	}
	_ = all

	silent := make([]net.Conn, 0, 64)
	defer func() {
		for _, nc := range silent {
			nc.Close()
		}
	}()
	for range cap(silent) {
		nc, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		silent = append(silent, nc)
	}
	if got := <-ask(socket, "fork"); got.status != 1 || !strings.Contains(got.errors, "more than 64 at once") {
		t.Errorf("too many programs: %+v", got)
	}
}
