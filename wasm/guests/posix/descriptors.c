// Descriptors: the process's own table, shared with the programs that it starts.
#include "posix.h"

#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
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
	case F_GETLK: // record locks are granted always: nothing else holds any
		((struct flock *)arg)->l_type = F_UNLCK;
		return 0;
	case F_SETLK:
	case F_SETLKW:
		return fail(agentrun_cloexec(fd, -1, &is));
	}
	return errno = EINVAL, -1;
}
int flock(int fd, int op) { return fcntl(fd, F_GETFD) < 0 ? -1 : 0; }
int lockf(int fd, int cmd, off_t size) { return flock(fd, cmd); }

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
