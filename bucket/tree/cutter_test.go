package tree

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"testing"
)

// TestSipHash checks against the vectors of the reference implementation: key 00 01 … 0f, input 00 01 … of each length.
func TestSipHash(t *testing.T) {
	in := make([]byte, 64)
	for i := range in {
		in[i] = byte(i)
	}
	for n, want := range map[int]string{0: "310e0edd47db6f72", 1: "fd67dc93c539f874", 7: "37d1018bf50002ab", 8: "6224939a79f5f593", 15: "e545be4961ca29a1"} {
		h := sipHash(0x0706050403020100, 0x0f0e0d0c0b0a0908, in[:n])
		var b [8]byte
		for i := range b {
			b[i] = byte(h >> (8 * i))
		}
		if got := hex.EncodeToString(b[:]); got != want {
			t.Errorf("%d bytes: %s, want %s", n, got, want)
		}
	}
}

// TestNodeSizes: nodes of every level keep to the bounds, near the target, whatever the keys look like.
func TestNodeSizes(t *testing.T) {
	for name, key := range map[string]func(i int) []byte{
		"paths":        path,
		"counters":     func(i int) []byte { return fmt.Appendf(nil, "%09d", i) },
		"binary":       func(i int) []byte { return []byte{byte(i >> 16), byte(i >> 8), byte(i)} },
		"long prefix":  func(i int) []byte { return fmt.Appendf(bytes.Repeat([]byte("x"), 900), "%09d", i) },
		"a run of one": func(i int) []byte { return bytes.Repeat([]byte{0}, i%MaxKey) },
	} {
		t.Run(name, func(t *testing.T) {
			n := 20_000
			if name == "a run of one" {
				n = MaxKey
			}
			s := newStore()
			tr := New(s, Options{})
			edits := make([]Edit, n)
			for i := range edits {
				edits[i] = Edit{Key: key(i), Value: make([]byte, 50)}
			}
			root := mustApply(t, tr, Root{}, edits, s)
			total, nodes := 0, 0
			err := tr.Walk(bg, root, func(id ID, n *Node) (bool, error) {
				size := 0
				for i := range n.Len() {
					size += int(entrySize(n.level, n.Key(i), n.Value(i)))
				}
				if size > 64<<10+MaxKey+MaxValue {
					t.Errorf("level %d: a node of %d bytes", n.level, size)
				}
				if n.level == 0 {
					total, nodes = total+size, nodes+1
				}
				return true, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if mean := total / nodes; mean < 12<<10 || mean > 20<<10 {
				t.Errorf("leaves have %d bytes in the mean", mean)
			}
		})
	}
}

// TestBoundariesAreSecret: who knows where one store ends its nodes knows nothing of another.
func TestBoundariesAreSecret(t *testing.T) {
	ends := func(key byte) map[string]bool {
		s := newStore()
		tr := New(s, Options{HashKey: [32]byte{key}})
		var edits []Edit
		for i := range 20_000 {
			edits = append(edits, Edit{Key: path(i), Value: make([]byte, 50)})
		}
		out := map[string]bool{}
		err := tr.Walk(bg, mustApply(t, tr, Root{}, edits, s), func(id ID, n *Node) (bool, error) {
			if n.level == 0 {
				out[string(n.last())] = true
			}
			return true, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	a, b := ends(1), ends(2)
	shared := 0
	for k := range a {
		if b[k] {
			shared++
		}
	}
	if len(a) < 50 || shared > len(a)/8 {
		t.Errorf("%d of %d boundaries are the same", shared, len(a))
	}
}

// TestGetAllocates nothing when its nodes are cached.
func TestGetAllocates(t *testing.T) {
	tr, _, root := bigTree(t, 20_000, 60, 0)
	key := path(777)
	if n := testing.AllocsPerRun(100, func() {
		if v, err := tr.Get(bg, root, key); err != nil || v == nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
