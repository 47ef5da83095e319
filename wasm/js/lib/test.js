// node:test.
'use strict';
const { inspect } = require('internal/inspect');
const loop = require('internal/loop');
const root = { name: '<root>', children: [], hooks: hooks(), parent: null, suite: true };
let current = root, scheduled = false, only = false;
function hooks() { return { before: [], after: [], beforeEach: [], afterEach: [] }; }

function options(name, o, f) {
  if (typeof name === 'function') { f = name; name = f.name; o = {}; } else if (name && typeof name === 'object') { f = o; o = name; name = f && f.name; }
  if (typeof o === 'function') { f = o; o = {}; }
  return { name: name || (f && f.name) || '<anonymous>', o: o || {}, f: f || (() => {}) };
}
function add(parent, a, suite, extra) {
  const { name, o, f } = options(...a);
  const t = { name: `${name}`, o: { ...o, ...extra }, f, suite, parent, children: [], hooks: hooks(), status: 'pending', diagnostics: [] };
  t.promise = new Promise((r) => { t.resolve = r; });
  parent.children.push(t);
  if (t.o.only) only = true;
  if (suite) {
    const before = current;
    current = t;
    try {
      const r = t.o.skip ? undefined : f(context(t));
      if (r && typeof r.then === 'function') t.loading = r;
    } catch (e) { t.error = e; } finally { current = before; }
  }
  schedule();
  return t;
}
function schedule() {
  if (scheduled) return;
  scheduled = true;
  setImmediate(() => runRoot());
}
class TestContext {
  constructor(t) { this.t = t; Object.defineProperty(this, 't', { enumerable: false }); this.mock = new MockTracker(); this.assert = require('assert'); }
  get name() { return this.t.name; }
  get fullName() { return path(this.t).join(' > '); }
  get signal() { return this.t.signal ||= new AbortController().signal; }
  diagnostic(s) { this.t.diagnostics.push(s); }
  skip(s) { this.t.skipped = s ?? true; }
  todo(s) { this.t.todo = s ?? true; }
  plan() {}
  runOnly() {}
  before(f) { this.t.hooks.before.push(f); }
  after(f) { this.t.hooks.after.push(f); }
  beforeEach(f) { this.t.hooks.beforeEach.push(f); }
  afterEach(f) { this.t.hooks.afterEach.push(f); }
  async test(...a) {
    const c = add(this.t, a, false);
    await run(c, depth(c));
    this.t.ran = true;
    return undefined;
  }
}
TestContext.prototype.it = TestContext.prototype.test;
const context = (t) => t.ctx ||= new TestContext(t);
const depth = (t) => { let n = -1; for (let p = t.parent; p; p = p.parent) n++; return n; };
const path = (t) => { const l = []; for (; t && t !== root; t = t.parent) l.unshift(t.name); return l; };
const counts = { tests: 0, suites: 0, pass: 0, fail: 0, cancelled: 0, skipped: 0, todo: 0 };
const failures = [];
const state = { tap: true, pattern: null };
internal.atStart.push(() => { if (process.env.NODE_TEST_PATTERN) state.pattern = new RegExp(process.env.NODE_TEST_PATTERN.replace(/^\/(.*)\/[a-z]*$/, '$1')); });
const out = (s) => internal.writeStd(1, s);

function withTimeout(p, ms, t) {
  if (!ms || ms === Infinity) return p;
  let timer;
  return Promise.race([p, new Promise((_, reject) => { timer = setTimeout(() => reject(Object.assign(new Error(`test timed out after ${ms}ms`), { code: 'ERR_TEST_FAILURE', failureType: 'testTimeoutFailure' })), ms); })]).finally(() => clearTimeout(timer));
}
const call = (f, c) => f.length >= 2 ? new Promise((resolve, reject) => f(c, (e) => e ? reject(e) : resolve())) : Promise.resolve().then(() => f(c));
const wanted = (t) => !state.pattern || state.pattern.test(t.name) || t.children.some(wanted);
async function run(t, level) {
  const start = host.hr();
  const skip = t.o.skip || state.pattern && !wanted(t) || only && !selected(t);
  if (state.pattern && !wanted(t) && !within(t) || only && !selected(t)) { t.silent = true; return t.resolve(); }
  const header = () => { if (!t.printed) { t.printed = true; if (level > 0 && t.parent && !t.parent.printed) print(t.parent); if (state.tap) out(`${'    '.repeat(level)}# Subtest: ${t.name}\n`); } };
  const print = (p) => { if (p === root || p.printed) return; if (p.parent) print(p.parent); p.printed = true; if (state.tap) out(`${'    '.repeat(depth(p))}# Subtest: ${p.name}\n`); };
  header();
  let error = t.error;
  if (t.suite) counts.suites++; else counts.tests++;
  if (!skip && !error) {
    try {
      if (t.suite) {
        if (t.loading) await t.loading;
        for (const f of t.hooks.before) await call(f, context(t));
        for (const c of t.children) { await run(c, level + 1); }
        for (const f of t.hooks.after) await call(f, context(t));
      } else {
        const chain = [];
        for (let p = t.parent; p; p = p.parent) chain.unshift(p);
        for (const p of chain) for (const f of p.hooks.beforeEach) await call(f, context(t));
        try {
          await withTimeout(call(t.f, context(t)), t.o.timeout, t);
        } finally {
          for (const f of t.hooks.after) await call(f, context(t));
          for (const p of chain.reverse()) for (const f of p.hooks.afterEach) await call(f, context(t));
          context(t).mock.restoreAll();
        }
      }
    } catch (e) { error = e === undefined ? new Error('undefined') : e; }
  }
  const bad = t.children.filter((c) => c.status === 'fail').length;
  if (!error && bad) error = Object.assign(new Error(`${bad} subtest${bad > 1 ? 's' : ''} failed`), { code: 'ERR_TEST_FAILURE', failureType: 'subtestsFailed' });
  t.skipped ??= skip ? typeof t.o.skip === 'string' ? t.o.skip : true : undefined;
  t.todo ??= t.o.todo;
  t.ms = (host.hr() - start) / 1e6;
  t.status = error && !t.todo ? 'fail' : 'pass';
  t.error = error;
  if (!t.suite) {
    if (t.skipped) counts.skipped++; else if (t.todo) counts.todo++; else counts[t.status]++;
  }
  if (t.status === 'fail' && !(error && error.failureType === 'subtestsFailed')) failures.push(t);
  report(t, level);
  t.resolve();
}
const selected = (t) => t.o.only || t.children.some(selected) || t.parent && within2(t.parent);
const within2 = (t) => t !== root && (t.o.only && !t.children.some((c) => c.o.only) || t.parent && within2(t.parent));
const within = (t) => { for (let p = t.parent; p; p = p.parent) if (p !== root && state.pattern.test(p.name)) return true; return false; };

const yaml = (s) => `'${String(s).replace(/'/g, "''").replace(/\n/g, '\\n')}'`;
const value = (v) => typeof v === 'number' || typeof v === 'boolean' ? `${v}` : typeof v === 'string' ? yaml(v) : v === undefined ? '~' : yaml(inspect(v));
function report(t, level) {
  const list = t.parent.children.filter((c) => !c.silent);
  const n = t.number = (t.parent.count = (t.parent.count || 0) + 1);
  void list;
  if (state.tap) {
    const pad = '    '.repeat(level);
    let s = '';
    if (t.children.length && !t.skipped) s += `${pad}    1..${t.children.filter((c) => !c.silent).length}\n`;
    s += `${pad}${t.status === 'fail' ? 'not ok' : t.error && t.todo ? 'not ok' : 'ok'} ${n} - ${t.name.replace(/#/g, '\\#')}`;
    if (t.skipped) s += ` # SKIP${typeof t.skipped === 'string' ? ` ${t.skipped}` : ''}`;
    else if (t.todo) s += ` # TODO${typeof t.todo === 'string' ? ` ${t.todo}` : ''}`;
    s += `\n${pad}  ---\n${pad}  duration_ms: ${t.ms.toFixed(6)}\n`;
    if (t.suite) s += `${pad}  type: 'suite'\n`;
    if (t.error) s += details(t, pad);
    s += `${pad}  ...\n`;
    for (const d of t.diagnostics) s += `${pad}# ${d}\n`;
    out(s);
    return;
  }
  t.done = true;
  if (level === 0) tree(t, 0);
}
function details(t, pad) {
  const e = t.error;
  let s = `${pad}  failureType: '${e && e.failureType || 'testCodeFailure'}'\n`;
  if (e instanceof Error) {
    s += /\n/.test(e.message) ? `${pad}  error: |-\n${e.message.split('\n').map((l) => `${pad}    ${l}`).join('\n')}\n` : `${pad}  error: ${yaml(e.message)}\n`;
    s += `${pad}  code: '${e.code || 'ERR_TEST_FAILURE'}'\n`;
    if (e.name !== 'Error' && e.failureType === undefined) s += `${pad}  name: '${e.name}'\n`;
    if (e.code === 'ERR_ASSERTION') s += `${pad}  expected: ${value(e.expected)}\n${pad}  actual: ${value(e.actual)}\n${pad}  operator: '${e.operator}'\n`;
    if (e.failureType === undefined && e.stack) s += `${pad}  stack: |-\n${e.stack.split('\n').filter((l) => /^\s+at /.test(l)).map((l) => `${pad}    ${l.trim().slice(3)}`).join('\n')}\n`;
  } else s += `${pad}  error: ${yaml(inspect(e))}\n${pad}  code: 'ERR_TEST_FAILURE'\n`;
  return s;
}
function tree(t, level) {
  const pad = '  '.repeat(level), ms = ` (${t.ms.toFixed(6).replace(/0+$/, '').replace(/\.$/, '')}ms)`;
  if (t.children.length) {
    out(`${pad}▶ ${t.name}\n`);
    for (const c of t.children) if (c.done) tree(c, level + 1);
    out(`${pad}${t.status === 'fail' ? '✖' : '✔'} ${t.name}${ms}\n`);
    return;
  }
  out(`${pad}${t.skipped ? '﹣' : t.status === 'fail' ? '✖' : '✔'} ${t.name}${ms}${t.skipped ? ' # SKIP' : t.todo ? ' # TODO' : ''}\n`);
  for (const d of t.diagnostics) out(`${pad}ℹ ${d}\n`);
}
const started = () => internal.timeOrigin()[1];
async function runRoot() {
  state.tap = !host.isatty(1);
  if (state.reporter) state.tap = state.reporter === 'tap';
  if (state.tap && !state.embedded) out('TAP version 13\n');
  let error;
  try {
    for (const f of root.hooks.before) await call(f, context(root));
    for (let i = 0; i < root.children.length; i++) await run(root.children[i], 0);
    for (const f of root.hooks.after) await call(f, context(root));
  } catch (e) { error = e; }
  process.once('exit', () => {
    const ms = (host.hr() - started()) / 1e6;
    if (state.tap) out(`1..${root.count || 0}\n`);
    for (const k of Object.keys(counts)) out(`${state.tap ? '#' : 'ℹ'} ${k} ${counts[k]}\n`);
    out(`${state.tap ? '#' : 'ℹ'} duration_ms ${ms.toFixed(6)}\n`);
    if (!state.tap && failures.length) {
      out('\n✖ failing tests:\n');
      for (const t of failures) out(`\n✖ ${t.name} (${t.ms.toFixed(6)}ms)\n  ${inspect(t.error).replaceAll('\n', '\n  ')}\n`);
    }
    if (counts.fail || counts.cancelled || error || failures.length) process.exitCode = 1;
    if (error) internal.stderr(`${inspect(error)}\n`);
    if (process.exitCode) host.exit(+process.exitCode);
  });
}
function test(...a) { return add(current, a, false).promise; }
const variants = (f, suite) => {
  for (const k of ['skip', 'todo', 'only']) f[k] = (...a) => add(current, a, suite, { [k]: true }).promise;
  return f;
};
variants(test, false);
const describe = variants((...a) => add(current, a, true).promise, true);

class MockFunctionContext {
  #calls = []; #impl; #once = new Map(); #restore;
  constructor(impl, restore) { this.#impl = impl; this.#restore = restore; }
  get calls() { return this.#calls.slice(); }
  callCount() { return this.#calls.length; }
  mockImplementation(f) { this.#impl = f; }
  mockImplementationOnce(f, n = this.#calls.length) { this.#once.set(n, f); }
  resetCalls() { this.#calls = []; }
  restore() { if (this.#restore) this.#restore(); }
  static run(c, self, args, target) {
    const f = c.#once.get(c.#calls.length) || c.#impl;
    const rec = { arguments: args, error: undefined, result: undefined, stack: new Error(), target, this: self };
    c.#calls.push(rec);
    try { return rec.result = target ? Reflect.construct(f, args, target) : Reflect.apply(f, self, args); } catch (e) { rec.error = e; throw e; }
  }
}
const runMock = MockFunctionContext.run;
class MockTracker {
  #all = [];
  fn(original = function() {}, impl = original, o) {
    if (impl && typeof impl === 'object') impl = original;
    return this.#make(impl, original);
  }
  #make(impl, original, restore) {
    const c = new MockFunctionContext(impl, restore);
    this.#all.push(c);
    const f = function(...args) { return runMock(c, this, args, new.target && (new.target === f ? impl : new.target)); };
    Object.defineProperty(f, 'name', { value: original.name, configurable: true });
    Object.defineProperty(f, 'length', { value: original.length, configurable: true });
    Object.defineProperty(f, 'mock', { value: c, configurable: true });
    return f;
  }
  method(o, name, impl, options) {
    if (impl && typeof impl === 'object') { options = impl; impl = undefined; }
    const own = Object.getOwnPropertyDescriptor(o, name);
    let d = own;
    for (let p = o; !d && p; p = Object.getPrototypeOf(p)) d = Object.getOwnPropertyDescriptor(p, name);
    const kind = options && options.getter ? 'get' : options && options.setter ? 'set' : 'value';
    const original = d[kind];
    const f = this.#make(impl || original, original, () => { if (own) Object.defineProperty(o, name, own); else delete o[name]; });
    Object.defineProperty(o, name, { ...d, [kind]: f, configurable: true });
    return f;
  }
  getter(o, n, f) { return this.method(o, n, f, { getter: true }); }
  setter(o, n, f) { return this.method(o, n, f, { setter: true }); }
  reset() { this.restoreAll(); this.#all = []; }
  restoreAll() { for (const c of this.#all) c.restore(); }
  get timers() { return { enable() { throw require('internal/errors').notHere('mock.timers'); }, tick() {}, reset() {} }; }
}
const hook = (k) => (f) => { current.hooks[k].push(f); };
Object.assign(test, { test, it: variants((...a) => test(...a), false), describe, suite: describe, before: hook('before'), after: hook('after'), beforeEach: hook('beforeEach'), afterEach: hook('afterEach'), mock: new MockTracker(), state, counts,
  run: () => { throw require('internal/errors').notHere('run() of node:test'); } });
for (const k of ['state', 'counts']) Object.defineProperty(test, k, { enumerable: false });
module.exports = test;
