package jail

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/vmm"
)

// hostile is a VMM process that was taken over: it reads what it likes, and says what the script tells it.
type hostile struct {
	fd     int
	script []byte
	gone   chan struct{}
	once   sync.Once
}

func (h *hostile) byte() byte {
	if len(h.script) == 0 {
		return 0
	}
	b := h.script[0]
	h.script = h.script[1:]
	return b
}

func (h *hostile) take(n int) []byte {
	n = min(n, len(h.script))
	b := h.script[:n]
	h.script = h.script[n:]
	return b
}

func (h *hostile) send(b []byte, fds ...int) {
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	_ = unix.Sendmsg(h.fd, b, oob, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

// order reads one, and returns its number; false when there are no more.
func (h *hostile) order() (*message, bool) {
	buf, oob := make([]byte, maxPacket), make([]byte, unix.CmsgSpace(4*maxFDs))
	n, oobn, _, _, err := unix.Recvmsg(h.fd, buf, oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil || n <= 0 {
		return nil, false
	}
	m := new(message)
	if fds, err := rights(oob[:oobn]); err == nil {
		m.fds = fds
	}
	_ = json.Unmarshal(buf[:n], m)
	return m, true
}

// run plays the script: an order each, answered with something.
func (h *hostile) run(t *testing.T) {
	for len(h.script) > 0 {
		m, ok := h.order()
		if !ok {
			return
		}
		m.closeFDs()
		m.Cmdline, m.Port = "", 0
		switch h.byte() % 9 {
		case 0: // nothing
		case 1:
			h.send([]byte(h.take(int(h.byte()))))
		case 2: // what wasn't asked
			m.ID += uint64(h.byte())
			b, _ := json.Marshal(m)
			h.send(b)
		case 3: // twice
			b, _ := json.Marshal(m)
			h.send(b)
			h.send(b)
		case 4: // the end of the guest, more than once
			b, _ := json.Marshal(&message{Op: opEnded, Exit: &vmm.Exit{Reason: vmm.Reason(h.byte()), Tail: h.take(10)}})
			for range h.byte()%3 + 1 {
				h.send(b)
			}
		case 5: // a snapshot of sorts
			state, err := sealed(h.take(int(h.byte())))
			if err != nil {
				t.Error(err)
				return
			}
			fds := []int{state, layer(t, 8192), layer(t, 4096)}
			m.Size, m.Layers = 8192, int(h.byte()%3)
			_ = json.Unmarshal(h.take(int(h.byte())), m)
			b, _ := json.Marshal(m)
			h.send(b, fds[:1+h.byte()%3]...)
			closeAll(fds)
		case 6: // descriptors with everything
			p, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Error(err)
				return
			}
			m.Failed = &failure{Kind: errs.Kind(h.byte()), Text: "no"}
			b, _ := json.Marshal(m)
			h.send(b, p, p, p)
			unix.Close(p)
		case 7:
			return
		default:
			b, _ := json.Marshal(m)
			h.send(b)
		}
	}
}

func (h *hostile) end() {
	h.once.Do(func() {
		_ = unix.Shutdown(h.fd, unix.SHUT_RDWR)
		close(h.gone)
	})
}

// FuzzHostile lets a process that was taken over answer a parent that does everything at once: nobody waits for ever, and nothing
// stays open, whatever it says.
func FuzzHostile(f *testing.F) {
	f.Add([]byte{8, 8, 8, 8, 8, 8, 8})
	f.Add([]byte{0, 0, 0, 0, 0, 7})
	f.Add([]byte{3, 3})
	f.Add([]byte{2, 1, 4, 0, 1})
	f.Add([]byte{1, 2, '{', '}', 6, 4, 6, 0})
	f.Add(append([]byte{5, 30}, `{"Machine":{"Memory":8192,"VCPUs":1}}, 2, 1, 70, {"Extents":[{"Off":0,"End":8192}]}`...))
	f.Fuzz(func(t *testing.T, script []byte) {
		before := open(t)
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		c, err := newConn(os.NewFile(uintptr(fds[0]), "socket"))
		if err != nil {
			t.Fatal(err)
		}
		// Who waits for an order while everybody waits for it has nothing more to do.
		if err := unix.SetsockoptTimeval(fds[1], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 20000}); err != nil {
			t.Fatal(err)
		}
		h := &hostile{fd: fds[1], script: script, gone: make(chan struct{})}
		p := newProcess(c, vmm.Config{Memory: 8192}, ends{})
		p.kill = func() error { h.end(); return nil }
		p.reap = func() string { <-h.gone; return "killed" }
		go p.read()
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			defer cancel() // what wasn't answered is given up
			h.run(t)
		})
		for range 2 {
			all.Go(func() {
				if im, err := p.CaptureImage(ctx); err == nil {
					if s, err := im.Snapshot(); err == nil {
						s.Close()
					}
					im.Close()
				}
			})
			all.Go(func() {
				if s, err := p.Capture(ctx); err == nil {
					if im, err := NewImage(s); err == nil {
						im.Close()
					}
					s.Close()
				}
			})
			all.Go(func() {
				if c, err := p.Dial(ctx, 1); err == nil {
					c.Close()
				}
			})
		}
		all.Go(func() { _ = p.Wait(ctx) })
		all.Go(func() { _, _ = p.Tail(ctx) })
		all.Wait()
		p.Close()
		if err := p.Wait(t.Context()); err == nil && p.exit == nil {
			t.Error("a process that is gone has ended well")
		}
		unix.Close(fds[1])
		if _, err := p.Tail(t.Context()); err == nil {
			t.Error("a process that is gone follows an order")
		}
		if after := open(t); after > before {
			out, _ := os.ReadDir("/proc/self/fd")
			for _, e := range out {
				l, _ := os.Readlink("/proc/self/fd/" + e.Name())
				t.Log(e.Name(), l)
			}
			t.Errorf("%d descriptors became %d", before, after)
		}
	})
}
