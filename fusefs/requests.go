package fusefs

import (
	"encoding/binary"
	"syscall"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Operations that the Server itself looks at.
const (
	opInit    = 26
	opDestroy = 38
	opSyncFS  = 50
)

// shortest is how long a request of each operation is at least, with its header. What isn't here doesn't reach go-fuse, which
// logs what it can't read, for the whole process: a guest could fill its log.
var shortest = [...]uintptr{
	1:         header,                           // LOOKUP
	2:         unsafe.Sizeof(fuse.ForgetIn{}),   // FORGET
	3:         unsafe.Sizeof(fuse.GetAttrIn{}),  // GETATTR
	4:         unsafe.Sizeof(fuse.SetAttrIn{}),  // SETATTR
	5:         header,                           // READLINK
	6:         header,                           // SYMLINK
	8:         unsafe.Sizeof(fuse.MknodIn{}),    // MKNOD
	9:         unsafe.Sizeof(fuse.MkdirIn{}),    // MKDIR
	10:        header,                           // UNLINK
	11:        header,                           // RMDIR
	12:        header + 8,                       // RENAME
	13:        unsafe.Sizeof(fuse.LinkIn{}),     // LINK
	14:        unsafe.Sizeof(fuse.OpenIn{}),     // OPEN
	15:        unsafe.Sizeof(fuse.ReadIn{}),     // READ
	16:        unsafe.Sizeof(fuse.WriteIn{}),    // WRITE
	17:        header,                           // STATFS
	18:        unsafe.Sizeof(fuse.ReleaseIn{}),  // RELEASE
	20:        unsafe.Sizeof(fuse.FsyncIn{}),    // FSYNC
	21:        header + 8,                       // SETXATTR, without the extension, which isn't negotiated
	22:        unsafe.Sizeof(fuse.GetXAttrIn{}), // GETXATTR
	23:        unsafe.Sizeof(fuse.GetXAttrIn{}), // LISTXATTR
	24:        header,                           // REMOVEXATTR
	25:        unsafe.Sizeof(fuse.FlushIn{}),    // FLUSH
	opInit:    header + 16,
	27:        unsafe.Sizeof(fuse.OpenIn{}),      // OPENDIR
	28:        unsafe.Sizeof(fuse.ReadIn{}),      // READDIR
	29:        unsafe.Sizeof(fuse.ReleaseIn{}),   // RELEASEDIR
	30:        unsafe.Sizeof(fuse.FsyncIn{}),     // FSYNCDIR
	35:        unsafe.Sizeof(fuse.CreateIn{}),    // CREATE
	36:        unsafe.Sizeof(fuse.InterruptIn{}), // INTERRUPT
	opDestroy: header,
	42:        header + 8,                        // BATCH_FORGET
	43:        unsafe.Sizeof(fuse.FallocateIn{}), // FALLOCATE
	44:        unsafe.Sizeof(fuse.ReadIn{}),      // READDIRPLUS
	45:        unsafe.Sizeof(fuse.RenameIn{}),    // RENAME2
	opSyncFS:  header,
}

const header = unsafe.Sizeof(fuse.InHeader{})

// The versions of the protocol that go-fuse speaks.
const (
	major    = 7
	minMinor = 12
)

// check tells why a request, whose length is that in its header, isn't handled.
func check(in []byte) syscall.Errno {
	op := binary.LittleEndian.Uint32(in[4:])
	switch {
	case op >= uint32(len(shortest)) || shortest[op] == 0:
		return syscall.ENOSYS
	case uintptr(len(in)) < shortest[op]:
		return syscall.EIO
	case binary.LittleEndian.Uint64(in[16:]) == libraryNode:
		return syscall.ESTALE
	case op == opInit && (binary.LittleEndian.Uint32(in[header:]) != major || binary.LittleEndian.Uint32(in[header+4:]) < minMinor):
		return syscall.EPROTO
	}
	return 0
}
