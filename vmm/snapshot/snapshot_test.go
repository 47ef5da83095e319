package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/kvm"
	"agentrun.dev/vmm/memory"
)

const mib = 1 << 20

// sample is a snapshot of a VM that never was.
func sample(t testing.TB) *Snapshot {
	t.Helper()
	m, err := memory.New(4 * mib)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, at := range []uint64{0, 5000, 3 * mib, 4*mib - 1} {
		b, err := m.Bytes(at, 1)
		if err != nil {
			t.Fatal(err)
		}
		b[0] = byte(at) + 1
	}
	im, err := m.Capture()
	if err != nil {
		t.Fatal(err)
	}
	s := &Snapshot{Machine: Machine{Memory: 4 * mib, VCPUs: 1}, Clock: 42, Console: []byte("console"), Devices: [][]byte{{1}, nil, {3}}, Memory: im,
		Chips: [][]byte{{1}, {2}, {3}},
		CPUs: []CPU{{CPUID: []kvm.CPUIDEntry{{Function: 0, EBX: 1, ECX: 2, EDX: 3}, {Function: 1, ECX: 1<<31 | 1<<3, EDX: 7}},
			Regs: kvm.Regs{RIP: 1<<63 + 1}, MSRs: []kvm.MSR{{Index: 0x10, Value: 5}}, XSave: make([]byte, 4096), LAPIC: []byte{1}, TSCKHz: 2_000_000}}}
	t.Cleanup(func() { s.Close() })
	return s
}

func file(t testing.TB, s *Snapshot) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// ram is the image's content.
func ram(t testing.TB, im *memory.Image) []byte {
	t.Helper()
	all := make([]byte, im.Size())
	if err := im.Data(func(off uint64, b []byte) error { copy(all[off:], b); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWriteAndRead(t *testing.T) {
	s := sample(t)
	b := file(t, s)
	if len(b) > 64<<10 {
		t.Errorf("four pages and little else take %d bytes", len(b))
	}
	got, err := Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if !bytes.Equal(ram(t, got.Memory), ram(t, s.Memory)) {
		t.Error("the RAM differs")
	}
	a, c := *s, *got
	a.Memory, c.Memory = nil, nil
	if !reflect.DeepEqual(a, c) {
		t.Errorf("read %+v, wrote %+v", c, a)
	}
}

// Every changed byte and every cut is found.
func TestCorrupt(t *testing.T) {
	b := file(t, sample(t))
	refused := func(what string, at int, b []byte) {
		t.Helper()
		s, err := Read(bytes.NewReader(b))
		if err == nil {
			s.Close()
			t.Errorf("%s at %d: accepted", what, at)
		} else if k := errs.KindOf(err); k != errs.Corrupt && k != errs.Unsupported {
			t.Errorf("%s at %d: %v", what, at, err)
		}
	}
	for at := 0; at < len(b); at += 1 + at/50 {
		bad := bytes.Clone(b)
		bad[at] ^= 4
		refused("changed", at, bad)
		refused("cut", at, b[:at])
	}
	newer := bytes.Clone(b)
	binary.LittleEndian.PutUint32(newer[8:], fileVersion+1)
	if _, err := Read(bytes.NewReader(newer)); errs.KindOf(err) != errs.Unsupported || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("another version: %v", err)
	}
}

type failing struct{ left int }

var errDisk = errors.New("no disk")

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errDisk
	}
	return len(p), nil
}

func (f *failing) Read(p []byte) (int, error) { return 0, errDisk }

func TestDiskErrors(t *testing.T) {
	s := sample(t)
	for left := 0; left < 4096*4; left += 4096 {
		if err := s.Write(&failing{left}); !errors.Is(err, errDisk) {
			t.Errorf("after %d bytes: %v", left, err)
		}
	}
	b := file(t, s)
	for _, n := range []int{0, 13, 100, len(b) - 1} {
		if _, err := Read(io.MultiReader(bytes.NewReader(b[:n]), &failing{})); !errors.Is(err, errDisk) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

func TestFits(t *testing.T) {
	s := sample(t)
	host := func(change func(*Host)) *Host {
		h := &Host{CPUID: []kvm.CPUIDEntry{{Function: 0, EBX: 1, ECX: 2, EDX: 3}, {Function: 1, ECX: 1<<3 | 1<<4, EDX: 7}},
			MSRs: []uint32{0x11, 0x10}, XSave: 4096, TSCKHz: 2_000_400}
		change(h)
		return h
	}
	for name, c := range map[string]struct {
		change func(*Host)
		want   string
	}{
		"as it is":       {func(h *Host) {}, ""},
		"vendor":         {func(h *Host) { h.CPUID[0].EDX = 9 }, "vendor"},
		"feature":        {func(h *Host) { h.CPUID[1].EDX = 3 }, "leaf 0x1.0, edx 0x4"},
		"leaf":           {func(h *Host) { h.CPUID = h.CPUID[:1] }, "features"},
		"more features":  {func(h *Host) { h.CPUID[1].EDX = 15 }, ""},
		"register":       {func(h *Host) { h.MSRs = h.MSRs[:1] }, "register 0x10"},
		"vector state":   {func(h *Host) { h.XSave = 8192 }, "vector state"},
		"counter":        {func(h *Host) { h.TSCKHz = 2_100_000 }, "time stamp counter"},
		"slower counter": {func(h *Host) { h.TSCKHz = 1_900_000 }, "time stamp counter"},
		"scaled":         {func(h *Host) { h.TSCKHz = 2_100_000; h.TSCScale = true }, ""},
	} {
		err := s.Fits(host(c.change))
		if (err == nil) != (c.want == "") || err != nil && (errs.KindOf(err) != errs.Unsupported || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	b := file(f, sample(f))
	f.Add(b)
	f.Add(b[:200])
	f.Add([]byte(fileMagic + "\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := Read(bytes.NewReader(b)); err == nil {
			s.Close()
		} else if errs.KindOf(err) == errs.Other {
			t.Fatal(err)
		}
	})
}
