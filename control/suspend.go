package control

import (
	"context"
	"errors"
	"sync"

	"agentrun.dev/api"
)

// Suspend stops acting and puts what runs on nodes of this process to sleep: they end with it. What can't be saved in time is lost, and
// fails when the service is opened again; of what is saved, processes that can't be copied are lost, and forks that it made of itself. Close follows.
func (c *Control) Suspend(ctx context.Context) error {
	c.ends.Do(func() {
		close(c.closing)
		c.cancel()
	})
	c.work.Wait()
	var mu sync.Mutex
	var failed []error
	limit := newLimit(maxActs)
	for _, b := range c.index.list() {
		r := b.rec.Load()
		p := c.peer(r.Node)
		if p == nil || !p.local || !r.claimed() || r.State != api.StateRunning || ctx.Err() != nil {
			continue
		}
		limit.do(func() {
			if err := b.take(ctx); err != nil {
				return
			}
			defer b.give()
			if b.rec.Load().State != api.StateRunning {
				return
			}
			// By force: what keeps one from sleeping, such as forks that it made of itself, would end all the same.
			if err := c.putToSleep(ctx, b, sleeping{force: true, reason: "the service was shut down"}); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, err)
			}
		})
	}
	limit.wait()
	return errors.Join(failed...)
}
