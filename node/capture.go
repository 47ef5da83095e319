package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"time"

	"agentrun.dev/bucket"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/volume"
)

// Capture implements Host. The sandbox stands still until its memory and volumes are cut; that they are saved takes it nothing.
func (l *local) Capture(ctx context.Context, id string, c Capture) (map[string]string, error) {
	if err := checkImage(c.Image); err != nil {
		return nil, err
	}
	unlock, err := l.lock(ctx, "image "+c.Image)
	if err != nil {
		return nil, err
	}
	defer unlock()
	about, err := l.imageAbout(c.Image)
	switch {
	case err == nil && about.Captured == id:
		return about.Kept, nil
	case err == nil:
		return nil, errs.Msg(errs.Exists, "capture", c.Image, "there is an image of this name, of something else")
	case !errs.Is(err, errs.NotFound):
		return nil, err
	}
	im, err := l.shoot(ctx, id, c)
	if err != nil {
		return nil, err
	}
	if l.n.o.Dir == "" { // it is as durable as all of this node
		l.mu.Lock()
		defer l.mu.Unlock()
		l.images[c.Image] = im
		return maps.Clone(im.about.Kept), nil
	}
	end := context.WithoutCancel(ctx)
	if err := l.n.saveFolder(ctx, l.n.imageDir(c.Image), im.about, im.warm, im.disk); err != nil {
		return nil, errors.Join(err, im.drop(end), l.n.deleteBuckets(end, im.about.Kept))
	}
	l.log(c.Image, errors.Join(im.warm.Close(), im.disk.Close(end)))
	return im.about.Kept, nil
}

// shoot captures a sandbox into an image that isn't saved yet, and forks the buckets that stay.
func (l *local) shoot(ctx context.Context, id string, c Capture) (*image, error) {
	unlock, err := l.lock(ctx, id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s, err := l.hosted(id)
	if err != nil {
		return nil, err
	}
	s.Touch()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.living(); err != nil {
		return nil, err
	}
	hash := sha256.Sum256([]byte(c.Image + "\n" + newID()))
	about := savedImage{Format: formatOf(&s.spec), Build: Build{Image: c.Image, Spec: s.spec}, Cut: "image-" + hex.EncodeToString(hash[:8]), Built: time.Now().UTC(),
		Captured: id, Base: s.image, Mounted: slices.Clone(s.mounted), Kept: map[string]string{}}
	about.Build.Spec.ID, about.Build.Spec.Name, about.Build.Spec.Network, about.Build.Spec.Volumes = "", "", nil, nil
	// What is shared with forks isn't with what comes of a snapshot: that has what there was.
	about.Policies = map[string]volume.Policy{}
	var cuts []volume.Spec
	for _, v := range s.volumes.Specs() {
		if v.Bucket != "" || v.Host != "" {
			continue
		}
		cuts = append(cuts, v)
		if v.Policy == volume.Share {
			about.Policies[v.Path] = v.Policy
		}
	}
	own := map[string]volume.Policy{}
	for path := range about.Policies {
		own[path] = volume.Snapshot
	}
	s.volumes.SetPolicies(own)
	short, cancel := context.WithTimeout(ctx, s.freezeTimeout())
	defer cancel()
	warm, cut, err := s.captureAll(short, about.Cut, engine.FreezeOptions{Kill: c.Kill})
	s.volumes.SetPolicies(about.Policies)
	if err != nil {
		return nil, err
	}
	im := &image{name: c.Image, about: about, warm: warm, cut: cut, disk: cut}
	for _, v := range cuts {
		from := cut.Bucket(v.Path)
		if from == "" {
			continue
		}
		name := c.Prefix + "-" + v.Name
		if err = bucket.CheckName(name); err == nil {
			_, err = l.n.o.Store.Fork(ctx, from, name, bucket.ForkOptions{Attributes: map[string]string{}})
		}
		if err != nil {
			end := context.WithoutCancel(ctx)
			return nil, errors.Join(err, im.drop(end), l.n.deleteBuckets(end, about.Kept))
		}
		about.Kept[v.Path] = name
	}
	return im, nil
}

// without adds what stands in place of volumes that the claim of the sandbox which the image is of brought, where nothing else does: who
// starts it now needn't be who had claimed that.
func (im *image) without(instead []volume.Spec) []volume.Spec {
	have := im.cut.Specs()
	for _, path := range im.about.Mounted {
		i := slices.IndexFunc(have, func(v volume.Spec) bool { return v.Path == path })
		if i < 0 || slices.ContainsFunc(instead, func(v volume.Spec) bool { return v.Path == path }) {
			continue
		}
		instead = append(instead, volume.Spec{Name: have[i].Name, Path: path, Root: true})
	}
	return instead
}
