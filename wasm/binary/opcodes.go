package binary

// Opcodes that the rewriter names.
const (
	opLoop         = 0x03
	opIf           = 0x04
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opReturnCall   = 0x12
	opReturnCallI  = 0x13
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opI32Const     = 0x41
	opI64Const     = 0x42
	opRefFunc      = 0xd2
	opMisc         = 0xfc
	opSIMD         = 0xfd
)

// shape is what follows an opcode.
type shape uint8

const (
	bad shape = iota
	plainOp
	blockOp  // a block type; opens a block
	tryOp    // a block type and catch clauses; opens a block
	elseOp   // the middle of an if
	endOp    // closes a block
	branchOp // a label
	tableBr  // br_table: labels
	returnOp
	callOp      // a function
	indirectOp  // a type and a table
	tailOp      // a function; leaves
	tailIndirOp // a type and a table; leaves
	tagOp       // a tag
	selectOp    // a vector of types
	localOp
	globalOp
	tableOp
	tableSetOp
	memoryOp // alignment and offset
	memZero  // one zero byte
	i32Op
	i64Op
	f32Op
	f64Op
	heapType
	refFuncOp
	miscOp
	simdOp
)

// shapes of the one-byte opcodes: WebAssembly 2.0, tail calls and exception handling with try_table.
var shapes = func() (t [256]shape) {
	set := func(from, to int, s shape) {
		for i := from; i <= to; i++ {
			t[i] = s
		}
	}
	set(0x00, 0x01, plainOp)
	set(0x02, 0x04, blockOp)
	t[0x05], t[0x08], t[0x0a], t[0x0b] = elseOp, tagOp, plainOp, endOp
	set(0x0c, 0x0d, branchOp)
	t[0x0e], t[0x0f] = tableBr, returnOp
	t[0x10], t[0x11], t[0x12], t[0x13] = callOp, indirectOp, tailOp, tailIndirOp
	set(0x1a, 0x1b, plainOp)
	t[0x1c], t[0x1f] = selectOp, tryOp
	set(0x20, 0x22, localOp)
	set(0x23, 0x24, globalOp)
	t[0x25], t[0x26] = tableOp, tableSetOp
	set(0x28, 0x3e, memoryOp)
	set(0x3f, 0x40, memZero)
	t[0x41], t[0x42], t[0x43], t[0x44] = i32Op, i64Op, f32Op, f64Op
	set(0x45, 0xc4, plainOp)
	t[0xd0], t[0xd1], t[0xd2] = heapType, plainOp, refFuncOp
	t[0xfc], t[0xfd] = miscOp, simdOp
	return t
}()
