package rest_test

import (
	"testing"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/errs"
	"agentrun.dev/serve/rest"
)

// TestVolumes makes a volume that two sandboxes share.
func TestVolumes(t *testing.T) {
	s := newService(t, rest.Options{})
	ctx := t.Context()
	s.template("plain", api.TemplateSpec{})
	alice := s.user("alice", api.RoleUser)
	v, err := alice.CreateVolume(ctx, api.CreateVolume{Name: "shared"})
	if err != nil || v.Owner != "alice" {
		t.Fatalf("%+v, %v", v, err)
	}
	var ids []string
	for _, m := range []api.VolumeMount{{Volume: "shared", Path: "/mnt/one"}, {Volume: v.ID, Path: "/two"}, {Volume: v.ID, Path: "/ro", ReadOnly: true}} {
		sb, err := alice.CreateSandbox(ctx, api.CreateSandbox{Template: "plain", Volumes: []api.VolumeMount{m}})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, sb.ID)
	}
	for i, c := range []struct{ code, want string }{{"echo hello >/mnt/one/f", ""}, {"cat /two/f; echo back >/two/g", "hello\n"}, {"cat /ro/g; (echo x >/ro/h) 2>/dev/null || echo no", "back\nno\n"}} {
		if r, err := alice.Run(ctx, ids[i], api.Run{Code: c.code}); err != nil || r.Stdout != c.want {
			t.Errorf("%s: %+v, %v", c.code, r, err)
		}
	}
	if err := alice.DeleteVolume(ctx, "shared"); !errs.Is(err, errs.NotEmpty) {
		t.Errorf("one that is mounted: %v", err)
	}
	bob := s.user("bob", api.RoleUser)
	if _, err := bob.CreateSandbox(ctx, api.CreateSandbox{Template: "plain", Volumes: []api.VolumeMount{{Volume: v.ID, Path: "/x"}}}); !errs.Is(err, errs.NotFound) {
		t.Errorf("somebody else's: %v", err)
	}
	for _, id := range ids {
		if err := alice.EndSandbox(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := alice.Volumes(ctx, client.Page{}); err != nil || len(list.Volumes) != 1 || len(list.Volumes[0].Sandboxes) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if err := alice.DeleteVolume(ctx, "shared"); err != nil {
		t.Fatal(err)
	}
	if _, err := alice.Volume(ctx, v.ID); !errs.Is(err, errs.NotFound) {
		t.Errorf("deleted: %v", err)
	}
}
