// Package wasm runs WebAssembly guests as processes of a sandbox, and forks them while they live.
//
// A Runtime is the machinery that a host process has once: compiled code, reserved address space, ready instances. A Module is a compiled
// program. An Instance is a running one: its linear memory, its globals, and the process (proc.Process) that it is bound to, in whose
// name it opens files and whose descriptors it uses, number for number. A Snapshot is an idle instance's state, sealed; Start makes an
// instance of it that shares its memory until it writes. A guest is called command when it runs from _start to its end and reactor when
// functions of it are called.
//
// Guests see two host modules: wasi_snapshot_preview1, and agentrun (guests/agentrun.h) for what that lacks. Machine code of guests can't be
// preempted by Go, so modules are rewritten to have safe points (package binary), at which a guest about every millisecond ends if
// its process was killed, is charged for what it used, and lets its neighbours run.
package wasm

import (
	"context"
	"time"

	"agentrun.dev/proc"
)

// Options describe a Runtime. The zero value works.
type Options struct {
	// CacheDir keeps compiled code. It is made with mode 0700, and refused if anybody else may write there, as what is in it is executed.
	// Empty: compiled code lives as long as the Runtime.
	CacheDir   string
	CacheBytes int64 // that it may have after a compilation; the oldest files go first; 1 GiB
	Memory     int64 // bytes of linear memory that one instance may have, at most 4 GiB; 512 MiB
	Stack      int64 // bytes of stack that one call may use, as estimated from the code; 16 MiB
	Ready      int   // instances of a module that are kept ready for snapshots; 16
	Mappings   int   // memory mappings that instances may have together; half of what the kernel allows the process
	// Progress is told once a second about a compilation that takes longer than one. It may be called concurrently.
	Progress func(name string, elapsed time.Duration)
}

func (o Options) withDefaults() Options {
	if o.CacheBytes <= 0 {
		o.CacheBytes = 1 << 30
	}
	if o.Memory <= 0 {
		o.Memory = 512 << 20
	}
	o.Memory = min(o.Memory, 4<<30) &^ (pageSize - 1)
	if o.Stack <= 0 {
		o.Stack = 16 << 20
	}
	o.Stack = min(o.Stack, 40<<20) // beyond, the engine's own limit decides
	if o.Ready <= 0 {
		o.Ready = 16
	}
	if o.Mappings <= 0 {
		o.Mappings = maxMapCount() / 2
	}
	return o
}

// CompileOptions describe a module.
type CompileOptions struct {
	Name    string            // for messages
	Exports map[string]uint32 // functions to be exported beside the module's own, by index
	// Exceptions accepts exception handling, which needs memory on the host in proportion to the stack's depth times the number of active
	// handlers. It is for modules that one trusts.
	Exceptions bool
	// NoSafePoints leaves the code without safe points, which is for measuring: such a guest can't be ended.
	NoSafePoints bool
}

// Config says how an instance runs.
type Config struct {
	Args   []string // nil: the process's
	Env    []string // nil: the process's
	Memory int64    // bytes of linear memory, at most Options.Memory; 0 means that
	// Quiesce makes proc_exit end the call instead of the instance, with *ExitError. Memory and globals stay as they are: the C library's
	// stack pointer is set back to where the call began.
	Quiesce bool
	// GuessPaths is for programs that know nothing of a working directory. The C library of WASI takes the slash off an absolute path before the
	// host sees it; see resolve for how such a path is told from a relative one.
	GuessPaths bool
	// Call answers agentrun_call: the program in Go that runs the guest. nil: ENOSYS. It gets the guest's memory, which it must not keep.
	Call func(p *proc.Process, op uint32, in []byte) ([]byte, error)
}

// ExitError says that the guest ended itself by proc_exit.
type ExitError struct{ Status int }

func (e *ExitError) Error() string { return "exit status " + itoa(e.Status) }

// TrapError says that the guest was ended by an instruction that can't be executed.
type TrapError struct {
	Reason string // such as "unreachable", "integer divide by zero", "stack overflow"
	Stack  string // where, one function a line
}

func (e *TrapError) Error() string { return "trap: " + e.Reason }

// KilledError says that the process was killed.
type KilledError struct{ Signal int }

func (e *KilledError) Error() string { return "killed by SIG" + proc.SignalName(e.Signal) }

// TrapStatus is the exit status of a command that trapped: as of a program that aborted.
const TrapStatus = 128 + proc.SIGABRT

// callContext carries the instance to host functions, which get the context that a call was made with.
type callContext struct {
	context.Context
	in *Instance
}
