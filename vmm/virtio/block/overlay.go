package block

import (
	"os"
	"sync"
	"sync/atomic"

	"agentrun.dev/errs"
	"golang.org/x/sys/unix"
)

// BlockSize is the unit of an overlay's copy on write, in bytes.
const BlockSize = 4096

// Limits of overlays.
const (
	MaxOverlay = 1 << 42 // largest size in bytes: 4 TiB
	MaxLayers  = 64      // files that one overlay reads from, apart from the base
)

const (
	leafBlocks = 4096 // blocks of a leaf: 16 MiB
	idBase     = 0    // in the base, or zeros where it ends
	idZero     = 255  // zeros
)

// Overlay is a Disk that is written copy on write. A base, which nobody writes, is shared by any number of overlays. What the
// guest writes goes to the top, a sparse file of the same layout. A fork seals the top, which parent and child both read from
// then on, and gives each a new one. A map says which layer holds each block; forks share its leaves until they write them, so
// that a fork costs 8 bytes for each 16 MiB of disk, whatever was written.
//
// A lineage of forks would gather ever more layers: above MaxLayers the blocks of the one with the fewest are copied to the top.
type Overlay struct {
	size int64

	mu     sync.Mutex
	own    *owner
	layers [idZero]*layer  // by id; nil if unused
	live   [idZero + 1]int // blocks in each; the base's isn't meaningful
	top    uint8
	root   []*leaf // nil: all in the base
	full   map[uint8]*leaf
	cut    [][]byte
	closed bool
}

// owner is what a leaf that may be changed in place bears; each fork has a new one. (Not empty, so that no two are the same.)
type owner struct{ _ byte }

type leaf struct {
	own *owner
	ids [leafBlocks]uint8
}

// layer is a file that overlays share.
type layer struct {
	f    *os.File
	refs atomic.Int32
}

func newLayer(f *os.File) *layer {
	l := &layer{f: f}
	l.refs.Store(1)
	return l
}

func (l *layer) close() error {
	if l == nil || l.refs.Add(-1) > 0 {
		return nil
	}
	return l.f.Close()
}

// NewOverlay returns an overlay of a size in bytes over a base; a nil base is all zeros, and behind the base's end there are
// zeros. top is an empty file of the overlay's own, such as an unlinked one or a memfd. Both files belong to the overlay.
func NewOverlay(base, top *os.File, size int64) (*Overlay, error) {
	if err := checkSize(size); err != nil {
		return nil, err
	}
	if size > MaxOverlay {
		return nil, errs.Msg(errs.Invalid, "block", "overlay", "its size must be at most 4 TiB")
	}
	o := &Overlay{size: size, own: &owner{}, top: 1, root: make([]*leaf, (size+leafBlocks*BlockSize-1)/(leafBlocks*BlockSize))}
	if base != nil {
		o.layers[idBase] = newLayer(base)
	}
	o.layers[o.top] = newLayer(top)
	return o, nil
}

// Size and ReadOnly implement Disk.
func (o *Overlay) Size() int64    { return o.size }
func (o *Overlay) ReadOnly() bool { return false }

// Written returns how many bytes of the disk aren't the base's.
func (o *Overlay) Written() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for id := 1; id < idZero; id++ {
		n += o.live[id]
	}
	return int64(n) * BlockSize
}

// id returns where a block is.
func (o *Overlay) id(block int64) uint8 {
	if l := o.root[block/leafBlocks]; l != nil {
		return l.ids[block%leafBlocks]
	}
	return idBase
}

// set notes where a range of blocks is from now on.
func (o *Overlay) set(block, n int64, id uint8) {
	for n > 0 {
		i, j := block/leafBlocks, block%leafBlocks
		m := min(n, leafBlocks-j)
		block, n = block+m, n-m
		l := o.root[i]
		if l != nil {
			for _, old := range l.ids[j : j+m] {
				o.live[old]--
			}
		}
		if o.live[id] += int(m); m == leafBlocks {
			o.root[i] = o.uniform(id)
			continue
		}
		if l == nil || l.own != o.own {
			c := &leaf{own: o.own}
			if l != nil {
				c.ids = l.ids
			}
			o.root[i], l = c, c
		}
		for k := range l.ids[j : j+m] {
			l.ids[j+int64(k)] = id
		}
	}
}

// uniform returns the leaf whose blocks are all in one layer. It is never changed in place, and stands for any number of equal
// ones: discarding a large disk costs no memory.
func (o *Overlay) uniform(id uint8) *leaf {
	if id == idBase {
		return nil
	}
	if o.full[id] == nil {
		if o.full == nil {
			o.full = make(map[uint8]*leaf)
		}
		l := &leaf{}
		for k := range l.ids {
			l.ids[k] = id
		}
		o.full[id] = l
	}
	return o.full[id]
}

// run returns the length in bytes of the range from off, at most n, that one layer holds, and the layer.
func (o *Overlay) run(off, n int64) (int64, uint8) {
	id := o.id(off / BlockSize)
	end := (off/BlockSize + 1) * BlockSize
	for end < off+n && o.id(end/BlockSize) == id {
		end += BlockSize
	}
	return min(end-off, n), id
}

// ReadAt fills the buffers from the layers.
func (o *Overlay) ReadAt(bufs [][]byte, off int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	left := int64(0)
	for _, b := range bufs {
		left += int64(len(b))
	}
	for left > 0 {
		n, id := o.run(off, left)
		part := o.take(&bufs, int(n))
		if id == idZero || o.layers[id] == nil {
			for _, b := range part {
				clear(b)
			}
		} else if err := readFile(o.layers[id].f, part, off); err != nil {
			return err
		}
		off, left = off+n, left-n
	}
	return nil
}

// take cuts n bytes off the front of bufs. The result is valid until the next take.
func (o *Overlay) take(bufs *[][]byte, n int) [][]byte {
	o.cut = o.cut[:0]
	for n > 0 {
		b := (*bufs)[0]
		if len(b) > n {
			o.cut = append(o.cut, b[:n])
			(*bufs)[0] = b[n:]
			break
		}
		o.cut = append(o.cut, b)
		*bufs, n = (*bufs)[1:], n-len(b)
	}
	return o.cut
}

// WriteAt stores the buffers in the top layer.
func (o *Overlay) WriteAt(bufs [][]byte, off int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := int64(0)
	for _, b := range bufs {
		n += int64(len(b))
	}
	return o.write(bufs, off, n)
}

func (o *Overlay) write(bufs [][]byte, off, n int64) error {
	if o.closed {
		return errClosed
	}
	if n == 0 {
		return nil
	}
	first, last := off/BlockSize, (off+n-1)/BlockSize
	if off%BlockSize != 0 {
		if err := o.copyUp(first); err != nil {
			return err
		}
	}
	if end := off + n; end%BlockSize != 0 && end != o.size {
		if err := o.copyUp(last); err != nil {
			return err
		}
	}
	if err := writeFile(o.layers[o.top].f, bufs, off); err != nil {
		return err // what was copied up is the same in both places
	}
	o.set(first, last-first+1, o.top)
	return nil
}

// copyUp brings a block that is going to be written in part to the top.
func (o *Overlay) copyUp(block int64) error {
	id := o.id(block)
	if id == o.top {
		return nil
	}
	var data [BlockSize]byte
	off := block * BlockSize
	n := min(BlockSize, o.size-off)
	if id != idZero && o.layers[id] != nil {
		if err := readFile(o.layers[id].f, [][]byte{data[:n]}, off); err != nil {
			return err
		}
	}
	if err := writeFile(o.layers[o.top].f, [][]byte{data[:n]}, off); err != nil {
		return err
	}
	o.set(block, 1, o.top)
	return nil
}

// Zero marks whole blocks as zeros and frees the top's, and writes what is left of others.
func (o *Overlay) Zero(off, n int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return errClosed
	}
	from, to := (off+BlockSize-1)/BlockSize, (off+n)/BlockSize
	if off+n == o.size {
		to = (off + n + BlockSize - 1) / BlockSize
	}
	if from >= to {
		return o.writeZeros(off, n)
	}
	if err := o.writeZeros(off, from*BlockSize-off); err != nil {
		return err
	}
	if err := o.writeZeros(to*BlockSize, off+n-to*BlockSize); err != nil {
		return err
	}
	o.erase(from, to-from)
	return nil
}

// writeZeros is for less than two blocks.
func (o *Overlay) writeZeros(off, n int64) error {
	if n <= 0 {
		return nil
	}
	return o.write([][]byte{zeros[:n]}, off, n)
}

func (o *Overlay) erase(block, n int64) {
	o.set(block, n, idZero)
	// That the space can't be freed, or isn't there, is no harm.
	_ = punch(o.layers[o.top].f, block*BlockSize, n*BlockSize)
}

// Discard marks whole blocks as zeros, and leaves the rest.
func (o *Overlay) Discard(off, n int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return errClosed
	}
	from, to := (off+BlockSize-1)/BlockSize, (off+n)/BlockSize
	if from < to {
		o.erase(from, to-from)
	}
	return nil
}

// Sync is fsync of the top; what lies beneath was there before.
func (o *Overlay) Sync() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return errClosed
	}
	f := o.layers[o.top].f
	if err := f.Sync(); err != nil {
		return ioError(f, err)
	}
	return nil
}

// NewTop is an empty file in memory for the top of an overlay, which Seal keeps from being written to. Errors: Limit without descriptors or
// memory.
func NewTop() (*os.File, error) {
	fd, err := unix.MemfdCreate("agentrun-disk", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		kind := errs.Other
		switch err {
		case unix.EMFILE, unix.ENFILE, unix.ENOMEM:
			kind = errs.Limit
		}
		return nil, errs.New(kind, "block", "overlay", err)
	}
	return os.NewFile(uintptr(fd), "disk"), nil
}

// Seal makes the top a layer that won't change any more, and puts an empty file on top of it. A memfd that allows it is sealed
// against writing by anybody. Where nothing was written there is nothing to seal, and the new file is closed.
func (o *Overlay) Seal(top *os.File) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seal(top)
}

func (o *Overlay) seal(top *os.File) error {
	switch {
	case o.closed:
		_ = top.Close()
		return errClosed
	case o.live[o.top] == 0:
		return top.Close()
	}
	if err := o.compact(); err != nil {
		_ = top.Close()
		return err
	}
	id := uint8(1)
	for o.layers[id] != nil { // compact has left at most MaxLayers
		id++
	}
	// What isn't a memfd that allows it stays as it is.
	_, _ = unix.FcntlInt(o.layers[o.top].f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK)
	o.top, o.layers[id] = id, newLayer(top)
	o.own = &owner{} // leaves of before may be shared from now on
	return nil
}

// sweep lets go of layers that hold nothing any more.
func (o *Overlay) sweep() {
	for id := uint8(1); id < idZero; id++ {
		if id != o.top && o.live[id] == 0 && o.layers[id] != nil {
			_ = o.layers[id].close() // nothing was written to it since it was sealed
			o.layers[id] = nil
		}
	}
}

// compact copies the blocks of the smallest layers to the top, which is about to be sealed, until there is room for it.
func (o *Overlay) compact() error {
	for {
		o.sweep()
		used, least := 0, uint8(0)
		for id := uint8(1); id < idZero; id++ {
			if id == o.top || o.layers[id] == nil {
				continue
			}
			if used++; least == 0 || o.live[id] < o.live[least] {
				least = id
			}
		}
		if used < MaxLayers {
			return nil
		}
		for i, l := range o.root {
			for j := int64(0); l != nil && j < leafBlocks && o.live[least] > 0; j++ {
				if l.ids[j] == least {
					if err := o.copyUp(int64(i)*leafBlocks + j); err != nil {
						return err
					}
				}
			}
		}
	}
}

// Fork returns an overlay with the same contents; from now on neither sees what the other writes. top and childTop are empty
// files for what each of them writes. The parent must not be in use by a running queue.
func (o *Overlay) Fork(top, childTop *os.File) (*Overlay, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.seal(top); err != nil {
		_ = childTop.Close()
		return nil, err
	}
	c := &Overlay{size: o.size, own: &owner{}, top: o.top, live: o.live, root: append([]*leaf(nil), o.root...)}
	o.own = &owner{} // a leaf that only held zeros may have been changed without anything to seal
	for id, l := range o.layers {
		if l != nil && uint8(id) != o.top {
			l.refs.Add(1)
			c.layers[id] = l
		}
	}
	c.layers[c.top] = newLayer(childTop)
	return c, nil
}

var errClosed = errs.Msg(errs.Unavailable, "block", "overlay", "it is closed")

// Close closes the files that no other overlay uses.
func (o *Overlay) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil
	}
	o.closed = true
	var first error
	for id, l := range o.layers {
		if err := l.close(); err != nil && first == nil {
			first = err
		}
		o.layers[id] = nil
	}
	return first
}
