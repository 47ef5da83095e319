package wire

import "time"

// MaxNode is how many bytes one Node call reads or writes at most.
const MaxNode = 1 << 20

// Tree is the machine's files, by inodes: package vfs has what they mean. It is named by a number, and ends with the call that
// opened it, with all that is held and open in it.
type Tree struct {
	ID   uint64 `json:"id"`
	Root uint64 `json:"root"`
}

// The operations of Node.
const (
	NodeLookup      = "lookup"
	NodeGetAttr     = "getattr"
	NodeSetAttr     = "setattr"
	NodeCreate      = "create"
	NodeMknod       = "mknod"
	NodeMkdir       = "mkdir"
	NodeSymlink     = "symlink"
	NodeReadlink    = "readlink"
	NodeLink        = "link"
	NodeUnlink      = "unlink"
	NodeRmdir       = "rmdir"
	NodeRename      = "rename"
	NodeReadDir     = "readdir" // as many Answers as it takes
	NodeOpen        = "open"
	NodeStatFS      = "statfs"
	NodeGetXattr    = "getxattr" // the value as data, before the Answer
	NodeSetXattr    = "setxattr" // data from the host, closed
	NodeListXattr   = "listxattr"
	NodeRemoveXattr = "removexattr"

	HandleRead     = "read"   // data, before the Answer
	HandleWrite    = "write"  // data from the host, closed
	HandleAppend   = "append" // the same
	HandleTruncate = "truncate"
	HandleAttr     = "attr"
	HandleSync     = "sync"
	HandleClose    = "close"
)

// Node is an operation on a tree, answered by an Answer. Those that give a reference or a handle (lookup, create, mknod, mkdir, symlink,
// link, open) then wait, after success, for the host to close the channel Input, which says that it has taken it: if the host gives the call up instead,
// it is given back.
type Node struct {
	Tree    uint64      `json:"tree"`
	Forget  [][2]uint64 `json:"forget,omitempty"` // inodes, and how many references to them are given back, before anything else
	Op      string      `json:"op"`
	Ino     uint64      `json:"ino,omitempty"` // or the directory
	Handle  uint64      `json:"handle,omitempty"`
	Name    Text        `json:"name,omitempty"`
	To      uint64      `json:"to,omitempty"`      // the new directory; of link the inode
	NewName Text        `json:"newName,omitempty"` // of rename; the target of a symbolic link
	Mode    uint32      `json:"mode,omitempty"`
	Rdev    uint64      `json:"rdev,omitempty"`
	UID     uint32      `json:"uid,omitempty"`
	GID     uint32      `json:"gid,omitempty"`
	Flags   int         `json:"flags,omitempty"`
	Offset  int64       `json:"offset,omitempty"` // the size, of truncate
	Count   int64       `json:"count,omitempty"`
	Set     *SetAttr    `json:"set,omitempty"`
}

// SetAttr is what is set of an inode.
type SetAttr struct {
	Mode     *uint32 `json:"mode,omitempty"`
	UID      *uint32 `json:"uid,omitempty"`
	GID      *uint32 `json:"gid,omitempty"`
	Size     *int64  `json:"size,omitempty"`
	ATime    *Time   `json:"atime,omitempty"`
	MTime    *Time   `json:"mtime,omitempty"`
	ATimeNow bool    `json:"atimeNow,omitempty"`
	MTimeNow bool    `json:"mtimeNow,omitempty"`
}

// Time is one of a file: seconds since 1970, and nanoseconds.
type Time [2]int64

// TimeOf converts.
func TimeOf(t time.Time) Time { return Time{t.Unix(), int64(t.Nanosecond())} }

// Time converts back.
func (t Time) Time() time.Time { return time.Unix(t[0], t[1]) }

// Attr is an inode's.
type Attr struct {
	Ino    uint64 `json:"ino"`
	Mode   uint32 `json:"mode"`
	Nlink  uint32 `json:"nlink"`
	UID    uint32 `json:"uid,omitempty"`
	GID    uint32 `json:"gid,omitempty"`
	Rdev   uint64 `json:"rdev,omitempty"`
	Size   int64  `json:"size,omitempty"`
	Blocks int64  `json:"blocks,omitempty"`
	ATime  Time   `json:"atime"`
	MTime  Time   `json:"mtime"`
	CTime  Time   `json:"ctime"`
}

// Answer is what came of an operation. Errno is the kernel's number of an error; zero is success.
type Answer struct {
	Errno   uint16      `json:"errno,omitempty"`
	Attr    *Attr       `json:"attr,omitempty"`
	Handle  uint64      `json:"handle,omitempty"`
	Text    Text        `json:"text,omitempty"`
	Names   []Text      `json:"names,omitempty"`
	N       int64       `json:"n,omitempty"`      // bytes written, or where they were appended
	End     bool        `json:"end,omitempty"`    // of the file was reached
	StatFS  *[6]uint64  `json:"statfs,omitempty"` // type, block size, blocks, free ones, files, free ones
	Entries []NodeEntry `json:"entries,omitempty"`
	More    bool        `json:"more,omitempty"` // of the entries follow, in another Answer
}

// NodeEntry is an entry of a directory.
type NodeEntry struct {
	Name Text   `json:"name"`
	Ino  uint64 `json:"ino"`
	Mode uint32 `json:"mode"` // its type
}
