package segment

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"agentrun.dev/errs"
)

// The format of a segment, version 1. Integers are little-endian; CRC is CRC32C.
//
//	segment  = header slot* footer            named seg-<id>.<generation>, both hexadecimal
//	header   = 64 bytes:  0 magic "ARSEGMNT"   8 version u16   10 zero u16   12 generation u32   16 id u64   24 salt u64
//	                     32 zero              60 CRC of bytes 0 to 59
//	slot     = padding to a multiple of 8, meta, padding, payload
//	meta     = 32 bytes:  0 magic "ARSL"   4 version u8   5 zero u24   8 segment u64   16 slot u32   20 size u32   24 zero u32
//	                     28 CRC of salt u64, bytes 0 to 27, and the block CRCs
//	           then the CRC u32 of each 64 KiB block of the payload; the last block may be shorter
//	footer   = padding to a multiple of 8, table, trailer
//	table    = for each slot number from 0: offset of the meta u32, size u32. Offset 0 is a slot that isn't there; its
//	           size is 0 if it was dropped as garbage, 1 if a crash tore it
//	trailer  = 64 bytes:  0 magic "ARSEGFTR"   8 version u16   10 zero u16   12 generation u32   16 id u64   24 salt u64
//	                     32 offset of the table u64   40 slots in the table u32   44 CRC of the table u32
//	                     48 payload bytes of the slots present u64   56 slots present u32   60 CRC of bytes 0 to 59
//
// The payload of a slot of 32 KiB or more begins at a multiple of 4,096, so that punching frees nearly all of it; that
// costs 2 KiB on average. Smaller ones are packed, and runs of dead ones are punched where they cover whole pages.
//
// The salt is random and known only to the segment: it keeps a payload that looks like a slot from being taken for one
// when a segment without a footer is scanned.
const (
	segPrefix  = "seg-"
	version    = 1
	blockSize  = 64 << 10
	pageSize   = 4096
	alignMin   = 32 << 10
	headLen    = 64
	metaLen    = 32
	trailerLen = 64
	entryLen   = 8
	maxMeta    = metaLen + 4*(MaxSlot/blockSize)
)

const (
	headMagic    = "ARSEGMNT"
	slotMagic    = "ARSL"
	trailerMagic = "ARSEGFTR"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var le = binary.LittleEndian

func checksum(p []byte) uint32 { return crc32.Checksum(p, castagnoli) }

func alignUp(n, to int64) int64 { return (n + to - 1) &^ (to - 1) }

func blocks(size int64) int64 { return (size + blockSize - 1) / blockSize }

// metaSize returns the bytes of a slot's meta, block CRCs included.
func metaSize(size int64) int64 { return metaLen + 4*blocks(size) }

// payloadOff returns where the payload of a slot begins whose meta is at off.
func payloadOff(off, size int64) int64 {
	if off += metaSize(size); size >= alignMin {
		return alignUp(off, pageSize)
	}
	return off
}

func segName(id uint64, gen uint32) string { return fmt.Sprintf("%s%016x.%08x", segPrefix, id, gen) }

// parseSegName is the inverse of segName; names of another form aren't ours.
func parseSegName(name string) (id uint64, gen uint32, ok bool) {
	rest, _ := strings.CutPrefix(name, segPrefix)
	a, b, _ := strings.Cut(rest, ".")
	id, err1 := strconv.ParseUint(a, 16, 64)
	g, err2 := strconv.ParseUint(b, 16, 32)
	gen = uint32(g)
	return id, gen, err1 == nil && err2 == nil && id != 0 && segName(id, gen) == name
}

// head is a segment's header.
type head struct {
	id   uint64
	gen  uint32
	salt uint64
}

func (h head) encode() []byte {
	p := make([]byte, headLen)
	copy(p, headMagic)
	le.PutUint16(p[8:], version)
	le.PutUint32(p[12:], h.gen)
	le.PutUint64(p[16:], h.id)
	le.PutUint64(p[24:], h.salt)
	le.PutUint32(p[60:], checksum(p[:60]))
	return p
}

// parseHead reads the header of the named segment.
func parseHead(p []byte, id uint64, gen uint32) (head, error) {
	if err := checkFrame(p, headMagic, id, gen, "header"); err != nil {
		return head{}, err
	}
	return head{id: id, gen: gen, salt: le.Uint64(p[24:])}, nil
}

// checkFrame checks what headers and trailers have in common.
func checkFrame(p []byte, magic string, id uint64, gen uint32, what string) error {
	thing := fmt.Sprintf("segment %d %s", id, what)
	switch {
	case len(p) != headLen || string(p[:8]) != magic || le.Uint32(p[60:]) != checksum(p[:60]):
		return errs.Msg(errs.Corrupt, "open", thing, "checksum mismatch")
	case le.Uint16(p[8:]) != version:
		return errs.Msg(errs.Unsupported, "open", thing, fmt.Sprintf("format version %d is not known here", le.Uint16(p[8:])))
	case le.Uint64(p[16:]) != id || le.Uint32(p[12:]) != gen:
		return errs.Msg(errs.Corrupt, "open", thing, "it belongs to another segment")
	}
	return nil
}

// entry is a slot's place in its segment.
type entry struct{ off, size uint32 }

// torn marks a slot that a crash left incomplete; an entry of zeros one that was dropped.
var torn = entry{0, 1}

func (e entry) present() bool { return e.off != 0 }

// end returns the offset after the slot's payload.
func (e entry) end() int64 { return payloadOff(int64(e.off), int64(e.size)) + int64(e.size) }

// trailer is the fixed part of a footer.
type trailer struct {
	head
	tableOff int64
	slots    int
	tableCRC uint32
	bytes    int64
	present  int
}

// encodeFooter returns the footer that is to stand at off, a multiple of 8.
func encodeFooter(h head, off int64, entries []entry) []byte {
	p := make([]byte, len(entries)*entryLen, len(entries)*entryLen+trailerLen)
	bytes, present := int64(0), 0
	for i, e := range entries {
		le.PutUint32(p[i*entryLen:], e.off)
		le.PutUint32(p[i*entryLen+4:], e.size)
		if e.present() {
			bytes += int64(e.size)
			present++
		}
	}
	crc := checksum(p)
	var t [trailerLen]byte
	copy(t[:], trailerMagic)
	le.PutUint16(t[8:], version)
	le.PutUint32(t[12:], h.gen)
	le.PutUint64(t[16:], h.id)
	le.PutUint64(t[24:], h.salt)
	le.PutUint64(t[32:], uint64(off))
	le.PutUint32(t[40:], uint32(len(entries)))
	le.PutUint32(t[44:], crc)
	le.PutUint64(t[48:], uint64(bytes))
	le.PutUint32(t[56:], uint32(present))
	le.PutUint32(t[60:], checksum(t[:60]))
	return append(p, t[:]...)
}

// parseTrailer reads the trailer of the named segment, a blob of blobSize bytes.
func parseTrailer(p []byte, id uint64, gen uint32, blobSize int64) (trailer, error) {
	if err := checkFrame(p, trailerMagic, id, gen, "footer"); err != nil {
		return trailer{}, err
	}
	t := trailer{
		head: head{id: id, gen: gen, salt: le.Uint64(p[24:])}, tableOff: int64(le.Uint64(p[32:])), slots: int(le.Uint32(p[40:])),
		tableCRC: le.Uint32(p[44:]), bytes: int64(le.Uint64(p[48:])), present: int(le.Uint32(p[56:])),
	}
	if t.slots > maxSlots || t.present > t.slots || t.tableOff < headLen || t.bytes < 0 ||
		t.tableOff+int64(t.slots)*entryLen != blobSize-trailerLen {
		return trailer{}, errs.Msg(errs.Corrupt, "open", fmt.Sprintf("segment %d footer", id), "its numbers don't fit the segment")
	}
	return t, nil
}

// parseTable reads the slot table that a trailer describes.
func parseTable(p []byte, t trailer) ([]entry, error) {
	bad := func(text string) error {
		return errs.Msg(errs.Corrupt, "open", fmt.Sprintf("segment %d slot table", t.id), text)
	}
	if len(p) != t.slots*entryLen || checksum(p) != t.tableCRC {
		return nil, bad("checksum mismatch")
	}
	entries := make([]entry, t.slots)
	at := int64(headLen) // slots lie in the order of their numbers
	for i := range entries {
		e := entry{le.Uint32(p[i*entryLen:]), le.Uint32(p[i*entryLen+4:])}
		if e.present() {
			if int64(e.off) < at || e.off%8 != 0 || e.size > MaxSlot || e.end() > t.tableOff {
				return nil, bad(fmt.Sprintf("slot %d lies outside its place", i))
			}
			at = e.end()
		}
		entries[i] = e
	}
	return entries, nil
}

// putMeta fills in a slot's meta, whose block CRCs stand in it already.
func putMeta(p []byte, h head, slot, size uint32) {
	clear(p[:metaLen])
	copy(p, slotMagic)
	p[4] = version
	le.PutUint64(p[8:], h.id)
	le.PutUint32(p[16:], slot)
	le.PutUint32(p[20:], size)
	le.PutUint32(p[28:], metaChecksum(p, h.salt))
}

func metaChecksum(p []byte, salt uint64) uint32 {
	crc := ^uint32(0)
	for range 8 { // by hand, since the package would have the bytes on the heap
		crc = castagnoli[byte(crc)^byte(salt)] ^ crc>>8
		salt >>= 8
	}
	crc = crc32.Update(^crc, castagnoli, p[:28])
	return crc32.Update(crc, castagnoli, p[metaLen:])
}

// blockCRCs writes the CRC of each block of a payload.
func blockCRCs(dst, payload []byte) {
	for len(payload) > 0 {
		n := min(len(payload), blockSize)
		le.PutUint32(dst, checksum(payload[:n]))
		dst, payload = dst[4:], payload[n:]
	}
}

// peekMeta reads slot number and size from the beginning of a meta, not yet checked. ok is false where none begins.
func peekMeta(p []byte, id uint64) (slot, size uint32, ok bool) {
	if len(p) < metaLen || string(p[:4]) != slotMagic || p[4] != version || le.Uint64(p[8:]) != id {
		return 0, 0, false
	}
	slot, size = le.Uint32(p[16:]), le.Uint32(p[20:])
	return slot, size, slot < maxSlots && size <= MaxSlot
}

// checkMeta reports whether p is the meta of a slot of the given number and size.
func checkMeta(p []byte, h head, slot, size uint32) bool {
	gotSlot, gotSize, ok := peekMeta(p, h.id)
	return ok && gotSlot == slot && gotSize == size && int64(len(p)) == metaSize(int64(size)) &&
		le.Uint32(p[28:]) == metaChecksum(p, h.salt)
}
