package wasm

import (
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	slice      = time.Millisecond // between two looks at the process
	firstStack = 256 << 10        // bytes that every call may use
	// Units of fuel between two ticks. A unit is at most 512 bytes of code, 2 to 20 nanoseconds of common code and 10 microseconds of code that was made
	// to be slow; the number adapts to the code, within bounds that keep the slowest below some tens of milliseconds.
	minFuel, maxFuel = 500, 8000
)

// nanos is a monotonic clock.
func nanos() time.Duration { return time.Since(epoch) }

var epoch = time.Now()

// threadTime is the processor time of the thread.
func threadTime() time.Duration {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
	return time.Duration(ts.Nano())
}

// enter begins a call.
func (in *Instance) enter() {
	if in.depth++; in.depth > 1 {
		return
	}
	in.end = nil
	in.fuel, in.stack = minFuel, firstStack
	in.resume()
	if in.meter != nil {
		in.meter.Set(uint64(in.stack)<<32 | uint64(uint32(in.fuel)))
	}
}

// leave ends it.
func (in *Instance) leave() {
	if in.depth--; in.depth > 0 {
		return
	}
	in.account()
	if in.stackPay > 0 {
		in.p.Charge(-in.stackPay)
		in.stackPay = 0
		clear(in.calls) // with the stack that has grown
	}
}

// account charges the processor time since resume. The goroutine may have changed threads: what can't be is left out.
func (in *Instance) account() {
	if in.p == nil {
		return
	}
	wall, cpu := nanos()-in.slow, threadTime()-in.cpu
	in.p.AddCPU(min(max(cpu, 0), wall))
}

// resume begins a stretch of processor time.
func (in *Instance) resume() {
	in.slow, in.cpu = nanos(), threadTime()
	in.last = in.slow
}

// waits is to be called around host functions that may wait: time that passes there isn't processor time.
func (in *Instance) waits(f func() error) error {
	in.account()
	err := f()
	in.resume()
	return err
}

// tick is called by guests when the meter has run out of fuel or stack, and returns what it is set to.
func (in *Instance) tick(v uint64) uint64 {
	stack, fuel := int32(v>>32), int32(v)
	if fuel < 0 { // the subtraction borrowed
		stack++
		now := nanos()
		switch d := now - in.last; {
		case d < slice/4:
			in.fuel = min(in.fuel*2, maxFuel)
		case d > slice:
			in.fuel = max(in.fuel/2, minFuel)
		}
		fuel, in.last = in.fuel, now
		if now-in.slow >= slice {
			in.look(v)
		}
	}
	if stack < 0 {
		stack = in.moreStack(stack)
	}
	return uint64(uint32(stack))<<32 | uint64(uint32(fuel))
}

// moreStack grants stack, twice what there was. The engine's real stack doubles too, and is copied then: it is charged for three times the estimate.
func (in *Instance) moreStack(left int32) int32 {
	for left < 0 {
		more := min(in.stack, in.m.r.o.Stack-in.stack)
		if more <= 0 || in.p.Charge(3*more) != nil {
			in.stop(&TrapError{Reason: "stack overflow"})
		}
		in.stack += more
		in.stackPay += 3 * more
		left += int32(more)
	}
	return left
}

// look is the guest's gate about every millisecond.
func (in *Instance) look(v uint64) {
	in.account()
	in.safe(v)
	in.checkEnd()
	if in.p.Step(1) != nil {
		in.checkEnd()
	}
	in.checkSignals()
	in.p.Share()
	runtime.Gosched()
	in.resume()
}

// checkEnd ends the call if its process was killed or its caller has given up.
func (in *Instance) checkEnd() {
	if sig := in.p.Killed(); sig != 0 {
		in.stop(&KilledError{sig})
	}
	if err := in.ctx.Context.Err(); err != nil {
		if in.p.Context().Err() != nil { // ended without a signal, as by the sandbox's end
			in.stop(&KilledError{int(syscall.SIGKILL)})
		}
		in.stop(err)
	}
}

// checkSignals tells the guest of signals that it wants to handle, by the word that it gave us.
func (in *Instance) checkSignals() {
	w := in.host.sigword
	if w == 0 {
		return
	}
	select {
	case <-in.p.Interrupt():
		in.wake()
	default:
	}
}

// wake makes the guest look at its signals.
func (in *Instance) wake() {
	if b := in.mem.at(in.host.sigword, 4); b != nil && in.host.sigword != 0 {
		b[0] = 1
	}
}
