package shell_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentrun.dev/command"
	"agentrun.dev/command/coreutils"
	"agentrun.dev/proc"
	"agentrun.dev/shell"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

// world is a sandbox with its root in memory.
type world struct {
	root *memfs.FS
	ns   *vfs.Namespace
	s    *proc.Sandbox
}

func commands() proc.Commands {
	return command.NewSet(map[string]proc.Program{"bash": shell.New(false), "sh": shell.New(true)})
}

func newWorld(t testing.TB) *world {
	t.Helper()
	ctx := context.Background()
	w := &world{root: memfs.New(memfs.Options{Mode: 0o777})}
	w.ns = vfs.NewNamespace(vfs.Mount{FS: w.root, Special: proc.OpenSpecial})
	if err := w.ns.Mkdir(ctx, vfs.Cred{}, "/", "/tmp", 0o777); err != nil {
		t.Fatal(err)
	}
	w.ns.Mkdir(ctx, vfs.Cred{}, "/", "/proc", 0o755)
	cmds := commands()
	for path, fs := range map[string]vfs.FS{"/bin": proc.NewBin(cmds), "/dev": proc.NewDev()} {
		if err := w.ns.Mount(ctx, vfs.Mount{Path: path, FS: fs, Special: proc.OpenSpecial}); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if w.s, err = proc.New(proc.Options{Namespace: w.ns, Commands: cmds}); err != nil {
		t.Fatal(err)
	}
	if err := w.ns.Mount(ctx, vfs.Mount{Path: "/proc", FS: proc.NewProc(w.s), Special: proc.OpenSpecial}); err != nil {
		t.Fatal(err)
	}
	return w
}

// output collects what a script writes.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer

	log testing.TB
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.log != nil {
		o.log.Logf("%s", b)
	}
	return o.b.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// start begins a script.
func (w *world) start(t testing.TB, script string, out *output) *proc.Process {
	t.Helper()
	files := map[int]vfs.File{0: proc.NewInput(nil, false), 1: w.s.NewOutput(out, false), 2: w.s.NewOutput(&output{log: t}, false)}
	// The end is late enough for a copy to be attached to.
	p, err := w.s.NewProcess(proc.Root{Args: []string{"bash", "-c", `bash -c "$0"; st=$?; mkfifo late; exec 9<>late; read -t 0.25 -u 9; exit $st`, script}, Env: []string{"PATH=/bin", "TZ=UTC0"}, Dir: "/tmp", Files: files})
	if err != nil {
		t.Fatal(err)
	}
	p.Start(shell.New(false))
	return p
}

func (w *world) close(t testing.TB) {
	if d := w.s.Defect(); d != "" {
		t.Error(d)
	}
	w.s.Close(context.Background())
}

// copyOf freezes a sandbox, starts n copies of it and lets it go on. before is what had been written.
func (w *world) copyOf(t testing.TB, n int, out *output, again func(*proc.Image) *proc.Image) (copies []*world, before string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	f, err := w.s.Freeze(ctx, proc.FreezeOptions{})
	if err != nil {
		return nil, "", err
	}
	defer f.Thaw()
	before = out.String()
	im, err := f.Capture()
	if err != nil {
		return nil, "", err
	}
	defer im.Close()
	if again != nil {
		im = again(im)
	}
	for range n {
		c := &world{root: w.root.Clone()}
		c.ns, err = w.ns.Clone(func(m vfs.Mount) (vfs.Mount, error) {
			if m.Path == "/" {
				m.FS = c.root
			}
			return m, nil
		})
		if err == nil {
			c.s, err = im.Start(proc.StartOptions{Namespace: c.ns, Commands: commands(), Prepare: func(s *proc.Sandbox) error {
				c.ns.Unmount("/proc")
				return c.ns.Mount(context.Background(), vfs.Mount{Path: "/proc", FS: proc.NewProc(s), Special: proc.OpenSpecial})
			}})
		}
		if err != nil {
			return nil, "", err
		}
		copies = append(copies, c)
	}
	return copies, before, nil
}

// attach reads what a copy's script writes from now on. It is nil if that has ended, with what it wrote.
func (w *world) attach(t testing.TB, pid int) (*proc.Process, *output) {
	p, out := w.s.Lookup(pid), &output{}
	if p == nil {
		return nil, nil
	}
	if _, err := w.s.Attach(pid, proc.Streams{Stdout: out}); err != nil {
		select {
		case <-p.Done():
			return nil, nil
		default:
			t.Fatal(err)
		}
	}
	return p, out
}

// finish waits for a copy's script and returns what it has written since.
func (w *world) finish(t testing.TB, p *proc.Process, out *output) (string, int) {
	select {
	case <-p.Done():
	case <-time.After(20 * time.Second):
		for _, q := range w.s.Processes() {
			t.Logf("%d of %d: %v %q", q.Pid(), q.Ppid(), q.Fds(), q.Args())
		}
		t.Fatalf("the copy hangs; so far %q", out.String())
	}
	return out.String(), p.Status()
}

// A sandbox that is frozen at any moment goes on as if it hadn't been, and so do copies of it.
func TestFreeze(t *testing.T) {
	files, _ := filepath.Glob("testdata/state/*.sh")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split("\n"+string(data), "\n#### ")[1:] {
			name, script, _ := strings.Cut(part, "\n")
			t.Run(name, func(t *testing.T) { frozen(t, script, nil) })
			t.Run(name+" saved", func(t *testing.T) { frozen(t, script, saved(t)) })
		}
	}
}

// saved returns what writes an image and reads it again.
func saved(t *testing.T) func(*proc.Image) *proc.Image {
	return func(im *proc.Image) *proc.Image {
		var b bytes.Buffer
		if err := im.Save(&b, nil); err != nil {
			t.Fatal(err)
		}
		im, err := proc.LoadImage(&b, func(kind string, data []byte) (proc.State, error) {
			if kind == shell.Kind {
				return shell.Restore(data)
			}
			return coreutils.Restore(kind, data)
		})
		if err != nil {
			t.Fatal(err)
		}
		return im
	}
}

func frozen(t *testing.T, script string, again func(*proc.Image) *proc.Image) {
	t.Parallel()
	w := newWorld(t)
	defer w.close(t)
	out := &output{}
	begun := time.Now()
	p := w.start(t, script, out)
	<-p.Done()
	took, want, status := time.Since(begun), out.String(), p.Status()
	rounds := 3
	if again != nil {
		rounds = 1
	}
	for round := range rounds {
		w := newWorld(t)
		defer w.close(t)
		out := &output{}
		p := w.start(t, script, out)
		time.Sleep(time.Duration(rand.Int64N(int64(took))))
		copies, before, err := w.copyOf(t, 2, out, again)
		select {
		case <-p.Done():
			if err == nil && len(copies) > 0 && copies[0].s.Lookup(p.Pid()) == nil {
				continue // it had ended
			}
		default:
		}
		if err != nil {
			t.Fatal(round, err)
		}
		t.Logf("round %d: frozen after %d of %d bytes", round, len(before), len(want))
		scripts, outs := make([]*proc.Process, len(copies)), make([]*output, len(copies))
		for i, c := range copies { // all at once, before the first has ended
			defer c.close(t)
			scripts[i], outs[i] = c.attach(t, p.Pid())
		}
		for i, c := range copies {
			if scripts[i] == nil {
				t.Logf("round %d: copy %d has ended already", round, i)
				continue
			}
			after, st := c.finish(t, scripts[i], outs[i])
			if before+after != want || st != status {
				t.Errorf("round %d, copy %d: status %d, want %d, want output:\n%s\nbefore:\n%s\nafter:\n%s", round, i, st, status, want, before, after)
			}
		}
		<-p.Done()
		if got := out.String(); got != want || p.Status() != status {
			t.Errorf("round %d, the original: status %d, want %d, got:\n%s\nwant:\n%s", round, p.Status(), status, got, want)
		}
	}
}
