// What the groups of steps are written with. A step is a method of the SDK and what of it is looked at: "Sandbox.create: variables". Steps of a group run one
// after the other, groups beside each other; a step that fails or hangs is that step's failure only.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { Sandbox } from '@e2b/code-interpreter';
import * as sdk from 'e2b';

export { assert, Sandbox, sdk };
export const version = JSON.parse(fs.readFileSync(new URL('./node_modules/e2b/package.json', import.meta.url))).version;
export const groups = [];
const LIMIT = 120_000; // of a step: many times what it takes on a machine that does nothing else

// since tells whether the SDK is of this version at least.
export function since(wanted) {
  const [a, b] = [version, wanted].map((v) => v.split('.').map(Number));
  for (let i = 0; i < 3; i++) if (a[i] !== b[i]) return a[i] > b[i];
  return true;
}

// group defines steps: define gets a function that adds one.
export function group(name, define) {
  const steps = [];
  define((step, run, when = true) => { if (when) steps.push({ step, run }); });
  groups.push({ name, steps });
}

// sandboxes that a group made are ended with it.
const made = new Map();
export async function create(template, opts) {
  const s = await (typeof template === 'string' ? Sandbox.create(template, opts) : Sandbox.create(template));
  made.set(s.sandboxId, s);
  return s;
}
// shared is the sandbox of a group, made when the first step wants it.
export function shared(opts) {
  let made;
  return () => (made ??= create(opts).catch((e) => { made = undefined; throw e; }));
}

export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// until waits for a value that isn't false, undefined or an error.
export async function until(what, look, limit = 60_000) {
  const end = Date.now() + limit;
  for (let error; ;) {
    try {
      const found = await look();
      if (found !== false && found !== undefined) return found;
      error = found;
    } catch (e) { error = e; }
    if (Date.now() > end) throw new Error(`waited in vain for ${what}: ${error}`);
    await pause(50);
  }
}

// fails is for calls that must be refused with an error of a class, and words.
export async function fails(promise, kind, words) {
  let got;
  try { got = await promise; } catch (e) {
    assert.ok(e instanceof kind, `want ${kind.name}, got ${e?.name}: ${e?.message}`);
    if (words) assert.match(e.message, words);
    return e;
  }
  assert.fail(`want ${kind.name}, got ${JSON.stringify(got)}`);
}

// fetchHost asks a host name of a sandbox as a browser would, where names lead to the server; the server's address is what the environment gives.
export function fetchHost(host, path = '/', { method = 'GET', body, headers = {} } = {}) {
  const at = new URL(process.env.E2B_TEST_LISTENER ?? process.env.E2B_SANDBOX_URL);
  const client = at.protocol === 'https:' ? https : http;
  return new Promise((done, wrong) => {
    const r = client.request({ host: at.hostname, port: at.port, path, method, servername: host.split(':')[0], headers: { ...headers, host } }, (answer) => {
      const parts = [];
      answer.on('data', (b) => parts.push(b)).on('error', wrong).on('end', () => done({ status: answer.statusCode, headers: answer.headers, text: Buffer.concat(parts).toString() }));
    });
    r.on('error', wrong);
    r.end(body);
  });
}

async function limited(run) {
  let timer;
  const late = new Promise((_, wrong) => { timer = setTimeout(() => wrong(new Error(`not done within ${LIMIT / 1000} s`)), LIMIT); });
  try { await Promise.race([run(), late]); } finally { clearTimeout(timer); }
}

// main runs the groups that are asked for and writes a line for each step into the file that E2B_TEST_RESULTS names.
export async function main(surface) {
  const out = fs.openSync(process.env.E2B_TEST_RESULTS, 'a');
  const say = (line) => fs.writeSync(out, JSON.stringify(line) + '\n');
  const wanted = process.env.E2B_TEST_GROUPS ? process.env.E2B_TEST_GROUPS.split(',') : undefined;
  const skipped = new Set(process.env.E2B_TEST_SKIP?.split(','));
  const only = process.env.E2B_TEST_STEP;
  say({ version, surface });
  // A promise of the SDK that nobody waits for isn't a step's failure; what it does is seen by the steps.
  process.on('unhandledRejection', (e) => console.error('unhandled:', e?.stack ?? e));
  const queue = groups.filter((g) => (!wanted || wanted.includes(g.name)) && !skipped.has(g.name));
  const one = async (g) => {
    for (const { step, run } of g.steps) {
      if (only && !step.startsWith(only)) continue;
      const start = Date.now();
      let error;
      try { await limited(run); } catch (e) { error = e; }
      say({ step, group: g.name, ok: !error, error: error && `${error.name}: ${error.message}\n${(error.stack ?? '').split('\n').filter((l) => /^ +at .*\.mjs/.test(l) && !l.includes('node_modules')).slice(0, 4).join('\n')}`, ms: Date.now() - start });
    }
  };
  await Promise.all([1, 2, 3].map(async () => { for (let g; (g = queue.shift());) await one(g); }));
  await Promise.all([...made.values()].map((s) => s.kill().catch(() => {})));
  say({ done: true });
  process.exit(0); // whatever streams a step left
}
