import { ConnectionError, NotFoundError } from "./errors.js";
import { body, path, type Transport } from "./transport.js";
import type { FileEvent, FileInfo } from "./types.js";

/** What a file may be written from. A stream isn't sent again when the connection breaks. */
export type Content = string | Uint8Array | ArrayBuffer | Blob | ReadableStream<Uint8Array>;

/**
 * Files of a sandbox, as `sandbox.files`. A relative path begins at the sandbox's start directory, /workspace.
 *
 * Every method may throw NotFoundError (no such file, or no such sandbox), DeniedError, InvalidError and ConflictError (the sandbox has
 * ended).
 */
export class Files {
  constructor(private readonly transport: Transport, private readonly sandbox: string) {}

  private at(...more: string[]): string {
    return path("sandboxes", this.sandbox, "files", ...more);
  }

  private async get(file: string, o: { offset?: number; length?: number; signal?: AbortSignal }): Promise<Response> {
    const headers: Record<string, string> = { "Accept-Encoding": "identity" };
    const offset = o.offset ?? 0;
    if (offset || o.length !== undefined) headers["Range"] = `bytes=${offset}-${o.length !== undefined ? offset + o.length - 1 : ""}`;
    return this.transport.send("GET", this.at(), { query: { path: file }, headers, accept: "*/*", signal: o.signal });
  }

  /** Returns the content of a file as text. */
  async read(file: string, o: { signal?: AbortSignal } = {}): Promise<string> {
    return new TextDecoder().decode(await this.readBytes(file, o));
  }

  /**
   * Returns the content of a file.
   * @param o.offset bytes to leave out at the beginning
   * @param o.length bytes to return at most; more than 0
   */
  async readBytes(file: string, o: { offset?: number; length?: number; signal?: AbortSignal } = {}): Promise<Uint8Array> {
    let answer: Response;
    try {
      answer = await this.get(file, o);
    } catch (e) {
      if ((e as { status?: number }).status === 416) return new Uint8Array(); // it ends before the offset
      throw e;
    }
    try {
      return new Uint8Array(await answer.arrayBuffer());
    } catch (e) {
      throw new ConnectionError(`read ${file}: the connection broke`, { kind: "unavailable" }, { cause: e });
    }
  }

  /** Returns the content of a file in pieces, as they come: for what doesn't fit in memory. */
  async stream(file: string, o: { offset?: number; signal?: AbortSignal } = {}): Promise<ReadableStream<Uint8Array>> {
    return (await this.get(file, o)).body!;
  }

  /**
   * Writes a file, with the directories above it. What was there is replaced at once, when all has arrived; after an error nothing
   * has changed.
   * @param o.mode permission bits, such as 0o755
   */
  async write(file: string, data: Content, o: { mode?: number; signal?: AbortSignal } = {}): Promise<FileInfo> {
    const content = typeof ReadableStream !== "undefined" && data instanceof ReadableStream ? data : () => data as BodyInit;
    return this.transport.json<FileInfo>("PUT", this.at(), {
      query: { path: file, mode: o.mode === undefined ? undefined : "0" + o.mode.toString(8) }, content: content as BodyInit | (() => BodyInit),
      headers: { "Content-Type": "application/octet-stream" }, timeout: 3_600_000, signal: o.signal,
    });
  }

  /**
   * Returns the entries of a directory, by path.
   * @param o.depth how many levels down it goes; 1 is the directory's own entries
   */
  async list(directory = ".", o: { depth?: number; limit?: number } = {}): Promise<FileInfo[]> {
    return this.transport.list<FileInfo>(this.at("list"), "files", { path: directory, depth: o.depth }, o.limit);
  }

  /** Describes a file. It doesn't follow a symbolic link. */
  async stat(file: string): Promise<FileInfo> {
    return this.transport.json<FileInfo>("GET", this.at("stat"), { query: { path: file } });
  }

  /** Whether there is such a file or directory. */
  async exists(file: string): Promise<boolean> {
    try {
      await this.stat(file);
      return true;
    } catch (e) {
      if (!(e instanceof NotFoundError)) throw e;
      await this.transport.json("GET", path("sandboxes", this.sandbox)); // throws if it is the sandbox that isn't there
      return false;
    }
  }

  /** Removes a file or an empty directory; with recursive, whatever is beneath it too. */
  async remove(file: string, o: { recursive?: boolean } = {}): Promise<void> {
    await this.transport.json("DELETE", this.at(), { query: { path: file, recursive: o.recursive } });
  }

  /** Makes a directory, with those above it. One that is there already is fine. */
  async mkdir(directory: string, o: { mode?: number } = {}): Promise<void> {
    await this.transport.json("POST", this.at("mkdir"), { body: body({ path: directory, mode: o.mode }), again: true });
  }

  /** Renames or moves a file or directory. A file that is there already is replaced. */
  async move(file: string, to: string): Promise<void> {
    await this.transport.json("POST", this.at("move"), { body: { path: file, to } });
  }

  /** Yields changes beneath a directory, or of a file, until it is left. The first event has the kind "ready": from there on nothing is missed. */
  watch(directory = ".", o: { recursive?: boolean; signal?: AbortSignal } = {}): AsyncGenerator<FileEvent, void, undefined> {
    return this.transport.lines<FileEvent>("GET", this.at("watch"), { query: { path: directory, recursive: o.recursive }, signal: o.signal });
  }
}
