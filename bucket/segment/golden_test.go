package segment

import (
	"encoding/hex"
	"flag"
	"os"
	"strings"
	"testing"

	"agentrun.dev/blob/memory"
)

var update = flag.Bool("update", false, "write the golden segment anew")

const goldenFile = "testdata/segment-v1.hex"

// goldenSegment writes a small segment and a log as version 1 has them, with a fixed salt.
func goldenSegment() []byte {
	h := head{id: 0x11, gen: 2, salt: 0x0123456789abcdef}
	p := h.encode()
	entries := []entry{}
	for slot, text := range []string{"hello", "", "", strings.Repeat("segment ", 20)} {
		if slot == 1 {
			entries = append(entries, entry{}) // dropped as garbage
			continue
		}
		if slot == 2 {
			entries = append(entries, torn)
			continue
		}
		e := entry{uint32(alignUp(int64(len(p)), 8)), uint32(len(text))}
		p = append(p, make([]byte, int(e.off)-len(p))...)
		meta := make([]byte, metaSize(int64(len(text))))
		blockCRCs(meta[metaLen:], []byte(text))
		putMeta(meta, h, uint32(slot), e.size)
		p = append(append(p, meta...), text...)
		entries = append(entries, e)
	}
	at := alignUp(int64(len(p)), 8)
	p = append(p, make([]byte, int(at)-len(p))...)
	return append(p, encodeFooter(h, at, entries)...)
}

// TestGolden pins the format: what version 1 has written must stay readable, and be written the same.
func TestGolden(t *testing.T) {
	if *update {
		text := hex.EncodeToString(goldenSegment())
		var lines strings.Builder
		for len(text) > 64 {
			lines.WriteString(text[:64] + "\n")
			text = text[64:]
		}
		if err := os.WriteFile(goldenFile, []byte(lines.String()+text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	golden, err := hex.DecodeString(strings.ReplaceAll(string(text), "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	if string(golden) != string(goldenSegment()) {
		t.Error("the format is written in another way than before")
	}
	blobs := memory.New(memory.Options{})
	w, err := blobs.Create(bg, segName(0x11, 2))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Append(golden); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, blobs, Options{})
	wantSlot(t, s, Ref{0x11, 0}, []byte("hello"))
	wantSlot(t, s, Ref{0x11, 3}, []byte(strings.Repeat("segment ", 20)))
	verifyAll(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
