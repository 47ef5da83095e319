// Files and directories: every path goes to the host as it stands, relative to the process's own working directory.
#include "posix.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <unistd.h>
#include <utime.h>

static int32_t dirfd_of(int fd) { return fd == AT_FDCWD ? AGENTRUN_AT_CWD : fd; }
static uint32_t follow_of(int flags) { return flags & AT_SYMLINK_NOFOLLOW ? AGENTRUN_NOFOLLOW : 0; }
#define PATH(p) (p), (uint32_t)strlen(p)

// linux_flags translates WASI's numbering of open flags into Linux's.
static int linux_flags(int f)
{
	int l = (f & O_RDWR) == O_RDWR ? 2 : f & O_WRONLY ? 1 : 0;
	if (f & O_CREAT) l |= 0x40;
	if (f & O_EXCL) l |= 0x80;
	if (f & O_NOCTTY) l |= 0x100;
	if (f & O_TRUNC) l |= 0x200;
	if (f & O_APPEND) l |= 0x400;
	if (f & O_NONBLOCK) l |= 0x800;
	if (f & (O_SYNC | O_DSYNC | O_RSYNC)) l |= 0x1000;
	if (f & O_DIRECTORY) l |= 0x10000;
	if (f & O_NOFOLLOW) l |= 0x20000;
	if (f & O_CLOEXEC) l |= 0x80000;
	return l;
}

static int open_at(int dir, const char *path, int flags, mode_t mode)
{
	int32_t fd;
	return fail(agentrun_open(dirfd_of(dir), PATH(path), linux_flags(flags), mode, &fd)) ? -1 : fd;
}

static mode_t mode_arg(int flags, va_list ap) { return flags & O_CREAT ? va_arg(ap, int) : 0; }

int open(const char *path, int flags, ...)
{
	va_list ap;
	va_start(ap, flags);
	mode_t mode = mode_arg(flags, ap);
	va_end(ap);
	return open_at(AT_FDCWD, path, flags, mode);
}
int openat(int dir, const char *path, int flags, ...)
{
	va_list ap;
	va_start(ap, flags);
	mode_t mode = mode_arg(flags, ap);
	va_end(ap);
	return open_at(dir, path, flags, mode);
}
int creat(const char *path, mode_t mode) { return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
// What libc's fopen calls.
int __wasilibc_open_nomode(const char *path, int flags) { return open_at(AT_FDCWD, path, flags, 0666); }
int __wasilibc_nocwd_openat_nomode(int dir, const char *path, int flags) { return open_at(dir, path, flags, 0666); }

static void convert(const struct agentrun_stat *a, struct stat *st)
{
	memset(st, 0, sizeof *st);
	st->st_dev = a->dev, st->st_ino = a->ino, st->st_mode = a->mode, st->st_nlink = a->nlink;
	st->st_uid = a->uid, st->st_gid = a->gid, st->st_rdev = a->rdev, st->st_size = a->size;
	st->st_blksize = a->blksize, st->st_blocks = a->blocks;
	st->st_atim = timespec_of(a->atime), st->st_mtim = timespec_of(a->mtime), st->st_ctim = timespec_of(a->ctime);
}
int fstatat(int dir, const char *restrict path, struct stat *restrict st, int flags)
{
	struct agentrun_stat a;
	if (fail(agentrun_stat(dirfd_of(dir), PATH(path), follow_of(flags), &a))) return -1;
	convert(&a, st);
	return 0;
}
int stat(const char *restrict path, struct stat *restrict st) { return fstatat(AT_FDCWD, path, st, 0); }
int lstat(const char *restrict path, struct stat *restrict st) { return fstatat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW); }
int fstat(int fd, struct stat *st)
{
	struct agentrun_stat a;
	if (fail(agentrun_fstat(fd, &a))) return -1;
	convert(&a, st);
	return 0;
}

int faccessat(int dir, const char *path, int mode, int flags)
{
	// WASI's libc numbers X_OK and R_OK the other way round.
	uint32_t m = (mode & R_OK ? 4 : 0) | (mode & W_OK ? 2 : 0) | (mode & X_OK ? 1 : 0);
	return fail(agentrun_access(dirfd_of(dir), PATH(path), m, follow_of(flags)));
}
int access(const char *path, int mode) { return faccessat(AT_FDCWD, path, mode, 0); }

int mkdirat(int dir, const char *path, mode_t mode) { return fail(agentrun_mkdir(dirfd_of(dir), PATH(path), mode)); }
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }
int mknodat(int dir, const char *path, mode_t mode, dev_t dev) { return fail(agentrun_mknod(dirfd_of(dir), PATH(path), mode, dev)); }
int mknod(const char *path, mode_t mode, dev_t dev) { return mknodat(AT_FDCWD, path, mode, dev); }
int mkfifoat(int dir, const char *path, mode_t mode) { return mknodat(dir, path, (mode & 07777) | S_IFIFO, 0); }
int mkfifo(const char *path, mode_t mode) { return mkfifoat(AT_FDCWD, path, mode); }

int unlinkat(int dir, const char *path, int flags)
{
	return fail(agentrun_unlink(dirfd_of(dir), PATH(path), flags & AT_REMOVEDIR ? AGENTRUN_REMOVEDIR : 0));
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path)
{
	struct stat st;
	return lstat(path, &st) ? -1 : S_ISDIR(st.st_mode) ? rmdir(path) : unlink(path);
}
int renameat(int dir, const char *from, int dir2, const char *to)
{
	return fail(agentrun_rename(dirfd_of(dir), PATH(from), dirfd_of(dir2), PATH(to)));
}
int rename(const char *from, const char *to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }
int linkat(int dir, const char *from, int dir2, const char *to, int flags)
{
	return fail(agentrun_link(dirfd_of(dir), PATH(from), dirfd_of(dir2), PATH(to), flags & AT_SYMLINK_FOLLOW ? 0 : AGENTRUN_NOFOLLOW));
}
int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }
int symlinkat(const char *target, int dir, const char *path) { return fail(agentrun_symlink(PATH(target), dirfd_of(dir), PATH(path))); }
int symlink(const char *target, const char *path) { return symlinkat(target, AT_FDCWD, path); }
ssize_t readlinkat(int dir, const char *restrict path, char *restrict buf, size_t cap)
{
	uint32_t n;
	return fail(agentrun_readlink(dirfd_of(dir), PATH(path), buf, cap, &n)) ? -1 : (ssize_t)n;
}
ssize_t readlink(const char *restrict path, char *restrict buf, size_t cap) { return readlinkat(AT_FDCWD, path, buf, cap); }

char *realpath(const char *restrict path, char *restrict to)
{
	char buf[PATH_MAX];
	uint32_t n;
	if (fail(agentrun_realpath(PATH(path), buf, sizeof buf - 1, &n))) return NULL;
	buf[n] = 0;
	return to ? strcpy(to, buf) : strdup(buf);
}

int fchmodat(int dir, const char *path, mode_t mode, int flags)
{
	return fail(agentrun_chmod(dirfd_of(dir), PATH(path), mode, follow_of(flags)));
}
int chmod(const char *path, mode_t mode) { return fchmodat(AT_FDCWD, path, mode, 0); }
int fchmod(int fd, mode_t mode) { return fail(agentrun_fchmod(fd, mode)); }
int fchownat(int dir, const char *path, uid_t uid, gid_t gid, int flags)
{
	return fail(agentrun_chown(dirfd_of(dir), PATH(path), uid, gid, follow_of(flags)));
}
int chown(const char *path, uid_t uid, gid_t gid) { return fchownat(AT_FDCWD, path, uid, gid, 0); }
int lchown(const char *path, uid_t uid, gid_t gid) { return fchownat(AT_FDCWD, path, uid, gid, AT_SYMLINK_NOFOLLOW); }
int fchown(int fd, uid_t uid, gid_t gid) { return fail(agentrun_fchown(fd, uid, gid)); }

static int64_t stamp(const struct timespec *t)
{
	if (t && t->tv_nsec == UTIME_OMIT) return INT64_MIN;
	if (t && t->tv_nsec != UTIME_NOW) return nanos_of(t);
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return nanos_of(&now);
}
int utimensat(int dir, const char *path, const struct timespec t[2], int flags)
{
	return fail(agentrun_utimes(dirfd_of(dir), PATH(path), stamp(t), stamp(t ? t + 1 : NULL), follow_of(flags)));
}
int futimens(int fd, const struct timespec t[2]) { return fail(agentrun_futimes(fd, stamp(t), stamp(t ? t + 1 : NULL))); }
int utimes(const char *path, const struct timeval t[2])
{
	if (!t) return utimensat(AT_FDCWD, path, NULL, 0);
	struct timespec s[2] = {{t[0].tv_sec, t[0].tv_usec * 1000}, {t[1].tv_sec, t[1].tv_usec * 1000}};
	return utimensat(AT_FDCWD, path, s, 0);
}
int utime(const char *path, const struct utimbuf *t)
{
	if (!t) return utimensat(AT_FDCWD, path, NULL, 0);
	struct timespec s[2] = {{t->actime, 0}, {t->modtime, 0}};
	return utimensat(AT_FDCWD, path, s, 0);
}

int truncate(const char *path, off_t size)
{
	int fd = open(path, O_WRONLY);
	if (fd < 0) return -1;
	int r = ftruncate(fd, size), e = errno;
	close(fd);
	errno = e;
	return r;
}
mode_t umask(mode_t mask)
{
	uint32_t old = 0;
	agentrun_umask(mask, &old);
	return old;
}

DIR *opendir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d && fd >= 0) close(fd);
	return d;
}

int chdir(const char *path) { return fail(agentrun_chdir(PATH(path))); }
int fchdir(int fd) { return fail(agentrun_fchdir(fd)); }
char *getcwd(char *buf, size_t cap)
{
	char own[PATH_MAX];
	uint32_t n;
	if (fail(agentrun_getcwd(own, sizeof own - 1, &n))) return NULL;
	own[n] = 0;
	if (!buf) return strdup(own);
	if (n >= cap) return errno = ERANGE, NULL;
	return strcpy(buf, own);
}

int statvfs(const char *restrict path, struct statvfs *restrict s)
{
	uint64_t v[8];
	if (fail(agentrun_statfs(PATH(path), v))) return -1;
	memset(s, 0, sizeof *s);
	s->f_bsize = s->f_frsize = v[0], s->f_blocks = v[1], s->f_bfree = v[2], s->f_bavail = v[3];
	s->f_files = v[4], s->f_ffree = s->f_favail = v[5], s->f_namemax = v[6], s->f_flag = v[7];
	return 0;
}
int fstatvfs(int fd, struct statvfs *s) { return fcntl(fd, F_GETFD) < 0 ? -1 : statvfs(".", s); }
void sync(void) {}
