package jail

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/virtio/vsock"
)

const (
	// maxDials is how many connections with programs in the guest there are at a time.
	maxDials = 256
	// maxDialling is how many of them may wait for the guest's answer. Their orders fit into the socket, so that a process that
	// reads none of them holds nobody up.
	maxDialling = 32
)

// Dial connects to a port of the guest's on vsock. It waits for the guest's answer, also while the VM is paused, and gives up
// when ctx ends. Unavailable is a guest that has no driver yet, and a port where nobody listens. The connection ends with the VM;
// what it is captured with isn't taken over by the snapshot.
func (p *Process) Dial(ctx context.Context, port uint32) (net.Conn, error) {
	select {
	case p.dialling <- struct{}{}:
	case <-ctx.Done():
		return nil, errs.New(errs.Canceled, "vmm process", "dial", ctx.Err())
	}
	ours, theirs, err := socketPair(unix.SOCK_STREAM)
	if err != nil {
		<-p.dialling
		return nil, err
	}
	m := &message{Op: opDial, Port: port, fds: []int{theirs}}
	ch, err := p.register(m)
	if err == nil {
		if err = p.conn.send(m); err != nil {
			err = p.forget(m, ch, err)
		}
	}
	unix.Close(theirs)
	if err != nil {
		<-p.dialling
		ours.Close()
		return nil, err
	}
	select {
	case a, ok := <-ch:
		<-p.dialling
		if !ok {
			err = p.lost()
		} else {
			a.closeFDs()
			err = a.Failed.err(m.Op)
		}
	case <-ctx.Done():
		p.giveUp(m.ID, ch)
		err = errs.New(errs.Canceled, "vmm process", "dial", ctx.Err())
	}
	if err != nil {
		ours.Close()
		return nil, err
	}
	return ours, nil
}

// giveUp ends the wait for a dial's answer. Its place is free again when the process has answered.
func (p *Process) giveUp(id uint64, ch chan *message) {
	p.mu.Lock()
	w := p.answers[id]
	if w != nil {
		w.gaveUp = true
	}
	p.mu.Unlock()
	if w == nil { // it has come, or none will
		drop(ch)
		<-p.dialling
		return
	}
	_ = p.conn.send(&message{Op: opHangUp, ID: id}) // an error means that nobody dials any more
}

// dials are the connections of a process with its guest.
type dials struct {
	socket *vsock.Device
	conn   *conn

	mu      sync.Mutex
	n       int // connections, and those that are being made
	waiting map[uint64]context.CancelFunc
	all     sync.WaitGroup
}

// dial does an order on a goroutine of its own, which answers it. It takes the descriptor over.
func (d *dials) dial(ctx context.Context, m *message) {
	fds := m.fds
	m.fds = nil
	refuse := func(err error) {
		closeAll(fds)
		_ = d.conn.send(&message{ID: m.ID, Op: m.Op, Failed: newFailure(err)}) // a parent that is gone needn't know
	}
	if len(fds) != 1 || d.socket == nil {
		refuse(errs.Msg(errs.Invalid, "vmm process", "dial", "the VM has no vsock, or it came without a socket"))
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	d.mu.Lock()
	full := d.n >= maxDials
	if !full {
		d.n++
		d.waiting[m.ID] = cancel
	}
	d.mu.Unlock()
	if full {
		cancel()
		refuse(errs.Msg(errs.Limit, "vmm process", "dial", "the VM has too many connections"))
		return
	}
	d.all.Add(1)
	go func() {
		defer d.all.Done()
		defer cancel()
		defer func() {
			d.mu.Lock()
			d.n--
			d.mu.Unlock()
		}()
		guest, err := d.socket.Dial(ctx, m.Port)
		d.mu.Lock()
		delete(d.waiting, m.ID) // from here on nobody hangs up
		d.mu.Unlock()
		if err != nil {
			if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) {
				err = errs.New(errs.Unavailable, "vmm process", "dial", err)
			}
			refuse(err)
			return
		}
		host, err := fileConn(fds[0])
		if fds = nil; err != nil {
			guest.Close()
			refuse(err)
			return
		}
		_ = d.conn.send(&message{ID: m.ID, Op: m.Op})
		vsock.Join(ctx, guest, host)
	}()
}

// hangUp gives a dial up that waits.
func (d *dials) hangUp(id uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if cancel := d.waiting[id]; cancel != nil {
		cancel()
	}
}
