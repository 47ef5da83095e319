package bucket

import (
	"context"
	"fmt"
	"testing"
)

// TestMergesForgotten: forks that are merged and deleted, one after another, leave nothing in their target's record.
func TestMergesForgotten(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, Options{History: -1})
	r.put(r.create("base"), "a", "0")
	for i := range 20 {
		name := fmt.Sprintf("fork-%d", i)
		f := r.fork("base", name)
		r.put(f, "a", fmt.Sprint(i+1))
		if _, err := r.s.Merge(ctx, name, MergeOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := r.s.Delete(ctx, name, DeleteOptions{Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	r.want(r.get("base", "a"), "20")
	rec, err := r.s.readRef(ctx, r.bucket("base").ID())
	if err != nil {
		t.Fatal(err)
	}
	if len(rec.merges) > 1 {
		t.Errorf("%d merges with deleted forks are remembered", len(rec.merges))
	}
	rep, err := r.s.Fsck(ctx, FsckOptions{Payload: true})
	if err != nil || len(rep.Problems) > 0 {
		t.Errorf("fsck: %v, %v", rep.Problems, err)
	}
}
