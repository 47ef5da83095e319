import { BuildFailedError, ConnectionError, NotFoundError, TimeoutError } from "./errors.js";
import { Sandbox } from "./sandbox.js";
import { Transport, body, path, sleep, type ClientOptions } from "./transport.js";
import type {
  Agent, AuditCheck, AuditEntry, Budget, BuildLine, Claim, ClaimSpec, Conversation, Event, Fork, ForkSpec, Lease, Mounts, NetworkPolicy, NodeInfo, Pool,
  PoolSpec, Principal, PrincipalUsage, Reservation, SandboxInfo, Secret, SecretUse, Snapshot, StoredVolume, Template, TemplateSpec, Usage, VolumeMount,
} from "./types.js";

export interface CreateOptions {
  /** Name of the pool that a warm sandbox is claimed from; or template, or snapshot (an id): one of the three, or the first argument. */
  pool?: string;
  template?: string;
  snapshot?: Snapshot | string;
  /** The warm sandbox of the pool that was reserved. */
  reservation?: Reservation | string;
  /** Its name among those that haven't ended: a DNS label. */
  name?: string;
  /** Variables of every command in it. */
  env?: Record<string, string>;
  /** Values of secrets, as variables. */
  secrets?: SecretUse[];
  /** What is set in it, over the template's. */
  lease?: Lease;
  /** At most what the template allows. */
  network?: NetworkPolicy;
  /** Volumes that are mounted in it. */
  volumes?: VolumeMount[];
  visibility?: "private" | "team" | "all";
  /** Another principal than the caller; for operators. */
  owner?: string;
  /** Attach it to that. */
  conversation?: string;
  labels?: Record<string, string>;
}

export interface ListOptions {
  /** Warm ones and ended ones are listed only if it asks for them; "any" does. */
  state?: string;
  owner?: string;
  template?: string;
  pool?: string;
  root?: string;
  parent?: string;
  name?: string;
  conversation?: string;
  labels?: Record<string, string>;
  /** At most so many; by default all. */
  limit?: number;
}

/**
 * A client of one server.
 *
 *     const client = new AgentRun();
 *     const sandbox = await client.create('python-agent-pool');
 *     console.log((await sandbox.exec('print(1 + 1)')).stdout); // 2
 *
 * It finds the server by its arguments, then AGENTRUN_ENDPOINT and AGENTRUN_API_KEY, then what `agentrun up` left.
 */
export class AgentRun {
  /** @internal */
  readonly transport: Transport;
  readonly templates: Templates;
  readonly pools: Pools;
  readonly claims: Named<Claim, ClaimSpec>;
  readonly forks: Named<Fork, ForkSpec>;
  readonly snapshots: Snapshots;
  readonly volumes: Volumes;
  readonly conversations: Conversations;
  readonly agents: Named<Agent, Omit<Agent, "name">>;
  readonly secrets: Named<Secret, { data: Record<string, string>; team?: string }>;
  readonly principals: Principals;
  readonly audit: Audit;

  constructor(options: ClientOptions = {}) {
    const t = (this.transport = new Transport(options));
    this.templates = new Templates(t);
    this.pools = new Pools(t);
    this.claims = new Named(t, "claims");
    this.forks = new Named(t, "forks");
    this.snapshots = new Snapshots(t);
    this.volumes = new Volumes(t);
    this.conversations = new Conversations(t);
    this.agents = new Named(t, "agents");
    this.secrets = new Named(t, "secrets");
    this.principals = new Principals(t);
    this.audit = new Audit(t);
  }

  /**
   * Makes a sandbox, or claims a warm one from a pool.
   * @param source name of a pool; if there is none of that name, of a template
   * @throws NotFoundError no such pool, template, snapshot, secret
   * @throws ExistsError the name is taken
   * @throws DeniedError it would be allowed more than the template, or the caller may not
   * @throws LimitExceededError a quota, a budget or the pool's bound
   * @throws UnavailableError no sandbox could be started now
   */
  async create(source?: string, o: CreateOptions = {}): Promise<Sandbox> {
    const named = [source, o.pool, o.template, o.snapshot].filter((s) => s !== undefined);
    const reserved = typeof o.reservation === "object" ? o.reservation : undefined;
    if (named.length > 1) throw new TypeError("create: give one of a pool, a template and a snapshot");
    if (named.length === 0 && !reserved) throw new TypeError("create: from what? Give the name of a pool or template, such as create('python-agent-pool')");
    const given = body({
      name: o.name, env: o.env, secrets: o.secrets, lease: o.lease, network: o.network, visibility: o.visibility, owner: o.owner,
      conversation: o.conversation, labels: o.labels, volumes: o.volumes, template: o.template, pool: source ?? o.pool ?? reserved?.pool,
      snapshot: typeof o.snapshot === "object" ? o.snapshot.id : o.snapshot, reservation: reserved?.id ?? (o.reservation as string | undefined),
    });
    const make = async (what: object) => new Sandbox(this, await this.transport.json<SandboxInfo>("POST", path("sandboxes"), { once: true, body: what, timeout: 300_000 }));
    try {
      return await make(given);
    } catch (e) {
      if (!(e instanceof NotFoundError) || source === undefined || (await this.pools.exists(source)) || !(await this.templates.exists(source))) throw e;
    }
    const { pool, ...rest } = given;
    return make({ ...rest, template: pool });
  }

  /** Returns a sandbox that exists, by its id or name. */
  async get(id: string): Promise<Sandbox> {
    return new Sandbox(this, await this.transport.json<SandboxInfo>("GET", path("sandboxes", id)));
  }

  /** Returns sandboxes, newest first: those that fit all that is given. */
  async list(o: ListOptions = {}): Promise<Sandbox[]> {
    const { labels, limit, ...query } = o;
    const label = Object.entries(labels ?? {}).map(([k, v]) => `${k}=${v}`);
    return (await this.transport.list<SandboxInfo>(path("sandboxes"), "sandboxes", { ...query, label }, limit)).map((s) => new Sandbox(this, s));
  }

  /**
   * Yields what happened, oldest first, and what happens, as it does. A connection that breaks is made anew where it was.
   * @param o.after the position after which to begin: the seq of an event; "0" is the oldest that is kept
   * @param o.follow go on for ever; else end with the newest
   */
  async *events(o: { after?: string; sandbox?: string; kind?: string; follow?: boolean; signal?: AbortSignal } = {}): AsyncGenerator<Event, void, undefined> {
    let after = o.after ?? "0";
    for (let failures = 0; ; ) {
      const query = { after, sandbox: o.sandbox, kind: o.kind };
      if (o.follow === false) {
        const page = await this.transport.json<{ events: Event[]; next: string }>("GET", path("events"), { query: { ...query, limit: 1000 }, signal: o.signal });
        if (page.events.length === 0 && page.next === after) return;
        yield* page.events;
        after = page.next;
        continue;
      }
      try {
        for await (const e of this.transport.lines<Event>("GET", path("events"), { query: { ...query, follow: true }, signal: o.signal })) {
          failures = 0;
          if (!e.seq || BigInt(e.seq) <= BigInt(after)) continue;
          after = e.seq;
          yield e;
        }
      } catch (e) {
        if (!(e instanceof ConnectionError || e instanceof TimeoutError) || failures > 10) throw e;
      }
      await sleep(this.transport.pause(++failures), o.signal);
    }
  }

  /** Describes the server. */
  server(): Promise<{ version: string; s3Endpoint?: string; region: string; started: string }> {
    return this.transport.json("GET", path("server"));
  }

  /** Returns the principal that the API key belongs to. */
  me(): Promise<Principal> {
    return this.transport.json("GET", path("me"));
  }

  /** Returns what a principal's sandboxes used so far; by default the caller's own. */
  async usage(principal?: string): Promise<Usage> {
    return (await this.principals.usage(principal ?? (await this.me()).name)).usage;
  }

  /** Returns the hosts that run sandboxes. */
  nodes(): Promise<NodeInfo[]> {
    return this.transport.list<NodeInfo>(path("nodes"), "nodes");
  }

  /** Returns what stands behind the mounts that templates may name. */
  mounts(): Promise<Mounts> {
    return this.transport.json("GET", path("mounts"));
  }

  /** Sets what stands behind the mounts; for administrators. */
  setMounts(mounts: Mounts): Promise<Mounts> {
    return this.transport.json("PUT", path("mounts"), { body: mounts });
  }
}

/** Things that are declared under a name. */
export class Named<T, S extends object> {
  constructor(protected readonly transport: Transport, protected readonly kind: string) {}

  /** Makes one, or changes it to be as given. */
  put(name: string, spec: S): Promise<T> {
    return this.transport.json<T>("PUT", path(this.kind, name), { body: spec, timeout: 300_000 });
  }

  get(name: string): Promise<T> {
    return this.transport.json<T>("GET", path(this.kind, name));
  }

  async exists(name: string): Promise<boolean> {
    try {
      await this.get(name);
      return true;
    } catch (e) {
      if (e instanceof NotFoundError) return false;
      throw e;
    }
  }

  /** Returns all of them, by name. */
  list(o: { limit?: number } = {}): Promise<T[]> {
    return this.transport.list<T>(path(this.kind), this.kind, {}, o.limit);
  }

  async delete(name: string): Promise<void> {
    await this.transport.json("DELETE", path(this.kind, name));
  }
}

/** Templates: what sandboxes look like. */
export class Templates extends Named<Template, TemplateSpec> {
  constructor(transport: Transport) {
    super(transport, "templates");
  }

  /** Returns all versions of a template, newest first. */
  versions(name: string): Promise<Template[]> {
    return this.transport.list<Template>(path(this.kind, name, "versions"), this.kind);
  }

  /** Builds the newest version again. */
  rebuild(name: string): Promise<Template> {
    return this.transport.json<Template>("POST", path(this.kind, name, "build"));
  }

  /** Yields what the build of a template printed; with follow until the build has ended. */
  log(name: string, o: { version?: number; follow?: boolean; signal?: AbortSignal } = {}): AsyncGenerator<BuildLine, void, undefined> {
    return this.transport.lines<BuildLine>("GET", path(this.kind, name, "log"), { query: { version: o.version, follow: o.follow }, signal: o.signal });
  }

  /** Waits until a template is built. */
  async wait(name: string, o: { timeout?: number } = {}): Promise<Template> {
    const until = Date.now() + (o.timeout ?? 600_000);
    for (let pause = 20; ; pause = Math.min(pause * 1.5, 1000)) {
      const t = await this.get(name);
      if (t.state === "ready") return t;
      if (t.state === "failed") {
        const log: string[] = [];
        for await (const line of this.log(name, { version: t.version })) log.push(line.text);
        throw new BuildFailedError(`build: ${name}: ${t.error || "it failed"}`, log.slice(-100));
      }
      if (Date.now() >= until) throw new TimeoutError(`build: ${name}: it is still ${t.state}`, { kind: "timeout" });
      await sleep(pause);
    }
  }
}

/** Pools of warm sandboxes. */
export class Pools extends Named<Pool, PoolSpec> {
  constructor(transport: Transport) {
    super(transport, "pools");
  }

  /** Waits until a pool is full. */
  async wait(name: string, o: { timeout?: number } = {}): Promise<Pool> {
    const until = Date.now() + (o.timeout ?? 600_000);
    for (let pause = 20; ; pause = Math.min(pause * 1.5, 1000)) {
      const p = await this.get(name);
      if (p.state === "ready" && p.ready >= p.spec.replicas) return p;
      if (p.state === "failed") throw new BuildFailedError(`pool: ${name}: ${p.error || "it failed"}`, []);
      if (Date.now() >= until) throw new TimeoutError(`pool: ${name}: it is ${p.state}, ${p.ready} of ${p.spec.replicas} are ready`, { kind: "timeout" });
      await sleep(pause);
    }
  }

  /** Holds a warm sandbox back for whoever is about to claim; seconds at most 600, by default 60. */
  reserve(pool: string, seconds?: number): Promise<Reservation> {
    return this.transport.json<Reservation>("POST", path("reservations"), { once: true, body: body({ pool, seconds }) });
  }

  async unreserve(id: string): Promise<void> {
    await this.transport.json("DELETE", path("reservations", id));
  }
}

/** Snapshots of sandboxes' files. */
export class Snapshots {
  constructor(private readonly transport: Transport) {}

  get(id: string): Promise<Snapshot> {
    return this.transport.json<Snapshot>("GET", path("snapshots", id));
  }

  list(o: { sandbox?: string; limit?: number } = {}): Promise<Snapshot[]> {
    return this.transport.list<Snapshot>(path("snapshots"), "snapshots", { sandbox: o.sandbox }, o.limit);
  }

  async delete(id: string): Promise<void> {
    await this.transport.json("DELETE", path("snapshots", id));
  }
}

/** Volumes that are there by themselves and outlive sandboxes; all that mount one see one another's writes. */
export class Volumes {
  constructor(private readonly transport: Transport) {}

  /** @throws ExistsError the owner has one of this name */
  create(name: string, o: { size?: number; owner?: string; labels?: Record<string, string> } = {}): Promise<StoredVolume> {
    return this.transport.json<StoredVolume>("POST", path("volumes"), { once: true, body: body({ name, ...o }) });
  }

  get(id: string): Promise<StoredVolume> {
    return this.transport.json<StoredVolume>("GET", path("volumes", id));
  }

  list(o: { limit?: number } = {}): Promise<StoredVolume[]> {
    return this.transport.list<StoredVolume>(path("volumes"), "volumes", {}, o.limit);
  }

  /** Deletes it with what it holds; one that a sandbox has mounted stays, which is an error. */
  async delete(id: string): Promise<void> {
    await this.transport.json("DELETE", path("volumes", id));
  }
}

/** Conversations, and which sandbox each of them has. */
export class Conversations {
  constructor(private readonly transport: Transport) {}

  /** Attaches a sandbox: which one is the agent's mode to say. */
  attach(id: string, o: { agent?: string; sandbox?: Sandbox | string; user?: string } = {}): Promise<Conversation> {
    const sandbox = typeof o.sandbox === "object" ? o.sandbox.id : o.sandbox;
    return this.transport.json<Conversation>("POST", path("conversations", id, "attach"), { once: true, body: body({ agent: o.agent, user: o.user, sandbox }) });
  }

  detach(id: string): Promise<Conversation> {
    return this.transport.json<Conversation>("POST", path("conversations", id, "detach"), { again: true });
  }

  get(id: string): Promise<Conversation> {
    return this.transport.json<Conversation>("GET", path("conversations", id));
  }

  /** Ends it: what it alone has ends as its agent's mode says. */
  async end(id: string): Promise<void> {
    await this.transport.json("DELETE", path("conversations", id));
  }
}

/** Who may do what. */
export class Principals extends Named<Principal, Omit<Principal, "name" | "created"> & { budget?: Budget }> {
  constructor(transport: Transport) {
    super(transport, "principals");
  }

  /** Returns what a principal's sandboxes used, and its budget. */
  usage(name: string): Promise<PrincipalUsage> {
    return this.transport.json<PrincipalUsage>("GET", path("principals", name, "usage"));
  }
}

/** The log of every decision. */
export class Audit {
  constructor(private readonly transport: Transport) {}

  /** Returns entries after a position, at most 1,000. */
  async list(after = "0", limit = 1000): Promise<AuditEntry[]> {
    return (await this.transport.json<{ entries: AuditEntry[] }>("GET", path("audit"), { query: { after, limit } })).entries;
  }

  /** Checks that nothing in it was changed, removed or put in between. */
  verify(): Promise<AuditCheck> {
    return this.transport.json<AuditCheck>("GET", path("audit", "verify"));
  }
}
