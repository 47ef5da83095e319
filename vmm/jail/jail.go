// Package jail runs each VM in a process of its own, which has nothing but its descriptors: no files, no network, no
// capabilities, a user and namespaces of its own, and a list of system calls. A guest that breaks out of its devices
// finds itself there.
//
// The parent starts a process, which prepares a VM, confines itself and says that it is ready: such a process is a
// shell, and waits for an order. Orders go over a socket of packets (SOCK_SEQPACKET), snapshots as descriptors of
// sealed files: what one VM wrote is mapped by its children without ever being read by the parent, and no holder of a
// descriptor can change it. What comes from a VMM is believed no more than what comes from its guest.
//
// Devices work on descriptors that the process is given before it confines itself: disks, cards, and for each share a socket over
// which the guest's requests come to the parent, who has the files. Connections with programs in the guest come later, as sockets
// with the order to dial. A Pool keeps shells ready; a control group of its own bounds what a process can use of the host.
package jail

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/vmm"
	"agentrun.dev/vmm/snapshot"
	"agentrun.dev/vmm/virtio/balloon"
)

// SocketFD is where a VMM process finds its socket, and ConsoleFD where it writes its guest's console, if it has one.
const (
	SocketFD  = 3
	ConsoleFD = 4
)

// Options of a process.
type Options struct {
	Config  vmm.Config // Console is not taken
	Devices Devices
	// Path and Args are a program that calls Serve with the configuration that Setup reads.
	Path string
	Args []string
	// Console gets what the guest writes; the process holds it, too. May be nil.
	Console *os.File
	// UID and GID are the process's own when the caller is root; 0 leaves them, within a user namespace.
	UID, GID int
	// Users are those of which the process gets one of its own, in place of UID and GID. It gives it back when it has ended.
	Users *Users
	// Groups is where the process gets a control group of its own, with Limits; nil for none.
	Groups *Groups
	Limits Limits
}

// setup is what the process reads first.
type setup struct {
	Memory   uint64
	VCPUs    int
	Tail     int
	PIT      bool
	Bare     bool
	Console  bool
	UID, GID int
	Devices  *deviceSetup
}

// Process is a VMM process and its VM. Its methods may be called at the same time, and wait for one another.
type Process struct {
	conn   *conn
	pid    int
	kill   func() error  // ends the process; os.ErrProcessDone when it has
	reap   func() string // waits until the process is gone, and says how it ended
	config vmm.Config

	ends  ends
	group *group // or nil

	op       sync.Mutex    // one order at a time
	dialling chan struct{} // beside dials, so many
	down     chan struct{} // closed when the process is gone

	mu      sync.Mutex
	id      uint64
	answers map[uint64]*waiter
	exit    *vmm.Exit
	ended   chan struct{} // closed when the guest has ended, or the process is gone
	gone    error         // why there are no more answers
}

// Start starts a process and waits until it is a shell. Errors: Unsupported when its program speaks another version of the protocol, as one
// that was built at another time may, with both versions and a hint; Limit when the host has no room for it.
func Start(ctx context.Context, o Options) (*Process, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, errs.New(errs.Limit, "vmm process", "socket", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "socket")
	defer theirs.Close() // in the end, unless it was before
	for _, fd := range fds {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 2*maxPacket) // a wish; the default is as much
	}
	c, err := newConn(os.NewFile(uintptr(fds[0]), "socket"))
	if err != nil {
		return nil, err
	}
	devices, given, ours, err := o.Devices.describe()
	if err != nil {
		c.Close()
		return nil, err
	}
	defer closeAll(given)
	if o.Users != nil {
		if o.UID, err = o.Users.take(); err != nil {
			c.Close()
			ours.close()
			return nil, err
		}
		o.GID = o.UID
	}
	p := newProcess(c, o.Config, ours)
	ready := make(chan *message, 1)
	p.answers[0] = &waiter{ch: ready}
	err = p.spawn(o, theirs)
	theirs.Close() // it isn't ours: who has it is still there
	if err != nil {
		c.Close()
		p.ends.close()
		return nil, err
	}
	go p.read()
	version := protocol()
	err = c.send(&message{Op: opSetup, Version: version, fds: given, Setup: &setup{Memory: o.Config.Memory, VCPUs: o.Config.VCPUs, Tail: o.Config.Tail, PIT: o.Config.PIT,
		Bare: o.Config.Bare, Console: o.Console != nil, UID: o.UID, GID: o.GID, Devices: devices}})
	if err == nil {
		var m *message
		if m, err = p.await(ctx, ready); err == nil {
			m.closeFDs()
			if err = checkProtocol(version, m.Version); err == nil {
				err = m.Failed.err("start")
			}
		}
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func newProcess(c *conn, config vmm.Config, ours ends) *Process {
	return &Process{conn: c, config: config, ends: ours, dialling: make(chan struct{}, maxDialling), down: make(chan struct{}),
		ended: make(chan struct{}), answers: make(map[uint64]*waiter)}
}

// spawn starts the program with its end of the socket. The user that it has of its own is given back when it has ended.
func (p *Process) spawn(o Options, socket *os.File) (err error) {
	giveBack := func() {
		if o.Users != nil {
			o.Users.release(o.UID)
		}
	}
	defer func() {
		if err != nil {
			p.group.close()
			giveBack()
		}
	}()
	cmd := exec.Command(o.Path, o.Args...)
	cmd.ExtraFiles = []*os.File{socket}
	if o.Console != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, o.Console)
	}
	cmd.Env = []string{}
	if o.Groups != nil {
		if p.group, err = o.Groups.make(&o); err != nil {
			return err
		}
	}
	cmd.SysProcAttr = attributes(o, p.group.fd())
	if err := room(startFDs, int(socket.Fd())); err != nil {
		return errs.New(hostKind(err), "vmm process", "start", err)
	}
	stderr := new(tail)
	cmd.Stderr = stderr
	cmd.WaitDelay = time.Second
	started, reaped := make(chan error, 1), make(chan struct{})
	var events string // before reaped is closed
	go func() {
		// The kernel takes the end of the thread that has started it for its parent's end, and would kill it: so that thread stays.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // how it ended is in ProcessState; who it started, in its namespace of processes, has ended with it
		events = p.group.events()
		p.group.close()
		giveBack()
		close(reaped)
		_ = p.conn.CloseRead() // after what it has said: its end of the socket may be under way to somebody, and never be closed
	}()
	if err := <-started; err != nil {
		return errs.New(hostKind(err), "vmm process", "start", err)
	}
	p.pid = cmd.Process.Pid
	p.kill = cmd.Process.Kill
	p.reap = func() string {
		<-reaped
		return fmt.Sprintf("%v%s%s", cmd.ProcessState, events, stderr)
	}
	return nil
}

// startFDs is how many descriptors the start of a process takes for a moment.
const startFDs = 12

// room looks whether there are n more descriptors. Without them a start fails all the same, but package syscall then leaves the pipe open
// over which it tells the mappings of a user namespace.
func room(n, of int) (err error) {
	fds := make([]int, 0, n)
	for range n {
		fd, err2 := unix.FcntlInt(uintptr(of), unix.F_DUPFD_CLOEXEC, 0)
		if err = err2; err != nil {
			break
		}
		fds = append(fds, fd)
	}
	closeAll(fds)
	return err
}

// hostKind tells the limits of the host from its defects.
func hostKind(err error) errs.Kind {
	for _, limit := range []error{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EAGAIN, unix.ENOSPC, unix.EFBIG, unix.ETOOMANYREFS, unix.ENOBUFS} {
		if errors.Is(err, limit) {
			return errs.Limit
		}
	}
	return errs.Other
}

// waiter is who waits for an answer.
type waiter struct {
	ch     chan *message // has room for it; closed when none will come
	gaveUp bool          // a dial, which holds its place in dialling until the answer has come
}

// register numbers an order and makes room for its answer.
func (p *Process) register(m *message) (chan *message, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone != nil {
		return nil, p.gone
	}
	p.id++
	m.ID = p.id
	ch := make(chan *message, 1)
	p.answers[m.ID] = &waiter{ch: ch}
	return ch, nil
}

// forget is for an order that couldn't be sent. It returns why.
func (p *Process) forget(m *message, ch chan *message, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.answers, m.ID)
	drop(ch)
	if p.gone != nil {
		return p.gone
	}
	return err
}

// drop gives back what an answer holds that came after all.
func drop(ch chan *message) {
	select {
	case m, ok := <-ch:
		if ok {
			m.closeFDs()
		}
	default:
	}
}

// lost is why there are no answers any more.
func (p *Process) lost() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gone
}

// Share is the connection over which the requests of a virtio-fs device come, by its place in Devices.Shares: forward.Serve
// answers them. Until somebody does they wait, and a VM with a request under way can't be paused. It is the caller's then; what
// nobody has asked for is closed with the process.
func (p *Process) Share(i int) net.Conn { return p.ends.shares[i] }

// Card is the other end of a network card, by its place in Devices.Cards: a frame to each Read and Write. nil for a card with a
// file. Frames that nobody takes are lost; it is the caller's, as a share is.
func (p *Process) Card(i int) net.Conn { return p.ends.cards[i] }

// read takes what the process says until it is gone. It owns the process's end.
func (p *Process) read() {
	buf := make([]byte, maxPacket)
	var err error
	for {
		var m *message
		if m, err = p.conn.receive(buf); err != nil {
			break
		}
		if m.Op == opEnded && m.Exit != nil {
			m.closeFDs()
			if !p.end(m.Exit) {
				err = errs.Msg(errs.Invalid, "vmm process", "receive", "its guest ends more than once")
				break
			}
			continue
		}
		p.mu.Lock()
		w := p.answers[m.ID]
		delete(p.answers, m.ID)
		switch {
		case w == nil:
			m.closeFDs()
			err = errs.Msg(errs.Invalid, "vmm process", "receive", "it answers what wasn't asked")
		case w.gaveUp:
			m.closeFDs()
			<-p.dialling
		default:
			w.ch <- m
		}
		p.mu.Unlock()
		if err != nil {
			break
		}
	}
	_ = p.kill() // it has nothing to say any more; an error means that it is gone already
	state := p.reap()
	if errs.KindOf(err) != errs.Invalid {
		err = errs.Msg(errs.Unavailable, "vmm process", "gone", "it ended: "+state)
	}
	p.mu.Lock()
	p.gone = err
	for id, w := range p.answers {
		delete(p.answers, id)
		if close(w.ch); w.gaveUp {
			<-p.dialling
		}
	}
	p.mu.Unlock()
	p.end(nil)
	close(p.down)
}

// end notes the guest's end, and tells whether it is the first.
func (p *Process) end(e *vmm.Exit) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.ended:
		return false
	default:
		p.exit = e
		close(p.ended)
		return true
	}
}

// await waits for an answer. A process that doesn't answer in time is of no use any more.
func (p *Process) await(ctx context.Context, ch chan *message) (*message, error) {
	select {
	case m, ok := <-ch:
		if ok {
			return m, nil
		}
		return nil, p.lost()
	case <-ctx.Done():
		_ = p.kill()
		<-p.down
		drop(ch)
		return nil, errs.New(errs.KindOf(ctx.Err()), "vmm process", "no answer", ctx.Err())
	}
}

// order sends one and waits for its answer. A failed order is an error; the answer's descriptors are the caller's.
func (p *Process) order(ctx context.Context, m *message) (*message, error) {
	p.op.Lock()
	defer p.op.Unlock()
	ch, err := p.register(m)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = p.kill() }) // it may not even read
	err = p.conn.send(m)
	stop()
	if err != nil {
		return nil, p.forget(m, ch, err)
	}
	answer, err := p.await(ctx, ch)
	if err != nil {
		return nil, err
	}
	if err := answer.Failed.err(m.Op); err != nil {
		answer.closeFDs()
		return nil, err
	}
	return answer, nil
}

// plain is an order without an answer's content.
func (p *Process) plain(ctx context.Context, m *message) error {
	a, err := p.order(ctx, m)
	if err == nil {
		a.closeFDs()
	}
	return err
}

// Boot boots a kernel from files; initrd may be nil. The VM is paused then.
func (p *Process) Boot(ctx context.Context, kernel, initrd *os.File, cmdline string) error {
	m := &message{Op: opBoot, Cmdline: cmdline, fds: []int{int(kernel.Fd())}}
	if initrd != nil {
		m.Initrd, m.fds = true, append(m.fds, int(initrd.Fd()))
	}
	return p.plain(ctx, m)
}

// Resume lets the VM run.
func (p *Process) Resume(ctx context.Context) error { return p.plain(ctx, &message{Op: opResume}) }

// Pause stops it.
func (p *Process) Pause(ctx context.Context) error { return p.plain(ctx, &message{Op: opPause}) }

// Thaw lets it go on after Capture.
func (p *Process) Thaw(ctx context.Context) error { return p.plain(ctx, &message{Op: opThaw}) }

// Input types into its console.
func (p *Process) Input(ctx context.Context, b []byte) error {
	return p.plain(ctx, &message{Op: opInput, Input: b})
}

// Tail is the end of what the guest wrote to its console.
func (p *Process) Tail(ctx context.Context) ([]byte, error) {
	m, err := p.order(ctx, &message{Op: opTail})
	if err != nil {
		return nil, err
	}
	m.closeFDs()
	return m.Input, nil
}

// Balloon tells what is known of the VM's balloon, and asks the guest to say its statistics, which a later call returns. errs.Unsupported: it has
// none.
func (p *Process) Balloon(ctx context.Context) (balloon.Status, error) { return p.balloon(ctx, nil) }

// Inflate sets how many bytes the guest shall leave to the host, whole pages; it does what it can, in its own time.
func (p *Process) Inflate(ctx context.Context, target uint64) error {
	_, err := p.balloon(ctx, &target)
	return err
}

func (p *Process) balloon(ctx context.Context, target *uint64) (balloon.Status, error) {
	m, err := p.order(ctx, &message{Op: opBalloon, Target: target})
	if err != nil {
		return balloon.Status{}, err
	}
	m.closeFDs()
	if m.Balloon == nil {
		return balloon.Status{}, errs.Msg(errs.Invalid, "vmm process", "balloon", "the answer says nothing of it")
	}
	return *m.Balloon, nil
}

// Capture pauses the VM and returns its snapshot, which is the caller's. The VM stands still until Thaw.
func (p *Process) Capture(ctx context.Context) (*snapshot.Snapshot, error) {
	p.group.grow(p.config.Memory)
	m, err := p.order(ctx, &message{Op: opCapture})
	if err != nil {
		return nil, err
	}
	s, err := decode(m)
	if err != nil {
		return nil, err
	}
	if got := s.Machine; got.Memory != p.config.Memory || got.VCPUs != max(p.config.VCPUs, 1) {
		s.Close()
		return nil, errs.Msg(errs.Invalid, "vmm process", "capture", fmt.Sprintf("it answers with another machine: %+v", got))
	}
	return s, nil
}

// CaptureImage is Capture for who has no use for the snapshot but children: nobody waits until it has been read.
func (p *Process) CaptureImage(ctx context.Context) (*Image, error) {
	m, err := p.order(ctx, &message{Op: opCapture})
	if err != nil {
		return nil, err
	}
	return adopt(m, p.config.Memory)
}

// Restore makes a shell what an image is of; it is paused then.
func (p *Process) Restore(ctx context.Context, im *Image) error { return p.restore(ctx, im, false) }

// Run is Restore and Resume in one.
func (p *Process) Run(ctx context.Context, im *Image) error { return p.restore(ctx, im, true) }

func (p *Process) restore(ctx context.Context, im *Image, run bool) error {
	m := im.message
	m.Op, m.Run = opRestore, run
	return p.plain(ctx, &m)
}

// Wait returns when the guest has ended, as vmm.VM's does; an error of kind Unavailable when the process has.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.ended:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := p.exit; {
	case e == nil && p.gone != nil:
		return p.gone
	case e == nil:
		return errs.Msg(errs.Unavailable, "vmm process", "wait", "it has ended")
	case e.Reason == vmm.Shutdown, e.Reason == vmm.Halt:
		return nil
	default:
		return e
	}
}

// PID is the process's number.
func (p *Process) PID() int { return p.pid }

// Close ends the process, and with it the VM.
func (p *Process) Close() error {
	err := p.kill()
	p.conn.Close()
	<-p.down
	p.ends.close()
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// attributes are the namespaces that a process is born in. Who isn't root gets a user namespace around them.
func attributes(o Options, group int) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL,
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWPID | unix.CLONE_NEWCGROUP}
	if os.Getuid() != 0 || o.UID == 0 {
		a.Cloneflags |= unix.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: innerID, HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: innerID, HostID: os.Getgid(), Size: 1}}
	}
	if group > 0 {
		a.UseCgroupFD, a.CgroupFD = true, group
	}
	return a
}

// innerID is who the process is within a user namespace: nobody, with the capabilities that its first steps need.
const innerID = 0

// tail keeps the end of what the process says on its standard error: a defect's trace.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	t.b = t.b[max(0, len(t.b)-2000):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.b) == 0 {
		return ""
	}
	return fmt.Sprintf("; it said %q", t.b)
}

// lives tells whether the process is still there, as far as is known.
func (p *Process) lives() bool {
	select {
	case <-p.down:
		return false
	default:
		return p.lost() == nil
	}
}
