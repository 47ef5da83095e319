"""Sockets, of which a sandbox's Python has none: names and constants are here so that modules which mention them can be imported; making one is
denied. A pair of connected ones, as asyncio has for waking itself, is two pipes."""

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

_DENIED = "network access is denied in this sandbox: its Python has no sockets (curl and pip work where the policy allows it)"


def _denied(*args, **kwargs):
    raise PermissionError(_errno.EACCES, _DENIED)


_default_timeout = None


def getdefaulttimeout():
    return _default_timeout


def setdefaulttimeout(t):
    global _default_timeout
    _default_timeout = t


class socket:
    """One end of a pair; any other is refused. What detach returns is only good for making another object of it."""

    __slots__ = ("_read", "_write", "_timeout")
    family, type, proto = AF_UNIX, SOCK_STREAM, 0
    timeout = property(lambda self: self._timeout)

    def __init__(self, family=-1, type=-1, proto=-1, fileno=None):
        if not isinstance(fileno, tuple):
            self._read = self._write = -1
            _denied()
        self._read, self._write = fileno
        self._timeout = None

    def fileno(self):
        return self._read

    def recv(self, n, flags=0):
        return _os.read(self._read, n)

    def recv_into(self, buffer, nbytes=0, flags=0):
        view = memoryview(buffer).cast("B")
        data = _os.read(self._read, nbytes or len(view))
        view[:len(data)] = data
        return len(data)

    def send(self, data, flags=0):
        return _os.write(self._write, data)

    def sendall(self, data, flags=0):
        view = memoryview(data).cast("B")
        while view:
            view = view[_os.write(self._write, view):]

    def setblocking(self, flag):
        self._timeout = None if flag else 0.0

    def settimeout(self, t):
        self._timeout = t

    def gettimeout(self):
        return self._timeout

    def getblocking(self):
        return self._timeout != 0.0

    def getpeername(self):
        return ""

    getsockname = getpeername

    def shutdown(self, how):
        if how != SHUT_RD and self._write >= 0:
            _os.close(self._write)
            self._write = -1

    def close(self):
        for fd in (self._read, self._write):
            if fd >= 0:
                _os.close(fd)
        self._read = self._write = -1

    def detach(self):
        both = self._read, self._write
        self._read = self._write = -1
        return both

    def _accept(self):
        _denied()

    bind = listen = connect = connect_ex = accept = setsockopt = getsockopt = sendto = recvfrom = recvfrom_into = _denied


SocketType = socket


def socketpair(family=AF_UNIX, type=SOCK_STREAM, proto=0):
    a, b = _os.pipe()
    c, d = _os.pipe()
    return socket(fileno=(a, d)), socket(fileno=(c, b))


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


def getaddrinfo(host, port, family=0, type=0, proto=0, flags=0):
    if isinstance(host, bytes):
        host = host.decode()
    host = {"localhost": "127.0.0.1", None: "127.0.0.1", "": "0.0.0.0"}.get(host, host)
    try:
        _number(host)
    except OSError:
        raise gaierror(EAI_AGAIN, "Temporary failure in name resolution: " + _DENIED) from None
    port = int(port or 0) if str(port or 0).isdigit() else getservbyname(port)
    return [(AF_INET, t, p, "", (host, port)) for t, p in ((SOCK_STREAM, 6), (SOCK_DGRAM, 17)) if type in (0, t)]


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
