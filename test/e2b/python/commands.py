"""Commands, their streams and signals, terminals."""
import e2b
from kit import ASYNC, a, equal, fails, shared, since, step, until

box = shared(envs={"FROM": "sandbox"}, timeout=240)
Exit = e2b.CommandExitException


async def ended(s, pid):
    return not any(p.pid == pid for p in await a(s.commands.list())) or None


@step("commands", "Commands.run")
async def _():
    s = await box()
    r = await a(s.commands.run("echo out; echo err >&2"))
    equal((r.exit_code, r.stdout, r.stderr, r.error or None), (0, "out\n", "err\n", None))
    e = await fails(lambda: s.commands.run("echo before; echo wrong >&2; exit 3"), Exit)
    equal((e.exit_code, e.stdout, e.stderr), (3, "before\n", "wrong\n"))


@step("commands", "Commands.run: directory")
async def _():
    s = await box()
    equal((await a(s.commands.run("pwd"))).stdout, "/home/user\n")
    equal((await a(s.commands.run("pwd", cwd="/tmp"))).stdout, "/tmp\n")
    await fails(lambda: s.commands.run("pwd", cwd="/no/such/directory"), e2b.InvalidArgumentException, "no/such/directory")


@step("commands", "Commands.run: environment")
async def _():
    s = await box()
    equal((await a(s.commands.run('echo "$FROM $OWN"', envs={"OWN": "it's 'own' $HOME"}))).stdout, "sandbox it's 'own' $HOME\n")
    equal((await a(s.commands.run("echo $E2B_SANDBOX $E2B_SANDBOX_ID"))).stdout, "true %s\n" % s.sandbox_id)


@step("commands", "Commands.run: users")
async def _():
    s = await box()
    equal((await a(s.commands.run("id -un"))).stdout, "user\n")
    equal((await a(s.commands.run("id -u; pwd", user="root"))).stdout, "0\n/root\n")


@step("commands", "Commands.run: streams")
async def _():
    s = await box()
    out, err = [], []
    r = await a(s.commands.run("for i in 1 2 3; do echo line $i; sleep 1; done; echo bad >&2", on_stdout=out.append, on_stderr=err.append))
    equal("".join(out), "line 1\nline 2\nline 3\n")
    assert len(out) >= 2, out
    equal(("".join(err), r.stdout), ("bad\n", "line 1\nline 2\nline 3\n"))


@step("commands", "Commands.run: much output")
async def _():
    s = await box()
    r = await a(s.commands.run('head -c 3000000 /dev/zero | tr "\\0" x; echo; printf "äöü€😀%.0s" $(seq 1 2000)'))
    x, text = r.stdout.split("\n")
    equal((len(x), text == "äöü€😀" * 2000), (3000000, True))


@step("commands", "Commands.run: timeout")
async def _():
    s = await box()
    await fails(lambda: s.commands.run("sleep 50", timeout=1), e2b.TimeoutException)


@step("commands", "Commands.run: background")
async def _():
    s = await box()
    h = await a(s.commands.run("echo begun; sleep 0.3; echo ended; exit 4", background=True))
    assert h.pid > 0
    e = await fails(h.wait, Exit)
    equal((e.exit_code, e.stdout), (4, "begun\nended\n"))


@step("commands", "CommandHandle.wait")
async def _():
    s = await box()
    h = await a(s.commands.run("sleep 0.2; echo done", background=True))
    r = await a(h.wait())
    equal((r.exit_code, r.stdout, r.stderr), (0, "done\n", ""))


@step("commands", "CommandHandle.kill")
async def _():
    s = await box()
    h = await a(s.commands.run("echo up; sleep 100", background=True))
    equal(await a(h.kill()), True)
    e = await fails(h.wait, Exit)
    assert e.exit_code != 0
    equal(await a(h.kill()), False)


@step("commands", "Commands.kill")
async def _():
    s = await box()
    h = await a(s.commands.run('trap "" TERM; sleep 100', background=True))
    equal(await a(s.commands.kill(h.pid)), True)
    await fails(h.wait, Exit)
    equal(await a(s.commands.kill(h.pid)), False)
    equal(await a(s.commands.kill(999999)), False)


@step("commands", "Commands.list")
async def _():
    s = await box()
    h = await a(s.commands.run("sleep 77", background=True, cwd="/tmp", envs={"SEEN": "yes"}))
    p = [x for x in await a(s.commands.list()) if x.pid == h.pid][0]
    equal((p.cmd, list(p.args), p.cwd, p.envs["SEEN"]), ("/bin/bash", ["-l", "-c", "sleep 77"], "/tmp", "yes"))
    await a(h.kill())
    await until("its end", lambda: ended(s, h.pid))


@step("commands", "Commands.send_stdin")
async def _():
    s = await box()
    h = await a(s.commands.run('read a; echo "got $a"', background=True, stdin=True))
    await a(s.commands.send_stdin(h.pid, "øne\n"))
    equal((await a(h.wait())).stdout, "got øne\n")
    await fails(lambda: s.commands.send_stdin(999999, "x"), e2b.SandboxException)


@step("commands", "Commands.close_stdin", since("2.63.0"))
async def _():
    s = await box()
    h = await a(s.commands.run("cat; echo at its end", background=True, stdin=True))
    await a(s.commands.send_stdin(h.pid, "text\n"))
    await a(s.commands.close_stdin(h.pid))
    equal((await a(h.wait())).stdout, "text\nat its end\n")


@step("commands", "CommandHandle.send_stdin", since("2.63.0"))
async def _():
    s = await box()
    h = await a(s.commands.run("cat", background=True, stdin=True))
    await a(h.send_stdin("by the handle"))
    await a(h.close_stdin())
    equal((await a(h.wait())).stdout, "by the handle")


@step("commands", "CommandHandle.close_stdin", since("2.63.0"))
async def _():
    s = await box()
    h = await a(s.commands.run("wc -c", background=True, stdin=True))
    await a(h.close_stdin())
    equal((await a(h.wait())).stdout.strip(), "0")


async def stream(of, pid, *data):
    """Streams input in: the synchronous face takes all of it, the asynchronous one a part at a time."""
    if not ASYNC:
        return of.stream_input(pid, list(data))
    async with of.stream_input(pid) as into:
        for d in data:
            await into.send(d)


@step("commands", "Commands.stream_input", since("2.63.0"))
async def _():
    s = await box()
    h = await a(s.commands.run("head -n 3", background=True, stdin=True))
    await stream(s.commands, h.pid, "one\n", b"two\n", "three\n")
    equal((await a(h.wait())).stdout, "one\ntwo\nthree\n")


@step("commands", "Commands.connect")
async def _():
    s = await box()
    h = await a(s.commands.run("until [ -e /tmp/connected ]; do sleep 0.1; done; for i in 1 2 3; do echo tick $i; sleep 0.2; done; exit 6", background=True))
    again = await a(s.commands.connect(h.pid))
    equal(again.pid, h.pid)
    await a(s.files.write("/tmp/connected", ""))
    e = await fails(again.wait, Exit)
    equal((e.exit_code, e.stdout), (6, "tick 1\ntick 2\ntick 3\n"))
    await fails(lambda: s.commands.connect(999999), e2b.SandboxException)


@step("commands", "CommandHandle.disconnect")
async def _():
    s = await box()
    h = await a(s.commands.run("while ! [ -e /tmp/go-on ]; do sleep 0.1; done; echo went on >/tmp/went", background=True))
    await a(h.disconnect())
    await a(s.files.write("/tmp/go-on", ""))

    async def went():
        return (await a(s.files.exists("/tmp/went"))) and (await a(s.files.read("/tmp/went"))) == "went on\n" or None
    await until("the command to go on", went)


term = shared(timeout=240)


async def terminal(s, seen, **kw):
    if ASYNC:
        return await s.pty.create(size=e2b.PtySize(rows=24, cols=80), on_data=lambda d: seen.append(bytes(d)), timeout=0, **kw)
    return s.pty.create(size=e2b.PtySize(rows=24, cols=80), timeout=0, **kw)


async def there(s, path):
    return (await a(s.files.exists(path))) or None


async def finish(h, seen):
    """What the terminal showed until its end."""
    try:
        if ASYNC:
            await h.wait()
        else:
            h.wait(on_pty=lambda d: seen.append(bytes(d)))
    except Exit:
        pass
    return b"".join(seen).decode()


@step("pty", "Pty.create")
async def _():
    s, seen = await term(), []
    h = await terminal(s, seen, cwd="/tmp", envs={"INSIDE": "pty"})
    await a(s.pty.send_stdin(h.pid, b'echo "$INSIDE:$PWD:$TERM"; exit\n'))
    assert "pty:/tmp:xterm" in await finish(h, seen), seen


@step("pty", "Pty.send_stdin")
async def _():
    s, seen = await term(), []
    h = await terminal(s, seen)
    await a(s.pty.send_stdin(h.pid, b"bash -c 'trap \"echo >/tmp/interrupted; exit\" INT; echo >/tmp/waiting; while :; do sleep 0.1; done'\n"))
    await until("a program", lambda: there(s, "/tmp/waiting"))
    await a(s.pty.send_stdin(h.pid, b"\x03"))
    await until("its end", lambda: there(s, "/tmp/interrupted"))
    await a(s.pty.send_stdin(h.pid, b"echo after-$((40+2)); exit\n"))
    assert "after-42" in await finish(h, seen), seen


@step("pty", "Pty.stream_input", since("2.63.0"))
async def _():
    s, seen = await term(), []
    h = await terminal(s, seen)
    await stream(s.pty, h.pid, b"echo str", b"eamed-$((1+1))\n", b"exit\n")
    assert "streamed-2" in await finish(h, seen), seen


@step("pty", "Pty.resize")
async def _():
    s, seen = await term(), []
    h = await terminal(s, seen)
    await a(s.pty.resize(h.pid, e2b.PtySize(rows=43, cols=132)))
    await a(s.pty.send_stdin(h.pid, b"stty size; exit\n"))
    assert "43 132" in await finish(h, seen), seen


@step("pty", "Pty.connect", since("2.63.0"))
async def _():
    s, seen = await term(), []
    h = await terminal(s, seen)
    await a(h.disconnect())
    if ASYNC:
        again = await s.pty.connect(h.pid, on_data=lambda d: seen.append(bytes(d)))
    else:
        again = s.pty.connect(h.pid)
    await a(s.pty.send_stdin(h.pid, b"echo again-$((1+1)); exit\n"))
    assert "again-2" in await finish(again, seen), seen


@step("pty", "Pty.kill")
async def _():
    s, seen = await term(), []
    h = await terminal(s, seen)
    equal(await a(s.pty.kill(h.pid)), True)
    await finish(h, seen)
    equal(await a(s.pty.kill(h.pid)), False)
