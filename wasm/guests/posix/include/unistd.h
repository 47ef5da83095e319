// What WASI's unistd.h leaves out, and posix/*.c gives by the host module "agentrun".
#include_next <unistd.h>
#ifndef AGENTRUN_UNISTD_H
#define AGENTRUN_UNISTD_H
#include <sys/types.h>
int pipe(int[2]);
int pipe2(int[2], int);
int dup(int);
int dup2(int, int);
int dup3(int, int, int);
int chown(const char *, uid_t, gid_t);
int fchown(int, uid_t, gid_t);
int lchown(const char *, uid_t, gid_t);
int fchownat(int, const char *, uid_t, gid_t, int);
int fchdir(int);
unsigned alarm(unsigned);
int pause(void);
int execve(const char *, char *const[], char *const[]);
int execv(const char *, char *const[]);
int execvp(const char *, char *const[]);
pid_t getpid(void);
pid_t getppid(void);
pid_t getpgrp(void);
pid_t getpgid(pid_t);
int setpgid(pid_t, pid_t);
pid_t setsid(void);
pid_t getsid(pid_t);
char *ttyname(int);
int ttyname_r(int, char *, size_t);
uid_t getuid(void);
uid_t geteuid(void);
gid_t getgid(void);
gid_t getegid(void);
int getgroups(int, gid_t[]);
int gethostname(char *, size_t);
char *getlogin(void);
char *ctermid(char *);
int lockf(int, int, off_t);
int nice(int);
void sync(void);
#endif
