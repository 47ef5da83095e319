"""Templates and their builds."""
import asyncio
import json
import os
import tempfile

import e2b
from kit import PID, Template, a, create, equal, fails, since, step

MARK = "py-" + PID
NEW = Template is not None and since("2.63.0")
built = {}
everything = []


async def build(name, template):
    built[name] = await a(Template.build(template, "%s-%s" % (name, MARK), cpu_count=1, memory_mb=512, on_build_logs=lambda entry: None))
    return built[name]


async def whole():
    """One template has everything, so that one build proves the instructions; each step looks at its own."""
    if not everything:
        d = tempfile.mkdtemp()
        os.makedirs(d + "/src/sub")
        for name, text in (("src/a.txt", "copied a"), ("src/sub/b.txt", "copied b")):
            with open(os.path.join(d, name), "w") as f:
                f.write(text)
        t = (Template(file_context_path=d).from_base_image().set_envs({"BUILT": "with env"}).set_workdir("/home/user/app").run_cmd('pwd > /home/user/where; echo "$BUILT" >> /home/user/where')
             .copy("src", "/home/user/copied").copy_items([{"src": "src/a.txt", "dest": "/home/user/items/"}]).make_dir("/home/user/dirs/x").make_symlink("/home/user/where", "/home/user/linked")
             .run_cmd("echo x > /home/user/old; echo x > /home/user/doomed").rename("/home/user/old", "/home/user/new").remove("/home/user/doomed").set_user("user"))
        info = await build("all", t)
        everything.append(await create(info.template_id, timeout=240))
    return everything[0]


@step("template", "Template.build", NEW)
async def _():
    s = await whole()
    equal((await a(s.get_info())).template_id, built["all"].template_id)
    await fails(lambda: Template.build(Template().from_base_image().run_cmd("exit 3"), "broken-" + MARK, cpu_count=1, memory_mb=512), e2b.BuildException)


@step("template", "Template.from_base_image", NEW)
async def _():
    equal((await a((await whole()).commands.run("id -un"))).stdout, "user\n")


@step("template", "Template.run_cmd", NEW)
async def _():
    equal(await a((await whole()).files.read("/home/user/where")), "/home/user/app\nwith env\n")


@step("template", "Template.set_envs", NEW)
async def _():
    equal((await a((await whole()).commands.run('echo "$BUILT"'))).stdout, "with env\n")


@step("template", "Template.set_workdir", NEW)
async def _():
    equal((await a((await whole()).commands.run("pwd"))).stdout, "/home/user/app\n")


@step("template", "Template.set_user", NEW)
async def _():
    equal((await a((await whole()).commands.run("id -un"))).stdout, "user\n")


@step("template", "Template.copy", NEW)
async def _():
    equal(await a((await whole()).files.read("/home/user/copied/sub/b.txt")), "copied b")


@step("template", "Template.copy_items", NEW)
async def _():
    equal(await a((await whole()).files.read("/home/user/items/a.txt")), "copied a")


@step("template", "Template.make_dir", NEW)
async def _():
    equal((await a((await whole()).files.get_info("/home/user/dirs/x"))).type, e2b.FileType.DIR)


@step("template", "Template.make_symlink", NEW)
async def _():
    equal(await a((await whole()).files.read("/home/user/linked")), "/home/user/app\nwith env\n")


@step("template", "Template.rename", NEW)
async def _():
    equal(await a((await whole()).files.exists("/home/user/new")), True)


@step("template", "Template.remove", NEW)
async def _():
    equal(await a((await whole()).files.exists("/home/user/doomed")), False)


@step("template", "Template.from_template", NEW)
async def _():
    await whole()
    i = await build("child", Template().from_template("all-" + MARK).run_cmd("cat /home/user/where > /home/user/child"))
    s = await create(i.template_id, timeout=60)
    equal(await a(s.files.read("/home/user/child")), "/home/user/app\nwith env\n")
    await a(s.kill())


@step("template", "Template.from_dockerfile", NEW)
async def _():
    i = await build("docker", Template().from_dockerfile("FROM e2bdev/base\nENV IN=docker\nWORKDIR /srv\nRUN echo $IN > /srv/out\n"))
    s = await create(i.template_id, timeout=60)
    equal(await a(s.files.read("/srv/out")), "docker\n")
    await a(s.kill())


@step("template", "Template.set_start_cmd", NEW)
async def _():
    i = await build("start", Template().from_base_image().set_start_cmd("while :; do date +%s%N > /home/user/beat; sleep 0.2; done", e2b.wait_for_file("/home/user/beat")))
    s = await create(i.template_id, timeout=60)
    beat = await a(s.files.read("/home/user/beat"))
    for _ in range(200):
        if await a(s.files.read("/home/user/beat")) != beat:
            break
        await asyncio.sleep(0.1)
    assert await a(s.files.read("/home/user/beat")) != beat, "the start command runs"
    await a(s.kill())


@step("template", "Template.set_ready_cmd", NEW)
async def _():
    assert (await build("ready", Template().from_base_image().run_cmd("touch /home/user/r").set_ready_cmd("test -e /home/user/r"))).template_id


@step("template", "Template.skip_cache", NEW)
async def _():
    assert (await build("fresh", Template().skip_cache().from_base_image().run_cmd("true"))).build_id


@step("template", "Template.build_in_background", NEW)
async def _():
    built["bg"] = await a(Template.build_in_background(Template().from_base_image().run_cmd("true"), "bg-" + MARK, cpu_count=1, memory_mb=512))
    assert built["bg"].build_id


@step("template", "Template.get_build_status", NEW)
async def _():
    for _ in range(300):
        s = await a(Template.get_build_status(built["bg"]))
        if str(getattr(s.status, "value", s.status)) in ("ready", "error"):
            break
        await asyncio.sleep(0.1)
    equal(str(getattr(s.status, "value", s.status)), "ready")


@step("template", "Template.exists", NEW)
async def _():
    await whole()
    equal((await a(Template.exists("all-" + MARK)), await a(Template.exists("none-" + MARK)), await a(Template.exists("base"))), (True, False, True))


@step("template", "Template.alias_exists", NEW)
async def _():
    await whole()
    equal((await a(Template.alias_exists("all-" + MARK)), await a(Template.alias_exists("none-" + MARK))), (True, False))


@step("template", "Template.assign_tags", NEW)
async def _():
    await whole()
    i = await a(Template.assign_tags("all-" + MARK, ["stable", "v1"]))
    equal(sorted(t.split(":")[-1] for t in i.tags), ["stable", "v1"])
    s = await create("all-%s:stable" % MARK, timeout=60)
    await a(s.kill())


@step("template", "Template.get_tags", NEW)
async def _():
    tags = {t.tag for t in await a(Template.get_tags(built["all"].template_id))}
    assert {"stable", "v1"} <= tags, tags


@step("template", "Template.remove_tags", NEW)
async def _():
    await a(Template.remove_tags("all-" + MARK, "v1"))
    assert "v1" not in {t.tag for t in await a(Template.get_tags(built["all"].template_id))}


@step("template", "Template.to_json", NEW)
async def _():
    equal(json.loads(Template.to_json(Template().from_base_image().run_cmd("true")))["steps"][0]["type"], "RUN")


@step("template", "Template.to_dockerfile", NEW)
async def _():
    assert Template.to_dockerfile(Template().from_image("debian").run_cmd("true")).startswith("FROM debian\nRUN true")
