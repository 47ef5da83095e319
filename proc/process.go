package proc

import (
	"context"
	"fmt"
	"io"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"agentrun.dev/vfs"
)

type state uint8

const (
	embryo  state = iota // made by Fork, not yet started
	running              // its program runs
	zombie               // has ended, its parent hasn't waited
	reaped               // gone; the number may be used again
)

// maxPid is the highest process number.
const maxPid = 1 << 22

// grace is how long a killed program may take to return before its parent is told that it has ended.
const grace = 200 * time.Millisecond

// Process is one process of a sandbox. Its own program may call all methods; other goroutines only those that say so:
// Pid, Post, Done, Status.
type Process struct {
	sb     *Sandbox
	pid    int
	parent *Process // nil for a root process; guarded by sb.mu
	pgid   int      // guarded by sb.mu, as is sid
	sid    int
	tty    *TTY // that controls the session; guarded by sb.mu, too
	start  time.Time

	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when it becomes a zombie

	fds   fdTable
	stdio [3]*description // the standard streams that a root process began with; never changed

	mu        sync.Mutex
	state     state
	status    int
	args      []string
	env       []string // exported variables, NAME=VALUE; never changed in place
	cwd       string
	umask     vfs.Mode
	cred      vfs.Cred
	disp      [MaxSignal + 1]Disposition
	pending   uint64
	rlimits   [NLimits]Rlimit
	killedBy  int
	prog      Program       // what it runs
	intr      chan struct{} // closed while a signal is pending or the process is killed
	hasSignal atomic.Bool
	stopSig   int           // the signal that stopped it, 0 when it isn't stopped
	cont      chan struct{} // closed when it is continued or killed
	news      uint8         // of a stop or continuation, for the parent's waits

	attn     atomic.Uint32 // bits: killed, stopped
	phase    atomic.Int32
	starting atomic.Bool  // its program was started and hasn't waited for anything yet
	rest     atomic.Int32 // how far a call inside Rest is; set by the program's own goroutine
	cloner   atomic.Bool  // prog is a Cloner
	limited  atomic.Bool  // writes look at rlimits

	stepped int          // since Share was last called; the program's own goroutine's
	slice   atomic.Int64 // when it went on, in nanoseconds since the sandbox was started
	owed    atomic.Int64 // nanoseconds that it has computed and not paid
	reports atomic.Bool  // it tells its processor time itself

	memMu   sync.Mutex
	memory  int64 // charged
	memOver bool  // it has ended: nothing is charged any more
	cpu     atomic.Int64

	waitMu   sync.Mutex
	children map[int]*Process // living ones and zombies not waited for
	childEnd chan struct{}    // closed and replaced when a child ends
}

// Root describes a first process, one without a parent in the sandbox.
type Root struct {
	Args  []string
	Env   []string
	Dir   string // "/" when empty
	Cred  vfs.Cred
	Files map[int]vfs.File // owned by the process from now on
	TTY   *TTY             // its controlling terminal, and what descriptors 0, 1, 2 are that Files doesn't have
}

// NewProcess makes a root process, not yet started: the leader of its own session and group. EAGAIN past the limit of
// processes, EPERM for a terminal that controls another session.
func (s *Sandbox) NewProcess(r Root) (*Process, error) {
	p := &Process{sb: s, args: r.Args, env: r.Env, cwd: r.Dir, cred: r.Cred, umask: r.Cred.Umask}
	if p.cwd == "" {
		p.cwd = "/"
	}
	p.rlimits = s.defaultRlimits()
	p.fds.limit = s.limits.Files
	if err := s.register(p, nil); err != nil {
		return nil, err
	}
	files := maps.Clone(r.Files)
	if r.TTY != nil {
		if err := p.control(r.TTY); err != nil {
			p.Abandon(0)
			return nil, err
		}
		if files == nil {
			files = make(map[int]vfs.File)
		}
		for n := range 3 {
			if files[n] == nil {
				files[n] = r.TTY.File()
			}
		}
	}
	for n, f := range files {
		d := newDescription(f)
		if n >= 0 && n < len(p.stdio) {
			p.stdio[n] = d
		}
		p.fds.set(n, d, false)
	}
	return p, nil
}

// fullFor is how long no process of a sandbox can fork that has had too many. A fork bomb whose processes start others and
// end would go on for ever at the limit, each taking the place of another: so all of them fail, and it is over.
const fullFor = 100 * time.Millisecond

// register gives p a pid and enters it into the tables, once the sandbox isn't frozen. The number of processes is
// limited: EAGAIN, as fork says.
func (s *Sandbox) register(p *Process, parent *Process) error {
	p.intr, p.done, p.start = make(chan struct{}), make(chan struct{}), s.clock()
	s.lockThawed()
	defer s.mu.Unlock()
	if s.closed {
		return syscall.ESRCH
	}
	if len(s.procs) >= s.limits.Processes {
		s.exceed("processes")
		s.full = s.age() + fullFor
		return syscall.EAGAIN
	}
	if parent != nil && s.age() < s.full {
		return syscall.EAGAIN
	}
	for s.procs[s.nextPid] != nil {
		s.nextPid = s.nextPid%maxPid + 1
	}
	if l := p.rlimits[LimitNproc].Soft; parent != nil && p.cred.UID != 0 && l < uint64(s.limits.Processes) && s.nprocs(p.cred.UID) >= l {
		return syscall.EAGAIN
	}
	p.pid, p.parent = s.nextPid, parent
	s.nextPid = s.nextPid%maxPid + 1
	if parent != nil {
		p.pgid, p.sid, p.tty = parent.pgid, parent.sid, parent.tty
	} else {
		p.pgid, p.sid = p.pid, p.pid
	}
	base := context.WithValue(s.ctx, processKey{}, p)
	p.ctx, p.cancel = context.WithCancel(base)
	s.procs[p.pid] = p
	return nil
}

type processKey struct{}

// FromContext returns the process in whose name a filesystem is called, nil outside of one.
func FromContext(ctx context.Context) *Process {
	p, _ := ctx.Value(processKey{}).(*Process)
	return p
}

// Fork makes a child that isn't started yet: a copy of the descriptors, directory, environment, umask and signals.
// Handled signals become default ones in Exec, and stay so in Start: the program sets its own.
func (p *Process) Fork() (*Process, error) {
	if err := p.gate(); err != nil {
		return nil, err
	}
	p.turn(p.sb.age())
	p.mu.Lock()
	c := &Process{sb: p.sb, args: p.args, env: p.env, cwd: p.cwd, umask: p.umask, cred: p.cred, disp: p.disp, rlimits: p.rlimits}
	p.mu.Unlock()
	c.limited.Store(p.limited.Load())
	for i, d := range c.disp {
		if d == Handle {
			c.disp[i] = Default
		}
	}
	if err := p.sb.register(c, p); err != nil {
		return nil, err
	}
	c.fds.copyFrom(&p.fds)
	p.waitMu.Lock()
	if p.children == nil {
		p.children = make(map[int]*Process)
	}
	p.children[c.pid] = c
	p.waitMu.Unlock()
	return c, nil
}

// Start runs a program in a process made by Fork or NewProcess. It returns at once.
func (p *Process) Start(prog Program) {
	p.mu.Lock()
	if p.state != embryo {
		p.mu.Unlock()
		return
	}
	p.state = running
	p.setProgram(prog)
	p.mu.Unlock()
	if !p.sb.begin() {
		p.Abandon(128 + SIGKILL)
		return
	}
	p.launch(prog)
}

// launch runs the program, which the sandbox counts already, in a goroutine of its own.
func (p *Process) launch(prog Program) {
	p.starting.Store(true)
	go func() {
		defer p.sb.end()
		p.goesOn()
		status := 126
		stop := context.AfterFunc(p.ctx, func() {
			t := time.NewTimer(grace)
			defer t.Stop()
			select {
			case <-p.done:
			case <-t.C:
				p.finish(128 + p.Killed())
			}
		})
		defer func() {
			// A defect in one program must not end its neighbours.
			if r := recover(); r != nil {
				p.panicked(r)
				status = 128 + SIGABRT
			}
			p.uncharge()
			p.pay(p.sb.age())
			p.finish(status)
			stop()
		}()
		status = prog.Run(p) & 0xff
	}()
}

// Abandon ends a process that was never started, with a status.
func (p *Process) Abandon(status int) {
	p.uncharge()
	p.finish(status & 0xff)
}

// finish makes the process a zombie, once.
func (p *Process) finish(status int) {
	p.fds.closeAll()
	p.mu.Lock()
	if p.state == zombie || p.state == reaped {
		p.mu.Unlock()
		return
	}
	if p.isKilled() {
		status = 128 + p.killedBy
	}
	p.state, p.status, p.prog = zombie, status, nil
	p.mu.Unlock()
	p.cancel()
	p.leaderEnded()
	p.orphan()
	s := p.sb
	led, signal := p.Sid() == p.pid, p.Signaled()
	s.mu.Lock()
	parent := p.parent
	if parent == nil {
		delete(s.procs, p.pid)
		if led {
			s.past = append(s.past, Past{Pid: p.pid, Status: status, Signal: signal, Ended: time.Now()})
			s.past = s.past[max(0, len(s.past)-maxPast):]
		}
	}
	s.mu.Unlock()
	close(p.done)
	if parent != nil {
		parent.childChanged()
	}
	s.noteFreeze()
}

// orphan lets go of the children: those that run go on without a parent, those that have ended are forgotten.
func (p *Process) orphan() {
	p.waitMu.Lock()
	children := p.children
	p.children = nil
	p.waitMu.Unlock()
	s := p.sb
	s.mu.Lock()
	groups := [][2]int{{p.pgid, p.sid}}
	for pid, c := range children {
		c.parent = nil
		if c.ended() {
			delete(s.procs, pid)
		} else if g := [2]int{c.pgid, c.sid}; c.pgid != p.pgid && !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	s.mu.Unlock()
	s.continueOrphans(groups)
}

func (p *Process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// panicked notes a defect in a program, with where it was.
func (p *Process) panicked(r any) {
	text := fmt.Sprintf("%v\n%s", r, debug.Stack())
	p.sb.defect.CompareAndSwap(nil, &text)
}

// Done is closed when the process has ended. Any goroutine may call it, as Status.
func (p *Process) Done() <-chan struct{} { return p.done }

// Status returns the wait status of a process that has ended.
func (p *Process) Status() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

// Signaled returns the signal that ended the process, 0 if it exited by itself.
func (p *Process) Signaled() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killedBy
}

// Step counts n steps of metered work. An error means that the process must end: it was killed, or the sandbox's budget
// is used up, which kills it with XCPU. Only the program's own goroutine calls it.
func (p *Process) Step(n int) error {
	if p.attn.Load() != 0 {
		if err := p.gate(); err != nil {
			return err
		}
	}
	if p.stepped += n; p.stepped >= shareSteps {
		p.stepped = 0
		p.Share()
	}
	if l := p.sb.limits.Steps; l > 0 && p.sb.steps.Add(int64(n)) > l {
		p.sb.exceed("steps")
		p.kill(SIGXCPU)
		return syscall.EINTR
	}
	return nil
}

// Interrupt is closed while a signal waits to be taken, or the process is killed.
func (p *Process) Interrupt() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.intr
}

// Context is done when the process is killed or has ended.
func (p *Process) Context() context.Context { return p.ctx }

// Sandbox returns the sandbox.
func (p *Process) Sandbox() *Sandbox { return p.sb }

// Pid returns the process's number in the sandbox.
func (p *Process) Pid() int { return p.pid }

// Ppid returns the parent's number; 1, an init that does nothing, adopts those without one.
func (p *Process) Ppid() int {
	p.sb.mu.Lock()
	defer p.sb.mu.Unlock()
	if p.parent == nil {
		return 1
	}
	return p.parent.pid
}

// Pgid returns the process group.
func (p *Process) Pgid() int {
	p.sb.mu.Lock()
	defer p.sb.mu.Unlock()
	return p.pgid
}

// Sid returns the session.
func (p *Process) Sid() int {
	p.sb.mu.Lock()
	defer p.sb.mu.Unlock()
	return p.sid
}

// SetPgid moves a process into a group; 0 makes it the leader of a new one.
func (p *Process) SetPgid(pgid int) {
	p.sb.mu.Lock()
	defer p.sb.mu.Unlock()
	if pgid == 0 {
		pgid = p.pid
	}
	p.pgid = pgid
}

// SetSid makes the process the leader of a new session and group.
func (p *Process) SetSid() {
	p.sb.mu.Lock()
	defer p.sb.mu.Unlock()
	p.sid, p.pgid, p.tty = p.pid, p.pid, nil
}

// Args returns the arguments; Args()[0] is the name.
func (p *Process) Args() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.args
}

// SetArgs replaces the arguments, as an embryo's before Start.
func (p *Process) SetArgs(args []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.args = args
}

// Environ returns the exported environment as NAME=VALUE. The slice must not be changed.
func (p *Process) Environ() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.env
}

// SetEnviron replaces the exported environment. The slice belongs to the process from now on.
func (p *Process) SetEnviron(env []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.env = env
}

// LookupEnv returns a variable of the environment.
func (p *Process) LookupEnv(name string) (string, bool) {
	env := p.Environ()
	for i := len(env) - 1; i >= 0; i-- {
		if len(env[i]) > len(name) && env[i][len(name)] == '=' && strings.HasPrefix(env[i], name) {
			return env[i][len(name)+1:], true
		}
	}
	return "", false
}

// Getenv returns a variable of the environment, "" when it isn't set.
func (p *Process) Getenv(name string) string {
	v, _ := p.LookupEnv(name)
	return v
}

// Umask sets the mask of new files' permissions and returns the old one.
func (p *Process) Umask(mask vfs.Mode) (old vfs.Mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old, p.umask = p.umask, mask&0o777
	p.cred.Umask = p.umask
	return old
}

// Cred returns in whose name the process acts.
func (p *Process) Cred() vfs.Cred {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cred
}

// SetCred changes in whose name the process acts; only user 0 may: EPERM.
func (p *Process) SetCred(c vfs.Cred) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cred.UID != 0 {
		return syscall.EPERM
	}
	p.cred = c
	return nil
}

// Now returns the sandbox's time in the zone that TZ names.
func (p *Process) Now() time.Time { return p.sb.clock().In(p.Location()) }

// Sleep waits; EINTR when a signal ends it.
func (p *Process) Sleep(d time.Duration) error {
	if err := p.gate(); err != nil {
		return err
	}
	return p.nap(d)
}

// SleepUntil waits up to a moment of the sandbox's clock; EINTR when a signal ends it.
func (p *Process) SleepUntil(t time.Time) error {
	if err := p.gate(); err != nil {
		return err
	}
	return p.nap(t.Sub(p.sb.clock()))
}

func (p *Process) nap(d time.Duration) error {
	w := p.waiter()
	t := time.NewTimer(d)
	defer t.Stop()
	p.enter(naps)
	defer p.leave()
	select {
	case <-t.C:
		return nil
	case <-w.intr:
		return syscall.EINTR
	}
}

type randReader struct{ sb *Sandbox }

func (r randReader) Read(p []byte) (int, error) { return r.sb.readRand(p) }

// Rand returns the sandbox's randomness.
func (p *Process) Rand() io.Reader { return randReader{p.sb} }

// Parent returns the parent, nil when there is none in the sandbox.
func (p *Process) Parent() *Process {
	p.sb.mu.Lock()
	defer p.sb.mu.Unlock()
	return p.parent
}
