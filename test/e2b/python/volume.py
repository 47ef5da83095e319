"""Volumes and secrets."""
import e2b
from kit import PID, Secret, Volume, a, create, equal, fails, step

HAS = Volume is not None
name = "vol-py-" + PID
have = {}


@step("volumes", "Volume.create", HAS)
async def _():
    have["v"] = v = await a(Volume.create(name))
    equal(v.name, name)
    assert v.volume_id and v.token


@step("volumes", "Volume.connect", HAS)
async def _():
    equal((await a(Volume.connect(have["v"].volume_id))).name, name)
    await fails(lambda: Volume.connect("no-such-volume"), e2b.VolumeNotFoundException)


@step("volumes", "Volume.list", HAS)
async def _():
    v = have["v"]
    assert any(i.volume_id == v.volume_id for i in await a(Volume.list()))
    await a(v.write_file("/list/a", "x"))
    equal([(e.name, e.size) for e in await a(v.list("/list"))], [("a", 1)])
    await fails(lambda: v.list("/nothing"), e2b.VolumePathNotFoundException)


@step("volumes", "Volume.get_info", HAS)
async def _():
    v = have["v"]
    equal((await a(Volume.get_info(v.volume_id))).name, name)
    await a(v.write_file("/info", "12345"))
    i = await a(v.get_info("/info"))
    equal((i.name, i.path, i.size), ("info", "/info", 5))


@step("volumes", "Volume.make_dir", HAS)
async def _():
    v = have["v"]
    equal((await a(v.make_dir("/made"))).path, "/made")
    await a(v.make_dir("/made/deep/down", force=True))


@step("volumes", "Volume.write_file", HAS)
async def _():
    v = have["v"]
    i = await a(v.write_file("/written", "text", mode=0o600))
    equal((i.path, i.size, i.mode & 0o777), ("/written", 4, 0o600))
    await a(v.write_file("/bytes", b"\1\2\3"))


@step("volumes", "Volume.read_file", HAS)
async def _():
    v = have["v"]
    equal(await a(v.read_file("/written")), "text")
    equal(bytes(await a(v.read_file("/bytes", format="bytes"))), b"\1\2\3")
    await fails(lambda: v.read_file("/nothing"), e2b.VolumePathNotFoundException)


@step("volumes", "Volume.exists", HAS)
async def _():
    v = have["v"]
    equal((await a(v.exists("/written")), await a(v.exists("/nothing"))), (True, False))


@step("volumes", "Volume.update_metadata", HAS)
async def _():
    i = await a(have["v"].update_metadata("/written", mode=0o640, uid=1000, gid=1000))
    equal((i.mode & 0o777, i.uid, i.gid), (0o640, 1000, 1000))


@step("volumes", "Volume.remove", HAS)
async def _():
    v = have["v"]
    await a(v.remove("/bytes"))
    equal(await a(v.exists("/bytes")), False)


@step("volumes", "Sandbox.create: volume", HAS)
async def _():
    v = have["v"]
    s = await create(volume_mounts={"/mnt/shared": v}, timeout=120)
    equal((await a(s.commands.run("cat /mnt/shared/written"))).stdout, "text")
    await a(s.commands.run("echo from a >/mnt/shared/a.txt"))
    equal(await a(v.read_file("/a.txt")), "from a\n")
    await a(s.kill())


@step("volumes", "Volume.destroy", HAS)
async def _():
    v = have["v"]
    equal(await a(Volume.destroy(v.volume_id)), True)
    equal(await a(Volume.destroy(v.volume_id)), False)


secret = "suite_py_" + PID


@step("secrets", "Secret.create", Secret is not None)
async def _():
    have["s"] = s = await a(Secret.create(secret, "first value", metadata={"of": "suite"}))
    equal((s.name, s.version, s.metadata), (secret, 1, {"of": "suite"}))


@step("secrets", "Secret.get_info", Secret is not None)
async def _():
    for key in (secret, have["s"].secret_id):
        equal((await a(Secret.get_info(key))).secret_id, have["s"].secret_id)
    await fails(lambda: Secret.get_info("NO_SUCH"), e2b.SecretNotFoundException)


@step("secrets", "Secret.update", Secret is not None)
async def _():
    equal((await a(Secret.update(secret, "second value"))).version, 2)


@step("secrets", "Secret.list", Secret is not None)
async def _():
    p, found = Secret.list(limit=100), []
    while p.has_next:
        found += await a(p.next_items())
    assert any(i.name == secret for i in found)


@step("secrets", "SecretPaginator.next_items", Secret is not None)
async def _():
    await a(Secret.create(secret + "_2", "x"))
    p = Secret.list(limit=1)
    equal((len(await a(p.next_items())), p.has_next), (1, True))
    await a(Secret.destroy(secret + "_2"))


@step("secrets", "Secret.exists", Secret is not None)
async def _():
    equal((await a(Secret.exists(secret)), await a(Secret.exists("NO_SUCH"))), (True, False))


@step("secrets", "Secret.fill", Secret is not None)
async def _():
    assert secret in Secret.fill(secret)
    rules = {"example.com": [{"transform": {"headers": {"Authorization": "Bearer " + Secret.fill(secret)}}}]}
    s = await create(timeout=120, network={"allow_out": ["example.com"], "deny_out": ["0.0.0.0/0"], "rules": rules})
    assert "second value" not in (await a(s.commands.run("env"))).stdout
    await a(s.kill())


@step("secrets", "Secret.iam_token", Secret is not None)
async def _():
    assert Secret.iam_token(audience="a", token_type="JWT-SVID")


@step("secrets", "Secret.destroy", Secret is not None)
async def _():
    equal(await a(Secret.destroy(secret)), True)
    equal(await a(Secret.destroy(secret)), False)
