package control

import (
	"context"
	"encoding/binary"
	"time"

	"agentrun.dev/kv"
)

// sweepEvery is how often what is over is forgotten.
const sweepEvery = 30 * time.Second

// runSweeps forgets what nobody needs any more.
func (c *Control) runSweeps(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	quick := time.NewTicker(time.Second)
	defer quick.Stop()
	c.mendSnapshots(ctx)
	c.mendVolumes(ctx)
	c.mendForks(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-quick.C:
			c.endReservations(ctx)
		case <-tick.C:
			c.sweep(ctx)
		}
	}
}

func (c *Control) sweep(ctx context.Context) {
	c.endChats(ctx)
	c.mendSnapshots(ctx)
	c.mendVolumes(ctx)
	for what, f := range map[string]func(context.Context) error{"sandboxes": c.forgetEnded, "events": c.forgetEvents, "requests": c.forgetOnces, "forks": c.forgetForks} {
		if err := f(ctx); err != nil && ctx.Err() == nil {
			c.o.Log.Warn("forget "+what, "err", err)
		}
	}
}

// maxForget bounds one commit of a sweep.
const maxForget = 5000

// forgetEnded deletes the records of sandboxes that ended longer ago than their retention.
func (c *Control) forgetEnded(ctx context.Context) error {
	t := new(txn)
	t.b.Reclaim = true
	var ids []string
	r := under(kindExpiry)
	r.End = key(kindExpiry, number(uint64(max(0, c.clock.now().Unix()))))
	err := c.o.KV.Scan(ctx, r, func(k, _ []byte) error {
		ids = append(ids, lastOf(k))
		t.b.Delete(append([]byte(nil), k...))
		if len(ids) == maxForget {
			return kv.Stop
		}
		return nil
	})
	if err != nil || len(ids) == 0 {
		return err
	}
	for _, id := range ids {
		raw, err := c.o.KV.Get(ctx, key(kindEnded, id))
		var n record
		if err == nil && decode(key(kindEnded, id), raw, &n) == nil {
			t.b.Delete(key(kindMember, n.Root, id))
		}
		t.b.Delete(key(kindEnded, id))
		t.b.Delete(key(kindUsage, id))
		if c.aliases.get(id) != nil {
			continue // its id leads to another
		}
		for _, old := range c.formerly(id) { // ids that led to this one lead nowhere
			if a := c.aliases.get(old); a != nil {
				c.aliases.set(c, t, old, a, nil)
			}
		}
	}
	return c.commit(ctx, t)
}

// forgetEvents deletes events that are older than they are kept.
func (c *Control) forgetEvents(ctx context.Context) error {
	before := c.clock.now().Add(-eventsKept)
	var last uint64
	upTo, _ := c.news.upTo()
	err := c.o.KV.Scan(ctx, under(kindEvent), func(k, raw []byte) error {
		var e struct {
			Time time.Time `json:"time"`
		}
		seq := binary.BigEndian.Uint64(k[len(k)-8:])
		// The newest one stays: it says which numbers were given.
		if decode(k, raw, &e) != nil || !e.Time.Before(before) || seq >= upTo {
			return kv.Stop
		}
		last = seq
		return nil
	})
	if err != nil || last == 0 {
		return err
	}
	t := new(txn)
	t.b.Reclaim = true
	t.b.DeleteRange(key(kindEvent, number(0)), key(kindEvent, number(last+1)))
	return c.commit(ctx, t)
}

// mendForks marks forks that a crash interrupted: their children go, all of them.
func (c *Control) mendForks(ctx context.Context) {
	var list []*fork
	c.forks.all(func(_ string, f *fork) bool {
		if f.State == statePending && f.Created.Before(c.opened) {
			list = append(list, f)
		}
		return true
	})
	for _, f := range list {
		n := *f
		n.State, n.Reason = stateFailed, "the service was started anew in the middle of it"
		t := new(txn)
		if f.Spec == nil { // nobody waits for it: the name is free again
			c.forks.set(c, t, f.Name, f, nil)
		} else {
			c.forks.set(c, t, f.Name, f, &n)
		}
		if err := c.commit(ctx, t); err != nil {
			c.o.Log.Warn("record a fork that was interrupted", "fork", f.Name, "err", err)
		}
	}
}

// forgetForks deletes forks of whose sandboxes nothing is kept.
func (c *Control) forgetForks(ctx context.Context) error {
	var list []*fork
	c.forks.all(func(_ string, f *fork) bool {
		if f.Spec == nil && f.State != statePending {
			list = append(list, f)
		}
		return len(list) < maxForget
	})
	for _, f := range list {
		known := false
		for _, id := range f.IDs {
			if _, _, err := c.lookup(ctx, "", id); err == nil {
				known = true
				break
			}
		}
		if known {
			continue
		}
		t := new(txn)
		t.b.Reclaim = true
		c.forks.set(c, t, f.Name, f, nil)
		if err := c.commit(ctx, t); err != nil {
			return err
		}
	}
	return nil
}
