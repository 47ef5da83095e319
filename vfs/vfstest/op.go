package vfstest

import (
	"fmt"
	"syscall"

	"pgregory.net/rapid"

	"agentrun.dev/vfs"
)

// op is one call of a random sequence. It means the same to the kernel and to a Namespace.
type op struct {
	call     string
	uid      uint32 // 0, or the only other user
	path, to string
	name     string // of an extended attribute
	flags    int
	mode     uint32
	slot     int // of an open file
	off      int64
	data     []byte
}

func (o op) String() string {
	return fmt.Sprintf("%s uid=%d %q %q %q flags=%#x mode=%#o slot=%d off=%d len=%d", o.call, o.uid, o.path, o.to, o.name, o.flags, o.mode, o.slot, o.off, len(o.data))
}

// slots is how many files a sequence holds open.
const slots = 4

// user is who acts beside root; it belongs to group too.
const (
	user  = 1000
	group = 1001
)

// genOp draws an operation. Few names make collisions likely.
func genOp(c Config) *rapid.Generator[op] {
	names := []string{"a", "b", "c", "dir"}
	path := rapid.Custom(func(t *rapid.T) string {
		p := ""
		if rapid.IntRange(0, 7).Draw(t, "absolute") == 0 {
			p = "/"
		}
		n := rapid.IntRange(1, 3).Draw(t, "depth")
		for i := range n {
			if i > 0 {
				p += "/"
			}
			switch rapid.IntRange(0, 15).Draw(t, "component") {
			case 0:
				p += ".."
			case 1:
				p += "."
			default:
				p += rapid.SampledFrom(names).Draw(t, "name")
			}
		}
		if rapid.IntRange(0, 9).Draw(t, "slash") == 0 {
			p += "/"
		}
		return p
	})
	calls := []string{"open", "open", "open", "read", "write", "write", "pread", "pwrite", "seek", "ftruncate", "fstat", "fchmod", "close", "close",
		"stat", "lstat", "access", "mkdir", "mkdir", "unlink", "rmdir", "rename", "rename", "chmod", "truncate", "readdir"}
	if !c.NoOwners {
		calls = append(calls, "chown", "lchown")
	}
	if !c.NoSymlinks {
		calls = append(calls, "symlink", "readlink")
	}
	if !c.NoLinks {
		calls = append(calls, "link", "link")
	}
	if !c.NoDevices {
		calls = append(calls, "mkfifo")
	}
	if !c.NoXattrs {
		calls = append(calls, "setxattr", "getxattr", "listxattr", "removexattr")
	}
	return rapid.Custom(func(t *rapid.T) op {
		o := op{call: rapid.SampledFrom(calls).Draw(t, "call"), slot: rapid.IntRange(0, slots-1).Draw(t, "slot")}
		if !c.NoOwners && rapid.IntRange(0, 2).Draw(t, "who") == 0 {
			o.uid = user
		}
		o.path, o.to = path.Draw(t, "path"), path.Draw(t, "to")
		o.off = int64(rapid.SampledFrom([]int{0, 1, 5, 100, 4096, 5000, 65536, 70000, 200000}).Draw(t, "off"))
		o.mode = uint32(rapid.SampledFrom([]int{0o644, 0o755, 0o777, 0o600, 0o000, 0o4755, 0o2755, 0o1777, 0o2775, 0o6711, 0o2644}).Draw(t, "mode"))
		if c.NoSetID {
			o.mode &^= 0o6000
		}
		switch o.call {
		case "open":
			o.flags = rapid.SampledFrom([]int{vfs.O_RDONLY, vfs.O_WRONLY, vfs.O_RDWR, vfs.O_RDWR}).Draw(t, "access")
			for _, f := range []int{vfs.O_CREAT, vfs.O_EXCL, vfs.O_TRUNC, vfs.O_APPEND, vfs.O_DIRECTORY, vfs.O_NOFOLLOW} {
				odds := 5
				if f == vfs.O_CREAT {
					odds = 1
				}
				if rapid.IntRange(0, odds).Draw(t, "flag") == 0 {
					o.flags |= f
				}
			}
		case "write", "pwrite":
			n := rapid.SampledFrom([]int{0, 1, 7, 4096, 70000}).Draw(t, "length")
			seed := rapid.Byte().Draw(t, "fill")
			o.data = make([]byte, n)
			for i := range o.data {
				o.data[i] = seed + byte(i*7)
			}
		case "seek":
			o.flags = rapid.IntRange(0, 2).Draw(t, "whence") // where data is (3, 4) every filesystem may answer as it likes
			o.off -= 10
		case "access":
			o.mode = uint32(rapid.IntRange(0, 7).Draw(t, "want"))
		case "rename":
			o.flags = rapid.SampledFrom([]int{0, 0, 0, vfs.RenameNoReplace, vfs.RenameExchange, 3}).Draw(t, "flags")
			if c.NoExchange && o.flags&vfs.RenameExchange != 0 {
				o.flags = 0
			}
		case "chown", "lchown":
			o.off = int64(rapid.SampledFrom([]int{-1, 0, user}).Draw(t, "uid"))
			o.flags = rapid.SampledFrom([]int{-1, 0, user, group, 77}).Draw(t, "gid")
			if o.off < 0 && o.flags < 0 { // changes nothing, but the kernel drops set-id bits and may refuse that
				o.flags = 0
			}
		case "setxattr", "getxattr", "removexattr":
			o.name = rapid.SampledFrom([]string{"user.a", "user.b", "trusted.c", "nonsense", "user."}).Draw(t, "name")
			o.flags = rapid.SampledFrom([]int{0, 0, vfs.XattrCreate, vfs.XattrReplace}).Draw(t, "flags")
			o.data = []byte(o.to)
			if o.name == "trusted.c" { // goes by CAP_SYS_ADMIN, which a change of the filesystem uid leaves
				o.uid = 0
			}
		case "listxattr":
			o.uid = 0
		case "symlink":
			if rapid.IntRange(0, 3).Draw(t, "loop") == 0 {
				o.to = o.path
			}
		}
		return o
	})
}

// word names an error so that the two sides compare.
func word(err error) string {
	if err == nil {
		return "ok"
	}
	no, ok := err.(syscall.Errno)
	if !ok {
		no = vfs.Errno(err)
		if no == syscall.EIO {
			return "EIO: " + err.Error()
		}
	}
	return vfs.Strerror(no)
}
