"""Finding the server: arguments, then the environment, then the context that `agentrun up` leaves, then the local default."""

from __future__ import annotations

import json
import os
import ssl
import sys
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional
from urllib.parse import urlsplit

from .errors import Invalid

DEFAULT_ENDPOINT = "http://127.0.0.1:7070"
_MAX_CONTEXT = 1 << 20  # bytes


@dataclass(frozen=True)
class Config:
    """Where the server is, and what it is told. `ca` is certificates to trust, in PEM; "" is the system's."""

    endpoint: str
    api_key: str = field(default="", repr=False)
    ca: str = field(default="", repr=False)
    source: str = ""

    @property
    def host(self) -> str:
        return urlsplit(self.endpoint).netloc

    @property
    def local(self) -> bool:
        """Whether the server is on this machine: then no proxy stands between."""
        name = urlsplit(self.endpoint).hostname or ""
        return name == "localhost" or name.endswith(".localhost") or name == "::1" or name.startswith("127.")

    def tls(self) -> Optional[ssl.SSLContext]:
        """Returns what https is checked with; None for http."""
        if not self.endpoint.startswith("https:"):
            return None
        try:
            return ssl.create_default_context(cadata=self.ca or None)
        except ssl.SSLError as e:
            raise Invalid(f"certificates: {e}", hint="want certificates in PEM form") from e


def config_dir(env: Mapping[str, str]) -> str:
    """Returns the user's configuration folder, where the program looks for it too; "" where there is none."""
    if sys.platform == "win32":
        return env.get("AppData") or env.get("APPDATA") or ""
    home = env.get("HOME", "")
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Application Support") if home else ""
    xdg = env.get("XDG_CONFIG_HOME", "")
    if xdg:
        return xdg if os.path.isabs(xdg) else ""
    return os.path.join(home, ".config") if home else ""


def read_context(env: Mapping[str, str]) -> Dict[str, Any]:
    """Returns the context of the server that was started last; {} if there is none."""
    folder = config_dir(env)
    if not folder:
        return {}
    file = os.path.join(folder, "agentrun", "context.json")
    try:
        with open(file, encoding="utf-8") as f:
            c = json.loads(f.read(_MAX_CONTEXT))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as e:
        raise Invalid(f"read context: {file}: {e}", hint="remove the file, or set AGENTRUN_ENDPOINT and AGENTRUN_API_KEY") from e
    if not isinstance(c, dict):
        raise Invalid(f"read context: {file}: not a context", hint="remove the file; 'agentrun up' writes it anew")
    return c


def check_endpoint(endpoint: str) -> str:
    u = urlsplit(endpoint)
    if u.scheme not in ("http", "https") or not u.hostname or u.query or u.fragment or u.username:
        raise Invalid(f"endpoint: {endpoint}: want an http or https URL, such as {DEFAULT_ENDPOINT}")
    return endpoint.rstrip("/")


def find(endpoint: Optional[str] = None, api_key: Optional[str] = None, ca_cert: Optional[str] = None,
         env: Optional[Mapping[str, str]] = None) -> Config:
    """Settles the server. The key and the certificate of the context are for its own server only.

    Args:
        ca_cert: a file of certificates to trust, or their PEM text.
    Raises:
        Invalid: the endpoint is no URL, the certificate file or the context can't be read.
    """
    if env is None:
        env = os.environ
    url, source = endpoint or env.get("AGENTRUN_ENDPOINT", ""), "argument" if endpoint else "AGENTRUN_ENDPOINT"
    key = api_key or env.get("AGENTRUN_API_KEY", "")
    ca = ca_cert or env.get("AGENTRUN_CA_CERT", "")
    if ca and "-----BEGIN" not in ca:
        try:
            with open(ca, encoding="utf-8") as f:
                ca = f.read()
        except (OSError, UnicodeDecodeError) as e:
            raise Invalid(f"certificates: {ca}: {e}") from e
    if not url or not key or not ca:
        try:
            context = read_context(env)
        except Invalid:
            if not url:
                raise
            context = {}  # it isn't needed to know where the server is
        at = context.get("endpoint")
        if isinstance(at, str) and at and (not url or url.rstrip("/") == at):
            if not url:
                url, source = at, "context"
            key = key or str(context.get("apiKey") or "")
            ca = ca or str(context.get("caCert") or "")
    if not url:
        url, source = DEFAULT_ENDPOINT, "default"
    return Config(check_endpoint(url), key.strip(), ca, source)
