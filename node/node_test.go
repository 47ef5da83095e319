package node_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"agentrun.dev/blob/memory"
	"agentrun.dev/bucket"
	"agentrun.dev/engine"
	"agentrun.dev/engine/userspace"
	"agentrun.dev/errs"
	kvmemory "agentrun.dev/kv/memory"
	"agentrun.dev/node"
	"agentrun.dev/volume"
)

var (
	ctx           = context.Background()
	bucketOptions bucket.CreateOptions
)

func newStore(t testing.TB) *bucket.Store {
	t.Helper()
	s, err := bucket.Open(ctx, bucket.Options{KV: kvmemory.New(), Blobs: memory.New(memory.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func newNode(t testing.TB, store *bucket.Store, dir string) *node.Node {
	t.Helper()
	n := node.New(node.Options{Engine: userspace.NewEngine(userspace.EngineOptions{}), Store: store, UID: userspace.UID, GID: userspace.GID, Dir: dir})
	t.Cleanup(func() {
		if err := n.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return n
}

func create(t testing.TB, n *node.Node, spec node.Spec) *node.Sandbox {
	t.Helper()
	s, err := n.Create(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// over is a sandbox whose workspace is a fork of a bucket.
func over(base string) node.Spec {
	return node.Spec{Volumes: []volume.Spec{{Name: "workspace", Base: base}}}
}

// run runs a script and returns what it wrote.
func run(t testing.TB, s *node.Sandbox, script string) string {
	t.Helper()
	out, status := try(t, s, script)
	if status != 0 {
		t.Fatalf("%s\nexit status %d\n%s", script, status, out)
	}
	return out
}

func try(t testing.TB, s *node.Sandbox, script string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	p, err := s.Exec(ctx, engine.Cmd{Args: []string{"bash", "-c", script}, Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	status, err := p.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), status
}

func expect(t testing.TB, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// made returns the names of buckets that were made for sandboxes.
func made(t testing.TB, store *bucket.Store) []string {
	t.Helper()
	var names []string
	err := store.List(ctx, func(i *bucket.Info) error {
		if i.Attributes[volume.Attribute] != "" {
			names = append(names, i.Name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func base(t testing.TB, store *bucket.Store, name string, files ...string) {
	t.Helper()
	if _, err := store.Create(ctx, name, bucket.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	n := newNode(t, store, "")
	s := create(t, n, node.Spec{Volumes: []volume.Spec{{Name: "workspace", Bucket: name}}})
	for _, f := range files {
		run(t, s, "mkdir -p $(dirname "+f+"); echo base > "+f)
	}
	if err := s.End(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestEnd(t *testing.T) {
	store := newStore(t)
	base(t, store, "base", "a", "d/b")
	n := newNode(t, store, "")
	s := create(t, n, over("base"))
	expect(t, run(t, s, "cat a d/b; echo new > a; echo $PWD"), "base\nbase\n/workspace\n")
	if len(made(t, store)) != 1 {
		t.Errorf("buckets made: %v", made(t, store))
	}
	if err := s.End(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.End(ctx); err != nil {
		t.Errorf("a second end: %v", err)
	}
	if left := made(t, store); left != nil {
		t.Errorf("left: %v", left)
	}
	if _, err := s.Fork(ctx, node.ForkOptions{}); !errs.Is(err, errs.Unavailable) {
		t.Errorf("fork after the end: %v", err)
	}
	if _, err := n.Get(s.ID()); !errs.Is(err, errs.NotFound) {
		t.Errorf("get after the end: %v", err)
	}
	other := create(t, n, over("base"))
	expect(t, run(t, other, "cat a"), "base\n")
}

func TestKeep(t *testing.T) {
	store := newStore(t)
	base(t, store, "base", "a")
	n := newNode(t, store, "")
	s := create(t, n, over("base"))
	run(t, s, "echo kept > a")
	kept, err := s.Keep(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.End(ctx); err != nil {
		t.Fatal(err)
	}
	again := create(t, n, over(kept["/workspace"]))
	expect(t, run(t, again, "cat a"), "kept\n")
}

func TestLease(t *testing.T) {
	store := newStore(t)
	base(t, store, "base")
	n := newNode(t, store, "")
	spec := over("base")
	spec.Lease = time.Millisecond
	s := create(t, n, spec)
	<-s.Done()
	for made(t, store) != nil {
		time.Sleep(time.Millisecond)
	}
}

func TestFork(t *testing.T) {
	store := newStore(t)
	base(t, store, "base", "a")
	n := newNode(t, store, "")
	s := create(t, n, over("base"))
	run(t, s, "echo before > b")
	children, err := s.Fork(ctx, node.ForkOptions{Count: 3, Name: "try", Env: []string{"TOKEN=t"}})
	if err != nil {
		t.Fatal(err)
	}
	run(t, s, "echo parent > b")
	for i, c := range children {
		expect(t, run(t, c, "cat b; echo child > b; echo $TOKEN"), "before\nt\n")
		if want := "try-" + string(rune('1'+i)); c.Name() != want || c.Parent() != s.ID() {
			t.Errorf("child %d is %q of %q", i, c.Name(), c.Parent())
		}
	}
	expect(t, run(t, s, "cat b"), "parent\n")
	// A fork that somebody else asked for is no family.
	out, status := try(t, s, "merge try-1")
	if status == 0 || !strings.Contains(out, "no snapshot and no fork") {
		t.Errorf("merge of a stranger: %d %s", status, out)
	}
	if err := s.End(ctx); err != nil {
		t.Fatal(err)
	}
	expect(t, run(t, children[2], "cat b"), "child\n")
}

// TestInside forks a sandbox from inside, lets the children work and merges one.
func TestInside(t *testing.T) {
	store := newStore(t)
	base(t, store, "base", "a", "c")
	n := newNode(t, store, "")
	s := create(t, n, over("base"))
	out := run(t, s, `
x=1
case $(fork -n 2 --name try) in
  "child 1") echo one > a; rm c; echo $x > x; touch done; sleep 1000;;
  "child 2") echo two > a; touch done; sleep 1000;;
  *) ;;
esac
until snapshot diff --name-only try-1 | grep -q done; do sleep 0.01; done
echo parent > p
merge try-1
ls; cat a x
`)
	if !strings.HasSuffix(out, "a\ndone\np\nx\none\n1\n") {
		t.Errorf("%s", out)
	}
	out = run(t, s, `fork --self; echo $?; until snapshot diff --name-only try-2 2>/dev/null | grep -q done; do sleep 0.01; done; merge try-2; echo $?; merge --conflicts theirs try-2 >/dev/null; cat a`)
	if !strings.HasSuffix(out, "two\n") {
		t.Errorf("%s", out)
	}
	if got := len(n.List()); got != 3 {
		t.Errorf("%d sandboxes", got)
	}
	if err := s.End(ctx); err != nil {
		t.Fatal(err)
	}
	if left := made(t, store); left != nil || len(n.List()) != 0 {
		t.Errorf("left: %v, %d", left, len(n.List()))
	}
}

// TestForkBomb forks in every fork. It ends with an error in each of them, and all end with the first.
func TestForkBomb(t *testing.T) {
	store := newStore(t)
	base(t, store, "base")
	n := node.New(node.Options{Engine: userspace.NewEngine(userspace.EngineOptions{}), Store: store, MaxFamily: 9})
	defer n.Close(ctx)
	s := create(t, n, over("base"))
	out := run(t, s, "while fork -n 2 >/dev/null; do :; done 2>&1")
	if !strings.Contains(out, "9 at most") {
		t.Errorf("%s", out)
	}
	if got := len(n.List()); got > 9 {
		t.Errorf("%d sandboxes", got)
	}
	if err := s.End(ctx); err != nil {
		t.Fatal(err)
	}
	if left := made(t, store); left != nil || len(n.List()) != 0 {
		t.Errorf("left: %v, %d", left, len(n.List()))
	}
}

func TestSnapshots(t *testing.T) {
	store := newStore(t)
	base(t, store, "base", "a", "d/b", "gone")
	n := newNode(t, store, "")
	s := create(t, n, over("base"))
	run(t, s, "ln -s a link; chmod 600 a; mkdir -m 700 empty; snapshot take one")
	expect(t, run(t, s, "snapshot diff one; rm -r d empty gone link; echo new > a; echo added > e; mkdir other; snapshot diff --name-only one"),
		"/workspace/a\n/workspace/d/b\n/workspace/e\n/workspace/gone\n/workspace/link\n")
	expect(t, run(t, s, "snapshot restore one >/dev/null; ls -1; cat a d/b gone; readlink link; stat -c '%a %n' a empty"),
		"a\nd\nempty\ngone\nlink\nbase\nbase\nbase\na\n600 a\n700 empty\n")
	out := run(t, s, "snapshot list | wc -l; snapshot take one; echo $?")
	if !strings.Contains(out, "there is a snapshot of this name") || !strings.HasSuffix(out, "\n3\n") {
		t.Errorf("%s", out)
	}
	back := strings.TrimSpace(run(t, s, "snapshot list --json | jq -r .name | grep before-restore"))
	expect(t, run(t, s, "snapshot restore "+back+" >/dev/null; ls; cat a; snapshot delete -q one; snapshot list | grep -cw one || true"), "a\ne\nother\nnew\n0\n")
	memory := create(t, n, node.Spec{})
	if out, status := try(t, memory, "snapshot take"); status != 5 || !strings.Contains(out, "no bucket is mounted") {
		t.Errorf("%d %s", status, out)
	}
}

func TestReadOnly(t *testing.T) {
	store := newStore(t)
	base(t, store, "base", "a")
	n := newNode(t, store, "")
	s := create(t, n, node.Spec{Volumes: []volume.Spec{{Name: "workspace", Bucket: "base", ReadOnly: true}}})
	out := run(t, s, "snapshot list; for c in 'take x' 'restore x' 'delete x'; do snapshot $c && exit 9; done 2>&1; snapshot diff; true")
	if strings.Contains(out, "9") || strings.Count(out, "mounted read-only") < 2 {
		t.Errorf("%s", out)
	}
	if list, err := store.Snapshots(ctx, "base"); err != nil || len(list) != 0 {
		t.Errorf("snapshots: %v %v", list, err)
	}
}

func TestNetwork(t *testing.T) {
	n := newNode(t, nil, "")
	if _, err := n.Create(ctx, node.Spec{Network: []string{"not a rule"}}); !errs.Is(err, errs.Invalid) {
		t.Errorf("%v", err)
	}
	if _, err := n.Create(ctx, node.Spec{ID: "Bad!"}); !errs.Is(err, errs.Invalid) {
		t.Errorf("%v", err)
	}
}

func TestSweep(t *testing.T) {
	store := newStore(t)
	base(t, store, "base", "a")
	n := newNode(t, store, t.TempDir())
	s := create(t, n, over("base"))
	crashed := create(t, n, over("base"))
	// Another node finds them in the store as a crash would leave them.
	other := newNode(t, store, t.TempDir())
	if deleted, err := n.Sweep(ctx); err != nil || deleted != 0 {
		t.Errorf("swept %d of its own: %v", deleted, err)
	}
	mine := create(t, other, over("base"))
	if deleted, err := other.Sweep(ctx); err != nil || deleted != 2 {
		t.Errorf("swept %d: %v", deleted, err)
	}
	expect(t, run(t, mine, "cat a"), "base\n")
	for _, x := range []*node.Sandbox{s, crashed} {
		if err := x.End(ctx); err != nil {
			t.Error(err)
		}
	}
	if got := made(t, store); !slices.Equal(got, []string{mine.Bucket("/workspace").Name()}) {
		t.Errorf("%v", got)
	}
}

func TestHibernate(t *testing.T) {
	store := newStore(t)
	base(t, store, "base", "a")
	dir := t.TempDir()
	n := newNode(t, store, dir)
	spec := over("base")
	spec.Name, spec.Volumes = "nap", append(spec.Volumes, volume.Spec{Name: "scratch"})
	s := create(t, n, spec)
	run(t, s, "echo mine > a; echo note > /scratch/n; echo t > /tmp/t")
	if _, err := s.Exec(ctx, engine.Cmd{Args: []string{"bash", "-c", "x=7; while :; do sleep 0.01; echo $((x++)) > x; done"}}); err != nil {
		t.Fatal(err)
	}
	run(t, s, "until [ -s x ]; do sleep 0.01; done")
	if err := s.Hibernate(ctx); err != nil {
		t.Fatal(err)
	}
	if ids, err := n.Sleeping(); err != nil || !slices.Equal(ids, []string{s.ID()}) {
		t.Errorf("sleeping: %v, %v", ids, err)
	}
	if len(n.List()) != 0 {
		t.Error("it is still listed")
	}
	// The host restarts.
	other := newNode(t, store, dir)
	if deleted, err := other.Sweep(ctx); err != nil || deleted != 0 {
		t.Errorf("swept %d: %v", deleted, err)
	}
	s, err := other.Resume(ctx, s.ID())
	if err != nil {
		t.Fatal(err)
	}
	expect(t, run(t, s, "cat a /scratch/n /tmp/t; until a=$(cat x) && [ -n \"$a\" ]; do :; done; until [ \"$(cat x)\" -gt $((a + 2)) ] 2>/dev/null; do sleep 0.01; done"), "mine\nnote\nt\n")
	if s.Name() != "nap" {
		t.Errorf("name %q", s.Name())
	}
	if ids, err := other.Sleeping(); err != nil || len(ids) != 0 {
		t.Errorf("sleeping: %v, %v", ids, err)
	}
	if _, err := other.Resume(ctx, s.ID()); !errs.Is(err, errs.NotFound) {
		t.Errorf("a second resume: %v", err)
	}
	if err := s.End(ctx); err != nil {
		t.Fatal(err)
	}
	if left := made(t, store); left != nil {
		t.Errorf("left: %v", left)
	}
}
