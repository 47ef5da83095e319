"""Memory maps, as far as they can be without a kernel: a copy of the file's bytes, which flush and close write back."""

import os as _os

ACCESS_DEFAULT, ACCESS_READ, ACCESS_WRITE, ACCESS_COPY = 0, 1, 2, 3
PROT_READ, PROT_WRITE, PROT_EXEC = 1, 2, 4
MAP_SHARED, MAP_PRIVATE, MAP_ANON, MAP_ANONYMOUS = 1, 2, 32, 32
PAGESIZE = ALLOCATIONGRANULARITY = 4096
error = OSError


class mmap(bytearray):
    def __new__(cls, fileno, length, flags=MAP_SHARED, prot=PROT_READ | PROT_WRITE, access=ACCESS_DEFAULT, offset=0):
        return super().__new__(cls)

    def __init__(self, fileno, length, flags=MAP_SHARED, prot=PROT_READ | PROT_WRITE, access=ACCESS_DEFAULT, offset=0):
        if length < 0:
            raise OverflowError("memory mapped length must be positive")
        if offset < 0:
            raise OverflowError("memory mapped offset must be positive")
        if offset % ALLOCATIONGRANULARITY:
            raise OSError(22, "Invalid argument")
        self._fd, self._at, self._pos, self._closed = -1, offset, 0, False
        self._access = access or (ACCESS_WRITE if prot & PROT_WRITE and flags & MAP_SHARED else ACCESS_COPY if prot & PROT_WRITE else ACCESS_READ)
        if fileno == -1:
            super().__init__(length)
            return
        size = _os.fstat(fileno).st_size
        if length == 0:
            if size == 0:
                raise ValueError("cannot mmap an empty file")
            if offset >= size:
                raise ValueError("mmap offset is greater than file size")
            length = size - offset
        elif offset + length > size:
            raise ValueError("mmap length is greater than file size")
        super().__init__(length)
        view, done = memoryview(self), 0
        while done < length:
            piece = _os.pread(fileno, min(length - done, 1 << 20), offset + done)
            if not piece:
                break
            view[done:done + len(piece)] = piece
            done += len(piece)
        view.release()
        if self._access == ACCESS_WRITE:
            self._fd = _os.dup(fileno)

    def _open(self):
        if self._closed:
            raise ValueError("mmap closed or invalid")

    def _writable(self):
        self._open()
        if self._access == ACCESS_READ:
            raise TypeError("mmap can't modify a readonly memory map.")

    closed = property(lambda self: self._closed)

    def __setitem__(self, key, value):
        self._writable()
        if isinstance(key, slice):
            if len(range(*key.indices(len(self)))) != len(value):
                raise IndexError("mmap slice assignment is wrong size")
        super().__setitem__(key, value)

    def __getitem__(self, key):
        self._open()
        value = super().__getitem__(key)
        return bytes(value) if isinstance(key, slice) else value

    def __delitem__(self, key):
        raise TypeError("mmap object doesn't support item deletion")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def __del__(self):
        try:
            self.close()
        except Exception:
            pass

    __hash__ = object.__hash__

    def read(self, n=None):
        self._open()
        end = len(self) if n is None or n < 0 else min(self._pos + n, len(self))
        data = self[self._pos:end]
        self._pos = max(end, self._pos)
        return data

    def readline(self):
        self._open()
        end = bytearray.find(self, b"\n", self._pos) + 1 or len(self)
        data = self[self._pos:end]
        self._pos = end
        return data

    def read_byte(self):
        self._open()
        if self._pos >= len(self):
            raise ValueError("read byte out of range")
        self._pos += 1
        return self[self._pos - 1]

    def write(self, data):
        self._writable()
        if self._pos + len(data) > len(self):
            raise ValueError("data out of range")
        self[self._pos:self._pos + len(data)] = data
        self._pos += len(data)
        return len(data)

    def write_byte(self, byte):
        self.write(bytes((byte,)))

    def tell(self):
        self._open()
        return self._pos

    def seek(self, pos, whence=0):
        self._open()
        pos += (0, self._pos, len(self))[whence]
        if not 0 <= pos <= len(self):
            raise ValueError("seek out of range")
        self._pos = pos

    def size(self):
        self._open()
        return _os.fstat(self._fd).st_size if self._fd >= 0 else len(self)

    def find(self, sub, start=None, end=None):
        self._open()
        return super().find(sub, self._pos if start is None else start, len(self) if end is None else end)

    def rfind(self, sub, start=None, end=None):
        self._open()
        return super().rfind(sub, self._pos if start is None else start, len(self) if end is None else end)

    def move(self, to, source, count):
        self._writable()
        if min(to, source, count) < 0 or max(to, source) + count > len(self):
            raise ValueError("source, destination, or count out of range")
        self[to:to + count] = self[source:source + count]

    def resize(self, size):
        raise SystemError("mmap: resizing not available--no mremap()")

    def madvise(self, option, start=0, length=None):
        self._open()

    def flush(self, offset=0, size=None):
        self._open()
        if self._fd >= 0:
            end = len(self) if size is None else offset + size
            view = memoryview(self)
            try:
                while offset < end:
                    offset += _os.pwrite(self._fd, view[offset:min(end, offset + (1 << 20))], self._at + offset)
            finally:
                view.release()

    def close(self):
        if getattr(self, "_closed", True):
            return
        try:
            self.flush()
        finally:
            self._closed = True
            if self._fd >= 0:
                _os.close(self._fd)
                self._fd = -1
            try:
                bytearray.clear(self)
            except BufferError:
                pass
