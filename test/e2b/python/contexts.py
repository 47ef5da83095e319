"""The code interpreter: contexts and rich results."""
import base64
import os

import e2b
from kit import a, create, equal, fails, shared, since, step

# The interpreter of the oldest SDK knows host names only.
HERE = since("2.40.0") or bool(os.environ.get("E2B_DOMAIN"))
box = shared(envs={"FROM": "sandbox"}, timeout=240)


@step("code", "Sandbox.run_code", HERE)
async def _():
    s = await box()
    r = await a(s.run_code("x = 20\nprint('said')\nx + 1"))
    equal((r.text, r.logs.stdout, r.logs.stderr, r.error), ("21", ["said\n"], [], None))
    equal([x.is_main_result for x in r.results], [True])
    equal((await a(s.run_code("x * 2"))).text, "40")
    equal((await a(s.run_code("y = 1"))).results, [])


@step("code", "Sandbox.run_code: streams", HERE)
async def _():
    s = await box()
    out, err, results, errors = [], [], [], []
    r = await a(s.run_code("import sys\nprint('one')\nprint('two', file=sys.stderr)\ndisplay(1)\n1/0", on_stdout=lambda m: out.append(m.line), on_stderr=lambda m: err.append(m.line),
                           on_result=lambda x: results.append(x.text), on_error=lambda e: errors.append(e.name)))
    equal(("".join(out), "".join(err), results, errors), ("one\n", "two\n", ["1"], ["ZeroDivisionError"]))
    equal((r.error.name, r.error.value), ("ZeroDivisionError", "division by zero"))
    assert "1/0" in r.error.traceback


@step("code", "Sandbox.run_code: rich results", HERE)
async def _():
    s = await box()
    r = await a(s.run_code('class R:\n    def _repr_html_(self): return "<b>x</b>"\n    def _repr_png_(self): return b"\\x89PNG"\n    def _repr_json_(self): return {"a": 1}\n    def __repr__(self): return "r"\nR()'))
    x = r.results[0]
    equal((x.text, x.html, x.json, base64.b64decode(x.png)), ("r", "<b>x</b>", {"a": 1}, b"\x89PNG"))
    equal(sorted(x.formats()), ["html", "json", "png", "text"])


@step("code", "Sandbox.run_code: environment", HERE)
async def _():
    s = await box()
    equal((await a(s.run_code("import os; os.environ['FROM'] + os.environ['OWN']", envs={"OWN": " call"}))).text, "sandbox call")


@step("code", "Sandbox.run_code: timeout", HERE)
async def _():
    s = await box()
    await a(s.run_code("kept = 1"))
    await fails(lambda: s.run_code("import time\ntime.sleep(60)", timeout=1.5), e2b.TimeoutException)
    equal((await a(s.run_code("kept + 1"))).text, "2")


@step("code", "Sandbox.run_code: languages", HERE)
async def _():
    s = await box()
    equal((await a(s.run_code("const a = 5; a * 2", language="javascript"))).text, "10")
    equal((await a(s.run_code("const b: number = 4; b", language="typescript"))).text, "4")
    equal("".join((await a(s.run_code("echo $((6*7))", language="bash"))).logs.stdout), "42\n")
    await fails(lambda: s.run_code("1", language="r"), e2b.SandboxException)


@step("code", "Sandbox.create_code_context", HERE)
async def _():
    s = await box()
    c = await a(s.create_code_context(cwd="/tmp"))
    equal((c.language, c.cwd), ("python", "/tmp"))
    await a(s.run_code("import os; mine = os.getcwd()", context=c))
    equal((await a(s.run_code("mine", context=c))).text, "/tmp")
    equal((await a(s.run_code("mine"))).error.name, "NameError")


@step("code", "Sandbox.list_code_contexts", HERE)
async def _():
    s = await box()
    c = await a(s.create_code_context(language="javascript"))
    assert any(x.id == c.id and x.language == "javascript" for x in await a(s.list_code_contexts()))


@step("code", "Sandbox.restart_code_context", HERE)
async def _():
    s = await box()
    c = await a(s.create_code_context())
    await a(s.run_code("lost = 1", context=c))
    await a(s.restart_code_context(c))
    equal((await a(s.run_code("lost", context=c))).error.name, "NameError")


@step("code", "Sandbox.remove_code_context", HERE)
async def _():
    s = await box()
    c = await a(s.create_code_context())
    await a(s.remove_code_context(c))
    assert not any(x.id == c.id for x in await a(s.list_code_contexts()))
    await fails(lambda: s.run_code("1", context=c), e2b.NotFoundException)


@step("code", "Sandbox.pause: contexts", HERE and since("2.40.0"))
async def _():
    s = await create(timeout=120)
    await a(s.run_code("state = [1]"))
    await a(s.pause())
    await a(s.connect(timeout=60))
    equal((await a(s.run_code("state.append(2); state"))).text, "[1, 2]")
    await a(s.kill())
