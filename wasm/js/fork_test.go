package js_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"syscall"
	"testing"
	"time"

	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

// A script is captured while it runs, with its memory, timers and open files; its copies go on apart, also from disk.
func TestLiveFork(t *testing.T) {
	b := newBox(t, proc.Limits{})
	put(t, b.s.Namespace(), "/t/live.js", `const fs = require('fs'); const state = { list: [1, 2, 3], at: process.pid, map: new Map([['k', 1]]) };
const fd = fs.openSync('/tmp/out', 'w'); let n = 0; fs.writeSync(fd, 'begun\n');
const before = Math.random();
const wait = setInterval(() => { if (!fs.existsSync('/tmp/go')) return; clearInterval(wait); let s = 0; for (let i = 0; i < 1e5; i++) s += i % 7;
  fs.writeSync(fd, JSON.stringify([state, state.map.get('k'), s, fs.readFileSync('/tmp/go', 'utf8'), before !== Math.random()]) + '\n'); fs.writeSync(fd, String(Math.random()) + '\n'); process.exit(3); }, 1);`)
	p, _, errOut := b.start("/task", "", "node", "/t/live.js")
	until(t, b.s, "/tmp/out", "begun\n")
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	f, err := b.s.Freeze(ctx, proc.FreezeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	im, err := f.Capture()
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	ns := make([]*vfs.Namespace, 3)
	for i := range ns {
		ns[i], err = b.s.Namespace().Clone(func(m vfs.Mount) (vfs.Mount, error) {
			if fs, ok := m.FS.(*memfs.FS); ok {
				m.FS = fs.Clone()
			}
			return m, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var saved bytes.Buffer
	if err := im.Save(&saved, nil); err != nil {
		t.Fatal(err)
	}
	f.Thaw()
	t.Logf("a saved image has %d bytes", saved.Len())
	loaded, err := proc.LoadImage(&saved, interpreter().Restore)
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Close()
	results := map[string]bool{}
	finish := func(s *proc.Sandbox, p *proc.Process, word string) {
		t.Helper()
		put(t, s.Namespace(), "/tmp/go", word)
		<-p.Done()
		text := read(t, s, "/tmp/out")
		want := "begun\n[{\"list\":[1,2,3],\"at\":2,\"map\":{}},1,299995,\"" + word + "\",true]\n"
		if p.Status() != 3 || len(text) < len(want) || text[:len(want)] != want || results[text[len(want):]] {
			t.Errorf("%s: status %d, %q\n%s", word, p.Status(), text, errOut)
			return
		}
		results[text[len(want):]] = true
	}
	for i, word := range []string{"one", "two", "disk"} {
		from := im
		if word == "disk" {
			from = loaded
		}
		c, err := from.Start(proc.StartOptions{Namespace: ns[i], Commands: commands(interpreter().Programs())})
		if err != nil {
			t.Fatal(err)
		}
		cp := c.Lookup(p.Pid())
		if cp == nil {
			t.Fatal("the copy lacks the process")
		}
		finish(c, cp, word)
		if d := c.Defect(); d != "" {
			t.Error(d)
		}
		c.Close(context.Background())
	}
	finish(b.s, p, "original")
}

func read(t testing.TB, s *proc.Sandbox, name string) string {
	t.Helper()
	f, err := s.Namespace().Open(context.Background(), vfs.Cred{}, "/", name, syscall.O_RDONLY, 0)
	if errors.Is(err, syscall.ENOENT) {
		return ""
	} else if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	buf := make([]byte, 4096)
	n, err := f.ReadAt(buf, 0)
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return string(buf[:n])
}

func until(t testing.TB, s *proc.Sandbox, name, text string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); read(t, s, name) != text; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s never has %q", name, text)
		}
	}
}
