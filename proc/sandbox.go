package proc

import (
	"context"
	cryptorand "crypto/rand"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/vfs"
)

// Commands finds the programs of a sandbox by name. It may be called concurrently.
type Commands interface {
	// Lookup returns the program behind a name such as "ls". A new value or one shared by all callers: Run gets the state.
	Lookup(name string) (Program, bool)
	// Names lists all names, sorted: they are the entries of /bin.
	Names() []string
}

// Limits bound what the processes of one sandbox may use. A zero field means its default.
type Limits struct {
	Processes     int           // live processes at once; 512
	Files         int           // open descriptors of one process (RLIMIT_NOFILE); 1,024
	Sockets       int           // of all processes; a connection inside of the sandbox takes two; 4,096
	OutputBytes   int64         // bytes written to streams that leave the sandbox; 1 GiB
	FileBytes     int64         // bytes written to files through descriptors; 64 GiB
	Steps         int64         // statements, loop rounds and other metered steps of all processes together; 0 means unlimited
	Depth         int           // nested function calls, sources and evals of a shell; 10,000
	Memory        int64         // bytes that one shell may keep in variables; 256 MiB
	SandboxMemory int64         // bytes that programs of all processes may have charged (Process.Charge); 2 GiB
	CPU           time.Duration // processor time that guests may use together (Process.AddCPU); 0 means unlimited
}

func (l Limits) withDefaults() Limits {
	def := func(p *int, v int) {
		if *p <= 0 {
			*p = v
		}
	}
	def64 := func(p *int64, v int64) {
		if *p <= 0 {
			*p = v
		}
	}
	def(&l.Processes, 512)
	def(&l.Files, 1024)
	def(&l.Sockets, 4096)
	def64(&l.OutputBytes, 1<<30)
	def64(&l.FileBytes, 64<<30)
	def(&l.Depth, 10000)
	def64(&l.Memory, 256<<20)
	def64(&l.SandboxMemory, 2<<30)
	return l
}

// Options describe a sandbox. Namespace and Commands are required.
type Options struct {
	Namespace *vfs.Namespace
	Commands  Commands
	Limits    Limits
	Hostname  string           // "sandbox" when empty
	Clock     func() time.Time // time.Now when nil
	Rand      io.Reader        // the system's generator when nil; read under a lock
	Services  any              // what commands may ask of whoever runs the sandbox; package command/services says of what type
	// Load returns the program of a file of another format, such as WebAssembly, by how the file begins (at most 256 bytes);
	// false if it isn't one. Process.Program asks it for executable files that don't begin with "#!".
	Load func(p *Process, file string, head []byte) (Program, bool)
}

// Sandbox is a set of processes that share files, limits, a clock and randomness. All methods may be called concurrently.
type Sandbox struct {
	ns       *vfs.Namespace
	commands Commands
	limits   Limits
	hostname string
	clock    func() time.Time
	booted   time.Time
	bootID   string    // goes with booted
	started  time.Time // by this host's monotonic clock
	ctx      context.Context
	cancel   context.CancelFunc

	services any
	load     func(p *Process, file string, head []byte) (Program, bool)

	randMu sync.Mutex
	rand   io.Reader

	output, written, steps  atomic.Int64 // used up of the limits
	memory, memoryPeak, cpu atomic.Int64
	exceeded, defect        atomic.Pointer[string]
	pipeIDs                 atomic.Uint64
	shared                  atomic.Int64 // when what was computed so far would have been by as many processors as are the sandbox's, in nanoseconds since started
	processors              int          // that it may keep busy

	cycle   atomic.Pointer[cycle]
	freezer chan struct{} // holds a token while a freeze is under way or in force
	note    chan struct{} // told of changes while a freeze is asked for
	wakes   atomic.Int64  // how often processes that weren't at rest have ended a wait
	frozen  *Frozen       // the freeze in force; guarded by mu

	mu      sync.Mutex
	procs   map[int]*Process
	past    []Past // the newest last
	nextPid int
	full    time.Duration // up to this age of the sandbox no process can fork
	closed  bool
	running int           // programs that haven't returned
	idle    chan struct{} // closed when closed and running is 0
	fifos   map[fifoKey]*pipe
	ttys    map[int]*TTY

	net loopback
}

// New returns a sandbox without processes.
func New(o Options) (*Sandbox, error) {
	if o.Namespace == nil || o.Commands == nil {
		return nil, errs.Msg(errs.Invalid, "new sandbox", "", "needs a namespace and commands")
	}
	s := &Sandbox{
		ns: o.Namespace, commands: o.Commands, limits: o.Limits.withDefaults(), hostname: o.Hostname, clock: o.Clock, rand: o.Rand,
		services: o.Services, load: o.Load,
		procs: make(map[int]*Process), nextPid: 2, fifos: make(map[fifoKey]*pipe),
	}
	s.cycle.Store(newCycle())
	s.freezer, s.note = make(chan struct{}, 1), make(chan struct{}, 1)
	if s.hostname == "" {
		s.hostname = "sandbox"
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	if s.rand == nil {
		s.rand = cryptorand.Reader
	}
	s.booted, s.started, s.processors = s.clock(), time.Now(), shareOf(runtime.GOMAXPROCS(0))
	s.bootID = s.randomUUID()
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Namespace returns the sandbox's files.
func (s *Sandbox) Namespace() *vfs.Namespace { return s.ns }

// Commands returns the sandbox's programs.
func (s *Sandbox) Commands() Commands { return s.commands }

// Services returns Options.Services.
func (s *Sandbox) Services() any { return s.services }

// Limits returns the limits in force, defaults filled in.
func (s *Sandbox) Limits() Limits { return s.limits }

// Hostname returns the sandbox's own name.
func (s *Sandbox) Hostname() string { return s.hostname }

// Now returns the sandbox's time.
func (s *Sandbox) Now() time.Time { return s.clock() }

// Uptime returns how long ago the sandbox was made.
func (s *Sandbox) Uptime() time.Duration { return s.clock().Sub(s.booted) }

// Exceeded names the limit that ended a process, or is "".
func (s *Sandbox) Exceeded() string {
	if p := s.exceeded.Load(); p != nil {
		return *p
	}
	return ""
}

// Defect tells of the first program that panicked, with its stack, or is "". It is for the operator, not for the sandbox.
func (s *Sandbox) Defect() string {
	if p := s.defect.Load(); p != nil {
		return *p
	}
	return ""
}

func (s *Sandbox) exceed(what string) { s.exceeded.CompareAndSwap(nil, &what) }

// Read fills p with the sandbox's randomness.
func (s *Sandbox) readRand(p []byte) (int, error) {
	s.randMu.Lock()
	defer s.randMu.Unlock()
	return io.ReadFull(s.rand, p)
}

// Processes returns the living processes and zombies, by ascending pid.
func (s *Sandbox) Processes() []*Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sorted()
}

// Lookup returns the process with a pid, nil when there is none.
func (s *Sandbox) Lookup(pid int) *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.procs[pid]
}

// begin counts a program that is about to run; false when the sandbox is closed.
func (s *Sandbox) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running++
	return true
}

func (s *Sandbox) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running--; s.running == 0 && s.closed {
		close(s.idle)
	}
}

// Close kills every process and waits for their programs to return. Programs that ignore their context hold it up
// until ctx is done.
func (s *Sandbox) Close(ctx context.Context) error {
	s.mu.Lock()
	if !s.closed {
		s.closed, s.idle = true, make(chan struct{})
		if s.running == 0 {
			close(s.idle)
		}
	}
	ps, idle, f := s.sorted(), s.idle, s.frozen
	s.mu.Unlock()
	for _, p := range ps {
		p.kill(SIGKILL)
	}
	s.cancel()
	if f != nil {
		f.Thaw()
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return errs.New(errs.Canceled, "close sandbox", "", ctx.Err())
	}
}
