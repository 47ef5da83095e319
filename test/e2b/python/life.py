"""Sandboxes over time: pause and resume, their end, forks and snapshots."""
import asyncio
import datetime

import e2b
from kit import PID, Sandbox, a, create, equal, exception, fails, shared, step, until

NotFound = exception("SandboxNotFoundException")
UNKNOWN = "i0000000000000000000x"
COUNT = "/home/user/count"
HAS_PAUSE = hasattr(Sandbox, "pause")
HAS_FORK = hasattr(Sandbox, "fork")
HAS_SNAPSHOTS = hasattr(Sandbox, "create_snapshot")


def state(info):
    return str(getattr(info.state, "value", info.state))


async def counting(s):
    """Starts a process whose memory tells whether it goes on: it counts up, and writes where it is."""
    await a(s.commands.run("n=100; while :; do n=$((n+1)); echo $n >%s.new; mv %s.new %s; sleep 0.1; done" % (COUNT, COUNT, COUNT), background=True, timeout=0))
    return await until("the count", lambda: over(s, 102))


async def count(s):
    return int(await a(s.files.read(COUNT)))


async def over(s, n):
    now = await count(s)
    return now if now > n else None


@step("pause", "Sandbox.pause", HAS_PAUSE)
async def _():
    s = await create(timeout=120)
    before = await counting(s)
    equal(await a(s.pause()), True)
    equal(state(await a(Sandbox.get_info(s.sandbox_id))), "paused")
    equal(await a(s.is_running()), False)
    equal(await a(Sandbox.pause(s.sandbox_id)), False)
    await asyncio.sleep(1.5)
    again = await a(Sandbox.connect(s.sandbox_id, timeout=90))
    after = await count(again)
    assert before <= after < before + 50, (before, after)
    await until("the process to go on", lambda: over(again, after))
    equal((await a(s.commands.run("echo same"))).stdout, "same\n")
    await a(again.kill())
    await fails(lambda: Sandbox.pause(UNKNOWN), NotFound)


@step("pause", "Sandbox.beta_pause")
async def _():
    s = await create(timeout=120)
    await a(s.files.write("/home/user/kept", "slept"))
    await a(s.beta_pause())
    equal(state(await a(Sandbox.get_info(s.sandbox_id))), "paused")
    await a(s.connect(timeout=60))
    equal(await a(s.files.read("/home/user/kept")), "slept")
    await a(s.kill())


@step("pause", "Sandbox.beta_create", hasattr(Sandbox, "beta_create"))
async def _():
    s = await a(Sandbox.beta_create(timeout=120, auto_pause=True))
    await a(s.files.write("/home/user/kept", "slept"))
    await a(s.set_timeout(1))

    async def paused():
        return state(await a(Sandbox.get_info(s.sandbox_id))) == "paused"
    await until("its sleep", paused)
    await a(s.connect(timeout=60))
    equal(await a(s.files.read("/home/user/kept")), "slept")
    await a(s.kill())


@step("pause", "Sandbox.pause: without memory", HAS_PAUSE)
async def _():
    s = await create(timeout=120)
    await counting(s)
    await a(s.files.write("/home/user/kept", "on disk"))
    equal(await a(s.pause(keep_memory=False)), True)
    again = await a(Sandbox.connect(s.sandbox_id))
    equal(await a(again.files.read("/home/user/kept")), "on disk")
    equal([p for p in await a(again.commands.list()) if any("count" in x for x in p.args)], [])
    await a(again.kill())


@step("pause", "Sandbox.create: ends in time")
async def _():
    s = await create(timeout=2)

    async def gone():
        try:
            await a(s.get_info())
        except NotFound:
            return True
    await until("its end", gone)
    equal(await a(s.is_running()), False)
    await fails(lambda: s.commands.run("true"), e2b.TimeoutException)


@step("pause", "Sandbox.create: resumes by itself", HAS_PAUSE)
async def _():
    s = await create(timeout=2, lifecycle={"on_timeout": "pause", "auto_resume": True})
    await a(s.files.write("/home/user/kept", "slept"))

    async def paused():
        return state(await a(Sandbox.get_info(s.sandbox_id))) == "paused"
    await until("its sleep", paused)
    equal((await a(s.commands.run("cat /home/user/kept"))).stdout, "slept")
    info = await a(Sandbox.get_info(s.sandbox_id))
    equal(state(info), "running")
    left = (info.end_at - datetime.datetime.now(datetime.timezone.utc)).total_seconds()
    assert 200 < left < 302, left
    await a(s.kill())


forked = shared(timeout=240)


@step("fork", "Sandbox.fork", HAS_FORK)
async def _():
    s = await forked()
    before = await counting(s)
    forks = await a(s.fork(count=2, timeout=60))
    equal(len(forks), 2)
    for f in forks:
        assert isinstance(f, Sandbox) and f.sandbox_id != s.sandbox_id, f
        now = await count(f)
        assert now >= before
        await until("the process to go on", lambda: over(f, now))
    await a(forks[0].files.write("/home/user/mine", "a"))
    equal(await a(s.files.exists("/home/user/mine")), False)
    equal(await a(forks[1].files.exists("/home/user/mine")), False)
    for f in forks:
        await a(f.kill())
    one = await a(Sandbox.fork(s.sandbox_id))
    equal((await a(one[0].commands.run("echo fork"))).stdout, "fork\n")
    await a(one[0].kill())
    await fails(lambda: Sandbox.fork(UNKNOWN), NotFound)


parent = shared(timeout=240)
snapshot = {}


@step("snapshots", "Sandbox.create_snapshot", HAS_SNAPSHOTS)
async def _():
    s = await parent()
    await counting(s)
    snapshot["info"] = i = await a(s.create_snapshot(name="snap-py-" + PID))
    assert i.snapshot_id
    await a(s.files.write("/home/user/later", "not in it"))
    copy = await create(i.snapshot_id, timeout=60)
    equal(await a(copy.files.exists("/home/user/later")), False)
    now = await count(copy)
    await until("the process to go on in the copy", lambda: over(copy, now))
    await a(copy.kill())


@step("snapshots", "Sandbox.list_snapshots", HAS_SNAPSHOTS)
async def _():
    s = await parent()
    equal([i.snapshot_id for i in await a(s.list_snapshots().next_items())], [snapshot["info"].snapshot_id])


@step("snapshots", "SnapshotPaginator.next_items", HAS_SNAPSHOTS)
async def _():
    s = await parent()
    second = await a(s.create_snapshot())
    p, ids = s.list_snapshots(limit=1), []
    while p.has_next:
        page = await a(p.next_items())
        assert len(page) <= 1 and len(ids) < 4
        ids += [i.snapshot_id for i in page]
    equal(sorted(ids), sorted([second.snapshot_id, snapshot["info"].snapshot_id]))
    equal(await a(Sandbox.delete_snapshot(second.snapshot_id)), True)


@step("snapshots", "Sandbox.delete_snapshot", HAS_SNAPSHOTS)
async def _():
    i = snapshot["info"].snapshot_id
    equal(await a(Sandbox.delete_snapshot(i)), True)
    equal(await a(Sandbox.delete_snapshot(i)), False)
