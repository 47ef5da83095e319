package access_test

import (
	"regexp"
	"strings"
	"testing"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/kv/memory"
)

func TestKeyForE2B(t *testing.T) {
	ctx := t.Context()
	k, err := access.New(access.Options{KV: memory.New(), MasterKey: make([]byte, 32), RootID: "root", RootSecret: "secret-of-root"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := k.SetPrincipal(ctx, api.Principal{Name: "alice", Role: api.RoleUser}); err != nil {
		t.Fatal(err)
	}
	key, err := k.Create(ctx, access.NewKey{Principal: "alice", E2B: true})
	if err != nil {
		t.Fatal(err)
	}
	form := regexp.MustCompile(`^e2b_[0-9a-f]+$`)
	if !form.MatchString(key.Token()) {
		t.Fatalf("token %q", key.Token())
	}
	for _, token := range []string{key.Token(), key.ID + "." + key.Secret} {
		who, err := k.Caller(ctx, token, "", "")
		if err != nil || who.Principal.Name != "alice" {
			t.Errorf("%q: %v, %v", token, who, err)
		}
	}
	for _, token := range []string{"e2b_", "e2b_00", key.ID, key.Token()[:len(key.Token())-1], key.Token() + "0", strings.ToUpper(key.Token()), "e2b_" + strings.Repeat("0", 84),
		"e2b_" + strings.Repeat("x", 84), key.Token() + strings.Repeat("a", 1000)} {
		if _, err := k.Caller(ctx, token, "", ""); !errs.Is(err, errs.Unauthorized) {
			t.Errorf("%q: %v", token, err)
		}
	}
	next, err := k.Rotate(ctx, key.ID)
	if err != nil || !form.MatchString(next.Token()) {
		t.Fatal(next, err)
	}
	if _, err := k.Verify(ctx, key.Token()); !errs.Is(err, errs.Unauthorized) {
		t.Error("the old secret still opens:", err)
	}
	if err := k.Revoke(ctx, key.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Verify(ctx, next.Token()); !errs.Is(err, errs.Unauthorized) {
		t.Error("revoked, and still opens:", err)
	}
}

func TestTokens(t *testing.T) {
	ctx := t.Context()
	k, err := access.New(access.Options{KV: memory.New(), MasterKey: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	a, b := k.Tokens("a"), k.Tokens("b")
	token := a.Mint("something")
	if token != a.Mint("something") || token == b.Mint("something") || token == a.Mint("something else") {
		t.Error("a token is its purpose's and its text's")
	}
	if text, ok := a.Open(token); !ok || text != "something" {
		t.Error(text, ok)
	}
	for _, bad := range []string{"", token[1:], token[:len(token)-1], token + "A", token + "=", b.Mint("something"), strings.Repeat("A", 5000), "é"} {
		if _, ok := a.Open(bad); ok {
			t.Errorf("%q opens", bad)
		}
	}
	if _, _, err := k.SetPrincipal(ctx, api.Principal{Name: "bob", Role: api.RoleOperator}); err != nil {
		t.Fatal(err)
	}
	who, err := k.CallerFor(ctx, "bob", api.RoleViewer, "here", "it")
	if err != nil || who.Principal.Role != api.RoleViewer || who.Remote != "here" {
		t.Error(who, err)
	}
	if who, err = k.CallerFor(ctx, "bob", api.RoleAdmin, "", ""); err != nil || who.Principal.Role != api.RoleOperator {
		t.Error(who, err)
	}
	if who, err = k.CallerFor(ctx, "root", "", "", ""); err != nil || who.Principal.Role != api.RoleAdmin {
		t.Error(who, err)
	}
	if err := k.DeletePrincipal(ctx, "bob"); err != nil {
		t.Fatal(err)
	}
	if _, err := k.CallerFor(ctx, "bob", "", "", ""); !errs.Is(err, errs.Unauthorized) {
		t.Error("gone, and still acts:", err)
	}
}
