package s3

import (
	"context"
	"sync"

	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/serve/s3/fault"
)

// handles keep buckets by name, since finding one by name reads the disk. A name that was given to another bucket
// since can't be mistaken: a handle follows its bucket by id, and opening a view of a deleted one fails.
type handles struct {
	mu sync.RWMutex
	m  map[string]*bucket.Bucket
}

// maxHandles bounds the handles; beyond it they are all dropped.
const maxHandles = 10_000

// find returns a bucket and its present state; one that isn't there is a NoSuchBucket.
func (h *handles) find(ctx context.Context, store *bucket.Store, name string) (*bucket.Bucket, *bucket.View, error) {
	h.mu.RLock()
	b := h.m[name]
	h.mu.RUnlock()
	if b != nil {
		v, err := b.View(ctx)
		if !errs.Is(err, errs.NotFound) {
			return b, v, err
		}
		h.mu.Lock()
		if h.m[name] == b {
			delete(h.m, name)
		}
		h.mu.Unlock()
	}
	b, err := store.Bucket(ctx, name)
	if err == nil {
		var v *bucket.View
		if v, err = b.View(ctx); err == nil {
			h.keep(name, b)
			return b, v, nil
		}
	}
	if errs.Is(err, errs.NotFound) || errs.Is(err, errs.Invalid) {
		err = fault.NoSuchBucket.With("BucketName", name)
	}
	return nil, nil, err
}

func (h *handles) keep(name string, b *bucket.Bucket) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.m == nil || len(h.m) >= maxHandles {
		h.m = make(map[string]*bucket.Bucket)
	}
	h.m[name] = b
}
