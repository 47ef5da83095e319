package proc

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// netFiles are the files of /proc/net.
var netFiles = [...]string{"tcp", "tcp6"}

// sockets is what /proc/net/tcp or tcp6 shows: listening and connected sockets, as proc(5) has it.
func (s *Sandbox) sockets(v6 bool) string {
	n := &s.net
	n.mu.Lock()
	list := make([]*socket, 0, len(n.all))
	for k := range n.all {
		if k.v6 == v6 && (k.state == listening || k.state == connected) {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, func(a, b *socket) int { return cmp.Compare(a.id, b.id) })
	var out strings.Builder
	out.WriteString("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n")
	for i, k := range list {
		state, received := 0x0A, len(k.queue)
		if k.state == connected {
			state, received = 0x01, 0
		}
		fmt.Fprintf(&out, "%4d: %s %s %02X 00000000:%08X 00:00000000 00000000     0        0 %d 1 0000000000000000 100 0 0 10 0\n",
			i, hexAddr(k.localAddr, v6), hexAddr(k.peerAddr, v6), state, received, k.id)
	}
	n.mu.Unlock()
	return out.String()
}

// hexAddr writes an address as the kernel does: words of four bytes in the order of a little-endian processor.
func hexAddr(a netip.AddrPort, v6 bool) string {
	var b []byte
	if v6 {
		b = make([]byte, 16)
		if a.IsValid() {
			x := a.Addr().As16()
			b = x[:]
		}
	} else {
		b = make([]byte, 4)
		if a.IsValid() {
			b = a.Addr().AsSlice()
		}
	}
	var out strings.Builder
	for ; len(b) >= 4; b = b[4:] {
		fmt.Fprintf(&out, "%08X", binary.LittleEndian.Uint32(b))
	}
	fmt.Fprintf(&out, ":%04X", a.Port())
	return out.String()
}
