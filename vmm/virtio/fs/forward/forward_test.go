package forward_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/virtio/fs"
	"agentrun.dev/vmm/virtio/fs/forward"
	vt "agentrun.dev/vmm/virtio/virtiotest"
)

// echo answers with what the request says behind its header; an operation of 2 has no answer, of 3 one that is too long.
func echo(_ context.Context, in, out []byte) int {
	switch binary.LittleEndian.Uint32(in[4:]) {
	case 2:
		return 0
	case 3:
		return len(out) + 1
	case 4:
		return -1
	}
	if len(out) < 16 {
		return 0
	}
	n := 16 + copy(out[16:], in[40:])
	binary.LittleEndian.PutUint32(out, uint32(n))
	binary.LittleEndian.PutUint32(out[4:], 0)
	copy(out[8:16], in[8:16])
	return n
}

func request(op uint32, unique uint64, data string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(40+len(data)))
	b = binary.LittleEndian.AppendUint32(b, op)
	b = binary.LittleEndian.AppendUint64(b, unique)
	return append(append(b, make([]byte, 24)...), data...)
}

// start returns a client whose requests h answers, and what Serve returns.
func start(t testing.TB, ctx context.Context, h fs.Handler) (*forward.Client, chan error) {
	a, b := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- forward.Serve(ctx, b, h) }()
	c := forward.NewClient(a)
	t.Cleanup(func() { _ = c.Close() })
	return c, served
}

func errno(out []byte) syscall.Errno {
	return syscall.Errno(-int32(binary.LittleEndian.Uint32(out[4:])))
}

func TestForward(t *testing.T) {
	c, served := start(t, t.Context(), fs.HandlerFunc(echo))
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			want := strings.Repeat(fmt.Sprint(i, " "), i*7)
			out := make([]byte, 16+len(want))
			if n := c.Handle(context.Background(), request(1, uint64(i), want), out); n != len(out) || string(out[16:]) != want || out[8] != byte(i) {
				t.Errorf("request %d: %d bytes", i, n)
			}
		}()
	}
	wg.Wait()
	out := make([]byte, 64)
	if n := c.Handle(context.Background(), request(2, 1, ""), nil); n != 0 {
		t.Errorf("%d bytes of no answer", n)
	}
	for op := uint32(3); op <= 4; op++ {
		if n := c.Handle(context.Background(), request(op, 9, ""), out); n != 16 || errno(out) != syscall.EIO || out[8] != 9 {
			t.Errorf("operation %d: %d bytes, %v", op, n, errno(out))
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Errorf("served: %v", err)
	}
	if n := c.Handle(context.Background(), request(1, 5, "late"), out); n != 16 || errno(out) != syscall.EIO || !errs.Is(c.Err(), errs.Unavailable) {
		t.Errorf("after Close: %d bytes, %v, %v", n, errno(out), c.Err())
	}
}

// TestEnd: requests that wait when the other side goes are errors; Serve returns when its handler has.
func TestEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	entered, leave := make(chan struct{}), make(chan struct{})
	c, served := start(t, ctx, fs.HandlerFunc(func(context.Context, []byte, []byte) int {
		close(entered)
		<-leave
		return 0
	}))
	answered := make(chan syscall.Errno, 1)
	go func() {
		out := make([]byte, 16)
		c.Handle(context.Background(), request(1, 1, ""), out)
		answered <- errno(out)
	}()
	<-entered
	cancel()
	if got := <-answered; got != syscall.EIO {
		t.Errorf("answered %v", got)
	}
	select {
	case err := <-served:
		t.Errorf("served while a request is under way: %v", err)
	default:
	}
	close(leave)
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestRude: what isn't a message ends the connection.
func TestRude(t *testing.T) {
	words := func(v ...uint32) (b []byte) {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, x)
		}
		return b
	}
	for name, msg := range map[string][]byte{"too short": words(1, 39, 100), "too long": words(1, fs.MaxTransfer+1, 0), "too much room": words(1, 40, 1<<31)} {
		a, b := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- forward.Serve(t.Context(), b, fs.HandlerFunc(echo)) }()
		_, _ = a.Write(msg)
		if err := <-served; !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
		_ = a.Close()
	}
	for name, msg := range map[string][]byte{"no such request": words(77, 0), "too long": words(1, 1<<30)} {
		a, b := net.Pipe()
		c := forward.NewClient(a)
		answered := make(chan syscall.Errno, 1)
		go func() {
			out := make([]byte, 32)
			c.Handle(context.Background(), request(1, 1, ""), out)
			answered <- errno(out)
		}()
		_, _ = io.ReadFull(b, make([]byte, 52))
		_, _ = b.Write(msg)
		if got := <-answered; got != syscall.EIO {
			t.Errorf("%s: %v", name, got)
		}
		_ = c.Close()
		_ = b.Close()
	}
}

// TestDevice: a driver's requests by way of a device and a connection.
func TestDevice(t *testing.T) {
	c, _ := start(t, t.Context(), fs.HandlerFunc(echo))
	dev, err := fs.New(c, fs.Options{Tag: "work"})
	if err != nil {
		t.Fatal(err)
	}
	d := vt.New(t, dev, vt.Options{})
	req := request(1, 3, "through two processes")
	got, n := d.Queues[1].Do([][]byte{req[:40], req[40:]}, 16, 100)
	if string(got[16:n]) != "through two processes" {
		t.Errorf("%q", got[:n])
	}
}

func FuzzServe(f *testing.F) {
	f.Add(append(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 1), 44), 64), request(1, 1, "data")...))
	f.Fuzz(func(t *testing.T, data []byte) {
		if i := bytes.IndexByte(data, 0xff); i >= 0 {
			data = data[:i]
		}
		a, b := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- forward.Serve(t.Context(), b, fs.HandlerFunc(echo)) }()
		var wg sync.WaitGroup
		wg.Add(1)
		go func() { defer wg.Done(); _, _ = io.Copy(io.Discard, a) }()
		_, _ = a.Write(data)
		_ = a.Close()
		<-served
		wg.Wait()
	})
}

// TestBytes: requests and rooms of a megabyte each aren't held for all that may be under way.
func TestBytes(t *testing.T) {
	const most = forward.MaxBytes / fs.MaxTransfer / 2
	var now, peak atomic.Int64
	full, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	c, _ := start(t, t.Context(), fs.HandlerFunc(func(_ context.Context, in, out []byte) int {
		n := now.Add(1)
		for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
		}
		if n == most {
			once.Do(func() { close(full) })
		}
		<-leave
		now.Add(-1)
		return fs.Refuse(in, out, 0)
	}))
	var wg sync.WaitGroup
	for i := range 3 * most {
		wg.Go(func() {
			in := append(request(1, uint64(i), ""), make([]byte, fs.MaxTransfer-40)...)
			if n := c.Handle(context.Background(), in, make([]byte, fs.MaxTransfer)); n != 16 {
				t.Errorf("request %d: %d bytes", i, n)
			}
		})
	}
	select {
	case <-full:
	case <-time.After(vt.Patience):
		t.Error("fewer requests than there is room for")
	}
	time.Sleep(20 * time.Millisecond) // for those that mustn't come
	close(leave)
	wg.Wait()
	if peak.Load() != most {
		t.Errorf("%d requests of %d bytes at the same time", peak.Load(), 2*fs.MaxTransfer)
	}
}
