"""A sandbox."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Type, Union, overload

from .. import _wire
from ..errors import Conflict, ConnectionFailed, MergeConflict, NotFound, Timeout
from ..types import (Conversation, Credentials, ExecResult, FileChange, FileDiff, FileMerge, Lease, Metrics, NetworkPolicy, ProcessInfo,
                     Reservation, Sample, SandboxInfo, SecretUse, Snapshot, Tree, Usage, VolumeMount)
from . import _io
from .files import AsyncFiles
from .process import AsyncExecStream, AsyncProcess, AsyncTerminal, command, hello
from .transport import AsyncStream, AsyncTransport

try:
    from typing import Literal
except ImportError:  # pragma: no cover
    from typing_extensions import Literal

if TYPE_CHECKING:
    from .client import AsyncAgentRun

_SERVER_TIMEOUT = 3600.0  # seconds that the server gives a command that says nothing
_LONG = 600.0  # seconds for what copies files or memory
_SLACK = 15.0  # seconds that an answer may come later than the command's own time limit

Output = Callable[[str], object]


class AsyncSandbox:
    """A sandbox: files, processes and memory of its own. Make one with `AsyncSandbox.create` or `AsyncAgentRun.create`.

    As a context it is terminated on the way out:

        async with await AsyncSandbox.create("python-agent-pool") as sandbox:
            print((await sandbox.exec("print('hello')")).stdout)

    Every method may raise NotFound (there is no such sandbox for this caller), Denied, Conflict (it has ended), LimitExceeded (a budget is
    used up), ConnectionFailed and Timeout. A sandbox that hibernates wakes up by itself.

    Attributes:
        id: of the sandbox.
        info: its record, as it was when it was last asked for; `refresh` asks again.
        files: its files.
        client: the client through which it is reached.
    """

    def __init__(self, client: AsyncAgentRun, info: SandboxInfo) -> None:
        self.client = client
        self._transport: AsyncTransport = client._transport
        self.info = info
        self.id = info.id
        self.files = AsyncFiles(self)

    @classmethod
    async def create(cls, source: Optional[str] = None, *, pool: Optional[str] = None, template: Optional[str] = None,
                     snapshot: Union[Snapshot, str, None] = None, reservation: Union[Reservation, str, None] = None, name: Optional[str] = None,
                     env: Optional[Mapping[str, str]] = None, secrets: Optional[Sequence[SecretUse]] = None, lease: Optional[Lease] = None,
                     network: Optional[NetworkPolicy] = None, visibility: Optional[str] = None, owner: Optional[str] = None,
                     conversation: Optional[str] = None, labels: Optional[Mapping[str, str]] = None, volumes: Optional[Sequence[VolumeMount]] = None,
                     timeout: Optional[float] = None,
                     client: Optional[AsyncAgentRun] = None, endpoint: Optional[str] = None, api_key: Optional[str] = None) -> AsyncSandbox:
        """Makes a sandbox, as `AsyncAgentRun.create` does; see there for the arguments and errors. Without a client it is one that is found
        by AGENTRUN_ENDPOINT and AGENTRUN_API_KEY, or by what `agentrun up` left, and that all who call this share."""
        return await (client or cls._client(endpoint, api_key)).create(
            source, pool=pool, template=template, snapshot=snapshot, reservation=reservation, name=name, env=env, secrets=secrets, lease=lease,
            network=network, visibility=visibility, owner=owner, conversation=conversation, labels=labels,
            volumes=volumes, timeout=timeout)

    @classmethod
    async def connect(cls, id: str, *, client: Optional[AsyncAgentRun] = None, endpoint: Optional[str] = None,
                      api_key: Optional[str] = None) -> AsyncSandbox:
        """Returns a sandbox that exists, by its id or name.

        Raises:
            NotFound: there is none.
        """
        return await (client or cls._client(endpoint, api_key)).get(id)

    @staticmethod
    def _client(endpoint: Optional[str], api_key: Optional[str]) -> AsyncAgentRun:
        from .._config import find
        from .client import AsyncAgentRun

        c = find(endpoint, api_key)
        return _io.shared(lambda: AsyncAgentRun(endpoint, api_key), (c.endpoint, c.api_key, c.ca))

    def __repr__(self) -> str:
        name = f", name={self.info.name!r}" if self.info.name else ""
        return f"AsyncSandbox(id={self.id!r}{name}, state={self.info.state!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AsyncSandbox) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def name(self) -> str:
        """Its name among those that haven't ended; "" if it has none."""
        return self.info.name

    @property
    def state(self) -> str:
        """Its state when it was last asked for."""
        return self.info.state

    def _path(self, *more: str) -> str:
        return _wire.url_path("sandboxes", self.id, *more)

    async def _set(self, method: str, *more: str, **options: Any) -> SandboxInfo:
        v = await self._transport.json(method, self._path(*more), **options)
        if isinstance(v, dict) and v.get("id") == self.id:
            self.info = _wire.decode(SandboxInfo, v)
        return self.info

    async def refresh(self) -> SandboxInfo:
        """Asks for its record again. That isn't a use: it doesn't wake it up, and its lease stays as it is."""
        return await self._set("GET")

    # Running things.

    @overload
    async def exec(self, code: Union[str, Sequence[str]], *, language: Optional[str] = None, session: Optional[str] = None,
                   env: Optional[Mapping[str, str]] = None, cwd: Optional[str] = None, stdin: Union[str, bytes, None] = None,
                   timeout: Optional[float] = None, root: bool = False, check: bool = False, on_stdout: Optional[Output] = None,
                   on_stderr: Optional[Output] = None, background: Literal[False] = False) -> ExecResult: ...

    @overload
    async def exec(self, code: Union[str, Sequence[str]], *, language: Optional[str] = None, session: Optional[str] = None,
                   env: Optional[Mapping[str, str]] = None, cwd: Optional[str] = None, stdin: Union[str, bytes, None] = None,
                   timeout: Optional[float] = None, root: bool = False, log: Optional[str] = None,
                   background: Literal[True]) -> AsyncProcess: ...

    async def exec(self, code: Union[str, Sequence[str]], *, language: Optional[str] = None, session: Optional[str] = None,
                   env: Optional[Mapping[str, str]] = None, cwd: Optional[str] = None, stdin: Union[str, bytes, None] = None,
                   timeout: Optional[float] = None, root: bool = False, check: bool = False, on_stdout: Optional[Output] = None,
                   on_stderr: Optional[Output] = None, background: bool = False,
                   log: Optional[str] = None) -> Union[ExecResult, AsyncProcess]:
        """Runs something in the sandbox and waits until it has ended.

        Text is Python or JavaScript where that is the sandbox's language and the text parses as it; everything else is shell. Python and
        JavaScript keep their variables from one call to the next, and forks have them too.

        Args:
            code: text; or a list of words, a command that runs without a shell.
            language: "python", "javascript" or "shell", instead of the guess.
            session: the name of an interpreter's or shell's own state. Without one Python and JavaScript share one each; shell starts afresh.
            env: variables for this alone, over the sandbox's.
            cwd: the directory that it starts in, absolute.
            stdin: all of its standard input.
            timeout: seconds after which it is ended, with exit code 124; None is the server's hour.
            root: as user 0 of the sandbox.
            check: raise CommandFailed if the exit code isn't 0.
            on_stdout, on_stderr: called with pieces of output, as text, when they come.
            background: don't wait: return a process that goes on, also when the client has gone.
            log: with background, the file inside the sandbox that output goes to.
        Raises:
            CommandFailed, CommandTimeout: with check.
            Timeout, ConnectionFailed: the answer didn't come. It isn't sent again, since it may have been run.
        """
        request = self._run(code, language, session, env, cwd, stdin, timeout, root)
        if background:
            if on_stdout or on_stderr or check:
                raise ValueError("exec: what runs in the background has no output to hand on, and no exit code to check; it has a log")
            request.update(_wire.body(background=True, log=log))
            r = await self._transport.call(ExecResult, "POST", self._path("exec"), json=request)
            return AsyncProcess(self, r.pid, log or "")
        if log is not None:
            raise ValueError("exec: log is for what runs in the background")
        if on_stdout is None and on_stderr is None:
            r = await self._transport.call(ExecResult, "POST", self._path("exec"), json=request, timeout=_patience(timeout))
            return r.check() if check else r
        async with await self._stream(request, check) as stream:
            async for event in stream:
                f = on_stdout if event.type == "stdout" else on_stderr
                if f is not None and event.text:
                    f(event.text)
            return await stream.wait()

    @staticmethod
    def _run(code: Union[str, Sequence[str]], language: Optional[str], session: Optional[str], env: Optional[Mapping[str, str]],
             cwd: Optional[str], stdin: Union[str, bytes, None], timeout: Optional[float], root: bool) -> Dict[str, Any]:
        if timeout is not None and timeout <= 0:
            raise ValueError("timeout: want seconds above 0, or None")
        if isinstance(stdin, bytes):
            stdin = stdin.decode("utf-8")
        return {**command(code), **_wire.body(language=language, session=session, env=env, dir=cwd, stdin=stdin, timeout=timeout, root=root)}

    async def _stream(self, request: Dict[str, Any], check: bool) -> AsyncExecStream:
        answer = await self._transport.send("POST", self._path("exec"), json=request, accept=_wire.SSE, endless=True)
        return AsyncExecStream(self._transport, answer, check)

    async def stream(self, code: Union[str, Sequence[str]], *, language: Optional[str] = None, session: Optional[str] = None,
                     env: Optional[Mapping[str, str]] = None, cwd: Optional[str] = None, stdin: Union[str, bytes, None] = None,
                     timeout: Optional[float] = None, root: bool = False, check: bool = False) -> AsyncExecStream:
        """Runs something and returns its output as it comes: iterate over it, then look at `result`. See `exec` for the arguments.

            async with await sandbox.stream("for i in 1 2 3; do echo $i; sleep 1; done") as output:
                async for event in output:
                    print(event.type, event.text, end="")
            print(output.result.exit_code)

        To close it before the end, also by leaving the context, ends what runs.
        """
        return await self._stream(self._run(code, language, session, env, cwd, stdin, timeout, root), check)

    async def pty(self, args: Optional[Sequence[str]] = None, *, cols: int = 80, rows: int = 24, env: Optional[Mapping[str, str]] = None,
                  cwd: Optional[str] = None, timeout: Optional[float] = None) -> AsyncTerminal:
        """Starts a command with a terminal, and returns it to be talked with.

        Args:
            args: the command; None is a login shell.
            cols, rows: the terminal's size.
            timeout: seconds after which it is ended, in whole ones; None is the server's day.
        """
        request = {**hello(list(args or ["bash", "-l"]), env, cwd, timeout), "tty": {"cols": cols, "rows": rows}}
        return await AsyncTerminal._start(self._transport, self._path("exec"), request, True)

    async def open(self, code: Union[str, Sequence[str]], *, language: Optional[str] = None, session: Optional[str] = None,
                   env: Optional[Mapping[str, str]] = None, cwd: Optional[str] = None, timeout: Optional[float] = None,
                   root: bool = False) -> AsyncTerminal:
        """Starts something with pipes, and returns it to be talked with: for what takes input as it runs. See `exec` for the arguments.
        Python and JavaScript begin when all of the input is there: after `close_stdin`.

        Args:
            timeout: seconds after which it is ended; None is the server's hour.
        """
        request = {**hello(code, env, cwd, timeout), **_wire.body(language=language, session=session, root=root)}
        return await AsyncTerminal._start(self._transport, self._path("exec"), request, False)

    async def follow(self, pid: int) -> AsyncTerminal:
        """Takes up a command that lost its client: one that runs on in a fork, or after hibernation. Its output comes, of what it wrote
        without a client the newest MiB, and it takes input. To close that leaves it as it is.

        Raises, from `wait`:
            NotFound: there is none of that number.
            Exists: it has a client.
        """
        return await AsyncTerminal._start(self._transport, self._path("exec"), {"attach": pid}, False)

    async def processes(self) -> List[ProcessInfo]:
        """Returns the commands that were started and haven't ended."""
        return await self._transport.list(ProcessInfo, self._path("processes"), "processes")

    async def kill(self, pid: int, signal: str = "TERM") -> None:
        """Sends a signal to a command that was started.

        Raises:
            NotFound: it has ended.
        """
        await self._transport.json("DELETE", self._path("processes", str(pid)), query={"signal": signal}, again=False)

    # Copies.

    async def fork(self, n: int = 1, *, name: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
                   secrets: Optional[Sequence[SecretUse]] = None, lease: Optional[Lease] = None, network: Optional[NetworkPolicy] = None,
                   kill: bool = False, labels: Optional[Mapping[str, str]] = None) -> List[AsyncSandbox]:
        """Makes n copies of the running sandbox: memory, processes and files, all of one instant. All are made, or none.

        Args:
            n: 1 to 1000.
            name: of the fork; the copies are NAME, or NAME-1, NAME-2 … of several.
            env: variables over those of this sandbox.
            network: at most what this one may.
            kill: what can't be copied (a process in the middle of a computation) is missing in the copies, instead of failing the fork.
        Raises:
            Conflict: a process can't be copied, or the name is taken.
            Denied: the copies would be allowed more than this one.
        """
        if n < 1:
            raise ValueError("fork: want 1 copy or more")
        v = await self._transport.json("POST", self._path("fork"), key="", timeout=_LONG, json=_wire.body(
            count=n, name=name, env=env, secrets=secrets, lease=lease, network=network, kill=kill, labels=labels))
        return [AsyncSandbox(self.client, _wire.decode(SandboxInfo, s)) for s in (v or {}).get("sandboxes") or []]

    async def tree(self, *, root: bool = False) -> Tree:
        """Returns this sandbox with all that were forked from it, and what they used; with root, the whole tree that it stands in."""
        return await self._transport.call(Tree, "GET", self._path("tree"), query={"root": root})

    async def diff(self, to: Union[AsyncSandbox, str, None] = None, *, path: Optional[str] = None) -> FileDiff:
        """Returns what differs between the files of this sandbox (before) and another (after); without one, what changed in this one since
        it was forked or claimed.

        Args:
            path: only at and beneath it.
        """
        answer = await self._transport.send("GET", self._path("diff"), query={"to": _id(to), "path": path}, accept=_wire.NDJSON)
        changes: List[FileChange] = []
        result: Optional[Dict[str, Any]] = None
        async with AsyncStream[Any](self._transport, answer, lambda v: [v]) as lines:
            async for line in lines:
                v = _wire.unwrap(line)
                if isinstance(v, dict) and isinstance(v.get("result"), dict):
                    result = v["result"]
                elif isinstance(v, dict) and "kind" in v:
                    changes.append(_wire.decode(FileChange, v))
        if result is None:
            raise ConnectionFailed("diff: the stream was cut off")
        summary = _wire.decode(FileDiff, result)
        return FileDiff(summary.before, summary.after, summary.added, summary.modified, summary.deleted, summary.metadata, changes)

    async def merge(self, into: Union[AsyncSandbox, str, None] = None, *, conflicts: str = "fail", dry_run: bool = False) -> FileMerge:
        """Merges the files of this sandbox into another. The base is what both were forked from.

        Args:
            into: the target; None is the parent.
            conflicts: of files that both changed: "fail", "ours" (the target's) or "theirs" (this one's).
            dry_run: only say what it would do.
        Raises:
            MergeConflict: there are conflicts, with "fail"; nothing was changed.
        """
        r = await self._transport.call(FileMerge, "POST", self._path("merge"),
                                       timeout=_LONG,
                                       json=_wire.body(into=_id(into), conflicts=conflicts, dry_run=dry_run))
        if r.conflicts and conflicts == "fail" and not dry_run:
            raise MergeConflict(f"merge: {len(r.conflicts) + r.more_conflicts} conflicts, such as {r.conflicts[0]}", conflicts=r.conflicts,
                                more_conflicts=r.more_conflicts, status=409, hint="merge with conflicts='ours' or 'theirs'")
        return r

    async def promote(self) -> SandboxInfo:
        """Puts this fork in its parent's place."""
        return await self._set("POST", "promote", timeout=_LONG)

    async def snapshot(self, name: Optional[str] = None, *, memory: bool = False, kill: bool = False) -> Snapshot:
        """Keeps the files of all durable volumes as they are at one instant. `create(snapshot=…)` makes sandboxes of it. It outlives the
        sandbox, which goes on.

        Args:
            memory: processes and memory are in it, too: what is made of it goes on from there.
            kill: processes that can't be copied are missing in it, instead of failing it.
        """
        return await self._transport.call(Snapshot, "POST", self._path("snapshots"), key="", timeout=_LONG,
                                          json=_wire.body(name=name, memory=memory or None, kill=kill or None))

    async def snapshots(self) -> List[Snapshot]:
        """Returns the snapshots that were taken of this sandbox."""
        return await self._transport.list(Snapshot, _wire.url_path("snapshots"), "snapshots", query={"sandbox": self.id})

    # Its life.

    async def hibernate(self, *, force: bool = False) -> SandboxInfo:
        """Saves memory, processes and files to disk and frees processor and memory. The next use wakes it up. While somebody uses it, it is a
        Conflict, unless by `force`: then what runs goes to sleep with it, as far as it can."""
        return await self._set("POST", "hibernate", json=_wire.body(force=force or None), again=True, timeout=_LONG)

    async def resume(self) -> SandboxInfo:
        """Wakes it up now, rather than at the next use."""
        return await self._set("POST", "resume", again=True, timeout=_LONG)

    async def extend(self, seconds: Optional[int] = None, *, exact: bool = False) -> SandboxInfo:
        """Moves the end of its lease to `seconds` from now, if that is later, or with `exact` in any case; None is the lease's own extension."""
        return await self._set("POST", "extend", json=_wire.body(seconds=seconds, exact=exact or None), again=True)

    async def release(self) -> None:
        """Gives it back to its pool: it ends, and the pool replaces it by a fresh one."""
        await self._transport.json("POST", self._path("release"))

    async def terminate(self) -> None:
        """Ends it, and deletes what was made for it. One that has ended already is fine."""
        try:
            await self._transport.json("DELETE", self._path())
        except Conflict:
            if (await self.refresh()).state not in ("ended", "failed", "ending"):
                raise

    async def change(self, *, name: Optional[str] = None, visibility: Optional[str] = None, lease: Optional[Lease] = None,
                     network: Optional[NetworkPolicy] = None, labels: Optional[Mapping[str, Optional[str]]] = None) -> SandboxInfo:
        """Changes what is given. Labels are added to those that it has; one whose value is None goes.

        Args:
            visibility: "private", "team" or "all".
            network: at most what its template, and the fork that made it, allow. It is in force at once, also for open connections.
        Raises:
            Conflict: the name is taken.
        """
        given = {"name": name, "visibility": visibility, "lease": _wire.encode(lease), "network": _wire.encode(network), "labels": labels}
        return await self._set("PATCH", json={k: v for k, v in given.items() if v is not None}, again=True)

    async def wait(self, state: str = "running", timeout: float = 60.0) -> SandboxInfo:
        """Waits until it is in a state.

        Args:
            timeout: seconds.
        Raises:
            Timeout: it isn't yet.
            Conflict: it has ended instead.
        """
        end, pause = time.monotonic() + timeout, 0.05
        while (await self.refresh()).state != state:
            if self.info.state in ("ended", "failed"):
                raise Conflict(f"wait: {self.id}: it is {self.info.state}" + (f": {self.info.reason}" if self.info.reason else ""))
            if time.monotonic() >= end:
                raise Timeout(f"wait: {self.id}: it is {self.info.state} after {timeout} s, not {state}")
            await _io.sleep(pause)
            pause = min(pause * 1.5, 1.0)
        return self.info

    async def metrics(self, *, start: Optional[datetime] = None, end: Optional[datetime] = None) -> List[Sample]:
        """Returns what it used over time, oldest first: a sample every few seconds while it runs, of what was long ago only some.

        Args:
            start, end: only samples between these times, with a time zone.
        """
        query = {"from": start and start.isoformat(), "to": end and end.isoformat()}
        return (await self._transport.call(Metrics, "GET", self._path("metrics"), query=query)).samples

    async def usage(self) -> Usage:
        """Returns what it used so far."""
        return await self._transport.call(Usage, "GET", self._path("usage"))

    async def credentials(self) -> Credentials:
        """Makes S3 keys for this sandbox's buckets and nothing else; they end with it.

            s3 = boto3.client("s3", **(await sandbox.credentials()).boto3())
        """
        return await self._transport.call(Credentials, "POST", self._path("credentials"), key="")

    async def attach(self, conversation: str, *, agent: Optional[str] = None, user: Optional[str] = None) -> Conversation:
        """Attaches it to a conversation."""
        return await self.client.conversations.attach(conversation, sandbox=self.id, agent=agent, user=user)

    def url(self, port: int, path: str = "/") -> str:
        """Returns the address of a server that listens on a port inside the sandbox. Requests carry the API key, as `headers` has it.

            httpx.get(sandbox.url(8000), headers=sandbox.headers)
        """
        if not 0 < port < 65536:
            raise ValueError("port: want 1 to 65535")
        return self._transport.config.endpoint + self._path("ports", str(port)) + "/" + path.lstrip("/")

    @property
    def headers(self) -> Dict[str, str]:
        """The headers that a request to `url` proves itself with."""
        key = self._transport.config.api_key
        return {"Authorization": "Bearer " + key} if key else {}

    async def __aenter__(self) -> AsyncSandbox:
        return self

    async def __aexit__(self, exc_type: Optional[Type[BaseException]], exc: Optional[BaseException], tb: object) -> None:
        try:
            await self.terminate()
        except NotFound:
            pass  # ended and forgotten
        except Exception:
            if exc is None:
                raise  # else what went wrong first is what is told


def _patience(timeout: Optional[float]) -> float:
    """Returns how long to wait for the answer of something that runs."""
    return (timeout or _SERVER_TIMEOUT) + _SLACK


def _id(s: Union[AsyncSandbox, str, None]) -> Optional[str]:
    return s.id if isinstance(s, AsyncSandbox) else s


