package vsock

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/virtio"
	vt "agentrun.dev/vmm/virtio/virtiotest"
	"golang.org/x/net/nettest"
)

// guest is the guest's side: its driver, and what its kernel knows.
type guest struct {
	*vt.Driver
	cid    uint64
	alloc  uint32 // how much it says that it holds for each connection
	events int    // taken
}

const rxSize = headerSize + 4096

func boot(t testing.TB, d *Device, o vt.Options) *guest {
	g := &guest{Driver: vt.New(t, d, o), cid: 3, alloc: 64 << 10}
	for range 64 {
		g.Queues[queueRx].Add(nil, headerSize, rxSize-headerSize)
	}
	g.Queues[queueRx].Notify()
	for range 4 {
		g.Queues[queueEvent].Add(nil, 8)
	}
	g.Queues[queueEvent].Notify()
	return g
}

// send puts a packet on the tx queue. Unset fields are filled in.
func (g *guest) send(h header, data []byte) {
	g.T.Helper()
	if h.srcCID == 0 {
		h.srcCID = g.cid
	}
	if h.dstCID == 0 {
		h.dstCID = HostCID
	}
	if h.kind == 0 {
		h.kind = typeStream
	}
	if h.bufAlloc == 0 {
		h.bufAlloc = g.alloc
	}
	if h.length == 0 {
		h.length = uint32(len(data))
	}
	in := [][]byte{h.encode()}
	if len(data) > 0 {
		in = append(in, data)
	}
	g.Queues[queueTx].Do(in)
}

// poll returns a packet that has come; ok is false if there is none within the limit.
func (g *guest) poll(limit time.Duration) (h header, data []byte, ok bool) {
	q := g.Queues[queueRx]
	r := q.WaitFor(limit)
	if r == nil {
		return h, nil, false
	}
	n := r.Written
	raw := q.Data(r)
	q.Add(nil, headerSize, rxSize-headerSize)
	q.Notify()
	if n == 0 { // the device had nothing to say after all, which a driver passes over
		return g.poll(limit)
	}
	h.decode((*[headerSize]byte)(raw))
	if int(h.length) != n-headerSize {
		g.T.Errorf("a packet of %d bytes says %d", n-headerSize, h.length)
	}
	return h, raw[headerSize:n], true
}

// expect waits for a packet with an operation.
func (g *guest) expect(op uint16) (header, []byte) {
	g.T.Helper()
	h, data, ok := g.poll(vt.Patience)
	if !ok || h.op != op {
		g.T.Fatalf("operation %d (%v), wanted %d; fault %v", h.op, ok, op, g.M.Err())
	}
	if h.srcCID != HostCID || h.dstCID != g.cid || h.kind != typeStream {
		g.T.Fatalf("header %+v", h)
	}
	return h, data
}

// event takes a transport reset, if there is one, and resets what it must.
func (g *guest) event(limit time.Duration) bool {
	q := g.Queues[queueEvent]
	r := q.WaitFor(limit)
	if r == nil {
		return false
	}
	if data := q.Data(r); r.Written != 4 || !bytes.Equal(data[:4], make([]byte, 4)) {
		g.T.Errorf("event %x", data)
	}
	g.events++
	q.Add(nil, 8)
	q.Notify()
	return true
}

func after[T any](f func() (T, error)) chan result[T] {
	ch := make(chan result[T], 1)
	go func() { v, err := f(); ch <- result[T]{v, err} }()
	return ch
}

type result[T any] struct {
	v   T
	err error
}

func (g *guest) dialled(d *Device, port uint32) (*Conn, header) {
	g.T.Helper()
	done := after(func() (*Conn, error) { return d.Dial(context.Background(), port) })
	h, _ := g.expect(opRequest)
	if h.dstPort != port {
		g.T.Fatalf("request for port %d", h.dstPort)
	}
	back := header{srcPort: h.dstPort, dstPort: h.srcPort}
	r := back
	r.op = opResponse
	g.send(r, nil)
	c := <-done
	if c.err != nil {
		g.T.Fatal(c.err)
	}
	return c.v, back
}

func with(h header, op uint16, flags uint32) header { h.op, h.flags = op, flags; return h }

func TestDial(t *testing.T) {
	for _, without := range []uint64{0, 1 << 29} {
		d := New(Options{})
		if _, err := d.Dial(context.Background(), 5); !errs.Is(err, errs.Unavailable) {
			t.Fatalf("dial without a driver: %v", err)
		}
		g := boot(t, d, vt.Options{Without: without})
		if cid := g.Config(0, 8); !bytes.Equal(cid, []byte{3, 0, 0, 0, 0, 0, 0, 0}) {
			t.Fatalf("cid %x", cid)
		}
		c, h := g.dialled(d, 1024)
		if c.RemoteAddr().String() != "3:1024" || c.LocalAddr().Network() != "vsock" {
			t.Errorf("address %v", c.RemoteAddr())
		}
		if _, err := c.Write([]byte("to the guest")); err != nil {
			t.Fatal(err)
		}
		if _, data := g.expect(opData); string(data) != "to the guest" {
			t.Fatalf("%q", data)
		}
		g.send(with(h, opData, 0), []byte("to the host"))
		var buf [64]byte
		if n, err := c.Read(buf[:]); err != nil || string(buf[:n]) != "to the host" {
			t.Fatalf("%q, %v", buf[:n], err)
		}
		// Each closes its half; the guest answers the second by forgetting.
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if h, _ := g.expect(opShutdown); h.flags != shutSend {
			t.Fatalf("flags %d", h.flags)
		}
		if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write after CloseWrite: %v", err)
		}
		g.send(with(h, opData, 0), []byte("last"))
		g.send(with(h, opShutdown, shutBoth), nil)
		g.expect(opReset)
		if rest, err := io.ReadAll(c); err != nil || string(rest) != "last" {
			t.Errorf("%q, %v", rest, err)
		}
		if err := c.Close(); err != nil || d.Conns() != 0 {
			t.Errorf("close: %v; %d connections left", err, d.Conns())
		}
		if _, err := c.Read(buf[:]); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read after Close: %v", err)
		}
		g.NoFault()
	}
}

func TestDialFails(t *testing.T) {
	d := New(Options{MaxConns: 2})
	g := boot(t, d, vt.Options{})
	done := after(func() (*Conn, error) { return d.Dial(context.Background(), 7) })
	h, _ := g.expect(opRequest)
	g.send(header{srcPort: h.dstPort, dstPort: h.srcPort, op: opReset}, nil)
	if r := <-done; !errors.Is(r.err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", r.err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done = after(func() (*Conn, error) { return d.Dial(ctx, 7) })
	h, _ = g.expect(opRequest)
	cancel()
	if r := <-done; !errors.Is(r.err, context.Canceled) {
		t.Errorf("given up: %v", r.err)
	}
	g.expect(opReset)
	g.send(header{srcPort: h.dstPort, dstPort: h.srcPort, op: opResponse}, nil) // too late
	g.expect(opReset)
	c1, _ := g.dialled(d, 1)
	_, _ = g.dialled(d, 2)
	if _, err := d.Dial(context.Background(), 3); !errs.Is(err, errs.Limit) {
		t.Errorf("over the limit: %v", err)
	}
	// One that is closed here, but not by the guest, makes room.
	_ = c1.Close()
	g.expect(opShutdown)
	done = after(func() (*Conn, error) { return d.Dial(context.Background(), 3) })
	g.expect(opReset)
	h, _ = g.expect(opRequest)
	g.send(header{srcPort: h.dstPort, dstPort: h.srcPort, op: opResponse}, nil)
	if r := <-done; r.err != nil {
		t.Error(r.err)
	}
	done = after(func() (*Conn, error) { c, err := d.Dial(context.Background(), 4); return c, err })
	if r := <-done; !errs.Is(r.err, errs.Limit) {
		t.Errorf("over the limit again: %v", r.err)
	}
}

func TestListen(t *testing.T) {
	d := New(Options{CID: 77})
	g := boot(t, d, vt.Options{})
	g.cid = 77
	l, err := d.Listen(5000)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Listen(5000); !errs.Is(err, errs.Exists) {
		t.Errorf("a second listener: %v", err)
	}
	h := header{srcPort: 9, dstPort: 5000}
	g.send(with(h, opRequest, 0), nil)
	g.expect(opResponse)
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	g.send(with(h, opData, 0), []byte("hi"))
	if got, err := io.ReadFull(c, make([]byte, 2)); got != 2 || err != nil {
		t.Fatal(got, err)
	}
	g.send(with(h, opRequest, 0), nil) // twice
	g.expect(opReset)
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read of a reset connection: %v", err)
	}
	g.send(header{srcPort: 9, dstPort: 5001, op: opRequest}, nil) // nobody there
	g.expect(opReset)
	h.srcPort = 10
	g.send(with(h, opRequest, 0), nil)
	g.expect(opResponse)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	g.expect(opReset) // it waited to be accepted
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept of a closed listener: %v", err)
	}
	g.send(with(h, opRequest, 0), nil)
	g.expect(opReset)
	if d.Conns() != 0 {
		t.Errorf("%d connections left", d.Conns())
	}
}

// TestRudeGuest: what a guest may not send resets the connection, or is answered with a reset, and nothing else happens.
func TestRudeGuest(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(g *guest, h header)
	}{
		{"more than its credit", func(g *guest, h header) {
			for range BufferSize/32768 + 1 {
				g.send(with(h, opData, 0), make([]byte, 32768))
			}
		}},
		{"data after it closed", func(g *guest, h header) {
			g.send(with(h, opShutdown, shutSend), nil)
			g.send(with(h, opData, 0), []byte("x"))
		}},
		{"an unknown operation", func(g *guest, h header) { g.send(with(h, 99, 0), nil) }},
		{"a second response", func(g *guest, h header) { g.send(with(h, opResponse, 0), nil) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := New(Options{})
			g := boot(t, d, vt.Options{})
			conn, h := g.dialled(d, 1)
			c.do(g, h)
			g.expect(opReset)
			if _, err := io.Copy(io.Discard, conn); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("read: %v", err)
			}
			if _, err := conn.Write([]byte("x")); err == nil {
				t.Error("written")
			}
			g.NoFault()
		})
	}
	d := New(Options{})
	g := boot(t, d, vt.Options{})
	for _, h := range []header{{srcCID: 9}, {dstCID: 9}, {kind: 2, op: opRequest}, {op: opData}, {op: opRequest, length: 5}, {op: opShutdown, flags: 3}} {
		g.send(h, nil)
		if h, _, ok := g.poll(vt.Patience); !ok || h.op != opReset {
			t.Errorf("%+v (%v)", h, ok)
		}
	}
	g.send(header{op: opReset}, nil)
	for range 3 * maxResets { // it doesn't listen to the answers
		g.Queues[queueTx].Do([][]byte{(&header{srcCID: 3, dstCID: 2, kind: 1, op: opData}).encode()})
	}
	if n := len(d.resets); n > maxResets {
		t.Errorf("%d answers are held", n)
	}
	g.NoFault()
	for name, f := range map[string]func(){
		"a short packet": func() { g.Queues[queueTx].Add([][]byte{make([]byte, headerSize-1)}); g.Queues[queueTx].Notify() },
		"a small buffer": func() {
			for g.Queues[queueRx].WaitFor(time.Millisecond) != nil {
			}
			for g.Queues[queueRx].Add(nil, headerSize-1) != nil {
			}
			g.Queues[queueRx].Notify()
			g.Queues[queueTx].Add([][]byte{(&header{srcCID: 3, dstCID: 2, kind: 1, op: opData}).encode()})
			g.Queues[queueTx].Notify()
			for range 64 {
				g.Queues[queueTx].Add([][]byte{(&header{srcCID: 3, dstCID: 2, kind: 1, op: opData}).encode()})
				g.Queues[queueTx].Notify()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g.Up()
			f()
			_ = g.Fault()
		})
	}
}

// TestCredit: the host never sends more than the guest says it holds.
func TestCredit(t *testing.T) {
	d := New(Options{})
	g := boot(t, d, vt.Options{})
	g.alloc = 1000
	c, h := g.dialled(d, 1)
	sent := bytes.Repeat([]byte("0123456789"), 500)
	done := after(func() (int, error) { return c.Write(sent) })
	var got []byte
	for len(got) < len(sent) {
		credit := 0
		for credit < 1000 {
			p, data, ok := g.poll(vt.Patience)
			if !ok {
				t.Fatal("nothing came")
			}
			if p.op == opCreditRequest {
				continue
			}
			credit += len(data)
			got = append(got, data...)
		}
		if credit != 1000 {
			t.Fatalf("%d bytes for a credit of 1000", credit)
		}
		u := with(h, opCreditUpdate, 0)
		u.fwdCnt = uint32(len(got))
		g.send(u, nil)
	}
	if r := <-done; r.err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("%d bytes, %v", r.v, r.err)
	}
	u := with(h, opCreditUpdate, 0)
	u.bufAlloc, u.fwdCnt = 1, 100 // it takes back what it said: there is no credit, which is less than nothing
	g.send(u, nil)
	u.op = opCreditRequest
	g.send(u, nil)
	g.expect(opCreditUpdate)
	_ = c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	if _, err := c.Write(make([]byte, outSize+1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write without credit: %v", err)
	}
}

// serve is a guest with an echo server on each port until stop is closed. It takes part in resets.
func (g *guest) serve(stop chan struct{}) {
	type peer struct {
		fwd, sent  uint32
		alloc, ack uint32
		held       []byte
		shut       bool
	}
	peers := map[key]*peer{}
	for {
		select {
		case <-stop:
			return
		default:
		}
		if g.event(0) {
			clear(peers)
		}
		h, data, ok := g.poll(5 * time.Millisecond)
		if !ok {
			continue
		}
		k := key{h.dstPort, h.srcPort}
		back := header{srcPort: h.dstPort, dstPort: h.srcPort}
		p := peers[k]
		switch {
		case h.op == opRequest:
			p = &peer{}
			peers[k] = p
			g.send(with(back, opResponse, 0), nil)
		case p == nil:
			if h.op != opReset {
				g.send(with(back, opReset, 0), nil)
			}
			continue
		case h.op == opReset:
			delete(peers, k)
			continue
		case h.op == opData:
			p.held = append(p.held, data...)
		case h.op == opShutdown:
			p.shut = p.shut || h.flags&shutSend != 0
			if h.flags == shutBoth {
				g.send(with(back, opReset, 0), nil)
				delete(peers, k)
				continue
			}
		}
		p.alloc, p.ack = h.bufAlloc, h.fwdCnt
		for len(p.held) > 0 && p.sent-p.ack < p.alloc {
			n := min(len(p.held), int(p.alloc-(p.sent-p.ack)), 3000)
			b := with(back, opData, 0)
			p.fwd += uint32(n)
			b.fwdCnt = p.fwd
			g.send(b, p.held[:n])
			p.held, p.sent = p.held[n:], p.sent+uint32(n)
		}
		if p.shut && len(p.held) == 0 {
			g.send(with(back, opShutdown, shutSend), nil)
			p.shut = false
		}
	}
}

// echo sends n random bytes through a connection and checks what comes back.
func echo(c net.Conn, n int) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	src := rand.NewChaCha8([32]byte{byte(n)})
	sent, got := sha256.New(), sha256.New()
	wg.Add(1)
	go func() {
		defer wg.Done()
		_, _ = io.CopyN(io.MultiWriter(sent, c), src, int64(n))
		_ = c.(interface{ CloseWrite() error }).CloseWrite()
	}()
	m, err := io.Copy(got, c)
	if err != nil || m != int64(n) {
		return fmt.Errorf("%d of %d bytes, %v", m, n, err)
	}
	wg.Wait()
	if !bytes.Equal(sent.Sum(nil), got.Sum(nil)) {
		return errors.New("other bytes came back")
	}
	return nil
}

// TestManyConnections: at once, with pauses in between.
func TestManyConnections(t *testing.T) {
	d := New(Options{})
	g := boot(t, d, vt.Options{})
	stop := make(chan struct{})
	var wg, conns sync.WaitGroup
	wg.Add(2)
	go func() { defer wg.Done(); g.serve(stop) }()
	go func() {
		defer wg.Done()
		for {
			select {
			case <-stop:
				return
			default:
				g.M.Pause()
				if _, err := g.M.State(); err != nil {
					t.Error(err)
				}
				g.M.Resume()
				time.Sleep(time.Millisecond)
			}
		}
	}()
	for i := range 20 {
		conns.Add(1)
		go func() {
			defer conns.Done()
			c, err := d.Dial(context.Background(), uint32(i))
			if err != nil {
				t.Error(err)
				return
			}
			if err := echo(c, 300_000+i); err != nil {
				t.Error(i, err)
			}
			_ = c.Close()
		}()
	}
	conns.Wait()
	for d.Conns() > 0 { // the guest says goodbye
		time.Sleep(time.Millisecond)
	}
	close(stop)
	wg.Wait()
	g.NoFault()
}

// TestFork: the child's connections are reset and it is told so before it is dialled; the parent's go on.
func TestFork(t *testing.T) {
	d := New(Options{})
	g := boot(t, d, vt.Options{})
	c, h := g.dialled(d, 80)
	_, _ = c.Write([]byte("before"))
	g.expect(opData)
	cd := New(Options{CID: 1234})
	child := &guest{Driver: g.Fork(cd), cid: 1234, alloc: 64 << 10}
	if cid := child.Config(0, 8); cid[0] != 1234&255 || cid[1] != 1234>>8 {
		t.Errorf("cid %x", cid)
	}
	done := after(func() (*Conn, error) { return cd.Dial(context.Background(), 80) })
	if _, _, ok := child.poll(20 * time.Millisecond); ok {
		t.Fatal("dialled before the guest knows of the reset")
	}
	if !child.event(vt.Patience) {
		t.Fatal("no event")
	}
	child.send(with(h, opData, 0), []byte("of a connection that is no more"))
	seen := map[uint16]bool{}
	var req header
	for range 2 {
		p, _, ok := child.poll(vt.Patience)
		if !ok {
			t.Fatal("no packet")
		}
		if seen[p.op] = true; p.op == opRequest {
			req = p
		}
	}
	if !seen[opReset] || !seen[opRequest] {
		t.Fatalf("operations %v", seen)
	}
	child.send(header{srcPort: req.dstPort, dstPort: req.srcPort, op: opResponse}, nil)
	if r := <-done; r.err != nil {
		t.Fatal(r.err)
	}
	g.send(with(h, opData, 0), []byte("after"))
	var buf [5]byte
	if _, err := io.ReadFull(c, buf[:]); err != nil || string(buf[:]) != "after" {
		t.Errorf("the parent's connection: %q, %v", buf, err)
	}
	if g.event(0) || child.event(10*time.Millisecond) {
		t.Error("an event too many")
	}
	// A reset of the driver breaks everything.
	g.Up()
	if _, err := c.Read(buf[:]); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read after the driver's reset: %v", err)
	}
	if _, err := c.Write(buf[:]); err == nil {
		t.Error("written after the driver's reset")
	}
}

// TestRestoredTwice: a machine that is saved before it has seen the event gets it again.
func TestRestoredTwice(t *testing.T) {
	g := boot(t, New(Options{}), vt.Options{})
	g.Move(New(Options{}))
	d := New(Options{})
	g.Move(d)
	stop := make(chan struct{})
	served := after(func() (int, error) { g.serve(stop); return g.events, nil })
	c, err := d.Dial(context.Background(), 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := echo(c, 1000); err != nil {
		t.Error(err)
	}
	close(stop)
	if r := <-served; r.v == 0 { // two, if the first device came to it
		t.Error("no event")
	}
}

// TestNetConn is the standard library's idea of a net.Conn, through the guest's echo of one side into the other.
func TestNetConn(t *testing.T) {
	if testing.Short() {
		t.Skip("short: TestNetConn takes seconds; the full run has it")
	}
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		d := New(Options{})
		g := boot(t, d, vt.Options{})
		quit := make(chan struct{})
		var wg sync.WaitGroup
		wg.Add(1)
		go func() { defer wg.Done(); g.crosswire(quit) }()
		l, err := d.Listen(1)
		if err != nil {
			return nil, nil, nil, err
		}
		out := after(func() (*Conn, error) { return d.Dial(context.Background(), 1) })
		in, err := l.Accept()
		if err != nil {
			return nil, nil, nil, err
		}
		r := <-out
		if r.err != nil {
			return nil, nil, nil, r.err
		}
		return r.v, in, func() { _ = r.v.Close(); _ = in.Close(); close(quit); wg.Wait() }, nil
	})
}

// crosswire is a guest that connects each connection that it gets with port 1 of the host, by passing packets on: the two
// connections' credit is each other's.
func (g *guest) crosswire(stop chan struct{}) {
	other := map[key]key{}
	for {
		select {
		case <-stop:
			return
		default:
		}
		h, data, ok := g.poll(5 * time.Millisecond)
		if !ok {
			continue
		}
		k := key{h.dstPort, h.srcPort}
		if h.op == opRequest {
			other[k] = key{h.srcPort, 1}
			other[other[k]] = k
		}
		o, ok := other[k]
		if !ok {
			continue
		}
		p := h
		p.srcCID, p.dstCID, p.srcPort, p.dstPort = g.cid, HostCID, o.guest, o.host
		if h.op == opShutdown && h.flags == shutBoth {
			// One side is closed: it is forgotten at once, the other when it has been told.
			g.send(header{srcPort: h.dstPort, dstPort: h.srcPort, op: opReset}, nil)
		}
		g.send(p, data)
	}
}

func TestBridge(t *testing.T) {
	dir := t.TempDir()
	d := New(Options{})
	g := boot(t, d, vt.Options{})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Add(2)
	go func() { defer wg.Done(); g.serve(stop) }()
	ln, err := net.Listen("unix", filepath.Join(dir, "v"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &Bridge{Handshake: time.Minute}
	served := after(func() (int, error) { defer wg.Done(); return 0, b.Serve(ctx, d, ln) })
	c, err := net.Dial("unix", filepath.Join(dir, "v"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, "CONNECT 52\n")
	line := make([]byte, 3)
	if _, err := io.ReadFull(c, line); err != nil || string(line) != "OK " {
		t.Fatalf("%q, %v", line, err)
	}
	for b := []byte{0}; b[0] != '\n'; {
		if _, err := c.Read(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := echo(c, 100_000); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"HELLO\n", "CONNECT x\n", "CONNECT 99999999999\n", "CONNECT                                                 1\n"} {
		c, err := net.Dial("unix", filepath.Join(dir, "v"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, bad)
		if got, err := io.ReadAll(c); len(got) > 0 {
			t.Errorf("%q answers %q, %v", bad, got, err)
		}
		_ = c.Close()
	}
	if err := new(Bridge).Serve(ctx, d, nil); !errs.Is(err, errs.Exists) {
		t.Errorf("a second bridge: %v", err)
	}
	cancel()
	if r := <-served; r.err != nil {
		t.Error(r.err)
	}
	close(stop)
	wg.Wait()
}

// TestBridgeFromGuest: what the guest connects to is dialled first; an error refuses it.
func TestBridgeFromGuest(t *testing.T) {
	d := New(Options{})
	g := boot(t, d, vt.Options{})
	here, there := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	b := &Bridge{Dial: func(_ context.Context, port uint32) (net.Conn, error) {
		if port != 9 {
			return nil, syscall.ENOENT
		}
		return there, nil
	}}
	served := after(func() (int, error) { return 0, b.Serve(ctx, d, nil) })
	for {
		d.mu.Lock()
		up := d.any != nil
		d.mu.Unlock()
		if up {
			break
		}
		time.Sleep(time.Millisecond)
	}
	g.send(header{srcPort: 1, dstPort: 8, op: opRequest}, nil)
	g.expect(opReset)
	h := header{srcPort: 1, dstPort: 9}
	g.send(with(h, opRequest, 0), nil)
	g.expect(opResponse)
	g.send(with(h, opData, 0), []byte("ping"))
	var buf [4]byte
	if _, err := io.ReadFull(here, buf[:]); err != nil || string(buf[:]) != "ping" {
		t.Fatal(err)
	}
	if _, err := here.Write([]byte("pong")); err != nil {
		t.Fatal(err)
	}
	if _, data := g.expect(opData); string(data) != "pong" {
		t.Fatalf("%q", data)
	}
	cancel()
	if r := <-served; r.err != nil {
		t.Error(r.err)
	}
}

func FuzzDevice(f *testing.F) {
	p := func(h header) []byte { h.srcCID, h.dstCID, h.kind = 3, HostCID, typeStream; return h.encode() }
	seed := func(h header) []byte { return append([]byte{12, 1, 1, headerSize}, append(p(h), 0)...) }
	vt.Seed(f)
	req := seed(header{srcPort: 1, dstPort: 1, op: opRequest, bufAlloc: 100})
	f.Add(append(append(append(append([]byte{12, 0, 0, 1, 30, 12, 0, 0, 1, 30}, req...), seed(header{srcPort: 1, dstPort: 1, op: opCreditRequest})...),
		seed(header{srcPort: 1, dstPort: 1, op: opShutdown, flags: 3})...), 11, 10))
	f.Add(append(req, seed(header{srcPort: 1, dstPort: 1, op: opData, length: 99})...))
	f.Fuzz(func(t *testing.T, data []byte) {
		var wg sync.WaitGroup
		t.Cleanup(wg.Wait) // after the devices have been closed
		vt.Fuzz(t, func() virtio.Device {
			d := New(Options{MaxConns: 4})
			l, err := d.Listen(1)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			wg.Add(1)
			go func() {
				defer wg.Done()
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = c.Write(make([]byte, 300))
					_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
					_, _ = c.Read(make([]byte, 100))
					_ = c.Close()
				}
			}()
			return d
		}, data)
	})
}

// TestFree: while the device looks for room in the guest, others use it.
func TestFree(t *testing.T) {
	d := New(Options{})
	g := boot(t, d, vt.Options{})
	held, resume := g.RAM.HoldUp(rxSize - headerSize)
	g.send(header{srcPort: 1, dstPort: 2, op: opRequest}, nil) // nobody listens there
	<-held
	done := make(chan int, 1)
	go func() { done <- d.Conns() }()
	select {
	case <-done:
	case <-time.After(vt.Patience):
		t.Error("others wait for a guest that takes packets")
	}
	resume()
	g.expect(opReset)
}
