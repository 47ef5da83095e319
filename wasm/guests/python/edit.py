"""edit.py SOURCE: the changes that CPython's source needs. Each names what it replaces; one that doesn't fit stops the build."""
import pathlib
import sys

source = pathlib.Path(sys.argv[1])


def edit(name, old, new, count=1):
    path = source / name
    text = path.read_text()
    if new in text:
        return
    if text.count(old) != count:
        sys.exit(f"edit.py: {name}: {old!r} is there {text.count(old)} times, not {count}")
    path.write_text(text.replace(old, new))


# Signals are taken where the interpreter looks anyway: the host sets the second byte of eval_breaker, which is nobody else's, and interrupted
# calls check it.
edit("Python/ceval.c", """COMPUTE_EVAL_BREAKER(PyInterpreterState *interp,
                     struct _ceval_runtime_state *ceval,
                     struct _ceval_state *ceval2)
{
    _Py_atomic_store_relaxed(&ceval2->eval_breaker,
        _Py_atomic_load""", """COMPUTE_EVAL_BREAKER(PyInterpreterState *interp,
                     struct _ceval_runtime_state *ceval,
                     struct _ceval_state *ceval2)
{
    _Py_atomic_store_relaxed(&ceval2->eval_breaker,
        (_Py_atomic_load_relaxed(&ceval2->eval_breaker) & ~0xff)
        | _Py_atomic_load""")
edit("Python/ceval.c", """    struct _ceval_runtime_state *ceval = &runtime->ceval;

    /* Pending signals */
""", """    struct _ceval_runtime_state *ceval = &runtime->ceval;

    /* First reset, then look: a signal that comes in between sets it again. */
    _Py_atomic_store_relaxed(&tstate->interp->ceval.eval_breaker, 0);
    COMPUTE_EVAL_BREAKER(tstate->interp, ceval, &tstate->interp->ceval);
    agentrun_poll_signals();

    /* Pending signals */
""")
edit("Python/ceval.c", "#include <stdbool.h>\n", "#include <stdbool.h>\n#include <signal.h>\n")
edit("Modules/signalmodule.c", """    _Py_CHECK_EMSCRIPTEN_SIGNALS();
    if (!_Py_atomic_load(&is_tripped)) {
        return 0;
    }

    /*
     * The is_tripped""", """    int breaker = _Py_atomic_load_relaxed(&tstate->interp->ceval.eval_breaker);
    if (breaker & ~0xff) {
        _Py_atomic_store_relaxed(&tstate->interp->ceval.eval_breaker, breaker & 0xff);
        agentrun_poll_signals();
    }
    if (!_Py_atomic_load(&is_tripped)) {
        return 0;
    }

    /*
     * The is_tripped""")

edit("Modules/posixmodule.h", """#if defined(PYPTHREAD_SIGMASK) || defined(HAVE_SIGWAIT)""", """#if 1 || defined(HAVE_SIGWAIT)""")
edit("Modules/signalmodule.c", "#if defined(HAVE_PTHREAD_SIGMASK) && !defined(HAVE_BROKEN_PTHREAD_SIGMASK)", "#if 1")

# What the entry points of _agentrun.c call.
edit("Python/pylifecycle.c", "static PyStatus init_sys_streams(PyThreadState *tstate);\n", """static PyStatus init_sys_streams(PyThreadState *tstate);
PyStatus _PyAgentrun_InitStreams(PyThreadState *tstate) { return init_sys_streams(tstate); }
""")
edit("Modules/main.c", """pymain_run_python(int *exitcode)
{
""", """pymain_run_python(int *exitcode)
{
    _PyAgentrun_Watch();
""")
edit("Modules/main.c", "static void\npymain_run_python", "extern void _PyAgentrun_Watch(void);\nstatic void\npymain_run_python")
edit("Modules/main.c", """/* --- pymain_main() ---------------------------------------------- */
""", """void _PyAgentrun_RunMain(int *exitcode) { pymain_run_python(exitcode); }

/* --- pymain_main() ---------------------------------------------- */
""")

# A sandbox has processes and homes, whatever other WASI hosts have.
edit("Lib/subprocess.py", 'sys.platform not in {"emscripten", "wasi"}', 'sys.platform != "emscripten"')
edit("Lib/site.py", 'sys.platform in {"emscripten", "vxworks", "wasi"}', 'sys.platform in {"emscripten", "vxworks"}')
edit("Lib/sysconfig.py", 'sys.platform in {"emscripten", "vxworks", "wasi"}', 'sys.platform in {"emscripten", "vxworks"}')

# Error numbers are Linux's wherever Python code sees them; within C they stay those of WASI's libc.
edit("Python/errors.c", """        if (filenameObject2 != NULL)
            args = Py_BuildValue("(iOOiO)", i,""", """        if (filenameObject2 != NULL)
            args = Py_BuildValue("(iOOiO)", agentrun_errno(i),""")
edit("Python/errors.c", 'args = Py_BuildValue("(iOO)", i,', 'args = Py_BuildValue("(iOO)", agentrun_errno(i),')
edit("Python/errors.c", """        assert(filenameObject2 == NULL);
        args = Py_BuildValue("(iO)", i,""", """        assert(filenameObject2 == NULL);
        args = Py_BuildValue("(iO)", agentrun_errno(i),""")
edit("Objects/exceptions.c", "_code = PyLong_FromLong(CODE);", "_code = PyLong_FromLong(agentrun_errno(CODE));")
edit("Modules/errnomodule.c", "PyObject *code = PyLong_FromLong(code_int);", "PyObject *code = PyLong_FromLong(agentrun_errno(code_int));")
edit("Modules/_io/bufferedio.c", "eintr_int = PyLong_FromLong(EINTR);", "eintr_int = PyLong_FromLong(agentrun_errno(EINTR));")
edit("Modules/_io/bufferedio.c", """"isn",
                                errno, msg""", """"isn",
                                agentrun_errno(errno), msg""")
edit("Modules/posixmodule.c", "char *message = strerror(code);", "char *message = strerror(agentrun_errno_back(code));")
edit("Modules/main.c", "program_name, filename, errno, strerror(errno));", "program_name, filename, agentrun_errno(errno), strerror(errno));")

# os.spawn* without fork.
edit("Lib/os.py", 'if _exists("fork") and not _exists("spawnv") and _exists("execv"):', 'if not _exists("spawnv") and _exists("execv"):')
lib = (source / "Lib/os.py").read_text()
start = lib.index("        # Internal helper; func is the exec*() function to use\n")
end = lib.index("    def spawnv(mode, file, args):")
if "fork()" in lib[start:end]:
    lib = lib[:start] + """        # Internal helper; func is the exec*() function that names the kind
        if not isinstance(args, (tuple, list)):
            raise TypeError('argv must be a tuple or a list')
        if not args or not args[0]:
            raise ValueError('argv first element cannot be empty')
        from _posixsubprocess import fork_exec
        file = fsencode(file)
        files = [file]
        if func in (execvp, execvpe) and b'/' not in file:
            files = [path.join(fsencode(d), file) for d in get_exec_path(env)]
        if env is not None:
            env = [fsencode(k) + b'=' + fsencode(v) for k, v in env.items()]
        try:
            pid = fork_exec(args, files, False, (), None, env, -1, -1, -1, -1, -1, -1, -1, -1, True, False, -1,
                            None, None, None, -1, None, False)
        except OSError:
            if mode == P_NOWAIT:
                raise
            return 127
        if mode == P_NOWAIT:
            return pid
        return waitstatus_to_exitcode(waitpid(pid, 0)[1])

""" + lib[end:]
    (source / "Lib/os.py").write_text(lib)
