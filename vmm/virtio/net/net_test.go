package net_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	stdnet "net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/virtio"
	"agentrun.dev/vmm/virtio/net"
	vt "agentrun.dev/vmm/virtio/virtiotest"
	"golang.org/x/sys/unix"
)

var mac = stdnet.HardwareAddr{2, 0, 0, 0, 0, 9}

// wire returns both ends of a connection that keeps packets apart.
func wire(t testing.TB) (a, b *os.File) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, b = os.NewFile(uintptr(fds[0]), "a"), os.NewFile(uintptr(fds[1]), "b")
	t.Cleanup(func() { _ = b.Close() })
	return a, b
}

func device(t testing.TB, conn io.ReadWriteCloser) *net.Device {
	t.Helper()
	d, err := net.New(conn, net.Options{MAC: mac, MTU: 1400})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// send makes the guest send a frame.
func send(d *vt.Driver, frame []byte) { d.Queues[1].Do([][]byte{make([]byte, 12), frame}) }

// recv returns the next frame that the guest gets, out of as many buffers as it takes, and how many those were.
func recv(d *vt.Driver) (frame []byte, buffers int) {
	d.T.Helper()
	q := d.Queues[0]
	want := 1
	for i := 0; i < want; i++ {
		r := q.Wait()
		n := r.Written
		data := q.Data(r)[:n]
		if i == 0 {
			if n < 12 {
				d.T.Fatalf("a buffer of %d bytes", n)
			}
			want = int(binary.LittleEndian.Uint16(data[10:]))
			data = data[12:]
		}
		frame = append(frame, data...)
	}
	return frame, want
}

func TestFrames(t *testing.T) {
	for _, without := range []uint64{0, 1 << net.FeatureMergeRx, 1 << 28} {
		a, b := wire(t)
		dev := device(t, a)
		d := vt.New(t, dev, vt.Options{Without: without})
		if c := d.Config(0, 12); !bytes.Equal(c, append(append([]byte{}, mac...), 1, 0, 1, 0, 0x78, 5)) {
			t.Fatalf("config %x", c)
		}
		if d.Features&1 != 0 {
			t.Error("checksums are offered for a connection without headers")
		}
		for i := range 300 {
			want := bytes.Repeat([]byte{byte(i)}, 60+i*4)
			send(d, want)
			buf := make([]byte, 4000)
			if n, err := b.Read(buf); err != nil || !bytes.Equal(buf[:n], want) {
				t.Fatalf("frame %d: %d bytes, %v", i, n, err)
			}
		}
		q := d.Queues[0]
		size := 1526
		if without&(1<<net.FeatureMergeRx) == 0 {
			size = 500
		}
		for i := range 300 {
			want := bytes.Repeat([]byte{byte(i)}, 60+i*4)
			if _, err := b.Write(want); err != nil {
				t.Fatal(err)
			}
			for range 8 {
				q.Add(nil, size)
			}
			q.Notify()
			got, n := recv(d)
			if !bytes.Equal(got, want) {
				t.Fatalf("frame %d: %d bytes", i, len(got))
			}
			if need := (len(want) + 12 + size - 1) / size; n != need {
				t.Fatalf("frame %d in %d buffers, wanted %d", i, n, need)
			}
			d.NoFault()
			if i%25 == 24 { // buffers left over fill the queue: begin anew
				d.Up()
				q = d.Queues[0]
			}
		}
		if s := dev.Stats(); s.Sent != 300 || s.Received != 300 || s.SentBytes != s.ReceivedBytes {
			t.Errorf("%+v", s)
		}
	}
}

// TestWaits: frames wait for buffers, in order; one that needs several takes none until there are enough.
func TestWaits(t *testing.T) {
	a, b := wire(t)
	dev := device(t, a)
	d := vt.New(t, dev, vt.Options{})
	for i := range 10 {
		if _, err := b.Write(bytes.Repeat([]byte{byte(i)}, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	q := d.Queues[0]
	q.Add(nil, 600)
	q.Notify()
	if q.WaitFor(20*time.Millisecond) != nil {
		t.Fatal("half a frame came")
	}
	for i := range 10 {
		for range 2 {
			q.Add(nil, 600)
			q.Notify()
		}
		if got, n := recv(d); !bytes.Equal(got, bytes.Repeat([]byte{byte(i)}, 1000)) || n != 2 {
			t.Fatalf("frame %d: %d bytes in %d buffers", i, len(got), n)
		}
	}
}

func TestDrops(t *testing.T) {
	a, b := wire(t)
	dev := device(t, a)
	d := vt.New(t, dev, vt.Options{Without: 1 << net.FeatureMergeRx})
	q := d.Queues[0]
	q.Add(nil, 200)
	q.Notify()
	for _, n := range []int{300, 100} { // the first doesn't fit
		if _, err := b.Write(make([]byte, n)); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := recv(d); len(got) != 100 {
		t.Errorf("a frame of %d bytes", len(got))
	}
	// Frames that are too long, empty, or ask for what isn't offered, are lost; the next one isn't.
	d.Queues[1].Do([][]byte{make([]byte, 12), make([]byte, 70000)})
	d.Queues[1].Do([][]byte{make([]byte, 12)})
	d.Queues[1].Do([][]byte{{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 60)})
	send(d, []byte("good"))
	buf := make([]byte, 100)
	if n, err := b.Read(buf); err != nil || string(buf[:n]) != "good" {
		t.Errorf("%q, %v", buf[:n], err)
	}
	if s := dev.Stats(); s.Dropped != 4 {
		t.Errorf("%+v", s)
	}
	d.NoFault()
	d.Queues[1].Add([][]byte{make([]byte, 11)})
	d.Queues[1].Notify()
	_ = d.Fault()
	d.Up()
	d.Queues[0].Add(nil, 11)
	d.Queues[0].Notify()
	if _, err := b.Write(make([]byte, 60)); err != nil {
		t.Fatal(err)
	}
	_ = d.Fault()
	for _, o := range []net.Options{{}, {MAC: stdnet.HardwareAddr{1, 0, 0, 0, 0, 0}}, {MAC: mac, MTU: 20}, {MAC: mac, MTU: 70000}} {
		if _, err := net.New(a, o); !errs.Is(err, errs.Invalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestLinkDown: the guest sees that the connection has ended.
func TestLinkDown(t *testing.T) {
	a, b := wire(t)
	d := vt.New(t, device(t, a), vt.Options{})
	_ = b.Close()
	for deadline := time.Now().Add(vt.Patience); d.Config(6, 1)[0] != 0; {
		if time.Now().After(deadline) {
			t.Fatal("the link is up")
		}
		time.Sleep(time.Millisecond)
	}
}

// TestFullHost: a host that takes nothing holds up neither a pause nor a reset.
func TestFullHost(t *testing.T) {
	a, b := wire(t)
	dev := device(t, a)
	d := vt.New(t, dev, vt.Options{})
	for d.Queues[1].Add([][]byte{make([]byte, 12), make([]byte, 1500)}) != nil {
	}
	d.Queues[1].Notify()
	d.M.Pause()
	if _, err := d.M.State(); err != nil {
		t.Fatal(err)
	}
	d.M.Resume()
	for range 2 {
		for d.Queues[1].Add([][]byte{make([]byte, 12), make([]byte, 8000)}) != nil {
		}
		d.Queues[1].Notify()
		d.Up()
	}
	var wg sync.WaitGroup
	wg.Add(1)
	go func() { defer wg.Done(); _, _ = io.Copy(io.Discard, b) }()
	send(d, []byte("after"))
	_ = b.SetReadDeadline(time.Unix(1, 0))
	wg.Wait()
}

// TestMidLife: under load, the device is paused often; then a fork's frames go its own way.
func TestMidLife(t *testing.T) {
	a, b := wire(t)
	d := vt.New(t, device(t, a), vt.Options{})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Add(2)
	go func() {
		defer wg.Done()
		for {
			select {
			case <-stop:
				return
			default:
				d.M.Pause()
				d.M.Resume()
				time.Sleep(100 * time.Microsecond)
			}
		}
	}()
	go func() { // the host echoes
		defer wg.Done()
		buf := make([]byte, 4000)
		for {
			n, err := b.Read(buf)
			if err != nil {
				return
			}
			_, _ = b.Write(buf[:n])
		}
	}()
	lost := 0
	for i := range 500 {
		want := []byte(fmt.Sprintf("frame number %d", i))
		d.Queues[0].Add(nil, 2000)
		d.Queues[0].Notify()
		for {
			send(d, want)
			got, _ := recv(d)
			if bytes.Equal(got, want) {
				break
			}
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d frames out of order", lost)
	}
	close(stop)
	a2, b2 := wire(t)
	child := d.Fork(device(t, a2))
	_ = b.SetReadDeadline(time.Unix(1, 0))
	wg.Wait()
	send(child, []byte("of the child"))
	buf := make([]byte, 100)
	if n, err := b2.Read(buf); err != nil || string(buf[:n]) != "of the child" {
		t.Errorf("%q, %v", buf[:n], err)
	}
}

// TestTap: a real tap device in a network namespace of its own; the host asks for the guest's address, and sends it a datagram
// whose checksum it leaves to the guest.
func TestTap(t *testing.T) {
	type result struct {
		tap  *net.Tap
		name string
		dial func(string) (stdnet.Conn, error)
		err  error
	}
	ch := make(chan result)
	quit := make(chan struct{})
	t.Cleanup(func() { close(quit) })
	go func() {
		runtime.LockOSThread() // for good: the thread ends with its namespace
		var r result
		if r.err = unix.Unshare(unix.CLONE_NEWNET); r.err == nil {
			if r.tap, r.name, r.err = net.OpenTap(""); r.err == nil {
				r.err = up(r.name)
			}
		}
		calls := make(chan string)
		answers := make(chan result)
		conns := make(chan stdnet.Conn, 1)
		r.dial = func(addr string) (stdnet.Conn, error) { calls <- addr; a := <-answers; return <-conns, a.err }
		ch <- r
		for {
			select {
			case addr := <-calls:
				c, err := stdnet.Dial("udp", addr)
				conns <- c
				answers <- result{err: err}
			case <-quit:
				return
			}
		}
	}()
	r := <-ch
	if r.err != nil {
		t.Skipf("no tap devices here (%v): this test needs root and /dev/net/tun, as in CI", r.err)
	}
	d := vt.New(t, device(t, r.tap), vt.Options{})
	if d.Features&3 != 3 || d.Features>>net.FeatureHostTSO4&1 == 0 {
		t.Fatalf("features %#x", d.Features)
	}
	for range 64 {
		d.Queues[0].Add(nil, 2048)
	}
	d.Queues[0].Notify()
	c, err := r.dial("10.99.0.2:7")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("hello guest")); err != nil {
		t.Fatal(err)
	}
	for {
		frame, _ := recv(d)
		if len(frame) < 42 {
			continue
		}
		switch {
		case binary.BigEndian.Uint16(frame[12:]) == 0x806 && frame[21] == 1 && bytes.Equal(frame[38:42], []byte{10, 99, 0, 2}):
			reply := append([]byte{}, frame[6:12]...)
			reply = append(append(reply, mac...), frame[12:20]...)
			reply = append(append(append(reply, 0, 2), mac...), 10, 99, 0, 2)
			reply = append(append(reply, frame[22:32]...), make([]byte, 18)...)
			send(d, reply)
		case binary.BigEndian.Uint16(frame[12:]) == 0x800 && strings.HasSuffix(string(frame), "hello guest"):
			d.NoFault()
			return
		}
	}
}

// up gives an interface of the present namespace an address.
func up(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for _, c := range []struct {
		req  uint
		addr [4]byte
	}{{unix.SIOCSIFADDR, [4]byte{10, 99, 0, 1}}, {unix.SIOCSIFNETMASK, [4]byte{255, 255, 255, 0}}} {
		ifr, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		if err := ifr.SetInet4Addr(c.addr[:]); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, c.req, ifr); err != nil {
			return err
		}
	}
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}

// chatter is a connection that always has something to say.
type chatter struct {
	ctx    context.Context
	cancel context.CancelFunc
	ticks  chan []byte
}

func newChatter() *chatter {
	c := &chatter{ticks: make(chan []byte, 64)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

func (c *chatter) Read(p []byte) (int, error) {
	select {
	case b := <-c.ticks:
		return copy(p, b), nil
	case <-c.ctx.Done():
		return 0, io.EOF
	}
}

func (c *chatter) Write(p []byte) (int, error) {
	select {
	case c.ticks <- bytes.Clone(p): // what the guest sends comes back
	default:
	}
	return len(p), nil
}

func (c *chatter) Close() error { c.cancel(); return nil }

func FuzzDevice(f *testing.F) {
	vt.Seed(f)
	f.Add([]byte{12, 1, 1, 40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
		26, 27, 28, 0, 12, 0, 0, 2, 2, 1, 8, 0, 11, 8, 0, 10})
	f.Fuzz(func(t *testing.T, data []byte) {
		vt.Fuzz(t, func() virtio.Device { return device(t, newChatter()) }, data)
	})
}
