package segment

import (
	"runtime"
	"sync/atomic"
	"testing"

	"agentrun.dev/blob/dir"
	"agentrun.dev/blob/memory"
)

func benchSet(b *testing.B) *Set {
	b.Helper()
	d, err := dir.Open(b.TempDir(), dir.Options{})
	if err != nil {
		b.Fatal(err)
	}
	s := mustOpen(b, d, Options{})
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

func benchPutSync(b *testing.B, size, writers int) {
	s := benchSet(b)
	p := fill(size, 1)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	put := func() {
		if _, err := s.Put(bg, p); err != nil {
			b.Error(err)
		}
		if err := s.Sync(bg); err != nil {
			b.Error(err)
		}
	}
	if writers == 1 {
		for b.Loop() {
			put()
		}
		return
	}
	b.SetParallelism(writers / 2)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			put()
		}
	})
}

func BenchmarkPutSync4K(b *testing.B)           { benchPutSync(b, 4<<10, 1) }
func BenchmarkPutSync4KWriters32(b *testing.B)  { benchPutSync(b, 4<<10, 32) }
func BenchmarkPutSync64K(b *testing.B)          { benchPutSync(b, 64<<10, 1) }
func BenchmarkPutSync64KWriters32(b *testing.B) { benchPutSync(b, 64<<10, 32) }

// BenchmarkWrite64M writes an object of 64 MiB in slots of 4 MiB and syncs once.
func BenchmarkWrite64M(b *testing.B) {
	s := benchSet(b)
	p := fill(4<<20, 1)
	b.SetBytes(64 << 20)
	for b.Loop() {
		var refs []Ref
		for range 16 {
			refs = append(refs, mustPut(b, s, p))
		}
		if err := s.Sync(bg); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.Free(bg, refs); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

func benchRead(b *testing.B, slot, read int) {
	s := benchSet(b)
	const n = 1000
	refs := make([]Ref, min(n, 64<<20/slot))
	p := fill(slot, 1)
	for i := range refs {
		refs[i] = mustPut(b, s, p)
	}
	if err := s.Sync(bg); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(read))
	b.ReportAllocs()
	var at atomic.Uint64
	buf := make([]byte, read)
	for b.Loop() {
		i := at.Add(7)
		off := int64(i) * 4096 % int64(slot-read+1)
		if _, err := s.ReadAt(bg, refs[i%uint64(len(refs))], buf, off); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead4K(b *testing.B)      { benchRead(b, 4<<10, 4<<10) }
func BenchmarkRead4KOf64K(b *testing.B) { benchRead(b, 64<<10, 4<<10) }
func BenchmarkRead4KOf4M(b *testing.B)  { benchRead(b, 4<<20, 4<<10) }
func BenchmarkRead4M(b *testing.B)      { benchRead(b, 4<<20, 4<<20) }

// BenchmarkFsync is the floor: a write of 4 KiB to the end of a file, and fdatasync.
func BenchmarkFsync(b *testing.B) {
	d, err := dir.Open(b.TempDir(), dir.Options{})
	if err != nil {
		b.Fatal(err)
	}
	w, err := d.Create(bg, "floor")
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	p := make([]byte, 4<<10)
	for b.Loop() {
		if _, err := w.Append(p); err != nil {
			b.Fatal(err)
		}
		if err := w.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestMemory reads from 1.2 million slots in twenty segments with the default options: what stays in memory for the
// slots must fit the 20 MB that a million objects may cost.
func TestMemory(t *testing.T) {
	blobs := memory.New(memory.Options{})
	const segments, slots = 20, 60_000
	for id := uint64(1); id <= segments; id++ {
		h := head{id: id}
		entries := make([]entry, slots)
		for i := range entries {
			entries[i] = entry{uint32(headLen + i*metaLen), 0}
		}
		at := alignUp(int64(headLen+slots*metaLen), 8)
		p := append(make([]byte, at), encodeFooter(h, at, entries)...)
		copy(p, h.encode())
		w, err := blobs.Create(bg, segName(id, 0))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Append(p); err != nil {
			t.Fatal(err)
		}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := mustOpen(t, blobs, Options{})
	for id := uint64(1); id <= segments; id++ {
		for slot := uint32(0); slot < slots; slot += 1000 {
			if _, err := s.Size(bg, Ref{id, slot}); err != nil {
				t.Fatal(err)
			}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	used := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d slots hold %d KiB", segments*slots, used>>10)
	if used > 20<<20 {
		t.Errorf("%d bytes in memory", used)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
