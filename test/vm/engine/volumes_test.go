package engine

import (
	"io"
	"testing"

	"agentrun.dev/bucket"
	"agentrun.dev/bucket/buckettest"
	"agentrun.dev/engine"
	"agentrun.dev/engine/microvm"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/bucketfs"
)

// bucketFiles are the files of a store's only bucket.
func bucketFiles(t *testing.T, s *bucket.Store) *bucketfs.FS {
	t.Helper()
	b, err := s.Bucket(t.Context(), "files")
	if err != nil {
		t.Fatal(err)
	}
	fs, err := bucketfs.New(t.Context(), b, bucketfs.Options{UID: 1000, GID: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

// testSync: when sync, of a filesystem or of all, returns in the guest, what it wrote survives the host's power cut; what came later needn't.
func testSync(t *testing.T, e *microvm.Engine) {
	for name, command := range map[string]string{"syncfs": "sync -f /data/d", "sync": "sync"} {
		m := buckettest.NewMachine(t)
		if _, err := m.Store.Create(t.Context(), "files", bucket.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		in := boot(t, e, engine.Spec{Identity: id(name), Volumes: []engine.Volume{{Path: "/data", FS: bucketFiles(t, m.Store)}}})
		sh(t, in, "mkdir /data/d && echo closed >/data/d/f && exec 3>/data/open && echo open >&3 && "+command+" && touch /data/late")
		ns := vfs.NewNamespace(vfs.Mount{FS: bucketFiles(t, m.Restart(t).Store)})
		for path, want := range map[string]string{"/d/f": "closed\n", "/open": "open\n"} {
			f, err := ns.Open(t.Context(), vfs.Cred{}, "", path, vfs.O_RDONLY, 0)
			if err != nil {
				t.Errorf("%s: %s: %v", name, path, err)
				continue
			}
			if b, err := io.ReadAll(f); string(b) != want || err != nil {
				t.Errorf("%s: %s: %q, %v", name, path, b, err)
			}
			_ = f.Close()
		}
		if _, err := ns.Stat(t.Context(), vfs.Cred{}, "", "/late"); err == nil {
			t.Errorf("%s: what was never synced is there", name)
		}
	}
}
