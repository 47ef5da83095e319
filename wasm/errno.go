package wasm

import "syscall"

// wasiErrno translates an error number to WASI's.
func wasiErrno(no syscall.Errno) uint32 {
	if int(no) < len(errnos) && errnos[no] != 0 {
		return uint32(errnos[no])
	}
	return 29 // io
}

// errnos maps Linux's numbers to those of WASI preview 1.
var errnos = [...]uint8{
	syscall.E2BIG: 1, syscall.EACCES: 2, syscall.EADDRINUSE: 3, syscall.EADDRNOTAVAIL: 4, syscall.EAFNOSUPPORT: 5, syscall.EAGAIN: 6,
	syscall.EALREADY: 7, syscall.EBADF: 8, syscall.EBADMSG: 9, syscall.EBUSY: 10, syscall.ECANCELED: 11, syscall.ECHILD: 12,
	syscall.ECONNABORTED: 13, syscall.ECONNREFUSED: 14, syscall.ECONNRESET: 15, syscall.EDEADLK: 16, syscall.EDESTADDRREQ: 17,
	syscall.EDOM: 18, syscall.EDQUOT: 19, syscall.EEXIST: 20, syscall.EFAULT: 21, syscall.EFBIG: 22, syscall.EHOSTUNREACH: 23,
	syscall.EIDRM: 24, syscall.EILSEQ: 25, syscall.EINPROGRESS: 26, syscall.EINTR: 27, syscall.EINVAL: 28, syscall.EIO: 29,
	syscall.EISCONN: 30, syscall.EISDIR: 31, syscall.ELOOP: 32, syscall.EMFILE: 33, syscall.EMLINK: 34, syscall.EMSGSIZE: 35,
	syscall.EMULTIHOP: 36, syscall.ENAMETOOLONG: 37, syscall.ENETDOWN: 38, syscall.ENETRESET: 39, syscall.ENETUNREACH: 40,
	syscall.ENFILE: 41, syscall.ENOBUFS: 42, syscall.ENODEV: 43, syscall.ENOENT: 44, syscall.ENOEXEC: 45, syscall.ENOLCK: 46,
	syscall.ENOLINK: 47, syscall.ENOMEM: 48, syscall.ENOMSG: 49, syscall.ENOPROTOOPT: 50, syscall.ENOSPC: 51, syscall.ENOSYS: 52,
	syscall.ENOTCONN: 53, syscall.ENOTDIR: 54, syscall.ENOTEMPTY: 55, syscall.ENOTRECOVERABLE: 56, syscall.ENOTSOCK: 57,
	syscall.EOPNOTSUPP: 58, syscall.ENOTTY: 59, syscall.ENXIO: 60, syscall.EOVERFLOW: 61, syscall.EOWNERDEAD: 62, syscall.EPERM: 63,
	syscall.EPIPE: 64, syscall.EPROTO: 65, syscall.EPROTONOSUPPORT: 66, syscall.EPROTOTYPE: 67, syscall.ERANGE: 68, syscall.EROFS: 69,
	syscall.ESPIPE: 70, syscall.ESRCH: 71, syscall.ESTALE: 72, syscall.ETIMEDOUT: 73, syscall.ETXTBSY: 74, syscall.EXDEV: 75,
}

// wasiSignals are Linux's numbers by those of WASI.
var wasiSignals = [...]uint8{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 29, 30, 31}
