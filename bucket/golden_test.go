package bucket

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentrun.dev"
	"agentrun.dev/bucket/segment"
	"agentrun.dev/bucket/tree"
)

var update = flag.Bool("update", false, "write the golden file anew: only with a new format version")

// TestFormat holds every stored record, and its key, to the bytes that format 1 has. A change here is a change of the
// format: it needs a version, a way to read the old one, and docs/format.md.
func TestFormat(t *testing.T) {
	at := time.Unix(1_700_000_000, 123).UTC()
	id := agentrun.RefID{1, 2, 3, 15: 16}
	oid := ObjectID{7, 8}
	loc := logLoc{5, 6, 7}
	full := &Object{ID: oid, Version: 99, Null: true, Size: 10, Modified: at, ETag: "0123456789abcdef0123456789abcdef-2",
		Headers: map[string]string{"Content-Type": "text/plain"}, Meta: map[string]string{"k": "v"}, Tags: map[string]string{"t": "u"},
		Checksum: []Checksum{{"CRC32", "AAAAAA==", true}}, Parts: []Part{{Number: 1, Size: 10, ETag: "e", Modified: at}},
		Posix: &Posix{Mode: 0o100644, UID: 1, GID: 2, Access: 3, Change: 4, Rdev: 5, Link: "l", Links: 2, Xattrs: map[string][]byte{"user.a": {1}}},
		data:  content{extents: []extent{{1, 2, 3, 10}}}}
	small := &Object{ID: oid, Version: 1, Size: 2, Modified: at, ETag: strings.Repeat("ab", 16), data: content{inline: []byte("hi")}}
	ref := &refRecord{id: id, name: "base", created: at, space: 1, view: 2, delta: 3, since: 4, versioning: Versioned, snapshots: true,
		attrs: map[string]string{"a": "b"}, origin: &originRecord{ref: id, name: "old", view: 5, at: 6, time: at},
		merges: map[agentrun.RefID]mergeRecord{id: {7, 8}}}
	view := func(v *viewRecord) []byte {
		b, err := v.encode()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	dir := &Dir{ID: oid, Modified: at, Posix: Posix{Mode: 0o40755}}
	var out strings.Builder
	line := func(name string, b []byte) { fmt.Fprintf(&out, "%s\t%s\n", name, hex.EncodeToString(b)) }
	line("object", encodeObject(full, nil))
	line("object spilled", encodeObject(full, &extent{9, 8, 7, 6}))
	line("object inline", encodeObject(small, nil))
	line("object marker", encodeObject(&Object{ID: oid, Version: 3, Marker: true, Modified: at}, nil))
	line("object logged", encodeObject(&Object{ID: oid, Version: 3, Size: 600, data: content{logged: true}}, nil))
	line("object spread", encodeObject(&Object{ID: oid, Version: 3, Size: 1 << 40, data: content{spread: true}}, nil))
	line("extent", encodeExtent(extent{1, 2, 3, 4}))
	line("directory", encodeDir(dir))
	line("names", encodeNames([]string{"a", "b"}))
	line("ref", ref.encode())
	line("view of a tree", view(&viewRecord{root: tree.Root{ID: 1, Hash: tree.Hash{2}, Level: 1, Count: 3, Bytes: 4}, objects: 3, bytes: 4}))
	line("view of a delta", view(&viewRecord{parent: 1, delta: 2, bound: 3, depth: 4, objects: 5, bytes: 6}))
	line("snapshot", (&snapRecord{name: "n", created: at, expires: at, view: 1, objects: 2, bytes: 3}).encode())
	line("history", (&histRecord{1, 2, 3}).encode())
	line("log put", (&logRecord{op: logPut, key: "ok", val: []byte{1, 2}, payload: []byte("pp"), objects: 1, bytes: -2}).encode())
	line("log delete", (&logRecord{op: logDelete, key: "ok", objects: -1}).encode())
	line("log range", (&logRecord{op: logRange, key: "oa", end: "ob"}).encode())
	line("event", event{kind: gainSlots, a: 1, b: 2, slots: []segment.Ref{{Segment: 3, Slot: 4}}}.encode())
	line("counts", counts{1, 0, 300, 0}.encode())
	line("upload", (&uploadRecord{key: "k", initiated: at, meta: []byte{1}, finished: at, version: 2, digest: []byte{3}}).encode())
	line("part", (&partRecord{part: Part{Number: 1, Size: 2, ETag: "e", Modified: at}, extents: []extent{{1, 2, 3, 4}}}).encode())
	for _, k := range []struct {
		name string
		key  []byte
	}{{"ref", refKey(id)}, {"name", nameKey("base")}, {"view", viewKey(1)}, {"node", nodeKey(1)}, {"child", childKey(id, id)}, {"snapshot", snapKey(id, 2)},
		{"history", histKey(id, 2)}, {"edge", viewEdge(1, holder(heldByRef, id))}, {"delta edge", deltaEdge(1, viewHolder(2))}, {"log", logKey(loc)},
		{"packed", packedKey(loc)}, {"upload", uploadKey(id, "u")}, {"part", partKey(id, "u", 1)}, {"event", event{kind: loseNode}.key(1)},
		{"node counts", group{0, 1}.key()}, {"slot counts", group{2, 1}.key()}, {"object", []byte(objectKey("a"))},
		{"version", []byte(versionKey("a\x00b", 1))}, {"extent", []byte(extentKey(oid, 4096))}, {"links", []byte(linkKey(oid))}} {
		line("key of "+k.name, k.key)
	}
	const file = "testdata/format-1.txt"
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != out.String() {
		t.Errorf("what is stored has changed; got\n%s", out.String())
	}
	// And back again.
	back, spilled, err := decodeObject("", encodeObject(full, nil))
	if err != nil || spilled != nil || !reflect.DeepEqual(back, full) {
		t.Errorf("object: %+v, %v", back, err)
	}
	if r, err := decodeRef(ref.encode()); err != nil || !reflect.DeepEqual(r, ref) {
		t.Errorf("ref: %+v, %v", r, err)
	}
}

// FuzzRecords: whatever stands in a record, reading it gives an error at worst.
func FuzzRecords(f *testing.F) {
	b, err := os.ReadFile("testdata/format-1.txt")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		_, text, _ := strings.Cut(strings.TrimSpace(line), "\t")
		raw, err := hex.DecodeString(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(_ *testing.T, b []byte) {
		if o, _, err := decodeObject("k", b); err == nil {
			_ = encodeObject(o, nil)
		}
		_, _ = decodeExtent(b)
		_, _ = decodeDir("d/", b)
		_, _ = decodeNames(b)
		_, _ = decodeRef(b)
		_, _ = decodeView(b)
		_, _ = decodeSnap(b)
		_, _ = decodeHist(b)
		_, _ = decodeLog(b)
		_, _ = decodeEvent(b)
		_, _ = decodeCounts(b)
		_, _ = decodeUpload(b)
		_, _ = decodePart(b)
		_, _, _ = splitVersionKey(string(b))
	})
}
