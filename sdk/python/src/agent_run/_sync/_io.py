"""What differs between the asynchronous and the synchronous half by more than words. Its counterpart stands in _async/_io.py."""

from __future__ import annotations

import os
import ssl
import threading
import time
from typing import Any, Callable, Dict, Iterator, Optional, Sequence, TypeVar, Union

from ..errors import ConnectionFailed

T = TypeVar("T")
Condition = threading.Condition
Task = threading.Thread


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def spawn(work: Callable[[], None]) -> threading.Thread:
    t = threading.Thread(target=work, name="agent-run", daemon=True)
    t.start()
    return t


def join(task: threading.Thread) -> None:
    """Waits until a task has ended, which it does soon once its socket is closed."""
    if task is not threading.current_thread():
        task.join(10)


def wait(condition: threading.Condition, timeout: Optional[float]) -> bool:
    """Waits to be notified; False if that took too long."""
    return condition.wait(timeout)


def call_in_thread(f: Callable[..., T], *args: Any) -> T:
    """Calls what blocks, which is nobody's loss here."""
    return f(*args)


def iterate(source: Any) -> Iterator[bytes]:
    """Yields the pieces of a source."""
    yield from source


class Socket:
    """A WebSocket. Text messages are str, binary ones bytes."""

    def __init__(self, ws: Any) -> None:
        self._ws = ws

    @classmethod
    def connect(cls, url: str, *, protocol: str, headers: Dict[str, str], tls: Optional[ssl.SSLContext], timeout: float,
                proxy: bool) -> Socket:
        from websockets.sync.client import connect
        from websockets.typing import Subprotocol

        # Entered by hand: of newer versions what connect returns is a context, of older ones the connection itself.
        return cls(connect(url, subprotocols=[Subprotocol(protocol)], additional_headers=headers, ssl=tls, open_timeout=timeout,
                           close_timeout=2, max_size=4 << 20, proxy=True if proxy else None, user_agent_header=None).__enter__())

    def send(self, message: Union[str, bytes]) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            self._ws.send(message)
        except ConnectionClosed as e:
            raise ConnectionFailed(f"exec: the connection has ended: {e}") from e

    def receive(self) -> Optional[Union[str, bytes]]:
        """Returns the next message; None once the connection has ended."""
        from websockets.exceptions import ConnectionClosed

        try:
            return self._ws.recv()  # type: ignore[no-any-return]
        except ConnectionClosed:
            return None

    def close(self) -> None:
        self._ws.close()


_clients: Dict[Any, Any] = {}
_lock = threading.Lock()


def shared(make: Callable[[], T], key: Sequence[Any]) -> T:
    """Returns the client that all who don't bring their own share: one for each process, since a fork must not use its parent's sockets."""
    k = (os.getpid(), *key)
    with _lock:
        if k not in _clients:
            _clients[k] = make()
        return _clients[k]  # type: ignore[no-any-return]
