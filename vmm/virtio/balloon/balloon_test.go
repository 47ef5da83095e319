package balloon_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/virtio"
	"agentrun.dev/vmm/virtio/balloon"
	"agentrun.dev/vmm/virtio/virtiotest"
)

// Queues, as Linux numbers them.
const (
	inflate, deflate, stats, report = 0, 1, 2, 3
)

// host discards nothing, and notes what it was asked for.
type host struct {
	mu    sync.Mutex
	taken []string
	fail  error
}

func (h *host) discard(addr, n uint64) (uint64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if addr < virtiotest.Base || addr+n > virtiotest.Base+16<<20 {
		return 0, errs.Msg(errs.Invalid, "test", "", "outside")
	}
	if h.fail != nil {
		return 0, h.fail
	}
	h.taken = append(h.taken, fmt.Sprintf("%#x+%d", addr, n/balloon.PageSize))
	return n, nil
}

func (h *host) want(t *testing.T, want ...string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.taken, want) {
		t.Errorf("discarded %q, want %q", h.taken, want)
	}
	h.taken = nil
}

func (h *host) device() *balloon.Device { return balloon.New(balloon.Options{Discard: h.discard}) }

func list(pages ...uint32) []byte {
	var b []byte
	for _, p := range pages {
		b = binary.LittleEndian.AppendUint32(b, p)
	}
	return b
}

func TestInflate(t *testing.T) {
	var h host
	b := h.device()
	d := virtiotest.New(t, b, virtiotest.Options{})
	if err := b.SetTarget(5 * balloon.PageSize); err != nil {
		t.Fatal(err)
	}
	if got := binary.LittleEndian.Uint32(d.Config(0, 4)); got != 5 || d.Load(virtiotest.Generation) == 0 {
		t.Fatalf("the guest sees a target of %d pages", got)
	}
	d.Queues[inflate].Do([][]byte{list(0x21, 0x20), list(0x40, 0x22, 0x21, 0x23)})
	h.want(t, "0x20000+4", "0x40000+1")
	d.Store(virtiotest.Config+4, 5)
	if s := b.Status(); !s.Driver || s.Target != 5*balloon.PageSize || s.Actual != s.Target || s.Inflated != s.Target || s.Discarded != s.Target || s.Failures != 0 {
		t.Errorf("%+v", s)
	}
	d.Queues[deflate].Do([][]byte{list(0x22)})
	d.Queues[deflate].Do([][]byte{list(0xffffffff)}) // it has never been there: nothing comes of it
	d.Store(virtiotest.Config+4, 4)
	d.Store(virtiotest.Config, 99) // not the guest's to write
	if s := b.Status(); s.Actual != 4*balloon.PageSize || s.Target != 5*balloon.PageSize {
		t.Errorf("%+v", s)
	}
	h.want(t)
	h.fail = errors.New("not now")
	d.Queues[inflate].Do([][]byte{list(0x21)})
	if s := b.Status(); s.Failures != 1 || s.Discarded != 5*balloon.PageSize {
		t.Errorf("%+v", s)
	}
	d.NoFault()
	if err := b.SetTarget(1 << 60); !errs.Is(err, errs.Invalid) {
		t.Errorf("a target beyond what can be said: %v", err)
	}
}

// reported makes a report of free pages and returns where they are.
func reported(d *virtiotest.Driver, queue int, sizes ...int) (at []uint64) {
	q := d.Queues[queue]
	r := q.Add(nil, sizes...)
	for i := range sizes {
		at = append(at, r.Out(i))
	}
	q.Notify()
	if got := q.Wait(); got != r || got.Written != 0 {
		d.T.Fatalf("%+v came back", got)
	}
	q.Data(r)
	return at
}

func TestReport(t *testing.T) {
	for name, c := range map[string]struct {
		without uint64
		queue   int
	}{"linux": {0, report}, "specification": {0, 4}, "no statistics": {1 << balloon.FeatureStats, stats}, "no poison": {1 << balloon.FeaturePoison, report}} {
		t.Run(name, func(t *testing.T) {
			var h host
			b := h.device()
			d := virtiotest.New(t, b, virtiotest.Options{Without: c.without})
			at := reported(d, c.queue, 2<<20, 64<<10)
			h.want(t, fmt.Sprintf("%#x+512", at[0]), fmt.Sprintf("%#x+16", at[1]))
			if s := b.Status(); s.Reports != 1 || s.Reported != 2<<20+64<<10 || s.Discarded != s.Reported {
				t.Errorf("%+v", s)
			}
			d.NoFault()
		})
	}
}

// TestPoison: who fills free pages with something finds it there again.
func TestPoison(t *testing.T) {
	var h host
	b := h.device()
	d := virtiotest.New(t, b, virtiotest.Options{})
	d.Store(virtiotest.Config+12, 0xaaaaaaaa)
	reported(d, report, 1<<20)
	h.want(t)
	next := h.device()
	d.Move(next)
	reported(d, report, 1<<20)
	h.want(t)
	d.Store(virtiotest.Config+12, 0)
	reported(d, report, 1<<20)
	if s := next.Status(); s.Reports != 2 || s.Discarded != 1<<20 {
		t.Errorf("%+v", s)
	}
}

func stat(tag uint16, v uint64) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint16(nil, tag), v)
}

// until waits for what the device comes to know.
func until(t *testing.T, b *balloon.Device, ok func(balloon.Status) bool) {
	t.Helper()
	for end := time.Now().Add(virtiotest.Patience); !ok(b.Status()); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%+v", b.Status())
		}
	}
}

func TestStatistics(t *testing.T) {
	var h host
	b := h.device()
	d := virtiotest.New(t, b, virtiotest.Options{})
	q := d.Queues[stats]
	say := func(free uint64) *virtiotest.Request {
		r := q.Add([][]byte{slices.Concat(stat(4, free), stat(9, 1), stat(5, 2<<30), stat(999, 3), stat(7, 77), []byte{1, 2})})
		q.Notify()
		return r
	}
	r := say(100)
	until(t, b, func(s balloon.Status) bool {
		return s.Guest == balloon.Guest{Free: 100, Total: 2 << 30, Caches: 77}
	})
	for free := uint64(101); free < 104; free++ {
		b.Ask()
		if got := q.Wait(); got != r {
			t.Fatal("another buffer came back")
		}
		q.Data(r)
		r = say(free)
		until(t, b, func(s balloon.Status) bool { return s.Guest.Free == free })
	}
	// One that is restored holds the buffer, and gives it back when it is asked.
	next := h.device()
	d.Move(next)
	next.Ask()
	q.Data(q.Wait())
	say(200)
	until(t, next, func(s balloon.Status) bool { return s.Guest.Free == 200 })
	d.NoFault()
}

// TestMove: the balloon's size is the same in a fork, and each has its own from then on.
func TestMove(t *testing.T) {
	var h host
	b := h.device()
	d := virtiotest.New(t, b, virtiotest.Options{})
	if err := b.SetTarget(1 << 20); err != nil {
		t.Fatal(err)
	}
	d.Store(virtiotest.Config+4, 100)
	nb := h.device()
	n := d.Fork(nb)
	if s := nb.Status(); !s.Driver || s.Target != 1<<20 || s.Actual != 100*balloon.PageSize {
		t.Errorf("%+v", s)
	}
	n.Queues[inflate].Do([][]byte{list(0x30)})
	h.want(t, "0x30000+1")
	n.Store(virtiotest.Config+4, 101)
	n.Store(virtiotest.Status, 0)
	if s := nb.Status(); s.Driver || s.Actual != 0 || s.Target != 1<<20 {
		t.Errorf("after a reset: %+v", s)
	}
	if s := b.Status(); s.Actual != 100*balloon.PageSize {
		t.Errorf("the parent: %+v", s)
	}
	for _, bad := range []string{"", "x", `{"target":-1}`, `{"actual":4294967296}`} {
		if err := h.device().SetState([]byte(bad)); !errs.Is(err, errs.Invalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestHostile: pages that aren't there, lists that aren't ones, requests that weren't agreed upon.
func TestHostile(t *testing.T) {
	for name, c := range map[string]struct {
		queue   int
		in      []byte
		without uint64
	}{
		"beyond":         {inflate, list(0x20, 0xffffffff), 0},
		"before":         {inflate, list(1), 0},
		"across the end": {inflate, list(0x100f, 0x1010), 0},
		"odd":            {inflate, []byte{1, 2, 3}, 0},
		"long":           {inflate, make([]byte, 4<<20), 0},
		"odd deflate":    {deflate, make([]byte, 5), 0},
		"no reports":     {report, list(0x20), 1 << balloon.FeatureReporting},
	} {
		t.Run(name, func(t *testing.T) {
			var h host
			d := virtiotest.New(t, h.device(), virtiotest.Options{Without: c.without})
			d.Queues[c.queue].Add([][]byte{c.in})
			d.Queues[c.queue].Notify()
			if err := d.Fault(); !errs.Is(err, errs.Invalid) {
				t.Error(err)
			}
			d.Up()
			d.Queues[inflate].Do([][]byte{list(0x20, 0x20)})
		})
	}
}

func FuzzDevice(f *testing.F) {
	virtiotest.Seed(f, list(0x10, 0x11, 0x12), list(0x10, 0xffffffff), slices.Concat(stat(4, 1), stat(5, 2)))
	f.Fuzz(func(t *testing.T, data []byte) {
		virtiotest.Fuzz(t, func() virtio.Device {
			b := balloon.New(balloon.Options{Discard: func(addr, n uint64) (uint64, error) {
				if end := uint64(virtiotest.Base + 256<<10); addr < virtiotest.Base || addr > end || n > end-addr {
					return 0, errs.Msg(errs.Invalid, "test", "", "outside")
				}
				return n, nil
			}})
			b.Ask()
			return b
		}, data)
	})
}
