package hosttest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/node"
	"agentrun.dev/volume"
)

// diff returns what differs, a line each.
func (t *tester) diff(a, b string, paths ...string) string {
	t.Helper()
	var out strings.Builder
	t.ok(t.Host.Diff(ctx, a, b, paths, func(c api.FileChange) error {
		fmt.Fprintf(&out, "%s %s\n", c.Kind, c.Path)
		return nil
	}))
	return out.String()
}

// two returns a sandbox and its fork, with a file of before.
func (t *tester) two() (id, child string) {
	t.Helper()
	spec := t.workspace()
	spec.Volumes = append(spec.Volumes, volume.Spec{Name: "data", Empty: true})
	id, child = t.start(t.build(node.Build{Spec: spec, Init: []string{"echo init > i; chmod 777 /data; echo d > /data/i"}})), t.id()
	t.sh(id, "echo base > a; echo base > b; mkdir d; echo base > d/c; echo x > /data/x", "")
	_, err := t.Host.Fork(ctx, id, node.Fork{IDs: []string{child}, Epoch: 1})
	t.ok(err)
	return id, child
}

func testDiff(t *tester) {
	id, child := t.two()
	t.equal("since the claim", t.diff(id, ""), "added /data/x\nadded /workspace/a\nadded /workspace/b\nadded /workspace/d/c\n")
	t.equal("since the fork", t.diff(child, ""), "")
	t.equal("to the fork", t.diff(id, child), "")
	t.sh(child, "echo more > a; rm b; echo n > /data/n; echo new > d/new", "")
	t.equal("since the fork", t.diff(child, ""), "added /data/n\nmodified /workspace/a\ndeleted /workspace/b\nadded /workspace/d/new\n")
	t.equal("to the fork", t.diff(id, child), "added /data/n\nmodified /workspace/a\ndeleted /workspace/b\nadded /workspace/d/new\n")
	t.equal("from the fork", t.diff(child, id, "/workspace/d", "/workspace/a"), "modified /workspace/a\ndeleted /workspace/d/new\n")
	t.kind("a path", t.Host.Diff(ctx, id, child, []string{"d"}, nil), errs.Invalid)
	stop := errors.New("enough")
	if err := t.Host.Diff(ctx, id, child, nil, func(api.FileChange) error { return stop }); err == nil {
		t.Error("an error of yield got lost")
	}
	var sizes string
	t.ok(t.Host.Diff(ctx, id, child, []string{"/workspace/b"}, func(c api.FileChange) error {
		sizes += fmt.Sprint(c.OldSize, c.NewSize)
		return nil
	}))
	t.equal("sizes", sizes, "5 0")
}

func testMerge(t *tester) {
	id, child := t.two()
	t.sh(child, "echo child > a; echo n > n; rm b; echo y > /data/y", "")
	dry, err := t.Host.Merge(ctx, child, id, api.MergeSandbox{DryRun: true})
	t.ok(err)
	if !dry.DryRun || dry.Added != 2 || dry.Modified != 1 || dry.Deleted != 1 || dry.Source != child || dry.Target != id {
		t.Errorf("%+v", dry)
	}
	t.sh(id, "cat a; ls /data", "base\ni\nx\n")
	_, err = t.Host.Merge(ctx, child, id, api.MergeSandbox{})
	t.ok(err)
	t.sh(id, "cat a n /data/y; ls", "child\nn\ny\na\nd\ni\nn\n")
	// Both change the same: nothing is changed, not even where there is no conflict.
	t.sh(child, "echo 1 > a; echo 2 > /data/z", "")
	t.sh(id, "echo 2 > a", "")
	r, err := t.Host.Merge(ctx, child, id, api.MergeSandbox{})
	t.ok(err)
	if len(r.Conflicts) != 1 || r.Conflicts[0] != "/workspace/a" {
		t.Errorf("%+v", r)
	}
	t.sh(id, "cat a; ls /data", "2\ni\nx\ny\n")
	_, err = t.Host.Merge(ctx, child, id, api.MergeSandbox{Conflicts: api.Theirs})
	t.ok(err)
	t.sh(id, "cat a /data/z", "1\n2\n")
	_, err = t.Host.Merge(ctx, child, id, api.MergeSandbox{Conflicts: "guess"})
	t.kind("a strategy", err, errs.Invalid)
	_, err = t.Host.Merge(ctx, id, id, api.MergeSandbox{})
	t.kind("into itself", err, errs.Invalid)
	// A child that slept meanwhile still knows where it comes from.
	t.sh(child, "echo late > late", "")
	t.ok(t.Host.Hibernate(ctx, child, false))
	_, err = t.Host.Wake(ctx, child, 2, node.Claim{})
	t.ok(err)
	_, err = t.Host.Merge(ctx, child, id, api.MergeSandbox{})
	t.ok(err)
	t.sh(id, "cat late", "late\n")
}

func testSnapshot(t *tester) {
	id, _ := t.two()
	names, err := t.Host.Snapshot(ctx, id, "keep")
	t.ok(err)
	if len(names) != 2 || names["/workspace"] != "keep-workspace" || names["/data"] != "keep-data" {
		t.Errorf("%v", names)
	}
	_, err = t.Host.Snapshot(ctx, id, "keep")
	t.kind("the same name", err, errs.Exists)
	t.sh(id, "echo later > a", "")
	t.ok(t.Host.End(ctx, id))
	other := t.id()
	_, err = t.Host.Start(ctx, node.Start{ID: other, Epoch: 1, Image: "plain@1", Claim: &node.Claim{}, Volumes: []volume.Spec{{Name: "workspace", Base: "keep-workspace"}}})
	t.ok(err)
	t.sh(other, "cat a d/c; ls /data", "base\nbase\ni\n")
	_, err = t.Host.Snapshot(ctx, other, "NOT A NAME")
	t.kind("a name", err, errs.Invalid)
}

func testUsage(t *tester) {
	id := t.start(t.build(node.Build{Init: []string{"head -c 1000000 /dev/urandom > big"}}))
	before, err := t.Host.Usage(ctx, id)
	t.ok(err)
	if before > 300_000 {
		t.Errorf("what it shares with the image counts: %d bytes", before)
	}
	t.sh(id, "head -c 2000000 /dev/urandom > own; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done", "")
	after, err := t.Host.Usage(ctx, id)
	t.ok(err)
	if after < before+2_000_000 || after > before+3_000_000 {
		t.Errorf("%d bytes, then %d", before, after)
	}
	s := t.status(id)
	if s.Written < 2_000_000 || s.Used.Before(s.Started) {
		t.Errorf("%+v", s)
	}
	t.ok(t.Host.Hibernate(ctx, id, false))
	asleep, err := t.Host.Usage(ctx, id)
	if t.ok(err); asleep < 2_000_000 {
		t.Errorf("asleep: %d bytes", asleep)
	}
}

// testBudget: what is beyond its processor time ends, with an error that says so, and nothing more begins.
func testBudget(t *tester) {
	id, image := t.id(), t.build(node.Build{})
	_, err := t.Host.Start(ctx, node.Start{ID: id, Epoch: 1, Image: image})
	t.ok(err)
	t.ok(t.Host.Claim(ctx, id, 1, node.Claim{Budget: node.Budget{CPU: 200 * time.Millisecond}}))
	t.sh(id, "echo enough for this", "enough for this\n")
	_, err = t.Host.Code(ctx, id, node.Code{Text: "while :; do :; done"})
	t.kind("a loop", err, errs.Limit)
	_, err = t.Host.Code(ctx, id, node.Code{Text: "true"})
	t.kind("another command", err, errs.Limit)
	_, err = t.Host.Exec(ctx, id, engine.Cmd{Args: []string{"true"}})
	t.kind("exec", err, errs.Limit)
	t.ok(t.Host.Hibernate(ctx, id, false))
	_, err = t.Host.Wake(ctx, id, 2, node.Claim{})
	t.ok(err)
	t.sh(id, "echo again", "again\n")
	if s := t.status(id); s.CPU > 150*time.Millisecond {
		t.Errorf("what an earlier epoch used counts: %v", s.CPU)
	}
}
