package node

import (
	"bufio"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"

	"agentrun.dev/errs"
)

// A sealed file is sealMagic, a random prefix of nonces, and chunks: four bytes of length, big endian, and so many bytes of
// ciphertext. A chunk's nonce is the prefix and its number, and whether it is the last one is authenticated with it, so that
// chunks can be neither exchanged nor cut off.
const (
	sealMagic = "agentrun sealed 1\n"
	sealChunk = 64 << 10
	counter   = 4 // bytes at the end of a nonce
)

// sealer encrypts a stream.
type sealer struct {
	a     cipher.AEAD
	w     io.Writer
	nonce []byte
	buf   []byte
	out   []byte
	n     uint32
	err   error
}

func newSealer(a cipher.AEAD, w io.Writer) *sealer {
	s := &sealer{a: a, w: w, nonce: make([]byte, a.NonceSize()), buf: make([]byte, 0, sealChunk)}
	rand.Read(s.nonce[:a.NonceSize()-counter])
	_, s.err = w.Write(append([]byte(sealMagic), s.nonce[:a.NonceSize()-counter]...))
	return s
}

func (s *sealer) Write(b []byte) (n int, err error) {
	for len(b) > 0 && s.err == nil {
		if len(s.buf) == sealChunk {
			s.flush(0)
		}
		k := min(len(b), sealChunk-len(s.buf))
		s.buf = append(s.buf, b[:k]...)
		n, b = n+k, b[k:]
	}
	return n, s.err
}

// end writes the last chunk.
func (s *sealer) end() error {
	if s.err == nil {
		s.flush(1)
	}
	return s.err
}

func (s *sealer) flush(last byte) {
	if s.n == ^uint32(0) {
		s.err = errs.Msg(errs.TooLarge, "seal", "", "more chunks than a nonce counts")
		return
	}
	number(s.nonce, &s.n)
	s.out = s.a.Seal(append(s.out[:0], 0, 0, 0, 0), s.nonce, s.buf, []byte{last})
	binary.BigEndian.PutUint32(s.out, uint32(len(s.out)-4))
	_, s.err = s.w.Write(s.out)
	s.buf = s.buf[:0]
}

// number puts a chunk's number into the nonce.
func number(nonce []byte, n *uint32) {
	binary.BigEndian.PutUint32(nonce[len(nonce)-counter:], *n)
	*n++
}

// opener decrypts what sealer wrote. Whatever was changed is errs.Corrupt.
type opener struct {
	a     cipher.AEAD
	r     *bufio.Reader
	nonce []byte
	plain []byte // that is left of the chunk
	n     uint32
	begun bool
	last  bool
	err   error
}

func newOpener(a cipher.AEAD, r io.Reader) *opener {
	return &opener{a: a, r: bufio.NewReaderSize(r, sealChunk), nonce: make([]byte, a.NonceSize())}
}

func (o *opener) Read(b []byte) (int, error) {
	for len(o.plain) == 0 && o.err == nil {
		if o.last {
			o.err = io.EOF
		} else if err := o.chunk(); err != nil {
			o.err = errs.New(errs.Corrupt, "open sealed file", "", err)
		}
	}
	if len(o.plain) == 0 {
		return 0, o.err
	}
	n := copy(b, o.plain)
	o.plain = o.plain[n:]
	return n, nil
}

func (o *opener) chunk() error {
	if !o.begun {
		head := make([]byte, len(sealMagic)+len(o.nonce)-counter)
		if _, err := io.ReadFull(o.r, head); err != nil || string(head[:len(sealMagic)]) != sealMagic {
			return errors.New("it isn't one, or of another version")
		}
		copy(o.nonce, head[len(sealMagic):])
		o.begun = true
	}
	var head [4]byte
	if _, err := io.ReadFull(o.r, head[:]); err != nil {
		return errors.New("it is cut off")
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > sealChunk+uint32(o.a.Overhead()) {
		return errors.New("a chunk is too long")
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(o.r, text); err != nil {
		return errors.New("it is cut off")
	}
	// It is the last one if nothing follows; if that isn't how it was sealed, it doesn't open.
	if _, err := o.r.Peek(1); err == io.EOF {
		o.last = true
	}
	number(o.nonce, &o.n)
	last := byte(0)
	if o.last {
		last = 1
	}
	var err error
	o.plain, err = o.a.Open(text[:0], o.nonce, text, []byte{last})
	return err
}
