package sftp_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"agentrun.dev/engine"
	"agentrun.dev/engine/userspace"
)

// client speaks SFTP by hand, with a server in a sandbox.
type client struct {
	t   testing.TB
	in  io.WriteCloser
	out io.Reader
	id  uint32
	end func() int
}

func newClient(t testing.TB, args ...string) *client {
	t.Helper()
	sb, err := userspace.New(t.Context(), userspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if status, err := sb.Run(t.Context(), engine.Cmd{Args: []string{"sh", "-c", "echo hello > file; mkdir dir; ln -s file link; echo x > /tmp/foreign; chmod 400 file; chmod 644 file"}}); status != 0 || err != nil {
		t.Fatal(status, err)
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p, err := sb.Exec(t.Context(), engine.Cmd{Args: append([]string{"sftp-server"}, args...), Stdin: inR, Stdout: outW})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan int, 1)
	go func() {
		status, _ := p.Wait(t.Context())
		outW.Close()
		ended <- status
	}()
	t.Cleanup(func() {
		inW.Close()
		outR.Close()
		inR.Close()
		sb.Stop(t.Context())
	})
	c := &client{t: t, in: inW, out: outR, end: func() int { inW.Close(); return <-ended }}
	return c
}

func str(s string) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(s))), s...) }
func u32(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
func u64(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// raw sends a packet.
func (c *client) raw(b []byte) {
	if _, err := c.in.Write(append(u32(uint32(len(b))), b...)); err != nil {
		c.t.Fatal(err)
	}
}

// answer reads one.
func (c *client) answer() (typ byte, body []byte) {
	c.t.Helper()
	var head [5]byte
	if _, err := io.ReadFull(c.out, head[:]); err != nil {
		c.t.Fatal(err)
	}
	body = make([]byte, binary.BigEndian.Uint32(head[:])-1)
	if _, err := io.ReadFull(c.out, body); err != nil {
		c.t.Fatal(err)
	}
	return head[4], body
}

// ask sends a request and returns the answer's type and what follows its id.
func (c *client) ask(typ byte, fields ...[]byte) (byte, []byte) {
	c.t.Helper()
	c.id++
	c.raw(append(append([]byte{typ}, u32(c.id)...), bytes.Join(fields, nil)...))
	t, body := c.answer()
	if len(body) < 4 || binary.BigEndian.Uint32(body) != c.id {
		c.t.Fatalf("answer %d %q to request %d", t, body, c.id)
	}
	return t, body[4:]
}

// code is ask for a request that is answered by a status.
func (c *client) code(want uint32, what string, typ byte, fields ...[]byte) {
	c.t.Helper()
	t, body := c.ask(typ, fields...)
	if t != 101 || binary.BigEndian.Uint32(body) != want {
		c.t.Errorf("%s: answer %d %q, want status %d", what, t, body, want)
	}
}

func (c *client) handle(what string, typ byte, fields ...[]byte) []byte {
	c.t.Helper()
	t, body := c.ask(typ, fields...)
	if t != 102 {
		c.t.Fatalf("%s: answer %d %q", what, t, body)
	}
	return body
}

func (c *client) hello() *client {
	c.t.Helper()
	c.raw(append([]byte{1}, u32(3)...))
	if t, body := c.answer(); t != 2 || !bytes.Contains(body, []byte("fsync@openssh.com")) {
		c.t.Fatalf("version: %d %q", t, body)
	}
	return c
}

func TestRequests(t *testing.T) {
	c := newClient(t).hello()
	const ok, eof, noFile, denied, failure, bad, unsupported = 0, 1, 2, 3, 4, 5, 8
	h := c.handle("open", 3, str("new"), u32(2|8|32), u32(4), u32(0o640))
	c.code(ok, "write", 6, h, u64(3), str("abc"))
	c.code(ok, "fsync", 200, str("fsync@openssh.com"), h)
	c.code(ok, "fsetstat", 10, h, u32(1|8), u64(5), u32(100), u32(200))
	if typ, body := c.ask(8, h); typ != 105 || binary.BigEndian.Uint64(body[4:]) != 5 || binary.BigEndian.Uint32(body[20:]) != 0o100640 || !bytes.Equal(body[24:], append(u32(100), u32(200)...)) {
		t.Errorf("fstat: %d %x", typ, body)
	}
	c.code(ok, "close", 4, h)
	c.code(failure, "close again", 4, h)
	c.code(failure, "read of a closed one", 5, h, u64(0), u32(10))
	c.code(failure, "exclusive", 3, str("new"), u32(2|8|32), u32(0))
	h = c.handle("open", 3, str("new"), u32(1), u32(0))
	if typ, body := c.ask(5, h, u64(0), u32(1<<31)); typ != 103 || !bytes.Equal(body, str("\x00\x00\x00ab")) {
		t.Errorf("read: %d %q", typ, body)
	}
	c.code(eof, "read at the end", 5, h, u64(5), u32(10))
	c.code(eof, "read far beyond", 5, h, u64(1<<63), u32(10))
	c.code(noFile, "write to what is open for reading", 6, h, u64(0), str("x"))
	c.code(noFile, "open", 3, str("nope"), u32(1), u32(0))
	c.code(noFile, "stat", 17, str("nope"))
	c.code(failure, "open a directory for writing", 3, str("dir"), u32(2), u32(0))
	c.code(failure, "rename onto", 18, str("new"), str("file"))
	c.code(ok, "posix-rename onto", 200, str("posix-rename@openssh.com"), str("new"), str("dir/other"))
	c.code(ok, "hardlink", 200, str("hardlink@openssh.com"), str("dir/other"), str("hard"))
	c.code(failure, "mkdir", 14, str("dir"), u32(0))
	c.code(failure, "rmdir of what isn't empty", 15, str("dir"))
	c.code(ok, "symlink", 20, str("target"), str("dangling"))
	if typ, body := c.ask(19, str("dangling")); typ != 104 || !bytes.HasPrefix(body, append(u32(1), str("target")...)) {
		t.Errorf("readlink: %d %q", typ, body)
	}
	c.code(bad, "readlink of a file", 19, str("file"))
	c.code(denied, "chown", 9, str("file"), u32(2), u32(0), u32(0))
	c.code(ok, "lsetstat", 200, str("lsetstat@openssh.com"), str("link"), u32(8), u32(7), u32(8))
	if typ, body := c.ask(7, str("link")); typ != 105 || !bytes.HasSuffix(body, append(u32(7), u32(8)...)) {
		t.Errorf("lstat: %d %x", typ, body)
	}
	c.code(denied, "somebody else's", 14, str("/etc/new"), u32(0))
	for path, want := range map[string]string{".": "/workspace", "": "/workspace", "dir/../link": "/workspace/file", "not/../x": "", "nope": "/workspace/nope", "/..": "/", "../../../..": "/"} {
		typ, body := c.ask(16, str(path))
		if want == "" && typ == 101 || typ == 104 && bytes.HasPrefix(body, append(u32(1), str(want)...)) {
			continue
		}
		t.Errorf("realpath %q: %d %q", path, typ, body)
	}
	if typ, body := c.ask(200, str("expand-path@openssh.com"), str("~/x")); typ != 104 || !bytes.Contains(body, str("/home/user/x")) {
		t.Errorf("expand-path: %d %q", typ, body)
	}
	if typ, body := c.ask(200, str("home-directory"), str("root")); typ != 104 || !bytes.Contains(body, str("/root")) {
		t.Errorf("home-directory: %d %q", typ, body)
	}
	if typ, body := c.ask(200, str("users-groups-by-id@openssh.com"), str(string(append(u32(1000), u32(7)...))), str(string(u32(0)))); typ != 201 ||
		!bytes.Equal(body, append(str(string(append(str("user"), str("")...))), str(string(str("root")))...)) {
		t.Errorf("users-groups-by-id: %d %q", typ, body)
	}
	if typ, body := c.ask(200, str("statvfs@openssh.com"), str(".")); typ != 201 || len(body) != 88 {
		t.Errorf("statvfs: %d %q", typ, body)
	}
	c.code(unsupported, "unknown extension", 200, str("format-disk"))
	c.code(unsupported, "unknown request", 99, str("x"))
	c.code(bad, "cut off", 3, str("x"))
	c.code(bad, "a length beyond the packet", 14, u32(1<<30))
	if c.end() != 0 {
		t.Error("the end isn't clean")
	}
}

func TestCopyData(t *testing.T) {
	c := newClient(t).hello()
	from := c.handle("open", 3, str("file"), u32(1), u32(0))
	to := c.handle("open", 3, str("to"), u32(3|8), u32(0))
	ask := func(want uint32, a []byte, off, n uint64, b []byte, at uint64) {
		t.Helper()
		c.code(want, "copy-data", 200, str("copy-data"), a, u64(off), u64(n), b, u64(at))
	}
	ask(0, from, 1, 0, to, 2)
	ask(0, from, 0, 2, to, 0)
	ask(1, from, 0, 100, to, 10)
	ask(5, from, 0, 1, from, 0)
	ask(4, from, 0, 1, []byte("\x00\x00\x00\x01x"), 0)
	if _, body := c.ask(5, to, u64(0), u32(7)); !bytes.Equal(body, str("heello\n")) {
		t.Errorf("%q", body)
	}
}

func TestDirectories(t *testing.T) {
	c := newClient(t).hello()
	for i := range 250 {
		c.code(0, "mkdir", 14, str(fmt.Sprintf("dir/d%03d", i)), u32(0))
	}
	h := c.handle("opendir", 11, str("dir"))
	names, rounds := 0, 0
	for {
		typ, body := c.ask(12, h)
		if typ == 101 {
			if binary.BigEndian.Uint32(body) != 1 {
				t.Errorf("the end: %q", body)
			}
			break
		}
		names += int(binary.BigEndian.Uint32(body))
		rounds++
	}
	if names != 252 || rounds < 3 {
		t.Errorf("%d names in %d answers", names, rounds)
	}
	c.code(4, "readdir of a file", 12, c.handle("open", 3, str("file"), u32(1), u32(0)))
	c.code(4, "read of a directory", 5, h, u64(0), u32(1))
	c.code(2, "opendir of a file", 11, str("file"))
}

// TestLimits opens more than may be open, and sends more than may come at once.
func TestLimits(t *testing.T) {
	c := newClient(t).hello()
	typ, body := c.ask(200, str("limits@openssh.com"))
	if typ != 201 || len(body) != 32 || binary.BigEndian.Uint64(body[24:]) != 1000 {
		t.Fatalf("limits: %d %x", typ, body)
	}
	var last []byte
	for range 1000 {
		last = c.handle("open", 3, str("file"), u32(1), u32(0))
	}
	c.code(4, "one too many", 3, str("file"), u32(1), u32(0))
	c.code(0, "close", 4, last)
	c.handle("again", 3, str("file"), u32(1), u32(0))
	c.in.Write(u32(1 << 20))
	if status := c.end(); status != 11 {
		t.Errorf("after a packet too large: status %d", status)
	}
}

func TestReadOnly(t *testing.T) {
	c := newClient(t, "-R").hello()
	const denied = 3
	c.handle("open", 3, str("file"), u32(1), u32(0))
	c.code(denied, "open", 3, str("file"), u32(2), u32(0))
	c.code(denied, "create", 3, str("new"), u32(1|8), u32(0))
	c.code(denied, "remove", 13, str("file"))
	c.code(denied, "setstat", 9, str("file"), u32(4), u32(0))
	c.code(denied, "symlink", 20, str("a"), str("b"))
	c.code(denied, "posix-rename", 200, str("posix-rename@openssh.com"), str("file"), str("b"))
	c.code(denied, "hardlink", 200, str("hardlink@openssh.com"), str("file"), str("b"))
}

// FuzzServer sends a session of arbitrary packets: the server ends or answers, and never fails by a defect.
func FuzzServer(f *testing.F) {
	packet := func(b ...[]byte) []byte {
		all := bytes.Join(b, nil)
		return append(u32(uint32(len(all))), all...)
	}
	hello := packet([]byte{1}, u32(3))
	f.Add(append(hello, packet([]byte{3}, u32(1), str("f"), u32(11), u32(0))...))
	f.Add(append(hello, packet([]byte{9}, u32(1), str("file"), u32(1<<31|15), u64(1<<63), u32(1), u32(2), u32(3), u32(4), u32(5))...))
	f.Add(append(hello, packet([]byte{200}, u32(1), str("users-groups-by-id@openssh.com"), str("abc"), str(""))...))
	f.Add(append(hello, packet([]byte{16}, u32(1), str(strings.Repeat("../", 3000)))...))
	f.Add(append(append(hello, packet([]byte{11}, u32(1), str("/proc"))...), packet([]byte{12}, u32(2), str("\x00\x00\x00\x01"))...))
	f.Add([]byte("\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, session []byte) {
		sb, err := userspace.New(t.Context(), userspace.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer sb.Stop(t.Context())
		p, err := sb.Exec(t.Context(), engine.Cmd{Args: []string{"sftp-server"}, Stdin: bytes.NewReader(session), Stdout: io.Discard})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() { p.Wait(t.Context()); close(done) }()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatal("it doesn't end")
		}
		if d := sb.Defect(); d != "" {
			t.Fatal(d)
		}
	})
}
