// Command boot boots a kernel with package vmm and shows its console: the smallest use of it, for the bench and for
// trying a host's KVM. It exits with 0 when the guest switches itself off, else with 1 and the reason.
//
//	boot -kernel vmlinuz -initrd initrd.img [-append "console=ttyS0"] [-memory MiB] [-cpus N] [-timeout 2m]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"agentrun.dev/vmm"
	"agentrun.dev/vmm/boot"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "boot:", err)
		os.Exit(1)
	}
}

func run() error {
	kernel := flag.String("kernel", "/kernel", "the kernel: bzImage or vmlinux")
	initrd := flag.String("initrd", "", "the initramfs")
	cmdline := flag.String("append", "console=ttyS0 panic=-1", "the command line")
	memory := flag.Uint64("memory", 256, "MiB of memory")
	cpus := flag.Int("cpus", 1, "vCPUs")
	pit := flag.Bool("pit", false, "with an interval timer")
	timeout := flag.Duration("timeout", 3*time.Minute, "how long the guest may take")
	flag.Parse()

	var l boot.Linux
	var err error
	l.Cmdline = *cmdline
	if l.Kernel, err = os.ReadFile(*kernel); err != nil {
		return err
	}
	if *initrd != "" {
		if l.Initrd, err = os.ReadFile(*initrd); err != nil {
			return err
		}
	}
	host, err := vmm.NewHost()
	if err != nil {
		return err
	}
	defer host.Close()
	v, err := host.New(vmm.Config{Memory: *memory << 20, VCPUs: *cpus, Console: os.Stdout, PIT: *pit})
	if err != nil {
		return err
	}
	defer v.Close()
	if err := v.BootLinux(&l); err != nil {
		return err
	}
	start := time.Now()
	if err := v.Resume(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	err = v.Wait(ctx)
	fmt.Printf("boot: the guest ran for %v: %v\n", time.Since(start).Round(time.Millisecond), v.Exit())
	return err
}
