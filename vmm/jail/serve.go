package jail

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/vmm"
	"agentrun.dev/vmm/boot"
	"agentrun.dev/vmm/kvm"
	"agentrun.dev/vmm/snapshot"
)

// processName is what ps shows.
const processName = "agentrun-vmm"

// maxKernel bounds the images that a VMM is given.
const maxKernel = 1 << 30

// Serve is a VMM process: it takes its setup from the socket, prepares a VM, confines itself for good and follows
// orders until the socket is closed. more, which may be nil, puts devices into the VM behind those of the setup.
func Serve(more func(*vmm.VM) error) error {
	c, err := newConn(os.NewFile(SocketFD, "socket"))
	if err != nil {
		return err
	}
	defer c.Close()
	_ = os.WriteFile("/proc/self/comm", []byte(processName), 0) // for people only
	killFirst()
	buf := make([]byte, maxPacket)
	m, err := c.receive(buf)
	version := protocol()
	if m != nil && m.Failed == nil {
		if other := checkProtocol(version, m.Version); other != nil {
			m.closeFDs()
			return errors.Join(other, c.send(&message{Op: opReady, Version: version, Failed: newFailure(other)}))
		}
	}
	if err != nil {
		return err
	}
	if m.Failed != nil {
		return c.send(&message{Op: opReady, Version: version, Failed: m.Failed})
	}
	if m.Op != opSetup || m.Setup == nil {
		return errs.Msg(errs.Invalid, "vmm process", "setup", "it doesn't come first")
	}
	v, d, err := prepare(m.Setup, m.fds, more)
	if err != nil {
		return errors.Join(err, c.send(&message{Op: opReady, Version: version, Failed: newFailure(err)}))
	}
	defer v.Close()
	srv := &server{conn: c, vm: v, devices: d, lent: -1, dials: dials{socket: d.socket, conn: c, waiting: make(map[uint64]context.CancelFunc)}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		srv.watch(ctx)
	}()
	defer func() {
		cancel()
		<-done
		srv.dials.all.Wait()
	}()
	if err := warm(v.Config()); err != nil {
		return err
	}
	if err := c.send(&message{Op: opReady, Version: version}); err != nil {
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
		switch {
		case m.Failed != nil: // on its way
			if err := c.send(&message{ID: m.ID, Op: m.Op, Failed: m.Failed}); err != nil {
				return err
			}
			continue
		case m.Op == opDial:
			srv.dials.dial(ctx, m)
			continue
		case m.Op == opHangUp:
			srv.dials.hangUp(m.ID)
			m.closeFDs()
			continue
		}
		answer, err := srv.follow(m)
		m.closeFDs()
		if answer == nil {
			answer = new(message)
		}
		answer.ID, answer.Op, answer.Failed = m.ID, m.Op, newFailure(err)
		err = c.send(answer)
		if err != nil && len(answer.fds) > 0 { // what can't be handed over is no reason to end
			err = c.send(&message{ID: m.ID, Op: m.Op, Failed: newFailure(err)})
		}
		srv.giveBack()
		if err != nil {
			return err
		}
	}
}

// killFirst makes the kernel of a host without memory kill a VM, the largest, before it kills who started it: that one may have a
// score to lose, too, and says what became of the VM.
func killFirst() {
	const file, score, most = "/proc/self/oom_score_adj", 900, 1000
	b, err := os.ReadFile(file)
	if err != nil {
		return
	}
	own, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	_ = os.WriteFile(file, strconv.AppendInt(nil, int64(min(max(own+1, score), most)), 10), 0) // a wish
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
	order, err := json.Marshal(&message{Op: opRestore, Extents: make(extents, 8)})
	if err != nil {
		return err
	}
	return errors.Join(json.Unmarshal(state, new(snapshot.Snapshot)), json.Unmarshal(order, new(message)))
}

// deviceProcs is how many of the scheduler's processors there are beside the vCPUs': each of those holds one for a while after
// it has entered the guest.
const deviceProcs = 3

// prepare makes the VM and its devices, and confines the process. It takes the descriptors over.
func prepare(s *setup, fds []int, more func(*vmm.VM) error) (*vmm.VM, *devices, error) {
	host, err := vmm.NewHost()
	if err != nil {
		closeAll(fds)
		return nil, nil, err
	}
	config := vmm.Config{Memory: s.Memory, VCPUs: s.VCPUs, Tail: s.Tail, PIT: s.PIT, Bare: s.Bare}
	if s.Console {
		config.Console = os.NewFile(ConsoleFD, "console")
	}
	v, err := host.New(config)
	if err != nil {
		closeAll(fds)
		return nil, nil, err
	}
	if s.Devices == nil {
		s.Devices = new(deviceSetup)
	}
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), v.Config().VCPUs+deviceProcs))
	d, err := attach(v, s.Devices, fds)
	if err == nil && more != nil {
		err = more(v)
	}
	if err == nil {
		err = confine(s.UID, s.GID)
	}
	if err != nil {
		v.Close()
		return nil, nil, err
	}
	return v, d, nil
}

// server follows orders.
type server struct {
	conn    *conn
	vm      *vmm.VM
	devices *devices
	dials   dials
	lent    int                // a descriptor that goes with the answer, and is closed after it
	held    *snapshot.Snapshot // whose descriptors go with it, too
}

// giveBack closes what went with an answer.
func (s *server) giveBack() {
	if s.lent >= 0 {
		unix.Close(s.lent)
		s.lent = -1
	}
	if s.held != nil {
		s.held.Close()
		s.held = nil
	}
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
	switch m.Op {
	case opBoot:
		return nil, s.boot(m)
	case opRestore:
		snap, err := decode(m)
		if err != nil {
			return nil, err
		}
		defer snap.Close()
		if err = s.devices.restore(snap); err == nil {
			err = s.vm.Restore(snap)
		}
		if err == nil && m.Run {
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
	case opTail:
		tail := s.vm.Tail()
		return &message{Input: tail[max(0, len(tail)-maxPacket/2):]}, nil
	case opCapture:
		return s.capture()
	case opBalloon:
		return s.balloon(m)
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

// balloon tells what is known of the balloon, whose target may be set, and has the guest say its statistics for the next time.
func (s *server) balloon(m *message) (*message, error) {
	b := s.devices.balloon
	if b == nil {
		return nil, errs.Msg(errs.Unsupported, "vmm process", m.Op, "the VM has none")
	}
	if m.Target != nil {
		if err := b.SetTarget(*m.Target); err != nil {
			return nil, err
		}
	}
	status := b.Status()
	b.Ask()
	return &message{Balloon: &status}, nil
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
	s.held = snap
	if err := s.devices.seal(snap); err != nil {
		return nil, err
	}
	answer, err := encode(snap)
	if err == nil {
		s.lent = answer.fds[0]
	}
	return answer, err
}
