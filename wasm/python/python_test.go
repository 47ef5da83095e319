package python_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"sync"
	"testing"

	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
	"agentrun.dev/wasm"
	"agentrun.dev/wasm/python"
)

type commands map[string]proc.Program

func (c commands) Lookup(name string) (proc.Program, bool) { p, ok := c[name]; return p, ok }
func (c commands) Names() []string {
	var out []string
	for n := range c {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

var interpreter = sync.OnceValue(newInterpreter)

func newInterpreter() *python.Interpreter {
	dial := func(ctx context.Context, p *proc.Process, network, addr string) (net.Conn, error) {
		if d, ok := p.Sandbox().Services().(dialer); ok {
			return d(ctx, network, addr)
		}
		return nil, errs.Msg(errs.Denied, "connect", addr, "no rule").WithHint("a rule " + addr + " would allow it")
	}
	return python.New(python.Options{Dial: dial, Runtime: sync.OnceValues(func() (*wasm.Runtime, error) {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, err
		}
		return wasm.New(wasm.Options{CacheDir: filepath.Join(cache, "agentrun-test", "wasm")})
	})})
}

// programs are python3 and a few commands.
func programs() commands {
	c := commands{
		"echo": proc.Func(func(p *proc.Process) int {
			p.Stdout().Write([]byte(strings.Join(p.Args()[1:], " ") + "\n"))
			return 0
		}),
		"cat": proc.Func(func(p *proc.Process) int {
			data, _ := io.ReadAll(p.Stdin())
			p.Stdout().Write(data)
			return 0
		}),
		"fail": proc.Func(func(p *proc.Process) int { return 3 }),
	}
	for name, prog := range interpreter().Programs() {
		c[name] = prog
	}
	return c
}

// dialer is how a sandbox's processes connect to the outside.
type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// sandbox makes one with python3 and a few commands.
func sandbox(t testing.TB, limits proc.Limits) *proc.Sandbox {
	t.Helper()
	return sandboxWith(t, proc.Options{Limits: limits})
}

func sandboxWith(t testing.TB, o proc.Options) *proc.Sandbox {
	t.Helper()
	library := interpreter().Library()
	if library == nil {
		t.Skip("NO GUESTS HERE: python.wasm is missing; 'make guests' builds it, and 'make test' does so first")
	}
	ctx := context.Background()
	fs := memfs.New(memfs.Options{})
	ns := vfs.NewNamespace(vfs.Mount{FS: fs, Special: proc.OpenSpecial})
	root := vfs.Cred{}
	for _, d := range []string{"/bin", "/dev", "/etc", "/home", "/home/user", "/tmp", "/usr", "/usr/lib", "/usr/lib/python3.11", "/task"} {
		if err := ns.Mkdir(ctx, root, "", d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := ns.Symlink(ctx, root, "", "/bin", "/usr/bin"); err != nil {
		t.Fatal(err)
	}
	c := programs()
	for _, m := range []vfs.Mount{{Path: "/bin", FS: proc.NewBin(c)}, {Path: "/dev", FS: proc.NewDev(), Special: proc.OpenSpecial}, {Path: "/usr/lib/python3.11", FS: library, ReadOnly: true}} {
		if err := ns.Mount(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	o.Namespace, o.Commands = ns, c
	s, err := proc.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if d := s.Defect(); d != "" {
			t.Error(d)
		}
		s.Close(context.Background())
	})
	return s
}

// run executes a command and returns its output, errors and status.
func run(t testing.TB, s *proc.Sandbox, stdin string, args ...string) (out, errOut string, status int) {
	t.Helper()
	var o, e bytes.Buffer
	p := startWith(t, s, &o, &e, stdin, args...)
	<-p.Done()
	return o.String(), e.String(), p.Status()
}

func start(t testing.TB, s *proc.Sandbox, o io.Writer, stdin string, args ...string) *proc.Process {
	t.Helper()
	return startWith(t, s, o, o, stdin, args...)
}

// rootOf describes a process without a parent.
func rootOf(s *proc.Sandbox, o, e io.Writer, stdin string, args ...string) proc.Root {
	return proc.Root{Args: args, Dir: "/task", Env: []string{"PATH=/bin", "HOME=/home/user"}, Cred: vfs.Cred{UID: 1000, GID: 1000, Umask: 0o022},
		Files: map[int]vfs.File{0: proc.NewInput(strings.NewReader(stdin), false), 1: s.NewOutput(o, false), 2: s.NewOutput(e, false)}}
}

func startWith(t testing.TB, s *proc.Sandbox, o, e io.Writer, stdin string, args ...string) *proc.Process {
	t.Helper()
	p, err := s.NewProcess(rootOf(s, o, e, stdin, args...))
	if err != nil {
		t.Fatal(err)
	}
	file, err := p.Find(args[0], "/bin")
	if err != nil {
		t.Fatal(args[0], err)
	}
	if err := p.StartFile(file, args); err != nil {
		t.Fatal(err)
	}
	return p
}

// reference is CPython of the machine that runs the tests.
func reference(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"/usr/bin/python3.11", "python3.11"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("NO CPYTHON HERE: the comparison runs where python3.11 is installed, as on Debian 12")
	return ""
}

// TestAgainstCPython runs the scripts of testdata here and with the real interpreter: what they print and their statuses must agree.
func TestAgainstCPython(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.py")
	if err != nil || len(scripts) == 0 {
		t.Fatal("no scripts", err)
	}
	real := reference(t)
	for _, script := range scripts {
		t.Run(filepath.Base(script), func(t *testing.T) {
			text, err := os.ReadFile(script)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(real, "-")
			cmd.Stdin, cmd.Dir, cmd.Env = bytes.NewReader(text), t.TempDir(), []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent", "TZ=UTC0"}
			var want bytes.Buffer
			cmd.Stdout = &want
			cmd.Run()
			got, errOut, status := run(t, sandbox(t, proc.Limits{}), string(text), "python3", "-")
			if got != want.String() || status != cmd.ProcessState.ExitCode() {
				t.Errorf("status %d, want %d\ngot:\n%s\nwant:\n%s\nerrors:\n%s", status, cmd.ProcessState.ExitCode(), got, want.String(), errOut)
			}
		})
	}
}

const subprocesses = `
import asyncio
async def run(*args):
    p = await asyncio.create_subprocess_exec(*args)
    return await p.wait()
async def main():
    p = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    print((await p.communicate(b"x\n"))[0], p.returncode)
    print(await asyncio.gather(run("python3", "-c", "0"), run("fail")))
asyncio.run(main())`

func TestCommandLine(t *testing.T) {
	s := sandbox(t, proc.Limits{})
	for _, c := range []struct {
		args       string // separated by "|"
		stdin      string
		out, err   string // err: a part of it
		status     int
		unexpected string // must not be in err
	}{
		{args: "-c|print(1)", out: "1\n"},
		{args: "-c|import sys; print(sys.argv, sys.orig_argv)|a|-b", out: "['-c', 'a', '-b'] ['python3', '-c', 'import sys; print(sys.argv, sys.orig_argv)', 'a', '-b']\n"},
		{args: "-uBqcimport sys; print(sys.flags.dont_write_bytecode, sys.flags.quiet, sys.stdout.line_buffering)", out: "1 1 False\n"},
		{args: "-", stdin: "print(__name__, __file__ if '__file__' in globals() else None)", out: "__main__ <stdin>\n"},
		{args: "-V", out: "Python 3.11.2\n"},
		{args: "--version", out: "Python 3.11.2\n"},
		{args: "-h", out: "usage: python3 [option] ... [-c cmd | -m mod | file | -] [arg] ...\n"},
		{args: "-Z", err: "Unknown option: -Z", status: 2},
		{args: "-c", err: "Argument expected for the -c option", status: 2},
		{args: "nope.py", err: "can't open file '/task/nope.py': [Errno 2] No such file or directory", status: 2},
		{args: "-m|nope", err: "No module named nope", status: 1},
		{args: "-m|json.tool", stdin: "[1]", out: "[\n    1\n]\n"},
		{args: "-I|-c|import sys; print(sys.flags.isolated, sys.path[0])", out: "1 /usr/lib/python311.zip\n"},
		{args: "-O|-c|assert False; print(__debug__)", out: "False\n"},
		{args: "-S|-E|-c|import sys; print('site' in sys.modules)", out: "False\n"},
		{args: "-W|error|-c|import warnings; warnings.warn('x')", err: "UserWarning: x", status: 1},
		{args: "-X|utf8|-c|import sys; print(sys.flags.utf8_mode)", out: "1\n"},
		{args: "-c|import sys; sys.exit('message')", err: "message\n", status: 1},
		{args: "-c|import sys; sys.exit(300)", status: 300 & 0xff},
		{args: "-c|import os; os._exit(9)", status: 9},
		{args: "-c|import os; os.abort()", status: 134},
		{args: "-c|import os; os.kill(os.getpid(), 15)", status: 143},
		{args: "-c|raise KeyboardInterrupt", err: "KeyboardInterrupt", status: 130},
		{args: "-c|1/0", err: "ZeroDivisionError: division by zero", status: 1},
		{args: "-c|x x", err: "SyntaxError: invalid syntax", status: 1},
		{args: "-i|-c|print(2)", stdin: "3+4\n", out: "2\n7\n", err: ">>> "},
		{args: "-c|print(input('? '), input())", stdin: "a\nb\n", out: "? a b\n"},
		{args: "-c|import os; os.execvp('echo', ['echo', 'another'])", out: "another\n"},
		{args: "-c|import sys; print(sys.executable, sys.prefix, sys.platform, sys.implementation.name)", out: "/usr/bin/python3 /usr wasi cpython\n"},
		{args: "-c|import json, sys; print(json.__file__, 'decimal' in sys.modules)", out: "/usr/lib/python3.11/json/__init__.py False\n"},
		{args: "-c|import socket; socket.create_connection(('10.0.0.1', 80))", err: "network access is denied in this sandbox", status: 1},
		{args: "-m|http.server|-b|10.0.0.1", err: "Cannot assign requested address", status: 1},
		{args: "-c|import ssl; print(ssl.create_default_context().verify_mode)", out: "2\n"},
		{args: "-c|import ctypes", err: "this interpreter has no ctypes", status: 1},
		{args: "-c|import multiprocessing; multiprocessing.Pool()", err: "this interpreter has no multiprocessing", status: 1},
		{args: "-c|import threading; threading.Thread(target=print).start()", err: "can't start new thread", status: 1},
		{args: "-c|import concurrent.futures as f; print(list(f.ThreadPoolExecutor(4).map(abs, [-1, 2])))", out: "[1, 2]\n"},
		{args: "-c|import asyncio; print(asyncio.run(asyncio.to_thread(abs, -3)))", out: "3\n"},
		{args: "-c|" + subprocesses, out: "b'x\\n' 0\n[0, 3]\n"},
		{args: "-c|import os; print(os.fork)", err: "has no attribute 'fork'", status: 1},
		{args: "-c|b = bytearray(1 << 30)", err: "MemoryError", status: 1},
	} {
		t.Run(c.args, func(t *testing.T) {
			out, errOut, status := run(t, s, c.stdin, append([]string{"python3"}, strings.Split(c.args, "|")...)...)
			if c.args == "-h" {
				out, _, _ = strings.Cut(out, "\n")
				out += "\n"
			}
			if out != c.out || status != c.status || !strings.Contains(errOut, c.err) {
				t.Errorf("status %d, want %d\nout %q\nwant %q\nerrors: %s", status, c.status, out, c.out, errOut)
			}
		})
	}
}

// TestShadow: a module beside the script is meant, also when the library's is loaded already.
func TestShadow(t *testing.T) {
	s := sandbox(t, proc.Limits{})
	script := "open('random.py', 'w').write('x = 5')\nimport subprocess, sys\n" +
		"for i in range(4): subprocess.run(['python3', '-c', 'import random, json; print(random.x, json.dumps(1))'])\n"
	out, errOut, status := run(t, s, script, "python3", "-")
	if out != "5 1\n5 1\n5 1\n5 1\n" || status != 0 {
		t.Errorf("status %d, out %q\n%s", status, out, errOut)
	}
}

// TestRandom: copies of one interpreter don't share what they draw.
func TestRandom(t *testing.T) {
	s := sandbox(t, proc.Limits{})
	seen := map[string]bool{}
	for range 8 {
		out, errOut, _ := run(t, s, "", "python3", "-c", "import random, os, uuid, tempfile; print(random.random(), os.urandom(4), uuid.uuid4(), tempfile.mktemp())")
		if out == "" || seen[out] {
			t.Fatalf("%q again\n%s", out, errOut)
		}
		seen[out] = true
	}
}

// TestKill: a loop that does nothing ends when it is killed, and one that waits does so too.
func TestKill(t *testing.T) {
	s := sandbox(t, proc.Limits{})
	for _, code := range []string{"while True: pass", "import time; time.sleep(1000)", "import os; os.read(os.pipe()[0], 1)", "10**10**10"} {
		p := start(t, s, &bytes.Buffer{}, "", "python3", "-c", code)
		for p.CPU() == 0 && p.Status() == 0 && len(p.Fds()) == 0 {
			runtime.Gosched()
		}
		p.Post(proc.SIGKILL)
		<-p.Done()
		if p.Status() != 137 {
			t.Errorf("%s: status %d", code, p.Status())
		}
	}
}
