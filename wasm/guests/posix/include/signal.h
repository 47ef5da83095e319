// Signals as guests have them: handlers run when the guest asks (agentrun_poll_signals), never in between.
#ifndef _SIGNAL_H
#define _SIGNAL_H
#include <__typedef_sigset_t.h>
#define __NEED_pid_t
#define __NEED_uid_t
#define __NEED_size_t
#define __NEED_pthread_t
#include <bits/alltypes.h>
#define _WASI_EMULATED_SIGNAL 1
#include <bits/signal.h>
#define NSIG _NSIG

typedef int sig_atomic_t;
typedef void (*sighandler_t)(int);
#define SIG_DFL ((sighandler_t)0)
#define SIG_IGN ((sighandler_t)-2) // 1 may be a function here
#define SIG_ERR ((sighandler_t)-1)
#define SIG_BLOCK 0
#define SIG_UNBLOCK 1
#define SIG_SETMASK 2
#define SA_NOCLDSTOP 1
#define SA_NOCLDWAIT 2
#define SA_SIGINFO 4
#define SA_ONSTACK 0x08000000
#define SA_RESTART 0x10000000
#define SA_NODEFER 0x40000000
#define SA_RESETHAND 0x80000000

union sigval {
	int sival_int;
	void *sival_ptr;
};
typedef struct {
	int si_signo, si_errno, si_code;
	pid_t si_pid;
	uid_t si_uid;
	int si_status;
	void *si_addr;
	long si_band;
	union sigval si_value;
} siginfo_t;
struct sigaction {
	union {
		sighandler_t sa_handler;
		void (*sa_sigaction)(int, siginfo_t *, void *);
	};
	sigset_t sa_mask;
	int sa_flags;
};

int kill(pid_t, int);
int killpg(pid_t, int);
int raise(int);
sighandler_t signal(int, sighandler_t);
int sigaction(int, const struct sigaction *restrict, struct sigaction *restrict);
int siginterrupt(int, int);
int sigemptyset(sigset_t *);
int sigfillset(sigset_t *);
int sigaddset(sigset_t *, int);
int sigdelset(sigset_t *, int);
int sigismember(const sigset_t *, int);
int sigprocmask(int, const sigset_t *restrict, sigset_t *restrict);
int pthread_sigmask(int, const sigset_t *restrict, sigset_t *restrict);
int sigpending(sigset_t *);
char *strsignal(int);

// agentrun_poll_signals runs the handlers of signals that have come; returns how many ran. agentrun_watch_signals names the word that
// becomes 1 when some may have come.
int agentrun_poll_signals(void);
void agentrun_watch_signals(volatile void *word);
#endif
