package binary

// instruction reads one instruction, checks the indices that our additions could make valid, and replaces it where needed.
func (f *function) instruction() {
	r, w := f.r, f.w
	at := r.pos
	if at-f.safe > straightCode {
		f.safePoint(at)
	}
	op := r.byte()
	switch shapes[op] {
	case plainOp:
		f.push(int(delta(op)))
	case blockOp:
		t := f.readBlockType()
		if op == opIf {
			f.push(-1)
		}
		f.open(t, op == opIf)
		if op == opLoop && r.err == nil {
			f.safePoint(r.pos)
		}
	case tryOp:
		f.tryTable()
	case elseOp:
		top := &f.frames[len(f.frames)-1]
		if !top.isIf {
			r.fail("else without if")
			return
		}
		top.isIf = false
		f.height = top.base + top.params
	case endOp:
		f.close()
	case branchOp:
		f.label()
		if op == opBrIf {
			f.push(-1)
		}
	case tableBr:
		for range r.count() + 1 {
			if f.label(); r.err != nil {
				return
			}
		}
		f.push(-1)
	case returnOp:
		if !w.o.NoSafePoints {
			f.replace(at)
			f.code = putU32(append(f.code, opBr), uint32(len(f.frames)-1))
		}
	case callOp, tailOp, refFuncOp, indirectOp, tailIndirOp:
		f.call(op, at)
	case tagOp:
		if i := r.u32(); i >= w.tags {
			r.fail("no tag %d", i)
		}
	case selectOp:
		for range r.count() {
			r.valueType()
		}
		f.push(-2)
	case localOp:
		if i := r.u32(); i >= f.locals {
			r.fail("no local %d", i)
		}
		f.push([...]int{1, -1, 0}[op-opLocalGet])
	case globalOp:
		if i := r.u32(); uint64(i) >= uint64(len(w.globals)) {
			r.fail("no global %d", i)
		}
		f.push([...]int{1, -1}[op-opGlobalGet])
	case tableOp:
		r.u32()
	case tableSetOp:
		r.u32()
		w.fixed("a table that changes")
	case memoryOp:
		f.memarg()
		if op >= 0x36 {
			f.push(-2)
		}
	case memZero:
		r.byte()
		if op == 0x3f {
			f.push(1)
		}
	default:
		f.constant(op)
	}
}

// delta is by how much a plain instruction changes the stack's height.
func delta(op byte) int8 {
	switch {
	case op == 0x1a: // drop
		return -1
	case op == 0x1b: // select
		return -2
	case op == 0x45, op == 0x50, op >= 0x67 && op <= 0x69, op >= 0x79 && op <= 0x7b, op >= 0x8b && op <= 0x91,
		op >= 0x99 && op <= 0x9f, op >= 0xa7 && op <= 0xc4, op < 0x45, op > 0xc4:
		return 0
	}
	return -1
}

// constant reads what remains: constants and prefixed instructions.
func (f *function) constant(op byte) {
	r := f.r
	switch shapes[op] {
	case i32Op:
		r.signed(32)
	case i64Op:
		r.signed(64)
	case f32Op:
		r.bytes(4)
	case f64Op:
		r.bytes(8)
	case heapType:
		r.signed(33)
	case miscOp:
		f.misc()
		return
	case simdOp:
		f.simd()
		return
	default:
		r.pos--
		if r.err == nil {
			r.err = unsupported("instruction %#x", op)
		}
		return
	}
	f.push(1)
}

// call renumbers functions.
func (f *function) call(op byte, at int) {
	r, w := f.r, f.w
	var t funcType
	switch shapes[op] {
	case callOp, tailOp, refFuncOp:
		i := r.u32()
		if i >= w.funcs {
			r.fail("no function %d", i)
			return
		}
		if op == opRefFunc {
			f.push(1)
		} else {
			t = w.typeOf(i)
		}
		f.replace(at)
		if op == opReturnCall {
			f.beforeTail()
		}
		f.code = putU32(append(f.code, op), w.shift(i))
		if op == opRefFunc {
			return
		}
	default:
		i := w.typeIndex(r)
		if r.err != nil {
			return
		}
		t = w.types[i]
		if table := r.u32(); table >= w.tables {
			r.fail("no table %d", table)
			return
		}
		if op == opReturnCallI {
			f.replace(at)
			f.beforeTail()
			f.flushAgain(at)
		}
		f.push(-1)
	}
	f.calls = true
	f.push(-len(t.params))
	f.push(len(t.results))
}

// flushAgain copies the instruction that replace has dropped.
func (f *function) flushAgain(at int) { f.code = append(f.code, f.r.b[at:f.r.pos]...) }

// beforeTail gives the stack back before a tail call, as it isn't given back after.
func (f *function) beforeTail() {
	f.tail = true
	if f.w.o.NoSafePoints || f.w.o.Exceptions {
		return
	}
	e := &emitter{f.code, f.w, f.locals}
	e.leave(f.stack)
	f.code = e.out
}

// typeOf returns a function's type.
func (w *rewriter) typeOf(i uint32) funcType {
	if i < w.imports {
		return w.importTypes[i]
	}
	return w.types[w.funcTypes[i-w.imports]]
}

func (f *function) memarg() {
	if f.r.u32() >= 64 {
		f.r.fail("bad alignment")
	}
	f.r.u32()
	if f.w.mems == 0 {
		f.r.fail("no memory")
	}
}

// misc is the 0xfc group: saturating conversions, bulk memory, tables.
func (f *function) misc() {
	r, w := f.r, f.w
	at := r.pos - 1
	switch sub := r.u32(); sub {
	case 0, 1, 2, 3, 4, 5, 6, 7:
	case 8: // memory.init
		r.u32()
		r.byte()
		w.usesData = true
		f.push(-3)
	case 9: // data.drop
		r.u32()
		w.usesData = true
		w.fixed("data segments that are dropped")
	case 10, 11: // memory.copy, memory.fill
		r.byte()
		if sub == 10 {
			r.byte()
		}
		if w.mems == 0 {
			r.fail("no memory")
		}
		if !w.o.NoSafePoints && r.err == nil {
			f.replace(at)
			f.code = putU32(append(f.code, opCall), w.helper(int(11-sub)))
			f.calls = true
		}
		f.push(-3)
	case 12, 14: // table.init, table.copy
		r.u32()
		r.u32()
		w.fixed("a table that changes")
		f.push(-3)
	case 13: // elem.drop
		r.u32()
		w.fixed("element segments that are dropped")
	case 15, 17: // table.grow, table.fill
		r.u32()
		w.fixed("a table that changes")
		f.push(-1)
	case 16: // table.size
		r.u32()
		f.push(1)
	default:
		if r.err == nil {
			r.err = unsupported("instruction 0xfc %d", sub)
		}
	}
}

// simd is the 0xfd group: vectors. Few of them make the stack grow; for the others it is taken to stay as it is.
func (f *function) simd() {
	r := f.r
	f.wide = true
	switch sub := r.u32(); {
	case sub == 11:
		f.memarg()
		f.push(-2)
	case sub <= 10, sub == 92, sub == 93:
		f.memarg()
	case sub == 12:
		r.bytes(16)
		f.push(1)
	case sub == 13:
		r.bytes(16)
	case sub >= 21 && sub <= 34:
		r.byte()
	case sub >= 84 && sub <= 91:
		f.memarg()
		r.byte()
	case sub > 0xff:
		if r.err == nil {
			r.err = unsupported("vector instruction %#x", sub)
		}
	}
}

// tryTable reads a try_table with its catch clauses.
func (f *function) tryTable() {
	r, w := f.r, f.w
	if !w.o.Exceptions {
		if r.err == nil {
			r.err = unsupported("exception handling")
		}
		return
	}
	t := f.readBlockType()
	for range r.count() {
		kind := r.byte()
		if kind > 3 {
			r.fail("catch clause of kind %d", kind)
		}
		if kind < 2 {
			if i := r.u32(); i >= w.tags {
				r.fail("no tag %d", i)
			}
		}
		if f.label(); r.err != nil {
			return
		}
	}
	f.open(t, false)
}
