"""client.py TRANSPORT goes through a server of MCP with the official SDK for Python, and prints a line for each step: "ok STEP" or
"not ok STEP: WHY". TRANSPORT is stdio, for which COMMAND is a JSON array, or http, for URL and KEY. VIEWER is a key that may only look."""

import asyncio
import base64
import contextlib
import json
import os
import sys
import traceback

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

STDIO = sys.argv[1] == "stdio"
KEY, VIEWER = os.environ["KEY"], os.environ["VIEWER"]
failed = 0
updates: list[str] = []


async def heard(message) -> None:
    uri = getattr(getattr(message, "params", None), "uri", None)
    if uri is not None and "updated" in type(message).__name__.lower():
        updates.append(str(uri))


@contextlib.asynccontextmanager
async def connect(key: str, **options):
    if STDIO:
        command, *args = json.loads(os.environ["COMMAND"])
        async with Client(StdioServerParameters(command=command, args=[*args, "--key", key], env=dict(os.environ)), message_handler=heard, **options) as c:
            yield c
    else:
        headers = {"Authorization": "Bearer " + key}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            async with Client(streamable_http_client(os.environ["URL"], http_client=http), message_handler=heard, **options) as c:
                yield c


async def step(name, f) -> None:
    global failed
    try:
        await f()
        print("ok", name, flush=True)
    except Exception:
        failed += 1
        print("not ok", name + ":", traceback.format_exc().replace("\n", " | "), flush=True)


def words(r) -> str:
    return "".join(getattr(c, "text", "") for c in r.content)


async def until(what, f) -> None:
    for _ in range(1200):
        if await f():
            return
        await asyncio.sleep(0.05)
    raise TimeoutError("never: " + what)


async def steps(c: Client) -> None:
    async def does(name, /, **args):
        r = await c.call_tool(name, args)
        assert not r.is_error, f"{name}: {words(r)}"
        return r.structured_content if r.structured_content is not None else words(r)

    async def fails(name, /, *want, **args):
        r = await c.call_tool(name, args)
        assert r.is_error, f"{name} did it: {words(r)}"
        for w in want:
            assert w in words(r), f"{name} says {words(r)}, want {w}"

    async def initialized():
        assert c.server_info.name == "agentrun", c.server_info
        assert "fork_sandbox" in c.instructions
        assert c.server_capabilities.resources.subscribe

    async def tools():
        by = {t.name: t for t in (await c.list_tools()).tools}
        assert {"exec", "read_file", "write_file", "edit_file", "fork_sandbox", "merge_sandbox"} <= set(by), by.keys()
        assert by["read_file"].annotations.read_only_hint and by["terminate_sandbox"].annotations.destructive_hint

    async def execs():
        r = await does("exec", command="echo out; echo err >&2; exit 3")
        assert (r["exit_code"], r["stdout"], r["stderr"]) == (3, "out\n", "err\n"), r
        assert (await does("exec", command="sleep 60", timeout_seconds=0.2))["timed_out"]

    async def progress():
        messages = []

        async def said(_progress, _total, message):
            messages.append(message)

        # What is told together with the end may come after it: the command waits until it was heard.
        script = "; ".join(f"echo {word}; until [ -e {word} ]; do sleep 0.05; done" for word in ("one", "two"))
        running = asyncio.create_task(c.call_tool("exec", {"command": script}, progress_callback=said))
        for word in ("one", "two"):

            async def heard():
                return word in "".join(messages)

            await until("progress", heard)
            await does("write_file", path=word, content="")
        await running
        assert len(messages) >= 2, messages

    async def cancel():
        running = asyncio.create_task(c.call_tool("exec", {"command": "sleep 600"}))

        async def runs():
            return "sleep" in words(await c.call_tool("list_processes", {}))

        async def ended():
            return not await runs()

        await until("begun", runs)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        await until("ended", ended)

    async def code():
        await does("run_code", language="python", code="x = 6")
        assert (await does("run_code", language="python", code="x * 7"))["result"] == "42"
        r = await does("run_code", language="python", code="1/0")
        assert r["exit_code"] == 1 and "ZeroDivisionError" in r["stderr"], r

    async def files():
        await does("write_file", path="src/ä.txt", content="alpha\nbeta\n")
        await fails("edit_file", "times in the file", path="src/ä.txt", old_string="a", new_string="b")
        await does("edit_file", path="src/ä.txt", old_string="beta", new_string="gämma")
        assert await does("read_file", path="src/ä.txt") == "alpha\ngämma\n"
        assert (await does("search_files", pattern="gämma"))["matches"] == [{"path": "src/ä.txt", "line": 2, "text": "gämma"}]
        assert (await does("find_files", pattern="*.txt"))["paths"] == ["src/ä.txt"]
        await fails("read_file", "no such file", path="gone")

    async def output():
        r = await does("exec", command="seq 1 30000")
        assert len(r["stdout"]) < 22_000 and "bytes left out" in r["stdout"]
        assert (await does("read_file", path=r["stdout_file"], offset=29_999)).startswith("29999\n30000\n")

    async def forks():
        own = (await does("get_sandbox"))["id"]
        fork = (await does("fork_sandbox"))["sandboxes"][0]["id"]
        await does("write_file", path="new", content="x", sandbox=fork)
        assert (await does("diff_sandboxes", **{"from": own, "to": fork}))["added"] == 1
        assert (await does("merge_sandbox", source=fork))["merged"]
        assert await does("read_file", path="new") == "x"
        await does("terminate_sandbox", sandbox=fork)
        await fails("exec", "has ended", command="true", sandbox=fork)

    async def resources():
        own = (await does("get_sandbox"))["id"]
        await does("exec", command="printf '\\0\\377' > bin")
        at = f"sandbox://{own}/workspace/"
        assert (await c.read_resource(at + "src/%C3%A4.txt")).contents[0].text == "alpha\ngämma\n"
        assert base64.b64decode((await c.read_resource(at + "bin")).contents[0].blob) == b"\0\xff"
        uris = [str(r.uri) for r in (await c.list_resources()).resources]
        assert at + "new" in uris, uris
        try:
            await c.read_resource(at + "gone")
        except MCPError as e:
            assert "not found" in str(e).lower(), e
        else:
            raise AssertionError("a file that isn't there was read")

    async def denied():
        async with connect(VIEWER, mode="legacy") as viewer:
            r = await viewer.call_tool("exec", {"command": "true"})
            assert r.is_error and words(r).startswith("Denied: ") and "The rule that denied it" in words(r), words(r)

    async def oversized():
        await fails("exec", "write_file", command="x" * (2 << 20))
        await fails("exec", "comand", comand="true")

    for f in (initialized, tools, execs, progress, cancel, code, files, output, forks, resources, denied, oversized):
        await step(f.__name__, f)
    if c.protocol_version < "2026-07-28":

        async def subscribe():
            own = (await does("get_sandbox"))["id"]
            uri = f"sandbox://{own}/workspace/new"
            await c.subscribe_resource(uri)
            await does("write_file", path="new", content="changed")

            async def told():
                return uri in updates

            await until("an update", told)

        await step("subscribe", subscribe)


async def main() -> None:
    async def wrong_key():
        try:
            async with connect("AKIAAGENTRUNTEST.wrong") as c:
                await c.list_tools()
        except BaseException as e:
            if isinstance(e, (KeyboardInterrupt, asyncio.CancelledError)):
                raise
            return
        raise AssertionError("it got in with a wrong key")

    async with connect(KEY) as c:
        print("# protocol", c.protocol_version, flush=True)
        await steps(c)
    await step("wrong_key", wrong_key)
    sys.exit(1 if failed else 0)


asyncio.run(main())
