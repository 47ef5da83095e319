package files_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentrun.dev/guest"
	"agentrun.dev/guest/agent"
	"agentrun.dev/guest/files"
	"agentrun.dev/guest/wire"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/hostfs"
	"agentrun.dev/vfs/memfs"
	"agentrun.dev/vfs/vfstest"
)

// pair is a connection, as vsock's are.
func pair(t testing.TB) (net.Conn, net.Conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pair")
		if ends[i], err = net.FileConn(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	return ends[0], ends[1]
}

// world is a guest whose files are those of a filesystem here.
type world struct {
	fs     *files.FS
	client *guest.Client
}

func start(t testing.TB, o agent.Options, fo files.Options) *world {
	t.Helper()
	a := agent.New(o)
	host, vm := pair(t)
	var served sync.WaitGroup
	served.Go(func() { _ = a.ServeConn(vm) })
	c, err := guest.New(host)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{files.New(c, fo), c}
	t.Cleanup(func() {
		if err := w.fs.Close(); err != nil {
			t.Error(err)
		}
		c.Close()
		a.Close()
		served.Wait()
	})
	return w
}

func over(fs vfs.FS) agent.Options {
	return agent.Options{Files: func() (vfs.FS, error) { return fs, nil }}
}

// TestConformance is the suite over files in memory: what memfs can, a guest can.
func TestConformance(t *testing.T) {
	vfstest.Run(t, vfstest.Config{New: func(t testing.TB) vfs.FS {
		return start(t, over(memfs.New(memfs.Options{})), files.Options{}).fs
	}})
}

// TestFolder is the suite over a real folder, as the agent shows its own.
func TestFolder(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("CAN'T RUN HERE: giving files away needs root; it runs where the tests are root's, as in CI")
	}
	vfstest.Run(t, vfstest.Config{NoDevices: true, NoXattrs: true, New: func(t testing.TB) vfs.FS {
		dir, err := os.MkdirTemp("", "files-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		fs, err := hostfs.New(dir, hostfs.Options{Real: true})
		if err != nil {
			t.Fatal(err)
		}
		return start(t, over(fs), files.Options{}).fs
	}})
}

// counting notes references and open files.
type counting struct {
	vfs.FS
	refs, open atomic.Int64
	wait       chan struct{} // look-ups of "slow" wait for it
}

func (c *counting) Lookup(ctx context.Context, dir vfs.Ino, name string) (vfs.Attr, error) {
	a, err := c.FS.Lookup(ctx, dir, name)
	if err == nil {
		c.refs.Add(1)
	}
	if name == "slow" {
		<-c.wait
	}
	return a, err
}

func (c *counting) Forget(ino vfs.Ino, n uint64) {
	c.refs.Add(-int64(n))
	c.FS.Forget(ino, n)
}

func (c *counting) Open(ctx context.Context, ino vfs.Ino, flags int) (vfs.Handle, error) {
	h, err := c.FS.Open(ctx, ino, flags)
	if err == nil {
		c.open.Add(1)
		h = &countedHandle{h, c}
	}
	return h, err
}

type countedHandle struct {
	vfs.Handle
	c *counting
}

func (h *countedHandle) Close() error { h.c.open.Add(-1); return h.Handle.Close() }

func newCounting(t *testing.T) *counting {
	m := memfs.New(memfs.Options{})
	for _, name := range []string{"f", "slow"} {
		a, err := m.Create(t.Context(), m.Root(), name, vfs.ModeRegular|0o644, vfs.Cred{})
		if err != nil {
			t.Fatal(err)
		}
		m.Forget(a.Ino, 1)
	}
	return &counting{FS: m, wait: make(chan struct{})}
}

func (c *counting) settled(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(time.Minute); c.refs.Load() != 0 || c.open.Load() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d references and %d open files are left", c.refs.Load(), c.open.Load())
		}
	}
}

// TestGiveBack: what a caller who gave up was given, and what is open when all ends, goes back.
func TestGiveBack(t *testing.T) {
	c := newCounting(t)
	w := start(t, over(c), files.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := w.fs.Lookup(ctx, w.fs.Root(), "slow")
		ended <- err
	}()
	for end := time.Now().Add(time.Minute); c.refs.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it isn't asked")
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || vfs.Errno(err) != syscall.EINTR {
		t.Errorf("given up: %v", err)
	}
	close(c.wait)
	c.settled(t)
	// Callers who give up at any moment.
	for i := range 300 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Microsecond)
		if a, err := w.fs.Lookup(ctx, w.fs.Root(), "f"); err == nil {
			if h, err := w.fs.Open(ctx, a.Ino, vfs.O_RDONLY); err == nil {
				if err := h.Close(); err != nil {
					t.Error(err)
				}
			}
			w.fs.Forget(a.Ino, 1)
		}
		cancel()
	}
	if _, err := w.fs.StatFS(t.Context()); err != nil { // takes along what was forgotten
		t.Error(err)
	}
	c.settled(t)
	a, err := w.fs.Lookup(t.Context(), w.fs.Root(), "f")
	if err != nil {
		t.Fatal(err)
	}
	h, err := w.fs.Open(t.Context(), a.Ino, vfs.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	w.client.Close()
	if _, err := h.ReadAt(make([]byte, 1), 0); vfs.Errno(err) != syscall.EIO {
		t.Errorf("over a broken connection: %v", err)
	}
	c.settled(t)
}

// TestSilent: an agent that never answers holds nobody up for ever.
func TestSilent(t *testing.T) {
	host, vm := pair(t)
	go func() {
		hello := make([]byte, 8)
		_, _ = io.ReadFull(vm, hello)
		_, _ = vm.Write(hello)
		_, _ = io.Copy(io.Discard, vm)
		vm.Close()
	}()
	c, err := guest.New(host)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fs := files.New(c, files.Options{Timeout: 20 * time.Millisecond})
	defer fs.Close()
	if _, err := fs.GetAttr(t.Context(), fs.Root()); vfs.Errno(err) != syscall.ETIMEDOUT {
		t.Errorf("silent: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := fs.Lookup(ctx, fs.Root(), "f"); vfs.Errno(err) != syscall.EINTR || !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// TestLies: what a guest says that can't be is EIO.
func TestLies(t *testing.T) {
	name := strings.Repeat("n", 300)
	for what, k := range map[string]struct {
		answers []wire.Answer
		call    func(fs *files.FS) error
	}{
		"a slash in a name": {[]wire.Answer{{Entries: []wire.NodeEntry{{Name: "../x", Mode: 0o100000, Ino: 2}}}}, list},
		"a parent":          {[]wire.Answer{{Entries: []wire.NodeEntry{{Name: "..", Mode: 0o40000, Ino: 2}}}}, list},
		"a long name":       {[]wire.Answer{{Entries: []wire.NodeEntry{{Name: wire.Text(name), Mode: 0o100000, Ino: 2}}}}, list},
		"no type":           {[]wire.Answer{{Entries: []wire.NodeEntry{{Name: "x", Ino: 2}}}}, list},
		"nothing, for ever": {[]wire.Answer{{More: true}, {More: true}}, list},
		"no attributes":     {[]wire.Answer{{}}, look},
		"a negative size":   {[]wire.Answer{{Attr: &wire.Attr{Ino: 3, Mode: 0o100644, Size: -1}}}, look},
		"an odd type":       {[]wire.Answer{{Attr: &wire.Attr{Ino: 3, Mode: 0o170644}}}, look},
		"a wild error":      {[]wire.Answer{{Errno: 60000}}, look},
	} {
		t.Run(what, func(t *testing.T) {
			host, vm := pair(t)
			go wire.Guest(vm, func(s *wire.Stream, request []byte) error {
				var r wire.Request
				if err := wire.Decode(request, &r); err != nil {
					return err
				}
				if r.Tree != nil {
					if err := s.Message(wire.Tree{ID: 1, Root: 2}); err != nil {
						return err
					}
					<-s.Done()
					return nil
				}
				for _, a := range k.answers {
					if err := s.Message(a); err != nil {
						return err
					}
				}
				return nil
			})
			c, err := guest.New(host)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			fs := files.New(c, files.Options{})
			defer fs.Close()
			if err := k.call(fs); vfs.Errno(err) != syscall.EIO {
				t.Errorf("%v", err)
			}
		})
	}
}

func list(fs *files.FS) error { _, err := fs.ReadDir(context.Background(), fs.Root()); return err }
func look(fs *files.FS) error {
	_, err := fs.Lookup(context.Background(), fs.Root(), "f")
	return err
}

// TestLarge moves more than a call, or a window, holds; and lists more than a message does.
func TestLarge(t *testing.T) {
	w := start(t, over(memfs.New(memfs.Options{})), files.Options{})
	ns := vfs.NewNamespace(vfs.Mount{FS: w.fs})
	f, err := ns.Open(t.Context(), vfs.Cred{}, "/", "big", vfs.O_RDWR|vfs.O_CREAT, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Repeat("0123456789abcdef", 5<<20/16+3)
	if n, err := f.WriteAt([]byte(want), 7); n != len(want) || err != nil {
		t.Fatal(n, err)
	}
	got := make([]byte, len(want)+10)
	if n, err := f.ReadAt(got, 7); n != len(want) || err != io.EOF || string(got[:n]) != want {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	const count = 3000
	for i := range count {
		name := strings.Repeat("\xff", 50) + string(rune('a'+i%26)) + strings.Repeat("x", i/26)
		if len(name) > vfs.MaxName {
			t.Fatal(len(name))
		}
		if err := ns.Mkdir(t.Context(), vfs.Cred{}, "/", name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := ns.ReadDir(t.Context(), vfs.Cred{}, "/", "/"); err != nil || len(list) != count+1 {
		t.Errorf("%d entries, %v", len(list), err)
	}
}

// TestLimits: the agent holds so much for the host, and says so.
func TestLimits(t *testing.T) {
	w := start(t, over(memfs.New(memfs.Options{})), files.Options{})
	a, err := w.fs.Create(t.Context(), w.fs.Root(), "f", vfs.ModeRegular|0o644, vfs.Cred{})
	if err != nil {
		t.Fatal(err)
	}
	var open []vfs.Handle
	for {
		h, err := w.fs.Open(t.Context(), a.Ino, vfs.O_RDONLY)
		if err != nil {
			if vfs.Errno(err) != syscall.ENFILE || len(open) != 1024 {
				t.Errorf("%v after %d", err, len(open))
			}
			break
		}
		open = append(open, h)
	}
	for _, h := range open {
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		if err := h.Close(); vfs.Errno(err) != syscall.EBADF {
			t.Fatal(err)
		}
	}
	for ino, want := range map[vfs.Ino]syscall.Errno{99: syscall.ESTALE, a.Ino: 0} {
		if _, err := w.fs.GetAttr(t.Context(), ino); vfs.Errno(err) != want {
			t.Errorf("inode %d: %v", ino, err)
		}
	}
	var trees []*files.FS
	for range 8 {
		fs := files.New(w.client, files.Options{})
		trees = append(trees, fs)
		if _, err = fs.GetAttr(t.Context(), fs.Root()); err != nil {
			break
		}
	}
	if vfs.Errno(err) != syscall.EIO || len(trees) != 8 {
		t.Errorf("tree %d: %v", len(trees), err)
	}
	for _, fs := range trees {
		if err := fs.Close(); err != nil {
			t.Error(err)
		}
	}
}
