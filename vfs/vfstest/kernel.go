package vfstest

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"agentrun.dev/vfs"
)

// kernel runs operations on a real directory, on a thread of its own that is chrooted there and changes its filesystem
// uid as the operations ask. The thread dies with its goroutine.
type kernel struct {
	calls chan func()
	fds   [slots]int
}

// newKernel needs root. The directory is emptied of nothing: give a fresh one.
func newKernel(t testing.TB, dir string) *kernel {
	if os.Geteuid() != 0 {
		t.Skip("comparing with a real directory needs root: chroot and several users")
	}
	k := &kernel{calls: make(chan func())}
	for i := range k.fds {
		k.fds[i] = -1
	}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: this thread can't serve anybody else afterwards
		root, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Unshare(unix.CLONE_FS)
		}
		if err == nil {
			err = unix.Chroot(dir)
		}
		if err == nil {
			err = unix.Chdir("/")
		}
		unix.Umask(0o022)
		ready <- err
		for f := range k.calls {
			f()
		}
		// The process' first thread isn't ended with its goroutine, only parked, and would keep what is mounted there busy.
		k.become(0)
		ready <- errors.Join(unix.Fchdir(root), unix.Chroot("."), unix.Close(root))
	}()
	if err := <-ready; err != nil {
		close(k.calls)
		t.Fatalf("entering the directory: %v", err)
	}
	t.Cleanup(func() {
		k.close()
		close(k.calls)
		if err := <-ready; err != nil {
			t.Errorf("leaving the directory: %v", err)
		}
	})
	return k
}

// close closes the files that are open.
func (k *kernel) close() {
	done := make(chan struct{})
	k.calls <- func() {
		defer close(done)
		for i, fd := range k.fds {
			if fd >= 0 {
				unix.Close(fd)
			}
			k.fds[i] = -1
		}
	}
	<-done
}

// do runs an operation and words its result.
func (k *kernel) do(o op) (result string) {
	done := make(chan struct{})
	k.calls <- func() {
		defer close(done)
		k.become(o.uid)
		defer k.become(0)
		result = k.call(o)
	}
	<-done
	return result
}

// become changes this thread's filesystem user; leaving root takes its capabilities over files away.
func (k *kernel) become(uid uint32) {
	groups := []uint32{}
	if uid != 0 {
		groups = []uint32{group}
	}
	syscall.RawSyscall(syscall.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(unsafe.SliceData(groups))), 0)
	syscall.RawSyscall(syscall.SYS_SETFSGID, uintptr(uid), 0, 0)
	syscall.RawSyscall(syscall.SYS_SETFSUID, uintptr(uid), 0, 0)
}

func (k *kernel) call(o op) string {
	if s, ok := k.callFile(o); ok {
		return s
	}
	var st unix.Stat_t
	switch o.call {
	case "stat":
		err := unix.Stat(o.path, &st)
		return word(err) + statWord(err, &st)
	case "lstat":
		err := unix.Lstat(o.path, &st)
		return word(err) + statWord(err, &st)
	case "access":
		return word(unix.Faccessat2(unix.AT_FDCWD, o.path, o.mode, unix.AT_EACCESS))
	case "mkdir":
		return word(unix.Mkdir(o.path, o.mode))
	case "mkfifo":
		return word(unix.Mknod(o.path, unix.S_IFIFO|o.mode, 0))
	case "unlink":
		return word(unix.Unlink(o.path))
	case "rmdir":
		return word(unix.Rmdir(o.path))
	case "rename":
		return word(unix.Renameat2(unix.AT_FDCWD, o.path, unix.AT_FDCWD, o.to, uint(o.flags)))
	case "symlink":
		return word(unix.Symlink(o.to, o.path))
	case "link":
		return word(unix.Link(o.path, o.to))
	case "readlink":
		b := make([]byte, 4096)
		n, err := unix.Readlink(o.path, b)
		return word(err) + " " + string(b[:max(0, n)])
	case "chmod":
		return word(unix.Chmod(o.path, o.mode))
	case "chown":
		return word(unix.Chown(o.path, int(o.off), o.flags))
	case "lchown":
		return word(unix.Lchown(o.path, int(o.off), o.flags))
	case "truncate":
		return word(unix.Truncate(o.path, o.off))
	case "readdir":
		return k.readDir(o.path)
	case "setxattr":
		return word(unix.Setxattr(o.path, o.name, o.data, o.flags))
	case "getxattr":
		b := make([]byte, 4096)
		n, err := unix.Getxattr(o.path, o.name, b)
		return word(err) + " " + string(b[:max(0, n)])
	case "listxattr":
		b := make([]byte, 4096)
		n, err := unix.Listxattr(o.path, b)
		names := strings.FieldsFunc(string(b[:max(0, n)]), func(r rune) bool { return r == 0 })
		slices.Sort(names)
		return word(err) + fmt.Sprint(names)
	case "removexattr":
		return word(unix.Removexattr(o.path, o.name))
	}
	panic("no such call: " + o.call)
}

// callFile runs operations on open files.
func (k *kernel) callFile(o op) (string, bool) {
	fd := k.fds[o.slot]
	switch o.call {
	case "open":
		if fd >= 0 {
			unix.Close(fd)
		}
		fd, err := unix.Open(o.path, o.flags|unix.O_CLOEXEC|unix.O_NONBLOCK, o.mode)
		k.fds[o.slot] = -1
		if err == nil {
			var st unix.Stat_t
			if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO {
				unix.Close(fd)
				return "fifo", true
			}
			k.fds[o.slot] = fd
		} else if err == unix.ENXIO {
			return "fifo", true
		}
		return word(err), true
	case "read":
		b := make([]byte, 5000)
		n, err := unix.Read(fd, b)
		return bytesWord(err, b[:max(0, n)]), true
	case "pread":
		b := make([]byte, 5000)
		n, err := unix.Pread(fd, b, o.off)
		return bytesWord(err, b[:max(0, n)]), true
	case "write":
		n, err := unix.Write(fd, o.data)
		return fmt.Sprint(word(err), max(0, n)), true
	case "pwrite":
		n, err := unix.Pwrite(fd, o.data, o.off)
		return fmt.Sprint(word(err), max(0, n)), true
	case "seek":
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			return "directory", true // where offsets are cookies of the filesystem
		}
		n, err := unix.Seek(fd, o.off, o.flags)
		return fmt.Sprint(word(err), max(0, n)), true
	case "ftruncate":
		return word(unix.Ftruncate(fd, o.off)), true
	case "fstat":
		var st unix.Stat_t
		err := unix.Fstat(fd, &st)
		return word(err) + statWord(err, &st), true
	case "fchmod":
		return word(unix.Fchmod(fd, o.mode)), true
	case "close":
		k.fds[o.slot] = -1
		return word(unix.Close(fd)), true
	}
	return "", false
}

func (k *kernel) readDir(path string) string {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return word(err)
	}
	defer unix.Close(fd)
	var names []string
	b := make([]byte, 8192)
	for {
		n, err := unix.ReadDirent(fd, b)
		if err != nil {
			return word(err)
		}
		if n <= 0 {
			break
		}
		_, _, names = unix.ParseDirent(b[:n], -1, names)
	}
	slices.Sort(names)
	return "ok " + strings.Join(names, " ")
}

// attrWord compares what both sides must agree on. A directory's size and link count are the filesystem's own affair.
func attrWord(mode, nlink, uid, gid uint32, size int64, rdev uint64) string {
	if vfs.Mode(mode).IsDir() {
		nlink, size = 0, 0
	}
	return fmt.Sprintf(" %o n=%d %d:%d size=%d rdev=%d", mode, nlink, uid, gid, size, rdev)
}

func statWord(err error, st *unix.Stat_t) string {
	if err != nil {
		return ""
	}
	return attrWord(st.Mode, uint32(st.Nlink), st.Uid, st.Gid, st.Size, st.Rdev)
}

func bytesWord(err error, b []byte) string {
	return fmt.Sprintf("%s %d %08x", word(err), len(b), crc32.ChecksumIEEE(b))
}
