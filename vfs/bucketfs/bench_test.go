package bucketfs_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

// filesystems are what the benchmarks compare.
func filesystems(b *testing.B, do func(b *testing.B, u *user)) {
	b.Run("bucketfs", func(b *testing.B) { do(b, use(b, newFS(b, newBucket(b)))) })
	b.Run("memfs", func(b *testing.B) { do(b, use(b, memfs.New(memfs.Options{Bytes: 4 << 30, Inodes: 1 << 24}))) })
}

func fill(b *testing.B, u *user, n int, text string) {
	u.must(u.ns.Mkdir(ctx, root, "/", "dir", 0o755))
	u.must(u.ns.Mkdir(ctx, root, "/", "dir/sub", 0o755))
	for i := range n {
		u.write(fmt.Sprintf("dir/sub/f%06d", i), text)
	}
	b.ReportAllocs()
	b.ResetTimer()
}

// BenchmarkStat stats a file three directories deep, again and again.
func BenchmarkStat(b *testing.B) {
	filesystems(b, func(b *testing.B, u *user) {
		fill(b, u, 1000, "text")
		for b.Loop() {
			if _, err := u.ns.Stat(ctx, root, "/dir", "sub/f000500"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkStatAfterWrite stats files while others are written: what was known must be looked up again.
func BenchmarkStatAfterWrite(b *testing.B) {
	filesystems(b, func(b *testing.B, u *user) {
		fill(b, u, 1000, "text")
		mode := vfs.Mode(0o644)
		for i := 0; b.Loop(); i++ {
			if i%10 == 0 {
				u.must(u.ns.SetAttr(ctx, root, "/", "dir/sub/f000000", vfs.SetAttr{Mode: &mode}, true))
			}
			if _, err := u.ns.Stat(ctx, root, "/dir", fmt.Sprintf("sub/f%06d", i%1000)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkOpenRead4K(b *testing.B) {
	filesystems(b, func(b *testing.B, u *user) {
		fill(b, u, 1000, string(make([]byte, 4096)))
		buf := make([]byte, 4096)
		for i := 0; b.Loop(); i++ {
			f := u.open(fmt.Sprintf("dir/sub/f%06d", i%1000), vfs.O_RDONLY)
			if n, err := f.Read(buf); n != 4096 || err != nil {
				b.Fatal(n, err)
			}
			f.Close()
		}
	})
}

func BenchmarkCreateWriteClose(b *testing.B) {
	filesystems(b, func(b *testing.B, u *user) {
		fill(b, u, 0, "")
		text := string(make([]byte, 4096))
		for i := 0; b.Loop(); i++ {
			u.write(fmt.Sprintf("dir/sub/f%07d", i), text)
		}
	})
}

func BenchmarkReadDir1000(b *testing.B) {
	filesystems(b, func(b *testing.B, u *user) {
		fill(b, u, 1000, "text")
		for b.Loop() {
			if list, err := u.ns.ReadDir(ctx, root, "/", "dir/sub"); err != nil || len(list) != 1000 {
				b.Fatal(len(list), err)
			}
		}
	})
}

// BenchmarkRandomWrites writes 4 KiB anywhere in a file of 1 GB, and syncs every 1,000 writes.
func BenchmarkRandomWrites(b *testing.B) {
	filesystems(b, func(b *testing.B, u *user) {
		f := u.open("big", vfs.O_RDWR|vfs.O_CREAT)
		size := int64(1 << 30)
		u.must(f.SetAttr(vfs.SetAttr{Size: &size}))
		u.must(f.Sync())
		r := rand.New(rand.NewPCG(1, 1))
		buf := make([]byte, 4096)
		b.SetBytes(4096)
		b.ResetTimer()
		for i := 0; b.Loop(); i++ {
			if _, err := f.WriteAt(buf, r.Int64N(size/4096)*4096); err != nil {
				b.Fatal(err)
			}
			if i%1000 == 999 {
				u.must(f.Sync())
			}
		}
		b.StopTimer()
		u.must(f.Close())
	})
}

// BenchmarkSequentialWrite writes files of 256 MiB in pieces of 128 KiB.
func BenchmarkSequentialWrite(b *testing.B) {
	filesystems(b, func(b *testing.B, u *user) {
		buf := make([]byte, 128<<10)
		b.SetBytes(256 << 20)
		for b.Loop() {
			f := u.open("big", vfs.O_WRONLY|vfs.O_CREAT|vfs.O_TRUNC)
			for range 2048 {
				if _, err := f.Write(buf); err != nil {
					b.Fatal(err)
				}
			}
			u.must(f.Close())
		}
	})
}
