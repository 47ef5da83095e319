"""Making, finding and ending sandboxes, and the ways to one from outside."""
import datetime
import time

import e2b
from kit import PID, Plain, Sandbox, a, create, equal, exception, fails, fetch, fetch_host, form, shared, since, step, until

NotFound = exception("SandboxNotFoundException")
UNKNOWN = "i0000000000000000000x"
box = shared(metadata={"suite": "py", "run": PID}, envs={"COLOUR": "blue", "EMPTY": ""}, timeout=240)


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def left(info):
    return (info.end_at - now()).total_seconds()


@step("sandbox", "Sandbox.create")
async def _():
    s = await create()
    assert s.sandbox_id and s.sandbox_domain
    assert await a(s.is_running())
    info = await a(s.get_info())
    lives = (info.end_at - info.started_at).total_seconds()
    assert 290 < lives < 310, lives
    equal(await a(s.kill()), True)


@step("sandbox", "Sandbox.create: template")
async def _():
    s = await a(Plain.create("base", timeout=60))
    equal((await a(s.get_info())).name, "base")
    await a(s.kill())


@step("sandbox", "Sandbox.create: environment")
async def _():
    s = await box()
    equal((await a(s.commands.run('echo "$COLOUR${EMPTY-unset}"'))).stdout, "blue\n")


@step("sandbox", "Sandbox.create: not secure")
async def _():
    s = await create(secure=False, timeout=60)
    equal((await a(s.commands.run("echo $((6*7))"))).stdout, "42\n")
    await a(s.kill())


@step("sandbox", "Sandbox.create: once", since("2.63.0"))
async def _():
    key = "once-%s-%d" % (PID, time.time_ns())
    one = await create(timeout=60, idempotency_key=key)
    two = await create(timeout=60, idempotency_key=key)
    equal(one.sandbox_id, two.sandbox_id)
    await a(one.kill())


@step("sandbox", "Sandbox.get_info")
async def _():
    s = await box()
    for info in (await a(s.get_info()), await a(Sandbox.get_info(s.sandbox_id))):
        equal(info.sandbox_id, s.sandbox_id)
        equal(info.metadata, {"suite": "py", "run": PID})
        equal(str(getattr(info.state, "value", info.state)), "running")
        lives = (info.end_at - info.started_at).total_seconds()
        assert 239 <= lives < 260, lives
        assert info.template_id and info.cpu_count >= 1 and info.memory_mb >= 64 and info.envd_version
    await fails(lambda: Sandbox.get_info(UNKNOWN), NotFound)


@step("sandbox", "Sandbox.list")
async def _():
    s = await box()
    p = Sandbox.list(query=e2b.SandboxQuery(metadata={"suite": "py", "run": PID}))
    equal(p.has_next, True)
    found = await a(p.next_items())
    equal([f.sandbox_id for f in found], [s.sandbox_id])
    equal(found[0].metadata["run"], PID)
    equal(p.has_next, False)
    paused = Sandbox.list(query=e2b.SandboxQuery(metadata={"run": PID}, state=[e2b.SandboxState.PAUSED]))
    equal(await a(paused.next_items()), [])


@step("sandbox", "SandboxPaginator.next_items")
async def _():
    three = [await create(metadata={"mark": "page-" + PID}, timeout=60) for _ in range(3)]
    p = Sandbox.list(query=e2b.SandboxQuery(metadata={"mark": "page-" + PID}), limit=2)
    ids, pages = [], 0
    while p.has_next:
        items = await a(p.next_items())
        assert len(items) <= 2
        ids += [i.sandbox_id for i in items]
        pages += 1
        assert pages < 5
    equal(sorted(ids), sorted(s.sandbox_id for s in three))
    for s in three:
        await a(s.kill())


@step("sandbox", "Sandbox.is_running")
async def _():
    s = await create(timeout=60)
    equal(await a(s.is_running()), True)
    await a(s.kill())
    equal(await a(s.is_running()), False)


@step("sandbox", "Sandbox.connect")
async def _():
    s = await box()
    await a(s.files.write("/home/user/connected", "yes"))
    again = await a(Sandbox.connect(s.sandbox_id))
    equal(again.sandbox_id, s.sandbox_id)
    equal(await a(again.files.read("/home/user/connected")), "yes")
    equal((await a(again.commands.run("echo hi"))).stdout, "hi\n")
    await a(again.connect())
    assert left(await a(s.get_info())) > 100, "a shorter time isn't taken over"
    await fails(lambda: Sandbox.connect(UNKNOWN), NotFound)


@step("sandbox", "Sandbox.set_timeout")
async def _():
    s = await create(timeout=60)
    await a(s.set_timeout(600))
    assert 580 < left(await a(s.get_info())) <= 601
    await a(Sandbox.set_timeout(s.sandbox_id, 30))
    assert 15 < left(await a(s.get_info())) <= 31
    await a(s.kill())
    await fails(lambda: Sandbox.set_timeout(UNKNOWN, 30), NotFound)


@step("sandbox", "Sandbox.kill")
async def _():
    s = await create(timeout=60)
    equal(await a(s.kill()), True)
    equal(await a(s.kill()), False)
    equal(await a(Sandbox.kill(s.sandbox_id)), False)
    await fails(lambda: s.commands.run("true"), e2b.TimeoutException)
    await fails(lambda: s.files.read("/etc/passwd"), e2b.TimeoutException)


@step("sandbox", "Sandbox.get_host")
async def _():
    s = await box()
    equal(s.get_host(8000), "8000-%s.%s" % (s.sandbox_id, s.sandbox_domain))
    await a(s.commands.run("mkdir -p /home/user/www && echo served >/home/user/www/index.txt"))
    await a(s.commands.run("cd /home/user/www && python3 -m http.server 8000", background=True, timeout=0))

    def look():
        status, text = fetch_host(s.get_host(8000), "/index.txt")
        return text if status == 200 else None
    equal(await until("the server in the sandbox", look), "served\n")
    equal(fetch_host(s.get_host(8001))[0], 502)


@step("sandbox", "Sandbox.download_url")
async def _():
    s = await box()
    await a(s.files.write("/home/user/given.txt", "from the sandbox"))
    url = s.download_url("/home/user/given.txt", use_signature_expiration=120)
    equal(fetch(url), (200, "from the sandbox"))
    equal(fetch(s.download_url("/home/user/given.txt", user="user"))[0], 200)
    equal(fetch(s.download_url("/home/user/given.txt", use_signature_expiration=-10))[0], 401)
    equal(fetch(url.replace("given.txt", "other.txt"))[0], 401)


@step("sandbox", "Sandbox.upload_url")
async def _():
    s = await box()
    body, headers = form("up.txt", "by form")
    url = s.upload_url("/home/user/up.txt")
    equal(fetch(url, "POST", body, headers)[0], 200)
    equal(await a(s.files.read("/home/user/up.txt")), "by form")
    assert fetch(url.replace("up.txt", "down.txt"), "POST", body, headers)[0] != 200


@step("sandbox", "Sandbox.get_metrics")
async def _():
    s = await box()

    async def look():
        return (await a(s.get_metrics())) or None
    last = (await until("a measurement", look))[-1]
    assert last.cpu_count >= 1 and last.cpu_used_pct >= 0 and last.mem_total > 0 and 0 <= last.mem_used <= last.mem_total, last
    assert last.disk_total > 0 and last.disk_used >= 0, last
    equal(await a(s.get_metrics(start=now() - datetime.timedelta(hours=2), end=now() - datetime.timedelta(hours=1))), [])


@step("sandbox", "Sandbox.get_mcp_url")
async def _():
    assert (await box()).get_mcp_url().startswith("https://50005-")


REFUSED = 'curl -sS --max-time 20 http://192.0.2.1/ || echo "refused $?"'


@step("network", "Sandbox.create: no internet")
async def _():
    s = await create(allow_internet_access=False, timeout=120)
    r = await a(s.commands.run(REFUSED))
    assert r.stdout.startswith("refused "), r
    await a(s.kill())


@step("network", "Sandbox.create: network rules")
async def _():
    s = await create(timeout=120, network={"deny_out": ["0.0.0.0/0"], "allow_out": ["example.com"]})
    assert (await a(s.commands.run(REFUSED))).stdout.startswith("refused ")
    if since("2.63.0"):
        net = (await a(s.get_info())).network
        equal((net["deny_out"], net["allow_out"]), (["0.0.0.0/0"], ["example.com"]))
    await a(s.kill())


@step("network", "Sandbox.update_network", hasattr(Sandbox, "update_network"))
async def _():
    s = await create(timeout=120)
    await a(s.update_network({"deny_out": ["0.0.0.0/0"], "allow_out": ["example.org"]}))
    net = (await a(s.get_info())).network
    equal((net["deny_out"], net["allow_out"]), (["0.0.0.0/0"], ["example.org"]))
    assert (await a(s.commands.run(REFUSED))).stdout.startswith("refused ")
    await a(Sandbox.update_network(s.sandbox_id, {"allow_internet_access": False}))
    equal((await a(s.get_info())).allow_internet_access, False)
    await a(s.kill())
