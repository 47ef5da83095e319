package shell

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"

	"agentrun.dev/vfs"
)

// connector connects to the outside, in the way of package command/services.
type connector interface {
	Connect(ctx context.Context, network, addr string) (net.Conn, error)
}

// devTCP opens /dev/tcp/HOST/PORT, which is a connection; ours is false for other names. sh has none.
func (sh *Shell) devTCP(name string) (f vfs.File, ours bool) {
	rest, ok := strings.CutPrefix(name, "/dev/tcp/")
	host, service, both := strings.Cut(rest, "/")
	if !ok || !both || host == "" || sh.posix {
		return nil, false
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		sh.plainf("%s: Servname not supported for ai_socktype", service)
		sh.errorf("%s: %s", name, strerror(syscall.EINVAL))
		return nil, true
	}
	fail := func(err error, text string) (vfs.File, bool) {
		sh.plainf("connect: %s", text)
		sh.errorf("%s: %s", name, strerror(err))
		return nil, true
	}
	fd, local, err := sh.p.ConnectLocal(host, uint16(port), nil)
	if local {
		if err == nil {
			f, err = sh.p.File(fd)
		}
		if err != nil {
			return fail(err, strerror(err))
		}
		return f, true
	}
	out, ok := sh.p.Sandbox().Services().(connector)
	if !ok {
		return fail(syscall.EACCES, "this sandbox has no network")
	}
	c, err := out.Connect(sh.p.Context(), "tcp", net.JoinHostPort(host, service))
	if err == nil {
		if f, err = sh.p.OpenConn(c); err == nil {
			return f, true
		}
	}
	var dns *net.DNSError
	var no syscall.Errno
	switch {
	case errors.As(err, &dns):
		sh.plainf("%s: Name or service not known", host)
		sh.errorf("%s: %s", name, strerror(syscall.EINVAL))
		return nil, true
	case errors.As(err, &no):
		return fail(no, strerror(no))
	}
	return fail(syscall.EACCES, err.Error())
}

// plainf is errorf without the line's number, as bash words what the network says.
func (sh *Shell) plainf(format string, args ...any) {
	sh.flush()
	sh.stderr(sh.name + ": " + fmt.Sprintf(format, args...) + "\n")
}
