package node_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"agentrun.dev/api"
	"agentrun.dev/bucket"
	"agentrun.dev/engine"
	"agentrun.dev/engine/userspace"
	"agentrun.dev/errs"
	"agentrun.dev/node"
	"agentrun.dev/node/hosttest"
	"agentrun.dev/volume"
	"agentrun.dev/wasm/guests"
)

// interpreters are what all tests share: to load them takes a while.
var interpreters = sync.OnceValue(func() *userspace.Guests {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return userspace.NewGuests(userspace.GuestOptions{CacheDir: filepath.Join(cache, "agentrun-test", "wasm")})
})

// languages are those that were built.
func languages() (out []string) {
	if guests.Has("python.wasm") {
		out = append(out, api.Python)
	}
	if guests.Has("js.wasm") {
		out = append(out, api.JavaScript)
	}
	return out
}

// other is the name of a second engine that newHost's nodes have.
const other = "other"

// newHost returns a host with interpreters.
func newHost(t testing.TB, store *bucket.Store, o node.Options) (node.Host, *node.Node) {
	o.Engine, o.Store, o.UID, o.GID = userspace.NewEngine(userspace.EngineOptions{Commands: interpreters()}), store, userspace.UID, userspace.GID
	if o.Engines == nil {
		o.Engines = map[string]engine.Engine{other: userspace.NewEngine(userspace.EngineOptions{Commands: interpreters()})}
	}
	n := node.New(o)
	t.Cleanup(func() { n.Close(ctx) })
	if _, err := n.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	return node.Local(n, "here", "test"), n
}

func newWorld(t testing.TB) *hosttest.World {
	w, dir := &hosttest.World{Store: newStore(t)}, t.TempDir()
	// One that ends as by a crash is left to itself until the test's end.
	w.Restart = func() node.Host {
		h, _ := newHost(t, w.Store, node.Options{Dir: dir})
		return h
	}
	w.Host = w.Restart()
	return w
}

func TestHost(t *testing.T) {
	hosttest.Run(t, hosttest.Config{Languages: languages(), New: newWorld})
}

// TestHostOther: the same, of an engine that sandboxes name.
func TestHostOther(t *testing.T) {
	hosttest.Run(t, hosttest.Config{Engine: other, New: newWorld})
}

// TestSecrets: what a claim gives is in no file of the node: not of a warm sandbox, not of one that sleeps. What a program has in its memory
// is in the file of its sandbox's sleep, which is why those are sealed.
func TestSecrets(t *testing.T) {
	const secret = "s3cret-that-must-not-be-found"
	block, err := aes.NewCipher(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	find := func(dir, what string) (found []string) {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			if bytes.Contains(b, []byte(what)) {
				found = append(found, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	claim := node.Claim{Env: []string{"TOKEN=" + secret}, Network: []string{"secret.example.com:443"}}
	spec := node.Spec{Volumes: []volume.Spec{{Name: "workspace", Empty: true}}, Env: []string{"KNOWN=" + "of-the-template"}}
	for _, c := range []struct {
		name   string
		seal   cipher.AEAD
		memory bool // a program has the secret in memory
	}{{"idle", nil, false}, {"sealed", seal, false}, {"sealed, in memory", seal, true}} {
		store, dir := newStore(t), t.TempDir()
		h, _ := newHost(t, store, node.Options{Dir: dir, Seal: c.seal})
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(c.name, err)
			}
		}
		check(h.Build(ctx, node.Build{Image: "i@1", Spec: spec, Init: []string{"echo x > a"}}, nil))
		_, err := h.Start(ctx, node.Start{ID: "one", Epoch: 1, Image: "i@1"})
		check(err)
		check(h.Claim(ctx, "one", 1, claim))
		if _, err := h.Code(ctx, "one", node.Code{Text: "test $TOKEN && cat a"}); err != nil {
			t.Fatal(err)
		}
		if c.memory {
			r, err := h.Code(ctx, "one", node.Code{Text: "x=$TOKEN", Session: "keeps-it"})
			if err != nil || r.Status != 0 {
				t.Fatal(r, err)
			}
		}
		_, err = h.Capture(ctx, "one", node.Capture{Image: "snap", Prefix: "keep"})
		check(err)
		check(h.Hibernate(ctx, "one", false))
		if found := find(dir, secret); found != nil {
			t.Errorf("%s: in %v", c.name, found)
		}
		if found := find(dir, "secret.example.com"); found != nil {
			t.Errorf("%s: the rules are in %v", c.name, found)
		}
		if found := find(dir, "of-the-template"); (found == nil) != (c.seal != nil) {
			t.Errorf("%s: in %v", c.name, found)
		}
		// Another node wakes it up.
		h, _ = newHost(t, store, node.Options{Dir: dir, Seal: c.seal})
		_, err = h.Wake(ctx, "one", 2, node.Claim{})
		check(err)
		var out bytes.Buffer
		_, err = h.Code(ctx, "one", node.Code{Text: "echo \"[$TOKEN$x]\"; cat a", Session: "keeps-it", Stdout: &out})
		check(err)
		want := "[]\nx\n"
		if c.memory {
			want = "[" + secret + "]\nx\n"
		}
		expect(t, out.String(), want)
		_, err = h.Start(ctx, node.Start{ID: "two", Epoch: 1, Image: "i@1", Claim: &node.Claim{}})
		check(err)
		_, err = h.Start(ctx, node.Start{ID: "three", Epoch: 1, Image: "snap", Claim: &node.Claim{}})
		check(err)
		out.Reset()
		_, err = h.Code(ctx, "three", node.Code{Text: "echo \"[$TOKEN$x]\"; cat a", Session: "keeps-it", Stdout: &out})
		check(err)
		expect(t, out.String(), want)
	}
	// Another key opens nothing, and says so.
	store, dir := newStore(t), t.TempDir()
	h, _ := newHost(t, store, node.Options{Dir: dir, Seal: seal})
	if err := h.Build(ctx, node.Build{Image: "i@1", Spec: spec}, nil); err != nil {
		t.Fatal(err)
	}
	n := node.New(node.Options{Engine: userspace.NewEngine(userspace.EngineOptions{}), Store: store, Dir: dir})
	if deleted, err := n.Sweep(ctx); err != nil || deleted != 0 {
		t.Errorf("swept %d: %v", deleted, err)
	}
	h = node.Local(n, "here", "test")
	if _, err := h.Start(ctx, node.Start{ID: "one", Epoch: 1, Image: "i@1"}); !errs.Is(err, errs.Corrupt) {
		t.Errorf("without the key: %v", err)
	}
}
