package access

import (
	"bytes"
	"context"
	"testing"

	"agentrun.dev/errs"
	"agentrun.dev/kv"
	"agentrun.dev/kv/memory"
)

// counting is a store that counts what is read from it.
type counting struct {
	kv.Store
	reads int
}

func (c *counting) Get(ctx context.Context, key []byte) ([]byte, error) {
	c.reads++
	return c.Store.Get(ctx, key)
}

func (c *counting) Scan(ctx context.Context, r kv.Range, f func(key, value []byte) error) error {
	c.reads++
	return c.Store.Scan(ctx, r, f)
}

func TestSealer(t *testing.T) {
	k := open(t, memory.New(), nil)
	s := k.Sealer()
	for _, plain := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte("secret"), 10_000)} {
		a, err := s.Seal("c/1", plain)
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Seal("c/1", plain)
		if err != nil || bytes.Equal(a, b) {
			t.Fatal("sealed twice to the same", err)
		}
		got, err := open(t, memory.New(), nil).Sealer().Open("c/1", a)
		if err != nil || !bytes.Equal(got, plain) {
			t.Fatal(err)
		}
		_, err = s.Open("c/2", a)
		wantKind(t, err, errs.Corrupt)
		_, err = k.own.Open("c/1", a)
		wantKind(t, err, errs.Corrupt)
		for i := 0; i < len(a) && i < 200; i++ {
			bad := bytes.Clone(a)
			bad[i] ^= 1
			if _, err := s.Open("c/1", bad); !errs.Is(err, errs.Corrupt) {
				t.Fatalf("byte %d changed: %v", i, err)
			}
			if _, err := s.Open("c/1", a[:i]); !errs.Is(err, errs.Corrupt) {
				t.Fatalf("cut to %d: %v", i, err)
			}
		}
	}
}
