import { ConnectionError, TimeoutError, fromProblem, type AgentRunError, type Problem } from "./errors.js";
import type { Transport, WebSocketLike } from "./transport.js";

const protocol = "agentrun.exec.v1";
const maxFrame = 64 << 10; // bytes of one message
const stderrByte = 2;

/** What a terminal or process is started with: the first message of its socket. */
export interface Hello {
  code?: string;
  args?: string[];
  language?: string;
  session?: string;
  env?: string[];
  dir?: string;
  timeout?: number;
  root?: boolean;
  tty?: { cols: number; rows: number };
  attach?: number;
}

interface Control {
  window?: number;
  exit?: number;
  error?: Problem;
  pid?: number;
}

/** A piece of output. */
export interface Output {
  stream: "stdout" | "stderr";
  data: Uint8Array;
}

/** A command that runs and is talked with: with a terminal (`sandbox.pty`), or with pipes (`sandbox.open`). Iterating yields its output. */
export class Terminal implements AsyncIterable<Output> {
  private readonly held: Output[] = [];
  private readonly waiting = new Set<() => void>();
  private window = 0;
  private ended = false;
  private failure?: AgentRunError;
  private sending: Promise<void> = Promise.resolve();
  /** 0 to 255; undefined while it runs. */
  exitCode?: number;
  /** The process inside the sandbox; 0 until it has begun. */
  pid = 0;

  private constructor(private readonly socket: WebSocketLike) {}

  /** @internal */
  static async start(transport: Transport, at: string, hello: Hello): Promise<Terminal> {
    const config = await transport.config();
    const url = config.endpoint.replace(/^http/, "ws") + at;
    const headers: Record<string, string> = config.apiKey ? { Authorization: `Bearer ${config.apiKey}` } : {};
    const socket = transport.options.webSocket ? transport.options.webSocket(url, protocol, headers) : await open(url, headers);
    const t = new Terminal(socket);
    socket.binaryType = "arraybuffer";
    await new Promise<void>((resolve, reject) => {
      socket.addEventListener("open", () => resolve());
      socket.addEventListener("error", (e) => {
        const error = new ConnectionError(`connect: ${url}: ${e.message || "the socket couldn't be opened"}`, { kind: "unavailable" });
        reject(error);
        t.end(error);
      });
      socket.addEventListener("close", () => t.end(new ConnectionError("exec: the connection has ended before the command", { kind: "unavailable" })));
      socket.addEventListener("message", (e) => t.receive(e.data));
    });
    socket.send(JSON.stringify(hello));
    return t;
  }

  private receive(data: unknown): void {
    if (typeof data === "string") {
      const c = JSON.parse(data) as Control;
      if (c.window) this.window += c.window;
      if (c.pid) this.pid = c.pid;
      if (c.error) this.end(fromProblem(c.error));
      else if (c.exit !== undefined && c.exit !== null) {
        this.exitCode = c.exit;
        this.end();
      }
    } else {
      const b = new Uint8Array(data as ArrayBuffer);
      if (b.length > 1) this.held.push({ stream: b[0] === stderrByte ? "stderr" : "stdout", data: b.subarray(1) });
    }
    this.wake();
  }

  private end(error?: AgentRunError): void {
    if (this.ended) return;
    this.ended = true;
    this.failure = error;
    this.wake();
  }

  private wake(): void {
    for (const f of this.waiting) f();
    this.waiting.clear();
  }

  /** Waits for something to change. */
  private change(until?: number): Promise<boolean> {
    return new Promise((resolve) => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const f = () => {
        if (timer !== undefined) clearTimeout(timer);
        resolve(true);
      };
      this.waiting.add(f);
      if (until !== undefined) {
        timer = setTimeout(() => {
          this.waiting.delete(f);
          resolve(false);
        }, Math.max(0, until - Date.now()));
      }
    });
  }

  /** Returns the next output; undefined at the end. It throws TimeoutError after so many milliseconds without any. */
  async next(timeout?: number): Promise<Output | undefined> {
    const until = timeout === undefined ? undefined : Date.now() + timeout;
    while (this.held.length === 0) {
      if (this.ended) return undefined;
      if (!(await this.change(until))) throw new TimeoutError(`read: nothing came within ${timeout} ms`, { kind: "timeout" });
    }
    return this.held.shift();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Output, void, undefined> {
    for (let o = await this.next(); o; o = await this.next()) yield o;
  }

  /** Returns output up to and with a text; what came after it in the same piece is part of it. It throws TimeoutError after so many ms. */
  async readUntil(text: string, timeout = 10_000): Promise<string> {
    const until = Date.now() + timeout;
    const decoder = new TextDecoder();
    let got = "";
    while (!got.includes(text)) {
      const o = await this.next(Math.max(0, until - Date.now()));
      if (!o) throw new ConnectionError(`read: the command has ended without ${JSON.stringify(text)}: ${got.slice(-500)}`, { kind: "unavailable" });
      got += decoder.decode(o.data, { stream: true });
    }
    return got;
  }

  /** Sends input. It waits while the command doesn't read: the server holds 256 KiB for it. */
  write(data: string | Uint8Array): Promise<void> {
    const b = typeof data === "string" ? new TextEncoder().encode(data) : data;
    const sent = this.sending.then(() => this.send(b));
    this.sending = sent.catch(() => undefined);
    return sent;
  }

  private async send(b: Uint8Array): Promise<void> {
    for (let at = 0; at < b.length; ) {
      while (this.window <= 0 && !this.ended) await this.change();
      if (this.ended) throw new ConnectionError("write: the command has ended", { kind: "unavailable" });
      const n = Math.min(b.length - at, this.window, maxFrame);
      const frame = new Uint8Array(n + 1); // its first byte says that it is standard input
      frame.set(b.subarray(at, at + n), 1);
      this.window -= n;
      this.socket.send(frame);
      at += n;
    }
  }

  /** Says that no more input follows. */
  async closeStdin(): Promise<void> {
    await this.sending;
    this.tell({ eof: true });
  }

  /** Changes the terminal's size, in characters. */
  resize(cols: number, rows: number): void {
    this.tell({ resize: { cols, rows } });
  }

  /** Sends a signal: HUP, INT, QUIT, KILL, TERM, USR1 or USR2. */
  kill(signal = "TERM"): void {
    this.tell({ signal });
  }

  private tell(control: object): void {
    if (!this.ended) this.socket.send(JSON.stringify(control));
  }

  /** Waits until the command has ended, and returns its exit code. Output that nobody has read by then is dropped. */
  async wait(timeout?: number): Promise<number> {
    const until = timeout === undefined ? undefined : Date.now() + timeout;
    while (!this.ended) {
      this.held.length = 0;
      if (!(await this.change(until))) throw new TimeoutError(`wait: still runs after ${timeout} ms`, { kind: "timeout" });
    }
    if (this.failure) throw this.failure;
    return this.exitCode!;
  }

  /** Ends the command, if it still runs, and the connection. */
  close(): void {
    this.end(new ConnectionError("exec: it was closed", { kind: "unavailable" }));
    this.socket.close();
  }
}

/** Opens a socket that proves itself with headers: browsers' can't, the package ws can. */
async function open(url: string, headers: Record<string, string>): Promise<WebSocketLike> {
  const { default: WebSocket } = await import("ws");
  return new WebSocket(url, protocol, { headers, maxPayload: 16 << 20, perMessageDeflate: false }) as unknown as WebSocketLike;
}
