package rest_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/errs"
	"agentrun.dev/serve/rest"
)

// programs is a Runner whose commands are functions.
type programs map[string]func(ctx context.Context, c rest.Command) (int, error)

func (p programs) Run(ctx context.Context, c rest.Command) (int, error) {
	f, ok := p[c.Args[0]]
	if !ok {
		return 127, nil
	}
	return f(ctx, c)
}

func testPrograms() programs {
	return programs{
		"cat": func(_ context.Context, c rest.Command) (int, error) {
			_, err := io.Copy(c.Stdout, c.Stdin)
			return 0, err
		},
		"both": func(_ context.Context, c rest.Command) (int, error) {
			io.WriteString(c.Stdout, "out")
			io.WriteString(c.Stderr, "err")
			return 3, nil
		},
		"show": func(_ context.Context, c rest.Command) (int, error) {
			for _, m := range c.Mounts {
				mode := "rw"
				if m.ReadOnly {
					mode = "ro"
				}
				io.WriteString(c.Stdout, m.Bucket.Name+" "+m.Path+" "+mode+"\n")
			}
			io.WriteString(c.Stdout, c.Dir+" "+strings.Join(c.Env, ",")+" "+strings.Join(c.Args, ",")+"\n")
			return 0, nil
		},
		"wait": func(ctx context.Context, c rest.Command) (int, error) {
			io.WriteString(c.Stdout, "waiting")
			select {
			case <-ctx.Done():
				return 137, nil
			case s := <-c.Signals:
				return 128 + s, nil
			}
		},
		"deaf": func(_ context.Context, c rest.Command) (int, error) { return 0, nil },
		"fail": func(_ context.Context, c rest.Command) (int, error) {
			return 0, errs.Msg(errs.Unavailable, "run", "fail", "no room")
		},
		"flood": func(_ context.Context, c rest.Command) (int, error) {
			b := bytes.Repeat([]byte("x"), 1<<20)
			for range 8 {
				if _, err := c.Stdout.Write(b); err != nil {
					return 141, nil
				}
			}
			return 0, nil
		},
	}
}

func execOf(args ...string) api.Exec {
	return api.Exec{Args: args, Mounts: []api.Mount{{Bucket: "mine"}}}
}

func TestExec(t *testing.T) {
	w := newWorld(t, rest.Options{Runner: testPrograms()})
	w.create("mine", "other")
	var out, errOut bytes.Buffer
	status, err := w.Exec(t.Context(), execOf("both"), client.Streams{Stdout: &out, Stderr: &errOut})
	if status != 3 || err != nil || out.String() != "out" || errOut.String() != "err" {
		t.Errorf("both: %d, %v, %q, %q", status, err, &out, &errOut)
	}
	if status, err := w.Exec(t.Context(), execOf("nothing"), client.Streams{}); status != 127 || err != nil {
		t.Errorf("nothing: %d, %v", status, err)
	}
	if _, err := w.Exec(t.Context(), execOf("fail"), client.Streams{}); !errs.Is(err, errs.Unavailable) || err.Error() != "run: fail: no room" {
		t.Errorf("fail: %v", err)
	}
	out.Reset()
	e := api.Exec{Args: []string{"show", "a b"}, Env: []string{"A=1", "B="}, Dir: "/tmp", Mounts: []api.Mount{
		{Bucket: "mine"}, {Bucket: "other"}, {Bucket: "other", Path: "/data/../in/", ReadOnly: true}}}
	if status, err := w.Exec(t.Context(), e, client.Streams{Stdout: &out}); status != 0 || err != nil ||
		out.String() != "mine /workspace rw\nother /other rw\nother /in ro\n/tmp A=1,B= show,a b\n" {
		t.Errorf("show: %d, %v, %q", status, err, &out)
	}
}

// TestExecInput sends more than the window holds, in odd pieces, and gets it back whole; and more than a command reads.
func TestExecInput(t *testing.T) {
	w := newWorld(t, rest.Options{Runner: testPrograms()})
	w.create("mine")
	in := make([]byte, 5*api.StdinWindow+12345)
	rand.Read(in)
	var out bytes.Buffer
	status, err := w.Exec(t.Context(), execOf("cat"), client.Streams{Stdin: bytes.NewReader(in), Stdout: &out})
	if status != 0 || err != nil || !bytes.Equal(out.Bytes(), in) {
		t.Errorf("cat: %d, %v, %d of %d bytes", status, err, out.Len(), len(in))
	}
	out.Reset()
	status, err = w.Exec(t.Context(), execOf("flood"), client.Streams{Stdout: &out})
	if status != 0 || err != nil || out.Len() != 8<<20 {
		t.Errorf("flood: %d, %v, %d bytes", status, err, out.Len())
	}
	status, err = w.Exec(t.Context(), execOf("deaf"), client.Streams{Stdin: bytes.NewReader(in)})
	if status != 0 || err != nil {
		t.Errorf("deaf: %d, %v", status, err)
	}
	// A reader that never yields anything doesn't hold up the end.
	r, pw := io.Pipe()
	defer pw.Close()
	if status, err := w.Exec(t.Context(), execOf("deaf"), client.Streams{Stdin: r}); status != 0 || err != nil {
		t.Errorf("deaf with a silent input: %d, %v", status, err)
	}
	status, err = w.Exec(t.Context(), execOf("flood"), client.Streams{Stdout: writerFunc(func([]byte) (int, error) { return 0, io.ErrClosedPipe })})
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("flood to a closed output: %d, %v", status, err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestExecSignals(t *testing.T) {
	w := newWorld(t, rest.Options{Runner: testPrograms()})
	w.create("mine")
	for name, want := range map[string]int{"TERM": 143, "INT": 130, "SIGKILL": 137} {
		signals := make(chan string, 1)
		out := writerFunc(func(b []byte) (int, error) { signals <- name; return len(b), nil })
		if status, err := w.Exec(t.Context(), execOf("wait"), client.Streams{Stdout: out, Signals: signals}); status != want || err != nil {
			t.Errorf("%s: %d, %v", name, status, err)
		}
	}
}

// TestExecEnds checks the three ways in which a command is ended: the client goes, the time is over, the server has
// enough of them.
func TestExecEnds(t *testing.T) {
	ended := make(chan error, 1)
	started := make(chan struct{}, 1)
	p := programs{"wait": func(ctx context.Context, c rest.Command) (int, error) {
		started <- struct{}{}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return 137, nil
	}}
	w := newWorld(t, rest.Options{Runner: p, MaxExecs: 1})
	w.create("mine")
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		if _, err := w.Exec(ctx, execOf("wait"), client.Streams{}); !errs.Is(err, errs.Canceled) {
			t.Errorf("a cancelled exec: %v", err)
		}
	})
	<-started
	if _, err := w.Exec(t.Context(), execOf("wait"), client.Streams{}); !errs.Is(err, errs.Limit) {
		t.Errorf("one too many: %v", err)
	}
	cancel()
	done.Wait()
	if err := <-ended; !errs.Is(err, errs.Canceled) {
		t.Errorf("the command ended with %v", err)
	}
	e := execOf("wait")
	e.Timeout = 1
	for { // the first one's place is given back a moment after its client has gone
		_, err := w.Exec(t.Context(), e, client.Streams{})
		if errs.Is(err, errs.Limit) && !strings.Contains(err.Error(), "ended after") {
			time.Sleep(time.Millisecond)
			continue
		}
		if !errs.Is(err, errs.Limit) || !strings.Contains(err.Error(), "ended after 1s") {
			t.Errorf("timeout: %v", err)
		}
		break
	}
}

func TestExecRefused(t *testing.T) {
	w := newWorld(t, rest.Options{Runner: testPrograms()})
	w.create("mine", "other")
	ro, rw := w.as(w.key("mine:ro").APIKey), w.as(w.key("mine:rw").APIKey)
	if _, err := ro.Exec(t.Context(), execOf("show"), client.Streams{}); !errs.Is(err, errs.Denied) {
		t.Errorf("a read-only key wrote: %v", err)
	}
	if _, err := ro.Exec(t.Context(), api.Exec{Args: []string{"show"}, Mounts: []api.Mount{{Bucket: "mine", ReadOnly: true}}}, client.Streams{}); err != nil {
		t.Errorf("a read-only key couldn't read: %v", err)
	}
	forks := api.Exec{Args: []string{"show"}, Mounts: []api.Mount{{Bucket: "mine", Fork: true}}}
	if _, err := ro.Exec(t.Context(), forks, client.Streams{}); err != nil {
		t.Errorf("a read-only key got no fork for a moment: %v", err)
	}
	forks.Keep = true
	if _, err := rw.Exec(t.Context(), forks, client.Streams{}); !errs.Is(err, errs.Denied) {
		t.Errorf("a key kept a fork: %v", err)
	}
	if _, err := ro.Exec(t.Context(), api.Exec{Args: []string{"show"}, Mounts: []api.Mount{{Bucket: "other@x", Fork: true}}}, client.Streams{}); !errs.Is(err, errs.Denied) {
		t.Errorf("a key forked another bucket: %v", err)
	}
	if _, err := rw.Exec(t.Context(), execOf("show"), client.Streams{}); err != nil {
		t.Errorf("a key couldn't run in its bucket: %v", err)
	}
	if _, err := rw.Exec(t.Context(), api.Exec{Args: []string{"show"}, Mounts: []api.Mount{{Bucket: "mine"}, {Bucket: "other", ReadOnly: true}}}, client.Streams{}); !errs.Is(err, errs.Denied) {
		t.Errorf("a key reached another bucket: %v", err)
	}
	if _, err := w.as("").Exec(t.Context(), execOf("show"), client.Streams{}); !errs.Is(err, errs.Unauthorized) {
		t.Errorf("without a key: %v", err)
	}
	mine := []api.Mount{{Bucket: "mine"}}
	for name, e := range map[string]api.Exec{
		"no command":        {Mounts: mine},
		"empty command":     {Args: []string{""}, Mounts: mine},
		"no bucket":         {Args: []string{"show"}},
		"NUL":               {Args: []string{"show", "a\x00b"}, Mounts: mine},
		"no name":           {Args: []string{"show"}, Env: []string{"=x"}, Mounts: mine},
		"relative dir":      {Args: []string{"show"}, Dir: "here", Mounts: mine},
		"relative path":     {Args: []string{"show"}, Mounts: []api.Mount{{Bucket: "mine", Path: "here"}}},
		"root":              {Args: []string{"show"}, Mounts: []api.Mount{{Bucket: "mine", Path: "/x/.."}}},
		"over /proc":        {Args: []string{"show"}, Mounts: []api.Mount{{Bucket: "mine", Path: "/proc"}}},
		"twice at one path": {Args: []string{"show"}, Mounts: []api.Mount{{Bucket: "mine"}, {Bucket: "other", Path: "/workspace/"}}},
		"negative timeout":  {Args: []string{"show"}, Timeout: -1, Mounts: mine},
		"too many":          {Args: []string{"show"}, Mounts: make([]api.Mount, api.MaxMounts+1)},
	} {
		if _, err := w.Exec(t.Context(), e, client.Streams{}); !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := w.Exec(t.Context(), api.Exec{Args: []string{"show", strings.Repeat("x", api.MaxArgs)}, Mounts: mine}, client.Streams{}); !errs.Is(err, errs.TooLarge) {
		t.Errorf("long arguments: %v", err)
	}
	if _, err := w.Exec(t.Context(), api.Exec{Args: []string{"show"}, Mounts: []api.Mount{{Bucket: "ghost"}}}, client.Streams{}); !errs.Is(err, errs.NotFound) {
		t.Errorf("a missing bucket: %v", err)
	}
	if status, p := w.send("GET", "/v1/exec", rootKey, "", ""); status != 400 || !strings.Contains(p.Detail, "want a WebSocket") {
		t.Errorf("without a WebSocket: %d %s", status, p.Detail)
	}
}

// TestExecProtocol speaks the protocol by hand, and breaks its rules.
func TestExecProtocol(t *testing.T) {
	w := newWorld(t, rest.Options{Runner: testPrograms()})
	w.create("mine")
	hello := `{"args":["wait"],"mounts":[{"bucket":"mine"}]}`
	frame := func(n int) string { return "\x00" + strings.Repeat("x", n) }
	for name, c := range map[string]struct {
		first  string
		binary bool
		rest   []string // binary frames, or text if they begin with '{'
		says   string
	}{
		"binary first":      {hello, true, nil, "the first message"},
		"not JSON":          {"hello", false, nil, "invalid character"},
		"unknown field":     {`{"args":["wait"],"shell":true}`, false, nil, `unknown field \"shell\"`},
		"unknown control":   {hello, false, []string{`{"bell":1}`}, `unknown field \"bell\"`},
		"unknown signal":    {hello, false, []string{`{"signal":"STOP"}`}, "no such signal"},
		"another stream":    {hello, false, []string{"\x01x"}, "malformed frame"},
		"an empty frame":    {hello, false, []string{frame(0), `{"signal":"TERM"}`}, `"exit":143`},
		"a huge frame":      {hello, false, []string{frame(api.MaxFrame + 1)}, "malformed frame"},
		"beyond the window": {hello, false, []string{frame(api.MaxFrame), frame(api.MaxFrame), frame(api.MaxFrame), frame(api.MaxFrame), frame(1)}, "than the window allows"},
		"after the end":     {hello, false, []string{`{"eof":true}`, frame(1)}, "than the window allows"},
		"end twice":         {hello, false, []string{`{"eof":true}`, `{"eof":true}`, `{"signal":"INT"}`}, `"exit":130`},
	} {
		conn := w.dial(t, api.ExecProtocol)
		typ := websocket.MessageText
		if c.binary {
			typ = websocket.MessageBinary
		}
		if err := conn.Write(t.Context(), typ, []byte(c.first)); err != nil {
			t.Fatal(err)
		}
		for _, m := range c.rest {
			typ := websocket.MessageBinary
			if m[0] == '{' {
				typ = websocket.MessageText
			}
			if err := conn.Write(t.Context(), typ, []byte(m)); err != nil {
				t.Fatal(err)
			}
		}
		var last string
		for {
			typ, b, err := conn.Read(t.Context())
			if err != nil {
				break
			}
			if typ == websocket.MessageText {
				last = string(b)
			}
		}
		conn.CloseNow()
		if !strings.Contains(last, c.says) {
			t.Errorf("%s: the server ended with %q, want %q", name, last, c.says)
		}
	}
	conn := w.dial(t, "other.protocol")
	if _, _, err := conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("another subprotocol: %v", err)
	}
}

func (w *world) dial(t *testing.T, protocol string) *websocket.Conn {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), w.url+"/v1/exec", &websocket.DialOptions{Subprotocols: []string{protocol},
		HTTPHeader: http.Header{"Authorization": {"Bearer " + rootKey}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.CloseNow() })
	return conn
}

// TestExecTerminal runs a command with a terminal, whose size changes, on a fork, which is kept.
func TestExecTerminal(t *testing.T) {
	p := testPrograms()
	p["terminal"] = func(ctx context.Context, c rest.Command) (int, error) {
		if c.Kept != nil {
			if err := c.Kept(map[string]string{"/workspace": "kept-one"}); err != nil {
				return 0, err
			}
		}
		fmt.Fprint(c.Stdout, *c.TTY, c.Mounts[0].Fork)
		for range 2 {
			select {
			case size := <-c.Resizes:
				fmt.Fprint(c.Stdout, size)
				if size.Cols == 3 {
					return 7, nil
				}
			case <-ctx.Done():
				return 9, nil
			}
		}
		return 8, nil
	}
	w := newWorld(t, rest.Options{Runner: p})
	w.create("mine")
	resizes := make(chan api.Size, 1)
	resizes <- api.Size{Cols: 3, Rows: 4}
	var out bytes.Buffer
	var kept []api.Mount
	e := api.Exec{Args: []string{"terminal"}, TTY: &api.Size{Cols: 1, Rows: 2}, Keep: true, Mounts: []api.Mount{{Bucket: "mine@now", Fork: true}}}
	s := client.Streams{Stdout: &out, Resizes: resizes, Kept: func(k []api.Mount) { kept = k }}
	if status, err := w.Exec(t.Context(), e, s); status != 7 || err != nil || out.String() != "{1 2}mine@now{3 4}" ||
		!slices.Equal(kept, []api.Mount{{Bucket: "kept-one", Path: "/workspace"}}) {
		t.Errorf("%d, %v, %q, %v", status, err, &out, kept)
	}
	e.TTY.Cols = api.MaxSize + 1
	if _, err := w.Exec(t.Context(), e, client.Streams{}); !errs.Is(err, errs.Invalid) {
		t.Errorf("a terminal too wide: %v", err)
	}
	resizes <- api.Size{Cols: -1}
	e.TTY.Cols = 1
	if _, err := w.Exec(t.Context(), e, client.Streams{Resizes: resizes}); !errs.Is(err, errs.Invalid) {
		t.Errorf("a size that is none: %v", err)
	}
}
