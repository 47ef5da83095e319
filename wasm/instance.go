package wasm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"agentrun.dev/errs"
	"agentrun.dev/proc"
	rewrite "agentrun.dev/wasm/binary"
)

// Instance is a running module, bound to a process. It is used by one goroutine at a time: the process's own program.
type Instance struct {
	m       *Module
	p       *proc.Process
	cfg     Config
	mod     api.Module
	mem     *memory
	meter   api.MutableGlobal // nil without safe points
	globals []api.MutableGlobal
	initial []uint64 // the globals' first values
	calls   map[string]*call
	depth   int // nested calls
	end     error
	running *call    // the outermost call in progress
	saved   []uint64 // the globals before it, with Config.Quiesce
	broken  bool     // it was ended in the middle: memory and globals are of no use
	ctx     *callContext

	ticking           // the meter's state
	host    hostState // what host functions keep
	snap    *Snapshot // what its memory is mapped from, if any
	seq     uint64    // at which change of its extents
	mapped  []extent  // which were then
	clean   bool      // memory is just that

	pending  pending   // the host function that the guest rests in
	tickArg  [1]uint64 // of the tick that it rests in
	resuming *Live     // what Continue is to put in place
}

// call is an exported function ready to be called.
type call struct {
	f       api.Function
	busy    bool
	results int
	buf     []uint64
}

// raw makes an instance with its first memory and globals, without data; nobody is bound to it.
func (m *Module) raw() (in *Instance, err error) {
	mem, err := newMemory(uint64(m.r.o.Memory))
	if err != nil {
		return nil, errs.New(errs.Limit, "instantiate", m.o.Name, err)
	}
	if err := m.r.takeMaps(mem.maps); err != nil {
		mem.maps = 0
		mem.Free()
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil { // what the engine does when it is denied memory
			err = errs.Msg(errs.Limit, "instantiate", m.o.Name, fmt.Sprint(r))
		}
		if err != nil {
			m.r.maps.Add(-int64(mem.maps))
			mem.Free()
		}
	}()
	ctx := experimental.WithMemoryAllocator(context.Background(), allocator{mem})
	mod, err := m.r.rt.InstantiateModule(ctx, m.code, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, errs.New(errs.Invalid, "instantiate", m.o.Name, firstLine(err))
	}
	in = &Instance{m: m, mod: mod, mem: mem, calls: make(map[string]*call)}
	in.ctx = &callContext{context.Background(), in}
	if g, ok := mod.ExportedGlobal(rewrite.MeterGlobal).(api.MutableGlobal); ok {
		in.meter = g
	}
	for _, g := range m.info.Globals {
		mg := mod.ExportedGlobal(g.Export).(api.MutableGlobal)
		in.globals = append(in.globals, mg)
		in.initial = append(in.initial, mg.Get())
	}
	m.r.mu.Lock()
	defer m.r.mu.Unlock()
	if m.r.closed {
		mod.Close(ctx)
		return nil, errs.Msg(errs.Unavailable, "instantiate", m.o.Name, "the runtime is closed")
	}
	m.r.all[in] = struct{}{}
	m.hold()
	return in, nil
}

type allocator struct{ m *memory }

func (a allocator) Allocate(_, _ uint64) linearMemory { return a.m }

// Instantiate makes an instance that is bound to p, and runs what the module wants to be run first: its start function, and _initialize
// of a reactor. Errors: of the kinds Limit (memory), Invalid (data that doesn't fit), and those of Call.
func (m *Module) Instantiate(p *proc.Process, c Config) (*Instance, error) {
	in, err := m.raw()
	if err != nil {
		return nil, err
	}
	if err := in.bind(p, c); err != nil {
		in.destroy()
		return nil, err
	}
	for _, d := range m.info.Data {
		b := in.mem.at(d.Offset, uint32(len(d.Bytes)))
		if b == nil && len(d.Bytes) > 0 || uint64(d.Offset) > in.mem.size {
			in.destroy()
			return nil, errs.Msg(errs.Invalid, "instantiate", m.o.Name, "data outside of memory")
		}
		copy(b, d.Bytes)
	}
	start := []string{"_initialize"}
	if m.info.HasStart {
		start = []string{rewrite.StartExport, "_initialize"}
	}
	for _, name := range start {
		if in.mod.ExportedFunction(name) == nil {
			continue
		}
		if _, err := in.Call(p.Context(), name); err != nil {
			in.destroy()
			return nil, err
		}
	}
	return in, nil
}

// Bind binds an idle instance to another process, which is charged for its memory from now on. What it had open stays the old one's.
func (in *Instance) Bind(p *proc.Process) error { return in.bind(p, in.cfg) }

// Configure replaces how an idle instance runs.
func (in *Instance) Configure(c Config) error { return in.bind(in.p, c) }

func (in *Instance) bind(p *proc.Process, c Config) error {
	limit := in.m.r.o.Memory
	if c.Memory > 0 {
		limit = min(limit, c.Memory)
	}
	if err := in.mem.bind(p, uint64(limit)); err != nil {
		return errs.New(errs.Limit, "instantiate", in.m.o.Name, err)
	}
	if in.p != p {
		in.unlock()
		in.host.forget()
	}
	in.p, in.cfg = p, c
	return nil
}

// Process returns the process that the instance is bound to.
func (in *Instance) Process() *proc.Process { return in.p }

// Memory returns n bytes of the guest's memory, to be read and written while the instance is idle; nil if they aren't all there. The slice is
// of no use after the next call, snapshot or Close.
func (in *Instance) Memory(ptr, n uint32) []byte { return in.mem.at(ptr, n) }

// Close ends the instance, which must be idle and can't be used any more. One that came from a snapshot goes back to the pool.
func (in *Instance) Close() { in.recycle() }

// destroy frees an instance; a second call does nothing.
func (in *Instance) destroy() {
	r := in.m.r
	r.mu.Lock()
	_, known := r.all[in]
	delete(r.all, in)
	r.mu.Unlock()
	if !known {
		return
	}
	in.unlock()
	in.host.timer.stop()
	give(in.mapped)
	in.mapped = nil
	in.mem.unbind()
	in.mod.Close(context.Background())
	in.m.release()
	in.mem.Free() // where the module has no memory of its own nobody did
	r.maps.Add(-int64(in.mem.maps))
	in.p, in.ctx = nil, nil
}

// Call calls an exported function. It returns when the function returns, traps, ends itself or its process is killed: *TrapError, *ExitError,
// *KilledError, or ctx's error. After an error the instance can only be closed, but for ExitError with Config.Quiesce.
func (in *Instance) Call(ctx context.Context, name string, args ...uint64) ([]uint64, error) {
	if in.broken || in.ctx == nil {
		return nil, errs.Msg(errs.Invalid, "call", name, "the instance has ended")
	}
	c, err := in.function(name)
	if err != nil {
		return nil, err
	}
	def := c.f.Definition()
	if len(args) != len(def.ParamTypes()) {
		return nil, errs.Msg(errs.Invalid, "call", name, fmt.Sprintf("takes %d arguments", len(def.ParamTypes())))
	}
	c.results = len(def.ResultTypes())
	if n := max(len(args), c.results); len(c.buf) < n {
		c.buf = make([]uint64, n)
	}
	copy(c.buf, args)
	saved := in.saved
	if in.saved = nil; in.cfg.Quiesce {
		in.saved = in.readGlobals()
	}
	defer func() { in.saved = saved }()
	return in.run(ctx, c, in.ctx)
}

// run does a call, with the context for host functions, which is in.ctx or one made of it.
func (in *Instance) run(ctx context.Context, c *call, host context.Context) ([]uint64, error) {
	outer := in.ctx.Context
	in.ctx.Context = ctx
	c.busy = true
	if in.depth == 0 {
		in.running = c
	}
	in.enter()
	err := c.f.CallWithStack(host, c.buf)
	in.leave()
	if in.depth == 0 {
		in.running = nil
	}
	c.busy = false
	in.ctx.Context = outer
	if err == nil {
		return c.buf[:c.results:c.results], nil
	}
	err = in.ended(err)
	var exit *ExitError
	if errors.As(err, &exit) && in.cfg.Quiesce {
		in.writeGlobals(in.saved)
		return nil, err
	}
	in.broken = true
	return nil, err
}

// function finds an exported function. Those that are called again and again are kept, with the stack that they have grown.
func (in *Instance) function(name string) (*call, error) {
	if c := in.calls[name]; c != nil && !c.busy {
		return c, nil
	}
	f := in.mod.ExportedFunction(name)
	if f == nil {
		return nil, errs.Msg(errs.NotFound, "call", name, "not exported by "+in.m.o.Name)
	}
	c := &call{f: f}
	if in.calls[name] == nil {
		in.calls[name] = c
	}
	return c, nil
}

func (in *Instance) readGlobals() []uint64 {
	out := make([]uint64, len(in.globals))
	for i, g := range in.globals {
		out[i] = g.Get()
	}
	return out
}

func (in *Instance) writeGlobals(v []uint64) {
	for i, g := range in.globals {
		g.Set(v[i])
	}
}

// ended says why a call ended.
func (in *Instance) ended(err error) error {
	if in.end != nil {
		end := in.end
		in.end = nil
		return end
	}
	var defect runtime.Error
	if errors.As(err, &defect) { // a mistake of ours in a host function: for the process's owner to see
		panic(err)
	}
	reason, stack, _ := strings.Cut(err.Error(), "\n")
	reason = strings.TrimPrefix(reason, "wasm error: ")
	stack = strings.ReplaceAll(strings.TrimPrefix(stack, "wasm stack trace:\n"), "\t", "")
	return &TrapError{reason, stack}
}

// stop ends the call from within a host function.
func (in *Instance) stop(why error) {
	in.end = why
	panic(sys.NewExitError(1)) // the engine passes this one on without formatting it
}

// Run runs a command from its beginning to its end, as a process's program does, and returns its exit status: the command's own, TrapStatus
// after a trap, 126 if it can't be started. What went wrong is said on descriptor 2.
func (m *Module) Run(p *proc.Process, c Config) int {
	name := m.o.Name
	if args := p.Args(); len(args) > 0 {
		name = args[0]
	}
	fail := func(status int, err error) int {
		fmt.Fprintf(p.Stderr(), "%s: %v\n", name, err)
		return status
	}
	if !m.Exports("_start") {
		return fail(126, errors.New("not a command: exports no _start"))
	}
	in, err := m.Instantiate(p, c)
	if err != nil {
		return fail(126, err)
	}
	return p.RunAs(in.Task("_start", m.ended))
}

// ended makes an exit status of how a command's call ended.
func (m *Module) ended(p *proc.Process, _ []uint64, err error) int {
	var exit *ExitError
	var trap *TrapError
	var killed *KilledError
	var other *ExecError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.Status
	case errors.As(err, &other):
		return other.Run(p)
	case errors.As(err, &killed):
		return 128 + killed.Signal
	}
	name := m.o.Name
	if args := p.Args(); len(args) > 0 {
		name = args[0]
	}
	fmt.Fprintf(p.Stderr(), "%s: %v\n", name, err)
	if errors.As(err, &trap) {
		return TrapStatus
	}
	return 126
}

// takeMaps reserves mappings.
func (r *Runtime) takeMaps(n int) error {
	if r.maps.Add(int64(n)) > int64(r.o.Mappings) {
		r.maps.Add(-int64(n))
		return errs.New(errs.Limit, "instantiate", "memory mappings", syscall.ENOMEM)
	}
	return nil
}

// ticking is what the meter knows about the call in progress.
type ticking struct {
	fuel     int32
	stack    int64         // granted to the call, bytes
	stackPay int64         // of it charged to the process
	last     time.Duration // the last time that was looked at, since epoch
	slow     time.Duration // the last time that all was looked after
	cpu      time.Duration // the thread's clock then
}

// Ended returns the exit status of a process whose live instance ended a call with an error, and says on descriptor 2 what
// only the host knows: fatal is how the guest's own interpreter words a trap.
func Ended(p *proc.Process, err error, fatal string) int {
	var exit *ExitError
	var trap *TrapError
	var killed *KilledError
	var other *ExecError
	switch {
	case errors.As(err, &exit):
		return exit.Status
	case errors.As(err, &other):
		return other.Run(p)
	case errors.As(err, &killed):
		return 128 + killed.Signal
	case errors.As(err, &trap):
		fmt.Fprintf(p.Stderr(), "%s: %v\n", fatal, err)
		return TrapStatus
	}
	fmt.Fprintf(p.Stderr(), "%s: %v\n", p.Args()[0], err)
	return 126
}
