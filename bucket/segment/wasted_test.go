package segment

import (
	"bytes"
	"context"
	"testing"

	"agentrun.dev/blob/memory"
)

// TestCompactOpen: what was freed in a segment that is still being appended to is given back, too.
func TestCompactOpen(t *testing.T) {
	ctx := context.Background()
	blobs := memory.New(memory.Options{})
	s, err := Open(ctx, blobs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var refs []Ref
	for i := range 10 {
		r, err := s.Put(ctx, bytes.Repeat([]byte{byte(i)}, 1<<20))
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, r)
	}
	if err := s.Free(ctx, refs[:9]); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Compact(ctx, 0.3); err != nil {
		t.Fatal(err)
	}
	list, err := s.Segments(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var stored int64
	for _, g := range list {
		stored += g.Stored
	}
	if stored > 2<<20 {
		t.Fatalf("%d bytes are stored for 1 MiB", stored)
	}
	p := make([]byte, 1<<20)
	if _, err := s.ReadAt(ctx, refs[9], p, 0); err != nil || p[0] != 9 {
		t.Fatalf("the slot that was kept: %v, first byte %d", err, p[0])
	}
	if err := s.Free(ctx, refs[9:]); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Compact(ctx, 0.3); err != nil {
		t.Fatal(err)
	}
	if list, err = s.Segments(ctx); err != nil || len(list) > 0 {
		t.Fatalf("%d segments are left, %v", len(list), err)
	}
}
