package bucket

import (
	"context"
	"io"
	"strings"
	"testing"
)

// TestReaderOutlivesBucket reads an object to its end after all that held it was deleted and collected.
func TestReaderOutlivesBucket(t *testing.T) {
	ctx := context.Background()
	body := large("outlives", 9<<20)
	for _, c := range []struct {
		name string
		ref  string
		del  func(*rig)
	}{
		{"bucket", "base", func(r *rig) { r.drop("base") }},
		{"object", "base", func(r *rig) { r.del(r.bucket("base"), "k"); r.fold("base") }},
		{"overwritten", "base", func(r *rig) { r.put(r.bucket("base"), "k", ""); r.fold("base") }},
		{"fork", "fork", func(r *rig) { r.drop("fork"); r.drop("base") }},
		{"snapshot", "base@snap", func(r *rig) {
			list, err := r.s.Snapshots(ctx, "base")
			if err != nil || len(list) != 1 {
				r.t.Fatal(list, err)
			}
			if err := r.s.DeleteSnapshot(ctx, "base", list[0].Version); err != nil {
				r.t.Fatal(err)
			}
			r.del(r.bucket("base"), "k")
			r.fold("base")
		}},
	} {
		for _, folded := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				r := newRig(t, Options{History: -1})
				r.put(r.create("base"), "k", body)
				if folded {
					r.fold("base")
				}
				switch c.name {
				case "fork":
					r.fork("base", "fork")
				case "snapshot":
					if _, err := r.s.TakeSnapshot(ctx, "base", SnapshotOptions{Name: "snap"}); err != nil {
						t.Fatal(err)
					}
				}
				name, at, err := r.s.Point(ctx, c.ref)
				if err != nil {
					t.Fatal(err)
				}
				v, err := r.s.View(ctx, name, at)
				if err != nil {
					t.Fatal(err)
				}
				o, err := v.Get(ctx, "k")
				if err != nil {
					t.Fatal(err)
				}
				rd, err := v.Open(ctx, o)
				if err != nil {
					t.Fatal(err)
				}
				v.Close()
				first := make([]byte, 1<<20)
				if _, err := io.ReadFull(rd, first); err != nil {
					t.Fatal(err)
				}
				c.del(r)
				r.s.past.drop(func(*pastEntry) bool { return true })
				for range 3 {
					r.gc()
				}
				var rest strings.Builder
				if _, err := rd.WriteTo(&rest); err != nil {
					t.Fatal(err)
				}
				r.want(string(first)+rest.String(), body)
				if _, err := rd.ReadAt(first, 5<<20); err != nil {
					t.Fatal(err)
				}
				r.want(string(first), body[5<<20:6<<20])
				if err := rd.Close(); err != nil {
					t.Fatal(err)
				}
				r.shrinks(0)
				sound(t, r.s)
			})
		}
	}
}
