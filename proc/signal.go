package proc

import (
	"sort"
	"strconv"
	"strings"
	"syscall"
)

// Signals, with Linux's numbers.
const (
	SIGHUP    = 1
	SIGINT    = 2
	SIGQUIT   = 3
	SIGILL    = 4
	SIGTRAP   = 5
	SIGABRT   = 6
	SIGBUS    = 7
	SIGFPE    = 8
	SIGKILL   = 9
	SIGUSR1   = 10
	SIGSEGV   = 11
	SIGUSR2   = 12
	SIGPIPE   = 13
	SIGALRM   = 14
	SIGTERM   = 15
	SIGCHLD   = 17
	SIGCONT   = 18
	SIGSTOP   = 19
	SIGTSTP   = 20
	SIGTTIN   = 21
	SIGTTOU   = 22
	SIGURG    = 23
	SIGXCPU   = 24
	SIGXFSZ   = 25
	SIGWINCH  = 28
	MaxSignal = 64
)

var signalNames = [...]string{
	1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 5: "TRAP", 6: "ABRT", 7: "BUS", 8: "FPE", 9: "KILL", 10: "USR1", 11: "SEGV", 12: "USR2",
	13: "PIPE", 14: "ALRM", 15: "TERM", 16: "STKFLT", 17: "CHLD", 18: "CONT", 19: "STOP", 20: "TSTP", 21: "TTIN", 22: "TTOU", 23: "URG",
	24: "XCPU", 25: "XFSZ", 26: "VTALRM", 27: "PROF", 28: "WINCH", 29: "IO", 30: "PWR", 31: "SYS",
}

// SignalName returns a signal's name without SIG, "" when there is none.
func SignalName(sig int) string {
	switch {
	case sig > 0 && sig < len(signalNames):
		return signalNames[sig]
	case sig == 34:
		return "RTMIN"
	case sig > 34 && sig < 50:
		return "RTMIN+" + strconv.Itoa(sig-34)
	case sig >= 50 && sig < 64:
		return "RTMAX-" + strconv.Itoa(64-sig)
	case sig == 64:
		return "RTMAX"
	}
	return ""
}

// SignalNumber is the inverse of SignalName; it takes any case, with or without SIG, and numbers. 0 is "0" or "EXIT".
func SignalNumber(name string) (int, bool) {
	if n, err := strconv.Atoi(name); err == nil {
		return n, n >= 0 && n <= MaxSignal && (n < 32 || n > 33)
	}
	name = strings.TrimPrefix(strings.ToUpper(name), "SIG")
	switch name {
	case "EXIT":
		return 0, true
	case "POLL":
		return 29, true
	case "IOT":
		return SIGABRT, true
	case "CLD":
		return SIGCHLD, true
	}
	for n := 1; n <= MaxSignal; n++ {
		if s := SignalName(n); s != "" && s == name {
			return n, true
		}
	}
	return 0, false
}

// Disposition is what a signal does to a process.
type Disposition uint8

const (
	Default Disposition = iota // end the process, stop it (STOP, TSTP, TTIN, TTOU), or nothing (CHLD, CONT, URG, WINCH)
	Ignore
	Handle // keep it pending until TakeSignals: a trap, or a handler of a program
)

func defaultIgnored(sig int) bool {
	return sig == SIGCHLD || sig == SIGCONT || sig == SIGURG || sig == SIGWINCH
}

// SetSignal sets what a signal does and returns what it did. KILL and STOP can't be changed: EINVAL.
func (p *Process) SetSignal(sig int, d Disposition) (Disposition, error) {
	if sig < 1 || sig > MaxSignal || sig == SIGKILL || sig == SIGSTOP {
		return Default, syscall.EINVAL
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.disp[sig]
	p.disp[sig] = d
	if d != Handle {
		p.pending &^= 1 << sig
	}
	return old, nil
}

// Disposition returns what a signal does.
func (p *Process) Disposition(sig int) Disposition {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.disp[sig]
}

// TakeSignals returns the handled signals that came since the last call, in ascending order, nil when there are none.
// After it blocking calls wait again.
func (p *Process) TakeSignals() []int {
	if !p.hasSignal.Load() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []int
	for sig := 1; sig <= MaxSignal; sig++ {
		if p.pending&(1<<sig) != 0 {
			out = append(out, sig)
		}
	}
	p.pending = 0
	p.hasSignal.Store(false)
	if !p.isKilled() {
		p.intr = make(chan struct{})
	}
	return out
}

// Killed returns the signal that has ended the process, 0 while it lives.
func (p *Process) Killed() int {
	if !p.isKilled() {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killedBy
}

// Signal sends a signal to a process (pid > 0), to a process group (pid < -1, or 0 for the caller's own), or to all but
// the caller (-1). Signal 0 only checks. Errors: ESRCH, EINVAL, EPERM.
func (p *Process) Signal(pid, sig int) error {
	if sig < 0 || sig > MaxSignal {
		return syscall.EINVAL
	}
	var targets []*Process
	s := p.sb
	s.mu.Lock()
	switch {
	case pid > 0:
		if t := s.procs[pid]; t != nil {
			targets = append(targets, t)
		}
	default:
		group := -pid
		if pid == 0 {
			group = p.pgid
		}
		for _, t := range s.sorted() {
			if pid == -1 && t != p && t.pid != 1 || pid != -1 && t.pgid == group {
				targets = append(targets, t)
			}
		}
	}
	s.mu.Unlock()
	if len(targets) == 0 {
		return syscall.ESRCH
	}
	uid, allowed := p.Cred().UID, false
	for _, t := range targets {
		if uid == 0 || t.Cred().UID == uid {
			allowed = true
			t.post(sig)
		}
	}
	if !allowed {
		return syscall.EPERM
	}
	return nil
}

// Post delivers a signal from outside the sandbox, as a terminal or a timeout does.
func (p *Process) Post(sig int) { p.post(sig) }

func (p *Process) post(sig int) {
	if sig == 0 {
		return
	}
	if sig == SIGCONT {
		p.resume()
	}
	p.mu.Lock()
	d := p.disp[sig]
	if p.state != running && p.state != embryo || p.isKilled() {
		p.mu.Unlock()
		return
	}
	switch {
	case d == Handle && sig != SIGKILL:
		p.pending |= 1 << sig
		if !p.hasSignal.Swap(true) {
			close(p.intr)
		}
		p.mu.Unlock()
	case d == Ignore && sig != SIGKILL, d == Default && defaultIgnored(sig):
		p.mu.Unlock()
	case sig != SIGKILL && stops(sig):
		p.mu.Unlock()
		p.stop(sig)
	default:
		p.mu.Unlock()
		p.kill(sig)
	}
}

// kill ends the process by a signal, whatever its disposition. Its gates fail from now on.
func (p *Process) kill(sig int) {
	p.mu.Lock()
	if p.isKilled() || p.state == zombie || p.state == reaped {
		p.mu.Unlock()
		return
	}
	p.killedBy = sig
	p.attn.Or(attnKilled)
	if p.stopSig != 0 {
		close(p.cont)
	}
	if !p.hasSignal.Swap(true) {
		close(p.intr)
	}
	p.mu.Unlock()
	p.cancel()
	// Closed at once, so that peers of its pipes see the end even if the program is slow to return.
	p.fds.closeAll()
}

func (s *Sandbox) sorted() []*Process {
	ps := make([]*Process, 0, len(s.procs))
	for _, p := range s.procs {
		ps = append(ps, p)
	}
	sortProcesses(ps)
	return ps
}

func sortProcesses(ps []*Process) {
	sort.Slice(ps, func(i, j int) bool { return ps[i].pid < ps[j].pid })
}
