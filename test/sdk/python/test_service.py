"""The SDK against a real server: each thing that it offers does what it says."""

import asyncio
import hashlib
import os
import random
import subprocess
import sys
import threading
import time
import uuid
from datetime import timedelta

import httpx
import pytest

from agent_run import (AgentRun, AsyncAgentRun, AsyncSandbox, CommandFailed, CommandTimeout, Conflict, ConnectionFailed, Denied, Exists, Invalid, Lease, MergeConflict,
                       NetworkPolicy, NotEmpty, NotFound, Sandbox, SecretUse, TemplateSpec, Timeout, Unauthorized, VolumeMount)
from conftest import POOL, TEMPLATE


def name(kind):
    return f"{kind}-{uuid.uuid4().hex[:8]}"


# The server and the client.


def test_main(client):
    out = subprocess.run([sys.executable, "-m", "agent_run"], capture_output=True, text=True)
    assert out.returncode == 0 and client.endpoint in out.stdout and client.server().version in out.stdout


def test_wrong_key(client):
    with AgentRun(client.endpoint, "AKWRONG.nonsense-nonsense-nonsense") as c, pytest.raises(Unauthorized):
        c.list()


def test_me(client):
    assert client.me().role == "admin"


def test_tls(client, monkeypatch):
    """The same server behind TLS, with a certificate that nobody knows but who is told."""
    monkeypatch.setenv("AGENTRUN_ENDPOINT", os.environ["TLS_ENDPOINT"])
    monkeypatch.setenv("AGENTRUN_API_KEY", client.config.api_key)
    with pytest.raises(ConnectionFailed, match="AGENTRUN_CA_CERT"):
        AgentRun().server()
    with client.create(POOL) as s, pytest.raises(ConnectionFailed, match="AGENTRUN_CA_CERT"):
        AgentRun().get(s.id)
    monkeypatch.setenv("AGENTRUN_CA_CERT", os.environ["TLS_CA"])
    with AgentRun() as c, c.create(POOL) as s:
        assert s.exec("print('hi')").stdout == "hi\n"
        with s.open(["cat"]) as p:
            p.write("x")
            p.close_stdin()
            assert p.read(20) == b"x"
        monkeypatch.delenv("AGENTRUN_CA_CERT")
        with pytest.raises(ConnectionFailed, match="AGENTRUN_CA_CERT"):
            Sandbox(AgentRun(), s.info).pty()


# Creating.


def test_create_from_pool_and_template(client):
    for options in ({"pool": POOL}, {"template": TEMPLATE}, {"source": POOL}, {"source": TEMPLATE}):
        with client.create(**options) as s:
            assert s.state == "running" and s.exec("echo $FROM_TEMPLATE").stdout == "yes\n"
            assert s.info.template == TEMPLATE and s.info.created.tzinfo is not None
        assert s.refresh().state in ("ending", "ended")
        with pytest.raises(Conflict):
            s.exec("true")


def test_create_errors(client):
    with pytest.raises(NotFound):
        client.create("no-such-pool")
    with pytest.raises(NotFound):
        client.create(template="no-such-template")
    with pytest.raises(NotFound):
        client.create(snapshot="no-such-snapshot")
    with pytest.raises(Invalid):
        client.create(POOL, name="Not a DNS label")
    with pytest.raises(NotFound):
        client.get("no-such-sandbox")


def test_names_and_labels(client):
    n, label = name("box"), name("label")
    with client.create(POOL, name=n, labels={"test": label}) as s:
        assert Sandbox.connect(n).id == s.id == client.get(s.id).id
        with pytest.raises(Conflict):
            client.create(POOL, name=n)
        assert [x.id for x in client.list(labels={"test": label})] == [s.id]
        s.change(labels={"test": None, "more": "x"})
        assert client.get(n).info.labels == {"more": "x"} and client.list(labels={"test": label}) == []


def test_env_and_secrets(client):
    n = name("secret")
    client.secrets.put(n, {"KEY": "hush-hush"})
    assert client.secrets.get(n).keys == ["KEY"]
    with client.create(POOL, env={"SESSION_ID": "abc-123"}, secrets=[SecretUse(n, "KEY"), SecretUse(n, "KEY", env="OTHER", fork="drop")]) as s:
        assert s.exec("echo $SESSION_ID $KEY $OTHER").stdout == "abc-123 hush-hush hush-hush\n"
        assert s.exec("import os; print(os.environ['KEY'])").stdout == "hush-hush\n"
        f, = s.fork()
        with f:
            assert f.exec("echo $KEY-$OTHER").stdout == "hush-hush-\n"
    client.secrets.delete(n)


def test_templates(client):
    n = name("template")
    t = client.templates.create(n, TemplateSpec(image="python:3.12-slim", init=["echo built > /workspace/built", "echo a line of the log"]))
    assert (t.state, t.version, t.progress) == ("ready", 1, 1.0)
    with client.templates.log(n) as log:
        assert any("a line of the log" in line.text for line in log)
    with pytest.raises(Exists):
        client.templates.create(n, TemplateSpec())
    t = client.templates.put(n, TemplateSpec(image="python:3.12-slim", init=["echo again > /workspace/built"]))
    assert t.version == 2 and client.templates.get(n, 1).version == 1
    with client.create(n) as s:
        assert s.files.read("built") == "again\n"
    client.templates.delete(n)
    with pytest.raises(NotFound):
        client.templates.get(n)


# Running.


def test_python(box):
    r = box.exec("x = 20\nprint('hello')\nx + 1")
    assert (r.stdout, r.stderr, r.exit_code, r.result, r.language) == ("hello\n21\n", "", 0, "21", "python")
    assert box.exec("print(x * 2)").stdout == "40\n"
    r = box.exec("1 / 0")
    assert r.exit_code == 1 and "ZeroDivisionError" in r.stderr
    with pytest.raises(CommandFailed, match="ZeroDivisionError"):
        box.exec("1 / 0", check=True)
    assert box.exec("print(x)").stdout == "20\n"
    assert box.exec("print(x)", session="other").exit_code == 1


def test_shell(box):
    r = box.exec("echo out; echo err >&2; exit 3")
    assert (r.stdout, r.stderr, r.exit_code, r.language) == ("out\n", "err\n", 3, "shell")
    assert box.exec("pwd", language="shell").stdout == "/workspace\n"
    assert box.exec("pwd; echo $A", cwd="/tmp", env={"A": "b c"}).stdout == "/tmp\nb c\n"
    assert box.exec("cat | tr a-z A-Z", stdin="grün").stdout.startswith("GR")
    assert box.exec(["printf", "%s|", "a b", "$HOME"]).stdout == "a b|$HOME|"
    box.exec("V=1; cd /tmp", session="s", language="shell")  # it parses as Python, too
    assert box.exec("echo $V; pwd", session="s").stdout == "1\n/tmp\n"
    assert box.exec("echo [$V]").stdout == "[]\n"
    assert box.exec(["no-such-command"]).exit_code == 127


def test_bytes_that_arent_text(box):
    r = box.exec(r"printf '\377\000x'", language="shell")
    assert r.stdout == "\ufffd\0x"
    with box.stream(r"printf '\377\000x'", language="shell") as s:
        assert b"".join(e.data for e in s) == b"\xff\0x"


def test_timeout(box):
    r = box.exec("sleep 30", timeout=0.5)
    assert r.timed_out and r.exit_code == 124 and r.duration < 20
    with pytest.raises(CommandTimeout):
        box.exec("sleep 30", timeout=0.5, check=True)
    r = box.exec("import time\ntime.sleep(30)", timeout=0.5)
    assert r.timed_out and r.exit_code == 124
    assert box.exec("print(1)").stdout == "1\n"


def test_stream(box):
    with box.stream("for i in 1 2 3; do echo $i; until [ -e heard$i ]; do sleep 0.05; done; done; echo e >&2; exit 4") as s:
        events = []
        for e in s:
            events.append((e.type, e.text))
            box.files.write("heard" + e.text.strip(), "")  # they come as they happen: else this would wait for ever
    assert events == [("stdout", "1\n"), ("stdout", "2\n"), ("stdout", "3\n"), ("stderr", "e\n")]
    assert (s.result.exit_code, s.result.stdout, s.result.stderr) == (4, "1\n2\n3\n", "e\n")
    got = []
    r = box.exec("print('a'); import sys; print('b', file=sys.stderr)", on_stdout=got.append, on_stderr=got.append)
    assert "".join(sorted(got)) == "a\nb\n" and r.stdout == "a\n"


def test_a_stream_that_is_left_ends_what_runs(box):
    with box.stream(["sleep", "1000"]) as s:
        deadline = time.monotonic() + 60
        while not any(p.args[:1] == ["sleep"] for p in box.processes()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        del s
    deadline = time.monotonic() + 60
    while any(p.args[:1] == ["sleep"] for p in box.processes()):
        assert time.monotonic() < deadline, "it still runs"
        time.sleep(0.05)


def test_background(box):
    p = box.exec("echo started; until [ -e go-on ]; do sleep 0.05; done; exit 7", background=True, log="/tmp/log")
    assert p.pid > 0 and p.is_running()
    box.files.write("go-on", "")
    p.wait(60)
    assert p.output() == "started\n" and not p.is_running()
    with pytest.raises(NotFound):
        p.kill()
    p = box.exec(["sleep", "1000"], background=True)
    with pytest.raises(Timeout):
        p.wait(0.1)
    assert p.is_running()
    p.kill("KILL")
    p.wait(60)
    with pytest.raises(NotFound):
        p.kill()


def test_javascript(box):
    r = box.exec("const a = [1, 2, 3]; console.log('hi'); a.map(x => x * 2)", language="javascript")
    assert r.exit_code == 0 and r.stdout.startswith("hi\n") and "6" in r.result
    assert box.exec("console.log(a.length)", language="javascript").stdout == "3\n"


def test_much_output(box):
    r = box.exec("head -c 20000000 /dev/zero | tr '\\0' x; echo end", language="shell")
    assert r.truncated and len(r.stdout) <= 8 << 20 and r.stdout.endswith("xend\n")
    with box.stream("head -c 20000000 /dev/zero | tr '\\0' x", language="shell") as s:
        assert sum(len(e.data) for e in s) == 20_000_000


# Terminals.


def test_pty(box):
    with box.pty(cols=97, rows=31) as t:
        t.write("stty size; echo ma''rk\n")
        assert "31 97" in t.read_until("\nmark", timeout=60).replace("\r", "")
        t.resize(50, 20)
        t.write("stty size; echo ma''rk\n")
        assert "20 50" in t.read_until("\nmark", timeout=60).replace("\r", "")
        t.write("exit 5\n")
        assert t.wait(60) == 5


def test_pty_interrupt(box):
    with box.pty(["bash", "-c", "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.1; done"]) as t:
        t.read_until("ready", timeout=60)
        t.write("\x03")
        t.read_until("caught", timeout=60)
        assert t.wait(60) == 9


def test_open(box):
    data = random.Random(1).randbytes(700_000)
    with box.open(["cat"]) as p:
        got = []
        reader = threading.Thread(target=lambda: got.extend(e.data for e in p))
        reader.start()
        p.write(data, timeout=60)
        p.close_stdin()
        reader.join(60)
        assert p.wait(60) == 0 and b"".join(got) == data
    with box.open(["sleep", "1000"]) as p:
        p.kill("TERM")
        assert p.wait(60) == 143
    with box.open("input('name? ')[::-1]", language="python") as p:
        p.write("abc\n")
        p.close_stdin()
        assert p.wait(60) == 0 and p.result.result == "'cba'"


# Files.


def test_files(box):
    f = box.files
    info = f.write("/workspace/deep/er/data.json", '{"key": "grün"}', mode=0o640)
    assert (info.size, info.mode & 0o777, info.type, info.name) == (16, 0o640, "file", "data.json")
    assert f.read("deep/er/data.json") == '{"key": "grün"}'
    assert box.exec("cat deep/er/data.json").stdout == '{"key": "grün"}'
    assert f.read("deep/er/data.json", "bytes", offset=2, length=3) == b"key"
    assert f.read("deep/er/data.json", offset=1000) == ""
    box.exec("ln -s er deep/link; printf '\\377' > bad; mkdir empty")
    assert f.stat("deep/link").type == "symlink" and f.stat("deep/link").target == "er"
    with pytest.raises(UnicodeDecodeError):
        f.read("bad")
    assert f.read_bytes("bad") == b"\xff"
    assert [x.name for x in f.list()] == ["bad", "deep", "empty"]
    assert "/workspace/deep/er/data.json" in [x.path for x in f.list(depth=3)]
    assert f.list("empty") == [] and len(f.list(limit=1)) == 1
    assert f.exists("bad") and not f.exists("good")
    f.move("bad", "good")
    assert f.exists("good") and not f.exists("bad")
    f.mkdir("a/b/c")
    with pytest.raises(Exists):
        f.mkdir("a/b/c", exist_ok=False)
    with pytest.raises(Exists):
        f.mkdir("good")
    with pytest.raises(NotEmpty):
        f.remove("a")
    f.remove("a", recursive=True)
    f.remove("good")
    f.remove("good", missing_ok=True)
    for call in (lambda: f.read("nope"), lambda: f.stat("nope"), lambda: f.remove("nope"), lambda: f.list("nope"), lambda: f.move("nope", "x")):
        with pytest.raises(NotFound):
            call()
    with pytest.raises(Invalid):
        f.read("deep")


def test_odd_names(box):
    for n in ("with space", "ünï/cødé 🙂", "a&b=c?d#e%20", "-rf", "quote'\"", "new\nline", "tab\t", "..."):
        box.files.write(n, n)
        assert box.files.read(n) == n
        box.files.remove(n.split("/")[0], recursive=True)
    assert [x.name for x in box.files.list()] == []


def test_large_file(box, tmp_path):
    data = random.Random(2).randbytes(20 << 20)
    (tmp_path / "up").write_bytes(data)
    assert box.files.upload(tmp_path / "up", "big").size == len(data)
    assert box.exec("sha256sum < big").stdout.split()[0] == hashlib.sha256(data).hexdigest()
    with box.files.read("big", "stream") as pieces:
        h = hashlib.sha256()
        for p in pieces:
            h.update(p)
    assert h.digest() == hashlib.sha256(data).digest()
    assert box.files.download("big", tmp_path / "down") == len(data) and (tmp_path / "down").read_bytes() == data

    def broken():
        yield b"half"
        raise RuntimeError("mine")

    box.files.write("keep", "whole")
    with pytest.raises(RuntimeError, match="mine"):
        box.files.write("keep", broken())
    assert box.files.read("keep") == "whole"


def test_watch(box):
    with box.files.watch(".", recursive=True) as w:
        limit = threading.Timer(60, w.close)
        limit.start()

        def until(*want):
            for e in w:
                if (e.kind, e.path) == want:
                    return e
            raise AssertionError(f"{want} didn't come")

        box.exec("mkdir d", language="shell")
        until("create", "/workspace/d")
        box.files.write("d/f", "x")
        until("create", "/workspace/d/f")
        box.exec("mv d/f d/g", language="shell")
        assert until("rename", "/workspace/d/f").to == "/workspace/d/g"
        box.files.remove("d/g")
        until("remove", "/workspace/d/g")
        limit.cancel()


# Copies.


def test_fork(box):
    box.exec("x = 1")
    box.files.write("base", "b")
    a, b, c = box.fork(3, env={"WHO": "child"})
    try:
        for i, f in enumerate((a, b, c)):
            assert f.info.parent == box.id and f.info.depth == 1
            assert f.exec(f"x += {i}; print(x)").stdout == f"{1 + i}\n"
            f.files.write("own", str(i))
            assert f.exec("echo $WHO").stdout == "child\n"
        assert box.exec("print(x)").stdout == "1\n" and not box.files.exists("own") and a.files.read("base") == "b"
        d, = c.fork(name=name("fork"))
        assert d.exec("print(x)").stdout == "3\n" and d.info.root == box.id and d.name
        tree = box.tree()
        assert sorted(s.id for s in tree.walk()) == sorted(s.id for s in (box, a, b, c, d)) and len(tree.children) == 3
        assert d.tree(root=True).sandbox.id == box.id
        d.terminate()
    finally:
        for f in (a, b, c):
            f.terminate()
    assert len({s.exec("print(__import__('random').random())").stdout for s in [box]}) == 1


def test_forks_differ_in_randomness(box):
    box.exec("import random, os, uuid")
    forks = box.fork(3)
    try:
        assert len({f.exec("print(os.urandom(8).hex(), uuid.uuid4())").stdout for f in forks}) == 3
    finally:
        for f in forks:
            f.terminate()


def test_diff_and_merge(box):
    box.files.write("same", "s")
    box.files.write("changed", "old")
    a, b = box.fork(2)
    with a, b:
        a.files.write("new", "n")
        a.files.write("changed", "by a")
        b.files.write("changed", "by b")
        a.files.remove("same")
        d = a.diff()
        assert [(c.path, c.kind) for c in d] == [("/workspace/changed", "modified"), ("/workspace/new", "added"), ("/workspace/same", "deleted")]
        assert (d.added, d.modified, d.deleted) == (1, 1, 1)
        assert {c.path: c.kind for c in box.diff(a)} == {c.path: c.kind for c in d}
        assert [c.path for c in a.diff(b, path="/workspace/changed")] == ["/workspace/changed"]
        dry = a.merge(dry_run=True)
        assert dry.dry_run and dry.added == 1 and not box.files.exists("new")
        m = a.merge()
        assert (m.added, m.modified, m.deleted, m.target) == (1, 1, 1, box.id)
        assert box.files.read("new") == "n" and box.files.read("changed") == "by a" and not box.files.exists("same")
        with pytest.raises(MergeConflict) as e:
            b.merge(box)
        assert e.value.conflicts == ["/workspace/changed"] and box.files.read("changed") == "by a"
        b.merge(box, conflicts="theirs")
        assert box.files.read("changed") == "by b"


def test_promote(box):
    n = name("main")
    box.change(name=n)
    f, = box.fork()
    with f:
        f.files.write("who", "fork")
        f.promote()
        assert client_of(box).get(n).files.read("who") == "fork"


def client_of(s):
    return s.client


def test_snapshot(client, box):
    box.files.write("f", "then")
    snap = box.snapshot(name("snap"))
    box.files.write("f", "now")
    assert "/workspace" in snap.buckets and snap.sandbox == box.id and [x.id for x in box.snapshots()] == [snap.id]
    for source in (snap, snap.id):
        with client.create(snapshot=source) as s:
            assert s.files.read("f") == "then"
    client.snapshots.delete(snap.id)
    with pytest.raises(NotFound):
        client.snapshots.get(snap.id)


def test_snapshot_memory(client, box):
    box.exec("x = 41")
    snap = box.snapshot(memory=True)
    box.exec("x = 1")
    assert snap.memory
    with client.create(snapshot=snap) as s:
        assert s.exec("print(x + 1)").stdout == "42\n"
    client.snapshots.delete(snap.id)
    assert box.exec("print(x)").stdout == "1\n"


def test_volumes(client, box):
    v = client.volumes.create(name("vol"))
    assert client.volumes.get(v.name).id == v.id and v.id in [x.id for x in client.volumes.list()]
    source = {"template": box.info.template}
    with client.create(volumes=[VolumeMount(v.id, "/data")], **source) as a, client.create(volumes=[VolumeMount(v.name, "/mnt/x")], **source) as b:
        a.files.write("/data/f", "shared")
        assert b.files.read("/mnt/x/f") == "shared"
        assert set(client.volumes.get(v.id).sandboxes) == {a.id, b.id}
        with pytest.raises(NotEmpty):
            client.volumes.delete(v.id)
    client.volumes.delete(v.id)
    with pytest.raises(NotFound):
        client.volumes.get(v.id)


# Its life.


def test_metrics(box):
    box.exec("print(1)")
    last = box.metrics()[-1]
    assert last.cpus > 0 and last.memory_limit > last.memory >= 0 and box.metrics(start=last.time + timedelta(hours=1)) == []


def test_fixed_lease(client, box):
    source = {"template": box.info.template}
    with client.create(lease=Lease(duration=300, mode="fixed", wake="resume"), **source) as s:
        was = s.info.expires
        s.exec("print(1)")
        assert s.refresh().expires == was
        assert s.extend(60, exact=True).expires < was
        assert s.hibernate(force=True).state == "hibernated"
        with pytest.raises(Conflict):
            s.exec("print(1)")
        s.resume()
        assert s.exec("print(2)").stdout == "2\n"
        assert s.change(network=NetworkPolicy()).network == NetworkPolicy()


def test_hibernate(box):
    box.exec("x = 41")
    box.files.write("f", "kept")
    for i in range(2):
        assert box.hibernate().state == "hibernated"
        assert box.refresh().expires is None
        assert box.exec("x += 1; print(x)").stdout == f"{42 + i}\n"
        assert box.refresh().state == "running" and box.files.read("f") == "kept"
    box.hibernate()
    assert box.resume().state == "running"
    box.hibernate()
    f, = box.fork()
    with f:
        assert f.exec("print(x)").stdout == "43\n"


def test_lease(client):
    with client.create(POOL, lease=Lease(duration=100, extend=200)) as s:
        first = s.info.expires
        s.extend(1000)
        assert 900 < (s.info.expires - first).total_seconds() < 1100
        before = s.info.expires
        assert s.extend(10).expires >= before  # never earlier
    with client.create(POOL, lease=Lease(duration=1, extend=1, on_expiry="end")) as s:
        deadline = time.monotonic() + 60
        while s.refresh().state not in ("ended", "ending"):
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_release(client):
    with client.create(POOL) as s:
        s.files.write("f", "x")
        s.release()
        with pytest.raises((Conflict, NotFound)):
            s.exec("true")


def test_usage(client, box):
    box.exec("sum(range(3000000))")
    u = box.usage()
    assert u.cpu_seconds > 0 and u.seconds > 0
    assert client.usage().cpu_seconds > 0


def test_reservations_claims_forks(client):
    r = client.pools.reserve(POOL, 30)
    with client.create(reservation=r) as s:
        assert s.state == "running"
    r = client.pools.reserve(POOL)
    client.pools.unreserve(r)
    n = name("claim")
    claim = client.claims.put(n, pool=POOL, env={"SESSION_ID": "abc-123"})
    assert client.claims.put(n, pool=POOL, env={"SESSION_ID": "abc-123"}).sandbox == claim.sandbox
    with pytest.raises(Conflict):
        client.claims.put(n, pool=POOL, env={"SESSION_ID": "other"})
    s = client.get(claim.sandbox)
    assert s.exec("echo $SESSION_ID").stdout == "abc-123\n"
    f = client.forks.put(name("attempt"), s.id, 3)
    assert f.state == "ready" and len(client.forks.get(f.name).sandboxes) == 3
    client.forks.delete(f.name)
    client.claims.delete(n)
    assert s.refresh().state in ("ending", "ended")


def test_events(client):
    with client.create(POOL) as s:
        f, = s.fork()
        f.terminate()
        s.hibernate()
        s.resume()
        with client.events(sandbox=s.id, follow=False) as stream:
            seen = list(stream)
        kinds = [e.kind for e in seen]
        assert [k for k in kinds if k in ("claimed", "hibernated", "resumed")] == ["claimed", "hibernated", "resumed"]
        forked, = client.events(sandbox=f.id, kind="forked", follow=False)
        assert forked.data["parent"] == s.id
        middle = seen[1].seq
        assert [e.seq for e in client.events(middle, sandbox=s.id, follow=False)] == [e.seq for e in seen[2:]]
        with client.events(stream.position, sandbox=s.id) as following:
            threading.Timer(0.3, s.terminate).start()
            assert any(e.kind == "ended" for e in following)


def test_credentials(client, box):
    import boto3

    box.files.write("/workspace/dir/f", "by the sandbox")
    c = box.credentials()
    s3, bucket = boto3.client("s3", **c.boto3()), c.buckets["/workspace"]
    assert s3.get_object(Bucket=bucket, Key="dir/f")["Body"].read() == b"by the sandbox"
    s3.put_object(Bucket=bucket, Key="g", Body=b"by boto3")
    assert box.files.read("g") == "by boto3" and box.exec("cat g").stdout == "by boto3"
    with client.create(POOL) as other:
        with pytest.raises(Exception, match="AccessDenied|403"):
            s3.list_objects_v2(Bucket=other.credentials().buckets["/workspace"])


def test_port(box):
    box.files.write("index.html", "served from inside")
    p = box.exec(["python3", "-m", "http.server", "8000"], background=True, log="/tmp/http.log")
    deadline = time.monotonic() + 60
    while True:
        r = httpx.get(box.url(8000, "/index.html"), headers=box.headers, trust_env=False)
        if r.status_code == 200:
            break
        assert time.monotonic() < deadline, (r.status_code, r.text, p.output())
        time.sleep(0.2)
    assert r.text == "served from inside"
    assert httpx.get(box.url(8001), headers=box.headers, trust_env=False).status_code == 502


# Who may.


def test_principals(client):
    n = name("ann")
    client.principals.put(n, "user", kind="user")
    key = client.keys.create(n)
    with AgentRun(client.endpoint, key.api_key) as ann, client.create(POOL) as mine:
        assert ann.me().name == n and ann.list() == []
        with pytest.raises(NotFound):
            ann.get(mine.id)
        with ann.create(POOL) as hers:
            assert hers.info.owner == n and hers.exec("echo hi").stdout == "hi\n"
        with pytest.raises(Denied) as e:
            ann.pools.put(name("pool"), TEMPLATE, 1)
        assert e.value.rule
        assert ann.usage().seconds >= 0
    client.principals.delete(n)


def test_conversations(client):
    agent, chat = name("agent"), name("chat")
    client.agents.put(agent, "fresh-per-chat", pool=POOL)
    c = client.conversations.attach(chat, agent=agent)
    assert c.sandbox and client.conversations.get(chat).sandbox == c.sandbox
    assert client.conversations.attach(chat, agent=agent).sandbox == c.sandbox
    assert [s.id for s in client.list(conversation=chat)] == [c.sandbox]
    assert client.conversations.detach(chat).sandbox == ""
    client.get(c.sandbox).terminate()
    client.conversations.end(chat)
    client.agents.delete(agent)


def test_audit(client):
    with client.create(POOL) as s:
        s.fork()[0].terminate()
    assert client.audit.verify().broken == 0
    entries = client.audit.list(action="sandbox.fork")
    assert entries and all(e.action == "sandbox.fork" and e.allowed for e in entries)


# The asynchronous half.


def test_async(client):
    async def work():
        async with AsyncAgentRun() as c:
            async with await c.create(POOL) as s:
                assert (await s.exec("x = 2\nprint('hi')")).stdout == "hi\n"
                forks = await s.fork(5)
                results = await asyncio.gather(*(f.exec(f"print(x ** {i})") for i, f in enumerate(forks)))
                assert [r.stdout for r in results] == [f"{2 ** i}\n" for i in range(5)]
                await forks[0].files.write("f", "async")
                assert await forks[0].files.read("f") == "async"
                assert [ch.path for ch in await forks[0].diff()] == ["/workspace/f"]
                async with await s.stream("echo 1; until [ -e heard ]; do sleep 0.05; done; echo 2") as out:
                    said = []
                    async for e in out:
                        said.append(e.text)
                        await s.files.write("heard", "")
                    assert said == ["1\n", "2\n"]
                async with await s.pty() as t:
                    await t.write("echo ma''rk\n")
                    await t.read_until("mark\r\n", timeout=60)
                    await t.write("exit 3\n")
                    assert await t.wait(60) == 3
                async with await s.files.watch() as w:
                    await s.files.write("seen", "x")
                    async for e in w:
                        if e.path == "/workspace/seen":
                            break
                await asyncio.gather(*(f.terminate() for f in forks))
            async with c.events(sandbox=s.id, follow=False) as events:
                assert "ended" in [e.kind async for e in events]
            with pytest.raises(Conflict):
                await s.exec("true")
            with pytest.raises(NotFound):
                await c.get("nobody")

    asyncio.run(work())


def test_async_many_at_once(client):
    async def one(i):
        async with await AsyncSandbox.create(TEMPLATE) as s:
            return (await s.exec(f"print({i} * {i})")).stdout

    async def work():
        return await asyncio.gather(*(one(i) for i in range(12)))

    assert asyncio.run(work()) == [f"{i * i}\n" for i in range(12)]


def test_async_cancel(client):
    async def work():
        async with await AsyncSandbox.create(POOL) as s:
            task = asyncio.ensure_future(s.exec(["sleep", "1000"]))
            while not [p for p in await s.processes() if p.args[:1] == ["sleep"]]:
                await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            for _ in range(1200):
                if not [p for p in await s.processes() if p.args[:1] == ["sleep"]]:
                    return
                await asyncio.sleep(0.05)
            raise AssertionError("it still runs")

    asyncio.run(work())


def test_many_threads(client, box):
    results, errors = [], []

    def work(i):
        try:
            results.append(box.exec(f"echo {i}").stdout)
        except Exception as e:  # told below
            errors.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and sorted(results) == sorted(f"{i}\n" for i in range(16))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system doesn't fork processes")
def test_after_a_fork_of_this_process(client):
    """A child process has connections of its own."""
    with Sandbox.create(POOL) as s:
        pid = os.fork()
        if pid == 0:
            ok = False
            try:
                with Sandbox.create(POOL) as mine:
                    ok = mine.exec("echo child").stdout == "child\n"
            finally:
                os._exit(0 if ok else 1)
        assert s.exec("echo parent").stdout == "parent\n"
        assert os.waitpid(pid, 0)[1] == 0
