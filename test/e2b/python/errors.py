"""Errors: that they come as the SDK's own types."""
import e2b
from kit import Plain, a, create, fails, step

WRONG = {"api_key": "e2b_" + "0" * 40}


@step("errors", "Sandbox.create: wrong key")
async def _():
    await fails(lambda: Plain.create(**WRONG), e2b.AuthenticationException)
    await fails(lambda: Plain.list(**WRONG).next_items(), e2b.AuthenticationException)


@step("errors", "Sandbox.connect: a key of nobody")
async def _():
    s = await create(timeout=60)
    await fails(lambda: Plain.connect(s.sandbox_id, **WRONG), e2b.AuthenticationException)
    await a(s.kill())


@step("errors", "Sandbox.create: unknown template")
async def _():
    await fails(lambda: Plain.create("no-such-template-here"), e2b.SandboxException, "no-such-template-here")


@step("errors", "Sandbox.create: time")
async def _():
    await fails(lambda: Plain.create(timeout=400 * 24 * 3600), e2b.SandboxException)
