"""What can go wrong.

Every error that this package raises on purpose is an `AgentRunError`; its class says what a caller can do about it. Wrong arguments that
can be seen without asking the server are `ValueError` or `TypeError`, as everywhere in Python.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Type

if TYPE_CHECKING:
    from .types import ExecResult

__all__ = [
    "AgentRunError", "BuildFailed", "Canceled", "CommandFailed", "CommandTimeout", "Conflict", "ConnectionFailed", "Corrupt", "Denied", "Exists",
    "Invalid", "LimitExceeded", "MergeConflict", "NoSpace", "NotEmpty", "NotFound", "PreconditionFailed", "ServerError", "Timeout",
    "TooLarge", "Unauthorized", "Unavailable", "Unsupported",
]


class AgentRunError(Exception):
    """The base of all errors. Its text is "operation: thing: cause", and what to do about it where somebody knows.

    Attributes:
        kind: what sort of error it is, as it stands on the wire, such as "not found".
        status: the HTTP status; 0 if the server didn't answer.
        op, thing, cause: the parts of the text.
        hint: what a person can do next; "" if there is nothing to say.
        request_id: names the request in the server's log.
        problem: the whole answer of the server, an RFC 9457 problem; {} if there was none.
    """

    default_kind = "other"

    def __init__(self, message: str, *, kind: str = "", status: int = 0, op: str = "", thing: str = "", cause: str = "", hint: str = "",
                 request_id: str = "", problem: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind or self.default_kind
        self.status = status
        self.op, self.thing, self.cause = op, thing, cause or message
        self.hint = hint
        self.request_id = request_id
        self.problem: Dict[str, Any] = dict(problem or {})

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class Invalid(AgentRunError):
    """The request can never succeed as it stands."""

    default_kind = "invalid"


class NotFound(AgentRunError):
    """The thing named doesn't exist, or isn't for the caller to see."""

    default_kind = "not found"


class Conflict(AgentRunError):
    """The request contradicts the present state, as an exec in a sandbox that has ended does."""

    default_kind = "conflict"


class Exists(Conflict):
    """The thing to be made exists already."""

    default_kind = "exists"


class NotEmpty(Conflict):
    """The thing to be removed still holds something."""

    default_kind = "not empty"


class MergeConflict(Conflict):
    """Both sides of a merge changed the same files; nothing was changed.

    Attributes:
        conflicts: paths of those files; more_conflicts is how many there are beyond them.
    """

    def __init__(self, message: str, *, conflicts: Optional[List[str]] = None, more_conflicts: int = 0, **rest: Any) -> None:
        super().__init__(message, **rest)
        self.conflicts: List[str] = list(conflicts or [])
        self.more_conflicts = more_conflicts


class PreconditionFailed(AgentRunError):
    """A condition that the request carries doesn't hold."""

    default_kind = "precondition failed"


class Denied(AgentRunError):
    """The caller may not do this.

    Attributes:
        rule: the rule that decided, as it stands in the audit log; "" if the server names none.
    """

    default_kind = "denied"

    @property
    def rule(self) -> str:
        """The rule that decided."""
        return str(self.problem.get("rule") or "")


class Unauthorized(AgentRunError):
    """The API key is missing, unknown or has expired."""

    default_kind = "unauthorized"


class TooLarge(AgentRunError):
    """A limit on the size of one thing is exceeded."""

    default_kind = "too large"


class LimitExceeded(AgentRunError):
    """A limit on how many, how much or how often is exceeded: a quota, a budget, a pool's bound."""

    default_kind = "limit exceeded"


class NoSpace(AgentRunError):
    """The server's disk is full; nothing was written."""

    default_kind = "no space"


class Corrupt(AgentRunError):
    """Stored data doesn't match its checksum."""

    default_kind = "corrupt"


class Unavailable(AgentRunError):
    """Not now: the server is starting, stopping, or has no sandbox to give."""

    default_kind = "unavailable"


class ConnectionFailed(Unavailable):
    """The server couldn't be reached, or the connection broke before it had answered."""


class Unsupported(AgentRunError):
    """The server or the sandbox's engine doesn't do this."""

    default_kind = "unsupported"


class Canceled(AgentRunError):
    """The request was given up before it was done."""

    default_kind = "canceled"


class ServerError(AgentRunError):
    """A failure of the server's own. Its log tells more, under `request_id`."""


class Timeout(AgentRunError, TimeoutError):
    """Something took longer than it was given."""

    default_kind = "timeout"


class BuildFailed(AgentRunError):
    """A template couldn't be built. `log` holds the last lines that its build wrote."""

    default_kind = "invalid"

    def __init__(self, message: str, *, log: Optional[List[str]] = None, **rest: Any) -> None:
        super().__init__(message, **rest)
        self.log: List[str] = list(log or [])


class CommandFailed(AgentRunError):
    """A command that was run with check=True ended with an exit code other than 0.

    Attributes:
        result: how it ended, with its output.
    """

    default_kind = "command failed"

    def __init__(self, result: ExecResult, message: str = "") -> None:
        if not message:
            lines = result.stderr.strip().splitlines()
            message = f"exec: exit code {result.exit_code}" + (f": {lines[-1][:500]}" if lines else "")
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> Any:
        return type(self), (self.result, self.message)


class CommandTimeout(CommandFailed, Timeout):
    """A command that was run with check=True took longer than its timeout, and was ended."""

    default_kind = "timeout"


_KINDS: Dict[str, Type[AgentRunError]] = {
    c.default_kind: c for c in (Invalid, NotFound, Exists, NotEmpty, Conflict, PreconditionFailed, Denied, Unauthorized, TooLarge,
                                LimitExceeded, NoSpace, Corrupt, Unavailable, Unsupported, Canceled)
}
_STATUSES: Dict[int, Type[AgentRunError]] = {
    400: Invalid, 401: Unauthorized, 403: Denied, 404: NotFound, 408: Timeout, 409: Conflict, 412: PreconditionFailed, 413: TooLarge,
    422: Invalid, 429: LimitExceeded, 499: Canceled, 501: Unsupported, 503: Unavailable, 507: NoSpace,
}


def from_problem(p: Mapping[str, Any], status: int = 0) -> AgentRunError:
    """Makes an error of what the server reports."""

    def text(key: str) -> str:
        v = p.get(key)
        return v if isinstance(v, str) else ""

    raw = p.get("status")
    code = raw if isinstance(raw, int) else status
    cls = _KINDS.get(text("kind")) or _STATUSES.get(code) or ServerError
    parts = [s for s in (text("op"), text("thing"), text("cause")) if s]
    message = text("detail") or ": ".join(parts) or text("title") or f"the server answered {code}"
    args: Dict[str, Any] = dict(kind=text("kind"), status=code, op=text("op"), thing=text("thing"), cause=text("cause"), hint=text("hint"),
                                request_id=text("request"), problem=p)
    merge = p.get("files") or p.get("merge")
    if cls is Conflict and isinstance(merge, dict):
        found = [c if isinstance(c, str) else str(c.get("key", "")) for c in merge.get("conflicts") or [] if isinstance(c, (str, dict))]
        return MergeConflict(message, conflicts=found, more_conflicts=int(merge.get("moreConflicts") or 0), **args)
    return cls(message, **args)


def from_answer(status: int, content_type: str, body: bytes, host: str) -> AgentRunError:
    """Makes an error of an answer's body. One that isn't a problem comes from something that isn't AgentRun."""
    if content_type.split(";")[0].strip().lower() in ("application/problem+json", "application/json"):
        try:
            p = json.loads(body)
        except ValueError:
            p = None
        if isinstance(p, dict) and ("kind" in p or "detail" in p or "title" in p):
            return from_problem(p, status)
    if status in (502, 504):
        return ConnectionFailed(f"connect: {host}: a gateway answered {status}", status=status)
    if status == 503:
        return Unavailable(f"connect: {host}: answered 503", status=status)
    return Unavailable(f"connect: {host}: not AgentRun's API: answered {status}", status=status, op="connect", thing=host,
                       hint="the endpoint is the API's (port 7070 by default), not that of S3 (7071)")
