"""The client: what it sends, what it makes of answers, when it asks again."""

import json
import subprocess
import sys
import time

import pytest

import agent_run
from agent_run import (Conflict, ConnectionFailed, Denied, Invalid, Lease, LimitExceeded, NetworkPolicy, NotFound, Rate, Resources, SecretUse, ServerError,
                       TemplateSpec, Timeout, Unauthorized, Unavailable, Unsupported, Volume, VolumeSource)
from conftest import BOX, Answer, problem


def test_create_tells_what_is_given_and_nothing_else(client, server):
    server.on("POST", "sandboxes", BOX)
    s = client.create("pool-1", name="one", env={"A": "b"}, secrets=[SecretUse("agent-secrets", "KEY", env="TOKEN")], lease=Lease(duration=60),
                      network=NetworkPolicy(), labels={"team": "red"})
    r, = server.seen("POST", "sandboxes")
    assert r.json == {"pool": "pool-1", "name": "one", "env": {"A": "b"}, "secrets": [{"secretRef": {"name": "agent-secrets", "key": "KEY"}, "env": "TOKEN"}],
                      "lease": {"duration": 60}, "network": {}, "labels": {"team": "red"}}
    assert r.headers["authorization"] == "Bearer id.secret"
    assert r.headers["user-agent"].startswith("agent-run/")
    assert len(r.headers["idempotency-key"]) == 36
    assert (s.id, s.state, s.info.lease.duration, s.info.created.microsecond) == ("0193", "running", 600, 123456)
    assert s.info.created.utcoffset().total_seconds() == 0


def test_create_of_a_template_if_there_is_no_such_pool(client, server):
    server.on("POST", "sandboxes", problem(404, "not found", "create: python: no such pool"), BOX)
    server.on("GET", "templates/python", {"name": "python", "version": 1, "state": "ready"})
    assert client.create("python").id == "0193"
    assert [r.json for r in server.seen("POST", "sandboxes")] == [{"pool": "python"}, {"template": "python"}]
    keys = {r.headers["idempotency-key"] for r in server.seen("POST", "sandboxes")}
    assert len(keys) == 2


def test_create_of_what_is_neither(client, server):
    server.on("POST", "sandboxes", problem(404, "not found", "create: nope: no such pool"))
    with pytest.raises(NotFound, match="no such pool"):
        client.create("nope")
    assert len(server.seen("POST", "sandboxes")) == 1


def test_create_of_a_pool_whose_secret_is_missing(client, server):
    server.on("POST", "sandboxes", problem(404, "not found", "create: secret x: not found"))
    server.on("GET", "pools/p", {"name": "p", "spec": {"template": "t", "replicas": 1}})
    with pytest.raises(NotFound, match="secret x"):
        client.create("p", secrets=[SecretUse("x", "k")])
    assert len(server.seen("POST", "sandboxes")) == 1


@pytest.mark.parametrize("arguments", [{}, {"pool": "a", "template": "b"}, {"pool": "a", "snapshot": "b"}])
def test_create_wants_one_source(client, server, arguments):
    with pytest.raises(ValueError):
        client.create(**arguments)
    assert not server.requests


@pytest.mark.parametrize("status,kind,cls", [
    (400, "invalid", Invalid), (401, "unauthorized", Unauthorized), (403, "denied", Denied), (404, "not found", NotFound),
    (409, "conflict", Conflict), (409, "exists", agent_run.Exists), (409, "not empty", agent_run.NotEmpty), (412, "precondition failed",
    agent_run.PreconditionFailed), (413, "too large", agent_run.TooLarge), (429, "limit exceeded", LimitExceeded), (500, "other", ServerError),
    (500, "corrupt", agent_run.Corrupt), (501, "unsupported", Unsupported), (503, "unavailable", Unavailable), (507, "no space", agent_run.NoSpace),
    (499, "canceled", agent_run.Canceled), (418, "of the future", ServerError), (404, "of the future", NotFound)])
def test_errors_have_the_class_of_their_kind(client, server, status, kind, cls):
    server.on("GET", "sandboxes/x", problem(status, kind, "exec: x: it ended", hint="make another", request="r1", rule="owner", thing="x"))
    with pytest.raises(cls) as e:
        client.get("x")
    assert type(e.value) is cls
    assert str(e.value) == "exec: x: it ended (make another)"
    assert (e.value.kind, e.value.status, e.value.hint, e.value.request_id, e.value.thing) == (kind, status, "make another", "r1", "x")
    if cls is Denied:
        assert e.value.rule == "owner"


def test_exists_is_a_conflict_and_timeout_is_pythons():
    assert issubclass(agent_run.Exists, Conflict) and issubclass(Timeout, TimeoutError) and issubclass(ConnectionFailed, Unavailable)
    assert issubclass(agent_run.CommandTimeout, agent_run.CommandFailed) and issubclass(agent_run.CommandTimeout, Timeout)


def test_what_isnt_agentrun(client, server):
    server.on("GET", "server", Answer(b"<Error/>", 403, content_type="application/xml"))
    with pytest.raises(Unavailable, match="not AgentRun's API: answered 403.*7070"):
        client.server()
    server.on("GET", "server", Answer(b"<html>", 200, content_type="text/html"))
    with pytest.raises(Unavailable, match="not JSON"):
        client.server()
    server.on("GET", "server", Answer([1]))
    with pytest.raises(Unavailable, match="want an object"):
        client.server()
    server.on("GET", "server", Answer(None, 302, {"Location": "http://127.0.0.1:1/steal-the-key"}))
    with pytest.raises(Unavailable, match="302"):
        client.server()


def test_refusals_are_repeated(client, server):
    server.on("POST", "sandboxes", problem(503, "unavailable", headers={"Retry-After": "1"}), problem(429, "limit exceeded"), BOX)
    assert client.create(pool="p").id == "0193"
    sent = server.seen("POST", "sandboxes")
    assert len(sent) == 3 and len({r.headers["idempotency-key"] for r in sent}) == 1


def test_repetition_ends(client, server):
    server.on("GET", "server", problem(503, "unavailable"))
    with pytest.raises(Unavailable):
        client.server()
    assert len(server.seen("GET", "server")) == 3


def test_broken_connections(client, server, box):
    server.on("GET", "server", "drop", {"version": "1"})
    assert client.server().version == "1"
    server.on("POST", "sandboxes/0193/fork", "drop", {"name": "f", "sandboxes": [BOX, {**BOX, "id": "2"}]})
    assert [s.id for s in box.fork(2)] == ["0193", "2"]
    a, b = server.seen("POST", "sandboxes/0193/fork")
    assert a.headers["idempotency-key"] == b.headers["idempotency-key"] and a.json == {"count": 2}
    server.on("POST", "sandboxes/0193/exec", "drop", {"exitCode": 0, "stdout": "", "stderr": "", "language": "shell", "duration": 0})
    with pytest.raises(ConnectionFailed):
        box.exec("rm -rf once")
    assert len(server.seen("POST", "sandboxes/0193/exec")) == 1  # it may have been run
    server.on("POST", "sandboxes/0193/exec", problem(503, "unavailable"), {})
    with pytest.raises(Unavailable):
        box.exec("lost in the middle")
    server.on("POST", "sandboxes/0193/exec", problem(429, "limit exceeded"), {"exitCode": 0, "stdout": "ok", "stderr": "", "language": "shell", "duration": 0})
    assert box.exec("refused first").stdout == "ok"


def test_a_repetition_that_comes_too_early(client, server):
    busy = problem(409, "conflict", "idempotency key: k: the first request of this key is still being answered")
    busy.data = busy.data.replace(b'"op": "it"', b'"op": "idempotency key"')
    server.on("POST", "sandboxes", "drop", busy, BOX)
    assert client.create(pool="p").id == "0193"
    server.on("POST", "sandboxes", busy, BOX)
    with pytest.raises(Conflict):
        client.create(pool="p")


def test_nobody_there(api):
    with api.AgentRun("http://127.0.0.1:1", retry=agent_run.Retry(attempts=2, base=0.01)) as c:
        with pytest.raises(ConnectionFailed, match="agentrun up"):
            c.server()


def test_timeout(api, server):
    server.on("GET", "server", lambda r: time.sleep(2) or {})
    with api.AgentRun(server.url, timeout=0.2) as c:
        with pytest.raises(Timeout):
            c.server()
    assert len(server.seen("GET", "server")) == 1


def test_pages(client, server):
    server.on("GET", "sandboxes", lambda r: {"sandboxes": [{**BOX, "id": "b"}]} if r.query.get("cursor") == "c&=" else {"sandboxes": [BOX], "next": "c&="})
    assert [s.id for s in client.list(state="any", labels={"a": "b", "c": "d"})] == ["0193", "b"]
    r = server.seen("GET", "sandboxes")[0]
    assert r.query == {"state": "any", "label": ["a=b", "c=d"]}
    assert [s.id for s in client.list(limit=1)] == ["0193"]
    assert server.requests[-1].query == {"limit": "1"}


def test_names_are_escaped(client, server):
    for name, raw in (("a/b?c", "a%2Fb%3Fc"), ("..", "%2E%2E"), ("ü", "%C3%BC")):
        with pytest.raises(NotFound):
            client.get(name)
        assert server.requests[-1].raw_path == "/v1/sandboxes/" + raw
    with pytest.raises(ValueError):
        client.get("")


def test_templates(client, server):
    spec = TemplateSpec(image="python:3.12-slim", init=["pip install x"], resources=Resources(cpu=1, memory=agent_run.size("512Mi")),
                        volumes=[Volume("workspace", size=agent_run.size("5Gi"), fork_policy="Snapshot"),
                                 Volume("data", read_only=True, fork_policy="Share", source=VolumeSource(bucket="sets"))],
                        network=NetworkPolicy("deny", ["api.openai.com:443"]))
    wire = {"image": "python:3.12-slim", "init": ["pip install x"], "resources": {"cpu": 1, "memory": 512 << 20},
            "volumes": [{"name": "workspace", "size": 5 << 30, "forkPolicy": "Snapshot"},
                        {"name": "data", "readOnly": True, "forkPolicy": "Share", "source": {"bucket": "sets"}}],
            "network": {"egress": "deny", "allow": ["api.openai.com:443"]}}
    t = {"name": "t", "version": 2, "spec": wire, "state": "building", "progress": 0.5}
    server.on("PUT", "templates/t", t)
    server.on("GET", "templates/t", t, {**t, "state": "ready", "progress": 1})
    got = client.templates.put("t", spec)
    assert server.seen("PUT", "templates/t")[0].json == wire
    assert got.state == "ready" and got.spec == spec
    assert server.seen("GET", "templates/t")[0].query == {"version": "2"}
    server.on("GET", "templates/t", {**t, "state": "failed", "error": "init line 1: exit status 1"})
    server.on("GET", "templates/t/log", Answer(pieces=[b'{"time":"2026-11-21T18:00:00Z","text":"no such package"}\n'], content_type="application/x-ndjson"))
    with pytest.raises(agent_run.BuildFailed, match="init line 1") as e:
        client.templates.put("t", wire)
    assert e.value.log == ["no such package"]
    server.on("POST", "templates", problem(409, "exists"))
    with pytest.raises(agent_run.Exists):
        client.templates.create("t", spec, labels={"a": "b"})
    assert server.seen("POST", "templates")[0].json == {"name": "t", "spec": wire, "labels": {"a": "b"}}


def test_rates(client, server):
    spec = TemplateSpec(engine="microvm", resources=Resources(memory=1 << 30, disk_rate=Rate(bytes_per_second=20 << 20, burst_operations=5),
                                                              network_in_rate=Rate(operations_per_second=7)))
    wire = {"engine": "microvm", "resources": {"memory": 1 << 30, "diskRate": {"bytesPerSecond": 20 << 20, "burstOperations": 5},
                                               "networkInRate": {"operationsPerSecond": 7}}}
    server.on("PUT", "templates/t", {"name": "t", "version": 1, "spec": wire, "state": "ready", "progress": 1})
    assert client.templates.put("t", spec, wait=False).spec == spec
    assert server.seen("PUT", "templates/t")[0].json == wire


def test_pools(client, server):
    p = {"name": "p", "spec": {"template": "t", "replicas": 2}, "ready": 0, "state": "filling"}
    server.on("PUT", "pools/p", p)
    server.on("GET", "pools/p", p, {**p, "ready": 2, "state": "ready"})
    assert client.pools.put("p", "t", 2, max_sandboxes=5, wait=True).ready == 2
    assert server.seen("PUT", "pools/p")[0].json == {"template": "t", "replicas": 2, "maxSandboxes": 5}
    client.pools.put("p", "t", 0)
    assert server.seen("PUT", "pools/p")[1].json == {"template": "t", "replicas": 0}
    server.on("POST", "reservations", {"id": "r1", "pool": "p", "expires": "2026-11-21T18:00:00Z"})
    server.on("POST", "sandboxes", BOX)
    r = client.pools.reserve("p", 30)
    client.create(reservation=r)
    assert server.seen("POST", "sandboxes")[0].json == {"pool": "p", "reservation": "r1"}
    server.on("DELETE", "reservations/r1", Answer(None, 204))
    client.pools.unreserve(r)


def test_other_things(client, server):
    server.on("PUT", "claims/c", {"name": "c", "state": "ready", "sandbox": "0193"})
    assert client.claims.put("c", pool="p", env={"SESSION_ID": "abc-123"}).sandbox == "0193"
    server.on("PUT", "forks/f", {"name": "f", "state": "ready", "count": 3, "sandboxes": [BOX]})
    assert client.forks.put("f", "c", 3).sandboxes[0].id == "0193"
    assert server.requests[-1].json == {"source": "c", "replicas": 3}
    server.on("PUT", "secrets/s", {"name": "s", "keys": ["K"]})
    assert client.secrets.put("s", {"K": "v", "EMPTY": ""}).keys == ["K"]
    assert server.requests[-1].json == {"name": "s", "data": {"K": "v", "EMPTY": ""}}
    server.on("PUT", "principals/ann", {"name": "ann", "role": "user", "budget": {"memoryGiBSeconds": 2.5}})
    p = client.principals.put("ann", "user", budget=agent_run.Budget(memory_gib_seconds=2.5))
    assert server.requests[-1].json == {"name": "ann", "role": "user", "budget": {"memoryGiBSeconds": 2.5}} and p.budget.memory_gib_seconds == 2.5
    server.on("GET", "me", {"name": "ann", "role": "user"})
    server.on("GET", "principals/ann/usage", {"principal": "ann", "usage": {"cpuSeconds": 1, "storageGiBSeconds": 3}, "running": 1})
    assert client.usage().storage_gib_seconds == 3.0
    server.on("POST", "conversations/chat 1/attach", {"id": "chat 1", "sandbox": "0193"})
    assert client.conversations.attach("chat 1", agent="helper").sandbox == "0193"
    server.on("GET", "audit", {"entries": [{"seq": "18446744073709551615", "action": "sandbox.fork", "allowed": False, "rule": "owner"}], "next": "1"})
    assert client.audit.list(allowed=False)[0].seq == 2**64 - 1
    assert server.requests[-1].query == {"after": "0", "allowed": "false"}


# Finding the server.


def context(tmp_path, **fields):
    d = tmp_path / "config" / "agentrun"
    d.mkdir(parents=True)
    (d / "context.json").write_text(json.dumps({"endpoint": "http://127.0.0.1:7999", "apiKey": "a.b", "pid": 1, **fields}))


def test_discovery(api, monkeypatch, tmp_path):
    assert api.AgentRun().config.endpoint == "http://127.0.0.1:7070"
    context(tmp_path, caCert="PEM")
    c = api.AgentRun().config
    assert (c.endpoint, c.api_key, c.ca, c.source) == ("http://127.0.0.1:7999", "a.b", "PEM", "context")
    monkeypatch.setenv("AGENTRUN_API_KEY", "c.d")
    assert api.AgentRun().config.api_key == "c.d"
    monkeypatch.delenv("AGENTRUN_API_KEY")
    monkeypatch.setenv("AGENTRUN_ENDPOINT", "http://127.0.0.1:7999/")
    assert api.AgentRun().config.api_key == "a.b"  # it is the context's own server
    monkeypatch.setenv("AGENTRUN_ENDPOINT", "http://elsewhere:1")
    c = api.AgentRun().config
    assert (c.endpoint, c.api_key, c.ca) == ("http://elsewhere:1", "", "")  # whose key it isn't
    c = api.AgentRun("http://127.0.0.1:5", "x.y").config
    assert (c.endpoint, c.api_key) == ("http://127.0.0.1:5", "x.y")
    assert "x.y" not in repr(c)


def test_bad_settings(api, monkeypatch, tmp_path):
    for endpoint in ("nonsense", "ftp://x", "http://", "http://u:p@x", "http://x?a=b"):
        with pytest.raises(Invalid):
            api.AgentRun(endpoint)
    with pytest.raises(Invalid, match="nope.pem"):
        api.AgentRun(ca_cert=str(tmp_path / "nope.pem"))
    with pytest.raises(Invalid, match="PEM"):
        api.AgentRun("https://x", ca_cert="-----BEGIN nonsense")
    context(tmp_path)
    (tmp_path / "config" / "agentrun" / "context.json").write_text("{")
    with pytest.raises(Invalid, match="context.json"):
        api.AgentRun()
    assert api.AgentRun("http://127.0.0.1:5").config.api_key == ""


def test_sandbox_create_finds_the_server(api, server, tmp_path):
    context(tmp_path, endpoint=server.url)
    server.on("POST", "sandboxes", BOX)
    a, b = api.Sandbox.create("python-agent-pool"), api.Sandbox.create("python-agent-pool")
    assert server.requests[0].headers["authorization"] == "Bearer a.b"
    assert a.client == b.client if api.asynchronous else a.client is b.client
    server.on("GET", "sandboxes/mine", BOX)
    assert api.Sandbox.connect("mine", endpoint=server.url, api_key="c.d").id == "0193"
    assert server.requests[-1].headers["authorization"] == "Bearer c.d"


def test_event_loops_that_have_ended_leave_nothing(server):
    import asyncio
    import gc

    server.on("POST", "sandboxes", BOX)

    async def create():
        await agent_run.AsyncSandbox.create("p", endpoint=server.url, api_key="a.b")

    for _ in range(20):
        asyncio.run(create())
    gc.collect()
    deadline = time.monotonic() + 10
    while server.connections > 1:  # of the newest loop
        assert time.monotonic() < deadline, server.connections
        time.sleep(0.01)


def test_proxies_arent_for_this_machine(api, server, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    server.on("GET", "server", {"version": "7"})
    with api.AgentRun(server.url) as c:
        assert c.server().version == "7"


def test_main(server, monkeypatch):
    server.on("GET", "server", {"version": "9.9"})
    monkeypatch.setenv("AGENTRUN_ENDPOINT", server.url)
    monkeypatch.setenv("AGENTRUN_API_KEY", "id.hush")
    out = subprocess.run([sys.executable, "-m", "agent_run"], capture_output=True, text=True)
    assert out.returncode == 0 and agent_run.__version__ in out.stdout and "9.9" in out.stdout and server.url in out.stdout
    assert "hush" not in out.stdout
    monkeypatch.setenv("AGENTRUN_ENDPOINT", "http://127.0.0.1:1")
    out = subprocess.run([sys.executable, "-m", "agent_run"], capture_output=True, text=True)
    assert out.returncode == 1 and agent_run.__version__ in out.stdout and "agentrun up" in out.stderr


def test_size():
    assert [agent_run.size(s) for s in ("512Mi", "5Gi", "1k", "1.5G", "7", 9)] == [512 << 20, 5 << 30, 1000, 1500000000, 7, 9]
    for bad in ("", "Mi", "1X", "-1", "nan", "inf", "1 2"):
        with pytest.raises(ValueError):
            agent_run.size(bad)
