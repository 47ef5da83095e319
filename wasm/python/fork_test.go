package python_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
	"agentrun.dev/wasm/python"
)

// freeze makes an image of a sandbox at this moment.
func freeze(t testing.TB, s *proc.Sandbox) *proc.Image {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	f, err := s.Freeze(ctx, proc.FreezeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Thaw()
	im, err := f.Capture()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { im.Close() })
	return im
}

// copyOf starts an image with copies of the sandbox's files.
func copyOf(t testing.TB, s *proc.Sandbox, im *proc.Image) *proc.Sandbox {
	t.Helper()
	ns, err := s.Namespace().Clone(func(m vfs.Mount) (vfs.Mount, error) {
		if fs, ok := m.FS.(*memfs.FS); ok {
			m.FS = fs.Clone()
		}
		return m, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := im.Start(proc.StartOptions{Namespace: ns, Commands: programs()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if d := c.Defect(); d != "" {
			t.Error(d)
		}
		c.Close(context.Background())
	})
	return c
}

func write(t testing.TB, s *proc.Sandbox, name, text string) {
	t.Helper()
	f, err := s.Namespace().Open(context.Background(), vfs.Cred{UID: 1000, GID: 1000, Umask: 0o022}, "/task", name, 0o102|0o1000, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

func read(s *proc.Sandbox, name string) string {
	f, err := s.Namespace().Open(context.Background(), vfs.Cred{}, "/task", name, 0, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, 1<<16)
	n, _ := f.Read(b)
	return string(b[:n])
}

// appears waits until a file has contents.
func appears(t testing.TB, s *proc.Sandbox, name string) string {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if text := read(s, name); strings.HasSuffix(text, "\n") {
			return text
		}
	}
	t.Fatalf("%s doesn't appear", name)
	return ""
}

// Each script says that it is where it shall be forked by making the file ready, goes on until there is a file go, and writes what it knows by then.
const forkable = `
import os, random, subprocess, sys, time
state = {"steps": 0, "words": ["a", "b"]}
def gone():
    return os.path.exists("go")
def tell():
    with open("ready.tmp", "w") as f: print("ready", file=f)
    os.rename("ready.tmp", "ready")
def report(extra):
    while not (go := open("go").read()): pass # it is being written
    with open("out.tmp", "w") as f: print(go, state["words"], extra, random.random(), file=f)
    os.rename("out.tmp", "out")
log = open("log", "w", buffering=1)
`

var forkScripts = map[string]string{
	"sleep": `
tell()
for i in range(100000):
    state["steps"] += 1
    if gone(): break
    time.sleep(0.001)
report(i == state["steps"] - 1)`,
	"long sleep": `
import signal
def ring(*a): state["words"].append("rang")
signal.signal(signal.SIGALRM, ring)
def late():
    tell()
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    for i in range(3):
        end = time.monotonic() + 0.2
        time.sleep(0.2)
        yield round(time.monotonic() - end, 1)
times = list(late())
while not gone(): time.sleep(0.001)
report(times)`,
	"compute": `
tell()
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
total = 0
while True:
    for n in range(15):
        total += fib(n) - fib(n)
    x = sum(i * i for i in range(300))
    if gone(): break
report((total, x))`,
	"within C": `
def key(v):
    tell()
    while not gone(): pass
    return -v
report(sorted([1, 2, 3], key=key))`,
	"pipe": `
r, w = os.pipe()
child = subprocess.Popen(["python3", "-c", "import os, time\nwhile not os.path.exists('go'): time.sleep(0.001)\nprint('from the child', flush=True)"], stdout=w)
os.close(w)
tell()
report((os.read(r, 100), child.wait()))`,
	"wait": `
child = subprocess.Popen(["python3", "-c", "import os, sys\nwhile not os.path.exists('go'): pass\nsys.exit(7)"])
tell()
report(child.wait())`,
	"asyncio": `
import asyncio
async def ticker(n):
    while not gone():
        state["steps"] += 1
        await asyncio.sleep(0.001 * n)
    return n
async def main():
    tell()
    return await asyncio.gather(ticker(1), ticker(2))
report(asyncio.run(main()))`,
	"cold -O": `
tell()
while not gone(): time.sleep(0.001)
report(__debug__)`,
}

// TestFork copies running scripts at an arbitrary moment: each copy goes on from there with its own files, state and random numbers, and so does
// the original; copies of copies, too.
func TestFork(t *testing.T) {
	for name, script := range forkScripts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sandbox(t, proc.Limits{})
			write(t, s, "script.py", forkable+script)
			args := []string{"python3", "script.py"}
			if strings.HasPrefix(name, "cold") {
				args = []string{"python3", "-O", "script.py"}
			}
			var out bytes.Buffer
			p := start(t, s, &out, "", args...)
			appears(t, s, "ready")
			all := []*proc.Sandbox{s}
			for range 3 {
				im := freeze(t, s)
				all = append(all, copyOf(t, s, im))
			}
			all = append(all, copyOf(t, all[1], freeze(t, all[1])))
			seen := map[string]bool{}
			for i, c := range all {
				write(t, c, "go", fmt.Sprint("copy ", i))
				text := appears(t, c, "out")
				if !strings.HasPrefix(text, fmt.Sprintf("copy %d ['a', 'b'", i)) || seen[text] {
					t.Errorf("%d: %q", i, text)
				}
				random := text[strings.LastIndexByte(text, ' '):]
				if seen[random] {
					t.Errorf("%d draws %s again", i, random)
				}
				if i == 0 {
					t.Log(text)
				}
				seen[random] = true
				q := c.Lookup(p.Pid())
				if q == nil {
					continue
				}
				<-q.Done()
				if q.Status() != 0 {
					t.Errorf("%d: status %d\n%s", i, q.Status(), out.String())
				}
			}
		})
	}
}

// TestHibernate saves a running script, loads it again, in another runtime too, and goes on.
func TestHibernate(t *testing.T) {
	s := sandbox(t, proc.Limits{})
	write(t, s, "script.py", forkable+forkScripts["asyncio"])
	var out bytes.Buffer
	p := start(t, s, &out, "", "python3", "script.py")
	appears(t, s, "ready")
	im := freeze(t, s)
	var saved bytes.Buffer
	if err := im.Save(&saved, nil); err != nil {
		t.Fatal(err)
	}
	other := newInterpreter()
	t.Cleanup(other.Close)
	for i, in := range []*python.Interpreter{interpreter(), other} {
		again, err := proc.LoadImage(bytes.NewReader(saved.Bytes()), in.Restore)
		if err != nil {
			t.Fatal(err)
		}
		c := copyOf(t, s, again)
		write(t, c, "go", fmt.Sprint("copy ", i))
		if text := appears(t, c, "out"); !strings.HasPrefix(text, fmt.Sprintf("copy %d ['a', 'b'] [1, 2] 0.", i)) {
			t.Errorf("%d: %q", i, text)
		}
		if q := c.Lookup(p.Pid()); q != nil {
			<-q.Done()
		}
		again.Close()
	}
	thaw := exec.Command(os.Args[0], "-test.run=^TestThaw$", "-test.v")
	file := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(file, saved.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	thaw.Env = append(os.Environ(), "AGENTRUN_TEST_IMAGE="+file)
	if text, err := thaw.CombinedOutput(); err != nil || !strings.Contains(string(text), "copy of another process ['a', 'b'] [1, 2] 0.") {
		t.Errorf("another process: %v\n%s", err, text)
	}
	// Whoever changes a byte of it isn't obeyed.
	bad := bytes.Clone(saved.Bytes())
	bad[len(bad)/2] ^= 1
	if im, err := proc.LoadImage(bytes.NewReader(bad), interpreter().Restore); err == nil {
		im.Close()
		t.Error("a changed image was taken")
	}
	p.Post(proc.SIGKILL)
	<-p.Done()
}

// TestThaw is what TestHibernate runs in another process of the host.
func TestThaw(t *testing.T) {
	name := os.Getenv("AGENTRUN_TEST_IMAGE")
	if name == "" {
		return
	}
	saved, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	s := sandbox(t, proc.Limits{}) // for its files
	write(t, s, "log", "")
	im, err := proc.LoadImage(bytes.NewReader(saved), interpreter().Restore)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	c := copyOf(t, s, im)
	write(t, c, "go", "copy of another process")
	fmt.Println(appears(t, c, "out"))
}
