#include_next <fcntl.h>
#ifndef AGENTRUN_FCNTL_H
#define AGENTRUN_FCNTL_H
// WASI has no descriptors that survive or don't survive exec; processes of a sandbox do. Both bits are free in WASI's numbering.
#undef O_CLOEXEC
#define O_CLOEXEC 0x20000000
#undef O_NOCTTY
#define O_NOCTTY 0x40000000
#define F_DUPFD 0x400
#define F_DUPFD_CLOEXEC 0x406
#ifndef F_RDLCK
#define F_RDLCK 0
#define F_WRLCK 1
#define F_UNLCK 2
#endif
#ifndef F_GETLK
#define F_GETLK 5
#define F_SETLK 6
#define F_SETLKW 7
#endif
#endif
