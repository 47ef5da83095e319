package block

import (
	"errors"
	"os"

	"agentrun.dev/errs"
	"golang.org/x/sys/unix"
)

// File is a Disk in a file of the host, or a block device.
type File struct {
	f    *os.File
	size int64
	ro   bool
}

// NewFile returns a disk in an open file, which it closes. size is the disk's length; 0 is that of the file. A writable file
// that is shorter is extended; a read-only one reads as zeros behind its end.
func NewFile(f *os.File, size int64, readOnly bool) (*File, error) {
	length, err := f.Seek(0, 2)
	if err != nil {
		return nil, errs.New(errs.Other, "block", f.Name(), err)
	}
	if size == 0 {
		size = length
	}
	if err := checkSize(size); err != nil {
		return nil, err
	}
	if length < size && !readOnly {
		if err := f.Truncate(size); err != nil {
			return nil, ioError(f, err)
		}
	}
	return &File{f, size, readOnly}, nil
}

// MaxSize is the largest disk, in bytes.
const MaxSize = 1 << 46

func checkSize(size int64) error {
	if size < Sector || size > MaxSize {
		return errs.Msg(errs.Invalid, "block", "disk", "its size must be from 512 bytes to 64 TiB")
	}
	return nil
}

func ioError(f *os.File, err error) error {
	kind := errs.Other
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		kind = errs.NoSpace
	}
	return errs.New(kind, "block", f.Name(), err)
}

// Size and the others implement Disk.
func (d *File) Size() int64    { return d.size }
func (d *File) ReadOnly() bool { return d.ro }
func (d *File) Close() error   { return d.f.Close() }

// ReadAt fills the buffers.
func (d *File) ReadAt(bufs [][]byte, off int64) error { return readFile(d.f, bufs, off) }

// WriteAt stores the buffers.
func (d *File) WriteAt(bufs [][]byte, off int64) error { return writeFile(d.f, bufs, off) }

// Sync is fsync.
func (d *File) Sync() error {
	if err := d.f.Sync(); err != nil {
		return ioError(d.f, err)
	}
	return nil
}

// Zero frees the range, which makes it read as zeros, or writes them where the filesystem can't.
func (d *File) Zero(off, n int64) error { return zeroFile(d.f, off, n) }

// Discard is Zero where that costs nothing.
func (d *File) Discard(off, n int64) error {
	if err := punch(d.f, off, n); err != nil && !unsupported(err) {
		return ioError(d.f, err)
	}
	return nil
}

func unsupported(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENODEV)
}

// punch makes a hole.
func punch(f *os.File, off, n int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
		if err != unix.EINTR {
			return err
		}
	}
}

var zeros [64 << 10]byte

func zeroFile(f *os.File, off, n int64) error {
	err := punch(f, off, n)
	if err == nil {
		return nil
	}
	if !unsupported(err) {
		return ioError(f, err)
	}
	for n > 0 {
		m := min(n, int64(len(zeros)))
		if _, err := f.WriteAt(zeros[:m], off); err != nil {
			return ioError(f, err)
		}
		off, n = off+m, n-m
	}
	return nil
}

// readFile fills the buffers from a file; behind its end there are zeros. bufs may be changed.
func readFile(f *os.File, bufs [][]byte, off int64) error {
	for len(bufs) > 0 {
		n, err := unix.Preadv(int(f.Fd()), bufs, off)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return ioError(f, err)
		case n == 0:
			for _, b := range bufs {
				clear(b)
			}
			return nil
		}
		off += int64(n)
		bufs = drop(bufs, n)
	}
	return nil
}

// writeFile stores the buffers in a file. bufs may be changed.
func writeFile(f *os.File, bufs [][]byte, off int64) error {
	for len(bufs) > 0 {
		n, err := unix.Pwritev(int(f.Fd()), bufs, off)
		switch {
		case err == unix.EINTR:
			continue
		case err == nil && n == 0:
			err = unix.EIO
			fallthrough
		case err != nil:
			return ioError(f, err)
		}
		off += int64(n)
		bufs = drop(bufs, n)
	}
	return nil
}

// drop takes n bytes off the front of bufs, in place.
func drop(bufs [][]byte, n int) [][]byte {
	for len(bufs) > 0 && n >= len(bufs[0]) {
		n -= len(bufs[0])
		bufs = bufs[1:]
	}
	if n > 0 {
		bufs[0] = bufs[0][n:]
	}
	return bufs
}
