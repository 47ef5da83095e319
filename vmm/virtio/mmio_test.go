package virtio_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/virtio"
	vt "agentrun.dev/vmm/virtio/virtiotest"
)

// echo is a device that copies what it reads to what it writes. A request that begins with "wait" waits for the release, or
// for the queue to be drained.
type echo struct {
	mu      sync.Mutex
	config  [8]byte
	release chan struct{}
	waits   atomic.Int32
	link    *virtio.Link
	wg      sync.WaitGroup
	reset   int
}

func newEcho() *echo { return &echo{release: make(chan struct{})} }

func (e *echo) ID() uint32       { return 42 }
func (e *echo) Features() uint64 { return 1 << 3 }
func (e *echo) Queues() []uint16 { return []uint16{16, 4} }
func (e *echo) ReadConfig(off uint32, p []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	virtio.Config(e.config[:], off, p)
}
func (e *echo) WriteConfig(off uint32, p []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if int(off) < len(e.config) {
		copy(e.config[off:], p)
	}
}
func (e *echo) Start(l *virtio.Link) error { e.link = l; return nil }
func (e *echo) Reset()                     { e.reset++ }
func (e *echo) State() ([]byte, error)     { return e.config[:], nil }
func (e *echo) SetState(s []byte) error {
	if copy(e.config[:], s) != len(e.config) {
		return errs.Msg(errs.Invalid, "echo", "restore", "short")
	}
	return nil
}
func (e *echo) Close() error { e.wg.Wait(); return nil }

func (e *echo) Handle(ctx context.Context, q *virtio.Queue) error {
	for {
		c, err := q.Pop()
		if c == nil || err != nil {
			return err
		}
		if head := c.In.Segments(); len(head) > 0 && bytes.HasPrefix(head[0], []byte("wait")) {
			e.waits.Add(1)
			e.wg.Add(1)
			go func() {
				defer e.wg.Done()
				select {
				case <-ctx.Done():
					c.Return()
				case <-e.release:
					c.Done(e.copy(c))
					q.Signal()
				}
			}()
			continue
		}
		c.Done(e.copy(c))
	}
}

func (e *echo) copy(c *virtio.Chain) int {
	p := make([]byte, c.In.Len())
	c.In.Read(p)
	return c.Out.Write(p)
}

func TestRegisters(t *testing.T) {
	d := vt.New(t, newEcho(), vt.Options{Idle: true})
	for off, want := range map[uint64]uint32{0: 0x74726976, 4: 2, 8: 42, 0x10: 1<<3 | 1<<28 | 1<<29, 0x34: 16, 0x44: 0, 0x60: 0, 0x70: 0,
		0xb0: 0xffffffff, 0xb4: 0xffffffff, 0xb8: 0xffffffff, 0xbc: 0xffffffff, 0xfc: 0, 0x18: 0, 0x20: 0} {
		if got := d.Load(off); got != want {
			t.Errorf("register %#x: %#x, wanted %#x", off, got, want)
		}
	}
	d.Store(vt.FeaturesSel, 1)
	if got := d.Load(vt.Features); got != 1 {
		t.Errorf("high features %#x", got)
	}
	d.Store(vt.FeaturesSel, 2)
	if got := d.Load(vt.Features); got != 0 {
		t.Errorf("third features %#x", got)
	}
	d.Store(vt.QueueSel, 2)
	if got := d.Load(vt.QueueMax); got != 0 {
		t.Errorf("a third queue of %d", got)
	}
	d.M.Write(vt.Config+2, []byte{7, 8})
	if got := d.Config(0, 8); !bytes.Equal(got, []byte{0, 0, 7, 8, 0, 0, 0, 0}) {
		t.Errorf("config %x", got)
	}
	if got := d.Config(6, 4); !bytes.Equal(got, make([]byte, 4)) {
		t.Errorf("config over its end %x", got)
	}
	d.M.Write(vt.Status, []byte{1}) // not 32 bits
	d.M.Write(5000, []byte{1, 0, 0, 0})
	if got := d.Load(vt.Status); got != 0 {
		t.Errorf("status %#x", got)
	}
	d.NoFault()
}

func TestEcho(t *testing.T) {
	for _, without := range []uint64{0, 1 << 28, 1 << 29, 1<<28 | 1<<29} {
		t.Run(fmt.Sprintf("without %#x", without), func(t *testing.T) {
			d := vt.New(t, newEcho(), vt.Options{Without: without})
			q := d.Queues[0]
			for i := range 200 { // often around the ring
				in := [][]byte{[]byte("he"), []byte(fmt.Sprint("llo ", i))}
				want := "hello " + fmt.Sprint(i)
				got, n := q.Do(in, 3, 40)
				if n != len(want) || string(got[:n]) != want {
					t.Fatalf("%q (%d), wanted %q", got, n, want)
				}
			}
			var sent []*vt.Request
			for i := 0; ; i++ {
				r := q.Add([][]byte{{byte(i)}}, 1)
				if r == nil {
					break
				}
				sent = append(sent, r)
			}
			q.Notify()
			for i, want := range sent {
				if r := q.Wait(); r != want || q.Data(r)[0] != byte(i) {
					t.Fatalf("request %d out of order", i)
				}
			}
			d.NoFault()
		})
	}
}

// TestIndexWraps: the 16-bit indexes overflow.
func TestIndexWraps(t *testing.T) {
	d := vt.New(t, newEcho(), vt.Options{})
	q := d.Queues[0]
	for i := 0; i < 1<<16+100; {
		n := 0
		for ; n < 16 && q.Add([][]byte{{byte(i + n)}}, 1) != nil; n++ {
		}
		q.Notify()
		for ; n > 0; n-- {
			r := q.Wait()
			if got := q.Data(r)[0]; got != byte(i) {
				t.Fatalf("request %d: %d", i, got)
			}
			i++
		}
	}
}

func TestStatusMachine(t *testing.T) {
	const ack, drv, ok, feat = virtio.StatusAcknowledge, virtio.StatusDriver, virtio.StatusDriverOK, virtio.StatusFeaturesOK
	version1 := func(d *vt.Driver) { d.Store(vt.DriverSel, 1); d.Store(vt.DriverFeatures, 1) }
	for _, c := range []struct {
		name string
		do   func(d *vt.Driver)
		want uint32
	}{
		{"features without a driver", func(d *vt.Driver) { d.Store(vt.Status, feat) }, virtio.StatusNeedsReset},
		{"ready before features", func(d *vt.Driver) { d.Store(vt.Status, ack|drv); d.Store(vt.Status, ack|drv|ok) }, ack | drv | virtio.StatusNeedsReset},
		{"bits taken back", func(d *vt.Driver) { d.Store(vt.Status, ack|drv); d.Store(vt.Status, ack) }, ack | drv | virtio.StatusNeedsReset},
		{"no version 1", func(d *vt.Driver) { d.Store(vt.Status, ack|drv); d.Store(vt.Status, ack|drv|feat) }, ack | drv},
		{"features not offered", func(d *vt.Driver) {
			d.Store(vt.Status, ack|drv)
			version1(d)
			d.Store(vt.DriverSel, 0)
			d.Store(vt.DriverFeatures, 1<<5)
			d.Store(vt.Status, ack|drv|feat)
		}, ack | drv},
		{"features too late", func(d *vt.Driver) {
			d.Store(vt.Status, ack|drv)
			version1(d)
			d.Store(vt.Status, ack|drv|feat)
			version1(d)
		}, ack | drv | feat | virtio.StatusNeedsReset},
		{"queue before features", func(d *vt.Driver) { d.Store(vt.Status, ack|drv); d.Store(vt.QueueReady, 1) }, ack | drv | virtio.StatusNeedsReset},
		{"no queues at all", func(d *vt.Driver) {
			d.Store(vt.Status, ack|drv)
			version1(d)
			d.Store(vt.Status, ack|drv|feat)
			d.Store(vt.Status, ack|drv|feat|ok)
			d.Store(vt.QueueNotify, 0)
			d.Store(vt.QueueNotify, 1<<31)
		}, ack | drv | feat | ok},
		{"given up", func(d *vt.Driver) { d.Store(vt.Status, ack|virtio.StatusFailed) }, ack | virtio.StatusFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := vt.New(t, newEcho(), vt.Options{Idle: true})
			c.do(d)
			if got := d.Load(vt.Status); got != c.want {
				t.Fatalf("status %#x, wanted %#x", got, c.want)
			}
			d.Up()
			if got, n := d.Queues[0].Do([][]byte{[]byte("x")}, 1); n != 1 || got[0] != 'x' {
				t.Fatal("doesn't work after a reset")
			}
		})
	}
}

// TestFaults: what no correct driver does. The device says so, stops, and works again after a reset.
func TestFaults(t *testing.T) {
	put := func(q *vt.Queue, d *vt.Driver, list ...vt.Desc) {
		for i, desc := range list {
			d.RAM.PutDesc(q.Desc, i, desc)
		}
		q.Publish(0)
		q.Notify()
	}
	const good = vt.Base + 0x8000
	for _, c := range []struct {
		name, want string
		do         func(d *vt.Driver, q *vt.Queue)
	}{
		{"address outside", "chain at 0", func(d *vt.Driver, q *vt.Queue) { put(q, d, vt.Desc{Addr: 8, Len: 8}) }},
		{"address over the end", "chain at 0", func(d *vt.Driver, q *vt.Queue) { put(q, d, vt.Desc{Addr: vt.Base + 16<<20 - 4, Len: 8}) }},
		{"address overflows", "chain at 0", func(d *vt.Driver, q *vt.Queue) { put(q, d, vt.Desc{Addr: ^uint64(0) - 3, Len: 8}) }},
		{"loop", "loops", func(d *vt.Driver, q *vt.Queue) { put(q, d, vt.Desc{Addr: good, Len: 8, Flags: vt.Next}) }},
		{"loop of nothing", "loops", func(d *vt.Driver, q *vt.Queue) { put(q, d, vt.Desc{Flags: vt.Next}) }},
		{"next outside", "descriptor 16 of 16", func(d *vt.Driver, q *vt.Queue) {
			put(q, d, vt.Desc{Addr: good, Len: 8, Flags: vt.Next, Next: 16})
		}},
		{"readable behind writable", "readable", func(d *vt.Driver, q *vt.Queue) {
			put(q, d, vt.Desc{Addr: good, Len: 8, Flags: vt.Next | vt.Write, Next: 1}, vt.Desc{Addr: good, Len: 8})
		}},
		{"too long", "bytes", func(d *vt.Driver, q *vt.Queue) {
			var list []vt.Desc
			for i := range 9 {
				list = append(list, vt.Desc{Addr: vt.Base, Len: 8 << 20, Flags: vt.Next, Next: uint16(i + 1)})
			}
			put(q, d, list...)
		}},
		{"head out of range", "head 16", func(d *vt.Driver, q *vt.Queue) { q.Publish(16); q.Notify() }},
		{"index out of range", "available index", func(d *vt.Driver, q *vt.Queue) { q.SetIndex(17); q.Notify() }},
		{"index goes back", "available index", func(d *vt.Driver, q *vt.Queue) { q.SetIndex(0xffff); q.Notify() }},
		{"head twice", "in use", func(d *vt.Driver, q *vt.Queue) {
			copy(d.RAM.At(good, 4), "wait")
			d.RAM.PutDesc(q.Desc, 0, vt.Desc{Addr: good, Len: 4})
			q.Publish(0)
			q.Publish(0)
			q.Notify()
		}},
		{"indirect table outside", "chain at 0", func(d *vt.Driver, q *vt.Queue) { put(q, d, vt.Desc{Addr: 16, Len: 16, Flags: vt.Indirect}) }},
		{"indirect table empty", "indirect", func(d *vt.Driver, q *vt.Queue) { put(q, d, vt.Desc{Addr: good, Flags: vt.Indirect}) }},
		{"indirect table of a bad size", "indirect", func(d *vt.Driver, q *vt.Queue) {
			put(q, d, vt.Desc{Addr: good, Len: 24, Flags: vt.Indirect})
		}},
		{"indirect table too large", "indirect", func(d *vt.Driver, q *vt.Queue) {
			put(q, d, vt.Desc{Addr: good, Len: 16 * 1025, Flags: vt.Indirect})
		}},
		{"indirect and next", "indirect", func(d *vt.Driver, q *vt.Queue) {
			put(q, d, vt.Desc{Addr: good, Len: 16, Flags: vt.Indirect | vt.Next, Next: 1})
		}},
		{"indirect in indirect", "indirect", func(d *vt.Driver, q *vt.Queue) {
			d.RAM.PutDesc(good, 0, vt.Desc{Addr: good, Len: 16, Flags: vt.Indirect})
			put(q, d, vt.Desc{Addr: good, Len: 16, Flags: vt.Indirect})
		}},
		{"loop in indirect", "loops", func(d *vt.Driver, q *vt.Queue) {
			d.RAM.PutDesc(good, 0, vt.Desc{Addr: good, Len: 16, Flags: vt.Next})
			put(q, d, vt.Desc{Addr: good, Len: 16, Flags: vt.Indirect})
		}},
		{"queue changed", "while it is ready", func(d *vt.Driver, q *vt.Queue) {
			d.Store(vt.QueueSel, 0)
			d.Store(vt.QueueDesc, uint32(q.Avail))
		}},
		{"queue resized", "while it is ready", func(d *vt.Driver, q *vt.Queue) { d.Store(vt.QueueSel, 0); d.Store(vt.QueueNum, 8) }},
		{"queue back after it was stopped", "made ready", func(d *vt.Driver, q *vt.Queue) {
			d.Store(vt.QueueSel, 0)
			d.Store(vt.QueueReady, 0)
			d.Store(vt.QueueReady, 1)
		}},
		{"driver OK taken back", "taken back", func(d *vt.Driver, q *vt.Queue) { d.Store(vt.Status, 3) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := vt.New(t, newEcho(), vt.Options{})
			c.do(d, d.Queues[0])
			if err := d.Fault(); !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("fault %v, wanted %q", err, c.want)
			}
			if d.Load(vt.InterruptStatus)&2 == 0 {
				t.Error("no configuration interrupt")
			}
			d.Queues[1].Add([][]byte{[]byte("x")}, 1)
			d.Queues[1].Notify()
			d.M.Pause()
			if d.Queues[1].Poll() != nil {
				t.Error("the device goes on")
			}
			d.M.Resume()
			d.Up()
			if got, n := d.Queues[0].Do([][]byte{[]byte("x")}, 1); n != 1 || got[0] != 'x' {
				t.Fatal("doesn't work after a reset")
			}
		})
	}
}

// TestBadRings: queues that can't be, refused when they are made ready.
func TestBadRings(t *testing.T) {
	for _, c := range []struct {
		name string
		reg  uint64
		v    uint32
	}{
		{"size 0", vt.QueueNum, 0}, {"size 3", vt.QueueNum, 3}, {"size 32", vt.QueueNum, 32}, {"size 65540", vt.QueueNum, 65540},
		{"descriptors misaligned", vt.QueueDesc, vt.Base + 8}, {"available misaligned", vt.QueueAvail, vt.Base + 1},
		{"used misaligned", vt.QueueUsed, vt.Base + 2}, {"descriptors outside", vt.QueueDesc + 4, 1},
		{"available outside", vt.QueueAvail, 0}, {"used over the end", vt.QueueUsed, vt.Base + 16<<20 - 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := vt.New(t, newEcho(), vt.Options{Idle: true})
			d.Store(vt.Status, 3)
			d.Store(vt.DriverSel, 1)
			d.Store(vt.DriverFeatures, 1)
			d.Store(vt.Status, 11)
			d.Store(vt.QueueNum, 16)
			for _, reg := range []uint64{vt.QueueDesc, vt.QueueAvail, vt.QueueUsed} {
				d.Store(reg, uint32(d.RAM.Alloc(512)))
			}
			d.Store(c.reg, c.v)
			d.Store(vt.QueueReady, 1)
			if d.Load(vt.QueueReady) != 0 {
				t.Fatal("the queue is ready")
			}
			_ = d.Fault()
			d.Up()
		})
	}
}

// TestRestore: a device in another process goes on with requests that were announced, waiting or answered but not collected.
func TestRestore(t *testing.T) {
	d := vt.New(t, newEcho(), vt.Options{})
	d.M.Write(vt.Config, []byte("config!!"))
	q := d.Queues[0]
	for range 21 {
		q.Do([][]byte{[]byte("before")}, 6)
	}
	done := q.Add([][]byte{[]byte("answered")}, 8)
	q.Notify()
	first := newEcho()
	d.Move(first)
	waiting := q.Add([][]byte{[]byte("wait for it")}, 20)
	q.Notify()
	for first.waits.Load() == 0 {
		d.NoFault()
	}
	d.M.Pause()
	announced := q.Add([][]byte{[]byte("announced")}, 9)
	q.Notify()
	if _, err := d.M.State(); err != nil {
		t.Fatal(err)
	}
	second := newEcho()
	child := newEcho()
	fork := d.Fork(child)
	d.Move(second)
	close(second.release)
	close(child.release)
	check := func(q *vt.Queue) {
		got := map[uint16]string{}
		for range 3 {
			r := q.Wait()
			head := r.Head
			got[head] = strings.TrimRight(string(q.Data(r)), "\x00")
		}
		if got[done.Head] != "answered" || got[waiting.Head] != "wait for it" || got[announced.Head] != "announced" {
			t.Errorf("%v", got)
		}
		if data, _ := q.Do([][]byte{[]byte("after")}, 5); string(data) != "after" {
			t.Errorf("%q after the restore", data)
		}
	}
	check(q)
	check(fork.Queues[0])
	if string(d.Config(0, 8)) != "config!!" || string(fork.Config(0, 8)) != "config!!" {
		t.Error("the configuration is lost")
	}
}

func TestRestoreRefuses(t *testing.T) {
	d := vt.New(t, newEcho(), vt.Options{})
	if _, err := d.M.State(); !errs.Is(err, errs.Unavailable) {
		t.Fatalf("state of a running device: %v", err)
	}
	if err := d.M.SetState(nil); !errs.Is(err, errs.Unavailable) {
		t.Fatalf("restore of a running device: %v", err)
	}
	d.M.Pause()
	s, err := d.M.State()
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		`"version":1`:   `"version":2`,
		`"id":42`:       `"id":2`,
		`"status":15`:   `"status":5`,
		`"num":16`:      `"num":17`,
		`"num":4`:       `"num":8`,
		`"features":`:   `"features":1`,
		`"live":true`:   `"live":true,"returned":[16]`,
		`"ready":true`:  `"ready":true,"returned":[1,1]`,
		`"queues":[`:    `"queues":[{},`,
		`{`:             `[`,
		`"device":"AAA`: `"device":"AAAA","x":"`,
	} {
		bad := strings.Replace(string(s), from, to, 1)
		if bad == string(s) {
			t.Fatalf("nothing to replace: %s in %s", from, s)
		}
		if err := d.M.SetState([]byte(bad)); err == nil {
			t.Errorf("%s restored", to)
		}
	}
	if err := d.M.SetState(make([]byte, virtio.MaxState+1)); !errs.Is(err, errs.TooLarge) {
		t.Errorf("too large: %v", err)
	}
	if err := d.M.SetState(s); err != nil {
		t.Error(err)
	}
	// Rings that lie outside this machine's memory are found when the device starts.
	bad := strings.Replace(string(s), `"Desc":`, `"Desc":1600000000`, 1)
	_ = d.M.SetState([]byte(bad))
	_ = d.Fault()
	d.M.Resume()
	d.Up()
}

// TestPauseUnderLoad: no request is lost, doubled or worked on during a pause.
func TestPauseUnderLoad(t *testing.T) {
	d := vt.New(t, newEcho(), vt.Options{})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		for {
			select {
			case <-stop:
				return
			default:
			}
			d.M.Pause()
			used, _ := d.RAM.Bytes(d.Queues[0].Used, 134)
			before := append([]byte(nil), used[4:132]...)
			if _, err := d.M.State(); err != nil {
				t.Error(err)
			}
			if !bytes.Equal(before, used[4:132]) {
				t.Error("the device wrote during a pause")
			}
			d.M.Resume()
		}
	}()
	q := d.Queues[0]
	for i := range 2000 {
		var p [8]byte
		binary.LittleEndian.PutUint64(p[:], uint64(i))
		if got, n := q.Do([][]byte{p[:]}, 8); n != 8 || !bytes.Equal(got, p[:]) {
			t.Errorf("request %d: %x", i, got)
			break
		}
	}
	close(stop)
	wg.Wait()
	d.NoFault()
}

// TestPauseDrains: a request that waits is given up at a pause, comes again after it, and goes with a reset.
func TestPauseDrains(t *testing.T) {
	e := newEcho()
	d := vt.New(t, e, vt.Options{})
	q := d.Queues[0]
	q.Add([][]byte{[]byte("wait 1")}, 8)
	q.Add([][]byte{[]byte("wait 2")}, 8)
	q.Notify()
	for round := int32(1); round <= 3; round++ {
		for e.waits.Load() < 2*round {
			d.NoFault()
		}
		d.M.Pause()
		d.M.Pause()
		d.M.Resume()
	}
	close(e.release)
	if a, b := string(q.Data(q.Wait())), string(q.Data(q.Wait())); len(a) != 8 || a == b {
		t.Fatalf("%q, %q", a, b)
	}
	e.release = make(chan struct{})
	q.Add([][]byte{[]byte("wait 3")}, 8)
	q.Notify()
	d.Up()
	if e.reset == 0 {
		t.Error("no reset")
	}
	if got, _ := d.Queues[0].Do([][]byte{[]byte("hey")}, 3); string(got) != "hey" {
		t.Errorf("%q after a reset", got)
	}
}

func TestConfigChange(t *testing.T) {
	e := newEcho()
	d := vt.New(t, e, vt.Options{})
	e.link.ConfigChanged()
	if d.Load(vt.Generation) != 1 || d.Load(vt.InterruptStatus) != 2 {
		t.Fatalf("generation %d, interrupt %d", d.Load(vt.Generation), d.Load(vt.InterruptStatus))
	}
	d.Store(vt.InterruptACK, 2)
	if d.Load(vt.InterruptStatus) != 0 {
		t.Fatal("not acknowledged")
	}
	old := e.link
	d.Up()
	old.ConfigChanged() // of a dead driver
	if d.Load(vt.InterruptStatus)&2 != 0 {
		t.Fatal("a dead link interrupts")
	}
}

// TestDirty: what a device writes is told to the memory.
func TestDirty(t *testing.T) {
	d := vt.New(t, newEcho(), vt.Options{})
	q := d.Queues[0]
	q.Do([][]byte{[]byte("x")}, 1)
	d.RAM.ClearDirty()
	r := q.Add([][]byte{bytes.Repeat([]byte("x"), 9000)}, 9000)
	data := r.Out(0)
	q.Notify()
	q.Wait()
	for what, addr := range map[string]uint64{"buffer": data, "its end": data + 8999, "used ring": q.Used} {
		if !d.RAM.IsDirty(addr) {
			t.Errorf("%s isn't dirty", what)
		}
	}
	if d.RAM.IsDirty(q.Desc) && q.Desc>>12 != q.Used>>12 {
		t.Error("descriptors are dirty")
	}
}

func FuzzTransport(f *testing.F) {
	vt.Seed(f)
	f.Fuzz(func(t *testing.T, data []byte) { vt.Fuzz(t, func() virtio.Device { return newEcho() }, data) })
}

func BenchmarkRequest(b *testing.B) {
	d := vt.New(b, newEcho(), vt.Options{})
	q := d.Queues[0]
	in := [][]byte{make([]byte, 16)}
	for b.Loop() {
		q.Do(in, 64)
	}
}
