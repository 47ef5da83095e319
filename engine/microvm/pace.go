package microvm

import (
	"context"
	"encoding/binary"
	"sync"

	"agentrun.dev/engine"
	"agentrun.dev/vmm/virtio/rate"
)

// pace keeps the rate of what a machine reads and writes of its volumes. Requests wait for one another in it, so that none that is begun
// costs more than there was. A machine can't stand still while a request is under way, and neither its freezing nor its end waits for a rate:
// until it goes on, there is none.
type pace struct {
	limit *rate.Limiter // nil: no rate
	turn  chan struct{}

	mu     sync.Mutex
	lifted context.Context // ends when the rate is lifted
	cut    context.CancelFunc
}

func newPace(r engine.Rate) *pace {
	p := &pace{limit: rate.New(limitOf(r)), turn: make(chan struct{}, 1)}
	p.lifted, p.cut = context.WithCancel(context.Background())
	return p
}

// wait returns when a request may be done: at once if it neither reads nor writes. room is that for its answer.
func (p *pace) wait(in []byte, room int) {
	if p.limit == nil {
		return
	}
	n, ok := costOf(in, room)
	if !ok {
		return
	}
	p.mu.Lock()
	lifted := p.lifted
	p.mu.Unlock()
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
		p.limit.Wait(lifted, func() {})
	case <-lifted.Done():
	}
	p.limit.Charge(n)
}

// costOf is how many bytes a request reads or writes, if it does either.
func costOf(in []byte, room int) (int, bool) {
	if len(in) < min(readHeaders, writeHeaders) {
		return 0, false
	}
	switch binary.LittleEndian.Uint32(in[4:]) {
	case fuseRead:
		size := binary.LittleEndian.Uint32(in[40+16:])
		return int(min(int64(size), int64(max(0, room-answerHeader)))), true
	case fuseWrite:
		return len(in) - writeHeaders, true
	}
	return 0, false
}

// lift lets through what waits, and all that comes until keep.
func (p *pace) lift() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut()
}

// keep keeps the rate again.
func (p *pace) keep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lifted.Err() != nil {
		p.lifted, p.cut = context.WithCancel(context.Background())
	}
}
