package jail

import (
	"encoding/json"
	"os"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/memory"
	"agentrun.dev/vmm/snapshot"
	"agentrun.dev/vmm/virtio/block"
)

// Image is a snapshot as processes are given it: made once, for any number of them. It may be used by several at once. What the state of
// CPUs and devices says only they read, and Snapshot.
type Image struct {
	message message // its descriptors are the state's and the disks', which are ours, and the layers'
	memory  *memory.Image
}

// adopt makes an image of a message, whose descriptors it takes over.
func adopt(m *message, size uint64) (*Image, error) {
	fds := m.fds
	if m.fds = nil; len(fds) < 1 || m.Layers < 0 || m.Layers > len(fds)-1 {
		closeAll(fds)
		return nil, errs.Msg(errs.Invalid, "vmm process", "snapshot", "it came without descriptors")
	}
	if m.Size != size {
		closeAll(fds)
		return nil, errs.Msg(errs.Invalid, "vmm process", "snapshot", "it is of another machine")
	}
	for _, fd := range fds {
		if !isSealed(fd) {
			closeAll(fds)
			return nil, errs.Msg(errs.Invalid, "vmm process", "snapshot", "a descriptor isn't a sealed file in memory")
		}
	}
	state, layers, disks := fds[0], fds[1:1+m.Layers], fds[1+m.Layers:]
	held, err := memory.Import(m.Size, m.Extents, layers)
	if err != nil {
		unix.Close(state)
		closeAll(disks)
		return nil, err
	}
	im := &Image{message: message{Size: m.Size}, memory: held}
	im.message.Extents, layers = held.Export() // a layer that isn't used is closed
	im.message.Layers, im.message.fds = len(layers), slices.Concat([]int{state}, layers, disks)
	return im, nil
}

// Snapshot reads the image, which it doesn't change; what it returns is the caller's.
func (im *Image) Snapshot() (*snapshot.Snapshot, error) {
	m := im.message
	m.fds = make([]int, 0, len(im.message.fds))
	for _, fd := range im.message.fds {
		fd, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			closeAll(m.fds)
			return nil, errs.New(errs.Limit, "vmm process", "snapshot", err)
		}
		m.fds = append(m.fds, fd)
	}
	return decode(&m)
}

// NewImage makes an image of a snapshot, which it doesn't need any more afterwards.
func NewImage(s *snapshot.Snapshot) (*Image, error) {
	held, err := s.Memory.Clone()
	if err != nil {
		return nil, err
	}
	m, err := encode(s)
	if err != nil {
		held.Close()
		return nil, err
	}
	for i, fd := range m.fds[1+m.Layers:] { // the snapshot's
		if fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
			closeAll(m.fds[1+m.Layers:][:i])
			unix.Close(m.fds[0])
			held.Close()
			return nil, errs.New(errs.Limit, "vmm process", "image", err)
		}
		m.fds[1+m.Layers+i] = fd
	}
	runtime.KeepAlive(s) // its files are closed with it
	return &Image{message: *m, memory: held}, nil
}

// Close gives it up. No order with it may be under way.
func (im *Image) Close() error {
	unix.Close(im.message.fds[0])
	closeAll(im.message.fds[1+im.message.Layers:])
	im.message.fds = nil
	return im.memory.Close()
}

// encode puts a snapshot into a message: the first descriptor, of its state, is to be closed; the others are the snapshot's.
func encode(s *snapshot.Snapshot) (*message, error) {
	b, err := json.Marshal(s)
	if err != nil {
		return nil, errs.New(errs.Other, "vmm process", "snapshot", err)
	}
	state, err := sealed(b)
	if err != nil {
		return nil, err
	}
	extents, fds := s.Memory.Export()
	m := &message{Size: s.Memory.Size(), Extents: extents, Layers: len(fds), fds: append([]int{state}, fds...)}
	for _, d := range s.Disks {
		for _, f := range d.Files {
			m.fds = append(m.fds, int(f.Fd()))
		}
	}
	return m, nil
}

// decode takes a snapshot out of a message, and its descriptors over.
func decode(m *message) (*snapshot.Snapshot, error) {
	fds := m.fds
	if m.fds = nil; len(fds) < 1 || m.Layers < 0 || m.Layers > len(fds)-1 {
		closeAll(fds)
		return nil, errs.Msg(errs.Invalid, "vmm process", "snapshot", "it came without descriptors")
	}
	for _, fd := range fds {
		if !isSealed(fd) {
			closeAll(fds)
			return nil, errs.Msg(errs.Invalid, "vmm process", "snapshot", "a descriptor isn't a sealed file in memory")
		}
	}
	b, err := contents(fds[0], maxState)
	fds = fds[1:]
	image, err2 := memory.Import(m.Size, m.Extents, fds[:m.Layers])
	files := fds[m.Layers:]
	if err2 == nil && err != nil {
		image.Close()
	} else if err == nil {
		err = err2
	}
	if err != nil {
		closeAll(files)
		return nil, err
	}
	s := &snapshot.Snapshot{}
	bad := json.Unmarshal(b, s) != nil || s.Machine.Memory != m.Size
	s.Memory = image
	if bad || !takeDisks(s, files) {
		for i := range s.Disks {
			s.Disks[i].Files = nil // they are ours still
		}
		closeAll(files)
		s.Close()
		return nil, errs.Msg(errs.Invalid, "vmm process", "snapshot", "its state can't be read")
	}
	return s, nil
}

// takeDisks gives the disks of a snapshot their files: as many as their states name.
func takeDisks(s *snapshot.Snapshot, fds []int) bool {
	if len(s.Disks) > MaxOverlays {
		return false
	}
	for i := range s.Disks {
		n := block.StateFiles(s.Disks[i].State) - 1
		if n < 0 || n > len(fds) {
			return false
		}
		for _, fd := range fds[:n] {
			s.Disks[i].Files = append(s.Disks[i].Files, os.NewFile(uintptr(fd), "disk"))
		}
		fds = fds[n:]
	}
	return len(fds) == 0
}
