package node

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/volume"
)

// Labels of buckets that were made for a sandbox of a Host: what has to be known of it should the node crash.
const (
	imageLabel = "agentrun.image"
	epochLabel = "agentrun.epoch"
)

// labels are those of the sandbox's buckets.
func (s *Sandbox) labels() map[string]string {
	if !s.hosted || s.image == "" {
		return nil
	}
	return map[string]string{imageLabel: s.image, epochLabel: strconv.FormatUint(s.epoch, 10)}
}

// crashed is a sandbox whose node crashed while it ran.
type crashed struct {
	image   string
	epoch   uint64
	volumes []volume.Spec
	buckets map[string]string // by path
	bases   map[string]string
}

// with adds a bucket. c may be nil.
func (c *crashed) with(i *bucket.Info) *crashed {
	if c == nil {
		c = &crashed{image: i.Attributes[imageLabel], buckets: map[string]string{}, bases: map[string]string{}}
		c.epoch, _ = strconv.ParseUint(i.Attributes[epochLabel], 10, 64)
	}
	var v volume.Spec
	if err := json.Unmarshal([]byte(i.Attributes[volume.Described]), &v); err == nil && v.Path != "" {
		c.volumes = append(c.volumes, v)
		c.buckets[v.Path] = i.Name
	}
	return c
}

// adoptBases takes the buckets that hold what crashed sandboxes began as from those that are to be deleted.
func (n *Node) adoptBases(ctx context.Context, names []string, lost map[string]*crashed) (rest []string, err error) {
	for _, name := range names {
		i, err := n.o.Store.Info(ctx, name)
		if errs.Is(err, errs.NotFound) {
			continue
		} else if err != nil {
			return nil, err
		}
		owner, path := i.Attributes[volume.Attribute], i.Attributes[baseOf]
		if path != "" && len(owner) > len(basesOf) {
			if c := lost[owner[:len(owner)-len(basesOf)]]; c != nil {
				c.bases[path] = name
				continue
			}
		}
		rest = append(rest, name)
	}
	return rest, nil
}

// recover starts a sandbox again whose node crashed: of its image, with its own durable volumes as they are.
func (l *local) recover(ctx context.Context, id string, epoch uint64, c *crashed, claim Claim) (*Sandbox, error) {
	s, err := l.start(ctx, Start{ID: id, Epoch: epoch, Image: c.image, Volumes: c.volumes, Claim: &claim}, c)
	if err != nil {
		return nil, err
	}
	l.n.mu.Lock()
	delete(l.n.slept, id)
	l.n.mu.Unlock()
	return s, nil
}

// forgetCrashed deletes what is left of one.
func (n *Node) forgetCrashed(ctx context.Context, id string, c *crashed) error {
	err := errors.Join(n.deleteBuckets(ctx, c.buckets), n.deleteBuckets(ctx, c.bases))
	if err != nil {
		return err
	}
	n.mu.Lock()
	delete(n.slept, id)
	n.mu.Unlock()
	return nil
}
