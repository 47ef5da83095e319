package fusefs_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"agentrun.dev/bucket"
	"agentrun.dev/fusefs"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

// FUSE's operations that the tests send.
const (
	lookup   = 1
	forget   = 2
	getattr  = 3
	mkdir    = 9
	unlink   = 10
	rename   = 12
	open     = 14
	read     = 15
	write    = 16
	statfs   = 17
	release  = 18
	flush    = 25
	initOp   = 26
	opendir  = 27
	readdir  = 28
	create   = 35
	destroy  = 38
	readplus = 44
	syncFS   = 50
)

// words is a message's body, little-endian.
func words(v ...any) []byte {
	var b bytes.Buffer
	for _, x := range v {
		switch x := x.(type) {
		case string:
			b.WriteString(x + "\x00")
		default:
			_ = binary.Write(&b, binary.LittleEndian, x)
		}
	}
	return b.Bytes()
}

func message(op uint32, node uint64, body []byte) []byte {
	h := words(uint32(40+len(body)), op, uint64(7), node, uint32(1000), uint32(1000), uint32(1), uint32(0))
	return append(h, body...)
}

// kernel is a small one.
type kernel struct {
	t testing.TB
	s *fusefs.Server
}

// call sends a request and returns the body of the answer.
func (k *kernel) call(op uint32, node uint64, body []byte) ([]byte, syscall.Errno) {
	k.t.Helper()
	out := make([]byte, 1<<16)
	n := k.s.Handle(message(op, node, body), out)
	if op == forget {
		if n != 0 {
			k.t.Fatalf("FORGET is answered with %d bytes", n)
		}
		return nil, 0
	}
	if n < 16 || int(binary.LittleEndian.Uint32(out)) != n || binary.LittleEndian.Uint64(out[8:]) != 7 {
		k.t.Fatalf("operation %d: an answer of %d bytes: %x", op, n, out[:16])
	}
	return out[16:n], syscall.Errno(-int32(binary.LittleEndian.Uint32(out[4:])))
}

// must is call for what can't fail.
func (k *kernel) must(op uint32, node uint64, body []byte) []byte {
	k.t.Helper()
	b, no := k.call(op, node, body)
	if no != 0 {
		k.t.Fatalf("operation %d: %v", op, no)
	}
	return b
}

func initBody() []byte { return words(uint32(7), uint32(38), uint32(1<<17), uint32(1<<5|1<<13|1<<14)) }

func newKernel(t testing.TB, o fusefs.Options) *kernel {
	t.Helper()
	if o.FS == nil {
		o.FS = memfs.New(memfs.Options{UID: 1000, GID: 1000})
	}
	s := fusefs.New(o)
	t.Cleanup(func() { s.Close() })
	k := &kernel{t, s}
	if no := func() syscall.Errno { _, no := k.call(statfs, 1, nil); return no }(); no != syscall.EIO {
		t.Fatalf("before INIT: %v", no)
	}
	if b := k.must(initOp, 0, initBody()); binary.LittleEndian.Uint32(b) != 7 {
		t.Fatalf("INIT: %x", b)
	}
	return k
}

// create makes a file and returns its node and a handle.
func (k *kernel) create(dir uint64, name string) (node, fh uint64) {
	k.t.Helper()
	b := k.must(create, dir, words(uint32(syscall.O_RDWR), uint32(0o644), uint32(0o22), uint32(0), name))
	return binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[128:])
}

func (k *kernel) write(node, fh uint64, off uint64, data string) {
	k.t.Helper()
	k.must(write, node, append(words(fh, off, uint32(len(data)), uint32(0), uint64(0), uint32(0), uint32(0)), data...))
}

func (k *kernel) read(node, fh uint64) (string, syscall.Errno) {
	k.t.Helper()
	b, no := k.call(read, node, words(fh, uint64(0), uint32(4096), uint32(0), uint64(0), uint32(0), uint32(0)))
	return string(b), no
}

// TestClone forks a machine that has a file open, one of whose names is gone, and one that it only knows.
func TestClone(t *testing.T) {
	for name, on := range map[string]func() (vfs.FS, func() vfs.FS){
		"memory": func() (vfs.FS, func() vfs.FS) {
			fs := memfs.New(memfs.Options{UID: 1000, GID: 1000})
			return fs, func() vfs.FS { return fs.Clone() }
		},
		"bucket": func() (vfs.FS, func() vfs.FS) {
			b, fs := newBucketFS(t)
			return fs, func() vfs.FS {
				if err := fs.Flush(t.Context(), true); err != nil {
					t.Fatal(err)
				}
				f, err := b.Store().Fork(t.Context(), "files", "fork", bucket.ForkOptions{})
				if err != nil {
					t.Fatal(err)
				}
				fork, err := b.Store().Bucket(t.Context(), f.Name)
				if err != nil {
					t.Fatal(err)
				}
				c, err := fs.Clone(t.Context(), fork)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close(t.Context()) })
				return c
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs, clone := on()
			k := newKernel(t, fusefs.Options{FS: fs})
			node, fh := k.create(1, "open")
			k.write(node, fh, 0, "before")
			lost, lostFH := k.create(1, "lost")
			k.write(lost, lostFH, 0, "nameless")
			k.must(unlink, 1, words("lost"))
			d := binary.LittleEndian.Uint64(k.must(mkdir, 1, words(uint32(0o755), uint32(0), "dir")))

			s, err := k.s.Clone(t.Context(), clone())
			if err != nil {
				t.Fatal(err)
			}
			c := &kernel{t, s}
			defer s.Close()
			if k.s.Stats() != s.Stats() {
				t.Errorf("it knows %+v, the original %+v", s.Stats(), k.s.Stats())
			}
			k.write(node, fh, 0, "mother")
			c.write(node, fh, 0, "child!")
			inner, _ := c.create(d, "inner")
			for _, x := range []struct {
				k    *kernel
				want string
			}{{k, "mother"}, {c, "child!"}} {
				if got, no := x.k.read(node, fh); got != x.want || no != 0 {
					t.Errorf("read %q %v, want %q", got, no, x.want)
				}
				if got, no := x.k.read(lost, lostFH); got != "nameless" || no != 0 {
					t.Errorf("without a name: %q %v", got, no)
				}
			}
			if _, no := k.call(lookup, d, words("inner")); no != syscall.ENOENT {
				t.Errorf("the child's file is in the original: %v", no)
			}
			if _, no := c.call(getattr, inner, words(uint32(0), uint32(0), uint64(0))); no != 0 {
				t.Errorf("the child's own: %v", no)
			}
		})
	}
}

// TestHostile is a kernel that means harm: it gets errors, and nothing is kept or lost by it.
func TestHostile(t *testing.T) {
	k := newKernel(t, fusefs.Options{Nodes: 3, Handles: 2})
	node, fh := k.create(1, "f")
	for _, name := range []string{"", ".", "..", "a/b", "/etc/passwd", strings.Repeat("x", 256)} {
		if _, no := k.call(lookup, 1, words(name)); no != syscall.EINVAL && no != syscall.ENAMETOOLONG {
			t.Errorf("a name %.20q: %v", name, no)
		}
		if _, no := k.call(rename, 1, words(uint64(1), "f", name)); no != syscall.EINVAL && no != syscall.ENAMETOOLONG {
			t.Errorf("a new name %.20q: %v", name, no)
		}
	}
	for _, n := range []uint64{0, 99, 1 << 63, ^uint64(0)} {
		if _, no := k.call(lookup, n, words("f")); no != syscall.ESTALE {
			t.Errorf("a node %d that nobody was told of: %v", n, no)
		}
		if _, no := k.read(node, n); no != syscall.EBADF {
			t.Errorf("a handle %d that nobody was given: %v", n, no)
		}
	}
	if _, no := k.call(readdir, 1, words(fh, uint64(0), uint32(4096), uint32(0), uint64(0), uint32(0), uint32(0))); no != syscall.EBADF {
		t.Errorf("a file read as a directory: %v", no)
	}
	// Forgetting more than it was told of doesn't take the file from whoever has it open.
	k.call(forget, node, words(^uint64(0)))
	k.call(forget, 1, words(^uint64(0)))
	if _, no := k.read(node, fh); no != 0 {
		t.Errorf("an open file that was forgotten: %v", no)
	}
	if got := k.s.Stats(); got.Nodes != 0 || got.Handles != 1 {
		t.Errorf("%+v", got)
	}
	k.create(1, "g")
	if _, no := k.call(create, 1, words(uint32(syscall.O_RDWR), uint32(0o644), uint32(0), uint32(0), "h")); no != syscall.ENFILE {
		t.Errorf("a handle too many: %v", no)
	}
	for i := range 4 {
		_, no := k.call(mkdir, 1, words(uint32(0o755), uint32(0), string(rune('a'+i))))
		if want := []syscall.Errno{0, 0, syscall.ENFILE, syscall.ENFILE}[i]; no != want {
			t.Errorf("directory %d: %v, want %v", i, no, want)
		}
	}
	// Beginning anew forgets all.
	k.must(initOp, 0, initBody())
	if got := k.s.Stats(); got != (fusefs.Stats{}) {
		t.Errorf("after INIT: %+v", got)
	}
	if err := k.s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, no := k.call(statfs, 1, nil); no != syscall.EIO {
		t.Errorf("after Close: %v", no)
	}
}

// TestAppend: a write says for itself whether it appends, however the file was opened; a mapping's page doesn't.
func TestAppend(t *testing.T) {
	k := newKernel(t, fusefs.Options{FS: memfs.New(memfs.Options{})})
	node, fh := k.create(1, "log")
	for _, w := range []struct {
		cached, flags uint32
		data          string
	}{{0, 0, "0123"}, {0, vfs.O_APPEND, "45"}, {1, vfs.O_APPEND, "ab"}, {0, 0, "A"}, {0, vfs.O_APPEND, "6"}} {
		k.must(write, node, words(fh, uint64(0), uint32(len(w.data)), w.cached, uint64(0), w.flags, uint32(0), []byte(w.data)))
	}
	if got, no := k.read(node, fh); got != "Ab23456" || no != 0 {
		t.Errorf("%q, %v", got, no)
	}
}

// TestReadOnly tries every change.
func TestReadOnly(t *testing.T) {
	fs := memfs.New(memfs.Options{UID: 1000, GID: 1000})
	w := newKernel(t, fusefs.Options{FS: fs})
	w.create(1, "f")
	k := newKernel(t, fusefs.Options{FS: fs, ReadOnly: true})
	node := binary.LittleEndian.Uint64(k.must(lookup, 1, words("f")))
	for op, body := range map[uint32][]byte{
		4:  words(uint32(1), uint32(0), make([]byte, 80)),
		6:  words("f", "g"),
		8:  words(uint32(0o100644), uint32(0), uint32(0), uint32(0), "g"),
		9:  words(uint32(0o755), uint32(0), "d"),
		10: words("f"), 11: words("f"), 12: words(uint64(1), "f", "g"), 13: words(node, "g"),
		35: words(uint32(syscall.O_RDWR), uint32(0o644), uint32(0), uint32(0), "g"),
		21: append(words(uint32(1), uint32(0)), words("user.a", "v")...), 24: words("user.a"),
	} {
		at := uint64(1)
		if op == 4 || op == 21 || op == 24 {
			at = node
		}
		if _, no := k.call(op, at, body); no != syscall.EROFS {
			t.Errorf("operation %d: %v", op, no)
		}
	}
	for _, flags := range []uint32{syscall.O_WRONLY, syscall.O_RDWR, syscall.O_RDONLY | syscall.O_TRUNC} {
		if _, no := k.call(open, node, words(flags, uint32(0))); no != syscall.EROFS {
			t.Errorf("open %#x: %v", flags, no)
		}
	}
	k.must(open, node, words(uint32(0), uint32(0)))
}

// TestConcurrent sends requests from several sides while the machine is forked again and again.
func TestConcurrent(t *testing.T) {
	fs := memfs.New(memfs.Options{UID: 1000, GID: 1000})
	k := newKernel(t, fusefs.Options{FS: fs})
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			name := string(rune('a' + i))
			for range 200 {
				node, fh := k.create(1, name)
				k.write(node, fh, 0, "some")
				k.must(release, node, words(fh, uint32(0), uint32(0), uint64(0)))
				k.must(unlink, 1, words(name))
				k.call(forget, node, words(uint64(1)))
			}
		})
	}
	for range 50 {
		c, err := k.s.Clone(t.Context(), fs.Clone())
		if err != nil {
			t.Error(err)
			break
		}
		c.Close()
	}
	all.Wait()
	if got := k.s.Stats(); got != (fusefs.Stats{}) {
		t.Errorf("kept: %+v", got)
	}
}

// FuzzHandle sends messages of any kind: no panic, no answer longer than there is room for, nothing kept beyond the limits.
func FuzzHandle(f *testing.F) {
	f.Add(message(lookup, 1, words("f")), uint16(256))
	f.Add(message(create, 1, words(uint32(2), uint32(0o644), uint32(0), uint32(0), "g")), uint16(256))
	f.Add(message(readplus, 1, words(uint64(2), uint64(0), uint32(200), uint32(0), uint64(0), uint32(0), uint32(0))), uint16(256))
	f.Add(message(read, 2, words(uint64(1), uint64(1<<63), uint32(1<<31), uint32(0), uint64(0), uint32(0), uint32(0))), uint16(90))
	f.Add(message(42, 0, words(uint32(1<<30), uint32(0), uint64(2), uint64(3))), uint16(0))
	f.Add(message(initOp, 0, initBody()), uint16(100))
	f.Add(message(destroy, 0, nil), uint16(16))
	f.Add(message(opendir, 1, words(uint32(0), uint32(0))), uint16(64))
	f.Add(message(flush, 2, words(uint64(1), uint32(0), uint32(0), uint64(0))), uint16(64))
	f.Fuzz(func(t *testing.T, in []byte, room uint16) {
		k := newKernel(t, fusefs.Options{Nodes: 8, Handles: 8})
		k.create(1, "f")
		k.must(opendir, 1, words(uint32(0), uint32(0)))
		if len(in) >= 4 && len(in) < 1<<20 {
			binary.LittleEndian.PutUint32(in, uint32(len(in)))
		}
		for range 3 {
			out := make([]byte, room)
			if n := k.s.Handle(in, out); n < 0 || n > len(out) {
				t.Fatalf("%d bytes into %d", n, len(out))
			}
		}
		if s := k.s.Stats(); s.Nodes > 8 || s.Handles > 8 {
			t.Fatalf("%+v", s)
		}
	})
}

// TestListed: what many open directories hold is bounded, and each can be listed to its end all the same.
func TestListed(t *testing.T) {
	k := newKernel(t, fusefs.Options{Listed: 100})
	for i := range 40 {
		k.create(1, fmt.Sprint("file", i))
	}
	next := make([]uint64, 5)
	handles := make([]uint64, 5)
	seen := make([]int, 5)
	for i := range handles {
		handles[i] = binary.LittleEndian.Uint64(k.must(opendir, 1, words(uint32(0), uint32(0))))
	}
	for done := 0; done < len(handles); {
		done = 0
		for i, fh := range handles {
			b := k.must(readdir, 1, words(fh, next[i], uint32(200), uint32(0), uint64(0), uint32(0), uint32(0)))
			if s := k.s.Stats(); s.Listed > 100 || s.Listed == 0 {
				t.Fatalf("%+v", s)
			}
			if len(b) == 0 {
				done++
			}
			for len(b) > 0 {
				next[i] = binary.LittleEndian.Uint64(b[8:])
				b = b[24+(binary.LittleEndian.Uint32(b[16:])+7)/8*8:]
				seen[i]++
			}
		}
	}
	for i, n := range seen {
		if n != 42 {
			t.Errorf("directory %d: %d names", i, n)
		}
		k.must(29, 1, words(handles[i], uint32(0), uint32(0), uint64(0)))
	}
	if s := k.s.Stats(); s.Listed != 0 {
		t.Errorf("after they are closed: %+v", s)
	}
}

// TestQuiet: a guest can't write into this process' log, whatever it sends.
func TestQuiet(t *testing.T) {
	var said bytes.Buffer
	log.SetOutput(&said)
	defer log.SetOutput(os.Stderr)
	k := newKernel(t, fusefs.Options{})
	out := make([]byte, 1<<12)
	for op := range uint32(80) {
		for _, n := range []int{0, 1, 7, 8, 15, 16, 40, 200} {
			k.s.Handle(message(op, 1, make([]byte, n)), out)
			k.s.Handle(message(op, 1, bytes.Repeat([]byte{0xff}, n)), out)
			k.must(initOp, 0, initBody())
		}
	}
	for _, body := range [][]byte{words(uint32(8), uint32(0), uint64(0)), words(uint32(7), uint32(1), uint64(0)), words(uint32(7))} {
		if _, no := k.call(initOp, 0, body); no == 0 {
			t.Errorf("INIT %x", body)
		}
	}
	if said.Len() > 0 {
		t.Errorf("it logs: %.300s", said.String())
	}
	for op, want := range map[uint32]syscall.Errno{34: syscall.ENOSYS, 39: syscall.ENOSYS, 46: syscall.ENOSYS, 4096: syscall.ENOSYS, 1<<32 - 1: syscall.ENOSYS, getattr: syscall.EIO} {
		if _, no := k.call(op, 1, nil); no != want {
			t.Errorf("operation %d: %v, want %v", op, no, want)
		}
	}
}
