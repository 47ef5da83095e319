package hosttest

import (
	"bytes"
	"strings"

	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// testNetwork: the rules of a sandbox that runs can be replaced, for it and what it made of itself; the node tells which it applies.
func testNetwork(t *tester) {
	image, id := t.build(node.Build{}), t.id()
	_, err := t.Host.Start(ctx, node.Start{ID: id, Epoch: 3, Image: image})
	t.ok(err)
	t.kind("before the claim", t.Host.SetNetwork(ctx, id, 3, nil), errs.Conflict)
	rules := []string{"first.invalid:80"}
	t.ok(t.Host.Claim(ctx, id, 3, node.Claim{Network: rules}))
	try := func(host string) (denied bool) {
		t.Helper()
		out, status := t.try(id, "curl -sS http://"+host+"/")
		if status == 0 {
			t.Errorf("%s: %s", host, out)
		}
		return strings.Contains(out, "policy")
	}
	if try("first.invalid") || !try("second.invalid") {
		t.Error("the rules of the claim don't hold")
	}
	if s := t.status(id); s.Rules != node.RulesID(rules) {
		t.Errorf("%+v", s)
	}
	rules = []string{"*", "!first.invalid"}
	t.ok(t.Host.SetNetwork(ctx, id, 3, rules))
	if !try("first.invalid") || try("second.invalid") {
		t.Error("the new rules don't hold")
	}
	if s := t.status(id); s.Rules != node.RulesID(rules) {
		t.Errorf("%+v", s)
	}
	t.kind("an older epoch", t.Host.SetNetwork(ctx, id, 2, nil), errs.Conflict)
	t.kind("a rule", t.Host.SetNetwork(ctx, id, 3, []string{"not a rule"}), errs.Invalid)
	t.kind("missing", t.Host.SetNetwork(ctx, "none", 3, nil), errs.NotFound)
	t.ok(t.Host.Hibernate(ctx, id, false))
	t.kind("asleep", t.Host.SetNetwork(ctx, id, 3, nil), errs.Unavailable)
	_, err = t.Host.Wake(ctx, id, 4, node.Claim{})
	t.ok(err)
	if !try("second.invalid") {
		t.Error("it woke up with other rules than it was given")
	}
}

// testHibernateKill: what can't be saved is lost if that is asked for, and whoever waits for a command is told that it sleeps.
func testHibernateKill(t *tester) {
	id := t.start(t.build(node.Build{}))
	var out bytes.Buffer
	p, err := t.Host.Exec(ctx, id, engine.Cmd{Args: []string{"bash", "-c", "n=0; while :; do sleep 0.01; echo $((n++)) > n; done"}, Stdout: &out})
	t.ok(err)
	t.sh(id, counts, "")
	t.sh(id, `case $(fork --name f) in "child 1") sleep 1000;; esac`, "")
	t.kind("with a fork of its own", t.Host.Hibernate(ctx, id, false), errs.Unsupported)
	t.sh(id, counts, "")
	t.ok(t.Host.Hibernate(ctx, id, true))
	_, err = p.Wait(ctx)
	t.kind("the command", err, errs.Unavailable)
	_, err = t.Host.Wake(ctx, id, 2, node.Claim{})
	t.ok(err)
	t.sh(id, counts, "")
	list, err := t.Host.Processes(ctx, id)
	if t.ok(err); len(list) != 1 || list[0].Pid != p.Pid() {
		t.Errorf("%+v", list)
	}
	if i, err := t.Host.Info(ctx); err != nil || i.Sandboxes != 1 {
		t.Errorf("%+v, %v", i, err)
	}
}
