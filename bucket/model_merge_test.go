package bucket

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"agentrun.dev"
	"agentrun.dev/errs"
	"pgregory.net/rapid"
)

func (m *machine) merge(t *rapid.T) {
	list := m.living(t)
	src := rapid.SampledFrom(list).Draw(t, "source")
	dst := rapid.SampledFrom(list).Draw(t, "target")
	if src.parent != nil && !src.parent.gone && rapid.Bool().Draw(t, "into its parent") {
		dst = src.parent
	}
	if src == dst {
		t.Skip("one bucket")
	}
	o := MergeOptions{Into: dst.name, DryRun: rapid.IntRange(0, 4).Draw(t, "dry") == 0,
		Conflicts: rapid.SampledFrom([]Strategy{Fail, Ours, Theirs}).Draw(t, "conflicts")}
	var res *MergeResult
	var err error
	if dst.parent == src && rapid.Bool().Draw(t, "rebase") {
		res, err = m.rig.s.Rebase(context.Background(), dst.name, o)
	} else {
		res, err = m.rig.s.Merge(context.Background(), src.name, o)
	}
	base, ok := commonBase(src, dst)
	if !ok {
		m.wantKind(t, err, errs.Conflict)
		if res != nil {
			t.Fatal("a result without a common base")
		}
		return
	}
	st := dst.now().clone()
	taken, conflicts := m.decide(base.st, src.now(), st, o.Conflicts)
	if len(conflicts) > 0 && o.Conflicts == Fail {
		m.wantKind(t, err, errs.Conflict)
	} else {
		m.must(t, err)
	}
	var got []string
	for _, c := range res.Conflicts {
		got = append(got, c.Key)
	}
	if !slices.Equal(got, conflicts) || res.Base != base.at {
		t.Fatalf("conflicts %q with base %d, want %q with %d", got, res.Base, conflicts, base.at)
	}
	count := map[ChangeKind]int{Added: res.Added, Modified: res.Modified, Deleted: res.Deleted, Metadata: res.Metadata}
	for k := range count {
		if n := len(slices.DeleteFunc(slices.Clone(taken), func(c mChange) bool { return c.kind != k })); n != count[k] {
			t.Fatalf("%d keys %s, want %d", count[k], k, n)
		}
	}
	if err != nil || o.DryRun {
		m.checkState(t, dst, 0, dst.now())
		return
	}
	for _, c := range taken {
		if n := src.now().cur[c.key]; n == nil {
			dst.remove(st, c.key, res.Version)
		} else {
			o := *n
			o.id, o.version = m.newID(), res.Version
			dst.put(st, c.key, o)
		}
	}
	r, err := m.rig.s.named(context.Background(), dst.name)
	m.must(t, err)
	dst.merges[src] = mBase{src.now(), agentrun.Version(r.record().merges[src.id].at)}
	m.rig.s.release(r)
	m.push(t, dst, m.version(t, dst), st)
}

type mChange struct {
	key  string
	kind ChangeKind
}

// changes is the difference between two states, by key.
func changes(a, b *mState) (list []mChange) {
	for k, x := range a.cur {
		switch y := b.cur[k]; {
		case y == nil:
			list = append(list, mChange{k, Deleted})
		case !bytes.Equal(x.body, y.body):
			list = append(list, mChange{k, Modified})
		case x.meta != y.meta:
			list = append(list, mChange{k, Metadata})
		}
	}
	for k := range b.cur {
		if a.cur[k] == nil {
			list = append(list, mChange{k, Added})
		}
	}
	slices.SortFunc(list, func(a, b mChange) int { return strings.Compare(a.key, b.key) })
	return list
}

func alike(a, b *mObject) bool {
	if a == nil || b == nil {
		return a == b
	}
	return bytes.Equal(a.body, b.body) && a.meta == b.meta
}

func (m *machine) decide(base, theirs, ours *mState, s Strategy) (taken []mChange, conflicts []string) {
	for _, c := range changes(base, theirs) {
		switch mine := ours.cur[c.key]; {
		case alike(mine, theirs.cur[c.key]):
		case alike(mine, base.cur[c.key]):
			taken = append(taken, c)
		default:
			conflicts = append(conflicts, c.key)
			if s == Theirs {
				taken = append(taken, c)
			}
		}
	}
	return taken, conflicts
}

// commonBase is the latest state that two buckets have in common, as the package defines it.
func commonBase(src, dst *mBucket) (base mBase, ok bool) {
	consider := func(b mBase) {
		if !ok || b.at > base.at {
			base, ok = b, true
		}
	}
	line := func(b *mBucket) map[*mBucket]mBase {
		cuts := map[*mBucket]mBase{}
		for ; b.parent != nil; b = b.parent {
			cuts[b.parent] = b.origin
		}
		return cuts
	}
	dstCuts := line(dst)
	if x, yes := dstCuts[src]; yes {
		consider(x)
	} else {
		for b := src; b.parent != nil; b = b.parent {
			x := b.origin
			if b.parent == dst {
				consider(x)
				break
			}
			if y, yes := dstCuts[b.parent]; yes {
				if y.at < x.at {
					x = y
				}
				consider(x)
				break
			}
		}
	}
	if x, yes := dst.merges[src]; yes {
		consider(x)
	}
	if x, yes := src.merges[dst]; yes {
		consider(x)
	}
	return base, ok
}
