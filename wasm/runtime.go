package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"agentrun.dev/errs"
	rewrite "agentrun.dev/wasm/binary"
)

type linearMemory = experimental.LinearMemory

// Runtime is what guests of a host process share. All methods may be called concurrently.
type Runtime struct {
	o     Options
	rt    wazero.Runtime
	cache wazero.CompilationCache
	busy  sync.WaitGroup // compilations and fillers of pools
	slots chan struct{}  // one for each compilation at a time
	maps  atomic.Int64   // mappings in use

	locks  locks
	layout atomic.Pointer[engineLayout] // of the engine's types, once it is known

	mu      sync.Mutex
	closed  bool
	modules map[[32]byte]*Module
	all     map[*Instance]struct{}
}

// New returns a Runtime.
func New(o Options) (*Runtime, error) {
	r := &Runtime{o: o.withDefaults(), slots: make(chan struct{}, 1), modules: make(map[[32]byte]*Module), all: make(map[*Instance]struct{})}
	ctx := context.Background()
	features := api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall | experimental.CoreFeaturesExtendedConst | experimental.CoreFeaturesExceptionHandling
	c := wazero.NewRuntimeConfigCompiler().WithCoreFeatures(features).WithDebugInfoEnabled(false)
	if o.CacheDir != "" {
		if err := privateDir(o.CacheDir); err != nil {
			return nil, errs.New(errs.Denied, "wasm cache", o.CacheDir, err)
		}
		cache, err := wazero.NewCompilationCacheWithDir(o.CacheDir)
		if err != nil {
			return nil, errs.New(errs.Other, "wasm cache", o.CacheDir, err)
		}
		r.cache, c = cache, c.WithCompilationCache(cache)
	}
	r.rt = wazero.NewRuntimeWithConfig(ctx, c)
	for _, m := range hostModules() {
		b := r.rt.NewHostModuleBuilder(m.name)
		for _, f := range m.functions {
			b.NewFunctionBuilder().WithGoModuleFunction(f.wrap(), valueTypes(f.params), valueTypes(f.results)).Export(f.name)
		}
		if _, err := b.Instantiate(ctx); err != nil {
			r.rt.Close(ctx)
			return nil, errs.New(errs.Other, "wasm runtime", m.name, err)
		}
	}
	return r, nil
}

// privateDir makes a directory that nobody else can write to.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	switch {
	case !fi.IsDir():
		return syscall.ENOTDIR
	case !ok || int(st.Uid) != os.Geteuid():
		return fmt.Errorf("belongs to another user")
	case fi.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others may write to it (mode %#o)", fi.Mode().Perm())
	}
	return nil
}

// pruneCache removes the oldest files of a cache until it is no larger than limit. What can't be removed stays: a cache is no more than that.
func pruneCache(dir string, limit int64) {
	type entry struct {
		name string
		size int64
		time time.Time
	}
	var all []entry
	var sum int64
	filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if fi, err := d.Info(); err == nil {
			all = append(all, entry{name, fi.Size(), fi.ModTime()})
			sum += fi.Size()
		}
		return nil
	})
	slices.SortFunc(all, func(a, b entry) int { return a.time.Compare(b.time) })
	for _, e := range all {
		if sum <= limit {
			return
		}
		if os.Remove(e.name) == nil {
			sum -= e.size
		}
	}
}

// Close ends the Runtime and frees all memory. Instances must be idle; they can't be used any more.
func (r *Runtime) Close() error {
	r.mu.Lock()
	r.closed = true
	all := slices.Collect(maps.Keys(r.all))
	r.mu.Unlock()
	r.busy.Wait()
	for _, in := range all {
		in.destroy()
	}
	r.mu.Lock()
	modules := slices.Collect(maps.Values(r.modules))
	r.mu.Unlock()
	for _, m := range modules {
		m.drain()
	}
	ctx := context.Background()
	err := r.rt.Close(ctx)
	if r.cache != nil {
		err = r.cache.Close(ctx)
	}
	return err
}

// Module is a compiled program. It is shared by all who compile the same bytes with the same options, and lives as long as the Runtime
// unless Discard is called.
type Module struct {
	r    *Runtime
	o    CompileOptions
	key  [32]byte
	done chan struct{} // closed when compiled, or err is set
	err  error
	info *rewrite.Module
	code wazero.CompiledModule

	mu      sync.Mutex
	ready   []*Instance // idle; nobody is bound to them
	filling bool        // a goroutine makes more
	drained bool
	native  machineCode
	uses    int  // instances, and calls that were captured
	dropped bool // its code goes with the last use
}

// Compile rewrites and compiles a module, once in the life of the Runtime; with a CacheDir machine code is compiled once at all.
// A caller that gives up (ctx) leaves the compilation to the others. Errors: errs.Invalid for what isn't a module, errs.Unsupported for one that
// can't be run here, errs.TooLarge, errs.Unavailable after Close.
func (r *Runtime) Compile(ctx context.Context, wasm []byte, o CompileOptions) (*Module, error) {
	key := moduleKey(wasm, o)
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil, errs.Msg(errs.Unavailable, "compile", o.Name, "the runtime is closed")
	}
	m := r.modules[key]
	if m == nil {
		m = &Module{r: r, o: o, key: key, done: make(chan struct{})}
		r.modules[key] = m
		r.busy.Add(1)
		go m.compile(wasm)
	}
	r.mu.Unlock()
	select {
	case <-m.done:
		if m.err != nil {
			return nil, m.err
		}
		return m, nil
	case <-ctx.Done():
		return nil, errs.New(errs.Canceled, "compile", o.Name, ctx.Err())
	}
}

// moduleKey identifies a module as it is compiled.
func moduleKey(wasm []byte, o CompileOptions) (key [32]byte) {
	h := sha256.New()
	h.Write(wasm)
	for _, name := range slices.Sorted(maps.Keys(o.Exports)) {
		h.Write(binary.LittleEndian.AppendUint32([]byte(name+"\x00"), o.Exports[name]))
	}
	fmt.Fprint(h, o.Exceptions, o.NoSafePoints, formatVersion)
	h.Sum(key[:0])
	return key
}

// compile does it, one module at a time: the engine uses all processors for each.
func (m *Module) compile(wasm []byte) {
	r := m.r
	defer r.busy.Done()
	defer close(m.done)
	r.slots <- struct{}{}
	defer func() { <-r.slots }()
	stop := m.progress()
	defer stop()
	err := func() (err error) {
		defer func() {
			if p := recover(); p != nil { // a defect of the compiler must not end the host
				err = errs.Msg(errs.Unsupported, "compile", m.o.Name, fmt.Sprintf("compiler failed: %v", p))
			}
		}()
		m.info, err = rewrite.Rewrite(wasm, rewrite.Options{Exports: m.o.Exports, Exceptions: m.o.Exceptions, NoSafePoints: m.o.NoSafePoints})
		if err != nil {
			return err
		}
		if err := m.check(); err != nil {
			return err
		}
		ctx := experimental.WithCompilationWorkers(context.Background(), runtime.GOMAXPROCS(0))
		m.code, err = r.rt.CompileModule(ctx, m.info.Wasm)
		if err != nil {
			return errs.New(errs.Invalid, "compile", m.o.Name, firstLine(err))
		}
		m.info.Wasm = nil
		if r.o.CacheDir != "" {
			pruneCache(r.o.CacheDir, r.o.CacheBytes)
		}
		return nil
	}()
	if err != nil {
		m.err = err
		r.mu.Lock()
		delete(r.modules, m.key)
		r.mu.Unlock()
	}
}

// check tells of imports that nobody offers, before time goes into compiling.
func (m *Module) check() error {
	if min := int64(m.info.MemoryMin) * pageSize; min > m.r.o.Memory {
		return errs.Msg(errs.TooLarge, "compile", m.o.Name, fmt.Sprintf("needs %d bytes of memory, %d are allowed", min, m.r.o.Memory))
	}
	for _, im := range m.info.Imports {
		host := m.r.rt.Module(im.Module)
		if host == nil || host.ExportedFunctionDefinitions()[im.Name] == nil {
			return errs.Msg(errs.Unsupported, "compile", m.o.Name, fmt.Sprintf("nothing here offers %s.%s", im.Module, im.Name))
		}
	}
	return nil
}

// progress tells about long compilations until the returned function is called.
func (m *Module) progress() (stop func()) {
	tell := m.r.o.Progress
	if tell == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	start := time.Now()
	go func() {
		defer close(ended)
		t := time.NewTicker(time.Second)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				tell(m.o.Name, time.Since(start))
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

// Exports tells whether the module exports a function of this name.
func (m *Module) Exports(name string) bool {
	kind, ok := m.info.Exports[name]
	return ok && kind == 0
}

// Discard forgets the module and frees its machine code as soon as no instance is left, nor a call that was captured. Nobody may make new ones but of
// such calls.
func (m *Module) Discard() {
	m.r.mu.Lock()
	if m.r.modules[m.key] == m {
		delete(m.r.modules, m.key)
	}
	m.r.mu.Unlock()
	m.hold()
	m.mu.Lock()
	m.dropped = true
	m.mu.Unlock()
	m.drain()
	m.release()
}

// hold keeps the module's code until release.
func (m *Module) hold() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uses++
}

func (m *Module) release() {
	m.mu.Lock()
	m.uses--
	last := m.uses == 0 && m.dropped
	m.mu.Unlock()
	if last {
		m.code.Close(context.Background())
	}
}

func firstLine(err error) error {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("%s", line)
}

func valueTypes(s string) []api.ValueType {
	out := make([]api.ValueType, len(s))
	for i, c := range s {
		out[i] = api.ValueTypeI32
		if c == 'I' {
			out[i] = api.ValueTypeI64
		}
	}
	return out
}
