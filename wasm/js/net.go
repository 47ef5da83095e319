package js

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

const (
	connectTimeout = time.Minute
	maxSend        = 64 << 10 // bytes of one write
)

// network does what module net asks for: a verb and its arguments. The answer is '+' and fields, or '-', a number of an error and a text; fields end with a
// NUL byte. Sockets are descriptors: they are read as others are.
//
//	local HOST               "1" if it is the sandbox itself, else ""
//	listen HOST PORT BACKLOG descriptor, host, port
//	accept FD                descriptor, host, port, peer's host, port; EAGAIN
//	connect HOST PORT        the same; outside of the sandbox as its policy allows
//	send FD BYTES            how many went; 0: it would wait
//	end FD                   nothing more is sent
func (in *Interpreter) network(p *proc.Process, a *arguments) ([]byte, error) {
	verb := a.text()
	fields, err := in.networkCall(p, verb, a)
	if err == nil && a.bad {
		err = syscall.EINVAL
	}
	if err != nil {
		text, no := "", int(vfs.Errno(err))
		var e *errs.Error
		if errors.As(err, &e) && e.Kind == errs.Denied {
			if no, text = int(syscall.EACCES), e.Error(); e.Hint != "" {
				text += " (" + e.Hint + ")"
			}
		} else if no == int(syscall.EIO) && verb == "connect" {
			no, text = int(syscall.EHOSTUNREACH), err.Error()
		}
		return fmt.Appendf(nil, "-%d\x00%s\x00", no, text), nil
	}
	out := []byte{'+'}
	for _, f := range fields {
		out = append(append(out, f...), 0)
	}
	return out, nil
}

func (in *Interpreter) networkCall(p *proc.Process, verb string, a *arguments) ([]string, error) {
	switch verb {
	case "local":
		if _, ok := p.Sandbox().Local(a.text()); ok {
			return []string{"1"}, nil
		}
		return []string{""}, nil
	case "listen":
		return listen(p, a.text(), a.number(), a.number())
	case "accept":
		fd, err := p.Accept(a.number(), false)
		if err != nil {
			return nil, err
		}
		return names(p, fd)
	case "connect":
		return in.connect(p, a.text(), a.number())
	case "send":
		return send(p, a.number(), a.bytes())
	case "end":
		fd := a.number()
		err := p.Shutdown(fd, false, true)
		if err == syscall.ENOTSOCK {
			err = nil // a connection to the outside ends when it is closed
		}
		return nil, err
	}
	return nil, syscall.ENOSYS
}

// names are a socket's descriptor and addresses.
func names(p *proc.Process, fd int) ([]string, error) {
	own, peer, err := p.SocketAddrs(fd)
	if err != nil {
		return nil, err
	}
	out := []string{strconv.Itoa(fd)}
	for _, a := range []netip.AddrPort{own, peer} {
		host := ""
		if a.IsValid() {
			host = a.Addr().String()
		}
		out = append(out, host, strconv.Itoa(int(a.Port())))
	}
	return out, nil
}

func listen(p *proc.Process, host string, port, backlog int) ([]string, error) {
	at, err := netip.ParseAddr(host)
	if err != nil {
		ok := false
		if at, ok = p.Sandbox().Local(host); !ok {
			return nil, syscall.EADDRNOTAVAIL
		}
	}
	if port < 0 || port > 65535 {
		return nil, syscall.EINVAL
	}
	fd, err := p.Socket(at.Is6())
	if err != nil {
		return nil, err
	}
	if err = p.SetSocketOption(fd, proc.ReuseAddr, true); err == nil {
		err = p.Bind(fd, netip.AddrPortFrom(at, uint16(port)))
	}
	if err == nil {
		err = p.Listen(fd, backlog)
	}
	if err != nil {
		p.CloseFd(fd)
		return nil, err
	}
	return names(p, fd)
}

func (in *Interpreter) connect(p *proc.Process, host string, port int) ([]string, error) {
	if port < 0 || port > 65535 {
		return nil, syscall.EINVAL
	}
	late := make(chan struct{})
	t := time.AfterFunc(connectTimeout, func() { close(late) })
	defer t.Stop()
	if fd, local, err := p.ConnectLocal(host, uint16(port), late); local {
		if err != nil {
			return nil, err
		}
		return names(p, fd)
	}
	addr := net.JoinHostPort(host, strconv.Itoa(port))
	if in.o.Connect == nil {
		return nil, errs.Msg(errs.Denied, "connect", addr, "this sandbox has no network")
	}
	c, err := in.o.Connect(p)(p.Context(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	f, err := p.OpenConn(c)
	if err != nil {
		return nil, err
	}
	peer, remote, _ := net.SplitHostPort(c.RemoteAddr().String())
	return []string{strconv.Itoa(p.Fd(f)), "0.0.0.0", "0", peer, remote}, nil
}

// send writes as much as there is room for.
func send(p *proc.Process, fd int, b []byte) ([]string, error) {
	room, err := p.WriteRoom(fd)
	if err != nil {
		return nil, err
	}
	if b = b[:min(len(b), maxSend)]; room >= 0 {
		b = b[:min(len(b), room)]
	}
	if len(b) == 0 {
		return []string{"0"}, nil
	}
	n, err := p.Send(fd, b)
	if n > 0 {
		err = nil
	}
	return []string{strconv.Itoa(n)}, err
}
