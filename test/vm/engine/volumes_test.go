package engine

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"agentrun.dev/bucket"
	"agentrun.dev/bucket/buckettest"
	"agentrun.dev/engine"
	"agentrun.dev/engine/microvm"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/bucketfs"
	"agentrun.dev/vfs/hostfs"
	"agentrun.dev/vfs/memfs"
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

// flushes counts what is asked of a filesystem.
type flushes struct {
	vfs.FS
	durable, lax atomic.Int64
}

func (f *flushes) Flush(_ context.Context, durable bool) error {
	if durable {
		f.durable.Add(1)
	} else {
		f.lax.Add(1)
	}
	return nil
}

// testFrozenSync: a machine that is forked waits for no volume's storage, and its programs' own sync does, before and after.
func testFrozenSync(t *testing.T, e *microvm.Engine) {
	fs := &flushes{FS: memfs.New(memfs.Options{})}
	in := boot(t, e, engine.Spec{Identity: id("frozen-sync"), Volumes: []engine.Volume{{Path: "/data", FS: fs}}})
	asked := func(what string, durable, lax int64) {
		t.Helper()
		if d, l := fs.durable.Swap(0), fs.lax.Swap(0); d != durable || l != lax {
			t.Errorf("%s: %d flushes that make it durable and %d others, want %d and %d", what, d, l, durable, lax)
		}
	}
	sh(t, in, "echo 1 >/data/f; sync")
	asked("sync", 1, 0)
	f, err := in.Freeze(t.Context(), engine.FreezeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	asked("freeze", 0, 1)
	if err := f.Thaw(); err != nil {
		t.Fatal(err)
	}
	sh(t, in, "sync")
	asked("sync after a freeze", 1, 0)
}

// testReplaced: a file is never missing while others take its name, and what another door has made of it is there at once.
func testReplaced(t *testing.T, e *microvm.Engine) {
	m := buckettest.NewMachine(t)
	if _, err := m.Store.Create(t.Context(), "files", bucket.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	in := boot(t, e, engine.Spec{Identity: id("replaced"), Volumes: []engine.Volume{{Path: "/data", FS: bucketFiles(t, m.Store)}}})
	sh(t, in, `cd /data; echo 0 >f
		for w in 1 2; do (for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo $i >$w && mv $w f || echo "$w: $i"; done) & done
		i=0; while [ $i -lt 200 ]; do read x <f || exit 1; i=$((i+1)); done; wait`)
	ns, user := in.(engine.Filer).Namespace(), vfs.Cred{UID: 1000, GID: 1000}
	write := func(path, text string) {
		t.Helper()
		f, err := ns.Open(t.Context(), user, "", path, vfs.O_WRONLY|vfs.O_CREAT|vfs.O_TRUNC, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	for i := range 6 {
		want := fmt.Sprintf("%0*d\n", 1+i*10, i)
		if i%2 == 0 {
			write("/data/f", want)
		} else {
			write("/data/new", want)
			if err := ns.Rename(t.Context(), user, "", "/data/new", "/data/f", 0); err != nil {
				t.Fatal(err)
			}
		}
		if got := sh(t, in, "cat /data/f"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// testKernelFiles runs package files of test/vm in a machine, from a folder of the host, on a volume in memory and on a bucket.
func testKernelFiles(t *testing.T, e *microvm.Engine) {
	programs, err := hostfs.New(bench, hostfs.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer programs.Close()
	m := buckettest.NewMachine(t)
	if _, err := m.Store.Create(t.Context(), "files", bucket.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	in := boot(t, e, engine.Spec{Identity: id("kernel-files"), Volumes: []engine.Volume{{Path: "/programs", FS: programs, ReadOnly: true},
		{Path: "/bucket", FS: bucketFiles(t, m.Store)}, {Path: "/memory", FS: memfs.New(memfs.Options{})}}})
	var out bytes.Buffer
	p, err := in.Exec(t.Context(), engine.Cmd{Root: true, Stdout: &out, Stderr: &out, Args: []string{"sh", "-c", `set -e
		mkdir /own && mount -t tmpfs own /own && cd /own && mkdir /memory/d /bucket/d
		for v in memory bucket; do
			d=; [ $v = memory ] && d=-devices
			TMPDIR=/own /programs/files -test.v -test.timeout 5m -entries 100 -rapid.checks=5 -rapid.seed=20261121 -rapid.nofailfile -volume /$v/d $d
		done`}})
	if err != nil {
		t.Fatal(err)
	}
	if status, err := p.Wait(t.Context()); status != 0 || err != nil {
		t.Errorf("status %d, %v: %s", status, err, out.String())
	}
}
