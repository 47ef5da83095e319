#include_next <sys/stat.h>
#ifndef AGENTRUN_STAT_H
#define AGENTRUN_STAT_H
// Modes are those of Linux, where WASI's libc has one number for FIFOs and sockets.
#undef S_IFIFO
#define S_IFIFO 0010000
#undef S_ISFIFO
#define S_ISFIFO(m) (((m) & S_IFMT) == S_IFIFO)
int chmod(const char *, mode_t);
int fchmod(int, mode_t);
int fchmodat(int, const char *, mode_t, int);
mode_t umask(mode_t);
int mkfifo(const char *, mode_t);
int mkfifoat(int, const char *, mode_t);
int mknod(const char *, mode_t, dev_t);
int mknodat(int, const char *, mode_t, dev_t);
#endif
