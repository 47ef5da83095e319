package binary

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentrun.dev/errs"
)

// Section ids.
const (
	secCustom = iota
	secType
	secImport
	secFunction
	secTable
	secMemory
	secGlobal
	secExport
	secStart
	secElement
	secCode
	secData
	secDataCount
	secTag
	sections
)

// order of the sections in a module; custom ones are dropped.
var order = [sections]int{
	secType: 1, secImport: 2, secFunction: 3, secTable: 4, secMemory: 5, secTag: 6, secGlobal: 7, secExport: 8, secStart: 9,
	secElement: 10, secDataCount: 11, secCode: 12, secData: 13,
}

type funcType struct{ params, results []byte }

// constant is the value of a global that another constant expression may use.
type constant struct {
	v     uint32
	known bool
}

type rewriter struct {
	o      Options
	m      *Module
	secs   [sections]*reader
	out    [sections][]byte
	types  []funcType
	newSig [][]byte       // encoded types that are added
	sigs   map[string]int // where they are
	tick   uint32         // the function index of tick, which all the module's own functions follow

	imports, funcs      uint32 // imported functions; all functions of the original
	funcTypes           []uint32
	importTypes         []funcType
	tables, mems, tags  uint32
	globals             []constant
	exports             []byte
	exported            int
	helpers             [2]int // index among the added functions of fill and copy; -1
	added               [][]byte
	addedTypes          []uint32
	data                uint32
	usesData, dataCount bool
}

// Rewrite reads a module and returns what the runtime compiles. Errors are errs.Error: Invalid for what isn't a module, Unsupported for
// what is one that can't be run here, TooLarge.
func Rewrite(wasm []byte, o Options) (*Module, error) {
	if len(wasm) > MaxSize {
		return nil, errs.Msg(errs.TooLarge, "wasm", "", fmt.Sprintf("%d bytes are more than %d", len(wasm), MaxSize))
	}
	if !bytes.HasPrefix(wasm, []byte("\x00asm\x01\x00\x00\x00")) {
		return nil, errs.Msg(errs.Invalid, "wasm", "", "not a WebAssembly 1.0 module")
	}
	w := &rewriter{o: o, m: &Module{Exports: make(map[string]byte)}, sigs: make(map[string]int), helpers: [2]int{-1, -1}}
	if err := w.split(wasm); err != nil {
		return nil, err
	}
	steps := []struct {
		id int
		do func(*reader)
	}{
		{secType, w.typeSection}, {secImport, w.importSection}, {secFunction, w.functionSection}, {secTable, w.tableSection},
		{secMemory, w.memorySection}, {secTag, w.tagSection}, {secGlobal, w.globalSection}, {secExport, w.exportSection},
		{secStart, w.startSection}, {secElement, w.elementSection}, {secDataCount, w.dataCountSection}, {secCode, w.codeSection},
		{secData, w.dataSection},
	}
	for _, s := range steps {
		r := w.secs[s.id]
		if r == nil {
			r = &reader{b: []byte{0}, at: len(wasm)} // as if it were there, and empty
			if s.id == secStart || s.id == secDataCount {
				continue
			}
		}
		s.do(r)
		if r.err == nil && !r.end() {
			r.fail("%d bytes too many in section %d", len(r.b)-r.pos, s.id)
		}
		if r.err != nil {
			return nil, r.err
		}
	}
	w.assemble()
	return w.m, nil
}

func unsupported(format string, args ...any) error {
	return errs.Msg(errs.Unsupported, "wasm", "", fmt.Sprintf(format, args...))
}

// split finds the sections.
func (w *rewriter) split(wasm []byte) error {
	r := &reader{b: wasm, pos: 8}
	last := 0
	for !r.end() {
		id := r.byte()
		at := r.pos
		body := r.bytes(r.u32())
		if r.err != nil {
			return r.err
		}
		switch {
		case id == secCustom:
			continue
		case id >= sections:
			r.fail("unknown section %d", id)
			return r.err
		case order[id] <= last:
			r.fail("section %d is out of order", id)
			return r.err
		}
		last = order[id]
		w.secs[id] = &reader{b: body, at: at}
	}
	return nil
}

func (w *rewriter) typeSection(r *reader) {
	n := r.count()
	if n > MaxTypes {
		r.fail("%d types are more than %d", n, MaxTypes)
		return
	}
	vector := func() []byte {
		k := r.count()
		if k > maxParams {
			r.fail("%d parameters or results are more than %d", k, maxParams)
			return nil
		}
		start := r.pos
		for range k {
			r.valueType()
		}
		return r.b[start:r.pos]
	}
	for range n {
		if form := r.byte(); form != 0x60 && r.err == nil {
			r.err = unsupported("type form %#x", form)
			return
		}
		p := vector()
		w.types = append(w.types, funcType{p, vector()})
		if r.err != nil {
			return
		}
	}
	w.out[secType] = r.b
}

// signature returns the index of a function type that is added.
func (w *rewriter) signature(params, results []byte) uint32 {
	e := append(putU32([]byte{0x60}, uint32(len(params))), params...)
	e = append(putU32(e, uint32(len(results))), results...)
	i, ok := w.sigs[string(e)]
	if !ok {
		i = len(w.newSig)
		w.newSig = append(w.newSig, e)
		w.sigs[string(e)] = i
	}
	return uint32(len(w.types) + i)
}

func (w *rewriter) typeIndex(r *reader) uint32 {
	i := r.u32()
	if int(i) >= len(w.types) {
		r.fail("no type %d", i)
		return 0
	}
	return i
}

// limits reads a minimum and maximum.
func limits(r *reader) (lo, hi uint32, bounded bool) {
	flag := r.byte()
	if flag > 1 {
		if r.err == nil {
			r.err = unsupported("shared or 64-bit memories and tables")
		}
		return 0, 0, false
	}
	lo = r.u32()
	if flag == 1 {
		if hi = r.u32(); hi < lo {
			r.fail("maximum %d is less than minimum %d", hi, lo)
		}
	}
	return lo, hi, flag == 1
}

func (w *rewriter) importSection(r *reader) {
	n := r.count()
	var body []byte
	for range n {
		start := r.pos
		im := Import{Module: r.name(), Name: r.name(), Kind: r.byte()}
		switch im.Kind {
		case 0:
			if i := w.typeIndex(r); r.err == nil {
				w.importTypes = append(w.importTypes, w.types[i])
			}
			w.imports++
		default:
			// Nothing offers them; and their state would be hidden from us.
			if r.err == nil {
				r.err = unsupported("import of %s.%s: only functions can be imported", im.Module, im.Name)
			}
		}
		if strings.HasPrefix(im.Module, Prefix) {
			r.fail("import from %q", im.Module)
		}
		if r.err != nil {
			return
		}
		w.m.Imports = append(w.m.Imports, im)
		body = append(body, r.b[start:r.pos]...)
	}
	w.funcs, w.tick = w.imports, w.imports
	k := uint32(n)
	if !w.o.NoSafePoints {
		body = putName(putName(body, TickModule), TickName)
		body = putU32(append(body, 0), w.signature([]byte{typeI64}, []byte{typeI64}))
		k++
	}
	w.out[secImport] = append(putU32(nil, k), body...)
}

// function maps a function index of the original to one of the result.
func (w *rewriter) function(r *reader) uint32 {
	i := r.u32()
	if i >= w.funcs {
		r.fail("no function %d", i)
		return 0
	}
	return w.shift(i)
}

func (w *rewriter) shift(i uint32) uint32 {
	if i >= w.imports && !w.o.NoSafePoints {
		return i + 1
	}
	return i
}

func (w *rewriter) functionSection(r *reader) {
	n := r.count()
	if n > MaxFunctions {
		r.fail("%d functions are more than %d", n, MaxFunctions)
		return
	}
	for range n {
		w.funcTypes = append(w.funcTypes, w.typeIndex(r))
	}
	w.funcs += uint32(n)
	w.m.Functions = n
}

func (w *rewriter) tableSection(r *reader) {
	n := r.count()
	if n > MaxTables {
		r.fail("%d tables are more than %d", n, MaxTables)
		return
	}
	body := putU32(nil, uint32(n))
	for range n {
		t := r.byte()
		if t != typeFuncref && t != typeExternref && r.err == nil {
			r.err = unsupported("table of type %#x", t)
		}
		lo, hi, bounded := limits(r)
		if lo > MaxTable {
			r.fail("table of %d elements is larger than %d", lo, MaxTable)
		}
		if !bounded || hi > MaxTable {
			hi = MaxTable
		}
		body = putU32(putU32(append(body, t, 1), lo), hi)
	}
	w.tables = uint32(n)
	w.out[secTable] = body
}

func (w *rewriter) memorySection(r *reader) {
	n := r.count()
	if n > 1 {
		r.fail("more than one memory")
		return
	}
	for range n {
		lo, hi, bounded := limits(r)
		if lo > 1<<16 || bounded && hi > 1<<16 {
			r.fail("memory is larger than 4 GiB")
		}
		w.m.MemoryMin, w.m.HasMemory = lo, true
	}
	w.mems = uint32(n)
	w.out[secMemory] = r.b
}

func (w *rewriter) tagSection(r *reader) {
	n := r.count()
	if n > 0 && !w.o.Exceptions {
		r.err = unsupported("exception handling")
		return
	}
	for range n {
		r.byte()
		w.typeIndex(r)
	}
	w.tags = uint32(n)
	if n > 0 {
		w.out[secTag] = r.b
	}
}

func (w *rewriter) globalSection(r *reader) {
	n := r.count()
	if n > MaxGlobals {
		r.fail("%d globals are more than %d", n, MaxGlobals)
		return
	}
	k := uint32(n)
	var body []byte
	for i := range n {
		t, mut := r.valueType(), r.byte()
		if mut > 1 {
			r.fail("bad mutability")
		}
		body = append(body, t, mut)
		var v constant
		body, v = w.constExpr(r, body)
		if r.err != nil {
			return
		}
		v.known = v.known && t == typeI32 && mut == 0
		w.globals = append(w.globals, v)
		if mut == 0 {
			continue
		}
		switch t {
		case typeI32, typeI64, typeF32, typeF64:
			g := Global{fmt.Sprintf("%sg%d", Prefix, i), t}
			w.m.Globals = append(w.m.Globals, g)
			w.export(g.Export, 3, uint32(i))
		default:
			w.fixed("a mutable global of a reference or vector type")
		}
	}
	if !w.o.NoSafePoints {
		body = append(append(body, typeI64, 1, opI64Const), 0, opEnd)
		w.export(MeterGlobal, 3, k)
		k++
	}
	w.out[secGlobal] = append(putU32(nil, k), body...)
}

func (w *rewriter) fixed(what string) {
	if w.m.Fixed == "" {
		w.m.Fixed = what
	}
}

func (w *rewriter) export(name string, kind byte, index uint32) {
	w.exports = putU32(append(putName(w.exports, name), kind), index)
	w.exported++
}

func (w *rewriter) exportSection(r *reader) {
	counts := [...]uint32{w.funcs, w.tables, w.mems, uint32(len(w.globals)), w.tags}
	add := func(name string, kind byte, index uint32) {
		switch _, dup := w.m.Exports[name]; {
		case dup:
			r.fail("%q is exported twice", name)
		case strings.HasPrefix(name, Prefix):
			r.fail("export %q", name)
		case int(kind) >= len(counts) || index >= counts[kind]:
			r.fail("export %q of what isn't there", name)
		default:
			if kind == 0 {
				index = w.shift(index)
			}
			w.m.Exports[name] = kind
			w.export(name, kind, index)
		}
	}
	for range r.count() {
		name, kind := r.name(), r.byte()
		add(name, kind, r.u32())
	}
	for _, name := range slices.Sorted(maps.Keys(w.o.Exports)) {
		if _, own := w.m.Exports[name]; !own {
			add(name, 0, w.o.Exports[name])
		}
	}
	if !w.o.NoSafePoints {
		e := &emitter{w: w, out: []byte{0}}
		e.i64(0).u32(opCall, w.tick).op(0x1a, opEnd) // dropped
		w.export(ResumeExport, 0, w.tick+1+uint32(len(w.funcTypes)+len(w.added)))
		w.added = append(w.added, e.out)
		w.addedTypes = append(w.addedTypes, w.signature(nil, nil))
	}
}

func (w *rewriter) startSection(r *reader) {
	w.m.HasStart = true
	w.export(StartExport, 0, w.function(r))
}

// assemble puts the sections together.
func (w *rewriter) assemble() {
	count := &reader{b: w.out[secType]}
	types := putU32(nil, uint32(len(w.types)+len(w.newSig)))
	if count.u32(); len(w.out[secType]) > 0 {
		types = append(types, w.out[secType][count.pos:]...)
	}
	w.out[secType] = append(types, bytes.Join(w.newSig, nil)...)
	functions := putU32(nil, uint32(len(w.funcTypes)+len(w.added)))
	for _, t := range append(w.funcTypes, w.addedTypes...) {
		functions = putU32(functions, t)
	}
	w.out[secFunction] = functions
	w.out[secExport] = append(putU32(nil, uint32(w.exported)), w.exports...)
	out := []byte("\x00asm\x01\x00\x00\x00")
	for _, id := range []int{secType, secImport, secFunction, secTable, secMemory, secTag, secGlobal, secExport, secElement, secDataCount, secCode, secData} {
		if b := w.out[id]; len(b) > 0 && !(len(b) == 1 && b[0] == 0) {
			out = putSection(out, byte(id), b)
		}
	}
	w.m.Wasm = out
}
