// Package kvm is Linux's KVM interface in Go types: the system (/dev/kvm), a VM and a vCPU, each one a descriptor with
// its ioctls. It has no opinions and keeps no state of its own beyond descriptors and the page that a vCPU shares
// with the kernel. Structures and numbers of x86 are in x86.go alone.
//
// The source of everything here is the kernel's Documentation/virt/kvm/api.rst; method names follow the ioctls.
// A descriptor that is used after Close gives EBADF, as the kernel says it: callers own the order.
package kvm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
)

// Path is the device.
const Path = "/dev/kvm"

// apiVersion is the only version that has been stable since Linux 2.6.22.
const apiVersion = 12

// Cap is a capability, as KVM_CHECK_EXTENSION numbers it.
type Cap int

// Capabilities that this package's users ask for.
const (
	CapIRQChip       Cap = 0
	CapUserMemory    Cap = 3
	CapSetTSSAddr    Cap = 4
	CapVCPUs         Cap = 9
	CapMemSlots      Cap = 10
	CapMPState       Cap = 14
	CapSyncMMU       Cap = 16
	CapIRQFD         Cap = 32
	CapPIT2          Cap = 33
	CapIOEventFD     Cap = 36
	CapAdjustClock   Cap = 39
	CapVCPUEvents    Cap = 41
	CapDebugRegs     Cap = 50
	CapXSave         Cap = 55
	CapXCRs          Cap = 56
	CapTSCControl    Cap = 60
	CapGetTSCKHz     Cap = 61
	CapMaxVCPUs      Cap = 66
	CapTSCDeadline   Cap = 72
	CapKVMClockCtrl  Cap = 76
	CapImmediateExit Cap = 136
	CapXSave2        Cap = 208
)

// System is an open /dev/kvm. Its methods may be called at the same time.
type System struct {
	fd      int
	runSize int
}

// Open opens /dev/kvm and checks that it speaks the stable interface. Errors: NotFound without the device, Denied
// without the right to open it, Unsupported when it lacks what every VM here needs; each with a hint.
func Open() (*System, error) {
	fd, err := retry(func() (int, error) { return unix.Open(Path, unix.O_RDWR|unix.O_CLOEXEC, 0) })
	switch {
	case errors.Is(err, fs.ErrNotExist), err == unix.ENXIO, err == unix.ENODEV:
		return nil, errs.New(errs.NotFound, "kvm: open", Path, err).
			WithHint("load the module (modprobe kvm_intel or kvm_amd), or turn virtualization on in the firmware or for this VM")
	case errors.Is(err, fs.ErrPermission):
		return nil, errs.New(errs.Denied, "kvm: open", Path, err).
			WithHint("let this user open it: usermod -aG kvm " + userName() + ", or chmod 666 " + Path)
	case err != nil:
		return nil, errs.New(errs.Other, "kvm: open", Path, err)
	}
	s := &System{fd: fd}
	if err := s.init(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// userName names the user for a hint.
func userName() string {
	return fmt.Sprintf("$(id -nu %d)", os.Getuid())
}

// init checks the version and what no VM here can do without.
func (s *System) init() error {
	v, err := ioctl(s.fd, getAPIVersion, 0)
	if err != nil || v != apiVersion {
		return errs.Msg(errs.Unsupported, "kvm: open", Path, fmt.Sprintf("its interface has version %d, not %d", v, apiVersion))
	}
	for _, c := range []struct {
		cap  Cap
		name string
	}{{CapUserMemory, "user memory"}, {CapSyncMMU, "synchronous MMU"}, {CapImmediateExit, "immediate exit"}, {CapVCPUEvents, "vCPU events"}} {
		if s.Check(c.cap) <= 0 {
			return errs.Msg(errs.Unsupported, "kvm: open", Path, "the kernel's KVM lacks "+c.name).WithHint("Linux 5.10 or later is needed")
		}
	}
	if s.runSize, err = ioctl(s.fd, getVCPUMmapSize, 0); err != nil {
		return errs.New(errs.Other, "kvm: open", Path, err)
	}
	if s.runSize < runSizeMin {
		return errs.Msg(errs.Unsupported, "kvm: open", Path, "a vCPU's shared page is too small")
	}
	return nil
}

// Close closes the device. VMs that were made from it live on.
func (s *System) Close() error { return unix.Close(s.fd) }

// Check returns what the kernel says about a capability: 0 is no, more is yes or how many.
func (s *System) Check(c Cap) int {
	n, err := ioctl(s.fd, checkExtension, uintptr(c))
	if err != nil {
		return 0
	}
	return n
}

// CreateVM makes a VM without memory, interrupt controllers or vCPUs.
func (s *System) CreateVM() (*VM, error) {
	fd, err := ioctl(s.fd, createVM, 0)
	if err != nil {
		return nil, fail("create VM", err)
	}
	return &VM{fd: fd, runSize: s.runSize}, nil
}

// fail is an ioctl's error: the kernel's refusals for want of something are told from the rest.
func fail(op string, err error) error {
	kind := errs.Other
	switch err {
	case unix.ENOMEM, unix.EMFILE, unix.ENFILE, unix.ENOSPC:
		kind = errs.Limit
	case unix.EINVAL:
		kind = errs.Invalid
	case unix.EPERM, unix.EACCES:
		kind = errs.Denied
	}
	return errs.New(kind, "kvm", op, err)
}

// retry repeats a call that a signal interrupted. Go's own scheduler sends some.
func retry(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if err != unix.EINTR {
			return n, err
		}
	}
}

// ioctl with a plain number.
func ioctl(fd int, req, arg uintptr) (int, error) {
	for {
		n, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), req, arg)
		if e == 0 {
			return int(n), nil
		}
		if e != unix.EINTR {
			return 0, e
		}
	}
}

// ioctlp is an ioctl with a pointer to a structure.
func ioctlp(fd int, req uintptr, p unsafe.Pointer) (int, error) {
	for {
		n, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), req, uintptr(p))
		runtime.KeepAlive(p)
		if e == 0 {
			return int(n), nil
		}
		if e != unix.EINTR {
			return 0, e
		}
	}
}
