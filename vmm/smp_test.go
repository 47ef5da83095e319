package vmm_test

import (
	"encoding/binary"
	"encoding/hex"
	"os"
	"strconv"
	"testing"
	"time"

	"agentrun.dev/vmm"
	"agentrun.dev/vmm/kvm"
	"agentrun.dev/vmm/vmmtest"
)

// timers is code for two vCPUs at 0xc000, which live by interrupts: each has a timer that it arms anew when it fires, and each answers
// the other's interrupt by one of its own; between them they halt. Its source is timers.s.txt.
const timers = "fa31c08ed8660f0116f0c066b8200000000f22e066b8001000000f22d866b9800000c066b8000100006631d20f3066b8330005800f22c066ea00c10000080000000000000000" +
	"00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000" +
	"00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000" +
	"000000000000ffff0000009baf00ffff00000093cf0000000000000000001700d0c0000000000000000000000000b8100000008ed88ec08ed0bc00bf000041bf01000000e937" +
	"01000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000" +
	"00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000" +
	"00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000" +
	"00000000000000000000000000000000000000000000bc00bd00000f01154d0100004531ffbb0000e0fec783f0000000ff010000c7831003000000000001c783000300000045" +
	"0000c7831003000000000001c783000300000c460000f390833c25300d00000074f40f011d0a010000bb0000e0fec783f0000000ff010000c783e00300000b0000008b042520" +
	"0d0000c1e01283c8418983200300000faef0e8240000004585ff7514c7831003000000000001c7830003000040400000ff0425300d0000fbf4ebfc833c25200d000000750e8b" +
	"0425280d0000898380030000c30f3148c1e22089c04809d08b0c25280d00004801c84889c248c1ea20b9e00600000f30c30f3148c1e22089c04809d04a3b04fd400d00007307" +
	"ff0425340d00004a8904fd400d000042ff04bd000d0000e893ffffffc783b00000000000000048cf42ff04bd080d0000c783b000000000000000b8010000004429f8c1e01889" +
	"8310030000c783000300004040000048cf1700d0c00000000000001f0400e0"

// Where it begins, its interrupts' handlers, and where it keeps its numbers: how often the timers of both vCPUs have fired and how
// often each was interrupted by the other; whether timers are deadlines and how many ticks they take; whether a vCPU's time stamp counter
// went back.
const (
	timersStart    = 0xc200
	timersIPI      = 0xc32a
	timersTimer    = 0xc2ed
	timersCounters = 0xd00
	timersKind     = 0xd20
	timersBack     = 0xd34
)

// loadTimers is the puppet's memory with that code.
func loadTimers(deadlines bool, ticks uint32) func(v *vmm.VM) (vmm.Entry, error) {
	return func(v *vmm.VM) (vmm.Entry, error) {
		e, err := vmmtest.Load(v)
		if err != nil {
			return e, err
		}
		program, err := hex.DecodeString(timers)
		if err != nil {
			return e, err
		}
		b, err := v.Memory().Bytes(0xc000, 0x3000)
		if err != nil {
			return e, err
		}
		copy(b, program)
		for vector, at := range map[int]uint16{0x40: timersIPI, 0x41: timersTimer} {
			gate := b[0x2000+16*vector:] // the table is at 0xe000
			binary.LittleEndian.PutUint16(gate, at)
			binary.LittleEndian.PutUint16(gate[2:], 8)
			gate[5] = 0x8e
		}
		if b, err = v.Memory().Bytes(timersKind, 12); err != nil {
			return e, err
		}
		if deadlines {
			b[0] = 1
		}
		binary.LittleEndian.PutUint32(b[8:], ticks)
		return vmm.Entry{Regs: kvm.Regs{RIP: timersStart, RSP: 0xbd00, RFlags: 2}, Sregs: vmmtest.LongMode}, nil
	}
}

// lives waits until each vCPU has had two more interrupts of each kind.
func lives(t *testing.T, who string, v *vmm.VM) {
	t.Helper()
	b, err := v.Memory().Bytes(timersCounters, timersBack+4-timersCounters)
	must(t, err)
	count := func() (c [4]uint32) {
		for i := range c {
			c[i] = binary.LittleEndian.Uint32(b[4*i:])
		}
		return c
	}
	from := count()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Microsecond) {
		now, all := count(), true
		for i := range now {
			all = all && now[i]-from[i] >= 2
		}
		if all {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%s stands still: timers and interrupts %v became %v; %v", who, from, now, v.Exit())
		}
	}
	if n := binary.LittleEndian.Uint32(b[timersBack-timersCounters:]); n != 0 {
		t.Errorf("%s: the time stamp counter went back %d times", who, n)
	}
}

// A guest that lives by its timers, and by interrupts from one vCPU to the other, goes on after a fork: the parent, the child, and the
// child's child, whenever the shell was made.
func TestForkTimers(t *testing.T) {
	h := vmmtest.Host(t)
	forks := 12
	if n, err := strconv.Atoi(os.Getenv("AGENTRUN_VM_FORKS")); err == nil && n > 0 { // as `make soak` sets it
		forks = n / 4
	}
	config := vmm.Config{Memory: 4 * mib, VCPUs: 2}
	for name, k := range map[string]struct {
		deadlines bool
		ticks     uint32
	}{"short timers": {false, 100_000}, "timers": {false, 2_000_000}, "short deadlines": {true, 200_000}, "deadlines": {true, 5_000_000}} {
		t.Run(name, func(t *testing.T) {
			var old []*vmm.VM // shells as old as the guest
			for range 5 {
				v, err := h.New(config)
				must(t, err)
				defer v.Close()
				old = append(old, v)
			}
			v := old[0]
			old = old[1:]
			must(t, v.Boot(loadTimers(k.deadlines, k.ticks)))
			must(t, v.Resume())
			lives(t, "the guest", v)
			for i := range forks {
				var child *vmm.VM
				if i%3 == 0 && len(old) > 0 {
					child, old = old[0], old[1:]
				} else {
					var err error
					child, err = h.New(config)
					must(t, err)
					defer child.Close()
				}
				failed, err := v.Fork([]*vmm.VM{child}, nil)
				must(t, err)
				must(t, failed[0])
				lives(t, "the child", child)
				lives(t, "the parent", v)
				if i%4 == 3 { // go on in the child
					v, child = child, v
				}
				must(t, child.Close())
			}
		})
	}
}
