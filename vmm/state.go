package vmm

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/kvm"
	"agentrun.dev/vmm/snapshot"
)

// machine is what a snapshot of this VM needs.
func (v *VM) machine() snapshot.Machine {
	return snapshot.Machine{Memory: v.config.Memory, VCPUs: v.config.VCPUs, PIT: v.config.PIT, Bare: v.config.Bare}
}

// Snapshot takes the state of a paused VM, whose RAM is captured: what it wrote since the last time moves into a layer
// that it shares with the snapshot.
func (v *VM) Snapshot() (*snapshot.Snapshot, error) {
	v.op.Lock()
	defer v.op.Unlock()
	if err := v.is("snapshot", paused); err != nil {
		return nil, err
	}
	return v.snapshot()
}

func (v *VM) snapshot() (*snapshot.Snapshot, error) {
	s := &snapshot.Snapshot{Origin: v.host, Machine: v.machine(), CPUs: make([]snapshot.CPU, len(v.cpus))}
	var err error
	xsave := v.vm.XSaveSize()
	for i, c := range v.cpus {
		if s.CPUs[i], err = snapshot.ReadCPU(c.kvm, c.cpuid, v.host.msrs, xsave, v.config.Bare); err != nil {
			return nil, err
		}
	}
	if !v.config.Bare {
		for i := range kvm.IRQChips {
			b := make([]byte, kvm.IRQChipSize)
			if err := v.vm.IRQChip(i, b); err != nil {
				return nil, err
			}
			s.Chips = append(s.Chips, b)
		}
	}
	if v.config.PIT {
		s.PIT = make([]byte, kvm.PITSize)
		if err := v.vm.PIT(s.PIT); err != nil {
			return nil, err
		}
	}
	if s.Clock, err = v.vm.Clock(); err != nil {
		return nil, err
	}
	s.Console = v.console.State()
	for i, d := range v.devices {
		b, err := d.State()
		if err != nil {
			return nil, errs.New(errs.KindOf(err), "snapshot", fmt.Sprintf("device %d", i), err)
		}
		s.Devices = append(s.Devices, b)
	}
	s.Memory, err = v.mem.Capture()
	return s, err
}

// Restore makes a prepared VM what a snapshot is of; it is paused then. The VM needs the same machine and as many
// devices. Errors: Invalid when it hasn't, Unsupported when the host doesn't fit; a VM whose restore failed halfway can
// only be closed. The snapshot stays the caller's.
func (v *VM) Restore(s *snapshot.Snapshot) error {
	v.op.Lock()
	defer v.op.Unlock()
	if err := v.is("restore", prepared); err != nil {
		return err
	}
	if err := v.suits(s); err != nil {
		return err
	}
	if err := v.mem.Load(s.Memory); err != nil {
		return err
	}
	for i, b := range s.Chips {
		if err := v.vm.SetIRQChip(i, b); err != nil {
			return err
		}
	}
	if s.PIT != nil {
		if err := v.vm.SetPIT(s.PIT); err != nil {
			return err
		}
	}
	if err := v.vm.SetClock(s.Clock); err != nil {
		return err
	}
	for i, c := range v.cpus {
		if err := c.restore(&s.CPUs[i]); err != nil {
			return err
		}
	}
	if err := v.console.SetState(s.Console); err != nil {
		return err
	}
	for i, d := range v.devices {
		d.Pause()
		if err := d.SetState(s.Devices[i]); err != nil {
			return errs.New(errs.KindOf(err), "restore", fmt.Sprintf("device %d", i), err)
		}
	}
	v.set(paused)
	return nil
}

// suits checks that a snapshot is whole and meant for a VM like this one on a host like this.
func (v *VM) suits(s *snapshot.Snapshot) error {
	switch m := v.machine(); {
	case s.Machine != m:
		return errs.Msg(errs.Invalid, "vmm", "restore", fmt.Sprintf("the snapshot is of another machine: %+v, not %+v", s.Machine, m))
	case len(s.Devices) != len(v.devices):
		return errs.Msg(errs.Invalid, "vmm", "restore", fmt.Sprintf("the snapshot has %d devices, the VM %d", len(s.Devices), len(v.devices)))
	case len(s.CPUs) != len(v.cpus) || (len(s.Chips) != 0) == m.Bare || len(s.Chips) > kvm.IRQChips || (s.PIT != nil) != m.PIT || s.Memory == nil:
		return errs.Msg(errs.Corrupt, "vmm", "restore", "the snapshot lacks parts")
	}
	for i := range s.CPUs {
		if (s.CPUs[i].LAPIC == nil) != v.config.Bare {
			return errs.Msg(errs.Corrupt, "vmm", "restore", "the snapshot lacks parts")
		}
	}
	if s.Origin == v.host { // of this very process
		return nil
	}
	return s.Fits(&snapshot.Host{CPUID: v.host.cpuid, MSRs: v.host.msrs, XSave: v.vm.XSaveSize(), TSCKHz: v.cpus[0].kvm.TSCKHz(),
		TSCScale: v.host.sys.Check(kvm.CapTSCControl) > 0})
}

// restore sets the state of a vCPU. What it was told at first, CPUID and the counter's rate, is told anew where the
// snapshot was made elsewhere.
func (c *vcpu) restore(s *snapshot.CPU) error {
	if !slices.Equal(s.CPUID, c.cpuid) {
		if err := c.kvm.SetCPUID(s.CPUID); err != nil {
			return err
		}
		c.cpuid = s.CPUID
	}
	if s.TSCKHz != 0 && s.TSCKHz != c.tscKHz {
		if err := c.kvm.SetTSCKHz(s.TSCKHz); err != nil && c.vm.host.sys.Check(kvm.CapTSCControl) > 0 {
			return err // without the capability the rates are near enough, as Fits has found
		}
	}
	return s.Set(c.kvm, c.fresh)
}

// Capture pauses a running VM, calls meanwhile (which may be nil) when nothing in it moves, takes a snapshot and lets
// it go on, whatever came of it. How long the VM stands still depends on what it wrote since the last capture.
func (v *VM) Capture(meanwhile func() error) (*snapshot.Snapshot, error) {
	v.op.Lock()
	defer v.op.Unlock()
	if err := v.pause("capture"); err != nil {
		return nil, err
	}
	defer v.resume()
	if meanwhile != nil {
		if err := meanwhile(); err != nil {
			return nil, err
		}
	}
	return v.snapshot()
}

// Fork makes shells into children of a running VM, which run when it returns. It returns an error for each child that
// isn't (nil for the others), or one for all when the parent couldn't be captured. ready, when it isn't nil, is called
// for each child that is restored and still paused: what it must be told before it runs; its error fails the child.
func (v *VM) Fork(shells []*VM, ready func(i int, child *VM) error) ([]error, error) {
	s, err := v.Capture(nil)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	failed := make([]error, len(shells))
	var all sync.WaitGroup
	for i, child := range shells {
		all.Go(func() {
			err := child.Restore(s)
			if err == nil && ready != nil {
				err = ready(i, child)
			}
			if err == nil {
				err = child.Resume()
			}
			failed[i] = err
		})
	}
	all.Wait()
	return failed, nil
}

// A console in a snapshot: the chip's seven registers, whether an interrupt is due, four bytes of length and the input
// that wasn't read yet, then the tail, so that a child's errors show what its parent said.
const consoleHead = 7 + 1 + 4

// State is what a snapshot keeps.
func (c *console) State() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := &c.uart
	b := []byte{u.ier, u.lcr, u.mcr, u.scr, u.dll, u.dlm, u.fcr, 0}
	if u.sent {
		b[7] = 1
	}
	b = append(binary.LittleEndian.AppendUint32(b, uint32(len(c.input))), c.input...)
	return append(b, c.tail.bytes()...)
}

// SetState sets what State returned.
func (c *console) SetState(b []byte) error {
	if len(b) < consoleHead {
		return errs.Msg(errs.Corrupt, "vmm", "restore", "the console's state is broken")
	}
	n, rest := binary.LittleEndian.Uint32(b[consoleHead-4:]), b[consoleHead:]
	if n > inputRoom || int(n) > len(rest) {
		return errs.Msg(errs.Corrupt, "vmm", "restore", "the console's state is broken")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uart = uart{ier: b[0] & 0xf, lcr: b[1], mcr: b[2], scr: b[3], dll: b[4], dlm: b[5], fcr: b[6], sent: b[7] != 0}
	c.input = append(c.input[:0], rest[:n]...)
	tail := rest[n:]
	tail = tail[max(0, len(tail)-c.tail.max):]
	c.tail.buf, c.tail.at = append(c.tail.buf[:0], tail...), 0
	return nil
}
