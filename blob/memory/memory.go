// Package memory is a blob.Store in memory, for sandboxes that needn't outlive their process and for tests.
package memory

import (
	"context"
	"fmt"
	"io"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"agentrun.dev/blob"
	"agentrun.dev/errs"
)

// chunkSize is the unit in which blobs grow and are punched. Blobs never move once written.
const chunkSize = 64 << 10

// Options tune a store. The zero value works.
type Options struct {
	Limit int64 // bytes that all blobs may hold; beyond it Append gives errs.NoSpace. Zero means no limit
}

// Store is a blob.Store in memory.
type Store struct {
	limit int64
	used  atomic.Int64 // bytes held by blobs

	mu    sync.Mutex // taken before a data's
	blobs map[string]*data
}

var (
	_ blob.Store    = (*Store)(nil)
	_ blob.Reopener = (*Store)(nil)
	_ blob.Puncher  = (*handle)(nil)
)

// New returns an empty store.
func New(o Options) *Store { return &Store{limit: o.Limit, blobs: map[string]*data{}} }

// data is the content of a blob. A nil chunk is a hole.
type data struct {
	mu     sync.RWMutex
	chunks [][]byte
	size   int64
	gone   bool // removed: no longer counted
}

type handle struct {
	s      *Store
	d      *data
	name   string
	append bool
}

// Create implements blob.Store.
func (s *Store) Create(ctx context.Context, name string) (blob.Blob, error) {
	if err := first(ctx.Err(), blob.CheckName("create", name)); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blobs[name] != nil {
		return nil, errs.New(errs.Exists, "create", name, nil)
	}
	d := &data{}
	s.blobs[name] = d
	return &handle{s: s, d: d, name: name, append: true}, nil
}

// Open implements blob.Store.
func (s *Store) Open(ctx context.Context, name string) (blob.Blob, error) {
	if err := first(ctx.Err(), blob.CheckName("open", name)); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.blobs[name]
	if d == nil {
		return nil, errs.New(errs.NotFound, "open", name, nil)
	}
	return &handle{s: s, d: d, name: name}, nil
}

// Reopen implements blob.Reopener.
func (s *Store) Reopen(ctx context.Context, name string, size int64) (blob.Blob, error) {
	b, err := s.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	h := b.(*handle)
	h.append = true
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	h.cut(size)
	return h, nil
}

// List implements blob.Store.
func (s *Store) List(ctx context.Context, prefix string, f func(blob.Info) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	var all []blob.Info
	for name, d := range s.blobs {
		if strings.HasPrefix(name, prefix) {
			d.mu.RLock()
			all = append(all, blob.Info{Name: name, Size: d.size, Stored: d.stored()})
			d.mu.RUnlock()
		}
	}
	s.mu.Unlock()
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	for _, info := range all {
		if err := first(ctx.Err(), f(info)); err != nil {
			return err
		}
	}
	return nil
}

// Remove implements blob.Store.
func (s *Store) Remove(ctx context.Context, name string) error {
	if err := first(ctx.Err(), blob.CheckName("remove", name)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.blobs[name]; d != nil {
		d.mu.Lock()
		s.used.Add(-d.stored())
		d.gone = true
		d.mu.Unlock()
		delete(s.blobs, name)
	}
	return nil
}

// stored returns the bytes that d takes; d.mu is held.
func (d *data) stored() int64 {
	var n int64
	for i, c := range d.chunks {
		if c != nil {
			n += min(chunkSize, d.size-int64(i)*chunkSize)
		}
	}
	return n
}

// take claims n bytes under the limit.
func (s *Store) take(n int64) bool {
	if used := s.used.Add(n); n > 0 && s.limit > 0 && used > s.limit {
		s.used.Add(-n)
		return false
	}
	return true
}

// Append implements blob.Blob.
func (h *handle) Append(p []byte) (int64, error) {
	if !h.append {
		return 0, errs.Msg(errs.Unsupported, "append", h.name, "the blob is open for reading")
	}
	if !h.s.take(int64(len(p))) {
		return 0, errs.Msg(errs.NoSpace, "append", h.name, fmt.Sprintf("blobs may hold %d bytes", h.s.limit))
	}
	d := h.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone {
		h.s.used.Add(-int64(len(p)))
	}
	off := d.size
	for len(p) > 0 {
		i, at := int(d.size/chunkSize), int(d.size%chunkSize)
		if i == len(d.chunks) {
			d.chunks = append(d.chunks, nil)
		}
		if need := min(at+len(p), chunkSize); need > len(d.chunks[i]) {
			d.chunks[i] = grow(d.chunks[i], need)
		}
		n := copy(d.chunks[i][at:], p)
		p = p[n:]
		d.size += int64(n)
	}
	return off, nil
}

// grow lengthens a chunk, doubling it up to its full size.
func grow(c []byte, need int) []byte {
	if need <= cap(c) {
		return c[:need]
	}
	next := make([]byte, need, min(max(need, 2*cap(c), 512), chunkSize))
	copy(next, c)
	return next
}

// ReadAt implements io.ReaderAt.
func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errs.Msg(errs.Invalid, "read", h.name, "negative offset")
	}
	d := h.d
	d.mu.RLock()
	defer d.mu.RUnlock()
	n := 0
	for n < len(p) && off < d.size {
		i, at := int(off/chunkSize), int(off%chunkSize)
		end := int(min(chunkSize, d.size-int64(i)*chunkSize))
		part := p[n:min(len(p), n+end-at)]
		if c := d.chunks[i]; at < len(c) {
			clear(part[copy(part, c[at:]):])
		} else {
			clear(part)
		}
		n += len(part)
		off += int64(len(part))
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Punch implements blob.Puncher.
func (h *handle) Punch(off, n int64) error {
	if off < 0 || n < 0 {
		return errs.Msg(errs.Invalid, "punch", h.name, "negative range")
	}
	d := h.d
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.stored()
	for end := min(off+n, d.size); off < end; {
		i, at := int(off/chunkSize), off%chunkSize
		stop := min(end, (int64(i)+1)*chunkSize)
		if c := d.chunks[i]; at == 0 && (stop == d.size || stop%chunkSize == 0) {
			d.chunks[i] = nil
		} else if int(at) < len(c) {
			clear(c[at:min(int64(len(c)), stop-int64(i)*chunkSize)])
		}
		off = stop
	}
	h.settle(before)
	return nil
}

// settle counts what a change gave back; d.mu is held.
func (h *handle) settle(before int64) {
	if !h.d.gone {
		h.s.take(h.d.stored() - before)
	}
}

// cut shortens the blob; d.mu is held.
func (h *handle) cut(size int64) {
	d := h.d
	if size >= d.size {
		return
	}
	before := d.stored()
	d.size = max(size, 0)
	d.chunks = d.chunks[:(d.size+chunkSize-1)/chunkSize]
	if at := d.size % chunkSize; at > 0 {
		if c := d.chunks[len(d.chunks)-1]; int64(len(c)) > at {
			clear(c[at:])
			d.chunks[len(d.chunks)-1] = c[:at]
		}
	}
	h.settle(before)
}

// Sync implements blob.Blob; there is nothing to do.
func (h *handle) Sync() error { return nil }

// Size implements blob.Blob.
func (h *handle) Size() int64 {
	h.d.mu.RLock()
	defer h.d.mu.RUnlock()
	return h.d.size
}

// Close implements blob.Blob; there is nothing to do.
func (h *handle) Close() error { return nil }

func first(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}
