package snapshot

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/zeebo/blake3"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/memory"
)

// A file is: 8 bytes of magic; the version; blocks. A block is its kind, 8 bytes of offset, 4 bytes of length, the
// first 16 bytes of the BLAKE3 hash over all that, and the data. The state is one block of JSON, the first; RAM
// follows in blocks of whole pages in order, what is missing is zeros; then come the disks, one after the other, each in blocks of
// what isn't its base's, in order; the last block is empty, and its offset is how many there were. Numbers are little-endian.
const (
	fileMagic   = "AGRNVMSN"
	fileVersion = 1

	blockState  = 1
	blockMemory = 2
	blockEnd    = 3
	blockDisk   = 16 // and its index
	maxDisks    = 16

	blockHeader = 1 + 8 + 4 + 16
	maxState    = 64 << 20
	maxBlock    = 1 << 20
)

func corrupt(format string, args ...any) error {
	return errs.Msg(errs.Corrupt, "snapshot", "read", fmt.Sprintf(format, args...))
}

// Write writes the snapshot. The stream is only as durable as w makes it.
func (s *Snapshot) Write(w io.Writer) error {
	b := bufio.NewWriterSize(w, 64<<10)
	_, _ = b.WriteString(fileMagic) // a bufio.Writer keeps its error until Flush
	_ = binary.Write(b, binary.LittleEndian, uint32(fileVersion))
	if len(s.Disks) > maxDisks {
		return errs.Msg(errs.TooLarge, "snapshot", "write", "it has too many disks")
	}
	state, err := json.Marshal(s)
	if err != nil {
		return errs.New(errs.Other, "snapshot", "write", err)
	}
	blocks := uint64(0)
	block := func(kind byte, off uint64, data []byte) error {
		blocks++
		h := header(kind, off, data)
		_, _ = b.Write(h[:])
		_, err := b.Write(data)
		return err
	}
	if len(state) > maxState {
		return errs.Msg(errs.TooLarge, "snapshot", "write", "its devices have too much state")
	}
	err = block(blockState, 0, state)
	if err == nil {
		err = s.Memory.Data(func(off uint64, b []byte) error { return block(blockMemory, off, b) })
	}
	for i := range s.Disks {
		if err == nil {
			err = s.Disks[i].changed(func(off int64, b []byte) error { return block(blockDisk+byte(i), uint64(off), b) })
		}
	}
	if err == nil {
		err = block(blockEnd, blocks, nil)
	}
	if err == nil {
		err = b.Flush()
	}
	if err != nil && errs.KindOf(err) == errs.Other {
		err = errs.New(errs.Other, "snapshot", "write", err)
	}
	return err
}

// header is what stands before a block's data.
func header(kind byte, off uint64, data []byte) (h [blockHeader]byte) {
	h[0] = kind
	binary.LittleEndian.PutUint64(h[1:], off)
	binary.LittleEndian.PutUint32(h[9:], uint32(len(data)))
	sum := blake3.New()
	_, _ = sum.Write(h[:13])
	_, _ = sum.Write(data)
	copy(h[13:], sum.Sum(nil)[:16])
	return h
}

// Read reads what Write wrote. Errors: Corrupt when it isn't that any more, Unsupported for another version.
func Read(r io.Reader) (*Snapshot, error) {
	in := &reader{r: bufio.NewReaderSize(r, 64<<10)}
	var head [12]byte
	if err := in.full(head[:]); err != nil {
		return nil, err
	}
	if string(head[:8]) != fileMagic {
		return nil, corrupt("it is no snapshot of a VM")
	}
	if v := binary.LittleEndian.Uint32(head[8:]); v != fileVersion {
		return nil, errs.Msg(errs.Unsupported, "snapshot", "read", fmt.Sprintf("it has version %d; this AgentRun reads version %d", v, fileVersion))
	}
	kind, _, data, err := in.block(maxState)
	if err != nil {
		return nil, err
	}
	s := new(Snapshot)
	if kind != blockState {
		return nil, corrupt("it doesn't begin with the state")
	}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, corrupt("its state: %v", err)
	}
	if len(s.Disks) > maxDisks {
		return nil, corrupt("it has %d disks", len(s.Disks))
	}
	s.Memory, err = memory.Build(s.Machine.Memory, in.memory)
	for i := range s.Disks {
		if err == nil {
			err = in.disk(byte(i), &s.Disks[i])
		}
	}
	if err == nil && (in.next.kind != blockEnd || in.next.off != in.blocks-1 || len(in.next.data) != 0) {
		err = corrupt("blocks are missing or out of place")
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// reader reads blocks.
type reader struct {
	r      *bufio.Reader
	blocks uint64
	buf    []byte
	next   struct { // the block after those that were taken, once RAM is read
		kind byte
		off  uint64
		data []byte
	}
}

// more reads the next block.
func (r *reader) more() (err error) {
	r.next.kind, r.next.off, r.next.data, err = r.block(maxBlock)
	return err
}

func (r *reader) full(b []byte) error {
	_, err := io.ReadFull(r.r, b)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return corrupt("it is cut off")
	case err != nil:
		return errs.New(errs.Other, "snapshot", "read", err)
	}
	return nil
}

// block reads the next one; data is valid until the one after. A length is believed only as far as data comes.
func (r *reader) block(limit int) (kind byte, off uint64, data []byte, err error) {
	var h [blockHeader]byte
	if err := r.full(h[:]); err != nil {
		return 0, 0, nil, err
	}
	n := int64(binary.LittleEndian.Uint32(h[9:]))
	if n > int64(limit) {
		return 0, 0, nil, corrupt("a block is too long")
	}
	if int64(cap(r.buf)) < n {
		if data, err = io.ReadAll(io.LimitReader(r.r, n)); err != nil {
			return 0, 0, nil, errs.New(errs.Other, "snapshot", "read", err)
		}
		if int64(len(data)) < n {
			return 0, 0, nil, corrupt("it is cut off")
		}
		r.buf = data
	} else {
		data = r.buf[:n]
		if err := r.full(data); err != nil {
			return 0, 0, nil, err
		}
	}
	kind, off = h[0], binary.LittleEndian.Uint64(h[1:])
	if h != header(kind, off, data) {
		return 0, 0, nil, corrupt("a checksum is wrong")
	}
	r.blocks++
	return kind, off, data, nil
}

// memory reads RAM, and the block behind it.
func (r *reader) memory(write func(off uint64, b []byte) error) error {
	for at := uint64(0); ; {
		if err := r.more(); err != nil {
			return err
		}
		n := &r.next
		switch {
		case n.kind == blockEnd || n.kind >= blockDisk:
			return nil
		case n.kind != blockMemory || n.off < at || n.off%memory.PageSize != 0 || len(n.data)%memory.PageSize != 0:
			return corrupt("a block is out of place")
		}
		if err := write(n.off, n.data); err != nil {
			return err
		}
		at = n.off + uint64(len(n.data))
	}
}
