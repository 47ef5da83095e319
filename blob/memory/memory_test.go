package memory_test

import (
	"context"
	"testing"

	"agentrun.dev/blob"
	"agentrun.dev/blob/blobtest"
	"agentrun.dev/blob/memory"
	"agentrun.dev/errs"
)

func TestConformance(t *testing.T) {
	blobtest.Run(t, func(*testing.T) blob.Store { return memory.New(memory.Options{}) })
}

func TestLimit(t *testing.T) {
	s := memory.New(memory.Options{Limit: 1000})
	b, err := s.Create(context.Background(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Append(make([]byte, 900)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Append(make([]byte, 101)); !errs.Is(err, errs.NoSpace) || b.Size() != 900 {
		t.Fatalf("%v, size %d", err, b.Size())
	}
	if err := s.Remove(context.Background(), "a"); err != nil {
		t.Fatal(err)
	}
	c, err := s.Create(context.Background(), "c")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Append(make([]byte, 1000)); err != nil {
		t.Fatalf("room doesn't come back: %v", err)
	}
}
