package mcp

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// Limits of subscriptions.
const (
	maxWatches = 64                     // of a conversation
	settle     = 100 * time.Millisecond // changes within it are one notification
	look       = 2 * time.Second        // between two looks at a sandbox that sleeps, or at a server that is gone
)

// watch is a subscription to a resource. While it watches, its sandbox is in use: it doesn't hibernate by itself.
type watch struct {
	cancel context.CancelFunc
	done   chan struct{}
	pause  context.CancelFunc // ends the request that watches, and not the subscription; guarded by conversation.mu
}

// subscribe implements mcp.ServerOptions.SubscribeHandler. When it returns, changes are told.
func (v *conversation) subscribe(ctx context.Context, req *mcp.SubscribeRequest) error {
	uri := req.Params.URI
	id, file, err := parseURI(uri)
	if err != nil {
		return failed(uri, err)
	}
	info, err := v.c.StatFile(ctx, id, file)
	if err != nil {
		return failed(uri, err)
	}
	w := &watch{done: make(chan struct{})}
	run, cancel := context.WithCancel(v.ctx)
	w.cancel = cancel
	v.mu.Lock()
	old := v.watches[uri]
	switch {
	case old != nil, v.ended, len(v.watches) >= maxWatches:
		v.mu.Unlock()
		cancel()
		if old != nil {
			return nil
		}
		return failed(uri, errs.Msg(errs.Limit, "subscribe", clipTo(uri, 200), fmt.Sprintf("there are %d subscriptions already", maxWatches)))
	}
	v.watches[uri] = w
	v.mu.Unlock()
	ready := make(chan error, 1)
	go func() {
		defer close(w.done)
		defer v.unwatch(uri, w)
		v.watch(run, w, uri, id, file, info.Type == "directory", ready)
	}()
	select {
	case err := <-ready:
		if err != nil {
			return failed(uri, err)
		}
		return nil
	case <-ctx.Done():
		cancel()
		return failed(uri, errs.New(errs.Canceled, "subscribe", uri, context.Cause(ctx)))
	}
}

// unsubscribe implements mcp.ServerOptions.UnsubscribeHandler.
func (v *conversation) unsubscribe(_ context.Context, req *mcp.UnsubscribeRequest) error {
	v.mu.Lock()
	w := v.watches[req.Params.URI]
	v.mu.Unlock()
	if w != nil {
		w.cancel()
		<-w.done
	}
	return nil
}

func (v *conversation) unwatch(uri string, w *watch) {
	w.cancel()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.watches[uri] == w {
		delete(v.watches, uri)
	}
}

// watch tells of changes until ctx ends, or the sandbox is no more. ready is told once how it began.
func (v *conversation) watch(ctx context.Context, w *watch, uri, id, file string, directory bool, ready chan<- error) {
	changed := make(chan struct{}, 1)
	told := make(chan struct{})
	go func() {
		defer close(told)
		v.tell(ctx, uri, changed)
	}()
	defer func() { <-told }()
	mark := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	// A file that is put into the place of another is another file: its directory is what is watched.
	at := path.Dir(file)
	if directory {
		at = file
	}
	for begun := false; ctx.Err() == nil; {
		now, pause := context.WithCancel(ctx)
		v.mu.Lock()
		w.pause = pause
		v.mu.Unlock()
		err := v.c.WatchFiles(now, id, at, directory, func(e *api.FileEvent) error {
			switch {
			case e.Kind == "ready":
				if begun {
					mark() // whatever happened meanwhile
				} else {
					begun = true
					ready <- nil
				}
			case e.Kind == "overflow", directory, same(e.Path, file), same(e.To, file):
				mark()
			}
			return nil
		})
		pause()
		if !begun {
			if err == nil {
				err = errs.Msg(errs.Unavailable, "watch", file, "it ended at once")
			}
			ready <- err
			break
		}
		if !v.awake(ctx, id) {
			mark()
			break
		}
	}
	close(changed)
}

// same reports whether an event is about a file. Paths of events are absolute, or as what is watched.
func same(of, file string) bool {
	return of != "" && path.Clean("/"+strings.TrimPrefix(of, "/")) == file
}

// tell sends a notification for each time that something changed, but not more often than settle.
func (v *conversation) tell(ctx context.Context, uri string, changed <-chan struct{}) {
	for range changed {
		select {
		case <-time.After(settle):
		case <-ctx.Done():
			continue
		}
		_ = v.server.ResourceUpdated(context.WithoutCancel(ctx), &mcp.ResourceUpdatedNotificationParams{URI: uri}) // a client that is gone hears nothing
	}
}

// hibernate has a sandbox hibernate, though the conversation may watch its files.
func (v *conversation) hibernate(ctx context.Context, id string) (*api.Sandbox, error) {
	v.mu.Lock()
	watched := len(v.watches) > 0 || v.ended
	for _, w := range v.watches {
		if w.pause != nil {
			w.pause()
		}
	}
	v.mu.Unlock()
	for end := time.Now().Add(3 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		sb, err := v.c.HibernateSandbox(ctx, id)
		if err == nil || !watched || errs.Is(err, errs.NotFound) || errs.Is(err, errs.Denied) || ctx.Err() != nil || time.Now().After(end) {
			return sb, err // what was watched is in use until the server has seen that it isn't
		}
	}
}

// awake waits until a sandbox runs, without waking it up. It returns false when there is none any more.
func (v *conversation) awake(ctx context.Context, id string) bool {
	for {
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return false
		}
		sb, err := v.c.Sandbox(ctx, id)
		switch {
		case errs.Is(err, errs.NotFound), errs.Is(err, errs.Denied), errs.Is(err, errs.Unauthorized):
			return false
		case err != nil: // the server is away
		case sb.State == api.StateEnded, sb.State == api.StateFailed, sb.State == api.StateEnding:
			return false
		case sb.State == api.StateRunning:
			return true
		}
	}
}
