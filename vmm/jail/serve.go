package jail

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/vmm"
	"agentrun.dev/vmm/boot"
	"agentrun.dev/vmm/kvm"
	"agentrun.dev/vmm/memory"
	"agentrun.dev/vmm/snapshot"
)

// maxKernel bounds the images that a VMM is given.
const maxKernel = 1 << 30

// Serve is a VMM process: it takes its setup from the socket, prepares a VM, confines itself for good and follows
// orders until the socket is closed. attach, which may be nil, puts devices into the VM before that.
func Serve(attach func(*vmm.VM) error) error {
	c, err := newConn(os.NewFile(SocketFD, "socket"))
	if err != nil {
		return err
	}
	defer c.Close()
	buf := make([]byte, maxPacket)
	n, err := c.Read(buf)
	if err != nil {
		return errs.New(errs.Unavailable, "vmm process", "setup", err)
	}
	var s setup
	if err := json.Unmarshal(buf[:n], &s); err != nil {
		return errs.New(errs.Invalid, "vmm process", "setup", err)
	}
	v, err := prepare(&s, attach)
	if err != nil {
		return errors.Join(err, c.send(&message{Op: opReady, Failed: newFailure(err)}))
	}
	defer v.Close()
	srv := &server{conn: c, vm: v, lent: -1}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		srv.watch(ctx)
	}()
	defer func() {
		cancel()
		<-done
	}()
	if err := warm(v.Config()); err != nil {
		return err
	}
	if err := c.send(&message{Op: opReady}); err != nil {
		return err
	}
	for {
		m, err := c.receive(buf)
		if err != nil {
			if errs.Is(err, errs.Unavailable) {
				return nil
			}
			return err
		}
		answer, err := srv.follow(m)
		m.closeFDs()
		if answer == nil {
			answer = new(message)
		}
		answer.ID, answer.Op, answer.Failed = m.ID, m.Op, newFailure(err)
		err = c.send(answer)
		if srv.lent >= 0 {
			unix.Close(srv.lent)
			srv.lent = -1
		}
		if err != nil {
			return err
		}
	}
}

// warm does once, while nobody waits, what a restore begins with: a process that was just born has most of its code and
// the decoder's tables still before it.
func warm(config vmm.Config) error {
	s := snapshot.Snapshot{CPUs: make([]snapshot.CPU, config.VCPUs), Chips: [][]byte{{0}}, Devices: [][]byte{{0}}}
	for i := range s.CPUs {
		s.CPUs[i] = snapshot.CPU{CPUID: make([]kvm.CPUIDEntry, 64), MSRs: make([]kvm.MSR, 128), XSave: make([]byte, kvm.XSaveSize)}
	}
	state, err := json.Marshal(&s)
	if err != nil {
		return err
	}
	order, err := json.Marshal(&message{Op: opRestore, Extents: make([]memory.Extent, 8)})
	if err != nil {
		return err
	}
	return errors.Join(json.Unmarshal(state, new(snapshot.Snapshot)), json.Unmarshal(order, new(message)))
}

// prepare makes the VM and confines the process.
func prepare(s *setup, attach func(*vmm.VM) error) (*vmm.VM, error) {
	host, err := vmm.NewHost()
	if err != nil {
		return nil, err
	}
	config := vmm.Config{Memory: s.Memory, VCPUs: s.VCPUs, Tail: s.Tail, PIT: s.PIT, Bare: s.Bare}
	if s.Console {
		config.Console = os.NewFile(ConsoleFD, "console")
	}
	v, err := host.New(config)
	if err != nil {
		return nil, err
	}
	if attach != nil {
		err = attach(v)
	}
	if err == nil {
		err = confine(s.UID, s.GID)
	}
	if err != nil {
		v.Close()
		return nil, err
	}
	return v, nil
}

// server follows orders.
type server struct {
	conn *conn
	vm   *vmm.VM
	lent int // a descriptor that goes with the answer, and is closed after it
}

// watch tells the parent when the guest ends.
func (s *server) watch(ctx context.Context) {
	_ = s.vm.Wait(ctx) // what it says is in Exit
	if e := s.vm.Exit(); e != nil {
		cut := *e
		cut.Tail = cut.Tail[max(0, len(cut.Tail)-maxPacket/2):] // in base64 it fits a packet
		_ = s.conn.send(&message{Op: opEnded, Exit: &cut})      // a parent that is gone needn't know
	}
}

// follow does one order.
func (s *server) follow(m *message) (*message, error) {
	s.lent = -1
	switch m.Op {
	case opBoot:
		return nil, s.boot(m)
	case opRestore:
		snap, err := decode(m)
		if err != nil {
			return nil, err
		}
		defer snap.Close()
		if err = s.vm.Restore(snap); err == nil && m.Run {
			err = s.vm.Resume()
		}
		return nil, err
	case opResume, opThaw:
		return nil, s.vm.Resume()
	case opPause:
		return nil, s.vm.Pause()
	case opInput:
		_, err := s.vm.Input(m.Input)
		return nil, err
	case opCapture:
		return s.capture()
	}
	return nil, errs.Msg(errs.Unsupported, "vmm process", m.Op, "there is no such order")
}

func (s *server) boot(m *message) error {
	want := 1
	if m.Initrd {
		want = 2
	}
	if len(m.fds) != want {
		return errs.Msg(errs.Invalid, "vmm process", "boot", "the descriptors aren't those of a kernel and an initramfs")
	}
	fds := m.fds
	m.fds = nil
	l := boot.Linux{Cmdline: m.Cmdline}
	var err, err2 error
	l.Kernel, err = contents(fds[0], maxKernel)
	if m.Initrd {
		l.Initrd, err2 = contents(fds[1], maxKernel)
	}
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	return s.vm.BootLinux(&l)
}

// capture pauses the VM, unless it is, and answers with its snapshot.
func (s *server) capture() (*message, error) {
	if err := s.vm.Pause(); err != nil && s.vm.Exit() != nil {
		return nil, err
	}
	snap, err := s.vm.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close() // the VM's own memory holds the layers until the answer is sent
	answer, err := encode(snap)
	if err == nil {
		s.lent = answer.fds[0]
	}
	return answer, err
}
