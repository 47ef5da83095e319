"""Between JSON and dataclasses, and what streams are made of. Nothing here talks to anybody."""

from __future__ import annotations

import base64
import codecs
import dataclasses
import functools
import json
import os
import re
import sys
import typing
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple, Type, TypeVar, Union
from urllib.parse import quote, urlencode

from .errors import Unavailable
from .types import ExecEvent, ExecResult

T = TypeVar("T")

JSON = "application/json"
NDJSON = "application/x-ndjson"
SSE = "text/event-stream"

PathLike = Union[str, "os.PathLike[str]"]

# What is never told with its default value.
_EMPTY: Tuple[Any, ...] = (None, "", 0, False)


def camel(name: str) -> str:
    """Returns a field's name as the wire has it."""
    first, *rest = name.split("_")
    return first + "".join(w.title() for w in rest)


def encode(v: Any) -> Any:
    """Returns a value as JSON has it. Empty fields of dataclasses are left out: on the wire that is the same."""
    if dataclasses.is_dataclass(v) and not isinstance(v, type):
        special = getattr(v, "to_wire", None)
        if special is not None:
            return special()
        out: Dict[str, Any] = {}
        for f in dataclasses.fields(v):
            x = encode(getattr(v, f.name))
            if not (x in _EMPTY if not isinstance(x, (dict, list)) else not x):
                out[f.metadata.get("wire") or camel(f.name)] = x
        return out
    if isinstance(v, Mapping):
        return {str(k): encode(x) for k, x in v.items()}
    if isinstance(v, (list, tuple)):
        return [encode(x) for x in v]
    if isinstance(v, datetime):
        return v.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    return v


def body(**fields: Any) -> Dict[str, Any]:
    """Returns a request's body of those fields that are set, by their Python names."""
    out: Dict[str, Any] = {}
    for k, v in fields.items():
        if v is None or v == "" or v is False or (isinstance(v, (Mapping, list, tuple)) and not v):
            continue
        out[camel(k)] = encode(v)  # a dataclass is told even if nothing in it is set: NetworkPolicy() denies everything
    return out


_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))$")


def parse_time(s: str) -> datetime:
    """Reads a time of RFC 3339. What is finer than a microsecond is cut off."""
    m = _TIME.match(s)
    if not m:
        raise ValueError(f"not a time: {s!r}")
    y, mo, d, h, mi, sec = (int(x) for x in m.groups()[:6])
    t = datetime(y, mo, d, h, mi, min(sec, 59), int(((m.group(7) or "") + "000000")[:6]), timezone.utc)
    if m.group(8):
        off = timedelta(hours=int(m.group(9)), minutes=int(m.group(10)))
        t = t - off if m.group(8) == "+" else t + off
    return t


@functools.lru_cache(maxsize=None)
def _fields(cls: Any) -> Dict[str, Tuple[str, Any]]:
    hints = typing.get_type_hints(cls, vars(sys.modules[cls.__module__]))
    return {f.metadata.get("wire") or camel(f.name): (f.name, hints[f.name]) for f in dataclasses.fields(cls)}


def _convert(hint: Any, v: Any) -> Any:
    origin = typing.get_origin(hint)
    if origin is Union:  # Optional
        return None if v is None else _convert(next(a for a in typing.get_args(hint) if a is not type(None)), v)
    if dataclasses.is_dataclass(hint):
        return decode(typing.cast(Type[Any], hint), v)
    if origin is list:
        arg = typing.get_args(hint)[0]
        return [_convert(arg, x) for x in v]
    if origin is dict:
        arg = typing.get_args(hint)[1]
        return {str(k): _convert(arg, x) for k, x in v.items()}
    if hint is datetime:
        return parse_time(v)
    if hint is int:
        return int(v)  # positions are strings, since JavaScript's numbers can't hold them
    if hint is float:
        return float(v)
    if hint is bool:
        return bool(v)
    if hint is str:
        return v if isinstance(v, str) else json.dumps(v)
    return v


def decode(cls: Type[T], v: Any) -> T:
    """Makes a dataclass of what came over the wire. Fields that it doesn't know, and nulls, are ignored."""
    if not isinstance(v, dict):
        raise Unavailable(f"read answer: want an object for {cls.__name__}, not {type(v).__name__}")
    known = _fields(typing.cast(Any, cls))
    kwargs: Dict[str, Any] = {}
    for k, x in v.items():
        at = known.get(k)
        if at is None or x is None:
            continue
        try:
            kwargs[at[0]] = _convert(at[1], x)
        except (TypeError, ValueError, AttributeError) as e:
            raise Unavailable(f"read answer: {cls.__name__}.{k}: {e}") from e
    return cls(**kwargs)


def url_path(*segments: str) -> str:
    """Joins segments below /v1. A segment of dots would be resolved away on the way."""
    out = ["/v1"]
    for s in segments:
        if not s:
            raise ValueError("an empty name or id")
        out.append(s.replace(".", "%2E") if s in (".", "..") else quote(s, safe="", errors="surrogateescape"))
    return "/".join(out)


def query_string(query: Mapping[str, Any]) -> str:
    """Returns "?a=b&…" of what is set, or "". Lists repeat the name. File names that aren't UTF-8 keep their bytes."""
    pairs: List[Tuple[str, str]] = []
    for k, v in query.items():
        if v is None or v == "" or v is False:
            continue
        for x in v if isinstance(v, (list, tuple)) else [v]:
            pairs.append((k, "true" if x is True else str(x)))
    return "?" + urlencode(pairs, errors="surrogateescape") if pairs else ""


def file_path(path: PathLike) -> str:
    """Returns a path inside a sandbox as text."""
    p = os.fspath(path)
    if not isinstance(p, str):
        raise TypeError("a path in a sandbox is text, not bytes")
    if not p or "\0" in p:
        raise ValueError("a path in a sandbox isn't empty and has no NUL")
    return p


# Streams.

MAX_LINE = 64 << 20  # bytes in one line of a stream; more isn't AgentRun


class LineSplitter:
    """Makes lines of pieces of bytes. Only "\\n" ends a line: JSON's strings may hold other separators of Unicode."""

    def __init__(self) -> None:
        self._rest: List[bytes] = []
        self._held = 0

    def feed(self, data: bytes) -> List[bytes]:
        if b"\n" not in data:
            self._rest.append(data)
            self._held += len(data)
            if self._held > MAX_LINE:
                raise Unavailable(f"read answer: a line has more than {MAX_LINE} bytes")
            return []
        lines = (b"".join(self._rest) + data).split(b"\n")
        last = lines.pop()
        self._rest, self._held = [last], len(last)
        return lines


class NDJSONParser:
    """Makes values of lines of JSON."""

    def __init__(self) -> None:
        self._lines = LineSplitter()

    def feed(self, data: bytes) -> List[Any]:
        return [parse_json(line) for line in self._lines.feed(data) if line.strip()]


class SSEParser:
    """Makes values of the data of server-sent events."""

    def __init__(self) -> None:
        self._lines = LineSplitter()
        self._data: List[bytes] = []
        self._event = b""
        self.retry: Optional[float] = None  # seconds that the server asks to wait before it is asked again

    def feed(self, data: bytes) -> List[Any]:
        out: List[Any] = []
        for line in self._lines.feed(data):
            line = line.rstrip(b"\r")
            if not line:
                if self._data:
                    v = parse_json(b"\n".join(self._data))
                    if self._event == b"error" and isinstance(v, dict) and "error" not in v:
                        v = {"error": v}  # as a line of JSON has it
                    out.append(v)
                self._data, self._event = [], b""
                continue
            name, _, value = line.partition(b":")
            value = value[1:] if value.startswith(b" ") else value
            if name == b"data":
                self._data.append(value)
            elif name == b"event":
                self._event = value
            elif name == b"retry" and value.isdigit():
                self.retry = int(value) / 1000
        return out


def parse_json(b: bytes) -> Any:
    try:
        return json.loads(b)
    except ValueError as e:
        raise Unavailable(f"read answer: not JSON: {e}") from e


MAX_OUTPUT = 8 << 20  # bytes of each stream that a result holds, as the server has it for results


class Collector:
    """Holds a stream's output: all of it, or the first and last half of what a result may hold."""

    def __init__(self, limit: int = MAX_OUTPUT) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.truncated = False

    def add(self, data: bytes) -> None:
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self._half:
            self._cut()

    def _cut(self) -> None:
        if len(self._tail) > self._half:
            self.truncated = True
            del self._tail[:len(self._tail) - self._half]

    def text(self) -> str:
        self._cut()
        if not self.truncated:
            return (self._head + self._tail).decode("utf-8", "replace")
        return self._head.decode("utf-8", "ignore") + "\n…\n" + self._tail.decode("utf-8", "ignore")


class ExecParser:
    """Makes events of the values of an exec's stream, and its result."""

    def __init__(self) -> None:
        self.pid = 0
        self.result: Optional[ExecResult] = None
        self._out = {"stdout": Collector(), "stderr": Collector()}
        new: Callable[[], codecs.IncrementalDecoder] = functools.partial(codecs.getincrementaldecoder("utf-8"), "replace")
        self._text = {"stdout": new(), "stderr": new()}

    def feed(self, v: Any) -> Iterator[ExecEvent]:
        v = unwrap(v)
        kind = v.get("type") if isinstance(v, dict) else None
        if kind == "start":
            self.pid = int(v.get("pid") or 0)
        elif kind in ("stdout", "stderr"):
            data = base64.b64decode(v.get("data") or "")
            self._out[kind].add(data)
            yield ExecEvent(kind, data, self._text[kind].decode(data))
        elif kind == "exit":
            for name, decoder in self._text.items():
                rest = decoder.decode(b"", True)
                if rest:
                    yield ExecEvent(name, b"", rest)
            r = decode(ExecResult, v.get("result") or {})
            self.result = dataclasses.replace(r, stdout=self._out["stdout"].text(), stderr=self._out["stderr"].text(), pid=r.pid or self.pid,
                                              truncated=r.truncated or any(c.truncated for c in self._out.values()))


def unwrap(v: Any) -> Any:
    """Returns what a line of a stream carries, and raises what one reports."""
    from .errors import from_problem

    if isinstance(v, dict):
        p = v.get("error")
        if isinstance(p, dict):
            raise from_problem(p)
        if isinstance(v.get("item"), dict):
            return v["item"]
    return v
