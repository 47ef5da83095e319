package control

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// Times of nodes.
const (
	lostAfter = 15 * time.Second // without a sign of life
	pollEvery = 5 * time.Second  // what they have and use
)

// nodeRecord is what is kept of a node.
type nodeRecord struct {
	Name     string    `json:"name"`
	Address  string    `json:"address,omitempty"`
	Draining bool      `json:"draining,omitempty"`
	Local    bool      `json:"local,omitempty"`
	Seen     time.Time `json:"seen"`
}

// peer is a node that has joined.
type peer struct {
	name, address string
	host          node.Host
	local         bool
	building      *box // its turn: one image after another
	polling       atomic.Bool

	mu     sync.Mutex
	info   node.Info
	images map[string]bool
	heard  time.Duration // when it last gave a sign of life
	wall   time.Time     // the same, as recorded
	lost   bool
	ready  bool // it was reconciled since it joined, or came back
}

func (p *peer) holds(image string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.images[image]
}

func (p *peer) hold(image string, does bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if does {
		p.images[image] = true
	} else {
		delete(p.images, image)
	}
}

// up reports whether the node may be asked things.
func (p *peer) up() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.lost
}

// Join makes a node known, or known again, under its name; it is lost when it hasn't been heard of for a while, unless it is local.
func (c *Control) Join(ctx context.Context, name, address string, h node.Host, local bool) error {
	const op = "join"
	if err := checkName(op, "node", name); err != nil {
		return err
	}
	info, err := h.Info(ctx)
	if err != nil {
		return errs.New(errs.KindOf(err), op, name, err)
	}
	images, err := h.Images(ctx)
	if err != nil {
		return errs.New(errs.KindOf(err), op, name, err)
	}
	p := &peer{name: name, address: address, host: h, local: local, building: newBox(name), info: *info, images: map[string]bool{}, heard: c.clock.since(), wall: c.clock.now()}
	for _, i := range images {
		p.images[i] = true
	}
	err = again(func() error {
		was := c.nodes.get(name)
		next := &nodeRecord{Name: name, Address: address, Local: local, Seen: c.clock.now()}
		if was != nil {
			next.Draining = was.Draining
		}
		t := new(txn)
		c.nodes.set(c, t, name, was, next)
		t.event(api.Event{Kind: api.EventNode, Node: name, Text: "joined", Data: map[string]string{"state": "ready"}})
		return c.commit(ctx, t)
	})
	if err != nil {
		return err
	}
	c.peersMu.Lock()
	c.peers[name] = p
	c.peersMu.Unlock()
	if c.started() {
		c.reconcile(ctx, p)
	}
	c.kick()
	c.builds.kick()
	return nil
}

// Heartbeat says that a node that joined lives, and what it has.
func (c *Control) Heartbeat(ctx context.Context, name string, i node.Info) error {
	p := c.peer(name)
	if p == nil {
		return errs.Msg(errs.NotFound, "heartbeat", short(name), "no node of this name has joined")
	}
	c.heard(ctx, p, &i)
	return nil
}

// heard notes a sign of life. A node that was lost is compared with the records before it is used again.
func (c *Control) heard(ctx context.Context, p *peer, i *node.Info) {
	p.mu.Lock()
	p.heard, p.wall, p.info = c.clock.since(), c.clock.now(), *i
	back := p.lost
	p.lost = false
	if back {
		p.ready = false
	}
	p.mu.Unlock()
	if back {
		c.tellNode(ctx, p.name, "returned", "ready")
		c.reconcile(ctx, p)
		c.kick()
	}
}

func (c *Control) tellNode(ctx context.Context, name, text, state string) {
	t := new(txn)
	t.event(api.Event{Kind: api.EventNode, Node: name, Text: text, Data: map[string]string{"state": state}})
	if err := c.commit(ctx, t); err != nil {
		c.o.Log.Error("record a node's state", "node", name, "err", err)
	}
}

func (c *Control) peer(name string) *peer {
	c.peersMu.RLock()
	defer c.peersMu.RUnlock()
	return c.peers[name]
}

func (c *Control) allPeers() []*peer {
	c.peersMu.RLock()
	defer c.peersMu.RUnlock()
	return slices.SortedFunc(maps.Values(c.peers), func(a, b *peer) int { return cmp.Compare(a.name, b.name) })
}

// hostOf returns the node that has a sandbox; errs.Unavailable if it isn't there.
func (c *Control) hostOf(op string, r *record) (*peer, error) {
	p := c.peer(r.Node)
	if p == nil || !p.up() {
		return nil, errs.Msg(errs.Unavailable, op, r.ID, "its node, "+r.Node+", isn't there now")
	}
	return p, nil
}

// placing is what a sandbox needs.
type placing struct {
	image  string // "": none yet
	engine string
	needs  []engine.Feature
	count  int // of sandboxes; 0 is 1
	not    map[string]bool
	on     string // only there: the image can't be had elsewhere
}

// heldFactor is how much more room a node without the image must have to be taken.
const heldFactor = 3

// place chooses a node: one that holds the image before others, then the one with the most free memory for each that it has.
func (c *Control) place(n placing) (*peer, error) {
	const op = "place sandbox"
	var best *peer
	var bestScore float64
	full, name := false, cmp.Or(n.engine, api.Userspace)
	var why []string
	all := c.allPeers()
	for _, p := range all {
		rec := c.nodes.get(p.name)
		p.mu.Lock()
		info, held, up := p.info, p.images[n.image], !p.lost && p.ready
		p.mu.Unlock()
		if !up || rec == nil || rec.Draining && n.on == "" || n.not[p.name] || n.on != "" && n.on != p.name {
			continue
		}
		if w := unfit(&info, name, n.needs); w != "" {
			why = append(why, "node "+p.name+": "+w)
			continue
		}
		c.index.mu.RLock()
		placed := c.index.placed[p.name]
		c.index.mu.RUnlock()
		if info.Max > 0 && placed+max(1, n.count) > info.Max {
			full = true
			continue
		}
		// A node that has the image starts at once; another one must build it first, which pays when it has far more room.
		score := float64(info.Free) / float64(placed+1)
		if held || n.image == "" {
			score *= heldFactor
		}
		if best == nil || score > bestScore {
			best, bestScore = p, score
		}
	}
	switch {
	case best != nil:
		return best, nil
	case full:
		return nil, errs.Msg(errs.Limit, op, "", "every node has as many sandboxes as it may").WithHint("end those that aren't needed any more")
	case len(why) > 0:
		if len(why) > 3 {
			why = append(why[:3], "…")
		}
		err := errs.Msg(errs.Unsupported, op, name, "no node runs sandboxes of this engine as asked for: "+strings.Join(why, "; "))
		return nil, err.WithHint("'agentrun doctor', on a node's host, says what is missing there and how to get it")
	case len(all) == 0:
		return nil, errs.Msg(errs.Unavailable, op, "", "no node has joined")
	case n.on != "":
		return nil, errs.Msg(errs.Unavailable, op, n.on, "the node that has the snapshot's memory isn't there now")
	}
	return nil, errs.Msg(errs.Unavailable, op, "", "no node is ready")
}

// unfit says why a node can't run sandboxes of an engine with all that they need; "" if it can.
func unfit(i *node.Info, name string, needs []engine.Feature) string {
	why, ok := i.Engines[name]
	if !ok {
		return "it hasn't got it, but " + strings.Join(slices.Sorted(maps.Keys(i.Engines)), ", ")
	}
	for _, f := range needs {
		if why == "" && slices.Contains(i.Lacks[name], string(f)) {
			why = lacking(f)
		}
	}
	return why
}

// lacking words that an engine hasn't got a feature.
func lacking(f engine.Feature) string {
	switch f {
	case engine.Network:
		return "sandboxes of this engine have no network, and the template allows connections"
	case engine.Images:
		return "sandboxes of this engine aren't made of images"
	case engine.Roots:
		return "the root of a sandbox of this engine is its image, and no volume"
	case engine.Rates:
		return "this engine doesn't bound what disks and networks do in a time; microvm does"
	}
	return "this engine lacks " + string(f)
}

// needsOf is what a template asks of its engine that not every engine gives.
func needsOf(s *api.TemplateSpec) (needs []engine.Feature) {
	if userspaceEngine(s.Engine) {
		return nil
	}
	if s.Image != "" {
		needs = append(needs, engine.Images)
	}
	if s.Network.Egress == "allow" || len(s.Network.Allow) > 0 {
		needs = append(needs, engine.Network)
	}
	if slices.ContainsFunc(s.Volumes, func(v api.Volume) bool { return path.Clean(v.Path) == "/" }) {
		needs = append(needs, engine.Roots)
	}
	if rated(s.Resources) {
		needs = append(needs, engine.Rates)
	}
	return needs
}

func userspaceEngine(name string) bool { return name == "" || name == api.Userspace }

// servable refuses a template whose engine works on no node that is there, or can't give what it asks for.
func (c *Control) servable(op, name string, s *api.TemplateSpec) error {
	if userspaceEngine(s.Engine) {
		return nil
	}
	if _, err := c.place(placing{engine: s.Engine, needs: needsOf(s)}); errs.Is(err, errs.Unsupported) {
		return errs.New(errs.Unsupported, op, name, err).WithHint(errs.HintOf(err))
	}
	return nil // there may be a node later
}

// Nodes lists all nodes by name.
func (c *Control) Nodes(ctx context.Context, who *access.Caller, p Page) (*api.Nodes, error) {
	if err := c.allow(ctx, who, access.NodeGet, access.Thing{Kind: "node"}); err != nil {
		return nil, err
	}
	var names []string
	c.nodes.all(func(n string, _ *nodeRecord) bool {
		names = append(names, n)
		return true
	})
	slices.Sort(names)
	page, next, err := pageOf(p.full(), names, func(n string) string { return n })
	if err != nil {
		return nil, err
	}
	out := &api.Nodes{Nodes: []api.Node{}, Next: next}
	for _, n := range page {
		if v := c.shownNode(n); v != nil {
			out.Nodes = append(out.Nodes, *v)
		}
	}
	return out, nil
}

// Node describes a node.
func (c *Control) Node(ctx context.Context, who *access.Caller, name string) (*api.Node, error) {
	if err := c.allow(ctx, who, access.NodeGet, access.Thing{Kind: "node", ID: short(name)}); err != nil {
		return nil, err
	}
	if n := c.shownNode(name); n != nil {
		return n, nil
	}
	return nil, errs.Msg(errs.NotFound, "find node", short(name), "there is no node of this name")
}

func (c *Control) shownNode(name string) *api.Node {
	rec := c.nodes.get(name)
	if rec == nil {
		return nil
	}
	n := &api.Node{Name: name, State: "lost", Address: rec.Address, Seen: rec.Seen, Engines: map[string]string{}}
	c.index.mu.RLock()
	n.Sandboxes = c.index.placed[name]
	c.index.mu.RUnlock()
	p := c.peer(name)
	if p == nil {
		return n
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := &p.info
	n.Version, n.Capacity, n.CPUs, n.Memory, n.Free, n.Seen = i.Version, i.Max, i.CPUs, i.Memory, i.Free, p.wall
	maps.Copy(n.Engines, i.Engines)
	for image := range p.images {
		if snapshotOf(image) == "" {
			n.Templates = append(n.Templates, image)
		}
	}
	slices.Sort(n.Templates)
	if !p.lost {
		n.State = "ready"
		if rec.Draining {
			n.State = "draining"
		}
	}
	return n
}

// DrainNode keeps new sandboxes off a node, or undoes that: those that run there stay until they end; warm ones go.
func (c *Control) DrainNode(ctx context.Context, who *access.Caller, name string, drain bool) (*api.Node, error) {
	const op = "drain node"
	if err := c.allow(ctx, who, access.NodeChange, access.Thing{Kind: "node", ID: name}); err != nil {
		return nil, err
	}
	err := again(func() error {
		was := c.nodes.get(name)
		if was == nil {
			return errs.Msg(errs.NotFound, op, short(name), "there is no node of this name")
		}
		if was.Draining == drain {
			return nil
		}
		next := *was
		next.Draining = drain
		t := new(txn)
		c.nodes.set(c, t, name, was, &next)
		state := "ready"
		if drain {
			state = "draining"
		}
		t.event(api.Event{Kind: api.EventNode, Node: name, Text: state, Data: map[string]string{"state": state}})
		return c.commit(ctx, t)
	})
	if err != nil {
		return nil, err
	}
	c.kick()
	return c.shownNode(name), nil
}
