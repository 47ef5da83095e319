// The program node.
'use strict';
const loop = require('internal/loop');
const path = require('path');
const { inspect } = require('internal/inspect');

const usage = `Usage: node [options] [ script.js ] [arguments]
       node -e SCRIPT | -p EXPRESSION | - (standard input)

Options:
  -                     script read from stdin
  --                    end of options
  -c, --check           syntax check a script without executing it
  -e, --eval=...        evaluate a script
  -h, --help            this text
  -i, --interactive     enter the REPL even if stdin isn't a terminal
  -p, --print=...       evaluate a script and print the result
  -r, --require=...     CommonJS module to preload
  --import=...          ES module to preload
  --env-file=...        set variables of the environment from a file
  --input-type=...      commonjs or module, for -e and standard input
  --test                run tests of node:test: the named files, or *.test.js and those of test/
  --no-warnings         print no warnings
  --unhandled-rejections=...  throw, warn, none
  -v, --version         print Node's version that this is compatible with

This is AgentRun's node: QuickJS-ng with the parts of Node that scripts use.

  ECMAScript 2023 and later: CommonJS and ES modules, package.json with exports and imports, node_modules, JSON, top-level await.
  Complete or nearly so: assert, buffer, child_process (the sandbox's commands), console, events, fs (also promises and streams), module, os, path,
      process, querystring, readline, stream, string_decoder, timers, url, util, test (test, describe, it, hooks, mock.fn).
  In part: crypto (hashes, HMAC, random, scrypt, pbkdf2, timingSafeEqual), zlib (gzip, deflate, brotli isn't there), perf_hooks, async_hooks
      (AsyncLocalStorage), vm, v8, worker_threads (isMainThread only), http and https (requests where the network is allowed, no servers), Intl (en-US).
  Not there: net servers, dgram, cluster, inspector, tls, http2, wasi, WebAssembly, native addons, npm.
`;

class Usage extends Error {}
const valued = { '-e': 'eval', '--eval': 'eval', '-p': 'print', '--print': 'print', '-pe': 'print', '-r': 'require', '--require': 'require', '--import': 'import', '--env-file': 'env',
  '--input-type': 'type', '--unhandled-rejections': 'unhandled', '--stack-trace-limit': 'limit', '--test-name-pattern': 'pattern', '--test-reporter': 'reporter', '--conditions': 'x', '-C': 'x',
  '--loader': 'x', '--experimental-loader': 'x', '--title': 'title', '--max-old-space-size': 'x', '--stack-size': 'x', '--test-concurrency': 'x', '--test-timeout': 'x',
  '--test-reporter-destination': 'x', '--icu-data-dir': 'x', '--watch-path': 'x', '--dns-result-order': 'x' };
const flags = { '-c': 'check', '--check': 'check', '-h': 'help', '--help': 'help', '-v': 'version', '--version': 'version', '-i': 'interactive', '--interactive': 'interactive',
  '--test': 'test', '--no-warnings': 'quiet', '--no-deprecation': 'nodep', '--trace-warnings': 'x', '--trace-uncaught': 'x', '--trace-deprecation': 'x' };

function parse(args) {
  const o = { require: [], import: [], env: [], exec: [] };
  let i = 1;
  for (; i < args.length; i++) {
    const a = args[i];
    if (a === '--') { i++; break; }
    if (a === '-' || !a.startsWith('-')) break;
    const eq = a.startsWith('--') ? a.indexOf('=') : -1;
    const name = eq > 0 ? a.slice(0, eq) : a;
    if (flags[name] && eq < 0) {
      o[flags[name]] = true;
      o.exec.push(a);
    } else if (valued[name]) {
      const k = valued[name];
      let v = eq > 0 ? a.slice(eq + 1) : args[i + 1];
      if (eq < 0) {
        if (v === undefined || k !== 'print' && v.startsWith('-') && v !== '-' && k !== 'eval') throw new Usage(`${name} requires an argument`);
        i++;
      }
      if (k === 'print') { o.print = true; o.eval = v; } else if (Array.isArray(o[k])) o[k].push(v); else o[k] = v;
      if (k !== 'eval' && k !== 'print') o.exec.push(...(eq > 0 ? [a] : [a, v]));
    } else if (/^--(no-)?(experimental|harmony|trace|enable|expose|use|max|stack|abort|track|preserve|pending|report|frozen|jitless|allow|disable|openssl|tls|v8|gc|heap|cpu|prof|inspect|watch|throw|force|test|insecure|network|node|optimize|zero|interpreted|perf|secure|verify|diagnostic|redirect|napi|policy|permission)/.test(a) || /^--(verbose|warnings|deprecation|global-search-paths|run)$/.test(a)) {
      o.exec.push(a);
    } else throw new Usage(`bad option: ${a}`);
  }
  o.rest = args.slice(i);
  return o;
}

// Errors that nobody catches.
function location(stack) {
  for (const line of (stack || '').split('\n')) {
    const m = /^\s+at (?:.* \()?(.+?):(\d+):(\d+)\)?$/.exec(line);
    if (m && !m[1].startsWith('node:')) return { file: m[1], line: +m[2], column: +m[3] };
  }
  return null;
}
const texts = new Map();
internal.texts = texts;
internal.explain = () => {};
// thrower guesses where a value without a stack was thrown: where the program throws at all, if that is one place.
function thrower() {
  const file = process.argv[1];
  let text = texts.get('[eval]') ?? texts.get('[stdin]');
  const name = text !== undefined ? texts.has('[eval]') ? '[eval]' : '[stdin]' : file;
  if (text === undefined) try { text = require('fs').readFileSync(file, 'utf8'); } catch { return null; }
  const found = text.split('\n').map((l, i) => /\bthrow\b/.test(l) ? { file: name, line: i + 1, column: l.search(/\bthrow\b/) + 1 } : null).filter(Boolean);
  return found.length === 1 ? found[0] : null;
}
function context(e) {
  if (e && e.code === 'MODULE_NOT_FOUND') return 'node:internal/modules/cjs/loader:1210\n  throw err;\n  ^\n';
  const at = e && typeof e === 'object' ? location(e.stack) : thrower();
  if (!at) return 'Uncaught:\n';
  let text = texts.get(at.file);
  if (text === undefined) {
    try { text = require('fs').readFileSync(at.file, 'utf8'); } catch { text = ''; }
  }
  const line = text.split('\n')[at.line - 1] ?? '';
  let column = Math.max(0, at.column - 1);
  if (/^\s*throw\b/.test(line)) column = line.indexOf('throw');
  const mark = line.slice(0, column).replace(/[^\t]/g, ' ') + '^';
  return `${internal.isESM && internal.isESM(at.file) ? 'file://' : ''}${at.file}:${at.line}\n${line}\n${mark}\n`;
}
function print(e, fromPromise) {
  const tail = `\nNode.js ${internal.version}\n`;
  if (require('internal/inspect').isError(e)) {
    internal.stderr(`${context(e)}\n${inspect(e)}\n${tail}`);
    return;
  }
  if (fromPromise) {
    const err = new Error(`This error originated either by throwing inside of an async function without a catch block, or by rejecting a promise which was not handled with .catch(). The promise rejected with the reason "${inspect(e)}".`);
    err.name = 'UnhandledPromiseRejection';
    err.code = 'ERR_UNHANDLED_REJECTION';
    internal.stderr(`node:internal/process/promises:394\n      new UnhandledPromiseRejection(reason);\n      ^\n\n${err.name}: ${err.message}\n    at throwUnhandledRejectionsMode (node:internal/process/promises:394:7)\n    at processPromiseRejections (node:internal/process/promises:475:17) {\n  code: 'ERR_UNHANDLED_REJECTION'\n}\n${tail}`);
    return;
  }
  internal.stderr(`${context(null)}${typeof e === 'string' ? e : inspect(e)}\n(Use \`node --trace-uncaught ...\` to show where the exception was thrown)\n${tail}`);
}
let dying = false;
loop.handlers.uncaught = (e, origin) => {
  if (internal.capture && origin === 'uncaughtException') return internal.capture(e);
  process.emit('uncaughtExceptionMonitor', e, origin);
  if (!dying && process.listenerCount('uncaughtException') > 0) {
    try {
      process.emit('uncaughtException', e, origin);
      return;
    } catch (again) {
      e = again;
      dying = true;
      print(e, false);
      host.exit(7);
    }
  }
  if (dying) host.exit(7);
  dying = true;
  print(e, origin === 'unhandledRejection');
  process.exitCode = 1;
  if (!process._exiting) {
    process._exiting = true;
    try { process.emit('exit', 1); } catch { host.exit(7); }
  }
  host.exit(+process.exitCode || 1);
};
let unhandled = 'throw';
loop.handlers.rejection = (promise, reason) => {
  if (process.listenerCount('unhandledRejection') > 0) return loop.guard(() => process.emit('unhandledRejection', reason, promise), undefined, []);
  if (unhandled === 'none') return undefined;
  if (unhandled === 'warn') {
    const w = new Error(`Unhandled promise rejection. This error originated either by throwing inside of an async function without a catch block, or by rejecting a promise which was not handled with .catch(). ${inspect(reason)}`);
    w.name = 'UnhandledPromiseRejectionWarning';
    return process.emitWarning(w);
  }
  loop.handlers.uncaught(reason, 'unhandledRejection');
};
loop.handlers.late = (promise) => { process.emit('rejectionHandled', promise); };

function preload(o) {
  const Module = require('module');
  const cwd = process.cwd();
  for (const f of o.env) process.loadEnvFile(f);
  const from = new Module(`${cwd}/[preload]`, null);
  from.filename = `${cwd}/[preload]`;
  for (const r of o.require) Module._load(r, from, false);
  const m = /(?:^|\s)(?:-r|--require)[ =](\S+)/.exec(process.env.NODE_OPTIONS || '');
  if (m) Module._load(m[1], from, false);
}

// evaluate runs the text of -e, -p or standard input.
function evaluate(text, name, o) {
  texts.set(name, text);
  const Module = require('module');
  const cwd = process.cwd();
  const resolver = require('internal/resolve');
  if (o.type === 'module' || o.type === undefined && !o.print && resolver.looksLikeModule(text)) {
    const p = host.module(text, `${cwd}/${name}1`);
    texts.set(`${cwd}/${name}1`, text);
    settle(p, name);
    return undefined;
  }
  const m = new Module(name, null);
  m.filename = path.join(cwd, name);
  m.path = cwd;
  m.paths = Module._nodeModulePaths(cwd);
  const globals = { module: m, exports: m.exports, require: Module.makeRequire(m), __filename: name, __dirname: '.' };
  for (const k of Object.keys(globals)) Object.defineProperty(globalThis, k, { value: globals[k], writable: true, configurable: true, enumerable: true });
  for (const b of internal.builtins) {
    if (b.includes('/') || b === 'test' || b in globalThis && b !== 'crypto') continue;
    Object.defineProperty(globalThis, b, { configurable: true, enumerable: false, get: () => internal.require(b), set(v) { Object.defineProperty(globalThis, b, { value: v, writable: true, configurable: true, enumerable: true }); } });
  }
  return host.script(text, name, 0);
}
// settle makes the end of a module's promise the program's: an error is one that nobody catches.
function settle(p, name) {
  internal.unsettled = name;
  p.then(() => { internal.unsettled = undefined; }, (e) => {
    internal.unsettled = undefined;
    process.nextTick(() => loop.handlers.uncaught(e, 'uncaughtException'));
  });
}

function checkOnly(file) {
  const text = require('fs').readFileSync(file, 'utf8');
  texts.set(file, text);
  const resolver = require('internal/resolve');
  const body = text.startsWith('#!') ? `//${text}` : text;
  if (resolver.isModule(file, text)) host.script(body, file, 1 | 32);
  else host.script(require('module').wrap(body), file, 32);
}

function readInput() {
  const b = host.readAll(0);
  return typeof b === 'number' ? '' : host.decode(b, 0, b.length, false);
}

function main(args) {
  let o;
  try {
    o = parse(args);
  } catch (e) {
    if (!(e instanceof Usage)) throw e;
    internal.stderr(`${args[0]}: ${e.message}\n`);
    return 9;
  }
  const out = (s) => internal.writeAll(1, host.encode(s));
  if (o.version) return out(`${internal.version}\n`), 0;
  if (o.help) return out(usage), 0;
  process.execArgv = o.exec;
  process.execPath = args[0].startsWith('/') ? args[0] : '/usr/bin/node';
  process.argv0 = args[0];
  process.argv = [process.execPath];
  if (o.title) process.title = o.title;
  if (o.quiet) process.noWarnings = true;
  if (o.nodep) process.noDeprecation = true;
  if (o.limit) Error.stackTraceLimit = +o.limit;
  if (o.unhandled) unhandled = o.unhandled === 'strict' ? 'throw' : o.unhandled;
  try {
    start(o);
  } catch (e) {
    loop.handlers.uncaught(e, 'uncaughtException');
  }
  return internal.finish();
}

function start(o) {
  const Module = require('module');
  const esm = require('internal/esm');
  preload(o);
  const later = (f) => {
    if (!o.import.length) return f();
    const all = o.import.reduce((p, s) => p.then(() => host.script(`(s) => import(s)`, `${process.cwd()}/[import]`, 0)(s)), Promise.resolve());
    all.then(() => loop.guard(f, undefined, []), (e) => process.nextTick(() => loop.handlers.uncaught(e, 'uncaughtException')));
  };
  if (o.test) return later(() => require('internal/testrunner').main(o));
  if (o.eval !== undefined) {
    process.argv = [process.execPath, ...o.rest];
    return later(() => {
      const v = evaluate(o.eval, '[eval]', o);
      if (o.print) console.log(v);
    });
  }
  const script = o.rest[0];
  if (script !== undefined && script !== '-' && !o.interactive) {
    let file = path.resolve(script);
    process.argv = [process.execPath, file, ...o.rest.slice(1)];
    const resolver = require('internal/resolve');
    const found = resolver.file(file);
    if (!found) {
      const e = new Error(`Cannot find module '${file}'`);
      e.code = 'MODULE_NOT_FOUND';
      e.requireStack = [];
      e.stack = e.stack.split('\n')[0] + '\n    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)';
      internal.stderr(`node:internal/modules/cjs/loader:1210\n  throw err;\n  ^\n\n${inspect(e)}\n\nNode.js ${internal.version}\n`);
      process._exiting = true;
      process.emit('exit', 1);
      host.exit(1);
    }
    file = found;
    process.argv[1] = path.resolve(script) === found || !resolver.file(path.resolve(script)) ? found : path.resolve(script);
    if (o.check) return checkOnly(file);
    return later(() => {
      if (file.endsWith('.mjs') || file.endsWith('.js') && resolver.isModule(file, require('fs').readFileSync(file, 'utf8'))) return settle(esm.run(file), file);
      Module._load(file, null, true);
    });
  }
  process.argv = [process.execPath, ...(script === '-' ? ['-'] : []), ...o.rest.slice(1)];
  if (o.interactive || host.isatty(0) && script !== '-') return later(() => require('repl').start({ version: true }));
  const text = readInput();
  if (o.check) return void host.script(text, '[stdin]', 32);
  return later(() => { const v = evaluate(text, '[stdin]', o); if (o.print) console.log(v); });
}
module.exports = main;
