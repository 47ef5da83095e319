package jail_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/vmm"
	"agentrun.dev/vmm/jail"
	"agentrun.dev/vmm/virtio/fs"
	"agentrun.dev/vmm/virtio/fs/forward"
	vnet "agentrun.dev/vmm/virtio/net"
	"agentrun.dev/vmm/vmmtest"
)

// monitor is a kernel that takes orders from its console: "w", an address and a value of 4 bytes each, is answered with "k", "r"
// and an address with 4 bytes. Its source:
//
//	start: call get; cmp $'w',%al; je write; cmp $'r',%al; jne start
//	       call get4; mov %ebx,%esi; mov (%rsi),%ebx; mov $4,%ecx
//	1:     mov %bl,%al; call put; shr $8,%ebx; dec %ecx; jnz 1b; jmp start
//	write: call get4; mov %ebx,%esi; call get4; mov %ebx,(%rsi); mov $'k',%al; call put; jmp start
//	get4:  mov $4,%ecx
//	1:     call get; shr $8,%ebx; movzbl %al,%eax; shl $24,%eax; or %eax,%ebx; dec %ecx; jnz 1b; ret
//	get:   mov $0x3fd,%edx
//	1:     in %dx,%al; test $1,%al; jz 1b; mov $0x3f8,%edx; in %dx,%al; ret
//	put:   mov $0x3f8,%edx; out %al,%dx; ret
const monitor = "e8570000003c7774223c7275f3e83000000089de8b1eb90400000088d8e84b000000c1eb08ffc975f2ebd5e81200000089dee80b000000891eb06be82d000000ebbe" +
	"b904000000e810000000c1eb080fb6c0c1e01809c3ffc975ecc3bafd030000eca80174fbbaf8030000ecc3baf8030000eec3"

// guest is a VM with a monitor.
type guest struct {
	*jail.Process
	t   *testing.T
	out *os.File // its console
}

// newGuest starts a process with a console of its own; from is what it is made of, or nil for a boot.
func newGuest(t *testing.T, d jail.Devices, from *jail.Image) *guest {
	t.Helper()
	r, w, err := os.Pipe()
	must(t, err)
	t.Cleanup(func() { r.Close() })
	defer w.Close()
	o := options(w, 0)
	o.Devices = d
	g := &guest{start(t, o), t, r}
	if from != nil {
		must(t, g.Run(limit(t), from))
		return g
	}
	code, err := hex.DecodeString(monitor)
	must(t, err)
	must(t, g.Boot(limit(t), elf(t, code), nil, ""))
	must(t, g.Resume(limit(t)))
	return g
}

func (g *guest) answer(n int) []byte {
	g.t.Helper()
	must(g.t, g.out.SetReadDeadline(time.Now().Add(time.Minute)))
	b := make([]byte, n)
	if _, err := io.ReadFull(g.out, b); err != nil {
		g.t.Fatalf("the guest doesn't answer: %v", err)
	}
	return b
}

// store has the guest write words from an address on.
func (g *guest) store(addr uint64, words ...uint32) {
	g.t.Helper()
	for len(words) > 0 {
		part := words[:min(len(words), 200)]
		words = words[len(part):]
		var b []byte
		for _, w := range part {
			b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(append(b, 'w'), uint32(addr)), w)
			addr += 4
		}
		must(g.t, g.Input(limit(g.t), b))
		g.answer(len(part))
	}
}

func (g *guest) storeBytes(addr uint64, b []byte) {
	g.t.Helper()
	b = append(bytes.Clone(b), 0, 0, 0)
	var words []uint32
	for ; len(b) >= 4; b = b[4:] {
		words = append(words, binary.LittleEndian.Uint32(b))
	}
	g.store(addr, words...)
}

// load has the guest read n bytes.
func (g *guest) load(addr uint64, n int) []byte {
	g.t.Helper()
	var out []byte
	for len(out) < n {
		var b []byte
		k := 0
		for ; k < 200 && len(out)+4*k < n; k++ {
			b = binary.LittleEndian.AppendUint32(append(b, 'r'), uint32(addr)+uint32(4*k))
		}
		must(g.t, g.Input(limit(g.t), b))
		addr += uint64(4 * k)
		out = append(out, g.answer(4*k)...)
	}
	return out[:n]
}

// queue is a virtqueue of 8 entries in the guest's memory: descriptors, then the rings, then a page of buffers.
type queue struct {
	*guest
	regs  uint64 // of the device
	index uint32
	at    uint64
	avail uint16
	used  uint16
}

const buffers = 0x800 // in a queue's memory

// device drives the device in a place on the bus, with as many queues.
func (g *guest) device(place int, queues uint32) []*queue { return g.deviceWith(place, queues, 0) }

// deviceWith takes features besides.
func (g *guest) deviceWith(place int, queues, features uint32) []*queue {
	g.t.Helper()
	regs := uint64(vmm.DeviceBase + place*vmm.DeviceSize)
	reg := func(off uint64, v uint32) { g.store(regs+off, v) }
	for _, s := range []uint32{0, 1, 3} {
		reg(0x70, s)
	}
	reg(0x24, 0)
	reg(0x20, features)
	reg(0x24, 1)
	reg(0x20, 1) // VIRTIO_F_VERSION_1
	reg(0x70, 11)
	var out []*queue
	for i := range queues {
		q := &queue{guest: g, regs: regs, index: i, at: 4*mib + uint64(place)<<16 + uint64(i)<<13}
		g.store(q.at+0x100, 0)
		g.store(q.at+0x200, 0)
		reg(0x30, i)
		reg(0x38, 8)
		for off, addr := range map[uint64]uint64{0x80: q.at, 0x90: q.at + 0x100, 0xa0: q.at + 0x200} {
			reg(off, uint32(addr))
		}
		reg(0x44, 1)
		out = append(out, q)
	}
	reg(0x70, 15)
	return out
}

// on is the same queue in a fork.
func (q *queue) on(g *guest) *queue {
	c := *q
	c.guest = g
	return &c
}

// give makes a chain available: what the device reads, then buffers of as many bytes for it to write. It returns where the chain's
// buffers are, one behind the other.
func (q *queue) give(in []byte, out ...int) uint64 {
	q.t.Helper()
	head := uint16(0) // one chain at a time
	at := q.at + buffers
	var desc []byte
	n := uint16(len(out))
	add := func(addr uint64, size int, flags uint16) {
		next := uint16(len(desc)/16 + 1)
		desc = binary.LittleEndian.AppendUint64(desc, addr)
		desc = binary.LittleEndian.AppendUint32(desc, uint32(size))
		desc = binary.LittleEndian.AppendUint16(desc, flags)
		desc = binary.LittleEndian.AppendUint16(desc, next)
	}
	end := at
	if len(in) > 0 {
		q.storeBytes(end, in)
		add(end, len(in), min(n, 1))
		end += uint64(len(in)+3) &^ 3
	}
	for i, size := range out {
		flags := uint16(2)
		if i < len(out)-1 {
			flags |= 1
		}
		add(end, size, flags)
		end += uint64(size+3) &^ 3
	}
	q.storeBytes(q.at, desc)
	q.store(q.at+0x100+4+uint64(q.avail%8/2*4), uint32(head)|uint32(head)<<16)
	q.avail++
	q.store(q.at+0x100, uint32(q.avail)<<16)
	q.store(q.regs+0x50, q.index)
	return at
}

// wait waits for the chain to come back.
func (q *queue) wait() {
	q.t.Helper()
	for deadline := time.Now().Add(time.Minute); binary.LittleEndian.Uint16(q.load(q.at+0x200, 4)[2:]) == q.used; {
		if time.Now().After(deadline) {
			q.t.Fatalf("the device at %#x doesn't use its queue %d", q.regs, q.index)
		}
	}
	q.used++
}

// do gives a chain, waits and returns what was written to the n bytes of its first buffer out.
func (q *queue) do(in []byte, out ...int) []byte {
	q.t.Helper()
	at := q.give(in, out...)
	q.wait()
	return q.load(at+uint64(len(in)+3)&^3, out[0])
}

// sector is a request to a disk: read it (0) or write it (1).
func (q *queue) sector(kind uint32, n uint64, data []byte) []byte {
	q.t.Helper()
	h := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(nil, kind), n)
	h = append(h[:4], append(make([]byte, 4), h[4:]...)...)
	if kind == 1 {
		if s := q.do(append(h, data...), 1); s[0] != 0 {
			q.t.Fatalf("writing a sector: status %d", s[0])
		}
		return nil
	}
	b := q.do(h, 512, 1)
	return b
}

// packet is one of vsock's.
func packet(cid uint64, src, dst uint32, op uint16, data string) []byte {
	le := binary.LittleEndian
	b := le.AppendUint64(le.AppendUint64(nil, cid), 2)
	b = le.AppendUint32(le.AppendUint32(le.AppendUint32(b, src), dst), uint32(len(data)))
	b = le.AppendUint16(le.AppendUint16(b, 1), op)
	b = le.AppendUint32(le.AppendUint32(le.AppendUint32(b, 0), 65536), 0)
	return append(b, data...)
}

// Operations of vsock.
const (
	vsockRequest  = 1
	vsockResponse = 2
	vsockReset    = 3
	vsockData     = 5
)

// dialed is what Dial returns.
type dialed struct {
	net.Conn
	err error
}

func (g *guest) dial(ctx context.Context, port uint32) <-chan dialed {
	ch := make(chan dialed, 1)
	go func() {
		c, err := g.Dial(ctx, port)
		ch <- dialed{c, err}
	}()
	return ch
}

// requested waits for the host's request in a buffer that was given, and returns the host's port.
func (q *queue) requested(at uint64, port uint32) uint32 {
	q.t.Helper()
	q.wait()
	h := q.load(at, 44)
	if op, dst := binary.LittleEndian.Uint16(h[30:]), binary.LittleEndian.Uint32(h[20:]); op != vsockRequest || dst != port {
		q.t.Fatalf("operation %d to port %d", op, dst)
	}
	return binary.LittleEndian.Uint32(h[16:])
}

// Every device works within the jail, on descriptors that it was given, and in a fork on those that the fork was given.
func TestDevices(t *testing.T) {
	vmmtest.Host(t)
	root, err := os.CreateTemp(t.TempDir(), "root")
	must(t, err)
	defer root.Close()
	if _, err := root.Write(bytes.Repeat([]byte("what is on the disk."), 1000)); err != nil {
		t.Fatal(err)
	}
	// make returns devices, and the other end of the card.
	devices := func() (jail.Devices, *os.File) {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		must(t, err)
		ours, theirs := os.NewFile(uintptr(pair[0]), "wire"), os.NewFile(uintptr(pair[1]), "card")
		t.Cleanup(func() { ours.Close(); theirs.Close() })
		return jail.Devices{CID: 5, RNG: true, Shares: []string{"work", "other"}, Cards: []jail.Card{{File: theirs, MAC: net.HardwareAddr{2, 0, 0, 0, 0, 7}}},
			Disks: []jail.Disk{{File: root, Serial: "root", ReadOnly: true}, {File: root, Serial: "over", Overlay: 64 << 10}, {Serial: "empty", Overlay: 1 << 30}}}, ours
	}
	const (
		placeSocket = iota
		placeRoot
		placeOver
		placeEmpty
		placeWork
		placeOther
		placeCard
		placeRNG
	)
	d, wire := devices()
	g := newGuest(t, d, nil)
	want := func(what string, got []byte, want string) {
		t.Helper()
		if !bytes.HasPrefix(got, []byte(want)) {
			t.Errorf("%s: %q, want %q", what, got[:min(len(got), 60)], want)
		}
	}

	disk, over, empty := g.device(placeRoot, 1)[0], g.device(placeOver, 1)[0], g.device(placeEmpty, 1)[0]
	want("the disk", disk.sector(0, 0, nil), "what is on the disk.")
	want("the overlay", over.sector(0, 0, nil), "what is on the disk.")
	over.sector(1, 0, append([]byte("the parent's"), make([]byte, 500)...))
	empty.sector(1, 2000, append([]byte("in memory"), make([]byte, 503)...))
	want("the overlay", over.sector(0, 0, nil), "the parent's")
	want("the disk", disk.sector(0, 0, nil), "what is on the disk.")
	if b := g.device(placeRNG, 1)[0].do(nil, 16); bytes.Equal(b, make([]byte, 16)) {
		t.Error("no entropy")
	}

	// answering answers a share's requests with a text.
	answering := func(p *jail.Process, i int, text string) func() {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			done <- forward.Serve(ctx, p.Share(i), fs.HandlerFunc(func(_ context.Context, in, out []byte) int {
				return 16 + copy(out[16:], text+string(in[40:]))
			}))
		}()
		return func() { cancel(); must(t, <-done) }
	}
	defer answering(g.Process, 1, "answer to ")()
	request := append(binary.LittleEndian.AppendUint32(nil, 44), make([]byte, 36)...)
	request = append(request, "this"...)
	share := g.device(placeOther, 2)[1]
	want("the share", share.do(request, 64)[16:], "answer to this")

	card := g.device(placeCard, 2)
	frame := append(make([]byte, 12), "a frame that has more than fourteen bytes"...)
	card[1].give(frame)
	card[1].wait()
	got := make([]byte, 2000)
	must(t, wire.SetDeadline(time.Now().Add(time.Minute)))
	n, err := wire.Read(got)
	must(t, err)
	want("the wire", got[:n], string(frame[12:]))
	at := card[0].give(nil, 1600)
	if _, err := wire.Write([]byte("another frame of the host's, as long")); err != nil {
		t.Fatal(err)
	}
	card[0].wait()
	want("the card", g.load(at+12, 40), "another frame of the host's")

	socket := g.device(placeSocket, 3)
	rx, tx, events := socket[0], socket[1], socket[2]
	events.give(nil, 4)
	at = rx.give(nil, 512)
	dial := g.dial(limit(t), 1024)
	port := rx.requested(at, 1024)
	tx.give(packet(5, 1024, port, vsockResponse, ""))
	tx.wait()
	c := <-dial
	must(t, c.err)
	defer c.Close()
	at = rx.give(nil, 512)
	if _, err := c.Write([]byte("to the guest")); err != nil {
		t.Fatal(err)
	}
	rx.wait()
	want("the guest reads", g.load(at+44, 16), "to the guest")
	tx.give(packet(5, 1024, port, vsockData, "to the host"))
	tx.wait()
	must(t, c.SetDeadline(time.Now().Add(time.Minute)))
	n, err = c.Read(got)
	must(t, err)
	want("the host reads", got[:n], "to the host")
	// A port where nobody listens, and one that never answers.
	at = rx.give(nil, 512)
	dial = g.dial(limit(t), 7)
	tx.give(packet(5, 7, rx.requested(at, 7), vsockReset, ""))
	tx.wait()
	if c := <-dial; !errs.Is(c.err, errs.Unavailable) {
		t.Errorf("dialling a closed port: %v", c.err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	at = rx.give(nil, 512)
	dial = g.dial(ctx, 8)
	rx.requested(at, 8)
	cancel()
	if c := <-dial; !errs.Is(c.err, errs.Canceled) {
		t.Errorf("giving up a dial: %v", c.err)
	}
	at = rx.give(nil, 512) // it is told that it is over
	rx.wait()
	if op := binary.LittleEndian.Uint16(g.load(at+28, 4)[2:]); op != vsockReset {
		t.Errorf("operation %d after giving up", op)
	}

	s, err := g.Capture(limit(t))
	must(t, err)
	im, err := jail.NewImage(s)
	must(t, err)
	defer im.Close()
	must(t, s.Close())
	must(t, g.Thaw(limit(t)))
	d, _ = devices()
	d.CID, d.Cards[0].File = 6, nil
	child := newGuest(t, d, im)
	defer answering(child.Process, 1, "the child's answer to ")()
	want("the child's disk", disk.on(child).sector(0, 0, nil), "what is on the disk.")
	childOver := over.on(child)
	want("the child's overlay", childOver.sector(0, 0, nil), "the parent's")
	want("the child's other overlay", empty.on(child).sector(0, 2000, nil), "in memory")
	sent := card[1].on(child)
	sent.give(frame)
	sent.wait()
	must(t, child.Card(0).SetDeadline(time.Now().Add(time.Minute)))
	n, err = child.Card(0).Read(got)
	must(t, err)
	want("the child's wire", got[:n], string(frame[12:]))
	want("the child's share", share.on(child).do(request, 64)[16:], "the child's answer to this")
	childOver.sector(1, 0, append([]byte("the child's"), make([]byte, 501)...))
	over.sector(1, 1, append([]byte("the parent's later"), make([]byte, 494)...))
	want("the overlay", over.sector(0, 0, nil), "the parent's")
	want("the child's overlay", childOver.sector(0, 0, nil), "the child's")
	if _, err := c.Write([]byte("still there")); err != nil {
		t.Errorf("the parent's connection: %v", err)
	}

	// The child is told that all connections are gone, and then takes new ones.
	events, rx, tx = events.on(child), rx.on(child), tx.on(child)
	events.wait()
	events.give(nil, 4)
	at = rx.give(nil, 512)
	dial = child.dial(limit(t), 1024)
	tx.give(packet(6, 1024, rx.requested(at, 1024), vsockResponse, ""))
	c2 := <-dial
	must(t, c2.err)
	must(t, child.Close())
	if _, err := c2.Read(got); !errors.Is(err, io.EOF) {
		t.Errorf("a connection with a VM that is gone: %v", err)
	}
	c2.Close()
	if _, err := child.Dial(limit(t), 1024); !errs.Is(err, errs.Unavailable) {
		t.Errorf("dialling a VM that is gone: %v", err)
	}
}

// What can't be made is refused, and leaves nothing behind.
func TestBadDevices(t *testing.T) {
	vmmtest.Host(t)
	f, err := os.CreateTemp(t.TempDir(), "disk")
	must(t, err)
	defer f.Close()
	for what, c := range map[string]struct {
		d    jail.Devices
		kind errs.Kind
	}{
		"the host's address": {jail.Devices{CID: 2}, errs.Invalid},
		"no file":            {jail.Devices{Disks: []jail.Disk{{}}}, errs.Invalid},
		"an empty file":      {jail.Devices{Disks: []jail.Disk{{File: f}}}, errs.Invalid},
		"no tag":             {jail.Devices{Shares: []string{""}}, errs.Invalid},
		"too many":           {jail.Devices{Shares: make([]string, 100)}, errs.Limit},
		"too many overlays":  {jail.Devices{Disks: []jail.Disk{{Overlay: 4096}, {Overlay: 4096}, {Overlay: 4096}}}, errs.Limit},
		"a card's address":   {jail.Devices{Cards: []jail.Card{{}}}, errs.Invalid},
		"not a tap":          {jail.Devices{Cards: []jail.Card{{File: f, MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}}}}, errs.Other},
	} {
		o := options(nil, 0)
		o.Devices = c.d
		if _, err := jail.Start(limit(t), o); err == nil || errs.KindOf(err) != c.kind {
			t.Errorf("%s: %v", what, err)
		}
	}
	p := start(t, options(nil, 0))
	if _, err := p.Dial(limit(t), 1); !errs.Is(err, errs.Invalid) {
		t.Errorf("dialling without vsock: %v", err)
	}
}

// A tap learns what the guest can do, which is an ioctl, within the jail.
func TestTap(t *testing.T) {
	vmmtest.Host(t)
	tap, name, err := vnet.OpenTap("")
	if err != nil {
		t.Skipf("NOT TESTED HERE: no tap device can be made: %v", err)
	}
	defer tap.Close()
	g := newGuest(t, jail.Devices{Cards: []jail.Card{{File: tap.File, MAC: net.HardwareAddr{2, 0, 0, 0, 0, 7}}}, RNG: true}, nil)
	card := g.device(0, 2)
	card[1].give(append(make([]byte, 12), "a frame that has more than fourteen bytes"...)) // which is lost, as the interface is down
	card[1].wait()
	if b := g.device(1, 1)[0].do(nil, 16); bytes.Equal(b, make([]byte, 16)) {
		t.Errorf("the VM with %s has no entropy", name)
	}
}

// A guest gives memory back, in the jail: as a file, and as a fork of what others have too.
func TestBalloon(t *testing.T) {
	vmmtest.Host(t)
	devices := jail.Devices{RNG: true, Balloon: true}
	g := newGuest(t, devices, nil)
	const place, inflate, report, page, free = 1, 0, 3, 4096, 8 * mib
	fill := func(g *guest) {
		for at := uint64(free); at < free+2*mib; at += 512 << 10 {
			g.store(at, 0x1234)
		}
	}
	giveBack := func(g *guest, q *queue) {
		t.Helper()
		// Descriptors of pages somewhere else, not of the buffers behind the queue: what a report is.
		desc := binary.LittleEndian.AppendUint64(nil, free)
		q.storeBytes(q.at, append(binary.LittleEndian.AppendUint32(desc, mib), 2, 0, 0, 0))
		q.store(q.at+0x100+4+uint64(q.avail%8/2*4), 0)
		q.avail++
		q.store(q.at+0x100, uint32(q.avail)<<16)
		q.store(q.regs+0x50, q.index)
		q.wait()
		for at, want := range map[uint64]uint32{free: 0, free + 512<<10: 0, free + mib: 0x1234} {
			if got := binary.LittleEndian.Uint32(g.load(at, 4)); got != want {
				t.Errorf("at %#x is %#x, want %#x", at, got, want)
			}
		}
	}
	fill(g)
	queues := g.deviceWith(place, 4, 1<<5|1<<1) // reports, and the statistics that come before them
	giveBack(g, queues[report])
	fill(g)
	s, err := g.Capture(limit(t))
	must(t, err)
	im, err := jail.NewImage(s)
	must(t, err)
	defer im.Close()
	must(t, s.Close())
	must(t, g.Thaw(limit(t)))
	c := newGuest(t, devices, im)
	giveBack(c, queues[report].on(c))
	status, err := c.Balloon(limit(t))
	must(t, err)
	if !status.Driver || status.Reports != 1 || status.Reported != mib || status.Discarded != mib {
		t.Errorf("%+v", status)
	}
	if got := g.load(free, 4); binary.LittleEndian.Uint32(got) != 0x1234 {
		t.Error("the parent lost what its fork gave back")
	}
	must(t, c.Inflate(limit(t), 3*page))
	if got := c.load(vmm.DeviceBase+place*vmm.DeviceSize+0x100, 4); binary.LittleEndian.Uint32(got) != 3 {
		t.Errorf("the target is %x", got)
	}
	q := queues[inflate].on(c)
	c.store(free+512<<10, 0x77)
	q.give(binary.LittleEndian.AppendUint32(nil, (free+512<<10)/page))
	q.wait()
	if got := binary.LittleEndian.Uint32(c.load(free+512<<10, 4)); got != 0 {
		t.Errorf("in the balloon is %#x", got)
	}
	q.give(binary.LittleEndian.AppendUint32(nil, 0x12345678)) // which isn't memory
	for deadline := time.Now().Add(time.Minute); c.load(q.regs+0x70, 4)[0]&64 == 0; {
		if time.Now().After(deadline) {
			t.Fatal("no fault")
		}
	}
	none := newGuest(t, jail.Devices{RNG: true}, nil)
	if _, err := none.Balloon(limit(t)); !errs.Is(err, errs.Unsupported) {
		t.Errorf("a VM without one: %v", err)
	}
	shell := start(t, func() jail.Options { o := options(none.out, 0); o.Devices = jail.Devices{RNG: true}; return o }())
	if err := shell.Restore(limit(t), im); !errs.Is(err, errs.Invalid) {
		t.Errorf("a snapshot with a balloon in a shell without: %v", err)
	}
}

// A guest that gives its devices nonsense has devices that don't work, and at worst no process; its neighbour has both.
func TestAttack(t *testing.T) {
	vmmtest.Host(t)
	devices := jail.Devices{CID: 3, Shares: []string{"work"}, Disks: []jail.Disk{{Overlay: 1 << 20}}, RNG: true, Balloon: true}
	g, neighbour := newGuest(t, devices, nil), newGuest(t, devices, nil)
	for place, queues := range []uint32{3, 1, 2, 1, 2} {
		q := g.device(place, queues)[queues-1]
		for _, desc := range [][]uint32{
			{0xfffffff0, 0xffffffff, 0xffffffff, 2},           // outside of all memory
			{uint32(q.at), 0, 0xffffffff, 2},                  // larger than it
			{uint32(q.at), 0, 16, 1},                          // a chain that is its own next
			{uint32(q.at), 0, 16, 4 | 7<<16},                  // indirect, which wasn't negotiated
			{uint32(vmm.DeviceBase), 0, 0x1000, 2},            // the device itself
			{32*mib - 8, 0, 16, 2}, {uint32(q.at), 0, 0, 0xf}, // across the end; nothing
		} {
			g.store(q.at, desc...)
			q.avail++
			g.store(q.at+0x100+4, 0, 0, 0, 0)
			g.store(q.at+0x100, uint32(q.avail)<<16)
			g.store(q.regs+0x50, q.index)
			if status := g.load(q.regs+0x70, 4)[0]; status&64 != 0 {
				q = g.device(place, queues)[queues-1]
			}
		}
		g.store(q.at+0x100, 0x7fff0000, 0xffffffff, 0xffffffff) // more than there can be
		g.store(q.regs+0x50, q.index, 0xffffffff)
		for off := uint64(0x100); off < 0x140; off += 4 {
			g.store(q.regs+off, 0xffffffff)
		}
	}
	if b := neighbour.device(3, 1)[0].do(nil, 16); bytes.Equal(b, make([]byte, 16)) {
		t.Error("the neighbour has no entropy")
	}
	// After a reset the attacker's own work again: it is still the same process.
	if b := g.device(3, 1)[0].do(nil, 16); bytes.Equal(b, make([]byte, 16)) {
		t.Error("no entropy after a reset")
	}
	if _, err := g.Tail(limit(t)); err != nil {
		t.Errorf("the process: %v", err)
	}
}
