package ssh_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/control"
	"agentrun.dev/node"
	"agentrun.dev/serve/ssh"
)

// withService starts a server whose logins may be for templates, of which there is "small".
func withService(t *testing.T, change func(*ssh.Options, *ssh.Access)) (*host, *control.Control, *access.Caller) {
	t.Helper()
	var c *control.Control
	h := start(t, func(o *ssh.Options, a *ssh.Access) {
		o.Service = func() *control.Control { return c }
		if change != nil {
			change(o, a)
		}
	})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	guard, err := access.NewGuard(t.Context(), h.keys, access.AuditOptions{})
	must(err)
	c, err = control.Open(t.Context(), control.Options{KV: h.kv, Store: h.store, Keys: h.keys, Guard: guard, Endpoint: "127.0.0.1:7070"})
	must(err)
	must(c.Join(t.Context(), "here", "", node.Local(h.node, "here", "test"), true))
	must(c.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(h.srv.Close(ctx), c.Close(ctx), guard.Close(ctx)); err != nil {
			t.Error(err)
		}
	})
	who := access.System("test")
	_, _, err = c.PutTemplate(t.Context(), who, "small", api.TemplateSpec{Init: []string{"echo built > built"}, Env: map[string]string{"OF": "template"}}, nil)
	must(err)
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		v, err := c.Template(t.Context(), who, "small", 0)
		must(err)
		if v.State == api.BuildReady {
			return h, c, who
		}
		if v.State == api.BuildFailed || time.Now().After(end) {
			t.Fatalf("the template: %+v", v)
		}
	}
}

// boxes lists the sandboxes of the service that run.
func boxes(t *testing.T, c *control.Control, who *access.Caller) []api.Sandbox {
	t.Helper()
	list, err := c.Sandboxes(t.Context(), who, control.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Sandboxes
}

func TestTemplate(t *testing.T) {
	h, c, who := withService(t, func(_ *ssh.Options, a *ssh.Access) { a.Template = "small" })
	client := h.connect("+small")
	expect(t, client, "pwd; cat built; echo $OF", "/workspace\nbuilt\ntemplate\n")
	expect(t, client, "echo mine > file", "")
	expect(t, client, "cat file", "mine\n")
	if list := boxes(t, c, who); len(list) != 1 || list[0].Template != "small" || list[0].Labels["ssh"] == "" || list[0].Owner != "root" {
		t.Errorf("%+v", list)
	}
	expect(t, h.connect("anybody"), "cat built", "built\n")              // by the default
	expect(t, h.connect("other"), "cat hello.txt", "hello from other\n") // a bucket's name
	if _, errOut, err := run(t, h.connect("+large"), "true", ""); err == nil || !strings.Contains(errOut, "without a key there are no sandboxes of this template") {
		t.Errorf("another template: %q, %v", errOut, err)
	}
	if _, errOut, err := run(t, h.connect("+"), "true", ""); err == nil || !strings.Contains(errOut, "which template?") {
		t.Errorf("none: %q, %v", errOut, err)
	}
	s := session(t, client)
	if err := s.RequestPty("xterm", 30, 100, nil); err != nil {
		t.Fatal(err)
	}
	out, err := s.Output("stty size")
	if err != nil || string(out) != "30 100\r\n" {
		t.Errorf("%q, %v", out, err)
	}
	var exit *xssh.ExitError
	if _, _, err := run(t, client, "kill -TERM $$", ""); !errors.As(err, &exit) || exit.Signal() != "TERM" {
		t.Errorf("by a signal: %v", err)
	}
	client.Close()
	for end := time.Now().Add(time.Minute); len(boxes(t, c, who)) != 1; time.Sleep(time.Millisecond) { // the other's connection is open
		if time.Now().After(end) {
			t.Fatalf("after the end: %+v", boxes(t, c, who))
		}
	}
	if b := boxes(t, c, who)[0]; b.Template != "small" || b.Lease.OnExpiry != api.End {
		t.Errorf("%+v", b)
	}
}

// TestTemplateAs: whoever shows a key gets what the service lets them have, as theirs.
func TestTemplateAs(t *testing.T) {
	h, c, who := withService(t, func(o *ssh.Options, a *ssh.Access) { o.Open, a.Open, a.Named = false, false, false })
	login := func(role string) *xssh.Client {
		if _, _, err := h.keys.SetPrincipal(t.Context(), api.Principal{Name: "p-" + role, Role: role}); err != nil {
			t.Fatal(err)
		}
		k, err := h.keys.Create(t.Context(), access.NewKey{Principal: "p-" + role})
		if err != nil {
			t.Fatal(err)
		}
		return h.connect("+small", xssh.Password(k.ID+"."+k.Secret))
	}
	client := login("user")
	keep := session(t, client)
	if err := keep.Setenv(ssh.KeepVariable, "1"); err != nil {
		t.Fatal(err)
	}
	if err := keep.Run("echo kept > file"); err != nil {
		t.Fatal(err)
	}
	list := boxes(t, c, who)
	if len(list) != 1 || list[0].Owner != "p-user" || list[0].Lease.OnExpiry != api.Hibernate {
		t.Fatalf("%+v", list)
	}
	client.Close()
	if _, errOut, err := run(t, h.connect("+nowhere", xssh.Password("root.root-secret")), "true", ""); err == nil || !strings.Contains(errOut, "there is no template of this name") {
		t.Errorf("no such template: %q, %v", errOut, err)
	}
	if list := boxes(t, c, who); len(list) != 1 {
		t.Errorf("kept: %+v", list)
	}
}
