// Package virtio puts device models before a guest, as virtio 1.2 describes: the MMIO transport (section 4.2, version 2),
// feature negotiation and the status machine (2.1, 2.2, 3.1), and split virtqueues with indirect descriptors and event
// indexes (2.7). Each folder beneath holds one Device.
//
// A driver is the guest's side, a device ours. A queue is a ring in guest memory through which the driver makes buffers
// available and the device gives them back used. A chain is one request: buffers that the device may read, then buffers
// that it may write. A Link is one life of a driver, from DRIVER_OK to the reset.
//
// Everything that the guest gives is hostile. It writes to its memory while we read it, so that everything is copied
// before it is checked. What a correct driver can't do (an address outside its memory, a chain that loops or is too long,
// a queue changed while it runs, registers in the wrong order) is a fault: the device stops touching the guest's memory,
// shows DEVICE_NEEDS_RESET, and the owner is told. It works again after the driver has reset it.
package virtio

import "context"

// Memory is guest memory. Bytes returns a window on n bytes from a guest physical address: the memory itself, which the
// guest changes at will, valid for as long as the virtual machine. What isn't wholly inside one region of RAM is an error.
type Memory interface {
	Bytes(addr, n uint64) ([]byte, error)
}

// Dirtier is implemented by a Memory that wants to hear what the devices wrote: KVM's dirty log shows only what the guest
// wrote itself. The range is always inside a window that Bytes gave.
type Dirtier interface {
	Dirty(addr, n uint64)
}

// Device is a model behind a transport. The transport calls Start, Reset, State, SetState and Close one at a time; Handle
// runs on one goroutine per queue, and the configuration is read and written meanwhile.
type Device interface {
	// ID is the device type of section 5, such as 2 for a block device.
	ID() uint32
	// Features are the device's own feature bits; the transport adds those of rings and version.
	Features() uint64
	// Queues holds the largest size of each queue, powers of two up to MaxQueue.
	Queues() []uint16
	// ReadConfig fills p, which is zeroed, with the configuration space from off; what lies outside stays zero.
	ReadConfig(off uint32, p []byte)
	// WriteConfig is the driver's write to the configuration space; what isn't writable is ignored.
	WriteConfig(off uint32, p []byte)
	// Start says that the driver is ready, or that a restored one is. An error is a fault.
	Start(l *Link) error
	// Handle takes chains from a queue until Pop has none, or until there is nothing to put into them. It is called when the
	// driver, or the device itself by Link.Kick, has announced something, and again after a pause. ctx ends when the queue
	// is to be drained: what may wait for long must give up then (see Chain.Return). An error is a fault.
	Handle(ctx context.Context, q *Queue) error
	// Reset forgets the driver; the Link is dead. No Handle runs, and no chain is held.
	Reset()
	// State and SetState carry over what a restored device needs beyond its queues, between Pause and Resume.
	State() ([]byte, error)
	SetState(state []byte) error
	// Close releases what the device holds on the host. Nothing is called afterwards.
	Close() error
}

// Device types (section 5).
const (
	IDNet     = 1
	IDBlock   = 2
	IDConsole = 3
	IDEntropy = 4
	IDBalloon = 5
	IDVsock   = 19
	IDFS      = 26
)

// Feature bits of every device (section 6).
const (
	FeatureIndirect = 28 // VIRTIO_F_INDIRECT_DESC
	FeatureEventIdx = 29 // VIRTIO_F_EVENT_IDX
	FeatureVersion1 = 32 // VIRTIO_F_VERSION_1
)

const transportFeatures = 1<<FeatureIndirect | 1<<FeatureEventIdx | 1<<FeatureVersion1

// Bits of the status register (section 2.1).
const (
	StatusAcknowledge = 1
	StatusDriver      = 2
	StatusDriverOK    = 4
	StatusFeaturesOK  = 8
	StatusNeedsReset  = 64
	StatusFailed      = 128
)

// Limits on what a driver may ask for; exceeding one is a fault.
const (
	MaxQueues = 64       // queues of a device
	MaxQueue  = 1024     // entries of a queue
	MaxChain  = 1024     // descriptors in a chain, whatever the queue's size
	MaxBytes  = 64 << 20 // bytes in a chain
)

// Size is the length of the MMIO window: registers below 0x100, then the configuration space.
const Size = 0x1000

// Config serves ReadConfig from an encoded configuration space.
func Config(space []byte, off uint32, p []byte) {
	if uint64(off) < uint64(len(space)) {
		copy(p, space[off:])
	}
}
