"""What differs between the asynchronous and the synchronous half by more than words. Its counterpart stands in _sync/_io.py."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, AsyncIterator, Awaitable, Callable, Dict, Optional, Sequence, TypeVar, Union

from ..errors import ConnectionFailed

T = TypeVar("T")
Condition = asyncio.Condition
Task = Union["asyncio.Task[None]"]


async def sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


def spawn(work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
    async def run() -> None:
        await work()

    return asyncio.ensure_future(run())


async def join(task: asyncio.Task[None]) -> None:
    """Waits until a task has ended, which it does soon once its socket is closed."""
    if task is not asyncio.current_task():
        await asyncio.wait([task])


async def wait(condition: asyncio.Condition, timeout: Optional[float]) -> bool:
    """Waits to be notified; False if that took too long."""
    try:
        await asyncio.wait_for(condition.wait(), timeout)
    except asyncio.TimeoutError:
        return False
    return True


async def call_in_thread(f: Callable[..., T], *args: Any) -> T:
    """Calls what blocks, such as the reading of a file, where it doesn't hold up the event loop."""
    return await asyncio.get_running_loop().run_in_executor(None, f, *args)


async def iterate(source: Any) -> AsyncIterator[bytes]:
    """Yields the pieces of a source of either kind."""
    if hasattr(source, "__aiter__"):
        async for piece in source:
            yield piece
    else:
        for piece in source:
            yield piece


class Socket:
    """A WebSocket. Text messages are str, binary ones bytes."""

    def __init__(self, ws: Any) -> None:
        self._ws = ws

    @classmethod
    async def connect(cls, url: str, *, protocol: str, headers: Dict[str, str], tls: Optional[ssl.SSLContext], timeout: float,
                      proxy: bool) -> Socket:
        from websockets.asyncio.client import connect
        from websockets.typing import Subprotocol

        class Direct(connect):
            def process_redirect(self, exc: Exception) -> Exception:
                return exc  # the key isn't for wherever a server points

        return cls(await Direct(url, subprotocols=[Subprotocol(protocol)], additional_headers=headers, ssl=tls, open_timeout=timeout,
                                close_timeout=2, max_size=4 << 20, proxy=True if proxy else None, user_agent_header=None))

    async def send(self, message: Union[str, bytes]) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            await self._ws.send(message)
        except ConnectionClosed as e:
            raise ConnectionFailed(f"exec: the connection has ended: {e}") from e

    async def receive(self) -> Optional[Union[str, bytes]]:
        """Returns the next message; None once the connection has ended."""
        from websockets.exceptions import ConnectionClosed

        try:
            return await self._ws.recv()  # type: ignore[no-any-return]
        except ConnectionClosed:
            return None

    async def close(self) -> None:
        await self._ws.close()


_clients: Dict[asyncio.AbstractEventLoop, Dict[Any, Any]] = {}


def shared(make: Callable[[], T], key: Sequence[Any]) -> T:
    """Returns the client that all who don't bring their own share: one for each event loop, to which its connections belong."""
    for loop in [loop for loop in list(_clients) if loop.is_closed()]:
        _clients.pop(loop, None)  # its connections end with it
    of = _clients.setdefault(asyncio.get_running_loop(), {})
    k = tuple(key)
    if k not in of:
        of[k] = make()
    return of[k]  # type: ignore[no-any-return]
