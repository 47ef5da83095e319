package bucket

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"agentrun.dev"
	"agentrun.dev/blob/faulty"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// pick returns the first record of a kind.
func (r *rig) pick(kind byte, more ...byte) (k, v []byte) {
	r.t.Helper()
	err := r.kv.Scan(context.Background(), prefixRange(append(kvKey(kind), more...)), func(key, val []byte) error {
		k, v = append([]byte(nil), key...), append([]byte(nil), val...)
		return kv.Stop
	})
	if err != nil || k == nil {
		r.t.Fatalf("no record %c: %v", kind, err)
	}
	return k, v
}

func (r *rig) write(k, v []byte) {
	r.t.Helper()
	var b kv.Batch
	if b.Put(k, v); v == nil {
		b = kv.Batch{Deletes: [][]byte{k}}
	}
	if err := r.kv.Commit(context.Background(), &b); err != nil {
		r.t.Fatal(err)
	}
}

// recount changes the first count that isn't zero.
func (r *rig) recount(space byte, by int) {
	r.t.Helper()
	k, v := r.pick(kCount, space)
	c, err := decodeCounts(v)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range c {
		if c[i] != 0 {
			c[i] = uint32(int(c[i]) + by)
			break
		}
	}
	r.write(k, c.encode())
}

// damages are what is done to a closed store, and what Fsck calls it. lost data can't be mended.
var damages = []struct {
	name, kind string
	lost       bool
	do         func(*rig)
}{
	{"node count too high", "count", false, func(r *rig) { r.recount('n', 1) }},
	{"node count too low", "count", false, func(r *rig) { r.recount('n', -1) }},
	{"slot count too high", "count", false, func(r *rig) { r.recount('s', 1) }},
	{"slot count too low", "count", false, func(r *rig) { r.recount('s', -1) }},
	{"malformed counts", "corrupt", false, func(r *rig) { k, _ := r.pick(kCount, 'n'); r.write(k, []byte{formatVersion, 0xff}) }},
	{"missing view edge", "count", false, func(r *rig) { k, _ := r.pick(kViewEdge); r.write(k, nil) }},
	{"missing delta edge", "count", false, func(r *rig) { k, _ := r.pick(kDeltEdge); r.write(k, nil) }},
	{"edge to nothing", "leak", false, func(r *rig) { r.write(viewEdge(1<<40, holder(heldByRef, agentrun.RefID{1})), present()) }},
	{"leaked view", "leak", false, func(r *rig) { _, v := r.pick(kView); r.write(viewKey(1<<40), v) }},
	{"leaked node", "leak", false, func(r *rig) { _, v := r.pick(kNode); r.write(nodeKey(1<<40), v) }},
	{"leaked log", "leak", false, func(r *rig) { _, v := r.pick(kDelta); r.write(logKey(logLoc{delta: 1 << 40, seq: 1}), v) }},
	{"leaked slot", "leak", false, nil}, // made before the store is closed
	{"name leads nowhere", "missing", false, func(r *rig) { r.write(nameKey("ghost"), append(present(), make([]byte, 16)...)) }},
	{"missing node", "corrupt", true, func(r *rig) { k, _ := r.pick(kNode); r.write(k, nil) }},
	{"malformed node", "corrupt", true, func(r *rig) { k, v := r.pick(kNode); r.write(k, v[:len(v)/2]) }},
	{"damaged payload", "corrupt", true, func(r *rig) {
		for _, name := range faulty.Names(r.blobs, "seg-") {
			if err := faulty.Damage(r.blobs, name, 60_000, 0x10); err != nil {
				r.t.Fatal(err)
			}
		}
	}},
}

// TestFsckDamage damages a store in one way, and has it found and mended.
func TestFsckDamage(t *testing.T) {
	ctx := context.Background()
	body := large("payload", 200_000)
	for _, c := range damages {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Options{History: -1})
			b := r.create("base")
			r.put(b, "large", body)
			r.put(b, "small", "small")
			r.fold("base")
			r.put(b, "tip", "tip")
			sound(t, r.s)
			if c.do == nil {
				if _, err := r.s.segments.Put(ctx, []byte(strings.Repeat("x", 1000))); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.s.Close(); err != nil {
				t.Fatal(err)
			}
			if c.do != nil {
				c.do(r)
			}
			r.open()
			for _, repair := range []bool{false, true} {
				if c.lost && repair {
					break
				}
				rep, err := r.s.Fsck(ctx, FsckOptions{Payload: true, Repair: repair})
				if err != nil {
					t.Fatal(err)
				}
				found := false
				for _, p := range rep.Problems {
					found = found || p.Kind == c.kind && p.Repaired == repair
				}
				if !found {
					t.Fatalf("fsck found %+v, no %s", rep.Problems, c.kind)
				}
			}
			if c.lost {
				if err := r.readLarge(); !errs.Is(err, errs.Corrupt) {
					t.Fatalf("reading what is damaged: %v", err)
				}
				return
			}
			sound(t, r.s)
			r.want(r.get("base", "large"), body)
			r.want(r.get("base", "small"), "small")
			r.want(r.get("base", "tip"), "tip")
			r.drop("base")
			empty(t, r.s)
		})
	}
}

// readLarge reads an object whose bytes or record may be damaged.
func (r *rig) readLarge() error {
	ctx := context.Background()
	v, err := r.s.View(ctx, "base", 0)
	if err != nil {
		return err
	}
	defer v.Close()
	o, err := v.Get(ctx, "large")
	if err != nil {
		return err
	}
	rd, err := v.Open(ctx, o)
	if err != nil {
		return err
	}
	defer rd.Close()
	_, err = io.Copy(io.Discard, rd)
	return err
}

// TestFsckKeepsWhatMayBeHeld: while a record that leads to others can't be read, nothing that seems to be a leak is freed.
func TestFsckKeepsWhatMayBeHeld(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, Options{History: -1})
	b := r.create("base")
	for i := range 50 {
		r.put(b, fmt.Sprintf("k%02d", i), strings.Repeat("x", 3000))
	}
	live, err := r.s.named(ctx, "base")
	if err != nil {
		t.Fatal(err)
	}
	err = r.s.foldRef(ctx, live)
	r.s.release(live)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.s.GC(ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.s.Close(); err != nil {
		t.Fatal(err)
	}
	var view, good []byte
	err = r.kv.Scan(ctx, prefixRange(kvKey(kView)), func(k, v []byte) error {
		view, good = append([]byte(nil), k...), append([]byte(nil), v...)
		return kv.Stop
	})
	if err != nil || view == nil {
		t.Fatal("no view", err)
	}
	bad := append([]byte(nil), good...)
	bad[0] = 99
	put := func(v []byte) {
		var batch kv.Batch
		batch.Put(view, v)
		if err := r.kv.Commit(ctx, &batch); err != nil {
			t.Fatal(err)
		}
	}
	put(bad)
	r.open()
	rep, err := r.s.Fsck(ctx, FsckOptions{Repair: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Problems) == 0 || rep.Repaired != 0 {
		t.Fatalf("%d problems, %d repaired", len(rep.Problems), rep.Repaired)
	}
	if err := r.s.Close(); err != nil {
		t.Fatal(err)
	}
	put(good)
	r.open()
	r.want(r.get("base", "k07"), strings.Repeat("x", 3000))
	if rep, err = r.s.Fsck(ctx, FsckOptions{Payload: true}); err != nil {
		t.Fatal(err)
	}
	if len(rep.Problems) > 0 {
		t.Fatalf("after the record came back: %v", rep.Problems)
	}
}
