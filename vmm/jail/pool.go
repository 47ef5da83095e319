package jail

import (
	"context"
	"sync"

	"agentrun.dev/errs"
)

// Pool keeps shells of one kind ready for Restore: what the kernel takes its time for is done while nobody waits.
type Pool struct {
	start func(context.Context) (*Process, error)
	size  int
	ctx   context.Context
	stop  context.CancelFunc
	want  chan struct{} // there may be room
	done  chan struct{}

	mu     sync.Mutex
	shells []*Process
	closed bool
}

// NewPool returns a pool that keeps up to size shells. start makes one, such as by Start; it is called by one goroutine of the
// pool's, and by Get when there is none.
func NewPool(size int, start func(context.Context) (*Process, error)) *Pool {
	ctx, stop := context.WithCancel(context.Background())
	p := &Pool{start: start, size: size, ctx: ctx, stop: stop, want: make(chan struct{}, 1), done: make(chan struct{})}
	p.want <- struct{}{}
	go p.refill()
	return p
}

// Get returns a shell, which is the caller's then: a pooled one that still lives, else a new one, whose errors are those of start.
// After Close it is Unavailable.
func (p *Pool) Get(ctx context.Context) (*Process, error) {
	for {
		s, err := p.take()
		switch {
		case err != nil:
			return nil, err
		case s == nil:
			return p.start(ctx)
		case s.lives():
			return s, nil
		}
		s.Close() // it died meanwhile
	}
}

func (p *Pool) take() (*Process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errs.Msg(errs.Unavailable, "vmm process", "pool", "it is closed")
	}
	select {
	case p.want <- struct{}{}:
	default:
	}
	if len(p.shells) == 0 {
		return nil, nil
	}
	s := p.shells[0]
	p.shells = p.shells[1:]
	return s, nil
}

// refill starts shells, one at a time, whenever there may be room. After an error it waits until somebody wants one again.
func (p *Pool) refill() {
	defer close(p.done)
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.want:
		}
		for p.room() {
			s, err := p.start(p.ctx)
			if err != nil {
				break // Get says it to who is interested
			}
			p.mu.Lock()
			p.shells = append(p.shells, s)
			p.mu.Unlock()
		}
	}
}

func (p *Pool) room() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closed && len(p.shells) < p.size
}

// Ready is how many shells there are.
func (p *Pool) Ready() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.shells)
}

// Close ends the shells that nobody has taken.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop()
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.shells {
		s.Close()
	}
	p.shells = nil
	return nil
}
