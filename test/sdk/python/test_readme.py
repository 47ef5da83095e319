"""The examples of the SDK's own page, each by itself, as printed."""

import contextlib
import io
import os
import pathlib
import re

import pytest

BLOCKS = re.findall(r"^```python\n(.*?)^```$", pathlib.Path(os.environ["README"]).read_text(), re.S | re.M)


def title(text):
    return next(line for line in text.splitlines() if line and "import" not in line)[:40]


@pytest.mark.parametrize("text", BLOCKS, ids=title)
def test_example(guide, text):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, "README.md", "exec"), {"__name__": "__main__"})
    # What a comment behind a print says is what was printed.
    at = 0
    for want in re.findall(r"print\(.*\)  # (.*)$", text, re.M):
        want = want.split(":")[0]
        at = out.getvalue().find(want, at)
        assert at >= 0, f"{want!r} isn't in, or not where it should be:\n{out.getvalue()}"
