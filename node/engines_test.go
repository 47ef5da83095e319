package node_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentrun.dev/engine"
	"agentrun.dev/engine/userspace"
	"agentrun.dev/errs"
	"agentrun.dev/node"
	"agentrun.dev/volume"
)

// marked is an engine whose saved images only it can read, that lacks what it is told to, and that says it has lost an instance.
type marked struct {
	*userspace.Engine
	lacks []engine.Feature

	mu   sync.Mutex
	lost map[string]bool
	spec engine.Spec // of the newest boot
}

const mark = "MARKED\n"

func newMarked(lacks ...engine.Feature) *marked {
	return &marked{Engine: userspace.NewEngine(userspace.EngineOptions{}), lacks: lacks, lost: map[string]bool{}}
}

func (m *marked) Lacks() []engine.Feature { return m.lacks }

func (m *marked) Boot(ctx context.Context, s engine.Spec) (engine.Instance, error) {
	m.mu.Lock()
	m.spec = s
	m.mu.Unlock()
	in, err := m.Engine.Boot(ctx, s)
	if err != nil {
		return nil, err
	}
	return markedInstance{in.(instance)}, nil
}

func (m *marked) Load(ctx context.Context, r io.Reader) (engine.Image, error) {
	head := make([]byte, len(mark))
	if _, err := io.ReadFull(r, head); err != nil || string(head) != mark {
		return nil, errs.Msg(errs.Corrupt, "load", "", "another engine's")
	}
	im, err := m.Engine.Load(ctx, r)
	return markedImage{im}, err
}

func (m *marked) List(ctx context.Context) ([]engine.Status, error) {
	list, err := m.Engine.List(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []engine.Status
	for _, s := range list {
		if !m.lost[s.ID] {
			out = append(out, s)
		}
	}
	return out, err
}

type instance interface {
	engine.Instance
	engine.Meter
	engine.Filer
	engine.Mounter
	engine.Attacher
}

type markedInstance struct{ instance }

func (i markedInstance) Freeze(ctx context.Context, o engine.FreezeOptions) (engine.Frozen, error) {
	f, err := i.instance.Freeze(ctx, o)
	if err != nil {
		return nil, err
	}
	return markedFrozen{f}, nil
}

type markedFrozen struct{ engine.Frozen }

func (f markedFrozen) Capture(ctx context.Context) (engine.Image, error) {
	im, err := f.Frozen.Capture(ctx)
	if err != nil {
		return nil, err
	}
	return markedImage{im}, nil
}

type markedImage struct{ engine.Image }

func (m markedImage) Save(ctx context.Context, w io.Writer, volumes []engine.Volume) error {
	if _, err := io.WriteString(w, mark); err != nil {
		return err
	}
	return m.Image.Save(ctx, w, volumes)
}

func (m markedImage) Start(ctx context.Context, id engine.Identity, volumes []engine.Volume) (engine.Instance, error) {
	in, err := m.Image.Start(ctx, id, volumes)
	if err != nil {
		return nil, err
	}
	return markedInstance{in.(instance)}, nil
}

func code(t *testing.T, h node.Host, id, text string) string {
	t.Helper()
	var out bytes.Buffer
	if _, err := h.Code(ctx, id, node.Code{Text: text, Session: "s", Stdout: &out, Stderr: &out}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestEngines: images, captures and what sleeps go to the engine that they are of, before and after a restart; with the engine missing,
// they are refused, and nothing of them is deleted.
func TestEngines(t *testing.T) {
	store, dir := newStore(t), t.TempDir()
	have := node.Options{Dir: dir, Engines: map[string]engine.Engine{"marked": newMarked()}}
	h, _ := newHost(t, store, have)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, eng := range map[string]string{"own@1": "", "marked@1": "marked"} {
		spec := node.Spec{Engine: eng, Volumes: []volume.Spec{{Name: "workspace", Empty: true}}}
		check(h.Build(ctx, node.Build{Image: name, Spec: spec, Init: []string{"echo init > a"}}, nil))
		id := strings.TrimSuffix(name, "@1")
		_, err := h.Start(ctx, node.Start{ID: id, Epoch: 1, Image: name, Claim: &node.Claim{}})
		check(err)
		code(t, h, id, "x="+id)
		_, err = h.Fork(ctx, id, node.Fork{Epoch: 1, IDs: []string{id + "-child"}})
		check(err)
		expect(t, code(t, h, id+"-child", "cat a; echo $x"), "init\n"+id+"\n")
		_, err = h.Capture(ctx, id, node.Capture{Image: "snap-" + id, Prefix: "keep-" + id})
		check(err)
		check(h.Hibernate(ctx, id, false))
		check(h.Hibernate(ctx, id+"-child", false))
		for _, folder := range []string{"images/" + name, "images/snap-" + id, "sleeping/" + id, "sleeping/" + id + "-child"} {
			text, err := os.ReadFile(filepath.Join(dir, folder, "image"))
			check(err)
			if strings.HasPrefix(string(text), mark) != (eng == "marked") {
				t.Errorf("%s was saved by another engine", folder)
			}
			text, err = os.ReadFile(filepath.Join(dir, folder, "spec.json"))
			check(err)
			var head struct{ Format int }
			check(json.Unmarshal(text, &head))
			if want := map[string]int{"marked": 2}[eng]; head.Format != want {
				t.Errorf("%s: format %d, want %d", folder, head.Format, want)
			}
		}
	}
	// A node whose engine doesn't work any more.
	without, _ := newHost(t, store, node.Options{Dir: dir, Engines: map[string]engine.Engine{}, Missing: map[string]string{"marked": "its ink is dry"}})
	i, err := without.Info(ctx)
	check(err)
	if i.Engines["marked"] != "its ink is dry" || i.Engines["userspace"] != "" {
		t.Errorf("%v", i.Engines)
	}
	_, wake := without.Wake(ctx, "marked", 2, node.Claim{})
	_, start := without.Start(ctx, node.Start{ID: "x", Epoch: 1, Image: "snap-marked"})
	for _, err := range []error{wake, start} {
		if !errs.Is(err, errs.Unsupported) || !strings.Contains(err.Error(), "its ink is dry") {
			t.Errorf("without its engine: %v", err)
		}
	}
	_, err = without.Wake(ctx, "own", 2, node.Claim{})
	check(err)
	// It works again.
	h, _ = newHost(t, store, have)
	for _, id := range []string{"marked", "marked-child"} {
		_, err := h.Wake(ctx, id, 2, node.Claim{})
		check(err)
		expect(t, code(t, h, id, "cat a; echo $x"), "init\nmarked\n")
	}
	_, err = h.Start(ctx, node.Start{ID: "x", Epoch: 1, Image: "snap-marked"})
	check(err)
	expect(t, code(t, h, "x", "cat a; echo $x"), "init\nmarked\n")
}

// TestWakeFails: one that can't be woken sleeps on, and is woken another time.
func TestWakeFails(t *testing.T) {
	h, _ := newHost(t, newStore(t), node.Options{Dir: t.TempDir()})
	if err := h.Build(ctx, node.Build{Image: "own@1", Spec: node.Spec{Volumes: []volume.Spec{{Name: "workspace", Empty: true}}}}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Start(ctx, node.Start{ID: "one", Epoch: 1, Image: "own@1", Claim: &node.Claim{}}); err != nil {
		t.Fatal(err)
	}
	code(t, h, "one", "x=1")
	if err := h.Hibernate(ctx, "one", false); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Wake(ctx, "one", 2, node.Claim{Volumes: []volume.Spec{{Name: "more", Path: "/more", Bucket: "no-such-bucket"}}}); !errs.Is(err, errs.NotFound) {
		t.Errorf("with a volume that there isn't: %v", err)
	}
	if _, err := h.Wake(ctx, "one", 3, node.Claim{}); err != nil {
		t.Fatal(err)
	}
	expect(t, code(t, h, "one", "echo $x"), "1\n")
}

// TestNewerFolder: what a later version wrote is refused, and stays.
func TestNewerFolder(t *testing.T) {
	store, dir := newStore(t), t.TempDir()
	h, _ := newHost(t, store, node.Options{Dir: dir})
	if err := h.Build(ctx, node.Build{Image: "i@1"}, nil); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "images", "i@1", "spec.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(`{"format":3,`+string(text[1:])), 0o600); err != nil {
		t.Fatal(err)
	}
	h, _ = newHost(t, store, node.Options{Dir: dir})
	if _, err := h.Start(ctx, node.Start{ID: "x", Epoch: 1, Image: "i@1"}); !errs.Is(err, errs.Unsupported) || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("%v", err)
	}
}

// TestLacks: what an engine hasn't got is refused wherever it is asked for, and its sandboxes are told of nothing that they could ask.
func TestLacks(t *testing.T) {
	m := newMarked(engine.Network, engine.Services, engine.Roots)
	h, _ := newHost(t, newStore(t), node.Options{Engines: map[string]engine.Engine{"marked": m}})
	i, err := h.Info(ctx)
	if err != nil || strings.Join(i.Lacks["marked"], " ") != "root network services" || strings.Join(i.Lacks["userspace"], " ") != "image rates" {
		t.Errorf("%v, %v", i.Lacks, err)
	}
	spec := node.Spec{Engine: "marked", Image: "debian:12", Limits: engine.Limits{Memory: 1 << 30, VCPUs: 3}}
	if err := h.Build(ctx, node.Build{Image: "i@1", Spec: spec, Network: []string{"*"}, Init: []string{"true"}}, nil); err != nil {
		t.Fatal(err)
	}
	if s := m.spec; s.Image != "debian:12" || s.Limits.VCPUs != 3 || s.Limits.Memory != 1<<30 || s.Services.Dial != nil || s.Services.Control != nil {
		t.Errorf("%+v", s)
	}
	rules := []string{"example.com"}
	fails := func(what string, err error, want errs.Kind) {
		t.Helper()
		if !errs.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	_, err = h.Start(ctx, node.Start{ID: "a", Epoch: 1, Image: "i@1", Claim: &node.Claim{Network: rules}})
	fails("start", err, errs.Unsupported)
	if _, err = h.Start(ctx, node.Start{ID: "a", Epoch: 1, Image: "i@1"}); err != nil {
		t.Fatal(err)
	}
	fails("claim", h.Claim(ctx, "a", 1, node.Claim{Network: rules}), errs.Unsupported)
	if err := h.Claim(ctx, "a", 1, node.Claim{}); err != nil {
		t.Fatal(err)
	}
	fails("rules", h.SetNetwork(ctx, "a", 1, rules), errs.Unsupported)
	_, err = h.Fork(ctx, "a", node.Fork{Epoch: 1, IDs: []string{"b"}, Claims: []node.Claim{{Network: rules}}})
	fails("fork", err, errs.Unsupported)
	spec.Volumes = []volume.Spec{{Name: "root", Path: "/", Empty: true}}
	fails("a root", h.Build(ctx, node.Build{Image: "r@1", Spec: spec}, nil), errs.Invalid)
	fails("an image", h.Build(ctx, node.Build{Image: "u@1", Spec: node.Spec{Image: "debian:12"}}, nil), errs.Invalid)
}

// TestDead: a sandbox whose instance has gone is gone, too; its neighbours live.
func TestDead(t *testing.T) {
	m := newMarked()
	h, n := newHost(t, newStore(t), node.Options{Engines: map[string]engine.Engine{"marked": m}})
	if err := h.Build(ctx, node.Build{Image: "i@1", Spec: node.Spec{Engine: "marked"}}, nil); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		if _, err := h.Start(ctx, node.Start{ID: id, Epoch: 1, Image: "i@1", Claim: &node.Claim{}}); err != nil {
			t.Fatal(err)
		}
	}
	a, err := n.Get("a")
	if err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	m.lost["a"] = true
	m.mu.Unlock()
	list, err := h.Status(ctx)
	if err != nil || len(list) != 1 || list[0].ID != "b" {
		t.Errorf("%v, %v", list, err)
	}
	select {
	case <-a.Done():
	case <-time.After(time.Minute):
		t.Error("it wasn't ended")
	}
	expect(t, code(t, h, "b", "echo lives"), "lives\n")
}
