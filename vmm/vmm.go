// Package vmm is a microVM library on Linux's KVM: a VM with RAM, vCPUs, a serial console and devices on an MMIO bus,
// that can be paused, captured, restored and forked. It has no opinions about sandboxes.
//
// A VM is prepared by New: VM object, interrupt controllers, vCPUs with their threads, addresses for RAM. That is what
// the kernel takes its time for, so it is done in advance; a prepared VM is called a shell. Boot gives it a kernel,
// Restore the snapshot of another VM; both leave it paused, and Resume lets it run. Snapshot takes what a paused VM is;
// Fork pauses a running VM once, lets it go on, and makes shells into its children.
//
// One goroutine is locked to its thread for each vCPU. What the guest does on the bus is done by that goroutine. A
// guest that ends, by its own will or not, is an Exit, with the end of its console.
package vmm

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/boot"
	"agentrun.dev/vmm/kvm"
	"agentrun.dev/vmm/memory"
)

const (
	// MaxVCPUs is how many vCPUs a VM can have.
	MaxVCPUs = 32
	// DefaultTail is how much of a console's end is kept.
	DefaultTail = 64 << 10

	// DeviceBase is where the first device on the MMIO bus is; each has DeviceSize bytes.
	DeviceBase = memory.HoleStart
	DeviceSize = 0x1000
	// DeviceIRQ is the first device's interrupt; the I/O APIC has 24.
	DeviceIRQ  = 5
	MaxDevices = 24 - DeviceIRQ

	// Where Intel's KVM keeps four pages of its own, in the hole of the RAM.
	identityMapAddr = 0xfffbc000
	tssAddr         = 0xfffbd000
)

// Config is what a VM is made with. The zero value of all but Memory works.
type Config struct {
	Memory  uint64    // RAM in bytes, in whole pages
	VCPUs   int       // 1 unless said
	Console io.Writer // gets what the guest writes to its serial console, on the guest's time; may be nil
	Tail    int       // bytes of the console's end that are kept; DefaultTail unless said
	PIT     bool      // the interval timer, which kernels with the paravirtual clock and our ACPI tables don't want
	Bare    bool      // no interrupt controllers: a guest that halts has ended; for guests of a few instructions
}

func (c *Config) check() error {
	if c.VCPUs == 0 {
		c.VCPUs = 1
	}
	if c.Tail == 0 {
		c.Tail = DefaultTail
	}
	switch {
	case c.VCPUs < 1 || c.VCPUs > MaxVCPUs:
		return errs.Msg(errs.Invalid, "vmm", fmt.Sprint(c.VCPUs), fmt.Sprintf("a VM has 1 to %d vCPUs", MaxVCPUs))
	case c.Tail < 0 || c.Tail > 16<<20:
		return errs.Msg(errs.Invalid, "vmm", fmt.Sprint(c.Tail), "a console's tail has at most 16 MiB")
	case c.Bare && (c.VCPUs > 1 || c.PIT):
		return errs.Msg(errs.Invalid, "vmm", "config", "a VM without interrupt controllers has one vCPU and no timer")
	}
	return nil
}

// Device is what stands on the MMIO bus. Read and Write come from the vCPUs' goroutines, several at once; between
// Pause and Resume a device touches neither the guest's memory nor its interrupt.
type Device interface {
	Read(off uint64, p []byte)
	Write(off uint64, p []byte)
	Pause()
	Resume()
	State() ([]byte, error)
	SetState([]byte) error
	Close() error
}

// Slot is a place on the bus, for the device that is made for it.
type Slot struct {
	Index  int
	Addr   uint64
	IRQ    int
	Memory *memory.Memory
	// Interrupt raises the device's interrupt, once each call.
	Interrupt func() error
}

type state uint8

const (
	prepared state = iota // no guest yet
	paused
	running
	ended  // the guest has ended; see exit
	closed // everything is given back
)

var stateNames = [...]string{"prepared", "paused", "running", "ended", "closed"}

func (s state) String() string { return stateNames[s] }

// VM is a virtual machine. Its methods may be called at the same time; those that change what it does wait for one
// another.
type VM struct {
	config  Config
	host    *Host
	vm      *kvm.VM
	mem     *memory.Memory
	cpus    []*vcpu
	console *console
	ports   ports
	devices []Device // they only grow, before the guest runs

	op    sync.Mutex // held by what changes the state
	mu    sync.Mutex // of state, exit and devices
	state state
	exit  *Exit
	done  chan struct{} // closed when the guest has ended or the VM is closed
	park  sync.WaitGroup
	loops sync.WaitGroup
}

// Host is what VMs of this process have in common: /dev/kvm, and what it can do.
type Host struct {
	sys   *kvm.System
	cpuid []kvm.CPUIDEntry
	msrs  []uint32
}

// NewHost opens /dev/kvm. Errors are kvm.Open's.
func NewHost() (*Host, error) {
	sys, err := kvm.Open()
	if err != nil {
		return nil, err
	}
	h := &Host{sys: sys}
	if h.cpuid, err = sys.SupportedCPUID(); err == nil {
		h.msrs, err = sys.MSRIndexes()
	}
	if err != nil {
		sys.Close()
		return nil, err
	}
	return h, nil
}

// Close closes /dev/kvm. VMs live on.
func (h *Host) Close() error { return h.sys.Close() }

// New prepares a VM.
func (h *Host) New(config Config) (_ *VM, err error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	v := &VM{config: config, host: h, done: make(chan struct{})}
	defer func() {
		if err != nil {
			v.release()
		}
	}()
	for range config.VCPUs { // first, so that their threads are there, and wait, when the kernel is done with the rest
		v.cpus = append(v.cpus, v.newVCPU())
	}
	if v.mem, err = memory.Reserve(config.Memory); err != nil {
		return nil, err
	}
	if v.vm, err = h.sys.CreateVM(); err != nil {
		return nil, err
	}
	if err = v.chips(); err != nil {
		return nil, err
	}
	for i, r := range v.mem.Regions() {
		if err = v.vm.SetMemory(uint32(i), 0, r.Guest, r.Size, r.Host); err != nil {
			return nil, err
		}
	}
	v.console = newConsole(config.Tail, config.Console, v.interrupt(boot.IRQConsole))
	v.ports = v.legacy()
	for i, c := range v.cpus {
		if err = c.make(i); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// chips makes what stands between the vCPUs and their devices.
func (v *VM) chips() error {
	if v.config.Bare {
		return nil
	}
	if err := v.vm.SetIdentityMapAddr(identityMapAddr); err != nil {
		return err
	}
	if err := v.vm.SetTSSAddr(tssAddr); err != nil {
		return err
	}
	if err := v.vm.CreateIRQChip(); err != nil {
		return err
	}
	if v.config.PIT {
		return v.vm.CreatePIT()
	}
	return nil
}

// interrupt returns what raises a line: an edge each call.
func (v *VM) interrupt(irq uint32) func() error {
	if v.config.Bare {
		return func() error { return nil }
	}
	l := &line{set: func(high bool) error { return v.vm.IRQLine(irq, high) }}
	return l.edge
}

// line is an interrupt line whose edges don't overlap. One that began while the line was still high from another would be none, and
// what that one was for may have been dealt with already, by another vCPU: the guest would wait for ever.
type line struct {
	mu  sync.Mutex
	set func(high bool) error
}

func (l *line) edge() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.set(true); err != nil {
		return err
	}
	return l.set(false)
}

// Memory is the guest's RAM. It is the VM's and is gone after Close.
func (v *VM) Memory() *memory.Memory { return v.mem }

// Config is what the VM was made with.
func (v *VM) Config() Config { return v.config }

// Attach puts a device into the next place on the bus. Before Boot or Restore only.
func (v *VM) Attach(make func(Slot) (Device, error)) error {
	v.op.Lock()
	defer v.op.Unlock()
	if err := v.is("attach", prepared); err != nil {
		return err
	}
	n := len(v.devices)
	if n >= MaxDevices {
		return errs.Msg(errs.Limit, "vmm", "attach", fmt.Sprintf("a VM has at most %d devices", MaxDevices))
	}
	d, err := make(Slot{Index: n, Addr: DeviceBase + uint64(n)*DeviceSize, IRQ: DeviceIRQ + n, Memory: v.mem,
		Interrupt: v.interrupt(uint32(DeviceIRQ + n))})
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.devices = append(v.devices, d)
	return nil
}

// AttachPorts puts a handler on the port bus, for first to last. Reads fill p, writes have it; off counts from first.
// Before Boot or Restore only, and not over ports that are taken.
func (v *VM) AttachPorts(first, last uint16, access func(off uint16, p []byte, out bool)) error {
	v.op.Lock()
	defer v.op.Unlock()
	if err := v.is("attach", prepared); err != nil {
		return err
	}
	for _, r := range v.ports {
		if first > last || first <= r.last && r.first <= last {
			return errs.Msg(errs.Conflict, "vmm", fmt.Sprintf("ports %#x to %#x", first, last), "the range is empty or taken")
		}
	}
	v.ports = append(v.ports, port{first, last, func(off uint16, p []byte, out bool) *Exit {
		access(off, p, out)
		return nil
	}})
	return nil
}

// Devices is how many devices are on the bus.
func (v *VM) Devices() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.devices)
}

// is checks the state before an operation.
func (v *VM) is(op string, want ...state) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range want {
		if v.state == s {
			return nil
		}
	}
	if v.state == ended && v.exit != nil {
		return errs.New(errs.Unavailable, "vmm", op, v.exit)
	}
	return errs.Msg(errs.Unavailable, "vmm", op, "the VM is "+v.state.String())
}

func (v *VM) set(s state) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.state != ended || s == closed {
		v.state = s
	}
}

// Wait returns when the guest has ended: nil when it shut itself down, else its Exit. An error of kind Unavailable
// when the VM was closed.
func (v *VM) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-v.done:
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.exit == nil:
		return errs.Msg(errs.Unavailable, "vmm", "wait", "the VM was closed")
	case v.exit.Reason == Shutdown, v.exit.Reason == Halt:
		return nil
	}
	return v.exit
}

// Exit is how the guest ended; nil as long as it hasn't.
func (v *VM) Exit() *Exit {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.exit
}

// Tail is the end of what the guest wrote to its console.
func (v *VM) Tail() []byte { return v.console.Tail() }

// Input types into the guest's console, and returns how many bytes there was room for.
func (v *VM) Input(p []byte) (int, error) { return v.console.Input(p) }

// Close ends the guest where it stands and gives everything back: a pulled plug.
func (v *VM) Close() error {
	v.op.Lock()
	defer v.op.Unlock()
	v.mu.Lock()
	was := v.state
	v.state = closed
	if was != ended && was != closed {
		close(v.done)
	}
	v.mu.Unlock()
	if was == closed {
		return nil
	}
	if was == running {
		v.stopCPUs()
		v.pauseDevices()
	}
	return v.release()
}

// release gives back what there is. The vCPUs are parked.
func (v *VM) release() error {
	for _, c := range v.cpus {
		c.orders.give(orderQuit)
	}
	v.loops.Wait()
	var first error
	keep := func(err error) {
		if err != nil && first == nil {
			first = err
		}
	}
	for _, d := range v.devices {
		keep(d.Close())
	}
	for _, c := range v.cpus {
		if c.kvm != nil {
			keep(c.kvm.Close())
		}
	}
	if v.vm != nil {
		keep(v.vm.Close())
	}
	if v.mem != nil {
		keep(v.mem.Close())
	}
	return first
}

// stopTimeout is how long a vCPU may take to leave the guest before it is told again. It is told once as a rule.
const stopTimeout = 20 * time.Millisecond
