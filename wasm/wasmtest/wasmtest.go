// Package wasmtest assembles small WebAssembly modules for tests.
package wasmtest

// Value types.
const (
	I32 = 0x7f
	I64 = 0x7e
)

// Func is a function of a module. Locals are i32; Code is without the last end.
type Func struct {
	Params, Results string // of the letters i (i32), I (i64), v (v128)
	Locals          uint32
	Code            []byte
	Export          string
}

// Import is a function that is imported.
type Import struct {
	Module, Name, Params, Results string
}

// From returns an import.
func From(module, name, params, results string) Import { return Import{module, name, params, results} }

// Module is a module to be assembled. Functions are numbered after the imports.
type Module struct {
	Imports  []Import
	Funcs    []Func
	Pages    int      // of memory, exported as "memory"; none if 0
	Globals  []int32  // mutable
	Table    []uint32 // functions
	Data     map[uint32]string
	Start    int // a function; none if 0, which would be the first import
	Sections []Section
}

// Section is put in after the section with a lower id, as it is.
type Section struct {
	ID   byte
	Body []byte
}

// U32 encodes an unsigned number.
func U32(v uint32) (out []byte) {
	for v >= 0x80 {
		out = append(out, byte(v)|0x80)
		v >>= 7
	}
	return append(out, byte(v))
}

// I64Bytes encodes a signed number.
func I64Bytes(v int64) (out []byte) {
	for {
		c := byte(v & 0x7f)
		if v >>= 7; v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(out, c)
		}
		out = append(out, c|0x80)
	}
}

// Code joins bytes, and numbers that are encoded: an int is signed, a uint32 unsigned.
func Code(parts ...any) (out []byte) {
	for _, p := range parts {
		switch p := p.(type) {
		case []byte:
			out = append(out, p...)
		case byte:
			out = append(out, p)
		case int:
			out = append(out, I64Bytes(int64(p))...)
		case uint32:
			out = append(out, U32(p)...)
		default:
			panic("wasmtest: neither bytes nor a number")
		}
	}
	return out
}

func name(s string) []byte { return append(U32(uint32(len(s))), s...) }

func types(s string) []byte {
	out := U32(uint32(len(s)))
	for _, c := range s {
		out = append(out, map[rune]byte{'i': I32, 'I': I64, 'v': 0x7b}[c])
	}
	return out
}

// vector encodes a list.
func vector[T any](list []T, f func(T) []byte) []byte {
	out := U32(uint32(len(list)))
	for _, x := range list {
		out = append(out, f(x)...)
	}
	return out
}

// Bytes assembles the module. Each function has a type of its own: imports first.
func (m Module) Bytes() []byte {
	secs := map[byte][]byte{}
	var sigs, funcs, exports [][]byte
	for _, im := range m.Imports {
		sigs = append(sigs, append(append([]byte{0x60}, types(im.Params)...), types(im.Results)...))
	}
	for i, f := range m.Funcs {
		sigs = append(sigs, append(append([]byte{0x60}, types(f.Params)...), types(f.Results)...))
		funcs = append(funcs, U32(uint32(len(m.Imports)+i)))
		if f.Export != "" {
			exports = append(exports, append(append(name(f.Export), 0), U32(uint32(len(m.Imports)+i))...))
		}
	}
	id := func(b []byte) []byte { return b }
	secs[1] = vector(sigs, id)
	n := uint32(0)
	secs[2] = vector(m.Imports, func(im Import) []byte {
		n++
		return append(append(append(name(im.Module), name(im.Name)...), 0), U32(n-1)...)
	})
	secs[3] = vector(funcs, id)
	if m.Table != nil {
		k := U32(uint32(len(m.Table)))
		secs[4] = append([]byte{1, 0x70, 0}, k...)
		secs[9] = append([]byte{1, 0, 0x41, 0, 0x0b}, vector(m.Table, U32)...)
	}
	if m.Pages > 0 {
		secs[5] = append([]byte{1, 0}, U32(uint32(m.Pages))...)
		exports = append(exports, append(name("memory"), 2, 0))
	}
	secs[6] = vector(m.Globals, func(v int32) []byte { return Code(byte(I32), byte(1), byte(0x41), int(v), byte(0x0b)) })
	secs[7] = vector(exports, id)
	if m.Start > 0 {
		secs[8] = U32(uint32(m.Start))
	}
	secs[10] = vector(m.Funcs, func(f Func) []byte {
		body := []byte{0}
		if f.Locals > 0 {
			body = append(append([]byte{1}, U32(f.Locals)...), I32)
		}
		body = append(append(body, f.Code...), 0x0b)
		return append(U32(uint32(len(body))), body...)
	})
	var data [][]byte
	for at, text := range m.Data {
		data = append(data, append(Code(byte(0), byte(0x41), int(int32(at)), byte(0x0b)), name(text)...))
	}
	secs[11] = vector(data, id)
	out := []byte("\x00asm\x01\x00\x00\x00")
	for _, k := range []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11} {
		if b := secs[k]; len(b) > 0 && b[0] != 0 || k == 8 && m.Start > 0 {
			out = append(append(append(out, k), U32(uint32(len(b)))...), b...)
		}
		for _, s := range m.Sections {
			if s.ID == k {
				out = append(append(append(out, k), U32(uint32(len(s.Body)))...), s.Body...)
			}
		}
	}
	return out
}
