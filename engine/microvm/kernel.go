package microvm

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/guest/initramfs"
	"agentrun.dev/guest/machine"
)

// modules are what a stock kernel needs for our devices, and for the root.
var modules = []string{"virtio_mmio", "vmw_vsock_virtio_transport", "virtio_rng", "virtio_blk", "virtio_net", "virtiofs", "erofs", "overlay"}

// optional are those that a kernel may lack: a guest without virtio_balloon keeps the memory that it has once used.
var optional = []string{"virtio_balloon"}

// cmdline is the kernel's: a panic is a reset, which ends the machine; the agent gives entropy besides the CPU's. Memory that isn't filled with
// zeros before it is filled with what it is for is memory that a fork needn't have of its own.
const cmdline = "console=ttyS0 panic=-1 quiet random.trust_cpu=on init_on_alloc=0"

// archive writes what a kernel of ours starts from: the agent, the modules, and what the machine begins with.
func archive(o *Options, c machine.Config) (*os.File, error) {
	fail := func(err error) (*os.File, error) {
		if errs.KindOf(err) == errs.Other {
			err = errs.New(errs.Unavailable, "microvm", "initramfs", err)
		}
		return nil, err
	}
	found, err := findModules(o.Modules)
	if err != nil {
		return fail(err)
	}
	config, err := json.Marshal(c)
	if err != nil {
		return fail(err)
	}
	agent, err := os.Open(o.Agent)
	if err != nil {
		return fail(err)
	}
	defer agent.Close()
	info, err := agent.Stat()
	if err != nil {
		return fail(err)
	}
	fd, err := unix.MemfdCreate("agentrun-initramfs", unix.MFD_CLOEXEC)
	if err != nil {
		return fail(err)
	}
	f := os.NewFile(uintptr(fd), "initramfs")
	b := bufio.NewWriterSize(f, 256<<10)
	w := initramfs.NewWriter(b)
	if err := errors.Join(w.AddModules(found), w.File("/init", 0o755, info.Size(), io.LimitReader(agent, info.Size())),
		w.Bytes(machine.ConfigFile, 0o644, string(config)), w.Char("/dev/console", 0o600, 5, 1), w.Close(), b.Flush()); err != nil {
		f.Close()
		return fail(err)
	}
	return f, nil
}

// findModules reads the modules from a kernel's folder, but for those that are built in.
func findModules(dir string) ([]initramfs.Module, error) {
	if dir == "" {
		return nil, nil
	}
	builtin := readBuiltin(dir)
	missing := func(names []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return builtin[name] })
	}
	names := missing(modules)
	for _, name := range missing(optional) {
		if _, err := initramfs.Modules(dir, name); err == nil {
			names = append(names, name)
		}
	}
	found, err := initramfs.Modules(dir, names...)
	var e *errs.Error
	if errors.As(err, &e) && e.Kind == errs.NotFound {
		return nil, errs.New(errs.Unavailable, "microvm", "kernel modules", err).WithHint("the folder must be that of the kernel's modules, /lib/modules/VERSION; Debian's linux-image-cloud-amd64 has all")
	}
	return found, err
}

// readBuiltin reads modules.builtin, which names the files of what is built into the kernel; a folder needn't have it.
func readBuiltin(dir string) map[string]bool {
	b, err := os.ReadFile(filepath.Join(dir, "modules.builtin"))
	if err != nil {
		return nil
	}
	names := make(map[string]bool)
	for line := range strings.Lines(string(b)) {
		name, _, _ := strings.Cut(filepath.Base(strings.TrimSpace(line)), ".ko")
		names[strings.ReplaceAll(name, "-", "_")] = true
	}
	return names
}
