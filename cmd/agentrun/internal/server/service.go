package server

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/cmd/agentrun/internal/settings"
	"agentrun.dev/control"
	"agentrun.dev/egress"
	"agentrun.dev/errs"
	"agentrun.dev/node"
	"agentrun.dev/serve/proxy"
	"agentrun.dev/serve/rest"
)

// localNode is the name of the node in the server's own process.
const localNode = "local"

// sleepTimeout bounds how long the end of a server waits for its sandboxes to be saved.
const sleepTimeout = time.Minute

// openService opens who decides and the sandbox service over the node of this process. Addresses are those of the listeners.
func (s *Server) openService(ctx context.Context, c *Config, keys *access.Keys) (err error) {
	if _, err := egress.Parse(c.BuildNetwork); err != nil {
		return err
	}
	if s.guard, err = access.NewGuard(ctx, keys, access.AuditOptions{Retain: c.AuditKeep, Log: c.Log}); err != nil {
		return err
	}
	s.control, err = control.Open(ctx, control.Options{KV: s.store.KV, Store: s.store.Store, Keys: keys, Guard: s.guard, Log: c.Log,
		Endpoint: hostPort(s.Endpoint), S3: func() (string, string) { return s.S3Endpoint, region }, BuildNetwork: c.BuildNetwork,
		Patience: c.MicroVM.requests()})
	if err == nil && !c.NoLocalNode {
		err = s.control.Join(ctx, localNode, "", node.Local(s.node, localNode, c.Version), true)
	}
	if err == nil {
		err = s.control.Start(ctx)
	}
	if err != nil {
		return errors.Join(err, s.closeService(ctx))
	}
	return nil
}

// region is what S3 clients are told.
const region = "auto"

// hostPort is an endpoint without its scheme.
func hostPort(endpoint string) string {
	_, rest, _ := strings.Cut(endpoint, "://")
	return rest
}

// closeService ends the service and who decides. What runs on other nodes goes on.
func (s *Server) closeService(ctx context.Context) error {
	var all []error
	if s.control != nil {
		all = append(all, s.control.Close(ctx))
	}
	return errors.Join(append(all, s.guard.Close(ctx))...)
}

// sealer encrypts what sleeps in a data directory with a key of its own, made of the master key.
func sealer(data string) (cipher.AEAD, error) {
	master, err := settings.LoadMasterKey(data)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, master, nil, "agentrun: what sleeps on a node", 32)
	if err != nil {
		return nil, errs.New(errs.Other, "master key", "", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, errs.New(errs.Other, "master key", "", err)
	}
	return cipher.NewGCM(block)
}

// ports serves what listens in sandboxes.
func ports(c *Config) rest.Ports {
	return func(dial func(*http.Request, string, int) (net.Conn, error)) http.Handler {
		return proxy.New(proxy.Options{Dial: dial, Host: c.PortHost, Cookies: []string{rest.TokenCookie}, Parameters: []string{rest.TokenParameter}, Log: c.Log})
	}
}
