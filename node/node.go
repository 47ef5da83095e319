// Package node runs the sandboxes of one host: instances of an engine, with the volumes, the network and the say over
// their own world that each of them has.
//
// A Node makes sandboxes (Create), forks them while they run (Sandbox.Fork), puts them to sleep on disk (Sandbox.Hibernate)
// and wakes them (Resume). What a sandbox does to itself from inside, with `snapshot`, `fork` and `merge`, comes here too.
// A sandbox and the forks that it made of itself are a family: they may compare and merge each other's files, and end with
// the one that began. Forks made by Sandbox.Fork, on behalf of somebody outside, begin families of their own.
//
// Local is a node as control sees it (Host): sandboxes that are started from images, which Build makes of templates, wait warm until
// they are claimed, and are told of by id and epoch.
//
// Buckets made for a sandbox end with it. Those of a host that crashed are found by their attribute, and deleted by Sweep.
package node

import (
	"cmp"
	"context"
	"crypto/cipher"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"agentrun.dev/bucket"
	"agentrun.dev/command/services"
	"agentrun.dev/egress"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/volume"
)

// EndTimeout bounds the end of a sandbox that nobody waits for: its lease ran out, or the client left.
const EndTimeout = time.Minute

// Bounds of what a sandbox can make of itself.
const (
	DefaultMaxFamily = 100  // sandboxes, itself among them
	maxSnapshots     = 1000 // of its workspace
)

// Options describe a node.
type Options struct {
	Engine engine.Engine // userspace: of sandboxes that name none
	// Engines are others, by the names that Spec.Engine has for them. Missing tells, by name, why one doesn't work on this host.
	Engines  map[string]engine.Engine
	Missing  map[string]string
	Store    *bucket.Store  // nil: sandboxes have no buckets
	UID, GID uint32         // own what has no owner yet in volumes: the user of sandboxes
	Dir      string         // of this host, where sandboxes sleep and images are; empty: they can't, and images go with the process
	Seal     cipher.AEAD    // encrypts what is in Dir, with nonces of 12 bytes at least; nil: it is readable to whoever reads the disk
	Network  egress.Options // of all connections out of sandboxes
	Log      *slog.Logger   // nil: nothing is logged
	Max      int            // sandboxes at once; 0: as many as memory holds
	// MaxFamily bounds what forks itself from inside: a sandbox with all forks that it and they made; DefaultMaxFamily when 0.
	MaxFamily int
}

// Node runs sandboxes. All methods may be called concurrently.
type Node struct {
	o Options

	mu     sync.Mutex
	list   map[string]*Sandbox
	slept  map[string]nap // by id; nil until Dir was looked at
	broken bool           // something in Dir can't be read; for Sweep, which is alone
	coming int            // sandboxes that are being made
	closed bool
	ends   sync.WaitGroup // of sandboxes that end by themselves

	buffers sync.Pool // *[]byte of copyBuffer bytes, through which files come
}

// New returns a node without sandboxes. Whatever a former one left behind in the store is Sweep's to find.
func New(o Options) *Node {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxFamily <= 0 {
		o.MaxFamily = DefaultMaxFamily
	}
	return &Node{o: o, list: map[string]*Sandbox{}}
}

// Spec describes a sandbox.
type Spec struct {
	ID       string        `json:"id,omitempty"`     // 1–36 of a–z, 0–9 and '-'; a UUIDv7 when empty
	Name     string        `json:"name,omitempty"`   // for people
	Engine   string        `json:"engine,omitempty"` // "" is Options.Engine
	Image    string        `json:"image,omitempty"`  // what the root is made of, where the engine's roots are images
	Volumes  []volume.Spec `json:"volumes,omitempty"`
	Network  []string      `json:"network,omitempty"` // rules of what may be connected to, as package egress has them; none: nothing
	Env      []string      `json:"env,omitempty"`     // NAME=VALUE, of every command
	Dir      string        `json:"dir,omitempty"`     // where commands start; the engine's default when empty
	Hostname string        `json:"hostname,omitempty"`
	Limits   engine.Limits `json:"limits,omitzero"`
	Lease    time.Duration `json:"lease,omitempty"` // it is ended when nothing was done with it for so long; 0: never
}

// Create makes a sandbox. After an error nothing stays. errs.Invalid says what is wrong with the spec.
func (n *Node) Create(ctx context.Context, spec Spec) (*Sandbox, error) {
	if spec.ID == "" {
		spec.ID = newID()
	}
	if err := checkID(spec.ID); err != nil {
		return nil, err
	}
	e, err := n.engineOf("create sandbox", &spec)
	if err != nil {
		return nil, err
	}
	s, err := n.sandbox(spec, newFamily())
	if err != nil {
		return nil, err
	}
	if err := n.admit(1); err != nil {
		return nil, err
	}
	defer n.admitted(1)
	if s.volumes, err = volume.Open(ctx, volume.Options{Store: n.o.Store, Owner: s.id, UID: n.o.UID, GID: n.o.GID}, spec.Volumes); err != nil {
		return nil, err
	}
	s.in, err = e.Boot(ctx, engine.Spec{
		Identity: engine.Identity{ID: s.id, Hostname: spec.Hostname, Services: s.services()},
		Volumes:  s.volumes.Mounts(), Image: spec.Image, Env: spec.Env, Dir: spec.Dir, Limits: spec.Limits,
	})
	if err == nil {
		err = n.add(s)
	}
	if err != nil {
		return nil, errors.Join(err, s.drop(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// sandbox returns one that doesn't run yet.
func (n *Node) sandbox(spec Spec, f *family) (*Sandbox, error) {
	s := &Sandbox{n: n, id: spec.ID, spec: spec, family: f, created: time.Now(), ready: make(chan struct{}), done: make(chan struct{})}
	s.used.Store(s.created.UnixNano())
	if len(spec.Network) > 0 {
		policy, err := egress.Parse(spec.Network)
		if err != nil {
			return nil, err
		}
		s.dialer = egress.New(policy, n.o.Network)
	}
	return s, nil
}

// services is what the sandbox's commands may ask for.
func (s *Sandbox) services() *services.Services {
	out := new(services.Services)
	if !s.lacks(engine.Services) {
		out.Control = &control{s}
	}
	if s.dialer != nil && !s.lacks(engine.Network) {
		out.Dial = s.dialer.Dial
	}
	return out
}

// admit takes places for sandboxes that are about to be made.
func (n *Node) admit(count int) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return errs.Msg(errs.Unavailable, "create sandbox", "", "the node is shutting down")
	}
	if n.o.Max > 0 && len(n.list)+n.coming+count > n.o.Max {
		return errs.Msg(errs.Limit, "create sandbox", "", fmt.Sprintf("this node runs %d sandboxes at most", n.o.Max)).WithHint("end those that aren't needed any more")
	}
	n.coming += count
	return nil
}

func (n *Node) admitted(count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.coming -= count
}

// add makes a sandbox that runs known.
func (n *Node) add(s *Sandbox) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return errs.Msg(errs.Unavailable, "create sandbox", s.id, "the node is shutting down")
	}
	if _, ok := n.list[s.id]; ok {
		return errs.Msg(errs.Exists, "create sandbox", s.id, "there is a sandbox of this id")
	}
	n.list[s.id] = s
	s.family.add(s)
	if d := s.spec.Lease; d > 0 {
		n.ends.Add(1)
		go s.expire(d)
	}
	s.watchCPU()
	close(s.ready)
	return nil
}

// remove forgets a sandbox, and tells whether this call did.
func (n *Node) remove(s *Sandbox) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.list[s.id] != s {
		return false
	}
	delete(n.list, s.id)
	s.family.remove(s)
	close(s.done)
	return true
}

// Get returns a sandbox that runs, or errs.NotFound.
func (n *Node) Get(id string) (*Sandbox, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.list[id]; s != nil {
		return s, nil
	}
	return nil, errs.Msg(errs.NotFound, "find sandbox", id, "no sandbox of this id runs here")
}

// List returns the sandboxes that run, oldest first.
func (n *Node) List() []*Sandbox {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([]*Sandbox, 0, len(n.list))
	for _, s := range n.list {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *Sandbox) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.id, b.id))
	})
	return out
}

// Close ends all sandboxes, until ctx is done. No new ones can be made.
func (n *Node) Close(ctx context.Context) error {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	all := n.List()
	failed := make([]error, len(all))
	var wg sync.WaitGroup
	limit := make(chan struct{}, 16)
	for i, s := range all {
		limit <- struct{}{}
		wg.Go(func() {
			failed[i] = s.End(ctx)
			<-limit
		})
	}
	wg.Wait()
	n.ends.Wait()
	return errors.Join(failed...)
}

// newID returns a UUIDv7: those made later sort later.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// checkID lets ids through that names of buckets can be made of.
func checkID(id string) error {
	ok := len(id) <= 36 && id[0] != '-' && id[len(id)-1] != '-'
	for _, c := range []byte(id) {
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-')
	}
	if !ok {
		return errs.Msg(errs.Invalid, "create sandbox", id, "an id is 1 to 36 of a-z, 0-9 and '-', with no '-' at either end")
	}
	return nil
}
