"""The two halves are one: names, arguments, documentation."""

import inspect
import pathlib
import subprocess
import sys

import agent_run

PAIRS = ["AgentRun", "Sandbox", "Files", "FileStream", "ExecStream", "Process", "Terminal", "EventStream"]


def test_the_synchronous_half_is_up_to_date():
    here = pathlib.Path(__file__).resolve().parent.parent
    out = subprocess.run([sys.executable, str(here / "unasync.py"), "--check"], capture_output=True, text=True)
    assert out.returncode == 0, out.stdout


def members(cls):
    return {n: m for n, m in inspect.getmembers(cls) if not n.startswith("_")}


def test_same_names_and_arguments():
    for name in PAIRS:
        a, s = members(getattr(agent_run, "Async" + name)), members(getattr(agent_run, name))
        assert {"close" if n == "aclose" else n for n in a} == set(s), name
        for n, m in s.items():
            if inspect.isfunction(m):
                other = a["aclose" if n == "close" else n]
                assert list(inspect.signature(m).parameters) == list(inspect.signature(other).parameters), f"{name}.{n}"


def test_sandbox_create_takes_what_the_clients_does():
    of_class, of_client = (inspect.signature(f).parameters for f in (agent_run.Sandbox.create, agent_run.AgentRun.create))
    assert set(of_class) == set(of_client) - {"self"} | {"client", "endpoint", "api_key"}


def test_everything_public_is_documented_and_typed():
    for name in agent_run.__all__:
        v = getattr(agent_run, name)
        if inspect.isclass(v):
            assert v.__doc__, name
            if name not in PAIRS + ["Async" + p for p in PAIRS]:
                continue
            for n, m in members(v).items():
                assert not callable(m) or m.__doc__, f"{name}.{n}"
    for resource in vars(agent_run.AgentRun("http://127.0.0.1:1")).values():
        for n, m in members(type(resource)).items():
            assert not inspect.isfunction(m) or m.__doc__ or "resources" not in type(resource).__module__, f"{type(resource).__name__}.{n}"
    assert (pathlib.Path(agent_run.__file__).parent / "py.typed").exists()


def test_errors_can_be_copied():
    import copy
    import pickle

    for e in (agent_run.NotFound("x"), agent_run.MergeConflict("m", conflicts=["/a"]),
              agent_run.CommandFailed(agent_run.ExecResult(exit_code=3, stderr="no\n"))):
        for c in (copy.copy(e), pickle.loads(pickle.dumps(e))):
            assert type(c) is type(e) and str(c) == str(e)
