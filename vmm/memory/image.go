package memory

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
)

const (
	// MaxSpans is how many extents a layer gives to an image: nearby ones are joined, because each is a mapping to make
	// in every child.
	MaxSpans = 512
	// joinGap is up to how many bytes between two spans are taken with them: copying four pages takes about as long as the mappings
	// that are saved, one in the parent and two in each child.
	joinGap = 4 * PageSize
	// MaxExtents is how many extents an image has, over all its layers.
	MaxExtents = 1024
	// maxLayers bounds how many files an image holds: a child of a child of a child.
	maxLayers = 64
)

// Image is what a memory held at an instant. It never changes, and shares its layers with images before and after it.
// Its methods may be called at the same time.
type Image struct {
	size    uint64
	extents []extent

	mu     sync.Mutex
	closed bool
}

// newImage takes a reference to every layer.
func newImage(size uint64, extents []extent) *Image {
	im := &Image{size: size, extents: extents}
	for _, l := range im.layers() {
		l.refs.Add(1)
	}
	return im
}

// layers are the image's files, each once, in the order of their first extent.
func (im *Image) layers() []*layer {
	var ls []*layer
	seen := make(map[*layer]bool)
	for _, e := range im.extents {
		if !seen[e.l] {
			seen[e.l] = true
			ls = append(ls, e.l)
		}
	}
	return ls
}

// Size is how much RAM it is of.
func (im *Image) Size() uint64 { return im.size }

// Extents is how many mappings it takes.
func (im *Image) Extents() int { return len(im.extents) }

// Clone returns another handle, to be closed on its own.
func (im *Image) Clone() (*Image, error) {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.closed {
		return nil, errs.Msg(errs.Invalid, "memory", "image", "it is closed")
	}
	return newImage(im.size, im.extents), nil
}

// Close gives the image up; layers that nobody uses are freed. Memories that were loaded from it live on.
func (im *Image) Close() error {
	im.mu.Lock()
	defer im.mu.Unlock()
	if !im.closed {
		im.closed = true
		for _, l := range im.layers() {
			l.release()
		}
	}
	return nil
}

// Extent is a part of an image for another process: Layer is an index of the descriptors beside it.
type Extent struct {
	Off, End uint64
	Layer    int
}

// Export returns the extents and the descriptors of the layers, which stay the image's.
func (im *Image) Export() ([]Extent, []int) {
	ls := im.layers()
	index := make(map[*layer]int, len(ls))
	fds := make([]int, len(ls))
	for i, l := range ls {
		index[l], fds[i] = i, l.fd
	}
	out := make([]Extent, len(im.extents))
	for i, e := range im.extents {
		out[i] = Extent{e.off, e.end, index[e.l]}
	}
	return out, fds
}

// Import makes an image of descriptors from elsewhere, which it takes over, also when it fails: sealed files of the
// image's size, extents in order that don't overlap.
func Import(size uint64, extents []Extent, fds []int) (*Image, error) {
	layers := make([]*layer, 0, len(fds))
	defer func() {
		for _, l := range layers {
			l.release() // the image holds its own
		}
		for _, fd := range fds[len(layers):] {
			unix.Close(fd)
		}
	}()
	if err := checkSize("import", size); err != nil {
		return nil, err
	}
	if len(extents) > MaxExtents || len(fds) > maxLayers {
		return nil, errs.Msg(errs.Limit, "memory", "import", fmt.Sprintf("%d extents of %d layers are too many", len(extents), len(fds)))
	}
	for _, fd := range fds {
		l, err := openLayer(fd, size)
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	list := make([]extent, len(extents))
	at := uint64(0)
	for i, e := range extents {
		if e.Off < at || e.Off >= e.End || e.End > size || e.Off%PageSize != 0 || e.End%PageSize != 0 || e.Layer < 0 || e.Layer >= len(layers) {
			return nil, errs.Msg(errs.Invalid, "memory", "import", fmt.Sprintf("extent %d is out of range or order", i))
		}
		at = e.End
		list[i] = extent{span{e.Off, e.End}, layers[e.Layer]}
	}
	return newImage(size, list), nil
}

// Capture returns the image of now. The guest and its devices must not write meanwhile. What was written since the
// last capture moves into a layer of its own and is mapped from there, so that the memory itself shares it too.
// If it
// fails, the memory is as it was.
func (m *Memory) Capture() (*Image, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return nil, errs.Msg(errs.Invalid, "memory", "capture", "the memory is closed")
	case m.fd >= 0:
		return m.sealWhole()
	case m.image == nil:
		return nil, errs.Msg(errs.Invalid, "memory", "capture", "nothing was loaded yet")
	}
	spans, err := m.dirty()
	if err != nil {
		return nil, err
	}
	if len(spans) == 0 {
		return m.image.Clone()
	}
	l, extents, err := m.newLayer(spans)
	if err != nil {
		return nil, err
	}
	im := newImage(m.size, extents)
	l.release()
	// From here on the image is what it is. Pages that can't be mapped (a process has so many mappings) stay the process's
	// own: they hold the same bytes, and the next capture takes them again.
	for _, e := range extents {
		if e.l == l && m.mapExtents([]extent{e}) != nil {
			break
		}
	}
	m.image.Close()
	m.image = im
	return im.Clone()
}

// newLayer writes spans into a sealed layer and returns it with the image's extents under it. It takes more than the
// spans where there would be too many extents or layers.
func (m *Memory) newLayer(spans []span) (*layer, []extent, error) {
	l, err := newLayer(m.size)
	if err != nil {
		return nil, nil, err
	}
	var extents []extent
	spans = join(spans, joinGap)
	for n := MaxSpans; ; n /= 2 {
		if n == 0 || len(m.image.layers()) >= maxLayers {
			spans, n = []span{{0, m.size}}, 1 // once in a long while all of it, and the old layers are let go
		}
		spans = fill(spans, n)
		if extents = overlay(m.image.extents, spans, l); len(extents) <= MaxExtents {
			break
		}
	}
	for _, s := range spans {
		if err = l.writeSparse(m.all()[s.off:s.end], s.off); err != nil {
			break
		}
	}
	if err == nil {
		err = l.seal()
	}
	if err != nil {
		l.release()
		return nil, nil, err
	}
	return l, extents, nil
}

// sealWhole makes the layer of a memory that is a file itself: nothing is copied. Sealing asks that no writable shared
// mapping is left, so private anonymous memory takes its place for a moment; the guest doesn't run.
func (m *Memory) sealWhole() (*Image, error) {
	if err := m.mapWhole(m.fd, unix.MAP_PRIVATE); err != nil {
		return nil, hostError("capture", err)
	}
	l := &layer{fd: m.fd}
	l.refs.Store(1)
	if err := l.seal(); err != nil {
		if err2 := m.mapWhole(m.fd, unix.MAP_SHARED); err2 != nil { // writes go on privately: nothing is lost, but there is no capture any more
			m.closed = true
			return nil, hostError("capture", err2)
		}
		return nil, err
	}
	m.fd = -1
	m.image = newImage(m.size, []extent{{span{0, m.size}, l}})
	l.release()
	return m.image.Clone()
}

// Dirty is how many bytes a capture would copy.
func (m *Memory) Dirty() (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.image == nil {
		return 0, nil
	}
	spans, err := m.dirty()
	if err != nil {
		return 0, err
	}
	n := uint64(0)
	for _, s := range spans {
		n += s.end - s.off
	}
	return n, nil
}
