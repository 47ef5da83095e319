#include_next <sys/time.h>
#ifndef AGENTRUN_TIME_H
#define AGENTRUN_TIME_H
#define ITIMER_REAL 0
#define ITIMER_VIRTUAL 1
#define ITIMER_PROF 2
struct itimerval {
	struct timeval it_interval, it_value;
};
int getitimer(int, struct itimerval *);
int setitimer(int, const struct itimerval *restrict, struct itimerval *restrict);
#endif
