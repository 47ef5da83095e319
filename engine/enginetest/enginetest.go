// Package enginetest is the conformance suite of engines: what every engine.Engine does alike.
package enginetest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/vfs"
	"agentrun.dev/volume"
)

// Config says what is tested.
type Config struct {
	New func(t testing.TB) engine.Engine
	// Saves tells that images can be saved and loaded, with shells that run.
	Saves bool
	// Copies tells that whatever runs can be copied, so that nothing is ever busy.
	Copies bool
	// Alone runs one test at a time: New may return the same engine again, in which nothing runs then.
	Alone bool
	// Slow is how many times slower than usual the engine may be here.
	Slow int
	// Forks is how many there are of one sandbox at once; 20 unless told.
	Forks int
}

// limit is how long something may take that is expected to take no longer than d.
func (c Config) limit(d time.Duration) time.Duration { return d * time.Duration(max(c.Slow, 1)) }

// world is one sandbox with its volumes.
type world struct {
	c   Config
	t   testing.TB
	in  engine.Instance
	set *volume.Set
}

// Run runs the suite.
func Run(t *testing.T, c Config) {
	for name, test := range map[string]func(*testing.T, Config){
		"Exec": testExec, "Streams": testStreams, "Refused": testRefused, "Cancel": testCancel, "Signal": testSignal, "Terminal": testTerminal,
		"List": testList, "Fork": testFork, "ForkShell": testForkShell, "Pause": testPause, "Busy": testBusy, "Hibernate": testHibernate, "Many": testMany, "Attach": testAttach, "Dial": testDial,
	} {
		t.Run(name, func(t *testing.T) {
			if !c.Alone {
				t.Parallel()
			}
			test(t, c)
		})
	}
}

func boot(t testing.TB, c Config, e engine.Engine, id string) *world {
	t.Helper()
	ctx := t.Context()
	set, err := volume.Open(ctx, volume.Options{Owner: id, UID: 1000, GID: 1000}, []volume.Spec{{Name: "workspace"}, {Name: "scratch", Policy: volume.Fresh}})
	if err != nil {
		t.Fatal(err)
	}
	in, err := e.Boot(ctx, engine.Spec{Identity: engine.Identity{ID: id}, Volumes: set.Mounts(), Env: []string{"GREETING=hello"}})
	if err != nil {
		t.Fatal(err)
	}
	return adopt(t, c, engine.Child{Instance: in, Volumes: set})
}

func adopt(t testing.TB, config Config, c engine.Child) *world {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), config.limit(20*time.Second))
		defer cancel()
		if err := c.End(ctx); err != nil {
			t.Errorf("end of %s: %v", c.Instance.ID(), err)
		}
	})
	return &world{config, t, c.Instance, c.Volumes}
}

// sh runs a script and returns what it wrote to both outputs.
func (w *world) sh(script string) string {
	w.t.Helper()
	var out bytes.Buffer
	status := w.exec(engine.Cmd{Args: []string{"sh", "-c", script}, Stdout: &out, Stderr: &out})
	if status != 0 {
		out.WriteString(fmt.Sprintf("(status %d)", status))
	}
	return out.String()
}

func (w *world) exec(c engine.Cmd) int {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), w.c.limit(30*time.Second))
	defer cancel()
	p, err := w.in.Exec(ctx, c)
	if err != nil {
		w.t.Fatal(err)
	}
	status, err := p.Wait(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return status
}

func (w *world) want(script, want string) {
	w.t.Helper()
	if got := w.sh(script); got != want {
		w.t.Errorf("%s: %s\nprints %q\nwant   %q", w.in.ID(), script, got, want)
	}
}

func testExec(t *testing.T, c Config) {
	w := boot(t, c, c.New(t), "one")
	w.want("echo $GREETING; pwd; id -u", "hello\n/workspace\n1000\n")
	w.want("echo text > f; cat f; exit 3", "text\n(status 3)")
	w.want("cat f", "text\n")
	w.want("kill -TERM $$", "(status 143)")
	for status, args := range map[int][]string{127: {"no-such-command"}, 126: {"/tmp"}} {
		if got := w.exec(engine.Cmd{Args: args}); got != status {
			t.Errorf("%v: status %d, want %d", args, got, status)
		}
	}
	var out bytes.Buffer
	w.exec(engine.Cmd{Args: []string{"sh", "-c", "echo $A; pwd; id -u"}, Env: []string{"A=b"}, Dir: "/tmp", Root: true, Stdout: &out})
	if out.String() != "b\n/tmp\n0\n" {
		t.Errorf("environment, directory, user: %q", out.String())
	}
}

func testStreams(t *testing.T, c Config) {
	w := boot(t, c, c.New(t), "one")
	var out, errOut bytes.Buffer
	in := strings.Repeat("0123456789abcdef", 1<<14)
	w.exec(engine.Cmd{Args: []string{"sh", "-c", "tee /dev/stderr"}, Stdin: strings.NewReader(in), Stdout: &out, Stderr: &errOut})
	if out.String() != in || errOut.String() != in {
		t.Errorf("of %d bytes came back %d and %d", len(in), out.Len(), errOut.Len())
	}
}

func testRefused(t *testing.T, c Config) {
	e := c.New(t)
	if _, err := e.Boot(t.Context(), engine.Spec{}); !errs.Is(err, errs.Invalid) {
		t.Errorf("booting without an id: %v", err)
	}
	w := boot(t, c, e, "one")
	if _, err := w.in.Exec(t.Context(), engine.Cmd{}); !errs.Is(err, errs.Invalid) {
		t.Errorf("no command: %v", err)
	}
	if _, err := w.in.Exec(t.Context(), engine.Cmd{Args: []string{"true"}, Dir: "/no/such"}); !errs.Is(err, errs.NotFound) {
		t.Errorf("no such directory: %v", err)
	}
	if err := w.in.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := w.in.Exec(t.Context(), engine.Cmd{Args: []string{"true"}}); !errs.Is(err, errs.Unavailable) {
		t.Errorf("exec after stop: %v", err)
	}
	if _, err := e.Load(t.Context(), strings.NewReader("nonsense")); !errs.Is(err, errs.Corrupt) {
		t.Errorf("loading nonsense: %v", err)
	}
}

func testCancel(t *testing.T, c Config) {
	w := boot(t, c, c.New(t), "one")
	ctx, cancel := context.WithCancel(t.Context())
	p, err := w.in.Exec(ctx, engine.Cmd{Args: []string{"sh", "-c", "while :; do :; done"}})
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(20*time.Millisecond, cancel)
	if status, err := p.Wait(ctx); status != 137 || !errs.Is(err, errs.Canceled) {
		t.Errorf("status %d, %v", status, err)
	}
}

func testSignal(t *testing.T, c Config) {
	w := boot(t, c, c.New(t), "one")
	r, out := io.Pipe()
	p, err := w.in.Exec(t.Context(), engine.Cmd{Args: []string{"bash", "-c", "trap 'echo got; exit 7' TERM; echo ready; while :; do sleep 0.01; done"}, Stdout: out})
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 6)
	io.ReadFull(r, buf)
	go io.Copy(io.Discard, r)
	if err := p.Signal(15); err != nil {
		t.Error(err)
	}
	if status, err := p.Wait(t.Context()); status != 7 || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
	if err := p.Signal(0); !errs.Is(err, errs.Invalid) {
		t.Errorf("signal 0: %v", err)
	}
	if err := p.Resize(engine.Size{Cols: 1, Rows: 1}); !errs.Is(err, errs.Invalid) {
		t.Errorf("resizing what has no terminal: %v", err)
	}
}

// locked is a buffer that is read while it is written.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// eventually waits for something to become true.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

func testTerminal(t *testing.T, c Config) {
	w := boot(t, c, c.New(t), "one")
	in, typed := io.Pipe()
	defer in.Close()
	var out locked
	p, err := w.in.Exec(t.Context(), engine.Cmd{Args: []string{"sh", "-c", "test -t 0 && test -t 1 && echo tty; read x; echo \"got <$x>\"; cat"}, Stdin: in, Stdout: &out, TTY: &engine.Size{Cols: 80, Rows: 24}})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the prompt", func() bool { return strings.Contains(out.String(), "tty\r\n") })
	io.WriteString(typed, "wrogn\x15right\r")
	eventually(t, "the line", func() bool { return strings.Contains(out.String(), "got <right>\r\n") })
	if err := p.Resize(engine.Size{Cols: 100, Rows: 40}); err != nil {
		t.Error(err)
	}
	io.WriteString(typed, "\x03") // interrupts cat and the shell
	if status, err := p.Wait(t.Context()); status != 130 || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
}

func testList(t *testing.T, c Config) {
	e := c.New(t)
	boot(t, c, e, "one")
	two := boot(t, c, e, "two")
	list, err := e.List(t.Context())
	if err != nil || len(list) != 2 || list[0].ID != "one" || list[1].ID != "two" {
		t.Errorf("list: %+v, %v", list, err)
	}
	if err := two.in.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if list, _ := e.List(t.Context()); len(list) != 1 {
		t.Errorf("after a stop: %+v", list)
	}
}

func ids(n int) []engine.Identity {
	var out []engine.Identity
	for i := range n {
		out = append(out, engine.Identity{ID: fmt.Sprintf("child-%d", i+1), Env: []string{fmt.Sprintf("CHILD=%d", i+1)}})
	}
	return out
}

func (w *world) fork(n int) []*world {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), w.c.limit(20*time.Second))
	defer cancel()
	children, err := engine.Fork(ctx, w.in, w.set, ids(n), engine.FreezeOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var out []*world
	for _, c := range children {
		out = append(out, adopt(w.t, w.c, c))
	}
	return out
}

// Files are those of the fork's instant, by each volume's policy, and apart from then on.
func testFork(t *testing.T, c Config) {
	w := boot(t, c, c.New(t), "parent")
	w.sh("echo before > f; echo x > /scratch/f; echo root > /tmp/f")
	kids := w.fork(3)
	w.sh("echo parent > f; rm /tmp/f")
	for i, k := range kids {
		k.want("cat f /tmp/f; ls /scratch; echo $CHILD", fmt.Sprintf("before\nroot\n%d\n", i+1))
		k.sh(fmt.Sprintf("echo %d > f; echo own > own%d", i, i))
	}
	for i, k := range kids {
		k.want("cat f; ls", fmt.Sprintf("%d\nf\nown%d\n", i, i))
	}
	grandchild := kids[1].fork(1)[0]
	grandchild.want("cat f", "1\n")
	w.want("cat f; ls", "parent\nf\n")
}

// A script goes on in each fork from where it was, with its variables, and its descriptors at their offsets.
func testForkShell(t *testing.T, c Config) {
	w := boot(t, c, c.New(t), "parent")
	script := `exec 3<in; i=0; declare -A seen; f() { seen[$1]=yes; }
echo started > started
while [ ! -e go ]; do i=$((i+1)); sleep 0.01; done
read line <&3; f "$line"; echo "$line ${#seen[@]} $((i > 0)) $BASHPID $$" > out; cat <&3 >> out`
	w.sh("printf '1\\n2\\n3\\n' > in")
	p, err := w.in.Exec(t.Context(), engine.Cmd{Args: []string{"bash", "-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "start", func() bool { return w.sh("ls started 2>/dev/null") == "started\n" })
	kids := w.fork(2)
	w.sh("touch go")
	if status, err := p.Wait(t.Context()); status != 0 || err != nil {
		t.Fatalf("status %d, %v", status, err)
	}
	want := fmt.Sprintf("1 1 1 %d %d\n2\n3\n", p.Pid(), p.Pid())
	w.want("cat out", want)
	for _, k := range kids {
		k.want("ls out 2>/dev/null; ls", "in\nstarted\n")
		k.sh("touch go")
		eventually(t, "the copy's end", func() bool { return strings.Count(k.sh("cat out 2>/dev/null"), "\n") == 3 })
		k.want("cat out", want)
	}
}

func testPause(t *testing.T, c Config) {
	w := boot(t, c, c.New(t), "one")
	p, err := w.in.Exec(t.Context(), engine.Cmd{Args: []string{"bash", "-c", "while [ ! -e stop ]; do echo x >> ticks; done"}})
	if err != nil {
		t.Fatal(err)
	}
	size := func() int64 {
		ns := w.in.(engine.Filer).Namespace()
		a, err := ns.Stat(t.Context(), volumeCred, "", "/workspace/ticks")
		if err != nil {
			return 0
		}
		return a.Size
	}
	eventually(t, "ticks", func() bool { return size() > 10 })
	ctx, cancel := context.WithTimeout(t.Context(), c.limit(10*time.Second))
	defer cancel()
	f, err := w.in.Freeze(ctx, engine.FreezeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	before := size()
	time.Sleep(30 * time.Millisecond)
	if after := size(); after != before {
		t.Errorf("frozen, it went from %d to %d", before, after)
	}
	if err := f.Thaw(); err != nil {
		t.Error(err)
	}
	eventually(t, "it goes on", func() bool { return size() > before })
	w.sh("touch stop")
	p.Wait(t.Context())
}

// A command that can't be copied holds a fork up, which then changes nothing; if asked it is left out.
func testBusy(t *testing.T, c Config) {
	if c.Copies {
		t.Skip("nothing is ever busy in this engine: every process can be copied")
	}
	w := boot(t, c, c.New(t), "one")
	in, typed := io.Pipe()
	defer in.Close()
	p, err := w.in.Exec(t.Context(), engine.Cmd{Args: []string{"wc", "-c"}, Stdin: in})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := engine.Fork(ctx, w.in, w.set, ids(1), engine.FreezeOptions{}); !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), "wc") {
		t.Errorf("a busy fork: %v", err)
	}
	ctx2, cancel2 := context.WithTimeout(t.Context(), c.limit(5*time.Second))
	defer cancel2()
	kids, err := engine.Fork(ctx2, w.in, w.set, ids(1), engine.FreezeOptions{Kill: true})
	if err != nil {
		t.Fatal(err)
	}
	adopt(t, c, kids[0]).want("echo here", "here\n")
	typed.Close()
	if status, err := p.Wait(t.Context()); status != 0 || err != nil {
		t.Errorf("the original: status %d, %v", status, err)
	}
}

// hibernating waits in a loop, with children that wait in sleep, cat, timeout and tail.
const hibernating = `n=41; exec 4<in; read x <&4; mkfifo p q
cat p > catted & c=$!
(sleep 0.3; echo slept > slept) & s=$!
timeout 60 cat q > timed & d=$!
tail -s 0.01 -f in > tailed & t=$!
exec 5>p 6>q; echo one >&5
until grep -q b tailed; do sleep 0.01; done; echo up > up
while [ ! -e go ]; do sleep 0.01; done
read y <&4; echo two >&5; echo three >&6; echo c >> in; exec 5>&- 6>&-; wait $c $s $d
until grep -q c tailed; do sleep 0.01; done; kill $t
{ echo $x $y $((n+1)); echo $(cat catted); cat slept timed; echo $(cat tailed); } > out.new; mv out.new out`

// A sandbox is written to disk while a script runs, ended, and goes on in another engine.
func testHibernate(t *testing.T, c Config) {
	if !c.Saves {
		t.Skip("THIS ENGINE DOESN'T SAVE IMAGES: hibernation runs with engines that do")
	}
	w := boot(t, c, c.New(t), "one")
	w.sh("printf 'a\\nb\\n' > in")
	if _, err := w.in.Exec(t.Context(), engine.Cmd{Args: []string{"bash", "-c", hibernating}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "start", func() bool { return w.sh("ls up 2>/dev/null") == "up\n" })
	ctx, cancel := context.WithTimeout(t.Context(), c.limit(20*time.Second))
	defer cancel()
	image, cut, err := engine.Capture(ctx, w.in, w.set, "cut", engine.FreezeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.in.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	var disk, volumes bytes.Buffer
	if err := image.Save(ctx, &disk, cut.Mounts()); err != nil {
		t.Fatal(err)
	}
	if err := cut.Save(&volumes); err != nil {
		t.Fatal(err)
	}
	image.Close()
	cut.Close(ctx)
	image, err = c.New(t).Load(ctx, &disk)
	if err != nil {
		t.Fatal(err)
	}
	cut, err = volume.Load(ctx, volume.Options{UID: 1000, GID: 1000}, &volumes)
	if err != nil {
		t.Fatal(err)
	}
	kids, err := engine.StartAll(ctx, image, cut, ids(2))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kids {
		a := adopt(t, c, k)
		a.sh("touch go")
		eventually(t, "the end", func() bool { return a.sh("cat out 2>/dev/null") != "(status 1)" && a.sh("cat out") != "" })
		a.want("cat out", "a b 42\none two\nslept\nthree\na b c\n")
	}
}

// Many forks at once, of a sandbox in which others work.
func testMany(t *testing.T, c Config) {
	w := boot(t, c, c.New(t), "parent")
	w.sh("echo x > f")
	for i, k := range w.fork(cmp.Or(c.Forks, 20)) {
		k.sh(fmt.Sprintf("echo %d >> f", i))
		k.want("cat f", fmt.Sprintf("x\n%d\n", i))
	}
}

// volumeCred looks at files from outside.
var volumeCred = vfs.Cred{}

// testAttach takes up a command in a fork that another client started in the parent, with and without a terminal.
func testAttach(t *testing.T, c Config) {
	w := boot(t, c, c.New(t), "attach")
	if _, ok := w.in.(engine.Attacher); !ok {
		t.Skip("this engine's commands can't be taken up again: its instances are no engine.Attacher")
	}
	r, in := io.Pipe()
	defer in.Close()
	var first, second safe
	script := "echo begin; read a; echo got $a; read b; echo got $b; exit 3"
	plain, err := w.in.Exec(t.Context(), engine.Cmd{Args: []string{"bash", "-c", script}, Stdin: r, Stdout: &first})
	if err != nil {
		t.Fatal(err)
	}
	tr, tin := io.Pipe()
	defer tin.Close()
	term, err := w.in.Exec(t.Context(), engine.Cmd{Args: []string{"bash", "-c", script}, Stdin: tr, Stdout: &second, TTY: &engine.Size{Cols: 80, Rows: 24}})
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(in, "one\n")
	io.WriteString(tin, "one\n")
	eventually(t, "first answers", func() bool {
		return strings.Contains(first.String(), "got one") && strings.Contains(second.String(), "got one")
	})
	children, err := engine.Fork(t.Context(), w.in, w.set, []engine.Identity{{ID: "attach-1"}}, engine.FreezeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	child := adopt(t, c, children[0])
	a := child.in.(engine.Attacher)
	if got := a.Running(); len(got) != 2 || got[0].Pid != plain.Pid() || got[0].TTY || !got[1].TTY || len(got[0].Args) != 3 {
		t.Errorf("running in the fork: %+v", got)
	}
	if _, err := a.Attach(t.Context(), 4711, engine.Cmd{}); !errs.Is(err, errs.NotFound) {
		t.Errorf("attach to no command: %v", err)
	}
	for _, p := range []engine.Process{plain, term} {
		cr, cin := io.Pipe()
		var out safe
		taken, err := a.Attach(t.Context(), p.Pid(), engine.Cmd{Stdin: cr, Stdout: &out})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Attach(t.Context(), p.Pid(), engine.Cmd{}); !errs.Is(err, errs.Exists) {
			t.Errorf("a second client: %v", err)
		}
		io.WriteString(cin, "child\n")
		if status, err := taken.Wait(t.Context()); status != 3 || err != nil {
			t.Errorf("status %d, %v", status, err)
		}
		cin.Close()
		if !strings.Contains(out.String(), "got child") || strings.Contains(out.String(), "begin") {
			t.Errorf("output in the fork: %q", out.String())
		}
	}
	io.WriteString(in, "parent\n")
	io.WriteString(tin, "parent\n")
	for i, p := range []engine.Process{plain, term} {
		if status, err := p.Wait(t.Context()); status != 3 || err != nil {
			t.Errorf("parent %d: status %d, %v", i, status, err)
		}
	}
	for _, s := range []string{first.String(), second.String()} {
		if !strings.Contains(s, "got parent") || strings.Contains(s, "got child") {
			t.Errorf("output in the parent: %q", s)
		}
	}
}

// safe is a buffer that is written and read at once.
type safe struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
