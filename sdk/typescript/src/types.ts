/**
 * What the API speaks of. Times are RFC 3339 in UTC, sizes bytes, durations seconds; positions of events are decimal strings, since
 * numbers can't hold them. A field that may be absent is optional.
 */

/** TemplateSpec says what a sandbox looks like. */
export interface TemplateSpec {
  /** "" is userspace */
  engine?: string;
  /**
   * What the root is made of. With userspace: a name of the catalogue, such as python:3.12-slim, or "bucket:NAME[@SNAPSHOT]"; "" is its own
   * userland. With microvm: an OCI image, by its name in a registry; "" is the node's default.
   */
  image?: string;
  /** Shell lines, run once when the template is built, in order; the first that fails fails the build */
  init?: string[];
  /** What exec takes text for if it parses as that; "" is the image's own, else shell */
  language?: string;
  /** Where commands start; "" is /workspace */
  dir?: string;
  env?: Record<string, string>;
  resources?: Resources;
  /** Without one at /workspace there is an empty bucket there, with fork policy Snapshot */
  volumes?: Volume[];
  /** Of private, shared, public: see Mounts */
  mounts?: string[];
  network?: NetworkPolicy;
  lease?: Lease;
}

/** Resources bound a sandbox. Zero is the engine's default. */
export interface Resources {
  /** Processors */
  cpu?: number;
  /** Bytes */
  memory?: number;
  /** Bytes written over its life */
  disk?: number;
  /** At once */
  processes?: number;
  /** Of what is read and written: of the volumes together and, once more, of the root's image. Rates are kept by microvm, and refused by other engines */
  diskRate?: Rate;
  /** Of what the sandbox receives */
  networkInRate?: Rate;
  /** Of what it sends */
  networkOutRate?: Rate;
}

/** Rate bounds what may be done in a second. Zero is no bound. A burst is what may be done at once after a rest; without one it is a second's. */
export interface Rate {
  /** At least 4096 */
  bytesPerSecond?: number;
  /** Reads and writes of a disk, packets of a network */
  operationsPerSecond?: number;
  /** Needs bytesPerSecond */
  burstBytes?: number;
  /** Needs operationsPerSecond */
  burstOperations?: number;
}

/** Volume is a filesystem of a sandbox. Without a source it is a bucket of its own, empty at first. */
export interface Volume {
  name: string;
  /** Where it is mounted; "" is /NAME */
  path?: string;
  /** Bytes that its files may have together; 0: no limit of its own */
  size?: number;
  readOnly?: boolean;
  /** "" is Snapshot, and Share where it is read-only */
  forkPolicy?: string;
  source?: VolumeSource;
}

/** VolumeSource says what a volume holds at first. At most one field is set. */
export interface VolumeSource {
  /** A fork of this bucket (or NAME@SNAPSHOT); the bucket itself if the volume is shared */
  bucket?: string;
  /** Nothing: it is in memory and never durable */
  memory?: boolean;
}

/** NetworkPolicy says what a sandbox may connect to. The zero value denies everything. */
export interface NetworkPolicy {
  /** Deny or allow: of what no rule names; "" is deny */
  egress?: string;
  /** HOST[:PORT], *.HOST[:PORT], CIDR[:PORT] */
  allow?: string[];
  /** Such rules, too: with egress allow, what isn't allowed unless a rule of allow names it */
  deny?: string[];
}

/**
 * Lease is how long a sandbox lives, in seconds: Duration at first; every use moves the end to now + Extend, if that is later. Retention is
 * how long the record of an ended sandbox is kept.
 */
export interface Lease {
  /** 0 is 600 */
  duration?: number;
  /** 0 is 600 */
  extend?: number;
  /** Hibernate or end; "" is hibernate */
  onExpiry?: string;
  /** Sliding, or fixed: no use moves the end, and when it comes it hibernates or ends whoever uses it; "" is sliding */
  mode?: string;
  /** Use, or resume: what wakes it up when it hibernates; other uses are a conflict. "" is use */
  wake?: string;
  /** Ended at this age whatever its use; 0: never */
  maxAge?: number;
  /** A hibernated one is ended after so long; 0 is 30 days */
  sleep?: number;
  /** 0 is 7 days */
  retention?: number;
}

/**
 * Template is a version of a template: GET /v1/templates/{name}[?version=N], GET /v1/templates. PUT of a TemplateSpec makes a new version if
 * it differs from the newest; POST /v1/templates takes a CreateTemplate. Sandboxes and pools use the newest version that is ready.
 */
export interface Template {
  name: string;
  /** From 1 */
  version: number;
  spec: TemplateSpec;
  /** Of the build */
  state: string;
  /** Why it failed */
  error?: string;
  /** Of the build, 0 to 1 */
  progress: number;
  /** What the builder decided, such as what an image's name stands for */
  notes?: string[];
  owner?: string;
  created: string;
  built?: string;
  /** The newest version */
  latest?: boolean;
  labels?: Record<string, string>;
}

/** BuildLine is a line of a build's log: GET /v1/templates/{name}/log[?version=N&follow=true], as NDJSON or SSE. */
export interface BuildLine {
  time: string;
  text: string;
}

/** PoolSpec says how many warm sandboxes of a template are kept: PUT /v1/pools/{name}. */
export interface PoolSpec {
  template: string;
  /** 0 to MaxReplicas */
  replicas: number;
  /** MaxSandboxes bounds those that were claimed from the pool and haven't ended; 0 is no bound. */
  maxSandboxes?: number;
  labels?: Record<string, string>;
}

/** Pool is warm sandboxes of a template: GET /v1/pools, GET /v1/pools/{name}. */
export interface Pool {
  name: string;
  spec: PoolSpec;
  /** Of the template, that its sandboxes have */
  version: number;
  /** Warm sandboxes */
  ready: number;
  /** Of them, those that stand at the template's snapshot */
  snapshots: number;
  /** Claimed from it, and not ended */
  claimed: number;
  /** Held back for those who are about to claim */
  reserved: number;
  /** Ready, filling, building or failed */
  state: string;
  error?: string;
  owner?: string;
  created: string;
}

/** SecretUse puts a secret's value into the environment of a sandbox, as the variable Env, or Key if that is empty. */
export interface SecretUse {
  /** For people */
  name?: string;
  secretRef: SecretRef;
  env?: string;
  /** What forks get: same (the default) or drop */
  fork?: string;
}

/** SecretRef names a value of a Secret. */
export interface SecretRef {
  name: string;
  key: string;
}

/** SandboxInfo describes a sandbox: GET /v1/sandboxes/{id}, where id is an id or a name; GET /v1/sandboxes. */
export interface SandboxInfo {
  id: string;
  name?: string;
  state: string;
  /** Of its state, where there is one to tell */
  reason?: string;
  template?: string;
  /** Of the template */
  version?: number;
  pool?: string;
  /** Id of the sandbox that it was forked from */
  parent?: string;
  /** Name of the fork that made it */
  fork?: string;
  /** Id of the first of its tree; its own where it wasn't forked */
  root: string;
  /** In the tree: 0 is the root */
  depth: number;
  owner?: string;
  visibility?: string;
  node?: string;
  engine: string;
  /** Host:port of the API through which it is reached */
  endpoint?: string;
  language?: string;
  volumes?: SandboxVolume[];
  network?: NetworkPolicy;
  lease: Lease;
  created: string;
  claimed?: string;
  /** When it began to run, or last woke up */
  started?: string;
  /** If it isn't used; absent while it sleeps */
  expires?: string;
  ended?: string;
  /** Grows with every start */
  epoch: number;
  /** That it is attached to */
  conversations?: string[];
  labels?: Record<string, string>;
  /** ActivationTime and RecordTime are what the claim took at the node and in the records, in seconds; they run side by side. */
  activationTime?: number;
  recordTime?: number;
}

/** SandboxVolume is a volume of a sandbox as it is. */
export interface SandboxVolume {
  name: string;
  path: string;
  /** Absent for one in memory */
  bucket?: string;
  readOnly?: boolean;
  forkPolicy?: string;
  size?: number;
}

/**
 * Fork is copies that were made together: the answer to ForkSandbox; GET /v1/forks[/{name}]. PUT /v1/forks/{name} takes a ForkSpec and makes
 * it unless it exists; DELETE ends its sandboxes.
 */
export interface Fork {
  /** An id where none was given */
  name: string;
  source: string;
  count: number;
  /** Ready, pending or failed */
  state: string;
  reason?: string;
  sandboxes?: SandboxInfo[];
  created: string;
  /** Seconds that it took */
  duration?: number;
}

/** ForkSpec is a fork as it is declared. Source is the id or name of a sandbox. */
export interface ForkSpec {
  source: string;
  replicas: number;
}

/** Tree is a sandbox with all that were forked from it: GET /v1/sandboxes/{id}/tree, from the root with ?root=true. */
export interface Tree {
  sandbox: SandboxInfo;
  usage?: Usage;
  /** With all that is below it */
  total?: Usage;
  children?: Tree[];
}

/** ClaimSpec is a claim as it is declared: PUT /v1/claims/{name} makes it unless it exists with the same spec. */
export interface ClaimSpec {
  pool?: string;
  template?: string;
  env?: Record<string, string>;
  secrets?: SecretUse[];
  lease?: Lease;
  labels?: Record<string, string>;
}

/** Claim is a sandbox that was asked for by a name: GET /v1/claims[/{name}]; DELETE ends the sandbox and forgets the claim. */
export interface Claim {
  name: string;
  pool?: string;
  template?: string;
  /** Pending, ready, hibernated, ended or failed */
  state: string;
  reason?: string;
  /** Id */
  sandbox?: string;
  endpoint?: string;
  owner?: string;
  created: string;
}

/** Reservation is a warm sandbox that is held back: DELETE /v1/reservations/{id} gives it up early. */
export interface Reservation {
  id: string;
  pool: string;
  expires: string;
}

/**
 * Snapshot is the files of all durable volumes of a sandbox at one instant: GET /v1/snapshots[/{id}] [?sandbox=ID]; DELETE. It outlives its
 * sandbox. Buckets are what holds them, by path.
 */
export interface Snapshot {
  id: string;
  name?: string;
  sandbox: string;
  template?: string;
  version?: number;
  /** Of the sandbox; what is made of its memory is of the same */
  engine?: string;
  owner?: string;
  /** Its processes and memory are in it, too */
  memory?: boolean;
  buckets: Record<string, string>;
  created: string;
}

/**
 * FileChange is one difference between the files of two sandboxes: GET /v1/sandboxes/{id}/diff?to=ID[&path=P], whose lines they are, in order
 * of path; id is before, to is after; without to it is what changed since the sandbox was forked or claimed. The result is a FileDiff.
 */
export interface FileChange {
  path: string;
  /** Added, modified, deleted or metadata */
  kind: string;
  oldSize?: number;
  newSize?: number;
}

/** FileDiff ends the stream of a diff of sandboxes. */
export interface FileDiff {
  from: string;
  to: string;
  added: number;
  modified: number;
  deleted: number;
  metadata: number;
}

/** FileMerge is what a merge of sandboxes did. Conflicts are paths; with fail and any of them nothing was changed. */
export interface FileMerge {
  source: string;
  target: string;
  dryRun?: boolean;
  added: number;
  modified: number;
  deleted: number;
  metadata: number;
  conflicts?: string[];
  moreConflicts?: number;
}

/** Credentials are S3 keys for the buckets of one sandbox and nothing else: POST /v1/sandboxes/{id}/credentials. They end with it. */
export interface Credentials {
  endpoint: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
  /** By path */
  buckets: Record<string, string>;
  expires?: string;
}

/** StoredVolume is a volume by itself, which outlives sandboxes: GET /v1/volumes/{id}, where id is an id or the name of one of the caller's own. */
export interface StoredVolume {
  id: string;
  name: string;
  owner?: string;
  /** That holds its files */
  bucket: string;
  size?: number;
  labels?: Record<string, string>;
  /** Ids of those that have it mounted, and haven't ended */
  sandboxes?: string[];
  created: string;
}

/** VolumeMount mounts a volume in a sandbox: its id, or the name of one of the owner's. */
export interface VolumeMount {
  volume: string;
  /** Absolute, where no other volume is */
  path: string;
  readOnly?: boolean;
}

/** Sample is what a sandbox used at a moment. Sizes are bytes. */
export interface Sample {
  time: string;
  /** Percent of one processor, since the sample before */
  cpu: number;
  /** Processors that it may use */
  cpus: number;
  /** With what it shares */
  memory: number;
  /** The template's, or what its node has */
  memoryLimit: number;
  /** Of its volumes, that are its own */
  disk: number;
  diskLimit?: number;
  processes: number;
  /** So far */
  networkIn: number;
  /** So far */
  networkOut: number;
}

/** Usage is what a sandbox, or several, used so far: GET /v1/sandboxes/{id}/usage. Seconds and bytes. */
export interface Usage {
  cpuSeconds: number;
  memoryGiBSeconds: number;
  /** Of bytes that are its own */
  storageGiBSeconds: number;
  networkIn: number;
  networkOut: number;
  /** That it ran */
  seconds: number;
  /** Bytes now, of its own */
  memory?: number;
  memoryShared?: number;
  /** Bytes now, of its own */
  storage?: number;
  processes?: number;
  /** That it is the sum of */
  sandboxes?: number;
}

/** PrincipalUsage is what a principal's sandboxes used: GET /v1/principals/{name}/usage. */
export interface PrincipalUsage {
  principal: string;
  usage: Usage;
  running: number;
  budget?: Budget;
}

/**
 * Budget bounds what a principal's sandboxes may use; 0 is no bound. What would go beyond it is refused, and sandboxes that go beyond it
 * hibernate.
 */
export interface Budget {
  cpuSeconds?: number;
  memoryGiBSeconds?: number;
  storageGiBSeconds?: number;
  networkBytes?: number;
  /** That run at once */
  sandboxes?: number;
}

/**
 * Event is something that happened: GET /v1/events?after=SEQ[&sandbox=ID&kind=K&limit=N]. With Accept: text/event-stream it is a stream that
 * goes on; Last-Event-ID resumes it. Events are kept for 7 days at least.
 */
export interface Event {
  seq: string;
  time: string;
  kind: string;
  sandbox?: string;
  template?: string;
  pool?: string;
  node?: string;
  owner?: string;
  /** For people */
  text?: string;
  data?: Record<string, string>;
}

/** NodeInfo is a host that runs sandboxes: GET /v1/nodes[/{name}]. */
export interface NodeInfo {
  name: string;
  /** Ready, draining or lost */
  state: string;
  address?: string;
  version?: string;
  /** By name: "" if it works, or why not */
  engines: Record<string, string>;
  sandboxes: number;
  /** Sandboxes; 0: as memory allows */
  capacity?: number;
  cpus?: number;
  memory?: number;
  /** Memory */
  free?: number;
  /** NAME@VERSION, that it holds */
  templates?: string[];
  seen: string;
}

/** Agent says which sandboxes an agent's conversations get: PUT, GET, DELETE /v1/agents/{name}; GET /v1/agents. */
export interface Agent {
  name: string;
  mode: string;
  /** Of fixed */
  sandbox?: string;
  /** Where new ones are claimed from */
  pool?: string;
  template?: string;
  /** Seconds, of fresh-per-chat; 0 is a day */
  retention?: number;
  owner?: string;
}

/** Conversation is what is attached to a conversation: GET /v1/conversations/{id}; POST …/detach; DELETE ends it. */
export interface Conversation {
  id: string;
  agent?: string;
  user?: string;
  mode?: string;
  /** Id; absent when none is attached */
  sandbox?: string;
  attached?: string;
  ended?: string;
}

/**
 * Mounts say what stands behind the mounts that templates may name: GET, PUT /v1/mounts. private is a bucket of the owner's, made when it is
 * first needed, at /private, read-write; shared and public are buckets at /shared and /public, read-only.
 */
export interface Mounts {
  /** Whether there is one */
  private: boolean;
  /** Of the private buckets' names; "" is "private-" */
  prefix?: string;
  /** Bucket */
  shared?: string;
  /** Bucket */
  public?: string;
  /** Every template has those that there are, unless it names its own */
  default?: boolean;
}

/** ExecResult is how it ended. Output that isn't UTF-8 has U+FFFD in place of wrong bytes; streams have bytes. */
export interface ExecResult {
  /** 0–255; 124: timed out */
  exitCode: number;
  stdout: string;
  stderr: string;
  /** The value of Python's or JavaScript's last expression, as the interpreter shows it; it is part of Stdout too */
  result?: string;
  /** As what it ran */
  language: string;
  truncated?: boolean;
  timedOut?: boolean;
  /** Seconds */
  duration: number;
  pid?: number;
}

/** ProcessInfo is a process of a sandbox: GET /v1/sandboxes/{id}/processes; DELETE /v1/sandboxes/{id}/processes/{pid}?signal=TERM. */
export interface ProcessInfo {
  pid: number;
  args: string[];
  tty?: boolean;
}

/** FileInfo describes a file of a sandbox: GET /v1/sandboxes/{id}/files/stat?path=P. */
export interface FileInfo {
  path: string;
  name: string;
  /** File, directory, symlink or other */
  type: string;
  size: number;
  /** Permission bits */
  mode: number;
  uid: number;
  gid: number;
  modified: string;
  /** Of a symlink */
  target?: string;
}

/**
 * FileEvent is a change of a file: GET /v1/sandboxes/{id}/files/watch?path=P[&recursive=true], a stream of SSE or NDJSON that begins with one
 * of Kind ready.
 */
export interface FileEvent {
  /** Ready, create, write, remove, rename, chmod; overflow: some were missed */
  kind: string;
  path?: string;
  /** Of rename */
  to?: string;
}

/** Principal is who asks: a user, an agent or a service. PUT, GET, DELETE /v1/principals/{name}; GET /v1/principals; GET /v1/me. */
export interface Principal {
  name: string;
  /** User, agent or service; "" is user */
  kind?: string;
  role: string;
  teams?: string[];
  /** On whose behalf it acts: its usage counts there too */
  parent?: string;
  tags?: Record<string, string>;
  budget?: Budget;
  /** Its keys are refused */
  disabled?: boolean;
  created?: string;
}

/** Secret is values that sandboxes may be given by name: PUT /v1/secrets/{name}. Values are never told again: GET has Keys only. */
export interface Secret {
  name: string;
  /** Of PUT: all values, by key; those that are missing go */
  data?: Record<string, string>;
  keys?: string[];
  owner?: string;
  /** Whose members may use it too */
  team?: string;
  created?: string;
  changed?: string;
}

/**
 * AuditEntry is one decision: GET /v1/audit?after=SEQ[&limit=N&principal=&action=&allowed=false], as a page or NDJSON. Hash is the SHA-256 of
 * the entry's canonical form without it, in which Previous is the hash of the one before: GET /v1/audit/verify checks the chain.
 */
export interface AuditEntry {
  seq: string;
  time: string;
  /** Empty: unknown */
  principal?: string;
  /** Id */
  key?: string;
  remote?: string;
  request?: string;
  /** Such as sandbox.fork */
  action: string;
  thing?: string;
  allowed: boolean;
  /** That decided */
  rule: string;
  data?: Record<string, string>;
  previous: string;
  hash: string;
}

/** AuditCheck is what a check of the chain found. */
export interface AuditCheck {
  entries: number;
  /** Hash of the newest */
  last: string;
  /** The first that doesn't fit; 0: none */
  broken: string;
}
