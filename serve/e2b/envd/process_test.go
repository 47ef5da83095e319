package envd_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"agentrun.dev/api"
	processpb "agentrun.dev/api/gen/e2b/process"
	"agentrun.dev/api/gen/e2b/process/processconnect"
	"agentrun.dev/serve/e2b/envd"
)

// told is what a stream told of a command.
type told struct {
	pid              uint32
	out, errs, shown string
	end              *processpb.ProcessEvent_EndEvent
	alive            int // keepalives
	err              error
}

func (x *told) take(e *processpb.ProcessEvent) {
	switch v := e.GetEvent().(type) {
	case *processpb.ProcessEvent_Start:
		x.pid = v.Start.GetPid()
	case *processpb.ProcessEvent_Data:
		x.out += string(v.Data.GetStdout())
		x.errs += string(v.Data.GetStderr())
		x.shown += string(v.Data.GetPty())
	case *processpb.ProcessEvent_End:
		x.end = v.End
	case *processpb.ProcessEvent_Keepalive:
		x.alive++
	}
}

// shell is what the SDKs run for a line.
func shell(line string) *processpb.StartRequest {
	off := false
	return &processpb.StartRequest{Process: &processpb.ProcessConfig{Cmd: "/bin/bash", Args: []string{"-l", "-c", line}}, Stdin: &off}
}

// started is a command whose stream is read.
type started struct {
	*sandbox
	stream *connect.ServerStreamForClient[processpb.StartResponse]
	told
}

// start begins a command and reads its stream up to its number.
func (s *sandbox) start(ctx context.Context, r *processpb.StartRequest, header ...string) *started {
	s.t.Helper()
	req := connect.NewRequest(r)
	for i := 0; i < len(header); i += 2 {
		req.Header().Set(header[i], header[i+1])
	}
	stream, err := s.process.Start(ctx, req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { stream.Close() })
	x := &started{sandbox: s, stream: stream}
	if x.next(); x.pid == 0 && x.err == nil {
		s.t.Fatal("the first event isn't the start")
	}
	return x
}

// next reads an event, and reports whether there was one.
func (x *started) next() bool {
	if !x.stream.Receive() {
		x.err = x.stream.Err()
		return false
	}
	x.take(x.stream.Msg().GetEvent())
	return true
}

// wait reads to the end.
func (x *started) wait() *told {
	for x.next() {
	}
	return &x.told
}

// until reads until output comes.
func (x *started) until(text string) {
	x.t.Helper()
	for !strings.Contains(x.out+x.shown, text) {
		if !x.next() {
			x.t.Fatalf("%q didn't come: %q, %v", text, x.out+x.shown, x.err)
		}
	}
}

func (s *sandbox) run(line string, header ...string) *told {
	s.t.Helper()
	return s.start(s.t.Context(), shell(line), header...).wait()
}

func pid(n uint32) *processpb.ProcessSelector {
	return &processpb.ProcessSelector{Selector: &processpb.ProcessSelector_Pid{Pid: n}}
}

func tag(name string) *processpb.ProcessSelector {
	return &processpb.ProcessSelector{Selector: &processpb.ProcessSelector_Tag{Tag: name}}
}

const asRoot = "Basic cm9vdDo=" // root:

// connectTo follows a command to its end.
func (s *sandbox) connectTo(of *processpb.ProcessSelector) *told {
	stream, err := s.process.Connect(s.t.Context(), connect.NewRequest(&processpb.ConnectRequest{Process: of}))
	if err != nil {
		return &told{err: err}
	}
	defer stream.Close()
	var x told
	for stream.Receive() {
		x.take(stream.Msg().GetEvent())
	}
	x.err = stream.Err()
	return &x
}

func TestRun(t *testing.T) {
	s := newWorld(t, envd.Options{}).sandbox()
	for _, c := range []struct {
		line, out, errs string
		code            int32
		exited          bool
		status, text    string
	}{
		{"echo out; pwd; echo err >&2", "out\n/home/user\n", "err\n", 0, true, "exit status 0", ""},
		{"exit 3", "", "", 3, true, "exit status 3", "exit status 3"},
		{"exit 137", "", "", 137, true, "exit status 137", "exit status 137"},
		{"kill -9 $$", "", "", -1, false, "signal: killed", "signal: killed"},
		{"kill -TERM $$", "", "", -1, false, "signal: terminated", "signal: terminated"},
		{"cat", "", "", 0, true, "exit status 0", ""},
		{"whoami; echo $HOME", "user\n/home/user\n", "", 0, true, "exit status 0", ""},
	} {
		x := s.run(c.line)
		if x.err != nil || x.end == nil {
			t.Errorf("%s: %v, %v", c.line, x.end, x.err)
			continue
		}
		e := x.end
		if x.out != c.out || x.errs != c.errs || e.GetExitCode() != c.code || e.GetExited() != c.exited || e.GetStatus() != c.status || e.GetError() != c.text || (e.Error == nil) != (c.text == "") {
			t.Errorf("%s: %q %q %v", c.line, x.out, x.errs, e)
		}
	}
	if x := s.run("whoami; pwd; echo $HOME $USER $LOGNAME", "Authorization", asRoot); x.out != "root\n/root\n/root root root\n" {
		t.Errorf("as root: %+v", x)
	}
	if x := s.run("true", "Authorization", "Basic c29tZWJvZHk6"); connect.CodeOf(x.err) != connect.CodeUnauthenticated {
		t.Errorf("as somebody else: %v", x.err)
	}
	r := shell("echo $A; pwd")
	r.Process.Envs = map[string]string{"A": "of the command"}
	for cwd, want := range map[string]string{"/tmp": "/tmp", "~": "/home/user", "..": "/home", "": "/home/user"} {
		r.Process.Cwd = &cwd
		if x := s.start(t.Context(), r).wait(); x.out != "of the command\n"+want+"\n" {
			t.Errorf("in %s: %+v", cwd, x)
		}
	}
}

func TestStartRefused(t *testing.T) {
	s := newWorld(t, envd.Options{}).sandbox()
	with := func(change func(*processpb.StartRequest)) *processpb.StartRequest {
		r := shell("true")
		change(r)
		return r
	}
	nowhere, other := "/nowhere", "~other"
	for name, r := range map[string]*processpb.StartRequest{
		"nothing":     {},
		"no command":  with(func(r *processpb.StartRequest) { r.Process.Cmd = "" }),
		"NUL":         with(func(r *processpb.StartRequest) { r.Process.Args = []string{"a\x00b"} }),
		"variable":    with(func(r *processpb.StartRequest) { r.Process.Envs = map[string]string{"A=B": "c"} }),
		"too long":    with(func(r *processpb.StartRequest) { r.Process.Args = []string{strings.Repeat("x", api.MaxArgs)} }),
		"directory":   with(func(r *processpb.StartRequest) { r.Process.Cwd = &nowhere }),
		"other home":  with(func(r *processpb.StartRequest) { r.Process.Cwd = &other }),
		"a huge size": with(func(r *processpb.StartRequest) { r.Pty = &processpb.PTY{Size: &processpb.PTY_Size{Cols: 1 << 31}} }),
	} {
		if x := s.start(t.Context(), r).wait(); connect.CodeOf(x.err) != connect.CodeInvalidArgument {
			t.Errorf("%s: %v", name, x.err)
		}
	}
	x := s.start(t.Context(), with(func(r *processpb.StartRequest) { r.Process.Cwd = &nowhere })).wait()
	if x.err == nil || !strings.Contains(x.err.Error(), "cwd '/nowhere' does not exist") {
		t.Error(x.err)
	}
	if x := s.start(t.Context(), &processpb.StartRequest{Process: &processpb.ProcessConfig{Cmd: "/bin/nothing"}}).wait(); x.end.GetExitCode() != 127 {
		t.Errorf("a command that isn't there: %+v", x)
	}
	if x := s.at("gone").run("true"); connect.CodeOf(x.err) != connect.CodeUnavailable || !strings.Contains(x.err.Error(), "was not found") {
		t.Errorf("in no sandbox: %v", x.err)
	}
}

func TestTimeLimit(t *testing.T) {
	s := newWorld(t, envd.Options{}).sandbox()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	x := s.start(ctx, shell("echo begun; sleep 1000"))
	number := x.pid
	if x.wait(); connect.CodeOf(x.err) != connect.CodeDeadlineExceeded {
		t.Errorf("%v", x.err)
	}
	s.until("the command is killed", func() bool {
		c := s.connectTo(pid(number))
		return c.end.GetStatus() == "signal: killed"
	})
	// The client's own clock may be slower: the server ends the stream.
	if x := s.run("sleep 1000", "Connect-Timeout-Ms", "100"); connect.CodeOf(x.err) != connect.CodeDeadlineExceeded {
		t.Errorf("%+v", x)
	}
	// A command lives for as long as its starter said, though the client goes.
	ctx, cancel = context.WithCancel(t.Context())
	y := s.start(ctx, shell("sleep 0.2; echo still >/tmp/still"), "Connect-Timeout-Ms", "60000")
	cancel()
	if y.wait(); y.end != nil {
		t.Error("a client that went was told the end")
	}
	s.until("it goes on", func() bool { return s.run("cat /tmp/still").out == "still\n" })
}

func TestInput(t *testing.T) {
	s := newWorld(t, envd.Options{}).sandbox()
	ctx := t.Context()
	on := true
	r := shell("cat; echo ended")
	r.Stdin, r.Tag = &on, new("the tag")
	x := s.start(ctx, r)
	send := func(of *processpb.ProcessSelector, text string) error {
		_, err := s.process.SendInput(ctx, connect.NewRequest(&processpb.SendInputRequest{Process: of, Input: &processpb.ProcessInput{Input: &processpb.ProcessInput_Stdin{Stdin: []byte(text)}}}))
		return err
	}
	if err := errors.Join(send(pid(x.pid), "one\n"), send(tag("the tag"), "two\n")); err != nil {
		t.Fatal(err)
	}
	x.until("two\n")
	stream := s.process.StreamInput(ctx)
	big := strings.Repeat("0123456789abcdef", 100_000) // more than is held
	for _, m := range []*processpb.StreamInputRequest{
		{Event: &processpb.StreamInputRequest_Start{Start: &processpb.StreamInputRequest_StartEvent{Process: pid(x.pid)}}},
		{Event: &processpb.StreamInputRequest_Keepalive{}},
		{Event: &processpb.StreamInputRequest_Data{Data: &processpb.StreamInputRequest_DataEvent{Input: &processpb.ProcessInput{Input: &processpb.ProcessInput_Stdin{Stdin: []byte("three\n")}}}}},
	} {
		if err := stream.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := stream.CloseAndReceive(); err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() { sent <- send(pid(x.pid), big) }()
	x.until("three\n" + big)
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	for range 2 { // twice is fine
		if _, err := s.process.CloseStdin(ctx, connect.NewRequest(&processpb.CloseStdinRequest{Process: pid(x.pid)})); err != nil && x.end == nil && connect.CodeOf(err) != connect.CodeNotFound {
			t.Fatal(err)
		}
	}
	if x.wait(); !strings.HasSuffix(x.out, "ended\n") || x.end.GetExitCode() != 0 {
		t.Errorf("%d bytes, %v", len(x.out), x.end)
	}
	if err := send(pid(x.pid), "late"); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("to one that has ended: %v", err)
	}
	y := s.start(ctx, shell("sleep 1000"))
	if err := send(pid(y.pid), "x"); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("to one without input: %v", err)
	}
	if err := send(pid(999999), "x"); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("to nothing: %v", err)
	}
	if err := send(&processpb.ProcessSelector{}, "x"); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("to nobody: %v", err)
	}
	_, err := s.process.SendInput(ctx, connect.NewRequest(&processpb.SendInputRequest{Process: pid(y.pid)}))
	if connect.CodeOf(err) != connect.CodeUnimplemented {
		t.Errorf("nothing: %v", err)
	}
}

func TestTerminal(t *testing.T) {
	s := newWorld(t, envd.Options{}).sandbox()
	ctx := t.Context()
	x := s.start(ctx, &processpb.StartRequest{Process: &processpb.ProcessConfig{Cmd: "/bin/bash", Args: []string{"-i", "-l"}, Envs: map[string]string{"TERM": "xterm-256color"}},
		Pty: &processpb.PTY{Size: &processpb.PTY_Size{Cols: 80, Rows: 24}}})
	typed := func(text string) {
		t.Helper()
		_, err := s.process.SendInput(ctx, connect.NewRequest(&processpb.SendInputRequest{Process: pid(x.pid), Input: &processpb.ProcessInput{Input: &processpb.ProcessInput_Pty{Pty: []byte(text)}}}))
		if err != nil {
			t.Fatal(err)
		}
	}
	typed("stty size\n")
	x.until("24 80\r\n")
	update := func(of uint32, cols uint32) error {
		_, err := s.process.Update(ctx, connect.NewRequest(&processpb.UpdateRequest{Process: pid(of), Pty: &processpb.PTY{Size: &processpb.PTY_Size{Cols: cols, Rows: 30}}}))
		return err
	}
	if err := update(x.pid, 100); err != nil {
		t.Fatal(err)
	}
	typed("stty size; exit 5\n")
	x.until("30 100\r\n")
	if x.wait(); x.end.GetExitCode() != 5 || x.out != "" {
		t.Errorf("%+v", x.told)
	}
	y := s.start(ctx, shell("sleep 1000"))
	if err := update(y.pid, 10); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("without a terminal: %v", err)
	}
	if err := update(y.pid, 1<<30); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("a huge one: %v", err)
	}
}

func TestListConnectSignal(t *testing.T) {
	s := newWorld(t, envd.Options{}).sandbox()
	ctx := t.Context()
	r := shell("echo before; while [ ! -e /tmp/go ]; do sleep 0.01; done; echo after; exit 7")
	r.Tag, r.Process.Envs, r.Process.Cwd = new("tagged"), map[string]string{"A": "b"}, new("/tmp")
	x := s.start(ctx, r)
	x.until("before\n")
	list, err := s.process.List(ctx, connect.NewRequest(&processpb.ListRequest{}))
	if err != nil || len(list.Msg.GetProcesses()) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	p := list.Msg.GetProcesses()[0]
	if p.GetPid() != x.pid || p.GetTag() != "tagged" || p.GetConfig().GetCmd() != "/bin/bash" || len(p.GetConfig().GetArgs()) != 3 || p.GetConfig().GetEnvs()["A"] != "b" || p.GetConfig().GetCwd() != "/tmp" {
		t.Errorf("%v", p)
	}
	followed := make(chan *told, 2)
	for _, of := range []*processpb.ProcessSelector{pid(x.pid), tag("tagged")} {
		stream, err := s.process.Connect(ctx, connect.NewRequest(&processpb.ConnectRequest{Process: of}))
		if err != nil || !stream.Receive() || stream.Msg().GetEvent().GetStart().GetPid() != x.pid {
			t.Fatalf("%v: %v", of, err)
		}
		go func() {
			defer stream.Close()
			var y told
			for stream.Receive() {
				y.take(stream.Msg().GetEvent())
			}
			followed <- &y
		}()
	}
	s.run("touch /tmp/go")
	for range 2 {
		if y := <-followed; y.out != "after\n" || y.end.GetExitCode() != 7 {
			t.Errorf("%+v", y)
		}
	}
	x.wait()
	// Who comes late is told the end.
	for _, of := range []*processpb.ProcessSelector{pid(x.pid), tag("tagged")} {
		if y := s.connectTo(of); y.pid != x.pid || y.end.GetExitCode() != 7 || y.out != "" || y.err != nil {
			t.Errorf("%v: %+v", of, y)
		}
	}
	for _, of := range []*processpb.ProcessSelector{pid(999999), pid(1 << 31), tag("nobody"), {}} {
		if y := s.connectTo(of); connect.CodeOf(y.err) != connect.CodeNotFound {
			t.Errorf("%v: %v", of, y.err)
		}
	}
	signal := func(n uint32, sig processpb.Signal) error {
		_, err := s.process.SendSignal(ctx, connect.NewRequest(&processpb.SendSignalRequest{Process: pid(n), Signal: sig}))
		return err
	}
	for sig, status := range map[processpb.Signal]string{processpb.Signal_SIGNAL_SIGKILL: "signal: killed", processpb.Signal_SIGNAL_SIGTERM: "signal: terminated"} {
		y := s.start(ctx, shell("sleep 1000"))
		if err := signal(y.pid, sig); err != nil {
			t.Fatal(err)
		}
		if y.wait(); y.end.GetStatus() != status || y.end.GetExitCode() != -1 || y.end.GetExited() || y.end.GetError() != status {
			t.Errorf("%v: %v", sig, y.end)
		}
		if err := signal(y.pid, sig); connect.CodeOf(err) != connect.CodeNotFound {
			t.Errorf("again: %v", err)
		}
	}
	if err := signal(1, processpb.Signal(2)); connect.CodeOf(err) != connect.CodeUnimplemented {
		t.Errorf("another signal: %v", err)
	}
	// Numbers of one sandbox mean nothing in another.
	other := s.world.sandbox()
	z := s.start(ctx, shell("sleep 1000"))
	if y := other.connectTo(pid(z.pid)); connect.CodeOf(y.err) != connect.CodeNotFound {
		t.Errorf("from another sandbox: %+v", y)
	}
}

func TestKeepalive(t *testing.T) {
	s := newWorld(t, envd.Options{}).sandbox()
	x := s.start(t.Context(), shell("sleep 1000"), "Keepalive-Ping-Interval", "1")
	for x.alive == 0 {
		if !x.next() {
			t.Fatal(x.err)
		}
	}
}

// TestSandboxGone has sandboxes that end, or sleep, under running streams: those are cut off, as if the machine were gone.
func TestSandboxGone(t *testing.T) {
	w := newWorld(t, envd.Options{})
	for name, end := range map[string]func(id string) error{
		"ended":  func(id string) error { _, err := w.control.EndSandbox(t.Context(), w.who, id); return err },
		"asleep": func(id string) error { _, err := w.control.Hibernate(t.Context(), w.who, id); return err },
	} {
		s := w.sandbox()
		x := s.start(t.Context(), shell("sleep 1000"))
		watched := s.watch("/tmp", true)
		if err := end(s.id); err != nil {
			t.Fatal(name, err)
		}
		if x.wait(); x.end != nil || x.err == nil {
			t.Errorf("%s: %v, %v", name, x.end, x.err)
		}
		for watched.Receive() {
		}
		if watched.Err() == nil {
			t.Errorf("%s: the watch has no error", name)
		}
		if name == "asleep" { // it runs on when it is woken up, and can be taken up
			list, err := s.process.List(t.Context(), connect.NewRequest(&processpb.ListRequest{}))
			if err != nil || len(list.Msg.GetProcesses()) != 1 || list.Msg.GetProcesses()[0].GetPid() != x.pid || list.Msg.GetProcesses()[0].GetConfig().GetCmd() == "" {
				t.Fatalf("%v, %v", list, err)
			}
			ended := make(chan *told, 1)
			go func() { ended <- s.connectTo(pid(x.pid)) }()
			s.until("it is killed", func() bool {
				_, err := s.process.SendSignal(t.Context(), connect.NewRequest(&processpb.SendSignalRequest{Process: pid(x.pid), Signal: processpb.Signal_SIGNAL_SIGKILL}))
				return connect.CodeOf(err) == connect.CodeNotFound
			})
			if y := <-ended; y.end == nil && connect.CodeOf(y.err) != connect.CodeNotFound {
				t.Errorf("%+v", y)
			}
			continue
		}
		if code, _, body := s.do(http.MethodGet, "/health", nil); code != http.StatusBadGateway || !strings.Contains(body, "was not found") {
			t.Errorf("%s: health: %d %s", name, code, body)
		}
	}
}

// TestSlowFollower has a client that doesn't read: it is given up, and holds up nobody.
func TestSlowFollower(t *testing.T) {
	s := newWorld(t, envd.Options{Patience: 200 * time.Millisecond}).sandbox()
	x := s.start(t.Context(), shell("head -c 100000000 /dev/zero; echo done >/tmp/done"))
	s.until("it has written more than anybody takes", func() bool { return s.run("cat /tmp/done").out == "done\n" })
	if x.wait(); x.end != nil {
		t.Error("it was told all")
	}
}

// TestHTTP2 has the same over HTTP/2, where a stream that is cut off leaves the others alone.
func TestHTTP2(t *testing.T) {
	w := newWorld(t, envd.Options{})
	srv := httptest.NewUnstartedServer(w.srv.Config.Handler)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	first, second := w.sandbox(), w.sandbox()
	for _, s := range []*sandbox{first, second} {
		client := &http.Client{Transport: named{s.id, srv.Client().Transport}}
		s.process = processconnect.NewProcessClient(client, srv.URL, connect.WithProtoJSON())
	}
	x, y := first.start(t.Context(), shell("sleep 1000")), second.start(t.Context(), shell("cat; echo ended"))
	if _, err := w.control.EndSandbox(t.Context(), w.who, first.id); err != nil {
		t.Fatal(err)
	}
	if x.wait(); x.end != nil || x.err == nil {
		t.Errorf("%v, %v", x.end, x.err)
	}
	if y.wait(); y.out != "ended\n" || y.end.GetExitCode() != 0 || y.err != nil {
		t.Errorf("%+v", y.told)
	}
	if z := second.run("exit 4"); z.end.GetExitCode() != 4 {
		t.Errorf("%+v", z)
	}
}
