package pebble

import (
	"bytes"
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// beyondAll is greater than every key: the end of a range without one.
var beyondAll = bytes.Repeat([]byte{0xff}, kv.MaxKey+1)

// Commit implements kv.Store. An errs.Unavailable leaves open whether the batch was stored: the store failed while it
// was being written, and what the next Open finds decides.
func (s *Store) Commit(ctx context.Context, b *kv.Batch) error {
	if err := s.begin(ctx, "commit"); err != nil {
		return err
	}
	defer s.ops.Done()
	if err := b.Validate(); err != nil {
		return err
	}
	changes := len(b.Ranges)+len(b.Deletes)+len(b.Puts) > 0
	if changes && !b.Reclaim {
		if err := s.space.admit(b.Size()); err != nil {
			return err
		}
		if cause := s.flushErr.Load(); cause != nil {
			return errs.New(errs.Unavailable, "commit", s.dir, fmt.Errorf("tables can't be written: %w", *cause))
		}
	}
	pb := s.db.NewBatchWithSize(b.Size() + 16*(len(b.Puts)+len(b.Deletes)+len(b.Ranges)) + 64)
	if err := fill(pb, b); err != nil {
		return errs.New(errs.Other, "commit", s.dir, err)
	}
	if err := s.apply(ctx, b, pb); err != nil {
		return err
	}
	if !b.Lazy {
		if err := pb.SyncWait(); err != nil {
			s.poison(fmt.Errorf("write-ahead log: %w", err))
		}
	}
	if err := s.failed("commit"); err != nil {
		return err // and leave pb to the collector: Pebble may hold it still
	}
	_ = pb.Close()
	return nil
}

// fill writes a batch in the order in which its parts apply.
func fill(pb *pebble.Batch, b *kv.Batch) error {
	for _, r := range b.Ranges {
		end := r.End
		if end == nil {
			end = beyondAll
		}
		if bytes.Compare(r.Start, end) >= 0 {
			continue
		}
		if err := pb.DeleteRange(r.Start, end, nil); err != nil {
			return err
		}
	}
	for _, k := range b.Deletes {
		if err := pb.Delete(k, nil); err != nil {
			return err
		}
	}
	for i := range b.Puts {
		if err := pb.Set(b.Puts[i].Key, b.Puts[i].Value, nil); err != nil {
			return err
		}
	}
	if pb.Empty() && !b.Lazy {
		// Nothing to store, but earlier lazy commits become durable with this one.
		return pb.LogData(nil, nil)
	}
	return nil
}

// apply checks the batch and gives it to the log and the memtable. It doesn't wait for the sync, so the next commit
// can join the same one.
//
// Pebble stalls a writer until a flush has made room. If the store dies meanwhile, no flush ever does; so the writer
// runs beside the call, which can leave it behind. It keeps its turn then, and with it everybody else out.
func (s *Store) apply(ctx context.Context, b *kv.Batch, pb *pebble.Batch) error {
	select {
	case s.turn <- struct{}{}:
	case <-s.dead:
		return s.failed("commit")
	case <-ctx.Done():
		return ctx.Err()
	}
	done := make(chan error, 1)
	go func() {
		err := s.applyInTurn(b, pb)
		<-s.turn
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-s.dead:
		return s.failed("commit")
	}
}

func (s *Store) applyInTurn(b *kv.Batch, pb *pebble.Batch) (err error) {
	defer s.recovered("commit", &err)
	if err := s.failed("commit"); err != nil {
		return err
	}
	for i := range b.Checks {
		if err := s.check(&b.Checks[i]); err != nil {
			return err
		}
	}
	switch {
	case !b.Lazy:
		err = s.db.ApplyNoSyncWait(pb, pebble.Sync)
	case !pb.Empty():
		err = s.db.Apply(pb, pebble.NoSync)
	}
	if err != nil {
		return errs.New(errs.Other, "commit", s.dir, err)
	}
	return s.failed("commit")
}

// check compares one key without copying its value.
func (s *Store) check(c *kv.Check) error {
	v, closer, err := s.db.Get(c.Key)
	switch {
	case err == pebble.ErrNotFound: //nolint:errorlint // Get returns it bare
		if !c.Holds(nil, false) {
			return c.Failed()
		}
		return nil
	case err != nil:
		return s.readError("commit", err)
	}
	holds := c.Holds(v, true)
	if err := s.closeRead("commit", closer); err != nil {
		return err
	}
	if !holds {
		return c.Failed()
	}
	return nil
}
