package archive

import (
	"bytes"
	"io"
	"testing"
	"time"
)

// FuzzTarReader reads any bytes as an archive: no panic, no endless loop, no piece of a sparse file outside of it.
func FuzzTarReader(f *testing.F) {
	for _, format := range []tarFormat{formatGNU, formatPax, formatV7} {
		e := encoder{format: format}
		b, err := e.encode(&tarHeader{name: "name", typ: typeRegular, size: 5, mtime: time.Unix(1, 5)})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(b, padded("hello")...))
	}
	e := encoder{}
	h := &tarHeader{name: "s", typ: typeSparse, size: 30, real: 1 << 20, mtime: time.Unix(1, 0)}
	for i := range int64(30) {
		h.sparse = append(h.sparse, segment{i * 1024, 1})
	}
	b, _ := e.encode(h)
	f.Add(append(b, padded("hello")...))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := &tarReader{r: bytes.NewReader(in)}
		for range len(in)/blockSize + 2 {
			h, err := r.next()
			if err != nil {
				if err == io.EOF || err == io.ErrUnexpectedEOF || err == errLone {
					return
				}
				r.left, r.pad = 0, 0
				continue
			}
			at := int64(0)
			for _, s := range h.sparse {
				if s.off < at || s.n < 0 || s.off+s.n > h.real {
					t.Fatalf("%v is outside of a file of %d bytes", s, h.real)
				}
				at = s.off + s.n
			}
		}
	})
}

// The map of a sparse file goes through headers of any number of pieces.
func TestSparseMap(t *testing.T) {
	for _, n := range []int{1, 4, 5, 25, 26, 46, 47, 300} {
		h := &tarHeader{name: "s", typ: typeSparse, size: int64(n), real: int64(n) * 1024, mtime: time.Unix(1, 0)}
		for i := range n {
			h.sparse = append(h.sparse, segment{int64(i) * 1024, 1})
		}
		b, err := (&encoder{}).encode(h)
		if err != nil {
			t.Fatal(err)
		}
		got, err := (&tarReader{r: bytes.NewReader(b)}).next()
		if err != nil || len(got.sparse) != n || got.sparse[n-1] != h.sparse[n-1] || got.real != h.real {
			t.Errorf("%d pieces: %v, %+v", n, err, got)
		}
	}
}
