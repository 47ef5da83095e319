// Package hosttest is the conformance suite of node.Host: what control relies on, of a node in this process and of one far away.
package hosttest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentrun.dev/api"
	"agentrun.dev/bucket"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/node"
	"agentrun.dev/volume"
)

// World is a host to test, with the store of its buckets.
type World struct {
	Host  node.Host
	Store *bucket.Store
	// Restart ends the host as a crash does and returns another one over the same store and folder; nil where it can't.
	Restart func() node.Host
}

// Config says what is tested.
type Config struct {
	// New makes a host without sandboxes and images, which ends with the test.
	New func(t testing.TB) *World
	// Engine is that of all sandboxes, by its name on the host; the host's own when empty.
	Engine string
	// Languages are those whose interpreters the host has, besides shell.
	Languages []string
}

// Run tests a host.
func Run(t *testing.T, c Config) {
	for _, x := range []struct {
		name string
		f    func(*tester)
	}{
		{"Info", testInfo}, {"Build", testBuild}, {"BuildFails", testBuildFails}, {"Drop", testDrop}, {"Start", testStart}, {"StartVolumes", testStartVolumes},
		{"Policies", testPolicies}, {"Claim", testClaim}, {"Fork", testFork}, {"ForkInside", testForkInside}, {"Hibernate", testHibernate}, {"Restart", testRestart},
		{"End", testEnd}, {"Missing", testMissing}, {"Exec", testExec}, {"Processes", testProcesses}, {"Diff", testDiff}, {"Merge", testMerge}, {"Snapshot", testSnapshot},
		{"Capture", testCapture}, {"Network", testNetwork}, {"Shared", testShared}, {"HibernateKill", testHibernateKill},
		{"Usage", testUsage}, {"Files", testFiles}, {"FilesHostile", testFilesHostile}, {"FilesConcurrent", testFilesConcurrent}, {"FilesAs", testFilesAs}, {"Watch", testWatch}, {"Dial", testDial}, {"Budget", testBudget}, {"Shell", testShell}, {"Python", testPython}, {"JavaScript", testJavaScript}, {"Rich", testRich}, {"Sessions", testSessions}, {"Warm", testWarm},
	} {
		t.Run(x.name, func(t *testing.T) { x.f(&tester{TB: t, t: t, c: c, World: c.New(t)}) })
	}
}

var ctx = context.Background()

// tester is one test's world.
type tester struct {
	testing.TB
	t *testing.T
	c Config
	*World
	ids int
}

// ok fails the test for an error.
func (t *tester) ok(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// kind wants an error of a kind.
func (t *tester) kind(what string, err error, want errs.Kind) {
	t.Helper()
	if !errs.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func (t *tester) equal(what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got\n%s\nwant\n%s", what, got, want)
	}
}

// id returns a new one.
func (t *tester) id() string {
	t.ids++
	return fmt.Sprintf("sandbox-%d", t.ids)
}

// workspace is the spec of a sandbox with an empty bucket.
func (t *tester) workspace() node.Spec {
	return node.Spec{Engine: t.c.Engine, Volumes: []volume.Spec{{Name: "workspace", Empty: true}}, Env: []string{"TEMPLATE=yes"}}
}

// build makes an image and returns its name.
func (t *tester) build(b node.Build) string {
	t.Helper()
	if b.Image == "" {
		b.Image = "plain@1"
	}
	if b.Spec.Volumes == nil {
		b.Spec = t.workspace()
	}
	var log bytes.Buffer
	if err := t.Host.Build(ctx, b, &log); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	return b.Image
}

// start starts a sandbox of an image that is claimed at once.
func (t *tester) start(image string) string {
	t.Helper()
	id := t.id()
	_, err := t.Host.Start(ctx, node.Start{ID: id, Epoch: 1, Image: image, Claim: &node.Claim{}})
	t.ok(err)
	return id
}

// try runs a script and returns its output and status.
func (t *tester) try(id, script string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	p, err := t.Host.Exec(ctx, id, engine.Cmd{Args: []string{"bash", "-c", script}, Stdout: &out, Stderr: &out})
	t.ok(err)
	status, err := p.Wait(ctx)
	t.ok(err)
	return out.String(), status
}

// sh wants what a script writes.
func (t *tester) sh(id, script, want string) {
	t.Helper()
	if got, status := t.try(id, script); got != want || status != 0 {
		t.Errorf("%s: status %d, got\n%s\nwant\n%s", script, status, got, want)
	}
}

// status returns a sandbox's, or nil.
func (t *tester) status(id string) *node.Status {
	t.Helper()
	list, err := t.Host.Status(ctx)
	t.ok(err)
	for i := range list {
		if list[i].ID == id {
			return &list[i]
		}
	}
	return nil
}

// made are the buckets made for sandboxes and images.
func (t *tester) made() (names []string) {
	t.Helper()
	t.ok(t.Store.List(ctx, func(i *bucket.Info) error {
		if i.Attributes[volume.Attribute] != "" {
			names = append(names, i.Name)
		}
		return nil
	}))
	return names
}

func testInfo(t *tester) {
	i, err := t.Host.Info(ctx)
	t.ok(err)
	if why, ok := i.Engines[cmp.Or(t.c.Engine, api.Userspace)]; !ok || why != "" {
		t.Errorf("%+v", i)
	}
	t.kind("an engine that it hasn't", t.Host.Build(ctx, node.Build{Image: "no@1", Spec: node.Spec{Engine: "none"}}, nil), errs.Unsupported)
	if i.Name == "" || len(i.Engines) == 0 || i.CPUs < 1 || i.Sandboxes != 0 {
		t.Errorf("%+v", i)
	}
	t.start(t.build(node.Build{}))
	if i, err = t.Host.Info(ctx); err != nil || i.Sandboxes != 1 {
		t.Errorf("%+v, %v", i, err)
	}
}

func testBuild(t *tester) {
	b := node.Build{Image: "tools@3", Spec: t.workspace(), Init: []string{"echo one > a; id -u; pwd", "mkdir -p /opt/x; echo $TEMPLATE > /opt/x/y; echo wrong >&2"}}
	var log bytes.Buffer
	t.ok(t.Host.Build(ctx, b, &log))
	for _, want := range []string{"0\n", "/workspace\n", "wrong\n"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
	log.Reset()
	t.ok(t.Host.Build(ctx, b, &log))
	if log.Len() > 0 {
		t.Errorf("it was built again:\n%s", log.String())
	}
	b.Init = b.Init[:1]
	t.kind("another image of the same name", t.Host.Build(ctx, b, &log), errs.Exists)
	images, err := t.Host.Images(ctx)
	if t.ok(err); !slices.Equal(images, []string{"tools@3"}) {
		t.Errorf("%v", images)
	}
	one, two := t.start("tools@3"), t.start("tools@3")
	t.sh(one, "cat a /opt/x/y; echo mine > a", "one\nyes\n")
	t.sh(two, "cat a; id -un", "one\nuser\n")
	if i, err := t.Host.Info(ctx); err != nil || i.Sandboxes != 2 {
		t.Errorf("the sandbox of the build is still there: %+v, %v", i, err)
	}
}

func testBuildFails(t *tester) {
	var log bytes.Buffer
	err := t.Host.Build(ctx, node.Build{Image: "bad@1", Spec: t.workspace(), Init: []string{"true", "echo so; exit 3", "echo never"}}, &log)
	t.kind("an init line that fails", err, errs.Invalid)
	if err == nil || !strings.Contains(err.Error(), "3") || !strings.Contains(err.Error(), "2") || strings.Contains(log.String(), "never") || !strings.Contains(log.String(), "so\n") {
		t.Errorf("%v\n%s", err, log.String())
	}
	t.kind("a name", t.Host.Build(ctx, node.Build{Image: "../up", Spec: t.workspace()}, &log), errs.Invalid)
	t.kind("a volume", t.Host.Build(ctx, node.Build{Image: "b@1", Spec: node.Spec{Volumes: []volume.Spec{{Name: "x", Base: "none"}}}}, &log), errs.NotFound)
	t.kind("too slow", t.Host.Build(ctx, node.Build{Image: "s@1", Spec: t.workspace(), Init: []string{"sleep 1000"}, Timeout: 1e8}, &log), errs.Invalid)
	if images, err := t.Host.Images(ctx); err != nil || len(images) != 0 {
		t.Errorf("%v, %v", images, err)
	}
	if left := t.made(); left != nil {
		t.Errorf("left: %v", left)
	}
}

func testDrop(t *tester) {
	id := t.start(t.build(node.Build{Init: []string{"echo x > a"}}))
	t.ok(t.Host.DropImage(ctx, "plain@1"))
	t.ok(t.Host.DropImage(ctx, "plain@1"))
	t.sh(id, "cat a", "x\n")
	_, err := t.Host.Start(ctx, node.Start{ID: t.id(), Epoch: 1, Image: "plain@1"})
	t.kind("start", err, errs.NotFound)
	t.ok(t.Host.End(ctx, id))
	if left := t.made(); left != nil {
		t.Errorf("left: %v", left)
	}
}

func testStart(t *tester) {
	image := t.build(node.Build{})
	st := node.Start{ID: "one", Name: "name", Epoch: 2, Image: image}
	r, err := t.Host.Start(ctx, st)
	t.ok(err)
	if len(r.Volumes) != 1 || r.ID != "one" || r.Volumes[0].Spec.Path != "/workspace" || r.Volumes[0].Bucket == "" {
		t.Errorf("%+v", r)
	}
	again, err := t.Host.Start(ctx, st)
	if t.ok(err); again.Volumes[0].Bucket != r.Volumes[0].Bucket {
		t.Errorf("%+v", again)
	}
	st.Epoch = 1
	_, err = t.Host.Start(ctx, st)
	t.kind("an older epoch", err, errs.Conflict)
	_, err = t.Host.Start(ctx, node.Start{ID: "Bad!", Epoch: 1, Image: image})
	t.kind("an id", err, errs.Invalid)
	if s := t.status("one"); s == nil || s.Epoch != 2 || s.Claimed || s.Asleep || s.Started.IsZero() {
		t.Errorf("%+v", s)
	}
}

func testStartVolumes(t *tester) {
	_, err := t.Store.Create(ctx, "private", bucket.CreateOptions{})
	t.ok(err)
	image := t.build(node.Build{Init: []string{"echo image > a"}})
	r, err := t.Host.Start(ctx, node.Start{ID: "one", Epoch: 1, Image: image, Claim: &node.Claim{}, Volumes: []volume.Spec{
		{Name: "workspace", Bucket: "private"}, {Name: "more", Path: "/mnt/more", Empty: true}}})
	t.ok(err)
	if len(r.Volumes) != 2 {
		t.Errorf("%+v", r)
	}
	t.sh("one", "ls; echo kept > k; echo m > /mnt/more/m; cat /mnt/more/m; sync", "m\n")
	two := t.id()
	_, err = t.Host.Start(ctx, node.Start{ID: two, Epoch: 1, Image: image, Claim: &node.Claim{Volumes: []volume.Spec{{Name: "private", Bucket: "private"}}}})
	t.ok(err)
	t.sh(two, "cat a /private/k", "image\nkept\n")
	_, err = t.Host.Start(ctx, node.Start{ID: "bad", Epoch: 1, Image: image, Volumes: []volume.Spec{{Name: "x", Bucket: "none"}}})
	t.kind("a bucket that isn't there", err, errs.NotFound)
	t.ok(t.Host.End(ctx, "one"))
	if _, err := t.Store.Info(ctx, "private"); err != nil {
		t.Error(err)
	}
}

// testPolicies: volumes that forks share or have afresh begin with what the template put into them, in each sandbox its own.
func testPolicies(t *tester) {
	spec := t.workspace()
	spec.Volumes = append(spec.Volumes, volume.Spec{Name: "ours", Empty: true, Policy: volume.Share}, volume.Spec{Name: "scratch", Policy: volume.Fresh})
	image := t.build(node.Build{Spec: spec, Init: []string{"echo init | tee /ours/i /scratch/i; chmod 777 /ours /scratch"}})
	one, two := t.start(image), t.start(image)
	t.sh(one, "cat /ours/i /scratch/i; echo 1 > /ours/one", "init\ninit\n")
	t.sh(two, "ls /ours /scratch", "/ours:\ni\n\n/scratch:\ni\n")
	_, err := t.Host.Fork(ctx, one, node.Fork{IDs: []string{"child"}, Epoch: 1})
	t.ok(err)
	t.sh("child", "cat /ours/one; ls /scratch; echo back > /ours/child", "1\n")
	t.sh(one, "cat /ours/child; echo mine > /scratch/m", "back\n")
	// To sleep isn't to be forked: all is as it was.
	t.ok(t.Host.Hibernate(ctx, one, false))
	t.sh("child", "echo while > /ours/asleep", "")
	t.ok(t.Host.End(ctx, "child"))
	_, err = t.Host.Wake(ctx, one, 2, node.Claim{})
	t.ok(err)
	t.sh(one, "cat /ours/child /ours/asleep /scratch/m", "back\nwhile\nmine\n")
	if t.Restart == nil {
		return
	}
	t.ok(t.Host.Hibernate(ctx, one, false))
	t.Host = t.Restart()
	_, err = t.Host.Wake(ctx, one, 3, node.Claim{})
	t.ok(err)
	t.sh(one, "cat /ours/child /scratch/m", "back\nmine\n")
}

func testClaim(t *tester) {
	_, err := t.Store.Create(ctx, "private", bucket.CreateOptions{})
	t.ok(err)
	image, id := t.build(node.Build{}), t.id()
	_, err = t.Host.Start(ctx, node.Start{ID: id, Epoch: 3, Image: image})
	t.ok(err)
	c := node.Claim{Env: []string{"TOKEN=s3cret", "TEMPLATE=over"}, Network: []string{"example.com:443"}, Volumes: []volume.Spec{{Name: "private", Bucket: "private"}}}
	t.kind("an older epoch", t.Host.Claim(ctx, id, 2, c), errs.Conflict)
	bad := c
	bad.Network = []string{"not a rule"}
	t.kind("a rule", t.Host.Claim(ctx, id, 3, bad), errs.Invalid)
	bad = c
	bad.Volumes = []volume.Spec{{Name: "workspace", Bucket: "private"}}
	if err := t.Host.Claim(ctx, id, 3, bad); err == nil {
		t.Error("mounted over another volume")
	}
	if t.status(id).Claimed {
		t.Error("claimed by a claim that failed")
	}
	t.ok(t.Host.Claim(ctx, id, 3, c))
	t.ok(t.Host.Claim(ctx, id, 3, c))
	if !t.status(id).Claimed {
		t.Error("not claimed")
	}
	t.sh(id, "echo $TOKEN $TEMPLATE; echo p > /private/p; cat /private/p", "s3cret over\np\n")
	if out, status := t.try(id, "curl -sS http://example.org/"); status == 0 || !strings.Contains(out, "policy") {
		t.Errorf("%d %s", status, out)
	}
	p, err := t.Host.Exec(ctx, id, engine.Cmd{Args: []string{"bash", "-c", "[ $TOKEN = own ]"}, Env: []string{"TOKEN=own"}})
	t.ok(err)
	if status, err := p.Wait(ctx); status != 0 || err != nil {
		t.Errorf("the command's own variable: %d, %v", status, err)
	}
}

func testFork(t *tester) {
	id := t.start(t.build(node.Build{}))
	t.sh(id, "echo before > a", "")
	f := node.Fork{IDs: []string{"c1", "c2"}, Names: []string{"x", "y"}, Epoch: 1, Claims: []node.Claim{{Env: []string{"N=1"}}, {Env: []string{"N=2"}}}}
	children, err := t.Host.Fork(ctx, id, f)
	t.ok(err)
	if len(children) != 2 || children[0].ID != "c1" || children[1].ID != "c2" || children[0].Volumes[0].Bucket == children[1].Volumes[0].Bucket {
		t.Errorf("%+v", children)
	}
	again, err := t.Host.Fork(ctx, id, f)
	if t.ok(err); len(again) != 2 || again[1].Volumes[0].Bucket != children[1].Volumes[0].Bucket {
		t.Errorf("%+v", again)
	}
	for i, child := range f.IDs {
		t.sh(child, "cat a; echo $N > a; cat a", fmt.Sprintf("before\n%d\n", i+1))
		if s := t.status(child); s == nil || s.Epoch != 1 || !s.Claimed {
			t.Errorf("%+v", s)
		}
	}
	t.sh(id, "cat a", "before\n")
	// A fork of a fork, which gets nothing of what its parent was claimed with.
	_, err = t.Host.Fork(ctx, "c2", node.Fork{IDs: []string{"g"}, Epoch: 1})
	t.ok(err)
	t.sh("g", "cat a; echo $N", "2\n\n")
	f.Epoch = 7
	_, err = t.Host.Fork(ctx, id, f)
	t.kind("an epoch", err, errs.Conflict)
	_, err = t.Host.Fork(ctx, id, node.Fork{IDs: []string{"c1", "c3"}, Epoch: 1})
	t.kind("some children", err, errs.Conflict)
	_, err = t.Host.Fork(ctx, id, node.Fork{IDs: []string{"d", "d"}, Epoch: 1})
	t.kind("the same twice", err, errs.Invalid)
	_, err = t.Host.Fork(ctx, id, node.Fork{Epoch: 1})
	t.kind("no children", err, errs.Invalid)
	t.ok(t.Host.End(ctx, id))
	t.sh("c1", "cat a", "1\n")
}

// testForkInside: sandboxes that one makes of itself are its own affair.
func testForkInside(t *tester) {
	id := t.id()
	_, err := t.Host.Start(ctx, node.Start{ID: id, Epoch: 1, Image: t.build(node.Build{}), Claim: &node.Claim{Env: []string{"K=v"}}})
	t.ok(err)
	t.sh(id, `case $(fork --name f) in "child 1") echo $K > k; bash -c 'echo $K' >> k; touch done; sleep 1000;; esac
until snapshot diff --name-only f | grep -q done; do sleep 0.01; done; merge f >/dev/null; cat k`, "v\nv\n")
	list, err := t.Host.Status(ctx)
	if t.ok(err); len(list) != 1 || list[0].Processes == 0 {
		t.Errorf("%+v", list)
	}
	t.ok(t.Host.End(ctx, id))
	if i, err := t.Host.Info(ctx); err != nil || i.Sandboxes != 0 {
		t.Errorf("%+v, %v", i, err)
	}
}

func testHibernate(t *tester) {
	id := t.id()
	_, err := t.Host.Start(ctx, node.Start{ID: id, Epoch: 1, Image: t.build(node.Build{Init: []string{"echo init > i"}}), Claim: &node.Claim{Env: []string{"K=first"}}})
	t.ok(err)
	t.sh(id, "echo mine > a; echo $K > /tmp/k", "")
	_, err = t.Host.Exec(ctx, id, engine.Cmd{Args: []string{"bash", "-c", "n=0; while :; do sleep 0.01; echo $((n++)) > n; done"}})
	t.ok(err)
	for i := range 3 {
		epoch := uint64(i + 2)
		t.ok(t.Host.Hibernate(ctx, id, false))
		t.ok(t.Host.Hibernate(ctx, id, false))
		if s := t.status(id); s == nil || !s.Asleep || !s.Claimed || s.Epoch != epoch-1 {
			t.Errorf("%+v", s)
		}
		_, err := t.Host.Exec(ctx, id, engine.Cmd{Args: []string{"true"}})
		t.kind("exec asleep", err, errs.Unavailable)
		_, err = t.Host.Wake(ctx, id, epoch-1, node.Claim{})
		t.kind("wake under the epoch that it had", err, errs.Conflict)
		_, err = t.Host.Start(ctx, node.Start{ID: id, Epoch: epoch, Image: "plain@1"})
		t.kind("start of what sleeps", err, errs.Conflict)
		r, err := t.Host.Wake(ctx, id, epoch, node.Claim{Env: []string{"K=again"}})
		t.ok(err)
		again, err := t.Host.Wake(ctx, id, epoch, node.Claim{})
		if t.ok(err); again.Volumes[0].Bucket != r.Volumes[0].Bucket {
			t.Errorf("%+v", again)
		}
		if s := t.status(id); s == nil || s.Asleep || !s.Claimed || s.Epoch != epoch {
			t.Errorf("%+v", s)
		}
		t.sh(id, `cat i a /tmp/k; echo $K; a=$(cat n 2>/dev/null); until b=$(cat n 2>/dev/null) && [ -n "$b" ] && [ "$b" -gt "${a:-0}" ]; do sleep 0.01; done`, "init\nmine\nfirst\nagain\n")
	}
	_, err = t.Host.Wake(ctx, id, 2, node.Claim{})
	t.kind("an older epoch", err, errs.Conflict)
	// What it began as is still known, however often it slept.
	t.equal("diff", t.diff(id, ""), "added /workspace/a\nadded /workspace/n\n")
	t.ok(t.Host.Hibernate(ctx, id, false))
	t.ok(t.Host.End(ctx, id))
	if s := t.status(id); s != nil {
		t.Errorf("%+v", s)
	}
	t.ok(t.Host.DropImage(ctx, "plain@1"))
	if left := t.made(); left != nil {
		t.Errorf("left: %v", left)
	}
}

// testRestart: images and sleeping sandboxes are there after a crash; those that ran are asleep, with their durable files.
func testRestart(t *tester) {
	if t.Restart == nil {
		t.t.Skip("this host can't be restarted in a test")
	}
	image := t.build(node.Build{Init: []string{"echo init > i"}})
	id, ran, gone := t.start(image), t.id(), t.start(image)
	t.sh(id, "echo mine > a", "")
	t.ok(t.Host.Hibernate(ctx, id, false))
	_, err := t.Host.Start(ctx, node.Start{ID: ran, Epoch: 5, Image: image, Claim: &node.Claim{}, Volumes: []volume.Spec{{Name: "more", Path: "/mnt/more", Empty: true, Policy: volume.Fresh}}})
	t.ok(err)
	t.sh(ran, "echo ran > r; echo more > /mnt/more/m; echo lost > /tmp/l; sync", "")
	t.Host = t.Restart()
	if s := t.status(ran); s == nil || !s.Asleep || s.Epoch != 5 {
		t.Errorf("%+v", s)
	}
	if n, err := t.Host.Usage(ctx, ran); err != nil || n == 0 {
		t.Errorf("%d bytes, %v", n, err)
	}
	_, err = t.Host.Wake(ctx, ran, 5, node.Claim{})
	t.kind("wake under the epoch that it had", err, errs.Conflict)
	_, err = t.Host.Wake(ctx, ran, 6, node.Claim{Env: []string{"K=v"}})
	t.ok(err)
	t.sh(ran, "cat i r /mnt/more/m; ls /tmp; echo $K >> r", "init\nran\nmore\n")
	t.equal("diff", t.diff(ran, ""), "added /mnt/more/m\nadded /workspace/r\n")
	_, err = t.Host.Fork(ctx, ran, node.Fork{IDs: []string{"child"}, Epoch: 6})
	t.ok(err)
	t.sh("child", "cat r; ls /mnt/more; echo c > c; sync", "ran\nv\n")
	t.ok(t.Host.Hibernate(ctx, ran, false))
	_, err = t.Host.Wake(ctx, ran, 7, node.Claim{})
	t.ok(err)
	t.sh(ran, "echo again >> r; sync", "")
	t.ok(t.Host.End(ctx, gone))
	t.Host = t.Restart()
	_, err = t.Host.Wake(ctx, ran, 8, node.Claim{})
	t.ok(err)
	t.sh(ran, "cat r", "ran\nv\nagain\n")
	t.equal("diff", t.diff(ran, ""), "added /mnt/more/m\nadded /workspace/r\n")
	_, err = t.Host.Wake(ctx, "child", 2, node.Claim{})
	t.ok(err)
	t.sh("child", "cat c r", "c\nran\nv\n")
	if _, err := t.Host.Merge(ctx, "child", ran, api.MergeSandbox{}); err != nil {
		t.Error(err)
	}
	t.sh(ran, "cat c", "c\n")
	t.ok(t.Host.End(ctx, ran))
	t.Host = t.Restart()
	t.ok(t.Host.End(ctx, "child"))
	if s := t.status(id); s == nil || !s.Asleep || s.Epoch != 1 || !s.Claimed {
		t.Errorf("%+v", s)
	}
	_, err = t.Host.Wake(ctx, id, 2, node.Claim{})
	t.ok(err)
	t.sh(id, "cat i a", "init\nmine\n")
	t.equal("diff", t.diff(id, ""), "added /workspace/a\n")
	t.sh(t.start(image), "cat i; ls", "init\ni\n")
	t.ok(t.Host.Hibernate(ctx, id, false))
	t.Host = t.Restart()
	t.ok(t.Host.End(ctx, id))
	t.ok(t.Host.DropImage(ctx, image))
	t.Host = t.Restart()
	if left := t.made(); left != nil {
		t.Errorf("left: %v", left)
	}
}

func testEnd(t *tester) {
	id := t.start(t.build(node.Build{}))
	p, err := t.Host.Exec(ctx, id, engine.Cmd{Args: []string{"sleep", "1000"}})
	t.ok(err)
	t.ok(t.Host.End(ctx, id))
	t.ok(t.Host.End(ctx, id))
	if status, err := p.Wait(ctx); err == nil && status != 137 {
		t.Errorf("what ran in it: %d, %v", status, err)
	}
	_, err = t.Host.Exec(ctx, id, engine.Cmd{Args: []string{"true"}})
	t.kind("exec", err, errs.NotFound)
	t.ok(t.Host.DropImage(ctx, "plain@1"))
	if left := t.made(); left != nil {
		t.Errorf("left: %v", left)
	}
}

// testMissing: what isn't there is errs.NotFound, or fine where it is to be gone.
func testMissing(t *tester) {
	t.ok(t.Host.End(ctx, "none"))
	t.kind("claim", t.Host.Claim(ctx, "none", 1, node.Claim{}), errs.NotFound)
	t.kind("hibernate", t.Host.Hibernate(ctx, "none", false), errs.NotFound)
	_, err := t.Host.Wake(ctx, "none", 1, node.Claim{})
	t.kind("wake", err, errs.NotFound)
	_, err = t.Host.Fork(ctx, "none", node.Fork{IDs: []string{"a"}, Epoch: 1})
	t.kind("fork", err, errs.NotFound)
	_, err = t.Host.Usage(ctx, "none")
	t.kind("usage", err, errs.NotFound)
	_, err = t.Host.Exec(ctx, "none", engine.Cmd{Args: []string{"true"}})
	t.kind("exec", err, errs.NotFound)
	_, err = t.Host.Code(ctx, "none", node.Code{Text: "true"})
	t.kind("code", err, errs.NotFound)
	_, err = t.Host.Processes(ctx, "none")
	t.kind("processes", err, errs.NotFound)
	t.kind("signal", t.Host.Signal(ctx, "none", 1, 15), errs.NotFound)
	_, err = t.Host.Snapshot(ctx, "none", "x")
	t.kind("snapshot", err, errs.NotFound)
	_, err = t.Host.Capture(ctx, "none", node.Capture{Image: "snap", Prefix: "x"})
	t.kind("capture", err, errs.NotFound)
	t.kind("diff", t.Host.Diff(ctx, "none", "", nil, nil), errs.NotFound)
	_, err = t.Host.Merge(ctx, "none", "other", api.MergeSandbox{})
	t.kind("merge", err, errs.NotFound)
	_, err = t.Host.Start(ctx, node.Start{ID: "a", Epoch: 1, Image: "none@1"})
	t.kind("start", err, errs.NotFound)
}

func testExec(t *tester) {
	id := t.start(t.build(node.Build{}))
	var out, wrong bytes.Buffer
	p, err := t.Host.Exec(ctx, id, engine.Cmd{Args: []string{"bash", "-c", "cat; echo $TEMPLATE >&2; id -u; exit 7"}, Stdin: strings.NewReader("in\n"), Stdout: &out, Stderr: &wrong, Root: true, Dir: "/"})
	t.ok(err)
	status, err := p.Wait(ctx)
	if t.ok(err); status != 7 || out.String() != "in\n0\n" || wrong.String() != "yes\n" {
		t.Errorf("%d %q %q", status, out.String(), wrong.String())
	}
	p, err = t.Host.Exec(ctx, id, engine.Cmd{Args: []string{"no-such-command"}})
	t.ok(err)
	if status, err := p.Wait(ctx); status != 127 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
	short, cancel := context.WithCancel(ctx)
	p, err = t.Host.Exec(ctx, id, engine.Cmd{Args: []string{"sleep", "1000"}})
	t.ok(err)
	cancel()
	if _, err = p.Wait(short); !errs.Is(err, errs.Canceled) {
		t.Errorf("%v", err)
	}
}

func testProcesses(t *tester) {
	id := t.start(t.build(node.Build{}))
	t.sh(id, "touch x", "")
	p, err := t.Host.Exec(ctx, id, engine.Cmd{Args: []string{"sleep", "1000"}})
	t.ok(err)
	list, err := t.Host.Processes(ctx, id)
	if t.ok(err); len(list) != 1 || list[0].Pid != p.Pid() || strings.Join(list[0].Args, " ") != "sleep 1000" {
		t.Fatalf("%+v", list)
	}
	_, err = t.Host.Attach(ctx, id, p.Pid(), engine.Cmd{})
	t.kind("attach to what has a client", err, errs.Exists)
	_, err = t.Host.Attach(ctx, id, 99999, engine.Cmd{})
	t.kind("attach to nothing", err, errs.NotFound)
	_, err = t.Host.Fork(ctx, id, node.Fork{IDs: []string{"child"}, Epoch: 1})
	t.ok(err)
	t.kind("signal to nothing", t.Host.Signal(ctx, id, 99999, 15), errs.NotFound)
	t.ok(t.Host.Signal(ctx, id, p.Pid(), 15))
	if status, err := p.Wait(ctx); status != 143 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
	list, err = t.Host.Processes(ctx, "child")
	if t.ok(err); len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	var out bytes.Buffer
	c, err := t.Host.Attach(ctx, "child", list[0].Pid, engine.Cmd{Stdout: &out})
	t.ok(err)
	t.ok(t.Host.Signal(ctx, "child", list[0].Pid, 9))
	if status, err := c.Wait(ctx); status != 137 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
	// How a command ended is told for a while, also to who comes late.
	for pid, want := range map[int]int{p.Pid(): 143, list[0].Pid: 137} {
		where := id
		if want == 137 {
			where = "child"
		}
		late, err := t.Host.Attach(ctx, where, pid, engine.Cmd{Stdout: &out})
		t.ok(err)
		if status, err := late.Wait(ctx); status != want || err != nil || late.Pid() != pid {
			t.Errorf("%d of %d, %v", status, late.Pid(), err)
		}
		if x, ok := late.(engine.Signaler); !ok || x.Signaled() != want-128 {
			t.Errorf("the signal that ended %d isn't told", pid)
		}
	}
	p, err = t.Host.Exec(ctx, id, engine.Cmd{Args: []string{"bash", "-c", "exit 7"}})
	t.ok(err)
	_, err = p.Wait(ctx)
	t.ok(err)
	late, err := t.Host.Attach(ctx, id, p.Pid(), engine.Cmd{})
	t.ok(err)
	if status, err := late.Wait(ctx); status != 7 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
}
