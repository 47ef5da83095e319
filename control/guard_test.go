package control

import (
	"bytes"
	"context"
	"testing"

	"agentrun.dev/access"
	"agentrun.dev/kv"
)

// guard opens who decides, over the same store.
func guard(t testing.TB, s kv.Store) (*access.Guard, *access.Keys) {
	t.Helper()
	keys, err := access.New(access.Options{KV: s, MasterKey: bytes.Repeat([]byte{7}, 32), RootID: "ROOT", RootSecret: "rootsecret"})
	if err != nil {
		t.Fatal(err)
	}
	g, err := access.NewGuard(t.Context(), keys, access.AuditOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close(context.Background()) })
	return g, keys
}
