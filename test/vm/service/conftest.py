"""What the tests of a service with microVMs stand on: the server is in the bench, where CONTROL does what an operator would."""

import json
import os
import pathlib
import subprocess
import time
import urllib.request

import pytest

from agent_run import AgentRun, NetworkPolicy, Resources, TemplateSpec

MEMORY = 256 << 20
IMAGE = "python:3.12-slim"


def control(path, method="POST"):
    with urllib.request.urlopen(urllib.request.Request(os.environ["CONTROL"] + path, method=method), timeout=700) as r:
        return json.loads(r.read() or b"null")


def until(condition, seconds=300):
    """Waits for a condition, and returns what it is then."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.2)


def cli(*args, input=None, check=True):
    """Runs the CLI of this machine."""
    r = subprocess.run([os.environ["AGENTRUN"], *args], input=input, capture_output=True, text=True, timeout=400)
    assert not check or r.returncode == 0, (args, r.stdout, r.stderr)
    return r


def vm(resources=None, **more):
    return TemplateSpec(engine="microvm", image=IMAGE, resources=Resources(memory=MEMORY, **(resources or {})), **more)


@pytest.fixture(scope="session")
def client():
    with AgentRun(timeout=300) as c:
        yield c


@pytest.fixture(scope="session")
def pool(client):
    """The guide's pool, of machines."""
    client.templates.put("python-agent", vm(init=["echo built > /workspace/built", "cat /proc/sys/kernel/random/boot_id > /etc/built"],
                                            network=NetworkPolicy(allow=["site.test:8081", "10.0.2.15:8081"])))
    client.pools.put("python-agent-pool", "python-agent", 1, wait=True)
    return "python-agent-pool"


@pytest.fixture(scope="session")
def box(client, pool):
    """One that tests share which need no other."""
    with client.create(pool) as s:
        yield s
