package jail

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
)

// limits of a process: descriptors for the layers of its image and its devices; no core, which would hold a guest's RAM.
const maxOpen = 512

// confine takes from the process what it doesn't need any more, for good: the filesystem, its user, system calls.
func confine(uid, gid int) error {
	// Some of it is the thread's own until the filter, set by a thread without new privileges, brings all others to it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	fail := func(step string, err error) error {
		return errs.New(errs.Other, "vmm process", "confine: "+step, err).
			WithHint("VMM processes need root, or user namespaces (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns)")
	}
	if err := emptyRoot(); err != nil {
		return fail("root", err)
	}
	for _, r := range []struct {
		which int
		max   uint64
	}{{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_NOFILE, maxOpen}, {unix.RLIMIT_MEMLOCK, 0}} {
		if err := unix.Setrlimit(r.which, &unix.Rlimit{Cur: r.max, Max: r.max}); err != nil {
			return fail("limits", err)
		}
	}
	if uid != 0 {
		if err := syscall.Setgroups(nil); err != nil {
			return fail("groups", err)
		}
		if err := syscall.Setresgid(gid, gid, gid); err != nil {
			return fail("group", err)
		}
		if err := syscall.Setresuid(uid, uid, uid); err != nil {
			return fail("user", err)
		}
		// Another user has no parent any more whose end the kernel tells it; this thread has.
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
			return fail("parent", err)
		}
	} else if err := dropCapabilities(); err != nil {
		return fail("capabilities", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fail("privileges", err)
	}
	if err := filterCalls(); err != nil {
		return fail("system calls", err)
	}
	return nil
}

// emptyRoot makes an empty directory, which can't be written to, the root of everything.
func emptyRoot() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	const place = "/tmp" // any directory does: it is covered, in this namespace only
	if err := unix.Mount("none", place, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=4k,nr_inodes=2,mode=555"); err != nil {
		return err
	}
	if err := unix.Chdir(place); err != nil {
		return err
	}
	err := unix.PivotRoot(".", ".")
	switch {
	case err == nil:
		err = unix.Unmount(".", unix.MNT_DETACH) // the old root, which is above the new one
	case err == unix.EINVAL: // the root that the kernel began with can't be left; it can be covered, and who can't call chroot doesn't get there
		if err = unix.Mount(".", "/", "", unix.MS_MOVE, ""); err == nil {
			err = unix.Chroot(".")
		}
	}
	if err != nil {
		return err
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	return unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

// dropCapabilities gives up those that the user namespace gave, in all threads. Where the program is linked with C that
// can't be done for all; what they allow is denied by the list of system calls then.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_, _, e := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0)
	if e != 0 && e != syscall.ENOTSUP {
		return e
	}
	return nil
}

// What seccomp's data holds where (linux/seccomp.h), and its architecture.
const (
	dataCall  = 0
	dataArch  = 4
	dataArg   = 16 // each has 8 bytes, the low half first
	archAMD64 = 0xc000003e
	x32Bit    = 0x40000000
)

const (
	retAllow = 0x7fff0000
	retKill  = 0x80000000
	retErrno = 0x00050000
)

// allowed are the calls of Go's runtime, of KVM's and the devices' descriptors, and of memory.
var allowed = []uint32{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_PWRITE64, unix.SYS_PREADV, unix.SYS_PWRITEV,
	unix.SYS_CLOSE, unix.SYS_LSEEK, unix.SYS_FSTAT, unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE, unix.SYS_FSYNC, unix.SYS_FDATASYNC,
	unix.SYS_FCNTL, unix.SYS_FSTATFS, unix.SYS_DUP, unix.SYS_EVENTFD2, unix.SYS_PIPE2,
	unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_BRK, unix.SYS_MREMAP,
	unix.SYS_RECVMSG, unix.SYS_SENDMSG, unix.SYS_RECVFROM, unix.SYS_SENDTO, unix.SYS_SHUTDOWN, unix.SYS_ACCEPT4, unix.SYS_GETSOCKOPT,
	unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME,
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_WAIT, unix.SYS_POLL, unix.SYS_PPOLL,
	unix.SYS_FUTEX, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY, unix.SYS_SCHED_YIELD,
	unix.SYS_SCHED_GETAFFINITY, unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_TGKILL, unix.SYS_GETRUSAGE, unix.SYS_GETRANDOM,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL,
	unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_SET_TID_ADDRESS,
}

// refused fail without ending the process: libraries try them and do without.
var refused = []uint32{unix.SYS_CLONE3, unix.SYS_OPENAT, unix.SYS_OPEN, unix.SYS_NEWFSTATAT, unix.SYS_STATX, unix.SYS_READLINKAT,
	unix.SYS_PRLIMIT64, unix.SYS_GETRLIMIT,
	unix.SYS_UNAME, unix.SYS_SETSOCKOPT, unix.SYS_PRCTL, unix.SYS_SCHED_SETAFFINITY, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID}

// calls is the filter. Mappings are never executable, files in memory have ordinary pages, threads are the only children, ioctls
// are KVM's, that which finds dirty pages, and that by which a tap learns what its guest can do.
func calls() []unix.SockFilter {
	const load, jump, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	const and, set = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	const pagemapScan = 0xc0606610
	enosys := uint32(retErrno | uint32(unix.ENOSYS))
	f := []unix.SockFilter{
		{Code: load, K: dataArch}, {Code: jump, K: archAMD64, Jt: 1}, {Code: ret, K: retKill},
		{Code: load, K: dataCall}, {Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: x32Bit, Jf: 1}, {Code: ret, K: retKill},
	}
	for _, c := range allowed {
		f = append(f, unix.SockFilter{Code: jump, K: c, Jf: 1}, unix.SockFilter{Code: ret, K: retAllow})
	}
	for _, c := range refused {
		f = append(f, unix.SockFilter{Code: jump, K: c, Jf: 1}, unix.SockFilter{Code: ret, K: enosys})
	}
	special := func(call uint32, body ...unix.SockFilter) {
		f = append(append(f, unix.SockFilter{Code: jump, K: call, Jf: uint8(len(body))}), body...)
	}
	arg := func(n uint32) unix.SockFilter { return unix.SockFilter{Code: load, K: dataArg + 8*n} }
	allow, kill := unix.SockFilter{Code: ret, K: retAllow}, unix.SockFilter{Code: ret, K: retKill}
	special(unix.SYS_IOCTL, arg(1), unix.SockFilter{Code: jump, K: pagemapScan, Jt: 3}, unix.SockFilter{Code: jump, K: unix.TUNSETOFFLOAD, Jt: 2},
		unix.SockFilter{Code: and, K: 0xff00}, unix.SockFilter{Code: jump, K: 0xae00, Jf: 1}, allow, kill)
	special(unix.SYS_MEMFD_CREATE, arg(1), unix.SockFilter{Code: set, K: unix.MFD_HUGETLB, Jt: 1}, allow, kill)
	for _, call := range []uint32{unix.SYS_MMAP, unix.SYS_MPROTECT} {
		special(call, arg(2), unix.SockFilter{Code: set, K: unix.PROT_EXEC, Jt: 1}, allow, kill)
	}
	special(unix.SYS_CLONE, arg(0), unix.SockFilter{Code: set, K: unix.CLONE_THREAD, Jf: 1}, allow, kill)
	return append(f, kill)
}

// filterCalls puts the filter on every thread.
func filterCalls() error {
	const setModeFilter, tsync = 1, 1
	f := calls()
	p := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	n, _, e := unix.Syscall(unix.SYS_SECCOMP, setModeFilter, tsync, uintptr(unsafe.Pointer(&p)))
	if e != 0 {
		return e
	}
	if n != 0 {
		return errs.Msg(errs.Other, "vmm process", "system calls", "a thread can't be filtered")
	}
	return nil
}
