/** What can go wrong. Every error that this package raises on purpose is an AgentRunError; its class says what a caller can do about it. */

/** An error as the server tells it: RFC 9457, with fields of AgentRun's own. */
export interface Problem {
  type?: string;
  title?: string;
  status?: number;
  detail?: string;
  kind?: string;
  op?: string;
  thing?: string;
  cause?: string;
  hint?: string;
  rule?: string;
  request?: string;
  [more: string]: unknown;
}

/** The base of all errors. Its message is "operation: thing: cause", with what to do about it where somebody knows. */
export class AgentRunError extends Error {
  /** What sort of error it is, as it stands on the wire, such as "not found". */
  readonly kind: string;
  /** The HTTP status; 0 if the server didn't answer. */
  readonly status: number;
  /** What a person can do next; "" if there is nothing to say. */
  readonly hint: string;
  /** Names the request in the server's log; "" if there was none. */
  readonly requestId: string;
  /** The whole answer of the server; {} if there was none. */
  readonly problem: Problem;

  constructor(message: string, problem: Problem = {}, options?: { cause?: unknown }) {
    super(problem.hint ? `${message} (${problem.hint})` : message, options);
    this.name = new.target.name;
    this.kind = problem.kind ?? "other";
    this.status = problem.status ?? 0;
    this.hint = problem.hint ?? "";
    this.requestId = problem.request ?? "";
    this.problem = problem;
  }
}

/** The request can never succeed as it stands. */
export class InvalidError extends AgentRunError {}
/** The thing named doesn't exist, or isn't for the caller to see. */
export class NotFoundError extends AgentRunError {}
/** The request contradicts the present state, as an exec in a sandbox that has ended does. */
export class ConflictError extends AgentRunError {}
/** The thing to be made exists already. */
export class ExistsError extends ConflictError {}
/** The thing to be removed still holds something. */
export class NotEmptyError extends ConflictError {}
/** Both sides of a merge changed the same files; nothing was changed. */
export class MergeConflictError extends ConflictError {
  /** Paths of those files. */
  readonly conflicts: string[];
  /** How many there are beyond them. */
  readonly moreConflicts: number;

  constructor(message: string, conflicts: string[], moreConflicts = 0, problem: Problem = {}) {
    super(message, problem);
    this.conflicts = conflicts;
    this.moreConflicts = moreConflicts;
  }
}
/** A condition that the request carries doesn't hold. */
export class PreconditionError extends AgentRunError {}
/** The caller may not do this; rule says which rule decided, as it stands in the audit log. */
export class DeniedError extends AgentRunError {
  get rule(): string {
    return this.problem.rule ?? "";
  }
}
/** The API key is missing, unknown or has expired. */
export class UnauthorizedError extends AgentRunError {}
/** A limit on the size of one thing is exceeded. */
export class TooLargeError extends AgentRunError {}
/** A limit on how many, how much or how often is exceeded: a quota, a budget, a pool's bound. */
export class LimitExceededError extends AgentRunError {}
/** The server's disk is full; nothing was written. */
export class NoSpaceError extends AgentRunError {}
/** Stored data doesn't match its checksum. */
export class CorruptError extends AgentRunError {}
/** Not now: the server is starting, stopping, or has no sandbox to give. */
export class UnavailableError extends AgentRunError {}
/** The server couldn't be reached, or the connection broke before it had answered. */
export class ConnectionError extends UnavailableError {}
/** The server or the sandbox's engine doesn't do this. */
export class UnsupportedError extends AgentRunError {}
/** The request was given up, by its AbortSignal or by the server. */
export class CanceledError extends AgentRunError {}
/** A failure of the server's own. Its log tells more, under requestId. */
export class ServerError extends AgentRunError {}
/** Something took longer than it was given. */
export class TimeoutError extends AgentRunError {}
/** A template couldn't be built. log holds the last lines that its build wrote. */
export class BuildFailedError extends AgentRunError {
  readonly log: string[];

  constructor(message: string, log: string[]) {
    super(message, { kind: "invalid" });
    this.log = log;
  }
}
/** A command that was run with check ended with an exit code other than 0. */
export class CommandFailedError<R extends { exitCode: number; stderr: string } = { exitCode: number; stderr: string }> extends AgentRunError {
  /** How it ended, with its output. */
  readonly result: R;

  constructor(result: R) {
    const last = result.stderr.trim().split("\n").pop() ?? "";
    super(`exec: exit code ${result.exitCode}${last ? `: ${last.slice(0, 500)}` : ""}`, { kind: "command failed" });
    this.result = result;
  }
}

type Class = new (message: string, problem?: Problem) => AgentRunError;

const kinds: Record<string, Class> = {
  invalid: InvalidError, "not found": NotFoundError, exists: ExistsError, "not empty": NotEmptyError, conflict: ConflictError,
  "precondition failed": PreconditionError, denied: DeniedError, unauthorized: UnauthorizedError, "too large": TooLargeError,
  "limit exceeded": LimitExceededError, "no space": NoSpaceError, corrupt: CorruptError, unavailable: UnavailableError,
  unsupported: UnsupportedError, canceled: CanceledError,
};
const statuses: Record<number, Class> = {
  400: InvalidError, 401: UnauthorizedError, 403: DeniedError, 404: NotFoundError, 408: TimeoutError, 409: ConflictError, 412: PreconditionError,
  413: TooLargeError, 422: InvalidError, 429: LimitExceededError, 501: UnsupportedError, 503: UnavailableError, 507: NoSpaceError,
};

/** Makes an error of what the server reports. */
export function fromProblem(p: Problem, status = 0): AgentRunError {
  const code = typeof p.status === "number" ? p.status : status;
  const message = p.detail || [p.op, p.thing, p.cause].filter(Boolean).join(": ") || p.title || `the server answered ${code}`;
  const known = { ...p, status: code };
  const merge = (p["files"] ?? p["merge"]) as { conflicts?: unknown[]; moreConflicts?: number } | undefined;
  if (p.kind === "conflict" && merge && typeof merge === "object") {
    const paths = (merge.conflicts ?? []).map((c) => (typeof c === "string" ? c : String((c as { key?: unknown })?.key ?? "")));
    return new MergeConflictError(message, paths, merge.moreConflicts ?? 0, known);
  }
  const cls = kinds[p.kind ?? ""] ?? statuses[code] ?? ServerError;
  return new cls(message, known);
}

/** Makes an error of an answer's body. One that isn't a problem comes from something that isn't AgentRun. */
export function fromAnswer(status: number, contentType: string, body: string, host: string): AgentRunError {
  if (/^application\/(problem\+)?json/i.test(contentType)) {
    try {
      const p = JSON.parse(body) as Problem;
      if (p && typeof p === "object" && ("kind" in p || "detail" in p || "title" in p)) return fromProblem(p, status);
    } catch {
      // worded below
    }
  }
  if (status === 502 || status === 504) return new ConnectionError(`connect: ${host}: a gateway answered ${status}`, { status, kind: "unavailable" });
  return new UnavailableError(`connect: ${host}: not AgentRun's API: answered ${status}`, {
    status, kind: "unavailable", hint: "the endpoint is the API's (port 7070 by default), not that of S3 (7071)",
  });
}
