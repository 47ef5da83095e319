package python_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
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
	f, err := s.Namespace().Open(context.Background(), vfs.Cred{UID: 1000, GID: 1000, Umask: 0o022}, "/work", name, 0o102|0o1000, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

func read(s *proc.Sandbox, name string) string {
	f, err := s.Namespace().Open(context.Background(), vfs.Cred{}, "/work", name, 0, 0)
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
    with open("out.tmp", "w") as f: print(open("go").read(), state["words"], extra, random.random(), file=f)
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
