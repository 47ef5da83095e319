package envd

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"agentrun.dev/access"
	"agentrun.dev/api"
	filesystempb "agentrun.dev/api/gen/e2b/filesystem"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// Limits of watchers. They look at their files when something was done to them here, when they are asked, and a stream's again and again;
// what was there only between two looks they don't see.
const (
	maxWatchers  = 64   // of a sandbox
	maxAll       = 1024 // of all
	maxWatched   = 100_000
	maxEvents    = 10_000 // that wait to be fetched
	watcherLife  = 15 * time.Minute
	lookFirst    = 100 * time.Millisecond
	lookLast     = 5 * time.Second
	lookShare    = 20 // a look may take one part in so many of the time
	nudgeTime    = 2 * time.Second
	nudgeableFor = 100 * time.Millisecond // a look that takes longer isn't done while somebody waits for something else
)

// watchers are those of all sandboxes.
type watchers struct {
	mu   sync.Mutex
	byID map[string]*watcher
}

// seen is what a look notes of a file.
type seen struct {
	kind     byte // the first of its type
	size     int64
	modified int64
	mode     uint32
	uid, gid uint32
}

// watcher is one of them.
type watcher struct {
	id, sandbox string
	path        string
	recursive   bool
	entries     bool
	files       node.Files
	news        chan struct{} // holds a value when there are events

	mu     sync.Mutex // also held during a look
	before map[string]seen
	events []*filesystempb.FilesystemEvent
	lost   bool // there were too many
	took   time.Duration
	asked  time.Time
}

// watch makes a watcher; drop forgets it.
func (h *Handler) watch(ctx context.Context, r connect.AnyRequest, name string, recursive, entries bool) (*watcher, error) {
	w, files, err := filesystem{h}.open(ctx, r, access.SandboxRead)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	p, err := w.path(name)
	if err != nil {
		return nil, err
	}
	if err := directory(ctx, files, p); err != nil {
		return nil, err
	}
	x := &watcher{id: "w" + rand.Text(), sandbox: w.Sandbox.ID, path: p, recursive: recursive, entries: entries, files: files,
		news: make(chan struct{}, 1), asked: time.Now()}
	if err := h.watchers.add(x); err != nil {
		return nil, err
	}
	if err := x.look(ctx); err != nil {
		h.watchers.drop(x)
		return nil, err
	}
	return x, nil
}

func (k *watchers) add(x *watcher) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := 0
	for id, o := range k.byID {
		if o.mu.TryLock() {
			old := time.Since(o.asked) > watcherLife
			o.mu.Unlock()
			if old {
				delete(k.byID, id)
				continue
			}
		}
		if o.sandbox == x.sandbox {
			n++
		}
	}
	if n >= maxWatchers || len(k.byID) >= maxAll {
		return errs.Msg(errs.Limit, "watch", x.path, "too many watchers: end those that aren't needed any more")
	}
	if k.byID == nil {
		k.byID = map[string]*watcher{}
	}
	k.byID[x.id] = x
	return nil
}

func (k *watchers) drop(x *watcher) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.byID, x.id)
}

// find returns a sandbox's watcher that a client asks.
func (k *watchers) find(sandbox, id string) (*watcher, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	x := k.byID[id]
	if x == nil || x.sandbox != sandbox {
		return nil, notFound(fmt.Sprintf("watcher with id %s not found", clip(id)))
	}
	return x, nil
}

// nudge has the watchers of changed paths look, so that they see every one of the changes that are made one after another.
func (k *watchers) nudge(ctx context.Context, sandbox string, paths ...string) {
	k.mu.Lock()
	var list []*watcher
	for _, x := range k.byID {
		if x.sandbox == sandbox && slices.ContainsFunc(paths, func(p string) bool { return beneath(x.path, p) || beneath(p, x.path) }) {
			list = append(list, x)
		}
	}
	k.mu.Unlock()
	if len(list) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), nudgeTime)
	defer cancel()
	for _, x := range list {
		if x.mu.TryLock() {
			quick := x.took <= nudgeableFor
			x.mu.Unlock()
			if quick {
				_ = x.look(ctx) // whoever asks looks again
			}
		}
	}
}

// look notes what is there, and what is different from before.
func (x *watcher) look(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	begun := time.Now()
	now, err := x.see(ctx)
	if err != nil {
		return err
	}
	if x.before != nil {
		list := changes(x.before, now)
		if len(x.events)+len(list) > maxEvents {
			list, x.lost = nil, true
		}
		if x.entries {
			if err := x.describe(ctx, list); err != nil {
				return err
			}
		}
		for _, e := range list {
			x.events = append(x.events, e.event(x.path))
		}
	}
	x.before, x.took = now, time.Since(begun)
	if len(x.events) > 0 || x.lost {
		select {
		case x.news <- struct{}{}:
		default:
		}
	}
	return nil
}

// system are the places whose files tell of the system.
var system = []string{"/proc", "/sys", "/dev"}

// see lists what there is. A directory that was removed has nothing in it, and may be made again.
func (x *watcher) see(ctx context.Context) (map[string]seen, error) {
	depth := 1
	if x.recursive {
		depth = maxDepth
	}
	skip := slices.DeleteFunc(slices.Clone(system), func(p string) bool { return beneath(p, x.path) })
	all := map[string]seen{}
	err := pages(ctx, x.files, x.path, depth, func(list []api.FileInfo) error {
		for i := range list {
			f := &list[i]
			if slices.ContainsFunc(skip, func(dir string) bool { return f.Path != dir && beneath(dir, f.Path) }) {
				continue
			}
			if len(all) >= maxWatched {
				return errs.Msg(errs.Limit, "watch", x.path, fmt.Sprintf("there are more than %d files", maxWatched))
			}
			s := seen{kind: f.Type[0], size: f.Size, modified: f.Modified.UnixNano(), mode: f.Mode, uid: f.UID, gid: f.GID}
			all[f.Path] = s
		}
		return nil
	})
	if errs.Is(err, errs.NotFound) || errs.Is(err, errs.Invalid) {
		if _, gone := x.files.Stat(ctx, "/"); gone != nil {
			return nil, gone // it is the sandbox
		}
		return all, nil
	}
	return all, err
}

// change is one that an event tells of.
type change struct {
	path  string
	kind  filesystempb.EventType
	entry *filesystempb.EntryInfo
}

func (c change) event(dir string) *filesystempb.FilesystemEvent {
	return &filesystempb.FilesystemEvent{Name: strings.TrimPrefix(strings.TrimPrefix(c.path, dir), "/"), Type: c.kind, Entry: c.entry}
}

// changes are the events between two looks: what is gone first, then what is new or different. They are those that a kernel
// would tell of: a file that is made has its owner changed and is written to, a rename ends one name and makes another.
func changes(before, after map[string]seen) []change {
	var gone, made []change
	fresh := map[seen]string{} // what is new, once; "" for several
	for p, s := range after {
		if _, ok := before[p]; !ok {
			if _, twice := fresh[s]; twice {
				p = ""
			}
			fresh[s] = p
		}
	}
	renamed := map[string]bool{}
	for p, s := range before {
		if _, ok := after[p]; ok {
			continue
		}
		kind := filesystempb.EventType_EVENT_TYPE_REMOVE
		if to := fresh[s]; to != "" && !renamed[to] {
			kind, renamed[to] = filesystempb.EventType_EVENT_TYPE_RENAME, true
		}
		gone = append(gone, change{path: p, kind: kind})
	}
	for p, s := range after {
		old, was := before[p]
		add := func(kinds ...filesystempb.EventType) {
			for _, k := range kinds {
				made = append(made, change{path: p, kind: k})
			}
		}
		wrote := s.kind == 'f' && (s.size != old.size || s.modified != old.modified)
		switch {
		case was && old.kind != s.kind:
			gone = append(gone, change{path: p, kind: filesystempb.EventType_EVENT_TYPE_REMOVE})
			add(filesystempb.EventType_EVENT_TYPE_CREATE)
		case renamed[p]:
			add(filesystempb.EventType_EVENT_TYPE_CREATE)
		case !was:
			add(filesystempb.EventType_EVENT_TYPE_CREATE, filesystempb.EventType_EVENT_TYPE_CHMOD)
			if s.kind == 'f' && s.size > 0 {
				add(filesystempb.EventType_EVENT_TYPE_WRITE)
			}
		default:
			if wrote {
				add(filesystempb.EventType_EVENT_TYPE_WRITE)
			}
			if old.mode != s.mode || old.uid != s.uid || old.gid != s.gid {
				add(filesystempb.EventType_EVENT_TYPE_CHMOD)
			}
		}
	}
	slices.SortStableFunc(gone, func(a, b change) int { return -cmp.Compare(a.path, b.path) }) // files before their directories
	slices.SortStableFunc(made, func(a, b change) int { return cmp.Compare(a.path, b.path) })
	return append(gone, made...)
}

// describe adds to events what their files are like. x.mu is held.
func (x *watcher) describe(ctx context.Context, list []change) error {
	found := map[string]*filesystempb.EntryInfo{}
	for i := range list {
		c := &list[i]
		if c.kind == filesystempb.EventType_EVENT_TYPE_REMOVE || c.kind == filesystempb.EventType_EVENT_TYPE_RENAME {
			continue
		}
		e, ok := found[c.path]
		if !ok {
			var err error
			if e, err = entry(ctx, x.files, c.path); err != nil && ctx.Err() != nil {
				return err
			}
			found[c.path] = e // nil: it is gone again
		}
		c.entry = e
	}
	return nil
}

// fetch takes the events.
func (x *watcher) fetch() ([]*filesystempb.FilesystemEvent, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	list, lost := x.events, x.lost
	x.events, x.lost, x.asked = nil, false, time.Now()
	if lost {
		return nil, errs.Msg(errs.Limit, "watch", x.path, "there were too many changes: look at the files")
	}
	return list, nil
}

// WatchDir implements the service.
func (f filesystem) WatchDir(ctx context.Context, r *connect.Request[filesystempb.WatchDirRequest], out *connect.ServerStream[filesystempb.WatchDirResponse]) error {
	give, err := f.h.stream()
	if err != nil {
		return err
	}
	defer give()
	x, err := f.h.watch(ctx, r, r.Msg.GetPath(), r.Msg.GetRecursive(), r.Msg.GetIncludeEntry())
	if err != nil {
		return f.h.wire(ctx, err)
	}
	defer f.h.watchers.drop(x)
	if err := out.Send(&filesystempb.WatchDirResponse{Event: &filesystempb.WatchDirResponse_Start{Start: &filesystempb.WatchDirResponse_StartEvent{}}}); err != nil {
		return err
	}
	interval := alive(r.Header())
	ping, again := time.NewTicker(interval), time.NewTimer(lookFirst)
	defer ping.Stop()
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return f.h.wire(ctx, errs.New(errs.Canceled, "watch", x.path, ctx.Err()))
		case <-ping.C:
			if err := out.Send(&filesystempb.WatchDirResponse{Event: &filesystempb.WatchDirResponse_Keepalive{Keepalive: &filesystempb.WatchDirResponse_KeepAlive{}}}); err != nil {
				return err
			}
		case <-again.C:
			if err := x.look(ctx); err != nil {
				return f.broken(ctx, err)
			}
			x.mu.Lock()
			again.Reset(min(max(x.took*lookShare, lookFirst), lookLast))
			x.mu.Unlock()
		case <-x.news:
			list, err := x.fetch()
			if err != nil {
				return f.h.wire(ctx, err)
			}
			for _, e := range list {
				if err := out.Send(&filesystempb.WatchDirResponse{Event: &filesystempb.WatchDirResponse_Filesystem{Filesystem: e}}); err != nil {
					return err
				}
				ping.Reset(interval)
			}
		}
	}
}

// broken ends a stream that can't look any more. Where the sandbox is gone, the connection is.
func (f filesystem) broken(ctx context.Context, err error) error {
	if ctx.Err() == nil && (errs.Is(err, errs.Unavailable) || errs.Is(err, errs.NotFound)) {
		panic(http.ErrAbortHandler)
	}
	return f.h.wire(ctx, err)
}

// CreateWatcher implements the service.
func (f filesystem) CreateWatcher(ctx context.Context, r *connect.Request[filesystempb.CreateWatcherRequest]) (*connect.Response[filesystempb.CreateWatcherResponse], error) {
	x, err := f.h.watch(ctx, r, r.Msg.GetPath(), r.Msg.GetRecursive(), r.Msg.GetIncludeEntry())
	if err != nil {
		return nil, f.h.wire(ctx, err)
	}
	return connect.NewResponse(&filesystempb.CreateWatcherResponse{WatcherId: x.id}), nil
}

// GetWatcherEvents implements the service.
func (f filesystem) GetWatcherEvents(ctx context.Context, r *connect.Request[filesystempb.GetWatcherEventsRequest]) (*connect.Response[filesystempb.GetWatcherEventsResponse], error) {
	w, files, err := f.open(ctx, r, access.SandboxRead)
	if err != nil {
		return nil, f.h.wire(ctx, err)
	}
	defer w.Close()
	out := &filesystempb.GetWatcherEventsResponse{}
	x, err := f.h.watchers.find(w.Sandbox.ID, r.Msg.GetWatcherId())
	if err == nil {
		x.mu.Lock()
		x.files = files // it may have slept, or moved, since
		x.mu.Unlock()
		err = x.look(ctx)
	}
	if err == nil {
		out.Events, err = x.fetch()
	}
	return answer(out, f.h.wire(ctx, err))
}

// RemoveWatcher implements the service.
func (f filesystem) RemoveWatcher(ctx context.Context, r *connect.Request[filesystempb.RemoveWatcherRequest]) (*connect.Response[filesystempb.RemoveWatcherResponse], error) {
	w, err := f.h.begin(ctx, r.Header(), access.SandboxRead)
	if err != nil {
		return nil, f.h.wire(ctx, err)
	}
	defer w.Close()
	x, err := f.h.watchers.find(w.Sandbox.ID, r.Msg.GetWatcherId())
	if err == nil {
		f.h.watchers.drop(x)
	}
	return answer(&filesystempb.RemoveWatcherResponse{}, f.h.wire(ctx, err))
}
