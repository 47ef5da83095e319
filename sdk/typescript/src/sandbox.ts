import type { AgentRun, CreateOptions } from "./client.js";
import { CommandFailedError, ConflictError, ConnectionError, MergeConflictError, NotFoundError, TimeoutError, fromProblem, type Problem } from "./errors.js";
import { Files } from "./files.js";
import { Terminal, type Hello } from "./terminal.js";
import { body, path, sleep, type ClientOptions, type RequestOptions, type Transport } from "./transport.js";
import type {
  Credentials, ExecResult, FileChange, FileDiff, FileMerge, Fork, Lease, NetworkPolicy, ProcessInfo, Sample, SandboxInfo, SecretUse, Snapshot, Tree, Usage,
} from "./types.js";

// Node 18 has no Symbol.asyncDispose; what compiles `await using` for it makes one of this name.
const asyncDispose: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? (Symbol.for("Symbol.asyncDispose") as typeof Symbol.asyncDispose);

const serverTimeout = 3_600_000; // milliseconds that the server gives a command which says nothing
const long = 600_000; // for what copies files or memory

export interface ExecOptions {
  /** "python", "javascript" or "shell", instead of the guess. */
  language?: string;
  /** The name of an interpreter's or shell's own state. Without one Python and JavaScript share one each; shell starts afresh. */
  session?: string;
  /** Variables for this alone, over the sandbox's. */
  env?: Record<string, string>;
  /** The directory that it starts in, absolute. */
  cwd?: string;
  /** All of its standard input. */
  stdin?: string;
  /** Milliseconds after which it is ended, with exit code 124; default the server's hour. */
  timeout?: number;
  /** As user 0 of the sandbox. */
  root?: boolean;
  /** Throw CommandFailedError if the exit code isn't 0. */
  check?: boolean;
  /** Called with pieces of output, as text, when they come. */
  onStdout?: (text: string) => void;
  onStderr?: (text: string) => void;
  signal?: AbortSignal;
}

/** A piece of output of `sandbox.stream`, and at the end how it ended. */
export type ExecEvent =
  | { type: "start"; pid: number }
  | { type: "stdout" | "stderr"; data: Uint8Array; text: string }
  | { type: "exit"; result: ExecResult };

export interface ForkOptions {
  /** Of the fork; the copies are NAME, or NAME-1, NAME-2 … of several. */
  name?: string;
  /** Variables over those of this sandbox. */
  env?: Record<string, string>;
  secrets?: SecretUse[];
  lease?: Lease;
  /** At most what this one may. */
  network?: NetworkPolicy;
  /** What can't be copied is missing in the copies, instead of failing the fork. */
  kill?: boolean;
  labels?: Record<string, string>;
}

/** The differences between the files of two sandboxes. */
export interface Diff extends FileDiff {
  changes: FileChange[];
}

/**
 * A sandbox: files, processes and memory of its own. Make one with `Sandbox.create` or `client.create`.
 *
 * Every method may throw NotFoundError (there is no such sandbox for this caller), DeniedError, ConflictError (it has ended),
 * LimitExceededError (a budget is used up), ConnectionError and TimeoutError. A sandbox that hibernates wakes up by itself.
 */
export class Sandbox {
  /** Of the sandbox. */
  readonly id: string;
  /** Its files. */
  readonly files: Files;
  /** Its record, as it was when it was last asked for; `refresh` asks again. */
  info: SandboxInfo;
  /** The client through which it is reached. */
  readonly client: AgentRun;
  private readonly transport: Transport;

  constructor(client: AgentRun, info: SandboxInfo) {
    this.client = client;
    this.transport = client.transport;
    this.info = info;
    this.id = info.id;
    this.files = new Files(this.transport, info.id);
  }

  /** Makes a sandbox, as `AgentRun.create` does, with a client of its own. */
  static async create(source?: string, options: CreateOptions & ClientOptions = {}): Promise<Sandbox> {
    const { AgentRun } = await import("./client.js");
    return new AgentRun(options).create(source, options);
  }

  /** Returns a sandbox that exists, by its id or name. */
  static async connect(id: string, options: ClientOptions = {}): Promise<Sandbox> {
    const { AgentRun } = await import("./client.js");
    return new AgentRun(options).get(id);
  }

  /** Its name among those that haven't ended; "" if it has none. */
  get name(): string {
    return this.info.name ?? "";
  }

  /** Its state when it was last asked for. */
  get state(): string {
    return this.info.state;
  }

  private at(...more: string[]): string {
    return path("sandboxes", this.id, ...more);
  }

  private async set(method: string, more: string[], o: RequestOptions = {}): Promise<SandboxInfo> {
    const v = await this.transport.json<SandboxInfo | undefined>(method, this.at(...more), o);
    if (v?.id === this.id) this.info = v;
    return this.info;
  }

  /** Asks for its record again. That isn't a use: it doesn't wake it up, and its lease stays as it is. */
  refresh(): Promise<SandboxInfo> {
    return this.set("GET", []);
  }

  /**
   * Runs something in the sandbox and waits until it has ended.
   *
   * Text is Python or JavaScript where that is the sandbox's language and the text parses as it; everything else is shell. Python and
   * JavaScript keep their variables from one call to the next, and forks have them too. A list of words is a command without a shell.
   */
  async exec(code: string | string[], o: ExecOptions = {}): Promise<ExecResult> {
    let result: ExecResult | undefined;
    if (o.onStdout || o.onStderr) {
      const out = { stdout: "", stderr: "" };
      for await (const e of this.stream(code, o)) {
        if (e.type === "stdout" || e.type === "stderr") {
          out[e.type] += e.text;
          (e.type === "stdout" ? o.onStdout : o.onStderr)?.(e.text);
        } else if (e.type === "exit") result = { ...e.result, ...out };
      }
    } else {
      result = await this.transport.json<ExecResult>("POST", this.at("exec"), {
        body: request(code, o), timeout: (o.timeout ?? serverTimeout) + 15_000, signal: o.signal,
      });
    }
    if (o.check && result!.exitCode !== 0) throw new CommandFailedError(result!);
    return result!;
  }

  /** Runs something and yields its output as it comes, then how it ended. To leave it before the end ends what runs. */
  async *stream(code: string | string[], o: Omit<ExecOptions, "onStdout" | "onStderr" | "check"> = {}): AsyncGenerator<ExecEvent, void, undefined> {
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
    const lines = this.transport.lines<{ type: string; pid?: number; data?: string; result?: ExecResult; error?: Problem }>(
      "POST", this.at("exec"), { body: request(code, o), timeout: (o.timeout ?? serverTimeout) + 15_000, signal: o.signal });
    for await (const v of lines) {
      if (v.type === "start") yield { type: "start", pid: v.pid ?? 0 };
      else if (v.type === "stdout" || v.type === "stderr") {
        const data = bytes(v.data ?? "");
        yield { type: v.type, data, text: decoders[v.type].decode(data, { stream: true }) };
      } else if (v.type === "error" && v.error) throw fromProblem(v.error);
      else if (v.type === "exit" && v.result) {
        yield { type: "exit", result: v.result };
        return;
      }
    }
    throw new ConnectionError("exec: the stream was cut off", { kind: "unavailable" });
  }

  /**
   * Starts something and doesn't wait for it: it goes on when the client has gone. Returns its process id.
   * @param o.log a file inside the sandbox that output goes to
   */
  async start(code: string | string[], o: Omit<ExecOptions, "onStdout" | "onStderr" | "check"> & { log?: string } = {}): Promise<number> {
    const r = await this.transport.json<ExecResult>("POST", this.at("exec"), { body: { ...request(code, o), ...body({ background: true, log: o.log }) } });
    return r.pid ?? 0;
  }

  /** Starts a command with a terminal, a login shell by default, and returns it to be talked with. */
  pty(o: { args?: string[]; cols?: number; rows?: number; env?: Record<string, string>; cwd?: string } = {}): Promise<Terminal> {
    return Terminal.start(this.transport, this.at("exec"), {
      ...hello(o.args ?? ["bash", "-l"], o), tty: { cols: o.cols ?? 80, rows: o.rows ?? 24 },
    });
  }

  /** Starts something with pipes, and returns it to be talked with: for what takes input as it runs. */
  open(code: string | string[], o: Omit<ExecOptions, "stdin" | "onStdout" | "onStderr" | "check"> = {}): Promise<Terminal> {
    return Terminal.start(this.transport, this.at("exec"), { ...hello(code, o), ...body({ language: o.language, session: o.session, root: o.root }) });
  }

  /** Takes up the output of a command that was started: the newest MiB of what it wrote, and what follows. */
  follow(pid: number): Promise<Terminal> {
    return Terminal.start(this.transport, this.at("exec"), { attach: pid });
  }

  /** Returns the commands that were started and haven't ended. */
  processes(): Promise<ProcessInfo[]> {
    return this.transport.list<ProcessInfo>(this.at("processes"), "processes");
  }

  /** Sends a signal to a command that was started. */
  async kill(pid: number, signal = "TERM"): Promise<void> {
    await this.transport.json("DELETE", this.at("processes", String(pid)), { query: { signal }, again: false });
  }

  /** Makes n copies of the running sandbox: memory, processes and files, all of one instant. All are made, or none. */
  async fork(n = 1, o: ForkOptions = {}): Promise<Sandbox[]> {
    const f = await this.transport.json<Fork>("POST", this.at("fork"), { once: true, timeout: long, body: { count: n, ...body({ ...o }) } });
    return (f.sandboxes ?? []).map((s) => new Sandbox(this.client, s));
  }

  /** Returns this sandbox with all that were forked from it, and what they used; with root, the whole tree that it stands in. */
  tree(o: { root?: boolean } = {}): Promise<Tree> {
    return this.transport.json<Tree>("GET", this.at("tree"), { query: { root: o.root } });
  }

  /** Returns what differs between the files of this sandbox (before) and another (after); without one, what changed in this one since it was forked or claimed. */
  async diff(to?: Sandbox | string, o: { path?: string } = {}): Promise<Diff> {
    const changes: FileChange[] = [];
    let result: FileDiff | undefined;
    for await (const v of this.transport.lines<FileChange | { result: FileDiff }>("GET", this.at("diff"), { query: { to: idOf(to), path: o.path } })) {
      if ("result" in v) result = v.result;
      else if ("kind" in v) changes.push(v);
    }
    if (!result) throw new ConnectionError("diff: the stream was cut off", { kind: "unavailable" });
    return { ...result, changes };
  }

  /**
   * Merges the files of this sandbox into another, the parent by default. The base is what both were forked from.
   * @param o.conflicts of files that both changed: "fail", "ours" (the target's) or "theirs" (this one's)
   * @throws MergeConflictError with "fail"; nothing was changed
   */
  async merge(into?: Sandbox | string, o: { conflicts?: "fail" | "ours" | "theirs"; dryRun?: boolean } = {}): Promise<FileMerge> {
    const m = await this.transport.json<FileMerge>("POST", this.at("merge"), { timeout: long, body: body({ into: idOf(into), ...o }) });
    if (m.conflicts?.length && (o.conflicts ?? "fail") === "fail" && !o.dryRun) {
      throw new MergeConflictError(`merge: ${m.conflicts.length + (m.moreConflicts ?? 0)} conflicts, such as ${m.conflicts[0]}`, m.conflicts, m.moreConflicts,
        { kind: "conflict", status: 409, hint: "merge with conflicts 'ours' or 'theirs'" });
    }
    return m;
  }

  /** Puts this fork in its parent's place. */
  promote(): Promise<SandboxInfo> {
    return this.set("POST", ["promote"], { timeout: long });
  }

  /**
   * Keeps the files of all durable volumes as they are at one instant; `create({ snapshot })` makes sandboxes of it. With memory its processes
   * are in it, too, and go on from there; with kill those that can't be copied are missing, instead of failing it.
   */
  snapshot(name?: string, o: { memory?: boolean; kill?: boolean } = {}): Promise<Snapshot> {
    return this.transport.json<Snapshot>("POST", this.at("snapshots"), { once: true, timeout: long, body: body({ name, ...o }) });
  }

  /**
   * Saves memory, processes and files to disk and frees processor and memory. The next use wakes it up. While somebody uses it, it is a
   * conflict, unless by force: then what runs goes to sleep with it, as far as it can.
   */
  hibernate(o: { force?: boolean } = {}): Promise<SandboxInfo> {
    return this.set("POST", ["hibernate"], { body: body({ ...o }), again: true, timeout: long });
  }

  /** Wakes it up now, rather than at the next use. */
  resume(): Promise<SandboxInfo> {
    return this.set("POST", ["resume"], { again: true, timeout: long });
  }

  /** Moves the end of its lease to so many seconds from now, if that is later; by default the lease's own extension. */
  extend(seconds?: number, o: { exact?: boolean } = {}): Promise<SandboxInfo> {
    return this.set("POST", ["extend"], { body: body({ seconds, ...o }), again: true });
  }

  /** Gives it back to its pool: it ends, and the pool replaces it by a fresh one. */
  async release(): Promise<void> {
    await this.transport.json("POST", this.at("release"));
  }

  /** Ends it, and deletes what was made for it. One that has ended already is fine. */
  async terminate(): Promise<void> {
    try {
      await this.transport.json("DELETE", this.at());
    } catch (e) {
      if (!(e instanceof ConflictError)) throw e;
      if (!["ended", "failed", "ending"].includes((await this.refresh()).state)) throw e;
    }
  }

  /**
   * Changes what is given. Labels are added to those that it has; one that is null goes. The network is at most what its template, and the fork
   * that made it, allow; it is in force at once, also for open connections.
   */
  change(o: {
    name?: string; visibility?: "private" | "team" | "all"; lease?: Lease; network?: NetworkPolicy; labels?: Record<string, string | null>;
  }): Promise<SandboxInfo> {
    return this.set("PATCH", [], { body: body({ ...o }), again: true });
  }

  /** Waits until it is in a state. */
  async wait(state = "running", timeout = 60_000): Promise<SandboxInfo> {
    const until = Date.now() + timeout;
    for (let pause = 50; ; pause = Math.min(pause * 1.5, 1000)) {
      const info = await this.refresh();
      if (info.state === state) return info;
      if (info.state === "ended" || info.state === "failed") {
        throw new ConflictError(`wait: ${this.id}: it is ${info.state}${info.reason ? `: ${info.reason}` : ""}`, { kind: "conflict" });
      }
      if (Date.now() >= until) throw new TimeoutError(`wait: ${this.id}: it is ${info.state} after ${timeout} ms, not ${state}`, { kind: "timeout" });
      await sleep(pause);
    }
  }

  /** Returns what it used so far. */
  usage(): Promise<Usage> {
    return this.transport.json<Usage>("GET", this.at("usage"));
  }

  /** Returns what it used over time, oldest first: a sample every few seconds while it runs, of what was long ago only some. */
  async metrics(o: { from?: Date; to?: Date } = {}): Promise<Sample[]> {
    const query = { from: o.from?.toISOString(), to: o.to?.toISOString() };
    return (await this.transport.json<{ samples: Sample[] }>("GET", this.at("metrics"), { query })).samples;
  }

  /** Makes S3 keys for this sandbox's buckets and nothing else; they end with it. */
  credentials(): Promise<Credentials> {
    return this.transport.json<Credentials>("POST", this.at("credentials"), { once: true });
  }

  /** Returns the address of a server that listens on a port inside the sandbox. Requests carry the API key, as `headers` has it. */
  async url(port: number, at = "/"): Promise<string> {
    if (!Number.isInteger(port) || port < 1 || port > 65535) throw new RangeError("port: want 1 to 65535");
    return (await this.transport.config()).endpoint + this.at("ports", String(port)) + "/" + at.replace(/^\/+/, "");
  }

  /** The headers that a request to `url` proves itself with. */
  async headers(): Promise<Record<string, string>> {
    const key = (await this.transport.config()).apiKey;
    return key ? { Authorization: `Bearer ${key}` } : {};
  }

  /** `await using sandbox = …` ends it on the way out. */
  async [asyncDispose](): Promise<void> {
    try {
      await this.terminate();
    } catch (e) {
      if (!(e instanceof NotFoundError)) throw e; // ended and forgotten
    }
  }
}

function request(code: string | string[], o: ExecOptions): object {
  return {
    ...(typeof code === "string" ? { code } : { args: code }),
    ...body({
      language: o.language, session: o.session, env: o.env, dir: o.cwd, stdin: o.stdin, root: o.root,
      timeout: o.timeout === undefined ? undefined : o.timeout / 1000,
    }),
  };
}

function hello(code: string | string[], o: { env?: Record<string, string>; cwd?: string; timeout?: number }): Hello {
  return {
    ...(typeof code === "string" ? { code } : { args: code }),
    ...body({ env: o.env && Object.entries(o.env).map(([k, v]) => `${k}=${v}`), dir: o.cwd, timeout: o.timeout && Math.ceil(o.timeout / 1000) }),
  };
}

function idOf(s?: Sandbox | string): string | undefined {
  return typeof s === "object" ? s.id : s;
}

function bytes(base64: string): Uint8Array {
  const text = atob(base64);
  const out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}
