#include_next <sys/ioctl.h>
#ifndef AGENTRUN_IOCTL_H
#define AGENTRUN_IOCTL_H
#include <termios.h>
#define TIOCGWINSZ 0x5413
#endif
