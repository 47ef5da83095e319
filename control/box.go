package control

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// box is a sandbox in memory: its record, the lock of its transitions, and who uses it.
type box struct {
	id   string
	turn chan struct{} // holds one token: whoever has it may change the record and act
	rec  atomic.Pointer[record]

	mu       sync.Mutex
	raw      []byte // the record, as it is stored
	uses     int
	shut     bool          // no use may begin: it is about to hibernate or end
	idle     chan struct{} // closed when uses comes to 0, if somebody waits for it
	deadline time.Duration // end of the lease, by the clock's Since
	noted    time.Duration // deadline as recorded
	until    time.Duration // when it is ended for its age, or its sleep; 0: never
	warned   bool
	retry    time.Duration // not before: an end or hibernation failed
	awake    int           // hibernations that failed, one after another
	why      string        // the last one did
	nap      time.Duration // not before: the next one
	took     [2]float64    // seconds: activation, record
	meter    meter
	samples  samples
}

func newBox(id string) *box {
	b := &box{id: id, turn: make(chan struct{}, 1)}
	b.turn <- struct{}{}
	return b
}

// take waits for the box's turn.
func (b *box) take(ctx context.Context) error {
	select {
	case <-b.turn:
		return nil
	default:
	}
	select {
	case <-b.turn:
		return nil
	case <-ctx.Done():
		return errs.New(errs.Canceled, "wait for sandbox", b.id, ctx.Err())
	}
}

// tryTake takes the turn if nobody has it.
func (b *box) tryTake() bool {
	select {
	case <-b.turn:
		return true
	default:
		return false
	}
}

func (b *box) give() { b.turn <- struct{}{} }

// enter begins a use, if the sandbox runs.
func (b *box) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shut || b.rec.Load().State != api.StateRunning {
		return false
	}
	b.uses++
	return true
}

// leave ends a use.
func (b *box) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.uses--
	if b.uses == 0 && b.idle != nil {
		close(b.idle)
		b.idle = nil
	}
}

// close keeps uses from beginning, once there are none; open undoes it. It waits so long at most.
func (b *box) close(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		b.mu.Lock()
		if b.uses == 0 {
			b.shut = true
			b.mu.Unlock()
			return nil
		}
		if b.idle == nil {
			b.idle = make(chan struct{})
		}
		idle, uses := b.idle, b.uses
		b.mu.Unlock()
		select {
		case <-idle:
		case <-timer.C:
			return errs.Msg(errs.Conflict, "hibernate sandbox", b.id, fmt.Sprintf("it is in use: %d commands or connections are open", uses)).
				WithHint("wait for them to end, or end them")
		case <-ctx.Done():
			return errs.New(errs.Canceled, "hibernate sandbox", b.id, ctx.Err())
		}
	}
}

// shutNow keeps uses from beginning. Those that there are end as they see what is done.
func (b *box) shutNow() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shut = true
}

func (b *box) open() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shut = false
}

// index is what the service finds sandboxes by. Records of those that ended aren't in it.
type index struct {
	mu      sync.RWMutex
	boxes   map[string]*box
	names   map[string]string          // name: id
	trees   map[string]map[string]bool // root: ids
	warm    map[string]map[string]*box // pool: those that may be claimed
	claimed map[string]int             // pool: claimed and not ended
	running map[string]int             // owner: those that count
	placed  map[string]int             // node: those that count
	chats   map[string]map[string]bool // conversation: ids
}

func newIndex() *index {
	return &index{boxes: map[string]*box{}, names: map[string]string{}, trees: map[string]map[string]bool{}, warm: map[string]map[string]*box{},
		claimed: map[string]int{}, running: map[string]int{}, placed: map[string]int{}, chats: map[string]map[string]bool{}}
}

func addTo(m map[string]map[string]bool, k, id string) {
	if m[k] == nil {
		m[k] = map[string]bool{}
	}
	m[k][id] = true
}

func dropFrom(m map[string]map[string]bool, k, id string) {
	delete(m[k], id)
	if len(m[k]) == 0 {
		delete(m, k)
	}
}

func count(m map[string]int, k string, by int) {
	if k == "" {
		return
	}
	if m[k] += by; m[k] == 0 {
		delete(m, k)
	}
}

// replace changes what the index says of a box. Either record may be nil: not there.
func (x *index) replace(b *box, was, is *record) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if was != nil && was.live() {
		if was.Name != "" && x.names[was.Name] == b.id {
			delete(x.names, was.Name)
		}
		dropFrom(x.trees, was.Root, b.id)
		x.tally(was, -1)
		for _, k := range was.Conversations {
			dropFrom(x.chats, k, b.id)
		}
		if m := x.warm[was.Pool]; m != nil && (is == nil || is.State != api.StateWarm) {
			delete(m, b.id)
		}
	}
	if is == nil || !is.live() {
		delete(x.boxes, b.id)
		return
	}
	x.boxes[b.id] = b
	if is.Name != "" {
		x.names[is.Name] = b.id
	}
	addTo(x.trees, is.Root, b.id)
	x.tally(is, 1)
	for _, k := range is.Conversations {
		addTo(x.chats, k, b.id)
	}
	if is.State == api.StateWarm && (was == nil || was.State != api.StateWarm) {
		if x.warm[is.Pool] == nil {
			x.warm[is.Pool] = map[string]*box{}
		}
		x.warm[is.Pool][b.id] = b
	}
}

func (x *index) tally(r *record, by int) {
	if r.claimed() {
		count(x.claimed, r.Pool, by)
	}
	if r.counts() {
		if r.claimed() {
			count(x.running, r.Owner, by)
		}
		count(x.placed, r.Node, by)
	}
}

// takeWarm takes a sandbox out of a pool that stands at an image, or nil. It is nobody else's until it is claimed or put back.
func (x *index) takeWarm(pool, image string, but map[string]bool) *box {
	x.mu.Lock()
	defer x.mu.Unlock()
	for id, b := range x.warm[pool] {
		if r := b.rec.Load(); r.Image == image && !but[r.Node] {
			delete(x.warm[pool], id)
			return b
		}
	}
	return nil
}

// putBack undoes takeWarm.
func (x *index) putBack(b *box) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if r := b.rec.Load(); x.boxes[b.id] == b && r.State == api.StateWarm {
		if x.warm[r.Pool] == nil {
			x.warm[r.Pool] = map[string]*box{}
		}
		x.warm[r.Pool][b.id] = b
	}
}

// list returns all boxes.
func (x *index) list() []*box {
	x.mu.RLock()
	defer x.mu.RUnlock()
	out := make([]*box, 0, len(x.boxes))
	for _, b := range x.boxes {
		out = append(out, b)
	}
	return out
}

// box finds a sandbox that hasn't ended by its id.
func (c *Control) box(id string) *box {
	c.index.mu.RLock()
	defer c.index.mu.RUnlock()
	return c.index.boxes[id]
}

// set makes r (nil: nothing at all) the record of a box within a transition. The caller has the box's turn.
func (c *Control) set(t *txn, b *box, r *record) {
	was := b.rec.Load()
	b.mu.Lock()
	raw := b.raw
	b.mu.Unlock()
	k := key(kindSandbox, b.id)
	t.check(k, raw)
	var next []byte
	switch {
	case r == nil, !r.live():
		t.b.Delete(k)
		if r != nil {
			c.keepEnded(t, r)
		}
	default:
		var err error
		if next, err = encode(r); err != nil {
			t.err = err
			return
		}
		t.b.Put(k, next)
	}
	c.setName(t, b.id, was, r)
	t.then = append(t.then, func() { b.become(c, r, next) })
	t.reread = append(t.reread, func(ctx context.Context) { c.rereadBox(ctx, b) })
}

// become makes memory what was stored.
func (b *box) become(c *Control, r *record, raw []byte) {
	was := b.rec.Load()
	gone := r
	if r == nil {
		gone = was.clone()
		gone.State = api.StateEnded
	}
	b.mu.Lock()
	b.rec.Store(gone)
	b.raw = raw
	b.mu.Unlock()
	c.index.replace(b, was, r)
}

// setName keeps names unique among sandboxes that haven't ended.
func (c *Control) setName(t *txn, id string, was, is *record) {
	var old, name string
	if was != nil && was.live() {
		old = was.Name
	}
	if is != nil && is.live() {
		name = is.Name
	}
	if old == name {
		return
	}
	if old != "" {
		t.check(key(kindName, old), []byte(id))
		t.b.Delete(key(kindName, old))
	}
	if name != "" {
		t.check(key(kindName, name), nil)
		t.b.Put(key(kindName, name), []byte(id))
	}
}

// keepEnded keeps the record of a sandbox that ended for its retention.
func (c *Control) keepEnded(t *txn, r *record) {
	t.put(key(kindEnded, r.ID), r)
	at := r.Ended.Add(seconds(r.Lease.Retention))
	t.b.Put(key(kindExpiry, number(uint64(max(0, at.Unix()))), r.ID), nil)
	if r.Root != r.ID || c.index.hasTree(r.Root, r.ID) {
		t.b.Put(key(kindMember, r.Root, r.ID), nil)
	}
}

// hasTree reports whether others are in the tree of a root.
func (x *index) hasTree(root, id string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	m := x.trees[root]
	return len(m) > 1 || len(m) == 1 && !m[id]
}

// rereadBox makes memory what the store says.
func (c *Control) rereadBox(ctx context.Context, b *box) {
	raw, err := c.o.KV.Get(ctx, key(kindSandbox, b.id))
	if errs.Is(err, errs.NotFound) {
		if b.raw != nil {
			b.become(c, nil, nil)
		}
		return
	}
	r := new(record)
	if err != nil || decode(key(kindSandbox, b.id), raw, r) != nil {
		return
	}
	b.become(c, r, raw)
}
