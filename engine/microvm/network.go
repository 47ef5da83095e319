package microvm

import (
	"context"
	"crypto/rand"
	"net"

	"agentrun.dev/command/services"
	"agentrun.dev/egress/uplink"
	"agentrun.dev/errs"
	"agentrun.dev/guest/wire"
)

// baseMAC is the network card's address in a base; each machine gets another before anything in it runs.
var baseMAC = net.HardwareAddr{2, 0, 0x64, 0x40, 0, 2}

// links is how a machine's network is set. All have the same addresses, each at the end of a cable of its own.
func links(mac net.HardwareAddr) []wire.Interface {
	return []wire.Interface{{Name: "eth0", MAC: wire.Text(mac.String()), Address: wire.Text(uplink.Guest.String()), Gateway: wire.Text(uplink.Gateway.String())}}
}

// nameServers are whom a machine asks for names.
func nameServers() []wire.Text { return []wire.Text{wire.Text(uplink.Gateway.String())} }

// newMAC is an address that nobody was given.
func newMAC() (net.HardwareAddr, error) {
	mac := make(net.HardwareAddr, 6)
	if _, err := rand.Read(mac); err != nil {
		return nil, errs.New(errs.Other, "start", "network", err)
	}
	mac[0] = mac[0]&^1 | 2 // of one station, and not its maker's
	return mac, nil
}

// plug connects the machine's network card with the network that its services allow, with the names that it knows from the
// machine that it was forked from. The link ends with the instance.
func (in *Instance) plug(s *services.Services, names []uplink.Name) error {
	var dial func(ctx context.Context, network, addr string) (net.Conn, error)
	if s != nil {
		dial = s.Connect
	}
	l, err := uplink.New(in.proc.Card(0), uplink.Options{Dial: dial, Names: names})
	if err != nil {
		return err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.life.Err() != nil {
		_ = l.Close()
		return in.why("start")
	}
	in.link = l
	return nil
}

// names are those that the machine was told an address of.
func (in *Instance) names() []uplink.Name {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.link == nil {
		return nil
	}
	return in.link.Names()
}
