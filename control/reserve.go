package control

import (
	"context"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// Times of reservations, in seconds.
const (
	defaultReserve = 60
	maxReserve     = 600
)

// reservation is a warm sandbox that is held back.
type reservation struct {
	ID      string    `json:"id"`
	Pool    string    `json:"pool"`
	Sandbox string    `json:"sandbox"`
	Owner   string    `json:"owner,omitempty"`
	Expires time.Time `json:"expires"`
}

// Reserve holds a warm sandbox back for whoever is about to claim; if there is none, one is started. It comes with CreateSandbox, from
// its owner only. One that has run out counts as none there.
func (c *Control) Reserve(ctx context.Context, who *access.Caller, r api.Reserve) (*api.Reservation, error) {
	const op = "reserve sandbox"
	p := c.pools.get(r.Pool)
	if err := c.allow(ctx, who, access.PoolGet, poolThing(r.Pool, p)); err != nil {
		return nil, err
	}
	if err := c.allow(ctx, who, access.SandboxCreate, access.Thing{Kind: "sandbox", Owner: ownerOf(who)}); err != nil {
		return nil, err
	}
	if p == nil {
		return nil, noPool(op, r.Pool)
	}
	if r.Seconds == 0 {
		r.Seconds = defaultReserve
	}
	if r.Seconds < 0 || r.Seconds > maxReserve {
		return nil, invalid(op, r.Pool, "%d seconds: want 1 to %d", r.Seconds, maxReserve)
	}
	v, err := c.awaitReady(ctx, op, p.Spec.Template, 0)
	if err != nil {
		return nil, err
	}
	release, err := c.admit(ctx, op, ownerOf(who), p, 1)
	if err != nil {
		return nil, err
	}
	defer release()
	b := c.index.takeWarm(p.Name, imageOf(v.Name, v.Version), nil)
	if b == nil {
		if b, err = c.startRecord(ctx, c.newRecord(v, p), node.Start{}, nil); err != nil {
			return nil, err
		}
		if !c.index.takeThis(b) {
			return nil, errs.Msg(errs.Unavailable, op, r.Pool, "somebody was faster").WithHint("try again")
		}
	}
	n := &reservation{ID: newID(), Pool: p.Name, Sandbox: b.id, Owner: ownerOf(who), Expires: c.clock.now().Add(seconds(r.Seconds))}
	t := new(txn)
	c.reservations.set(c, t, n.ID, nil, n)
	err = c.commit(ctx, t)
	if err != nil {
		c.index.putBack(b)
		return nil, err
	}
	c.kick() // the pool is one short
	return &api.Reservation{ID: n.ID, Pool: n.Pool, Expires: n.Expires}, nil
}

// Unreserve gives a reservation up early.
func (c *Control) Unreserve(ctx context.Context, who *access.Caller, id string) error {
	const op = "give up reservation"
	r := c.reservations.get(id)
	thing := access.Thing{Kind: "sandbox", ID: short(id)}
	if r != nil {
		thing.Owner = r.Owner
	}
	if err := c.allow(ctx, who, access.SandboxEnd, thing); err != nil {
		return err
	}
	if r == nil {
		return errs.Msg(errs.NotFound, op, short(id), "there is no such reservation")
	}
	return c.unreserve(ctx, r)
}

func (c *Control) unreserve(ctx context.Context, r *reservation) error {
	t := new(txn)
	c.reservations.set(c, t, r.ID, r, nil)
	if err := c.commit(ctx, t); err != nil {
		return err
	}
	if b := c.box(r.Sandbox); b != nil {
		c.index.putBack(b)
	}
	c.kick()
	return nil
}

// takeReserved takes the sandbox that an order has reserved, or nil.
func (c *Control) takeReserved(ctx context.Context, o *order, image string) *box {
	r := c.reservations.get(o.req.Reservation)
	if o.req.Reservation == "" || r == nil || r.Owner != o.owner || r.Pool != o.pool.Name {
		return nil
	}
	b := c.box(r.Sandbox)
	if b != nil && b.rec.Load().Image != image {
		b = nil // the template has a new version
	}
	t := new(txn)
	c.reservations.set(c, t, r.ID, r, nil)
	// Lazy: if that is lost in a crash, the sandbox is claimed and the reservation runs out.
	t.b.Lazy = true
	if c.commit(ctx, t) != nil {
		return nil
	}
	if b == nil {
		if b := c.box(r.Sandbox); b != nil {
			c.index.putBack(b)
		}
		return nil
	}
	return b
}

// reserved are the sandboxes of a pool that are held back.
func (c *Control) reserved(pool string) map[string]bool {
	out := map[string]bool{}
	c.reservations.all(func(_ string, r *reservation) bool {
		if r.Pool == pool {
			out[r.Sandbox] = true
		}
		return true
	})
	return out
}

// endReservations gives up those that have run out.
func (c *Control) endReservations(ctx context.Context) {
	now := c.clock.now()
	var over []*reservation
	c.reservations.all(func(_ string, r *reservation) bool {
		if now.After(r.Expires) || c.box(r.Sandbox) == nil || c.pools.get(r.Pool) == nil {
			over = append(over, r)
		}
		return true
	})
	for _, r := range over {
		if err := c.unreserve(ctx, r); err != nil {
			c.o.Log.Warn("end a reservation", "reservation", r.ID, "err", err)
		}
	}
}

// holdReserved takes the sandboxes of reservations that were recorded out of their pools: nobody else may claim them.
func (c *Control) holdReserved() {
	c.reservations.all(func(_ string, r *reservation) bool {
		if b := c.box(r.Sandbox); b != nil {
			c.index.takeThis(b)
		}
		return true
	})
}
