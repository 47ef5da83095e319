package js_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
	"agentrun.dev/wasm"
	"agentrun.dev/wasm/guests"
	"agentrun.dev/wasm/js"
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

var interpreter = sync.OnceValue(func() *js.Interpreter {
	return js.New(js.Options{Runtime: sync.OnceValues(func() (*wasm.Runtime, error) {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, err
		}
		return wasm.New(wasm.Options{CacheDir: filepath.Join(cache, "agentrun-test", "wasm"), Stack: 40 << 20})
	})})
})

// box is a sandbox with node and a few commands; /t is the folder testdata.
type box struct {
	t testing.TB
	s *proc.Sandbox
}

func newBox(t testing.TB, limits proc.Limits) *box {
	t.Helper()
	if !guests.Has("js.wasm") {
		t.Skip("NO GUESTS HERE: js.wasm is missing; 'make guests' builds it, and 'make test' does so first")
	}
	ctx, root := context.Background(), vfs.Cred{}
	ns := vfs.NewNamespace(vfs.Mount{FS: memfs.New(memfs.Options{}), Special: proc.OpenSpecial})
	for _, d := range []string{"/bin", "/dev", "/etc", "/tmp", "/usr", "/t", "/task", "/proc"} {
		if err := ns.Mkdir(ctx, root, "", d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := ns.Symlink(ctx, root, "", "/bin", "/usr/bin"); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		put(t, ns, "/t/"+filepath.Base(name), string(data))
	}
	c := commands{
		"echo": proc.Func(func(p *proc.Process) int {
			io.WriteString(p.Stdout(), strings.Join(p.Args()[1:], " ")+"\n")
			return 0
		}),
		"cat": proc.Func(func(p *proc.Process) int {
			io.Copy(p.Stdout(), p.Stdin())
			return 0
		}),
	}
	for name, prog := range interpreter().Programs() {
		c[name] = prog
	}
	for _, m := range []vfs.Mount{{Path: "/bin", FS: proc.NewBin(c)}, {Path: "/dev", FS: proc.NewDev(), Special: proc.OpenSpecial}} {
		if err := ns.Mount(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	s, err := proc.New(proc.Options{Namespace: ns, Commands: c, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
		if d := s.Defect(); d != "" {
			t.Error(d)
		}
	})
	return &box{t, s}
}

func put(t testing.TB, ns *vfs.Namespace, name, text string) {
	t.Helper()
	f, err := ns.Open(context.Background(), vfs.Cred{}, "/", name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		t.Fatal(err)
	}
}

type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func (b *box) start(dir, stdin string, args ...string) (p *proc.Process, out, errOut *output) {
	b.t.Helper()
	out, errOut = &output{}, &output{}
	p, err := b.s.NewProcess(proc.Root{Args: args, Dir: dir, Env: []string{"PATH=/bin", "HOME=/task"}, Files: map[int]vfs.File{
		0: proc.NewInput(strings.NewReader(stdin), false), 1: b.s.NewOutput(out, false), 2: b.s.NewOutput(errOut, false)}})
	if err != nil {
		b.t.Fatal(err)
	}
	p.Umask(0o022)
	if err := p.StartFile("/bin/"+args[0], args); err != nil {
		b.t.Fatal(err)
	}
	return p, out, errOut
}

func (b *box) run(dir, stdin string, args ...string) (out, errOut string, status int) {
	b.t.Helper()
	p, o, e := b.start(dir, stdin, args...)
	select {
	case <-p.Done():
	case <-time.After(2 * time.Minute):
		b.t.Fatal("it hangs")
	}
	return o.String(), e.String(), p.Status()
}

// Scripts print what they print in Node.
func TestAgainstNode(t *testing.T) {
	b := newBox(t, proc.Limits{})
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("NO NODE HERE: the scripts in testdata can't be compared; install Node 20")
	}
	if v, _ := exec.Command(node, "--version").Output(); !strings.HasPrefix(string(v), "v20.") {
		t.Skipf("NOT NODE 20: %s: the scripts in testdata are compared with Node 20", v)
	}
	scripts, err := filepath.Glob("testdata/*.*js")
	if err != nil || len(scripts) < 5 {
		t.Fatal(scripts, err)
	}
	for _, s := range scripts {
		name := filepath.Base(s)
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(node, name, "arg1")
			cmd.Dir = "testdata"
			cmd.Stdin = strings.NewReader("line one\nline two\n")
			var e bytes.Buffer
			cmd.Stderr = &e
			want, err := cmd.Output()
			status := cmd.ProcessState.ExitCode()
			if err != nil && status <= 0 {
				t.Fatal(err)
			}
			out, errOut, got := b.run("/t", "line one\nline two\n", "node", name, "arg1")
			if out != string(want) || got != status {
				t.Errorf("status %d, Node's is %d\n%s\n%s", got, status, difference(out, string(want)), errOut)
			}
		})
	}
}

// difference shows the lines where two texts begin to differ.
func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			return "got:\n" + strings.Join(g[min(i, len(g)):min(i+8, len(g))], "\n") + "\nNode:\n" + strings.Join(w[min(i, len(w)):min(i+8, len(w))], "\n")
		}
	}
	return "the same"
}
