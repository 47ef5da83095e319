// Shared by the files of this folder: how a host call's errno becomes libc's, and times.
#ifndef AGENTRUN_POSIX_H
#define AGENTRUN_POSIX_H
#include "../agentrun.h"

#include <errno.h>
#include <time.h>

static inline int fail(uint32_t e) { return e ? (errno = (int)e, -1) : 0; }

// timespec_of splits nanoseconds, rounding down also before 1970.
static inline struct timespec timespec_of(int64_t ns)
{
	int64_t s = ns / 1000000000, r = ns % 1000000000;
	return r < 0 ? (struct timespec){s - 1, r + 1000000000} : (struct timespec){s, r};
}
static inline int64_t nanos_of(const struct timespec *t) { return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec; }
#endif
