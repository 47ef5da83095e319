package control

import (
	"context"
	"sync"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// slot carries a request through to the transition that does what it asks for, so that both are recorded together or not at all.
type slot struct {
	key  []byte // of the record
	once once
	made string // of a former try
	id   string // for what is to be made
	last string // what was made
}

type slotKey struct{}

func slotOf(ctx context.Context) *slot {
	s, _ := ctx.Value(slotKey{}).(*slot)
	return s
}

// mint is the id that what the request makes should have; "" if that is all the same.
func (s *slot) mint() string {
	if s == nil {
		return ""
	}
	if s.made != "" {
		return s.made
	}
	if s.id == "" {
		s.id = newID()
	}
	return s.id
}

// record adds to a transition that it made something for the request.
func (s *slot) record(t *txn, made string) {
	if s != nil {
		s.last = made
		o := s.once
		o.Made = made
		t.b.Put(s.key, encodeOnce(&o))
	}
}

// repeated finds the sandbox that a former try of the request has made.
func (c *Control) repeated(ctx context.Context, s *slot) *api.Sandbox {
	if s == nil || s.made == "" {
		return nil
	}
	b, ended, err := c.lookup(ctx, "", s.made)
	switch {
	case err != nil:
		return nil
	case b != nil:
		return c.view(b)
	case ended.State == api.StateFailed && ended.Started.IsZero():
		s.made = "" // it never ran, and the caller was told so: another one
		return nil
	}
	return c.viewOf(ended)
}

// requests are those under way.
type requests struct {
	mu   sync.Mutex
	busy map[string]chan struct{}
}

func newRequests() *requests { return &requests{busy: map[string]chan struct{}{}} }

// enter waits until no other request of the key is under way.
func (r *requests) enter(ctx context.Context, k string) (leave func(), err error) {
	for {
		r.mu.Lock()
		busy := r.busy[k]
		if busy == nil {
			done := make(chan struct{})
			r.busy[k] = done
			r.mu.Unlock()
			return func() {
				r.mu.Lock()
				delete(r.busy, k)
				r.mu.Unlock()
				close(done)
			}, nil
		}
		r.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, errs.New(errs.Canceled, "repeat request", "", ctx.Err())
		}
	}
}
