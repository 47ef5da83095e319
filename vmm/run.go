package vmm

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/boot"
	"agentrun.dev/vmm/kvm"
	"agentrun.dev/vmm/snapshot"
)

// vcpu is a vCPU and the goroutine that runs it.
type vcpu struct {
	kvm    *kvm.VCPU
	vm     *VM
	tid    atomic.Int32 // of its thread; 0 until that has begun, and then a signal isn't needed
	orders orders
	pause  atomic.Bool
	cpuid  []kvm.CPUIDEntry
	fresh  []kvm.MSR // as a new vCPU has them: what a restore needn't set
	tscKHz int
}

// newVCPU begins the thread of a vCPU that is still to be made.
func (v *VM) newVCPU() *vcpu {
	c := &vcpu{vm: v}
	v.loops.Add(1)
	go c.loop()
	return c
}

// make makes the vCPU and tells it what it is.
func (c *vcpu) make(id int) (err error) {
	v := c.vm
	if c.kvm, err = v.vm.CreateVCPU(id); err != nil {
		return err
	}
	c.cpuid, c.tscKHz = guestCPUID(v.host.cpuid, id, v.config.VCPUs), c.kvm.TSCKHz()
	if err = c.kvm.SetCPUID(c.cpuid); err == nil {
		c.fresh, err = snapshot.ReadMSRs(c.kvm, v.host.msrs)
	}
	return err
}

// loop runs the guest each time it is told to, until it is paused or ends.
func (c *vcpu) loop() {
	defer c.vm.loops.Done()
	runtime.LockOSThread() // the kernel prefers one thread for each vCPU, and a signal must find it
	defer runtime.UnlockOSThread()
	c.tid.Store(int32(unix.Gettid()))
	for c.orders.await() {
		if exit := c.run(); exit != nil {
			c.vm.end(exit)
		}
		c.vm.park.Done()
	}
}

// run is the guest's time. It returns nil when the vCPU is paused, with nothing half done.
func (c *vcpu) run() *Exit {
	for {
		reason, err := c.kvm.Run()
		switch {
		case err == unix.EINTR:
			// Only here is what the guest was doing complete: a port read, say, is taken in by the Run after it.
			if c.pause.Load() {
				return nil
			}
			continue
		case err != nil:
			return c.fail(KVM, err.Error())
		}
		if exit := c.handle(reason); exit != nil {
			return exit
		}
	}
}

// handle does what the guest asks for.
func (c *vcpu) handle(reason kvm.Reason) *Exit {
	switch reason {
	case kvm.ExitIO:
		io, err := c.kvm.IO()
		if err != nil {
			return c.fail(KVM, err.Error())
		}
		for p := io.Data; len(p) > 0; p = p[io.Size:] {
			if what := c.vm.ports.access(io.Port, p[:io.Size], io.Out); what != nil {
				return c.fail(what.Reason, what.Detail)
			}
		}
	case kvm.ExitMMIO:
		m, err := c.kvm.MMIO()
		if err != nil {
			return c.fail(KVM, err.Error())
		}
		c.vm.mmio(m)
	case kvm.ExitHLT:
		return c.fail(Halt, "")
	case kvm.ExitShutdown:
		return c.fail(TripleFault, "")
	case kvm.ExitSystemEvent:
		switch c.kvm.SystemEvent() {
		case kvm.EventShutdown:
			return c.fail(Shutdown, "")
		case kvm.EventReset:
			return c.fail(Reset, "")
		case kvm.EventCrash:
			return c.fail(Panic, "")
		}
		return c.fail(KVM, reason.String()+": "+c.kvm.Detail(reason))
	case kvm.ExitIRQWindow, kvm.ExitIntr, kvm.ExitSetTPR, kvm.ExitIOAPICEOI, kvm.ExitBusLock, kvm.ExitNotify:
	default:
		return c.fail(KVM, fmt.Sprintf("%v: %s", reason, c.kvm.Detail(reason)))
	}
	return nil
}

// fail describes the end of the guest on this vCPU.
func (c *vcpu) fail(reason Reason, detail string) *Exit {
	e := &Exit{Reason: reason, Detail: detail, CPU: c.kvm.ID(), Tail: c.vm.console.Tail()}
	if r, err := c.kvm.Regs(); err == nil {
		e.RIP = r.RIP
	}
	if (reason == Reset || reason == TripleFault) && panicked(e.Tail) {
		e.Reason, e.Detail = Panic, panicLine(e.Tail)
	}
	return e
}

// end notes the guest's end, the first one if several vCPUs come to it, and has the other vCPUs leave the guest.
func (v *VM) end(exit *Exit) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.exit != nil || v.state == closed {
		return
	}
	v.exit = exit
	v.state = ended
	close(v.done)
	for _, c := range v.cpus {
		c.pause.Store(true)
		c.kvm.SetImmediateExit(true)
		c.signal()
	}
}

// signal interrupts the vCPU's thread: with SIGURG, of which Go's own scheduler sends some too, so that nobody is
// surprised by one more.
func (c *vcpu) signal() {
	_ = unix.Tgkill(unix.Getpid(), int(c.tid.Load()), unix.SIGURG) // it fails only when there is no such thread
}

// startCPUs lets the vCPUs run.
func (v *VM) startCPUs() {
	v.park.Add(len(v.cpus))
	for _, c := range v.cpus {
		c.pause.Store(false)
		c.kvm.SetImmediateExit(false)
	}
	for _, c := range v.cpus { // the first of them may end the guest before the last has begun
		c.orders.give(orderRun)
	}
}

// stopCPUs has all vCPUs leave the guest, and returns when they have.
func (v *VM) stopCPUs() {
	for _, c := range v.cpus {
		c.pause.Store(true)
		c.kvm.SetImmediateExit(true)
	}
	parked := make(chan struct{})
	go func() {
		v.park.Wait()
		close(parked)
	}()
	for {
		for _, c := range v.cpus {
			c.signal()
		}
		select {
		case <-parked:
			return
		case <-time.After(stopTimeout):
		}
	}
}

// Resume lets a paused VM run.
func (v *VM) Resume() error {
	v.op.Lock()
	defer v.op.Unlock()
	if err := v.is("resume", paused); err != nil {
		return err
	}
	v.resume()
	return nil
}

func (v *VM) resume() {
	v.set(running)
	for _, d := range v.devices {
		d.Resume()
	}
	v.console.resume()
	v.startCPUs()
}

// Pause stops a running VM between two instructions of each vCPU and between two requests of each device. An error of
// kind Unavailable, with the Exit, when the guest has ended.
func (v *VM) Pause() error {
	v.op.Lock()
	defer v.op.Unlock()
	return v.pause("pause")
}

func (v *VM) pause(op string) error {
	if err := v.is(op, running); err != nil {
		return err
	}
	v.stopCPUs()
	v.pauseDevices()
	v.set(paused)
	if err := v.is(op, paused); err != nil { // it ended while it was being paused
		return err
	}
	return nil
}

func (v *VM) pauseDevices() {
	for _, d := range v.devices {
		d.Pause()
	}
}

// Boot gives a prepared VM its first registers, with RAM that load fills. It is paused then.
func (v *VM) Boot(load func(v *VM) (Entry, error)) error {
	v.op.Lock()
	defer v.op.Unlock()
	if err := v.is("boot", prepared); err != nil {
		return err
	}
	if err := v.mem.Zero(); err != nil {
		return err
	}
	entry, err := load(v)
	if err != nil {
		return err
	}
	c := v.cpus[0].kvm
	sregs, err := c.Sregs()
	if err != nil {
		return err
	}
	if entry.Sregs != nil {
		entry.Sregs(&sregs)
	}
	if err := c.SetSregs(&sregs); err != nil {
		return err
	}
	if err := c.SetRegs(&entry.Regs); err != nil {
		return err
	}
	if !v.config.Bare {
		for _, c := range v.cpus {
			if err := c.wireLAPIC(); err != nil {
				return err
			}
		}
	}
	for _, d := range v.devices {
		d.Pause() // as they are in every paused VM
	}
	v.set(paused)
	return nil
}

// Entry is how vCPU 0 begins. Sregs changes what the CPU has after reset; nil is real mode.
type Entry = boot.Entry

// BootLinux boots a kernel, with the devices that are attached. The VM is paused then.
func (v *VM) BootLinux(l *boot.Linux) error {
	return v.Boot(func(v *VM) (Entry, error) {
		m := boot.Machine{Memory: v.mem, VCPUs: v.config.VCPUs}
		for i := range v.Devices() {
			m.Devices = append(m.Devices, boot.Device{Addr: DeviceBase + uint64(i)*DeviceSize, Size: DeviceSize, IRQ: DeviceIRQ + i})
		}
		return l.Load(m)
	})
}

var errNoRegisters = errs.Msg(errs.Invalid, "vmm", "registers", "the VM isn't paused")

// Regs are the general registers of a vCPU of a paused or ended VM.
func (v *VM) Regs(cpu int) (kvm.Regs, error) {
	v.op.Lock()
	defer v.op.Unlock()
	if err := v.is("registers", paused, prepared); err != nil {
		return kvm.Regs{}, err
	}
	if cpu < 0 || cpu >= len(v.cpus) {
		return kvm.Regs{}, errNoRegisters
	}
	return v.cpus[cpu].kvm.Regs()
}
