// Package control is the sandbox service: the records of templates, pools, sandboxes, forks, claims and principals' usage, and the one
// state machine that makes what exists be what is recorded.
//
// Every method begins by asking package access whether the caller may, which is audited. What changes is recorded before it is
// acted on; after a crash reconciliation compares the records with what the nodes have. Nothing else holds the truth: Kubernetes
// objects, SDKs and the command line are faces of it.
//
// A record is JSON under a key that begins with "c/" (docs/format.md). A transition is one commit: it checks that the records which it
// changes are still what they were, and holds the events that tell of it. A box is a sandbox in memory; whoever has its turn
// may record a transition and act on it. A peer is a node that joined. What is to be done about a sandbox, given its record and what its
// node says, is decided by one function, next, which depends on nothing else.
package control

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// Options describe a service.
type Options struct {
	KV       kv.Store
	Store    *bucket.Store // of buckets that templates name, snapshots and private mounts
	Keys     *access.Keys
	Guard    *access.Guard
	Endpoint string // host:port of the API, as clients are told
	S3       func() (endpoint, region string)
	Log      *slog.Logger // nil: nothing is logged
	Now      func() time.Time
	// BuildNetwork is what init lines of templates may connect to, as package egress has it; none: nothing.
	BuildNetwork []string
	// Patience bounds one request to a node, such as to wake a sandbox; 0 is two minutes.
	Patience time.Duration
}

// Control is the service. All methods may be called concurrently.
type Control struct {
	o      Options
	clock  *clock
	opened time.Time // records from before are a former service's
	news   *news
	index  *index

	heads         *table[head]
	versions      *table[api.Template]
	pools         *table[pool]
	reservations  *table[reservation]
	claims        *table[claim]
	forks         *table[fork]
	snapshots     *table[snapshot]
	volumes       *table[stored]
	agents        *table[api.Agent]
	conversations *table[conversation]
	nodes         *table[nodeRecord]
	mounts        *table[api.Mounts]
	totals        *table[total]
	aliases       *table[alias]

	builds   *builder
	requests *requests
	filler   *filler

	peersMu              sync.RWMutex
	peers                map[string]*peer
	usageMu              sync.Mutex   // one change of totals at a time
	volumesMu            sync.RWMutex // held while volumes get mounted, alone while one goes
	admitMu              sync.Mutex
	admitted, admittedTo map[string]int // sandboxes that are being made, by owner and by pool

	wake     chan struct{} // the loop has something to do
	closing  chan struct{} // closed when the service ends
	ctx      context.Context
	cancel   context.CancelFunc
	begun    atomic.Bool
	ends     sync.Once
	onces    onces    // requests with a key that are being done
	timings  timings  // see Metrics
	privates sync.Map // names of private buckets that are known to exist
	work     sync.WaitGroup
}

// Open reads the records. Nodes are added by Join; then Start begins to act on the records.
func Open(ctx context.Context, o Options) (*Control, error) {
	if o.KV == nil || o.Guard == nil || o.Keys == nil {
		return nil, errs.Msg(errs.Invalid, "open control", "", "no store, no keys or no guard")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &Control{
		o: o, clock: newClock(o.Now), index: newIndex(),
		heads: newTable[head](kindTemplate), versions: newTable[api.Template](kindVersion), pools: newTable[pool](kindPool),
		reservations: newTable[reservation](kindReservation), claims: newTable[claim](kindClaim), forks: newTable[fork](kindFork),
		snapshots: newTable[snapshot](kindSnapshot), volumes: newTable[stored](kindVolume), agents: newTable[api.Agent](kindAgent),
		conversations: newTable[conversation](kindConversation), nodes: newTable[nodeRecord](kindNode), mounts: newTable[api.Mounts](kindMounts),
		totals: newTable[total](kindTotal), aliases: newTable[alias](kindAlias),
		builds: newBuilder(), requests: newRequests(), filler: newFiller(),
		admitted: map[string]int{}, admittedTo: map[string]int{},
		peers: map[string]*peer{}, wake: make(chan struct{}, 1), closing: make(chan struct{}),
	}
	c.opened = c.clock.now()
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := c.load(ctx); err != nil {
		c.cancel()
		return nil, err
	}
	return c, nil
}

// load reads everything that is kept in memory.
func (c *Control) load(ctx context.Context) error {
	for _, t := range []interface {
		load(context.Context, kv.Store) error
	}{c.heads, c.versions, c.pools, c.reservations, c.claims, c.forks, c.snapshots, c.volumes, c.agents, c.conversations, c.nodes, c.mounts, c.totals, c.aliases} {
		if err := t.load(ctx, c.o.KV); err != nil {
			return err
		}
	}
	last, err := c.lastEvent(ctx)
	if err != nil {
		return err
	}
	c.news = newNews(last)
	err = c.o.KV.Scan(ctx, under(kindSandbox), func(k, raw []byte) error {
		r := new(record)
		if err := decode(k, raw, r); err != nil {
			return err
		}
		b := newBox(r.ID)
		b.rec.Store(r)
		b.raw = append([]byte(nil), raw...)
		c.setTimers(b, r, true)
		c.index.replace(b, nil, r)
		return nil
	})
	if err != nil {
		return err
	}
	c.holdReserved()
	return c.loadUsage(ctx)
}

// Start reconciles and then keeps doing so, until Close.
func (c *Control) Start(ctx context.Context) error {
	if !c.begun.CompareAndSwap(false, true) {
		return errs.Msg(errs.Invalid, "start control", "", "it was started already")
	}
	for _, p := range c.allPeers() {
		c.reconcile(ctx, p)
	}
	c.work.Go(func() { c.runBuilds(c.ctx) })
	c.work.Go(func() { c.runPools(c.ctx) })
	c.work.Go(func() { c.runLeases(c.ctx) })
	c.work.Go(func() { c.runPolls(c.ctx) })
	c.work.Go(func() { c.runSweeps(c.ctx) })
	return nil
}

func (c *Control) started() bool { return c.begun.Load() }

// Close stops acting. What runs on nodes goes on.
func (c *Control) Close(ctx context.Context) error {
	c.ends.Do(func() {
		close(c.closing)
		c.cancel()
	})
	done := make(chan struct{})
	go func() {
		c.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return c.flushUsage(ctx)
	case <-ctx.Done():
		return errs.New(errs.Canceled, "close control", "", ctx.Err())
	}
}

// kick makes the loop of pools look again.
func (c *Control) kick() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// act returns a context for what was recorded and must be done now: the client's going away doesn't stop it half-way.
func (c *Control) act(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(c.o.Patience, actTimeout))
}

// actTimeout bounds one request to a node, if Options don't.
const actTimeout = 2 * time.Minute

// newID mints an id: those made later sort later.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// Page is a part of a list: what comes after a cursor.
type Page struct {
	Limit  int
	Cursor string
}

// full is a page of a list that clients take for whole: without a limit it is as long as may be.
func (p Page) full() Page {
	if p.Limit == 0 {
		p.Limit = api.MaxPage
	}
	return p
}

// Filter selects sandboxes. Empty fields select all.
type Filter struct {
	Page
	State, Owner, Template, Pool, Root, Parent, Name, Conversation string
	Labels                                                         api.Labels
}

// EventFilter selects events. Empty fields select all.
type EventFilter struct {
	Sandbox, Kind string
	Limit         int
}
