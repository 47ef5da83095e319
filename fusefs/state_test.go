package fusefs_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"syscall"
	"testing"

	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/fusefs"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/bucketfs"
	"agentrun.dev/vfs/hostfs"
	"agentrun.dev/vfs/memfs"
)

// source is a filesystem and ways to have another one with the same files.
type source struct {
	fs     vfs.FS
	clone  func() vfs.FS // at this instant
	reopen func() vfs.FS // what the clone was saved as, opened anew
}

func sources(t *testing.T) map[string]source {
	mem := memfs.New(memfs.Options{UID: 1000, GID: 1000})
	var saved *memfs.FS
	b, buck := newBucketFS(t)
	host, err := hostfs.New(t.TempDir(), hostfs.Options{UID: 1000, GID: 1000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	fork := func(from string) *bucket.Bucket {
		f, err := b.Store().Fork(t.Context(), from, from+"-fork", bucket.ForkOptions{})
		if err != nil {
			t.Fatal(err)
		}
		fork, err := b.Store().Bucket(t.Context(), f.Name)
		if err != nil {
			t.Fatal(err)
		}
		return fork
	}
	return map[string]source{
		"memory": {mem, func() vfs.FS { saved = mem.Clone(); return saved }, func() vfs.FS {
			var w bytes.Buffer
			if err := saved.Save(&w); err != nil {
				t.Fatal(err)
			}
			fs, err := memfs.Load(&w, memfs.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return fs
		}},
		"bucket": {buck, func() vfs.FS {
			if err := buck.Flush(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			c, err := buck.Clone(t.Context(), fork("files"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close(t.Context()) })
			return c
		}, func() vfs.FS {
			fs, err := bucketfs.New(t.Context(), fork("files-fork"), bucketfs.Options{UID: 1000, GID: 1000})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { fs.Close(t.Context()) })
			return fs
		}},
		"folder": {host, func() vfs.FS { return host }, func() vfs.FS { return host }},
	}
}

func (k *kernel) node(dir uint64, name string) uint64 {
	k.t.Helper()
	return binary.LittleEndian.Uint64(k.must(lookup, dir, words(name)))
}

func (k *kernel) names(dir, fh, off uint64, size uint32) string {
	k.t.Helper()
	b := k.must(readdir, dir, words(fh, off, size, uint32(0), uint64(0), uint32(0), uint32(0)))
	var names []string
	for len(b) > 24 {
		n := int(binary.LittleEndian.Uint32(b[16:]))
		names = append(names, string(b[24:24+n]))
		b = b[min(len(b), (24+n+7)&^7):]
	}
	return strings.Join(names, " ")
}

// TestRestart saves what a server keeps, and goes on with it over the files opened anew.
func TestRestart(t *testing.T) {
	for name, src := range sources(t) {
		t.Run(name, func(t *testing.T) {
			k := newKernel(t, fusefs.Options{FS: src.fs})
			// More files than it is asked for, so that those that are opened anew get other numbers.
			d := binary.LittleEndian.Uint64(k.must(mkdir, 1, words(uint32(0o755), uint32(0), "dir")))
			e := binary.LittleEndian.Uint64(k.must(mkdir, d, words(uint32(0o755), uint32(0), "inner")))
			node, fh := k.create(e, "open")
			k.write(node, fh, 0, "before")
			moved, movedFH := k.create(1, "old")
			k.write(moved, movedFH, 0, "moved")
			k.must(rename, 1, words(e, "old", "new"))
			lost, lostFH := k.create(e, "lost")
			k.write(lost, lostFH, 0, "nameless")
			k.must(unlink, e, words("lost"))
			// The name has another file now.
			other, otherFH := k.create(e, "lost")
			k.write(other, otherFH, 0, "another")
			k.must(release, other, words(otherFH, uint32(0), uint32(0), uint64(0)))
			listing := binary.LittleEndian.Uint64(k.must(opendir, e, words(uint32(0), uint32(0))))
			if got := k.names(e, listing, 0, 64); got != ". .." {
				t.Fatalf("listed %q", got)
			}

			st, err := k.s.State(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := st.MarshalBinary(); !errs.Is(err, errs.Invalid) {
				t.Errorf("a state that doesn't last: %v", err)
			}
			cut := src.clone()
			if st, err = st.Lasting(t.Context(), cut); err != nil {
				t.Fatal(err)
			}
			saved, err := st.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			var back fusefs.State
			if err := back.UnmarshalBinary(saved); err != nil {
				t.Fatal(err)
			}
			if again, err := back.MarshalBinary(); err != nil || !bytes.Equal(again, saved) {
				t.Errorf("written again it is something else: %v", err)
			}
			fs := src.reopen()
			// Somebody was there before.
			early := newKernel(t, fusefs.Options{FS: fs})
			early.create(1, "early")
			s, err := fusefs.Restore(t.Context(), &back, fusefs.Options{FS: fs})
			if err != nil {
				t.Fatal(err)
			}
			c := &kernel{t, s}
			defer s.Close()
			if k.s.Stats() != s.Stats() {
				t.Errorf("it knows %+v, the original %+v", s.Stats(), k.s.Stats())
			}
			for _, x := range []struct {
				node, fh uint64
				want     string
			}{{node, fh, "before"}, {moved, movedFH, "moved"}, {lost, lostFH, "nameless"}} {
				if got, no := c.read(x.node, x.fh); got != x.want || no != 0 {
					t.Errorf("read %q %v, want %q", got, no, x.want)
				}
			}
			if got := c.names(e, listing, 2, 4096); got != "lost new open" {
				t.Errorf("the rest of the listing: %q", got)
			}
			for name, want := range map[string]uint64{"open": node, "new": moved, "lost": other} {
				if got := c.node(e, name); got != want {
					t.Errorf("%s is node %d, was %d", name, got, want)
				}
			}
			c.write(lost, lostFH, 8, "!")
			if got, no := c.read(lost, lostFH); got != "nameless!" || no != 0 {
				t.Errorf("%q %v", got, no)
			}
			seen := map[uint64]bool{1: true, d: true, e: true, node: true, moved: true, lost: true, other: true}
			for _, name := range []string{"p", "q", "r"} {
				n, fh := c.create(d, name)
				c.write(n, fh, 0, name)
				if seen[n] {
					t.Errorf("%s has the number %d of another", name, n)
				}
				seen[n] = true
			}
			if name != "folder" { // the same folder, whose state lives on beside
				if _, no := k.call(lookup, d, words("p")); no != syscall.ENOENT {
					t.Errorf("the new file is in the original: %v", no)
				}
			}
			if got := c.names(1, binary.LittleEndian.Uint64(c.must(opendir, 1, words(uint32(0), uint32(0)))), 0, 4096); got != ". .. dir early" {
				t.Errorf("the root has %q", got)
			}
		})
	}
}

// TestReplaced restores over files that aren't those: what the kernel knew is ESTALE until it has forgotten it, and nothing new is
// called by its number.
func TestReplaced(t *testing.T) {
	k := newKernel(t, fusefs.Options{})
	node, fh := k.create(1, "f")
	d := binary.LittleEndian.Uint64(k.must(mkdir, 1, words(uint32(0o755), uint32(0), "dir")))
	dh := binary.LittleEndian.Uint64(k.must(opendir, d, words(uint32(0), uint32(0))))
	c := &kernel{t, nil}
	var err error
	if c.s, err = k.s.Clone(t.Context(), memfs.New(memfs.Options{})); err != nil {
		t.Fatal(err)
	}
	defer c.s.Close()
	if got := c.s.Stats(); got != k.s.Stats() {
		t.Errorf("%+v", got)
	}
	if _, no := c.read(node, fh); no != syscall.ESTALE {
		t.Errorf("read: %v", no)
	}
	if _, no := c.call(getattr, node, words(uint32(0), uint32(0), uint64(0))); no != syscall.ESTALE {
		t.Errorf("getattr: %v", no)
	}
	if _, no := c.call(readdir, d, words(dh, uint64(0), uint32(4096), uint32(0), uint64(0), uint32(0), uint32(0))); no != syscall.ESTALE {
		t.Errorf("readdir: %v", no)
	}
	a, ah := c.create(1, "f")
	b, _ := c.create(1, "g")
	if a == node || a == d || b == node || b == d || a == b {
		t.Errorf("numbers %d and %d; taken are %d and %d", a, b, node, d)
	}
	c.write(a, ah, 0, "new")
	if got := c.node(1, "f"); got != a {
		t.Errorf("f is %d, and was %d", got, a)
	}
	// A fork of it knows the same.
	st, err := c.s.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e := &kernel{t, nil}
	if e.s, err = fusefs.Restore(t.Context(), st, fusefs.Options{FS: memfs.New(memfs.Options{})}); err != nil {
		t.Fatal(err)
	}
	e.s.Close()
	c.must(release, node, words(fh, uint32(0), uint32(0), uint64(0)))
	c.must(29, d, words(dh, uint32(0), uint32(0), uint64(0)))
	for _, n := range []uint64{node, d, a, b} {
		c.call(forget, n, words(uint64(100)))
	}
	if got := c.s.Stats(); got.Nodes != 0 || got.Handles != 2 {
		t.Errorf("kept: %+v", got)
	}
}

// TestRestoreLimits: a state is refused where less is allowed, and by a filesystem that can't be asked.
func TestRestoreLimits(t *testing.T) {
	k := newKernel(t, fusefs.Options{})
	for _, name := range []string{"a", "b", "c"} {
		k.create(1, name)
	}
	st, err := k.s.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fusefs.Restore(t.Context(), st, fusefs.Options{FS: memfs.New(memfs.Options{}), Nodes: 8, Handles: 2}); !errs.Is(err, errs.Limit) {
		t.Errorf("more handles than allowed: %v", err)
	}
	if err := k.s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := k.s.State(t.Context()); !errs.Is(err, errs.Unavailable) {
		t.Errorf("of a closed server: %v", err)
	}
}

// TestNoNumbers clones onto a filesystem that is known by its names only.
func TestNoNumbers(t *testing.T) {
	fs := memfs.New(memfs.Options{UID: 1000, GID: 1000})
	k := newKernel(t, fusefs.Options{FS: fs})
	node, fh := k.create(1, "f")
	k.write(node, fh, 0, "hello")
	k.must(lookup, 1, words("f"))
	s, err := k.s.Clone(t.Context(), struct{ vfs.FS }{fs.Clone()})
	if err != nil {
		t.Fatal(err)
	}
	c := &kernel{t, s}
	if got, no := c.read(node, fh); got != "hello" || no != 0 {
		t.Errorf("%q %v", got, no)
	}
	c.call(forget, node, words(uint64(2)))
	c.must(release, node, words(fh, uint32(0), uint32(0), uint64(0)))
	if got := s.Stats(); got != (fusefs.Stats{}) {
		t.Errorf("%+v", got)
	}
	s.Close()
}

// FuzzState reads bytes of any kind, with the right checksum, and goes on with what it is told.
func FuzzState(f *testing.F) {
	k := newKernel(f, fusefs.Options{})
	k.create(1, "f")
	lost, fh := k.create(1, "lost")
	k.write(lost, fh, 0, "nameless")
	k.must(unlink, 1, words("lost"))
	d := binary.LittleEndian.Uint64(k.must(mkdir, 1, words(uint32(0o755), uint32(0), "dir")))
	k.create(d, "g")
	k.names(1, binary.LittleEndian.Uint64(k.must(opendir, 1, words(uint32(0), uint32(0)))), 0, 4096)
	fs := memfs.New(memfs.Options{})
	for _, of := range []*fusefs.Server{k.s, fusefs.New(fusefs.Options{FS: fs})} {
		st, err := of.State(f.Context())
		if err == nil {
			st, err = st.Lasting(f.Context(), fs)
		}
		if err != nil {
			f.Fatal(err)
		}
		b, err := st.MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:len(b)-4])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
		var st fusefs.State
		if err := st.UnmarshalBinary(b); err != nil {
			if !errs.Is(err, errs.Corrupt) {
				t.Fatal(err)
			}
			return
		}
		again, err := st.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if err := new(fusefs.State).UnmarshalBinary(again); err != nil {
			t.Fatalf("what was written can't be read: %v", err)
		}
		fs := memfs.New(memfs.Options{})
		was := newKernel(t, fusefs.Options{FS: fs})
		was.create(1, "f")
		was.must(mkdir, 1, words(uint32(0o755), uint32(0), "dir"))
		s, err := fusefs.Restore(t.Context(), &st, fusefs.Options{FS: fs, Nodes: 100, Handles: 100})
		if err != nil {
			return
		}
		defer s.Close()
		for _, m := range [][]byte{
			message(lookup, 1, words("f")), message(read, 2, words(uint64(1), uint64(0), uint32(99), uint32(0), uint64(0), uint32(0), uint32(0))),
			message(forget, 2, words(uint64(1))), message(create, 1, words(uint32(2), uint32(0o644), uint32(0), uint32(0), "new")), message(initOp, 0, initBody()),
		} {
			s.Handle(m, make([]byte, 4096))
		}
	})
}
