"""What happens in an interpreter that was initialised once and then copied, before and after a program runs in it.

prepare() runs before the snapshot: it remembers what belongs to the interpreter itself. run() runs in a copy: it makes the process's own
arguments, environment, directory and streams those of the interpreter, runs the program as CPython's main does, and cleans up as far as a program
can tell. session() begins a session instead, in which the host sends one request after another.
"""

import _agentrun
import builtins
import os
import sys

REQUEST, RESULT = 1, 2

_base = None  # names of modules that belong to the interpreter


def prepare():
    sys.modules.pop("_agentrun_boot", None)
    sys.modules.pop("_agentrun", None)
    _settle()
    return 0


def _settle():
    """Everything that is there by now belongs to the interpreter, not to a program."""
    global _base
    main = sys.modules["__main__"].__dict__
    for name in list(main):
        if not name.startswith("__"):
            del main[name]
    import gc
    sys.modules.pop("gc", None)
    _base = frozenset(sys.modules)
    gc.collect()
    gc.freeze()


# Modules that programs often import can be loaded before the snapshot, and hidden: importing one then only makes it visible, with those
# that it imports itself, so that sys.modules is as it would be. Loading them has no effect beside themselves, but for those of _fresh.
_COMMON = """json re collections functools itertools math datetime pathlib argparse subprocess shutil tempfile random string textwrap time typing
dataclasses enum csv io hashlib base64 urllib.parse urllib.request contextlib copy glob fnmatch operator statistics decimal struct traceback sqlite3
zlib logging uuid unittest asyncio threading concurrent.futures inspect heapq bisect pickle signal errno stat platform secrets html
xml.etree.ElementTree configparser zipfile tarfile gzip ast types abc queue difflib pprint calendar fractions numbers signal""".split()
_hidden = {}
_needs = {}  # module: those that it imports


class _Hidden:
    """The finder and loader of modules that are loaded but hidden."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        module = _hidden.get(name)
        if module is None:
            return None
        # A module of the same name in a folder before the library's is meant by the program.
        for folder in sys.path if path is None else ():
            if folder == _LIBRARY:
                break
            if folder.endswith("/python311.zip"):
                continue
            at = (folder or ".") + "/" + name
            if _exists(at + ".py") or _exists(at):
                return None
        return _Spec(name, _Hidden)

    @staticmethod
    def create_module(spec):
        module = _hidden[spec.name]
        spec.loader_state = module.__spec__
        return module

    @staticmethod
    def exec_module(module):
        module.__spec__ = module.__spec__.loader_state
        todo = [module.__name__]
        while todo:
            name = todo.pop()
            found = _hidden.pop(name, None)
            if found is None:
                continue
            if name != module.__name__:
                sys.modules.setdefault(name, found)
            fresh = _fresh.get(name)
            if fresh is not None:
                fresh(found)
            todo.extend(_needs.get(name, ()))

    @staticmethod
    def invalidate_caches():
        pass


def _log_start(module):
    import time
    module._startTime = time.time()


_fresh = {"random": lambda module: module.seed(), "logging": _log_start}
_LIBRARY = os.path.dirname(os.__file__)
_Spec = type(os.__spec__)


def _exists(path, stat=os.stat):
    try:
        stat(path)
    except (OSError, ValueError):
        return False
    return True


def preload():
    before = set(sys.modules)
    original = builtins.__import__

    def record(name, globals=None, locals=None, fromlist=(), level=0):
        result = original(name, globals, locals, fromlist, level)
        importer = (globals or {}).get("__name__")
        if importer is not None:
            needs = _needs.setdefault(importer, set())
            if level:
                package = (globals.get("__package__") or importer).split(".")
                name = ".".join(package[:len(package) - level + 1] + ([name] if name else []))
            part = ""
            for piece in name.split("."):
                part += piece
                needs.add(part)
                part += "."
            for item in fromlist or ():
                needs.add(name + "." + item)
        return result

    builtins.__import__ = record
    try:
        for name in _COMMON:
            original(name)
    finally:
        builtins.__import__ = original
    for name in list(sys.modules):
        if name not in before:
            _hidden[name] = sys.modules.pop(name)
    for name, needs in list(_needs.items()):
        _needs[name] = tuple(n for n in needs if n in _hidden)
    # What the first piece of code of a session would set up.
    import _ast
    compile(_ast.Interactive([compile("x", "", "exec", 0x400).body[0]]), "", "single")
    # A module's attribute for a submodule stays: that is how the submodule was seen by those that imported it.
    sys.meta_path.insert(0, _Hidden)
    _settle()
    return 0


def _environment():
    env = _agentrun.environ()
    os.environ._data.clear()
    os.environ._data.update(env)
    posix = sys.modules["posix"]
    posix.environ.clear()
    posix.environ.update(env)


def _decode(b):
    return b.decode("utf-8", "surrogateescape")


def _request():
    """The host's request: fields that are terminated by a NUL byte, each NAME=VALUE; arg and orig may come many times."""
    out = {"arg": [], "orig": []}
    for field in _agentrun.call(REQUEST).split(b"\0")[:-1]:
        name, _, value = _decode(field).partition("=")
        if name in ("arg", "orig"):
            out[name].append(value)
        else:
            out[name] = value
    return out


# Positions in sys.flags.
_INSPECT, _INTERACTIVE, _DONT_WRITE, _NO_USER_SITE, _QUIET, _SAFE_PATH = 1, 2, 4, 5, 10, 16


def _begin(q):
    _environment()
    flag = lambda name: int(q.get(name, "0"))
    sys.argv = list(q["arg"])
    sys.orig_argv = list(q["orig"])
    sys.executable = sys._base_executable = q.get("executable", "/usr/bin/python3")
    file = q.get("file")
    if file is not None and not file.startswith("/"):
        file = os.getcwd() + "/" + file
    sys.dont_write_bytecode = bool(flag("B"))
    for position, name in ((_INSPECT, "i"), (_INTERACTIVE, "i"), (_DONT_WRITE, "B"), (_NO_USER_SITE, "s"), (_QUIET, "q")):
        _agentrun.set_flag(position, flag(name))
    _agentrun.set_flag(_SAFE_PATH, bool(flag("P")))
    _agentrun.configure({
        "run_command": q.get("command"), "run_module": q.get("module"), "run_filename": file, "executable": sys.executable, "program_name": sys.orig_argv[0],
        "argv": sys.argv, "buffered_stdio": 1 - flag("u"), "interactive": flag("i"), "inspect": flag("i"), "quiet": flag("q"),
        "safe_path": flag("P"), "write_bytecode": 1 - flag("B"),
    })
    _agentrun.streams()
    _site(flag("s"), q.get("path", ""))


def _site(without_user, path):
    """The parts of module site that depend on the user: PYTHONPATH, and the user's own folder of packages."""
    site = sys.modules.get("site")
    if path:
        sys.path[0:0] = path.split(":")
    if site is None:
        return
    site.USER_BASE = site.USER_SITE = None
    site.ENABLE_USER_SITE = not without_user
    if without_user:
        return
    base = os.environ.get("PYTHONUSERBASE") or os.path.expanduser("~/.local")
    site.USER_BASE, site.USER_SITE = base, base + "/lib/python%d.%d/site-packages" % sys.version_info[:2]
    if _exists(site.USER_SITE):
        known = set(sys.path)
        at = sys.path.index(_LIBRARY) + 1
        rest = sys.path[at:]
        del sys.path[at:]
        site.addsitedir(site.USER_SITE, known)
        # The user's folder comes before the system's, as site.main has it.
        dynload = [p for p in rest if p.endswith("lib-dynload")]
        sys.path[at:at] = dynload
        sys.path.extend(p for p in rest if p not in sys.path)


def _end():
    """What Py_FinalizeEx does that a program can notice: exit handlers, then objects of its modules, then the streams."""
    threading = sys.modules.get("threading")
    if threading is not None:
        try:
            threading._shutdown()
        except BaseException:
            sys.excepthook(*sys.exc_info())
    import atexit
    atexit._run_exitfuncs()
    _flush()
    main = sys.modules.get("__main__")
    for name, module in reversed(list(sys.modules.items())):
        if name not in _base and module is not main and hasattr(module, "__dict__") and not name.startswith("_agentrun"):
            if not str(getattr(module, "__file__", None) or _LIBRARY).startswith(_LIBRARY):
                _doomed.append(module)
    if main is not None:
        _agentrun.clear_module(main)
    for module in _doomed:
        _agentrun.clear_module(module)
    import gc
    gc.collect()
    return _flush()


_doomed = []


def _flush():
    """Flushes the streams; false if what was written is lost, which makes the status 120."""
    ok = True
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not getattr(stream, "closed", False):
                stream.flush()
        except BaseException as e:
            ok = False
            if stream is sys.stdout:
                try:
                    sys.unraisablehook(_Unraisable(e, stream))
                except BaseException:
                    pass
    return ok


class _Unraisable:
    def __init__(self, e, stream):
        self.exc_type, self.exc_value, self.exc_traceback = type(e), e, e.__traceback__
        self.err_msg, self.object = "Exception ignored in", stream


def forked():
    """This interpreter is a copy of one that was running: what it draws at random from now on must be its own."""
    for modules in (sys.modules, _hidden):
        module = modules.get("random")
        if module is not None:
            module._inst.seed()
        module = modules.get("tempfile")
        if module is not None:
            module._name_sequence = None


def run():
    q = _request()
    _begin(q)
    status = _agentrun.run()
    # An interrupt that nobody caught, or the end of a pipe, must not stop the cleaning up half way.
    try:
        if not _end() and status == 0:
            status = 120
    except BaseException:
        sys.excepthook(*sys.exc_info())
    return status


def session():
    _begin(_request())
    _agentrun.set_entry(_step)
    return 0


def _step():
    """Executes one piece of code of a session: '+' before it says that this is a copy since the last one."""
    request = _decode(_agentrun.call(REQUEST))
    main = sys.modules["__main__"].__dict__
    try:
        if request[0] == "+":
            forked()
        try:
            value = compile(request[1:].strip(), "<session>", "eval")
        except SyntaxError:
            value = None
        if value is not None:
            sys.displayhook(eval(value, main))
            _flush()
            return 0
        tree = compile(request[1:], "<session>", "exec", 0x400)  # ast.PyCF_ONLY_AST
        last = tree.body.pop() if tree.body and type(tree.body[-1]).__name__ == "Expr" else None
        if tree.body:
            exec(compile(tree, "<session>", "exec"), main)
        if last is not None:
            import _ast
            exec(compile(_ast.Interactive([last]), "<session>", "single"), main)
        status = 0
    except SystemExit as e:
        status = e.code if isinstance(e.code, int) else 0 if e.code is None else 1
        if status == 1 and not isinstance(e.code, int):
            print(e.code, file=sys.stderr)
    except BaseException as e:
        status = 1
        sys.excepthook(type(e), e, e.__traceback__ and e.__traceback__.tb_next)
    _flush()
    return status & 0xFF
