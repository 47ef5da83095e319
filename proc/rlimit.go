package proc

import (
	"io"
	"syscall"
	"time"

	"agentrun.dev/vfs"
)

// Resources that a process's limits are about, with Linux's numbers. CPU is in seconds, sizes are in bytes.
const (
	LimitCPU    = 0 // time that guests report: past the soft limit XCPU, past the hard one KILL
	LimitFsize  = 1 // size of the files that it writes: EFBIG and XFSZ
	LimitData   = 2
	LimitStack  = 3
	LimitCore   = 4
	LimitRSS    = 5
	LimitNproc  = 6 // processes of its user: EAGAIN
	LimitNofile = 7 // its descriptors' numbers: EMFILE
	LimitAS     = 9 // memory that it has charged: ENOMEM
	limitNice   = 13
	limitRtprio = 14
	NLimits     = 16
)

// Unlimited is the value of a limit that isn't one.
const Unlimited = ^uint64(0)

// Rlimit is a limit of one process on one resource. The soft one is in force; the process may raise it up to the hard one.
// Those on resources without an effect above are kept and shown.
type Rlimit struct{ Soft, Hard uint64 }

func (s *Sandbox) defaultRlimits() (l [NLimits]Rlimit) {
	for i := range l {
		l[i] = Rlimit{Unlimited, Unlimited}
	}
	l[LimitStack].Soft = 8 << 20
	l[LimitCore].Soft = 0
	l[limitNice], l[limitRtprio] = Rlimit{}, Rlimit{}
	l[LimitNofile] = Rlimit{uint64(s.limits.Files), uint64(s.limits.Files)}
	l[LimitNproc] = Rlimit{uint64(s.limits.Processes), uint64(s.limits.Processes)}
	return l
}

// Rlimit returns the limit on a resource: EINVAL.
func (p *Process) Rlimit(resource int) (Rlimit, error) {
	if resource < 0 || resource >= NLimits {
		return Rlimit{}, syscall.EINVAL
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rlimits[resource], nil
}

// SetRlimit sets it; children inherit it. Errors: EINVAL for a soft limit above the hard one; EPERM for raising a hard
// limit, which only user 0 may, and nobody beyond the sandbox's Limits.
func (p *Process) SetRlimit(resource int, l Rlimit) error {
	if resource < 0 || resource >= NLimits || l.Soft > l.Hard {
		return syscall.EINVAL
	}
	p.mu.Lock()
	if l.Hard > p.rlimits[resource].Hard && p.cred.UID != 0 ||
		resource == LimitNofile && l.Hard > uint64(p.sb.limits.Files) || resource == LimitNproc && l.Hard > uint64(p.sb.limits.Processes) {
		p.mu.Unlock()
		return syscall.EPERM
	}
	p.rlimits[resource] = l
	p.mu.Unlock()
	if resource == LimitNofile {
		p.fds.mu.Lock()
		p.fds.limit = int(l.Soft)
		p.fds.mu.Unlock()
	}
	p.limited.Store(p.hasLimits())
	return nil
}

// hasLimits tells whether writing has to look at the limit on files, so that others needn't.
func (p *Process) hasLimits() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rlimits[LimitFsize].Soft != Unlimited
}

// mayWrite returns how many of n bytes a file may take at an offset; EFBIG and XFSZ when there is no room for one.
func (p *Process) mayWrite(f vfs.File, off int64, n int) (int, error) {
	limit, _ := p.Rlimit(LimitFsize)
	a, err := f.Attr()
	if err != nil || !a.Mode.IsRegular() || n == 0 || limit.Soft == Unlimited {
		return n, nil
	}
	if f.Flags()&syscall.O_APPEND != 0 {
		off = a.Size
	} else if off < 0 {
		if off, err = f.Seek(0, io.SeekCurrent); err != nil {
			return n, nil
		}
	}
	if uint64(off) >= limit.Soft {
		p.post(SIGXFSZ)
		return 0, syscall.EFBIG
	}
	return int(min(uint64(n), limit.Soft-uint64(off))), nil
}

// mayTruncate refuses sizes past the limit on files.
func (p *Process) mayTruncate(size *int64) error {
	if size == nil || !p.limited.Load() {
		return nil
	}
	if l, _ := p.Rlimit(LimitFsize); *size > 0 && uint64(*size) > l.Soft {
		p.post(SIGXFSZ)
		return syscall.EFBIG
	}
	return nil
}

// cpuLimit enforces the process's own limit on processor time, of which it has used d by now, and before that was.
func (p *Process) cpuLimit(was, d time.Duration) error {
	l, _ := p.Rlimit(LimitCPU)
	past := func(seconds uint64) bool {
		return seconds != Unlimited && d/time.Second >= time.Duration(min(seconds, 1<<33))
	}
	switch {
	case past(l.Hard):
		p.kill(SIGKILL)
		return syscall.EINTR
	case past(l.Soft) && (was/time.Second != d/time.Second):
		p.post(SIGXCPU)
	}
	if p.isKilled() {
		return syscall.EINTR
	}
	return nil
}

// nprocs counts the processes of a user. s.mu is held.
func (s *Sandbox) nprocs(uid uint32) (n uint64) {
	for _, p := range s.procs {
		if p.Cred().UID == uid {
			n++
		}
	}
	return n
}
