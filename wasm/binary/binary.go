// Package binary reads WebAssembly modules and rewrites them for the runtime.
//
// A module is rewritten once, before it is compiled: all its state can be reached from outside (mutable globals are exported, active
// data segments are left to us, so is the start function), and it has safe points. A safe point counts down fuel and calls
// the host when none is left, because machine code can't be preempted: it stands at every loop header, at the entry of
// every function that isn't small and calls nothing, and after every stretch of straight code. Functions that call also count
// how much of the stack they may need, so that the stack can be charged and bounded.
//
// The meter is one 64-bit global: the upper half is what is left of the stack in bytes, the lower half of the fuel. Either one
// negative calls the host function tick with the meter's value, which returns a new one.
//
// Modules are hostile: what isn't understood is refused, indices are checked against the original module (the meter must not be
// named by its code), and memory used is a small multiple of the module's size. Types within code are left to the compiler's
// validation, which sees the result.
package binary

// Names by which the rewritten module and the host know each other. A module that uses the prefix itself is refused.
const (
	Prefix      = "agentrun:"
	TickModule  = Prefix + "meter"
	TickName    = "tick"
	MeterGlobal = Prefix + "meter"
	StartExport = Prefix + "start"
	// ResumeExport is a function that calls tick at once, for whoever wants to put another call's state in the place of this one.
	ResumeExport = Prefix + "resume"
)

// Value types.
const (
	typeI32       = 0x7f
	typeI64       = 0x7e
	typeF32       = 0x7d
	typeF64       = 0x7c
	typeV128      = 0x7b
	typeFuncref   = 0x70
	typeExternref = 0x6f
	typeExnref    = 0x69
)

// Limits of what is accepted.
const (
	MaxSize       = 256 << 20 // bytes of a module
	MaxFunction   = 4 << 20   // bytes of one function's code
	MaxFunctions  = 1 << 20
	MaxTypes      = 1 << 16
	MaxGlobals    = 1 << 16
	MaxTables     = 1 << 10
	MaxTable      = 1 << 20 // elements of one table; growth ends there
	MaxLocals     = 50_000
	maxParams     = 1000 // parameters or results of one type
	maxNesting    = 10_000
	straightCode  = 512     // bytes of code between two safe points
	smallFunction = 96      // bytes of code of a function without a safe point
	maxFrame      = 1 << 20 // bytes that one frame is estimated at
	bulkStep      = 1 << 20 // bytes that memory.fill and memory.copy move between two safe points
)

// Options say what is wanted beside the rewriting itself.
type Options struct {
	Exports      map[string]uint32 // functions of the module, by its own indices, to be exported under these names
	Exceptions   bool              // accept exception handling
	NoSafePoints bool              // leave the code as it is, for comparing
}

// Segment is an active data segment: bytes to be put into memory before the module's code runs.
type Segment struct {
	Offset uint32
	Bytes  []byte
}

// Global is a mutable global that isn't the meter.
type Global struct {
	Export string
	Type   byte
}

// Import is something that the module wants from its host.
type Import struct {
	Module, Name string
	Kind         byte // 0 function, 1 table, 2 memory, 3 global, 4 tag
}

// Module is a rewritten module.
type Module struct {
	Wasm      []byte
	Data      []Segment // these share the bytes given to Rewrite
	Globals   []Global
	Imports   []Import
	Exports   map[string]byte // kinds, the module's own and those asked for
	Functions int
	MemoryMin uint32 // pages of 64 KiB
	HasMemory bool
	HasStart  bool // there is a start function, exported as StartExport
	// Fixed is "" when an instance's state is its memory and its globals alone, so that it can be cloned; else what else there is.
	Fixed string
}
