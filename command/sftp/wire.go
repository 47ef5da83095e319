package sftp

import (
	"encoding/binary"
	"errors"
	"io"
	"syscall"
	"time"

	"agentrun.dev/vfs"
)

// Types of packets.
const (
	fxpInit     = 1
	fxpVersion  = 2
	fxpOpen     = 3
	fxpClose    = 4
	fxpRead     = 5
	fxpWrite    = 6
	fxpLstat    = 7
	fxpFstat    = 8
	fxpSetstat  = 9
	fxpFsetstat = 10
	fxpOpendir  = 11
	fxpReaddir  = 12
	fxpRemove   = 13
	fxpMkdir    = 14
	fxpRmdir    = 15
	fxpRealpath = 16
	fxpStat     = 17
	fxpRename   = 18
	fxpReadlink = 19
	fxpSymlink  = 20
	fxpStatus   = 101
	fxpHandle   = 102
	fxpData     = 103
	fxpName     = 104
	fxpAttrs    = 105
	fxpExtended = 200
	fxpReply    = 201
)

// Status codes.
const (
	fxOK          = 0
	fxEOF         = 1
	fxNoSuchFile  = 2
	fxDenied      = 3
	fxFailure     = 4
	fxBadMessage  = 5
	fxUnsupported = 8
)

// Which attributes are there.
const (
	attrSize     = 1
	attrOwner    = 2
	attrMode     = 4
	attrTimes    = 8
	attrExtended = 1 << 31
)

var (
	errShort       = errors.New("malformed packet")
	errUnsupported = errors.New("operation unsupported")
	errReadOnly    = errors.New("the server is read-only")
)

// request reads the fields of a packet. After the first that isn't there all are empty, and bad is set.
type request struct {
	b   []byte
	bad bool
}

func (r *request) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.b, r.bad = nil, true
		return make([]byte, min(max(n, 0), 8))
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *request) uint32() uint32 { return binary.BigEndian.Uint32(r.take(4)) }
func (r *request) uint64() uint64 { return binary.BigEndian.Uint64(r.take(8)) }

func (r *request) bytes() []byte {
	n := r.uint32()
	if r.bad || uint64(n) > uint64(len(r.b)) {
		r.b, r.bad = nil, true
		return nil
	}
	return r.take(int(n))
}

func (r *request) string() string { return string(r.bytes()) }

// attrs are the attributes in a request.
type attrs struct {
	flags        uint32
	size         uint64
	uid, gid     uint32
	mode         uint32
	atime, mtime uint32
}

func (r *request) attrs() attrs {
	a := attrs{flags: r.uint32()}
	if a.flags&attrSize != 0 {
		a.size = r.uint64()
	}
	if a.flags&attrOwner != 0 {
		a.uid, a.gid = r.uint32(), r.uint32()
	}
	if a.flags&attrMode != 0 {
		a.mode = r.uint32()
	}
	if a.flags&attrTimes != 0 {
		a.atime, a.mtime = r.uint32(), r.uint32()
	}
	if a.flags&attrExtended != 0 {
		for n := r.uint32(); n > 0 && !r.bad; n-- {
			r.bytes()
			r.bytes()
		}
	}
	return a
}

// perm is the mode of a new file.
func (a attrs) perm(usual vfs.Mode) vfs.Mode {
	if a.flags&attrMode == 0 {
		return usual
	}
	return vfs.Mode(a.mode) & vfs.ModePerm
}

// begin begins an answer; its length is filled in at the end.
func (s *server) begin(typ byte, id uint32) {
	s.out = append(s.out[:0], 0, 0, 0, 0, typ)
	s.uint32(id)
}

func (s *server) uint32(v uint32) { s.out = binary.BigEndian.AppendUint32(s.out, v) }
func (s *server) uint64(v uint64) { s.out = binary.BigEndian.AppendUint64(s.out, v) }

func (s *server) string(v string) {
	s.uint32(uint32(len(v)))
	s.out = append(s.out, v...)
}

func (s *server) attrs(a vfs.Attr) {
	s.uint32(attrSize | attrOwner | attrMode | attrTimes)
	s.uint64(uint64(a.Size))
	s.uint32(a.UID)
	s.uint32(a.GID)
	s.uint32(uint32(a.Mode))
	s.uint32(seconds(a.Atime))
	s.uint32(seconds(a.Mtime))
}

// seconds is a time as the protocol has it, which knows those from 1970 to 2106.
func seconds(t time.Time) uint32 { return uint32(min(max(t.Unix(), 0), 1<<32-1)) }

// status answers with how it went.
func (s *server) status(id uint32, err error) {
	code, text := codeOf(err)
	s.begin(fxpStatus, id)
	s.uint32(code)
	s.string(text)
	s.string("")
}

// codeOf maps errors as OpenSSH does; the text says more than the code can.
func codeOf(err error) (uint32, string) {
	switch {
	case err == nil:
		return fxOK, "Success"
	case errors.Is(err, io.EOF):
		return fxEOF, "End of file"
	case errors.Is(err, errShort):
		return fxBadMessage, "Bad message"
	case errors.Is(err, errUnsupported):
		return fxUnsupported, "Operation unsupported"
	case errors.Is(err, errReadOnly):
		return fxDenied, "Permission denied"
	case errors.Is(err, errHandle):
		return fxFailure, "Failure"
	}
	text := vfs.Strerror(err)
	switch vfs.Errno(err) {
	case syscall.ENOENT, syscall.ENOTDIR, syscall.EBADF, syscall.ELOOP:
		return fxNoSuchFile, text
	case syscall.EPERM, syscall.EACCES, syscall.EFAULT, syscall.EROFS:
		return fxDenied, text
	case syscall.ENAMETOOLONG, syscall.EINVAL:
		return fxBadMessage, text
	case syscall.ENOSYS:
		return fxUnsupported, text
	}
	return fxFailure, text
}
