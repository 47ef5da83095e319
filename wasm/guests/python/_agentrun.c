// Module _agentrun, and the entry points that the host calls in an interpreter that is initialised once and then copied:
//
//	agentrun_init   initialises it; the instance rests afterwards, and a snapshot of it is what every run starts from
//	agentrun_preload loads and hides modules that programs often import, for a better snapshot
//	agentrun_run    one command line, as main would after its own initialisation; returns the exit status
//	agentrun_enter  hands the host's request to the callable set by _agentrun.set_entry; returns its result
//
// What a run is to do comes by agentrun_call(CALL_REQUEST).
#define PY_SSIZE_T_CLEAN
#include "Python.h"
#include "internal/pycore_initconfig.h"
#include "internal/pycore_interp.h"
#include "internal/pycore_pylifecycle.h"
#include "internal/pycore_pystate.h"

#include "agentrun.h"

#include <signal.h>
#include <unistd.h>

#define EXPORT(name) __attribute__((export_name(#name))) name
#define CALL_REQUEST 1

extern void __wasilibc_initialize_environ(void);
extern PyStatus _PyAgentrun_InitStreams(PyThreadState *);
extern void _PyAgentrun_RunMain(int *);
extern int _PyAgentrun_Flush(void);
extern void (*agentrun_forked)(void);

static PyObject *entry, *boot;

// ask calls the host and returns its answer as bytes.
static PyObject *ask(uint32_t op, const void *in, uint32_t len)
{
	uint32_t n = 0, e;
	Py_BEGIN_ALLOW_THREADS
	e = agentrun_call(op, in, len, &n);
	Py_END_ALLOW_THREADS
	if (e) return errno = (int)e, PyErr_SetFromErrno(PyExc_OSError);
	PyObject *b = PyBytes_FromStringAndSize(NULL, n);
	if (b && n) agentrun_reply(PyBytes_AS_STRING(b), n);
	return b;
}

static PyObject *py_call(PyObject *self, PyObject *args)
{
	unsigned op;
	Py_buffer in = {0};
	if (!PyArg_ParseTuple(args, "I|y*:call", &op, &in)) return NULL;
	PyObject *r = ask(op, in.buf, (uint32_t)in.len);
	if (in.obj) PyBuffer_Release(&in);
	return r;
}

static PyObject *py_set_entry(PyObject *self, PyObject *f)
{
	Py_XSETREF(entry, Py_NewRef(f));
	Py_RETURN_NONE;
}

// environ returns the environment as the process has it now: that of the snapshot belongs to nobody.
static PyObject *py_environ(PyObject *self, PyObject *unused)
{
	extern char **environ;
	PyObject *d = PyDict_New();
	for (char **e = environ; d && e && *e; e++) {
		char *eq = strchr(*e, '=');
		if (!eq) continue;
		PyObject *k = PyBytes_FromStringAndSize(*e, eq - *e), *v = PyBytes_FromString(eq + 1);
		if (!k || !v || (PyDict_SetDefault(d, k, v), PyErr_Occurred())) Py_CLEAR(d);
		Py_XDECREF(k);
		Py_XDECREF(v);
	}
	return d;
}

static PyObject *py_streams(PyObject *self, PyObject *unused)
{
	PyStatus st = _PyAgentrun_InitStreams(_PyThreadState_GET());
	if (PyStatus_Exception(st)) return PyErr_SetString(PyExc_RuntimeError, st.err_msg ? st.err_msg : "streams"), NULL;
	Py_RETURN_NONE;
}

// set_flag(index, value) changes one of sys.flags, which Python code can't.
static PyObject *py_set_flag(PyObject *self, PyObject *args)
{
	int i;
	PyObject *v, *flags = PySys_GetObject("flags");
	if (!PyArg_ParseTuple(args, "iO:set_flag", &i, &v)) return NULL;
	if (!flags || i < 0 || i >= PyTuple_GET_SIZE(flags)) return PyErr_SetString(PyExc_IndexError, "no such flag"), NULL;
	PyObject *old = PyStructSequence_GET_ITEM(flags, i);
	PyStructSequence_SET_ITEM(flags, i, Py_NewRef(v));
	Py_DECREF(old);
	Py_RETURN_NONE;
}

static int set_text(wchar_t **field, PyObject *d, const char *name)
{
	PyObject *o = PyDict_GetItemString(d, name);
	PyMem_RawFree(*field);
	*field = NULL;
	if (!o || o == Py_None) return 0;
	wchar_t *w = PyUnicode_AsWideCharString(o, NULL);
	if (!w) return -1;
	*field = _PyMem_RawWcsdup(w);
	PyMem_Free(w);
	return *field ? 0 : -1;
}
static void set_int(int *field, PyObject *d, const char *name)
{
	PyObject *o = PyDict_GetItemString(d, name);
	if (o) *field = (int)PyLong_AsLong(o);
}

// configure(dict) sets those fields of the interpreter's configuration that main reads after initialisation.
static PyObject *py_configure(PyObject *self, PyObject *d)
{
	if (!PyDict_Check(d)) return PyErr_SetString(PyExc_TypeError, "a dict is needed"), NULL;
	PyConfig *c = (PyConfig *)_PyInterpreterState_GetConfig(PyInterpreterState_Get());
	if (set_text(&c->run_command, d, "run_command") || set_text(&c->run_module, d, "run_module") || set_text(&c->run_filename, d, "run_filename") ||
	    set_text(&c->executable, d, "executable") || set_text(&c->program_name, d, "program_name"))
		return PyErr_Occurred() ? NULL : PyErr_NoMemory();
	set_int(&c->buffered_stdio, d, "buffered_stdio");
	set_int(&c->interactive, d, "interactive");
	set_int(&c->inspect, d, "inspect");
	set_int(&c->quiet, d, "quiet");
	set_int(&c->safe_path, d, "safe_path");
	set_int(&c->write_bytecode, d, "write_bytecode");
	Py_InteractiveFlag = c->interactive, Py_InspectFlag = c->inspect, Py_UnbufferedStdioFlag = !c->buffered_stdio;
	Py_DontWriteBytecodeFlag = !c->write_bytecode;
	PyObject *argv = PyDict_GetItemString(d, "argv");
	if (argv) {
		_PyWideStringList_Clear(&c->argv);
		for (Py_ssize_t i = 0; i < PyList_GET_SIZE(argv); i++) {
			wchar_t *w = PyUnicode_AsWideCharString(PyList_GET_ITEM(argv, i), NULL);
			if (!w) return NULL;
			PyStatus st = PyWideStringList_Append(&c->argv, w);
			PyMem_Free(w);
			if (PyStatus_Exception(st)) return PyErr_NoMemory();
		}
	}
	Py_RETURN_NONE;
}

// run() is main after its initialisation: returns the exit status.
static PyObject *py_run(PyObject *self, PyObject *unused)
{
	int status = 0;
	_PyAgentrun_RunMain(&status);
	return PyLong_FromLong(status);
}

static PyObject *py_clear_module(PyObject *self, PyObject *m)
{
	if (PyModule_Check(m)) _PyModule_Clear(m);
	Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
	{"call", py_call, METH_VARARGS, "call(op, data=b'') -> bytes: ask the host."},
	{"set_entry", py_set_entry, METH_O, "Set what agentrun_enter calls."},
	{"environ", py_environ, METH_NOARGS, "The environment as bytes."},
	{"streams", py_streams, METH_NOARGS, "Make sys.stdin, sys.stdout and sys.stderr anew."},
	{"set_flag", py_set_flag, METH_VARARGS, "Change one of sys.flags."},
	{"configure", py_configure, METH_O, "Set fields of the configuration."},
	{"run", py_run, METH_NOARGS, "Run what is configured, as main does."},
	{"clear_module", py_clear_module, METH_O, "Clear a module's names, as at the end."},
	{NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_agentrun", "The interpreter's host.", -1, methods};
PyMODINIT_FUNC PyInit__agentrun(void) { return PyModule_Create(&module); }

// signals tells the host how the interpreter handles signals: the process is another one than that of the snapshot.
static void signals(void)
{
	uint32_t old;
	if (!agentrun_sigaction(SIGINT, -1, &old) && old != AGENTRUN_SIG_IGN) agentrun_sigaction(SIGINT, AGENTRUN_SIG_HANDLE, &old);
	agentrun_sigaction(SIGPIPE, AGENTRUN_SIG_IGN, &old);
	agentrun_sigaction(SIGXFSZ, AGENTRUN_SIG_IGN, &old);
}

// What the host tells a copy of a running interpreter (agentrun.h, sigtake) is passed on between two instructions.
static int run_forked(void *unused)
{
	PyObject *b = boot ? Py_NewRef(boot) : PyImport_ImportModule("_agentrun_boot"), *r = b ? PyObject_CallMethod(b, "forked", NULL) : NULL;
	if (!r) PyErr_WriteUnraisable(b);
	Py_XDECREF(r);
	Py_XDECREF(b);
	return 0;
}
static void forked(void) { Py_AddPendingCall(run_forked, NULL); }

// _PyAgentrun_Watch tells the host where the interpreter looks for signals.
void _PyAgentrun_Watch(void)
{
	agentrun_forked = forked;
	agentrun_watch_signals((char *)&PyInterpreterState_Get()->ceval.eval_breaker + 1);
}

extern void __wasm_call_ctors(void);

int EXPORT(agentrun_init)(void)
{
	__wasm_call_ctors();
	PyConfig c;
	PyConfig_InitPythonConfig(&c);
	c.use_environment = 0;
	c.user_site_directory = 0;
	c.parse_argv = 0;
	c.write_bytecode = 0; // while initialising; every run says for itself
	PyConfig_SetString(&c, &c.program_name, L"/usr/bin/python3");
	PyStatus st = Py_InitializeFromConfig(&c);
	PyConfig_Clear(&c);
	if (PyStatus_Exception(st)) return 1;
	boot = PyImport_ImportModule("_agentrun_boot");
	if (!boot) return PyErr_Print(), 2;
	PyObject *r = PyObject_CallMethod(boot, "prepare", NULL);
	if (!r) return PyErr_Print(), 3;
	Py_DECREF(r);
	return 0;
}

// call_status calls something that returns a status; what escapes it is printed as main would.
static int call_status(PyObject *f)
{
	_PyAgentrun_Watch();
	PyObject *r = f ? PyObject_CallNoArgs(f) : NULL;
	if (!r) return PyErr_Print(), 1;
	long status = PyLong_AsLong(r);
	Py_DECREF(r);
	return (int)status;
}

int EXPORT(agentrun_preload)(void)
{
	PyObject *f = PyObject_GetAttrString(boot, "preload");
	int status = call_status(f);
	Py_XDECREF(f);
	return status;
}

int EXPORT(agentrun_run)(void)
{
	__wasilibc_initialize_environ();
	signals();
	PyObject *f = PyObject_GetAttrString(boot, "run");
	int status = call_status(f);
	Py_XDECREF(f);
	if (_Py_UnhandledKeyboardInterrupt) {
		// As main does it: whoever waits shall see that the signal ended the process.
		signal(SIGINT, SIG_DFL);
		kill(getpid(), SIGINT);
		status = 130;
	}
	return status;
}

int EXPORT(agentrun_enter)(void)
{
	if (!entry) {
		__wasilibc_initialize_environ();
		signals();
		entry = PyObject_GetAttrString(boot, "session");
	}
	return call_status(entry);
}
