package access

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"agentrun.dev"
	"agentrun.dev/api"
	"agentrun.dev/kv"
	"agentrun.dev/kv/memory"
)

// TestFormat reads records that an earlier version wrote. If the file is gone, it is written anew: that is for a new format only.
func TestFormat(t *testing.T) {
	const file = "testdata/records.txt"
	ctx := context.Background()
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		writeRecords(t, file)
		t.Fatal(file + " was written: look at it, and keep it")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	store, b := memory.New(), &kv.Batch{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		key, value, ok := strings.Cut(lines.Text(), " ")
		k, err := hex.DecodeString(key)
		v, err2 := hex.DecodeString(value)
		if !ok || err != nil || err2 != nil {
			t.Fatalf("%s: %s", file, lines.Text())
		}
		b.Put(k, v)
	}
	if err := store.Commit(ctx, b); err != nil {
		t.Fatal(err)
	}
	k := open(t, store, nil)
	g := openGuard(t, k)
	who, err := k.Caller(ctx, "ARTESTTESTTESTTESTTE.secret", "", "")
	if err != nil || who.Principal.Name != "bot" || who.Principal.Parent != "alice" || who.Principal.Budget.CPUSeconds != 1.5 || who.Key.Grants[0].Name != "data" {
		t.Fatalf("%+v, %v", who, err)
	}
	if env, err := g.Resolve(ctx, who, []api.SecretUse{use("db", "PASSWORD", "")}); err != nil || env[0] != "PASSWORD=x\ny" {
		t.Fatal(env, err)
	}
	if c, err := g.VerifyAudit(ctx, System("test")); err != nil || c.Broken != 0 || c.Entries < 5 {
		t.Fatalf("%+v, %v", c, err)
	}
	if page, err := g.Audit(ctx, System("test"), 0, AuditFilter{Principal: "bot"}); err != nil || page.Entries[0].Thing != "secret/db" {
		t.Fatalf("%+v, %v", page, err)
	}
	if plain, err := k.Sealer().Open("sandbox/1", mustGet(t, store, "c/x")); err != nil || string(plain) != "environment" {
		t.Fatalf("%s, %v", plain, err)
	}
}

func mustGet(t *testing.T, store kv.Store, key string) []byte {
	t.Helper()
	v, err := store.Get(context.Background(), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func writeRecords(t *testing.T, file string) {
	t.Helper()
	ctx := context.Background()
	store := memory.New()
	k := open(t, store, func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 123456789, time.UTC) })
	g, err := NewGuard(ctx, k, AuditOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []api.Principal{
		{Name: "alice", Role: api.RoleUser, Teams: []string{"red"}, Tags: map[string]string{"cost": "5"}},
		{Name: "bot", Kind: "agent", Role: api.RoleUser, Parent: "alice", Teams: []string{"red"}, Budget: &api.Budget{CPUSeconds: 1.5}},
	} {
		if _, _, err := k.SetPrincipal(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	key := &Key{ID: "ARTESTTESTTESTTESTTE", Secret: "secret", Name: "n", Principal: "bot", Created: k.now(), Grants: []Grant{{Bucket: agentrun.RefID{1}, Name: "data", Write: true}}}
	value, err := k.encode(key)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := k.Sealer().Seal("sandbox/1", []byte("environment"))
	if err != nil {
		t.Fatal(err)
	}
	b := &kv.Batch{}
	b.Put(recordKey(key.ID), value)
	b.Put(indexKey(key), []byte{formatV1})
	b.Put([]byte("c/x"), sealed)
	if err := store.Commit(ctx, b); err != nil {
		t.Fatal(err)
	}
	who, err := k.CallerOf(ctx, key.ID, "192.0.2.1:1", "r")
	if err != nil {
		t.Fatal(err)
	}
	alice := &Caller{Principal: api.Principal{Name: "alice", Role: api.RoleUser, Teams: []string{"red"}}}
	if _, _, err := g.PutSecret(ctx, alice, api.Secret{Name: "db", Team: "red", Data: map[string]string{"PASSWORD": "x\ny"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Resolve(ctx, who, []api.SecretUse{use("db", "PASSWORD", "")}); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(ctx); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = store.Scan(ctx, kv.Range{}, func(k, v []byte) error {
		_, err := fmt.Fprintf(&out, "%x %x\n", k, v)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
