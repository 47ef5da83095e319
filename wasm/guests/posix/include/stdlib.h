#include_next <stdlib.h>
#ifndef AGENTRUN_STDLIB_H
#define AGENTRUN_STDLIB_H
char *realpath(const char *restrict, char *restrict);
int system(const char *);
#endif
