// Module _posixsubprocess for a system that spawns instead of forking: what subprocess.py needs, with errors raised at once.
#define PY_SSIZE_T_CLEAN
#include "Python.h"

#include "posix/posix.h"

#include <fcntl.h>
#include <signal.h>

// lay_bytes joins a sequence of path-like objects into one buffer of terminated strings.
static PyObject *lay_bytes(PyObject *seq)
{
	PyObject *fast = PySequence_Fast(seq, "expected a sequence"), *out = NULL;
	if (!fast) return NULL;
	_PyBytesWriter w;
	_PyBytesWriter_Init(&w);
	char *p = _PyBytesWriter_Alloc(&w, 0);
	for (Py_ssize_t i = 0; p && i < PySequence_Fast_GET_SIZE(fast); i++) {
		PyObject *b;
		if (!PyUnicode_FSConverter(PySequence_Fast_GET_ITEM(fast, i), &b)) goto end;
		p = _PyBytesWriter_WriteBytes(&w, p, PyBytes_AS_STRING(b), PyBytes_GET_SIZE(b) + 1); // with its terminator
		Py_DECREF(b);
	}
	if (p) out = _PyBytesWriter_Finish(&w, p);
end:
	if (!out) _PyBytesWriter_Dealloc(&w);
	Py_DECREF(fast);
	return out;
}

#define MAX_FDS 256
struct fds {
	int32_t pair[2 * MAX_FDS];
	uint32_t n;
};
static void give(struct fds *f, int here, int there)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (f->pair[2 * i + 1] == there) return;
	if (here < 0 || f->n == MAX_FDS) return;
	f->pair[2 * f->n] = here, f->pair[2 * f->n + 1] = there;
	f->n++;
}

// descriptors says what the child gets: the three standard ones, then those to keep, or all that are inheritable.
static int descriptors(struct fds *f, const int std[3], int close_fds, PyObject *keep, int errpipe)
{
	for (int i = 0; i < 3; i++)
		if (std[i] >= 0 || fcntl(i, F_GETFD) >= 0) give(f, std[i] >= 0 ? std[i] : i, i);
	if (!close_fds) {
		for (int fd = 3; fd < MAX_FDS; fd++)
			if (fd != errpipe && fcntl(fd, F_GETFD) == 0) give(f, fd, fd);
	}
	for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keep); i++) {
		long fd = PyLong_AsLong(PyTuple_GET_ITEM(keep, i));
		if (fd == -1 && PyErr_Occurred()) return -1;
		if (fd > 2 && fd != errpipe) give(f, fd, fd);
	}
	return 0;
}

// try_each spawns the first of the candidates that is there. Returns errno.
static uint32_t try_each(struct agentrun_spawn *s, PyObject *candidates, int32_t *pid)
{
	uint32_t e = ENOENT, saved = 0;
	for (Py_ssize_t i = 0; i < PySequence_Size(candidates); i++) {
		PyObject *o = PySequence_GetItem(candidates, i), *b;
		if (!o || !PyUnicode_FSConverter(o, &b)) return Py_XDECREF(o), EINVAL;
		s->file = PyBytes_AS_STRING(b), s->file_len = PyBytes_GET_SIZE(b);
		Py_BEGIN_ALLOW_THREADS
		e = agentrun_spawn(s, pid);
		Py_END_ALLOW_THREADS
		Py_DECREF(b);
		Py_DECREF(o);
		if (e == 0) return 0;
		if (e != ENOENT && e != ENOTDIR && !saved) saved = e;
	}
	return saved ? saved : e;
}

static PyObject *fork_exec(PyObject *self, PyObject *t)
{
	PyObject *args, *candidates, *keep, *cwd, *env, *gid, *groups, *uid, *preexec;
	int close_fds, std[3], p2cwrite, c2pread, errread, errpipe_read, errpipe_write, restore, newsession, umask, vfork;
	pid_t pgid = -1;
	if (!PyArg_ParseTuple(t, "OOpO!OOiiiiiiiiiiiOOOiOp:fork_exec", &args, &candidates, &close_fds, &PyTuple_Type, &keep, &cwd, &env, &std[0],
			      &p2cwrite, &c2pread, &std[1], &errread, &std[2], &errpipe_read, &errpipe_write, &restore, &newsession, &pgid, &gid,
			      &groups, &uid, &umask, &preexec, &vfork))
		return NULL;
	if (preexec != Py_None)
		return PyErr_SetString(PyExc_RuntimeError, "preexec_fn isn't supported: processes here are spawned, not forked"), NULL;
	if (gid != Py_None || groups != Py_None || uid != Py_None)
		return PyErr_SetString(PyExc_PermissionError, "user, group and extra_groups can't be changed here"), NULL;

	struct fds fds = {.n = 0};
	if (descriptors(&fds, std, close_fds, keep, errpipe_write)) return NULL;
	struct agentrun_spawn s = {.fds = fds.pair, .fds_count = fds.n, .umask = umask, .pgid = pgid < 0 ? 0 : pgid};
	s.flags = (newsession ? AGENTRUN_SPAWN_SETSID : 0) | (pgid >= 0 ? AGENTRUN_SPAWN_PGROUP : 0);
	PyObject *a = lay_bytes(args), *e = NULL, *d = NULL, *result = NULL;
	if (!a || (env != Py_None && !(e = lay_bytes(env))) || (cwd != Py_None && !PyUnicode_FSConverter(cwd, &d))) goto end;
	s.args = PyBytes_AS_STRING(a), s.args_len = PyBytes_GET_SIZE(a);
	if (e) s.env = PyBytes_AS_STRING(e), s.env_len = PyBytes_GET_SIZE(e);
	if (d) s.dir = PyBytes_AS_STRING(d), s.dir_len = PyBytes_GET_SIZE(d);
	int32_t pid;
	uint32_t err = try_each(&s, candidates, &pid);
	if (err == 0) {
		result = PyLong_FromLong(pid);
		goto end;
	}
	// A missing directory and a missing program look alike; subprocess names the one that is at fault.
	struct agentrun_stat st;
	PyObject *name = d && agentrun_stat(AGENTRUN_AT_CWD, s.dir, s.dir_len, 0, &st) ? Py_NewRef(cwd) : PySequence_GetItem(args, 0);
	errno = (int)err;
	PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, name);
	Py_XDECREF(name);
end:
	Py_XDECREF(a);
	Py_XDECREF(e);
	Py_XDECREF(d);
	return result;
}

static PyMethodDef methods[] = {{"fork_exec", fork_exec, METH_VARARGS, "Start a program as a child process."}, {NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_posixsubprocess", "Starting programs.", 0, methods};
PyMODINIT_FUNC PyInit__posixsubprocess(void) { return PyModuleDef_Init(&module); }
