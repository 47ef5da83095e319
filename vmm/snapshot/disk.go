package snapshot

import (
	"bytes"
	"os"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/virtio/block"
)

// Disk is what a copy-on-write disk holds beside its base, which the VM that is restored has to bring.
type Disk struct {
	Device int        // its place on the bus
	State  []byte     // of a block.Overlay
	Files  []*os.File `json:"-"` // which that says the contents of, but the base; nobody can write to them any more
}

// Close closes the files.
func (d *Disk) Close() {
	for _, f := range d.Files {
		f.Close()
	}
	d.Files = nil
}

func dup(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		kind := errs.Other
		if err == unix.EMFILE {
			kind = errs.Limit
		}
		return nil, errs.New(kind, "snapshot", "disk", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// changed calls f with what isn't the base's.
func (d *Disk) changed(f func(off int64, b []byte) error) error {
	files := []*os.File{nil} // nothing of the base is read
	for _, file := range d.Files {
		c, err := dup(file)
		if err != nil {
			closeFiles(files)
			return err
		}
		files = append(files, c)
	}
	top, err := block.NewTop()
	if err != nil {
		closeFiles(files)
		return err
	}
	o, err := block.RestoreOverlay(d.State, files, top)
	if err != nil {
		return err
	}
	defer o.Close()
	return o.Changed(f)
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// disk reads the blocks of a disk, whose state only says its size yet, into one file.
func (r *reader) disk(index byte, d *Disk) error {
	size := block.StateSize(d.State)
	if size == 0 {
		return corrupt("a disk has no state")
	}
	top, err := block.NewTop()
	if err != nil {
		return err
	}
	o, err := block.NewOverlay(nil, top, size)
	if err != nil {
		top.Close()
		return corrupt("a disk: %v", err)
	}
	defer o.Close()
	for at := uint64(0); r.next.kind == blockDisk+index; {
		off, n := r.next.off, uint64(len(r.next.data))
		if off < at || off%block.BlockSize != 0 || n == 0 || off >= uint64(size) || n > uint64(size)-off || n%block.BlockSize != 0 && off+n != uint64(size) {
			return corrupt("a block of a disk is out of place")
		}
		if bytes.Equal(r.next.data, zeros[:n]) {
			err = o.Zero(int64(off), int64(n))
		} else {
			err = o.WriteAt([][]byte{r.next.data}, int64(off))
		}
		if err != nil {
			return err
		}
		at = off + n
		if err := r.more(); err != nil {
			return err
		}
	}
	*d, err = SealDisk(d.Device, o)
	return err
}

var zeros [maxBlock]byte

// SealDisk seals the overlay in a place on the bus, whose VM is paused, and takes what it holds beside its base.
func SealDisk(device int, o *block.Overlay) (Disk, error) {
	top, err := block.NewTop()
	if err != nil {
		return Disk{}, err
	}
	if err := o.Seal(top); err != nil {
		return Disk{}, err
	}
	state, files, err := o.State()
	if err != nil {
		return Disk{}, err
	}
	d := Disk{Device: device, State: state}
	for _, f := range files[1:] {
		c, err := dup(f)
		if err != nil {
			d.Close()
			return Disk{}, err
		}
		d.Files = append(d.Files, c)
	}
	return d, nil
}
