// Package controltest is a node for tests: it has images and sandboxes in memory, keeps the promises of node.Host about ids and epochs,
// and fails, stalls, crashes and vanishes when it is told to.
package controltest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/node"
	"agentrun.dev/volume"
)

// Sandbox is one that the node has.
type Sandbox struct {
	ID, Image, Parent string
	Epoch             uint64
	Asleep, Claimed   bool
	Stubborn          bool
	Claim             node.Claim
	Claims            int               // how often it was given an identity
	Files             map[string]string // what is in its workspace
	Base              map[string]string // what was there when it was forked or started
	Volumes           []node.Mounted
	Started           time.Time
	CPU               time.Duration // of this epoch
	Used              time.Time
}

// Host is the node. Its zero value isn't usable; see New.
type Host struct {
	// Hook is called before (after is false) and after each request that changes something, with its name, such as "fork", and the id or
	// image. What it returns is the request's error; after the request, the error comes although it was done. It may block.
	Hook func(ctx context.Context, op, thing string, after bool) error
	// BuildLog is what a build writes.
	BuildLog string

	mu        sync.Mutex
	info      node.Info
	images    map[string]node.Build
	sandboxes map[string]*Sandbox
	gone      bool
	snapshots map[string]map[string]string
	captured  map[string]Sandbox // by image
	calls     map[string]int
}

var _ node.Host = (*Host)(nil)

// New returns a node with the userspace engine, with room for so many sandboxes; 0 is no bound.
func New(name string, most int) *Host {
	return &Host{images: map[string]node.Build{}, sandboxes: map[string]*Sandbox{}, snapshots: map[string]map[string]string{}, captured: map[string]Sandbox{}, calls: map[string]int{},
		info: node.Info{Name: name, Version: "test", Engines: map[string]string{api.Userspace: ""}, Max: most, CPUs: 2, Memory: 1 << 30, Free: 1 << 29}}
}

// Engine gives the node another engine: one that works (why is empty) and lacks features, or one that doesn't.
func (h *Host) Engine(name, why string, lacks ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.info.Engines, h.info.Lacks = maps.Clone(h.info.Engines), maps.Clone(h.info.Lacks)
	if h.info.Lacks == nil {
		h.info.Lacks = map[string][]string{}
	}
	h.info.Engines[name], h.info.Lacks[name] = why, lacks
}

// Built returns what an image was built of.
func (h *Host) Built(image string) (node.Build, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, ok := h.images[image]
	return b, ok
}

// Vanish makes the node unreachable, or brings it back with what it has.
func (h *Host) Vanish(gone bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone = gone
}

// Crash loses what a crash of the node's process loses: all that isn't asleep. Images stay.
func (h *Host) Crash() {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.sandboxes, func(_ string, s *Sandbox) bool { return !s.Asleep })
}

// Sandboxes returns copies of what the node has, by id.
func (h *Host) Sandboxes() map[string]Sandbox {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]Sandbox{}
	for id, s := range h.sandboxes {
		c := *s
		c.Files = maps.Clone(s.Files)
		out[id] = c
	}
	return out
}

// Calls tells how often a request was made.
func (h *Host) Calls(op string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[op]
}

// Change changes a sandbox from inside.
func (h *Host) Change(id string, f func(*Sandbox)) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sandboxes[id]
	if s != nil {
		f(s)
	}
	return s != nil
}

// Lose makes the node forget a sandbox.
func (h *Host) Lose(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sandboxes, id)
}

// Put gives the node a sandbox that nobody asked for.
func (h *Host) Put(s Sandbox) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sandboxes[s.ID] = &s
}

// do runs a request under the lock, with the hook around it.
func (h *Host) do(ctx context.Context, op, thing string, f func() error) error {
	if h.Hook != nil {
		if err := h.Hook(ctx, op, thing, false); err != nil {
			return err
		}
	}
	h.mu.Lock()
	h.calls[op]++
	err := error(nil)
	if h.gone {
		err = errs.Msg(errs.Unavailable, op, thing, "the node doesn't answer")
	} else {
		err = f()
	}
	h.mu.Unlock()
	if err == nil && h.Hook != nil {
		err = h.Hook(ctx, op, thing, true)
	}
	return err
}

// find returns a sandbox that is awake, or with asleep true, any.
func (h *Host) find(op, id string, asleep bool) (*Sandbox, error) {
	s := h.sandboxes[id]
	if s == nil {
		return nil, errs.Msg(errs.NotFound, op, id, "no such sandbox here")
	}
	if s.Asleep && !asleep {
		return nil, errs.Msg(errs.Conflict, op, id, "it is asleep")
	}
	return s, nil
}

// Info implements node.Host.
func (h *Host) Info(context.Context) (*node.Info, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone {
		return nil, errs.Msg(errs.Unavailable, "info", h.info.Name, "the node doesn't answer")
	}
	i := h.info
	i.Sandboxes = len(h.sandboxes)
	return &i, nil
}

// Build implements node.Host. An init line "fail" fails.
func (h *Host) Build(ctx context.Context, b node.Build, log io.Writer) error {
	return h.do(ctx, "build", b.Image, func() error {
		for _, line := range b.Init {
			fmt.Fprintln(log, "+ "+line)
			if line == "fail" {
				return errs.Msg(errs.Invalid, "build", b.Image, "the init line \"fail\" ended with status 1")
			}
		}
		_, _ = io.WriteString(log, h.BuildLog)
		h.images[b.Image] = b
		return nil
	})
}

// Images implements node.Host.
func (h *Host) Images(context.Context) ([]string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone {
		return nil, errs.Msg(errs.Unavailable, "images", h.info.Name, "the node doesn't answer")
	}
	return slices.Sorted(maps.Keys(h.images)), nil
}

// DropImage implements node.Host.
func (h *Host) DropImage(ctx context.Context, image string) error {
	return h.do(ctx, "drop", image, func() error {
		delete(h.images, image)
		delete(h.captured, image)
		return nil
	})
}

// Start implements node.Host.
func (h *Host) Start(ctx context.Context, s node.Start) (out *node.Running, err error) {
	err = h.do(ctx, "start", s.ID, func() error {
		b, ok := h.images[s.Image]
		if !ok {
			return errs.Msg(errs.NotFound, "start", s.Image, "no such image here")
		}
		if was := h.sandboxes[s.ID]; was != nil {
			if was.Epoch != s.Epoch || was.Asleep {
				return errs.Msg(errs.Conflict, "start", s.ID, "another epoch")
			}
			out = &node.Running{ID: s.ID, Volumes: was.Volumes}
			return nil
		}
		if h.info.Max > 0 && len(h.sandboxes) >= h.info.Max {
			return errs.Msg(errs.Limit, "start", s.ID, "the node is full")
		}
		n := &Sandbox{ID: s.ID, Image: s.Image, Epoch: s.Epoch, Files: map[string]string{}, Base: map[string]string{}, Started: time.Now()}
		if from, ok := h.captured[s.Image]; ok {
			n.Files, n.Base = maps.Clone(from.Files), maps.Clone(from.Files)
		}
		for _, v := range b.Spec.Volumes {
			n.Volumes = append(n.Volumes, mounted(s.ID, v))
		}
		if s.Claim != nil {
			n.Claimed, n.Claim, n.Claims = true, *s.Claim, 1
		}
		h.sandboxes[s.ID] = n
		out = &node.Running{ID: s.ID, Volumes: n.Volumes}
		return nil
	})
	return out, err
}

func mounted(id string, v volume.Spec) node.Mounted {
	m := node.Mounted{Spec: v, Bucket: v.Bucket}
	if v.Empty || v.Base != "" {
		m.Bucket = "sandbox-" + id + "-" + v.Name
	}
	return m
}

// Claim implements node.Host.
func (h *Host) Claim(ctx context.Context, id string, epoch uint64, c node.Claim) error {
	return h.do(ctx, "claim", id, func() error {
		s, err := h.find("claim", id, false)
		if err != nil {
			return err
		}
		if s.Epoch != epoch {
			return errs.Msg(errs.Conflict, "claim", id, "another epoch")
		}
		if !s.Claimed {
			s.Claimed, s.Claim = true, c
			s.Claims++
		}
		return nil
	})
}

// Fork implements node.Host.
func (h *Host) Fork(ctx context.Context, id string, f node.Fork) (out []*node.Running, err error) {
	err = h.do(ctx, "fork", id, func() error {
		s, err := h.find("fork", id, false)
		if err != nil {
			return err
		}
		if s.Epoch != f.Epoch {
			return errs.Msg(errs.Conflict, "fork", id, "another epoch")
		}
		for i, child := range f.IDs {
			c := f.Claims[min(i, len(f.Claims)-1)]
			n := &Sandbox{ID: child, Image: s.Image, Parent: id, Epoch: 1, Claimed: true, Claims: 1, Claim: c, Files: maps.Clone(s.Files), Base: maps.Clone(s.Files), Started: time.Now()}
			for _, v := range s.Volumes {
				n.Volumes = append(n.Volumes, mounted(child, v.Spec))
			}
			h.sandboxes[child] = n
			out = append(out, &node.Running{ID: child, Volumes: n.Volumes})
		}
		return nil
	})
	return out, err
}

// SetNetwork implements node.Host.
func (h *Host) SetNetwork(ctx context.Context, id string, epoch uint64, rules []string) error {
	return h.do(ctx, "network", id, func() error {
		s, err := h.find("set network", id, false)
		if err != nil {
			return err
		}
		if s.Epoch != epoch {
			return errs.Msg(errs.Conflict, "set network", id, "another epoch")
		}
		s.Claim.Network = rules
		return nil
	})
}

// Hibernate implements node.Host. One that is Stubborn can't be saved but by killing what runs.
func (h *Host) Hibernate(ctx context.Context, id string, kill bool) error {
	return h.do(ctx, "hibernate", id, func() error {
		s, err := h.find("hibernate", id, true)
		if err != nil {
			return err
		}
		if s.Stubborn && !kill {
			return errs.Msg(errs.Unavailable, "hibernate", id, "a process can't be copied")
		}
		s.Asleep, s.Claim = true, node.Claim{}
		return nil
	})
}

// Wake implements node.Host.
func (h *Host) Wake(ctx context.Context, id string, epoch uint64, c node.Claim) (out *node.Running, err error) {
	err = h.do(ctx, "wake", id, func() error {
		s, err := h.find("wake", id, true)
		if err != nil {
			return err
		}
		if epoch < s.Epoch || !s.Asleep && epoch != s.Epoch {
			return errs.Msg(errs.Conflict, "wake", id, "another epoch")
		}
		if s.Asleep {
			s.Asleep, s.Epoch, s.Claim, s.Claimed, s.CPU, s.Started = false, epoch, c, true, 0, time.Now()
		}
		out = &node.Running{ID: id, Volumes: s.Volumes}
		return nil
	})
	return out, err
}

// End implements node.Host.
func (h *Host) End(ctx context.Context, id string) error {
	return h.do(ctx, "end", id, func() error {
		delete(h.sandboxes, id)
		return nil
	})
}

// Status implements node.Host.
func (h *Host) Status(context.Context) ([]node.Status, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone {
		return nil, errs.Msg(errs.Unavailable, "status", h.info.Name, "the node doesn't answer")
	}
	var out []node.Status
	for _, s := range h.sandboxes {
		rules := ""
		if s.Claimed && !s.Asleep {
			rules = node.RulesID(s.Claim.Network)
		}
		out = append(out, node.Status{Rules: rules, ID: s.ID, Epoch: s.Epoch, Asleep: s.Asleep, Claimed: s.Claimed, Started: s.Started, Used: s.Used,
			Stats: engine.Stats{CPU: s.CPU, Memory: 1 << 20, Processes: 1}})
	}
	return out, nil
}

// Usage implements node.Host.
func (h *Host) Usage(ctx context.Context, id string) (n int64, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, err := h.find("usage", id, true)
	if err != nil {
		return 0, err
	}
	for _, v := range s.Files {
		n += int64(len(v))
	}
	return n, nil
}

// Exec implements node.Host: a command is "set FILE TEXT", "get FILE", "env" or "cpu DURATION".
func (h *Host) Exec(ctx context.Context, id string, c engine.Cmd) (engine.Process, error) {
	status := 0
	err := h.do(ctx, "exec", id, func() error {
		s, err := h.find("exec", id, false)
		if err != nil {
			return err
		}
		out := c.Stdout
		if out == nil {
			out = io.Discard
		}
		switch {
		case len(c.Args) == 3 && c.Args[0] == "set":
			s.Files[c.Args[1]] = c.Args[2]
		case len(c.Args) == 2 && c.Args[0] == "get":
			text, ok := s.Files[c.Args[1]]
			if !ok {
				status = 1
			}
			_, _ = io.WriteString(out, text)
		case len(c.Args) == 1 && c.Args[0] == "env":
			_, _ = io.WriteString(out, strings.Join(s.Claim.Env, "\n"))
		case len(c.Args) == 2 && c.Args[0] == "cpu":
			d, err := time.ParseDuration(c.Args[1])
			if err != nil {
				return err
			}
			s.CPU += d
			h.calls["cpu"]++
		default:
			status = 127
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return process(status), nil
}

type process int

func (process) Pid() int                            { return 1 }
func (p process) Wait(context.Context) (int, error) { return int(p), nil }
func (process) Signal(int) error                    { return nil }
func (process) Resize(engine.Size) error            { return nil }

// Code implements node.Host as a shell's text of words.
func (h *Host) Code(ctx context.Context, id string, c node.Code) (*node.CodeResult, error) {
	p, err := h.Exec(ctx, id, engine.Cmd{Args: strings.Fields(c.Text), Stdout: c.Stdout})
	if err != nil {
		return nil, err
	}
	return &node.CodeResult{Language: api.Shell, Status: int(p.(process))}, nil
}

// Processes implements node.Host.
func (h *Host) Processes(context.Context, string) ([]engine.Running, error) { return nil, nil }

// Signal implements node.Host.
func (h *Host) Signal(context.Context, string, int, int) error { return nil }

// Attach implements node.Host.
func (h *Host) Attach(_ context.Context, id string, pid int, _ engine.Cmd) (engine.Process, error) {
	return nil, errs.Msg(errs.NotFound, "attach", id, fmt.Sprintf("no command with the id %d", pid))
}

// Files implements node.Host.
func (h *Host) Files(_ context.Context, id string) (node.Files, error) {
	return nil, errs.Msg(errs.Unsupported, "files", id, "a node for tests has none")
}

// Dial implements node.Host.
func (h *Host) Dial(_ context.Context, id string, _ int) (net.Conn, error) {
	return nil, errs.Msg(errs.Unavailable, "dial", id, "nobody listens")
}

// Capture implements node.Host. An image that was captured holds the files of the sandbox.
func (h *Host) Capture(ctx context.Context, id string, c node.Capture) (out map[string]string, err error) {
	err = h.do(ctx, "capture", id, func() error {
		s, err := h.find("capture", id, false)
		if err != nil {
			return err
		}
		if was, ok := h.captured[c.Image]; ok && was.ID != id {
			return errs.Msg(errs.Exists, "capture", c.Image, "there is one of another sandbox")
		} else if !ok {
			b := h.images[s.Image]
			b.Image = c.Image
			h.images[c.Image] = b
			h.captured[c.Image] = Sandbox{ID: id, Files: maps.Clone(s.Files)}
		}
		out = s.buckets(c.Prefix)
		return nil
	})
	return out, err
}

// buckets are those that a snapshot makes.
func (s *Sandbox) buckets(prefix string) map[string]string {
	out := map[string]string{}
	for _, v := range s.Volumes {
		if v.Bucket != "" {
			out[v.Spec.Path] = prefix + "-" + v.Spec.Name
		}
	}
	return out
}

// Snapshot implements node.Host.
func (h *Host) Snapshot(ctx context.Context, id, prefix string) (out map[string]string, err error) {
	err = h.do(ctx, "snapshot", id, func() error {
		s, err := h.find("snapshot", id, true)
		if err != nil {
			return err
		}
		out = s.buckets(prefix)
		h.snapshots[prefix] = maps.Clone(s.Files)
		return nil
	})
	return out, err
}

// Diff implements node.Host.
func (h *Host) Diff(ctx context.Context, a, b string, _ []string, yield func(api.FileChange) error) error {
	var list []api.FileChange
	err := h.do(ctx, "diff", a, func() error {
		x, err := h.find("diff", a, false)
		if err != nil {
			return err
		}
		from, to := x.Base, x.Files
		if b != "" {
			y, err := h.find("diff", b, false)
			if err != nil {
				return err
			}
			from, to = x.Files, y.Files
		}
		for _, k := range slices.Sorted(maps.Keys(to)) {
			old, ok := from[k]
			switch {
			case !ok:
				list = append(list, api.FileChange{Path: k, Kind: "added", NewSize: int64(len(to[k]))})
			case old != to[k]:
				list = append(list, api.FileChange{Path: k, Kind: "modified", OldSize: int64(len(old)), NewSize: int64(len(to[k]))})
			}
		}
		for _, k := range slices.Sorted(maps.Keys(from)) {
			if _, ok := to[k]; !ok {
				list = append(list, api.FileChange{Path: k, Kind: "deleted", OldSize: int64(len(from[k]))})
			}
		}
		return nil
	})
	for _, f := range list {
		if err == nil {
			err = yield(f)
		}
	}
	return err
}

// Merge implements node.Host: what source changed since its base goes to target.
func (h *Host) Merge(ctx context.Context, source, target string, m api.MergeSandbox) (out *api.FileMerge, err error) {
	err = h.do(ctx, "merge", source, func() error {
		x, err := h.find("merge", source, false)
		if err != nil {
			return err
		}
		y, err := h.find("merge", target, false)
		if err != nil {
			return err
		}
		out = &api.FileMerge{Source: source, Target: target, DryRun: m.DryRun}
		todo := map[string]string{}
		for _, k := range slices.Sorted(maps.Keys(x.Files)) {
			v, base, theirs := x.Files[k], x.Base[k], y.Files[k]
			switch {
			case v == base || v == theirs:
				continue
			case theirs != base && m.Conflicts != api.Theirs:
				out.Conflicts = append(out.Conflicts, k)
				continue
			case theirs == "":
				out.Added++
			default:
				out.Modified++
			}
			todo[k] = v
		}
		if !m.DryRun && (m.Conflicts != api.Fail || len(out.Conflicts) == 0) {
			maps.Copy(y.Files, todo)
		}
		return nil
	})
	return out, err
}
