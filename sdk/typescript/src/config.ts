/** Finding the server: arguments, then the environment, then the context that `agentrun up` leaves, then the local default. */

import { InvalidError } from "./errors.js";

export const defaultEndpoint = "http://127.0.0.1:7070";

export interface Config {
  /** URL of the API, without a slash at its end. */
  endpoint: string;
  /** "ID.SECRET"; "" for none. */
  apiKey: string;
}

interface Context {
  endpoint?: string;
  apiKey?: string;
}

/** The part of Node that is used where there is one. Browsers and other runtimes have none of it. */
function node<T>(module: string): T | undefined {
  const process = (globalThis as { process?: { getBuiltinModule?: (name: string) => unknown; versions?: { node?: string } } }).process;
  if (!process?.versions?.node) return undefined;
  try {
    return process.getBuiltinModule?.(module) as T | undefined;
  } catch {
    return undefined;
  }
}

function environment(): Record<string, string | undefined> {
  return (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env ?? {};
}

/** The file of the context, where the program leaves it; "" where there is none. */
export function contextFile(env: Record<string, string | undefined>, platform: string): string {
  const join = (...parts: string[]) => parts.join(platform === "win32" ? "\\" : "/");
  const home = env["HOME"] ?? "";
  let dir = "";
  if (platform === "win32") dir = env["AppData"] ?? env["APPDATA"] ?? "";
  else if (platform === "darwin") dir = home && join(home, "Library", "Application Support");
  else if (env["XDG_CONFIG_HOME"]) dir = env["XDG_CONFIG_HOME"].startsWith("/") ? env["XDG_CONFIG_HOME"] : "";
  else dir = home && join(home, ".config");
  return dir && join(dir, "agentrun", "context.json");
}

async function readContext(env: Record<string, string | undefined>): Promise<Context> {
  const platform = (globalThis as { process?: { platform?: string } }).process?.platform;
  if (!platform) return {};
  const file = contextFile(env, platform);
  if (!file) return {};
  const fs = node<typeof import("node:fs")>("node:fs") ?? (await import("node:fs").catch(() => undefined));
  if (!fs) return {};
  let text: string;
  try {
    text = fs.readFileSync(file, "utf8");
  } catch (e) {
    if ((e as { code?: string }).code === "ENOENT") return {};
    throw new InvalidError(`read context: ${file}: ${(e as Error).message}`, { hint: "remove the file, or set AGENTRUN_ENDPOINT and AGENTRUN_API_KEY" });
  }
  try {
    const c = JSON.parse(text) as unknown;
    if (c && typeof c === "object") return c as Context;
  } catch {
    // worded below
  }
  throw new InvalidError(`read context: ${file}: not a context`, { hint: "remove the file; 'agentrun up' writes it anew" });
}

/** Settles the server. The key of the context is for its own server only. */
export async function find(endpoint?: string, apiKey?: string, env = environment()): Promise<Config> {
  let url = endpoint || env["AGENTRUN_ENDPOINT"] || "";
  let key = apiKey ?? env["AGENTRUN_API_KEY"] ?? "";
  if (!url || !key) {
    const context = await readContext(env).catch((e: unknown) => {
      if (!url) throw e;
      return {} as Context; // it isn't needed to know where the server is
    });
    if (context.endpoint && (!url || url.replace(/\/+$/, "") === context.endpoint)) {
      url ||= context.endpoint;
      key ||= context.apiKey ?? "";
    }
  }
  return { endpoint: checkEndpoint(url || defaultEndpoint), apiKey: key.trim() };
}

function checkEndpoint(endpoint: string): string {
  let u: URL;
  try {
    u = new URL(endpoint);
  } catch {
    throw new InvalidError(`endpoint: ${endpoint}: want an http or https URL, such as ${defaultEndpoint}`);
  }
  if (!/^https?:$/.test(u.protocol) || u.search || u.hash || u.username) {
    throw new InvalidError(`endpoint: ${endpoint}: want an http or https URL, such as ${defaultEndpoint}`);
  }
  return endpoint.replace(/\/+$/, "");
}
