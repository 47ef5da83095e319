package microvm

import (
	"context"
	"sync"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/guest/image"
)

// root is an image's filesystem on this host.
type root struct {
	ref    string
	file   string
	config image.Config
}

// rootsFor is how long a name of an image is believed to be of the same image.
const rootsFor = 10 * time.Minute

// roots knows which images names are of, so that not every Boot asks a registry.
type roots struct {
	mu    sync.Mutex
	known map[string]knownRoot
}

type knownRoot struct {
	root *root
	at   time.Time
}

// find returns the root of a name, which is pulled unless it is here. A registry that doesn't answer is done without, as far as possible.
func (r *roots) find(ctx context.Context, store *image.Store, ref string) (*root, error) {
	if ref == "" {
		return nil, errs.Msg(errs.Invalid, "boot", "", "no image is named, and there is no default")
	}
	r.mu.Lock()
	known, ok := r.known[ref]
	r.mu.Unlock()
	if ok && time.Since(known.at) < rootsFor {
		return known.root, nil
	}
	file, config, err := store.Root(ctx, ref)
	if err != nil {
		if ok && errs.Is(err, errs.Unavailable) {
			return known.root, nil
		}
		return nil, err
	}
	found := &root{ref: ref, file: file, config: config}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = make(map[string]knownRoot)
	}
	r.known[ref] = knownRoot{found, time.Now()}
	return found, nil
}

// held returns the root of a digest: the one that is here already, else what the name leads to, if it is of that digest still.
func (r *roots) held(ctx context.Context, store *image.Store, digest, ref string) (*root, error) {
	if file, config, err := store.Held(digest); err == nil {
		return &root{ref: ref, file: file, config: config}, nil
	} else if !errs.Is(err, errs.NotFound) {
		return nil, err
	}
	r.mu.Lock()
	if known, ok := r.known[ref]; ok && known.root.config.Digest != digest {
		known.at = time.Time{}
		r.known[ref] = known
	}
	r.mu.Unlock()
	found, err := r.find(ctx, store, ref)
	if err != nil {
		return nil, err
	}
	if found.config.Digest != digest {
		return nil, errs.Msg(errs.NotFound, "load image", ref, "its root was made of another image of that name, "+digest)
	}
	return found, nil
}
