package virtio

// Buffers is a sequence of windows into guest memory that is consumed from the front. The guest may change what it holds
// at any time: what is decided upon must be copied first.
type Buffers struct {
	segs [][]byte
	n    int
}

// Len returns how many bytes are left.
func (b *Buffers) Len() int { return b.n }

// Segments returns the windows that are left, none of them empty. They are valid until the chain is given back.
func (b *Buffers) Segments() [][]byte { return b.segs }

// Read copies from the front into p, and consumes what it copied. It returns less than len(p) only at the end.
func (b *Buffers) Read(p []byte) int {
	return b.each(len(p), func(seg []byte, at int) { copy(p[at:], seg) })
}

// Write copies p to the front, and consumes what it filled. It returns less than len(p) only at the end.
func (b *Buffers) Write(p []byte) int {
	return b.each(len(p), func(seg []byte, at int) { copy(seg, p[at:]) })
}

// Skip consumes up to n bytes.
func (b *Buffers) Skip(n int) int { return b.each(n, func([]byte, int) {}) }

// Clear zeroes and consumes up to n bytes.
func (b *Buffers) Clear(n int) int { return b.each(n, func(seg []byte, _ int) { clear(seg) }) }

func (b *Buffers) each(n int, f func(seg []byte, at int)) int {
	done := 0
	for done < n && len(b.segs) > 0 {
		seg := b.segs[0]
		if len(seg) > n-done {
			seg = seg[:n-done]
		}
		f(seg, done)
		done += len(seg)
		if len(seg) == len(b.segs[0]) {
			b.segs = b.segs[1:]
		} else {
			b.segs[0] = b.segs[0][len(seg):]
		}
	}
	b.n -= done
	return done
}

// Last cuts the last byte off and returns its window, or nil if there is none: where a block request's status goes.
func (b *Buffers) Last() []byte {
	if b.n == 0 {
		return nil
	}
	seg := b.segs[len(b.segs)-1]
	last := seg[len(seg)-1:]
	if len(seg) == 1 {
		b.segs = b.segs[:len(b.segs)-1]
	} else {
		b.segs[len(b.segs)-1] = seg[:len(seg)-1]
	}
	b.n--
	return last
}

// Limit cuts off what goes beyond n bytes.
func (b *Buffers) Limit(n int) {
	if n >= b.n {
		return
	}
	left := n
	for i, seg := range b.segs {
		if len(seg) >= left {
			b.segs[i] = seg[:left]
			if left == 0 {
				i--
			}
			b.segs = b.segs[:i+1]
			break
		}
		left -= len(seg)
	}
	b.n = n
}

// Chain is one request. Its owner, the device, gives it back exactly once, with Done or Return, and doesn't touch it
// afterwards. In is what the device reads, Out what it writes.
type Chain struct {
	In, Out Buffers

	q      *Queue
	head   uint16
	in     [][]byte // the arrays behind In and Out, kept for the next chain
	out    [][]byte
	writes []span
}

// Writes are the guest's addresses and lengths of the buffers that the device may write, all of them whatever was consumed of Out.
func (c *Chain) Writes(f func(addr, n uint64) error) error {
	for _, s := range c.writes {
		if err := f(s.addr, s.n); err != nil {
			return err
		}
	}
	return nil
}

// span is a range of guest memory.
type span struct{ addr, n uint64 }

// Done gives the chain back as used, written bytes having been put into Out. The driver hears of it when Handle returns or
// at the next Queue.Signal.
func (c *Chain) Done(written int) {
	c.q.done(c, written)
	c.q.link.leave()
}

// Return gives the chain back unused, for when the queue is drained before a request that waits has had its turn: Pop
// returns it again after the pause, in this virtual machine and in those that are restored from it.
func (c *Chain) Return() {
	c.q.unpop(c)
	c.q.link.leave()
}
