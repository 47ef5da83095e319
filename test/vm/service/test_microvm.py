"""The service's sandboxes as machines of their own, by the SDK for Python, the CLI and ssh."""

import contextlib
import hashlib
import io
import os
import pathlib
import re
import subprocess
import threading
import time

import pytest

from agent_run import AgentRunError, Lease, NetworkPolicy, Rate, VolumeMount
from conftest import cli, control, until, vm

FIRST, SECOND = re.findall(r"^```python\n(.*?)^```$", pathlib.Path(os.environ["SEED"]).read_text(), re.S | re.M)


def run(text):
    names, out = {}, io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, "seed", "exec"), names)
    return names, out.getvalue()


def test_node(client):
    node, = client.nodes()
    assert node.engines["microvm"] == "", node
    assert "works" in cli("nodes", "get", "local").stdout


def test_guide_first(pool):
    """The guide's numpy example, as printed."""
    names, out = run(FIRST)
    assert out.strip() == "3.0"
    sandbox, a, b = names["sandbox"], names["fork_a"], names["fork_b"]
    assert a.files.read("/workspace/plan_a.txt") == "conservative approach"
    assert b.files.read("/workspace/plan_b.txt") == "aggressive approach"
    assert "plan" not in sandbox.exec(["ls"]).stdout
    for s in (a, b):
        assert s.exec("print(np.mean([2, 4]))").stdout == "3.0\n"  # the Python that ran goes on
    for s in (sandbox, a, b):
        s.terminate()


def test_guide_second(pool):
    """The guide's other example, as printed."""
    names, out = run(SECOND)
    assert out.split("\n") == ["hello", "", "0", "approach 0", "", "approach 1", "", "approach 2", "", ""]
    assert names["content"] == '{"key": "value"}'


def test_commands(box):
    """Commands, a terminal, sessions of interpreters, secrets."""
    assert "Linux" in box.exec(["uname", "-a"]).stdout and box.exec(["id", "-un"]).stdout == "user\n"
    assert box.files.read("built") == "built\n"
    r = box.exec("echo out; echo err >&2; exit 3", language="shell")
    assert (r.stdout, r.stderr, r.exit_code) == ("out\n", "err\n", 3)
    assert box.exec(["no-such-command"]).exit_code == 127
    assert box.exec("x = 20\nx + 1").result == "21"
    assert "ZeroDivisionError" in box.exec("1 / 0").stderr
    box.exec("V=1; cd /tmp", session="s", language="shell")
    assert box.exec("echo $V; pwd", session="s").stdout == "1\n/tmp\n"
    assert box.exec("cat | tr a-z A-Z", stdin="abc", language="shell").stdout == "ABC"
    assert box.exec(["sleep", "300"], timeout=1).timed_out
    with box.pty(["bash", "--norc"], cols=100, rows=30) as p:
        p.write("stty size; exit\n")
        seen = b""
        while b"30 100" not in seen:
            more = p.read(60)
            assert more, seen
            seen += more


def test_files(box):
    """Files of a volume and of the root, from outside and inside."""
    for folder in ("/workspace/d", "/tmp/d"):
        box.files.mkdir(folder)
        box.files.write(folder + "/f", "text", mode=0o600)
        assert box.files.stat(folder + "/f").size == 4 and [f.name for f in box.files.list(folder)] == ["f"]
        assert box.exec(["sh", "-c", f"stat -c '%a %U' {folder}/f; cat {folder}/f; echo more >> {folder}/f; ln -s f {folder}/l"]).stdout == "600 user\ntext"
        assert box.files.read(folder + "/l") == "textmore\n"
        box.files.move(folder + "/f", folder + "/g")
        assert box.exec(["ls", folder]).stdout == "g\nl\n"
        box.files.remove(folder, recursive=True)
        assert not box.files.exists(folder)
    with box.files.watch(".", recursive=True) as w:
        limit = threading.Timer(300, w.close)
        limit.start()
        box.exec("mkdir watched; echo x > watched/file", language="shell")
        assert ("create", "/workspace/watched/file") in ((e.kind, e.path) for e in w)
        limit.cancel()
    big = os.urandom(3 << 20)
    box.files.write("big", big)
    assert box.exec(["sha256sum", "big"]).stdout.split()[0] == hashlib.sha256(big).hexdigest()
    cli("cp", f"{box.id}:/workspace/big", "big")
    assert pathlib.Path("big").read_bytes() == big
    box.files.remove("big")


FETCH = """
import urllib.request, urllib.error
def fetch(url):
    try:
        return urllib.request.urlopen(url, timeout=120).read().decode()
    except urllib.error.HTTPError as e:
        return str(e.code)
    except OSError as e:
        return "no: " + str(e)
"""


def test_network(box):
    """What the template allows, by name; nothing else."""
    box.exec(FETCH)
    assert box.exec("print(fetch('http://site.test:8081'))").stdout == "a page\n\n"
    for url in ("http://nowhere.test:8081", "http://site.test:8082", "http://127.0.0.1:7070/healthz", "http://10.0.2.15:8090/log"):
        assert box.exec(f"print(fetch({url!r}))").stdout.startswith("no: "), url
    assert box.exec("print(fetch('http://nowhere.test/'))").stdout == "403\n"
    box.change(network=NetworkPolicy())
    assert box.exec("print(fetch('http://site.test:8081'))").stdout.startswith("no: ")


def test_forks(client, box):
    """Three of one that runs: each goes on from there, by itself."""
    box.files.write("same", "s")
    box.files.write("changed", "old")
    box.exec("import os, uuid, random\nstate = list(range(100000))")
    box.exec(["sh", "-c", "echo mine > /tmp/root; hostname > /tmp/host"])
    forks = box.fork(3)
    try:
        assert len({f.exec("print(os.urandom(8).hex(), uuid.uuid4(), random.SystemRandom().random())").stdout for f in [box, *forks]}) == 4
        for i, f in enumerate(forks):
            assert f.exec(f"state.append({i}); print(len(state), sum(state[-1:]))").stdout == f"100001 {i}\n"
            assert f.exec(["sh", "-c", f"cat /tmp/root; echo {i} > /tmp/root"]).stdout == "mine\n"
            assert f.info.engine == "microvm" and f.info.parent == box.id
        assert box.exec("print(len(state))").stdout == "100000\n" and box.exec(["cat", "/tmp/root"]).stdout == "mine\n"
        a, b, _ = forks
        a.exec("echo by-a > changed; echo n > new; rm same", language="shell")
        assert [(c.path, c.kind) for c in a.diff()] == [("/workspace/changed", "modified"), ("/workspace/new", "added"), ("/workspace/same", "deleted")]
        a.merge()
        assert box.exec("cat changed new; ls same", language="shell").stdout == "by-a\nn\n"  # which it has mounted
        assert b.exec(["cat", "changed"]).stdout == "old"
        u = b.usage()
        assert u.memory > 0 and u.memory_shared > 16 << 20 and u.memory < u.memory_shared, u
        listed = cli("sandboxes", "list").stdout
        tree = cli("sandboxes", "tree", box.id).stdout
        for f in forks:
            assert f.id in listed and f.id in tree
    finally:
        for f in forks:
            f.terminate()


def ssh(*args, program="ssh", input=None):
    """Runs a client of OpenSSH."""
    host, _, port = os.environ["SSH"].rpartition(":")
    options = ["-F", "none", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR",
               "-p" if program == "ssh" else "-P", port]
    args = [a.replace("HOST", host) for a in args]
    return subprocess.run([program, *options, *args], input=input, capture_output=True, text=True, timeout=400)


def test_ssh(client, pool):
    """OpenSSH's clients in machines, each connection in one of its own, which is gone with it."""
    r = ssh("-o", "SetEnv=GREETING=hi", "+python-agent@HOST", "uname -s; echo $GREETING; cat; cat /etc/built | wc -l; echo err >&2; exit 7", input="in\n")
    assert (r.stdout, r.stderr, r.returncode) == ("Linux\nhi\nin\n1\n", "err\n", 7), r
    r = ssh("anyone@HOST", "kill -TERM $$")  # by --ssh-template
    assert r.returncode == 255 or r.returncode == 128 + 15, r
    r = ssh("-tt", "+python-agent@HOST", input="tty >&2; stty -echo; echo a$((20 + 1))z; exit 3\n")
    assert r.returncode == 3 and "a21z" in r.stdout and "engine microvm" in r.stdout, r
    pathlib.Path("up.txt").write_text("by sftp\n")
    r = ssh("-b", "-", "+python-agent@HOST", program="sftp", input="pwd\nput up.txt\nchmod 600 up.txt\nrename up.txt moved\nls -l moved\nget moved down.txt\n"
            "get /etc/built\n-rm nothing\n")
    assert r.returncode == 0 and "/workspace" in r.stdout and "-rw-------" in r.stdout, r
    assert pathlib.Path("down.txt").read_text() == "by sftp\n" and len(pathlib.Path("built").read_text()) > 30
    pathlib.Path("big").write_bytes(os.urandom(1 << 20))
    r = ssh("big", "+python-agent@HOST:big", program="scp")
    assert r.returncode == 0, r
    r = ssh("+nowhere@HOST", "true")
    assert r.returncode == 255 and "sandboxes of this template" in r.stderr, r
    until(lambda: not [s for s in client.list(state="running") if "ssh" in s.info.labels])


def took(f):
    start = time.monotonic()
    f()
    return time.monotonic() - start


def test_rates(client):
    """8 MiB at 1 MiB/s, of which a second's go at once, take 7 seconds; so it is in a fork, and after a sleep. Likewise what comes by the network."""
    spec = vm(dict(disk_rate=Rate(bytes_per_second=1 << 20), network_in_rate=Rate(bytes_per_second=64 << 10)),
              language="shell", network=NetworkPolicy(allow=["site.test:8081", "10.0.2.15:8081"]))
    client.templates.put("rated", spec)
    with client.create("rated") as s:
        fork, = s.fork()
        s.hibernate()
        for box in (s, fork):
            assert took(lambda: box.exec(["dd", "if=/dev/zero", "of=/workspace/f", "bs=64k", "count=128"], check=True)) > 6
            assert box.files.stat("f").size == 8 << 20
        fetch = ["python3", "-c", FETCH + "print(len(fetch('http://site.test:8081/?zeros=524288')))"]
        assert fork.exec(fetch).stdout == "524288\n"
        assert took(lambda: fork.exec(fetch)) > 6
        fork.exec(["dd", "if=/dev/zero", "of=/workspace/g", "bs=1M", "count=1000"], background=True)
        until(lambda: fork.files.exists("g"))
        child, = fork.fork()  # which doesn't wait for what is written
        assert child.exec(["echo", "alive"]).stdout == "alive\n"
        child.terminate()
        fork.terminate()


def test_world(box):
    """What a sandbox does to itself, from inside: it tries two ways, and takes one."""
    box.files.write("tried", "nothing")
    r = box.exec(["sh", "-c", """
        snapshot take before && echo own > /tmp/memory || exit 9
        case $(fork -n 2 --name way) in
          "child "*) echo $(fork --self --json | grep -o '"index":[0-9]') $(cat /tmp/memory) > tried; echo > finished; sleep 1000 ;;
        esac
        until snapshot diff --name-only way-2 2>/dev/null | grep finished; do sleep 0.2; done
        merge way-2 && cat tried
        fork --self"""])
    assert r.stdout.endswith('"index":2 own\n') and r.exit_code == 1 and "isn't a fork" in r.stderr, r
    assert box.exec(["cat", "/tmp/memory"]).stdout == "own\n"
    assert box.exec(["merge", "nobody"]).exit_code == 4
    assert "fork --self" in box.exec(["fork", "--help"]).stdout


def test_volume(client, pool):
    """A volume of the service is mounted in a machine, and in the next one; a snapshot keeps what was in the others."""
    v = client.volumes.create("vol")
    with client.create(pool, volumes=[VolumeMount(v.id, "/data")]) as s:
        s.exec("mkdir /data/d; echo one > /data/d/f; echo early > /workspace/early", language="shell")
        assert s.files.read("/data/d/f") == "one\n"
        snap = s.snapshot("snap")
        assert "/workspace" in snap.buckets
        s.exec("echo two >> /data/d/f; echo x > /workspace/late", language="shell")
    with client.create(snapshot=snap, volumes=[VolumeMount(v.id, "/data")]) as s:
        assert s.exec(["cat", "/workspace/early", "/data/d/f"]).stdout == "early\none\ntwo\n"
        assert not s.files.exists("/workspace/late")


def test_hibernates_when_idle(client, pool):
    with client.create(pool, lease=Lease(duration=2, extend=2)) as s:
        s.exec("x = 41")
        s.files.write("f", "kept")
        until(lambda: s.refresh().state == "hibernated")
        assert s.exec("print(x + 1)").stdout == "42\n" and s.exec(["cat", "f"]).stdout == "kept"


def test_lease_ends(client, pool):
    s = client.create(pool, lease=Lease(duration=1, extend=1, on_expiry="end"))
    until(lambda: s.refresh().state == "ended")


def test_killed(client, pool, box):
    """A machine's process dies: its sandbox has failed, and says so; others live."""
    with client.create(pool) as s:
        s.exec("import threading\nthreading.Thread(target=lambda: all(iter(lambda: True, False)), daemon=True).start()")
        before = {m["pid"]: m["cpu"] for m in control("/machines", "GET")}

        def busy():
            most = max(control("/machines", "GET"), key=lambda m: m["cpu"] - before.get(m["pid"], 0))
            return most["cpu"] - before.get(most["pid"], 0) > 500 and most["pid"]

        control(f"/kill?pid={until(busy)}")
        until(lambda: s.refresh().state == "failed")
        assert "ended" in s.info.reason, s.info
        with pytest.raises(AgentRunError) as e:
            s.exec(["true"])
        assert s.info.reason.split(":")[0] in str(e.value)
        assert box.exec(["echo", "alive"]).stdout == "alive\n"


def test_restart(client, pool):
    """The server ends in order: machines go to sleep, and on. It is killed: they go on from what is durable."""
    with client.create(pool) as s, client.create(pool) as sleeper:
        s.exec("x = 1")
        s.files.write("f", "kept")
        sleeper.exec("x = 2")
        sleeper.hibernate()
        control("/down")
        control("/up")
        assert s.refresh().state == sleeper.refresh().state == "hibernated"
        assert s.exec("print(x)").stdout == "1\n" and sleeper.exec("print(x)").stdout == "2\n"
        sleeper.hibernate()
        s.exec("echo more > g; sync g", language="shell")
        control("/crash")
        control("/up")
        assert s.exec(["cat", "f", "g"]).stdout == "keptmore\n"
        assert s.exec("print(x)").exit_code == 1
        assert sleeper.exec("print(x)").stdout == "2\n"
    assert control("/machines", "GET") is not None
