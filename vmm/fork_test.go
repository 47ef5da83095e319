package vmm_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"agentrun.dev/errs"
	"agentrun.dev/vmm"
	"agentrun.dev/vmm/snapshot"
	"agentrun.dev/vmm/vmmtest"
)

// shell prepares a VM with a puppet's ports.
func shell(t *testing.T, h *vmm.Host, config vmm.Config) (*vmm.VM, *vmmtest.Puppet) {
	t.Helper()
	v, err := h.New(config)
	must(t, err)
	t.Cleanup(func() { v.Close() })
	p, err := vmmtest.Attach(v)
	must(t, err)
	return v, p
}

// A snapshot of a counting guest, restored, is exactly where it was, and goes on from there.
func TestRestore(t *testing.T) {
	h := vmmtest.Host(t)
	for _, config := range []vmm.Config{{Memory: 4 * mib}, {Memory: 4 * mib, Bare: true}, {Memory: 4 * mib, PIT: true}} {
		v, p := boot(t, h, config)
		must(t, p.Count())
		counting(t, v, 10)
		must(t, v.Pause())
		before, err := v.Regs(0)
		must(t, err)
		reg, mem := counter(t, v)
		s, err := v.Snapshot()
		must(t, err)
		defer s.Close()
		var file bytes.Buffer
		must(t, s.Write(&file))
		read, err := snapshot.Read(&file)
		must(t, err)
		defer read.Close()
		for _, s := range []*snapshot.Snapshot{s, read} {
			c, _ := shell(t, h, config)
			must(t, c.Restore(s))
			after, err := c.Regs(0)
			must(t, err)
			if after != before {
				t.Errorf("registers %+v became %+v", before, after)
			}
			if r, m := counter(t, c); r != reg || m != mem {
				t.Errorf("the child stands at %d, %d, its parent at %d, %d", r, m, reg, mem)
			}
			must(t, c.Resume())
			counting(t, c, mem+10)
		}
		if r, m := counter(t, v); r != reg || m != mem {
			t.Error("the paused parent has moved")
		}
		must(t, v.Resume())
		counting(t, v, mem+10)
	}
}

// A second snapshot of what was restored is the first one.
func TestSnapshotIsWhole(t *testing.T) {
	h := vmmtest.Host(t)
	v, p := boot(t, h, vmm.Config{Memory: 4 * mib, PIT: true, VCPUs: 2})
	must(t, p.Write(0xfee000f0, 0x1ff)) // something in the APIC
	must(t, p.Write(0xfec00000, 0x18))  // and in the I/O APIC: pin 4 to vector 0x40
	must(t, p.Write(0xfec00010, 0x40))
	must(t, v.Pause())
	a, err := v.Snapshot()
	must(t, err)
	defer a.Close()
	c, _ := shell(t, h, v.Config())
	must(t, c.Restore(a))
	b, err := c.Snapshot()
	must(t, err)
	defer b.Close()
	for i := range a.CPUs {
		x, y := &a.CPUs[i], &b.CPUs[i]
		if x.Regs != y.Regs || x.Sregs != y.Sregs || !bytes.Equal(x.XSave, y.XSave) || !bytes.Equal(x.XCRs, y.XCRs) ||
			!bytes.Equal(x.Debug, y.Debug) || x.MP != y.MP || !bytes.Equal(x.Events, y.Events) || !bytes.Equal(x.LAPIC, y.LAPIC) {
			t.Errorf("vCPU %d differs", i)
		}
		for k, m := range x.MSRs {
			if n := y.MSRs[k]; m != n && (m.Index != 0x10 || n.Value < m.Value) { // the time stamp counter goes on
				t.Errorf("vCPU %d: register %#x was %#x, is %#x", i, m.Index, m.Value, n.Value)
			}
		}
	}
	for i := range a.Chips {
		if !bytes.Equal(a.Chips[i], b.Chips[i]) {
			t.Errorf("interrupt controller %d differs", i)
		}
	}
	if b.Clock < a.Clock {
		t.Error("the clock went back")
	}
	if !bytes.Contains(a.Chips[2], []byte{0x40, 0, 0, 0}) {
		t.Error("what the guest wrote to the I/O APIC isn't in the snapshot")
	}
}

// Children of a running VM hold what it held, know nothing of one another, and share what nobody has written.
func TestFork(t *testing.T) {
	h := vmmtest.Host(t)
	config := vmm.Config{Memory: 64 * mib}
	v, p := boot(t, h, config)
	const addr, pages = 16 * mib, 2000
	must(t, p.Touch(addr, pages))
	must(t, p.Write(vmmtest.Free, 1))
	const n = 8
	var shells []*vmm.VM
	var puppets []*vmmtest.Puppet
	for range n {
		c, cp := shell(t, h, config)
		shells, puppets = append(shells, c), append(puppets, cp)
	}
	told := make([]bool, n)
	failed, err := v.Fork(shells, func(i int, c *vmm.VM) error {
		told[i] = true
		return c.Pause() // it isn't running yet
	})
	must(t, err)
	for i, err := range failed {
		if errs.KindOf(err) != errs.Unavailable || !told[i] {
			t.Errorf("child %d: %v; what ready says fails the child", i, err)
		}
	}
	for i := range shells {
		shells[i].Close()
		shells[i], puppets[i] = shell(t, h, config)
	}
	failed, err = v.Fork(shells, nil)
	must(t, err)
	for i := range shells {
		must(t, failed[i])
		must(t, puppets[i].Write(vmmtest.Free, uint32(100+i)))
		must(t, puppets[i].Write(addr+uint32(i)*4096, 7))
	}
	must(t, p.Write(vmmtest.Free, 2))
	if got, err := p.Read(addr); err != nil || got != pages {
		t.Errorf("the parent reads %d, %v", got, err)
	}
	for i, cp := range puppets {
		for at, want := range map[uint32]uint32{vmmtest.Free: uint32(100 + i), addr + uint32(i)*4096: 7, addr + (pages-1)*4096: 1,
			addr + uint32((i+1)%n)*4096: pages - uint32((i+1)%n)} {
			if got, err := cp.Read(at); err != nil || got != want {
				t.Errorf("child %d reads %d at %#x, %v; want %d", i, got, at, err, want)
			}
		}
		if d, err := shells[i].Memory().Dirty(); err != nil || d > 16*4096 {
			t.Errorf("child %d has %d bytes of its own, %v", i, d, err)
		}
	}
	// A child has children too.
	grand, gp := shell(t, h, config)
	failed, err = shells[3].Fork([]*vmm.VM{grand}, nil)
	must(t, err)
	must(t, failed[0])
	if got, err := gp.Read(vmmtest.Free); err != nil || got != 103 {
		t.Errorf("the grandchild reads %d, %v", got, err)
	}
}

// Devices and what was typed go with the fork.
func TestForkOfDevices(t *testing.T) {
	h := vmmtest.Host(t)
	config := vmm.Config{Memory: 4 * mib}
	v, err := h.New(config)
	must(t, err)
	defer v.Close()
	a := attach(t, v)
	p, err := vmmtest.Attach(v)
	must(t, err)
	must(t, v.Boot(vmmtest.Load))
	must(t, v.Resume())
	must(t, p.Write(vmm.DeviceBase, 77))
	_, err = v.Input([]byte("typed"))
	must(t, err)
	c, cp := shell(t, h, config)
	b := attach(t, c)
	none, _ := shell(t, h, config)
	s, err := v.Capture(func() error {
		if !a.paused {
			t.Error("a device isn't paused during the capture")
		}
		return nil
	})
	must(t, err)
	defer s.Close()
	if err := none.Restore(s); errs.KindOf(err) != errs.Invalid {
		t.Errorf("a VM without the device: %v", err)
	}
	must(t, c.Restore(s))
	must(t, c.Resume())
	if got, err := cp.Read(vmm.DeviceBase); err != nil || got != 77 || b.paused {
		t.Errorf("the child's device holds %d, %v", got, err)
	}
	for i, p := range []*vmmtest.Puppet{p, cp} {
		_ = i
		must(t, p.Write(vmm.DeviceBase, 5))
	}
	if n, err := c.Input(make([]byte, 4096)); n != 4091 || errs.KindOf(err) != errs.Limit {
		t.Errorf("the child's input has room for %d bytes, %v", n, err)
	}
}

// Snapshots that don't fit are refused, before anything is changed.
func TestRefused(t *testing.T) {
	h := vmmtest.Host(t)
	config := vmm.Config{Memory: 4 * mib}
	v, _ := boot(t, h, config)
	s, err := v.Capture(nil)
	must(t, err)
	defer s.Close()
	c, _ := shell(t, h, config)
	for name, c2 := range map[string]struct {
		change func(*snapshot.Snapshot)
		kind   errs.Kind
	}{
		"memory":  {func(s *snapshot.Snapshot) { s.Machine.Memory *= 2 }, errs.Invalid},
		"vCPUs":   {func(s *snapshot.Snapshot) { s.Machine.VCPUs = 2 }, errs.Invalid},
		"devices": {func(s *snapshot.Snapshot) { s.Devices = [][]byte{{}} }, errs.Invalid},
		"no CPU":  {func(s *snapshot.Snapshot) { s.CPUs = nil }, errs.Corrupt},
		"no chip": {func(s *snapshot.Snapshot) { s.Chips = nil }, errs.Corrupt},
		"no APIC": {func(s *snapshot.Snapshot) { s.CPUs[0].LAPIC = nil }, errs.Corrupt},
		"vendor":  {func(s *snapshot.Snapshot) { s.CPUs[0].CPUID[0].EBX ^= 1 }, errs.Unsupported},
		"MSR":     {func(s *snapshot.Snapshot) { s.CPUs[0].MSRs[0].Index = 0x12345678 }, errs.Unsupported},
		"vectors": {func(s *snapshot.Snapshot) { s.CPUs[0].XSave = append(s.CPUs[0].XSave, 0) }, errs.Unsupported},
	} {
		bad := *s
		bad.Origin = nil // as one from a file
		bad.CPUs = append([]snapshot.CPU(nil), s.CPUs...)
		bad.CPUs[0].CPUID = append(bad.CPUs[0].CPUID[:0:0], bad.CPUs[0].CPUID...)
		bad.CPUs[0].MSRs = append(bad.CPUs[0].MSRs[:0:0], bad.CPUs[0].MSRs...)
		bad.CPUs[0].XSave = bytes.Clone(bad.CPUs[0].XSave)
		c2.change(&bad)
		if err := c.Restore(&bad); errs.KindOf(err) != c2.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, c.Restore(s)) // none of them left anything behind
	if err := c.Restore(s); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("a second restore: %v", err)
	}
}

// used counts what forks could leave behind.
func used(t *testing.T) (fds, maps, goroutines int) {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	b, err := os.ReadFile("/proc/self/maps")
	must(t, err)
	return len(d), strings.Count(string(b), "agentrun-ram") + strings.Count(string(b), "kvm-vcpu"), runtime.NumGoroutine()
}

// Forks and ends leave nothing behind. Most of them are without interrupt controllers, for which the kernel
// waits in every one.
func TestNothingLeaks(t *testing.T) {
	h := vmmtest.Host(t)
	for _, c := range []struct {
		config vmm.Config
		forks  int
	}{{vmm.Config{Memory: 4 * mib, Bare: true}, 200}, {vmm.Config{Memory: 4 * mib, VCPUs: 2, PIT: true}, 20}} {
		if n, err := strconv.Atoi(os.Getenv("AGENTRUN_VM_FORKS")); err == nil && n > 0 { // as `make soak` sets it
			c.forks = n
		}
		v, p := boot(t, h, c.config)
		must(t, p.Count())
		counting(t, v, 1)
		fork := func(n int) {
			for range n {
				child, err := h.New(c.config)
				must(t, err)
				_, err = vmmtest.Attach(child)
				must(t, err)
				failed, err := v.Fork([]*vmm.VM{child}, nil)
				must(t, err)
				must(t, failed[0])
				must(t, child.Close())
			}
		}
		fork(5)
		fds, maps, gos := used(t)
		fork(c.forks)
		// The parent's own layers come and go: at most 64 of them. Helpers of the last pause end on their own.
		until(t, "nothing is left", func() bool {
			fds2, maps2, gos2 := used(t)
			t.Logf("%d descriptors, %d mappings, %d goroutines became %d, %d, %d", fds, maps, gos, fds2, maps2, gos2)
			return fds2 <= fds+64 && maps2 <= maps+64 && gos2 <= gos+2
		})
		must(t, v.Close())
	}
}

// Two vCPUs fork together.
func TestForkSMP(t *testing.T) {
	h := vmmtest.Host(t)
	config := vmm.Config{Memory: 4 * mib, VCPUs: 2}
	v, p := shell(t, h, config)
	must(t, v.Boot(loadSMP))
	must(t, v.Resume())
	startSecond(t, p)
	second := func(v *vmm.VM) uint32 {
		b, err := v.Memory().Bytes(secondCounter, 4)
		must(t, err)
		return binary.LittleEndian.Uint32(b)
	}
	until(t, "the second vCPU counts", func() bool { return second(v) > 100 })
	c, cp := shell(t, h, config)
	failed, err := v.Fork([]*vmm.VM{c}, nil)
	must(t, err)
	must(t, failed[0])
	at := second(c)
	until(t, "the child's second vCPU goes on", func() bool { return second(c) > at+100 })
	must(t, cp.Write(vmmtest.Free, 9))
	if got, err := p.Read(vmmtest.Free); err != nil || got != 0 {
		t.Errorf("the parent reads %d, %v", got, err)
	}
}
