package jail

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/memory"
	"agentrun.dev/vmm/snapshot"
)

// pair is the two ends of a socket: ours, and a raw one of somebody hostile.
func pair(t testing.TB) (*conn, int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newConn(os.NewFile(uintptr(fds[0]), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); unix.Close(fds[1]) })
	return c, fds[1]
}

// open counts this process's descriptors.
func open(t testing.TB) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}

// layer is a sealed file of RAM's size.
func layer(t testing.TB, size int) int {
	t.Helper()
	fd, err := sealed(make([]byte, size))
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// TestSnapshotOverTheWire sends a snapshot and reads it.
func TestSnapshotOverTheWire(t *testing.T) {
	im, err := memory.Import(8192, []memory.Extent{{Off: 0, End: 8192}}, []int{layer(t, 8192)})
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	s := &snapshot.Snapshot{Machine: snapshot.Machine{Memory: 8192, VCPUs: 1}, Clock: 7, Memory: im}
	c, fd := pair(t)
	m, err := encode(s)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Sendmsg(fd, b, unix.UnixRights(m.fds...), nil, 0); err != nil {
		t.Fatal(err)
	}
	unix.Close(m.fds[0])
	got, err := c.receive(make([]byte, maxPacket))
	if err != nil {
		t.Fatal(err)
	}
	read, err := decode(got)
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if read.Clock != 7 || read.Memory.Size() != 8192 {
		t.Errorf("read %+v", read)
	}
}

// take makes of a message what a child does, or who forks it.
func take(m *message, child bool) error {
	if child {
		s, err := decode(m)
		if err == nil {
			s.Close()
		}
		return err
	}
	im, err := adopt(m, 8192)
	if err != nil {
		return err
	}
	s, err := im.Snapshot()
	if err == nil {
		s.Close()
	}
	return errors.Join(err, im.Close())
}

// TestExtents writes lists of extents and reads them, and what nobody may write.
func TestExtents(t *testing.T) {
	list := extents{{Off: 4096, End: 8192, Layer: 2}, {Off: 8192, End: 1 << 40}, {Off: 1<<40 + 4096, End: 1<<40 + 12288, Layer: 63}}
	b, err := json.Marshal(message{Extents: list})
	if err != nil {
		t.Fatal(err)
	}
	var m message
	if err := json.Unmarshal(b, &m); err != nil || !slices.Equal(m.Extents, list) {
		t.Errorf("%s is read as %v, %v", b, m.Extents, err)
	}
	for name, bad := range map[string][]byte{"half of one": {1, 2}, "a number without end": bytes.Repeat([]byte{0xff}, 30), "too many": bytes.Repeat([]byte{0, 1, 0}, memory.MaxExtents+1),
		"too large": append(binary.AppendUvarint([]byte{1}, maxPages), 0), "a layer too far": binary.AppendUvarint([]byte{1, 1}, 1<<63)} {
		text, err := json.Marshal(bad)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, new(extents)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// FuzzMessages sends packets as a VMM that was taken over would: whatever they say, an error or a snapshot comes out,
// and no descriptor stays behind.
func FuzzMessages(f *testing.F) {
	f.Add([]byte(`{"Op":"capture","Size":8192,"Layers":1,"Extents":"AAIA"}`), []byte(`{"Machine":{"Memory":8192}}`), uint8(1))
	f.Add([]byte(`{"Op":"capture","Size":8192,"Layers":2,"Extents":"AAEBAAEA"}`), []byte(`{}`), uint8(2))
	f.Add([]byte(`{"Op":"capture","Size":8192,"Layers":1,"Extents":"AAIA"}`),
		[]byte(`{"Machine":{"Memory":8192},"Disks":[{"State":"QUdPVgEAIAAAAAAAAAIAAQE="}]}`), uint8(2))
	f.Add([]byte(`{"Op":"capture","Size":8192,"Layers":-1}`), []byte(`{"Machine":{"Memory":8192},"Disks":[{},{},{}]}`), uint8(2))
	f.Add([]byte(`{"ID":1,"Failed":{"Kind":200,"Text":"x"},"Exit":{"Reason":99}}`), []byte(``), uint8(0))
	f.Add([]byte(`[`), []byte(`[`), uint8(1))
	f.Fuzz(func(t *testing.T, packet, state []byte, fds uint8) {
		if len(packet) == 0 || len(packet) > maxPacket {
			return
		}
		c, fd := pair(t)
		before := open(t)
		var send []int
		if fds > 0 {
			s, err := sealed(state)
			if err != nil {
				t.Fatal(err)
			}
			send = append(send, s)
		}
		for range fds % 5 {
			send = append(send, layer(t, 8192))
		}
		var oob []byte
		if len(send) > 0 {
			oob = unix.UnixRights(send...)
		}
		if err := unix.Sendmsg(fd, packet, oob, nil, 0); err != nil {
			t.Fatal(err)
		}
		for _, fd := range send {
			unix.Close(fd)
		}
		m, err := c.receive(make([]byte, maxPacket))
		if err == nil {
			_ = m.Failed.err("x")
			err = take(m, fds >= 128)
			m.closeFDs()
		}
		if err != nil && errs.KindOf(err) == errs.Other {
			t.Errorf("%v", err)
		}
		if after := open(t); after > before { // fewer, when what other tests left was collected meanwhile
			t.Errorf("%d descriptors became %d", before, after)
		}
	})
}
