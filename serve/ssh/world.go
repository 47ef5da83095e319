package ssh

import (
	"context"
	"fmt"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/control"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/node"
	"agentrun.dev/volume"
)

// workspace is where the fork is: where sessions start, and what relative paths of transfers are relative to.
const workspace = "/workspace"

// world is a connection's sandbox.
type world interface {
	// exec starts a command of a kind: "shell", "exec" with the text, or "sftp". The rest of c is the session's.
	exec(ctx context.Context, kind, text string, c engine.Cmd) (engine.Process, error)
	// keep has it outlive the connection, under the name that it returns.
	keep(ctx context.Context) (name string, err error)
	// end is for the connection's end.
	end(ctx context.Context, kept bool)
	// greeting is what a terminal is told first.
	greeting(kept string) string
	// keptAs says what is kept.
	keptAs(name string) string
}

// make makes the sandbox that the login is for.
func (c *conn) make() (world, error) {
	if c.login.Refused != nil {
		return nil, c.login.Refused
	}
	if c.login.Template != "" {
		return c.ofTemplate()
	}
	v := volume.Spec{Name: "workspace", Path: workspace, Base: c.login.Base, Empty: c.login.Base == ""}
	sb, err := c.s.o.Node.Create(c.ctx, node.Spec{Volumes: []volume.Spec{v}, Limits: c.s.o.Limits, Network: c.s.o.Network})
	if err != nil {
		return nil, err
	}
	return &own{sb: sb, base: c.login.Base}, nil
}

// own is a sandbox of the server's own engine on a fork of a bucket.
type own struct {
	sb   *node.Sandbox
	base string
}

func (o *own) exec(ctx context.Context, kind, text string, c engine.Cmd) (engine.Process, error) {
	switch kind {
	case "shell":
		c.Args = []string{"bash", "-l"}
	case "sftp":
		c.Args = []string{"sftp-server"}
	default:
		c.Args = []string{"bash", "-c", text}
	}
	c.Dir = workspace
	return o.sb.Exec(ctx, c)
}

func (o *own) keep(ctx context.Context) (string, error) {
	names, err := o.sb.Keep(ctx)
	return names[workspace], err
}

func (o *own) end(ctx context.Context, _ bool) { o.sb.EndSoon(ctx) }

func (o *own) keptAs(name string) string { return "kept as bucket " + name }

func (o *own) greeting(kept string) string {
	of := "an empty bucket"
	if o.base != "" {
		of = "a fork of bucket " + o.base
	}
	end := "It ends when you disconnect, and nothing outside of it has changed."
	if kept != "" {
		end = "It is kept as bucket " + kept + "."
	}
	return fmt.Sprintf("Sandbox %s, on %s at %s.\r\n%s\r\nTry 'snapshot --help', 'fork --help'.\r\n", o.sb.ID(), of, workspace, end)
}

// service is where sandboxes of templates are; nil if there are none.
func (s *Server) service() *control.Control {
	if s.o.Service == nil {
		return nil
	}
	return s.o.Service()
}

// made is a sandbox of the service.
type made struct {
	c   *conn
	use *control.Session
}

// madeLease is that of a sandbox which should have ended with its connection and couldn't, such as when the server crashed.
var madeLease = api.Lease{Duration: 600, Extend: 600, OnExpiry: api.End}

// endTime is how long the end of a connection waits for that of its sandbox; what comes later the lease sees to.
const endTime = time.Minute

// ofTemplate makes a sandbox of the login's template, for as long as the connection lasts.
func (c *conn) ofTemplate() (world, error) {
	s, who := c.s.service(), c.login.Caller
	if s == nil || who == nil {
		return nil, errs.Msg(errs.Unsupported, "ssh", c.login.Template, "there are no sandboxes of templates here")
	}
	lease := madeLease
	sb, err := s.CreateSandbox(c.ctx, who, api.CreateSandbox{Template: c.login.Template, Lease: &lease, Labels: api.Labels{"ssh": c.sc.RemoteAddr().String()}})
	if err != nil {
		return nil, err
	}
	w := &made{c: c}
	if w.use, err = s.Use(c.ctx, who, sb.ID, access.SandboxExec); err != nil {
		c.endMade(context.WithoutCancel(c.ctx), sb.ID)
		return nil, err
	}
	return w, nil
}

func (c *conn) endMade(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	if _, err := c.s.service().EndSandbox(ctx, c.login.Caller, id); err != nil && !errs.Is(err, errs.NotFound) {
		c.s.o.Log.Warn("ssh: end of a sandbox; its lease will", "sandbox", id, "err", err)
	}
}

// Not every image has bash.
const (
	anyShell = "command -v bash >/dev/null && exec bash -l; exec sh -l"
	anyExec  = `command -v bash >/dev/null && exec bash -c "$0"; exec sh -c "$0"`
)

func (m *made) exec(ctx context.Context, kind, text string, c engine.Cmd) (engine.Process, error) {
	switch kind {
	case "shell":
		c.Args = []string{"sh", "-c", anyShell}
	case "sftp":
		// The image's own server, if it has one, would know no more of its files: ours sees them as they are.
		c.Args, c.Own, c.Dir = []string{"sftp-server"}, true, workspace
	default:
		c.Args = []string{"sh", "-c", anyExec, text}
	}
	return m.use.Exec(ctx, c)
}

// keep gives it its template's lease.
func (m *made) keep(ctx context.Context) (string, error) {
	s, who := m.c.s.service(), m.c.login.Caller
	t, err := s.Template(ctx, who, m.use.Sandbox.Template, m.use.Sandbox.Version)
	if err != nil {
		return "", err
	}
	lease := t.Spec.Lease
	for _, d := range []struct {
		field *int64
		usual int64
	}{{&lease.Duration, madeLease.Duration}, {&lease.Extend, madeLease.Extend}} {
		if *d.field == 0 {
			*d.field = d.usual
		}
	}
	if lease.OnExpiry == "" {
		lease.OnExpiry = api.Hibernate
	}
	_, err = s.ChangeSandbox(ctx, who, m.use.Sandbox.ID, api.ChangeSandbox{Lease: &lease})
	return m.use.Sandbox.ID, err
}

func (m *made) end(ctx context.Context, kept bool) {
	m.use.Close()
	if !kept {
		m.c.endMade(ctx, m.use.Sandbox.ID)
	}
}

func (m *made) keptAs(name string) string { return "kept as sandbox " + name }

func (m *made) greeting(kept string) string {
	end := "It ends when you disconnect."
	if kept != "" {
		end = "It is kept when you disconnect: 'agentrun sandboxes', 'agentrun exec'."
	}
	return fmt.Sprintf("Sandbox %s, of template %s, engine %s.\r\n%s\r\n", m.use.Sandbox.ID, m.use.Sandbox.Template, m.use.Sandbox.Engine, end)
}
