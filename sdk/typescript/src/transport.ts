/** Requests, their repetition, and streams of answers. */

import { find, type Config } from "./config.js";
import { AgentRunError, CanceledError, ConnectionError, TimeoutError, UnavailableError, fromAnswer, fromProblem, type Problem } from "./errors.js";

export type Query = Record<string, string | number | boolean | string[] | undefined | null>;

/** How often and how patiently requests are repeated that can be repeated without doing something twice. */
export interface Retry {
  /** How often a request is sent at most; 1 doesn't repeat. */
  attempts: number;
  /** Milliseconds that the first wait takes at most; each further one twice as long. */
  base: number;
  /** Milliseconds that any wait takes at most. */
  cap: number;
}

export interface ClientOptions {
  /** URL of the API. Default: AGENTRUN_ENDPOINT, else the server that `agentrun up` started, else http://127.0.0.1:7070. */
  endpoint?: string;
  /** API key, "ID.SECRET". Default: AGENTRUN_API_KEY, else that of the server that was found. */
  apiKey?: string;
  /** Milliseconds that an answer may take to begin; default 60,000. What runs or copies is given longer. */
  timeout?: number;
  retry?: Partial<Retry>;
  /** Instead of the global fetch: for proxies, certificates, tests. */
  fetch?: typeof fetch;
  /** Instead of Node's own or the package ws: makes the sockets of terminals. */
  webSocket?: (url: string, protocol: string, headers: Record<string, string>) => WebSocketLike;
}

/** What is needed of a WebSocket. */
export interface WebSocketLike {
  binaryType: string;
  send(data: string | Uint8Array): void;
  close(code?: number, reason?: string): void;
  addEventListener(type: "open" | "message" | "close" | "error", f: (event: { data?: unknown; message?: string; reason?: string; code?: number }) => void): void;
}

export interface RequestOptions {
  query?: Query;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent as it is; a function makes it anew for each attempt. */
  content?: BodyInit | (() => BodyInit);
  headers?: Record<string, string>;
  accept?: string;
  timeout?: number;
  signal?: AbortSignal;
  /** Whether it may be repeated after it may have been done; by default all but POST and PATCH may. */
  again?: boolean;
  /** With an Idempotency-Key, with which it may. */
  once?: boolean;
}

export const JSONType = "application/json";
export const NDJSON = "application/x-ndjson";

const refused = new Set([429, 503]); // before anything was done
const unsure = new Set([502, 504]); // a gateway's: whether it was done isn't known

export class Transport {
  readonly options: ClientOptions;
  readonly timeout: number;
  readonly retry: Retry;
  private found?: Promise<Config>;

  constructor(options: ClientOptions = {}) {
    this.options = options;
    this.timeout = options.timeout ?? 60_000;
    this.retry = { attempts: 3, base: 200, cap: 8_000, ...options.retry };
  }

  /** Where the server is. */
  config(): Promise<Config> {
    return (this.found ??= find(this.options.endpoint, this.options.apiKey));
  }

  /** Sends a request and returns its answer, whose body isn't read yet. */
  async send(method: string, path: string, o: RequestOptions = {}): Promise<Response> {
    const config = await this.config();
    const headers: Record<string, string> = { Accept: o.accept ?? JSONType, ...o.headers };
    if (config.apiKey) headers["Authorization"] = `Bearer ${config.apiKey}`;
    if (o.once) headers["Idempotency-Key"] = crypto().randomUUID();
    if (o.body !== undefined) headers["Content-Type"] = JSONType;
    const again = o.again ?? (o.once || (method !== "POST" && method !== "PATCH"));
    const host = new URL(config.endpoint).host;
    const repeatable = o.content === undefined || typeof o.content === "function";
    for (let attempt = 1; ; attempt++) {
      const may = attempt < this.retry.attempts && repeatable;
      const timer = new AbortController();
      const timed = setTimeout(() => timer.abort(), o.timeout ?? this.timeout);
      const signal = o.signal ? anySignal([o.signal, timer.signal]) : timer.signal;
      let wait = 0;
      try {
        const content = typeof o.content === "function" ? o.content() : o.content;
        const init: RequestInit & { duplex?: string } = { method, headers, signal, redirect: "manual", body: o.body !== undefined ? JSON.stringify(o.body) : content ?? null };
        if (typeof ReadableStream !== "undefined" && content instanceof ReadableStream) init.duplex = "half";
        const answer = await (this.options.fetch ?? fetch)(config.endpoint + path + queryString(o.query), init);
        clearTimeout(timed);
        if (answer.ok) return answer;
        if (!(may && (refused.has(answer.status) || (again && unsure.has(answer.status))))) throw await failure(answer, host);
        wait = retryAfter(answer.headers.get("retry-after"));
        await answer.body?.cancel().catch(() => undefined);
      } catch (e) {
        clearTimeout(timed);
        if (e instanceof AgentRunError) throw e;
        if (o.signal?.aborted) throw new CanceledError("the request was aborted", { kind: "canceled" }, { cause: e });
        if (timer.signal.aborted) throw new TimeoutError(`read answer: ${host}: nothing came within ${(o.timeout ?? this.timeout) / 1000} s`, { kind: "timeout" }, { cause: e });
        if (!(may && (again || neverSent(e)))) throw unreachable(host, e);
      }
      await sleep(this.pause(attempt, wait), o.signal);
    }
  }

  /** Milliseconds to wait after an attempt. Clients that failed together don't come back together. */
  pause(attempt: number, asked = 0): number {
    const most = Math.min(this.retry.cap, this.retry.base * 2 ** Math.min(attempt - 1, 30));
    return Math.min(this.retry.cap, Math.max(most * (0.5 + Math.random() / 2), asked * (1 + Math.random() / 4)));
  }

  /** Sends a request and returns its answer; undefined if that is empty. */
  async json<T>(method: string, path: string, o: RequestOptions = {}): Promise<T> {
    const answer = await this.send(method, path, o);
    const text = await this.text(answer);
    if (!text.trim()) return undefined as T;
    try {
      return JSON.parse(text) as T;
    } catch (e) {
      throw new UnavailableError(`read answer: not JSON`, { kind: "unavailable" }, { cause: e });
    }
  }

  async text(answer: Response): Promise<string> {
    try {
      return await answer.text();
    } catch (e) {
      throw new ConnectionError("read answer: the connection broke", { kind: "unavailable" }, { cause: e });
    }
  }

  /** Walks all pages of a list. */
  async list<T>(path: string, field: string, query: Query = {}, limit = Infinity): Promise<T[]> {
    const out: T[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await this.json<Record<string, unknown> & { next?: string }>("GET", path, { query: { ...query, cursor, limit: limit < 1000 ? limit : undefined } });
      out.push(...((page[field] ?? []) as T[]));
      cursor = page.next || undefined;
      if (!cursor || out.length >= limit) return out.slice(0, limit);
    }
  }

  /** Yields the values of a stream of JSON lines. What it reports as an error is thrown. To leave it early ends the request. */
  async *lines<T>(method: string, path: string, o: RequestOptions = {}): AsyncGenerator<T, void, undefined> {
    const stop = new AbortController();
    const signal = o.signal ? anySignal([o.signal, stop.signal]) : stop.signal;
    const answer = await this.send(method, path, { ...o, accept: NDJSON, signal });
    const reader = answer.body!.getReader();
    const decoder = new TextDecoder();
    let rest = "";
    try {
      for (;;) {
        let piece: { done: boolean; value?: Uint8Array };
        try {
          piece = await reader.read();
        } catch (e) {
          if (o.signal?.aborted) throw new CanceledError("the request was aborted", { kind: "canceled" }, { cause: e });
          throw new ConnectionError("read answer: the connection broke", { kind: "unavailable" }, { cause: e });
        }
        rest += decoder.decode(piece.value, { stream: !piece.done });
        const found = rest.split("\n");
        rest = piece.done ? "" : found.pop()!;
        for (const line of found) if (line.trim()) yield unwrap<T>(line);
        if (piece.done) return;
      }
    } finally {
      stop.abort();
      await reader.cancel().catch(() => undefined);
    }
  }
}

function unwrap<T>(line: string): T {
  let v: { error?: Problem; item?: T } | undefined;
  try {
    v = JSON.parse(line) as typeof v;
  } catch (e) {
    throw new UnavailableError("read answer: not JSON", { kind: "unavailable" }, { cause: e });
  }
  if (v && typeof v === "object") {
    if (v.error && typeof v.error === "object") throw fromProblem(v.error);
    if (v.item && typeof v.item === "object") return v.item;
  }
  return v as T;
}

async function failure(answer: Response, host: string): Promise<AgentRunError> {
  const text = await answer.text().catch(() => "");
  return fromAnswer(answer.status, answer.headers.get("content-type") ?? "", text.slice(0, 4 << 20), host);
}

/** Whether a request that failed can't have reached the server. */
function neverSent(e: unknown): boolean {
  const code = ((e as { cause?: { code?: string } }).cause?.code ?? "") as string;
  return ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"].includes(code);
}

function unreachable(host: string, e: unknown): AgentRunError {
  const cause = (e as { cause?: Error }).cause ?? (e as Error);
  const hint = neverSent(e) ? "start a server with 'agentrun up', or say where one is with endpoint or AGENTRUN_ENDPOINT" : "";
  return new ConnectionError(`connect: ${host}: ${cause.message || String(e)}`, hint ? { kind: "unavailable", hint } : { kind: "unavailable" }, { cause: e });
}

function retryAfter(value: string | null): number {
  if (!value) return 0;
  if (/^\d+$/.test(value.trim())) return Number(value) * 1000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? 0 : Math.max(0, at - Date.now());
}

/** Waits, unless the signal ends it. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = () => {
      signal?.removeEventListener("abort", gone);
      resolve();
    };
    const timer = setTimeout(done, ms);
    const gone = () => {
      clearTimeout(timer);
      reject(new CanceledError("the request was aborted", { kind: "canceled" }));
    };
    if (signal?.aborted) gone();
    else signal?.addEventListener("abort", gone, { once: true });
  });
}

/** A signal that is aborted when one of several is: AbortSignal.any, which Node 18 doesn't have. */
function anySignal(signals: AbortSignal[]): AbortSignal {
  const any = (AbortSignal as unknown as { any?: (s: AbortSignal[]) => AbortSignal }).any;
  if (any) return any.call(AbortSignal, signals);
  const c = new AbortController();
  for (const s of signals) {
    if (s.aborted) c.abort(s.reason);
    else s.addEventListener("abort", () => c.abort(s.reason), { once: true });
  }
  return c.signal;
}

/** Web crypto, which Node 18 has but doesn't show. */
function crypto(): { randomUUID(): string } {
  const c = (globalThis as { crypto?: { randomUUID?(): string } }).crypto;
  if (c?.randomUUID) return c as { randomUUID(): string };
  return { randomUUID: () => "xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx".replace(/x/g, () => Math.floor(Math.random() * 16).toString(16)) };
}

export function queryString(query?: Query): string {
  const pairs = new URLSearchParams();
  for (const [k, v] of Object.entries(query ?? {})) {
    if (v === undefined || v === null || v === "" || v === false) continue;
    for (const x of Array.isArray(v) ? v : [v]) pairs.append(k, String(x));
  }
  const text = pairs.toString();
  return text && "?" + text;
}

/** Joins segments below /v1. A segment of dots would be resolved away, whatever it is written as; nothing has such a name. */
export function path(...segments: string[]): string {
  return ["/v1", ...segments.map((s) => {
    if (!s || s === "." || s === "..") throw new TypeError(`${JSON.stringify(s)} isn't a name or id`);
    return encodeURIComponent(s);
  })].join("/");
}

/** Leaves out what isn't set. */
export function body<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, v]) => v !== undefined && v !== null)) as Partial<T>;
}
