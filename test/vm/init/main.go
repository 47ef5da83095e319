// Command init is the first process of the bench (package vm of test): it loads the modules, runs one program and turns the machine off.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"syscall"

	"golang.org/x/sys/unix"
)

func main() {
	status, err := os.OpenFile("/dev/console", os.O_WRONLY, 0)
	if err := errors.Join(root(), mounts()); err != nil {
		fmt.Println("bench: mount:", err)
	}
	if s, openErr := serial("/dev/ttyS2"); openErr == nil {
		status = s
	} else {
		err = openErr
	}
	var code int
	if err == nil {
		code, err = run(status)
	}
	if err != nil {
		fmt.Println("bench:", err)
		fmt.Fprintln(status, "error", err)
	} else {
		fmt.Fprintln(status, "exit", code)
	}
	drain(status)
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	select {} // the kernel would panic if its first process ended
}

// root makes the archive's filesystem a root that a process can leave (pivot_root), as a VMM process does: the kernel's first one can't be left.
func root() error {
	const all = "/all"
	if err := os.Mkdir(all, 0o755); err != nil {
		return err
	}
	return errors.Join(unix.Mount("/", all, "", unix.MS_BIND, ""), os.Chdir(all), unix.Mount(".", "/", "", unix.MS_MOVE, ""), unix.Chroot("."), os.Chdir("/"))
}

func mounts() error {
	var failed error
	for _, m := range [][3]string{{"proc", "/proc", "proc"}, {"sysfs", "/sys", "sysfs"}, {"devtmpfs", "/dev", "devtmpfs"}, {"tmpfs", "/tmp", "tmpfs"},
		{"cgroup2", "/sys/fs/cgroup", "cgroup2"}, {"devpts", "/dev/pts", "devpts"}, {"tmpfs", "/dev/shm", "tmpfs"}} {
		err := os.MkdirAll(m[1], 0o755)
		if err == nil {
			err = unix.Mount(m[0], m[1], m[2], 0, "")
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", m[1], err))
		}
	}
	return failed
}

// run runs the program. Its output has a serial port to itself.
func run(status *os.File) (int, error) {
	modules, err := filepath.Glob("/modules/*.ko")
	if err != nil {
		return 0, err
	}
	sort.Strings(modules)
	for _, m := range modules {
		if err := load(m); err != nil {
			return 0, fmt.Errorf("%s: %w", m, err)
		}
	}
	raw, err := os.ReadFile("/bench.json")
	if err != nil {
		return 0, err
	}
	var call struct {
		Args, Env []string
		Card      bool
	}
	if err := json.Unmarshal(raw, &call); err != nil {
		return 0, err
	}
	out, err := serial("/dev/ttyS1")
	if err != nil {
		return 0, err
	}
	if err := link("lo", nil); err != nil {
		return 0, fmt.Errorf("loopback: %w", err)
	}
	if call.Card {
		if err := link("eth0", []byte{10, 0, 2, 15}); err != nil {
			return 0, fmt.Errorf("network card: %w", err)
		}
	}
	var up unix.Sysinfo_t
	var now unix.Timespec
	if unix.Sysinfo(&up) == nil && unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) == nil {
		fmt.Fprintln(status, "booted", now.Nano()/1e6)
	}
	cmd := exec.Command(call.Args[0], call.Args[1:]...)
	cmd.Env = append([]string{"PATH=/bin:/usr/bin", "HOME=/tmp", "TMPDIR=/tmp"}, call.Env...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/tmp", out, out
	err = cmd.Run()
	drain(out)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if ws := exit.Sys().(syscall.WaitStatus); ws.Signaled() {
			return 128 + int(ws.Signal()), nil
		}
		return exit.ExitCode(), nil
	}
	return 0, err
}

func load(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

// link brings a network interface up: lo, as tests listen on 127.0.0.1, or the card, with its address in a network of 24 bits.
func link(name string, addr []byte) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for i, a := range [][]byte{addr, {255, 255, 255, 0}} {
		req, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		if addr == nil {
			break
		}
		if err := req.SetInet4Addr(a); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, []uint{unix.SIOCSIFADDR, unix.SIOCSIFNETMASK}[i], req); err != nil {
			return err
		}
	}
	req, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}

// serial opens a serial port that passes bytes on as they are.
func serial(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	t, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return nil, err
	}
	t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
	t.Cflag = unix.CS8 | unix.CREAD | unix.CLOCAL | unix.B115200
	return f, unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, t)
}

// drain waits until a port has sent everything.
func drain(f *os.File) { _ = unix.IoctlSetInt(int(f.Fd()), unix.TCSBRK, 1) }
