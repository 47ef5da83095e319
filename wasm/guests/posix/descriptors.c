// Descriptors: the process's own table, shared with the programs that it starts.
#include "posix.h"

#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>
#include <wasi/api.h>

int pipe2(int fds[2], int flags)
{
	return fail(agentrun_pipe((int32_t *)fds, (flags & O_CLOEXEC ? 0x80000 : 0) | (flags & O_NONBLOCK ? 0x800 : 0)));
}
int pipe(int fds[2]) { return pipe2(fds, 0); }
static int dup_min(int fd, int min, uint32_t cloexec)
{
	int32_t to;
	return fail(agentrun_dup(fd, min, cloexec, &to)) ? -1 : to;
}
int dup(int fd) { return dup_min(fd, 0, 0); }
int dup3(int fd, int to, int flags)
{
	if (fd == to) return errno = EINVAL, -1;
	return fail(agentrun_dup2(fd, to, flags & O_CLOEXEC ? 1 : 0)) ? -1 : to;
}
int dup2(int fd, int to)
{
	if (fd == to) return fcntl(fd, F_GETFD) < 0 ? -1 : to;
	return dup3(fd, to, 0);
}

static int record_lock(int fd, int cmd, struct flock *l)
{
	off_t start = l->l_start, at = 0;
	struct stat st;
	if (l->l_whence == SEEK_CUR && (at = lseek(fd, 0, SEEK_CUR)) < 0) return -1;
	if (l->l_whence == SEEK_END) {
		if (fstat(fd, &st)) return -1;
		at = st.st_size;
	}
	start += at;
	off_t len = l->l_len;
	if (len < 0) start += len, len = -len;
	if (start < 0 || l->l_type < 0 || l->l_type > 2) return errno = EINVAL, -1;
	if (cmd != F_GETLK) return fail(agentrun_lock(fd, 0, l->l_type, start, len, cmd == F_SETLKW));
	uint64_t found[4];
	if (fail(agentrun_lockquery(fd, l->l_type, start, len, found))) return -1;
	if (!found[0]) return l->l_type = F_UNLCK, 0;
	l->l_pid = found[0], l->l_type = found[1], l->l_whence = SEEK_SET, l->l_start = found[2], l->l_len = found[3];
	return 0;
}

int fcntl(int fd, int cmd, ...)
{
	va_list ap;
	va_start(ap, cmd);
	long arg = va_arg(ap, long);
	va_end(ap);
	uint32_t is;
	__wasi_fdstat_t st;
	switch (cmd) {
	case F_GETFD:
		return fail(agentrun_cloexec(fd, -1, &is)) ? -1 : (int)is;
	case F_SETFD:
		return fail(agentrun_cloexec(fd, arg & FD_CLOEXEC, &is));
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		return dup_min(fd, arg, cmd == F_DUPFD_CLOEXEC);
	case F_GETFL:
		if (fail(__wasi_fd_fdstat_get(fd, &st))) return -1;
		return st.fs_flags | (st.fs_rights_base & (__WASI_RIGHTS_FD_READ | __WASI_RIGHTS_FD_READDIR) ? O_RDONLY : 0) |
		       (st.fs_rights_base & __WASI_RIGHTS_FD_WRITE ? O_WRONLY : 0);
	case F_SETFL:
		return fail(__wasi_fd_fdstat_set_flags(fd, arg & 0xfff));
	case F_GETLK:
	case F_SETLK:
	case F_SETLKW:
		return record_lock(fd, cmd, (struct flock *)arg);
	}
	return errno = EINVAL, -1;
}
int flock(int fd, int op)
{
	uint32_t type;
	switch (op & ~LOCK_NB) {
	case LOCK_SH: type = 0; break;
	case LOCK_EX: type = 1; break;
	case LOCK_UN: type = 2; break;
	default: return errno = EINVAL, -1;
	}
	return fail(agentrun_lock(fd, 1, type, 0, 0, !(op & LOCK_NB)));
}
int lockf(int fd, int cmd, off_t size)
{
	struct flock l = {.l_type = cmd == F_ULOCK ? F_UNLCK : F_WRLCK, .l_whence = SEEK_CUR, .l_len = size};
	switch (cmd) {
	case F_TEST:
		if (fcntl(fd, F_GETLK, &l)) return -1;
		return l.l_type == F_UNLCK || l.l_pid == getpid() ? 0 : (errno = EACCES, -1);
	case F_LOCK: return fcntl(fd, F_SETLKW, &l);
	case F_ULOCK:
	case F_TLOCK: return fcntl(fd, F_SETLK, &l);
	}
	return errno = EINVAL, -1;
}

int isatty(int fd)
{
	uint32_t yes = 0;
	if (fail(agentrun_isatty(fd, &yes))) return 0;
	return yes ? 1 : (errno = ENOTTY, 0);
}
int tcgetwinsize(int fd, struct winsize *w)
{
	uint32_t v[2];
	if (fail(agentrun_winsize(fd, v))) return -1;
	*w = (struct winsize){.ws_col = v[0], .ws_row = v[1]};
	return 0;
}
int tcsetwinsize(int fd, const struct winsize *w) { return errno = isatty(fd) ? EPERM : ENOTTY, -1; }
int ioctl(int fd, int req, ...)
{
	va_list ap;
	va_start(ap, req);
	void *arg = va_arg(ap, void *);
	va_end(ap);
	if (req == TIOCGWINSZ) return tcgetwinsize(fd, arg);
	if (req == FIONBIO) return fcntl(fd, F_SETFL, (fcntl(fd, F_GETFL) & ~O_NONBLOCK) | (*(int *)arg ? O_NONBLOCK : 0));
	return errno = fcntl(fd, F_GETFD) < 0 ? EBADF : ENOTTY, -1;
}

int tcgetattr(int fd, struct termios *t) { return fail(agentrun_tcgetattr(fd, t)); }
int tcsetattr(int fd, int when, const struct termios *t) { return fail(agentrun_tcsetattr(fd, when, t)); }
static int terminal(int fd) { return isatty(fd) ? 0 : -1; }
int tcsendbreak(int fd, int duration) { return terminal(fd); }
int tcdrain(int fd) { return terminal(fd); }
int tcflush(int fd, int what) { return terminal(fd); }
int tcflow(int fd, int what) { return terminal(fd); }
speed_t cfgetospeed(const struct termios *t) { return t->__ospeed; }
speed_t cfgetispeed(const struct termios *t) { return t->__ispeed; }
int cfsetospeed(struct termios *t, speed_t s) { return t->__ospeed = s, 0; }
int cfsetispeed(struct termios *t, speed_t s) { return t->__ispeed = s, 0; }
int ttyname_r(int fd, char *buf, size_t cap)
{
	if (!isatty(fd)) return errno;
	if (cap < sizeof "/dev/tty") return ERANGE;
	strcpy(buf, "/dev/tty");
	return 0;
}
char *ttyname(int fd)
{
	static char name[16];
	int e = ttyname_r(fd, name, sizeof name);
	return e ? (errno = e, NULL) : name;
}
char *ctermid(char *buf)
{
	static char name[16];
	return strcpy(buf ? buf : name, "/dev/tty");
}
