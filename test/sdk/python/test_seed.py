"""The examples of the guide that the SDK was made after, as printed."""

import contextlib
import io
import os
import pathlib
import re

import pytest

from agent_run import NotFound

TEXT = pathlib.Path(os.environ["SEED"]).read_text()
FIRST, SECOND = re.findall(r"^```python\n(.*?)^```$", TEXT, re.S | re.M)
NUMPY = [line for line in FIRST.splitlines() if "numpy" in line or "# 3.0" in line]


def run(text):
    names, out = {}, io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, "seed", "exec"), names)
    return names, out.getvalue()


def test_numpy(guide, box):
    """The first example's numpy, which must print 3.0."""
    if box.exec("import numpy").exit_code != 0:
        pytest.skip("OPEN: numpy in a sandbox needs an engine with a Linux userland; the userspace engine's Python has none. "
                    "These lines of the first example aren't run: " + " / ".join(NUMPY))
    names, out = run(FIRST[:FIRST.index("# Fork")])
    assert out.strip() == "3.0"
    names["sandbox"].terminate()


def test_first_example(guide):
    assert len(NUMPY) == 2
    names, _ = run("\n".join(line for line in FIRST.splitlines() if line not in NUMPY))
    sandbox, a, b = names["sandbox"], names["fork_a"], names["fork_b"]
    try:
        assert a.files.read("/workspace/plan_a.txt") == "conservative approach"
        assert b.files.read("/workspace/plan_b.txt") == "aggressive approach"
        for s, name in ((a, "plan_b.txt"), (b, "plan_a.txt"), (sandbox, "plan_a.txt")):
            with pytest.raises(NotFound):
                s.files.read(name)
    finally:
        for s in (a, b, sandbox):
            s.terminate()


def test_second_example(guide):
    names, out = run(SECOND)
    assert out.split("\n") == ["hello", "", "0", "approach 0", "", "approach 1", "", "approach 2", "", ""]
    assert names["content"] == '{"key": "value"}'
    for s in [names["sandbox"], *names["forks"]]:
        assert s.refresh().state in ("ending", "ended")
