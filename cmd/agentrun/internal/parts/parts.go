// Package parts holds the programs that the microVM engine starts beside agentrun itself, so that agentrun is one file: the agent, which
// is the first process of a VM, and the VMM process, which each VM has one of and which is small for that reason.
//
// build.sh makes them ("make build" does). They aren't in the repository; a build without them works, and says what is missing.
package parts

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
)

//go:embed all:dist
var dist embed.FS

// Names of the programs.
const (
	Agent = "agentrun-guest"
	VMM   = "agentrun-vmm"
)

// Program is one of them, as a file in memory that nobody can change. It may be started any number of times.
type Program struct{ f *os.File }

// lowest is the least descriptor of a program: those below are given to a process that is started, and its path must still be the
// program's then.
const lowest = 64

// Open returns a program. Errors: Unsupported when it wasn't there when agentrun was built.
func Open(name string) (*Program, error) {
	b, err := dist.ReadFile("dist/" + name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errs.Msg(errs.Unsupported, "microvm", name, "this agentrun was built without it").WithHint("build it with make")
	}
	if err != nil {
		return nil, errs.New(errs.Other, "microvm", name, err)
	}
	const exec = 0x10 // MFD_EXEC, which kernels before 6.3 don't know, and later ones may insist on
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|exec)
	if errors.Is(err, unix.EINVAL) {
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, errs.New(errs.Other, "microvm", name, err).WithHint("sysctl vm.memfd_noexec=0 lets programs be run from memory")
	}
	defer unix.Close(fd)
	high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, lowest)
	if err != nil {
		return nil, errs.New(errs.Limit, "microvm", name, err)
	}
	f := os.NewFile(uintptr(high), name)
	if _, err = f.Write(b); err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	}
	if err != nil {
		f.Close()
		return nil, errs.New(errs.Other, "microvm", name, err)
	}
	return &Program{f}, nil
}

// Path is where this process finds the program, and one that it starts by it: until Close.
func (p *Program) Path() string { return fmt.Sprintf("/proc/self/fd/%d", p.f.Fd()) }

// Close gives it up. Processes of it live on.
func (p *Program) Close() error { return p.f.Close() }
