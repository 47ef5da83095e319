"""What the tests of the SDK against a real server stand on. The server is found as a user's program finds it: by what `agentrun up` left."""

import pytest

from agent_run import AgentRun, TemplateSpec

POOL, TEMPLATE = "test-pool", "test-template"


@pytest.fixture(scope="session")
def client():
    with AgentRun() as c:
        c.templates.put(TEMPLATE, TemplateSpec(image="python:3.12-slim", env={"FROM_TEMPLATE": "yes"}))
        c.pools.put(POOL, TEMPLATE, 3, wait=True)
        yield c


@pytest.fixture(scope="session")
def guide(client):
    """The pool that the guide's examples and the SDK's page use."""
    client.templates.put("python-agent", TemplateSpec(image="python:3.12-slim"))
    client.pools.put("python-agent-pool", "python-agent", 3, wait=True)


@pytest.fixture
def box(client):
    with client.create(POOL) as s:
        yield s
