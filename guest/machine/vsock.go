package machine

import (
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
)

// Listen listens on a vsock port, for connections from the host only.
func Listen(port uint32) (net.Listener, error) {
	fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, errs.New(errs.Unsupported, "vsock", "", err)
	}
	if err = unix.Bind(fd, &unix.SockaddrVM{CID: unix.VMADDR_CID_ANY, Port: port}); err == nil {
		err = unix.Listen(fd, 16)
	}
	if err != nil {
		unix.Close(fd)
		return nil, errs.New(errs.Unavailable, "vsock", strconv.Itoa(int(port)), err)
	}
	return &listener{f: os.NewFile(uintptr(fd), "vsock"), port: port}, nil
}

// listener waits in Go's poller, as a net.Listener; package net knows no vsock.
type listener struct {
	f    *os.File
	port uint32
}

func (l *listener) Accept() (net.Conn, error) {
	raw, err := l.f.SyscallConn()
	if err != nil {
		return nil, err
	}
	for {
		var fd int
		var from unix.Sockaddr
		var aerr error
		if err := raw.Read(func(s uintptr) bool {
			fd, from, aerr = unix.Accept4(int(s), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
			return aerr != unix.EAGAIN
		}); err != nil {
			return nil, err
		}
		switch aerr {
		case nil:
		case unix.EINTR, unix.ECONNABORTED, unix.ECONNRESET:
			continue
		default:
			return nil, errs.New(errs.Other, "vsock", "accept", aerr)
		}
		vm, ok := from.(*unix.SockaddrVM)
		if !ok || vm.CID != unix.VMADDR_CID_HOST { // a process in here isn't the host
			unix.Close(fd)
			continue
		}
		return Conn{os.NewFile(uintptr(fd), "vsock")}, nil
	}
}

func (l *listener) Close() error   { return l.f.Close() }
func (l *listener) Addr() net.Addr { return addr("vsock:" + strconv.Itoa(int(l.port))) }

// Conn is a file as a net.Conn: a vsock connection, or a device.
type Conn struct{ *os.File }

func (Conn) LocalAddr() net.Addr  { return addr("guest") }
func (Conn) RemoteAddr() net.Addr { return addr("host") }

type addr string

func (addr) Network() string  { return "vsock" }
func (a addr) String() string { return string(a) }

// OpenDevice opens a character device, and waits until the host is at its other end: what is said before that may reach it later, or not.
func OpenDevice(path string) (net.Conn, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errs.New(errs.NotFound, "device", path, err)
	}
	for {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | unix.POLLOUT}}
		if _, err := unix.Poll(p, -1); err != nil && err != unix.EINTR {
			unix.Close(fd)
			return nil, errs.New(errs.Other, "device", path, err)
		} else if err == nil && p[0].Revents&unix.POLLHUP == 0 {
			return Conn{os.NewFile(uintptr(fd), path)}, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
}
