package hosttest

import (
	"maps"
	"slices"
	"strings"

	"agentrun.dev/bucket"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/node"
	"agentrun.dev/volume"
)

// counts waits until the number in the file n has grown: what writes it goes on.
const counts = `a=$(cat n 2>/dev/null); until b=$(cat n 2>/dev/null) && [ -n "$b" ] && [ "$b" -gt "${a:-0}" ]; do sleep 0.01; done; `

// testCapture: an image of a running sandbox has its memory, processes and files, nothing of its claim, and the sandbox goes on.
func testCapture(t *tester) {
	_, err := t.Store.Create(ctx, "private", bucket.CreateOptions{})
	t.ok(err)
	spec := t.workspace()
	spec.Volumes = append(spec.Volumes, volume.Spec{Name: "ours", Empty: true, Policy: volume.Share}, volume.Spec{Name: "scratch", Policy: volume.Fresh})
	image := t.build(node.Build{Spec: spec, Init: []string{"echo init > i; chmod 777 /ours /scratch"}})
	id := t.id()
	_, err = t.Host.Start(ctx, node.Start{ID: id, Epoch: 1, Image: image, Claim: &node.Claim{Env: []string{"K=first"}, Volumes: []volume.Spec{{Name: "private", Bucket: "private"}}}})
	t.ok(err)
	t.sh(id, "echo mine > a; echo m > /tmp/m; echo o > /ours/o; echo s > /scratch/s; echo p > /private/p", "")
	_, err = t.Host.Exec(ctx, id, engine.Cmd{Args: []string{"bash", "-c", "n=0; while :; do sleep 0.01; echo $((n++)) > n; done"}})
	t.ok(err)
	t.sh(id, counts, "")
	shot := node.Capture{Image: "snap-1", Prefix: "keep"}
	kept, err := t.Host.Capture(ctx, id, shot)
	t.ok(err)
	if want := map[string]string{"/workspace": "keep-workspace", "/ours": "keep-ours"}; !maps.Equal(kept, want) {
		t.Errorf("%v", kept)
	}
	t.sh(id, counts+"echo later > a; echo later > /ours/o", "")
	again, err := t.Host.Capture(ctx, id, shot)
	if t.ok(err); !maps.Equal(again, kept) {
		t.Errorf("%v", again)
	}
	_, err = t.Host.Capture(ctx, t.start(image), shot)
	t.kind("another sandbox under the same name", err, errs.Exists)
	t.kind("a build of the same name", t.Host.Build(ctx, node.Build{Image: "snap-1", Spec: spec}, nil), errs.Exists)
	_, err = t.Host.Capture(ctx, id, node.Capture{Image: "../up", Prefix: "x"})
	t.kind("a name", err, errs.Invalid)
	_, err = t.Host.Capture(ctx, id, node.Capture{Image: "snap-2", Prefix: "NOT A NAME"})
	t.kind("a prefix", err, errs.Invalid)
	if images, err := t.Host.Images(ctx); err != nil || !slices.Equal(images, []string{image, "snap-1"}) {
		t.Errorf("%v, %v", images, err)
	}
	if t.Restart != nil { // it is on disk
		t.ok(t.Host.End(ctx, id))
		t.Host = t.Restart()
	}
	one := t.id()
	_, err = t.Host.Start(ctx, node.Start{ID: one, Epoch: 1, Image: "snap-1", Claim: &node.Claim{Env: []string{"K=again"}}})
	t.ok(err)
	two := t.start("snap-1")
	t.sh(one, counts+"cat i a /tmp/m /ours/o /scratch/s; ls /private; echo $K; echo one > a", "init\nmine\nm\no\ns\nagain\n")
	t.sh(two, counts+"cat a; echo $K; echo two > /ours/o", "mine\n\n")
	t.sh(one, "cat /ours/o", "o\n")
	if list, err := t.Host.Processes(ctx, two); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	t.equal("diff", t.diff(one, ""), "modified /workspace/a\nmodified /workspace/n\n")
	// Forks of it share what its own forks share.
	_, err = t.Host.Fork(ctx, one, node.Fork{IDs: []string{"child"}, Epoch: 1})
	t.ok(err)
	t.sh("child", counts+"cat a; ls /scratch; echo child > /ours/o", "one\n")
	t.sh(one, "cat /ours/o", "child\n")
	t.ok(t.Host.Hibernate(ctx, two, false))
	_, err = t.Host.Wake(ctx, two, 2, node.Claim{})
	t.ok(err)
	t.sh(two, counts+"cat a /ours/o", "mine\ntwo\n")
	// A snapshot of what came from one.
	_, err = t.Host.Capture(ctx, two, node.Capture{Image: "snap-2", Prefix: "keep2"})
	t.ok(err)
	t.ok(t.Host.DropImage(ctx, "snap-1"))
	_, err = t.Host.Start(ctx, node.Start{ID: "none", Epoch: 1, Image: "snap-1"})
	t.kind("start of what was dropped", err, errs.NotFound)
	t.sh(one, counts+"cat i", "init\n")
	if t.Restart != nil {
		// Memory is lost in a crash, whatever it came from: what is left is the first image's, with the volumes as they are.
		t.ok(t.Host.Hibernate(ctx, two, false))
		t.sh(one, "sync", "")
		t.Host = t.Restart()
		_, err = t.Host.Wake(ctx, one, 2, node.Claim{})
		t.ok(err)
		t.sh(one, "cat a i; ls /tmp", "one\ninit\n")
		if list, err := t.Host.Processes(ctx, one); err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
	}
	three := t.start("snap-2")
	t.sh(three, counts+"cat a /tmp/m", "mine\nm\n")
	for _, id := range []string{id, one, two, three, "child", "sandbox-2"} {
		t.ok(t.Host.End(ctx, id))
	}
	t.ok(t.Host.DropImage(ctx, "snap-2"))
	t.ok(t.Host.DropImage(ctx, image))
	// What is shared and has slept is the next start's to find.
	if left := slices.DeleteFunc(t.made(), func(name string) bool { return strings.HasSuffix(name, "-ours") }); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := t.Store.Info(ctx, "keep2-workspace"); err != nil {
		t.Error(err)
	}
}

// testShared: two sandboxes that mount the same bucket see one another's writes, as they are made.
func testShared(t *tester) {
	_, err := t.Store.Create(ctx, "ours", bucket.CreateOptions{})
	t.ok(err)
	image := t.build(node.Build{})
	one, two := t.id(), t.id()
	mount := []volume.Spec{{Name: "volume-1", Path: "/mnt/ours", Bucket: "ours", Policy: volume.Share}}
	_, err = t.Host.Start(ctx, node.Start{ID: one, Epoch: 1, Image: image, Claim: &node.Claim{Volumes: mount}})
	t.ok(err)
	_, err = t.Host.Start(ctx, node.Start{ID: two, Epoch: 1, Image: image})
	t.ok(err)
	mount[0].Path = "/data"
	t.ok(t.Host.Claim(ctx, two, 1, node.Claim{Volumes: mount}))
	t.sh(one, "cd /mnt/ours; echo 1 > a; mkdir d; echo x > d/x", "")
	t.sh(two, "cd /data; cat a d/x; echo 2 > a; rm -r d; echo mine > b", "1\nx\n")
	t.sh(one, "cd /mnt/ours; cat a b; ls; echo more >> b", "2\nmine\na\nb\n")
	_, err = t.Host.Fork(ctx, two, node.Fork{IDs: []string{"child"}, Epoch: 1, Claims: []node.Claim{{Volumes: mount}}})
	t.ok(err)
	t.sh("child", "cat /data/b; echo child > /data/c", "mine\nmore\n")
	t.ok(t.Host.Hibernate(ctx, one, false))
	t.sh(two, "echo while > /data/w; cat /data/c", "child\n")
	_, err = t.Host.Wake(ctx, one, 2, node.Claim{Volumes: []volume.Spec{{Name: "volume-1", Path: "/mnt/ours", Bucket: "ours", Policy: volume.Share}}})
	t.ok(err)
	t.sh(one, "cat /mnt/ours/w /mnt/ours/c", "while\nchild\n")
	for _, id := range []string{one, two, "child"} {
		t.ok(t.Host.End(ctx, id))
	}
	if _, err := t.Store.Info(ctx, "ours"); err != nil {
		t.Error(err)
	}
	t.sh(t.start(image), "ls /mnt /data 2>/dev/null; true", "")
}
