package userspace

import (
	"context"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"agentrun.dev/command/services"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// maxHosts bounds how much of /etc/hosts is looked at.
const maxHosts = 64 << 10

// network puts the sandbox's own network before the one outside: what is local never leaves the sandbox.
type network struct {
	outside *services.Services // may be nil
	sb      *proc.Sandbox      // set before anything runs
}

// services is what the sandbox's commands may ask for.
func (n *network) services() *services.Services {
	out := &services.Services{}
	if n.outside != nil {
		*out = *n.outside
	}
	beyond := *out
	out.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if c, local, err := n.sb.DialLocal(ctx, network, n.known(ctx, addr)); local {
			return c, err
		}
		return beyond.Connect(ctx, network, addr)
	}
	return out
}

// known returns an address of the sandbox's own for a name to which /etc/hosts gives one.
func (n *network) known(ctx context.Context, addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if _, local := n.sb.Local(host); local {
		return addr
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return addr
	}
	f, err := n.sb.Namespace().Open(ctx, vfs.Cred{}, "/", "/etc/hosts", syscall.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return addr
	}
	defer f.Close()
	if a, err := f.Attr(); err != nil || a.Mode&vfs.ModeType != vfs.ModeRegular {
		return addr
	}
	text, err := io.ReadAll(io.LimitReader(f, maxHosts))
	if err != nil {
		return addr
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		for i := 1; i < len(fields); i++ {
			if !strings.EqualFold(fields[i], strings.TrimSuffix(host, ".")) {
				continue
			}
			if a, err := netip.ParseAddr(fields[0]); err == nil && a.IsLoopback() {
				return net.JoinHostPort(a.String(), port)
			}
			return addr
		}
	}
	return addr
}

// Dial implements engine.Dialer.
func (s *Sandbox) Dial(ctx context.Context, port int) (net.Conn, error) { return s.sb.Dial(ctx, port) }
