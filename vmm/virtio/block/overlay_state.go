package block

import (
	"encoding/binary"
	"os"

	"agentrun.dev/errs"
)

// overlayMagic begins an overlay's state and names its version.
const overlayMagic = "AGOV\x01"

// State describes a sealed overlay: which of its files holds which blocks, and those files, the base (or nil) first. They
// remain the overlay's. RestoreOverlay makes an overlay with the same contents of it, in this process or another.
//
// The encoding: the magic, the size as 8 bytes, the number of files, then runs of blocks {skipped, length, file}, as varints.
// Blocks that no run covers are the base's; file 255 is zeros. It is Unavailable unless nothing was written since Seal.
func (o *Overlay) State() (data []byte, files []*os.File, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.live[o.top] > 0 {
		return nil, nil, errs.Msg(errs.Unavailable, "block", "state", "the overlay isn't sealed")
	}
	var number [idZero + 1]uint64
	files = []*os.File{nil}
	for id, l := range o.layers {
		switch {
		case l == nil || uint8(id) == o.top:
		case id == idBase:
			files[0] = l.f
		case o.live[id] > 0:
			number[id] = uint64(len(files))
			files = append(files, l.f)
		}
	}
	number[idZero] = idZero
	data = binary.LittleEndian.AppendUint64([]byte(overlayMagic), uint64(o.size))
	data = append(data, byte(len(files)))
	blocks, skipped := (o.size+BlockSize-1)/BlockSize, uint64(0)
	for b := int64(0); b < blocks; {
		if o.root[b/leafBlocks] == nil {
			n := min(leafBlocks-b%leafBlocks, blocks-b)
			skipped, b = skipped+uint64(n), b+n
			continue
		}
		id, n := o.id(b), int64(1)
		for b+n < blocks && o.id(b+n) == id {
			n++
		}
		if id == idBase {
			skipped += uint64(n)
		} else {
			data = binary.AppendUvarint(data, skipped)
			data = binary.AppendUvarint(data, uint64(n))
			data = append(data, byte(number[id]))
			skipped = 0
		}
		b += n
	}
	return data, files, nil
}

// StateFiles is how many files go with a state, the base or nil among them; 0 if it is none.
func StateFiles(data []byte) int {
	head := len(overlayMagic) + 9
	if len(data) < head || string(data[:len(overlayMagic)]) != overlayMagic {
		return 0
	}
	return int(data[head-1])
}

// StateSize is the size of the disk that a state is of, in bytes; 0 if it is none.
func StateSize(data []byte) int64 {
	if StateFiles(data) == 0 {
		return 0
	}
	return int64(min(binary.LittleEndian.Uint64(data[len(overlayMagic):]), MaxOverlay))
}

// Changed calls f with all blocks that aren't the base's, in order, at most 1 MiB at once. The bytes are f's until it returns.
func (o *Overlay) Changed(f func(off int64, b []byte) error) error {
	var buf []byte
	for off := int64(0); off < o.size; {
		n, id := o.changed(off)
		if id == idBase {
			off += n
			continue
		}
		if buf == nil {
			buf = make([]byte, maxChanged)
		}
		b := buf[:min(n, maxChanged)]
		if err := o.ReadAt([][]byte{b}, off); err != nil {
			return err
		}
		if err := f(off, b); err != nil {
			return err
		}
		off += int64(len(b))
	}
	return nil
}

const maxChanged = 1 << 20

// changed is how long the range from off is that one layer holds, and which does.
func (o *Overlay) changed(off int64) (int64, uint8) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if block := off / BlockSize; off%BlockSize == 0 && block%leafBlocks == 0 && o.root[block/leafBlocks] == nil {
		return min(leafBlocks*BlockSize, o.size-off), idBase
	}
	return o.run(off, min(maxChanged, o.size-off))
}

// RestoreOverlay returns an overlay of a state, the files that belong to it, and an empty file as its top. All files belong to
// the overlay, or are closed if the state can't be: it may come from anywhere.
func RestoreOverlay(data []byte, files []*os.File, top *os.File) (*Overlay, error) {
	o, err := restoreOverlay(data, files, top)
	if err != nil {
		for _, f := range append(files, top) {
			if f != nil {
				_ = f.Close()
			}
		}
		return nil, err
	}
	return o, nil
}

func restoreOverlay(data []byte, files []*os.File, top *os.File) (*Overlay, error) {
	bad := errs.Msg(errs.Invalid, "block", "restore", "not the state of an overlay with these files")
	head := len(overlayMagic) + 9
	if len(data) < head || string(data[:len(overlayMagic)]) != overlayMagic || len(files) == 0 || len(files) > MaxLayers+1 ||
		int(data[head-1]) != len(files) {
		return nil, bad
	}
	size := binary.LittleEndian.Uint64(data[len(overlayMagic):])
	if size > MaxOverlay {
		return nil, bad
	}
	o, err := NewOverlay(files[0], top, int64(size))
	if err != nil {
		return nil, err
	}
	o.layers[1] = nil
	for i, f := range files[1:] {
		if f == nil {
			return nil, bad
		}
		o.layers[i+1] = newLayer(f)
	}
	o.top = uint8(len(files))
	o.layers[o.top] = newLayer(top)
	data = data[head:]
	blocks, at := (size+BlockSize-1)/BlockSize, uint64(0)
	for len(data) > 0 {
		skip, n := binary.Uvarint(data)
		if n <= 0 {
			return nil, bad
		}
		count, m := binary.Uvarint(data[n:])
		if m <= 0 || len(data) == n+m {
			return nil, bad
		}
		id := data[n+m]
		data = data[n+m+1:]
		if skip > blocks-at || count == 0 || count > blocks-at-skip || id == 0 || int(id) >= len(files) && id != idZero {
			return nil, bad
		}
		o.set(int64(at+skip), int64(count), id)
		at += skip + count
	}
	return o, nil
}
