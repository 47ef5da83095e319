"""Requests and their answers: headers, time limits, repetition, errors, streams."""

from __future__ import annotations

import platform
import socket
import ssl
import uuid
from typing import Any, AsyncIterator, Awaitable, Callable, Dict, Generic, Iterable, List, Mapping, Optional, Type, TypeVar, Union

import httpx

from .. import _wire
from .._config import Config
from .._retry import REFUSED, UNSURE, Retry
from .._version import __version__
from ..errors import ConnectionFailed, Timeout, Unavailable, from_answer
from . import _io

T = TypeVar("T")
S = TypeVar("S")

USER_AGENT = f"agent-run/{__version__} python/{platform.python_version()}"
MAX_PROBLEM = 4 << 20  # bytes that are read of an error's answer

HEARTBEAT = 15.0  # seconds between signs of life in an event stream

# A peer that has vanished is noticed within two minutes, also while nothing is to be said.
_KEEPALIVE = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)] + [
    (socket.IPPROTO_TCP, getattr(socket, name), value)
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)) if hasattr(socket, name)
] + [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]


class AsyncTransport:
    """The connections to one server.

    Args:
        timeout: seconds that a plain request may take between two pieces of its answer.
        connect_timeout: seconds that a connection may take to come about.
    """

    def __init__(self, config: Config, *, timeout: float = 60.0, connect_timeout: float = 10.0, retry: Optional[Retry] = None,
                 max_connections: int = 100, http_client: Optional[httpx.AsyncClient] = None) -> None:
        self.config = config
        self.timeout, self.connect_timeout = timeout, connect_timeout
        self.retry = retry or Retry()
        self.tls = config.tls()
        self.headers = {"User-Agent": USER_AGENT}
        if config.api_key:
            self.headers["Authorization"] = "Bearer " + config.api_key
        self._own = http_client is None
        if http_client is None:
            # http needs no certificates: loading the system's would take longer than a fork. A context without any refuses all.
            verify = self.tls or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            limits = httpx.Limits(max_connections=max_connections, max_keepalive_connections=20, keepalive_expiry=30)
            if config.local:  # no proxy stands between
                http_client = httpx.AsyncClient(trust_env=False, transport=httpx.AsyncHTTPTransport(
                    verify=verify, limits=limits, socket_options=_KEEPALIVE, trust_env=False))
            else:
                http_client = httpx.AsyncClient(verify=verify, limits=limits)
        self.http = http_client

    async def aclose(self) -> None:
        if self._own:
            await self.http.aclose()

    def timeouts(self, read: Optional[float]) -> httpx.Timeout:
        return httpx.Timeout(read, connect=self.connect_timeout, write=self.timeout, pool=max(self.timeout, self.connect_timeout))

    async def send(self, method: str, path: str, *, query: Optional[Mapping[str, Any]] = None, json: Any = None, content: Any = None,
                   headers: Optional[Mapping[str, str]] = None, accept: str = _wire.JSON, timeout: Optional[float] = None,
                   endless: bool = False, again: Optional[bool] = None, key: Optional[str] = None,
                   rewind: Optional[Callable[[], Awaitable[Any]]] = None) -> httpx.Response:
        """Sends a request and returns its answer, whose body isn't read yet. The caller closes it.

        Args:
            timeout: seconds between two pieces of the answer; the transport's own by default.
            endless: the answer is an event stream, that goes on for as long as it likes, with signs of life.
            again: whether it may be repeated after it may have been done; by default all but POST and PATCH may.
            key: an Idempotency-Key, with which it may; "" makes one.
            rewind: makes the content anew before a repetition.
        """
        url = self.config.endpoint + path + _wire.query_string(query or {})
        sent = dict(self.headers)
        sent["Accept"] = accept
        sent.update(headers or {})
        if key is not None:
            sent["Idempotency-Key"] = key or str(uuid.uuid4())
        if again is None:
            again = key is not None or method not in ("POST", "PATCH")
        read = self.timeout if timeout is None else timeout
        limits = self.timeouts(max(read, 4 * HEARTBEAT) if endless else read)
        attempt = 0
        while True:
            attempt += 1
            body: Dict[str, Any] = {} if json is None else {"json": json}
            if content is not None:
                body["content"] = content() if callable(content) else content
            may = attempt < self.retry.attempts and (content is None or rewind is not None)
            answer: Optional[httpx.Response] = None
            try:
                request = self.http.build_request(method, url, headers=sent, timeout=limits, **body)
                answer = await self.http.send(request, stream=True)
                if answer.status_code < 300:
                    return answer
                refused = answer.status_code in REFUSED or (again and answer.status_code in UNSURE)
                if not (may and refused):
                    failure = await self._failure(answer)
                    # A request of ours whose connection broke is still being answered.
                    if not (may and key is not None and attempt > 1 and getattr(failure, "op", "") == "idempotency key"):
                        raise failure
            except (httpx.ConnectError, httpx.ConnectTimeout) as e:  # nothing was sent
                if not may:
                    raise self._unreachable(e) from None
            except (httpx.TimeoutException, httpx.UnsupportedProtocol) as e:  # who waited for so long doesn't want to wait again
                raise self._unreachable(e) from None
            except httpx.TransportError as e:
                if not (may and again):
                    raise self._unreachable(e) from None
            wait = self.retry.wait(attempt, answer.headers if answer is not None else None)
            if answer is not None:
                await answer.aclose()
            if rewind is not None:
                await rewind()
            await _io.sleep(wait)

    def _unreachable(self, e: Exception) -> Exception:
        """Words a failure to get any answer."""
        host = self.config.host
        if isinstance(e, httpx.TimeoutException):
            what = "connect" if isinstance(e, (httpx.ConnectTimeout, httpx.PoolTimeout)) else "read answer"
            return Timeout(f"{what}: {host}: timed out", op=what, thing=host)
        text = str(e) or type(e).__name__
        hint = ""
        if "CERTIFICATE_VERIFY_FAILED" in text:
            hint = "give the server's certificate with ca_cert=, or AGENTRUN_CA_CERT"
        elif isinstance(e, (httpx.ConnectError, ConnectionRefusedError)):
            hint = "start a server with 'agentrun up', or say where one is with endpoint= or AGENTRUN_ENDPOINT"
        return ConnectionFailed(f"connect: {host}: {text}", op="connect", thing=host, cause=text, hint=hint)

    async def _failure(self, answer: httpx.Response) -> Exception:
        """Returns the error that an answer reports."""
        data = b""
        try:
            async for piece in answer.aiter_bytes():
                data += piece
                if len(data) > MAX_PROBLEM:
                    break
        except httpx.TransportError:
            pass  # the status says enough
        finally:
            await answer.aclose()
        return from_answer(answer.status_code, answer.headers.get("content-type", ""), data, self.config.host)

    async def read(self, answer: httpx.Response) -> bytes:
        """Returns the whole body of an answer, and closes it."""
        try:
            return await answer.aread()
        except httpx.TransportError as e:
            raise self._unreachable(e) from None
        finally:
            await answer.aclose()

    async def call(self, cls: Type[T], method: str, path: str, **options: Any) -> T:
        """Sends a request and returns its answer as a dataclass."""
        return _wire.decode(cls, await self.json(method, path, **options))

    async def json(self, method: str, path: str, **options: Any) -> Any:
        """Sends a request and returns its answer; None if that is empty."""
        data = await self.read(await self.send(method, path, **options))
        return _wire.parse_json(data) if data.strip() else None

    async def pages(self, cls: Type[T], path: str, field: str, *, query: Optional[Mapping[str, Any]] = None,
                    limit: Optional[int] = None) -> AsyncIterator[T]:
        """Yields the items of a list, page by page."""
        q = dict(query or {})
        while limit is None or limit > 0:
            if limit is not None:
                q["limit"] = min(limit, 1000)
            page = await self.json("GET", path, query=q)
            items = (page or {}).get(field) or []
            for item in items:
                yield _wire.decode(cls, item)
            cursor = (page or {}).get("next")
            if limit is not None:
                limit -= len(items)
            if not cursor or not items:
                return
            q["cursor"] = cursor

    async def list(self, cls: Type[T], path: str, field: str, *, query: Optional[Mapping[str, Any]] = None,
                   limit: Optional[int] = None) -> List[T]:
        """Returns the items of a list, all of them or the first so many."""
        return [item async for item in self.pages(cls, path, field, query=query, limit=limit)]


class AsyncStream(Generic[T]):
    """A stream of the server's, to be iterated. It is closed at its end, when an error ends it, or by `aclose`; also as a context."""

    def __init__(self, transport: AsyncTransport, answer: httpx.Response, parse: Callable[[Any], Iterable[T]]) -> None:
        self._transport, self._answer, self._parse = transport, answer, parse
        sse = answer.headers.get("content-type", "").startswith(_wire.SSE)
        self._parser: Union[_wire.SSEParser, _wire.NDJSONParser] = _wire.SSEParser() if sse else _wire.NDJSONParser()
        self._bytes: Optional[AsyncIterator[bytes]] = None
        self._ready: List[T] = []
        self._failed: Optional[BaseException] = None  # what comes after the items that are ready
        self._closed = self._eof = False

    def __aiter__(self) -> AsyncStream[T]:
        return self

    async def __anext__(self) -> T:
        while not self._ready:
            if self._failed is not None:
                e, self._failed = self._failed, None
                raise e
            if not await self._more():
                raise StopAsyncIteration
        return self._ready.pop(0)

    async def _more(self) -> bool:
        """Reads a piece; False at the end."""
        if self._closed:
            return False
        if self._bytes is None:
            self._bytes = self._answer.aiter_bytes().__aiter__()
        try:
            piece = await self._bytes.__anext__()
        except StopAsyncIteration:
            self._eof = True
            await self.aclose()
            return False
        except (httpx.TransportError, httpx.StreamError) as e:
            if self._closed:
                return False  # by another thread or task
            await self.aclose()
            raise self._transport._unreachable(e) from None
        except BaseException:
            await self.aclose()
            raise
        try:
            for v in self._parser.feed(piece):
                self._ready.extend(self._parse(v))
        except Exception as e:
            self._failed = e
            await self.aclose()
        return True

    async def aclose(self) -> None:
        """Ends the stream; the server is told by the end of the connection."""
        if not self._closed:
            self._closed = True
            await self._answer.aclose()

    async def __aenter__(self: S) -> S:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


def cut_off(host: str) -> Unavailable:
    """The error of a stream that ended before its result."""
    return ConnectionFailed(f"read answer: {host}: the stream was cut off", op="read answer", thing=host)
