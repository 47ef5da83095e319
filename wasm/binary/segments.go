package binary

// constExpr copies a constant expression, with its functions renumbered, and evaluates it as far as it is made of i32 values.
func (w *rewriter) constExpr(r *reader, out []byte) ([]byte, constant) {
	var stack []constant
	push := func(c constant) { stack = append(stack, c) }
	for r.err == nil {
		start := r.pos
		op := r.byte()
		switch op {
		case opEnd:
			out = append(out, op)
			if len(stack) != 1 {
				r.fail("a constant expression of %d values", len(stack))
				return out, constant{}
			}
			return out, stack[0]
		case opI32Const:
			push(constant{uint32(r.signed(32)), true})
		case opI64Const:
			r.signed(64)
			push(constant{})
		case 0x43:
			r.bytes(4)
			push(constant{})
		case 0x44:
			r.bytes(8)
			push(constant{})
		case opSIMD:
			if sub := r.u32(); sub != 12 {
				r.fail("vector instruction %d in a constant expression", sub)
			}
			r.bytes(16)
			push(constant{})
		case opGlobalGet:
			i := r.u32()
			if int(i) >= len(w.globals) {
				r.fail("no global %d", i)
				return out, constant{}
			}
			push(w.globals[i])
		case 0xd0:
			r.byte()
			push(constant{})
		case opRefFunc:
			out = putU32(append(out, op), w.function(r))
			push(constant{})
			continue
		case 0x6a, 0x6b, 0x6c, 0x7c, 0x7d, 0x7e:
			if len(stack) < 2 {
				r.fail("constant expression takes more than it has")
				return out, constant{}
			}
			a, b := stack[len(stack)-2], stack[len(stack)-1]
			stack = stack[:len(stack)-2]
			v := constant{known: a.known && b.known}
			switch op {
			case 0x6a:
				v.v = a.v + b.v
			case 0x6b:
				v.v = a.v - b.v
			case 0x6c:
				v.v = a.v * b.v
			}
			push(v)
		default:
			r.fail("instruction %#x in a constant expression", op)
		}
		out = append(out, r.b[start:r.pos]...)
	}
	return out, constant{}
}

func (w *rewriter) elementSection(r *reader) {
	n := r.count()
	body := putU32(nil, uint32(n))
	for range n {
		flags := r.u32()
		if flags > 7 {
			r.fail("element segment of kind %d", flags)
		}
		body = putU32(body, flags)
		if flags&1 == 0 { // active
			table := uint32(0)
			if flags&2 != 0 {
				table = r.u32()
				body = putU32(body, table)
			}
			if table >= w.tables {
				r.fail("no table %d", table)
			}
			body, _ = w.constExpr(r, body)
		}
		if flags&3 != 0 { // a kind or a type
			body = append(body, r.byte())
		}
		k := r.count()
		body = putU32(body, uint32(k))
		for range k {
			if r.err != nil {
				return
			}
			if flags&4 != 0 {
				body, _ = w.constExpr(r, body)
			} else {
				body = putU32(body, w.function(r))
			}
		}
	}
	w.out[secElement] = body
}

func (w *rewriter) dataCountSection(r *reader) { w.data, w.dataCount = r.u32(), true }

// dataSection keeps active segments for us. Where code names segments, an empty passive one takes an active one's place, which is
// what it is once it has been applied.
func (w *rewriter) dataSection(r *reader) {
	n := r.count()
	if w.dataCount && int(w.data) != n {
		r.fail("%d data segments, %d announced", n, w.data)
		return
	}
	body := putU32(nil, uint32(n))
	for range n {
		mode := r.u32()
		if mode > 2 {
			r.fail("data segment of kind %d", mode)
		}
		if mode == 1 {
			bytes := r.bytes(r.u32())
			body = append(putU32(append(body, 1), uint32(len(bytes))), bytes...)
			continue
		}
		if mode == 2 && r.u32() != 0 || w.mems == 0 {
			r.fail("data for a memory that isn't there")
		}
		_, at := w.constExpr(r, nil)
		bytes := r.bytes(r.u32())
		if r.err == nil && !at.known {
			r.err = unsupported("a data segment whose place isn't a plain number")
		}
		if r.err != nil {
			return
		}
		w.m.Data = append(w.m.Data, Segment{at.v, bytes})
		body = append(body, 1, 0)
	}
	if w.usesData {
		w.out[secData] = body
		w.out[secDataCount] = putU32(nil, uint32(n))
	}
}
