package virtiotest

import (
	"encoding/binary"
	"testing"

	"agentrun.dev/vmm/virtio"
)

// Fuzz lets a hostile driver loose on a device: data is a program of register accesses, writes to memory, descriptors that
// are nearly right, notifications, pauses and restores. Nothing of it may crash the device, make it hang or allocate
// without bound; and after a reset it works again. make returns a new device each time.
func Fuzz(t testing.TB, dev func() virtio.Device, data []byte) {
	f := &fuzzer{Driver: New(t, dev(), Options{RAM: NewRAM(256 << 10), QueueSize: 16}), data: data}
	for range 256 {
		if len(f.data) == 0 {
			break
		}
		f.step(dev)
	}
	f.M.Pause()
	if _, err := f.M.State(); err != nil {
		t.Fatalf("state: %v", err)
	}
	f.M.Resume()
	f.Driver.RAM.next, f.Driver.RAM.free = Base, make(map[int][]uint64)
	f.Up()
}

type fuzzer struct {
	*Driver
	data []byte
}

func (f *fuzzer) byte() byte {
	if len(f.data) == 0 {
		return 0
	}
	b := f.data[0]
	f.data = f.data[1:]
	return b
}

func (f *fuzzer) word() uint32 {
	var p [4]byte
	f.data = f.data[copy(p[:], f.data):]
	return binary.LittleEndian.Uint32(p[:])
}

func (f *fuzzer) take(n int) []byte {
	n = min(n, len(f.data))
	p := f.data[:n]
	f.data = f.data[n:]
	return p
}

// addr is an address that is likely to be in memory, at its end, or wildly out of it.
func (f *fuzzer) addr() uint64 {
	size := uint64(len(f.RAM.mem))
	switch w := uint64(f.word()); w % 8 {
	case 0:
		return w << 29
	case 1:
		return Base + size - w>>3%32
	case 2:
		return ^uint64(0) - w
	default:
		return Base + w>>3%size
	}
}

func (f *fuzzer) queue() *Queue { return f.Queues[int(f.byte())%len(f.Queues)] }

func (f *fuzzer) step(dev func() virtio.Device) {
	registers := []uint64{FeaturesSel, DriverFeatures, DriverSel, QueueSel, QueueNum, QueueReady, QueueNotify, InterruptACK, Status,
		QueueDesc, QueueDesc + 4, QueueAvail, QueueAvail + 4, QueueUsed, QueueUsed + 4, Config, Config + 8, Config + 0x24, 0xac}
	switch op := f.byte() % 16; op {
	case 0:
		f.Store(registers[int(f.byte())%len(registers)], f.word())
	case 1:
		f.M.Write(uint64(f.word())%(virtio.Size+16), f.take(int(f.byte())%9))
	case 2:
		f.M.Read(uint64(f.word())%(virtio.Size+16), make([]byte, f.byte()%9))
	case 3:
		p := f.take(int(f.byte()))
		if b, err := f.RAM.Bytes(f.addr(), uint64(len(p))); err == nil {
			copy(b, p)
		}
	case 4, 5:
		f.descriptor()
	case 6:
		f.queue().Publish(uint16(f.byte() % 17))
	case 7:
		f.queue().SetIndex(uint16(f.word()))
	case 8, 9:
		f.queue().Notify()
	case 10:
		f.M.Pause()
		f.M.Resume()
	case 11:
		f.M.Pause()
		s, err := f.M.State()
		if err != nil {
			f.T.Fatal(err)
		}
		_ = f.M.Close()
		f.attach(dev())
		f.M.Pause()
		if err := f.M.SetState(s); err != nil {
			f.T.Fatalf("a state of our own is refused: %v\n%s", err, s)
		}
		f.M.Resume()
	default:
		f.request()
	}
}

// descriptor writes one that may be right, into a queue's table or anywhere.
func (f *fuzzer) descriptor() {
	q := f.queue()
	table, i := q.Desc, int(f.byte())%q.Size
	if f.byte()%4 == 0 {
		table, i = Base+uint64(f.word())%uint64(len(f.RAM.mem)-16)&^15, 0
	}
	f.RAM.PutDesc(table, i, Desc{Addr: f.addr(), Len: f.word() >> (f.byte() % 32), Flags: uint16(f.byte() % 8), Next: uint16(f.byte() % 18)})
}

// request makes one of correct form and any content, and announces it.
func (f *fuzzer) request() {
	q := f.queue()
	var in [][]byte
	var out []int
	for range f.byte() % 3 {
		in = append(in, f.take(int(f.byte())%80))
	}
	for range f.byte() % 3 {
		out = append(out, int(f.byte())*9)
	}
	if len(in)+len(out) == 0 || f.RAM.next > Base+uint64(len(f.RAM.mem))/2 {
		return
	}
	if r := q.Add(in, out...); r != nil {
		q.Notify()
	}
}

// Seed adds programs that reach far, and extra ones of the device: the contents of requests on queue 0.
func Seed(f *testing.F, requests ...[]byte) {
	f.Add([]byte{})
	f.Add([]byte{12, 0, 0, 1, 8, 8, 0, 10, 11, 8, 0})
	f.Add([]byte{4, 0, 0, 1, 3, 8, 0, 0, 0, 64, 0, 0, 0, 0, 5, 1, 6, 0, 0, 8, 0, 11})       // a descriptor that leads on
	f.Add([]byte{4, 0, 0, 1, 3, 8, 0, 0, 0, 64, 0, 0, 0, 0, 4, 0, 6, 0, 0, 8, 0, 10, 8, 0}) // indirect
	f.Add([]byte{7, 0, 255, 127, 0, 0, 8, 0, 0, 8, 0, 0, 0, 0})                             // an index out of range, then a reset
	f.Add([]byte{0, 5, 0, 0, 0, 0, 0, 9, 1, 0, 0, 0, 8, 0, 0, 8, 15, 0, 0, 0, 11})          // a queue taken away
	for _, r := range requests {
		n := min(len(r), 79)
		f.Add(append(append([]byte{12, 0, 1, byte(n)}, r[:n]...), 2, 60, 1, 8, 0))
		f.Add(append(append([]byte{12, 0, 1, byte(n)}, r[:n]...), 2, 60, 1, 8, 0, 11, 8, 0, 10))
	}
}
