package control

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/volume"
)

// TestVolumes: volumes are made by themselves, mounted from a claim on, through forks and sleep, and deleted when nobody has them.
func TestVolumes(t *testing.T) {
	l := newLab(t, 1)
	ctx := l.ctx
	l.pool("p", 2)
	v := must(l.CreateVolume(ctx, admin, api.CreateVolume{Name: "Data_1", Size: 1 << 20, Labels: api.Labels{"a": "b"}}))(t)
	if v.Bucket != "volume-"+v.ID || v.Owner != "root" || v.Size != 1<<20 || v.Labels["a"] != "b" {
		t.Errorf("%+v", v)
	}
	if _, err := l.disk.Info(ctx, v.Bucket); err != nil {
		t.Error(err)
	}
	_, err := l.CreateVolume(ctx, admin, api.CreateVolume{Name: "Data_1"})
	wantKind(t, err, errs.Exists)
	alice, bob := l.as(api.Principal{Name: "alice"}), l.as(api.Principal{Name: "bob"})
	mine := must(l.CreateVolume(ctx, alice, api.CreateVolume{Name: "Data_1"}))(t)
	for _, who := range []string{mine.ID, "Data_1"} {
		if got := must(l.Volume(ctx, alice, who))(t); got.ID != mine.ID {
			t.Errorf("%+v", got)
		}
		_, err = l.Volume(ctx, bob, who)
		wantKind(t, err, errs.NotFound)
	}
	_, err = l.CreateVolume(ctx, bob, api.CreateVolume{Name: "x", Owner: "alice"})
	wantKind(t, err, errs.Denied)
	if list := must(l.Volumes(ctx, alice, Page{}))(t); len(list.Volumes) != 1 || list.Volumes[0].ID != mine.ID {
		t.Errorf("%+v", list)
	}
	list := must(l.Volumes(ctx, admin, Page{Limit: 1}))(t)
	if rest := must(l.Volumes(ctx, admin, Page{Cursor: list.Next}))(t); len(list.Volumes) != 1 || list.Volumes[0].ID != v.ID || len(rest.Volumes) != 1 || rest.Next != "" {
		t.Errorf("%+v, %+v", list, rest)
	}
	mount := func(m ...api.VolumeMount) []api.VolumeMount { return m }
	for name, c := range map[string]struct {
		volumes []api.VolumeMount
		kind    errs.Kind
	}{
		"missing":       {mount(api.VolumeMount{Volume: "none", Path: "/d"}), errs.NotFound},
		"somebody's":    {mount(api.VolumeMount{Volume: v.ID, Path: "/d"}), errs.NotFound},
		"relative":      {mount(api.VolumeMount{Volume: "Data_1", Path: "d"}), errs.Invalid},
		"dots":          {mount(api.VolumeMount{Volume: "Data_1", Path: "/d/../e"}), errs.Invalid},
		"the root":      {mount(api.VolumeMount{Volume: "Data_1", Path: "/"}), errs.Invalid},
		"the workspace": {mount(api.VolumeMount{Volume: "Data_1", Path: "/workspace"}), errs.Invalid},
		"twice":         {mount(api.VolumeMount{Volume: "Data_1", Path: "/d"}, api.VolumeMount{Volume: "Data_1", Path: "/d/"}), errs.Invalid},
		"too many":      {make([]api.VolumeMount, api.MaxVolumeMounts+1), errs.Invalid},
	} {
		if _, err := l.CreateSandbox(ctx, alice, api.CreateSandbox{Pool: "p", Volumes: c.volumes}); !errs.Is(err, c.kind) {
			t.Errorf("%s: %v, want %v", name, err, c.kind)
		}
	}
	has := func(id string, want ...volume.Spec) {
		t.Helper()
		if got := l.hosts[0].Sandboxes()[id].Claim.Volumes; !slices.Equal(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	want := []volume.Spec{{Name: "volume-1", Path: "/data", Policy: volume.Share, Bucket: mine.Bucket}, {Name: "volume-2", Path: "/ro", Policy: volume.Share, ReadOnly: true, Bucket: mine.Bucket}}
	s := must(l.CreateSandbox(ctx, alice, api.CreateSandbox{Pool: "p", Volumes: mount(api.VolumeMount{Volume: "Data_1", Path: "/data"}, api.VolumeMount{Volume: mine.ID, Path: "/ro/", ReadOnly: true})}))(t)
	has(s.ID, want...)
	if n := len(s.Volumes); n < 2 || s.Volumes[n-1].Path != "/ro" || !s.Volumes[n-1].ReadOnly || s.Volumes[n-2].Bucket != mine.Bucket {
		t.Errorf("%+v", s.Volumes)
	}
	f := must(l.ForkSandbox(ctx, alice, s.ID, api.ForkSandbox{}))(t)
	has(f.Sandboxes[0].ID, want...)
	must(l.Hibernate(ctx, alice, s.ID))(t)
	if got := must(l.Volume(ctx, alice, "Data_1"))(t); len(got.Sandboxes) != 2 {
		t.Errorf("%+v", got)
	}
	wantKind(t, l.DeleteVolume(ctx, alice, "Data_1"), errs.NotEmpty)
	wantKind(t, l.DeleteVolume(ctx, bob, mine.ID), errs.NotFound)
	must(l.Resume(ctx, alice, s.ID))(t)
	has(s.ID, want...)
	must(l.EndSandbox(ctx, alice, f.Sandboxes[0].ID))(t)
	must(l.EndSandbox(ctx, alice, s.ID))(t)
	if err := l.DeleteVolume(ctx, alice, "Data_1"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.disk.Info(ctx, mine.Bucket); !errs.Is(err, errs.NotFound) {
		t.Errorf("its bucket: %v", err)
	}
	_, err = l.CreateSandbox(ctx, alice, api.CreateSandbox{Pool: "p", Volumes: mount(api.VolumeMount{Volume: mine.ID, Path: "/data"})})
	wantKind(t, err, errs.NotFound)
}

// TestVolumeRace mounts volumes as they are deleted: each ends mounted, or deleted, and never both.
func TestVolumeRace(t *testing.T) {
	l := newLab(t, 1)
	l.pool("p", 0)
	for i := range 30 {
		name := fmt.Sprintf("v-%d", i)
		v := must(l.CreateVolume(l.ctx, admin, api.CreateVolume{Name: name}))(t)
		var all sync.WaitGroup
		var made *api.Sandbox
		var gone, failed error
		all.Go(func() {
			made, failed = l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Template: "p", Volumes: []api.VolumeMount{{Volume: name, Path: "/data"}}})
		})
		all.Go(func() { gone = l.DeleteVolume(l.ctx, admin, v.ID) })
		all.Wait()
		_, err := l.disk.Info(l.ctx, v.Bucket)
		switch {
		case failed == nil && (gone == nil || err != nil):
			t.Fatalf("%s is mounted and deleted: %v, %v", name, gone, err)
		case failed != nil && (!errs.Is(failed, errs.NotFound) || made != nil):
			t.Fatalf("%v", failed)
		case failed != nil && gone != nil:
			t.Fatalf("neither: %v, %v", failed, gone)
		}
	}
}
