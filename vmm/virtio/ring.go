package virtio

import (
	"sync/atomic"
	"unsafe"
)

// The indexes of rings are what driver and device order their other accesses by. Go's atomics begin at 32 bits; an index and
// the flags before it are 32 bits that one side alone writes, so they are moved together. (On amd64, the only architecture of
// this package's callers, an ordinary load acquires, an ordinary store releases, and an atomic store is a full barrier.)

// loadIndex reads the index of a ring whose first four bytes are flags and index.
func loadIndex(ring []byte) uint16 {
	p := unsafe.Pointer(&ring[0])
	if uintptr(p)%4 != 0 { // an available ring needs an alignment of 2 only
		return loadShort(ring[2:])
	}
	return uint16(atomic.LoadUint32((*uint32)(p)) >> 16)
}

// storeIndex publishes the index of a used ring, whose flags stay zero: we always want to be notified, or say so by event.
func storeIndex(ring []byte, idx uint16) {
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&ring[0])), uint32(idx)<<16)
}

// loadShort and storeShort move 16 bits in one access. The other side does the same at any time, which the race detector
// can't be told otherwise.
//
//go:norace
//go:noinline
func loadShort(b []byte) uint16 {
	_ = b[1]
	return *(*uint16)(unsafe.Pointer(&b[0]))
}

//go:norace
//go:noinline
func storeShort(b []byte, v uint16) {
	_ = b[1]
	*(*uint16)(unsafe.Pointer(&b[0])) = v
}
