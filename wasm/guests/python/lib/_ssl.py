"""The host does TLS (module ssl); this one is there for those who ask by its name whether there is any."""

from ssl import OPENSSL_VERSION, OPENSSL_VERSION_INFO, OPENSSL_VERSION_NUMBER, HAS_SNI, HAS_ALPN, SSLError, RAND_bytes, RAND_status, RAND_add
