package microvm

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/fusefs"
	"agentrun.dev/vfs/memfs"
	"agentrun.dev/vmm/snapshot"
)

// captured is an image of a machine that turns in a circle, with a volume, and what Save makes of it.
func captured(t *testing.T, e *Engine) (*Image, []byte) {
	t.Helper()
	ctx := t.Context()
	k, r, err := e.kind(ctx, &engine.Spec{Identity: engine.Identity{ID: "one"}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.shells.hold(e, sort{kind: k}, r)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	kernel, err := os.Open(e.o.Kernel)
	if err != nil {
		t.Fatal(err)
	}
	defer kernel.Close()
	for _, err := range []error{p.Boot(ctx, kernel, nil, ""), p.Resume(ctx)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	fs := memfs.New(memfs.Options{})
	server := fusefs.New(fusefs.Options{FS: fs})
	defer server.Close()
	state, err := server.State(ctx)
	if err != nil {
		t.Fatal(err)
	}
	im := &Image{e: e, shells: s, token: "token", nature: nature{env: []string{"A=1"}, hostname: "one"}}
	im.volumes[2] = saved{"/v", state}
	t.Cleanup(func() { im.Close() })
	if im.machine, err = p.CaptureImage(ctx); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := im.Save(ctx, &b, []engine.Volume{{Path: "/v", FS: fs}}); err != nil {
		t.Fatal(err)
	}
	return im, b.Bytes()
}

// vmmProcesses are how many processes this one has started.
func vmmProcesses(t *testing.T) (n int) {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		b, _ := os.ReadFile(task) // the thread may be gone
		n += len(bytes.Fields(b))
	}
	return n
}

// loadAndStart loads and starts, and returns the error of either.
func loadAndStart(t *testing.T, e *Engine, b []byte) error {
	t.Helper()
	im, err := e.Load(t.Context(), bytes.NewReader(b))
	if err != nil {
		return err
	}
	defer im.Close()
	in, err := im.Start(t.Context(), engine.Identity{ID: "loaded"}, []engine.Volume{{Path: "/v", FS: memfs.New(memfs.Options{})}})
	if err == nil {
		_ = in.Stop(t.Context())
	}
	return err
}

// TestLoadBroken: what was saved and isn't what it was any more, or is for another host, is refused with its reason, and nothing runs.
func TestLoadBroken(t *testing.T) {
	e := host(t, 0xeb, 0xfe)
	e.o.Shells, e.o.Patience = -1, time.Minute // none waits, so that they can be counted
	_, good := captured(t, e)
	if im, err := e.Load(t.Context(), bytes.NewReader(good)); err != nil {
		t.Fatalf("what is whole: %v", err)
	} else {
		im.Close()
	}
	before := vmmProcesses(t)
	header := len(saveMagic) + partHead
	first := bytes.Index(good, []byte("AGRNVMSN"))
	if first < header {
		t.Fatal("there is no snapshot")
	}
	flip := func(at int) []byte {
		b := bytes.Clone(good)
		b[at] ^= 4
		return b
	}
	// changed is the image with another snapshot.
	changed := func(f func(*snapshot.Snapshot)) []byte {
		s, err := snapshot.Read(bytes.NewReader(good[first:]))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		f(s)
		b := bytes.NewBuffer(bytes.Clone(good[:first]))
		if err := s.Write(b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	type broken struct {
		b    []byte
		kind errs.Kind
		text string
	}
	cases := map[string]broken{
		"another version":          {append([]byte("agentrun microvm 9\n"), good[len(saveMagic):]...), errs.Unsupported, "another version"},
		"another snapshot version": {flip(first + 8), errs.Unsupported, "version"},
		"a processor's feature": {changed(func(s *snapshot.Snapshot) {
			for i := range s.CPUs[0].CPUID {
				if c := &s.CPUs[0].CPUID[i]; c.Function == 7 && c.Index == 0 {
					c.EBX, c.EDX = ^uint32(0), ^uint32(0)
				}
			}
		}), errs.Unsupported, "this host doesn't fit"},
		"another vendor": {changed(func(s *snapshot.Snapshot) {
			for i := range s.CPUs[0].CPUID {
				if c := &s.CPUs[0].CPUID[i]; c.Function == 0 {
					c.EBX ^= 1
				}
			}
		}), errs.Unsupported, "this host doesn't fit"},
		"a register":       {changed(func(s *snapshot.Snapshot) { s.CPUs[0].MSRs[0].Index = 0x12345 }), errs.Unsupported, "register"},
		"another machine":  {changed(func(s *snapshot.Snapshot) { s.Machine.VCPUs = 2 }), errs.Corrupt, "kind"},
		"no device":        {changed(func(s *snapshot.Snapshot) { s.Devices = s.Devices[:3] }), errs.Invalid, "devices"},
		"no processor":     {changed(func(s *snapshot.Snapshot) { s.CPUs = nil }), errs.Corrupt, "parts"},
		"a device's state": {changed(func(s *snapshot.Snapshot) { s.Devices[1] = []byte("{}") }), errs.Other, ""},
	}
	for _, at := range []int{0, 5, len(saveMagic), len(saveMagic) + 7, len(saveMagic) + 10, header, header + 20, first - 1, first, first + 13, first + 40, first + 300,
		(first + len(good)) / 2, len(good) - 25, len(good) - 1} {
		cases["a bit at "+strconv.Itoa(at)] = broken{flip(at), errs.Corrupt, ""}
		cases["the first "+strconv.Itoa(at)] = broken{good[:at], errs.Corrupt, ""}
	}
	for name, c := range cases {
		err := loadAndStart(t, e, c.b)
		if err == nil || c.kind != errs.Other && !errs.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v (%v), want %v", name, err, errs.KindOf(err), c.kind)
		}
	}
	if list, err := e.List(t.Context()); len(list) != 0 || err != nil {
		t.Errorf("there are %v, %v", list, err)
	}
	for end := time.Now().Add(time.Minute); vmmProcesses(t) > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d processes became %d", before, vmmProcesses(t))
		}
	}
}

// TestNoKernel: what isn't a kernel is said to be none.
func TestNoKernel(t *testing.T) {
	e := host(t, 0xeb, 0xfe)
	e.o.Patience = time.Minute
	for name, b := range map[string][]byte{"text": bytes.Repeat([]byte("not a kernel\n"), 1000), "nothing": nil, "a short one": []byte("\x7fELF\x02\x01\x01")} {
		if err := os.WriteFile(e.o.Kernel, b, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Boot(t.Context(), engine.Spec{Identity: engine.Identity{ID: "one"}}); !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), "kernel") {
			t.Errorf("%s: %v (%v)", name, err, errs.KindOf(err))
		}
	}
}

// TestSaveFails: who can't take the image is told, and the image stays.
func TestSaveFails(t *testing.T) {
	e := host(t, 0xeb, 0xfe)
	im, good := captured(t, e)
	for _, n := range []int{0, 10, 100, len(good) - 1} {
		if err := im.Save(t.Context(), &short{n}, []engine.Volume{{Path: "/v", FS: memfs.New(memfs.Options{})}}); err == nil {
			t.Errorf("after %d bytes nobody says anything", n)
		}
	}
	if err := im.Save(t.Context(), io.Discard, []engine.Volume{{Path: "/v", FS: memfs.New(memfs.Options{})}}); err != nil {
		t.Error(err)
	}
}

// short takes n bytes.
type short struct{ n int }

func (s *short) Write(b []byte) (int, error) {
	if s.n -= len(b); s.n < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

// TestCloseWithImages: an engine that ends leaves no process, whatever images somebody still has, and starts none.
func TestCloseWithImages(t *testing.T) {
	e := host(t, 0xeb, 0xfe)
	before := vmmProcesses(t)
	im, _ := captured(t, e)
	p, err := im.shells.take(t.Context()) // others wait from now on
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if n := vmmProcesses(t); n != before {
		t.Errorf("%d processes became %d", before, n)
	}
	if _, err := im.Start(t.Context(), engine.Identity{ID: "late"}, []engine.Volume{{Path: "/v", FS: memfs.New(memfs.Options{})}}); !errs.Is(err, errs.Unavailable) {
		t.Errorf("after the end: %v", err)
	}
}
