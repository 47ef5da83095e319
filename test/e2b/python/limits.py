"""Limits that a server really has, and the types that the SDK makes of them: so many sandboxes of a principal, watchers of a sandbox, bytes of a volume."""
import os

import e2b
from e2b.exceptions import NotEnoughSpaceException, RateLimitException  # the oldest SDK has them there only
from kit import ASYNC, Plain, a, create, equal, fails, since, step, until

KEY, SMALL = os.environ.get("E2B_TEST_LIMITED_KEY"), os.environ.get("E2B_TEST_SMALL")
MANY = 64  # watchers that a sandbox may have
HAS_FORK = hasattr(Plain, "fork")


@step("limits", "Sandbox.create: rate limit", KEY)
async def _():
    have = [await a(Plain.create(timeout=120, api_key=KEY)) for _ in range(2)]
    e = await fails(lambda: Plain.create(timeout=60, api_key=KEY), RateLimitException, "2 sandboxes")
    assert "429" in str(e), str(e)
    if HAS_FORK:
        await fails(lambda: have[0].fork(), RateLimitException, "2 sandboxes")
    equal((await a(have[1].commands.run("echo goes on"))).stdout, "goes on\n")
    await a(have.pop().kill())
    have.append(await until("room for another", lambda: Plain.create(timeout=60, api_key=KEY)))
    for s in have:
        await a(s.kill())


@step("limits", "Filesystem.watch_dir: rate limit", KEY)
async def _():
    s = await create(timeout=120)
    await a(s.files.make_dir("watched"))
    handles, told = [], {"on_event": lambda e: None} if ASYNC else {}

    async def watch():
        handles.append(await a(s.files.watch_dir("watched", **told)))
        return True
    for _ in range(MANY):
        await watch()
    await fails(watch, RateLimitException)
    await a(handles.pop().stop())
    await until("room for another", watch)
    for h in handles:
        await a(h.stop())
    await a(s.kill())


@step("limits", "Filesystem.write: not enough space", SMALL)
async def _():
    s = await create(SMALL, timeout=120)
    data, file = b"x" * 2_000_000, "/small/big"
    await fails(lambda: s.files.write(file, data), NotEnoughSpaceException, "no space left")
    await fails(lambda: s.files.write_files([{"path": "/small/first", "data": "1"}, {"path": file, "data": data}]), NotEnoughSpaceException)
    if since("2.51.0"):
        await fails(lambda: s.files.write(file, data, use_octet_stream=True), NotEnoughSpaceException)
    e = await fails(lambda: s.commands.run("head -c 2000000 /dev/zero >%s" % file), e2b.CommandExitException)
    assert "No space left on device" in e.stderr, e.stderr
    await a(s.files.remove(file))
    await a(s.files.write(file, data[:100_000]))
    equal(await a(s.files.read("/small/first")), "1")
    equal((await a(s.commands.run("ls -A /small; wc -c <%s" % file))).stdout, "big\nfirst\n100000\n")
    await a(s.kill())
