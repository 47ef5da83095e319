package bucket

import (
	"context"
	"encoding/binary"

	"agentrun.dev"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

func beUint(b []byte) uint64 { return binary.BigEndian.Uint64(b) }

// TakeSnapshot freezes a bucket's present state under a version. O(1); durable when it returns.
func (s *Store) TakeSnapshot(ctx context.Context, name string, o SnapshotOptions) (*Snapshot, error) {
	if len(o.Name) > 255 {
		return nil, errs.Msg(errs.TooLarge, "snapshot", name, "a snapshot's name has at most 255 bytes")
	}
	r, err := s.named(ctx, name)
	if err != nil {
		return nil, err
	}
	defer s.release(r)
	s.barrier.RLock()
	t, sn, v, err := s.takeSnapshot(ctx, r, o)
	s.barrier.RUnlock()
	if err != nil {
		return nil, err
	}
	if err := t.wait(); err != nil {
		return nil, err
	}
	s.folds.consider(r)
	return sn.public(v), nil
}

func (s *snapRecord) public(v uint64) *Snapshot {
	return &Snapshot{Version: agentrun.Version(v), Name: s.name, Created: s.created, Expires: s.expires, Objects: uint64(s.objects), Bytes: uint64(s.bytes)}
}

func (s *Store) takeSnapshot(ctx context.Context, r *ref, o SnapshotOptions) (*txn, *snapRecord, uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ready(); err != nil {
		return nil, nil, 0, err
	}
	t := &txn{refs: []*ref{r}}
	view, depth, err := r.cutView(ctx, t)
	if err != nil {
		return nil, nil, 0, err
	}
	v := s.clock.take(1)
	sn := &snapRecord{name: o.Name, created: agentrun.Version(v).Time(), expires: o.Expires, view: view, objects: r.tip.objects, bytes: r.tip.bytes}
	t.put(snapKey(r.id, v), sn.encode())
	t.put(viewEdge(view, holder(heldBySnap, r.id, be64(v))), present())
	t.stamp(v)
	if err := s.commits.enqueue(t); err != nil {
		return nil, nil, 0, err
	}
	r.newest = t
	r.cutDone(view)
	if depth > maxDepth {
		s.folds.view(view)
	}
	return t, sn, v, nil
}

// Snapshots returns a bucket's snapshots, oldest first.
func (s *Store) Snapshots(ctx context.Context, name string) ([]*Snapshot, error) {
	id, err := s.resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	now := s.clock.now()
	var list []*Snapshot
	err = s.kv.Scan(ctx, prefixRange(kvKey(kSnap, id[:])), func(k, v []byte) error {
		sn, err := decodeSnap(v)
		if err == nil && (sn.expires.IsZero() || sn.expires.After(now)) {
			list = append(list, sn.public(beUint(k[len(k)-8:])))
		}
		return err
	})
	return list, err
}

// DeleteSnapshot deletes a snapshot; its forks live on.
func (s *Store) DeleteSnapshot(ctx context.Context, name string, v agentrun.Version) error {
	id, err := s.resolve(ctx, name)
	if err != nil {
		return err
	}
	return s.deleteSnapshot(ctx, id, uint64(v))
}

func (s *Store) deleteSnapshot(ctx context.Context, id agentrun.RefID, v uint64) error {
	s.barrier.RLock()
	defer s.barrier.RUnlock()
	s.snapMu.Lock() // two deletions of one snapshot must not both find it
	defer s.snapMu.Unlock()
	b, err := s.kv.Get(ctx, snapKey(id, v))
	if errs.Is(err, errs.NotFound) {
		return notFound("snapshot", agentrun.Version(v).String(), "no such snapshot")
	}
	if err != nil {
		return err
	}
	sn, err := decodeSnap(b)
	if err != nil {
		return err
	}
	t := &txn{batch: kv.Batch{Reclaim: true}}
	t.del(snapKey(id, v))
	if err := s.dropEdges(t, sn.view, 0, holder(heldBySnap, id, be64(v))); err != nil {
		return err
	}
	if err := s.commits.commit(t); err != nil {
		return err
	}
	s.past.purge(id)
	s.ledger.poke()
	return nil
}
