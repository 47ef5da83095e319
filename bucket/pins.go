package bucket

import "sync"

// pin names a view or a delta that something in memory reads through, so that it isn't collected meanwhile.
type pin struct {
	kind byte // kView or kDelta
	id   uint64
}

// pins counts them. Whoever finds a view through a record pins it first and then looks whether the record is still
// there: the collector looks at the pins after the record has gone.
type pins struct {
	mu    sync.Mutex
	held  map[pin]int
	freed chan struct{} // gets a token when something is dropped
}

func (p *pins) init() {
	p.held = make(map[pin]int)
	p.freed = make(chan struct{}, 1)
}

func (p *pins) add(list ...pin) {
	p.mu.Lock()
	for _, x := range list {
		p.held[x]++
	}
	p.mu.Unlock()
}

func (p *pins) drop(list []pin) {
	if len(list) == 0 {
		return
	}
	p.mu.Lock()
	for _, x := range list {
		if p.held[x]--; p.held[x] == 0 {
			delete(p.held, x)
		}
	}
	p.mu.Unlock()
	select {
	case p.freed <- struct{}{}:
	default:
	}
}

func (p *pins) has(x pin) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held[x] > 0
}
