"""What the groups of steps are written with. A step is a method of the SDK and what of it is looked at: "Sandbox.create: variables". Steps of a group run one
after the other, groups beside each other; a step that fails or hangs is that step's failure only. The same steps run with both faces of the SDK: what its
asynchronous one has to await, a() awaits."""
import asyncio
import http.client
import inspect
import json
import os
import re
import ssl
import threading
import time
import traceback
import urllib.error
import urllib.parse
import urllib.request
from importlib.metadata import version as installed

import e2b
import e2b_code_interpreter

ASYNC = os.environ.get("E2B_TEST_MODE") == "async"
VERSION = installed("e2b")
LIMIT = 120  # seconds, of a step: many times what it takes on a machine that does nothing else
PID = str(os.getpid())


def face(name, module=e2b):
    """A class of the face that is looked at, or None where the SDK has none."""
    return getattr(module, ("Async" if ASYNC else "") + name, None)


Sandbox = face("Sandbox", e2b_code_interpreter)
Plain = face("Sandbox")
Volume, Secret, Template = face("Volume"), face("Secret"), face("Template")
steps = {}


def since(wanted):
    return [int(x) for x in VERSION.split(".")[:3]] >= [int(x) for x in wanted.split(".")]


def exception(name):
    """An exception that older versions don't have counts as the one above it."""
    above = {"SandboxNotFoundException": "NotFoundException", "FileNotFoundException": "NotFoundException"}
    return getattr(e2b, name, None) or exception(above[name])


def step(group, name, when=True):
    def add(run):
        if when:
            steps.setdefault(group, []).append((name, run))
        return run
    return add


async def a(value):
    return await value if inspect.isawaitable(value) else value


made = {}


async def create(*args, **kw):
    s = await a(Sandbox.create(*args, **kw))
    made[s.sandbox_id] = s
    return s


def shared(**kw):
    """The sandbox of a group, made when the first step wants it."""
    have = []

    async def get():
        if not have:
            have.append(await create(**kw))
        return have[0]
    return get


async def until(what, look, limit=60):
    """Waits for a value that isn't False, None or an error."""
    end, wrong = time.monotonic() + limit, None
    while time.monotonic() < end:
        try:
            found = await a(look())
            if found is not False and found is not None:
                return found
        except Exception as e:
            wrong = e
        await asyncio.sleep(0.05)
    raise AssertionError("waited in vain for %s: %r" % (what, wrong))


async def fails(call, kind, words=None):
    """For calls that must be refused with an error of a class, and words."""
    try:
        got = await a(call())
    except kind as e:
        if words:
            assert re.search(words, str(e)), str(e)
        return e
    except Exception as e:
        raise AssertionError("want %s, got %s: %s" % (getattr(kind, "__name__", kind), type(e).__name__, e)) from e
    raise AssertionError("want %s, got %r" % (getattr(kind, "__name__", kind), got))


def equal(got, want, what=""):
    assert got == want, "%s: got %r, want %r" % (what or "differs", got, want)


def fetch(url, method="GET", body=None, headers={}):
    """Asks a URL: status and text."""
    r = urllib.request.Request(url, data=body, method=method, headers=headers)
    try:
        with urllib.request.urlopen(r, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


def fetch_host(host, path="/"):
    """Asks a host name of a sandbox as a browser would, where names lead to the server."""
    at = urllib.parse.urlsplit(os.environ.get("E2B_TEST_LISTENER") or os.environ["E2B_SANDBOX_URL"])
    if at.scheme == "https":
        c = http.client.HTTPSConnection(at.hostname, at.port, timeout=30, context=ssl._create_unverified_context())
    else:
        c = http.client.HTTPConnection(at.hostname, at.port, timeout=30)
    c.request("GET", path, headers={"Host": host})
    r = c.getresponse()
    return r.status, r.read().decode()


def form(name, data):
    """A form with one file: body and headers."""
    edge = "edge-of-the-suite"
    body = '--%s\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\nContent-Type: application/octet-stream\r\n\r\n%s\r\n--%s--\r\n' % (edge, name, data, edge)
    return body.encode(), {"Content-Type": "multipart/form-data; boundary=" + edge}


def surface():
    """The public methods that the SDK offers, by the classes that a user meets."""
    found = set()
    classes = {"Sandbox": Sandbox, "Volume": Volume, "Secret": Secret, "Template": Template, "TemplateBuilder": getattr(e2b, "TemplateBuilder", None)}
    modules = "e2b.sandbox_async" if ASYNC else "e2b.sandbox_sync"
    for path, names in {"filesystem.filesystem": ["Filesystem"], "filesystem.watch_handle": ["WatchHandle", "AsyncWatchHandle"], "commands.command": ["Commands"],
                        "commands.pty": ["Pty"], "commands.command_handle": ["CommandHandle", "AsyncCommandHandle"], "paginator": ["SandboxPaginator", "AsyncSandboxPaginator", "SnapshotPaginator", "AsyncSnapshotPaginator"],
                        "git": ["Git"]}.items():
        try:
            module = __import__(modules + "." + path, fromlist=["x"])
        except ImportError:
            continue
        for n in names:
            if inspect.isclass(getattr(module, n, None)):
                classes[n.replace("Async", "")] = getattr(module, n)
    if Secret is not None:
        classes["SecretPaginator"] = face("SecretPaginator")
    if Template is not None:
        classes["TemplateBuilder"] = type(Template().from_base_image())
    for name, c in classes.items():
        for m in dir(c) if c is not None else []:
            if not m.startswith("_") and callable(getattr(c, m)) and not isinstance(inspect.getattr_static(c, m), property):
                found.add(("Template" if name == "TemplateBuilder" else name) + "." + m)
    # What isn't a call of the service, and the classes' own configuration.
    return sorted(m for m in found if m.split(".")[1] not in ("default_template", "connection_config", "set_integration"))


def report(error):
    if error is None:
        return None
    where = [f for f in traceback.extract_tb(error.__traceback__) if "site-packages" not in f.filename and os.path.basename(f.filename) != "kit.py"]
    return "%s: %s\n%s" % (type(error).__name__, error, "\n".join("  at %s:%s: %s" % (os.path.basename(f.filename), f.lineno, f.line) for f in where[-3:]))


def main():
    out, lock = open(os.environ["E2B_TEST_RESULTS"], "a"), threading.Lock()

    def say(**line):
        with lock:
            out.write(json.dumps(line) + "\n")
            out.flush()

    say(version=VERSION, surface=surface())
    wanted = os.environ.get("E2B_TEST_GROUPS", "").split(",") if os.environ.get("E2B_TEST_GROUPS") else list(steps)
    wanted = [g for g in wanted if g in steps and g not in os.environ.get("E2B_TEST_SKIP", "").split(",")]
    only = os.environ.get("E2B_TEST_STEP", "")

    async def limited(run):
        """In the synchronous face a step that hangs can only be left where it is."""
        if ASYNC:
            return await asyncio.wait_for(run(), LIMIT)
        done = []

        def body():
            try:
                asyncio.run(run())
                done.append(None)
            except BaseException as e:
                done.append(e)
        t = threading.Thread(target=body, daemon=True)
        t.start()
        await asyncio.get_running_loop().run_in_executor(None, t.join, LIMIT)
        if not done:
            raise TimeoutError("not done within %d s" % LIMIT)
        if done[0] is not None:
            raise done[0]

    async def one(group):
        for name, run in steps[group]:
            if not name.startswith(only):
                continue
            start, error = time.monotonic(), None
            try:
                await limited(run)
            except BaseException as e:
                error = e
            say(step=name, group=group, ok=error is None, error=report(error), ms=int((time.monotonic() - start) * 1000))

    async def everything():
        queue = list(wanted)

        async def worker():
            while queue:
                await one(queue.pop(0))
        await asyncio.gather(worker(), worker(), worker())

        async def end(s):
            try:
                await a(s.kill())
            except Exception:
                pass
        if ASYNC:
            await asyncio.wait([asyncio.ensure_future(end(s)) for s in made.values()] or [asyncio.ensure_future(asyncio.sleep(0))], timeout=30)
        else:
            for s in made.values():
                await end(s)
        say(done=True)
        os._exit(0)  # whatever streams a step left

    asyncio.run(everything())
