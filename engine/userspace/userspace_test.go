package userspace

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentrun.dev/command"
	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/shell"
)

func open(t testing.TB, o Options) *Sandbox {
	t.Helper()
	o.Commands = command.NewSet(map[string]proc.Program{"bash": shell.New(false), "sh": shell.New(true), "nap": proc.Func(nap)})
	s, err := New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// nap sleeps for some milliseconds.
func nap(p *proc.Process) int {
	n, _ := strconv.Atoi(p.Args()[1])
	if p.Sleep(time.Duration(n)*time.Millisecond) != nil {
		return 1
	}
	return 0
}

// run executes a script and returns its output and status.
func run(t testing.TB, s *Sandbox, c Cmd) (out, errOut string, status int, err error) {
	t.Helper()
	var o, e bytes.Buffer
	c.Stdout, c.Stderr = &o, &e
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	status, err = s.Run(ctx, c)
	return o.String(), e.String(), status, err
}

func bash(script string) Cmd { return Cmd{Args: []string{"bash", "-c", script}} }

func TestExec(t *testing.T) {
	s := open(t, Options{Env: []string{"X=1"}})
	for _, tc := range []struct {
		name   string
		cmd    Cmd
		out    string
		status int
	}{
		{"direct command", Cmd{Args: []string{"echo", "a", "b"}}, "a b\n", 0},
		{"by path", Cmd{Args: []string{"/bin/echo", "hi"}}, "hi\n", 0},
		{"through /usr/bin", Cmd{Args: []string{"/usr/bin/echo", "hi"}}, "hi\n", 0},
		{"bash -c", bash("echo $X $0 $#; exit 3"), "1 bash 0\n", 3},
		{"sh -c with arguments", Cmd{Args: []string{"sh", "-c", "echo $0 $1", "n", "a"}}, "n a\n", 0},
		{"bash -s", Cmd{Args: []string{"bash", "-s", "a"}, Stdin: strings.NewReader("echo $1\nread x\nline\necho $x\n")}, "a\nline\n", 0},
		{"script from input", Cmd{Args: []string{"bash"}, Stdin: strings.NewReader("cat\nrest\n")}, "rest\n", 0},
		{"no such command", Cmd{Args: []string{"nosuch"}}, "", 127},
		{"a directory", Cmd{Args: []string{"/tmp"}}, "", 126},
		{"own environment", Cmd{Args: []string{"bash", "-c", "echo $Y"}, Env: []string{"Y=2"}}, "2\n", 0},
		{"directory", Cmd{Args: []string{"bash", "-c", "pwd"}, Dir: "/tmp"}, "/tmp\n", 0},
		{"script file", bash(`printf '#!/bin/sh\necho "s:$1"\n' > /tmp/s; printf 'echo plain $0\n' > /tmp/p; umask 0; /bin/sh /tmp/s x; bash /tmp/p`), "s:x\nplain /tmp/p\n", 0},
		{"in the background", bash("{ nap 30; echo late; } & echo early; wait"), "early\nlate\n", 0},
		{"what is left in the background", bash("(nap 10; echo late) &"), "late\n", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, errOut, status, err := run(t, s, tc.cmd)
			if err != nil || out != tc.out || status != tc.status {
				t.Errorf("got %q, status %d, %v; want %q, %d\n%s", out, status, err, tc.out, tc.status, errOut)
			}
		})
	}
}

func TestLayout(t *testing.T) {
	s := open(t, Options{})
	out, errOut, _, _ := run(t, s, bash(`
cd; pwd; echo ~root $UID $HOSTNAME
for f in /bin/ls /dev/null /dev/fd /etc/passwd /home/user /proc/self/status /root /tmp /usr/bin/ls /workspace; do [ -e $f ] || echo missing $f; done
[ -w /bin ] && echo writable
echo x > /workspace/f && echo y > /tmp/f && cat /workspace/f /tmp/f
echo z > /etc/passwd || echo denied
command -v ls; type -t cat
read -r pid rest < /proc/self/stat; [ $pid = $$ ] && echo self
`))
	want := "/home/user\n/root 1000 sandbox\nx\ny\ndenied\n/usr/bin/ls\nfile\nself\n"
	if out != want {
		t.Errorf("got %q\nwant %q\n%s", out, want, errOut)
	}
}

// Nothing of this process shows inside.
func TestNothingOfTheHost(t *testing.T) {
	t.Setenv("AGENTRUN_TEST_SECRET", "from-the-host")
	s := open(t, Options{})
	out, _, _, _ := run(t, s, bash(`export -p; set; cat /proc/self/environ /proc/*/cmdline /proc/version /proc/cpuinfo; echo /proc/[0-9]*; ls / /dev /proc /etc`))
	if strings.Contains(out, "from-the-host") || strings.Contains(out, "AGENTRUN_TEST") {
		t.Error("the host's environment is visible")
	}
	if strings.Contains(out, "/proc/1 ") {
		t.Error("a foreign process is visible")
	}
}

// Runaway programs end, with a word about why, and the sandbox goes on.
func TestLimits(t *testing.T) {
	for _, tc := range []struct {
		name, script, says string
		limits             proc.Limits
	}{
		{"fork bomb", `f() { f | f & wait; }; f 2>&1 | head -n 1; :`, "", proc.Limits{Processes: 40}},
		{"endless output", `while :; do echo yyyyyyyyyyyyyyyy; done`, "output", proc.Limits{OutputBytes: 1 << 16}},
		{"endless loop", `while :; do :; done`, "steps", proc.Limits{Steps: 20000}},
		{"endless recursion", `f() { f; }; f; echo after`, "", proc.Limits{Depth: 1000}},
		{"recursion in substitutions", `f() { echo $(f); }; f; echo after`, "", proc.Limits{Processes: 60}},
		{"variables", `x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done`, "", proc.Limits{Memory: 1 << 20}},
		{"an array", `while :; do a+=(xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx); done`, "", proc.Limits{Memory: 1 << 20}},
		{"descriptors", `i=3; while exec {fd}</dev/null; do :; done; echo after`, "", proc.Limits{Files: 64}},
		{"output of a substitution", `x=$(while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done); echo after`, "", proc.Limits{Memory: 1 << 18}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := open(t, Options{Limits: tc.limits})
			_, errOut, status, err := run(t, s, bash(tc.script))
			if tc.says != "" && (!errs.Is(err, errs.Limit) || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("status %d, error %v, %.200s", status, err, errOut)
			}
			if tc.says == "" && err != nil {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	s := open(t, Options{})
	for _, script := range []string{"nap 1000000", "while :; do :; done", "cat", "x=$(nap 1000000)", "nap 1000000 | cat", "wait & nap 1000000", "trap '' TERM INT; nap 1000000", "read x"} {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(30*time.Millisecond, cancel)
		r, w := newStuck()
		status, err := s.Run(ctx, Cmd{Args: []string{"bash", "-c", script}, Stdin: r})
		w()
		if !errs.Is(err, errs.Canceled) || status != 137 {
			t.Errorf("%s: status %d, %v", script, status, err)
		}
		cancel()
	}
	if n := len(s.sb.Processes()); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

// newStuck returns a reader that gives nothing until it is released.
func newStuck() (*stuck, func()) {
	s := &stuck{ch: make(chan struct{})}
	return s, func() { close(s.ch) }
}

type stuck struct{ ch chan struct{} }

func (s *stuck) Read([]byte) (int, error) { <-s.ch; return 0, context.Canceled }

func TestSignals(t *testing.T) {
	s := open(t, Options{})
	ready := &notify{ch: make(chan struct{})}
	p, err := s.Exec(context.Background(), Cmd{Args: []string{"bash", "-c", "trap 'echo got; exit 7' TERM; echo ready; while :; do nap 10; done"}, Stdout: ready})
	if err != nil {
		t.Fatal(err)
	}
	<-ready.ch
	if err := p.Signal(proc.SIGTERM); err != nil {
		t.Error(err)
	}
	status, err := p.Wait(context.Background())
	if status != 7 || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
}

// notify closes ch at the first write.
type notify struct {
	ch   chan struct{}
	done bool
}

func (n *notify) Write(b []byte) (int, error) {
	if !n.done {
		n.done = true
		close(n.ch)
	}
	return len(b), nil
}
