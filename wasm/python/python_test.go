package python_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"

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

var interpreter = sync.OnceValue(func() *python.Interpreter {
	return python.New(python.Options{Runtime: sync.OnceValues(func() (*wasm.Runtime, error) {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, err
		}
		return wasm.New(wasm.Options{CacheDir: filepath.Join(cache, "agentrun-test", "wasm")})
	})})
})

// sandbox makes one with python3 and a few commands.
func sandbox(t testing.TB, limits proc.Limits) *proc.Sandbox {
	t.Helper()
	library := interpreter().Library()
	if library == nil {
		t.Skip("NO GUESTS HERE: python.wasm is missing; 'make guests' builds it, and 'make test' does so first")
	}
	ctx := context.Background()
	fs := memfs.New(memfs.Options{})
	ns := vfs.NewNamespace(vfs.Mount{FS: fs, Special: proc.OpenSpecial})
	root := vfs.Cred{}
	for _, d := range []string{"/bin", "/dev", "/etc", "/home", "/home/user", "/tmp", "/usr", "/usr/lib", "/usr/lib/python3.11", "/work"} {
		if err := ns.Mkdir(ctx, root, "", d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := ns.Symlink(ctx, root, "", "/bin", "/usr/bin"); err != nil {
		t.Fatal(err)
	}
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
	for _, m := range []vfs.Mount{{Path: "/bin", FS: proc.NewBin(c)}, {Path: "/dev", FS: proc.NewDev(), Special: proc.OpenSpecial}, {Path: "/usr/lib/python3.11", FS: library, ReadOnly: true}} {
		if err := ns.Mount(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	s, err := proc.New(proc.Options{Namespace: ns, Commands: c, Limits: limits})
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
	p, err := s.NewProcess(proc.Root{Args: args, Dir: "/work", Env: []string{"PATH=/bin", "HOME=/home/user"}, Cred: vfs.Cred{UID: 1000, GID: 1000, Umask: 0o022},
		Files: map[int]vfs.File{0: proc.NewInput(strings.NewReader(stdin), false), 1: s.NewOutput(&o, false), 2: s.NewOutput(&e, false)}})
	if err != nil {
		t.Fatal(err)
	}
	file, err := p.Find(args[0], "/bin")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.StartFile(file, args); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	return o.String(), e.String(), p.Status()
}

func TestTry(t *testing.T) {
	s := sandbox(t, proc.Limits{})
	for _, c := range strings.Split(os.Getenv("TRY"), "\n%%\n") {
		out, errOut, status := run(t, s, "", "python3", "-c", c)
		t.Logf("%s\n%s%s-> %d", c, out, errOut, status)
	}
}
