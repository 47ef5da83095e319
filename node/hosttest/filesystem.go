package hosttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing/iotest"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// files returns those of a sandbox.
func (t *tester) files(id string) node.Files {
	t.Helper()
	f, err := t.Host.Files(ctx, id)
	t.ok(err)
	return f
}

func (t *tester) write(f node.Files, path, text string) {
	t.Helper()
	i, err := f.Write(ctx, path, 0, strings.NewReader(text))
	t.ok(err)
	if i.Size != int64(len(text)) || i.Type != "file" {
		t.Errorf("%s: %+v", path, i)
	}
}

func (t *tester) read(f node.Files, path string, offset int64) string {
	t.Helper()
	r, _, err := f.Open(ctx, path, offset)
	t.ok(err)
	defer r.Close()
	b, err := io.ReadAll(r)
	t.ok(err)
	return string(b)
}

// list returns paths, a line each.
func (t *tester) list(f node.Files, path string, depth int) string {
	t.Helper()
	var out strings.Builder
	after := ""
	for {
		list, more, err := f.List(ctx, path, depth, 3, after)
		t.ok(err)
		for _, i := range list {
			fmt.Fprintf(&out, "%s %s\n", i.Path, i.Type)
			after = i.Path
		}
		if !more {
			return out.String()
		}
		if len(list) != 3 {
			t.Fatalf("a page of %d", len(list))
		}
	}
}

func testFiles(t *tester) {
	id := t.start(t.build(node.Build{}))
	f := t.files(id)
	t.write(f, "a", "text")
	t.write(f, "dir/sub/b c", "more")
	t.write(f, "/workspace/dir-x", "")
	t.sh(id, "cat a 'dir/sub/b c'; stat -c '%a %u' a dir; ln -s a link; ln -s /nowhere dangling; mkfifo fifo", "textmore644 1000\n755 1000\n")
	t.equal("from an offset", t.read(f, "/workspace/a", 2), "xt")
	t.equal("beyond the end", t.read(f, "a", 100), "")
	t.equal("through a link", t.read(f, "link", 0), "text")
	t.equal("list", t.list(f, "", 9), "/workspace/a file\n/workspace/dangling symlink\n/workspace/dir directory\n/workspace/dir/sub directory\n/workspace/dir/sub/b c file\n"+
		"/workspace/dir-x file\n/workspace/fifo other\n/workspace/link symlink\n")
	t.equal("one level", t.list(f, "dir", 1), "/workspace/dir/sub directory\n")
	i, err := f.Stat(ctx, "link")
	t.ok(err)
	if i.Type != "symlink" || i.Target != "a" || i.Path != "/workspace/link" || i.Name != "link" {
		t.Errorf("%+v", i)
	}
	if i, err := f.Stat(ctx, "../workspace/./a"); err != nil || i.Path != "/workspace/a" || i.Size != 4 || i.Mode != 0o644 || i.UID != 1000 || time.Since(i.Modified) > time.Hour {
		t.Errorf("%+v, %v", i, err)
	}

	// A write replaces the file at once, keeps its mode, and goes through links.
	_, err = f.Write(ctx, "a", 0o755, strings.NewReader("one"))
	t.ok(err)
	t.write(f, "link", "through")
	t.write(f, "dangling2", "x")
	t.sh(id, "cat a; readlink link; stat -c %a a; rm dangling2", "througha\n755\n")
	broken := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(errors.New("gone")))
	if _, err := f.Write(ctx, "a", 0, broken); err == nil {
		t.Error("what was cut off is written")
	}
	gone, cancel := context.WithCancel(ctx)
	if _, err := f.Write(gone, "new/x", 0, io.MultiReader(strings.NewReader("half"), readerFunc(func() { cancel() }))); err == nil {
		t.Error("written for somebody who is gone")
	}
	// A node elsewhere notices a little later that nothing more will come.
	t.sh(id, "for i in $(seq 600); do find . -name '.agentrun-partial-*' | grep -q . || break; sleep 0.1; done; cat a; find . -type f | sort", "through./a\n./dir-x\n./dir/sub/b c\n")

	t.ok(f.Mkdir(ctx, "m/n", 0o700))
	t.sh(id, "stat -c %a m m/n", "755\n700\n")
	t.kind("mkdir", f.Mkdir(ctx, "m/n", 0), errs.Exists)
	t.ok(f.Move(ctx, "a", "m/n/a"))
	t.ok(f.Move(ctx, "m", "/tmp/m"))
	t.sh(id, "cat /tmp/m/n/a; stat -c %a /tmp/m/n/a /tmp/m/n; ls", "through755\n700\ndangling\ndir\ndir-x\nfifo\nlink\n")
	t.kind("move", f.Move(ctx, "nothing", "x"), errs.NotFound)
	t.kind("remove", f.Remove(ctx, "dir", false), errs.NotEmpty)
	t.sh(id, "mkdir outside; touch outside/keep; ln -s /workspace/outside dir/link", "")
	t.ok(f.Remove(ctx, "dir", true))
	t.ok(f.Remove(ctx, "link", true))
	t.sh(id, "ls . outside", ".:\ndangling\ndir-x\nfifo\noutside\n\noutside:\nkeep\n")
}

// readerFunc calls itself and is at its end.
type readerFunc func()

func (f readerFunc) Read([]byte) (int, error) { f(); return 0, context.Canceled }

// testFilesHostile has paths that mean harm, and what the user may not.
func testFilesHostile(t *tester) {
	id := t.start(t.build(node.Build{Init: []string{"mkdir -m 700 /root/own; echo secret > /root/own/s; echo root > /etc/ours; ln -s loop loop; ln -s / rootlink; mkfifo fifo"}}))
	f := t.files(id)
	long := strings.Repeat("x", 256)
	for _, p := range []string{"a\x00b", "\xff\xfe", strings.Repeat("a/", 3000), long, "dir/" + long} {
		_, err := f.Stat(ctx, p)
		if !errs.Is(err, errs.Invalid) && !errs.Is(err, errs.NotFound) {
			t.Errorf("stat %.20q: %v", p, err)
		}
		_, err = f.Write(ctx, p, 0, strings.NewReader("x"))
		t.kind(fmt.Sprintf("write %.20q", p), err, errs.Invalid)
		t.kind(fmt.Sprintf("mkdir %.20q", p), f.Mkdir(ctx, p, 0), errs.Invalid)
		if err := f.Move(ctx, "fifo", p); !errs.Is(err, errs.Invalid) {
			t.Errorf("move %.20q: %v", p, err)
		}
	}
	_, err := f.Write(ctx, "x", 0o1777777, strings.NewReader(""))
	t.kind("a mode", err, errs.Invalid)
	for path, kind := range map[string]errs.Kind{"nothing": errs.NotFound, "/etc/ours/x": errs.Invalid, "loop": errs.Invalid, "fifo": errs.Invalid, "/dev/zero": errs.Invalid, "/": errs.Invalid, ".": errs.Invalid,
		"/root/own/s": errs.Denied, "../../../../../etc/nothing": errs.NotFound, "rootlink/../../etc/nothing": errs.NotFound} {
		_, _, err := f.Open(ctx, path, 0)
		t.kind("read "+path, err, kind)
	}
	_, _, err = f.Open(ctx, "/etc/ours", -1)
	t.kind("a negative offset", err, errs.Invalid)
	for path, kind := range map[string]errs.Kind{"/etc/ours": errs.Denied, "/root/own/x": errs.Denied, "/proc/x": errs.Denied, "fifo": errs.Invalid, "/dev/null": errs.Invalid, "/": errs.Invalid, "/tmp": errs.Invalid, "loop": errs.Invalid, "/etc/ours/x": errs.Invalid} {
		_, err := f.Write(ctx, path, 0, strings.NewReader("x"))
		t.kind("write "+path, err, kind)
	}
	for path, kind := range map[string]errs.Kind{"/": errs.Denied, "../..": errs.Denied, "/workspace": errs.Denied, "/proc": errs.Denied, "/etc/ours": errs.Denied, "/root/own": errs.Denied, "nothing": errs.NotFound} {
		t.kind("remove "+path, f.Remove(ctx, path, true), kind)
		if path != "nothing" {
			t.kind("move "+path, f.Move(ctx, path, "/tmp/x"), kind)
		}
	}
	_, _, err = f.List(ctx, "/root/own", 1, 0, "")
	t.kind("list", err, errs.Denied)
	_, _, err = f.List(ctx, "/etc/ours", 1, 0, "")
	t.kind("list a file", err, errs.Invalid)
	if list, _, err := f.List(ctx, "rootlink", 1, 0, ""); err != nil || len(list) == 0 {
		t.Errorf("a link to the root: %v, %v", list, err)
	}
	t.sh(id, "cat /etc/ours; ls", "root\nfifo\nloop\nrootlink\n")
	_, err = t.Host.Files(ctx, "sandbox-0")
	if err == nil {
		_, err = func() (*api.FileInfo, error) { f, _ := t.Host.Files(ctx, "sandbox-0"); return f.Stat(ctx, "/") }()
	}
	t.kind("no such sandbox", err, errs.NotFound)
}

// testFilesConcurrent has many writers of one file: whoever reads sees one of them, whole.
func testFilesConcurrent(t *tester) {
	id := t.start(t.build(node.Build{}))
	f := t.files(id)
	t.write(f, "shared", strings.Repeat("z", 50_000))
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 5 {
				if _, err := f.Write(ctx, "shared", 0, strings.NewReader(strings.Repeat(string(rune('a'+i)), 50_000))); err != nil {
					t.Error(err)
				}
				r, _, err := f.Open(ctx, "shared", 0)
				if err != nil {
					t.Error(err)
					return
				}
				b, err := io.ReadAll(r)
				r.Close()
				if err != nil || len(b) != 50_000 || bytes.Count(b, b[:1]) != len(b) {
					t.Errorf("%d bytes, %v: a mixture", len(b), err)
				}
			}
		})
	}
	wg.Wait()
	t.sh(id, "ls -A", "shared\n")
}

func testWatch(t *tester) {
	id := t.start(t.build(node.Build{}))
	f := t.files(id)
	t.sh(id, "mkdir d; echo x > d/x; echo old > old", "")
	life, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	ready, events, ended := make(chan struct{}), make(chan api.FileEvent, 100), make(chan error, 1)
	go func() {
		ended <- f.Watch(life, ".", true, func() { close(ready) }, func(e api.FileEvent) error { events <- e; return nil })
	}()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	expect := func(list ...api.FileEvent) {
		t.Helper()
		for len(list) > 0 {
			select {
			case e := <-events:
				found := false
				for i := range list {
					if list[i] == e {
						list = append(list[:i], list[i+1:]...)
						found = true
						break
					}
				}
				if !found {
					t.Fatalf("%+v, want one of %+v", e, list)
				}
			case <-life.Done():
				t.Fatalf("no event; want %+v", list)
			}
		}
	}
	at := func(kind, path string) api.FileEvent { return api.FileEvent{Kind: kind, Path: "/workspace/" + path} }
	t.write(f, "d/new", "text")
	expect(at("create", "d/new"))
	t.sh(id, "echo more >> d/new", "")
	expect(at("write", "d/new"))
	t.sh(id, "chmod 600 d/new; rm old; mkdir e", "")
	expect(at("chmod", "d/new"), at("remove", "old"), at("create", "e"))
	t.write(f, "d/new", "replaced")
	expect(at("write", "d/new"))
	t.sh(id, "rm -r d", "")
	expect(at("remove", "d/new"), at("remove", "d/x"), at("remove", "d"))
	cancel()
	t.kind("the end of the watch", <-ended, errs.Canceled)
	t.kind("watch nothing", f.Watch(ctx, "nothing", false, func() {}, nil), errs.NotFound)
}

func testDial(t *tester) {
	id := t.start(t.build(node.Build{}))
	_, err := t.Host.Dial(ctx, id, 8000)
	t.kind("nothing listens", err, errs.Unavailable)
	_, err = t.Host.Dial(ctx, id, 0)
	t.kind("no port", err, errs.Invalid)
	_, err = t.Host.Dial(ctx, "sandbox-0", 8000)
	t.kind("no such sandbox", err, errs.NotFound)
	p, err := t.Host.Exec(ctx, id, engine.Cmd{Args: []string{"sh", "-c", "echo hello | nc -l 8000 > got"}})
	t.ok(err)
	for tries := 0; ; tries++ {
		conn, err := t.Host.Dial(ctx, id, 8000)
		if err != nil {
			if tries == 1000 {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Millisecond)
			continue
		}
		io.WriteString(conn, "from outside\n")
		conn.(interface{ CloseWrite() error }).CloseWrite()
		b, err := io.ReadAll(conn)
		t.ok(err)
		t.equal("what came back", string(b), "hello\n")
		conn.Close()
		break
	}
	_, err = p.Wait(ctx)
	t.ok(err)
	t.sh(id, "cat got", "from outside\n")
}
