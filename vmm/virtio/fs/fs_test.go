package fs_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/virtio"
	"agentrun.dev/vmm/virtio/fs"
	vt "agentrun.dev/vmm/virtio/virtiotest"
)

// Operations of the handler below.
const (
	echo = 1 + iota
	forget
	wait // for the release or the drain
	big  // more than there is room for
	give // up without a reason
)

// handler answers requests of its own kind.
type handler struct {
	forgotten, waiting atomic.Int32
	release            chan struct{}
	most, now          atomic.Int32
}

func newHandler() *handler { return &handler{release: make(chan struct{})} }

func (h *handler) Handle(ctx context.Context, in, out []byte) int {
	if n := h.now.Add(1); n > h.most.Load() {
		h.most.Store(n)
	}
	defer h.now.Add(-1)
	switch binary.LittleEndian.Uint32(in[4:]) {
	case forget:
		h.forgotten.Add(1)
		return 0
	case wait:
		h.waiting.Add(1)
		select {
		case <-ctx.Done():
			return -1
		case <-h.release:
		}
	case big:
		return len(out) + 1
	case give:
		return -1
	}
	n := copy(out[16:], in[40:])
	binary.LittleEndian.PutUint32(out, uint32(16+n))
	binary.LittleEndian.PutUint32(out[4:], 0)
	copy(out[8:16], in[8:16])
	return 16 + n
}

func request(op uint32, unique uint64, data string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(40+len(data)))
	b = binary.LittleEndian.AppendUint32(b, op)
	b = binary.LittleEndian.AppendUint64(b, unique)
	return append(append(b, make([]byte, 24)...), data...)
}

// do makes a request and returns its reply's data and error.
func do(d *vt.Driver, op uint32, data string) (string, syscall.Errno) {
	d.T.Helper()
	req := request(op, 77, data)
	got, n := d.Queues[1].Do([][]byte{req[:40], req[40:]}, 16, 4096)
	if n < 16 || int(binary.LittleEndian.Uint32(got)) != n || binary.LittleEndian.Uint64(got[8:]) != 77 {
		d.T.Fatalf("a reply of %d bytes: %x", n, got[:16])
	}
	return string(got[16:n]), syscall.Errno(-int32(binary.LittleEndian.Uint32(got[4:])))
}

func device(t testing.TB, h fs.Handler) *fs.Device {
	t.Helper()
	d, err := fs.New(h, fs.Options{Tag: "work", Queues: 2})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestRequests(t *testing.T) {
	h := newHandler()
	d := vt.New(t, device(t, h), vt.Options{})
	if c := d.Config(0, 40); string(c[:5]) != "work\x00" || c[36] != 2 || len(d.Queues) != 3 {
		t.Errorf("config %q, %d queues", c, len(d.Queues))
	}
	for _, s := range []string{"hello", strings.Repeat("x", 4000)} {
		if got, errno := do(d, echo, s); got != s || errno != 0 {
			t.Errorf("%d bytes, %v", len(got), errno)
		}
	}
	if _, errno := do(d, big, ""); errno != syscall.EIO {
		t.Errorf("a reply that is too long: %v", errno)
	}
	if _, errno := do(d, give, ""); errno != syscall.EIO {
		t.Errorf("given up: %v", errno)
	}
	huge := make([][]byte, 257)
	for i := range huge {
		huge[i] = make([]byte, 4096)
	}
	copy(huge[0], request(echo, 5, ""))
	huge[256] = huge[256][:4096]
	got, n := d.Queues[1].Do(append(huge, []byte("x")), 16)
	if n != 16 || syscall.Errno(-int32(binary.LittleEndian.Uint32(got[4:]))) != syscall.E2BIG || got[8] != 5 {
		t.Errorf("a huge request: %x (%d)", got, n)
	}
	for range 10 {
		if _, n := d.Queues[0].Do([][]byte{request(forget, 1, "12345678")}); n != 0 {
			t.Errorf("%d bytes for a forget", n)
		}
	}
	if h.forgotten.Load() != 10 {
		t.Errorf("%d forgotten", h.forgotten.Load())
	}
	d.NoFault()
	d.Queues[1].Add([][]byte{make([]byte, 39)}, 16)
	d.Queues[1].Notify()
	_ = d.Fault()
	for _, o := range []fs.Options{{}, {Tag: strings.Repeat("x", 37)}, {Tag: "a\x00b"}, {Tag: "x", Queues: 9}} {
		if _, err := fs.New(h, o); !errs.Is(err, errs.Invalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestWaiting: requests that wait hold up neither others nor a pause nor a fork; there is a limit to them.
func TestWaiting(t *testing.T) {
	h := newHandler()
	d := vt.New(t, device(t, h), vt.Options{})
	q := d.Queues[2]
	for i := range 100 {
		q.Add([][]byte{request(wait, uint64(i), "waited")}, 64)
	}
	q.Notify()
	for h.waiting.Load() < fs.MaxInFlight {
	}
	if _, n := d.Queues[0].Do([][]byte{request(forget, 1, "")}); n != 0 { // the high-priority queue goes on
		t.Error(n)
	}
	child := newHandler()
	fork := d.Fork(device(t, child))
	close(h.release)
	close(child.release)
	for _, q := range []*vt.Queue{q, fork.Queues[2]} {
		seen := map[byte]bool{}
		for range 100 {
			r := q.Wait()
			data := q.Data(r)
			if string(data[16:22]) != "waited" || seen[data[8]] {
				t.Fatalf("%q", data)
			}
			seen[data[8]] = true
		}
	}
	if h.most.Load() > fs.MaxInFlight+1 {
		t.Errorf("%d at the same time", h.most.Load())
	}
	h.release = make(chan struct{})
	q.Add([][]byte{request(wait, 1, "for ever")}, 64)
	q.Notify()
	d.Up()
	if got, _ := do(d, echo, "after a reset"); got != "after a reset" {
		t.Error(got)
	}
	other, err := fs.New(h, fs.Options{Tag: "play"})
	if err != nil {
		t.Fatal(err)
	}
	d.M.Pause()
	s, err := d.M.State()
	if err != nil {
		t.Fatal(err)
	}
	o := vt.New(t, other, vt.Options{Idle: true})
	o.M.Pause()
	if err := o.M.SetState(s); !errs.Is(err, errs.Invalid) {
		t.Errorf("restored under another tag: %v", err)
	}
}

// TestPauseUnderLoad: on two queues, nothing is lost or doubled.
func TestPauseUnderLoad(t *testing.T) {
	d := vt.New(t, device(t, newHandler()), vt.Options{})
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
				d.M.Pause()
				d.M.Resume()
			}
		}
	}()
	for i := range 500 {
		n := 0
		for j := range 20 {
			if d.Queues[1+j%2].Add([][]byte{request(echo, uint64(j), "ping")}, 64) != nil {
				n++
			}
		}
		d.Queues[1].Notify()
		d.Queues[2].Notify()
		for j := range n {
			q := d.Queues[1+j%2]
			if data := q.Data(q.Wait()); !bytes.Equal(data[16:20], []byte("ping")) {
				t.Fatalf("round %d: %q", i, data)
			}
		}
	}
	close(stop)
	wg.Wait()
	d.NoFault()
}

func FuzzDevice(f *testing.F) {
	vt.Seed(f, request(echo, 1, "data"))
	f.Add(append(append([]byte{12, 1, 1, 44}, request(wait, 1, "data")...), 2, 60, 1, 8, 1, 11, 8, 1, 10))
	f.Add(append(append([]byte{12, 0, 1, 44}, request(forget, 1, "data")...), 0, 8, 0))
	f.Add(append(append([]byte{12, 2, 1, 44}, request(big, 1, "data")...), 1, 1, 8, 2))
	f.Fuzz(func(t *testing.T, data []byte) {
		vt.Fuzz(t, func() virtio.Device { return device(t, safe{newHandler()}) }, data)
	})
}

// safe is a handler that minds the room for its reply, as a real one does.
type safe struct{ h *handler }

func (s safe) Handle(ctx context.Context, in, out []byte) int {
	if len(out) < 16 {
		return 0
	}
	return s.h.Handle(ctx, in, out)
}
