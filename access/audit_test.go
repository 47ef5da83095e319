package access

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
	"agentrun.dev/kv/memory"
)

var box = Thing{Kind: "sandbox", ID: "s1", Owner: "alice"}

func (w *world) entries(f AuditFilter) []api.AuditEntry {
	w.Helper()
	page, err := w.guard.Audit(context.Background(), System("test"), 0, f)
	if err != nil {
		w.Fatal(err)
	}
	return page.Entries
}

func (w *world) export() string {
	w.Helper()
	var b bytes.Buffer
	if err := w.guard.ExportAudit(context.Background(), System("test"), 0, &b); err != nil {
		w.Fatal(err)
	}
	return b.String()
}

func (w *world) verify() *api.AuditCheck {
	w.Helper()
	c, err := w.guard.VerifyAudit(context.Background(), System("test"))
	if err != nil {
		w.Fatal(err)
	}
	return c
}

func TestAudit(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	bob, bot := w.caller("bob"), w.caller("bot")
	_ = w.guard.Check(ctx, bob, SandboxExec, box)
	_ = w.guard.Check(ctx, bot, SandboxEnd, Thing{Kind: "sandbox", ID: "s2", Owner: "bot", Data: map[string]string{"why": "done"}})
	_ = w.guard.Check(ctx, bob, SandboxGet, Thing{Kind: "sandbox"})
	yes, no := true, false
	for _, c := range []struct {
		f    AuditFilter
		want string
	}{
		{AuditFilter{Principal: "bob"}, "sandbox.exec sandbox/s1 false role user may not sandbox.exec what isn't its own map[owner:alice]; sandbox.get sandbox true role user map[]; "},
		{AuditFilter{Thing: "sandbox/s2"}, "sandbox.end sandbox/s2 true owner map[for:alice why:done]; "},
		{AuditFilter{Action: "sandbox.e*", Allowed: &yes}, "sandbox.end sandbox/s2 true owner map[for:alice why:done]; "},
		{AuditFilter{Action: "sandbox.get", Request: "r1"}, "sandbox.get sandbox true role user map[]; "},
		{AuditFilter{Allowed: &no, Limit: 1}, "sandbox.exec sandbox/s1 false role user may not sandbox.exec what isn't its own map[owner:alice]; "},
		{AuditFilter{Principal: "nobody"}, ""},
	} {
		got := ""
		for _, e := range w.entries(c.f) {
			got += fmt.Sprint(e.Action, " ", e.Thing, " ", e.Allowed, " ", e.Rule, " ", e.Data, "; ")
		}
		if got != c.want {
			t.Errorf("%+v: %s, want %s", c.f, got, c.want)
		}
	}
	e := w.entries(AuditFilter{Action: "sandbox.exec"})[0]
	if e.Principal != "bob" || e.Key != bob.Key.ID || e.Remote != "192.0.2.1:99" || e.Request != "r1" || e.Time.IsZero() {
		t.Errorf("%+v", e)
	}
	_, err := w.guard.Audit(ctx, w.caller("oscar"), 0, AuditFilter{})
	wantKind(t, err, errs.Denied)
	wantKind(t, w.guard.ExportAudit(ctx, bob, 0, &bytes.Buffer{}), errs.Denied)
	_, err = w.guard.VerifyAudit(ctx, bob)
	wantKind(t, err, errs.Denied)
	_, err = w.guard.CutAudit(ctx, bob, time.Now())
	wantKind(t, err, errs.Denied)
	_, err = w.guard.Audit(ctx, System("test"), 0, AuditFilter{Limit: 1001})
	wantKind(t, err, errs.Invalid)
	// Pages join.
	var seqs []uint64
	for after := uint64(0); ; {
		page, err := w.guard.Audit(ctx, System("test"), after, AuditFilter{Limit: 3, Action: "sandbox.*"})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Entries {
			seqs = append(seqs, e.Seq)
		}
		if after = page.Next; !page.More {
			break
		}
	}
	if len(seqs) != 3 {
		t.Errorf("pages have %v", seqs)
	}
	if c := w.verify(); c.Broken != 0 || c.Entries < 10 || len(c.Last) != 64 {
		t.Errorf("%+v", c)
	}
}

// script is what docs/access.md gives to auditors.
func script(t *testing.T) string {
	t.Helper()
	doc, err := os.ReadFile("../docs/access.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(doc), "```python\n")
	text, _, ok2 := strings.Cut(rest, "```")
	if !ok || !ok2 {
		t.Fatal("docs/access.md has no script")
	}
	return text
}

// python runs the script on an export and returns what it says.
func python(t *testing.T, text, export string) (string, error) {
	t.Helper()
	cmd := exec.Command("python3", "-c", text)
	cmd.Env = append(os.Environ(), "PYTHONIOENCODING=utf-8")
	cmd.Stdin = strings.NewReader(export)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("python3: %v", err)
	}
	return strings.TrimSpace(string(out)), err
}

// TestAuditPython has the script of the manual check exports: sound ones, cut ones and forged ones.
func TestAuditPython(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("NO PYTHON3 HERE: the auditor's script of docs/access.md is run by 'make docs', which installs it")
	}
	w := newWorld(t)
	ctx := context.Background()
	text := script(t)
	if n := strings.Count(text, "\n"); n > 24 {
		t.Errorf("%d lines", n)
	}
	for _, s := range []string{"plain", `q"uo\te`, "<&>'", "grüße 日本 🙂", "\u2028\u200b\ufeff", "a\x01\n\r\t\x7f\u0085b", "\xff\xfe", "é" + strings.Repeat("ü", 300)} {
		_ = w.guard.Check(ctx, &Caller{Principal: api.Principal{Name: "alice", Role: "user"}, Remote: s, Request: s}, SandboxExec,
			Thing{Kind: "sandbox", ID: s, Owner: s, Data: map[string]string{s: s, "b": s, "Ä": "", "a": "1", "\U0001F642": "x", "\uFFFF": "y"}})
	}
	all := w.export()
	last := w.verify()
	lines := strings.SplitAfter(strings.TrimSuffix(all, "\n"), "\n")
	lines[len(lines)-1] += "\n"
	var e api.AuditEntry
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &e); err != nil {
		t.Fatal(err)
	}
	if out, err := python(t, text, all); err != nil || out != fmt.Sprintf("sound to entry %d %s", e.Seq, e.Hash) || last.Broken != 0 {
		t.Fatalf("%s, %v, %+v", out, err, last)
	}
	join := func(l ...[]string) (s string) {
		for _, l := range l {
			s += strings.Join(l, "")
		}
		return s
	}
	for name, c := range map[string]struct{ export, want string }{
		"changed":   {strings.Replace(all, `"allowed":false`, `"allowed":true`, 1), "was changed"},
		"named":     {strings.Replace(all, `"principal":"alice"`, `"principal":"bob"`, 1), "was changed"},
		"added to":  {strings.Replace(all, `"key":"`, `"extra":"1","key":"`, 1) + strings.Replace(lines[0], `"seq"`, `"more":"1","seq"`, 1), "was changed"},
		"deleted":   {join(lines[:4], lines[5:]), "doesn't follow"},
		"reordered": {join(lines[:4], lines[5:6], lines[4:5], lines[6:]), "doesn't follow"},
		"doubled":   {join(lines[:5], lines[4:]), "doesn't follow"},
		"beheaded":  {join(lines[3:]), "the beginning is missing"},
	} {
		if out, err := python(t, text, c.export); err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: %s, want %s", name, out, c.want)
		}
	}
	time.Sleep(time.Millisecond)
	if n, err := w.guard.CutAudit(ctx, System("test"), time.Now()); err != nil || n < uint64(len(lines)) {
		t.Fatal(n, err)
	}
	if out, err := python(t, text, w.export()); err != nil || !strings.HasPrefix(out, "sound to entry") {
		t.Fatal(out, err)
	}
}

// raw reads the log as it is stored.
func raw(t *testing.T, store kv.Store) (keys, values [][]byte) {
	t.Helper()
	err := store.Scan(context.Background(), kv.Range{Start: []byte(entryPrefix), End: kv.PrefixEnd([]byte(entryPrefix))}, func(k, v []byte) error {
		keys, values = append(keys, bytes.Clone(k)), append(values, bytes.Clone(v))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys, values
}

// TestTamper changes the store behind the log's back. Each change is found, also after a restart and more entries.
func TestTamper(t *testing.T) {
	ctx := context.Background()
	forge := func(value []byte, change func(*api.AuditEntry)) []byte {
		e := &api.AuditEntry{}
		if err := json.Unmarshal(value[1:], e); err != nil {
			t.Fatal(err)
		}
		change(e)
		return appendCanonical([]byte{entryFormat}, e)
	}
	for name, c := range map[string]struct {
		change func(b *kv.Batch, keys, values [][]byte)
		broken uint64
	}{
		"nothing": {func(*kv.Batch, [][]byte, [][]byte) {}, 0},
		"a byte": {func(b *kv.Batch, k, v [][]byte) {
			b.Put(k[4], bytes.Replace(v[4], []byte("false"), []byte("true"), 1))
		}, 6}, // the next has another hash of it
		"malformed":     {func(b *kv.Batch, k, v [][]byte) { b.Put(k[4], v[4][:20]) }, 5},
		"empty":         {func(b *kv.Batch, k, v [][]byte) { b.Put(k[4], nil) }, 5},
		"another form":  {func(b *kv.Batch, k, v [][]byte) { b.Put(k[4], append(bytes.Clone(v[4]), ' ')) }, 5},
		"deleted":       {func(b *kv.Batch, k, v [][]byte) { b.Delete(k[4]) }, 5},
		"first deleted": {func(b *kv.Batch, k, v [][]byte) { b.Delete(k[0]) }, 1},
		"exchanged":     {func(b *kv.Batch, k, v [][]byte) { b.Put(k[4], v[5]); b.Put(k[5], v[4]) }, 5},
		"moved": {func(b *kv.Batch, k, v [][]byte) {
			b.Put(k[4], forge(v[5], func(e *api.AuditEntry) { e.Seq = 5 }))
			b.Put(k[5], forge(v[4], func(e *api.AuditEntry) { e.Seq = 6 }))
		}, 5},
		"cut off":  {func(b *kv.Batch, k, v [][]byte) { b.DeleteRange(k[8], kv.PrefixEnd([]byte(entryPrefix))) }, 9},
		"last one": {func(b *kv.Batch, k, v [][]byte) { b.Delete(k[len(k)-1]) }, 12},
		"last one exchanged": {func(b *kv.Batch, k, v [][]byte) {
			b.Put(k[len(k)-1], forge(v[len(k)-1], func(e *api.AuditEntry) { e.Principal = "eve" }))
		}, 13},
		"one more": {func(b *kv.Batch, k, v [][]byte) {
			e := forge(v[len(k)-1], func(e *api.AuditEntry) { e.Seq++; e.Previous = hashOf(v[len(k)-1][1:]) })
			b.Put(entryKey(uint64(len(k)+1)), e)
		}, 13},
		"strange key": {func(b *kv.Batch, k, v [][]byte) { b.Put([]byte(entryPrefix+"x"), v[4]) }, 13},
		"all written anew from one on": {func(b *kv.Batch, k, v [][]byte) {
			previous := hashOf(v[4][1:])
			for i := 5; i < len(k); i++ {
				n := forge(v[i], func(e *api.AuditEntry) { e.Previous, e.Principal = previous, "eve" })
				previous = hashOf(n[1:])
				b.Put(k[i], n)
			}
		}, 13},
		"no head":           {func(b *kv.Batch, k, v [][]byte) { b.Delete([]byte(headKey)) }, 1},
		"no head, no tail":  {func(b *kv.Batch, k, v [][]byte) { b.Delete([]byte(headKey)); b.Delete(k[len(k)-1]) }, 1},
		"another's head":    {func(b *kv.Batch, k, v [][]byte) { b.Put([]byte(headKey), v[3]) }, 1},
		"all the log":       {func(b *kv.Batch, k, v [][]byte) { b.DeleteRange(k[0], kv.PrefixEnd([]byte(entryPrefix))) }, 1},
		"a gap, made small": {func(b *kv.Batch, k, v [][]byte) { b.DeleteRange(k[2], k[9]) }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for range 10 {
				_ = w.guard.Check(ctx, nil, SandboxExec, box)
			}
			if c := w.verify(); c.Broken != 0 || c.Entries != 12 { // audit.open, ten, and of the check itself
				t.Fatalf("%+v", c)
			}
			keys, values := raw(t, w.keys.kv)
			b := &kv.Batch{}
			c.change(b, keys, values)
			if err := w.keys.kv.Commit(ctx, b); err != nil {
				t.Fatal(err)
			}
			got, err := w.guard.log.verify(ctx)
			if err != nil || got.Broken != c.broken {
				t.Fatalf("%+v, %v, want %d", got, err, c.broken)
			}
			// Another process goes on with it.
			next, err := openTrail(ctx, w.keys, AuditOptions{})
			if name == "another's head" {
				wantKind(t, err, errs.Corrupt)
				b := &kv.Batch{}
				b.Put([]byte(headKey), w.guard.log.sealed)
				if err := w.keys.kv.Commit(ctx, b); err != nil {
					t.Fatal(err)
				}
				return
			}
			if name == "strange key" {
				c.broken = 13
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := next.add(ctx, newEntry(nil, "more", ""), true, false); err != nil {
				t.Fatal(err)
			}
			got, err = next.verify(ctx)
			if err != nil || (got.Broken == 0) != (c.broken == 0) {
				t.Fatalf("afterwards: %+v, %v", got, err)
			}
			if err := next.close(ctx, newEntry(nil, "end", "")); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestAuditCut(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	k, err := New(Options{KV: memory.New(), MasterKey: master, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	w := &world{T: t, keys: k, guard: openGuard(t, k)} // entry 1
	for range 9 {
		now = now.Add(time.Hour)
		_ = w.guard.Check(ctx, nil, SandboxExec, box)
	}
	whole := w.entries(AuditFilter{})
	n, err := w.guard.CutAudit(ctx, System("test"), now.Add(-3*time.Hour))
	if err != nil || n != 6 {
		t.Fatal(n, err)
	}
	left := w.entries(AuditFilter{})
	cut := left[len(left)-1]
	if left[0].Seq != 7 || left[0].Previous != whole[5].Hash || cut.Action != "audit.cut" || cut.Principal != RootPrincipal ||
		fmt.Sprint(cut.Data) != fmt.Sprintf("map[entries:6 hash:%s through:6]", whole[5].Hash) {
		t.Fatalf("%+v", left)
	}
	if c := w.verify(); c.Broken != 0 {
		t.Fatalf("%+v", c)
	}
	if n, err := w.guard.CutAudit(ctx, System("test"), now.Add(-3*time.Hour)); err != nil || n != 0 {
		t.Fatal(n, err)
	}
	// What was forged before it was cut off isn't forgotten.
	keys, values := raw(t, k.kv)
	b := &kv.Batch{}
	b.Put(keys[1], bytes.Replace(values[1], []byte("false"), []byte("true"), 1))
	if err := k.kv.Commit(ctx, b); err != nil {
		t.Fatal(err)
	}
	if c := w.verify(); c.Broken != 9 {
		t.Fatalf("%+v", c)
	}
	now = now.Add(time.Hour)
	if n, err := w.guard.CutAudit(ctx, System("test"), now); err != nil || n < 5 {
		t.Fatal(n, err)
	}
	if c := w.verify(); c.Broken != 9 {
		t.Fatalf("%+v", c)
	}
	// Retention does it by itself, at the start and every day.
	now = now.Add(100 * time.Hour)
	g, err := NewGuard(ctx, k, AuditOptions{Retain: 50 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	left = nil
	if err := g.log.scan(ctx, 0, func(e *api.AuditEntry) error { left = append(left, *e); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(left) != 2 || left[0].Action != "audit.open" || left[1].Action != "audit.cut" {
		t.Errorf("%+v", left)
	}
	if err := g.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestLooks sees that looks wait for no commit, and are in the store within a second all the same.
func TestLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		k := open(t, memory.New(), nil)
		g, err := NewGuard(ctx, k, AuditOptions{})
		if err != nil {
			t.Fatal(err)
		}
		count := func() int { keys, _ := raw(t, k.kv); return len(keys) }
		for range 3 {
			if err := g.Check(ctx, System("x"), SandboxGet, box); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := count(); n != 1 {
			t.Errorf("%d entries at once", n)
		}
		time.Sleep(lookDelay)
		synctest.Wait()
		if n := count(); n != 4 {
			t.Errorf("%d entries after a second", n)
		}
		_ = g.Check(ctx, System("x"), SandboxGet, box)
		if err := g.Check(ctx, System("x"), SandboxEnd, box); err != nil {
			t.Fatal(err)
		}
		if n := count(); n != 6 {
			t.Errorf("%d entries after one that is waited for", n)
		}
		_ = g.Check(ctx, System("x"), SandboxGet, box)
		if err := g.Close(ctx); err != nil {
			t.Fatal(err)
		}
		if n := count(); n != 8 {
			t.Errorf("%d entries at the end", n)
		}
		if err := g.Close(ctx); err != nil {
			t.Fatal(err)
		}
		wantKind(t, g.Check(ctx, System("x"), SandboxGet, box), errs.Unavailable)
		wantKind(t, g.Check(ctx, System("x"), SandboxEnd, box), errs.Unavailable)
	})
}

// gate is a store whose commits can be held and made to fail.
type gate struct {
	kv.Store
	mu    sync.Mutex
	err   error
	after bool // the commit is made, and an error told all the same
	hold  chan struct{}
	n     int
}

func (g *gate) set(err error, after bool) {
	g.mu.Lock()
	g.err, g.after = err, after
	g.mu.Unlock()
}

func (g *gate) Commit(ctx context.Context, b *kv.Batch) error {
	g.mu.Lock()
	err, after, hold := g.err, g.after, g.hold
	g.n++
	g.mu.Unlock()
	if hold != nil {
		<-hold
	}
	if err != nil && !after {
		return err
	}
	if e := g.Store.Commit(ctx, b); e != nil {
		return e
	}
	return err
}

// TestAuditFaults sees that nothing is allowed that can't be written down, that looks survive, and that the queue is bounded.
func TestAuditFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		store := &gate{Store: memory.New()}
		k := open(t, store, nil)
		g, err := NewGuard(ctx, k, AuditOptions{})
		if err != nil {
			t.Fatal(err)
		}
		full := errs.Msg(errs.NoSpace, "commit", "", "disk full")
		store.set(full, false)
		if err := g.Check(ctx, System("x"), SandboxGet, box); err != nil {
			t.Fatal(err)
		}
		wantKind(t, g.Check(ctx, System("lost"), SandboxEnd, box), errs.NoSpace)
		time.Sleep(7 * lookDelay / 2) // it is tried again, in vain
		synctest.Wait()
		for range maxQueue - 1 {
			if err := g.Check(ctx, System("x"), SandboxGet, box); err != nil {
				t.Fatal(err)
			}
		}
		wantKind(t, g.Check(ctx, System("lost"), SandboxGet, box), errs.NoSpace)
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if err := g.Check(gone, System("lost"), SandboxGet, box); err == nil {
			t.Error("room in a full queue")
		}
		store.set(nil, false)
		if err := g.Check(ctx, System("x"), SandboxEnd, box); err != nil {
			t.Fatal(err)
		}
		// A commit that was made, and yet failed, is no second entry and no gap.
		store.set(errors.New("the line went dead"), true)
		if err := g.Check(ctx, System("x"), SandboxEnd, box); err != nil {
			t.Fatal(err)
		}
		store.set(nil, false)
		if err := g.Check(ctx, System("x"), SandboxEnd, box); err != nil {
			t.Fatal(err)
		}
		entries, lost := 0, 0
		err = g.log.scan(ctx, 0, func(e *api.AuditEntry) error {
			entries++
			if e.Request == "lost" {
				lost++
			}
			return nil
		})
		if err != nil || entries != 1+maxQueue+3 || lost != 0 {
			t.Errorf("%d entries, %d of them refused, %v", entries, lost, err)
		}
		if c, err := g.log.verify(ctx); err != nil || c.Broken != 0 {
			t.Errorf("%+v, %v", c, err)
		}
		if err := g.Close(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

// TestTwoAppenders have entries of both in one chain, should it ever happen.
func TestTwoAppenders(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	other := openGuard(t, w.keys)
	var wg sync.WaitGroup
	for _, g := range []*Guard{w.guard, other} {
		for range 4 {
			wg.Go(func() {
				for range 25 {
					if err := g.Check(ctx, System("x"), SandboxEnd, box); err != nil && !errs.Is(err, errs.Conflict) {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	if c := w.verify(); c.Broken != 0 || c.Entries < 3 {
		t.Errorf("%+v", c)
	}
}

// TestGroupCommit sees that those who come while a commit is under way share the next one.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		store := &gate{Store: memory.New()}
		g, err := NewGuard(ctx, open(t, store, nil), AuditOptions{})
		if err != nil {
			t.Fatal(err)
		}
		hold := make(chan struct{})
		store.mu.Lock()
		store.hold, store.n = hold, 0
		store.mu.Unlock()
		var wg sync.WaitGroup
		check := func() {
			if err := g.Check(ctx, System("x"), SandboxEnd, box); err != nil {
				t.Error(err)
			}
		}
		wg.Go(check)
		synctest.Wait()
		for range 50 {
			wg.Go(check)
		}
		synctest.Wait()
		close(hold)
		wg.Wait()
		if store.n != 2 {
			t.Errorf("%d commits", store.n)
		}
		if c, err := g.log.verify(ctx); err != nil || c.Entries != 52 || c.Broken != 0 {
			t.Errorf("%+v, %v", c, err)
		}
		if err := g.Close(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAuditNoSecrets(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	bob := w.caller("bob")
	other := w.caller("carol").Key
	for _, s := range []string{bob.Key.Secret, bob.Key.Token(), other.Token(), "Bearer " + other.Token() + ".x", "x." + other.Secret, strings.Repeat(".", 300) + other.Token()} {
		c := *bob
		c.Remote, c.Request = s, s
		_ = w.guard.Check(ctx, &c, SandboxExec, Thing{Kind: s, ID: s, Owner: s, Data: map[string]string{s: s, "a": s}})
		_ = w.guard.Check(ctx, &c, Verb("x"+s), Thing{})
		_, _ = w.guard.Caller(ctx, s+"x", s, s)
		_, _ = w.guard.Secret(ctx, &c, s)
		_, _ = w.guard.GetPrincipal(ctx, &c, s)
		_, _ = w.guard.RotateKey(ctx, &c, s)
	}
	if all := w.export(); strings.Contains(all, bob.Key.Secret) || strings.Contains(all, other.Secret) {
		t.Error("a secret is in the log")
	}
	for _, e := range w.entries(AuditFilter{Limit: 1000}) {
		fields := []string{e.Principal, e.Key, e.Remote, e.Request, e.Action, e.Thing, e.Rule}
		for n, v := range e.Data {
			fields = append(fields, n, v)
		}
		for _, f := range fields {
			if len(f) > 256 {
				t.Errorf("%d bytes", len(f))
			}
		}
	}
}

// TestTurnedAway bounds what strangers can put into the log.
func TestTurnedAway(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	k, err := New(Options{KV: memory.New(), MasterKey: master, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, keys: k, guard: openGuard(t, k)}
	ctx := context.Background()
	for range 100 {
		_, err := w.guard.Caller(ctx, "ARX.y", "192.0.2.7:1", "r")
		wantKind(t, err, errs.Unauthorized)
	}
	now = now.Add(time.Minute)
	_, err = w.guard.Caller(ctx, "nonsense", "192.0.2.7:1", "r")
	wantKind(t, err, errs.Unauthorized)
	e := w.entries(AuditFilter{Action: "authenticate", Limit: 1000})
	if len(e) != maxTurned+1 || e[0].Thing != "key/ARX" || e[0].Allowed || e[maxTurned].Thing != "" || e[maxTurned].Data["skipped"] != "40" {
		t.Errorf("%d entries: %+v", len(e), e[len(e)-1])
	}
}
