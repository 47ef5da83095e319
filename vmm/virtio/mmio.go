package virtio

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"agentrun.dev/errs"
)

// Registers (section 4.2.2). All are 32 bits wide.
const (
	regMagic          = 0x000
	regVersion        = 0x004
	regDeviceID       = 0x008
	regVendorID       = 0x00c
	regFeatures       = 0x010
	regFeaturesSel    = 0x014
	regDriver         = 0x020
	regDriverSel      = 0x024
	regQueueSel       = 0x030
	regQueueMax       = 0x034
	regQueueNum       = 0x038
	regQueueReady     = 0x044
	regQueueNotify    = 0x050
	regInterrupt      = 0x060
	regInterruptACK   = 0x064
	regStatus         = 0x070
	regQueueDesc      = 0x080
	regQueueDriver    = 0x090
	regQueueDevice    = 0x0a0
	regShmLen         = 0x0b0
	regShmBase        = 0x0b8
	regGeneration     = 0x0fc
	regConfig         = 0x100
	magic             = 0x74726976
	version           = 2
	vendor            = 0x4e524741 // "AGRN"
	interruptUsed     = 1
	interruptConfig   = 2
	statusKnown       = StatusAcknowledge | StatusDriver | StatusDriverOK | StatusFeaturesOK | StatusFailed
	statusBeforeReady = StatusAcknowledge | StatusDriver | StatusFeaturesOK
)

// MMIO is a device's register window of Size bytes and the life of its driver. All methods may be called concurrently.
type MMIO struct {
	dev     Device
	mem     Memory
	dirtier Dirtier
	irq     func() error

	line       sync.Mutex // held while the interrupt is raised
	isr        atomic.Uint32
	generation atomic.Uint32

	// life is held while a driver comes or goes, and while the device is paused or resumed; mu guards the registers. life is
	// taken first, and never by workers.
	life   sync.Mutex
	paused bool
	closed bool

	mu         sync.Mutex
	report     func(error)
	err        error
	status     uint32
	offered    uint64
	driver     uint64
	offeredSel uint32
	driverSel  uint32
	sel        uint32
	regs       []queueRegs
	link       *Link
}

// queueRegs is what the driver says about a queue.
type queueRegs struct {
	max   uint16
	num   uint32
	at    place
	ready bool
}

// NewMMIO returns the transport of a device, unpaused and without a driver. irq raises the device's interrupt, as an edge: it
// is called from any goroutine, one at a time, and mustn't wait for a vCPU. The device belongs to the transport, which closes it.
func NewMMIO(dev Device, mem Memory, irq func() error) *MMIO {
	m := &MMIO{dev: dev, mem: mem, irq: irq, offered: dev.Features() | transportFeatures}
	m.dirtier, _ = mem.(Dirtier)
	for _, n := range dev.Queues() {
		if len(m.regs) == MaxQueues {
			break
		}
		m.regs = append(m.regs, queueRegs{max: min(uint16(1)<<(bits.Len16(max(n, 1))-1), MaxQueue)})
	}
	return m
}

// SetReport sets what hears of the first fault of each driver's life. It is called from any goroutine, and mustn't call the
// MMIO's methods. A hostile guest can reset and fail as often as it likes: log with a limit. Call it before the guest runs.
func (m *MMIO) SetReport(f func(error)) {
	m.mu.Lock()
	m.report = f
	m.mu.Unlock()
}

// Err returns the last fault, of the present driver or one before it.
func (m *MMIO) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// fail marks the device as in need of a reset (section 2.1.2) and tells the owner. mu isn't held.
func (m *MMIO) fail(err error) {
	m.mu.Lock()
	if m.status&StatusNeedsReset != 0 { // one report for each life
		m.mu.Unlock()
		return
	}
	m.err = err
	report, live := m.report, m.status&StatusDriverOK != 0
	m.status |= StatusNeedsReset
	m.mu.Unlock()
	if live {
		m.interrupt(interruptConfig)
	}
	if report != nil {
		report(err)
	}
}

// violate is fail for what a driver does with the registers.
func (m *MMIO) violate(format string, args ...any) {
	m.mu.Lock()
	l := m.link
	m.mu.Unlock()
	err := fault(fmt.Sprintf("device %d", m.dev.ID()), fmt.Sprintf(format, args...))
	if l != nil {
		l.Fail(err)
	} else {
		m.fail(err)
	}
}

// interrupt raises the interrupt for a reason.
func (m *MMIO) interrupt(reason uint32) {
	m.isr.Or(reason)
	// One edge after the other: of two at the same time the second could find the line high still, and be lost, although the
	// driver has answered the first.
	m.line.Lock()
	err := m.irq()
	m.line.Unlock()
	if err != nil {
		m.mu.Lock()
		l := m.link
		m.mu.Unlock()
		if l != nil {
			l.Fail(errs.New(errs.Other, "virtio", "interrupt", err))
		}
	}
}

// Read serves a vCPU's load of len(p) bytes at an offset in the window. Loads that the specification doesn't know give zeros.
func (m *MMIO) Read(off uint64, p []byte) {
	clear(p)
	switch {
	case off >= Size:
	case off >= regConfig:
		m.dev.ReadConfig(uint32(off-regConfig), p)
	case len(p) == 4:
		binary.LittleEndian.PutUint32(p, m.load(off))
	}
}

func (m *MMIO) load(off uint64) uint32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch off {
	case regMagic:
		return magic
	case regVersion:
		return version
	case regDeviceID:
		return m.dev.ID()
	case regVendorID:
		return vendor
	case regFeatures:
		return half(m.offered, m.offeredSel)
	case regQueueMax:
		if q := m.selected(); q != nil {
			return uint32(q.max)
		}
	case regQueueReady:
		if q := m.selected(); q != nil && q.ready {
			return 1
		}
	case regInterrupt:
		return m.isr.Load()
	case regStatus:
		return m.status
	case regShmLen, regShmLen + 4, regShmBase, regShmBase + 4:
		return ^uint32(0) // there is no shared memory region
	case regGeneration:
		return m.generation.Load()
	}
	return 0
}

// half returns one half of a feature set; those beyond the second are empty.
func half(features uint64, sel uint32) uint32 {
	if sel > 1 {
		return 0
	}
	return uint32(features >> (32 * sel))
}

// selected returns the registers of the selected queue; nil if there is no such queue. mu is held.
func (m *MMIO) selected() *queueRegs {
	if int64(m.sel) >= int64(len(m.regs)) {
		return nil
	}
	return &m.regs[m.sel]
}

// Write serves a vCPU's store. Only a store to Status or QueueReady may take long: it waits for what the device is doing.
func (m *MMIO) Write(off uint64, p []byte) {
	switch {
	case off >= Size:
	case off >= regConfig:
		m.dev.WriteConfig(uint32(off-regConfig), p)
	case len(p) == 4:
		m.store(off, binary.LittleEndian.Uint32(p))
	}
}

func (m *MMIO) store(off uint64, v uint32) {
	switch off {
	case regQueueNotify:
		m.Notify(v)
	case regInterruptACK:
		m.isr.And(^v)
	case regStatus:
		m.setStatus(v)
	case regQueueReady:
		m.setReady(v)
	case regQueueNum, regQueueDesc, regQueueDesc + 4, regQueueDriver, regQueueDriver + 4, regQueueDevice, regQueueDevice + 4:
		m.setQueue(off, v)
	case regDriver:
		m.setDriver(v)
	case regFeaturesSel, regDriverSel, regQueueSel:
		m.mu.Lock()
		defer m.mu.Unlock()
		switch off {
		case regFeaturesSel:
			m.offeredSel = v
		case regDriverSel:
			m.driverSel = v
		default:
			m.sel = v
		}
	}
}

// Notify is a store to QueueNotify, for those who get it another way, as by an ioeventfd.
func (m *MMIO) Notify(queue uint32) {
	m.mu.Lock()
	l := m.link
	m.mu.Unlock()
	if l != nil && int64(queue) < int64(len(l.queues)) {
		l.Kick(int(queue))
	}
}

func (m *MMIO) setDriver(v uint32) {
	m.mu.Lock()
	late := m.status&StatusFeaturesOK != 0
	if !late && m.driverSel <= 1 {
		shift := 32 * m.driverSel
		m.driver = m.driver&^(0xffffffff<<shift) | uint64(v)<<shift
	}
	m.mu.Unlock()
	if late {
		m.violate("features written after FEATURES_OK")
	}
}

// setQueue stores the size and the addresses of a queue that isn't ready.
func (m *MMIO) setQueue(off uint64, v uint32) {
	m.mu.Lock()
	q := m.selected()
	if q == nil {
		m.mu.Unlock()
		return
	}
	ready := q.ready
	if !ready {
		put := func(addr *uint64, high bool) {
			if high {
				*addr = *addr&0xffffffff | uint64(v)<<32
			} else {
				*addr = *addr&^0xffffffff | uint64(v)
			}
		}
		switch off &^ 4 {
		case regQueueNum:
			q.num = v
		case regQueueDesc:
			put(&q.at.Desc, off&4 != 0)
		case regQueueDriver:
			put(&q.at.Driver, off&4 != 0)
		case regQueueDevice:
			put(&q.at.Device, off&4 != 0)
		}
	}
	sel := m.sel
	m.mu.Unlock()
	if ready {
		m.violate("queue %d changed while it is ready", sel)
	}
}

// setReady makes a queue ready, or stops it and waits until it is (section 4.2.2.2).
func (m *MMIO) setReady(v uint32) {
	m.life.Lock()
	defer m.life.Unlock()
	m.mu.Lock()
	q, l, sel := m.selected(), m.link, m.sel
	if q == nil || q.ready == (v&1 != 0) {
		m.mu.Unlock()
		return
	}
	if q.ready {
		q.ready = false
		m.mu.Unlock()
		if l != nil {
			m.stopQueue(l, int(sel))
		}
		return
	}
	want, size, status := *q, q.num, m.status
	m.mu.Unlock()
	switch {
	case status&(StatusDriverOK|StatusFeaturesOK) != StatusFeaturesOK:
		m.violate("queue %d made ready with status %#x", sel, status)
	case size == 0 || size > uint32(want.max) || size&(size-1) != 0:
		m.violate("queue %d of size %d", sel, size)
	default:
		if _, _, _, err := windows(m.mem, uint16(size), want.at); err != nil {
			m.violate("queue %d: %v", sel, err)
			return
		}
		m.mu.Lock()
		q.ready = q.at == want.at && q.num == size // another vCPU may be at the registers too
		m.mu.Unlock()
	}
}

// stopQueue waits until a queue of a live link isn't used any more. life is held.
func (m *MMIO) stopQueue(l *Link, i int) {
	if q := l.Queue(i); q != nil {
		l.pause()
		q.stopped.Store(true)
		if !m.paused {
			l.resume()
		}
	}
}

// setStatus is the status machine (sections 2.1 and 3.1.1).
func (m *MMIO) setStatus(v uint32) {
	m.life.Lock()
	defer m.life.Unlock()
	if m.closed {
		return
	}
	if v == 0 {
		m.reset()
		return
	}
	m.mu.Lock()
	old := m.status
	v &= statusKnown
	var wrong string
	switch {
	case v&old != old&statusKnown:
		wrong = "status bits taken back"
	case v&^old&StatusFeaturesOK != 0 && v&(StatusAcknowledge|StatusDriver) != StatusAcknowledge|StatusDriver:
		wrong = "FEATURES_OK without a driver"
	case v&^old&StatusDriverOK != 0 && old&statusBeforeReady != statusBeforeReady:
		wrong = "DRIVER_OK before FEATURES_OK"
	}
	if wrong != "" {
		m.mu.Unlock()
		m.violate("%s: %#x after %#x", wrong, v, old)
		return
	}
	if v&^old&StatusFeaturesOK != 0 && (m.driver&^m.offered != 0 || m.driver>>FeatureVersion1&1 == 0) {
		v &^= StatusFeaturesOK // the driver sees that it isn't there, and gives up
	}
	m.status |= v
	start := v&^old&StatusDriverOK != 0 && old&(StatusFailed|StatusNeedsReset) == 0
	l := m.link
	m.mu.Unlock()
	switch {
	case start:
		m.start(func(*Link) error { return nil })
	case v&^old&StatusFailed != 0 && l != nil:
		l.broken.Store(true)
	}
}

// start begins the life of a driver; restore puts its queues where they were. life is held.
func (m *MMIO) start(restore func(*Link) error) {
	m.mu.Lock()
	l := newLink(m, m.driver)
	for i, r := range m.regs {
		if r.ready {
			l.queues[i] = newQueue(l, i, uint16(r.num), r.at)
		}
	}
	m.link = l
	m.mu.Unlock()
	if m.paused {
		l.pause()
	}
	err := restore(l)
	if err == nil {
		err = l.mapRings()
	}
	if err == nil {
		err = m.dev.Start(l)
	}
	if err != nil {
		l.Fail(err)
	}
	l.start()
}

// mapRings finds the rings of all queues.
func (l *Link) mapRings() error {
	for _, q := range l.queues {
		if q != nil {
			if err := q.mapRings(); err != nil {
				return err
			}
		}
	}
	return nil
}

// reset ends the driver's life and returns the registers to their first state. life is held.
func (m *MMIO) reset() {
	m.mu.Lock()
	l := m.link
	m.mu.Unlock()
	if l != nil {
		l.stop()
		m.dev.Reset()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.link, m.status, m.driver = nil, 0, 0
	m.offeredSel, m.driverSel, m.sel = 0, 0, 0
	m.isr.Store(0)
	for i := range m.regs {
		m.regs[i] = queueRegs{max: m.regs[i].max}
	}
}

// Pause returns when the device is at rest: no queue is being worked on, and no chain is with the device. What the driver
// announces meanwhile waits for Resume. Registers can still be read and written, so the vCPUs should be paused first.
func (m *MMIO) Pause() {
	m.life.Lock()
	defer m.life.Unlock()
	if !m.paused {
		m.paused = true
		if m.link != nil {
			m.link.pause()
		}
	}
}

// Resume ends a pause. An interrupt that the driver hasn't acknowledged is raised again: it may have been lost with an
// interrupt controller that wasn't saved.
func (m *MMIO) Resume() {
	m.life.Lock()
	defer m.life.Unlock()
	if !m.paused || m.closed {
		return
	}
	m.paused = false
	if l := m.link; l != nil {
		if err := l.mapRings(); err != nil {
			l.Fail(err)
		}
		l.resume()
		if m.isr.Load() != 0 {
			m.interrupt(0)
		}
	}
}

// Close ends the driver's life and closes the device.
func (m *MMIO) Close() error {
	m.life.Lock()
	defer m.life.Unlock()
	if m.closed {
		return nil
	}
	m.reset()
	m.closed = true
	return m.dev.Close()
}
