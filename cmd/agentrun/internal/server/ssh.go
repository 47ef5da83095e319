package server

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/control"
	"agentrun.dev/egress"
	"agentrun.dev/errs"
	"agentrun.dev/serve/ssh"
)

// SSH is what 'up' was asked for about SSH.
type SSH struct {
	Listen     string // host:port; "": no SSH
	Template   string // of sandboxes whose user's name is no bucket's; "": the server's own, on a fork of Base
	Base       string // BUCKET or BUCKET@SNAPSHOT that sessions fork; "": an empty one each
	Auth       string // open, keys; "": open where only this machine can connect, else keys
	Authorized string // file of authorized keys; "": ssh/authorized_keys in the data directory
	Keep       bool   // forks outlive their sessions
	Idle       time.Duration
	Max        int
	Network    []string // what sandboxes may connect to, as package egress has it
}

// Ways to log in.
const (
	SSHOpen = "open"
	SSHKeys = "keys"
)

func (c *SSH) validate() error {
	if c.Listen == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(c.Listen)
	switch {
	case err != nil || port == "":
		return errs.Msg(errs.Invalid, "up", "--ssh-listen", "want HOST:PORT, such as 127.0.0.1:7022")
	case c.Auth == "" && loopback(host):
		c.Auth = SSHOpen
	case c.Auth == "":
		c.Auth = SSHKeys
	case c.Auth != SSHOpen && c.Auth != SSHKeys:
		return errs.Msg(errs.Invalid, "up", "--ssh-auth "+c.Auth, "want open or keys")
	}
	if _, err := egress.Parse(c.Network); err != nil {
		return errs.New(errs.Invalid, "up", "--ssh-allow-net", err)
	}
	if c.Idle < 0 || c.Max < 0 {
		return errs.Msg(errs.Invalid, "up", "--ssh-idle, --ssh-max", "want more than nothing")
	}
	return nil
}

// openSSH makes the SSH server and its listener; nil if there is none.
func (s *Server) openSSH(ctx context.Context, c *Config, keys *access.Keys) (net.Listener, error) {
	o := &c.SSH
	if o.Listen == "" {
		return nil, nil
	}
	log := c.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if o.Base != "" {
		if _, _, err := s.store.Point(ctx, o.Base); errs.Is(err, errs.NotFound) {
			log.Warn("the base of SSH sessions doesn't exist yet", "bucket", o.Base)
		} else if err != nil {
			return nil, errs.New(errs.KindOf(err), "up", "--ssh-base", err)
		}
	}
	if o.Authorized == "" {
		o.Authorized = filepath.Join(c.Data, "ssh", "authorized_keys")
	}
	_, bad, err := ssh.CheckAuthorized(o.Authorized)
	if err != nil {
		return nil, err
	}
	for _, err := range bad {
		log.Warn("a key isn't let in", "file", o.Authorized, "err", err)
	}
	key, err := ssh.HostKey(filepath.Join(c.Data, "ssh", "host-key"))
	if err != nil {
		return nil, err
	}
	host, _, _ := net.SplitHostPort(o.Listen)
	open := o.Auth == SSHOpen
	login := &ssh.Access{Store: s.store.Store, Keys: keys, File: o.Authorized, Base: o.Base, Template: o.Template, Open: open, Named: open && loopback(host)}
	l, err := listen("--ssh-listen", o.Listen, nil)
	if err != nil {
		return nil, err
	}
	s.SSHEndpoint, s.SSHOpen = reachable(l), open
	s.ssh = ssh.New(ssh.Options{Node: s.node, Service: func() *control.Control { return s.control }, HostKey: key, Login: login.Login, Open: open, Keep: o.Keep, Network: o.Network, Idle: o.Idle, Max: o.Max, Log: log})
	return l, nil
}
