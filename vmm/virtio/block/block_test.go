package block_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/virtio"
	"agentrun.dev/vmm/virtio/block"
	vt "agentrun.dev/vmm/virtio/virtiotest"
)

const sectors = 8192 // of the disks here: 4 MiB

// temp returns an open file that has no name any more.
func temp(t testing.TB) *os.File {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "disk")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	return f
}

// filled returns a file with contents that name their sector.
func filled(t testing.TB, n int) *os.File {
	f := temp(t)
	data := make([]byte, n*block.Sector)
	for i := range n {
		binary.LittleEndian.PutUint64(data[i*block.Sector:], uint64(i)|1<<40)
	}
	if _, err := f.WriteAt(data, 0); err != nil {
		t.Fatal(err)
	}
	return f
}

func file(t testing.TB, ro bool) block.Disk {
	d, err := block.NewFile(filled(t, sectors), 0, ro)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func overlay(t testing.TB) *block.Overlay {
	o, err := block.NewOverlay(filled(t, sectors), temp(t), sectors*block.Sector)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Request types.
const (
	in, out, flush, getID, discard, zeroes = 0, 1, 4, 8, 11, 13
)

// do makes a request and returns its status and data.
func do(d *vt.Driver, kind uint32, sector uint64, data []byte, n int) (byte, []byte) {
	d.T.Helper()
	h := make([]byte, 16)
	binary.LittleEndian.PutUint32(h, kind)
	binary.LittleEndian.PutUint64(h[8:], sector)
	in := [][]byte{h}
	if len(data) > 0 {
		in = append(in, data)
	}
	sizes := []int{1}
	if n > 0 {
		sizes = []int{n, 1}
	}
	got, _ := d.Queues[0].Do(in, sizes...)
	return got[n], got[:n]
}

func ranges(sector uint64, n, flags uint32) []byte {
	b := binary.LittleEndian.AppendUint64(nil, sector)
	b = binary.LittleEndian.AppendUint32(b, n)
	return binary.LittleEndian.AppendUint32(b, flags)
}

func TestDisks(t *testing.T) {
	for name, disk := range map[string]func() block.Disk{
		"file":    func() block.Disk { return file(t, false) },
		"overlay": func() block.Disk { return overlay(t) },
	} {
		t.Run(name, func(t *testing.T) {
			d := vt.New(t, block.New(disk(), block.Options{Serial: "agentrun-1"}), vt.Options{})
			if c := d.Config(0, 8); binary.LittleEndian.Uint64(c) != sectors {
				t.Fatalf("capacity %x", c)
			}
			if s, id := do(d, getID, 0, nil, 20); s != 0 || string(bytes.TrimRight(id, "\x00")) != "agentrun-1" {
				t.Fatalf("id %q, status %d", id, s)
			}
			model := make([]byte, sectors*block.Sector)
			for i := range sectors {
				binary.LittleEndian.PutUint64(model[i*block.Sector:], uint64(i)|1<<40)
			}
			rnd := rand.New(rand.NewPCG(1, 2))
			for i := range 1500 {
				sector := rnd.Uint64N(sectors)
				n := min(rnd.Uint64N(40)+1, sectors-sector)
				if i%9 == 0 {
					n = min(n*37, sectors-sector)
				}
				window := model[sector*block.Sector : (sector+n)*block.Sector]
				switch rnd.IntN(8) {
				case 0, 1, 2:
					for i := range window {
						window[i] = byte(rnd.Uint32())
					}
					if s, _ := do(d, out, sector, window, 0); s != 0 {
						t.Fatalf("write: status %d", s)
					}
				case 3:
					clear(window)
					if s, _ := do(d, zeroes, 0, ranges(sector, uint32(n), uint32(i%2)), 0); s != 0 {
						t.Fatalf("write zeroes: status %d", s)
					}
				case 4:
					if s, _ := do(d, flush, 0, nil, 0); s != 0 {
						t.Fatalf("flush: status %d", s)
					}
				default:
					if s, got := do(d, in, sector, nil, len(window)); s != 0 || !bytes.Equal(got, window) {
						t.Fatalf("step %d: read of %d sectors at %d differs (status %d)", i, n, sector, s)
					}
				}
			}
			if s, _ := do(d, discard, 0, append(ranges(0, 64, 0), ranges(72, 8, 0)...), 0); s != 0 {
				t.Fatalf("discard: status %d", s)
			}
			for i, want := range map[int]byte{0: 0, 75 * 512: 0, 70 * 512: model[70*512]} {
				if s, got := do(d, in, uint64(i)/512, nil, 512); s != 0 || got[0] != want {
					t.Errorf("after discard, at %d: %d, wanted %d", i, got[0], want)
				}
			}
			d.NoFault()
		})
	}
}

func TestErrors(t *testing.T) {
	dev := block.New(overlay(t), block.Options{})
	d := vt.New(t, dev, vt.Options{})
	sector := make([]byte, 512)
	for _, c := range []struct {
		name   string
		kind   uint32
		sector uint64
		data   []byte
		n      int
		want   byte
	}{
		{"read at the end", in, sectors, nil, 512, 1},
		{"read over the end", in, sectors - 1, nil, 1024, 1},
		{"read far out", in, 1<<63 + 1, nil, 512, 1},
		{"read where bytes overflow", in, 1 << 55, nil, 512, 1},
		{"read half a sector", in, 0, nil, 100, 1},
		{"write over the end", out, sectors - 1, append(sector, sector...), 0, 1},
		{"write half a sector", out, 0, sector[:100], 0, 1},
		{"unknown", 77, 0, nil, 0, 2},
		{"secure erase", 14, 0, ranges(0, 1, 0), 0, 2},
		{"discard nothing", discard, 0, nil, 0, 1},
		{"discard half a range", discard, 0, ranges(0, 1, 0)[:9], 0, 1},
		{"discard outside", discard, 0, ranges(sectors, 1, 0), 0, 1},
		{"discard with a flag", discard, 0, ranges(0, 1, 1), 0, 2},
		{"zeroes with an unknown flag", zeroes, 0, ranges(0, 1, 2), 0, 2},
		{"zeroes of too much", zeroes, 0, ranges(0, 1<<30, 0), 0, 1},
		{"too many ranges", discard, 0, bytes.Repeat(ranges(0, 1, 0), 33), 0, 1},
		{"empty read", in, 0, nil, 0, 0},
	} {
		if got, _ := do(d, c.kind, c.sector, c.data, c.n); got != c.want {
			t.Errorf("%s: status %d, wanted %d", c.name, got, c.want)
		}
	}
	if dev.Stats().Errors == 0 || !errs.Is(dev.Err(), errs.Invalid) && !errs.Is(dev.Err(), errs.TooLarge) {
		t.Errorf("%+v, %v", dev.Stats(), dev.Err())
	}
	d.NoFault()
	// Without a place for the status there is no answer.
	d.Queues[0].Add([][]byte{make([]byte, 16)})
	d.Queues[0].Notify()
	_ = d.Fault()
	d.Up()
	d.Queues[0].Add([][]byte{make([]byte, 15)}, 1)
	d.Queues[0].Notify()
	_ = d.Fault()
}

func TestReadOnly(t *testing.T) {
	d := vt.New(t, block.New(file(t, true), block.Options{}), vt.Options{})
	if d.Features>>block.FeatureReadOnly&1 == 0 || d.Features>>block.FeatureDiscard&1 != 0 {
		t.Fatalf("features %#x", d.Features)
	}
	for kind, want := range map[uint32]byte{out: 1, discard: 2, zeroes: 2, flush: 0} {
		data := make([]byte, 512)
		if kind == discard || kind == zeroes {
			data = ranges(0, 1, 0)
		} else if kind == flush {
			data = nil
		}
		if s, _ := do(d, kind, 0, data, 0); s != want {
			t.Errorf("request %d: status %d, wanted %d", kind, s, want)
		}
	}
	if s, got := do(d, in, 3, nil, 512); s != 0 || got[0] != 3 {
		t.Errorf("read %d, status %d", got[0], s)
	}
}

// synced counts what a disk is asked to make durable, and fails when told.
type synced struct {
	block.Disk
	syncs int
	fail  error
}

func (s *synced) Sync() error { s.syncs++; return s.fail }

func TestDurability(t *testing.T) {
	disk := &synced{Disk: file(t, false)}
	d := vt.New(t, block.New(disk, block.Options{}), vt.Options{})
	do(d, out, 0, make([]byte, 512), 0)
	if disk.syncs != 0 {
		t.Error("a write of a driver that flushes was synced")
	}
	if do(d, flush, 0, nil, 0); disk.syncs != 1 {
		t.Error("a flush didn't sync")
	}
	disk.fail = errors.New("no more disk")
	if s, _ := do(d, flush, 0, nil, 0); s != 1 {
		t.Errorf("a flush that failed: status %d", s)
	}
	through := &synced{Disk: file(t, false)}
	d = vt.New(t, block.New(through, block.Options{}), vt.Options{Without: 1 << block.FeatureFlush})
	if do(d, out, 0, make([]byte, 512), 0); through.syncs != 1 {
		t.Error("a write of a driver that doesn't flush wasn't synced")
	}
}

func TestSizes(t *testing.T) {
	f := temp(t)
	d, err := block.NewFile(f, 5000, false)
	if err != nil {
		t.Fatal(err)
	}
	if info, _ := f.Stat(); info.Size() != 5000 {
		t.Errorf("the file has %d bytes", info.Size())
	}
	drv := vt.New(t, block.New(d, block.Options{}), vt.Options{})
	if c := binary.LittleEndian.Uint64(drv.Config(0, 8)); c != 9 {
		t.Errorf("%d sectors", c)
	}
	for _, size := range []int64{-1, 100, 1 << 62} {
		if _, err := block.NewFile(temp(t), size, false); !errs.Is(err, errs.Invalid) {
			t.Errorf("size %d: %v", size, err)
		}
	}
	if _, err := block.NewOverlay(nil, temp(t), block.MaxOverlay+512); !errs.Is(err, errs.Invalid) {
		t.Errorf("a huge overlay: %v", err)
	}
	if _, err := block.NewFile(temp(t), 0, false); !errs.Is(err, errs.Invalid) {
		t.Errorf("an empty file: %v", err)
	}
	// A base that is smaller than the disk, at an odd length, reads as zeros behind its end.
	base := temp(t)
	if _, err := base.WriteAt(bytes.Repeat([]byte("x"), 700), 0); err != nil {
		t.Fatal(err)
	}
	o, err := block.NewOverlay(base, temp(t), 10000)
	if err != nil {
		t.Fatal(err)
	}
	drv = vt.New(t, block.New(o, block.Options{}), vt.Options{})
	if s, got := do(drv, in, 0, nil, 19*512); s != 0 || !bytes.Equal(got, append(bytes.Repeat([]byte("x"), 700), make([]byte, 19*512-700)...)) {
		t.Error("the disk behind the base isn't zeros")
	}
	if s, _ := do(drv, out, 18, bytes.Repeat([]byte("y"), 512), 0); s != 0 {
		t.Error("no write to the last sector")
	}
	if s, got := do(drv, in, 18, nil, 512); s != 0 || got[511] != 'y' {
		t.Error("the last sector wasn't kept")
	}
}

// TestMidLife: under load, the device is paused, moved to another and forked; neither loses or sees what it shouldn't.
func TestMidLife(t *testing.T) {
	o := overlay(t)
	d := vt.New(t, block.New(o, block.Options{}), vt.Options{})
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Add(1)
	go func() {
		defer wg.Done()
		for {
			select {
			case <-stop:
				return
			default:
				d.M.Pause()
				d.M.Resume()
			}
		}
	}()
	for i := range uint64(300) {
		data := bytes.Repeat([]byte{byte(i)}, 1536)
		if s, _ := do(d, out, i*3, data, 0); s != 0 {
			t.Fatalf("write: status %d", s)
		}
		if s, got := do(d, in, i*3, nil, 1536); s != 0 || !bytes.Equal(got, data) {
			t.Fatalf("read %d differs", i)
		}
	}
	close(stop)
	wg.Wait()

	d.M.Pause()
	fork, err := o.Fork(temp(t), temp(t))
	if err != nil {
		t.Fatal(err)
	}
	d.M.Resume()
	child := d.Fork(block.New(fork, block.Options{}))
	do(d, out, 0, bytes.Repeat([]byte("p"), 512), 0)
	do(child, out, 0, bytes.Repeat([]byte("c"), 512), 0)
	for drv, want := range map[*vt.Driver]byte{d: 'p', child: 'c'} {
		if _, got := do(drv, in, 0, nil, 512); got[0] != want {
			t.Errorf("%c, wanted %c", got[0], want)
		}
		if _, got := do(drv, in, 30, nil, 512); got[0] != 10 {
			t.Errorf("what was written before the fork is %d", got[0])
		}
	}
	small, err := block.NewFile(temp(t), 512, false)
	if err != nil {
		t.Fatal(err)
	}
	other := vt.New(t, block.New(small, block.Options{}), vt.Options{Idle: true})
	d.M.Pause()
	s, err := d.M.State()
	if err != nil {
		t.Fatal(err)
	}
	other.M.Pause()
	if err := other.M.SetState(s); !errs.Is(err, errs.Invalid) {
		t.Errorf("restored on another disk: %v", err)
	}
}

func FuzzDevice(f *testing.F) {
	h := func(kind byte, sector byte, data ...byte) []byte {
		return append([]byte{kind, 0, 0, 0, 0, 0, 0, 0, sector, 0, 0, 0, 0, 0, 0, 0}, data...)
	}
	vt.Seed(f, h(in, 1), h(out, 2, 1, 2, 3), h(flush, 0), h(getID, 0), h(discard, 0, ranges(1, 8, 0)...), h(zeroes, 0, ranges(8, 16, 1)...), h(99, 0))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		vt.Fuzz(t, func() virtio.Device {
			top, err := os.OpenFile(filepath.Join(dir, "top"), os.O_RDWR|os.O_CREATE, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			o, err := block.NewOverlay(nil, top, 256<<10)
			if err != nil {
				t.Fatal(err)
			}
			return block.New(o, block.Options{})
		}, data)
	})
}

func BenchmarkRead4K(b *testing.B) {
	d := vt.New(b, block.New(overlay(b), block.Options{}), vt.Options{})
	for b.Loop() {
		do(d, in, 64, nil, 4096)
	}
}
