package memory

import (
	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
)

// chunk is how much Data gives at once, at most.
const chunk = 1 << 20

// Data calls f with all pages of the image that aren't zeros, in order: whole pages, at most 1 MiB at once. The bytes
// are f's until it returns.
func (im *Image) Data(f func(off uint64, b []byte) error) error {
	held, err := im.Clone() // the layers stay while they are read
	if err != nil {
		return err
	}
	defer held.Close()
	buf := make([]byte, chunk)
	for _, e := range im.extents {
		for off := e.off; off < e.end; {
			next, err := unix.Seek(e.l.fd, int64(off), unix.SEEK_DATA)
			if err == unix.ENXIO || err == nil && uint64(next) >= e.end {
				break
			}
			if err != nil {
				return hostError("read a layer", err)
			}
			off = uint64(next) &^ (PageSize - 1)
			b := buf[:min(chunk, e.end-off)]
			if err := e.l.read(b, off); err != nil {
				return err
			}
			if err := runs(b, off, f); err != nil {
				return err
			}
			off += uint64(len(b))
		}
	}
	return nil
}

// runs calls f for what isn't zeros of b.
func runs(b []byte, off uint64, f func(uint64, []byte) error) error {
	for start := 0; start < len(b); {
		if isZero(b[start : start+PageSize]) {
			start += PageSize
			continue
		}
		end := start + PageSize
		for end < len(b) && !isZero(b[end:end+PageSize]) {
			end += PageSize
		}
		if err := f(off+uint64(start), b[start:end]); err != nil {
			return err
		}
		start = end
	}
	return nil
}

func (l *layer) read(b []byte, off uint64) error {
	for len(b) > 0 {
		n, err := unix.Pread(l.fd, b, int64(off))
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return hostError("read a layer", err)
		case n == 0:
			return hostError("read a layer", unix.EIO)
		}
		b, off = b[n:], off+uint64(n)
	}
	return nil
}

// Build makes an image of one layer, which f fills. What it doesn't write is zeros.
func Build(size uint64, f func(write func(off uint64, b []byte) error) error) (*Image, error) {
	if err := checkSize("build", size); err != nil {
		return nil, err
	}
	l, err := newLayer(size)
	if err != nil {
		return nil, err
	}
	defer l.release()
	err = f(func(off uint64, b []byte) error {
		if off > size || uint64(len(b)) > size-off {
			return errs.Msg(errs.Invalid, "memory", "build", "what is written lies outside the memory")
		}
		return l.write(b, off)
	})
	if err != nil {
		return nil, err
	}
	if err := l.seal(); err != nil {
		return nil, err
	}
	return newImage(size, []extent{{span{0, size}, l}}), nil
}
