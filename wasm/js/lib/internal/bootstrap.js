// The first script: loads all modules, makes the globals, and leaves the function that runs a program. What is done here is done once, before the
// snapshot that all runs start from; what depends on the process is done in main.
(function (host) {
  'use strict';
  const cache = new Map();
  const internal = {
    host,
    version: 'v20.20.2',
    builtins: ['assert', 'assert/strict', 'async_hooks', 'buffer', 'child_process', 'cluster', 'console', 'constants', 'crypto', 'dgram', 'diagnostics_channel', 'dns', 'dns/promises', 'domain', 'events', 'fs',
      'fs/promises', 'http', 'http2', 'https', 'inspector', 'module', 'net', 'os', 'path', 'path/posix', 'path/win32', 'perf_hooks', 'process', 'punycode', 'querystring', 'readline',
      'readline/promises', 'stream', 'stream/promises', 'stream/consumers', 'stream/web', 'string_decoder', 'sys', 'test', 'timers', 'timers/promises', 'tls', 'tty', 'url', 'util',
      'util/types', 'v8', 'vm', 'worker_threads', 'zlib'],
  };
  internal.atStart = []; // functions that fit modules to the process of a run

  function load(name) {
    if (name.startsWith('node:')) name = name.slice(5);
    let m = cache.get(name);
    if (m) return m.exports;
    const text = host.source(name);
    if (typeof text !== 'string') throw new Error('no internal module ' + name);
    m = { exports: {} };
    cache.set(name, m);
    const f = host.script('(function (exports, require, module, host, internal) {' + text + '\n})', 'node:' + name, 0);
    f(m.exports, load, m, host, internal);
    return m.exports;
  }
  internal.require = load;
  internal.isBuiltin = (name) => name.startsWith('node:') ? internal.builtins.includes(name.slice(5)) : internal.builtins.includes(name) && name !== 'test';

  load('internal/globals');
  const names = internal.builtins.slice();
  for (const name of names) load(name);
  const programs = { node: load('internal/main'), qjs: load('internal/qjs') };

  const esm = load('internal/esm');
  const loop = load('internal/loop');
  host.hooks(function main() {
    const args = host.args();
    const base = (args[0] || 'node').replace(/^.*\//, '');
    for (const f of internal.atStart) f(args);
    return (programs[base] || programs.node)(args);
  }, loop.rejection, esm.resolve, esm.load, esm.meta);
})
