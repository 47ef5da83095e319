package vmm

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// orders is where a vCPU's thread waits to be told to run. It waits in the kernel itself: a goroutine that is locked to its thread and waits
// for a channel is woken by way of another thread, which costs a fork 40 µs (see RATIONALE.md).
type orders struct{ due atomic.Uint32 }

const (
	orderRun  = 1 << 0 // once
	orderQuit = 1 << 1 // after what else is due
)

// Operations of futex(2), within a process.
const (
	futexWait = 0 | 1<<7
	futexWake = 1 | 1<<7
)

// give adds an order. The one before was carried out, or is to be carried out first.
func (o *orders) give(order uint32) {
	o.due.Or(order)
	o.futex(futexWake, 1)
}

// await returns true for each order to run, and false when there will be none.
func (o *orders) await() bool {
	for {
		switch due := o.due.Load(); {
		case due&orderRun != 0:
			o.due.And(^uint32(orderRun))
			return true
		case due&orderQuit != 0:
			return false
		}
		o.futex(futexWait, 0) // as long as nothing is due; a signal ends it too
	}
}

func (o *orders) futex(op, arg uintptr) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&o.due)), op, arg, 0, 0, 0)
}
