package vmm_test

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/vmm"
	"agentrun.dev/vmm/kvm"
	"agentrun.dev/vmm/vmmtest"
)

const mib = 1 << 20

// boot starts a puppet.
func boot(t *testing.T, h *vmm.Host, config vmm.Config) (*vmm.VM, *vmmtest.Puppet) {
	t.Helper()
	v, err := h.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	p, err := vmmtest.Attach(v)
	if err == nil {
		err = v.Boot(vmmtest.Load)
	}
	if err == nil {
		err = v.Resume()
	}
	if err != nil {
		t.Fatal(err)
	}
	return v, p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wait is Wait with a limit.
func wait(t *testing.T, v *vmm.VM) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := v.Wait(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		t.Fatal("the guest doesn't end")
	}
	return err
}

func TestRun(t *testing.T) {
	for _, config := range []vmm.Config{{Memory: 4 * mib}, {Memory: 4 * mib, Bare: true}, {Memory: 4 * mib, PIT: true}} {
		v, p := boot(t, vmmtest.Host(t), config)
		must(t, p.Write(vmmtest.Free+4, 0xcafe))
		got, err := p.Read(vmmtest.Free + 4)
		must(t, err)
		b, err := v.Memory().Bytes(vmmtest.Free+4, 4)
		must(t, err)
		if got != 0xcafe || binary.LittleEndian.Uint32(b) != 0xcafe {
			t.Errorf("the guest reads %#x, the host %x", got, b)
		}
		if config.Bare {
			must(t, p.Halt())
			must(t, wait(t, v))
			if e := v.Exit(); e == nil || e.Reason != vmm.Halt {
				t.Errorf("exit: %v", e)
			}
		}
	}
}

// counter reads both halves of the counting loop of a paused VM.
func counter(t *testing.T, v *vmm.VM) (reg, mem uint64) {
	t.Helper()
	r, err := v.Regs(0)
	must(t, err)
	b, err := v.Memory().Bytes(vmmtest.Counter, 8)
	must(t, err)
	return r.R8, binary.LittleEndian.Uint64(b)
}

// counting waits until the guest counts.
func counting(t *testing.T, v *vmm.VM, above uint64) {
	t.Helper()
	b, err := v.Memory().Bytes(vmmtest.Counter, 8)
	must(t, err)
	until(t, "the guest counts", func() bool { return binary.LittleEndian.Uint64(b) > above })
}

// A paused guest stands between two instructions, and goes on from there.
func TestPause(t *testing.T) {
	v, p := boot(t, vmmtest.Host(t), vmm.Config{Memory: 4 * mib})
	must(t, p.Count())
	last := uint64(0)
	for range 50 {
		counting(t, v, last)
		must(t, v.Pause())
		reg, mem := counter(t, v)
		if reg != mem && reg != mem+1 {
			t.Fatalf("register %d, memory %d", reg, mem)
		}
		time.Sleep(time.Millisecond)
		if reg2, mem2 := counter(t, v); reg2 != reg || mem2 != mem {
			t.Fatal("a paused guest goes on")
		}
		if mem < last {
			t.Fatalf("it counted back from %d to %d", last, mem)
		}
		last = mem
		must(t, v.Resume())
	}
	if err := v.Resume(); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("resuming a running VM: %v", err)
	}
	must(t, v.Close())
	must(t, v.Close())
	if err := v.Pause(); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("pausing a closed VM: %v", err)
	}
	if err := wait(t, v); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("waiting for a closed VM: %v", err)
	}
}

// register is a device that keeps eight bytes and notes whether it is paused.
type register struct {
	bytes  [8]byte
	paused bool
	closed bool
	irq    func() error
}

func (d *register) Read(off uint64, p []byte) {
	if off < 8 {
		copy(p, d.bytes[off:])
	}
}
func (d *register) Write(off uint64, p []byte) {
	if off < 8 {
		copy(d.bytes[off:], p)
	}
}
func (d *register) Pause()                  { d.paused = true }
func (d *register) Resume()                 { d.paused = false }
func (d *register) State() ([]byte, error)  { return append([]byte(nil), d.bytes[:]...), nil }
func (d *register) SetState(b []byte) error { copy(d.bytes[:], b); return nil }
func (d *register) Close() error            { d.closed = true; return nil }
func attach(t *testing.T, v *vmm.VM) *register {
	t.Helper()
	d := &register{}
	must(t, v.Attach(func(s vmm.Slot) (vmm.Device, error) { d.irq = s.Interrupt; return d, nil }))
	return d
}

func TestBus(t *testing.T) {
	h := vmmtest.Host(t)
	v, err := h.New(vmm.Config{Memory: 4 * mib})
	must(t, err)
	defer v.Close()
	a, b := attach(t, v), attach(t, v)
	p, err := vmmtest.Attach(v)
	must(t, err)
	if _, err := vmmtest.Attach(v); errs.KindOf(err) != errs.Conflict {
		t.Errorf("two handlers for a port: %v", err)
	}
	must(t, v.Boot(vmmtest.Load))
	if !a.paused {
		t.Error("a device of a paused VM isn't")
	}
	must(t, v.Resume())
	must(t, p.Write(vmm.DeviceBase+4, 1))
	must(t, p.Write(vmm.DeviceBase+vmm.DeviceSize, 2))
	for addr, want := range map[uint32]uint32{vmm.DeviceBase + 4: 1, vmm.DeviceBase + vmm.DeviceSize: 2,
		vmm.DeviceBase + 2*vmm.DeviceSize: 0xffffffff, 4 * mib: 0xffffffff} {
		if got, err := p.Read(addr); err != nil || got != want {
			t.Errorf("at %#x the guest reads %#x, %v; want %#x", addr, got, err, want)
		}
	}
	if a.bytes[4] != 1 || b.bytes[0] != 2 || a.paused {
		t.Errorf("devices: %+v %+v", a, b)
	}
	must(t, a.irq())
	if err := v.Attach(nil); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("attaching to a running VM: %v", err)
	}
	must(t, v.Close())
	if !a.closed || !b.closed {
		t.Error("a device wasn't closed")
	}
}

// real boots a VM in real mode on a few bytes at 0x1000.
func real(t *testing.T, h *vmm.Host, config vmm.Config, code ...byte) *vmm.VM {
	t.Helper()
	config.Memory = mib
	v, err := h.New(config)
	must(t, err)
	t.Cleanup(func() { v.Close() })
	must(t, v.Boot(func(v *vmm.VM) (vmm.Entry, error) {
		b, err := v.Memory().Bytes(0x1000, uint64(len(code)))
		copy(b, code)
		return vmm.Entry{Regs: kvm.Regs{RIP: 0x1000, RFlags: 2}, Sregs: func(s *kvm.Sregs) { s.CS.Base, s.CS.Selector = 0, 0 }}, err
	}))
	must(t, v.Resume())
	return v
}

// print is code that writes a text to the console.
func print(text string) (code []byte) {
	code = append(code, 0xba, 0xf8, 0x03) // mov dx, 0x3f8
	for _, c := range []byte(text) {
		code = append(code, 0xb0, c, 0xee) // mov al, c; out dx, al
	}
	return code
}

// out is code that writes a byte to a port.
func out(port uint16, b byte) []byte {
	return []byte{0xba, byte(port), byte(port >> 8), 0xb0, b, 0xee, 0xeb, 0xfe}
}

// Every end of a guest is told from the others, with what it said last.
func TestEnds(t *testing.T) {
	h := vmmtest.Host(t)
	panics := print("\r\nKernel panic - not syncing: no init\r\nrebooting\r\n")
	for name, c := range map[string]struct {
		code []byte
		want vmm.Reason
		text string
	}{
		"off":              {out(0x600, 0x34), vmm.Shutdown, ""},
		"reset":            {out(0x604, 1), vmm.Reset, "by ACPI"},
		"keyboard reset":   {out(0x64, 0xfe), vmm.Reset, "by the keyboard controller"},
		"pvpanic":          {append(print("oops\n"), out(0x505, 1)...), vmm.Panic, "oops"},
		"panic, reset":     {append(panics, out(0x64, 0xfe)...), vmm.Panic, "Kernel panic - not syncing: no init"},
		"said before":      {append(print("hello\n"), out(0x604, 1)...), vmm.Reset, "hello"},
		"nobody is there":  {append([]byte{0xba, 0x99, 0x09, 0xec, 0x3c, 0xff, 0x75, 0xfe}, out(0x600, 0x34)...), vmm.Shutdown, ""},
		"no such sleep":    {append([]byte{0xba, 0x00, 0x06, 0xb0, 0x20, 0xee}, out(0x600, 0x34)...), vmm.Shutdown, ""},
		"unknown commands": {append([]byte{0xba, 0x64, 0x00, 0xb0, 0xd1, 0xee, 0xec}, out(0x600, 0x34)...), vmm.Shutdown, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := real(t, h, vmm.Config{}, c.code...)
			err := wait(t, v)
			e := v.Exit()
			if e == nil || e.Reason != c.want {
				t.Fatalf("exit: %v, %v", e, err)
			}
			var as *vmm.Exit
			if clean := c.want == vmm.Shutdown; clean != (err == nil) || !clean && !errors.As(err, &as) {
				t.Errorf("wait: %v", err)
			}
			if !strings.Contains(e.Error(), c.text) {
				t.Errorf("%q doesn't say %q", e, c.text)
			}
			if err := v.Pause(); errs.KindOf(err) != errs.Unavailable || !errors.As(err, &as) {
				t.Errorf("pausing an ended VM: %v", err)
			}
		})
	}
}

// An exception that can't be delivered, in 64-bit mode without descriptor tables.
func TestTripleFault(t *testing.T) {
	v, err := vmmtest.Host(t).New(vmm.Config{Memory: mib})
	must(t, err)
	defer v.Close()
	must(t, v.Boot(func(v *vmm.VM) (vmm.Entry, error) {
		e, err := vmmtest.Load(v)
		if err != nil {
			return e, err
		}
		e.Regs.RIP = vmmtest.Stack
		b, err := v.Memory().Bytes(vmmtest.Stack, 2)
		copy(b, []byte{0x0f, 0x0b}) // ud2
		return e, err
	}))
	must(t, v.Resume())
	err = wait(t, v)
	var exit *vmm.Exit
	if !errors.As(err, &exit) || exit.Reason != vmm.TripleFault || exit.RIP != vmmtest.Stack {
		t.Fatal(err)
	}
}

// The console's end is kept, and no more.
func TestTail(t *testing.T) {
	var all strings.Builder
	v := real(t, vmmtest.Host(t), vmm.Config{Tail: 10, Console: &all}, append(print("0123456789abcdef"), out(0x600, 0x34)...)...)
	must(t, wait(t, v))
	if got := string(v.Tail()); got != "6789abcdef" {
		t.Errorf("tail %q", got)
	}
	if all.String() != "0123456789abcdef" {
		t.Errorf("all %q", all.String())
	}
}

// What is typed is read once, through the chip's registers.
func TestInput(t *testing.T) {
	loop := []byte{ // wait for data, read it, write it back until it is 'q'
		0xba, 0xfd, 0x03, 0xec, 0xa8, 0x01, 0x74, 0xf8, // l: mov dx,0x3fd; in al,dx; test al,1; jz l
		0xba, 0xf8, 0x03, 0xec, 0xee, 0x3c, 'q', 0x75, 0xef, // mov dx,0x3f8; in al,dx; out dx,al; cmp al,'q'; jne l
	}
	v := real(t, vmmtest.Host(t), vmm.Config{}, append(loop, out(0x600, 0x34)...)...)
	n, err := v.Input([]byte("abcq"))
	if n != 4 || err != nil {
		t.Fatal(n, err)
	}
	must(t, wait(t, v))
	if got := string(v.Tail()); got != "abcq" {
		t.Errorf("it echoed %q", got)
	}
	if n, err := v.Input(make([]byte, 1<<20)); errs.KindOf(err) != errs.Limit || n >= 1<<20 {
		t.Errorf("too much input: %d, %v", n, err)
	}
}

// until waits for a condition, a minute at most.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in a minute: %s", what)
		}
	}
}

// secondCounter is where the second vCPU of loadSMP counts.
const secondCounter = 0xd00

// loadSMP is the puppet with code for a second vCPU.
func loadSMP(v *vmm.VM) (vmm.Entry, error) {
	e, err := vmmtest.Load(v)
	if err != nil {
		return e, err
	}
	b, err := v.Memory().Bytes(0xc000, 16) // l: inc dword [0xd00]; jmp l
	copy(b, []byte{0x66, 0xff, 0x06, 0x00, 0x0d, 0xeb, 0xf9})
	return e, err
}

// startSecond has the puppet start the second vCPU, as a kernel does.
func startSecond(t *testing.T, p *vmmtest.Puppet) {
	t.Helper()
	const icr = 0xfee00300
	must(t, p.Write(0xfee000f0, 0x1ff)) // enable the APIC
	must(t, p.Write(icr+0x10, 1<<24))
	must(t, p.Write(icr, 0x4500)) // INIT
	must(t, p.Write(icr+0x10, 1<<24))
	must(t, p.Write(icr, 0x460c)) // start at 0xc000
}

// Several vCPUs: the first starts the second by its APIC, both count, both stop.
func TestSMP(t *testing.T) {
	h := vmmtest.Host(t)
	v, err := h.New(vmm.Config{Memory: 4 * mib, VCPUs: 2})
	must(t, err)
	defer v.Close()
	p, err := vmmtest.Attach(v)
	must(t, err)
	must(t, v.Boot(loadSMP))
	must(t, v.Resume())
	startSecond(t, p)
	if id, err := p.Read(0xfee00020); err != nil || id != 0 {
		t.Errorf("the first vCPU's id: %#x, %v", id, err)
	}
	b, err := v.Memory().Bytes(secondCounter, 4)
	must(t, err)
	until(t, "the second vCPU runs", func() bool { return binary.LittleEndian.Uint32(b) >= 100 })
	for range 20 {
		must(t, v.Pause())
		n := binary.LittleEndian.Uint32(b)
		time.Sleep(time.Millisecond)
		if binary.LittleEndian.Uint32(b) != n {
			t.Fatal("the second vCPU runs on")
		}
		must(t, v.Resume())
	}
}

func TestConfig(t *testing.T) {
	h := vmmtest.Host(t)
	for _, c := range []vmm.Config{{}, {Memory: 100}, {Memory: mib, VCPUs: -1}, {Memory: mib, VCPUs: 1000}, {Memory: mib, VCPUs: 2, Bare: true},
		{Memory: mib, Tail: -1}, {Memory: 1 << 60}} {
		if v, err := h.New(c); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%+v: %v", c, err)
			if v != nil {
				v.Close()
			}
		}
	}
}
