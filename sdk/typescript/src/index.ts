/**
 * Sandboxes for AI agents: files, processes and memory that fork.
 *
 * @packageDocumentation
 */

export * from "./client.js";
export * from "./errors.js";
export { Files, type Content } from "./files.js";
export { Sandbox, type Diff, type ExecEvent, type ExecOptions, type ForkOptions } from "./sandbox.js";
export { Terminal, type Output } from "./terminal.js";
export type { ClientOptions, Retry, WebSocketLike } from "./transport.js";
export type * from "./types.js";
