package guest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/guest"
	"agentrun.dev/guest/agent"
	"agentrun.dev/guest/wire"
)

// machine notes what it is told to do.
type machine struct {
	mu      sync.Mutex
	fail    error
	renewed []wire.Renew
	mounts  []wire.Mount
	off     bool
	synced  int
}

func (m *machine) Renew(r wire.Renew) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.renewed = append(m.renewed, r)
	return m.fail
}
func (m *machine) Sync()                    { m.synced++ }
func (m *machine) Mount(w wire.Mount) error { m.mounts = append(m.mounts, w); return m.fail }
func (m *machine) Unmount(string) error     { return m.fail }
func (m *machine) Off() error               { m.off = true; return nil }

// host is an agent in this process, and how to connect to it.
type host struct {
	*agent.Agent
	machine *machine
}

func start(t *testing.T, o agent.Options) *host {
	t.Helper()
	h := &host{machine: &machine{}}
	if o.Machine == nil {
		o.Machine = h.machine
	}
	h.Agent = agent.New(o)
	t.Cleanup(func() { h.Close() })
	return h
}

func (h *host) dial(t *testing.T) *guest.Client {
	t.Helper()
	a, b := net.Pipe()
	go h.ServeConn(b)
	c, err := guest.New(a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func connect(t *testing.T) *guest.Client { return start(t, agent.Options{}).dial(t) }

// within is long enough for anything, and ends a test that hangs.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// run executes a script and returns what came of it.
func run(t *testing.T, c *guest.Client, cmd guest.Cmd) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	p, e := c.Exec(within(t), cmd)
	if e != nil {
		t.Fatal(e)
	}
	status, e = p.Wait(within(t))
	if e != nil {
		t.Fatal(e)
	}
	return status, out.String(), err.String()
}

func sh(script string) guest.Cmd { return guest.Cmd{Args: []string{"sh", "-c", script}} }

func TestExec(t *testing.T) {
	c := connect(t)
	for _, k := range []struct {
		name   string
		cmd    guest.Cmd
		status int
		out    string
		err    string
	}{
		{"streams and status", sh("echo out; echo err >&2; exit 7"), 7, "out\n", "err\n"},
		{"input", guest.Cmd{Args: []string{"tr", "a-z", "A-Z"}, Stdin: strings.NewReader("hello")}, 0, "HELLO", ""},
		{"no input is its end", guest.Cmd{Args: []string{"cat"}}, 0, "", ""},
		{"signal", sh("kill -9 $$"), 137, "", ""},
		{"folder and variables", guest.Cmd{Args: []string{"sh", "-c", `pwd; echo "$A"`}, Dir: "/usr", Env: []string{"A=1", "A=2"}}, 0, "/usr\n2\n", ""},
		{"no such command", guest.Cmd{Args: []string{"nonesuch"}}, 127, "", "nonesuch: command not found\n"},
		{"no such file", guest.Cmd{Args: []string{"/nonesuch"}}, 127, "", "/nonesuch: no such file or directory\n"},
		{"no program", guest.Cmd{Args: []string{"/etc/passwd"}}, 126, "", "/etc/passwd: permission denied\n"},
		{"bytes that aren't Unicode", guest.Cmd{Args: []string{"printf", "%s", "a\xff\xfeb"}}, 0, "a\xff\xfeb", ""},
	} {
		t.Run(k.name, func(t *testing.T) {
			status, out, errOut := run(t, c, k.cmd)
			if status != k.status || out != k.out || errOut != k.err {
				t.Errorf("status %d, %q, %q; want %d, %q, %q", status, out, errOut, k.status, k.out, k.err)
			}
		})
	}
	for name, k := range map[string]struct {
		cmd  guest.Cmd
		kind errs.Kind
	}{
		"nothing":  {guest.Cmd{}, errs.Invalid},
		"NUL":      {guest.Cmd{Args: []string{"a\x00b"}}, errs.Invalid},
		"no dir":   {guest.Cmd{Args: []string{"true"}, Dir: "/nonesuch"}, errs.NotFound},
		"no user":  {guest.Cmd{Args: []string{"true"}, User: "nonesuch"}, errs.NotFound},
		"too long": {guest.Cmd{Args: []string{strings.Repeat("x", 2<<20)}}, errs.TooLarge},
	} {
		if _, err := c.Exec(within(t), k.cmd); errs.KindOf(err) != k.kind {
			t.Errorf("%s: %v, want %v", name, err, k.kind)
		}
	}
}

// TestExecUser needs the right to become another user.
func TestExecUser(t *testing.T) {
	c := connect(t)
	want := fmt.Sprint(os.Getuid(), ":", os.Getgid())
	user := strconv.Itoa(os.Getuid())
	if os.Getuid() == 0 {
		want, user = "4711:4712", "4711:4712"
	}
	if _, out, _ := run(t, c, guest.Cmd{Args: []string{"sh", "-c", "echo $(id -u):$(id -g)"}, User: user}); strings.TrimSpace(out) != strings.ReplaceAll(want, " ", "") {
		t.Errorf("ran as %q, want %q", out, want)
	}
}

// TestExecLarge sends more than all buffers and windows hold through a command.
func TestExecLarge(t *testing.T) {
	c := connect(t)
	in := bytes.Repeat([]byte("0123456789abcdef"), 4<<20/16)
	_, out, _ := run(t, c, guest.Cmd{Args: []string{"cat"}, Stdin: bytes.NewReader(in)})
	if out != string(in) {
		t.Errorf("%d bytes came back of %d", len(out), len(in))
	}
}

// slow is a writer that doesn't take anything until it is let.
type slow struct{ let chan struct{} }

func (s slow) Write(b []byte) (int, error) { <-s.let; return len(b), nil }

// TestBackpressure: a client that reads nothing holds up its command, and no other.
func TestBackpressure(t *testing.T) {
	c := connect(t)
	let := slow{make(chan struct{})}
	const size = 8 << 20
	mark := filepath.Join(t.TempDir(), "written")
	p, err := c.Exec(within(t), guest.Cmd{Args: []string{"sh", "-c", `head -c ` + strconv.Itoa(size) + ` /dev/zero; echo >` + mark}, Stdout: let})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if status, out, _ := run(t, c, sh("echo other")); status != 0 || out != "other\n" {
			t.Fatalf("another command: %d, %q", status, out)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Errorf("%d bytes were written though nobody has read them", size)
	}
	close(let.let)
	if status, err := p.Wait(within(t)); status != 0 || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
}

func TestCancelKills(t *testing.T) {
	c := connect(t)
	out, w := io.Pipe()
	p, err := c.Exec(within(t), guest.Cmd{Args: []string{"sh", "-c", "sleep 1000 & echo $!; wait"}, Stdout: w})
	if err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Fscan(out, &child); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(within(t))
	cancel()
	if _, err := p.Wait(ctx); errs.KindOf(err) != errs.Canceled {
		t.Errorf("Wait: %v", err)
	}
	gone(t, child)
}

// gone waits until a process has ended.
func gone(t *testing.T, pid int) {
	t.Helper()
	for ctx := within(t); ; time.Sleep(time.Millisecond) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(b), ") Z ") {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("process %d goes on", pid)
		}
	}
}

func TestSignal(t *testing.T) {
	c := connect(t)
	out, w := io.Pipe()
	p, err := c.Exec(within(t), guest.Cmd{Args: []string{"sh", "-c", "trap 'echo got; exit 3' TERM; echo ready; while :; do sleep 0.01; done"}, Stdout: w})
	if err != nil {
		t.Fatal(err)
	}
	var word string
	if _, err := fmt.Fscan(out, &word); err != nil || word != "ready" {
		t.Fatal(word, err)
	}
	if err := p.Signal(15); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, out)
	if status, err := p.Wait(within(t)); status != 3 || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
	if err := p.Signal(15); err != nil {
		t.Errorf("signal to one that has ended: %v", err)
	}
	if err := c.Signal(within(t), 1, 9); errs.KindOf(err) != errs.NotFound {
		t.Errorf("signal to one that isn't ours: %v", err)
	}
}

// TestBackground: what a command leaves is killed, unless it is kept.
func TestBackground(t *testing.T) {
	c := connect(t)
	_, out, _ := run(t, c, sh("sleep 1000 & echo $!"))
	pid, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		t.Fatal(err)
	}
	gone(t, pid)
	kept := sh("sleep 1000 & echo $!")
	kept.Keep = true
	_, out, _ = run(t, c, kept)
	if pid, err = strconv.Atoi(strings.TrimSpace(out)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err != nil {
		t.Errorf("what was kept has ended: %v", err)
	}
	if process, err := os.FindProcess(pid); err == nil {
		process.Kill()
	}
}

func TestTerminal(t *testing.T) {
	c := connect(t)
	in, w := io.Pipe()
	out, ow := io.Pipe()
	p, err := c.Exec(within(t), guest.Cmd{Args: []string{"sh", "-c", "stty size; tty >/dev/null && echo terminal; read x; stty size; echo got $x; cat"}, TTY: &wire.Size{Cols: 91, Rows: 17},
		Stdin: in, Stdout: ow})
	if err != nil {
		t.Fatal(err)
	}
	var seen strings.Builder
	until := func(want string) {
		t.Helper()
		b := make([]byte, 1024)
		for !strings.Contains(seen.String(), want) {
			n, err := out.Read(b)
			if err != nil {
				t.Fatalf("%v after %q", err, seen.String())
			}
			seen.Write(b[:n])
		}
	}
	until("17 91\r\nterminal\r\n")
	if err := p.Resize(100, 40); err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, "hi\n")
	until("40 100\r\ngot hi\r\n")
	w.Close() // the terminal's end of file
	if status, err := p.Wait(within(t)); status != 0 || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
	q, err := c.Exec(within(t), sh("sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Resize(1, 1); errs.KindOf(err) != errs.Invalid {
		t.Errorf("resize without a terminal: %v", err)
	}
	if err := q.Signal(9); err != nil {
		t.Error(err)
	}
	if status, err := q.Wait(within(t)); status != 137 || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
	// A client's modes are the terminal's.
	status, text, _ := run(t, c, guest.Cmd{Args: []string{"stty", "-a"}, TTY: &wire.Size{Cols: 80, Rows: 24}, Modes: map[byte]uint32{53: 0, 1: 7}})
	if status != 0 || !strings.Contains(text, "-echo ") || !strings.Contains(text, "intr = ^G") {
		t.Errorf("status %d, modes %q", status, text)
	}
}

// TestAttach: a command outlives its connection, and is taken up over another, as after a fork.
func TestAttach(t *testing.T) {
	h := start(t, agent.Options{})
	c := h.dial(t)
	in, w := io.Pipe()
	defer w.Close()
	out, ow := io.Pipe()
	p, err := c.Exec(within(t), guest.Cmd{Args: []string{"sh", "-c", "echo one; while read x; do echo got $x; done; echo end >&2; exit 5"}, Stdin: in, Stdout: ow})
	if err != nil {
		t.Fatal(err)
	}
	var word string
	if _, err := fmt.Fscan(out, &word); err != nil || word != "one" {
		t.Fatal(word, err)
	}
	c.Close()
	if _, err := p.Wait(within(t)); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("Wait over a broken connection: %v", err)
	}
	c = h.dial(t)
	list, err := c.Running(within(t))
	if err != nil || len(list) != 1 || list[0].Pid != p.Pid() || list[0].Args[0] != "sh" {
		t.Fatalf("running: %+v, %v", list, err)
	}
	var stdout, stderr bytes.Buffer
	q, err := c.Attach(within(t), p.Pid(), guest.Cmd{Stdin: strings.NewReader("two\nthree\n"), Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		t.Fatal(err)
	}
	if status, err := q.Wait(within(t)); status != 5 || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
	if stdout.String() != "one\ngot two\ngot three\n" || stderr.String() != "end\n" {
		t.Errorf("output %q, %q", stdout.String(), stderr.String())
	}
	if _, err := c.Attach(within(t), p.Pid(), guest.Cmd{}); errs.KindOf(err) != errs.NotFound {
		t.Errorf("attach to one whose end was told: %v", err)
	}
}

// TestRunningArgs: commands are told with enough of their arguments to know them by, empty ones among them, however many there are.
func TestRunningArgs(t *testing.T) {
	c := start(t, agent.Options{}).dial(t)
	mark := strings.Repeat("\xff", 500)
	for i := range 9 {
		if _, err := c.Exec(within(t), guest.Cmd{Args: []string{"sh", "-c", "exec sleep 1000", mark, fmt.Sprint(i), "", strings.Repeat("\xff", 4000)}}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := c.Running(within(t))
	if err != nil || len(list) != 9 {
		t.Fatalf("running: %d, %v", len(list), err)
	}
	for i, r := range list {
		if a := wire.Strings(r.Args); len(a) != 7 || a[3] != mark || a[4] != fmt.Sprint(i) || a[5] != "" || len(a[6]) < 1000 {
			t.Errorf("%d: %q", i, a)
		}
	}
}

// TestAttachAfterEnd: the newest MiB of a command that has ended while nobody was there, and its status.
func TestAttachAfterEnd(t *testing.T) {
	h := start(t, agent.Options{})
	c := h.dial(t)
	dir := t.TempDir()
	p, err := c.Exec(within(t), guest.Cmd{Args: []string{"sh", "-c", `while [ ! -e go ]; do sleep 0.01; done; head -c 3000000 /dev/zero; echo last; echo >done; exit 9`}, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if _, err := p.Wait(within(t)); err == nil {
		t.Error("Wait over a broken connection")
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c = h.dial(t)
	for ctx := within(t); ; time.Sleep(time.Millisecond) {
		if list, err := c.Running(ctx); err != nil {
			t.Fatal(err)
		} else if len(list) == 0 {
			break
		}
	}
	var out bytes.Buffer
	q, err := c.Attach(within(t), p.Pid(), guest.Cmd{Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	status, err := q.Wait(within(t))
	if n := out.Len(); status != 9 || err != nil || n > 1<<20 || n < 1<<19 || !strings.HasSuffix(out.String(), "\x00last\n") {
		t.Errorf("status %d, %v, %d bytes", status, err, n)
	}
}

func TestFiles(t *testing.T) {
	c := connect(t)
	dir := t.TempDir()
	ctx := within(t)
	mode := uint32(0o750)
	big := bytes.Repeat([]byte("agent"), 1<<20)
	if i, err := c.Write(ctx, dir+"/a/b/big", bytes.NewReader(big), guest.WriteOptions{Mode: &mode, Parents: true}); err != nil || i.Size != int64(len(big)) || i.Mode&0o7777 != 0o750 {
		t.Fatalf("write: %+v, %v", i, err)
	}
	f, err := c.Open(ctx, dir+"/a/b/big", 3, -1)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(f); err != nil || !bytes.Equal(b, big[3:]) {
		t.Errorf("read: %d bytes, %v", len(b), err)
	}
	f.Close()
	if f, err = c.Open(ctx, dir+"/a/b/big", 4, 6); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(f); err != nil || string(b) != "tagent" {
		t.Errorf("read a part: %q, %v", b, err)
	}
	// A file that is closed early doesn't stay open: all streams would be used up.
	for range 2 * wire.MaxStreams {
		f, err := c.Open(ctx, dir+"/a/b/big", 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	// A write that fails half-way leaves the old file, and nothing else.
	broken := io.MultiReader(strings.NewReader("new"), errReader{})
	if _, err := c.Write(ctx, dir+"/a/b/big", broken, guest.WriteOptions{}); err == nil {
		t.Error("a reader's failure is lost")
	}
	if i, err := c.Stat(ctx, dir+"/a/b/big", true); err != nil || i.Size != int64(len(big)) {
		t.Errorf("after a broken write: %+v, %v", i, err)
	}
	if err := os.Symlink("b/big", dir+"/a/link"); err != nil {
		t.Fatal(err)
	}
	if i, err := c.Stat(ctx, dir+"/a/link", false); err != nil || i.Target != "b/big" {
		t.Errorf("link: %+v, %v", i, err)
	}
	if _, err := c.Write(ctx, dir+"/a/link", strings.NewReader("through"), guest.WriteOptions{}); err != nil {
		t.Error(err)
	}
	if i, err := c.Stat(ctx, dir+"/a/b/big", true); err != nil || i.Size != 7 || i.Mode&0o7777 != 0o750 {
		t.Errorf("written through a link: %+v, %v", i, err)
	}
	for n := range 3000 {
		if err := os.WriteFile(fmt.Sprintf("%s/a/%04d-%s\xff", dir, n, strings.Repeat("n", 100)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	waitTemp(t, c, dir+"/a/b")
	list, err := c.List(ctx, dir+"/a")
	if err != nil || len(list) != 3002 || !strings.HasSuffix(string(list[0].Name), "n\xff") || !slices.IsSortedFunc(list, func(a, b wire.Info) int { return strings.Compare(string(a.Name), string(b.Name)) }) {
		t.Errorf("list: %d entries, %v", len(list), err)
	}
	if err := errors.Join(c.Mkdir(ctx, dir+"/x/y", guest.MkdirOptions{Mode: 0o700, Parents: true}), c.Mkdir(ctx, dir+"/x/y", guest.MkdirOptions{Mode: 0o700, Parents: true}),
		c.Move(ctx, dir+"/a", dir+"/x/y/a"), c.Remove(ctx, dir+"/x", true)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir + "/x"); err == nil {
		t.Error("it isn't removed")
	}
	for name, k := range map[string]struct {
		err  error
		kind errs.Kind
	}{
		"none":     {second(c.Stat(ctx, dir+"/none", true)), errs.NotFound},
		"no path":  {second(c.Stat(ctx, "", true)), errs.Invalid},
		"NUL":      {c.Remove(ctx, "a\x00b", true), errs.Invalid},
		"exists":   {c.Mkdir(ctx, dir, guest.MkdirOptions{Mode: 0o700}), errs.Exists},
		"a folder": {second(c.Write(ctx, dir, strings.NewReader(""), guest.WriteOptions{})), errs.Invalid},
		"read it":  {second(c.Open(ctx, dir, 0, -1)), errs.Invalid},
		"all":      {c.Remove(ctx, "/", true), errs.Conflict},
		"gone":     {c.Move(ctx, dir+"/none", dir+"/other"), errs.NotFound},
		"no owner": {second(c.Write(ctx, dir+"/f", strings.NewReader(""), guest.WriteOptions{Owner: "nonesuch"})), errs.NotFound},
	} {
		if errs.KindOf(k.err) != k.kind {
			t.Errorf("%s: %v, want %v", name, k.err, k.kind)
		}
	}
	if _, err := c.Write(ctx, "/dev/null", bytes.NewReader(big), guest.WriteOptions{}); err != nil {
		t.Errorf("a device: %v", err)
	}
}

// waitTemp waits until what a broken write left is gone.
func waitTemp(t *testing.T, c *guest.Client, dir string) {
	t.Helper()
	for ctx := within(t); ; time.Sleep(time.Millisecond) {
		list, err := c.List(ctx, dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 1 {
			return
		}
	}
}

func second[T any](_ T, err error) error { return err }

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestWatch(t *testing.T) {
	c := connect(t)
	dir := t.TempDir()
	w, err := c.Watch(within(t), dir, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(dir+"/a/b", 0o755), os.WriteFile(dir+"/a/b/f", []byte("1"), 0o644)); err != nil {
		t.Fatal(err)
	}
	seen := make(map[wire.Event]bool)
	want := func(op, path string) {
		t.Helper()
		for !seen[wire.Event{Op: op, Path: wire.Text(path)}] {
			events, err := w.Next()
			if err != nil {
				t.Fatalf("%s %s: %v; seen %v", op, path, err, seen)
			}
			for _, e := range events {
				seen[e] = true
			}
		}
	}
	want("create", dir+"/a")
	want("create", dir+"/a/b/f")
	if err := os.Rename(dir+"/a/b/f", dir+"/g"); err != nil {
		t.Fatal(err)
	}
	want("rename", dir+"/a/b/f")
	want("create", dir+"/g")
	if err := os.Remove(dir + "/g"); err != nil {
		t.Fatal(err)
	}
	want("remove", dir+"/g")
	w.Close()
	if _, err := w.Next(); err == nil {
		t.Error("a closed watch goes on")
	}
	if _, err := c.Watch(within(t), dir+"/none", false); errs.KindOf(err) != errs.NotFound {
		t.Errorf("nothing to watch: %v", err)
	}
}

func TestDial(t *testing.T) {
	c := connect(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // answers when the client has said all
				defer nc.Close()
				b, _ := io.ReadAll(nc)
				nc.Write(append([]byte("got "), b...))
			}()
		}
	}()
	port := l.Addr().(*net.TCPAddr).Port
	for range 50 {
		nc, err := c.Dial(within(t), port)
		if err != nil {
			t.Fatal(err)
		}
		nc.SetDeadline(time.Now().Add(time.Minute))
		big := bytes.Repeat([]byte("x"), 1<<18)
		if _, err := nc.Write(big); err != nil {
			t.Fatal(err)
		}
		nc.(interface{ CloseWrite() error }).CloseWrite()
		if b, err := io.ReadAll(nc); err != nil || len(b) != len(big)+4 {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
		nc.Close()
	}
	nc, err := c.Dial(within(t), port)
	if err != nil {
		t.Fatal(err)
	}
	nc.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := nc.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read after the deadline: %v", err)
	}
	nc.Close()
	if _, err := nc.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read after Close: %v", err)
	}
	l.Close()
	if _, err := c.Dial(within(t), port); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("nobody listens: %v", err)
	}
}

func TestStats(t *testing.T) {
	c := connect(t)
	p, err := c.Exec(within(t), sh("sleep 1000; true"))
	if err != nil {
		t.Fatal(err)
	}
	for ctx := within(t); ; time.Sleep(time.Millisecond) { // the shell has to start sleep
		st, err := c.Stats(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if st.Count == 2 && st.Processes[0].Pid == p.Pid() && st.Processes[1].Parent == p.Pid() && st.Processes[1].Name == "sleep" && st.Memory > 0 && st.MemoryTotal > st.MemoryFree {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("%+v", st)
		}
	}
}
