"""Sockets: TCP in the sandbox's own network, with descriptors as any file has; and TCP connections to the outside that the host makes, as far as the
sandbox's policy allows them. Everything else is denied. A pair of connected ones, as asyncio has for waking itself, is two pipes."""

import _agentrun
import errno as _errno
import os as _os

error = OSError


class herror(OSError):
    pass


class gaierror(OSError):
    pass


timeout = TimeoutError
has_ipv6 = False
CAPI = None
AF_UNSPEC, AF_UNIX, AF_INET, AF_INET6 = 0, 1, 2, 10
SOCK_STREAM, SOCK_DGRAM, SOCK_RAW = 1, 2, 3
SOCK_NONBLOCK, SOCK_CLOEXEC = 0o4000, 0o2000000
SOL_SOCKET, SO_DEBUG, SO_REUSEADDR, SO_TYPE, SO_ERROR, SO_BROADCAST, SO_SNDBUF, SO_RCVBUF, SO_KEEPALIVE, SO_LINGER, SO_REUSEPORT = 1, 1, 2, 3, 4, 6, 7, 8, 9, 13, 15
SOL_TCP = IPPROTO_TCP = 6
IPPROTO_IP, IPPROTO_ICMP, IPPROTO_UDP, IPPROTO_IPV6 = 0, 1, 17, 41
TCP_NODELAY, TCP_MAXSEG, TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT = 1, 2, 4, 5, 6
IPV6_V6ONLY = 26
SOMAXCONN = 128
MSG_OOB, MSG_PEEK, MSG_DONTWAIT, MSG_WAITALL, MSG_NOSIGNAL = 1, 2, 0x40, 0x100, 0x4000
SHUT_RD, SHUT_WR, SHUT_RDWR = 0, 1, 2
AI_PASSIVE, AI_CANONNAME, AI_NUMERICHOST, AI_V4MAPPED, AI_ALL, AI_ADDRCONFIG, AI_NUMERICSERV = 1, 2, 4, 8, 16, 32, 1024
NI_NUMERICHOST, NI_NUMERICSERV, NI_MAXHOST, NI_MAXSERV = 1, 2, 1025, 32
EAI_AGAIN, EAI_FAIL, EAI_FAMILY, EAI_NONAME, EAI_SERVICE, EAI_SOCKTYPE = -3, -4, -6, -2, -8, -7
INADDR_ANY, INADDR_LOOPBACK, INADDR_BROADCAST = 0, 0x7F000001, 0xFFFFFFFF

_DENIED = "network access is denied in this sandbox: there is nothing but TCP"


def _denied(*args, **kwargs):
    raise PermissionError(_errno.EACCES, _DENIED)


# As Linux words what this system's library words otherwise.
_TEXTS = {_errno.EADDRINUSE: "Address already in use", _errno.EADDRNOTAVAIL: "Cannot assign requested address", _errno.EISCONN: "Transport endpoint is already connected",
          _errno.ENOTCONN: "Transport endpoint is not connected", _errno.ENETUNREACH: "Network is unreachable", _errno.ENOTSOCK: "Socket operation on non-socket"}


def _error(number):
    return OSError(number, _TEXTS.get(number) or _os.strerror(number))


def _call(op, *fields, data=b""):
    """Asks the host: fields of text, then data."""
    b = b"".join(str(f).encode("utf-8", "surrogateescape") + b"\0" for f in fields) + bytes(data)
    while True:
        answer = _agentrun.call(op, b)
        if answer[:1] == b"+":
            return answer[1:]
        number, _, text = answer[1:].partition(b"\0")
        number, text = int(number), text.decode("utf-8", "replace")
        if number == _errno.EINTR:
            _os.getpid()  # handlers run between two calls
            continue
        if number >= 1 << 17:
            import ssl
            raise (ssl.SSLCertVerificationError if number & 1 else ssl.SSLError)(1, text)
        if number >= 1 << 16:
            raise gaierror(EAI_NONAME, "Name or service not known")
        if number == _errno.ETIMEDOUT:
            raise TimeoutError("timed out")
        raise OSError(number, text) if number == _errno.EACCES else _error(number)


_CONNECT, _RECEIVE, _SEND, _SHUT, _TLS, _FILE, _SOCKET, _OPTION, _BIND, _LISTEN, _ACCEPT, _NAMES, _SHUTDOWN, _JOIN, _ADOPT = range(10, 25)
_OPTIONS = {(SOL_SOCKET, SO_REUSEADDR): "reuse", (SOL_SOCKET, SO_REUSEPORT): "port", (IPPROTO_IPV6, IPV6_V6ONLY): "v6only"}
_default_timeout = None


def getdefaulttimeout():
    return _default_timeout


def setdefaulttimeout(t):
    global _default_timeout
    _default_timeout = None if t is None else float(t)


class socket:
    """A TCP socket of the sandbox's network (_fd); a TCP connection to the outside, which the host makes and holds if the policy allows it (_conn); or one end
    of a pair, which is two pipes (_read, _write). It is none of them yet before bind or connect. What detach returns of a connection to the outside is only
    good for making another object of it."""

    __slots__ = ("_read", "_write", "_conn", "_fd", "_peer", "_timeout", "_family", "_type", "_proto", "_options")
    timeout = property(lambda self: self._timeout)
    family = property(lambda self: self._family)
    type = property(lambda self: self._type)
    proto = property(lambda self: self._proto)

    def __init__(self, family=-1, type=-1, proto=-1, fileno=None):
        self._read = self._write = self._conn = self._fd = -1
        self._peer = None
        self._options = {}
        self._timeout = _default_timeout
        self._family, self._type, self._proto = (AF_INET if family == -1 else family), (SOCK_STREAM if type == -1 else type), max(proto, 0)
        if isinstance(fileno, tuple):
            self._read, self._write, self._conn, self._peer, self._timeout, self._family = fileno
        elif fileno is not None:
            local = _names_of(fileno)[0]  # of no socket: ENOTSOCK
            self._own(fileno)
            if family == -1:
                self._family = AF_INET6 if ":" in local[0] else AF_INET

    def _own(self, fd):
        self._fd = self._read = self._write = fd
        _os.set_blocking(fd, self._timeout is None)

    def _ready(self, write=False):
        """Waits for the descriptor as long as the timeout allows."""
        if self._timeout:
            import select
            fd = [self._write if write else self._read]
            if not any(select.select([] if write else fd, fd if write else [], [], self._timeout)):
                raise TimeoutError("timed out")

    def fileno(self):
        if self._read < 0 and self._conn >= 0:
            self._read = int(_call(_FILE, self._conn))
        return self._read

    def _limit(self):
        return -1 if not self._timeout else int(self._timeout * 1000)

    def _stream(self):
        if self._family not in (AF_INET, AF_INET6) or self._type & 0xF != SOCK_STREAM:
            _denied()

    def _make(self):
        """Makes it a socket of the sandbox's network."""
        self._stream()
        if self._conn >= 0:
            raise _error(_errno.EINVAL)
        if self._fd < 0:
            self._own(int(_call(_SOCKET, "6" if self._family == AF_INET6 else "4")))
            for option, on in self._options.items():
                if option in _OPTIONS:
                    _call(_OPTION, self._fd, _OPTIONS[option], on)

    def bind(self, address):
        host, port = _split(address)
        if not 0 <= port <= 65535:
            raise OverflowError("bind(): port must be 0-65535.")
        self._make()
        _call(_BIND, self._fd, _names.get(host, host) or ("::" if self._family == AF_INET6 else "0.0.0.0"), port)

    def listen(self, backlog=128):
        self._make()
        _call(_LISTEN, self._fd, max(int(backlog), 0))

    def _accept(self):
        if self._fd < 0:
            raise _error(_errno.EINVAL)
        while True:
            if self._timeout is None:
                import select
                select.select([self._fd], [], [])
            else:
                self._ready()
            try:
                fd = int(_call(_ACCEPT, self._fd))
                break
            except BlockingIOError:
                if self._timeout == 0:
                    raise
        return fd, _names_of(fd)[1]

    def connect(self, address):
        self._stream()
        if self._conn >= 0 or self._write >= 0 and self._fd < 0:
            raise _error(_errno.EISCONN)
        host, port = _split(address)
        host = _names.get(host, host) or "127.0.0.1"
        if self._fd >= 0:
            try:
                _call(_JOIN, self._fd, host, port, self._limit())
                return
            except OSError as e:
                if e.errno != _errno.ENETUNREACH:
                    raise
            self.close()
        answer = _call(_CONNECT, host, port, self._limit())
        if answer[:1] == b"f":
            self._own(int(answer[1:]))
            return
        self._conn = int(answer)
        self._peer = tuple(address)

    def connect_ex(self, address):
        try:
            self.connect(address)
        except OSError as e:
            return e.errno or _errno.ETIMEDOUT
        return 0

    def _connected(self):
        if self._conn < 0:
            raise _error(_errno.ENOTCONN)
        return self._conn

    def recv(self, n, flags=0):
        if self._fd >= 0:
            self._ready()
            return _os.read(self._fd, n)
        if self._timeout == 0:
            self.fileno()
        if self._read >= 0:
            if self._timeout is not None:
                import select
                if not select.select([self._read], [], [], self._timeout)[0]:
                    if self._timeout == 0:
                        raise _error(_errno.EAGAIN)
                    raise TimeoutError("timed out")
            return _os.read(self._read, n)
        return _call(_RECEIVE, self._connected(), n, self._limit())

    def recv_into(self, buffer, nbytes=0, flags=0):
        view = memoryview(buffer).cast("B")
        data = self.recv(nbytes or len(view), flags)
        view[:len(data)] = data
        return len(data)

    def recvfrom(self, n, flags=0):
        return self.recv(n, flags), self._peer

    def recvfrom_into(self, buffer, nbytes=0, flags=0):
        return self.recv_into(buffer, nbytes, flags), self._peer

    def send(self, data, flags=0):
        if self._conn < 0 and self._write >= 0:
            self._ready(True)
            return _os.write(self._write, data)
        return int(_call(_SEND, self._connected(), self._limit(), data=memoryview(data).cast("B")[:1 << 20]))

    def sendmsg(self, buffers, ancdata=(), flags=0, address=None):
        if ancdata or address is not None:
            _denied()
        return self.send(b"".join(buffers), flags)

    def sendall(self, data, flags=0):
        view = memoryview(data).cast("B")
        while view:
            view = view[self.send(view):]

    def setblocking(self, flag):
        self._timeout = None if flag else 0.0
        for fd in {self._read, self._write}:
            if fd >= 0:
                _os.set_blocking(fd, bool(flag))

    def settimeout(self, t):
        if t is not None and t < 0:
            raise ValueError("Timeout value out of range")
        self._timeout = None if t is None else float(t)
        if self._fd >= 0:
            _os.set_blocking(self._fd, t is None)

    def gettimeout(self):
        return self._timeout

    def getblocking(self):
        return self._timeout != 0.0

    def getpeername(self):
        if self._fd >= 0:
            peer = _names_of(self._fd)[1]
            if peer is None:
                raise _error(_errno.ENOTCONN)
            return peer
        if self._peer is None and self._write < 0:
            raise _error(_errno.ENOTCONN)
        return self._peer or ""

    def getsockname(self):
        none = ("::", 0, 0, 0) if self._family == AF_INET6 else ("0.0.0.0", 0)
        if self._fd >= 0:
            return _names_of(self._fd)[0] or none
        return "" if self._write >= 0 else none

    def setsockopt(self, level, option, value=None, length=0):
        if isinstance(value, (bytes, bytearray)):
            value = int.from_bytes(value[:4], "little")
        self._options[level, option] = value = int(value or 0)
        if self._fd >= 0 and (level, option) in _OPTIONS:
            _call(_OPTION, self._fd, _OPTIONS[level, option], value)

    def getsockopt(self, level, option, length=0):
        known = {(SOL_SOCKET, SO_TYPE): self._type & 0xF, (SOL_SOCKET, SO_RCVBUF): 65536, (SOL_SOCKET, SO_SNDBUF): 65536}
        value = self._options.get((level, option), 0)
        if level == SOL_SOCKET and option == SO_ERROR:
            value = 0
        value = known.get((level, option), value)
        return value.to_bytes(4, "little")[:length] if length else value

    def shutdown(self, how):
        if self._fd >= 0:
            _call(_SHUTDOWN, self._fd, how)
        elif self._conn >= 0:
            if how != SHUT_RD:
                _call(_SHUT, self._conn, "w")
        elif how != SHUT_RD and self._write >= 0:
            _os.close(self._write)
            self._write = -1

    def close(self):
        fds, conn = {self._read, self._write}, self._conn
        self._read = self._write = self._conn = self._fd = -1
        for fd in fds:
            if fd >= 0:
                _os.close(fd)
        if conn >= 0:
            _call(_SHUT, conn, "")

    def __del__(self):
        if getattr(self, "_conn", -1) >= 0 or getattr(self, "_read", -1) >= 0:
            try:
                self.close()
            except Exception:
                pass

    def detach(self):
        if self._fd >= 0 or self._read < 0 and self._conn < 0:
            fd = self._fd
            self._read = self._write = self._fd = -1
            return fd
        both = self._read, self._write, self._conn, self._peer, self._timeout, self._family
        self._read = self._write = self._conn = -1
        return both

    def _secure(self, name, verify, protocols, certificates):
        if self._fd >= 0:
            self._peer, self._conn = _names_of(self._fd)[1], int(_call(_ADOPT, self._fd))  # the descriptor is gone
            self._read = self._write = self._fd = -1
        if self._read >= 0 and self._conn >= 0:
            raise OSError(_errno.EINVAL, "TLS has to begin before anything is read by the descriptor")
        *text, certificate = _call(_TLS, self._connected(), name, verify, protocols, data=certificates).split(b"\0", 8)
        return [t.decode("utf-8", "replace") for t in text] + [certificate]

    sendto = recvmsg = _denied


SocketType = socket


def _split(address):
    if not isinstance(address, (tuple, list)) or len(address) not in (2, 3, 4):
        raise TypeError("AF_INET address must be tuple, not " + type(address).__name__)
    host, port = address[:2]
    if isinstance(host, (bytes, bytearray)):
        host = host.decode()
    if not isinstance(host, str):
        raise TypeError("str, bytes or bytearray expected, not " + type(host).__name__)
    return host, int(port)


def _names_of(fd):
    """The addresses of a socket: its own and its peer's, None where there is none."""
    fields = _call(_NAMES, fd).split(b"\0")
    return [None if not host else (host.decode(), int(port), 0, 0) if b":" in host else (host.decode(), int(port)) for host, port in (fields[:2], fields[2:4])]


def socketpair(family=AF_UNIX, type=SOCK_STREAM, proto=0):
    a, b = _os.pipe()
    c, d = _os.pipe()
    return socket(fileno=(a, d, -1, None, None, AF_UNIX)), socket(fileno=(c, b, -1, None, None, AF_UNIX))


def close(fd):
    _os.close(fd)


def dup(fd):
    return _os.dup(fd)


def gethostname():
    return _os.uname().nodename


def _number(host):
    parts = host.split(".")
    if len(parts) == 4 and all(p.isdigit() and int(p) < 256 for p in parts):
        return bytes(map(int, parts))
    raise OSError("illegal IP address string passed to inet_aton")


def inet_aton(host):
    return _number(host)


def inet_ntoa(packed):
    if len(packed) != 4:
        raise OSError("packed IP wrong length")
    return ".".join(map(str, bytes(packed)))


def inet_pton(family, host):
    if family == AF_INET:
        return _number(host)
    if family == AF_INET6:
        import ipaddress
        try:
            return ipaddress.IPv6Address(host).packed
        except ValueError:
            raise OSError("illegal IP address string passed to inet_pton") from None
    raise OSError(_errno.EAFNOSUPPORT, "Address family not supported by protocol")


def inet_ntop(family, packed):
    if family == AF_INET and len(packed) == 4:
        return inet_ntoa(packed)
    if family == AF_INET6 and len(packed) == 16:
        import ipaddress
        return str(ipaddress.IPv6Address(bytes(packed)))
    raise ValueError("invalid length of packed IP address string")


def _swap16(n):
    if not 0 <= n <= 0xFFFF:
        raise OverflowError("htons: Python int too large to convert to C 16-bit unsigned integer")
    return (n & 0xFF) << 8 | n >> 8


def _swap32(n):
    return int.from_bytes(n.to_bytes(4, "little"), "big")


htons = ntohs = _swap16
htonl = ntohl = _swap32


_names = {"0.0.0.0": "127.0.0.1"}  # made-up addresses: names are resolved by the host, after the policy was asked
_addresses = {}


def _address(host):
    try:
        _number(host)
        return host
    except OSError:
        pass
    if host not in _addresses:
        n = len(_addresses) + 1
        _addresses[host] = "240.%d.%d.%d" % (n >> 16 & 255, n >> 8 & 255, n & 255)
        _names[_addresses[host]] = host
    return _addresses[host]


def _port(port):
    if isinstance(port, bytes):
        port = port.decode()
    try:
        return int(port or 0)
    except ValueError:
        pass
    try:
        return getservbyname(port)
    except OSError:
        raise gaierror(EAI_SERVICE, "Servname not supported for ai_socktype") from None


def getaddrinfo(host, port, family=0, type=0, proto=0, flags=0):
    if isinstance(host, bytes):
        host = host.decode()
    host = {"localhost": "127.0.0.1", None: "0.0.0.0" if flags & AI_PASSIVE else "127.0.0.1", "": "0.0.0.0"}.get(host, host)
    if flags & AI_NUMERICHOST and ":" not in host:
        try:
            _number(host)
        except OSError:
            raise gaierror(EAI_NONAME, "Name or service not known") from None
    if host == "::" or ":" in host or family == AF_INET6 and host in ("127.0.0.1", "0.0.0.0"):
        host = {"127.0.0.1": "::1", "0.0.0.0": "::"}.get(host, host)
        try:
            host = inet_ntop(AF_INET6, inet_pton(AF_INET6, host.partition("%")[0]))
        except OSError:
            raise gaierror(EAI_NONAME, "Name or service not known") from None
        if family not in (AF_UNSPEC, AF_INET6):
            raise gaierror(-9, "Address family for hostname not supported")
        return [(AF_INET6, t, p, "", (host, _port(port), 0, 0)) for t, p in ((SOCK_STREAM, 6), (SOCK_DGRAM, 17)) if type in (0, t) and proto in (0, p)]
    if family not in (AF_UNSPEC, AF_INET):
        raise gaierror(EAI_FAMILY, "Address family for hostname not supported")
    return [(AF_INET, t, p, "", (_address(host), _port(port))) for t, p in ((SOCK_STREAM, 6), (SOCK_DGRAM, 17)) if type in (0, t) and proto in (0, p)]


def gethostbyname(host):
    return getaddrinfo(host, 0)[0][4][0]


def gethostbyname_ex(host):
    return host, [], [gethostbyname(host)]


def gethostbyaddr(host):
    if host in ("127.0.0.1", "localhost"):
        return "localhost", [], ["127.0.0.1"]
    raise herror(1, "Unknown host")


def getnameinfo(address, flags):
    return address[0], str(address[1])


_services = {"http": 80, "https": 443, "ssh": 22, "ftp": 21, "smtp": 25, "domain": 53, "telnet": 23, "pop3": 110, "imap2": 143}


def getservbyname(name, proto="tcp"):
    try:
        return _services[name]
    except KeyError:
        raise OSError("service/proto not found") from None


def getservbyport(port, proto="tcp"):
    for name, n in _services.items():
        if n == port:
            return name
    raise OSError("port/proto not found")


def getprotobyname(name):
    try:
        return {"ip": 0, "icmp": 1, "tcp": 6, "udp": 17}[name]
    except KeyError:
        raise OSError("protocol not found") from None
