package microvm

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/fusefs"
	"agentrun.dev/guest/image"
	"agentrun.dev/vfs/memfs"
	"agentrun.dev/vmm/jail"
	"agentrun.dev/vmm/vmmtest"
)

// TestMain is a VMM process when it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "be-a-vmm" {
		if err := jail.Serve(nil); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestMergeEnv(t *testing.T) {
	got := mergeEnv([]string{"A=1", "B=2"}, nil, []string{"B=3", "C=4", "C=5"})
	if !slices.Equal(got, []string{"A=1", "B=3", "C=5"}) {
		t.Errorf("%q", got)
	}
}

func TestVolumes(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	for path, kind := range map[string]errs.Kind{"/": errs.Unsupported, "": errs.Invalid, "x": errs.Invalid, "/a/../b": errs.Invalid, "/a/": errs.Invalid, "/a\x00": errs.Invalid,
		"/" + strings.Repeat("x", 5000): errs.Invalid} {
		if err := checkVolume(engine.Volume{Path: path, FS: fs}); !errs.Is(err, kind) {
			t.Errorf("%q: %v", path[:min(len(path), 20)], err)
		}
	}
	if err := checkVolume(engine.Volume{Path: "/a/b", FS: fs}); err != nil {
		t.Error(err)
	}
	if err := checkVolume(engine.Volume{Path: "/a"}); !errs.Is(err, errs.Invalid) {
		t.Errorf("no files: %v", err)
	}
	list := inOrder([]engine.Volume{{Path: "/a/b/c"}, {Path: "/x/y"}, {Path: "/a"}})
	if list[0].Path != "/a" || list[2].Path != "/a/b/c" {
		t.Errorf("%+v", list)
	}
}

func TestSlots(t *testing.T) {
	s := newSlots(&Instance{id: "one"})
	for i := range Slots {
		if n, err := s.take(fmt.Sprint("/v", i)); n != i || err != nil {
			t.Fatalf("slot %d: %d, %v", i, n, err)
		}
	}
	if _, err := s.take("/v3"); !errs.Is(err, errs.Conflict) {
		t.Errorf("the same path: %v", err)
	}
	if _, err := s.take("/more"); !errs.Is(err, errs.Limit) {
		t.Errorf("one more: %v", err)
	}
	s.drop(3)
	if _, ok := s.find("/v3"); ok {
		t.Error("a slot that was dropped is found")
	}
	if n, err := s.take("/more"); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if !s.writable() {
		t.Error("nothing can be written")
	}
	s.close()
}

// TestMatch: the volumes of a fork are those of the frozen one.
func TestMatch(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	v := func(paths ...string) (list []engine.Volume) {
		for _, p := range paths {
			list = append(list, engine.Volume{Path: p, FS: fs})
		}
		return list
	}
	im := &Image{}
	im.volumes[0], im.volumes[5] = saved{"/a", nil}, saved{"/b", nil}
	given, err := im.match("x", v("/b", "/a"))
	if err != nil || given[0] == nil || given[0].Path != "/a" || given[5] == nil || given[5].Path != "/b" || given[1] != nil {
		t.Errorf("%v, %v", given, err)
	}
	for _, bad := range [][]engine.Volume{nil, v("/a"), v("/a", "/b", "/c"), v("/a", "/c")} {
		if _, err := im.match("x", bad); !errs.Is(err, errs.Invalid) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// written is a saved image up to the machine's snapshot.
func written(t testing.TB, h savedImage, states ...*fusefs.State) []byte {
	t.Helper()
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	b := append([]byte(saveMagic), headOf(text)...)
	b = append(b, text...)
	for _, st := range states {
		part, err := st.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		b = append(append(b, headOf(part)...), part...)
	}
	return b
}

// aState is what a server without any requests knows.
func aState(t testing.TB) *fusefs.State {
	t.Helper()
	fs := memfs.New(memfs.Options{})
	server := fusefs.New(fusefs.Options{FS: fs})
	defer server.Close()
	st, err := server.State(context.Background())
	if err == nil {
		st, err = st.Lasting(context.Background(), fs)
	}
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestLoadRefuses(t *testing.T) {
	good := kind{Digest: "sha256:" + strings.Repeat("0", 64), Memory: 128 << 20, VCPUs: 1}
	st := aState(t)
	for what, b := range map[string][]byte{
		"nothing":         nil,
		"something else":  []byte("agentrun userspace 1\nand so on"),
		"no header":       []byte(saveMagic),
		"a long header":   append([]byte(saveMagic), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
		"no JSON":         append(append([]byte(saveMagic), headOf([]byte("x"))...), 'x'),
		"no kind":         written(t, savedImage{}),
		"much memory":     written(t, savedImage{Kind: kind{Digest: good.Digest, Memory: 1 << 50, VCPUs: 1}}),
		"a ninth slot":    written(t, savedImage{Kind: good, Volumes: []savedVolume{{8, "/a"}}}, st),
		"a path twice":    written(t, savedImage{Kind: good, Volumes: []savedVolume{{0, "/a"}, {1, "/a"}}}, st, st),
		"a slot twice":    written(t, savedImage{Kind: good, Volumes: []savedVolume{{0, "/a"}, {0, "/b"}}}, st, st),
		"no path":         written(t, savedImage{Kind: good, Volumes: []savedVolume{{0, ""}}}, st),
		"a missing state": written(t, savedImage{Kind: good, Volumes: []savedVolume{{0, "/a"}}}),
		"no snapshot":     written(t, savedImage{Kind: good, Volumes: []savedVolume{{0, "/a"}}}, st),
		"a bad snapshot":  append(written(t, savedImage{Kind: good, Volumes: []savedVolume{{0, "/a"}}}, st), "AGRNVMSN"...),
	} {
		if _, err := new(Engine).Load(t.Context(), bytes.NewReader(b)); !errs.Is(err, errs.Corrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(written(f, savedImage{Kind: kind{Digest: "sha256:" + strings.Repeat("0", 64), Memory: 128 << 20, VCPUs: 1}, Volumes: []savedVolume{{0, "/a"}}}, aState(f)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := new(Engine).Load(context.Background(), bytes.NewReader(b)); err == nil {
			t.Error("an image without a machine was loaded")
		}
	})
}

func TestBuiltinModules(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "modules.builtin"), []byte("kernel/drivers/virtio/virtio_mmio.ko\nkernel/fs/fuse/virtiofs.ko\nkernel/fs/erofs/erofs.ko\n"+
		"kernel/drivers/char/hw_random/virtio-rng.ko\nkernel/drivers/block/virtio_blk.ko\nkernel/fs/overlayfs/overlay.ko\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := findModules(dir); !errs.Is(err, errs.Unavailable) || errs.HintOf(err) == "" || !strings.Contains(err.Error(), "vsock") {
		t.Errorf("a folder without one: %v", err)
	}
	if m, err := findModules(""); m != nil || err != nil {
		t.Errorf("%v, %v", m, err)
	}
}

func TestHasNumber(t *testing.T) {
	if passwd := []byte("root:x:0:0:root:/root:/bin/sh\nme:x:1000:100::/home/me:\n"); !hasNumber(passwd, "1000") || hasNumber(passwd, "100") {
		t.Error("accounts are told by another field than their number")
	}
}

// host is an engine whose kernel is a few instructions: it never has an agent.
func host(t *testing.T, code ...byte) *Engine {
	t.Helper()
	vmmtest.Host(t)
	dir := t.TempDir()
	store, err := image.NewStore(filepath.Join(dir, "images"), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	kernel, agent := filepath.Join(dir, "kernel"), filepath.Join(dir, "agent")
	if err := os.WriteFile(kernel, vmlinux(code), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(agent, []byte("no agent"), 0o755); err != nil {
		t.Fatal(err)
	}
	e, err := New(Options{Kernel: kernel, Agent: agent, VMM: []string{"/proc/self/exe", "be-a-vmm"}, Images: store, Image: "tar:" + smallImage(t, dir), Memory: 64 << 20, Patience: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if len(e.shells.all) != 0 || len(e.bases.list) != 0 {
			t.Errorf("left: %v, %v", e.shells.all, e.bases.list)
		}
	})
	return e
}

// vmlinux is an ELF file whose code runs in 64-bit mode.
func vmlinux(code []byte) []byte {
	const at = 16 << 20
	b := make([]byte, 64+56, 64+56+len(code))
	le := binary.LittleEndian
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[18:], 62)
	le.PutUint64(b[24:], at)
	le.PutUint64(b[32:], 64)
	le.PutUint16(b[54:], 56)
	le.PutUint16(b[56:], 1)
	h := b[64:]
	le.PutUint32(h, 1)
	le.PutUint64(h[8:], uint64(len(b)))
	le.PutUint64(h[24:], at)
	le.PutUint64(h[32:], uint64(len(code)))
	le.PutUint64(h[40:], uint64(len(code)))
	return append(b, code...)
}

func smallImage(t *testing.T, dir string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "etc", Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
	w.Close()
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag("test/small:1")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "image.tar")
	if err := tarball.WriteToFile(file, tag, img); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestSilent: a machine whose agent never answers is given up, and nothing of it is left.
func TestSilent(t *testing.T) {
	e := host(t, 0xeb, 0xfe) // jmp $
	if _, err := e.Boot(t.Context(), engine.Spec{Identity: engine.Identity{ID: "one"}}); !errs.Is(err, errs.Unavailable) {
		t.Errorf("boot: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := e.Boot(ctx, engine.Spec{Identity: engine.Identity{ID: "two"}}); !errs.Is(err, errs.Canceled) {
		t.Errorf("boot, for who doesn't wait: %v", err)
	}
	if list, err := e.List(t.Context()); len(list) != 0 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
}

// TestBroken: a kernel that breaks down at once says so, in time.
func TestBroken(t *testing.T) {
	e := host(t, 0x0f, 0x01, 0x1c, 0x25, 0, 0, 0, 0, 0x0f, 0x0b) // lidt [0]; ud2
	e.o.Patience = time.Minute
	start := time.Now()
	if _, err := e.Boot(t.Context(), engine.Spec{Identity: engine.Identity{ID: "one"}}); !errs.Is(err, errs.Unavailable) || time.Since(start) > time.Minute {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
}

func TestSpecs(t *testing.T) {
	e := host(t, 0xeb, 0xfe)
	fs := memfs.New(memfs.Options{})
	one := engine.Identity{ID: "one"}
	var many []engine.Volume
	for i := range Slots + 1 {
		many = append(many, engine.Volume{Path: fmt.Sprint("/v", i), FS: fs})
	}
	for what, c := range map[string]struct {
		spec engine.Spec
		kind errs.Kind
	}{
		"no id":           {engine.Spec{}, errs.Invalid},
		"little memory":   {engine.Spec{Identity: one, Limits: engine.Limits{Memory: 1 << 20}}, errs.Invalid},
		"many processors": {engine.Spec{Identity: one, Limits: engine.Limits{VCPUs: 1000}}, errs.Invalid},
		"a root":          {engine.Spec{Identity: one, Volumes: []engine.Volume{{Path: "/", FS: fs}}}, errs.Unsupported},
		"many volumes":    {engine.Spec{Identity: one, Volumes: many}, errs.Limit},
		"no image":        {engine.Spec{Identity: one, Image: "tar:/no/such"}, errs.NotFound},
	} {
		if _, err := e.Boot(t.Context(), c.spec); !errs.Is(err, c.kind) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
