// The JavaScript guest: QuickJS, and what the programs written in JavaScript (package wasm/js) need of their host.
//
//	agentrun_init   makes the interpreter and runs the script "bootstrap", which loads and keeps what all programs need; the instance
//	                rests afterwards, and a snapshot of it is what every run starts from
//	agentrun_run    calls the function main that the script left; its result is the exit status
//
// JavaScript sees one object, `host`. Its functions return a number below zero, an errno of Linux, where they fail.
#include "quickjs.h"

#include "agentrun.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <wasi/api.h>

#define EXPORT(name) __attribute__((export_name(#name))) name
#define COUNT(a) (sizeof(a) / sizeof *(a))
#define CALL_SOURCE 1

int agentrun_errno(int);
void agentrun_seed(JSContext *, uint64_t);
JSValue agentrun_entries(JSContext *, JSValueConst);
extern char **environ;
extern void __wasilibc_initialize_environ(void);

static JSRuntime *rt;
static JSContext *ctx;
static JSValue host, entry, on_rejection, on_resolve, on_load, on_meta;

#define FN(name) static JSValue name(JSContext *c, JSValueConst self, int argc, JSValueConst *argv)

static JSValue number(int64_t v) { return v < 0 ? JS_NewInt32(ctx, -agentrun_errno(errno)) : JS_NewInt64(ctx, v); }
static JSValue wasi(uint32_t e) { return JS_NewInt32(ctx, -agentrun_errno((int)e)); }
static int32_t int_of(JSValueConst v)
{
	int32_t n = 0;
	JS_ToInt32(ctx, &n, v);
	return n;
}
static double float_of(JSValueConst v)
{
	double d = 0;
	JS_ToFloat64(ctx, &d, v);
	return d;
}

// Strings of arguments are let go of when the function returns.
struct text {
	const char *s;
	size_t n;
};
static void drop(struct text *t)
{
	if (t->s) JS_FreeCString(ctx, t->s);
}
#define TEXT(name, i) \
	__attribute__((cleanup(drop))) struct text name = {0}; \
	if (!(name.s = JS_ToCStringLen(ctx, &name.n, argv[i]))) return JS_EXCEPTION
#define PATH(name, i) \
	TEXT(name, i); \
	if (strlen(name.s) != name.n) return JS_NewInt32(ctx, -22)

// bytes returns a part of a typed array: [offset, offset+length) of argv[i], argv[i+1], argv[i+2].
static uint8_t *bytes(JSValueConst *argv, int i, size_t *n)
{
	size_t size;
	uint8_t *b = JS_GetUint8Array(ctx, &size, argv[i]);
	double off = float_of(argv[i + 1]), len = float_of(argv[i + 2]);
	if (!b || off < 0 || len < 0 || off > size || len > size - off) {
		JS_FreeValue(ctx, JS_GetException(ctx));
		errno = EINVAL;
		return NULL;
	}
	*n = (size_t)len;
	return b + (size_t)off;
}

FN(f_open)
{
	PATH(path, 0);
	int32_t fd;
	uint32_t e = agentrun_open(AGENTRUN_AT_CWD, path.s, path.n, int_of(argv[1]) | 0x80000, int_of(argv[2]), &fd);
	return e ? wasi(e) : JS_NewInt32(ctx, fd);
}
FN(f_close) { return number(close(int_of(argv[0]))); }
FN(f_read)
{
	size_t n;
	static uint8_t none;
	uint8_t *b = bytes(argv, 1, &n);
	double at = float_of(argv[4]);
	if (!b && n) return number(-1);
	return number(at < 0 ? read(int_of(argv[0]), n ? b : &none, n) : pread(int_of(argv[0]), n ? b : &none, n, (off_t)at));
}
FN(f_write)
{
	size_t n;
	uint8_t *b = bytes(argv, 1, &n);
	double at = float_of(argv[4]);
	if (!b) return number(-1);
	return number(at < 0 ? write(int_of(argv[0]), b, n) : pwrite(int_of(argv[0]), b, n, (off_t)at));
}

// read_all reads what is left of a descriptor.
static JSValue read_all(int fd)
{
	struct stat st;
	size_t size = 0, cap = 1 << 16;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size < 1 << 30) cap = st.st_size + 1;
	uint8_t *b = malloc(cap);
	for (ssize_t n = 1; b && n;) {
		if (size == cap) {
			uint8_t *more = realloc(b, cap *= 2);
			if (!more) {
				free(b);
				return JS_NewInt32(ctx, -12);
			}
			b = more;
		}
		n = read(fd, b + size, cap - size);
		if (n < 0 && errno == EINTR) continue;
		if (n < 0) {
			int e = errno;
			free(b);
			errno = e;
			return number(-1);
		}
		size += n;
	}
	if (!b) return JS_NewInt32(ctx, -12);
	JSValue v = JS_NewUint8ArrayCopy(ctx, b, size);
	free(b);
	return v;
}
FN(f_read_all) { return read_all(int_of(argv[0])); }

static JSValue stat_of(const struct agentrun_stat *a)
{
	const double v[] = {a->dev, a->ino, a->mode, a->nlink, a->uid, a->gid, a->rdev, a->size, a->blksize, a->blocks, a->atime / 1e6, a->mtime / 1e6, a->ctime / 1e6};
	JSValue list = JS_NewArray(ctx);
	for (uint32_t i = 0; i < COUNT(v); i++) JS_SetPropertyUint32(ctx, list, i, JS_NewFloat64(ctx, v[i]));
	return list;
}
FN(f_stat)
{
	PATH(path, 0);
	struct agentrun_stat st;
	uint32_t e = agentrun_stat(AGENTRUN_AT_CWD, path.s, path.n, JS_ToBool(ctx, argv[1]) ? AGENTRUN_NOFOLLOW : 0, &st);
	return e ? wasi(e) : stat_of(&st);
}
FN(f_fstat)
{
	struct agentrun_stat st;
	uint32_t e = agentrun_fstat(int_of(argv[0]), &st);
	return e ? wasi(e) : stat_of(&st);
}
FN(f_readdir)
{
	PATH(path, 0);
	DIR *d = opendir(path.s);
	if (!d) return number(-1);
	JSValue list = JS_NewArray(ctx);
	uint32_t n = 0;
	for (struct dirent *e; (e = readdir(d));) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
		JS_SetPropertyUint32(ctx, list, n++, JS_NewString(ctx, e->d_name));
		JS_SetPropertyUint32(ctx, list, n++, JS_NewInt32(ctx, e->d_type));
	}
	closedir(d);
	return list;
}

// One path, and a number or two.
FN(f_mkdir)
{
	PATH(p, 0);
	return wasi(agentrun_mkdir(AGENTRUN_AT_CWD, p.s, p.n, int_of(argv[1])));
}
FN(f_unlink)
{
	PATH(p, 0);
	return wasi(agentrun_unlink(AGENTRUN_AT_CWD, p.s, p.n, JS_ToBool(ctx, argv[1]) ? AGENTRUN_REMOVEDIR : 0));
}
FN(f_access)
{
	PATH(p, 0);
	return wasi(agentrun_access(AGENTRUN_AT_CWD, p.s, p.n, int_of(argv[1]), 0));
}
FN(f_chmod)
{
	PATH(p, 0);
	return wasi(agentrun_chmod(AGENTRUN_AT_CWD, p.s, p.n, int_of(argv[1]), 0));
}
FN(f_chown)
{
	PATH(p, 0);
	return wasi(agentrun_chown(AGENTRUN_AT_CWD, p.s, p.n, int_of(argv[1]), int_of(argv[2]), JS_ToBool(ctx, argv[3]) ? AGENTRUN_NOFOLLOW : 0));
}
FN(f_utimes)
{
	PATH(p, 0);
	return wasi(agentrun_utimes(AGENTRUN_AT_CWD, p.s, p.n, float_of(argv[1]) * 1e6, float_of(argv[2]) * 1e6, JS_ToBool(ctx, argv[3]) ? AGENTRUN_NOFOLLOW : 0));
}
FN(f_chdir)
{
	PATH(p, 0);
	return wasi(agentrun_chdir(p.s, p.n));
}
FN(f_rename)
{
	PATH(a, 0);
	PATH(b, 1);
	return wasi(agentrun_rename(AGENTRUN_AT_CWD, a.s, a.n, AGENTRUN_AT_CWD, b.s, b.n));
}
FN(f_link)
{
	PATH(a, 0);
	PATH(b, 1);
	return wasi(agentrun_link(AGENTRUN_AT_CWD, a.s, a.n, AGENTRUN_AT_CWD, b.s, b.n, AGENTRUN_NOFOLLOW));
}
FN(f_symlink)
{
	PATH(a, 0);
	PATH(b, 1);
	return wasi(agentrun_symlink(a.s, a.n, AGENTRUN_AT_CWD, b.s, b.n));
}
static char place[1 << 16];
FN(f_readlink)
{
	PATH(p, 0);
	uint32_t n, e = agentrun_readlink(AGENTRUN_AT_CWD, p.s, p.n, place, sizeof place, &n);
	return e ? wasi(e) : JS_NewStringLen(ctx, place, n);
}
FN(f_realpath)
{
	PATH(p, 0);
	uint32_t n, e = agentrun_realpath(p.s, p.n, place, sizeof place, &n);
	return e ? wasi(e) : JS_NewStringLen(ctx, place, n);
}
FN(f_cwd)
{
	uint32_t n, e = agentrun_getcwd(place, sizeof place, &n);
	return e ? wasi(e) : JS_NewStringLen(ctx, place, n);
}
FN(f_hostname)
{
	uint32_t n, e = agentrun_hostname(place, sizeof place, &n);
	return e ? wasi(e) : JS_NewStringLen(ctx, place, n);
}
FN(f_fchmod) { return wasi(agentrun_fchmod(int_of(argv[0]), int_of(argv[1]))); }
FN(f_futimes) { return wasi(agentrun_futimes(int_of(argv[0]), float_of(argv[1]) * 1e6, float_of(argv[2]) * 1e6)); }
FN(f_ftruncate) { return number(ftruncate(int_of(argv[0]), (off_t)float_of(argv[1]))); }
FN(f_fsync) { return number(fsync(int_of(argv[0]))); }
FN(f_umask)
{
	uint32_t old = 0;
	agentrun_umask(int_of(argv[0]), &old);
	return JS_NewInt32(ctx, old);
}

static JSValue texts(char *const *list)
{
	JSValue a = JS_NewArray(ctx);
	for (uint32_t i = 0; list && list[i]; i++) JS_SetPropertyUint32(ctx, a, i, JS_NewString(ctx, list[i]));
	return a;
}
FN(f_environ)
{
	__wasilibc_initialize_environ();
	return texts(environ);
}
FN(f_args)
{
	size_t n = 0, size = 0;
	if (__wasi_args_sizes_get(&n, &size)) return JS_NewArray(ctx);
	char **list = calloc(n + 1, sizeof *list), *buf = malloc(size + 1);
	if (list && buf) __wasi_args_get((uint8_t **)list, (uint8_t *)buf);
	JSValue a = texts(list);
	free(list);
	free(buf);
	return a;
}
FN(f_ids)
{
	struct agentrun_ids i = {0};
	agentrun_ids(&i);
	const uint32_t v[] = {i.pid, i.ppid, i.uid, i.gid, i.pgid, i.sid};
	JSValue a = JS_NewArray(ctx);
	for (uint32_t k = 0; k < COUNT(v); k++) JS_SetPropertyUint32(ctx, a, k, JS_NewInt64(ctx, v[k]));
	return a;
}
FN(f_times)
{
	int64_t t[4] = {0};
	agentrun_times(t);
	JSValue a = JS_NewArray(ctx);
	for (uint32_t k = 0; k < 4; k++) JS_SetPropertyUint32(ctx, a, k, JS_NewFloat64(ctx, t[k] / 1e3));
	return a;
}
FN(f_memory)
{
	JSMemoryUsage u;
	JS_ComputeMemoryUsage(rt, &u);
	JSValue a = JS_NewArray(ctx);
	const double v[] = {__builtin_wasm_memory_size(0) * 65536.0, u.malloc_size, u.memory_used_size};
	for (uint32_t k = 0; k < COUNT(v); k++) JS_SetPropertyUint32(ctx, a, k, JS_NewFloat64(ctx, v[k]));
	return a;
}

FN(f_isatty) { return JS_NewBool(ctx, isatty(int_of(argv[0]))); }
FN(f_winsize)
{
	uint32_t v[2], e = agentrun_winsize(int_of(argv[0]), v);
	if (e) return wasi(e);
	JSValue a = JS_NewArray(ctx);
	for (uint32_t k = 0; k < 2; k++) JS_SetPropertyUint32(ctx, a, k, JS_NewInt32(ctx, v[k]));
	return a;
}
FN(f_raw)
{
	static struct termios before;
	static int kept;
	struct termios t;
	int fd = int_of(argv[0]);
	if (tcgetattr(fd, &t)) return number(-1);
	if (!JS_ToBool(ctx, argv[1])) return kept ? number(tcsetattr(fd, 1, &before)) : JS_NewInt32(ctx, 0);
	if (!kept) before = t, kept = 1;
	// As Node: bytes come as they are, but output is still processed.
	t.c_iflag &= ~(0x2u | 0x10 | 0x20 | 0x100 | 0x400);
	t.c_lflag &= ~(0x8u | 0x2 | 0x1 | 0x8000);
	return number(tcsetattr(fd, 1, &t));
}

// list joins strings, terminated, as the host reads lists.
static char *list(JSValueConst a, uint32_t *size)
{
	int64_t n = 0;
	JS_GetLength(ctx, a, &n);
	size_t used = 0, cap = 256;
	char *buf = malloc(cap);
	for (int64_t i = 0; buf && i < n; i++) {
		JSValue v = JS_GetPropertyInt64(ctx, a, i);
		size_t len;
		const char *s = JS_ToCStringLen(ctx, &len, v);
		JS_FreeValue(ctx, v);
		if (!s || strlen(s) != len) {
			JS_FreeCString(ctx, s);
			free(buf);
			return errno = EINVAL, NULL;
		}
		while (buf && used + len + 1 > cap) {
			char *more = realloc(buf, cap *= 2);
			if (!more) free(buf);
			buf = more;
		}
		if (buf) memcpy(buf + used, s, len + 1), used += len + 1;
		JS_FreeCString(ctx, s);
	}
	*size = used;
	return buf;
}

// spawn(file, args, env or null, dir or null, pairs of descriptors, flags, path)
FN(f_spawn)
{
	PATH(file, 0);
	struct agentrun_spawn s = {.file = file.s, .file_len = file.n, .umask = -1, .flags = int_of(argv[5])};
	__attribute__((cleanup(drop))) struct text dir = {0};
	char *args = list(argv[1], &s.args_len), *env = JS_IsNull(argv[2]) ? NULL : list(argv[2], &s.env_len);
	int64_t n = 0;
	JS_GetLength(ctx, argv[4], &n);
	int32_t *fds = calloc(n + 1, sizeof *fds), pid = 0;
	JSValue r;
	if (!args || !fds || (!env && !JS_IsNull(argv[2]))) {
		r = number(-1);
		goto end;
	}
	for (int64_t i = 0; i < n; i++) {
		JSValue v = JS_GetPropertyInt64(ctx, argv[4], i);
		fds[i] = int_of(v);
		JS_FreeValue(ctx, v);
	}
	if (!JS_IsNull(argv[3])) {
		if (!(dir.s = JS_ToCStringLen(ctx, &dir.n, argv[3]))) {
			r = JS_EXCEPTION;
			goto end;
		}
		s.dir = dir.s, s.dir_len = dir.n;
	}
	s.args = args, s.env = env, s.fds = fds, s.fds_count = n / 2;
	uint32_t e = agentrun_spawn(&s, &pid);
	r = e ? wasi(e) : JS_NewInt32(ctx, pid);
end:
	free(args);
	free(env);
	free(fds);
	return r;
}
FN(f_wait)
{
	int32_t v[2];
	uint32_t e = agentrun_wait(int_of(argv[0]), int_of(argv[1]), &v[0], &v[1]);
	if (e) return wasi(e);
	JSValue a = JS_NewArray(ctx);
	for (uint32_t k = 0; k < 2; k++) JS_SetPropertyUint32(ctx, a, k, JS_NewInt32(ctx, v[k]));
	return a;
}
FN(f_kill) { return wasi(agentrun_kill(int_of(argv[0]), int_of(argv[1]))); }
FN(f_pipe)
{
	int32_t v[2];
	uint32_t e = agentrun_pipe(v, 0x80000);
	if (e) return wasi(e);
	JSValue a = JS_NewArray(ctx);
	for (uint32_t k = 0; k < 2; k++) JS_SetPropertyUint32(ctx, a, k, JS_NewInt32(ctx, v[k]));
	return a;
}
FN(f_sigaction)
{
	uint32_t old;
	return wasi(agentrun_sigaction(int_of(argv[0]), int_of(argv[1]), &old));
}
// The host stores into word when there are signals to be taken; bit 0 says that this is a copy, made while it ran.
static volatile uint32_t word;
static uint64_t taken;
static void seed(void)
{
	uint64_t v = 1;
	__wasi_random_get((uint8_t *)&v, sizeof v);
	agentrun_seed(ctx, v);
}
static void take(void)
{
	uint64_t bits = 0;
	word = 0;
	if (agentrun_sigtake(&bits)) return;
	if (bits & 1) seed();
	taken |= bits & ~1ull;
}
static int interrupt(JSRuntime *r, void *opaque)
{
	if (word) take();
	return 0;
}
FN(f_sigtake)
{
	take();
	uint64_t bits = taken;
	taken = 0;
	JSValue a = JS_NewArray(ctx);
	for (uint32_t sig = 1, n = 0; sig < 64; sig++)
		if (bits >> sig & 1) JS_SetPropertyUint32(ctx, a, n++, JS_NewInt32(ctx, sig));
	return a;
}

// poll(descriptors, milliseconds or -1) returns those that can be read, or -4 when a signal came.
FN(f_poll)
{
	enum { max = 1000 };
	static __wasi_subscription_t subs[max + 1];
	static __wasi_event_t events[max + 1];
	int64_t n = 0;
	if (word) take();
	if (taken) return JS_NewInt32(ctx, -4); // else it would wait for what has come already
	JS_GetLength(ctx, argv[0], &n);
	if (n > max) n = max;
	for (int64_t i = 0; i < n; i++) {
		JSValue v = JS_GetPropertyInt64(ctx, argv[0], i);
		int32_t fd = int_of(v);
		JS_FreeValue(ctx, v);
		subs[i] = (__wasi_subscription_t){.userdata = fd, .u = {.tag = __WASI_EVENTTYPE_FD_READ, .u.fd_read.file_descriptor = fd}};
	}
	double ms = float_of(argv[1]);
	if (ms > 1e12) ms = 1e12;
	if (ms >= 0 || n == 0)
		subs[n++] = (__wasi_subscription_t){.userdata = -1ull, .u = {.tag = __WASI_EVENTTYPE_CLOCK, .u.clock = {.id = __WASI_CLOCKID_MONOTONIC, .timeout = ms < 0 ? 1ull << 60 : (uint64_t)(ms * 1e6)}}};
	size_t got = 0;
	int e = __wasi_poll_oneoff(subs, events, n, &got);
	if (e) return wasi(e);
	JSValue a = JS_NewArray(ctx);
	uint32_t k = 0;
	for (size_t i = 0; i < got; i++)
		if (events[i].userdata != -1ull) JS_SetPropertyUint32(ctx, a, k++, JS_NewInt32(ctx, (int32_t)events[i].userdata));
	return a;
}

static double clock_ns(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}
FN(f_now) { return JS_NewFloat64(ctx, clock_ns(CLOCK_REALTIME) / 1e6); }
FN(f_hr) { return JS_NewFloat64(ctx, clock_ns(CLOCK_MONOTONIC)); }
FN(f_random)
{
	size_t n;
	uint8_t *b = bytes(argv, 0, &n);
	if (!b) return number(-1);
	return wasi(__wasi_random_get(b, n));
}
FN(f_exit) { _exit(int_of(argv[0]) & 255); }

// call(op, bytes) asks the program in Go.
FN(f_call)
{
	size_t n = 0;
	uint8_t *b = JS_GetUint8Array(ctx, &n, argv[1]);
	uint32_t got = 0, e = agentrun_call(int_of(argv[0]), b, n, &got);
	if (e) return wasi(e);
	uint8_t *r = malloc(got + 1);
	if (!r) return JS_NewInt32(ctx, -12);
	agentrun_reply(r, got);
	JSValue v = JS_NewUint8ArrayCopy(ctx, r, got);
	free(r);
	return v;
}

// Text. decode takes bytes for UTF-8 (what is wrong becomes U+FFFD) or, with latin, each for a character.
FN(f_decode)
{
	size_t n;
	uint8_t *b = bytes(argv, 0, &n);
	if (!b) return n ? JS_ThrowRangeError(ctx, "out of bounds") : JS_NewString(ctx, "");
	if (!JS_ToBool(ctx, argv[3])) return JS_NewStringLen(ctx, (char *)b, n);
	char *u = malloc(2 * n + 1), *p = u;
	if (!u) return JS_ThrowOutOfMemory(ctx);
	for (size_t i = 0; i < n; i++)
		if (b[i] < 0x80) *p++ = b[i];
		else *p++ = 0xc0 | b[i] >> 6, *p++ = 0x80 | (b[i] & 0x3f);
	JSValue v = JS_NewStringLen(ctx, u, p - u);
	free(u);
	return v;
}
// encode returns a string as UTF-8. Halves of surrogate pairs become U+FFFD.
FN(f_encode)
{
	TEXT(s, 0);
	uint8_t *b = (uint8_t *)s.s;
	int bad = 0;
	for (size_t i = 0; i + 2 < s.n; i++)
		if (b[i] == 0xed && b[i + 1] >= 0xa0) bad = 1;
	if (!bad) return JS_NewUint8ArrayCopy(ctx, b, s.n);
	uint8_t *copy = malloc(s.n);
	if (!copy) return JS_ThrowOutOfMemory(ctx);
	memcpy(copy, b, s.n);
	for (size_t i = 0; i + 2 < s.n; i++)
		if (copy[i] == 0xed && copy[i + 1] >= 0xa0) memcpy(copy + i, "\xef\xbf\xbd", 3);
	JSValue v = JS_NewUint8ArrayCopy(ctx, copy, s.n);
	free(copy);
	return v;
}

// Programs. compile(text, name, flags) runs a script, and returns its value.
FN(f_script)
{
	TEXT(text, 0);
	TEXT(name, 1);
	return JS_Eval(ctx, text.s, text.n, name.s, JS_EVAL_TYPE_GLOBAL | int_of(argv[2]));
}
static JSModuleDef *compile_module(const char *text, size_t n, const char *name)
{
	JSValue f = JS_Eval(ctx, text, n, name, JS_EVAL_TYPE_MODULE | JS_EVAL_FLAG_COMPILE_ONLY);
	if (JS_IsException(f)) return NULL;
	JSModuleDef *m = JS_VALUE_GET_PTR(f);
	JSValue meta = JS_GetImportMeta(ctx, m), args[] = {meta, JS_NewString(ctx, name)};
	JSValue r = JS_Call(ctx, on_meta, JS_UNDEFINED, 2, args);
	JS_FreeValue(ctx, args[1]);
	JS_FreeValue(ctx, meta);
	JS_FreeValue(ctx, f);
	if (JS_IsException(r)) return NULL;
	JS_FreeValue(ctx, r);
	return m;
}
// module(text, name) runs a module, and returns the promise of its end.
FN(f_module)
{
	TEXT(text, 0);
	TEXT(name, 1);
	JSModuleDef *m = compile_module(text.s, text.n, name.s);
	if (!m) return JS_EXCEPTION;
	return JS_EvalFunction(ctx, JS_DupValue(ctx, JS_MKPTR(JS_TAG_MODULE, m)));
}
static char *normalize(JSContext *c, const char *base, const char *name, void *opaque)
{
	JSValue args[] = {JS_NewString(ctx, base), JS_NewString(ctx, name)};
	JSValue r = JS_Call(ctx, on_resolve, JS_UNDEFINED, 2, args);
	JS_FreeValue(ctx, args[0]);
	JS_FreeValue(ctx, args[1]);
	if (JS_IsException(r)) return NULL;
	const char *s = JS_ToCString(ctx, r);
	char *copy = s ? js_strdup(ctx, s) : NULL;
	JS_FreeCString(ctx, s);
	JS_FreeValue(ctx, r);
	return copy;
}
// A module that isn't source text exports the properties of an object, which is kept as its private value until it is run.
static int fill_module(JSContext *c, JSModuleDef *m)
{
	JSValue o = JS_GetModulePrivateValue(ctx, m);
	JSPropertyEnum *names;
	uint32_t n;
	if (JS_GetOwnPropertyNames(ctx, &names, &n, o, JS_GPN_STRING_MASK | JS_GPN_ENUM_ONLY)) return -1;
	for (uint32_t i = 0; i < n; i++) {
		const char *s = JS_AtomToCString(ctx, names[i].atom);
		JS_SetModuleExport(ctx, m, s, JS_GetProperty(ctx, o, names[i].atom));
		JS_FreeCString(ctx, s);
	}
	JS_FreePropertyEnum(ctx, names, n);
	JS_FreeValue(ctx, o);
	return 0;
}
static JSModuleDef *load(JSContext *c, const char *name, void *opaque, JSValueConst attributes)
{
	JSValue args[] = {JS_NewString(ctx, name)};
	JSValue r = JS_Call(ctx, on_load, JS_UNDEFINED, 1, args);
	JSModuleDef *m = NULL;
	JS_FreeValue(ctx, args[0]);
	if (JS_IsException(r)) return NULL;
	if (JS_IsString(r)) {
		size_t n;
		const char *s = JS_ToCStringLen(ctx, &n, r);
		if (s) m = compile_module(s, n, name);
		JS_FreeCString(ctx, s);
		JS_FreeValue(ctx, r);
		return m;
	}
	JSPropertyEnum *names;
	uint32_t n;
	if (JS_GetOwnPropertyNames(ctx, &names, &n, r, JS_GPN_STRING_MASK | JS_GPN_ENUM_ONLY)) return NULL;
	if ((m = JS_NewCModule(ctx, name, fill_module))) {
		for (uint32_t i = 0; i < n; i++) {
			const char *s = JS_AtomToCString(ctx, names[i].atom);
			JS_AddModuleExport(ctx, m, s);
			JS_FreeCString(ctx, s);
		}
		JS_SetModulePrivateValue(ctx, m, r);
	}
	JS_FreePropertyEnum(ctx, names, n);
	return m;
}

// jobs runs what promises have queued, until nothing is left. An error of a job is thrown.
FN(f_jobs)
{
	JSContext *of;
	for (int r;;) {
		if ((r = JS_ExecutePendingJob(rt, &of)) == 0) return JS_UNDEFINED;
		if (r < 0) return JS_EXCEPTION;
	}
}
FN(f_promise)
{
	int s = JS_PromiseState(ctx, argv[0]);
	JSValue a = JS_NewArray(ctx);
	JS_SetPropertyUint32(ctx, a, 0, JS_NewInt32(ctx, s));
	if (s == JS_PROMISE_FULFILLED || s == JS_PROMISE_REJECTED) JS_SetPropertyUint32(ctx, a, 1, JS_PromiseResult(ctx, argv[0]));
	return a;
}
FN(f_proxy)
{
	if (!JS_IsProxy(argv[0])) return JS_UNDEFINED;
	JSValue a = JS_NewArray(ctx);
	JS_SetPropertyUint32(ctx, a, 0, JS_GetProxyTarget(ctx, argv[0]));
	JS_SetPropertyUint32(ctx, a, 1, JS_GetProxyHandler(ctx, argv[0]));
	return a;
}
FN(f_entries) { return agentrun_entries(ctx, argv[0]); }
FN(f_gc)
{
	JS_RunGC(rt);
	return JS_UNDEFINED;
}
FN(f_source)
{
	TEXT(name, 0);
	uint32_t got = 0, e = agentrun_call(CALL_SOURCE, name.s, name.n, &got);
	if (e) return wasi(e);
	char *r = malloc(got + 1);
	if (!r) return JS_NewInt32(ctx, -12);
	agentrun_reply(r, got);
	JSValue v = JS_NewStringLen(ctx, r, got);
	free(r);
	return v;
}
static void keep(JSValue *slot, JSValueConst v)
{
	JS_FreeValue(ctx, *slot);
	*slot = JS_DupValue(ctx, v);
}
// hooks(main, rejection, resolve, load, meta)
FN(f_hooks)
{
	JSValue *slots[] = {&entry, &on_rejection, &on_resolve, &on_load, &on_meta};
	for (int i = 0; i < (int)COUNT(slots); i++) keep(slots[i], argv[i]);
	return JS_UNDEFINED;
}
static void rejection(JSContext *c, JSValueConst promise, JSValueConst reason, bool handled, void *opaque)
{
	JSValueConst args[] = {promise, reason, JS_NewBool(ctx, handled)};
	JS_FreeValue(ctx, JS_Call(ctx, on_rejection, JS_UNDEFINED, 3, args));
}

static const struct {
	const char *name;
	JSCFunction *f;
	int args;
} functions[] = {
	{"open", f_open, 3}, {"close", f_close, 1}, {"read", f_read, 5}, {"write", f_write, 5}, {"readAll", f_read_all, 1}, {"stat", f_stat, 2},
	{"fstat", f_fstat, 1}, {"readdir", f_readdir, 1}, {"mkdir", f_mkdir, 2}, {"unlink", f_unlink, 2}, {"access", f_access, 2}, {"chmod", f_chmod, 2},
	{"chown", f_chown, 4}, {"utimes", f_utimes, 4}, {"chdir", f_chdir, 1}, {"rename", f_rename, 2}, {"link", f_link, 2}, {"symlink", f_symlink, 2},
	{"readlink", f_readlink, 1}, {"realpath", f_realpath, 1}, {"cwd", f_cwd, 0}, {"hostname", f_hostname, 0}, {"fchmod", f_fchmod, 2},
	{"futimes", f_futimes, 3}, {"ftruncate", f_ftruncate, 2}, {"fsync", f_fsync, 1}, {"umask", f_umask, 1}, {"environ", f_environ, 0}, {"args", f_args, 0},
	{"ids", f_ids, 0}, {"times", f_times, 0}, {"memory", f_memory, 0}, {"isatty", f_isatty, 1}, {"winsize", f_winsize, 1}, {"raw", f_raw, 2},
	{"spawn", f_spawn, 6}, {"wait", f_wait, 2}, {"kill", f_kill, 2}, {"pipe", f_pipe, 0}, {"sigaction", f_sigaction, 2}, {"sigtake", f_sigtake, 0},
	{"poll", f_poll, 2}, {"now", f_now, 0}, {"hr", f_hr, 0}, {"random", f_random, 3}, {"exit", f_exit, 1}, {"call", f_call, 2}, {"decode", f_decode, 4},
	{"encode", f_encode, 1}, {"script", f_script, 3}, {"module", f_module, 2}, {"jobs", f_jobs, 0}, {"promise", f_promise, 1}, {"proxy", f_proxy, 1},
	{"entries", f_entries, 1}, {"gc", f_gc, 0}, {"source", f_source, 1}, {"hooks", f_hooks, 5},
};

// report writes an error that nobody catches to descriptor 2.
static void report(void)
{
	JSValue e = JS_GetException(ctx), stack = JS_GetPropertyStr(ctx, e, "stack");
	const char *s = JS_ToCString(ctx, JS_IsString(stack) ? stack : e);
	if (s) write(2, s, strlen(s)), write(2, "\n", 1);
	JS_FreeCString(ctx, s);
	JS_FreeValue(ctx, stack);
	JS_FreeValue(ctx, e);
}

int EXPORT(agentrun_init)(void)
{
	rt = JS_NewRuntime();
	if (!rt || !(ctx = JS_NewContext(rt))) return 1;
	JS_SetMaxStackSize(rt, AGENTRUN_JS_STACK);
	host = JS_NewObject(ctx);
	entry = on_rejection = on_resolve = on_load = on_meta = JS_UNDEFINED;
	for (unsigned i = 0; i < COUNT(functions); i++)
		JS_SetPropertyStr(ctx, host, functions[i].name, JS_NewCFunction(ctx, functions[i].f, functions[i].name, functions[i].args));
	JS_SetModuleLoaderFunc2(rt, normalize, load, NULL, NULL);
	JS_SetHostPromiseRejectionTracker(rt, rejection, NULL);
	JS_SetInterruptHandler(rt, interrupt, NULL);
	JSValue name = JS_NewString(ctx, "bootstrap"), text = f_source(ctx, JS_UNDEFINED, 1, &name);
	size_t n;
	const char *s = JS_ToCStringLen(ctx, &n, text);
	JSValue f = JS_Eval(ctx, s, n, "node:internal/bootstrap", JS_EVAL_TYPE_GLOBAL), r = JS_EXCEPTION;
	if (!JS_IsException(f)) r = JS_Call(ctx, f, JS_UNDEFINED, 1, &host);
	JS_FreeCString(ctx, s);
	JS_FreeValue(ctx, text);
	JS_FreeValue(ctx, name);
	JS_FreeValue(ctx, f);
	if (JS_IsException(r)) return report(), 1;
	JS_FreeValue(ctx, r);
	JS_RunGC(rt);
	return 0;
}

int EXPORT(agentrun_run)(void)
{
	JS_UpdateStackTop(rt);
	seed();
	agentrun_sigword(&word);
	JSValue r = JS_Call(ctx, entry, JS_UNDEFINED, 0, NULL);
	if (JS_IsException(r)) return report(), 70;
	return int_of(r);
}
