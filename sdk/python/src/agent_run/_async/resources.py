"""What the server has beside sandboxes: each kind is an attribute of the client.

Every method may raise NotFound, Denied, Unauthorized, Invalid, ConnectionFailed and Timeout. Lists are complete; `limit` bounds them.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from .. import _wire
from ..errors import BuildFailed, Timeout
from ..types import (Agent, AuditCheck, AuditEntry, Budget, BuildLine, Claim, Conversation, Fork, Key, Lease, Pool, PoolSpec, Principal,
                     PrincipalUsage, Reservation, Secret, SecretUse, Snapshot, StoredVolume, Template, TemplateSpec)
from . import _io
from .transport import AsyncStream, AsyncTransport


_FIRST_LINE = 3600.0  # seconds that a build may take before it says anything


class AsyncResource:
    """One kind of thing."""

    kind = ""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def _path(self, *more: str) -> str:
        return _wire.url_path(self.kind, *more)


class AsyncTemplates(AsyncResource):
    """What sandboxes look like, by name. Each change is a new version, which is built."""

    kind = "templates"

    async def create(self, name: str, spec: Union[TemplateSpec, Mapping[str, Any]], *, labels: Optional[Mapping[str, str]] = None,
                     wait: bool = True, timeout: float = 600.0) -> Template:
        """Makes a template, and waits until it is built.

        Args:
            name: a DNS label.
            spec: a TemplateSpec, or a mapping with the API's own names.
            wait: False returns while it is being built.
            timeout: seconds to wait.
        Raises:
            Exists: the name is taken; `put` changes a template.
            BuildFailed: an init line failed; the error has the log's end.
            Timeout: it isn't built yet.
        """
        t = await self._transport.call(Template, "POST", self._path(), key="", json={**_wire.body(name=name, labels=labels), "spec": _wire.encode(spec)})
        return await self.wait(name, timeout=timeout, version=t.version) if wait else t

    async def put(self, name: str, spec: Union[TemplateSpec, Mapping[str, Any]], *, wait: bool = True, timeout: float = 600.0) -> Template:
        """Makes a template, or a new version of it if the spec differs from the newest, and waits until it is built. See `create`."""
        t = await self._transport.call(Template, "PUT", self._path(name), json=_wire.encode(spec))
        return await self.wait(name, timeout=timeout, version=t.version) if wait else t

    async def get(self, name: str, version: Optional[int] = None) -> Template:
        """Returns a version of a template, the newest by default."""
        return await self._transport.call(Template, "GET", self._path(name), query={"version": version})

    async def list(self, *, limit: Optional[int] = None) -> List[Template]:
        """Returns all templates by name, their newest versions."""
        return await self._transport.list(Template, self._path(), "templates", limit=limit)

    async def versions(self, name: str, *, limit: Optional[int] = None) -> List[Template]:
        """Returns a template's versions, newest first."""
        return await self._transport.list(Template, self._path(name, "versions"), "templates", limit=limit)

    async def rebuild(self, name: str, *, wait: bool = True, timeout: float = 600.0) -> Template:
        """Builds the newest version again. See `create`."""
        t = await self._transport.call(Template, "POST", self._path(name, "build"))
        return await self.wait(name, timeout=timeout, version=t.version) if wait else t

    async def delete(self, name: str) -> None:
        """Deletes a template. Sandboxes of it go on.

        Raises:
            Conflict: a pool uses it.
        """
        await self._transport.json("DELETE", self._path(name))

    async def log(self, name: str, *, version: Optional[int] = None, follow: bool = False) -> AsyncStream[BuildLine]:
        """Returns the lines of a build's log, to be iterated; with follow until the build has ended."""
        answer = await self._transport.send("GET", self._path(name, "log"), query={"version": version, "follow": follow}, accept=_wire.SSE,
                                            endless=True, timeout=_FIRST_LINE)
        return AsyncStream(self._transport, answer, _build_line)

    async def wait(self, name: str, *, version: Optional[int] = None, timeout: float = 600.0,
                   on_progress: Optional[Callable[[Template], object]] = None) -> Template:
        """Waits until a template is built.

        Args:
            timeout: seconds.
            on_progress: called with the template each time it is looked at.
        Raises:
            BuildFailed: an init line failed.
            Timeout: it isn't built yet.
        """
        end, pause = time.monotonic() + timeout, 0.05
        while True:
            t = await self.get(name, version)
            if on_progress is not None:
                on_progress(t)
            if t.state == "ready":
                return t
            if t.state == "failed":
                async with await self.log(name, version=t.version) as stream:
                    lines = [line.text async for line in stream]
                raise BuildFailed(f"build: {name}: {t.error or 'it failed'}", op="build", thing=name, cause=t.error, log=lines[-100:])
            if time.monotonic() >= end:
                raise Timeout(f"build: {name}: it is {t.state} after {timeout} s ({t.progress:.0%})")
            await _io.sleep(pause)
            pause = min(pause * 1.5, 1.0)


def _build_line(v: Any) -> List[BuildLine]:
    v = _wire.unwrap(v)
    return [_wire.decode(BuildLine, v)] if isinstance(v, dict) and "text" in v else []


class AsyncPools(AsyncResource):
    """Warm sandboxes of a template, to be claimed at once."""

    kind = "pools"

    async def put(self, name: str, template: str, replicas: int, *, max_sandboxes: int = 0, labels: Optional[Mapping[str, str]] = None,
                  wait: bool = False, timeout: float = 600.0) -> Pool:
        """Makes a pool, or changes it.

        Args:
            replicas: how many warm sandboxes are kept, 0 to 10000.
            max_sandboxes: how many that were claimed from it may live at once; 0 is no bound.
            wait: until it is full, at most for timeout seconds.
        """
        spec = PoolSpec(template, replicas, max_sandboxes, dict(labels or {}))
        p = await self._transport.call(Pool, "PUT", self._path(name), json={"template": template, "replicas": replicas, **_wire.encode(spec)})
        return await self.wait(name, timeout=timeout) if wait else p

    async def get(self, name: str) -> Pool:
        """Returns a pool."""
        return await self._transport.call(Pool, "GET", self._path(name))

    async def list(self, *, limit: Optional[int] = None) -> List[Pool]:
        """Returns all pools by name."""
        return await self._transport.list(Pool, self._path(), "pools", limit=limit)

    async def delete(self, name: str) -> None:
        """Deletes a pool with its warm sandboxes. Those that were claimed go on."""
        await self._transport.json("DELETE", self._path(name))

    async def wait(self, name: str, *, timeout: float = 600.0) -> Pool:
        """Waits until a pool is full.

        Raises:
            BuildFailed: its template can't be built.
            Timeout: it isn't full after so many seconds.
        """
        end, pause = time.monotonic() + timeout, 0.05
        while True:
            p = await self.get(name)
            if p.state == "ready" and p.ready >= p.spec.replicas:
                return p
            if p.state == "failed":
                raise BuildFailed(f"pool: {name}: {p.error or 'it failed'}", op="pool", thing=name, cause=p.error)
            if time.monotonic() >= end:
                raise Timeout(f"pool: {name}: it is {p.state} after {timeout} s, {p.ready} of {p.spec.replicas} are ready")
            await _io.sleep(pause)
            pause = min(pause * 1.5, 1.0)

    async def reserve(self, pool: str, seconds: Optional[int] = None) -> Reservation:
        """Holds a warm sandbox back for somebody who is about to claim it, with `create(reservation=…)`.

        Args:
            seconds: for how long, at most 600; None is 60.
        """
        return await self._transport.call(Reservation, "POST", _wire.url_path("reservations"), key="", json=_wire.body(pool=pool, seconds=seconds))

    async def unreserve(self, reservation: Union[Reservation, str]) -> None:
        """Gives a reservation up."""
        await self._transport.json("DELETE", _wire.url_path("reservations", reservation.id if isinstance(reservation, Reservation) else reservation))


class AsyncClaims(AsyncResource):
    """Sandboxes that were asked for by a name."""

    kind = "claims"

    async def put(self, name: str, *, pool: Optional[str] = None, template: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
                  secrets: Optional[Sequence[SecretUse]] = None, lease: Optional[Lease] = None,
                  labels: Optional[Mapping[str, str]] = None) -> Claim:
        """Claims a sandbox under a name, unless that was done: `client.get(claim.sandbox)` returns it.

        Raises:
            Conflict: there is a claim of that name with another spec.
        """
        return await self._transport.call(Claim, "PUT", self._path(name), json=_wire.body(
            pool=pool, template=template, env=env, secrets=secrets, lease=lease, labels=labels))

    async def get(self, name: str) -> Claim:
        """Returns a claim."""
        return await self._transport.call(Claim, "GET", self._path(name))

    async def list(self, *, limit: Optional[int] = None) -> List[Claim]:
        """Returns all claims by name."""
        return await self._transport.list(Claim, self._path(), "claims", limit=limit)

    async def delete(self, name: str) -> None:
        """Ends the claim's sandbox and forgets the claim."""
        await self._transport.json("DELETE", self._path(name))


class AsyncForks(AsyncResource):
    """Forks of sandboxes, by name."""

    kind = "forks"

    async def put(self, name: str, source: str, replicas: int) -> Fork:
        """Makes a fork of a sandbox (id or name) under a name, unless that was done."""
        return await self._transport.call(Fork, "PUT", self._path(name), json={"source": source, "replicas": replicas})

    async def get(self, name: str) -> Fork:
        """Returns a fork."""
        return await self._transport.call(Fork, "GET", self._path(name))

    async def list(self, *, limit: Optional[int] = None) -> List[Fork]:
        """Returns all forks by name."""
        return await self._transport.list(Fork, self._path(), "forks", limit=limit)

    async def delete(self, name: str) -> None:
        """Ends the fork's sandboxes."""
        await self._transport.json("DELETE", self._path(name))


class AsyncSnapshots(AsyncResource):
    """Snapshots of sandboxes' files. `sandbox.snapshot()` makes one."""

    kind = "snapshots"

    async def get(self, id: str) -> Snapshot:
        """Returns a snapshot."""
        return await self._transport.call(Snapshot, "GET", self._path(id))

    async def list(self, *, sandbox: Optional[str] = None, limit: Optional[int] = None) -> List[Snapshot]:
        """Returns all snapshots, or those of one sandbox."""
        return await self._transport.list(Snapshot, self._path(), "snapshots", query={"sandbox": sandbox}, limit=limit)

    async def delete(self, id: str) -> None:
        """Deletes a snapshot."""
        await self._transport.json("DELETE", self._path(id))


class AsyncVolumes(AsyncResource):
    """Volumes that are there by themselves, outlive sandboxes and are mounted by `create(volumes=[VolumeMount(…)])`. All that mount one see one
    another's writes."""

    kind = "volumes"

    async def create(self, name: str, *, size: int = 0, owner: Optional[str] = None, labels: Optional[Mapping[str, str]] = None) -> StoredVolume:
        """Makes a volume.

        Args:
            size: bytes that its files may have together; 0: no limit of its own.
            owner: another principal than the caller; for operators.
        Raises:
            Exists: the owner has one of this name.
        """
        return await self._transport.call(StoredVolume, "POST", self._path(), key="", json=_wire.body(name=name, size=size or None, owner=owner, labels=labels))

    async def get(self, id: str) -> StoredVolume:
        """Returns a volume, by its id or the name of one's own."""
        return await self._transport.call(StoredVolume, "GET", self._path(id))

    async def list(self, *, limit: Optional[int] = None) -> List[StoredVolume]:
        """Returns all volumes."""
        return await self._transport.list(StoredVolume, self._path(), "volumes", limit=limit)

    async def delete(self, id: str) -> None:
        """Deletes a volume with what it holds.

        Raises:
            NotEmpty: a sandbox has it mounted.
        """
        await self._transport.json("DELETE", self._path(id))


class AsyncConversations(AsyncResource):
    """Which sandbox a conversation has. Ids are the caller's own."""

    kind = "conversations"

    async def attach(self, id: str, *, agent: Optional[str] = None, sandbox: Optional[str] = None, user: Optional[str] = None) -> Conversation:
        """Attaches a sandbox to a conversation. Which one is for the agent's mode to say.

        Args:
            sandbox: where the user chooses; None where the user has one already.
            user: whose conversation it is; another than the caller is for operators.
        """
        return await self._transport.call(Conversation, "POST", self._path(id, "attach"), key="",
                                          json=_wire.body(agent=agent, sandbox=sandbox, user=user))

    async def detach(self, id: str) -> Conversation:
        """Detaches what is attached. The sandbox goes on."""
        return await self._transport.call(Conversation, "POST", self._path(id, "detach"), again=True)

    async def get(self, id: str) -> Conversation:
        """Returns what is attached to a conversation."""
        return await self._transport.call(Conversation, "GET", self._path(id))

    async def end(self, id: str) -> None:
        """Ends a conversation. A sandbox that was made for it alone ends after the agent's retention."""
        await self._transport.json("DELETE", self._path(id))


class AsyncAgents(AsyncResource):
    """Which sandboxes agents' conversations get."""

    kind = "agents"

    async def put(self, name: str, mode: str, *, sandbox: str = "", pool: str = "", template: str = "", retention: int = 0) -> Agent:
        """Makes or changes an agent.

        Args:
            mode: "none", "fixed", "per-user", "user-chooses" or "fresh-per-chat".
            sandbox: of fixed.
            pool, template: where new sandboxes come from.
            retention: seconds that a fresh one outlives its conversation; 0 is a day.
        """
        return await self._transport.call(Agent, "PUT", self._path(name), json=_wire.encode(Agent(name, mode, sandbox, pool, template, retention)))

    async def get(self, name: str) -> Agent:
        """Returns an agent."""
        return await self._transport.call(Agent, "GET", self._path(name))

    async def list(self) -> List[Agent]:
        """Returns all agents."""
        return await self._transport.list(Agent, self._path(), "agents")

    async def delete(self, name: str) -> None:
        """Forgets an agent. Its conversations keep what is attached."""
        await self._transport.json("DELETE", self._path(name))


class AsyncSecrets(AsyncResource):
    """Values that sandboxes may be given by name; they are never told again."""

    kind = "secrets"

    async def put(self, name: str, data: Mapping[str, str], *, team: Optional[str] = None) -> Secret:
        """Keeps a secret.

        Args:
            data: all of its values, by key; those that are missing go.
            team: whose members may use it too.
        """
        return await self._transport.call(Secret, "PUT", self._path(name), json={"name": name, "data": dict(data), **_wire.body(team=team)})

    async def get(self, name: str) -> Secret:
        """Returns a secret's keys, without the values."""
        return await self._transport.call(Secret, "GET", self._path(name))

    async def list(self, *, limit: Optional[int] = None) -> List[Secret]:
        """Returns all secrets, without their values."""
        return await self._transport.list(Secret, self._path(), "secrets", limit=limit)

    async def delete(self, name: str) -> None:
        """Deletes a secret."""
        await self._transport.json("DELETE", self._path(name))


class AsyncPrincipals(AsyncResource):
    """Users, agents and services."""

    kind = "principals"

    async def put(self, name: str, role: str, *, kind: str = "", teams: Optional[Sequence[str]] = None, parent: str = "",
                  tags: Optional[Mapping[str, str]] = None, budget: Optional[Budget] = None, disabled: bool = False) -> Principal:
        """Makes or changes a principal.

        Args:
            role: "admin", "operator", "user" or "viewer".
            kind: "user" (the default), "agent" or "service".
            parent: on whose behalf it acts: what it uses counts there too.
            budget: what its sandboxes may use.
            disabled: its keys are refused.
        """
        p = Principal(name, kind, role, list(teams or []), parent, dict(tags or {}), budget, disabled)
        return await self._transport.call(Principal, "PUT", self._path(name), json=_wire.encode(p))

    async def get(self, name: str) -> Principal:
        """Returns a principal."""
        return await self._transport.call(Principal, "GET", self._path(name))

    async def list(self, *, limit: Optional[int] = None) -> List[Principal]:
        """Returns all principals."""
        return await self._transport.list(Principal, self._path(), "principals", limit=limit)

    async def delete(self, name: str) -> None:
        """Deletes a principal, and its keys with it."""
        await self._transport.json("DELETE", self._path(name))

    async def usage(self, name: str) -> PrincipalUsage:
        """Returns what a principal's sandboxes used, and its budget."""
        return await self._transport.call(PrincipalUsage, "GET", self._path(name, "usage"))


class AsyncKeys(AsyncResource):
    """API keys."""

    kind = "keys"

    async def create(self, principal: Optional[str] = None, *, name: str = "", root: bool = False, lifetime: int = 0) -> Key:
        """Makes a key. Its `api_key` is told now and never again.

        Args:
            principal: whose key it is.
            root: for a key that may do everything.
            lifetime: seconds; 0 is for ever.
        """
        return await self._transport.call(Key, "POST", self._path(), key="", json=_wire.body(principal=principal, name=name, root=root,
                                                                                   lifetime=lifetime or None))

    async def list(self) -> List[Key]:
        """Returns all keys, without their secrets."""
        return await self._transport.list(Key, self._path(), "keys")

    async def delete(self, id: str) -> None:
        """Revokes a key."""
        await self._transport.json("DELETE", self._path(id))


class AsyncAudit(AsyncResource):
    """The log of every decision; for administrators."""

    kind = "audit"

    async def list(self, after: int = 0, *, principal: Optional[str] = None, action: Optional[str] = None, allowed: Optional[bool] = None,
                   limit: Optional[int] = None) -> List[AuditEntry]:
        """Returns decisions after a position, oldest first: one page, of which the last entry's `seq` is the next position."""
        query: Dict[str, Any] = {"after": after, "principal": principal, "action": action, "limit": limit,
                                 "allowed": None if allowed is None else str(allowed).lower()}
        v = await self._transport.json("GET", self._path(), query=query)
        return [_wire.decode(AuditEntry, e) for e in v.get("entries") or []]

    async def verify(self) -> AuditCheck:
        """Checks the chain of the log."""
        return await self._transport.call(AuditCheck, "GET", self._path("verify"))
