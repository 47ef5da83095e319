package hosttest

import (
	"maps"
	"strings"

	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// testFilesAs has files that are worked on for others than the sandbox's user, their tags, and where links lead.
func testFilesAs(t *tester) {
	id := t.start(t.build(node.Build{}))
	user := t.files(id)
	root, give := user.As(node.AsRoot), user.As(node.ForUser)
	_, err := user.Write(ctx, "/etc/mine", 0, strings.NewReader("no"))
	t.kind("write", err, errs.Denied)
	t.write(root, "/opt/root/a", "of root")
	t.write(give, "/opt/user/a", "of the user")
	t.ok(give.Mkdir(ctx, "/opt/user/b/c", 0))
	t.ok(give.Move(ctx, "/opt/root/a", "/opt/user/b/a"))
	t.sh(id, "cd /opt; stat -c '%n %U' root user user/*", "root root\nuser user\nuser/a user\nuser/b user\n")
	t.sh(id, "cat /opt/user/b/a; stat -c %U /opt/user/b/a", "of rootroot\n")
	_, err = user.As(node.AsRoot).As(node.AsUser).Write(ctx, "/etc/mine", 0, strings.NewReader("no"))
	t.kind("write again", err, errs.Denied)
	_, err = user.As("somebody").Stat(ctx, "/etc")
	t.kind("somebody", err, errs.Invalid)

	tags := map[string]string{"author": "me", "n": ""}
	t.ok(give.SetTags(ctx, "/opt/user/a", "user.x.", map[string]string{"old": "1", "n": "2"}))
	t.ok(give.SetTags(ctx, "/opt/user/a", "user.x.", tags))
	t.ok(give.SetTags(ctx, "/opt/user/a", "user.y.", map[string]string{"else": "1"}))
	t.sh(id, "ln -s /opt/user/a /workspace/one; ln -s one /workspace/two; ln -s nowhere /workspace/three", "")
	list, err := give.Detail(ctx, []string{"/opt/user/a", "/workspace/two", "/workspace/three", "/nothing", "/opt/user"}, "user.x.")
	t.ok(err)
	if !maps.Equal(list[0].Tags, tags) || list[0].Leads != nil {
		t.Errorf("%+v", list[0])
	}
	if l := list[1].Leads; l == nil || l.Path != "/opt/user/a" || l.Type != "file" || l.Size != 11 {
		t.Errorf("%+v", l)
	}
	for _, d := range list[2:] {
		if d.Leads != nil || len(d.Tags) > 0 {
			t.Errorf("%+v", d)
		}
	}
	t.kind("tags of nothing", give.SetTags(ctx, "/nothing", "user.x.", tags), errs.NotFound)

	// What ended a command is told.
	p, err := t.Host.Exec(ctx, id, engine.Cmd{Args: []string{"sleep", "1000"}})
	t.ok(err)
	t.ok(p.Signal(9))
	if status, err := p.Wait(ctx); status != 137 || err != nil || p.(engine.Signaler).Signaled() != 9 {
		t.Errorf("%d, %v, %d", status, err, p.(engine.Signaler).Signaled())
	}
	p, err = t.Host.Exec(ctx, id, engine.Cmd{Args: []string{"sh", "-c", "exit 137"}})
	t.ok(err)
	if status, err := p.Wait(ctx); status != 137 || err != nil || p.(engine.Signaler).Signaled() != 0 {
		t.Errorf("%d, %v, %d", status, err, p.(engine.Signaler).Signaled())
	}
}
