# Written by unasync.py from _async/process.py: change that.
"""What runs in a sandbox: streams of output, processes in the background, terminals."""

from __future__ import annotations

import codecs
import json
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Deque, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from .. import _wire
from ..errors import ConnectionFailed, Timeout, from_answer, from_problem
from ..types import ExecEvent, ExecResult, ProcessInfo
from . import _io
from .transport import Stream, Transport, cut_off

if TYPE_CHECKING:
    from .sandbox import Sandbox

# Of the WebSocket on which one command runs; see the server's API.
PROTOCOL = "agentrun.exec.v1"
_STDIN, _STDOUT, _STDERR = 0, 1, 2
_MAX_FRAME = 64 << 10
_MAX_HELD = 1 << 20  # bytes of output that nobody has read yet; then the command waits


class ExecStream(Stream[ExecEvent]):
    """The output of something that runs, as it comes. Iterating yields `ExecEvent`s; after the last one `result` tells how it ended. To
    close it earlier ends what runs."""

    def __init__(self, transport: Transport, answer: Any, check: bool) -> None:
        self._exec = _wire.ExecParser()
        self._check = check
        super().__init__(transport, answer, self._exec.feed)

    @property
    def pid(self) -> int:
        """The process inside the sandbox; 0 until it is known."""
        return self._exec.pid

    @property
    def result(self) -> ExecResult:
        """How it ended, with all of its output (of more than 8 MiB the first and last part).

        Raises:
            RuntimeError: it hasn't ended yet: iterate to the end, or call `wait`.
        """
        if self._exec.result is None:
            raise RuntimeError("what runs hasn't ended yet: iterate to the end, or call wait()")
        return self._exec.result

    def wait(self) -> ExecResult:
        """Reads the rest of the output, and returns how it ended.

        Raises:
            ConnectionFailed: the stream was cut off; whether it ended isn't known.
            CommandFailed: with check, the exit code isn't 0.
        """
        for _ in self:
            pass
        if self._exec.result is None:
            raise cut_off(self._transport.config.host)
        return self._exec.result.check() if self._check else self._exec.result

    def __next__(self) -> ExecEvent:
        try:
            return super().__next__()
        except StopIteration:
            if self._exec.result is None and self._eof:
                raise cut_off(self._transport.config.host) from None
            raise


class Process:
    """A command that runs in the background of a sandbox. It goes on when the client has gone."""

    def __init__(self, sandbox: Sandbox, pid: int, log: str = "") -> None:
        self.sandbox, self.pid, self.log = sandbox, pid, log

    def __repr__(self) -> str:
        return f"Process(pid={self.pid}, sandbox={self.sandbox.id!r})"

    def info(self) -> Optional[ProcessInfo]:
        """Describes it; None once it has ended."""
        for p in self.sandbox.processes():
            if p.pid == self.pid:
                return p
        return None

    def is_running(self) -> bool:
        """Whether it hasn't ended."""
        return self.info() is not None

    def kill(self, signal: str = "TERM") -> None:
        """Sends it a signal: TERM, KILL, INT, HUP, USR1, USR2, QUIT …

        Raises:
            NotFound: it has ended.
        """
        self.sandbox.kill(self.pid, signal)

    def output(self) -> str:
        """Returns what it wrote to its log so far. Only for one that was started with log=."""
        if not self.log:
            raise ValueError("this process has no log: start it with exec(..., background=True, log='/path')")
        return self.sandbox.files.read(self.log, errors="replace")

    def wait(self, timeout: Optional[float] = None, interval: float = 0.1) -> None:
        """Waits until it has ended. Its exit code isn't kept: have it write that to a file, if it matters.

        Args:
            timeout: seconds; None waits for ever.
            interval: seconds between two looks at it, which grow to ten times that.
        Raises:
            Timeout: it still runs.
        """
        end = None if timeout is None else time.monotonic() + timeout
        pause = interval
        while self.is_running():
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                raise Timeout(f"wait: process {self.pid}: still runs after {timeout} s")
            _io.sleep(pause if left is None else min(pause, left))
            pause = min(pause * 1.5, interval * 10)


class Terminal:
    """A command that one talks with, over a WebSocket: with a terminal (`sandbox.pty`) or plain pipes (`sandbox.open`).

    Output is read with `read`, or by iterating; input is written with `write`. As a context it is ended on the way out. One task may read
    while another writes.
    """

    def __init__(self, socket: _io.Socket, tty: bool) -> None:
        self._socket, self.tty = socket, tty
        self._changed = _io.Condition()
        self._held: Deque[Tuple[int, bytes]] = deque()
        self._size = 0
        self._window = 0
        self._writers = 0
        self._ended = False
        self._exit: Optional[int] = None
        self._error: Optional[Exception] = None
        self._pid = 0
        self._result: Optional[ExecResult] = None
        new = codecs.getincrementaldecoder("utf-8")
        self._text = {_STDOUT: new("replace"), _STDERR: new("replace")}
        self._receiver = _io.spawn(self._receive)

    @classmethod
    def _start(cls, transport: Transport, path: str, hello: Mapping[str, Any], tty: bool) -> Terminal:
        from websockets.exceptions import InvalidHandshake, InvalidStatus

        c = transport.config
        host = c.host
        try:
            socket = _io.Socket.connect("ws" + c.endpoint[len("http"):] + path, protocol=PROTOCOL, headers=transport.headers, tls=transport.tls,
                                              timeout=transport.connect_timeout, proxy=not c.local)
        except InvalidStatus as e:
            r = e.response
            raise from_answer(r.status_code, r.headers.get("Content-Type", ""), bytes(r.body or b""), host) from e
        except TimeoutError as e:
            raise Timeout(f"connect: {host}: timed out") from e
        except (OSError, InvalidHandshake) as e:
            raise transport._unreachable(e) from None
        socket.send(json.dumps(hello))
        return cls(socket, tty)

    def _receive(self) -> None:
        """Takes what the server sends, until the connection ends. It pauses while too much is held that nobody reads."""
        while True:
            message = self._socket.receive()
            with self._changed:
                if message is None:
                    self._ended = True
                elif isinstance(message, str):
                    self._control(json.loads(message))
                elif message:
                    self._held.append((message[0], message[1:]))
                    self._size += len(message) - 1
                self._changed.notify_all()
                # A writer waits for a window, which may stand behind the output.
                while self._size > _MAX_HELD and not self._writers and not self._ended:
                    _io.wait(self._changed, None)
                if self._ended:
                    return

    def _control(self, c: Dict[str, Any]) -> None:
        if c.get("window"):
            self._window += int(c["window"])
        if c.get("pid"):
            self._pid = int(c["pid"])
        if isinstance(c.get("result"), dict):
            self._result = _wire.decode(ExecResult, c["result"])
        if c.get("exit") is not None:
            self._exit = int(c["exit"])
        if isinstance(c.get("error"), dict):
            self._error = from_problem(c["error"])

    def _next(self, timeout: Optional[float]) -> Optional[Tuple[int, bytes]]:
        end = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while not self._held:
                if self._ended:
                    return None
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    raise Timeout(f"read: nothing came within {timeout} s")
                _io.wait(self._changed, left)
            stream, data = self._held.popleft()
            self._size -= len(data)
            self._changed.notify_all()
            return stream, data

    def read(self, timeout: Optional[float] = None) -> bytes:
        """Returns the next output, whatever its stream; b"" at the end.

        Args:
            timeout: seconds to wait for some; None waits for ever.
        Raises:
            Timeout: nothing came.
        """
        part = self._next(timeout)
        while part is not None and not part[1]:
            part = self._next(timeout)
        return part[1] if part is not None else b""

    def read_until(self, text: Union[str, bytes], timeout: Optional[float] = 10.0) -> str:
        """Returns output up to and with a text. What came after it in the same piece is part of what it returns.

        Args:
            timeout: seconds for all of it.
        Raises:
            Timeout: the text didn't come; the error's `cause` holds what did.
            EOFError: the command has ended without.
        """
        want = text.encode() if isinstance(text, str) else text
        end = None if timeout is None else time.monotonic() + timeout
        got = b""
        while want not in got:
            try:
                piece = self.read(None if end is None else max(0.0, end - time.monotonic()))
            except Timeout:
                raise Timeout(f"read: {text!r} didn't come within {timeout} s", cause=got.decode("utf-8", "replace")) from None
            if not piece:
                raise EOFError(f"the command has ended without {text!r}: {got[-500:]!r}")
            got += piece
        return got.decode("utf-8", "replace")

    def __iter__(self) -> Terminal:
        return self

    def __next__(self) -> ExecEvent:
        part = self._next(None)
        if part is None:
            raise StopIteration
        stream, data = part
        return ExecEvent("stderr" if stream == _STDERR else "stdout", data, self._text[stream].decode(data) if stream in self._text else "")

    def write(self, data: Union[str, bytes], timeout: Optional[float] = None) -> None:
        """Sends input. It waits while the command doesn't read: the server holds 256 KiB for it.

        Args:
            timeout: seconds that it may wait each time; None waits for ever.
        Raises:
            Timeout: the command doesn't read.
            ConnectionFailed: the command has ended.
        """
        b = data.encode() if isinstance(data, str) else bytes(data)
        while b:
            with self._changed:
                self._writers += 1
                self._changed.notify_all()
                try:
                    while self._window <= 0 and not self._ended:
                        if not _io.wait(self._changed, timeout):
                            raise Timeout(f"write: the command hasn't read for {timeout} s")
                finally:
                    self._writers -= 1
                if self._ended:
                    raise ConnectionFailed("write: the command has ended")
                n = min(len(b), self._window, _MAX_FRAME)
                self._window -= n
                # Sent before anybody else takes a part of the window, so that the order is that of the calls.
                self._socket.send(bytes([_STDIN]) + b[:n])
            b = b[n:]

    def _tell(self, **control: Any) -> None:
        if not self._ended:
            self._socket.send(json.dumps(control))

    def close_stdin(self) -> None:
        """Says that no more input follows."""
        self._tell(eof=True)

    def resize(self, cols: int, rows: int) -> None:
        """Changes the terminal's size, in characters."""
        self._tell(resize={"cols": cols, "rows": rows})

    def kill(self, signal: str = "TERM") -> None:
        """Sends a signal: HUP, INT, QUIT, KILL, TERM, USR1 or USR2."""
        self._tell(signal=signal)

    @property
    def exit_code(self) -> Optional[int]:
        """0 to 255; None while it runs."""
        return self._exit

    @property
    def pid(self) -> int:
        """The process inside the sandbox; 0 until it has begun, and for text that an interpreter runs."""
        return self._pid

    @property
    def result(self) -> Optional[ExecResult]:
        """Of text, once it has ended: the value of its last expression and the language that it ran as. It has no output."""
        return self._result

    def wait(self, timeout: Optional[float] = None) -> int:
        """Waits until the command has ended, and returns its exit code. Output that nobody has read by then is dropped.

        Args:
            timeout: seconds; None waits for ever.
        Raises:
            Timeout: it still runs.
            ConnectionFailed: the connection broke; whether it ended isn't known.
            AgentRunError: the server ended it, as the error says.
        """
        end = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while not self._ended:
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    raise Timeout(f"wait: still runs after {timeout} s")
                self._held.clear()
                self._size = 0
                self._changed.notify_all()
                _io.wait(self._changed, left)
        if self._error is not None:
            raise self._error
        if self._exit is None:
            raise ConnectionFailed("exec: the connection has ended before the command")
        return self._exit

    def close(self) -> None:
        """Ends the command, if it still runs, and the connection."""
        with self._changed:
            closing = not self._ended
            self._size = 0  # nobody will read it
            self._held.clear()
            self._changed.notify_all()
        if closing or self._receiver is not None:
            self._socket.close()
        _io.join(self._receiver)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def hello(code: Union[str, Sequence[str]], env: Optional[Mapping[str, str]], cwd: Optional[str], timeout: Optional[float]) -> Dict[str, Any]:
    """Returns the first message of an exec's socket."""
    if timeout is not None and timeout <= 0:
        raise ValueError("timeout: want seconds above 0, or None")
    out = {**command(code), **_wire.body(dir=cwd, env=[f"{k}={v}" for k, v in (env or {}).items()])}
    if timeout:
        out["timeout"] = int(-(-timeout // 1))
    return out


def command(code: Union[str, Sequence[str]]) -> Dict[str, Any]:
    """Returns what a request says about what to run."""
    if isinstance(code, str):
        if not code:
            raise ValueError("nothing to run")
        return {"code": code}
    args: List[str] = list(code)
    if not args or not all(isinstance(a, str) for a in args):
        raise TypeError("a command is text, or a list of words")
    return {"args": args}
