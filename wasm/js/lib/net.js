// TCP: in the sandbox's own network with servers, outside as its policy allows. Sockets are descriptors; what can't be written at once is tried again.
'use strict';
const { Duplex } = require('stream');
const EE = require('events');
const loop = require('internal/loop');
const { system, notHere, coded } = require('internal/errors');
require('crypto');
const OP = 10;
const v4 = (s) => /^(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(\.(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}$/.test(s);
const v6 = (s) => { if (!/:/.test(s)) return false; try { new URL(`http://[${s.replace(/%.*$/, '')}]/`); return true; } catch { return false; } };
const family = (a) => v6(a) ? 'IPv6' : 'IPv4';

// ask does one operation; an error has the negative number as errno.
function ask(...parts) {
  const r = internal.ask(OP, ...parts.map((p) => typeof p === 'number' ? String(p) : p));
  if (!r) return { errno: -38, text: '' };
  const fields = r.toString('utf8', 1).split('\0');
  return r[0] === 43 ? fields : { errno: -fields[0], text: fields[1] };
}
internal.isLocal = (host) => ask('local', `${host}`.replace(/^\[|\]$/g, ''))[0] === '1';

function failure(r, syscall, host, port) {
  const e = system(r.errno, syscall);
  const where = `${host}${port === undefined ? '' : `:${port}`}`;
  e.message = r.text ? `${syscall} ${e.code} ${where}: ${r.text}` : syscall === 'listen' ? `${syscall} ${e.code}: ${e.message.split(': ')[1].split(',')[0]} ${where}` : `${syscall} ${e.code} ${where}`;
  e.address = host;
  if (port !== undefined) e.port = port;
  return e;
}
function portOf(p) {
  const n = typeof p === 'string' && p.trim() !== '' ? Number(p) : p;
  if (!Number.isInteger(n) || n < 0 || n > 65535) throw coded(RangeError, 'ERR_SOCKET_BAD_PORT', `options.port should be >= 0 and < 65536. Received ${typeof p === 'string' ? `'${p}'` : p}.`);
  return n;
}

class Socket extends Duplex {
  constructor(o = {}) {
    super({ allowHalfOpen: true, highWaterMark: o.highWaterMark, decodeStrings: true });
    this.half = !!o.allowHalfOpen;
    this.fd = -1;
    this.connecting = false;
    this.bytesRead = this.bytesWritten = 0;
    this.timeout = 0;
    this._ref = true;
    if (!this.half) this.once('end', () => process.nextTick(() => { if (!this.writableEnded) this.end(); }));
  }
  _open([fd, local, localPort, remote, remotePort]) {
    this.fd = +fd;
    this.connecting = false;
    Object.assign(this, { localAddress: local, localPort: +localPort, localFamily: family(local), remoteAddress: remote, remotePort: +remotePort, remoteFamily: family(remote) });
    this._active();
    if (this._wants) { this._wants = false; this._read(); }
    if (this._held) { const h = this._held; this._held = null; h(); }
    return this;
  }
  connect(...args) {
    const cb = typeof args.at(-1) === 'function' ? args.pop() : null;
    const o = typeof args[0] === 'object' && args[0] !== null ? args[0] : { port: args[0], host: args[1] };
    if (o.path !== undefined || typeof args[0] === 'string' && !/^\d+$/.test(args[0])) throw notHere('a Unix-domain socket');
    const host = o.host || 'localhost', port = portOf(o.port);
    if (cb) this.once('connect', cb);
    this.connecting = true;
    this._wait = setImmediate(() => {
      if (this.destroyed) return;
      const r = ask('connect', host.replace(/^\[|\]$/g, ''), port);
      if (!Array.isArray(r)) {
        this.connecting = false;
        this.destroy(failure(r, 'connect', internal.isLocal(host) ? v6(host) ? host : '127.0.0.1' : host, port));
        return;
      }
      this._open(r);
      this.emit('connect');
      this.emit('ready');
    });
    return this;
  }
  _read() {
    if (this.fd < 0) { this._wants = true; return; }
    if (this._reading) return;
    this._reading = true;
    loop.read(this.fd, () => {
      const b = Buffer.allocUnsafe(65536);
      const r = host.read(this.fd, b, 0, b.length, -1);
      if (r === -11 || r === -4) return;
      this._unread();
      this._active();
      if (r < 0) { this.destroy(system(r, 'read')); return; }
      this.bytesRead += r;
      this.push(r === 0 ? null : b.subarray(0, r));
    }, this._ref);
  }
  _unread() { if (this._reading) { this._reading = false; loop.unread(this.fd); } }
  _write(chunk, encoding, cb) {
    if (this.fd < 0) {
      if (this.destroyed) cb(system(-32, 'write')); else this._held = () => this._write(chunk, encoding, cb);
      return;
    }
    let at = 0, pause = 1;
    const go = () => {
      while (at < chunk.length) {
        if (this.fd < 0) { cb(system(-32, 'write')); return; }
        const r = ask('send', this.fd, chunk.subarray(at, at + 65536));
        if (!Array.isArray(r)) { cb(system(r.errno, 'write')); return; }
        if (+r[0] === 0) {
          this._retry = setTimeout(go, pause);
          pause = Math.min(2 * pause, 16);
          return;
        }
        at += +r[0];
        pause = 1;
        this.bytesWritten += +r[0];
        this._active();
      }
      cb();
    };
    go();
  }
  _final(cb) {
    if (this.fd < 0) {
      if (this.connecting) this._held = () => this._final(cb); else cb();
      return;
    }
    ask('end', this.fd);
    cb();
    if (this.readableEnded) this.destroy();
    else this.once('end', () => this.destroy());
  }
  emit(name, ...args) { return super.emit(name, ...(name === 'close' && !args.length ? [!!this._failed] : args)); }
  _destroy(e, cb) {
    this._failed = !!e;
    this._unread();
    clearTimeout(this._timer);
    clearTimeout(this._retry);
    clearImmediate(this._wait);
    this.connecting = false;
    if (this.fd >= 0) host.close(this.fd);
    this.fd = -1;
    cb(e);
    process.nextTick(() => { if (this.server) this.server._gone(this); });
  }
  _active() {
    clearTimeout(this._timer);
    if (this.timeout > 0 && !this.destroyed) {
      this._timer = setTimeout(() => this.emit('timeout'), this.timeout);
      this._timer.unref();
    }
  }
  setTimeout(ms, cb) {
    this.timeout = ms;
    if (cb) { if (ms) this.once('timeout', cb); else this.removeListener('timeout', cb); }
    this._active();
    return this;
  }
  get pending() { return this.fd < 0; }
  get readyState() { return this.connecting ? 'opening' : this.fd < 0 ? 'closed' : this.writableEnded ? 'readOnly' : this.readableEnded ? 'writeOnly' : 'open'; }
  address() { return this.fd < 0 ? {} : { address: this.localAddress, family: this.localFamily, port: this.localPort }; }
  setNoDelay() { return this; }
  setKeepAlive() { return this; }
  ref() { this._ref = true; if (this._reading) loop.refRead(this.fd, true); return this; }
  unref() { this._ref = false; if (this._reading) loop.refRead(this.fd, false); return this; }
  destroySoon() { if (this.writableFinished) this.destroy(); else { this.once('finish', () => this.destroy()); this.end(); } }
  resetAndDestroy() { return this.destroy(); }
}

class Server extends EE {
  constructor(o, handler) {
    super();
    if (typeof o === 'function') { handler = o; o = {}; }
    this._options = o || {};
    this._sockets = new Set();
    this._fd = -1;
    this._ref = true;
    this.listening = false;
    if (handler) this.on('connection', handler);
  }
  listen(...args) {
    const cb = typeof args.at(-1) === 'function' ? args.pop() : null;
    let o = args[0];
    if (typeof o !== 'object' || o === null) o = { port: o, host: typeof args[1] === 'string' ? args[1] : undefined, backlog: typeof args[1] === 'number' ? args[1] : args[2] };
    if (o.path !== undefined || typeof o.port === 'string' && !/^\d+$/.test(o.port)) throw notHere('a Unix-domain socket');
    if (this.listening) throw coded(Error, 'ERR_SERVER_ALREADY_LISTEN', 'Listen method has been called more than once without closing.');
    const port = portOf(o.port ?? 0), host = o.host || '::';
    if (cb) this.once('listening', cb);
    const r = ask('listen', host, port, o.backlog || 511);
    if (!Array.isArray(r)) {
      process.nextTick(() => this.emit('error', failure(r, 'listen', host, port)));
      return this;
    }
    this._fd = +r[0];
    this._address = { address: r[1], family: family(r[1]), port: +r[2] };
    this.listening = true;
    loop.read(this._fd, () => this._accept(), this._ref);
    process.nextTick(() => { if (this.listening) this.emit('listening'); });
    return this;
  }
  _accept() {
    for (let i = 0; i < 64 && this._fd >= 0; i++) {
      const r = ask('accept', this._fd);
      if (!Array.isArray(r)) return;
      const s = new this._socketClass({ allowHalfOpen: this._options.allowHalfOpen })._open(r);
      if (this.maxConnections && this._sockets.size >= this.maxConnections) { s.destroy(); continue; }
      s.server = this;
      this._sockets.add(s);
      this.emit('connection', s);
      if (!this._options.pauseOnConnect) s._read();
    }
  }
  get _socketClass() { return Socket; }
  _gone(s) { this._sockets.delete(s); this._maybeClosed(); }
  _maybeClosed() {
    if (this._closing && this._sockets.size === 0) { this._closing = false; this.emit('close'); }
  }
  close(cb) {
    if (this._fd < 0) {
      if (cb) process.nextTick(() => cb(coded(Error, 'ERR_SERVER_NOT_RUNNING', 'Server is not running.')));
      return this;
    }
    if (cb) this.once('close', cb);
    loop.unread(this._fd);
    host.close(this._fd);
    this._fd = -1;
    this.listening = false;
    this._closing = true;
    process.nextTick(() => this._maybeClosed());
    return this;
  }
  address() { return this.listening ? this._address : null; }
  getConnections(cb) { process.nextTick(cb, null, this._sockets.size); return this; }
  ref() { this._ref = true; if (this._fd >= 0) loop.refRead(this._fd, true); return this; }
  unref() { this._ref = false; if (this._fd >= 0) loop.refRead(this._fd, false); return this; }
  [Symbol.asyncDispose || Symbol.for('nodejs.asyncDispose')]() { return new Promise((r) => this.close(r)); }
}
const connect = (...args) => {
  const o = typeof args[0] === 'object' && args[0] !== null ? args[0] : {};
  const s = new Socket(o);
  if (o.timeout) s.setTimeout(o.timeout);
  return s.connect(...args);
};
module.exports = { isIP: (s) => v4(s) ? 4 : v6(`${s}`) ? 6 : 0, isIPv4: (s) => v4(s), isIPv6: (s) => v6(`${s}`), connect, createConnection: connect, createServer: (o, h) => new Server(o, h), Socket, Stream: Socket, Server };
