package wasm

import (
	"context"
	"encoding/binary"
	"maps"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero/api"

	"agentrun.dev/vfs"
	rewrite "agentrun.dev/wasm/binary"
)

// hostModule is what guests import from.
type hostModule struct {
	name      string
	functions []hostFunc
}

// hostFunc is one host function. Types are written as letters: i for i32, I for i64. f's arguments are in s; what it returns is the guest's errno.
type hostFunc struct {
	name    string
	params  string
	results string // "i" or "", when there is no errno
	f       func(in *Instance, s []uint64) error
	raw     api.GoModuleFunc // instead of f
}

func (h hostFunc) wrap() api.GoModuleFunction {
	if h.raw != nil {
		return h.raw
	}
	f := h.f
	if h.results == "" {
		return api.GoModuleFunc(func(ctx context.Context, _ api.Module, s []uint64) { f(instanceOf(ctx), s) })
	}
	plain := h.plain()
	if h.rests() {
		return api.GoModuleFunc(func(ctx context.Context, _ api.Module, s []uint64) { instanceOf(ctx).rest(h.name, plain, s) })
	}
	return api.GoModuleFunc(func(ctx context.Context, _ api.Module, s []uint64) { plain(instanceOf(ctx), s) })
}

// plain is the function with an error as the guest wants it.
func (h hostFunc) plain() func(in *Instance, s []uint64) {
	return func(in *Instance, s []uint64) {
		err := h.f(in, s)
		if err == nil {
			s[0] = 0
			return
		}
		no := vfs.Errno(err)
		if no == syscall.EINTR || no == syscall.EBADF { // what the calls of a process that was killed return
			in.checkEnd()
			in.checkSignals()
		}
		s[0] = uint64(wasiErrno(no))
	}
}

// restingFunc finds a function in which guests rest by its name.
func restingFunc(name string) func(in *Instance, s []uint64) {
	if name == rewrite.TickName {
		return tickAgain
	}
	for _, m := range hostModules() {
		for _, h := range m.functions {
			if h.name == name && h.rests() {
				return h.plain()
			}
		}
	}
	return nil
}

// rests tells whether a guest may be captured while it waits in the function: its copy calls it again with the same arguments. So it does
// nothing that can be seen before it waits, and waits at most once.
func (h hostFunc) rests() bool {
	switch h.name {
	case "lock", "fd_read", "fd_pread", "fd_write", "fd_pwrite", "poll_oneoff", "wait", "fd_sync", "fd_datasync":
		return true
	}
	return false
}

func hostModules() []hostModule {
	return []hostModule{
		{rewrite.TickModule, []hostFunc{{rewrite.TickName, "I", "I", nil, func(ctx context.Context, _ api.Module, s []uint64) {
			in := instanceOf(ctx)
			if in.resuming != nil {
				in.restore(ctx)
			}
			s[0] = in.tick(s[0])
		}}}},
		{"wasi_snapshot_preview1", wasiFunctions()},
		{"agentrun", agentrunFunctions()},
	}
}

// hostState is what host functions keep beside the process's own state.
type hostState struct {
	sigword  uint32
	nonblock map[int32]bool     // descriptors whose reads and writes don't wait
	appends  map[int32]bool     // descriptors whose writes go to the end, where the open file doesn't do so itself
	dirs     map[int32]*listing // directories being read
	reply    []byte             // the answer to the last call
	timer    *itimer
	childCPU time.Duration // of children that were waited for
	polled   []byte        // what poll_oneoff waits for, with moments instead of durations
	locked   bool          // the process may have locks
	forked   bool          // the guest is a copy, and hasn't been told
}

// forget is for an instance that goes to another process.
func (h *hostState) forget() {
	h.timer.stop()
	*h = hostState{sigword: h.sigword}
}

// clone copies what belongs to a guest's state.
func (h *hostState) clone() hostState {
	return hostState{sigword: h.sigword, nonblock: maps.Clone(h.nonblock), appends: maps.Clone(h.appends)}
}

// closed forgets what is known about a descriptor.
func (h *hostState) closed(fd int32) {
	delete(h.nonblock, fd)
	delete(h.appends, fd)
	delete(h.dirs, fd)
}

// Access to the guest's memory. Everything that a guest passes may be anything.

func (in *Instance) bytes(ptr, n uint64) ([]byte, error) {
	b := in.mem.at(uint32(ptr), uint32(n))
	if b == nil {
		return nil, syscall.EFAULT
	}
	return b, nil
}

func (in *Instance) put32(ptr uint64, v uint32) error {
	b, err := in.bytes(ptr, 4)
	if err == nil {
		binary.LittleEndian.PutUint32(b, v)
	}
	return err
}

func (in *Instance) put64(ptr uint64, v uint64) error {
	b, err := in.bytes(ptr, 8)
	if err == nil {
		binary.LittleEndian.PutUint64(b, v)
	}
	return err
}

// text copies a string.
func (in *Instance) text(ptr, n uint64) (string, error) {
	if uint32(n) > 1<<20 {
		return "", syscall.ENAMETOOLONG
	}
	b, err := in.bytes(ptr, n)
	return string(b), err
}

// fill puts text into a buffer of the guest and its length where it asks for it; ERANGE if it is too long.
func (in *Instance) fill(text string, buf, capacity, n uint64) error {
	if err := in.put32(n, uint32(len(text))); err != nil {
		return err
	}
	if uint64(len(text)) > uint64(uint32(capacity)) {
		return syscall.ERANGE
	}
	b, err := in.bytes(buf, uint64(len(text)))
	copy(b, text)
	return err
}

func fd(v uint64) int { return int(int32(v)) }
