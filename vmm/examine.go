package vmm

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/kvm"
)

// Finding is something that VMs need of a host, or profit from.
type Finding struct {
	Name string
	OK   bool
	Need bool   // without it there are no VMs here
	Slow bool   // VMs run, but too slowly for a stock kernel
	Text string // what there is, or what is missing
	Hint string // how to get it
}

// Examine looks at what this host can do for VMs. The last finding is a guest of a few instructions, which is run.
func Examine() []Finding {
	if runtime.GOARCH != "amd64" {
		return []Finding{{Name: "architecture", Need: true, Text: "microVMs need x86-64, this is " + runtime.GOARCH}}
	}
	sys, err := kvm.Open()
	if err != nil {
		return []Finding{{Name: "/dev/kvm", Need: true, Text: err.Error(), Hint: errs.HintOf(err)}}
	}
	defer sys.Close()
	out := []Finding{{Name: "/dev/kvm", OK: true, Need: true, Text: fmt.Sprintf("up to %d vCPUs, %d at best; %d memory slots", sys.Check(kvm.CapMaxVCPUs),
		sys.Check(kvm.CapVCPUs), sys.Check(kvm.CapMemSlots))}}
	for _, c := range []struct {
		name string
		cap  kvm.Cap
		need bool
		text string
	}{
		{"interrupt controllers", kvm.CapIRQChip, true, "in the kernel"},
		{"deadline timer", kvm.CapTSCDeadline, true, "of the local APIC"},
		{"time stamp counter", kvm.CapTSCControl, false, "can be scaled: snapshots can move to hosts of another rate"},
	} {
		f := Finding{Name: c.name, OK: sys.Check(c.cap) > 0, Need: c.need, Text: c.text}
		if !f.OK {
			f.Text = "missing: " + c.text
		}
		out = append(out, f)
	}
	return append(out, examineKernel(), examineMaps(), examineGuest())
}

// examineKernel looks for the ioctl that finds dirty pages.
func examineKernel() Finding {
	f := Finding{Name: "dirty pages", Text: "found by PAGEMAP_SCAN"}
	var u unix.Utsname
	major, minor := 0, 0
	if err := unix.Uname(&u); err == nil {
		_, _ = fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor) // what isn't a version stays 0.0
	}
	if f.OK = major > 6 || major == 6 && minor >= 7; !f.OK {
		f.Text = fmt.Sprintf("Linux %d.%d has no PAGEMAP_SCAN: a fork reads a word for each page instead", major, minor)
		f.Hint = "Linux 6.7 or later forks big VMs faster"
	}
	return f
}

// examineMaps looks at how many mappings a process can have.
func examineMaps() Finding {
	f := Finding{Name: "mappings", Text: "unknown"}
	b, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if err == nil {
		n := 0
		_, _ = fmt.Sscan(string(b), &n)
		f.OK, f.Text = n >= 65530, strings.TrimSpace(string(b))+" for each process"
		f.Hint = "sysctl vm.max_map_count=262144"
	}
	if f.OK {
		f.Hint = ""
	}
	return f
}

// examineGuest runs a loop in a guest's kernel mode, where a KVM without the hardware's help is a thousand times slower.
func examineGuest() Finding {
	const emulated = 100 * time.Nanosecond // for an instruction: no processor takes as long
	const turns = 2000
	f := Finding{Name: "a guest", Need: true}
	took, err := runGuest(turns)
	for try := 0; try < 2 && err == nil && took/turns > emulated; try++ { // a busy host has its pauses
		var again time.Duration
		again, err = runGuest(turns)
		took = min(took, again)
	}
	switch each := took / turns; {
	case err != nil:
		f.Text = err.Error()
	case each > emulated:
		f.OK, f.Slow, f.Text = true, true, fmt.Sprintf("runs, but its kernel's instructions are emulated (%v each): stock kernels take minutes to boot", each)
		f.Hint = "use a machine with hardware virtualization (nested, if this is a VM)"
	default:
		f.OK, f.Text = true, fmt.Sprintf("runs on the hardware, ready after %v", took.Round(time.Microsecond))
	}
	return f
}

func runGuest(turns uint64) (time.Duration, error) {
	h, err := NewHost()
	if err != nil {
		return 0, err
	}
	defer h.Close()
	v, err := h.New(Config{Memory: 1 << 20, Bare: true})
	if err != nil {
		return 0, err
	}
	defer v.Close()
	err = v.Boot(func(v *VM) (Entry, error) {
		code, err := v.Memory().Bytes(0x1000, 3)
		copy(code, []byte{0xe2, 0xfe, 0xf4}) // l: loop l; hlt
		return Entry{Regs: kvm.Regs{RIP: 0x1000, RCX: turns, RFlags: 2}, Sregs: func(s *kvm.Sregs) { s.CS.Base, s.CS.Selector = 0, 0 }}, err
	})
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err := v.Resume(); err != nil {
		return 0, err
	}
	select {
	case <-v.done:
	case <-time.After(10 * time.Second):
		return 0, errs.Msg(errs.Unavailable, "vmm", "examine", "a guest of three instructions doesn't end")
	}
	took := time.Since(start)
	if e := v.Exit(); e.Reason != Halt {
		return 0, e
	}
	return took, nil
}
