"""The stream of events."""

from __future__ import annotations

from typing import Any, Iterable, List, Optional

from .. import _wire
from ..errors import ConnectionFailed, Timeout
from ..types import Event
from . import _io
from .transport import AsyncStream, AsyncTransport


class AsyncEventStream:
    """Events, oldest first. `position` is where it is: whoever keeps it can go on there later, in another process too."""

    def __init__(self, transport: AsyncTransport, after: int, sandbox: Optional[str], kind: Optional[str], follow: bool) -> None:
        self.position = after
        self._transport, self._follow = transport, follow
        self._query = {"sandbox": sandbox, "kind": kind}
        self._stream: Optional[AsyncStream[Event]] = None
        self._page: List[Event] = []
        self._closed = False
        self._failures = 0  # in a row

    def __aiter__(self) -> AsyncEventStream:
        return self

    async def __anext__(self) -> Event:
        if not self._follow:
            return await self._listed()
        while not self._closed:
            try:
                if self._stream is None:
                    self._stream = await self._open()
                event = await self._stream.__anext__()
                self._failures = 0
                if event.seq <= self.position:
                    continue  # told before the connection broke
                self.position = event.seq
                return event
            except StopAsyncIteration:
                await self._pause(None)
            except (ConnectionFailed, Timeout) as e:
                await self._pause(e)
        raise StopAsyncIteration

    async def _open(self) -> AsyncStream[Event]:
        headers = {"Last-Event-ID": str(self.position)} if self.position else {}
        answer = await self._transport.send("GET", _wire.url_path("events"), query={"after": self.position, **self._query}, headers=headers,
                                            accept=_wire.SSE, endless=True)

        def parse(v: Any) -> Iterable[Event]:
            v = _wire.unwrap(v)
            return [_wire.decode(Event, v)] if isinstance(v, dict) and "seq" in v else []

        return AsyncStream(self._transport, answer, parse)

    async def _pause(self, e: Optional[Exception]) -> None:
        """Waits before the stream is opened again. A server that isn't there for long is an error."""
        if self._stream is not None:
            await self._stream.aclose()
            self._stream = None
        self._failures += 1
        if self._failures > 10 and e is not None:
            raise e
        if not self._closed:
            await _io.sleep(self._transport.retry.wait(self._failures))

    async def _listed(self) -> Event:
        if not self._page and not self._closed:
            v = await self._transport.json("GET", _wire.url_path("events"), query={"after": self.position, "limit": 1000, **self._query})
            self._page = [_wire.decode(Event, e) for e in v.get("events") or []]
            if not self._page:
                self._closed = True
        if not self._page:
            raise StopAsyncIteration
        event = self._page.pop(0)
        self.position = event.seq
        return event

    async def aclose(self) -> None:
        """Ends the stream."""
        self._closed = True
        if self._stream is not None:
            await self._stream.aclose()
            self._stream = None

    async def __aenter__(self) -> AsyncEventStream:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()
