package binary

func (w *rewriter) codeSection(r *reader) {
	n := r.count()
	if n != len(w.funcTypes) {
		r.fail("%d function bodies, %d functions declared", n, len(w.funcTypes))
		return
	}
	out := make([]byte, 0, len(r.b)+len(r.b)/4+64)
	f := &function{w: w}
	for i := range n {
		size := r.u32()
		if size > MaxFunction {
			r.fail("function of %d bytes is larger than %d", size, MaxFunction)
		}
		body := &reader{at: r.at + r.pos}
		body.b = r.bytes(size)
		if r.err != nil {
			return
		}
		head := f.rewrite(body, w.types[w.funcTypes[i]], 0)
		if f.tail && body.err == nil { // what a tail call gives back is known only now
			body.pos = 0
			head = f.rewrite(body, f.t, f.stack)
		}
		if r.err = body.err; r.err != nil {
			return
		}
		out = putU32(out, uint32(len(head)+len(f.code)))
		out = append(append(out, head...), f.code...)
	}
	for _, b := range w.added {
		out = append(putU32(out, uint32(len(b))), b...)
	}
	w.out[secCode] = append(putU32(nil, uint32(n+len(w.added))), out...)
}

// function is one function being rewritten. Its fields are used again for the next one.
type function struct {
	w      *rewriter
	r      *reader
	t      funcType
	locals uint32 // parameters and locals of the original; the next one is ours
	head   []byte
	code   []byte
	from   int // the original is copied up to here
	safe   int // the last safe point is here, in the original
	frames []frame
	height int // of the operand stack, an upper bound
	peak   int
	stack  int64 // bytes that its frame is estimated at
	calls  bool
	tail   bool
	wide   bool // vectors may be on the stack
}

// frame is an open block.
type frame struct {
	base    int // the stack's height below the block
	params  int
	results int
	isIf    bool
}

// rewrite leaves the function's code in f.code and returns what comes before: locals and what stands at the entry.
func (f *function) rewrite(r *reader, t funcType, stack int64) []byte {
	*f = function{w: f.w, r: r, t: t, head: f.head[:0], code: f.code[:0], frames: f.frames[:0], stack: stack}
	f.readLocals()
	start := r.pos
	f.from, f.safe = start, start
	f.frames = append(f.frames, frame{results: len(t.results)})
	for len(f.frames) > 0 && r.err == nil {
		f.instruction()
	}
	if r.err == nil && !r.end() {
		r.fail("code after the function's end")
	}
	if r.err != nil {
		return nil
	}
	f.flush(r.pos - 1) // all but the last end
	head := &emitter{f.head, f.w, f.locals}
	if !f.w.o.NoSafePoints {
		f.enclose(head, r.pos-start)
	}
	f.code = append(f.code, opEnd)
	f.head = head.out
	return head.out
}

// enclose makes the function count on its way in and out. What was its body becomes a block, so that all ways out lead through its end:
// labels keep their numbers, and a return is a branch to it.
func (f *function) enclose(head *emitter, size int) {
	slot := int64(8)
	if f.wide {
		slot = 16
	}
	f.stack = slot*(int64(f.locals)+1+int64(f.peak)) + 64
	switch {
	case f.stack > maxFrame:
		f.r.err = unsupported("a function that needs %d bytes of stack", f.stack)
	case f.calls && !f.w.o.Exceptions:
		head.enter(f.stack)
		head.out = append(append(head.out, 0x02), f.blockType()...)
		tail := &emitter{append(f.code, opEnd), f.w, f.locals}
		tail.leave(f.stack)
		f.code = tail.out
	case f.calls || size > smallFunction:
		head.count()
	}
}

// blockType encodes a block without parameters and with the function's results.
func (f *function) blockType() []byte {
	switch len(f.t.results) {
	case 0:
		return []byte{0x40}
	case 1:
		return f.t.results
	}
	return putI64(nil, int64(f.w.signature(nil, f.t.results)))
}

// readLocals copies the declaration of locals and adds one.
func (f *function) readLocals() {
	r, total := f.r, uint64(len(f.t.params))
	groups := r.count()
	start := r.pos
	for range groups {
		total += uint64(r.u32())
		if total > MaxLocals {
			r.fail("more than %d locals", MaxLocals)
			return
		}
		if r.valueType() == typeV128 {
			f.wide = true
		}
	}
	f.locals = uint32(total)
	if f.w.o.NoSafePoints {
		f.head = append(putU32(f.head, uint32(groups)), r.b[start:r.pos]...)
		return
	}
	f.head = append(putU32(f.head, uint32(groups)+1), r.b[start:r.pos]...)
	f.head = append(f.head, 1, typeI64)
}

// flush copies the original up to a place.
func (f *function) flush(to int) {
	f.code = append(f.code, f.r.b[f.from:to]...)
	f.from = to
}

// replace copies the original up to a place and drops what has been read after it, for something else to be put there.
func (f *function) replace(from int) {
	f.flush(from)
	f.from = f.r.pos
}

// safePoint counts before what comes next.
func (f *function) safePoint(at int) {
	if f.w.o.NoSafePoints {
		return
	}
	f.flush(at)
	e := &emitter{f.code, f.w, f.locals}
	e.count()
	f.code, f.safe = e.out, at
}

// push changes the stack's height.
func (f *function) push(n int) {
	f.height += n
	if top := len(f.frames) - 1; top >= 0 && f.height < f.frames[top].base {
		f.height = f.frames[top].base // after a branch, where the stack is whatever one likes
	}
	f.peak = max(f.peak, f.height)
}

// open begins a block of a type.
func (f *function) open(t funcType, isIf bool) {
	if len(f.frames) >= maxNesting {
		f.r.fail("blocks nested more than %d deep", maxNesting)
		return
	}
	f.push(-len(t.params))
	f.frames = append(f.frames, frame{f.height, len(t.params), len(t.results), isIf})
	f.push(len(t.params))
}

// close ends a block.
func (f *function) close() {
	top := f.frames[len(f.frames)-1]
	f.frames = f.frames[:len(f.frames)-1]
	f.height = top.base + top.results
	f.peak = max(f.peak, f.height)
}

// readBlockType reads a block's type.
func (f *function) readBlockType() funcType {
	i := f.r.signed(33)
	switch {
	case i >= 0:
		if i >= int64(len(f.w.types)) {
			f.r.fail("no type %d", i)
			return funcType{}
		}
		return f.w.types[i]
	case i == -64:
		return funcType{}
	}
	return funcType{results: []byte{byte(i & 0x7f)}}
}

func (f *function) label() {
	if i := f.r.u32(); uint64(i) >= uint64(len(f.frames)) {
		f.r.fail("no label %d", i)
	}
}
