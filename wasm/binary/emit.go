package binary

// emitter writes code of ours.
type emitter struct {
	out   []byte
	w     *rewriter
	local uint32 // the local that belongs to us
}

func (e *emitter) op(b ...byte) *emitter { e.out = append(e.out, b...); return e }

func (e *emitter) u32(op byte, v uint32) *emitter { e.out = putU32(append(e.out, op), v); return e }

func (e *emitter) i32(v int32) *emitter {
	e.out = putI64(append(e.out, opI32Const), int64(v))
	return e
}

func (e *emitter) i64(v int64) *emitter { e.out = putI64(append(e.out, opI64Const), v); return e }

func (e *emitter) meter(op byte) *emitter { return e.u32(op, uint32(len(e.w.globals))) }

const (
	opI64Sub   = 0x7d
	opI64Add   = 0x7c
	opI64And   = 0x83
	opI64Ne    = 0x52
	opI32LtS   = 0x48
	opI32WrapI = 0xa7
	opI64ExtU  = 0xad
)

// tickIf ends a safe point: it calls tick if what is on the stack isn't zero.
func (e *emitter) tickIf() {
	e.op(opIf, 0x40).u32(opLocalGet, e.local).u32(opCall, e.w.tick).meter(opGlobalSet).op(opEnd)
}

// count takes one unit of fuel.
func (e *emitter) count() {
	e.meter(opGlobalGet).i64(1).op(opI64Sub).u32(opLocalTee, e.local).meter(opGlobalSet)
	e.u32(opLocalGet, e.local).op(opI32WrapI).i32(0).op(opI32LtS)
	e.tickIf()
}

// enter takes a unit of fuel and stack.
func (e *emitter) enter(stack int64) {
	e.meter(opGlobalGet).i64(stack<<32|1).op(opI64Sub).u32(opLocalTee, e.local).meter(opGlobalSet)
	e.u32(opLocalGet, e.local).i64(-1<<63 | 1<<31).op(opI64And).i64(0).op(opI64Ne)
	e.tickIf()
}

// leave gives stack back.
func (e *emitter) leave(stack int64) {
	e.meter(opGlobalGet).i64(stack << 32).op(opI64Add).meter(opGlobalSet)
}

// helper returns the function that does what memory.fill (0) or memory.copy (1) does, in steps with a safe point after each.
func (w *rewriter) helper(which int) uint32 {
	if w.helpers[which] < 0 {
		w.helpers[which] = len(w.added)
		w.added = append(w.added, w.bulk(which == 1))
		w.addedTypes = append(w.addedTypes, w.signature([]byte{typeI32, typeI32, typeI32}, nil))
	}
	return w.tick + 1 + uint32(len(w.funcTypes)+w.helpers[which])
}

// bulk writes a helper. Its parameters are d (0), s (1) and n (2): what lies beyond memory must trap before anything is written, and an
// overlapping copy goes the way that is safe as a whole.
func (w *rewriter) bulk(isCopy bool) []byte {
	const i32Add, i32Sub, i32GtU, i32LtU, i32LeU, i32ShrU, i32Or, i64Shl, i64GtU = 0x6a, 0x6b, 0x4b, 0x49, 0x4d, 0x76, 0x72, 0x86, 0x56
	const d, s, n, mine = 0, 1, 2, 3
	e := &emitter{out: []byte{1, 1, typeI64}, w: w, local: mine}
	get := func(i uint32) *emitter { return e.u32(opLocalGet, i) }
	do := func() {
		if isCopy {
			e.op(opMisc, 10, 0, 0)
		} else {
			e.op(opMisc, 11, 0)
		}
	}
	whole := func() { // in one go, and back
		e.op(opIf, 0x40)
		get(d)
		get(s)
		get(n)
		do()
		e.op(opReturn, opEnd)
	}
	step := func(i uint32, op byte) { get(i).i32(bulkStep).op(op).u32(opLocalSet, i) }
	beyond := func(i uint32) {
		get(i).op(opI64ExtU)
		get(n).op(opI64ExtU, opI64Add)
		e.op(0x3f, 0, opI64ExtU).i64(16).op(i64Shl, i64GtU)
	}
	e.op(opLoop, 0x40)
	e.meter(opGlobalGet) // a unit of fuel for each 512 bytes
	get(n).i32(bulkStep)
	get(n).i32(bulkStep).op(i32LtU, 0x1b).i32(9).op(i32ShrU, opI64ExtU).i64(1).op(opI64Add, opI64Sub)
	e.u32(opLocalTee, mine).meter(opGlobalSet)
	get(mine).op(opI32WrapI).i32(0).op(opI32LtS)
	e.tickIf()
	get(n).i32(bulkStep).op(i32LeU)
	whole()
	beyond(d)
	if isCopy {
		beyond(s)
		e.op(i32Or)
	}
	whole() // which traps
	if isCopy {
		get(d)
		get(s).op(i32GtU, opIf, 0x40)
		step(n, i32Sub)
		get(d)
		get(n).op(i32Add)
		get(s)
		get(n).op(i32Add).i32(bulkStep)
		do()
		e.op(opBr, 1, opEnd)
	}
	get(d)
	get(s).i32(bulkStep)
	do()
	step(d, i32Add)
	if isCopy {
		step(s, i32Add)
	}
	step(n, i32Sub)
	return e.op(opBr, 0, opEnd, opEnd).out
}
