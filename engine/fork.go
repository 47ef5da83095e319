package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"agentrun.dev/errs"
	"agentrun.dev/volume"
)

// MaxForks bounds the children of one Fork.
const MaxForks = 1000

// Child is a fork: an instance, and its volumes, which whoever has the child closes after stopping it.
type Child struct {
	Instance Instance
	Volumes  *volume.Set
}

// Fork makes a child of a running instance for each identity, all of one instant. It is all or nothing. The parent stands
// still only until its state is captured.
func Fork(ctx context.Context, in Instance, volumes *volume.Set, ids []Identity, o FreezeOptions) (children []Child, err error) {
	if len(ids) == 0 || len(ids) > MaxForks {
		return nil, errs.Msg(errs.Limit, "fork", in.ID(), fmt.Sprintf("%d forks; there can be 1 to %d at once", len(ids), MaxForks))
	}
	image, cut, err := Capture(ctx, in, volumes, ids[0].ID+"-cut", o)
	if err != nil {
		return nil, err
	}
	children, err = StartAll(ctx, image, cut, ids)
	return children, errors.Join(err, image.Close(), cut.Close(context.WithoutCancel(ctx)))
}

// Capture makes an image and a cut of the same instant. cutID names the buckets that are made for the cut.
func Capture(ctx context.Context, in Instance, volumes *volume.Set, cutID string, o FreezeOptions) (image Image, cut *volume.Cut, err error) {
	return capture(ctx, in, func(ctx context.Context) (*volume.Cut, error) { return volumes.Cut(ctx, cutID) }, o)
}

// CaptureAll is Capture for an instance that goes on later, instead of forks of it, as volume.Set.CutAll has it.
func CaptureAll(ctx context.Context, in Instance, volumes *volume.Set, cutID string, o FreezeOptions) (image Image, cut *volume.Cut, err error) {
	return capture(ctx, in, func(ctx context.Context) (*volume.Cut, error) { return volumes.CutAll(ctx, cutID) }, o)
}

func capture(ctx context.Context, in Instance, cutting func(context.Context) (*volume.Cut, error), o FreezeOptions) (image Image, cut *volume.Cut, err error) {
	frozen, err := in.Freeze(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		err = errors.Join(err, frozen.Thaw())
		if err != nil {
			if cut != nil {
				err = errors.Join(err, cut.Close(context.WithoutCancel(ctx)))
			}
			if image != nil {
				err = errors.Join(err, image.Close())
			}
			image, cut = nil, nil
		}
	}()
	if cut, err = cutting(ctx); err != nil {
		return nil, nil, err
	}
	image, err = frozen.Capture(ctx)
	return image, cut, err
}

// StartAll starts an instance for each identity, each with volumes of its own. After an error none is left.
func StartAll(ctx context.Context, image Image, cut *volume.Cut, ids []Identity) ([]Child, error) {
	return StartEach(ctx, image, cut, ids, nil)
}

// StartEach is StartAll with other volumes in place of some of the cut's, by the number of the identity; nil: none.
func StartEach(ctx context.Context, image Image, cut *volume.Cut, ids []Identity, instead func(i int) []volume.Spec) ([]Child, error) {
	children := make([]Child, len(ids))
	failed := make([]error, len(ids))
	var wg sync.WaitGroup
	limit := make(chan struct{}, 8) // storage and processors have no use for more at once
	for i, id := range ids {
		wg.Add(1)
		limit <- struct{}{}
		go func() {
			defer func() { <-limit; wg.Done() }()
			var other []volume.Spec
			if instead != nil {
				other = instead(i)
			}
			children[i], failed[i] = Start(ctx, image, cut, id, other...)
		}()
	}
	wg.Wait()
	err := errors.Join(failed...)
	if err == nil {
		return children, nil
	}
	end := context.WithoutCancel(ctx)
	for i := range children {
		if failed[i] == nil {
			err = errors.Join(err, children[i].End(end))
		}
	}
	return nil, err
}

// Start starts one instance of an image, with volumes of its own: the cut's, some of them replaced.
func Start(ctx context.Context, image Image, cut *volume.Cut, id Identity, instead ...volume.Spec) (Child, error) {
	set, err := cut.ForkFor(ctx, volume.Options{Owner: id.ID, Labels: id.Labels, Adopt: id.Adopt}, instead...)
	if err != nil {
		return Child{}, err
	}
	in, err := image.Start(ctx, id, set.Mounts())
	if err != nil {
		return Child{}, errors.Join(err, set.Close(context.WithoutCancel(ctx)))
	}
	return Child{in, set}, nil
}

// End stops the child and lets go of its volumes.
func (c Child) End(ctx context.Context) error {
	return errors.Join(c.Instance.Stop(ctx), c.Volumes.Close(ctx))
}
