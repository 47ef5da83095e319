"""The client."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional, Sequence, Union

import httpx

from .. import _wire
from .._config import find
from .._retry import Retry
from ..errors import NotFound
from ..types import Lease, Mounts, NetworkPolicy, Node, Principal, Reservation, SandboxInfo, SecretUse, ServerInfo, Snapshot, Usage, VolumeMount
from .events import AsyncEventStream
from .resources import (AsyncAgents, AsyncAudit, AsyncClaims, AsyncConversations, AsyncForks, AsyncKeys, AsyncPools, AsyncPrincipals, AsyncSecrets,
                        AsyncSnapshots, AsyncTemplates, AsyncVolumes)
from .sandbox import AsyncSandbox
from .transport import AsyncTransport


class AsyncAgentRun:
    """A client of an AgentRun server. Nothing is sent until something is asked for.

    The server is found by the arguments, then AGENTRUN_ENDPOINT, AGENTRUN_API_KEY and AGENTRUN_CA_CERT, then what `agentrun up` left in the
    user's configuration folder, then http://127.0.0.1:7070.

    Args:
        endpoint: URL of the API.
        api_key: "<id>.<secret>".
        ca_cert: a file of certificates to trust, or their PEM text, where the server's is self-signed.
        timeout: seconds that a request may wait for its answer; what runs or streams has its own.
        connect_timeout: seconds that a connection may take to come about.
        retry: how often requests are repeated; Retry(attempts=1) never. Only what can't be done twice by it is: reading, what has the same
            effect twice, and what carries an Idempotency-Key, which this client makes. `exec` isn't, unless the server refused it.
        max_connections: at once; further requests wait.
        http_client: an HTTP client to use instead of an own one; whoever made it closes it.
    Raises:
        Invalid: the endpoint is no URL, or a file that was named can't be read.

    Attributes:
        templates, pools, claims, forks, snapshots, volumes, conversations, agents, secrets, principals, keys, audit: what the server has.
    """

    def __init__(self, endpoint: Optional[str] = None, api_key: Optional[str] = None, *, ca_cert: Optional[str] = None, timeout: float = 60.0,
                 connect_timeout: float = 10.0, retry: Optional[Retry] = None, max_connections: int = 100,
                 http_client: Optional[httpx.AsyncClient] = None) -> None:
        self.config = find(endpoint, api_key, ca_cert)
        self._transport = AsyncTransport(self.config, timeout=timeout, connect_timeout=connect_timeout, retry=retry,
                                         max_connections=max_connections, http_client=http_client)
        self.templates = AsyncTemplates(self._transport)
        self.pools = AsyncPools(self._transport)
        self.claims = AsyncClaims(self._transport)
        self.forks = AsyncForks(self._transport)
        self.snapshots = AsyncSnapshots(self._transport)
        self.volumes = AsyncVolumes(self._transport)
        self.conversations = AsyncConversations(self._transport)
        self.agents = AsyncAgents(self._transport)
        self.secrets = AsyncSecrets(self._transport)
        self.principals = AsyncPrincipals(self._transport)
        self.keys = AsyncKeys(self._transport)
        self.audit = AsyncAudit(self._transport)

    def __repr__(self) -> str:
        return f"AsyncAgentRun({self.config.endpoint!r})"

    @property
    def endpoint(self) -> str:
        """URL of the API."""
        return self.config.endpoint

    async def aclose(self) -> None:
        """Closes the connections. Sandboxes go on."""
        await self._transport.aclose()

    async def __aenter__(self) -> AsyncAgentRun:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def create(self, source: Optional[str] = None, *, pool: Optional[str] = None, template: Optional[str] = None,
                     snapshot: Union[Snapshot, str, None] = None, reservation: Union[Reservation, str, None] = None, name: Optional[str] = None,
                     env: Optional[Mapping[str, str]] = None, secrets: Optional[Sequence[SecretUse]] = None, lease: Optional[Lease] = None,
                     network: Optional[NetworkPolicy] = None, visibility: Optional[str] = None, owner: Optional[str] = None,
                     conversation: Optional[str] = None, labels: Optional[Mapping[str, str]] = None, volumes: Optional[Sequence[VolumeMount]] = None,
                     timeout: Optional[float] = None) -> AsyncSandbox:
        """Makes a sandbox, or claims a warm one from a pool.

        Args:
            source: name of a pool; if there is none of that name, of a template. Or say which: pool=, template= or snapshot=.
            snapshot: the files of it, or of the snapshot with that id.
            reservation: the warm sandbox of the pool that was reserved.
            name: its name among those that haven't ended: a DNS label.
            env: variables of every command in it.
            secrets: values of secrets, as variables.
            lease: what is set in it, over the template's.
            network: at most what the template allows.
            visibility: "private" (the default), "team" or "all".
            owner: another principal than the caller; for operators.
            conversation: attach it to that.
            labels: to find it by.
            volumes: that are mounted in it.
            timeout: seconds to wait for it; the client's own by default.
        Raises:
            NotFound: no such pool, template, snapshot, secret.
            Exists, Conflict: the name is taken.
            Denied: it would be allowed more than the template, or the caller may not.
            LimitExceeded: a quota, a budget or the pool's bound.
            Unavailable: no sandbox could be started now.
        """
        named = [s for s in (source, pool, template, snapshot) if s is not None]
        if len(named) > 1:
            raise ValueError("create: give one of a pool, a template and a snapshot")
        if source is not None:
            pool = source
        if pool is None and isinstance(reservation, Reservation) and template is None and snapshot is None:
            pool = reservation.pool
        if pool is None and template is None and snapshot is None:
            raise ValueError("create: from what? Give the name of a pool or template, such as create('python-agent-pool')")
        given = _wire.body(name=name, env=env, secrets=secrets, lease=lease, network=network, visibility=visibility, owner=owner,
                           conversation=conversation, labels=labels, volumes=volumes, template=template, pool=pool,
                           snapshot=snapshot.id if isinstance(snapshot, Snapshot) else snapshot,
                           reservation=reservation.id if isinstance(reservation, Reservation) else reservation)
        try:
            return await self._create(given, timeout)
        except NotFound as e:
            if source is None or await self._is_pool(source):
                raise
            try:
                template_exists = bool(await self.templates.get(source))
            except NotFound:
                template_exists = False
            if not template_exists:
                raise e from None
        given["template"] = given.pop("pool")
        return await self._create(given, timeout)

    async def _create(self, given: Mapping[str, Any], timeout: Optional[float]) -> AsyncSandbox:
        info = await self._transport.call(SandboxInfo, "POST", _wire.url_path("sandboxes"), json=given, key="", timeout=timeout)
        return AsyncSandbox(self, info)

    async def _is_pool(self, name: str) -> bool:
        try:
            await self.pools.get(name)
        except NotFound:
            return False
        return True

    async def get(self, id: str) -> AsyncSandbox:
        """Returns a sandbox that exists, by its id or name.

        Raises:
            NotFound: there is none.
        """
        return AsyncSandbox(self, await self._transport.call(SandboxInfo, "GET", _wire.url_path("sandboxes", id)))

    async def list(self, *, state: Optional[str] = None, owner: Optional[str] = None, template: Optional[str] = None, pool: Optional[str] = None,
                   root: Optional[str] = None, parent: Optional[str] = None, name: Optional[str] = None, conversation: Optional[str] = None,
                   labels: Optional[Mapping[str, str]] = None, limit: Optional[int] = None) -> List[AsyncSandbox]:
        """Returns sandboxes, newest first: those that fit all that is given.

        Args:
            state: warm ones and ended ones are listed only if it asks for them; "any" does.
            limit: at most so many; None is all.
        """
        query = {"state": state, "owner": owner, "template": template, "pool": pool, "root": root, "parent": parent, "name": name,
                 "conversation": conversation, "label": [f"{k}={v}" for k, v in (labels or {}).items()]}
        found = await self._transport.list(SandboxInfo, _wire.url_path("sandboxes"), "sandboxes", query=query, limit=limit)
        return [AsyncSandbox(self, s) for s in found]

    def events(self, after: int = 0, *, sandbox: Optional[str] = None, kind: Optional[str] = None, follow: bool = True) -> AsyncEventStream:
        """Returns what happened, oldest first, and what happens, as it does. Iterate over it; close it, or use it as a context.

        Args:
            after: the position after which to begin: the `seq` of an event, or a stream's `position`. 0 is the oldest that is kept.
            sandbox: only of the sandbox with that id.
            kind: only of that kind, such as "forked".
            follow: go on for ever; else end with the newest. A connection that breaks is made anew where it was.
        """
        return AsyncEventStream(self._transport, after, sandbox, kind, follow)

    async def server(self) -> ServerInfo:
        """Describes the server."""
        return await self._transport.call(ServerInfo, "GET", _wire.url_path("server"))

    async def me(self) -> Principal:
        """Returns the principal that the API key belongs to."""
        return await self._transport.call(Principal, "GET", _wire.url_path("me"))

    async def usage(self, principal: Optional[str] = None) -> Usage:
        """Returns what a principal's sandboxes used so far; None is the caller's own."""
        name = principal if principal is not None else (await self.me()).name
        return (await self.principals.usage(name)).usage

    async def nodes(self) -> List[Node]:
        """Returns the hosts that run sandboxes."""
        return await self._transport.list(Node, _wire.url_path("nodes"), "nodes")

    async def mounts(self) -> Mounts:
        """Returns what stands behind the mounts that templates may name."""
        return await self._transport.call(Mounts, "GET", _wire.url_path("mounts"))

    async def set_mounts(self, mounts: Mounts) -> Mounts:
        """Sets what stands behind the mounts; for administrators."""
        return await self._transport.call(Mounts, "PUT", _wire.url_path("mounts"), json=_wire.encode(mounts))
