package wasm

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/klauspost/compress/zstd"

	"agentrun.dev/errs"
)

// A saved snapshot is a magic number and a zstd stream: a header, runs of memory, and the SHA-256 of all that. Numbers are little endian. The header
// is the module's key (32 bytes), the memory's size (8), the address for signals (4), and three lists, each after its length (4): globals (8 each),
// descriptors that don't wait and descriptors that append (4 each). A run is its address (8), its length (4) and its bytes, in
// ascending order; one of length 0 is the last. What no run covers is zero.
const saveMagic = "AgentRun wasm snapshot 1\n"

const (
	maxRun       = 1 << 20 // bytes of one run
	maxSavedList = 1 << 16 // elements of a list
)

// Save writes the snapshot, for LoadSnapshot. It takes as much as the guest's memory holds, compressed.
func (s *Snapshot) Save(w io.Writer) error {
	fail := func(err error) error { return errs.New(errs.KindOf(err), "save", s.m.o.Name, err) }
	extents, _, err := s.take()
	if err != nil {
		return err
	}
	defer give(extents)
	if _, err := io.WriteString(w, saveMagic); err != nil {
		return fail(err)
	}
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithEncoderCRC(false))
	if err != nil {
		return fail(err)
	}
	defer z.Close()
	h := sha256.New()
	out := io.MultiWriter(z, h)
	if _, err := out.Write(s.header()); err != nil {
		return fail(err)
	}
	run := func(off uint64, b []byte) error {
		head := binary.LittleEndian.AppendUint64(nil, off)
		_, err := out.Write(binary.LittleEndian.AppendUint32(head, uint32(len(b))))
		if err == nil && len(b) > 0 {
			_, err = out.Write(b)
		}
		return err
	}
	err = s.each(extents, func(b []byte, off uint64) error {
		for len(b) > 0 {
			n := zeros(b)
			end := n
			for end < len(b) && !isZero(b[end:min(end+hostPageSize, len(b))]) {
				end = min(end+hostPageSize, len(b))
			}
			if end > n {
				if err := run(off+uint64(n), b[n:end]); err != nil {
					return err
				}
			}
			b, off = b[end:], off+uint64(end)
		}
		return nil
	})
	if err == nil {
		err = run(s.size, nil)
	}
	if err == nil {
		_, err = z.Write(h.Sum(nil))
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

func (s *Snapshot) header() []byte {
	le := binary.LittleEndian
	b := append([]byte(nil), s.m.key[:]...)
	b = le.AppendUint64(b, s.size)
	b = le.AppendUint32(b, s.host.sigword)
	b = le.AppendUint32(b, uint32(len(s.globals)))
	for _, g := range s.globals {
		b = le.AppendUint64(b, g)
	}
	for _, set := range []map[int32]bool{s.host.nonblock, s.host.appends} {
		b = le.AppendUint32(b, uint32(len(set)))
		for _, fd := range slices.Sorted(maps.Keys(set)) {
			b = le.AppendUint32(b, uint32(fd))
		}
	}
	return b
}

// LoadSnapshot reads what Save of a snapshot of this very module wrote, up to r's end. Errors: errs.Corrupt for what isn't whole, errs.Unsupported for
// another version, errs.Invalid for another module, errs.TooLarge for more memory than the Runtime allows, errs.Limit when the host is out of memory.
func (m *Module) LoadSnapshot(r io.Reader) (*Snapshot, error) {
	corrupt := func(err error) (*Snapshot, error) { return nil, errs.New(errs.Corrupt, "load snapshot", m.o.Name, err) }
	if m.info.Fixed != "" {
		return nil, errs.Msg(errs.Unsupported, "load snapshot", m.o.Name, "the module has "+m.info.Fixed)
	}
	magic := make([]byte, len(saveMagic))
	if _, err := io.ReadFull(r, magic); err != nil {
		return corrupt(err)
	}
	if string(magic) != saveMagic {
		if bytes.HasPrefix(magic, []byte("AgentRun wasm snapshot ")) {
			return nil, errs.Msg(errs.Unsupported, "load snapshot", m.o.Name, "of another version")
		}
		return corrupt(errors.New("not a snapshot"))
	}
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(1<<20))
	if err != nil {
		return corrupt(err)
	}
	defer z.Close()
	h := sha256.New()
	in := io.TeeReader(z, h)
	s := &Snapshot{m: m}
	if err := s.readHeader(in); err != nil {
		if errs.KindOf(err) != errs.Other {
			return nil, err
		}
		return corrupt(err)
	}
	l, err := newLayer(s.size)
	if err != nil {
		return nil, errs.New(errs.Limit, "load snapshot", m.o.Name, err)
	}
	if err := readRuns(in, l, s.size); err != nil {
		l.release()
		return corrupt(err)
	}
	sum, got := h.Sum(nil), make([]byte, sha256.Size)
	if _, err := io.ReadFull(z, got); err != nil || !bytes.Equal(sum, got) {
		l.release()
		return corrupt(errors.New("the checksum differs"))
	}
	if n, err := io.ReadFull(z, got[:1]); n > 0 || err != io.EOF {
		l.release()
		return corrupt(errors.New("there is more than a snapshot"))
	}
	if err := l.seal(); err != nil {
		l.release()
		return nil, errs.New(errs.Limit, "load snapshot", m.o.Name, err)
	}
	s.extents = []extent{{span{0, s.size}, l}}
	if s.size == 0 {
		s.extents = nil
		l.release()
	}
	s.bytes.Store(int64(s.size))
	return s, nil
}

func (s *Snapshot) readHeader(r io.Reader) error {
	m, le := s.m, binary.LittleEndian
	head := make([]byte, 32+8+4)
	if _, err := io.ReadFull(r, head); err != nil {
		return err
	}
	if !bytes.Equal(head[:32], m.key[:]) {
		return errs.Msg(errs.Invalid, "load snapshot", m.o.Name, "of another module")
	}
	s.size, s.host.sigword = le.Uint64(head[32:]), le.Uint32(head[40:])
	if s.size > uint64(m.r.o.Memory) {
		return errs.Msg(errs.TooLarge, "load snapshot", m.o.Name, fmt.Sprintf("%d bytes of memory, %d are allowed", s.size, m.r.o.Memory))
	}
	if s.size%pageSize != 0 || s.size < uint64(m.info.MemoryMin)*pageSize {
		return errors.New("size of memory")
	}
	list := func(width int) ([]byte, error) {
		var n [4]byte
		if _, err := io.ReadFull(r, n[:]); err != nil {
			return nil, err
		}
		if le.Uint32(n[:]) > maxSavedList {
			return nil, errors.New("length of a list")
		}
		b := make([]byte, int(le.Uint32(n[:]))*width)
		_, err := io.ReadFull(r, b)
		return b, err
	}
	globals, err := list(8)
	if err != nil {
		return err
	}
	for ; len(globals) > 0; globals = globals[8:] {
		s.globals = append(s.globals, le.Uint64(globals))
	}
	if len(s.globals) != len(m.info.Globals) {
		return errors.New("number of globals")
	}
	for _, set := range []*map[int32]bool{&s.host.nonblock, &s.host.appends} {
		b, err := list(4)
		if err != nil {
			return err
		}
		for ; len(b) > 0; b = b[4:] {
			if *set == nil {
				*set = make(map[int32]bool)
			}
			(*set)[int32(le.Uint32(b))] = true
		}
	}
	return nil
}

// readRuns fills a layer.
func readRuns(r io.Reader, l *layer, size uint64) error {
	var head [12]byte
	var buf []byte
	for from := uint64(0); ; {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return err
		}
		off, n := binary.LittleEndian.Uint64(head[:]), uint64(binary.LittleEndian.Uint32(head[8:]))
		if off < from || off > size || n > maxRun || n > size-off {
			return errors.New("a run out of range")
		}
		if n == 0 {
			return nil
		}
		if uint64(cap(buf)) < n {
			buf = make([]byte, n)
		}
		if _, err := io.ReadFull(r, buf[:n]); err != nil {
			return err
		}
		if err := l.write(buf[:n], off); err != nil {
			return err
		}
		from = off + n
	}
}
