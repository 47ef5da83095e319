// Children are commands of the same sandbox.
'use strict';
const EE = require('events');
const { Readable, Writable } = require('stream');
const loop = require('internal/loop');
const { system, table, argType, coded, AbortError } = require('internal/errors');
const close = (fd) => { if (fd > 2) host.close(fd); };

function argsOf(file, args, options) {
  if (typeof file !== 'string') throw argType('file', 'string', file);
  if (file === '') throw require('internal/errors').argValue('file', file, 'cannot be empty');
  if (Array.isArray(args)) args = args.slice();
  else if (args == null) args = [];
  else if (typeof args === 'object') { options = args; args = []; } else throw argType('args', 'object', args);
  options = { ...options };
  if (options.shell) {
    const line = [file, ...args].join(' ');
    file = typeof options.shell === 'string' ? options.shell : '/bin/sh';
    args = ['-c', line];
  }
  return { file, argv: [options.argv0 || file, ...args.map(String)], options };
}
function envOf(o) {
  const e = o.env || process.env;
  const list = [];
  for (const k in e) if (e[k] !== undefined) list.push(`${k}=${e[k]}`);
  return list;
}
function dirOf(o) {
  if (o.cwd == null) return null;
  return typeof o.cwd === 'string' ? o.cwd : require('url').fileURLToPath(o.cwd);
}
// stdioOf opens what the child gets: for each number, the descriptor there, and our end of a pipe.
function stdioOf(stdio, def) {
  if (stdio === undefined || stdio === null) stdio = def;
  if (typeof stdio === 'string') stdio = [stdio, stdio, stdio];
  const list = stdio.slice();
  while (list.length < 3) list.push(undefined);
  const made = { child: [], ours: [], mine: [] };
  list.forEach((s, i) => {
    if (s === undefined || s === null) s = i < 3 ? 'pipe' : 'ignore';
    if (s === 'pipe' || s === 'overlapped') {
      const p = host.pipe();
      if (typeof p === 'number') throw system(p, 'spawn');
      const [r, w] = p;
      made.child[i] = i === 0 ? r : w;
      made.ours[i] = i === 0 ? w : r;
      made.mine.push(made.child[i]);
    } else if (s === 'ignore') {
      const fd = host.open('/dev/null', 2, 0);
      made.child[i] = fd;
      made.mine.push(fd);
    } else if (s === 'inherit') made.child[i] = i;
    else if (s === 'ipc') throw require('internal/errors').notHere('an IPC channel to a child');
    else if (typeof s === 'number') made.child[i] = s;
    else if (s && typeof s.fd === 'number') made.child[i] = s.fd;
    else throw require('internal/errors').argValue('stdio', s);
  });
  return made;
}
function start(file, argv, o, made) {
  const pairs = [];
  made.child.forEach((fd, i) => pairs.push(fd, i));
  const pid = host.spawn(file, argv, envOf(o), dirOf(o), pairs, 1 | (o.detached ? 2 : 0));
  for (const fd of made.mine) close(fd);
  made.mine = [];
  return pid;
}

class ChildProcess extends EE {
  constructor() {
    super();
    this.connected = false;
    this.signalCode = null;
    this.exitCode = null;
    this.killed = false;
    this.spawnfile = null;
  }
  kill(sig = 'SIGTERM') {
    const n = internal.signalNumber(sig);
    if (!this.pid || this.exitCode !== null || this.signalCode !== null) return false;
    const r = host.kill(this.pid, n);
    if (r === 0) { if (n) this.killed = true; return true; }
    return false;
  }
  ref() { if (this.pid) loop.refChild(this.pid, true); }
  unref() { if (this.pid) loop.refChild(this.pid, false); }
  send() { throw require('internal/errors').notHere('an IPC channel to a child'); }
  disconnect() {}
  [Symbol.dispose || Symbol.for('nodejs.dispose')]() { if (!this.killed) this.kill(); }
}
class PipeIn extends Readable {
  constructor(fd) { super(); this.fd = fd; }
  _read() {
    if (this.waits || this.fd < 0) return;
    this.waits = true;
    loop.read(this.fd, () => {
      const b = Buffer.allocUnsafe(65536);
      const r = host.read(this.fd, b, 0, b.length, -1);
      if (r === -4 || r === -11) return;
      loop.unread(this.fd);
      this.waits = false;
      if (r <= 0) { this.#close(); this.push(null); } else this.push(b.subarray(0, r));
    });
  }
  #close() { if (this.fd >= 0) { loop.unread(this.fd); close(this.fd); this.fd = -1; } }
  _destroy(e, cb) { this.#close(); cb(e); }
  ref() { loop.refRead(this.fd, true); return this; }
  unref() { loop.refRead(this.fd, false); return this; }
}
class PipeOut extends Writable {
  constructor(fd) { super(); this.fd = fd; }
  _write(b, enc, cb) {
    const r = internal.writeAll(this.fd, b);
    cb(r < 0 ? system(r, 'write') : null);
  }
  _final(cb) { this.#close(); cb(); }
  #close() { if (this.fd >= 0) { close(this.fd); this.fd = -1; } }
  _destroy(e, cb) { this.#close(); cb(e); }
}

function spawn(file, args, options) {
  const { file: f, argv, options: o } = argsOf(file, args, options);
  const c = new ChildProcess();
  const made = stdioOf(o.stdio, ['pipe', 'pipe', 'pipe']);
  const pid = start(f, argv, o, made);
  c.spawnfile = f;
  c.spawnargs = argv;
  c.stdio = made.child.map((_, i) => made.ours[i] === undefined ? null : i === 0 ? new PipeOut(made.ours[i]) : new PipeIn(made.ours[i]));
  [c.stdin, c.stdout, c.stderr] = c.stdio;
  let open = 0, ended = false;
  const closed = () => { if (ended && open === 0) c.emit('close', c.exitCode, c.signalCode); };
  for (const s of c.stdio) {
    if (!(s instanceof PipeIn)) continue;
    open++;
    s.once('close', () => { open--; closed(); });
  }
  if (pid < 0) {
    c.pid = undefined;
    const e = system(pid, `spawn ${f}`);
    e.message = `spawn ${f} ${table[-pid] ? table[-pid][0] : pid}`;
    e.stack = e.stack.replace(/^.*/, `Error: ${e.message}`);
    e.path = f;
    e.spawnargs = argv.slice(1);
    process.nextTick(() => {
      c.exitCode = pid;
      for (const s of c.stdio) if (s) s.destroy();
      c.emit('error', e);
      ended = true;
      closed();
    });
    return c;
  }
  c.pid = pid;
  let timer, onAbort;
  loop.child(pid, (status) => {
    clearTimeout(timer);
    if (onAbort) o.signal.removeEventListener('abort', onAbort);
    if (status & 127) c.signalCode = internal.signalName(status & 127); else c.exitCode = status >> 8 & 255;
    if (c.stdin) c.stdin.destroy();
    c.emit('exit', c.exitCode, c.signalCode);
    // Output that nobody reads doesn't keep the end back.
    for (const s of c.stdio) if (s instanceof PipeIn && s.readableFlowing === null && s.listenerCount('readable') === 0) s.resume();
    ended = true;
    closed();
  });
  if (o.timeout > 0) timer = setTimeout(() => c.kill(o.killSignal), o.timeout);
  if (o.signal) {
    onAbort = () => { if (c.kill(o.killSignal)) c.emit('error', new AbortError(undefined, { cause: o.signal.reason })); };
    if (o.signal.aborted) process.nextTick(onAbort); else o.signal.addEventListener('abort', onAbort, { once: true });
  }
  process.nextTick(() => c.emit('spawn'));
  return c;
}

// Synchronous: one thing is waited for, the child's end with all its output.
function spawnSync(file, args, options) {
  const { file: f, argv, options: o } = argsOf(file, args, options);
  const def = o.stdio === undefined ? ['pipe', 'pipe', 'pipe'] : o.stdio;
  const made = stdioOf(def, def);
  const pid = start(f, argv, o, made);
  const r = { pid: pid < 0 ? 0 : pid, output: null, stdout: null, stderr: null, status: null, signal: null };
  if (pid < 0) {
    for (const fd of made.ours) if (fd !== undefined) close(fd);
    const e = system(pid, `spawnSync ${f}`);
    e.message = `spawnSync ${f} ${table[-pid] ? table[-pid][0] : pid}`;
    e.stack = e.stack.replace(/^.*/, `Error: ${e.message}`);
    e.path = f;
    e.spawnargs = argv.slice(1);
    r.error = e;
    return r;
  }
  let input = o.input === undefined || o.input === null ? null : typeof o.input === 'string' ? Buffer.from(o.input, o.encoding && o.encoding !== 'buffer' ? o.encoding : 'utf8') :
    new Uint8Array(o.input.buffer, o.input.byteOffset, o.input.byteLength);
  const max = o.maxBuffer === undefined ? 1024 * 1024 : o.maxBuffer;
  const out = [];
  const open = new Map();
  made.ours.forEach((fd, i) => { if (fd !== undefined && i > 0) { open.set(fd, i); out[i] = []; } });
  const end = o.timeout > 0 ? host.hr() / 1e6 + o.timeout : Infinity;
  let feeding = made.ours[0], at = 0, killed = null, total = [];
  const kill = (why) => {
    if (killed) return;
    killed = why;
    host.kill(pid, internal.signalNumber(o.killSignal || 'SIGTERM'));
  };
  if (feeding !== undefined && !input) { close(feeding); feeding = undefined; }
  const buf = new Uint8Array(65536);
  const drain = (wait) => {
    const ready = host.poll([...open.keys()], wait);
    if (typeof ready === 'number') return void loop.holdSignals();
    for (const fd of ready) {
      const n = host.read(fd, buf, 0, buf.length, -1);
      if (n === -4 || n === -11) continue;
      if (n <= 0) { close(fd); open.delete(fd); continue; }
      const i = open.get(fd);
      total[i] = (total[i] || 0) + n;
      out[i].push(Buffer.from(buf.subarray(0, Math.max(0, n - Math.max(0, total[i] - max)))));
      if (total[i] > max) kill('ENOBUFS');
    }
  };
  // Input goes in pieces that a pipe takes, between looks at what comes out.
  while (feeding !== undefined) {
    const n = host.write(feeding, input, at, Math.min(4096, input.length - at), -1);
    if (n === -4) continue;
    if (n < 0 || (at += n) >= input.length) { close(feeding); feeding = undefined; }
    if (open.size) drain(0);
  }
  let status;
  while (open.size || status === undefined) {
    if (end !== Infinity && host.hr() / 1e6 >= end) kill('ETIMEDOUT');
    if (open.size && !(killed && status !== undefined)) {
      drain(end === Infinity ? killed ? 20 : -1 : Math.max(1, Math.min(50, end - host.hr() / 1e6)));
      if (!killed) { if (status === undefined && open.size) { const w = host.wait(pid, 1); if (Array.isArray(w) && w[0]) status = w[1]; } continue; }
    }
    if (status !== undefined) break;
    if (end === Infinity && !killed) {
      const w = host.wait(pid, 0);
      if (w === -4) { loop.holdSignals(); continue; }
      status = Array.isArray(w) ? w[1] : 0;
    } else {
      const w = host.wait(pid, 1);
      if (Array.isArray(w) && w[0]) status = w[1]; else host.poll([], 2);
    }
  }
  for (const fd of open.keys()) close(fd);
  if (status & 127) r.signal = internal.signalName(status & 127); else r.status = status >> 8 & 255;
  const enc = o.encoding && o.encoding !== 'buffer' ? o.encoding : null;
  r.output = made.child.map((_, i) => out[i] ? enc ? Buffer.concat(out[i]).toString(enc) : Buffer.concat(out[i]) : null);
  r.stdout = r.output[1] ?? null;
  r.stderr = r.output[2] ?? null;
  if (killed) {
    const e = new Error(`spawnSync ${f} ${killed}`);
    Object.assign(e, { errno: killed === 'ETIMEDOUT' ? -110 : -105, code: killed, syscall: `spawnSync ${f}`, path: f, spawnargs: argv.slice(1) });
    r.error = e;
  }
  return r;
}
function checked(r, what, o, cmd, inherit) {
  if (inherit && r.stderr) internal.writeAll(2, Buffer.from(r.stderr));
  if (r.error) throw Object.assign(r.error, r.error.code === 'ENOBUFS' || r.error.code === 'ETIMEDOUT' ? { status: r.status, signal: r.signal, output: r.output, pid: r.pid, stdout: r.stdout, stderr: r.stderr } : {});
  if (r.status !== 0) {
    let m = `Command failed: ${cmd}`;
    if (r.stderr && r.stderr.length > 0) m += `\n${r.stderr.toString()}`;
    const e = new Error(m);
    Object.assign(e, { status: r.status, signal: r.signal, output: r.output, pid: r.pid, stdout: r.stdout, stderr: r.stderr });
    throw e;
  }
  return r.stdout;
}
function execSync(cmd, o = {}) {
  const inherit = !o.stdio;
  return checked(spawnSync(cmd, [], { ...o, shell: o.shell || true, stdio: o.stdio || 'pipe' }), 'execSync', o, cmd, inherit);
}
function execFileSync(file, args, o) {
  if (!Array.isArray(args) && args != null) { o = args; args = []; }
  o = { ...o };
  return checked(spawnSync(file, args, { ...o, stdio: o.stdio || 'pipe' }), 'execFileSync', o, [file, ...(args || [])].join(' '), !o.stdio);
}
function execFile(file, args, o, cb) {
  if (typeof args === 'function') { cb = args; args = []; o = {}; } else if (!Array.isArray(args)) { cb = o; o = args; args = []; }
  if (typeof o === 'function') { cb = o; o = {}; }
  o = { encoding: 'utf8', timeout: 0, maxBuffer: 1024 * 1024, killSignal: 'SIGTERM', ...o };
  const cmd = o.cmdText ?? [file, ...(args || [])].join(' ');
  const { timeout, ...rest } = o;
  const c = spawn(file, args || [], { ...rest, signal: o.signal });
  const out = [[], []], size = [0, 0];
  let error = null, done = false, timer;
  const text = (i) => { const b = Buffer.concat(out[i]); return o.encoding && o.encoding !== 'buffer' ? b.toString(o.encoding) : b; };
  const finish = (code, signal) => {
    if (done) return;
    done = true;
    clearTimeout(timer);
    if (!cb) return;
    if (!error && code === 0 && signal === null) return void cb(null, text(0), text(1));
    if (!error) {
      error = new Error(`Command failed: ${cmd}\n${text(1)}`);
      error.code = code < 0 ? (table[-code] || ['UNKNOWN'])[0] : code;
      error.killed = c.killed;
      error.signal = signal;
    }
    error.cmd = cmd;
    if (o.promised) Object.assign(error, { stdout: text(0), stderr: text(1) });
    cb(error, text(0), text(1));
  };
  [c.stdout, c.stderr].forEach((s, i) => {
    if (!s) return;
    s.on('data', (b) => {
      size[i] += b.length;
      if (size[i] > o.maxBuffer) {
        out[i].push(b.subarray(0, b.length - (size[i] - o.maxBuffer)));
        error ||= coded(RangeError, 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER', `${i ? 'stderr' : 'stdout'} maxBuffer length exceeded`);
        c.kill(o.killSignal);
      } else out[i].push(b);
    });
  });
  c.on('close', finish);
  c.on('error', (e) => { error = e; for (const s of c.stdio) if (s) s.destroy(); finish(null, null); });
  if (timeout > 0) timer = setTimeout(() => c.kill(o.killSignal), timeout);
  return c;
}
function exec(cmd, o, cb) {
  if (typeof o === 'function') { cb = o; o = {}; }
  if (typeof cmd !== 'string') throw argType('command', 'string', cmd);
  return execFile(cmd, [], { ...o, shell: o && o.shell || true, cmdText: cmd }, cb);
}
for (const f of [exec, execFile]) {
  Object.defineProperty(f, Symbol.for('nodejs.util.promisify.custom'), { value: (...args) => {
    let child;
    const p = new Promise((resolve, reject) => { child = f(...args, (e, stdout, stderr) => { if (e) { e.stdout = stdout; e.stderr = stderr; reject(e); } else resolve({ stdout, stderr }); }); });
    p.child = child;
    return p;
  } });
}
function fork(file, args, o) {
  if (!Array.isArray(args)) { o = args; args = []; }
  o = { ...o };
  const stdio = (Array.isArray(o.stdio) ? o.stdio : o.silent ? ['pipe', 'pipe', 'pipe'] : ['inherit', 'inherit', 'inherit']).filter((s) => s !== 'ipc');
  return spawn(o.execPath || process.execPath, [...(o.execArgv || process.execArgv), file, ...(args || [])], { ...o, stdio });
}
module.exports = { ChildProcess, spawn, spawnSync, exec, execSync, execFile, execFileSync, fork, _forkChild() {} };
