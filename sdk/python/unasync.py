#!/usr/bin/env python3
"""Writes the synchronous half of the SDK from the asynchronous one: src/agent_run/_async/*.py to _sync, except _io.py, which is written by
hand in both. `unasync.py --check` only says whether that was done."""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent / "src" / "agent_run"
MARK = "# Written by unasync.py from _async/{}: change that.\n"

# In this order, each where no letter stands before it.
WORDS = [
    (r"asynchronous", "synchronous"), (r"async (def|with|for)", r"\1"), (r"await ", ""), (r"for asyncio", ""),
    (r"AsyncIterator", "Iterator"), (r"AsyncIterable\[bytes\], ", ""), (r"StopAsyncIteration", "StopIteration"), (r"Awaitable\[Any\]", "Any"),
    (r"__a(iter|next|enter|exit)__", r"__\1__"), (r"a(close|read|iter_bytes)(?=\()", r"\1"), (r"`aclose`", "`close`"),
    (r"Async(?=[A-Z])", ""),
]


def sync(text: str) -> str:
    text = text.replace(", Iterable[bytes], AsyncIterable[bytes]]", ", Iterable[bytes]]").replace(" AsyncIterable, AsyncIterator,", " Iterator,")
    text = text.replace(' and not hasattr(data, "__aiter__")', "")
    for pattern, new in WORDS:
        text = re.sub(r"(?<![A-Za-z_])" + pattern if pattern[0] not in "`" else pattern, new, text)
    # An await in parentheses leaves them: (x).y
    return re.sub(r"(?<![\w\])])\(((?:self|sandbox)\.[\w.]+\([^()]*\))\)\.", r"\1.", text)


def main() -> int:
    stale = []
    for source in sorted((HERE / "_async").glob("*.py")):
        if source.name in ("_io.py", "__init__.py"):
            continue
        want = MARK.format(source.name) + sync(source.read_text())
        target = HERE / "_sync" / source.name
        if not target.exists() or target.read_text() != want:
            stale.append(source.name)
            if "--check" not in sys.argv:
                target.write_text(want)
    if stale and "--check" in sys.argv:
        print("not up to date, run unasync.py:", ", ".join(stale))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
