package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"agentrun.dev/blob/dir"
	"agentrun.dev/bucket"
	"agentrun.dev/kv/pebble"
)

// store is an embedded store in a folder of its own.
type store struct {
	*bucket.Store
	dir   string
	close func() error
}

func (b *bench) open(name string) (*store, error) {
	root := filepath.Join(b.dir, name)
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, err
	}
	db, err := pebble.Open(filepath.Join(root, "kv"), pebble.Options{})
	if err != nil {
		return nil, err
	}
	blobs, err := dir.Open(filepath.Join(root, "blobs"), dir.Options{})
	if err != nil {
		db.Close()
		return nil, err
	}
	s, err := bucket.Open(b.ctx, bucket.Options{KV: db, Blobs: blobs})
	if err != nil {
		db.Close()
		return nil, err
	}
	return &store{s, root, func() error {
		if err := s.Close(); err != nil {
			return err
		}
		return db.Close()
	}}, nil
}

func key(i int) string { return fmt.Sprintf("data/%03d/%09d.json", i%997, i) }

// fill puts n small objects, a thousand at a time.
func (s *store) fill(ctx context.Context, name string, n int) (*bucket.Bucket, error) {
	if _, err := s.Create(ctx, name, bucket.CreateOptions{}); err != nil {
		return nil, err
	}
	b, err := s.Bucket(ctx, name)
	if err != nil {
		return nil, err
	}
	return b, s.putMany(ctx, b, n, 100)
}

func (s *store) putMany(ctx context.Context, b *bucket.Bucket, n, size int) error {
	body := bytes.Repeat([]byte("x"), size)
	var ops []bucket.Op
	for i := range n {
		copy(body, fmt.Sprintf("%09d", i))
		p, err := s.Stage(ctx, bytes.NewReader(body), int64(size))
		if err != nil {
			return err
		}
		ops = append(ops, bucket.Op{Kind: bucket.OpPut, Key: key(i), Payload: p})
		if len(ops) == 1000 || i == n-1 {
			if _, err := b.Apply(ctx, ops, bucket.ApplyOptions{Lazy: true}); err != nil {
				return err
			}
			ops = ops[:0]
		}
	}
	return b.Sync(ctx)
}

func (s *store) put(ctx context.Context, b *bucket.Bucket, key, body string) error {
	p, err := s.Stage(ctx, bytes.NewReader([]byte(body)), int64(len(body)))
	if err != nil {
		return err
	}
	_, err = b.Apply(ctx, []bucket.Op{{Kind: bucket.OpPut, Key: key, Payload: p}}, bucket.ApplyOptions{})
	return err
}

// settled waits until nothing is folded or collected any more.
func (s *store) settled(ctx context.Context) error {
	for last := uint64(1<<63 - 1); ; {
		time.Sleep(300 * time.Millisecond)
		m := s.Metrics()
		if m.Folds == last {
			_, err := s.GC(ctx)
			return err
		}
		last = m.Folds
	}
}

func (b *bench) sizes() []int {
	if b.quick {
		return []int{1_000, 10_000}
	}
	return []int{1_000, 100_000, 1_000_000}
}

// forks measures a fork at several sizes in turn with one fsync, so that the machine's moods meet all of them. A write
// to the base goes before each, so that none finds the last one's view.
func forks(b *bench) error {
	sizes := b.sizes()
	stores := make([]*store, len(sizes))
	bases := make([]*bucket.Bucket, len(sizes))
	for i, n := range sizes {
		s, err := b.open(fmt.Sprint("fork", n))
		if err != nil {
			return err
		}
		defer func() { s.close(); os.RemoveAll(s.dir) }()
		if bases[i], err = s.fill(b.ctx, "base", n); err != nil {
			return err
		}
		if err := s.settled(b.ctx); err != nil {
			return err
		}
		stores[i] = s
	}
	f, err := os.Create(filepath.Join(b.dir, "fsync"))
	if err != nil {
		return err
	}
	defer f.Close()
	var floor times
	t := make([]times, len(sizes))
	for round := range 500 {
		for i, s := range stores {
			if err := s.put(b.ctx, bases[i], "touched", fmt.Sprint(round)); err != nil {
				return err
			}
			start := time.Now()
			if _, err := s.Fork(b.ctx, "base", fmt.Sprintf("fork-%d", round), bucket.ForkOptions{}); err != nil {
				return err
			}
			t[i] = append(t[i], time.Since(start))
		}
		start := time.Now()
		if _, err := f.Write(make([]byte, 512)); err != nil {
			return err
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return err
		}
		floor = append(floor, time.Since(start))
	}
	for i, n := range sizes {
		r := ratio(t[i].p50(), floor.p50())
		b.add(row{fmt.Sprintf("fork at %d objects, against one fsync", n), t[i].String(), floor.String(), r, "≤ 1.5", r <= 1.5})
		if i > 0 {
			r := ratio(t[i].p50(), t[0].p50())
			b.add(row{fmt.Sprintf("fork at %d objects, against %d", n, sizes[0]), short(t[i].p50()), short(t[0].p50()), r, "0.8–1.2", r >= 0.8 && r <= 1.2})
		}
	}
	return nil
}

// depth measures reads and listings in a fork of a fork of a fork …, each with a write of its own.
func depth(b *bench) error {
	n := 100_000
	if b.quick {
		n = 5_000
	}
	s, err := b.open("depth")
	if err != nil {
		return err
	}
	defer func() { s.close(); os.RemoveAll(s.dir) }()
	if _, err := s.fill(b.ctx, "fork-0", n); err != nil {
		return err
	}
	deepest := 1000
	for i := 1; i <= deepest; i++ {
		name := fmt.Sprintf("fork-%d", i)
		if _, err := s.Fork(b.ctx, fmt.Sprintf("fork-%d", i-1), name, bucket.ForkOptions{}); err != nil {
			return err
		}
		bk, err := s.Bucket(b.ctx, name)
		if err != nil {
			return err
		}
		if err := s.put(b.ctx, bk, fmt.Sprintf("own/%d", i), "x"); err != nil {
			return err
		}
	}
	if err := s.settled(b.ctx); err != nil {
		return err
	}
	var get, list [3]times
	depths := [3]int{0, 10, deepest}
	for round := range 5 {
		for i, d := range depths { // in turn, so that the machine's moods meet all of them
			v, err := s.View(b.ctx, fmt.Sprintf("fork-%d", d), 0)
			if err != nil {
				return err
			}
			t, err := measure(4000, func(int) error {
				o, err := v.Get(b.ctx, key(rand.IntN(n)))
				if err != nil {
					return err
				}
				rd, err := v.Open(b.ctx, o)
				if err != nil {
					return err
				}
				defer rd.Close()
				_, err = rd.WriteTo(io.Discard)
				return err
			})
			if err != nil {
				return err
			}
			l, err := measure(200, func(int) error {
				c := v.Scan(bucket.Scan{Start: key(rand.IntN(n))})
				for k := 0; k < 1000 && c.Next(b.ctx); k++ {
					_ = c.Object()
				}
				return c.Err()
			})
			if err != nil {
				return err
			}
			v.Close()
			if round > 0 {
				get[i], list[i] = append(get[i], t...), append(list[i], l...)
			}
		}
	}
	for i := 1; i < 3; i++ {
		r := ratio(get[i].p50(), get[0].p50())
		b.add(row{fmt.Sprintf("GET of 100 B at fork depth %d, against 0", depths[i]), get[i].String(), get[0].String(), r, "≤ 1.1", r <= 1.1})
		r = ratio(list[i].p50(), list[0].p50())
		b.add(row{fmt.Sprintf("LIST of 1,000 at fork depth %d, against 0", depths[i]), list[i].String(), list[0].String(), r, "≤ 1.1", r <= 1.1})
	}
	return nil
}

// diffs measures the diff of a fork with 100 changes, still in its log and folded.
func diffs(b *bench) error {
	n := b.sizes()[len(b.sizes())-1]
	s, err := b.open("diff")
	if err != nil {
		return err
	}
	defer func() { s.close(); os.RemoveAll(s.dir) }()
	if _, err := s.fill(b.ctx, "base", n); err != nil {
		return err
	}
	if err := s.settled(b.ctx); err != nil {
		return err
	}
	if _, err := s.Fork(b.ctx, "base", "work", bucket.ForkOptions{}); err != nil {
		return err
	}
	bk, err := s.Bucket(b.ctx, "work")
	if err != nil {
		return err
	}
	for i := range 100 {
		if err := s.put(b.ctx, bk, key(i*(n/100)), "changed"); err != nil {
			return err
		}
	}
	t, err := measure(100, func(int) error {
		found := 0
		err := s.Diff(b.ctx, "base", "work", "", func(bucket.Change) error { found++; return nil })
		if err == nil && found != 100 {
			err = fmt.Errorf("%d changes found, 100 made", found)
		}
		return err
	})
	if err != nil {
		return err
	}
	r := ratio(t.p50(), 10*time.Millisecond)
	b.add(row{fmt.Sprintf("diff of 100 changes in %d objects, against 10 ms", n), t.String(), "10 ms", r, "≤ 1", r <= 1})
	return nil
}

// deletes measures a listing after nearly everything before its answer was deleted key by key.
func deletes(b *bench) error {
	n := b.sizes()[len(b.sizes())-1]
	s, err := b.open("deletes")
	if err != nil {
		return err
	}
	defer func() { s.close(); os.RemoveAll(s.dir) }()
	bk, err := s.fill(b.ctx, "base", n)
	if err != nil {
		return err
	}
	for i := 0; i < 1000; i++ {
		if err := s.put(b.ctx, bk, fmt.Sprintf("zz/%04d", i), "kept"); err != nil {
			return err
		}
	}
	list := func() (times, error) {
		return measure(20, func(int) error {
			v, err := bk.View(b.ctx)
			if err != nil {
				return err
			}
			defer v.Close()
			c := v.Scan(bucket.Scan{})
			k := 0
			for ; k < 1000 && c.Next(b.ctx); k++ {
				_ = c.Object()
			}
			if c.Err() == nil && k != 1000 {
				return fmt.Errorf("%d keys listed", k)
			}
			return c.Err()
		})
	}
	before, err := list()
	if err != nil {
		return err
	}
	var ops []bucket.Op
	for i := range n {
		ops = append(ops, bucket.Op{Kind: bucket.OpDelete, Key: key(i)})
		if len(ops) == 1000 || i == n-1 {
			if _, err := bk.Apply(b.ctx, ops, bucket.ApplyOptions{Lazy: true}); err != nil {
				return err
			}
			ops = ops[:0]
		}
	}
	at, err := list()
	if err != nil {
		return err
	}
	if err := s.settled(b.ctx); err != nil {
		return err
	}
	after, err := list()
	if err != nil {
		return err
	}
	r := ratio(at.p50(), before.p50())
	b.add(row{fmt.Sprintf("LIST of 1,000 right after %d deletes, against before", n), at.String(), before.String(), r, "reported", true})
	r = ratio(after.p50(), before.p50())
	b.add(row{fmt.Sprintf("LIST of 1,000 after %d deletes, settled, against before", n), after.String(), before.String(), r, "≤ 1.5", r <= 1.5})
	return nil
}

// randomWrites measures durable 4 KiB writes at random places of a large object, against the same on a plain file.
func randomWrites(b *bench) error {
	size := int64(1 << 30)
	if b.quick {
		size = 64 << 20
	}
	s, err := b.open("writes")
	if err != nil {
		return err
	}
	defer func() { s.close(); os.RemoveAll(s.dir) }()
	if _, err := s.Create(b.ctx, "base", bucket.CreateOptions{}); err != nil {
		return err
	}
	bk, err := s.Bucket(b.ctx, "base")
	if err != nil {
		return err
	}
	p, err := s.Stage(b.ctx, io.LimitReader(zeros{}, size), size)
	if err != nil {
		return err
	}
	if _, err := bk.Apply(b.ctx, []bucket.Op{{Kind: bucket.OpPut, Key: "file", Payload: p}}, bucket.ApplyOptions{}); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(b.dir, "plain"))
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if _, err := io.Copy(file, io.LimitReader(zeros{}, size)); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	before, err := diskUse(s.dir)
	if err != nil {
		return err
	}
	page := make([]byte, 4096)
	const n = 2000 // writes
	var ours, plain times
	for range n {
		off := rand.Int64N(size/4096) * 4096
		rand.NewChaCha8([32]byte{byte(off >> 12)}).Read(page)
		start := time.Now()
		p, err := s.Stage(b.ctx, bytes.NewReader(page), 4096)
		if err != nil {
			return err
		}
		if _, err := bk.Apply(b.ctx, []bucket.Op{{Kind: bucket.OpWrite, Key: "file", Offset: off, Payload: p}}, bucket.ApplyOptions{}); err != nil {
			return err
		}
		ours = append(ours, time.Since(start))
		start = time.Now()
		if _, err := file.WriteAt(page, off); err != nil {
			return err
		}
		if err := syscall.Fdatasync(int(file.Fd())); err != nil {
			return err
		}
		plain = append(plain, time.Since(start))
	}
	after, err := diskUse(s.dir)
	if err != nil {
		return err
	}
	r := ratio(ours.p50(), plain.p50())
	b.add(row{fmt.Sprintf("durable 4 KiB write into %d MiB, against a plain file", size>>20), ours.String(), plain.String(), r, "reported", true})
	r = float64(after-before) / (n * 4096)
	b.add(row{"bytes on disk for each byte so written", fmt.Sprintf("%.1f KiB", float64(after-before)/n/1024), "4 KiB", r, "reported", true})
	return nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// renames measures the rename of a folder of very many keys.
func renames(b *bench) error {
	n := b.sizes()[len(b.sizes())-1]
	s, err := b.open("rename")
	if err != nil {
		return err
	}
	defer func() { s.close(); os.RemoveAll(s.dir) }()
	bk, err := s.fill(b.ctx, "base", n)
	if err != nil {
		return err
	}
	if err := s.settled(b.ctx); err != nil {
		return err
	}
	start := time.Now()
	if _, err := bk.Apply(b.ctx, []bucket.Op{{Kind: bucket.OpRenameDir, Key: "data/", To: "moved/"}}, bucket.ApplyOptions{}); err != nil {
		return err
	}
	t := time.Since(start)
	v, err := bk.View(b.ctx)
	if err != nil {
		return err
	}
	defer v.Close()
	if got := v.Info().Objects; got != uint64(n) {
		return fmt.Errorf("%d objects after the rename of %d", got, n)
	}
	b.add(row{fmt.Sprintf("rename of %d keys, per key", n), short(t) + " in all", short(t / time.Duration(n)), ratio(t, time.Second), "reported", true})
	return nil
}

// smallForks measures what ten thousand forks with one small object each take.
func smallForks(b *bench) error {
	n := 10_000
	if b.quick {
		n = 500
	}
	s, err := b.open("small")
	if err != nil {
		return err
	}
	defer func() { s.close(); os.RemoveAll(s.dir) }()
	if _, err := s.fill(b.ctx, "base", 1000); err != nil {
		return err
	}
	if err := s.settled(b.ctx); err != nil {
		return err
	}
	before, err := diskUse(s.dir)
	if err != nil {
		return err
	}
	start := time.Now()
	for i := range n {
		name := fmt.Sprintf("fork-%d", i)
		if _, err := s.Fork(b.ctx, "base", name, bucket.ForkOptions{}); err != nil {
			return err
		}
		bk, err := s.Bucket(b.ctx, name)
		if err != nil {
			return err
		}
		if err := s.put(b.ctx, bk, "result", "done"); err != nil {
			return err
		}
	}
	t := time.Since(start)
	after, err := diskUse(s.dir)
	if err != nil {
		return err
	}
	per := float64(after-before) / float64(n)
	b.add(row{fmt.Sprintf("bytes on disk for each of %d forks with one object, against 1 KB", n), fmt.Sprintf("%.0f B (%s each)", per, short(t/time.Duration(n))), "1,000 B", per / 1000, "≤ 1", per <= 1000})
	return nil
}

// storedOnce measures the bytes on disk after a hundred forks of a bucket.
func storedOnce(b *bench) error {
	objects, size := 1000, 1_000_000
	if b.quick {
		objects = 50
	}
	s, err := b.open("once")
	if err != nil {
		return err
	}
	defer func() { s.close(); os.RemoveAll(s.dir) }()
	if _, err := s.Create(b.ctx, "base", bucket.CreateOptions{}); err != nil {
		return err
	}
	bk, err := s.Bucket(b.ctx, "base")
	if err != nil {
		return err
	}
	noise := rand.NewChaCha8([32]byte{1})
	for i := range objects {
		p, err := s.Stage(b.ctx, io.LimitReader(noise, int64(size)), int64(size))
		if err != nil {
			return err
		}
		if _, err := bk.Apply(b.ctx, []bucket.Op{{Kind: bucket.OpPut, Key: key(i), Payload: p}}, bucket.ApplyOptions{}); err != nil {
			return err
		}
	}
	for i := range 100 {
		if _, err := s.Fork(b.ctx, "base", fmt.Sprintf("fork-%d", i), bucket.ForkOptions{}); err != nil {
			return err
		}
	}
	if err := s.settled(b.ctx); err != nil {
		return err
	}
	use, err := diskUse(s.dir)
	if err != nil {
		return err
	}
	total := float64(objects) * float64(size)
	r := float64(use) / total
	b.add(row{fmt.Sprintf("bytes on disk after 100 forks of %d MB", int(total/1e6)), fmt.Sprintf("%.1f MB", float64(use)/1e6), fmt.Sprintf("%.0f MB", total/1e6), r, "≤ 1.01", r <= 1.01})
	return nil
}

// diskUse is what a folder's files hold: neither holes nor room that was only reserved ahead count.
func diskUse(root string) (n int64, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // a file may go while we look
		}
		i, err := d.Info()
		if err != nil {
			return nil
		}
		if st, ok := i.Sys().(*syscall.Stat_t); ok {
			n += min(i.Size(), st.Blocks*512)
		}
		return nil
	})
	return n, err
}
