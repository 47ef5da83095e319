"""The files of a sandbox."""

from __future__ import annotations

import io
import os
import posixpath
from typing import IO, TYPE_CHECKING, Any, AsyncIterable, AsyncIterator, Iterable, List, Optional, Union, overload

import httpx

from .. import _wire
from .._wire import PathLike
from ..errors import ConnectionFailed, Exists, NotFound
from ..types import FileEvent, FileInfo
from . import _io
from .transport import AsyncStream

try:
    from typing import Literal
except ImportError:  # pragma: no cover
    from typing_extensions import Literal

if TYPE_CHECKING:
    from .sandbox import AsyncSandbox

_PIECE = 256 << 10  # bytes of an upload that are read at once

Content = Union[str, bytes, bytearray, memoryview, IO[bytes], Iterable[bytes], AsyncIterable[bytes]]


class AsyncFileStream:
    """The content of a file, piece by piece. Close it, or use it as a context, unless it is read to the end."""

    def __init__(self, files: AsyncFiles, answer: httpx.Response) -> None:
        self._transport, self._answer = files._transport, answer
        self._bytes: Optional[AsyncIterator[bytes]] = None

    @property
    def size(self) -> Optional[int]:
        """Bytes that will come; None if that isn't known."""
        n = self._answer.headers.get("content-length", "")
        return int(n) if n.isdigit() and "content-encoding" not in self._answer.headers else None

    def __aiter__(self) -> AsyncFileStream:
        return self

    async def __anext__(self) -> bytes:
        if self._bytes is None:
            self._bytes = self._answer.aiter_bytes().__aiter__()
        try:
            return await self._bytes.__anext__()
        except StopAsyncIteration:
            await self.aclose()
            raise
        except (httpx.TransportError, httpx.StreamError) as e:
            await self.aclose()
            raise self._transport._unreachable(e) from None

    async def aclose(self) -> None:
        """Ends it; what wasn't read isn't sent."""
        await self._answer.aclose()

    async def __aenter__(self) -> AsyncFileStream:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


class AsyncFiles:
    """Files of a sandbox, as `sandbox.files`. A relative path begins at the sandbox's start directory, /workspace.

    Every method may raise NotFound (no such file, or no such sandbox), Denied, Invalid (such as a directory where a file is wanted) and
    Conflict (the sandbox has ended).
    """

    def __init__(self, sandbox: AsyncSandbox) -> None:
        self._sandbox = sandbox
        self._transport = sandbox._transport

    def _path(self, *more: str) -> str:
        return _wire.url_path("sandboxes", self._sandbox.id, "files", *more)

    @overload
    async def read(self, path: PathLike, format: Literal["text"] = "text", *, offset: int = 0, length: Optional[int] = None,
                   errors: str = "strict") -> str: ...

    @overload
    async def read(self, path: PathLike, format: Literal["bytes"], *, offset: int = 0, length: Optional[int] = None) -> bytes: ...

    @overload
    async def read(self, path: PathLike, format: Literal["stream"], *, offset: int = 0, length: Optional[int] = None) -> AsyncFileStream: ...

    async def read(self, path: PathLike, format: str = "text", *, offset: int = 0, length: Optional[int] = None,
                   errors: str = "strict") -> Union[str, bytes, AsyncFileStream]:
        """Returns the content of a file.

        Args:
            format: "text" (UTF-8), "bytes", or "stream": pieces as they come, for what doesn't fit in memory.
            offset: bytes to leave out at the beginning.
            length: bytes to return at most; None is all.
            errors: what becomes of bytes that aren't UTF-8, as for bytes.decode: "strict" raises UnicodeDecodeError.
        """
        if format not in ("text", "bytes", "stream"):
            raise ValueError(f"format {format!r}: want text, bytes or stream")
        if offset < 0 or (length is not None and length < 0):
            raise ValueError("offset and length aren't negative")
        headers = {"Accept-Encoding": "identity"}
        if length == 0:
            await self.stat(path)  # HTTP has no range of nothing
            return b"" if format == "bytes" else "" if format == "text" else AsyncFileStream(self, httpx.Response(200, content=b""))
        if offset or length is not None:
            headers["Range"] = f"bytes={offset}-" + (str(offset + length - 1) if length is not None else "")
        try:
            answer = await self._transport.send("GET", self._path(), query={"path": _wire.file_path(path)}, headers=headers, accept="*/*")
        except Exception as e:
            if getattr(e, "status", 0) != 416:
                raise
            answer = httpx.Response(200, content=b"")  # it ends before the offset
        if format == "stream":
            return AsyncFileStream(self, answer)
        data = await self._transport.read(answer)
        if answer.status_code == 200 and (offset or length is not None):  # a server without ranges
            data = data[offset:] if length is None else data[offset:offset + length]
        return data if format == "bytes" else data.decode("utf-8", errors)

    async def read_bytes(self, path: PathLike) -> bytes:
        """Returns the content of a file as bytes."""
        return await self.read(path, "bytes")

    async def write(self, path: PathLike, data: Content, *, mode: Optional[int] = None) -> FileInfo:
        """Writes a file, with the directories above it. What was there is replaced at once, when all has arrived; after an error nothing
        has changed.

        Args:
            data: text (written as UTF-8), bytes, a file opened for reading bytes, or an iterable of bytes.
            mode: permission bits, such as 0o755.
        Raises:
            TooLarge, LimitExceeded, NoSpace: it doesn't fit.
        """
        query = {"path": _wire.file_path(path), "mode": None if mode is None else f"{mode:04o}"}
        headers = {"Content-Type": "application/octet-stream"}
        if isinstance(data, str):
            data = data.encode("utf-8")
        if isinstance(data, (bytes, bytearray, memoryview)):
            content = bytes(data)
            headers["Content-Length"] = str(len(content))
            return await self._put(query, headers, lambda: content, _nothing)
        source: Any = data
        read = getattr(source, "read", None)
        if read is None:
            if not hasattr(data, "__iter__") and not hasattr(data, "__aiter__"):
                raise TypeError(f"write: want text, bytes, a file or an iterable of bytes, not {type(data).__name__}")
            return await self._put(query, headers, lambda: _io.iterate(data), None)
        if isinstance(data, io.TextIOBase):
            raise TypeError("write: the file is opened for text: open it with mode 'rb'")
        start = source.tell() if getattr(source, "seekable", bool)() else None

        async def pieces() -> AsyncIterator[bytes]:
            while True:
                piece = await _io.call_in_thread(read, _PIECE)
                if not piece:
                    return
                yield piece

        async def rewind() -> None:
            await _io.call_in_thread(source.seek, start)

        return await self._put(query, headers, pieces, rewind if start is not None else None)

    async def _put(self, query: Any, headers: Any, content: Any, rewind: Any) -> FileInfo:
        v = await self._transport.json("PUT", self._path(), query=query, headers=headers, content=content, rewind=rewind)
        return _wire.decode(FileInfo, v) if v else await self.stat(query["path"])

    async def upload(self, local: Union[str, os.PathLike[str]], path: PathLike) -> FileInfo:
        """Copies a file from this machine into the sandbox, with its permission bits. A path that ends in "/" keeps the name."""
        with open(local, "rb") as f:
            p = _wire.file_path(path)
            if p.endswith("/"):
                p = posixpath.join(p, os.path.basename(os.fspath(local)))
            return await self.write(p, f, mode=os.fstat(f.fileno()).st_mode & 0o777)

    async def download(self, path: PathLike, local: Union[str, os.PathLike[str]]) -> int:
        """Copies a file from the sandbox to this machine, and returns how many bytes it had. A failed download leaves nothing."""
        n = 0
        partial = os.fspath(local) + ".partial"
        try:
            async with await self.read(path, "stream") as pieces:
                with open(partial, "wb") as f:
                    async for piece in pieces:
                        n += len(piece)
                        await _io.call_in_thread(f.write, piece)
                if pieces.size is not None and n != pieces.size:
                    raise ConnectionFailed(f"download: {path}: {n} of {pieces.size} bytes came")
            os.replace(partial, local)
        finally:
            if os.path.exists(partial):
                os.remove(partial)
        return n

    async def list(self, path: PathLike = ".", *, depth: int = 1, limit: Optional[int] = None) -> List[FileInfo]:
        """Returns the entries of a directory, by name.

        Args:
            depth: how many levels down it goes; 1 is the directory's own entries.
            limit: at most so many; None is all.
        """
        query = {"path": _wire.file_path(path), "depth": depth if depth != 1 else None}
        return await self._transport.list(FileInfo, self._path("list"), "files", query=query, limit=limit)

    async def stat(self, path: PathLike) -> FileInfo:
        """Describes a file. It doesn't follow a symbolic link."""
        return await self._transport.call(FileInfo, "GET", self._path("stat"), query={"path": _wire.file_path(path)})

    async def exists(self, path: PathLike) -> bool:
        """Whether there is such a file or directory."""
        try:
            await self.stat(path)
        except NotFound:
            await self._sandbox.refresh()  # raises if it is the sandbox that isn't there
            return False
        return True

    async def remove(self, path: PathLike, *, recursive: bool = False, missing_ok: bool = False) -> None:
        """Removes a file or an empty directory; with recursive, whatever is beneath it too.

        Raises:
            NotEmpty: a directory that holds something, without recursive.
            NotFound: it isn't there, without missing_ok.
        """
        try:
            await self._transport.json("DELETE", self._path(), query={"path": _wire.file_path(path), "recursive": recursive})
        except NotFound:
            if not missing_ok:
                raise

    async def mkdir(self, path: PathLike, *, mode: Optional[int] = None, exist_ok: bool = True) -> None:
        """Makes a directory, with those above it.

        Args:
            mode: permission bits, such as 0o700.
            exist_ok: a directory that is there already is fine, and stays as it is.
        Raises:
            Exists: there is something else of that name, or, without exist_ok, a directory.
        """
        try:
            await self._transport.json("POST", self._path("mkdir"), json=_wire.body(path=_wire.file_path(path), mode=mode), again=exist_ok)
        except Exists:
            if not exist_ok or not (await self.stat(path)).is_dir:
                raise

    async def move(self, path: PathLike, to: PathLike) -> None:
        """Renames or moves a file or directory. A file that is there already is replaced."""
        await self._transport.json("POST", self._path("move"), json={"path": _wire.file_path(path), "to": _wire.file_path(to)})

    async def watch(self, path: PathLike = ".", *, recursive: bool = False) -> AsyncStream[FileEvent]:
        """Watches a directory or file. When it returns, nothing that happens from now on is missed; iterate over the changes, and close it.

        Args:
            recursive: whatever is beneath it, too.
        """
        answer = await self._transport.send("GET", self._path("watch"), query={"path": _wire.file_path(path), "recursive": recursive},
                                            accept=_wire.SSE, endless=True)
        stream: AsyncStream[FileEvent] = AsyncStream(self._transport, answer, lambda v: [_wire.decode(FileEvent, _wire.unwrap(v))])
        try:
            async for event in stream:
                if event.kind == "ready":
                    return stream
        except BaseException:
            await stream.aclose()
            raise
        raise ConnectionFailed("watch: the stream ended before it began")


async def _nothing() -> None:
    pass
