"""What the server tells and is told, as dataclasses.

Times are timezone-aware datetimes in UTC, sizes bytes, durations seconds. Fields of a newer server that this version doesn't know are
ignored; states and kinds are plain strings, so that new ones don't break old clients.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Dict, Iterator, List, Optional, Union

__all__ = [
    "Agent", "AuditCheck", "AuditEntry", "Budget", "BuildLine", "Claim", "Conversation", "Credentials", "Event", "ExecEvent", "ExecResult",
    "FileChange", "FileDiff", "FileEvent", "FileInfo", "FileMerge", "Fork", "Key", "Lease", "Metrics", "Mounts", "NetworkPolicy", "Node", "Pool",
    "PoolSpec", "Principal", "PrincipalUsage", "ProcessInfo", "Rate", "Reservation", "Resources", "Sample", "SandboxInfo", "SandboxVolume", "Secret",
    "SecretUse", "ServerInfo", "Snapshot", "StoredVolume", "Template", "TemplateSpec", "Tree", "Usage", "Volume", "VolumeMount", "VolumeSource",
]

Labels = Dict[str, str]


def _wire(name: str, default: Any = None, factory: Any = None) -> Any:
    """A field whose name on the wire isn't its own in camel case."""
    if factory is not None:
        return field(default_factory=factory, metadata={"wire": name})
    return field(default=default, metadata={"wire": name})


# What sandboxes are made of.


@dataclass(frozen=True)
class Rate:
    """What may be done in a second; 0 is no bound. Operations are reads and writes of a disk, packets of a network. A burst is what may be done
    at once after a rest; without one it is a second's."""

    bytes_per_second: int = 0
    operations_per_second: int = 0
    burst_bytes: int = 0
    burst_operations: int = 0


@dataclass(frozen=True)
class Resources:
    """Bounds of a sandbox; 0 is the engine's default. `cpu` is in processors, `memory` and `disk` (written over its life) in bytes. The rates
    are kept by the engine microvm, and refused by others: `disk_rate` of what is read and written, of the volumes together and, once more, of
    the root's image; `network_in_rate` and `network_out_rate` of what the sandbox receives and sends."""

    cpu: float = 0
    memory: int = 0
    disk: int = 0
    processes: int = 0
    disk_rate: Optional[Rate] = None
    network_in_rate: Optional[Rate] = None
    network_out_rate: Optional[Rate] = None


@dataclass(frozen=True)
class VolumeSource:
    """What a volume holds at first: a fork of `bucket` ("NAME" or "NAME@SNAPSHOT"; the bucket itself if the volume is shared), or,
    with `memory`, nothing, kept in memory only."""

    bucket: str = ""
    memory: bool = False


@dataclass(frozen=True)
class Volume:
    """A filesystem of a sandbox. `path` is where it is mounted ("" is /NAME), `size` bounds its bytes (0: no bound of its own).
    `fork_policy` is Fresh, Share, Snapshot or Clone; "" is Snapshot, and Share where it is read-only."""

    name: str = ""
    path: str = ""
    size: int = 0
    read_only: bool = False
    fork_policy: str = ""
    source: Optional[VolumeSource] = None


@dataclass(frozen=True)
class NetworkPolicy:
    """What a sandbox may connect to: `egress` ("deny" by default, or "allow") is for what no rule of `allow` names. Rules are
    HOST[:PORT], *.HOST[:PORT] or CIDR[:PORT]. With "allow", what `deny` names isn't allowed unless a rule of `allow` names it."""

    egress: str = ""
    allow: List[str] = field(default_factory=list)
    deny: List[str] = field(default_factory=list)


@dataclass(frozen=True)
class Lease:
    """How long a sandbox lives, in seconds; 0 is the default in brackets.

    Attributes:
        duration: at first [600].
        extend: every use moves the end to now + extend, if that is later [600].
        on_expiry: "hibernate" or "end" ["hibernate"].
        max_age: it is ended at this age whatever its use [never].
        sleep: a hibernated one is ended after so long [30 days].
        retention: how long the record of an ended one is kept [7 days].
        mode: "sliding", or "fixed": no use moves the end, and when it comes it hibernates or ends whoever uses it ["sliding"].
        wake: "use", or "resume": what wakes it up when it hibernates; other uses are a Conflict ["use"].
    """

    duration: int = 0
    extend: int = 0
    on_expiry: str = ""
    max_age: int = 0
    sleep: int = 0
    retention: int = 0
    mode: str = ""
    wake: str = ""


@dataclass(frozen=True)
class SecretUse:
    """Puts the value `key` of the secret `secret` into a sandbox's environment, as the variable `env` ("" is the key's own name). `fork`
    says what forks get: "same" (the default) or "drop"."""

    secret: str = ""
    key: str = ""
    env: str = ""
    fork: str = ""
    name: str = ""

    def to_wire(self) -> Dict[str, Any]:
        if not self.secret or not self.key:
            raise ValueError("a secret is used by its name and key: SecretUse(secret=…, key=…)")
        out: Dict[str, Any] = {"secretRef": {"name": self.secret, "key": self.key}}
        out.update({k: v for k, v in (("env", self.env), ("fork", self.fork), ("name", self.name)) if v})
        return out


@dataclass(frozen=True)
class TemplateSpec:
    """What a sandbox looks like.

    Attributes:
        engine: "userspace" (the default), "oci" or "microvm".
        image: what the root is made of. With userspace, a name of the server's catalogue, such as "python:3.12-slim", or "bucket:NAME[@SNAPSHOT]"; with
            microvm, an OCI image by its name in a registry. "" is the engine's own.
        init: shell lines, run once when the template is built.
        language: what exec takes text for if it parses as that: "python", "javascript" or "shell"; "" is the image's own.
        dir: where commands start; "" is /workspace.
        volumes: without one at /workspace there is an empty one there.
        mounts: of "private", "shared" and "public".
    """

    engine: str = ""
    image: str = ""
    init: List[str] = field(default_factory=list)
    language: str = ""
    dir: str = ""
    env: Dict[str, str] = field(default_factory=dict)
    resources: Optional[Resources] = None
    volumes: List[Volume] = field(default_factory=list)
    mounts: List[str] = field(default_factory=list)
    network: Optional[NetworkPolicy] = None
    lease: Optional[Lease] = None


@dataclass(frozen=True)
class Template:
    """A version of a template. `state` is of its build: queued, building, ready or failed (then `error` says why); `progress` goes from 0
    to 1; `notes` are what the builder decided, such as what an image's name stands for."""

    name: str = ""
    version: int = 0
    spec: TemplateSpec = field(default_factory=TemplateSpec)
    state: str = ""
    error: str = ""
    progress: float = 0
    notes: List[str] = field(default_factory=list)
    owner: str = ""
    created: Optional[datetime] = None
    built: Optional[datetime] = None
    latest: bool = False
    labels: Labels = field(default_factory=dict)


@dataclass(frozen=True)
class BuildLine:
    """A line of a build's log."""

    time: Optional[datetime] = None
    text: str = ""


@dataclass(frozen=True)
class PoolSpec:
    """How many warm sandboxes of a template are kept; `max_sandboxes` bounds those that were claimed and haven't ended (0: no bound)."""

    template: str = ""
    replicas: int = 0
    max_sandboxes: int = 0
    labels: Labels = field(default_factory=dict)


@dataclass(frozen=True)
class Pool:
    """Warm sandboxes of a template. `state` is ready, filling, building or failed."""

    name: str = ""
    spec: PoolSpec = field(default_factory=PoolSpec)
    version: int = 0
    ready: int = 0
    snapshots: int = 0
    claimed: int = 0
    reserved: int = 0
    state: str = ""
    error: str = ""
    owner: str = ""
    created: Optional[datetime] = None


@dataclass(frozen=True)
class Reservation:
    """A warm sandbox that is held back until `expires`."""

    id: str = ""
    pool: str = ""
    expires: Optional[datetime] = None


@dataclass(frozen=True)
class SandboxVolume:
    """A volume of a sandbox as it is. One in memory has no bucket."""

    name: str = ""
    path: str = ""
    bucket: str = ""
    read_only: bool = False
    fork_policy: str = ""
    size: int = 0


@dataclass(frozen=True)
class SandboxInfo:
    """A sandbox as its record describes it.

    Attributes:
        state: starting, warm, running, hibernating, hibernated, resuming, ending, ended or failed; `reason` tells more.
        parent: id of the sandbox that it was forked from; `root` is the first of the tree, `depth` its own distance from that.
        expires: when the lease ends if it isn't used; None while it sleeps.
        epoch: grows with every start.
        activation_time, record_time: seconds that the claim took at the node and in the records, side by side.
    """

    id: str = ""
    name: str = ""
    state: str = ""
    reason: str = ""
    template: str = ""
    version: int = 0
    pool: str = ""
    parent: str = ""
    fork: str = ""
    root: str = ""
    depth: int = 0
    owner: str = ""
    visibility: str = ""
    node: str = ""
    engine: str = ""
    endpoint: str = ""
    language: str = ""
    volumes: List[SandboxVolume] = field(default_factory=list)
    network: NetworkPolicy = field(default_factory=NetworkPolicy)
    lease: Lease = field(default_factory=Lease)
    created: Optional[datetime] = None
    claimed: Optional[datetime] = None
    started: Optional[datetime] = None
    expires: Optional[datetime] = None
    ended: Optional[datetime] = None
    epoch: int = 0
    conversations: List[str] = field(default_factory=list)
    labels: Labels = field(default_factory=dict)
    activation_time: float = 0
    record_time: float = 0


@dataclass(frozen=True)
class Fork:
    """Copies that were made together. `state` is ready, pending or failed; `duration` is seconds that it took."""

    name: str = ""
    source: str = ""
    count: int = 0
    state: str = ""
    reason: str = ""
    sandboxes: List[SandboxInfo] = field(default_factory=list)
    created: Optional[datetime] = None
    duration: float = 0


@dataclass(frozen=True)
class StoredVolume:
    """A volume by itself, which outlives sandboxes. `sandboxes` are the ids of those that have it mounted."""

    id: str = ""
    name: str = ""
    owner: str = ""
    bucket: str = ""
    size: int = 0
    labels: Labels = field(default_factory=dict)
    sandboxes: List[str] = field(default_factory=list)
    created: Optional[datetime] = None


@dataclass(frozen=True)
class VolumeMount:
    """Mounts a volume (its id, or the name of one of the owner's) at an absolute path of a sandbox."""

    volume: str
    path: str
    read_only: bool = False


@dataclass(frozen=True)
class Sample:
    """What a sandbox used at a moment. `cpu` is percent of one processor since the sample before, of `cpus` that it may use; `memory` and
    `disk` are bytes, and so are their limits (0: none that is known); `network_in` and `network_out` are bytes so far."""

    time: Optional[datetime] = None
    cpu: float = 0.0
    cpus: float = 0.0
    memory: int = 0
    memory_limit: int = 0
    disk: int = 0
    disk_limit: int = 0
    processes: int = 0
    network_in: int = 0
    network_out: int = 0


@dataclass(frozen=True)
class Metrics:
    """What a sandbox used over time."""

    samples: List[Sample] = field(default_factory=list)


@dataclass(frozen=True)
class Usage:
    """What a sandbox, or several, used so far. `network_in` and `network_out` are bytes; `memory`, `memory_shared` and `storage` are bytes
    now; `seconds` is how long it ran; `sandboxes` is how many it is the sum of."""

    cpu_seconds: float = 0
    memory_gib_seconds: float = _wire("memoryGiBSeconds", 0.0)
    storage_gib_seconds: float = _wire("storageGiBSeconds", 0.0)
    network_in: int = 0
    network_out: int = 0
    seconds: float = 0
    memory: int = 0
    memory_shared: int = 0
    storage: int = 0
    processes: int = 0
    sandboxes: int = 0


@dataclass(frozen=True)
class Tree:
    """A sandbox with all that were forked from it; `total` is the usage with all that is below it."""

    sandbox: SandboxInfo = field(default_factory=SandboxInfo)
    usage: Optional[Usage] = None
    total: Optional[Usage] = None
    children: List[Tree] = field(default_factory=list)

    def walk(self) -> Iterator[SandboxInfo]:
        """Yields this sandbox and all below it, parents before children."""
        stack = [self]
        while stack:
            t = stack.pop()
            yield t.sandbox
            stack.extend(reversed(t.children))


@dataclass(frozen=True)
class Claim:
    """A sandbox that was asked for by a name. `state` is pending, ready, hibernated, ended or failed; `sandbox` is its id."""

    name: str = ""
    pool: str = ""
    template: str = ""
    state: str = ""
    reason: str = ""
    sandbox: str = ""
    endpoint: str = ""
    owner: str = ""
    created: Optional[datetime] = None


@dataclass(frozen=True)
class Snapshot:
    """The files of all durable volumes of a sandbox at one instant, with `memory` all of it. `buckets` are what holds the files, by path; `engine` is
    the sandbox's."""

    id: str = ""
    name: str = ""
    sandbox: str = ""
    template: str = ""
    version: int = 0
    owner: str = ""
    memory: bool = False
    buckets: Dict[str, str] = field(default_factory=dict)
    created: Optional[datetime] = None
    engine: str = ""


# What is done in them.


@dataclass(frozen=True)
class ExecResult:
    """How something that was run ended.

    Attributes:
        exit_code: 0 to 255; 124 where it timed out.
        stdout, stderr: the output; bytes that aren't UTF-8 are U+FFFD. Of more than 8 MiB it is the first and last part, and `truncated`.
        result: the value of the last expression of Python or JavaScript, as the interpreter shows it; it is part of stdout too.
        language: what it ran as: shell, python or javascript.
        duration: seconds.
        pid: the process inside the sandbox.
    """

    exit_code: int = 0
    stdout: str = ""
    stderr: str = ""
    result: str = ""
    language: str = ""
    truncated: bool = False
    timed_out: bool = False
    duration: float = 0
    pid: int = 0

    @property
    def ok(self) -> bool:
        """Whether it ended with exit code 0."""
        return self.exit_code == 0

    def check(self) -> ExecResult:
        """Returns itself, or raises CommandFailed (CommandTimeout) if the exit code isn't 0."""
        from .errors import CommandFailed, CommandTimeout

        if self.timed_out:
            raise CommandTimeout(self, f"exec: ended after its timeout, {self.duration:.1f} s")
        if self.exit_code != 0:
            raise CommandFailed(self)
        return self


@dataclass(frozen=True)
class ExecEvent:
    """A piece of output, as it happens. `type` is stdout or stderr; `text` holds whole characters, `data` the bytes."""

    type: str = ""
    data: bytes = b""
    text: str = ""


@dataclass(frozen=True)
class ProcessInfo:
    """A command that was started in a sandbox and hasn't ended."""

    pid: int = 0
    args: List[str] = field(default_factory=list)
    tty: bool = False


@dataclass(frozen=True)
class FileInfo:
    """A file of a sandbox. `type` is file, directory, symlink or other; `size` is in bytes, `mode` the permission bits."""

    path: str = ""
    name: str = ""
    type: str = ""
    size: int = 0
    mode: int = 0
    uid: int = 0
    gid: int = 0
    modified: Optional[datetime] = None
    target: str = ""

    @property
    def is_dir(self) -> bool:
        """Whether it is a directory."""
        return self.type == "directory"

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return self.type == "file"


@dataclass(frozen=True)
class FileEvent:
    """A change of a file. `kind` is create, write, remove, rename (to `to`), chmod, or overflow: some changes were missed."""

    kind: str = ""
    path: str = ""
    to: str = ""


@dataclass(frozen=True)
class FileChange:
    """One difference between files. `kind` is added, modified, deleted or metadata; sizes are bytes."""

    path: str = ""
    kind: str = ""
    old_size: int = 0
    new_size: int = 0


@dataclass(frozen=True)
class FileDiff:
    """What differs between the files of two sandboxes, in order of path. Iterating goes over the changes."""

    before: str = _wire("from", "")
    after: str = _wire("to", "")
    added: int = 0
    modified: int = 0
    deleted: int = 0
    metadata: int = 0
    changes: List[FileChange] = field(default_factory=list)

    def __iter__(self) -> Iterator[FileChange]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)

    def __bool__(self) -> bool:
        return bool(self.changes)


@dataclass(frozen=True)
class FileMerge:
    """What a merge of sandboxes did, or in a dry run would do. `conflicts` are paths; `more_conflicts` is how many there are beyond them."""

    source: str = ""
    target: str = ""
    dry_run: bool = False
    added: int = 0
    modified: int = 0
    deleted: int = 0
    metadata: int = 0
    conflicts: List[str] = field(default_factory=list)
    more_conflicts: int = 0


@dataclass(frozen=True)
class Credentials:
    """S3 keys for the buckets of one sandbox and nothing else; they end with it. `buckets` are names by the path where each is mounted."""

    endpoint: str = ""
    region: str = ""
    access_key_id: str = ""
    secret_access_key: str = field(default="", repr=False)
    buckets: Dict[str, str] = field(default_factory=dict)
    expires: Optional[datetime] = None

    def boto3(self) -> Dict[str, str]:
        """Returns the arguments of boto3: `boto3.client("s3", **sandbox.credentials().boto3())`."""
        return {"endpoint_url": self.endpoint, "region_name": self.region, "aws_access_key_id": self.access_key_id,
                "aws_secret_access_key": self.secret_access_key}

    def env(self) -> Dict[str, str]:
        """Returns the environment variables that AWS' tools and SDKs take."""
        return {"AWS_ENDPOINT_URL_S3": self.endpoint, "AWS_REGION": self.region, "AWS_ACCESS_KEY_ID": self.access_key_id,
                "AWS_SECRET_ACCESS_KEY": self.secret_access_key}


@dataclass(frozen=True)
class Event:
    """Something that happened. `seq` is its position in the stream; `text` is for people."""

    seq: int = 0
    time: Optional[datetime] = None
    kind: str = ""
    sandbox: str = ""
    template: str = ""
    pool: str = ""
    node: str = ""
    owner: str = ""
    text: str = ""
    data: Dict[str, str] = field(default_factory=dict)


# Who works with them.


@dataclass(frozen=True)
class Budget:
    """Bounds of what a principal's sandboxes may use; 0 is no bound. `sandboxes` is how many may run at once."""

    cpu_seconds: float = 0
    memory_gib_seconds: float = _wire("memoryGiBSeconds", 0.0)
    storage_gib_seconds: float = _wire("storageGiBSeconds", 0.0)
    network_bytes: int = 0
    sandboxes: int = 0


@dataclass(frozen=True)
class Principal:
    """Who asks. `kind` is user, agent or service; `role` admin, operator, user or viewer; `parent` is on whose behalf it acts."""

    name: str = ""
    kind: str = ""
    role: str = ""
    teams: List[str] = field(default_factory=list)
    parent: str = ""
    tags: Dict[str, str] = field(default_factory=dict)
    budget: Optional[Budget] = None
    disabled: bool = False
    created: Optional[datetime] = None


@dataclass(frozen=True)
class PrincipalUsage:
    """What a principal's sandboxes used, and how many of them run."""

    principal: str = ""
    usage: Usage = field(default_factory=Usage)
    running: int = 0
    budget: Optional[Budget] = None


@dataclass(frozen=True)
class Key:
    """An access key. `api_key` is what clients send, told once, when the key is made."""

    id: str = ""
    name: str = ""
    created: Optional[datetime] = None
    expires: Optional[datetime] = None
    root: bool = False
    principal: str = ""
    secret: str = field(default="", repr=False)
    api_key: str = field(default="", repr=False)


@dataclass(frozen=True)
class Secret:
    """Values that sandboxes may be given by name. Values are never told again: there are their keys only."""

    name: str = ""
    keys: List[str] = field(default_factory=list)
    owner: str = ""
    team: str = ""
    created: Optional[datetime] = None
    changed: Optional[datetime] = None


@dataclass(frozen=True)
class Agent:
    """Which sandboxes an agent's conversations get. `mode` is none, fixed (`sandbox`), per-user, user-chooses or fresh-per-chat (which end
    `retention` seconds after the conversation did; 0 is a day)."""

    name: str = ""
    mode: str = ""
    sandbox: str = ""
    pool: str = ""
    template: str = ""
    retention: int = 0
    owner: str = ""


@dataclass(frozen=True)
class Conversation:
    """What is attached to a conversation. `sandbox` is an id, "" when none is."""

    id: str = ""
    agent: str = ""
    user: str = ""
    mode: str = ""
    sandbox: str = ""
    attached: Optional[datetime] = None
    ended: Optional[datetime] = None


@dataclass(frozen=True)
class Mounts:
    """What stands behind the mounts that templates may name: buckets, and whether there is a private one for each owner."""

    private: bool = False
    prefix: str = ""
    shared: str = ""
    public: str = ""
    default: bool = False


@dataclass(frozen=True)
class Node:
    """A host that runs sandboxes. `state` is ready, draining or lost; `engines` says of each "" if it works, or why not."""

    name: str = ""
    state: str = ""
    address: str = ""
    version: str = ""
    engines: Dict[str, str] = field(default_factory=dict)
    sandboxes: int = 0
    capacity: int = 0
    cpus: int = 0
    memory: int = 0
    free: int = 0
    templates: List[str] = field(default_factory=list)
    seen: Optional[datetime] = None


@dataclass(frozen=True)
class AuditEntry:
    """One decision. `rule` is what decided; `hash` covers the entry and `previous`, the hash of the one before."""

    seq: int = 0
    time: Optional[datetime] = None
    principal: str = ""
    key: str = ""
    remote: str = ""
    request: str = ""
    action: str = ""
    thing: str = ""
    allowed: bool = False
    rule: str = ""
    data: Dict[str, str] = field(default_factory=dict)
    previous: str = ""
    hash: str = ""


@dataclass(frozen=True)
class AuditCheck:
    """What a check of the log's chain found. `broken` is the first entry that doesn't fit; 0: none."""

    entries: int = 0
    last: str = ""
    broken: int = 0


@dataclass(frozen=True)
class ServerInfo:
    """The server."""

    version: str = ""
    s3_endpoint: str = _wire("s3Endpoint", "")
    region: str = ""
    started: Optional[datetime] = None


_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}


def size(text: Union[str, int]) -> int:
    """Returns bytes of a size as Kubernetes writes it: size("512Mi"), size("5Gi"), size("1.5G"). A number is bytes already."""
    if isinstance(text, int):
        return text
    s = text.strip()
    number = s.rstrip("kKMGTi")
    unit = s[len(number):]
    try:
        value = float(number)
        if unit not in _UNITS or not 0 <= value < float("inf"):
            raise ValueError
    except ValueError:
        raise ValueError(f"size {text!r}: want a number with one of k, M, G, T, Ki, Mi, Gi, Ti") from None
    return int(value * _UNITS[unit])
