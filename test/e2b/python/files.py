"""Files in every form."""
import io
import os

import e2b
from kit import ASYNC, a, equal, exception, fails, shared, since, step, until

box = shared(timeout=240)
HOME = "/home/user"
Missing = exception("FileNotFoundException")
Invalid = e2b.InvalidArgumentException
EventType = e2b.FilesystemEventType
NEW = since("2.63.0")


@step("files", "Filesystem.write")
async def _():
    s = await box()
    i = await a(s.files.write(HOME + "/a/b/c.txt", "first"))
    equal((i.name, i.path), ("c.txt", HOME + "/a/b/c.txt"))
    equal(await a(s.files.read(HOME + "/a/b/c.txt")), "first")
    await a(s.files.write(HOME + "/a/b/c.txt", "2"))
    equal(await a(s.files.read(HOME + "/a/b/c.txt")), "2")
    await fails(lambda: s.files.write("/tmp", "x"), Invalid)


@step("files", "Filesystem.write: forms")
async def _():
    s = await box()
    data = os.urandom(100_000)
    await a(s.files.write("forms/bytes", data))
    await a(s.files.write("forms/stream", io.BytesIO(data)))
    await a(s.files.write("forms/text", io.StringIO("täxt")))
    await a(s.files.write("forms/empty", ""))
    for n in ("bytes", "stream"):
        equal(bytes(await a(s.files.read("forms/" + n, format="bytes"))) == data, True, n)
    equal(await a(s.files.read("forms/text")), "täxt")
    equal(await a(s.files.read(HOME + "/forms/empty")), "")


@step("files", "Filesystem.write: gzip and octets", NEW)
async def _():
    s = await box()
    text = "again and again " * 20000
    await a(s.files.write("zipped.txt", text, gzip=True))
    equal(await a(s.files.read("zipped.txt", gzip=True)), text)
    await a(s.files.write("octets", b"\0\1\2" * 1000, use_octet_stream=True))
    equal(bytes(await a(s.files.read("octets", format="bytes"))), b"\0\1\2" * 1000)
    await a(s.files.write("tagged", "x", metadata={"author": "suite"}))
    equal((await a(s.files.get_info("tagged"))).metadata, {"author": "suite"})


@step("files", "Filesystem.write: names")
async def _():
    s = await box()
    for name in ("with space.txt", "ünï😀.txt", "quote'\"s", "per%20cent+plus&and=", "-dash", ".hidden"):
        await a(s.files.write(HOME + "/names/" + name, name))
        equal(await a(s.files.read(HOME + "/names/" + name)), name)


@step("files", "Filesystem.write_files")
async def _():
    s = await box()
    infos = await a(s.files.write_files([{"path": "w1", "data": "x"}, {"path": "deep/w2", "data": b"y"}]))
    equal([i.path for i in infos], [HOME + "/w1", HOME + "/deep/w2"])
    equal(await a(s.files.read("deep/w2")), "y")


@step("files", "Filesystem.read")
async def _():
    s = await box()
    await a(s.files.write("read", "täxt"))
    equal(await a(s.files.read("read")), "täxt")
    equal(bytes(await a(s.files.read("read", format="bytes"))), "täxt".encode())
    stream = await a(s.files.read("read", format="stream"))
    got = b"".join([p async for p in stream]) if ASYNC else b"".join(stream)
    equal(got, "täxt".encode())
    await fails(lambda: s.files.read("/no/such/file"), Missing)
    await fails(lambda: s.files.read("/tmp"), Invalid)


@step("files", "Filesystem.read: large")
async def _():
    s = await box()
    data = os.urandom(16 << 20)
    await a(s.files.write("large", data))
    equal(bytes(await a(s.files.read("large", format="bytes"))) == data, True)


@step("files", "Filesystem.make_dir")
async def _():
    s = await box()
    equal(await a(s.files.make_dir("made/deep/down")), True)
    equal(await a(s.files.make_dir("made/deep/down")), False)
    equal((await a(s.files.get_info("made/deep"))).type, e2b.FileType.DIR)


@step("files", "Filesystem.list")
async def _():
    s = await box()
    await a(s.files.write("ls/a/b/c", "x"))
    await a(s.files.write("ls/z", "yy"))
    equal([(e.name, e.type, e.path) for e in await a(s.files.list("ls"))], [("a", e2b.FileType.DIR, HOME + "/ls/a"), ("z", e2b.FileType.FILE, HOME + "/ls/z")])
    equal(len(await a(s.files.list("ls", depth=9))), 4)
    await fails(lambda: s.files.list("/no/such/dir"), Missing)
    await fails(lambda: s.files.list("ls/z"), Invalid)


@step("files", "Filesystem.get_info")
async def _():
    s = await box()
    await a(s.files.write("info", "12345"))
    await a(s.commands.run("chmod 640 %s/info; ln -s %s/info %s/link" % (HOME, HOME, HOME)))
    i = await a(s.files.get_info("info"))
    equal((i.name, i.path, i.type, i.size, i.owner, i.group, i.mode & 0o777), ("info", HOME + "/info", e2b.FileType.FILE, 5, "user", "user", 0o640))
    equal((await a(s.files.get_info("link"))).symlink_target, HOME + "/info")
    await fails(lambda: s.files.get_info("nothing"), Missing)


@step("files", "Filesystem.exists")
async def _():
    s = await box()
    equal(await a(s.files.exists("/etc")), True)
    equal(await a(s.files.exists("/etc/nothing")), False)


@step("files", "Filesystem.rename")
async def _():
    s = await box()
    await a(s.files.write("old/name", "x"))
    equal((await a(s.files.rename("old/name", "new-name"))).path, HOME + "/new-name")
    equal(await a(s.files.exists("old/name")), False)
    await fails(lambda: s.files.rename("nothing", "else"), Missing)


@step("files", "Filesystem.remove")
async def _():
    s = await box()
    await a(s.files.write("gone/deep/file", "x"))
    await a(s.files.remove("gone"))
    equal(await a(s.files.exists("gone")), False)


async def watch(s, path, **kw):
    """The events of a directory as a growing list, and what ends it."""
    events = []
    if ASYNC:
        h = await s.files.watch_dir(path, on_event=events.append, **kw)
        return h, lambda: events
    h = s.files.watch_dir(path, **kw)

    def look():
        events.extend(h.get_new_events())
        return events
    return h, look


def seen(look, kind, name):
    return until("%s of %s" % (kind, name), lambda: any(e.type == kind and e.name == name for e in look()) or None)


@step("files", "Filesystem.watch_dir")
async def _():
    s = await box()
    await a(s.files.make_dir("watched"))
    h, look = await watch(s, "watched")
    await a(s.files.write("watched/new", "x"))
    await seen(look, EventType.CREATE, "new")
    await seen(look, EventType.WRITE, "new")
    await a(s.files.rename("watched/new", "watched/newer"))
    await seen(look, EventType.RENAME, "new")
    await a(s.files.remove("watched/newer"))
    await seen(look, EventType.REMOVE, "newer")
    await a(h.stop())
    await fails(lambda: watch(s, "/no/such/dir"), Missing)


@step("files", "Filesystem.watch_dir: recursive")
async def _():
    s = await box()
    await a(s.files.make_dir("deepw/a"))
    h, look = await watch(s, "deepw", recursive=True)
    await a(s.files.write("deepw/a/one", "x"))
    await seen(look, EventType.CREATE, "a/one")
    await a(h.stop())


@step("files", "WatchHandle.stop")
async def _():
    s = await box()
    await a(s.files.make_dir("stopped"))
    h, look = await watch(s, "stopped")
    await a(s.files.write("stopped/a", ""))
    await until("an event", lambda: look() or None)
    await a(h.stop())
    if not ASYNC:
        await fails(h.get_new_events, e2b.SandboxException)


@step("files", "WatchHandle.get_new_events", not ASYNC)
async def _():
    s = await box()
    await a(s.files.make_dir("polled"))
    h = s.files.watch_dir("polled")
    equal(h.get_new_events(), [])
    s.files.write("polled/a", "")
    await until("an event", lambda: any(e.name == "a" for e in h.get_new_events()) or None)
    h.stop()
