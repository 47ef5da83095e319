package rsync

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// protocol is the version that is spoken: all of rsync 3 knows it.
const protocol = 30

// Tags of frames.
const (
	tagBase    = 7
	msgData    = 0
	msgXfer    = 1
	msgInfo    = 2
	msgError   = 3
	msgWarning = 4
	msgIOError = 22
	msgNoop    = 42
	msgExit    = 86
	msgSuccess = 100
	msgDeleted = 101
	msgNoSend  = 102
)

// maxFrame is the longest frame there is.
const maxFrame = 1<<24 - 1

// protocolError is a violation of the protocol by the other side.
var protocolError = errors.New("protocol data error")

// writer frames what is written; it belongs to one goroutine but for messages.
type writer struct {
	mu      sync.Mutex
	w       *bufio.Writer
	framed  bool
	buf     []byte
	written int64
	prevPos int32 // see ndx
	prevNeg int32
}

func newWriter(w io.Writer) *writer {
	return &writer{w: bufio.NewWriterSize(w, 64<<10), prevPos: -1, prevNeg: 1}
}

// chunk is how much data is gathered for a frame.
const chunk = 32 << 10

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.framed {
		w.written += int64(len(p))
		return w.w.Write(p)
	}
	total := len(p)
	for len(p) > 0 {
		n := min(len(p), chunk-len(w.buf))
		w.buf = append(w.buf, p[:n]...)
		p = p[n:]
		if len(w.buf) == chunk {
			if err := w.frame(msgData, w.buf); err != nil {
				return 0, err
			}
			w.buf = w.buf[:0]
		}
	}
	return total, nil
}

func (w *writer) frame(tag int, p []byte) error {
	var head [4]byte
	binary.LittleEndian.PutUint32(head[:], uint32(tagBase+tag)<<24|uint32(len(p)))
	w.written += int64(4 + len(p))
	if _, err := w.w.Write(head[:]); err != nil {
		return err
	}
	_, err := w.w.Write(p)
	return err
}

// message sends a message between the data; any goroutine may call it.
func (w *writer) message(tag int, p []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.framed {
		return nil
	}
	if err := w.flushData(); err != nil {
		return err
	}
	if len(p) > chunk {
		p = p[:chunk]
	}
	return w.frame(tag, p)
}

func (w *writer) flushData() error {
	if len(w.buf) == 0 {
		return nil
	}
	err := w.frame(msgData, w.buf)
	w.buf = w.buf[:0]
	return err
}

func (w *writer) flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.flushData(); err != nil {
		return err
	}
	return w.w.Flush()
}

func (w *writer) byte(b byte) { w.Write([]byte{b}) }

func (w *writer) int(v int32) {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], uint32(v))
	w.Write(b[:])
}

func (w *writer) short(v uint16) { w.Write([]byte{byte(v), byte(v >> 8)}) }

// varint writes a number in one to five bytes: the first tells how many follow by its leading ones.
func (w *writer) varint(v int32) {
	var b [5]byte
	binary.LittleEndian.PutUint32(b[1:], uint32(v))
	w.packed(b[:], 1)
}

// varlong writes a number in at least least bytes.
func (w *writer) varlong(v int64, least int) {
	var b [9]byte
	binary.LittleEndian.PutUint64(b[1:], uint64(v))
	w.packed(b[:], least)
}

// packed writes b[1:] without the zeros at its end; the high bits of the first byte tell how many bytes beyond least
// there are.
func (w *writer) packed(b []byte, least int) {
	n := len(b) - 1
	for n > least && b[n] == 0 {
		n--
	}
	bit := byte(1) << (7 - n + least)
	switch {
	case b[n] >= bit:
		n++
		b[0] = ^(bit - 1)
	case n > least:
		b[0] = b[n] | ^(bit*2 - 1)
	default:
		b[0] = b[n]
	}
	w.Write(b[:n])
}

// vstring writes a string with its length in one or two bytes.
func (w *writer) vstring(s string) {
	if len(s) > 0x7f {
		w.byte(byte(len(s)>>8) | 0x80)
	}
	w.byte(byte(len(s)))
	w.Write([]byte(s))
}

// done is the index that ends a phase.
const done = -1

// ndx writes the index of a file as the difference to the one before.
func (w *writer) ndx(n int32) {
	if n == done {
		w.byte(0)
		return
	}
	var b []byte
	var diff int32
	if n >= 0 {
		diff, w.prevPos = n-w.prevPos, n
	} else {
		b = append(b, 0xff)
		n = -n
		diff, w.prevNeg = n-w.prevNeg, n
	}
	switch {
	case diff > 0 && diff < 0xfe:
		b = append(b, byte(diff))
	case diff < 0 || diff > 0x7fff:
		b = append(b, 0xfe, byte(n>>24)|0x80, byte(n), byte(n>>8), byte(n>>16))
	default:
		b = append(b, 0xfe, byte(diff>>8), byte(diff))
	}
	w.Write(b)
}

// reader reads what the other side wrote. Messages between the data go to a function.
type reader struct {
	r       *bufio.Reader
	framed  bool
	left    int
	read    int64
	message func(tag int, text []byte) error
	prevPos int32
	prevNeg int32
	err     error // the first one; after it everything reads as zero
}

func newReader(r io.Reader) *reader {
	return &reader{r: bufio.NewReaderSize(r, 64<<10), prevPos: -1, prevNeg: 1}
}

func (r *reader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	for r.framed && r.left == 0 {
		if err := r.next(); err != nil {
			r.err = err
			return 0, err
		}
	}
	if r.framed {
		p = p[:min(len(p), r.left)]
	}
	n, err := r.r.Read(p)
	r.read += int64(n)
	if r.framed {
		r.left -= n
	}
	if err != nil {
		r.err = err
	}
	return n, err
}

// next reads the head of a frame, and the whole of one that is a message.
func (r *reader) next() error {
	var head [4]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return err
	}
	r.read += 4
	v := binary.LittleEndian.Uint32(head[:])
	tag, n := int(v>>24)-tagBase, int(v&maxFrame)
	if tag == msgData {
		r.left = n
		return nil
	}
	if tag < 0 || n > 1<<20 {
		return fmt.Errorf("unexpected tag %d: %w", tag, protocolError)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r.r, b); err != nil {
		return err
	}
	r.read += int64(n)
	if r.message == nil {
		return nil
	}
	return r.message(tag, b)
}

// bytes reads exactly n bytes; after an error they are zero.
func (r *reader) bytes(n int) []byte {
	b := make([]byte, n)
	if r.err == nil {
		if _, err := io.ReadFull(r, b); err != nil {
			clear(b)
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			r.err = err
		}
	}
	return b
}

func (r *reader) byte() byte { return r.bytes(1)[0] }

func (r *reader) int() int32 { return int32(binary.LittleEndian.Uint32(r.bytes(4))) }

func (r *reader) short() uint16 { return binary.LittleEndian.Uint16(r.bytes(2)) }

func (r *reader) varint() int32 {
	var b [5]byte
	r.unpack(b[:], 1)
	return int32(binary.LittleEndian.Uint32(b[:]))
}

func (r *reader) varlong(least int) int64 {
	var b [9]byte
	r.unpack(b[:], least)
	return int64(binary.LittleEndian.Uint64(b[:]))
}

// unpack is the reverse of packed.
func (r *reader) unpack(b []byte, least int) {
	head := r.bytes(least)
	copy(b, head[1:])
	first := head[0]
	extra := 0
	for extra < 8 && first&(0x80>>extra) != 0 {
		extra++
	}
	if extra == 0 {
		b[least-1] = first
		return
	}
	if least+extra > len(b) {
		r.fail("overflow in a number")
		return
	}
	copy(b[least-1:], r.bytes(extra))
	bit := byte(1) << (8 - extra)
	b[least+extra-1] = first & (bit - 1)
}

func (r *reader) fail(text string) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %w", text, protocolError)
	}
}

func (r *reader) vstring() string {
	n := int(r.byte())
	if n&0x80 != 0 {
		n = n&^0x80<<8 | int(r.byte())
	}
	return string(r.bytes(n))
}

func (r *reader) ndx() int32 {
	b := r.byte()
	if r.err != nil || b == 0 {
		return done
	}
	prev := &r.prevPos
	if b == 0xff {
		b = r.byte()
		prev = &r.prevNeg
	}
	n := *prev + int32(b)
	if b == 0xfe {
		x := r.bytes(2)
		if x[0]&0x80 != 0 {
			y := r.bytes(2)
			n = int32(x[0]&^0x80)<<24 | int32(x[1]) | int32(y[0])<<8 | int32(y[1])<<16
		} else {
			n = *prev + int32(x[0])<<8 + int32(x[1])
		}
	}
	*prev = n
	if prev == &r.prevNeg {
		return -n
	}
	return n
}

// peek returns the next byte without taking it.
func (r *reader) peek() (byte, error) {
	for r.err == nil && r.framed && r.left == 0 {
		r.err = r.next()
	}
	if r.err != nil {
		return 0, r.err
	}
	b, err := r.r.Peek(1)
	if err != nil {
		r.err = err
		return 0, err
	}
	return b[0], nil
}
