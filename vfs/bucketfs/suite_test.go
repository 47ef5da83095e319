package bucketfs_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agentrun.dev/blob"
	"agentrun.dev/blob/memory"
	"agentrun.dev/bucket"
	kvmemory "agentrun.dev/kv/memory"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/bucketfs"
	"agentrun.dev/vfs/vfstest"
)

var ctx = context.Background()

// newBucket makes an empty bucket in a store in memory.
func newBucket(t testing.TB) *bucket.Bucket {
	t.Helper()
	return makeBucket(t, memory.New(memory.Options{}), bucket.Unversioned)
}

func makeBucket(t testing.TB, blobs blob.Store, v bucket.Versioning) *bucket.Bucket {
	t.Helper()
	s, err := bucket.Open(ctx, bucket.Options{KV: kvmemory.New(), Blobs: blobs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if _, err := s.Create(ctx, "files", bucket.CreateOptions{Versioning: v}); err != nil {
		t.Fatal(err)
	}
	b, err := s.Bucket(ctx, "files")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newFS(t testing.TB, b *bucket.Bucket) *bucketfs.FS {
	t.Helper()
	fs, err := bucketfs.New(ctx, b, bucketfs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fs.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return fs
}

// mounted remembers the bucket for the check.
type mounted struct {
	*bucketfs.FS
	b *bucket.Bucket
}

// TestVersioned runs the suite on a bucket that keeps every version, where each write makes another object. Hard links are
// left out: a write parts the names there, since a version belongs to one key.
func TestVersioned(t *testing.T) {
	c := config
	c.NoLinks = true
	c.New = func(t testing.TB) vfs.FS {
		b := makeBucket(t, memory.New(memory.Options{}), bucket.Versioned)
		return &mounted{newFS(t, b), b}
	}
	vfstest.Run(t, c)
}

// config compares what a filesystem shows with what another one finds that has just been mounted on the same bucket, and
// with a read-only one on a view.
var config = vfstest.Config{
	New: func(t testing.TB) vfs.FS {
		b := newBucket(t)
		return &mounted{newFS(t, b), b}
	},
	Check: func(t *rapid.T, fs vfs.FS) {
		m := fs.(*mounted)
		want := vfstest.Tree(t, fs)
		other, err := bucketfs.New(ctx, m.b, bucketfs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close(ctx)
		if got := vfstest.Tree(t, other); !slices.Equal(got, want) {
			t.Fatalf("mounted again, the bucket has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		v, err := m.b.View(ctx)
		if err != nil {
			t.Fatal(err)
		}
		frozen := bucketfs.NewView(v, bucketfs.Options{})
		defer frozen.Close(ctx)
		if got := vfstest.Tree(t, frozen); !slices.Equal(got, want) {
			t.Fatalf("the view has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	},
}

func TestConformance(t *testing.T) { vfstest.Run(t, config) }
