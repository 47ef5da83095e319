package vmm

import (
	"bytes"
	"fmt"
	"strings"
)

// Reason is why a guest has ended.
type Reason uint8

// The set is append-only: reasons are written to the wire.
const (
	Shutdown    Reason = iota // it switched itself off
	Reset                     // it asked to be started anew
	Halt                      // its only vCPU halted, without interrupt controllers to wake it
	Panic                     // its kernel gave up
	TripleFault               // it broke its own exception handlers
	KVM                       // KVM couldn't go on: an instruction that it can't emulate, an entry that failed
)

var reasonNames = [...]string{"shut down", "reset", "halted", "kernel panic", "triple fault", "kvm error"}

func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Exit is the end of a guest.
type Exit struct {
	Reason Reason
	Detail string // what is known besides, such as KVM's numbers or the panic's line
	CPU    int    // where
	RIP    uint64
	Tail   []byte // the console's end
}

// Error says the reason, the place and the console's last lines.
func (e *Exit) Error() string {
	s := fmt.Sprintf("guest: %v at %#x of vCPU %d", e.Reason, e.RIP, e.CPU)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if last := lastLines(e.Tail, 3); last != "" {
		s += fmt.Sprintf("; its console ends with %q", last)
	}
	return s
}

// lastLines are the last n lines that say something, at most 500 bytes.
func lastLines(tail []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(tail), "\r", "")), "\n")
	s := strings.Join(lines[max(0, len(lines)-n):], "\n")
	return s[max(0, len(s)-500):]
}

// What Linux says before it gives up; with panic=-1 it then asks for a reset, which says nothing by itself.
var panicText = []byte("Kernel panic - not syncing")

func panicked(tail []byte) bool { return bytes.Contains(tail, panicText) }

// panicLine is the line that says why.
func panicLine(tail []byte) string {
	line := tail[bytes.LastIndex(tail, panicText):]
	if i := bytes.IndexAny(line, "\r\n"); i >= 0 {
		line = line[:i]
	}
	return string(line[:min(len(line), 200)])
}
