// Command boot boots a kernel with package vmm and shows its console: the smallest use of it, for the bench and for
// trying a host's KVM. It exits with 0 when the guest switches itself off, else with 1 and the reason.
//
//	boot -kernel vmlinuz -initrd initrd.img [-append "console=ttyS0"] [-memory MiB] [-cpus N] [-timeout 2m]
//	     [-disk FILE] [-rng] [-fork N -at TEXT [-file FILE]]
//
// With -fork, the guest is forked when its console has said TEXT: N children, each of which is typed "child I" into its
// console, while the parent is typed "parent". With -file besides, one more child comes from a snapshot in that file.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	"agentrun.dev/vmm"
	"agentrun.dev/vmm/boot"
	"agentrun.dev/vmm/snapshot"
	"agentrun.dev/vmm/virtio"
	"agentrun.dev/vmm/virtio/block"
	"agentrun.dev/vmm/virtio/rng"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "boot:", err)
		os.Exit(1)
	}
}

// machine is what the flags say.
type machine struct {
	kernel, initrd, cmdline, disk, at, file string
	memory                                  uint64
	cpus, forks                             int
	pit, rng                                bool

	host *vmm.Host
	out  sync.Mutex
}

func run() error {
	m := new(machine)
	flag.StringVar(&m.kernel, "kernel", "/kernel", "the kernel: bzImage or vmlinux")
	flag.StringVar(&m.initrd, "initrd", "", "the initramfs")
	flag.StringVar(&m.cmdline, "append", "console=ttyS0 panic=-1", "the command line")
	flag.StringVar(&m.disk, "disk", "", "a file that is the first disk, for reading")
	flag.StringVar(&m.at, "at", "", "fork when the console has said this")
	flag.StringVar(&m.file, "file", "", "and once more through a snapshot in this file")
	flag.Uint64Var(&m.memory, "memory", 256, "MiB of memory")
	flag.IntVar(&m.cpus, "cpus", 1, "vCPUs")
	flag.IntVar(&m.forks, "fork", 0, "children")
	flag.BoolVar(&m.pit, "pit", false, "with an interval timer")
	flag.BoolVar(&m.rng, "rng", false, "with a source of entropy")
	timeout := flag.Duration("timeout", 3*time.Minute, "how long the guests may take")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	var err error
	if m.host, err = vmm.NewHost(); err != nil {
		return err
	}
	defer m.host.Close()
	return m.run(ctx)
}

func (m *machine) run(ctx context.Context) error {
	l := boot.Linux{Cmdline: m.cmdline}
	var err error
	if l.Kernel, err = os.ReadFile(m.kernel); err != nil {
		return err
	}
	if m.initrd != "" {
		if l.Initrd, err = os.ReadFile(m.initrd); err != nil {
			return err
		}
	}
	v, seen, err := m.prepare("")
	if err != nil {
		return err
	}
	defer v.Close()
	if err := v.BootLinux(&l); err != nil {
		return err
	}
	start := time.Now()
	if err := v.Resume(); err != nil {
		return err
	}
	var children []*vmm.VM
	if m.forks > 0 {
		select {
		case <-seen:
		case <-ctx.Done():
			return fmt.Errorf("the guest never said %q", m.at)
		}
		if children, err = m.fork(v); err != nil {
			return err
		}
	}
	err = v.Wait(ctx)
	fmt.Printf("boot: the guest ran for %v: %v\n", time.Since(start).Round(time.Millisecond), v.Exit())
	for i, c := range children {
		err2 := c.Wait(ctx)
		fmt.Printf("boot: child %d: %v\n", i, c.Exit())
		if err == nil {
			err = err2
		}
		c.Close()
	}
	return err
}

// fork makes the children, and tells everybody who they are.
func (m *machine) fork(v *vmm.VM) ([]*vmm.VM, error) {
	var shells []*vmm.VM
	for i := range m.forks {
		c, _, err := m.prepare(fmt.Sprintf("%d: ", i))
		if err != nil {
			return nil, err
		}
		shells = append(shells, c)
	}
	start := time.Now()
	failed, err := v.Fork(shells, nil)
	if err != nil {
		return nil, err
	}
	fmt.Printf("boot: %d children in %v\n", m.forks, time.Since(start).Round(time.Microsecond))
	for _, err := range failed {
		if err != nil {
			return nil, err
		}
	}
	if m.file != "" {
		c, err := m.throughFile(v)
		if err != nil {
			return nil, err
		}
		shells = append(shells, c)
	}
	for i, c := range shells {
		if _, err := c.Input(fmt.Appendf(nil, "child %d\n", i)); err != nil {
			return nil, err
		}
	}
	_, err = v.Input([]byte("parent\n"))
	return shells, err
}

// throughFile makes a child by writing a snapshot and reading it again.
func (m *machine) throughFile(v *vmm.VM) (*vmm.VM, error) {
	c, _, err := m.prepare(fmt.Sprintf("%d: ", m.forks))
	if err != nil {
		return nil, err
	}
	s, err := v.Capture(nil)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	f, err := os.Create(m.file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := s.Write(f); err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, 0); err != nil {
		return nil, err
	}
	read, err := snapshot.Read(f)
	if err != nil {
		return nil, err
	}
	defer read.Close()
	if err := c.Restore(read); err != nil {
		return nil, err
	}
	return c, c.Resume()
}

// prepare makes a VM with the devices; seen is closed when its console has said what is waited for.
func (m *machine) prepare(prefix string) (*vmm.VM, <-chan struct{}, error) {
	w := &lines{m: m, prefix: prefix, seen: make(chan struct{})}
	v, err := m.host.New(vmm.Config{Memory: m.memory << 20, VCPUs: m.cpus, Console: w, PIT: m.pit})
	if err != nil {
		return nil, nil, err
	}
	attach := func(make func() (virtio.Device, error)) {
		if err == nil {
			err = v.Attach(func(s vmm.Slot) (vmm.Device, error) {
				d, err := make()
				if err != nil {
					return nil, err
				}
				return virtio.NewMMIO(d, s.Memory, s.Interrupt), nil
			})
		}
	}
	if m.rng {
		attach(func() (virtio.Device, error) { return rng.New(rng.Options{}), nil })
	}
	if m.disk != "" {
		attach(m.openDisk)
	}
	if err != nil {
		v.Close()
		return nil, nil, err
	}
	return v, w.seen, nil
}

func (m *machine) openDisk() (virtio.Device, error) {
	f, err := os.Open(m.disk)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	disk, err := block.NewFile(f, info.Size(), true)
	if err != nil {
		return nil, err
	}
	return block.New(disk, block.Options{}), nil
}

// lines prints a console by lines, with the VM's prefix, and looks for the text to fork at.
type lines struct {
	m      *machine
	prefix string
	line   []byte
	seen   chan struct{}
	once   sync.Once
}

func (w *lines) Write(p []byte) (int, error) {
	w.line = append(w.line, p...)
	if w.m.at != "" && bytes.Contains(w.line, []byte(w.m.at)) {
		w.once.Do(func() { close(w.seen) })
	}
	if i := bytes.LastIndexByte(w.line, '\n'); i >= 0 {
		w.m.out.Lock()
		fmt.Printf("%s%s", w.prefix, w.line[:i+1])
		w.m.out.Unlock()
		w.line = w.line[i+1:]
	}
	return len(p), nil
}
