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
                yield str(path.relative_to(root)), path.read_bytes()


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


# What pip is told about sandboxes.
PIP = [
    # A denial isn't a broken connection to be tried again.
    ("pip/_vendor/urllib3/connection.py", """        except SocketError as e:
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
    ("pip/_internal/cli/cmdoptions.py", """    dest="prefer_binary",
        action="store_true",
        default=False,""", """    dest="prefer_binary",
        action="store_true",
        default=True,"""),
    ("pip/_internal/cli/cmdoptions.py", """    dest="disable_pip_version_check",
    action="store_true",
    default=False,""", """    dest="disable_pip_version_check",
    action="store_true",
    default=True,"""),
    # Nothing is built here.
    ("pip/_internal/distributions/sdist.py", """        # Load pyproject.toml, to determine""", """        raise InstallationError(
            f"{self.req.name or self.req} is source code that has to be built: in this sandbox only wheels can be installed"
            + (f" ({self.req.link.filename} isn't one)" if self.req.link else "")
        )
        # Load pyproject.toml, to determine"""),
]


def patched(name, data):
    for where, old, new in PIP:
        if name == "site-packages/" + where:
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
