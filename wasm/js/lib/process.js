'use strict';
const EventEmitter = require('events');
const loop = require('internal/loop');
const { check, argType, coded, table } = require('internal/errors');

const signals = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGILL: 4, SIGTRAP: 5, SIGABRT: 6, SIGBUS: 7, SIGFPE: 8, SIGKILL: 9, SIGUSR1: 10, SIGSEGV: 11, SIGUSR2: 12, SIGPIPE: 13,
  SIGALRM: 14, SIGTERM: 15, SIGCHLD: 17, SIGSTKFLT: 16, SIGCONT: 18, SIGSTOP: 19, SIGTSTP: 20, SIGTTIN: 21, SIGTTOU: 22, SIGURG: 23, SIGXCPU: 24, SIGXFSZ: 25,
  SIGVTALRM: 26, SIGPROF: 27, SIGWINCH: 28, SIGIO: 29, SIGPOLL: 29, SIGPWR: 30, SIGSYS: 31 };
internal.signals = signals;
internal.signalName = (n) => Object.keys(signals).find((k) => signals[k] === n) || null;
internal.signalNumber = (s) => {
  if (typeof s === 'number') return s;
  const n = signals[s] ?? signals[`${s}`.toUpperCase()];
  if (n === undefined) throw coded(TypeError, 'ERR_UNKNOWN_SIGNAL', `Unknown signal: ${s}`);
  return n;
};

function process() {}
Object.setPrototypeOf(process.prototype, EventEmitter.prototype);
const p = new process();
EventEmitter.call(p);
let started = 0, origin = 0;
Object.assign(p, {
  version: internal.version, versions: { node: internal.version.slice(1), quickjs: '0.17.0', v8: '11.3.244.8-node.0', uv: '1.46.0', modules: '115' }, arch: 'x64', platform: 'linux',
  release: { name: 'node', lts: 'Iron' }, title: 'node', argv: [], execArgv: [], execPath: '/usr/bin/node', env: {}, exitCode: undefined, pid: 0, ppid: 0, debugPort: 9229,
  features: { inspector: false, debug: false, uv: true, ipv6: false, tls_alpn: false, tls_sni: false, tls_ocsp: false, tls: false }, config: { target_defaults: {}, variables: {} },
  allowedNodeEnvironmentFlags: new Set(), moduleLoadList: [],
});
internal.atStart.push((args) => {
  [p.pid, p.ppid] = host.ids();
  const env = {};
  for (const kv of host.environ()) {
    const i = kv.indexOf('=');
    if (i > 0) env[kv.slice(0, i)] = kv.slice(i + 1);
  }
  p.env = new Proxy(env, {
    set(t, k, v) { if (typeof k === 'symbol') throw new TypeError('Cannot convert a Symbol value to a string'); t[k] = `${v}`; return true; },
    defineProperty(t, k, d) { t[k] = `${d.value}`; return true; },
    getOwnPropertyDescriptor(t, k) { const d = Object.getOwnPropertyDescriptor(t, k); return d; },
  });
  started = host.now();
  origin = host.hr();
});
internal.timeOrigin = () => [started, origin];

p.cwd = () => check(host.cwd(), 'uv_cwd');
p.chdir = (d) => {
  if (typeof d !== 'string') throw argType('directory', 'string', d);
  const r = host.chdir(d);
  if (r < 0) {
    const e = require('internal/errors').system(r, 'chdir', p.cwd(), d);
    throw e;
  }
};
p.umask = (m) => {
  if (m === undefined) {
    const old = host.umask(0);
    host.umask(old);
    return old;
  }
  return host.umask(typeof m === 'string' ? parseInt(m, 8) : m);
};
p.nextTick = function nextTick(f, ...args) {
  if (typeof f !== 'function') throw argType('callback', 'function', f);
  if (!p._exiting) loop.nextTick(f, args);
};
p.hrtime = function hrtime(since) {
  const t = host.hr();
  let s = Math.floor(t / 1e9), n = Math.floor(t % 1e9);
  if (since !== undefined) {
    if (!Array.isArray(since)) throw argType('time', 'Array', since);
    s -= since[0];
    n -= since[1];
    if (n < 0) { s--; n += 1e9; }
  }
  return [s, n];
};
p.hrtime.bigint = () => BigInt(Math.floor(host.hr()));
p.uptime = () => (host.hr() - origin) / 1e9;
p.memoryUsage = () => {
  const [rss, heapTotal, heapUsed] = host.memory();
  return { rss, heapTotal, heapUsed, external: 0, arrayBuffers: 0 };
};
p.memoryUsage.rss = () => host.memory()[0];
p.cpuUsage = (before) => {
  const t = host.times();
  const r = { user: Math.floor(t[0]), system: Math.floor(t[1]) };
  if (before) { r.user -= before.user; r.system -= before.system; }
  return r;
};
p.resourceUsage = () => ({ userCPUTime: Math.floor(host.times()[0]), systemCPUTime: Math.floor(host.times()[1]), maxRSS: host.memory()[0] / 1024, sharedMemorySize: 0, unsharedDataSize: 0,
  unsharedStackSize: 0, minorPageFault: 0, majorPageFault: 0, swappedOut: 0, fsRead: 0, fsWrite: 0, ipcSent: 0, ipcReceived: 0, signalsCount: 0, voluntaryContextSwitches: 0,
  involuntaryContextSwitches: 0 });
p.constrainedMemory = () => 0;
p.availableMemory = () => 512 << 20;
for (const [name, i] of [['getuid', 2], ['geteuid', 2], ['getgid', 3], ['getegid', 3]]) p[name] = () => host.ids()[i];
p.getgroups = () => [host.ids()[3]];
p.kill = (pid, sig = 'SIGTERM') => {
  if (typeof pid !== 'number') throw argType('pid', 'number', pid);
  const r = host.kill(pid, internal.signalNumber(sig));
  if (r < 0) {
    const e = require('internal/errors').system(r, 'kill');
    e.message = `kill ${e.code}`;
    e.stack = e.stack.replace(/^.*/, `Error: ${e.message}`);
    throw e;
  }
  return true;
};
p.abort = () => { host.kill(p.pid, 6); host.exit(134); };
p.getActiveResourcesInfo = () => [];
p.binding = (n) => { throw new Error(`No such module: ${n}`); };
p.dlopen = () => { throw require('internal/errors').notHere('process.dlopen: native code'); };
p.setUncaughtExceptionCaptureCallback = (f) => { internal.capture = f; };
p.hasUncaughtExceptionCaptureCallback = () => !!internal.capture;
p.setSourceMapsEnabled = () => {};
p.loadEnvFile = (file = '.env') => {
  const o = require('util').parseEnv(require('fs').readFileSync(file, 'utf8'));
  for (const k of Object.keys(o)) if (p.env[k] === undefined) p.env[k] = o[k];
};
p.report = { getReport: () => ({}) };

// Warnings go to standard error, once the running code has ended.
p.emitWarning = (w, type, code) => {
  let detail;
  if (type && typeof type === 'object') ({ type, code, detail } = type);
  if (typeof w === 'string') {
    const text = w;
    w = new Error(text);
    w.name = type || 'Warning';
    if (code) w.code = code;
    if (detail) w.detail = detail;
  }
  if (w.name === 'DeprecationWarning' && p.noDeprecation) return;
  p.nextTick(() => p.emit('warning', w));
};
internal.atStart.push(() => {
  p.on('warning', (w) => {
    if (p.noWarnings || p.env.NODE_NO_WARNINGS === '1') return;
    const hint = internal.warned ? '' : `\n(Use \`node --trace-${w.name === 'DeprecationWarning' ? 'deprecation' : 'warnings'} ...\` to show where the warning was created)`;
    internal.warned = true;
    internal.stderr(`(node:${p.pid}) ${w.code ? `[${w.code}] ` : ''}${w.name}: ${w.message}${w.detail ? `\n${w.detail}` : ''}${hint}\n`);
  });
});

// The end.
p.reallyExit = (code) => host.exit(code);
p.exit = (code) => {
  if (code !== undefined) p.exitCode = code;
  if (!p._exiting) {
    p._exiting = true;
    p.emit('exit', +p.exitCode || 0);
  }
  p.reallyExit(+p.exitCode || 0);
};
internal.finish = () => {
  for (;;) {
    loop.run();
    const before = p.listenerCount('beforeExit');
    if (!before) break;
    p.emit('beforeExit', +p.exitCode || 0);
    loop.drain();
    if (!loop.pending()) break;
  }
  if (!p._exiting) {
    p._exiting = true;
    if (p.exitCode === undefined && internal.unsettled) {
      p.exitCode = 13;
    }
    try {
      p.emit('exit', +p.exitCode || 0);
    } catch (e) {
      loop.handlers.uncaught(e, 'uncaughtException');
    }
  }
  return +p.exitCode || 0;
};

// Streams, made when they are asked for.
for (const [name, fd] of [['stdin', 0], ['stdout', 1], ['stderr', 2]]) {
  let stream;
  Object.defineProperty(p, name, {
    configurable: true, enumerable: true,
    get() { return stream ||= require('internal/stdio')(fd); },
    set(v) { stream = v; },
  });
}
p.openStdin = () => { p.stdin.resume(); return p.stdin; };

// Signals are watched while somebody listens.
p.on('newListener', (type) => {
  const n = signals[type];
  if (n && p.listenerCount(type) === 0 && n !== 9 && n !== 19) loop.signal(n, () => p.emit(type, type, n));
});
p.on('removeListener', (type) => { if (signals[type] && p.listenerCount(type) === 0) loop.signal(signals[type], null); });

// writeAll writes to a descriptor, whatever it takes.
internal.writeAll = (fd, b) => {
  for (let at = 0; at < b.length;) {
    const r = host.write(fd, b, at, b.length - at, -1);
    if (r === -4) continue;
    if (r === -11) { host.poll([], 1); continue; }
    if (r < 0) return r;
    at += r;
  }
  return 0;
};
internal.stderr = (s) => internal.writeAll(2, host.encode(s));

module.exports = p;
