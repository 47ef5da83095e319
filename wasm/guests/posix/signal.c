// Signals: the host keeps what is pending; handlers run here, when the guest asks.
#include "posix.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
#include <wasi/api.h>

static struct sigaction actions[_NSIG];
static sigset_t blocked;

static uint32_t disposition(sighandler_t h)
{
	return h == SIG_DFL ? AGENTRUN_SIG_DFL : h == SIG_IGN ? AGENTRUN_SIG_IGN : AGENTRUN_SIG_HANDLE;
}

int sigaction(int sig, const struct sigaction *restrict act, struct sigaction *restrict old)
{
	if (sig < 1 || sig >= _NSIG) return errno = EINVAL, -1;
	uint32_t was = 0;
	if (fail(agentrun_sigaction(sig, act ? (int32_t)disposition(act->sa_handler) : -1, &was))) return -1;
	if (old) {
		*old = actions[sig];
		if (was == AGENTRUN_SIG_IGN) old->sa_handler = SIG_IGN;
		if (was == AGENTRUN_SIG_DFL) old->sa_handler = SIG_DFL;
	}
	if (act) actions[sig] = *act;
	return 0;
}
sighandler_t signal(int sig, sighandler_t h)
{
	struct sigaction act = {.sa_handler = h, .sa_flags = SA_RESTART}, old;
	return sigaction(sig, &act, &old) ? SIG_ERR : old.sa_handler;
}
int siginterrupt(int sig, int yes)
{
	if (sig < 1 || sig >= _NSIG) return errno = EINVAL, -1;
	return 0;
}

void agentrun_watch_signals(volatile void *word) { agentrun_sigword((volatile uint32_t *)word); }

void (*agentrun_forked)(void);
static sigset_t held; // taken from the host while blocked here

int agentrun_poll_signals(void)
{
	uint64_t bits = 0;
	int n = 0;
	if (agentrun_sigtake(&bits)) bits = 0;
	if (bits & 1 && agentrun_forked) agentrun_forked();
	held |= bits & ~1ULL;
	for (int sig = 1; sig < _NSIG && held & ~blocked; sig++) {
		if (!(held & ~blocked & 1ULL << sig)) continue;
		held &= ~(1ULL << sig);
		if (disposition(actions[sig].sa_handler) == AGENTRUN_SIG_HANDLE) actions[sig].sa_handler(sig), n++;
	}
	return n;
}

int kill(pid_t pid, int sig)
{
	if (fail(agentrun_kill(pid, sig))) return -1;
	agentrun_poll_signals(); // one sent to this process has come when kill returns
	return 0;
}
int killpg(pid_t pgrp, int sig) { return pgrp < 0 ? (errno = EINVAL, -1) : kill(pgrp ? -pgrp : 0, sig); }
int raise(int sig) { return kill(getpid(), sig); }
_Noreturn void abort(void)
{
	signal(SIGABRT, SIG_DFL);
	raise(SIGABRT);
	_exit(134);
}

int sigemptyset(sigset_t *s) { return *s = 0, 0; }
int sigfillset(sigset_t *s) { return *s = ~0ULL, 0; }
int sigaddset(sigset_t *s, int sig) { return sig < 1 || sig >= _NSIG ? (errno = EINVAL, -1) : (*s |= 1ULL << sig, 0); }
int sigdelset(sigset_t *s, int sig) { return sig < 1 || sig >= _NSIG ? (errno = EINVAL, -1) : (*s &= ~(1ULL << sig), 0); }
int sigismember(const sigset_t *s, int sig) { return sig < 1 || sig >= _NSIG ? (errno = EINVAL, -1) : *s >> sig & 1; }
int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
	if (old) *old = blocked;
	if (!set) return 0;
	switch (how) {
	case SIG_BLOCK: blocked |= *set; break;
	case SIG_UNBLOCK: blocked &= ~*set; break;
	case SIG_SETMASK: blocked = *set; break;
	default: return errno = EINVAL, -1;
	}
	blocked &= ~(1ULL << SIGKILL | 1ULL << SIGSTOP);
	agentrun_poll_signals();
	return 0;
}
int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old) { return sigprocmask(how, set, old) ? errno : 0; }
int sigpending(sigset_t *s)
{
	agentrun_poll_signals();
	return *s = held & blocked, 0;
}

char *strsignal(int sig)
{
	static char *const names[] = {"Unknown signal", "Hangup", "Interrupt", "Quit", "Illegal instruction", "Trace/breakpoint trap", "Aborted",
		"Bus error", "Floating point exception", "Killed", "User defined signal 1", "Segmentation fault", "User defined signal 2", "Broken pipe",
		"Alarm clock", "Terminated", "Stack fault", "Child exited", "Continued", "Stopped (signal)", "Stopped", "Stopped (tty input)",
		"Stopped (tty output)", "Urgent I/O condition", "CPU time limit exceeded", "File size limit exceeded", "Virtual timer expired",
		"Profiling timer expired", "Window changed", "I/O possible", "Power failure", "Bad system call"};
	return names[sig > 0 && sig < (int)(sizeof names / sizeof *names) ? sig : 0];
}

static int64_t nanos(struct timeval t) { return (int64_t)t.tv_sec * 1000000000 + t.tv_usec * 1000; }
static struct timeval timeval(int64_t ns) { return (struct timeval){ns / 1000000000, ns % 1000000000 / 1000}; }
int setitimer(int which, const struct itimerval *restrict v, struct itimerval *restrict old)
{
	int64_t was[2] = {0};
	if (which != ITIMER_REAL) return errno = EINVAL, -1;
	if (fail(agentrun_itimer(v ? nanos(v->it_value) : -1, v ? nanos(v->it_interval) : 0, was))) return -1;
	if (old) *old = (struct itimerval){.it_value = timeval(was[0]), .it_interval = timeval(was[1])};
	return 0;
}
int getitimer(int which, struct itimerval *v) { return setitimer(which, NULL, v); }
unsigned alarm(unsigned seconds)
{
	struct itimerval v = {.it_value = {.tv_sec = seconds}}, old;
	if (setitimer(ITIMER_REAL, &v, &old)) return 0;
	return old.it_value.tv_sec + (old.it_value.tv_usec ? 1 : 0);
}
// WASI's libc reports an interrupted sleep as not supported.
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *t, struct timespec *left)
{
	if (t->tv_sec < 0 || t->tv_nsec < 0 || t->tv_nsec >= 1000000000) return EINVAL;
	struct timespec start, end;
	clock_gettime(clock, &start);
	int64_t wait = flags & TIMER_ABSTIME ? nanos_of(t) - nanos_of(&start) : nanos_of(t);
	if (t->tv_sec > INT64_MAX / 1000000000 / 2) wait = INT64_MAX / 2;
	if (wait <= 0) return 0;
	__wasi_subscription_t sub = {.u.tag = __WASI_EVENTTYPE_CLOCK, .u.u.clock = {.id = __WASI_CLOCKID_MONOTONIC, .timeout = wait}};
	__wasi_event_t event = {0};
	size_t n;
	int e = __wasi_poll_oneoff(&sub, &event, 1, &n);
	if (!e) e = event.error;
	if (e == EINTR && left && !(flags & TIMER_ABSTIME)) {
		clock_gettime(clock, &end);
		int64_t rest = wait - (nanos_of(&end) - nanos_of(&start));
		*left = timespec_of(rest > 0 ? rest : 0);
	}
	return e;
}
int nanosleep(const struct timespec *t, struct timespec *left)
{
	int e = clock_nanosleep(CLOCK_REALTIME, 0, t, left);
	return e ? (errno = e, -1) : 0;
}
unsigned sleep(unsigned seconds)
{
	struct timespec t = {.tv_sec = seconds}, left = {0};
	return nanosleep(&t, &left) ? left.tv_sec : 0;
}
int usleep(unsigned us)
{
	struct timespec t = {us / 1000000, us % 1000000 * 1000};
	return nanosleep(&t, NULL);
}

int pause(void)
{
	struct timespec t = {.tv_sec = 1 << 30};
	nanosleep(&t, NULL);
	return errno = EINTR, -1;
}
