package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/vmm"
	"agentrun.dev/vmm/kvm"
	"agentrun.dev/vmm/snapshot"
	"agentrun.dev/vmm/vmmtest"
)

const (
	vmMemory = 512 << 20
	vmFilled = 128 << 20 // of it written to before the snapshot
)

// vms measures forks of VM objects natively, on a guest of a hundred bytes: what a stock kernel needs to do in its first
// moments comes on top, and is measured in the bench of test/vm.
func vms(b *bench) error {
	h, err := vmm.NewHost()
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: NOT MEASURED HERE: forks of VMs: %v (%s)\n", err, errs.HintOf(err))
		return nil
	}
	defer h.Close()
	for _, bare := range []bool{true, false} {
		v := &vmBench{b: b, host: h, config: vmm.Config{Memory: vmMemory, Bare: bare}, name: "with interrupt controllers"}
		if bare {
			v.name = "without interrupt controllers"
		}
		err := v.run()
		v.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// vmBench is the group for one kind of VM.
type vmBench struct {
	b      *bench
	host   *vmm.Host
	config vmm.Config
	name   string
	parent *vmm.VM
	puppet *vmmtest.Puppet
	snap   *snapshot.Snapshot
	sys    *kvm.System
	cpuid  []kvm.CPUIDEntry
	image  int // descriptor of the one layer
}

func (v *vmBench) run() (err error) {
	if v.parent, err = v.host.New(v.config); err != nil {
		return err
	}
	if v.puppet, err = vmmtest.Attach(v.parent); err != nil {
		return err
	}
	if err = v.parent.Boot(vmmtest.Load); err != nil {
		return err
	}
	mem, err := v.parent.Memory().Bytes(vmmtest.Free, vmFilled)
	if err != nil {
		return err
	}
	for i := range mem {
		mem[i] = 1
	}
	if err = v.parent.Resume(); err != nil {
		return err
	}
	if _, err = v.puppet.Read(vmmtest.Free); err != nil {
		return err
	}
	if v.snap, err = v.parent.Capture(nil); err != nil {
		return err
	}
	_, fds := v.snap.Memory.Export()
	v.image = fds[0]
	if v.sys, err = kvm.Open(); err != nil {
		return err
	}
	if v.cpuid, err = v.sys.SupportedCPUID(); err != nil {
		return err
	}
	for _, f := range []func() error{v.forks, v.memory, v.pauses, v.restores} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func (v *vmBench) close() {
	if v.parent != nil {
		_ = v.parent.Close()
	}
	if v.snap != nil {
		_ = v.snap.Close()
	}
	if v.sys != nil {
		_ = v.sys.Close()
	}
}

// child is a VM whose guest says when it runs.
type child struct {
	vm    *vmm.VM
	ran   chan time.Time
	first atomic.Bool
}

func (v *vmBench) shell() (*child, error) {
	c := &child{ran: make(chan time.Time, 1)}
	var err error
	if c.vm, err = v.host.New(v.config); err != nil {
		return nil, err
	}
	err = c.vm.AttachPorts(vmmtest.PortFirst, vmmtest.PortLast, func(_ uint16, p []byte, _ bool) {
		if c.first.CompareAndSwap(false, true) {
			c.ran <- time.Now()
		}
		clear(p)
		time.Sleep(time.Millisecond) // it asks for orders without end
	})
	return c, err
}

func (v *vmBench) start(c *child) (time.Time, error) {
	if err := c.vm.Restore(v.snap); err != nil {
		return time.Time{}, err
	}
	if err := c.vm.Resume(); err != nil {
		return time.Time{}, err
	}
	return <-c.ran, nil
}

// floor is a VM of nothing but ioctls.
type floor struct {
	vm  *kvm.VM
	cpu *kvm.VCPU
	mem unsafe.Pointer
}

func (v *vmBench) floor() (f *floor, err error) {
	f = new(floor)
	if f.vm, err = v.sys.CreateVM(); err != nil {
		return nil, err
	}
	if !v.config.Bare {
		if err = f.vm.SetIdentityMapAddr(0xfffbc000); err == nil {
			err = f.vm.SetTSSAddr(0xfffbd000)
		}
		if err == nil {
			err = f.vm.CreateIRQChip()
		}
		if err != nil {
			return nil, err
		}
	}
	f.mem, err = unix.MmapPtr(-1, 0, nil, vmMemory, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	if err = f.vm.SetMemory(0, 0, 0, vmMemory, f.mem); err != nil {
		return nil, err
	}
	if f.cpu, err = f.vm.CreateVCPU(0); err != nil {
		return nil, err
	}
	return f, f.cpu.SetCPUID(v.cpuid)
}

// start does the ioctls of a restore, one after the other, and runs the guest to its first exit.
func (f *floor) start(v *vmBench) error {
	s, c := v.snap, &v.snap.CPUs[0]
	if _, err := unix.MmapPtr(v.image, 0, f.mem, vmMemory, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE); err != nil {
		return err
	}
	for i, b := range s.Chips {
		if err := f.vm.SetIRQChip(i, b); err != nil {
			return err
		}
	}
	if err := f.vm.SetClock(s.Clock); err != nil {
		return err
	}
	if err := c.Set(f.cpu, v.fresh()); err != nil {
		return err
	}
	reason, err := f.cpu.Run()
	if err == nil && reason != kvm.ExitIO {
		err = fmt.Errorf("the floor's guest left with %v", reason)
	}
	return err
}

// fresh is what needn't be set: all that isn't of this guest.
func (v *vmBench) fresh() []kvm.MSR { return v.snap.CPUs[0].MSRs }

func (f *floor) close() error {
	err := f.cpu.Close()
	if err2 := f.vm.Close(); err == nil {
		err = err2
	}
	if err2 := unix.MunmapPtr(f.mem, vmMemory); err == nil {
		err = err2
	}
	return err
}

func (v *vmBench) often(n int) int {
	if v.b.quick {
		return n / 10
	}
	return n
}

// forks measures ours and the floor in turns: from a shell and from nothing, to the guest's first port access.
func (v *vmBench) forks() error {
	var ours, oursAll, bare, bareAll times
	for i := range v.often(300) {
		start := time.Now()
		c, err := v.shell()
		if err != nil {
			return err
		}
		made := time.Now()
		ran, err := v.start(c)
		if err != nil {
			return err
		}
		start2 := time.Now()
		f, err := v.floor()
		if err != nil {
			return err
		}
		made2 := time.Now()
		if err := f.start(v); err != nil {
			return err
		}
		ran2 := time.Now()
		if i >= v.often(30) { // before that it warms up
			ours, oursAll = append(ours, ran.Sub(made)), append(oursAll, ran.Sub(start))
			bare, bareAll = append(bare, ran2.Sub(made2)), append(bareAll, ran2.Sub(start2))
		}
		if err := c.vm.Close(); err != nil {
			return err
		}
		if err := f.close(); err != nil {
			return err
		}
	}
	for _, r := range []struct {
		name        string
		ours, floor times
	}{{"from a shell made in advance", ours, bare}, {"from nothing", oursAll, bareAll}} {
		x := ratio(r.ours.p50(), r.floor.p50())
		v.b.add(row{Name: "fork of a VM of 512 MiB, " + v.name + ", " + r.name + ": until its guest runs", Ours: r.ours.String(),
			Other: "the same ioctls alone " + r.floor.String(), Ratio: x, Target: "≤ 1.3", Met: x <= 1.3})
	}
	return nil
}

// privateBytes is what this process alone has in memory.
func privateBytes() (bytes uint64, err error) {
	n, err := privateOf("self")
	return uint64(n), err
}

// privateOf is what a process alone has in memory.
func privateOf(pid string) (bytes int64, err error) {
	text, err := os.ReadFile("/proc/" + pid + "/smaps_rollup")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if name, v, _ := strings.Cut(line, ":"); strings.HasPrefix(name, "Private_") {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
			if err != nil {
				return 0, err
			}
			bytes += n << 10
		}
	}
	return bytes, nil
}

// memory is what a running child costs the process, the kernel's own structures not counted.
func (v *vmBench) memory() error {
	const n = 50
	var all []*child
	defer func() {
		for _, c := range all {
			_ = c.vm.Close()
		}
	}()
	run := func() error {
		c, err := v.shell()
		if err == nil {
			all = append(all, c)
			_, err = v.start(c)
		}
		return err
	}
	if err := run(); err != nil { // what the process has to itself while there is no child isn't private any more
		return err
	}
	before, err := privateBytes()
	if err != nil {
		return err
	}
	for range n {
		if err := run(); err != nil {
			return err
		}
	}
	after, err := privateBytes()
	if err != nil {
		return err
	}
	if after <= before {
		return fmt.Errorf("%d running children take no private memory: %d bytes before, %d after", n, before, after)
	}
	each, seed := (after-before)/n, uint64(265_000)
	r := float64(each) / float64(seed)
	v.b.add(row{Name: "memory of a running child of 512 MiB, " + v.name, Ours: fmt.Sprintf("%d KB", each/1000), Other: "the seed's 265 KB", Ratio: r,
		Target: "≤ 1", Met: r <= 1})
	return nil
}

// pauses measures how long a running parent stands still while it is captured, against copying as many bytes.
func (v *vmBench) pauses() error {
	for _, dirty := range []int{0, 1 << 20, 10 << 20, 50 << 20} {
		var ours, copied times
		for range v.often(40) + 3 {
			if dirty > 0 {
				if err := v.puppet.Touch(vmmtest.Free, uint32(dirty>>12)); err != nil {
					return err
				}
			}
			if err := v.parent.Pause(); err != nil {
				return err
			}
			start := time.Now()
			s, err := v.parent.Snapshot()
			if err != nil {
				return err
			}
			took := time.Since(start)
			if err := v.parent.Resume(); err != nil {
				return err
			}
			_ = s.Close()
			floor, err := v.copy(dirty)
			if err != nil {
				return err
			}
			ours, copied = append(ours, took), append(copied, floor)
		}
		x := ratio(ours.p50(), copied.p50())
		v.b.add(row{Name: fmt.Sprintf("a running VM of 512 MiB stands still for a fork, %s, %d MiB dirty", v.name, dirty>>20), Ours: ours.String(),
			Other: "copying as much " + copied.String(), Ratio: x, Target: "by the dirty pages", Met: dirty == 0 || x <= 4})
	}
	return nil
}

// copy writes as many bytes into a file in memory.
func (v *vmBench) copy(n int) (time.Duration, error) {
	mem, err := v.parent.Memory().Bytes(vmmtest.Free, uint64(n))
	if err != nil {
		return 0, err
	}
	start := time.Now()
	fd, err := unix.MemfdCreate("floor", unix.MFD_CLOEXEC)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	if _, err := unix.Pwrite(fd, mem, 0); err != nil {
		return 0, err
	}
	return time.Since(start), nil
}

// restores measures a snapshot from a file, against reading the file.
func (v *vmBench) restores() error {
	var file bytes.Buffer
	if err := v.snap.Write(&file); err != nil {
		return err
	}
	name := v.b.dir + "/vm.snapshot"
	if err := os.WriteFile(name, file.Bytes(), 0o600); err != nil {
		return err
	}
	var ours, read times
	for range v.often(20) + 2 {
		start := time.Now()
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		s, err := snapshot.Read(f)
		_ = f.Close()
		if err != nil {
			return err
		}
		ours = append(ours, time.Since(start))
		_ = s.Close()
		start = time.Now()
		if _, err := os.ReadFile(name); err != nil {
			return err
		}
		read = append(read, time.Since(start))
	}
	x := ratio(ours.p50(), read.p50())
	v.b.add(row{Name: "a snapshot of 128 MiB in use read from a file, " + v.name, Ours: ours.String(), Other: "reading the file " + read.String(), Ratio: x,
		Target: "≤ 5", Met: x <= 5})
	return nil
}
