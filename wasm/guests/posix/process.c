// Processes: numbers, children, limits. Children are started by spawn; there is no fork.
#include "posix.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static struct agentrun_ids ids(void)
{
	struct agentrun_ids i = {0};
	agentrun_ids(&i);
	return i;
}
pid_t getpid(void) { return ids().pid; }
pid_t getppid(void) { return ids().ppid; }
pid_t getpgrp(void) { return ids().pgid; }
uid_t getuid(void) { return ids().uid; }
uid_t geteuid(void) { return ids().euid; }
gid_t getgid(void) { return ids().gid; }
gid_t getegid(void) { return ids().egid; }
int getgroups(int n, gid_t list[])
{
	if (n > 0) list[0] = getgid();
	return n < 0 ? (errno = EINVAL, -1) : 1;
}
pid_t getpgid(pid_t pid)
{
	int32_t g;
	return fail(agentrun_getpgid(pid, &g)) ? -1 : g;
}
pid_t getsid(pid_t pid)
{
	int32_t s;
	return fail(agentrun_getsid(pid, &s)) ? -1 : s;
}
int setpgid(pid_t pid, pid_t pgid) { return fail(agentrun_setpgid(pid, pgid)); }
pid_t setsid(void) { return fail(agentrun_setsid()) ? -1 : (pid_t)ids().sid; }
char *getlogin(void) { return getenv("LOGNAME") ? getenv("LOGNAME") : (errno = ENXIO, NULL); }
int nice(int inc) { return 0; }

int gethostname(char *buf, size_t cap)
{
	uint32_t n;
	if (fail(agentrun_hostname(buf, cap, &n))) return -1;
	if (n < cap) buf[n] = 0;
	return 0;
}
int uname(struct utsname *u)
{
	memset(u, 0, sizeof *u);
	strcpy(u->sysname, "Linux");
	gethostname(u->nodename, sizeof u->nodename);
	strcpy(u->release, "6.1.0-agentrun");
	strcpy(u->version, "#1 AgentRun");
	strcpy(u->machine, "wasm32");
	return 0;
}

// lay puts strings one after the other, as the host reads lists. The buffer is the caller's; NULL when memory is out.
char *agentrun_lay(char *const list[], uint32_t *size)
{
	size_t n = 0;
	for (char *const *s = list; *s; s++) n += strlen(*s) + 1;
	char *buf = malloc(n + 1), *p = buf;
	if (!buf) return NULL;
	for (char *const *s = list; *s; s++) p = stpcpy(p, *s) + 1;
	*size = n;
	return buf;
}

static int exec_file(const char *file, char *const argv[], char *const envp[], uint32_t flags)
{
	struct agentrun_spawn s = {.file = file, .file_len = strlen(file), .flags = flags, .umask = -1};
	char *args = agentrun_lay(argv, &s.args_len), *env = agentrun_lay(envp, &s.env_len);
	s.args = args, s.env = env;
	int r = args && env ? fail(agentrun_exec(&s)) : (errno = ENOMEM, -1);
	free(args);
	free(env);
	return r;
}
int execve(const char *file, char *const argv[], char *const envp[]) { return exec_file(file, argv, envp, 0); }
int execv(const char *file, char *const argv[]) { return exec_file(file, argv, environ, 0); }
int execvp(const char *file, char *const argv[]) { return exec_file(file, argv, environ, AGENTRUN_SPAWN_PATH); }

pid_t waitpid(pid_t pid, int *status, int options)
{
	int32_t which = 0, s = 0;
	if (fail(agentrun_wait(pid, options, &which, &s))) return -1;
	if (status && which) *status = s;
	return which;
}
pid_t wait(int *status) { return waitpid(-1, status, 0); }
pid_t wait4(pid_t pid, int *status, int options, struct rusage *u)
{
	pid_t which = waitpid(pid, status, options);
	if (u) getrusage(RUSAGE_CHILDREN, u);
	return which;
}
pid_t wait3(int *status, int options, struct rusage *u) { return wait4(-1, status, options, u); }

// system runs a command line in the sandbox's shell, as POSIX says, except that INT and QUIT aren't ignored meanwhile.
int system(const char *line)
{
	if (!line) return 1;
	static const int32_t fds[] = {0, 0, 1, 1, 2, 2};
	char *const argv[] = {"sh", "-c", (char *)line, NULL};
	struct agentrun_spawn s = {.file = "/bin/sh", .file_len = 7, .fds = fds, .fds_count = 3, .umask = -1};
	char *args = agentrun_lay(argv, &s.args_len), *env = agentrun_lay(environ, &s.env_len);
	s.args = args, s.env = env;
	int32_t pid;
	int status = 0, r = args && env ? fail(agentrun_spawn(&s, &pid)) : (errno = ENOMEM, -1);
	free(args);
	free(env);
	if (r) return -1;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR) return -1;
	return status;
}

static struct timeval timeval_of(int64_t ns) { return (struct timeval){ns / 1000000000, ns % 1000000000 / 1000}; }
int getrusage(int who, struct rusage *u)
{
	int64_t t[4];
	memset(u, 0, sizeof *u);
	if (fail(agentrun_times(t))) return -1;
	int i = who == RUSAGE_CHILDREN ? 2 : 0;
	u->ru_utime = timeval_of(t[i]), u->ru_stime = timeval_of(t[i + 1]);
	if (who == RUSAGE_SELF) u->ru_maxrss = __builtin_wasm_memory_size(0) * 64;
	return 0;
}
clock_t times(struct tms *b)
{
	int64_t t[4] = {0};
	if (fail(agentrun_times(t))) return -1;
	const int64_t tick = 1000000000 / 100;
	*b = (struct tms){.tms_utime = t[0] / tick, .tms_stime = t[1] / tick, .tms_cutime = t[2] / tick, .tms_cstime = t[3] / tick};
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return nanos_of(&now) / tick;
}
clock_t clock(void)
{
	int64_t t[4] = {0};
	return agentrun_times(t) ? -1 : (t[0] + t[1]) / (1000000000 / CLOCKS_PER_SEC);
}
int getrlimit(int what, struct rlimit *l) { return fail(agentrun_rlimit(what, NULL, (uint64_t *)l)); }
int setrlimit(int what, const struct rlimit *l) { return fail(agentrun_rlimit(what, (const uint64_t *)l, NULL)); }
