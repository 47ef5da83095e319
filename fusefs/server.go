// Package fusefs serves a filesystem of package vfs to a kernel that speaks FUSE: as messages, which is what a virtual machine's
// virtio-fs queues carry (Server.Handle), or mounted on this host (Mount).
//
// A node is an inode that the kernel knows, named by a number of its own and held until the kernel forgets it; a handle is
// a file or directory that it has open. Both tables belong to the Server, so that a fork of the machine gets a Server that knows
// the same numbers, over the fork of the filesystem (Clone).
//
// Permissions are the kernel's business, which knows its processes: mounts have default_permissions, as virtio-fs always has. A
// hostile kernel may do to the filesystem whatever the filesystem and ReadOnly let it, and nothing else: what it sends is
// checked, and what it makes us keep has limits.
//
// Kernels cache: an attribute or a name is believed for the TTL, of what isn't a directory for some milliseconds. Nothing tells a
// virtual machine that a file was changed through another door, so that the TTL bounds how late it learns of it; what it can't use any
// more is ESTALE, upon which it looks again.
package fusefs

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"io"
	"log"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"agentrun.dev/vfs"
)

// Limits of what a kernel can make a Server keep, unless Options say otherwise.
const (
	MaxNodes   = 1 << 20
	MaxHandles = 1 << 16
	MaxListed  = 1 << 20 // names of directories that are being listed; one directory may have more
	MaxWrite   = 1 << 20 // bytes in one request
	MaxTTL     = time.Second
)

// headers is the most that a request or an answer has besides its payload.
const headers = 4096

// Options describe a served filesystem.
type Options struct {
	FS       vfs.FS
	ReadOnly bool // changes are EROFS, whatever FS allows
	// TTL is how long the kernel may believe names and attributes of directories without asking: at most MaxTTL, and by default
	// that. Below zero is not at all. Those of other files are believed for 5 ms at most.
	TTL                    time.Duration
	Nodes, Handles, Listed int // at most; 0 is MaxNodes, MaxHandles, MaxListed
}

// Server answers a kernel's requests. All methods may be called concurrently.
type Server struct {
	raw *raw

	mu    sync.RWMutex // INIT, Clone and Close alone, other requests beside each other
	proto *fuse.ProtocolServer
	init  []byte // the request that began the conversation; nil before
	done  bool
}

// New returns a server. The filesystem is the caller's, who closes it after the server.
func New(o Options) *Server {
	o.Nodes, o.Handles, o.Listed = cmp.Or(o.Nodes, MaxNodes), cmp.Or(o.Handles, MaxHandles), cmp.Or(o.Listed, MaxListed)
	o.TTL = max(min(cmp.Or(o.TTL, MaxTTL), MaxTTL), 0)
	s := &Server{raw: newRaw(o)}
	s.proto = s.protocol()
	return s
}

func mountOptions() fuse.MountOptions {
	return fuse.MountOptions{MaxWrite: MaxWrite, MaxReadAhead: MaxWrite, DisabledCapabilities: fuse.CAP_PASSTHROUGH | fuse.CAP_ALLOW_IDMAP,
		Logger: log.New(io.Discard, "", 0)} // what it logs is what a guest got wrong
}

func (s *Server) protocol() *fuse.ProtocolServer {
	o := mountOptions()
	return fuse.NewProtocolServer(s.raw, &o)
}

// libraryNode is a node that go-fuse answers for by itself, for the sake of Go programs that serve and use a mount in one process.
const libraryNode = 1<<64 - 1

// Handle answers one request: in is all of it, out where the answer goes, and n how much of out that is; 0: there is none. The
// caller may change neither meanwhile: requests of a guest are copied first. A request that can't be read is answered with EIO,
// as far as it can.
func (s *Server) Handle(in, out []byte) (n int) {
	if len(in) < 40 || len(in) > MaxWrite+headers || binary.LittleEndian.Uint32(in) != uint32(len(in)) {
		return refuse(in, out)
	}
	if no := check(in); no != 0 {
		return answer(in, out, no)
	}
	switch op := binary.LittleEndian.Uint32(in[4:]); op {
	case opInit, opDestroy:
		s.mu.Lock()
		defer s.mu.Unlock()
		// A kernel that begins anew, or ends, knows nothing of what was before.
		s.raw.reset()
		s.init = nil
		if op == opInit && !s.done {
			s.proto, s.init = s.protocol(), bytes.Clone(in)
		}
	default:
		s.mu.RLock()
		defer s.mu.RUnlock()
		if s.init == nil {
			return refuse(in, out)
		}
	}
	if s.done {
		return refuse(in, out)
	}
	if binary.LittleEndian.Uint32(in[4:]) == opSyncFS {
		return answer(in, out, vfs.Errno(s.raw.syncFS()))
	}
	n, code := s.proto.HandleRequest([][]byte{in}, [][]byte{out})
	if !code.Ok() {
		return refuse(in, out)
	}
	return n
}

// refuse answers EIO to whatever has a number.
func refuse(in, out []byte) int { return answer(in, out, syscall.EIO) }

// answer answers with an error, or with 0 and nothing else.
func answer(in, out []byte, no syscall.Errno) int {
	if len(in) < 16 || len(out) < 16 {
		return 0
	}
	binary.LittleEndian.PutUint32(out, 16)
	binary.LittleEndian.PutUint32(out[4:], -uint32(no))
	copy(out[8:16], in[8:16])
	return 16
}

// Lax tells whether it is enough, until it is told otherwise, that what sync and syncfs write out is in the filesystem. Otherwise it is durable, too,
// which takes as long as the storage takes: not what a machine that stands still to be forked should wait for.
func (s *Server) Lax(enough bool) { s.raw.lax.Store(enough) }

// Close gives back what the kernel holds. Requests that come afterwards are answered EIO.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = true
	s.raw.reset()
	return nil
}

// Stats tells what a server keeps.
type Stats struct{ Nodes, Handles, Listed int }

// Stats tells what is kept now.
func (s *Server) Stats() Stats { return s.raw.stats() }
