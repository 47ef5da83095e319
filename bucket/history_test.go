package bucket

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"agentrun.dev"
	"agentrun.dev/errs"
)

// timeRig is a rig whose clock the test moves.
type timeRig struct {
	*rig
	now atomic.Int64
}

func newTimeRig(t *testing.T, history time.Duration) *timeRig {
	t.Helper()
	r := &timeRig{}
	r.now.Store(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano())
	r.rig = newRig(t, Options{History: history, Now: func() time.Time { return time.Unix(0, r.now.Load()) }})
	return r
}

func (r *timeRig) pass(d time.Duration) { r.now.Add(int64(d)) }

func (r *timeRig) missing(at agentrun.Version) {
	r.t.Helper()
	v, err := r.s.View(context.Background(), "base", at)
	if err == nil {
		v.Close()
	}
	if !errs.Is(err, errs.NotFound) {
		r.t.Fatalf("a view of %d is %v", at, err)
	}
}

// TestHistoryWindow reads every version within the window, and none of those that ended before it.
func TestHistoryWindow(t *testing.T) {
	const each = 100_000
	r := newTimeRig(t, time.Hour)
	b := r.create("base")
	body := func(i int) string { return large(fmt.Sprintf("v%03d", i), each) }
	var at []agentrun.Version
	for i := range 12 { // one every ten minutes, each in a delta of its own
		at = append(at, r.put(b, "k", body(i)).Version)
		r.fold("base")
		r.pass(10 * time.Minute)
		r.gc()
		for j, v := range at {
			if age := time.Duration(i+1-j) * 10 * time.Minute; age < time.Hour {
				r.want(r.get(fmt.Sprintf("base@%d", v), "k"), body(j))
			} else if age > time.Hour {
				r.missing(v)
			}
		}
	}
	// What nobody can read takes no room: the present state is left, when all of the past is over.
	r.pass(3 * time.Hour)
	r.gc() // ends the past
	r.shrinks(int64(len(body(0))))
	for _, v := range at {
		r.missing(v)
	}
	r.want(r.get("base", "k"), body(11))
	r.reopen()
	r.want(r.get("base", "k"), body(11))
	sound(t, r.s)
	r.drop("base")
	empty(t, r.s)
}

// TestNoHistory keeps nothing of the past.
func TestNoHistory(t *testing.T) {
	r := newTimeRig(t, -1)
	b := r.create("base")
	first := r.put(b, "k", large("first", 200_000)).Version
	r.fold("base")
	r.pass(time.Second)
	last := large("last", 300_000)
	r.put(b, "k", last)
	r.fold("base")
	r.shrinks(int64(len(last)))
	r.missing(first)
	r.want(r.get("base", "k"), last)
}

// TestSnapshotExpiry lets one snapshot expire, with what only it holds, and keeps another.
func TestSnapshotExpiry(t *testing.T) {
	r := newTimeRig(t, -1)
	ctx := context.Background()
	b := r.create("base")
	bodies := []string{large("kept", 100_000), large("expires", 200_000), large("present", 300_000)}
	var at []agentrun.Version
	for i, body := range bodies {
		r.put(b, "k", body)
		r.fold("base")
		var o SnapshotOptions
		switch i {
		case 1:
			o.Expires = time.Unix(0, r.now.Load()).Add(10 * time.Minute)
		case 2:
			continue
		}
		sn, err := r.s.TakeSnapshot(ctx, "base", o)
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, sn.Version)
		r.pass(time.Second)
	}
	all := int64(len(bodies[0]) + len(bodies[1]) + len(bodies[2]))
	r.pass(9 * time.Minute)
	r.shrinks(all)
	for i, v := range at {
		r.want(r.get(fmt.Sprintf("base@%d", v), "k"), bodies[i])
	}
	if _, err := r.s.Fork(ctx, "base", "fork", ForkOptions{At: at[1]}); err != nil {
		t.Fatal(err)
	}
	fork := r.bucket("fork")
	r.pass(2 * time.Minute)
	r.gc()
	list, err := r.s.Snapshots(ctx, "base")
	if err != nil || len(list) != 1 || list[0].Version != at[0] {
		t.Fatalf("snapshots %v: %v", list, err)
	}
	r.missing(at[1])
	r.want(r.get("fork", "k"), bodies[1]) // a fork of it lives on
	r.put(fork, "own", large("own", 80_000))
	r.drop("fork")
	r.shrinks(all - int64(len(bodies[1])))
	r.pass(10_000 * time.Hour)
	r.gc()
	r.want(r.get(fmt.Sprintf("base@%d", at[0]), "k"), bodies[0])
	r.want(r.get("base", "k"), bodies[2])
	sound(t, r.s)
	r.drop("base")
	empty(t, r.s)
}
