package vsock

import "encoding/binary"

// HostCID is the host's address, whichever the guest's (5.10.4).
const HostCID = 2

const headerSize = 44

const typeStream = 1

// Operations (5.10.6).
const (
	opRequest       = 1
	opResponse      = 2
	opReset         = 3
	opShutdown      = 4
	opData          = 5
	opCreditUpdate  = 6
	opCreditRequest = 7
)

// Flags of a shutdown: what the sender won't do any more.
const (
	shutReceive = 1
	shutSend    = 2
	shutBoth    = shutReceive | shutSend
)

// header begins every packet.
type header struct {
	srcCID, dstCID   uint64
	srcPort, dstPort uint32
	length           uint32
	kind, op         uint16
	flags            uint32
	bufAlloc         uint32 // how much the sender can hold for this connection
	fwdCnt           uint32 // how much of it the sender's program has taken, ever, modulo 2³²
}

func (h *header) decode(b *[headerSize]byte) {
	le := binary.LittleEndian
	*h = header{le.Uint64(b[0:]), le.Uint64(b[8:]), le.Uint32(b[16:]), le.Uint32(b[20:]), le.Uint32(b[24:]), le.Uint16(b[28:]),
		le.Uint16(b[30:]), le.Uint32(b[32:]), le.Uint32(b[36:]), le.Uint32(b[40:])}
}

func (h *header) encode() []byte {
	le := binary.LittleEndian
	b := make([]byte, 0, headerSize)
	b = le.AppendUint64(le.AppendUint64(b, h.srcCID), h.dstCID)
	b = le.AppendUint32(le.AppendUint32(le.AppendUint32(b, h.srcPort), h.dstPort), h.length)
	b = le.AppendUint16(le.AppendUint16(b, h.kind), h.op)
	return le.AppendUint32(le.AppendUint32(le.AppendUint32(b, h.flags), h.bufAlloc), h.fwdCnt)
}
