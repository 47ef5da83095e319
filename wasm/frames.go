package wasm

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"agentrun.dev/errs"
)

// A guest that is inside a host function has all of its call on a stack that the engine has allocated, and in registers that it has saved. The
// engine copies such stacks itself, when they grow and for experimental.Snapshotter, which hands us a copy. What it doesn't do is to put one
// into another instance: for that every word that points to what belongs to an instance has to point to the same thing of the other one. Those
// are few: the stack itself, the engine's two contexts, where results go. (Addresses of memory are read again after every call.) So any word that
// lies in one of their ranges is taken for such a pointer. A guest's own number lies there by a chance of one in billions, or by a guess,
// whose price is the guest's.

// frames is the native part of a call in progress. It never changes.
type frames struct {
	words     []uint64 // from the stack pointer up to the top
	fp        uint64   // the frame pointer, as it was
	size      uint64   // of the whole stack, bytes
	registers [128]uint64
	returns   uintptr // where the guest goes on: in code that all instances of the module share
	at        places
}

// places are where things of an instance are in the host's memory.
type places [4]codeRange

const (
	ofStack = iota
	ofContext
	ofModule
	ofResults
)

// move returns a word as it is to be in an instance that has its things elsewhere.
func (from *places) move(v uint64, to *places) uint64 {
	for i := range from {
		if r := &from[i]; v >= r.Lo && v < r.Hi {
			return v - r.Lo + to[i].Lo
		}
	}
	return v
}

// moveOdd moves pointers that are aligned to four bytes only: the engine keeps 32-bit values in halves of words. As any two such values could be
// mistaken for one pointer, these have to be exact.
func (f *frames) moveOdd(stack []byte, to *places) {
	for i := 4; i+8 < len(stack); i += 8 {
		v := binary.LittleEndian.Uint64(stack[i:])
		if v == 0 {
			continue
		}
		for k := ofContext; k <= ofResults; k++ {
			if v == f.at[k].Lo && f.at[k].Hi > v {
				binary.LittleEndian.PutUint64(stack[i:], to[k].Lo)
			}
		}
	}
}

// engineLayout is where the fields are that we need of the engine's types. They aren't ours: they are found by name and type, so that a version of the
// engine that has others is noticed instead of misread.
type engineLayout struct {
	err                                      error
	sp, fp, top, returns, stack, registers   uintptr // of a snapshot
	context, contextSize, ptr, parent, tries uintptr // of a call
	opaque                                   uintptr // of an instance
}

const stackAlign = 16

// learnEngine looks at the types of a call (api.Function) and of its snapshots.
func learnEngine(call, snapshot reflect.Type) *engineLayout {
	l := &engineLayout{}
	field := func(t reflect.Type, name string, like reflect.Type) (f reflect.StructField) {
		ok := false
		if t.Kind() == reflect.Struct {
			f, ok = t.FieldByName(name)
		}
		if ok && (f.Type == like || like == nil) {
			return f
		}
		if l.err == nil {
			l.err = errs.Msg(errs.Unsupported, "snapshot", "", fmt.Sprintf("calls can't be copied: the engine has no %s.%s as expected", t, name))
		}
		return reflect.StructField{Type: reflect.TypeFor[*struct{}]()}
	}
	deref := func(t reflect.Type) reflect.Type {
		if t.Kind() == reflect.Pointer {
			return t.Elem()
		}
		return t
	}
	word, bytes := reflect.TypeFor[uintptr](), reflect.TypeFor[[]byte]()
	s, c := deref(snapshot), deref(call)
	l.sp, l.fp, l.top = field(s, "sp", word).Offset, field(s, "fp", word).Offset, field(s, "top", word).Offset
	l.returns, l.stack = field(s, "returnAddress", reflect.TypeFor[*byte]()).Offset, field(s, "stack", bytes).Offset
	l.registers = field(s, "savedRegisters", reflect.TypeFor[[64][2]uint64]()).Offset
	context := field(c, "execCtx", nil)
	l.context, l.contextSize = context.Offset, context.Type.Size()
	l.ptr, l.tries = field(c, "execCtxPtr", word).Offset, field(c, "tryHandlers", nil).Offset
	parent := field(c, "parent", nil)
	l.parent = parent.Offset
	opaque := field(deref(parent.Type), "opaque", nil)
	if l.opaque = opaque.Offset; l.err == nil && (opaque.Type.Kind() != reflect.Slice || opaque.Type.Elem().Kind() != reflect.Uint8) {
		l.err = errs.Msg(errs.Unsupported, "snapshot", "", "calls can't be copied: the engine keeps its instances otherwise")
	}
	return l
}

// at reads a field.
func at[T any](base unsafe.Pointer, offset uintptr) *T { return (*T)(unsafe.Add(base, offset)) }

// pointer is the address of a value whose dynamic type is a pointer.
func pointer(v any) unsafe.Pointer { return reflect.ValueOf(v).UnsafePointer() }

// engine returns the layout, from the types of a call and its snapshot.
func (r *Runtime) engine(call api.Function, s experimental.Snapshot) (*engineLayout, error) {
	l := r.layout.Load()
	if l == nil {
		l = learnEngine(reflect.TypeOf(call), reflect.TypeOf(s))
		r.layout.Store(l)
	}
	return l, l.err
}

// places returns where things of the instance are while c is called.
func (in *Instance) places(l *engineLayout, c *call) (p places) {
	e := pointer(c.f)
	put := func(i int, lo unsafe.Pointer, n uint64) {
		p[i].Lo, p[i].Hi = uint64(uintptr(lo)), uint64(uintptr(lo))+n
	}
	put(ofContext, unsafe.Add(e, l.context), uint64(l.contextSize))
	opaque := *at[[]byte](*at[unsafe.Pointer](e, l.parent), l.opaque)
	put(ofModule, unsafe.Pointer(unsafe.SliceData(opaque)), uint64(len(opaque)))
	put(ofResults, unsafe.Pointer(unsafe.SliceData(c.buf)), uint64(8*len(c.buf)))
	return p
}

// frames copies the stack of the call that is in progress. The guest must be inside a host function.
func (in *Instance) frames() (*frames, error) {
	c := in.running
	copier, ok := c.f.(experimental.Snapshotter)
	if !ok {
		return nil, errs.Msg(errs.Unsupported, "snapshot", in.m.o.Name, "this engine's calls can't be copied")
	}
	s := copier.Snapshot()
	l, err := in.m.r.engine(c.f, s)
	if err != nil {
		return nil, err
	}
	if len(*at[[]byte](pointer(c.f), l.tries)) > 0 { // of any type: only its length is looked at
		return nil, errs.Msg(errs.Unsupported, "snapshot", in.m.o.Name, "the guest is within a try block")
	}
	b := pointer(s)
	f := &frames{at: in.places(l, c), fp: uint64(*at[uintptr](b, l.fp)), size: uint64(len(*at[[]byte](b, l.stack))), returns: *at[uintptr](b, l.returns)}
	sp, top := *at[uintptr](b, l.sp), *at[uintptr](b, l.top)
	f.at[ofStack].Lo, f.at[ofStack].Hi = uint64(sp), uint64(top)
	stack := *at[[]byte](b, l.stack)
	low := uintptr(unsafe.Pointer(unsafe.SliceData(stack)))
	f.words = make([]uint64, (top-sp)/8)
	for i := range f.words {
		f.words[i] = *at[uint64](unsafe.Pointer(unsafe.SliceData(stack)), sp-low+uintptr(8*i))
	}
	f.registers = *at[[128]uint64](b, l.registers)
	return f, nil
}

// replace makes s, a snapshot that was just taken of the call c of in, be what the frames were of another instance. Restoring it goes on there.
func (f *frames) replace(in *Instance, c *call, s experimental.Snapshot) error {
	l, err := in.m.r.engine(c.f, s)
	if err != nil {
		return err
	}
	stack := make([]byte, f.size+2*stackAlign)
	low := uintptr(unsafe.Pointer(unsafe.SliceData(stack)))
	// The stack's top has to be aligned as it was.
	top := (low + uintptr(len(stack)) - stackAlign) &^ (stackAlign - 1)
	top += uintptr(f.at[ofStack].Hi) & (stackAlign - 1)
	sp := top - uintptr(8*len(f.words))
	to := in.places(l, c)
	to[ofStack].Lo, to[ofStack].Hi = uint64(sp), uint64(top)
	for i, v := range f.words {
		*at[uint64](unsafe.Pointer(unsafe.SliceData(stack)), sp-low+uintptr(8*i)) = f.at.move(v, &to)
	}
	f.moveOdd(stack[sp-low:top-low], &to)
	b := pointer(s)
	*at[uintptr](b, l.sp), *at[uintptr](b, l.fp), *at[uintptr](b, l.top) = sp, uintptr(f.at.move(f.fp, &to)), top
	*at[uintptr](b, l.returns) = f.returns
	*at[[]byte](b, l.stack) = stack
	for i, v := range f.registers {
		at[[128]uint64](b, l.registers)[i] = f.at.move(v, &to)
	}
	return nil
}
