package access

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"agentrun.dev"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
	"agentrun.dev/kv/memory"
)

var master = bytes.Repeat([]byte{7}, 32)

func open(t *testing.T, store kv.Store, now func() time.Time) *Keys {
	t.Helper()
	k, err := New(Options{KV: store, MasterKey: master, RootID: "ROOT", RootSecret: "rootsecret", Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func wantKind(t *testing.T, err error, kind errs.Kind) {
	t.Helper()
	if !errs.Is(err, kind) {
		t.Fatalf("got %v, want %v", err, kind)
	}
}

func TestCreateAndReopen(t *testing.T) {
	ctx, store := context.Background(), memory.New()
	k := open(t, store, nil)
	g := []Grant{{Bucket: agentrun.RefID{1}, Name: "data", Write: true}, {Bucket: agentrun.RefID{2}, Name: "ro"}}
	key, err := k.Create(ctx, NewKey{Name: "agent", Grants: g})
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^AR[A-Z2-7]{18}$`).MatchString(key.ID) || !regexp.MustCompile(`^[a-z2-7]{40}$`).MatchString(key.Secret) {
		t.Fatalf("id %q, secret %q", key.ID, key.Secret)
	}
	// Nothing of the secret, the name or the grants may be readable in the store.
	err = store.Scan(ctx, kv.Range{}, func(_, v []byte) error {
		for _, s := range []string{key.Secret, "agent", "data"} {
			if bytes.Contains(v, []byte(s)) {
				t.Errorf("%q is stored in the clear", s)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := open(t, store, nil).Get(ctx, key.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got.Secret != key.Secret || got.Name != "agent" || len(got.Grants) != 2 || got.Grants[0] != g[0] || got.Grants[1] != g[1] || !got.Created.Equal(key.Created) {
		t.Fatalf("got %+v, want %+v", got, key)
	}
	n := 0
	if err := k.List(ctx, func(l *Key) error { n++; return nil }); err != nil || n != 1 {
		t.Fatalf("listed %d, %v", n, err)
	}
	other, err := New(Options{KV: store, MasterKey: bytes.Repeat([]byte{8}, 32)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = other.Get(ctx, key.ID)
	wantKind(t, err, errs.Corrupt)
}

func TestAllows(t *testing.T) {
	a, b, c := agentrun.RefID{1}, agentrun.RefID{2}, agentrun.RefID{3}
	scoped := &Key{Grants: []Grant{{Bucket: a, Write: true}, {Bucket: b}}}
	root := &Key{Root: true}
	for _, tc := range []struct {
		key    *Key
		action Action
		bucket agentrun.RefID
		want   bool
	}{
		{scoped, Read, a, true}, {scoped, Write, a, true}, {scoped, Manage, a, false},
		{scoped, Read, b, true}, {scoped, Write, b, false}, {scoped, Manage, b, false},
		{scoped, Read, c, false}, {scoped, Write, c, false}, {scoped, Manage, c, false},
		{scoped, Read, agentrun.RefID{}, false}, {scoped, Action(0), a, false}, {scoped, Action(9), a, false},
		{root, Manage, agentrun.RefID{}, true}, {root, Write, c, true}, {nil, Read, a, false},
		{&Key{Grants: []Grant{{}}}, Read, agentrun.RefID{}, false},
	} {
		if got := tc.key.Allows(tc.action, tc.bucket); got != tc.want {
			t.Errorf("%+v %v %v: %v", tc.key, tc.action, tc.bucket, got)
		}
	}
}

func TestRevokeIsImmediate(t *testing.T) {
	ctx := context.Background()
	k := open(t, memory.New(), nil)
	key, err := k.Create(ctx, NewKey{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	// Readers fill the cache all the time; once Revoke has returned, none may find the key again.
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					k.Get(ctx, key.ID)
				}
			}
		})
	}
	if err := k.Revoke(ctx, key.ID); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		_, err := k.Get(ctx, key.ID)
		wantKind(t, err, errs.Unauthorized)
	}
	close(stop)
	wg.Wait()
	_, err = k.Get(ctx, key.ID)
	wantKind(t, err, errs.Unauthorized)
	wantKind(t, k.Revoke(ctx, key.ID), errs.NotFound)
	wantKind(t, k.Revoke(ctx, "ROOT"), errs.Denied)
}

func TestExpiry(t *testing.T) {
	ctx, now := context.Background(), time.Unix(1e9, 0)
	k := open(t, memory.New(), func() time.Time { return now })
	key, err := k.Create(ctx, NewKey{Expires: now.Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Get(ctx, key.ID); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	_, err = k.Get(ctx, key.ID)
	wantKind(t, err, errs.Unauthorized)
}

func TestVerify(t *testing.T) {
	ctx := context.Background()
	k := open(t, memory.New(), nil)
	key, err := k.Create(ctx, NewKey{Prefix: "tid_"})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(key.ID, "tid_") {
		t.Fatal(key.ID)
	}
	for _, token := range []string{key.Token(), "ROOT.rootsecret"} {
		if _, err := k.Verify(ctx, token); err != nil {
			t.Errorf("%s: %v", token, err)
		}
	}
	for _, token := range []string{"", ".", "a", key.ID, key.ID + ".", key.Token() + "x", key.ID + ".wrong", "." + key.Secret,
		"nobody.secret", "ROOT.", "ROOT.rootsecre", "a/b.c", strings.Repeat("a", 600) + ".b", "\x00.\xff"} {
		_, err := k.Verify(ctx, token)
		wantKind(t, err, errs.Unauthorized)
	}
}

func TestChange(t *testing.T) {
	ctx := context.Background()
	k := open(t, memory.New(), nil)
	key, err := k.Create(ctx, NewKey{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Get(ctx, key.ID); err != nil {
		t.Fatal(err)
	}
	if err := k.SetGrants(ctx, key.ID, false, []Grant{{Bucket: agentrun.RefID{9}}}); err != nil {
		t.Fatal(err)
	}
	if got, _ := k.Get(ctx, key.ID); !got.Allows(Read, agentrun.RefID{9}) {
		t.Fatal("new grants aren't in force")
	}
	fresh, err := k.Rotate(ctx, key.ID)
	if err != nil {
		t.Fatal(err)
	}
	_, err = k.Verify(ctx, key.Token())
	wantKind(t, err, errs.Unauthorized)
	if _, err := k.Verify(ctx, fresh.Token()); err != nil {
		t.Fatal(err)
	}
}

func TestLimits(t *testing.T) {
	ctx := context.Background()
	k := open(t, memory.New(), nil)
	_, err := k.Create(ctx, NewKey{Name: strings.Repeat("x", MaxName+1)})
	wantKind(t, err, errs.TooLarge)
	_, err = k.Create(ctx, NewKey{Grants: make([]Grant, MaxGrants+1)})
	wantKind(t, err, errs.Limit)
	_, err = k.Create(ctx, NewKey{Grants: []Grant{{}}})
	wantKind(t, err, errs.Invalid)
	_, err = k.Create(ctx, NewKey{Root: true, Grants: []Grant{{Bucket: agentrun.RefID{1}}}})
	wantKind(t, err, errs.Invalid)
	_, err = New(Options{KV: memory.New(), MasterKey: []byte("short")})
	wantKind(t, err, errs.Invalid)
}

func FuzzParseToken(f *testing.F) {
	f.Add("id.secret")
	f.Add("...")
	f.Fuzz(func(t *testing.T, token string) {
		if id, secret, err := ParseToken(token); err == nil && id+"."+secret != token {
			t.Fatalf("%q splits into %q and %q", token, id, secret)
		}
	})
}
