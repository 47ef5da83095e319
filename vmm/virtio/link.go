package virtio

import (
	"context"
	"sync"
	"sync/atomic"
)

// Link is one life of a driver: from DRIVER_OK, or a restored state, to the reset. What is called on a dead one does nothing.
type Link struct {
	Features uint64 // as negotiated

	m      *MMIO
	queues []*Queue // nil where the driver set none up
	done   chan struct{}
	wg     sync.WaitGroup

	broken   atomic.Bool // the driver is at fault: its memory isn't touched any more
	dead     atomic.Bool
	draining atomic.Bool

	mu     sync.Mutex
	cond   sync.Cond // busy or draining has changed
	busy   int       // calls of Handle, and chains that devices hold
	ctx    context.Context
	cancel context.CancelFunc
}

func newLink(m *MMIO, features uint64) *Link {
	l := &Link{Features: features, m: m, queues: make([]*Queue, len(m.regs)), done: make(chan struct{})}
	l.cond.L = &l.mu
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Has tells whether a feature was negotiated.
func (l *Link) Has(bit uint) bool { return l.Features>>bit&1 != 0 }

// Queue returns a queue, or nil if the driver doesn't use it.
func (l *Link) Queue(i int) *Queue {
	if i < 0 || i >= len(l.queues) {
		return nil
	}
	return l.queues[i]
}

// Kick makes Handle run for a queue, because the host has something for it.
func (l *Link) Kick(i int) {
	if q := l.Queue(i); q != nil {
		q.Kick()
	}
}

// ConfigChanged tells the driver to read the configuration space again.
func (l *Link) ConfigChanged() {
	if l.usable() {
		l.m.generation.Add(1)
		l.m.interrupt(interruptConfig)
	}
}

// Fail is for faults that a device finds outside Handle.
func (l *Link) Fail(err error) {
	if !l.dead.Load() && !l.broken.Swap(true) {
		l.m.fail(err)
	}
}

func (l *Link) usable() bool { return !l.broken.Load() && !l.dead.Load() }

// start runs a worker for each queue, and lets each look once: a driver may have filled its queues before DRIVER_OK.
func (l *Link) start() {
	for _, q := range l.queues {
		if q != nil {
			l.wg.Add(1)
			go l.work(q)
			q.Kick()
		}
	}
}

func (l *Link) work(q *Queue) {
	defer l.wg.Done()
	for {
		select {
		case <-l.done:
			return
		case <-q.kick:
		}
		ctx, ok := l.enter()
		if !ok {
			return
		}
		var err error
		if l.usable() && !q.stopped.Load() {
			err = l.m.dev.Handle(ctx, q)
			q.Signal()
		}
		if err != nil {
			l.Fail(err)
		}
		l.leave()
	}
}

// enter waits for the end of a pause; false means that the link has died.
func (l *Link) enter() (context.Context, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.draining.Load() && !l.dead.Load() {
		l.cond.Wait()
	}
	if l.dead.Load() {
		return nil, false
	}
	l.busy++
	return l.ctx, true
}

// hold is called within Handle, so that busy doesn't rise from zero.
func (l *Link) hold() {
	l.mu.Lock()
	l.busy++
	l.mu.Unlock()
}

func (l *Link) leave() {
	l.mu.Lock()
	if l.busy--; l.busy == 0 {
		l.cond.Broadcast()
	}
	l.mu.Unlock()
}

// pause returns when no Handle runs and no chain is held.
func (l *Link) pause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining.Store(true)
	l.cancel()
	for l.busy > 0 {
		l.cond.Wait()
	}
}

func (l *Link) resume() {
	l.mu.Lock()
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.draining.Store(false)
	l.cond.Broadcast()
	l.mu.Unlock()
	for i := range l.queues {
		l.Kick(i) // for what was announced or returned meanwhile
	}
}

// stop ends the link for good, and waits for its workers.
func (l *Link) stop() {
	l.pause()
	l.mu.Lock()
	l.dead.Store(true)
	l.cond.Broadcast()
	l.mu.Unlock()
	close(l.done)
	l.wg.Wait()
}
