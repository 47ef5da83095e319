"""TLS for clients. The host speaks it, with its own versions, ciphers and authorities; this module has the names that programs use. Contexts for servers, own
certificates and MemoryBIO are refused."""

import os
import socket as _socket
from enum import IntEnum as _IntEnum, IntFlag as _IntFlag, Enum as _Enum
from collections import namedtuple
import base64

OPENSSL_VERSION = "OpenSSL 3.0.0 (TLS is done by the sandbox's host)"
OPENSSL_VERSION_NUMBER, OPENSSL_VERSION_INFO, _OPENSSL_API_VERSION = 0x30000000, (3, 0, 0, 0, 0), (3, 0, 0, 0, 0)
HAS_SNI = HAS_ALPN = HAS_ECDH = HAS_TLSv1_2 = HAS_TLSv1_3 = HAS_NEVER_CHECK_COMMON_NAME = True
HAS_NPN = HAS_SSLv2 = HAS_SSLv3 = HAS_TLSv1 = HAS_TLSv1_1 = False
CHANNEL_BINDING_TYPES = []
_RESTRICTED_SERVER_CIPHERS = _DEFAULT_CIPHERS = "DEFAULT"


class VerifyMode(_IntEnum):
    CERT_NONE, CERT_OPTIONAL, CERT_REQUIRED = 0, 1, 2


class _SSLMethod(_IntEnum):
    PROTOCOL_TLS = PROTOCOL_SSLv23 = 2
    PROTOCOL_TLSv1, PROTOCOL_TLSv1_1, PROTOCOL_TLSv1_2 = 3, 4, 5
    PROTOCOL_TLS_CLIENT, PROTOCOL_TLS_SERVER = 16, 17


class TLSVersion(_IntEnum):
    MINIMUM_SUPPORTED, SSLv3, TLSv1, TLSv1_1, TLSv1_2, TLSv1_3, MAXIMUM_SUPPORTED = -2, 768, 769, 770, 771, 772, -1


class Options(_IntFlag):
    OP_ALL, OP_NO_SSLv2, OP_NO_SSLv3, OP_NO_TLSv1, OP_NO_TLSv1_1 = 0x80000050, 0, 0x2000000, 0x4000000, 0x10000000
    OP_NO_TLSv1_2, OP_NO_TLSv1_3, OP_NO_COMPRESSION, OP_NO_TICKET, OP_NO_RENEGOTIATION = 0x8000000, 0x20000000, 0x20000, 0x4000, 0x40000000
    OP_SINGLE_DH_USE, OP_SINGLE_ECDH_USE, OP_CIPHER_SERVER_PREFERENCE, OP_IGNORE_UNEXPECTED_EOF, OP_ENABLE_MIDDLEBOX_COMPAT = 0, 0, 0x400000, 0x80, 0x100000
    OP_LEGACY_SERVER_CONNECT = 4


class VerifyFlags(_IntFlag):
    VERIFY_DEFAULT, VERIFY_CRL_CHECK_LEAF, VERIFY_CRL_CHECK_CHAIN, VERIFY_X509_STRICT, VERIFY_X509_TRUSTED_FIRST = 0, 4, 12, 32, 32768
    VERIFY_ALLOW_PROXY_CERTS, VERIFY_X509_PARTIAL_CHAIN = 64, 0x80000


class SSLErrorNumber(_IntEnum):
    SSL_ERROR_SSL, SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE, SSL_ERROR_WANT_X509_LOOKUP, SSL_ERROR_SYSCALL = 1, 2, 3, 4, 5
    SSL_ERROR_ZERO_RETURN, SSL_ERROR_WANT_CONNECT, SSL_ERROR_EOF, SSL_ERROR_INVALID_ERROR_CODE = 6, 7, 8, 10


class AlertDescription(_IntEnum):
    ALERT_DESCRIPTION_CLOSE_NOTIFY, ALERT_DESCRIPTION_HANDSHAKE_FAILURE, ALERT_DESCRIPTION_BAD_CERTIFICATE = 0, 40, 42


for _kind in (VerifyMode, _SSLMethod, Options, VerifyFlags, SSLErrorNumber, AlertDescription):
    globals().update(_kind.__members__)


class _ASN1Object(namedtuple("_ASN1Object", "nid shortname longname oid")):
    pass


class Purpose(_Enum):
    SERVER_AUTH = _ASN1Object(129, "serverAuth", "TLS Web Server Authentication", "1.3.6.1.5.5.7.3.1")
    CLIENT_AUTH = _ASN1Object(130, "clientAuth", "TLS Web Client Authentication", "1.3.6.1.5.5.7.3.2")


class SSLError(OSError):
    library = reason = None

    def __str__(self):
        return str(self.strerror if self.strerror is not None else self.args)


class SSLZeroReturnError(SSLError):
    pass


class SSLWantReadError(SSLError):
    pass


class SSLWantWriteError(SSLError):
    pass


class SSLSyscallError(SSLError):
    pass


class SSLEOFError(SSLError):
    pass


class SSLCertVerificationError(SSLError, ValueError):
    reason = "CERTIFICATE_VERIFY_FAILED"
    verify_code = 1

    def __init__(self, number=1, text=""):
        super().__init__(number, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: " + text)
        self.verify_message = text


CertificateError = SSLCertVerificationError
socket_error = OSError
DefaultVerifyPaths = namedtuple("DefaultVerifyPaths", "cafile capath openssl_cafile_env openssl_cafile openssl_capath_env openssl_capath")


def get_default_verify_paths():
    return DefaultVerifyPaths(None, None, "SSL_CERT_FILE", "/etc/ssl/cert.pem", "SSL_CERT_DIR", "/etc/ssl/certs")


def RAND_bytes(n):
    return os.urandom(n)


def RAND_status():
    return True


def RAND_add(data, entropy):
    pass


def DER_cert_to_PEM_cert(der):
    text = base64.standard_b64encode(der).decode()
    return "\n".join(["-----BEGIN CERTIFICATE-----"] + [text[i:i + 64] for i in range(0, len(text), 64)] + ["-----END CERTIFICATE-----\n"])


def PEM_cert_to_DER_cert(pem):
    body = pem.strip().removeprefix("-----BEGIN CERTIFICATE-----").removesuffix("-----END CERTIFICATE-----")
    return base64.decodebytes(body.encode())


def cert_time_to_seconds(text):
    import calendar, time
    return calendar.timegm(time.strptime(text, "%b %d %H:%M:%S %Y GMT"))


class SSLSession:
    pass


class SSLContext:
    sslsocket_class = None
    keylog_filename = None
    sni_callback = None
    post_handshake_auth = False
    hostname_checks_common_name = False
    num_tickets = 2
    security_level = 2

    def __init__(self, protocol=PROTOCOL_TLS):
        self.protocol = _SSLMethod(protocol)
        self.options = Options.OP_ALL | Options.OP_NO_SSLv3 | Options.OP_NO_COMPRESSION
        self.verify_flags = VerifyFlags.VERIFY_X509_TRUSTED_FIRST
        self.minimum_version, self.maximum_version = TLSVersion.TLSv1_2, TLSVersion.MAXIMUM_SUPPORTED
        self._check, self._mode = False, VerifyMode.CERT_NONE
        if protocol == PROTOCOL_TLS_CLIENT:
            self._check, self._mode = True, VerifyMode.CERT_REQUIRED
        self._protocols, self._certificates, self._default = "", b"", False

    @property
    def verify_mode(self):
        return self._mode

    @verify_mode.setter
    def verify_mode(self, mode):
        if mode == CERT_NONE and self._check:
            raise ValueError("Cannot set verify_mode to CERT_NONE when check_hostname is enabled.")
        self._mode = VerifyMode(mode)

    @property
    def check_hostname(self):
        return self._check

    @check_hostname.setter
    def check_hostname(self, on):
        self._check = bool(on)
        if on and self._mode == CERT_NONE:
            self._mode = VerifyMode.CERT_REQUIRED

    def load_default_certs(self, purpose=Purpose.SERVER_AUTH):
        self._default = True

    def set_default_verify_paths(self):
        self._default = True

    def load_verify_locations(self, cafile=None, capath=None, cadata=None):
        if cafile is None and capath is None and cadata is None:
            raise TypeError("cafile, capath and cadata cannot be all omitted")
        if cafile is not None:
            name = os.fspath(cafile)
            if str(name).endswith("certifi/cacert.pem"):
                self._default = True  # the well-known ones, as the host has them
            else:
                with open(name, "rb") as f:
                    self._certificates += f.read() + b"\n"
        if capath is not None:
            for name in sorted(os.listdir(capath)):
                with open(os.path.join(capath, name), "rb") as f:
                    self._certificates += f.read() + b"\n"
        if cadata is not None:
            self._certificates += cadata.encode() if isinstance(cadata, str) else DER_cert_to_PEM_cert(cadata).encode()

    def set_alpn_protocols(self, protocols):
        self._protocols = ",".join(protocols)

    def set_ciphers(self, ciphers):
        pass

    def set_ecdh_curve(self, name):
        pass

    def set_npn_protocols(self, protocols):
        pass

    def get_ciphers(self):
        return []

    def get_ca_certs(self, binary_form=False):
        return []

    def cert_store_stats(self):
        return {"x509": 0, "crl": 0, "x509_ca": self._certificates.count(b"BEGIN CERTIFICATE")}

    def session_stats(self):
        return {}

    def _refuse(self, *unused, **names):
        raise SSLError(1, "only clients without certificates of their own can use TLS in this sandbox")

    load_cert_chain = load_dh_params = wrap_bio = _refuse

    def wrap_socket(self, sock, server_side=False, do_handshake_on_connect=True, suppress_ragged_eofs=True, server_hostname=None, session=None):
        if server_side:
            self._refuse()
        if self._check and not server_hostname:
            raise ValueError("check_hostname requires server_hostname")
        return (self.sslsocket_class or SSLSocket)._create(sock, self, server_hostname, do_handshake_on_connect)


class SSLSocket(_socket.socket):
    def __init__(self, *args, **kwargs):
        raise TypeError(f"{self.__class__.__name__} does not have a public constructor. Instances are returned by SSLContext.wrap_socket().")

    @classmethod
    def _create(cls, sock, context, server_hostname, handshake=True):
        self = cls.__new__(cls)
        timeout = sock.gettimeout()
        _socket.socket.__init__(self, family=sock.family, type=sock.type, proto=sock.proto, fileno=sock.detach())
        self.settimeout(timeout)
        self.context, self.server_hostname, self.server_side, self.session_reused = context, server_hostname, False, False
        self._state, self._handshake = None, handshake
        if handshake and self._conn >= 0:
            self.do_handshake()
        return self

    def connect(self, address):
        super().connect(address)
        if self._handshake:
            self.do_handshake()

    def do_handshake(self, block=False):
        if self._state is None:
            c = self.context
            verify = 0 if c._mode == CERT_NONE else 2 if c._check else 1
            try:
                self._state = self._secure(self.server_hostname or "", verify, c._protocols, b"" if c._default and not c._certificates else c._certificates)
            except BaseException:
                self.close()
                raise

    def version(self):
        return self._state and self._state[0]

    def cipher(self):
        return self._state and (self._state[1], self._state[0], 256)

    def shared_ciphers(self):
        return None

    def compression(self):
        return None

    def selected_alpn_protocol(self):
        return self._state and self._state[2] or None

    def selected_npn_protocol(self):
        return None

    def getpeercert(self, binary_form=False):
        if self._state is None:
            raise ValueError("handshake not done yet")
        if binary_form:
            return self._state[8]
        if self.context._mode == CERT_NONE:
            return {}
        names, subject, issuer, since, until = self._state[3:8]
        alternative = tuple(("IP Address", n[3:]) if n.startswith("ip:") else ("DNS", n) for n in names.split(",") if n)
        return {"subject": ((("commonName", subject),),), "issuer": ((("commonName", issuer),),), "version": 3, "notBefore": since, "notAfter": until,
                "subjectAltName": alternative}

    def get_channel_binding(self, cb_type="tls-unique"):
        return None

    def pending(self):
        return 0

    def read(self, n=1024, buffer=None):
        return self.recv(n) if buffer is None else self.recv_into(buffer, n)

    def write(self, data):
        return self.send(data)

    def unwrap(self):
        raise SSLError(1, "TLS can't be ended without the connection")


SSLContext.sslsocket_class = SSLSocket


class SSLObject:
    def __init__(self, *args, **kwargs):
        raise TypeError("SSLObject does not have a public constructor")


class MemoryBIO:
    def __init__(self):
        raise SSLError(1, "TLS without a socket isn't possible in this sandbox")


def create_default_context(purpose=Purpose.SERVER_AUTH, *, cafile=None, capath=None, cadata=None):
    context = SSLContext(PROTOCOL_TLS_CLIENT if purpose == Purpose.SERVER_AUTH else PROTOCOL_TLS_SERVER)
    if cafile or capath or cadata:
        context.load_verify_locations(cafile, capath, cadata)
    elif context.verify_mode != CERT_NONE:
        if os.environ.get("SSL_CERT_FILE") and os.path.exists(os.environ["SSL_CERT_FILE"]):
            context.load_verify_locations(os.environ["SSL_CERT_FILE"])
        else:
            context.load_default_certs(purpose)
    return context


def _create_unverified_context(protocol=None, *, cert_reqs=CERT_NONE, check_hostname=False, purpose=Purpose.SERVER_AUTH, certfile=None, keyfile=None, cafile=None,
                               capath=None, cadata=None):
    context = SSLContext(PROTOCOL_TLS_CLIENT)
    context.check_hostname = check_hostname
    context.verify_mode = cert_reqs
    return context


_create_default_https_context = create_default_context
_create_stdlib_context = _create_unverified_context


def wrap_socket(sock, keyfile=None, certfile=None, server_side=False, cert_reqs=CERT_NONE, ssl_version=PROTOCOL_TLS, ca_certs=None,
                do_handshake_on_connect=True, suppress_ragged_eofs=True, ciphers=None):
    context = SSLContext(ssl_version)
    context.verify_mode = cert_reqs
    if ca_certs:
        context.load_verify_locations(ca_certs)
    return context.wrap_socket(sock, server_side=server_side, do_handshake_on_connect=do_handshake_on_connect)


def get_server_certificate(addr, ssl_version=PROTOCOL_TLS_CLIENT, ca_certs=None, timeout=None):
    context = _create_unverified_context()
    with _socket.create_connection(addr, **({} if timeout is None else {"timeout": timeout})) as sock:
        with context.wrap_socket(sock, server_hostname=addr[0]) as tls:
            return DER_cert_to_PEM_cert(tls.getpeercert(True))


def get_protocol_name(code):
    return _SSLMethod(code).name
