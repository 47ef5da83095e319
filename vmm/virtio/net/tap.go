package net

import (
	"os"

	"agentrun.dev/errs"
	"golang.org/x/sys/unix"
)

// Tap is a tap device of the host's, as a connection for a Device.
type Tap struct{ *os.File }

// OpenTap makes or joins a tap device; an empty name lets the host choose one. It needs CAP_NET_ADMIN in the present network
// namespace. Name tells its name.
func OpenTap(name string) (*Tap, string, error) {
	fail := func(err error) (*Tap, string, error) { return nil, "", errs.New(errs.Other, "tap", name, err) }
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return fail(err)
	}
	ifr, err := unix.NewIfreq(name)
	if err == nil {
		ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr)
	}
	if err != nil {
		_ = unix.Close(fd)
		return fail(err)
	}
	t, err := NewTap(os.NewFile(uintptr(fd), "tap"))
	if err != nil {
		return fail(err)
	}
	return t, ifr.Name(), nil
}

// NewTap takes a descriptor of a tap device that was opened with IFF_TAP, IFF_NO_PI and IFF_VNET_HDR, and non-blocking, as
// another process hands it over. It is closed if it can't be used.
func NewTap(f *os.File) (*Tap, error) {
	t := &Tap{f}
	size := int32(headerSize)
	if err := t.control(func(fd int) error { return unix.IoctlSetPointerInt(fd, unix.TUNSETVNETHDRSZ, int(size)) }); err != nil {
		_ = f.Close()
		return nil, errs.New(errs.Other, "tap", "header", err)
	}
	return t, nil
}

// control calls an ioctl without making the descriptor blocking, as Fd would.
func (t *Tap) control(f func(fd int) error) error {
	raw, err := t.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// SetOffloads tells the kernel what may be left to the guest. What the guest leaves to the kernel needs no telling.
func (t *Tap) SetOffloads(features uint64) error {
	mask := 0
	for bit, flag := range map[uint]int{FeatureGuestChecksum: unix.TUN_F_CSUM, FeatureGuestTSO4: unix.TUN_F_TSO4, FeatureGuestTSO6: unix.TUN_F_TSO6} {
		if features>>bit&1 != 0 {
			mask |= flag
		}
	}
	if mask&unix.TUN_F_CSUM == 0 {
		mask = 0 // segmentation needs checksums
	}
	if err := t.control(func(fd int) error { return unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, mask) }); err != nil {
		return errs.New(errs.Other, "tap", "offloads", err)
	}
	return nil
}
