package bucket

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"agentrun.dev"
	"agentrun.dev/errs"
)

// A script is a list of steps, each one call that must happen whole or not at all. Crash and fault tests run it and
// compare what a store shows with what it showed after each step of an undisturbed run.

type step1 struct {
	name string
	do   func(*run) error
}

// run is a script on one store, with what it must remember from step to step.
type run struct {
	s       *Store
	uploads map[string]string
	last    agentrun.Version // the greatest version that a step returned
}

func newRun(s *Store) *run { return &run{s: s, uploads: map[string]string{}} }

func (r *run) apply(bucket string, ops ...Op) error {
	ctx := context.Background()
	defer func() {
		for i := range ops {
			ops[i].Payload.Discard()
		}
	}()
	b, err := r.s.Bucket(ctx, bucket)
	if err != nil {
		return err
	}
	res, err := b.Apply(ctx, ops, ApplyOptions{})
	for _, o := range res {
		if o != nil {
			r.last = max(r.last, o.Version)
		}
	}
	return err
}

func (r *run) payload(size int, seed byte) (*Payload, error) {
	return r.s.Stage(context.Background(), bytes.NewReader(bytes.Repeat([]byte{seed, seed + 1, seed ^ 0x55}, size/3+1)[:size]), int64(size))
}

func put(bucket, key string, size int, seed byte) step1 {
	return step1{fmt.Sprintf("put %s/%s %d", bucket, key, size), func(r *run) error {
		p, err := r.payload(size, seed)
		if err != nil {
			return err
		}
		return r.apply(bucket, Op{Kind: OpPut, Key: key, Payload: p})
	}}
}

// several is a batch that must not be torn: it puts, deletes, renames and writes.
func several(bucket string, size int, seed byte) step1 {
	return step1{"several in " + bucket, func(r *run) error {
		var ps [3]*Payload
		for i := range ps {
			var err error
			if ps[i], err = r.payload(size*i+1, seed); err != nil {
				for _, p := range ps[:i] {
					p.Discard()
				}
				return err
			}
		}
		return r.apply(bucket, Op{Kind: OpPut, Key: "s/1", Payload: ps[0]}, Op{Kind: OpPut, Key: "s/2", Payload: ps[1]}, Op{Kind: OpDelete, Key: "a"},
			Op{Kind: OpWrite, Key: "w", Offset: int64(seed) * 50, Payload: ps[2]}, Op{Kind: OpRename, Key: "s/1", To: "s/3"})
	}}
}

func call(name string, f func(ctx context.Context, s *Store) error) step1 {
	return step1{name, func(r *run) error { return f(context.Background(), r.s) }}
}

func create(name string, v Versioning) step1 {
	return call("create "+name, func(ctx context.Context, s *Store) error {
		_, err := s.Create(ctx, name, CreateOptions{Versioning: v})
		return err
	})
}

func fork(base, name string) step1 {
	return call("fork "+base+" "+name, func(ctx context.Context, s *Store) error {
		_, err := s.Fork(ctx, base, name, ForkOptions{})
		return err
	})
}

func drop(name string) step1 {
	return call("delete "+name, func(ctx context.Context, s *Store) error { return s.Delete(ctx, name, DeleteOptions{Force: true}) })
}

func snap1(name string) step1 {
	return call("snapshot "+name, func(ctx context.Context, s *Store) error {
		_, err := s.TakeSnapshot(ctx, name, SnapshotOptions{})
		return err
	})
}

func unsnap(name string) step1 {
	return call("delete a snapshot of "+name, func(ctx context.Context, s *Store) error {
		list, err := s.Snapshots(ctx, name)
		if err != nil || len(list) == 0 {
			return err
		}
		return s.DeleteSnapshot(ctx, name, list[0].Version)
	})
}

func merge1(src, dst string) step1 {
	return call("merge "+src+" "+dst, func(ctx context.Context, s *Store) error {
		_, err := s.Merge(ctx, src, MergeOptions{Into: dst, Conflicts: Theirs})
		return err
	})
}

func foldNow(name string) step1 {
	return call("fold "+name, func(ctx context.Context, s *Store) error {
		r, err := s.named(ctx, name)
		if err != nil {
			return err
		}
		defer s.release(r)
		return s.foldRef(ctx, r)
	})
}

func gcNow() step1 {
	return call("gc", func(ctx context.Context, s *Store) error {
		_, err := s.GC(ctx)
		return err
	})
}

func op1(bucket string, op Op) step1 {
	return step1{fmt.Sprintf("%d of %s in %s", op.Kind, op.Key, bucket), func(r *run) error { return r.apply(bucket, op) }}
}

// upload is three steps of a multipart upload.
func upload(bucket, key string, size int, seed byte) []step1 {
	ctx := context.Background()
	with := func(name string, f func(*run, *Bucket) error) step1 {
		return step1{name + " " + bucket + "/" + key, func(r *run) error {
			b, err := r.s.Bucket(ctx, bucket)
			if err != nil {
				return err
			}
			return f(r, b)
		}}
	}
	return []step1{with("begin", func(r *run, b *Bucket) error {
		u, err := b.CreateUpload(ctx, key, nil)
		if err == nil {
			r.uploads[bucket+key] = u.ID
		}
		return err
	}), with("part", func(r *run, b *Bucket) error {
		p, err := r.payload(size, seed)
		if err != nil {
			return err
		}
		defer p.Discard()
		_, err = b.PutPart(ctx, key, r.uploads[bucket+key], 1, p, nil)
		return err
	}), with("complete", func(r *run, b *Bucket) error {
		_, err := b.Complete(ctx, key, r.uploads[bucket+key], []CompletePart{{Number: 1}}, nil, nil)
		return err
	})}
}

// theScript touches everything once or twice.
func theScript() []step1 {
	list := []step1{create("one", Unversioned), put("one", "a", 10, 1), put("one", "b", 5000, 2), put("one", "c", 100_000, 3), snap1("one"),
		fork("one", "two"), several("two", 30_000, 4), foldNow("two"), put("one", "a", 20, 5), several("one", 40_000, 6), fork("two", "three")}
	list = append(list, upload("three", "m", 70_000, 7)...)
	list = append(list, op1("three", Op{Kind: OpRenameDir, Key: "s/", To: "t/"}), foldNow("one"), merge1("two", "one"), foldNow("three"),
		op1("two", Op{Kind: OpTruncate, Key: "c", Offset: 70_000}), create("vers", Versioned), put("vers", "k", 3000, 8), put("vers", "k", 90_000, 9),
		op1("vers", Op{Kind: OpDelete, Key: "k"}), foldNow("vers"), unsnap("one"), drop("two"), gcNow(), op1("one", Op{Kind: OpDeletePrefix, Key: "s/"}),
		drop("three"), foldNow("one"), gcNow(), put("one", "z", 80_000, 10))
	return list
}

// randomScript is steps drawn from a seed. Many of them come to nothing, such as the merge of two strangers.
func randomScript(seed uint64, n int) (list []step1) {
	rng := rand.New(rand.NewPCG(seed, 1))
	names := []string{"one", "two", "three"}
	keys := []string{"a", "b", "s/1", "s/3", "w"}
	list = append(list, create("one", Versioning(rng.IntN(2))), put("one", "a", 3000, 1))
	for len(list) < n {
		b, c, k := names[rng.IntN(3)], names[rng.IntN(3)], keys[rng.IntN(5)]
		size := []int{1, 400, 5000, 70_000}[rng.IntN(4)]
		s := byte(len(list))
		switch rng.IntN(14) {
		case 0, 1, 2:
			list = append(list, put(b, k, size, s))
		case 3, 4:
			list = append(list, several(b, size, s))
		case 5, 6:
			list = append(list, fork(b, c))
		case 7:
			list = append(list, drop(b))
		case 8:
			list = append(list, merge1(b, c))
		case 9:
			list = append(list, foldNow(b))
		case 10:
			list = append(list, snap1(b))
		case 11:
			list = append(list, gcNow(), unsnap(b))
		case 12:
			list = append(list, op1(b, Op{Kind: OpDelete, Key: k}), op1(b, Op{Kind: OpLink, Key: "w", To: k}))
		case 13:
			list = append(list, upload(b, k, size, s)...)
		}
	}
	return list
}

// harmless reports whether an error of a random step says only that there was nothing to do.
func harmless(err error) bool {
	switch errs.KindOf(err) {
	case errs.NotFound, errs.Exists, errs.Conflict, errs.Invalid, errs.NotEmpty:
		return err != nil
	}
	return false
}

// dump describes all that a store shows: buckets, their snapshots, and every version and part of everything in them.
func dump(s *Store) (string, error) {
	ctx := context.Background()
	var out strings.Builder
	err := s.List(ctx, func(i *Info) error {
		b := &Bucket{s, i.ID, i.Name}
		fmt.Fprintf(&out, "%s %d %d\n", i.Name, i.Objects, i.Bytes)
		snaps, err := s.Snapshots(ctx, i.Name)
		if err != nil {
			return err
		}
		ups, err := b.Uploads(ctx, "")
		if err != nil {
			return err
		}
		for _, u := range ups {
			parts, err := b.Parts(ctx, u.Key, u.ID)
			if err != nil {
				return err
			}
			fmt.Fprintf(&out, " upload %s, %d parts\n", u.Key, len(parts))
		}
		at := []agentrun.Version{0}
		for _, sn := range snaps {
			at = append(at, sn.Version)
		}
		for n, a := range at {
			if err := dumpView(ctx, s, i.Name, a, n, &out); err != nil {
				return err
			}
		}
		return nil
	})
	return out.String(), err
}

func dumpView(ctx context.Context, s *Store, name string, at agentrun.Version, n int, out io.Writer) error {
	v, err := s.View(ctx, name, at)
	if err != nil {
		return err
	}
	defer v.Close()
	fmt.Fprintf(out, " view %d: %d objects, %d bytes\n", n, v.Info().Objects, v.Info().Bytes)
	return v.Versions(ctx, "", "", 0, func(o *Object) error {
		h := md5.New()
		if !o.Marker {
			rd, err := v.Open(ctx, o)
			if err != nil {
				return fmt.Errorf("%s/%s: %w", name, o.Key, err)
			}
			_, err = io.Copy(h, rd)
			if err = errors.Join(err, rd.Close()); err != nil {
				return fmt.Errorf("%s/%s: %w", name, o.Key, err)
			}
		}
		fmt.Fprintf(out, "  %q %d %v %v %x\n", o.Key, o.Size, o.Marker, o.Latest, h.Sum(nil))
		return nil
	})
}
