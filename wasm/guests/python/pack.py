"""pack.py LIB OUT.zip: puts the standard library into an archive, with its compiled files, as /usr/lib/python3.11 is to look.

Compiled files say that their source isn't to be compared with them: nothing changes there.
"""
import os
import pathlib
import py_compile
import sys
import tempfile
import zipfile

library, out = map(pathlib.Path, sys.argv[1:3])
here = pathlib.Path(__file__).parent

LEFT_OUT = {"test", "tests", "idlelib", "tkinter", "turtledemo", "__pycache__", "site-packages", "_bundled", "idle_test"}
LEFT_OUT_FILES = {"turtle.py", "_aix_support.py", "_bootsubprocess.py", "_osx_support.py", "_compat_pickle.pyc"}


def tree(root):
    for folder, dirs, files in os.walk(root):
        dirs[:] = sorted(d for d in dirs if d not in LEFT_OUT)
        for name in sorted(files):
            if name not in LEFT_OUT_FILES and not name.endswith((".exe", ".pyc")):
                path = pathlib.Path(folder, name)
                name = str(path.relative_to(root))
                yield name, patched(name, path.read_bytes())


def zones():
    """Package tzdata, which module zoneinfo reads time zones from."""
    root = pathlib.Path("/usr/share/zoneinfo")
    yield "tzdata/__init__.py", b""
    yield "tzdata/zoneinfo/__init__.py", b""
    folders, names = set(), []
    for path in sorted(root.rglob("*")):
        rel = path.relative_to(root)
        if rel.parts[0] in {"posix", "right"} or not path.is_file() or path.read_bytes()[:4] != b"TZif":
            continue
        if rel.name in {"localtime", "posixrules"}:
            continue
        names.append(str(rel))
        for folder in list(rel.parents)[:-1]:
            folders.add(folder)
        yield f"tzdata/zoneinfo/{rel}", path.read_bytes()
    for folder in sorted(folders):
        yield f"tzdata/zoneinfo/{folder}/__init__.py", b""
    yield "tzdata/zones", "\n".join(names).encode() + b"\n"


def wheel(path):
    """A wheel's packages, for the folder of packages that come with the interpreter."""
    with zipfile.ZipFile(path) as z:
        for name in sorted(z.namelist()):
            if not name.endswith("/") and not name.endswith(".exe"):
                yield f"site-packages/{name}", patched(f"site-packages/{name}", z.read(name))


# Changes to the library: there is one thread, and no network but what the host connects to.
PATCHES = [
    # What is submitted to an executor is done at once, by the caller.
    ("concurrent/futures/thread.py", """            w = _WorkItem(f, fn, args, kwargs)

            self._work_queue.put(w)
            self._adjust_thread_count()
            return f
""", """            w = _WorkItem(f, fn, args, kwargs)

        if self._initializer is not None:
            initializer, self._initializer = self._initializer, None
            try:
                initializer(*self._initargs)
            except BaseException:
                _base.LOGGER.critical('Exception in initializer:', exc_info=True)
                self._broken = 'A thread initializer failed, the thread pool is not usable anymore'
                f.set_exception(BrokenThreadPool(self._broken))
                return f
        w.run()
        return f
"""),
    ("asyncio/base_events.py", """        future = self.create_future()
        thread = threading.Thread(target=self._do_shutdown, args=(future,))
""", """        self._default_executor.shutdown(wait=True)
        return
        future = self.create_future()
        thread = threading.Thread(target=self._do_shutdown, args=(future,))
"""),
    ("asyncio/unix_events.py", "self._watcher = ThreadedChildWatcher()", "self._watcher = SafeChildWatcher()"),
    ("asyncio/unix_events.py", "signal.set_wakeup_fd(self._csock.fileno())", "signal.set_wakeup_fd(self._csock._write)"),
    # Pipes are pipes; the end for writing can't be watched for its closing.
    ("asyncio/unix_events.py", "if is_socket or (is_fifo and not sys.platform.startswith(\"aix\")):", "if is_socket:"),
    ("threading.py", """        except Exception:
            with _active_limbo_lock:
                del _limbo[self]
            raise
        self._started.wait()
""", """        except Exception:
            with _active_limbo_lock:
                del _limbo[self]
            raise RuntimeError("can't start new thread: this interpreter has only one"
                               " (subprocess, asyncio and concurrent.futures work)") from None
        self._started.wait()
"""),
    # A request is answered before the next one is accepted.
    ("socketserver.py", """        if self.block_on_close:
            vars(self).setdefault('_threads', _Threads())
        t = threading.Thread(target = self.process_request_thread,
                             args = (request, client_address))
        t.daemon = self.daemon_threads
        self._threads.append(t)
        t.start()
""", """        self.process_request_thread(request, client_address)
"""),
    # A denial isn't a broken connection to be tried again.
    ("site-packages/pip/_vendor/urllib3/connection.py", """        except SocketError as e:
            raise NewConnectionError(
                self, "Failed to establish a new connection: %s" % e
            )

        return conn

    def _is_using_tunnel""", """        except PermissionError as e:
            from pip._internal.exceptions import InstallationError
            raise InstallationError(e.strerror) from None
        except SocketError as e:
            raise NewConnectionError(
                self, "Failed to establish a new connection: %s" % e
            )

        return conn

    def _is_using_tunnel"""),
    ("site-packages/pip/_internal/cli/cmdoptions.py", """    dest="prefer_binary",
        action="store_true",
        default=False,""", """    dest="prefer_binary",
        action="store_true",
        default=True,"""),
    ("site-packages/pip/_internal/cli/cmdoptions.py", """    dest="disable_pip_version_check",
    action="store_true",
    default=False,""", """    dest="disable_pip_version_check",
    action="store_true",
    default=True,"""),
    # There are no threads to draw progress bars.
    ("site-packages/pip/_vendor/rich/live.py", "            if self.auto_refresh:\n                self._refresh_thread", "            if False:\n                self._refresh_thread"),
    # Nothing is built here.
    ("site-packages/pip/_internal/distributions/sdist.py", """        # Load pyproject.toml, to determine""", """        raise InstallationError(
            f"{self.req.name or self.req} is source code that has to be built: in this sandbox only wheels can be installed"
            + (f" ({self.req.link.filename} isn't one)" if self.req.link else "")
        )
        # Load pyproject.toml, to determine"""),
]


def patched(name, data):
    for where, old, new in PATCHES:
        if name == where:
            text = data.decode()
            if text.count(old) != 1:
                sys.exit(f"pack.py: {where} isn't the one that is known: {old!r}")
            data = text.replace(old, new).encode()
    return data


def everything():
    files = dict(tree(library))
    files.update(zones())
    for path in sorted((library / "ensurepip/_bundled").glob("pip-*.whl")):
        files.update(wheel(path))
    files.update(tree(here / "lib"))
    files["lib-dynload/README"] = b"All modules in C are part of the interpreter.\n"
    return files


files = everything()
with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z, tempfile.TemporaryDirectory() as tmp:
    def put(name, data):
        z.writestr(zipfile.ZipInfo(name, (2023, 2, 7, 0, 0, 0)), data, zipfile.ZIP_DEFLATED, 9)

    for name in sorted(files):
        put(name, files[name])
        if not name.endswith(".py") or name.startswith("lib2to3/tests"):
            continue
        src = pathlib.Path(tmp, "source.py")
        src.write_bytes(files[name])
        try:
            pyc = py_compile.compile(str(src), cfile=tmp + "/out.pyc", dfile="/usr/lib/python3.11/" + name, doraise=True,
                                     invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        except py_compile.PyCompileError:
            continue  # templates, and what is written for other versions
        folder, _, base = name.rpartition("/")
        put(f"{folder + '/' if folder else ''}__pycache__/{base[:-3]}.cpython-311.pyc", pathlib.Path(pyc).read_bytes())
print(len(files), "files,", out.stat().st_size, "bytes")
