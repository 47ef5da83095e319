package control

import (
	"context"
	"errors"
	"testing"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
	"agentrun.dev/kv/memory"
)

// TestOnce checks that a key's request is done once, and what else a key may meet.
func TestOnce(t *testing.T) {
	now := time.Unix(1e9, 0)
	c := &Control{o: Options{KV: memory.New()}, clock: newClock(func() time.Time { return now })}
	who := func(name string) *access.Caller { return &access.Caller{Principal: api.Principal{Name: name}} }
	done := 0
	do := func(context.Context) (*Answer, error) {
		done++
		return &Answer{Status: 201, Body: []byte("made")}, nil
	}
	once := func(name, key string, print byte, do func(context.Context) (*Answer, error)) (bool, error) {
		a, replayed, err := c.Once(t.Context(), who(name), key, [32]byte{print}, do)
		if err == nil && string(a.Body) != "made" {
			t.Errorf("answer %q", a.Body)
		}
		return replayed, err
	}
	for i, want := range []bool{false, true, true} {
		if replayed, err := once("a", "k", 1, do); err != nil || replayed != want || done != 1 {
			t.Errorf("time %d: replayed %v, %v, done %d times", i, replayed, err, done)
		}
	}
	if _, err := once("a", "k", 2, do); !errors.Is(err, ErrReused) {
		t.Errorf("another request: %v", err)
	}
	if replayed, err := once("b", "k", 2, do); err != nil || replayed {
		t.Errorf("another caller: %v", err)
	}
	fail := func(context.Context) (*Answer, error) { return nil, errs.Msg(errs.Limit, "make", "", "no") }
	if _, err := once("a", "f", 1, fail); !errs.Is(err, errs.Limit) {
		t.Errorf("a failure: %v", err)
	}
	if replayed, err := once("a", "f", 3, do); err != nil || replayed {
		t.Errorf("after a failure: %v", err)
	}
	if _, err := once("a", "twice", 1, func(context.Context) (*Answer, error) {
		if _, err := once("a", "twice", 1, do); !errs.Is(err, errs.Conflict) {
			t.Errorf("while it is done: %v", err)
		}
		return do(t.Context())
	}); err != nil {
		t.Error(err)
	}
	// The end of the server in the middle.
	func() {
		defer func() { recover() }()
		once("a", "cut", 1, func(context.Context) (*Answer, error) { panic("cut") })
	}()
	if _, err := once("a", "cut", 1, do); !errs.Is(err, errs.Conflict) {
		t.Errorf("cut off: %v", err)
	}
	for _, bad := range []string{"", string(make([]byte, MaxOnceKey+1))} {
		if _, err := once("a", bad, 1, do); !errs.Is(err, errs.Invalid) {
			t.Errorf("%d bytes: %v", len(bad), err)
		}
	}
	now = now.Add(OnceTime + time.Second)
	if replayed, err := once("a", "k", 2, do); err != nil || replayed {
		t.Errorf("after a day: %v", err)
	}
	if err := c.forgetOnces(t.Context()); err != nil {
		t.Fatal(err)
	}
	records := 0
	if err := c.o.KV.Scan(t.Context(), kv.Range{}, func(k, _ []byte) error { records++; return nil }); err != nil {
		t.Fatal(err)
	}
	if records != 2 {
		t.Errorf("%d records, want those of one key", records)
	}
	if replayed, err := once("a", "k", 2, do); err != nil || !replayed {
		t.Errorf("a key that was used anew: %v", err)
	}
}
