// Command kvmprobe looks whether the machine that it runs on can run a virtual one: it runs three instructions in one.
package main

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Of linux/kvm.h.
const (
	kvmGetAPIVersion       = 0xAE00
	kvmCreateVM            = 0xAE01
	kvmGetVCPUMmapSize     = 0xAE04
	kvmCreateVCPU          = 0xAE41
	kvmSetUserMemoryRegion = 0x4020AE46
	kvmRun                 = 0xAE80
	kvmGetRegs             = 0x8090AE81
	kvmSetRegs             = 0x4090AE82
	kvmGetSregs            = 0x8138AE83
	kvmSetSregs            = 0x4138AE84
	exitIO, exitHalt       = 2, 5
)

func main() {
	if err := probe(); err != nil {
		fmt.Println("kvmprobe:", err)
		os.Exit(1)
	}
}

func ioctl(fd, op, arg uintptr) (int, error) {
	r, _, e := unix.Syscall(unix.SYS_IOCTL, fd, op, arg)
	if e != 0 {
		return 0, fmt.Errorf("ioctl %#x: %w", op, e)
	}
	return int(r), nil
}

func probe() error {
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	version, err := ioctl(f.Fd(), kvmGetAPIVersion, 0)
	if err != nil {
		return err
	}
	fmt.Println("KVM API version", version)
	vm, err := ioctl(f.Fd(), kvmCreateVM, 0)
	if err != nil {
		return err
	}
	// mov dx,0x3f8; mov al,'!'; out dx,al; hlt
	ram, err := unix.Mmap(-1, 0, 0x1000, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	copy(ram, []byte{0xba, 0xf8, 0x03, 0xb0, '!', 0xee, 0xf4})
	region := struct {
		slot, flags       uint32
		addr, size, start uint64
	}{addr: 0x1000, size: 0x1000, start: uint64(uintptr(unsafe.Pointer(&ram[0])))}
	if _, err := ioctl(uintptr(vm), kvmSetUserMemoryRegion, uintptr(unsafe.Pointer(&region))); err != nil {
		return err
	}
	cpu, err := ioctl(uintptr(vm), kvmCreateVCPU, 0)
	if err != nil {
		return err
	}
	size, err := ioctl(f.Fd(), kvmGetVCPUMmapSize, 0)
	if err != nil {
		return err
	}
	run, err := unix.Mmap(cpu, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	return execute(uintptr(cpu), run)
}

// execute starts the processor in real mode at 0x1000 and waits for its halt.
func execute(cpu uintptr, run []byte) error {
	var sregs [0x138]byte // cs is the first segment: base, limit, selector
	if _, err := ioctl(cpu, kvmGetSregs, uintptr(unsafe.Pointer(&sregs))); err != nil {
		return err
	}
	*(*uint64)(unsafe.Pointer(&sregs[0])) = 0
	*(*uint16)(unsafe.Pointer(&sregs[12])) = 0
	if _, err := ioctl(cpu, kvmSetSregs, uintptr(unsafe.Pointer(&sregs))); err != nil {
		return err
	}
	var regs [18]uint64
	regs[16], regs[17] = 0x1000, 2 // rip, rflags
	if _, err := ioctl(cpu, kvmSetRegs, uintptr(unsafe.Pointer(&regs))); err != nil {
		return err
	}
	for {
		if _, err := ioctl(cpu, kvmRun, 0); err != nil {
			return err
		}
		switch reason := *(*uint32)(unsafe.Pointer(&run[8])); reason {
		case exitIO:
			at := *(*uint64)(unsafe.Pointer(&run[32+8])) // of struct kvm_run.io: data_offset
			fmt.Printf("the guest wrote %q\n", run[at])
		case exitHalt:
			fmt.Println("the guest halted")
			return nil
		default:
			return fmt.Errorf("exit reason %d", reason)
		}
	}
}
