#include_next <errno.h>
#ifndef AGENTRUN_ERRNO_H
#define AGENTRUN_ERRNO_H
// agentrun_errno gives Linux's number of an error, agentrun_errno_back the other way round (-1 for one that WASI doesn't have).
int agentrun_errno(int);
int agentrun_errno_back(int);
#endif
