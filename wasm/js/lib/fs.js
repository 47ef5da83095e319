'use strict';
const { system, check, argType, argValue, coded, fn } = require('internal/errors');
const { encodingOf } = require('buffer');
const pathlib = require('path');
const k = require('internal/constants').fs;

function pathOf(p, name = 'path') {
  if (typeof p === 'string') {
    if (p.includes('\0')) throw argValue(name, p, 'must be a string, Uint8Array, or URL without null bytes');
    return p;
  }
  if (p instanceof Uint8Array) return Buffer.from(p).toString();
  if (p && typeof p === 'object' && p.href && p.protocol) return require('url').fileURLToPath(p);
  throw argType(name, ['string', 'Buffer', 'URL'], p);
}
const flagsTable = { r: 0, rs: k.O_SYNC, 'r+': 2, 'rs+': 2 | k.O_SYNC, w: 0x241, wx: 0x2c1, 'w+': 0x242, 'wx+': 0x2c2, a: 0x441, ax: 0x4c1, 'a+': 0x442, 'ax+': 0x4c2, as: 0x441 | k.O_SYNC,
  'as+': 0x442 | k.O_SYNC, xw: 0x2c1, xa: 0x4c1 };
function flagsOf(f) {
  if (f == null) return 0;
  if (typeof f === 'number') return f;
  if (flagsTable[f] === undefined) throw argValue('flags', f);
  return flagsTable[f];
}
function modeOf(m, def) {
  if (m == null) return def;
  if (typeof m === 'string') {
    if (!/^[0-7]+$/.test(m)) throw argValue('mode', m, 'must be a 32-bit unsigned integer or an octal string');
    return parseInt(m, 8);
  }
  if (typeof m !== 'number') throw argType('mode', 'number', m);
  return m;
}
function fdOf(fd) {
  if (typeof fd !== 'number') throw argType('fd', 'number', fd);
  return fd;
}
function optionsOf(o, def) {
  if (o === undefined || o === null || typeof o === 'function') return { ...def };
  if (typeof o === 'string') o = { encoding: o };
  if (typeof o !== 'object') throw argType('options', ['string', 'Object'], o);
  if (o.encoding != null && o.encoding !== 'buffer' && !encodingOf(o.encoding)) throw argValue('encoding', o.encoding, 'is invalid encoding');
  return { ...def, ...o };
}
const text = (b, encoding) => encoding && encoding !== 'buffer' ? b.toString(encoding) : b;
const named = (s, encoding) => encoding === 'buffer' ? Buffer.from(s) : s;
const wrap = (u) => Buffer.from(u.buffer, u.byteOffset, u.byteLength);

// Stats.
class StatsBase {
  #is(type) { return (Number(this.mode) & k.S_IFMT) === type; }
  isDirectory() { return this.#is(k.S_IFDIR); }
  isFile() { return this.#is(k.S_IFREG); }
  isBlockDevice() { return this.#is(k.S_IFBLK); }
  isCharacterDevice() { return this.#is(k.S_IFCHR); }
  isSymbolicLink() { return this.#is(k.S_IFLNK); }
  isFIFO() { return this.#is(k.S_IFIFO); }
  isSocket() { return this.#is(k.S_IFSOCK); }
}
class Stats extends StatsBase {}
class BigIntStats extends StatsBase {}
function statsOf(v, big) {
  const s = big ? new BigIntStats() : new Stats();
  const n = big ? (x) => BigInt(Math.trunc(x)) : (x) => x;
  const [dev, ino, mode, nlink, uid, gid, rdev, size, blksize, blocks, at, mt, ct] = v;
  Object.assign(s, { dev: n(dev), mode: n(mode), nlink: n(nlink), uid: n(uid), gid: n(gid), rdev: n(rdev), blksize: n(blksize), ino: n(ino), size: n(size), blocks: n(blocks),
    atimeMs: n(at), mtimeMs: n(mt), ctimeMs: n(ct), birthtimeMs: n(ct) });
  if (big) Object.assign(s, { atimeNs: BigInt(Math.round(at * 1e6)), mtimeNs: BigInt(Math.round(mt * 1e6)), ctimeNs: BigInt(Math.round(ct * 1e6)), birthtimeNs: BigInt(Math.round(ct * 1e6)) });
  s.atime = new Date(at);
  s.mtime = new Date(mt);
  s.ctime = new Date(ct);
  s.birthtime = new Date(ct);
  return s;
}
class Dirent {
  constructor(name, path, type) {
    this.name = name;
    this.path = path;
    this.parentPath = path;
    Object.defineProperty(this, Symbol.for('type'), { value: type, writable: true, enumerable: false });
  }
}
// Types of entries, as WASI numbers them.
for (const [name, t] of [['isBlockDevice', 1], ['isCharacterDevice', 2], ['isDirectory', 3], ['isFile', 4], ['isSocket', 6], ['isSymbolicLink', 7], ['isFIFO', 0]])
  Dirent.prototype[name] = function() { return this[Symbol.for('type')] === t; };

const fs = module.exports;
fs.constants = k;
for (const n of ['F_OK', 'R_OK', 'W_OK', 'X_OK']) fs[n] = k[n];
fs.Stats = Stats;
fs.Dirent = Dirent;

const sync = {
  access(p, mode = 0) { check(host.access(p = pathOf(p), mode), 'access', p); },
  open(p, flags = 'r', mode) { return check(host.open(p = pathOf(p), flagsOf(flags), modeOf(mode, 0o666)), 'open', p); },
  close(fd) { check(host.close(fdOf(fd)), 'close'); },
  read(fd, buffer, offset, length, position) {
    fdOf(fd);
    if (offset !== null && typeof offset === 'object') ({ offset, length, position } = offset);
    if (!ArrayBuffer.isView(buffer)) throw argType('buffer', ['Buffer', 'TypedArray', 'DataView'], buffer);
    offset = offset ?? 0;
    length = length ?? buffer.byteLength - offset;
    if (offset + length > buffer.byteLength) throw require('internal/errors').outOfRange('length', `<= ${buffer.byteLength - offset}`, length);
    const u = new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength);
    for (;;) {
      const r = host.read(fd, u, offset, length, position == null || position < 0 ? -1 : Number(position));
      if (r === -4) continue;
      return check(r, 'read');
    }
  },
  write(fd, data, offset, length, position) {
    fdOf(fd);
    let b;
    if (typeof data === 'string') {
      b = Buffer.from(data, typeof length === 'string' ? length : 'utf8');
      position = typeof offset === 'number' ? offset : null;
      offset = 0;
      length = b.length;
    } else {
      if (!ArrayBuffer.isView(data)) throw argType('buffer', ['string', 'Buffer', 'TypedArray', 'DataView'], data);
      if (offset !== null && typeof offset === 'object') ({ offset, length, position } = offset);
      b = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
      offset = offset ?? 0;
      length = length ?? b.length - offset;
    }
    for (;;) {
      const r = host.write(fd, b, offset, length, position == null || position < 0 ? -1 : Number(position));
      if (r === -4) continue;
      return check(r, 'write');
    }
  },
  readv(fd, list, position) {
    let n = 0;
    for (const b of list) {
      const r = sync.read(fd, b, 0, b.byteLength, position == null ? null : position + n);
      n += r;
      if (r < b.byteLength) break;
    }
    return n;
  },
  writev(fd, list, position) {
    let n = 0;
    for (const b of list) n += sync.write(fd, b, 0, b.byteLength, position == null ? null : position + n);
    return n;
  },
  readFile(p, options) {
    const o = optionsOf(options, { flag: 'r' });
    const own = !(Number.isInteger(p) && p >= 0);
    const fd = own ? sync.open(p, o.flag) : p;
    try {
      const r = host.readAll(fd);
      if (typeof r === 'number') throw system(r, 'read');
      return text(wrap(r), o.encoding);
    } finally {
      if (own) host.close(fd);
    }
  },
  writeFile(p, data, options) {
    const o = optionsOf(options, { encoding: 'utf8', mode: 0o666, flag: 'w' });
    if (typeof data !== 'string' && !ArrayBuffer.isView(data)) throw argType('data', ['string', 'Buffer', 'TypedArray', 'DataView'], data);
    const b = typeof data === 'string' ? Buffer.from(data, o.encoding) : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    const own = typeof p !== 'number';
    const fd = own ? sync.open(p, o.flag, o.mode) : p;
    try {
      const r = internal.writeAll(fd, b);
      if (r < 0) throw system(r, 'write');
    } finally {
      if (own) host.close(fd);
    }
  },
  appendFile(p, data, options) { sync.writeFile(p, data, { flag: 'a', ...optionsOf(options, {}) }); },
  stat(p, o) { return stat(host.stat(p = pathOf(p), false), 'stat', p, o); },
  lstat(p, o) { return stat(host.stat(p = pathOf(p), true), 'lstat', p, o); },
  fstat(fd, o) { return stat(host.fstat(fdOf(fd)), 'fstat', undefined, o); },
  readdir(p, options) {
    const o = optionsOf(options, {});
    p = pathOf(p);
    const out = [];
    const visit = (dir, rel) => {
      const list = check(host.readdir(dir), 'scandir', dir);
      const entries = [];
      for (let i = 0; i < list.length; i += 2) entries.push([list[i], list[i + 1]]);
      entries.sort((a, b) => a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0);
      for (const [name, t] of entries) out.push(o.withFileTypes ? new Dirent(named(name, o.encoding), dir, t) : named(rel + name, o.encoding));
      if (o.recursive) for (const [name, t] of entries) if (t === 3) visit(dir.replace(/\/*$/, '/') + name, `${rel}${name}/`);
    };
    visit(p, '');
    return out;
  },
  mkdir(p, options) {
    p = pathOf(p);
    const o = typeof options === 'object' && options !== null ? options : { mode: options };
    const mode = modeOf(o.mode, 0o777);
    if (!o.recursive) {
      check(host.mkdir(p, mode), 'mkdir', p);
      return undefined;
    }
    let first;
    const make = (d) => {
      let r = host.mkdir(d, mode);
      if (r === 0) {
        first ??= pathlib.resolve(d);
        return;
      }
      if (r === -2 && pathlib.dirname(d) !== d) {
        make(pathlib.dirname(d));
        r = host.mkdir(d, mode);
        if (r === 0) return;
      }
      if (r === -17 || r === -21) {
        const st = host.stat(d, false);
        if (Array.isArray(st) && (st[2] & k.S_IFMT) === k.S_IFDIR) return;
        throw system(d === p ? -17 : -20, 'mkdir', p);
      }
      throw system(r, 'mkdir', p);
    };
    make(p);
    return first;
  },
  mkdtemp(prefix, options) {
    prefix = pathOf(prefix, 'prefix');
    for (let i = 0; ; i++) {
      const b = new Uint8Array(6);
      host.random(b, 0, 6);
      const d = prefix + Array.from(b, (x) => 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'[x % 62]).join('');
      const r = host.mkdir(d, 0o700);
      if (r === -17 && i < 100) continue;
      check(r, 'mkdtemp', prefix + 'XXXXXX');
      return named(d, optionsOf(options, {}).encoding);
    }
  },
  rmdir(p, options) {
    p = pathOf(p);
    if (options && options.recursive) return sync.rm(p, { recursive: true, force: false });
    check(host.unlink(p, true), 'rmdir', p);
  },
  unlink(p) { check(host.unlink(p = pathOf(p), false), 'unlink', p); },
  rm(p, options = {}) {
    p = pathOf(p);
    const st = host.stat(p, true);
    if (typeof st === 'number') {
      if (st === -2 && options.force) return;
      throw system(st, 'lstat', p);
    }
    if ((st[2] & k.S_IFMT) !== k.S_IFDIR) return void check(host.unlink(p, false), 'rm', p);
    if (!options.recursive) {
      const e = new Error(`Path is a directory: rm returned EISDIR (is a directory) ${p}`);
      Object.assign(e, { code: 'ERR_FS_EISDIR', info: { code: 'EISDIR', message: 'is a directory', path: p, syscall: 'rm', errno: 21 }, errno: 21, syscall: 'rm', path: p });
      Object.defineProperty(e, 'name', { value: 'SystemError', configurable: true });
      throw e;
    }
    const remove = (d) => {
      const list = check(host.readdir(d), 'rm', d);
      for (let i = 0; i < list.length; i += 2) {
        const f = `${d}/${list[i]}`;
        if (list[i + 1] === 3) remove(f);
        else check(host.unlink(f, false), 'rm', f);
      }
      check(host.unlink(d, true), 'rm', d);
    };
    remove(p.length > 1 ? p.replace(/\/+$/, '') || '/' : p);
  },
  rename(a, b) { check(host.rename(a = pathOf(a, 'oldPath'), b = pathOf(b, 'newPath')), 'rename', a, b); },
  link(a, b) { check(host.link(a = pathOf(a, 'existingPath'), b = pathOf(b, 'newPath')), 'link', a, b); },
  symlink(a, b) { check(host.symlink(a = pathOf(a, 'target'), b = pathOf(b)), 'symlink', a, b); },
  readlink(p, o) { return named(check(host.readlink(p = pathOf(p)), 'readlink', p), optionsOf(o, {}).encoding); },
  realpath(p, o) { return named(check(host.realpath(p = pathOf(p)), 'realpath', p), optionsOf(o, {}).encoding); },
  chmod(p, m) { check(host.chmod(p = pathOf(p), modeOf(m)), 'chmod', p); },
  fchmod(fd, m) { check(host.fchmod(fdOf(fd), modeOf(m)), 'fchmod'); },
  chown(p, u, g) { check(host.chown(p = pathOf(p), u, g, false), 'chown', p); },
  lchown(p, u, g) { check(host.chown(p = pathOf(p), u, g, true), 'lchown', p); },
  fchown() {},
  utimes(p, a, m) { check(host.utimes(p = pathOf(p), ms(a), ms(m), false), 'utime', p); },
  lutimes(p, a, m) { check(host.utimes(p = pathOf(p), ms(a), ms(m), true), 'lutime', p); },
  futimes(fd, a, m) { check(host.futimes(fdOf(fd), ms(a), ms(m)), 'futime'); },
  ftruncate(fd, n = 0) { check(host.ftruncate(fdOf(fd), n), 'ftruncate'); },
  truncate(p, n = 0) {
    if (typeof p === 'number') return sync.ftruncate(p, n);
    const fd = sync.open(p, 'r+');
    try { sync.ftruncate(fd, n); } finally { host.close(fd); }
  },
  fsync(fd) { check(host.fsync(fdOf(fd)), 'fsync'); },
  fdatasync(fd) { check(host.fsync(fdOf(fd)), 'fdatasync'); },
  copyFile(a, b, mode = 0) {
    a = pathOf(a, 'src');
    b = pathOf(b, 'dest');
    const from = host.open(a, 0, 0);
    if (from < 0) throw system(from, 'copyfile', a, b);
    try {
      const st = host.fstat(from);
      if ((st[2] & k.S_IFMT) === k.S_IFDIR) throw system(-21, 'copyfile', a, b);
      const to = host.open(b, 0x41 | (mode & 1 ? 0x80 : 0x200), st[2] & 0o777);
      if (to < 0) throw system(to, 'copyfile', a, b);
      try {
        const buf = new Uint8Array(1 << 18);
        for (;;) {
          const n = host.read(from, buf, 0, buf.length, -1);
          if (n < 0) throw system(n, 'copyfile', a, b);
          if (n === 0) break;
          const r = internal.writeAll(to, buf.subarray(0, n));
          if (r < 0) throw system(r, 'copyfile', a, b);
        }
        host.fchmod(to, st[2] & 0o777);
      } finally { host.close(to); }
    } finally { host.close(from); }
  },
  cp(a, b, o = {}) {
    a = pathOf(a, 'src');
    b = pathOf(b, 'dest');
    const copy = (s, d) => {
      if (o.filter && !o.filter(s, d)) return;
      const st = check(host.stat(s, !o.dereference), 'cp', s);
      const type = st[2] & k.S_IFMT;
      if (type === k.S_IFDIR) {
        if (!o.recursive) {
          const e = coded(Error, 'ERR_FS_EISDIR', `Recursive option not enabled, cannot copy a directory: cp returned EISDIR (${s} is a directory (not copied)) ${s}`);
          throw e;
        }
        sync.mkdir(d, { recursive: true });
        const list = check(host.readdir(s), 'cp', s);
        for (let i = 0; i < list.length; i += 2) copy(`${s}/${list[i]}`, `${d}/${list[i]}`);
        host.chmod(d, st[2] & 0o777);
        return;
      }
      const there = host.stat(d, true);
      if (Array.isArray(there)) {
        if (o.errorOnExist && o.force === false) throw coded(Error, 'ERR_FS_CP_EEXIST', `Target already exists: cp returned EEXIST (${d} already exists) ${d}`);
        if (o.force === false) return;
      } else sync.mkdir(pathlib.dirname(d), { recursive: true });
      if (type === k.S_IFLNK) {
        if (Array.isArray(there)) host.unlink(d, false);
        check(host.symlink(check(host.readlink(s), 'readlink', s), d), 'symlink', d);
      } else sync.copyFile(s, d);
      if (o.preserveTimestamps) host.utimes(d, st[10], st[11], false);
    };
    copy(a, b);
  },
  statfs(p) { check(host.stat(p = pathOf(p), false), 'statfs', p); return { type: 0, bsize: 4096, blocks: 0, bfree: 0, bavail: 0, files: 0, ffree: 0 }; },
  opendir(p, o) {
    p = pathOf(p);
    const r = host.readdir(p);
    if (typeof r === 'number') throw Object.assign(system(r, 'opendir'), { path: p });
    return new Dir(p, sync.readdir(p, { ...o, withFileTypes: true }));
  },
};
function stat(r, syscall, p, o) {
  if (typeof r === 'number') {
    if (o && o.throwIfNoEntry === false && (r === -2 || r === -20)) return undefined;
    throw system(r, syscall, p);
  }
  return statsOf(r, o && o.bigint);
}
function ms(t) {
  if (t instanceof Date) return t.getTime();
  if (typeof t === 'string') t = +t;
  if (typeof t !== 'number' || isNaN(t)) throw argType('time', ['Date', 'Time in seconds'], t);
  return t * 1000;
}
class Dir {
  #list; #at = 0;
  constructor(path, list) { this.path = path; this.#list = list; }
  readSync() { return this.#list[this.#at++] || null; }
  read(cb) { if (cb) return void process.nextTick(cb, null, this.readSync()); return Promise.resolve(this.readSync()); }
  closeSync() {}
  close(cb) { if (cb) return void process.nextTick(cb, null); return Promise.resolve(); }
  async* [Symbol.asyncIterator]() { for (let d; (d = this.readSync());) yield d; }
}
fs.Dir = Dir;

// Every function in three kinds: Sync, with a callback, and as a promise.
const promises = {};
const results = { read: ['bytesRead', 'buffer'], write: ['bytesWritten', 'buffer'], readv: ['bytesRead', 'buffers'], writev: ['bytesWritten', 'buffers'] };
for (const name of Object.keys(sync)) {
  const f = sync[name];
  const s = { [`${name}Sync`](...args) { return f(...args); } }[`${name}Sync`];
  fs[`${name}Sync`] = s;
  fs[name] = { [name](...args) {
    const cb = args.findLast((a) => typeof a === 'function');
    fn(cb, 'cb');
    args = args.slice(0, args.lastIndexOf(cb));
    // Arguments are judged at once, everything else is told later.
    let e = null, r;
    try { r = f(...args); } catch (err) {
      if (err.code && /^ERR_INVALID|^ERR_OUT/.test(err.code)) throw err;
      e = err;
    }
    setImmediate(() => { if (e) cb(e); else if (results[name]) cb(null, r, args[1]); else if (r === undefined) cb(null); else cb(null, r); });
  } }[name];
  if (results[name]) Object.defineProperty(fs[name], Symbol.for('nodejs.util.promisify.args'), { value: results[name] });
  promises[name] = { async [name](...args) {
    if (args[0] instanceof FileHandle) args[0] = args[0].fd;
    const later = new Promise((r) => setImmediate(r));
    let r, e;
    try { r = f(...args); } catch (err) { e = err; }
    await later;
    if (e) throw e;
    return r;
  } }[name];
}
fs.realpathSync.native = fs.realpathSync;
fs.realpath.native = fs.realpath;
fs.existsSync = (p) => { try { return Array.isArray(host.stat(pathOf(p), false)); } catch { return false; } };
fs.exists = (p, cb) => { const r = fs.existsSync(p); setImmediate(() => cb(r)); };
Object.defineProperty(fs.exists, Symbol.for('nodejs.util.promisify.custom'), { value: (p) => Promise.resolve(fs.existsSync(p)) });
for (const n of ['close', 'read', 'write', 'fstat', 'fsync', 'fdatasync', 'fchmod', 'futimes', 'ftruncate', 'readv', 'writev', 'fchown']) delete promises[n];

class FileHandle extends require('events') {
  constructor(fd) { super(); Object.defineProperty(this, 'fd', { value: fd, writable: true, enumerable: true }); }
  async read(buffer, offset, length, position) {
    if (buffer === undefined || !ArrayBuffer.isView(buffer)) {
      const o = buffer || {};
      ({ buffer = Buffer.alloc(16384), offset, length, position } = o);
    }
    return { bytesRead: sync.read(this.fd, buffer, offset, length, position), buffer };
  }
  async write(data, ...args) { return { bytesWritten: sync.write(this.fd, data, ...args), buffer: data }; }
  async readv(list, position) { return { bytesRead: sync.readv(this.fd, list, position), buffers: list }; }
  async writev(list, position) { return { bytesWritten: sync.writev(this.fd, list, position), buffers: list }; }
  async readFile(o) { return sync.readFile(this.fd, o); }
  async writeFile(d, o) { return sync.writeFile(this.fd, d, o); }
  async appendFile(d, o) { return sync.writeFile(this.fd, d, o); }
  async stat(o) { return sync.fstat(this.fd, o); }
  async truncate(n) { sync.ftruncate(this.fd, n); }
  async sync() { sync.fsync(this.fd); }
  async datasync() { sync.fsync(this.fd); }
  async chmod(m) { sync.fchmod(this.fd, m); }
  async chown() {}
  async utimes(a, m) { sync.futimes(this.fd, a, m); }
  async close() { const fd = this.fd; this.fd = -1; if (fd >= 0) sync.close(fd); this.emit('close'); }
  async [Symbol.asyncDispose || Symbol.for('nodejs.asyncDispose')]() { await this.close(); }
  createReadStream(o) { return new fs.ReadStream(null, { ...o, fd: this.fd, autoClose: false }); }
  createWriteStream(o) { return new fs.WriteStream(null, { ...o, fd: this.fd, autoClose: false }); }
  readLines(o) { return require('readline').createInterface({ input: this.createReadStream(o), crlfDelay: Infinity }); }
}
promises.open = async (p, flags, mode) => new FileHandle(sync.open(p, flags, mode));
promises.constants = k;
promises.watch = async function* () { throw require('internal/errors').notHere('fs.watch'); };
promises.glob = async function* (p, o) { yield* require('internal/glob').glob(p, o); };
fs.globSync = (p, o) => Array.from(require('internal/glob').glob(p, o));
Object.defineProperty(fs, 'promises', { enumerable: true, configurable: true, get: () => promises });

// Streams over files.
const lazy = () => require('internal/filestreams')(fs, sync, pathOf);
for (const n of ['ReadStream', 'WriteStream']) {
  Object.defineProperty(fs, n, { configurable: true, enumerable: true, get() { return lazy()[n]; } });
  Object.defineProperty(fs, `File${n}`, { configurable: true, enumerable: true, get() { return lazy()[n]; } });
}
fs.createReadStream = (p, o) => new fs.ReadStream(p, o);
fs.createWriteStream = (p, o) => new fs.WriteStream(p, o);

// Watching is done by looking, as fs.watchFile is anyway.
const watchers = new Map();
fs.watchFile = (p, o, f) => {
  if (typeof o === 'function') [f, o] = [o, {}];
  p = pathlib.resolve(pathOf(p));
  const look = () => sync.stat(p, { throwIfNoEntry: false }) || statsOf([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  let last = look();
  const timer = setInterval(() => {
    const now = look();
    if (now.mtimeMs === last.mtimeMs && now.size === last.size && now.ino === last.ino) return;
    const before = last;
    last = now;
    f(now, before);
  }, o.interval || 5007);
  if (o.persistent === false) timer.unref();
  watchers.set(p, timer);
  return timer;
};
fs.unwatchFile = (p) => { clearInterval(watchers.get(pathlib.resolve(pathOf(p)))); };
fs.watch = (p, o, f) => {
  if (typeof o === 'function') [f, o] = [o, {}];
  const w = new (require('events'))();
  p = pathOf(p);
  const look = () => {
    const st = sync.stat(p);
    if (!st.isDirectory()) return { [pathlib.basename(p)]: `${st.mtimeMs} ${st.size}` };
    const out = {};
    for (const n of sync.readdir(p)) {
      const s = sync.stat(`${p}/${n}`, { throwIfNoEntry: false });
      if (s) out[n] = `${s.mtimeMs} ${s.size}`;
    }
    return out;
  };
  let last = look();
  const timer = setInterval(() => {
    let now;
    try { now = look(); } catch (e) { now = {}; }
    for (const n of new Set([...Object.keys(last), ...Object.keys(now)])) if (last[n] !== now[n]) w.emit('change', n in last && n in now ? 'change' : 'rename', n);
    last = now;
  }, 100);
  if (o && o.persistent === false) timer.unref();
  w.close = () => { clearInterval(timer); w.emit('close'); };
  w.ref = () => { timer.ref(); return w; };
  w.unref = () => { timer.unref(); return w; };
  if (f) w.on('change', f);
  return w;
};
fs.openAsBlob = async (p, o) => new (require('internal/web').Blob)([sync.readFile(p)], o);
