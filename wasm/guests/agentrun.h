// The host module "agentrun": what a guest needs of POSIX that WASI preview 1 lacks. Package wasm implements it over virtual processes.
//
// Every function returns 0 or a WASI errno, as the functions of WASI do; results go through pointers. Paths are bytes with a length, not
// terminated. A path is relative to the directory behind descriptor `dir`, or to the process's working directory if that is AT_CWD; descriptors
// are the process's own numbers. Signal numbers, open flags, modes and wait statuses are Linux's, times nanoseconds since 1970.
#ifndef AGENTRUN_H
#define AGENTRUN_H

#include <stdint.h>

#define AGENTRUN_IMPORT(name) __attribute__((import_module("agentrun"), import_name(#name))) uint32_t agentrun_##name
#define AGENTRUN_AT_CWD (-100)
#define AGENTRUN_NOFOLLOW 0x100 // flags of path functions, as Linux's AT_*
#define AGENTRUN_REMOVEDIR 0x200

// 104 bytes, little endian, without holes.
struct agentrun_stat {
	uint64_t dev, ino;
	uint32_t mode, nlink, uid, gid;
	uint64_t rdev, size, blocks; // blocks of 512 bytes
	uint32_t blksize, pad;
	int64_t atime, mtime, ctime;
};

struct agentrun_ids {
	uint32_t pid, ppid, pgid, sid, uid, euid, gid, egid;
};

// What a child is started with. Lists hold terminated strings one after the other; size in bytes. env NULL: the process's own.
// The child has exactly the descriptors that fds names: pairs of (number here, number there), taken from before any is replaced.
struct agentrun_spawn {
	const char *file;
	uint32_t file_len;
	const char *args;
	uint32_t args_len;
	const char *env;
	uint32_t env_len;
	const char *dir; // NULL: the process's own
	uint32_t dir_len;
	const int32_t *fds;
	uint32_t fds_count; // pairs
	uint32_t flags;
	int32_t pgid; // with SPAWN_PGROUP: 0 makes the child a leader
	int32_t umask; // -1: the process's own
};
#define AGENTRUN_SPAWN_PATH 1   // look file up in PATH (of env)
#define AGENTRUN_SPAWN_SETSID 2
#define AGENTRUN_SPAWN_PGROUP 4

#define AGENTRUN_WNOHANG 1
#define AGENTRUN_WUNTRACED 2
#define AGENTRUN_WCONTINUED 8

// Files.
AGENTRUN_IMPORT(open)(int32_t dir, const char *path, uint32_t len, int32_t flags, uint32_t mode, int32_t *fd);
AGENTRUN_IMPORT(stat)(int32_t dir, const char *path, uint32_t len, uint32_t flags, struct agentrun_stat *st);
AGENTRUN_IMPORT(fstat)(int32_t fd, struct agentrun_stat *st);
AGENTRUN_IMPORT(access)(int32_t dir, const char *path, uint32_t len, uint32_t mode, uint32_t flags); // mode: R_OK 4, W_OK 2, X_OK 1
AGENTRUN_IMPORT(mkdir)(int32_t dir, const char *path, uint32_t len, uint32_t mode);
AGENTRUN_IMPORT(mknod)(int32_t dir, const char *path, uint32_t len, uint32_t mode, uint64_t rdev); // FIFOs
AGENTRUN_IMPORT(unlink)(int32_t dir, const char *path, uint32_t len, uint32_t flags); // REMOVEDIR
AGENTRUN_IMPORT(rename)(int32_t dir, const char *path, uint32_t len, int32_t dir2, const char *path2, uint32_t len2);
AGENTRUN_IMPORT(link)(int32_t dir, const char *path, uint32_t len, int32_t dir2, const char *path2, uint32_t len2, uint32_t flags); // NOFOLLOW
AGENTRUN_IMPORT(symlink)(const char *target, uint32_t target_len, int32_t dir, const char *path, uint32_t len);
AGENTRUN_IMPORT(readlink)(int32_t dir, const char *path, uint32_t len, char *buf, uint32_t cap, uint32_t *n);
AGENTRUN_IMPORT(realpath)(const char *path, uint32_t len, char *buf, uint32_t cap, uint32_t *n); // ERANGE if cap is too small
AGENTRUN_IMPORT(chmod)(int32_t dir, const char *path, uint32_t len, uint32_t mode, uint32_t flags);
AGENTRUN_IMPORT(fchmod)(int32_t fd, uint32_t mode);
AGENTRUN_IMPORT(chown)(int32_t dir, const char *path, uint32_t len, uint32_t uid, uint32_t gid, uint32_t flags); // 0xffffffff: as it is
AGENTRUN_IMPORT(fchown)(int32_t fd, uint32_t uid, uint32_t gid);
AGENTRUN_IMPORT(utimes)(int32_t dir, const char *path, uint32_t len, int64_t atime, int64_t mtime, uint32_t flags); // INT64_MIN: as it is
AGENTRUN_IMPORT(futimes)(int32_t fd, int64_t atime, int64_t mtime);
AGENTRUN_IMPORT(statfs)(const char *path, uint32_t len, uint64_t out[8]); // bsize, blocks, bfree, bavail, files, ffree, namemax, flags
AGENTRUN_IMPORT(umask)(uint32_t mask, uint32_t *old);
AGENTRUN_IMPORT(getcwd)(char *buf, uint32_t cap, uint32_t *n); // ERANGE if cap is too small
AGENTRUN_IMPORT(chdir)(const char *path, uint32_t len);
AGENTRUN_IMPORT(fchdir)(int32_t fd);

// Descriptors.
AGENTRUN_IMPORT(dup)(int32_t fd, int32_t min, uint32_t cloexec, int32_t *to);
AGENTRUN_IMPORT(dup2)(int32_t fd, int32_t to, uint32_t cloexec);
AGENTRUN_IMPORT(pipe)(int32_t fds[2], int32_t flags); // O_CLOEXEC, O_NONBLOCK
AGENTRUN_IMPORT(cloexec)(int32_t fd, int32_t set, uint32_t *is); // set: 0, 1, or -1 to ask
AGENTRUN_IMPORT(isatty)(int32_t fd, uint32_t *yes);
AGENTRUN_IMPORT(winsize)(int32_t fd, uint32_t out[2]); // columns, rows; ENOTTY
AGENTRUN_IMPORT(tcgetattr)(int32_t fd, void *termios); // Linux's struct termios of x86-64, 60 bytes
AGENTRUN_IMPORT(tcsetattr)(int32_t fd, uint32_t when, const void *termios);

// Processes.
AGENTRUN_IMPORT(ids)(struct agentrun_ids *ids);
AGENTRUN_IMPORT(hostname)(char *buf, uint32_t cap, uint32_t *n);
AGENTRUN_IMPORT(spawn)(const struct agentrun_spawn *s, int32_t *pid);
AGENTRUN_IMPORT(exec)(const struct agentrun_spawn *s); // replaces the program; fds are ignored, close-on-exec counts; returns only errors
AGENTRUN_IMPORT(wait)(int32_t pid, uint32_t options, int32_t *which, int32_t *status); // pid as waitpid; which 0: none yet
AGENTRUN_IMPORT(kill)(int32_t pid, uint32_t sig);
AGENTRUN_IMPORT(getpgid)(int32_t pid, int32_t *pgid);
AGENTRUN_IMPORT(getsid)(int32_t pid, int32_t *sid);
AGENTRUN_IMPORT(setpgid)(int32_t pid, int32_t pgid);
AGENTRUN_IMPORT(setsid)(void);
// Advisory locks: kind 0 as fcntl's, of a process, 1 as flock's (of a process, too); type 0 shared, 1 exclusive, 2 none; len 0: up to the end; waits if
// asked. EAGAIN when somebody else has one in the way. query: as fcntl's F_GETLK, pid 0 if nobody has.
AGENTRUN_IMPORT(lock)(int32_t fd, uint32_t kind, uint32_t type, uint64_t start, uint64_t len, uint32_t wait);
AGENTRUN_IMPORT(lockquery)(int32_t fd, uint32_t type, uint64_t start, uint64_t len, uint64_t out[4]); // pid, type, start, len
AGENTRUN_IMPORT(times)(int64_t out[4]); // CPU time of this process (user, system) and of children waited for
AGENTRUN_IMPORT(rlimit)(uint32_t what, const uint64_t *set, uint64_t *get); // {soft, hard}; either may be NULL

// Signals. A guest's handlers run when the guest asks: the host stores 1 into the first byte of *word as soon as a signal is pending whose action is
// AGENTRUN_SIG_HANDLE, and a blocking call returns EINTR; the guest then takes the signals and runs what is to run.
#define AGENTRUN_SIG_DFL 0
#define AGENTRUN_SIG_IGN 1
#define AGENTRUN_SIG_HANDLE 2
AGENTRUN_IMPORT(sigword)(volatile uint32_t *word);
AGENTRUN_IMPORT(sigaction)(uint32_t sig, int32_t set, uint32_t *old); // set -1: only ask
AGENTRUN_IMPORT(sigtake)(uint64_t *bits); // bit n: signal n; taken signals are no longer pending. Bit 0: this is a copy now, of a guest that was running
AGENTRUN_IMPORT(itimer)(int64_t value, int64_t interval, int64_t old[2]); // ITIMER_REAL → SIGALRM; value 0 stops it, -1 only asks; old: value, interval

// A call to the Go program that runs the guest (Config.Call): bytes in, bytes out. The answer is kept until the next call and read by reply.
AGENTRUN_IMPORT(call)(uint32_t op, const void *in, uint32_t len, uint32_t *answer_len);
AGENTRUN_IMPORT(reply)(void *buf, uint32_t cap);

#endif
