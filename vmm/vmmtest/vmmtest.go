// Package vmmtest has a guest of a hundred bytes that does what a test tells it, so that a VM can be tested on any KVM,
// also where a kernel would take too long to boot.
//
// The puppet asks for orders on a port, in 64-bit mode with all guest addresses below 4 GiB mapped as they are. Its
// source is puppet.s.txt.
package vmmtest

import (
	"encoding/binary"
	"encoding/hex"
	"sync"
	"testing"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/vmm"
	"agentrun.dev/vmm/kvm"
)

// Where things are in the puppet's memory. Pages from Free on are the test's.
const (
	tables  = 0x1000
	code    = 0x8000
	Counter = 0xa000 // what Count counts
	Stack   = 0xb000
	Free    = 0x10000
)

// Ports of the puppet, from PortFirst to PortLast.
const (
	portOrder  = 0x510
	portAddr   = 0x514
	portValue  = 0x518
	portResult = 0x51c
	PortFirst  = portOrder
	PortLast   = portResult + 3
)

// Orders.
const (
	orderNone = iota
	orderWrite
	orderRead
	orderCount
	orderTouch
	orderHalt
)

const program = "ba10050000ed83f801741583f802742283f803744e83f804742a83f80575e1f4ba14050000ed89c3ba18050000ed8903ebceba14050000ed89c3" +
	"8b03ba1c050000efebbcba14050000ed89c3ba18050000ed89c1890b4881c300100000ffc975f3eb9d49ffc04c89042500a00000ebf3"

// Host opens /dev/kvm, or skips the test and says where it runs.
func Host(t testing.TB) *vmm.Host {
	t.Helper()
	h, err := vmm.NewHost()
	switch errs.KindOf(err) {
	case errs.NotFound, errs.Denied, errs.Unsupported:
		if err != nil {
			t.Skipf("NOT TESTED HERE: %v (%s); the bench runs it: go test ./test/vm", err, errs.HintOf(err))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// Load writes the puppet into a VM's RAM, of which it takes 64 KiB: what VM.Boot is called with.
func Load(v *vmm.VM) (vmm.Entry, error) {
	mem, err := v.Memory().Bytes(0, Free)
	if err != nil {
		return vmm.Entry{}, err
	}
	put := func(at int, e uint64) { binary.LittleEndian.PutUint64(mem[at:], e) }
	const present, large = 3, 0x83
	put(tables, tables+0x1000|present)
	for g := range 4 {
		put(tables+0x1000+8*g, uint64(tables+0x2000+g*0x1000)|present)
		for i := range 512 {
			put(tables+0x2000+g*0x1000+8*i, uint64(g<<30+i<<21)|large)
		}
	}
	bytes, err := hex.DecodeString(program)
	if err != nil {
		return vmm.Entry{}, err
	}
	copy(mem[code:], bytes)
	return vmm.Entry{Regs: kvm.Regs{RIP: code, RSP: Stack, RFlags: 2}, Sregs: LongMode}, nil
}

// LongMode makes registers those of the puppet: 64-bit mode with its page tables.
func LongMode(r *kvm.Sregs) {
	seg := kvm.Segment{Limit: 0xffffffff, Selector: 8, Present: 1, Type: 11, S: 1, L: 1, G: 1}
	r.CS = seg
	seg.Type, seg.Selector, seg.L, seg.DB = 3, 16, 0, 1
	r.DS, r.ES, r.FS, r.GS, r.SS = seg, seg, seg, seg, seg
	r.CR3, r.CR4, r.CR0, r.EFER = tables, 0x20, 0x80050033, 0x500
}

// Puppet gives orders to the guest of one VM. Its methods wait until they are done, for a minute at most.
type Puppet struct {
	mu      sync.Mutex
	order   uint32
	addr    uint32
	value   uint32
	taken   bool
	orders  chan [3]uint32
	results chan uint32
}

// Attach puts the puppet's ports into a VM, before it boots or is restored.
func Attach(v *vmm.VM) (*Puppet, error) {
	p := &Puppet{orders: make(chan [3]uint32, 1), results: make(chan uint32, 1)}
	return p, v.AttachPorts(PortFirst, PortLast, p.access)
}

// access is the guest's side.
func (p *Puppet) access(off uint16, b []byte, out bool) {
	if len(b) != 4 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case out:
		p.results <- binary.LittleEndian.Uint32(b)
	case off == portOrder-PortFirst:
		if p.taken && p.order != orderRead {
			p.results <- 0 // it asks for the next, so the last is done
		}
		p.taken, p.order = false, orderNone
		select {
		case o := <-p.orders:
			p.taken, p.order, p.addr, p.value = true, o[0], o[1], o[2]
		case <-time.After(2 * time.Millisecond):
		}
		binary.LittleEndian.PutUint32(b, p.order)
	case off == portAddr-PortFirst:
		binary.LittleEndian.PutUint32(b, p.addr)
	case off == portValue-PortFirst:
		binary.LittleEndian.PutUint32(b, p.value)
	}
}

const limit = time.Minute

func (p *Puppet) do(order, addr, value uint32, answers bool) (uint32, error) {
	late := time.After(limit)
	select {
	case p.orders <- [3]uint32{order, addr, value}:
	case <-late:
		return 0, errs.Msg(errs.Unavailable, "puppet", "order", "the guest asks for none")
	}
	if !answers {
		return 0, nil
	}
	select {
	case v := <-p.results:
		return v, nil
	case <-late:
		return 0, errs.Msg(errs.Unavailable, "puppet", "order", "the guest doesn't answer")
	}
}

// Write has the guest write four bytes.
func (p *Puppet) Write(addr, value uint32) error {
	_, err := p.do(orderWrite, addr, value, true)
	return err
}

// Read has the guest read four bytes.
func (p *Puppet) Read(addr uint32) (uint32, error) { return p.do(orderRead, addr, 0, true) }

// Touch has the guest write to pages.
func (p *Puppet) Touch(addr, pages uint32) error {
	_, err := p.do(orderTouch, addr, pages, true)
	return err
}

// Count has the guest count in R8 and at Counter, for ever.
func (p *Puppet) Count() error {
	_, err := p.do(orderCount, 0, 0, false)
	return err
}

// Halt has the guest halt.
func (p *Puppet) Halt() error {
	_, err := p.do(orderHalt, 0, 0, false)
	return err
}
