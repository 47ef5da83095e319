package segment

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"agentrun.dev/blob"
	"agentrun.dev/blob/faulty"
	"agentrun.dev/blob/memory"
	"agentrun.dev/errs"
)

// sealedSegment returns a store with one sealed segment of the given slots.
func sealedSegment(t testing.TB, lengths ...int) (*memory.Store, []Ref, [][]byte) {
	t.Helper()
	blobs := memory.New(memory.Options{})
	s := mustOpen(t, blobs, Options{})
	var refs []Ref
	var data [][]byte
	for i, n := range lengths {
		p := fill(n, uint64(i))
		refs, data = append(refs, mustPut(t, s, p)), append(data, p)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return blobs, refs, data
}

// cloneStore copies a store.
func cloneStore(t testing.TB, from blob.Store) *memory.Store {
	t.Helper()
	f, err := faulty.New(from)
	if err != nil {
		t.Fatal(err)
	}
	out, err := f.Survivors(faulty.Kept, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCorruptByte flips bits all over a sealed segment: whatever is read must be right or an error, Verify must find
// every one that matters, and names the slot.
func TestCorruptByte(t *testing.T) {
	blobs, refs, data := sealedSegment(t, 100, 5000, 40<<10, 0, 130<<10, 1)
	name := faulty.Names(blobs, segPrefix)[0]
	s := mustOpen(t, blobs, Options{})
	_, entries, err := s.snapshot(bg, refs[0].Segment)
	if err != nil {
		t.Fatal(err)
	}
	s.files.close()
	b, _ := blobs.Open(bg, name)
	size := b.Size()
	rng := rand.New(rand.NewPCG(1, 1))
	offsets := []int64{}
	for off := int64(0); off < headLen; off++ {
		offsets = append(offsets, off)
	}
	for off := size - trailerLen - int64(len(refs))*entryLen; off < size; off++ {
		offsets = append(offsets, off)
	}
	for _, e := range entries {
		for off := int64(e.off); off < int64(e.off)+metaSize(int64(e.size)); off++ {
			offsets = append(offsets, off)
		}
		for range min(40, e.size) {
			offsets = append(offsets, payloadOff(int64(e.off), int64(e.size))+rng.Int64N(int64(e.size)))
		}
	}
	for _, off := range offsets {
		damaged := cloneStore(t, blobs)
		if err := faulty.Damage(damaged, name, off, 1<<rng.IntN(8)); err != nil {
			t.Fatal(err)
		}
		checkDamaged(t, damaged, refs, data, off, size)
		if t.Failed() {
			t.Fatalf("byte %d of %d", off, size)
		}
	}
}

func checkDamaged(t *testing.T, blobs blob.Store, refs []Ref, data [][]byte, off, size int64) {
	t.Helper()
	s, err := Open(bg, blobs, Options{})
	if err != nil {
		t.Error(err)
		return
	}
	defer s.Close()
	bad := 0
	err = s.Verify(bg, refs[0].Segment, func(ref Ref, err error) {
		if err != nil {
			bad++
			if !errs.Is(err, errs.Corrupt) || !strings.Contains(err.Error(), ref.String()) {
				t.Errorf("verify %v: %v", ref, err)
			}
		}
	})
	trailerLost := off >= size-trailerLen // the footer is written anew by Open
	if err == nil && bad == 0 && !trailerLost {
		t.Error("Verify found nothing")
	}
	if err != nil {
		wantKind(t, err, errs.Corrupt)
	}
	wrong := 0
	for i, ref := range refs {
		got := make([]byte, len(data[i]))
		_, err := s.ReadAt(bg, ref, got, 0)
		switch {
		case err == nil || len(got) == 0 && errors.Is(err, io.EOF):
			if !bytes.Equal(got, data[i]) {
				t.Errorf("%v reads as other bytes", ref)
			}
		case errs.Is(err, errs.Corrupt):
			wrong++
		default:
			t.Errorf("read %v: %v", ref, err)
		}
	}
	if wrong > 1 || trailerLost && wrong > 0 {
		t.Errorf("one byte spoilt %d slots", wrong)
	}
}

// TestDamagedHeader loses header and footer: nothing can be read, but it is said, and the rest of the set works.
func TestDamagedHeader(t *testing.T) {
	blobs, refs, _ := sealedSegment(t, 100, 5000)
	name := faulty.Names(blobs, segPrefix)[0]
	b, _ := blobs.Open(bg, name)
	size := b.Size()
	if err := errors.Join(faulty.Damage(blobs, name, 3, 1), faulty.Damage(blobs, name, size-1, 1)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s := mustOpen(t, blobs, Options{})
		_, err := s.ReadAt(bg, refs[0], make([]byte, 10), 0)
		wantKind(t, err, errs.Corrupt)
		wantKind(t, s.Verify(bg, refs[0].Segment, func(Ref, error) {}), errs.Corrupt)
		stats, err := s.Segments(bg)
		if err != nil || stats[0].Damage == nil {
			t.Fatalf("%+v %v", stats, err)
		}
		p := []byte("goes on")
		wantSlot(t, s, mustPut(t, s, p), p)
		if err := errors.Join(s.Free(bg, refs), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTornTail cuts a segment without footer at every length.
func TestTornTail(t *testing.T) {
	f, err := faulty.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, f, Options{})
	var refs []Ref
	var data [][]byte
	for i, n := range []int{10, 0, 300, 40, 33 << 10, 5} {
		p := fill(n, uint64(i))
		refs, data = append(refs, mustPut(t, s, p)), append(data, p)
	}
	name := faulty.Names(f, segPrefix)[0]
	b, _ := f.Open(bg, name)
	size := b.Size()
	for cut := int64(0); cut <= size; cut++ {
		if cut > 600 && cut%97 != 0 && size-cut > 100 {
			continue
		}
		left, err := f.Survivors(faulty.Kept, nil)
		if err != nil {
			t.Fatal(err)
		}
		w, err := left.Reopen(bg, name, cut)
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
		s := mustOpen(t, left, Options{})
		for i, ref := range refs {
			end := int64(size)
			if i+1 < len(refs) {
				end = int64(s2entry(t, f, ref).end())
			}
			err := readsAs(s, ref, data[i])
			if whole := cut >= end; whole && err != nil || !whole && !errs.Is(err, errs.NotFound) && !errs.Is(err, errs.Corrupt) {
				t.Fatalf("cut at %d, slot %d ends at %d: %v", cut, i, end, err)
			}
		}
		verifyAll(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// s2entry finds a slot's place by scanning.
func s2entry(t testing.TB, blobs blob.Store, ref Ref) entry {
	t.Helper()
	name := segName(ref.Segment, 0)
	b, err := blobs.Open(bg, name)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	p := make([]byte, headLen)
	if err := readFull(b, p, 0); err != nil {
		t.Fatal(err)
	}
	h, err := parseHead(p, ref.Segment, 0)
	if err != nil {
		t.Fatal(err)
	}
	found, err := scan(bg, b, h, b.Size())
	if err != nil {
		t.Fatal(err)
	}
	return found.entries[ref.Slot]
}

// TestForgedSlot puts payload that looks like slots, spoils what surrounds it, and expects none of it to be believed.
func TestForgedSlot(t *testing.T) {
	blobs := memory.New(memory.Options{})
	f, err := faulty.New(blobs)
	if err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, f, Options{})
	first := mustPut(t, s, []byte("first"))
	var forged []byte
	for slot := range uint32(8) {
		meta := make([]byte, metaSize(8))
		blockCRCs(meta[metaLen:], []byte("believed"))
		putMeta(meta, head{id: first.Segment, salt: 12345}, slot, 8) // the salt is what a forger doesn't know
		forged = append(append(forged, meta...), "believed    "...)
	}
	mustPut(t, s, forged)
	last := mustPut(t, s, []byte("last"))
	if err := s.Sync(bg); err != nil {
		t.Fatal(err)
	}
	left, err := f.Survivors(faulty.Lost, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := s2entry(t, f, Ref{first.Segment, 1})
	if err := faulty.Damage(left, segName(first.Segment, 0), int64(at.off), 0xff); err != nil {
		t.Fatal(err)
	}
	r := mustOpen(t, left, Options{})
	wantSlot(t, r, first, []byte("first"))
	wantSlot(t, r, last, []byte("last"))
	_, err = r.ReadAt(bg, Ref{first.Segment, 1}, make([]byte, 8), 0)
	wantKind(t, err, errs.Corrupt)
	for slot := uint32(3); slot < 8; slot++ {
		_, err = r.Size(bg, Ref{first.Segment, slot})
		wantKind(t, err, errs.NotFound)
	}
	if err := errors.Join(r.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestNewerFormat refuses what a later version wrote, instead of taking it for damage.
func TestNewerFormat(t *testing.T) {
	blobs, _, _ := sealedSegment(t, 10)
	name := faulty.Names(blobs, segPrefix)[0]
	b, _ := blobs.Open(bg, name)
	p := make([]byte, b.Size())
	if _, err := b.ReadAt(p, 0); err != nil {
		t.Fatal(err)
	}
	tail := p[len(p)-trailerLen:]
	le.PutUint16(tail[8:], version+1)
	le.PutUint32(tail[60:], checksum(tail[:60]))
	w, err := blobs.Reopen(bg, name, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Append(p); err != nil {
		t.Fatal(err)
	}
	_, err = Open(bg, blobs, Options{})
	wantKind(t, err, errs.Unsupported)
}

// memReader is a blob for the parsers: bytes with a length.
type memReader struct{ *bytes.Reader }

func FuzzFooter(f *testing.F) {
	h := head{id: 7, gen: 2, salt: 99}
	f.Add(append(make([]byte, headLen), encodeFooter(h, headLen, nil)...))
	f.Add(append(make([]byte, 4096), encodeFooter(h, 4096, []entry{{64, 100}, {}, torn, {264, 3000}})...))
	f.Fuzz(func(t *testing.T, p []byte) {
		r := memReader{bytes.NewReader(p)}
		for _, fix := range []bool{false, true} {
			if fix && len(p) >= trailerLen { // let the fuzzer past the checksums
				tail := p[len(p)-trailerLen:]
				if off := le.Uint64(tail[32:]); off < uint64(len(p)-trailerLen) {
					le.PutUint32(tail[44:], checksum(p[off:len(p)-trailerLen]))
				}
				le.PutUint32(tail[60:], checksum(tail[:60]))
			}
			tr, entries, err := readFooter(r, 7, 2)
			if err != nil {
				if k := errs.KindOf(err); k != errs.Corrupt && k != errs.Unsupported {
					t.Fatal(err)
				}
				continue
			}
			for slot, e := range entries {
				if e.present() {
					buf := make([]byte, e.size)
					_, _ = readSlot(r, tr.head, uint32(slot), e, buf, 0)
				}
			}
		}
	})
}

func FuzzScan(f *testing.F) {
	h := head{id: 7, salt: 99}
	seed := h.encode()
	for slot, n := range []int{0, 10, 300, 9} {
		off := alignUp(int64(len(seed)), 8)
		p := make([]byte, payloadOff(off, int64(n))+int64(n))
		copy(p, seed)
		payload := p[payloadOff(off, int64(n)):]
		copy(payload, fill(n, 1))
		meta := p[off : off+metaSize(int64(n))]
		blockCRCs(meta[metaLen:], payload)
		putMeta(meta, h, uint32(slot), uint32(n))
		seed = p
	}
	f.Add(seed)
	f.Add(seed[:len(seed)-5])
	f.Add(append(bytes.Clone(seed[:200]), seed...))
	f.Fuzz(func(t *testing.T, p []byte) {
		out, err := scan(bg, bytes.NewReader(p), h, int64(len(p)))
		if err != nil {
			t.Fatal(err)
		}
		at := int64(headLen)
		for slot, e := range out.entries {
			if !e.present() {
				continue
			}
			if int64(e.off) < at || e.end() > out.end || out.end > int64(len(p)) {
				t.Fatalf("slot %d at %d of %d bytes", slot, e.off, e.size)
			}
			at = e.end()
			buf := make([]byte, e.size)
			if _, err := readSlot(bytes.NewReader(p), h, uint32(slot), e, buf, 0); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func FuzzLog(f *testing.F) {
	body := deadRecord{segment: 3, gen: 1, bytes: 100, slots: []uint32{0, 5, 6}}.encode()
	p := make([]byte, logHeadLen)
	copy(p, logMagic)
	le.PutUint16(p[8:], version)
	p = append(append(p, frame(body)...), frame([]byte{kindReady})...)
	f.Add(p, body[1:])
	f.Fuzz(func(t *testing.T, p, body []byte) {
		if _, err := readLog(p); err != nil && !errs.Is(err, errs.Unsupported) {
			t.Fatal(err)
		}
		if r, err := parseDead(body); err == nil {
			again, err := parseDead(r.encode()[1:])
			if err != nil || len(again.slots) != len(r.slots) {
				t.Fatalf("%+v %+v %v", r, again, err)
			}
		}
	})
}
