package wasm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"sync"
	"syscall"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// LoaderOptions bound what a Loader takes. The zero value works.
type LoaderOptions struct {
	Module int64 // bytes of one module; 64 MiB
	Memory int64 // bytes of linear memory of one process, at most the Runtime's; 0 means that
	Kept   int64 // bytes of modules whose code is kept although nobody runs them; 64 MiB
}

// codeFactor is how much memory a module's code takes, in bytes for each of the module's: what a process is charged for while it runs one.
const codeFactor = 8

// maxTurns is how many processes may read or compile a module at once; a compilation whose process was killed goes on until its end.
const maxTurns = 16

// Loader runs files of sandboxes that are WebAssembly modules: Load is for proc.Options.Load. One Loader serves any number of sandboxes. A
// module is compiled once, whoever has the file, and its code dropped when it hasn't been run for long. The Runtime should be
// the Loader's own: what agents compile doesn't keep others waiting then.
type Loader struct {
	runtime func() (*Runtime, error)
	o       LoaderOptions
	turns   chan struct{} // one for each process that reads or waits for a compilation

	mu    sync.Mutex
	known map[[32]byte]*loaded
	idle  []*loaded // nobody runs them; the longest unused first
	bytes int64     // of these
}

// loaded is a module of a Loader.
type loaded struct {
	key  [32]byte
	size int64
	done chan struct{} // closed when it is compiled, or err is set
	m    *Module
	err  error
	uses int // by processes and the compilation; guarded by Loader.mu
}

// NewLoader returns a Loader. runtime is called when the first module is run.
func NewLoader(runtime func() (*Runtime, error), o LoaderOptions) *Loader {
	if o.Module <= 0 {
		o.Module = 64 << 20
	}
	if o.Kept <= 0 {
		o.Kept = 64 << 20
	}
	return &Loader{runtime: runtime, o: o, turns: make(chan struct{}, maxTurns), known: make(map[[32]byte]*loaded)}
}

// Beginnings of files: of a module, and of what the component model puts around modules.
var (
	moduleMagic    = []byte("\x00asm\x01\x00\x00\x00")
	componentMagic = []byte("\x00asm\x0d\x00\x01\x00")
)

// Load returns the program behind a file that begins as a module does. Nothing is read or compiled before it runs: then it is the process that waits, is
// charged and can be killed. What turns out to be no module ends with status 126.
func (l *Loader) Load(p *proc.Process, file string, head []byte) (proc.Program, bool) {
	if !bytes.HasPrefix(head, moduleMagic) && !bytes.HasPrefix(head, componentMagic) {
		return nil, false
	}
	if !path.IsAbs(file) {
		file = path.Join(p.Getwd(), file)
	}
	return &program{l, file}, true
}

// program is one file's.
type program struct {
	l    *Loader
	file string
}

// Run implements proc.Program.
func (g *program) Run(p *proc.Process) int {
	name := path.Base(g.file)
	if args := p.Args(); len(args) > 0 {
		name = args[0]
	}
	u, err := g.l.take(p, g.file, name)
	if err != nil {
		if p.Killed() != 0 {
			return 128 + p.Killed()
		}
		fmt.Fprintf(p.Stderr(), "%s: cannot execute binary file: %s\n", name, reason(err))
		return 126
	}
	defer g.l.give(u)
	if err := p.Charge(codeFactor * u.size); err != nil {
		fmt.Fprintf(p.Stderr(), "%s: cannot allocate memory\n", name)
		return 126
	}
	defer p.Charge(-codeFactor * u.size)
	return u.m.Run(p, Config{Memory: g.l.o.Memory, GuessPaths: true})
}

// reason is what the user is told: the cause without what he knows.
func reason(err error) string {
	var e *errs.Error
	if errors.As(err, &e) && e.Err != nil {
		err = e.Err
	}
	return err.Error()
}

// take returns a file's module, compiled, to be given back.
func (l *Loader) take(p *proc.Process, file, name string) (*loaded, error) {
	r, err := l.runtime()
	if err != nil {
		return nil, err
	}
	select {
	case l.turns <- struct{}{}:
	case <-p.Context().Done():
		return nil, p.Context().Err()
	}
	code, err := l.read(p, file)
	if err == nil && bytes.HasPrefix(code, componentMagic) {
		err = errors.New("it is a component; modules of WASI preview 1 can be run")
	}
	if err != nil {
		<-l.turns
		return nil, err
	}
	u := l.use(code, name, r)
	start := time.Now()
	select {
	case <-u.done:
	case <-p.Context().Done():
		err = p.Context().Err()
	}
	p.AddCPU(time.Since(start))
	if err == nil {
		err = u.err
	}
	if err != nil {
		l.give(u)
		return nil, err
	}
	return u, nil
}

// use returns a module's entry, in use. If it is new, the module is compiled in the background, which is a use of its own and keeps the turn.
func (l *Loader) use(code []byte, name string, r *Runtime) *loaded {
	key := sha256.Sum256(code)
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.known[key]
	if u != nil {
		<-l.turns
		u.uses++
		l.idle = slices.DeleteFunc(l.idle, func(v *loaded) bool {
			if v == u {
				l.bytes -= u.size
			}
			return v == u
		})
		return u
	}
	u = &loaded{key: key, size: int64(len(code)), uses: 2, done: make(chan struct{})}
	l.known[key] = u
	compile := func() {
		m, err := r.Compile(context.Background(), code, CompileOptions{Name: name})
		l.compiled(u, m, err)
	}
	if !r.background(compile) {
		go l.compiled(u, nil, errs.Msg(errs.Unavailable, "compile", name, "the runtime is closed"))
	}
	return u
}

func (l *Loader) compiled(u *loaded, m *Module, err error) {
	l.mu.Lock()
	u.m, u.err = m, err
	if err != nil {
		delete(l.known, u.key)
	}
	l.mu.Unlock()
	close(u.done)
	<-l.turns
	l.give(u)
}

// give lets go of a module. It is kept for the next who wants it, as long as there is room.
func (l *Loader) give(u *loaded) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if u.uses--; u.uses > 0 || u.err != nil {
		return
	}
	l.idle = append(l.idle, u)
	for l.bytes += u.size; l.bytes > l.o.Kept && len(l.idle) > 0; {
		old := l.idle[0]
		l.idle = l.idle[1:]
		l.bytes -= old.size
		delete(l.known, old.key)
		old.m.Discard()
	}
}

// read reads a file that the process may execute, whether or not it may read it.
func (l *Loader) read(p *proc.Process, file string) ([]byte, error) {
	ctx := p.Context()
	f, err := p.Sandbox().Namespace().Open(ctx, vfs.Cred{}, "/", file, syscall.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	a, err := f.Attr()
	switch {
	case err != nil:
		return nil, err
	case !a.Mode.IsRegular():
		return nil, syscall.EACCES
	case a.Size > l.o.Module:
		return nil, fmt.Errorf("%d bytes are too many: %d are allowed", a.Size, l.o.Module)
	}
	if err := p.Charge(a.Size); err != nil {
		return nil, err
	}
	defer p.Charge(-a.Size)
	code := make([]byte, a.Size)
	for n := 0; n < len(code); {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		k, err := f.ReadAt(code[n:min(n+1<<20, len(code))], int64(n))
		if n += k; err == io.EOF || err == nil && k == 0 {
			code = code[:n] // shorter than it was
			break
		} else if err != nil {
			return nil, err
		}
	}
	return code, nil
}
