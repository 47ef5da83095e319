"""Sandboxes: exec, streams, files, copies, the terminal."""

import base64
import io
import json
import threading

import pytest
from websockets.sync.server import serve

import agent_run
from agent_run import CommandFailed, CommandTimeout, Conflict, ConnectionFailed, MergeConflict, NotFound, Timeout
from conftest import BOX, Answer, lines, problem

RESULT = {"exitCode": 0, "stdout": "hello\n", "stderr": "", "language": "python", "duration": 0.01}
EXEC = "sandboxes/0193/exec"


def out(stream, data):
    return {"type": stream, "data": base64.b64encode(data).decode()}


EXIT = {"type": "exit", "result": {"exitCode": 3, "stdout": "", "stderr": "", "language": "shell", "duration": 0.5}}


def test_exec(box, server):
    server.on("POST", EXEC, {**RESULT, "result": "5", "pid": 7})
    r = box.exec("print('hello')\n5", language="python", session="s", env={"A": "b"}, cwd="/tmp", stdin="in", timeout=2.5, root=True)
    assert (r.stdout, r.exit_code, r.result, r.ok, r.pid) == ("hello\n", 0, "5", True, 7)
    assert server.requests[-1].json == {"code": "print('hello')\n5", "language": "python", "session": "s", "env": {"A": "b"}, "dir": "/tmp",
                                        "stdin": "in", "timeout": 2.5, "root": True}
    assert "idempotency-key" not in server.requests[-1].headers
    box.exec(["ls", "-la"])
    assert server.requests[-1].json == {"args": ["ls", "-la"]}
    for bad in ("", [], [1]):
        with pytest.raises((ValueError, TypeError)):
            box.exec(bad)
    with pytest.raises(ValueError):
        box.exec("x", timeout=0)


def test_check(box, server):
    server.on("POST", EXEC, {**RESULT, "exitCode": 2, "stderr": "warning\nno such file\n"})
    assert box.exec("x").exit_code == 2
    with pytest.raises(CommandFailed, match="exit code 2: no such file") as e:
        box.exec("x", check=True)
    assert e.value.result.exit_code == 2 and not e.value.result.ok
    server.on("POST", EXEC, {**RESULT, "exitCode": 124, "timedOut": True, "duration": 1.5})
    with pytest.raises(CommandTimeout, match="1.5 s"):
        box.exec("x", check=True, timeout=1.5)


def test_stream(box, server):
    euro = "€".encode()
    server.on("POST", EXEC, lines({"type": "start", "pid": 12}, out("stdout", b"a" + euro[:1]), out("stdout", euro[1:] + b"b\x85c\xe2\x80\xa8d"),
                                  out("stderr", b"\xff"), EXIT))
    with box.stream("x") as s:
        with pytest.raises(RuntimeError):
            s.result
        events = list(s)
    assert [(e.type, e.text) for e in events] == [("stdout", "a"), ("stdout", "€b\ufffdc\u2028d"), ("stderr", "\ufffd")]
    assert (s.pid, s.result.exit_code, s.result.stdout, s.result.stderr) == (12, 3, "a€b\ufffdc\u2028d", "\ufffd")
    assert server.requests[-1].headers["accept"] == "text/event-stream"
    with pytest.raises(CommandFailed):
        box.stream("x", check=True).wait()


def test_stream_as_server_sent_events(box, server):
    pieces = [b": hello\n\n", b"event: stdout\r\nid: 1\r\ndata: " + json.dumps(out("stdout", b"x")).encode() + b"\r\n\r\n",
              b"event: exit\ndata:" + json.dumps(EXIT).encode() + b"\n\n"]
    server.on("POST", EXEC, Answer(pieces=pieces, content_type="text/event-stream; charset=utf-8"))
    assert box.stream("x").wait().stdout == "x"


def test_callbacks(box, server):
    server.on("POST", EXEC, lines(out("stdout", b"1\n"), out("stderr", b"oh"), out("stdout", b"2\n"), EXIT))
    got = []
    r = box.exec("x", on_stdout=lambda t: got.append(("out", t)), on_stderr=lambda t: got.append(("err", t)))
    assert got == [("out", "1\n"), ("err", "oh"), ("out", "2\n")] and (r.exit_code, r.stdout) == (3, "1\n2\n")
    assert box.exec("x", on_stderr=got.append).stdout == "1\n2\n"
    with pytest.raises(CommandFailed):
        box.exec("x", on_stdout=got.append, check=True)


def test_what_breaks_in_a_stream(box, server):
    server.on("POST", EXEC, lines(out("stdout", b"1\n"), cut=True))
    s = box.stream("x")
    assert next(s).text == "1\n"
    with pytest.raises(ConnectionFailed):
        s.wait()
    server.on("POST", EXEC, lines(out("stdout", b"1\n")))  # a whole answer without an exit
    with pytest.raises(ConnectionFailed, match="cut off"):
        box.exec("x", on_stdout=print)
    server.on("POST", EXEC, lines(out("stdout", b"1\n"), {"type": "error", "error": {"kind": "conflict", "detail": "exec: it ended"}}))
    s = box.stream("x")
    assert next(s).text == "1\n"  # what came before the error isn't lost
    with pytest.raises(Conflict, match="it ended"):
        next(s)
    with pytest.raises(StopIteration):
        next(s)
    server.on("POST", EXEC, problem(409, "conflict", "exec: 0193: it ended at noon"))
    with pytest.raises(Conflict, match="noon"):
        box.stream("x")


def test_callback_that_fails_closes_the_stream(box, server):
    server.on("POST", EXEC, lines(out("stdout", b"1\n"), EXIT))
    with pytest.raises(ZeroDivisionError):
        box.exec("x", on_stdout=lambda t: 1 / 0)


def test_large_output_is_bounded():
    c = agent_run._wire.Collector(1000)
    for i in range(1000):
        c.add(b"%09d\n" % i)
    assert c.truncated and c.text().startswith("000000000\n") and c.text().endswith("000000999\n") and len(c.text()) < 1010
    c = agent_run._wire.Collector(1000)
    c.add(b"x" * 1000)
    assert not c.truncated and len(c.text()) == 1000


def test_background(box, server):
    server.on("POST", EXEC, {**RESULT, "pid": 42})
    p = box.exec("sleep 9", background=True, log="/tmp/log")
    assert p.pid == 42 and server.requests[-1].json == {"code": "sleep 9", "background": True, "log": "/tmp/log"}
    server.on("GET", "sandboxes/0193/processes", {"processes": [{"pid": 42, "args": ["sleep", "9"]}]})
    assert p.is_running() and p.info().args == ["sleep", "9"]
    with pytest.raises(Timeout):
        p.wait(0.05, interval=0.01)
    server.on("DELETE", "sandboxes/0193/processes/42", Answer(None, 204))
    p.kill("KILL")
    assert server.requests[-1].query == {"signal": "KILL"}
    server.on("GET", "sandboxes/0193/processes", {"processes": []})
    p.wait(1)
    assert not p.is_running() and p.info() is None
    server.on("GET", "sandboxes/0193/files", Answer(b"log\xff", content_type="application/octet-stream"))
    assert p.output() == "log\ufffd"
    for options in ({"background": True, "check": True}, {"background": True, "on_stdout": print}, {"log": "/x"}):
        with pytest.raises(ValueError):
            box.exec("x", **options)


# Files.


def test_read(box, server):
    server.on("GET", "sandboxes/0193/files", Answer("grün".encode(), content_type="application/octet-stream"))
    assert box.files.read("/a b&c") == "grün"
    assert server.requests[-1].query == {"path": "/a b&c"}
    assert box.files.read("x", "bytes") == box.files.read_bytes("x") == "grün".encode()
    with box.files.read("x", "stream") as f:
        assert f.size == 5 and b"".join(f) == "grün".encode()
    assert box.files.read("x", "bytes", offset=1, length=2) == b"r\xc3"  # the server knows no ranges
    assert server.requests[-1].headers["range"] == "bytes=1-2"
    server.on("GET", "sandboxes/0193/files", Answer(b"r\xc3", 206))
    assert box.files.read("x", "bytes", offset=1, length=2) == b"r\xc3"
    with pytest.raises(UnicodeDecodeError):
        box.files.read("x")
    assert box.files.read("x", errors="replace") == "r\ufffd"
    server.on("GET", "sandboxes/0193/files", problem(416, "invalid"))
    assert box.files.read("x", offset=100) == ""
    server.on("GET", "sandboxes/0193/files", problem(404, "not found"))
    with pytest.raises(NotFound):
        box.files.read("x")
    for bad in ("", "a\0b"):
        with pytest.raises(ValueError):
            box.files.read(bad)
    with pytest.raises(NotFound):
        box.files.read("\udcff")  # a name that isn't UTF-8
    assert b"%FF" in server.requests[-1].headers.get("x", "").encode() or server.requests[-1].query["path"] == "\ufffd"


def test_write(box, server, tmp_path):
    server.on("PUT", "sandboxes/0193/files", lambda r: {"path": r.query["path"], "name": "x", "type": "file", "size": len(r.body), "mode": 0o644})
    big = bytes(range(256)) * 4000
    local = tmp_path / "local"
    local.write_bytes(big)
    local.chmod(0o750)
    for data in (big, bytearray(big), memoryview(big), io.BytesIO(big), iter([big[:10], big[10:]]), (p for p in [big])):
        assert box.files.write("x", data, mode=0o755).size == len(big)
        r = server.requests[-1]
        assert r.body == big and r.query == {"path": "x", "mode": "0755"}
    assert box.files.write("x", "grün").size == 5
    assert box.files.write("x", "").size == 0
    box.files.upload(local, "dir/")
    assert server.requests[-1].query == {"path": "dir/local", "mode": "0750"} and server.requests[-1].body == big
    with pytest.raises(TypeError):
        box.files.write("x", io.StringIO("x"))
    with pytest.raises(TypeError):
        box.files.write("x", 5)


def test_write_is_repeated_if_the_content_can_be(box, server):
    server.on("PUT", "sandboxes/0193/files", problem(503, "unavailable"), lambda r: {"path": "x", "size": len(r.body)})
    f = io.BytesIO(b"skipped12345")
    f.seek(7)
    assert box.files.write("x", f).size == 5 and server.requests[-1].body == b"12345"
    server.on("PUT", "sandboxes/0193/files", problem(503, "unavailable"), {})
    with pytest.raises(agent_run.Unavailable):
        box.files.write("x", iter([b"once"]))


def test_download(box, server, tmp_path):
    server.on("GET", "sandboxes/0193/files", Answer(b"content"))
    assert box.files.download("x", tmp_path / "y") == 7 and (tmp_path / "y").read_bytes() == b"content"
    server.on("GET", "sandboxes/0193/files", Answer(pieces=[b"con"], cut=True))
    with pytest.raises(ConnectionFailed):
        box.files.download("x", tmp_path / "z")
    assert [p.name for p in tmp_path.iterdir()] == ["y"]


def test_other_file_operations(box, server):
    info = {"path": "/workspace/a", "name": "a", "type": "directory", "size": 0, "mode": 493, "modified": "2026-11-21T18:00:00Z"}
    server.on("GET", "sandboxes/0193/files/list", {"files": [info], "next": "c"}, {"files": [{**info, "type": "file"}]})
    a, b = box.files.list()
    assert a.is_dir and b.is_file and a.mode == 0o755 and server.requests[-1].query == {"path": ".", "cursor": "c"}
    server.on("GET", "sandboxes/0193/files/stat", info)
    assert box.files.exists("a") and box.files.stat("a").name == "a"
    server.on("GET", "sandboxes/0193/files/stat", problem(404, "not found"))
    assert not box.files.exists("a")
    server.on("GET", "sandboxes/0193", problem(404, "not found"))
    with pytest.raises(NotFound):
        box.files.exists("a")
    server.on("POST", "sandboxes/0193/files/mkdir", {})
    box.files.mkdir("d/e", mode=0o700)
    assert server.requests[-1].json == {"path": "d/e", "mode": 448}
    server.on("POST", "sandboxes/0193/files/mkdir", problem(409, "exists"))
    server.on("GET", "sandboxes/0193/files/stat", info)
    box.files.mkdir("d")
    with pytest.raises(agent_run.Exists):
        box.files.mkdir("d", exist_ok=False)
    server.on("GET", "sandboxes/0193/files/stat", {**info, "type": "file"})
    with pytest.raises(agent_run.Exists):
        box.files.mkdir("d")
    server.on("POST", "sandboxes/0193/files/move", Answer(None, 204))
    box.files.move("a", "b")
    assert server.requests[-1].json == {"path": "a", "to": "b"}
    server.on("DELETE", "sandboxes/0193/files", problem(404, "not found"))
    box.files.remove("a", recursive=True, missing_ok=True)
    assert server.requests[-1].query == {"path": "a", "recursive": "true"}
    with pytest.raises(NotFound):
        box.files.remove("a")


def test_watch(box, server):
    server.on("GET", "sandboxes/0193/files/watch", lines({"kind": "ready"}, {"kind": "create", "path": "/workspace/a"},
                                                         {"kind": "rename", "path": "/workspace/a", "to": "/workspace/b"}))
    with box.files.watch(".", recursive=True) as w:
        assert [(e.kind, e.path, e.to) for e in w] == [("create", "/workspace/a", ""), ("rename", "/workspace/a", "/workspace/b")]
    assert server.requests[-1].query == {"path": ".", "recursive": "true"}
    server.on("GET", "sandboxes/0193/files/watch", Answer(pieces=[b'event: ready\ndata: {"kind":"ready"}\n\n:\n\n', b'event: error\ndata: {"kind":"unavailable",',
                                                                  b'"detail":"watch: it ended","type":"x"}\n\n'], content_type="text/event-stream"))
    with box.files.watch() as w, pytest.raises(agent_run.Unavailable, match="it ended"):
        next(w)
    server.on("GET", "sandboxes/0193/files/watch", lines())
    with pytest.raises(ConnectionFailed):
        box.files.watch()


# Copies, and the sandbox's life.


def test_fork_options(box, server):
    server.on("POST", "sandboxes/0193/fork", {"name": "f", "sandboxes": [{**BOX, "id": "a", "name": "f-1"}, {**BOX, "id": "b"}]})
    a, b = box.fork(2, name="f", env={"X": "1"}, kill=True)
    assert server.requests[-1].json == {"count": 2, "name": "f", "env": {"X": "1"}, "kill": True}
    assert (a.id, a.name, b.id) == ("a", "f-1", "b")
    with pytest.raises(ValueError):
        box.fork(0)


def test_diff(box, server):
    server.on("GET", "sandboxes/0193/diff", lines({"progress": {"phase": "diff", "done": 1}}, {"item": {"path": "/workspace/a", "kind": "added", "newSize": 3}},
                                                  {"result": {"from": "0193", "to": "b", "added": 1}}))
    d = box.diff("b", path="/workspace")
    assert (d.before, d.after, d.added, len(d), [c.path for c in d], d.changes[0].new_size) == ("0193", "b", 1, 1, ["/workspace/a"], 3)
    assert server.requests[-1].query == {"to": "b", "path": "/workspace"}
    server.on("GET", "sandboxes/0193/diff", lines({"item": {"path": "/a", "kind": "added"}}))
    with pytest.raises(ConnectionFailed):
        box.diff()
    server.on("GET", "sandboxes/0193/diff", lines({"item": {"path": "/a", "kind": "added"}}, {"error": {"kind": "not found", "detail": "gone"}}))
    with pytest.raises(NotFound):
        box.diff()


def test_merge(box, server):
    server.on("POST", "sandboxes/0193/merge", {"source": "0193", "target": "p", "added": 2})
    assert box.merge().added == 2 and server.requests[-1].json == {"conflicts": "fail"}
    box.merge(box, conflicts="ours", dry_run=True)
    assert server.requests[-1].json == {"into": "0193", "conflicts": "ours", "dryRun": True}
    server.on("POST", "sandboxes/0193/merge", problem(409, "conflict", files={"conflicts": ["/a", "/b"], "moreConflicts": 3}))
    with pytest.raises(MergeConflict) as e:
        box.merge()
    assert e.value.conflicts == ["/a", "/b"] and e.value.more_conflicts == 3
    server.on("POST", "sandboxes/0193/merge", {"source": "0193", "target": "p", "conflicts": ["/a"]})
    with pytest.raises(MergeConflict, match="/a"):
        box.merge()
    assert box.merge(dry_run=True).conflicts == ["/a"]


def test_life(box, server):
    for verb in ("hibernate", "resume", "promote", "extend"):
        server.on("POST", "sandboxes/0193/" + verb, {**BOX, "state": verb})
    assert box.hibernate().state == "hibernate" and box.state == "hibernate" and box.resume().state == "resume"
    assert box.promote().state == "promote" and box.extend(30).state == "extend"
    assert server.requests[-1].json == {"seconds": 30}
    server.on("PATCH", "sandboxes/0193", {**BOX, "name": "n"})
    assert box.change(name="n", labels={"a": None, "b": "c"}).name == "n"
    assert server.requests[-1].json == {"name": "n", "labels": {"a": None, "b": "c"}}
    server.on("POST", "sandboxes/0193/release", Answer(None, 204))
    box.release()
    server.on("POST", "sandboxes/0193/snapshots", {"id": "s1", "sandbox": "0193", "buckets": {"/workspace": "b"}})
    assert box.snapshot("done").buckets == {"/workspace": "b"}
    server.on("GET", "sandboxes/0193/tree", {"sandbox": BOX, "children": [{"sandbox": {**BOX, "id": "c"}, "usage": {"cpuSeconds": 1}}]})
    t = box.tree(root=True)
    assert [s.id for s in t.walk()] == ["0193", "c"] and t.children[0].usage.cpu_seconds == 1.0
    server.on("GET", "sandboxes/0193", {**BOX, "state": "starting"}, BOX)
    assert box.wait().state == "running"
    server.on("GET", "sandboxes/0193", {**BOX, "state": "ended", "reason": "the lease ran out"})
    with pytest.raises(Conflict, match="lease"):
        box.wait()


def test_credentials(box, server):
    server.on("POST", "sandboxes/0193/credentials", {"endpoint": "http://127.0.0.1:7071", "region": "auto", "accessKeyId": "AK", "secretAccessKey": "hush",
                                                     "buckets": {"/workspace": "b"}})
    c = box.credentials()
    assert c.boto3() == {"endpoint_url": "http://127.0.0.1:7071", "region_name": "auto", "aws_access_key_id": "AK", "aws_secret_access_key": "hush"}
    assert "hush" not in repr(c) and c.env()["AWS_SECRET_ACCESS_KEY"] == "hush"


def test_url(box, server):
    assert box.url(8000) == server.url + "/v1/sandboxes/0193/ports/8000/" and box.url(80, "/a/b").endswith("/ports/80/a/b")
    assert box.headers == {"Authorization": "Bearer id.secret"}
    with pytest.raises(ValueError):
        box.url(0)


def test_context_terminates(client, server):
    server.on("POST", "sandboxes", BOX)
    server.on("DELETE", "sandboxes/0193", BOX)
    with client.create("p") as s:
        assert s.id == "0193"
    assert len(server.seen("DELETE", "sandboxes/0193")) == 1
    server.on("DELETE", "sandboxes/0193", problem(404, "not found"))
    with client.create("p"):
        pass
    server.on("DELETE", "sandboxes/0193", problem(500, "other"))
    with pytest.raises(KeyError):
        with client.create("p"):
            raise KeyError("first")
    with pytest.raises(agent_run.ServerError):
        with client.create("p"):
            pass
    server.on("DELETE", "sandboxes/0193", problem(409, "conflict"))
    server.on("GET", "sandboxes/0193", {**BOX, "state": "ended"})
    s = client.create("p")
    s.terminate()
    assert s.state == "ended"


# Events.


def event(n, **more):
    return {"seq": str(n), "kind": "started", "time": "2026-11-21T18:00:00Z", **more}


def sse(*values, **options):
    return Answer(pieces=[b"id: %s\nevent: x\ndata: %s\n\n" % (v["seq"].encode(), json.dumps(v).encode()) for v in values],
                  content_type="text/event-stream", **options)


def test_events_go_on_after_a_break(client, server):
    server.on("GET", "events", sse(event(1), event(2), cut=True), problem(503, "unavailable"), sse(event(2), event(3)), sse(event(4)))
    with client.events(sandbox="0193") as stream:
        got = [next(stream).seq for _ in range(4)]
        assert got == [1, 2, 3, 4] and stream.position == 4
    asked = server.seen("GET", "events")
    assert asked[0].query == {"after": "0", "sandbox": "0193"} and asked[0].headers["accept"] == "text/event-stream"
    assert asked[1].query["after"] == "2" and asked[1].headers["last-event-id"] == "2"


def test_events_without_following(client, server):
    server.on("GET", "events", lambda r: {"events": [] if int(r.query["after"]) >= 3 else [event(int(r.query["after"]) + 1)], "next": "9"})
    assert [e.seq for e in client.events(follow=False)] == [1, 2, 3]
    assert [e.seq for e in client.events(2, follow=False)] == [3]


def test_events_denied(client, server):
    server.on("GET", "events", problem(403, "denied"))
    with pytest.raises(agent_run.Denied):
        next(client.events())


# The terminal.


class Terminal:
    """The server's end of an exec's socket, as a function of the test."""

    def __init__(self, talk):
        self.hello, self.headers = None, None

        def handle(ws):
            self.headers = ws.request.headers
            self.hello = json.loads(ws.recv())
            talk(ws)

        self.ws = serve(handle, "127.0.0.1", 0, subprotocols=["agentrun.exec.v1"])
        self.url = "http://127.0.0.1:%d" % self.ws.socket.getsockname()[1]
        threading.Thread(target=self.ws.serve_forever, daemon=True).start()


@pytest.fixture
def terminal(api):
    made = []

    def make(talk):
        t = Terminal(talk)
        c = api.AgentRun(t.url, "id.secret")
        made.append((t, c))
        inner = c._inner if api.asynchronous else c
        info = agent_run._wire.decode(agent_run.SandboxInfo, BOX)
        if api.asynchronous:
            from conftest import wrap
            return t, wrap(agent_run.AsyncSandbox(inner, info), c._loop)
        return t, agent_run.Sandbox(inner, info)

    yield make
    for t, c in made:
        c.close()
        t.ws.shutdown()


def test_terminal(terminal):
    def talk(ws):
        ws.send(json.dumps({"window": 10}))
        ws.send(b"\x01$ ")
        assert ws.recv() == b"\x00echo hi\n"
        ws.send(b"\x01h")
        ws.send(b"\x01i\n")
        assert json.loads(ws.recv()) == {"resize": {"cols": 100, "rows": 30}}
        assert json.loads(ws.recv()) == {"signal": "INT"}
        assert json.loads(ws.recv()) == {"eof": True}
        ws.send(json.dumps({"exit": 3}))

    t, box = terminal(talk)
    with box.pty(cols=90, rows=20, env={"A": "b"}, cwd="/tmp", timeout=1.5) as p:
        assert p.read_until("$ ") == "$ " and p.exit_code is None
        p.write("echo hi\n")
        assert p.read_until("hi\n") == "hi\n"
        p.resize(100, 30)
        p.kill("INT")
        p.close_stdin()
        assert p.wait(5) == 3 and p.exit_code == 3
        assert p.read() == b""
        with pytest.raises(ConnectionFailed):
            p.write("x")
    assert t.hello == {"args": ["bash", "-l"], "env": ["A=b"], "dir": "/tmp", "timeout": 2, "tty": {"cols": 90, "rows": 20}}
    assert t.headers["Authorization"] == "Bearer id.secret"


def test_window(terminal):
    got = []

    def talk(ws):
        ws.send(json.dumps({"window": 4}))
        while sum(map(len, got)) < 100_000:
            b = ws.recv()
            assert b[:1] == b"\0" and len(b) <= 65537
            got.append(b[1:])
            ws.send(b"\x02" + b"e" * 20)
            ws.send(json.dumps({"window": len(b) - 1 + 30_000}))
        ws.send(b"\x01\xe2\x82")
        ws.send(b"\x01\xac")
        ws.send(json.dumps({"exit": 0}))

    _, box = terminal(talk)
    with box.open(["cat"]) as p:
        p.write(b"x" * 100_000, timeout=10)
        events = list(p)
        assert p.wait() == 0
    assert b"".join(got) == b"x" * 100_000 and len(got[0]) == 4
    assert {e.type for e in events} == {"stdout", "stderr"} and "".join(e.text for e in events if e.type == "stdout") == "€"


def test_slow_reader_and_deaf_command(terminal):
    go = threading.Event()

    def talk(ws):
        for _ in range(100):
            ws.send(b"\x01" + b"y" * 60_000)
        ws.send(json.dumps({"exit": 0}))
        go.wait(10)

    _, box = terminal(talk)
    with box.open(["yes"]) as p:
        with pytest.raises(Timeout):
            p.write("never read", timeout=0.1)
        n = sum(len(e.data) for e in p) if go.set() is None else 0
        assert n == 6_000_000
        assert p.wait(5) == 0


def test_terminal_that_is_closed_or_refused(terminal, client, box, server):
    def talk(ws):
        ws.send(b"\x01" + b"y" * 2_000_000)
        ws.recv()

    _, b = terminal(talk)
    p = b.pty(["top"])
    with b.pty(["top"]) as other, pytest.raises(Timeout):
        other.wait(0.05)
    p.close()
    with pytest.raises(ConnectionFailed):
        p.wait(1)
    server.on("GET", EXEC, problem(409, "conflict", "exec: 0193: it ended"))
    with pytest.raises(Conflict, match="it ended"):
        box.pty()
    for bad in ("", [], [1]):
        with pytest.raises((TypeError, ValueError)):
            box.open(bad)


def test_open_with_text(terminal):
    def talk(ws):
        ws.send(json.dumps({"window": 10}))
        ws.send(json.dumps({"result": {"exitCode": 0, "stdout": "", "stderr": "", "result": "5", "language": "python", "duration": 0.1}}))
        ws.send(json.dumps({"exit": 0}))

    t, box = terminal(talk)
    with box.open("int(input())", language="python", session="s", env={"A": "b"}) as p:
        assert p.wait(5) == 0 and p.result.result == "5" and p.pid == 0
    assert t.hello == {"code": "int(input())", "language": "python", "session": "s", "env": ["A=b"]}


def test_follow(terminal):
    def talk(ws):
        ws.send(json.dumps({"pid": 42}))
        ws.send(b"\x01out")
        ws.send(json.dumps({"exit": 7}))

    t, box = terminal(talk)
    with box.follow(42) as f:
        assert f.read() == b"out" and f.pid == 42 and f.wait(5) == 7
    assert t.hello == {"attach": 42}


def test_terminal_error(terminal):
    def talk(ws):
        ws.send(json.dumps({"error": {"kind": "limit exceeded", "detail": "exec: bash: ended after 1s"}}))

    _, box = terminal(talk)
    with box.pty() as p:
        with pytest.raises(agent_run.LimitExceeded, match="after 1s"):
            p.wait(5)
