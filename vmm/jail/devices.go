package jail

import (
	"fmt"
	"net"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/vmm"
	"agentrun.dev/vmm/snapshot"
	"agentrun.dev/vmm/virtio"
	"agentrun.dev/vmm/virtio/balloon"
	"agentrun.dev/vmm/virtio/block"
	"agentrun.dev/vmm/virtio/fs"
	"agentrun.dev/vmm/virtio/fs/forward"
	vnet "agentrun.dev/vmm/virtio/net"
	"agentrun.dev/vmm/virtio/rate"
	"agentrun.dev/vmm/virtio/rng"
	"agentrun.dev/vmm/virtio/vsock"
)

// MaxOverlays is how many copy-on-write disks a VM can have: all that they are made of goes with a snapshot, in one message.
const MaxOverlays = 2

// Devices of a VM, in this order on the bus. A VM that is restored needs those of its snapshot. What they work on are
// descriptors that the process is given before it confines itself.
type Devices struct {
	CID    uint32   // the guest's address on vsock, from 3 up; 0: no vsock
	Disks  []Disk   // /dev/vda and so on
	Shares []string // tags of virtio-fs devices; see Process.Share
	Cards  []Card   // network cards, eth0 and so on; see Process.Card
	RNG    bool     // a source of entropy
	// Balloon: the guest gives memory that it doesn't use back to the host (see Process.Balloon).
	Balloon bool
}

// Disk is a block device. The process gets a duplicate of File.
type Disk struct {
	File     *os.File // its contents, or what an overlay is over
	Serial   string   // at most 20 bytes
	ReadOnly bool
	// Overlay is the size in bytes of a copy-on-write disk over File, which may be nil then: all zeros. What the guest writes
	// is held in memory, and is a part of the VM's snapshots. At most MaxOverlays disks of a VM are such.
	Overlay uint64
	Rate    rate.Limit // of requests and their bytes
}

// Card is a network card on a tap (see net.NewTap), on one end of a pair of sockets that keeps the bounds of packets, or, with
// no file, on one whose other end is Process.Card.
type Card struct {
	File *os.File
	MAC  net.HardwareAddr
	// In and Out bound what the guest receives and sends.
	In, Out rate.Limit
}

// What is told of the devices beside their descriptors.
type deviceSetup struct {
	CID     uint32      `json:",omitempty"`
	Disks   []diskSetup `json:",omitempty"`
	Shares  []string    `json:",omitempty"`
	Cards   []cardSetup `json:",omitempty"`
	RNG     bool        `json:",omitempty"`
	Balloon bool        `json:",omitempty"`
}

type diskSetup struct {
	File     bool // there is a descriptor
	Serial   string
	ReadOnly bool
	Overlay  uint64
	Rate     rate.Limit
}

type cardSetup struct {
	MAC     string
	In, Out rate.Limit
}

// check finds what couldn't be made.
func (d *Devices) check() error {
	bad := func(what string, args ...any) error {
		return errs.Msg(errs.Invalid, "vmm process", "devices", fmt.Sprintf(what, args...))
	}
	if n := len(d.Disks) + len(d.Shares) + len(d.Cards) + 3; n > vmm.MaxDevices {
		return errs.Msg(errs.Limit, "vmm process", "devices", fmt.Sprintf("%d are too many", n))
	}
	if d.CID == 1 || d.CID == 2 {
		return bad("the address %d of vsock is taken", d.CID)
	}
	overlays := 0
	for i, k := range d.Disks {
		if k.Overlay != 0 {
			overlays++
		}
		switch {
		case k.File == nil && k.Overlay == 0:
			return bad("disk %d has no file", i)
		case k.Overlay > block.MaxOverlay:
			return bad("disk %d is larger than %d bytes", i, uint64(block.MaxOverlay))
		case k.Overlay != 0 && k.ReadOnly:
			return bad("disk %d is an overlay that nobody can write to", i)
		}
	}
	if overlays > MaxOverlays {
		return errs.Msg(errs.Limit, "vmm process", "devices", fmt.Sprintf("%d overlays are too many", overlays))
	}
	for i, tag := range d.Shares {
		if tag == "" || len(tag) > fs.MaxTag {
			return bad("share %d has no tag of 1 to %d bytes", i, fs.MaxTag)
		}
	}
	for i, c := range d.Cards {
		if len(c.MAC) != 6 {
			return bad("card %d lacks its address", i)
		}
	}
	return nil
}

// ends are ours of what the devices are connected with.
type ends struct {
	shares []net.Conn
	cards  []net.Conn // nil for a card with a file
}

func (e ends) close() {
	for _, c := range slices.Concat(e.shares, e.cards) {
		if c != nil {
			c.Close()
		}
	}
}

// describe returns what the process is told of the devices, the descriptors that go with it, and our ends. All descriptors are
// duplicates, to be closed.
func (d *Devices) describe() (s *deviceSetup, fds []int, ours ends, err error) {
	if err := d.check(); err != nil {
		return nil, nil, ends{}, err
	}
	defer func() {
		if err != nil {
			closeAll(fds)
			ours.close()
		}
	}()
	s = &deviceSetup{CID: d.CID, Shares: d.Shares, RNG: d.RNG, Balloon: d.Balloon}
	for _, k := range d.Disks {
		s.Disks = append(s.Disks, diskSetup{File: k.File != nil, Serial: k.Serial, ReadOnly: k.ReadOnly, Overlay: k.Overlay, Rate: k.Rate})
		if k.File != nil {
			if fds, err = appendDup(fds, k.File); err != nil {
				return nil, fds, ours, err
			}
		}
	}
	for range d.Shares {
		end, theirs, err := socketPair(unix.SOCK_STREAM)
		if err != nil {
			return nil, fds, ours, err
		}
		ours.shares, fds = append(ours.shares, end), append(fds, theirs)
	}
	for _, c := range d.Cards {
		s.Cards = append(s.Cards, cardSetup{MAC: c.MAC.String(), In: c.In, Out: c.Out})
		var end net.Conn
		if c.File != nil {
			fds, err = appendDup(fds, c.File)
		} else {
			var theirs int
			if end, theirs, err = socketPair(unix.SOCK_SEQPACKET); err == nil {
				fds = append(fds, theirs)
			}
		}
		if err != nil {
			return nil, fds, ours, err
		}
		ours.cards = append(ours.cards, end)
	}
	return s, fds, ours, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// appendDup duplicates a file's descriptor, and leaves the file as it is (Fd would make it blocking).
func appendDup(fds []int, f *os.File) ([]int, error) {
	raw, err := f.SyscallConn()
	dup := -1
	if err == nil {
		err2 := raw.Control(func(fd uintptr) { dup, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
		if err == nil {
			err = err2
		}
	}
	if err != nil {
		return fds, errs.New(hostKind(err), "vmm process", f.Name(), err)
	}
	return append(fds, dup), nil
}

// socketPair returns a connection, and the descriptor of its other end.
func socketPair(kind int) (net.Conn, int, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, -1, errs.New(errs.Limit, "vmm process", "socket", err)
	}
	c, err := fileConn(fds[0])
	if err != nil {
		unix.Close(fds[1])
		return nil, -1, err
	}
	return c, fds[1], nil
}

// fileConn takes a socket over.
func fileConn(fd int) (net.Conn, error) {
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, errs.New(hostKind(err), "vmm process", "socket", err)
	}
	return c, nil
}

// devices are those of the VM in the process.
type devices struct {
	socket   *vsock.Device   // or nil
	balloon  *balloon.Device // or nil
	overlays []*overlay
}

// overlay is a disk that another takes the place of when a snapshot is restored, before the guest runs.
type overlay struct {
	*block.Overlay
	device int // its place on the bus
	base   *os.File
}

// attach makes the devices and puts them on the bus. It takes the descriptors over.
func attach(v *vmm.VM, s *deviceSetup, fds []int) (_ *devices, err error) {
	defer func() { closeAll(fds) }()
	next := func() (int, error) {
		if len(fds) == 0 {
			return -1, errs.Msg(errs.Invalid, "vmm process", "devices", "descriptors are missing")
		}
		fd := fds[0]
		fds = fds[1:]
		return fd, nil
	}
	d := &devices{}
	put := func(dev virtio.Device, err error) error {
		if err != nil {
			return err
		}
		return v.Attach(func(s vmm.Slot) (vmm.Device, error) { return virtio.NewMMIO(dev, s.Memory, s.Interrupt), nil })
	}
	if s.CID != 0 {
		d.socket = vsock.New(vsock.Options{CID: s.CID, MaxConns: 2 * maxDials})
		if err := put(d.socket, nil); err != nil {
			return nil, err
		}
	}
	for _, k := range s.Disks {
		fd := -1
		if k.File {
			if fd, err = next(); err != nil {
				return nil, err
			}
		}
		disk, err := d.disk(v, k, fd)
		if err != nil {
			return nil, err
		}
		if err := put(block.New(disk, block.Options{Serial: k.Serial, Rate: k.Rate}), nil); err != nil {
			return nil, err
		}
	}
	for _, tag := range s.Shares {
		fd, err := next()
		if err != nil {
			return nil, err
		}
		c, err := fileConn(fd)
		if err != nil {
			return nil, err
		}
		share, err := fs.New(forward.NewClient(c), fs.Options{Tag: tag})
		if err := put(share, err); err != nil {
			return nil, err
		}
	}
	for _, k := range s.Cards {
		fd, err := next()
		if err != nil {
			return nil, err
		}
		c, err := card(k, fd)
		if err := put(c, err); err != nil {
			return nil, err
		}
	}
	if s.RNG {
		if err := put(rng.New(rng.Options{}), nil); err != nil {
			return nil, err
		}
	}
	if s.Balloon {
		d.balloon = balloon.New(balloon.Options{Discard: v.Memory().Discard})
		return d, put(d.balloon, nil)
	}
	return d, nil
}

// disk makes what a block device stores in; fd is -1 if there is no file.
func (d *devices) disk(v *vmm.VM, k diskSetup, fd int) (block.Disk, error) {
	var f *os.File
	if fd >= 0 {
		f = os.NewFile(uintptr(fd), "disk")
	}
	if k.Overlay == 0 {
		return block.NewFile(f, 0, k.ReadOnly)
	}
	top, err := block.NewTop()
	if err != nil {
		return nil, err
	}
	o, err := block.NewOverlay(f, top, int64(k.Overlay))
	if err != nil {
		return nil, err
	}
	c := &overlay{Overlay: o, device: v.Devices(), base: f}
	d.overlays = append(d.overlays, c)
	return c, nil
}

// card makes a network card on a tap or a socket.
func card(k cardSetup, fd int) (*vnet.Device, error) {
	mac, err := net.ParseMAC(k.MAC)
	var st unix.Stat_t
	if err == nil {
		err = unix.Fstat(fd, &st)
	}
	if err == nil {
		err = unix.SetNonblock(fd, true) // before os.NewFile looks
	}
	if err != nil {
		unix.Close(fd)
		return nil, errs.New(errs.Invalid, "vmm process", "card", err)
	}
	f, o := os.NewFile(uintptr(fd), "card"), vnet.Options{MAC: mac, In: k.In, Out: k.Out}
	if st.Mode&unix.S_IFMT == unix.S_IFSOCK {
		return vnet.New(f, o)
	}
	tap, err := vnet.NewTap(f)
	if err != nil {
		return nil, err
	}
	return vnet.New(tap, o)
}

// seal takes what the overlays of a paused VM hold into a snapshot.
func (d *devices) seal(s *snapshot.Snapshot) error {
	for _, o := range d.overlays {
		k, err := snapshot.SealDisk(o.device, o.Overlay)
		if err != nil {
			return err
		}
		s.Disks = append(s.Disks, k)
	}
	return nil
}

// restore gives the overlays what a snapshot holds, and takes its files over. No driver runs yet.
func (d *devices) restore(s *snapshot.Snapshot) error {
	if len(s.Disks) != len(d.overlays) {
		return errs.Msg(errs.Invalid, "vmm process", "restore", fmt.Sprintf("the snapshot has %d overlays, the VM %d", len(s.Disks), len(d.overlays)))
	}
	for i, o := range d.overlays {
		k := &s.Disks[i]
		if k.Device != o.device {
			return errs.Msg(errs.Invalid, "vmm process", "restore", "an overlay of the snapshot is in another place")
		}
		files := []*os.File{nil}
		if o.base != nil {
			fds, err := appendDup(nil, o.base)
			if err != nil {
				return err
			}
			files[0] = os.NewFile(uintptr(fds[0]), "disk")
		}
		top, err := block.NewTop()
		if err != nil {
			return err
		}
		files = append(files, k.Files...)
		k.Files = nil
		n, err := block.RestoreOverlay(k.State, files, top)
		if err != nil {
			return err
		}
		if n.Size() != o.Size() {
			n.Close()
			return errs.Msg(errs.Invalid, "vmm process", "restore", "an overlay of the snapshot has another size")
		}
		old := o.Overlay
		o.Overlay, o.base = n, files[0]
		old.Close()
	}
	return nil
}
