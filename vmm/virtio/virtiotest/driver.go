package virtiotest

import (
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	"agentrun.dev/vmm/virtio"
)

// Registers, as a driver names them.
const (
	Magic, Version, DeviceID         = 0x000, 0x004, 0x008
	Features, FeaturesSel            = 0x010, 0x014
	DriverFeatures, DriverSel        = 0x020, 0x024
	QueueSel, QueueMax, QueueNum     = 0x030, 0x034, 0x038
	QueueReady, QueueNotify          = 0x044, 0x050
	InterruptStatus, InterruptACK    = 0x060, 0x064
	Status                           = 0x070
	QueueDesc, QueueAvail, QueueUsed = 0x080, 0x090, 0x0a0
	Generation, Config               = 0x0fc, 0x100
)

// Patience is how long a test waits for what must happen.
const Patience = time.Minute

// Options says how the driver behaves. The zero value takes every feature, queues as large as they may be, and 16 MiB of RAM.
type Options struct {
	RAM       *RAM
	Without   uint64 // features not to take
	QueueSize int    // at most
	Idle      bool   // don't negotiate: Up does
}

// Driver drives one device.
type Driver struct {
	T        testing.TB
	M        *virtio.MMIO
	RAM      *RAM
	Features uint64
	Queues   []*Queue

	opts   Options
	irq    chan struct{}
	faults chan error
}

// New returns a driver of dev, which it has started unless Options say otherwise. The device is closed when the test ends.
func New(t testing.TB, dev virtio.Device, o Options) *Driver {
	if o.RAM == nil {
		o.RAM = NewRAM(16 << 20)
	}
	d := &Driver{T: t, RAM: o.RAM, opts: o}
	d.attach(dev)
	if !o.Idle {
		d.Up()
	}
	return d
}

func (d *Driver) attach(dev virtio.Device) {
	irq, faults := make(chan struct{}, 1), make(chan error, 16)
	d.irq, d.faults = irq, faults
	var line atomic.Bool
	d.M = virtio.NewMMIO(dev, d.RAM, func() error {
		if line.Swap(true) {
			d.T.Error("the interrupt is raised by two at the same time: edges would be lost")
		}
		defer line.Store(false)
		select {
		case irq <- struct{}{}:
		default:
		}
		return nil
	})
	d.M.SetReport(func(err error) {
		select {
		case faults <- err:
		default:
		}
	})
	m := d.M
	d.T.Cleanup(func() {
		if err := m.Close(); err != nil {
			d.T.Errorf("close: %v", err)
		}
	})
}

// Load and Store access a register.
func (d *Driver) Load(off uint64) uint32 {
	var p [4]byte
	d.M.Read(off, p[:])
	return binary.LittleEndian.Uint32(p[:])
}

// Store writes a register.
func (d *Driver) Store(off uint64, v uint32) {
	var p [4]byte
	binary.LittleEndian.PutUint32(p[:], v)
	d.M.Write(off, p[:])
}

// Config reads n bytes of configuration.
func (d *Driver) Config(off uint64, n int) []byte {
	p := make([]byte, n)
	d.M.Read(Config+off, p)
	return p
}

// Up goes through the initialization of section 3.1.1.
func (d *Driver) Up() {
	t := d.T
	t.Helper()
	if d.Load(Magic) != 0x74726976 || d.Load(Version) != 2 {
		t.Fatal("no virtio device")
	}
	d.Store(Status, 0)
	d.Store(Status, virtio.StatusAcknowledge)
	d.Store(Status, virtio.StatusAcknowledge|virtio.StatusDriver)
	d.Features = 0
	for sel := uint32(0); sel < 2; sel++ {
		d.Store(FeaturesSel, sel)
		half := d.Load(Features) &^ uint32(d.opts.Without>>(32*sel))
		d.Store(DriverSel, sel)
		d.Store(DriverFeatures, half)
		d.Features |= uint64(half) << (32 * sel)
	}
	const ok = virtio.StatusAcknowledge | virtio.StatusDriver | virtio.StatusFeaturesOK
	d.Store(Status, ok)
	if d.Load(Status)&virtio.StatusFeaturesOK == 0 {
		t.Fatal("features refused")
	}
	d.Queues = nil
	for i := 0; ; i++ {
		d.Store(QueueSel, uint32(i))
		size := int(d.Load(QueueMax))
		if size == 0 {
			break
		}
		if d.opts.QueueSize > 0 {
			size = min(size, d.opts.QueueSize)
		}
		d.Queues = append(d.Queues, newQueue(d, i, size))
	}
	d.Store(Status, ok|virtio.StatusDriverOK)
	if s := d.Load(Status); s != ok|virtio.StatusDriverOK {
		t.Fatalf("status %#x after DRIVER_OK: %v", s, d.M.Err())
	}
}

// Fault waits for the device to report a fault and to show it.
func (d *Driver) Fault() error {
	d.T.Helper()
	select {
	case err := <-d.faults:
		if d.Load(Status)&virtio.StatusNeedsReset == 0 {
			d.T.Fatalf("no DEVICE_NEEDS_RESET after %v", err)
		}
		return err
	case <-time.After(Patience):
		d.T.Fatal("no fault")
		return nil
	}
}

// NoFault fails the test if the device has reported one.
func (d *Driver) NoFault() {
	d.T.Helper()
	select {
	case err := <-d.faults:
		d.T.Fatalf("fault: %v", err)
	default:
	}
}

// Move pauses the device and continues with another that is given its state: the same virtual machine, restored.
func (d *Driver) Move(dev virtio.Device) {
	d.T.Helper()
	old := d.M
	old.Pause()
	s, err := old.State()
	if err != nil {
		d.T.Fatal(err)
	}
	if err := old.Close(); err != nil {
		d.T.Fatal(err)
	}
	d.attach(dev)
	d.restore(s)
}

// Fork pauses the device for a moment and returns a driver of another, in a copy of the memory.
func (d *Driver) Fork(dev virtio.Device) *Driver {
	d.T.Helper()
	d.M.Pause()
	s, err := d.M.State()
	if err != nil {
		d.T.Fatal(err)
	}
	n := &Driver{T: d.T, RAM: d.RAM.Clone(), Features: d.Features, opts: d.opts}
	for _, q := range d.Queues {
		n.Queues = append(n.Queues, q.clone(n))
	}
	d.M.Resume()
	n.attach(dev)
	n.restore(s)
	return n
}

func (d *Driver) restore(s []byte) {
	d.T.Helper()
	d.M.Pause()
	if err := d.M.SetState(s); err != nil {
		d.T.Fatal(err)
	}
	d.M.Resume()
}
