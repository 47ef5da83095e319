package vmm

import (
	"io"
	"sync"

	"agentrun.dev/errs"
)

// inputRoom is what may be typed ahead.
const inputRoom = 4096

// Registers of a 16550 by their offset, and bits of them (National Semiconductor's PC16550D data sheet).
const (
	regData  = 0 // divisor's low byte with DLAB
	regIER   = 1 // divisor's high byte with DLAB
	regIIR   = 2 // FCR when written
	regLCR   = 3
	regMCR   = 4
	regLSR   = 5
	regMSR   = 6
	regSCR   = 7
	ierRecv  = 1 << 0
	ierSend  = 1 << 1
	iirNone  = 1
	iirSend  = 2
	iirRecv  = 4
	iirFIFO  = 3 << 6
	lcrDLAB  = 1 << 7
	mcrLoop  = 1 << 4
	lsrData  = 1 << 0
	lsrEmpty = 1<<5 | 1<<6
	msrReady = 1<<4 | 1<<5 | 1<<7 // clear to send, data set ready, carrier
)

// console is a minimal 16550: it sends at once, and is therefore always empty.
type console struct {
	out io.Writer
	irq func() error

	mu    sync.Mutex
	tail  ring
	input []byte
	uart  uart
}

// uart is what a snapshot keeps, all of a byte each.
type uart struct {
	ier, lcr, mcr, scr, dll, dlm, fcr byte
	sent                              bool // the interrupt for an empty transmitter is due
}

func newConsole(tail int, out io.Writer, irq func() error) *console {
	return &console{out: out, irq: irq, tail: ring{buf: make([]byte, 0, min(tail, 4096)), max: tail}}
}

// Tail returns a copy of the end of the output.
func (c *console) Tail() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tail.bytes()
}

// Input queues what fits.
func (c *console) Input(p []byte) (int, error) {
	c.mu.Lock()
	n := min(len(p), inputRoom-len(c.input))
	c.input = append(c.input, p[:n]...)
	raise := n > 0 && c.uart.ier&ierRecv != 0
	c.mu.Unlock()
	if raise {
		if err := c.irq(); err != nil {
			return n, err
		}
	}
	if n < len(p) {
		return n, errs.Msg(errs.Limit, "vmm", "console", "the guest doesn't read its input")
	}
	return n, nil
}

// resume raises the interrupt again that the driver hasn't dealt with: it may have come between what was saved of the console and of the
// interrupt controllers.
func (c *console) resume() {
	c.mu.Lock()
	u := &c.uart
	due := u.ier&ierSend != 0 && u.sent || u.ier&ierRecv != 0 && len(c.input) > 0
	c.mu.Unlock()
	if due {
		_ = c.irq()
	}
}

// access is one of the guest's. Only the first byte of a wider one counts, as on the chip.
func (c *console) access(off uint16, p []byte, out bool) {
	c.mu.Lock()
	raise, text := false, false
	b := p[0]
	if out {
		raise, text = c.write(off, b)
	} else {
		clear(p)
		p[0], raise = c.read(off)
	}
	if text {
		c.tail.write(b)
	}
	c.mu.Unlock()
	if text && c.out != nil {
		_, _ = c.out.Write([]byte{b}) // a console that nobody can hear is no reason to stop
	}
	if raise {
		_ = c.irq() // it fails only when the VM is gone
	}
}

// write returns whether an interrupt is due, and whether b is output.
func (c *console) write(off uint16, b byte) (raise, text bool) {
	u := &c.uart
	switch off {
	case regData:
		switch {
		case u.lcr&lcrDLAB != 0:
			u.dll = b
		case u.mcr&mcrLoop != 0: // the driver looks whether there is a chip
			if len(c.input) < inputRoom {
				c.input = append(c.input, b)
			}
			return u.ier&ierRecv != 0, false
		default:
			u.sent = true
			return u.ier&ierSend != 0, true
		}
	case regIER:
		if u.lcr&lcrDLAB != 0 {
			u.dlm = b
			return false, false
		}
		was := u.ier
		u.ier = b & 0xf
		if u.ier&ierSend != 0 && was&ierSend == 0 { // the transmitter is empty, which is news to the driver
			u.sent = true
		}
		return u.ier&ierSend != 0 && u.sent || u.ier&ierRecv != 0 && len(c.input) > 0, false
	case regIIR:
		u.fcr = b
		if b&2 != 0 { // clear what was received
			c.input = c.input[:0]
		}
	case regLCR:
		u.lcr = b
	case regMCR:
		u.mcr = b
	case regSCR:
		u.scr = b
	}
	return false, false
}

func (c *console) read(off uint16) (b byte, raise bool) {
	u := &c.uart
	switch off {
	case regData:
		if u.lcr&lcrDLAB != 0 {
			return u.dll, false
		}
		if len(c.input) == 0 {
			return 0, false
		}
		b = c.input[0]
		c.input = c.input[:copy(c.input, c.input[1:])]
		return b, len(c.input) > 0 && u.ier&ierRecv != 0
	case regIER:
		if u.lcr&lcrDLAB != 0 {
			return u.dlm, false
		}
		return u.ier, false
	case regIIR:
		fifo := byte(0)
		if u.fcr&1 != 0 {
			fifo = iirFIFO
		}
		switch {
		case u.ier&ierRecv != 0 && len(c.input) > 0:
			return fifo | iirRecv, false
		case u.ier&ierSend != 0 && u.sent:
			u.sent = false
			return fifo | iirSend, false
		}
		return fifo | iirNone, false
	case regLCR:
		return u.lcr, false
	case regMCR:
		return u.mcr, false
	case regLSR:
		b = lsrEmpty
		if len(c.input) > 0 {
			b |= lsrData
		}
		return b, false
	case regMSR:
		if u.mcr&mcrLoop != 0 { // the outputs come back as inputs
			return u.mcr&1<<5 | u.mcr&2<<3 | u.mcr&4<<4 | u.mcr&8<<4, false
		}
		return msrReady, false
	case regSCR:
		return u.scr, false
	}
	return 0, false
}

// ring keeps the last bytes of what is written.
type ring struct {
	buf []byte
	max int
	at  int // the oldest, once the ring is full
}

func (r *ring) write(b byte) {
	switch {
	case r.max == 0:
	case len(r.buf) < r.max:
		r.buf = append(r.buf, b)
	default:
		r.buf[r.at] = b
		r.at = (r.at + 1) % r.max
	}
}

func (r *ring) bytes() []byte { return append(append([]byte(nil), r.buf[r.at:]...), r.buf[:r.at]...) }
